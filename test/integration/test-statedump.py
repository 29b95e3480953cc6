#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
State dumps: when each function runs, which session gets its events, and what the tracer records
about a program's files.
"""

import collections
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess

import kymotest
from kymotest import APPS, check, check_counts, equal, fields, read_trace, wait_for, without_sanitizers

ITEMS = {"state:item": 2, "state:number": 1}  # of one run of the program's function


def tell(k, app, line):
    """Sends a line to apps/statedump; returns the number in its reply."""
    app.stdin.write(line + "\n")
    app.stdin.flush()
    answer = app.stdout.readline().strip()
    check(answer, f"the program ended at {line!r}")
    return int(answer)


def start(k, *lines, **options):
    app = k.spawn("statedump", *lines, **options)
    k.expect(app, "ready")
    if k.daemon:
        k.wait_registered(app)
    return app


def quit_app(k, app):
    app.stdin.write("quit\n")
    k.finish(app)


def names(trace, *kinds):
    """Counts the events of each name. kinds: only names that begin with these."""
    if not (pathlib.Path(trace) / "ust").exists():
        return {}
    kinds = kinds or ("",)
    return dict(collections.Counter(e.name for e in read_trace(trace)[0] if e.name.startswith(kinds)))


def times(n, what=None):
    return {name: n * count for name, count in (what or ITEMS).items()}


def runs_are(k, app, n):
    wait_for(lambda: tell(k, app, "runs") == n, lambda: f"{n} runs, there were {tell(k, app, 'runs')}")


def test_start_of_a_session(k):
    """
    An application that runs already: all events, only those of the state dump, only others, none of
    its events.
    """
    k.start_daemon()
    app = start(k, "register")
    for name, rule, wanted in (("all", "*", times(1)), ("only", "state:*", times(1)), ("item", "state:item", {"state:item": 2}),
            ("others", "work:*", {}), ("none", "nothing:*", {})):
        trace = k.record(rule, session=name)
        tell(k, app, "emit 5")
        k.kymo("destroy", name)
        equal(names(trace, "state:"), wanted, f"state in session {name!r}")
        work = 5 if rule in ("*", "work:*") else 0
        equal(sum(names(trace, "work:").values()), 2 * work, f"other events in session {name!r}")
    runs_are(k, app, 4)  # not for a session that records nothing of the program
    quit_app(k, app)


def test_start_again(k):
    k.start_daemon()
    app = start(k, "register")
    trace = k.record("*")
    for _ in range(3):
        k.kymo("stop", "s")
        k.kymo("start", "s")
    k.kymo("stop", "s")
    equal(names(trace), times(4), "state after four starts")
    quit_app(k, app)


def test_several_sessions(k):
    """
    Only the session that requests it gets the state dump; all sessions get the program's other
    events.
    """
    k.start_daemon()
    app = start(k, "register")
    first = k.record("*", session="first")
    second = k.record("*", session="second")
    tell(k, app, "emit 3")
    third = k.record("state:item", session="third")
    k.kymo("regenerate", "statedump", "-s", "second")
    k.kymo("regenerate", "statedump", "-s", "second")
    tell(k, app, "emit 4")
    k.kymo("destroy", "-a")
    equal(names(first), {**times(1), "work:word": 7, "work:text": 7}, "first")
    equal(names(second), {**times(3), "work:word": 7, "work:text": 7}, "second")
    equal(names(third), {"state:item": 2}, "third")
    check_counts(k, second, 3 * 3 + 14)
    quit_app(k, app)


def test_several_channels(k):
    """One run for all channels of a session; each channel has the events that its rules match."""
    k.start_daemon()
    app = start(k, "register")
    k.kymo("create", "s", "-o", k.traces / "s")
    k.kymo("enable-event", "-s", "s", "-c", "one", "state:item")
    k.kymo("enable-event", "-s", "s", "-c", "two", "state:*")
    k.kymo("start", "s")
    k.kymo("stop", "s")
    runs_are(k, app, 1)
    equal(names(k.traces / "s"), {"state:item": 4, "state:number": 1}, "events")
    late = start(k, "register")
    quit_app(k, late)
    k.kymo("start", "s")
    late = start(k, "register")
    runs_are(k, late, 1)
    quit_app(k, late)
    quit_app(k, app)


def test_joining(k):
    """
    A program that starts during started sessions records its state in each of them at once, even if
    it exits right then; and once in each.
    """
    k.start_daemon()
    first = k.record("*", session="first")
    second = k.record("state:*", session="second")
    for _ in range(5):
        app = k.spawn("statedump", "register")
        k.expect(app, "ready")
        quit_app(k, app)
    k.kymo("destroy", "-a")
    equal(names(first), times(5), "first")
    equal(names(second), times(5), "second")


def test_filters_and_contexts(k):
    k.start_daemon()
    app = start(k, "register")
    k.kymo("create", "s", "-o", k.traces / "s")
    k.kymo("enable-event", "-s", "s", "state:item", "-f", "n == 1")
    k.kymo("add-context", "-s", "s", "-t", "procname", "-t", "callstack")
    k.kymo("start", "s")
    tell(k, app, "emit 1")
    k.kymo("destroy", "s")
    equal(names(k.traces / "s"), {"state:item": 1}, "what passes the filter")
    check("procname = " in subprocess.run(["babeltrace2", k.traces / "s"], capture_output=True, text=True).stdout, "no context")
    quit_app(k, app)


def test_registered_again(k):
    """
    A second registration is refused. After unregistering, the function does not run. Registered
    again, it runs again for sessions that record.
    """
    k.start_daemon()
    trace = k.record("*")
    app = start(k)
    equal(tell(k, app, "register"), 0, "register")
    equal(tell(k, app, "register"), -17, "register once more (EEXIST)")
    tell(k, app, "unregister")
    k.kymo("regenerate", "statedump", "-s", "s")
    equal(tell(k, app, "runs"), 1, "runs")
    equal(tell(k, app, "register"), 0, "register again")
    equal(tell(k, app, "runs"), 2, "runs when register is back")
    k.kymo("stop", "s")
    equal(tell(k, app, "unregister"), 0, "unregister")
    equal(tell(k, app, "register"), 0, "register while nothing records")
    equal(tell(k, app, "runs"), 2, "runs while nothing records")
    equal(names(trace), times(2), "state")
    quit_app(k, app)


def test_dlclose(k):
    """When an object is unloaded without unregistering, its function is unregistered."""
    k.start_daemon()
    trace = k.record("*")
    app = start(k, "register")
    for name in ("statedump-library", "statedump-quiet"):
        path = shutil.copy(APPS / f"{name}.so", k.top)
        for _ in range(20):
            equal(tell(k, app, f"load {path}"), 0, "dlopen")
            equal(tell(k, app, "unload"), 0, "dlclose")
        k.kymo("regenerate", "statedump", "-s", "s")
    k.kymo("stop", "s")
    equal(names(trace), {**times(3), "library:state": 20}, "state")
    quit_app(k, app)


def test_fork(k):
    """A child records its own state in the sessions that record it, and has a thread for that."""
    k.start_daemon()
    trace = k.record("*")
    app = start(k, "register")
    app.stdin.write("fork\n")
    app.stdin.flush()
    equal(app.stdout.readline(), "0\n", "fork in the child")
    runs_are(k, app, 2)  # one run in the parent; the child has joined: a request before that would be one with it
    k.kymo("regenerate", "statedump", "-s", "s")
    tell(k, app, "emit 2")
    runs_are(k, app, 3)
    app.stdin.write("quit\n")
    app.stdin.flush()
    k.read_until(app, "0")  # sanitizers may print a message about the child's exit
    runs_are(k, app, 2)
    k.kymo("stop", "s")
    equal(names(trace), {**times(4), "work:word": 2, "work:text": 2}, "events")
    quit_app(k, app)


@without_sanitizers
def test_fork_beside_the_linker(k):
    """
    A thread of the parent, which the child does not have, holds the dynamic linker's lock for ever.
    The child does not hang: neither when the listener waits for that lock already, nor when the
    child's listener is the first to wait.
    """
    k.start_daemon()
    trace = k.record("*", "kymo_statedump:*", "kymo_lib:*")
    for waits in (False, True):
        app = start(k, "hold", "linker", env={"KYMO_REGISTER_TIMEOUT": "2000"})
        if waits:
            check("have not finished" in k.kymo("regenerate", "statedump").stdout, "the listener does not wait")
        app.stdin.write("fork\n")
        app.stdin.flush()
        wait_for(lambda: select.select([app.stdout], [], [], 0)[0], "fork in the child")
        equal(app.stdout.readline(), "0\n", "fork in the child")
        equal(tell(k, app, "emit 2"), 2, "events of the child")
        tell(k, app, "quit")
        tell(k, app, "release")
        quit_app(k, app)
    k.kymo("destroy", "s")
    equal(names(trace, "work"), {"work:word": 4, "work:text": 4}, "events of children")


def test_slow(k):
    """
    A function that does not return delays no command, no event and no other session; its events go
    to the right session.
    """
    k.start_daemon()
    app = start(k, "hold", "register")
    first = k.record("*", session="first")
    second = k.record("*", session="second", start=False)
    said = k.kymo("start", "second").stdout  # has to wait for its turn
    check("note: session 'second': some applications have not answered yet" in said, f"start said {said!r}")
    tell(k, app, "emit 10")
    said = k.kymo("regenerate", "statedump", "-s", "second").stdout
    check("have not finished" in said, f"regenerate said {said!r}")
    equal(tell(k, app, "runs"), 1, "runs")
    tell(k, app, "release")
    runs_are(k, app, 2)
    k.kymo("regenerate", "statedump", "-s", "first")
    k.kymo("destroy", "-a")
    equal(names(first), {**times(2), "work:word": 10, "work:text": 10}, "first")
    equal(names(second), {**times(1), "work:word": 10, "work:text": 10}, "second")
    quit_app(k, app)


def test_stopped(k):
    """start and regenerate do not wait for a stopped program, and report it."""
    k.start_daemon()
    app = start(k, "register")
    trace = k.record("*", start=False)
    kymotest.stop(app.pid)
    os.waitid(os.P_PID, app.pid, os.WSTOPPED)
    check("note: session 's': some applications have not answered yet" in k.kymo("start").stdout, "start said nothing")
    check("have not finished" in k.kymo("regenerate", "statedump").stdout, "regenerate said nothing")
    os.kill(app.pid, signal.SIGCONT)
    runs_are(k, app, 1)
    wait_for(lambda: k.kymo("regenerate", "statedump").stdout == "applications have recorded their state again\n", "regenerate to miss nobody")
    k.kymo("destroy", "-a")
    check(names(trace).get("state:number", 0) >= 2, "recorded state")
    quit_app(k, app)


def test_destroyed_meanwhile(k):
    """
    The session is destroyed during its state dump: no event reaches the next session, which may use
    the same slot.
    """
    k.start_daemon()
    app = start(k, "hold", "register")
    k.record("*", session="first")
    k.kymo("destroy", "first")
    second = k.record("*", session="second")
    tell(k, app, "release")
    runs_are(k, app, 2)
    k.kymo("regenerate", "statedump", "-s", "second")
    k.kymo("destroy", "second")
    equal(names(second), times(2), "second")
    quit_app(k, app)


def test_per_thread_rings(k):
    k.start_daemon()
    app = start(k, "register", env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})
    first = k.record("*", session="first")
    second = k.record("*", session="second")
    k.kymo("regenerate", "statedump", "-s", "first")
    k.kymo("destroy", "-a")
    equal(names(first), times(2), "first")
    equal(names(second), times(1), "second")
    quit_app(k, app)


def test_absent_library(k):
    """If the tracer is not installed, registering does nothing."""
    app = start(k, "register", env={"LD_LIBRARY_PATH": "/nonexistent"})
    equal(tell(k, app, "register"), 0, "register")
    equal(tell(k, app, "unregister"), 0, "unregister")
    quit_app(k, app)
    app = start(k, "register", env={"KYMO_OFF": "1"})
    equal(tell(k, app, "register"), 0, "register")
    quit_app(k, app)


def test_refused(k):
    k.start_daemon()
    k.record("*", start=False)
    check("not started" in k.kymo("regenerate", "statedump", "-s", "s", status=1).stderr, "of a session that is not started")
    check("statedump" in k.kymo("regenerate", "everything", "-s", "s", status=2).stderr, "of something else")
    check("no session" in k.kymo("regenerate", "statedump", "-s", "t", status=1).stderr, "of no session")


# ---- the tracer's own state dump


def build_id(path):
    text = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True).stdout
    return re.search(r"Build ID: (\w+)", text)[1]


def files_of(pid):
    """Returns the addresses of the process's files: {path: lowest address}."""
    found = {}
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        part = line.split(None, 5)
        if len(part) == 6 and (part[5].startswith("/") or part[5] == "[vdso]") and not part[5].startswith("/memfd"):
            found.setdefault(part[5], int(part[0].split("-")[0], 16))
    return found


def test_files(k):
    """
    Every file that is mapped into the program, and its address; with its build ID, and the name of
    its debug file.
    """
    k.start_daemon()
    shutil.copy(APPS / "statedump", k.top / "program")
    (k.top / "program.debug").write_bytes(b"anything")
    subprocess.run(["objcopy", f"--add-gnu-debuglink={k.top}/program.debug", k.top / "program"], check=True)
    app = k.spawn(k.top / "program")
    k.expect(app, "ready")
    all_events = k.record("*", session="all")
    trace = k.record("kymo_statedump:*")
    tell(k, app, "emit 1")
    k.kymo("destroy", "-a")
    equal(names(all_events), {"work:word": 1, "work:text": 1}, "'*' stands for the program's own events")
    events = read_trace(trace)[0]
    equal([events[0].name, events[1].name, events[-1].name],
        ["kymo_statedump:start", "kymo_statedump:procname", "kymo_statedump:end"], "the frame")
    equal(fields(events[1])["procname"], "program", "name of the program")
    infos = {f["path"]: f for f in (fields(e) for e in events if e.name == "kymo_statedump:bin_info")}
    equal({path: f["baddr"] for path, f in infos.items()},
        {path: at for path, at in files_of(app.pid).items() if path in infos}, "addresses")
    for needle in ("/program", "/libc.so", "[vdso]", "/libkymo.so", "/ld-linux"):
        check(any(needle in path for path in infos), f"{needle} is not among {list(infos)}")
    check(all(f["is_pic"] and f["memsz"] > 4096 for f in infos.values()), infos)
    ids = {f["baddr"]: "".join(f"{b:02x}" for b in f["build_id"])
        for f in (fields(e) for e in events if e.name == "kymo_statedump:build_id")}
    for path in (str(k.top / "program"), next(p for p in infos if "/libc.so" in p)):
        equal(ids[infos[path]["baddr"]], build_id(path), f"build ID of {path}")
    links = [fields(e) for e in events if e.name == "kymo_statedump:debug_link"]
    mine = infos[str(k.top / "program")]
    check(mine["has_debug_link"] == 1 and mine["baddr"] in [f["baddr"] for f in links], f"debug links: {links}")
    equal([f["filename"] for f in links if f["baddr"] == mine["baddr"]], ["program.debug"], "debug file")
    quit_app(k, app)


def test_files_of_a_short_program(k):
    """A program that exits at once has recorded its files before."""
    k.start_daemon()
    trace = k.record("kymo_*")
    for _ in range(5):
        k.app("rules", "1")
    k.kymo("destroy", "s")
    found = names(trace, "kymo_statedump:")
    equal((found["kymo_statedump:start"], found["kymo_statedump:end"]), (5, 5), "state dumps")


def test_libraries(k):
    """
    Objects are loaded and unloaded while a session records this; objects that were loaded before
    are not recorded again.
    """
    k.start_daemon()
    app = start(k)
    trace = k.record("kymo_lib:*")
    path = shutil.copy(APPS / "statedump-library.so", k.top)
    seen = lambda: k.request(command="status", session="s")["session"]["recorded"]
    equal(tell(k, app, f"load {path}"), 0, "dlopen")
    wait_for(lambda: seen() >= 2, "the record of the load")
    at = files_of(app.pid)[str(path)]
    equal(tell(k, app, "unload"), 0, "dlclose")
    wait_for(lambda: seen() >= 3, "the record of the unload")
    k.kymo("destroy", "s")
    events = [(e.name, fields(e)) for e in read_trace(trace)[0]]
    equal([name for name, _ in events], ["kymo_lib:load", "kymo_lib:build_id", "kymo_lib:unload"], "events")
    equal((events[0][1]["path"], events[0][1]["baddr"], events[2][1]["baddr"]), (str(path), at, at), "their fields")
    quit_app(k, app)


def test_fields_for_filters_only(k):
    """Another session filters the event by an excluded field: the dump's records are whole."""
    k.start_daemon()
    app = k.spawn("excluded")
    k.expect(app, "ready")
    k.kymo("create", "filters", "-o", k.traces / "filters")
    k.kymo("enable-event", "-s", "filters", "excluded:*", "-f", "hidden > 2")
    k.kymo("start", "filters")
    out = k.record("excluded:*", session="plain")
    k.kymo("destroy", "plain")
    events, discarded = read_trace(out)
    equal(([(fields(e)["n"], fields(e)["s"]) for e in events], discarded), ([(i, "a text of some length") for i in range(3)], 0), "the state in the second session")
    k.kymo("destroy", "filters")
    equal([fields(e)["n"] for e in read_trace(k.traces / "filters")[0]], [2], "what passes the filter of the first")
    k.let_go(app)
    k.finish(app)


if __name__ == "__main__":
    kymotest.main()
