#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tracing does not harm a program that exits, whatever its other threads are doing."""

import signal

from kymotest import check, check_counts, equal, integers, main, read_trace, wait_for


def test_threads_in_events(k):
    k.start_daemon()
    trace = k.record("leave:*")
    for _ in range(3):
        k.app("exit")
    k.kymo("stop", "s")
    events, discarded = read_trace(trace)
    # A record that a thread had begun before the events were unregistered is still recorded: of
    # each thread the last event counts.
    check(discarded == 0 and sum(integers(e)["i"] == 0 for e in events) == 12, f"{len(events)} events, {discarded} discarded")


def test_pthread_exit(k):
    """
    main leaves by pthread_exit(): the process exits with its last thread, as it does untraced, and
    flushes its output.
    """
    ways = (0,), (1,), (4,), (1, "-", "fork")
    for way in ways:
        equal(k.app("last", *way, env={"KYMO_OFF": "1"}), "bye\n", f"untraced {way}")
        equal(k.app("last", *way), "bye\n", f"without a daemon {way}")
    k.start_daemon()
    out = k.record("last:*")
    for way in ways:
        equal(k.app("last", *way), "bye\n", f"recorded {way}")
    k.kymo("destroy")
    check_counts(k, out, 60)


def test_pthread_exit_and_signals(k):
    """A thread stays: SIGTERM ends the process."""
    app = k.spawn("last", 1, "wait")
    k.expect(app, "ready")
    with open(f"/proc/{app.pid}/stat") as stat:
        wait_for(lambda: stat.seek(0) == 0 and stat.read().rpartition(")")[2].split()[0] == "Z", "main to have ended")
    app.terminate()
    k.finish(app, -signal.SIGTERM)


main()
