#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The interface for monitoring systems: `status --check` prints one line and has an exit status, and
another project's parser of OpenMetrics reads `status --metrics`.
"""

import json
import os
import re
import signal
import subprocess
import sys

import kymotest
from kymotest import Skip, check, equal, wait_for

SILENT = "has not worked for"
# Prints each sample of stdin as [name, labels, value]. The parser refuses what the format forbids.
PARSE = """
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = text_string_to_metric_families(sys.stdin.read())
print(json.dumps([[s.name, s.labels, s.value] for f in families for s in f.samples]))
"""


def python_with_parser():
    """Returns a Python that has Debian's module."""
    for python in (sys.executable, "/usr/bin/python3"):
        if not subprocess.run([python, "-c", "import prometheus_client"], capture_output=True).returncode:
            return python
    raise Skip("prometheus_client is missing (Debian package python3-prometheus-client)")


def metrics(k, *args):
    """Returns {name: [(labels, value)]}; fails if the text is not OpenMetrics."""
    text = k.kymo("status", "--metrics", *args).stdout
    samples = json.loads(k.run([python_with_parser(), "-c", PARSE], input=text).stdout)
    found = {}
    for name, labels, value in samples:
        found.setdefault(name, []).append((labels, value))
    return found


def value(found, name, **labels):
    """Returns the one value whose labels include these."""
    values = [v for have, v in found.get(name, []) if all(have.get(key) == text for key, text in labels.items())]
    equal(len(values), 1, f"samples of {name} with {labels}, in {found.get(name)}")
    return values[0]


def checked(k, status, *args):
    """
    Returns the line of `status --check`; its JSON says the same. A consumer that has got no CPU for
    a second, as on a busy machine, is checked again.
    """
    state = ("OK", "WARNING", "CRITICAL", "UNKNOWN")[status]

    def answer():
        done, as_json = (k.kymo(*option, "status", "--check", *args, status=None) for option in ((), ("--json",)))
        return (done, json.loads(as_json.stdout)) if status == 2 or SILENT not in done.stdout + as_json.stdout else None

    done, as_json = wait_for(answer, "the consumer to be at work")
    equal((done.returncode, done.stderr), (status, ""), f"check {args}: {done.stdout}")
    lines = done.stdout.splitlines()
    check(len(lines) == 1 and lines[0].startswith(f"KYMO {state}: "), lines)
    equal((as_json["exit"], as_json["state"]), (status, state), "exit and state in JSON")
    return lines[0]


def test_no_daemon(k):
    check(f"no session daemon is running in {k.rundir}, the KYMO_RUNDIR" in checked(k, 3), "not said that no daemon runs there")
    equal(metrics(k), {"kymo_up": [({}, 0)]}, "metrics without a daemon")
    check(not k.rundir.exists(), "a daemon was started")
    k.env["KYMO_RUNDIR"] = str(k.top / ("x" * 110))
    check("path is too long for a socket: set KYMO_RUNDIR" in checked(k, 3), "not said that no daemon can run")


def test_states(k):
    k.start_daemon()
    check("0 sessions" in checked(k, 0), "a daemon without sessions")
    check("no session 's'" in checked(k, 2, "s"), "an unknown session")
    k.kymo("status", "--metrics", "s", status=1)
    k.record("emit:*")
    equal(checked(k, 0, "s"), "KYMO OK: 1 session, 0 events recorded, 0 discarded", "line")
    k.app("emit", "-n", 500)
    k.kymo("stop", "s")
    check("500 events recorded" in checked(k, 0), "the events")
    check("session 's': is stopped" in checked(k, 1, "s"), "a stopped session that was named")


def test_no_journal(k):
    """A session that ends with its daemon, because its journal cannot be written, is a warning."""
    k.start_daemon()
    journals = k.rundir / "sessions"
    if journals.exists():
        journals.rmdir()
    journals.touch()
    k.record("emit:*")
    check("session 's': would not survive the session daemon" in checked(k, 1), "the check")
    journals.unlink()
    wait_for(lambda: (journals / "s").exists(), "the journal to begin")
    checked(k, 0)


def test_losses(k):
    """Lost events are a warning for as long as --within says."""
    k.start_daemon()
    k.record("emit:*", channel=("--subbuf-size=4K", "--num-subbuf=2"))
    (consumer,) = kymotest.consumers(k)
    kymotest.stop(consumer)
    k.app("emit", "-n", 20000)
    wait_for(lambda: SILENT in k.kymo("status", "--check", status=None).stdout, "the check to miss the consumer")
    checked(k, 2)
    check(value(metrics(k), "kymo_session_consumer_silent_seconds", session="s") > 0, "the consumer's silence")
    os.kill(consumer, signal.SIGCONT)
    wait_for(lambda: k.kymo_json("status", "s")["session"].get("lost_ms_ago") is not None, "the daemon to hear of the losses")
    said = checked(k, 1)
    check(re.search(r"events discarded .* seen [1-9]\d* (s|m|h) ago", said), said)
    checked(k, 0, "--within=0")
    checked(k, 1, "--within=3600")
    # The consumer may write what is in buffers while the daemon counts: then it is counted again.
    waiting = lambda found: value(found, "kymo_session_waiting_events", session="s")
    found = wait_for(lambda: (m := metrics(k)) and not waiting(m) and m, "the consumer to have written all")
    k.kymo("stop", "s")
    session = k.kymo_json("status", "s")["session"]
    equal(value(found, "kymo_session_discarded_events_total", session="s", reason="full"), session["discarded"], "discarded")
    equal(value(found, "kymo_session_recorded_events_total", session="s"), session["recorded"], "recorded")
    check(value(found, "kymo_session_fullest_buffer_ratio", session="s") > 0.5, "high-water mark")


def test_killed_daemon(k):
    """A check reports the daemon's death, and starts no successor."""
    k.start_daemon()
    k.record("emit:*")
    (consumer,) = kymotest.consumers(k)
    k.daemon.kill()
    k.daemon.wait()
    k.daemon = None
    check("was killed" in checked(k, 2), "a killed daemon")
    equal(metrics(k), {"kymo_up": [({}, 0)]}, "metrics after the daemon's death")
    equal(kymotest.consumers(k), [consumer], "consumers")
    k.start_daemon()
    checked(k, 0, "s")
    k.kymo("destroy", "s")


def test_buffers_by_program(k):
    """With buffers of processes, each program has its own counts."""
    k.start_daemon()
    k.record("emit:*", channel=("--buffers=process",))
    apps = [k.spawn("emit", "-n", n, "-w") for n in (100, 300)]
    for app in apps:
        k.expect(app, "ready")
        k.let_go(app)
        k.read_until(app, "done")
    found = metrics(k, "s")
    equal([value(found, "kymo_buffer_recorded_events_total", pid=str(a.pid), program="emit", channel="channel0") for a in apps], [100, 300], "events by program")
    check(value(found, "kymo_buffer_memory_bytes", session="s") > 0, "memory")
    equal(value(found, "kymo_session_applications", session="s"), 2, "applications")
    equal(value(found, "kymo_session_state", session="s", kymo_session_state="started"), 1, "state")
    for app in apps:
        k.let_go(app)
        k.finish(app)


def test_seconds_held(k):
    """How far back a snapshot would reach, of channels that have overwritten something."""
    k.start_daemon()
    k.kymo("create", "s", "--snapshot", "-o", k.traces / "s")
    k.kymo("enable-channel", "channel0", "--subbuf-size=4K", "--num-subbuf=2")
    k.kymo("enable-event", "emit:*")
    k.kymo("start")
    check("kymo_channel_held_shortest_seconds" not in metrics(k), "seconds held before anything was overwritten")
    k.app("emit", "-n", 1000000)

    def held():
        found = metrics(k)
        return [value(found, f"kymo_channel_held_{which}_seconds", session="s", channel="channel0") for which in ("shortest", "longest")]

    before = wait_for(lambda: (h := held())[0] > 0 and h, "a millisecond to pass")
    check(before[0] <= before[1], f"seconds held: {before}")
    wait_for(lambda: all(now > then for now, then in zip(held(), before)), "a past that becomes older")
    k.kymo("destroy", "s")


def test_usage(k):
    for args in (["--check", "--metrics"], ["--within=3s"], ["--check", "--within=soon"], ["--json", "--metrics"]):
        k.kymo("status", *args, status=2)


kymotest.main()
