#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The output of `status` and `list`: why a rule matches nothing, and everything that the daemon knows
about a session; the same in text and JSON.
"""

import os
import signal

import kymotest
from kymotest import LATE_CONSUMER, check, equal


def warnings(k, session="s"):
    """
    Returns the warnings of the session, without those of a late consumer; fails when the text and
    the JSON differ.
    """
    found = [w for w in k.kymo_json("status", session)["warnings"] if LATE_CONSUMER not in w]
    lines = [line.removeprefix("warning: ") for line in k.kymo("status", session).stdout.splitlines() if line.startswith("warning: ") and LATE_CONSUMER not in line]
    equal(lines, found, "warnings as text, and as JSON")
    return found


def explains(k, rule, *words, options=()):
    """Checks that one warning names the rule, and contains all these words."""
    k.kymo("enable-event", "-s", "s", rule, *options)
    found = [w for w in warnings(k) if w.startswith(f"rule '{rule}'")]
    check(len(found) == 1 and all(word in found[0] for word in words), f"{rule} {options}: wanted {words} in {found}")
    k.kymo("disable-event", "-s", "s", "-a", "-r")


def waiting(k, name="rules"):
    app = k.spawn(name, "-w", 1)
    k.expect(app, "ready")
    k.wait_registered(app)
    return app


def test_nothing_runs(k):
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    check("no event rule" in warnings(k)[0], "not said that there is no rule")
    explains(k, "alpha:*", "no instrumented application is running", str(k.rundir))


def test_rules_that_match_nothing(k):
    k.start_daemon()
    k.record("none:*")
    k.kymo("disable-event", "-s", "s", "-a", "-r")
    app = waiting(k)
    pid = str(app.pid)
    explains(k, "alpha:too", "did you mean", "'alpha:two'")
    explains(k, "gamma:*", "the only application that runs has no such event", "kymo list -u")
    k.kymo("enable-event", "-s", "s", "kymo_statedump:*")  # these are known from now on
    k.kymo("disable-event", "-s", "s", "-a", "-r")
    explains(k, "*:bin_info", "the only application that runs has no", "'kymo_statedump:bin_info' and others", "patterns that begin with 'kymo_'")
    explains(k, "alpha:one", "is of level ERR", "wants CRIT or more severe", options=["-l", "CRIT"])
    explains(k, "alpha:one", "is of level ERR", "wants only WARNING", options=["--loglevel-only=WARNING"])
    explains(k, "alpha:o*", "'alpha:one' is excluded by '*:o*'", options=["-x", "beta:*,*:o*,*:t*"])
    explains(k, "alpha:*", "is of level", "is excluded by 'alpha:one'", options=["-l", "ERR", "-x", "alpha:one"])
    k.kymo("track", "--vpid=1")
    explains(k, "alpha:*", f"application rules (pid {pid}", "is not tracked")
    check("the only application that runs is not tracked: 'kymo track --all' tracks every one" in warnings(k), "not said that none is tracked")
    k.kymo("track", "--vpid=all")
    equal(warnings(k), ["session 's' has no event rule that is enabled: 'kymo enable-event PATTERN' adds one"], "warnings")
    k.kymo("enable-event", "gamma:*", "-l", "CRIT")
    notes = k.kymo_json("enable-event", "gamma:*")["notes"]
    for texts in notes, warnings(k):
        equal(len([text for text in texts if "'gamma:*' matches nothing" in text]), 1, f"two rules of one pattern: {texts}")
    app.kill()


def test_kernel_names(k):
    """Rules for names of the kernel, without --kernel; a session that tracks no process."""
    kymotest.need_tracefs("events/sched")
    k.start_daemon()
    k.record("none:*")
    hint = "the kernel has such events: --kernel records them"
    for pattern in "sched_switch", "sched:sched_switch", "sched:*":
        check(hint in k.kymo("enable-event", pattern).stdout, pattern)
    for pattern in "shop:order", "s*", "*":
        check(hint not in k.kymo("enable-event", pattern).stdout, pattern)
    check(hint in k.kymo("record", "-e", "sched:sched_switch", "--", "true").stderr, "the same of kymo record")
    k.kymo("enable-event", "-k", "sched_switch")
    k.kymo("untrack", "-k", "--all")
    none = "kernel events of no process are tracked: 'kymo track --kernel --all' tracks those of all"
    check(none in warnings(k), warnings(k))
    k.kymo("track", "--kernel", "--all")
    check(none not in warnings(k), warnings(k))


def test_refused_definition(k):
    """The only event that the rule matches has a name that has another definition already."""
    k.start_daemon()
    k.record("alpha:three")
    k.app("rules", 1)
    k.kymo("disable-event", "-s", "s", "-a", "-r")
    app = waiting(k, "rules-other")
    explains(k, "alpha:three", f"'alpha:three' in application rules-other (pid {app.pid}) was refused", options=["--loglevel-only=DEBUG"])
    app.kill()


def test_stopped_program(k):
    k.start_daemon()
    k.record("alpha:*")
    k.kymo("disable-event", "-s", "s", "-a", "-r")
    app = waiting(k)
    kymotest.stop(app.pid)
    explains(k, "beta:*", f"application rules (pid {app.pid})", "has not answered: is it stopped?")
    os.kill(app.pid, signal.SIGCONT)
    app.kill()


def test_channel_and_session_states(k):
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    k.kymo("enable-event", "-s", "s", "alpha:*")
    app = waiting(k)
    equal(warnings(k), ["session 's' has not been started: 'kymo start s' begins to record"], "warnings")
    k.kymo("start", "s")
    equal(warnings(k), [], "warnings of a session where all is well")
    k.kymo("disable-channel", "-s", "s", "channel0")
    equal(warnings(k), ["channel 'channel0' is disabled: it records nothing until 'kymo enable-channel channel0'"], "warnings")
    k.kymo("enable-channel", "-s", "s", "channel0")
    k.kymo("stop", "s")
    equal(warnings(k), [], "warnings of a session that was stopped")
    app.kill()


def test_all_that_is_known(k):
    """
    Buffers and their memory, programs, domain, name and user of a session, in the text and the
    JSON.
    """
    k.start_daemon()
    k.record("alpha:*", channel=("--subbuf-size=64K", "--num-subbuf=4"))
    app = waiting(k)
    k.let_go(app)
    k.expect(app, "ready")
    session = k.kymo_json("list", "s")["session"]
    equal((session["name"], session["domain"], session["owner"], session["state"]), ("s", "user", os.getuid(), "started"), "session")
    equal([(a["pid"], a["name"], a["uid"], a["events"]) for a in session["applications"]], [(app.pid, "rules", os.getuid(), 3)], "programs")
    (buffers,) = session["channels"][0]["ring_sets"]
    equal((buffers["uid"], buffers["abi"]), (os.getuid(), "64-bit"), "buffers")
    check(buffers["size"] == 256 << 10 and 0 < buffers["memory"] <= buffers["count"] * ((256 << 10) + 8192) + 8192, f"{buffers}")
    text = k.kymo("list", "s").stdout
    for words in ("domain user", f"of user {os.getuid()}", f"{app.pid} rules", "256.0 KiB each", "of memory in use", "alpha:*: 3 events"):
        check(words in text, f"{words!r} is not in {text}")
    listed = k.kymo("list", "-u", "--fields").stdout
    for words in (f"{app.pid} rules", "alpha:one (ERR)", "    n: i32", "beta:one_more (EMERG)"):
        check(words in listed, f"{words!r} is not in {listed}")
    app.kill()


def test_single_steps(k):
    """
    Events that are discarded because a debugger interrupts every attempt are not put down to full
    buffers. (Without restartable sequences they are recorded.)
    """
    k.start_daemon()
    out = k.record("stepped:*")
    if k.run([kymotest.APPS / "stepped"], status=(0, 77)).returncode:
        raise kymotest.Skip("this system allows no debugger")
    k.kymo("stop")
    s = k.kymo_json("status", "s")["session"]
    equal((s["recorded"] + s["discarded"], s["discarded_interrupted"]), (5, s["discarded"]), f"events, and those that were interrupted: {s}")
    said = [w for w in warnings(k) if "discarded" in w]
    check(all("interrupted at every attempt" in w for w in said) and len(said) == (s["discarded"] > 0), f"says: {said}")
    shown = k.kymo("destroy").stdout
    check("buffers were full" not in shown and ("interrupted at every attempt" in shown) == (s["discarded"] > 0), shown)
    kymotest.read_trace(out)


kymotest.main()
