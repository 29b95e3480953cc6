#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
pause and resume: between them no application records, and the buffers stay unchanged; one trace has
the events before and after.
"""

import pathlib

import kymotest
from emitcheck import emitted
from kymotest import check, check_counts, equal, wait_for


def emit(k, n=100, **options):
    """Runs emit to its end; returns how many events it emitted."""
    return sum(emitted(k.finish(k.spawn("emit", "-n", n, **options))))


def state(k):
    return k.kymo_json("status")["session"]["state"]


def ready(k, *args):
    app = k.spawn("emit", "-w", "-n", 100, *args)
    k.expect(app, "ready")
    k.wait_registered(app)
    return app


def finish(k, app):
    """Makes emit -w emit its events and exit; returns how many events it emitted."""
    k.let_go(app)
    lines = [app.stdout.readline() for _ in range(2)]
    k.expect(app, "done")
    k.let_go(app)
    k.finish(app)
    return sum(emitted("".join(lines)))


def test_pause(k, env=None):
    """
    Of programs that ran before, and of one that starts meanwhile, nothing is recorded until the
    session is resumed.
    """
    k.start_daemon()
    out = k.record("emit:*")
    total = emit(k, env=env)
    before = ready(k)
    equal(k.kymo("pause").stdout, "session 's' paused\n", "what pause says")
    equal(state(k), "paused", "state of a paused session")
    check("is paused" in k.kymo("status").stdout, "status does not report the pause")
    meanwhile = ready(k)
    finish(k, before)
    emit(k)
    after = ready(k)
    finish(k, meanwhile)
    equal(k.kymo("resume").stdout, "session 's' resumed\n", "what resume says")
    total += finish(k, after)
    k.kymo("pause")
    emit(k)
    equal(k.kymo_json("stop")["sessions"][0]["recorded"], total, "recorded at the stop of a paused session")
    equal(state(k), "stopped", "state of a paused session that was stopped")
    k.kymo("start")
    total += emit(k)
    k.kymo("destroy")
    check_counts(k, out, total)


def test_pause_without_rseq(k):
    test_pause(k, env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})


def test_start_resumes(k):
    """start has the effect of resume, and both are idempotent."""
    k.start_daemon()
    out = k.record("emit:*")
    k.kymo("pause")
    k.kymo("pause")
    k.kymo("start")
    equal(state(k), "started", "state")
    k.kymo("resume")
    total = emit(k)
    k.kymo("pause")
    k.kymo("destroy")
    check_counts(k, out, total)


def test_frozen(k):
    """
    Snapshots of a paused session have the buffers' contents at the pause: nothing is overwritten
    later.
    """
    k.start_daemon()
    k.kymo("create", "s", "--snapshot", "-o", k.traces / "s")
    k.kymo("enable-channel", "channel0", "--subbuf-size=4K", "--num-subbuf=4")
    k.kymo("enable-event", "emit:*")
    k.kymo("start")
    emit(k, 1000)
    k.kymo("pause")
    first = k.kymo_json("snapshot", "record")["snapshot"]
    emit(k, 5000)
    second = k.kymo_json("snapshot", "record")["snapshot"]
    for member in ("recorded", "overwritten"):
        equal(second[member], first[member], f"{member} of the second snapshot")
    check(first["recorded"] > 0, "the first snapshot is empty")
    text = [kymotest.read_trace(pathlib.Path(s["output"]))[0] for s in (first, second)]
    equal(text[1], text[0], "events of the second snapshot")
    k.kymo("resume")
    emit(k, 5000)
    check(k.kymo_json("snapshot", "record")["snapshot"]["overwritten"] > first["overwritten"], "nothing was recorded after resume")


def test_contexts(k):
    """Contexts that are added to a paused session are in the events after it."""
    k.start_daemon()
    out = k.record("emit:*")
    app = ready(k)
    total = emit(k)
    k.kymo("pause")
    k.kymo("add-context", "-t", "vpid")
    k.kymo("resume")
    total += finish(k, app)
    k.kymo("destroy")
    events = check_counts(k, out, total)
    equal(sum("vpid = " in line for line in kymotest.babeltrace(out)[0].splitlines()), 100, "events with the context")
    equal(len(events), 200, "events")


def test_refused(k):
    """A stopped session can be neither paused nor resumed; --all ignores it."""
    k.start_daemon()
    k.record("emit:*", session="a", start=False)
    for command in ("pause", "resume"):
        check("'kymo start'" in k.kymo(command, "a", status=1).stderr, f"{command} does not give the remedy")
    k.record("emit:*", session="b")
    equal([s["state"] for s in k.kymo_json("pause", "--all")["sessions"]], ["stopped", "paused"], "states after pause --all")
    equal([s["state"] for s in k.kymo_json("resume", "-a")["sessions"]], ["stopped", "started"], "states after resume -a")
    k.kymo("resume", "nosuch", status=1)


def test_no_wait(k):
    """
    The reply reports the state at once. The work is completed all the same, and then the session
    accepts commands again.
    """
    k.start_daemon()
    out = k.record("emit:*")
    total = emit(k)
    for command, wanted in (("pause", "paused"), ("resume", "started"), ("stop", "stopped"), ("start", "started")):
        equal(k.kymo_json(command, "--no-wait")["sessions"][0]["state"], wanted, f"state after {command} --no-wait")
        wait_for(lambda: k.request(command=command)["ok"], f"{command} to be done")
        total += emit(k) if wanted == "started" else 0 * emit(k)
    equal(k.kymo("destroy", "--no-wait").stdout, "1 session will be destroyed\n", "what destroy --no-wait says")
    wait_for(lambda: not k.kymo_json("list")["sessions"], "the session to go")
    check_counts(k, out, total)


if __name__ == "__main__":
    kymotest.main()
