#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The events that a rule records: patterns, exclusions, levels, and rules that are enabled and
disabled while programs run.
"""

import collections
import subprocess

import kymotest
from kymotest import check, check_counts, equal, read_trace, wait_for

# The events of apps/rules.c, and their levels: 3 is ERR, 4 WARNING, 13 DEBUG_LINE, 6 INFO, 0 EMERG.
LEVELS = {"alpha:one": 3, "alpha:two": 4, "alpha:three": 13, "beta:one": 6, "beta:one_more": 0}
N = 7

# Rules as arguments of enable-event, and the events that they record: the letters are 1, 2, 3 of
# alpha; o, m of beta.
LETTERS = {"1": "alpha:one", "2": "alpha:two", "3": "alpha:three", "o": "beta:one", "m": "beta:one_more"}
RULES = [
    ("123om", ["*"]), ("123om", ["-a"]), ("123om", ["*:*"]), ("123", ["alpha:*"]), ("om", ["b*"]), ("1o", ["*:one"]),
    ("1om", ["*one*"]), ("23", ["alpha:t*"]), ("2", ["*:t*o"]), ("m", ["*_*"]), ("", ["one"]), ("", ["alpha"]), ("", ["*:o"]),
    ("1", [r"alpha:\one"]), ("12", ["alpha:one,alpha:two"]), ("1", ["alpha:one*", "alpha:one"]),
    ("", ["ALPHA:*"]), ("3", ["***:***h***r***e***"]), ("1", ["alpha:*", "-x", "*:t*"]), ("o", ["*", "-x", "alpha:*,*_more"]),
    ("123om", ["*", "-x", "one"]), ("om", ["*", "-x", "alpha:one", "-x", "alpha:t*"]), ("", ["*", "-x", "*"]),
    ("12m", ["*", "-l", "WARNING"]), ("m", ["*", "-l", "0"]), ("12om", ["*", "-l", "INFO"]), ("123om", ["*", "-l", "DEBUG"]),
    ("2", ["*", "--loglevel-only=WARNING"]), ("", ["*", "--loglevel-only=NOTICE"]), ("o", ["*one*", "--loglevel-only", "6"]),
    ("1", ["*", "-l", "ERR", "-x", "beta:*"]),
    # several rules of one channel: an event is recorded once
    ("123om", ["*"], ["alpha:*"], ["*:one"]), ("12o", ["*:one"], ["alpha:two"]), ("1m", ["*", "-l", "ERR"], ["alpha:one"]),
    ("123", ["alpha:*", "-x", "*:one"], ["alpha:*", "-x", "*:two"]), ("1", ["alpha:*", "-x", "*:t*"], ["alpha:*", "-l", "ERR"]),
]


def names(trace):
    return collections.Counter(e.name for e in read_trace(trace)[0])


def enable(k, session, *args):
    k.kymo("enable-event", "-s", session, *args)


def rounds(k, app, n):
    """Lets a waiting application emit n rounds."""
    for _ in range(n):
        k.let_go(app)
        k.expect(app, "ready")


def waiting(k, *counts, name="rules"):
    app = k.spawn(name, "-w", *counts)
    k.expect(app, "ready")
    return app


def check_each_rule(k, before):
    """Creates a session for each entry of RULES. before: the rules exist before programs start."""
    k.start_daemon()
    app = None if before else waiting(k, N)
    for i, (_, *rules) in enumerate(RULES):
        k.kymo("create", f"s{i}", "-o", k.traces / f"s{i}")
        for rule in rules:
            enable(k, f"s{i}", *rule)
    k.kymo("start", "-a")
    if app:
        rounds(k, app, 1)
        k.let_go(app)
        k.finish(app)
    else:
        k.app("rules", N)
    k.kymo("stop", "-a")
    for i, (wanted, *rules) in enumerate(RULES):
        got = names(k.traces / f"s{i}") if wanted else {}
        equal(dict(got), {LETTERS[c]: N for c in wanted}, f"events of {rules}")
        if not wanted:
            equal(k.kymo_json("status", f"s{i}")["session"]["recorded"], 0, f"events of {rules}")


def test_rules_before_programs(k):
    check_each_rule(k, True)


def test_rules_after_programs(k):
    check_each_rule(k, False)


def test_rules_come_and_go(k):
    """
    Each change is in effect when its command returns: exactly the rounds in between are recorded.
    """
    k.start_daemon()
    trace = k.record("none:*")
    app = waiting(k, *range(1, 14))
    counts = iter(range(1, 14))
    wanted = collections.Counter()

    def emit(*recorded):
        n = next(counts)
        rounds(k, app, 1)
        wanted.update({name: n for name in recorded})

    emit()
    enable(k, "s", "alpha:*")
    emit("alpha:one", "alpha:two", "alpha:three")
    enable(k, "s", "*:one")
    emit("alpha:one", "alpha:two", "alpha:three", "beta:one")
    k.kymo("disable-event", "-s", "s", "alpha:*")
    emit("alpha:one", "beta:one")
    enable(k, "s", "alpha:*", "-x", "alpha:t*o")
    emit("alpha:one", "alpha:three", "beta:one")
    k.kymo("disable-event", "-s", "s", "*:one", "--remove")
    emit("alpha:one", "alpha:three")
    k.kymo("stop", "s")
    enable(k, "s", "beta:*")
    emit()
    k.kymo("start", "s")
    emit("alpha:one", "alpha:three", "beta:one", "beta:one_more")
    k.kymo("disable-channel", "-s", "s", "channel0")
    emit()
    k.kymo("enable-channel", "-s", "s", "channel0")
    emit("alpha:one", "alpha:three", "beta:one", "beta:one_more")
    enable(k, "s", "*")
    emit(*(f"alpha:{name}" for name in ("one", "two", "three")), "beta:one", "beta:one_more")
    k.kymo("disable-event", "-s", "s", "*")  # that rule only
    emit("alpha:one", "alpha:three", "beta:one", "beta:one_more")
    k.kymo("disable-event", "-s", "s", "-a", "-r")
    emit()
    k.let_go(app)
    k.finish(app)
    rules = k.kymo_json("status", "s")["session"]["channels"][0]["rules"]
    equal(rules, [], "rules after all were removed")
    k.kymo("stop", "s")
    equal(names(trace), wanted, "events")


def test_new_channel_in_a_started_session(k):
    k.start_daemon()
    trace = k.record("alpha:one")
    app = waiting(k, 3, 4)
    rounds(k, app, 1)
    k.kymo("enable-channel", "-s", "s", "late", "--subbuf-size=8K")
    enable(k, "s", "-c", "late", "*:one")
    rounds(k, app, 1)
    k.let_go(app)
    k.finish(app)
    k.kymo("stop", "s")
    equal(names(trace), {"alpha:one": 3 + 4 + 4, "beta:one": 4}, "events")


def test_rules_while_emitting(k):
    """
    Rules that are enabled and disabled concurrently with a program's events lose no event of
    another rule.
    """
    k.start_daemon()
    trace = k.record("alpha:one", channel=("--subbuf-size=1M",))
    app = k.spawn("rules", 60000)
    while app.poll() is None:
        for change in (["enable-event", "-s", "s", "alpha:*"], ["enable-event", "-s", "s", "*:one"],
                ["disable-event", "-s", "s", "alpha:*"], ["disable-event", "-s", "s", "*:one", "-r"]):
            k.kymo(*change)
    k.finish(app)
    stopped = k.kymo_json("stop", "s")["sessions"][0]
    equal(stopped["discarded"], 0, "discarded")
    equal(len(check_counts(k, trace, stopped["recorded"])), stopped["recorded"], "events")
    equal(names(trace)["alpha:one"], 60000, "events that were wanted all the time")


def conflict(k, *channel):
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    k.kymo("enable-channel", "channel0", "-s", "s", *channel)
    enable(k, "s", "*")
    k.kymo("start", "s")
    for name in ("rules", "rules-other", "rules", "rules-other"):
        k.app(name, N)
    warnings = "\n".join(k.kymo_json("status", "s")["warnings"])
    stopped = k.kymo_json("stop", "s")["sessions"][0]
    for words in ("alpha:two", "alpha:three", "of application rules-other", "by application rules (", "string n", "i32 n", "DEBUG_LINE", "DEBUG"):
        check(words in warnings, f"{words!r} is not in {warnings!r}")
    equal(warnings.count("alpha:two"), 1, "warnings of one conflict")
    return stopped, warnings


def test_conflict_refused(k):
    """Events with another definition, which are not recorded, are counted."""
    stopped, warnings = conflict(k)
    equal((stopped["recorded"], stopped["discarded"], stopped["discarded_refused"]), (16 * N, 4 * N, 4 * N), "counts")
    events = check_counts(k, k.traces / "s", 20 * N)
    equal(collections.Counter(e.name for e in events), {name: (2 if name in ("alpha:two", "alpha:three") else 4) * N for name in LEVELS},
        "events")
    check("separate" in warnings, "no hint at --event-conflict=separate")
    metadata = next((k.traces / "s").glob("ust/uid/*/*/metadata")).read_text()
    for said, where in ((k.kymo("destroy", "s").stdout, "destroy"), (k.daemon_log(), "the log"), (metadata, "the metadata")):
        for words in ("of application rules-other", "by application rules (", "event-conflict=separate", "string n", "i32 n"):
            check(words in said, f"{where} does not say {words!r}: {said[-2000:]}")


def test_conflict_resolved(k):
    """
    Both definitions are recorded after the user has resolved the conflict; until then each refused
    event is counted.
    """
    k.start_daemon()
    trace = k.record("alpha:two")
    k.app("rules", 1)
    app = waiting(k, 10, 20, 40, name="rules-other")
    rounds(k, app, 1)
    k.kymo("set", "-s", "s", "-c", "channel0", "event-conflict=separate")
    check("counted as discarded" not in str(k.kymo_json("status", "s")["warnings"]), "the conflict is resolved")
    rounds(k, app, 1)
    k.kymo("stop", "s")
    k.kymo("start", "s")
    rounds(k, app, 1)
    k.let_go(app)
    k.finish(app)
    stopped = k.kymo_json("destroy", "s")["sessions"][0]
    equal((stopped["recorded"], stopped["discarded"]), (1 + 20 + 40, 10), "counts")
    equal(names(trace), {"alpha:two": 61}, "events")


def test_conflict_resolved_while_recording(k):
    """At full speed, no event is lost uncounted or recorded twice."""
    k.start_daemon()
    trace = k.record("alpha:two")
    k.app("rules", 1)
    app = waiting(k, 400000, name="rules-other")
    k.let_go(app)
    wait_for(lambda: k.kymo_json("status", "s")["session"]["discarded"], "events to be refused")
    k.kymo("set", "-s", "s", "event-conflict=separate")
    k.expect(app, "ready")
    k.let_go(app)
    k.finish(app)
    stopped = k.kymo_json("destroy", "s")["sessions"][0]
    equal(stopped["recorded"] + stopped["discarded"], 400001, "events")


def test_record_keeps_both(k):
    """kymo record: the trace has the events of both definitions."""
    both = f"{kymotest.APPS / 'rules'} 5; {kymotest.APPS / 'rules-other'} 5"
    k.kymo("record", "-o", k.traces / "r", "-e", "alpha:two", "--", "sh", "-c", both)
    equal(names(k.traces / "r"), {"alpha:two": 10}, "events")
    done = k.kymo("record", "-o", k.traces / "q", "-e", "alpha:two", "--event-conflict=refuse", "--", "sh", "-c", both)
    check("5 events were discarded" in done.stderr and "by application rules (" in done.stderr, done.stderr)


def test_conflict_refused_is_switched(k):
    """A refused event is not counted if no rule selects it, or while the session is stopped."""
    k.start_daemon()
    trace = k.record("alpha:two")
    k.app("rules", 1)
    app = waiting(k, 2, 4, 8, 16, 32, name="rules-other")
    rounds(k, app, 1)
    k.kymo("disable-event", "-s", "s", "alpha:two")
    rounds(k, app, 1)
    enable(k, "s", "alpha:*")
    rounds(k, app, 1)
    k.kymo("stop", "s")
    rounds(k, app, 1)
    k.kymo("start", "s")
    rounds(k, app, 1)
    k.let_go(app)
    k.finish(app)
    stopped = k.kymo_json("stop", "s")["sessions"][0]
    equal((stopped["recorded"], stopped["discarded"]), (1 + 2 * (8 + 32), 2 + 8 + 32), "counts of two and of one, three")
    equal(names(trace), {"alpha:two": 1, "alpha:one": 40, "alpha:three": 40}, "events")


def test_conflict_separate(k):
    """Another definition becomes another event with the same name: all readers accept it."""
    stopped, warnings = conflict(k, "--event-conflict=separate")
    equal((stopped["recorded"], stopped["discarded"]), (20 * N, 0), "counts")
    events = check_counts(k, k.traces / "s", 20 * N)
    equal(collections.Counter(e.name for e in events), {name: 4 * N for name in LEVELS}, "events")
    twos = collections.Counter(e.fields for e in events if e.name == "alpha:two")
    equal(twos, {'n = "two"': 2 * N, **{f"n = {i}": 2 for i in range(N)}}, "alpha:two")
    mine = subprocess.run([kymotest.CLI, "view", k.traces / "s"], capture_output=True, text=True, check=True, env=k.env).stdout
    theirs = subprocess.run(["babeltrace2", k.traces / "s"], capture_output=True, text=True, check=True).stdout
    equal(mine.splitlines(), theirs.splitlines(), "kymo view, against babeltrace2")
    check("another event of that name" in warnings, "not said that both are recorded")


kymotest.main()
