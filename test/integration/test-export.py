#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kymo export, read by programs that are not ours: json, csv, sqlite3 and protobuf of Python. Counts
and durations are those of kymo view and of a slow model of spans.
"""

import collections
import csv
import importlib
import json
import os
import random
import re
import resource
import shutil
import sqlite3
import sys

import answers
import kymotest
from kymotest import CLI, SOURCE, check, equal, rounds

PROTO = SOURCE / "test" / "integration"
COUNTERS = ("s:stock", "s:load")


def view(k, trace):
    return [json.loads(line) for line in k.kymo("view", "--format=json", trace).stdout.splitlines()]


def export(k, trace, to, *options):
    path = k.top / f"{trace.name}.{to}"
    k.kymo("export", trace, f"--to={to}", "-o", path, *options)
    check(not path.with_name(path.name + ".part").exists(), "the incomplete file is left")
    return path


def chrome(k, trace, *options):
    def refuse(text):
        raise kymotest.Failure(f"no JSON: {text}")

    with open(export(k, trace, "chrome", *options), encoding="utf-8") as f:
        return json.load(f, parse_constant=refuse)["traceEvents"]


def pairs(marks):
    """Returns (begin, duration, name) of the pairs of begins and ends. Fails unless they nest."""
    stacks, found = collections.defaultdict(list), []
    for key, ns, is_begin, name in marks:
        if is_begin:
            stacks[key].append((ns, name))
            continue
        check(stacks[key], f"an end without a begin on {key}: {name}")
        begin, outer = stacks[key].pop()
        check(name is None or outer == name, f"on {key} '{outer}' is open, and '{name}' ends")
        found.append((begin, ns - begin, outer))
    equal([k for k, stack in stacks.items() if stack], [], "begins without an end")
    return sorted(found)


def nanoseconds(text):
    whole, _, fraction = repr(text).partition(".") if isinstance(text, float) else str(text).partition(".")
    return int(whole) * 1000 + int(fraction.ljust(3, "0"))


def test_chrome(k):
    """Spans nest on each track, and nothing is missing."""
    rng = random.Random()
    for number in rounds():
        trace = k.top / f"trace{number}"
        events = answers.random_spans(rng, trace, 200)
        spans, first = answers.spans_of(events), events[0][0]
        found = [e for e in chrome(k, trace) if e["ph"] != "M"]
        equal(len(found), len(events), "marks")
        begun = [((e["tid"],), nanoseconds(e["ts"]), e["ph"] == "B", e["name"]) for e in found if e["ph"] in "BE"]
        equal(pairs(begun), sorted((s.ts - first, s.dur, s.name) for s in spans if not s.async_ and not s.crosses), "nested spans")
        lanes = [((e["cat"], e["id"]), nanoseconds(e["ts"]), e["ph"] == "b", e["name"]) for e in found if e["ph"] in "be"]
        equal(pairs(lanes), sorted((s.ts - first, s.dur, s.name) for s in spans if s.async_ or s.crosses), "lanes")
        equal([e["args"]["value"] for e in found if e["ph"] == "C"], [e[2]["counter"] for e in events if e[1] in COUNTERS], "counters")
        equal(sum(e["ph"] == "i" for e in found), len(events) - 2 * len(spans) - sum(e[1] in COUNTERS for e in events), "instants")


def test_chrome_hostile(k):
    """Names and values are valid JSON; integers that JavaScript would change are strings."""
    trace = answers.hostile(k.top / "trace")
    found = [e for e in chrome(k, trace) if e["ph"] == "i"]
    wanted = view(k, trace)
    equal([e["name"] for e in found], [e["name"] for e in wanted], "names")

    def safe(value):
        return str(value) if isinstance(value, int) and abs(value) > 2**53 else value

    equal([e["args"] for e in found], [{name: safe(v) for name, v in e["fields"].items()} for e in wanted], "fields")
    equal([e["args"]["huge"] for e in found[:1]], [str(2**64 - 1)], "a huge integer")
    equal({e["args"]["name"] for e in chrome(k, trace) if e["ph"] == "M"} >= {'p"q'}, True, "names of threads")


def test_losses(k):
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(10, "s:outer_begin", 1, 0)])
    t.packet(0, [t.record(100, "s:outer_end", 1, 0)], discarded=5, begin=90, end=110)
    trace = t.write(k.top / "trace")
    found = [e for e in chrome(k, trace) if e["ph"] != "M"]
    equal([(e["ph"], e["name"]) for e in found], [("i", "s:outer_begin"), ("i", "lost"), ("i", "s:outer_end")], "a span over a loss")
    equal(found[1]["args"]["n"], 5, "lost events")
    k.kymo("export", trace, "--to=folded", "-o", k.top / "x", status=1)
    check(not (k.top / "x").exists() and not (k.top / "x.part").exists(), "a file without contents")


def test_damaged(k):
    """A file that ends in rubbish, or has a packet of it alone: what is whole is in each format."""
    whole = [(10, "s:outer_begin"), (20, "s:outer_end")]
    for name, records, rubbish in ("behind", whole, b"rubbish" * 100), ("alone", [], b""):
        t = answers.Trace(answers.SPAN_EVENTS)
        t.packet(0, [t.record(ns, event, 1, 0) for ns, event in records] or [(0, b"\xff" * 9)])
        trace = t.write(k.top / name)
        for stream in trace.iterdir():
            if stream.name != "metadata":
                stream.write_bytes(stream.read_bytes() + rubbish)
        found = [e["ph"] for e in chrome(k, trace) if e["ph"] != "M"]
        equal(found, ["B", "E"][: len(records)] + ["i"], f"{name}: marks, the last one of the damage")
        for to in "perfetto", "sqlite", "csv", "ctf":
            export(k, trace, to)


def test_long_names(k):
    """Names that are repeated with each element of an array have one limit in all formats."""
    bit = {"type": "fixed-length-unsigned-integer", "length": 1, "byte-order": "little-endian"}
    element = {"type": "structure", "member-classes": [{"name": "N" * 60000, "field-class": bit}]}
    fields = {"type": "structure", "member-classes": [{"name": "a", "field-class": {"type": "static-length-array", "length": 160, "element-field-class": element}}]}
    fragments = ({"type": "preamble", "version": 2}, {"type": "data-stream-class"}, {"type": "event-record-class", "name": "e", "payload-field-class": fields})
    trace = k.top / "names"
    trace.mkdir()
    (trace / "metadata").write_text("".join(f"\x1e{json.dumps(f)}\n" for f in fragments))
    (trace / "s").write_bytes(b"\1" * 200)
    for to in "csv", "clickhouse", "chrome", "perfetto", "sqlite":
        path = k.top / f"names.{to}"
        error = k.kymo("export", trace, f"--to={to}", "-o", path, status=1).stderr
        check("more than 64.2 MiB, which is 1024 bytes for each byte of the trace" in error, f"{to}: {error}")
        check(not path.exists(), f"{to}: an incomplete export is left")


def protobuf(k, schema="perfetto", message="Trace"):
    """Returns the class of a message, by protoc and Python's own protobuf."""
    kymotest.need_program("protoc", "protobuf-compiler")
    try:
        importlib.import_module("google.protobuf")
    except ImportError:
        if "/usr/lib/python3/dist-packages" not in sys.path:
            sys.path.append("/usr/lib/python3/dist-packages")
    try:
        importlib.import_module("google.protobuf")
    except ImportError:
        raise kymotest.Skip("protobuf is missing (Debian package python3-protobuf)") from None
    if schema not in SCHEMA:
        shutil.copy(PROTO / f"{schema}.proto", k.top)
        k.run(["protoc", f"--python_out={k.top}", f"--proto_path={k.top}", f"{schema}.proto"])
        sys.path.insert(0, str(k.top))
        sys.dont_write_bytecode = True
        SCHEMA[schema] = getattr(importlib.import_module(f"{schema}_pb2"), message)
        sys.path.remove(str(k.top))
    return SCHEMA[schema]


SCHEMA = {}


class Perfetto:
    """A trace of Perfetto, with its names and tracks resolved as its specification says."""

    def __init__(self, k, path):
        trace = protobuf(k)()
        trace.ParseFromString(path.read_bytes())
        self.names, self.fields, self.tracks, self.events = {}, {}, {}, []
        equal(trace.packet[0].flags, 1, "the first packet clears the state")
        for packet in trace.packet:
            equal(packet.sequence, 1, "sequence")
            self.names |= {n.iid: n.name for n in packet.interned.events}
            self.fields |= {n.iid: n.name for n in packet.interned.annotations}
            if packet.HasField("track"):
                check(packet.track.uuid not in self.tracks, "a track is described twice")
                check(not packet.track.parent or packet.track.parent in self.tracks, "a track's parent comes later")
                self.tracks[packet.track.uuid] = packet.track
            if packet.HasField("event"):
                check(packet.event.track in self.tracks, "an event's track comes later")
                self.events.append((packet.timestamp, packet.event, self.name_of(packet.event)))

    def name_of(self, event):
        return self.names[event.name_iid] if event.name_iid else event.name or None

    def fields_of(self, event):
        def value(a):
            return next((getattr(a, f) for f in ("uint_value", "int_value", "double_value", "string_value", "bool_value") if a.HasField(f)),
                a.json_value)

        return {self.fields[a.name_iid]: value(a) for a in event.annotations}


def test_perfetto(k):
    rng = random.Random()
    protobuf(k)
    for number in rounds():
        trace = k.top / f"trace{number}"
        events = answers.random_spans(rng, trace, 200)
        spans = answers.spans_of(events)
        p = Perfetto(k, export(k, trace, "perfetto"))
        equal(len(p.events), len(events), "events")
        equal([ns for ns, _, _ in p.events], [e[0] for e in events], "times")
        begun = [(e.track, ns, e.type == 1, name) for ns, e, name in p.events if e.type in (1, 2)]
        equal(pairs(begun), sorted((s.ts, s.dur, s.name) for s in spans), "spans")
        threads = {t.thread.tid for t in p.tracks.values() if t.HasField("thread")}
        equal(threads, {e[4] for e in events if e[1] not in COUNTERS} & threads, "threads")
        for track, *_ in begun:
            check(p.tracks[track].HasField("thread") or p.tracks[track].name in ("s:far", "s:outer", "s:inner", "s:cross"), "a track of spans")
        equal([e.counter for _, e, _ in p.events if e.type == 4], [e[2]["counter"] for e in events if e[1] in COUNTERS], "counters")
        equal([p.fields_of(e) for _, e, _ in p.events], [e[2] for e in events], "fields")


def test_perfetto_hostile(k):
    protobuf(k)
    trace = answers.hostile(k.top / "trace")
    p = Perfetto(k, export(k, trace, "perfetto"))
    wanted = view(k, trace)
    equal([(ns, name) for ns, _, name in p.events], [(e["timestamp"], e["name"]) for e in wanted], "events")
    found = [p.fields_of(e) for _, e, _ in p.events]
    for ours, theirs in zip(found, wanted):
        equal({n: v for n, v in ours.items() if not isinstance(theirs["fields"][n], (dict, type(None)))},
            {n: v for n, v in theirs["fields"].items() if not isinstance(v, (dict, type(None)))}, "fields")


def test_counters(k):
    """Counters keep all their digits; texts are no counters, whatever they contain."""
    values = [("string", ["12 items", '1}},{"name":"injected","ph":"i"', "7"]), ("f64", [1234567.0, 0.1, 1000.0, 1e300, float("inf"), float("nan")]),
        ("u64", [0, 2**64 - 2, 5]), ("i64", [-(2**63), -1]), ("u8", [200])]
    t = answers.Trace({f"a:{kind}": [(kind, "counter")] for kind, _ in values})
    t.packet(0, [t.record(10, f"a:{kind}", value) for kind, list_ in values for value in list_])
    trace = t.write(k.top / "trace")
    numbers = [v for kind, list_ in values for v in list_ if kind != "string" and abs(v) < float("inf")]
    found = chrome(k, trace)
    equal([e["args"]["value"] for e in found if e["ph"] == "C"], numbers, "values of chrome")
    equal([e["args"]["counter"] for e in found if e["ph"] == "i" and e["name"] == "a:string"], values[0][1], "texts")
    protobuf(k)
    found = [(e.double_counter, e.counter) for _, e, _ in Perfetto(k, export(k, trace, "perfetto")).events if e.type == 4]
    equal(found, [(float(v), 0) if isinstance(v, float) or v >= 2**63 else (0.0, v) for v in numbers], "values of perfetto")


def test_flows(k):
    """Flows of Kymo's own programs link their three events."""
    protobuf(k)
    k.start_daemon()
    trace = k.record()
    k.app("spans", "forms")
    k.kymo("stop", "s")
    p = Perfetto(k, export(k, trace, "perfetto"))
    flows = [(name, list(e.flows), list(e.ending_flows)) for _, e, name in p.events if e.flows or e.ending_flows]
    equal(flows, [("shop:parcel_begin", [5], []), ("shop:parcel_step", [5], []), ("shop:parcel_end", [], [5])], "flows")
    equal([e.double_counter for _, e, _ in p.events if e.HasField("double_counter")], [0.5], "a counter that is no integer")
    found = [(e["ph"], e["name"], e["id"]) for e in chrome(k, trace) if e["ph"] in "stf"]
    equal(found, [("s", "shop:parcel", "5"), ("t", "shop:parcel", "5"), ("f", "shop:parcel", "5")], "flows of chrome")


def test_flows_of_spans(k):
    """The events of a flow may be those of a span, too; their flow has the name of both."""
    t = answers.Trace({f"{name}_{end}": [("u32", "span_tid"), ("u64", "flow_id")] for name in ("a:b", "app:request") for end in ("begin", "end")})
    names = [f"{name}_{end}" for name in ("app:request", "a:b") for end in ("begin", "end")]
    t.packet(0, [t.record(10 * i, name, 1, 7) for i, name in enumerate(names)])
    found = [(e["ph"], e["name"], e.get("id")) for e in chrome(k, t.write(k.top / "trace")) if e["ph"] != "M"]
    equal(found, [x for name in ("app:request", "a:b") for x in (("B", name, None), ("s", name, "7"), ("E", name, None), ("f", name, "7"))], "marks")


def test_csv(k):
    """One file for each name of events; hostile names are harmless names of files."""
    trace = answers.hostile(k.top / "trace")
    folder = export(k, trace, "csv")
    wanted = collections.Counter(e["name"] for e in view(k, trace))
    found = {p.name: list(csv.DictReader(p.open(newline="", encoding="utf-8", errors="surrogateescape"))) for p in folder.iterdir()}
    for name in ("packets.csv", "streams.csv", "classes.csv"):
        check(found.pop(name), name)
    equal(sorted(map(len, found.values())), sorted(wanted.values()), "rows")
    rows = found["a:\"quoted' name\".csv"]
    equal([r["text"] for r in rows[:7]], answers.HOSTILE_TEXTS, "texts")
    equal([int(r["huge"]) for r in rows[:3]], [2**64 - 1, 2**64 - 2, 2**64 - 3], "integers")
    equal([r["Text"] for r in next(v for n, v in found.items() if "bytes" in n)], [answers.BAD_BYTES.decode("utf-8", "surrogateescape")], "bytes")
    check(all(re.fullmatch(r"[^/\n]+\.csv", name) for name in found), found.keys())
    # a directory has the tables of one export, all or none
    done = k.kymo("export", trace, "--to=csv", "-o", folder, status=1)
    check("name a new directory" in done.stderr, done.stderr)
    (k.top / "empty").mkdir()
    k.kymo("export", trace, "--to=csv", "-o", f"{k.top}/empty/")
    equal({p.name: p.read_bytes() for p in (k.top / "empty").iterdir()}, {p.name: p.read_bytes() for p in folder.iterdir()}, "tables in an empty directory")
    one = k.top / "one.csv"
    k.kymo("export", trace, "--to=csv", "-e", "EVENTS", "-o", one)
    equal([r["n"] for r in csv.DictReader(one.open())], ["3"], "one name of events")
    done = k.kymo("export", trace, "--to=csv", "-e", "EVENTS", "-o", "-")
    equal(done.stdout, one.read_text(), "standard output")
    k.kymo("export", trace, "--to=csv", "-o", "-", status=1)
    # names that are one name of a file, also with any number of a table
    names = ["a/b", *(f"a_b-{i}" for i in range(20, 60)), "a_b"]
    t = answers.Trace({name: [("u32", "n")] for name in names})
    t.packet(0, [t.record(10, name, i) for i, name in enumerate(names)])
    rows = [list(csv.DictReader(p.open())) for p in export(k, t.write(k.top / "same"), "csv").iterdir() if p.name.startswith("a_b")]
    equal(sorted(int(r["n"]) for table in rows for r in table), list(range(len(names))), "rows of names that are alike")


def test_many_tables(k):
    """More names of events than are read together; fields of one name differ in their types."""
    names = {f"n:{i}": [(("u64", "i64", "string")[i % 3], "v"), ("u32", f"only{i}"), ("u32", "n")] for i in range(200)}
    values = {name: "text" if fields[0][0] == "string" else i - (2 if fields[0][0] == "i64" else 0) for i, (name, fields) in enumerate(names.items())}
    t = answers.Trace(names)
    t.packet(0, [t.record(10 + n, name, values[name], i, n) for n in range(3) for i, name in enumerate(names)])
    trace = t.write(k.top / "many")
    folder, db = export(k, trace, "csv"), sqlite3.connect(export(k, trace, "sqlite"))
    for i, name in enumerate(names):
        wanted = [(values[name], i, n) for n in range(3)]
        rows = [(r["v"], int(r[f"only{i}"]), int(r["n"])) for r in csv.DictReader((folder / f"{name}.csv").open())]
        equal(rows, [(str(v), *rest) for v, *rest in wanted], f"csv: {name}")
        equal(db.execute(f'SELECT v, only{i}, n FROM "{name}" ORDER BY ts').fetchall(), wanted, f"sqlite: {name}")


def clickhouse_columns():
    """Returns the types of the columns of the table in docs/export.md that rows may have."""
    page = (kymotest.SOURCE / "docs" / "export.md").read_text()
    table = re.search(r"CREATE TABLE events\n\((.*?)\n\)\n", page, re.S).group(1)
    lines = [line.strip().rstrip(",").split(" ", 1) for line in table.strip().splitlines()]
    return {name: kind for name, kind in lines if "MATERIALIZED" not in kind}


def test_clickhouse(k):
    """Each line is a row of the table in docs/export.md, with the values of 'kymo view'."""
    columns = clickhouse_columns()
    is_valid = {"Int64": lambda v: -2**63 <= v < 2**63, "UInt32": lambda v: 0 <= v < 2**32, "String": lambda v: isinstance(v, str)}
    trace = answers.hostile(k.top / "trace")
    rows = [json.loads(line) for line in export(k, trace, "clickhouse").read_bytes().decode("utf-8").splitlines()]
    events = view(k, trace)
    equal([r["ts_ns"] for r in rows], [e["timestamp"] for e in events], "times")
    equal([r["name"] for r in rows], [e["name"] for e in events], "names")
    equal([json.loads(r["fields"]) for r in rows], [e["fields"] for e in events], "fields")
    for row in rows:
        for column, value in row.items():
            check(is_valid[re.sub(r"Nullable\((.*)\)", r"\1", columns[column])](value), f"{column}: {value!r}")
        check(all(c in row for c, kind in columns.items() if "Nullable" not in kind), row)


SQL = ['SELECT * FROM "s:req"', "SELECT * FROM spans ORDER BY id", "SELECT stream, instance, bytes FROM streams", "SELECT name, fields FROM classes",
    'SELECT a.ts, count(*) FROM "s:req" a JOIN "s:done" b USING(id) GROUP BY a.ts ORDER BY a.ts', "SELECT * FROM lost", "SELECT ts, bytes FROM packets"]


def test_sqlite(k):
    """The same statements give the same rows as kymo sql."""
    rng = random.Random()
    for number in rounds():
        trace = k.top / f"trace{number}"
        answers.random_spans(rng, trace, 200)
        done = k.kymo("export", trace, "--to=sqlite", "-o", k.top / "x.db", status=None)
        if "has no SQLite" in done.stderr:
            raise kymotest.Skip("this build has no SQLite (libsqlite3-dev)")
        said = k.kymo("export", trace, "--to=sqlite", "-o", k.top / "none" / "x.db", status=1).stderr
        check("none/x.db: unable to open" in said, said)
        db = sqlite3.connect(export(k, trace, "sqlite"))
        for statement in SQL:
            wanted = [tuple(row) for row in k.kymo_json("sql", trace, statement)["rows"]]
            equal(db.execute(statement).fetchall(), wanted, statement)
        equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "the database")
        check("ts of s:req" in db.execute('EXPLAIN QUERY PLAN SELECT * FROM "s:req" WHERE ts = 1').fetchone()[3], "no index is used")
        db.close()
    trace = answers.hostile(k.top / "hostile")
    db = sqlite3.connect(export(k, trace, "sqlite"))
    equal(db.execute("SELECT state_label, ts_ FROM events_").fetchall(), [("zero", 7), ("one", 7), ("two", 7), (None, 7)], "hostile names")
    db.close()


def test_folded(k):
    """Stacks are in the format of flame graphs, and their times sum to the spans' own times."""
    rng = random.Random()
    for number in rounds():
        trace = k.top / f"trace{number}"
        events = answers.random_spans(rng, trace)
        spans = answers.spans_of(events)
        own = collections.Counter()
        for line in export(k, trace, "folded").read_text().splitlines():
            stack, ns = re.fullmatch(r"(\S+(?:;\S+)*) (\d+)", line).groups()
            own[stack.rpartition(";")[2]] += int(ns)
        wanted = collections.Counter()
        for s in spans:
            wanted[s.name] += s.self
        equal(own, wanted, "own times by name")


def test_folded_deep(k):
    """Of spans in a million others, the outermost are left out: no stack, no memory is used up."""
    t = answers.Trace(answers.SPAN_EVENTS)
    n = 100000 if kymotest.SANITIZED else 1000000
    t.packet(0, [t.record(1, "s:outer_begin", 1, 0)] * n)
    t.packet(0, [t.record(2, "s:outer_end", 1, 0)] * 1000)
    trace = t.write(k.top / "trace")
    limit = None if kymotest.SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    line = "...;" + "s:outer;" * 256 + "s:outer"
    for args, numbers in (("export", trace), 1), (("diff", trace, trace), 2):
        done = k.run([CLI, *args, "--to=folded", "-o", k.top / args[0]], preexec_fn=limit)
        equal(done.stderr, "", args[0])
        lines = (k.top / args[0]).read_text().splitlines()
        equal([(x.split(" ")[0], len(x.split(" "))) for x in lines], [(line, 1 + numbers)], args[0])


def babeltrace2(k, trace):
    done = k.run(["babeltrace2", trace])
    return done.stdout.splitlines(), [re.sub(r" in trace .*", "", line) for line in done.stderr.splitlines()]


def test_ctf(k):
    """A trace with its losses; selections of it; a directory that exists; several traces."""
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(10, "s:req", 1), t.record(20, "s:req", 2)])
    t.packet(0, [t.record(100, "s:req", 3)], discarded=5, begin=90, end=110)
    t.packet(0, [t.record(200, "s:done", 4)], discarded=5)
    t.packet(1, [t.record(15, "s:done", 5)], discarded=7, begin=12, end=30)
    trace = t.write(k.top / "trace")
    for number, options in enumerate(([], ["-e", "s:req"], ["-f", "id > 2"], ["--begin=+0.00000005"], ["--end=+0.00000005"])):
        out = k.top / f"out{number}"
        k.kymo("export", trace, "--to=ctf", "-o", out, *options)
        wanted = k.kymo("view", trace, *options)
        lines, losses = babeltrace2(k, out)
        equal(lines, wanted.stdout.splitlines(), f"events with {options}")
        if not options:
            equal(losses, babeltrace2(k, trace)[1], "losses")
        kymotest.check_private(out)
        found = [re.sub(r" in trace .*", "", line) for line in k.kymo("view", out).stderr.splitlines()]
        equal(found, [re.sub(r" in trace .*", "", line) for line in wanted.stderr.splitlines()], f"losses with {options}")
    equal(sorted(p.name for p in k.top.iterdir() if ".part" in p.name), [], "incomplete directories")
    check("exists" in k.kymo("export", trace, "--to=ctf", "-o", k.top / "out0", status=1).stderr, "an output that exists")
    (k.top / "new.part").mkdir()
    check("new.part exists" in k.kymo("export", trace, "--to=ctf", "-o", k.top / "new", status=1).stderr, "the rest of an export that was killed")
    k.kymo("export", trace, "--to=ctf", "-o", "-", status=2)
    check("is in one of the traces" in k.kymo("export", trace, "--to=ctf", "-o", trace / "in", status=2).stderr, "an output in the trace")
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(30, "s:req", 6)])
    k.kymo("export", trace, t.write(k.top / "other"), "--to=ctf", "-o", k.top / "both")
    equal(len(view(k, k.top / "both")), 6, "events of both traces")
    trace = answers.hostile(k.top / "hostile")
    with (trace / "metadata").open("a") as f:
        f.write("\n/* gap: a program ran unrecorded */\n/* trigger: full: shop:order */\n")
    copy = export(k, trace, "ctf")
    equal(babeltrace2(k, copy)[0], k.kymo("view", trace).stdout.splitlines(), "hostile names and values")
    gaps = [k.kymo_json("stat", where)["gaps"] for where in (trace, copy)]
    equal((len(gaps[0]), gaps[0]), (2, gaps[1]), "comments about what is missing")


def test_ctf_of_kymo(k):
    """Copies name Kymo as their tracer, but have other fields in place of its positions."""
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(10 + n, "s:req", n) for n in range(10)], discarded=5)
    trace = t.write(k.top / "trace")
    text = (trace / "metadata").read_bytes()
    (trace / "metadata").write_bytes(text.replace(b"env { ", b'env { tracer_name = "kymo"; '))
    for copy in (trace, export(k, trace, "ctf")):
        equal(k.kymo_json("stat", str(copy)).get("complete_from_ns"), None, f"begin of {copy.name}")


def test_ctf_chunks(k):
    """Two directories with one UUID, whose streams are one, or two if they have no number."""
    for number, head in (("numbered", b"u16 stream_id; u16 stream_instance_id"), ("other", b"u32 stream_id")):
        top = k.top / number
        for name, packets in (("b", ((0, 3), (1, 4))), ("a/c", ((2, 5), (5, 9)))):
            t = answers.Trace(answers.SPAN_EVENTS)
            for cpu, discarded in packets:
                t.packet(cpu, [t.record(100 * cpu, "s:req", cpu), t.record(100 * cpu + 9, "s:done", cpu)], discarded)
            trace = t.write(top / name)
            text = (trace / "metadata").read_bytes().replace(b"cpu_id", b"packet_seq_num")
            (trace / "metadata").write_bytes(text.replace(b"u32 stream_id", head))
        out = export(k, top, "ctf")
        wanted, found = k.kymo("view", top), k.kymo("view", out)
        equal(found.stdout, wanted.stdout, f"events: {number}")
        losses = [[re.sub(r" in trace .*", "", line) for line in x.stderr.splitlines()] for x in (found, wanted)]
        equal(*losses, f"losses: {number}")
        equal(babeltrace2(k, out), babeltrace2(k, top), f"babeltrace2: {number}")


def test_before_1970(k):
    """CTF has a clock with an origin; other formats without signed times refuse such a trace."""
    t = answers.Trace({"s:work_begin": [("u64", "async_id"), ("u64", "trace_id[1]"), ("u64", "span_id")], "s:work_end": [("u64", "async_id")]})
    t.packet(0, [t.record(5, "s:work_begin", 1, 2, 3), t.record(4 * 10**9, "s:work_end", 1)])
    trace = t.write(k.top / "trace")
    text = (trace / "metadata").read_bytes()
    for offset in (b"-3", b"-3; offset = 7", b"-9223372036"):
        (trace / "metadata").write_bytes(re.sub(rb"offset_s = [^;]*", b"offset_s = " + offset, text, count=1))
        shutil.rmtree(k.top / "trace.ctf", ignore_errors=True)
        equal(k.kymo("view", export(k, trace, "ctf")).stdout, k.kymo("view", trace).stdout, f"times from {offset}")
    for to in ("perfetto", "otlp"):
        done = k.kymo("export", trace, f"--to={to}", "-o", k.top / to, status=1)
        check("no times before 1970" in done.stderr and not (k.top / to).exists(), done.stderr)


def test_ctf_full(k):
    """File systems of other hosts say only when a file is closed that there is no room."""
    kymotest.need_program("strace", "strace")
    trace, out = answers.hostile(k.top / "trace"), k.top / "out"
    done = k.run(["strace", "-f", "-o", "/dev/null", "-P", f"{out}.part/channel0_0", "-e", "inject=close:error=ENOSPC", CLI, "export", trace, "--to=ctf", "-o", out], status=1)
    check("No space left" in done.stderr and not out.exists(), done.stderr)


def test_selection(k):
    trace = k.top / "trace"
    events = answers.random_spans(random.Random(5), trace)
    begin, end = events[100][0], events[200][0]
    found = chrome(k, trace, "-e", "s:req", f"--begin={begin // 10**9}.{begin % 10**9:09}", f"--end={end // 10**9}.{end % 10**9:09}")
    equal(sum(e["ph"] == "i" for e in found), sum(e[1] == "s:req" for e in events[100:201]), "events that are selected")
    found = chrome(k, trace, "-f", "id == 2")
    equal(sum(e["ph"] == "i" for e in found), sum(e[2].get("id") == 2 for e in events), "a filter")


def otlp(k, trace):
    """Returns the spans by their names, with their attributes as dictionaries."""
    traces = protobuf(k, "otlp", "Traces")()
    traces.ParseFromString(export(k, trace, "otlp").read_bytes())
    found = {}
    for resource in traces.resource_spans:
        for span in resource.scope_spans[0].spans:
            pairs = [(a.key, getattr(a.value, a.value.WhichOneof("value"))) for a in span.attributes]
            equal(len(dict(pairs)), len(pairs), f"different keys of {pairs}")
            found.setdefault(span.name, []).append((span, dict(pairs), {a.key for a in resource.resource.attributes}))
    return found


def test_otlp(k):
    """Spans with W3C identifiers, and those inside, decoded by OpenTelemetry's own definitions."""
    done = k.run([CLI, "record", "-o", k.top / "spans", "--", kymotest.APPS / "spans", "traced", "forms"])
    check("0 discarded" in done.stderr + done.stdout, done.stderr)
    spans = otlp(k, k.top / "spans")
    equal({name: len(found) for name, found in spans.items()}, {"shop:handle": 1, "shop:query": 1, "shop:request": 2}, "spans")
    (handle, fields, resource), = spans["shop:handle"]
    equal(handle.trace_id.hex(), "4bf92f3577b34da6a3ce929d0e0e4736", "trace identifier")
    equal((handle.span_id.hex(), handle.parent_span_id), ("f067aa0ba902b710", b""), "span identifier")
    equal((fields["status"], fields["end.status"]), (0, 200), "fields of the begin and of the end")
    check({"service.name", "process.pid"} <= resource, str(resource))
    (query, fields, _), = spans["shop:query"]
    equal((query.trace_id, query.parent_span_id), (handle.trace_id, handle.span_id), "whose child the inner span is")
    check(len(query.span_id) == 8 and query.span_id != handle.span_id, "its identifier")
    equal((fields["table"], fields["load"]), ("orders", 0.5), "fields")
    check(handle.start_time_unix_nano <= query.start_time_unix_nano <= query.end_time_unix_nano <= handle.end_time_unix_nano, "times")
    equal(sorted(fields["status"] for _, fields, _ in spans["shop:request"]), [200, 404], "asynchronous spans")


def test_empty(k):
    answers.Trace(answers.SPAN_EVENTS).write(k.top / "empty")
    equal(chrome(k, k.top / "empty"), [], "chrome")
    equal(export(k, k.top / "empty", "perfetto").read_bytes(), b"", "perfetto")
    check(sorted(p.name for p in export(k, k.top / "empty", "csv").iterdir()) == ["classes.csv"], "csv")


def test_errors(k):
    trace = answers.hostile(k.top / "trace")
    for options in (["--to=pdf", "-o", "x"], ["-o", "x"], ["--to=chrome"], ["--to=sqlite", "-o", "-"], ["--to=chrome", "-o", "x", "-f", "("]):
        k.kymo("export", trace, *options, status=2, cwd=k.top)
    for to in ("chrome", "perfetto", "csv", "ctf", "sqlite"):
        said = k.kymo("export", trace, f"--to={to}", "-o", k.top / "no" / "x", status=1).stderr
        check(f"cannot write {k.top}/no/x" in said, f"--to={to} does not say what failed: {said}")
    k.kymo("export", k.top / "missing", "--to=chrome", "-o", "x", status=1, cwd=k.top)
    equal([p for p in k.top.iterdir() if p.name.startswith("x")], [], "files of exports that failed")
    link = k.top / "link"  # as /dev/stdout is one
    link.symlink_to(k.top / "target")
    for to in ("chrome", "perfetto", "sqlite", "csv", "folded", "ctf"):
        check("no regular file" in k.kymo("export", trace, f"--to={to}", "-o", link, status=1).stderr, f"{to} to a link")
        check(link.is_symlink(), f"{to} replaced the link")
    check("no regular file" in k.kymo("diff", trace, trace, "--to=folded", "-o", link, status=1).stderr, "stacks to a link")
    check(link.is_symlink(), "diff replaced the link")
    # The name of the incomplete file may be one of another file, or a pipe that nobody reads.
    other = k.top / "other"
    other.write_text("of another program")
    for plant in (lambda path: os.link(other, path), os.mkfifo):
        for to in ("chrome", "sqlite"):
            plant(k.top / f"trace.{to}.part")
            export(k, trace, to)
    equal(other.read_text(), "of another program", "another file")


kymotest.main()
