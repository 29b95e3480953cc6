#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The Python module over libkymo-reader: rows, numpy columns, spans, latencies, SQL, against what kymo
view prints and slow models.
"""

import collections
import concurrent.futures
import ctypes
import gc
import pathlib
import random
import shutil
import struct
import sys
import threading

import answers
import kymotest
from kymotest import BUILD, SOURCE, check, equal, rounds

MODULE = SOURCE / "src" / "python"
LIBRARIES = [BUILD / "src" / "analysis" / "libkymo-reader.so.0", BUILD / "src" / "sql" / "libkymo-sqlite.so"]


ENVIRONMENT = {"PYTHONPATH": str(MODULE), "LD_LIBRARY_PATH": ":".join(str(p.parent) for p in LIBRARIES), "PYTHONDONTWRITEBYTECODE": "1"}


def module():
    """Imports the module, with the libraries of the build."""
    for path in LIBRARIES:
        if path.exists():
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    sys.path.insert(0, str(MODULE))
    sys.dont_write_bytecode = True
    import kymo

    return kymo


kymo = module()


def need_sql():
    if not LIBRARIES[1].exists():
        raise kymotest.Skip("this build has no SQLite (libsqlite3-dev)")


def raises(what, text, function):
    try:
        function()
    except what as e:
        check(text in str(e), f"{e!r}, wanted {text!r}")
        return
    raise kymotest.Failure(f"no error, wanted {text!r}")


def test_events(k):
    """Hostile names and values come out unchanged."""
    t = kymo.open(answers.hostile(k.top / "trace"))
    name = "a:\"quoted' name\""
    rows = list(t.events(name, "huge", "low", "text"))
    wanted = [(2**64 - 1 - n, -(2**63) + n, text) for n, text in enumerate(answers.HOSTILE_TEXTS)]
    wanted += [(v, -(2**53) - 1, "x") for v in (2**53 + 1, 2**63 - 1, 2**63, 0)]
    equal(rows, wanted, "integers and texts")
    equal(list(t.events("a:*bytes", "Text", "text", "none"))[0], (answers.BAD_BYTES.decode("utf-8", "surrogateescape"), "second", None), "bytes")
    equal([repr(v) for (v,) in t.events("a:new*", "real")], ["0.1", "-0.0", "inf", "nan", "1e+300"], "real numbers")
    equal(list(t.events("events", "state", "ts", "ts_", "pid", "process", "thread", "cpu", "stream"))[0],
        ("zero", answers.START + 1180, 7, 8, 100, 101, 0, 0), "labels, names in use")
    equal(sum(1 for _ in t.events()), 24, "events")
    equal(len(list(t.events(begin=answers.START + 1020, end=answers.START + 1030))), 2, "times")
    equal(list(t.events(None, "n", filter="n == 3")), [(3,)], "a filter")
    equal(list(t.events("none", "x")), [], "no such event")
    equal((t.begin, t.end, t.discarded), (answers.START + 1010, answers.START + 1240, 0), "totals")
    equal((t.classes[4].name, t.classes[4].fields[-1]), ("EVENTS", "n"), "classes")
    mixed = list(t.events("EVENTS,sqlite_master,a:empty", "name", "n", "select"))
    equal(mixed, [("EVENTS", 3, None), ("sqlite_master", None, 4), ("a:empty", None, None)], "fields that some events lack")


def test_mixed_numbers(k):
    """Integers of both signs are exact, also beside floating-point numbers."""
    trace = k.top / "mixed"
    trace.mkdir()
    (trace / "metadata").write_text("/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };"
        " stream { event.header := struct { integer { size = 8; align = 8; } id; }; };" +
        "".join(f' event {{ name = "e"; id = {i}; fields := struct {{ {kind} f; }}; }};' for i, kind in enumerate(("integer { size = 64; align = 8; }",
            "integer { size = 64; align = 8; signed = 1; }", "floating_point { exp_dig = 11; mant_dig = 53; align = 8; }"))))
    values = [2**53 + 1, 2**64 - 1, -(2**63), 2**63 - 1, 0.5, 3.0]
    (trace / "s").write_bytes(b"".join(struct.pack("<B" + "QQqqdd"[i], i // 2, value) for i, value in enumerate(values)))
    equal([repr(v) for (v,) in kymo.open(trace).events("e", "f")], [repr(v) for v in values], "values")


def test_many(k):
    """Batches follow each other without a gap, and all rows equal those of kymo view."""
    t = answers.Trace({"a:n": [("u32", "n")], "a:text": [("string", "s")]})
    for first in range(0, 20000, 1000):
        t.packet(0, [t.record(n, "a:n", n) if n % 3 else t.record(n, "a:text", f"text {n}") for n in range(first, first + 1000)])
    trace = t.write(k.top / "trace")
    rows = list(kymo.open(trace).events(None, "ts", "n", "s"))
    equal(rows, [(answers.START + n, n if n % 3 else None, None if n % 3 else f"text {n}") for n in range(20000)], "rows")


def test_spans(k):
    rng = random.Random()
    for number in rounds():
        events = answers.random_spans(rng, k.top / f"trace{number}")
        t = kymo.open(k.top / f"trace{number}")
        wanted = [kymo.Span(*s[:8], bool(s.async_), s.id) for s in answers.spans_of(events)]
        equal(list(t.spans()), wanted, "spans")
        only = [e for e in events if e[1].startswith("s:inner_")]
        equal([(s.ts, s.dur, s.name) for s in t.spans("s:inner")], [s[:2] + (s.name,) for s in answers.spans_of(only)], "spans of a name")


def latencies(events, begins, ends, key, order):
    """A slow model of latencies without losses."""
    found, waiting = [], collections.defaultdict(list)
    for time, name, fields, _, _ in events:
        if name == ends and waiting[fields[key]]:
            begin = waiting[fields[key]].pop(0 if order == "fifo" else -1)
            found.append((begin, time - begin, str(fields[key])))
        if name == begins:
            waiting[fields[key]].append(time)
    return found


def test_latency(k):
    rng = random.Random()
    for number in rounds():
        events = answers.random_spans(rng, k.top / f"trace{number}")
        t = kymo.open(k.top / f"trace{number}")
        for order in ("nest", "fifo"):
            equal(list(t.latency("s:req", "s:done", key="id", order=order)), latencies(events, "s:req", "s:done", "id", order), order)
        equal(list(t.latency("s:req", "s:req", key="id")), latencies(events, "s:req", "s:req", "id", "nest"), "to the next")
    raises(kymo.Error, "no event 'a:b'", lambda: list(t.latency("a:b", "s:done")))
    raises(kymo.Error, "field or context 'none'", lambda: list(t.latency("s:req", "s:done", key="none")))


def test_sql(k):
    need_sql()
    t = kymo.open(answers.hostile(k.top / "trace"))
    statement = "SELECT count(*), min(ts) FROM events WHERE ts > ?"
    equal(t.sql(statement, (answers.START + 1010,)).fetchall(), [(23, answers.START + 1020)], "a statement")
    name = t.sql("SELECT name FROM classes WHERE name GLOB '*bytes'").fetchone()[0]
    equal(name, b"a:\xff\xfe bytes".decode("utf-8", "surrogateescape"), "a name that is no UTF-8")
    raises(kymo.Error, "no such table: none", lambda: t.sql("SELECT * FROM none"))
    t.sql("CREATE TEMP TABLE mine AS SELECT ts FROM events")
    equal(t.sql("SELECT count(*) FROM mine").fetchone(), (24,), "a table of its own")
    t.close()
    raises(kymo.Error, "closed", lambda: t.sql("SELECT 1"))


def test_sql_in_threads(k):
    """All threads use one database; it follows a refresh."""
    need_sql()
    t, grow = growing(k.top / "trace")
    count = lambda: t.sql("SELECT count(*) FROM events").fetchone()[0]
    equal(count(), 1, "a thread's events")
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        equal(thread.submit(count).result(), 1, "another thread's")
        grow()
        t.refresh()
        equal((count(), thread.submit(count).result()), (2, 2), "after a refresh")
        thread.submit(t.close).result()
    raises(kymo.Error, "closed", count)


def test_sql_many(k):
    """More traces than a function of SQLite has arguments; a name that is no UTF-8."""
    need_sql()
    one = answers.Trace({"a:n": [("u32", "n")]})
    one.packet(0, [one.record(10, "a:n", 1)])
    paths = [one.write(k.top / f"trace{n}\udcff") for n in range(128)]
    equal(kymo.open(*paths).sql("SELECT count(*) FROM events").fetchone(), (128,), "events")


def test_lifetime(k):
    """An iteration keeps what it reads; a closed trace is an error, not a crash."""
    answers.random_spans(random.Random(1), k.top / "trace", 20000)
    with kymo.open(k.top / "trace") as t:
        events, spans, columns = t.events(), t.spans(), t.query(None, (), None, None, None)
        first = next(events), next(spans)
    gc.collect()
    equal(len(list(events)), 19999, "events behind the end of the trace")
    check(len(list(spans)) > 1000 and first and columns, "spans behind the end of the trace")
    raises(kymo.Error, "closed", lambda: next(t.events()))
    for what in ("discarded", "begin"):
        raises(kymo.Error, "closed", lambda: getattr(t, what))
    t.close()


def growing(path):
    """Returns a trace of one event, and a function that adds an event of a new class."""
    first, late = (answers.Trace({name: [("u32", "n")] for name in names}) for names in (["a:n"], ["a:n", "a:late"]))
    first.packet(0, [first.record(10, "a:n", 1)])
    late.packet(0, [late.record(20, "a:late", 2)])
    first.write(path)

    def grow():
        (path / "metadata").write_bytes(late.metadata())
        with (path / "channel0_0").open("ab") as f:
            f.write(late.streams[0][0])

    return kymo.open(path), grow


def test_refresh(k):
    t, grow = growing(k.top / "trace")
    rows = t.events(None, "name", "n")
    equal((next(rows), t.refresh()), (("a:n", 1), False), "before")
    grow()
    equal((t.refresh(), list(rows)), (True, [("a:late", 2)]), "an iteration goes on with a new class")
    equal([c.name for c in t.classes], ["a:n", "a:late"], "classes")


def test_refresh_of_overlapping_directories(k):
    """A trace that appears below two of the opened directories is read once."""
    one = answers.Trace({"a:n": [("u32", "n")]})
    one.packet(0, [one.record(10, "a:n", 1)])
    one.write(k.top / "all/part/first")
    t = kymo.open(k.top / "all", k.top / "all/part")
    one.write(k.top / "all/part/second")
    equal((t.refresh(), list(t.events(None, "n"))), (True, [(1,), (1,)]), "events")
    t.close()


class Watched:
    """The library. `during` is called while the first batch is read, and `calls` are its calls."""

    def __init__(self, during):
        self.library, self.during, self.calls = kymo.LIB, during, []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name == "kymo_cursor_next" and self.during:
                during, self.during = self.during, None
                during(self.calls)
            return getattr(self.library, name)(*arguments)

        return call


def test_refresh_in_threads(k):
    """A refresh waits until other threads have left the reader; later ones wait for the refresh."""
    t, grow = growing(k.top / "trace")
    threads = [threading.Thread(target=t.refresh), threading.Thread(target=lambda: t.discarded)]

    def during(calls):
        threads[0].start()
        kymotest.wait_for(lambda: "kymo_reader_refresh" in calls or t.reader.gate.owner, "the refresh")
        threads[1].start()
        raises(kymo.Error, "bad pattern", lambda: list(t.events(",")))
        equal([name for name in calls if "kymo_reader" in name], [], "calls while a batch is read")

    kymo.LIB = Watched(during)
    try:
        rows = list(t.events(None, "n"))
        for thread in threads:
            thread.join()
        calls = [name for name in kymo.LIB.calls if name in ("kymo_cursor_next", "kymo_reader_refresh", "kymo_reader_get_totals")]
    finally:
        kymo.LIB = kymo.LIB.library
    equal(rows, [(1,)], "rows")
    equal(calls[:2], ["kymo_cursor_next", "kymo_reader_refresh"], "order of calls")


def test_refresh_is_fair(k):
    """A thread that waits for a refresh uses the reader before the next one."""
    gate, order = kymo.Gate(), []

    def share():
        with gate.shared():
            order.append("shared")

    thread = threading.Thread(target=share)
    with gate.alone():
        thread.start()
        kymotest.wait_for(lambda: gate.n_waiting, "the thread")
    with gate.alone():
        order.append("alone")
    thread.join()
    equal(order, ["shared", "alone"], "order")


def test_losses(k):
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(10, "s:outer_begin", 1, 0)])
    t.packet(0, [t.record(100, "s:outer_end", 1, 0)], discarded=5, begin=90, end=110)
    path = t.write(k.top / "trace")
    opened = kymo.open(path)
    equal((opened.discarded, list(opened.spans()), opened.warnings), (5, [], []), "losses")
    with (path / "channel0_0").open("r+b") as f:
        f.truncate(len(t.streams[0][0]) + 50)
    opened = kymo.open(path)
    equal(len(list(opened.events())), 1, "events of a file that is cut")
    check(any("ends within a packet" in w for w in opened.warnings), opened.warnings)


def test_damaged_heads(k):
    """Totals and tables have the packets behind a damaged head, whose events are read, too."""
    t = answers.Trace(answers.SPAN_EVENTS)
    for number in range(4):
        t.packet(0, [t.record(100 * number + 1, "s:outer_begin", 1, 0)], discarded=number * number)
    path = t.write(k.top / "trace")
    data = (path / "channel0_0").read_bytes()
    size = len(data) // 4
    sizes = 4 + 16 + 4 + 8 * 3
    more = next(1 << bit for bit in range(3, 8) if not data[sizes] & 1 << bit)
    # Another magic number; a size beyond the file; one that ends within the next packet.
    for number, place, change in ((n, *c) for n in range(4) for c in ((0, 0x55), (sizes + 6, 0x55), (sizes, more))):
        if number == 3 and place:
            continue  # this is a file that was cut off
        what = f"head {number}, byte {place}"
        bad = bytearray(data)
        bad[number * size + place] ^= change
        (path / "channel0_0").write_bytes(bad)
        opened = kymo.open(path)
        whole = [n for n in range(4) if n != number or change == more]
        is_cut = place > 0  # the packet is read up to the next head
        times = [answers.START + 100 * n + 1 for n in range(4) if is_cut or n != number]
        equal([ts for ts, in opened.events(None, "ts")], times, f"{what}: events")
        totals = opened.totals
        equal((totals.n_packets, opened.discarded, opened.end), (3 + is_cut, whole[-1] ** 2, times[-1]), f"{what}: totals")
        equal(opened.begin, times[0], f"{what}: begin")
        if LIBRARIES[1].exists():
            equal([ts for ts, in opened.sql("SELECT ts FROM events")], times, f"{what}: events in SQL")
            equal([offset for offset, in opened.sql("SELECT offset FROM packets")], [n * size for n in whole], f"{what}: packets in SQL")


def test_errors(k):
    trace = answers.hostile(k.top / "trace")
    raises(kymo.Error, "No such file", lambda: kymo.open(k.top / "missing"))
    raises(kymo.Error, "no trace is named", kymo.open)
    t = kymo.open(trace)
    check(f"kymo.open('{trace}')" in repr(t) and "n_traces=1" in repr(t.totals), f"in an interactive Python: {t!r}, {t.totals!r}")
    raises(kymo.Error, "character 6", lambda: list(t.events(filter="n == ")))
    raises(kymo.Error, "bad pattern", lambda: list(t.events(",", "x")))
    raises(kymo.Error, "column", lambda: list(t.events(None, "")))
    for begin, end, n in ((2**70, None, 0), (-(2**70), 2**70, 24), (None, -(2**70), 0)):
        equal(len(list(t.events(begin=begin, end=end))), n, f"events from {begin} to {end}")
    for begin in ("x", 1.5):
        raises(TypeError, "integer", lambda begin=begin: list(t.events(begin=begin)))
    for function in (lambda: kymo.open(f"{trace}\0x"), lambda: list(t.events("a:*\0x")), lambda: list(t.events(filter="n == 3\0x")),
            lambda: list(t.events(None, "n\0x")), lambda: list(t.latency("a:b", "c:d\0"))):
        raises(kymo.Error, "a NUL in", function)
    answers.Trace(answers.SPAN_EVENTS).write(k.top / "empty")
    t = kymo.open(k.top / "empty")
    equal((list(t.events()), list(t.spans()), t.begin, t.discarded), ([], [], None, 0), "an empty trace")


COMMA = """comment_char %
escape_char /
LC_NUMERIC
decimal_point ","
thousands_sep ""
grouping -1
END LC_NUMERIC
"""
IN_LOCALE = """
import locale, sys, kymo
locale.setlocale(locale.LC_NUMERIC, "comma")
t = kymo.open(sys.argv[1])
print(locale.str(0.5), list(t.events("a", "n", filter="real > 1.25")), list(t.events("a", "list")))
"""


def test_locale(k):
    """A program's locale changes neither the numbers in filters nor those in texts."""
    if not shutil.which("localedef"):
        raise kymotest.Skip("localedef is missing (Debian package libc-bin)")
    (k.top / "comma.txt").write_text(COMMA)
    k.run(["localedef", "-c", "-i", k.top / "comma.txt", "-f", "ANSI_X3.4-1968", k.top / "comma"], status=None)
    t = answers.Trace({"a": [("u32", "n"), ("f64", "real"), ("f64", "list[1]")]})
    t.packet(0, [t.record(n, "a", n, n + 0.5, (n + 1) * 1.5e-05) for n in range(3)])
    done = k.run([sys.executable, "-c", IN_LOCALE, t.write(k.top / "trace")], env={**ENVIRONMENT, "LOCPATH": k.top})
    equal(done.stdout, "0,5 [(1,), (2,)] [('[ [0] = 1.5e-05 ]',), ('[ [0] = 3e-05 ]',), ('[ [0] = 4.5e-05 ]',)]\n", "numbers")


NUMPY = """
import json, sys
import numpy, kymo
t = kymo.open(sys.argv[1])
c = t.columns("a:*,events", "ts", "huge", "low", "real", "text", "name", "thread", "cpu")
assert all(len(v) == 22 for v in c.values()), {k: len(v) for k, v in c.items()}
types = {"ts": "int64", "huge": "uint64", "low": "int64", "real": "float64"}
assert all(c[name].dtype == kind for name, kind in types.items())
assert numpy.ma.getmaskarray(c["huge"]).sum() == 11 and numpy.ma.getmaskarray(c["real"]).sum() == 17
assert list(c["thread"]) == [101] * 22 and not numpy.ma.isMaskedArray(c["cpu"])
rows = list(t.events("a:*,events", "ts", "huge", "low", "real", "text", "name", "thread", "cpu"))
for i, name in enumerate(c):
    for row, value in zip(rows, c[name].tolist()):
        assert row[i] == value or row[i] != row[i], (name, row[i], value)
assert t.columns("none", "ts", "text")["ts"].dtype == "int64"
views = [(b["ts"] - t.begin).sum() for b in t.batches(None, "ts")]
print(sum(int(v) for v in views) == sum(ts - t.begin for ts, in t.events(None, "ts")))
"""


def test_numpy(k):
    pythons = [p for p in (sys.executable, shutil.which("python3"), "/usr/bin/python3") if p and pathlib.Path(p).exists()]
    python = next((p for p in pythons if not k.run([p, "-c", "import numpy"], status=None).returncode), None)
    if not python:
        raise kymotest.Skip("numpy is missing (Debian package python3-numpy)")
    done = k.run([python, "-c", NUMPY, answers.hostile(k.top / "trace")], env=ENVIRONMENT)
    equal(done.stdout, "True\n", "columns")


kymotest.main()
