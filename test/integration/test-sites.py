#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
`kymo stat --locks` and `--memory`, exactly: of traces that are made up, with Kymo's names of events
and with LTTng-UST's.
"""

import sys

import kymotest
from kymotest import SOURCE, check, equal

sys.path.insert(0, str(SOURCE / "test" / "explain"))
import traces  # noqa: E402

PID = 7
LOCK, OTHER, COND, NEW = 0x1000, 0x2000, 0x3000, 0x4000
BASE = traces.ORIGIN


class Program:
    """Events of threads of one process, in the order of the calls."""

    def __init__(self, k, is_lttng=False):
        self.k, self.is_lttng, self.events = k, is_lttng, []

    def emit(self, ns, thread, name, **fields):
        provider, _, event = name.partition(":")
        if self.is_lttng:
            name = f"lttng_ust_{provider}:" + ("pthread_" if provider == "pthread" else "") + event
        self.events.append(traces.Event(ns, name, 0, (thread, PID, "p"), **fields))

    def lock(self, thread, caller, request, acquire, release=None, mutex=LOCK):
        self.emit(request, thread, "pthread:mutex_lock_req", mutex=mutex, caller=caller)
        if acquire:
            self.emit(acquire, thread, "pthread:mutex_lock_acq", mutex=mutex, status=0, caller=caller)
        if release:
            self.emit(release, thread, "pthread:mutex_unlock", mutex=mutex, status=0, caller=caller)

    def span(self, thread, name, begin, end, status=0, **fields):
        self.emit(begin, thread, f"pthread:{name}_begin", **fields)
        if end:
            self.emit(end, thread, f"pthread:{name}_end", **fields, status=status)

    def stat(self, option, lost=()):
        trace = self.k.top / f"trace{len(list(self.k.top.glob('trace*')))}"
        traces.write(trace, self.events, lost=lost)
        return self.k.kymo_json("stat", option, trace)

    def rows(self, lost=()):
        """
        Returns {(kind, lock, where it waits, where it is held): (n, total, max, unfinished)} of
        waits; and the same of holds, without where it waits.
        """
        found = self.stat("--locks", lost)

        def number(text):
            return int(text.partition(" of process 7")[0], 16) if text and text != "?" else 0

        def times(row):
            return row["count"], row["total_ns"], row["max_ns"], row["unfinished"]

        waits = {(w["kind"], number(w["lock"]), number(w["waits_at"]), number(w.get("held_at"))): times(w) for w in found["waits"]}
        return waits, {(h["kind"], number(h["lock"]), number(h["held_at"])): times(h) for h in found["holds"]}


def test_holders(k):
    """A wait belongs to each holder for its time; who finds the lock free does not wait."""
    for is_lttng in (False, True):
        p = Program(k, is_lttng)
        p.lock(1, 0x10, 90, 100, 300)
        p.lock(2, 0x20, 150, 410, 500)
        p.lock(3, 0x30, 305, 310, 400)
        waits, holds = p.rows()
        equal(waits, {("mutex", LOCK, 0x20, 0x10): (1, 150, 150, 0), ("mutex", LOCK, 0x20, 0x30): (1, 100, 100, 0)}, "waits")
        equal(holds, {("mutex", LOCK, 0x10): (1, 200, 200, 0), ("mutex", LOCK, 0x20): (1, 90, 90, 0), ("mutex", LOCK, 0x30): (1, 90, 90, 0)}, "holds")


def test_deadlock(k):
    """Waits that do not end are counted to the end of the trace, with the threads."""
    p = Program(k)
    p.lock(1, 0x11, 90, 100)
    p.lock(2, 0x21, 110, 120, mutex=OTHER)
    p.lock(1, 0x12, 200, None, mutex=OTHER)
    p.lock(2, 0x22, 300, None)
    p.lock(3, 0x33, 900, 1000, mutex=0x9000)
    waits, holds = p.rows()
    equal(waits, {("mutex", OTHER, 0x12, 0x21): (1, 800, 800, 1), ("mutex", LOCK, 0x22, 0x11): (1, 700, 700, 1)}, "waits")
    equal(holds["mutex", LOCK, 0x11], (1, 900, 900, 1), "a hold that does not end")
    rows = p.stat("--locks")["waits"]
    equal([(w["longest"]["thread"], w["longest"]["holder"]) for w in rows], [(1, 2), (2, 1)], "who waits for whom")


def test_unknown_holder(k):
    """Long acquisitions of a lock that processes share: no thread of this one holds it."""
    p = Program(k)
    p.lock(1, 0x10, 100, 1_000_099, 1_000_200)
    p.lock(2, 0x20, 2_000_000, 3_000_000, 3_000_100)
    p.lock(1, 0x10, 4_000_000, 39_000_000, 39_000_100)
    found = p.stat("--locks")
    equal((found["waits"], found["unknown"]), ([], {"count": 2, "total_ns": 36_000_000, "max_ns": 35_000_000}), "waits without a holder")
    said = k.kymo("stat", "--locks", k.top / "trace0").stdout
    check("no thread waited for one that is known to hold its lock\n2 acquisitions took 1 ms or more, at most 35.0 ms, while" in said, said)


def test_recursive_and_failed(k):
    """A recursive mutex is held once; a lock that fails is not held."""
    p = Program(k)
    p.lock(1, 0x10, 90, 100)
    p.lock(1, 0x11, 110, 120, 130)
    p.emit(140, 2, "pthread:mutex_trylock", mutex=LOCK, status=16, caller=0x20)
    p.emit(200, 1, "pthread:mutex_unlock", mutex=LOCK, status=0, caller=0x10)
    p.emit(210, 2, "pthread:mutex_trylock", mutex=LOCK, status=0, caller=0x20)
    p.emit(250, 2, "pthread:mutex_unlock", mutex=LOCK, status=0, caller=0x20)
    waits, holds = p.rows()
    equal(waits, {}, "waits")
    equal(holds, {("mutex", LOCK, 0x10): (1, 100, 100, 0), ("mutex", LOCK, 0x20): (1, 40, 40, 0)}, "holds")


def test_readers_and_writer(k):
    p = Program(k)
    for thread, release in ((1, 500), (2, 600)):
        p.span(thread, "rwlock_rdlock", 90 + thread, 100 + thread, rwlock=LOCK, caller=0x10 * thread)
        p.emit(release, thread, "pthread:rwlock_unlock", rwlock=LOCK, status=0, caller=0x10 * thread)
    p.span(3, "rwlock_wrlock", 200, 610, rwlock=LOCK, caller=0x30)
    p.emit(700, 3, "pthread:rwlock_unlock", rwlock=LOCK, status=0, caller=0x30)
    waits, holds = p.rows()
    equal(waits, {("rwlock", LOCK, 0x30, 0x10): (1, 300, 300, 0), ("rwlock", LOCK, 0x30, 0x20): (1, 100, 100, 0)}, "waits")
    equal(holds["rwlock", LOCK, 0x20], (1, 498, 498, 0), "the second reader's hold")


def test_condition(k):
    """A wait for a condition interrupts the hold of its mutex."""
    p = Program(k)
    p.lock(1, 0x10, 90, 100)
    p.emit(200, 1, "pthread:cond_wait_begin", cond=COND, mutex=LOCK, caller=0x15)
    p.lock(2, 0x20, 210, 220, 300)
    p.emit(400, 1, "pthread:cond_wait_end", cond=COND, status=0, caller=0x15)
    p.emit(450, 1, "pthread:mutex_unlock", mutex=LOCK, status=0, caller=0x10)
    waits, holds = p.rows()
    equal(waits, {("condition", COND, 0x15, 0): (1, 200, 200, 0)}, "waits")
    equal(holds, {("mutex", LOCK, 0x10): (2, 150, 100, 0), ("mutex", LOCK, 0x20): (1, 80, 80, 0)}, "holds")


def test_semaphores(k):
    """Those that only their owners post are locks; others are held by nobody."""
    p = Program(k)
    p.span(1, "sem_wait", 90, 100, sem=LOCK, caller=0x10)
    p.span(2, "sem_wait", 150, 310, sem=LOCK, caller=0x20)
    p.emit(300, 1, "pthread:sem_post", sem=LOCK, status=0, caller=0x11)
    p.emit(400, 2, "pthread:sem_post", sem=LOCK, status=0, caller=0x21)
    p.span(3, "sem_wait", 100, 500, sem=OTHER, caller=0x30)
    p.emit(490, 4, "pthread:sem_post", sem=OTHER, status=0, caller=0x40)
    waits, holds = p.rows()
    equal(waits, {("semaphore", LOCK, 0x20, 0x10): (1, 150, 150, 0), ("semaphore", OTHER, 0x30, 0): (1, 400, 400, 0)}, "waits")
    equal(holds, {("semaphore", LOCK, 0x10): (1, 200, 200, 0), ("semaphore", LOCK, 0x20): (1, 90, 90, 0)}, "holds")


def test_missing_events(k):
    """Holds that are open where events are missing are forgotten, and a warning says so."""
    p = Program(k)
    p.lock(1, 0x10, 90, 100)
    for i in range(300):
        p.lock(5, 0x50, 1000 + 10 * i, 1001 + 10 * i, 1005 + 10 * i, mutex=OTHER)
    p.lock(2, 0x20, 9000, 9100, 9200)
    p.lock(7, 0x70, 9300, 9310, 9400, mutex=NEW)
    p.lock(8, 0x80, 9350, 9401, 9410, mutex=NEW)
    waits, holds = p.rows(lost=[(3000, 0, 5)])
    equal(waits, {("mutex", NEW, 0x80, 0x70): (1, 50, 50, 0)}, "waits")
    check(("mutex", LOCK, 0x10) not in holds and holds["mutex", LOCK, 0x20] == (1, 100, 100, 0), f"holds: {holds}")
    said = k.kymo("stat", "--locks", k.top / "trace0").stderr
    check("events are missing in 1 place" in said, said)


def test_memory(k):
    for is_lttng in (False, True):
        p = Program(k, is_lttng)
        p.emit(1, 1, "libc:free", ptr=0xf0)
        p.emit(2, 1, "libc:free", ptr=0)
        p.emit(3, 1, "libc:malloc", size=100, ptr=0x100, caller=0x10)
        p.emit(4, 1, "libc:calloc", nmemb=5, size=10, ptr=0x200, caller=0x20)
        p.emit(5, 2, "libc:realloc", in_ptr=0x100, size=300, ptr=0x300, caller=0x30)
        p.emit(6, 2, "libc:realloc", in_ptr=0x200, size=1000, ptr=0, caller=0x30)
        p.emit(7, 1, "libc:posix_memalign", out_ptr=0x400, alignment=64, size=70, result=0, caller=0x40)
        p.emit(8, 1, "libc:free", ptr=0x300)
        p.emit(9, 1, "libc:realloc", in_ptr=0x400, size=0, ptr=0, caller=0x30)
        p.emit(10, 1, "libc:malloc", size=60, ptr=0x300, caller=0x10)
        m = p.stat("--memory")["memory"]
        equal({key: value for key, value in m.items() if key != "sites"},
            {"calls": 5, "allocated": 580, "in_use": 110, "blocks": 2, "peak": 420, "peak_ns": BASE + 7, "released": 3, "released_of_before": 1, "failed": 1},
            "all of it")
        sites = {int(s["site"].partition(" of")[0], 16): (s["calls"], s["allocated"], s["peak"], s["in_use"], s["blocks"]) for s in m["sites"]}
        equal(sites, {0x10: (2, 160, 100, 60, 1), 0x20: (1, 50, 50, 50, 1), 0x30: (1, 300, 300, 0, 0), 0x40: (1, 70, 70, 0, 0)}, "sites")


def test_usage(k):
    p = Program(k)
    p.emit(1, 1, "libc:malloc", size=100, ptr=0x100, caller=0x10)
    p.stat("--memory")
    for words, status, text in ((("--memory", "--by=size"), 2, "go with neither"), (("--locks", "--top=size"), 2, "go with neither"),
        (("--locks",), 1, "--with=pthread")):
        said = k.kymo("stat", *words, k.top / "trace0", status=status).stderr
        check(text in said, f"{words}: {said}")


kymotest.main()
