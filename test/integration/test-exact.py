#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every event is in the trace, once, with its values; or in the discarded count: with threads, processes, signals, migration."""

import kymotest
from kymotest import check, check_counts, check_streams, equal, fixed, integers

RECORD_BYTES = 4 + 4 + 8 + 8
ROOMY = ("--subbuf-size=4M", "--num-subbuf=8")
SCALE = 10 if kymotest.SANITIZED else 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & (1 << 64) - 1
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
    x = (x ^ x >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
    return x ^ x >> 31


def emitted(text):
    """What emit.c printed: (records, signals)."""
    counts = dict(line.split() for line in text.splitlines() if " " in line)
    return int(counts["records"]), int(counts["signals"])


def check_values(events):
    """Each event's values belong together, and none is there twice; returns the keys that were seen."""
    seen = set()
    for event in events:
        v = integers(event)
        if event.name == "emit:record":
            key = (v["process"], v["thread"], v["seq"])
            wanted = mix(v["process"] << 48 | v["thread"] << 32 | v["seq"])
        else:
            equal(event.name, "emit:signal", "event's name")
            key = (v["process"], "signal", v["seq"])
            wanted = mix(~v["seq"] & (1 << 64) - 1)
        check(v["check"] == wanted, f"values do not belong together: {event}")
        check(key not in seen, f"recorded twice: {event}")
        seen.add(key)
    return seen


def check_order(events):
    """Events of one thread are in the order in which it emitted them."""
    last = {}
    for event in events:
        v = integers(event)
        key = (event.name, v["process"], v.get("thread"))
        if event.name == "emit:record":
            check(v["seq"] > last.get(key, -1), f"out of order: {event} after {last.get(key)}")
            last[key] = v["seq"]


def run_exact(k, runs, channel=ROOMY, lossless=True):
    """Runs emit.c with each of the argument lists at once, in one ring set, and checks the trace."""
    k.start_daemon()
    trace = k.record("emit:*", channel=channel)
    apps = [k.spawn("emit", "-p", n, *args) for n, args in enumerate(runs)]
    counts = [emitted(k.finish(app)) for app in apps]
    k.kymo("stop", "s")
    events = check_counts(k, trace, sum(map(sum, counts)))
    check_values(events)
    check_order(events)
    if not any("-s" in args for args in runs):  # one event only: the size of each record is known
        check_streams(trace, fixed(RECORD_BYTES))
    if lossless:
        equal(len(events), sum(map(sum, counts)), "events in the trace, none being discarded")
    return events, counts


def test_one_thread(k):
    run_exact(k, [["-n", 100000 // SCALE]])


def test_two_threads(k):
    run_exact(k, [["-t", 2, "-n", 50000 // SCALE]])


def test_four_threads(k):
    run_exact(k, [["-t", 4, "-n", 25000 // SCALE]])


def test_sixteen_threads(k):
    run_exact(k, [["-t", 16, "-n", 6000 // SCALE]])


def test_four_processes(k):
    events, _ = run_exact(k, [["-t", 2, "-n", 12000 // SCALE]] * 4)
    equal({integers(e)["process"] for e in events}, {0, 1, 2, 3}, "processes seen")


def test_signals(k):
    _, counts = run_exact(k, [["-t", 2, "-n", 100000 // SCALE, "-s", 20]])
    check(counts[0][1] > 10, f"the timer fired {counts[0][1]} times only: nothing was tested")


def test_migration(k):
    run_exact(k, [["-t", 4, "-n", 20000 // SCALE, "-m"]])


def test_migration_and_signals(k):
    run_exact(k, [["-t", 3, "-n", 20000 // SCALE, "-m", "-s", 50]] * 2)


def test_overflow(k):
    """The smallest ring: most is discarded, and all of that is counted."""
    events, counts = run_exact(k, [["-t", 4, "-n", 50000 // SCALE]] * 2, ("--subbuf-size=4K", "--num-subbuf=2"), lossless=False)
    total = sum(map(sum, counts))
    check(0 < len(events) < total, f"{len(events)} of {total}: nothing overflowed")


def test_overflow_with_signals(k):
    run_exact(k, [["-t", 4, "-n", 30000 // SCALE, "-s", 30, "-m"]], ("--subbuf-size=4K", "--num-subbuf=2"), lossless=False)


def test_monotonic_clock(k):
    k.env["KYMO_CLOCK"] = "monotonic"
    run_exact(k, [["-t", 4, "-n", 10000 // SCALE]])
    metadata = next(k.traces.rglob("metadata")).read_text()
    check("freq = 1000000000;" in metadata, "metadata does not say nanoseconds")


kymotest.main()
