#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Filters: the trace has exactly the events that the test's own evaluation selects, for all
combinations of rules, and while rules are enabled and disabled. src/filter/test-filter.c tests the
language in detail.
"""

import collections
import json
import subprocess

import answers
import kymotest
from kymotest import check, equal, integers, read_trace

N = 300
ITEM, KINDS, OTHER = "filters:item", "filters:kinds", "filters:other"


class Program:
    """A running `filters`, which emits on request; counts in phases."""

    def __init__(self, k, **env):
        self.k, self.phase = k, 0
        self.app = k.spawn("filters", env=env)
        if k.daemon:
            k.wait_registered(self.app)

    def emit(self, n=N):
        self.phase += 1
        self.app.stdin.write(f"{self.phase} {n}\n")
        self.app.stdin.flush()
        self.k.expect(self.app, "done")

    def end(self):
        self.app.stdin.close()
        equal(self.app.wait(kymotest.TIMEOUT), 0, "exit status of filters")


def recorded(trace):
    """Returns {event: {phase: [n]}}; each n occurs once."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    events, discarded = read_trace(trace)
    equal(discarded, 0, "discarded events")
    for event in events:
        values = integers(event)
        found[event.name][values["phase"]].append(values["m" if event.name == OTHER else "n"])
    return found


def check_phase(found, phase, n=N, **wanted):
    """
    Compares with each of item, kinds, other: a predicate of n, or nothing if no event is expected.
    """
    for name in (ITEM, KINDS, OTHER):
        passes = wanted.get(name.partition(":")[2], lambda n: False)
        equal(found[name][phase], [i for i in range(n) if passes(i)], f"{name} of phase {phase}")


def create(k, start=True):
    k.kymo("create", "s", "-o", k.traces / "s")
    if start:
        k.kymo("start")
    return k.traces / "s"


def finish(k, program, trace):
    program.end()
    k.kymo("destroy")
    return recorded(trace)


def test_kinds_of_fields(k):
    """One channel for each filter, all recorded at the same time."""
    filters = {
        ("item", "n < 5"): lambda n: n < 5,
        ("item", "n >= 10 && n <= 12 || n == 299"): lambda n: 10 <= n <= 12 or n == 299,
        ("item", 'word == "t*" && n % 2'): lambda n: n % 3 == 2 and n % 2,
        ("item", 'word != "one"'): lambda n: n % 3 != 1,
        ("item", "last >> 40 == n && last > 0x28000000000"): lambda n: n << 40 > 0x28000000000,
        ("kinds", "a == -100"): lambda n: (-n + 128) % 256 - 128 == -100,
        ("kinds", "half * 2 == n && half > 100.25"): lambda n: n / 2 > 100.25,
        ("kinds", "odd"): lambda n: n & 1,
        ("kinds", "parity == 0"): lambda n: not n & 1,
        ("kinds", "port == 258"): lambda n: n == 258,
        ("kinds", 'text == "*b" && n < 100'): lambda n: n % 26 == 1 and n < 100,
        ("kinds", "list[1] == n + 1"): lambda n: n % 4 >= 2,
        ("kinds", "!(list[1] == n + 1)"): lambda n: False,
        ("kinds", "list[2] == 7 && n > 200"): lambda n: n % 4 == 3 and n > 200,
        ("kinds", 'fixed == "two"'): lambda n: n % 3 == 2,
        ("kinds", "$ctx.vpid == $ctx.vtid && n == 3"): lambda n: n == 3,
        ("kinds", '$ctx.procname == "filt*" && n == 4'): lambda n: n == 4,
        ("kinds", "$ctx.ip > 4096 && n == 5"): lambda n: n == 5,
        ("kinds", "100 / (n - 50) == 100"): lambda n: n == 51,
    }
    k.start_daemon()
    trace = create(k, start=False)
    for i, (event, text) in enumerate(filters):
        k.kymo("enable-channel", f"c{i}", "--subbuf-size=64K")
        k.kymo("enable-event", f"filters:{event}", "-c", f"c{i}", "-f", text)
    k.kymo("start")
    program = Program(k)
    program.emit()
    program.end()
    k.kymo("destroy")
    streams = collections.defaultdict(list)
    for path in kymotest.streams(trace):
        streams[path.name.rpartition("_")[0]].append(path)
    total = 0
    for i, ((event, text), passes) in enumerate(filters.items()):
        wanted = sum(bool(passes(n)) for n in range(N))
        got = sum(p.events for path in streams[f"c{i}"] for p in kymotest.packets(path))
        equal(got, wanted, f"events that pass {text!r}")
        total += wanted
    equal(len(read_trace(trace)[0]), total, "events that babeltrace2 reads")


def test_rule_before_and_after_the_program(k):
    k.start_daemon()
    trace = create(k)
    k.kymo("enable-event", ITEM, "-f", "n < 7")
    program = Program(k)
    program.emit()
    k.kymo("enable-event", OTHER, "--filter=m == 9")
    program.emit()
    k.kymo("stop")
    program.emit()
    k.kymo("start")
    program.emit()
    found = finish(k, program, trace)
    check_phase(found, 1, item=lambda n: n < 7)
    check_phase(found, 2, item=lambda n: n < 7, other=lambda n: n == 9)
    check_phase(found, 3)
    check_phase(found, 4, item=lambda n: n < 7, other=lambda n: n == 9)


def test_rules_that_overlap(k):
    """
    One matching filter is sufficient, as is a rule without a filter; each event is recorded once.
    """
    k.start_daemon()
    trace = create(k)
    program = Program(k)
    k.kymo("enable-event", "filters:*", "-f", "n < 5")
    program.emit()
    k.kymo("enable-event", ITEM, "-f", "n < 9 && n > 2")
    program.emit()
    k.kymo("enable-event", "filters:i*")
    program.emit()
    k.kymo("disable-event", "filters:i*")
    program.emit()
    k.kymo("disable-event", "filters:*")
    program.emit()
    k.kymo("enable-event", ITEM, "-f", 'word == "zero"')
    program.emit()
    k.kymo("disable-event", ITEM)
    program.emit()
    found = finish(k, program, trace)
    check_phase(found, 1, item=lambda n: n < 5, kinds=lambda n: n < 5)
    check_phase(found, 2, item=lambda n: n < 9, kinds=lambda n: n < 5)
    check_phase(found, 3, item=lambda n: True, kinds=lambda n: n < 5)
    check_phase(found, 4, item=lambda n: n < 9, kinds=lambda n: n < 5)
    check_phase(found, 5, item=lambda n: 2 < n < 9)
    check_phase(found, 6, item=lambda n: 2 < n < 9 or n % 3 == 0)
    check_phase(found, 7)


def test_unfiltered_becomes_filtered(k):
    """An event that was recorded without any condition gets a filter while it is recorded."""
    k.start_daemon()
    trace = create(k)
    program = Program(k)
    k.kymo("enable-event", "filters:i*")
    k.kymo("enable-event", ITEM, "-f", "n == 250")
    program.emit()
    k.kymo("disable-event", "filters:i*")
    program.emit()
    found = finish(k, program, trace)
    check_phase(found, 1, item=lambda n: True)
    check_phase(found, 2, item=lambda n: n == 250)


def test_contexts_and_filters(k):
    k.start_daemon()
    trace = create(k)
    k.kymo("enable-channel", "channel0")
    k.kymo("add-context", "-t", "vpid", "-t", "procname")
    k.kymo("enable-event", ITEM, "-f", "n % 100 == 99")
    program = Program(k)
    program.emit()
    found = finish(k, program, trace)
    check_phase(found, 1, item=lambda n: n % 100 == 99)


def test_per_thread_rings(k):
    k.start_daemon()
    trace = create(k)
    k.kymo("enable-event", ITEM, "-f", "n % 100 == 99")
    program = Program(k, GLIBC_TUNABLES="glibc.pthread.rseq=0")
    program.emit()
    check_phase(finish(k, program, trace), 1, item=lambda n: n % 100 == 99)


def test_many_changes(k):
    """
    The same filters are enabled and disabled again and again: the program's memory for them does
    not grow.
    """
    k.start_daemon()
    trace = create(k)
    program = Program(k)
    for i in range(60):
        k.kymo("enable-event", ITEM, "-f", f"n == {i % 3}")
        program.emit(3)
        k.kymo("disable-event", "--remove", ITEM)
    found = finish(k, program, trace)
    for i in range(60):
        check_phase(found, i + 1, 3, item=lambda n, i=i: n == i % 3)


def test_refused(k):
    k.start_daemon()
    create(k)
    for text, says in {"n = 5": "filter: unknown operator '=' at character 3 (did you mean '=='?)",
            "n ==": "filter: a name, a number or a string is missing at character 5",
            'n == 1 && "x" == 5': "filter: a string cannot be compared with a number at character 15",
            "$ctx.vpd == 1": "filter: there is no context 'vpd' at character 1",
            "$ctx.callstack == 0": "filter: there is no context 'callstack' at character 1"}.items():
        done = k.kymo("enable-event", ITEM, "-f", text, status=2)
        equal(done.stderr.strip(), f"kymo: {says}", f"refusal of {text!r}")
    for command in (["enable-event", ITEM], ["record", "true"]):
        done = k.kymo(command[0], "-f", "n == 1", "-f", "n == 2", *command[1:], status=2)
        check("'--filter' can be given once only: 'n == 1' or 'n == 2'?" in done.stderr, f"two filters: {done.stderr}")
    reply = k.request(command="enable-event", session="s", patterns=[ITEM], filter="n = 5")
    equal((reply["code"], reply["position"]), ("usage", 3), "refusal on the control socket")
    equal(k.kymo_json("status", "s")["session"]["channels"], [], "channels after rules that were all refused")


def test_refused_by_readers(k):
    """view names the place once."""
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(10, "s:outer_begin", 1, 0)])
    for text, place in (("tid ==", 7), ("tid = 5", 5)):
        said = k.kymo("view", t.write(k.top / f"trace-{place}"), "-f", text, status=2).stderr
        equal((said.count("character"), f"at character {place}" in said), (1, True), said)


def test_unknown_field(k):
    """view and stat say that no event has a field of that name."""
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(10, "s:outer_begin", 1, 0)])
    trace = t.write(k.top / "trace")
    for command in ("view", "stat"):
        for field, says in (("nosuch", "a field 'nosuch'; a text has quotes"), ("$ctx.nosuch", "the context '$ctx.nosuch'\n"),
                ("$ctx.span_tip", "the context '$ctx.span_tip'\n"), ("$ctx.vtdi", "the context '$ctx.vtdi': did you mean '$ctx.vtid'?")):
            said = k.kymo(command, trace, "-f", f"1 == 1 && {field} == 1").stderr
            check(f"no event that is selected has {says}" in said, f"{command} says {said!r}")
        check("has a field" not in k.kymo(command, trace, "-f", "span_tid == 9").stderr, "a field that an event has")
        said = k.kymo(command, trace, "-f", "span_tip == 9").stderr
        check("field 'span_tip': did you mean 'span_tid'?" in said, f"{command} says {said!r}")
        said = k.kymo(command, trace, "-f", "span_tid == WARNING").stderr
        check('a text has quotes: "WARNING"' in said, f"{command} says {said!r}")
        for mistaken, says in (('span_tid == "x"', "'span_tid' is a number"),
                ('1 == 1 && !("x*" != span_tid)', "'span_tid' is a number"),
                ("1 == 2 || $ctx.procname > 3", "'$ctx.procname' is a text"),
                ("span_tid == 9", None), ('$ctx.procname == "x*"', None), ("span_tid == $ctx.vtid", None)):
            said = k.kymo(command, trace, "-f", mistaken).stderr
            check(says in said if says else " is a " not in said, f"{command} says {said!r} of {mistaken}")
    least = "span_tid >= -9223372036854775808 && -9223372036854775808 < 0"
    equal(k.kymo("view", trace, "-f", least).stdout.count("outer_begin"), 1, "events above the least integer")
    said = k.kymo("view", trace, "--fields=span_tip").stderr
    check("field or context 'span_tip': did you mean 'span_tid'?" in said, f"view says {said!r}")
    said = k.kymo("stat", trace, "--latency=s:outer", status=2).stderr
    check("'kymo stat TRACE' shows how long spans took" in said, f"stat says {said!r}")
    for option, name in (("--latency=s:outer_begim..s:outer_end", "s:outer_begin"), ("--latency=s:outer_begin..s:outer_end,key=span_tip", "span_tid"), ("--hist=span_tip", "span_tid")):
        said = k.kymo("stat", trace, option, status=1).stderr
        check(f": did you mean '{name}'?" in said, f"stat {option} says {said!r}")
    said = k.kymo("view", trace, "-e", "s:outer_begim").stderr
    check("no event of the trace is named 's:outer_begim': did you mean 's:outer_begin'?" in said, said)
    said = k.kymo("view", trace, "-e", "s:outer").stderr
    check("no event is named 's:outer': -e 's:outer_*' selects 's:outer_end' and its like" in said, said)
    check(not k.kymo("view", trace, "-e", "s:outer_begin").stderr, "an event that is there")
    for command in ("view", "stat"):
        said = k.kymo(command, trace, "-e", "s:outer_begin,s:outer_ende,!s:outr_end,t:*,s:*").stderr.splitlines()
        equal(said, [f"kymo: no event of the trace {text}" for text in ("is named 's:outer_ende': did you mean 's:outer_end'?",
            "is named 's:outr_end': did you mean 's:outer_end'?", "matches 't:*'")], f"warnings of {command}")


def test_other_tools_words(k):
    """
    Options that other tools have, arguments in the wrong order and names that are nearly right: one
    line says what to write instead.
    """
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(10, "s:outer_begin", 1, 0)])
    trace = str(t.write(k.top / "checkout"))
    for args, status, says in (
        (("view", trace, "--since=+1s"), 2, "did you mean '--begin'?"),
        (("view", trace, "--limit", "5"), 2, "did you mean '--tail'?"),
        (("view", trace, "-n", "5"), 1, "--tail=N the last events"),
        (("view", trace, "--pid=5"), 1, "--filter='vpid == N'"),
        (("stat", trace, "--histogram=x"), 2, "did you mean '--hist'?"),
        (("stat", trace, "--spans"), 1, "'kymo stat' shows all spans"),
        (("export", trace, "--format=csv"), 2, "did you mean '--to'?"),
        (("record", "--since=1"), 2, "unknown option '--since'"),
        (("top", trace), 2, f"'kymo stat {trace}' counts"),
        (("sql", "select 1", trace), 2, "the statement comes last"),
        (("view", trace, "s:outer_begin"), 2, "write --event=s:outer_begin for the event of that name"),
        (("view", trace.replace("checkout", "chekout")), 1, f"did you mean '{trace}'?"),
    ):
        said = k.kymo(*args, status=status).stderr
        check(says in said and len(said.splitlines()) == 1, f"{args}: {said}")


def test_caret(k):
    """On a terminal, the message marks the position."""
    k.start_daemon()
    create(k)
    shown, status = k.on_terminal("enable-event", ITEM, "-f", "n == 3 && (n = 5)", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    equal(status, 2, "exit status")
    equal(shown.decode().splitlines()[1:], ["  n == 3 && (n = 5)", "               ^"], "what is shown below the message")


def test_what_does_not_fit_is_told(k):
    k.start_daemon()
    trace = create(k)
    program = Program(k)
    told = "rule 'filters:*' with filter 'm < 3' does not record event 'filters:"
    text = k.kymo("enable-event", "filters:*", "-f", "m < 3").stdout
    check(told in text and "there is no field 'm'" in text, f"the reply does not give the reason: {text}")
    program.emit()
    done = k.kymo("status")
    check("filter 'm < 3': 1 event" in done.stdout, f"status does not show the filter: {done.stdout}")
    check(any(w.startswith(told) for w in k.kymo_json("status", "s")["warnings"]), "status does not warn")
    text = k.kymo("enable-event", ITEM, "-f", "word > 5").stdout
    check("a string (field 'word') can only be compared by == and !=" in text, f"the reply does not give the reason: {text}")
    # Two other events have no such field, one before and one after it: they would explain nothing.
    text = k.kymo("enable-event", "filters:*", "-f", 'parity == "ODD"').stdout
    check("event 'filters:kinds', nor others like it: a number (field 'parity') cannot be" in text, f"the best reason: {text}")
    rules = k.kymo_json("status", "s")["session"]["channels"][0]["rules"]
    equal([(r["filter"], r["matched"]) for r in rules], [("m < 3", 1), ("word > 5", 0), ('parity == "ODD"', 0)], "rules")
    check_phase(finish(k, program, trace), 1, other=lambda n: n < 3)


def test_record(k):
    out = k.traces / "t"
    done = k.kymo("record", "-o", out, "-f", "n < 4 || m == 1", "--", "sh", "-c", f"echo 1 10 | {kymotest.APPS / 'filters'}")
    check(not out.exists() and "none of its events passed --filter" in done.stderr, f"no event has both fields: {done.stderr}")
    done = k.kymo("record", "-o", out, "-f", "n < 4", "--", "sh", "-c", f"echo 1 10 | {kymotest.APPS / 'filters'}")
    check("does not record event 'filters:other', nor others like it: there is no field 'n'" in done.stderr, done.stderr)
    check_phase(recorded(out), 1, 10, item=lambda n: n < 4, kinds=lambda n: n < 4)
    done = k.kymo("--json", "record", "-f", "n < 4", "--", "sh", "-c", f"echo 1 10 | {kymotest.APPS / 'filters'}")
    check("there is no field 'n'" in " ".join(json.loads(done.stderr)["warnings"]), f"warnings in JSON: {done.stderr}")


if __name__ == "__main__":
    kymotest.main()
