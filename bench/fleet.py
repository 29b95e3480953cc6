#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
fleet.py [HOSTS]: a fleet on this machine: three servers, and 200 hosts, each with a session daemon,
buffers that overwrite, and an agent. Prints how long a request takes for which no host has data,
and one that 20 hosts answer with 4 MB each, until all of it is stored three times and fetched; and
the CPU time of an agent that ships 1 GB. Needs nats-server and openssl; else it says so and ends.
`make bench` runs it.
"""

import contextlib
import json
import os
import pathlib
import shutil
import statistics
import struct
import sys
import tempfile
import time

import systems
from systems import Emitter, Kymo, wait_for

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("KYMO_BENCH_BUILD", ROOT / "build-bench"))
AGENT = BUILD / "src/fleet/kymo-agent"
N_WITH_DATA, EVENTS, FEW = 20, 110000, 1000  # 36 bytes each
BIG_EVENTS, BIG_BYTES = 14000000, 14000000 * 36
RUNS = 5


class Host(Kymo):
    """A session daemon with directories of its own, and an agent."""

    def __init__(self, top, fleet, name):
        super().__init__(BUILD, top / name)
        self.config = fleet / "hosts" / name / "fleet.conf"

    def daemon_command(self):
        return [*super().daemon_command(), "--no-collectd"]

    @contextlib.contextmanager
    def running(self, n_events, **size):
        self.start()
        try:
            self.create("flight", self.top / "traces", overwrite=True, **size)
            self.cli("start", "flight")
            with Emitter(self) as emitter:
                emitter.run(kind="eight", n=n_events, pin=0)
            with self.helper([AGENT, self.config]) as agent:
                yield agent
        finally:
            self.stop()


def wanted_id(i):
    """The same number four times is in the data of event i, as a W3C identifier could be."""
    return struct.pack("<4i", i, i, i, i).hex()


class Fleet:
    def __init__(self, top, names):
        self.admin = Kymo(BUILD, top / "admin")
        self.directory, self.fetched = self.admin.home / "kymo-fleet", top / "fetched"
        listen = ",".join(f"127.0.0.1:{systems.free_port()}" for _ in range(3))
        self.kymo("setup", "--local", f"--listen={listen}", *names)

    def kymo(self, *args):
        return self.admin.cli("--json", "fleet", *args)

    def wait_hosts(self, n):
        wait_for(lambda: sum(h["answers"] for h in json.loads(self.kymo("hosts"))["hosts"]) == n, "the hosts")

    def request(self, trace_id=None):
        """Returns the seconds until all hosts have said what they have, and the answer."""
        begin = time.monotonic()
        answer = json.loads(self.kymo("snapshot", "--timeout=300s", *([f"--trace-id={trace_id}"] if trace_id else [])))
        return time.monotonic() - begin, answer

    def fetch(self, answer):
        begin = time.monotonic()
        self.kymo("fetch", answer["id"], "--timeout=300s", f"--output={self.fetched}")
        shutil.rmtree(self.fetched)
        return time.monotonic() - begin

    def end(self):
        for path in self.directory.glob("nodes/*/server.pid"):
            with contextlib.suppress(ProcessLookupError, ValueError):
                os.kill(int(path.read_text()), 15)


def median_text(values, unit, digits):
    return f"{statistics.median(values):.{digits}f} {unit} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def measure_requests(top, n_hosts):
    names = [f"host{number}" for number in range(1, n_hosts + 1)]
    fleet = Fleet(top, names)
    held, stored = [], []
    with contextlib.ExitStack() as stack:
        stack.callback(fleet.end)
        for number, name in enumerate(names):
            events = EVENTS if number < N_WITH_DATA else FEW
            stack.enter_context(Host(top, fleet.directory, name).running(events, subbuf="1M", num=8))
        fleet.wait_hosts(n_hosts)
        for _ in range(RUNS):
            held.append(fleet.request("5a" * 16)[0])
            seconds, answer = fleet.request(wanted_id(EVENTS - 10))
            assert sum(h["hit"] for h in answer["hosts"]) == min(N_WITH_DATA, n_hosts), answer
            stored.append(seconds + fleet.fetch(answer))
    print(f"  all {n_hosts} hosts have said what they have after {median_text(held, 's', 2)}; target: ≤ 0.25 s for 200")
    print(f"  {min(N_WITH_DATA, n_hosts)} of them have stored what they have, and it is fetched, after {median_text(stored, 's', 1)}; target: ≤ 3 s")


def measure_agent(top):
    fleet = Fleet(top, ["big"])
    seconds = []
    with contextlib.ExitStack() as stack:
        stack.callback(fleet.end)
        agent = stack.enter_context(Host(top, fleet.directory, "big").running(BIG_EVENTS, subbuf="64M", num=16))
        fleet.wait_hosts(1)
        for _ in range(RUNS):
            before = systems.tasks_cpu_ns(agent.pid)
            fleet.fetch(fleet.request()[1])
            seconds.append((systems.tasks_cpu_ns(agent.pid) - before) / BIG_BYTES)
    print(f"  CPU time of an agent that ships 1 GB to three servers: {median_text(seconds, 's', 2)}; target: ≤ 2 s")


def main():
    missing = [program for program in ("nats-server", "openssl") if not shutil.which(program)]
    if missing or not AGENT.exists():
        return print(f"fleet: not measured: {', '.join(missing) or 'kymo-agent'} missing")
    n_hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"a fleet of three servers and {n_hosts} hosts on this machine, medians of {RUNS} runs:", flush=True)
    for measure in (lambda top: measure_requests(top, n_hosts), measure_agent):
        with tempfile.TemporaryDirectory(prefix="kymo-bench-", ignore_cleanup_errors=True) as top:
            measure(pathlib.Path(top))
    return None


main()
