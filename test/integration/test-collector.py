#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The collector of system state: its lifetime, which follows the session daemon's, and the virtual
machines of KVM.
"""

import collections
import contextlib
import fcntl
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

import kymotest
from kymotest import CLI, RUN_FROM, Skip, alive, check, equal, fields, need_program, read_trace, wait_for

COLLECTD = RUN_FROM / "src" / "collectd" / "kymo-collectd"
CONSUMERD = RUN_FROM / "src" / "consumerd" / "kymo-consumerd"
STATE = {"kymo_block": ("device", "devices"), "kymo_cgroup": ("container", "containers"), "kymo_cpu": ("topology", "cpus"), "kymo_mount": ("mount", "mounts"),
    "kymo_net": ("interface", "address", "interfaces"), "kymo_process": ("process", "thread", "processes"), "kymo_vm": ("guest", "guests")}
PROVIDERS = set(STATE)
UUID = "5a1ef0b2-91b0-4f61-b1d6-8c1f7a3d1c9e"


def need_collector():
    if not COLLECTD.exists():
        raise Skip("kymo-collectd is not built (Debian package libudev-dev)")


def need_kvm():
    need_collector()
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise Skip("/dev/kvm is missing, or not for this user")


def collectors(pid):
    """Returns the process's children that are collectors."""
    return kymotest.children(pid, "kymo-collectd")


def collector_of(k):
    return wait_for(lambda: collectors(k.daemon.pid), "the collector")[0]


def libexec(k, script=None):
    """Creates a directory with the consumer, and with this shell script as the collector."""
    directory = k.top / "libexec"
    directory.mkdir()
    (directory / "kymo-consumerd").symlink_to(CONSUMERD)
    if script is not None:
        (directory / "kymo-collectd").write_text(f"#!/bin/sh\n{script}\n")
        (directory / "kymo-collectd").chmod(0o755)
    return {"KYMO_LIBEXECDIR": str(directory)}


def told(trace, name):
    """Returns the fields of all events of this name."""
    return [fields(e) for e in read_trace(trace)[0] if e.name == name]


def line_of(path):
    with contextlib.suppress(OSError):
        return pathlib.Path(path).read_text(errors="replace").split("\n")[0]
    return ""


def names(trace):
    return collections.Counter(e.name for e in read_trace(trace)[0])


def recorded(k, session="s"):
    return k.request(command="status", session=session)["session"]["recorded"]


# ---- its lifetime


def test_child_of_the_daemon(k):
    need_collector()
    k.start_daemon(collector=True)
    collector = collector_of(k)
    environment = pathlib.Path(f"/proc/{collector}/environ").read_bytes().split(b"\0")
    check(b"KYMO_REGISTER_TIMEOUT=-1" in environment, environment)
    k.stop_daemon()
    wait_for(lambda: not alive(collector), "the collector to end with its daemon")


def test_daemonized(k):
    """
    'kymo create' starts the daemon in the background: the collector is the daemon's child, and has
    registered when create returns.
    """
    need_collector()
    k.kymo("create", "s", "-o", k.traces / "s")
    daemon = k.request(command="hello")["pid"]
    collector, = collectors(daemon)
    applications = k.request(command="list-events")["applications"]
    equal([a["pid"] for a in applications], [collector], "programs")
    check({e["name"] for e in applications[0]["events"]} >= {"kymo_vm:created", "kymo_vm:destroyed", "kymo_vm:guest"}, applications)
    k.kymo("destroy", "s")
    os.kill(daemon, signal.SIGKILL)
    wait_for(lambda: not alive(collector), "the collector to end when its daemon is killed")


def test_none(k):
    """--no-collectd; and 'kymo record' does not wait for a collector."""
    k.start_daemon("--no-collectd", collector=True)
    equal(collectors(k.daemon.pid), [], "collectors")
    done = k.run([CLI, "record", "-o", k.top / "t", "--", "sh", "-c", "ps -e -o args | grep kymo-collect[d]; true"])
    check(str(k.top) not in done.stdout, done.stdout)
    k.kymo("create", "s", "-o", k.traces / "s")
    check("--no-collectd" in k.kymo("enable-event", "kymo_vm:*").stdout, "not said why there are no such events")
    check("--no-collectd" not in k.kymo("enable-event", "vm:*").stdout, "said of other events")


def test_create_is_held(k):
    """
    'create' waits until the collector is ready. Meanwhile the daemon serves others. If the client
    disconnects, its 'create' is executed all the same.
    """
    need_collector()
    go = k.top / "go"
    os.mkfifo(go)
    k.daemon = k.spawn_daemon(env=libexec(k, f'read line <"{go}"; exec {COLLECTD} "$@"'), collector=True)
    wait_for(k.answers, "the daemon")
    with socket.socket(socket.AF_UNIX) as gone:
        gone.connect(str(k.rundir / "control.sock"))
        gone.sendall(b'{"command": "create", "session": "gone"}\n')
    create = subprocess.Popen([CLI, "create", "s", "-o", k.traces / "s"], env=k.env, stdout=subprocess.PIPE)
    k.started.append(create)
    for _ in range(20):
        equal(k.request(command="list")["sessions"], [], "sessions while the collector starts")
    equal(create.poll(), None, "kymo create")
    go.write_text("go\n")
    equal(create.wait(kymotest.TIMEOUT), 0, "kymo create")
    check(b"note" not in create.stdout.read(), "a note, although all is well")
    equal({s["name"] for s in k.request(command="list")["sessions"]}, {"gone", "s"}, "sessions")
    wait_for(lambda: k.request(command="destroy", session="gone")["ok"], "the creation of the session whose client disconnected")
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)


def test_failure(k):
    """
    The collector cannot start. Sessions work without it, the user who creates one is informed, and
    the daemon tries again, less and less often.
    """
    k.daemon = k.spawn_daemon(env=libexec(k, f"date +%s.%N >>{k.top}/tries; exit 3"), collector=True)
    wait_for(k.answers, "the daemon")
    said = k.kymo("create", "s", "-o", k.traces / "s").stdout
    check("collector" in said and "status 3" in said, said)
    tries = lambda: [float(t) for t in (k.top / "tries").read_text().split()]
    wait_for(lambda: len(tries()) >= 4, "more tries")
    first, second, third = (b - a for a, b in zip(tries(), tries()[1:4]))
    check(first >= 0.1 and second >= 0.2 and third >= 0.4, (first, second, third))
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)


def test_missing(k):
    """The daemon reports it once, and to whoever wants its events."""
    k.daemon = k.spawn_daemon(env=libexec(k), collector=True)
    wait_for(k.answers, "the daemon")
    equal(k.kymo("create", "s", "-o", k.traces / "s").stdout.count("note"), 0, "notes")
    equal(k.daemon_log().count("kymo-collectd"), 1, "lines about it")
    said = k.kymo("enable-event", "kymo_vm:*").stdout
    check("rule 'kymo_vm:*' matches nothing: the collector of system state is not installed" in said, said)
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)


def test_restart(k):
    """
    The collector is killed: a new one starts, and records its state dump in the sessions that
    record.
    """
    need_collector()
    k.start_daemon(collector=True)
    trace = k.record("kymo_vm:*")
    wait_for(lambda: recorded(k) == 1, "the first state dump")
    first = collector_of(k)
    os.kill(first, signal.SIGKILL)
    second = wait_for(lambda: [c for c in collectors(k.daemon.pid) if c != first], "another collector")[0]
    wait_for(lambda: recorded(k) == 2, "the second state dump")
    equal(collectors(k.daemon.pid), [second], "collectors")
    k.kymo("destroy", "s")
    equal(names(trace), {"kymo_vm:guests": 2}, "events")


def test_by_hand(k):
    """If it is started by hand, it explains how it is started."""
    need_collector()
    done = k.run([COLLECTD], status=2)
    check("FIFO" in done.stderr, done.stderr)
    done = k.run([COLLECTD, k.top / "none"], status=1)
    check("kymo-sessiond" in done.stderr, done.stderr)
    check("Usage" in k.run([COLLECTD, "--help"]).stdout, "no help")


def switches(pids):
    """Counts how often each thread of the processes has slept. Leaves out those that exit now."""
    found = {}
    for p in pids:
        for t in os.listdir(f"/proc/{p}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found[p, t] = status_of(p, "voluntary_ctxt_switches", t)[0]
    return found


# Numbers of system calls that wait, the index of the argument that limits the time, and its value
# for ever.
WAITS = {
    "x86_64": {0: None, 7: (2, 0xFFFFFFFF), 202: (3, 0), 232: (3, 0xFFFFFFFF), 271: (2, 0), 281: (3, 0xFFFFFFFF), 441: (3, 0)},
    "aarch64": {22: (3, 0xFFFFFFFF), 63: None, 73: (2, 0), 98: (3, 0), 441: (3, 0)},
}


# A program's listener looks so often whether main lives (MAIN_MAX_MS in src/tracer/listener.c).
LISTENER_MS = 5000


def waits_for_ever(pid, tid):
    """Returns true if the thread is in a system call without a limit of time, or the listener's."""
    with contextlib.suppress(OSError):
        call, *arguments = pathlib.Path(f"/proc/{pid}/task/{tid}/syscall").read_text().split()
        if call.isdigit() and int(call) in (calls := WAITS[os.uname().machine]):
            limit = calls[int(call)]
            return limit is None or int(arguments[limit[0]], 16) & 0xFFFFFFFF in (limit[1], LISTENER_MS)
    return False


def has_timer(pid):
    """Returns true if the process has a timer that runs, or closes one now."""
    timers = [n for n, link, _ in kymotest.descriptors(pid) if link == "anon_inode:[timerfd]"]
    with contextlib.suppress(FileNotFoundError):
        return any("it_value: (0, 0)" not in pathlib.Path(f"/proc/{pid}/fdinfo/{n}").read_text() for n in timers)
    return True


def test_idle(k):
    """
    If nothing happens, nothing runs: not in the collector, the daemon, or a program that could be
    traced; also after a session.
    """
    need_collector()
    k.start_daemon(collector=True)
    # does not look for a daemon of root's that never ran
    app = k.spawn("emit", "-w", "-n", 1, env={"KYMO_RUNDIR_ONLY": "1"})
    k.expect(app, "ready")
    k.record("*", "kymo_*")
    k.kymo("destroy", "s")
    pids = [k.daemon.pid, collector_of(k), app.pid]
    # the daemon's, three of the collector, two of the program
    check(len(switches(pids)) >= 6, f"threads: {switches(pids)}")

    def quiet():
        before = switches(pids)
        return all(waits_for_ever(*thread) for thread in before) and not any(map(has_timer, pids)) and switches(pids) == before

    wait_for(quiet, "all threads to sleep, and none to wake up by itself")
    k.let_go(app)
    k.finish(app)


def test_left_out(k):
    """
    A part that is switched off records neither its state nor its events; a wrong name is refused.
    """
    need_collector()
    k.start_daemon("--no-collectd=vm,mount", collector=True)
    trace = k.record("kymo_*")
    providers = {e["name"].split(":")[0] for a in k.request(command="list-events")["applications"] for e in a["events"]}
    k.kymo("destroy", "s")
    told = {name.split(":")[0] for name in names(trace)} - {"kymo_statedump", "kymo_lib"}
    equal(told, PROVIDERS - {"kymo_vm", "kymo_mount"}, "providers with a state dump")
    check(providers >= PROVIDERS, providers)
    said = k.run([COLLECTD, "--without=vm,mounts", k.top / "none"], status=2).stderr
    check("'mounts'" in said and len(said.splitlines()) == 1, said)


def test_left_out_wrongly(k):
    """A user who creates a session gets the message about the daemon's wrong option."""
    need_collector()
    k.start_daemon("--no-collectd=vm,mounts", collector=True)
    said = k.kymo("create", "s", "-o", k.traces / "s").stdout
    check("--no-collectd=vm,mounts" in said, said)


def test_not_wanted(k):
    """A session records only what its rules match: each event alone."""
    need_collector()
    k.start_daemon(collector=True)
    for provider, events in sorted(STATE.items()):
        trace = k.record(f"{provider}:*", session=provider)
        k.kymo("destroy", provider)
        whole = set(names(trace))
        check(f"{provider}:{events[-1]}" in whole and whole <= {f"{provider}:{e}" for e in events}, whole)
        for event in events:
            trace = k.record(f"{provider}:{event}", session=event)
            k.kymo("destroy", event)
            found = set(names(trace))
            check(found <= {f"{provider}:{event}"}, found)
            # Virtual machines of others may come and go.
            if f"{provider}:{event}" in whole and provider != "kymo_vm":
                check(found, f"{provider}:{event} is missing")


def test_no_work(k):
    """The collector reads nothing for events that no session records."""
    need_collector()
    k.start_daemon(collector=True)
    collector = collector_of(k)

    def reads_for(provider):
        before = reads()
        k.record(f"kymo_{provider}:*", session=provider)
        k.kymo("destroy", provider)
        return reads() - before

    def reads():
        tasks = [pathlib.Path(f"/proc/{collector}/task/{t}") for t in os.listdir(f"/proc/{collector}/task")]
        return sum(int((t / "io").read_text().split("syscr: ")[1].split()[0]) for t in tasks if line_of(t / "comm") == "kymo-statedump")

    few, many = reads_for("net"), reads_for("process")
    check(few < len(process_numbers()) < many, f"reads: {few} for interfaces, {many} for {len(process_numbers())} processes")


# ---- virtual machines


def machines(k, *args):
    app = k.spawn("machines", *args)
    k.expect(app, "ready")
    return app


def end(k, app):
    k.let_go(app)
    k.finish(app)


def test_guests(k):
    """
    The running machines are recorded in a session when it starts: their names, machine types and
    virtual CPUs.
    """
    need_kvm()
    # it runs before the collector
    app = machines(k, 2, 3, 0, "-uuid", UUID, "-name", "guest=web,debug-threads=on")
    k.start_daemon(collector=True)
    first = k.record("kymo_vm:*", session="first")
    recorded = lambda: k.request(command="status", session="first")["session"]["recorded"]
    before = recorded()
    other = machines(k, 1, 1, 0, "--id", "tiny")
    wait_for(lambda: recorded() > before, "the collector to hear of the new machine")
    second = k.record("kymo_vm:guest*", session="second")
    k.kymo("regenerate", "statedump", "-s", "second")
    k.kymo("destroy", "-a")
    third = k.record("kymo_vm:guest", session="third")
    k.kymo("destroy", "third")
    check({app.pid, other.pid} <= {f["pid"] for f in told(third, "kymo_vm:guest")}, "a guest is missing in the session that records only guests")
    mine, = [f for f in told(first, "kymo_vm:guest") if f["pid"] == app.pid]
    equal((mine["process"], mine["uuid"], mine["name"], mine["n_vms"], mine["n_vcpus"]), ("machines", UUID, "web", 2, 6), "guest")
    threads = {int(t) for t in os.listdir(f"/proc/{app.pid}/task")} - {app.pid}
    equal(set(mine["vcpu_threads"]), threads, "threads of virtual CPUs")
    equal(names(first)["kymo_vm:created"], 1, "machines made while the first session recorded")
    twice = collections.Counter((f["pid"], f["name"]) for f in told(second, "kymo_vm:guest"))
    equal((twice[app.pid, "web"], twice[other.pid, "tiny"]), (2, 2), f"guests in the second session: {twice}")
    end(k, app)
    end(k, other)


def test_qemu(k):
    """A real guest, which runs its firmware: created, recorded, ended."""
    need_kvm()
    need_program("qemu-system-x86_64", "qemu-system-x86")
    k.start_daemon(collector=True)
    trace = k.traces / "s"
    k.kymo("create", "s", "-o", trace)
    k.kymo("enable-event", "kymo_vm:created,kymo_vm:guest,kymo_vm:destroyed", "-f", f'uuid == "{UUID}"')
    k.kymo("start")
    qemu = subprocess.Popen(["qemu-system-x86_64", "-accel", "kvm", "-nodefaults", "-display", "none", "-m", "16", "-smp", "2", "-uuid", UUID,
        "-name", "guest=real,debug-threads=on", "-qmp", "stdio"], env=k.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    k.started.append(qemu)
    check("QMP" in qemu.stdout.readline(), "the guest did not start")
    cpus = lambda: {int(t) for t in os.listdir(f"/proc/{qemu.pid}/task") if "KVM" in line_of(f"/proc/{qemu.pid}/task/{t}/comm")}
    wait_for(lambda: len(cpus()) == 2, "its processors")
    k.kymo("regenerate", "statedump", "-s", "s")
    threads = cpus()
    qemu.stdin.write('{"execute": "qmp_capabilities"}{"execute": "quit"}')
    qemu.stdin.flush()
    equal(qemu.wait(kymotest.TIMEOUT), 0, "status of qemu")
    wait_for(lambda: recorded(k) == 3, "the end of the guest")
    k.kymo("destroy", "s")
    mine = [(e.name.split(":")[1], fields(e)) for e in read_trace(trace)[0]]
    equal([name for name, _ in mine], ["created", "guest", "destroyed"], "events")
    equal({(f["pid"], f["process"], f["name"]) for _, f in mine}, {(qemu.pid, "qemu-system-x86", "real")}, "who")
    guest = mine[1][1]
    equal((guest["n_vms"], guest["n_vcpus"], set(guest["vcpu_threads"])), (1, 2, threads), "the guest")


def test_named_only(k):
    """
    '*' matches the events of applications: the collector's events are recorded if a rule names
    them.
    """
    need_collector()
    k.start_daemon(collector=True)
    trace = k.record("*", session="all")
    named = k.record("kymo_*", session="named")
    k.app("rules", "1")
    # start waits for it, but not for ever
    wait_for(lambda: "kymo_vm:guests" in k.kymo("view", named, status=None).stdout, "the end of the state dump")
    k.kymo("destroy", "-a")
    check(not any(name.startswith("kymo_") for name in names(trace)), names(trace))
    equal(names(named)["kymo_vm:guests"], 1, f"state dumps in {names(named)}")


def test_burst(k):
    """
    A thousand machines are created and closed as fast as possible: the kernel's own count shows
    that none is missing.
    """
    need_kvm()
    k.start_daemon(collector=True)
    trace = k.record("kymo_vm:created,kymo_vm:destroyed")
    app = machines(k, 1, 0, 1000, "-uuid", UUID)
    wait_for(lambda: recorded(k) >= 2001, lambda: f"2001 events, there are {recorded(k)}")
    end(k, app)
    wait_for(lambda: recorded(k) >= 2002, "the last one to go")
    k.kymo("destroy", "s")
    events = [(e.name, fields(e)) for e in read_trace(trace)[0]]
    mine = [(name, f) for name, f in events if f["stats_path"].startswith(f"/kvm/{app.pid}-") or f["pid"] == app.pid]
    equal(collections.Counter(name for name, _ in mine), {"kymo_vm:created": 1001, "kymo_vm:destroyed": 1001}, "events")
    numbers = [f["created"] for name, f in events if name == "kymo_vm:created"]
    equal(numbers, list(range(numbers[0], numbers[0] + len(numbers))), "the kernel's numbers")
    equal({(f["process"], f["uuid"]) for _, f in mine}, {("machines", UUID)}, "who made them")


def test_environment(k):
    """The trace names its machine."""
    k.start_daemon()
    trace = k.record("*")
    k.app("rules", "1")
    k.kymo("destroy", "s")
    metadata = next(trace.rglob("metadata")).read_text()

    for name, value in (("hostname", socket.gethostname()), ("boot_id", line_of("/proc/sys/kernel/random/boot_id")),
            ("machine_id", line_of("/etc/machine-id")), ("product_uuid", line_of("/sys/class/dmi/id/product_uuid"))):
        check(f'\t{name} = "{value}";' in metadata, f"{name} = {value!r} is not in the environment")


# ---- processes


def process_numbers():
    return {int(p) for p in os.listdir("/proc") if p.isdigit()}


def status_of(pid, key, thread=None):
    path = f"/proc/{pid}/task/{thread}/status" if thread else f"/proc/{pid}/status"
    return pathlib.Path(path).read_text().split(f"\n{key}:")[1].split("\n")[0].split()


def as_proc_says(pid):
    """Returns what the collector must record of a process."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    after = stat.rpartition(")")[2].split()
    groups = [line.split(":", 2)[2] for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    return {"pid": pid, "ppid": int(after[1]), "vpid": int(status_of(pid, "NSpid")[-1]), "name": stat.partition("(")[2].rpartition(")")[0],
        "uid": int(status_of(pid, "Uid")[1]), "start_time": int(after[19]) * 10**9 // os.sysconf("SC_CLK_TCK"),
        "pid_ns": namespace_of(pid), "cgroup": max(groups, key=len)}


def namespace_of(pid):
    """Returns 0 if access is denied: for another user's process, in a container."""
    with contextlib.suppress(PermissionError):
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    return 0


@contextlib.contextmanager
def sleeper(k, *command):
    """Starts a process that is not traced, under an unusual name."""
    program = k.top / "a (b) \u00e9"
    shutil.copy2(shutil.which("sleep"), program)
    process = subprocess.Popen([*command, program, "1000"], env=k.env, stderr=subprocess.DEVNULL)
    k.started.append(process)
    yield wait_for(lambda: [p for p in processes_named(program.name) if p == process.pid or command], "the process")[0]
    for p in processes_named(program.name):
        os.kill(p, signal.SIGKILL)
    process.wait()


def processes_named(name):
    return [p for p in process_numbers() if line_of(f"/proc/{p}/comm") == name]


def test_processes(k):
    """All processes of /proc."""
    need_collector()
    k.start_daemon(collector=True)
    other = {"user": 1234, "group": 4321, "extra_groups": []} if os.geteuid() == 0 else {}
    stranger = subprocess.Popen(["sleep", "1000"], env=k.env, **other)
    k.started.append(stranger)
    with sleeper(k) as pid:
        before = process_numbers()
        trace = k.record("kymo_process:*")
        k.kymo("stop", "s")
        there = before & process_numbers()
        wanted = [as_proc_says(p) for p in (pid, stranger.pid, os.getpid(), k.daemon.pid)]
    stranger.kill()
    stranger.wait()
    k.kymo("destroy", "s")
    processes = {p["pid"]: p for p in told(trace, "kymo_process:process")}
    equal(there - set(processes), set(), "processes that are not in the trace")
    equal([processes[p["pid"]] for p in wanted], wanted, "processes")
    threads = told(trace, "kymo_process:thread")
    with_threads = {t["pid"] for t in threads}
    check(there <= with_threads <= set(processes), f"processes without threads: {there - with_threads}, threads without process: {with_threads - set(processes)}")
    end, = told(trace, "kymo_process:processes")
    equal((end["n"], end["n_threads"]), (len(processes), len(threads)), "numbers")
    born = int(pathlib.Path("/proc/stat").read_text().split("\nbtime ")[1].split()[0])
    check(abs(end["boot_time"] / 1e9 - born) < 2, (end["boot_time"], born))


def test_threads(k):
    """Their names, and those of a process that has another number in a namespace of its own."""
    need_collector()
    k.start_daemon(collector=True)
    kymotest.need_unshare("-p", "-f") if os.geteuid() == 0 else kymotest.need_unshare("-U", "-r", "-p", "-f")
    go, tids = threading.Event(), queue.Queue()

    def be_thread():
        tid = threading.get_native_id()
        pathlib.Path(f"/proc/self/task/{tid}/comm").write_text("a thread")
        tids.put(tid)
        go.wait()

    thread = threading.Thread(target=be_thread, daemon=True)
    thread.start()
    tid = tids.get()
    namespace = ("unshare", "-U", "-r", "-p", "-f")
    if os.geteuid() == 0:  # with groups, which come before the number
        namespace = ("setpriv", "--groups", ",".join(str(100000 + n) for n in range(1000)), "unshare", "-p", "-f")
    with sleeper(k, *namespace) as inside:
        trace = k.record("kymo_process:*")
        k.kymo("stop", "s")
        wanted = as_proc_says(inside)
    go.set()
    thread.join()
    k.kymo("destroy", "s")
    mine = {t["tid"]: t["name"] for t in told(trace, "kymo_process:thread") if t["pid"] == os.getpid()}
    equal(mine, {os.getpid(): line_of("/proc/self/comm"), tid: "a thread"}, "threads of the test")
    equal(wanted["vpid"], 1, "the number in the namespace")
    equal([p for p in told(trace, "kymo_process:process") if p["pid"] == inside], [wanted], "the process in a namespace")
    equal([t["vtid"] for t in told(trace, "kymo_process:thread") if t["pid"] == inside], [1], "its thread")


# ---- containers


def writable_cgroups():
    """Returns a directory in which this user may create control groups; tries each hierarchy."""
    root = pathlib.Path("/sys/fs/cgroup")
    candidates = [root] if (root / "cgroup.procs").exists() else sorted(p for p in root.iterdir() if (p / "cgroup.procs").exists())
    for directory in candidates:
        with contextlib.suppress(OSError):
            group = pathlib.Path(tempfile.mkdtemp(prefix="kymo-test-", dir=directory))
            try:
                in_group = subprocess.Popen(["sleep", "1000"])
                (group / "cgroup.procs").write_text(str(in_group.pid))
                return group
            except OSError:
                group.rmdir()
                raise
            finally:
                in_group.kill()
                in_group.wait()
    raise Skip("control groups cannot be made here (root with a writable /sys/fs/cgroup)")


def test_containers(k):
    """
    Groups with processes that have names as container managers give them. An empty group is no
    running container.
    """
    need_collector()
    k.start_daemon(collector=True)
    number = "0123456789abcdef" * 4
    top = writable_cgroups()
    made = [top / f"docker-{number}.scope", top / f"docker-{number}.scope" / "inside", top / "lxc.payload.empty"]
    try:
        for directory in made:
            directory.mkdir()
        with sleeper(k) as first, contextlib.ExitStack() as stack:
            second = subprocess.Popen(["sleep", "1000"], env=k.env)
            k.started.append(second)
            stack.callback(second.wait)
            stack.callback(second.kill)
            (made[0] / "cgroup.procs").write_text(str(first))
            (made[1] / "cgroup.procs").write_text(str(second.pid))
            path = as_proc_says(first)["cgroup"]
            trace = k.record("kymo_cgroup:*")
            k.kymo("destroy", "s")
        mine = [c for c in told(trace, "kymo_cgroup:container") if f"/{top.name}/" in c["path"]]
        equal(mine, [{"id": number, "runtime": "docker", "path": path, "pid": first, "n_processes": 2}], "containers")
        equal([c["n"] for c in told(trace, "kymo_cgroup:containers")], [len(told(trace, "kymo_cgroup:container"))], "number")
    finally:
        for directory in (*reversed(made), top):
            wait_for(lambda d=directory: not d.exists() or removed(d), f"{directory} to go")


def removed(directory):
    with contextlib.suppress(OSError):
        directory.rmdir()
    return not directory.exists()


# ---- devices


def uevent(path, action):
    """Makes the kernel send this event of a device, as if it had happened."""
    try:
        pathlib.Path(path, "uevent").write_text(action)
    except OSError as e:
        raise Skip(f"{path}/uevent cannot be written: {e} (root, and no container)") from None


def kernel_number(text):
    major, minor = text.split(":")
    return int(major) << 20 | int(minor)


def block_device(path):
    return {"dev": kernel_number(line_of(path / "dev")), "diskname": path.name.replace("!", "/"),
        "type": "partition" if (path / "partition").exists() else "disk", "size": 512 * int(line_of(path / "size"))}


def test_block(k):
    """All block devices, and a kernel event of one of them."""
    need_collector()
    devices = sorted(pathlib.Path("/sys/class/block").iterdir())
    if not devices:
        raise Skip("there is no block device")
    k.start_daemon(collector=True)
    wanted = [block_device(p) for p in devices]
    trace = k.record("kymo_block:device,kymo_block:devices")
    k.kymo("destroy", "s")
    seen = told(trace, "kymo_block:device")
    # loop devices of other processes
    changed_meanwhile = [d for d, p in zip(wanted, devices) if block_device(p) != d]
    equal([d for d in wanted if d not in seen and d not in changed_meanwhile], [], "devices that are recorded incorrectly")
    equal({d["diskname"] for d in seen}, {d["diskname"] for d in wanted}, "devices")
    equal(told(trace, "kymo_block:devices"), [{"n": len(wanted)}], "number")

    live = k.traces / "live"
    actions = {"change": "changed", "remove": "removed", "add": "added"}
    # Other processes take the first loop device that is free.
    chosen = max((i for i, d in enumerate(devices) if d.name.startswith("loop")), default=0)
    k.kymo("create", "live", "-o", live)
    for event in actions.values():
        k.kymo("enable-event", f"kymo_block:{event}", "-f", f'diskname == "{wanted[chosen]["diskname"]}"')
    k.kymo("start")
    for action in actions:
        uevent(devices[chosen], action)
    wait_for(lambda: recorded(k, "live") >= 3, lambda: f"three events of {wanted[chosen]}: {recorded(k, 'live')}")
    k.kymo("destroy", "live")
    equal([(e.name, fields(e)) for e in read_trace(live)[0]], [(f"kymo_block:{event}", wanted[chosen]) for event in actions.values()], "what happened")


def daemon_with_net(k, *then):
    """
    Starts a daemon in a network namespace with a bridge; returns a function that runs ip in it.
    then: another command of ip before the daemon starts. The collector may see a later one when a
    session records already.
    """
    need_collector()
    need_program("ip", "iproute2")
    make = "ip link add kymo0 type bridge && ip link set kymo0 addrgenmode none"
    if then:
        make += f" && ip {' '.join(then)}"
    if subprocess.run(["unshare", "-n", "sh", "-c", make], capture_output=True).returncode:
        raise Skip("a network namespace with a bridge cannot be made (root, and no container)")
    k.daemon = k.spawn_daemon(collector=True, wrap=("unshare", "-n", "sh", "-c", make + '; exec "$@"', "sh"))
    wait_for(k.answers, "the daemon")
    return lambda *args, **more: k.run(["nsenter", "-n", "-t", k.daemon.pid, "ip", *args], **more).stdout


def test_net(k):
    """
    Interfaces of a network namespace, their addresses, and an interface that is added, renamed and
    removed.
    """
    ip = daemon_with_net(k)
    ip("address", "add", "192.0.2.1/24", "dev", "kymo0")
    ip("address", "add", "2001:db8::1/64", "dev", "kymo0")
    trace = k.record(*(f"kymo_net:{e}" for e in ("interface", "address", "interfaces", "added", "changed", "removed")))
    wanted = json.loads(ip("-j", "link"))
    n_addresses = sum(len(i["addr_info"]) for i in json.loads(ip("-j", "address")))
    ip("link", "add", "kymo1", "type", "bridge")
    ip("link", "set", "kymo1", "name", "kymo2")
    ip("link", "del", "kymo2")
    wait_for(lambda: recorded(k) == 1 + len(wanted) + 3 + n_addresses, "the interface's events")
    k.kymo("destroy", "s")
    interfaces = {i["name"]: i for i in told(trace, "kymo_net:interface")}
    equal({(i["ifindex"], i["name"], i["mac"]) for i in interfaces.values()}, {(i["ifindex"], i["ifname"], i["address"]) for i in wanted}, "interfaces")
    equal({i["name"]: bool(i["flags"] & 1) for i in interfaces.values()}, {i["ifname"]: "UP" in i["flags"] for i in wanted}, "which are up")
    addresses = {(a["ifindex"], a["address"]) for a in told(trace, "kymo_net:address") if a["name"] == "kymo0"}
    equal(addresses, {(interfaces["kymo0"]["ifindex"], a) for a in ("192.0.2.1", "2001:db8::1")}, "addresses")
    equal(told(trace, "kymo_net:interfaces"), [{"n": len(wanted)}], "number")
    happened = [(e.name, fields(e)["name"]) for e in read_trace(trace)[0] if fields(e).get("name") in ("kymo1", "kymo2")]
    equal(happened, [("kymo_net:added", "kymo1"), ("kymo_net:changed", "kymo2"), ("kymo_net:removed", "kymo2")], "what happened")
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)


LAST_ADDRESS = "192.0.2.99"
IP_FLAGS = {"UP": 1, "BROADCAST": 2, "LOOPBACK": 8, "MULTICAST": 0x1000, "LOWER_UP": 0x10000}


def net_of_ip(ip):
    """
    Parses the output of ip: names (as far as it prints them) and flags of interfaces, and
    addresses, all by the interfaces' numbers.
    """
    interfaces = json.loads(ip("-j", "address"))
    flags = {i["ifindex"]: (i["ifname"], sum(IP_FLAGS.get(f, 0) for f in i["flags"])) for i in interfaces}
    return flags, {(i["ifindex"], a["local"]) for i in interfaces for a in i["addr_info"]}


def net_of_events(events):
    """The same, from a state dump and the events after it."""
    flags, addresses = {}, set()
    for e in events:
        what, f = e.name.split(":")[1], fields(e)
        number = f.get("ifindex")
        if what == "lost":
            flags, addresses = {}, set()
        elif what in ("interface", "flags_changed"):
            flags[number] = (f["name"], f["flags"] & sum(IP_FLAGS.values()))
        elif what in ("address", "address_added"):
            addresses.add((number, f["address"]))
        elif what == "address_removed":
            addresses.remove((number, f["address"]))
        elif what == "changed":
            flags[number] = (f["name"], flags[number][1])
        elif what == "removed":
            flags.pop(number)
    return flags, addresses


def record_net(k):
    """
    Records everything. The session `last` records that the last address was added: everything
    before it is then in the trace.
    """
    trace = k.record("kymo_net:*")
    k.kymo("create", "last", "-o", k.traces / "last")
    for event in ("kymo_net:address", "kymo_net:address_added"):
        k.kymo("enable-event", event, "-s", "last", "-f", f'address == "{LAST_ADDRESS}"')
    k.kymo("start", "last")
    return trace


def end_net(k, ip, trace):
    ip("address", "add", f"{LAST_ADDRESS}/32", "dev", "lo")
    wait_for(lambda: recorded(k, "last"), "the last address")
    k.kymo("destroy", "-a")
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)
    return read_trace(trace)[0]


def test_net_live(k):
    """
    Changed addresses and flags of interfaces are recorded, once each; together, the events agree
    with ip. (Not with `nodad`: the kernel then notifies later, or not at all if the interface is
    removed before.)
    """
    ip = daemon_with_net(k, "address", "add", "198.51.100.9/24", "dev", "kymo0")
    trace = record_net(k)
    changes = [("address", "add", "192.0.2.1/24", "dev", "kymo0"), ("address", "add", "2001:db8::2/64", "dev", "kymo0"),
        ("link", "set", "kymo0", "up"), ("link", "set", "kymo0", "mtu", "1400"), ("link", "set", "kymo0", "promisc", "on"),
        ("address", "del", "198.51.100.9/24", "dev", "kymo0"), ("link", "add", "kymo1", "type", "bridge"), ("link", "set", "kymo1", "addrgenmode", "none"),
        ("link", "set", "kymo1", "master", "kymo0"), ("link", "set", "kymo1", "nomaster"), ("address", "add", "fe80::7/64", "dev", "kymo1"),
        ("address", "change", "2001:db8::2/64", "dev", "kymo0", "preferred_lft", "900", "valid_lft", "1000"), ("link", "set", "lo", "up"),
        ("address", "add", "192.0.2.50/24", "dev", "kymo1"), ("link", "set", "kymo1", "name", "kymo2"), ("link", "del", "kymo2"), ("link", "set", "kymo0", "down")]
    for change in changes:
        # a bridge cannot be a port of another
        ip(*change, status=None if "master" in change else 0)
    wanted = net_of_ip(ip)
    events = end_net(k, ip, trace)
    flags, addresses = net_of_events(events)
    equal((flags, addresses - {(1, LAST_ADDRESS)}), wanted, "recorded state, compared with ip")
    changed = [(e.name.split(":")[1], fields(e)["name"], fields(e)["address"]) for e in events if e.name.startswith("kymo_net:address_")]
    equal([c for c in changed if c[1:] not in (("lo", "127.0.0.1"), ("lo", "::1"))][:6],
        [("address_added", "kymo0", "192.0.2.1"), ("address_added", "kymo0", "2001:db8::2"), ("address_removed", "kymo0", "198.51.100.9"),
            ("address_added", "kymo1", "fe80::7"), ("address_added", "kymo1", "192.0.2.50"), ("address_removed", "kymo2", "192.0.2.50")], "addresses, in order")
    equal(max(collections.Counter(changed).values()), 1, f"how often the same change was recorded: {changed}")
    switched = [(f["name"], f["flags"] & 1) for f in told(trace, "kymo_net:flags_changed") if f["changed"] & 1]
    equal(switched, [("kymo0", 1), ("lo", 1), ("kymo0", 0)], "interfaces that were switched on and off")
    check(all(f["changed"] for f in told(trace, "kymo_net:flags_changed")), "an empty change was recorded")


def test_net_lost(k):
    """
    More changes than the kernel keeps for a stopped collector: it records that it missed some, and
    then the present state.
    """
    ip = daemon_with_net(k)
    trace = record_net(k)
    collector = collector_of(k)
    kymotest.stop(collector)
    ip("-batch", "-", input="".join(f"link set kymo0 mtu {1400 + i % 2}\n" for i in range(6000)))
    ip("link", "set", "kymo0", "up")
    ip("address", "add", "192.0.2.1/24", "dev", "kymo0")
    wanted = net_of_ip(ip)
    os.kill(collector, signal.SIGCONT)
    events = end_net(k, ip, trace)
    flags, addresses = net_of_events(events)
    check("kymo_net:lost" in {e.name for e in events}, "the trace does not report missed changes")
    equal((flags, addresses - {(1, LAST_ADDRESS)}), wanted, "recorded state, compared with ip")
    check("network interfaces" in k.daemon_log(), k.daemon_log())


# udevd with its own /dev and /run, and no rules: it changes nothing on the machine, and only
# reports the devices that it has processed.
ALONE_WITH_UDEVD = """
set -e
mkdir -p "$1/dev"
mount -t tmpfs none "$1/dev"
for node in null zero urandom; do cp -a "/dev/$node" "$1/dev"; done
mkdir "$1/dev/shm"
mount --bind /dev/shm "$1/dev/shm"
mount -t sysfs none /sys
mount -t tmpfs none /run
mkdir -p /run/udev/rules.d
for rules in /usr/lib/udev/rules.d /lib/udev/rules.d /etc/udev/rules.d; do
	[ ! -d "$rules" ] || mount --bind /run/udev/rules.d "$rules"
done
mount --move "$1/dev" /dev
[ "$2" ] || exit 0
exec "$2"
"""


def start_udevd(k):
    """Starts a real udevd in its own namespaces, and a daemon in the same ones; returns udevd."""
    need_collector()
    need_program("ip", "iproute2")
    path = next((p for p in ("/lib/systemd/systemd-udevd", "/usr/lib/systemd/systemd-udevd") if os.access(p, os.X_OK)), None)
    if not path:
        raise Skip("systemd-udevd is missing (Debian package udev)")
    wrap = ["unshare", "-m", "-n", "sh", "-c", ALONE_WITH_UDEVD, "sh", k.top]
    if subprocess.run([*wrap, ""], capture_output=True).returncode:
        raise Skip("mount and network namespaces with a /sys and a /dev cannot be made (root, and no container)")
    with open(k.top / "udevd.log", "wb") as log:
        udevd = subprocess.Popen([*wrap, path], env=k.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    k.started.append(udevd)
    wait_for(lambda: os.path.exists(f"/proc/{udevd.pid}/root/run/udev/control") or udevd.poll() is not None, "udevd")
    equal(udevd.poll(), None, f"status of udevd, which said {(k.top / 'udevd.log').read_text()}")
    k.start_daemon(collector=True, wrap=("nsenter", "-m", "-n", "-t", str(udevd.pid)))
    return udevd


def uevent_groups(pid):
    """Returns the groups of uevents that the process receives, 1: the kernel, 2: udevd."""
    sockets = [line.split() for line in pathlib.Path(f"/proc/{pid}/net/netlink").read_text().splitlines()[1:]]
    return [int(s[3], 16) for s in sockets if s[1] == "15" and int(s[2]) == pid]


def test_udevd(k):
    """
    If udevd runs, it reports the devices that are added, changed and removed: interfaces, block
    devices and virtual machines.
    """
    udevd = start_udevd(k)
    equal(uevent_groups(collector_of(k)), [2], "whom the collector listens to")
    ip = lambda *args: k.run(["nsenter", "-n", "-t", udevd.pid, "ip", *args])
    devices = sorted(pathlib.Path("/sys/class/block").iterdir())
    kvm = os.access("/dev/kvm", os.R_OK | os.W_OK)
    trace = k.traces / "s"
    k.kymo("create", "s", "-o", trace)
    k.kymo("enable-event", "kymo_net:added,kymo_net:changed,kymo_net:removed")
    k.kymo("start")
    ip("link", "add", "kymo0", "type", "bridge")
    ip("link", "set", "kymo0", "name", "kymo1")
    ip("link", "del", "kymo1")
    wait_for(lambda: recorded(k) == 3, "the interface's events")
    if devices:
        k.kymo("enable-event", "kymo_block:changed", "-f", f'diskname == "{devices[-1].name}"')
        uevent(devices[-1], "change")
        wait_for(lambda: recorded(k) == 4, "the block device's event")
    if kvm:
        k.kymo("enable-event", "kymo_vm:created,kymo_vm:destroyed", "-f", f'uuid == "{UUID}"')
        app = machines(k, 1, 0, 0, "-uuid", UUID)
        wait_for(lambda: recorded(k) == 3 + bool(devices) + 1, "the machine that was made")
        end(k, app)
        wait_for(lambda: recorded(k) == 3 + bool(devices) + 2, "its end")
    k.kymo("destroy", "s")
    wanted = [("kymo_net:added", "kymo0"), ("kymo_net:changed", "kymo1"), ("kymo_net:removed", "kymo1")]
    wanted += [("kymo_block:changed", devices[-1].name)] if devices else []
    wanted += [("kymo_vm:created", UUID), ("kymo_vm:destroyed", UUID)] if kvm else []
    told_of = lambda f: f.get("diskname") or f.get("uuid") or f["name"]
    equal([(e.name, told_of(fields(e))) for e in read_trace(trace)[0]], wanted, "what happened")
    udevd.terminate()
    equal(udevd.wait(kymotest.TIMEOUT), 0, "status of udevd")


def test_cpu(k):
    """Processors as in /proc and /sys, and one that is reported as switched off and on."""
    need_collector()
    cpus = sorted(pathlib.Path("/sys/bus/cpu/devices").glob("cpu[0-9]*"))
    k.start_daemon(collector=True)
    trace = k.record("kymo_cpu:*")
    for action in ("offline", "online"):
        uevent(cpus[-1], action)
    wait_for(lambda: recorded(k) >= len(cpus) + 3, "the processor's events")
    k.kymo("destroy", "s")
    info = dict(line.replace("\t", "").split(":", 1) for line in pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].split("\n"))
    wanted = [{"cpu_id": int(c.name[3:]), "online": int(line_of(c / "online") or 1), "physical_id": int(line_of(c / "topology/physical_package_id") or -1),
        "core_id": int(line_of(c / "topology/core_id") or -1), "architecture": os.uname().machine,
        **{field: info.get(key, "").strip() for field, key in
            (("vendor", "vendor_id"), ("family", "cpu family"), ("model", "model"), ("model_name", "model name"))}} for c in cpus]
    by_number = lambda c: c["cpu_id"]
    equal(sorted(told(trace, "kymo_cpu:topology"), key=by_number), sorted(wanted, key=by_number), "processors")
    equal(told(trace, "kymo_cpu:cpus"), [{"n": len(wanted)}], "number")
    number = wanted[cpus.index(cpus[-1])]["cpu_id"]
    for event in ("offline", "online"):
        equal(told(trace, f"kymo_cpu:{event}"), [{"cpu_id": number}], event)


# ---- mounts


def mounts_of(pid):
    """
    Returns mount_id, mount_point, fs_type and source of each mount in the process's namespace.
    """
    found = set()
    for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
        before, after = (part.split(" ") for part in line.split(" - "))
        plain = lambda text: re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)
        found.add((int(before[0]), plain(before[4]), after[0], plain(after[1])))
    return found


# If a file is removed, the kernel unmounts in all namespaces what is mounted on it. Other tests
# remove names of network namespaces.
OWN_MOUNTS = ("unshare", "-m", "sh", "-c", 'umount -a -t nsfs; exec "$@"', "sh")


def test_mounts(k):
    """All mounts of the daemon's namespace; then one is mounted, changed and unmounted."""
    need_collector()
    kymotest.need_mounts()
    point = k.top / "mount point"
    point.mkdir()
    k.daemon = k.spawn_daemon(collector=True, wrap=OWN_MOUNTS)
    wait_for(k.answers, "the daemon")
    run = lambda *args: k.run(["nsenter", "-m", "-t", k.daemon.pid, *args])
    trace = k.record("kymo_mount:*")
    wanted = mounts_of(k.daemon.pid)
    was = len(wanted) + 1
    wait_for(lambda: recorded(k) == was, "the state dump")
    for i, command in enumerate((("mount", "-t", "tmpfs", "kymo test", point), ("mount", "-o", "remount,ro", point), ("umount", point))):
        run(*command)
        wait_for(lambda: recorded(k) >= was + (1, 3, 4)[i], f"the event of {command}")
    k.kymo("destroy", "s")
    identity = lambda m: (m["mount_id"], m["mount_point"], m["fs_type"], m["source"])
    equal({identity(m) for m in told(trace, "kymo_mount:mount")}, wanted, "mounts")
    equal(told(trace, "kymo_mount:mounts"), [{"n": len(wanted)}], "number")
    happened = [(e.name.split(":")[1], fields(e)) for e in read_trace(trace)[0]][was:]
    equal([(what, m["mount_point"], m["source"]) for what, m in happened],
        [(what, str(point), "kymo test") for what in ("added", "added", "removed", "removed")], "what happened")
    equal([m["options"].split(",")[0] for _, m in happened], ["rw", "ro", "rw", "ro"], "how it was mounted")
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)


def test_mounts_unseen(k):
    """Changes while no session records are not reported as missed to the next session."""
    need_collector()
    kymotest.need_mounts()
    k.daemon = k.spawn_daemon(collector=True, wrap=OWN_MOUNTS)
    wait_for(k.answers, "the daemon")
    run = lambda *args: k.run(["nsenter", "-m", "-t", k.daemon.pid, *args])
    first = k.record("kymo_mount:*", session="first")
    k.kymo("destroy", "first")
    main = collector_of(k)
    slept = lambda: status_of(main, "voluntary_ctxt_switches")
    wait_for(lambda: waits_for_ever(main, main), "the collector to have nothing to do")
    before = slept()
    run("mount", "-t", "tmpfs", "one", "/mnt")
    wait_for(lambda: slept() != before and waits_for_ever(main, main), "the collector to have heard of it")
    second = k.record("kymo_mount:*", session="second")
    run("mount", "-t", "tmpfs", "two", "/mnt")
    wait_for(lambda: recorded(k, "second") > len(mounts_of(k.daemon.pid)), "the second mount's event")
    k.kymo("destroy", "second")
    equal([m["source"] for m in told(second, "kymo_mount:added")], ["two"], "mounts since the session started")
    equal({m["source"] for m in told(second, "kymo_mount:mount")} - {m["source"] for m in told(first, "kymo_mount:mount")}, {"one"}, "before")
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)


def lock_machine():
    """
    Waits until no other test of the collector runs, as of another build. Devices and virtual
    machines are the machine's: each would see the other's.
    """
    path = f"/tmp/kymo-test-collector-{os.geteuid()}.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)


if __name__ == "__main__":
    lock_machine()
    kymotest.main()
