#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A consumer does not run: commands reply soon and name it, and the counts are those of the buffers.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import time

import kymotest
from fuse import Files, HungFiles
from kymotest import check, equal, read_trace, wait_for
from program import ask

SMALL = ("--num-subbuf=4", "--subbuf-size=16K")
SOON = 20  # seconds: less than a client waits (30), enough for a busy machine


def hang(k, channel=SMALL, events=50000, env=None):
    """Starts a session whose consumer is stopped while a program records."""
    k.start_daemon(env=env)
    trace = k.record("emit:*", channel=channel)
    k.app("emit", "-n", 10, "-p", 1)
    wait_for(lambda: status(k)["session"]["recorded"] == 10, "the first events to be written")
    (consumer,) = kymotest.consumers(k)
    kymotest.stop(consumer)
    k.app("emit", "-n", events, "-p", 2)
    return trace, consumer


def status(k):
    return k.kymo_json("status", "s")


def named(k, consumer):
    """Returns the warning about the consumer, once it is late."""
    said = [w for w in status(k)["warnings"] if f"(pid {consumer})" in w]
    return said and said[0]


def consumer_warnings(k):
    """On a busy machine there may be one for a moment."""
    return [w for w in status(k)["warnings"] if "consumer" in w]


def soon(k, *args):
    """Runs a command that fails, and reports the reason in time."""
    begin = time.monotonic()
    said = k.kymo(*args, status=1).stderr
    check(time.monotonic() - begin < SOON, f"{args} took {time.monotonic() - begin:.1f} s")
    return said


def last_step_ns(k):
    """Returns the clock of the consumer's last step, by the session's memory (abi/resume.h)."""
    fd, = [fd for fd, link, _ in kymotest.descriptors(k.daemon.pid) if link.startswith("/memfd:kymo-session")]
    return struct.unpack_from("<Q", pathlib.Path(f"/proc/{k.daemon.pid}/fd/{fd}").read_bytes(), 40)[0]


def test_consumers_that_die(k):
    """If no consumer can write the rest, destroy says how many events are lost."""
    programs = k.top / "programs"
    programs.mkdir()
    consumerd = programs / "kymo-consumerd"
    consumerd.symlink_to(kymotest.RUN_FROM / "src/consumerd/kymo-consumerd")
    _, consumer = hang(k, env={"KYMO_LIBEXECDIR": str(programs)})
    consumerd.unlink()
    consumerd.write_text("#!/bin/sh\nexit 1\n")
    consumerd.chmod(0o755)
    os.kill(consumer, signal.SIGKILL)
    said = k.kymo("destroy", "s", status=1).stderr
    check("died repeatedly: 50000 events that were not written out are lost" in said, said)


def test_status(k):
    """
    status names the consumer, what it does and since when, and how many events are in the buffers
    or discarded.
    """
    trace, consumer = hang(k)
    said = wait_for(lambda: named(k, consumer), "status to name the consumer")
    check("stopped by a signal" in said and f"kill -CONT {consumer}" in said, said)
    seconds = int(said.split(" for ")[1].split()[0])
    wait_for(lambda: int(named(k, consumer).split(" for ")[1].split()[0]) > seconds, "the time to go on")
    s = status(k)["session"]
    equal(s["recorded"] + s["in_buffers"] + s["discarded"], 50010, "events recorded, in the buffers and discarded")
    check(s["in_buffers"] > 0 and s["discarded"] > 0, s)
    check(50 < s["fill"] <= 100, f"the fill of a buffer that has no room: {s['fill']} %")
    shown = json.loads(k.kymo("--json", "top", "s", "-d", "10ms", "--rounds=1").stdout)
    equal(shown["fill"], s["fill"], "the fill that top shows")
    check("buffers ▇▇▇▇▇" in (text := k.kymo("top", "s", "-d", "10ms", "--rounds=1").stdout) and f" {s['fill']} %" in text, text)
    check("error: the consumer has not worked for " in text and "'kymo status s' says why" in text, f"top does not say why there are no events: {text}")
    check(shown["silent_ms"] > 0 and shown["error"] == "", shown)
    check("\n  error: the consumer has not worked for " in (text := k.kymo("list").stdout), f"list does not name the problem: {text}")
    check("still in the buffers" in k.kymo("status", "s").stdout, "the text says it too")
    os.kill(consumer, signal.SIGCONT)
    wait_for(lambda: not named(k, consumer), "the warning to go")
    wait_for(lambda: not status(k)["session"]["fill"], "the buffers to be empty")
    k.kymo("destroy", "s")
    events, discarded = read_trace(trace)
    equal((len(events), discarded), (s["recorded"] + s["in_buffers"], s["discarded"]), "events in the trace, and discarded")


def test_first_status(k):
    """The first status says for how long the consumer has hung, not since when it was asked."""
    _, consumer = hang(k)
    wait_for(lambda: time.monotonic_ns() - last_step_ns(k) > 3 * 10**9, "the consumer to hang for three seconds")
    said = named(k, consumer)
    check(said and int(said.split(" for ")[1].split()[0]) >= 2, f"says: {said}")
    os.kill(consumer, signal.SIGCONT)
    k.kymo("destroy", "s")


def test_stop(k):
    """When the consumer continues, it writes the rest."""
    trace, consumer = hang(k, channel=("--num-subbuf=8", "--subbuf-size=1M"), events=1000)
    said = soon(k, "stop", "s")
    for word in ("records no more", f"(pid {consumer})", "stopped by a signal", "1000 events are still in the buffers"):
        check(word in said, f"no {word!r} in {said!r}")
    equal(status(k)["session"]["state"], "stopped", "state")
    os.kill(consumer, signal.SIGCONT)
    wait_for(lambda: status(k)["session"]["recorded"] == 1010, "the rest to be written")
    k.kymo("destroy", "s")
    equal(len(read_trace(trace)[0]), 1010, "events")


def test_destroy(k):
    """
    The session ends when its trace is complete; until then, every command that concerns it reports
    why it still exists.
    """
    trace, consumer = hang(k, channel=("--num-subbuf=8", "--subbuf-size=1M"), events=1000)
    for _ in range(2):
        said = soon(k, "destroy", "s")
        for word in (f"(pid {consumer})", "stopped by a signal", "1000 events are still in the buffers"):
            check(word in said, f"no {word!r} in {said!r}")
    os.kill(consumer, signal.SIGCONT)
    wait_for(lambda: not k.request(command="list")["sessions"], "the session to end")
    equal(len(read_trace(trace)[0]), 1010, "events")


def test_rotate_and_clear(k):
    trace, consumer = hang(k, channel=("--num-subbuf=8", "--subbuf-size=1M"), events=1000)
    said = soon(k, "rotate", "s")
    check("not rotated yet" in said and f"(pid {consumer})" in said, said)
    os.kill(consumer, signal.SIGCONT)
    wait_for(lambda: not status(k)["session"]["rotation"]["ongoing"], "the rotation")
    k.kymo("destroy", "s")
    equal(sum(len(read_trace(t)[0]) for t in (trace / "archives").iterdir()), 1010, "events")


def test_killed_instead(k):
    """Another consumer continues the work of the hung one."""
    trace, consumer = hang(k, channel=("--num-subbuf=8", "--subbuf-size=1M"), events=1000)
    soon(k, "stop", "s")
    os.kill(consumer, signal.SIGKILL)
    wait_for(lambda: status(k)["session"]["recorded"] == 1010, "the rest to be written")
    wait_for(lambda: not consumer_warnings(k), lambda: f"no warning of the consumer: {consumer_warnings(k)}")
    k.kymo("destroy", "s")
    equal(len(read_trace(trace)[0]), 1010, "events")


def test_nothing_to_do(k):
    """A consumer that waits for its next turn is not late."""
    late_ns = 10**9  # src/sessiond/peers/consumer-health.c
    k.start_daemon()
    k.record("emit:*", channel=("--switch-timer=0", "--read-timer=1000s"))
    k.app("emit", "-n", 100)
    wait_for(lambda: time.monotonic_ns() - last_step_ns(k) > late_ns, "the consumer to do nothing for longer than it may be late")
    wait_for(lambda: not consumer_warnings(k), lambda: f"no warning of the consumer: {consumer_warnings(k)}")
    k.kymo("destroy", "s")


def begin(k, **fields):
    """Sends a request whose reply nobody waits for."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(k.rundir / "control.sock"))
    s.sendall(json.dumps(fields).encode() + b"\n")
    return s


def test_files_that_do_not_answer(k):
    """
    Traces and snapshots on a file system that does not answer, not even to the end of a killed
    process: the daemon leaves these files to consumers, waits for no consumer, and answers others.
    """
    k.start_daemon()
    disks = [k.top / "hung", k.top / "other"]
    for disk in disks:
        disk.mkdir()
    with HungFiles(disks[0]) as files, HungFiles(disks[1]) as others, contextlib.ExitStack() as clients:
        clients.enter_context(begin(k, command="create", session="hung", output=str(disks[0] / "trace")))
        wait_for(lambda: files.asked, "a consumer to ask for the directory")
        equal([s["name"] for s in ask(k, "list")["sessions"]], ["hung"], "sessions")
        (k.traces / "s").mkdir(parents=True)  # one that exists could be compared with others
        ask(k, "create", session="s", output=str(k.traces / "s"))
        clients.enter_context(begin(k, command="snapshot", session="s", output=str(disks[1] / "snapshot")))
        wait_for(lambda: others.asked, "a snapshot's consumer to ask")
        ask(k, "destroy", session="s")
        equal([s["name"] for s in ask(k, "list")["sessions"]], ["hung"], "sessions")
    wait_for(lambda: not ask(k, "list")["sessions"], "the session to fail, when its files do")


def test_disk_dies_while_recording(k):
    """
    The file system stops answering while a session records there: its programs and other sessions
    do not notice, status and stop name the consumer; when it answers again, nothing is missing.
    """
    k.start_daemon()
    disk = k.top / "disk"
    disk.mkdir()
    with Files(disk) as files:
        k.kymo("create", "s", "-o", disk / "trace")
        k.kymo("enable-channel", "channel0", "--num-subbuf=8", "--subbuf-size=1M")
        k.kymo("enable-event", "emit:*")
        k.kymo("start", "s")
        k.app("emit", "-n", 10, "-p", 1)
        wait_for(lambda: status(k)["session"]["recorded"] == 10, "the first events to be written")
        (consumer,) = kymotest.consumers(k)
        try:
            files.hung = True
            k.app("emit", "-n", 1000, "-p", 2)
            wait_for(lambda: files.asked, "the consumer to write")
            said = wait_for(lambda: named(k, consumer), "status to name the consumer")
            equal(status(k)["session"]["in_buffers"], 1000, f"events in the buffers ({said})")
            k.kymo("create", "other", "-o", k.traces / "other")
            k.kymo("enable-event", "-s", "other", "emit:*")
            k.kymo("start", "other")
            k.app("emit", "-n", 100, "-p", 3)
            k.kymo("destroy", "other")
            equal(len(read_trace(k.traces / "other")[0]), 100, "events of another session")
            said = soon(k, "stop", "s")
            check(f"(pid {consumer})" in said and "1100 events are still in the buffers" in said, said)
        finally:
            files.go_on()
        wait_for(lambda: status(k)["session"]["recorded"] == 1110, "the rest to be written")
        k.kymo("destroy", "s")
        events, discarded = read_trace(disk / "trace")
        equal((len(events), discarded), (1110, 0), "events in the trace, and discarded")


def test_one_directory_by_two_names(k):
    """Two sessions cannot write into one directory, by whatever name."""
    k.start_daemon()
    ask(k, "create", session="s", output=str(k.traces / "s"))
    (k.traces / "link").symlink_to(k.traces)
    refusal = k.request(command="create", session="t", output=str(k.traces / "link" / "s"))
    equal(refusal.get("code"), "exists", refusal)
    check("another session writes into" in refusal["error"], refusal)
    refusal = k.request(command="snapshot", session="s", output=str(k.traces / "link" / "s"))
    equal(refusal.get("code"), "exists", refusal)
    ask(k, "destroy", session="s")


def test_one_directory_of_two_daemons(k):
    """Nor can sessions of two daemons; snapshots go into the directory of their session."""
    k.start_daemon()
    (k.traces / "s").mkdir(parents=True)
    ask(k, "create", session="s", output=str(k.traces / "s"))
    run = k.kymo("record", "-o", k.traces / "s", "--", "true", status=1)
    check("another session writes into" in run.stderr, run)
    ask(k, "create", session="shots", output=str(k.traces / "shots"), snapshot=True)
    ask(k, "snapshot", session="shots", output=str(k.traces / "shots"))
    ask(k, "destroy", session="s")
    ask(k, "destroy", session="shots")


def test_directory_of_another_user(k):
    """Its owner could move away what is written there: it is refused, also if it is empty."""
    if os.getuid():
        raise kymotest.Skip("giving a directory to another user needs root")
    k.start_daemon()
    (k.traces / "theirs").mkdir(parents=True)
    os.chown(k.traces / "theirs", 12345, 12345)
    refusal = k.request(command="create", session="s", output=str(k.traces / "theirs"))
    check(not refusal["ok"] and "belongs to another user" in refusal["error"], refusal)


if __name__ == "__main__":
    kymotest.main()
