#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Libraries with events are loaded and unloaded while programs are traced; and the first events of
all.
"""

import collections
import os
import pathlib
import shutil

import kymotest
from kymotest import APPS, Skip, check, check_counts, equal, integers, read_trace, without_sanitizers

THREADS = 4
ROUNDS = 300 if kymotest.SANITIZED else 5000


def copies(k, n=THREADS):
    """Copies the provider's library under several names: each copy is loaded separately."""
    for i in range(n):
        shutil.copy(APPS / "loads-provider.so", k.top / f"provider{i}.so")
    return k.top / "provider"


def resident_kib(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4


def names(trace):
    return collections.Counter(e.name for e in read_trace(trace)[0])


def test_thousands_of_loads(k):
    """
    While rules are enabled and disabled: no event of a rule that stays is lost or recorded twice,
    and no memory grows.
    """
    k.start_daemon()
    trace = k.record("loads:always", channel=("--subbuf-size=1M",))
    prefix = copies(k)
    k.app("loads", prefix, THREADS, ROUNDS // 10)
    before = resident_kib(k.daemon.pid)
    app = k.spawn("loads", prefix, THREADS, ROUNDS)
    while app.poll() is None:
        k.kymo("enable-event", "-s", "s", "loads:*")
        k.kymo("disable-event", "-s", "s", "loads:*", "-r")
    warm, end = map(int, k.finish(app).split())
    stopped = k.kymo_json("stop", "s")["sessions"][0]
    equal(stopped["discarded"], 0, "discarded")
    events = check_counts(k, trace, stopped["recorded"])
    always = collections.Counter((v["thread"], v["n"]) for v in map(integers, (e for e in events if e.name == "loads:always")))
    wanted = collections.Counter((t, n) for rounds in (ROUNDS // 10, ROUNDS) for t in range(THREADS) for n in range(rounds))
    equal(always - wanted, collections.Counter(), "events that were not emitted, or are there twice")
    equal(wanted - always, collections.Counter(), "events that are missing")
    if not kymotest.SANITIZED:
        check(end - warm < 1024, f"the program grew from {warm} to {end} KiB")
        check(resident_kib(k.daemon.pid) - before < 1024, f"the daemon grew from {before} to {resident_kib(k.daemon.pid)} KiB")


def test_constructor_of_a_library(k):
    """A library's own constructor is traced, from the first load on."""
    k.start_daemon()
    trace = k.record("loads:*")
    k.app("loads", copies(k), 1, 5)
    k.kymo("stop", "s")
    equal(names(trace), {"loads:constructed": 5, "loads:always": 5, "loads:sometimes": 5}, "events")


def test_rule_while_unloaded(k):
    """
    A rule, or a session, that is created while the library is not loaded has its effect when the
    library is loaded again.
    """
    k.start_daemon()
    trace = k.record("none:*")
    app = k.spawn("loads", copies(k), 1, 5, "-w")
    k.expect(app, "ready")
    k.kymo("enable-event", "-s", "s", "loads:always")
    k.let_go(app)
    k.expect(app, "ready")
    other = k.record("loads:*", session="other")
    k.let_go(app)
    k.expect(app, "ready")
    k.kymo("disable-event", "-s", "s", "loads:always")
    k.let_go(app)
    k.expect(app, "ready")
    k.kymo("enable-event", "-s", "s", "*:sometimes")
    k.let_go(app)
    k.finish(app)
    k.kymo("stop", "-a")
    equal(names(trace), {"loads:always": 2, "loads:sometimes": 1}, "events")
    equal(names(other), {f"loads:{n}": 3 for n in ("constructed", "always", "sometimes")}, "events of the other session")


@without_sanitizers  # sanitizers look for leaks in /proc
def test_after_chroot(k):
    """
    A library that is loaded where neither /proc nor the run directory is: its events are recorded
    from the first one on, also if nothing else happens in the program.
    """
    if os.geteuid() != 0:
        raise Skip("needs root")
    k.start_daemon()
    trace = k.record("loads:*")
    prefix = copies(k, 1)
    (k.top / "jail").mkdir()
    shutil.copy(f"{prefix}0.so", k.top / "jail")
    k.app("loads", prefix, 1, 50, "-c", k.top / "jail")
    k.kymo("stop", "s")
    equal(names(trace), {f"loads:{n}": 50 for n in ("constructed", "always", "sometimes")}, "events")


def test_functions_with_names_of_the_c_library(k):
    """
    The library makes system calls without the C library: a program may have a function `connect`
    or `poll` of its own.
    """
    k.start_daemon()
    k.record("namesakes:*,kymo_statedump:*,kymo_lib:*")
    k.app("namesakes")
    k.stop()
    messages, _ = read_trace(k.traces / "s")
    equal(sum(m.name == "namesakes:tick" for m in messages), 2000, "events of both processes")


def test_first_events(k):
    """Events of main, and of static constructors before it; and the last ones, of destructors."""
    if not (APPS / "first").exists():
        raise Skip("this build has no C++ compiler")
    k.start_daemon()
    trace = k.record("first:*")
    for _ in range(20):
        k.app("first")
    k.kymo("stop", "s")
    events = check_counts(k, trace, 60)
    equal([integers(e)["n"] for e in events], [1, 2, 3] * 20, "events, in order")


kymotest.main()
