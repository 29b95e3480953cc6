#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The n-th call for memory, descriptors, files, sockets, threads or processes fails: for each n, until
there is no such call. The test does it in the library, while a program runs; in each daemon, from
the creation of a session to its end; and in some commands. Nothing crashes or hangs, the program's
own output does not change, and afterwards everything works.

KYMO_TEST_ALL=1: all n for the daemons too, not a random selection. KYMO_TEST_SEED: the seed of the
random numbers.
"""

import contextlib
import itertools
import os
import random
import subprocess

import kymotest
from emitcheck import check_values, emitted
from kymotest import APPS, CLI, IMPATIENT, LIBDIR, TIMEOUT, Failure, check, check_counts, equal, main, read_trace, wait_for

ALL = os.environ.get("KYMO_TEST_ALL") == "1"
SEED = int(os.environ.get("KYMO_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
ROOMY = ("--subbuf-size=256K", "--num-subbuf=4")
WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def library(k):
    """
    Returns a directory with a libkymo that makes its calls through the C library. It finds the
    command line program beside itself.
    """
    directory = k.top / "library"
    if not directory.exists():
        directory.mkdir()
        (directory / "libkymo.so.0").symlink_to(APPS.parent / "library" / "libkymo.so.0")
        (k.top / "cli").symlink_to(os.path.dirname(CLI))
    return directory


def failing(k, n, rest=False, **more):
    """Returns the environment in which the n-th call fails."""
    said = k.top / "failed"
    said.unlink(missing_ok=True)
    k.is_daemon = "FAIL_PROGRAM" in more  # then the file exists from its start on
    # Without a limit, a program waits for ever if it cannot hear the daemon.
    return {**IMPATIENT, "LD_PRELOAD": str(APPS / "failing.so"), "FAIL_AT": str(n), "FAIL_SAY": str(said), **({"FAIL_REST": "1"} if rest else {}),
        "LD_LIBRARY_PATH": f"{library(k)}:{LIBDIR}", **more}


def failed(k):
    """Returns the name of the call that failed; None if there were fewer calls."""
    said = k.top / "failed"
    words = said.read_text().split() if said.exists() else []
    return words[0] if words else "a call" if said.exists() and not k.is_daemon else None


# ---- the library


def sweep(k, command, wanted, rest=False, env=None, channel=ROOMY, named=()):
    """
    Runs command(N) again and again, N its number, while a session records. First the first call of
    each name fails, then the n-th of all calls, for each n.
    """
    k.start_daemon()
    trace = k.record("emit:*,processes:*", channel=channel)
    runs = itertools.count()

    def fails(n, **only):
        done = k.run(command(next(runs)), env={**failing(k, n, rest, FAIL_IN="libkymo", **only), **(env or {})}, status=None, timeout=TIMEOUT)
        what = f"with call {n} failing ({failed(k)})"
        equal((done.returncode, done.stderr), (0, ""), f"status and messages {what}")
        check(wanted(done.stdout), f"{what}: the program says {done.stdout!r}")
        return failed(k)

    for name in named:
        check(fails(1, FAIL_CALL=name), f"{name} was never called")
    n = 1
    while fails(n):
        n += 1
    stopped = k.kymo_json("stop", "s")["sessions"][0]
    events = check_counts(k, trace, stopped["recorded"] + stopped["discarded"])
    check_values(e for e in events if e.name.startswith("emit:"))
    check(len(events) >= 20, "the last run, in which nothing failed, was not recorded")


def emit():
    return lambda n: [APPS / "emit", "-n", 10, "-t", 2, "-p", n], lambda text: emitted(text) == (20, 0)


def test_library(k):
    sweep(k, *emit(), named=("mmap", "socket", "connect", "recvmsg", "pthread_create", "open", "syscall"))


def test_library_fails_for_good(k):
    """From some call on, all calls fail."""
    sweep(k, *emit(), rest=True)


def test_library_without_rseq(k):
    sweep(k, *emit(), env=WITHOUT_RSEQ)


def test_library_in_children(k):
    sweep(k, lambda n: [APPS / "processes", "forks", 2], lambda text: int(text) >= 20)


def test_library_standalone(k):
    """
    Without its companion, or with no way to it, a program runs as usual; the user gets one line at
    most.
    """
    command, wanted = emit()
    traces = map(str, itertools.count(1))

    def fails(n, **only):
        trace = k.traces / next(traces)
        done = k.run(command(n), env=failing(k, n, FAIL_IN="libkymo", KYMO_STANDALONE=str(trace), **only), status=None, timeout=TIMEOUT)
        what = f"with call {n} failing ({failed(k)})"
        equal(done.returncode, 0, f"status {what}")
        check(wanted(done.stdout), f"{what}: the program says {done.stdout!r}")
        lines = done.stderr.splitlines()
        check(len(lines) <= 1 and all(line.startswith("kymo: not traced") for line in lines), f"{what}: {done.stderr!r}")
        if not failed(k):
            equal(len(read_trace(trace)[0]), 20, "events of the last run, in which nothing failed")
        return failed(k)

    for name in ("clone", "execve", "waitpid", "readlink"):
        check(fails(1, FAIL_CALL=name), f"{name} was never called")
    n = 1
    while fails(n):
        n += 1


# ---- the daemons


def command(k, *args, timeout=TIMEOUT):
    """Runs a command that may fail with one line; returns true when it succeeded."""
    done = subprocess.run([CLI, *map(str, args)], env=k.env, text=True, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL)
    lines = done.stderr.strip().splitlines()
    check(done.returncode in (0, 1, 2) and (done.returncode == 0 or 1 <= len(lines) <= 3), f"kymo {args}: exit {done.returncode}: {done.stderr!r}")
    return done.returncode == 0


def life(k, name):
    """Runs a session from its creation to its end. Returns true when all commands succeeded."""
    obeyed = command(k, "create", name, "-o", k.traces / name)
    obeyed &= command(k, "enable-channel", "channel0", "-s", name, *ROOMY)
    obeyed &= command(k, "enable-event", "-s", name, "emit:*")
    obeyed &= command(k, "start", name)
    app = k.spawn("emit", "-n", 10, "-t", 2, "-w")
    k.expect(app, "ready")
    obeyed &= command(k, "list", "-u") & command(k, "status", name)
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app, timeout=TIMEOUT)
    obeyed &= command(k, "stop", name)
    return command(k, "destroy", name) and obeyed


def check_trace(k, name):
    """Checks that the trace on disk is readable and correct."""
    trace = k.traces / name
    if any(trace.rglob("metadata")):
        events, _ = kymotest.read_trace(trace)
        check_values(events)


# glibc itself ends a process that has no memory for what it loads to look up a user or a group
NO_TLS = "cannot allocate memory for thread-local data"


def run_with_failure(k, program, n, **only):
    """Returns true when call n was made, and failed."""
    k.daemon = k.spawn_daemon(env=failing(k, n, FAIL_PROGRAM=program, **only))
    with contextlib.suppress(Failure):
        wait_for(lambda: k.daemon.poll() is not None or k.answers(), "the daemon to answer", timeout=TIMEOUT)
    if k.daemon.poll() is None:
        life(k, f"a{n}")
        check_trace(k, f"a{n}")
        equal(k.daemon.poll(), None, "the daemon after a session in which a call failed")
        # The call has failed: from now on everything works as usual.
        if failed(k):
            check(life(k, f"b{n}"), "the session after that one is not obeyed")
            equal(len(check_counts(k, k.traces / f"b{n}", 20)), 20, "events of the session after")
        k.stop_daemon()
    else:
        log = k.daemon_log()[-2000:]
        check(k.daemon.returncode == 1 or (k.daemon.returncode == 127 and NO_TLS in log), f"the daemon ended with {k.daemon.returncode}:\n{log}")
        k.daemon = None
    for remains in k.traces.iterdir() if k.traces.exists() else ():
        kymotest.shutil.rmtree(remains)
    return failed(k) is not None


def sweep_daemon(k, program):
    low, high = 1, 64
    while run_with_failure(k, program, high):
        high *= 2
    while low < high:  # finds the approximate number of calls: it is never exactly the same
        middle = (low + high) // 2
        low, high = (middle + 1, high) if run_with_failure(k, program, middle) else (low, middle)
    check(low > 50, "hardly a call was made to fail")
    chosen = zip(random.Random(SEED).sample(range(1, low), low - 1), itertools.repeat(0) if ALL else kymotest.rounds())
    n_failed = 0
    for n, _ in chosen:
        try:
            run_with_failure(k, program, n)
        except Exception as e:
            raise Failure(f"call {n} of {program} failed ({failed(k)}): {e} (KYMO_TEST_SEED={SEED})") from e
        n_failed += 1
    print(f"# {program}: {low - 1} calls, {n_failed} of them failed, KYMO_TEST_SEED={SEED}", flush=True)


def test_session_daemon(k):
    sweep_daemon(k, "kymo-sessiond")


def test_files_are_removed(k):
    """
    A file whose state cannot be read is removed all the same: otherwise a session's journal would
    restore the session.
    """
    n = 1
    while run_with_failure(k, "kymo-sessiond", n, FAIL_CALL="fstat"):
        n += 1
    check(n > 5, "hardly a call was made to fail")


def test_journal_outlives_replies(k):
    """A reply that is incomplete for lack of memory does not end a session's journal."""
    for n in itertools.count(1000):  # then it fails in a status, or in the request for one
        k.start_daemon(env=failing(k, n, FAIL_PROGRAM="kymo-sessiond", FAIL_IN="libjson-c", FAIL_CALL="strdup"))
        k.record(session=f"s{n}")
        check(not failed(k), "the call has failed too early")
        while not failed(k):
            reply = k.request(command="status", session=f"s{n}")
        k.ask("enable-event", session=f"s{n}", patterns=["x:*"])
        check((k.rundir / "sessions" / f"s{n}").exists(), "the session has lost its journal")
        k.ask("destroy", session=f"s{n}")
        k.stop_daemon()
        if "no memory left for its answer" in reply["error"]:
            break


def count_unwanted(k, name):
    """Returns how many events of a program are recorded that do not pass the rule's filter."""
    k.ask("create", session=name, output=str(k.traces / name))
    k.ask("enable-event", session=name, patterns=["emit:*"], filter="thread == 1000000")
    k.ask("start", session=name)
    k.app("emit", "-n", 10)
    return k.ask("stop", session=name)["sessions"][0]["recorded"]


def test_filters(k):
    """Without memory for its filter, an event is left out, not recorded unfiltered."""
    for n in itertools.count(1):
        k.start_daemon(env=failing(k, n, FAIL_PROGRAM="kymo-sessiond", FAIL_IN="kymo-sessiond", FAIL_CALL="realloc"))
        n_unwanted = 0
        with contextlib.suppress(Failure, OSError):  # commands may fail
            n_unwanted = count_unwanted(k, f"s{n}")
        equal(n_unwanted, 0, f"unwanted events with realloc {n} failing")
        with contextlib.suppress(OSError):
            k.request(command="destroy", session=f"s{n}")
        k.stop_daemon()
        if not failed(k):
            break
    check(n > 20, "hardly a call was made to fail")


def test_add_trigger(k):
    """The daemon survives it if its reply has no room for some member."""
    for n in itertools.count(80):  # of about 120: the first are those of "create"
        k.start_daemon(env=failing(k, n, FAIL_PROGRAM="kymo-sessiond", FAIL_IN="libjson-c", FAIL_CALL="strdup"))
        with contextlib.suppress(Failure):  # commands may fail
            k.ask("create", session=f"s{n}", output="")
            k.ask("add-trigger", session=f"s{n}", trigger="t", when="event(emit:*)", do="notify")
        equal(k.daemon.poll(), None, f"status of the daemon with strdup {n} failing")
        k.request(command="destroy", session=f"s{n}")
        k.stop_daemon()
        if not failed(k):
            break
    check(n > 90, "hardly a call was made to fail")


def test_consumer(k):
    sweep_daemon(k, "kymo-consumerd")


# ---- commands


def test_commands(k):
    """They end with success, or with a message."""
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 20)
    k.kymo("stop", "s")
    for args in (["status"], ["--json", "status"], ["list", "-u"], ["enable-event", "-s", "s", "x*,y*"], ["track", "-s", "s", "--vpid=1"], ["set", "-s", "s"], ["view", trace], ["--json", "stat", trace]):
        for n in itertools.count(1):
            done = k.run([CLI, *args], env=failing(k, n, FAIL_PROGRAM="kymo"), status=None, timeout=TIMEOUT)
            if not failed(k):
                break
            lines = len(done.stderr.strip().splitlines())
            check(done.returncode == 0 or (done.returncode in (1, 2) and (1 <= lines <= 2 or "--json" in args)), f"kymo {args} with call {n} failing ({failed(k)}): exit {done.returncode}: {done.stderr!r}")


main()
