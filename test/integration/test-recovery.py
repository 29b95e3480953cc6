#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The session daemon is killed: recording continues, and its successor takes over sessions,
identifiers, buffers and programs (docs/recovery.md).
"""

import ctypes
import errno
import itertools
import json
import os
import pathlib
import random
import re
import resource
import shlex
import signal
import socket
import struct
import subprocess

import kymotest
from emitcheck import ROOMY, SCALE, check_order, check_values, emitted
from kymotest import check, equal, integers, read_trace, wait_for, without_sanitizers
from program import ask

CYCLES = int(os.environ.get("KYMO_TEST_CYCLES", 8))


def kill_daemon(k):
    k.daemon.kill()
    k.daemon.wait()


def restart(k, *args):
    """
    Starts a successor. At the end, the descriptors are still compared with those of the first
    daemon.
    """
    fds = k.daemon_fds
    k.start_daemon(*args)
    k.daemon_fds = fds


def state(k, session="s"):
    """Returns those parts of a session's `status` that a successor must know."""
    text = k.kymo_json("status", session)["session"]

    def plain(o):
        if isinstance(o, dict):
            return {key: plain(v) for key, v in o.items() if key not in ("warnings", "notices", "recorded", "discarded", "bytes",
                "packets", "matched", "memory", "counts", "in_buffers", "fill", "unattended_ms", "error", "applications", "last", "used", "fullest",
                "silent_ms")}
        return [plain(v) for v in o] if isinstance(o, list) else o

    return plain(text)


def consumers(k):
    return [p for p in kymotest.processes_with(k.mark) if "consumerd" in kymotest.command_of(p)]


@kymotest.without_sanitizers  # they need descriptors
def test_successor_out_of_reach(k):
    """
    A program that may open no files, as in a sandbox, cannot connect to the successor of its
    daemon. It follows the session's state all the same.
    """
    k.start_daemon()
    k.record("emit:*")
    apps = [k.spawn("emit", "-w", "-p", p, "-n", 100) for p in range(5)]
    for app in apps:
        k.expect(app, "ready")
        resource.prlimit(app.pid, resource.RLIMIT_NOFILE, (0, 0))
    kill_daemon(k)
    restart(k)

    def emit_all(app):
        listener = kymotest.listener_of(app.pid) / "status"
        sleeps = lambda: int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", listener.read_text())[1])
        before = sleeps()
        wait_for(lambda: sleeps() > before + 2, "the listener to wake and to sleep again")
        k.let_go(app)
        k.expect(app, "records 100")

    emit_all(apps[0])
    for app, command in ((apps[1], "stop"), (apps[2], "start"), (apps[3], "pause"), (apps[4], "start")):
        k.kymo(command, "s")
        emit_all(app)
    for app in apps:
        k.let_go(app)
        k.finish(app)
    k.kymo("stop", "s")
    events, discarded = read_trace(k.traces / "s")
    equal(sorted({integers(e)["process"] for e in events}), [0, 2, 4], "programs that recorded")
    equal((len(events), discarded), (300, 0), "events")


def test_consumer_rests(k):
    """
    The daemon is killed right after the last of several consumers that died in a row. The process
    that is to be the next one has the buffers already, and hands them over.
    """
    k.start_daemon()
    k.record("emit:*", channel=("--switch-timer=0",))
    for n in range(6):  # the pauses become longer
        k.app("emit", "-p", n, "-n", 100)
        k.kymo("rotate", "s")  # answered by a consumer that works
        (consumer,) = consumers(k)
        os.kill(consumer, signal.SIGKILL)
        wait_for(lambda: k.daemon_log().count("its consumer was killed") == n + 1, "the daemon to notice")
    for _ in range(2):  # the daemon has done what it does at once
        k.ask("status", session="s")
    kill_daemon(k)
    restart(k)
    k.app("emit", "-p", 6, "-n", 100)
    k.kymo("stop", "s")
    equal(k.kymo_json("status", "s")["session"]["recorded"], 700, "events recorded")
    k.kymo("destroy", "s")


def test_no_set_left(k):
    """
    A trace that has no buffers any more, because its programs have ended, survives the death of the
    consumer and then that of the daemon: programs that start later continue it.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=("--buffers=process",))
    k.app("emit", "-p", 0, "-n", 100)
    wait_for(lambda: '"retired"' in (k.rundir / "sessions" / "s").read_text(), "the program's buffers to be written")
    (consumer,) = consumers(k)
    os.kill(consumer, signal.SIGKILL)
    wait_for(lambda: "the failure has ended" in k.daemon_log(), "another consumer")
    kill_daemon(k)
    restart(k)
    k.app("emit", "-p", 1, "-n", 100)
    k.kymo("stop", "s")
    equal(len(check_values(kymotest.check_counts(k, trace, 200))), 200, "events, none being discarded")
    k.kymo("destroy", "s")


def start_with_faulty_rundir(k):
    fault = k.top / "fault"
    env = {"LD_PRELOAD": str(kymotest.APPS / "faulty-disk.so"), "DISK_UNDER": str(k.rundir / "sessions"), "DISK_FAULT": str(fault)}
    k.start_daemon(env=env)
    return fault


@without_sanitizers
def test_no_room_for_a_while(k):
    """
    The run directory is full for a while: the session's journal lacks lines, and has them again
    when there is room, so that the session outlives its daemon.
    """
    fault = start_with_faulty_rundir(k)
    journal = k.rundir / "sessions" / "s"
    trace = k.record("emit:*", channel=("--buffers=process",))
    run = lambda: k.app("emit", "-p", next(numbers), "-n", 100)
    numbers = itertools.count()
    run()
    for error, is_short in ((errno.ENOSPC, 0), (errno.ENOSPC, 1), (errno.EIO, 0)):
        fault.write_text(f"{error} 1 {is_short}")
        k.kymo("enable-event", "-s", "s", f"rule{error}{is_short}:*")
        app = k.spawn("emit", "-p", next(numbers), "-n", 100, "-w")
        k.expect(app, "ready")
        said = str(k.ask("status", session="s"))
        check("'no_journal': True" in said and f"cannot be written: {os.strerror(error)}" in said and "it is tried again" in said, said)
        check(not journal.exists(), "a successor would find a journal that lacks lines")
        run()
        fault.unlink()
        wait_for(journal.exists, "the journal to be written again")
        check("no_journal" not in str(k.ask("status", session="s")), "status after that")
        run()
        before = state(k)
        kill_daemon(k)
        fault = start_with_faulty_rundir(k)
        equal(state(k), before, "what the successor knows of the session")
        for _ in range(2):
            k.let_go(app)
        k.finish(app)
        run()
    k.kymo("stop", "s")
    n = next(numbers)
    equal(len(check_values(kymotest.check_counts(k, trace, 100 * n))), 100 * n, "events, none being discarded")
    fault.write_text(f"{errno.ENOSPC} 1 0")
    k.kymo("start", "s")
    k.kymo("destroy", "s")
    equal(os.listdir(k.rundir / "sessions"), [], "journals of sessions that were destroyed")


@without_sanitizers
def test_killed_without_room(k):
    """The daemon is killed while the run directory is full: its successor says what was lost."""
    fault = start_with_faulty_rundir(k)
    trace = k.record("emit:*")
    fault.write_text(f"{errno.ENOSPC} 1 0")
    k.app("emit", "-n", 100)
    kill_daemon(k)
    restart(k)
    said = k.kymo("list").stdout
    check("session 's' is lost: its journal could not be written" in said, said)
    equal(os.listdir(k.rundir / "sessions"), [], "journals")
    wait_for(lambda: not consumers(k), "the consumer to complete the trace")
    equal(len(check_values(read_trace(trace)[0])), 100, "events")
    k.record("emit:*", session="s2")


def test_programs_go_on(k):
    """
    The daemon is killed while programs record: no event is lost, neither before nor after the
    successor started; stop and destroy work.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    apps = [k.spawn("emit", "-p", p, "-t", 2, "-n", 20000 // SCALE, "-w") for p in range(3)]
    for app in apps:
        k.expect(app, "ready")
    before = state(k)
    kill_daemon(k)
    for app in apps[:2]:  # without any daemon
        k.let_go(app)
        k.read_until(app, "done")
    restart(k)
    equal(state(k), before, "what the successor knows of the session")
    k.let_go(apps[2])
    k.read_until(apps[2], "done")
    later = k.spawn("emit", "-p", 3, "-n", 1000)
    total = sum(emitted(k.finish(later))) + len(apps) * 2 * (20000 // SCALE)
    for app in apps:
        k.let_go(app)
        k.finish(app)
    k.kymo("stop", "s")
    events = kymotest.check_counts(k, trace, total)
    check_values(events)
    check_order(events)
    equal(len(events), total, "events, none being discarded")
    k.kymo("destroy", "s")
    equal(list((k.rundir / "sessions").iterdir()), [], "journals of sessions that were destroyed")


@kymotest.without_sanitizers
def test_late_consumer(k):
    """A consumer that gets a CPU too seldom hands its session over later. It loses nothing."""
    n_calls = 60  # 50 ms apart, longer than a daemon waits for a consumer that cannot run
    k.start_daemon(env={"LD_PRELOAD": str(kymotest.APPS / "refuse-calls.so"), "REFUSE_CALLS": str(n_calls)})
    trace = k.record("emit:*")
    k.app("emit", "-n", 100)
    kill_daemon(k)
    restart(k)
    k.app("emit", "-n", 100, "-p", 1)
    k.kymo("destroy", "s")
    kymotest.check_counts(k, trace, 200)


def test_stopped_consumer(k):
    """
    A successor does not wait long for a consumer that is stopped: its session is lost. But not its
    events, and the message does not say so.
    """
    k.start_daemon()
    trace = k.record("emit:*")
    consumer, = consumers(k)
    kymotest.stop(consumer)
    k.app("emit", "-n", 100)
    kill_daemon(k)
    restart(k)
    equal(k.request(command="list")["sessions"], [], "sessions")
    said = f"session 's' is lost: its consumer (pid {consumer}) is stopped or waits for a disk"
    check(said in k.daemon_log(), f"not in the log: {said}")
    os.kill(consumer, signal.SIGCONT)
    wait_for(lambda: not consumers(k), "the consumer to finish the trace and to exit")
    kymotest.check_counts(k, trace, 100)


def test_again_and_again(k):
    """The daemon is killed at random moments while programs start, exit and record all the time."""
    seed = random.randrange(1 << 32)
    print(f"# seed {seed}")
    rng = random.Random(seed)
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    apps = []
    for cycle in range(CYCLES):
        apps.append(k.spawn("emit", "-p", cycle, "-t", 2, "-n", 20000 // SCALE, "-m"))
        until = rng.random() * 0.05
        begun = kymotest.time.monotonic()
        wait_for(lambda: kymotest.time.monotonic() - begun > until, "the moment to kill")
        kill_daemon(k)
        restart(k)
    # The others may all have ended while there was no daemon.
    apps.append(k.spawn("emit", "-p", CYCLES, "-t", 2, "-n", 20000 // SCALE, "-m"))
    total = sum(sum(emitted(k.finish(app))) for app in apps)
    k.kymo("stop")
    events, discarded = read_trace(trace)
    equal(discarded, 0, "discarded events")
    check_values(events)
    check(events, "no program was recorded at all")
    # A program that started while there was no daemon is not traced before it finds one; from then
    # on, all its events are recorded.
    last = {}
    for v in map(integers, events):
        key = v["process"], v["thread"]
        equal(v["seq"], last.get(key, v["seq"] - 1) + 1, f"number of the next event of {key}")
        last[key] = v["seq"]
    for (process, thread), seq in last.items():
        equal(seq, 20000 // SCALE - 1, f"last event of process {process}, thread {thread}")
    print(f"# {total - len(events)} of {total} events were before their programs found a daemon")


def test_all_options(k):
    """Channels, rules, filters, contexts, trackers, conflicts, and the current session."""
    k.start_daemon()
    k.kymo("create", "a", "-o", k.traces / "a")
    k.kymo("enable-channel", "big", "--subbuf-size=1M", "--num-subbuf=4", "--event-conflict=separate")
    k.kymo("enable-channel", "gone")
    k.kymo("disable-channel", "gone")
    k.kymo("enable-event", "-c", "big", "emit:*,x*", "-x", "emit:signal", "--filter", "seq % 3 == 1 && $ctx.vpid > 1")
    k.kymo("enable-event", "-c", "big", "never:*", "--loglevel=INFO")
    k.kymo("disable-event", "-c", "big", "never:*")
    k.kymo("add-context", "-t", "vtid", "-t", "procname", "-c", "big")
    k.kymo("track", "--vuid=0,4711")
    k.kymo("enable-event", "-c", "gone", "a:*", "b:*")
    k.kymo("disable-event", "--remove", "-c", "gone", "a:*")
    k.kymo("set", "-c", "big", "read-timer=5ms", "event-conflict=refuse")
    k.kymo("enable-rotation", "--timer=1h", "--size=1G")
    k.kymo("create", "b", "--snapshot", "-o", k.traces / "b")
    k.kymo("enable-event", "*")
    k.kymo("start", "b")
    k.kymo("create", "c", "-o", k.traces / "c", "--live=200ms")
    k.kymo("enable-channel", "-s", "c", "early")
    k.kymo("set-session", "a")
    before = {s: state(k, s) for s in "abc"}
    kill_daemon(k)
    restart(k)
    equal({s: state(k, s) for s in "abc"}, before, "what the successor knows")
    equal(k.kymo_json("status")["session"]["name"], "a", "the current session")
    k.kymo("enable-channel", "-s", "c", "late")
    equal([c["switch_timer"] for c in k.kymo_json("status", "c")["session"]["channels"]], [200000] * 2, "switch timers of --live")
    k.kymo("start")
    k.app("emit", "-n", 300)
    k.kymo("destroy", "-a")
    events = read_trace(k.traces / "a")[0]
    equal(sorted(int(kymotest.re.search(r"seq = (\d+)", e.fields)[1]) for e in events), list(range(1, 300, 3)), "events")


def test_refused_requests(k):
    """
    The journal has only completed changes: any number of refused requests leaves nothing in it, and
    a successor does not execute them.
    """
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    k.kymo("enable-event", "-c", "c", "emit:*")
    k.kymo("add-context", "-t", "callstack:4", "-c", "c")
    journal = k.rundir / "sessions" / "s"
    before, size = state(k), journal.stat().st_size
    refused = (
        ("enable-channel", "c"), ("enable-channel", "d", "--subbuf-size=0"), ("disable-channel", "d"),
        ("set", "-c", "c", "read-timer=-1"), ("enable-event", "-c", "d", "x:*", "--filter", "a ="), ("disable-event", "-c", "c", "x:*"),
        ("add-context", "-t", "vpid", "-t", "callstack:8", "-c", "c"), ("untrack", "--vpid=7"), ("track", "--vpid=1,x"),
        ("disable-rotation", "--size"), ("resume",))
    for command in refused:
        check(k.kymo(*command, status=None).returncode != 0, f"{command} was not refused")
    equal(journal.stat().st_size, size, "bytes of the journal after refused requests")
    kill_daemon(k)
    restart(k)
    equal(state(k), before, "what the successor knows")


def test_identifiers(k):
    """Events before and after the kill have the same identifiers; new events get others."""
    k.start_daemon()
    trace = k.record("*")
    k.app("emit", "-n", 10)
    kill_daemon(k)
    restart(k)
    k.app("emit", "-n", 10, "-p", 1)
    k.app("fields")
    kill_daemon(k)
    restart(k)
    k.app("emit", "-n", 10, "-p", 2)
    k.kymo("destroy")
    events = read_trace(trace)[0]
    equal(sum(e.name == "emit:record" for e in events), 30, "events")
    text = (next(trace.glob("ust/uid/*/64-bit/metadata"))).read_text()
    equal(text.count('name = "emit:record"'), 1, "descriptions of one event")


def test_flight_recorder(k):
    """
    The events in buffers that no consumer drains are in a snapshot after the daemon was killed.
    """
    k.start_daemon()
    k.kymo("create", "s", "--snapshot", "-o", k.traces / "s")
    k.kymo("enable-event", "emit:*")
    k.kymo("start")
    k.app("emit", "-n", 500)
    kill_daemon(k)
    restart(k)
    k.app("emit", "-n", 500, "-p", 1)
    taken = k.kymo_json("snapshot", "record")["snapshot"]
    equal((len(read_trace(pathlib.Path(taken["output"]))[0]), taken["recorded"]), (1000, 1000), "events")


def test_consumer_killed_afterwards(k):
    """The successor supervises a consumer that it has taken over like any other."""
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    k.app("emit", "-n", 1000)
    kill_daemon(k)
    restart(k)
    (old,) = consumers(k)
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: [p for p in consumers(k) if p != old], "another consumer")
    k.app("emit", "-n", 1000, "-p", 1)
    k.kymo("destroy")
    equal(len(read_trace(trace)[0]), 2000, "events")


def send_as(pid, message):
    """Sends the message on the only socket of a process."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd, = (int(fd.name) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir() if os.readlink(fd).startswith("socket:"))
    process = os.pidfd_open(pid)
    taken = libc.syscall(438, process, fd, 0)  # pidfd_getfd
    os.close(process)
    if taken < 0:
        raise kymotest.Skip(f"cannot take a descriptor of another process: {os.strerror(ctypes.get_errno())}")
    with socket.socket(fileno=taken) as s:
        s.send(message)


def test_one_consumer_at_a_time(k):
    """
    If the connection to a consumer that was taken over fails, this consumer ends before another one
    begins.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    k.app("emit", "-n", 1000)
    kill_daemon(k)
    restart(k)
    (old,) = consumers(k)
    kymotest.stop(old)
    send_as(old, struct.pack("<IHH", 8, 16, 0))  # STATS without contents
    wait_for(lambda: [p for p in consumers(k) if p != old], "another consumer")
    check(not kymotest.alive(old), "two consumers write one trace")
    k.app("emit", "-n", 1000, "-p", 1)
    k.kymo("destroy")
    equal(len(read_trace(trace)[0]), 2000, "events")


def kill_consumer(k):
    (old,) = consumers(k)
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: [p for p in consumers(k) if p != old], "another consumer")


def test_started_where_ends_of_children_are_ignored(k):
    """The process that started the daemon ignores SIGCHLD. The daemon replaces a dead consumer."""
    k.start_daemon(wrap=("env", "--ignore-signal=CHLD"))
    trace = k.record("emit:*")
    kill_consumer(k)
    k.app("emit", "-n", 100)
    k.kymo("stop", "s")
    kymotest.check_counts(k, trace, 100)
    k.kymo("destroy", "s")


def test_no_process_meanwhile(k):
    """
    Processes have buffers of their own, and none of them runs while the daemon is killed: the trace
    goes on, with its metadata.
    """
    k.start_daemon()
    trace = k.record("emit:*", "abi:*", channel=("--buffers=process",))
    k.app("emit", "-n", 100)
    wait_for(lambda: not any(s["count"] for s in state(k)["channels"][0]["ring_sets"]), "the buffers of the process to be written")
    kill_daemon(k)
    restart(k)
    k.app("abi", 100)
    k.app("emit", "-n", 100, "-p", 1)
    kill_consumer(k)
    k.app("emit", "-n", 100, "-p", 2)
    k.kymo("destroy")
    events = read_trace(trace)[0]
    equal((sum(e.name == "emit:record" for e in events), sum(e.name.startswith("abi:") for e in events)), (300, 300), "events")
    text = (next(trace.glob("ust/uid/*/64-bit/metadata"))).read_text()
    equal((text.count('name = "emit:record"'), text.count("stream {")), (1, 1), "descriptions of one event, and streams")


def test_files_of_limited_size(k):
    """The limits of files outlive the daemon: the next consumer continues in the last file."""
    k.start_daemon()
    trace = k.record("emit:*", channel=("--subbuf-size=4K", "--num-subbuf=64", "--tracefile-size=8K", "--tracefile-count=1000"))
    app = k.spawn("emit", "-n", 3000, "-w")
    k.expect(app, "ready")
    k.let_go(app)
    k.read_until(app, "done")
    k.kymo("stop")
    k.kymo("start")
    kill_daemon(k)
    restart(k)
    k.app("emit", "-n", 3000, "-p", 1)
    kill_consumer(k)
    k.app("emit", "-n", 3000, "-p", 2)
    k.let_go(app)
    k.finish(app)
    counts = k.kymo_json("destroy")["sessions"][0]
    events, discarded = read_trace(trace)
    equal((len(events), counts["recorded"], counts["discarded"] + discarded), (9000, 9000, 0), "events, recorded and discarded")
    sizes = [p.stat().st_size for p in kymotest.streams(trace)]
    check(max(sizes) <= 8192, f"a file has {max(sizes)} bytes")


def add_to_journal(k, *lines):
    with open(k.rundir / "sessions" / "s", "a") as f:
        f.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def thread_set(k):
    """Returns the number of the set whose rings are of threads."""
    lines = [json.loads(line) for line in (k.rundir / "sessions" / "s").read_text().splitlines()]
    (number,) = {line["set"]["number"] for line in lines if "set" in line and line["set"]["channel"] == "threads"}
    return number


def withdrawn(k):
    """Records into a channel with buffers of CPUs, and then of threads, and kills the daemon."""
    k.start_daemon()
    trace = k.record("emit:*")
    k.kymo("enable-channel", "threads", "-s", "s", "--buffers=thread")
    k.app("emit", "-n", 100)
    k.kymo("enable-event", "-s", "s", "-c", "threads", "abi:*")
    k.app("abi", 10)
    kill_daemon(k)
    return trace


def test_withdrawn(k):
    """A set that the quota has withdrawn is written and given up by the successor."""
    trace = withdrawn(k)
    number = thread_set(k)
    add_to_journal(k, {"replaced": {"set": number}}, {"withdrawn": {"set": number}})
    restart(k)
    wait_for(lambda: [s["replaced"] for c in state(k)["channels"] for s in c["ring_sets"]] == [False], "the set to go")
    k.app("abi", 10)
    k.app("emit", "-n", 100, "-p", 1)
    counts = k.kymo_json("destroy")["sessions"][0]
    events, _ = read_trace(trace)
    equal((len(events), counts["recorded"]), (260, 260), "events, and those that were recorded")


def test_last_text_of_a_retired_set(k):
    """The metadata goes on behind its last text, although the set of this text was freed."""
    trace = withdrawn(k)
    number = thread_set(k)
    counts = {"recorded": 30, "chunk": 0, "kept": 30}
    add_to_journal(k, {"replaced": {"set": number}}, {"withdrawn": {"set": number}}, {"retired": {"set": number, **counts}})
    restart(k)
    k.kymo("enable-event", "-s", "s", "abi:*")
    k.app("abi", 10)
    k.kymo("destroy")
    equal(sum(e.name.startswith("abi:") for e in read_trace(trace)[0]), 90, "events: of the old set, and of both channels")


def test_old_losses_are_not_new(k):
    """A consumer that is started again has counts of lost events: these were not lost just now."""
    status = lambda: k.kymo_json("status", "s")["session"]
    k.start_daemon()
    k.record("emit:*", channel=("--subbuf-size=4K", "--num-subbuf=2"))
    consumer, = consumers(k)
    kymotest.stop(consumer)
    k.app("emit", "-n", 10000)
    os.kill(consumer, signal.SIGCONT)
    wait_for(lambda: status()["discarded"] and not status()["in_buffers"], "the events to be written")
    kill_daemon(k)
    restart(k)
    before = status()
    check(before["discarded"] and "lost_ms_ago" not in before, f"{before}")
    os.kill(consumer, signal.SIGKILL)
    wait_for(lambda: consumers(k) not in ([], [consumer]), "another consumer")
    wait_for(lambda: status()["discarded"] == before["discarded"], "the counts")
    after = status()
    check("lost_ms_ago" not in after, f"lost {after.get('lost_ms_ago')} ms ago")
    equal(after["recorded"], before["recorded"], "recorded events")


def test_both_killed(k):
    """Nothing is left to take over: the successor reports it, and the name is free."""
    k.start_daemon()
    k.record("emit:*")
    kill_daemon(k)  # first: it would start another consumer
    for p in consumers(k):
        os.kill(p, signal.SIGKILL)
    wait_for(lambda: not consumers(k), "the consumer to die")
    restart(k)
    check("session 's' is lost" in k.daemon_log(), k.daemon_log())
    equal(k.request(command="list")["sessions"], [], "sessions")
    for args, status in ((("list",), 0), (("status", "s"), 1), (("status",), 1), (("watch", "s"), 1), (("list",), 0)):
        done = k.kymo(*args, status=status)
        check("session 's' is lost" in done.stdout + done.stderr, f"{args} does not name the session: {done}")
    check("CRITICAL: session 's' is lost" in k.run([kymotest.CLI, "status", "--check"], status=2).stdout, "status --check")
    said = k.kymo("start", "s", status=1).stderr
    check("session 's' is lost" in said and "'kymo destroy s' forgets it" in said, said)
    said = k.kymo("destroy", "s", status=1).stderr
    check("session 's' is lost" in said and "it is forgotten now" in said, said)
    check("lost" not in k.kymo("list").stdout, "a session that was destroyed is still listed as lost")
    k.traces.joinpath("s").rename(k.traces / "old")
    k.record("emit:*")


def test_take_over(k):
    """A restart for another version: sessions and programs stay."""
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    app = k.spawn("emit", "-n", 1000, "-w")
    k.expect(app, "ready")
    first, k.daemon = k.daemon, k.spawn_daemon("--take-over")
    equal(first.wait(kymotest.TIMEOUT), 0, "exit status of the first daemon")
    wait_for(k.answers, "the second daemon to answer")
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)
    k.kymo("stop")
    equal(len(read_trace(trace)[0]), 1000, "events")


def test_take_over_without_consumer(k):
    """A daemon whose consumer has died starts the next one before it makes room."""
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 100)
    (consumer,) = consumers(k)
    first = k.daemon
    kymotest.stop(first.pid)
    os.kill(consumer, signal.SIGKILL)
    wait_for(lambda: kymotest.state_of(consumer) == "Z", "the consumer to die")
    k.daemon = k.spawn_daemon("--take-over")
    pending = lambda: int(re.search(r"ShdPnd:\s*(\w+)", pathlib.Path(f"/proc/{first.pid}/status").read_text())[1], 16)
    wait_for(lambda: pending() >> (signal.SIGUSR2 - 1) & 1, "the first daemon to be asked")
    first.send_signal(signal.SIGCONT)
    equal(first.wait(kymotest.TIMEOUT), 0, "exit status of the first daemon")
    wait_for(k.answers, "the second daemon to answer")
    k.app("emit", "-n", 10, "-p", 1)
    k.kymo("stop", "s")
    equal(len(read_trace(trace)[0]), 110, "events")


def test_bound_session(k):
    """The successor destroys a session that was bound to a connection to its predecessor."""
    k.start_daemon()
    trace = k.traces / "bound"
    with socket.socket(socket.AF_UNIX) as s, s.makefile() as lines:
        s.connect(str(k.rundir / "control.sock"))
        s.sendall(json.dumps({"command": "create", "session": "b", "output": str(trace), "bound": True}).encode() + b"\n")
        check(json.loads(lines.readline())["ok"], "the session was not made")
        k.kymo("enable-channel", "-s", "b", *ROOMY, "c")
        k.kymo("enable-event", "-s", "b", "-c", "c", "emit:*")
        k.kymo("start", "b")
        k.app("emit", "-n", 1000)
        kill_daemon(k)
    restart(k)
    wait_for(lambda: not k.kymo_json("list")["sessions"], "the session to end")
    equal(len(read_trace(trace)[0]), 1000, "events")


def test_interrupted_stop(k):
    """
    The daemon is killed when it has begun to stop a session: the successor has the rest written
    out, and `stop` waits for that.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=("--switch-timer=0",))
    k.app("emit", "-n", 100)
    kill_daemon(k)
    with (k.rundir / "sessions" / "s").open("a") as journal:
        journal.write('{"state":"stopped"}\n')  # the first thing that it does
    restart(k)
    k.kymo("stop", "s")
    equal(len(read_trace(trace)[0]), 100, "events")


def leave_order(k, command, n, then=()):
    """
    A program records n events and exits. The consumer carries out the command when the daemon has
    been killed. then: another command, before that.
    """
    journal = k.rundir / "sessions" / "s"
    retired = journal.read_text().count('{"retired"')
    k.app("emit", "-n", n)
    wait_for(lambda: journal.read_text().count('{"retired"') > retired, "the buffers to be retired")
    consumer, = consumers(k)
    kymotest.stop(consumer)
    client = subprocess.Popen([kymotest.CLI, command, "s"], env=k.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: k.kymo_json("status", "s")["session"]["rotation"]["ongoing"], "the order")
    if then:
        k.kymo(*then)
    kill_daemon(k)
    client.wait()
    os.kill(consumer, signal.SIGCONT)
    restart(k)


def test_rotated_by_a_predecessor(k):
    """No daemon has heard of the end of a rotation: the successor counts what was cleared."""
    k.start_daemon()
    trace = k.record("emit:*", channel=("--buffers=process",))
    leave_order(k, "clear", 10)
    equal(k.kymo_json("status", "s")["session"]["cleared"], 10, "cleared by the predecessor")
    leave_order(k, "rotate", 20)
    k.app("emit", "-n", 5)
    k.kymo("rotate")
    k.app("emit", "-n", 3)
    k.kymo("clear")
    counts = k.kymo_json("stop")["sessions"][0]
    equal((counts["recorded"], counts["cleared"], counts["rotation"]["chunks"]), (38, 13, 2), "recorded, cleared, archives")
    equal(len(read_trace(trace)[0]), 25, "events")


def test_timer_after_a_predecessors_order(k):
    """The successor's timer rotates nothing before it knows how the predecessor's order ended."""
    k.start_daemon()
    k.record("emit:*", channel=("--buffers=process",))
    leave_order(k, "clear", 10, ("enable-rotation", "s", "--timer=1ms"))
    equal(k.kymo_json("status", "s")["session"]["cleared"], 10, "cleared by the predecessor")


def test_trigger_of_a_predecessors_rotation(k):
    """No daemon has heard of the end of a rotation: the successor fires the trigger for it."""
    k.start_daemon()
    trace = k.record("emit:*", channel=("--buffers=process",))
    k.kymo("add-trigger", "end", "--when=rotated", "--do=stop")
    leave_order(k, "rotate", 20)
    wait_for(lambda: k.kymo_json("status", "s")["session"]["state"] == "stopped", "the action")
    (archive,) = (trace / "archives").iterdir()
    check(f"rotated: {archive}\n" in k.daemon_log(), k.daemon_log())
    equal(k.kymo_json("status", "s")["session"]["rotation"]["last"], str(archive), "the last archive")


def test_first_clear(k):
    """The first `clear` after a restart reports the events that it has cleared, and no others."""
    k.start_daemon()
    k.record("emit:*", channel=ROOMY)
    k.app("emit", "-n", 1000)
    equal(k.kymo_json("clear")["cleared"][0]["events"], 1000, "cleared before the restart")
    kill_daemon(k)
    restart(k)
    k.app("emit", "-n", 50, "-p", 1)
    equal(k.kymo_json("clear")["cleared"][0]["events"], 50, "cleared after it")


def test_rotation_by_size(k):
    """The successor knows where the present chunk began: it does not rotate before this is full."""
    k.start_daemon()
    channel = ("--subbuf-size=64K", "--num-subbuf=64", "--switch-timer=10ms")
    trace = k.record("emit:*", channel=channel)
    k.kymo("enable-rotation", "--size=100K")
    chunks = lambda session: k.kymo_json("status", session)["session"]["rotation"]["chunks"]
    k.app("emit", "-n", 6000)
    wait_for(lambda: chunks("s") == 1, "a rotation")
    k.app("emit", "-n", 100, "-p", 1)
    wait_for(lambda: not k.kymo_json("status", "s")["session"]["in_buffers"], "the events to be written")
    kill_daemon(k)
    restart(k)
    # When another session has been rotated repeatedly, the daemon has looked at the size of both.
    k.record("emit:*", channel=channel, session="other")
    k.kymo("enable-rotation", "-s", "other", "--size=4K")
    for n in range(3):
        k.app("emit", "-n", 400, "-p", 2 + n)
        wait_for(lambda: chunks("other") > n, "a rotation")
    k.app("emit", "-n", 6000, "-p", 5)
    wait_for(lambda: chunks("s") > 1, "a rotation")
    for chunk in (trace / "archives").iterdir():
        size = sum(p.stat().st_size for p in kymotest.streams(chunk))
        check(size >= 100 << 10, f"chunk of {size} bytes")


def test_the_command_line_brings_a_successor(k):
    """A command for a session whose daemon was killed starts a new daemon, and reports it."""
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    k.app("emit", "-n", 1000)
    kill_daemon(k)
    k.daemon = None
    done = k.kymo("stop", "s")
    check("takes over its sessions" in done.stderr, done.stderr)
    equal(len(read_trace(trace)[0]), 1000, "events")
    k.kymo("destroy", "s")
    # The destroyed session is removed after the reply.
    wait_for(lambda: not any(p.name[0] != "." for p in (k.rundir / "sessions").iterdir()), "no session to be left")
    pid = int((k.rundir / "lock").read_text())
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not kymotest.alive(pid), "the daemon to die")
    said = k.kymo("stop", "s", status=1).stderr
    check("no session daemon" in said, f"without sessions there is no need of a daemon: {said}")


def test_no_sessiond(k):
    """With --no-sessiond, a command whose daemon is killed meanwhile starts no successor."""
    k.start_daemon()
    k.record("emit:*")
    kymotest.stop(k.daemon.pid)
    command = subprocess.Popen([kymotest.CLI, "--no-sessiond", "status", "s"], env=k.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    wait_for(lambda: asks(command.pid), "the command to ask the daemon")
    kill_daemon(k)
    said, errors = command.communicate(timeout=kymotest.TIMEOUT)
    equal((command.returncode, said, errors.count("\n")), (1, "", 1), f"exit status, output and messages: {errors}")
    equal([p for p in kymotest.processes_with(k.mark) if "kymo-sessiond" in kymotest.command_of(p)], [], "session daemons")
    restart(k)


def asks(pid):
    """Returns whether a command has a socket, and waits."""
    return "socket:" in kymotest.open_fds(pid) and pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_first_commands_at_once(k):
    """
    Commands that find no daemon, or one that was just killed, start one together: all succeed, and
    the same daemon has all sessions.
    """
    n = 6
    for turn in range(3):
        names = [f"s{turn}-{i}" for i in range(n)]
        commands = [subprocess.Popen([kymotest.CLI, "create", name, "-o", k.traces / name], env=k.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True) for name in names]
        said = [c.communicate(timeout=kymotest.TIMEOUT)[0] for c in commands]
        equal([c.returncode for c in commands], [0] * n, f"exit statuses: {said}")
        found = {s["name"] for s in k.request(command="list")["sessions"]}
        equal(found, {f"s{t}-{i}" for t in range(turn + 1) for i in range(n)}, "sessions")
        pid = int((k.rundir / "lock").read_text())
        # first one that nobody announces, then one that ends with its sessions
        os.kill(pid, signal.SIGKILL if turn < 2 else signal.SIGTERM)
        wait_for(lambda: not kymotest.alive(pid), "the daemon to die")


def test_the_command_line_tells_what_is_lost(k):
    """
    If a command starts a successor that finds nothing to take over, the user and the log learn what
    happened to the session. A shell runs the command that they get.
    """
    shm = k.top / "it's shm"
    k.start_daemon()
    k.kymo("create", "s", f"--shm-path={shm}", "-o", k.traces / "s")
    kill_daemon(k)
    k.daemon = None
    for p in consumers(k):
        os.kill(p, signal.SIGKILL)
    wait_for(lambda: not consumers(k), "the consumer to die")
    told = k.kymo("list").stderr
    command = re.search("session 's' was killed: '(.*)' writes out", told)
    check(command, told)
    equal(shlex.split(command[1]), ["kymo", "recover", str(shm)], "the command")
    check("session 's' was killed" in (k.rundir / "log").read_text(), "nothing in the log")
    os.kill(int((k.rundir / "lock").read_text()), signal.SIGTERM)
    wait_for(lambda: not (k.rundir / "control.sock").exists(), "the daemon to end")


def test_ended_in_good_order(k):
    """SIGTERM ends the sessions: a successor finds none."""
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 100)
    k.stop_daemon()
    equal(len(read_trace(trace)[0]), 100, "events")
    k.start_daemon()
    equal(k.request(command="list")["sessions"], [], "sessions")


def test_run_directory_removed(k):
    """A consumer that no successor can reach finishes its trace."""
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 100)
    kill_daemon(k)
    k.daemon = None
    kymotest.shutil.rmtree(k.rundir)
    wait_for(lambda: not consumers(k), "the consumer to end")
    equal(len(read_trace(trace)[0]), 100, "events")


def ends_unreachable(k, daemon):
    """
    The daemon logs the reason and exits by itself, with an error status; its consumers exit too.
    """
    equal(daemon.wait(kymotest.TIMEOUT), 1, "exit status of the daemon")
    check("was removed or moved away" in k.daemon_log(), k.daemon_log())


def test_run_directory_removed_while_recording(k):
    """
    A daemon that no process can reach any more completes the traces, exits, and lets the programs
    find another one.
    """
    k.start_daemon()
    trace = k.record("emit:*")
    app = k.spawn("emit", "-n", 100, "-w")
    k.expect(app, "ready")
    daemon, k.daemon = k.daemon, None
    wait_for(lambda: kymotest.removed(k.rundir), "the run directory to be removed")
    ends_unreachable(k, daemon)
    wait_for(lambda: not consumers(k), "the consumer to end")
    equal(len(read_trace(trace)[0]), 0, "events before the program went on")
    k.start_daemon()
    second = k.record("emit:*", session="t")
    programs = lambda: k.request(command="status", session="t")["session"]["applications"]
    wait_for(lambda: app.pid in [a["pid"] for a in programs()], "the program to come to the second daemon")
    k.kymo("enable-event", "-s", "t", "none:*")  # when the program answers this query, it records
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)
    k.kymo("stop", "t")
    equal(len(read_trace(second)[0]), 100, "events in the second trace")


def test_run_directory_made_again(k):
    """
    Programs find the daemon of a new run directory if the old one was removed after its daemon had
    ended, as service managers do.
    """
    k.start_daemon()
    app = k.spawn("emit", "-n", 100, "-w")
    k.expect(app, "ready")
    k.stop_daemon()
    wait_for(lambda: kymotest.removed(k.rundir), "the run directory to be removed")
    k.start_daemon()
    trace = k.record("emit:*")
    status = lambda: k.request(command="status", session="s")["session"]["applications"]
    wait_for(lambda: app.pid in [a["pid"] for a in status()], "the program to come to the daemon of the new directory")
    k.kymo("enable-event", "none:*")  # when the program answers this query, it records
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)
    k.kymo("stop")
    equal(len(read_trace(trace)[0]), 100, "events")


def test_run_directory_of_another(k):
    """
    A daemon whose directory was moved exits by itself, and leaves another daemon's directory in its
    place alone.
    """
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 100)
    first = k.daemon
    kymotest.stop(first.pid)
    k.rundir.rename(k.top / "moved")
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "second")
    first.send_signal(signal.SIGCONT)
    ends_unreachable(k, first)
    equal(len(read_trace(trace)[0]), 100, "events")
    check(k.answers(), "the second daemon's socket was removed")
    check((k.rundir / "sessions" / "s").exists(), "the second daemon's journal was removed")
    kymotest.shutil.rmtree(k.top / "moved")


def test_run_directory_stays(k):
    """
    Other files that are removed from the run directory, or a directory that is moved and restored
    at once, end nothing.
    """
    k.start_daemon()
    k.record("emit:*")
    kymotest.stop(k.daemon.pid)
    (k.rundir / "something").touch()
    (k.rundir / "something").unlink()
    k.rundir.rename(k.top / "moved")
    (k.top / "moved").rename(k.rundir)
    k.daemon.send_signal(signal.SIGCONT)
    k.app("emit", "-n", 100)
    k.kymo("stop")
    equal(k.kymo_json("status")["session"]["recorded"], 100, "events")


def journal_size(k):
    return (k.rundir / "sessions" / "s").stat().st_size


def run_many(k, n, first):
    """Runs n short programs one after the other, of three events each."""
    script = f'i={first}; while [ $i -lt {first + n} ]; do "$0" -n 3 -p $((i % 200)); i=$((i + 1)); done'
    done = subprocess.run(["sh", "-c", script, str(kymotest.APPS / "emit")], env=k.env, stdout=subprocess.DEVNULL, timeout=kymotest.TIMEOUT)
    equal(done.returncode, 0, "status of the programs")


def test_pool_of_older_buffers(k):
    """Buffers keep the size of their pool in a journal that was written anew after a change."""
    k.start_daemon()
    k.record("emit:*", channel=("--buffers=thread", "--pool-size=8"))
    app = k.spawn("emit", "-w")
    k.expect(app, "ready")
    grown = [journal_size(k)]
    while grown[-1] >= max(grown):  # until it was written anew
        ask(k, "set", session="s", pool_size=8 + len(grown))
        grown.append(journal_size(k))
    kill_daemon(k)
    restart(k)
    sets = k.kymo_json("status", "s")["session"]["channels"][0]["ring_sets"]
    equal([s["pool_size"] for s in sets], [8], "sizes of the pool")
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)


def test_journal_does_not_grow(k):
    """
    The journal of a session is as long as its contents, not as its history: after many processes
    with buffers of their own, and many changes, the successor knows the same, and has all counts.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=("--buffers=process", "--num-subbuf=2", "--subbuf-size=4K"))
    k.kymo("enable-event", "-s", "s", "never:*")
    k.kymo("disable-event", "-s", "s", "never:*")
    k.kymo("add-context", "-s", "s", "-t", "vtid")
    living = k.spawn("emit", "-n", 5, "-p", 201, "-w")
    k.expect(living, "ready")
    run_many(k, 150, 0)
    k.kymo("rotate", "s")
    run_many(k, 150, 150)
    for _ in range(1000):
        ask(k, "pause", session="s")
        ask(k, "resume", session="s")
    wait_for(lambda: k.kymo_json("status", "s")["session"]["recorded"] == 900, "all to be written")
    wait_for(lambda: [s["count"] for s in k.kymo_json("status", "s")["session"]["channels"][0]["ring_sets"]] == [1], "buffers of the dead to go")
    check(journal_size(k) < 100000, f"the journal has {journal_size(k)} bytes")
    before = state(k)
    kill_daemon(k)
    restart(k)
    equal(state(k), before, "what the successor knows of the session")
    run_many(k, 10, 0)
    k.let_go(living)
    k.read_until(living, "done")
    kill_daemon(k)  # the shorter journal, and what was appended to it
    restart(k)
    k.let_go(living)
    k.finish(living)
    session = k.kymo_json("destroy", "s")["sessions"][0]
    equal((session["recorded"], session["discarded"]), (935, 0), "counts of the session")
    equal(len(read_trace(trace)[0]), 935, "events, with those of the archive")


def test_journal_without_streams(k):
    """
    In journals of earlier versions, the line of a set is written before its stream is described,
    and there are no lines of streams.
    """
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 100)
    kill_daemon(k)
    path = k.rundir / "sessions" / "s"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    described = {line["stream"]["number"]: line["stream"]["at"] for line in lines if "stream" in line}
    for line in lines:
        if "set" in line:
            line["set"]["at"] = described[line["set"]["number"]]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines if "stream" not in line))
    restart(k)
    k.app("emit", "-n", 100, "-p", 1)
    k.kymo("destroy")
    equal(len(read_trace(trace)[0]), 200, "events")


def test_changes_that_were_not_applied(k):
    """The daemon is killed when the journal has changes that known events do not have yet."""
    k.start_daemon()
    trace = k.record("alpha:two")
    for app in ("rules", "rules-other"):
        k.app(app, 1)
    kill_daemon(k)
    path = k.rundir / "sessions" / "s"
    channel = [line for line in map(json.loads, path.read_text().splitlines()) if "channel" in line][-1]
    channel["channel"]["event-conflict"] = 1 - channel["channel"]["event-conflict"]
    contexts = {"contexts": {"channel": "channel0", "list": ["vpid"]}}
    with open(path, "a") as f:
        f.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in (channel, contexts))
    restart(k)
    for app in ("rules", "rules-other"):
        k.app(app, 1)
    kill_daemon(k)
    restart(k)
    stopped = k.kymo_json("stop")["sessions"][0]
    equal((stopped["recorded"], stopped["discarded"]), (3, 1), "counts")
    equal(["vpid" in str(event.fields) for event in read_trace(trace)[0]], [False, True, True], "events with the context")


@kymotest.without_sanitizers
def test_unreadable_journal(k):
    """
    A successor that cannot open a journal for now ends, or reads it: no session is lost. Each call
    fails once.
    """
    k.start_daemon()
    trace = k.record("emit:*")
    k.kymo("create", "other", "-o", k.top / "other")
    k.app("emit", "-n", 100)
    kill_daemon(k)
    said, n_ended = k.top / "failed", 0
    for n in range(1, 100):
        said.unlink(missing_ok=True)
        k.daemon = k.spawn_daemon(env={"LD_PRELOAD": str(kymotest.APPS / "failing.so"), "FAIL_CALL": "fopen", "FAIL_PROGRAM": "kymo-sessiond", "FAIL_AT": str(n), "FAIL_SAY": str(said)})
        wait_for(lambda: k.daemon.poll() is not None or k.answers(), "the successor to answer or to end")
        n_ended += k.daemon.poll() is not None
        kill_daemon(k)
        if not said.read_text():
            break
    equal(n_ended, 2, "successors that could not open a journal")
    restart(k)
    equal(sorted(s["name"] for s in k.request(command="list")["sessions"]), ["other", "s"], "sessions")
    k.app("emit", "-n", 100, "-p", 1)
    k.kymo("destroy", "--all")
    kymotest.check_counts(k, trace, 200)


def test_damaged_journal(k):
    """The successor skips lines of the journal that are invalid or truncated."""
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 100)
    kill_daemon(k)
    with open(k.rundir / "sessions" / "s", "a") as f:
        f.write('{"event": 5}\nnonsense\n{"set": {"channel": 3}}\n{"request": {"command": "start"}, "uid": "x"}\n{"event": {"set": 1')
    (k.rundir / "sessions" / "t").write_text("{}\n")
    restart(k)
    check("session 't' is lost" in k.daemon_log(), k.daemon_log())
    k.app("emit", "-n", 100, "-p", 1)
    kill_daemon(k)
    restart(k)
    k.kymo("destroy")
    equal(len(read_trace(trace)[0]), 200, "events")


kymotest.main()
