#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
'kymo fleet' and kymo-agent (docs/fleet.md) with a real nats-server: hosts are known and asked,
those that do not answer are named, and snapshots arrive whole and once, whatever is killed. A
host's identity is good for that host only.
"""

import base64
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import time

import kymotest
from kymotest import APPS, CLI, RUN_FROM, SANITIZED, TIMEOUT, alive, check, equal, wait_for

AGENT = RUN_FROM / "src" / "fleet" / "kymo-agent"
EVENTS = {"web1": 3000, "db1": 500}
SEGMENT = 512 << 10
MANY = 2200  # files, whose paths together are longer than a message
PATIENT = f"--timeout={TIMEOUT}s"
ALL = os.environ.get("KYMO_TEST_ALL") == "1"
# The fleet's own authority is enough. A sanitized program takes 70 ms to read those of the system.
os.environ.update(SSL_CERT_FILE="/dev/null", SSL_CERT_DIR="/dev/null")


def need_fleet():
    if not AGENT.exists():
        raise kymotest.Skip("this build has no kymo-agent: libnats is missing (Debian package libnats-dev)")
    kymotest.need_program("nats-server", "nats-server")
    kymotest.need_program("openssl", "openssl")


class Host:
    """A host of the fleet: a session daemon of its own, and an agent."""

    def __init__(self, fleet, name, *options):
        self.fleet, self.k, self.name = fleet, fleet.k, name
        self.env = {"KYMO_RUNDIR": str(self.k.top / f"run-{name}"), "KYMO_REGISTER_TIMEOUT": "-1",
            "PATH": f"{pathlib.Path(CLI).parent}:{os.environ['PATH']}"}
        self.daemon = self.k.spawn_daemon(*options, env=self.env)
        wait_for(lambda: json.loads(self.kymo("--json", "list").stdout).get("daemon", True), f"the daemon of {name}")
        self.agent = None

    @property
    def held(self):
        return self.k.home / "kymo-fleet" / "hosts" / self.name / "held" / self.name

    def start_agent(self, config=None, wrap=()):
        with open(self.k.top / f"{self.name}.log", "ab") as log:
            self.agent = subprocess.Popen([*wrap, AGENT, config or self.fleet.config(self.name)], env={**self.k.env, **self.env}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.k.started.append(self.agent)

    def kill_agent(self):
        self.agent.kill()
        self.agent.wait()

    def kymo(self, *args):
        return self.k.run([CLI, *args], env=self.env)

    def record(self, session="flight", *options):
        self.kymo("create", session, *options)
        self.kymo("enable-event", "-s", session, "emit:record")
        self.kymo("start", session)

    def emit(self, n):
        self.k.app("emit", "-n", n, env={**self.env, **kymotest.IMPATIENT})

    def state(self, session):
        return json.loads(self.kymo("--json", "status", session).stdout)["session"]["state"]

    def end(self):
        if self.agent:
            self.kill_agent()
        self.daemon.terminate()
        equal(self.daemon.wait(TIMEOUT), 0, "status of the session daemon")


class Fleet:
    def __init__(self, k, n_servers=1):
        self.k, self.hosts, self.n_servers = k, [], n_servers

    def setup(self, *names):
        """Starts the servers that do not run. A port may be in use just after a kill."""
        listen = ",".join(["127.0.0.1:0"] * self.n_servers)
        done = None
        def attempt():
            nonlocal done
            done = self.k.run([CLI, "fleet", "setup", "--local", f"--listen={listen}", *names], status=None)
            return done.returncode == 0
        wait_for(attempt, lambda: f"the fleet's servers to start: {done.stderr}{self.log()}")
        return done.stdout

    def node(self, number=1):
        return self.k.home / "kymo-fleet" / "nodes" / str(number)

    def log(self):
        paths = [self.node(number) / "server.log" for number in range(1, self.n_servers + 1)]
        return "".join(path.read_text()[-2000:] for path in paths if path.exists())

    def config(self, name):
        return self.k.home / "kymo-fleet" / "hosts" / name / "fleet.conf"

    def add(self, name, *options):
        with open(self.config(name), "a") as f:
            f.write("hold = held\nbeat = 200ms\n")
        host = Host(self, name, *options)
        self.hosts.append(host)
        return host

    def pid(self, number=1):
        return int((self.node(number) / "server.pid").read_text())

    def kill_server(self, number=1, how=signal.SIGKILL):
        pid = self.pid(number)
        os.kill(pid, how)
        wait_for(lambda: not alive(pid), "the end of a server")

    def kymo(self, *args, status=0, **options):
        return self.k.run([CLI, "fleet", *args], status=status, **options)

    def json(self, *args, status=0):
        return json.loads(self.k.run([CLI, "--json", "fleet", *args], status=status).stdout)

    def hurried(self, *args):
        """
        Returns the reply of each host to a request, when some hosts are silent. The server may get
        no CPU for that second either: then it is asked again.
        """
        ask = lambda: json.loads(self.k.run([CLI, "--json", "fleet", *args, "--timeout=1s"], status=None).stdout).get("hosts")
        return {h["host"]: h for h in wait_for(ask, f"the server's reply to {args}")}

    def wait_hosts(self, *names):
        """Waits until these hosts answer, and are announced: so requests wait for them."""
        wait_for(lambda: {h["host"] for h in self.json("hosts", PATIENT)["hosts"] if h["answers"] and h["announced"]} >= set(names), f"hosts {names}")

    def end(self):
        for host in self.hosts:
            host.end()
        for number in range(1, self.n_servers + 1):
            self.kill_server(number, signal.SIGTERM)


@contextlib.contextmanager
def fleet_of(k, *names, setup=(), daemon=(), n_servers=1):
    """A fleet with these hosts, whose sessions `flight` record for snapshots."""
    need_fleet()
    fleet = Fleet(k, n_servers)
    fleet.setup(*setup, *names)
    for name in names:
        host = fleet.add(name, *daemon)
        host.record("flight", "--snapshot", "-o", k.traces / name)
        host.start_agent()
    fleet.wait_hosts(*names)
    yield fleet
    fleet.end()


def paths(top):
    """Returns all that is below a directory; the server and agents may remove some meanwhile."""
    return {pathlib.Path(folder, name) for folder, folders, files in os.walk(top) for name in (*folders, *files)}


def tree_of(top):
    """The files of a trace; not those that say how it came, nor metadata, whose clock is set."""
    return {str(p.relative_to(top)): p.read_bytes() for p in sorted(top.rglob("*"))
        if p.is_file() and not p.name.startswith(".") and p.name != "metadata"}


def count_of(trace):
    events, discarded = kymotest.read_trace(trace)
    equal(discarded, 0, f"discarded events of {trace}")
    return len(events)


# ---- hosts


def test_hosts(k):
    """Hosts announce themselves; those that do not answer are known as silent, until forgotten."""
    with fleet_of(k, "web1", "db1") as fleet:
        web, db = fleet.hosts
        hosts = lambda: {h["host"]: h for h in fleet.json("hosts", PATIENT)["hosts"]}
        # An agent waits for its session daemon for 2 s only.
        found = wait_for(lambda: (h := hosts()) and not any("trouble" in host for host in h.values()) and h, "agents that reach their daemons")
        equal(sorted(found), ["db1", "web1"], "hosts")
        equal(found["web1"]["sessions"], [{"name": "flight", "state": "started"}], "sessions of a host")
        equal(found["web1"]["boot"], pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "boot")
        line = re.compile(r"^web1 +[0-9.]+ s +answers +flight \(started\)$", re.M)
        wait_for(lambda: line.search(fleet.kymo("hosts", PATIENT).stdout), "the line of a host")
        second = k.run([AGENT, fleet.config("web1")], env=fleet.hosts[0].env, status=1)
        equal(second.stderr, "kymo-agent: another kymo-agent of host 'web1' runs on this machine\n", "a second agent")
        kymotest.stop(db.daemon.pid)
        late = lambda: hosts()["db1"].get("trouble") == "the session daemon has not answered within 2 s"
        wait_for(late, "a host with a daemon that does not run")
        db.daemon.send_signal(signal.SIGCONT)
        wait_for(lambda: "trouble" not in hosts()["db1"], "a host with a daemon that runs again")
        db.kill_agent()
        silent = re.compile(r"^db1 +[0-9.]+ s +silent +flight \(started\)$", re.M)
        wait_for(lambda: silent.search(fleet.kymo("hosts", "--timeout=1s", status=None).stdout), "a silent host")
        equal(fleet.hurried("hosts")["db1"]["answers"], False, "a killed agent answers")
        # One that is forgotten is still named, because it has an identity of this fleet.
        check("db1 still has an identity" in fleet.kymo("forget", "db1").stderr, "a forgotten host with an identity")
        equal({h["host"]: h["announced"] for h in fleet.json("hosts", PATIENT)["hosts"]}, {"web1": True, "db1": False}, "hosts, one forgotten")
        check(re.search(r"^db1 +- +absent +its agent has not announced itself$", fleet.kymo("hosts", PATIENT).stdout, re.M), "an absent host")
        made = fleet.json("snapshot", PATIENT, status=1)
        equal({h["host"]: h.get("error") for h in made["hosts"]}, {"web1": None, "db1": "its agent has not announced itself"}, "outcomes")
        done = fleet.kymo("fetch", made["id"], "-o", k.top / "got", PATIENT)
        equal(done.stderr, "kymo: db1 is not in the snapshot: its agent has not announced itself\n", "an absent host in a snapshot")
        identity = fleet.config("db1").parent
        identity.rename(k.top / "db1")
        equal([h["host"] for h in fleet.json("hosts", PATIENT)["hosts"]], ["web1"], "hosts without the one that was removed")
        equal(fleet.kymo("forget", "db1", status=1).stderr, "kymo: no host 'db1' has announced itself\n", "a host that is not there")
        (k.top / "db1").rename(identity)
        db.start_agent()
        fleet.wait_hosts("web1", "db1")


def test_setup_again(k):
    """Setup makes what is missing, keeps what is there, and hides what is secret."""
    with fleet_of(k, "web1") as fleet:
        top = k.home / "kymo-fleet"
        with open(top / "ca.crt", "a") as file:
            file.write("Certificates may have text between them.\n" * 500)
        before = {p: p.read_bytes() for p in top.rglob("*") if p.suffix in (".crt", ".key")}
        check(all(p.stat().st_mode & 0o077 == 0 for p in before if p.suffix == ".key"), "a key that others may read")
        equal(top.stat().st_mode & 0o777, 0o700, "mode of the directory")
        pid = fleet.pid()
        fleet.setup("db1")
        equal(fleet.pid(), pid, "the server, which runs already")
        equal({p: p.read_bytes() for p in before}, before, "identities")
        equal((top / "hosts" / "db1" / "ca.crt").read_bytes(), before[top / "ca.crt"], "a long file of authorities")
        host = fleet.add("db1")
        host.start_agent()
        fleet.wait_hosts("web1", "db1")
        for bad in ("a.b", "../x", "admin", ""):
            fleet.kymo("setup", "--local", bad, status=2)


def test_start_stop(k):
    """Sessions are started and stopped everywhere; each host that did not do it is named."""
    with fleet_of(k, "web1", "db1") as fleet:
        web, db = fleet.hosts
        equal(fleet.kymo("stop", "flight", PATIENT).stdout, "db1: done\nweb1: done\n", "stop")
        equal([h.state("flight") for h in (web, db)], ["stopped"] * 2, "states")
        equal(fleet.kymo("start", "flight", PATIENT).stdout, "db1: done\nweb1: done\n", "start")
        equal([h.state("flight") for h in (web, db)], ["started"] * 2, "states")
        web.record("other", "-o", k.traces / "other")
        done = fleet.kymo("stop", "other", PATIENT, status=1)
        equal(done.stdout, "db1: there is no session 'other': 'kymo list' shows them\nweb1: done\n", "a session of one host")
        equal(done.stderr, "kymo: 1 of 2 hosts did not carry out the request\n", "its error")
        db.kill_agent()
        equal(fleet.hurried("stop", "flight")["db1"]["error"], "no answer", "a host without an agent")
        fleet.kymo("stop", "../flight", status=2)
        fleet.kymo("stop", status=2)
        fleet.kymo("stop", "flight", "--reason=x", status=2)


# ---- snapshots


def check_trees(fleet, got, snapshot):
    for host in fleet.hosts:
        equal(tree_of(got / host.name / "flight"), tree_of(host.held / snapshot / "flight"), f"files of {host.name}")


def check_fetched(fleet, got, snapshot, events):
    check_trees(fleet, got, snapshot)
    for host in fleet.hosts:
        equal(count_of(got / host.name), events[host.name], f"events of {host.name}")


def clock_of(trace):
    """Returns the clock of a fetched trace: offset in cycles, frequency, and error in ns."""
    [metadata] = trace.rglob("metadata")
    text = metadata.read_text(errors="replace")
    number = lambda name: int(re.search(rf"\t{name} = (-?\d+);", text)[1])
    check('clock_source = "round-trip";' in text, "a clock that was not measured")
    return number("offset_s") * number("freq") + number("offset"), number("freq"), number("clock_error_ns")


def check_clocks(one, other, at_ns):
    """Both have the counter of this machine: when it was measured, both are right within errors."""
    (one_offset, one_freq, one_error), (other_offset, other_freq, other_error) = one, other
    counter = at_ns * one_freq // 10**9 - one_offset
    apart = abs((counter + other_offset) * 10**9 // other_freq - at_ns)
    check(apart <= one_error + other_error + 1000, f"clocks are apart by {apart} ns, with errors of {one_error} and {other_error}")


def test_snapshot(k):
    """A snapshot of all hosts becomes one directory, with each event, in the order of one clock."""
    with fleet_of(k, "web1", "db1") as fleet:
        for host in fleet.hosts:
            host.emit(EVENTS[host.name])
        made = fleet.json("snapshot", "--reason=it was slow", PATIENT)
        equal({h["host"]: h["sessions"][0]["recorded"] for h in made["hosts"]}, EVENTS, "events that are held")
        got = k.top / "got"
        text = fleet.kymo("fetch", made["id"], "-o", got, PATIENT).stdout
        check("reason: it was slow\n" in text, text)
        check_fetched(fleet, got, made["id"], EVENTS)
        equal(count_of(got), sum(EVENTS.values()), "events of all hosts together")
        equal(json.loads(k.run([CLI, "--json", "stat", got]).stdout)["events"], sum(EVENTS.values()), "events by kymo stat")
        check_clocks(clock_of(got / "web1"), clock_of(got / "db1"), made["hosts"][0]["at_ns"])
        fleet.kymo("fetch", "-o", k.top / "newest", PATIENT)
        equal(tree_of(k.top / "newest"), tree_of(got), "the newest snapshot")
        before = tree_of(got)
        check("was here" in fleet.kymo("fetch", made["id"], "-o", got).stdout, "fetched twice")
        equal(tree_of(got), before, "files that were fetched again")
        fleet.kymo("fetch", "20000101-000000-none", "-o", got, status=1)
        fleet.kymo("fetch", "../x", status=2)


def test_copied_identity(k):
    """Two machines with the identity of one host: a snapshot says so."""
    with fleet_of(k, "web1") as fleet:
        fleet.json("snapshot", PATIENT)
        copy = k.top / "copy"
        shutil.copytree(fleet.config("web1").parent, copy, ignore=shutil.ignore_patterns("held"))
        other = Host(fleet, "copy")
        fleet.hosts.append(other)
        other.record("flight", "--snapshot", "-o", k.traces / "copy")
        other.start_agent(copy / "fleet.conf")
        why = lambda: json.loads(k.run([CLI, "--json", "fleet", "snapshot", PATIENT], status=None).stdout)["hosts"][0].get("error")
        wait_for(lambda: why() == "two agents answer for it: give each machine an identity of its own", "the second agent to be reported")


def test_snapshot_of_few(k):
    """Sessions that only some hosts have are shipped from these, and the others are named."""
    with fleet_of(k, "web1", "db1") as fleet:
        fleet.hosts[0].record("other", "--snapshot", "-o", k.traces / "other")
        for host in fleet.hosts:
            host.emit(EVENTS[host.name])
        lacks = "there is no session 'other': 'kymo list' shows them"
        made = fleet.json("snapshot", "other", PATIENT, status=1)
        equal({h["host"]: (h.get("error"), h["ships"]) for h in made["hosts"]}, {"web1": (None, True), "db1": (lacks, False)}, "outcomes")
        done = fleet.kymo("fetch", made["id"], "-o", k.top / "one", PATIENT)
        check(done.stdout.endswith(f"\n{EVENTS['web1']} events of 1 host in {k.top / 'one'}\n"), done.stdout)
        equal(done.stderr, f"kymo: db1 is not in the snapshot: {lacks}\n", "a host without the session")
        fleet.hosts[0].record("empty", "--snapshot", "-o", k.traces / "empty")
        made = fleet.json("snapshot", "other", "flight", "empty", PATIENT, status=1)
        done = fleet.kymo("fetch", made["id"], "-o", k.top / "both", PATIENT)
        equal(done.stderr, "".join(f"kymo: db1/{name} is not in the snapshot: {lacks.replace('other', name)}\n" for name in ("other", "empty")),
            "a host without two of the sessions")
        check("web1/empty: 0 events, 0 discarded\n" in done.stdout, done.stdout)
        equal([p.name for p in (k.top / "both" / "db1").iterdir()], ["flight"], "its sessions")
        none = fleet.kymo("snapshot", "nowhere", PATIENT, status=1).stdout
        check(re.search(r"^snapshot \S+: no host ships any of it$", none, re.M), none)


def test_hold_size(k):
    """Snapshots that are shipped make room for new ones, the oldest first."""
    with fleet_of(k, "web1") as fleet:
        host = fleet.hosts[0]
        host.kill_agent()
        with open(fleet.config("web1"), "a") as f:
            f.write("hold-size = 100K\n")
        host.start_agent()
        host.emit(3000)  # 72 KB
        made = []
        for _ in range(4):
            answer = fleet.json("snapshot", PATIENT)
            equal(answer["hosts"][0].get("error"), None, "error of a host")
            made.append(answer["id"])
            wait_for((host.held / made[-1] / "shipped").exists, "the end of shipping")
        held = {p.name for p in host.held.iterdir()}
        check(made[0] not in held and made[-1] in held, f"snapshots {made}, of which are held: {held}")
        fleet.kymo("fetch", made[0], "-o", k.top / "got", PATIENT)


def test_unreadable(k):
    """A snapshot that cannot be read does not keep the others from being shipped."""
    with fleet_of(k, "web1") as fleet:
        host = fleet.hosts[0]
        host.emit(10)
        for _ in range(2):
            made = fleet.json("snapshot", PATIENT)["id"]
            wait_for((host.held / made / "shipped").exists, "the end of shipping")
        host.kill_agent()
        # In the order in which the agent finds them.
        first, second = os.listdir(host.held)
        for name in (first, second):
            (host.held / name / "shipped").unlink()
        next((host.held / first).rglob("metadata")).chmod(0)
        host.start_agent(wrap=("setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ())
        wait_for((host.held / second / "shipped").exists, "the other snapshot to be shipped")
        check(not (host.held / first / "shipped").exists(), "a snapshot counts as shipped that cannot be read")


def test_rate(k):
    """An agent ships no more bytes in a second than its file says, and answers meanwhile."""
    with fleet_of(k, "web1") as fleet:
        host = fleet.hosts[0]
        host.kill_agent()
        with open(fleet.config("web1"), "a") as f:
            f.write("rate = 10K\n")
        host.start_agent()
        host.emit(3000)  # 24 KB of it are random numbers, and others follow in further segments
        made = fleet.json("snapshot", PATIENT)["id"]
        begin = time.monotonic()
        equal(len(fleet.json("hosts", PATIENT)["hosts"]), 1, "hosts while it ships")
        wait_for((host.held / made / "shipped").exists, "the end of shipping")
        check(time.monotonic() - begin > 1, "the segments came at once")
        fleet.kymo("fetch", made, "-o", k.top / "got", PATIENT)


def test_trace_id(k):
    """Hosts ship only if the id is in their events."""
    with fleet_of(k, "web1", "db1") as fleet:
        for host in fleet.hosts:
            host.emit(EVENTS[host.name])
        first = fleet.json("snapshot", PATIENT)
        # Number and check of a late record, which only one of the hosts has.
        number = struct.pack("<Q", EVENTS["web1"] - 1000)
        data = [p.read_bytes() for p in (fleet.hosts[0].held / first["id"]).rglob("channel0_*") if p.suffix != ".kyx"]
        [wanted] = {d[at : at + 16] for d in data for at in [d.find(number)] if at >= 0}
        made = fleet.json("snapshot", f"--trace-id={wanted.hex()}", PATIENT)
        equal({h["host"]: (h["hit"], h["ships"]) for h in made["hosts"]}, {"web1": (True, True), "db1": (False, False)}, "hits")
        fleet.kymo("fetch", made["id"], "-o", k.top / "got", PATIENT)
        equal([p.name for p in (k.top / "got").iterdir()], ["web1"], "hosts that were fetched")
        nowhere = fleet.kymo("snapshot", f"--trace-id={'5a' * 16}", PATIENT).stdout
        check(nowhere.count("; does not have the trace id\n") == 2, nowhere)
        [made] = re.findall(r"^snapshot (\S+): no host ships any of it$", nowhere, re.M)
        fleet.kymo("fetch", made, status=1)
        fleet.kymo("snapshot", "--trace-id=xyz", status=2)


@kymotest.without_sanitizers
def test_trace_id_in_doubt(k):
    """A host that cannot search its events says so, and ships them."""
    with fleet_of(k, "web1") as fleet:
        web = fleet.hosts[0]
        web.emit(20000)
        size = int(re.search(r"VmSize:\s+(\d+)", pathlib.Path(f"/proc/{web.agent.pid}/status").read_text())[1]) << 10
        resource.prlimit(web.agent.pid, resource.RLIMIT_AS, (size + (64 << 10), resource.RLIM_INFINITY))
        made = fleet.json("snapshot", f"--trace-id={'5a' * 16}", PATIENT, status=None)
        [host] = made["hosts"]
        equal((host["ok"], host.get("hit"), host["ships"]), (False, None, True), "the search")
        check("the search for the trace id failed: Cannot allocate memory" in host["error"], host)


def test_killed(k):
    """The server, agents and fetches are killed at any time: all events arrive, once."""
    events = {"web1": 200000, "db1": 100000}
    chance = random.Random(7)
    with fleet_of(k, "web1", "db1") as fleet:
        for host in fleet.hosts:
            host.kymo("set", "-s", "flight", "num-subbuf=16")
            host.emit(events[host.name])
        made = fleet.json("snapshot", PATIENT)
        events = {h["host"]: h["sessions"][0]["recorded"] for h in made["hosts"]}
        got = k.top / "got"
        for n in kymotest.rounds():
            victim = chance.choice(("server", "agent", "fetch", "fetch"))
            if victim == "server":
                fleet.kill_server()
                fleet.setup()
            elif victim == "agent":
                host = chance.choice(fleet.hosts)
                host.kill_agent()
                host.start_agent()
            else:
                fetch = subprocess.Popen([CLI, "fleet", "fetch", made["id"], "-o", str(got)], env=k.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    fetch.wait(chance.random() * 0.2)
                fetch.kill()
                fetch.wait()
        fleet.kymo("fetch", made["id"], "-o", got, PATIENT)
        check_fetched(fleet, got, made["id"], events)


# ---- servers that lose messages


def purge(fleet, **what):
    """Lets the server lose all messages, or those of a subject (filter), but the last (keep)."""
    raw = Raw(fleet, fleet.k.home / "kymo-fleet", "admin")
    for stream in ("KYMO", "KYMO_0") if not what else ("KYMO_0",) if what["filter"].startswith("kymo.seg.") else ("KYMO",):
        check(json.loads(raw.request(f"$JS.API.STREAM.PURGE.{stream}", json.dumps(what).encode()))["success"], "a purge")
    raw.close()


def last_stored(fleet, stream, subject):
    """Returns the last object that a stream of the server has for a subject."""
    raw = Raw(fleet, fleet.k.home / "kymo-fleet", "admin")
    answer = json.loads(raw.request(f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps({"last_by_subj": subject}).encode()))
    raw.close()
    return json.loads(base64.b64decode(answer["message"]["data"]))


def test_lost(k):
    """A host ships a snapshot once more if servers have lost some of it, while it holds it."""
    with fleet_of(k, "web1", "db1") as fleet:
        web, db = fleet.hosts
        web.kymo("set", "-s", "flight", "num-subbuf=16")
        k.run([*kymotest.ONE_CPU, APPS / "emit", "-n", 40000], env={**web.env, **kymotest.IMPATIENT})
        db.emit(EVENTS["db1"])
        made = fleet.json("snapshot", PATIENT)
        events = recorded(made)
        check_fetched(fleet, fetch(fleet, made), made["id"], events)
        sizes = [p.stat().st_size for p in (web.held / made["id"] / "flight").rglob("*") if p.is_file()]
        check(max(sizes) > SEGMENT, f"all files of {sizes} bytes have one segment")
        subject = f"kymo.seg.0.web1.{made['id']}"
        losses = {"a host's segments": [{"filter": f"{subject}.>"}], "a file": [{"filter": f"{subject}.1"}],
            "all but manifests and the note": [{"filter": "kymo.seg.>"}],
            "the first segments of files": [{"filter": f"{subject}.{n}", "keep": 1} for n in range(len(sizes))], "a manifest": [{"filter": f"kymo.done.{made['id']}.web1"}],
            "the note": [{"filter": "kymo.note.>"}], "everything": [{}]}
        for number, (name, purges) in enumerate(losses.items()):
            for what in purges:
                purge(fleet, **what)
            got = k.top / f"got{number}"
            done = fleet.kymo("fetch", made["id"], "-o", got, PATIENT)
            equal(done.stderr, "", f"{name}: errors")
            check_trees(fleet, got, made["id"])
        # A server comes back without its store.
        fleet.kill_server()
        shutil.rmtree(fleet.node() / "store")
        fleet.setup()
        fleet.wait_hosts("web1", "db1")
        fleet.kymo("fetch", made["id"], "-o", k.top / "empty", PATIENT)
        check_fetched(fleet, k.top / "empty", made["id"], events)
        # It is lost everywhere: first all but the metadata, and no trace is made of that.
        manifest = last_stored(fleet, "KYMO", f"kymo.done.{made['id']}.web1")
        shutil.rmtree(web.held / made["id"])
        for number, file in enumerate(manifest["files"]):
            if not file["path"].endswith("metadata"):
                purge(fleet, filter=f"{subject}.{number}")
        fleet.kymo("fetch", made["id"], "-o", k.top / "part", PATIENT, status=1)
        equal(list((k.top / "part" / "web1").rglob("metadata")), [], "metadata of a trace that is not complete")
        check((k.top / "part" / "db1" / "flight" / ".fetched").exists(), "the trace of the other host is missing")
        purge(fleet, filter="kymo.seg.0.web1.>")
        done = fleet.kymo("fetch", made["id"], "-o", k.top / "gone", PATIENT, status=1)
        check(re.fullmatch(r"kymo: web1: the server does not have all of \S+ any more, or it was damaged; the host: it does not hold the snapshot \(any more\)\n", done.stderr), done.stderr)


def test_many_files(k):
    """The manifest of a snapshot with many files is in several messages."""
    with fleet_of(k, "web1") as fleet:
        (web,) = fleet.hosts
        web.emit(EVENTS["web1"])
        made = fleet.json("snapshot", PATIENT)
        fetch(fleet, made)
        ust = web.held / made["id"] / "flight" / "ust"
        deep = next(ust.rglob("metadata")).parent / ("x" * 200)
        deep.mkdir()
        for i in range(MANY):
            (deep / f"{'y' * 200}_{i}").write_bytes(b"x")
        subject = f"kymo.done.{made['id']}.web1"
        # As if it had never been shipped: the files have other numbers now.
        for what in (subject, "kymo.seg.>"):
            purge(fleet, filter=what)
        fleet.kymo("fetch", made["id"], "-o", k.top / "many", PATIENT)
        check_trees(fleet, k.top / "many", made["id"])
        check(last_stored(fleet, "KYMO", subject)["parts"] > 1, "the manifest is one message")
        # A part of the manifest is lost: the host ships the snapshot again.
        purge(fleet, filter=subject, keep=1)
        equal(fleet.kymo("fetch", made["id"], "-o", k.top / "again", PATIENT).stderr, "", "errors")
        check_trees(fleet, k.top / "again", made["id"])


def shard_of(name, shards):
    found = 2166136261  # FNV-1a
    for byte in name.encode():
        found = (found ^ byte) * 16777619 & 0xFFFFFFFF
    return found % shards


def test_shards(k):
    """Each host's segments are in the stream of its shard, and the number of shards stays."""
    shards = {name: shard_of(name, 3) for name in ("web1", "web2", "db1", "db2")}
    equal(len(set(shards.values())), 3, "shards in use")
    with fleet_of(k, *shards, setup=("--shards=3",)) as fleet:
        for host in fleet.hosts:
            host.emit(1000)
        made = fleet.json("snapshot", PATIENT)
        check_fetched(fleet, fetch(fleet, made), made["id"], recorded(made))
        raw = Raw(fleet, k.home / "kymo-fleet", "admin")
        for shard in range(3):
            info = json.loads(raw.request(f"$JS.API.STREAM.INFO.KYMO_{shard}", b'{"subjects_filter": ">"}'))
            equal({s.split(".")[3] for s in info["state"]["subjects"]}, {n for n, its in shards.items() if its == shard}, f"hosts of shard {shard}")
        raw.close()
        for given, says in (("4", "has --shards=3: another number needs another directory"), ("0", "from 1 to 64"), ("65", "from 1 to 64"), ("x", "from 1 to 64")):
            done = fleet.kymo("setup", f"--shards={given}", status=None)
            check(done.returncode and says in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr)
        fleet.setup("web3")
        check("shards = 3\n" in fleet.config("web3").read_text(), "the file of a host that was added")


# ---- three servers


def test_cluster(k):
    """
    Three servers ship a snapshot. With KYMO_TEST_ALL, two of them are killed in turn while one is
    shipped, and stay down for another; then one comes back with a damaged copy: all events arrive.
    """
    events = {"web1": 60000, "db1": 20000}
    killed = random.Random(5).sample((1, 2, 3), 2) if ALL else []
    with fleet_of(k, "web1", "db1", n_servers=3) as fleet:
        for host in fleet.hosts:
            host.kymo("set", "-s", "flight", "num-subbuf=16")
            host.emit(events[host.name])
        made = fleet.json("snapshot", PATIENT)
        check_fetched(fleet, fetch(fleet, made), made["id"], recorded(made))
        # Everyone knows all servers, and each of them has a copy of the streams.
        for conf in (k.home / "kymo-fleet" / "fleet.conf", fleet.config("web1"), fleet.config("db1")):
            equal(conf.read_text().count("tls://"), 3, f"servers in {conf}")
        for number in (1, 2, 3):
            equal({p.name for p in fleet.node(number).glob("store/jetstream/*/streams/*")}, {"KYMO", "KYMO_0", "KV_kymo-hosts"}, f"streams of server {number}")
        for number in killed:
            made = fleet.json("snapshot", PATIENT)
            fleet.kill_server(number)
            check_fetched(fleet, fetch(fleet, made), made["id"], recorded(made))
            said = [line.endswith(": runs") or "runs; stop it" in line for line in fleet.kymo("setup").stdout.splitlines()]
            equal(said, [n != number for n in (1, 2, 3)], "servers that run")
            # Everything else works meanwhile, too.
            fleet.wait_hosts("web1", "db1")
            made = fleet.json("snapshot", PATIENT)
            equal([h["host"] for h in made["hosts"] if "error_ns" not in h], [], "hosts without a measured clock")
            check_fetched(fleet, fetch(fleet, made), made["id"], recorded(made))
            fleet.setup()  # it returns when the server has what it missed
        if ALL:
            made = fleet.json("snapshot", PATIENT)
            check_fetched(fleet, fetch(fleet, made), made["id"], recorded(made))
            shutil.rmtree(k.top / made["id"])
            damage_leader(fleet, f"kymo.seg.0.web1.{made['id']}.1".encode())
            for number in range(5):
                fleet.kymo("fetch", made["id"], "-o", k.top / f"damaged{number}", PATIENT)
                check_fetched(fleet, k.top / f"damaged{number}", made["id"], recorded(made))
            answers = [p for host in fleet.hosts for p in host.held.rglob("again")]
            equal(answers, [], "hosts that had to ship what two servers have")


def damage_leader(fleet, subject):
    """Two servers lose a message each, as one whose disk was full did. One of them leads then."""
    leader = wait_for(lambda: leader_of(fleet), "a leader of the stream")
    for index, number in enumerate({1, 2, 3} - {leader}):
        fleet.kill_server(number, signal.SIGTERM)
        lose(fleet.node(number), subject, index)
        fleet.setup()
    fleet.kill_server(leader, signal.SIGTERM)
    wait_for(lambda: leader_of(fleet) not in (None, leader), "another leader of the stream")
    fleet.setup()


def leader_of(fleet):
    """Returns the number of the server that leads, or None: without a leader, nobody answers."""
    raw = Raw(fleet, fleet.k.home / "kymo-fleet", "admin")
    raw.socket.settimeout(2)
    try:
        name = json.loads(raw.request("$JS.API.STREAM.INFO.KYMO_0", b"")).get("cluster", {}).get("leader")
    except TimeoutError:
        name = None
    raw.close()
    return int(name.removeprefix("kymo-")) if name else None


def lose(node, subject, index):
    """A server that is stopped loses one message of this subject, the one with this index."""
    messages = next(node.glob("store/jetstream/*/streams/KYMO_0/msgs"))
    n = 0
    for block in messages.glob("*.blk"):
        data, left = block.read_bytes(), b""
        while data:  # size, number, time, size of the subject, subject, ...
            size, length = struct.unpack_from("<I16xH", data)
            message, data = data[:size & 0x3FFFFFFF], data[size & 0x3FFFFFFF:]
            is_its = message[22:22 + length] == subject
            left += b"" if is_its and n == index else message
            n += is_its
        block.write_bytes(left)
    check(n > index, f"{n} messages of {subject}")
    for path in (*messages.glob("*.idx"), *messages.glob("*.fss")):
        path.unlink()  # it makes them again


def recorded(made):
    return {h["host"]: h["sessions"][0]["recorded"] for h in made["hosts"]}


def fetch(fleet, made):
    got = fleet.k.top / made["id"]
    fleet.kymo("fetch", made["id"], "-o", got, PATIENT)
    return got


def test_cluster_routes(k):
    """Nobody joins the cluster with a host's identity, nor with the administrator's."""
    with fleet_of(k, "web1", n_servers=3) as fleet:
        top = k.home / "kymo-fleet"
        conf = (fleet.node() / "server.conf").read_text()
        port = int(re.search(r'cluster \{.*?listen: "127.0.0.1:(\d+)"', conf, re.S)[1])
        for key, taken in ((top / "hosts" / "web1" / "host", False), (top / "admin", False), (fleet.node(2) / "server", False), (fleet.node(2) / "route", True)):
            equal(joins(top, port, key), taken, f"the cluster takes {key}")


def joins(top, port, key):
    """Returns whether a server greets who has this key as one of its cluster."""
    context = ssl.create_default_context(cafile=top / "route-ca.crt")
    context.load_cert_chain(f"{key}.crt", f"{key}.key")
    with socket.create_connection(("127.0.0.1", port), TIMEOUT) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
                return bool(secure.recv(1))
        except OSError:
            return False


def test_setup_elsewhere(k):
    """Servers of other machines are prepared here, to be started in copies of their directories."""
    need_fleet()
    fleet = Fleet(k, 3)
    listen = ",".join(f"127.0.0.1:{port}" for port in (1, 2, 3))
    # A disk that is full at the certificate of the authority, of a server and of the host.
    full = k.top / "full"
    full.mkdir()
    (full / "openssl").write_text(f'#!/bin/sh\n{shutil.which("openssl")} "$@"\nfor last; do :; done\ncase $last in *$EMPTY.new) : > "$last";; esac\n')
    (full / "openssl").chmod(0o755)
    for name in ("/ca", "/2/server", "/host"):
        done = fleet.kymo("setup", f"--listen={listen}", "web1", status=1, env={"PATH": f"{full}:{os.environ['PATH']}", "EMPTY": name})
        check(re.fullmatch(rf"kymo: openssl has not written all of \S+{name}\.new: is the disk full\?\n", done.stderr), done.stderr)
    done = fleet.kymo("setup", f"--listen={listen}", "web1", status=1)
    check("start the servers, then repeat" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr)
    equal(done.stdout.count("start it there, in a copy of them: nats-server -c server.conf\n"), 3, "servers to be started")
    check(f"host web1: kymo-agent {fleet.config('web1')}\n" in done.stdout, done.stdout)
    top = k.home / "kymo-fleet"
    equal([p for p in top.rglob("*.crt") if not p.read_text().endswith("-----END CERTIFICATE-----\n")], [], "certificates that are not whole")
    secret = {"ca.key", "route-ca.key", "admin.key"}
    for number in (1, 2, 3):
        names = {p.name for p in fleet.node(number).iterdir()}
        equal(names & secret, set(), "secrets that a server does not need")
        check(str(k.top) not in (fleet.node(number) / "server.conf").read_text(), "a path of this machine")
    before = {p: p.read_bytes() for p in top.rglob("*") if p.suffix in (".crt", ".key", ".conf") and p.name != "users.conf"}
    fleet.kymo("setup", "db1", status=1)
    equal({p: p.read_bytes() for p in before}, before, "files that were there")
    check('user: "db1"' in (fleet.node(3) / "users.conf").read_text(), "the new host's rights")
    for bad in ("127.0.0.1:1,127.0.0.1:2", "127.0.0.1:1,127.0.0.1:1,127.0.0.1:2", ",,", "127.0.0.1:0", "127.0.0.1:65000", listen + ",127.0.0.1:4"):
        fleet.kymo("setup", f"--listen={bad}", "-o", k.top / "bad", status=2)
    fleet.kymo("setup", "--local", "--listen=127.0.0.1:0,127.0.0.1:0,127.0.0.1:5", "-o", k.top / "bad", status=2)
    done = fleet.kymo("setup", "--listen=127.0.0.1:1", status=1)
    check("another one needs another directory" in done.stderr, done.stderr)
    fleet.kymo("setup", "-o", k.top / "none", status=2)


# ---- hostile peers


def connect_first(servers):
    """Connects to the first of these that runs."""
    for address, port in servers:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection((address, int(port)), TIMEOUT)
    raise kymotest.Failure(f"none of {servers} runs")


class Raw:
    """A client that speaks the server's protocol, with the identity of a host."""

    def __init__(self, fleet, directory, name):
        plain = connect_first(re.findall(r"tls://([\d.]+):(\d+)", (fleet.k.home / "kymo-fleet" / "fleet.conf").read_text()))
        line = b""
        while not line.endswith(b"\n"):  # the server's greeting comes before TLS
            line += plain.recv(1)
        context = ssl.create_default_context(cafile=fleet.k.home / "kymo-fleet" / "ca.crt")
        context.load_cert_chain(directory / f"{name}.crt", directory / f"{name}.key")
        self.socket = context.wrap_socket(plain, server_hostname="nats.kymo")
        self.file = self.socket.makefile("rb")
        self.say(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"lang":"test","version":"0","protocol":1}')

    def say(self, line, payload=None):
        self.socket.sendall(line + b"\r\n" + (b"" if payload is None else payload + b"\r\n"))

    def publish(self, subject, payload=b""):
        self.say(f"PUB {subject} {len(payload)}".encode(), payload)

    def request(self, subject, payload):
        """Returns the answer of a service of the server."""
        self.say(b"SUB _INBOX.admin.raw 1")
        self.say(f"PUB {subject} _INBOX.admin.raw {len(payload)}".encode(), payload)
        while not (line := self.file.readline()).startswith(b"MSG "):
            check(line and not line.startswith(b"-ERR"), f"{subject}: {line}")
        answer = self.file.read(int(line.split()[-1]) + 2)
        self.say(b"UNSUB 1")
        return answer

    def errors(self):
        """Returns what the server refused since the last call."""
        found = []
        self.say(b"PING")
        while (line := self.file.readline()) != b"PONG\r\n":
            if not line:
                raise ConnectionError("the server closed the connection")
            if line.startswith(b"-ERR"):
                found.append(line.decode().strip())
        return found

    def close(self):
        self.file.close()
        self.socket.close()


def test_permissions(k):
    """A host stores under its own name, reads its own, and asks nothing."""
    with fleet_of(k, "web1", "db1") as fleet:
        raw = Raw(fleet, k.home / "kymo-fleet" / "hosts" / "web1", "host")
        for subject in ("kymo.seg.0.web1.x.0", "kymo.rep.x.web1", "kymo.done.x.web1", "$KV.kymo-hosts.web1", "$JS.API.DIRECT.GET.KYMO_0.kymo.seg.0.web1.x.0"):
            raw.publish(subject, b"{}")
            equal(raw.errors(), [], f"own subject {subject}")
        for subject in ("kymo.seg.0.db1.x.0", "kymo.seg.1.web1.x.0", "kymo.rep.x.db1", "kymo.done.x.db1", "$KV.kymo-hosts.db1", "kymo.ctl.ask.snapshot", "kymo.ctl.ask.stop", "kymo.note.x",
            "$JS.API.DIRECT.GET.KYMO_0.kymo.seg.0.db1.x.0", "$JS.API.DIRECT.GET.KYMO", "$JS.API.DIRECT.GET.KV_kymo-hosts", "$JS.API.STREAM.MSG.GET.KYMO",
            "$JS.API.STREAM.DELETE.KYMO", "$JS.API.STREAM.PURGE.KYMO", "$JS.API.CONSUMER.CREATE.KYMO", "_INBOX.admin.x"):
            raw.publish(subject, b"{}")
            check("Permissions Violation" in "".join(raw.errors()), f"a host may publish {subject}")
        for number, subject in enumerate((">", "kymo.seg.>", "kymo.rep.>", "kymo.done.>", "_INBOX.>", "_INBOX.admin.>", "$JS.>")):
            raw.say(f"SUB {subject} {number}".encode())
            check("Permissions Violation" in "".join(raw.errors()), f"a host may subscribe {subject}")
        raw.close()
        done = fleet.kymo("hosts", env={"KYMO_FLEET": str(fleet.config("web1"))}, status=1)
        check("does not permit" in done.stderr, done.stderr)
        # Somebody else's authority, and none.
        other = k.top / "other"
        other.mkdir()
        k.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=admin", "-addext",
            "subjectAltName=DNS:admin", "-keyout", other / "admin.key", "-out", other / "admin.crt"])
        try:
            Raw(fleet, other, "admin").errors()
        except OSError:
            pass
        else:
            raise kymotest.Failure("the server serves a certificate of somebody else")
        fleet.wait_hosts("web1", "db1")


def make_identity(top, where, name, usage, *authority):
    subprocess.run(["openssl", "req", "-x509", *authority, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
        "-addext", f"subjectAltName=DNS:{name}", "-addext", f"extendedKeyUsage={usage}", "-config", top / "openssl.cnf",
        "-keyout", f"{where}.key", "-out", f"{where}.crt"], check=True, capture_output=True)
    return where


def sign_as_host(top, where):
    """Makes an identity of the server that a host has signed, with the host's own behind it."""
    host = top / "hosts" / "web1" / "host"
    make_identity(top, where, "nats.kymo", "serverAuth", "-CA", f"{host}.crt", "-CAkey", f"{host}.key")
    with open(f"{where}.crt", "a") as f:
        f.write(pathlib.Path(f"{host}.crt").read_text())
    return where


def test_false_server(k):
    """
    Commands speak to the fleet's own servers only: not to a host that poses as one, nor to whoever
    has an identity of another authority, or for another name.
    """
    need_fleet()
    top = k.home / "kymo-fleet"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT)
        # A server that does not answer stands for none: then only the files are made.
        port = socket.create_server(("127.0.0.1", 0))
        number = port.getsockname()[1]
        port.close()
        Fleet(k).kymo("setup", f"--listen=127.0.0.1:{number}", "web1", status=1)
        conf = top / "fleet.conf"
        conf.write_text(conf.read_text().replace(f":{number}", f":{listener.getsockname()[1]}"))
        ours = ("-CA", top / "ca.crt", "-CAkey", top / "ca.key")
        for key, taken in ((top / "nodes" / "1" / "server", True), (top / "hosts" / "web1" / "host", False), (top / "admin", False),
                (make_identity(top, k.top / "named", "nats.kymo", "serverAuth", *ours), True),
                (make_identity(top, k.top / "client", "nats.kymo", "clientAuth", *ours), False),
                (make_identity(top, k.top / "other", "other.kymo", "serverAuth", *ours), False),
                (make_identity(top, k.top / "foreign", "nats.kymo", "serverAuth"), False),
                (sign_as_host(top, k.top / "signed"), False)):
            command = subprocess.Popen([CLI, "fleet", "hosts"], env=k.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            k.started.append(command)
            equal(is_spoken_to(listener, key), taken, f"a command speaks to {key}")
            out, said = command.communicate(timeout=2 * TIMEOUT)
            equal((out, command.returncode, len(said.splitlines())), ("", 1, 1), f"{key}: {said}")


def test_no_connection(k):
    """A host's agent says why it cannot connect: which certificate is at fault, or the address."""
    need_fleet()
    fleet = Fleet(k)
    fleet.setup("web1")
    ours = fleet.config("web1").parent
    shutil.copy(k.home / "kymo-fleet" / "openssl.cnf", k.top)
    for name, said in (("host", "the server refuses '"), ("ca", "its certificate is not valid by this host's clock, or '"), ("address", "no server answers (is the address right"),
            ("key", "private key '"), ("clock", "its certificate is not valid by this host's clock")):
        if name == "clock" and SANITIZED:
            continue  # the sanitizer library must be loaded first
        there = k.top / name
        shutil.copytree(ours, there)
        if name in ("host", "ca"):
            make_identity(k.top, there / name, "web1", "clientAuth")
        elif name == "key":
            (there / "host.key").unlink()
        elif name == "clock":
            (k.top / "wall-clock").write_text("-86400")
        else:
            conf = there / "fleet.conf"
            conf.write_text(re.sub(r"(?m)^servers = .*", "servers = nowhere.invalid:4222", conf.read_text()))
        env = {**k.env, "LD_PRELOAD": str(APPS / "wall-clock.so"), "WALL_CLOCK": str(k.top / "wall-clock")} if name == "clock" else k.env
        agent = subprocess.Popen([AGENT, there / "fleet.conf"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        k.started.append(agent)
        line = agent.stdout.readline()
        check(said in line and "c:" not in line, f"{name}: {line}")
        agent.kill()
        agent.wait()
    fleet.end()


def is_spoken_to(listener, key):
    """Poses as a server with this identity. Returns whether the next who connects speaks to it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{key}.crt", f"{key}.key")
    with listener.accept()[0] as plain:
        plain.settimeout(TIMEOUT)
        plain.sendall(b'INFO {"server_id":"x","version":"2.9.10","proto":1,"max_payload":1048576,"headers":true,"tls_required":true}\r\n')
        try:
            with context.wrap_socket(plain, server_side=True) as secure:
                return secure.recv(7) == b"CONNECT"
        except OSError:
            return False


def test_hostile_requests(k):
    """Agents check what they are asked, and go on."""
    with fleet_of(k, "web1") as fleet:
        raw = Raw(fleet, k.home / "kymo-fleet", "admin")
        before = paths(k.home)
        deep = b'{"id":"a1","sessions":' + b"[" * 5000 + b"]" * 5000 + b"}"
        requests = [b"", b"{", b"[]", b"null", b"\0" * 100, deep, b'{"id":"../../x"}', b'{"id":""}', b'{"id":7}', b'{"id":"a2","sessions":["../../x"]}',
            b'{"id":"a3","sessions":"flight"}', b'{"id":"a4","sessions":[1,2,{}]}', b'{"id":"a5","sessions":["nosuch"],"max_size":-1}',
            b'{"id":"a6","trace_id":"zz"}', json.dumps({"id": "a7", "sessions": ["x"] * 1000}).encode()]
        for what in ("snapshot", "start", "stop", "time", "hosts", "nosuch"):
            for request in requests:
                raw.publish(f"kymo.ctl.ask.{what}", request)
        equal(raw.errors(), [], "requests of the administrator")
        raw.close()
        fleet.wait_hosts("web1")
        new = [str(p) for p in paths(k.home) - before if "store" not in p.parts]
        check(all("/held/" in p for p in new), f"files that a request made: {new}")
        equal(fleet.hosts[0].agent.poll(), None, "the agent")
        equal(fleet.hosts[0].state("flight"), "started", "the session")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def segment_at(offset, payload):
    """Returns a segment of data, as docs/shipping.md describes it."""
    head = struct.pack("<IIBBHIQQI", 0x3253594B, len(payload), 5, 0, 0, len(payload), offset, 0, crc32c(payload))
    return head + struct.pack("<I", crc32c(head)) + payload


def test_hostile_host(k):
    """A host that lies in its manifest writes and removes nothing but below its own name."""
    mine = k.top / "got" / "metadata"
    mine.parent.mkdir()
    mine.write_text("mine")
    with fleet_of(k, "web1", "evil") as fleet:
        fleet.hosts[0].emit(100)
        raw = Raw(fleet, k.home / "kymo-fleet" / "hosts" / "evil", "host")
        session = {"name": "flight", "recording": "00" * 16}
        segment = segment_at(0, b"evil")
        file = {"session": 0, "path": "metadata", "size": 4, "crc32c": 0}
        for number, (sessions, files) in enumerate((([session], [{**file, "path": "../../../evil"}]), ([session], [{**file, "path": "../../../metadata"}]), ([{**session, "name": ".."}], [file]),
            ([{**session, "name": "a/../../evil"}], [file]), ([{**session, "recording": "x"}], [file]), ([{**session, "name": "n" * 4000}], [file]), ([session], [{**file, "path": "/tmp/evil"}]),
            ([session], [file]), ([session], [{**file, "size": 2**60}]), ("flight", 7), ([], [file]))):
            name = f"lie{number}"
            raw.publish(f"kymo.seg.0.evil.{name}.0", segment)
            raw.publish(f"kymo.done.{name}.evil", json.dumps({"sessions": sessions, "files": files}).encode())
            equal(raw.errors(), [], "what a host may publish")
            got = k.top / "got" / name
            fetched = lambda: fleet.kymo("fetch", name, "-o", got, status=None)
            done = fetched()
            check(done.returncode in (0, 1) and len(done.stderr.splitlines()) <= 2, f"{name}: {done.returncode} {done.stderr}")
            check(done.returncode == 1 or "0 events" in done.stdout, f"{name} was taken: {done.stdout}")
        # A file of which the manifest says something else is none; one that is as it says is taken.
        # Nothing is written beyond the size that the manifest says.
        more = segment_at(4, b"evil")
        for name, size, crc, left, said in (("other", 4, 0, 4, "does not have all of stream"), ("more", 6, 0, 4, "more of stream than its manifest"), ("same", 4, crc32c(b"evil"), 4, "")):
            for s in (segment, more):
                raw.publish(f"kymo.seg.0.evil.{name}.0", s)
            raw.publish(f"kymo.done.{name}.evil", json.dumps({"sessions": [session], "files": [{**file, "path": "stream", "size": size, "crc32c": crc}]}).encode())
            equal(raw.errors(), [], "what a host may publish")
            done = fleet.kymo("fetch", name, "-o", k.top / name, status=1 if said else 0)
            check(said in done.stderr, done.stderr)
            equal((k.top / name / "evil" / "flight" / "stream").stat().st_size, left, f"{name}: bytes of the file")
        raw.close()
        equal(mine.read_text(), "mine", "a file beside the fetched ones")
        left = {p.relative_to(k.top / "got").parts[1] for p in (k.top / "got").rglob("*") if len(p.relative_to(k.top / "got").parts) > 1}
        equal(left - {"evil"}, set(), "directories of lies")
        check(all(p.is_dir() for p in paths(k.top) if p.name == "evil"), "a file that a lie made")


# ---- triggers


def test_trigger(k):
    """A trigger on one host takes a snapshot of all."""
    with fleet_of(k, "web1", "db1", setup=["--triggers"], daemon=["--allow-commands"]) as fleet:
        web, db = fleet.hosts
        db.emit(EVENTS["db1"])
        out = k.top / "out"
        web.kymo("add-trigger", "slow", "-s", "flight", "--when=event(emit:record)", f"--do=run:KYMO_FLEET={fleet.config('web1')} "
            f"LD_LIBRARY_PATH={kymotest.LIBDIR} {CLI} --json fleet snapshot flight --timeout={TIMEOUT}s --reason=\"$KYMO_TRIGGER_TEXT\" >{out}.new && mv {out}.new {out}")
        web.emit(1)
        wait_for(out.exists, "the action of the trigger")
        made = json.loads(out.read_text())
        equal(sorted(h["host"] for h in made["hosts"] if h["ok"]), ["db1", "web1"], "hosts that have it")
        text = fleet.kymo("fetch", made["id"], "-o", k.top / "got", PATIENT).stdout
        check("reason: emit (pid" in text, text)
        equal(count_of(k.top / "got" / "db1"), EVENTS["db1"], "events of the other host")


kymotest.main()
