#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The collector of system state: its life beside the session daemon's, and the virtual machines of KVM."""

import collections
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import time

import kymotest
from kymotest import CLI, RUN_FROM, SESSIOND, Failure, Skip, alive, check, command_of, equal, fields, read_trace, wait_for

COLLECTD = RUN_FROM / "src" / "collectd" / "kymo-collectd"
CONSUMERD = RUN_FROM / "src" / "consumerd" / "kymo-consumerd"
UUID = "5a1ef0b2-91b0-4f61-b1d6-8c1f7a3d1c9e"


def need_collector():
    if not COLLECTD.exists():
        raise Skip("kymo-collectd is not built (Debian package libudev-dev)")


def need_kvm():
    need_collector()
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise Skip("/dev/kvm is missing, or not for this user")


def children(pid, name="kymo-collectd"):
    """Processes of this name that are children of the process."""
    found = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(p) for p in found if alive(int(p)) and command_of(p).startswith(name)]


def collector_of(k):
    return wait_for(lambda: children(k.daemon.pid), "the collector")[0]


def libexec(k, script=None):
    """A directory with the consumer, and a collector that is this shell script."""
    directory = k.top / "libexec"
    directory.mkdir()
    (directory / "kymo-consumerd").symlink_to(CONSUMERD)
    if script is not None:
        (directory / "kymo-collectd").write_text(f"#!/bin/sh\n{script}\n")
        (directory / "kymo-collectd").chmod(0o755)
    return {"KYMO_LIBEXECDIR": str(directory)}


def names(trace):
    return collections.Counter(e.name for e in read_trace(trace)[0])


def recorded(k, session="s"):
    return k.request(command="status", session=session)["session"]["recorded"]


# ---- its life


def test_child_of_the_daemon(k):
    need_collector()
    k.start_daemon(collector=True)
    collector = collector_of(k)
    environment = pathlib.Path(f"/proc/{collector}/environ").read_bytes().split(b"\0")
    check(b"KYMO_REGISTER_TIMEOUT=-1" in environment, environment)
    k.stop_daemon()
    wait_for(lambda: not alive(collector), "the collector to end with its daemon")


def test_daemonized(k):
    """In the background, started by 'kymo create': the collector is the daemon's child, and has registered when create returns."""
    need_collector()
    k.kymo("create", "s", "-o", k.traces / "s")
    daemon = k.request(command="hello")["pid"]
    collector, = children(daemon)
    applications = k.request(command="list-events")["applications"]
    equal([a["pid"] for a in applications], [collector], "programs")
    check({e["name"] for e in applications[0]["events"]} >= {"kymo_vm:created", "kymo_vm:destroyed", "kymo_vm:guest"}, applications)
    k.kymo("destroy", "s")
    os.kill(daemon, signal.SIGKILL)
    wait_for(lambda: not alive(collector), "the collector to end when its daemon is killed")


def test_none(k):
    """--no-collectd; and 'kymo record' is not kept waiting for one."""
    k.start_daemon("--no-collectd", collector=True)
    equal(children(k.daemon.pid), [], "collectors")
    done = k.run([CLI, "record", "-o", k.top / "t", "--", "sh", "-c", "ps -e -o args | grep kymo-collect[d]; true"])
    check(str(k.top) not in done.stdout, done.stdout)


def test_create_is_held(k):
    """Until it is ready: meanwhile the daemon serves others, and 'create' of a client that goes away is done all the same."""
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
    equal(create.wait(20), 0, "kymo create")
    check(b"note" not in create.stdout.read(), "a note, although all is well")
    equal({s["name"] for s in k.request(command="list")["sessions"]}, {"gone", "s"}, "sessions")
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)


def test_failure(k):
    """It cannot start: sessions do without it, whoever makes one is told, and it is tried again, less and less often."""
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
    """Said once."""
    k.daemon = k.spawn_daemon(env=libexec(k), collector=True)
    wait_for(k.answers, "the daemon")
    equal(k.kymo("create", "s", "-o", k.traces / "s").stdout.count("note"), 0, "notes")
    equal(k.daemon_log().count("kymo-collectd"), 1, "lines about it")
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)


def test_restart(k):
    """It is killed: another one comes, and tells the sessions that record what there is."""
    need_collector()
    k.start_daemon(collector=True)
    trace = k.record("kymo_vm:*")
    wait_for(lambda: recorded(k) == 1, "the first state dump")
    first = collector_of(k)
    os.kill(first, signal.SIGKILL)
    second = wait_for(lambda: [c for c in children(k.daemon.pid) if c != first], "another collector")[0]
    wait_for(lambda: recorded(k) == 2, "the second state dump")
    equal(children(k.daemon.pid), [second], "collectors")
    k.kymo("destroy", "s")
    equal(names(trace), {"kymo_vm:guests": 2}, "events")


def test_by_hand(k):
    """Started wrongly it says how it is started."""
    need_collector()
    done = k.run([COLLECTD], status=2)
    check("FIFO" in done.stderr, done.stderr)
    done = k.run([COLLECTD, k.top / "none"], status=1)
    check("kymo-sessiond" in done.stderr, done.stderr)
    check("Usage" in k.run([COLLECTD, "--help"]).stdout, "no help")


def test_idle(k):
    """Nothing happens: nothing runs."""
    need_collector()
    k.start_daemon(collector=True)
    collector = collector_of(k)

    def switches():
        return {t: (pathlib.Path(f"/proc/{collector}/task/{t}/status").read_text().split("voluntary_ctxt_switches:")[1].split()[0])
            for t in os.listdir(f"/proc/{collector}/task")}

    wait_for(lambda: switches() == (time.sleep(0.2), switches())[1], "the collector to be idle")
    before = switches()
    time.sleep(2)  # in which it would wake up
    equal(switches(), before, "times that its threads slept and woke")


# ---- virtual machines


def machines(k, *args):
    app = k.spawn("machines", *args)
    k.expect(app, "ready")
    return app


def end(k, app):
    k.let_go(app)
    k.finish(app)


def test_guests(k):
    """Those that run are told to the session that asks: their names, machines and virtual CPUs."""
    need_kvm()
    app = machines(k, 2, 3, 0, "-uuid", UUID, "-name", "guest=web,debug-threads=on")  # before the collector
    k.start_daemon(collector=True)
    first = k.record("kymo_vm:*", session="first")
    other = machines(k, 1, 1, 0, "--id", "tiny")
    second = k.record("kymo_vm:guest*", session="second")
    k.kymo("regenerate", "statedump", "-s", "second")
    k.kymo("destroy", "-a")
    told = [fields(e) for e in read_trace(first)[0] if e.name == "kymo_vm:guest"]
    mine = [f for f in told if f["pid"] == app.pid]
    equal(len(mine), 1, f"of this process, among {told}")
    mine = mine[0]
    equal((mine["process"], mine["uuid"], mine["name"], mine["n_vms"], mine["n_vcpus"]), ("machines", UUID, "web", 2, 6), "guest")
    threads = {int(t) for t in os.listdir(f"/proc/{app.pid}/task")} - {app.pid}
    equal(set(mine["vcpu_threads"]), threads, "threads of virtual CPUs")
    equal(names(first)["kymo_vm:created"], 1, "machines made while the first session recorded")
    told = collections.Counter((f["pid"], f["name"]) for f in (fields(e) for e in read_trace(second)[0]) if "uuid" in f)
    equal((told[app.pid, "web"], told[other.pid, "tiny"]), (2, 2), f"guests told to the second session: {told}")
    end(k, app)
    end(k, other)


def test_named_only(k):
    """'*' stands for the events of programs: what the collector tells is recorded when it is named."""
    need_collector()
    k.start_daemon(collector=True)
    trace = k.record("*", session="all")
    named = k.record("kymo_*", session="named")
    k.app("rules", "1")
    k.kymo("destroy", "-a")
    check(not any(name.startswith("kymo_") for name in names(trace)), names(trace))
    equal(names(named)["kymo_vm:guests"], 1, f"the end of the state dump, in {names(named)}")


def test_burst(k):
    """A thousand machines made and gone as fast as can be: the kernel's own count says that none is missing."""
    need_kvm()
    k.start_daemon(collector=True)
    trace = k.record("kymo_vm:created,kymo_vm:destroyed")
    app = machines(k, 1, 0, 1000, "-uuid", UUID)
    wait_for(lambda: recorded(k) >= 2001, lambda: f"2001 events, there are {recorded(k)}", timeout=30)
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
    """The trace says which machine it is of."""
    k.start_daemon()
    trace = k.record("*")
    k.app("rules", "1")
    k.kymo("destroy", "s")
    metadata = next(trace.rglob("metadata")).read_text()

    def line(path):
        with contextlib.suppress(OSError):
            return pathlib.Path(path).read_text().split("\n")[0]
        return ""

    for name, value in (("hostname", socket.gethostname()), ("boot_id", line("/proc/sys/kernel/random/boot_id")),
            ("machine_id", line("/etc/machine-id")), ("product_uuid", line("/sys/class/dmi/id/product_uuid"))):
        check(f'\t{name} = "{value}";' in metadata, f"{name} = {value!r} is not in the environment")


if __name__ == "__main__":
    kymotest.main()
