#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Unusual names: with NUL, newlines, slashes, "..", invalid UTF-8, quotes, escape sequences. They
occur in what applications send about themselves and their events, in the requests of clients, and
as links in the directories of traces. Each is refused, or is in the trace unchanged. Nothing is
written outside of the trace's directory, and users see plain text.
"""

import json
import os
import shutil
import socket
import struct

import kymotest
from kymotest import APPS, CLI, check, equal, main
from program import ACK, EMPTY, MAP, START, Program, ask, blob, text

ENUM = 5
TRAPS = [b"a\0b", b"\0", b"", b"a\nb", b"\n", b"a/b", b"..", b"../../escaped", b"/escaped", b".", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"caf\xc3\xa9", b"\x1b[31mred",
    b"\x9b31m", b"a\rb", b"a\tb", b"a b", b'a"b', b"a'b", b"a\\", b"a\\nb", b"%s%n%n%n", b"*/", b"/*", b"};", b'"; }; event { name = "x', b"struct", b"align", b"_", b"a" * 127, b"a" * 128, b"a" * 256,
    b"a" * 4000, b"$(touch escaped)", b"a;b", b"-", b"--help", b"*", b"?", b"a:b", b":", b"::"]


def event(provider=b"shop", name=b"trap", field=b"f", enum=b"e", label=b"l"):
    """Returns a description; an enumeration is the only field."""
    return (text(provider) + text(name) + struct.pack("<iI", 13, 1)
        + blob(struct.pack("<BBBBI", ENUM, 0, 4, 0, 0) + text(field) + text(enum) + struct.pack("<I", 1) + text(label) + struct.pack("<QQ", 7, 7)))


def start(k):
    k.start_daemon(env={"KYMO_CLOCK": "monotonic"})
    trace = k.traces / "s"
    ask(k, "create", session="s", output=str(trace))
    ask(k, "enable-event", patterns=["*"])
    ask(k, "start")
    return trace


def is_plain(output):
    return all(c in "\n" or c.isprintable() for c in output)


def seen_by_people(k):
    for args in (["list"], ["list", "-u", "-f"], ["list", "s"], ["status"]):
        done = k.run([CLI, *args], status=None)
        check(is_plain(done.stdout + done.stderr), f"kymo {args} prints {done.stdout + done.stderr!r}")
        json.loads(k.run([CLI, "--json", *args], status=None).stdout)
    check(is_plain(k.daemon_log()), f"the daemon's log is {k.daemon_log()!r}")


def everything_below(top):
    return {p.relative_to(top) for p in top.rglob("*")}


def recorded(k, program):
    """
    Maps those of the application's events that the daemon accepts, and records one of each; returns
    their number.
    """
    number, _ = program.expect_query()
    program.answer(number)
    mapped = {}
    while True:
        kind, payload = program.receive()
        if kind == MAP:
            n = struct.unpack_from("<I", payload, 4)[0]
            mapped.update({struct.unpack_from("<I", payload, 12 + 16 * i)[0]: struct.unpack_from("<I", payload, 16 + 16 * i)[0] for i in range(n)})
        elif kind == START:
            program.send(ACK, payload[:4] + struct.pack("<i", 0))
            break
    for identifier in mapped.values():
        program.record(number, identifier, struct.pack("<I", 7))
    return mapped


def names_of_events(k, part):
    """Each name is alone in an application, so that an invalid one does not hide another."""
    trace = start(k)
    taken = []
    for trap in TRAPS:
        good = event(name=b"good%d" % len(taken))
        program = Program(k, event(**{"name": b"trap%d" % len(taken), part: trap}), good)
        mapped = recorded(k, program)
        check(1 in mapped, f"{part} {trap!r}: a good event beside it is not taken")
        taken += [trap] if 0 in mapped else []
        taken.append(None)
        seen_by_people(k) if trap in (b"\x1b[31mred", b"a\nb", b"\xff\xfe") else None
        program.close()
    ask(k, "stop")
    events, _ = kymotest.read_trace(trace)
    equal(len(events), len(taken), f"events, {part}")
    stat = k.kymo_json("stat", trace)
    equal(stat["events"], len(taken), f"events by kymo stat, {part}")
    check(is_plain(k.kymo("view", trace).stdout), "what kymo view prints")
    check(not list(k.top.rglob("*escaped*")), "something was written elsewhere")
    return [t for t in taken if t is not None]


def test_providers(k):
    check(set(names_of_events(k, "provider")) <= {b"..", b".", b"struct", b"align", b"_", b"a" * 127, b"a" * 128, b"-", b"--help"}, "names taken")


def test_events(k):
    check(set(names_of_events(k, "name")) <= {b"..", b".", b"struct", b"align", b"_", b"a" * 127, b"a" * 128, b"-", b"--help", b"a:b", b":", b"::"}, "names taken")


def test_fields(k):
    check(set(names_of_events(k, "field")) <= {b"struct", b"align", b"_", b"a" * 127, b"a" * 128}, "names taken")


def test_labels(k):
    """Labels may be any text."""
    taken = names_of_events(k, "label")
    check(b"a\nb" in taken and b'a"b' in taken and b"../../escaped" in taken, f"labels taken: {taken}")


def test_enumerations(k):
    names_of_events(k, "enum")


def test_programs(k):
    """Names of applications; an application with a name that is no valid text is disconnected."""
    start(k)
    programs = []
    for trap in TRAPS:
        programs.append(Program(k, EMPTY, name=trap[:3000]))
        message = programs[-1].receive()
        equal(message is None, b"\0" in trap, f"{trap!r}: sent away")
        if message:
            programs[-1].answer(struct.unpack_from("<I", message[1])[0])
    seen_by_people(k)
    for program in programs:
        program.close()
    check(not list(k.top.rglob("*escaped*")), "something was written elsewhere")


def test_real_programs(k):
    """Executables with such names: in contexts, and in names of streams."""
    k.start_daemon()
    names = [b"e\nmit", b"\x1b[31m", b"\xff\xfe\xfd", b"..emit", b'"; };', b"a\\", b"emit%n%s"]
    for number, options in enumerate((("--buffers=process",), ("--buffers=thread",), ())):
        session = f"s{number}"
        trace = k.record("emit:*", session=session, channel=options, start=False)
        k.kymo("add-context", "-s", session, "-t", "procname,vpid")
        k.kymo("start", session)
        for name in names:
            path = os.path.join(os.fsencode(k.top), name)
            shutil.copy2(APPS / "emit", path)
            done = kymotest.subprocess.run([path, b"-n", b"3"], env=k.env, capture_output=True, timeout=kymotest.TIMEOUT)
            equal((done.returncode, done.stdout.split()[:2]), (0, [b"records", b"3"]), f"what {name!r} says")
            os.unlink(path)
        seen_by_people(k)
        k.kymo("stop", session)
        output = kymotest.subprocess.run(["babeltrace2", str(trace)], capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"}, timeout=kymotest.TIMEOUT)
        equal((output.returncode, output.stderr), (0, b""), "what babeltrace2 says")
        recorded, discarded = kymotest.check_streams(trace)
        equal((recorded, discarded), (3 * len(names), 0), "events")
        check(is_plain(k.kymo("view", trace).stdout), "what kymo view prints")
        k.kymo("destroy", session)


def raw_request(k, line):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(kymotest.TIMEOUT)
        s.connect(str(k.rundir / "control.sock"))
        s.sendall(line + b"\n")
        with s.makefile("rb") as f:
            return json.loads(f.readline())


def quoted(trap):
    """Returns a string in JSON; bytes that are no valid text stay unchanged."""
    try:
        return json.dumps(trap.decode()).encode()
    except UnicodeDecodeError:
        return b'"' + trap + b'"'


REQUESTS = {
    b'{"command": "create", "session": %s, "output": ""}': {b"struct", b"align", b"_", b"a" * 127, b"a" * 128, b"-", b"--help"},
    b'{"command": "create", "session": "x", "output": %s}': {b""},
    b'{"command": "enable-channel", "session": "s", "channel": %s}': {b"struct", b"align", b"_", b"a" * 127, b"a" * 128, b"-", b"--help"},
    b'{"command": "snapshot", "session": "s", "name": %s}': {b"struct", b"align", b"_", b"a" * 127, b"a" * 128, b"-", b"--help"},
    b'{"command": "snapshot", "session": "s", "output": %s}': set(),
    b'{"command": "add-context", "session": "s", "contexts": [%s]}': set(),
    b'{"command": "set-session", "session": %s}': set(),
    b'{"command": "track", "session": "s", "vpid": [%s]}': set(),
    b'{"command": %s}': set(),
    b'{"command": "list", %s: 1}': set(),
}


def test_requests(k):
    """
    Each request gets a reply; invalid names are refused, and the message for users is plain text.
    """
    start(k)
    before = everything_below(k.top)
    for request, allowed in REQUESTS.items():
        for trap in TRAPS:
            if trap.startswith(b"/") and b"output" in request:  # a path like any other
                continue
            reply = raw_request(k, request % quoted(trap))
            check(reply["ok"] == (trap in allowed), f"{request % quoted(trap)}: {reply}")
            check(is_plain(json.dumps(reply)) and is_plain(reply.get("error", "")), f"{request % quoted(trap)}: {reply}")
            if reply["ok"] and b"create" in request:
                ask(k, "destroy", session=trap.decode() if b'output": ""' in request else "x")
    # patterns and filters may contain almost anything: they name what applications have
    for trap in TRAPS:
        for request in (b'{"command": "enable-event", "session": "s", "patterns": [%s]}', b'{"command": "enable-event", "session": "s", "patterns": ["a*"], "exclude": [%s]}',
                b'{"command": "enable-event", "session": "s", "patterns": ["b*"], "filter": %s}', b'{"command": "disable-event", "session": "s", "patterns": [%s], "remove": true}'):
            check("ok" in raw_request(k, request % quoted(trap)), f"{request % quoted(trap)}")
    seen_by_people(k)
    new = everything_below(k.top) - before
    check(all("traces" in str(p) or "run/sessions" in str(p) for p in new), f"new files: {new}")
    check(not list(k.top.rglob("*escaped*")), "something was written elsewhere")


def test_links_in_outputs(k):
    """
    The last part of a trace's path is never followed if it is a link; nor is any link that is
    created in it later.
    """
    k.start_daemon()
    away = k.top / "away"
    away.mkdir()
    k.traces.mkdir()
    link = k.traces / "link"
    link.symlink_to(away)
    for args in (["create", "s", "-o", link], ["create", "s", "-o", f"{link}/"], ["create", "s", "--snapshot", "-o", link], ["record", "-o", link, "--", "true"]):
        done = k.run([CLI, *args], status=None)
        if done.returncode == 0 and "--snapshot" in args:  # its snapshots go below
            k.kymo("enable-event", "-s", "s", "*")
            k.kymo("start", "s")
            k.kymo("destroy", "s")
            continue
        check(done.returncode != 0 and str(link) in done.stderr, f"kymo {args}: exit {done.returncode}: {done.stderr!r}")
    equal(list(away.iterdir()), [], "what is where the link leads")
    trace = k.record("emit:*", session="planted")
    for name in ("ust", "metadata"):
        (trace / name).symlink_to(away)
    k.app("emit", "-n", 10)
    k.run([CLI, "stop", "planted"], status=None)
    check("cannot" in k.kymo_json("status", "planted")["session"]["error"], "status does not name the obstacle")
    equal(list(away.iterdir()), [], "what is where the links lead")
    for name in ("ust", "metadata"):
        (trace / name).unlink()
    k.kymo("destroy", "planted")
    equal(len(kymotest.check_counts(k, trace, 10)), 10, "events after the links were removed")


main()
