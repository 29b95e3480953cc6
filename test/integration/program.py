# SPDX-License-Identifier: MIT
"""
Simulated applications, and control requests as JSON, to test the session daemon through its
protocols only.
"""

import mmap
import os
import socket
import struct
import time

from kymotest import TIMEOUT, Geometry, check, equal

HELLO, EVENTS, NEW_EVENTS, ACK, UNCOUNTED = 1, 2, 3, 4, 5
# sent at any time before an ACK of START: applications did not wait for a simulated daemon
LATE = 7
LEFT_OUT = 8
QUERY, RING_SET, MAP, UNMAP, START, STOP, DROP, DONE, CONTEXTS, FILTERS, STATEDUMP = range(16, 27)
CAP_RSEQ, CAP_TSC = 1, 2
UINT, STRING = 2, 6
REFUSED = 0xFFFFFFFE  # an identifier in MAP


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<I", len(s)) + s + b"\0"


def blob(b):
    return struct.pack("<I", len(b)) + b


def description(name, *fields, provider="shop", level=13):
    """Encodes a description. Fields: (kind, size, name)."""
    out = text(provider) + text(name) + struct.pack("<iI", level, len(fields))
    for kind, size, field in fields:
        out += blob(struct.pack("<BBBBI", kind, 0, size, 0, 0) + text(field))
    return out


def entries(events, indexes):
    """Encodes the list of EVENTS and HELLO."""
    return blob(b"".join(struct.pack("<I", i) + blob(events[i]) for i in indexes))


def listed(*events, n=None):
    """Returns the end of a HELLO that lists these events; n: says that there are so many."""
    return struct.pack("<I", len(events) if n is None else n) + entries(events, range(len(events)))


ORDER = description("order", (UINT, 8, "id"))
ORDER_TEXT = description("order", (STRING, 0, "id"))
EMPTY = description("empty")


def map_entries(payload):
    """Decodes MAP: the set's number, and the identifier of each event."""
    number, n, _ = struct.unpack_from("<III", payload)
    mapped, at = {}, 12
    for _ in range(n):
        index, identifier, _, n_filters = struct.unpack_from("<IIII", payload, at)
        mapped[index] = identifier
        at += 16 + 4 * n_filters
    return number, mapped


class Program:
    """
    An application without a tracer: its events are descriptions, and it sends only the messages
    that the test requests.
    """

    def __init__(self, k, *events, caps=CAP_RSEQ | CAP_TSC, name="prog", hello=True, version=2, process=0, more=b""):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # this call waits while the daemon's queue is full
        self.socket.connect(str(k.rundir / "app.sock"))
        self.socket.settimeout(TIMEOUT)
        self.events = list(events)
        self.fds = {}
        self.kind, self.geometry = {}, {}  # of ring sets: mode and clock
        self.ahead = None  # a message that was received, but is not expected yet
        self.position = {}
        if hello:
            self.send(HELLO, struct.pack("<IIIII", version, 64, caps, 1, len(events)) + text(name) + struct.pack("<I", process) + more)

    def send(self, kind, payload):
        self.socket.send(struct.pack("<IHH", len(payload) + 8, kind, 0) + payload)

    def receive(self):
        """
        Returns the next message: (type, payload); None when the daemon has closed the connection.
        """
        if self.ahead:
            message, self.ahead = self.ahead, None
            return message
        data, fds, _, _ = socket.recv_fds(self.socket, 65536, 4)
        if not data:
            return None
        length, kind, _ = struct.unpack_from("<IHH", data)
        equal(length, len(data), "length in a message")
        payload = data[8:]
        if kind == RING_SET:
            number, mode, clock, _, *sizes, total = struct.unpack_from("<7IQ", payload)
            self.fds[number] = fds
            self.kind[number] = (mode, clock)
            self.geometry[number] = Geometry(*sizes, mode)
            equal(self.geometry[number].total, total, "size of a ring set")
            self.position[number] = 0
        else:
            equal(fds, [], "descriptors with another message")
        return kind, payload

    def expect(self, kind):
        message = self.receive()
        check(message, f"the daemon hung up instead of sending {kind}")
        equal(message[0], kind, "type of message")
        return message[1]

    def expect_query(self):
        number, n = struct.unpack_from("<II", self.expect(QUERY))
        return number, n

    def answer(self, number, *indexes):
        """Replies that all events, or those with these indexes, match."""
        indexes = indexes or range(len(self.events))
        self.send(EVENTS, struct.pack("<III", number, 0, len(indexes)) + entries(self.events, indexes))

    def expect_map(self):
        """
        Returns what the next MAP maps, and those that follow it: a daemon that finds little time
        maps the events in parts.
        """
        number, mapped = map_entries(self.expect(MAP))
        while (message := self.receive()) and message[0] == MAP:
            mapped.update(map_entries(message[1])[1])
        self.ahead = message
        return number, mapped

    def acknowledge(self, kind):
        cookie, number = struct.unpack("<II", self.expect(kind))
        self.send(ACK, struct.pack("<Ii", cookie, 0))
        return number

    def serve(self):
        """
        Behaves as an application: replies until the daemon sends DONE; returns what was mapped.
        """
        mapped = {}
        while True:
            message = self.receive()
            if not message:
                raise ConnectionError("the daemon hung up")
            kind, payload = message
            if kind == QUERY:
                self.answer(struct.unpack_from("<I", payload)[0])
            elif kind == MAP:
                mapped.update(map_entries(payload)[1])
            elif kind in (START, STOP, DROP):
                self.send(ACK, payload[:4] + struct.pack("<i", 0))
            elif kind == DONE:
                return mapped

    def record(self, number, identifier, payload):
        """Publishes a record in ring 0 of the set, as docs/shm-abi.md describes."""
        geometry = self.geometry[number]
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        record = struct.pack("<BIQ", 31, identifier, now) + payload
        with mmap.mmap(self.fds[number][0], geometry.total) as memory:
            control = geometry.control_of(0)
            head, = struct.unpack_from("<Q", memory, control)
            at = geometry.data_of(0) + (head & 0xFFFFFFFF)
            memory[at:at + len(record)] = record
            struct.pack_into("<Q", memory, control + 16, now)
            struct.pack_into("<Q", memory, control, head + (1 << 32) + len(record))

    def close(self):
        for fds in self.fds.values():
            for fd in fds:
                os.close(fd)
        self.socket.close()


def ask(k, command, **parameters):
    """Sends a request that must succeed."""
    return k.ask(command, **parameters)


def refused(k, code, words, **request):
    reply = k.request(**request)
    check(not reply["ok"] and reply["code"] == code and words in reply["error"], f"{request}: {reply}")


class Daemon:
    """
    A session daemon without sessions: its run directory, and a socket to which applications
    connect. Used in `with`.
    """

    def __init__(self, k, n_active=1, fifo=True, backlog=64):
        self.rundir = k.rundir
        self.rundir.mkdir(mode=0o700, exist_ok=True)
        self.publish(n_active)
        if fifo and not (self.rundir / "wake").exists():
            os.mkfifo(self.rundir / "wake")
        (self.rundir / "app.sock").unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.settimeout(TIMEOUT)
        self.listener.bind(str(self.rundir / "app.sock"))
        self.listener.listen(backlog)

    def publish(self, n_active, progress=1):
        (self.rundir / "state").write_bytes(struct.pack("<IIIIQ", 0x54534B59, 24, os.getpid(), n_active, progress))

    def accept(self):
        """Accepts the next application: returns its connection, and its registration."""
        peer = Peer(self.listener.accept()[0])
        peer.hello = peer.expect(HELLO)
        return peer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class Peer:
    """The daemon's end of an application's connection."""

    def __init__(self, connection):
        self.socket = connection
        self.socket.settimeout(TIMEOUT)

    def send(self, kind, payload, fds=()):
        socket.send_fds(self.socket, [struct.pack("<IHH", len(payload) + 8, kind, 0) + payload], fds)

    def expect(self, kind):
        data = self.socket.recv(65536)
        while kind != LATE and data[4:6] == struct.pack("<H", LATE):
            data = self.socket.recv(65536)
        check(data, f"the program hung up instead of sending {kind}")
        equal(struct.unpack_from("<IH", data), (len(data), kind), "length and type of a message")
        return data[8:]

    def order(self, kind, number, more=b""):
        """Sends START, STOP or DROP; returns the status in the ACK."""
        self.send(kind, struct.pack("<II", 77, number) + more)
        cookie, status = struct.unpack("<Ii", self.expect(ACK))
        equal(cookie, 77, "cookie of an ACK")
        return status

    def close(self):
        self.socket.close()
