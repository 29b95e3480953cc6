#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Buffers for threads: each event names its owner, no event is lost when threads start and exit, and
exited threads hold no buffers.
"""

import os
import re
import signal

import kymotest
from kymotest import APPS, SANITIZED, check, check_counts, equal, streams, wait_for

THREADS = ("--buffers=thread",)
SMALL = (*THREADS, "--subbuf-size=4K", "--num-subbuf=2")
NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
SCALE = 10 if SANITIZED else 1
RING_OVERHEAD = 8 + 128 + 2 * 64  # bytes of slot word, control block, and table of two blocks
OWNER = re.compile(r'\{ vpid = (\d+), vtid = (\d+), procname = "([^"]*)" \}')


def said(text):
    """Returns what pool.c printed: {"pid": .., "events": .., "signals": ..}."""
    return {name: int(n) for name, n in (line.split() for line in text.splitlines() if " " in line)}


def owners(trace, *options):
    """Returns (vpid, vtid, procname, fields) of each event, from babeltrace2."""
    text, _ = kymotest.babeltrace(trace, *options)
    found = []
    for line in text.splitlines():
        owner = OWNER.search(line)
        check(owner, f"no owner in {line!r}")
        found.append((int(owner[1]), int(owner[2]), owner[3], dict(kymotest.INTEGERS.findall(line[owner.end():]))))
    return found


def check_owners(trace, pids, process=0):
    """Checks that the owners in the packets' headers agree with the events' own fields."""
    for vpid, vtid, name, fields in owners(trace):
        check(vpid in pids, f"process {vpid} is none of {pids}")
        equal(vtid, int(fields["tid"]), f"thread of {fields}")
        if "thread" in fields:
            equal(name, f"w{fields['process']}-{fields['thread']}"[:15], "name of a thread")


def ring_set(k, session="s"):
    (found,) = k.kymo_json("status", session)["session"]["channels"][0]["ring_sets"]
    return found


def test_names(k):
    """babeltrace2 and kymo view print for each event its process, its thread and their names."""
    k.start_daemon()
    trace = k.record("pool:*", channel=THREADS)
    done = [said(k.app("pool", "-p", p, "-t", 5, "-n", 100)) for p in range(2)]
    k.kymo("stop", "s")
    check_counts(k, trace, sum(d["events"] for d in done))
    check_owners(trace, {d["pid"] for d in done})
    line = k.kymo("view", trace).stdout.splitlines()[0]
    check(re.search(OWNER, line), f"kymo view prints no owner: {line}")
    equal(k.kymo_json("status", "s")["session"]["channels"][0]["buffers"], "thread", "what status says")
    check("for each thread" in k.kymo("status", "s").stdout, "status does not name the owners of the buffers")


def test_record(k):
    trace = k.traces / "t"
    k.kymo("record", "-o", trace, "--buffers=thread", "--pool-size=3", "--", APPS / "pool", "-t", 4, "-n", 10)
    equal(len(owners(trace)), 40, "events")


def test_contexts(k):
    """If the channel has the same contexts, the events have them, too."""
    k.start_daemon()
    trace = k.traces / "s"
    k.kymo("create", "s", "-o", trace)
    k.kymo("enable-channel", "channel0", *THREADS)
    k.kymo("add-context", "-u", "-t", "vtid", "-t", "procname")
    k.kymo("enable-event", "pool:*")
    k.kymo("start")
    k.app("pool", "-t", 3, "-n", 5)
    k.kymo("destroy")
    text, _ = kymotest.babeltrace(trace)
    for line in text.splitlines():
        owner = OWNER.search(line)
        check(f"{{ vtid = {owner[2]}, procname = \"{owner[3]}\" }}" in line[owner.end():], line)


def test_short_lived(k):
    """Thousands of threads, one after the other: no event is lost."""
    k.start_daemon()
    trace = k.record("pool:*", channel=SMALL)
    n = 4000 // SCALE
    done = [said(k.finish(app)) for app in [k.spawn("pool", "-p", p, "-t", n, "-c", 4, "-n", 3, "-s", 500) for p in range(2)]]
    k.stop()
    emitted = sum(d["events"] + d["signals"] for d in done)
    events = check_counts(k, trace, emitted)
    equal(len(events), emitted, "events, none being lost")
    check_owners(trace, {d["pid"] for d in done})


def test_files(k):
    """
    The number of files is that of the threads whose buffers the consumer had not yet written at the
    same time, not that of all threads.
    """
    k.start_daemon()
    trace = k.record("pool:*", channel=SMALL)
    n, events = 40, 0
    for _ in range(20):
        events += said(k.app("pool", "-t", n, "-c", 4, "-n", 3))["events"]
        wait_for(lambda: kymotest.check_streams(trace, growing=True) == (events, 0), "all events to be written")
    used = ring_set(k)["claimed"]
    check(used <= n + 10, f"{used} buffers, {n} threads at a time and a pool of 10")
    equal(len(streams(trace)), used, "files")


def test_ended_thread_is_written_at_once(k):
    """
    The consumer writes the buffer of an exited thread without a flush, while the program continues.
    """
    k.start_daemon()
    trace = k.record("pool:*", channel=(*THREADS, "--switch-timer=0"))
    app = k.spawn("pool", "-t", 6, "-c", 1, "-n", 7, "-w")
    k.expect(app, "ready")
    wait_for(lambda: kymotest.check_streams(trace, growing=True)[0] == 42, lambda: f"all events to be written: {kymotest.check_streams(trace)}")
    k.let_go(app)
    k.finish(app)


def test_many_at_once(k):
    """
    More threads than the pool has rings, all alive: each gets a buffer, the pool grows, and
    emergency buffers are counted.
    """
    k.start_daemon()
    n = 2000 // SCALE
    trace = k.record("pool:*", channel=(*SMALL, "--pool-size=20"))
    app = k.spawn("pool", "-t", n, "-a", "-n", 20, "-w")
    k.expect(app, "ready")
    before = ring_set(k)
    check(n <= before["claimed"] <= n + 2, f"claimed: {before}")
    check(before["unprepared"] <= before["claimed"] - 20, f"not even the pool was prepared: {before}")
    equal(before["pool_size"], 20, "pool size")
    k.let_go(app)
    done = said(k.finish(app))
    again = said(k.app("pool", "-t", 10, "-a", "-n", 20, "-p", 1))
    after = ring_set(k)
    equal((after["claimed"], after["unprepared"]), (before["claimed"], before["unprepared"]), "after others have come")
    k.stop()
    check_counts(k, trace, done["events"] + again["events"])
    check_owners(trace, {done["pid"], again["pid"]})


def test_prepared(k):
    """As many threads as the option requests find their buffers allocated."""
    k.start_daemon()
    k.record("pool:*", channel=(*SMALL, "--pool-size=64"))
    k.app("pool", "-t", 60, "-a", "-n", 1)
    equal(ring_set(k)["unprepared"], 0, "threads that had to wait for memory")
    warnings = k.kymo_json("status", "s")["warnings"]
    check(not any("pool-size" in w for w in warnings), f"warnings: {warnings}")


def test_exhausted(k):
    """
    A thread that gets no buffer loses its events, which are counted, with the reason. Threads that
    start after others have exited get one.
    """
    k.start_daemon()
    n = 1024  # rings of a set, of any size
    trace = k.record("pool:*", channel=(*THREADS, "--subbuf-size=128M", "--num-subbuf=2"))
    app = k.spawn("pool", "-t", n + 6, "-a", "-n", 10, "-w")
    k.expect(app, "ready")
    k.let_go(app)
    first = said(k.finish(app))
    second = said(k.app("pool", "-t", 60, "-a", "-n", 10))
    reply = k.kymo_json("stop", "s")["sessions"][0]
    equal(len(check_counts(k, trace, first["events"] + second["events"])), 10 * n + 600, "recorded: all but 6 threads had buffers")
    equal((reply["discarded"], reply["discarded_no_slot"]), (60, 60), "discarded")
    check(any("smaller" in w and "thread" in w for w in k.kymo_json("status", "s")["warnings"]), "no warning gives the remedy")
    check("had no buffer" in k.kymo("destroy", "s").stdout, "destroy does not give the reason")


def locked(pid):
    """Returns the KiB of buffers that a process has locked."""
    kib, ours = 0, False
    for line in open(f"/proc/{pid}/smaps", encoding="utf-8"):
        ours = "kymo-" in line if re.match("[0-9a-f]+-[0-9a-f]+ ", line) else ours
        kib += int(line.split()[1]) if ours and line.startswith("Locked:") else 0
    return kib


def may_lock(size):
    """Returns a command that runs another one, which may lock so many bytes."""
    kymotest.need_program("prlimit", "util-linux")
    kymotest.need_program("setpriv", "util-linux")
    return ["prlimit", f"--memlock={size}", *(() if os.geteuid() else ("setpriv", "--inh-caps=-ipc_lock", "--bounding-set=-ipc_lock"))]


@kymotest.without_sanitizers  # they make mlockall do nothing
def test_locked_memory(k):
    """
    A program that locks its memory locks buffers for less than four times the threads that it has,
    and for 16 at least; so does a program without restartable sequences.
    """
    k.start_daemon()
    emitted, ring_kib = 0, {"threads": 512, "plain": 2048}
    k.record("pool:*", session="threads", channel=THREADS)
    k.record("pool:*", session="plain")
    for n, env in ((1, {}), (1, NO_RSEQ), (100, {}), (20, NO_RSEQ)):
        app = k.spawn("pool-lock", "-t", n, "-a", "-n", 10, "-l", "-w", env=env)
        k.expect(app, "ready")
        slots = max(4 * n, 16)
        most = slots * ring_kib["threads"] + (slots if env else os.cpu_count()) * ring_kib["plain"]
        # The memory that buffers have for bursts is given back to the machine at once.
        wait_for(lambda: 0 < locked(app.pid) < most + 4096, lambda: f"{n} threads to lock less: {locked(app.pid)} KiB are locked")
        k.let_go(app)
        emitted += said(k.finish(app))["events"]
    for name in ("threads", "plain"):
        k.kymo("stop", name)
        check_counts(k, k.traces / name, emitted)  # threads for which no buffer is mapped yet lose events


@kymotest.without_sanitizers
def test_little_to_lock(k):
    """
    A program that locks its memory may do so within the limit that is usual, and loses no event,
    beside another program whose buffers grow.
    """
    within = may_lock(8 << 20)
    k.start_daemon()
    trace = k.record("*:*")
    for wrap in ([], within):
        k.finish(k.spawn("pool-lock", "-n", 10, "-l", wrap=wrap))
    k.app("emit", "-n", 100)
    kinds = {s["burst_size"] > s["size"] for s in k.kymo_json("status", "s")["session"]["channels"][0]["ring_sets"]}
    equal(kinds, {True, False}, "whether buffers grow: those of other programs do")
    k.kymo("stop", "s")
    equal(len(check_counts(k, trace, 120)), 120, "events")
    check(list(trace.glob("ust/uid/*/*/channel0-fixed*")), "no file of buffers that do not grow")


@kymotest.without_sanitizers
def test_room_to_lock(k):
    """
    How far the buffers grow of a program that refers to mlockall: as usual if it maps more already
    than it may lock; hardly with a limit that it keeps; and up to 128 MiB together without a limit.
    """
    if os.geteuid():
        raise kymotest.Skip("only root may lock memory without a limit")
    rooms = {"channel0_0": (may_lock(64 << 10), 16 << 20, 1 << 40), "channel0-fixed_0": (may_lock(8 << 20), 0, 1 << 20),
        "channel0-locked_0": ([], 2 << 20, 128 << 20)}
    k.start_daemon()
    trace = k.record("pool:*")
    for wrap, _, _ in rooms.values():
        k.finish(k.spawn("pool-lock", "-n", 10, wrap=["taskset", "-c", "0", *wrap]))
    (channel,) = k.kymo_json("status", "s")["session"]["channels"]
    for (name, (_, least, most)), buffers in zip(rooms.items(), channel["ring_sets"], strict=True):
        size = buffers["burst_size"] * os.cpu_count()
        check(least <= size <= most, f"{name}: buffers may have {size} bytes together")
    k.kymo("stop", "s")
    check_counts(k, trace, 30)
    for name in rooms:
        check(list(trace.glob(f"ust/uid/*/*/{name}")), f"no file {name}")


def test_killed(k):
    """The buffers of killed processes are reused; the trace has all that they recorded."""
    k.start_daemon()
    trace = k.record("pool:*", channel=SMALL)
    emitted, pids = 0, set()
    for p in range(4):
        app = k.spawn("pool", "-p", p, "-t", 30, "-a", "-n", 5, "-w")
        k.expect(app, "ready")
        app.kill()
        app.wait()
        pids.add(app.pid)
        emitted += 150
        wait_for(lambda: ring_set(k)["in_use"] == 0, lambda: f"buffers to be given back: {ring_set(k)}")
    check(ring_set(k)["claimed"] < 70, f"buffers of the dead were not used again: {ring_set(k)}")
    k.kymo("stop", "s")
    equal(len(check_counts(k, trace, emitted)), emitted, "events of killed processes")
    check_owners(trace, pids)


def test_killed_without_rseq(k):
    """The same if threads have buffers because there are no restartable sequences."""
    k.start_daemon()
    trace = k.record("pool:*", channel=("--subbuf-size=4K", "--num-subbuf=2"))
    for p in range(3):
        app = k.spawn("pool", "-p", p, "-t", 30, "-a", "-n", 5, "-w", env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})
        k.expect(app, "ready")
        app.kill()
        app.wait()
        wait_for(lambda: ring_set(k)["in_use"] == 0, lambda: f"buffers to be given back: {ring_set(k)}")
    k.kymo("stop", "s")
    equal(len(check_counts(k, trace, 450)), 450, "events of killed processes")


def test_exec(k):
    """
    A program that executes another one keeps no buffer in use, whether the new program is traced or
    not.
    """
    k.start_daemon()
    trace = k.record("pool:*", channel=SMALL)
    sleeper = k.top / "sleeper"
    sleeper.write_text("#!/bin/sh\necho asleep\nread line\n")
    sleeper.chmod(0o755)
    app = k.spawn("pool", "-t", 8, "-c", 8, "-n", 5, "-s", 300, "-e", sleeper)
    k.read_until(app, "asleep")
    wait_for(lambda: ring_set(k)["in_use"] == 0, lambda: f"buffers to be given back: {ring_set(k)}")
    app.stdin.close()
    app.wait()
    k.app("pool", "-t", 5, "-n", 5, "-e", APPS / "pool")
    wait_for(lambda: ring_set(k)["in_use"] == 0, lambda: f"buffers to be given back: {ring_set(k)}")
    k.kymo("stop", "s")
    events, _ = kymotest.read_trace(trace)
    equal(sum(e.name == "pool:event" for e in events), 40 + 25 + 1, "events")


def test_fork(k):
    """Children record under their own process numbers."""
    k.start_daemon()
    trace = k.record("processes:*", channel=THREADS)
    n = int(k.app("processes", "forks", 20))
    k.kymo("stop", "s")
    equal(len(check_counts(k, trace, n)), n, "events of parent and children")
    for vpid, _, _, fields in owners(trace):
        equal(vpid, int(fields["pid"]), "process")


def test_oldest_first(k):
    """
    A snapshot has the threads that exited last, whatever buffers they had; each event names its own
    thread.
    """
    k.start_daemon()
    k.record("pool:*", channel=(*SMALL, "--overwrite", "--pool-size=8"))
    n = 100
    k.app("pool", "-t", n, "-c", 1, "-n", 2)
    trace = k.traces / "snapshot"
    k.kymo("snapshot", "record", "-o", trace)
    seen = {}
    for _, _, name, fields in owners(trace):
        equal(name, f"w0-{fields['thread']}", "name of a thread")
        seen[int(fields["thread"])] = seen.get(int(fields["thread"]), 0) + 1
    kept = sorted(seen)
    check(len(kept) >= 8 and kept == list(range(n - len(kept), n)), f"threads that are still there: {kept}")
    equal(set(seen.values()), {2}, "events of each")


def test_both_kinds(k):
    """Channels with buffers for CPUs and for threads in one session."""
    k.start_daemon()
    trace = k.record("pool:*")
    k.kymo("enable-channel", "threads", *THREADS)
    k.kymo("enable-event", "-c", "threads", "pool:*")
    done = said(k.app("pool", "-t", 4, "-n", 50))
    k.kymo("stop", "s")
    check_counts(k, trace, 2 * done["events"])
    equal({p.name.rpartition("_")[0] for p in streams(trace)}, {"channel0", "threads-thread"}, "files")


def test_options(k):
    k.start_daemon()
    k.kymo("create", "s")
    check("'cpu', 'thread', 'process' or 'auto'" in k.kymo("enable-channel", "c", "--buffers=tread", status=2).stderr, "what there is")
    check("from 1 to" in k.kymo("enable-channel", "c", "--pool-size=0", status=2).stderr, "what is allowed")
    check("--buffers=thread" in k.kymo("enable-channel", "c", "--pool-size=3").stdout, "no note on a pool that nobody uses")
    check("for each thread" in k.kymo("enable-channel", "d", *THREADS).stdout, "what was made")
    channel = k.kymo_json("status", "s")["session"]["channels"][1]
    equal((channel["buffers"], channel["pool_size"], channel["subbuf_size"]), ("thread", 10, 65536), "options")


def test_few_descriptors(k):
    """
    A consumer that may open only a few files writes any number of streams, in each chunk, and
    continues them.
    """
    k.daemon = k.spawn_daemon(wrap=["prlimit", "--nofile=200:200"])
    wait_for(k.answers, "the session daemon to answer")
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)
    trace = k.record("pool:*", channel=SMALL)
    n = 300
    app = k.spawn("pool", "-t", n, "-a", "-n", 400, "-w")
    k.expect(app, "ready")
    k.kymo("rotate")
    k.let_go(app)
    first = said(k.finish(app))
    second = k.spawn("pool", "-t", n, "-a", "-n", 400, "-w")
    k.expect(second, "ready")
    consumer, = kymotest.consumers(k)
    os.kill(consumer, signal.SIGKILL)
    wait_for(lambda: kymotest.consumers(k) not in ([], [consumer]), "another consumer")
    k.let_go(second)
    second = said(k.finish(second))
    k.stop()
    recorded, discarded = zip(*(kymotest.check_streams(chunk) for chunk in (trace / "archives", trace / "ust")))
    equal(sum(recorded) + sum(discarded), first["events"] + second["events"], "recorded and discarded")
    check_counts(k, trace / "ust", recorded[1] + discarded[1])
    check(min(len(streams(chunk)) for chunk in (trace / "archives", trace / "ust")) >= n, "not all threads had files")
    check_owners(trace / "archives", {first["pid"]})


def room_for_threads(n):
    """Skips the test if the system does not allow so many threads, and names the limit to raise."""
    for name, wanted in (("kernel/pid_max", n + 4096), ("kernel/threads-max", n + 4096), ("vm/max_map_count", n // 4 * 2 + 4096)):
        with open(f"/proc/sys/{name}") as f:
            if int(f.read()) < wanted:
                raise kymotest.Skip(f"{n} threads need more: sysctl {name.replace('/', '.')}={wanted}")


def test_scale(k):
    """
    Very many threads in several processes, alive at the same time: KYMO_TEST_THREADS of them (up to
    32,768), by default 2,000.
    """
    n = int(os.environ.get("KYMO_TEST_THREADS", 2000 // SCALE))
    room_for_threads(n)
    k.start_daemon()
    trace = k.record("pool:*", channel=SMALL)
    apps = [k.spawn("pool", "-p", p, "-t", n // 4, "-a", "-n", 100, "-w") for p in range(4)]
    for app in apps:
        k.expect(app, "ready")
    used = ring_set(k)
    check(used["claimed"] >= n // 4 * 4, f"claimed: {used}")
    for app in apps:
        k.let_go(app)
    done = [said(k.finish(app, timeout=2 * kymotest.TIMEOUT)) for app in apps]
    k.stop()
    recorded, discarded = kymotest.check_streams(trace)
    equal(recorded + discarded, sum(d["events"] for d in done), "recorded and discarded")
    print(f"# {n} threads: {used['memory'] >> 20} MiB of memory, {used['unprepared']} unprepared; {recorded} events recorded, {discarded} discarded")
    most = min(n * 20480 + (64 << 20), 32768 * (8192 + RING_OVERHEAD) + (1 << 20))
    check(used["memory"] <= most, f"memory: {used}")


kymotest.main()
