#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Hostile applications of one user: `attack.py APP_SOCKET UID KIND N` becomes that user, opens N
connections, and sends what costs the session daemon most, until its standard input is closed. It
prints a line when all connections are made. The tests and the benchmark of hostile users run it.

Each function below is one kind of attack: it is called with a connection, again and again, and
sends or receives without waiting. ConnectionError means that the daemon has dropped the connection:
then there is a new one.
"""

import contextlib
import functools
import os
import resource
import select
import socket
import struct
import sys
import time

from program import ACK, CAP_RSEQ, CAP_TSC, DROP, EVENTS, HELLO, LATE, NEW_EVENTS, QUERY, START, STATEDUMP, STOP, UINT, blob, description, text

ENUM = 5
FULL = 64000  # bytes of the largest messages


def message(kind, payload):
    return struct.pack("<IHH", len(payload) + 8, kind, 0) + payload


def events(query, entries, n, more=1):
    return message(EVENTS, struct.pack("<III", query, more, n) + blob(entries))


@functools.cache
def malformed():
    """As many descriptions as a message holds, of which only the last field is malformed."""
    names = [(UINT, 8, f"f{i:03}") for i in range(254)]
    one = struct.pack("<I", 1) + blob(description("evil", *names, (UINT, 8, names[0][2])))
    return one * (FULL // len(one)), FULL // len(one)


@functools.cache
def small(first, n):
    """Valid descriptions, each as short as possible."""
    return b"".join(struct.pack("<I", (first + i) % 65536) + blob(description(f"e{(first + i) % 65536}")) for i in range(n))


@functools.cache
def same_name(first, n):
    return b"".join(struct.pack("<I", (first + i) % 65536) + blob(description("same", (UINT, 8, f"f{first + i}"))) for i in range(n))


@functools.cache
def labels(index):
    """One description of 31 KB, of which the metadata has little."""
    values = b"".join(text("x") + struct.pack("<QQ", n, n) for n in range(1400))
    field = struct.pack("<BBBBI", ENUM, 0, 8, 0, 0) + text("f") + text("e") + struct.pack("<I", 1400) + values
    return struct.pack("<I", index) + blob(text("shop") + text(f"l{index}") + struct.pack("<iI", 13, 1) + blob(field))


class Connection:
    def __init__(self, path, number):
        self.path, self.number, self.socket = path, number, None
        self.reset()

    def reset(self):
        if self.socket:
            self.socket.close()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setblocking(False)
        self.query, self.turn, self.ready = None, 0, False
        self.waiting = None

    def begin(self, caps=CAP_RSEQ | CAP_TSC, process=0):
        """Connects and registers. False: the daemon's queue is full, try later."""
        if self.ready:
            return True
        try:
            self.socket.connect(self.path)
        except BlockingIOError:
            return False
        except OSError as e:
            if e.errno != 106:  # connected
                raise ConnectionError from e
        self.ready = True
        self.send(message(HELLO, struct.pack("<IIIII", 2, 64, caps, os.getpid(), 1) + text("evil") + struct.pack("<I", process)))
        return True

    def send(self, data):
        """False: the daemon has not read what was sent before."""
        try:
            self.socket.send(data)
        except BlockingIOError:
            return False
        except OSError as e:
            raise ConnectionError from e
        return True

    def receive(self):
        """Returns the next message, or None."""
        try:
            data, fds, _, _ = socket.recv_fds(self.socket, 65536, 4)
        except BlockingIOError:
            return None
        except OSError as e:
            raise ConnectionError from e
        for fd in fds:
            os.close(fd)
        if not data:
            raise ConnectionError
        kind = struct.unpack_from("<IHH", data)[1]
        if kind == QUERY:
            self.query = struct.unpack_from("<I", data, 8)[0]
        return kind, data[8:]

    def drain(self):
        for _ in range(64):
            if not self.receive():
                return

    def flood(self, make):
        """Sends what make(query, turn) returns, as much as fits, once there is a query."""
        if not self.begin():
            return
        while self.query is None:
            if not self.receive():
                return
        for _ in range(8):
            if not self.send(make(self.query, self.turn)):
                break
            self.turn += 1
        self.drain()


def attack_malformed(c):
    """Descriptions that are expensive to refuse."""
    c.flood(lambda query, turn: events(query, *malformed()))


def attack_small(c):
    """Valid events, as many as a message holds, and often others."""
    c.flood(lambda query, turn: events(query, small((c.number * 8 + turn) % 12 * 1600, 1600), 1600))


def attack_same_name(c):
    """Other definitions of one name in each message."""
    c.flood(lambda query, turn: events(query, same_name((c.number * 8 + turn) % 50 * 1200, 1200), 1200))


def attack_labels(c):
    """Descriptions that fill the user's share of the journal."""
    c.flood(lambda query, turn: events(query, labels((c.number * 100 + turn) % 2000), 1))


def attack_tables(c):
    """One event at the highest number needs large tables; then the connection ends."""
    if not c.begin():
        return
    while c.query is None:
        if not c.receive():
            return
    c.send(events(c.query, struct.pack("<I", 65535) + blob(description("order", (UINT, 8, "id"))), 1, 0))
    raise ConnectionError


def attack_new_events(c):
    """Requests to be queried again; what the daemon sends is not read, or read but not answered."""
    if not c.begin():
        return
    while c.send(message(NEW_EVENTS, struct.pack("<I", 3))):
        pass
    if c.number % 2:
        c.drain()


def attack_churn(c):
    """Connects, registers, and hangs up."""
    if c.begin(caps=CAP_TSC, process=c.number + 1):
        raise ConnectionError


def attack_halves(c):
    """Messages of a few bytes, and connections that send nothing."""
    with contextlib.suppress(OSError):
        c.socket.connect(c.path)
    c.turn += 1
    if c.number % 2 and c.turn % 10 == 0:
        c.send(b"\x10\0\0\0\1")


def attack_silent(c):
    """Registers events and starts to record; confirms nothing that takes effect."""
    serve(c, ())


def attack_late(c):
    """Confirms each order just before the daemon would stop waiting."""
    serve(c, (START, STOP, DROP, STATEDUMP), 0.08)


def serve(c, confirmed, delay=0):
    if not c.begin():
        return
    if c.waiting and time.monotonic() >= c.waiting[0][0]:
        c.send(c.waiting.pop(0)[1])
    while got := c.receive():
        kind, payload = got
        if kind == QUERY:
            c.send(events(c.query, struct.pack("<I", 0) + blob(description("order", (UINT, 8, "id"))), 1, 0))
        elif kind in confirmed:
            c.waiting = (c.waiting or []) + [(time.monotonic() + delay, message(ACK, payload[:4] + struct.pack("<i", 0)))]


def attack_untimely(c):
    """Messages that concern no order: acknowledgements and delays, of random numbers."""
    if not c.begin():
        return
    for i in range(200):
        c.turn += 1
        if not c.send(message(ACK, struct.pack("<Ii", c.turn, -7)) if i & 1 else message(LATE, struct.pack("<IQ", c.turn % 64, 1 << 60))):
            break
    c.drain()


KINDS = {name.removeprefix("attack_"): f for name, f in list(globals().items()) if name.startswith("attack_")}


def main(path, uid, kind, n):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    if os.getuid() != int(uid):
        os.setgroups([])
        os.setgid(int(uid))
        os.setuid(int(uid))
    kinds = list(KINDS) if kind == "all" else kind.split(",")
    crowd = [Connection(path, i) for i in range(int(n))]
    poll, said = select.poll(), False
    poll.register(0, select.POLLIN | select.POLLHUP)
    while not poll.poll(0):
        for c in crowd:
            try:
                KINDS[kinds[c.number % len(kinds)]](c)
            except ConnectionError:
                c.reset()
        if not said:
            print("ready", flush=True)
            said = True


if __name__ == "__main__":
    main(*sys.argv[1:])
