#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kymo diff: what it shows, when it fails, and how often it is wrong by chance."""

import json
import random

import answers
import kymotest
from kymotest import check, equal

MEASURES = ("median", "p90", "p99", "max")


def run_file(path, events=(), discarded=0, **spans):
    """Writes what kymo stat --json prints of a run: spans by name, (count, p99 in ns)."""
    listed = [{"name": f"s:{name}", "async": False, "count": n, "total_ns": n * p99, "self_ns": 0, "min_ns": 1,
        **{f"{m}_ns": p99 for m in MEASURES}} for name, (n, p99) in spans.items()]
    path.write_text(json.dumps({"ok": True, "discarded": discarded, "damaged": 0, "truncated": 0, "packets_discarded": 0,
        "by_name": dict(events), "spans": listed}))
    return path


def side(k, name, values, **others):
    """Writes a run for each value: the 99 % of span s:work."""
    return [run_file(k.top / f"{name}{i}.json", work=(100, v), **others) for i, v in enumerate(values)]


def diff(k, base, new, *options, status=0):
    return k.kymo("diff", *base, "--", *new, *options, status=status)


def test_traces(k):
    """Traces and the output of kymo stat --json for them are the same."""
    for number in range(6):
        answers.random_spans(random.Random(number), k.top / f"t{number}")
        (k.top / f"t{number}.json").write_text(k.kymo("--json", "stat", k.top / f"t{number}").stdout)
    traces = [k.top / f"t{n}" for n in range(6)]
    files = [k.top / f"t{n}.json" for n in range(6)]
    of_traces, of_files = (k.kymo_json("diff", *p[:3], "--", *p[3:]) for p in (traces, files))
    names = {n["name"]: n for n in of_traces["names"]}
    equal({n["name"]: n for n in of_files["names"]}, names, "sums")
    durations = [sorted(s.dur for s in answers.spans_of(answers.random_spans(random.Random(n), k.top / f"again{n}")) if s.name == "s:inner")
        for n in range(6)]
    counts = [sorted(map(len, part)) for part in (durations[:3], durations[3:])]
    equal(names["s:inner"]["count"], {"base": counts[0][1], "new": counts[1][1]}, "counts: the median of three runs")
    highest = [sorted(d[-1] for d in part)[1] for part in (durations[:3], durations[3:])]
    equal(names["s:inner"]["max_ns"], {"base": highest[0], "new": highest[1]}, "greatest durations")
    text = k.kymo("diff", traces[0], traces[1]).stdout
    check("Fewer than 5 runs" in text and "s:inner" in text and "1+1" in text, text)


def test_conditions(k):
    base, new = side(k, "base", [100_000 + i for i in range(8)]), side(k, "new", [123_000 + i for i in range(8)])
    for condition, status in (("p99 > +10%", 1), ("p99 > +30%", 0), ("p99 > +20us", 1), ("p99>+24us", 0), ("p99 < -1%", 0), ("count > +0", 0),
            ("mean > +22%", 1), ("total > +1ms", 1), ("max > +23.5%", 0)):
        done = diff(k, base, new, f"--fail-if={condition}", status=status)
        check(bool(done.stderr) == bool(status), done.stderr)
    done = diff(k, new, base, "--fail-if", "p99 < -10%", "--fail-if=p99 > +10%", status=1)
    check("s:work: p99 is 18.7 % less (123.0 us, now 100.0 us; p=" in done.stderr, done.stderr)
    failed = json.loads(k.run([kymotest.CLI, "--json", "diff", *base, "--", *new, "--fail-if=p99 > +10%"], status=1).stdout)
    equal((failed["ok"], failed["code"], failed["met"], failed["runs"]), (False, "changed", 1, [8, 8]), "JSON")
    work = failed["names"][0]
    equal((work["p99_ns"]["base"], work["p99_ns"]["new"]), (100_003.5, 123_003.5), "medians of eight runs")
    check(work["p99_ns"]["p"] < 0.01, work)
    # without enough runs the limit alone counts
    check("not tested" in diff(k, base[:2], new[:4], "--fail-if=p99 > +10%", status=1).stderr, "two runs")
    # with enough runs, a great change that may be chance does not
    wide = [100_000, 300_000, 50_000, 200_000, 120_000]
    diff(k, side(k, "b", wide), side(k, "n", [110_000, 310_000, 60_000, 260_000, 130_000]), "--fail-if=p99 > +5%")


def test_chance(k):
    """Of 100 comparisons of equal runs few fail; of 100 with a 20 % longer tail, most."""
    rng = random.Random(7)
    failures = {1.0: 0, 1.2: 0}
    for factor in failures:
        for _ in range(100):
            base = side(k, "base", [int(rng.gauss(400_000, 20_000)) for _ in range(8)])
            new = side(k, "new", [int(rng.gauss(400_000 * factor, 20_000)) for _ in range(8)])
            failures[factor] += diff(k, base, new, "--fail-if=p99 > +0.1%", status=None).returncode
    check(failures[1.0] <= 5 and failures[1.2] >= 95, failures)


def test_many_names(k):
    """The correction for the number of names keeps failures by chance rare."""
    rng = random.Random(8)
    failures = 0
    for _ in range(20):
        sides = [[run_file(k.top / f"{s}{i}.json", **{f"n{n}": (10, int(rng.gauss(400_000, 20_000))) for n in range(40)}) for i in range(6)]
            for s in ("base", "new")]
        failures += diff(k, *sides, "--fail-if=p99 > +0.1%", status=None).returncode
    check(failures <= 2, f"{failures} of 20 comparisons of 40 names failed")


def test_names(k):
    """New and vanished names, counts of events, and losses are shown."""
    base = [run_file(k.top / f"b{i}.json", {"a:x": 10, "a:gone": 2}, work=(10, 5), old=(1, 5)) for i in range(5)]
    new = [run_file(k.top / f"n{i}.json", {"a:x": 20 + i, "a:new": 3}, 7, work=(10, 5), retry=(12, 5)) for i in range(5)]
    text = diff(k, base, new).stdout
    for line in ("only in NEW: s:retry (12 times a run)", "only in BASE: s:old (1 time a run)", "only in BASE: a:gone (2 times a run)",
            "only in NEW: a:new (3 times a run)", "NEW: records are missing in 5 of 5 runs (35 "):
        check(line in text, f"{line!r} is not in:\n{text}")
    check("a:x:  10 → 22  +120.0 % (p=" in text, text)
    check("a:x:  10 → 20.5  +105.0 %" in diff(k, base[:2], new[:2]).stdout, "the median of two counts")
    same = [run_file(k.top / f"same{i}.json", {"a:x": 10, "a:y": 2}) for i in range(2)]
    equal(diff(k, same[:1], same[1:]).stdout, "no difference: 2 events on both sides, as often\n", "without a difference")


def test_units(k):
    """A duration that is rounded to 1000 of a unit is shown as 1 of the next one."""
    for ns, text in ((999, "999 ns"), (999_949, "999.9 us"), (999_950, "1.0 ms"), (999_949_999, "999.9 ms"), (999_999_999, "1.0 s")):
        t = answers.Trace(answers.SPAN_EVENTS)
        t.packet(0, [t.record(1000, "s:inner_begin", 1, 0), t.record(1000 + ns, "s:inner_end", 1, 0)])
        trace = t.write(k.top / f"ns{ns}")
        line = next(row for row in k.kymo("stat", trace).stdout.splitlines() if row.endswith("  s:inner"))
        equal(line.split(), ["1", *text.split() * 7, "s:inner"], f"{ns} ns")
        check(f"{text} → {text}  =" in diff(k, [trace], [trace]).stdout, text)
    check("1.0 us → 999 ns" in diff(k, side(k, "a", [999, 1000]), side(k, "b", [999])).stdout, "999.5 ns, rounded")


def test_latency(k):
    answers.random_spans(random.Random(1), k.top / "one")
    answers.random_spans(random.Random(2), k.top / "two")
    names = k.kymo_json("diff", k.top / "one", k.top / "two", "--latency=s:req..s:done,key=id")["names"]
    found = next(n for n in names if n["kind"] == "latency")
    stat = k.kymo_json("stat", k.top / "two", "--latency=s:req..s:done,key=id")["latency"][0]
    equal((found["name"], found["p99_ns"]["new"], found["count"]["new"]), ("s:req..s:done", stat["p99_ns"], stat["count"]), "a latency")


def test_errors(k):
    base = side(k, "base", [1, 2])
    for options in ([base[0]], [*base, "--"], [*base, "--", *base, "--fail-if=p98 > +1%"], [*base, "--", *base, "--fail-if=p99 > 1%"],
            [*base, "--", *base, "--fail-if=p99 > +1 parsec"], [*base, "--", *base, "--latency=x"], [*base, *base, *base]):
        k.kymo("diff", *options, status=2)
    (k.top / "other.json").write_text('{"x": 1}')
    (k.top / "broken.json").write_text('{"spans": [')
    for name in ("other.json", "broken.json", "missing"):
        k.kymo("diff", base[0], k.top / name, status=1)
    empty = run_file(k.top / "empty.json", {"a:x": 1})
    check("nothing to compare" in diff(k, base[:1], [empty], "--fail-if=p99 > +1%", status=1).stderr, "no span on both sides")


kymotest.main()
