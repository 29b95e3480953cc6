#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Many sessions record the same event, and sessions are created and destroyed while threads record at
full speed. Each session has exactly the events that it selected, and no memory is released while a
writer uses it.
KYMO_TEST_TURNS: how many sessions are created. KYMO_TEST_SEED: the seed of the random numbers.
"""

import collections
import os
import random
import threading

import kymotest
from emitcheck import SCALE, check_order, check_values, record_of
from kymotest import check, check_counts, equal, wait_for

N_SESSIONS = 64
THREADS = 16
CLIENTS = 4
TURNS = int(os.environ.get("KYMO_TEST_TURNS", 48 if SCALE == 1 else 16))
SEED = int(os.environ.get("KYMO_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def enable(k, name, modulus, rest):
    k.ask("enable-event", session=name, patterns=["emit:record"], filter=f"seq % {modulus} == {rest}")


def make(k, name, modulus, rest, **channel):
    """Creates a session that records each modulus-th event of each thread; returns its trace."""
    trace = k.traces / name
    k.ask("create", session=name, output=str(trace))
    k.ask("enable-channel", session=name, channel="channel0", **channel)
    enable(k, name, modulus, rest)
    return trace


def interrupt(k, rng, name, modulus, rest):
    """Stops the recording, and starts it again."""
    kind = rng.randrange(3)
    if kind == 0:
        k.ask("pause", session=name)
        k.ask("resume", session=name)
    elif kind == 1:
        k.ask("stop", session=name)
        k.ask("start", session=name)
    else:
        k.ask("disable-event", session=name, all_rules=True)
        enable(k, name, modulus, rest)


def numbers(events):
    """
    Returns the numbers of each thread, in the trace's order. Checks that each event's values belong
    together.
    """
    check_values(events)
    check_order(events)
    found = collections.defaultdict(list)
    for event in events:
        _, thread, seq, _ = record_of(event)
        found[thread].append(seq)
    return found


def check_part(k, name, trace, modulus, rest, n_breaks, counts):
    """
    The trace has each modulus-th event from one moment to another, without those during the
    session's breaks; the events that are missing otherwise were counted.
    """
    if not trace.exists() or not counts["recorded"]:
        equal(counts["recorded"], 0, f"{name}: events recorded, but there is no trace")
        return 0
    events = check_counts(k, trace, counts["recorded"] + counts["discarded"])
    missing = 0
    for thread, seen in numbers(events).items():
        wrong = [seq for seq in seen if seq % modulus != rest]
        check(not wrong, f"{name}: of thread {thread}, {len(wrong)} events are there that its filter rejects, {wrong[:3]}... (KYMO_TEST_SEED={SEED})")
        holes = sorted((b - a) // modulus - 1 for a, b in zip(seen, seen[1:]))
        missing += sum(holes[: len(holes) - n_breaks])
    check(missing <= counts["discarded"], f"{name}: {missing} events are missing, {counts['discarded']} were counted")
    return len(events)


def many_sessions(k, env=None, **channel):
    """
    All sessions at the same time, each with its own filter. Half of them are stopped meanwhile;
    every event is in one of them.
    """
    k.start_daemon()
    n = 12800 // SCALE
    traces = [make(k, f"s{i}", N_SESSIONS, i, subbuf_size=65536, num_subbuf=16, **channel) for i in range(N_SESSIONS)]
    k.ask("start", all=True)
    app = k.spawn("emit", "-t", THREADS, "-n", n, "-w", env=env)
    k.expect(app, "ready")
    k.let_go(app)
    k.expect(app, f"records {THREADS * n}")
    k.let_go(app)
    k.finish(app)
    for i in range(0, N_SESSIONS, 2):
        k.ask("stop", session=f"s{i}")
    k.app("emit", "-t", THREADS, "-n", n, "-p", 1, env=env)
    k.ask("destroy", all=True)
    for i, trace in enumerate(traces):
        events = check_counts(k, trace, THREADS * n // N_SESSIONS * (1 + i % 2))
        found = collections.Counter((process, seq % N_SESSIONS) for process, _, seq, _ in map(record_of, events))
        wanted = {(process, i): THREADS * n // N_SESSIONS for process in range(1 + i % 2)}
        equal(dict(found), wanted, f"events of {trace.name}: process, number modulo {N_SESSIONS}")


def test_many_sessions(k):
    many_sessions(k)


def test_many_sessions_with_buffers_for_threads(k):
    many_sessions(k, buffers="thread")


class Turns:
    """Several clients at once create sessions, let them record for a moment, and destroy them."""

    def __init__(self, k):
        self.k = k
        self.left = TURNS
        self.lock = threading.Lock()
        self.done = []  # arguments of check_part()
        self.failure = None

    def turn(self, number):
        k, rng, name = self.k, random.Random(f"{SEED} {number}"), f"s{number}"
        modulus = rng.choice((1024, 8192, 65536))
        rest = rng.randrange(modulus)
        trace = make(k, name, modulus, rest, buffers=rng.choice(("cpu", "thread", "process")), subbuf_size=rng.choice((4096, 65536)), num_subbuf=rng.choice((2, 8)))
        k.ask("start", session=name)
        n_breaks = rng.randrange(3)
        for _ in range(n_breaks):
            interrupt(k, rng, name, modulus, rest)
        if rng.randrange(2):
            k.ask("stop", session=name)
        counts = k.ask("destroy", session=name)["sessions"][0]
        self.done.append((name, trace, modulus, rest, n_breaks, counts))

    def work(self):
        while True:
            with self.lock:
                self.left -= 1
                number = self.left
            if number < 0 or self.failure:
                return
            try:
                self.turn(number)
            except Exception as e:  # of a thread: the caller that joins it reports it
                self.failure = e

    def run(self):
        threads = [threading.Thread(target=self.work) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failure:
            raise self.failure


def rings_mapped(app):
    with open(f"/proc/{app.pid}/maps") as f:
        return sum("kymo-rings" in line or "kymo-consumed" in line for line in f)


def come_and_go(k, env=None):
    print(f"# KYMO_TEST_SEED={SEED}", flush=True)
    k.start_daemon()
    app = k.spawn("emit", "-t", THREADS, "-f", env=env)
    k.expect(app, "emitting")
    k.wait_registered(app)
    turns = Turns(k)
    turns.run()
    check(app.poll() is None, f"the program ended with {app.returncode} (KYMO_TEST_SEED={SEED})")
    wait_for(lambda: rings_mapped(app) == 0, lambda: f"the program to unmap its rings: {rings_mapped(app)} are left")
    k.let_go(app)
    k.finish(app)
    equal(len(turns.done), TURNS, "sessions")
    n_events = sum(check_part(k, *part) for part in turns.done)
    print(f"# {n_events} events in {TURNS} sessions")
    check(n_events > TURNS, f"only {n_events} events were recorded (KYMO_TEST_SEED={SEED})")


def test_come_and_go(k):
    come_and_go(k)


def test_come_and_go_without_rseq(k):
    come_and_go(k, WITHOUT_RSEQ)


kymotest.main()
