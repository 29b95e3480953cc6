#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Triggers that programs decide: an event that passes a filter, a span that lasts too long. The
snapshot holds the event that fired the trigger and what led to it, also while the program goes on
at full speed; every event is in it or counted.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess

import kymotest
from kymotest import CLI, check, equal, integers, read_trace, wait_for

RING = ("--subbuf-size=16K", "--num-subbuf=4")
# Ticks of 16 bytes that a sub-buffer holds at least: some records have the long header.
BLOCK = 1000
AT = 100000


def fly(k, *channel, rules="hits:*", start=True):
    """Makes and starts a session that keeps events for snapshots only."""
    out = k.traces / "s"
    k.kymo("create", "s", "--snapshot", "-o", out)
    k.kymo("enable-channel", "channel0", *RING, *channel)
    k.kymo("enable-event", rules)
    if start:
        k.kymo("start")
    return out


def watch(k):
    p = subprocess.Popen([CLI, "--json", "watch", "--all", "s"], env=k.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    k.started.append(p)
    return p


def message(p, kind=None):
    line = kymotest.read_line(p)
    check(line, lambda: f"kymo watch ended, or has no message: {p.stderr.read()}")
    m = json.loads(line)
    if kind:
        equal(m["kind"], kind, f"kind of the message {m}")
    return m


def trigger(k, name):
    return next(t for t in k.kymo_json("list-triggers")["triggers"] if t["name"] == name)


def hits(k, *args, hold=False, wrap=()):
    """Starts a program, which has all triggers, and lets it emit."""
    app = k.spawn("hits", *args, env={"KYMO_HITS_HOLD": "1"} if hold else {}, wrap=wrap)
    k.expect(app, "ready")
    k.let_go(app)
    return app


def check_hit(trace, at=AT, thread=0):
    """
    The trace has the event that fired, and, from at least all sub-buffers but one, the events of
    its thread before it: none is missing between the first one and the last.
    """
    events, _ = read_trace(trace)
    n = [integers(e)["n"] for e in events if e.name == "hits:tick" and integers(e)["thread"] == thread]
    hit = [integers(e)["n"] for e in events if e.name == "hits:hit" and integers(e)["thread"] == thread]
    check(at in hit, f"the event that fired is not in the snapshot, which has {len(events)} events, ticks {n[:1]} to {n[-1:]}")
    check(n and n[0] <= at - 2 * BLOCK, f"ticks begin at {n[:1]}, the trigger fired at {at}")
    before = [i for i in n if i <= at]
    equal(before, list(range(before[0], at + 1)), "ticks before the event that fired")
    return events


def check_exact(k, emitted):
    """Every event that was emitted is in a snapshot of all, or counted."""
    counts = k.kymo_json("snapshot", "record")["snapshot"]
    equal(counts["recorded"] + counts["overwritten"] + counts["discarded"] + counts["left_out"], emitted,
        f"recorded + overwritten + discarded, against emitted: {counts}")


def check_full_speed(k, *channel, wrap=()):
    k.start_daemon()
    fly(k, *channel)
    k.kymo("add-trigger", "hit", f"--when=event(hits:hit) && n == {AT}", "--do=snapshot")
    w = watch(k)
    app = hits(k, "event", 1, 4 * AT, AT - 1, 2, wrap=wrap, hold=True)
    fired, written = message(w, "fired"), message(w, "snapshot")
    check(f"hits (pid {app.pid}, thread " in fired["text"], fired["text"])
    check_hit(written["output"])
    check(f"trigger: hit (event(hits:hit) && n == {AT}): {fired['text']}" in k.run([CLI, "view", written["output"]]).stderr.replace("?", "*"),
        "the metadata does not name what fired")
    emitted = int(app.stdout.readline())
    check_exact(k, emitted)
    k.let_go(app)
    k.finish(app)


def test_event(k):
    check_full_speed(k, wrap=kymotest.ONE_CPU)


def test_event_in_threads_buffers(k):
    check_full_speed(k, "--buffers=thread")


def test_without_rseq(k):
    k.env["GLIBC_TUNABLES"] = "glibc.pthread.rseq=0"
    check_full_speed(k)


def test_all_cpus(k):
    """
    All CPUs write at full speed into small buffers when one of them fires: each buffer has, of
    before the event that fired, all sub-buffers but the one that was just entered, and the present.
    """
    k.env["KYMO_HITS_PIN"] = "1"
    k.start_daemon()
    fly(k)
    k.kymo("add-trigger", "hit", f"--when=event(hits:hit) && n == {AT} && thread == 0", "--do=snapshot")
    w = watch(k)
    n_cpus = len(os.sched_getaffinity(0))
    app = hits(k, "event", n_cpus, 4 * AT, AT, hold=True)
    message(w, "fired")
    events, _ = read_trace(message(w, "snapshot")["output"])
    fired = [e.time for e in events if e.name == "hits:hit" and integers(e)["thread"] == 0]
    equal(len(fired), 1, "events that fired in the snapshot")
    for thread in range(n_cpus):
        ticks = [(integers(e)["n"], e.time) for e in events if e.name == "hits:tick" and integers(e)["thread"] == thread]
        before = [n for n, time in ticks if time <= fired[0]]
        equal(before, list(range(before[0], before[0] + len(before))) if before else [], f"ticks of thread {thread} before the event that fired")
        # A buffer that has overwritten nothing has all events from the first on.
        if ticks and ticks[0][0] > 0:
            check(len(before) >= 2 * BLOCK, f"thread {thread}: {len(before)} ticks before the event that fired, from {ticks[0]} on")
    check_exact(k, int(app.stdout.readline()))
    k.let_go(app)
    k.finish(app)


def test_contexts_and_filters(k):
    """The trigger's filter comes behind those of the rules; contexts stay in front of fields."""
    k.start_daemon()
    fly(k, rules="hits:tick")
    k.kymo("enable-event", "hits:hit", f"--filter=n == {AT} || n == 7")
    k.kymo("add-context", "-t", "vpid", "-t", "procname")
    k.kymo("add-trigger", "hit", "--when=event(hits:hit) && n > 7", "--do=snapshot")
    w = watch(k)
    app = hits(k, "event", 1, AT + 100, 5, AT, wrap=kymotest.ONE_CPU)
    message(w, "fired")
    events, _ = read_trace(message(w, "snapshot")["output"])
    equal([integers(e)["n"] for e in events if e.name == "hits:hit" and integers(e)["n"] > 7], [AT], "hits in the snapshot")
    k.finish(app)


def test_many_threads(k):
    """Eight threads at full speed fire again and again; nothing is lost uncounted."""
    k.start_daemon()
    fly(k)
    k.kymo("add-trigger", "hit", f"--when=event(hits:hit) && n == {AT}", "--do=snapshot", "--rate=100/1h")
    w = watch(k)
    app = hits(k, "event", 8, 2 * AT, AT, hold=True)
    emitted = int(app.stdout.readline())
    while (written := message(w))["kind"] != "snapshot":
        equal(written["kind"], "fired", f"kind of the message {written}")
    events, _ = read_trace(written["output"])
    check(any(e.name == "hits:hit" and integers(e)["n"] == AT for e in events), f"no event that fired is in {written}")
    wait_for(lambda: trigger(k, "hit")["fired"] + trigger(k, "hit")["left_out"] == 8, lambda: f"all 8 to be counted: {trigger(k, 'hit')}")
    wait_for(lambda: k.kymo_json("status", "s")["session"]["snapshots"] == trigger(k, "hit")["fired"], "all snapshots to be written")
    check_exact(k, emitted)
    k.let_go(app)
    k.finish(app)


def test_rate(k):
    """A trigger that may not fire only counts."""
    k.start_daemon()
    k.record("hits:*")
    k.kymo("add-trigger", "often", "--when=event(hits:h*, debug_line)", "--do=notify", "--rate=1/1h")
    k.kymo("add-trigger", "severe", "--when=event(hits:hit, info)", "--do=notify")
    k.kymo("add-trigger", "never", "--when=event(hits:hit) && n > 5000", "--do=notify")
    k.kymo("add-trigger", "word", "--when=event(hits:word) && n == 7", "--do=notify", "--rate=1/1h")
    k.kymo("add-trigger", "removed", "--when=event(hits:hit)", "--do=notify")
    k.kymo("remove-trigger", "removed")
    app = hits(k, "event", 2, 1000, 0, 500)
    k.finish(app)
    wait_for(lambda: trigger(k, "often")["fired"] + trigger(k, "often")["left_out"] == 1000, lambda: f"1000 to be counted: {trigger(k, 'often')}")
    equal(trigger(k, "often")["fired"], 1, "times that it fired")
    equal((trigger(k, "word")["fired"], trigger(k, "word")["left_out"]), (1, 1), "an event of one word")
    equal([(trigger(k, n)["fired"], trigger(k, n)["left_out"]) for n in ("severe", "never")], [(0, 0)] * 2, "others")
    k.kymo("stop")
    events, discarded = read_trace(k.traces / "s")
    equal(len(events) + discarded, 4000, "recorded + discarded")


def test_spans(k):
    """
    The ends of spans that last too long, of threads and asynchronous ones. Several of them: none
    fires while the snapshot of the first one is copied.
    """
    k.start_daemon()
    fly(k)
    k.kymo("add-trigger", "long", "--when=span(hits:work) > 50ms && us > 0", "--do=snapshot")
    k.kymo("add-trigger", "order", "--when=span(hits:ord*) > 50ms", "--do=notify", "--rate=1/1h")
    k.kymo("add-trigger", "never", "--when=span(hits:*) > 1h", "--do=notify")
    w = watch(k)
    app = hits(k, "spans", 10, *[60000] * 5, 10, hold=True)
    seen = {(m["trigger"], m["kind"]): m for m in (message(w), message(w), message(w))}
    equal(set(seen), {("long", "fired"), ("long", "snapshot"), ("order", "fired")}, "messages")
    text = seen["long", "fired"]["text"]
    check(text.startswith("hits (pid ") and float(text.split(": ")[1].split()[0]) > 50, text)
    events, _ = read_trace(seen["long", "snapshot"]["output"])
    check(any(e.name == "hits:work_end" and integers(e)["us"] > 0 for e in events), "the end is not in the snapshot")
    equal(trigger(k, "never")["fired"], 0, "times that the third one fired")
    k.let_go(app)
    k.finish(app)


def test_too_many_open_spans(k):
    """Spans for which there is no place cannot fire, and are counted."""
    k.start_daemon()
    fly(k)
    k.kymo("add-trigger", "order", "--when=span(hits:order) > 1h", "--do=notify")
    k.kymo("add-trigger", "hit", "--when=event(hits:hit)", "--do=notify")
    n, places = 20000, 8192
    app = hits(k, "open", n, hold=True)
    wait_for(lambda: trigger(k, "order")["missed_spans"] >= n - places, lambda: f"spans to be missed: {trigger(k, 'order')}")
    check(trigger(k, "order")["missed_spans"] < n, f"more than there are: {trigger(k, 'order')}")
    check("missed_spans" not in trigger(k, "hit"), "spans that an event missed")
    said = k.kymo("list-triggers").stdout
    check(re.search(r"not measured: \d{5} spans of the session", said), said)
    k.let_go(app)
    k.finish(app)


def test_program_killed(k):
    """A program that is killed right after the event that fires."""
    k.start_daemon()
    fly(k)
    k.kymo("add-trigger", "hit", "--when=event(hits:hit)", "--do=snapshot")
    w = watch(k)
    app = hits(k, "killed", AT, wrap=kymotest.ONE_CPU)
    message(w, "fired")
    check_hit(message(w, "snapshot")["output"])
    k.finish(app, status=-signal.SIGKILL)


def test_daemon_killed(k):
    """
    The session daemon is killed before it takes the snapshot: its successor takes it, and looks at
    the triggers that were there before the session started.
    """
    k.start_daemon()
    fly(k, start=False)
    k.kymo("add-trigger", "other", "--when=event(hits:none)", "--do=snapshot")
    k.kymo("add-trigger", "hit", f"--when=event(hits:hit) && n == {AT}", "--do=snapshot")
    k.kymo("add-trigger", "rate", "--when=events/s < 1000000000", "--do=notify")
    k.kymo("remove-trigger", "other")
    k.kymo("start")
    app = k.spawn("hits", "event", 1, 4 * AT, AT - 1, 2, wrap=kymotest.ONE_CPU, env={"KYMO_HITS_HOLD": "1"})
    k.expect(app, "ready")
    kymotest.stop(k.daemon.pid)
    k.let_go(app)
    emitted = int(app.stdout.readline())
    k.daemon.send_signal(signal.SIGKILL)
    k.daemon.wait()
    k.start_daemon()
    wait_for(lambda: trigger(k, "rate")["fired"], "the successor to look at the rate")
    written = wait_for(lambda: next(iter(pathlib.Path(k.traces / "s").glob("hit-*/ust/uid/*/*-bit/metadata")), None), "the snapshot")
    wait_for(lambda: k.kymo_json("status", "s")["session"]["snapshots"] == 1, "the snapshot to be complete")
    check_hit(written.parents[4])
    check_exact(k, emitted)
    k.let_go(app)
    k.finish(app)


FREEZE = 3072  # KY_SET_FREEZE in src/abi/ring.h; the first word there is the one that freezes


def rings(k):
    """Returns paths of the buffers of all sets that the daemon has."""
    return [f"/proc/{k.daemon.pid}/fd/{n}" for n, link, _ in kymotest.descriptors(k.daemon.pid) if "kymo-rings" in link]


def frozen(k):
    return [os.pread(f.fileno(), 8, FREEZE) != bytes(8) for path in rings(k) for f in [open(path, "rb")]]


def write_words(k, *words):
    """Writes the first words there, as a program does."""
    for path in rings(k):
        with open(path, "r+b") as f:
            os.pwrite(f.fileno(), struct.pack(f"={len(words)}Q", *words), FREEZE)


FROZEN = 1 << 32 | 1  # by process 1, for trigger 0


def check_ended_at_once(k, command):
    """The session is stopped or paused after a trigger has fired, before a program reports it."""
    k.start_daemon()
    fly(k)
    app = hits(k, "event", 1, AT, AT, hold=True)
    emitted = int(app.stdout.readline())
    k.kymo("add-trigger", "hit", "--when=event(hits:hit)", "--do=snapshot")
    w = watch(k)
    kymotest.stop(k.daemon.pid)
    write_words(k, FROZEN, 1, 0, 1)  # enabled, not armed any more, recorded
    with socket.socket(socket.AF_UNIX) as client, client.makefile("rb") as replies:
        client.settimeout(kymotest.TIMEOUT)
        client.connect(str(k.rundir / "control.sock"))
        client.sendall(json.dumps({"command": command, "session": "s"}).encode() + b"\n")
        k.daemon.send_signal(signal.SIGCONT)
        check(json.loads(replies.readline())["ok"], command)
    message(w, "fired")
    message(w, "snapshot")
    wait_for(lambda: not any(frozen(k)), "the buffers to be used again")
    check_exact(k, emitted)
    k.let_go(app)
    k.finish(app)


def test_stopped_at_once(k):
    check_ended_at_once(k, "stop")


def test_paused_at_once(k):
    check_ended_at_once(k, "pause")


def test_frozen_for_none(k):
    """
    A thread fires the last trigger, and gets no processor until the trigger was removed: the buffer
    that it then freezes is used again, also if the daemon was killed meanwhile.
    """
    k.start_daemon()
    fly(k)
    k.kymo("add-trigger", "hit", f"--when=event(hits:hit) && n == {AT}", "--do=snapshot")
    app = k.spawn("hits", "event", 1, 4 * AT, 8 * AT, env={"KYMO_HITS_HOLD": "1"})
    k.expect(app, "ready")
    wait_for(lambda: rings(k), "buffers")
    k.kymo("remove-trigger", "hit")
    write_words(k, FROZEN)
    check(frozen(k), "no buffer")
    wait_for(lambda: not any(frozen(k)), "the buffers to be used again")
    kymotest.stop(k.daemon.pid)
    write_words(k, FROZEN)
    k.daemon.kill()
    k.daemon.wait()
    k.start_daemon()
    wait_for(lambda: rings(k) and not any(frozen(k)), "the buffers to be used again by the successor")
    k.let_go(app)
    check_exact(k, int(app.stdout.readline()))
    k.let_go(app)
    k.finish(app)


def test_consumer_killed(k):
    """The snapshot's consumer is killed before it has copied: another one copies the buffers."""
    libexec = k.top / "libexec"
    libexec.mkdir()
    script = libexec / "kymo-consumerd"
    real = pathlib.Path(kymotest.RUN_FROM) / "src" / "consumerd" / "kymo-consumerd"
    # mv: only the first one that finds the file waits
    script.write_text(f'#!/bin/sh\nmv "{k.top}/hold" "{k.top}/holds" 2>/dev/null && echo $$ >"{k.top}/held" && kill -STOP $$\nexec "{real}"\n')
    script.chmod(0o755)
    k.start_daemon(env={"KYMO_LIBEXECDIR": str(libexec)})
    fly(k)
    k.kymo("add-trigger", "hit", f"--when=event(hits:hit) && n == {AT}", "--do=snapshot")
    (k.top / "hold").touch()
    w = watch(k)
    app = hits(k, "event", 1, 4 * AT, AT - 1, 2, wrap=kymotest.ONE_CPU, hold=True)
    emitted = int(app.stdout.readline())
    message(w, "fired")
    held = k.top / "held"
    wait_for(lambda: held.exists() and held.read_text().endswith("\n"), "the snapshot's consumer")
    os.kill(int(held.read_text()), signal.SIGKILL)
    check_hit(message(w, "snapshot")["output"])
    check_exact(k, emitted)
    k.let_go(app)
    k.finish(app)


def record(k, *args, status=0):
    out = k.traces / "flights"
    done = k.run([CLI, "record", "-o", out, "--snapshot", *args], status=status, input="\n")
    return out, done


def test_record(k):
    """The flight recorder in one line: prints each snapshot, keeps the newest ones."""
    app = kymotest.APPS / "hits"
    out, done = record(k, f"--when=event(hits:hit) && n == {AT}", "--", app, "event", 1, 4 * AT, AT)
    fired, written = (next(line for line in done.stderr.splitlines() if words in line) for words in ("triggered by", "snapshot with"))
    check(re.fullmatch(r"kymo: triggered by hits \(pid \d+, thread \d+\)", fired), fired)
    trace = written.split(" in ")[1]
    check(trace.startswith(f"{out}/when-1-"), written)
    events, _ = read_trace(trace)
    check(any(e.name == "hits:hit" for e in events), "the event that fired is not in the snapshot")
    equal([str(p) for p in out.iterdir()], [trace], "what is kept")
    shutil.rmtree(out)

    out, done = record(k, "--when=event(hits:hit)", "--", app, "killed", 10, status=-signal.SIGKILL)
    check("snapshot with 12 events" in done.stderr and ") ended by SIGKILL" in done.stderr, done.stderr)
    shutil.rmtree(out)

    out, done = record(k, "--when=span(hits:work) > 1ms && us > 0", "--rate=100/1us", "--keep=1", "--", app, "spans", *[2000] * 5)
    written = [line.split(" in ")[1] for line in done.stderr.splitlines() if "snapshot with" in line]
    # They are written at the same time, so that any of them may be the newest that is complete.
    kept = [str(p) for p in out.iterdir()]
    check(len(kept) == 1 and kept[0] in written, f"kept of {written}: {kept}")
    left_out = re.search(r"it was met (\d+) more time", done.stderr)
    equal(len(written) + (int(left_out[1]) if left_out else 0), 5, f"snapshots and those left out: {done.stderr}")
    shutil.rmtree(out)

    for when, end in (("span(hits:work) > 5h", ": no snapshot was written\n"), ("span(hits:wrok) > 1ms", "such a span into this session: did you mean 'hits:work'?\n"),
            ("event(hits:none)", "no application has recorded such an event into this session\n")):
        out, done = record(k, f"--when={when}", "--", app, "spans", 10)
        check("was never met" in done.stderr and done.stderr.endswith(end) and not out.exists(), done.stderr)
    result = json.loads(k.run([CLI, "--json", "record", "-o", k.top / "json", "--snapshot", "--when=event(hits:hit)", "--", app, "event", 1, 10, 5],
        input="\n").stderr.splitlines()[-1])
    equal((result["snapshots"], result["exit_code"]), (1, 0), "object of --json")
    for args, words in ((("--when=event(",), "write for example"), (("--when=died", "--keep=0"), "keep nothing"), (("--when=died", "--keep=x"), "bad limit"),
            (("--keep=1",), "need --when"), (("--rate=1/1s",), "need --when")):
        check(words in record(k, *args, "--", app, "spans", 1, status=2)[1].stderr, f"{args}")
    done = k.run([CLI, "record", "--when=died", "--", app, "spans", 1], status=2)
    check("--when needs --snapshot" in done.stderr, done.stderr)


def test_nothing_can_fire(k):
    """A condition that no event of a running program can meet: add-trigger says so."""
    k.start_daemon()
    k.record("hits:*")
    app = hits(k, "event", 1, 10, 5, hold=True)
    app.stdout.readline()
    said = {when: k.kymo("add-trigger", f"--when={when}", "--do=notify, start").stdout for when in ("event(hits:hit) && n > 3", "event(hits:hti)",
        "event(hits:hit, emerg)", "event(hits:hit) && m > 3", "span(hits:hit) > 1s", "died(hits)")}
    equal([w for w, s in said.items() if "no running application records such" in s], ["event(hits:hti)", "event(hits:hit, emerg)", "span(hits:hit) > 1s"],
        f"conditions that cannot be met: {said}")
    check("no event meets its condition" in said["event(hits:hit) && m > 3"] and "no field 'm'" in said["event(hits:hit) && m > 3"], said)
    k.let_go(app)
    k.finish(app)


def test_refused(k):
    k.start_daemon()
    k.record("hits:*")
    for when, words in (("event", "write for example 'event("), ("event(hits:hit", "write for example"), ("event(hits:hit) > 5", "write for example"),
            ("event(hits:hit, loud)", "no level 'loud'"), ("event(hits:hit) && n >", "filter 'n >'"), ("span(hits:work)", "span(shop:checkout) > 20ms"),
            ("span(hits:work, info) > 1s", "no level"), ("span(hits:work) < 1s", "write for example"), ("span(hits:work) > soon", "write for example")):
        done = k.kymo("add-trigger", f"--when={when}", "--do=notify", status=2)
        check(words in done.stderr, done.stderr)
    for _ in range(32):
        k.kymo("add-trigger", "--when=event(hits:hit)", "--do=notify")
    done = k.kymo("add-trigger", "--when=event(hits:hit)", "--do=notify", status=1)
    check("a session may have 64, 32 of them about events and spans" in done.stderr, done.stderr)
    k.kymo("add-trigger", "--when=died", "--do=notify")


if __name__ == "__main__":
    kymotest.main()
