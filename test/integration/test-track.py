#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sessions that record only some programs: track and untrack, before and while they record."""

import collections
import os

import kymotest
from kymotest import Skip, check, equal, integers, read_trace


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root, to become another user")


def waiting(k, wrap=()):
    """
    Starts a program whose round i emits 1 << i of each event: the sum shows which rounds are
    recorded.
    """
    app = k.spawn("rules", "-w", *(1 << i for i in range(10)), wrap=wrap)
    k.expect(app, "ready")
    return app


def round_of(k, *apps):
    for app in apps:
        k.let_go(app)
        k.expect(app, "ready")


def end(k, *apps):
    for app in apps:
        app.kill()
        app.wait()


def record(k, *rules, **options):
    trace = k.record(*rules, start=False, **options)
    k.kymo("add-context", "-t", "vpid", "-s", options.get("session", "s"))
    return trace


def recorded(k, trace):
    """Returns for each process the number of its events alpha:one."""
    k.kymo("stop", "s")
    return collections.Counter(integers(e)["vpid"] for e in read_trace(trace)[0] if e.name == "alpha:one")


def pids(k):
    return {a["pid"] for a in k.kymo_json("status", "s")["session"]["applications"]}


def test_processes(k):
    k.start_daemon()
    trace = record(k, "alpha:*")
    k.kymo("start", "s")
    one, two = waiting(k), waiting(k)
    wanted = collections.Counter()
    steps = [
        ([], 1, 1),
        (["track", f"--vpid={one.pid}"], 1, 0),
        (["track", "--vpid", f"{one.pid},{two.pid}"], 1, 1),
        (["untrack", f"--vpid={one.pid}"], 0, 1),
        (["untrack", f"--vpid={two.pid}"], 0, 0),
        (["track", "-u", "--pid", f"{two.pid}"], 0, 1),  # LTTng's other name
        (["untrack", "--vpid", "--all"], 0, 0),
        (["track", "-u", "--all", "--vpid"], 1, 1),
        (["untrack", "-a"], 0, 0),
        (["track", "--all"], 1, 1),
    ]
    for i, (command, has_one, has_two) in enumerate(steps):
        if command:
            k.kymo(*command, "-s", "s")
        equal(pids(k), {app.pid for app, has in ((one, has_one), (two, has_two)) if has}, f"programs recorded after {command}")
        round_of(k, one, two)
        wanted.update({one.pid: has_one << i, two.pid: has_two << i})
    end(k, one, two)
    equal(recorded(k, trace), wanted, "events: a bit for each round")


def test_before_anything(k):
    """
    A program that is not tracked from the start is not recorded; two sessions track independently.
    """
    k.start_daemon()
    trace = record(k, "alpha:one")
    other = record(k, "alpha:one", session="other")
    k.kymo("untrack", "--vpid=all", "-s", "s")
    k.kymo("start", "-a")
    k.app("rules", 3)
    k.kymo("track", "--vpid=all", "-s", "s")
    k.app("rules", 4)
    k.kymo("stop", "other")
    equal(len(read_trace(other)[0]), 7, "events of the session that tracks all")
    equal(list(recorded(k, trace).values()), [4], "events")


def test_no_memory_of_what_is_not_tracked(k):
    k.start_daemon()
    k.record("alpha:*")
    app = waiting(k)
    maps = lambda: "kymo-rings" in open(f"/proc/{app.pid}/maps").read()
    check(maps(), "a tracked program has no rings")
    k.kymo("untrack", f"--vpid={app.pid}", status=2)
    k.kymo("track", "--vpid=1")
    check(not maps(), "a program that is not tracked any more has rings")
    k.kymo("track", f"--vpid={app.pid}")
    check(maps(), "a program that is tracked again has no rings")
    end(k, app)


def test_namespace(k):
    need_root()
    kymotest.need_unshare("-fp")
    k.start_daemon()
    trace = record(k, "alpha:one")
    k.kymo("start", "s")
    k.kymo("track", "--vpid=1")
    app = waiting(k, wrap=("unshare", "-fp", "--kill-child"))
    here = waiting(k)
    round_of(k, app, here)
    end(k, app, here)
    equal(recorded(k, trace), {1: 1}, "events of process 1 of its namespace")


def test_users_and_groups(k):
    need_root()
    k.top.chmod(0o755)
    k.start_daemon()
    trace = record(k, "alpha:one")
    k.kymo("start", "s")
    apps = [waiting(k, wrap=("setpriv", f"--reuid={u}", f"--regid={g}", "--clear-groups"))
        for u, g in [(0, 0), (65534, 65534), (65534, 0)]]
    wanted = collections.Counter()
    steps = [
        (["track", "--vuid=root"], "100"),
        (["track", "--vuid", "65534"], "111"),
        (["track", "--vgid=root"], "101"),
        (["untrack", "--vuid=root"], "001"),
        (["untrack", "--vgid=all"], "000"),
        (["track", "--vgid=65534"], "010"),
        (["track", "-a"], "111"),
    ]
    for i, (command, who) in enumerate(steps):
        k.kymo(*command)
        round_of(k, *apps)
        wanted.update({app.pid: int(has) << i for app, has in zip(apps, who)})
    end(k, *apps)
    equal(recorded(k, trace), wanted, "events: a bit for each round")


def test_refusals(k):
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    for command, status, words in ((["track"], 2, "nothing to track is given"), (["untrack", "--vpid=3"], 2, "tracks every vpid"),
            (["track", "--vpid=x"], 2, "'x'"), (["track", "--vuid=no-such-user"], 1, "no-such-user"),
            (["track", "--vpid=4294967296"], 2, "4294967296"), (["track", "--all", "--vpid=1"], 2, "not both"),
            (["track", "--vpid=1,,2"], 2, "empty name")):
        check(words in k.kymo(*command, status=status).stderr, f"{command}: {words!r} is not said")
    note = "note: session 's' has no kernel events yet, and 'pid' is for these only: use 'vpid' for applications\n"
    equal([note in k.kymo("track", option).stdout for option in ("--pid=3", "--pid=all", "--vpid=3")], [True, False, False], "notes")
    k.kymo("track", "--vpid=all")
    k.kymo("track", "--vpid=3", "--vuid=5")
    check("does not track vpid 4" in k.kymo("untrack", "--vpid=4", status=1).stderr, "not said what is not tracked")
    equal(k.kymo_json("track", "--vpid=7")["tracked"], {"vpid": ["3", "7"], "vuid": ["5"], "vgid": ["all"], "pid": ["all"]}, "tracked")
    text = k.kymo("list", "s").stdout
    check("tracked processes: 3, 7\ntracked users: 5\n" in text, text)
    for bad in (["-1"], [""], ["1x"], ["99999999999999999999"]):
        equal(k.request(command="track", session="s", vpid=bad)["code"], "usage", f"code for {bad}")


kymotest.main()
