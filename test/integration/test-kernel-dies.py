#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The session daemon is killed at each step of a session with kernel events, with its consumer or
without: on entry to the system calls by which it changes tracefs and sends descriptors. Afterwards
nothing of it is left in tracefs. Needs root, tracefs and strace.
KYMO_TEST_POINTS=1: at each point. By default at some of them, from a random one on.
"""

import contextlib
import os
import random
import re
import signal

import kymotest
from kymotest import TRACING, check, consumers, equal, wait_for

ALL = os.environ.get("KYMO_TEST_POINTS") == "1"
PROBED = kymotest.APPS / "probed"
CALLS = ("mkdirat", "openat", "unlinkat", "sendmsg")
DEFAULT_POINTS = 6
MADE = re.compile(r'mkdirat\(\d+, "instances/kymo-([0-9a-f]{8})-')


def need_tracefs():
    kymotest.need_tracefs("events/syscalls")
    kymotest.need_program("strace", "strace")


def start(k, *inject):
    """Starts a daemon under strace; returns the file of its calls. It may be killed at once."""
    log = k.top / "calls"
    log.unlink(missing_ok=True)
    env = {"ASAN_OPTIONS": "detect_leaks=0"} if kymotest.SANITIZED else None
    try:
        k.start_daemon(wrap=("strace", "-D", "-qq", "-s", "100", "-o", log, "-e", "trace=" + ",".join(CALLS), *inject), env=env)
    except kymotest.Failure:
        if not inject or k.daemon.poll() is None:
            raise
    return log


def commands(name, out):
    rules = [("enable-event", "-s", name, "-k", "sched_switch", "-f", "next_tid == 1")]
    if (TRACING / "uprobe_events").exists():
        rules.append(("enable-event", "-s", name, "-k", f"--userspace-probe={PROBED}:main"))
    return (("create", name, "-o", out), *rules, ("start", name), ("stop", name), ("destroy", name))


def run(k, name):
    """Runs a session; returns false if the daemon died meanwhile."""
    for command in commands(name, k.top / name):
        k.kymo("--no-sessiond", *command, status=None)
        if k.daemon.poll() is not None:
            return False
    return True


def points(k):
    """Returns the calls of a session, from its first instance on: [(call, number)]."""
    log = start(k)
    check(run(k, "whole"), "the daemon died of nothing")
    k.stop_daemon()
    found, counts, begun = [], dict.fromkeys(CALLS, 0), False
    for line in log.read_text().splitlines():
        call = line.split("(")[0]
        if call not in counts:
            continue
        counts[call] += 1
        begun = begun or MADE.search(line) is not None
        if begun:
            found.append((call, counts[call]))
    check(len(found) > 20, f"only {len(found)} calls")
    return found


def left_of(daemon):
    """Returns what tracefs has of the daemon's."""
    instances = [p.name for p in (TRACING / "instances").iterdir() if p.name.startswith(f"kymo-{daemon}-")]
    lines = (TRACING / "dynamic_events").read_text().splitlines() if (TRACING / "dynamic_events").exists() else []
    return instances + [line for line in lines if f":kymo_{daemon}_" in line]


def kill_consumers(k):
    for pid in consumers(k):
        with contextlib.suppress(ProcessLookupError):  # without its daemon, it may end by itself
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: not kymotest.alive(pid), "the consumer to end")


def test_daemon_dies(k):
    need_tracefs()
    every = points(k)
    step = 1 if ALL else max(1, len(every) // DEFAULT_POINTS)
    n_killed = 0
    for i, (call, at) in enumerate(every[random.randrange(step)::step]):
        log = start(k, "-e", f"inject={call}:signal=KILL:when={at}")
        if k.daemon.poll() is None and run(k, f"session{i}"):
            k.daemon.terminate()  # and it may be killed while it ends
        if k.daemon.wait(kymotest.TIMEOUT) == 0:
            k.daemon = None
            continue  # it made fewer calls this time
        n_killed += 1
        daemons = set(MADE.findall(log.read_text()))
        if i % 2:
            kill_consumers(k)
        k.start_daemon()
        k.kymo("destroy", "--all", status=None)
        k.stop_daemon()
        for daemon in daemons:
            wait_for(lambda daemon=daemon: not left_of(daemon), lambda daemon=daemon, call=call, at=at: f"nothing to be left after {call} {at}: {left_of(daemon)}")
    check(n_killed, "no daemon was killed")


def test_counts_of_perf(k):
    """perf counts as many system calls as the trace has."""
    need_tracefs()
    kymotest.need_program("perf", "perf")
    n, out, counted = 3000, k.top / "trace", k.top / "counts"
    calls = ("syscalls:sys_enter_write", "syscalls:sys_exit_write")
    perf = ["perf", "stat", "-x", ",", "-o", counted, *(word for c in calls for word in ("-e", c)), "--", kymotest.APPS / "writes", n]
    done = k.run(list(map(str, perf)), status=None)
    if done.returncode or any(line.startswith("<not") for line in counted.read_text().splitlines()):
        raise kymotest.Skip("perf cannot count system calls here")
    done = k.kymo("record", "-o", out, "--syscall=write", "--", *perf)
    tid = done.stdout.split()[0]
    text, discarded = kymotest.babeltrace(out)
    equal(discarded, 0, "discarded events")
    theirs = [int(line.split(",")[0]) for line in counted.read_text().splitlines() if "sys_" in line]
    ours = [len(re.findall(rf" syscall_{kind}_write: \{{[^}}]*\}}, \{{ tid = {tid} ", text)) for kind in ("entry", "exit")]
    equal(ours, theirs, "entries and exits")
    equal(ours[0], n + 1, "entries")


kymotest.main()
