#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Every event is in the trace, once, with its values, or it is counted as discarded: with threads,
processes, signals, migration.
"""

import kymotest
from emitcheck import SCALE, run_exact
from kymotest import check, equal, integers

def test_one_thread(k):
    run_exact(k, [["-n", 100000 // SCALE]])


def test_two_threads(k):
    run_exact(k, [["-t", 2, "-n", 50000 // SCALE]])


def test_four_threads(k):
    run_exact(k, [["-t", 4, "-n", 25000 // SCALE]])


def test_sixteen_threads(k):
    run_exact(k, [["-t", 16, "-n", 6000 // SCALE]])


def test_four_processes(k):
    _, events, _ = run_exact(k, [["-t", 2, "-n", 12000 // SCALE]] * 4)
    equal({integers(e)["process"] for e in events}, {0, 1, 2, 3}, "processes seen")


def test_signals(k):
    _, _, counts = run_exact(k, [["-t", 2, "-n", 100000 // SCALE, "-s", 20]])
    check(counts[0][1] > 10, f"the timer fired {counts[0][1]} times only: nothing was tested")


def test_migration(k):
    run_exact(k, [["-t", 4, "-n", 20000 // SCALE, "-m"]])


def test_migration_and_signals(k):
    run_exact(k, [["-t", 3, "-n", 20000 // SCALE, "-m", "-s", 50]] * 2)


def test_overflow(k):
    """The smallest ring: most events are discarded, and all of these are counted."""
    _, events, counts = run_exact(k, [["-t", 4, "-n", 50000 // SCALE]] * 2, ("--subbuf-size=4K", "--num-subbuf=2"), lossless=False)
    total = sum(map(sum, counts))
    check(0 < len(events) < total, f"{len(events)} of {total}: nothing overflowed")


def test_overflow_with_signals(k):
    run_exact(k, [["-t", 4, "-n", 30000 // SCALE, "-s", 30, "-m"]], ("--subbuf-size=4K", "--num-subbuf=2"), lossless=False)


def test_monotonic_clock(k):
    trace, _, _ = run_exact(k, [["-t", 4, "-n", 10000 // SCALE]], env={"KYMO_CLOCK": "monotonic"})
    metadata = next(trace.rglob("metadata")).read_text()
    check("freq = 1000000000;" in metadata, "metadata does not say nanoseconds")


kymotest.main()
