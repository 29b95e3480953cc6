#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Spans, counters, flows: the events that programs emit, and the tables that kymo stat makes of them.
"""

import collections

import kymotest
from kymotest import check, check_counts, equal, fields, read_trace


def run(k, *args, emitted, **options):
    k.start_daemon()
    trace = k.record(**options)
    k.app("spans", *args)
    k.kymo("stop", "s")
    return trace, check_counts(k, trace, emitted)


def spans(k, trace):
    """Returns by name and kind: how many spans ended, did not end, never began."""
    stat = k.kymo_json("stat", trace)
    return {(s["name"], s["async"]): (s["count"], s["unfinished"], s["unbegun"]) for s in stat["spans"]}


def without_tid(event):
    return {name: value for name, value in fields(event).items() if name != "span_tid"}


def test_forms(k):
    """Every form, exactly; one thread has one number."""
    trace, events = run(k, "forms", emitted=22)
    ids = {"trace_id": [0x4BF92F3577B34DA6, 0xA3CE929D0E0E4736], "span_id": 0xF067AA0BA902B710, "parent_span_id": 0xF067AA0BA902B710}
    equal([(e.name, without_tid(e)) for e in events], [
        ("shop:work_begin", {"order": 7, "who": "me"}), ("shop:work_begin", {"order": 8, "who": "you"}),
        ("shop:work_end", {}), ("shop:work_end", {}),
        ("shop:scope_begin", {"n": 0}), ("shop:second_scope_begin", {}), ("shop:late", {}), ("shop:second_scope_end", {}), ("shop:scope_end", {}),
        ("shop:scope_begin", {"n": 1}), ("shop:second_scope_begin", {}), ("shop:second_scope_end", {}), ("shop:scope_end", {}),
        ("shop:request_begin", {"async_id": 11, **ids}), ("shop:request_begin", {"async_id": 12, **ids}),
        ("shop:request_end", {"async_id": 11, "status": 200}), ("shop:request_end", {"async_id": 12, "status": 404}),
        ("shop:parcel_begin", {"flow_id": 5}), ("shop:parcel_step", {"flow_id": 5, "place": "harbour"}), ("shop:parcel_end", {"flow_id": 5}),
        ("shop:stock", {"counter": -3}), ("shop:load", {"counter": 0.5})], "events")
    equal(len({fields(e)["span_tid"] for e in events if "span_tid" in e.fields}), 1, "threads")
    equal(spans(k, trace), {("shop:work", False): (2, 0, 0), ("shop:scope", False): (2, 0, 0), ("shop:second_scope", False): (2, 0, 0),
        ("shop:request", True): (2, 0, 0)}, "spans")


def test_durations(k):
    """The durations in stat agree with the times in the trace."""
    trace, events = run(k, "threads", 4, "forms", emitted=4 * 400 + 22)
    began, took = collections.defaultdict(list), collections.defaultdict(list)
    for e in events:
        name, ending = e.name.rpartition("_")[::2]
        key = name, fields(e).get("span_tid")
        if key[1] and ending == "begin":
            began[key].append(e.time)
        elif key[1]:
            took[name].append(e.time - began[key].pop())
    stats = {s["name"]: s for s in k.kymo_json("stat", trace)["spans"] if not s["async"]}
    equal(set(stats), set(took), "names")
    freq = clock_frequency(trace)
    for name, cycles in took.items():
        ns, s = sorted(c * 1e9 / freq for c in cycles), stats[name]
        equal(s["count"], len(ns), f"count of {name}")
        for what, index in (("min", 0), ("median", -(-len(ns) // 2) - 1), ("p90", -(-len(ns) * 9 // 10) - 1), ("max", -1)):
            check(abs(s[f"{what}_ns"] - ns[index]) <= 2 + ns[index] / 1000, f"{what} of {name}: {s}, wanted {ns[index]}")
        check(abs(s["total_ns"] - sum(ns)) <= 2 * len(ns), f"total of {name}: {s}")
    text = k.kymo("stat", trace).stdout
    for part in ("threads:outer", "shop:request (async)", "median", "99 %"):
        check(part in text, f"kymo stat lacks {part!r}:\n{text}")


def clock_frequency(trace):
    text = next(trace.rglob("metadata")).read_text()
    return int(text.partition("freq = ")[2].partition(";")[0])


def test_threads(k):
    """Each thread has its own number, the kernel's."""
    _, events = run(k, "threads", 8, emitted=8 * 400)
    numbers = collections.Counter()
    for e in events:
        f = fields(e)
        equal(f.get("thread", f["span_tid"]), f["span_tid"], f"thread of {e.name}")
        numbers[f["span_tid"]] += 1
    equal(sorted(numbers.values()), [400] * 8, "events of each thread")


def test_fork(k):
    """
    The child's thread differs from the thread that forked. A span with an explicit number that
    began in the parent can end in the child.
    """
    trace, events = run(k, "fork", emitted=6)
    for e in events:
        f = fields(e)
        equal(f.get("pid", f.get("span_tid")), f.get("span_tid"), f"thread of {e.name}")
    equal(len({fields(e)["pid"] for e in events if e.name == "family:life_begin"}), 2, "processes")
    equal(spans(k, trace), {("family:life", False): (2, 0, 0), ("family:given", True): (1, 0, 0)}, "spans")


def test_cplusplus(k):
    """An exception ends a span before it is caught."""
    trace, events = run(k, "cplusplus", emitted=9)
    equal([e.name.partition(":")[2] for e in events], ["outer_begin", "thrown_begin", "thrown_end", "caught", "in_template_begin", "in_template_end",
        "in_template_begin", "in_template_end", "outer_end"], "events")
    equal(spans(k, trace), {("cpp:outer", False): (1, 0, 0), ("cpp:thrown", False): (1, 0, 0), ("cpp:in_template", False): (2, 0, 0)}, "spans")


def test_handler(k):
    trace, _ = run(k, "handler", emitted=4)
    equal(spans(k, trace), {("shop:handled", False): (2, 0, 0)}, "spans")


def test_unfinished(k):
    trace, _ = run(k, "open", emitted=2)
    equal(spans(k, trace), {("open:never_ended", False): (0, 1, 0), ("open:never_begun", False): (0, 0, 1)}, "spans")
    text = k.kymo("stat", trace).stdout
    check("open:never_ended, 1 unfinished\n" in text and "open:never_begun, 1 without a beginning\n" in text, text)


def test_sessions(k):
    """
    Rules match the names of ends and beginnings; a session that starts later has the later events.
    """
    k.start_daemon()
    begins = k.record("shop:work_begin", session="begins")
    app = k.spawn("spans", "forms", "wait", "forms", "wait")
    k.expect(app, "ready")
    late = k.record("*:*_begin,*:*_end", session="late")
    k.let_go(app)
    k.expect(app, "ready")
    k.let_go(app)
    k.finish(app)
    k.kymo("destroy", "-a")
    equal([e.name for e in read_trace(begins)[0]], ["shop:work_begin"] * 4, "begins")
    equal(spans(k, begins), {("shop:work", False): (0, 4, 0)}, "without ends")
    equal(set(spans(k, late).values()), {(2, 0, 0)}, "late")


def test_filters_and_contexts(k):
    """Filters and contexts can use the thread number, and agree with it."""
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    k.kymo("enable-event", "-s", "s", "shop:request_*", "-f", "async_id == 12")
    k.kymo("enable-event", "-s", "s", "shop:work_*")
    k.kymo("add-context", "-s", "s", "-t", "vtid")
    k.kymo("start", "s")
    k.app("spans", "forms")
    k.kymo("destroy", "s")
    trace = k.traces / "s"
    equal(spans(k, trace), {("shop:request", True): (1, 0, 0), ("shop:work", False): (2, 0, 0)}, "spans")
    text = kymotest.babeltrace(trace)[0]
    for line in text.splitlines():
        check("span_tid" not in line or line.count(line.partition("vtid = ")[2].split()[0]) >= 2, f"another thread: {line}")


if __name__ == "__main__":
    kymotest.main()
