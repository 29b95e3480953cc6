#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kymo view on traces of foreign tracers. It prints everything that CTF 1.8 allows as babeltrace2
does, except where babeltrace2 is wrong.
"""

import csv
import json
import os
import random
import re
import resource
import struct
import subprocess
import sys
import uuid

import kymotest
from kymotest import CLI, SOURCE, TIMEOUT, Failure, check, equal

sys.path.insert(0, str(SOURCE / "test" / "foreign"))
import ctf  # noqa: E402

SEEDS = range(int(os.environ.get("KYMO_TEST_FIRST", "0")), int(os.environ.get("KYMO_TEST_FIRST", "0")) + int(os.environ.get("KYMO_TEST_SEEDS", "300")))

TYPES = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
"""
BARE = TYPES + "trace { major = 1; minor = 8; byte_order = le; };\n"
WITH_MAGIC = TYPES + "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };\n"
ONE = 'event { name = "e"; fields := struct { u8 a; }; };\n'
MAGIC = struct.pack("<I", ctf.MAGIC)


def write(k, name, metadata, **streams):
    directory = k.top / name
    directory.mkdir()
    (directory / "metadata").write_bytes(metadata if isinstance(metadata, bytes) else metadata.encode())
    for stream, data in streams.items():
        (directory / stream).write_bytes(data)
    return directory


def run(k, *command):
    return subprocess.run([str(c) for c in command], env=k.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT)


def view(k, trace):
    """Returns the lines of the text, and the errors."""
    done = run(k, CLI, "view", trace)
    check(done.returncode == 0, f"{trace}: exit {done.returncode}: {done.stderr.decode(errors='replace')[:1000]}")
    return done.stdout.splitlines(), done.stderr.decode(errors="replace")


viewed = {}


def view_seed(k, seed, trace):
    """Returns the lines of a random trace, which several tests need."""
    if seed not in viewed:
        viewed[seed] = view(k, trace)[0]
    return viewed[seed]


def same_line(ours, theirs):
    """babeltrace2 2.0.4 may print the text of an earlier field for an empty string."""
    if ours == theirs:
        return True
    pattern = rb'"(?:[^"\\]|\\.)*"'.join(re.escape(part) for part in ours.split(b'""'))
    return b'""' in ours and re.fullmatch(pattern, theirs) is not None


def compare(k, trace, ours=None):
    """
    Checks that both print the same lines; returns false when babeltrace2 aborts. ours: what kymo
    view prints, if that is known.
    """
    done = run(k, "babeltrace2", trace)
    ours = view(k, trace)[0] if ours is None else ours
    if done.returncode < 0:
        return False
    check(done.returncode == 0, f"{trace}: babeltrace2: {done.stderr.decode(errors='replace')[:1000]}")
    theirs = done.stdout.splitlines()
    for number, (our, their) in enumerate(zip(ours, theirs), 1):
        if not same_line(our, their):
            raise Failure(f"{trace}: line {number}\nkymo view:   {our!r}\nbabeltrace2: {their!r}")
    equal(len(ours), len(theirs), f"{trace}: lines")
    return True


def test_random(k):
    """
    Random metadata and packets. babeltrace2 aborts on one in ten of them: Kymo must only read
    those.
    """
    compared = 0
    for seed in SEEDS:
        trace = ctf.Trace(seed).write(k.top / f"seed{seed}")
        compared += compare(k, trace, view_seed(k, seed, trace))
    check(compared > len(SEEDS) * 3 // 4, f"babeltrace2 read only {compared} of {len(SEEDS)}")


def test_export(k):
    """
    What is selected of random traces, written as a trace by kymo export: babeltrace2 prints the
    same of it. It aborts on some constructions of CTF 1.8; Kymo must read those.
    """
    compared = 0
    for seed in SEEDS[:len(SEEDS) // 4]:
        trace, out = ctf.Trace(seed).write(k.top / f"from{seed}"), k.top / f"to{seed}"
        options = random.Random(seed).choice([[], ["-e", "*:1"], ["-e", "!*:1"], ["--begin=+0.001"], ["--end=+1"]])
        if not any(re.match(rb"\[", line) for line in view_seed(k, seed, trace)):
            options = []
        done = run(k, CLI, "export", trace, "--to=ctf", "-o", out, *options)
        if b"cannot be written as CTF 1.8: an array of variants" in done.stderr:
            continue
        check(done.returncode == 0, f"{trace}: {done.stderr}")
        wanted = run(k, CLI, "view", trace, *options).stdout.splitlines() if options else view_seed(k, seed, trace)
        if re.search(rb"packet\.context := struct \{ *\}", (trace / "metadata").read_bytes()):
            continue  # an empty context is shown; packets that are written have sizes there
        if b"CTF 1.8 has not all types" in done.stderr:
            equal(len(view(k, out)[0]), len(wanted), f"{trace}: {options}")
            continue
        equal(view(k, out)[0], wanted, f"{trace}: kymo view {options}")
        theirs = run(k, "babeltrace2", out)
        if theirs.returncode >= 0 and not theirs.returncode:
            lines = theirs.stdout.splitlines()
            equal(len(lines), len(wanted), f"{trace}: lines")
            check(all(map(same_line, wanted, lines)), f"{trace}: babeltrace2 prints other events")
            compared += 1
    check(compared > len(SEEDS) // 4 // 2, f"babeltrace2 read only {compared}")


def test_export_of_losses(k):
    """A packet that stands for a loss has a context, also one that is never zero, and its times."""
    context = ("u64 timestamp_begin; u64 timestamp_end; u32 content_size; u32 packet_size; u8 events_discarded; "
        "enum : u8 { A = 1, B = 2 } t; variant <t> { struct { u8 x; } A; u32 B; } v; ")
    metadata = BARE + f"stream {{ packet.context := struct {{ {context}}}; event.header := struct {{ u64 timestamp; }}; }};\n" + ONE
    packet = lambda begin, end, *events: struct.pack("<QQIIBBB", begin, end, *[(27 + 9 * len(events)) * 8] * 2, 3, 1, 7) + b"".join(struct.pack("<QB", *e) for e in events)
    # Readers do not know the time of a loss if packets have no times, or only one.
    for name, hidden in (("loss", ""), ("timeless", "timestamp_end"), ("endless", "timestamp_begin")):
        text = metadata.replace(hidden, "other") if hidden else metadata
        trace, out = write(k, name, text, s=packet(10, 20) + packet(30, 40, (35, 5))), k.top / f"{name}-out"
        k.kymo("export", trace, "--to=ctf", "-o", out)
        found, wanted = view(k, out), view(k, trace)
        equal(found[0], wanted[0], f"{name}: events")
        equal(*(re.sub(r"in trace .*", "", errors) for _, errors in (found, wanted)), f"{name}: losses")
        check(compare(k, out, found[0]), f"{name}: babeltrace2 aborts")


NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(?:= |\{ |container = )(0x[0-9A-F]+|0b[01]+|-?\d+(?:\.\d+)?(?:e[+-]\d+)?|-?inf)(?= |$|,)')


def text_numbers(line):
    """Returns the numbers in the fields of a line of text, in any base."""
    found = [m.group(1) for m in NUMBER.finditer(line) if m.group(1)]
    bases = (("0x", 16), ("0b", 2))
    for text in found:
        base = next((base for prefix, base in bases if text.startswith(prefix)), 8 if re.fullmatch("0[0-7]+", text) else 0)
        yield int(text, base) if base else float(text) if re.search("[.einf]", text) else int(text)


def members(pairs):
    """Returns the members of a JSON object, whose names differ."""
    equal(len({name for name, _ in pairs}), len(pairs), f"names of {pairs}")
    return dict(pairs)


def json_numbers(value):
    if isinstance(value, dict):
        for part in [value["value"]] if set(value) == {"value", "label"} else value.values():
            yield from json_numbers(part)
    elif isinstance(value, list):
        for part in value:
            yield from json_numbers(part)
    elif not isinstance(value, str) or value in ("inf", "-inf"):
        yield float(value) if isinstance(value, str) else value


def same_number(text, value):
    """
    The text has floats with six digits, and negative numbers of bases other than 10 as the digits
    of their size.
    """
    if isinstance(text, float) or isinstance(value, float):
        return text == value or abs(text - value) <= 1e-5 * abs(value)
    return text == value or (value < 0 < text and (text - value).bit_count() == 1)


def test_json(k):
    """The numbers in JSON are those in the text, in all scopes."""
    for seed in SEEDS[:len(SEEDS) // 3]:
        directory = ctf.Trace(seed).write(k.top / f"json{seed}")
        done = run(k, CLI, "view", directory, "--format=json")
        for text, line in zip(view_seed(k, seed, directory), done.stdout.splitlines(), strict=True):
            event = json.loads(line, object_pairs_hook=members)
            context = event.get("context", {})
            cpu = [event["cpu"]] if "cpu" in event and "cpu_id" not in context else []
            values = list(json_numbers([cpu, context, event["fields"]]))
            shown = list(text_numbers(text.decode(errors="replace").split(": {", 1)[1]))
            check(len(shown) == len(values) and all(map(same_number, shown, values)), f"seed {seed}: {text!r} is not {line!r}: {shown}, {values}")


def test_names_in_json(k):
    """Members of one name, in contexts of several scopes or but for "_", are all in JSON."""
    trace = k.top / "names"
    trace.mkdir()
    contexts = ("packet.context := struct { u8 x; u8 cpu_id; }", "event.context := struct { u8 _x; u8 x_; }")
    (trace / "metadata").write_text(BARE + f"stream {{ {'; '.join(contexts)}; }};\n"
        "event { name = e; context := struct { u8 x; u8 y; }; fields := struct { u8 _x; u8 x; struct { u8 y; u8 _y; } s; }; };\n")
    (trace / "s").write_bytes(bytes(range(1, 11)))
    event = json.loads(run(k, CLI, "view", trace, "--format=json").stdout, object_pairs_hook=members)
    equal(event["context"], {"x": 1, "cpu_id": 2, "x__": 3, "x_": 4, "x___": 5, "y": 6}, "contexts")
    equal(event["fields"], {"_x": 7, "x": 8, "s": {"y": 9, "_y": 10}}, "fields")
    # Tables and filters have the same names.
    fields = {"_x": 7, "x": 8, "s.y": 9, "s._y": 10}
    table = k.kymo_json("sql", trace, 'SELECT * FROM "e"')
    row = dict(zip(table["columns"], table["rows"][0]))
    equal({name: row.get(name) for name in fields}, fields, "columns")
    for name, value in fields.items():
        check(run(k, CLI, "view", trace, "-f", f"{name} == {value}").stdout.count(b"\n") == 1, f"{name} in a filter")
    options = write(k, "options", BARE + 'event { name = "e"; fields := struct { enum : u8 { x, _x } t; variant <t> { u8 x; u8 _x; } v; }; };\n', s=b"\0\5\1\6")
    equal(k.kymo_json("sql", options, 'SELECT "v.x", "v._x" FROM "e"')["rows"], [[5, None], [None, 6]], "options of a variant")


def sized(discarded, begin, end, events, head=MAGIC):
    """Returns a packet with sizes, times and a counter, as SIZED describes it."""
    size = (len(head) + 25 + len(events)) * 8
    return head + struct.pack("<IIBQQ", size, size, discarded, begin, end) + events


SIZED = "stream { packet.context := struct { u32 content_size; u32 packet_size; u8 events_discarded; u64 timestamp_begin; u64 timestamp_end; }; };\n"

def in_packets(text, order, size, room):
    """
    Returns metadata as LTTng writes it: in packets of this size, with so much of the text in each.
    """
    data = b""
    for at in range(0, len(text), room):
        part = text[at:at + room].encode()
        data += (struct.pack(order + "I", 0x75D11D57) + bytes(16) + struct.pack(order + "III", 0, (37 + len(part)) * 8, size * 8) + bytes([0, 0, 0, 1, 8]) + part).ljust(size, b"\0")
    return data


AS_BABELTRACE2 = {
    "metadata-packets": (in_packets(BARE + ONE, "<", 4096, 4000), {"s": b"\1\2"}),
    "metadata-packets-big": (in_packets(BARE.replace("le;", "be;") + ONE, ">", 100, 40), {"s": b"\1\2"}),
    "metadata-packets-other": (in_packets(BARE + ONE, ">", 77, 40), {"s": b"\1\2"}),
    "metadata-packets-cut": (in_packets(BARE + ONE, "<", 200, 100)[:-30], {"s": b"\1\2"}),
    "metadata-packets-and-more": (in_packets(BARE + ONE, "<", 4096, 4000) + b"no packet", {"s": b"\1\2"}),
    "comment-not-closed": (BARE + ONE + "/* the end is", {"s": b"\1\2"}),
    "only-event": (BARE + 'event { name = "e"; id = 5; fields := struct { u8 a; }; };\n', {"s": b"\1\2"}),
    "event-without-name": (BARE + 'event { name = ""; fields := struct { u8 a; }; };\n', {"s": b"\1\2"}),
    "crlf": ((BARE + ONE).replace("\n", "\r\n"), {"s": b"\1\2"}),
    "text-arrays": (BARE + 'typealias integer { size = 8; align = 8; encoding = UTF8; } := c;\nevent { name = "e"; fields := struct { c g[2][4]; c z[0]; enum : c { a = 97 } e[3]; c x; }; };\n', {"s": b"ab\0\0cdefxyz!"}),
    "scopes": (BARE.replace("};\n", " packet.header := struct { u8 h; }; };\n") + "stream { packet.context := struct { u8 n; }; event.context := struct { u8 m; }; };\n"
        'event { name = "e"; fields := struct { struct { u8 q; } s; u8 a[stream.packet.context.n]; u8 b[stream.event.context.m]; u8 c[trace.packet.header.h]; u8 d[s.q]; u8 e[event.fields.s.q]; }; };\n',
        {"s": bytes([1, 2, 1, 1, 10, 11, 12, 13, 14, 15])}),
    "signed-tag": (BARE + 'event { name = "e"; fields := struct { enum : integer { size = 8; signed = true; } { A = -1, B = 0 } t; variant <t> { u8 A; u32 B; } v; }; };\n', {"s": b"\xff\1\0\2\0\0\0"}),
    "time-of-48-bits": (BARE + 'clock { name = "dpdk"; freq = 2400000000; offset_s = 5; offset = 77; };\ntypealias integer { size = 48; align = 1; map = clock.dpdk.value; } := t48;\n'
        'stream { event.header := struct { t48 timestamp; integer { size = 16; } id; } align(64); };\nevent { name = "x"; id = 3; fields := struct { u64 v; u8 w; }; };\n',
        {"s": (5000).to_bytes(6, "little") + b"\3\0" + b"\7" * 8 + b"\1" + bytes(7) + (9000).to_bytes(6, "little") + b"\3\0" + b"\x08" * 8 + b"\2"}),
    "universal-names": (BARE + 'event { name = "e"; fields := struct { u8 \\u00e9t\\U0001F600; struct { u8 a; } x\\u00E9; }; };\n', {"s": b"\1\2"}),
    "no-stream-block": (BARE + ONE, {"s": b"\1\2\3"}),
    "no-event-block": (BARE, {}),
    "no-clock": (BARE + "stream { event.header := struct { u8 id; u8 timestamp; }; };\n" + ONE, {"s": b"\0\1\2\0\3\4"}),
    "only-clock": (BARE + "clock { name = c; freq = 1000; offset_s = 5; };\nstream { event.header := struct { u8 id; u8 timestamp; }; };\n" + ONE, {"s": b"\0\1\2\0\3\4"}),
    "clock-in-fields": (BARE + 'clock { name = c; freq = 1000000000; };\nstream { event.header := struct { u8 timestamp; }; };\nevent { name = "e"; fields := struct { u8 a; integer { size = 8; map = clock.c.value; } t; }; };\n', {"s": b"\1\2\x09\x0a\3\x0b"}),
    "no-times": (WITH_MAGIC + SIZED + ONE, {"s": sized(0, 5, 9, b"\1\2") + sized(0, 12, 12, b"\3")}),
    "character-literals": (BARE + "env { hostname = 'x'; procname = 'yz'; };\n" + ONE, {"s": b"\1"}),
    "escapes": (BARE + 'env { hostname = "a\\x41b \\x0231 \\101 \\043 \\\\ \\"\\tq\\0not seen"; };\n' + ONE, {"s": b"\1"}),
    "pointers": (BARE + 'typealias u64 := void *;\ntypealias u8 := const char *;\nevent { name = "e"; fields := struct { void *a; u8 b; }; };\n', {"s": bytes(range(1, 10))}),
    "env-length": (BARE + 'env { n = 2; };\nevent { name = "e"; fields := struct { u8 a[env.n]; }; };\n', {"s": b"\1\2\3\4"}),
    "deep": (BARE + 'event { name = "e"; fields := struct { ' + "struct { " * 1100 + "u8 a; " + "".join(f"}} s{i}; " for i in range(1100)) + "}; };\n", {"s": b"\1"}),
    "names": (BARE + 'event { name = a.b.c; fields := struct { u8 _, __, ___x; }; };\n', {"s": b"\1\2\3"}),
    "long-name": (BARE + f'event {{ name = "e"; fields := struct {{ u8 {"A" * 100000}; }}; }};\n', {"s": b"\1"}),
    "enum": (BARE + 'event { name = "e"; fields := struct { enum : u8 { a = -1, b = 0, c, "d d" = 1 ... 4, a = 3, event, e = 0xff } a; }; };\n', {"s": bytes([0, 1, 3, 4, 5, 254, 255])}),
    "enum-of-alias": (BARE + 'typealias u8 := int;\ntypealias enum { A, B, C } := X;\nevent { name = "e"; fields := struct { X tag; variant Y <tag> { struct { u8 _; } A; struct { u32 _; } B; u64 C; } v; }; };\n', {"s": b"\0\7\1\1\2\3\4\0\x08"}),
    "many-labels": (BARE + 'event { name = "e"; fields := struct { enum : integer { size = 16; } { ' + ", ".join(f"l{i} = {3 * i} ... {3 * i + 4}" for i in range(500)) + " } a; }; };\n", {"s": struct.pack("<5H", 0, 4, 777, 1501, 1505)}),
    "shadowed": (BARE + 'typealias integer { size = 8; } := t;\nevent { name = "e"; fields := struct { t n; struct { typealias integer { size = 16; align = 8; } := t; t n; u8 inner[n]; } s; u8 outer[n]; t last; }; };\n', {"s": b"\1\2\0\x11\x12\x21\x31"}),
    "empty": (BARE + 'event { name = "e"; fields := struct { u8 n; struct { } s; struct { } x[n]; u8 z[0]; u8 q[n]; string t[n]; }; };\n', {"s": b"\0\2\1\2a\0b\0"}),
    "env-keywords": (BARE + 'env { event = "a"; struct = 3; trace.enum = 4; hostname = "h"; };\n' + ONE, {"s": b"\1"}),
    "env-empty": (BARE + 'env { hostname = ""; };\n' + ONE, {"s": b"\1"}),
    "env-all-empty": (BARE + 'env { hostname = ""; procname = ""; vpid = 0x5; };\n' + ONE, {"s": b"\1"}),
    "empty-arrays": (BARE + 'event { name = "e"; fields := struct { u8 n; struct { } x[42]; }; };\n', {"s": b"\0\2"}),
    "align-zero": (BARE + 'event { name = "e"; fields := struct { struct { u8 q; } align(0) s; u8 x; }; };\n', {"s": b"\1\2"}),
    "equal-times": (TYPES + "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u8 stream_id; u8 stream_instance_id; }; };\nclock { name = c; freq = 1000; };\n"
        + "".join(f'stream {{ id = {i}; event.header := struct {{ integer {{ size = 8; map = clock.c.value; }} timestamp; }}; }};\nevent {{ name = "e{i}"; stream_id = {i}; fields := struct {{ u8 a; }}; }};\n' for i in (0, 7)),
        {name: MAGIC + bytes([stream, instance, 5, instance, 9, instance]) for name, stream, instance in
            (("a", 7, 9), ("c_10", 7, 3), ("c_2", 7, 2), ("b", 7, 4), ("z", 0, 1), ("y", 0, 8))}),
    "context-only": (BARE + 'stream { event.context := struct { u8 c; }; };\nevent { name = "e"; context := struct { u8 d; }; };\n', {"s": b"\1\2\3\4"}),
    "odd-packet-size": (WITH_MAGIC + SIZED + ONE, {"s": (lambda p: p[:8] + struct.pack("<I", len(p) * 8 + 4) + p[12:])(sized(0, 5, 9, b"\1\2")) + sized(0, 12, 12, b"\3")}),
    "instances": (WITH_MAGIC + SIZED + ONE, {n: sized(0, 5, 6, b"\7") + sized(3, 15, 16, b"\x08") for n in ("b", "a", "c")}),
    "big": (BARE.replace("le;", "be;") + 'event { name = "e"; fields := struct { integer { size = 3; } a; integer { size = 13; signed = 1; } b; integer { size = 16; byte_order = le; } c; floating_point { exp_dig = 8; mant_dig = 24; align = 1; } f; }; };\n', {"s": b"\xa5\x5a\x01\x02\x3f\x80\x00\x00"}),
    "floats": (BARE + 'event { name = "e"; fields := struct { integer { size = 3; } a; floating_point { exp_dig = 8; mant_dig = 24; align = 1; } f; floating_point { exp_dig = 11; mant_dig = 53; align = 2; byte_order = le; } d; integer { size = 4; } e; }; };\n', {"s": bytes(range(0x30, 0x3d))}),
}


def test_as_babeltrace2(k):
    for name, (metadata, streams) in AS_BABELTRACE2.items():
        check(compare(k, write(k, name, metadata, **streams)), f"babeltrace2 aborts on {name}")
    trace = k.top / "instances"
    equal(view(k, trace)[1].encode(), run(k, "babeltrace2", trace).stderr, "losses of streams without a number")


def test_where_babeltrace2_is_wrong(k):
    """
    If babeltrace2 2.0.4 differs from the specification or from what a reader needs, Kymo follows
    the specification or the need.
    """
    wide = write(k, "wide-hex", BARE + 'event { name = "e"; fields := struct { integer { size = 63; align = 8; base = 16; } x; integer { size = 1; } y; }; };\n', s=b"\xff" * 7 + b"\x7f")
    equal(view(k, wide)[0], [b"e: { x = 0x7FFFFFFFFFFFFFFF, y = 0 }"], "babeltrace2 shows 0x0 for 61 to 63 bits")
    overlap = write(k, "overlap", BARE + 'event { name = "e"; fields := struct { enum : u8 { a = 0 ... 9, b = 5 } tag; variant <tag> { u8 a; u32 b; } v; }; };\n', s=b"\5\1")
    equal(view(k, overlap)[0], [b'e: { tag = ( "a", "b" : container = 5 ), v = { 1 } }'], "babeltrace2 aborts if the ranges of a tag overlap")
    forgotten = write(k, "semicolon", BARE + 'event { name = "e"; fields := struct { u8 a; } };\n', s=b"\1")
    equal(view(k, forgotten)[0], [b"e: { a = 1 }"], "babeltrace2 wants a semicolon there")
    below = write(k, "offset", BARE + 'clock { name = c; freq = 1000; offset = -1500; };\nstream { event.header := struct { u64 timestamp; }; };\n' + ONE, s=struct.pack("<QB", 2000, 1))
    equal(view(k, below)[0], [b"[00:00:00.500000000] (+?.?????????) e: { a = 1 }"], "babeltrace2 takes no offset below 0")
    less = write(k, "variant-with-less", BARE + 'event { name = "e"; fields := struct { enum : u8 { a, b, c, } tag; variant <tag> { u32 b; u8 c; u8 never; } v; }; };\n', s=b"\1\1\2\3\4\2\5")
    equal(view(k, less)[0], [b'e: { tag = ( "b" : container = 1 ), v = { 67305985 } }', b'e: { tag = ( "c" : container = 2 ), v = { 5 } }'], "babeltrace2 aborts if an option has no label")
    early = write(k, "before-1970", BARE + "clock { name = c; freq = 1000000000; offset_s = -5; };\nstream { event.header := struct { u8 timestamp; }; };\n" + ONE, s=b"\1\2")
    equal(view(k, early)[0], [b"[-4.999999999] (+?.?????????) e: { a = 2 }"], "babeltrace2 gives up")
    far = write(k, "after-2262", BARE + "clock { name = c; freq = 1; };\nstream { event.header := struct { u64 timestamp; }; };\n" + ONE, s=struct.pack("<QBQB", 5, 1, 10**12, 2))
    check(len(view(k, far)[0]) == 2, "babeltrace2 gives up at a time that it cannot show")
    zeros = write(k, "zeros", BARE + "\0" * 9 + ONE + "\0" * 9, s=b"\1")
    equal(view(k, zeros), ([b"e: { a = 1 }"], ""), "babeltrace2 takes no zeros, which a crash may leave in a file")
    coded = write(k, "compressed", in_packets(BARE + ONE, "<", 4096, 4000)[:32] + b"\1" + bytes(4064), s=b"\1")
    check(b"metadata: it is compressed" in run(k, CLI, "view", coded).stderr, "compressed metadata")
    empty = write(k, "no-bits", BARE + 'event { name = "e"; fields := struct { }; };\n', s=b"\1")
    check(view(k, empty)[0] == [], "an event of no bits would never end")


def test_mistakes(k):
    """A name or path that is wrong is reported, and nothing is written into the trace."""
    trace = write(k, "mistakes", BARE + ONE, s=b"\1\2\3")
    for command, status, lines, word in (
            (["view", "--fields=a,zz", trace], 0, 3, "field or context 'zz'"),
            (["view", "--fields=zz", trace], 0, 0, "is selected"),
            (["view", "--tail=0", trace], 0, 0, ""),
            (["view", trace / "s"], 1, 0, "s is a file: give the directory"),
            (["export", trace, "--to=csv", "-o", trace / ".." / "mistakes"], 2, 0, "is the trace itself")):
        done = run(k, CLI, *command)
        check((done.returncode, done.stdout.count(b"\n")) == (status, lines) and word in done.stderr.decode() and bool(word) == bool(done.stderr), f"{command}: {done}")
    equal(sorted(os.listdir(trace)), ["metadata", "s"], "files of the trace")


def test_perf(k):
    """The threads of a trace that `perf data convert --to-ctf` writes have names of their own."""
    trace = write(k, "perf", BARE + 'event { name = "cycles"; fields := struct { u8 perf_ip; u8 perf_tid; u8 perf_pid; }; };\n', s=bytes([1, 12, 10, 2, 11, 10]))
    for by, wanted in (("process", [(10, 2)]), ("thread", [(11, 1), (12, 1)])):
        groups = k.kymo_json("stat", str(trace), f"--by={by}")["groups"]
        equal(sorted((int(g["key"]), g["events"]) for g in groups), wanted, by)


def test_owners(k):
    """thread and cpu are contexts: fields of these names belong to another thread or processor."""
    def event(number, *values):
        return bytes([number, 7, *values])
    events = event(0, 1) + event(1, 55) + event(2, 9) + event(3, 2)
    metadata = TYPES + "trace { major = 1; minor = 8; byte_order = le; };\nstream { packet.context := struct { u32 content_size; u8 cpu_id; }; event.header := struct { u8 id; }; event.context := struct { u8 tid; }; };\n" + \
        "".join(f'event {{ name = "{name}"; id = {i}; fields := struct {{ u8 {field}; }}; }};\n' for i, (name, field) in enumerate((("x", "a"), ("sched_waking", "tid"), ("power_cpu_frequency", "cpu_id"), ("y", "a"))))
    trace = write(k, "owners", metadata, s=struct.pack("<IB", (5 + len(events)) * 8, 4) + events)
    bare = write(k, "no-owners", metadata.replace("struct { u8 tid; }", "struct { u8 b; }").replace("u8 cpu_id; }; event", "u8 z; }; event"), s=(trace / "s").read_bytes())
    for by, key in (("thread", "7"), ("cpu", "4")):
        for place, wanted in ((trace, key), (bare, "-")):
            equal([(g["key"], g["events"]) for g in k.kymo_json("stat", str(place), f"--by={by}")["groups"]], [(wanted, 4)], f"{place} by {by}")


def test_types(k):
    """A field that classes of one name have with other types keeps each value in CSV."""
    s64 = "integer { size = 64; align = 8; signed = 1; }"
    enum = "enum : u64 { A = 18446744073709551615, B = 0 }"
    big = ("<Q", 2**64 - 1, "18446744073709551615"), ("<Q", 0, "0"), ("<Q", 2**63 + 1, "9223372036854775809")
    kinds = {"s64": (s64, [("<q", 2**53 + 1, "9007199254740993"), ("<q", -(2**63), "-9223372036854775808"), ("<q", 2**63 - 1, "9223372036854775807")]),
        "u64": ("u64", big), "u8": ("u8", [("<B", 7, "7")]), "enum": (enum, big),
        "real": ("floating_point { exp_dig = 11; mant_dig = 53; align = 8; }", [("<d", 0.5, "0.5"), ("<d", 2.0**70, "1.1805916207174113e+21")]),
        "text": ("string", [("3s", b"ab", "ab"), ("3s", b"12", "12")])}
    for a, b in [(a, b) for a in kinds for b in kinds if a != b]:
        metadata = TYPES + "trace { major = 1; minor = 8; byte_order = le; };\nstream { event.header := struct { u8 id; }; };\n"
        data, wanted = b"", []
        for number, kind in enumerate((a, b)):
            metadata += f'event {{ name = "e"; id = {number}; fields := struct {{ {kinds[kind][0]} f; }}; }};\n'
            data += b"".join(bytes([number]) + struct.pack(form, value) for form, value, _ in kinds[kind][1])
            wanted += [[text, {"18446744073709551615": "A", "0": "B"}.get(text, "") if kind == "enum" else ""] for _, _, text in kinds[kind][1]]
        trace = write(k, f"types-{a}-{b}", metadata, s=data)
        output = k.top / f"{a}-{b}.csv"
        k.kymo("export", trace, "--to=csv", "-e", "e", "-o", output)
        rows = [row.split(",") for row in output.read_text().splitlines()]
        names = [name for name in ("f", "f_label") if name in rows[0]]
        equal(len(names), 1 + ("enum" in (a, b)), f"{a}, {b}: columns")
        equal([[row[rows[0].index(name)] for name in names] for row in rows[1:]], [row[:len(names)] for row in wanted], f"{a}, {b}")


def test_repeated(k):
    """
    Two snapshots of one session of another tracer have some packets in common: each is read once,
    by babeltrace2 too. A packet of an earlier number that is later is none of them.
    """
    ident = uuid.UUID(int=7)
    metadata = TYPES + f'trace {{ major = 1; minor = 8; byte_order = le; uuid = "{ident}"; packet.header := struct {{ u32 magic; u8 uuid[16]; u8 stream_id; u8 stream_instance_id; }}; }};\nclock {{ name = c; freq = 1000; }};\n' + \
        "stream { id = 0; packet.context := struct { u32 content_size; u32 packet_size; u8 events_discarded; u64 timestamp_begin; u64 timestamp_end; u8 packet_seq_num; }; event.header := struct { u64 timestamp; }; };\n" + ONE
    def packet(number, begin):
        events = b"".join(struct.pack("<QB", begin + i, number * 10 + i) for i in range(number))
        size = (22 + 26 + len(events)) * 8
        return MAGIC + ident.bytes + bytes([0, 3]) + struct.pack("<IIBQQB", size, size, 0, begin, begin + 9, number) + events
    ring = [packet(i, 10 * i) for i in range(1, 8)]
    top = k.top / "snapshots"
    top.mkdir()
    for name, packets in (("0", ring[:4]), ("1", ring[2:5]), ("2", ring[1:7])):
        write(k, f"snapshots/{name}", metadata, s=b"".join(packets))
    check(compare(k, top), "babeltrace2 aborts")
    equal([len(view(k, top)[0]), k.kymo_json("stat", str(top))["events"]], [28, 28], "events")
    equal(run(k, CLI, "view", "--begin=0.051", top).stdout.count(b"\n"), 4 + 6 + 7, "events from a time on")
    write(k, "snapshots/3", metadata, s=packet(2, 100))
    equal(len(view(k, top)[0]), 30, "events with those of a number that began again")


def test_equal_numbers(k):
    """
    Keys are equal where numbers are: in base 10 and 16; but not if fractions differ in their
    seventh digits only.
    """
    events = "".join(f"""event {{ name = "{name}"; id = {i}; fields := struct {{
        integer {{ size = {size}; align = 8; base = {base}; }} k;
        floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; }} f; }}; }};
        """ for i, (name, size, base) in enumerate((("a", 32, 16), ("b", 64, 10))))
    head = TYPES + """trace { major = 1; minor = 8; byte_order = le; };
        clock { name = c; freq = 1000000000; };
        stream { event.header := struct {
            u8 id; integer { size = 64; align = 8; map = clock.c.value; } timestamp; }; };
        """
    body = b"".join(struct.pack("<BQIdBQQd", 0, 2 * i + 1, 100 + i, 1e6 - i / 2, 1, 2 * i + 2, 100 + i, 1e6 - i / 2) for i in range(2))
    trace = write(k, "numbers", head + events, s=body)
    equal(k.kymo_json("stat", trace, "--latency=a..b,key=k")["latency"][0]["count"], 2, "pairs")
    for by, wanted in ("k", {"100": 2, "101": 2}), ("f", {"1000000": 2, "999999.5": 2}):
        equal({g["key"]: g["events"] for g in k.kymo_json("stat", trace, f"--by={by}")["groups"]}, wanted, by)


def test_same_uuid(k):
    """Programs of several hosts may have one UUID, and number their streams alike."""
    ident = uuid.UUID(int=7)
    for host, times in (("h", (1, 5)), ("g", (3, 4))):
        metadata = TYPES + f'trace {{ major = 1; minor = 8; byte_order = le; uuid = "{ident}"; packet.header := struct {{ u32 magic; u8 uuid[16]; u8 stream_instance_id; }}; }};\nenv {{ hostname = "{host}"; }};\nclock {{ name = c; freq = 1000000000; }};\n' + \
            "stream { packet.context := struct { u8 packet_seq_num; u64 timestamp_begin; }; event.header := struct { u64 timestamp; }; };\n" + ONE
        events = b"".join(struct.pack("<QB", t, 0) for t in times)
        write(k, host, metadata, s=MAGIC + ident.bytes + struct.pack("<BBQ", 0, 0, times[0]) + events)
    lines, errors = view(k, k.top)
    equal([line.split()[2] for line in lines], [b"h", b"g", b"g", b"h"], "hosts in the order of times")
    equal(errors, "", "errors")


def test_counts(k):
    """If a counter falls and rises, its highest value counts; one that wraps continues."""
    for name, bits, values, wanted in (("falls", 64, [5, 9, 7, 9, 12, 0, 3, 12], 12), ("wraps", 8, [250, 4, 3, 4, 10], 266), ("first", 64, [40], 40)):
        context = SIZED.replace("u8 events_discarded", f"u{bits} events_discarded")
        form = "B" if bits == 8 else "Q"
        size = (4 + struct.calcsize(f"<II{form}QQ") + 1) * 8
        data = b"".join(MAGIC + struct.pack(f"<II{form}QQ", size, size, v, 10 * i, 10 * i + 5) + b"\1" for i, v in enumerate(values))
        trace = write(k, name, WITH_MAGIC + context + ONE, s=data)
        stat = k.kymo_json("stat", str(trace))
        equal((stat["events"], stat["discarded"]), (len(values), wanted), f"{name}: events, discarded")


def test_other_uuid(k):
    """
    Packets with another UUID are read if all packets have it; otherwise they are remains of another
    trace.
    """
    ids = [uuid.UUID(int=i + 1) for i in range(2)]
    metadata = TYPES + f'trace {{ major = 1; minor = 8; byte_order = le; uuid = "{ids[0]}"; packet.header := struct {{ u32 magic; u8 uuid[16]; }}; }};\n' + SIZED + ONE
    packet = [sized(0, 10 * i, 10 * i + 5, bytes([i + 1]), MAGIC + u.bytes) for i, u in enumerate(ids)]
    lines, errors = view(k, write(k, "other", metadata, a=packet[1], b=packet[1]))
    equal(len(lines), 2, "events")
    check(errors.count("\n") == 1 and "UUID" in errors, f"{errors!r}")
    lines, errors = view(k, write(k, "mixed", metadata, a=packet[0] + packet[1] + packet[0]))
    equal([line[-4:] for line in lines], [b" 1 }", b" 1 }"], "events of the trace itself")
    check("damaged" in errors, f"{errors!r}")


def test_far_clock(k):
    """Times that nanoseconds cannot express are not shown without a word."""
    for offset_s, is_beyond in ((9 * 10**9, False), (10**10, True), (-9 * 10**9, False), (-(10**10), True)):
        trace = write(k, f"far{offset_s}", BARE + f"clock {{ name = c; freq = 1000; offset_s = {offset_s}; }};\n" + ONE, s=b"\1\2")
        _, errors = view(k, trace)
        equal("times are wrong" in errors, is_beyond, f"{offset_s}: {errors}")


def test_clock_goes_on(k):
    """
    A packet without a begin time begins at the end of its predecessor; an end time before the last
    event is ignored.
    """
    context = "stream { packet.context := struct { u32 content_size; u32 packet_size; u64 timestamp_end; }; event.header := struct { integer { size = 16; align = 8; } timestamp; }; };\n"
    size = (4 + 16 + 3) * 8
    packet = lambda end, time, value: MAGIC + struct.pack("<IIQ", size, size, end) + struct.pack("<HB", time & 0xFFFF, value)
    trace = write(k, "goes-on", WITH_MAGIC + context + ONE, s=packet(0x30005, 7, 1) + packet(0x20000, 9, 2) + packet(0x50000, 10, 3))
    equal([line.split()[0] for line in view(k, trace)[0]], [b"[00:00:00.000000007]", b"[00:00:00.000196617]", b"[00:00:00.000196618]"], "times")


# -- CTF 2: babeltrace2 reads it from 2.1 on; the expected texts are those of 2.1.2

PREAMBLE = {"type": "preamble", "version": 2}


def fragments(*list_):
    return "".join("\x1e" + json.dumps(f) + "\n" for f in (PREAMBLE, {"type": "trace-class"}, *list_))


def unsigned(length, **more):
    return {"type": "fixed-length-unsigned-integer", "length": length, "byte-order": "little-endian", "alignment": 1 if length % 8 else 8, **more}


def structure(*members, **more):
    return {"type": "structure", "member-classes": [{"name": name, "field-class": c} for name, c in members], **more}


def records(*members):
    """Returns metadata of events `e` with these fields, in packets without headers."""
    return fragments({"type": "data-stream-class"}, {"type": "event-record-class", "name": "e", "payload-field-class": structure(*members)})


def here(*path):
    return {"path": list(path)}


def optional(selector, *ranges):
    return {"type": "optional", "selector-field-location": here(selector), "selector-field-ranges": list(ranges), "field-class": unsigned(8)}


def variant(*options):
    """Returns the class of a field whose option is chosen by its field t."""
    return {"type": "variant", "selector-field-location": here("t"), "options": [
        {**({"name": name} if name else {}), "selector-field-ranges": [[i, i]], "field-class": c} for i, (name, c) in enumerate(options)]}


def dynamic(location):
    return {"type": "dynamic-length-array", "length-field-location": location, "element-field-class": unsigned(8)}


BYTES = {"length": 8, "byte-order": "little-endian"}
LEB = {"type": "variable-length-unsigned-integer"}
STRING = {"type": "null-terminated-string"}

CTF2 = {
    "numbers": (records(("a", unsigned(8)), ("h", unsigned(8, **{"preferred-display-base": 16})), ("s", dict(unsigned(3), type="fixed-length-signed-integer")), ("t", unsigned(5)), ("u", unsigned(4, alignment=4)), ("v", unsigned(4, alignment=4))),
        b"\1\xff\x17\x32", [b"e: { a = 1, h = 0xFF, s = -1, t = 2, u = 2, v = 3 }"]),
    "big-endian": (records(("a", unsigned(12, **{"byte-order": "big-endian"})), ("b", unsigned(4, **{"byte-order": "big-endian"}))), b"\x12\x34", [b"e: { a = 291, b = 4 }"]),
    "bits": (records(("t", {"type": "fixed-length-boolean", **BYTES}), ("b", {"type": "fixed-length-bit-array", **BYTES}),
        ("m", {"type": "fixed-length-bit-map", **BYTES, "flags": {"A": [[0, 0]], "B": [[1, 2]], "C": [[7, 7]]}})), b"\1\x0f\x07\0\x05\x08",
        [b'e: { t = true, b = 0xF, m = 0x7 { "A", "B" } }', b"e: { t = false, b = 0x5, m = 0x8 }"]),
    "labels": (records(("b", unsigned(8, mappings={"x": [[0, 3]], "y y": [[5, 5], [9, 9]]})), ("c", dict(unsigned(8, mappings={"n": [[-3, -1]]}), type="fixed-length-signed-integer"))),
        b"\0\xff\x09\xfd\x0a\5", [b'e: { b = ( "x" : container = 0 ), c = ( "n" : container = -1 ) }', b'e: { b = ( "y y" : container = 9 ), c = ( "n" : container = -3 ) }',
            b"e: { b = ( <unknown> : container = 10 ), c = ( <unknown> : container = 5 ) }"]),
    "leb128": (records(("u", LEB), ("s", {"type": "variable-length-signed-integer"})), b"\x05\x7f\x80\x01\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x3f",
        [b"e: { u = 5, s = -1 }", b"e: { u = 128, s = -128 }", b"e: { u = 18446744073709551615, s = 63 }"]),
    "strings": (records(("z", STRING), ("f", {"type": "static-length-string", "length": 4}), ("n", LEB), ("d", {"type": "dynamic-length-string", "length-field-location": here("n")})),
        b"ab\0cd\0\0\3xyz", [b'e: { z = "ab", f = "cd", n = 3, d = "xyz" }']),
    **{encoding: (records(("z", dict(STRING, encoding=encoding)), ("f", {"type": "static-length-string", "length": 24, "encoding": encoding})),
        "hé\U0001f600".encode(encoding) + bytes(4 if "32" in encoding else 2) + "xyz".encode(encoding).ljust(24, b"\0"), ['e: { z = "hé\U0001f600", f = "xyz" }'.encode()])
        for encoding in ("utf-16le", "utf-16be", "utf-32le", "utf-32be")},
    "blobs": (records(("f", {"type": "static-length-blob", "length": 4}), ("n", unsigned(8)), ("d", {"type": "dynamic-length-blob", "length-field-location": here("n"), "media-type": "image/png"})),
        b"\1\2\3\xff\3xyz", [b"e: { f = { 01 02 03 ff }, n = 3, d = { 78 79 7a } }"]),
    "arrays": (records(("f", {"type": "static-length-array", "length": 2, "element-field-class": unsigned(8)}), ("n", unsigned(8)), ("s", structure(("n", unsigned(8)),
        ("x", {"type": "dynamic-length-array", "length-field-location": here("n"), "element-field-class": unsigned(8)}),
        ("y", {"type": "dynamic-length-array", "length-field-location": here(None, "n"), "element-field-class": structure(("q", unsigned(8)))})))),
        b"\1\2\2\1\x0a\x0b\x0c", [b"e: { f = [ [0] = 1, [1] = 2 ], n = 2, s = { n = 1, x = [ [0] = 10 ], y = [ [0] = { q = 11 }, [1] = { q = 12 } ] } }"]),
    "optional": (records(("f", {"type": "fixed-length-boolean", **BYTES}), ("o", {"type": "optional", "selector-field-location": here("f"), "field-class": unsigned(8)}), ("n", unsigned(8)),
        ("p", optional("n", [2, 4]))),
        b"\1\7\3\x08\0\5", [b"e: { f = true, o = { 7 }, n = 3, p = { 8 } }", b"e: { f = false, o = <none>, n = 5, p = <none> }"]),
    "selectors": (records(("n", unsigned(8)), ("p", optional("n", [1, 2**64 - 1])), ("s", dict(unsigned(8), type="fixed-length-signed-integer")), ("q", optional("s", [1, 2**64 - 1])), ("r", optional("n", [-5, 1]))),
        b"\1\7\xff\x08\2\7\5\x09", [b"e: { n = 1, p = { 7 }, s = -1, q = <none>, r = { 8 } }", b"e: { n = 2, p = { 7 }, s = 5, q = { 9 }, r = <none> }"]),
    "variant": (records(("t", unsigned(8)), ("v", {"type": "variant", "selector-field-location": {"origin": "event-record-payload", "path": ["t"]}, "options": [
        {"name": "A", "selector-field-ranges": [[0, 1]], "field-class": unsigned(8)}, {"selector-field-ranges": [[2, 2]], "field-class": STRING}]})),
        b"\0\7\2ab\0", [b"e: { t = 0, v = { 7 } }", b'e: { t = 2, v = { "ab" } }']),
    "floats": (records(("a", {"type": "fixed-length-floating-point-number", "length": 32, "byte-order": "little-endian"}), ("b", {"type": "fixed-length-floating-point-number", "length": 64, "byte-order": "big-endian"})),
        struct.pack("<f", 1.5) + struct.pack(">d", 2.25), [b"e: { a = 1.5, b = 2.25 }"]),
    "names": (records(("_a", {"type": "static-length-string", "length": 1})), b"x", [b'e: { _a = "x" }']),
    # Locations lead through arrays and options.
    "elements": (records(("a", {"type": "static-length-array", "length": 2, "element-field-class": structure(("n", unsigned(8)), ("d", dynamic({"origin": "event-record-payload", "path": ["a", "n"]})))})),
        b"\1\7\2\x08\x09", [b"e: { a = [ [0] = { n = 1, d = [ [0] = 7 ] }, [1] = { n = 2, d = [ [0] = 8, [1] = 9 ] } ] }"]),
    "in-option": (records(("f", unsigned(8)), ("o", dict(optional("f", [1, 1]), **{"field-class": structure(("n", unsigned(8)))})), ("d", dynamic(here("o", "n")))),
        b"\1\2\3\4", [b"e: { f = 1, o = { { n = 2 } }, d = [ [0] = 3, [1] = 4 ] }"]),
    "in-options": (records(("t", unsigned(8)), ("v", variant(("A", structure(("n", unsigned(8)))), ("B", structure(("x", unsigned(8)), ("n", unsigned(16)))))), ("d", dynamic(here("v", "n")))),
        b"\0\1\5\1\x09\2\0\6\7", [b"e: { t = 0, v = { { n = 1 } }, d = [ [0] = 5 ] }", b"e: { t = 1, v = { { x = 9, n = 2 } }, d = [ [0] = 6, [1] = 7 ] }"]),
}


def test_ctf2(k):
    for name, (metadata, stream, lines) in CTF2.items():
        trace = write(k, name, metadata, s=stream)
        equal(view(k, trace), (lines, ""), name)
        for line in run(k, CLI, "view", trace, "--format=json").stdout.splitlines():
            json.loads(line)
    out = run(k, CLI, "view", k.top / "optional", "--format=json").stdout.splitlines()
    equal([json.loads(line)["fields"] for line in out], [{"f": True, "o": 7, "n": 3, "p": 8}, {"f": False, "o": None, "n": 5, "p": None}], "JSON of optional fields")
    out = run(k, CLI, "view", k.top / "blobs", "--format=json").stdout
    equal(json.loads(out)["fields"], {"f": "010203ff", "n": 3, "d": "78797a"}, "JSON of blobs")


ARRAY = {"type": "static-length-array", "length": 2}
OPTIONAL2 = dict(optional("f", [1, 2]), **{"field-class": optional("f", [2, 2])})
EXPORTED = {
    "optional": (records(("f", unsigned(8)), ("o", OPTIONAL2)), b"\0\1\2\x09",
        [b"e: { f = 0, o = { o0 = [ ] } }", b"e: { f = 1, o = { o0 = [ [0] = { o0 = [ ] } ] } }", b"e: { f = 2, o = { o0 = [ [0] = { o0 = [ [0] = 9 ] } ] } }"]),
    "lengths": (records(("a", dict(ARRAY, **{"element-field-class": structure(("n", LEB), ("d", {"type": "dynamic-length-array", "length-field-location": here("n"), "element-field-class": unsigned(8)}))}))),
        b"\1\7\2\x08\x09", [b"e: { a = [ [0] = { n = 1, d = [ [0] = 7 ] }, [1] = { n = 2, d = [ [0] = 8, [1] = 9 ] } ] }"]),
    "renamed": (records(*((name, unsigned(8)) for name in ("\u00e9", "\u00e0", "a.b", "a_b", "_x", "x", "1a", "Bool"))), bytes(range(8)),
        [b"e: { __ = 0, ___1 = 1, a_b = 2, a_b_2 = 3, _x = 4, x_3 = 5, 1a = 6, Bool_4 = 7 }"]),
    "roles": (fragments({"type": "data-stream-class", "packet-context-field-class": structure(("content_size", unsigned(8)), ("cpu_id", unsigned(8)))},
        {"type": "event-record-class", "name": "e", "payload-field-class": structure(("a", unsigned(8)))}), b"\1\2\3", [b"e: { content_size_1 = 1, cpu_id = 2 }, { a = 3 }"]),
    "env": (records(("a", unsigned(8))).replace('"trace-class"', '"trace-class", "environment": {"hostname": "h", "": "z", "b c": "x", "b_c": 1}'), b"\1", [b"h e: { a = 1 }"]),
}


def test_ctf2_export(k):
    """Written as CTF 1.8, which has not all that CTF 2 has."""
    for name, (metadata, stream, lines) in (CTF2 | EXPORTED).items():
        out = k.top / f"{name}-18"
        errors = k.kymo("export", write(k, name, metadata, s=stream), "--to=ctf", "-o", out).stderr
        found = view(k, out)[0]
        equal(*((found, lines) if name in EXPORTED else (len(found), len(lines))), name)
        equal("does not allow some names" in errors, name in ("renamed", "roles", "env"), f"{name}: a line of the names")
        check(compare(k, out, found), f"{name}: babeltrace2 aborts")
    array = dict(optional("f", [1, 2]), **{"field-class": dict(ARRAY, **{"element-field-class": optional("f", [2, 2])})})
    hidden = dict(ARRAY, **{"element-field-class": structure(("f", unsigned(8)), ("o", dict(optional("f", [1, 1]), **{"field-class": structure(("n", unsigned(8)))})), ("d", dynamic(here("o", "n"))))})
    for name, field, stream, why in (("o", array, b"\1", "an array of variants"), ("d", hidden, b"\1\1\1\1\0", "")):
        refused = write(k, f"refused-{name}", records(("f", unsigned(8)), (name, field)), s=stream)
        errors = k.kymo("export", refused, "--to=ctf", "-o", k.top / f"refused-{name}-18", status=1).stderr
        check(f"cannot be written as CTF 1.8: {why}" in errors, errors)


def rows_of(k, trace):
    """Returns the fields of each event by name, of the CSV of all events `e`."""
    output = k.top / f"{trace.name}.csv"
    k.kymo("export", trace, "--to=csv", "-e", "e", "-o", output)
    with open(output, newline="") as f:
        return [{name: text for name, text in row.items() if text and name not in ("ts", "stream")} for row in csv.DictReader(f)]


def test_options(k):
    """An option without a name has the path of its variant; options of one name have one path."""
    trace = k.top / "optional-values"
    write(k, trace.name, records(("t", unsigned(8)), ("v", optional("t", [1, 9]))), s=b"\1\7\0")
    equal(rows_of(k, trace), [{"t": "1", "v": "7"}, {"t": "0"}], "an optional field")
    equal(k.kymo("view", trace, "-f", "v == 7").stdout.split("\n"), ["e: { t = 1, v = { 7 } }", ""], "its filter")
    equal(k.kymo("view", trace, "--fields=v").stdout.split("\n")[0], "e: { v = 7 }", "it alone")
    wide = unsigned(16)
    trace = write(k, "options", records(("t", unsigned(8)), ("v", variant((None, unsigned(8)), ("a", wide), (None, STRING), ("a", unsigned(8)), ("s", structure(("x", wide))),
        ("s", structure(("x", unsigned(8)), ("y", unsigned(8)))), (None, structure(("a", wide), ("z", wide)))))),
        s=b"\0\7" b"\1\1\2" b"\2ab\0" b"\3\5" b"\4\1\3" b"\5\6\7" b"\6\1\4\1\5")
    wanted = [{"v": "7"}, {"v.a": "513"}, {"v": "ab"}, {"v.a": "5"}, {"v.s.x": "769"}, {"v.s.x": "6", "v.s.y": "7"}, {"v.a": "1025", "v.z": "1281"}]
    equal(rows_of(k, trace), [{"t": str(i), **row} for i, row in enumerate(wanted)], "options")
    equal(k.kymo_json("stat", str(trace), "--hist=v.a")["hist"][0]["max"], 1025, "numbers of one path")


def test_spans(k):
    """The shown names of fields make spans, with an underscore in front of the names or without."""
    events = [(f"w:{name}_{end}", field) for name, field in (("sync", "span_tid"), ("async", "async_id")) for end in ("begin", "end")]
    text = TYPES + "trace { major = 1; minor = 8; byte_order = le; };\nstream { event.header := struct { u8 id; u32 timestamp; }; };\n"
    ctf1 = lambda prefix: text + "".join(f'event {{ name = "{name}"; id = {i}; fields := struct {{ u32 {prefix}{field}; }}; }};\n' for i, (name, field) in enumerate(events))
    header = structure(("id", unsigned(8, roles=["event-record-class-id"])), ("t", unsigned(32, roles=["default-clock-timestamp"])))
    ctf2 = fragments({"type": "clock-class", "id": "c", "frequency": 10**9},
        {"type": "data-stream-class", "id": 0, "default-clock-class-id": "c", "event-record-header-field-class": header},
        *({"type": "event-record-class", "id": i, "name": name, "payload-field-class": structure((field, unsigned(32)))} for i, (name, field) in enumerate(events)))
    stream = b"".join(struct.pack("<BII", i, 1000 * 2**i, 7) for i in range(len(events)))
    for name, metadata in (("hidden", ctf1("_")), ("plain", ctf1("")), ("ctf2", ctf2)):
        found = k.kymo_json("stat", str(write(k, f"spans-{name}", metadata, s=stream)))["spans"]
        equal(sorted((s["name"], s["async"], s["total_ns"]) for s in found), [("w:async", True, 4000), ("w:sync", False, 1000)], name)


def test_names(k):
    """Names may have the characters of paths. If two paths are equal, one is written otherwise."""
    for i, name in enumerate(("", "a.b", "a[0]", "$ctx.a", ".", "a\\b")):
        trace = write(k, f"name{i}", records((name, unsigned(8))), s=b"\1")
        equal(rows_of(k, trace), [{name: "1"}], f"CSV of {name!r}")
        if name:
            equal(k.kymo("view", trace, f"--fields={name}").stdout, f"e: {{ {name} = 1 }}\n", f"--fields={name}")
            equal(k.kymo_json("stat", str(trace), f"--by={name}")["groups"][0]["key"], "1", f"--by={name}")
    equal(k.kymo("view", k.top / "name1", "-f", "a.b == 1").stdout, "e: { a.b = 1 }\n", "a filter")
    trace = write(k, "equal-paths", records(("a.b", unsigned(8)), ("a", structure(("b", unsigned(8))))), s=b"\1\2")
    equal(rows_of(k, trace), [{"a\\.b": "1", "a.b": "2"}], "equal paths")
    equal(k.kymo("view", trace, "--fields=a.b,a\\.b,a").stdout, "e: { a.b = 2, a\\.b = 1, a = { b = 2 } }\n", "equal paths, and a structure")


def test_structures(k):
    """A structure is shown as a whole; where one value is needed, the message names a member."""
    trace = write(k, "structures", records(("s", structure(("x", structure(("y", unsigned(8)))), ("z", unsigned(8))))), s=b"\1\2")
    equal(k.kymo("view", trace, "--fields=s,s.x").stdout, "e: { s = { x = { y = 1 }, z = 2 }, s.x = { y = 1 } }\n", "text")
    equal(json.loads(k.kymo("view", trace, "--fields=s.x,s", "--format=json").stdout)["fields"], {"s.x": {"y": 1}, "s": {"x": {"y": 1}, "z": 2}}, "JSON")
    for command, status in ((["stat", trace, "--by=s"], 2), (["view", trace, "-f", "s == 1"], 0)):
        done = run(k, CLI, *command)
        check(done.returncode == status and b"'s' is a structure: name one of its members, such as 's.x.y'" in done.stderr, f"{command}: {done}")


def test_elements(k):
    """
    A path leads to the value of its element, whatever is before it and in other elements, also
    through arrays of arrays.
    """
    fields = ("u8 n; struct { string t; } before[n]; string z[2]; struct { u8 q[2]; } s[2]; u8 m[2][3]; "
        "u8 k; struct { enum : u8 { A, B } t; variant <t> { u8 A; string B; } v; u8 j; struct { u8 y; } w[j]; } o[k];")
    trace = write(k, "elements", BARE + f'event {{ name = "e"; fields := struct {{ {fields} }}; }};\n', s=
        b"\0" b"ab\0cd\0" b"\1\2\3\4" b"\1\2\3\4\5\6" b"\3" b"\0\7\0" b"\1xy\0\1\x0a" b"\0\x08\2\x0b\x0c"
        b"\2a\0b\0" b"ef\0gh\0" b"\5\6\7\x08" b"\x11\x12\x13\x14\x15\x16" b"\2" b"\1z\0\1\x0d" b"\0\x09\1\x0e"
        b"\1a\0" b"ij\0kl\0" b"\1\1\1\1" b"\0\0\0\0\0\0" b"\0")
    events = [json.loads(line)["fields"] for line in run(k, CLI, "view", trace, "--format=json").stdout.splitlines()]
    equal(len(events), 3, "events")
    for path, at, wanted in (
            ("z[0]", lambda e: e["z"][0], ["ab", "ef", "ij"]), ("z[1]", lambda e: e["z"][1], ["cd", "gh", "kl"]),
            ("before[1].t", lambda e: e["before"][1]["t"], ["b"]),
            ("s[1].q[0]", lambda e: e["s"][1]["q"][0], [3, 7, 1]), ("m[1][2]", lambda e: e["m"][1][2], [6, 22, 0]),
            ("o[0].v.A", lambda e: e["o"][0]["v"], [7]), ("o[1].v.A", lambda e: e["o"][1]["v"], [9]), ("o[2].v.A", lambda e: e["o"][2]["v"], [8]),
            ("o[1].v.B", lambda e: e["o"][1]["v"], ["xy"]), ("o[0].w[0].y", lambda e: e["o"][0]["w"][0]["y"], [13]), ("o[1].w[0].y", lambda e: e["o"][1]["w"][0]["y"], [10, 14]),
            ("o[2].w[1].y", lambda e: e["o"][2]["w"][1]["y"], [12]), ("o[0].w[1].y", lambda e: e["o"][0]["w"][1]["y"], []), ("o[3].j", lambda e: e["o"][3]["j"], [])):
        lines = k.kymo("view", trace, f"--fields={path}", "--format=json", status=None).stdout.splitlines()
        equal([json.loads(line)["fields"][path] for line in lines], wanted, path)
        for value in wanted:
            text = json.dumps(value)
            found = k.kymo("view", trace, "-f", f"{path} == {text}", "--format=json").stdout.splitlines()
            equal([at(json.loads(line)["fields"]) for line in found], [value] * wanted.count(value), f"{path} == {text}")
    for path in ("z", "m[1]", "o[0].w"):
        done = run(k, CLI, "view", trace, "-f", f"n >= 0 && {path} == 1")
        check(not done.stdout and f"'{path}' is an array: name one of its elements, such as '{path}[0]'" in done.stderr.decode(), f"{path}: {done}")
    equal(k.kymo("view", trace, "--fields=o[1],m[0]", "--tail=2").stdout.splitlines()[0], "e: { o[1] = { t = ( \"A\" : container = 0 ), v = { 9 }, j = 1, w = [ [0] = { y = 14 } ] }, m[0] = [ [0] = 17, [1] = 18, [2] = 19 ] }", "whole elements")


def test_chosen_fields(k):
    """Events that have none of the fields are left out, also of classes that have them at times."""
    array = {"type": "dynamic-length-array", "length-field-location": here("n"), "element-field-class": unsigned(8)}
    trace = write(k, "chosen", records(("t", unsigned(8)), ("v", variant(("A", unsigned(8)), ("B", unsigned(8)))), ("n", unsigned(8)), ("x", array)), s=b"\0\7\1\5" b"\1\x08\2\3\4" b"\1\x09\0")
    for fields, lines in (("v.A", ["v.A = 7"]), ("x[1]", ["x[1] = 4"]), ("v.A,x[0]", ["v.A = 7, x[0] = 5", "x[0] = 3"])):
        equal(k.kymo("view", trace, f"--fields={fields}").stdout.splitlines(), [f"e: {{ {line} }}" for line in lines], fields)
        equal(k.kymo("view", trace, f"--fields={fields}", "--format=json", "--tail=2").stdout.count("\n"), len(lines), f"{fields}: JSON")
    check("is selected" in run(k, CLI, "view", trace, "--fields=x[2]").stderr.decode(), "no event has it")


def test_nameless(k):
    """Events may have no name."""
    metadata = fragments({"type": "data-stream-class"}, {"type": "event-record-class", "payload-field-class": structure(("a", unsigned(8)))})
    trace = write(k, "nameless", metadata, s=b"\1\2")
    done = k.kymo("view", trace, "-e", "foo")
    check(not done.stdout and "no event of the trace is named 'foo'" in done.stderr, done.stderr)
    done = k.kymo("export", trace, "--to=folded", "-o", k.top / "folded", status=1)
    check("stacks" in done.stderr, done.stderr)
    k.kymo("export", trace, "--to=ctf", "-o", k.top / "ctf")
    lines, _ = view(k, trace)
    for command in (["view"], ["view", "-e", "<unknown>"], ["view", "-e", "<*"]):
        equal(k.kymo(command[0], trace, *command[1:]).stdout.encode().splitlines(), lines, f"{command}")
    equal(json.loads(k.kymo("view", trace, "--format=json", "--tail=1").stdout)["name"], "<unknown>", "JSON")
    equal(k.kymo_json("stat", str(trace))["by_name"], {"<unknown>": 2}, "stat")
    equal(view(k, k.top / "ctf")[0], lines, "the exported trace")
    equal(run(k, "babeltrace2", k.top / "ctf").stdout.splitlines(), lines, "the exported trace, by babeltrace2")


def test_ctf2_drafts(k):
    """
    Trace Compass's test traces and early tracers have drafts of CTF 2: no separators, enumerations
    as types of their own, references as arrays, clocks without identifier, labels of negative
    values in unsigned integers.
    """
    labels = {"low": [[-9, -1]], "some": [[-3, 4]], "more": [[5, 9]]}
    metadata = fragments({"type": "clock-class", "name": "k", "frequency": 1000000000},
        {"type": "data-stream-class", "default-clock-class-name": "k", "event-record-header-field-class": structure(
            ("id", dict(unsigned(8), type="fixed-length-unsigned-enumeration", mappings={"x": [[0, 9]], "y": [[10, 10]]})),
            ("v", {"type": "variant", "selector-field-location": ["event-record-header", "id"], "options": [
                {"name": "x", "selector-field-ranges": [[0, 9]], "field-class": structure(("t", unsigned(8, roles=["default-clock-timestamp"])))},
                {"name": "y", "selector-field-ranges": [[10, 10]], "field-class": structure(("t", unsigned(16, roles=["default-clock-timestamp"])))}]}))},
        {"type": "event-record-class", "name": "e", "user-attributes": {"babeltrace.org,2020": {"log-level": "info"}}, "payload-field-class": structure(
            ("n", dict(LEB, type="variable-length-unsigned-enumeration", mappings=labels)),
            ("s", {"type": "dynamic-length-string", "length-field-location": ["event-record-payload", "n"]}))})
    wanted = [b'[00:00:00.000000007] (+?.?????????) e: { n = ( "some" : container = 2 ), s = "ab" }',
        b'[00:00:00.000000513] (+0.000000506) e: { n = ( "more" : container = 5 ), s = "abcde" }']
    for name, text in (("separated", metadata), ("bare", metadata.replace("\x1e", "")), ("spaced", metadata.replace("\x1e", "\n\n "))):
        trace = write(k, name, text, s=b"\3\7\2ab" + b"\x0a\x01\x02\5abcde")
        equal(view(k, trace), (wanted, ""), name)


def test_ctf2_packets(k):
    """
    Roles, clock, aliases, contexts, environment; the text is that of the same packets described in
    CTF 1.8.
    """
    aliased = fragments({"type": "field-class-alias", "name": "u8", "field-class": unsigned(8)},
        {"type": "clock-class", "id": "k", "frequency": 1000, "offset-from-origin": {"seconds": 5, "cycles": 7}},
        {"type": "data-stream-class", "default-clock-class-id": "k", "event-record-header-field-class": structure(("x", "u8"), ("t", unsigned(8, roles=["default-clock-timestamp"]))),
            "event-record-common-context-field-class": structure(("c", "u8"))},
        {"type": "event-record-class", "name": "e", "specific-context-field-class": structure(("d", "u8"))})
    equal(view(k, write(k, "aliased", aliased, s=b"\1\2\3\4\5\x07\6\7"))[0],
        [b"[00:00:05.009000000] (+?.?????????) e: { c = 3 }, { d = 4 }", b"[00:00:05.014000000] (+0.005000000) e: { c = 6 }, { d = 7 }"], "with a clock")
    short = fragments({"type": "clock-class", "id": "k", "frequency": 1000000000},
        {"type": "data-stream-class", "default-clock-class-id": "k", "event-record-header-field-class": structure(("t", dict(LEB, roles=["default-clock-timestamp"])))},
        {"type": "event-record-class", "name": "e", "payload-field-class": structure(("a", unsigned(8)))})
    equal([line.split()[0] for line in view(k, write(k, "short-times", short, s=b"\x05\1" + b"\xe8\x07\2" + b"\3\3"))[0]],
        [b"[00:00:00.000000005]", b"[00:00:00.000001000]", b"[00:00:00.000001027]"], "times of 7, 14 and 7 bits")
    for seed in SEEDS[:len(SEEDS) // 3]:
        trace = ctf.Trace(seed)
        directory = trace.write(k.top / f"both{seed}")
        old = view(k, directory)
        (directory / "metadata").write_text(trace.metadata2())
        new = view(k, directory)
        equal(new[0], old[0], f"{directory}: as CTF 2")


def test_ctf2_roles(k):
    """Fields with a role may be in structures, a field may have two, and a payload has none."""
    number = lambda *roles: unsigned(8, roles=list(roles))
    time = number("default-clock-timestamp")
    context = structure(("size", number("packet-total-length", "packet-content-length")), ("when", structure(("t", number("default-clock-timestamp", "packet-end-default-clock-timestamp")))),
        ("counts", structure(("seq", number("packet-sequence-number")), ("lost", number("discarded-event-record-counter-snapshot")))))
    metadata = fragments({"type": "trace-class", "packet-header-field-class": structure(("n", number("data-stream-class-id", "data-stream-id")))},
        {"type": "clock-class", "id": "k", "frequency": 10**9},
        *(f for i in (3, 5) for f in ({"type": "data-stream-class", "id": i, "default-clock-class-id": "k", "packet-context-field-class": context, "event-record-header-field-class": structure(("t", time))},
            {"type": "event-record-class", "data-stream-class-id": i, "name": f"e{i}", "payload-field-class": structure(("a", time))})))
    metadata = metadata.replace('\x1e{"type": "trace-class"}\n', "", 1)
    packet = lambda n, seq, lost, begin, value: bytes([n, 56, begin, seq, lost, begin + 1, value])
    trace = write(k, "roles", metadata, one=packet(3, 0, 0, 10, 200) + packet(3, 3, 7, 20, 100), other=packet(5, 0, 0, 15, 1))
    lines, errors = view(k, trace)
    equal([re.sub(rb"^.*\.0*(\d+)\] \S+ ", rb"\1 ", line) for line in lines], [b"11 e3: { a = 200 }", b"16 e5: { a = 1 }", b"21 e3: { a = 100 }"], "events")
    check("discarded 7 events" in errors and "discarded 2 packets" in errors and "stream class ID: 3, stream ID: 3" in errors, errors)


def nested_structures(n):
    """
    Returns records with n nested structures, as text, because Python's json module is recursive.
    """
    begin, end = json.dumps(structure(("a", "@"))).split('"@"')
    return records(("a", "@")).replace('"@"', begin * n + json.dumps(unsigned(8)) + end * n)


def test_ctf2_refused(k):
    """One line names the part that cannot be read."""
    odd = lambda **more: records(("a", unsigned(8, **more)))
    for name, metadata, word in (
            ("version", fragments().replace('"version": 2', '"version": 3'), "version 3"),
            ("extension", odd(extensions={"acme": {"zip": {}}}), "'zip' of 'acme'"),
            ("fragment", fragments({"type": "novelty"}), "'novelty'"),
            ("class", records(("a", {"type": "quaternion"})), "'quaternion'"),
            ("alias", records(("a", "nobody")), "'nobody'"),
            ("bit-order", odd(**{"bit-order": "last-to-first"}), "last-to-first"),
            ("encoding", records(("a", dict(STRING, encoding="utf-7"))), "utf-7"),
            ("float", records(("a", {"type": "fixed-length-floating-point-number", "length": 16, "byte-order": "little-endian"})), "16 bits"),
            ("wide", records(("a", unsigned(65))), "64"),
            ("twice", records(("a", unsigned(8)), ("a", unsigned(8))), "twice"),
            ("nowhere", records(("a", {"type": "dynamic-length-string", "length-field-location": here("b")})), "'b'"),
            ("later", records(("a", {"type": "dynamic-length-string", "length-field-location": here("b")}), ("b", unsigned(8))), "'b'"),
            ("clock", fragments({"type": "data-stream-class", "default-clock-class-id": "none"}), "'none'"),
            ("nested", nested_structures(1300), "nested"),
            ("json", fragments() + "\x1e{ nonsense }", "metadata:3:1: "),
            ("large", fragments() + '\x1e{"type": "' + "x" * (1 << 20) + '"}', "1 MiB"),
            ("end", fragments() + "\x1e{", "no end"),
            ("preamble", fragments().split("\n", 1)[1], "preamble")):
        done = run(k, CLI, "view", write(k, name, metadata, s=b"\1"))
        check(done.returncode == 1 and done.stderr.count(b"\n") == 1 and word in done.stderr.decode(), f"{name}: {done.returncode}, {done.stderr!r}")


def hostile():
    """
    Yields small metadata and streams that could cost time or memory of the square of their size, or
    more.
    """
    wide = TYPES + "typealias integer { size = 16; align = 8; } := u16;\ntrace { byte_order = le; };\n"
    event = lambda fields: f'event {{ name = "e"; fields := struct {{ {fields} }}; }};\n'
    sizes = "stream { packet.context := struct { u16 content_size; u16 packet_size; }; };\n"
    n = 24000
    yield "references", wide + event("".join(f"u8 n{i}; u8 s{i}[n{i}]; " for i in range(3 * n))), bytes(3 * n)
    yield "labels", wide + event("enum : u16 { " + ", ".join(f"l{i}" for i in range(n)) + " } t; variant <t> { " + "".join(f"u8 l{i}; " for i in range(n)) + "} v;"), b"\xff\x30\1" * 150000
    yield "overlaps", wide + event("enum : u16 { " + ", ".join(f"l{i} = 0 ... {65535 - i % 1000}" for i in range(n)) + " } t;"), b"\1" * 100000
    yield "one-label", wide + "typealias enum : u16 { " + ", ".join("a" for _ in range(n)) + " } := E;\n" + event("E t; " + "".join(f"variant <t> {{ u8 a; }} v{i}; " for i in range(n))), b"\1"
    yield "doubled", wide + "struct s0 { u8 a; };\n" + "".join(f"struct s{i} {{ struct s{i - 1} a, b; }};\n" for i in range(1, 60)) + event("struct s59 s;"), b"\1"
    yield "empty-elements", wide + sizes + event("u16 n; struct { } x[n];"), struct.pack("<HHH", 48, 48, 65535) * n
    yield "empty-members", wide + event("u8 a; " + "".join(f"struct {{ }} x{i}; " for i in range(n))), bytes(65536)
    yield "empty-arrays", wide + event("u8 a; struct { } x" + "[1000]" * 8 + ";"), bytes(65536)
    yield "ctf2-doubled", fragments(*[{"type": "field-class-alias", "name": f"t{i}", "field-class": structure(("a", f"t{i - 1}"), ("b", f"t{i - 1}")) if i else unsigned(8)} for i in range(60)],
        {"type": "data-stream-class"}, {"type": "event-record-class", "payload-field-class": "t59"}), b"\1"
    yield "ctf2-locations", fragments({"type": "field-class-alias", "name": "v", "field-class": variant(*(("", structure(("n", unsigned(8)))) for _ in range(n // 6)))}, {"type": "data-stream-class"},
        {"type": "event-record-class", "payload-field-class": structure(("t", unsigned(16)), ("v", "v"), *((f"d{i}", dynamic(here("v", "n"))) for i in range(n // 6)))}), b"\1"
    yield "ctf2-deep", fragments() + '\x1e{"a": ' + "[" * 100000, b"\1"
    yield "damage", wide.replace("byte_order = le;", "byte_order = le; packet.header := struct { u32 magic; };") + sizes + event("u8 a;"), (MAGIC + struct.pack("<HH", 9, 1)) * 100000


def test_hostile(k):
    """
    Whatever a small trace claims, reading it needs little memory, and ends (the time limit is for a
    loaded machine).
    """
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
        if not kymotest.SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))
    for name, metadata, stream in hostile():
        trace = write(k, name, metadata, s=stream)
        for command, *options in (["view"], ["stat"], ["export", "--to=ctf", "-o", str(k.top / f"{name}-export")]):
            with open(k.top / "out", "wb") as out:
                done = subprocess.run([CLI, command, str(trace), *options], env=k.env, stdout=out, stderr=subprocess.PIPE, timeout=TIMEOUT, preexec_fn=limit)
            check(done.returncode in (0, 1) and done.stderr.count(b"\n") < 20, f"{command} {name}: {done.returncode}, {done.stderr[:500]!r}")
            check(os.stat(k.top / "out").st_size < 64 << 20, f"{command} {name} writes {os.stat(k.top / 'out').st_size} bytes")


def damage(rng, data):
    """Returns the bytes with one to three faults: changed, removed, repeated or inserted ones."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 3]) if data else 0):
        at, n = rng.randrange(len(data) or 1), rng.choice([1, 4, 8, 30])
        fault = rng.choice(["flip", "set", "cut", "remove", "insert", "ones"])
        if fault == "flip" and data:
            data[at] ^= 1 << rng.randrange(8)
        elif fault == "set" and data:
            data[at] = rng.choice([0, 127, 128, 255])
        elif fault == "cut":
            del data[at:]
        elif fault == "remove":
            del data[at:at + n]
        elif fault == "insert":
            data[at:at] = data[max(0, at - n):at] or b"\0"
        elif fault == "ones":
            data[at:at + 8] = b"\xff" * 8
    return bytes(data)


COMMANDS = (["view"], ["view", "--format=json"], ["stat"], ["view", "--begin=+0.1", "--tail=5"], ["view", "-f", "f1 > 3"])


def test_damaged_anywhere(k):
    """
    Whatever bytes of a trace are damaged, commands end, with few lines of errors; and with one that
    says why if nothing could be read.
    """
    for seed in SEEDS[:len(SEEDS) // 4]:
        rng, trace = random.Random(seed), ctf.Trace(seed)
        directory = trace.write(k.top / f"damaged{seed}")
        if rng.random() < 0.3:
            (directory / "metadata").write_text(trace.metadata2())
        file = rng.choice(sorted(directory.iterdir()))
        file.write_bytes(damage(rng, file.read_bytes()))
        command, *options = rng.choice(COMMANDS)
        done = run(k, CLI, command, directory, *options)
        lines = done.stderr.count(b"\n")
        check(done.returncode in (0, 1) and (lines == 1 if done.returncode else lines < 20),
            f"{directory}: {command} {options}: {done.returncode}, {done.stderr[-500:]!r}")


def test_holes(k):
    """The search for a packet reads no hole of a file, however long it is."""
    size = 1 << 40
    packet = MAGIC + b"\7"
    trace = write(k, "hole", WITH_MAGIC + ONE, s=b"no packet")
    with (trace / "s").open("r+b") as f:
        f.truncate(size)
        try:
            os.lseek(f.fileno(), 1 << 30, os.SEEK_DATA)
            raise kymotest.Skip("this file system has no holes")
        except OSError:
            pass
        f.seek(size - 2 * len(packet))
        f.write(packet * 2)
    done = run(k, "timeout", 60, CLI, "view", trace, "--tail=1")
    check(done.stdout == b"e: { a = 7 }\n" and b"damaged in 1 place" in done.stderr, done)


def test_limits(k):
    """
    Records and metadata beyond a limit are refused because of the limit, before they exhaust
    anything.
    """
    bits = TYPES + "trace { byte_order = le; };\n"
    event = lambda fields: f'event {{ name = "e"; fields := struct {{ {fields} }}; }};\n'
    for name, metadata, stream in (
            ("values", bits + event("u64 n; struct { integer { size = 1; align = 1; } b; } x[n];"), struct.pack("<Q", 16 << 20) + bytes(2 << 20)),
            ("numbers", bits + event("u64 n; u64 x[n];"), struct.pack("<QQ", (1 << 58) + 1, 7)),
            ("text", bits + event("u64 n; integer { size = 8; align = 8; encoding = UTF8; } x[n];"), struct.pack("<QQ", (1 << 61) + 1, 7))):
        done = run(k, CLI, "view", write(k, name, metadata, s=stream))
        check(not done.stdout and b"damaged" in done.stderr, f"{name}: {done.returncode}, {done.stdout[:200]!r}, {done.stderr!r}")
    trace = write(k, "metadata", "", s=b"\1")
    os.truncate(trace / "metadata", (256 << 20) + 1)
    done = run(k, CLI, "view", trace)
    check(done.returncode == 1 and b"too large" in done.stderr, f"metadata: {done.returncode}, {done.stderr!r}")


if __name__ == "__main__":
    kymotest.main()
