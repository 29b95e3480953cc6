# SPDX-License-Identifier: MIT
"""
The measured systems, Kymo and LTTng-UST, each with its own session daemon in a private place, and
the programs that record. Their command lines, which take the same words, control both.
"""

import contextlib
import copy
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

CHANNEL = "bench"
EVENTS = "bench:one_int,bench:ints_string,bench:eight_ints"
CONTEXTS = ["--type=vtid", "--type=vpid", "--type=procname"]
FILTERS = {"passed": "a >= 0", "rejected": "a < 0"}
TIMEOUT = 120  # seconds for any one command


class Failed(Exception):
    """A row cannot be measured: the row is left out, with this reason."""


def wait_for(condition, what, timeout=TIMEOUT):
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"waited {timeout} s for {what}")
        time.sleep(0.005)


def tasks_cpu_ns(pid):
    """Returns the CPU time of all live threads of a process, in nanoseconds."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total


def parents():
    """Parent and name of each process."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                head, _, tail = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")
                found[int(entry)] = (int(tail.split()[1]), head.partition("(")[2])
    return found


def descendants(pid):
    """pid -> name of a process and all that it started, directly or not."""
    everybody = parents()
    found = {pid: everybody.get(pid, (0, "?"))[1]}
    grown = True
    while grown:
        more = {p: name for p, (parent, name) in everybody.items() if parent in found and p not in found}
        found.update(more)
        grown = bool(more)
    return found


def bytes_below(directory):
    """Returns the size of all streams of a trace. Metadata arrives up to its last declaration."""
    return sum(p.stat().st_size for p in directory.rglob("*") if p.is_file() and p.name[0] != "." and p.name != "metadata")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def is_listening(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def live_url(port, session):
    return f"net://127.0.0.1:{port}/host/{socket.gethostname()}/{session}"


class System:
    """One tracing system. Subclasses name its programs."""

    key = title = rules = None

    def __init__(self, build, top):
        self.programs = build / "bench"
        self.top = top / self.key
        self.home = self.top / "home"
        self.home.mkdir(parents=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("KYMO_", "LTTNG_", "LD_", "XDG_"))}
        self.env.update(HOME=str(self.home), LC_ALL="C.UTF-8", NO_COLOR="1")
        self.daemon = None

    # -- the daemon

    def start(self):
        with open(self.top / "daemon.log", "ab") as log:
            self.daemon = subprocess.Popen(self.daemon_command(), env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(lambda: self.answers() or self.daemon.poll() is not None, f"{self.title}'s session daemon", 20)
        if self.daemon.poll() is not None:
            raise Failed(f"{self.title}'s session daemon ended: {(self.top / 'daemon.log').read_text()[-500:]}")

    def stop(self):
        daemon, self.daemon = self.daemon, None
        if not daemon:
            return
        family = descendants(daemon.pid)
        daemon.terminate()
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            for pid in family:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            daemon.wait()

    def daemons(self):
        """All processes of the system itself."""
        return list(descendants(self.daemon.pid))

    def consumers(self):
        return [pid for pid, name in descendants(self.daemon.pid).items() if "consumerd" in name]

    def consumer_cpu_ns(self):
        return sum(tasks_cpu_ns(pid) for pid in self.consumers())

    @contextlib.contextmanager
    def consumers_stopped(self):
        """Nobody drains: the rings must hold all that is recorded meanwhile. Yields what ends that
        earlier."""
        pids = self.consumers()

        def let_go():
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGCONT)

        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield let_go
        finally:
            let_go()

    # -- the command line

    def cli(self, *args):
        try:
            done = subprocess.run([*self.cli_command(), *map(str, args)], env=self.env, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.title}: '{args[0]}' did not end in {TIMEOUT} s") from None
        if done.returncode:
            raise Failed(f"{self.title}: '{' '.join(map(str, args))}' failed: {(done.stderr or done.stdout).strip()[-300:]}")
        return done.stdout

    def create(self, session, out, subbuf=None, num=None, special=False, overwrite=False, url=None, timer_us=None):
        """special: adds channels for the events with contexts and with filters, each with the name
        of its event. overwrite: a flight recorder, of which nothing is written. url: of another
        host, to which the trace goes instead. timer_us: when blocks that are not full are read."""
        place = f"--set-url={url}" if url else f"--output={out}"
        live = [f"--live={timer_us}"] if url and timer_us else []
        self.cli("create", session, place, *live, *(["--snapshot"] if overwrite else []))
        sizes = [f"--subbuf-size={subbuf}", f"--num-subbuf={num}"] if subbuf else []
        sizes += [f"--switch-timer={timer_us}"] if timer_us and not live else []
        sizes += ["--overwrite"] if overwrite else []
        self.cli("enable-channel", "-u", CHANNEL, "-s", session, *sizes)
        self.cli("enable-event", "-u", self.rules, "-c", CHANNEL, "-s", session)
        if special:
            self.cli("enable-channel", "-u", "contexts", "-s", session, *sizes)
            self.cli("add-context", "-u", *CONTEXTS, "-c", "contexts", "-s", session)
            self.cli("enable-event", "-u", "bench:contexts", "-c", "contexts", "-s", session)
            for name, filter in FILTERS.items():
                self.cli("enable-channel", "-u", name, "-s", session, *sizes)
                self.cli("enable-event", "-u", f"bench:{name}", f"--filter={filter}", "-c", name, "-s", session)

    @contextlib.contextmanager
    def session(self, out, **channel):
        """A session that records; its trace is removed afterwards."""
        name = out.name
        self.create(name, out, **channel)
        try:
            self.cli("start", name)
            yield name
        finally:
            with contextlib.suppress(Failed):
                self.cli("destroy", name)
            shutil.rmtree(out, ignore_errors=True)

    def drain(self, session):
        """Waits until all that was recorded is written; recording continues."""
        self.cli("stop", session)
        self.cli("start", session)

    def applications(self, name="tiny-"):
        """Returns how many of the held programs, or of those of this name, the daemon knows."""
        return self.cli("list", "-u").count(name)

    @contextlib.contextmanager
    def helper(self, command, stdout=subprocess.DEVNULL, **options):
        """A process of the system beside its daemons."""
        process = subprocess.Popen([str(word) for word in command], env=self.env, stdin=subprocess.DEVNULL, stdout=stdout,
            stderr=subprocess.DEVNULL, **options)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(TIMEOUT)

    # -- programs

    def program(self, name):
        return str(self.programs / f"{name}-{self.key}")


class Kymo(System):
    key, title = "kymo", "Kymo"
    rules = f"{EVENTS},kymo_tracef:event"

    def __init__(self, build, top):
        super().__init__(build, top)
        self.build = build
        self.env.update(KYMO_RUNDIR=str(self.top / "run"), KYMO_HOME=str(self.home))

    def daemon_command(self):
        return [str(self.build / "src" / "sessiond" / "kymo-sessiond")]

    def cli_command(self):
        return [str(self.build / "src" / "cli" / "kymo")]

    def answers(self):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.top / "run" / "control.sock"))
            return True
        return False

    @contextlib.contextmanager
    def remote_session(self, out):
        """A session whose trace goes to out/far, through a pipe. Yields its name, the process that
        sends (its child receives), and what waits until all of it has arrived."""
        near, far = out / "near", out / "far"
        far.mkdir(parents=True)
        with self.session(near) as session:
            kymo = self.cli_command()[0]
            with self.helper([kymo, "ship", near, f"exec:{kymo} receive {far}"]) as sender:
                wait_for((near / ".shipping").exists, "the sender")
                yield session, sender, lambda: wait_for(lambda: bytes_below(far / "near") == bytes_below(near), "the trace to arrive")
        shutil.rmtree(out, ignore_errors=True)

    @contextlib.contextmanager
    def live_session(self, out, timer_us):
        """A session that babeltrace2 can read while it records. Yields where."""
        port = free_port()
        with self.session(out, timer_us=timer_us), self.helper([*self.cli_command(), "live", out, f"--listen=127.0.0.1:{port}"]):
            wait_for(lambda: is_listening(port), "kymo live")
            yield live_url(port, out.name)

    def lost(self, session):
        return json.loads(self.cli("status", session, "--json"))["session"]["discarded"]


class Lttng(System):
    key, title = "lttng", "LTTng-UST"
    rules = f"{EVENTS},lttng_ust_tracef:event"

    def __init__(self, build, top):
        super().__init__(build, top)
        self.env.update(LTTNG_HOME=str(self.home))

    def daemon_command(self):
        return ["lttng-sessiond", "--no-kernel"]

    def cli_command(self):
        return ["lttng", "--no-sessiond"]

    def answers(self):
        return subprocess.run([*self.cli_command(), "list"], env=self.env, capture_output=True).returncode == 0

    @contextlib.contextmanager
    def relayd(self, out):
        """Yields lttng-relayd, where it receives, and the port of its viewers."""
        ports = [free_port() for _ in range(3)]
        urls = [word for option, port in zip("CDL", ports) for word in (f"-{option}", f"tcp://127.0.0.1:{port}")]
        with self.helper(["lttng-relayd", "-o", out / "far", *urls]) as receiver:
            wait_for(lambda: is_listening(ports[0]), "lttng-relayd")
            yield receiver, f"net://127.0.0.1:{ports[0]}:{ports[1]}", ports[2]
        shutil.rmtree(out, ignore_errors=True)

    @contextlib.contextmanager
    def remote_session(self, out):
        """The same through lttng-relayd and TCP on this host. The command stop waits for it."""
        with self.relayd(out) as (receiver, url, _), self.session(out / "near", url=url) as session:
            yield session, receiver, lambda: None

    @contextlib.contextmanager
    def live_session(self, out, timer_us):
        with self.relayd(out) as (_, url, port), self.session(out, url=url, timer_us=timer_us) as session:
            yield live_url(port, session)

    def lost(self, session):
        return sum(int(n) for n in re.findall(r"Discarded events: (\d+)", self.cli("list", session)))


class AsItIs(Kymo):
    """Kymo's daemon, and the programs that were compiled for LTTng-UST, not compiled again."""

    title = "Kymo, LTTng's binary"
    rules = f"{EVENTS},lttng_ust_tracef:event"

    def __init__(self, build, top):
        super().__init__(build, top / "as-it-is")
        self.env.update(LD_LIBRARY_PATH=f"{build}/src/lttng:{build}/src/tracer")

    def program(self, name):
        return str(self.programs / f"{name}-lttng")


class Limit:
    """No tracer: the cost of the machine itself."""

    key, title = "limit", "limit"

    def __init__(self, build, top):
        self.programs = build / "bench"
        self.env = {"HOME": str(top), "LC_ALL": "C.UTF-8"}

    program = System.program


class Least(Limit):
    """The least that a tracer does when a program starts (bench/least.c)."""

    key = title = "least"

    def __init__(self, build, top):
        super().__init__(build, top)
        self.socket = str(top / "least.sock")

    @contextlib.contextmanager
    def server(self):
        """Yields the same with a server, which stands for the daemon while a session is active."""
        served = copy.copy(self)
        served.env = {**self.env, "BENCH_LEAST": self.socket}
        with subprocess.Popen([self.programs / "least-server", self.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True) as process:
            if process.stdout.readline() != "ready\n":
                raise Failed("least-server did not start")
            yield served
            process.stdin.close()


class Emitter:
    """bench/emit.c of one system, in one process or several."""

    def __init__(self, system, processes=1):
        self.processes = [subprocess.Popen([system.program("emit")], env=system.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True) for _ in range(processes)]
        for process in self.processes:
            if process.stdout.readline() != "ready\n":
                self.__exit__()
                raise Failed(f"{system.title}: emit did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.stdin.close()
            process.stdout.close()
            process.wait()

    def run(self, **parameters):
        """Runs one pass, in all processes at the same time. ns and wall_ns are means over them,
        events is the sum."""
        for number, process in enumerate(self.processes):
            words = dict(parameters)
            if words.get("pin", -1) >= 0:
                words["pin"] += number * words.get("threads", 1)
            process.stdin.write(" ".join(f"{k}={v}" for k, v in words.items()) + "\n")
            process.stdin.flush()
        lines = [process.stdout.readline() for process in self.processes]
        if not all(lines):
            raise Failed("emit ended early")
        results = [json.loads(line) for line in lines]
        return {
            "ns": sum(r["ns"] for r in results) / len(results),
            "wall_ns": sum(r["wall_ns"] for r in results) / len(results),
            "events": sum(r["events"] for r in results),
        }


class Held:
    """Many running programs (bench/tiny.c) of one system."""

    def __init__(self, system, count):
        readable, writable = os.pipe()
        self.processes = []
        try:
            for _ in range(count):
                self.processes.append(subprocess.Popen([system.program("tiny"), "hold"], env=system.env, stdin=subprocess.DEVNULL,
                    stdout=writable))
            os.close(writable)
            writable = -1
            started = 0
            while started < count:
                got = len(os.read(readable, 4096))
                if not got:
                    raise Failed(f"{system.title}: only {started} of {count} programs started")
                started += got
        except BaseException:
            self.__exit__()
            raise
        finally:
            os.close(readable)
            if writable >= 0:
                os.close(writable)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
