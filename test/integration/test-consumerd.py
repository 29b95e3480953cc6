# SPDX-License-Identifier: MIT
"""
kymo-consumerd alone. This file simulates the session daemon (socket, memfds, metadata) and the
applications (a plain single-threaded writer that follows docs/shm-abi.md).
"""

import contextlib
import fcntl
import mmap
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import uuid

import kymotest
from kymotest import check, equal, wait_for

CONSUMERD = kymotest.BUILD / "src" / "consumerd" / "kymo-consumerd"
DIR = "ust/uid/0/64-bit"
INIT, RING_SET, FLUSH, QUIT, ASK, SNAPSHOT, ROTATE, RETIRE, TIMERS, STATS, ERROR, ROTATED, ADOPT, ADOPTED, RETIRED = 1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 17, 18, 19, 20, 21
LIMIT_LESS = 160
FULL, TOO_BIG = 0, 1
WINDOW, LAST_TS, OLDEST = 1, 2, 3  # words of a control block

METADATA = """/* CTF 1.8 */
trace {{ major = 1; minor = 8; uuid = "{uuid}"; byte_order = le;
	packet.header := struct {{
		integer {{ size = 32; align = 8; signed = 0; base = 16; }} magic;
		integer {{ size = 8; align = 8; signed = 0; }} uuid[16];
		integer {{ size = 32; align = 8; signed = 0; }} stream_id;
		integer {{ size = 64; align = 8; signed = 0; }} stream_instance_id;
	}};
}};
env {{ hostname = "host"; domain = "ust"; tracer_name = "kymo";
	tracer_major = 0; tracer_minor = 1; }};
clock {{ name = "kymo_clock"; freq = 1000000000; offset_s = 0; offset = 0; absolute = FALSE; }};
typealias integer {{ size = 27; align = 1; signed = 0; map = clock.kymo_clock.value; }}
	:= uint27_clock_t;
typealias integer {{ size = 64; align = 8; signed = 0; map = clock.kymo_clock.value; }}
	:= uint64_clock_t;
struct event_header {{
	enum : integer {{ size = 5; align = 1; signed = 0; }}
		{{ compact = 0 ... 30, extended = 31 }} id;
	variant <id> {{
		struct {{ uint27_clock_t timestamp; }} compact;
		struct {{
			integer {{ size = 32; align = 8; signed = 0; }} id;
			uint64_clock_t timestamp;
		}} extended;
	}} v;
}} align(8);
stream {{ id = 0; event.header := struct event_header;
	packet.context := struct {{
		integer {{ size = 32; align = 8; signed = 0; }} cpu_id;
		integer {{ size = 64; align = 256; signed = 0; map = clock.kymo_clock.value; }}
			timestamp_begin;
		uint64_clock_t timestamp_end;
		integer {{ size = 64; align = 256; signed = 0; }} content_size;
		integer {{ size = 64; align = 8; signed = 0; }} packet_size;
		integer {{ size = 64; align = 8; signed = 0; }} packet_seq_num;
		integer {{ size = 64; align = 8; signed = 0; }} events_discarded;
	}} align(256);
}};
"""
EVENT = """event {{ name = "test:event{id}"; id = {id}; stream_id = 0; loglevel = 13;
	fields := struct {{ integer {{ size = 64; align = 8; signed = 0; base = 10; }} _n; }};
}};
"""
SIZE_OF = kymotest.fixed(8)


def memfd(name, size, seals=fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW):
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


class Ring:
    """A writer of one ring."""

    def __init__(self, ring_set, index):
        self.s = ring_set
        self.ctl = ring_set.geometry.control_of(index) // 8
        self.table = ring_set.geometry.table_of(index) // 8
        self.data = ring_set.geometry.data_of(index)
        self.oldest = ring_set.geometry.oldest // 8 + index
        self.index = index
        self.recorded, self.positions, self.times = [], [], []
        self.lost = 0

    def word(self, i, value=None):
        if value is not None:
            self.s.words[self.ctl + i] = value
        return self.s.words[self.ctl + i]

    def entry(self, pos, member, value):
        self.s.words[self.table + kymotest.Geometry.ENTRY_SIZE // 8 * (pos // self.s.block_size % self.s.n_blocks) + member] = value

    def pos(self):
        return self.word(0) & 0xFFFFFFFF

    def change_block(self, pos):
        s = self.s
        after = (pos // s.block_size + 1) * s.block_size
        oldest = max(0, after + s.block_size - s.data_stride)
        if not s.overwrite and oldest > s.consumed_words[self.index]:
            return False
        s.words[self.oldest] = oldest
        self.word(OLDEST, oldest)
        count = self.word(0) >> 32
        self.entry(pos, 2, pos % s.block_size)
        self.entry(after, 0, self.word(LAST_TS))
        self.entry(after, 1, count)
        self.word(0, count << 32 | after)
        return True

    def lose(self, reason):
        self.lost += 1
        self.word(8 + reason, self.word(8 + reason) + 1)
        return False

    def write(self, n, event=0):
        """Records an event with field n, or counts it as discarded."""
        s, pos = self.s, self.pos()
        s.now = max(s.now + random.choice((1, 10, 1000)), time.monotonic_ns())
        window = s.now & ~0x7FFFFFF
        long = self.word(WINDOW) != window or event > 30 or random.random() < 0.01
        size = (13 if long else 4) + 8
        if pos % s.block_size + size > s.block_size - LIMIT_LESS:
            if not self.change_block(pos):
                return self.lose(FULL)
            pos = self.pos()
        at = self.data + (pos & s.data_stride - 1)
        if long:
            struct.pack_into("<BIQQ", s.rings, at, 31, event, s.now, n)
        else:
            struct.pack_into("<IQ", s.rings, at, (s.now & 0x7FFFFFF) << 5 | event, n)
        self.word(LAST_TS, s.now)
        self.word(0, self.word(0) + (1 << 32 | size))
        if long:
            self.word(WINDOW, window)
        self.recorded.append(n)
        self.positions.append(pos)
        self.times.append(s.now)
        return True

    def kept(self):
        """Returns the events that have not been overwritten."""
        return [n for n, pos in zip(self.recorded, self.positions) if pos >= self.word(OLDEST)]


class RingSet:
    def __init__(self, number, n_rings=2, n_blocks=4, block_size=4096, name="chan", where=DIR, log=None, overwrite=0,
            file_size=0, n_files=0):
        self.number, self.n_rings, self.n_blocks, self.block_size = number, n_rings, n_blocks, block_size
        self.name, self.dir, self.overwrite = name, where, overwrite
        self.geometry = kymotest.Geometry(n_rings, n_blocks, block_size)
        self.data_stride, self.total = self.geometry.ring_size, self.geometry.total
        self.rings_fd = memfd("rings", self.total)
        self.file_size, self.n_files = file_size, n_files
        self.consumed_fd = memfd("consumed", ((n_rings * 8 + 127) & ~127) + n_rings * 352)  # src/abi/resume.h
        self.rings = mmap.mmap(self.rings_fd, self.total)
        self.words = memoryview(self.rings).cast("Q")
        self.consumed_words = memoryview(mmap.mmap(self.consumed_fd, n_rings * 8)).cast("Q")
        self.uuid = uuid.uuid4()
        self.log_fd = os.memfd_create("metadata", os.MFD_CLOEXEC)
        self.describe(METADATA.format(uuid=self.uuid) + EVENT.format(id=0))
        self.now = time.monotonic_ns()
        self.ring = [Ring(self, i) for i in range(n_rings)]

    def describe(self, text):
        os.write(self.log_fd, text.encode())

    def message(self, **change):
        v = dict(set=self.number, dir=self.dir, name=self.name, mode=0, n_rings=self.n_rings, n_blocks=self.n_blocks,
            block_size=self.block_size, total=self.total, overwrite=self.overwrite, file_size=self.file_size, n_files=self.n_files)
        v.update(change)
        return (struct.pack("<II", v["set"], 0) + string(v["dir"]) + string(v["name"])
            + struct.pack("<6IQ", v["mode"], 0, v["overwrite"], v["n_rings"], v["n_blocks"], v["block_size"], v["total"]) + self.uuid.bytes[7::-1] + self.uuid.bytes[15:7:-1]
            + struct.pack("<QIII", v["file_size"], v["n_files"], 0, v["n_blocks"]))

    def fds(self):
        return [self.rings_fd, self.consumed_fd, self.log_fd]

    def recorded(self):
        return sorted(n for r in self.ring for n in r.recorded)

    def lost(self):
        return sum(r.lost for r in self.ring)


def string(text):
    data = text.encode()
    return struct.pack("<I", len(data)) + data + b"\0"


def read_only(fd):
    return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)


class Consumer:
    """A running consumer and the daemon's end of its socket."""

    def __init__(self, k, output, resume=0, command=(), version=2, more=b"", memory=None, rendezvous=""):
        self.output = output
        self.memory = memory or memfd("session", 4096)
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(kymotest.TIMEOUT)
        self.log = k.top / "consumerd.log"
        # The consumer expects its socket as descriptor 3; the shell moves it there.
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{theirs.fileno()}', "bash", *command, str(CONSUMERD)],
            pass_fds=[theirs.fileno()], env=k.env, stderr=open(self.log, "ab"), stdin=subprocess.DEVNULL)
        k.started.append(self.process)
        theirs.close()
        self.cookie = 0
        self.errors = []
        self.send(INIT, struct.pack("<I", version) + string("demo") + string(str(output or "")) + struct.pack("<I", resume) +
            string(str(rendezvous)) + more, [self.memory])
        self.started = self.receive(STATS) if version else None

    def send(self, kind, body, fds=()):
        socket.send_fds(self.socket, [struct.pack("<IHH", 8 + len(body), kind, 0) + body], fds)

    def receive_any(self):
        data = self.socket.recv(65536)
        check(data, f"the consumer has exited:\n{self.text()}")
        length, kind, _ = struct.unpack_from("<IHH", data)
        equal(length, len(data), "length of a message")
        return kind, data[8:]

    def receive(self, wanted):
        while True:
            kind, body = self.receive_any()
            if kind == ERROR:
                status, length = struct.unpack_from("<iI", body)
                self.errors.append((status, body[8 : 8 + length].decode()))
            if kind == wanted:
                return self.errors[-1] if kind == ERROR else self.stats(body) if kind == STATS else body

    def error_of(self, path):
        """The last error, which names this path. The watermark's may come before."""
        while not self.errors or str(path) not in self.errors[-1][1]:
            status, message = self.receive(ERROR)
            check(str(path) in message or ".watermark" in message, f"error {status}: {message}")
        return self.errors[-1]

    @staticmethod
    def stats(body):
        names = "cookie recorded discarded too_big refused unwritten bytes packets quarantined status length"
        values = dict(zip(names.split(), struct.unpack_from("<I7QIiI", body)))
        start = struct.calcsize("<I7QIiI")
        end = start + values["length"]
        values["message"] = body[start:end].decode()
        values.update(zip(("overwritten", "left_out", "removed", "cleared"), struct.unpack_from("<4Q", body, end + 1)))
        return values

    def text(self):
        return self.log.read_text(errors="replace")

    def announce(self, n):
        """Stores the number of ring sets that the consumer is sent (src/abi/resume.h)."""
        os.pwrite(self.memory, struct.pack("<Q", n), 88)

    def announced(self):
        return struct.unpack("<Q", os.pread(self.memory, 8, 88))[0]

    def add(self, ring_set, **change):
        self.send(RING_SET, ring_set.message(**change), ring_set.fds())

    def flush_on_order_only(self, ring_set):
        """The time passes without parts of blocks being written, however long a writer takes."""
        self.send(TIMERS, struct.pack("<IQQ", ring_set.number, 0, 0))

    def order(self, kind):
        self.cookie += 1
        self.send(kind, struct.pack("<I", self.cookie))
        stats = self.receive(STATS)
        equal(stats["cookie"], self.cookie, "cookie of the answer")
        return stats

    def flush(self):
        return self.order(FLUSH)

    def begin_rotation(self, chunk, archive):
        self.cookie += 1
        self.send(ROTATE, struct.pack("<IQ", self.cookie, chunk) + string(archive))

    def rotate(self, chunk, archive):
        """Begins this chunk; returns status, message and counts."""
        self.begin_rotation(chunk, archive)
        stats, body = self.receive(STATS), self.receive(ROTATED)
        cookie, status, length = struct.unpack_from("<IiI", body)
        equal(cookie, self.cookie, "cookie of the answer")
        return status, body[12 : 12 + length].decode(), stats

    def quit(self):
        stats = self.order(QUIT)
        self.ended(0)
        return stats

    def ended(self, status):
        equal(self.process.wait(kymotest.TIMEOUT), status, f"exit status of the consumer:\n{self.text()}")
        self.socket.close()
        check("ERROR: AddressSanitizer" not in self.text() and "runtime error" not in self.text(), self.text())

    def kill(self):
        self.process.kill()
        self.process.wait(kymotest.TIMEOUT)
        self.socket.close()


def snapshot(k, output, *sets, max_size=0):
    """
    Runs a consumer that writes the present contents of the rings; it cannot advance the consumed
    positions of another consumer.
    """
    c = Consumer(k, output)
    c.send(SNAPSHOT, struct.pack("<Q", max_size) + string("trigger: test"))
    for s in sets:
        c.send(RING_SET, s.message(file_size=0), [s.rings_fd, read_only(s.consumed_fd), s.log_fd])
    return c.quit()


def check_snapshot(trace, stats, *sets):
    events, discarded = kymotest.read_trace(trace)
    kept = sorted(n for s in sets for r in s.ring for n in r.kept())
    equal(sorted(kymotest.integers(e)["n"] for e in events), kept, "events of a snapshot")
    equal(kymotest.check_streams(trace, SIZE_OF), (len(events), discarded), "what packets count")
    check_stats(stats, *sets, recorded=len(kept), overwritten=len([n for s in sets for n in s.recorded()]) - len(kept), left_out=0)


def check_trace(trace, *sets):
    """Checks that the trace has the records of the writers, each once, and counts each loss."""
    events, discarded = kymotest.read_trace(trace)
    equal(sorted(kymotest.integers(e)["n"] for e in events), sorted(n for s in sets for n in s.recorded()), "events")
    equal(discarded, sum(s.lost() for s in sets), "discarded events that babeltrace2 reports")
    equal(kymotest.check_streams(trace, SIZE_OF), (len(events), discarded), "what packets count")
    for path in kymotest.streams(trace):
        check_index(path)


def check_index(path):
    data = (path.parent / "index" / f"{path.name}.kyx").read_bytes()
    equal(struct.unpack_from("<4I", data), (0x5849594B, 1, 48, 0), "header of an index")
    offset, entries = 0, []
    for p in kymotest.packets(path):
        entries.append((offset, p.packet_bits // 8, p.begin, p.end, p.events, p.discarded))
        offset += p.packet_bits // 8
    equal([e for e in struct.iter_unpack("<6Q", data[16:])], entries, f"index of {path}")


def check_stats(stats, *sets, **others):
    wanted = dict(recorded=len([n for s in sets for n in s.recorded()]), discarded=sum(s.lost() for s in sets),
        unwritten=0, quarantined=0, status=0, message="")
    wanted.update(others)
    equal({name: stats[name] for name in wanted}, wanted, "counts of the consumer")


def write_all(ring, numbers, event=0):
    """
    Records all events. If the ring is full, waits until the consumer has released space, so that
    nothing is lost.
    """
    for n in numbers:
        s, pos = ring.s, ring.pos()
        if pos % s.block_size + 21 > s.block_size - LIMIT_LESS:
            wait_for(lambda: ring.change_block(pos), "the consumer to make room")
        check(ring.write(n, event), "a record was lost in spite of room")


def test_blocks_and_parts(k):
    s = RingSet(1)
    c = Consumer(k, k.top / "out" / "deep" / "trace")
    equal(c.started["status"], 0, "status of INIT")
    c.add(s)
    write_all(s.ring[0], range(5000))
    check_stats(c.flush(), s)
    check_trace(c.output, s)  # in the middle of a block
    write_all(s.ring[0], range(5000, 5010))
    write_all(s.ring[1], range(10000, 10003))
    stats = c.flush()
    check_stats(stats, s)
    equal(c.flush(), {**stats, "cookie": c.cookie}, "counts after a flush with nothing new")
    write_all(s.ring[0], range(5010, 9000))
    stats = c.quit()
    check_stats(stats, s)
    check_trace(c.output, s)
    files = kymotest.streams(c.output)
    equal([p.name for p in files], ["chan_0", "chan_1"], "stream files")
    equal(stats["bytes"], sum(p.stat().st_size for p in files), "bytes")
    equal(oct(c.output.stat().st_mode & 0o777), "0o750", "mode of the trace directory")
    equal({oct(p.stat().st_mode & 0o777) for p in c.output.rglob("*")}, {"0o750", "0o640"}, "modes below")


def test_snapshot(k):
    """
    Snapshots of rings that are overwritten, in any state: empty, with a part of the first block,
    after several laps.
    """
    s = RingSet(1, n_rings=5, overwrite=1)
    for ring, n in zip(s.ring, (0, 3, 500, 1500, 20000)):
        for i in range(n):
            check(ring.write(i), "overwrite mode has no room")
    check_snapshot(k.top / "one", snapshot(k, k.top / "one", s), s)
    s.ring[0].write(1)
    s.ring[4].lose(TOO_BIG)
    check_snapshot(k.top / "two", snapshot(k, k.top / "two", s), s)
    stats = snapshot(k, k.top / "none")
    equal((stats["recorded"], stats["status"]), (0, 0), "snapshot of no rings")


def test_snapshot_beside(k):
    """
    Snapshots of rings that another consumer drains: neither that consumer nor its trace changes.
    """
    s = RingSet(1)
    c = Consumer(k, k.top / "trace")
    c.add(s)
    for i in range(5):
        write_all(s.ring[0], range(i * 2000, i * 2000 + 1999))
        write_all(s.ring[1], [i * 2000 + 1999])
        consumed = list(s.consumed_words)
        check_snapshot(k.top / f"snap{i}", snapshot(k, k.top / f"snap{i}", s), s)
        check(all(a <= b for a, b in zip(consumed, s.consumed_words)), "what was consumed went back")
    check_stats(c.quit(), s)
    check_trace(c.output, s)


def test_snapshot_max_size(k):
    """The snapshot has the newest records of all rings, in whole packets, up to the limit."""
    s = RingSet(1, n_rings=3, n_blocks=8, overwrite=1)
    for n in range(9000):
        s.ring[n * 7 % 11 % 3].write(n)
    before = -1
    for blocks in (0, 1, 2, 5, 11, 23, 24):
        trace = k.top / f"max{blocks}"
        stats = snapshot(k, trace, s, max_size=max(blocks * 4096, 1))
        size = sum(p.stat().st_size for p in kymotest.streams(trace))
        events = {kymotest.integers(e)["n"] for e in kymotest.read_trace(trace)[0]}
        left_out = {n for r in s.ring for n in r.kept()} - events
        check(size <= blocks * 4096, f"{size} bytes in {blocks} blocks")
        check(size > (blocks - 1) * 4096 or not left_out, f"only {size} bytes in {blocks} blocks")
        for ring in s.ring:
            kept = ring.kept()
            n = len(left_out.intersection(kept))
            check(not events & set(kept[:n]), "a ring's newest events were left out, older ones not")
            check(not n or not events or kept[n - 1] < max(events), "newer events were left out than there are")
        equal((stats["recorded"], stats["left_out"]), (len(events), len(left_out)), "counts")
        check(len(events) > before or not left_out, "no more events than in a smaller one")
        before = len(events)
    equal(left_out, set(), "left out without a limit that matters")


def test_discarded(k):
    """
    Losses before the first packet, losses alone, losses after the last record: all are counted
    exactly.
    """
    s = RingSet(1, n_rings=4)
    for n in range(3000):  # no consumer drains yet
        s.ring[0].write(n)
    check(s.ring[0].lost > 100, "nothing was lost")
    s.ring[1].lose(TOO_BIG)
    s.ring[1].lose(TOO_BIG)
    c = Consumer(k, k.top / "trace")
    c.add(s)
    check_stats(c.flush(), s, too_big=2)
    check_trace(c.output, s)
    s.ring[0].lose(FULL)
    s.ring[1].lose(FULL)
    write_all(s.ring[2], range(5000, 5100))
    check_stats(c.flush(), s)
    check_trace(c.output, s)
    write_all(s.ring[1], range(7000, 8000))
    s.ring[2].lose(FULL)
    check_stats(c.quit(), s, too_big=2)
    check_trace(c.output, s)


def test_metadata_grows(k):
    s, other = RingSet(1), RingSet(2, where="ust/uid/1/64-bit", name="chan-thread")
    c = Consumer(k, k.top / "trace")
    c.add(s)
    c.add(other)
    for event in range(1, 60):
        s.describe(EVENT.format(id=event))
        write_all(s.ring[0], range(event * 100, event * 100 + 100), event)
        if event % 20 == 0:
            c.flush()
            kymotest.read_trace(c.output)
    write_all(other.ring[1], range(9))
    c.quit()
    events, _ = kymotest.read_trace(c.output)
    equal(len(events), 5900 + 9, "events")
    equal({e.name for e in events if e.cpu == 0}, {f"test:event{i}" for i in range(1, 60)}, "names")
    check((c.output / other.dir / "chan-thread_1").exists(), "stream of a thread's ring")


def watermark(trace):
    """Returns clock, chunk and flags; zeros if there is no watermark yet."""
    path = trace / ".watermark"
    data = path.read_bytes() if path.exists() else b""
    return struct.unpack("<3Q", data or bytes(24))


def check_watermark(trace, *sets):
    """Checks that all records up to the watermark are in files. Returns its clock."""
    clock = watermark(trace)[0]
    there = {struct.unpack("<Q", r.payload)[0] for path in kymotest.streams(trace) for p in kymotest.packets(path, None, growing=True)
        for r in kymotest.records(p, SIZE_OF, 0)}
    due = {n for s in sets for r in s.ring for n, time in zip(r.recorded, r.times) if time <= clock}
    check(due <= there, lambda: f"records before the watermark that are in no file: {sorted(due - there)[:10]}")
    return clock


def flush_past(c, time, *sets):
    """Flushes until the watermark is beyond this time."""
    wait_for(lambda: c.flush() and check_watermark(c.output, *sets) > time, "a later watermark")


def test_watermark(k):
    s, other = RingSet(1), RingSet(2, where="ust/uid/1/64-bit")
    c = Consumer(k, k.top / "trace")
    equal(watermark(c.output), (0, 0, 0), "before the first set")
    c.add(s)
    c.add(other)
    clock = 0
    for n in range(0, 600, 3):
        s.ring[n % 2].write(n)
        s.ring[1].write(n + 1)
        other.ring[n % 3 % 2].write(n + 2)
        if n % 4 == 0:
            c.flush()
        now = check_watermark(c.output, s, other)
        check(now >= clock, f"the watermark decreased from {clock} to {now}")
        clock = now
    flush_past(c, s.now, s, other)
    equal(c.rotate(1, "a")[0], 0, "rotation")
    equal(watermark(c.output)[1:], (1, 0), "chunk and flags after a rotation")
    other.ring[0].write(1000)
    clock = watermark(c.output)[0]
    c.kill()
    c = Consumer(k, c.output, resume=1, memory=c.memory)
    c.add(s)
    c.add(other)
    flush_past(c, max(clock, other.now), other)
    equal(c.rotate(2, "")[0], 0, "clear")
    equal(watermark(c.output)[1:], (2, 0), "chunk and flags after a clear")
    c.quit()
    equal(watermark(c.output), (2**64 - 1, 2, 1), "at the end")


def test_watermark_of_slowest_set(k):
    """A record that waits for a flush holds the watermark back, though other sets are flushed."""
    s, other = RingSet(1), RingSet(2, name="slow", where="ust/uid/1/64-bit")
    c = Consumer(k, k.top / "trace")
    c.add(s)
    c.add(other)
    c.send(TIMERS, struct.pack("<IQQ", 1, 1000, 0))
    c.send(TIMERS, struct.pack("<IQQ", 2, 0, 0))
    c.flush()
    other.ring[0].write(1)
    for n in range(2, 6):
        s.ring[0].write(n)
        wait_for(lambda: kymotest.check_streams(c.output, SIZE_OF, growing=True)[0] == n - 1, "the flush of one set")
        check(check_watermark(c.output, s, other) < other.now, "the watermark is beyond a record that is in no file")
    flush_past(c, s.now, s, other)
    c.quit()


def test_watermark_with_new_sets(k):
    """
    The watermark follows the records while ring sets keep coming: with each flush, the daemon has
    made a set that the consumer does not know yet.
    """
    sets = [RingSet(1)]
    c = Consumer(k, k.top / "trace")
    c.announce(1)
    c.add(sets[0])
    c.send(TIMERS, struct.pack("<IQQ", 1, 0, 0))
    c.flush()
    for rounds in range(3):
        sets[0].ring[0].write(rounds)
        recorded, tries = sets[0].now, 0
        while check_watermark(c.output, *sets) <= recorded:
            tries += 1
            check(tries < 50, "the watermark stands still")
            sets.append(RingSet(len(sets) + 1, name=f"c{len(sets)}", n_rings=1))
            kymotest.stop(c.process.pid)
            c.announce(len(sets))
            c.cookie += 1
            c.send(FLUSH, struct.pack("<I", c.cookie))
            c.add(sets[-1])
            c.send(TIMERS, struct.pack("<IQQ", len(sets), 0, 0))
            os.kill(c.process.pid, signal.SIGCONT)
            equal(c.receive(STATS)["cookie"], c.cookie, "cookie of the answer")
            c.order(ASK)
    c.quit()


def test_watermark_without_set(k):
    """The watermark waits for the records of a set whose order is still on its way."""
    s, other = RingSet(1), RingSet(2, name="other")
    c = Consumer(k, k.top / "trace")
    c.announce(1)
    c.add(s)
    s.ring[0].write(0)
    flush_past(c, s.now, s)
    c.announce(2)
    other.ring[0].write(1)
    for n in range(2, 6):
        s.ring[0].write(n)
        for _ in range(20):
            c.flush()
            check(check_watermark(c.output, s) < other.now, "the watermark is beyond a record that is in no file")
    c.add(other)
    flush_past(c, s.now, s, other)
    c.quit()


def replace_daemon(c, path):
    """Closes the connection as if the daemon had died, and waits for the consumer to call again."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(kymotest.TIMEOUT)
        c.socket.close()
        c.socket, _ = listener.accept()
    c.socket.settimeout(kymotest.TIMEOUT)


def test_watermark_after_lost_order(k):
    """The daemon died before it could send a set. The watermark does not wait for the set."""
    s, path = RingSet(1), k.top / "drain.sock"
    c = Consumer(k, k.top / "trace", rendezvous=path)
    c.announce(2)
    c.add(s)
    c.flush()
    replace_daemon(c, path)
    c.receive(ADOPTED)
    equal(c.announced(), 1, "sets that the consumer expects")
    s.ring[0].write(0)
    flush_past(c, s.now, s)
    c.quit()


def test_successor_reads_late(k, n=800):
    """A consumer has very many ring sets, and its daemon's successor reads none before the last."""
    s, path = RingSet(1, overwrite=1), k.top / "drain.sock"
    c = Consumer(k, k.top / "trace", rendezvous=path)
    for number in range(n):
        c.add(s, set=number)
    c.flush()
    replace_daemon(c, path)
    wait_for(lambda: kymotest.state_of(c.process.pid) == "S", "the consumer to send all")
    sets = []
    while (message := c.receive_any())[0] != ADOPTED:
        if message[0] == ADOPT:
            sets += struct.unpack("<I", message[1])
    equal(sets, list(range(n)), "sets that the successor gets")
    c.quit()


def test_no_output(k):
    s = RingSet(1)
    before = set(k.top.iterdir())
    c = Consumer(k, None)
    c.add(s)
    write_all(s.ring[0], range(3000))
    s.ring[1].lose(FULL)
    check_stats(c.flush(), s, bytes=0)
    c.kill()
    c = Consumer(k, None, resume=1)
    c.add(s)
    write_all(s.ring[0], range(3000, 6000))
    check_stats(c.quit(), s, bytes=0)
    equal(set(k.top.iterdir()) - before, {c.log}, "files made")


def test_directory(k):
    full, empty, link = k.top / "full", k.top / "empty", k.top / "link"
    full.mkdir()
    (full / "file").write_text("")
    empty.mkdir()
    link.symlink_to(empty)
    c = Consumer(k, full)
    check(c.started["status"] < 0 and "not empty" in c.started["message"] and str(full) in c.started["message"], c.started)
    c.quit()
    c = Consumer(k, link)
    check(c.started["status"] < 0, "a symbolic link was followed")
    c.quit()
    c = Consumer(k, full / "file" / "sub")
    check(c.started["status"] < 0 and "Not a directory" in c.started["message"], c.started)
    c.quit()
    c = Consumer(k, empty)
    equal(c.started["status"], 0, "status for an empty directory")
    c.quit()


def test_planted_link(k):
    """A user who can write in the trace directory cannot make the consumer write outside of it."""
    away = k.top / "away"
    away.mkdir()
    c = Consumer(k, k.top / "trace")
    (c.output / "ust").symlink_to(away)
    s = RingSet(1)
    c.add(s)
    s.ring[0].write(1)
    equal(c.receive(ERROR)[0] < 0, True, "status")
    check(str(c.output / DIR) in c.errors[-1][1], f"message {c.errors[-1]}")
    (c.output / "ust").unlink()
    equal(c.receive(ERROR), (0, ""), "after the link was removed")
    check_stats(c.quit(), s)
    check_trace(c.output, s)
    equal(list(away.iterdir()), [], "files outside of the trace directory")


def test_metadata_first(k):
    """
    While the metadata cannot be written, the consumer writes no packet. It tries again, also when
    nothing else happens.
    """
    s = RingSet(1)
    c = Consumer(k, k.top / "trace")
    (c.output / DIR / "metadata").mkdir(parents=True)
    c.add(s)
    status, message = c.receive(ERROR)
    check(status < 0 and str(c.output / DIR / "metadata") in message, message)
    (c.output / DIR / "metadata").rmdir()
    equal(c.receive(ERROR), (0, ""), "after the way is free")
    c.quit()

    c = Consumer(k, k.top / "trace2")
    (c.output / DIR / "metadata").mkdir(parents=True)
    c.add(s)
    c.receive(ERROR)
    for n in range(900):
        s.ring[0].write(n)
    check(c.flush()["status"] < 0, "no failure")
    equal(kymotest.streams(c.output), [], "streams without metadata")
    (c.output / DIR / "metadata").rmdir()
    equal(c.receive(ERROR), (0, ""), "after the way is free")
    check_stats(c.quit(), s)
    check_trace(c.output, s)


def refused(k, why, *messages, fds=()):
    c = Consumer(k, k.top / f"trace-{random.random()}")
    for kind, body in messages:
        c.send(kind, body, fds)
    c.ended(1)
    check("; the consumer ends" in c.text(), f"{why}: {c.text()}")


def test_malformed(k):
    s = RingSet(1)
    refused(k, "INIT twice", (INIT, struct.pack("<I", 2) + string("x") + string("") + struct.pack("<I", 0) + string("")))
    refused(k, "short", (FLUSH, b"\1"))
    refused(k, "no descriptors", (RING_SET, s.message()))
    refused(k, "too few descriptors", (RING_SET, s.message()), fds=s.fds()[:2])
    refused(k, "descriptors nobody wants", (FLUSH, struct.pack("<I", 1)), fds=s.fds())
    for change in (dict(n_rings=0), dict(total=s.total - 1), dict(overwrite=2), dict(block_size=100), dict(n_blocks=3),
            dict(name="../x"), dict(name=""), dict(name="a/b"), dict(mode=7)):
        refused(k, str(change), (RING_SET, s.message(**change)), fds=s.fds())
    refused(k, "the same set twice", (RING_SET, s.message()), (RING_SET, s.message()), fds=s.fds())
    c = Consumer(k, k.top / "newer")
    c.send(77, b"of a newer daemon")
    c.quit()


def test_memory_too_short(k):
    """
    A memory that is too short from the beginning, or is truncated later, counts as empty; other
    sets are exact.
    """
    sets = [RingSet(n, name=f"c{n}") for n in range(1, 5)]
    c = Consumer(k, k.top / "trace")
    short = memfd("short", 8192)
    for s, fds in zip(sets, ((sets[0].rings_fd, sets[0].consumed_fd), (short, sets[1].consumed_fd), (sets[2].rings_fd, short))):
        c.send(RING_SET, s.message(), [*fds, s.log_fd])
    cut = memfd("cut", sets[3].total, 0)
    os.pwrite(cut, os.pread(sets[3].rings_fd, 4096, 0), 0)
    c.send(RING_SET, sets[3].message(), [cut, sets[3].consumed_fd, sets[3].log_fd])
    c.flush()
    os.ftruncate(cut, 0)
    write_all(sets[0].ring[0], range(700))
    c.flush()
    c.quit()
    check_trace(c.output, sets[0])


def test_daemon_gone(k):
    s = RingSet(1)
    c = Consumer(k, k.top / "trace")
    c.add(s)
    c.flush()
    write_all(s.ring[0], range(700))
    c.socket.close()
    c.ended(0)
    check_trace(c.output, s)


def test_hostile_rings(k):
    """
    Random words over the control blocks of some rings: the others stay exact, and no consumer
    crashes.
    """
    random.seed(3)
    s = RingSet(1, n_rings=40)
    c = Consumer(k, k.top / "trace")
    c.add(s)
    good, victims = s.ring[0], range(1, s.n_rings)
    for n in range(3000):
        write_all(good, [n])
        victim = s.ring[random.choice(victims)]
        for i in range(128 // 8):
            victim.word(i, random.getrandbits(random.choice((3, 14, 64))))
        victim.word(0, random.getrandbits(32) << 32 | random.randrange(4 * 4096))
    stats = c.quit()
    check(0 < stats["quarantined"] <= len(victims), f"{stats['quarantined']} rings in quarantine")
    check("damaged" in c.text(), "nothing was logged")
    stream = c.output / DIR / "chan_0"
    numbers = [struct.unpack("<Q", r.payload)[0] for p in kymotest.packets(stream)
        for r in kymotest.records(p, SIZE_OF, p.begin)]
    equal(numbers, list(range(3000)), "records of the ring that nobody touched")


def killed_at_random(k, output):
    s = RingSet(1)
    n = 0
    for life in range(60):
        c = Consumer(k, output, resume=int(life > 0))
        c.add(s)
        for _ in range(random.randrange(3)):
            count = random.randrange(900)
            for _ in range(count):
                s.ring[random.randrange(2)].write(n)
                n += 1
            if random.random() < 0.5:
                check_stats(c.flush(), s)
        c.kill()
    c = Consumer(k, output, resume=1)
    c.add(s)
    check_stats(c.quit(), s)
    return s


def test_killed_at_random(k):
    random.seed(5)
    trace = k.top / "trace"
    s = killed_at_random(k, trace)
    check(len(s.recorded()) > 10000, f"only {len(s.recorded())} events")
    check_trace(trace, s)


def test_killed_after_a_block_was_left(k):
    """
    The consumer has read a part of a block, and the writer then leaves the block without another
    record: writers may overwrite the block where the last packet ended.
    """
    s = RingSet(1, n_blocks=2)  # half of the ring is one block, which is read as soon as it is full
    ring = s.ring[0]
    c = Consumer(k, k.top / "trace")
    c.add(s)
    n = 0
    while ring.pos() + 21 <= s.block_size - LIMIT_LESS:
        ring.write(n)
        n += 1
    while ring.pos() < s.block_size:
        c.flush()
        ring.write(n)
        n += 1
    # A consumer that gets no CPU for a second also takes what is in the next block.
    wait_for(lambda: s.consumed_words[0] >= s.block_size, "the consumer to leave the block")
    c.kill()
    while not ring.lost:
        ring.write(n)
        n += 1
    check(ring.pos() > s.data_stride, "the writer did not go round")
    c = Consumer(k, k.top / "trace", resume=1)
    c.add(s)
    check_stats(c.quit(), s)
    check_trace(c.output, s)


def test_resume_repairs(k):
    """
    A torn packet, a torn or missing index, torn metadata: a crash of the machine, or a kill, may
    leave these.
    """
    s = RingSet(1)
    trace = k.top / "trace"
    c = Consumer(k, trace)
    c.add(s)
    write_all(s.ring[0], range(2000))
    c.flush()
    c.kill()
    stream, index, metadata = trace / DIR / "chan_0", trace / DIR / "index" / "chan_0.kyx", trace / DIR / "metadata"
    first = next(kymotest.packets(stream)).packet_bits // 8
    torn = stream.read_bytes()[: min(1000, first - 1)]
    for size in (None, 0, 7, 16, 70):
        with open(stream, "ab") as f:
            f.write(torn)
        with open(metadata, "r+b") as f:
            f.truncate(100)
        if size is None:
            index.unlink()
        else:
            os.truncate(index, size)
        c = Consumer(k, trace, resume=1)
        c.add(s)
        check_stats(c.flush(), s)
        check_trace(trace, s)
        c.kill()
    c = Consumer(k, trace, resume=1)
    c.add(s)
    check_stats(c.quit(), s)
    check_trace(trace, s)


def test_resume_with_others_file(k):
    """
    A file that is not its stream's is set apart, and does not end the recording of others. The
    stream is given up, for the next consumer, too, and reports what it loses.
    """
    s, other, trace, memory = RingSet(1), RingSet(2, where="ust/uid/1/64-bit"), k.top / "trace", None
    for n in range(5):
        for ring in (*s.ring, *other.ring):
            for i in range(10):
                ring.write(10 * n + i)
        c = Consumer(k, trace, resume=int(n > 0), memory=memory)
        memory = c.memory
        c.add(s)
        c.add(other)
        if n == 4:
            break
        c.flush()
        if n in (1, 3):
            equal(c.rotate(n // 2 + 1, f"x-{n}")[0], 0, "a rotation")
        c.kill()
        if n == 2:
            (trace / DIR / "chan_0").write_bytes(b"not a trace " * 100)
    wanted = dict(recorded=3 * 50 + 20, discarded=30, quarantined=1, status=0)
    stats = c.quit()
    equal({name: stats[name] for name in wanted}, wanted, "counts")
    (apart,) = trace.rglob("damaged/chan_0")
    equal(apart.read_bytes(), b"not a trace " * 100, "the other file")
    events, discarded = kymotest.read_trace(trace)
    equal((len(events), discarded), (3 * 50 + 20, 30), "events in the trace, discarded events")


def chunks(trace):
    """
    Returns the chunks, oldest first: the complete ones, and the present one, which a timer begins
    with its metadata. Each is a trace of its own.
    """
    archived = sorted((trace / "archives").glob("*"), key=lambda p: int(p.name.rpartition("-")[2])) if (trace / "archives").exists() else []
    return archived + ([trace / "ust"] if kymotest.streams(trace / "ust") else [])


def numbers_of(trace):
    return sorted(kymotest.integers(e)["n"] for e in kymotest.read_trace(trace)[0])


def check_chunks(trace, *sets):
    """
    Checks that each chunk is a trace of its own. Together, and when a reader reads all of them as
    one, they have each event once and count each loss.
    """
    found, lost = [], 0
    for chunk in chunks(trace):
        events, discarded = kymotest.read_trace(chunk)
        equal(kymotest.check_streams(chunk, SIZE_OF, first=None), (len(events), discarded), f"what packets of {chunk} count")
        found.append(sorted(kymotest.integers(e)["n"] for e in events))
        lost += discarded
    equal(sorted(n for chunk in found for n in chunk), sorted(n for s in sets for n in s.recorded()), "events of all chunks")
    equal(lost, sum(s.lost() for s in sets), "discarded events of all chunks")
    equal((numbers_of(trace), kymotest.read_trace(trace)[1]), (sorted(sum(found, [])), lost), "events below the directory")
    return found


def test_rotation(k):
    s, other = RingSet(1), RingSet(2, where="ust/uid/1/32-bit", name="other")
    c = Consumer(k, k.top / "trace")
    c.add(s)
    c.add(other)
    equal(c.rotate(1, "x-0")[0], -61, "status of a rotation with nothing (ENODATA)")
    check(not (c.output / "archives").exists(), "an empty chunk was made")
    for chunk in range(3):
        n = chunk * 1000
        write_all(s.ring[0], range(n, n + 600))
        write_all(other.ring[1], range(n + 600, n + 1000))
        s.ring[1].lose(FULL)
        status, message, stats = c.rotate(chunk + 1, f"x-{chunk}")
        equal((status, message), (0, ""), "rotation")
        check_stats(stats, s, other)
        equal(check_chunks(c.output, s, other)[-1], list(range(n, n + 1000)), "events of the chunk")
    equal(c.rotate(3, "x-2")[0], 0, "a rotation that was done before")
    equal(len(chunks(c.output)), 3, "chunks")
    write_all(s.ring[0], range(5000, 5010))
    s.ring[0].lose(TOO_BIG)
    check_stats(c.quit(), s, other)
    check_chunks(c.output, s, other)
    uuids = {p.uuid for f in kymotest.streams(c.output) for p in kymotest.packets(f)}
    equal(len(uuids), 7, "UUIDs of three chunks of two traces, and one of one")


def test_rotation_refused(k):
    """A chunk that cannot be moved continues unchanged."""
    s = RingSet(1)
    c = Consumer(k, k.top / "trace")
    c.add(s)
    write_all(s.ring[0], range(100))
    (c.output / "archives").write_text("")
    status, message, _ = c.rotate(1, "x-0")
    check(status < 0 and str(c.output) in message and "\n" not in message, f"{status}: {message}")
    (c.output / "archives").unlink()
    write_all(s.ring[0], range(100, 200))
    check_stats(c.flush(), s)
    check_trace(c.output, s)
    equal(c.rotate(1, "x-0")[0], 0, "rotation afterwards")
    c.kill()
    c = Consumer(k, c.output, resume=1, memory=c.memory)
    c.add(s)
    check_stats(c.quit(), s)
    check_chunks(c.output, s)


def test_rotation_killed_at_random(k):
    """
    The consumer is killed at any point: the next consumer gets the order again, and each event is
    in one chunk.
    """
    random.seed(9)
    s, trace, memory = RingSet(1, block_size=8192, file_size=16384), k.top / "trace", None
    n = chunk = 0
    for life in range(150):
        c = Consumer(k, trace, resume=int(life > 0), memory=memory)
        memory = c.memory
        c.add(s)
        for _ in range(random.randrange(1, 300)):  # a chunk without events would be refused
            s.ring[random.randrange(2)].write(n)
            n += 1
        c.begin_rotation(chunk + 1, f"x-{chunk}")
        if random.random() < 0.7:
            time.sleep(random.random() * 0.003)
        else:
            equal(struct.unpack_from("<Ii", c.receive(ROTATED)), (c.cookie, 0), f"answer in life {life}")
            chunk += 1
        c.kill()
    c = Consumer(k, trace, resume=1, memory=memory)
    c.add(s)
    write_all(s.ring[0], [n])
    equal(c.rotate(chunk + 1, f"x-{chunk}")[0], 0, "last rotation")
    check_stats(c.quit(), s)
    check(n > 10000 and chunk > 10, f"{n} events, {chunk} chunks")
    check_chunks(trace, s)


def test_hang_up_before_the_first_order(k):
    """A consumer whose daemon exits before it has sent an order ends in good order."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    consumer = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{theirs.fileno()}', "bash", str(CONSUMERD)],
        pass_fds=[theirs.fileno()], env=k.env, stdin=subprocess.DEVNULL)
    k.started.append(consumer)
    ours.close()
    theirs.close()
    check(consumer.wait(kymotest.TIMEOUT) >= 0, f"signal {-consumer.returncode}")


def rotation_cut_short(k, moved, archive):
    """
    Creates the state of memory and files after a kill just before or just after the chunk was
    moved; the next consumer continues from it.
    """
    s, trace = RingSet(1, n_blocks=16), k.top / f"trace-{moved}-{archive}"
    c = Consumer(k, trace)
    c.add(s)
    write_all(s.ring[0], range(500))
    c.flush()
    write_all(s.ring[1], range(500, 600))
    shutil.copytree(trace / "ust", k.top / "before")
    equal(c.rotate(1, archive)[0], 0, "rotation")
    c.kill()
    shutil.rmtree(trace / "ust", ignore_errors=True)  # of the next chunk: it has no packet
    if not moved:
        shutil.move(trace / "archives" / archive / "ust" if archive else k.top / "before", trace / "ust")
    os.pwrite(c.memory, struct.pack("<QQ", 0, 1), 0)
    write_all(s.ring[0], range(600, 700))
    c = Consumer(k, trace, resume=1, memory=c.memory)
    c.add(s)
    status, message, stats = c.rotate(1, archive)
    equal((status, message), (0, ""), "the same order")
    write_all(s.ring[1], range(700, 800))
    shutil.rmtree(k.top / "before", ignore_errors=True)
    return s, trace, c


def test_rotation_cut_short(k):
    for moved in (False, True):
        s, trace, c = rotation_cut_short(k, moved, "x-0")
        check_stats(c.quit(), s)
        equal([len(chunk) for chunk in check_chunks(trace, s)], [600, 200] if moved else [700, 100], "events of the chunks")


def test_rotation_killed_between(k):
    """A debugger stops the consumer when it has moved the chunk, and kills it."""
    kymotest.need_program("strace", "strace")
    s, trace = RingSet(1), k.top / "trace"
    # It moves the folders of the two domains, and then the archive.
    delay = "inject=renameat,renameat2:delay_exit=60000000:when=3"
    c = Consumer(k, trace, command=["strace", "-o", k.top / "strace", "-e", delay])
    c.add(s)
    write_all(s.ring[0], range(600))
    c.flush()
    write_all(s.ring[0], range(600, 610))
    c.begin_rotation(1, "x-0")
    wait_for(lambda: (trace / "archives" / "x-0" / "ust").exists(), "the chunk to be moved")
    child, = pathlib.Path(f"/proc/{c.process.pid}/task/{c.process.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    c.kill()
    wait_for(lambda: not kymotest.alive(int(child)), "the consumer to die")
    write_all(s.ring[0], range(700, 710))
    c = Consumer(k, trace, resume=1, memory=c.memory)
    c.add(s)
    equal(c.rotate(1, "x-0")[0], 0, "the same order")
    check_stats(c.quit(), s)
    equal([len(chunk) for chunk in check_chunks(trace, s)], [610, 10], "events of the chunks")


def test_retired_before_rotation(k):
    """
    A set was retired before a rotation, and everything was killed before the daemon knew: a
    successor that gets the set again does not write its events into the new chunk, too.
    """
    retired, s, trace = RingSet(1), RingSet(2, where="ust/uid/1/64-bit"), k.top / "trace"
    c = Consumer(k, trace)
    c.add(retired)
    c.add(s)
    write_all(retired.ring[0], range(600))
    c.send(RETIRE, struct.pack("<I", retired.number))
    c.receive(RETIRED)
    write_all(s.ring[0], range(600, 610))
    equal(c.rotate(1, "x-0")[0], 0, "rotation")
    c.kill()
    c = Consumer(k, trace, resume=1, memory=c.memory)
    c.add(retired)
    c.add(s)
    write_all(s.ring[0], range(610, 620))
    check_stats(c.quit(), retired, s)
    equal([len(chunk) for chunk in check_chunks(trace, retired, s)], [610, 10], "events of the chunks")


def test_clear_cut_short(k):
    for moved in (False, True):
        s, trace, c = rotation_cut_short(k, moved, "")
        check_stats(c.quit(), s, cleared=600 if moved else 700)
        equal(numbers_of(trace), list(range(600 if moved else 700, 800)), "events that were not cleared")


def test_clear(k):
    s = RingSet(1)
    c = Consumer(k, k.top / "trace")
    c.add(s)
    check_stats(c.rotate(1, "")[2], s, cleared=0)
    write_all(s.ring[0], range(1000))
    c.flush()
    write_all(s.ring[0], range(1000, 1010))
    s.ring[0].lose(FULL)
    status, message, stats = c.rotate(2, "")
    equal((status, message), (0, ""), "clearing")
    check_stats(stats, s, cleared=1010)
    write_all(s.ring[0], range(2000, 2500))
    write_all(s.ring[1], range(3000, 3500))
    check_stats(c.flush(), s, cleared=1010)
    equal(numbers_of(c.output), [*range(2000, 2500), *range(3000, 3500)], "events behind it")
    c.kill()
    c = Consumer(k, c.output, resume=1, memory=c.memory)
    c.add(s)
    write_all(s.ring[0], range(4000, 4010))
    check_stats(c.rotate(3, "x-0")[2], s, cleared=1010)
    check_stats(c.rotate(4, "")[2], s, cleared=1010)
    write_all(s.ring[1], range(5000, 5100))
    check_stats(c.rotate(5, "")[2], s, cleared=1110)
    check_stats(c.quit(), s, cleared=1110)
    equal(numbers_of(c.output), [*range(2000, 2500), *range(3000, 3500), *range(4000, 4010)], "events of the archived chunk")
    equal([p.name for p in c.output.iterdir() if p.name.startswith(".")], [".watermark"], "hidden files after a clear")


def test_clear_killed_at_random(k):
    """
    The order is repeated: everything recorded before it is cleared, and everything recorded later
    is in the trace.
    """
    random.seed(11)
    s, trace, memory = RingSet(1), k.top / "trace", None
    for life in range(100):
        c = Consumer(k, trace, resume=int(life > 0), memory=memory)
        memory = c.memory
        c.add(s)
        write_all(s.ring[0], range(life * 1000, life * 1000 + random.randrange(300)))
        before = len(s.recorded())
        c.begin_rotation(life + 1, "")
        time.sleep(random.random() * 0.003)
        c.kill()
        write_all(s.ring[0], range(life * 1000 + 500, life * 1000 + 500 + random.randrange(9)))
        c = Consumer(k, trace, resume=1, memory=memory)
        c.add(s)
        _, _, stats = c.rotate(life + 1, "")
        check(before <= stats["cleared"] <= len(s.recorded()), f"{stats['cleared']} cleared of {before}")
        stats = c.flush()
        check_stats(stats, s)
        equal(numbers_of(trace) if kymotest.streams(trace) else [], s.recorded()[stats["cleared"]:], "events that were not cleared")
        c.kill()


def test_limited_files(k):
    """
    Files of several packets: the newest ones stay, and the events of removed files are counted,
    over many lives of the consumer.
    """
    s, trace, memory, n = RingSet(1, file_size=10000, n_files=3), k.top / "trace", None, 0
    for life in range(40):
        c = Consumer(k, trace, resume=int(life > 0), memory=memory)
        memory = c.memory
        c.add(s)
        write_all(s.ring[0], range(n, n + 700))
        n += 700
        stats = c.flush() if life % 2 else None
        c.kill()
    c = Consumer(k, trace, resume=1, memory=memory)
    c.add(s)
    stats = c.quit()
    events, _ = kymotest.read_trace(trace)
    check_stats(stats, s, removed=n - len(events))
    equal(sorted(kymotest.integers(e)["n"] for e in events), list(range(n - len(events), n)), "the newest events")
    files = sorted(kymotest.streams(trace), key=lambda p: int(p.name.rpartition("_")[2]))
    equal(len(files), 3, "files")
    check(all(p.stat().st_size <= 10000 for p in files), "a file is too large")
    # One block, and its padding to the end of a page.
    check(all(p.stat().st_size > 10000 - 2 * 4096 for p in files[:-1]), "a file has room left")
    numbers = [p.seq for f in files for p in kymotest.packets(f, first=None)]
    equal(numbers, list(range(numbers[0], numbers[-1] + 1)), "packet numbers from file to file")


def test_limited_files_without_number(k):
    """With a limit of the size only, all files stay, and count all losses."""
    s = RingSet(1, file_size=4096)
    c = Consumer(k, k.top / "trace")
    c.add(s)
    s.ring[0].lose(FULL)
    for i in range(20):
        write_all(s.ring[0], range(i * 1000, i * 1000 + 1000))
        s.ring[i % 2].lose(FULL)
        c.flush()
    check_stats(c.quit(), s, removed=0)
    events, discarded = kymotest.read_trace(c.output)
    equal((sorted(kymotest.integers(e)["n"] for e in events), discarded), (s.recorded(), s.lost()), "events and losses")
    check(max(p.stat().st_size for p in kymotest.streams(c.output)) <= 4096, "a file is too large")
    first, second, *_ = (p for n in range(2) for p in kymotest.packets(c.output / DIR / f"chan_0_{n}", None))
    check(not first.discarded and second.discarded and second.begin - first.begin >= 16, f"packets before and after the first loss: {first}, {second}")


def test_limited_files_and_losses(k):
    """
    Packets with and without events, from flushes: each begins later than its predecessor, because
    babeltrace2 sorts by that.
    """
    random.seed(7)
    s, n = RingSet(1, n_rings=1, file_size=4096), 0
    c = Consumer(k, k.top / "trace")
    c.add(s)
    for _ in range(600):
        for _ in range(random.choice((0, 0, 1, 2, 30))):
            write_all(s.ring[0], [n])
            n += 1
        if random.random() < 0.7:
            s.ring[0].lose(FULL)
        c.flush()
    check_stats(c.quit(), s, removed=0)
    files = sorted(kymotest.streams(c.output), key=lambda p: int(p.name.rpartition("_")[2]))
    begins = [p.begin for f in files for p in kymotest.packets(f, first=None)]
    equal(len(set(begins)), len(begins), "beginnings, none twice")
    events, discarded = kymotest.read_trace(c.output)
    equal((sorted(kymotest.integers(e)["n"] for e in events), discarded), (s.recorded(), s.lost()), "events and losses")


class Small:
    """A file system of 256 KiB that only the consumer sees."""

    def __init__(self, k):
        kymotest.need_mounts()
        self.mount = k.top / "small"
        self.mount.mkdir()
        self.command = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=256k none {self.mount} && exec "$@"', "sh"]

    def seen_by(self, c):
        return pathlib.Path(f"/proc/{c.process.pid}/root{self.mount}")


def test_disk_full(k):
    small = Small(k)
    s = RingSet(1, block_size=16384)
    c = Consumer(k, small.mount / "trace", command=small.command)
    outside = small.seen_by(c)
    c.add(s)
    write_all(s.ring[0], range(100))
    check_stats(c.flush(), s)
    (outside / "ballast").write_bytes(bytes(180 * 1024))
    n = 100
    while not s.ring[0].lost:  # until first the disk and then the ring are full
        s.ring[0].write(n)
        n += 1
        if n % 1000 == 0:
            c.order(ASK)
    status, message = c.error_of(c.output / DIR / "chan_0")
    equal(status, -28, "status (ENOSPC)")
    check("No space left" in message and "\n" not in message, message)
    stats = c.flush()
    equal((stats["status"], stats["message"]), (-28, message), "status of a flush meanwhile")
    check(stats["recorded"] < len(s.recorded()), "everything was written to a full disk")
    copy_whole(outside / "trace", k.top / "meanwhile")
    events, _ = kymotest.read_trace(k.top / "meanwhile")
    equal(len(events), stats["recorded"], "events on the full disk")
    (outside / "ballast").unlink()
    equal(c.receive(ERROR), (0, ""), "when there is room again")
    write_all(s.ring[0], range(n, n + 100))
    check_stats(c.flush(), s)
    shutil.copytree(outside / "trace", k.top / "after")
    check_trace(k.top / "after", s)
    c.quit()


def copy_whole(trace, to):
    """
    Copies a trace on a full disk, to which the consumer tries to write from time to time: until it
    has removed the part that there was room for, a file does not end with a packet.
    """
    def try_it():
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(trace, to)
        with contextlib.suppress(kymotest.Failure):
            return kymotest.check_streams(to)
        return None

    wait_for(try_it, "a moment in which all packets are whole")


class SmallDisk(Small):
    """The same with its own blocks, 4 MiB, where writes can bypass the page cache."""

    def __init__(self, k):
        super().__init__(k)
        kymotest.need_program("mkfs.ext4", "e2fsprogs")
        image = k.top / "image"
        with open(image, "wb") as f:
            f.truncate(4 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", image], check=True)
        if subprocess.run(["unshare", "-m", "mount", "-o", "loop", image, self.mount], capture_output=True).returncode:
            raise kymotest.Skip("mounting a file needs loop devices")
        self.command = ["unshare", "-m", "sh", "-c", f'mount -o loop {image} {self.mount} && exec "$@"', "sh"]


def open_flags(c, name):
    """Returns the flags of the consumer's open files of this name."""
    flags = []
    for fd in pathlib.Path(f"/proc/{c.process.pid}/fd").iterdir():
        try:
            if os.readlink(fd).endswith(f"/{name}"):
                flags.append(int(re.search(r"flags:\s+(\d+)", (fd.parent.parent / "fdinfo" / fd.name).read_text())[1], 8))
        except FileNotFoundError:
            pass
    return flags


def is_direct(c, name="chan_0"):
    return any(flags & os.O_DIRECT for flags in open_flags(c, name))


def knows_direct(directory):
    path = directory / "knows-direct"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_DIRECT))
    except OSError:
        return False
    finally:
        path.unlink(missing_ok=True)
    return True


def fill_until_direct(c, s, n):
    """
    Records from n on until whole blocks were written past the page cache; returns the next number.
    A flush between two blocks would keep them in the page cache, so a slow writer needs a consumer
    that flushes on order only.
    """

    def went_past():
        nonlocal n
        write_all(s.ring[0], range(n, n + 2000))
        n += 2000
        return is_direct(c)

    wait_for(went_past, "whole blocks to be written past the page cache")
    return n


def large_blocks():
    return RingSet(1, n_rings=1, n_blocks=4, block_size=1 << 17)


def test_past_the_page_cache(k):
    """
    Whole blocks page by page, parts of blocks from flushes, and whole blocks again, over two lives
    of the consumer.
    """
    if not knows_direct(k.top):
        raise kymotest.Skip("the file system of the tests does not know O_DIRECT")
    s, trace, n = large_blocks(), k.top / "trace", 0
    for life in range(3):
        c = Consumer(k, trace, resume=int(life > 0))
        c.add(s)
        c.flush_on_order_only(s)
        n = fill_until_direct(c, s, n)
        check_stats(c.flush(), s)  # a part of a block: the file does not end at a page boundary
        write_all(s.ring[0], range(n, n + 100))
        n = fill_until_direct(c, s, n + 100)
        c.kill()
    c = Consumer(k, trace, resume=1)
    c.add(s)
    stats = c.quit()
    check_stats(stats, s)
    check_trace(trace, s)
    equal(stats["bytes"], (trace / DIR / "chan_0").stat().st_size, "bytes")


def test_direct_disk_full(k):
    small = SmallDisk(k)
    s = large_blocks()
    c = Consumer(k, small.mount / "trace", command=small.command)
    outside = small.seen_by(c)
    c.add(s)
    c.flush_on_order_only(s)
    n = fill_until_direct(c, s, 0)
    free = os.statvfs(outside)
    (outside / "ballast").write_bytes(bytes(free.f_bavail * free.f_frsize - 300000))
    while not s.ring[0].lost:
        s.ring[0].write(n)
        n += 1
        if n % 1000 == 0:
            c.order(ASK)
    status, message = c.errors[-1] if c.errors else c.receive(ERROR)
    equal(status, -28, f"status (ENOSPC): {message}")
    copy_whole(outside / "trace", k.top / "meanwhile")
    check(len(kymotest.read_trace(k.top / "meanwhile")[0]) > 0, "nothing can be read meanwhile")
    (outside / "ballast").unlink()
    equal(c.receive(ERROR), (0, ""), "when there is room again")
    write_all(s.ring[0], range(n, n + 20000))
    check_stats(c.flush(), s)
    shutil.copytree(outside / "trace", k.top / "after")
    check_trace(k.top / "after", s)
    c.quit()


def test_disk_full_to_the_end(k):
    small = Small(k)
    s = RingSet(1, block_size=16384)
    c = Consumer(k, small.mount / "trace", command=small.command)
    c.add(s)
    write_all(s.ring[0], range(100))
    c.flush()
    outside = small.seen_by(c)
    with open(outside / "ballast", "wb", buffering=0) as f:
        try:
            while f.write(bytes(4096)):
                pass
        except OSError:
            pass
    write_all(s.ring[0], range(100, 1000))
    c.receive(ERROR) if not c.flush()["status"] else None
    holder = os.open(outside, os.O_RDONLY | os.O_DIRECTORY)
    stats = c.quit()
    shutil.copytree(f"/proc/self/fd/{holder}/trace", k.top / "after")
    os.close(holder)
    equal(stats["unwritten"] + stats["recorded"], len(s.recorded()), "recorded and unwritten")
    check(stats["unwritten"] > 0, "nothing was unwritten")
    equal(stats["status"], -28, "status")
    check("No space left" in stats["message"], f"{stats}")
    events, discarded = kymotest.read_trace(k.top / "after")
    equal((len(events), discarded), (stats["recorded"], stats["unwritten"]), "recorded and discarded events in the trace")


if __name__ == "__main__":
    kymotest.main()
