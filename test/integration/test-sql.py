#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kymo sql: tables over traces, against what kymo view prints, a slow model of spans, and SQLite's own
tables with the same rows.
"""

import csv
import io
import json
import os
import pathlib
import random
import sqlite3
import struct

import answers
import kymotest
from kymotest import CLI, check, equal, rounds, without_sanitizers

QUOTED = '"' + "a:\"quoted' name\"".replace('"', 2 * '"') + '"'


def have_sqlite(k):
    done = k.kymo("sql", "/nonexistent", "SELECT 1", status=1)
    if "has no SQLite" in done.stderr:
        raise kymotest.Skip("this build has no SQLite (libsqlite3-dev)")


def ask(k, trace, statement):
    """Returns the rows of a statement, as tuples."""
    result = k.kymo_json("sql", trace, statement)
    check(result["ok"], result)
    return [tuple(row) for row in result["rows"]]


def view(k, trace):
    return [json.loads(line) for line in k.kymo("view", "--format=json", trace).stdout.splitlines()]


def as_sql(value):
    """Returns a value of the model as SQL has it: integers beyond 63 bits are text."""
    return str(value) if isinstance(value, int) and value >= 2**63 else value


def test_hostile(k):
    """Names and values come out unchanged. Names that SQL cannot distinguish are made different."""
    have_sqlite(k)
    trace = answers.hostile(k.top / "trace")
    rows = ask(k, trace, 'SELECT huge, low, text FROM ' + QUOTED + " ORDER BY ts")
    wanted = [(as_sql(2**64 - 1 - n), -(2**63) + n, text) for n, text in enumerate(answers.HOSTILE_TEXTS)]
    wanted += [(as_sql(v), -(2**53) - 1, "x") for v in (2**53 + 1, 2**63 - 1, 2**63, 0)]
    equal(rows, wanted, "integers and texts")
    equal(ask(k, trace, f"SELECT low FROM {QUOTED} WHERE huge = '{2**64 - 1}'"), [(-(2**63),)], "an integer that is text")
    equal(ask(k, trace, "SELECT count(*) FROM events"), [(24,)], "events of all names")
    equal(ask(k, trace, "SELECT state, state_label, ts_, pid_, pid FROM events_"),
        [(0, "zero", 7, 8, 100), (1, "one", 7, 8, 100), (2, "two", 7, 8, 100), (9, None, 7, 8, 100)], "an enumeration, names in use")
    equal(ask(k, trace, "SELECT n FROM EVENTS_1"), [(3,)], "a name that differs in case")
    equal(ask(k, trace, "SELECT \"select\" FROM _sqlite_master"), [(4,)], "a reserved name")
    equal(ask(k, trace, 'SELECT real FROM "a:new\nline"'), [(0.1,), (-0.0,), (float("inf"),), (None,), (1e300,)], "real numbers")
    equal(ask(k, trace, "SELECT pid, fields FROM events WHERE name = 'a:empty'"), [(100, "{}")], "no fields")
    equal(json.loads(ask(k, trace, "SELECT fields FROM events WHERE name = 'EVENTS'")[0][0]), {"n": 3}, "fields as JSON")
    shown = k.kymo("sql", trace, "SELECT name FROM events GROUP BY name").stdout
    check("\\xff" in shown and "\\x0a" in shown, f"bytes that are no text reach the terminal: {shown!r}")


def test_long_labels(k):
    """Rows of a small trace that would have gigabytes of text are refused with the reason."""
    label = {"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian", "mappings": {"L" * 200000: [[0, 255]]}}
    fields = {"type": "structure", "member-classes": [{"name": "a", "field-class": label}]}
    fragments = ({"type": "preamble", "version": 2}, {"type": "data-stream-class"}, {"type": "event-record-class", "name": "e", "payload-field-class": fields})
    trace = k.top / "labels"
    trace.mkdir()
    (trace / "metadata").write_text("".join(f"\x1e{json.dumps(f)}\n" for f in fragments))
    for n, says in ((1000, ""), (2000, "the rows have too much text")):
        (trace / "s").write_bytes(bytes(n))
        done = k.kymo("sql", trace, "SELECT sum(length(a_label)) FROM e", status=1 if says else 0)
        check(says in done.stderr, f"{n}: {done.stderr}")


def test_many_names(k):
    """
    More names and fields than SQLite takes, many of which it cannot distinguish: what has no table
    or column is in `events`, and the command says so; formats that would leave it out refuse.
    """
    have_sqlite(k)
    cases = ["".join(letter.upper() if n >> i & 1 else letter for i, letter in enumerate("abcdefghijklm")) for n in range(5000)]
    for trace, events, first, why in (
            (k.top / "names", {name: [("u8", "n")] for name in cases}, cases[0], "more names of events than"),
            (k.top / "fields", {"wide": [("u8", f"f{i}") for i in range(2500)]}, "wide", "more fields than")):
        t = answers.Trace(events)
        t.packet(0, [t.record(10, first, *[7] * len(events[first]))])
        t.write(trace)
        done = k.kymo("sql", trace, "--csv", f"SELECT name FROM events UNION ALL SELECT count(*) FROM {first}")
        equal(done.stdout.split()[1:], [first, "1"], "the event, and the rows of its table")
        check(why in done.stderr, f"no warning: {why}")
        for to in "sqlite", "csv":
            check(why in k.kymo("export", trace, f"--to={to}", "-o", k.top / to, status=1).stderr, f"no refusal: {why}")
        k.kymo("export", trace, "--to=perfetto", "-o", k.top / "perfetto")


@without_sanitizers
def test_other_database(k):
    """The module changes neither the database of its connection nor the tables that it has."""
    kymotest.need_program("sqlite3", "sqlite3")
    trace, db, module = answers.hostile(k.top / "trace"), k.top / "db", kymotest.BUILD / "src" / "sql" / "libkymo-sqlite"
    if not module.with_suffix(".so").exists():
        raise kymotest.Skip("this build has no SQLite (libsqlite3-dev)")
    k.run(["sqlite3", db, "CREATE TABLE events(mine); INSERT INTO events VALUES(7)"])
    for _ in range(2):
        done = k.run(["sqlite3", db, f".load {module}", ".dbconfig defensive on", f"SELECT kymo_open('{trace}') > 9;", "SELECT count(*) FROM temp.events;",
            "SELECT count(*) > 9 FROM sqlite_temp_master;", "SELECT mine FROM main.events;", "SELECT count(*) FROM main.sqlite_master;"])
        equal(done.stdout.split()[-5:], ["1", "24", "1", "7", "1"], "tables of the trace, and of the database")


def test_csv(k):
    have_sqlite(k)
    trace = answers.hostile(k.top / "trace")
    text = k.kymo("sql", trace, "--csv", "SELECT text, NULL AS none, procname FROM " + QUOTED).stdout
    rows = list(csv.reader(io.StringIO(text, newline="")))
    equal(rows[0], ["text", "none", "procname"], "names")
    # the harness reads \r\n and \r as ends of lines
    equal([r[0].replace("\r", "\n") for r in rows[1:8]], [t.replace("\r", "\n") for t in answers.HOSTILE_TEXTS], "texts")
    equal(rows[1][1:], ["", 'p"q'], "nothing, and quotes")


def imported(k, trace):
    """Returns SQLite's own tables, with the same names and rows, made of what kymo view prints."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE events(ts INTEGER, name TEXT, cpu INTEGER, pid INTEGER, tid INTEGER, n, id)")
    for e in view(k, trace):
        fields, context = e["fields"], e["context"]
        db.execute("INSERT INTO events VALUES(?, ?, ?, ?, ?, ?, ?)", (e["timestamp"], e["name"], e["cpu"], context["vpid"], context["vtid"],
            fields.get("n"), fields.get("id")))
    for name in ("s:req", "s:done", "s:outer_begin"):
        db.execute(f'CREATE TABLE "{name}" AS SELECT * FROM events WHERE name = ?', (name,))
    return db


STATEMENTS = [
    "SELECT name, count(*), min(ts), max(ts) FROM events GROUP BY name ORDER BY name",
    "SELECT ts, name, tid FROM events WHERE ts BETWEEN {lo} AND {hi} ORDER BY ts",
    "SELECT count(*) FROM events WHERE ts > {lo} AND ts < {hi}",
    "SELECT ts FROM events WHERE ts = {lo}",
    "SELECT count(*) FROM events WHERE ts >= {lo} + 0.5",
    "SELECT count(*) FROM events WHERE ts < 'text'",
    "SELECT count(*) FROM events WHERE ts > NULL",
    "SELECT ts FROM events WHERE name = 's:req' AND cpu = 1 ORDER BY ts",
    "SELECT count(*) FROM events WHERE cpu = 7",
    "SELECT name, count(*) FROM events WHERE name IN ('s:req', 's:done', 'none') GROUP BY name ORDER BY name",
    "SELECT count(*) FROM events WHERE name GLOB 's:*_begin' AND name LIKE '%OUTER%'",
    "SELECT count(*) FROM events WHERE name = 'S:REQ' COLLATE NOCASE",
    "SELECT ts FROM events ORDER BY ts DESC LIMIT 5",
    "SELECT name, ts FROM events WHERE name IN ('s:done', 's:req') ORDER BY ts LIMIT 20",
    'SELECT a.ts, b.ts FROM "s:req" a JOIN "s:done" b ON a.id = b.id AND b.ts > a.ts ORDER BY a.ts, b.ts',
    'SELECT a.ts, min(b.ts) FROM "s:req" a LEFT JOIN "s:done" b ON b.id = a.id AND b.ts > a.ts GROUP BY a.ts ORDER BY a.ts',
    'SELECT count(*) FROM "s:req" WHERE id IN (SELECT id FROM "s:done" WHERE ts < {hi})',
    'SELECT a.tid, count(*) FROM "s:outer_begin" a JOIN "s:outer_begin" b USING(tid) GROUP BY 1 ORDER BY 1',
    "SELECT x.name, y.name FROM events x JOIN events y ON x.ts = y.ts WHERE x.ts < {hi} ORDER BY x.ts",
]


def test_statements(k):
    """The same statements give the same rows as over imported tables."""
    have_sqlite(k)
    rng = random.Random()
    for number in rounds():
        trace = k.top / f"trace{number}"
        events = answers.random_spans(rng, trace, 150)
        db = imported(k, trace)
        lo, hi = events[len(events) // 3][0], events[2 * len(events) // 3][0]
        for statement in STATEMENTS:
            text = statement.format(lo=lo, hi=hi)
            equal(ask(k, trace, text), [tuple(row) for row in db.execute(text)], f"{text} (trace {k.top}/trace{number})")
        db.close()


def test_spans(k):
    """Spans are those of the slow model, with their place in each thread."""
    have_sqlite(k)
    rng = random.Random()
    for number in rounds():
        events = answers.random_spans(rng, k.top / f"trace{number}")
        rows = ask(k, k.top / f"trace{number}", "SELECT ts, dur, self, name, tid, pid, depth, parent, async, id FROM spans")
        equal(rows, [s[:-1] for s in answers.spans_of(events)], "spans")


def test_functions(k):
    have_sqlite(k)
    answers.random_spans(random.Random(3), k.top / "trace")
    durations = sorted(dur for (dur,) in ask(k, k.top / "trace", "SELECT dur FROM spans"))
    for p in (0, 50, 99, 100):
        wanted = durations[max(-(-len(durations) * p // 100) - 1, 0)]
        equal(ask(k, k.top / "trace", f"SELECT percentile(dur, {p}) FROM spans"), [(wanted,)], f"percentile {p}")
    hundred = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100) SELECT "
    parts = (7, 14, 28.0, 55, 56, 99, 54.1)
    equal(ask(k, k.top / "trace", hundred + ", ".join(f"percentile(x, {p})" for p in parts) + " FROM c"), [(7, 14, 28, 55, 56, 99, 55)], f"{parts}")
    equal(ask(k, k.top / "trace", hundred + "percentile(x, 99.9) FROM (SELECT 10 * a.x + b.x - 10 AS x FROM c a, c b WHERE b.x <= 10)"), [(999,)], "99.9 of 1000")
    equal(ask(k, k.top / "trace", "SELECT percentile(dur, 50), hist(dur) FROM spans WHERE dur < 0"), [(None, "[]")], "no value")
    found = json.loads(ask(k, k.top / "trace", "SELECT hist(dur) FROM spans")[0][0])
    equal([s["n"] for s in found], [sum(s["from"] <= d < s["to"] for d in durations) for s in found], "histogram")
    equal(sum(s["n"] for s in found), len(durations), "all of them")
    found = json.loads(ask(k, k.top / "trace", "SELECT hist(column1) FROM (VALUES (-1), (0), ('18446744071578845184'), (1e30), (-0.5))")[0][0])
    equal([(s["from"], s["n"]) for s in found], [(-1, 1), (0, 2), (1 << 63, 2)], "addresses of the kernel, which are text")
    check("percentile" in k.kymo("sql", k.top / "trace", "SELECT percentile(1, 101)", status=1).stderr, "a percentile beyond 100")
    equal(ask(k, k.top / "trace", "SELECT text_time(1700000000123456789 - 1700000000000000000 % 60000000000) LIKE '____-__-__ __:__:__.123456789'"),
        [(1,)], "time as text")
    equal(ask(k, k.top / "trace", "SELECT text_time(-9223372036854775808) LIKE '1677-09-__ __:__:__.145224192'"), [(1,)], "the earliest time")


def test_real_numbers(k):
    """Tables show as many digits of real numbers as SQLite does."""
    have_sqlite(k)
    answers.random_spans(random.Random(3), k.top / "trace")
    shown = k.kymo("sql", k.top / "trace", "SELECT 1234567.891, 0.1, 1.5e19, 1e999").stdout.splitlines()[-1].split()
    equal(shown, ["1234567.891", "0.1", "1.5e+19", "inf"], "real numbers")


def test_join_of_real_numbers(k):
    """Not-a-number is equal to nothing, and hides no other number."""
    have_sqlite(k)
    trace = k.top / "reals"
    trace.mkdir()
    (trace / "metadata").write_text("/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n"
        'event { name = "e"; fields := struct { floating_point { exp_dig = 11; mant_dig = 53; align = 8; } r; }; };\n')
    values = [3.0, float("nan"), 1.0] * 300
    (trace / "s").write_bytes(struct.pack(f"<{len(values)}d", *values))
    equal(ask(k, trace, "SELECT count(*) FROM e a JOIN e b ON a.r = b.r"), [(2 * 300**2,)], "pairs")


def test_join_of_types(k):
    """Text that looks like a number is equal to it, as in SQLite's own tables."""
    have_sqlite(k)
    t = answers.Trace({"a": [("string", "text"), ("u64", "big")], "b": [("u32", "n"), ("u64", "big"), ("f64", "r")]})
    texts = ("1", "1.0", " 2", "02", "x", "", "3e0", "18446744073709551615") * 3
    t.packet(0, [t.record(10 + i, "a", text, (2**64 - 1, 5, 0)[i % 3]) for i, text in enumerate(texts)])
    t.packet(1, [t.record(10 + i, "b", i % 4, (2**64 - 1, 5, 1)[i % 3], (1.0, 2.5, 2.0**64)[i % 3]) for i in range(24)])
    trace = t.write(k.top / "types")
    k.kymo("export", trace, "--to=sqlite", "-o", k.top / "db")
    db = sqlite3.connect(k.top / "db")
    for x, y in (("a.text", "b.n"), ("a.text", "b.big"), ("a.text", "b.r"), ("a.big", "b.n"), ("a.big", "b.big"), ("a.big", "b.r"), ("a.text", "b.n || ''"), ("a.text", "b.n + 0")):
        for tables in ("a JOIN b", "a LEFT JOIN b", "b LEFT JOIN a"):
            statement = f"SELECT count(*), count(a.ts), count(b.ts) FROM {tables} ON {x} = {y}"
            equal(ask(k, trace, statement), db.execute(statement).fetchall(), statement)


def test_no_clock(k):
    """Events of traces without clock have no time."""
    have_sqlite(k)
    trace = k.top / "clockless"
    trace.mkdir()
    (trace / "metadata").write_text("/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n"
        'event { name = "e"; fields := struct { integer { size = 8; align = 8; } a; }; };\n')
    (trace / "s").write_bytes(b"\1\2")
    equal(ask(k, trace, "SELECT ts, a FROM e ORDER BY ts"), [(None, 1), (None, 2)], "rows")
    equal(ask(k, trace, "SELECT count(*), count(ts) FROM events"), [(2, 0)], "times")
    equal(ask(k, trace, "SELECT a FROM e WHERE ts <= 5"), [], "rows in a range of time")
    with (trace / "metadata").open("a") as f:
        f.write("stream { packet.context := struct { integer { size = 8; align = 8; } events_discarded; }; };\n")
    equal(ask(k, trace, "SELECT ts, dur, n FROM lost"), [(None, None, 1)], "a loss")


def test_owners(k):
    """All numbers of an event's process and thread have columns."""
    have_sqlite(k)
    trace = k.top / "owners"
    trace.mkdir()
    names = ("pid", "vpid", "tid", "vtid")
    (trace / "metadata").write_text("/* CTF 1.8 */\ntypealias integer { size = 8; align = 8; } := u8;\ntrace { major = 1; minor = 8; byte_order = le; };\n"
        "stream { event.header := struct { u8 id; }; event.context := struct { u8 tid; }; };\n"
        f'event {{ name = "all"; id = 0; context := struct {{ {"".join(f"u8 {name}; " for name in names)}}}; fields := struct {{ u8 a; }}; }};\n'
        'event { name = "one"; id = 1; fields := struct { u8 a; }; };\n')
    (trace / "s").write_bytes(b"\0\3" b"\1\2\3\4" b"\5" b"\1\7\6")
    equal(ask(k, trace, 'SELECT pid, pid_, tid, tid_, a FROM "all"'), [(2, 1, 4, 3, 5)], "with both numbers")
    equal(ask(k, trace, "SELECT pid, tid, a FROM one"), [(None, 7, 6)], "with one of them")
    equal(ask(k, trace, "SELECT pid, tid FROM events"), [(2, 4), (None, 7)], "of all events")


def test_losses(k):
    """Discarded events, damage and packets are rows, and spans over a loss are none."""
    have_sqlite(k)
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(10, "s:outer_begin", 1, 0), t.record(20, "s:inner_begin", 1, 0), t.record(30, "s:inner_end", 1, 0)])
    t.packet(0, [t.record(100, "s:outer_end", 1, 0)], discarded=5, begin=90, end=110)
    trace = t.write(k.top / "trace")
    equal(ask(k, trace, "SELECT n, stream, what FROM lost"), [(5, 0, "events")], "losses")
    equal(ask(k, trace, "SELECT name, dur FROM spans"), [("s:inner", 10)], "spans")
    start = answers.START
    equal(ask(k, trace, "SELECT ts, dur, stream, offset, discarded FROM packets"), [(start + 10, 20, 0, 0, 0), (start + 90, 20, 0,
        len(t.streams[0][0]), 5)], "packets")
    equal(ask(k, trace, "SELECT stream, instance, bytes, complete_from FROM streams"), [(0, 0, sum(map(len, t.streams[0])), None)], "streams")
    equal(ask(k, trace, "SELECT name, id, fields FROM classes WHERE name = 's:req'"),
        [("s:req", 8, "$ctx.cpu_id, $ctx.vpid, $ctx.vtid, $ctx.procname, id")], "classes")
    with (trace / "channel0_0").open("r+b") as f:
        f.truncate(len(t.streams[0][0]) - 5)
    equal(ask(k, trace, "SELECT count(*) FROM events"), [(2,)], "events of a packet that is cut")


def test_back_in_time(k):
    """A clock that goes back does not make a wrong order silently."""
    have_sqlite(k)
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(time, "s:req", n) for n, time in enumerate((100, 50, 200))], begin=50, end=200)
    trace = t.write(k.top / "trace")
    error = k.run([CLI, "sql", trace, "SELECT ts FROM events ORDER BY ts"], status=1).stderr
    check("go back in 1 place:" in error and "ORDER BY +ts" in error, error)
    equal([ts - answers.START for (ts,) in ask(k, trace, "SELECT ts FROM events ORDER BY +ts")], [50, 100, 200], "sorted")


def test_several(k):
    """Several traces are one; one without events has no rows."""
    have_sqlite(k)
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(10, "s:req", 1)])
    t.write(k.top / "one")
    empty = answers.Trace(answers.SPAN_EVENTS)
    empty.write(k.top / "empty")
    equal(k.kymo_json("sql", k.top / "one", k.top / "empty", "SELECT count(*) FROM events")["rows"], [[1]], "two traces")
    equal(ask(k, k.top / "empty", "SELECT count(*), max(ts) FROM events"), [(0, None)], "an empty trace")
    equal(ask(k, k.top / "empty", 'SELECT * FROM "s:req"'), [], "an empty table")


def test_input(k):
    """Without a statement, statements come from standard input."""
    have_sqlite(k)
    trace = answers.hostile(k.top / "trace")
    done = k.run([CLI, "sql", trace], input=".tables\nSELECT count(*)\n  FROM events;\n.schema EVENTS_1\nSELECT 2")
    lines = done.stdout.splitlines()
    check("events" in lines and "24" in [line.strip() for line in lines] and lines[-1].strip() == "2", done.stdout)
    check('"EVENTS_1"(ts, cpu, pid, tid, procname, stream, n)' in lines, done.stdout)
    done = k.run([CLI, "sql", trace], input="SELECT nosuch;\nSELECT 1;\n", status=1)
    check("no such column: nosuch" in done.stderr and not done.stdout, "a mistake ends a script")


def test_only_reading(k):
    """Statements can do nothing but read."""
    have_sqlite(k)
    trace = answers.hostile(k.top / "trace")
    for statement in ("CREATE TABLE x(a)", "CREATE TEMP TABLE x(a)", f"ATTACH '{k.top}/x.db' AS x", "DROP TABLE events", "DELETE FROM events",
        "INSERT INTO events VALUES(1)", "PRAGMA writable_schema = 1", "SELECT load_extension('x')", f"VACUUM INTO '{k.top}/x.db'",
        "BEGIN; CREATE VIEW v AS SELECT 1"):
        done = k.kymo("sql", trace, statement, status=1)
        check(done.stderr.startswith("kymo: sql: "), done.stderr)
    check(not pathlib.Path(f"{k.top}/x.db").exists(), "a statement wrote a file")


def test_library_is_missing(k):
    """libsqlite3 is loaded by the commands that need it: without it, they say so and fail."""
    have_sqlite(k)
    trace = answers.hostile(k.top / "trace")
    env = k.env_without("libsqlite3.so.0")
    for command in (["sql", trace, "SELECT 1"], ["export", trace, "--to=sqlite", "-o", k.top / "out"]):
        check("libsqlite3.so.0" in k.kymo(*command, env=env, status=1).stderr, command)
    check(not (k.top / "out").exists(), "a file that nobody wrote")


def test_errors(k):
    have_sqlite(k)
    trace = answers.hostile(k.top / "trace")
    for statement, wanted in (("SELECT * FROM evnts", 'did you mean "events"'), ("SELECT * FROM a:empty", "in double quotes"),
        ("SELECT nosuch FROM events", "no such column: nosuch"), ("SELEC 1", "syntax error\n"), ("SELECT * FROM bananas", "'kymo sql .tables' lists them")):
        check(wanted in k.kymo("sql", trace, statement, status=1).stderr, statement)
    check('"events"(' in k.kymo("sql", trace, ".schema events").stdout and "events" in k.kymo("sql", trace, ".tables").stdout, "lists")
    check("'kymo sql .schema'" in k.kymo("sql", trace, "SELECT nosuch FROM events", status=1).stderr, "where the columns are")
    failed = json.loads(k.kymo("--json", "sql", trace, "SELECT x FROM events", status=1).stdout)
    equal((failed["ok"], failed["code"]), (False, "failed"), "JSON of a failure")
    k.kymo("sql", k.top / "missing", status=1)
    k.kymo("--json", "sql", trace, "SELECT 1; SELECT 2", status=None)
    for arguments, text, status, error in ((["--json", trace, ".tables"], "", 2, "--json takes a statement"),
            (["--json", trace], "", 2, "--json takes one statement"), ([trace, ".nosuch"], "", 2, "unknown command '.nosuch'"),
            ([trace], ".nosuch\n", 2, "unknown command '.nosuch'"), ([trace, ".quit"], "", 0, ""), ([trace], ".quit\n.nosuch\n", 0, "")):
        done = k.run([CLI, "sql", *arguments], input=text, status=status)
        check(error in done.stderr, done.stderr)
    done = k.run(["sh", "-c", 'exec "$@" >/dev/full', "sh", CLI, "sql", trace, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"], status=1)
    check(done.stderr.startswith("kymo: cannot write the output: ") and done.stderr.count("\n") == 1, f"rows without end on a full disk: {done.stderr!r}")
    directory = os.open("/", os.O_RDONLY)
    done = k.run([CLI, "sql", trace], stdin=directory, status=1)
    os.close(directory)
    check("cannot read standard input: Is a directory" in done.stderr, done.stderr)


if __name__ == "__main__":
    kymotest.main()
