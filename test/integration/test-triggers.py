#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Triggers: conditions that the session daemon decides, actions, messages, limits."""

import json
import os
import shutil
import signal
import subprocess

import kymotest
from kymotest import CLI, check, equal, read_trace, wait_for


def watch(k, *args):
    """Starts kymo watch for all messages of the daemon."""
    p = subprocess.Popen([CLI, "--json", "watch", "--all", *args], env=k.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    k.started.append(p)
    return p


def message(p):
    line = kymotest.read_line(p)
    check(line, lambda: f"kymo watch ended, or has no message: {p.stderr.read()}")
    return json.loads(line)


def triggers(k, *args):
    return {t["name"]: t for t in k.kymo_json("list-triggers", *args)["triggers"]}


def crash(k, how="segv", n=5):
    k.app("crash", n, how, status={"segv": -11, "abort": -6}[how])


def test_died(k):
    """A program that a signal ended: message, snapshot that names it, command, rate."""
    k.start_daemon("--allow-commands")
    out = k.record()
    ran = k.top / "ran"
    k.kymo("add-trigger", "crash", "--when=died(cra*)", f"--do=snapshot,run:echo $KYMO_SESSION $KYMO_TRIGGER $KYMO_TRIGGER_TEXT > {ran}; pwd > {ran}.2", "--rate=1/1h")
    k.kymo("add-trigger", "other", "--when=died(emit)", "--do=notify")
    w = watch(k, "s")
    crash(k)
    fired, written = message(w), message(w)
    equal((fired["kind"], fired["session"], fired["trigger"], fired["fired"]), ("fired", "s", "crash", 1), "first message")
    check("ended by signal 11" in fired["text"], fired["text"])
    equal(written["kind"], "snapshot", f"second message {written}")
    check(written["output"].startswith(f"{out}-crash-1-"), written["output"])
    equal(len(read_trace(written["output"])[0]), 10, "events of the snapshot")
    shown = k.run([CLI, "view", written["output"]])
    check(f"trigger: crash (died(cra?)): {fired['text']}" in shown.stderr, shown.stderr)
    wait_for(lambda: (k.top / "ran.2").exists() and (k.top / "ran.2").read_text() == "/\n", "the command to run")
    equal(ran.read_text(), f"s crash {fired['text']}\n", "output of the command")
    crash(k)
    wait_for(lambda: triggers(k)["crash"]["left_out"] == 1, "the second one to be left out")
    equal(triggers(k)["crash"]["fired"], 1, "times that it fired")
    equal(triggers(k)["other"]["fired"], 0, "times that the other one fired")
    k.kymo("destroy")
    w.wait()


def test_amounts(k):
    """Discarded events, rates, the disk, the size, rotation; stop as an action."""
    k.start_daemon()
    k.record(channel=("--num-subbuf=2", "--subbuf-size=4K"))
    k.kymo("add-trigger", "lost", "--when=discarded > 10", "--do=notify")
    k.kymo("add-trigger", "quiet", "--when=events/s < 1", "--do=notify")
    k.kymo("add-trigger", "disk", "--when=disk-free < 100%", "--do=notify")
    k.kymo("add-trigger", "never", "--when=disk-free < 1", "--do=notify")
    k.kymo("add-trigger", "rotated", "--when=rotated", "--do=notify")
    w = watch(k, "s")
    seen = {}

    def until(name):
        while name not in seen:
            m = message(w)
            seen[m["trigger"]] = m

    until("quiet")
    k.app("emit", "-n", 100000)
    until("lost")
    until("disk")
    k.kymo("add-trigger", "large", "--when=size > 1", "--do=stop,notify")
    k.kymo("rotate")
    until("rotated")
    check("/archives/" in seen["rotated"]["text"], seen["rotated"]["text"])
    until("large")
    wait_for(lambda: k.kymo_json("status", "s")["session"]["state"] == "stopped", "the session to be stopped")
    equal(triggers(k)["never"]["fired"], 0, "a condition that is never met")
    lost = triggers(k)["lost"]["fired"]
    check(lost >= 1, "discarded events fired nothing")
    k.kymo("destroy")
    equal(w.wait(), 0, "status of kymo watch")


def test_overwrite(k):
    """A session for snapshots: rates come from the buffers."""
    k.start_daemon()
    k.kymo("create", "s", "--snapshot", "-o", k.traces / "s")
    k.kymo("enable-event", "*")
    k.kymo("start")
    k.kymo("add-trigger", "busy", "--when=events/s > 100", "--do=snapshot")
    w = watch(k, "s")
    emit = k.spawn("emit", "-f", "-p", 20)  # a rate needs two looks while it emits
    fired, written = message(w), message(w)
    equal((fired["trigger"], written["kind"]), ("busy", "snapshot"), "messages")
    check(written["output"].startswith(f"{k.traces}/s/busy-1-"), written["output"])
    check(read_trace(written["output"])[0], "the snapshot is empty")
    emit.kill()
    emit.wait()
    for bad in ("size > 1G", "bytes/s > 1", "rotated", "buffers > 5%", "disk-free < 5%"):
        done = k.kymo("add-trigger", f"--when={bad}", "--do=notify", status=1)
        check("writes no trace" in done.stderr, done.stderr)
    k.kymo("add-trigger", "--when=died", "--do=rotate", status=1)
    k.kymo("destroy")


def test_restart(k):
    """Triggers survive the daemon; old losses do not fire again."""
    k.start_daemon()
    k.record(channel=("--num-subbuf=2", "--subbuf-size=4K"))
    k.app("emit", "-n", 100000)
    k.kymo("add-trigger", "lost", "--when=discarded", "--do=notify", "--rate=5/1h")
    k.kymo("add-trigger", "crash", "--when=died", "--do=notify")
    k.kymo("add-trigger", "removed", "--when=died", "--do=notify")
    k.kymo("remove-trigger", "removed")
    k.daemon.send_signal(signal.SIGKILL)
    k.daemon.wait()
    k.start_daemon()
    wait_for(lambda: set(triggers(k)) == {"lost", "crash"}, "the triggers to come back")
    equal((triggers(k)["lost"]["rate_n"], triggers(k)["lost"]["rate_us"]), (5, 3600 * 10**6), "rate")
    w = watch(k)
    k.kymo("add-trigger", "looked", "--when=events/s < 1000000000", "--do=notify")
    equal(message(w)["trigger"], "looked", "first message after the restart")
    crash(k)
    equal(message(w)["trigger"], "crash", "second message after the restart")
    equal(triggers(k)["lost"]["fired"], 0, "times that old losses fired")
    k.kymo("destroy")


def test_watch_restart(k):
    """kymo watch goes on with the daemon's successor, and misses none of its messages."""
    k.start_daemon()
    k.record()
    k.kymo("add-trigger", "crash", "--when=died", "--do=notify", "--rate=100/1s")
    w = watch(k, "s")
    crash(k)
    equal(message(w)["trigger"], "crash", "message before the restart")
    k.daemon.send_signal(signal.SIGKILL)
    k.daemon.wait()
    k.start_daemon()
    crash(k, "abort")
    check("signal 6" in message(w)["text"], "message after the restart")
    k.kymo("destroy")
    equal(w.wait(), 0, "status of kymo watch")
    check("waiting for its successor" in w.stderr.read(), "nothing said")


def test_keep(k):
    """Only the newest snapshots stay, also those of before the daemon was killed."""
    k.start_daemon()
    out = k.record()
    k.kymo("add-trigger", "crash", "--when=died", "--do=snapshot", "--rate=100/1s", "--keep=2")
    k.kymo("add-trigger", "small", "--when=died", "--do=snapshot", "--rate=100/1s", "--keep=1K")
    k.kymo("add-trigger", "all", "--when=died", "--do=snapshot", "--rate=100/1s")
    w = watch(k, "s")
    made = {"crash": [], "small": [], "all": []}

    def stays(name, n):
        equal(sorted(str(p) for p in k.traces.glob(f"{out.name}-{name}-*")), sorted(made[name][-n:]), f"snapshots of '{name}'")

    def crash_again():
        crash(k)
        for _ in range(6):
            m = message(w)
            check(m["kind"] != "failed", m["text"])
            if m["kind"] == "snapshot":
                made[m["trigger"]].append(m["output"])

    for i in range(3):
        crash_again()
        stays("crash", 2)
        stays("small", 1)
        stays("all", i + 1)
    equal([triggers(k)["crash"][n] for n in ("kept", "removed")], [2, 1], "counts")
    check("keep 2: 2 kept, 1 removed" in k.kymo("list-triggers").stdout, "list-triggers")
    kymotest.compact_journal(k)
    k.daemon.send_signal(signal.SIGKILL)
    k.daemon.wait()
    k.start_daemon()
    equal([triggers(k)["crash"][n] for n in ("kept", "removed")], [2, 1], "counts after the daemon's death")
    crash_again()
    stays("crash", 2)
    stays("small", 1)
    stays("all", 4)
    # A snapshot that was moved stays, and so does what others have put there.
    os.rename(made["crash"][-1], k.traces / "saved")
    (k.traces / f"{out.name}-crash-0-20000101-000000").mkdir()
    crash_again()
    check((k.traces / "saved").exists() and (k.traces / f"{out.name}-crash-0-20000101-000000").exists(), "others' directories")
    read_trace(made["crash"][-1])
    k.kymo("destroy")
    w.wait()
    for bad, words in (("0", "would keep nothing"), ("x", "bad limit 'x'"), ("-1", "bad limit"), ("10001", "up to 10000")):
        k.kymo("create", "t", "-o", k.traces / "t")
        done = k.kymo("add-trigger", "--when=died", "--do=snapshot", f"--keep={bad}", status=2)
        check(words in done.stderr, done.stderr)
        check("takes none" in k.kymo("add-trigger", "--when=died", "--do=notify", "--keep=1", status=2).stderr, "no snapshot")
        k.kymo("destroy")
        shutil.rmtree(k.traces / "t")


def test_refused(k):
    k.start_daemon()
    k.record()
    for when, do, status, words in (("foo", "notify", 2, "unknown condition 'foo'"), ("died", "nofity", 2, "unknown action 'nofity'"),
            ("buffers > 80", "notify", 2, "buffers > 80%"), ("died", "run:true", 1, "--take-over --daemonize --allow-commands")):
        done = k.kymo("add-trigger", f"--when={when}", f"--do={do}", status=status)
        check(words in done.stderr, done.stderr)
    k.kymo("add-trigger", "--when=died", status=2)
    k.kymo("add-trigger", "--when=died", "--do=notify", "--rate=often", status=2)
    k.kymo("add-trigger", "x", "--when=died", "--do=notify")
    check("already" in k.kymo("add-trigger", "x", "--when=died", "--do=notify", status=1).stderr, "the name is taken")
    k.kymo("remove-trigger", "y", status=1)
    k.kymo("watch", "nosuch", status=1)
    k.kymo("list-triggers", "-s", "nosuch", status=1)
    for i in range(63):
        k.request(command="add-trigger", session="s", when="died", do="notify")
    reply = k.request(command="add-trigger", session="s", when="died", do="notify")
    check(not reply["ok"] and "too many" in reply["error"], str(reply))
    k.kymo("destroy")


def test_many_watch(k):
    """Watchers that vanish leave nothing; a slow one gets all; the daemon ends all."""
    k.start_daemon()
    k.record()
    k.kymo("add-trigger", "crash", "--when=died", "--do=notify", "--rate=100/1s")
    watchers = [watch(k) for _ in range(8)]
    for w in watchers[:4]:
        w.kill()
        w.wait()
    for how in ("segv", "abort", "segv"):
        crash(k, how)
    for w in watchers[4:]:
        equal([message(w)["text"].split()[-1] for _ in range(3)], ["11", "6", "11"], "signals")
    fds = kymotest.open_fds(k.daemon.pid)
    k.kymo("destroy")
    k.stop_daemon()
    for w in watchers[4:]:
        w.wait()
    check(fds, "descriptors")


if __name__ == "__main__":
    kymotest.main()
