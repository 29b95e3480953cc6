#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Events that wait for space, in applications that allow it. No event is lost while the consumer is
slow or stopped. An event that waits too long is counted as discarded. The wait ends when the
recording ends.
"""

import contextlib
import os
import pathlib
import signal
import time

import kymotest
from emitcheck import SCALE, check_order, check_values, emitted, run_exact
from kymotest import ONE_CPU, check, check_counts, consumers, equal, wait_for

SMALL = ("--subbuf-size=4K", "--num-subbuf=2")
ALLOWED = {"KYMO_ALLOW_BLOCKING": "1"}
WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def naps(app):
    """Returns how often the program's own threads have slept."""
    n = 0
    for status in pathlib.Path(f"/proc/{app.pid}/task").glob("*/status"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has exited
            lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            n += 0 if lines["Name"].startswith("kymo-") else int(lines["voluntary_ctxt_switches"])
    return n


def wait_until_it_waits(k, app):
    """
    Waits until the program has recorded events, and then sleeps again and again: it does so for no
    other reason. Or until it has ended, if it need not wait.
    """
    ended = lambda: app.poll() is not None
    wait_for(lambda: ended() or k.request(command="status")["session"]["in_buffers"], "events in the buffers")
    before = naps(app)
    wait_for(lambda: ended() or naps(app) > before + 20, "the program to wait")


def begin(k, timeout, n, env=None):
    """
    Starts a session whose consumer is stopped, and an application that emits more events than its
    buffers hold.
    """
    k.start_daemon()
    out = k.record("emit:*", channel=(*SMALL, f"--blocking-timeout={timeout}"))
    consumer, = consumers(k)
    kymotest.stop(consumer)
    return out, consumer, k.spawn("emit", "-n", n, env=env, wrap=ONE_CPU)


RUNS = [["-t", "4", "-n", 20000 // SCALE, "-m"], ["-n", 20000 // SCALE, "-s", "500"]]


def test_lossless(k):
    """Threads and their signal handlers, on all CPUs, write into buffers that are always full."""
    run_exact(k, RUNS, channel=(*SMALL, "--blocking-timeout=inf"), env=ALLOWED)


def test_lossless_without_rseq(k):
    """
    A handler cannot wait for the record that it interrupted: its event is counted as discarded.
    """
    env = {**ALLOWED, **WITHOUT_RSEQ}
    _, events, counts = run_exact(k, RUNS, channel=(*SMALL, "--blocking-timeout=inf"), env=env, lossless=False)
    equal(sum(e.name == "emit:record" for e in events), sum(n for n, _ in counts), "recorded by threads")


def test_slow_consumer(k, env=None):
    """The application waits as long as the consumer is stopped, and no longer."""
    out, consumer, app = begin(k, "inf", 3000, env={**ALLOWED, **(env or {})})
    for _ in range(3):
        wait_until_it_waits(k, app)
        os.kill(consumer, signal.SIGCONT)
        kymotest.stop(consumer)
    os.kill(consumer, signal.SIGCONT)
    total = sum(emitted(k.finish(app)))
    k.kymo("stop")
    events = check_counts(k, out, total)
    equal(len(events), total, "recorded")
    check_values(events)
    check_order(events)


def test_slow_consumer_without_rseq(k):
    test_slow_consumer(k, env=WITHOUT_RSEQ)


def test_timeout(k, env=None):
    """Each event that finds no space waits for its timeout, and is then counted."""
    begun = time.monotonic()
    out, consumer, app = begin(k, "2ms", 400, env={**ALLOWED, **(env or {})})
    total = sum(emitted(k.finish(app)))
    passed = time.monotonic() - begun
    os.kill(consumer, signal.SIGCONT)
    k.kymo("stop")
    events = check_counts(k, out, total)
    check(passed >= 0.002 * (total - len(events)) > 0, f"{total - len(events)} events were discarded within {passed} s")


def test_timeout_without_rseq(k):
    test_timeout(k, env=WITHOUT_RSEQ)


def test_not_allowed(k):
    """Without the variable in their environment, applications never wait, and status names them."""
    for n, env in enumerate((None, {"KYMO_ALLOW_BLOCKING": "0"}, {"KYMO_ALLOW_BLOCKING": ""})):
        if not n:
            out, consumer, app = begin(k, "inf", 1000)
        else:
            app = k.spawn("emit", "-n", 1000, env=env, wrap=ONE_CPU)
        k.finish(app)
    os.kill(consumer, signal.SIGCONT)
    waiting = [k.spawn("emit", "-w", env=env) for env in (None, ALLOWED)]
    for app in waiting:
        k.expect(app, "ready")
    told = [w for w in k.kymo_json("status")["warnings"] if "KYMO_ALLOW_BLOCKING=1" in w]
    equal(len(told), 1, f"warnings of it: {told}")
    check(f"(pid {waiting[0].pid})" in told[0] and f"(pid {waiting[1].pid})" not in told[0], told[0])
    for app in waiting:
        app.kill()
    k.kymo("stop")
    check_counts(k, out, 3000)


def end_of_waiting(k, order, env=None):
    """
    The application waits. `order` ends the wait although the consumer is stopped: one event had
    waited, and is counted.
    """
    out, consumer, app = begin(k, "inf", 1000, env={**ALLOWED, **(env or {})})
    wait_until_it_waits(k, app)
    order()
    total = sum(emitted(k.finish(app)))
    os.kill(consumer, signal.SIGCONT)
    return out, total


def test_pause_ends_waiting(k, env=None):
    out, _ = end_of_waiting(k, lambda: k.kymo("pause"), env=env)
    equal(k.kymo_json("stop")["sessions"][0]["discarded"], 1, "events discarded: the one that waited")
    kymotest.read_trace(out)


def test_pause_ends_waiting_without_rseq(k):
    test_pause_ends_waiting(k, env=WITHOUT_RSEQ)


def test_stop_ends_waiting(k):
    end_of_waiting(k, lambda: k.kymo("stop", "--no-wait"))
    reply = wait_for(lambda: (lambda r: r["ok"] and r)(k.request(command="destroy")), "the stop to be done")
    equal(reply["sessions"][0]["discarded"], 1, "events discarded: the one that waited")


def test_destroy_ends_waiting(k):
    end_of_waiting(k, lambda: k.kymo("destroy", "--no-wait"))
    wait_for(lambda: not k.kymo_json("list")["sessions"], "the session to go")


def test_disabling_ends_waiting(k):
    end_of_waiting(k, lambda: k.kymo("disable-event", "-a"))


def test_set_ends_waiting(k):
    """From now on the application discards the events for which there is no space."""
    out, total = end_of_waiting(k, lambda: k.kymo("set", "blocking-timeout=0"))
    k.kymo("stop")
    check_counts(k, out, total)


def test_set_begins_waiting(k):
    """An application that has the buffers already is notified."""
    k.start_daemon()
    out = k.record("emit:*", channel=SMALL)
    app = k.spawn("emit", "-w", "-n", 3000, env=ALLOWED, wrap=ONE_CPU)
    k.expect(app, "ready")
    k.kymo("set", "-c", "channel0", "blocking-timeout=inf")
    consumer, = consumers(k)
    kymotest.stop(consumer)
    k.let_go(app)
    wait_until_it_waits(k, app)
    os.kill(consumer, signal.SIGCONT)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)
    k.kymo("stop")
    equal(len(check_counts(k, out, 3000)), 3000, "recorded")


def test_death_of_the_daemon_ends_waiting(k):
    """
    Recording continues without the daemon. After one event has waited in vain, the application does
    not wait again, until a successor enables it.
    """
    def kill():
        k.daemon.kill()
        k.daemon.wait()
        k.daemon = None

    out, total = end_of_waiting(k, kill)
    k.start_daemon()
    k.kymo("destroy", "s")
    events = check_counts(k, out, total)
    check(len(events) < total, "nothing was discarded")


def test_killed_while_waiting(k):
    """
    An application that is killed while it waits leaves its recorded events, and does not count the
    event that waits.
    """
    out, consumer, app = begin(k, "inf", 1000, env=ALLOWED)
    wait_until_it_waits(k, app)
    app.kill()
    app.wait()
    os.kill(consumer, signal.SIGCONT)
    k.kymo("stop")
    events = check_counts(k, out, len(kymotest.read_trace(out)[0]))
    equal(sorted(kymotest.integers(e)["seq"] for e in events), list(range(len(events))), "what was recorded before")


def test_fork_while_waiting(k, env=None):
    """
    A signal handler forks while an event waits. The event is the parent's, and the child records
    what follows.
    """
    k.start_daemon()
    out = k.record("waits:*", channel=(*SMALL, "--blocking-timeout=inf"))
    consumer, = consumers(k)
    kymotest.stop(consumer)
    app = k.spawn("waits", 2000, env={**ALLOWED, **(env or {})}, wrap=ONE_CPU)
    wait_until_it_waits(k, app)
    for _ in range(3):
        app.send_signal(signal.SIGUSR1)
    wait_for(lambda: len([p for p in kymotest.processes_with(k.mark) if "apps/waits" in kymotest.command_of(p)]) > 1,
        "a child")
    os.kill(consumer, signal.SIGCONT)
    # ignores the output of sanitizers
    total = sum(int(line) for line in k.finish(app).splitlines() if line.isdigit())
    k.kymo("destroy")
    check_counts(k, out, total)


def test_fork_while_waiting_without_rseq(k):
    test_fork_while_waiting(k, env=WITHOUT_RSEQ)


if __name__ == "__main__":
    kymotest.main()
