#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kymo report: the page in a real browser. It shows the reader's numbers and draws the slices, every
key of its help works, and nothing leaves the page.
"""

import base64
import json
import os
import re
import signal
import struct

import answers
import kymotest
from browser import Browser
from kymotest import APPS, CLI, SANITIZED, check, equal, wait_for

N = 50 if SANITIZED else 400
PAGE = "page.html"


def make_trace(k, channel=(), lossy=False):
    """lossy: all is recorded before the consumer writes."""
    k.start_daemon()
    trace = k.record("line:*", channel=channel, start=False)
    k.kymo("add-context", "-s", "s", "-t", "vpid,vtid,procname")
    k.kymo("start", "s")
    paused = kymotest.consumers(k) if lossy else []
    for consumer in paused:
        kymotest.stop(consumer)
    k.run([*kymotest.ONE_CPU, APPS / "timeline", N] if lossy else [APPS / "timeline", N])
    for consumer in paused:
        os.kill(consumer, signal.SIGCONT)
    k.kymo("stop", "s")
    k.stop_daemon()
    return trace


def make_page(k, trace, *options):
    page = k.top / PAGE
    reply = k.kymo_json("report", trace, "-o", page, *options)
    equal(reply["path"], str(page), "path")
    equal(reply["size"], page.stat().st_size, "size")
    return page, reply


def opened(k, browser, page, view=""):
    browser.open(f"file://{page}{view}")
    equal(browser.errors, [], "errors of the page's program")


# The cells of the table: name, count, durations.
CELLS = """
[...document.querySelectorAll('#spans tbody tr')].map(r => [...r.cells].map((c, i) =>
    i === 1 ? +c.textContent.replace(/,/g, '') : i ? parseInt(c.title) : c.textContent))
"""


def table(browser):
    """Returns the table of spans: durations in nanoseconds, from the titles of its cells."""
    rows = browser.js(CELLS)
    return {row[0]: dict(zip(("count", "total", "self", "mean", "min", "median", "p99", "max"), row[1:])) for row in rows}


def test_figures(k):
    """The table has what kymo stat has; names and fields stay text, and nothing is requested."""
    trace = make_trace(k)
    page, reply = make_page(k, trace)
    with Browser(k) as browser:
        opened(k, browser, page)
        shown, stat = table(browser), k.kymo_json("stat", trace)
        spans = {s["name"]: s for s in stat["spans"] if s["count"]}
        equal(set(shown), set(spans), "spans")
        for name, span in spans.items():
            for ours, theirs in (("count", "count"), ("total", "total_ns"), ("self", "self_ns"), ("min", "min_ns"), ("max", "max_ns")):
                equal(shown[name][ours], span[theirs], f"{name}: {ours}")
            for ours, theirs in (("median", "median_ns"), ("p99", "p99_ns")):
                check(abs(shown[name][ours] - span[theirs]) <= span[theirs] / 1000 + 1, f"{name}: {ours} {shown[name][ours]}, {span[theirs]}")
        recorded = stat["events"]
        equal((reply["events"], browser.js("head.events"), browser.js("T.length")), (recorded, recorded, recorded), "events")
        equal(browser.js("document.title"), f"{trace}: Kymo report", "title, which a recorded text would like to change")
        equal(browser.js("document.querySelectorAll('script:not([type])').length"), 1, "scripts")
        outside = [u for u in browser.requests if not re.match(r"(file://.*/page\.html|blob:|data:|about:)", u)]
        equal(outside, [], "requests")
        names = browser.accessible("rowheader") + browser.accessible("cell") + browser.accessible("gridcell")
        check("line:request" in names, f"the table is not accessible: {names[:10]}")


def test_losses(k):
    """The page begins with the number of discarded events; no span lasts over a loss."""
    trace = make_trace(k, channel=("--num-subbuf=2", "--subbuf-size=4K"), lossy=True)
    gap = "a program <b> ran unrecorded"
    with next(trace.rglob("metadata")).open("a") as f:
        f.write(f"\n/* gap: {gap} */\n")
    page, reply = make_page(k, trace)
    stat = k.kymo_json("stat", trace)
    check(stat["discarded"] and reply["discarded"] == stat["discarded"], f"discarded: {reply}, {stat['discarded']}")
    with Browser(k) as browser:
        opened(k, browser, page)
        equal(browser.js("document.getElementById('loss').textContent"), f"{stat['discarded']:,} events discarded", "what is said of it")
        check(gap in browser.js("document.getElementById('notes').textContent"), "what the metadata says is missing")
        equal(browser.js("head.losses.reduce((n, l) => n + l[2], 0)"), stat["discarded"], "events in losses")
        counted = {s["name"]: s["count"] for s in stat["spans"] if s["count"] and s["name"] != "line:order"}
        shown = {n: s["count"] for n, s in table(browser).items() if n != "line:order"}
        equal(shown, counted, "spans that are not cut")


def test_one_loss(k):
    t = answers.Trace(answers.SPAN_EVENTS)
    t.packet(0, [t.record(10, "s:outer_begin", 1, 0)], discarded=1, begin=5, end=20)
    done = k.kymo("report", t.write(k.top / "trace"), "-o", k.top / PAGE)
    check("1 event was discarded" in done.stderr, done.stderr)
    check('"gaps":[],"n_gaps":0' in (k.top / PAGE).read_text(), "comments about what is missing")


# Compares each row's pixels with a drawing of all its slices, one after the other.
NAIVE = """
(() => {
    let wrong = 0, columns = 0, seed = %d;
    const random = () => (seed = (seed * 1103515245 + 12345) %% 2147483648) / 2147483648;
    for (let turn = 0; turn < 40; turn++) {
        const d = span * Math.pow(10, -4 * random());
        v0 = random() * (span - d);
        v1 = v0 + d;
        scroll = chosenName = 0;
        draw();
        const w = W - LEFT, step = (v1 - v0) / w, empty = pack(BG);
        for (const r of layout) {
            if (r.kind !== 'slices' || TOP + r.y + r.h > H)
                continue;
            const wanted = new Uint8Array(w), {S, E} = r.row, line = (TOP + r.y + 5) * W + LEFT;
            for (let i = 0; i < S.length; i++) {
                const a = Math.floor((S[i] - v0) / step), b = Math.floor((E[i] - v0) / step);
                for (let x = Math.max(0, a); x < Math.min(w, Math.max(b, a + 1)); x++)
                    wanted[x] = 1;
            }
            for (let x = 0; x < w; x++, columns++)
                wrong += wanted[x] !== +(pixels[line + x] !== empty);
        }
    }
    return [columns, wrong];
})()
"""


# Tests of the page's program alone: it is the same in all builds.
of_the_page = kymotest.without_sanitizers


@of_the_page
def test_both_losses(k):
    """The page names all that is missing: events, packets, damage."""
    trace = k.top / "both"
    trace.mkdir()
    (trace / "metadata").write_text("/* CTF 1.8 */\ntypealias integer { size = 8; align = 8; } := u8;\ntrace { major = 1; minor = 8; byte_order = le; };\n"
        "stream { packet.context := struct { u8 content_size; u8 timestamp_begin; u8 timestamp_end; u8 events_discarded; u8 packet_seq_num; };"
        'event.header := struct { u8 timestamp; u8 id; }; };\nevent { name = "e"; id = 1; fields := struct { u8 a; }; };\n')
    (trace / "s").write_bytes(bytes((64, 1, 5, 0, 0, 2, 1, 7)) + bytes((64, 11, 15, 3, 2, 12, 1, 7)) + bytes((88, 21, 25, 3, 3, 22, 1, 7, 23, 9, 7)))
    page, _ = make_page(k, trace)
    with Browser(k) as browser:
        opened(k, browser, page)
        equal(browser.js("document.getElementById('loss').textContent"), "3 events discarded, 1 packet lost", "what is lost")
        equal(browser.js("document.getElementById('notes').textContent"), "a damaged place was left out", "notes")


def test_odd_counters(k):
    """A value that is no number does not hide the curve of the others."""
    trace = k.top / "counters"
    trace.mkdir()
    (trace / "metadata").write_text("/* CTF 1.8 */\ntypealias integer { size = 8; align = 8; } := u8;\ntrace { major = 1; minor = 8; byte_order = le; };\n"
        "stream { event.header := struct { u8 timestamp; }; };\n"
        'event { name = "e"; fields := struct { floating_point { exp_dig = 11; mant_dig = 53; align = 8; } counter; }; };\n')
    values = (1.5, float("nan"), 3.0, float("inf"), 2.0)
    (trace / "s").write_bytes(b"".join(struct.pack("<Bd", i, v) for i, v in enumerate(values)))
    page, _ = make_page(k, trace)
    with Browser(k) as browser:
        opened(k, browser, page)
        shown = browser.js("tracks.filter(t => t.kind === 'counter').map(t => [[...t.T], [...t.V], t.least, t.greatest])")
        equal(shown, [[[0, 2, 4], [1.5, 3, 2], 1.5, 3]], "the curve")


def test_drawing(k):
    """In random windows, a column of pixels is filled if a slice is there."""
    page, _ = make_page(k, make_trace(k))
    seed = int.from_bytes(os.urandom(3), "little")
    print(f"# seed {seed}", flush=True)
    with Browser(k) as browser:
        opened(k, browser, page)
        columns, wrong = browser.js(NAIVE % seed)
        check(columns > 10000, f"only {columns} columns were drawn")
        equal(wrong, 0, "columns of pixels that differ from a drawing of all slices")


@of_the_page
def test_keys(k):
    """Everything that the page's help names."""
    page, _ = make_page(k, make_trace(k))
    with Browser(k) as browser:
        opened(k, browser, page)
        view = lambda: browser.js("[v0, v1]")
        span = browser.js("span")
        browser.js("canvas.focus()")
        wide = view()
        browser.key("w")
        near = view()
        check(near[0] > wide[0] and near[1] < wide[1], f"W: {wide}, {near}")
        browser.key("d")
        check(view()[0] > near[0], "D")
        browser.key("a")
        browser.key("s")
        check(view()[1] - view()[0] > near[1] - near[0], "S")
        browser.key("0")
        check(view()[0] <= 0 and view()[1] >= span, f"0: {view()}")
        browser.js("chooseName(head.names.indexOf('line:request'))")
        browser.key("l")
        longest = table(browser)["line:request"]["max"] if not browser.js("range") else None
        equal(browser.js("chosen.row.E[chosen.i] - chosen.row.S[chosen.i]"), browser.js("Math.max(...measure(0, span).find(m => m.text === 'line:request').durations)"), f"L: {longest}")
        browser.key("f")
        check(view()[0] < browser.js("chosen.row.S[chosen.i]") and view()[1] > browser.js("chosen.row.E[chosen.i]"), "F")
        browser.key("m")
        equal(browser.js("range"), browser.js("[chosen.row.S[chosen.i], chosen.row.E[chosen.i]]"), "M")
        wait_for(lambda: browser.js("document.getElementById('spans-title').textContent").startswith("selected"), "the table to follow the selection")
        equal(table(browser)["line:request"]["count"] >= 1, True, "requests in the selection")
        browser.key("Escape")
        equal((browser.js("range"), browser.js("chosen")), (None, None), "Escape")
        browser.js("chooseName(head.names.indexOf('line:step'))")
        browser.js("show(0, span)")
        browser.key("n")
        first = browser.js("chosen.row.S[chosen.i]")
        browser.key("n")
        check(browser.js("chosen.row.S[chosen.i]") > first, "N")
        browser.key("p")
        equal(browser.js("chosen.row.S[chosen.i]"), first, "P")
        browser.key("?")
        equal(browser.js("document.getElementById('help').open"), True, "?")
        browser.js("document.getElementById('help').close(); canvas.focus()")
        browser.key("c")
        check("command copied" in browser.js("document.getElementById('position').textContent"), "C")
        command = browser.js("command()").split()
        equal(command[:2], ["kymo", "report"], "the command that C copies")
        k.kymo(*command[1:], "-o", k.top / "part.html")
        browser.key("/")
        equal(browser.js("document.activeElement.id"), "find", "/")


# The place of the longest request of some thread on the screen.
LONGEST_REQUEST = """
(() => {
    const isRequest = r => r.kind === 'slices' && head.names[r.row.N[0] >> 2] === 'line:request';
    const r = layout.find(isRequest), box = canvas.getBoundingClientRect();
    const i = longest(r.row, 0, r.row.S.length), middle = (r.row.S[i] + r.row.E[i]) / 2;
    return {x: box.left + xOf(middle), y: box.top + TOP + r.y - scroll + 7, i};
})()
"""


@of_the_page
def test_mouse(k):
    """A click selects a slice, a drag moves, with shift it selects a range; the wheel zooms."""
    page, _ = make_page(k, make_trace(k))
    with Browser(k) as browser:
        opened(k, browser, page)
        place = browser.js(LONGEST_REQUEST)
        browser.drag(place["x"], place["y"], place["x"], place["y"])
        equal(browser.js("chosen && [chosen.i, head.names[chosenName]]"), [place["i"], "line:request"], "the slice under the mouse")
        browser.mouse("mouseWheel", place["x"], place["y"], deltaX=0, deltaY=-300)
        wait_for(lambda: browser.js("v1 - v0 < span"), "the wheel to zoom")
        before = browser.js("v0")
        browser.drag(place["x"], 400, place["x"] - 100, 400)
        check(browser.js("v0") > before, "the view does not follow a drag")
        browser.drag(500, 400, 700, 400, shift=True)
        equal(browser.js("Math.round(xOf(range[1]) - xOf(range[0]))"), 200, "pixels of the range")


# A filter as the page shows it: how many events pass, and how many the tracks have.
FILTERED = """
(async () => {
    document.getElementById('filter').value = %s;
    await setFilter(document.getElementById('filter').value);
    const n = passing ? passing.length : T.length;
    const isInvalid = document.getElementById('filter').getAttribute('aria-invalid');
    return [n, tracks.reduce((sum, t) => sum + t.events.length, 0), isInvalid];
})()
"""


def test_text(k):
    """Search, the filter, the list of events, and a link restore what they should."""
    trace = make_trace(k)
    page, _ = make_page(k, trace)
    with Browser(k) as browser:
        opened(k, browser, page)
        lines = k.kymo("view", trace, "--fields=number", "-e", "line:request_begin").stdout.splitlines()
        wait_for(lambda: browser.js("document.querySelectorAll('#list-rows div').length > 0"), "events to be listed")
        shown = browser.js("fieldsOf(T.findIndex((t, i) => head.names[C[i]] === 'line:request_begin'))")
        whole = k.kymo("view", trace, "-e", "line:request_begin").stdout.splitlines()[0]
        check(whole.endswith(shown), f"{shown!r} is not the end of {whole!r}")
        # The filter's verdict for each event against that of kymo view.
        selected = k.kymo("view", trace, "-e", "line:request_*,!*_end", "-f", "number >= 7 && number < 9").stdout.splitlines()
        check(len(selected) < len(lines), "the filter passes everything")
        equal(browser.js(FILTERED % json.dumps("line:request_*,!*_end if number >= 7 && number < 9")), [len(selected), len(selected), "false"], "events that pass the filter")
        wait_for(lambda: browser.js("document.getElementById('events-title').textContent").startswith(f"{len(selected)} events that pass"), "the list to be filtered")
        equal(browser.js(FILTERED % '""')[0], browser.js("T.length"), "events without a filter")
        text = f"number = {N - 1}"
        found = browser.js(f"search({json.dumps(text)})")
        check(text in browser.js(f"fieldsOf({found})"), "what was found")
        check(browser.js(f"T[{found}] > v0 && T[{found}] < v1"), "the view shows what was found")
        equal(browser.js("search('nowhere in this trace')"), -1, "what is not there")
        browser.js("document.getElementById('filter').value = 'line:note'")
        browser.js("setFilter('line:note').then(() => { range = [span * .3, span * .4]; show(span * .2, span * .5) })")
        wait_for(lambda: "r=" in browser.js("location.hash") and "f=" in browser.js("location.hash"), "the link")
        link, state = browser.js("location.hash"), browser.js("[v0, v1, ...range].map(Math.round)")
        opened(k, browser, page, link)
        equal(browser.js("[v0, v1, ...range].map(Math.round)"), state, "the view that a link restores")
        wait_for(lambda: browser.js("passing && passing.length") == 3 * N, "the filter that a link restores")
        # Links to an event, and to a slice.
        browser.js("mark(passing[5])")
        wait_for(lambda: "i = " in browser.js("document.getElementById('detail').textContent"), "the fields of the selected event")
        wait_for(lambda: "e=" in browser.js("location.hash"), "the link to an event")
        marked, link = browser.js("marked"), browser.js("location.hash")
        opened(k, browser, page, link)
        equal(browser.js("marked"), marked, "the event that a link selects")
        browser.js("setFilter(''); chooseName(head.names.indexOf('line:step')); chooseLongest()")
        wait_for(lambda: "s=" in browser.js("location.hash"), "the link to a slice")
        slice, link = browser.js("[chosen.t.number, chosen.i]"), browser.js("location.hash")
        opened(k, browser, page, link)
        equal(browser.js("[chosen.t.number, chosen.i]"), slice, "the slice that a link selects")
        # A link may be anybody's.
        opened(k, browser, page, "#t=x,1e999&r=1&s=%7B%22key%22&e=[1,2]&n=%00&f=(((&rows=%F0")
        said = lambda: any("JavaScript" in text for text in browser.accessible("StaticText"))
        check(not said(), "the page asks for scripts although they run")
        browser.call("Emulation.setScriptExecutionDisabled", browser.session, value=True)
        browser.call("Page.reload", browser.session)
        wait_for(said, "the page without scripts to say what it needs")


# Filters over all kinds of fields: the page decides as kymo view does.
FILTERS = ["a == -128", "a < 0 && b != -5", "h > 18446744073709551614", "e == 0x1234 || a == 3", "a == 1.5", "a > 1e300", "!(a > 0)", "a + 1 == -127",
    'utf8 == "*日本*"', 'special == "tab\\t*"', 'empty == ""', 'last != "x*"', "e[1] == \"ein\"", "a[3] == 127", "a[9] == 1 || mark == 7", "mark == 7 && !(n < 64)",
    "f31 == \"last\" && f3 * 2 == 6", "$ctx.vpid > 0 && n % 2 == 1", "$ctx.vtid == 0", "(a & 3) == 3", "a", "!a", "-a == 128", "n << 1 == 128", "nothing == 1"]


def test_filters(k):
    """The filter's verdict on each event of many types is that of kymo view."""
    k.start_daemon()
    trace = k.record("fields:*")
    k.app("fields")
    k.kymo("stop", "s")
    k.stop_daemon()
    page, _ = make_page(k, trace)
    elements = k.kymo("view", trace, "-f", "a[3] == 127").stdout.splitlines()
    equal([line.partition(": ")[0].split()[-1] for line in elements], ["fields:arrays", "fields:sequences"], "elements of an array and of a sequence")
    with Browser(k) as browser:
        opened(k, browser, page)
        for text in FILTERS:
            wanted = len(k.kymo("view", trace, "-f", text).stdout.splitlines())
            equal(browser.js(FILTERED % json.dumps(f"* if {text}")), [wanted, wanted, "false"], text)
        for text in ("a ==", "(a", "a b", "1 +", "a[x] == 1", "a == \"x", "@"):
            equal(browser.js(FILTERED % json.dumps(f"if {text}"))[2], "true", f"{text}: refused")
        equal(browser.errors, [], "errors of the page's program")


def test_foreign_fields(k):
    """Names with blanks, options and blocks of data hide no other field from the filter."""
    bits = lambda n, **more: {"type": "fixed-length-unsigned-integer", "length": n, "byte-order": "little-endian", **more}
    optional = lambda n: {"type": "optional", "selector-field-location": {"path": ["n"]}, "selector-field-ranges": [[n, n]], "field-class": bits(8)}
    members = [("n", bits(8)), ("a b", {"type": "null-terminated-string"}), ("o", optional(9)), ("p", optional(1)), ("block", {"type": "static-length-blob", "length": 2}),
        ("s", {"type": "structure", "member-classes": [{"name": "x y", "field-class": bits(8)}, {"name": "z", "field-class": bits(8)}]}), ("mark", bits(8))]
    structure = lambda members: {"type": "structure", "member-classes": [{"name": name, "field-class": field} for name, field in members]}
    fragments = ({"type": "preamble", "version": 2}, {"type": "clock-class", "id": "c", "frequency": 1000000000},
        {"type": "data-stream-class", "default-clock-class-id": "c", "event-record-header-field-class": structure([("t", bits(8, roles=["default-clock-timestamp"]))])},
        {"type": "event-record-class", "name": "e", "payload-field-class": structure(members)})
    trace = k.top / "foreign"
    trace.mkdir()
    (trace / "metadata").write_text("".join(f"\x1e{json.dumps(f)}\n" for f in fragments))
    (trace / "s").write_bytes(bytes((1, 1)) + b"x, y = {\0" + bytes((7, 0x0c, 0x1f, 2, 3, 4)) + bytes((2, 1)) + b"\0" + bytes((8, 1, 2, 5, 6, 9)))
    page, _ = make_page(k, trace)
    with Browser(k) as browser:
        opened(k, browser, page)
        for text in ("mark == 4", "mark > 0", "p == 7", "s.z == 6", "n == 1 && mark == 4", "o == 1 || mark == 4", "!(o == 1) && mark == 9"):
            wanted = len(k.kymo("view", trace, "-f", text).stdout.splitlines())
            equal(browser.js(FILTERED % json.dumps(f"* if {text}")), [wanted, wanted, "false"], text)
        wanted = [["n", "1"], ["a b", '"x, y = {"'], ["o", "<none>"], ["p", "{ 7 }"], ["block", "{ 0c 1f }"], ["s", "{ x y = 2, z = 3 }"], ["mark", "4"]]
        equal(browser.js("fieldsOf(0).then(text => language.fields(text))"), wanted, "fields of an event")


def test_part(k):
    """--detail lists a part, and says so; selections are those of kymo view."""
    trace = make_trace(k)
    all_lines = k.kymo("view", trace).stdout.splitlines()
    page, reply = make_page(k, trace, "--detail=100")
    equal((reply["events"], reply["listed"]), (len(all_lines), 100), "events, and those that are listed")
    with Browser(k) as browser:
        opened(k, browser, page)
        check("100 are listed" in browser.js("document.getElementById('notes').textContent"), "the page does not say that events are left out")
        last = browser.js("fieldsOf(99)")
        check(all_lines[-1].endswith(last), f"{last!r} is not the end of {all_lines[-1]!r}")
        first = browser.js("fieldsOf(49)")
        check(all_lines[49].endswith(first), f"{first!r} is not the end of {all_lines[49]!r}")
        equal(browser.js("tracks.filter(t => t.bins).reduce((n, t) => n + t.bins.reduce((a, b) => a + b), 0)"), len(all_lines), "events that are drawn")
    _, reply = make_page(k, trace, "-e", "line:step_*")
    equal(reply["events"], sum("line:step_" in line for line in all_lines), "events of a selection")
    equal(reply["slices"], sum("line:step_begin" in line for line in all_lines), "slices of a selection")


def test_findings(k):
    """--explain puts what kymo explain says on the page, with links to its examples."""
    trace = make_trace(k)
    page, _ = make_page(k, trace, "--explain=line:request")
    explained = k.kymo_json("explain", trace, "--span=line:request")
    with Browser(k) as browser:
        opened(k, browser, page)
        equal(browser.js("document.querySelector('#findings b').textContent"), explained["first_line"], "the first line")
        links = [f["example"] for f in explained["findings"] if f.get("example")]
        hrefs = browser.js("[...document.querySelectorAll('#findings a')].map(a => a.getAttribute('href'))")
        begin = browser.js("Number(BigInt(head.begin) % 1000000000n)")
        second = browser.js("String(BigInt(head.begin) / 1000000000n)")
        offset = int(second) * 10**9 + begin
        equal([h.partition("&r=")[2] for h in hrefs], [f"{e['begin_ns'] - offset},{e['end_ns'] - offset}" for e in links], "links")
        if links:
            browser.js("document.querySelector('#findings a').click()")
            wait_for(lambda: browser.js("range"), "the link to select its example")
    check("no span 'line:nothing'" in k.kymo("report", trace, "-o", page, "--explain=line:nothing", status=1).stderr, "a span that is not there")


# Clicks the bar of the histogram with the fewest slices; returns the durations that it names, and
# that of the slice which is then selected.
CLICK_BAR = """
(() => {
    const bars = [...document.querySelectorAll('#bars rect')];
    const bar = bars.reduce((a, b) => +b.dataset.n < +a.dataset.n ? b : a);
    const name = measured[0].text;
    bar.dispatchEvent(new MouseEvent('click'));
    const length = chosen.row.E[chosen.i] - chosen.row.S[chosen.i];
    return [name, head.names[chosenName], length, bar.textContent];
})()
"""
# The greatest ratio that the contrast of two colours has, of states, and of text on any slice:
# https://www.w3.org/TR/WCAG21/#contrast-minimum
CONTRASTS = """
(() => {
    const light = c => luminance(c) + .05;
    const ratio = (a, b) => Math.max(light(a), light(b)) / Math.min(light(a), light(b));
    const states = Object.values(stateColours);
    const between = states.flatMap((a, i) => states.slice(i + 1).map(b => ratio(a, b)));
    const slices = [];
    for (let i = 0; i < 2000; i++) {
        head.names.push('name ' + i);
        slices.push(ratio(INK, colour(head.names.length - 1)));
    }
    return [ratio([0, 0, 0], [255, 255, 255]), Math.min(...between), Math.min(...slices)];
})()
"""


def test_views(k):
    """Bars of the histogram lead to their slices; two fingers zoom; colours differ in lightness."""
    page, _ = make_page(k, make_trace(k))
    with Browser(k) as browser:
        opened(k, browser, page)
        check("logarithmic" in browser.js("document.querySelector('#bars h2').textContent"), "the scale of the histogram")
        equal(browser.js("(table => table.scrollWidth - table.clientWidth)(document.querySelector('#spans .body'))"), 0, "hidden columns of the table")
        name, chosen, length, title = browser.js(CLICK_BAR)
        equal(chosen, name, f"the name behind the bar {title}")
        check(length > 0, f"the slice behind the bar {title}: {length} ns")
        greatest, between, text = browser.js(CONTRASTS)
        check(abs(greatest - 21) < 0.01, f"the contrast of black and white is {greatest}")
        check(between >= 1.2, f"two states differ only by {between:.2f} in lightness")
        check(text >= 4.5, f"text on a slice has a contrast of {text:.2f} only")
        browser.js("show(0, span)")
        box = browser.js("(({left, top, width, height}) => ({left, top, width, height}))(canvas.getBoundingClientRect())")
        fingers = lambda *xs: [{"x": box["left"] + x, "y": box["top"] + 100, "id": i} for i, x in enumerate(xs)]
        middle = browser.js("(LEFT + W) / 2")
        for kind, points in (("Start", fingers(middle - 50)), ("Start", fingers(middle - 50, middle + 50)), ("Move", fingers(middle - 150, middle + 150)), ("End", [])):
            browser.call("Input.dispatchTouchEvent", browser.session, type=f"touch{kind}", touchPoints=points)
        zoomed = browser.js("(v1 - v0) / span")
        check(0.2 < zoomed < 0.6, f"two fingers: {zoomed} of the whole are shown")


# Keeps a picture of the page for paper: this handler runs after the page's own.
PRINTED = """
addEventListener('beforeprint', () => {
    const table = document.querySelector('#spans .body'), list = document.getElementById('list');
    const corner = cx.getImageData(canvas.width - 1, canvas.height - 1, 1, 1).data;
    window.printed = [dark, W, canvas.width / W, table.scrollWidth - table.clientWidth,
        list.offsetHeight, [...corner].slice(0, 3)];
})
"""


@of_the_page
def test_paper(k):
    """
    A fine screen has all its pixels. Paper is light, has the whole table and the flame graph, and
    no list of all events.
    """
    page, _ = make_page(k, make_trace(k))
    with Browser(k, "--window-size=1300,800", "--force-device-scale-factor=1.5") as browser:
        opened(k, browser, page)
        browser.call("Emulation.setEmulatedMedia", browser.session, features=[{"name": "prefers-color-scheme", "value": "dark"}])
        wait_for(lambda: browser.js("dark"), "dark colours")
        equal(browser.js("[W, canvas.width, flame.width / flame.offsetWidth]"), [1300, 1950, 1.5], "width, pixels, density of the flame graph")
        browser.js(PRINTED)
        pdf = base64.b64decode(browser.call("Page.printToPDF", browser.session)["data"])
        equal(browser.js("printed"), [False, 980, 2, 0, 0, [255, 255, 255]], "dark, width, density, hidden columns, height of the list, colour")
        equal(len(re.findall(rb"/Type\s*/Page\b", pdf)), 1, "sheets")
        equal(browser.js("[dark, W, canvas.width]"), [True, 1300, 1950], "dark, width, pixels after it was printed")


# The states of thread 7: begin, end, name.
STATES = """
(() => {
    const r = tracks.find(t => t.kind === 'thread' && t.id === 7).state;
    return [...r.S].map((s, i) => [s, r.E[i], head.names[r.N[i] >> 2]]);
})()
"""


def states_trace(lost_from=None):
    """
    A thread that runs from 100 to 300, could run until 500, runs until 700, and waits. lost_from:
    events are lost between this time and 600.
    """
    t = Foreign()
    for ns, prev, state, following in ((100, 0, 0, 7), (300, 7, 0, 8), (500, 8, 1, 7), (700, 7, 1, 0), (900, 0, 0, 8)):
        if lost_from and ns == 500:
            t.packet(100, lost_from, 0)
        if lost_from and ns == 700:
            t.data = b""  # the switch at 500
            t.packet(600, 600, 3)
        t.data += struct.pack("<HQII", 4, ns, 1, 1) + b"p\0" + struct.pack("<IIqI", 0, prev, state, following) + b"other\0"
    if lost_from:
        t.packet(700, 900, 3)
    return t


def test_states(k):
    """States of threads are those that the scheduler's events say, in time and in colour."""
    page, _ = make_page(k, states_trace().write(k.top / "states"))
    with Browser(k) as browser:
        opened(k, browser, page)
        equal(browser.js(STATES), [[0, 200, "running"], [200, 400, "ready"], [400, 600, "running"], [600, 800, "waiting"]], "states of the thread, from the first event on")
        pixel = """
            (() => {
                const r = layout.find(r => r.kind === 'state' && r.t.id === 7);
                const x = Math.round(xOf(%d));
                return pixels[(TOP + r.y - scroll + 3) * W + x] === pack(stateColours[%s]);
            })()
        """
        for at, name in ((100, "running"), (300, "ready"), (500, "running"), (700, "waiting")):
            equal(browser.js(pixel % (at, json.dumps(name))), True, f"the colour at {at} is that of {name}")
        # Events are missing from 400 to 600: the thread has no known state there.
        page, reply = make_page(k, states_trace(lost_from=400).write(k.top / "lossy"))
        equal(reply["discarded"], 3, "discarded events")
        opened(k, browser, page)
        equal(browser.js(STATES), [[0, 200, "running"], [200, 300, "ready"], [600, 800, "waiting"]], "states around a loss")


HOSTILE = "<img src=x onerror=broken()></script><script>broken()</script>"
METADATA = """/* CTF 1.8 */
typealias integer { size = 16; align = 8; } := u16;
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
typealias integer { size = 64; align = 8; signed = true; } := i64;
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000000000; };
stream {
    event.header := struct {
        u16 id;
        integer { size = 64; align = 8; map = clock.c.value; } timestamp;
    };
    event.context := struct { u32 vpid; u32 vtid; string procname; };
};
event { name = "x:span_begin"; id = 0; fields := struct { u32 span_tid; string text; }; };
event { name = "x:span_end"; id = 1; fields := struct { u32 span_tid; }; };
event { name = "x:count"; id = 2; fields := struct { i64 counter; }; };
event { name = "sched_switch"; id = 4; fields := struct {
    u32 cpu_id; u32 prev_tid; i64 prev_state; u32 next_tid; string next_comm; }; };
event { name = "%s"; id = 3; fields := struct { string text; }; };
""" % HOSTILE


PACKET = """    packet.context := struct {
        integer { size = 64; align = 8; map = clock.c.value; } timestamp_begin;
        integer { size = 64; align = 8; map = clock.c.value; } timestamp_end;
        u64 content_size; u64 packet_size; u64 events_discarded;
    };
"""


class Foreign:
    """A trace of any events, written by hand."""

    def __init__(self):
        self.data = self.packets = b""

    def event(self, number, ns, vpid, vtid, fields, name="p"):
        self.data += struct.pack("<HQII", number, ns, vpid, vtid) + name.encode() + b"\0" + fields

    def span(self, begin, end, vtid, text="", vpid=1):
        self.event(0, begin, vpid, vtid, struct.pack("<I", vtid) + text.encode() + b"\0")
        self.event(1, end, vpid, vtid, struct.pack("<I", vtid))

    def packet(self, begin, end, discarded):
        """Puts the events since the last packet into one; with the total of discarded events."""
        bits = (len(self.data) + 40) * 8
        self.packets += struct.pack("<QQQQQ", begin, end, bits, bits, discarded) + self.data
        self.data = b""

    def write(self, directory):
        directory.mkdir()
        metadata = METADATA.replace("stream {\n", f"stream {{\n{PACKET}", 1) if self.packets else METADATA
        (directory / "metadata").write_text(metadata)
        (directory / "stream").write_bytes(self.packets + self.data)
        return directory


# Each view draws; nothing that the trace says is run as a program.
USED = """
(async () => {
    window.broken = () => { document.title = 'broken'; };
    for (const part of [1, 30, 1e6]) {
        show(span / 3, span / 3 + span / part);
        draw();
    }
    show(0, span);
    if (T.length)
        mark(T.length >> 1);
    await renderList();
    await showDetails();
    await search('text');
    for (let y = TOP; y < H; y += 7)
        await showTip(W / 2, y);
    scrollBy(1e9);
    draw();
    return [T.length, measured.reduce((n, m) => n + m.count, 0), layout.length];
})()
"""


def test_extremes(k):
    """Traces of hostile or extreme contents make pages that work; figures stay right."""
    one, huge, names, many = Foreign(), Foreign(), Foreign(), Foreign()
    one.event(2, 5, 1, 1, struct.pack("<q", -7))
    huge.span(1, 10**18, 1)
    for i, value in enumerate((-(2**63), 2**63 - 1, 0, -1)):
        huge.event(2, 10**18 + i, 1, 1, struct.pack("<q", value))
    for i in range(20):
        names.event(3, 1000 + i, 1, 1, HOSTILE.encode() + b"\0", name=HOSTILE)
        names.span(2000 + 10 * i, 2005 + 10 * i, 1, text="long " * 20000)
    n = 500 if SANITIZED else 3000
    for i in range(n):
        many.event(0, 1000 + i, i // 8, i + 1, struct.pack("<I", i + 1) + b"\0")
    for i in range(n):
        many.event(1, 100000 + i, i // 8, i + 1, struct.pack("<I", i + 1))
    with Browser(k) as browser:
        for name, trace, wanted in (("one", one, [1, 0]), ("huge", huge, [6, 1]), ("names", names, [60, 20]), ("many", many, [2 * n, n])):
            page, reply = make_page(k, trace.write(k.top / name))
            equal(reply["events"], wanted[0], f"{name}: events")
            opened(k, browser, page)
            result = browser.js(USED)
            equal(result[:2], wanted, f"{name}: events, slices")
            equal(browser.errors, [], f"{name}: errors of the page's program")
            equal(browser.js("document.title"), f"{k.top / name}: Kymo report", f"{name}: title")
            equal(browser.js("document.querySelectorAll('img, iframe').length"), 0, f"{name}: elements")
            equal(browser.js("[spans, flames].map(e => e.offsetWidth > 0)"), [wanted[1] > 0] * 2, f"{name}: table and flame graph")
            if name == "many":
                check(result[2] > 2 * n, f"rows: {result[2]}")
    # Bytes at the end that are no event: the page says so.
    one.data += struct.pack("<HQII", 2, 9, 1, 1)
    page, reply = make_page(k, one.write(k.top / "damaged"))
    equal(reply["events"], 1, "events of a damaged trace")
    with Browser(k) as browser:
        opened(k, browser, page)
        check("damaged" in browser.js("document.getElementById('notes').textContent"), "the page does not say that the trace is damaged")


def test_extreme_times(k):
    """Events far from each other have their bins; a range of more than 2^63 ns is refused."""
    for name, offset, times, status in (("long", 0, [0, 2**54], 0), ("longest", 0, [0] + [2**62] * 9 + [2**63 - 1], 0),
            ("negative", -(2**33), [0, 10**12, 2**63 - 1], 0), ("beyond", -9223372037, [0, 10**12, 10**19, 2**64 - 3], 1)):
        trace = Foreign()
        for ns in times:
            trace.event(2, ns, 1, 1, struct.pack("<q", 0))
        path = trace.write(k.top / name)
        (path / "metadata").write_text(METADATA.replace("freq = 1000000000;", f"freq = 1000000000; offset_s = {offset};"))
        done = k.run([CLI, "report", path, "-o", k.top / PAGE, "--detail=1"], status=status)
        check(status == 0 or "too large" in done.stderr.splitlines()[-1], done.stderr)
        equal("clock begins before 1677" in done.stderr, name == "beyond", f"{name}: {done.stderr}")


def test_page_without_browser(k):
    """One line for each way in which no page can be written; other files stay as they are."""
    trace = make_trace(k)
    mine = k.top / "mine.html"
    mine.write_text("not a report")
    check("is not a report" in k.kymo("report", trace, "-o", mine, status=1).stderr, "another's file")
    equal(mine.read_text(), "not a report", "another's file")
    link = k.top / "link"  # as /dev/stdout is one
    link.symlink_to(k.top / "target")
    k.kymo("report", trace, "-o", link, status=1)
    check(link.is_symlink(), "a link is replaced")
    check("/dev/full" in k.kymo("report", trace, "-o", "/dev/full", status=1).stderr, "a device")
    k.kymo("report", trace, "-o", k.top / "nowhere" / "page.html", status=1)
    said = k.run([CLI, "report", trace, "-o", k.top / PAGE, "-e", "nothing:*"], status=1).stderr.splitlines()
    equal(said, ["kymo: no event of the trace matches 'nothing:*'", f"kymo: no event with a time is selected in {trace}"], "nothing selected")
    k.kymo("report", trace, "--detail=many", status=2)
    equal(sorted(p.name for p in k.top.glob("*.html*")), ["mine.html"], "files")
    (k.top / f"{PAGE}.part").write_text("what a killed one has left")
    page, _ = make_page(k, trace)
    equal(sorted(p.name for p in k.top.glob("*.html*")), sorted(["mine.html", PAGE]), "files, with a page")
    before = page.read_bytes()
    make_page(k, trace)
    equal(page.read_bytes() == before, True, "a page of the same trace is the same")
    equal(page.stat().st_mode & 0o777, 0o666 & ~current_umask(), "mode")
    done = k.run([CLI, "report", trace, "-o", "-", "--json"], cwd=k.home)
    equal(done.stdout == page.read_text(), True, "standard output has the same page")
    check(json.loads(done.stderr)["ok"] and not (k.home / "-").exists(), f"standard output: {done.stderr}")


def test_long_text(k):
    """A report leaves out text of which a small trace would have gigabytes, and counts it."""
    bits = lambda n, **more: {"type": "fixed-length-unsigned-integer", "length": n, "byte-order": "little-endian", **more}
    struct_of = lambda name, field: {"type": "structure", "member-classes": [{"name": name, "field-class": field}]}
    array = {"type": "static-length-array", "length": 400, "element-field-class": struct_of("N" * 80000, bits(1))}
    fragments = ({"type": "preamble", "version": 2}, {"type": "clock-class", "name": "c", "id": "c", "frequency": 1000000000},
        {"type": "data-stream-class", "default-clock-class-name": "c", "default-clock-class-id": "c",
            "event-record-header-field-class": struct_of("t", bits(8, roles=["default-clock-timestamp"]))},
        {"type": "event-record-class", "name": "e", "payload-field-class": struct_of("a", array)})
    trace = k.top / "long"
    trace.mkdir()
    (trace / "metadata").write_text("".join(f"\x1e{json.dumps(f)}\n" for f in fragments))
    n = 300
    (trace / "s").write_bytes(bytes(51 * n))
    limits = ["prlimit", "--cpu=20:20", *([] if SANITIZED else ["--as=500000000"])]
    done = k.run([*limits, CLI, "report", trace, "-o", k.top / PAGE])
    check(f"{n} events have too much text" in done.stderr, done.stderr)
    check((k.top / PAGE).stat().st_size < 1 << 20, "the size of the page")


def test_record(k):
    """kymo record --report ends with a page, and says where it is."""
    trace = k.traces / "recorded"
    done = k.kymo("record", "--report", "-e", "line:*", "-o", trace, "--", APPS / "timeline", N)
    check(f"look at it with a browser: {trace}.html" in done.stderr, f"stderr: {done.stderr}")
    done = k.kymo("--json", "record", "--report", "-o", k.traces / "second", "--", APPS / "timeline", 1)
    reply = json.loads(done.stderr)  # stdout is the program's
    equal(reply["report"], f"{k.traces}/second.html", "the page in the result")
    mine = k.traces / "third.html"
    mine.write_text("not a report")
    done = k.kymo("record", "--report", "-o", k.traces / "third", "--", APPS / "timeline", 1)
    check("third.html exists and is not a report" in done.stderr, f"another's file: {done.stderr}")
    with Browser(k) as browser:
        opened(k, browser, f"{trace}.html")
        names = browser.js("layout.filter(r => r.p).map(r => processName(r.p))")
        check(any(name.startswith("timeline (") for name in names), f"processes: {names}")


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    kymotest.main()
