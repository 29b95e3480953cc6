#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Programs that are killed or stopped at any moment: their recorded events are in the trace, and other
programs record without any disturbance. KYMO_TEST_SEED: the seed of the random numbers.
"""

import os
import random

from emitcheck import by_thread
from kymotest import TIMEOUT, check, check_counts, equal, main, rounds

WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
AT_ONCE = 50  # kills in one session: each may leave three rings of threads, and a set has 1024
SEED = int(os.environ.get("KYMO_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
ROOMY = ("--subbuf-size=4M", "--num-subbuf=8")
FOR_THREADS = ("--subbuf-size=256K", "--num-subbuf=4")  # each thread has its own ring
HANDLER = 2
SURVIVOR = 0xFFFF


def check_killed(found, victim, thread, counted, handlers_count):
    """
    Checks that all counted events are in the trace, and at most one that was not yet counted,
    without a gap, each once and in order.
    """
    seen = found.pop((victim, thread), [])
    what = f"victim {victim}, thread {thread} (KYMO_TEST_SEED={SEED})"
    equal(seen, list(range(len(seen))), f"events of {what}")
    least = counted if thread != HANDLER or handlers_count else 0
    check(least <= len(seen) <= counted + 1, f"{what}: {len(seen)} events are in the trace, {counted} had returned")


def kill(k, n, seed, env, channel, handlers_count):
    """
    Kills n programs in one session while another one continues; returns how many events the killed
    ones had recorded.
    """
    session = f"s{seed}"
    trace = k.record("victim:*", session=session, channel=channel)
    survivor = k.spawn("victim", "survive", env=env)
    k.expect(survivor, "surviving")
    said = k.app("victim", "kill", n, seed, env=env, timeout=2 * TIMEOUT)
    k.let_go(survivor)
    survived = int(k.finish(survivor).split()[1])
    k.kymo("stop", session)
    if "--overwrite" in channel:
        trace = k.kymo_json("snapshot", "record")["snapshot"]["output"]
    discarded = k.kymo_json("status", session)["session"]["discarded"]
    equal(discarded, 0, "events discarded")
    events = check_counts(k, trace, k.kymo_json("stat", trace)["events"])
    found = by_thread(events)
    equal(found.pop((SURVIVOR, 0)), list(range(survived)), "events of the one that survived")
    counts = [list(map(int, line.split()[1:])) for line in said.splitlines()]
    equal(len(counts), 3 * n, "lines of what was killed")
    for victim, thread, counted in counts:
        check_killed(found, victim, thread, counted, handlers_count)
    equal(dict(found), {}, "events of others")
    k.kymo("destroy", session)
    return sum(counted for _, _, counted in counts)


def kill_all(k, env=None, channel=ROOMY, handlers_count=True):
    print(f"# KYMO_TEST_SEED={SEED}", flush=True)
    k.start_daemon()
    n_kills = n_events = 0
    for number in rounds():
        n_events += kill(k, AT_ONCE, SEED + number, env, channel, handlers_count)
        n_kills += AT_ONCE
    print(f"# {n_kills} programs killed")
    check(n_events > n_kills * 20, f"only {n_events} events of {n_kills} programs: they were killed too early")


def test_kill(k):
    kill_all(k)


def test_kill_without_rseq(k):
    """
    In a thread's ring, a record that a handler makes inside another record is published together
    with that.
    """
    kill_all(k, env=WITHOUT_RSEQ, channel=FOR_THREADS, handlers_count=False)


def test_kill_with_buffers_for_threads(k):
    kill_all(k, channel=(*FOR_THREADS, "--buffers=thread"), handlers_count=False)


def test_kill_in_overwrite_mode(k):
    kill_all(k, channel=(*ROOMY, "--overwrite"))


def stopped(k, env=None):
    """
    A program that is stopped at any instruction blocks nothing: others record, and commands end.
    """
    k.start_daemon()
    trace = k.record("victim:*", channel=ROOMY)
    n = 200
    app = k.spawn("victim", "stop", n, SEED, env=env)
    k.expect(app, "stopped")
    done = k.kymo_json("stop", "s")["sessions"][0]
    equal(done["discarded"], 0, "events discarded")
    k.kymo("start", "s")
    k.let_go(app)
    counts = list(map(int, k.finish(app).split()[1:]))
    k.kymo("stop", "s")
    found = by_thread(check_counts(k, trace, k.kymo_json("stat", trace)["events"]))
    equal(found[0, 1], list(range(20 * n)), "events of the one that was not stopped")
    numbers = found[0, 0]
    equal(numbers, sorted(set(numbers)), "events of the one that was stopped: each once, in order")
    check(len(numbers) <= counts[0], f"{len(numbers)} events of {counts[0]}")


def test_stop(k):
    stopped(k)


def test_stop_without_rseq(k):
    stopped(k, env=WITHOUT_RSEQ)


main()
