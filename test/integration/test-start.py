#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tracing adds to a program's start, and the memory that it takes: counted, not timed."""

import collections
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

import kymotest
from kymotest import APPS, LIBDIR, check, equal, need_program, wait_for, without_sanitizers


def own_calls(k, name):
    """What strace tells of the program's own thread."""
    need_program("strace", "strace")
    log = k.top / f"{name}.strace"
    k.run(["strace", "-f", "-o", log, APPS / name])
    lines = log.read_text().splitlines()
    pid = lines[0].split()[0]
    return [line.partition(" ")[2].strip() for line in lines if line.split()[0] == pid]


def without_loading(lines):
    """Leaves out what the dynamic linker does: looking for libkymo, and mapping it."""
    begin = next((i for i, line in enumerate(lines) if "libkymo.so.0" in line and "ENOENT" not in line), None)
    if begin is not None:
        end = next(i for i in range(begin, len(lines)) if lines[i].startswith("mprotect(") and "PROT_READ)" in lines[i])
        lines = lines[:begin] + lines[end + 1 :]
    return [line for line in lines if LIBDIR not in line and line[0].isalpha()]


def added_calls(k):
    """
    What the tracer adds to the program's own thread, beside being loaded and making one thread. Not counted: waking the
    listener when it waits for a lock, which depends on who is faster.
    """
    traced, plain = (collections.Counter(line.partition("(")[0] for line in without_loading(own_calls(k, name))) for name in ("start", "start-plain"))
    check(traced["clone3"] + traced["clone"] == 1, f"the program was not traced: {traced}")
    added = traced - plain
    del added["futex"]
    return added


@without_sanitizers
def test_calls_without_daemon(k):
    added = added_calls(k)
    check(sum(added.values()) <= 6, f"added system calls: {dict(added)}")


@without_sanitizers
def test_calls_without_session(k):
    """Four more: there is a state page to be read."""
    k.start_daemon()
    added = added_calls(k)
    check(sum(added.values()) <= 10, f"added system calls: {dict(added)}")


@without_sanitizers
def test_hung_daemon(k):
    """A program waits for a daemon that has a session, but not for longer than 50 ms when that does not move."""
    k.start_daemon()
    k.record()
    os.kill(k.daemon.pid, signal.SIGSTOP)
    try:
        runs = [[line for line in own_calls(k, "start") if "futex" in line] for _ in range(5)]
    finally:
        os.kill(k.daemon.pid, signal.SIGCONT)
    timeouts = [int(ns) for ns in re.findall(r"FUTEX_WAIT_PRIVATE, \d+, \{tv_sec=0, tv_nsec=(\d+)", "\n".join(sum(runs, [])))]
    check(timeouts and max(timeouts) <= 48 * 10**6, f"how long it would wait: {runs}")
    # Again where its own listener did not get a CPU.
    equal(min(sum("ETIMEDOUT" in line for line in waits) for waits in runs), 1, "times that it waited so long")


@contextlib.contextmanager
def crowded():
    """Every CPU has more to do than it can."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * len(os.sched_getaffinity(0)))]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def first_events(k, n, wrap=()):
    """Programs that start where nobody gets the CPU as often as he would like to: each has its one event in the trace."""
    with crowded():
        for _ in range(n):
            app = k.spawn("start", "wait", wrap=wrap)
            k.expect(app, "ready")
            k.let_go(app)
            k.finish(app)
    equal(k.kymo_json("stop")["sessions"][0]["recorded"], n, "events")


def test_starved_daemon(k):
    """A daemon that would answer if it got the CPU is waited for: first events are not missed on a busy machine."""
    k.start_daemon()
    k.record()
    os.sched_setscheduler(k.daemon.pid, os.SCHED_IDLE, os.sched_param(0))
    first_events(k, 5)


def test_starved_program(k):
    """Nor where it is the program's listener that does not get it."""
    k.start_daemon()
    k.record()
    first_events(k, 20, wrap=("nice", "-n", "10"))


def memfd_kib(pid):
    files = {(st.st_dev, st.st_ino): st.st_blocks // 2 for _, link, st in kymotest.descriptors(pid) if link.startswith("/memfd:")}
    return sum(files.values())


def listener_sleeps(pid):
    """How often the listener has gone to sleep."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == "kymo-listener":
            return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.MULTILINE)[1])
    return 0


def test_memory_of_few_events(k):
    """Ten programs that recorded one event each: rings take what was written, not what they could take."""
    k.start_daemon()
    k.record("start:*")
    programs = [k.spawn("start", "stay") for _ in range(10)]
    before = {}
    for program in programs:
        k.expect(program, "ready")
        before[program] = listener_sleeps(program.pid)
    for program in programs:
        wait_for(lambda: listener_sleeps(program.pid) >= before[program] + 2, "the listener to look at the rings")
    n_rings = min(len(programs), os.cpu_count())
    kib = memfd_kib(k.daemon.pid)
    check(0 < kib <= 20 + 8 * n_rings, f"{kib} KiB of shared memory for {n_rings} rings")
    for program in programs:
        k.finish(program)
    equal(k.kymo_json("stop", "s")["sessions"][0]["recorded"], 10, "events recorded")


@without_sanitizers
def test_private_memory(k):
    """What a traced program has for itself: pages that it wrote. Those of the library belong to all who have it. Waiting for a daemon takes some more."""
    k.start_daemon()
    k.record("start:*")

    def private(name):
        program = k.spawn(name, "stay")
        k.expect(program, "ready")
        text = pathlib.Path(f"/proc/{program.pid}/smaps_rollup").read_text()
        k.finish(program)
        return int(re.search(r"^Anonymous: +(\d+) kB", text, re.MULTILINE)[1])

    added = min(private("start") for _ in range(5)) - private("start-plain")
    check(added <= 64, f"{added} KiB of private memory")


kymotest.main()
