#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Flight recorder and snapshots: events in the buffers are in the snapshot, others are counted, and
nothing else is affected.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import kymotest
from emitcheck import RECORD_BYTES, ROOMY, SCALE, check_order, check_values, emitted
from kymotest import CLI, check, check_streams, equal, fixed, integers, read_trace, wait_for

SMALL = ("--subbuf-size=4K", "--num-subbuf=4")
WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def fly(k, channel=SMALL, rules="emit:*"):
    """Starts a session that keeps events for snapshots only."""
    out = k.traces / "s"
    k.kymo("create", "s", "--snapshot", "-o", out)
    k.kymo("enable-channel", "channel0", *channel)
    k.kymo("enable-event", rules)
    k.kymo("start")
    return out


def take(k, *args):
    return k.kymo_json("snapshot", "record", *args)["snapshot"]


def snapshot(k, *args):
    """Takes a snapshot; returns its counts and its events, on which all readers agree."""
    counts = take(k, *args)
    return counts, check_snapshot(k, counts)


def check_snapshot(k, counts):
    trace = pathlib.Path(counts["output"])
    if not counts["recorded"]:
        return []
    events, discarded = read_trace(trace)
    recorded, lost = check_streams(trace)
    equal((len(events), discarded), (recorded, lost), "what babeltrace2 reads, against what packets count")
    equal((counts["recorded"], counts["discarded"]), (recorded, lost), "what the snapshot's counts say")
    equal(k.kymo_json("stat", trace)["events"], recorded, "what kymo stat counts")
    check_values(events)
    check_order(events)
    return events


def gone(counts):
    return counts["overwritten"] + counts["left_out"] + counts["discarded"]


def keys(events):
    return {(e.name, e.fields) for e in events}


def run_flight(k, *args, env=None, wrap=()):
    k.start_daemon()
    fly(k)
    total = sum(emitted(k.finish(k.spawn("emit", *args, env=env, wrap=wrap))))
    counts, events = snapshot(k)
    equal(len(events) + gone(counts), total, "in the snapshot + overwritten, against emitted")
    check(counts["overwritten"] > 0, "nothing was overwritten")
    equal(counts["discarded"], 0, "discarded in overwrite mode")
    return events, total


def test_last_events(k):
    """From one CPU: the last events without a gap, from at least all sub-buffers but one."""
    events, total = run_flight(k, "-n", 50000, wrap=kymotest.ONE_CPU)
    seqs = [integers(e)["seq"] for e in events]
    equal(seqs, list(range(total - len(seqs), total)), "numbers of the events")
    check((len(seqs) + 3) * (RECORD_BYTES + 4) > 3 * (4096 - 160), f"only {len(seqs)} events")


def test_last_events_per_thread(k):
    events, total = run_flight(k, "-n", 50000, env=WITHOUT_RSEQ)
    seqs = [integers(e)["seq"] for e in events]
    equal(seqs, list(range(total - len(seqs), total)), "numbers of the events")


def test_threads_and_signals(k):
    run_flight(k, "-t", 4, "-n", 50000 // SCALE, "-s", 50, "-m")


def test_threads_and_signals_per_thread(k):
    run_flight(k, "-t", 4, "-n", 50000 // SCALE, "-s", 50, env=WITHOUT_RSEQ)


def test_killed_program(k):
    """A program is killed at any moment: its recorded events are in the snapshot."""
    k.start_daemon()
    fly(k)
    app = k.spawn("emit", "-t", 2, "-n", 1 << 40)
    wait_for(lambda: take(k)["overwritten"] > 10000, "the program to record")
    app.kill()
    app.wait()
    counts, events = snapshot(k)
    check(events and counts["overwritten"] > 10000, f"{counts}")
    equal(snapshot(k)[1], events, "events of another snapshot")


def test_while_recording(k):
    """Snapshots of a session whose trace is written all the time, and is exact."""
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    taken, total, process = [], 0, 0
    while len(taken) < 3:
        app = k.spawn("emit", "-t", 4, "-n", 40000 // SCALE, "-m", "-p", process)
        while app.poll() is None:
            taken.append(take(k, "--max-size=512K"))
        total += sum(emitted(k.finish(app)))
        process += 1
    counts, events = snapshot(k)
    equal(len(events) + gone(counts), total, "events of a snapshot at the end, with those that were written long ago")
    k.kymo("stop", "s")
    final = kymotest.check_counts(k, trace, total)
    check_streams(trace, fixed(RECORD_BYTES))
    equal(len(final), total, "events of the session's trace")
    final = keys(final)
    check(keys(events) <= final, "the last snapshot has events that are not in the trace")
    for counts in taken:
        check(keys(check_snapshot(k, counts)) <= final, "a snapshot has events that are not in the trace")
        equal(counts["discarded"], 0, "discarded")


def test_discarding(k):
    """Full buffers: a snapshot has their contents, and counts the discarded events."""
    k.start_daemon()
    consumer = None
    trace = k.record("emit:*", channel=SMALL)
    try:
        consumer = next(p for p in kymotest.processes_with(k.mark) if "consumerd" in kymotest.command_of(p))
        kymotest.stop(consumer)
        total = sum(emitted(k.finish(k.spawn("emit", "-n", 20000))))
        counts, events = snapshot(k)
        equal(len(events) + counts["discarded"], total, "recorded + discarded")
        check(events and counts["discarded"], f"{counts}")
    finally:
        os.kill(consumer, signal.SIGCONT)
    k.kymo("stop", "s")
    equal(keys(kymotest.check_counts(k, trace, total)), keys(events), "events of the session's trace")


def test_overwrite_channel_beside(k):
    """The events of one channel are in the trace, those of the other only in snapshots."""
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY, start=False)
    done = k.kymo("enable-channel", "flight", "--overwrite", *SMALL)
    check("snapshot record" in done.stdout, f"enable-channel does not say where its events go: {done.stdout}")
    k.kymo("enable-event", "-c", "flight", "emit:*")
    k.kymo("start")
    total = sum(emitted(k.finish(k.spawn("emit", "-t", 2, "-n", 20000 // SCALE))))
    counts = take(k)
    equal(counts["recorded"] + counts["overwritten"], 2 * total, "events of both channels")
    modes = {c["name"]: c["mode"] for c in k.kymo_json("status")["session"]["channels"]}
    equal(modes, {"channel0": "discard", "flight": "overwrite"}, "modes")
    k.kymo("stop")
    equal(len(kymotest.check_counts(k, trace, total)), total, "events of the session's trace")
    check(not any("flight" in p.name for p in kymotest.streams(trace)), "the trace has the other channel")


def test_several_at_once(k):
    k.start_daemon()
    fly(k)
    k.app("emit", "-t", 2, "-n", 5000)
    running = [subprocess.Popen([CLI, "snapshot", "record", f"n{i}"], env=k.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for i in range(4)]
    said = [p.communicate(timeout=kymotest.TIMEOUT)[0] for p in running]
    equal([p.returncode for p in running], [0] * 4, f"exit codes: {said}")
    found = [keys(read_trace(d)[0]) for d in sorted((k.traces / "s").iterdir())]
    check(len(found) == 4 and found[0] and all(f == found[0] for f in found), "four snapshots of the same differ")


def test_max_size(k):
    k.start_daemon()
    fly(k, ("--subbuf-size=4K", "--num-subbuf=16"))
    k.app("emit", "-n", 5000)
    whole, events = snapshot(k)
    part, newest = snapshot(k, "newest", "--max-size=16K")
    size = sum(p.stat().st_size for p in kymotest.streams(part["output"]))
    check(8192 < size <= 16384, f"{size} bytes")
    equal(len(newest) + part["left_out"], len(events), "recorded and left out")
    check(keys(newest) < keys(events) and newest[-1] == events[-1], "these are not the newest events")
    check("newest-2-" in part["output"], f"name: {part['output']}")
    none, _ = snapshot(k, "--max-size=10")
    equal(none["left_out"], whole["recorded"], "left out where no packet fits")


class Held:
    """Makes consumers that start from now on stop before they do anything."""

    def __init__(self, k):
        self.k = k
        self.libexec = k.top / "libexec"
        self.libexec.mkdir()
        script = self.libexec / "kymo-consumerd"
        real = pathlib.Path(kymotest.RUN_FROM) / "src" / "consumerd" / "kymo-consumerd"
        script.write_text(f'#!/bin/sh\n[ -e "{k.top}/hold" ] && echo $$ >"{k.top}/held" && kill -STOP $$\nexec "{real}"\n')
        script.chmod(0o755)
        k.start_daemon(env={"KYMO_LIBEXECDIR": str(self.libexec)})

    def begin(self, *args):
        """Begins a snapshot, which stops at once; returns its client and its consumer."""
        (self.k.top / "hold").touch()
        client = subprocess.Popen([CLI, "snapshot", "record", *args], env=self.k.env, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.k.started.append(client)
        held = self.k.top / "held"
        wait_for(lambda: held.exists() and held.read_text().endswith("\n"), "the snapshot's consumer")
        (self.k.top / "hold").unlink()
        pid = int(held.read_text())
        held.unlink()
        # it writes its number first, and a signal to continue that comes before the stop is lost
        wait_for(lambda: kymotest.state_of(pid) == "T", "the snapshot's consumer to stop")
        return client, pid


def test_consumer_killed(k):
    """The snapshot fails with a message; the session continues unchanged."""
    held = Held(k)
    trace = k.record("emit:*", channel=ROOMY)
    first = sum(emitted(k.app("emit", "-n", 1000)))
    client, pid = held.begin()
    equal(k.kymo_json("status")["session"]["state"], "started", "state while a snapshot hangs")
    second = sum(emitted(k.app("emit", "-n", 1000, "-p", 1)))
    os.kill(pid, signal.SIGKILL)
    said = client.communicate(timeout=kymotest.TIMEOUT)[0]
    check(client.returncode == 1 and "died" in said, f"exit {client.returncode}: {said}")
    _, events = snapshot(k)
    equal(len(events), first + second, "events of another snapshot")
    k.kymo("stop")
    kymotest.check_counts(k, trace, first + second)


def test_hanging(k):
    """
    A snapshot that hangs delays neither the end of its session nor, when the maximum of snapshots
    is reached, a reply.
    """
    held = Held(k)
    k.record("emit:*")
    hanging = [held.begin(f"n{i}") for i in range(4)]
    check("in progress" in k.kymo("snapshot", "record", status=1).stderr, "no word about those that are in progress")
    k.kymo("destroy", "s")
    for client, _ in hanging:
        said = client.communicate(timeout=kymotest.TIMEOUT)[0]
        check(client.returncode == 1 and "destroyed" in said, f"exit {client.returncode}: {said}")
    wait_for(lambda: not any(kymotest.alive(pid) for _, pid in hanging), "the consumers to end")


def test_client_gone(k):
    """The client disconnects: the snapshot is written all the same."""
    held = Held(k)
    out = fly(k)
    k.app("emit", "-n", 10)
    client, pid = held.begin("left")
    client.kill()
    client.wait()
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: k.kymo_json("status")["session"]["snapshots"] == 1, "the snapshot")
    equal(len(read_trace(next(out.iterdir()))[0]), 10, "events")


def test_empty(k):
    k.start_daemon()
    out = fly(k)
    done = k.kymo("snapshot", "record")
    check("0 events" in done.stdout and "kymo status" in done.stdout, f"says: {done.stdout}")
    k.app("emit", "-n", 0)
    equal(snapshot(k)[0]["recorded"], 0, "events of a program that recorded none")
    equal(len(list(out.iterdir())), 2, "directories")
    k.kymo("stop")
    k.app("emit", "-n", 10)
    equal(snapshot(k)[0]["recorded"], 0, "events while the session is stopped")


def test_refused(k):
    k.start_daemon()

    def refused(*args, says, status=(1, 2)):
        error = k.kymo(*args, status=status).stderr
        check(says in error, f"kymo {' '.join(map(str, args))} says: {error}")

    refused("snapshot", "record", says="no current session")
    refused("snapshot", "record", "-s", "absent", says="absent")
    refused("snapshot", "recrod", says="did you mean 'record'", status=2)
    refused("snapshot", "add-output", "x", says="snapshot record -o DIR", status=1)
    refused("snapshot", says="missing", status=2)
    refused("snapshot", "record", "a", "-n", "b", says="not both", status=2)
    refused("snapshot", "record", "--max-size=0", says="must be at least 1 byte", status=2)
    k.kymo("create", "s", "-o", k.traces / "s")
    refused("snapshot", "record", "a/b", says="cannot name a snapshot")
    refused("snapshot", "record", "-o", k.traces / "s", says="already")
    refused("snapshot", "record", "-o", k.top, says="not empty")
    refused("snapshot", "record", "-o", "/proc/no/such", says="/proc/no/such")
    refused("enable-channel", "c", "--overwrite", "--discard", says="not both", status=2)
    k.kymo("create", "n", "--no-output")
    refused("snapshot", "record", says="--output=DIR")
    k.kymo("snapshot", "record", "-o", k.traces / "n")
    k.kymo("create", "f", "--snapshot", "-o", k.traces / "f")
    refused("enable-channel", "c", "--discard", says="overwrite mode")
    equal(k.kymo_json("status", "s")["session"]["snapshots"], 0, "snapshots of a session where all failed")


def test_disk_full(k):
    """The loss is reported. The session, which writes to another disk, is exact."""
    disk = k.start_daemon_with_disk("256k")
    trace = k.record("emit:*", channel=ROOMY)
    total = sum(emitted(k.app("emit", "-n", 50000)))
    error = k.kymo("snapshot", "record", "-o", disk / "a", status=1).stderr
    check("No space left" in error and str(disk / "a") in error, f"says: {error}")
    shutil.rmtree(pathlib.Path(f"/proc/{k.daemon.pid}/root") / (disk / "a").relative_to("/"))
    fits = k.kymo_json("snapshot", "record", "-o", disk / "b", "--max-size=1M", status=None)
    check(not fits["ok"] or fits["snapshot"]["left_out"], f"{fits}")
    equal(k.kymo_json("status")["session"]["error"], "", "error of the session")
    k.kymo("stop")
    equal(len(kymotest.check_counts(k, trace, total)), total, "events of the session's trace")


def test_record(k):
    """kymo record --snapshot: the last events of a command."""
    trace = k.top / "t"
    done = k.kymo("record", "--snapshot", *SMALL, "-o", trace, "--", kymotest.APPS / "emit", "-n", 20000)
    events, _ = read_trace(trace)
    equal(integers(events[-1])["seq"], 19999, "the last event")
    check(f"{20000 - len(events)} older events" in done.stderr, f"says: {done.stderr}")
    result = k.run([CLI, "--json", "record", "--snapshot", *SMALL, "-o", k.top / "j", "--", kymotest.APPS / "emit", "-n", 20000])
    text = result.stderr
    check('"ok": true' in text and '"overwritten": ' in text, f"--json: {text}")
    done = k.run([CLI, "record", "--snapshot", "-o", trace, "--", "false"], status=1)
    check("not empty" in done.stderr, f"says: {done.stderr}")


def test_destroyed_with_events(k):
    """Without a snapshot nothing is written, and no file is left."""
    k.start_daemon()
    out = fly(k)
    k.app("emit", "-n", 1000)
    done = k.kymo("destroy", "s")
    check("0 snapshots" in done.stdout, f"says: {done.stdout}")
    equal(list(out.iterdir()), [], "files")


def test_reach(k):
    """status says how far back a snapshot would reach, when something was overwritten."""
    k.start_daemon()
    fly(k)

    def reach():
        channel = k.kymo_json("status", "s")["session"]["channels"][0]
        return channel.get("reach_shortest_ns"), channel.get("reach_longest_ns")

    began = time.monotonic()
    k.app("emit", "-n", 10)
    equal(reach(), (None, None), "reach before anything was overwritten")
    check("reach back" not in k.kymo("status", "s").stdout, "the text of status says so")
    k.app("emit", "-n", 1000000)
    shortest, longest = reach()
    check(0 < shortest <= longest < (time.monotonic() - began) * 1e9, f"reach {shortest}, {longest}")
    check("a snapshot would reach back" in k.kymo("status", "s").stdout, "the text of status")
    later = reach()
    check(later[0] > shortest and later[1] > longest, f"reach while nothing is recorded: {later}")
    k.kymo("destroy", "s")


def test_seconds(k):
    """Buffers grow by the rate, up to their limit; the daemon's successor goes on with that."""
    size, burst = 8 << 10, 256 << 10
    k.start_daemon()
    for args, words in ((("--seconds=5",), "--seconds needs --snapshot"), (("--snapshot", "--seconds=0"), "must be at least 1"),
            (("--snapshot", "--seconds=5m"), "is not a number"), (("--snapshot", "--seconds=1000000"), "604800 seconds at most"),
            (("--snapshot", "--seconds=5", f"--shm-path={k.top}/shm"), "buffers in files do not grow")):
        check(words in k.kymo("create", "bad", *args, status=2).stderr, f"{args}")
    k.kymo("create", "s", "--snapshot", "--seconds=3600", "-o", k.traces / "s")
    k.kymo("enable-channel", "channel0", "--subbuf-size=4K", "--num-subbuf=2", "--burst-size=256K")
    k.kymo("enable-event", "emit:*")
    k.kymo("start")

    def memory():
        return k.kymo_json("status", "s")["session"]["channels"][0]["ring_sets"][0]["memory"]

    app = k.spawn("emit", "-f", wrap=kymotest.ONE_CPU)
    k.expect(app, "emitting")
    wait_for(lambda: memory() > 3 * size, "the buffer to grow")
    k.daemon.send_signal(signal.SIGKILL)
    k.daemon.wait()
    k.start_daemon()
    wait_for(lambda: memory() >= burst, lambda: f"the buffer to grow to its limit: {memory()}")
    said = k.kymo("status", "s").stdout
    check("a buffer grows to at most 256.0 KiB" in said and "that is less than 3600 s" in said, said)
    k.let_go(app)
    n = int(app.stdout.readline().split()[1])
    k.finish(app)
    counts = k.kymo_json("snapshot", "record")["snapshot"]
    equal(counts["recorded"] + counts["overwritten"] + counts["discarded"], n, f"events in {counts}")
    events, _ = read_trace(counts["output"])
    equal(len(events), counts["recorded"], "events of the snapshot")
    check(counts["bytes"] > burst // 2, f"bytes of the snapshot: {counts}")
    check_values(events)
    k.kymo("destroy", "s")


kymotest.main()
