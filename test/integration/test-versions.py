#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Parts of different versions: what a newer peer appends or adds is skipped; a peer that is too old is
refused with a reason.
"""

import contextlib
import importlib.util
import json
import mmap
import os
import pathlib
import socket
import struct
import threading
import time

import kymotest
from kymotest import Geometry, check, equal
from program import (ACK, CONTEXTS, DONE, EVENTS, HELLO, LEFT_OUT, MAP, NEW_EVENTS, ORDER, QUERY, RING_SET, START, STATEDUMP, STOP, UNMAP, Daemon,
    Program, ask, blob, listed, text)

# A newer peer might send these: fields after the known ones, unknown kinds of messages.
MORE = b"\x01\x02\x03\x04\x05\x06\x07"
UNKNOWN = (14, 15, 31, 200, 65535)
N_RINGS, N_BLOCKS, BLOCK = 64, 2, 1 << 16


# ---- newer and older applications


def test_newer_program(k):
    """
    Unknown capabilities, appended fields and unknown messages make no difference; its events are
    recorded.
    """
    k.start_daemon(env={"KYMO_CLOCK": "monotonic"})
    out = k.record("shop:*")
    program = Program(k, ORDER, version=1000, caps=0xFFFFFFFF, more=listed() + MORE)
    number, _ = program.expect_query()
    for kind in UNKNOWN:
        program.send(kind, MORE)
    program.send(EVENTS, struct.pack("<III", number, 0, 1) + blob(struct.pack("<I", 0) + blob(ORDER)) + MORE)
    program.expect(RING_SET)
    equal(program.expect_map(), (number, {0: 0}), "what is mapped")
    cookie, _ = struct.unpack("<II", program.expect(START))
    program.send(ACK, struct.pack("<Ii", cookie, 0) + MORE)
    equal(struct.unpack_from("<II", program.expect(STATEDUMP), 4)[0], 1, "sets that get the state dump")
    program.expect(DONE)
    program.record(number, 0, struct.pack("<Q", 4711))
    program.send(NEW_EVENTS, struct.pack("<I", 1) + MORE)
    program.expect_query()
    program.close()
    k.kymo("destroy")
    equal([kymotest.integers(e) for e in kymotest.read_trace(out)[0]], [{"id": 4711}], "events")


def test_older_program(k):
    """It is refused, and a user whose rule finds no events learns the reason."""
    k.start_daemon()
    k.record("shop:*")
    program = Program(k, ORDER, version=0, name="ancient")
    equal(program.receive(), None, "the connection")
    program.close()
    for words in ("ancient", str(os.getpid()), "version 0", "update libkymo"):
        check(words in k.kymo("status").stdout, f"{words!r} is not in the status")
        check(words in k.daemon_log(), f"{words!r} is not in the log")


def test_unknown_abi(k):
    k.start_daemon()
    program = Program(k, hello=False)
    program.send(HELLO, struct.pack("<IIIII", 2, 128, 3, 1, 0) + text("wide") + struct.pack("<I", 7))
    equal(program.receive(), None, "a program of an ABI that there is not")
    program.close()


# ---- newer and older daemons


def ring_set(mode=0):
    """
    Returns the geometry of a set of rings for all CPUs that a program can see, and its two
    descriptors.
    """
    geometry = Geometry(N_RINGS, N_BLOCKS, BLOCK, mode)
    fds = [os.memfd_create("rings"), os.memfd_create("consumed")]
    os.ftruncate(fds[0], geometry.total)
    os.ftruncate(fds[1], 4096)
    return geometry, fds


def ring_set_message(geometry, mode):
    return struct.pack("<7IQIIII", 9, mode, 0, 0, N_RINGS, N_BLOCKS, BLOCK, geometry.total, 0, 2, 1, N_BLOCKS)


def words(fd, geometry, offset):
    """Returns a word of each ring's control block: docs/shm-abi.md."""
    with mmap.mmap(fd, geometry.total, prot=mmap.PROT_READ) as memory:
        return [struct.unpack_from("<Q", memory, geometry.control_of(ring) + offset)[0] for ring in range(N_RINGS)]


def count_records(fd, geometry):
    """Counts the records published in all rings."""
    return sum(head >> 32 for head in words(fd, geometry, 0))


def count_refused(fd, geometry):
    return sum(words(fd, geometry, 64 + 8 * 3))


@contextlib.contextmanager
def asked(k, program):
    """
    A newer daemon that has queried all events of the program: yields its end, and the events'
    numbers.
    """
    with Daemon(k) as daemon:
        app = k.spawn(*program)
        peer = daemon.accept()
        for kind in UNKNOWN:
            peer.send(kind, MORE, [0] if kind == 200 else ())
        rule = text("emit:record") + struct.pack("<IiI", 0, 0, 0)
        peer.send(QUERY, struct.pack("<II", 9, 1) + blob(rule) + MORE)
        answer = peer.expect(EVENTS)
        equal(struct.unpack_from("<III", answer), (9, 0, 1), "query, more, number of events")
        yield app, peer, struct.unpack_from("<I", answer, 16)[0]
        peer.close()


def test_newer_daemon(k):
    """The program skips what it does not know, and records exactly."""
    with asked(k, ("emit", "-n", 500, "-t", 3, "-w")) as (app, peer, index):
        mode = 0 if struct.unpack_from("<I", peer.hello, 8)[0] & 1 else 1
        geometry, fds = ring_set(mode)
        peer.send(RING_SET, ring_set_message(geometry, mode) + MORE, fds)
        peer.send(MAP, struct.pack("<II", 9, 1) + blob(struct.pack("<IIII", index, 3, 0, 0)) + MORE)
        equal(peer.order(START, 9, MORE), 0, "START")
        peer.send(DONE, struct.pack("<I", 1) + MORE)
        k.expect(app, "ready")
        k.let_go(app)
        equal([app.stdout.readline() for _ in range(3)], ["records 1500\n", "signals 0\n", "done\n"], "what it says")
        equal(count_records(fds[0], geometry), 1500, "records in the rings")
        equal(peer.order(STOP, 9), 0, "STOP")
        peer.send(UNMAP, struct.pack("<II", 9, 1) + blob(struct.pack("<I", index)) + MORE)
        k.let_go(app)
        k.finish(app)
        for fd in fds:
            os.close(fd)


def test_newer_context(k):
    """Reports an event with contexts of the future, and counts its records as discarded."""
    with asked(k, ("emit", "-n", 500, "-t", 3, "-w")) as (app, peer, index):
        mode = 0 if struct.unpack_from("<I", peer.hello, 8)[0] & 1 else 1
        geometry, fds = ring_set(mode)
        peer.send(RING_SET, ring_set_message(geometry, mode), fds)
        peer.send(CONTEXTS, struct.pack("<II", 9, 1) + blob(struct.pack("<I", 200) + text("")))
        peer.send(MAP, struct.pack("<II", 9, 1) + blob(struct.pack("<IIII", index, 3, 1, 0)))
        check(b"emit:record\0" in (said := peer.expect(LEFT_OUT)) and b"contexts" in said, said)
        equal(peer.order(START, 9), 0, "START")
        peer.send(DONE, struct.pack("<I", 1))
        k.expect(app, "ready")
        k.let_go(app)
        k.expect(app, "records 1500")
        equal((count_records(fds[0], geometry), count_refused(fds[0], geometry)), (0, 1500), "records, and refused ones")
        app.kill()
        for fd in fds:
            os.close(fd)


def test_set_that_the_program_cannot_use(k):
    """
    A ring mode of the future: the daemon gets an error when it starts the set, and the program
    continues.
    """
    with asked(k, ("emit", "-n", 10, "-w")) as (app, peer, index):
        geometry, fds = ring_set()
        peer.send(RING_SET, ring_set_message(geometry, 7), fds)
        peer.send(MAP, struct.pack("<II", 9, 1) + blob(struct.pack("<IIII", index, 3, 0, 0)))
        check(peer.order(START, 9) < 0, "START of a set that it does not have")
        peer.send(DONE, struct.pack("<I", 0))
        k.expect(app, "ready")
        k.let_go(app)
        check(k.finish(app).startswith("records 10\n"), "it emits as always")
        equal(count_records(fds[0], geometry), 0, "records")
        for fd in fds:
            os.close(fd)


def test_daemon_that_refuses(k):
    """The program does not connect to it again and again."""
    with Daemon(k) as daemon:
        app = k.spawn("emit", "-w")
        daemon.accept().close()
        k.expect(app, "ready")
        daemon.accept().close()  # it connects again
        calls, end = 0, time.monotonic() + 1
        while (left := end - time.monotonic()) > 0:
            daemon.listener.settimeout(left)
            with contextlib.suppress(TimeoutError):
                daemon.accept().close()
                calls += 1
        check(calls <= 10, f"{calls} calls in a second")
    app.kill()


# ---- the control protocol


def test_newer_client(k):
    """A request that the daemon does not know is named in the error, never guessed."""
    k.start_daemon()
    for request, words in (({"command": "hello", "colour": 1}, "no parameter 'colour'"), ({"command": "dance"}, "unknown command 'dance'"),
        ({"command": "create", "output": "", "mode": "snapshot"}, "no parameter 'mode'")):
        reply = k.request(**request)
        check(reply["code"] == "usage" and words in reply["error"], reply)
    check(ask(k, "hello")["protocol"] >= 1, "the daemon's version")


def test_newer_control(k):
    """The command line ignores what a newer daemon adds to its replies."""
    k.rundir.mkdir()
    session = {"name": "s", "owner": 0, "state": "dancing", "output": "", "tempo": [1, {"a": None}], "recorded": 5}
    replies = {"list": {"ok": True, "sessions": [session], "future": {"x": [[]]}}, "start": {"ok": False, "code": "tired", "error": "it sleeps"}}

    def serve(listener):
        for _ in range(2):
            peer = listener.accept()[0]
            with peer, peer.makefile("rwb") as f:
                for line in f:
                    f.write(json.dumps(replies[json.loads(line)["command"]]).encode() + b"\n")
                    f.flush()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(k.rundir / "control.sock"))
        listener.listen()
        server = threading.Thread(target=serve, args=[listener])
        server.start()
        try:
            check("s" in k.kymo("list").stdout, "the session is listed")
            check("it sleeps" in k.kymo("start", "s", status=1).stderr, "a code that the client does not know")
        finally:
            server.join(20)


# ---- daemon and consumer


def consumer_tests():
    """Loads test-consumerd.py, which simulates the daemon for a consumer."""
    spec = importlib.util.spec_from_file_location("consumerd", pathlib.Path(__file__).with_name("test-consumerd.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_newer_daemon_of_a_consumer(k):
    play = consumer_tests()
    consumer = play.Consumer(k, k.top / "trace", version=1000, more=MORE)
    rings = play.RingSet(1)
    for kind in (18, 200, 300):
        consumer.send(kind, MORE)
    consumer.send(play.RING_SET, rings.message() + MORE, rings.fds())
    play.write_all(rings.ring[0], range(100))
    consumer.send(play.FLUSH, struct.pack("<I", 5) + MORE)
    equal(consumer.receive(play.STATS)["recorded"], 100, "recorded")
    consumer.quit()
    play.check_trace(consumer.output, rings)


def test_older_daemon_of_a_consumer(k):
    play = consumer_tests()
    consumer = play.Consumer(k, k.top / "trace", version=0)
    consumer.ended(1)
    check("Protocol not supported" in consumer.text(), consumer.text())


if __name__ == "__main__":
    kymotest.main()
