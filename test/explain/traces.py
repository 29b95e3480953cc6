# SPDX-License-Identifier: MIT
"""Writes CTF traces from lists of events, and makes up programs from seeds."""
import math
import operator
import os
import random
import struct

HEAD = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 64; align = 8; signed = true; } := i64;
typealias integer { size = 64; align = 8; signed = true; base = 16; } := x64;
typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := c8;
typealias floating_point { exp_dig = 11; mant_dig = 53; byte_order = le; align = 8; } := f64;
trace { major = 1; minor = 8; byte_order = le;
	packet.header := struct { u32 magic; u32 stream_id; }; };
env { hostname = "made-up"; };
clock { name = c; freq = 1000000000; offset_s = 1700000000; };
typealias integer { size = 64; align = 8; map = clock.c.value; } := t64;
"""
STREAM = """stream { id = %d; packet.context := struct {
t64 timestamp_begin; t64 timestamp_end; u64 content_size; u64 packet_size;
u64 events_discarded; u32 cpu_id; }; event.header := struct { u32 id; t64 timestamp; };%s };
"""
USER = " event.context := struct { u32 vtid; u32 vpid; string procname; };"
ORIGIN = 1700000000 * 10**9


class Hex(int):
    """Shown in base 16."""


class Event:
    """thread: (tid, pid, name), or None for an event of the kernel."""
    __slots__ = ("ns", "name", "cpu", "thread", "fields")

    def __init__(self, ns, name, cpu, thread, **fields):
        self.ns, self.name, self.cpu, self.thread, self.fields = ns, name, cpu, thread, fields


def declare(kind, name):
    """A list has its length before it."""
    if kind.startswith("list of "):
        return "u64 __%s_length; %s _%s[__%s_length];" % (name, kind[8:], name, name)
    return "%s _%s;" % (kind, name)


def type_of(value):
    if isinstance(value, (bytes, bytearray, list)):
        return "list of " + ("c8" if isinstance(value, bytes) else "u8" if isinstance(value, bytearray) else "i64")
    return "x64" if isinstance(value, Hex) else "f64" if isinstance(value, float) else "string" if isinstance(value, str) else "i64"


def packed(value):
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, list):
        return struct.pack("<Q%dq" % len(value), len(value), *value)
    if isinstance(value, (bytes, bytearray)):
        return struct.pack("<Q", len(value)) + value
    return value.encode() + b"\0" if isinstance(value, str) else struct.pack("<q", value)


class Packer:
    """Packs the events of a stream that have the same name and the same types of fields."""

    def __init__(self, number, types):
        self.head = struct.Struct("<IQ")
        self.number = number
        codes = {"i64": "q", "x64": "q", "f64": "d"}
        if all(t in codes for t in types):
            self.fields = struct.Struct("<" + "".join(codes[t] for t in types)).pack
        else:
            self.fields = lambda *values: b"".join(map(packed, values))

    def pack(self, event, thread):
        return self.head.pack(self.number, event.ns) + thread + self.fields(*event.fields.values())


def write(path, events, packet=4096, lost=(), host="made-up"):
    """lost: (ns, cpu, n): n discarded events, counted from the packet that ends at ns or later."""
    os.makedirs(path)
    classes, files = {}, {}
    packers, threads = {}, {None: b""}
    for e in sorted(events, key=operator.attrgetter("ns")):
        stream = 1 if e.thread is None else 0
        key = (stream, e.name, *e.fields, *map(type, e.fields.values()))
        if key not in packers:
            types = [type_of(v) for v in e.fields.values()]
            number = classes.setdefault((stream, e.name, tuple(zip(e.fields, types))), len(classes))
            packers[key] = Packer(number, types)
        if e.thread not in threads:
            threads[e.thread] = struct.pack("<II", *e.thread[:2]) + packed(e.thread[2])
        files.setdefault((stream, e.cpu), []).append((e.ns, packers[key].pack(e, threads[e.thread])))
    with open(os.path.join(path, "metadata"), "w") as f:
        f.write(HEAD.replace("made-up", host) + STREAM % (0, USER) + STREAM % (1, ""))
        for (stream, name, fields), number in classes.items():
            f.write('event { name = "%s"; id = %d; stream_id = %d; fields := struct { %s }; };\n' % (
                name, number, stream, " ".join(declare(t, k) for k, t in fields)))
    for (stream, cpu), records in files.items():
        with open(os.path.join(path, "stream_%d_%d" % (stream, cpu)), "wb") as f:
            at, discarded = 0, 0
            while at < len(records):
                end, size = at, 0
                while end < len(records) and (size == 0 or size + len(records[end][1]) <= packet):
                    size, end = size + len(records[end][1]), end + 1
                last = records[end - 1][0]
                discarded = sum(n for ns, c, n in lost if c == cpu and ns <= last)
                body = b"".join(r[1] for r in records[at:end])
                bits = (52 + len(body)) * 8
                f.write(struct.pack("<IIQQQQQI", 0xc1fc1fc1, stream, records[at][0], last, bits, bits, discarded, cpu) + body)
                at = end


# --- random programs, whose accounts a slow model can make
class Thread:
    def __init__(self, r, number, kernel):
        self.r, self.events, self.kernel = r, [], kernel
        self.id, self.cpu, self.at = (100 + number, 50, "t%d" % number), number, 1000 + number

    def event(self, name, **fields):
        self.at += self.r.choice([0, 1, 10, 500, 30000]) + self.r.randrange(100)
        if self.kernel and self.r.random() < .15:
            self.leave()
        self.events.append(Event(self.at, name, self.cpu, self.id, **fields))

    def leave(self):
        """Off its processor, and in again: preempted, or until woken."""
        preempted = self.r.random() < .5
        self.at += 1
        self.switch(self.id[0], 0, 0 if preempted else 1)
        self.at += self.r.randrange(1, 5000)
        if not preempted:
            self.events.append(Event(self.at, "sched_waking", 60, None, tid=self.id[0]))
            self.at += self.r.randrange(1, 3000)
        self.switch(0, self.id[0], 0)
        self.at += self.r.randrange(1, 100)

    def switch(self, prev, next_, state):
        self.events.append(Event(self.at, "sched_switch", self.cpu, None, prev_tid=prev, prev_state=state,
                                 next_tid=next_, next_comm="x"))

    def step(self, depth):
        r, kind = self.r, self.r.random()
        if kind < .35 and depth < 5:
            name = "p:" + r.choice("abcd")
            self.event(name + "_begin", span_tid=self.id[0], size=r.randrange(100))
            for _ in range(r.randrange(4)):
                self.step(depth + 1)
            if r.random() > .03:                            # else it never ends: what is around ends it
                self.event(name + "_end", span_tid=self.id[0])
        elif kind < .6:
            self.event("p:plain" + r.choice("12"), n=r.randrange(10))
        elif kind < .8:
            self.event("libc:" + r.choice(["malloc", "free", "calloc"]), size=8)
        else:
            mutex = dict(mutex=1000 + self.id[0] * 10 + r.randrange(2), caller=4096)
            self.event("pthread:mutex_lock_req", **mutex)
            self.event("pthread:mutex_lock_acq", status=0, **mutex)
            if r.random() < .5:
                self.event("p:inside")
            self.event("pthread:mutex_unlock", status=0, **mutex)


def program(seed):
    """Instances of p:root in some threads, with anything inside."""
    r = random.Random(seed)
    events, kernel = [], r.random() < .5
    for number in range(r.choice([1, 2, 3])):
        t = Thread(r, number, kernel)
        for i in range(r.randrange(20, 60)):
            t.event("p:root_begin", span_tid=t.id[0], i=i, tenant=r.choice(["x", "y"]), load=r.random())
            for _ in range(r.randrange(6)):
                t.step(1)
            t.event("p:root_end", span_tid=t.id[0], ok=r.randrange(2))
            if r.random() < .3:
                t.step(0)
        events += t.events
    return events


# ---------------------------------------------------------------- the slow model
ALLOC = ("malloc", "free", "calloc")


def account(events, name):
    """{(tid, begin): {path: [count, ns]}}: each instance looks at all events of its thread."""
    out = {}
    for tid in sorted({e.thread[0] for e in events if e.thread}):
        own = sorted((e for e in events if e.thread and e.thread[0] == tid), key=lambda e: e.ns)
        off = absences(events, tid)
        for i, e in enumerate(own):
            if e.name == name + "_begin":
                end = find_end(own, i, name)
                if end is not None and own[end].ns > e.ns:
                    out[(tid, e.ns)] = parts(own, i, end, name, off)
    return out


def absences(events, tid):
    """(from, woken or None, to): when the thread was off its processor."""
    out, left, woken = [], None, None
    for e in sorted(events, key=lambda e: e.ns):
        if e.name == "sched_switch" and e.fields["prev_tid"] == tid:
            left, woken = (e.ns, e.fields["prev_state"]), None
        elif e.name == "sched_waking" and e.fields["tid"] == tid and left and woken is None:
            woken = e.ns
        elif e.name == "sched_switch" and e.fields["next_tid"] == tid and left:
            out.append((left[0], left[0] if left[1] == 0 else woken, e.ns))
            left = None
    return out


def find_end(own, i, name):
    depth = 0
    for k in range(i, len(own)):
        depth += (own[k].name == name + "_begin") - (own[k].name == name + "_end")
        if not depth:
            return k
    return None


def short(name):
    return "libc:alloc" if name.split(":")[1] in ALLOC else name


def parts(own, i, end, name, off):
    out, stack = {}, [name]

    def add(path, n, ns):
        p = out.setdefault(tuple(path), [0, 0])
        p[0] += n
        p[1] += ns
    add(stack, 1, 0)
    for k in range(i + 1, end + 1):
        a, b = own[k - 1], own[k]
        way = "%s..%s" % (short(a.name), short(b.name))
        running = b.ns - a.ns
        for left, woken, back in off if stack[-1] != "(lock)" else ():
            for x, y, kind in ((left, woken, "(waiting)"), (woken, back, "(ready)")):
                if a.ns <= left and back <= b.ns and y > x:
                    add(stack + [kind], 1, 0)
                    add(stack + [kind, way], 1, y - x)
                    running -= y - x
        add(stack + [way], 1, running)
        if b.name.endswith("_begin"):
            stack.append(b.name[:-6])
            add(stack, 1, 0)
        elif b.name == "pthread:mutex_lock_req":
            stack.append("(lock)")
            add(stack, 1, 0)
        elif b.name == "pthread:mutex_lock_acq":
            stack.pop()
        elif b.name.endswith("_end") and b.name[:-4] in stack[1:]:
            while stack.pop() != b.name[:-4]:
                pass
    inclusive = {p: list(v) for p, v in out.items()}
    for p, (n, ns) in out.items():
        if ".." in p[-1]:
            for d in range(1, len(p)):
                inclusive[p[:d]][1] += ns
    return inclusive


def split(logs):
    """Otsu's threshold in the upper half, as docs/explain.md has it; or None."""
    n, best, cut = len(logs), 0, None
    for k in range(max(n // 2, 1), n - 2):
        a, b = logs[:k], logs[k:]
        d = sum(b) / len(b) - sum(a) / len(a)
        if k * (n - k) * d * d > best:
            best, cut = k * (n - k) * d * d, k
    if not cut:
        return None
    spread = sum(sum((x - sum(g) / len(g)) ** 2 for x in g) for g in (logs[:cut], logs[cut:])) / n
    d = sum(logs[cut:]) / (n - cut) - sum(logs[:cut]) / cut
    return cut if d / math.sqrt(max(spread, 1e-9)) >= 4 and d > math.log(1.5) else None
