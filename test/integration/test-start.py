#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The system calls that tracing adds to the start of a program, and its memory: counted, not timed.
"""

import collections
import contextlib
import os
import pathlib
import re
import signal
import statistics
import struct
import subprocess
import sys

import kymotest
from kymotest import APPS, LIBDIR, check, check_counts, equal, need_program, wait_for, without_sanitizers
from program import DONE, EVENTS, QUERY, Daemon, blob, text


def own_calls(k, name):
    """Returns strace's lines for the program's own thread."""
    need_program("strace", "strace")
    log = k.top / f"{name}.strace"
    # root's daemon may run on this machine
    k.run(["strace", "-f", "-o", log, APPS / name], env={**kymotest.IMPATIENT, "KYMO_RUNDIR_ONLY": "1"})
    lines = log.read_text().splitlines()
    pid = lines[0].split()[0]
    return [line.partition(" ")[2].strip() for line in lines if line.split()[0] == pid]


def without_loading(lines):
    """Removes the calls of the dynamic linker: the search for libkymo, and its mappings."""
    begin = next((i for i, line in enumerate(lines) if "libkymo.so.0" in line and "ENOENT" not in line), None)
    if begin is not None:
        end = next(i for i in range(begin, len(lines)) if lines[i].startswith("mprotect(") and "PROT_READ)" in lines[i])
        lines = lines[:begin] + lines[end + 1 :]
    return [line for line in lines if LIBDIR not in line and line[0].isalpha()]


def added_calls(k):
    """
    Returns the calls that the tracer adds to the program's own thread, besides those that load it
    and create one thread. Ignores the calls that wake the listener when it waits for a lock: their
    number depends on timing.
    """
    traced, plain = (collections.Counter(line.partition("(")[0] for line in without_loading(own_calls(k, name))) for name in ("start", "start-plain"))
    check(traced["clone3"] + traced["clone"] == 1, f"the program was not traced: {traced}")
    added = traced - plain
    del added["futex"]
    return added


@without_sanitizers
def test_calls_without_daemon(k):
    added = added_calls(k)
    check(sum(added.values()) <= 7, f"added system calls: {dict(added)}")


@without_sanitizers
def test_calls_without_session(k):
    """Four more calls: they read the state page."""
    k.start_daemon()
    added = added_calls(k)
    check(sum(added.values()) <= 11, f"added system calls: {dict(added)}")


def test_events_in_the_first_message(k):
    """A program with few events lists them when it registers: as it does on a query for all."""
    with Daemon(k) as daemon:
        app = k.spawn("start", "wait")
        peer = daemon.accept()
        size, = struct.unpack_from("<I", peer.hello, 20)
        n, length = struct.unpack_from("<II", peer.hello, 20 + 4 + size + 1 + 4)
        rules = b"".join(text(pattern) + struct.pack("<IiI", 0, 0, 0) for pattern in ("*", "kymo_*"))
        peer.send(QUERY, struct.pack("<II", 0, 2) + blob(rules))
        answer = peer.expect(EVENTS)
        equal(struct.unpack_from("<III", answer), (0, 0, n), "query, whether more follows, number of events")
        equal(peer.hello[-length - 4:], answer[12:], "the list of events")
        check(n > 10 and b"start" in answer, f"{n} events")
        peer.send(DONE, struct.pack("<I", 0))
        k.expect(app, "ready")
        k.finish(app)
        peer.close()


@without_sanitizers
def test_hung_daemon(k):
    """
    A program waits for a daemon that has a session, but at most 50 ms if the daemon does not
    respond.
    """
    k.start_daemon()
    k.record()
    runs = []
    kymotest.stop(k.daemon.pid)
    try:
        # Repeated, because the program's own listener may get no CPU time.
        while len(runs) < 50 and sum("ETIMEDOUT" in line for line in (runs or [[]])[-1]) != 1:
            runs.append([line for line in own_calls(k, "start") if "futex" in line])
    finally:
        os.kill(k.daemon.pid, signal.SIGCONT)
    timeouts = [int(ns) for ns in re.findall(r"FUTEX_WAIT_PRIVATE, \d+, \{tv_sec=0, tv_nsec=(\d+)", "\n".join(sum(runs, [])))]
    check(timeouts and max(timeouts) <= 48 * 10**6, f"how long it would wait: {runs}")
    equal(sum("ETIMEDOUT" in line for line in runs[-1]), 1, "times that it waited so long")


def test_standard_files_of_listener(k):
    """
    A wrapper of a system call in the program may print in the listener's thread: the numbers of the
    standard files are no sockets to a daemon, nor pipes of the program. With KYMO_DEBUG, the error
    output is the program's.
    """
    k.start_daemon()
    k.record()
    for env, errors in ({}, "anon_inode:[signalfd]"), ({"KYMO_DEBUG": "1"}, None):
        app = k.spawn("start", "wait", env=env)
        k.expect(app, "ready")
        links = {n: link for n, link, _ in kymotest.descriptors(str(kymotest.listener_of(app.pid)).removeprefix("/proc/"))}
        errors = errors or os.readlink(f"/proc/{app.pid}/fd/2")
        equal([links.get(n) for n in range(3)], ["anon_inode:[signalfd]"] * 2 + [errors], f"the listener's files with {env}")
        check(any(link.startswith("socket:") for link in links.values()), f"no socket: {links}")
        k.let_go(app)
        k.finish(app)


def test_timeout_that_is_none(k):
    done = k.run([kymotest.APPS / "emit"], env={"KYMO_DEBUG": "1", "KYMO_REGISTER_TIMEOUT": "5s"})
    check("KYMO_REGISTER_TIMEOUT=5s is no number of milliseconds" in done.stderr, done.stderr)


@contextlib.contextmanager
def crowded():
    """Occupies every CPU with more work than it can do."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * len(os.sched_getaffinity(0)))]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def first_events(k, n, wrap=()):
    """
    Runs programs on a machine where each thread waits for the CPU: the trace has the one event of
    each program.
    """
    with crowded():
        for _ in range(n):
            app = k.spawn("start", "wait", wrap=wrap)
            k.expect(app, "ready")
            k.let_go(app)
            k.finish(app)
    equal(k.kymo_json("stop")["sessions"][0]["recorded"], n, "events")


def test_starved_daemon(k):
    """
    A program waits for a daemon that would reply if it got CPU time: the first events are not
    missed on a busy machine.
    """
    k.start_daemon()
    k.record()
    os.sched_setscheduler(k.daemon.pid, os.SCHED_IDLE, os.sched_param(0))
    # The daemon waits for one second from a program's call to its first word: on a crowded machine
    # the program itself should not be late.
    first_events(k, 5, wrap=("sh", "-c", 'renice -n -10 $$ >/dev/null 2>&1; exec "$@"', "-"))


def test_starved_program(k):
    """The same if the program's listener gets no CPU time."""
    k.start_daemon()
    k.record()
    first_events(k, 20, wrap=("nice", "-n", "10"))


def memfd_kib(pid):
    files = {(st.st_dev, st.st_ino): st.st_blocks // 2 for _, link, st in kymotest.descriptors(pid) if link.startswith("/memfd:")}
    return sum(files.values())


def listener_sleeps(pid):
    """Counts how often the listener has fallen asleep."""
    listener = kymotest.listener_of(pid)
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (listener / "status").read_text(), re.MULTILINE)[1]) if listener else 0


def test_signals_are_the_programs(k):
    """The program takes each signal that it gets and has blocked: the listener takes none."""
    k.start_daemon()
    trace = k.record("urgent:*")
    n = 100
    equal(k.app("urgent", n), "", "signals that were lost")
    k.kymo("stop", "s")
    n_signals = len({*range(1, 32), *range(signal.SIGRTMIN, signal.SIGRTMAX + 1)} - {signal.SIGKILL, signal.SIGSTOP, signal.SIGSYS})
    check_counts(k, trace, n * n_signals)


def test_listener_sleeps(k):
    """The listener of an idle program sleeps, whichever daemons may exist, and do."""
    for start in (lambda: None, k.start_daemon, lambda: k.record("start:*")):
        start()
        for only in ("0", "1"):
            program = k.spawn("start", "stay", env={"KYMO_RUNDIR_ONLY": only})
            k.expect(program, "ready")
            before = listener_sleeps(program.pid)
            wait_for(lambda: listener_sleeps(program.pid) >= before + 3, "the listener to sleep")
            k.finish(program)


def test_memory_of_few_events(k):
    """
    Ten programs that recorded one event each: rings use memory for what was written, not for their
    whole size.
    """
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
    """
    Private memory of a traced program: the pages that it wrote. All programs share the pages of the
    library. A program that waits for a daemon needs some more.
    """
    k.start_daemon()
    k.record("start:*")

    def private(name):
        program = k.spawn(name, "stay")
        k.expect(program, "ready")
        text = pathlib.Path(f"/proc/{program.pid}/smaps_rollup").read_text()
        k.finish(program)
        return int(re.search(r"^Anonymous: +(\d+) kB", text, re.MULTILINE)[1])

    # The addresses at which the kernel maps things change each by two pages. 64 KiB is the aim
    # (docs/performance.md).
    traced, plain = (statistics.median(private(name) for _ in range(25)) for name in ("start", "start-plain"))
    added = traced - plain
    check(added <= 72, f"{added} KiB of private memory")


kymotest.main()
