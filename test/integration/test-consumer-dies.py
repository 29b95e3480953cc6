#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The consumer is killed at every point of its work: on entry to each system call by which it changes
a file or replies, while an order of each kind is in progress. The order ends with success or a
clear error, each event is in the trace once, and the next order works.
KYMO_TEST_POINTS=1: at each point. By default at every third point of each call, from a random one
on.
"""

import collections
import os
import random
import re

import kymotest
from emitcheck import check_order, check_values
from kymotest import SANITIZED, check, equal, read_trace

ALL = os.environ.get("KYMO_TEST_POINTS") == "1"
CALLS = ("mkdirat", "openat", "pwritev", "ftruncate", "renameat", "unlinkat", "sendmsg")
CHANNEL = ("--subbuf-size=4K", "--num-subbuf=32")
EVENTS = 300
MOST = 400  # no order makes so many calls

WRAPPER = """#!/bin/sh
# The next consumer is killed at this call, of this number.
mv {top}/kill-at {top}/killing 2>/dev/null || exec {consumerd}
exec strace -D -q -o {top}/strace -e inject=$(cat {top}/killing) {consumerd}
"""


def start(k):
    """Starts a daemon whose consumers can be killed in this way."""
    kymotest.need_program("strace", "strace")
    programs = k.top / "programs"
    programs.mkdir()
    wrapper = programs / "kymo-consumerd"
    consumerd = kymotest.RUN_FROM / "src/consumerd/kymo-consumerd"
    wrapper.write_text(WRAPPER.format(top=k.top, consumerd=consumerd))
    wrapper.chmod(0o755)
    env = {"KYMO_LIBEXECDIR": str(programs)}
    if SANITIZED:
        # the leak check does not work in a process that is traced
        env["ASAN_OPTIONS"] = "detect_leaks=0"
    k.start_daemon(env=env)


def kill_next(k, call, at):
    (k.top / "strace").unlink(missing_ok=True)
    (k.top / "kill-at").write_text(f"{call}:signal=KILL:when={at}")


def was_killed(k):
    """strace says how the consumer ended, but its parent may hear of the end before that."""
    path = k.top / "strace"
    said = kymotest.wait_for(lambda: path.exists() and re.search(r"^\+\+\+ (killed by|exited with) (\w+)", path.read_text(), re.MULTILINE), "the end of the consumer")
    return said[2] == "SIGKILL"


def points(k):
    """
    Yields (call, number) of each point, until no consumer was killed at it; the caller then calls
    kill_next().
    """
    found = collections.Counter()
    for call in CALLS:
        at = 1 if ALL else random.randint(1, 3)
        while at < MOST:
            yield call, at
            if was_killed(k):
                found[call] += 1
                at += 1 if ALL else 3
            elif found[call] or at == 1:
                break
            else:  # a consumer that was late may make fewer calls than this
                at -= 1
    print(f"# {sum(found.values())} points: {dict(found)}")
    check(found["pwritev"], f"only {found}")


def attempt(k, *command):
    """Runs a command that may fail, if it gives the reason in one line."""
    done = k.kymo(*command, status=None)
    if done.returncode:
        equal((done.returncode, len(done.stderr.splitlines())), (1, 1), f"{command}: {done.stderr}")
        check("onsumer" in done.stderr, f"{command}: {done.stderr}")
    return done.returncode == 0


def begin(k, name, *options, channel=CHANNEL):
    """
    Creates a session that records; returns false if its consumer died before it reported that it is
    ready.
    """
    if not attempt(k, "create", name, "-o", k.traces / name, *options):
        return False
    k.ask("enable-channel", session=name, channel="channel0", **kymotest.channel_parameters(channel))
    k.ask("enable-event", session=name, patterns=["emit:*"])
    k.ask("start", session=name)
    return True


def emit(k, process):
    k.app("emit", "-n", EVENTS, "-p", process)


def check_trace(trace, n):
    events, discarded = read_trace(trace)
    check_values(events)
    check_order(events)
    equal((len(events), discarded), (n, 0), f"events of {trace}")


def run(k, order, n_events, options=(), channel=CHANNEL):
    """
    At each point: a session whose consumer will be killed, some events, the order, more events, the
    end. n_events: how many runs of emit are in the trace at the end.
    """
    start(k)
    for call, at in points(k):
        name = f"{call}-{at}"
        kill_next(k, call, at)
        if begin(k, name, *options, channel=channel):
            emit(k, 0)
            order(k, name)
            emit(k, 1)
            k.kymo("destroy", name)
            check_trace(k.traces / name, n_events * EVENTS)


def test_stop(k):
    def order(k, name):
        k.kymo("stop", name)
        check_trace(k.traces / name, EVENTS)
        k.ask("start", session=name)

    run(k, order, 2)


def test_destroy(k):
    """No order but the end: the consumer is killed during QUIT at the latest."""
    run(k, lambda k, name: None, 2, channel=(*CHANNEL, "--switch-timer=0", "--read-timer=3600s"))


def test_rotate(k):
    run(k, lambda k, name: k.kymo("rotate", name), 2)


def test_rotate_limited_files(k):
    run(k, lambda k, name: k.kymo("rotate", name), 2, channel=(*CHANNEL, "--tracefile-size=8K"))


def test_clear(k):
    """The events before the order are cleared, whatever was killed."""
    run(k, lambda k, name: k.kymo("clear", name), 1)


def test_buffers_of_processes(k):
    """When processes exit, the consumer writes and releases their sets."""
    run(k, lambda k, name: None, 2, channel=("--buffers=process", *CHANNEL))


def test_snapshot(k):
    """A snapshot's consumer has one attempt; the session and the next snapshot are not affected."""
    start(k)
    check(begin(k, "s"), "no session")
    for n, (call, at) in enumerate(points(k)):
        emit(k, n)
        kill_next(k, call, at)
        first, second = k.top / f"first-{n}", k.top / f"second-{n}"
        if attempt(k, "snapshot", "record", "-s", "s", "-o", first):
            check_values(read_trace(first)[0])
        taken = k.kymo_json("snapshot", "record", "-s", "s", "-o", second)["snapshot"]
        events = read_trace(second)[0]
        check_values(events)
        equal(len(events), taken["recorded"], "events")
        check(sum(kymotest.integers(e)["process"] == n for e in events) == EVENTS, "the newest events are missing")
    k.kymo("destroy", "s")
    check_trace(k.traces / "s", (n + 1) * EVENTS)


kymotest.main()
