#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A thousand hostile applications of several users (attack.py) cost the session daemon as much as they
can. The daemon's CPU time for each command is bounded, and applications of other users are served.
The tests count CPU time of the daemon alone, because a machine that is busy delays it in any case;
`make bench` shows the times that users see.
"""

import contextlib
import os
import statistics
import subprocess
import sys

import attack
import kymotest
from kymotest import check, equal, wait_for
from program import ORDER, Program, ask

FIRST_UID = 64900
# Milliseconds of the daemon's CPU time for a command, of which a part is the work for others that
# it does meanwhile: while it waits for a consumer, or for 10 ms for applications.
COST = {"list": 90, "stop": 300, "start": 300}
if kymotest.SANITIZED:  # its checks take several times the work itself
    COST = {command: 4 * cost for command, cost in COST.items()}
PATIENCE = 1500  # what commands may cost beyond that, in total: for applications that answer late
MEMORY = 400  # MiB: of 512 MiB for all users, the daemon uses what its tables need


@contextlib.contextmanager
def crowd(k, n_users, kinds, n_each):
    """Hostile applications of n_users, each with n_each connections of these kinds."""
    if os.getuid():
        raise kymotest.Skip("applications of other users need root")
    k.top.chmod(0o755)
    processes = []
    try:
        for user in range(n_users):
            # at the lowest priority, because other tests run at the same time
            command = ["nice", "-n", 19, sys.executable, attack.__file__, k.rundir / "app.sock", FIRST_UID + user, kinds, n_each]
            processes.append(subprocess.Popen(list(map(str, command)), env={**k.env, "KYMO_TEST_BUILD": str(kymotest.BUILD)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        for p in processes:
            equal(p.stdout.readline(), b"ready\n", "a hostile application")
        yield
        equal([p.poll() for p in processes], [None] * n_users, "hostile applications that have ended")
    finally:
        for p in processes:
            p.stdin.close()
        for p in processes:
            p.wait(kymotest.TIMEOUT)
            p.stdout.close()


def session(k):
    k.start_daemon()
    ask(k, "create", session="s", output=str(k.traces / "s"))
    ask(k, "enable-event", patterns=["*:*"])
    ask(k, "start")


def scheduled_ms(pid):
    """Returns for how long a process has run, and has waited for a CPU, as the scheduler counts."""
    with open(f"/proc/{pid}/schedstat") as f:
        return [int(word) / 1e6 for word in f.read().split()[:2]]


def costs(k, n):
    """
    Returns what each of n rounds of commands cost the daemon. While the consumer waits for a CPU,
    the command waits too, and the daemon does the work for others.
    """
    (consumer,) = kymotest.consumers(k)
    cost = lambda: scheduled_ms(k.daemon.pid)[0] - scheduled_ms(consumer)[1]
    took = {command: [] for command in COST}
    for _ in range(n):
        for command in COST:
            begin = cost()
            ask(k, command, **({} if command == "list" else {"session": "s"}))
            took[command].append(cost() - begin)
    return took


def check_costs(k, n=8):
    took = costs(k, n)
    for command, each in took.items():
        shown = f"{command} costs {', '.join(f'{ms:.0f}' for ms in each)} ms of CPU time"
        check(statistics.median(each) < COST[command] and sum(each) < n * COST[command] + PATIENCE, shown)


def check_served(k):
    """An application of a user who is no attacker is served meanwhile."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            os.setgid(FIRST_UID - 1)
            os.setuid(FIRST_UID - 1)
            program = Program(k, ORDER, name="good")
            os.write(write, b"%d" % len(program.serve()))
        os._exit(0)
    os.close(write)
    with open(read, "rb") as f:
        equal(f.read(), b"1", "events of a good application that are mapped")
    os.waitpid(pid, 0)


def check_attack(k, kinds, n_users=3, n_each=100):
    session(k)
    with crowd(k, n_users, kinds, n_each):
        check_served(k)
        check_costs(k)
        check_served(k)
        check(kymotest.SANITIZED or kymotest.private_mib(k.daemon.pid) < MEMORY, f"the daemon takes {kymotest.private_mib(k.daemon.pid):.0f} MiB")
    check(k.daemon.poll() is None, "the daemon died")
    wait_for(lambda: not ask(k, "list-events", brief=True)["applications"], "the applications to be forgotten")
    ask(k, "destroy", session="s")


def make_test(kind):
    def test(k):
        check_attack(k, kind)

    test.__doc__ = attack.KINDS[kind].__doc__
    test.__name__ = f"test_{kind}"
    return test


if not kymotest.SANITIZED:  # there the same work takes ten times as long
    globals().update({f"test_{kind}": make_test(kind) for kind in attack.KINDS})


def test_all(k):
    """All of these at once, of ten users."""
    check_attack(k, "all", 10, 20 if kymotest.SANITIZED else 100)


def test_listing(k):
    """The list of applications and their events has a part of one user's events, and a count."""
    listed_max = 8 << 20  # bytes, of which each event takes 100 and its name: src/sessiond/control/report.c
    session(k)
    with crowd(k, 1, "small", 8):
        apps = wait_for(lambda: [a for a in ask(k, "list-events", brief=True)["applications"] if a.get("events_left_out")] and
            ask(k, "list-events", brief=True)["applications"], "events to be left out")
        n = sum(len(a["events"]) for a in apps)
        check(n <= listed_max // 100 + 1, f"{n} events are listed")
        check("more, as applications of this user" in k.kymo("list", "-u").stdout, "the command says so")
    ask(k, "destroy", session="s")


def test_listing_of_users(k):
    """Several users together have a limit there, too: the daemon makes the answer at once."""
    listed_all, n_users = 16 << 20, 4  # bytes, of which an event takes 4 for each of its description: as above
    session(k)
    with crowd(k, n_users, "labels", 1):
        def listed():
            apps = ask(k, "list-events")["applications"]
            return len([a for a in apps if a.get("events_left_out")]) == n_users and sum(len(a["events"]) for a in apps)
        n = wait_for(listed, "events of each user to be left out")
        size = 4 * len(attack.labels(0))
        check(n <= listed_all // size + 2 * n_users, f"{n} events of {size} bytes are listed")
    ask(k, "destroy", session="s")


if __name__ == "__main__":
    kymotest.main()
