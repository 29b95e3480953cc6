#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Commands and daemons that start, exit and are replaced at the same time: all commands succeed,
whichever daemon serves them.
"""

import contextlib
import fcntl
import os
import pathlib
import signal
import subprocess

import kymotest
from kymotest import check, equal, read_trace, wait_for

N = 6
ROOMY = ("--num-subbuf=8", "--subbuf-size=256K")


def daemon_pid(k):
    """Returns the process that owns the run directory, 0 if none."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((k.rundir / "lock").read_text())
        return pid if kymotest.alive(pid) else 0
    return 0


def the_daemon(k):
    """Returns the process that owns the run directory; waits while it writes its number there."""
    return wait_for(lambda: daemon_pid(k), "a daemon")


def daemons(k):
    """Returns the session daemons, without their guards."""
    return [p for p in kymotest.processes_with(k.mark) if name_of(p) == "kymo-sessiond"]


def name_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def end_daemon(k, signo=signal.SIGTERM):
    """Ends a daemon that a command started."""
    pid = the_daemon(k)
    os.kill(pid, signo)
    wait_for(lambda: not kymotest.alive(pid), "the daemon to end")


def begin(k, *args):
    """Starts a command without waiting."""
    process = subprocess.Popen([kymotest.CLI, *map(str, args)], env=k.env, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    k.started.append(process)
    return process


def all_done(processes):
    """Waits for commands; fails when one of them failed. Returns their messages on stderr."""
    said = []
    for p in processes:
        said.append(p.communicate(timeout=kymotest.TIMEOUT))
        p.stderr.close()
    equal([(p.returncode, *s) for p, s in zip(processes, said) if p.returncode], [], "commands that failed")
    return [s[1] for s in said]


def names(k):
    return sorted(s["name"] for s in k.request(command="list")["sessions"])


def test_create(k):
    """Without a daemon, each of several commands starts one: one daemon serves them all."""
    all_done([begin(k, "create", f"s{i}") for i in range(N)])
    equal(names(k), [f"s{i}" for i in range(N)], "sessions")
    wait_for(lambda: len(daemons(k)) == 1, "one daemon to be left")
    end_daemon(k)


def test_create_without_names(k):
    """
    The default names of sessions and traces have a resolution of one second: each session has its
    own name all the same.
    """
    all_done([begin(k, "create") for _ in range(N)])
    equal(len(names(k)), N, "sessions")
    equal(len(list(k.traces.iterdir())), N, "traces")
    end_daemon(k)


def test_record(k):
    """Each has its own daemon."""
    all_done([begin(k, "record", "-e", "emit:*", kymotest.APPS / "emit", "-n", 100) for _ in range(N)])
    equal([len(read_trace(t)[0]) for t in k.traces.iterdir()], [100] * N, "events of each trace")


def test_unit_beside_commands(k):
    """A service manager's daemon takes over from another one, and no command is affected."""
    commands = [begin(k, "create", f"s{i}") for i in range(N)]
    unit = k.spawn_daemon("--take-over")
    commands += [begin(k, "create", f"t{i}") for i in range(N)]
    all_done(commands)
    wait_for(lambda: daemon_pid(k) == unit.pid and k.answers(), lambda: f"the unit's daemon to serve:\n{k.daemon_log()}")
    equal(names(k), sorted(f"{c}{i}" for c in "st" for i in range(N)), "sessions")
    end_daemon(k)
    equal(unit.wait(kymotest.TIMEOUT), 0, "exit status of the unit's daemon")


def test_take_over_answers_first(k):
    """A daemon that has read a request replies to it before its successor gets the sessions."""
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 100)
    (consumer,) = kymotest.consumers(k)
    kymotest.stop(consumer)  # delays the reply
    slow = begin(k, "stop", "s")
    wait_for(lambda: k.request(command="list")["sessions"][0]["state"] != "started", "the request to be read")
    first, k.daemon = k.daemon, k.spawn_daemon("--take-over")
    wait_for(lambda: "making room" in k.daemon_log(), "the first daemon to be asked")
    os.kill(consumer, signal.SIGCONT)
    said = slow.communicate(timeout=kymotest.TIMEOUT)[1]
    # The second: the consumer was stopped for a second, on a busy machine.
    check(slow.returncode == 0 or f"(pid {consumer}) has been stopped by a signal" in said, f"exit {slow.returncode}, says: {said}")
    equal(first.wait(kymotest.TIMEOUT), 0, "exit status of the first daemon")
    wait_for(k.answers, "the second daemon")
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)
    k.kymo("destroy", "s")
    equal(len(read_trace(trace)[0]), 100, "events")


def test_killed_daemon(k):
    """Commands after the daemon's SIGKILL start one successor, and use it."""
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    for i in range(10):
        k.app("emit", "-n", 100, "-p", i)
        os.kill(the_daemon(k), signal.SIGKILL)  # and no command waits for its exit
        said = all_done([begin(k, "enable-event", "-s", "s", f"x{i}y{n}:*") for n in range(N)])
        check(sum("takes over its sessions" in s for s in said) <= 1, said)
        check(sum("the session goes on" in s for s in said) <= 1, said)
    equal(len(k.kymo_json("list", "s")["session"]["channels"][0]["rules"]), 1 + 10 * N, "rules")
    k.kymo("destroy", "s")
    equal(len(read_trace(trace)[0]), 1000, "events")
    k.daemon.wait()
    k.daemon = None
    end_daemon(k)


def test_killed_daemon_that_is_being_replaced(k):
    """A daemon with --take-over may replace it; commands that start meanwhile wait."""
    k.start_daemon()
    k.record("emit:*")
    for i in range(5):
        os.kill(the_daemon(k), signal.SIGKILL)
        unit = k.spawn_daemon("--take-over")
        all_done([begin(k, "create", f"t{i}-{n}") for n in range(3)])
        wait_for(lambda: daemon_pid(k) == unit.pid and k.answers(), "the replacement")
    equal(len(names(k)), 16, "sessions")
    k.daemon.wait()
    k.daemon = None
    end_daemon(k)


def test_guard(k):
    """
    A daemon that a command started, and that is killed, is replaced without any further command:
    programs that start are recorded.
    """
    trace = k.traces / "s"
    k.kymo("create", "s", "-o", trace)
    k.kymo("enable-channel", "channel0", *ROOMY)
    k.kymo("enable-event", "emit:*")
    k.kymo("start")
    for i in range(5):
        pid = the_daemon(k)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: daemon_pid(k) not in (0, pid) and k.answers(), "the successor")
        k.app("emit", "-n", 100, "-p", i)
    s = k.kymo_json("status", "s")["session"]
    check(s["unattended_ms"] > 0, s)
    said = k.kymo("stop", "s").stdout
    check("no session daemon ran for" in said, said)
    equal(len(read_trace(trace)[0]), 500, "events")
    k.kymo("destroy", "s")
    end_daemon(k, signal.SIGKILL)
    wait_for(lambda: not kymotest.processes_with(k.mark), "the guard to end: there is no session")


def test_guard_without_sessions(k):
    """
    A daemon was killed again and again, so its guard waits before it starts a successor. Meanwhile
    a command has started one, and ended the session: the guard starts no other.
    """
    k.kymo("create", "s", "--no-output")
    for _ in range(7):
        pid = the_daemon(k)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: daemon_pid(k) not in (0, pid) and k.answers(), "the successor")
    os.kill(the_daemon(k), signal.SIGKILL)
    k.kymo("destroy", "s")
    end_daemon(k)
    wait_for(lambda: not kymotest.processes_with(k.mark), "all daemons and guards to end")


def test_lock_of_a_dead_daemon(k):
    """
    The successor of a killed daemon waits for the lock while a child of the dead one keeps it. A
    child does so until it executes its program.
    """
    k.rundir.mkdir(exist_ok=True)
    dead = subprocess.Popen(["true"])
    dead.wait()
    with open(k.rundir / "lock", "w") as lock:
        lock.write(f"{dead.pid}\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        daemon = k.spawn_daemon()
        wait_for(lambda: daemon.poll() is not None or str(k.rundir / "lock") in kymotest.open_fds(daemon.pid),
            "the daemon to open the lock")
    wait_for(lambda: daemon.poll() is not None or k.answers(), "the daemon to answer")
    equal(daemon.poll(), None, "status of the daemon")
    daemon.terminate()
    daemon.wait()


def test_no_daemon_for_a_while(k):
    """Without a guard, a warning reports the time without a daemon."""
    k.start_daemon()
    trace = k.record("emit:*", channel=ROOMY)
    k.app("emit", "-n", 10)
    k.daemon.kill()
    k.daemon.wait()
    k.app("emit", "-n", 100)  # no daemon registers it
    k.daemon = None
    said = k.kymo("destroy", "s").stdout
    check("no session daemon ran for" in said and "are not in the trace" in said, said)
    equal(len(read_trace(trace)[0]), 10, "events")
    end_daemon(k)


def test_ending_daemon(k):
    """A command that starts daemons waits for the exit of one that completes its traces."""
    k.start_daemon()
    trace = k.record("emit:*")
    (consumer,) = kymotest.consumers(k)
    k.app("emit", "-n", 100)
    kymotest.stop(consumer)
    k.daemon.terminate()
    wait_for(lambda: "ending" in k.daemon_log(), "the daemon to be ending")
    command = begin(k, "create", "next")
    os.kill(consumer, signal.SIGCONT)
    all_done([command])
    equal(k.daemon.wait(kymotest.TIMEOUT), 0, "exit status of the first daemon")
    k.daemon = None
    equal(names(k), ["next"], "sessions")
    # On a busy machine, the daemon has not waited for it: it was stopped for a second.
    wait_for(lambda: not kymotest.alive(consumer), "the consumer to complete the trace")
    equal(len(read_trace(trace)[0]), 100, "events")
    end_daemon(k)


def test_descriptors(k):
    """Daemons that commands start keep no descriptors of their callers: no locks, no pipes."""
    lock = k.top / "lock"
    script = 'exec 9>"$1"; flock 9; "$2" create s >/dev/null; exec 9>&-; flock -n "$1" true'
    k.run(["bash", "-c", script, "bash", lock, kymotest.CLI])
    # returns at the end of both pipes
    done = k.run(["bash", "-c", '"$0" create t 8>&1 7>&2', kymotest.CLI])
    check("created" in done.stdout, done.stdout)
    end_daemon(k)


def test_descriptors_of_record(k):
    """The processes that a killed 'kymo record' leaves keep no descriptors of its caller."""
    reading, writing = os.pipe()
    recorder = subprocess.Popen([kymotest.CLI, "record", kymotest.APPS / "emit", "-w"], env=k.env, pass_fds=[writing],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    k.started.append(recorder)
    equal(recorder.stdout.readline(), "ready\n", "line of the program")
    held_by = [p for p in kymotest.processes_with(k.mark) if "kymo-sessiond" in kymotest.command_of(p) or
        "kymo-consumerd" in kymotest.command_of(p)]
    equal(len(held_by), 2, "daemons")
    node = os.stat(writing)
    for pid in held_by:
        held = [link for _, link, st in kymotest.descriptors(pid) if (st.st_dev, st.st_ino) == (node.st_dev, node.st_ino)]
        equal(held, [], f"of its caller's pipe, {kymotest.command_of(pid)} holds")
    os.close(reading)
    os.close(writing)
    recorder.stdin.write("\n\n")
    recorder.stdin.close()
    recorder.stdin = None
    equal(recorder.wait(kymotest.TIMEOUT), 0, "exit status")


if __name__ == "__main__":
    kymotest.main()
