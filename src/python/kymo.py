# SPDX-License-Identifier: MIT
"""
Traces of Kymo, LTTng and other tracers in Python, by libkymo-reader. Nothing is compiled.

    import kymo

    t = kymo.open("trace")
    for ts, size, ptr in t.events("libc:malloc", "ts", "size", "ptr"):
        ...
    frame = pandas.DataFrame(t.columns("libc:malloc", "ts", "size", "thread"))
    for span in t.spans("shop:*"):
        print(span.name, span.dur)
    for ts, dur, key in t.latency("net:request", "net:reply", key="id"):
        ...
    t.sql("SELECT name, count(*) FROM events GROUP BY name").fetchall()
    t.discarded

Times are integers: nanoseconds since 1970. Text that is no UTF-8 keeps its bytes by the error
handler "surrogateescape". A column that an event lacks is None, in numpy masked.

Columns are fields and contexts of events, as kymo view shows them ("size", "customer.name",
"list[2]", "$ctx.ip" for a context only), or one of ts, name, process, thread, cpu, stream. A field
with such a name is meant if "_" is behind it.

A Trace may be used by several threads, an iteration by one at a time.
"""

import collections
import contextlib
import ctypes
import operator
import os
import pathlib
import sqlite3
import threading
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p

__all__ = ["Error", "EventClass", "Span", "Trace", "open"]

INT64, UINT64, DOUBLE, TEXT = 1, 2, 3, 4
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
ANY = 0
NUMBERS = {INT64: (c_int64, "int64"), UINT64: (c_uint64, "uint64"), DOUBLE: (ctypes.c_double, "float64")}
# Fields that a name stands for: the first that an event has.
ALIASES = {"process": ("$ctx.vpid", "$ctx.pid"), "thread": ("$ctx.vtid", "$ctx.tid", "span_tid"), "cpu": ("$ctx.cpu_id",)}
FIXED = ("ts", "name", "stream")

EventClass = collections.namedtuple("EventClass", "name fields")
Span = collections.namedtuple("Span", "ts dur self name tid pid depth parent is_async id")


class Error(Exception):
    """A trace, an expression or a name that cannot be used. The text says why."""


# ---- the structures of <kymo/reader.h>


def structure(*fields):
    class Made(ctypes.Structure):
        _fields_ = [(name, kind) for kind, name in fields]

        def __repr__(self):
            return ", ".join(f"{name}={getattr(self, name)}" for _, name in fields)

    return Made


WARN = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
Options = structure((c_size_t, "size"), (WARN, "warn"), (c_void_p, "arg"), (c_int, "is_growing"))
ReaderError = structure((ctypes.c_uint, "position"), (c_char * 512, "text"))
Field = structure((c_char_p, "name"), (c_int, "scope"), (c_int, "type"), (ctypes.c_uint, "bits"), (ctypes.c_uint, "base"),
    (c_int, "is_array"), (c_size_t, "n_labels"), (c_void_p, "labels"))
Class = structure((c_char_p, "name"), (c_uint64, "id"), (c_uint64, "stream_class"), (c_size_t, "trace"), (c_int, "log_level"),
    (c_size_t, "n_fields"), (POINTER(Field), "fields"))
Totals = structure((c_size_t, "size"), (c_size_t, "n_traces"), (c_size_t, "n_streams"), (c_size_t, "n_classes"),
    (c_uint64, "n_packets"), (c_uint64, "n_bytes"), (c_uint64, "n_discarded"), (c_int, "has_times"), (c_int64, "begin_ns"),
    (c_int64, "end_ns"), (c_int, "is_cut"), (c_int64, "complete_from_ns"))
Column = structure((c_int, "type"), (c_void_p, "values"), (c_void_p, "valid"), (c_void_p, "ends"))
Batch = structure((c_size_t, "n"), (c_size_t, "n_columns"), (c_void_p, "item"), (c_void_p, "ns"), (c_void_p, "class_index"),
    (c_void_p, "stream"), (c_void_p, "lost"), (c_void_p, "end_ns"), (POINTER(Column), "columns"), (c_void_p, "internal"))
SpanBatch = structure((c_size_t, "n"), *((c_void_p, name) for name in ("begin_ns", "duration_ns", "self_ns", "number", "end_number",
    "parent", "depth", "name", "pid", "tid", "flags", "keys", "keys_ends")))


def find(name):
    """Returns the file of a library: in the linker's directories, or in this module's prefix."""
    try:
        ctypes.CDLL(name)
    except OSError:
        lib = pathlib.Path(__file__).resolve().parents[min(2, len(pathlib.Path(__file__).parents) - 1)]
        return next((str(p / name) for p in (lib, *lib.glob("*-linux-*")) if (p / name).exists()), name)
    return name


def load():
    """Loads the library, and declares its functions."""
    lib = ctypes.CDLL(find("libkymo-reader.so.0"))
    pointer = POINTER(c_void_p)
    for name, *arguments in (("kymo_reader_open", pointer, POINTER(c_char_p), c_size_t, POINTER(Options), POINTER(ReaderError)),
            ("kymo_reader_get_totals", c_void_p, POINTER(Totals)), ("kymo_reader_refresh", c_void_p),
            ("kymo_query_new", pointer, c_void_p), ("kymo_query_time", c_void_p, c_int64, c_int64),
            ("kymo_query_events", c_void_p, c_char_p), ("kymo_query_filter", c_void_p, c_char_p, POINTER(ReaderError)),
            ("kymo_query_column", c_void_p, c_char_p, c_int, POINTER(c_size_t)), ("kymo_query_column_type", c_void_p, c_size_t), ("kymo_query_exact", c_void_p, c_size_t),
            ("kymo_cursor_open", pointer, c_void_p), ("kymo_cursor_next", c_void_p, POINTER(POINTER(Batch))),
            ("kymo_spans_open", pointer, c_void_p, c_char_p, POINTER(ReaderError)),
            ("kymo_spans_next", c_void_p, POINTER(POINTER(SpanBatch)))):
        getattr(lib, name).argtypes = arguments
    for name in ("reader_close", "query_free", "cursor_close", "spans_close"):
        function = getattr(lib, f"kymo_{name}")
        function.argtypes, function.restype = [c_void_p], None
    lib.kymo_reader_n_classes.argtypes, lib.kymo_reader_n_classes.restype = [c_void_p], c_size_t
    lib.kymo_reader_class.argtypes, lib.kymo_reader_class.restype = [c_void_p, c_size_t], POINTER(Class)
    lib.kymo_spans_name.argtypes, lib.kymo_spans_name.restype = [c_void_p, c_uint32], c_char_p
    return lib


LIB = load()


def check(result, error=None, what="cannot read the trace"):
    if result >= 0:
        return
    text = decode(error.text) if error else ""
    if -result == 12:
        raise MemoryError(text or what)
    raise Error(text or f"{what}: {os.strerror(-result)}")


def encode(text):
    data = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise Error(f"a NUL in {text!r}")
    return data


def decode(data):
    return data.decode("utf-8", "surrogateescape")


def limit(time, default):
    """Returns a time, or the nearest one that the library takes."""
    return default if time is None else max(INT64_MIN, min(operator.index(time), INT64_MAX))


# ---- rows


def array(kind, address, n):
    """Returns n elements of a C array, without copying."""
    return (kind * n).from_address(address)


def holes(column, n):
    """Returns the rows without a value."""
    words = array(c_uint64, column.valid, (n + 63) // 64)[:]
    if all(word == 2**64 - 1 for word in words[:-1]) and words[-1] == (1 << ((n - 1) % 64 + 1)) - 1:
        return ()
    return [row for row in range(n) if not words[row // 64] >> row % 64 & 1]


def texts(values, ends, n):
    """Returns n texts of a column: bytes at `values`, the end of each at `ends`."""
    if not n:
        return []
    ends = array(c_uint32, ends, n)[:]
    data = ctypes.string_at(values, ends[-1])
    if data.isascii():
        data = data.decode("ascii")
        return [data[a:b] for a, b in zip([0, *ends], ends)]
    return [decode(data[a:b]) for a, b in zip([0, *ends], ends)]


def values_of(column, n):
    """Returns the values of a column as a list; None where there is none."""
    if column.type == TEXT:
        found = texts(column.values, column.ends, n)
    else:
        found = array(NUMBERS[column.type][0], column.values, n)[:]
    for row in holes(column, n):
        found[row] = None
    return found


def first_of(lists):
    """Returns a list with the first value that is there of several lists."""
    found = lists[0]
    for other in lists[1:]:
        if None not in found:
            break
        found = [b if a is None else a for a, b in zip(found, other)]
    return found


class Gate:
    """
    Threads use a reader together, or one thread refreshes it alone. A thread may share the reader
    again while it does so: the garbage collector can end an iteration anywhere. Threads that wait
    for a refresh come before the next one.
    """

    def __init__(self):
        self.changed = threading.Condition()  # protects all below
        self.users = collections.Counter()  # by thread
        self.n_waiting = 0  # to share it
        self.owner = None  # the thread that refreshes, or waits until the others have left

    @contextlib.contextmanager
    def shared(self):
        me = threading.get_ident()
        with self.changed:
            self.n_waiting += 1
            try:
                self.changed.wait_for(lambda: self.owner in (None, me) or me in self.users)
            finally:
                self.n_waiting -= 1
            self.users[me] += 1
        try:
            yield
        finally:
            with self.changed:
                self.users[me] -= 1
                if not self.users[me]:
                    del self.users[me]
                self.changed.notify_all()

    @contextlib.contextmanager
    def alone(self):
        with self.changed:
            self.changed.wait_for(lambda: self.owner is None and not self.n_waiting)
            self.owner = threading.get_ident()
        try:
            with self.changed:
                self.changed.wait_for(lambda: not self.users)
            yield
        finally:
            with self.changed:
                self.owner = None
                self.changed.notify_all()


class Reader:
    """An opened reader. It is closed once neither a Trace nor a query uses it."""

    def __init__(self, paths, options):
        self.handle = c_void_p()
        self.gate = Gate()
        self.names = []  # of classes
        self.options = options  # the library keeps the function in it
        error = ReaderError()
        check(LIB.kymo_reader_open(byref(self.handle), (c_char_p * len(paths))(*paths), len(paths), byref(options), byref(error)), error)

    def __del__(self):
        if self.handle:
            LIB.kymo_reader_close(self.handle)


class Query:
    """A query and the columns that it returns: by name, numbers of columns or one of FIXED."""

    def __init__(self, trace, patterns, names, begin, end, expression, is_exact=False):
        self.handle = c_void_p()
        self.reader = trace.opened()
        self.is_exact = is_exact  # a column may have integers beside floating-point numbers
        with self.reader.gate.shared():
            self.select(patterns, begin, end, expression)
            self.columns = [self.add(name) for name in names]

    def select(self, patterns, begin, end, expression):
        check(LIB.kymo_query_new(byref(self.handle), self.reader.handle))
        error = ReaderError()
        if patterns is not None:
            check(LIB.kymo_query_events(self.handle, encode(patterns)), what=f"bad pattern in {patterns!r}")
        check(LIB.kymo_query_time(self.handle, limit(begin, INT64_MIN), limit(end, INT64_MAX)))
        if expression is not None:
            check(LIB.kymo_query_filter(self.handle, encode(expression), byref(error)), error, what="bad filter")

    def add(self, name):
        if name in FIXED:
            return name
        if name.endswith("_") and (name[:-1] in FIXED or name[:-1] in ALIASES):
            name = name[:-1]
        elif name in ALIASES:
            return [self.add_field(field, INT64) for field in ALIASES[name]]
        column = self.add_field(name, ANY)
        if self.is_exact and LIB.kymo_query_column_type(self.handle, column) == DOUBLE:
            return [self.add_exact(name, INT64), self.add_exact(name, UINT64), column]
        return [column]

    def add_field(self, name, kind):
        number = c_size_t()
        check(LIB.kymo_query_column(self.handle, encode(name), kind, byref(number)), what=f"bad name of a column: {name!r}")
        return number.value

    def add_exact(self, name, kind):
        number = self.add_field(name, kind)
        check(LIB.kymo_query_exact(self.handle, number))
        return number

    def type_of(self, number):
        with self.reader.gate.shared():
            return LIB.kymo_query_column_type(self.handle, number)

    def steps(self, start, step, close, kind, take):
        """Yields take(batch, cursor) for each batch, valid until the next one or a refresh."""
        cursor, batch, gate = c_void_p(), POINTER(kind)(), self.reader.gate
        with gate.shared():
            start(byref(cursor))
        try:
            while True:
                with gate.shared():
                    result = step(cursor, byref(batch))
                    check(result)
                    if not result:
                        return
                    found = take(batch.contents, cursor)
                yield found
        finally:
            with gate.shared():
                close(cursor)

    def batches(self, take):
        """Yields take(batch, cursor) for each batch of events."""
        return self.steps(lambda cursor: check(LIB.kymo_cursor_open(cursor, self.handle)), LIB.kymo_cursor_next,
            LIB.kymo_cursor_close, Batch, take)

    def pairs(self, latency, take):
        """Yields take(batch, spans) for each batch of spans; spans knows their names."""
        error = ReaderError()
        return self.steps(lambda spans: check(LIB.kymo_spans_open(spans, self.handle, latency, byref(error)), error), LIB.kymo_spans_next,
            LIB.kymo_spans_close, SpanBatch, take)

    def column_of(self, batch, column):
        """Returns a column of a batch as a list."""
        if column == "ts":
            return array(c_int64, batch.ns, batch.n)[:]
        if column == "stream":
            return array(c_uint32, batch.stream, batch.n)[:]
        if column == "name":
            return [self.reader.names[i] for i in array(c_uint32, batch.class_index, batch.n)]
        return first_of([values_of(batch.columns[number], batch.n) for number in column])

    def __del__(self):
        if self.handle:
            LIB.kymo_query_free(self.handle)


# ---- traces


class Trace:
    """Opened traces. warnings: lines about damaged or missing data."""

    def __init__(self, *paths):
        self.reader = self.connection = None
        if not paths:
            raise Error("no trace is named")
        self.lock = threading.Lock()  # protects connection
        self.warnings = warnings = []
        self.paths = [encode(path) for path in paths]
        warn = WARN(lambda _, text: warnings.append(decode(text)))
        self.reader = Reader(self.paths, Options(ctypes.sizeof(Options), warn, None, 0))
        self.read_classes(self.reader)

    def read_classes(self, reader):
        handle = reader.handle
        found = [LIB.kymo_reader_class(handle, i).contents for i in range(LIB.kymo_reader_n_classes(handle))]
        reader.names = [decode(c.name) for c in found]
        self.classes = [EventClass(decode(c.name), [decode(c.fields[i].name) for i in range(c.n_fields)]) for c in found]

    def opened(self):
        if not self.reader:
            raise Error("the trace is closed")
        return self.reader

    def close(self):
        """Closes the traces, once the iterations over them have ended."""
        with self.lock:
            if self.connection:
                self.connection.close()
            self.reader = self.connection = None

    def __repr__(self):
        return f"kymo.open({', '.join(repr(decode(path)) for path in self.paths)})"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def refresh(self):
        """Looks for what was recorded since. Returns whether there is anything new."""
        reader = self.opened()
        with reader.gate.alone():
            result = LIB.kymo_reader_refresh(reader.handle)
            check(result)
            self.read_classes(reader)
        if result > 0:
            with self.lock:
                self.connection = None  # its cursors keep it
        return result > 0

    @property
    def totals(self):
        totals = Totals(size=ctypes.sizeof(Totals))
        reader = self.opened()
        with reader.gate.shared():
            check(LIB.kymo_reader_get_totals(reader.handle, byref(totals)))
        return totals

    @property
    def discarded(self):
        """The number of discarded events, from the heads of packets."""
        return self.totals.n_discarded

    @property
    def begin(self):
        """The begin of the first packet; None without a clock."""
        totals = self.totals
        return totals.begin_ns if totals.has_times else None

    @property
    def end(self):
        """The end of the last packet; None without a clock."""
        totals = self.totals
        return totals.end_ns if totals.has_times else None

    # -- events

    def query(self, patterns, names, begin, end, filter, is_exact=False):
        return Query(self, patterns, names or ("ts", "name"), begin, end, filter, is_exact)

    def events(self, patterns=None, *names, begin=None, end=None, filter=None):
        """
        Yields a tuple of the columns for each event whose name matches: "libc:*,!libc:free". begin,
        end: times. filter: an expression of kymo-filter(7). Without columns: ts, name.
        """
        query = self.query(patterns, names, begin, end, filter, is_exact=True)
        for columns in query.batches(lambda batch, _: [query.column_of(batch, column) for column in query.columns]):
            yield from zip(*columns)

    def batches(self, patterns=None, *names, begin=None, end=None, filter=None):
        """
        Yields for up to 4096 events a dictionary with a numpy array for each name. Numbers are not
        copied, so they are valid until the next step and until refresh(). A field with numbers that
        no type of 64 bits holds is float64, with the nearest values; events() has them as they are.
        """
        import numpy

        query = self.query(patterns, names, begin, end, filter)
        names = names or ("ts", "name")
        yield from query.batches(lambda batch, _: {
            name: self.numpy_column(numpy, query, batch, column) for name, column in zip(names, query.columns)})

    def numpy_column(self, numpy, query, batch, column):
        if column == "ts":
            return numpy.ctypeslib.as_array(array(c_int64, batch.ns, batch.n))
        if column == "stream":
            return numpy.ctypeslib.as_array(array(c_uint32, batch.stream, batch.n))
        if column == "name":
            return numpy.array(query.reader.names, dtype=object)[numpy.ctypeslib.as_array(array(c_uint32, batch.class_index, batch.n))]
        found = self.numpy_field(numpy, batch, column[0])
        for number in column[1:]:
            missing = numpy.ma.getmaskarray(found)
            if not missing.any():
                break
            other = self.numpy_field(numpy, batch, number)
            found = numpy.ma.where(missing, other, found)
        return found

    @staticmethod
    def numpy_field(numpy, batch, number):
        column, n = batch.columns[number], batch.n
        if column.type == TEXT:
            found = numpy.array(texts(column.values, column.ends, n), dtype=object)
        else:
            found = numpy.ctypeslib.as_array(array(NUMBERS[column.type][0], column.values, n))
        missing = holes(column, n)
        if not missing:
            return found
        mask = numpy.zeros(n, dtype=bool)
        mask[missing] = True
        return numpy.ma.array(found, mask=mask)

    def columns(self, patterns=None, *names, begin=None, end=None, filter=None):
        """Returns a dictionary with a numpy array of all events for each name."""
        import numpy

        parts = collections.defaultdict(list)
        for batch in self.batches(patterns, *names, begin=begin, end=end, filter=filter):
            for name, column in batch.items():
                parts[name].append(column.copy())
        if not parts:
            return self.empty_columns(numpy, patterns, names)
        return {name: (numpy.ma if any(numpy.ma.isMaskedArray(p) for p in columns) else numpy).concatenate(columns)
            for name, columns in parts.items()}

    def empty_columns(self, numpy, patterns, names):
        query = self.query(patterns, names, None, None, None)
        types = {"ts": "int64", "stream": "uint32", "name": object}

        def type_of(column):
            if isinstance(column, str):
                return types[column]
            kind = query.type_of(column[0])
            return object if kind == TEXT else NUMBERS[kind][1]

        return {name: numpy.empty(0, dtype=type_of(column)) for name, column in zip(names or ("ts", "name"), query.columns)}

    # -- spans

    def spans(self, patterns=None, begin=None, end=None):
        """
        Yields a Span for each span that ended, in the order of their ends. patterns: of names.
        Times limit the events that are read. parent: the id of the span of its thread in which it
        began, among those that are read; self: without such spans.
        """
        if patterns is not None:
            patterns = ",".join(f"{p}_begin,{p}_end" for p in patterns.split(","))
        names = {}
        query = self.query(patterns, (), begin, end, None)

        def take(batch, spans):
            n = batch.n
            numbers = array(c_uint32, batch.name, n)[:]
            for number in set(numbers).difference(names):
                names[number] = decode(LIB.kymo_spans_name(spans, number))
            return list(map(Span, array(c_int64, batch.begin_ns, n)[:], array(c_uint64, batch.duration_ns, n)[:],
                array(c_uint64, batch.self_ns, n)[:], [names[i] for i in numbers], known(batch.tid, n), known(batch.pid, n),
                array(c_uint32, batch.depth, n)[:], [p or None for p in array(c_uint64, batch.parent, n)[:]],
                [bool(f & 1) for f in array(c_uint8, batch.flags, n)[:]], array(c_uint64, batch.number, n)[:]))

        for found in query.pairs(None, take):
            yield from found

    def latency(self, begins, ends, key=None, order="nest", begin=None, end=None, filter=None):
        """
        Yields (ts, dur, key) for the time from each event `begins` to the event `ends` with the
        same key. key: names of fields with "+" between them; they stand in the tuple as text.
        order: "nest", the last that began ends first; or "fifo".
        """
        text = f"{begins}..{ends}" + (f",key={key}" if key else "") + f",{order}"
        query = self.query(None, (), begin, end, filter)

        def take(batch, _):
            n = batch.n
            return list(zip(array(c_int64, batch.begin_ns, n)[:], array(c_uint64, batch.duration_ns, n)[:], texts(batch.keys, batch.keys_ends, n)))

        for found in query.pairs(encode(text), take):
            yield from found

    # -- SQL

    def sql(self, statement, parameters=()):
        """
        Returns a cursor of sqlite3 with the rows of a statement: see kymo-sql in kymo(1). Threads
        share the tables that statements create; refresh() drops these if there is anything new.
        """
        with self.lock:
            self.opened()
            if not self.connection:
                self.connection = connect(self.paths)
            connection = self.connection
        try:
            return connection.execute(statement, parameters)
        except sqlite3.Error as e:
            raise Error(f"sql: {e}") from e


def known(address, n):
    return [None if number < 0 else number for number in array(c_int64, address, n)[:]]


def connect(paths):
    """Opens a database of sqlite3 with the tables of the traces."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.enable_load_extension(True)
        connection.load_extension(find("libkymo-sqlite.so"))
        connection.enable_load_extension(False)
    else:
        connection = connect_by_hook()
    connection.text_factory = decode
    try:
        connection.execute("SELECT kymo_open(?)", (b"\0".join(paths),)).fetchall()
    except sqlite3.Error as e:
        connection.close()
        raise Error(str(e)) from e
    return connection


def connect_by_hook():
    """Opens a database where Python's sqlite3 cannot load modules: SQLite calls ours then."""
    import _sqlite3

    library = ctypes.CDLL(_sqlite3.__file__)
    begin = ctypes.CDLL(find("libkymo-sqlite.so")).sqlite3_kymosqlite_init
    if library.sqlite3_auto_extension(begin):
        raise Error("sql: this Python's sqlite3 cannot load libkymo-sqlite.so")
    try:
        return sqlite3.connect(":memory:", check_same_thread=False)
    finally:
        library.sqlite3_cancel_auto_extension(begin)


def open(*paths):
    """Opens all traces below the directories, as one sequence of events. Raises Error."""
    return Trace(*paths)
