#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The session daemon as a service: readiness, restarts by the service manager, for which commands
wait, and the end of consumers at a shutdown. The test stands in for the service manager.
"""

import os
import signal
import socket
import subprocess

import kymotest
from kymotest import CLI, SOURCE, check, equal, processes_with, read_trace, wait_for


class Manager:
    """The service manager's socket; starts the daemon as a unit with Type=notify does."""

    def __init__(self, k):
        self.k = k
        self.path = str(k.top / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(kymotest.TIMEOUT)
        self.socket.bind(self.path)

    def start(self):
        daemon = self.k.start_daemon("--take-over", env={"NOTIFY_SOCKET": self.path})
        equal(self.socket.recv(4096).decode().splitlines()[:2], ["READY=1", f"MAINPID={daemon.pid}"], "notice of readiness")
        return daemon

    def end(self, signo):
        """Ends the daemon as KillMode=process does; returns its exit status."""
        daemon, self.k.daemon = self.k.daemon, None
        daemon.send_signal(signo)
        return daemon.wait(kymotest.TIMEOUT)


def is_managed(k):
    return (k.rundir / "managed").exists()


def daemons(k):
    return [pid for pid in processes_with(k.mark) if "kymo-sessiond" in kymotest.command_of(pid)]


def test_restart(k):
    """`systemctl restart`: SIGUSR2 hands the sessions over, and nothing is lost."""
    manager = Manager(k)
    manager.start()
    trace = k.record("emit:*")
    (consumer,) = kymotest.consumers(k)
    k.app("emit", "-n", 1000)
    equal(manager.end(signal.SIGUSR2), 0, "exit status")
    check(is_managed(k), "a daemon that will be restarted is not managed any more")
    manager.start()
    k.app("emit", "-n", 500)
    equal(kymotest.consumers(k), [consumer], "consumers")
    k.kymo("destroy", "s")
    equal(len(read_trace(trace)[0]), 1500, "events")
    manager.socket.close()
    k.stop_daemon()
    check(not is_managed(k), "a service that was stopped is still managed")


def test_command_waits(k):
    """
    Between the daemon's death and its restart, a command waits, and starts no daemon that the
    manager does not know.
    """
    manager = Manager(k)
    manager.start()
    k.record("emit:*")
    manager.end(signal.SIGKILL)
    command = subprocess.Popen([CLI, "status", "s"], env=k.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    k.started.append(command)
    # It has asked in vain, and sleeps before it asks again.
    wait_for(lambda: command.poll() is not None or "nanosleep" in wchan(command.pid), "the command to wait")
    equal((command.poll(), daemons(k)), (None, []), "the command's end, and daemons")
    daemon = manager.start()
    out, err = command.communicate(timeout=kymotest.TIMEOUT)
    equal((command.returncode, err, daemons(k)), (0, "", [daemon.pid]), "status, messages and daemons")
    check(out.startswith("s [started]"), out)
    k.kymo("destroy", "s")
    manager.socket.close()


def wchan(pid):
    try:
        return open(f"/proc/{pid}/wchan", encoding="ascii").read()
    except OSError:
        return ""


def test_consumer_without_daemon(k):
    """At a shutdown nobody restarts the daemon: SIGTERM makes the consumer complete the trace."""
    k.start_daemon()
    trace = k.record("emit:*", channel=("--switch-timer=0",))
    k.app("emit", "-n", 1000)
    (consumer,) = kymotest.consumers(k)
    os.kill(consumer, signal.SIGTERM)  # with a daemon, which ends it if it should end
    equal(k.kymo_json("status", "s")["session"]["state"], "started", "state")
    equal(kymotest.consumers(k), [consumer], "consumers with a daemon")
    k.daemon.kill()
    k.daemon.wait()
    k.daemon = None
    wait_for(lambda: "waits for its successor" in k.daemon_log(), "the consumer to miss the daemon")
    os.kill(consumer, signal.SIGTERM)
    wait_for(lambda: not kymotest.alive(consumer), "the consumer to end")
    equal(len(read_trace(trace)[0]), 1000, "events")
    k.start_daemon()


def unit_words(lines, setting):
    """The words of a setting of a unit; none if the unit does not have it."""
    return [word for line in lines if line.startswith(setting + "=") for word in line.partition("=")[2].split()]


def test_units(k):
    """The units restart, stop and notify as the tests above assume."""
    for path in ("kymo-sessiond.service.in", "user/kymo-sessiond.service.in"):
        lines = (SOURCE / "data" / path).read_text().splitlines()
        for wanted in ("Type=notify", "KillMode=process", "KillSignal=SIGTERM", "RestartKillSignal=SIGUSR2", "Restart=on-failure",
            "RuntimeDirectory=kymo", "RuntimeDirectoryPreserve=yes", 'ExecStart="@bindir@/kymo-sessiond" --take-over'):
            check(wanted in lines, f"{path}: {wanted} is missing")
        check("AF_INET" in unit_words(lines, "RestrictAddressFamilies"), f"{path}: kymo-agentd cannot listen")
        # without it, /proc/kallsyms shows root no address; ProtectKernelLogs= removes it
        limits = unit_words(lines, "CapabilityBoundingSet")
        check(not limits or "CAP_SYSLOG" in limits and not unit_words(lines, "ProtectKernelLogs"), f"{path}: no addresses of the kernel")
    lines = (SOURCE / "data" / "kymo-agent.service.in").read_text().splitlines()
    for wanted in ('ExecStart="@bindir@/kymo-agent" /etc/kymo/fleet/fleet.conf', "ConditionPathExists=/etc/kymo/fleet/fleet.conf", "Restart=always"):
        check(wanted in lines, f"kymo-agent.service.in: {wanted} is missing")


kymotest.main()
