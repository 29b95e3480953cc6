#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Files of limited size, rotation and clearing: an event is in one chunk, or counted as removed,
cleared or discarded. babeltrace2 checks each chunk alone, and all chunks below the session's
directory.
"""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import threading

import kymotest
from emitcheck import RECORD_BYTES, ROOMY, SCALE, check_order, check_values, emitted
from kymotest import CLI, check, check_streams, equal, fixed, read_trace, wait_for

FILES = ("--subbuf-size=16K", "--num-subbuf=64", "--tracefile-size=64K")
WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def consumers(k):
    return [p for p in kymotest.processes_with(k.mark) if "consumerd" in kymotest.command_of(p)]


def status(k, session="s"):
    return k.kymo_json("status", session)["session"]


def rotate(k, *args):
    return k.kymo_json("rotate", *args)["rotation"]


def archived(trace):
    """Returns the complete chunks, oldest first."""
    found = list((trace / "archives").iterdir()) if (trace / "archives").exists() else []
    return sorted(found, key=lambda p: int(p.name.rpartition("-")[2]))


def chunks(trace):
    return archived(trace) + ([trace / "ust"] if kymotest.streams(trace / "ust") else [])


def check_chunks(k, trace, counts, total, first=0):
    """Checks all chunks together; returns the events of each."""
    found, lost = [], 0
    for chunk in chunks(trace):
        events, discarded = read_trace(chunk)
        equal(check_streams(chunk, fixed(RECORD_BYTES), first), (len(events), discarded), f"what the packets of {chunk} count")
        stat = k.kymo_json("stat", chunk)
        equal((stat["events"], stat["discarded"]), (len(events), discarded), f"what kymo stat says of {chunk}")
        found.append(events)
        lost += discarded
    events, discarded = read_trace(trace)
    equal((len(events), discarded), (sum(map(len, found)), lost), "what is read of all at once")
    check_values(events)
    check_order(events)
    gone = counts["removed"] + counts["cleared"]
    equal((len(events) + gone, lost), (counts["recorded"], counts["discarded"]), "events and losses, against the session's counts")
    equal(counts["recorded"] + counts["discarded"], total, "recorded and discarded, against emitted")
    if not gone:
        equal(complete_from(k, trace), None, "the time before which events are missing, of all chunks")
    return found


def complete_from(k, *traces):
    """
    Returns the time from which kymo says that the trace is complete; None if it does not say that
    events are missing before. kymo stat and kymo view agree.
    """
    claim = k.kymo_json("stat", *traces).get("complete_from_ns")
    warned = "the trace is complete from" in k.kymo("view", *traces).stderr
    equal(warned, claim is not None, f"kymo view warns, kymo stat shows {claim}")
    return claim


def times(k, trace):
    """Returns the times of the first and of the last event."""
    stat = k.kymo_json("stat", trace)
    return stat["begin_ns"], stat["end_ns"]


def while_emitting(k, action, runs, enough=lambda: True, **options):
    """
    Repeats an action while this number of programs record, or more until the action was repeated
    enough; returns how many events they have emitted.
    """
    total, process = 0, 0
    while process < runs or not enough():
        app = k.spawn("emit", "-t", 3, "-n", 10000 // SCALE, "-m", "-p", process, **options)
        while app.poll() is None:
            action()
        total += sum(emitted(k.finish(app)))
        process += 1
    return total


def run_rotating(k, **options):
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    total = while_emitting(k, lambda: rotate(k), 2, enough=lambda: len(archived(trace)) > 3, **options)
    counts = k.kymo_json("stop")["sessions"][0]
    found = check_chunks(k, trace, counts, total)
    check(len(found) > 3, f"{len(found)} chunks")
    equal(len(archived(trace)), counts["rotation"]["chunks"], "chunks")
    return trace


def test_while_recording(k):
    run_rotating(k)


def test_while_recording_per_thread(k):
    run_rotating(k, env=WITHOUT_RSEQ)


def test_chunk(k):
    """The output of the command; a chunk can be moved and removed."""
    k.start_daemon()
    trace = k.record("emit:*")
    equal(rotate(k), {"session": "s", "state": "empty", "path": ""}, "rotation of nothing")
    check("no chunk was made" in k.kymo("rotate", "s").stdout, "no word about an empty chunk")
    check(not (trace / "archives").exists(), "a chunk of nothing")
    k.app("emit", "-n", 100)
    done = k.kymo("rotate").stdout
    first, = archived(trace)
    check(str(first) in done, f"says: {done}")
    check(kymotest.re.fullmatch(r"(\d{8}T\d{6}[+-]\d{4}-){2}0", first.name), f"name: {first.name}")
    equal(len(read_trace(first)[0]), 100, "events of the chunk")
    equal(len(k.kymo("view", first).stdout.splitlines()), 100, "lines of kymo view")
    first.rename(k.top / "moved")
    k.app("emit", "-n", 10, "-p", 1)
    k.kymo("stop")
    equal(len(read_trace(trace)[0]), 10, "events of the chunk that is written")
    second = rotate(k)
    equal((second["state"], len(read_trace(second["path"])[0])), ("completed", 10), "rotation of a stopped session")
    shutil.rmtree(second["path"])
    k.kymo("start")
    k.app("emit", "-n", 1, "-p", 2)
    third = rotate(k, "s", "--no-wait")
    equal(third["state"], "ongoing", "state")
    wait_for(lambda: status(k)["rotation"]["chunks"] == 3, "the rotation")
    equal(status(k)["rotation"]["last"], third["path"], "path of the last chunk")
    check("rotated 3 times" in k.kymo("status").stdout, "status does not show rotations")
    counts = k.kymo_json("destroy")["sessions"][0]
    equal((counts["recorded"], counts["discarded"]), (111, 0), "counts")


def test_machine_failed(k):
    """The machine fails while a chunk is moved: its events are still read, once."""
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 100)
    rotate(k)
    k.app("emit", "-n", 10, "-p", 1)
    k.kymo("destroy")
    (trace / ".moving").mkdir()
    (trace / "ust").rename(trace / ".moving" / "ust")
    equal(len(k.kymo("view", trace).stdout.splitlines()), 110, "lines of kymo view")
    equal(k.kymo_json("stat", trace)["events"], 110, "events in kymo stat")


def test_complete(k):
    """
    A stream that continues in a later chunk is complete if the chunk before it is read, too.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=("--subbuf-size=4K", "--num-subbuf=256"))
    # Some chunks end anywhere in a block, others with its last record.
    for process, n in enumerate((100, 700, 169, 338, 50)):
        k.finish(k.spawn("emit", "-n", n, "-p", process, wrap=kymotest.ONE_CPU))
        rotate(k)
    k.kymo("stop")
    first, *later = archived(trace)
    equal(complete_from(k, trace), None, "all chunks")
    equal(complete_from(k, first), None, "the first chunk")
    before = first
    for chunk in later:
        claim = complete_from(k, chunk)
        check(times(k, before)[1] <= claim <= times(k, chunk)[0], "a later chunk alone is complete from its beginning")
        equal(complete_from(k, chunk, first), None if before == first else claim, "a later chunk and the first")
        before = chunk
    equal(complete_from(k, *later), complete_from(k, later[0]), "all chunks but the first")
    k.kymo("start")
    k.finish(k.spawn("emit", "-n", 10, "-p", 10, wrap=kymotest.ONE_CPU))
    k.kymo("clear")
    k.finish(k.spawn("emit", "-n", 10, "-p", 11, wrap=kymotest.ONE_CPU))
    k.kymo("stop")
    check(times(k, before)[1] < complete_from(k, trace) <= times(k, trace / "ust")[0], "what was cleared between two chunks is missing")


def test_complete_snapshot(k):
    """A snapshot of rings that were overwritten says so; another one does not."""
    k.start_daemon()
    k.kymo("create", "s", "--snapshot", "-o", k.traces / "s")
    k.kymo("enable-channel", "channel0", "--subbuf-size=4K", "--num-subbuf=4")
    k.kymo("enable-event", "emit:*")
    k.kymo("start")
    k.finish(k.spawn("emit", "-n", 10, wrap=kymotest.ONE_CPU))
    whole = k.kymo_json("snapshot", "record")["snapshot"]["output"]
    k.finish(k.spawn("emit", "-n", 5000, "-p", 1, wrap=kymotest.ONE_CPU))
    cut = k.kymo_json("snapshot", "record")["snapshot"]["output"]
    equal(complete_from(k, whole), None, "a snapshot of all records")
    check(complete_from(k, cut) <= times(k, cut)[0], "a snapshot of the last records")


def test_spans_across_chunks(k):
    """A span that begins in one chunk and ends in another has its duration."""
    k.start_daemon()
    trace = k.record("shop:*")
    app = k.spawn("spans", "across")
    k.expect(app, "ready")
    rotate(k)
    k.let_go(app)
    k.finish(app)
    k.kymo("stop")
    equal(len(chunks(trace)), 2, "chunks")
    found = k.kymo_json("stat", trace)["spans"]
    equal([(s["name"], s["count"]) for s in found], [("shop:work", 1)], "spans")


def kill_consumers(k, stop):
    """
    At intervals of 1 to 500 ms, and longer and longer ones: on a busy machine, a consumer needs
    these to make progress.
    """
    n = 0
    while not stop.wait(10 ** random.uniform(-3, -0.3 + n / 50)):
        for pid in consumers(k):
            with contextlib.suppress(ProcessLookupError):  # it was still dying when it was found
                os.kill(pid, signal.SIGKILL)
            n += 1


def begin_rotation(k):
    """
    Rotates; on a busy machine, a consumer that is killed all the time ends the rotation later.
    """
    done = k.kymo("rotate", status=None)
    check(not done.returncode or "it is not rotated yet" in done.stderr or "being rotated" in done.stderr, f"rotate says: {done.stderr}")


def test_consumer_killed(k):
    """The consumer is killed at any moment and started again: each event is in one chunk."""
    random.seed(7)
    k.start_daemon()
    trace = k.record("emit:*", channel=("--subbuf-size=64K", "--num-subbuf=256", "--tracefile-size=128K"))
    stop = threading.Event()
    killer = threading.Thread(target=kill_consumers, args=(k, stop))
    killer.start()
    try:
        total = while_emitting(k, lambda: begin_rotation(k), 3, lambda: k.daemon_log().count("killed by signal") > 5 and len(archived(trace)) > 2)
    finally:
        stop.set()
        killer.join()
    wait_for(lambda: not status(k)["rotation"]["ongoing"], "the last rotation to end")
    counts = k.kymo_json("stop")["sessions"][0]
    check_chunks(k, trace, counts, total, first=None)


def test_client_gone(k):
    """
    The client has disconnected, and the consumer hangs: the chunk is completed all the same, and
    other commands work.
    """
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 10)
    consumer, = consumers(k)
    kymotest.stop(consumer)
    client = subprocess.Popen([CLI, "rotate"], env=k.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: status(k)["rotation"]["ongoing"], "the rotation to begin")
    client.kill()
    client.wait()
    check("being rotated" in k.kymo("rotate", status=1).stderr, "rotated during a rotation")
    check("being rotated" in k.kymo("clear", status=1).stderr, "cleared during a rotation")
    os.kill(consumer, signal.SIGCONT)
    wait_for(lambda: status(k)["rotation"]["chunks"] == 1, "the rotation")
    equal(len(read_trace(archived(trace)[0])[0]), 10, "events")


def test_destroyed_meanwhile(k):
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 10)
    consumer, = consumers(k)
    kymotest.stop(consumer)
    client = subprocess.Popen([CLI, "rotate"], env=k.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(lambda: status(k)["rotation"]["ongoing"], "the rotation to begin")
    k.kymo("destroy", "--no-wait")
    os.kill(consumer, signal.SIGCONT)
    said = client.communicate(timeout=kymotest.TIMEOUT)[0]
    # The third: the consumer was stopped for a second, on a busy machine.
    check(str(trace) in said or "destroyed" in said or "it is not rotated yet" in said, f"says: {said}")
    wait_for(lambda: not consumers(k), "the consumer to end")
    equal(len(read_trace(trace)[0]), 10, "events")


def test_timer(k):
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    said = k.kymo("enable-rotation", "--timer=20ms").stdout
    check("every 20 ms" in said, f"says: {said}")
    total = while_emitting(k, lambda: k.kymo("list"), 1, enough=lambda: status(k)["rotation"]["chunks"] >= 2)
    check("every 20 ms" in k.kymo("status").stdout, "status does not show the schedule")
    equal(k.kymo_json("disable-rotation", "--timer")["session"]["rotation"]["timer"], 0, "timer")
    wait_for(lambda: not status(k)["rotation"]["ongoing"], "the last rotation to end")
    chunks_before = status(k)["rotation"]["chunks"]
    total += sum(emitted(k.app("emit", "-n", 1000, "-p", 9)))
    counts = k.kymo_json("stop")["sessions"][0]
    found = check_chunks(k, trace, counts, total)
    equal((counts["rotation"]["chunks"], len(found[-1]) >= 1000), (chunks_before, True), "chunks without a schedule, and whether one has all later events")


def test_size(k):
    k.start_daemon()
    trace = k.record("emit:*", channel=("--subbuf-size=64K", "--num-subbuf=64", "--switch-timer=10ms"))
    k.kymo("enable-rotation", "--size=100K")
    total = 0
    for process in range(3):
        total += sum(emitted(k.app("emit", "-n", 6000, "-p", process)))
        wait_for(lambda: status(k)["rotation"]["chunks"] > process, "a rotation")
    counts = k.kymo_json("stop")["sessions"][0]
    check_chunks(k, trace, counts, total)
    for chunk in archived(trace):
        size = sum(p.stat().st_size for p in kymotest.streams(chunk))
        check(size >= 100 << 10, f"chunk of {size} bytes")
    check("when 100.0 KiB" in k.kymo("status").stdout, "status does not show the schedule")


def test_two_sessions(k):
    """One session is rotated and cleared, the other is not affected."""
    k.start_daemon()
    one = k.record("emit:*", session="one", channel=ROOMY)
    two = k.record("emit:*", session="two", channel=ROOMY)
    k.kymo("enable-rotation", "--timer=5ms", "-s", "one")
    total = while_emitting(k, lambda: rotate(k, "two"), 1)
    k.kymo("disable-rotation", "-s", "one")
    counts = {s["name"]: s for s in k.kymo_json("stop", "--all")["sessions"]}
    check_chunks(k, one, counts["one"], total)
    check_chunks(k, two, counts["two"], total)


def test_users(k):
    """A session of root's records several users: a chunk has the traces of all."""
    if os.geteuid() != 0:
        raise kymotest.Skip("programs of other users need root")
    k.top.chmod(0o755)
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    total, users = 0, (0, 64101, 64102)
    for turn in range(3):
        apps = [k.spawn("emit", "-n", 1000, "-p", turn * len(users) + i, wrap=("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"))
            for i, uid in enumerate(users)]
        total += sum(sum(emitted(k.finish(app))) for app in apps)
        chunk = pathlib.Path(rotate(k)["path"])
        equal({p.name for p in (chunk / "ust" / "uid").iterdir()}, set(map(str, users)), "users of the chunk")
        equal(len(read_trace(chunk)[0]), len(users) * 1000, "events of the chunk")
    check_chunks(k, trace, k.kymo_json("stop")["sessions"][0], total)


def test_files(k):
    """Full speed into files of limited size: all files stay, and are one trace."""
    k.start_daemon()
    trace = k.record("emit:*", channel=FILES)
    total = sum(emitted(k.finish(k.spawn("emit", "-t", 3, "-n", 5000, "-m"))))
    counts = k.kymo_json("stop")["sessions"][0]
    check_chunks(k, trace, counts, total, first=None)
    files = kymotest.streams(trace)
    check(len(files) > 3 and max(p.stat().st_size for p in files) <= 64 << 10, f"{len(files)} files")
    names = {p.name for p in (trace / "ust/uid" / str(os.getuid()) / "64-bit").glob("channel0_*_0")}
    check(names and names <= {f"channel0_{cpu}_0" for cpu in os.sched_getaffinity(0)}, f"names of the files: {names}")


def test_newest_files(k):
    """
    A ring of files: events of removed files are counted, also after a restart of the consumer.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=(*FILES, "--tracefile-count=2"))
    total = 0
    for process in range(4):
        total += sum(emitted(k.finish(k.spawn("emit", "-t", 2, "-n", 20000, "-m", "-p", process))))
        for pid in consumers(k):
            os.kill(pid, signal.SIGKILL)
        readable(trace)
    done = k.kymo("stop").stdout
    counts = status(k)
    events = read(trace)
    equal(len(events) + counts["removed"], counts["recorded"], "events that stay and those that were removed")
    equal(counts["recorded"] + counts["discarded"], total, "recorded and discarded, against emitted")
    check(counts["removed"] > 0 and f"{counts['removed']} of the recorded events" in done, f"stop says: {done}")
    check(f"{counts['removed']} of the recorded events" in k.kymo("status").stdout, "status does not report removed events")
    streams = {}
    for path in kymotest.streams(trace):
        streams.setdefault(path.name.rpartition("_")[0], []).append(path)
    check(all(len(files) <= 2 for files in streams.values()), f"files: {streams}")
    check(any(next(kymotest.packets(files[0], first=None)).seq for files in streams.values()), "packets have their numbers")
    check(complete_from(k, trace) is not None, "the events of removed files are not missing")
    check_values(events)


def read(trace):
    """
    The same as read_trace(), but a stream may begin with losses that no reader can count any more.
    """
    done = subprocess.run(["babeltrace2", "--clock-cycles", str(trace)], capture_output=True, text=True, timeout=kymotest.TIMEOUT)
    warnings = kymotest.warnings_of(done.stderr)
    check(done.returncode == 0 and not warnings, f"babeltrace2 ended with {done.returncode} and said:\n{done.stderr[:2000]}")
    return kymotest.events_of(done.stdout)


def readable(trace):
    """
    Waits until babeltrace2 reads the trace. It cannot while files are removed, metadata is still
    empty, or a packet is there in part.
    """
    said = []

    def reads():
        done = subprocess.run(["babeltrace2", str(trace)], capture_output=True, text=True, timeout=kymotest.TIMEOUT)
        said.append(done.stderr)
        return not done.returncode

    wait_for(reads, lambda: f"babeltrace2 to read the trace; it says:\n{said[-1][:2000]}")


def test_file_options(k):
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")

    def refused(*args, says, status=(1, 2)):
        error = k.kymo(*args, status=status).stderr
        check(says in error, f"kymo {' '.join(map(str, args))} says: {error}")

    refused("enable-channel", "a", "--tracefile-size=8K", says="sub-buffer")
    refused("enable-channel", "a", "--tracefile-size=big", says="tracefile-size")
    refused("enable-channel", "a", "--tracefile-count=3", says="tracefile-size too")
    channel = k.kymo_json("enable-channel", "a", "--tracefile-size=1M", "--tracefile-count=3")["channels"][0]
    equal((channel["tracefile_size"], channel["tracefile_count"]), (1 << 20, 3), "limits")
    refused("enable-channel", "a_1", says="same name")
    refused("enable-channel", "a-thread_1", says="same name")
    k.kymo("enable-channel", "a_b")
    check("at most 1.0 MiB, the newest 3" in k.kymo("status").stdout, "status does not show the limits")
    k.kymo("set", "-c", "a", "tracefile-count=0")
    refused("set", "-c", "a", "tracefile-size=4K", says="sub-buffer")


def test_refused(k):
    k.start_daemon()

    def refused(*args, says, status=(1, 2)):
        error = k.kymo(*args, status=status).stderr
        check(says in error, f"kymo {' '.join(map(str, args))} says: {error}")

    refused("rotate", says="no current session")
    k.kymo("create", "f", "--snapshot", "-o", k.traces / "f")
    refused("rotate", says="kymo snapshot record")
    refused("enable-rotation", "--size=1M", says="kymo snapshot record")
    refused("clear", says="snapshots")
    k.kymo("create", "n", "--no-output")
    refused("rotate", says="writes no trace")
    k.kymo("create", "s", "-o", k.traces / "s")
    refused("rotate", "absent", says="absent")
    refused("rotate", "s", "-s", "s", says="not both", status=2)
    refused("enable-rotation", says="--timer", status=2)
    refused("enable-rotation", "--timer=5x", says="is not a time", status=2)
    refused("enable-rotation", "--timer=1", says="from 1ms to a year")
    refused("enable-rotation", "--size=0", says="must be at least 1 byte", status=2)
    refused("enable-rotation", "--size=10", says="the least size is 4K", status=2)
    refused("disable-rotation", "--size", says="no rotation by size")
    k.kymo("enable-channel", "o", "--overwrite")
    refused("clear", says="overwrite mode")


def test_clear(k):
    """Programs record meanwhile: every event that was not cleared is in the trace."""
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    told = []
    total = while_emitting(k, lambda: told.append(k.kymo_json("clear")["cleared"][0]["events"]), 2, lambda: sum(told) > 0)
    counts = k.kymo_json("stop")["sessions"][0]
    equal(counts["cleared"], sum(told), "the sum of the reported numbers")
    check_chunks(k, trace, counts, total)


def test_clear_keeps_chunks(k):
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 10)
    rotate(k)
    k.app("emit", "-n", 20, "-p", 1)
    done = k.kymo("clear", "s").stdout
    check("20 recorded events" in done, f"says: {done}")
    k.app("emit", "-n", 5, "-p", 2)
    done = k.kymo("stop").stdout
    check("20 of the recorded events" in done, f"stop says: {done}")
    check("0 recorded events" not in k.kymo("clear", "--all").stdout, "nothing cleared of a stopped session")
    equal(len(read_trace(trace)[0]), 10, "events")
    equal(status(k)["cleared"], 25, "cleared")


def test_no_output(k):
    """The consumer drains and counts, and writes nothing; clearing empties the buffers."""
    k.start_daemon()
    k.kymo("create", "n", "--no-output")
    k.kymo("enable-channel", "channel0", *ROOMY)
    k.kymo("enable-event", "emit:*")
    k.kymo("start")
    total = sum(emitted(k.app("emit", "-t", 2, "-n", 20000 // SCALE)))
    k.kymo("clear")
    total += sum(emitted(k.app("emit", "-n", 100, "-p", 1)))
    counts = k.kymo_json("stop")["sessions"][0]
    equal((counts["recorded"] + counts["discarded"], counts["bytes"]), (total, 0), "counts")
    check(counts["cleared"] > 0, "nothing was cleared")
    check(not k.traces.exists() or not list(k.traces.iterdir()), "something was written")


def test_files_with_data_only(k):
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 0)
    equal(kymotest.streams(trace), [], "stream files without an event")
    k.finish(k.spawn("emit", "-n", 1, wrap=kymotest.ONE_CPU))
    k.kymo("stop")
    name = f"channel0_{min(os.sched_getaffinity(0))}"
    equal([p.name for p in kymotest.streams(trace)], [name], "stream files")
    equal([p.name for p in trace.rglob("*.kyx")], [f"{name}.kyx"], "indexes")


def test_disk_full(k):
    """A chunk that cannot be completed continues; when there is space, it is rotated as a whole."""
    disk = k.start_daemon_with_disk("256k")
    outside = pathlib.Path(f"/proc/{k.daemon.pid}/root") / disk.relative_to("/")
    k.kymo("create", "s", "-o", disk / "s")
    k.kymo("enable-channel", "channel0", *ROOMY)
    k.kymo("enable-event", "emit:*")
    k.kymo("start")
    total = sum(emitted(k.app("emit", "-n", 2000)))
    equal(rotate(k)["state"], "completed", "rotation while there is room")
    total += sum(emitted(k.app("emit", "-n", 20000, "-p", 1)))
    error = k.kymo("rotate", status=1).stderr
    check("No space left" in error, f"says: {error}")
    equal(len(archived(outside / "s")), 1, "chunks")
    shutil.copytree(outside / "s" / "archives", k.top / "t" / "archives")
    shutil.rmtree(outside / "s" / "archives")
    k.kymo("clear")
    total += sum(emitted(k.app("emit", "-n", 1000, "-p", 2)))
    equal(rotate(k)["state"], "completed", "rotation when there is room again")
    counts = k.kymo_json("stop")["sessions"][0]
    equal(counts["error"], "", "error")
    shutil.copytree(outside / "s" / "archives", k.top / "t" / "archives", dirs_exist_ok=True)
    check_chunks(k, k.top / "t", counts, total)


def test_owner_writes_the_chunk(k):
    """The session's owner may write what the consumer and the daemon share: the daemon goes on."""
    k.start_daemon()
    k.record("emit:*")
    k.app("emit", "-n", 100)
    rotate(k)
    (consumer,) = consumers(k)
    memory = next(fd for fd, link, _ in kymotest.descriptors(consumer) if link.startswith("/memfd:kymo-session"))
    with open(f"/proc/{consumer}/fd/{memory}", "r+b") as f:
        f.write(struct.pack("<Q", 2**64 - 1))
    k.request(command="rotate", session="s")
    equal(k.daemon.poll(), None, "the session daemon")
    k.kymo("destroy", "s", status=None)
    trace = k.record("emit:*", session="after")
    k.app("emit", "-n", 100)
    k.kymo("rotate", "after")
    k.kymo("destroy", "after")
    equal(len(read_trace(trace)[0]), 100, "events of the session after that")


if __name__ == "__main__":
    kymotest.main()
