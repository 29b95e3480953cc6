#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
State events: recorded when they occur, and again in every session that begins later, until the
state ends.
"""

import time

import kymotest
from kymotest import check, check_counts, equal, fields, read_trace, wait_for

LONG = "a text that is longer than sixteen bytes"


def start(k, *lines):
    app = k.spawn("states")
    k.expect(app, "ready")
    k.wait_registered(app)
    tell(k, app, *lines)
    return app


def tell(k, app, *lines):
    for line in lines:
        app.stdin.write(line + "\n")
        app.stdin.flush()
        k.expect(app, "ok")


def quit_app(k, app):
    app.stdin.write("quit\n")
    k.finish(app)


def record(k, session, *rules):
    """Creates a session that has the state events and nothing else."""
    trace = k.record(*rules, session=session)
    k.kymo("destroy", session)
    return trace


def live(trace):
    """
    Returns the events that were recorded when they occurred: name, and all fields except the time.
    """
    return [(e.name, f) for e, f in told(trace) if not f.pop("state_since", 0)]


def again(trace):
    """Returns the events that were recorded again, in any order."""
    return sorted(((e.name, {n: v for n, v in f.items() if n != "state_since"}) for e, f in told(trace) if f.get("state_since")), key=str)


def told(trace):
    return [(e, fields(e)) for e in read_trace(trace)[0]] if (trace / "ust").exists() else []


def door(door, value):
    return "house:door", {"door": door, "open": value, "text": LONG if value % 2 else "short"}


def person(name, age):
    return "house:person", {"name": name, "age": age}


def test_later_sessions(k):
    """The newest value of each key, without ended ones; repeated for each request."""
    k.start_daemon()
    before = time.time_ns()
    app = start(k, "set 1 10", "set 2 21", "set 1 11", "name Ann 30", "name Bob 40", "set 3 30", "end 3", "leave Bob", "leave Carl")
    after = time.time_ns()
    state = [door(1, 11), door(2, 21), person("Ann", 30)]
    for session in ("first", "second"):
        trace = record(k, session)
        equal((live(trace), again(trace)), ([], state), session)
        for event, f in told(trace):
            check(before - 10**8 <= f["state_since"] <= after + 10**8, f"{event} is not of {before} .. {after}")
    equal(again(record(k, "one", "house:person")), state[2:], "what the rule wants")
    equal(told(record(k, "none", "other:*")), [], "nothing")
    tell(k, app, "end 1", "end 2", "leave Ann")
    equal(told(record(k, "empty")), [], "state after all has ended")
    tell(k, app, "set 4 40")
    equal(again(record(k, "new")), [door(4, 40)], "a slot that was another's")
    quit_app(k, app)


def test_live(k):
    """
    A session that exists has each event once; one that begins later has the state, then the events.
    """
    k.start_daemon()
    first = k.record(session="first")
    app = start(k, "set 1 10", "name Ann 30")
    second = k.record(session="second")
    tell(k, app, "set 1 12", "leave Ann", "end 1")
    k.kymo("regenerate", "statedump", "-s", "first")
    k.kymo("destroy", "-a")
    ends = [("house:person_end", {"name": "Ann"}), ("house:door_end", {"door": 1})]
    equal((live(first), again(first)), ([door(1, 10), person("Ann", 30), door(1, 12), *ends], []), "first")
    equal((live(second), again(second)), ([door(1, 12), *ends], [door(1, 10), person("Ann", 30)]), "second")
    quit_app(k, app)
    equal(fields(next(e for e in read_trace(first)[0] if e.name == "house:door"))["state_since"], 0, "time of what comes")


def test_regenerate(k):
    k.start_daemon()
    app = start(k, "set 1 10")
    trace = k.record()
    k.kymo("regenerate", "statedump", "-s", "s")
    k.kymo("destroy", "s")
    equal(again(trace), [door(1, 10)] * 2, "state, twice")
    quit_app(k, app)


def test_joining(k):
    """A program that starts during a session records the states that it sets, and no more."""
    k.start_daemon()
    trace = k.record()
    app = start(k, "set 1 10", "end 1")
    quit_app(k, app)
    k.kymo("destroy", "s")
    equal((live(trace), again(trace)), ([door(1, 10), ("house:door_end", {"door": 1})], []), "events")


def test_fork(k):
    """The child has its parent's values, and its own from then on."""
    k.start_daemon()
    app = start(k, "set 1 10", "set 2 20")
    app.stdin.write("fork\n")
    app.stdin.flush()
    k.expect(app, "ok")
    wait_for(lambda: len(k.request(command="list-events", brief=True)["applications"]) == 2, "the child to register")
    tell(k, app, "set 2 22", "end 1", "set 3 30")
    equal(again(record(k, "child")), sorted([door(1, 10), door(2, 20), door(2, 22), door(3, 30)], key=str), "both processes' state")
    app.stdin.write("quit\n")
    app.stdin.flush()
    k.expect(app, "ok")
    equal(again(record(k, "parent")), [door(1, 10), door(2, 20)], "the parent's state")
    quit_app(k, app)


def test_too_much(k):
    """
    A state that is too large, or one too many, is recorded when it occurs, and counted as discarded
    where it should be repeated.
    """
    k.start_daemon()
    first = k.record(session="first")
    app = start(k, "long 400", "long 1000", "many 4200")
    k.kymo("stop", "first")
    check_counts(k, first, 4202)
    late = k.record(session="late")
    check("states for which there was no room" in k.kymo("stop", "late").stdout, "stop says what may have been discarded")
    events, discarded = read_trace(late)
    equal((len(events), discarded), (4095, 4200 - 4095 + 1), "doors that were kept, and what was not")
    tell(k, app, "set 4198 1", "set 4198 2", "end 4199", "end 0", "set 4197 4")
    k.record(session="later")
    k.kymo("stop", "later")
    events, discarded = read_trace(k.traces / "later")
    equal((len(events), discarded), (4095, 4200 - 4095 + 1 - 2), "doors, and those that are not repeated, each once")
    tell(k, app, "long 400")
    equal(len([e for e in read_trace(record(k, "fits", "house:long*"))[0] if "x" * 400 in e.fields]), 1, "a value that fits again")
    quit_app(k, app)


def test_threads(k):
    """
    Sessions begin while threads set values: each has all later values, and at least the last one
    before its begin.
    """
    k.start_daemon()
    app = start(k, "threads 4")
    traces = [k.record(session=f"s{n}", channel=("--subbuf-size=1M", "--num-subbuf=32")) for n in range(3)]
    tell(k, app, "join")
    k.kymo("stop", "-a")
    ends = set()
    for trace in traces:
        doors = {n: ([], []) for n in range(4)}
        for _, f in told(trace):
            doors[f["door"]][f["state_since"] != 0].append(f["open"])
        equal(read_trace(trace)[1], 0, "discarded")
        for number, (came, before) in doors.items():
            check(came, f"door {number} in {trace.name}: no value")
            equal(came, list(range(came[0], came[-1] + 1)), f"door {number} in {trace.name}: what came is without a gap")
            check(len(before) <= 1 and all(v >= came[0] - 1 for v in before), f"door {number} in {trace.name}: {before} before {came[0]}")
        ends.add(tuple(came[-1] for came, _ in doors.values()))
    equal(len(ends), 1, f"last values in the sessions: {ends}")
    k.kymo("destroy", "-a")
    quit_app(k, app)


def test_without_tracer(k):
    done = k.run([kymotest.APPS / "states"], input="set 1 2\nend 1\nquit\n", env={"LD_LIBRARY_PATH": "/nonexistent", "KYMO_OFF": "1"})
    equal(done.stdout, "ready\nok\nok\n", "answers")


if __name__ == "__main__":
    kymotest.main()
