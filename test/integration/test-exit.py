#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that ends is not harmed by being traced, whatever its other threads are doing."""

from kymotest import check, integers, main, read_trace


def test_threads_in_events(k):
    k.start_daemon()
    trace = k.record("leave:*")
    for _ in range(3):
        k.app("exit")
    k.kymo("stop", "s")
    events, discarded = read_trace(trace)
    # What a thread had begun before the events were taken away is still recorded: of each thread the last one counts.
    check(discarded == 0 and sum(integers(e)["i"] == 0 for e in events) == 12, f"{len(events)} events, {discarded} discarded")


main()
