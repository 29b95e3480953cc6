#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kymo web: the page of a trace in a real browser, loaded by parts and live. Only the link's holder
can read it, and no request ends or blocks the server.
"""

import contextlib
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import urllib.parse

import kymotest
from browser import Browser
from kymotest import CLI, SANITIZED, Skip, check, equal, wait_for

N = 20 if SANITIZED else 200


def make_trace(k):
    k.start_daemon()
    trace = k.record("line:*")
    k.app("timeline", N)
    k.kymo("stop", "s")
    k.stop_daemon()
    return trace


@contextlib.contextmanager
def serving(k, *args):
    """Runs kymo web; yields its link."""
    web = subprocess.Popen([CLI, "web", *map(str, args)], env=k.env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        line = web.stdout.readline() or web.stderr.read()
        link = json.loads(line)["link"] if "--json" in args else re.search(r"http://\S+/", line)[0]
        yield link
        equal(web.poll(), None, "kymo web")
    finally:
        web.send_signal(signal.SIGINT)
        web.communicate(timeout=kymotest.TIMEOUT)
    equal(web.returncode, 0, "exit status of kymo web")


def ask(link, path="", method="GET", **headers):
    url = urllib.parse.urlsplit(link)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=kymotest.TIMEOUT)
    with contextlib.closing(connection):
        connection.request(method, url.path + path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        reply = connection.getresponse()
        return reply.status, reply.read()


def test_libraries(k):
    """Only kymo web loads the web server and its libraries: the other commands start faster."""
    libraries = k.run([CLI], env={"LD_TRACE_LOADED_OBJECTS": "1"}).stdout
    check("libc.so" in libraries and "libmicrohttpd" not in libraries, libraries)


def test_json(k):
    with serving(k, make_trace(k), "--json") as link:
        equal(ask(link)[0], 200, "status of the link in the JSON object")


def test_page(k):
    """The page shows what that of kymo report shows, and asks nobody else for anything."""
    trace = make_trace(k)
    with serving(k, trace) as link, Browser(k) as browser:
        browser.open(link)
        stat = k.kymo_json("stat", trace)
        equal(browser.js("[head.events, T.length]"), [stat["events"], stat["events"]], "events")
        shown = browser.js("Object.fromEntries(measured.map(m => [m.text, m.count]))")
        equal(shown, {s["name"]: s["count"] for s in stat["spans"] if s["count"]}, "spans")
        equal(browser.errors, [], "errors of the page's program")
        equal([u for u in browser.requests if not u.startswith((link, "blob:", "data:", "about:"))], [], "requests")


def test_parts(k):
    """Of a trace with more events than a page may have, the part that is looked at is loaded."""
    trace = make_trace(k)
    total = k.kymo_json("stat", trace)["events"]
    lines = k.kymo("view", trace).stdout.splitlines()
    times = [json.loads(line)["timestamp"] for line in k.kymo("view", trace, "--format=json").stdout.splitlines()]
    detail = total // 4
    with serving(k, trace, f"--detail={detail}") as link, Browser(k) as browser:
        browser.open(link)
        equal(browser.js("head.events"), detail, "events of the first view")
        check("more events than a page can hold follow" in browser.js("document.getElementById('notes').textContent"), "the page does not say what is missing")
        begin, last = (browser.js(f"Number({times[i]}n - served.begin)") for i in (-100, -1))
        browser.js(f"show({begin}, {last})")
        wait_for(lambda: browser.js(f"!served.busy && T.length && T[T.length - 1] === {last}"), "the end to be loaded")
        check(browser.js("head.from") > 0, "the whole trace was loaded")
        fields = browser.js("fieldsOf(T.length - 1)")
        check(lines[-1].endswith(fields), f"{fields!r} is not the end of {lines[-1]!r}")
        # A short time has all its events, with their fields.
        begin, end = (browser.js(f"Number({times[total // 2 + i]}n - served.begin)") for i in (0, 5))
        browser.js(f"show({begin}, {end})")
        wait_for(lambda: browser.js("!served.busy && !served.wanted && head.listed === head.events && head.from <= v1 && head.end >= v0"), "the middle to be loaded")


def test_live(k):
    """The page grows while a session records; a pause of the view does not pause the recording."""
    k.start_daemon()
    trace = k.record("line:*")
    k.app("timeline", N)
    k.kymo("rotate", "s", status=None)
    wait_for(lambda: k.kymo("stat", trace, status=None).returncode == 0, "a trace")
    with serving(k, "s") as link, Browser(k) as browser:
        browser.open(link)
        wait_for(lambda: "live" in browser.js("document.getElementById('position').textContent"), "the page to follow")
        before = browser.js("span")
        k.app("timeline", N)
        wait_for(lambda: browser.js("span") > before and browser.js("T.length && T[T.length - 1]") > before, "new events on the page")
        browser.js("canvas.focus()")
        browser.key(" ")
        wait_for(lambda: "paused" in browser.js("document.getElementById('position').textContent"), "the view to be paused")
        view = browser.js("[v0, v1]")
        before = browser.js("span")
        k.app("timeline", N)
        wait_for(lambda: browser.js("span") > before, "the page to see the trace grow")
        equal(browser.js("[v0, v1]"), view, "the paused view")
        browser.key(" ")
        wait_for(lambda: browser.js("v1 >= span"), "the view to follow again")
        k.kymo("stop", "s")
        wait_for(lambda: "ended" in browser.js("document.getElementById('position').textContent"), "the end of the recording")
        equal(browser.errors, [], "errors of the page's program")
    equal(k.kymo_json("stat", trace)["discarded"], 0, "discarded events")


def test_nothing_yet(k):
    """A session that has recorded nothing is served, and the page begins with its first event."""
    k.start_daemon()
    k.record("line:*")
    with serving(k, "s") as link, Browser(k) as browser:
        equal(ask(link, "data?begin=0&end=9223372036854775807")[0], 404, "data before the first event")
        browser.open(link, is_awaited=False)
        wait_for(lambda: "nothing was recorded yet" in browser.js("document.body?.innerText || ''"), "the page to say so")
        k.app("timeline", N)
        wait_for(lambda: browser.js("document.body.dataset.ready"), "the first events on the page")
        wait_for(lambda: browser.js("T.length"), "events on the page")
        equal(browser.errors, [], "errors of the page's program")


# The times of events are in the events alone, if at all.
FOREIGN = """/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1; offset_s = 1700000000; };
stream { event.header := struct { integer { size = 8; align = 8; } %s; }; };
event { name = "e"; fields := struct { integer { size = 8; align = 8; } a; }; };
"""


def test_foreign(k):
    """The page of a trace whose packets have no times; that of one without times says so."""
    for name, data in (("timestamp", bytes((10, 1, 20, 2, 30, 3))), ("other", bytes(2))):
        trace = k.top / name
        trace.mkdir()
        (trace / "metadata").write_text(FOREIGN % name)
        (trace / "s").write_bytes(data)
        with serving(k, trace) as link, Browser(k) as browser:
            browser.open(link, is_awaited=False)
            if name == "other":
                wait_for(lambda: "no event has a time" in browser.js("document.body?.innerText || ''"), "the page to say so")
                continue
            wait_for(lambda: browser.js("document.body?.dataset.ready"), "the page")
            equal(browser.js("[T.length, span, head.begin]"), [3, 20 * 10**9, "1700000010000000000"], "events, length, begin")
            equal(browser.errors, [], "errors of the page's program")


def test_refused_requests(k):
    """Without the token, from another origin or by another name, nobody reads anything."""
    trace = make_trace(k)
    with serving(k, trace) as link:
        url = urllib.parse.urlsplit(link)
        base = f"http://{url.netloc}"
        equal(ask(link)[0], 200, "the link")
        equal(ask(link, "data?begin=0&end=9223372036854775807")[0], 200, "data")
        equal(ask(link, Host=f"localhost:{url.port}")[0], 200, "the link by localhost")
        for host in ("127.0.0.1:1", "localhost:1"):
            equal(ask(link, Host=host, Origin=f"http://{host}")[0], 200, f"by {host}, another port of ssh -L")
            equal(ask(link, Host=host, Origin=f"http://{url.netloc}")[0], 403, f"from another origin than {host}")
        wrong = "0" * 32 if url.path[1:33] != "0" * 32 else "1" * 32
        for path in ("/", "/data?begin=0&end=1", "/events", f"/{wrong}/", f"/{wrong}/data?begin=0&end=1", "/%2e%2e/", url.path[:-1], url.path[:-2] + "/"):
            status, body = ask(base, path)
            equal((status, b"line:" in body), (403, False), path)
        for headers in ({"Host": "example.com"}, {"Host": f"example.com:{url.port}"}, {"Origin": "http://example.com"}, {"Origin": "null"},
                {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}):
            equal(ask(link, **headers)[0], 403, f"{headers}")
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
            equal(ask(link, method=method)[0], 405, method)
        for path in ("data", "data?begin=1", "data?begin=x&end=2", "data?begin=3&end=2", "data?begin=1e3&end=2000", "data?begin=&end="):
            equal(ask(link, path)[0], 400, path)
        equal(ask(link, "data?begin=1&end=2")[0], 404, "a time without events")
        equal(ask(link, "../etc/passwd")[0] in (403, 404), True, "another path")


def test_default_port(k):
    """Browsers leave port 80 out of the server's name."""
    if port_is_used(80):
        raise Skip("port 80 is used, or for root only")
    with serving(k, "--listen=127.0.0.1:80", make_trace(k)) as link:
        for host in ("127.0.0.1", "127.0.0.1:80", "localhost"):
            equal(ask(link, Host=host)[0], 200, f"the link by {host}")
            equal(ask(link, Host=host, Origin=f"http://{host}")[0], 200, f"from {host}")
        for host in ("127.0.0", "127.0.0.1.example.com", "127.0.0.10:80", "localhosts"):
            equal(ask(link, Host=host)[0], 403, f"by {host}")


def port_is_used(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def test_garbage(k):
    """Random bytes, long lines, half requests, and more connections than are allowed."""
    trace = make_trace(k)
    seed = int.from_bytes(os.urandom(3), "little")
    print(f"# seed {seed}", flush=True)
    chance = random.Random(seed)
    with serving(k, trace) as link, contextlib.ExitStack() as open_ones:
        url = urllib.parse.urlsplit(link)
        whole = f"GET {url.path}data?begin=0&end=1 HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Length: 7\r\n\r\n".encode()
        for turn in range(60 if SANITIZED else 300):
            kind = turn % 4
            data = chance.randbytes(chance.randrange(1, 3000)) if kind == 0 else bytearray(whole)
            if kind == 1:
                for _ in range(chance.randrange(1, 8)):
                    data[chance.randrange(len(data))] = chance.randrange(256)
            elif kind == 2:
                data = data[:chance.randrange(len(data))]
            elif kind == 3:
                at = chance.randrange(len(data))
                data[at:at] = bytes([chance.randrange(32, 127)]) * chance.choice((100, 5000, 100000))
            with socket.create_connection((url.hostname, url.port), timeout=kymotest.TIMEOUT) as s, contextlib.suppress(OSError):
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                s.recv(4096)
        equal(ask(link)[0], 200, "the page after them")
        for _ in range(200):
            s = open_ones.enter_context(socket.create_connection((url.hostname, url.port), timeout=kymotest.TIMEOUT))
            with contextlib.suppress(OSError):
                s.sendall(b"GET /")
        # Connections that send nothing more are closed after some seconds; then others are served.
        wait_for(lambda: works(link), "the page to be served again")


def begin_request(link, path):
    """Returns a connection on which a request was sent, and the first bytes of its reply."""
    url = urllib.parse.urlsplit(link)
    s = socket.create_connection((url.hostname, url.port), timeout=kymotest.TIMEOUT)
    s.sendall(f"GET {url.path}{path} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
    return s, s.recv(4096)


def test_crowd(k):
    """Connections that never show the token make room, however long they stay busy."""
    trace = make_trace(k)
    ended = threading.Event()
    with serving(k, trace) as link, contextlib.ExitStack() as open_ones:
        url = urllib.parse.urlsplit(link)
        crowd = []

        def stay_busy():
            while not ended.wait(0.2):
                for s in crowd:
                    with contextlib.suppress(OSError):
                        s.send(b"x")

        # A page that listens is not of them.
        listener, reply = begin_request(link, "events")
        open_ones.enter_context(listener)
        check(b"200 OK" in reply, f"events: {reply}")
        for _ in range(200):
            s = open_ones.enter_context(socket.create_connection((url.hostname, url.port), timeout=kymotest.TIMEOUT))
            crowd.append(s)
            with contextlib.suppress(OSError):
                s.send(b"GET /")
        busy = threading.Thread(target=stay_busy)
        busy.start()
        try:
            wait_for(lambda: works(link), "the page to be served")
            check(listener.recv(4096), "the page that listens was cut off")
        finally:
            ended.set()
            busy.join()


def test_listeners(k):
    """So many pages may listen; the server ends while they do."""
    trace = make_trace(k)
    with serving(k, trace) as link, contextlib.ExitStack() as open_ones:
        replies = []
        for _ in range(33):
            s, reply = begin_request(link, "events")
            open_ones.enter_context(s)
            replies.append(int(reply.split()[1]))
        equal(replies, [200] * 32 + [429], "replies to pages that listen")
        # serving() ends the server while the connections are open


def works(link):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return ask(link)[0] == 200
    return False


def test_refused(k):
    """One line for each way in which nothing can be shown."""
    k.start_daemon()
    k.kymo("create", "flight", "--snapshot")
    for said, args in {
        "no session 'nothing'": ["nothing"],
        "keeps its events in memory": ["flight"],
        "/nowhere": ["/nowhere"],
        "no trace": [k.top],
    }.items():
        done = k.kymo("web", *args, status=1)
        check(said in done.stderr, f"{args}: {done.stderr}")
    k.kymo("destroy", "flight")
    trace = k.record("line:*")
    k.app("timeline", 1)
    k.kymo("destroy", "s")
    for where in ("nowhere", "127.0.0.1:x", "example.com:80", "127.0.0.1:99999", ":::"):
        check("bad address" in k.kymo("web", trace, f"--listen={where}", status=2).stderr, where)
    check("cannot listen" in k.kymo("web", trace, "--listen=192.0.2.1:80", status=1).stderr, "another machine's address")
    k.kymo("web", trace, "--detail=1", status=2)


if __name__ == "__main__":
    kymotest.main()
