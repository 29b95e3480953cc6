#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A dead, hung or false session daemon does not hinder a program: it starts, emits and exits as
without a daemon. Only if the state page says that a session is active, the start is delayed, by 50
ms at most.

Other load delays a program, too. So each attempt runs the program twice, with and without the
daemon, and compares. At least one of TRIES attempts must be within the limit.
"""

import os
import signal
import socket
import struct
import time

import kymotest
from kymotest import check, equal, wait_for
from program import Daemon

PROMISE_S = 0.05
SLACK_S = 0.05  # of the measurement: a program's life takes about 0.01 s
TRIES = 20


def check_delay(what, run, run_free):
    """Checks that run() takes no longer than run_free() plus the promised limit."""
    delays = []
    while not delays or delays[-1] > PROMISE_S + SLACK_S:
        check(len(delays) < TRIES, lambda: f"{what}: held up by {min(delays):.3f} s at least, in {TRIES} tries")
        delays.append(duration(run) - duration(run_free))


def duration(run):
    begin = time.monotonic()
    run()
    return time.monotonic() - begin


def live(k, env=None):
    """Runs a program from its start to its exit."""
    equal(k.app("emit", "-n", 10, env=env), "records 10\nsignals 0\n", "what the program says")


def unhindered(k, what):
    check_delay(what, lambda: live(k), lambda: live(k, {"KYMO_RUNDIR": str(k.top / "nowhere")}))


def test_no_daemon(k):
    unhindered(k, "no run directory")
    k.rundir.mkdir()
    unhindered(k, "an empty one")
    for name in ("state", "wake", "app.sock", "lock"):
        (k.rundir / name).mkdir()
    unhindered(k, "directories in place of everything")
    for name in ("state", "wake", "app.sock", "lock"):
        (k.rundir / name).rmdir()
        (k.rundir / name).write_bytes(b"x" * 5000)
    unhindered(k, "files in place of everything")
    for name in ("state", "wake", "app.sock"):
        (k.rundir / name).unlink()
        os.mkfifo(k.rundir / name)
    unhindered(k, "FIFOs in place of everything")


def test_garbage_in_the_state_page(k):
    pages = (b"", b"\0", b"\xff" * 24, b"\xff" * 4096, struct.pack("<IIIIQ", 0x54534B59, 24, 0, 5, 1), struct.pack("<IIIIQ", 0x54534B59, 0, 1, 0xFFFFFFFF, 0),
        struct.pack("<IIIIQ", 0x54534B59, 24, 0x7FFFFFFF, 1, 1)[:23])
    with Daemon(k):
        for page in pages:
            (k.rundir / "state").write_bytes(page)
            unhindered(k, f"state page {page[:24]!r}")
        (k.rundir / "state").unlink()
        (k.rundir / "state").symlink_to("/dev/zero")
        unhindered(k, "a link in place of the state page")


def test_daemon_that_never_answers(k):
    """Also a daemon that never accepts, one whose queue is full, and one without a FIFO."""
    for n_active in (0, 1):
        for fifo in (True, False):
            with Daemon(k, n_active=n_active, fifo=fifo):
                unhindered(k, f"silence, {n_active} sessions, FIFO {fifo}")
            (k.rundir / "wake").unlink(missing_ok=True)
    with Daemon(k, backlog=0) as daemon:
        crowd = []
        try:
            while True:
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                s.setblocking(False)
                crowd.append(s)
                s.connect(str(daemon.rundir / "app.sock"))
        except BlockingIOError:
            pass
        unhindered(k, "a full queue")
        for s in crowd:
            s.close()
    with Daemon(k) as daemon:
        accepted(k, daemon)


def accepted(k, daemon):
    """The daemon accepts a program's connection, and does not reply."""
    started = []

    def start(env=None):
        started.append(k.spawn("emit", "-w", env=env))
        peer = None if env else daemon.accept()
        k.expect(started[-1], "ready")
        return peer

    def end():
        app = started.pop()
        k.let_go(app)
        check(app.stdout.readline().startswith("records"), "it emits")
        k.let_go(app)
        k.finish(app)

    peers = []
    check_delay("the start of a program whose call was accepted", lambda: peers.append(start()),
        lambda: start({"KYMO_RUNDIR": str(k.top / "nowhere")}))
    for peer in peers:
        peer.close()
    while started:
        end()


def test_stopped_daemon(k):
    """A program that starts meanwhile runs untraced; it is traced when the daemon continues."""
    k.start_daemon()
    os.kill(k.daemon.pid, signal.SIGSTOP)
    unhindered(k, "no session")
    os.kill(k.daemon.pid, signal.SIGCONT)
    out = k.record("emit:*")
    os.kill(k.daemon.pid, signal.SIGSTOP)
    unhindered(k, "an active session")
    app = k.spawn("emit", "-n", 100, "-p", 7, "-w")
    k.expect(app, "ready")
    os.kill(k.daemon.pid, signal.SIGCONT)
    wait_for(lambda: any(a["pid"] == app.pid for a in k.request(command="status")["session"]["applications"]), "the program to be known")
    k.kymo("enable-event", "none:*")  # when the program answers this query, it records
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)
    k.kymo("destroy")
    events, discarded = kymotest.read_trace(out)
    equal((sum(kymotest.integers(e)["process"] == 7 for e in events), discarded), (100, 0), "its events")


def test_stopped_while_programs_run(k):
    """Recording continues, programs fork and exit."""
    k.start_daemon()
    out = k.record("emit:*")
    app = k.spawn("emit", "-n", 1000, "-t", 3, "-w")
    k.expect(app, "ready")
    os.kill(k.daemon.pid, signal.SIGSTOP)
    k.let_go(app)
    k.read_until(app, "done")  # the daemon is stopped until the program has exited
    k.let_go(app)
    k.finish(app)
    os.kill(k.daemon.pid, signal.SIGCONT)
    k.kymo("destroy")
    kymotest.check_counts(k, out, 3000)


def test_killed_daemon(k):
    """The state page that it leaves says that a session is active, which is not true any more."""
    k.start_daemon()
    k.record("emit:*")
    k.daemon.kill()
    k.daemon.wait()
    equal(struct.unpack_from("<IIII", (k.rundir / "state").read_bytes())[3], 1, "active sessions in the state page that was left")
    unhindered(k, "a stale socket and page")
    (k.rundir / "wake").unlink()
    unhindered(k, "and no FIFO")
    (k.rundir / "app.sock").unlink()
    unhindered(k, "and no socket")
    k.start_daemon()
    out = k.record("emit:*", session="t")
    k.app("emit", "-n", 10)
    k.kymo("destroy")
    kymotest.check_counts(k, out, 10)


if __name__ == "__main__":
    kymotest.main()
