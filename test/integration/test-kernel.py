#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Kernel events: exact counts, one clock with applications, crashes of daemon and consumer, and a
tracefs that is as before. Needs root and tracefs.
"""

import collections
import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import kymotest
from kymotest import TRACING, babeltrace, check, consumers, equal, wait_for

INSTANCES = TRACING / "instances"
# a kernel event's name has no colon
LINES = re.compile(r"^\[(\d+)\] \(\S+\) (?:\S+ )?(\w+(?::\w+)?): \{ (?:cpu_id = (\d+))?[^}]* \}, (.*)$", re.MULTILINE)
Event = collections.namedtuple("Event", "time name cpu fields")
STATE = "lttng_statedump_"
N = 2000
N_ORDER = int(os.environ.get("KYMO_TEST_WRITES", N))  # on each CPU; `make soak` has more


def need_tracefs(*places):
    kymotest.need_tracefs("events/syscalls", *places)


def own_instances(k):
    """Returns the instances that the daemon has made."""
    found = (re.search(r"/instances/(kymo-[0-9a-f]{8}-\d+(?:-tasks)?)$", path) for path in kymotest.open_paths(k.daemon.pid))
    return sorted({m[1] for m in found if m})


def check_gone(names):
    check(names, "the daemon has no tracefs instance")
    wait_for(lambda: not [n for n in names if (INSTANCES / n).exists()], lambda: f"{names} to be removed")


def begin(k, *rule, channel=(), user=False):
    """Makes a session with a kernel rule; returns its trace."""
    out = k.top / "trace"
    k.kymo("create", "s", "-o", out)
    if channel:
        k.kymo("enable-channel", "-k", "kernel0", *channel)
    k.kymo("enable-event", "-k", *rule)
    if user:
        k.kymo("enable-event", "writes:*")
    return out


def cpu_seconds(pid):
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def spawn(k, *args, env=None):
    app = k.spawn("writes", "-w", *args, env=env)
    return app, int(app.stdout.readline())


def read(trace):
    """Returns the events, without those of the state dump, and the number of discarded ones."""
    text, discarded = babeltrace(trace)
    events = [Event(int(time), name, int(cpu or -1), fields) for time, name, cpu, fields in LINES.findall(text)]
    equal(len(events), text.count("\n[") + bool(text), "events of the usual form")
    dumped = [e for e in events if e.name.startswith(STATE)]
    return [e for e in events if not e.name.startswith(STATE)], len(dumped), discarded


def counts(k):
    session = k.kymo_json("status")["session"]
    return session["recorded"], session["discarded"]


def check_writes(k, out, n):
    """Checks that entries and exits of n writes are all in the trace, or counted as discarded."""
    recorded, discarded = counts(k)
    k.kymo("destroy")
    events, dumped, reported = read(out)
    names = collections.Counter(e.name for e in events)
    equal(set(names) - {"syscall_entry_write", "syscall_exit_write"}, set(), "other events")
    equal(len(events) + dumped, recorded, "events in the trace")
    equal(len(events) + discarded, 2 * n, "recorded and discarded events")
    equal(reported, discarded, "events that babeltrace2 reports as discarded")
    return names, discarded


def track_and_start(k, *pids):
    k.kymo("track", "--pid=" + ",".join(map(str, pids)))
    k.kymo("start")


def test_counts(k):
    """All writes of one process, and no other's."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write")
    instances = own_instances(k)
    equal(len(instances), 2, "instances of a channel")
    app, pid = spawn(k, N)
    track_and_start(k, pid)
    k.let_go(app)
    k.finish(app)
    k.kymo("stop")
    _, discarded = check_writes(k, out, N)
    equal(discarded, 0, "discarded events")
    check_gone(instances)


def test_losses(k):
    """The consumer does not read: what does not fit is counted, exactly."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write", channel=("--subbuf-size=4K", "--num-subbuf=4"))
    n = N * os.sysconf("SC_PAGE_SIZE") // 4096  # a sub-buffer has a page at least
    app, pid = spawn(k, n)
    track_and_start(k, pid)
    kymotest.stop(consumers(k)[0])
    k.let_go(app)
    k.finish(app)
    os.kill(consumers(k)[0], signal.SIGCONT)
    k.kymo("stop")
    _, discarded = check_writes(k, out, n)
    check(discarded > 0, "nothing was discarded")


def test_order(k):
    """A user event, the kernel's entry and exit of a write, a user event: in this order."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write", channel=("--num-subbuf=32",), user=True)
    cpus = sorted(os.sched_getaffinity(0))
    apps = [spawn(k, N_ORDER, cpu) for cpu in cpus]
    k.wait_registered(*(app for app, _ in apps))
    track_and_start(k, *(pid for _, pid in apps))
    for app, _ in apps:
        k.let_go(app)
    for app, _ in apps:
        k.finish(app)
    k.kymo("stop")
    k.kymo("destroy")
    events, _, discarded = read(out)
    equal(discarded, 0, "discarded events")
    for cpu in cpus:
        here = [e for e in events if e.cpu == cpu]
        wanted = ["writes:before", "syscall_entry_write", "syscall_exit_write", "writes:after"]
        equal([e.name for e in here] == wanted * N_ORDER, True, f"order on CPU {cpu}")
        check(all(a.time < b.time for a, b in zip(here, here[1:])), "equal times")


def test_consumer_killed(k):
    """The consumer is killed while the process writes: each event is there once."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write", channel=("--num-subbuf=64",))
    apps = [spawn(k, N) for _ in range(6)]
    track_and_start(k, *(pid for _, pid in apps))
    for app, _ in apps:
        k.let_go(app)
        old = wait_for(lambda: consumers(k), "a consumer")[0]
        os.kill(old, signal.SIGKILL)
        k.finish(app)
        wait_for(lambda: [pid for pid in consumers(k) if pid != old], "another consumer")
    k.kymo("stop")
    check_writes(k, out, N * len(apps))


def test_full_disk(k):
    """A consumer that cannot write, and has a real-time priority, sleeps between its tries."""
    need_tracefs()
    disk = k.start_daemon_with_disk("512k")
    k.kymo("create", "s", "-o", disk / "trace")
    k.kymo("enable-channel", "-k", "kernel0", "--subbuf-size=64K", "--num-subbuf=2")
    k.kymo("enable-event", "-k", "--syscall", "write")
    app, pid = spawn(k, 200000)  # 5 MB; the disk, the consumer and the kernel's buffer have room for two
    os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})
    track_and_start(k, pid)
    k.let_go(app)
    k.finish(app)
    consumer = consumers(k)[0]
    begun, used = time.monotonic(), cpu_seconds(consumer)
    time.sleep(1)
    used = cpu_seconds(consumer) - used
    check(used < (time.monotonic() - begun) / 2, f"{used} s of the processor")
    done = k.kymo("destroy", "--json", status=None)
    check("cannot write all events" in done.stdout, done)


def test_daemon_killed(k):
    """The daemon is killed; recording goes on, and its successor ends the session well."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write", channel=("--num-subbuf=64",))
    instances = own_instances(k)
    apps = [spawn(k, N) for _ in range(3)]
    track_and_start(k, *(pid for _, pid in apps))
    for i, (app, _) in enumerate(apps):
        if i == 1:
            k.daemon.kill()
            k.daemon.wait()
        k.let_go(app)
        k.finish(app)
        if i == 1:
            k.start_daemon()
    equal(own_instances(k), instances, "instances of the successor")
    k.kymo("stop")
    check_writes(k, out, N * len(apps))
    check_gone(instances)


def test_killed_before_enabled(k):
    """The daemon is killed when its journal has a rule that the kernel does not have yet."""
    need_tracefs()
    k.start_daemon()
    begin(k, "--syscall", "write")
    track_and_start(k, os.getpid())
    enabled = INSTANCES / own_instances(k)[0] / "events/sched/sched_process_exec/enable"
    (consumer,) = consumers(k)
    kymotest.stop(consumer)
    rule = ("--no-sessiond", "enable-event", "-k", "sched_process_exec")
    command = subprocess.Popen([kymotest.CLI, *rule], env=k.env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    k.started.append(command)
    wait_for(lambda: "sched_process_exec" in (k.rundir / "sessions" / "s").read_text(), "the rule")
    k.daemon.kill()
    k.daemon.wait()
    command.wait(kymotest.TIMEOUT)
    equal(enabled.read_text(), "0\n", "whether the kernel records the event")
    os.kill(consumer, signal.SIGCONT)
    k.start_daemon()
    equal(enabled.read_text(), "1\n", "whether the kernel records the event after the daemon's restart")


def test_all_killed(k):
    """Daemon and consumer are killed: the next daemon removes what they have left."""
    need_tracefs()
    k.start_daemon()
    begin(k, "--syscall", "write")
    k.kymo("start")
    instances = own_instances(k)
    consumer = consumers(k)[0]
    k.daemon.kill()
    k.daemon.wait()
    os.kill(consumer, signal.SIGKILL)
    wait_for(lambda: not kymotest.alive(consumer), "the consumer to end")
    with contextlib.suppress(OSError):  # the daemon of another test may remove it at any time
        on = (INSTANCES / next(n for n in instances if not n.endswith("-tasks")) / "tracing_on").read_text()
        equal(on.strip(), "0", "tracing_on when nobody has the instance")
    k.start_daemon()
    check_gone(instances)


def test_swept(k):
    """
    Daemon and consumer are killed, and there is no journal with their instances: the next daemon
    removes them all the same, and no other program's.
    """
    need_tracefs()
    other = INSTANCES / f"kymo-test-{os.getpid()}"
    other.mkdir()
    try:
        k.start_daemon()
        begin(k, "--syscall", "write")
        k.kymo("start")
        instances = own_instances(k)
        consumer = consumers(k)[0]
        k.daemon.kill()
        k.daemon.wait()
        os.kill(consumer, signal.SIGKILL)
        wait_for(lambda: not kymotest.alive(consumer), "the consumer to end")
        shutil.rmtree(k.rundir)
        k.start_daemon()
        check_gone(instances)
        check(other.is_dir(), "another program's instance is gone")
    finally:
        other.rmdir()


def leave_dead(number):
    """Leaves an instance as a dead daemon does; returns its name."""
    name = f"kymo-{os.getpid():08x}-{number}"
    (INSTANCES / name).mkdir()
    return name


def test_sweep(k):
    """
    Each daemon removes what dead ones have left. Daemons of other tests do so too, and may be
    faster, so this takes as many turns as it needs to see the test's own daemon do it.
    """
    need_tracefs()
    for turn in range(100):
        name = leave_dead(turn)
        k.start_daemon()
        check_gone([name])
        if "of session daemons that died" in k.daemon_log():
            return
        k.stop_daemon()
    raise kymotest.Failure("the daemon has removed none of 100 instances")


def test_two_sessions(k):
    """Two sessions and an instance of another program do not disturb each other."""
    need_tracefs()
    other = INSTANCES / f"test-kymo-{os.getpid()}"
    other.mkdir()
    try:
        (other / "events/syscalls/sys_enter_write/enable").write_text("1")
        (other / "events/syscalls/sys_enter_write/filter").write_text("count == 12345")
        k.start_daemon()
        for name in ("a", "b"):
            k.kymo("create", name, "-o", k.top / name)
            k.kymo("enable-event", "-k", "-s", name, "--syscall", "write")
        equal(k.kymo_json("list", "a")["session"]["domain"], "kernel", "domain of a session")
        k.kymo("enable-event", "-s", "b", "writes:*")
        text = k.kymo("list", "b").stdout
        check(", domain user and kernel: " in text and re.search("^  kernel0: .*, discard mode, kernel events$", text, re.M), text)
        app, pid = spawn(k, N)
        for name in ("a", "b"):
            k.kymo("track", "-s", name, f"--pid={pid}")
            k.kymo("start", name)
        k.let_go(app)
        k.finish(app)
        for name in ("a", "b"):
            k.kymo("destroy", name)
            events = [e for e in read(k.top / name)[0] if e.name.startswith("syscall_")]
            equal((len(events), read(k.top / name)[2]), (2 * N, 0), f"events of session {name}")
        equal((other / "events/syscalls/sys_enter_write/enable").read_text(), "1\n", "the other instance's event")
        equal((other / "events/syscalls/sys_enter_write/filter").read_text(), "count == 12345\n", "its filter")
    finally:
        (other / "events/enable").write_text("0")
        other.rmdir()


def test_record(k):
    """record -k: the command's processes and their children, and nobody else."""
    need_tracefs()
    out = k.top / "r"
    writes = str(kymotest.APPS / "writes")
    bystander = k.spawn("writes", N)
    k.kymo("record", "-o", out, "--syscall=write", "-e", "writes:*", "--", "sh", "-c", f"{writes} {N} & {writes} {N}; wait", status=0)
    k.finish(bystander)
    events, _, discarded = read(out)
    names = collections.Counter(e.name for e in events)
    equal(discarded, 0, "discarded events")
    # each prints its number, too
    equal([names[n] for n in ("writes:before", "writes:after", "syscall_entry_write", "syscall_exit_write")],
        [2 * N, 2 * N, 2 * N + 2, 2 * N + 2], "events")


def test_record_filter(k):
    """record's filter decides about kernel events, too."""
    need_tracefs()
    out = k.top / "r"
    k.kymo("record", "-o", out, "--syscall=write", "-f", "count == 1", "--", kymotest.APPS / "writes", N, status=0)
    events, _, discarded = read(out)
    equal((collections.Counter(e.name for e in events), discarded), ({"syscall_entry_write": N}, 0), "events")


def may_have_precedence():
    """Returns whether this process may give others a real-time priority."""
    pid = os.fork()
    if not pid:
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def test_all_calls(k):
    """All system calls: for a session, and for a command."""
    need_tracefs()
    k.kymo("record", "-o", k.top / "r", "--syscall", "--all", "--", "true", status=0)
    names = {e.name for e in read(k.top / "r")[0]}
    check({"syscall_entry_execve", "syscall_exit_openat", "syscall_entry_mmap"} <= names, names)
    k.start_daemon()
    k.kymo("create", "s", "--no-output")
    n = [k.kymo_json("enable-event", "-k", "-c", name, *rule)["matched"] for name, rule in
        (("a", ("--syscall", "--all")), ("b", ("--syscall=read,write",)), ("c", ("--syscall", "read,write")))]
    check(n[0] > 100, n)
    equal(n[1:], [4, 4], "events of two calls")


def test_save(k):
    """Channels of the kernel are saved, loaded, and saved again as the same bytes."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "sched_switch,sched_wak*", "-x", "sched_wakeup_new", "-f", "$ctx.tid > 5",
        channel=("--subbuf-size=8K", "--switch-timer=500ms"))
    k.kymo("enable-event", "-k", "-c", "calls", "--syscall", "read,write")
    k.kymo("disable-event", "-c", "calls", "read")
    k.kymo("add-context", "-k", "-c", "calls", "-t", "procname")
    k.kymo("track", f"--pid={os.getpid()}")
    saved = k.kymo("save", "s").stdout
    k.kymo("destroy")
    shutil.rmtree(out)
    file = k.top / "s.json"
    file.write_text(saved)
    k.kymo("load", file)
    equal(k.kymo("save", "s").stdout, saved, "session that was saved again")
    calls = next(c for c in k.kymo_json("status")["session"]["channels"] if c["name"] == "calls")
    equal([(r["kind"], r["pattern"], r["enabled"]) for r in calls["rules"]],
        [("syscall", "read", False), ("syscall", "write", True)], "rules")
    equal(calls["contexts"], ["tid", "procname"], "contexts")


def test_quota(k):
    """Buffers in the kernel count for their user's limit."""
    need_tracefs()
    n_cpus = int(pathlib.Path("/sys/devices/system/cpu/possible").read_text().strip().replace(",", "-").split("-")[-1]) + 1
    k.start_daemon(f"--max-memory-per-user={8 * n_cpus + 40}M")
    k.kymo("create", "s", "--no-output")
    k.kymo("enable-channel", "-k", "large", "--subbuf-size=4M", "--num-subbuf=64")
    done = k.kymo("enable-event", "-k", "-c", "large", "sched_switch", status=None)
    check("the buffers of channel 'large' need" in done.stderr and "--max-memory-per-user" in done.stderr, done.stderr)
    equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
    k.kymo("enable-event", "-k", "sched_switch")


def test_precedence(k):
    """A consumer that reads the kernel's buffers goes before others; so does its successor."""
    need_tracefs()
    if not may_have_precedence():
        raise kymotest.Skip("real-time priorities are not allowed here")
    k.start_daemon()
    k.kymo("create", "s", "-o", k.top / "trace")
    old = wait_for(lambda: consumers(k), "a consumer")[0]
    equal(os.sched_getscheduler(old), os.SCHED_OTHER, "scheduling without kernel events")
    k.kymo("enable-event", "-k", "sched_switch")
    wait_for(lambda: os.sched_getscheduler(old) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR, "precedence with kernel events")
    os.kill(old, signal.SIGKILL)
    new = wait_for(lambda: [pid for pid in consumers(k) if pid != old], "another consumer")[0]
    wait_for(lambda: os.sched_getscheduler(new) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR, "the successor's precedence")


def test_pause(k):
    """Nothing is recorded while the session is paused, or its rule or channel is disabled."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write")
    apps = [spawn(k, N) for _ in range(5)]
    track_and_start(k, *(pid for _, pid in apps))
    ways = ((), ("pause",), ("disable-event", "-k", "write"), ("disable-channel", "-k", "kernel0"), ())
    back = ((), ("resume",), ("enable-event", "-k", "--syscall", "write"), ("enable-channel", "kernel0"), ())
    for (app, _), way, again in zip(apps, ways, back):
        if way:
            k.kymo(*way)
        k.let_go(app)
        k.finish(app)
        if again:
            k.kymo(*again)
    k.kymo("stop")
    check_writes(k, out, 2 * N)


def test_filters(k):
    """The kernel decides what it can, the consumer the rest; both see the same events."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write", "-f", "count == 1 && fd > 2")
    done = k.kymo("enable-event", "-k", "-c", "other", "--syscall", "write", "-f", "count + 1 == 2 && fd > 2")
    check("in the consumer: " in done.stdout, done.stdout)
    done = k.kymo("enable-event", "-k", "-c", "none", "--syscall", "write", "-f", "count == 2")
    check("in the kernel: count == 2" in done.stdout, done.stdout)
    ends = k.kymo("enable-event", "-k", "-c", "ends", "--syscall", "write", "-f", 'fd > 2 && $ctx.procname == "*rites"')
    check('in the kernel: COMM ~ "**rites"; ' in ends.stdout, ends.stdout)
    k.kymo("enable-event", "-k", "-c", "none", "--syscall", "write", "-f", '$ctx.procname == "!none*"')
    app, pid = spawn(k, N)
    track_and_start(k, pid)
    k.let_go(app)
    k.finish(app)
    k.kymo("destroy")
    events, _, discarded = read(out)
    equal(discarded, 0, "discarded events")
    equal(collections.Counter(e.name for e in events), {"syscall_entry_write": 3 * N}, "events of three channels")


def test_filter_names(k):
    """Names of values in filters are those of --symbols, and of errors."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "openat", "-f", "flags & O_DIRECTORY && dfd == \"AT_FDCWD\"")
    for channel, rule in (("a", f"flags & {os.O_DIRECTORY} && dfd == -100"), ("b", "ret == -ENOENT"), ("c", "ret == -2")):
        done = k.kymo("enable-event", "-k", "-c", channel, "--syscall", "openat", "-f", rule)
    check("in the kernel: ret == -2" in done.stdout, done.stdout)
    done = k.kymo("enable-event", "-k", "--syscall", "openat", "-f", "flags == \"O_CREATE\"", status=2)
    check("field 'flags' has no value 'O_CREATE': it has O_RDONLY" in done.stderr, done.stderr)
    script = ("sh", "-c", "echo ready; read x; ls / > /dev/null; : < /nonexistent")
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as app:
        equal(app.stdout.readline(), b"ready\n", "a shell that opens no file while channels begin one after the other")
        track_and_start(k, app.pid)
        app.communicate(b"\n")
    k.kymo("destroy")
    found = collections.Counter(re.findall(r"_openat: .*(flags = \d+|ret = -?\d+)", babeltrace(out)[0]))
    equal({what.split()[0] for what in found}, {"flags", "ret"}, "kinds of events")
    equal([what for what, n in found.items() if n % 2], [], "values that only one of two channels has")
    check("ret = -2" in found, found)


def test_contexts(k):
    """Contexts are in each record."""
    need_tracefs("options/stacktrace")
    k.start_daemon()
    out = begin(k, "--syscall", "write")
    k.kymo("add-context", "-k", "-t", "pid,procname,callstack-kernel")
    app, pid = spawn(k, N)
    track_and_start(k, pid)
    k.let_go(app)
    k.finish(app)
    k.kymo("stop")
    check_writes(k, out, N)
    events, _, _ = read(out)
    wanted = f'tid = {pid}, pid = {pid}, procname = "writes", '
    check(all(wanted in e.fields for e in events), f"a record lacks {wanted}: {events[0]}")
    deep = [e for e in events if not re.search(r"callstack_kernel = \[ \[0\] = 0x0,", e.fields)]
    check(len(deep) > len(events) * 0.9, f"only {len(deep)} of {len(events)} events have a stack: {events[0]}")


def test_contexts_not_applied(k):
    """The daemon is killed when the journal has a context that known events do not have yet."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write")
    app, pid = spawn(k, N)
    track_and_start(k, pid)
    k.daemon.kill()
    k.daemon.wait()
    journal = k.rundir / "sessions" / "s"
    channel = re.search(r'"kernel_set":\{"channel":"([^"]+)"', journal.read_text())[1]
    with open(journal, "a") as f:
        f.write(f'{{"contexts":{{"channel":"{channel}","list":["pid"]}}}}\n')
    k.start_daemon()
    k.kymo("status", "s")
    k.let_go(app)
    k.finish(app)
    k.kymo("stop")
    check_writes(k, out, N)
    events, _, _ = read(out)
    check(all(f"tid = {pid}, pid = {pid}" in e.fields for e in events), f"a record lacks the context: {events[0]}")


@kymotest.without_sanitizers
def test_taken_over_in_part(k):
    """
    The successor cannot read one of the kernel's files: it drops the channel, and says so.
    """
    need_tracefs()
    k.start_daemon()
    begin(k, "--syscall", "write")
    k.kymo("start")
    k.daemon.kill()
    k.daemon.wait()
    k.start_daemon(env={"LD_PRELOAD": str(kymotest.APPS / "refuse-calls.so"), "REFUSE_FILE": "events/task/task_newtask/format"})
    said = k.kymo("status", "s").stdout
    check("could not take over its buffers" in said, said)
    k.kymo("destroy")


def test_statedump(k):
    """The state of the system is in front of the first event, and again on request."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write")
    app, pid = spawn(k, 1)
    track_and_start(k, pid)
    notes = k.kymo_json("regenerate", "statedump").get("notes")
    check("the state of the kernel is recorded again, too" in str(notes), notes)
    k.let_go(app)
    k.finish(app)
    k.kymo("destroy")
    text, _ = babeltrace(out)
    count = collections.Counter(name for _, name, _, _ in LINES.findall(text))
    equal((count[STATE + "start"], count[STATE + "end"]), (2, 2), "dumps")
    check(text.startswith("[") and STATE + "start" in text.splitlines()[0], "the dump is not in front of the events")
    namespace = os.stat(f"/proc/{os.getpid()}/ns/mnt").st_ino
    for wanted in (f'process_state: .*tid = {pid}, pid = {pid}, .*name = "writes"', f'process_mnt_ns: .*tid = {pid}, ns_inum = {namespace} ',
            f'process_pid_ns: .*tid = {pid}, vtid = {pid}, vpid = {pid}, vppid = {os.getpid()}, ns_level = 0, ',
            f'process_user_ns: .*tid = {pid}, vuid = 0, vgid = 0, ns_level = 0, ', f'file_descriptor: .*pid = {pid}, .*filename = "/dev/null"',
            'cpu_topology: .*cpu_id = 0', 'network_interface: .*name = "lo"'):
        check(re.search(STATE + wanted, text), f"the dump lacks {wanted}")


def test_statedump_of_successor(k):
    """The consumer does not take the dump of another daemon for the one that it has."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write")
    track_and_start(k, os.getpid())
    k.daemon.kill()
    k.daemon.wait()
    k.start_daemon()
    k.kymo("regenerate", "statedump")
    k.kymo("destroy")
    count = collections.Counter(name for _, name, _, _ in LINES.findall(babeltrace(out)[0]))
    equal((count[STATE + "start"], count[STATE + "end"]), (2, 2), "dumps")


def test_many_descriptors(k):
    """A user with very many descriptors gets only a share of the state dump, and status says so."""
    need_tracefs()
    room, n = 16384, 12000
    uid = 30000 + os.getpid() % 30000  # not that of the same test beside this one
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most < n + 100:
        raise kymotest.Skip(f"a process may have only {most} descriptors")
    k.start_daemon()
    out = begin(k, "sched_switch")
    hold = f"import os, resource; os.setuid({uid}); resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most})); [os.dup(0) for _ in range({n})]; print(flush=True); os.read(0, 1)"
    crowd = [subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    for process in crowd:
        process.stdout.readline()
    k.kymo("start")
    is_full = lambda: re.search(rf"has (\d+) descriptors of user {uid}", k.kymo("status").stdout)
    n_reported = int(wait_for(is_full, "status to report the user")[1])
    for process in crowd:
        process.communicate()
    k.kymo("destroy")
    text, discarded = babeltrace(out)
    found = collections.Counter(map(int, re.findall(STATE + r"file_descriptor: .*?pid = (\d+),", text)))
    n_found = sum(found[process.pid] for process in crowd)
    equal(n_found, n_reported, f"descriptors of that user in the dump ({discarded} events discarded)")
    # Processes of other users, as other tests have them, take a part of the room.
    check(room // 16 < n_found <= room, f"{n_found} descriptors of that user")
    check(found[k.daemon.pid] > 5, f"{found[k.daemon.pid]} descriptors of the daemon")


def test_namespaces(k):
    """A process in namespaces of its own: its numbers there, in the state dump."""
    need_tracefs()
    where = ("-p", "-f", "-U", "--map-root-user")
    kymotest.need_unshare(*where)
    k.start_daemon()
    out = begin(k, "--syscall", "write")
    app = k.spawn("writes", "-w", 1, wrap=("unshare", *where))
    equal(int(app.stdout.readline()), 1, "the process's own number")
    pid = kymotest.children(app.pid, str(kymotest.APPS / "writes"))[0]
    inums = {kind: os.stat(f"/proc/{pid}/ns/{kind}").st_ino for kind in ("pid", "user")}
    k.kymo("start")
    k.let_go(app)
    k.finish(app)
    k.kymo("destroy")
    text, _ = babeltrace(out)
    for wanted in (f"process_pid_ns: .*tid = {pid}, vtid = 1, vpid = 1, vppid = 0, ns_level = 1, ns_inum = {inums['pid']} ",
            f"process_user_ns: .*tid = {pid}, vuid = 0, vgid = 0, ns_level = 1, ns_inum = {inums['user']} "):
        check(re.search(STATE + wanted, text), f"the dump lacks {wanted}")


def test_rotation(k):
    """Each event is in one chunk."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write")
    apps = [spawn(k, N) for _ in range(3)]
    track_and_start(k, *(pid for _, pid in apps))
    for app, _ in apps:
        k.let_go(app)
        k.kymo("rotate")
        k.finish(app)
    k.kymo("destroy")
    chunks = [out, *(out / "archives").iterdir()]
    # the first has the state of the system; another may be empty, if its process has not run yet
    check(2 <= len(chunks) <= 1 + len(apps), f"chunks {chunks}")
    events, _, discarded = read(out)  # all chunks lie below it
    equal((len(events), discarded), (2 * N * len(apps), 0), "events")


def test_changed_instance(k):
    """Another program changes an instance: a rotation finds it, and what follows is right."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "write")
    app, pid = spawn(k, N)
    track_and_start(k, pid)
    clocks = [INSTANCES / name / "trace_clock" for name in own_instances(k)]
    before = [clock.read_text() for clock in clocks]
    for clock in clocks:
        clock.write_text("uptime")
    k.kymo("rotate")
    equal([clock.read_text() for clock in clocks], before, "clocks")
    notices = k.kymo("status").stdout
    check("another program has set the clock" in notices and "to 'uptime'" in notices, notices)
    for clock in clocks:
        (clock.parent / "tracing_on").write_text("0")
        if not clock.parent.name.endswith("-tasks"):
            (clock.parent / "set_event").write_text("")
    k.kymo("rotate")
    notices = k.kymo("status").stdout
    equal(notices.count("another program has switched off the tracefs instance"), 2, notices)
    check("another program has disabled 2 events of the tracefs instance" in notices, notices)
    k.let_go(app)
    k.finish(app)
    k.kymo("rotate")
    equal(k.kymo("status").stdout.count("another program has set the clock"), 1, "notices")
    k.kymo("destroy")
    times = [e.time for e in read(out)[0]]
    equal(len(times), 2 * N, "events")
    check(len(set(times)) > N, "events have no times of their own")


@kymotest.without_sanitizers
def test_no_permission(k):
    """Tracefs is there, but its files cannot be opened: the refusal says so."""
    need_tracefs()
    refuse = {"LD_PRELOAD": str(kymotest.APPS / "refuse-calls.so"), "REFUSE_FILE": "events/header_page"}
    k.start_daemon(env=refuse)
    k.kymo("create", "s", "-o", k.top / "trace")
    refused = k.kymo("enable-event", "-k", "sched_switch", status=1).stderr
    check("no permission for tracefs (Operation not permitted)" in refused, refused)
    k.kymo("destroy")


def test_marker(k):
    """A stamp that is not between two readings of the clock is reported, others are not."""
    need_tracefs()
    k.start_daemon()
    begin(k, "--syscall", "write")
    k.kymo("start")
    for _ in range(3):
        k.kymo("rotate")
    check("no longer the session's" not in k.kymo("status").stdout, "the clocks agree")
    marker = next(INSTANCES / name / "trace_marker" for name in own_instances(k) if name.endswith("-tasks"))
    marker.write_text("kymo clock ffffffffffff0000")
    wait_for(lambda: "the kernel's clock is no longer the session's" in k.kymo("status").stdout, "a notice")
    k.kymo("destroy")


def test_marked(k):
    """A snapshot writes a marker. No consumer reads it, as the channel overwrites."""
    need_tracefs()
    k.start_daemon()
    k.kymo("create", "s", "--snapshot", "-o", k.top / "trace")
    done = k.kymo("enable-event", "-k", "--syscall", "write", status=None)
    if "Linux 6.10" in done.stderr:
        raise kymotest.Skip("the kernel's buffers cannot be mapped: Linux 6.10")
    equal(done.returncode, 0, done.stderr)
    k.kymo("start")
    instance = next(INSTANCES / name for name in own_instances(k) if name.endswith("-tasks"))
    (instance / "events/enable").write_text("0")  # others' processes must not fill it
    (instance / "trace").write_text("")
    k.kymo("snapshot", "record")
    text = (instance / "trace").read_text()
    check(re.search(r"kymo clock [0-9a-f]{16}$", text, re.MULTILINE), text)
    k.kymo("destroy")


THREAD = "import os, threading; input(); t = threading.Thread(target=os.getppid); t.start(); t.join()"
THREADS = ("import os, threading; go = threading.Event(); all = [threading.Thread(target=lambda: (go.wait(), os.getppid())) for _ in range(3)];"
    " [t.start() for t in all]; print('ready', flush=True); input(); go.set(); os.getppid(); [t.join() for t in all]")
FORKS = "i=0; while [ $i -lt 100 ]; do (:); i=$((i+1)); done"


def test_track_threads(k):
    """All threads of a tracked process are recorded, also those that it had before."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "getppid")
    with subprocess.Popen([sys.executable, "-c", THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as app:
        equal(app.stdout.readline(), "ready\n", "a program with threads")
        track_and_start(k, app.pid)
        app.communicate("\n")
    k.kymo("destroy")
    equal(len(set(re.findall(r"syscall_entry_getppid: .*tid = (\d+)", babeltrace(out)[0]))), 4, "threads")


def test_threads(k):
    """A thread's process is known, though the buffer of new ones would be full."""
    need_tracefs()
    k.start_daemon()
    out = begin(k, "--syscall", "getppid")
    k.kymo("add-context", "-k", "-t", "pid")
    here = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(here)})  # the buffer is that of a CPU
    try:
        with subprocess.Popen([sys.executable, "-c", THREAD], stdin=subprocess.PIPE, text=True) as app:
            track_and_start(k, app.pid)
            for _ in range(10):
                subprocess.run(["sh", "-c", FORKS], check=True)
                k.kymo("rotate")
            app.communicate("\n")
    finally:
        os.sched_setaffinity(0, here)
    k.kymo("destroy")
    contexts = re.findall(r"syscall_entry_getppid: .*tid = (\d+), pid = (\d+)", babeltrace(out)[0])
    equal([pid for _, pid in contexts], [str(app.pid)], "processes of the thread")
    check(contexts[0][0] != contexts[0][1], "the thread is the process's first")


def test_snapshot(k):
    """A snapshot has what the buffers hold, and disturbs nobody."""
    need_tracefs()
    k.start_daemon()
    k.kymo("create", "s", "--snapshot", "-o", k.top / "snapshots")
    done = k.kymo("enable-event", "-k", "--syscall", "write", status=None)
    if "Linux 6.10" in done.stderr:
        raise kymotest.Skip("the kernel's buffers cannot be mapped: Linux 6.10")
    equal(done.returncode, 0, done.stderr)
    apps = [spawn(k, N) for _ in range(2)]
    track_and_start(k, *(pid for _, pid in apps))
    for i, (app, _) in enumerate(apps, 1):
        k.let_go(app)
        k.finish(app)
        k.kymo("snapshot", "record", "-n", f"number{i}")
        snapshot = next((k.top / "snapshots").glob(f"number{i}-*"))
        events, dumped, discarded = read(snapshot)
        equal((len(events), dumped, discarded), (2 * N * i, 0, 0), "events of a snapshot")
        # It must not claim to record what no snapshot has.
        equal(k.kymo_json("regenerate", "statedump")["notes"], ["snapshots do not have the state of the kernel"], "notes")


def test_snapshot_size(k):
    """--max-size takes the newest events; the others are counted."""
    need_tracefs()
    if os.sysconf("SC_PAGE_SIZE") != 4096:
        raise kymotest.Skip("sub-buffers of 4 KiB need pages of that size")
    k.start_daemon()
    k.kymo("create", "s", "--snapshot", "-o", k.top / "snapshots")
    k.kymo("enable-channel", "-k", "kernel0", "--subbuf-size=4K", "--num-subbuf=128")
    done = k.kymo("enable-event", "-k", "--syscall", "write", status=None)
    if "Linux 6.10" in done.stderr:
        raise kymotest.Skip("the kernel's buffers cannot be mapped: Linux 6.10")
    app, pid = spawn(k, N, min(os.sched_getaffinity(0)))
    track_and_start(k, pid)
    k.let_go(app)
    k.finish(app)

    def take(size):
        said = k.kymo_json("snapshot", "record", f"--max-size={size}")["snapshot"]
        out = pathlib.Path(said["output"])
        events = read(out)[0] if said["recorded"] else []
        equal(len(events), said["recorded"], "events of a snapshot")
        return events, said["left_out"], sum(p.stat().st_size for p in kymotest.streams(out)) if events else 0
    whole, left, _ = take("1G")
    check(len(whole) >= 2 * N and not left, f"{len(whole)} events, {left} left out")
    part, left, size = take("40K")
    check(8192 < size <= 40960, f"{size} bytes")
    equal(len(part) + left, len(whole), "recorded and left out")
    equal(part == whole[left:], True, "these are the newest events")
    none, left, _ = take(10)
    equal((none, left), ([], len(whole)), "events where no sub-buffer fits")


def test_pid_namespace(k):
    """One line says that processes have other numbers than in the kernel."""
    need_tracefs()
    where = ("-p", "-f", "--mount-proc")
    kymotest.need_unshare(*where)
    done = k.run(["unshare", *where, kymotest.CLI, "record", "-o", k.top / "trace", "--syscall=write", "--", "true"], status=1)
    equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
    check("of the initial PID namespace" in done.stderr, done.stderr)


def test_list(k):
    """list -k names events and their fields as a trace has them."""
    need_tracefs()
    k.start_daemon()
    check("sched:sched_switch\n" in k.kymo("list", "-k").stdout, "sched_switch is not listed")
    check("\nopenat\n" in k.kymo("list", "-k", "--syscall").stdout, "openat is not listed")
    fields = k.kymo("list", "-k", "--fields").stdout.split("sched:sched_switch\n")[1]
    check(fields.startswith("  prev_comm: text[16]\n  prev_tid: i32\n"), fields[:100])


def test_refused(k):
    """Each refusal is one line."""
    need_tracefs()
    k.start_daemon()
    k.kymo("create", "s", "--no-output")
    refused = (
        (("enable-event", "-k", "sched_swich"), "this kernel has no event that matches 'sched_swich': did you mean 'sched_switch'"),
        (("enable-event", "-k", "--syscall", "opnat"), "this kernel has no system call that matches 'opnat': did you mean"),
        (("enable-event", "-k", "-l", "3", "sched_switch"), "kernel events have no log levels"),
        (("enable-event", "--syscall", "open"), "--syscall needs --kernel"),
        (("enable-event", "-k", "sched_switch", "-f", "next_tid = 5"), "filter: unknown operator '='"),
        (("enable-event", "-k", "sched_switch", "-f", "next_pid == 5"), "filter of sched_switch: there is no field 'next_pid': it has prev_comm, prev_tid"),
        (("enable-event", "-k", "sched_*", "-f", "nosuch == 5"), "filter of sched_*: there is no field 'nosuch'\n"),
        (("enable-event", "-k", "sched_switch", "-f", "next_comm == 5"), "filter of sched_switch: a string (field 'next_comm') cannot be compared"),
        (("enable-event", "-k", "--syscall", "write", "-f", "cout == 1"), "filter of sys_enter_write: there is no field 'cout': it has fd, buf, count"),
        (("enable-event", "-k", "sched:sched_swich"), "this kernel has no event that matches 'sched:sched_swich': did you mean 'sched:sched_switch'"),
        (("enable-event", "-k", "--syscall", "zzzzzzzz"), "this kernel has no system call that matches 'zzzzzzzz': 'kymo list -k --syscall' shows them"),
        (("track", "-k", "--vuid=0"), "kernel events can be narrowed down to processes only: --pid, not --vuid"),
        (("record", "--syscall", "--", "true"), "option '--syscall' needs an argument"),
        (("record", "-k", "sched_switch", "-f", "nosuch == 1", "--", "true"), "filter of sched_switch: there is no field 'nosuch'"),
        (("enable-channel", "-k", "--buffers=thread", "c"), "buffers is for channels of applications"),
        (("enable-channel", "-k", "--pool-size=3", "c"), "pool-size is for channels of applications"),
        (("enable-channel", "-k", "--burst-size=1M", "c"), "burst-size is for channels of applications"),
        (("enable-channel", "-k", "--blocking-timeout=inf", "c"), "blocking-timeout is for channels of applications"),
        (("enable-channel", "-k", "--event-conflict=refuse", "c"), "event-conflict is for channels of applications"),
        (("enable-event", "-k", "--syscall=read", "write"), "either --syscall=NAME, or --syscall and names"),
        (("add-context", "-k", "-t", "vtid"), "the kernel does not record 'vtid': there are tid, pid"),
        (("enable-event", "-k", "-u", "sched_switch"), "either --kernel or --userspace"),
        (("add-trigger", "--when=event(sched_switch)", "--do=notify"), "events of the kernel do not meet it"),
    )
    for args, wanted in refused:
        done = k.kymo(*args, status=None)
        check(done.returncode, f"{args} was not refused")
        equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
        check(wanted in done.stderr, f"{args}: {done.stderr!r} lacks {wanted!r}")
    k.kymo("enable-event", "-k", "sched_switch")
    k.kymo("enable-event", "writes:*")
    user, kernel = "channel 'channel0' records applications", "channel 'kernel0' records the kernel"
    for args, wanted in (
        (("enable-event", "-c", "kernel0", "writes:*"), kernel),
        (("set", "-c", "kernel0", "blocking-timeout=1s"), "blocking-timeout is for channels of applications"),
        (("set", "-c", "kernel0", "mode=overwrite"), "which the kernel fills: make another channel"),
        (("disable-event", "-k", "-c", "channel0", "-a"), user),
        (("disable-event", "-u", "-c", "kernel0", "-a"), kernel),
        (("disable-event", "-k", "--syscall", "write"), "leave it out, and give the name of its rule"),
        (("disable-channel", "-k", "channel0"), user),
        (("disable-channel", "-u", "kernel0"), kernel),
    ):
        check(wanted in k.kymo(*args, status=None).stderr, f"{args} was not refused")
    (note,) = k.kymo_json("set", "-c", "kernel0", "num-subbuf=64")["notes"]
    check("its buffers keep the num-subbuf" in note and note.endswith("make another channel"), note)
    k.kymo("disable-channel", "channel0")
    check(user in k.kymo("enable-channel", "-k", "channel0", status=None).stderr, "a channel of applications became one of the kernel")


def test_uncounted(k):
    """Nobody counts kernel events in overwrite mode: no trigger waits for their number."""
    need_tracefs()
    k.start_daemon()
    k.kymo("create", "flight", "--snapshot", "-o", k.top / "snapshots")
    done = k.kymo("enable-event", "-k", "sched_switch", status=None)
    if "Linux 6.10" in done.stderr:
        raise kymotest.Skip("the kernel's buffers cannot be mapped: Linux 6.10")
    equal(done.returncode, 0, done.stderr)
    for condition in ("events/s > 5", "discarded > 0"):
        done = k.kymo("add-trigger", f"--when={condition}", "--do=notify", status=None)
        equal((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        check("where nobody counts events, so the condition would never be true" in done.stderr, done.stderr)
    k.kymo("enable-event", "writes:*")
    k.kymo("add-trigger", "--when=events/s > 5", "--do=notify")


kymotest.main()
