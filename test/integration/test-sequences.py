#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Sessions, rules and programs in any order: the trace of a session has the events that are emitted
while it records, and no others.
"""

import os
import signal

import kymotest
from emitcheck import check_values, emitted
from kymotest import check, check_counts, equal, integers, read_trace, wait_for

N = 500


def registered(k, n=1):
    """Returns true when n programs have registered."""
    return len(k.request(command="list-events").get("applications", [])) >= n


def waiting_app(k, *args, daemon=True):
    """
    Starts a program that waits; if there is a daemon, returns when the program has registered.
    """
    app = k.spawn("emit", "-w", "-n", N, *args)
    k.expect(app, "ready")
    if daemon:
        wait_for(lambda: registered(k), "the program to register")
    return app


def emit_now(k, app):
    """Makes the application emit; returns when it has done so."""
    k.let_go(app)
    count = int(app.stdout.readline().split()[1])
    app.stdout.readline()
    k.expect(app, "done")
    return count


def new_session(k, name="s"):
    k.kymo("create", name, "-o", k.traces / name)
    return k.traces / name


def exactly(k, trace, n=N):
    equal(len(check_values(check_counts(k, trace, n))), n, f"events in {trace.name}")


def test_program_last(k):
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", N)
    k.kymo("stop", "s")
    exactly(k, trace)


def test_start_before_rule(k):
    k.start_daemon()
    trace = new_session(k)
    k.kymo("start", "s")
    k.kymo("enable-event", "-s", "s", "emit:*")
    k.app("emit", "-n", N)
    k.kymo("stop", "s")
    exactly(k, trace)


def test_program_first(k):
    k.start_daemon()
    app = waiting_app(k)
    trace = k.record("emit:*")
    emit_now(k, app)
    k.kymo("stop", "s")
    k.let_go(app)
    k.finish(app)
    exactly(k, trace)


def test_program_before_daemon(k):
    app = waiting_app(k, daemon=False)
    k.start_daemon()
    wait_for(lambda: registered(k), "the program that was there before the daemon to register")
    trace = k.record("emit:*")
    emit_now(k, app)
    k.let_go(app)
    k.finish(app)
    k.kymo("stop", "s")
    exactly(k, trace)


def test_rule_while_running(k):
    k.start_daemon()
    trace = new_session(k)
    k.kymo("start", "s")
    app = waiting_app(k)
    k.kymo("enable-event", "-s", "s", "emit:record")
    emit_now(k, app)
    k.let_go(app)
    k.finish(app)
    k.kymo("destroy", "s")
    exactly(k, trace)


def test_stop_and_start_again(k):
    k.start_daemon()
    trace = k.record("emit:*", start=False)
    for process, running in enumerate([False, True, False, True]):
        k.kymo("start" if running else "stop", "s", status=None)
        k.app("emit", "-n", N, "-p", process)
    k.kymo("stop", "s")
    events = check_counts(k, trace, 2 * N)
    equal({integers(e)["process"] for e in events}, {1, 3}, "programs that ran while it recorded")


def test_stop_while_emitting(k):
    """After stop has returned, the trace does not grow, and its events have no gap."""
    k.start_daemon()
    trace = k.record("emit:*", channel=("--subbuf-size=64K", "--num-subbuf=64"))
    app = k.spawn("emit", "-w", "-t", 2, "-n", 100000)
    k.expect(app, "ready")
    k.let_go(app)
    wait_for(lambda: k.kymo_json("status", "s")["session"]["recorded"] > 1000 or app.poll() is not None, "some events")
    stopped = k.kymo_json("stop", "s")["sessions"][0]
    events = check_counts(k, trace, stopped["recorded"] + stopped["discarded"])
    check_values(events)
    k.expect(app, "records 200000")
    equal(len(read_trace(trace)[0]), len(events), "events in the trace later")
    for thread in (0, 1) if not stopped["discarded"] else ():
        numbers = [integers(e)["seq"] for e in events if integers(e)["thread"] == thread]
        equal(numbers, list(range(len(numbers))), f"events of thread {thread}, without a hole")
    k.let_go(app)
    k.finish(app)


def test_two_sessions(k):
    k.start_daemon()
    one, two = k.record("emit:*", session="one"), k.record("emit:record", session="two")
    k.app("emit", "-n", N, "-t", 2)
    k.kymo("stop", "one")
    k.app("emit", "-n", N, "-p", 1)
    k.kymo("stop", "two")
    exactly(k, one, 2 * N)
    exactly(k, two, 3 * N)


def test_two_channels(k):
    k.start_daemon()
    trace = new_session(k)
    for channel in ("left", "right"):
        k.kymo("enable-channel", channel, "-s", "s")
        k.kymo("enable-event", "-s", "s", "-c", channel, "emit:*")
    k.kymo("start", "s")
    k.app("emit", "-n", N)
    k.kymo("stop", "s")
    equal(len(check_counts(k, trace, 2 * N)), 2 * N, "events, each in both channels")


def test_disable_event(k):
    k.start_daemon()
    trace = k.record("emit:record,emit:signal")
    app = waiting_app(k)
    k.kymo("disable-event", "-s", "s", "emit:record")
    emit_now(k, app)
    k.let_go(app)
    k.finish(app)
    k.app("emit", "-n", N, "-p", 1)
    k.kymo("enable-event", "-s", "s", "emit:record")
    k.app("emit", "-n", N, "-p", 2)
    k.kymo("stop", "s")
    events = check_counts(k, trace, N)
    equal({integers(e)["process"] for e in events}, {2}, "programs that ran while the event was enabled")


def test_destroy_while_emitting(k):
    k.start_daemon()
    trace = k.record("emit:*")
    app = k.spawn("emit", "-w", "-n", 100000, "-t", 2)
    k.expect(app, "ready")
    k.let_go(app)
    final = k.kymo_json("destroy", "s")["sessions"][0]
    k.expect(app, "records 200000")
    k.let_go(app)
    k.finish(app)
    check_values(check_counts(k, trace, final["recorded"] + final["discarded"]))


def test_killed_program(k):
    """The events that a program had emitted before it was killed are in the trace."""
    k.start_daemon()
    trace = k.record("emit:*")
    app = waiting_app(k)
    emit_now(k, app)
    app.kill()
    app.wait()
    k.app("emit", "-n", N, "-p", 1)
    k.kymo("stop", "s")
    exactly(k, trace, 2 * N)


def test_stopped_program(k):
    """A stopped program does not delay any command."""
    k.start_daemon()
    trace = k.record("emit:*")
    app = waiting_app(k)
    kymotest.stop(app.pid)
    k.app("emit", "-n", N, "-p", 1)
    # A command itself waits 30 s for the daemon.
    k.kymo("stop", "s")
    k.kymo("destroy", "s")
    os.kill(app.pid, signal.SIGCONT)
    k.let_go(app)
    exactly(k, trace)
    check(emitted(app.stdout.readline() + app.stdout.readline())[0] == N, "the program did not go on")
    k.expect(app, "done")
    k.let_go(app)
    k.finish(app)


def test_daemon_gone(k):
    """Programs outlive the daemon, and find the next one."""
    k.start_daemon()
    app = waiting_app(k)
    k.stop_daemon()
    k.start_daemon()
    wait_for(lambda: registered(k), "the program to find the new daemon")
    trace = k.record("emit:*")
    emit_now(k, app)
    k.let_go(app)
    k.finish(app)
    k.kymo("stop", "s")
    exactly(k, trace)


kymotest.main()
