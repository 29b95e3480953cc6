#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
All kinds of fields are read back with equal values, also extreme ones. An event larger than a
sub-buffer is counted as discarded, never truncated.
"""

import math
import struct

import kymotest
from kymotest import check, check_counts, equal, fields, packets, streams, wait_for

FLT_MAX, DBL_MAX, DBL_MIN = 3.4028234663852886e38, 1.7976931348623157e308, 5e-324
STATES = [("IDLE", 0), ("ENDED", -1), ("BUSY", 12), ('a "quoted" label', 20), (None, 999)]
WORDS = ["", "ein", "a much longer word than fits in a few bytes", "ü"]
I64S = [-(1 << 63), -1, 0, (1 << 63) - 1]

WANTED = {
    "least": {"a": -128, "b": -(1 << 15), "c": -(1 << 31), "d": -(1 << 63), "e": 0, "f": 0, "g": 0, "h": 0},
    "greatest": {"a": 127, "b": (1 << 15) - 1, "c": (1 << 31) - 1, "d": (1 << 63) - 1, "e": 255, "f": (1 << 16) - 1,
        "g": (1 << 32) - 1, "h": (1 << 64) - 1},
    "hex": {"a": 0xAB, "b": 0xABCD, "c": 0xDEADBEEF, "d": (1 << 64) - 1, "e": 0x1234},
    "network": {"a": 80, "b": 0x7F000001, "c": 1, "d": 0xBEEF, "e": 0xDEADBEEF, "f": 0x0102030405060708},
    "bools": {"a": 0, "b": 1, "c": 1},
    "enums": {"a": ("IDLE", 0), "b": ("ENDED", -1), "c": ("BUSY", 15), "d": ('a "quoted" label', 20), "e": (None, 77),
        "f": ("ENDED", -1), "g": ("TOP", (1 << 64) - 1), "h": ("LOW", 3), "i": ("BUSY", 11)},
    "strings": {"empty": "", "null": "(null)", "utf8": "Grüße, Москва, 日本語, \U0001f600",
        "special": "tab\tnewline\nquote\"backslash\\alert\a", "last": "end"},
    "texts": {"full": "four", "partial": "ab", "_sequence_length": 8, "sequence": "any text", "_none_length": 0, "none": "",
        "_blob_length": 4, "blob": [0, 1, 2, 255], "_no_blob_length": 0, "no_blob": []},
    "arrays": {"a": [-128, -1, 0, 127], "b": I64S, "c": [0, 1, (1 << 64) - 1], "d": [-0.0, DBL_MAX, DBL_MIN], "e": WORDS, "f": STATES},
    "sequences": {"_a_length": 4, "a": [-128, -1, 0, 127], "_b_length": 4, "b": I64S, "_c_length": 3, "c": [0, 1, (1 << 64) - 1],
        "_d_length": 3, "d": [-0.0, DBL_MAX, DBL_MIN], "_e_length": 4, "e": WORDS, "_f_length": 5, "f": STATES},
    "no_elements": {"_a_length": 0, "a": [], "_b_length": 0, "b": [], "_c_length": 0, "c": [], "_d_length": 0, "d": [], "mark": 7},
    "none": {},
    "many": {**{f"f{n}": n for n in range(31)}, "f31": "last"},
    "long_text": {"text": "y" * 65536, "_blob_length": 32768, "blob": [ord("y")] * 32768, "mark": 7},
    "floats": {"a": 1.5, "b": FLT_MAX, "c": -0.0, "d": 0.1, "e": DBL_MAX, "f": DBL_MIN, "g": -0.0},
    "not_numbers": {"a": math.nan, "b": math.inf, "c": -math.inf, "d": math.nan, "e": math.inf, "f": -math.inf},
}


def same(got, wanted):
    """
    Returns true if both are equal; floating point up to the digits that babeltrace2 prints, with
    NaN and the sign of zero.
    """
    if isinstance(wanted, float):
        if math.isnan(wanted):
            return isinstance(got, float) and math.isnan(got)
        return math.isclose(got, wanted, rel_tol=1e-5) and math.copysign(1, float(got)) == math.copysign(1, wanted)
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(map(same, got, wanted))
    return got == wanted


def record_fields(k, *args, channel=("--subbuf-size=1M",)):
    k.start_daemon()
    trace = k.record("fields:*", channel=channel)
    k.app("fields", *args)
    k.kymo("stop", "s")
    return trace


def check_floats_exact(trace):
    """Readers print floating point rounded: checks that the value in the file is exact."""
    data = b"".join(p.payload for path in streams(trace) for p in packets(path))
    floats = struct.pack("<fffdddd", 1.5, FLT_MAX, -0.0, 0.1, DBL_MAX, DBL_MIN, -0.0)
    equal(data.count(floats), 1, "the bytes of fields:floats in the trace")


def test_kinds(k):
    trace = record_fields(k)
    events = check_counts(k, trace, len(WANTED) + 5)
    seen = {}
    for event in events:
        name = event.name.removeprefix("fields:")
        got = fields(event)
        if name == "near_limit":
            equal((got["text"], got["mark"]), ("x" * got["n"], 7), "a string near the limit of short ones")
            continue
        seen[name] = got
        wanted = WANTED[name]
        equal(list(got), list(wanted), f"fields of {name}, in order")
        for field, value in wanted.items():
            check(same(got[field], value), f"{name}.{field}: got {got[field]!r}, wanted {value!r}")
    equal(set(seen), set(WANTED), "events in the trace")
    check_floats_exact(trace)


def test_too_big(k):
    trace = record_fields(k, "too-big", channel=("--subbuf-size=16K", "--num-subbuf=2"))
    events = check_counts(k, trace, 20)
    equal([fields(e) for e in events], [{"i": n} for n in range(10)], "events in the trace: only those that fit")
    status = k.kymo_json("status", "s")
    equal(status["session"]["discarded_too_big"], 10, "events that status counts as too big")


def test_changing_text(k):
    """
    A text that changes while it is recorded ends early or has a '#', and never continues into the
    next field.
    """
    k.start_daemon()
    trace = k.record("changing:*", channel=("--subbuf-size=4M",))
    n = int(k.app("changing", 5000))
    k.kymo("stop", "s")
    events = check_counts(k, trace, n)
    seen = [fields(e) for e in events]
    check(all(f["number"] == f["again"] for f in seen), "numbers around the texts")
    for f in seen:
        check(set(f["brief"]) <= {"b", "#"} and len(f["brief"]) <= 31, f"not a text that was ever there: {f['brief']!r}")
        check(set(f["lengthy"]) <= {"l", "#"} and len(f["lengthy"]) <= 399, f"not a text that was ever there: {f['lengthy']!r}")
    check(any(f["brief"] != "b" * 31 for f in seen), "the texts never changed: nothing was tested")


LARGE = """
#include <kymo/tracepoint.h>
#define LABEL "%s"
KYMO_ENUM(huge, %s)
int main(void)
{
	for (int i = 0; i < 100; i++) {
		kymo_event(huge, described, kymo_i32(i, i));
		kymo_event(huge, labels, kymo_enum(e, huge, i));
	}
	return 0;
}
"""


def test_description_that_is_too_large(k):
    """
    An event whose description does not fit into a message is reported, and counted as discarded.
    """
    labels = ", ".join(f'KYMO_VALUE(LABEL "{i}", {i})' for i in range(40))
    (k.top / "huge.c").write_text(LARGE % ("x" * 2000, labels))
    app = k.top / "huge"
    k.run(["gcc", f"-I{kymotest.SOURCE / 'include'}", "-D_GNU_SOURCE", "-o", app, k.top / "huge.c"])
    k.start_daemon()
    out = k.record("huge:*")
    k.run([app])
    warnings = k.request(command="status")["warnings"]
    check(any("huge:labels" in w and "64,512 bytes" in w for w in warnings), f"warnings: {warnings}")
    wait_for(lambda: any("100 events" in w and "description is too large" in w for w in k.request(command="status")["warnings"]),
        "the reason of the loss in a warning")
    k.kymo("destroy")
    check_counts(k, out, 200)


kymotest.main()
