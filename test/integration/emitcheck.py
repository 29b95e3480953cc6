# SPDX-License-Identifier: MIT
"""
Runs apps/emit.c and checks that every event that it emitted is in the trace, once and with its
values, or is counted as discarded.
"""

import collections
import re

import kymotest
from kymotest import check_counts, check_streams, equal, fixed, integers

RECORD_BYTES = 4 + 4 + 8 + 8
CYCLES = 10  # more than a nanosecond has
ROOMY = ("--subbuf-size=4M", "--num-subbuf=8")
RECORD = re.compile(r"process = (\d+), thread = (\d+), seq = (\d+), check = (\d+)")
VICTIM = re.compile(r"victim = (\d+), thread = (\d+), seq = (\d+), check = (\d+)")
SCALE = 10 if kymotest.SANITIZED else 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & (1 << 64) - 1
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
    x = (x ^ x >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
    return x ^ x >> 31


def emitted(text):
    """Returns the numbers that emit.c printed: (records, signals)."""
    counts = dict(line.split() for line in text.splitlines() if " " in line)
    return int(counts["records"]), int(counts["signals"])


def record_of(event):
    """Returns the fields of an event emit:record: process, thread, seq and check."""
    found = RECORD.search(event.fields)
    if not found:
        raise kymotest.Failure(f"not the fields of emit:record: {event}")
    return map(int, found.groups())


def check_values(events):
    """
    Checks that each event's values belong together, and that no event is there twice; returns the
    keys of all events.
    """
    seen = set()
    for event in events:
        if event.name == "emit:record":
            process, thread, seq, value = record_of(event)
            key = (process, thread, seq)
            wanted = mix(process << 48 | thread << 32 | seq)
        else:
            equal(event.name, "emit:signal", "event's name")
            v = integers(event)
            key, value = (v["process"], "signal", v["seq"]), v["check"]
            wanted = mix(~v["seq"] & (1 << 64) - 1)
        if value != wanted:
            raise kymotest.Failure(f"values do not belong together: {event}")
        if key in seen:
            raise kymotest.Failure(f"recorded twice: {event}")
        seen.add(key)
    return seen


def check_order(events):
    """
    Checks that the events of one thread are in the order in which it emitted them. babeltrace2
    merges files by nanoseconds, which have some cycles each: within one it may exchange the last
    event of a chunk and the first one of the next chunk.
    """
    last = {}
    for event in events:
        if event.name != "emit:record":
            continue
        process, thread, seq, _ = record_of(event)
        before_seq, before = last.get((process, thread), (-1, None))
        if seq <= before_seq and not 0 < before.time - event.time < CYCLES:
            raise kymotest.Failure(f"out of order: {event} after {before}, {event.time - before.time} cycles later by their clocks")
        last[process, thread] = (seq, event)


def run_exact(k, runs, channel=ROOMY, lossless=True, wrap=(), app=None, env=None):
    """
    Runs emit.c with each of the argument lists at the same time, in one ring set, and checks the
    trace. wrap: a command that runs the program. app: another build of it.
    """
    k.start_daemon(env=env)
    trace = k.record("emit:*", channel=channel)
    apps = [k.spawn(app or "emit", "-p", n, *args, wrap=wrap, env=env) for n, args in enumerate(runs)]
    counts = [emitted(k.finish(app)) for app in apps]
    k.kymo("stop", "s")
    events = check_counts(k, trace, sum(map(sum, counts)))
    check_values(events)
    check_order(events)
    # one kind of event only: the size of each record is known
    if not any("-s" in args for args in runs):
        check_streams(trace, fixed(RECORD_BYTES))
    if lossless:
        equal(len(events), sum(map(sum, counts)), "events in the trace, none being discarded")
    return trace, events, counts


def by_thread(events):
    """
    For the program victim: returns for each victim and thread the numbers of its events, in order.
    Checks that each event's values belong together.
    """
    found = collections.defaultdict(list)
    for event in events:
        victim, thread, seq, value = map(int, VICTIM.search(event.fields).groups())
        if value != mix(victim << 48 | thread << 32 | seq):
            raise kymotest.Failure(f"values do not belong together: {event}")
        found[victim, thread].append(seq)
    return found
