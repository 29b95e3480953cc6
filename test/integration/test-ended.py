#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The end of a program: an event of the collector, a line of `status`, and the last events of a
program that crashed, at the end of `kymo record`.
"""

import json
import signal
import subprocess
import sys
import time

import kymotest
from kymotest import APPS, CLI, check, equal, read_trace, wait_for

CRASH = APPS / "crash"
# Connects as a program without events, and closes the connection when the daemon has replied.
LATE = """import signal, socket, struct, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
    s.connect(sys.argv[1])
    hello = struct.pack("<6I5sI", 2, 64, 3, 1, 0, 4, b"late", 1)
    s.send(struct.pack("<IHH", len(hello) + 8, 1, 0) + hello)
    s.recv(65536)
print("closed", flush=True)
signal.pause()
"""


def record(k, *args, status):
    return k.run([CLI, "record", *map(str, args)], status=status)


def report_of(done):
    """Returns the lines of the last report on standard error: its head, and the events."""
    lines = done.stderr.splitlines()
    heads = [i for i, line in enumerate(lines) if " ended by " in line]
    check(heads, f"no program ended by a signal: {done.stderr}")
    events = [line for line in lines[heads[-1] + 1:] if line.startswith("  ")]
    return lines[heads[-1]], events


def test_record(k):
    """Names the signal, the thread that crashed, and the last ten of its events."""
    for how, number, name in (("segv", 11, "SIGSEGV"), ("abort", 6, "SIGABRT"), ("stack", 11, "SIGSEGV")):
        done = record(k, "-o", k.top / how, "--", CRASH, 30, how, status=-number)
        tid = done.stdout.strip()
        head, events = report_of(done)
        check(f"ended by {name}" in head and head.endswith(f"; last events of thread {tid}:"), f"{how}: {head} (thread {tid})")
        equal(len(events), 10, "events shown")
        for i, line in enumerate(events):
            check("crash:step" in line and f'thread = "second", i = {20 + i} ' in line, f"event {i}: {line}")
        equal(len(read_trace(k.top / how)[0]), 60, "events in the trace")


def test_record_few(k):
    done = record(k, "-o", k.top / "few", "--", CRASH, 3, "segv", status=-11)
    equal([line.count(f"i = {i} ") for i, line in enumerate(report_of(done)[1])], [1, 1, 1], "events shown")
    done = record(k, "-o", k.top / "snapshot", "--snapshot", "--buffers=thread", "--", CRASH, 3, "segv", status=-11)
    head, events = report_of(done)
    check(done.stdout.strip() in head, head)
    equal(len(events), 3, "events of a snapshot shown")


def test_record_other(k):
    """A program of a shell that goes on; one of two that crash; programs that end in good order."""
    done = record(k, "-o", k.top / "shell", "--", "sh", "-c", f"{CRASH} 12 segv; {CRASH} 2 abort; true", status=0)
    heads = [line for line in done.stderr.splitlines() if " ended by " in line]
    equal([line.split(" ended by ")[1].split(";")[0] for line in heads], ["SIGSEGV", "SIGABRT"], "ends")
    for tid, line in zip(done.stdout.split(), heads):
        check(line.endswith(f"last events of thread {tid}:"), line)
    equal(len([line for line in done.stderr.splitlines() if "crash:step" in line]), 12, "events shown")
    equal(done.stderr.count("--with=crash records the stack"), 1, f"hints in {done.stderr}")
    for how, status in (("handled", 7), ("exit", 0)):
        done = record(k, "-o", k.top / how, "--", CRASH, 5, how, status=status)
        check("ended by" not in done.stderr, done.stderr)
    done = record(k, "-o", k.top / "off", "-e", "no:*", "--", CRASH, 5, "segv", status=-11)
    check("ended by SIGSEGV; none of its events was recorded" in done.stderr, done.stderr)
    # The dump of its files says nothing about its end.
    script = f"{CRASH} 5 wait | (read first; for i in $(seq 20); do /bin/true; done; pkill -9 -P $$ -f '5 wait')"
    done = record(k, "-o", k.top / "dump", "-e", "kymo_statedump:*", "--", "sh", "-c", script, status=None)
    check("kymo_statedump:end" in [event.name for event in read_trace(k.top / "dump")[0]], done.stderr)
    check("ended by SIGKILL; none of its events was recorded" in done.stderr, done.stderr)
    check("--with=crash" not in done.stderr, done.stderr)


def start_waiting(k):
    p = subprocess.Popen([str(CRASH), "1", "wait"], env=k.env, stdout=subprocess.PIPE, text=True)
    k.started.append(p)
    p.stdout.readline()
    return p


def test_event(k):
    """Exit status, signal and pid of each end, in a session that records them."""
    k.start_daemon(collector=True)
    k.kymo("create", "s", "-o", k.top / "trace")
    k.kymo("enable-event", "kymo_process:ended,crash:*")
    k.kymo("start")
    killed, stopped = start_waiting(k), start_waiting(k)
    killed.kill()
    killed.wait()
    stopped.terminate()
    stopped.wait()
    handled = subprocess.Popen([str(CRASH), "1", "handled"], env=k.env, stdout=subprocess.DEVNULL)
    k.started.append(handled)
    handled.wait()

    def ends():
        out = k.run([CLI, "view", "--format=json", k.top / "trace", "--event=kymo_process:ended"], status=None).stdout
        return [json.loads(line) for line in out.splitlines()]

    wait_for(lambda: len(ends()) == 3, "three ends in the trace")
    found = {e["fields"]["pid"]: e["fields"] for e in ends()}
    equal(set(found), {killed.pid, stopped.pid, handled.pid}, "pids")
    for p, status, number in ((killed, -1, 9), (stopped, -1, 15), (handled, 7, 0)):
        f = found[p.pid]
        equal((f["exit_status"], f["signal"], f["name"]), (status, number, "crash"), "end")
    session = k.kymo_json("status")["session"]
    equal([(d["pid"], d["signal"]) for d in session["deaths"]], [(killed.pid, signal.SIGKILL), (stopped.pid, signal.SIGTERM)], "deaths")
    k.kymo("destroy")


def test_late(k):
    """A program that ends a moment after its connection did: others used the CPUs meanwhile."""
    k.start_daemon()
    k.record("*")
    p = subprocess.Popen([sys.executable, "-c", LATE, k.rundir / "app.sock"], stdout=subprocess.PIPE, text=True)
    k.started.append(p)
    k.expect(p, "closed")
    begin = time.monotonic()
    wait_for(lambda: time.monotonic() - begin > 0.5, "half a second to be over")
    p.kill()
    p.wait()
    wait_for(lambda: [d["pid"] for d in k.kymo_json("status")["session"]["deaths"]] == [p.pid], "its end to be reported")
    k.kymo("destroy")


def test_successor(k):
    """The daemon's successor names a program with its own buffers when that dies."""
    k.start_daemon()
    k.record("crash:*", channel=("--buffers=process",))
    p = start_waiting(k)
    k.daemon.kill()
    k.daemon.wait()
    k.start_daemon()
    wait_for(lambda: p.pid in [a["pid"] for a in k.kymo_json("list", "-u")["applications"]], "the program to connect again")
    p.kill()
    p.wait()
    wait_for(lambda: k.kymo_json("status")["session"]["died"] == 1, "one death")
    death, = k.kymo_json("status")["session"]["deaths"]
    equal((death["pid"], death["name"]), (p.pid, "crash"), "the death")
    k.kymo("destroy")


def test_tracked(k):
    """A session does not report programs that it does not track."""
    k.start_daemon()
    k.kymo("create", "s", "-o", k.top / "trace")
    k.kymo("enable-event", "*")
    k.kymo("track", "--vpid=1")
    k.kymo("start")
    p = start_waiting(k)
    p.kill()
    p.wait()
    k.kymo("untrack", "--vpid=1")
    k.kymo("track", "--vpid=all")
    q = start_waiting(k)
    q.kill()
    q.wait()
    wait_for(lambda: k.kymo_json("status")["session"]["died"] == 1, "one death")
    k.kymo("destroy")


if __name__ == "__main__":
    kymotest.main()
