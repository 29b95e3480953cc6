#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tracing does not harm a program that exits, whatever its other threads are doing."""

import signal

from kymotest import APPS, Skip, check, check_counts, equal, integers, main, may_unshare, read_trace, wait_for, without_sanitizers


def test_threads_in_events(k):
    k.start_daemon()
    trace = k.record("leave:*")
    for _ in range(3):
        k.app("exit")
    k.kymo("stop", "s")
    events, discarded = read_trace(trace)
    # A record that a thread had begun before the events were unregistered is still recorded: of
    # each thread the last event counts.
    check(discarded == 0 and sum(integers(e)["i"] == 0 for e in events) == 12, f"{len(events)} events, {discarded} discarded")


def test_pthread_exit(k):
    """
    main leaves by pthread_exit(): the process exits with its last thread, as it does untraced, and
    flushes its output.
    """
    ways = (0,), (1,), (4,), (1, "-", "fork")
    for way in ways:
        equal(k.app("last", *way, env={"KYMO_OFF": "1"}), "bye\n", f"untraced {way}")
        equal(k.app("last", *way), "bye\n", f"without a daemon {way}")
    k.start_daemon()
    out = k.record("last:*")
    for way in ways:
        equal(k.app("last", *way), "bye\n", f"recorded {way}")
    k.kymo("destroy")
    check_counts(k, out, 60)


@without_sanitizers
def test_pthread_exit_unseen(k):
    """
    main leaves by pthread_exit() where nobody can see the other threads: without /proc, with that
    of another PID namespace, or if the program may open no file or start no thread.
    """
    ways = [((), what) for what in ("files", "threads")]
    if may_unshare("-p", "-f"):
        ways.append((("unshare", "-p", "-f"), "-"))
    if may_unshare("-m"):
        ways.append((("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"), "-"))

    def check_output(when, env=None):
        for wrap, what in ways:
            for n in 0, 2:
                equal(k.run([*wrap, APPS / "last", n, what], env=env).stdout, "bye\n", f"{when}: {n} {what} {wrap}")

    check_output("untraced", env={"KYMO_OFF": "1"})
    check_output("without a daemon")
    k.start_daemon()
    k.record("last:*")
    check_output("recorded")


def test_pthread_exit_and_signals(k):
    """A thread stays: SIGTERM ends the process."""
    app = k.spawn("last", 1, "wait")
    k.expect(app, "ready")
    with open(f"/proc/{app.pid}/stat") as stat:
        wait_for(lambda: stat.seek(0) == 0 and stat.read().rpartition(")")[2].split()[0] == "Z", "main to have ended")
    app.terminate()
    k.finish(app, -signal.SIGTERM)


@without_sanitizers
def test_main_ends_alone(k):
    """
    main ends without the C library: by SYS_exit, in strict mode, or by a filter that kills the
    thread. The process ends with its last thread; if there was no other, with the status that it
    has untraced.
    """
    cases = [(way, n, *more) for way in ("exit", "strict", "filter") for n in (0, 2) for more in ((), ("fork",))]

    def run(*case, env=None):
        done = k.run([APPS / "abrupt", *case], env=env, status=None)
        if done.returncode == 77:
            raise Skip("the kernel has no seccomp filters")
        return (done.returncode, done.stdout) if case[1] == 0 else None

    plain = [run(*case, env={"KYMO_OFF": "1"}) for case in cases]
    equal([run(*case) for case in cases], plain, "without a daemon")
    k.start_daemon()
    out = k.record("abrupt:*")
    equal([run(*case) for case in cases], plain, "recorded")
    k.kymo("destroy")
    check_counts(k, out, sum(50 * n for _, n, *_ in cases))


main()
