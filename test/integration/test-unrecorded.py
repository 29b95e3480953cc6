#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A program that stops waiting for its daemon, or that runs while there is none, is reported as
unrecorded for that time: by `status`, `stop`, `destroy`, `record`, and in the trace. Its start is
not delayed.
"""

import glob
import os
import signal
import subprocess

import kymotest
from kymotest import IMPATIENT, check, equal, wait_for

SENTENCE = "ran unrecorded for a time"


def warnings(k):
    return [w for w in k.request(command="status")["warnings"] if SENTENCE in w]


def sentences(done):
    return [line for line in done.stdout.splitlines() if SENTENCE in line]


def stopped(k):
    """Stops the daemon meanwhile."""
    kymotest.stop(k.daemon.pid)


def has_socket(pid):
    """Returns whether a thread of the process, which may have a table of its own, has a socket."""
    for fd in glob.glob(f"/proc/{pid}/task/*/fd/*"):
        try:
            if os.readlink(fd).startswith("socket:"):
                return True
        except FileNotFoundError:
            pass
    return False


def check_in_trace(k, trace, *sentences):
    """Checks that the trace itself reports the gaps, to `view` and `stat`; babeltrace2 reads it."""
    kymotest.read_trace(trace)
    for said in k.kymo("view", trace).stderr, k.kymo("stat", trace).stderr:
        equal(len(said.splitlines()), min(len(sentences), 9), f"lines of {said}")
    gaps = k.kymo_json("stat", trace)["gaps"]
    equal(len(gaps), len(sentences), f"gaps: {gaps}")
    for i, (gap, sentence) in enumerate(zip(gaps, sentences)):
        check(sentence in gap and (gap in said or i > 7), f"{sentence} in: {gap}")


def check_named(k, name, app=None, *, n=1):
    """Checks that `status`, `stop` and `destroy` name the program."""
    who = f"{name} (pid {app.pid}" if app else f"{name} (pid "
    texts = warnings(k), sentences(k.kymo("stop")), sentences(k.kymo("destroy"))
    for text in texts:
        equal(len(text), 1, f"one sentence: {text}")
        check(who in text[0] and SENTENCE in text[0] and f"{n} application" in text[0], f"{who} in: {text[0]}")


def test_program_that_goes_on(k):
    """The daemon continues while the program runs: the report has the duration."""
    k.start_daemon()
    out = k.record("emit:*")
    equal(warnings(k), [], "before")
    stopped(k)
    app = k.spawn("emit", "-n", 100, "-w", env=IMPATIENT)
    k.expect(app, "ready")
    os.kill(k.daemon.pid, signal.SIGCONT)
    wait_for(lambda: warnings(k), "the program to report its time")
    k.kymo("enable-event", "none:*")  # when the program answers this query, it records
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)
    check(" ms)" in warnings(k)[0], "its time")
    check_named(k, "emit", app)
    kymotest.check_counts(k, out, 100)
    check_in_trace(k, out, f"application emit (pid {app.pid}, ")


def test_program_that_ends(k):
    """The program starts and exits while the daemon is stopped."""
    k.start_daemon()
    k.record("emit:*")
    stopped(k)
    for _ in range(7):
        k.app("emit", "-n", 100, env=IMPATIENT)
    os.kill(k.daemon.pid, signal.SIGCONT)
    wait_for(lambda: warnings(k) and "7 applications" in warnings(k)[0], "all of them to be named")
    check("until it ended" in warnings(k)[0] and "and 2 more" in warnings(k)[0], warnings(k)[0])
    check_named(k, "emit", n=7)


def test_programs_that_end_before_a_command(k):
    """Programs start and exit while the daemon is late. It knows all when a command comes."""
    k.start_daemon()
    k.record("emit:*")
    for n, command in ((40, "status"), (80, "stop")):
        stopped(k)
        for _ in range(40):  # more than the daemon accepts in one turn
            k.app("emit", "-n", 1, env=IMPATIENT)
        asks = subprocess.Popen([kymotest.CLI, command], env=k.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        wait_for(lambda: has_socket(asks.pid), "the command to connect")
        os.kill(k.daemon.pid, signal.SIGCONT)
        said = asks.communicate(timeout=kymotest.TIMEOUT)[0]
        check(f"{n} applications {SENTENCE}" in said, f"{command}: {said}")


def test_buffers_of_a_process_that_ends(k):
    """The daemon sees the end of the process together with its answer."""
    k.start_daemon()
    k.record("emit:*", channel=["--buffers=process"])
    stopped(k)
    app = k.spawn("emit", "-n", 1, "-w", env=IMPATIENT)
    k.expect(app, "ready")
    kymotest.stop(app.pid)
    os.kill(k.daemon.pid, signal.SIGCONT)
    k.wait_registered(app)
    stopped(k)
    os.kill(app.pid, signal.SIGCONT)
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)
    os.kill(k.daemon.pid, signal.SIGCONT)
    wait_for(lambda: warnings(k), "the program to be named")
    check("until it ended" not in warnings(k)[0], warnings(k)[0])


def test_daemon_killed_instead_of_an_answer(k):
    """
    A program that waits without limit goes on when its daemon is killed; the successor reports it.
    """
    k.start_daemon()
    out = k.record("emit:*")
    stopped(k)
    app = k.spawn("emit", "-n", 100, "-w", env={"KYMO_REGISTER_TIMEOUT": "-1"})
    wait_for(lambda: has_socket(app.pid), "the program to connect")
    k.daemon.kill()
    k.daemon.wait()
    k.expect(app, "ready")
    k.start_daemon()
    wait_for(lambda: warnings(k), "the program to report its time")
    k.kymo("enable-event", "none:*")  # when the program answers this query, it records
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)
    check_named(k, "emit", app)
    kymotest.check_counts(k, out, 100)


def test_names_in_a_trace_are_bounded(k):
    """The trace names 64 programs, and `view` 8."""
    k.start_daemon()
    out = k.record("emit:*")
    k.app("emit", "-n", 10)
    stopped(k)
    for _ in range(70):
        k.app("emit", "-n", 1, env=IMPATIENT)
    os.kill(k.daemon.pid, signal.SIGCONT)
    wait_for(lambda: warnings(k) and "70 applications" in warnings(k)[0], "all of them to be named")
    k.kymo("destroy")
    check_in_trace(k, out, *["until it ended) ran unrecorded"] * 64, "more gaps are not listed")
    kymotest.check_counts(k, out, 10)


def test_record(k):
    """kymo record reports it at its end, although nothing was recorded."""
    script = f"d=$(cat $KYMO_RUNDIR/lock); kill -STOP $d; {kymotest.APPS}/emit -n 10 > /dev/null; kill -CONT $d"
    done = k.run([kymotest.CLI, "record", "-o", k.traces, "-e", "emit:*", "--", "sh", "-c", script], env=IMPATIENT)
    check(SENTENCE in done.stderr and "emit (pid" in done.stderr, f"in: {done.stderr}")


def test_nothing_is_said_without_reason(k):
    """
    No report for programs to which the daemon replies, that run before the session, and for
    children.
    """
    k.start_daemon()
    early = k.spawn("emit", "-n", 10, "-w")
    k.expect(early, "ready")
    k.wait_registered(early)
    out = k.record("emit:*")
    for _ in range(10):
        k.app("emit", "-n", 10)
    k.let_go(early)
    k.read_until(early, "done")
    k.let_go(early)
    k.finish(early)
    equal(warnings(k), [], "in status")
    check(not sentences(k.kymo("stop")) + sentences(k.kymo("destroy")), "in stop or destroy")
    kymotest.check_counts(k, out, 110)


def test_socket_alone(k):
    """Without the state page, as in a container that has only app.sock: everything is recorded."""
    k.start_daemon()
    out = k.record("emit:*")
    (k.rundir / "state").rename(k.rundir / "elsewhere")
    for _ in range(20):
        k.app("emit", "-n", 10)
    (k.rundir / "elsewhere").rename(k.rundir / "state")
    equal(warnings(k), [], "in status")
    k.kymo("destroy")
    kymotest.check_counts(k, out, 200)


def test_run_directory_replaced(k):
    """A program that finds its daemon's successor late reports it, once for all channels."""
    k.start_daemon()
    app = k.spawn("emit", "-n", 10, "-w")
    k.expect(app, "ready")
    k.wait_registered(app)
    kymotest.stop(app.pid)
    k.remove_rundir()
    k.daemon.wait(timeout=kymotest.TIMEOUT)
    k.start_daemon()
    k.record("emit:*")
    k.kymo("enable-channel", "second")
    k.kymo("enable-event", "-c", "second", "emit:*")
    os.kill(app.pid, signal.SIGCONT)
    wait_for(lambda: warnings(k), "the program to report its time")
    check_named(k, "emit", app)
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)


def test_while_there_is_no_daemon(k):
    """
    The session continues with the daemon's successor; a program that was started in between reports
    its gap.
    """
    k.start_daemon()
    k.record("emit:*")
    k.daemon.kill()
    k.daemon.wait()
    app = k.spawn("emit", "-n", 10, "-w")
    k.expect(app, "ready")
    k.start_daemon()
    wait_for(lambda: warnings(k), "the program to report its time")
    check_named(k, "emit", app)
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)
    check_in_trace(k, k.traces / "s", "no session daemon ran for", f"application emit (pid {app.pid}, ")


def test_gaps_survive_daemons(k):
    """
    Successors keep the comments about gaps in the metadata: each daemon of a series is killed right
    after it has written one, and events are declared after it.
    """
    k.start_daemon()
    out = k.record("emit:*", "fields:*")
    k.app("emit", "-n", 10)
    for _ in range(3):
        k.daemon.kill()
        k.daemon.wait()
        k.start_daemon()
        k.kymo("status")
    stopped(k)
    k.app("emit", "-n", 10, env=IMPATIENT)
    os.kill(k.daemon.pid, signal.SIGCONT)
    wait_for(lambda: warnings(k), "the program to be named")
    k.daemon.kill()
    k.daemon.wait()
    k.start_daemon()
    k.app("fields")  # its events are declared behind the comments
    k.kymo("destroy")
    daemons = ["no session daemon ran for"] * 3
    check_in_trace(k, out, *daemons, "application emit (pid", "no session daemon ran for")
    names = {e.name for e in kymotest.read_trace(out)[0]}
    check("emit:record" in names and len(names) > 1, f"events of both programs: {names}")


if __name__ == "__main__":
    kymotest.main()
