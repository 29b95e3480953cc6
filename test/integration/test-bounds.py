#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A trace on disk has bounds: its size, the free space, and the number, size and age of its chunks.
The oldest chunks are removed, and counted exactly.
"""

import os
import pathlib
import signal
import subprocess

import kymotest
from fuse import Files
from kymotest import APPS, ONE_CPU, check, equal, read_trace, wait_for

MIB = 1 << 20


def status(k, session="s"):
    return k.kymo_json("status", session)["session"]


def used(trace):
    """Returns the bytes of a directory on disk; 0 while there is none, as between two chunks."""
    words = subprocess.run(["du", "-s", "-B1", trace], capture_output=True, text=True, check=False).stdout.split()
    return int(words[0]) if words else 0


def free(path):
    """Returns the bytes that are free on a file system."""
    st = os.statvfs(path)
    return st.f_bavail * st.f_frsize


def chunks(trace):
    found = trace / "archives"
    return sorted(p.name for p in found.iterdir() if not p.name.startswith(".")) if found.exists() else []


def exact(k, trace, emitted, session="s"):
    """
    recorded + discarded = emitted, and the trace has what was recorded and not removed. A chunk may
    be removed, or a rotation end, while the trace is read: then it is read again.
    """
    while True:
        s = status(k, session)
        events = read_trace(trace)[0]
        if status(k, session)["rotation"] == s["rotation"]:
            break
    equal(s["recorded"] + s["discarded"], emitted, f"counts of {s}")
    equal(len(events), s["recorded"] - s["rotation"]["expired_events"], f"events in the trace, {s['rotation']}")
    return s["rotation"]


def emit(k, rounds, each=40000, trace=None):
    """trace: waits each time until rotations have made its present chunk small."""
    for number in range(rounds):
        # on one CPU: what its ring holds will take room on the disk too
        k.run([*ONE_CPU, APPS / "emit", "-n", each, "-p", number])
        if trace:
            wait_for(lambda: used(trace / "ust") < 4 * MIB, "a rotation")
    return rounds * each


def test_max_disk(k):
    """More than the bound is recorded; the consumer's and the daemon's death do not count twice."""
    k.start_daemon()
    trace = k.traces / "s"
    k.kymo("create", "s", "-o", trace, "--max-disk=12M")
    k.kymo("enable-channel", "channel0", "-s", "s", "--num-subbuf=16")
    k.kymo("enable-event", "-s", "s", "emit:*")
    k.kymo("start", "s")
    emitted = emit(k, 16, trace=trace)
    # The buffers discard some if the consumer gets no CPU; these do not get to the disk.
    while not status(k)["rotation"]["expired_chunks"]:
        emitted += emit(k, 1, trace=trace)
        check(emitted < 20000000, status(k))
    (consumer,) = kymotest.consumers(k)
    os.kill(consumer, signal.SIGKILL)
    wait_for(lambda: kymotest.consumers(k) not in ([], [consumer]) and status(k)["rotation"]["expired_chunks"], "the next consumer")
    emitted += emit(k, 6, trace=trace)
    k.daemon.kill()
    k.daemon.wait()
    k.daemon = None
    k.start_daemon()
    emitted += emit(k, 6, trace=trace)
    k.kymo("stop", "s")
    k.kymo("rotate", "s", status=None)
    # Chunks are removed once a second, after the session has stopped too.
    wait_for(lambda: used(trace) <= 12 * MIB + 64 * 1024, lambda: f"chunks to be removed: {used(trace)} bytes on disk")
    rotation = exact(k, trace, emitted)
    check(rotation["expired_events"] and rotation["expired_bytes"], rotation)
    equal(rotation["max_disk"], 12 * MIB, "the bound after the daemon's death")
    check("were removed with the oldest" in k.kymo("status", "s").stdout, "not said in status")


def test_size_after_a_dead_daemons_order(k):
    """
    The consumer carries out a rotation after the daemon that ordered it was killed. The size of the
    new chunk includes the events that came before the next daemon.
    """
    k.start_daemon()
    trace = k.record("emit:*")
    k.kymo("enable-rotation", "s", "--size=512K")
    app = k.spawn("emit", "-w", "-n", 30000)
    equal(app.stdout.readline(), "ready\n", "first line of emit")
    emitted = emit(k, 1, each=10)
    (consumer,) = kymotest.consumers(k)
    kymotest.stop(consumer)
    k.kymo("rotate", "s", status=None)  # reports that the consumer does not answer
    k.daemon.kill()
    k.daemon.wait()
    k.daemon = None
    os.kill(consumer, signal.SIGCONT)
    wait_for(lambda: chunks(trace), "the rotation")
    app.stdin.write("\n")
    app.stdin.flush()
    wait_for(lambda: used(trace / "ust") > 512 * 1024, "a chunk that has its size")
    k.start_daemon()
    wait_for(lambda: len(chunks(trace)) == 2, "the next rotation")
    k.finish(app)
    k.kymo("stop", "s")
    exact(k, trace, emitted + 30000)


def test_order_before_the_consumer_connects(k):
    """The timer of rotations runs before the predecessor's consumer has connected."""
    k.start_daemon()
    trace = k.record("emit:*")
    emitted = emit(k, 1, each=10)
    k.kymo("enable-rotation", "s", "--timer=1ms")
    wait_for(lambda: chunks(trace), "a rotation")
    k.daemon.kill()
    k.daemon.wait()
    k.daemon = None
    k.start_daemon()
    before = len(chunks(trace))
    emitted += emit(k, 1, each=10)
    wait_for(lambda: len(chunks(trace)) > before, "another rotation")
    k.kymo("stop", "s")
    exact(k, trace, emitted)


def rotated(k, n):
    for number in range(n):
        k.app("emit", "-n", 10, "-p", number)
        k.kymo("rotate", "s")
    return 10 * n


def test_keep_chunks(k):
    k.start_daemon()
    trace = k.record("emit:*")
    k.kymo("enable-rotation", "s", "--keep=3")
    emitted = rotated(k, 6)
    wait_for(lambda: len(chunks(trace)) == 3, lambda: f"three chunks: {chunks(trace)}")
    equal([name.rpartition("-")[2] for name in chunks(trace)], ["3", "4", "5"], "the newest chunks")
    k.kymo("stop", "s")
    equal(exact(k, trace, emitted)["expired_events"], 30, "events of removed chunks")
    said = "30 recorded events were removed with the oldest 3 chunks"
    check(any(said in gap for gap in k.kymo_json("stat", trace)["gaps"]), "the reader does not say what was removed")
    check(said in k.kymo("view", trace).stderr, "view does not say what was removed")
    (trace / "archives" / ".removed").unlink()
    (trace / "archives" / ".removed").symlink_to("/dev/zero")
    equal(k.kymo_json("stat", trace)["gaps"], [], "what a link says")
    k.kymo("disable-rotation", "s", "--keep")
    equal(status(k)["rotation"]["keep_chunks"], 0, "the bound")


def test_keep_size_and_age(k):
    k.start_daemon()
    trace = k.record("emit:*")
    emitted = rotated(k, 4)
    k.kymo("enable-rotation", "s", "--keep=1K")
    wait_for(lambda: not chunks(trace), "all chunks to be removed for their size")
    k.kymo("disable-rotation", "s", "--keep")
    emitted += rotated(k, 2)
    k.kymo("enable-rotation", "s", "--keep=1s")
    wait_for(lambda: not chunks(trace), "all chunks to be removed for their age")
    k.kymo("stop", "s")
    exact(k, trace, emitted)


def test_keep_free(k):
    """Two sessions share a disk: both remove their oldest chunks, and nothing is discarded."""
    disk = k.start_daemon_with_disk("24m")
    for name in ("a", "b"):
        k.kymo("create", name, "-o", disk / name)
        k.kymo("enable-event", "-s", name, "emit:*")
        k.kymo("enable-rotation", name, "--size=512K", "--keep-free=12M")
        k.kymo("start", name)
    visible = pathlib.Path(f"/proc/{k.daemon.pid}/root{disk}")
    emitted = 0
    while not all(status(k, name)["rotation"]["expired_chunks"] for name in ("a", "b")):
        emitted += emit(k, 1)
        # Chunks are removed once a second: until then, no more is recorded than there is room for.
        wait_for(lambda: free(visible) > 10 * MIB and all(used(visible / name / "ust") < 4 * MIB for name in "ab"), "chunks to be removed")
        check(emitted < 20000000, [status(k, n)["rotation"] for n in "ab"])
    k.kymo("stop", "-a")
    wait_for(lambda: free(visible) >= 12 * MIB, lambda: f"chunks to be removed: {free(visible)} bytes are free")
    for name in ("a", "b"):
        exact(k, visible / name, emitted, name)
        equal(status(k, name)["unwritten"], 0, "events that did not get to the disk")


def test_free_space_unknown(k):
    """A file system that does not report its size is not full: --keep=1 alone removes chunks."""
    disk = k.start_daemon_with_disk("0")
    visible = pathlib.Path(f"/proc/{k.daemon.pid}/root{disk}")
    equal(os.statvfs(visible).f_blocks, 0, "blocks of a tmpfs without a limit")
    k.kymo("create", "s", "-o", disk / "s")
    k.kymo("enable-event", "emit:*")
    k.kymo("start")
    emitted = rotated(k, 3)
    k.kymo("enable-rotation", "s", "--keep=1", "--keep-free=1M")
    wait_for(lambda: status(k)["rotation"]["expired_chunks"], "the oldest chunks to be removed")
    equal((status(k)["rotation"]["expired_chunks"], len(chunks(visible / "s"))), (2, 1), "chunks removed, and kept")
    k.kymo("stop")
    exact(k, visible / "s", emitted)


def test_free_blocks(k):
    """Blocks are counted that may be smaller than the size that programs should write at once."""
    k.start_daemon()
    disk = k.top / "disk"
    disk.mkdir()
    with Files(disk) as files:
        files.available, files.preferred = 100, MIB
        k.kymo("create", "s", "-o", disk / "s")
        k.kymo("enable-event", "emit:*")
        k.kymo("start")
        emitted = rotated(k, 3)
        k.kymo("enable-rotation", "s", "--keep-free=1M")
        wait_for(lambda: status(k)["rotation"]["expired_chunks"] == 3, "all chunks to be removed")
        k.kymo("disable-rotation", "s")
        files.counted = False  # files have a size, but no blocks
        emitted += rotated(k, 3)
        k.kymo("enable-rotation", "s", "--keep=1K")
        wait_for(lambda: status(k)["rotation"]["expired_chunks"] == 6, "all chunks to be removed for their size")
        k.kymo("stop")
        exact(k, disk / "s", emitted)
        k.kymo("destroy", "s")


def test_usage(k):
    k.start_daemon()
    k.record("emit:*")
    for args in (["--keep=0"], ["--keep=x"], ["--keep=1y"], ["--keep=213503982334602d"], ["--max-disk=lots"], ["--keep-free=0"]):
        check(k.kymo("enable-rotation", "s", *args, status=2).stderr, args)
    k.kymo("enable-rotation", "s", "--max-disk=10K", status=2)
    k.kymo("create", "t", "-o", k.traces / "t", "--max-disk=10K", status=2)
    for keep, words in (("7d", "chunks of the last 168 h stay"), ("90m", "chunks of the last 90 m stay"), ("5", "the newest 5 chunks stay")):
        check(words in k.kymo("enable-rotation", "s", f"--keep={keep}").stdout, keep)
    # more than the disk has: as the first command of a session, and later
    for args in (("enable-rotation", "s"), ("create", "t", "-o", k.traces / "t")):
        check("bytes cannot stay free: the disk of the trace has" in k.kymo(*args, "--keep-free=9000000G", status=2).stderr, args)
    refused = k.kymo("add-trigger", "-s", "s", "--when=disk-free < 9000000G", "--do=notify", status=1).stderr
    check("would always be true" in refused, refused)
    equal([s["name"] for s in k.kymo_json("list")["sessions"]], ["s"], "sessions")
    equal(k.kymo_json("status", "s")["session"]["rotation"].get("keep_free", 0), 0, "bound after refusals")


kymotest.main()
