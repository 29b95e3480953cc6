#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Buffers for each process: a process cannot affect the buffers of others. The buffers are released
after their process, and no event is lost or counted twice.
"""

import contextlib
import os
import pathlib
import re
import signal
import threading

import kymotest
from emitcheck import SCALE, check_order, check_values, emitted
from kymotest import check, check_counts, equal, wait_for
from program import ask

OWN = ("--buffers=process",)
ROOMY = (*OWN, "--subbuf-size=1M", "--num-subbuf=4")
FILE = re.compile(r"channel0(?:-thread)?-p(\d+)-(\d+)_\d+$")


def owners(trace):
    """Returns (pid, number of the set) of each stream file."""
    found = set()
    for path in kymotest.streams(trace):
        match = FILE.match(path.name)
        check(match, f"{path.name} names no process")
        found.add((int(match[1]), int(match[2])))
    return found


def ring_set(k, session="s"):
    (found,) = k.kymo_json("status", session)["session"]["channels"][0]["ring_sets"]
    return found


CHANNELS = 64  # of a session, as many as there may be


def consumer(k):
    (pid,) = kymotest.consumers(k)
    return pid


def kill_daemon(k):
    k.daemon.kill()
    k.daemon.wait()


def restart(k):
    fds = k.daemon_fds
    k.start_daemon()
    k.daemon_fds = fds


def check_trace(k, trace, total):
    k.kymo("stop", "s")
    events = check_counts(k, trace, total)
    check_values(events)
    check_order(events)
    equal(len(events), total, "events, none being discarded")
    return events


def wait_retired(k, living=0, session="s"):
    """Waits until only the sets of living processes are left."""
    wait_for(lambda: ring_set(k, session)["count"] == living, lambda: f"buffers of the dead to go: {ring_set(k, session)}")


def test_exact(k):
    """
    Each process has its own files; events, identifiers and counts are the same as with shared
    buffers.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    apps = [k.spawn("emit", "-p", p, "-t", 3, "-n", 5000 // SCALE, "-w") for p in range(4)]
    for app in apps:
        k.expect(app, "ready")
        k.let_go(app)
    for app in apps:
        k.read_until(app, "done")
    equal(ring_set(k)["count"], 4, "processes with buffers")
    equal(ring_set(k)["kind"], "process", "kind of buffers")
    check("process" in k.kymo("status", "s").stdout, "status does not name the owners of the buffers")
    total = 4 * 3 * (5000 // SCALE)
    for app in apps:
        k.let_go(app)
        k.finish(app)
    wait_retired(k)
    check_trace(k, trace, total)
    equal({pid for pid, _ in owners(trace)}, {app.pid for app in apps}, "processes with files")


def test_fallback(k):
    """
    Programs without restartable sequences have buffers for threads, which belong to their process.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    env = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
    total = sum(sum(emitted(k.app("emit", "-p", p, "-t", 2, "-n", 1000, env=env))) for p in range(2))
    wait_retired(k)
    check_trace(k, trace, total)
    equal(len(owners(trace)), 2, "processes with files")


def test_forks(k):
    """A forked child has its own buffers, while its parent continues in its own ones."""
    k.start_daemon()
    trace = k.record("processes:*", channel=ROOMY)
    total = int(k.app("processes", "forks", "10"))
    wait_retired(k)
    k.kymo("stop", "s")
    check_counts(k, trace, total)
    equal(len({pid for pid, _ in owners(trace)}), 11, "processes with files")


def memories(pid):
    """
    Counts the process's descriptors for each kind of Kymo's memories, and how many of these it may
    write.
    """
    found, writable = {}, {}
    for fd, link, _ in kymotest.descriptors(pid):
        match = re.match(r"/memfd:kymo-(\w+)", link)
        if not match:
            continue
        try:
            info = pathlib.Path(f"/proc/{pid}/fdinfo/{fd}").read_text()
        except FileNotFoundError:  # closed meanwhile
            continue
        flags = int(re.search(r"flags:\s*(\d+)", info)[1], 8)
        found[match[1]] = found.get(match[1], 0) + 1
        writable[match[1]] = writable.get(match[1], 0) + (flags & os.O_ACCMODE == os.O_RDWR)
    return found, writable


def test_descriptors(k, n=12):
    """
    Daemon and consumer keep two descriptors for each process. The daemon opens a read-only
    descriptor only when it passes it to another process.
    """
    k.start_daemon()
    k.record("emit:*", channel=OWN)
    apps = [k.spawn("emit", "-n", 1, "-w") for _ in range(n)]
    for app in apps:
        k.expect(app, "ready")
        k.let_go(app)
        k.read_until(app, "done")
    sets = {"rings": n, "consumed": n}
    wait_for(lambda: {name: memories(consumer(k))[0].get(name) for name in sets} == sets, "the sets to reach the consumer")
    # The daemon closes a moment later, after it has passed them on.
    both = {**sets, "metadata": 1, "session": 1}
    wait_for(lambda: memories(k.daemon.pid) == (both, both), lambda: f"the daemon's to be {both}: {memories(k.daemon.pid)}")
    found, writable = memories(consumer(k))
    # the trace's, and the one for a successor
    check(found["metadata"] <= 2, f"the consumer's: {found}")
    equal({name: writable[name] for name in found}, {"rings": 0, "consumed": n, "metadata": 0, "session": 1}, "those that the consumer may write")
    for app in apps:
        k.let_go(app)
        k.finish(app)


@kymotest.without_sanitizers
def test_sets_that_the_consumer_never_got(k):
    """
    The consumer is stopped while programs get more buffers than its socket has room for, and the
    daemon is killed: kymo status says how many buffers are lost. No other event is missing.
    """
    k.start_daemon()
    ask(k, "create", session="s", output=str(k.traces / "s"))
    for i in range(CHANNELS):
        ask(k, "enable-channel", session="s", channel=f"c{i}", buffers="process", **{"subbuf-size": 4096, "num-subbuf": 2})
        ask(k, "enable-event", session="s", channel=f"c{i}", patterns=["emit:*"])
    ask(k, "start", session="s")
    stopped = consumer(k)
    os.kill(stopped, signal.SIGSTOP)
    for p in range(6):
        k.app("emit", "-n", 10, "-p", p)
    kill_daemon(k)
    os.kill(stopped, signal.SIGCONT)
    restart(k)
    said = wait_for(lambda: re.search(r"(\d+) sets of buffers had not reached the consumer", k.kymo("status", "s", status=None).stdout), "the warning")
    ask(k, "stop", session="s")
    check_counts(k, k.traces / "s", 10 * (6 * CHANNELS - int(said.group(1))))


def test_no_descriptors_left(k, n=41):
    """
    A second channel needs more descriptors than the daemon may have: its last sets are refused. The
    consumer goes on, and the first channel loses nothing.
    """
    small = (*OWN, "--subbuf-size=4K", "--num-subbuf=2")
    k.start_daemon(wrap=["prlimit", "--nofile=256:256"])
    trace = k.record("emit:*", channel=small)
    apps = [k.spawn("emit", "-n", 1, "-p", p, "-w") for p in range(n)]
    for app in apps:
        k.expect(app, "ready")
    before = consumer(k)
    k.kymo("enable-channel", "-s", "s", "second", *small)
    k.kymo("enable-event", "-s", "s", "-c", "second", "emit:*")
    said = k.kymo("status", "s").stdout
    check("channel 'second': cannot record" in said and "Too many open files" in said and "ulimit -n" in said, said)
    for app in apps:
        k.let_go(app)
        k.read_until(app, "done")
        k.let_go(app)
        k.finish(app)
    equal(consumer(k), before, "the consumer")
    k.kymo("destroy", "s")
    events = kymotest.read_trace(trace)[0]
    seen = {kymotest.integers(e)["process"] for e in events}
    equal(seen, set(range(n)), "processes in the trace")
    check(n < len(events) < 2 * n, f"{len(events)} events in two channels")


def test_short_processes(k):
    """Many processes have exited: no descriptor of theirs is left, no mapping, and no memory."""
    k.start_daemon()
    trace = k.record("emit:*", channel=OWN)
    k.app("emit", "-n", 1)
    wait_retired(k)
    pid = consumer(k)
    descriptors = lambda: (len(kymotest.open_fds(k.daemon.pid)), len(kymotest.open_fds(pid)))
    before = descriptors()
    n = 200 // SCALE
    total = 1 + sum(sum(emitted(k.app("emit", "-p", p, "-n", 10))) for p in range(1, n + 1))
    wait_retired(k)
    # A connection that ends just now may count before or after: allow a few. A leak has n or more.
    wait_for(
        lambda: all(now < then + n // 2 for now, then in zip(descriptors(), before)) and not any("rings" in memories(p)[0] for p in (k.daemon.pid, pid)),
        lambda: f"descriptors to be closed: {before} before, {descriptors()} now",
    )
    wait_for(lambda: "kymo-rings" not in pathlib.Path(f"/proc/{pid}/maps").read_text(), "the consumer to map no rings of the dead")
    check_trace(k, trace, total)


def test_killed(k):
    """The events that a process had recorded before it was killed are in the trace."""
    k.start_daemon()
    trace = k.record("emit:*", channel=(*ROOMY, "--switch-timer=0"))
    apps = [k.spawn("emit", "-p", p, "-n", 1000, "-w") for p in range(3)]
    for app in apps:
        k.expect(app, "ready")
        k.let_go(app)
        k.read_until(app, "done")
        app.kill()
        app.wait()
    wait_retired(k)
    check_trace(k, trace, 3000)
    equal(len(owners(trace)), 3, "processes with files")


def test_consumer_killed(k):
    """
    Consumers are killed while processes start and exit: each event is in the trace once, or counted
    once.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    stop = threading.Event()

    def kill():
        while not stop.wait(0.1):
            for pid in kymotest.consumers(k):
                with contextlib.suppress(ProcessLookupError):  # it was still dying when it was found
                    os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        total = sum(sum(emitted(k.app("emit", "-p", p, "-t", 2, "-n", 200))) for p in range(100 // SCALE))
    finally:
        stop.set()
        killer.join()
    wait_retired(k)
    check_trace(k, trace, total)


def test_daemon_killed(k):
    """
    Some processes exit while there is no daemon, others continue: the successor finds their
    buffers, or releases them.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    total = sum(emitted(k.app("emit", "-p", 9, "-n", 50)))
    wait_retired(k)
    apps = [k.spawn("emit", "-p", p, "-n", 1000, "-w") for p in range(3)]
    for app in apps:
        k.expect(app, "ready")
    kill_daemon(k)
    for app in apps:
        k.let_go(app)
        k.read_until(app, "done")
    k.let_go(apps[0])
    k.finish(apps[0])
    restart(k)
    wait_retired(k, 2)
    for app in apps[1:]:
        k.let_go(app)
        k.finish(app)
    wait_retired(k)
    total += 3000 + sum(emitted(k.app("emit", "-p", 5, "-n", 100)))
    wait_retired(k)
    check_trace(k, trace, total)
    equal(len(owners(trace)), 5, "sets that had files")


def test_snapshot(k):
    """
    In overwrite mode, the buffers of the 16 processes that exited last are kept for snapshots.
    """
    k.start_daemon()
    k.kymo("create", "s", "--snapshot", "-o", k.traces / "s")
    k.kymo("enable-channel", "channel0", "-s", "s", *OWN)
    k.kymo("enable-event", "-s", "s", "emit:*")
    k.kymo("start", "s")
    for p in range(20):
        k.app("emit", "-p", p, "-n", 10)
    wait_retired(k, 16)
    taken = k.kymo_json("snapshot", "record", "-s", "s")["snapshot"]
    equal((taken["recorded"], taken["overwritten"]), (160, 40), "events, and those of buffers that were given up")
    (trace,) = [p for p in (k.traces / "s").iterdir() if p.is_dir()]
    events, _ = kymotest.read_trace(trace)
    equal({kymotest.integers(e)["process"] for e in events}, set(range(4, 20)), "processes in the snapshot")


def test_snapshot_of_a_successor(k):
    """The next daemon keeps the buffers of the same processes, and gives up the oldest first."""
    k.start_daemon()
    k.kymo("create", "s", "--snapshot", "-o", k.traces / "s")
    k.kymo("enable-channel", "channel0", "-s", "s", *OWN)
    k.kymo("enable-event", "-s", "s", "emit:*")
    k.kymo("start", "s")
    for p in range(16):
        k.app("emit", "-p", p, "-n", 10)
    kill_daemon(k)
    restart(k)
    k.app("emit", "-p", 16, "-n", 10)
    wait_retired(k, 16)
    k.kymo("snapshot", "record", "-s", "s")
    (trace,) = [p for p in (k.traces / "s").iterdir() if p.is_dir()]
    equal({kymotest.integers(e)["process"] for e in kymotest.read_trace(trace)[0]}, set(range(1, 17)), "processes in the snapshot")


if __name__ == "__main__":
    kymotest.main()
