#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kymo view and kymo stat print the same bytes as babeltrace2, for Kymo's traces, LTTng's traces and
generated ones; also for damaged traces; and their errors.
"""

import json
import os
import random
import re
import resource
import struct
import subprocess
import tarfile
import uuid

import kymotest
from kymotest import CLI, SANITIZED, SOURCE, TIMEOUT, Failure, check, equal

LTTNG = SOURCE / "test" / "data" / "traces" / "lttng.tar.xz"
MAGIC = 0xC1FC1FC1


def lttng(k, name):
    """Returns a trace that LTTng 2.13 made; lttng-lost has discarded events."""
    with tarfile.open(LTTNG) as archive:
        archive.extractall(k.top)
    return k.top / name


def raw(k, command, status=0, **options):
    """Returns output and errors as bytes."""
    done = subprocess.run([str(c) for c in command], env=k.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=TIMEOUT, **options)
    check(done.returncode == status, f"{command}: exit {done.returncode}\n{done.stderr.decode(errors='replace')[:2000]}")
    return done.stdout, done.stderr


def same_line(ours, theirs):
    """babeltrace2 2.0.4 may print the text of an earlier field for an empty string."""
    if ours == theirs:
        return True
    pattern = rb'"(?:[^"\\]|\\.)*"'.join(re.escape(part) for part in ours.split(b'""'))
    return b'""' in ours and re.fullmatch(pattern, theirs) is not None


def compare(k, trace, options=()):
    """Checks that both print the same lines; returns them."""
    ours, our_errors = raw(k, [CLI, "view", trace])
    theirs, their_errors = raw(k, ["babeltrace2", *options, trace])
    ours, theirs = ours.split(b"\n"), theirs.split(b"\n")
    equal(len(ours), len(theirs), f"{trace}: lines")
    for number, (our, their) in enumerate(zip(ours, theirs), 1):
        if not same_line(our, their):
            raise Failure(f"{trace}: line {number}\nkymo view:   {our!r}\nbabeltrace2: {their!r}")
    equal(our_errors, their_errors, f"{trace}: stderr")
    return [line for line in ours if line]


# -- generated traces

def metadata(order, fields, clock="freq = 1000000000;", extra=""):
    return f"""/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; }} := uint8_t;
typealias integer {{ size = 32; align = 8; }} := unsigned int;
typealias integer {{ size = 64; align = 8; }} := unsigned long long;
trace {{
	major = 1; minor = 8; byte_order = {order}; uuid = "{uuid.UUID(int=1)}";
	packet.header := struct {{ unsigned int magic; uint8_t uuid[16]; unsigned int stream_id;
		unsigned long long stream_instance_id; }};
}};
env {{ hostname = "made\\"up"; domain = "test"; number = -5; }};
clock {{ name = c; {clock} offset_s = 1700000000; offset = 12345; }};
typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := time_t;
typealias integer {{ size = 27; align = 1; map = clock.c.value; }} := short_time_t;
typedef unsigned int count_t;
{extra}
struct header {{
	enum : integer {{ size = 5; align = 1; }} {{ compact = 0 ... 30, extended = 31 }} id;
	variant <id> {{
		struct {{ short_time_t timestamp; }} compact;
		struct {{ unsigned int id; time_t timestamp; }} extended;
	}} v;
}} align(8);
stream {{
	id = 3;
	event.header := struct header;
	packet.context := struct {{
		time_t timestamp_begin; time_t timestamp_end; unsigned long long content_size;
		unsigned long long packet_size;
		unsigned int events_discarded; unsigned int cpu_id;
	}};
	event.context := struct {{ integer {{ size = 16; align = 8; signed = 1; }} _tid; }};
}};
event {{ name = "made:up"; id = 0; stream_id = 3; loglevel = 4; fields := struct {{ {fields} }}; }};
event {{ name = "made:far"; id = 70000; stream_id = 3;
	context := struct {{ string _who; }}; fields := struct {{ }}; }};
event {{ name = "made:bare"; id = 2; stream_id = 3; }};
"""


class Stream:
    """Packets of a generated stream. order: '<' or '>'."""

    def __init__(self, order, instance=0, sequence=None):
        self.order, self.instance, self.data, self.discarded, self.begin, self.now = order, instance, b"", 0, 0, 0
        self.sequence = sequence
        self.pack_head = struct.Struct(order + "Ih").pack

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def event(self, event, time, body):
        self.now = time
        if event < 31:
            low = time & 0x7FFFFFF
            return self.pack_head(event | low << 5 if self.order == "<" else event << 27 | low, -7) + body
        return bytes([31 if self.order == "<" else 31 << 3]) + self.pack("IQh", event, time, -7) + body

    def packet(self, records, begin=None, discarded=0, pad=0):
        begin = self.begin if begin is None else begin
        content = 72 + len(records)
        self.discarded += discarded
        self.data += (self.pack("I", MAGIC) + uuid.UUID(int=1).bytes + self.pack("IQ", 3, self.instance) +
            self.pack("QQQQII", begin, self.now, content * 8, (content + pad) * 8, self.discarded & 0xFFFFFFFF,
                1 if self.sequence is None else self.sequence) + records + bytes(pad))
        self.sequence = None if self.sequence is None else self.sequence + 1
        self.begin = self.now


def write(directory, text, **streams):
    directory.mkdir(parents=True)
    (directory / "metadata").write_text(text)
    for name, data in streams.items():
        (directory / name).write_bytes(data)
    return directory


def numbers(count):
    return "".join(f"integer {{ size = 32; align = 8; signed = 1; }} _n{i}; " for i in range(count))


def simple(k, name, n_packets=3, n_events=10, gap=1000, instance=0):
    """Creates one stream of events `made:up` with one number, counted from 0."""
    s = Stream("<", instance)
    for p in range(n_packets):
        s.packet(b"".join(s.event(0, gap * (n_events * p + i + 1), struct.pack("<i", n_events * p + i)) for i in range(n_events)), pad=16)
    return write(k.top / name, metadata("le", numbers(1)), s=s.data)


# -- tests

def test_as_babeltrace2_lttng(k):
    for name in ("lttng-uid", "lttng-pid", "lttng-lost"):
        lines = compare(k, lttng(k, name))
        check(len(lines) > 100, f"{name}: only {len(lines)} lines")
    text = b"\n".join(lines)
    for part in (b"d = -nan", b"= -0", b"d = inf", b"-9223372036854775808", b"\\x7f", b"<unknown>", b"[ ]"):
        check(part in text, f"the trace lacks {part}")
    compare(k, lttng(k, "lttng-uid") / "ust" / "uid" / "0" / "64-bit")


ALL_KINDS = """
	integer { size = 3; } _b3; integer { size = 13; signed = true; base = hex; } _x13;
	integer { size = 1; } _bit; integer { size = 7; signed = 1; base = 8; } _o7;
	integer { size = 40; align = 1; } _u40;
	integer { size = 64; align = 1; signed = 1; base = o; } _o64;
	integer { size = 9; base = b; } _b9;
	integer { size = 16; align = 16; byte_order = be; base = 16; } _be;
	integer { size = 32; align = 32; byte_order = le; } _le;
	floating_point { exp_dig = 8; mant_dig = 24; align = 8; } _f;
	floating_point { exp_dig = 11; mant_dig = 53; align = 8; byte_order = be; } _d;
	enum : integer { size = 4; signed = 1; } {
		A, B, C = -3 ... -1, "also \\"B\\"" = 1, D, E = 2, F = 5 ... 7, F = -8
	} _e;
	enum : integer { size = 4; } { "x y" = 0 ... 15, odd = 1 } _e2;
	struct {
		integer { size = 5; } a; struct { } nothing;
		struct { string s; integer { size = 8; } _x; } in;
	} _s[2];
	integer { size = 2; } n_seq; integer { size = 11; signed = 1; } _seq[n_seq];
	enum tag : integer { size = 2; } { _one, two, three, four } _tag;
	variant <_tag> {
		integer { size = 8; } _one; string two;
		struct { floating_point { exp_dig = 8; mant_dig = 24; } f; } three; uint8_t four[3];
	} _v;
	struct {
		integer { size = 4; align = 8; } len;
		struct { integer { size = 6; } q[len]; } in[event.fields._n.len];
	} _n;
	integer { size = 8; align = 8; signed = 1; encoding = UTF8; } _text[6];
	count_t _n_text, _zero; integer { size = 8; align = 8; encoding = ASCII; } _tseq[_n_text];
	uint8_t _grid[2][3]; uint8_t _last[_zero];
"""


class Bits:
    """Writes fields as in a CTF packet, at an offset of whole bytes."""

    def __init__(self, order, offset):
        self.order, self.bits, self.offset = order, [], offset * 8

    def align(self, n):
        while (self.offset + len(self.bits)) % n:
            self.bits.append(0)

    def put(self, value, size, align=None, order=None):
        self.align(align or (1 if size % 8 else 8))
        bits = [value >> i & 1 for i in range(size)]
        self.bits += bits if (order or self.order) == "<" else bits[::-1]
        if (order or self.order) != self.order and not size % 8:
            # Whole bytes of the other byte order; the bits within each byte keep this order.
            tail = self.bits[-size:]
            self.bits[-size:] = [b for i in range(0, size, 8) for b in tail[i:i + 8][::-1]]

    def text(self, text):
        for byte in text + b"\0":
            self.put(byte, 8, 8)

    def bytes(self):
        self.align(8)
        step = 1 if self.order == "<" else -1
        return bytes(sum(b << i for i, b in enumerate(self.bits[at:at + 8][::step])) for at in range(0, len(self.bits), 8))


def random_fields(rng, order, offset):
    b, big = Bits(order, offset), lambda n: rng.getrandbits(n)
    word = lambda: bytes(rng.choice(b"ab\x01\x1b\"\\?'\n\xc3\xa9\xff") for _ in range(rng.randrange(1, 6)))
    for size in (3, 13, 1, 7):
        b.put(big(size), size)
    b.put(big(40), 40, 1)
    b.put(big(64), 64, 1)
    b.put(big(9), 9)
    b.put(big(16), 16, 16, ">")
    b.put(big(32), 32, 32, "<")
    b.put(big(32), 32, 8)
    b.put(struct.unpack(">Q", struct.pack(">d", rng.choice([0.1, -0.0, 1e300, float("inf"), rng.random()])))[0], 64, 8, ">")
    b.put(big(4), 4)
    b.put(big(4), 4)
    for _ in range(2):
        b.align(8)
        b.put(big(5), 5)
        b.text(word())
        b.put(big(8), 8)
    n = big(2)
    b.put(n, 2)
    for _ in range(n):
        b.put(big(11), 11)
    tag = big(2)
    b.put(tag, 2)
    if tag == 0:
        b.put(big(8), 8)
    elif tag == 1:
        b.text(word())
    elif tag == 2:
        b.put(0x40490FDB, 32)
    else:
        for _ in range(3):
            b.put(big(8), 8)
    n = rng.randrange(4)
    b.put(n, 4, 8)
    for _ in range(n * n):
        b.put(big(6), 6)
    for byte in rng.choice([b"abcdef", b"ab\0\0\0\0", b"\xff\x01\x02\x03\x04\x05"]):
        b.put(byte, 8, 8)
    text = word()
    b.put(len(text), 32, 8)
    b.put(0, 32, 8)
    for byte in text:
        b.put(byte, 8, 8)
    for _ in range(6):
        b.put(big(8), 8)
    return b.bytes()


def test_as_babeltrace2_types(k):
    """Every kind of field, both byte orders, unusual sizes and offsets."""
    for order, name in (("<", "le"), (">", "be")):
        rng = random.Random(name)
        s, time = Stream(order), 0
        for _ in range(5):
            records = b""
            for _ in range(20):
                time += rng.randrange(1, 1 << 26)
                records += s.event(0, time, b"")
                records += random_fields(rng, order, 72 + len(records))
            time += 1 << 30
            records += s.event(70000, time, b"who?\0") + s.event(2, time + 5, b"")
            s.packet(records, pad=rng.randrange(50))
        lines = compare(k, write(k.top / name, metadata(name, ALL_KINDS), s=s.data))
        equal(len(lines), 110, "events")


def test_as_babeltrace2_clock(k):
    """Times of clocks that do not count nanoseconds, from several streams with equal times."""
    for freq in (1, 1000, 2300000000, 2299998765, 24000000):
        rng, streams = random.Random(freq), {}
        for i in range(3):
            s, time = Stream("<", i), min(freq, 10**9) * 86400
            begin = time
            for number in range(200):
                records = b""
                for n in range(5):
                    time += rng.choice([0, 0, 1, 3, max(1, freq // 1000), 1 << 27 if freq > 1 else 1])
                    records += s.event(40000 + 30000, time, b"x\0") if n == 4 else s.event(2, time, b"")
                s.packet(records if freq > 1 or number < 3 else b"", begin)
                begin = time
            streams[f"s{i}"] = s.data
        compare(k, write(k.top / f"f{freq}", metadata("le", numbers(1), f"freq = {freq};"), **streams))


def test_as_babeltrace2_several(k):
    """Traces of several UIDs under one directory, merged."""
    for i in range(3):
        s, text = Stream("<"), metadata("le", numbers(1)).replace(str(uuid.UUID(int=1)), str(uuid.UUID(int=9 - i)))
        for p in range(3):
            s.packet(b"".join(s.event(0, 1000 * (10 * p + n) + i % 2, struct.pack("<i", n)) for n in range(10)))
        write(k.top / "several" / "ust" / "uid" / str(i) / "64-bit", text, s=s.data.replace(uuid.UUID(int=1).bytes, uuid.UUID(int=9 - i).bytes))
    equal(len(compare(k, k.top / "several")), 90, "events")
    stat = k.kymo_json("stat", str(k.top / "several"))
    equal((stat["by_name"], stat["streams"], stat["duration_ns"]), ({"made:up": 90}, 3, 29001), "counts, each stream's on its own")


def test_as_babeltrace2_kymo(k):
    """Kymo's own traces: each kind of field, and many simultaneous events from several threads."""
    k.start_daemon()
    trace = k.record("*")
    k.app("fields")
    k.app("emit", "-t", 4, "-n", 2000, "-m")
    k.kymo("stop", "s")
    k.kymo("destroy", "s")
    lines = compare(k, trace)
    check(len(lines) > 100, f"only {len(lines)} events")
    stat = k.kymo_json("stat", str(trace))
    equal(stat["events"], len(lines), "events")
    newest = raw(k, [CLI, "view"])[0]
    equal(newest, raw(k, [CLI, "view", trace])[0], "the trace that is taken when none is named")
    for line in raw(k, [CLI, "view", trace, "--format=json"])[0].splitlines():
        json.loads(line)


def test_names_of_sessions(k):
    """A name that is no file means a session's trace, while the session is there and afterwards."""
    fails = lambda wanted: check(wanted in k.kymo("view", "demo", status=1).stderr, wanted)
    fails("there is no trace 'demo' here, and no session daemon runs")
    k.start_daemon()
    fails("no trace 'demo' is here, and there is no session 'demo'")
    k.kymo("create", "demo")
    fails("has recorded no event yet")
    k.kymo("enable-event", "*")
    k.kymo("start")
    k.app("emit", "-n", 10)
    k.kymo("stop")
    count = lambda: k.kymo_json("stat", "demo")["events"]
    equal(count(), 10, "events of a session")
    equal(len(k.kymo("view", "demo").stdout.splitlines()), 10, "lines")
    k.kymo("diff", "demo", "demo")
    k.kymo("destroy")
    equal(count(), 10, "events of a session that was destroyed")
    write(k.traces / "demo-other", metadata("le", numbers(1)))
    write(k.traces / "demo-20991231-235959", metadata("le", numbers(1)))
    equal(count(), 0, "events of the session's newest trace")
    k.kymo("create", "--snapshot", "flight")
    check("keeps its events in memory" in k.kymo("view", "flight", status=1).stderr, "a session without a trace")


def test_lost(k):
    """
    Counts of discarded events are exact: the first packet counts from 0, and counters of 32 bits
    wrap.
    """
    s = Stream("<")
    s.packet(s.event(2, 10, b""), discarded=5)
    s.packet(b"", discarded=0x7FFFFFFF)
    s.packet(b"", discarded=0x7FFFFFFF)
    s.packet(s.event(2, 20, b""), discarded=3)
    trace = write(k.top / "lost", metadata("le", numbers(1)), s=s.data)
    stat = k.kymo_json("stat", str(trace))
    equal((stat["events"], stat["discarded"]), (2, 5 + 2 * 0x7FFFFFFF + 3), "events and discarded")
    equal(raw(k, [CLI, "view", trace])[1].count(b"WARNING: Tracer discarded"), 4, "warnings")


def test_chunks(k):
    """A stream in several files is one stream: its counters continue."""
    whole = [Stream("<") for _ in range(3)]
    for i, s in enumerate(whole):
        s.discarded = 10 * i
        s.packet(s.event(2, 100 * i + 1, b""), 100 * i, discarded=10)
    trace = write(k.top / "chunks", metadata("le", numbers(1)), **{f"s_0_{i}": s.data for i, s in enumerate(whole)})
    stat = k.kymo_json("stat", str(trace))
    equal((stat["events"], stat["discarded"], stat["streams"]), (3, 30, 1), "events, discarded, streams")
    parts = [Stream("<") for _ in range(3)]
    for i, s in enumerate(parts):
        s.discarded = 10 * max(i - 1, 0)
        s.packet(s.event(2, 100 * i + 1, b""), 100 * i, discarded=10 * (i > 0))
    files = {f"s_{i}": s.data for i, s in enumerate(parts)}
    compare(k, write(k.top / "files", metadata("le", numbers(1)), **files))
    for name, data in files.items():
        write(k.top / "directories" / name, metadata("le", numbers(1)), s=data)
    errors = [raw(k, [*command, k.top / "directories"])[1] for command in ((CLI, "view"), ("babeltrace2",))]
    equal(errors[0], errors[1], "losses of a stream in several directories")


def values(k, *traces, status=0):
    out, errors = raw(k, [CLI, "view", *traces], status)
    return [int(n) for n in re.findall(rb"n0 = (-?\d+)", out)], errors.decode()


def one_warning(errors, word):
    check(errors.count("\n") == 1 and errors.startswith("kymo: ") and word in errors, f"wanted one warning with {word!r}: {errors!r}")


def test_truncated(k):
    """A file truncated at any place: all whole records, one warning, no failure."""
    trace = simple(k, "cut")
    data = (trace / "s").read_bytes()
    packet, record = len(data) // 3, 10
    equal(values(k, trace), (list(range(30)), ""), "the whole trace")
    for size in (packet + 1, packet + 71, packet + 72, packet + 72 + 3, packet + 72 + 7 * record, packet + 72 + 8 * record - 1, 2 * packet - 1):
        (trace / "s").write_bytes(data[:size])
        got, errors = values(k, trace)
        inside = max(0, min(10, (size - packet - 72) // record))
        equal(got, list(range(10 + inside)), f"cut at {size}")
        one_warning(errors, "ends within a packet")


def test_damaged(k):
    """
    A bad record costs the rest of its packet, a bad header costs the packet; all others are whole.
    """
    trace = simple(k, "bad")
    data = bytearray((trace / "s").read_bytes())
    packet = len(data) // 3
    for offset, byte, left in ((packet + 72 + 30, 29, 13), (packet, 0, 10), (packet + 20, 99, 10), (packet + 55, 0xFF, 10), (packet + 63, 0xFF, 20)):
        bad = data[:]
        bad[offset] = byte
        (trace / "s").write_bytes(bad)
        got, errors = values(k, trace)
        equal(got, list(range(left)) + list(range(20, 30)), f"byte {offset - packet} of the packet")
        one_warning(errors, "damaged")
    (trace / "s").write_bytes(os.urandom(100) + data)
    got, errors = values(k, trace)
    equal(got, list(range(30)), "after rubbish")
    one_warning(errors, "damaged")


def test_warned(k):
    """
    A warning about a stream appears at its end, among the events of other streams, and changes none
    of these.
    """
    long, short = Stream("<", 0), Stream("<", 1)
    for p in range(30):
        long.packet(b"".join(long.event(0, 100 * p + n + 1, struct.pack("<i", 100 * p + n)) for n in range(100)))
    short.packet(short.event(2, 10, b"") + short.event(2, 2345, b""))
    trace = write(k.top / "warned", metadata("le", numbers(1)), long=long.data, short=short.data + b"rubbish")
    got, errors = values(k, trace)
    equal(got, list(range(3000)), "events")
    one_warning(errors, "short is damaged in 1 place")
    both = raw(k, ["sh", "-c", '"$0" view "$1" 2>&1', CLI, trace])[0].splitlines()
    equal([i for i, line in enumerate(both) if line.startswith(b"kymo: ")], [2347], "line of the warning")


def test_zeros(k):
    """A file system that lost its last writes leaves zeros; metadata may end within a block."""
    trace = simple(k, "zeros")
    with open(trace / "s", "ab") as f:
        f.write(bytes(5000))
    equal(values(k, trace)[0], list(range(30)), "with zeros behind the stream")
    (trace / "s").write_bytes((trace / "s").read_bytes()[:-5000])
    with open(trace / "metadata", "a") as f:
        f.write('event { name = "half:wri')
    got, errors = values(k, trace)
    equal(got, list(range(30)), "with half a block of metadata")
    one_warning(errors, "ends within a block")


def test_hostile_fast(k):
    """Impossible claims cost no time and no memory."""
    huge = "count_t _n; struct { uint8_t x; } _s[_n]; "
    s = Stream("<")
    s.packet(b"".join(s.event(0, i + 1, b"\xff\xff\xff\x7f") for i in range(20000)))
    trace = write(k.top / "huge", metadata("le", huge), s=s.data)
    limit = None if kymotest.SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))
    out, errors = raw(k, [CLI, "view", trace], preexec_fn=limit)
    equal(out, b"", "events")
    one_warning(errors.decode(), "damaged")


def test_hostile_comments(k):
    """A comment within a comment is no second one: each byte is searched once."""
    trace = simple(k, "comments")
    with open(trace / "metadata", "a") as f:
        f.write("\n/* gap: a\n/* gap: b */\n/* gap: c */" + 10 * "\n/* gap: " + " */\n")
    got, errors = values(k, trace)
    equal((got, errors.count("kymo: ")), (list(range(30)), 3), f"events and gaps: {errors}")


def test_hostile_linear(k):
    """Elements without bits have one budget for a whole file, whatever the number of packets."""
    sizes = []
    for n in (1000, 4000):
        s = Stream("<")
        for _ in range(n):
            s.packet(s.event(0, s.now + 1, b"\xf0\xff\x00\x00"))
        trace = write(k.top / f"empty{n}", metadata("le", "count_t _n; struct { } _x[_n]; "), s=s.data)
        out, _ = raw(k, [CLI, "view", trace])
        sizes.append(len(out) / len(s.data))
    check(sizes[1] < 600 and sizes[1] <= 1.5 * sizes[0], f"bytes of text for each byte of the trace: {sizes}")


def test_hostile_heads(k):
    """Long heads that fail, each within the one before, have one budget for a whole file."""
    trace = write(k.top / "heads", """/* CTF 1.8 */
typealias integer { size = 32; align = 8; } := unsigned int;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct {
	unsigned int magic; struct { integer { size = 8; align = 8; } a; } x[60000];
	unsigned int stream_id; }; };
stream { id = 5;
	packet.context := struct { unsigned int content_size; unsigned int packet_size; }; };
""", s=struct.pack("<I60000xIII", MAGIC, 5, 480128, 480128) + struct.pack("<I", MAGIC) * 20000)
    places = re.search(rb"damaged in (\d+) place", raw(k, [CLI, "view", trace])[1])
    check(places and int(places[1]) < 1000, f"heads that were decoded: {places}")


def test_hostile_text(k):
    """Lines and cells of megabytes, of few bytes, are printed in bounded memory."""
    if kymotest.SANITIZED:
        raise kymotest.Skip("sanitizers need all addresses")
    flags = {f"{'F' * 1000}{i}": [[0, 7]] for i in range(1000)}
    fields = {"type": "structure", "member-classes": [{"name": "a", "field-class": {"type": "fixed-length-bit-map", "length": 8, "byte-order": "little-endian", "flags": flags}}]}
    fragments = ({"type": "preamble", "version": 2}, {"type": "data-stream-class"}, {"type": "event-record-class", "name": "e", "payload-field-class": fields})
    n = 250
    trace = write(k.top / "text", "".join(f"\x1e{json.dumps(f)}\n" for f in fragments), s=b"\1" * n)
    for command in (["view"], ["--json", "view"], ["sql"]):
        query = ["SELECT fields FROM events"] if command == ["sql"] else []
        view = subprocess.Popen([CLI, *command, trace, *query], env=k.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20)))
        size = 0
        while part := view.stdout.read1(1 << 20):
            size += len(part)
        equal((view.stderr.read(), view.wait(TIMEOUT)), (b"", 0), f"{command}: errors and status")
        check(size > n * 1_000_000, f"{command}: {size} bytes")
    # one event that would have 3 GB of text, and metadata that is as large, in a hole
    fields["member-classes"] = [{"name": "a", "field-class": {"type": "static-length-array", "length": 60000, "element-field-class": {
        "type": "structure", "member-classes": [{"name": "N" * 50000, "field-class": {"type": "fixed-length-unsigned-integer", "length": 1, "byte-order": "little-endian"}}]}}}]
    trace = write(k.top / "line", "".join(f"\x1e{json.dumps(f)}\n" for f in fragments), s=b"\1" * 7500)
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
    for command in (["view"], ["--json", "view"]):
        _, errors = raw(k, [CLI, *command, trace], status=1, preexec_fn=limit)
        equal(errors, b"kymo: cannot write the events: one has more than 64 MiB of text\n", f"{command}: errors")
    for command in (["sql", trace, "SELECT a FROM e"], ["export", trace, "--to=chrome", "-o", k.top / "x"]):
        raw(k, [CLI, *command], status=1, preexec_fn=limit)
    _, errors = raw(k, [CLI, "sql", trace, "--csv", "SELECT fields FROM events"], status=1, preexec_fn=limit)
    check(b"too much text" in errors, f"the column fields: {errors}")
    _, errors = raw(k, [CLI, "export", trace, "--to=clickhouse", "-o", k.top / "x"], status=1, preexec_fn=limit)
    check(b"the output would have more than" in errors, f"rows without fields: {errors}")
    out, _ = raw(k, [CLI, "stat", trace, "--by=a"], preexec_fn=limit)
    check(b" 1  of other values" in out, f"a value that is too long: {out[:300]}")
    # values of 47 KB, each another one: the first have 64 MiB
    array = fields["member-classes"][0]["field-class"]
    array["length"], array["element-field-class"]["member-classes"][0]["name"] = 16, "N" * 3000
    n = 6000
    trace = write(k.top / "values", "".join(f"\x1e{json.dumps(f)}\n" for f in fragments), s=struct.pack(f"<{n}H", *range(n)))
    out, _ = raw(k, [CLI, "stat", trace, "--by=a"], preexec_fn=limit)
    n_others = int(re.search(rb"(\d+)  of other values\n$", out)[1])
    check(1000 < n - n_others < 1500, f"{n_others} of {n} are others")
    array["length"], array["element-field-class"]["member-classes"][0]["name"] = 60000, "N" * 50000
    # the reader does not go through the rest of an event that has too much
    array["length"] = 4_000_000
    trace = write(k.top / "rest", "".join(f"\x1e{json.dumps(f)}\n" for f in fragments), s=b"\1" * 500_000)
    for command in (["view"], ["--json", "view"]):
        _, errors = raw(k, [CLI, *command, trace], status=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (4, 4)))
        check(b"one has more than 64 MiB of text" in errors, f"{command}: {errors}")
    trace = k.top / "line"
    os.truncate(trace / "metadata", 3 << 30)
    _, errors = raw(k, [CLI, "view", trace], status=1, preexec_fn=limit)
    check(b"File too large" in errors, errors)


def test_hostile_read(k):
    """
    The reader reads of damaged files only a small multiple of their sizes: of files with magic
    numbers only, and of packets that never end.
    """
    kymotest.need_program("strace", "strace")
    endless = struct.pack("<I", MAGIC) + uuid.UUID(int=1).bytes + struct.pack("<IQQQQQII", 3, 0, 0, 0, 1 << 60, 1 << 60, 0, 1)
    for name, data in (("magic", struct.pack("<II", MAGIC, 0)), ("endless", endless), ("wide", endless + b"\xff\xff\xff\xff")):
        trace = write(k.top / name, metadata("le", numbers(1)), s=data * ((1 << 20) // len(data)))
        read = k.top / f"{name}.strace"
        done = k.run(["strace", "-f", "-e", "trace=pread64", "-o", read, CLI, "view", trace])
        equal(done.stdout, "", name)
        n = sum(int(line.rsplit("=", 1)[1]) for line in read.read_text().splitlines() if " = " in line)
        check(0 < n < 64 << 20, f"{name}: {n} bytes were read of a file of 1 MiB")


def test_no_stream(k):
    """A file that is no stream of the trace is reported with the reason, however small it is."""
    head = Stream("<")
    head.packet(b"")
    for name, data, word in (("note", b"rubbish", "magic number"), ("page", b"rubbish" * 1000, "magic number"),
            ("other", head.data.replace(uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes), "UUID"),
            ("class", head.data.replace(struct.pack("<IQ", 3, 0), struct.pack("<IQ", 4, 0)), "stream class"),
            ("half", head.data[:50], "ends within a packet")):
        trace = simple(k, name)
        (trace / "x").write_bytes(data)
        got, errors = values(k, trace)
        equal(got, list(range(30)), name)
        one_warning(errors, word)


def test_lost_metadata(k):
    """Streams beside a trace that have lost their metadata are reported, by the first directory."""
    trace, text = simple(k, "host/kernel"), k.top / "host" / "notes"
    text.mkdir()
    (text / "a").write_bytes(b"no stream")
    equal(values(k, k.top / "host"), (list(range(30)), ""), "whole")
    for number in range(2):
        lost = k.top / "host" / f"ust{number}"
        lost.mkdir()
        for name, data in (("a", b"no stream"), ("b", b""), ("s", (trace / "s").read_bytes())):
            (lost / name).write_bytes(data)
        got, errors = values(k, k.top / "host")
        equal(got, list(range(30)), "the other trace")
        one_warning(errors, "no file 'metadata'")
        check(re.search(r"/host/ust[01] has", errors) and ("directories like it" in errors) == (number > 0), errors)


def test_many_files(k):
    """More streams than a process may have descriptors, or mappings."""
    n = 1500 if kymotest.SANITIZED else 66000
    streams = {}
    for i in range(n):
        s = Stream("<", i)
        s.packet(s.event(2, i + 1, b""), begin=i)
        streams[f"s{i}"] = s.data
    trace = write(k.top / "many", metadata("le", numbers(1)), **streams)
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    out, errors = raw(k, [CLI, "--json", "stat", trace], preexec_fn=limit)
    stat = json.loads(out)
    equal((errors, stat["events"], stat["streams"]), (b"", n, n), "errors, events, streams")
    out, _ = raw(k, [CLI, "view", trace, "--begin=1700000000.000012345", "--end=1700000000.000013345"], preexec_fn=limit)
    equal(out.count(b"\n"), 1001 - 1, "lines")


def test_json(k):
    """One valid object on each line, for strings with any bytes."""
    for name in ("lttng-uid", "lttng-pid"):
        trace = lttng(k, name)
        out, _ = raw(k, [CLI, "view", trace, "--format=json"])
        events = [json.loads(line) for line in out.decode("utf-8").splitlines()]
        text, _ = raw(k, [CLI, "view", trace])
        equal(len(events), text.count(b"\n"), "lines")
        times = [e["timestamp"] for e in events]
        equal(times, sorted(times), "order")
        for event, line in zip(events, text.decode(errors="replace").splitlines()):
            check(line.startswith(f"[") and f" {event['name']}: " in line and event["time"][17:29] in line, f"{event} is not {line}")
    strings = [e["fields"]["str"] for e in events if e["name"] == "shop:strs"]
    for wanted in ("", "plain", "utf8 é€", "bad \ufffd\ufffd(", "quo\"te back\\ que?stion 'tick'"):
        check(wanted in strings, f"{wanted!r} is not among {strings}")
    doubles = [e["fields"]["d"] for e in events if e["name"] == "shop:floats"]
    check("nan" in doubles and "-inf" in doubles and 0.1 in doubles, f"{doubles}")
    done = k.run([CLI, "--json", "view", trace])
    equal(done.stdout.encode(), out, "--json is --format=json")


def test_begin_end(k):
    k.env["TZ"] = "UTC"
    trace = simple(k, "range", gap=1000000000 // 10)
    base = 1700000000 + 12345e-9
    for options, wanted in (([], range(30)), (["--begin=1700000001.05"], range(10, 30)), (["--end=1700000001.000012345"], range(10)),
            (["--begin=22:13:21.05", "--end=22:13:22"], range(10, 19)), (["--begin=2023-11-14 22:13:22.95"], range(29, 30)),
            (["--begin=2023-11-14T22:13:29"], []), (["--begin=22:13", "--end=2023-11-14 22:14"], range(30)), (["--begin=22:14"], [])):
        out, errors = raw(k, [CLI, "view", trace, *options])
        equal(errors.decode(), "" if wanted else f"kymo: no event in {trace} is selected\n", f"{options}: messages")
        equal([int(n) for n in re.findall(rb"n0 = (\d+)", out)], list(wanted), f"{options}, from {base}")
    # A time as --json prints it can be pasted, wherever the reader is.
    whole = [json.loads(line) for line in k.kymo("view", trace, "--json").stdout.splitlines()]
    for zone in ("Asia/Tokyo", "America/New_York", "UTC"):
        k.env["TZ"] = zone
        out, errors = raw(k, [CLI, "view", trace, f"--begin={whole[7]['time']}", f"--end={whole[9]['time']}"])
        equal(([int(n) for n in re.findall(rb"n0 = (\d+)", out)], errors), ([7, 8, 9], b""), f"events between times of JSON, in {zone}")
    check("--begin is later than --end" in k.kymo("view", trace, "--begin=+2s", "--end=+1s").stderr, "an empty range of time")
    # before 1970: view shows the same seconds without the @, and stat the command
    text = (trace / "metadata").read_text()
    (trace / "metadata").write_text(text.replace("offset_s = 1700000000", "offset_s = -2"))
    for options, wanted in ((["--begin=@-0.94"], range(10, 30)), (["--begin=@-1", "--end=@0.001"], range(9, 20)), (["--end=23:59:58.5"], range(4))):
        out, _ = raw(k, [CLI, "view", trace, *options])
        equal([int(n) for n in re.findall(rb"n0 = (\d+)", out)], list(wanted), f"{options}, before 1970")
    k.env["TZ"] = "CET-1CEST,M3.5.0,M10.5.0/3"
    for begin in (1792888200, 1792891800):  # 2:30, before and after the clock was set back
        (trace / "metadata").write_text(text.replace("offset_s = 1700000000", f"offset_s = {begin}"))
        for options, wanted in ((["--begin=02:30:01.05"], range(10, 30)), (["--begin=2026-10-25 02:30:01.05", "--end=02:30:02"], range(10, 19))):
            out, _ = raw(k, [CLI, "view", trace, *options])
            equal([int(n) for n in re.findall(rb"n0 = (\d+)", out)], list(wanted), f"{options}, from {begin}")
    (trace / "metadata").write_text(text.replace("offset_s = 1700000000", "offset_s = -2"))
    for event in k.kymo_json("stat", trace, "--top=n0")["top"][0]["events"]:
        out, _ = raw(k, [CLI, *event["view"].split()[1:]])
        check(b"n0 = %d " % event["value"] in out, event)
    for bad in ("--begin=@", "--begin=@-", "--begin=@1ms", "--begin=@+1", "--begin=noon", "--end=1:2", "--end=12:1", "--begin=2023-02-29T12:00:00Z", "--begin=12:00:00Z", "--begin=2023-11-14 Z", "--begin=2023-11-14", "--begin=1.5x", "--format=xml", "--begin=24:00:00", "--begin=12:60:00",
            "--begin=2023-02-29 12:00:00", "--begin=+1.5d", "--end=-", "--tail=x", "--fields=", "--time=new", "--event=", "--filter=n0 ==", "-e,"):
        k.kymo("view", str(trace), bad, status=2)


def test_back_in_time(k):
    """Ranges of time have all their events if packets go back in time or overlap."""
    s = Stream("<")
    packets = ((5, 6), (50, 90), (10,), (60, 300), (70,), (400, 590), (380, 500), (600,))
    for number, times in enumerate(packets):
        s.packet(b"".join(s.event(70000, time, b"\0") for time in times), begin=times[0], pad=70000 * (number % 2))
    text = metadata("le", numbers(1))
    # In the second one, the heads of packets have no times.
    hidden = text.replace("time_t timestamp_begin; time_t timestamp_end;", "unsigned long long first, last;")
    # In the third one, they do not say when packets end.
    endless = text.replace("time_t timestamp_end;", "unsigned long long last;")
    # In the fourth one, packets begin in order, and their ends are those of their first events.
    early, in_order = Stream("<"), tuple(times for times in packets if times[0] not in (10, 380))
    for times in in_order:
        records = b"".join(early.event(70000, time, b"\0") for time in times)
        early.now = times[0]
        early.packet(records, begin=times[0])
    for trace, times in ((write(k.top / "back", text, s=s.data), packets), (write(k.top / "hidden", hidden, s=s.data), packets), (write(k.top / "endless", endless, s=s.data), packets), (write(k.top / "early", text, s=early.data), in_order)):
        for begin, end in ((0, 5), (0, 7), (8, 15), (0, 30), (55, 65), (70, 70), (100, 299), (290, 350), (350, 390), (390, 450), (550, 700), (570, 595)):
            wanted = sorted(time for part in times for time in part if begin <= time <= end)
            limits = (f"--{name}=1700000000.{time + 12345:09}" for name, time in (("begin", begin), ("end", end)))
            stat = k.kymo_json("stat", trace, *limits)
            equal(stat["events"], len(wanted), f"{trace}: events from {begin} to {end}")
            if wanted:
                equal(stat["duration_ns"], wanted[-1] - wanted[0], f"{trace}: duration from {begin} to {end}")
    # Commands report that events are in no order, but only those that they read.
    for trace, limit, n_back in (("back", "", 3), ("hidden", "", 3), ("endless", "", 3), ("early", "", 2), ("back", "--end=1700000000.000012374", 0), ("back", "--begin=1700000000.000012725", 1)):
        for command in (["view"], ["view", "--format=json"], ["stat"]):
            lines = k.kymo(*command, k.top / trace, *([limit] if limit else [])).stderr.splitlines()
            wanted = [f"kymo: the times of {k.top / trace / 's'} go back in {n_back} place{'s' * (n_back > 1)}: its events are not in order"]
            equal([line for line in lines if "go back" in line], wanted if n_back else [], f"{command} {trace} {limit}")
    # babeltrace2 stops where time goes back in a stream, so an export warns of that.
    for end, is_back in ((15, False), (55, True)):
        errors = k.kymo("export", k.top / "back", "--to=ctf", "-o", k.top / f"until{end}", f"--end=1700000000.{end + 12345:09}").stderr
        equal("go back in time" in errors, is_back, f"export until {end}: {errors!r}")
        done = k.run(["babeltrace2", k.top / f"until{end}"], status=None)
        equal(done.returncode != 0, is_back, f"babeltrace2 until {end}: {done.stderr}")


def test_packets_twice(k):
    """
    A packet that a stream has twice is read once, and a line says so. One with the number of
    another and other bytes is none.
    """
    s = Stream("<", sequence=0)
    for p in range(4):
        s.packet(b"".join(s.event(0, 1000 * (10 * p + i + 1), struct.pack("<i", 10 * p + i)) for i in range(10)), pad=16)
    size = len(s.data) // 4
    packets = [s.data[i:i + size] for i in range(0, len(s.data), size)]
    other = bytearray(packets[1])
    other[-20] ^= 1
    text = metadata("le", numbers(1)).replace("unsigned int cpu_id;", "unsigned int packet_seq_num;")
    for name, n_twice, n_events, files in (
            ("appended", 4, 40, {"s": s.data * 2}), ("next", 1, 40, {"s": b"".join(packets[:2] + packets[1:])}),
            ("later", 1, 40, {"s": s.data + packets[1]}), ("copy", 4, 40, {"s": s.data, "t": s.data}),
            ("damaged", 1, 40, {"s": s.data + b"rubbish" + packets[3]}), ("other", 0, 50, {"s": s.data + other})):
        trace = write(k.top / name, text, **files)
        for command in (["view"], ["view", "--begin=+15us"], ["stat"], ["export", "--to=ctf", "-o", k.top / f"{name}-export"]):
            errors = k.kymo(command[0], trace, *command[1:]).stderr.splitlines()
            wanted = [f"kymo: {trace / 's'} has {n_twice} packet{'s' * (n_twice > 1)} twice: each is read once"]
            equal([line for line in errors if "twice" in line], wanted if n_twice else [], f"{name}: {command}")
        equal(len(values(k, trace)[0]), n_events, f"{name}: events")
        equal(k.kymo_json("stat", trace)["events"], n_events, f"{name}: events in stat")
        equal(k.kymo("view", trace, "--begin=@1700000000.000032345").stdout.count("made:up"), 21 + (n_events > 40), f"{name}: events from a time on")


def test_many_packets_twice(k):
    """The same of a trace that is large enough for several threads."""
    s = Stream("<", sequence=0)
    for p in range(64):
        s.packet(s.event(0, 1000 * (p + 1), struct.pack("<i", p)), pad=64 << 10)
    text = metadata("le", numbers(1)).replace("unsigned int cpu_id;", "unsigned int packet_seq_num;")
    trace = write(k.top / "appended", text, s=s.data * 2)
    done = k.kymo("view", trace)
    equal(done.stdout, k.kymo("view", write(k.top / "whole", text, s=s.data)).stdout, "the lines of the events")
    equal(done.stderr.splitlines(), [f"kymo: {trace / 's'} has 64 packets twice: each is read once"], "what is said of them")
    equal(k.kymo_json("stat", trace)["events"], 64, "events in stat")


def test_damaged_begin(k):
    """
    A damaged begin of a packet of Kymo changes no times: those of its records count from the end of
    the packet before. One of another tracer is used as it is, and the wrong order is reported.
    """
    s = Stream("<", sequence=0)
    for p in range(4):
        s.packet(b"".join(s.event(0, 1000 * (10 * p + i + 1), struct.pack("<i", 10 * p + i)) for i in range(10)))
    begin = 2 * len(s.data) // 4 + 32
    text = metadata("le", numbers(1)).replace("unsigned int cpu_id;", "unsigned int packet_seq_num;")
    ours = text.replace('domain = "test";', 'domain = "test"; tracer_name = "kymo";')
    lines = k.kymo("view", write(k.top / "whole", ours, s=s.data)).stdout
    for bit in (14, 15, 27, 28, 32, 40, 50, 63):
        data = bytearray(s.data)
        data[begin + bit // 8] ^= 1 << bit % 8
        mended = k.kymo("view", write(k.top / f"kymo{bit}", ours, s=data))
        equal(mended.stdout, lines, f"bit {bit}")
        one_warning(mended.stderr, "has a damaged begin of 1 packet")
        if bit != 14:
            one_warning(values(k, write(k.top / f"other{bit}", text, s=data))[1], "go back in 1 place")


def test_hidden_packets(k):
    """
    A damaged size that leads exactly to a later packet hides no packet between, whose numbers show
    that it is missing. A packet of another number in the padding is none.
    """
    s = Stream("<", sequence=0)
    for p in range(6):
        s.packet(b"".join(s.event(0, 1000 * (10 * p + i + 1), struct.pack("<i", 10 * p + i)) for i in range(10)), pad=16)
    size = len(s.data) // 6
    text = metadata("le", numbers(1)).replace("unsigned int cpu_id;", "unsigned int packet_seq_num;")
    def with_size(number, n_packets):
        data = bytearray(s.data)
        struct.pack_into("<Q", data, number * size + 56, n_packets * size * 8)
        return data
    for name, data in (("one", with_size(1, 2)), ("many", with_size(1, 4)), ("first", with_size(0, 3))):
        trace = write(k.top / name, text, s=data)
        got, errors = values(k, trace)
        equal(got, list(range(60)), name)
        one_warning(errors, "is damaged in 1 place")
        equal(k.kymo_json("stat", trace)["events"], 60, f"{name}: events in stat")
        ranges = k.kymo("view", trace, "--begin=@1700000000.000027345", "--end=@1700000000.000047345").stdout
        equal(ranges.count("made:up"), 21, f"{name}: events of a range")
    # Packets 2 and 3 were lost; an old packet is in the padding of the one before.
    data = with_size(1, 2)
    data[2 * size:3 * size] = s.data[:size]
    got, errors = values(k, write(k.top / "lost", text, s=data[:3 * size] + data[4 * size:]))
    equal(got, [*range(20), *range(40, 60)], "lost")
    check("discarded 2 packets" in errors and "damaged" not in errors, errors)


def test_hostile_hidden(k):
    """Packets that all hide the next one, before a large packet, have one budget for a file."""
    s = Stream("<", sequence=0)
    for _ in range(1000):
        s.packet(s.event(0, 1000, bytes(4)))
    size, data = len(s.data) // 1000, bytearray(s.data)
    for p in range(1000):
        struct.pack_into("<Q", data, p * size + 56, (len(data) - p * size) * 8)
    s.data, s.sequence = b"", 5000
    s.packet(s.event(0, 1000, bytes(4)) * 400000)
    trace = write(k.top / "hidden", metadata("le", numbers(1)).replace("unsigned int cpu_id;", "unsigned int packet_seq_num;"), s=data + s.data)
    places = re.search(rb"damaged in (\d+) place", raw(k, [CLI, "view", trace, "--tail=1"])[1])
    check(places and int(places[1]) < 20, places)


def test_selection(k):
    """
    The selected output is the whole output, filtered: from any begin, with and without an index,
    and from several traces.
    """
    k.env["TZ"] = "UTC"
    rng = random.Random(7)
    streams = {}
    for i in range(3):
        s, now = Stream("<", i), rng.randrange(1000)
        for _ in range(60):
            records, first = [], now
            for _ in range(rng.randrange(300)):
                now += rng.randrange(2000)
                kind = rng.choice((0, 0, 0, 2, 70000))
                records.append(s.event(kind, now, struct.pack("<i", rng.randrange(-50, 50)) if kind == 0 else b"text\0" if kind > 31 else b""))
            s.packet(b"".join(records), begin=first, discarded=rng.choice((0, 0, 1)))
        streams[f"s{i}"] = s.data
    trace = write(k.top / "random", metadata("le", numbers(1)), **streams)
    whole = raw(k, [CLI, "view", trace, "--time=seconds"])[0].decode().splitlines()
    times = [line[1:line.index("]")] for line in whole]

    def expect(options, wanted):
        got = raw(k, [CLI, "view", trace, "--time=seconds", *options])[0].decode().splitlines()
        equal([l.partition(") ")[2] for l in got], [l.partition(") ")[2] for l in wanted], f"{options}")

    for _ in range(12):
        first, last = sorted(rng.sample(range(len(whole)), 2))
        expect([f"--begin={times[first]}", f"--end={times[last]}"], [l for t, l in zip(times, whole) if times[first] <= t <= times[last]])
        n = rng.randrange(1, len(whole))
        expect([f"--tail={n}"], whole[-n:])
    expect(["-e", "made:up"], [l for l in whole if " made:up: " in l])
    expect(["-e", "!made:up"], [l for l in whole if " made:up: " not in l])
    number = re.compile(r"n0 = (-?\d+)")
    odd = [l for l in whole if (m := number.search(l)) and int(m[1]) > 20]
    expect(["-f", "n0 > 20"], odd)
    expect(["-f", "n0 > 20", "--tail=5"], odd[-5:])
    expect(["-f", 'who == "te*" && $ctx.tid == -7'], [l for l in whole if " made:far: " in l])
    ns = [int(t.replace(".", "")) for t in times]
    half = (ns[-1] - ns[0]) // 2
    expect([f"--begin=+{half}ns", "--end=-0"], [l for t, l in zip(ns, whole) if t - ns[0] >= half])
    expect([f"--begin=-{half / 1000:.3f}us"], [l for t, l in zip(ns, whole) if ns[-1] - t <= half])
    out = raw(k, [CLI, "view", trace, "--fields=n0,tid", "-e", "made:up", "--tail=1"])[0].decode()
    check(re.search(r" made:up: \{ n0 = -?\d+, tid = -7 \}\n$", out), out)
    out = json.loads(raw(k, [CLI, "view", trace, "--fields=tid", "--tail=1", "--format=json"])[0])
    equal((out["fields"], "context" in out), ({"tid": -7}, False), "fields as JSON")


def test_large_packet(k):
    """A packet of more than 16 MiB is read in pieces; records cross their boundaries."""
    s = Stream("<")
    text = b"x" * 5000 + b"\0"
    n = 5000
    s.packet(b"".join(s.event(70000, i + 1, text) for i in range(n)))
    trace = write(k.top / "large", metadata("le", numbers(1)), s=s.data)
    limit = None if kymotest.SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_DATA, (16 << 20, 16 << 20))
    out, errors = raw(k, [CLI, "--json", "stat", trace], preexec_fn=limit)
    equal((json.loads(out)["events"], errors), (n, b""), "events, errors")
    equal(raw(k, [CLI, "view", trace, "-f", 'who == "*x"'])[0].count(b"x" * 5000 + b'"'), n, "whole texts")


def write_sparse(path, instance, n_packets, n_records, size, room):
    """
    Writes packets of records of one size, of which only the heads are not zeros, into so much room
    each; returns the time of the last record.
    """
    time = 0
    with open(path, "wb") as file:
        for packet in range(n_packets):
            s = Stream("<", instance)
            begin = file.tell()
            s.now = time + n_records
            s.packet(b"", begin=time)
            head = s.data[:48] + struct.pack("<QQ", (len(s.data) + n_records * size) * 8, room * 8) + s.data[64:]
            file.write(head)
            for record in range(n_records):
                time += 1
                file.seek(begin + len(head) + record * size)
                file.write(s.event(0, time, b""))
            file.truncate(begin + room)
            file.seek(0, os.SEEK_END)
    return time


def test_ten_gigabytes(k):
    """
    Reading takes memory for the packets that overlap in time, whatever the size of the trace:
    64 MiB and 4 MiB for each thread are enough for 10 GB. The end of the trace is found by its
    index.
    """
    n_packets, size, room = 80, 1 << 20, 64 << 20
    trace = write(k.top / "sparse", metadata("le", f"uint8_t _x[{size - 6}]; "))
    for instance, name in enumerate(("a", "b")):
        last = write_sparse(trace / name, instance, n_packets, 8, size, room)
    equal(sum((trace / name).stat().st_size for name in ("a", "b")), 10 << 30, "bytes")
    n_threads = len(os.sched_getaffinity(0))
    limit = None if kymotest.SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_DATA, ((64 + 4 * n_threads) << 20,) * 2)
    stat = json.loads(raw(k, [CLI, "--json", "stat", trace], preexec_fn=limit)[0])
    equal((stat["events"], stat["damaged"]), (2 * n_packets * 8, 0), "events, damaged")
    wanted = ['made"up made:up: { tid = -7 }'] * 4
    for args in (["--tail=4"], [f"--begin=1700000000.{last - 1 + 12345:09d}"]):
        out, errors = raw(k, [CLI, "view", trace, "--fields=tid", *args], preexec_fn=limit)
        equal(([line.split(") ", 1)[1] for line in out.decode().splitlines()], errors), (wanted, b""), f"{args}")


def test_many_damaged(k):
    """Faults of many streams are reported ten times, then only counted."""
    streams = {}
    for i in range(25):
        s = Stream("<", i)
        s.packet(s.event(2, 5, b"") + b"\x1d" * 20)
        streams[f"s{i}"] = s.data
    trace = write(k.top / "faults", metadata("le", numbers(1)), **streams)
    _, errors = raw(k, [CLI, "view", trace])
    lines = errors.decode().splitlines()
    equal((len(lines), lines[-1]), (11, "kymo: 15 more streams are damaged"), "reports")


def test_stat(k):
    trace = lttng(k, "lttng-lost")
    stat = k.kymo_json("stat", str(trace))
    text, _ = raw(k, [CLI, "view", trace])
    names = re.findall(rb"^\[[^ ]*\] \([^ ]*\) \S+ (\S+): ", text, re.M)
    equal(stat["events"], len(names), "events")
    equal(stat["by_name"], {n.decode(): names.count(n) for n in set(names)}, "by name")
    equal(stat["discarded"], 185 + 341, "discarded")
    equal(stat["duration_ns"], stat["end_ns"] - stat["begin_ns"], "duration")
    out = k.kymo("stat", str(trace)).stdout
    for part in ("vm", "Monotonic Clock, 1000000000 Hz", str(len(names)), "526", "shop:small1"):
        check(part in out, f"kymo stat lacks {part}:\n{out}")


SPANS = "count_t _span_tid; "


def spans_trace(k, name, *streams):
    """
    Creates a trace whose packets have numbers: a stream begins in the middle if its first number is
    not 0.
    """
    text = metadata("le", SPANS).replace("cpu_id", "packet_seq_num").replace("made:up", "made:work_begin").replace("made:far", "made:work_end")
    text = text.replace("context := struct { string _who; }; fields := struct { }", "fields := struct { count_t _span_tid; }")
    return write(k.top / name, text, **{f"s{i}": s.data for i, s in enumerate(streams)})


def begin(s, time, thread=1):
    return s.event(0, time, struct.pack("<I", thread))


def end(s, time, thread=1):
    return s.event(70000, time, struct.pack("<I", thread))


def test_spans_complete(k):
    """Streams that reach back to different times: no span is reported longer than it was."""
    old, new = Stream("<", 0, sequence=0), Stream("<", 1, sequence=7)
    old.packet(begin(old, 1000))
    new.packet(end(new, 900_000_000) + begin(new, 901_000_000) + end(new, 902_000_000), begin=800_000_000)
    trace = spans_trace(k, "reaching", old, new)
    stat = k.kymo_json("stat", str(trace))
    equal([(s["count"], s["max_ns"], s["cut"]) for s in stat["spans"]], [(1, 1_000_000, 1)], "spans")
    base = 1700000000 * 10**9 + 12345
    equal(stat["complete_from_ns"], base + 800_000_000, "complete from")
    k.env["TZ"] = "UTC"
    text = k.kymo("stat", trace).stdout
    check("complete   2023-11-14 22:13:20.800012345\n" in text and "1 cut by missing events" in text, text)
    out, errors = raw(k, [CLI, "view", trace])
    one_warning(errors.decode(), "complete from 22:13:20.800012345")
    out, _ = raw(k, [CLI, "view", trace, "--format=json"])
    equal([json.loads(line).get("complete", True) for line in out.splitlines()], [False, True, True, True], "marks of events")


def test_spans_lost(k):
    """
    An end after discarded events, damage, or a file's end is not taken for that of an earlier span.
    """
    for what in ("nothing", "discarded", "packets", "damage", "cut"):
        one, two = Stream("<", 0, sequence=0), Stream("<", 1, sequence=0)
        one.packet(begin(one, 1000) + end(one, 2000) + begin(one, 3000))
        one.packet(end(one, 900_000) + begin(one, 901_000) + end(one, 901_500), begin=3000)
        two.packet(two.event(2, 2500, b""))
        if what == "packets":
            two.sequence += 1
        if what == "damage":
            two.packet(two.event(2, 5000, b"") + b"\x1d" * 20, begin=2600)
            two.now = 6000
        two.packet(two.event(2, 800_000, b""), begin=7000, discarded=3 if what == "discarded" else 0)
        if what == "cut":
            two.packet(two.event(2, 890_000, b"") + bytes(40), begin=880_000)
            two.data = two.data[:-41]
        spans = k.kymo_json("stat", str(spans_trace(k, what, one, two)))["spans"]
        wanted = {"nothing": (3, 897_000, 0), "cut": (1, 1000, 2)}.get(what, (2, 1000, 1))
        equal([(s["count"], s["max_ns"], s["cut"]) for s in spans], [wanted], what)


def many_spans(n, instance=0):
    """A stream of several slices: 60 packets, n times three spans."""
    s = Stream("<", instance)
    for p in range(60):
        records = []
        for i in range(n // 60):
            t = (p * (n // 60) + i) * 1000 + 1
            records += [begin(s, t), begin(s, t + 100), end(s, t + 300), begin(s, t + 400), end(s, t + 410), end(s, t + 900)]
        s.packet(b"".join(records))
    return s


def test_spans_self(k):
    """
    The time of a span without its inner spans; the same for a trace of many slices as for one
    slice.
    """
    n = 60000
    spans = k.kymo_json("stat", str(spans_trace(k, "self", many_spans(n))))["spans"]
    equal([(x["count"], x["total_ns"], x["self_ns"], x["min_ns"], x["max_ns"]) for x in spans], [(3 * n, 1110 * n, 900 * n, 10, 900)], "spans")


def test_damaged_slices(k):
    """A damaged stream is reported once, although each slice of the trace meets its part of it."""
    trace = spans_trace(k, "damaged-slices", many_spans(60000))
    file = next(p for p in trace.iterdir() if p.name != "metadata")
    data = bytearray(file.read_bytes())
    packets = [m.start() for m in re.finditer(re.escape(struct.pack("<I", 0xc1fc1fc1)), data)]
    equal(len(packets), 60, "packets")
    for i in (10, 30, 50):
        data[packets[i] + 20000:packets[i] + 20100] = b"\xff" * 100
    file.write_bytes(data)
    lines = [line for line in k.kymo("stat", trace).stderr.splitlines() if "damaged" in line]
    equal([line.partition(" is ")[2] for line in lines], ["damaged in 3 places: events are missing"], "reports")


def test_damage_and_threads(k):
    """
    Damage of each kind: the same figures and reports from one processor as from all. The spans are
    paired across two streams, so that they depend on the order of both.
    """
    trace = spans_trace(k, "damage-and-threads", many_spans(30000), many_spans(30000, 1))
    file = next(p for p in sorted(trace.iterdir()) if p.name != "metadata")
    whole = file.read_bytes()
    packets = [m.start() for m in re.finditer(re.escape(struct.pack("<I", MAGIC)), whole)]
    equal(len(packets), 60, "packets")
    size, second = packets[1], 500 * 1000  # of a packet: bytes, ns
    far = 72 + 100 * 87 + 20 + 5  # in a packet: the time of an end that has all bits of it

    def number(at, value):
        return {at: struct.pack("<Q", value)}

    kinds = {"none": {},
        "records": {packets[20] + 5000: b"\xff" * 100},
        "event ahead": number(packets[20] + far, 45 * second),
        "event far ahead": number(packets[20] + far, 1 << 62),
        "event back": number(packets[40] + far, 5 * second),
        "last event ahead": number(packets[30] + size - 14, 50 * second),
        "begin ahead": number(packets[20] + 32, 45 * second),
        "begin back": number(packets[40] + 32, 5 * second),
        "head": {packets[30]: b"\0" * 32},
        "size": number(packets[25] + 56, 16 * size),
        "everywhere": {packets[i] + 3000: b"\xff" * 100 for i in range(5, 60, 10)}}
    cpus = os.sched_getaffinity(0)
    for name, kind in kinds.items():
        data = bytearray(whole)
        for at, value in kind.items():
            data[at:at + len(value)] = value
        file.write_bytes(data)
        got = []
        for use in ({min(cpus)}, cpus):
            try:
                os.sched_setaffinity(0, use)
                p = k.kymo("stat", "--json", trace)
            finally:
                os.sched_setaffinity(0, cpus)
            formats = ([], ["--format=json"]) if name == "records" else ([],)
            got.append((json.loads(p.stdout), p.stderr, *(on_processors(k, use, trace, *f) for f in formats)))
        for one, other, what in zip(*got, ("figures", "reports", "text", "JSON")):
            check(one == other, f"{name}: {what} of all processors, and of one")


def on_processors(k, cpus, *options):
    """The output of view, with its errors between the lines."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cpus)
        return raw(k, ["sh", "-c", '"$@" 2>&1', "-", CLI, "view", *options])[0]
    finally:
        os.sched_setaffinity(0, before)


def test_view_on_processors(k):
    """All processors print the same lines as one, and report lost events between the same lines."""
    rng = random.Random(8)
    streams = {}
    for i in range(3):
        s, now = Stream("<", i), rng.randrange(1000)
        for p in range(60):
            records, first = [], now
            for n in range(200 if SANITIZED else 5000):
                now += rng.randrange(2000)
                records.append(s.event(0, now, struct.pack("<i", n)))
            s.packet(b"".join(records), begin=first, discarded=p % 10 == i)
        streams[f"s{i}"] = s.data
    trace = write(k.top / "many", metadata("le", numbers(1)), **streams)
    cpus = os.sched_getaffinity(0)
    whole = on_processors(k, cpus, trace, "--time=seconds").decode().splitlines()
    begin, end = (line[1:line.index("]")] for line in (whole[len(whole) // 9], whole[-len(whole) // 9]))
    check(sum("discarded" in line for line in whole) == 18, "reports of lost events")
    for options in ([], ["--format=json"], ["--time=relative"], ["-f", "n0 % 7 == 0"], ["--fields=n0"], [f"--begin={begin}", f"--end={end}"]):
        check(on_processors(k, cpus, trace, *options) == on_processors(k, {min(cpus)}, trace, *options), f"{options}: other lines than on one processor")


def test_stat_selection(k):
    trace = simple(k, "counted", n_packets=30, n_events=100)
    for options, wanted in ((["-e", "made:*"], 3000), (["-e", "!made:up"], 0), (["-f", "n0 >= 2990"], 10), (["--begin=+100us", "--end=-100us"], 2800)):
        stat = k.kymo_json("stat", trace, *options)
        equal((stat["events"], stat["by_name"]), (wanted, {"made:up": wanted} if wanted else {}), f"{options}")
    k.kymo("stat", str(trace), "--begin=99:00:00", status=2)


def test_stat_by(k):
    """Counts by the values of fields agree with the text."""
    trace = lttng(k, "lttng-uid")
    text = raw(k, [CLI, "view", trace])[0].decode(errors="replace").splitlines()
    cpus = [re.search(r"cpu_id = (\d+)", line)[1] for line in text]
    names = [line.partition(": {")[0].rpartition(" ")[2] for line in text]
    for by, keys in (("cpu", cpus), ("name", names), ("name,cpu_id", [f"{n}  {c}" for n, c in zip(names, cpus)])):
        stat = k.kymo_json("stat", trace, f"--by={by}")
        equal({g["key"]: g["events"] for g in stat["groups"]}, {key: keys.count(key) for key in keys}, by)
        counts = [g["events"] for g in stat["groups"]]
        equal((counts, stat["events"]), (sorted(counts, reverse=True), len(text)), f"order of {by}")
    stat = k.kymo_json("stat", trace, "--by=i8", "-e", "shop:empty")
    equal(stat["groups"], [{"key": "-", "events": names.count("shop:empty")}], "a field that another event has")
    for by, says in (("nowhere", "'nowhere'"), ("name,nowhere", "'nowhere'"), ("cpu_di", "did you mean 'cpu_id'?")):
        said = k.kymo("stat", trace, f"--by={by}", status=2).stderr
        check(says in said and len(said.splitlines()) == 1, f"a field that no event has: {said!r}")
    check(names[0] in k.kymo("stat", trace, "--by=name").stdout, "no name in the text")
    k.kymo("stat", trace, "--by=", status=2)


def latency(k, trace, *options):
    got = k.kymo_json("stat", str(trace), *options)["latency"]
    return [(x["count"], x["total_ns"], x["min_ns"], x["max_ns"], x["unfinished"], x["unbegun"], x["cut"]) for x in got]


def test_stat_latency(k):
    """
    Each event B ends the last A of its key, or with fifo the first; without a key, and across
    streams, too.
    """
    work = "made:work_begin..made:work_end"
    one, two = Stream("<", 0, sequence=0), Stream("<", 1, sequence=0)
    one.packet(begin(one, 1000, 1) + begin(one, 1100, 2) + begin(one, 1300, 1) + end(one, 2000, 1) + end(one, 3000, 1))
    two.packet(end(two, 2500, 2) + end(two, 2600, 7) + begin(two, 4000, 9))
    trace = spans_trace(k, "latency", one, two)
    for options, wanted in (((work + ",key=span_tid",), [(3, 700 + 2000 + 1400, 700, 2000, 1, 1, 0)]),
            ((work + ",key=thread",), [(3, 700 + 1400 + 1600, 700, 1600, 1, 1, 0)]),  # the context says: all are of one
            ((work + ",key=span_tid,fifo",), [(3, 1000 + 1700 + 1400, 1000, 1700, 1, 1, 0)]),
            ((work,), [(3, 700 + 1400 + 1600, 700, 1600, 1, 1, 0)]),
            ((work + ",fifo",), [(3, 1000 + 1400 + 1300, 1000, 1400, 1, 1, 0)]),
            (("made:work_begin..made:work_begin", work + ",key=name"), [(3, 3000, 100, 2700, 1, 1, 0), (0, 0, 0, 0, 4, 4, 0)])):
        equal(latency(k, trace, *(f"--latency={o}" for o in options)), wanted, options)
    text = k.kymo("stat", trace, f"--latency={work},key=span_tid").stdout
    check("3 intervals made:work_begin..made:work_end, by span_tid  (1 begun and not ended, 1 ended and not begun)\n" in text, text)
    found = re.search(r"^longest: +2\.0 us, span_tid 1: (kymo view .*)$", text, re.M)
    check(found is not None, text)
    shown = raw(k, ["sh", "-c", found[1].replace("kymo", str(CLI), 1)])[0].splitlines()
    check(len(shown) == 7 and b"work_begin" in shown[0] and b"work_end" in shown[-1], f"{shown}")


def test_stat_latency_exact(k):
    """Counted and summed exactly over many packets; no pair across missing events."""
    s, rng, wanted = Stream("<", 0, sequence=0), random.Random(1), []
    for p in range(50):
        records, t = [], p * 1_000_000
        for _ in range(100):
            t += rng.randrange(1, 500)
            took = rng.randrange(1, 5000)
            records += [begin(s, t, p), end(s, t + took, p)]
            t += took
            wanted.append(took)
        s.packet(b"".join(records))
    got = latency(k, spans_trace(k, "many", s), "--latency=made:work_begin..made:work_end,key=thread")
    equal(got, [(len(wanted), sum(wanted), min(wanted), max(wanted), 0, 0, 0)], "latency")
    for key in ("", ",key=span_tid", ",fifo"):
        s = Stream("<", 0, sequence=0)
        s.packet(begin(s, 1000))
        s.packet(end(s, 900_000), begin=1000, discarded=3)
        s.packet(begin(s, 901_000) + end(s, 901_500))
        trace = spans_trace(k, "lost" + key, s)
        equal(latency(k, trace, "--latency=made:work_begin..made:work_end" + key), [(1, 500, 500, 500, 0, 0, 1)], f"behind lost events {key}")
        text = k.kymo("stat", str(trace), "--latency=made:work_begin..made:work_end" + key).stdout
        check(text.startswith("missing: 3 discarded events") and "1 cut by missing events" in text, text)


def test_stat_values(k):
    """
    The distribution of a field, and the events with its greatest values, each with the command that
    shows it.
    """
    trace = simple(k, "values", n_packets=10, n_events=100)
    got = k.kymo_json("stat", str(trace), "--hist=n0", "--top=n0")
    hist, top = got["hist"][0], got["top"][0]
    equal((hist["count"], hist["total"], hist["min"], hist["median"], hist["max"], hist["negative"]), (1000, 499500, 0, 499, 999, 0), "values")
    equal([(x["from"], x["count"]) for x in hist["histogram"]], [(0, 1), (1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (64, 64), (128, 128), (256, 256), (512, 488)], "steps")
    equal([x["value"] for x in top["events"]], list(range(999, 989, -1)), "greatest")
    shown = raw(k, ["sh", "-c", top["events"][0]["view"].replace("kymo", str(CLI), 1)])[0]
    check(shown.count(b"\n") == 1 and b"n0 = 999 " in shown, f"{shown}")
    text = k.kymo("stat", trace, "--hist=n0", "--top=n0", "-f", "n0 < 100").stdout
    check("100 values of n0\n" in text and re.search(r"^ +99  made:up: kymo view ", text, re.M), text)
    s = Stream("<")
    s.packet(b"".join(s.event(0, i + 1, struct.pack("<i", n)) for i, n in enumerate((-5, 3, -1))))
    got = k.kymo_json("stat", str(write(k.top / "below", metadata("le", numbers(1)), s=s.data)), "--hist=n0", "--top=n0")
    equal((got["hist"][0]["count"], got["hist"][0]["negative"], [x["value"] for x in got["top"][0]["events"]]), (1, 2, [3, -1, -5]), "below 0")
    addresses = [0xFFFFFFFF81000000 + i for i in range(3)]
    s = Stream("<")
    s.packet(b"".join(s.event(0, i + 1, struct.pack("<Q", n)) for i, n in enumerate(addresses)))
    trace = write(k.top / "addresses", metadata("le", "unsigned long long _p; "), s=s.data)
    hist = k.kymo_json("stat", trace, "--hist=p")["hist"][0]
    equal((hist["total"], hist["min"], hist["max"], hist["histogram"]), (sum(addresses), addresses[0], addresses[2], [{"from": 1 << 63, "count": 3}]), "addresses")
    check(f" {addresses[1]} " in k.kymo("stat", trace, "--hist=p").stdout, "the mean of addresses")


def test_stat_floats(k):
    """Floating-point numbers: least, greatest and sum are exact, percentiles within 0.1 %."""
    values = [i / 8 for i in range(1000)] + [-2.5, float("nan"), float("-inf")]
    s = Stream("<")
    s.packet(s.event(0, 1, struct.pack("<d", float("inf"))))
    trace = write(k.top / "endless", metadata("le", "floating_point { exp_dig = 11; mant_dig = 53; align = 8; } _x; "), s=s.data)
    got = k.kymo_json("stat", str(trace), "--hist=x", "--top=x")
    equal((got["hist"][0]["max"], got["top"][0]["events"][0]["value"]), (None, None), "infinite numbers in JSON")
    s = Stream("<")
    s.packet(b"".join(s.event(0, i + 1, struct.pack("<d", v)) for i, v in enumerate(values)))
    trace = write(k.top / "floats", metadata("le", "floating_point { exp_dig = 11; mant_dig = 53; align = 8; } _x; "), s=s.data)
    got = k.kymo_json("stat", str(trace), "--hist=x", "--top=x")
    hist = got["hist"][0]
    equal((hist["count"], hist["total"], hist["min"], hist["max"], hist["negative"]), (1000, sum(values[:1000]), 0, 124.875, 3), "values")
    for name, wanted in (("median", 62.375), ("p90", 112.375), ("p99", 123.625)):
        check(abs(hist[name] - wanted) <= wanted / 1000 + 1e-6, f"{name}: {hist[name]}, wanted {wanted}")
    equal([(x["from"], x["count"]) for x in hist["histogram"]], [(0, 1), *((2.0 ** i / 8, 2 ** i) for i in range(9)), (64, 488)], "steps")
    equal([x["value"] for x in got["top"][0]["events"]], [124.875 - i / 8 for i in range(10)], "greatest")
    s = Stream("<")
    s.packet(b"".join(s.event(0, i + 1, struct.pack("<d", i * 1e13)) for i in range(1, 6)))
    large = write(k.top / "large", metadata("le", "floating_point { exp_dig = 11; mant_dig = 53; align = 8; } _x; "), s=s.data)
    hist = k.kymo_json("stat", str(large), "--hist=x")["hist"][0]
    check(abs(hist["median"] - 3e13) <= 3e10 and hist["p99"] == 5e13, f"large numbers: {hist}")
    text = k.kymo("stat", trace, "--hist=x", "--top=x").stdout
    check("1000 values of x  (without 3 below 0 or not a number)\n" in text and re.search(r"^ +124\.875  made", text, re.M), text)


def test_stat_measure_errors(k):
    trace = simple(k, "wrong")
    for options, status, word in ((("--latency=made:up",), 2, "A..B"), (("--latency=made:up..made:far,sum",), 2, "nest"), (("--latency=..b",), 2, "A..B"),
            (("--latency=made:up..made:far,fifo,nest",), 2, "nest|fifo"), (("--latency=made:up..made:far,key=tid,key=n0",), 2, "key="),
            (("--latency=made:up..none",), 1, "'none'"), (("--latency=none..made:up",), 1, "'none'"), (("--latency=made:up..made:far,key=",), 1, "fields"),
            (("--latency=made:up..made:far,key=tid+none",), 1, "'none'"), (("--hist=none",), 1, "'none'"), (("--top=who",), 1, "numbers"), (("--by=name", "--hist=n0"), 2, "--by")):
        errors = k.kymo("stat", str(trace), *options, status=status).stderr
        check(word in errors and errors.count("\n") <= 2, f"{options}: {errors!r}")


def test_json_origin(k):
    """Each object names its host and its trace."""
    for name in ("a", "b"):
        s = Stream("<")
        s.packet(s.event(2, 5, b""))
        write(k.top / "hosts" / name, metadata("le", numbers(1)).replace('made\\"up', f"host-{name}"), s=s.data)
    out, _ = raw(k, [CLI, "view", k.top / "hosts", "--format=json"])
    equal(sorted((e["host"], e["trace"]) for e in map(json.loads, out.splitlines())), [("host-a", "a"), ("host-b", "b")], "origins")
    out, _ = raw(k, [CLI, "view", k.top / "hosts" / "a", "--format=json"])
    equal([(e["host"], e["trace"]) for e in map(json.loads, out.splitlines())], [("host-a", "a")], "origin")


def test_errors(k):
    """One line with the object and the reason, and status 1."""
    empty, file = k.top / "empty", k.top / "file"
    empty.mkdir()
    file.write_text("x")
    bad = write(k.top / "badmeta", "/* CTF 1.8 */\ntrace { major = ; };\n")
    rubbish = write(k.top / "rubbish", "PK\x03\x04")
    early = write(k.top / "early", "")
    for path, word in ((early, "metadata is empty"), (empty, "no file 'metadata'"), (file, "is a file: give the directory"), (k.top / "none", "No such file"), (bad, "metadata:2:17: "), (rubbish, "metadata:1:")):
        for command in ("view", "stat"):
            errors = k.kymo(command, str(path), status=1).stderr
            check(word in errors, f"{command} {path}: {errors!r} lacks {word!r}")
    k.env["KYMO_HOME"] = str(k.top / "nothing")
    check("nothing" in k.kymo("view", status=1).stderr, "the directory is not named")
    if os.geteuid() == 0:
        trace = simple(k, "closed")
        os.chmod(k.top, 0o755)
        os.chmod(trace, 0o700)
        done = subprocess.run([CLI, "view", str(trace)], env=k.env, capture_output=True, text=True, user=65534, group=65534)
        check(done.returncode in (1, 126) and "Permission denied" in done.stderr, f"{done}")


def test_unreadable(k):
    """A trace or file that cannot be read does not hide the others, and is counted."""
    for name in ("good", "shut"):
        simple(k, f"some/{name}")
    write(k.top / "some" / "bad", "/* CTF 1.8 */\ntrace { major = ; };\n")
    wanted = 1
    if os.geteuid() == 0:
        wanted = 2
        (k.top / "some" / "shut" / "s").chmod(0)
        k.top.chmod(0o755)
    run = lambda *args: subprocess.run([CLI, *args], env=k.env, capture_output=True, text=True, check=True, user=65534 if wanted == 2 else None)
    found = json.loads(run("stat", "--json", k.top / "some").stdout)
    equal(found["unreadable"], wanted, "unreadable files and directories")
    kymotest.check_documented(found, "stat")
    check(f"unreadable {wanted} " in run("stat", k.top / "some").stdout, "the text of stat")
    latency = "--latency=made:up..made:up"
    equal(json.loads(run("stat", "--json", latency, k.top / "some").stdout)["unreadable"], wanted, "of latencies")
    check(f"{wanted} unreadable" in run("stat", latency, k.top / "some").stdout, "the text of latencies")
    check(f'"unreadable":{wanted},' in run("report", "-o", "-", k.top / "some").stdout, "the page")
    check("records are missing in 1 of 1 runs" in run("diff", k.top / "some", "--", k.top / "some" / "good").stdout, "diff")


def test_links(k):
    """
    Symbolic links to regular files are read, also those of metadata. Other files are skipped, and
    the reader never waits for them.
    """
    real = simple(k, "real")
    linked = write(k.top / "linked", metadata("le", numbers(1)))
    (linked / "metadata").unlink()
    for name in ("metadata", "s"):
        (linked / name).symlink_to(real / name)
    (linked / "directory").mkdir()
    os.mkfifo(linked / "fifo")
    for name, target in (("to-fifo", "fifo"), ("to-directory", "directory"), ("to-device", "/dev/zero")):
        (linked / name).symlink_to(target)
    equal(values(k, linked), (list(range(30)), ""), "numbers behind links")
    equal(raw(k, ["babeltrace2", real])[0], raw(k, [CLI, "view", linked])[0], "text behind links")
    for name, target in (("none", "nothing"), ("itself", "itself")):
        (linked / name).symlink_to(target)
    got, errors = values(k, linked)
    equal((got, errors.count("\n")), (list(range(30)), 2), "numbers and warnings beside links to nothing")
    for name in ("linked/none: No such file", "linked/itself: Too many levels"):
        check(name in errors, f"{errors!r} lacks {name!r}")
    (linked / "metadata").unlink()
    for target in ("fifo", "directory", "/dev/zero"):
        (linked / "metadata").symlink_to(target)
        errors = k.kymo("view", str(linked), status=1).stderr
        check("this is no metadata" in errors, f"metadata that is {target}: {errors!r}")
        (linked / "metadata").unlink()


def test_linked_directories(k):
    """
    Traces behind symbolic links to directories are read, each once, and loops end. Another user's
    link is followed only to a directory of the same user.
    """
    real = [simple(k, f"runs/{i}/ust/deep", n_packets=i + 1, instance=i) for i in range(2)]
    top = k.top / "links"
    (top / "own").mkdir(parents=True)
    for name, target in (("a", "../runs/0"), ("b", "../runs/1"), ("b2", "../runs/1"), ("own/up", ".."), ("own/self", "self"), ("gone", "nothing"),
            ("file", real[0] / "metadata")):
        (top / name).symlink_to(target)
    got, errors = values(k, top)
    equal((sorted(got), errors), (sorted([*range(10), *range(20)]), ""), "numbers behind links")
    (top / "own/up").unlink()
    (real[0].parent / "up").symlink_to(k.top)
    equal(len(values(k, top)[0]), 30, "numbers with a loop behind a link")
    if os.geteuid() == 0:
        os.chown(top / "a", 65534, 65534, follow_symlinks=False)
        got, errors = values(k, top)
        equal(len(got), 20, "numbers without those behind another user's link")
        one_warning(errors, "links/a is a link of another user")
        os.chown(k.top / "runs/0", 65534, 65534)
        equal(len(values(k, top)[0]), 30, "numbers behind another user's link to the user's directory")
    (k.top / "many").mkdir()
    for i in range(2000):
        os.mkdir(k.top / f"many/{i}")
    (top / "many").symlink_to(k.top / "many")
    one_warning(values(k, top)[1], "more than 2000 directories are behind links")


def test_overlapping(k):
    """A trace that several arguments contain is read once."""
    top = k.top / "session"
    for i in range(2):
        simple(k, f"session/archives/{i}/ust", n_packets=i + 1, instance=i)
    (k.top / "newest").symlink_to(top)
    (top / "empty").mkdir()
    for paths in ((top, top), (top, f"{top}/"), (top, k.top / "newest"), (top, top / "archives/1"), (top / "archives/1/ust", top),
            (top / "archives/0", top / "archives", top / "archives/1")):
        got, errors = values(k, *paths)
        equal((len(got), errors), (30, ""), f"numbers of {[str(p) for p in paths]}")
    errors = k.kymo("view", str(top), str(top / "empty"), status=1).stderr
    check("empty is no trace" in errors, errors)


def test_same_numbers(k):
    """Traces without UUID are different traces, also if both are opened directly."""
    text = metadata("le", numbers(1)).replace(f'uuid = "{uuid.UUID(int=1)}";', "").replace("unsigned int cpu_id;", "unsigned int packet_seq_num;")
    traces = []
    for name in ("one", "other"):
        s = Stream("<", sequence=0)
        for i in range(3):
            s.packet(s.event(0, 10 * i, struct.pack("<i", i)))
        traces.append(write(k.top / name, text, s=s.data))
    equal(sorted(int(n) for n in re.findall(rb"n0 = (\d+)", raw(k, [CLI, "view", *traces])[0])), [0, 0, 1, 1, 2, 2], "numbers")


def test_output(k):
    """A closed pipe ends it silently; a full disk is an error."""
    trace = simple(k, "long", n_packets=100, n_events=100)
    view = subprocess.Popen([CLI, "view", str(trace)], env=k.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    view.stdout.readline()
    view.stdout.close()
    errors = view.stderr.read()
    view.stderr.close()
    equal((view.wait(TIMEOUT), errors), (0, b""), "after the pipe was closed")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([CLI, "view", str(trace)], env=k.env, stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT)
    check(done.returncode == 1 and done.stderr.count(b"\n") == 1 and b"No space left" in done.stderr, f"{done}")


def test_shortened(k):
    """A file that is truncated while it is read counts as damaged: one line, no signal."""
    trace = simple(k, "short", n_packets=300, n_events=100)
    view = subprocess.Popen([CLI, "view", str(trace)], env=k.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    view.stdout.read(1)
    os.truncate(trace / "s", 4096)
    _, errors = view.communicate(timeout=TIMEOUT)
    check(view.returncode == 0 and errors.count(b"\n") == 1 and b"shortened" in errors, f"{view.returncode}, {errors!r}")


def on_screen(k, *args, status=0):
    """Returns what a command prints on a terminal, without Kymo's own sequences."""
    text, ended = k.on_terminal(*args, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    equal(ended, status, "status")
    for own in (b"\x1b[1m", b"\x1b[2m", b"\x1b[0m"):
        text = text.replace(own, b"")
    return text


def test_terminal(k):
    """On a terminal, text in a trace cannot control it."""
    fields = "string _s; "
    s = Stream("<")
    s.packet(s.event(0, 1, b"\xc2\x9b31m \x9b \xe2\x80\xae ok \xc3\xa9\0"))
    trace = write(k.top / "steer", metadata("le", fields).replace("made:up", "ma\\033[31mde"), s=s.data)
    line = on_screen(k, "view", "--no-pager", trace)
    check(b"\x1b" not in line and b"\x9b" not in line and b"\xe2\x80\xae" not in line, f"{line!r}")
    check("ok é".encode() in line and b"\\x1b[31mde" in line, f"{line!r}")
    text, raw = "\x1b[31m, \u202e\"", b'"\x1b[31m, \xe2\x80\xae"""\n'
    query = "sql", trace, "--csv", f"SELECT '{text}'"
    shown = on_screen(k, *query).splitlines()[1]
    equal(shown, b'"\\x1b[31m, \\xe2\\x80\\xae"""', "values on a terminal")
    piped = subprocess.run([CLI, *map(str, query)], env=k.env, stdout=subprocess.PIPE).stdout
    equal(piped.split(b"\n", 1)[1], raw, "values in a pipe")
    # the clock's description, in the head of stat, and an unknown word, in a message as JSON
    trace = write(k.top / "clock", metadata("le", fields, clock='freq = 1000000000; description = "d\\033[31m\\302\\233\u202e";'), s=s.data)
    shown = on_screen(k, "stat", trace)
    check(b"\x1b" not in shown and b"\xc2\x9b" not in shown and b"\xe2\x80\xae" not in shown, f"{shown!r}")
    trace = write(k.top / "word", '\x1e{"type":"preamble","version":2}\n\x1e{"type":"a\\u009b31m\\u202e"}\n')
    shown = on_screen(k, "--json", "view", trace, status=1)
    check(b"a\\u009b31m\\u202e" in shown and shown.isascii(), f"{shown!r}")
    # the name of a field is any text in CTF 2: of bytes, and of bits
    for length in (8, 3):
        number = {"type": "fixed-length-unsigned-integer", "length": length, "alignment": 1, "byte-order": "little-endian"}
        fields = {"type": "structure", "member-classes": [{"name": "a\x1b[31m\u202eé", "field-class": number}]}
        fragments = ({"type": "preamble", "version": 2}, {"type": "data-stream-class"}, {"type": "event-record-class", "name": "e", "payload-field-class": fields})
        trace = write(k.top / f"names{length}", "".join(f"\x1e{json.dumps(f)}\n" for f in fragments), s=b"\1")
        line = on_screen(k, "view", "--no-pager", trace)
        check(b"\x1b" not in line and b"\xe2\x80\xae" not in line, f"{line!r}")
        check("a\\x1b[31m\\xe2\\x80\\xaeé = 1".encode() in line, f"{line!r}")


if __name__ == "__main__":
    kymotest.main()
