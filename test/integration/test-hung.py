#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A dead, hung or false session daemon does not hinder a program: it starts, emits and exits as
without a daemon. Only if the state page says that a session is active, the start is delayed, by 50
ms at most.

Other load delays a program, too. So only the time counts in which the program slept: not when a
thread of it, or the test itself, ran or waited for a CPU. Each attempt runs the program twice, with
and without the daemon, and compares. At least one of TRIES attempts must be within the limit.
"""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import time

import kymotest
from kymotest import IMPATIENT, check, equal, wait_for
from program import Daemon

PROMISE_S = 0.05
SLACK_S = 0.05  # of the measurement: a program's life takes about 0.01 s
TRIES = 20


def awake_s(pid, *threads):
    """
    Returns for how long threads of a process have run or waited for a CPU: all of them, or those.
    The first thread keeps its figures until the process has been waited for.
    """
    sum_ns = 0
    for thread in threads or os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            ran, waited, _ = pathlib.Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()
            sum_ns += int(ran) + int(waited)
    return sum_ns / 1e9


class Delay:
    """Measures for how long a program slept, from here on."""

    def __init__(self):
        self.begin, self.own = time.monotonic(), awake_s(os.getpid())
        self.others = 0

    def look(self, pid):
        """Called while the program stands still, for threads that exit with it."""
        self.others = awake_s(pid) - awake_s(pid, pid)

    def slept_s(self, pid):
        awake = awake_s(pid, pid) + self.others + awake_s(os.getpid()) - self.own
        return time.monotonic() - self.begin - awake


def check_delay(what, run, run_free):
    """
    Checks that a program is held up for no longer in run() than in run_free(), plus the promised
    limit. Both return for how long it slept.
    """
    delays = []
    while not delays or delays[-1] > PROMISE_S + SLACK_S:
        check(len(delays) < TRIES, lambda: f"{what}: held up by {min(delays):.3f} s at least, in {TRIES} tries")
        delays.append(run() - run_free())


def live(k, env=None):
    """Runs a program from its start to its exit. Returns for how long it slept."""
    delay = Delay()
    app = k.spawn("emit", "-n", 10, "-w", env={**IMPATIENT, **(env or {})})
    for wanted in ("ready", "done"):
        k.read_until(app, wanted)
        delay.look(app.pid)
        k.let_go(app)
    os.waitid(os.P_PID, app.pid, os.WEXITED | os.WNOWAIT)
    slept = delay.slept_s(app.pid)
    k.finish(app)
    return slept


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
    started, peers = [], []

    def start(env=None):
        delay = Delay()
        started.append(k.spawn("emit", "-w", env={**IMPATIENT, **(env or {})}))
        if not env:
            peers.append(daemon.accept())
        k.expect(started[-1], "ready")
        delay.look(started[-1].pid)
        return delay.slept_s(started[-1].pid)

    def end():
        app = started.pop()
        k.let_go(app)
        check(app.stdout.readline().startswith("records"), "it emits")
        k.let_go(app)
        k.finish(app)

    check_delay("the start of a program whose call was accepted", start, lambda: start({"KYMO_RUNDIR": str(k.top / "nowhere")}))
    for peer in peers:
        peer.close()
    while started:
        end()


def test_stopped_daemon(k):
    """A program that starts meanwhile runs untraced; it is traced when the daemon continues."""
    k.start_daemon()
    kymotest.stop(k.daemon.pid)
    unhindered(k, "no session")
    os.kill(k.daemon.pid, signal.SIGCONT)
    out = k.record("emit:*")
    kymotest.stop(k.daemon.pid)
    unhindered(k, "an active session")
    app = k.spawn("emit", "-n", 100, "-p", 7, "-w", env=IMPATIENT)
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


def test_room_for_connections(k):
    """Hundreds of programs that start at once connect to a late daemon with one call each."""
    k.start_daemon()
    kymotest.stop(k.daemon.pid)
    with contextlib.ExitStack() as connections:
        for _ in range(700):
            s = connections.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK))
            s.connect(str(k.rundir / "app.sock"))
    os.kill(k.daemon.pid, signal.SIGCONT)
    k.kymo("list")


def test_stopped_while_programs_run(k):
    """Recording continues, programs fork and exit."""
    k.start_daemon()
    out = k.record("emit:*")
    app = k.spawn("emit", "-n", 1000, "-t", 3, "-w")
    k.expect(app, "ready")
    kymotest.stop(k.daemon.pid)
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
