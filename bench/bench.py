#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Measures Kymo beside LTTng-UST and beside the best that the machine can do, and prints one table.
`make bench` installs the peers, builds, and runs this.

    bench.py [--build DIR] [--quick] [--runs N] [--list] [--write] [NAME...]

Each figure is the median of several runs, followed by the lowest and the highest. The runs of the
systems alternate, so that a disturbance of the machine affects all of them. NAME selects rows
(--list); --quick is a smoke test whose figures mean little; --write puts the table into
docs/performance.md.

As root, it runs in a mount namespace of its own, where LTTng's run directory and shared memory are
private. As another user, LTTng keeps to LTTNG_HOME by itself. It does not affect a session daemon
of either system that already runs.
"""

import argparse
import collections
import contextlib
import copy
import os
import pathlib
import platform
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import systems
from systems import Emitter, Failed, Held, wait_for

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
MIB = 1 << 20
RATE = "M events/s"  # the one unit of which more is better
DISK_NEEDED = 6 << 30
ISOLATED = "KYMO_BENCH_ISOLATED"

# Rings that hold a whole pass: bytes of all events of a pass, and the sub-buffers, of which one has
# that size.
PASS_BYTES = 16 * MIB
LARGE = {"subbuf": 32 * MIB, "num": 2}
# An upper bound of one record's bytes, in either system.
RECORD_BYTES = {"int": 10, "string": 35, "unknown": 35, "eight": 38, "printf": 20, "contexts": 38, "passed": 10}
# Bytes of an event with one integer in one of Kymo's rings.
KYMO_INT_BYTES = 8
KINDS = {"int": "one 32-bit integer", "string": "two integers, a 16-byte string", "eight": "eight integers"}
UNKNOWN = {"unknown": "two integers, a 16-byte string that is no constant"}


# ---- rows and targets


class Row:
    """One line of the table: samples of each system, and the targets."""

    def __init__(self, label, unit, targets=(), digits=1):
        self.label = label
        self.unit = unit
        self.targets = targets
        self.digits = digits
        self.samples = collections.defaultdict(list)
        self.notes = []

    def add(self, key, value):
        self.samples[key].append(value)

    def median(self, key):
        return statistics.median(self.samples[key]) if self.samples.get(key) else None

    def text(self, key):
        values = self.samples.get(key)
        if not values:
            return "–"
        low, high, d = min(values), max(values), self.digits
        middle = f"{self.median(key):.{d}f}"
        return middle if f"{low:.{d}f}" == f"{high:.{d}f}" else f"{middle} ({low:.{d}f}..{high:.{d}f})"

    def ratio(self, over, under):
        a, b = self.median(over), self.median(under)
        return f"{a / b:.2f}" if a is not None and b and b > 0 and a > 0 else "–"

    def gain(self):
        """Returns how many times better than the peer: a lower cost, or a higher rate."""
        ratio = self.ratio("kymo", "lttng") if self.unit == RATE else self.ratio("lttng", "kymo")
        return ratio if ratio == "–" else f"{ratio} ×"

    def verdict(self):
        """Returns the targets whose figures were measured, and whether they are met."""
        known = [t for t in self.targets if t.applies(self)]
        if not known:
            return "–"
        return "; ".join(f"{t.text}: {'met' if t.met(self) else 'NOT met'}" for t in known)


class Target:
    """Kymo's median against a bound: factor × another system's median + plus, or a figure.
    worst: the highest figures instead of the medians."""

    def __init__(self, text, bound, of=None, at_least=False, worst=False, plus=0):
        self.text, self.bound, self.of, self.at_least, self.plus = text, bound, of, at_least, plus
        self.figure = (lambda row, key: max(row.samples[key])) if worst else Row.median

    def applies(self, row):
        return row.median("kymo") is not None and (self.of is None or row.median(self.of) is not None)

    def met(self, row):
        bound = self.bound * (self.figure(row, self.of) if self.of else 1) + self.plus
        return self.figure(row, "kymo") >= bound if self.at_least else self.figure(row, "kymo") <= bound


def limit_times(factor):
    return Target(f"≤ {factor} × limit", factor, "limit")


def peer_over(factor):
    return Target(f"≤ peer / {factor}", 1 / factor, "lttng")


def peer_times(factor):
    return Target(f"≥ {factor} × peer", factor, "lttng", at_least=True)


def at_most(bound, unit):
    return Target(f"≤ {bound} {unit}".rstrip(), bound)


# ---- what is measured


class Bench:
    def __init__(self, args, top):
        self.quick = args.quick
        self.runs = args.runs or (2 if args.quick else 7)
        self.build = args.build
        self.disk = top / "disk"
        self.tmpfs = pathlib.Path(tempfile.mkdtemp(prefix="kymo-bench-", dir="/dev/shm"))
        self.disk.mkdir()
        self.kymo = systems.Kymo(args.build, top)
        self.lttng = systems.Lttng(args.build, top)
        self.limit = systems.Limit(args.build, top)
        self.least = systems.Least(args.build, top)
        self.tracers = [self.lttng, self.kymo]
        self.all = [self.limit, *self.tracers]
        self.n_traces = 0

    def small(self, full, quick):
        return quick if self.quick else full

    def out(self, where=None):
        self.n_traces += 1
        return (where or self.disk) / f"trace-{self.n_traces}"

    @contextlib.contextmanager
    def daemons(self):
        try:
            for system in self.tracers:
                system.start()
            yield
        finally:
            for system in self.tracers:
                system.stop()

    def close(self):
        for system in self.tracers:
            system.stop()
        shutil.rmtree(self.tmpfs, ignore_errors=True)


class Recording:
    """Emitters of all systems, and one session of each tracer that records what they emit."""

    def __init__(self, bench, processes=1, **channel):
        self.stack = contextlib.ExitStack()
        self.emitters, self.sessions = {}, {}
        try:
            self.stack.enter_context(bench.daemons())
            for system in bench.all:
                if system is not bench.limit:
                    self.sessions[system.key] = self.stack.enter_context(system.session(bench.out(), **channel))
                self.emitters[system.key] = self.stack.enter_context(Emitter(system, processes))
        except BaseException:
            self.stack.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()


def lap(bench, recording, system, **parameters):
    """Runs one pass with empty rings at its begin, and nobody who drains them."""
    emitter = recording.emitters[system.key]
    if system is bench.limit:
        return emitter.run(**parameters)
    system.drain(recording.sessions[system.key])
    with system.consumers_stopped():
        return emitter.run(**parameters)


def warm_up(bench, recording, kinds=("eight",)):
    """Writes all of every ring and of the limit's memory, even if events are lost. Returns the
    number of lost events."""
    ring = LARGE["subbuf"] * LARGE["num"]
    cpus = len(os.sched_getaffinity(0))
    lost = {}
    for system in bench.tracers:
        emitter = recording.emitters[system.key]
        for kind in kinds:
            n = ring * 3 // 2 // (RECORD_BYTES[kind] - 2) // len(emitter.processes)
            emitter.run(kind=kind, n=n, threads=cpus, pin=0)
        system.drain(recording.sessions[system.key])
        lost[system.key] = system.lost(recording.sessions[system.key])
    return lost


def pure(bench, kind, label, targets=(), threads=1, processes=1, work=0):
    """Recording alone: the consumers are stopped; the rings hold the whole pass, and were used
    before. With work before each event, the figure is what the event adds to the work."""
    row = Row(label, "ns", targets)
    workers = threads * processes
    cpus = len(os.sched_getaffinity(0))
    n = int(PASS_BYTES * bench.small(1, 0.25) / RECORD_BYTES[kind] / workers)
    memory = 1 << ((LARGE["subbuf"] * LARGE["num"] * min(cpus, workers) // workers).bit_length() - 1)
    parameters = {"kind": kind, "n": n, "threads": threads, "work": work, "pin": 0 if workers <= cpus else -1, "memory": memory}
    with Recording(bench, processes, **LARGE) as recording:
        lost = warm_up(bench, recording)
        recording.emitters["limit"].run(**parameters)
        for _ in range(bench.runs):
            empty = recording.emitters["limit"].run(**{**parameters, "kind": "empty"})["ns"] if work else 0
            for system in bench.all:
                row.add(system.key, lap(bench, recording, system, **parameters)["ns"] - empty)
        for system in bench.tracers:
            note_loss(row, system, recording.sessions[system.key], lost[system.key])
    return [row]


def note_loss(row, system, session, before=0, emitted=None):
    system.cli("stop", session)
    lost = system.lost(session) - before
    if lost:
        row.notes.append(f"{system.title} lost {f'{100 * lost / emitted:.1f} % of the events' if emitted else f'{lost} events'}")


def row_enabled(bench):
    targets = (limit_times(1.25), peer_over(5.5))
    return [row for kind, what in {**KINDS, **UNKNOWN}.items() for row in pure(bench, kind, f"recording: {what}", targets)]


def row_threads(bench):
    return [row for n in (2, 4, 16) for row in pure(bench, "int", f"recording: integer, {n} threads, CPU time", threads=n)]


def row_processes(bench):
    return [row for n in (2, 8) for row in pure(bench, "int", f"recording: integer, {n} processes, CPU time", processes=n)]


def row_disk(bench):
    """At full speed with default settings, while consumers drain to disk."""
    rows = []
    with Recording(bench) as recording:
        for kind, what in KINDS.items():
            row = Row(f"recording to disk, full speed: {what}", "ns", (peer_over(5.5),))
            n = int(bench.small(64, 16) * MIB / RECORD_BYTES[kind])
            emitted, lost = 0, {s.key: s.lost(recording.sessions[s.key]) for s in bench.tracers}
            for _ in range(bench.runs):
                emitted += n
                for system in bench.all:
                    if system is not bench.limit:
                        system.drain(recording.sessions[system.key])
                    row.add(system.key, recording.emitters[system.key].run(kind=kind, n=n, pin=0)["ns"])
            for system in bench.tracers:
                note_loss(row, system, recording.sessions[system.key], lost[system.key], emitted)
                system.cli("start", recording.sessions[system.key])
            rows.append(row)
    return rows


def row_overwrite(bench):
    """A flight recorder of default size, overwritten many times in each pass."""
    row = Row("recording, overwrite mode, no reader: one 32-bit integer", "ns", (limit_times(1.25), peer_over(5.5)))
    n = int(bench.small(64, 16) * MIB / RECORD_BYTES["int"])
    with Recording(bench, overwrite=True) as recording:
        for _ in range(bench.runs):
            for system in bench.all:
                row.add(system.key, recording.emitters[system.key].run(kind="int", n=n, pin=0)["ns"])
    return [row]


def row_between_work(bench):
    with Emitter(bench.limit) as emitter:
        each = min(emitter.run(kind="empty", n=1000000, work=20, pin=0)["ns"] for _ in range(5)) / 20
    return pure(bench, "int", "one integer after 20 ns of work: adds", (at_most(2, "ns"), limit_times(1.25)), work=round(20 / each))


def row_disabled(bench):
    row = Row("disabled event: adds to an empty loop", "ns", (at_most(0.3, "ns"),), digits=2)
    n = bench.small(50000000, 5000000)
    with contextlib.ExitStack() as stack:
        emitters = {s.key: stack.enter_context(Emitter(s)) for s in bench.tracers}
        for _ in range(bench.runs):
            for key, emitter in emitters.items():
                empty = emitter.run(kind="empty", n=n, pin=0)["ns"]
                row.add(key, emitter.run(kind="disabled", n=n, pin=0)["ns"] - empty)
    return [row]


def row_unchanged(bench):
    """The same binary, compiled for LTTng-UST, under either tracer."""
    with contextlib.ExitStack() as stack:
        other = copy.copy(bench)
        other.kymo = systems.AsItIs(bench.build, bench.kymo.top.parent)
        stack.callback(other.kymo.stop)
        other.tracers = other.all = [bench.lttng, other.kymo]
        rows = [*row_disabled(other), *(row for kind in KINDS for row in events_unchanged(other, kind))]
    rows[0].label, rows[0].targets = "LTTng's binary: disabled event adds", (at_most(1.5, "ns"),)
    return rows


def events_unchanged(bench, kind):
    row = Row(f"LTTng's binary: {KINDS[kind]}", "ns", (peer_over(2),))
    parameters = {"kind": kind, "n": int(PASS_BYTES * bench.small(1, 0.25) / RECORD_BYTES[kind]), "pin": 0}
    with Recording(bench, **LARGE) as recording:
        lost = warm_up(bench, recording)
        for _ in range(bench.runs):
            for system in bench.tracers:
                row.add(system.key, lap(bench, recording, system, **parameters)["ns"])
        for system in bench.tracers:
            note_loss(row, system, recording.sessions[system.key], lost[system.key])
    return [row]


def row_printf(bench):
    return pure(bench, "printf", 'tracef("%d")')


def row_special(bench):
    """The cost that contexts and filters add to the event of one integer."""
    rows = {
        "contexts": Row("contexts vtid, vpid and procname: add", "ns", (at_most(3, "ns"),)),
        "passed": Row("a filter (one comparison) that the event passes: adds", "ns"),
        "rejected": Row("an event that a filter rejects", "ns", (at_most(4, "ns"),)),
    }
    n = int(PASS_BYTES * bench.small(1, 0.25) / RECORD_BYTES["contexts"])
    passes = {kind: {"kind": kind, "n": n, "pin": 0} for kind in ("empty", "int", *rows)}
    with Recording(bench, special=True, **LARGE) as recording:
        lost = warm_up(bench, recording, ("eight", "contexts", "passed"))
        for _ in range(bench.runs):
            for system in bench.tracers:
                ns = {kind: lap(bench, recording, system, **parameters)["ns"] for kind, parameters in passes.items()}
                for kind, row in rows.items():
                    row.add(system.key, ns[kind] - ns["empty" if kind == "rejected" else "int"])
        for system in bench.tracers:
            note_loss(rows["contexts"], system, recording.sessions[system.key], lost[system.key])
    return list(rows.values())


def row_cold(bench):
    """Each run has a new session; its first pass over the rings, against the third."""
    rows = []
    for kind, what in (("int", "integer"), ("eight", "eight integers")):
        n = int(1.7 * MIB / RECORD_BYTES[kind])
        first, later = (Row(f"default rings, {which} pass: {what}", "ns") for which in ("first", "later"))
        parameters = {"kind": kind, "n": n, "pin": 0}
        with bench.daemons(), contextlib.ExitStack() as stack:
            emitters = {s.key: stack.enter_context(Emitter(s)) for s in bench.all}
            for _ in range(bench.runs):
                first.add("limit", emitters["limit"].run(**parameters, fresh=1)["ns"])
                later.add("limit", emitters["limit"].run(**parameters)["ns"])
                for system in bench.tracers:
                    with system.session(bench.out()) as session:
                        for row in (first, None, later):
                            with system.consumers_stopped():
                                ns = emitters[system.key].run(**parameters)["ns"]
                            if row:
                                row.add(system.key, ns)
                            system.drain(session)
        rows += [first, later]
    return rows


# ---- draining


def trial(bench, system, emitter, where, channel, **parameters):
    """One session, one pass; returns (events/s, lost, consumer's CPU ns, bytes on disk)."""
    with system.session(bench.out(where), **channel) as session:
        out = where / session
        cpu = system.consumer_cpu_ns()
        done = emitter.run(**parameters)
        system.cli("stop", session)
        cpu = system.consumer_cpu_ns() - cpu
        size = sum(p.stat().st_size for p in out.rglob("*") if p.is_file())
        return done["events"] / (done["wall_ns"] * parameters["n"] / 1e9), system.lost(session), cpu, size


class Search:
    """Finds the highest rate without loss. Each run continues from the last run's rate and steps up
    or down until the result changes."""

    STEP = 1.2
    SLOWEST = 1e5

    def __init__(self, try_rate):
        self.try_rate = try_rate  # events/s wanted (0: all it can) -> (events/s had, lost)
        self.rate = 0

    def lossless(self, rate):
        had, lost = self.try_rate(rate)
        return None if lost else had

    def run(self):
        had = self.lossless(self.rate)
        if had is None:
            return self.down()
        return had if not self.rate else self.up(had)

    def down(self):
        if not self.rate:
            self.rate = self.try_rate(0)[0]
        while self.rate > self.SLOWEST:
            self.rate /= self.STEP
            had = self.lossless(self.rate)
            if had is not None:
                return had
        raise Failed("events are lost at any rate")

    def up(self, best):
        while True:
            had = self.lossless(self.rate * self.STEP)
            if had is None or had <= best:
                return best
            self.rate *= self.STEP
            best = had


def lossless_row(bench, label, where, threads, channel, targets):
    row = Row(f"highest rate without loss, {label}", RATE, targets)
    seconds = bench.small(0.4, 0.1)
    with bench.daemons(), contextlib.ExitStack() as stack:
        searches = {}
        for system in bench.tracers:
            emitter = stack.enter_context(Emitter(system))

            def try_rate(rate, system=system, emitter=emitter):
                n = int((rate or (12e6 if system is bench.lttng else 60e6) * threads) * seconds / threads)
                had, lost, _, _ = trial(bench, system, emitter, where, channel, kind="int", n=n, threads=threads, pin=0,
                    rate=int(rate / threads))
                return had, lost

            searches[system.key] = Search(try_rate)
        for _ in range(bench.runs):
            for key, search in searches.items():
                row.add(key, search.run() / 1e6)
    return [row]


def row_lossless(bench):
    big = {"subbuf": 4 * MIB, "num": 8}
    plan = [("disk, defaults", bench.disk, 1, {}), ("disk, defaults, 2 threads", bench.disk, 2, {}),
        ("disk, 32 MiB for each CPU", bench.disk, 1, big), ("tmpfs, defaults", bench.tmpfs, 1, {}),
        ("tmpfs, 32 MiB for each CPU", bench.tmpfs, 1, big)]
    return [row for label, where, threads, channel in plan
        for row in lossless_row(bench, label, where, threads, channel, (peer_times(3),))]


@contextlib.contextmanager
def competitor():
    """Others that want the processors, at equal priority."""
    try:
        process = subprocess.Popen(["stress-ng", "--quiet", "--cpu", "4"])
    except OSError:
        raise Failed("stress-ng is not installed") from None
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def row_contended(bench):
    """The same rate and the same 2 MiB for each CPU, beside four processes that compute."""
    row = Row("lost at 8 M events/s, 2 MiB for each CPU, beside stress-ng --cpu 4", "%",
        (Target("never more than the peer", 1, "lttng", worst=True),), digits=2)
    rate, channel = 8000000, {"subbuf": MIB // 4, "num": 8}
    n = rate // bench.small(1, 4)
    with bench.daemons(), contextlib.ExitStack() as stack:
        emitters = {s.key: stack.enter_context(Emitter(s)) for s in bench.tracers}
        stack.enter_context(competitor())
        for _ in range(bench.runs):
            for system in bench.tracers:
                _, lost, _, _ = trial(bench, system, emitters[system.key], bench.disk, channel, kind="int", n=n, rate=rate, pin=0)
                row.add(system.key, 100 * lost / n)
    return [row]


BURST_S, LATE_S = 0.05, 0.02


def burst(bench, system, emitter):
    """A burst on each CPU; the consumers get no processor in its first 20 ms. Returns the part that
    was lost."""
    cpus = len(os.sched_getaffinity(0))
    with system.session(bench.out()) as session:
        ns = emitter.run(kind="int", n=100000, threads=cpus, pin=0)["ns"]
        system.drain(session)
        n = int(BURST_S * 1e9 / ns)
        before = system.lost(session)
        with system.consumers_stopped() as let_go:
            threading.Timer(LATE_S, let_go).start()
            emitter.run(kind="int", n=n, threads=cpus, pin=0)
        system.cli("stop", session)
        return (system.lost(session) - before) / (n * cpus)


def row_burst(bench):
    row = Row("lost of 50 ms at full speed on each CPU, consumer stopped for 20 ms", "%", (Target("none", 0, worst=True),), digits=2)
    with bench.daemons(), contextlib.ExitStack() as stack:
        emitters = {s.key: stack.enter_context(Emitter(s)) for s in bench.tracers}
        for _ in range(bench.runs):
            for system in bench.tracers:
                row.add(system.key, 100 * burst(bench, system, emitters[system.key]))
    return [row]


def best_drain(bench, where, rate):
    """Returns the CPU seconds for a GB of the best way to write the same bytes in a second, by
    bench/drain.c."""
    best = None
    size = rate // bench.small(1, 4) // MIB * MIB
    for method in ("write", "behind", "uncached", "direct"):
        path = where / "drained"
        done = subprocess.run([bench.build / "bench" / "drain", method, path, str(size), str(rate)], capture_output=True, text=True)
        path.unlink(missing_ok=True)
        if done.returncode == 0:
            figure = float(done.stdout) / size * 1e9
            best = figure if best is None else min(best, figure)
    return best


def row_consumer(bench):
    """At a rate without loss in all systems: the cost of draining, and the bytes on disk."""
    rate = bench.small(8000000, 4000000)
    n = rate // bench.small(1, 4)
    rows = []
    for label, where in (("disk", bench.disk), ("tmpfs", bench.tmpfs)):
        event = Row(f"consumer's CPU for each event, {label}", "ns", (peer_over(4),), digits=2)
        volume = Row(f"consumer's CPU for each GB, {label}", "s", (limit_times(1.3),), digits=3)
        size = Row("one integer: bytes on disk for each event", "bytes")
        with bench.daemons(), contextlib.ExitStack() as stack:
            emitters = {s.key: stack.enter_context(Emitter(s)) for s in bench.tracers}
            for _ in range(bench.runs):
                volume.add("limit", best_drain(bench, where, rate * KYMO_INT_BYTES))
                for system in bench.tracers:
                    _, lost, cpu, written = trial(bench, system, emitters[system.key], where, {}, kind="int", n=n, rate=rate, pin=0)
                    event.add(system.key, cpu / (n - lost))
                    volume.add(system.key, cpu / written)
                    size.add(system.key, written / (n - lost))
                    if lost:
                        event.notes.append(f"{system.title} lost {lost} of {n} events at {rate // 1000000} M/s")
        rows += [event, volume] if where == bench.tmpfs else [event, volume, size]
    return rows


def row_remote(bench):
    """The trace goes to another process, as to another host: the cost of all daemons, and the time
    until all of it is there. LTTng writes nothing here; Kymo's trace is here, too."""
    rate = bench.small(2000000, 1000000)
    n = rate * bench.small(2, 1)
    event = Row("CPU of all daemons for each event, trace sent to another process, tmpfs", "ns", (Target("≤ 1.25 × peer", 1.25, "lttng"),))
    end = Row("from `stop` until all of it is there", "ms", (at_most(100, "ms"),), digits=0)
    with bench.daemons(), contextlib.ExitStack() as stack:
        emitters = {s.key: stack.enter_context(Emitter(s)) for s in bench.tracers}
        for _ in range(bench.runs):
            for system in bench.tracers:
                with system.remote_session(bench.out(bench.tmpfs)) as (session, process, arrive):

                    def cpu_ns():
                        return sum(systems.tasks_cpu_ns(pid) for pid in (*system.daemons(), *systems.descendants(process.pid)))

                    before = cpu_ns()
                    emitters[system.key].run(kind="int", n=n, rate=rate, pin=0)
                    begin = time.monotonic()
                    system.cli("stop", session)
                    arrive()
                    end.add(system.key, (time.monotonic() - begin) * 1000)
                    lost = system.lost(session)
                    event.add(system.key, (cpu_ns() - before) / (n - lost))
                    if lost:
                        event.notes.append(f"{system.title} lost {lost} of {n} events")
    return [event, end]


def row_live(bench):
    """babeltrace2 prints events while they are recorded: how long after each event?"""
    timer_us = 100000
    row = Row(f"from an event until babeltrace2 prints it, switch timer {timer_us // 1000} ms", "ms", (Target("≤ peer + 20 ms", 1, "lttng", plus=20),), digits=0)
    with bench.daemons():
        for _ in range(bench.runs):
            for system in bench.tracers:
                with system.live_session(bench.out(bench.tmpfs), timer_us) as url:
                    row.add(system.key, statistics.median(live_delays_ms(system, url, bench.small(3000, 1000))))
    return [row]


def live_delays_ms(system, url, n):
    """Records an event each millisecond. Returns the delays of the last half of those printed."""
    viewer = ["stdbuf", "-oL", "babeltrace2", "--clock-seconds", "--input-format=lttng-live", url]
    delays = []

    def read(lines):
        for line in lines:
            delays.append((time.time() - float(line[1:].partition("]")[0])) * 1000)

    with contextlib.ExitStack() as stack:
        process = stack.enter_context(system.helper(viewer, stdout=subprocess.PIPE, text=True))
        time.sleep(random.random() * 0.1)  # both ask and flush each 100 ms: the phase is left to chance
        emitter = stack.enter_context(Emitter(system))
        reader = threading.Thread(target=read, args=(process.stdout,))
        reader.start()
        emitter.run(kind="int", n=n, rate=1000, pin=0)
        process.terminate()
        reader.join()
    if len(delays) < n / 2:
        raise Failed(f"{system.title}: babeltrace2 printed only {len(delays)} of {n} live events")
    return delays[len(delays) // 2 :]


# ---- start-up and control


def spawn_ms(bench, system, n, how):
    done = subprocess.run([bench.build / "bench" / "spawn", str(n), how, system.program("tiny")], env=system.env,
        capture_output=True, text=True, timeout=systems.TIMEOUT)
    if done.returncode:
        raise Failed(f"{system.title}: {done.stderr.strip()}")
    return int(done.stdout) / 1e6


def added_to_start(bench, row, runs, n=None, least=None):
    """Adds to row what each tracer, and the least of one, add to a start of the tiny program."""
    n = n or bench.small(50, 10)
    for _ in range(runs):
        plain = spawn_ms(bench, bench.limit, n, "one-by-one")
        if least:
            row.add(bench.limit.key, spawn_ms(bench, least, n, "one-by-one") - plain)
        for system in bench.tracers:
            row.add(system.key, spawn_ms(bench, system, n, "one-by-one") - plain)


@contextlib.contextmanager
def active_sessions(bench):
    with contextlib.ExitStack() as stack:
        for system in bench.tracers:
            stack.enter_context(system.session(bench.out()))
        yield


def row_startup(bench):
    rows = [Row(f"start of a program, {what}: adds", "ms", (at_most(bound, "ms"),), digits=2)
        for what, bound in (("no daemon", 0.1), ("idle daemon", 0.15), ("active session", 0.3))]
    added_to_start(bench, rows[0], bench.runs, least=bench.least)
    with bench.daemons():
        added_to_start(bench, rows[1], bench.runs, least=bench.least)
        with active_sessions(bench), bench.least.server() as served:
            added_to_start(bench, rows[2], bench.runs, least=served)
    return rows


def row_hung(bench):
    rows = [Row(f"start of a program, hung daemon, {what}: adds", "ms", (at_most(bound, "ms"),), digits=1)
        for what, bound in (("no session", 0.5), ("active session", 50))]
    with bench.daemons():
        for row, sessions in ((rows[0], contextlib.nullcontext()), (rows[1], active_sessions(bench))):
            with sessions:
                for system in bench.tracers:
                    os.kill(system.daemon.pid, signal.SIGSTOP)
                try:
                    added_to_start(bench, row, bench.runs, n=1)
                finally:
                    for system in bench.tracers:
                        os.kill(system.daemon.pid, signal.SIGCONT)
    return rows


def row_storm(bench):
    n = bench.small(500, 50)
    row = Row(f"{n} programs at once, active session", "ms", (at_most(300, "ms"),), digits=0)
    with bench.daemons(), active_sessions(bench):
        for _ in range(bench.runs):
            for system in bench.all:
                row.add(system.key, spawn_ms(bench, system, n, "at-once"))
    return [row]


def held(system, n):
    """Runs n programs that the daemon knows."""
    programs = Held(system, n)
    try:
        wait_for(lambda: system.applications() >= n, f"{system.title}'s daemon to know {n} programs")
    except BaseException:
        programs.__exit__()
        raise
    return programs


COMMANDS = ("enable-event", "start", "stop", "destroy")


def control_times(bench, system, rows):
    """Times one session's life, command by command."""
    session = bench.out()
    name = session.name
    words = {"enable-event": ("-u", systems.EVENTS, "-c", systems.CHANNEL, "-s", name)}
    system.cli("create", name, f"--output={session}")
    system.cli("enable-channel", "-u", systems.CHANNEL, "-s", name)
    for command in COMMANDS:
        begin = time.monotonic()
        system.cli(command, *words.get(command, (name,)))
        rows[command].add(system.key, (time.monotonic() - begin) * 1e3)
    shutil.rmtree(session, ignore_errors=True)


def row_control(bench):
    n = bench.small(200, 20)
    rows = {c: Row(f"{c} with {n} running programs", "ms", (at_most(50, "ms"),)) for c in COMMANDS}
    with bench.daemons():
        for system in bench.tracers:
            with held(system, n):
                for _ in range(bench.runs):
                    control_times(bench, system, rows)
    return list(rows.values())


HOSTILE_USERS, HOSTILE_EACH, HOSTILE_UID = 10, 100, 64900


def percentile_99(values):
    return sorted(values)[(len(values) * 99 - 1) // 100]


def register_ms(top):
    """Returns the time from the connection of an application to the daemon's last reply to it."""
    code = """import os, pathlib, sys, time, types
from program import ORDER, Program
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
begin = time.monotonic()
Program(types.SimpleNamespace(rundir=pathlib.Path(sys.argv[1])), ORDER).serve()
print((time.monotonic() - begin) * 1e3)"""
    done = subprocess.run([sys.executable, "-c", code, top / "run", str(HOSTILE_UID - 1)], env=hostile_env(), capture_output=True,
        text=True, timeout=systems.TIMEOUT)
    if done.returncode:
        raise Failed(f"an application was not served: {done.stderr[-300:]}")
    return float(done.stdout)


def hostile_env():
    return {**os.environ, "PYTHONPATH": str(ROOT / "test" / "integration"), "PYTHONDONTWRITEBYTECODE": "1",
        "KYMO_TEST_BUILD": str(ROOT / "build-bench")}


@contextlib.contextmanager
def hostile_crowd(top):
    """The applications of test/integration/attack.py, each kind of attack at once."""
    command = [sys.executable, ROOT / "test" / "integration" / "attack.py", top / "run" / "app.sock"]
    crowd = [subprocess.Popen(list(map(str, [*command, HOSTILE_UID + i, "all", HOSTILE_EACH])), env=hostile_env(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i in range(HOSTILE_USERS)]
    try:
        for p in crowd:
            if p.stdout.readline() != b"ready\n":
                raise Failed("a hostile application ended")
        yield
    finally:
        for p in crowd:
            p.stdin.close()
            p.wait()


def row_hostile(bench):
    """Root's commands, and another user's applications, beside a thousand hostile connections. The
    first row is the time that any command needs on such a machine."""
    if os.getuid():
        raise Failed("applications of other users need root")
    beside = f"beside {HOSTILE_USERS * HOSTILE_EACH} hostile connections, 99th percentile"
    rows = {c: Row(f"{c} {beside}", "ms", (at_most(100, "ms"),)) for c in ("list", "stop", "start")}
    limit = Row(f"a command that only prints its version {beside}", "ms")
    rows["register"] = Row(f"registration of another user's application {beside}", "ms", (at_most(50, "ms"),))
    with tempfile.TemporaryDirectory(prefix="kymo-bench-", ignore_cleanup_errors=True) as top:
        os.chmod(top, 0o755)
        system = systems.Kymo(bench.build, pathlib.Path(top))
        system.start()
        try:
            system.cli("create", "s", f"--output={system.top}/trace")
            system.cli("enable-event", "-s", "s", "*:*")
            system.cli("start", "s")
            with hostile_crowd(system.top):
                for _ in range(bench.runs):
                    for name, row in rows.items():
                        row.add("kymo", percentile_99(hostile_times(bench, system, name)))
                    limit.add("kymo", percentile_99(hostile_times(bench, system, "--version")))
        finally:
            system.stop()
    return [limit, *rows.values()]


def hostile_times(bench, system, name):
    """Returns the times of one command; those of stop and start alternate."""
    took, other = [], {"stop": "start", "start": "stop"}.get(name)
    if name == "start":
        system.cli("stop", "s")
    for _ in range(bench.small(100, 5)):
        begin = time.monotonic()
        if name == "register":
            took.append(register_ms(system.top))
            continue
        system.cli(name, *(["s"] if other else []))
        took.append((time.monotonic() - begin) * 1e3)
        if other:
            system.cli(other, "s")
    if name == "start":
        system.cli("start", "s")
    return took


def row_stopped(bench):
    """SIGSTOP stops one of many programs, a fresh one for each run, because the peer stops waiting
    for it after the first run."""
    n = bench.small(200, 20)
    rows = {c: Row(f"{c} with {n} running programs, one stopped", "ms", (at_most(50, "ms"),), digits=0) for c in COMMANDS}
    with bench.daemons():
        for system in bench.tracers:
            for _ in range(bench.runs):
                with held(system, n) as programs:
                    programs.processes[0].send_signal(signal.SIGSTOP)
                    control_times(bench, system, rows)
    return list(rows.values())


CROWD_COMMANDS = {"enable-event": ("-u", "crowd:*", "-s", "crowd"), "start": ("crowd",), "list": ("-u",), "status": ("crowd",), "stop": ("crowd",),
    "destroy": ("crowd",)}


def crowd(system, n):
    """bench/crowd.c: n programs with 200 tracepoints each."""
    process = subprocess.Popen([system.program("crowd"), str(n)], env=system.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "ready\n":
        raise Failed("the crowd did not start")
    return process


def row_crowd(bench):
    n, system = bench.small(1000, 50), bench.kymo
    rows = {c: Row(f"{c} with {n} programs of 200 tracepoints", "ms", (at_most(1000, "ms"),), digits=0) for c in CROWD_COMMANDS}
    memory = Row(f"daemon's memory for each of {n} idle programs", "KiB", (at_most(16, "KiB"),), digits=1)
    with bench.daemons():
        for _ in range(bench.runs):
            before = private_kib(system.daemon.pid)
            process = crowd(system, n)
            wait_for(lambda: system.applications("crowd-kymo") >= n, f"{n} programs to be known")
            memory.add("kymo", max(0, private_kib(system.daemon.pid) - before) / n)
            system.cli("create", "crowd", f"--output={bench.out()}")
            for command, words in CROWD_COMMANDS.items():
                begin = time.monotonic()
                system.cli(command, *words)
                rows[command].add("kymo", (time.monotonic() - begin) * 1e3)
            process.stdin.close()
            process.wait()
            wait_for(lambda: not system.applications("crowd-kymo"), "the crowd to go")
    return [*rows.values(), memory]


# ---- memory, threads, descriptors


def private_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(n) for n in re.findall(r"^Private_(?:Clean|Dirty): +(\d+) kB", text, re.MULTILINE))


def ring_kib(pids):
    """Memory behind the shared-memory files that the processes have open, each counted once."""
    files = {}
    for pid in pids:
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(entry).startswith(("/memfd:", "/dev/shm/")):
                    st = entry.stat()
                    files[st.st_dev, st.st_ino] = st.st_blocks // 2
    return sum(files.values())


def row_memory(bench):
    rows = []
    app = Row("private memory that tracing adds to a program", "KiB", (at_most(64, "KiB"),), digits=0)
    shared = Row("shared memory of a session with 10 programs, one event of each recorded", "KiB",
        (Target("only what was written (≤ 100 KiB)", 100),), digits=0)
    with bench.daemons():
        with active_sessions(bench):
            for system in bench.tracers:
                with held(system, 10):
                    shared.add(system.key, ring_kib(system.daemons()))
            with Held(bench.limit, 5) as programs:
                plain = statistics.median(private_kib(p.pid) for p in programs.processes)
            for n in (0, *bench.small((100, 500), (20,))):
                row = Row(f"daemons' private memory, {n} programs, active session", "KiB", digits=0)
                for system in bench.tracers:
                    with held(system, n) as programs:
                        row.add(system.key, sum(private_kib(pid) for pid in system.daemons()))
                        app.samples[system.key] += [private_kib(p.pid) - plain for p in programs.processes]
                rows.append(row)
    return [app, *rows, shared]


def row_presence(bench):
    """The memory, threads and descriptors that a traced program has in addition."""
    threads = Row("threads added to a program", "", (at_most(1, ""),), digits=0)
    descriptors = Row("descriptors added to a program", "", (at_most(3, ""),), digits=0)

    def count(pid, what):
        return len(os.listdir(f"/proc/{pid}/{what}"))

    with bench.daemons(), active_sessions(bench), Held(bench.limit, 1) as plain:
        for system in bench.tracers:
            with held(system, 5) as programs:
                for process in programs.processes:
                    for row, what in ((threads, "task"), (descriptors, "fd")):
                        row.add(system.key, count(process.pid, what) - count(plain.processes[0].pid, what))
    return [threads, descriptors]


# ---- reading


def seconds_of(command, env):
    begin = time.monotonic()
    done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=systems.TIMEOUT)
    if done.returncode:
        raise Failed(f"'{' '.join(map(str, command))}' failed: {done.stderr[-200:]}")
    return time.monotonic() - begin


def row_reading(bench):
    """Both read the same trace, made by Kymo; the peer is babeltrace2."""
    rows = []
    out = bench.out(bench.tmpfs)
    kymo = bench.kymo.cli_command()
    commands = {"text": ([*kymo, "view", out], ["babeltrace2", out]),
        "counting": ([*kymo, "stat", out], ["babeltrace2", "--component=sink.utils.counter", out])}
    with bench.daemons(), Emitter(bench.kymo) as emitter:
        for kind, what in KINDS.items():
            n = bench.small(1000000, 300000)
            with bench.kymo.session(out) as session:
                emitter.run(kind=kind, n=n, rate=2000000)
                bench.kymo.cli("stop", session)
                n -= bench.kymo.lost(session)
                for how, (ours, theirs) in commands.items():
                    row = Row(f"reading, {how} (peer: babeltrace2): {what}", RATE, (peer_times(14 if how == "text" else 12),))
                    for _ in range(bench.runs):
                        row.add("lttng", n / seconds_of(theirs, bench.kymo.env) / 1e6)
                        row.add("kymo", n / seconds_of(ours, bench.kymo.env) / 1e6)
                    rows.append(row)
    return rows


def rows_a_second(bench, how, trace):
    """Returns how many million events a Python loop reads in a second of processor time."""
    env = {**bench.kymo.env, "PYTHONPATH": str(ROOT / "src" / "python"), "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": f"{bench.build}/src/analysis:{bench.build}/src/sql"}
    done = subprocess.run(["/usr/bin/python3", ROOT / "bench" / "rows.py", how, trace, "bench:one_int", "a"], env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=systems.TIMEOUT)
    if done.returncode:
        raise Failed(f"reading in Python by {how} failed: {done.stderr[-300:]}")
    n, seconds = done.stdout.split()
    return int(n) / float(seconds) / 1e6


SQL = 'SELECT a % 100, count(*) FROM "bench:one_int" GROUP BY 1'


def row_answers(bench):
    """Python beside babeltrace2's module, SQL beside SQLite's own table."""
    rows = [Row("reading in Python, tuples (peer: babeltrace2's module)", RATE, (peer_times(40),), 2),
        Row("reading in Python, numpy columns (peer: babeltrace2's module)", RATE, (peer_times(200),), 2),
        Row("SQL, GROUP BY over all events (peer: SQLite's imported table)", "s", (Target("≤ 1.3 × peer", 1.3, "lttng"),), 2)]
    out, base = bench.out(bench.tmpfs), bench.out(bench.tmpfs)
    kymo = bench.kymo.cli_command()
    with bench.daemons(), Emitter(bench.kymo) as emitter, bench.kymo.session(out) as session:
        emitter.run(kind="int", n=bench.small(1000000, 100000), rate=2000000)
        bench.kymo.cli("stop", session)
        seconds_of([*kymo, "export", out, "--to=sqlite", "-o", f"{base}.db"], bench.kymo.env)
        for _ in range(bench.runs):
            slow = rows_a_second(bench, "bt2", out)
            for row, how in zip(rows, ("kymo", "columns")):
                row.add("lttng", slow)
                row.add("kymo", rows_a_second(bench, how, out))
            rows[2].add("lttng", seconds_of(["sqlite3", f"{base}.db", SQL], bench.kymo.env))
            rows[2].add("kymo", seconds_of([*kymo, "sql", out, SQL], bench.kymo.env))
    return rows


def peak_mib(command, env):
    """Returns the most memory that a command has had."""
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Failed(f"'{' '.join(map(str, command))}' failed")
    return usage.ru_maxrss / 1024


@contextlib.contextmanager
def on_processors(*processors):
    """Programs that are started meanwhile run on these only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def seconds_of_both(commands, env):
    """Runs the two commands at the same time, each on a processor of its own."""
    begin = time.monotonic()
    processes = []
    for processor, command in enumerate(commands):
        with on_processors(processor):
            processes.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
    for process in processes:
        said = process.communicate(timeout=systems.TIMEOUT)[1]
        if process.returncode:
            raise Failed(f"'{' '.join(map(str, process.args))}' failed: {said[-200:]}")
    return time.monotonic() - begin


def row_ways(bench):
    """Other ways to read a trace beside its text; the peer is Kymo's text, or one core."""
    within = lambda factor: (Target(f"≤ {factor} × peer", factor, "lttng"),)
    out, page, another = (bench.out(bench.tmpfs) for _ in range(3))
    kymo = bench.kymo.cli_command()
    cores = min(2, os.cpu_count())
    commands = {"JSON": ([*kymo, "view", "--json", out], 1.5), "written as a page": ([*kymo, "report", out, "-o", page], 6)}
    same = {"text": ["view", out], "statistics": ["stat", out], "page": ["report", out, "-o", page]}
    rows = {name: Row(f"a trace, {name} on one core (peer: its text)", "s", within(factor), 2) for name, (_, factor) in commands.items()}
    last = Row("a trace, its last millisecond as text (peer: all)", "s", within(.01), 3)
    size = Row("a trace, the page", "bytes/event", (at_most(12, "bytes/event"),))
    memory = Row("a trace, memory for its text", "MiB", (at_most(64 + 4 * cores, "MiB"),), digits=0)
    faster = {name: Row(f"a trace, {name} on two cores (peer: on one)", RATE, (peer_times(1.8),), 2) for name in same}
    with bench.daemons(), Emitter(bench.kymo) as emitter, bench.kymo.session(out) as session:
        n, n_last = bench.small(4000000, 100000), 2000
        emitter.run(kind="string", n=n, rate=2000000)
        # A burst of its own: the end of a run may have all that the program was late with.
        emitter.run(kind="string", n=n_last, rate=2000000)
        bench.kymo.cli("stop", session)
        n += n_last - bench.kymo.lost(session)
        line = subprocess.run([*kymo, "view", "--time=relative", "--tail=1", out], env=bench.kymo.env, text=True, stdout=subprocess.PIPE, check=True)
        end = max(0, float(re.search(r"[0-9]+\.[0-9]+", line.stdout)[0]) - .001)
        for _ in range(bench.runs):
            with on_processors(0):
                text = seconds_of([*kymo, "view", out], bench.kymo.env)
                for name, (command, _) in commands.items():
                    rows[name].add("lttng", text)
                    rows[name].add("kymo", seconds_of(command, bench.kymo.env))
                last.add("lttng", text)
                last.add("kymo", seconds_of([*kymo, "view", f"--begin=+{end:.9f}s", out], bench.kymo.env))
            size.add("kymo", os.path.getsize(page) / n)
            memory.add("kymo", peak_mib([*kymo, "view", out], bench.kymo.env))
            for name, what in same.items() if cores > 1 else ():
                for system, processors in (("lttng", (0,)), ("kymo", (0, 1))):
                    with on_processors(*processors):
                        faster[name].add(system, n / seconds_of([*kymo, *what], bench.kymo.env) / 1e6)
                both = [[*kymo, *(to if word == page else word for word in what)] for to in (page, another)]
                faster[name].add("limit", 2 * n / seconds_of_both(both, bench.kymo.env) / 1e6)
    return [*rows.values(), last, size, memory, *faster.values()]


# ---- means without a tracer


def habit_printf(bench, programs, n):
    """A line of text with the time, written through a buffered FILE."""
    return run_habit([programs / "habit", "printf", bench.disk / "lines", n])


def habit_uftrace(bench, programs, n):
    """Entry and exit of a function that the compiler instruments: no values."""
    return run_habit(["uftrace", "record", "--force", "-d", bench.disk / "uftrace", programs / "habit-pg", "call", "-", n])


def habit_perf(bench, programs, n):
    """A user-space probe with one argument, recorded by perf."""
    perf("probe", "--quiet", "--exec", programs / "habit", "--add", "bench_habit=mark a")
    try:
        return run_habit(["perf", "record", "--quiet", "--event", "probe_habit:bench_habit", "--output", bench.disk / "perf.data",
            programs / "habit", "call", "-", n // 10])
    finally:
        perf("probe", "--quiet", "--del", "probe_habit:bench_habit")


def perf(*args):
    done = subprocess.run(["perf", *map(str, args)], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"perf {args[0]} failed: {done.stderr.strip()[-200:]}")


def run_habit(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=systems.TIMEOUT)
    try:
        return float(done.stdout.split()[0])
    except (IndexError, ValueError):
        raise Failed(f"{command[0]} failed: {done.stderr.strip()[-200:]}") from None


HABITS = {"printf with the time to a file": habit_printf, "uftrace, function entry and exit": habit_uftrace,
    "perf, user-space probe with one argument": habit_perf}


def row_habits(bench):
    """One integer by Kymo, beside the means that programmers have without a tracer."""
    rows = {habit: Row(f"one integer (peer: {label})", "ns") for label, habit in HABITS.items()}
    n = bench.small(2000000, 200000)
    with bench.daemons(), Emitter(bench.kymo) as emitter, bench.kymo.session(bench.out()) as session:
        for _ in range(bench.runs):
            bench.kymo.drain(session)
            ns = emitter.run(kind="int", n=n, pin=0)["ns"]
            for habit, row in rows.items():
                row.add("kymo", ns)
                row.add("lttng", habit(bench, bench.build / "bench", n))
    return list(rows.values())


ROWS = {f.__name__.partition("_")[2].replace("_", "-"): f for f in (row_enabled, row_threads, row_processes, row_disk, row_overwrite, row_between_work,
    row_disabled, row_unchanged, row_special, row_printf, row_habits, row_cold, row_lossless, row_contended, row_burst, row_consumer, row_remote, row_live, row_startup, row_hung, row_storm, row_control, row_stopped,
    row_hostile, row_crowd, row_memory, row_presence, row_reading, row_answers, row_ways)}


# ---- the table


HEAD = ("what", "unit", "peer", "Kymo", "limit", "better than peer", "Kymo / limit", "target")


def cells(row):
    return (row.label, row.unit, row.text("lttng"), row.text("kymo"), row.text("limit"), row.gain(),
        row.ratio("kymo", "limit"), row.verdict())


def table(rows):
    lines = [HEAD, *map(cells, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    notes = [f"* {row.label}: {note}" for row in rows for note in dict.fromkeys(row.notes)]
    return "\n".join(text) + ("\n\n" + "\n".join(notes) if notes else "")


def first_line(*command):
    with contextlib.suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True)
        return (done.stdout.splitlines() or ["?"])[0]
    return "?"


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def machine(bench):
    clock = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    memory = re.search(r"MemTotal: +(\d+)", pathlib.Path("/proc/meminfo").read_text())
    facts = [
        f"{cpu_model()}, {len(os.sched_getaffinity(0))} CPUs, {int(memory[1]) >> 20} GiB; Linux {platform.release()}, "
        f"clock source {clock.read_text().strip() if clock.exists() else '?'}",
        f"{' '.join(platform.libc_ver())}; {first_line('cc', '--version')}; disk: {first_line('stat', '-f', '-c', '%T', bench.disk)}",
        f"Kymo {first_line('git', '-C', ROOT, 'describe', '--always', '--dirty')}; {first_line('lttng', '--version')}",
        f"medians of {bench.runs} runs (lowest..highest), {time.strftime('%Y-%m-%d', time.gmtime())}",
    ]
    return "\n".join(f"* {fact}" for fact in facts)


def write_document(text):
    """Replaces the text between the markers."""
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")
    print(f"written: {DOCUMENT}")


# ---- running it


def busy():
    """Returns a warning if others use the machine, else None."""
    load, cpus = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > 0.3 * cpus:
        return f"others use the machine (load average {load:.1f} on {cpus} CPUs before the first run): these figures are not worth much"
    return None


class Steal:
    """Returns the time that the hypervisor gave to others while this machine was runnable."""

    def __init__(self):
        self.begin = self.ticks()

    @staticmethod
    def ticks():
        return [int(n) for n in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:]]

    def warning(self):
        passed = [b - a for a, b in zip(self.begin, self.ticks())]
        share = passed[7] / max(1, sum(passed[:8]))
        return f"the hypervisor took {100 * share:.0f} % of the time away" if share > 0.01 else None


def unsteady(rows):
    """Returns a warning if the machine's limit, which should be constant, changed between runs."""
    labels = [row.label for row in rows if row.unit == "ns" and row.samples.get("limit")
        and max(row.samples["limit"]) - min(row.samples["limit"]) > 0.2 * row.median("limit")]
    return f"the machine's own speed changed from run to run in: {'; '.join(labels)}" if labels else None


def isolate():
    """As root: makes a mount namespace with a private run directory for LTTng and private shared
    memory."""
    if os.geteuid() != 0:
        return
    if os.environ.get(ISOLATED) != "1":
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
            sys.exit("bench: root cannot make a mount namespace here, which keeps LTTng's daemon private: run it as another user")
        os.environ[ISOLATED] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    for directory in ("/run/lttng", "/dev/shm"):
        os.makedirs(directory, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", directory], check=True)


def measure(bench, names):
    rows, failed = [], []
    for name in names:
        begin = time.monotonic()
        try:
            rows += ROWS[name](bench)
        except (Failed, OSError, subprocess.SubprocessError) as e:
            failed.append(name)
            print(f"bench: {name}: left out: {e}", file=sys.stderr)
        print(f"measured {name} in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return rows, failed


def parse_arguments():
    parser = argparse.ArgumentParser(description="measures Kymo beside LTTng-UST and the machine's limit")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-bench", help="build directory (meson -Dbench=true)")
    parser.add_argument("--quick", action="store_true", help="a smoke test of about a minute")
    parser.add_argument("--runs", type=int, help="runs of each figure (default 7)")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--write", action="store_true", help="put the result into docs/performance.md")
    parser.add_argument("names", nargs="*", metavar="NAME", help="measure only these rows")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in ROWS]
    if unknown:
        parser.error(f"no row of that name: {', '.join(unknown)} (see --list)")
    if args.write and (args.quick or args.names):
        parser.error("--write is for whole runs: without --quick and names")
    args.build = args.build.resolve()
    return args


def main():
    args = parse_arguments()
    if args.list:
        print("\n".join(ROWS))
        return 0
    if not (args.build / "bench" / "emit-kymo").exists():
        sys.exit(f"bench: nothing to measure in {args.build}: run 'make bench'")
    isolate()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    warnings, steal = [busy()], Steal()
    if shutil.disk_usage(args.build).free < DISK_NEEDED:
        sys.exit(f"bench: too little room for traces in {args.build}: make {DISK_NEEDED >> 30} GiB free there")
    with tempfile.TemporaryDirectory(prefix="bench-", dir=args.build, ignore_cleanup_errors=True) as top:
        bench = Bench(args, pathlib.Path(top))
        try:
            rows, failed = measure(bench, args.names or ROWS)
            description = machine(bench)
        finally:
            bench.close()
    warnings += [steal.warning(), unsteady(rows)]
    description += "".join(f"\n* **{warning}**" for warning in warnings if warning)
    text = f"{description}\n\n{table(rows)}"
    print(text)
    if args.write:
        write_document(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
