# SPDX-License-Identifier: MIT
"""
Traces for the tests of sql, export, diff and the Python module: generated ones with hostile names
and values, and a slow model of spans.
"""

import collections
import struct
import uuid

MAGIC = 0xC1FC1FC1
START = 1_700_000_000_000_000_000
UUID = uuid.UUID(int=7)

HEAD = f"""/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; }} := u8;
typealias integer {{ size = 16; align = 8; }} := u16;
typealias integer {{ size = 32; align = 8; }} := u32;
typealias integer {{ size = 64; align = 8; }} := u64;
typealias integer {{ size = 64; align = 8; base = 16; }} := x64;
typealias integer {{ size = 64; align = 8; signed = 1; }} := i64;
typealias floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; }} := f64;
trace {{
	major = 1; minor = 8; byte_order = le; uuid = "{UUID}";
	packet.header := struct {{ u32 magic; u8 uuid[16]; u32 stream_id; }};
}};
env {{ hostname = "host \\"x\\""; }};
clock {{ name = c; freq = 1000000000; offset_s = {START // 10**9}; }};
typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := time_t;
stream {{
	id = 0;
	event.header := struct {{ u16 id; time_t timestamp; }};
	packet.context := struct {{
		time_t timestamp_begin; time_t timestamp_end; u64 content_size; u64 packet_size;
		u64 events_discarded; u32 cpu_id;
	}};
	event.context := struct {{ u32 _vpid; u32 _vtid; string _procname; }};
}};
"""
NUMBERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "x64": "Q", "i64": "q", "f64": "d"}


def quoted(name):
    """Returns a text, or bytes, as a string of TSDL."""
    data = name.encode() if isinstance(name, str) else name
    return b'"' + b"".join(bytes([c]) if 32 <= c < 127 and c not in b'"\\' or c > 127 else b"\\%03o" % c for c in data) + b'"'


class Trace:
    """
    A trace under construction. events: by name, a list of (type, field); the type is one of
    NUMBERS, string, or enum.
    """

    def __init__(self, events):
        self.names = list(events)
        self.events = events
        self.streams = collections.defaultdict(list)  # by processor: packets

    def metadata(self):
        text = HEAD.encode()
        for number, (name, fields) in enumerate(self.events.items()):
            text += b"event { name = " + quoted(name) + b"; id = %d; stream_id = 0; fields := struct { " % number
            text += b" ".join((kind if kind != "enum" else "enum : u8 { zero, one, two }").encode() + b" _" + field.encode() + b";" for kind, field in fields)
            text += b" }; };\n"
        return text

    def record(self, time, name, *values, pid=100, tid=101, procname="prog"):
        body = struct.pack("<HQII", self.names.index(name), time, pid, tid) + procname.encode() + b"\0"
        for (kind, _), value in zip(self.events[name], values, strict=True):
            if kind == "string":
                body += (value.encode() if isinstance(value, str) else value) + b"\0"
            else:
                body += struct.pack("<" + NUMBERS.get(kind, "B"), value)
        return time, body

    def packet(self, cpu, records, discarded=0, begin=None, end=None):
        """Adds a packet; records: in order of time. discarded: the counter at its end."""
        begin = records[0][0] if begin is None else begin
        end = records[-1][0] if end is None else end
        body = b"".join(data for _, data in records)
        size = 4 + 16 + 4 + 8 * 5 + 4 + len(body)
        head = struct.pack("<I", MAGIC) + UUID.bytes + struct.pack("<IQQQQQI", 0, begin, end, size * 8, size * 8, discarded, cpu)
        self.streams[cpu].append(head + body)

    def write(self, path):
        path.mkdir(parents=True)
        (path / "metadata").write_bytes(self.metadata())
        for cpu, packets in self.streams.items():
            (path / f"channel0_{cpu}").write_bytes(b"".join(packets))
        return path


HOSTILE = {
    'a:"quoted\' name"': [("u64", "huge"), ("i64", "low"), ("string", "text")],
    b"a:\xff\xfe bytes": [("string", "Text"), ("string", "text")],
    "a:new\nline": [("f64", "real")],
    "events": [("enum", "state"), ("u32", "ts"), ("u32", "pid")],
    "EVENTS": [("u8", "n")],
    "sqlite_master": [("u8", "select")],
    "a:empty": [],
}
# as they come out: None where there is no value
HOSTILE_TEXTS = ["", "a,b", 'say "hi"', "two\nlines\r", "tab\t", "\u00e4\u20ac\U0001f600", " blank "]
BAD_BYTES = b"bad \xff\xc3 end"


def hostile(path):
    """Writes a trace with names and values that break careless writers."""
    t = Trace(HOSTILE)
    quote, raw, line, events, upper, master, empty = t.names
    records, now = [], 1000

    def add(name, *values, **who):
        nonlocal now
        now += 10
        records.append(t.record(now, name, *values, **who))

    for n, text in enumerate(HOSTILE_TEXTS):
        add(quote, 2**64 - 1 - n, -(2**63) + n, text, procname='p"q')
    for value in (2**53 + 1, 2**63 - 1, 2**63, 0):
        add(quote, value, -(2**53) - 1, "x")
    add(raw, BAD_BYTES, "second")
    for real in (0.1, -0.0, float("inf"), float("nan"), 1e300):
        add(line, real)
    for state in (0, 1, 2, 9):
        add(events, state, 7, 8)
    add(upper, 3)
    add(master, 4)
    add(empty)
    t.packet(0, records)
    return t.write(path)


SPAN_EVENTS = {name: [("u32", "span_tid"), ("u32", "n")] for name in
    ("s:outer_begin", "s:outer_end", "s:inner_begin", "s:inner_end", "s:cross_begin", "s:cross_end")}
SPAN_EVENTS |= {name: [("u64", "async_id")] for name in ("s:far_begin", "s:far_end")}
SPAN_EVENTS |= {"s:req": [("u32", "id")], "s:done": [("u32", "id")], "s:stock": [("i64", "counter")], "s:load": [("f64", "counter")]}

Span = collections.namedtuple("Span", "ts dur self name tid pid depth parent async_ id crosses")


def spans_of(events):
    """
    A slow model: the spans of (time, name, fields, pid, tid) in order, without losses. Ends are
    paired with the newest begin of the name and thread, or number.
    """
    found, stacks, open_async, number = [], collections.defaultdict(list), collections.defaultdict(list), 0
    for time, name, fields, pid, tid in events:
        base, _, ending = name.rpartition("_")
        is_async = "async_id" in fields
        if ending not in ("begin", "end") or not (is_async or "span_tid" in fields):
            continue
        number += 1
        stack = open_async[base, fields["async_id"]] if is_async else stacks[fields["span_tid"]]
        if ending == "begin":
            outer = stack[-1] if stack and not is_async else None
            stack.append({"base": base, "ts": time, "id": number, "pid": pid, "tid": tid, "inner": 0, "crosses": False,
                "parent": outer["id"] if outer else None, "depth": outer["depth"] + 1 if outer else 0})
            continue
        at = next((i for i in reversed(range(len(stack))) if stack[i]["base"] == base), None)
        if at is None:
            continue
        span = stack.pop(at)
        for inner in stack[at:] if not is_async else ():
            inner["crosses"] = True
        dur = time - span["ts"]
        if at and not is_async:
            stack[at - 1]["inner"] += dur
        found.append(Span(span["ts"], dur, max(dur - span["inner"], 0), base, span["tid"], span["pid"], span["depth"], span["parent"],
            int(is_async), span["id"], span["crosses"]))
    return found


def random_spans(rng, path, n=400):
    """
    Writes a trace of nested and crossing spans of some threads, unfinished ones, asynchronous ones,
    counters and requests. Returns its events as the model wants them.
    """
    t = Trace(SPAN_EVENTS)
    now, events, packets = 1000, [], collections.defaultdict(list)

    def add(name, fields, tid):
        nonlocal now
        now += rng.randrange(1, 5000)
        events.append((START + now, name, fields, 100, tid))
        packets[rng.randrange(2)].append(t.record(now, name, *fields.values(), tid=tid))

    for i in range(n):
        tid, what = rng.randrange(101, 104), rng.random()
        if what < 0.75:
            base = rng.choice(("outer", "inner", "cross"))
            add(f"s:{base}_{rng.choice(('begin', 'end'))}", {"span_tid": tid, "n": i}, tid)
        elif what < 0.85:
            add(f"s:far_{rng.choice(('begin', 'end'))}", {"async_id": rng.randrange(3)}, tid)
        elif what < 0.95:
            add(rng.choice(("s:req", "s:done")), {"id": rng.randrange(4)}, tid)
        else:
            add("s:stock", {"counter": i - n // 2}, tid)
    for cpu, records in packets.items():
        for at in range(0, len(records), 50):
            t.packet(cpu, records[at : at + 50])
    t.write(path)
    return events
