# SPDX-License-Identifier: MIT
"""
Made-up CTF 1.8 traces of any shape: metadata and packets from one seed, as a foreign tracer could have written them.

    Trace(seed).write(directory)     metadata, and one file for each stream
    Trace(seed).metadata2()          the same described in CTF 2, for the same packets

The shapes are those that babeltrace2 2.0.4 takes too, so that its text is the expectation. What it cannot decode, or
decodes wrongly, is left out here and tested by hand: a change of byte order within a byte.
"""

import json
import random
import struct
import uuid

MAGIC = 0xC1FC1FC1


class Bits:
    """Writes bit fields as CTF packs them."""

    def __init__(self):
        self.data, self.at = bytearray(), 0

    def align(self, n):
        self.skip(-self.at % n)

    def skip(self, n):
        self.at += n
        self.data.extend(bytes(max(0, (self.at + 7) // 8 - len(self.data))))

    def put(self, value, size, is_big):
        at = self.at
        self.skip(size)
        for i in range(size):
            bit = value >> (size - 1 - i if is_big else i) & 1
            place = at + i
            self.data[place // 8] |= bit << (7 - place % 8 if is_big else place % 8)

    def set(self, at, value, size, is_big):
        """Fills in a field that was left 0."""
        now, self.at = self.at, at
        self.put(value, size, is_big)
        self.at = now


ORDERS = {"le": "little-endian", "be": "big-endian", "network": "big-endian"}


def shown(name):
    """CTF 1.8 hides the first underscore of a name; CTF 2 shows names as they are."""
    return name.removeprefix("_")


class Int:
    def __init__(self, size, align=None, signed=False, order="native", base=10, clock=None, text=False, labels=None):
        self.size, self.signed, self.order, self.base, self.clock, self.text, self.labels = size, signed, order, base, clock, text, labels
        self.explicit, self.align = align, align or (1 if size % 8 else 8)
        self.value = 0

    def declare(self):
        text = f"integer {{ size = {self.size}; "
        text += f"align = {self.explicit}; " if self.explicit else ""
        text += f"signed = {random.choice(['true', '1', 'TRUE'])}; " if self.signed else ""
        text += f"byte_order = {self.order}; " if self.order != "native" else ""
        text += f"base = {self.base}; " if self.base != 10 else ""
        text += f"map = clock.{self.clock}.value; " if self.clock else ""
        text += "encoding = UTF8; " if self.text else ""
        text += "}"
        if self.labels:
            text = f"enum : {text} {{ " + ", ".join(name + ranges for name, ranges, _, _ in self.labels) + " }"
        return text

    def describe(self, trace, around, role=None):
        kind = "signed" if self.signed else "unsigned"
        t = {"type": f"fixed-length-{kind}-integer", "length": self.size, "alignment": self.align, "byte-order": ORDERS["be" if self.is_big(trace) else "le"]}
        if self.base != 10:
            t["preferred-display-base"] = self.base
        if self.labels:
            t["mappings"] = {}
            for name, _, lo, hi in self.labels:
                t["mappings"].setdefault(name.strip('"'), []).append([lo, hi])
        if role:
            t["roles"] = [role]
        return t

    def is_big(self, trace):
        return self.order in ("be", "network") or (self.order == "native" and trace.big)

    def put(self, trace, bits, value):
        bits.align(self.align)
        self.value, at = value, bits.at
        bits.put(value & ((1 << self.size) - 1), self.size, self.is_big(trace))
        return at

    def encode(self, trace, bits):
        self.put(trace, bits, trace.number(self))


class Float:
    def __init__(self, size, align, order):
        self.size, self.align, self.order = size, align, order

    def declare(self):
        digits = "exp_dig = 8; mant_dig = 24;" if self.size == 32 else "exp_dig = 11; mant_dig = 53;"
        return f"floating_point {{ {digits} align = {self.align}; " + (f"byte_order = {self.order}; " if self.order != "native" else "") + "}"

    def describe(self, trace, around):
        is_big = self.order == "be" or (self.order == "native" and trace.big)
        return {"type": "fixed-length-floating-point-number", "length": self.size, "alignment": self.align, "byte-order": ORDERS["be" if is_big else "le"]}

    def encode(self, trace, bits):
        v = trace.rng.choice([0.0, -0.0, 1.5, -3.25e10, 1e-30, float("inf"), float("-inf"), trace.rng.uniform(-1e6, 1e6)])
        raw = struct.unpack(">I", struct.pack(">f", v))[0] if self.size == 32 else struct.unpack(">Q", struct.pack(">d", v))[0]
        bits.align(self.align)
        bits.put(raw, self.size, self.order == "be" or (self.order == "native" and trace.big))


class String:
    align = 8

    def declare(self):
        return random.choice(["string", "string { encoding = UTF8; }", "string { encoding = ASCII; }", "string { }"])

    def describe(self, trace, around):
        return {"type": "null-terminated-string"}

    def encode(self, trace, bits):
        bits.align(8)
        for byte in trace.text() + b"\0":
            bits.put(byte, 8, False)


class Array:
    """count: a number; or an Int, and `path` is how it is named."""

    def __init__(self, elem, count, path=None):
        self.elem, self.count, self.path, self.align = elem, count, path, elem.align

    def describe(self, trace, around):
        size = {"length": self.count} if isinstance(self.count, int) else {"length-field-location": locate(self.path, around)}
        kind = "static" if isinstance(self.count, int) else "dynamic"
        if isinstance(self.elem, Int) and self.elem.text:
            return {"type": f"{kind}-length-string", **size}
        return {"type": f"{kind}-length-array", **size, "element-field-class": self.elem.describe(trace, around)}

    def bound(self):
        return f"[{self.path or self.count}]"

    def encode(self, trace, bits):
        bits.align(self.align)
        for _ in range(self.count if isinstance(self.count, int) else self.count.value):
            self.elem.encode(trace, bits)


class Struct:
    def __init__(self, members, align=1):
        self.members, self.asked = members, align
        self.align = max([align] + [t.align for _, t in members])

    def declare(self):
        body = "".join(declare_member(name, t) for name, t in self.members)
        return f"struct {{ {body}}}" + (f" align({self.asked})" if self.asked > 1 else "")

    def describe(self, trace, around=(), roles={}):
        around = (*around, self)
        members = []
        for name, t in self.members:
            options = {"role": roles[name]} if name in roles else {}
            members.append({"name": shown(name), "field-class": t.describe(trace, around, **options)})
        return {"type": "structure", "minimum-alignment": self.asked, "member-classes": members}

    def encode(self, trace, bits):
        bits.align(self.align)
        for _, t in self.members:
            t.encode(trace, bits)


class Variant:
    align = 1

    def __init__(self, tag, path, options):
        self.tag, self.path, self.options = tag, path, options

    def declare(self):
        return f"variant <{self.path}> {{ " + "".join(declare_member(name, t) for name, t in self.options) + "}"

    def describe(self, trace, around, role=None):
        options = []
        for name, t in self.options:
            ranges = [[lo, hi] for label, _, lo, hi in self.tag.labels if label.strip('"') == name]
            t = t.describe(trace, around, roles={"id": "event-record-class-id", "timestamp": "default-clock-timestamp"}) if role else t.describe(trace, around)
            options.append({"name": name, "selector-field-ranges": ranges, "field-class": t})
        return {"type": "variant", "selector-field-location": locate(self.path, around), "options": options}

    def encode(self, trace, bits):
        options = dict(self.options)
        for name, _, lo, hi in self.tag.labels:
            if lo <= self.tag.value <= hi and name.strip('"') in options:
                options[name.strip('"')].encode(trace, bits)
                return
        raise AssertionError("no option")


SCOPES = {"stream.packet.context": "packet-context", "event.fields": "event-record-payload"}


def locate(path, around):
    """The location of a field in CTF 2: absolute, or so many structures further out."""
    for prefix, origin in SCOPES.items():
        if path.startswith(prefix + "."):
            return {"origin": origin, "path": [shown(path[len(prefix) + 1:])]}
    for n, structure in enumerate(reversed(around)):
        if path in dict(structure.members):
            return {"path": [None] * n + [shown(path)]}
    raise AssertionError(path)


def declare_member(name, t):
    bounds = ""
    while isinstance(t, Array):
        bounds += t.bound()
        t = t.elem
    return f"{t.declare()} {name}{bounds}; "


class Stream:
    pass


class Trace:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        random.seed(seed)
        self.n_names, self.scope, self.outer = 0, [], []
        self.big = rng.random() < 0.4
        self.uuid = uuid.UUID(int=rng.getrandbits(128)) if rng.random() < 0.7 else None
        self.clocks = []
        for i in range(rng.choice([0, 1, 1, 1])):
            freq = rng.choice([10**9, 10**9, 10**6, 1000, 2_400_000_000, 24_000_000])
            self.clocks.append((f"c{i}", freq, rng.choice([0, 1_700_000_000, 5]), rng.randrange(0, 3 * freq)))
        self.with_env = rng.random() < 0.5
        self.with_magic = rng.random() < 0.8
        n = rng.choice([1, 1, 2, 3])
        self.with_stream_id = n > 1 or rng.random() < 0.5
        self.with_instance = rng.random() < 0.5
        self.with_times = rng.random() < 0.8  # babeltrace2 merges no streams of which only some have a clock
        self.streams = [self.make_stream(7 * i if self.with_stream_id else None) for i in range(n)]

    # -- values

    def number(self, t):
        rng = self.rng
        if t.labels and (getattr(t, "is_tag", False) or rng.random() < 0.8):
            _, _, lo, hi = rng.choice(t.labels)
            return rng.randint(max(lo, hi - 3), hi)
        if getattr(t, "small", None):
            return rng.randint(0, min(t.small, (1 << t.size) - 1))
        v = rng.choice([0, 1, (1 << t.size) - 1, 1 << (t.size - 1), rng.getrandbits(t.size)]) & ((1 << t.size) - 1)
        return v - (1 << t.size) if t.signed and v >> (t.size - 1) else v

    def text(self):
        return bytes(self.rng.choice(b"abc xyz\\\"'?\n\t\x01\x7f\xc3\xa9") for _ in range(self.rng.randrange(1, 9)))

    # -- types

    def name(self):
        self.n_names += 1
        return self.rng.choice(["", "_", "__"]) + f"f{self.n_names}"

    def make_int(self, **options):
        rng = self.rng
        if rng.random() < 0.2:
            return Int(rng.choice([16, 32, 64]), rng.choice([8, 16, 32]), rng.random() < 0.3, rng.choice(["le", "be", "network"]), **options)
        size = rng.choice([rng.randint(1, 64), 8, 16, 32, 64])
        align = rng.choice([None, None, 1, 2, 4, 8, 16, 32, 64])
        base = rng.choice([10, 10, 16, 8, 2])
        if base == 16 and 60 < size < 64:
            base = 10  # babeltrace2 2.0.4 shows 0
        return Int(size, align, rng.random() < 0.3, "native", base, **options)

    def make_enum(self, size=None):
        rng = self.rng
        t = self.make_int()
        t.base = 10
        if size or t.size < 5:
            t = Int(size or 5, None, rng.random() < 0.5)
        labels, lowest, value = [], -(1 << (t.size - 1)) if t.signed else 0, 0
        limit = (1 << (t.size - 1)) - 1 if t.signed else (1 << t.size) - 1
        for i in range(rng.randint(1, 6)):
            name = rng.choice([f"L{i}", f'"L{i}"', f'"L {i}"', "REPEATED"])
            kind = rng.random()
            if kind < 0.5 and value <= limit:
                labels.append((name, "", value, value))
            elif kind < 0.75:
                value = rng.randint(max(lowest, -8), min(limit, 15))
                labels.append((name, f" = {value}", value, value))
            else:
                lo = rng.randint(max(lowest, -8), min(limit, 10))
                value = min(limit, lo + rng.randint(0, 9))
                labels.append((name, f" = {lo} ... {value}", lo, value))
            value += 1
        t.labels = labels
        return t

    def reference(self, want):
        """An integer that lies before: how it may be named, and what it is."""
        found = [(path, t) for path, t in self.scope if want(t)]
        outer = [(path, t) for path, t in self.outer if want(t)]
        return self.rng.choice(found + outer) if found or outer else None

    def make_sequence(self, depth):
        found = self.reference(lambda t: getattr(t, "small", None))
        return Array(self.make_type(depth + 1), found[1], found[0]) if found else None

    def make_variant(self, depth):
        rng = self.rng
        found = [(path, t) for path, t in self.scope if getattr(t, "is_tag", False)]
        if not found:
            return None
        found = rng.choice(found)
        names = list(dict.fromkeys(name.strip('"') for name, *_ in found[1].labels))
        rng.shuffle(names)
        options = []
        for name in names:
            mark = len(self.scope)
            options.append((name, self.make_type(depth + 1)))
            del self.scope[mark:]
        return Variant(found[1], found[0], options)

    def make_text(self):
        elem = Int(8, 8, text=True)
        found = self.reference(lambda t: getattr(t, "small", None))
        return Array(elem, found[1], found[0]) if found and self.rng.random() < 0.5 else Array(elem, self.rng.randint(0, 6))

    def make_type(self, depth):
        rng = self.rng
        kind = rng.random()
        if depth < 4 and kind < 0.12:
            return self.make_struct(rng.randint(0, 4), depth + 1)
        if depth < 4 and kind < 0.2:
            return Array(self.make_type(depth + 1), rng.randint(0, 4))
        if depth < 4 and kind < 0.3:
            return self.make_sequence(depth) or String()
        if depth < 4 and kind < 0.4:
            return self.make_variant(depth) or self.make_enum()
        if kind < 0.47:
            return self.make_text()
        if kind < 0.55:
            return self.make_enum()
        if kind < 0.62:
            return Float(rng.choice([32, 64]), rng.choice([8, 16, 32, 64]), rng.choice(["native", "le", "be"]))
        if kind < 0.72:
            return String()
        return self.make_int()

    def make_struct(self, n, depth=0, prefix=None):
        """prefix: of absolute names, for a scope; else names are relative, and end with the structure."""
        rng, members, mark = self.rng, [], len(self.scope)
        for _ in range(n):
            name, kind = self.name(), rng.random()
            if kind < 0.2:
                t = Int(rng.choice([3, 8, 16]), None)
                t.small = 4
            elif kind < 0.3:
                t = self.make_enum(rng.choice([5, 8]))
                # babeltrace2 aborts if the ranges of a tag overlap.
                ranges = sorted(label[2:] for label in t.labels)
                t.is_tag = not any(" " in label[0] for label in t.labels) and all(a[1] < b[0] for a, b in zip(ranges, ranges[1:]))
            else:
                t = self.make_type(depth)
            members.append((name, t))
            if isinstance(t, Int):
                self.scope.append((name, t))
                if prefix in ("stream.packet.context", "event.fields"):  # babeltrace2 aborts if it is another scope
                    self.outer.append((f"{prefix}.{name}", t))
        if depth:
            del self.scope[mark:]
        return Struct(members, rng.choice([1, 1, 1, 8, 16, 64]))

    def make_scope(self, n, prefix):
        self.scope = []
        return self.make_struct(n, 0, prefix)

    # -- streams and events

    def make_time(self, size, align=None):
        clock = self.clocks[0][0] if self.clocks and self.rng.random() < 0.5 else None
        return Int(size, align, clock=clock)

    def make_stream(self, number):
        rng, s = self.rng, Stream()
        self.outer = []
        s.id = number
        s.sizes = rng.choice(["none", "content", "both", "both", "packet"])
        s.one_packet = s.sizes == "none"
        members = []
        if s.sizes in ("content", "both"):
            s.content = Int(rng.choice([32, 64, 20]), None)
            members.append(("content_size", s.content))
        if s.sizes in ("packet", "both"):
            s.packet = Int(rng.choice([32, 64]), None)
            members.append(("packet_size", s.packet))
        s.begin = s.end = s.discarded = s.seq = None
        if self.with_times and rng.random() < 0.7:
            s.begin = self.make_time(64)
            members.append(("timestamp_begin", s.begin))
            if rng.random() < 0.8:
                s.end = self.make_time(64)
                members.append(("timestamp_end", s.end))
        if rng.random() < 0.4:
            s.discarded = Int(rng.choice([32, 64]), None)
            members.append(("events_discarded", s.discarded))
        if rng.random() < 0.4:
            s.seq = Int(rng.choice([32, 64]), None)
            members.append(("packet_seq_num", s.seq))
        if rng.random() < 0.5:
            members.append(("cpu_id", Int(32, None)))
        rng.shuffle(members)
        s.context = None
        if members or rng.random() < 0.5:
            extra = self.make_scope(rng.randint(0, 3), "stream.packet.context")
            s.context = Struct(members + extra.members, extra.asked)
        s.n_events = rng.choice([1, 2, 4])
        self.make_header(s)
        s.common = self.make_scope(rng.randint(0, 3), "stream.event.context") if rng.random() < 0.5 else None
        s.events, outer = [], len(self.outer)
        for i in range(s.n_events):
            del self.outer[outer:]
            context = self.make_scope(rng.randint(0, 3), "event.context") if rng.random() < 0.4 else None
            fields = self.make_scope(rng.randint(1, 8), "event.fields")
            fields.members.insert(0, (self.name(), Int(8, 8)))  # no event without bits
            if s.sizes != "both":
                fields.members.append((self.name(), Int(8, 8)))  # nor one whose last byte may hold another
            s.events.append((s.ids[i], context, Struct(fields.members, fields.asked)))
        return s

    def make_header(self, s):
        rng = self.rng
        kinds = ["simple", "compact", "large"] if self.with_times else ["simple"]
        s.kind = rng.choice(kinds + ["none"] if s.n_events == 1 and (s.begin or not self.with_times) else kinds)
        s.time_bits = 0
        s.header = None
        s.ids = list(range(s.n_events))
        if s.kind == "simple":
            id_bits = rng.choice([8, 16, 3, 64])
            s.id_field = Int(id_bits, None)
            members = [("id", s.id_field)]
            if self.with_times:
                s.time_bits = rng.choice([64, 32, 27, 16])
                s.time_field = self.make_time(s.time_bits)
                members.insert(rng.randrange(2), ("timestamp", s.time_field))
            s.header = Struct(members, rng.choice([1, 8, 32]))
        elif s.kind in ("compact", "large"):
            id_bits, time_bits = (5, 27) if s.kind == "compact" else (16, 32)
            last = (1 << id_bits) - 1
            s.ids = [i if rng.random() < 0.6 else last + i * 1000 for i in range(s.n_events)]
            tag = Int(id_bits, None, labels=[("compact", f" = 0 ... {last - 1}", 0, last - 1), ("extended", f" = {last}", last, last)])
            s.id_field, s.time_bits = tag, time_bits
            s.short_time, s.long_id, s.time_field = self.make_time(time_bits, 1 if s.kind == "compact" else None), Int(32), self.make_time(64)
            s.header = Struct([("id", tag), ("v", Variant(tag, "id", [("compact", Struct([("timestamp", s.short_time)])),
                ("extended", Struct([("id", s.long_id), ("timestamp", s.time_field)]))]))], 8)

    def metadata(self):
        rng = self.rng
        lines = ["/* CTF 1.8 */"]
        header = []
        if self.with_magic:
            header.append("integer { size = 32; align = 8; } magic; ")
        if self.uuid:
            header.append("integer { size = 8; align = 8; } uuid[16]; ")
        if self.with_stream_id:
            header.append("integer { size = 32; align = 8; } stream_id; ")
        if self.with_instance:
            header.append("integer { size = 64; align = 8; } stream_instance_id; ")
        trace = f"trace {{ major = 1; minor = 8; byte_order = {'be' if self.big else 'le'}; "
        trace += f'uuid = "{self.uuid}"; ' if self.uuid else ""
        trace += f"packet.header := struct {{ {''.join(header)}}}; " if header else ""
        lines.append(trace + "};")
        if self.with_env:
            lines.append('env { hostname = "far\\x61way"; domain = "test"; procname = "p"; vpid = 12; };')
        for name, freq, offset_s, offset in self.clocks:
            lines.append(f"clock {{ name = {name}; freq = {freq}; offset_s = {offset_s}; offset = {offset}; description = \"d\"; absolute = FALSE; }};")
        for s in self.streams:
            block = "stream { " + (f"id = {s.id}; " if s.id is not None else "")
            block += f"packet.context := {s.context.declare()}; " if s.context else ""
            block += f"event.header := {s.header.declare()}; " if s.header else ""
            block += f"event.context := {s.common.declare()}; " if s.common else ""
            if block != "stream { ":
                lines.append(block + "};")
            for number, context, fields in s.events:
                event = f'event {{ name = "e:{number}"; id = {number}; ' + (f"stream_id = {s.id}; " if s.id is not None else "")
                event += f"context := {context.declare()}; " if context else ""
                lines.append(event + f"fields := {fields.declare()}; }};")
        return "\n".join(lines) + "\n"

    def metadata2(self):
        fragments = [{"type": "preamble", "version": 2}]
        byte_order = ORDERS["be" if self.big else "le"]
        number = lambda size, role: {"type": "fixed-length-unsigned-integer", "length": size, "alignment": 8, "byte-order": byte_order, "roles": [role]}
        header = []
        if self.with_magic:
            header.append({"name": "magic", "field-class": number(32, "packet-magic-number")})
        if self.uuid:
            fragments[0]["uuid"] = list(self.uuid.bytes)
            header.append({"name": "uuid", "field-class": {"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]}})
        if self.with_stream_id:
            header.append({"name": "stream_id", "field-class": number(32, "data-stream-class-id")})
        if self.with_instance:
            header.append({"name": "stream_instance_id", "field-class": number(64, "data-stream-id")})
        trace = {"type": "trace-class", "packet-header-field-class": {"type": "structure", "member-classes": header}}
        if self.with_env:
            trace["environment"] = {"hostname": "faraway", "domain": "test", "procname": "p", "vpid": 12}
        fragments.append(trace)
        clocks = self.clocks or [("default", 10**9, 0, 0)]
        for name, freq, offset_s, offset in clocks:
            fragments.append({"type": "clock-class", "id": name, "frequency": freq, "offset-from-origin": {"seconds": offset_s + offset // freq, "cycles": offset % freq}})
        in_packet = {"timestamp_begin": "default-clock-timestamp", "timestamp_end": "packet-end-default-clock-timestamp", "content_size": "packet-content-length",
            "packet_size": "packet-total-length", "events_discarded": "discarded-event-record-counter-snapshot", "packet_seq_num": "packet-sequence-number"}
        in_event = {"id": "event-record-class-id", "timestamp": "default-clock-timestamp", "v": "inner"}
        for s in self.streams:
            stream = {"type": "data-stream-class", "id": s.id or 0}
            if self.with_times:
                stream["default-clock-class-id"] = clocks[0][0]
            if s.context:
                stream["packet-context-field-class"] = s.context.describe(self, roles=in_packet)
            if s.header:
                stream["event-record-header-field-class"] = s.header.describe(self, roles=in_event)
            if s.common:
                stream["event-record-common-context-field-class"] = s.common.describe(self)
            fragments.append(stream)
            for identifier, context, fields in s.events:
                event = {"type": "event-record-class", "id": identifier, "data-stream-class-id": s.id or 0, "name": f"e:{identifier}", "payload-field-class": fields.describe(self)}
                if context:
                    event["specific-context-field-class"] = context.describe(self)
                fragments.append(event)
        return "".join("\x1e" + json.dumps(f) + "\n" for f in fragments)

    # -- packets

    def put_event(self, s, bits, time):
        number, context, fields = self.rng.choice(s.events)
        if s.header:
            bits.align(s.header.align)
        if s.kind == "simple":
            for name, t in s.header.members:
                t.put(self, bits, number if name == "id" else time & ((1 << t.size) - 1))
        elif s.kind in ("compact", "large"):
            last = (1 << s.id_field.size) - 1
            is_long = number >= last or self.rng.random() < 0.1
            s.id_field.put(self, bits, last if is_long else number)
            if is_long:
                bits.align(8)
                s.long_id.put(self, bits, number)
                s.time_field.put(self, bits, time)
            else:
                bits.align(Struct([("t", s.short_time)]).align)
                s.short_time.put(self, bits, time & ((1 << s.time_bits) - 1))
        for scope in (s.common, context, fields):
            if scope:
                scope.encode(self, bits)

    def packet(self, s, instance, number, times, discarded):
        rng, bits, later = self.rng, Bits(), {}
        if self.with_magic:
            bits.put(MAGIC, 32, self.big)
        if self.uuid:
            for byte in self.uuid.bytes:
                bits.put(byte, 8, self.big)
        if self.with_stream_id:
            bits.align(8)
            bits.put(s.id, 32, self.big)
        if self.with_instance:
            bits.align(8)
            bits.put(instance, 64, self.big)
        special = {"timestamp_begin": times[0], "timestamp_end": times[-1], "events_discarded": discarded, "packet_seq_num": number}
        if s.context:
            bits.align(s.context.align)
            for name, t in s.context.members:
                if name in ("content_size", "packet_size"):
                    later[name] = (t.put(self, bits, 0), t)
                elif name in special:
                    t.put(self, bits, special[name])
                else:
                    t.encode(self, bits)
        for time in times[1:-1]:
            self.put_event(s, bits, time)
        content = bits.at
        bits.align(8)
        if s.sizes == "both":
            bits.skip(8 * rng.choice([0, 0, 3, 40]))
        for name, (at, t) in later.items():
            bits.set(at, content if name == "content_size" and s.sizes == "both" else bits.at, t.size, t.is_big(self))
        return bytes(bits.data)

    def stream_file(self, s, instance):
        rng, time, data, discarded, seq = self.rng, self.rng.randrange(0, 1000), b"", 0, 0
        longest = min(1 << (s.time_bits - 1), 1 << 40) if s.time_bits else 1000
        for _ in range(1 if s.one_packet else rng.randint(1, 4)):
            times = [time]
            for _ in range(rng.randint(1, 6)):
                time += rng.choice([0, 1, 10, rng.randrange(longest)])
                times.append(time)
            time += rng.choice([0, 5])
            discarded += rng.choice([0, 0, 3, 100])
            data += self.packet(s, instance, seq, times + [time], discarded)
            seq += rng.choice([1, 1, 1, 4])
        return data

    def write(self, directory):
        directory.mkdir(parents=True)
        (directory / "metadata").write_text(self.metadata())
        for i, s in enumerate(self.streams):
            for instance in range(self.rng.choice([1, 1, 2])):
                (directory / f"s{i}_{instance}").write_bytes(self.stream_file(s, instance))
        return directory
