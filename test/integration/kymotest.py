# SPDX-License-Identifier: MIT
"""
Harness of the integration tests: real daemons in a private run directory, the real command line,
and babeltrace2 as the independent reader.

A test file defines functions test_*(k), in order, and ends with kymotest.main(). Each function gets
a new Kymo, with its own directories and environment, and with no process running. When the function
returns, the harness ends the daemon and looks for everything that it should have released:
processes, descriptors, files in the run directory. A test that exceeds its time is a failure, never
a skip; the harness kills its processes.

    FILE.py [-k] [NAME...]     runs the functions whose names contain a NAME; -k keeps the
                               directories

By hand, it tests the build in build/, or the build that KYMO_TEST_BUILD names.
"""

import atexit
import collections
import contextlib
import gc
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("KYMO_TEST_BUILD", SOURCE / "build"))
SANITIZED = os.environ.get("KYMO_TEST_SANITIZED", "") == "1"



def reachable():
    """
    Returns the directory from which programs run: the build. Some tests become another user. If
    tests run as root and other users cannot reach the build (a checkout in root's home), it is a
    copy of the programs.
    """
    if not BUILD.is_dir():
        sys.exit(f"nothing to test: {BUILD} is missing (set KYMO_TEST_BUILD to a build directory)")
    if os.geteuid() != 0 or all(p.stat().st_mode & 1 for p in (BUILD, *BUILD.parents)):
        return BUILD
    copy = pathlib.Path(tempfile.mkdtemp(prefix="kymo-build-"))
    copy.chmod(0o755)
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    for folder in ("src/cli", "src/sessiond", "src/consumerd", "src/collectd", "src/agentd", "src/tracer", "src/preload", "src/web", "src/fleet", "test/integration/apps"):
        (copy / folder).mkdir(parents=True)
        for path in (BUILD / folder).glob("*"):
            if path.is_file() and os.access(path, os.X_OK):
                shutil.copy2(path, copy / folder)
    return copy


RUN_FROM = reachable()
CLI = str(RUN_FROM / "src" / "cli" / "kymo")
SESSIOND = str(RUN_FROM / "src" / "sessiond" / "kymo-sessiond")
LIBDIR = str(RUN_FROM / "src" / "tracer")
APPS = RUN_FROM / "test" / "integration" / "apps"

# The builds of tests, which have another home directory, use the user's cache of object files.
CCACHE_DIR = os.environ.get("CCACHE_DIR") or str(pathlib.Path.home() / ".cache" / "ccache")
# seconds for any one program or event, on a slow and busy machine; meson's own timeout limits the
# whole file
TIMEOUT = 180
# seconds for each random campaign; `make soak` gives more
BUDGET = float(os.environ.get("KYMO_TEST_BUDGET", 1.5))
SHORTEST_PAUSE, LONGEST_PAUSE = 0.002, 0.02  # seconds between two checks of a condition
# For programs that start while the session daemon hangs: they wait 40 ms. Without it they wait for
# ever, because a daemon may get no CPU time for longer than that on a busy machine.
IMPATIENT = {"KYMO_REGISTER_TIMEOUT": str(TIMEOUT * 1000)}
# In a warning of status about a consumer that has got no CPU for a second, as on a busy machine.
LATE_CONSUMER = "its consumer (pid "
LEFT_IN_RUNDIR = {"lock", "state", "wake"}
# Tests make long lists of events and next to no cycles: the collector would only look at the lists.
gc.disable()
# a command that runs another one on one CPU
ONE_CPU = ("taskset", "-c", str(min(os.sched_getaffinity(0))))


class Failure(Exception):
    pass


class Skip(Exception):
    """
    The machine lacks something, which the text names. Never raised for something that went wrong.
    """


def check(condition, what):
    if not condition:
        raise Failure(what() if callable(what) else what)


def equal(got, wanted, what):
    if got != wanted:
        raise Failure(f"{what}: got {brief(got)}, wanted {brief(wanted)}{where_different(got, wanted)}")


def read_line(process):
    """Returns the next line of its output; "" if it ends, or is killed as none comes in time."""
    timer = threading.Timer(TIMEOUT, process.kill)
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()


def brief(value):
    text = repr(value)
    return text if len(text) <= 1000 else f"{text[:500]} ... {text[-200:]}"


def where_different(got, wanted):
    """Returns the first difference of two long lists."""
    if not isinstance(got, list) or not isinstance(wanted, list) or len(repr(got)) <= 1000:
        return ""
    at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
    return f" ({len(got)} and {len(wanted)} of them, different from number {at} on: {brief(got[at : at + 3])}, {brief(wanted[at : at + 3])})"


def wait_for(condition, what, timeout=TIMEOUT):
    """
    Returns the first true value of condition(); fails when there is none in time. what: text, or a
    function that returns it.
    """
    end, pause = time.monotonic() + timeout, SHORTEST_PAUSE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"waited {timeout} s for {what() if callable(what) else what}")
        time.sleep(pause)
        pause = min(pause * 1.2, LONGEST_PAUSE)


def rounds():
    """
    Yields the numbers of a random campaign's rounds: at least one, and more until BUDGET seconds
    are over.
    """
    end = time.monotonic() + BUDGET
    for number in itertools.count():
        yield number
        if time.monotonic() > end:
            return


def without_sanitizers(test):
    """Marks a test that has no meaning in a build with sanitizers: it does not run there."""
    test.left_out = SANITIZED
    return test


def need_program(name, package):
    if not shutil.which(name):
        raise Skip(f"{name} is missing (Debian package {package})")


def need_mounts():
    """Skips the test if it cannot mount a small file system of its own."""
    can = os.geteuid() == 0 and shutil.which("unshare")
    if not can or subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode:
        raise Skip("mounting a small file system needs root that may (in a container: --privileged)")


def may_unshare(*options):
    """Returns true if unshare with these options is allowed here."""
    return not subprocess.run(["unshare", *options, "true"], capture_output=True).returncode


def need_unshare(*options):
    if not may_unshare(*options):
        raise Skip(f"unshare {' '.join(options)} is not allowed here (in a container: --privileged)")


TRACING = pathlib.Path("/sys/kernel/tracing")
INITIAL_PID_NS = 0xeffffffc


def need_tracefs(*places):
    """Skips the test where kernel events cannot be recorded, or tracefs lacks a place."""
    if os.geteuid() != 0:
        raise Skip("kernel events need root")
    if not (TRACING / "instances").is_dir():
        raise Skip(f"tracefs is not mounted at {TRACING}, or the kernel has none")
    if not os.access(TRACING / "instances", os.W_OK):
        raise Skip(f"no tracefs at {TRACING} that can be written")
    try:
        (TRACING / "trace_clock").read_text()
    except OSError as e:  # kernel lockdown
        raise Skip(f"tracefs cannot be read: {e.strerror}") from None
    if os.stat("/proc/self/ns/pid").st_ino != INITIAL_PID_NS:
        raise Skip("kernel events name processes by their numbers in the initial PID namespace (in a container: --pid=host)")
    for place in places:
        if not (TRACING / place).exists():
            raise Skip(f"this kernel has no {place} in tracefs")


# ---- processes


def state_of(pid):
    """Returns the letter of the process's state, "Z" if there is none."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    return "Z"


def stop(*pids):
    """
    Stops these processes, and returns when they do nothing any more: each of their threads stops
    for itself, some time after the signal.
    """
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: all(state_of(f"{pid}/task/{task}") in "TZ" for pid in pids for task in os.listdir(f"/proc/{pid}/task")),
        "the processes to stop")


def alive(pid):
    """Returns true while the process runs; a zombie does not run, unless threads of it are left."""
    threads = []
    with contextlib.suppress(OSError):
        threads = os.listdir(f"/proc/{pid}/task")
    return state_of(pid) != "Z" or len(threads) > 1


def open_paths(pid):
    """Returns the paths that the process has open, without those that it closes meanwhile."""
    paths = []
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            paths.append(os.readlink(link))
    return paths


def processes_with(variable):
    """
    Returns the processes whose environment has NAME=VALUE: all processes that a test started,
    whatever their parent is now.
    """
    found = []
    needle, me = variable.encode(), str(os.getpid())
    for entry in os.listdir("/proc"):
        if entry.isdigit() and entry != me and needle in environment_of(entry) and alive(int(entry)):
            found.append(int(entry))
    return found


def removed(path):
    """
    Removes a directory in which others still make or remove files; returns whether nothing is left.
    """
    shutil.rmtree(path, ignore_errors=True)
    return not path.exists()


def environment_of(pid):
    """Returns the NAME=VALUE strings of a process as bytes; none after it has exited."""
    try:
        fd = os.open(f"/proc/{pid}/environ", os.O_RDONLY)
        with open(fd, "rb", buffering=0) as f:
            return f.readall().split(b"\0")
    except OSError:
        return []


def descriptors(process):
    """
    Yields number, link and stat of each descriptor of a process (or a thread: "PID/task/TID").
    Leaves out those that it closes meanwhile.
    """
    found = []
    for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append((int(entry.name), os.readlink(entry), entry.stat()))
    return found


def open_fds(pid):
    """
    Returns the targets of the process's descriptors, sorted: sockets and similar ones without their
    numbers.
    """
    return sorted(re.sub(r"\[\d+\]", "", link) for _, link, _ in descriptors(pid))


def listener_of(pid):
    """
    Returns the directory in /proc of the program's listener thread; None if it has none. Other
    threads may exit meanwhile.
    """
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "comm").read_text() == "kymo-listener\n":
                return task
    return None


def command_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return "?"


def children(pid, name):
    """Returns the processes of this name that are children of the process."""
    found = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(p) for p in found if alive(int(p)) and command_of(p).startswith(name)]


def own_children():
    """Returns the test's own children, whatever their environment is."""
    found = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has exited
            found += (task / "children").read_text().split()
    return [int(pid) for pid in found]


def compact_journal(k):
    """Changes the session s until its journal is written anew, and therefore shorter."""
    journal = k.rundir / "sessions" / "s"
    size = longest = journal.stat().st_size
    while size >= longest:
        longest = size
        for command in ("pause", "resume"):
            k.ask(command, session="s")
        size = journal.stat().st_size


def consumers(k):
    """Returns the consumer processes of the test's daemon."""
    return [pid for pid in processes_with(k.mark) if "kymo-consumerd" in command_of(pid)]


def channel_parameters(options):
    """Returns the parameters of a request for these options of kymo enable-channel."""
    found = {}
    for option in options:
        name, _, value = option.removeprefix("--").partition("=")
        found.update({name.replace("-", "_"): value} if value else {"mode": name})
    return found


# ---- the system under test

examined = set()  # forms of commands that have been examined for leaks


def form_of(command, status):
    """Returns a command without what varies: values of options, paths, numbers."""
    words = [pathlib.Path(command[0]).name]
    for word in command[1:]:
        word = word.partition("=")[0] if word.startswith("-") else word
        words.append("PATH" if "/" in word else re.sub(r"\d+", "0", word))
    return (status, *words)


def without_second_search(command, status, env):
    """
    Returns the environment of a command. The search for leaks takes half the time of a short
    command with sanitizers. A form of command that a test file repeats allocates as before, so only
    the first one is examined. Daemons that a test starts always are. Under strace, the search does
    not work.
    """
    form = form_of(command, status)
    if not SANITIZED or (form not in examined and form[1] != "strace"):
        examined.add(form)
        return env
    return {**env, "ASAN_OPTIONS": f"{env.get('ASAN_OPTIONS', '')}:detect_leaks=0"}


class Kymo:
    """One private installation: directories, environment, and at most one session daemon."""

    def __init__(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="kymo-test-"))
        self.top.chmod(0o711)  # else root's `kymo record` makes no run directory below it
        self.rundir = self.top / "run"
        self.home = self.top / "home"
        self.traces = self.top / "traces"
        self.home.mkdir()
        self.mark = f"KYMO_TEST_MARK={self.top.name}"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("KYMO_", "XDG_", "LD_"))}
        self.env.update(KYMO_RUNDIR=str(self.rundir), KYMO_HOME=str(self.traces), HOME=str(self.home), LC_ALL="C.UTF-8",
            CCACHE_DIR=CCACHE_DIR, LD_LIBRARY_PATH=LIBDIR, KYMO_REGISTER_TIMEOUT="-1", KYMO_TEST_MARK=self.top.name, NO_COLOR="1")
        self.daemon = None
        self.daemon_fds = None
        self.started = []

    # -- the daemon

    def spawn_daemon(self, *args, env=None, wrap=(), collector=False, precedence=False):
        """
        Starts kymo-sessiond in the foreground without waiting; daemon_log() has its output. wrap: a
        command that runs it.
        """
        args = [*(() if collector else ("--no-collectd",)), *(() if precedence else ("--no-precedence",)), *args]
        with open(self.top / "sessiond.log", "ab") as log:
            daemon = subprocess.Popen([*wrap, SESSIOND, *args], env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log)
        self.started.append(daemon)
        return daemon

    def start_daemon(self, *args, env=None, collector=False, wrap=(), precedence=False):
        """Starts the daemon and waits until it replies."""
        self.daemon = self.spawn_daemon(*args, env=env, collector=collector, wrap=wrap, precedence=precedence)
        wait_for(lambda: self.answers() or self.daemon.poll() is not None, "the session daemon to answer")
        if self.daemon.poll() is not None:
            raise Failure(f"the session daemon ended with {self.daemon.returncode}:\n{self.daemon_log()}")
        if collector:  # when a session has been created, it is ready or has failed
            self.request(command="create", session="collector")
            self.request(command="destroy", session="collector")
        self.daemon_fds = open_fds(self.daemon.pid)
        return self.daemon

    def start_daemon_with_disk(self, size):
        """Starts a daemon in a mount namespace with a small file system; returns its directory."""
        need_mounts()
        disk = self.top / "disk"
        disk.mkdir()
        self.start_daemon(wrap=["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size={size} disk "{disk}" && exec "$0" "$@"'])
        return disk

    def answers(self):
        try:
            return self.request(command="hello").get("ok", False)
        except OSError:
            return False

    def request(self, **fields):
        """Sends one request to the control socket, and returns its reply."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(TIMEOUT)
            s.connect(str(self.rundir / "control.sock"))
            s.sendall(json.dumps(fields).encode() + b"\n")
            with s.makefile("rb") as f:
                line = f.readline()
        if not line:
            raise ConnectionError("the session daemon closed the connection")
        return json.loads(line)

    def ask(self, command, **parameters):
        """Sends a request that must succeed; returns its reply."""
        reply = self.request(command=command, **parameters)
        check(reply["ok"], f"{command} {parameters}: {reply}")
        return reply

    def daemon_log(self):
        path = self.top / "sessiond.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def stop_daemon(self):
        """Ends the daemon with SIGTERM; fails when it does not exit, or leaves something behind."""
        daemon, self.daemon = self.daemon, None
        daemon.terminate()
        try:
            status = daemon.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise Failure("the session daemon did not end on SIGTERM") from None
        check(status == 0, f"the session daemon ended with {status}:\n{self.daemon_log()[-3000:]}")
        left = {p.name for p in self.rundir.iterdir()} - LEFT_IN_RUNDIR if self.rundir.exists() else set()
        check(not left, f"left in the run directory: {sorted(left)}")

    def remove_rundir(self):
        """Removes the run directory. Its daemon may remove files of it at the same time."""
        wait_for(lambda: shutil.rmtree(self.rundir, ignore_errors=True) or not self.rundir.exists(), "the run directory to be gone")

    # -- the command line

    def kymo(self, *args, status=0, env=None, **options):
        """
        Runs kymo; fails if its exit status is another one (None: any), or if stderr has an
        unexpected message.
        """
        done = self.run([CLI, *args], status=status, env=env, **options)
        if status not in (0, None):
            lines = done.stderr.strip().splitlines()
            check(len(lines) == 1, f"kymo {' '.join(map(str, args))}: wanted one line on stderr, got: {done.stderr!r}")
        return done

    def kymo_json(self, *args, status=0):
        done = self.run([CLI, "--json", *args], status=status)
        return json.loads(done.stdout)

    def run(self, command, status=0, env=None, timeout=TIMEOUT, **options):
        """Runs a program to its end, with its output captured."""
        command = [str(c) for c in command]
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        env = without_second_search(command, status, {**self.env, **(env or {})})
        try:
            done = subprocess.run(command, env=env, timeout=timeout, text=True, errors="replace",
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        except subprocess.TimeoutExpired as e:
            raise Failure(f"{' '.join(command)}: still running after {timeout} s: {e.stderr}") from None
        wanted = status if isinstance(status, tuple) else (status,)
        if status is not None and done.returncode not in wanted:
            raise Failure(f"{' '.join(command)}: exit {done.returncode}, wanted {status}\n{done.stdout}{done.stderr}")
        return done

    def on_terminal(self, *args, env=None, **streams):
        """
        Runs kymo with a terminal for those of stdin, stdout and stderr that `streams` does not set,
        as for Popen. Returns the bytes that the terminal shows, and the exit status.
        """
        leader, follower = os.openpty()
        with open(leader, "rb", buffering=0) as screen:
            streams = {"stdin": follower, "stdout": follower, "stderr": follower, **streams}
            process = subprocess.Popen([CLI, *map(str, args)], env={**self.env, **(env or {})}, **streams)
            self.started.append(process)
            os.close(follower)
            shown = b""
            with contextlib.suppress(OSError):  # the end: the other side is closed
                while part := screen.read(65536):
                    shown += part
        return shown, process.wait(TIMEOUT)

    def record(self, *rules, session="s", channel=(), start=True):
        """
        Creates and starts a session with one channel and rules (default: all events); returns the
        trace directory. channel: options as of kymo enable-channel. It sends the commands' requests
        itself: most tests do this, and starting a command with sanitizers takes long.
        """
        out = self.traces / session
        self.ask("create", session=session, output=str(out))
        if channel:
            self.ask("enable-channel", session=session, channel="channel0", **channel_parameters(channel))
        self.ask("enable-event", session=session, patterns=",".join(rules or "*").split(","))
        if start:
            self.ask("start", session=session)
        return out

    def stop(self, session="s"):
        """
        Stops a session of which the consumer has to write very much. The command waits for 25 s at
        most, this function until all is written.
        """
        done = self.run([CLI, "stop", session], status=(0, 1))
        check(not done.returncode or "is not complete yet" in done.stderr, done.stderr)
        left = lambda: self.request(command="status", session=session)["session"]["in_buffers"]
        wait_for(lambda: not left(), lambda: f"{left()} events in buffers to be written")

    def env_without(self, library):
        """Returns the environment of a command that cannot load this library."""
        broken = self.top / "broken" / library
        broken.parent.mkdir(exist_ok=True)
        broken.touch()
        return {"LD_LIBRARY_PATH": f"{broken.parent}:{LIBDIR}"}

    # -- programs

    def app(self, name, *args, env=None, status=0, timeout=TIMEOUT):
        """Runs a program of test/integration/apps to its end; returns its output."""
        return self.run([APPS / name, *args], env=env, status=status, timeout=timeout).stdout

    def spawn(self, name, *args, env=None, wrap=()):
        """
        Starts a program of test/integration/apps, with pipes for stdin and stdout; finish() waits
        for it.
        """
        app = subprocess.Popen([*wrap, str(APPS / name), *map(str, args)], env={**self.env, **(env or {})}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.started.append(app)
        return app

    def wait_registered(self, *apps):
        """
        Waits until the daemon knows these programs: as long as no session records, they do not
        wait for that when they start.
        """
        known = lambda: {a["pid"] for a in self.request(command="list-events", brief=True)["applications"]}
        wait_for(lambda: known() >= {app.pid for app in apps}, "the program to register")

    def expect(self, app, wanted):
        """Waits for a line that the program must print; emit -w then waits for let_go()."""
        line = app.stdout.readline().strip()
        if line != wanted:
            app.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                line += "\n" + app.communicate(timeout=2)[0]  # why: a traceback has several lines
        equal(line, wanted, f"output of {app.args}")

    def read_until(self, app, wanted):
        """Skips the program's output before a line."""
        while (line := app.stdout.readline()) != f"{wanted}\n":
            check(line, f"{app.args} ended without saying {wanted!r}")

    def let_go(self, app):
        app.stdin.write("\n")
        app.stdin.flush()

    def finish(self, app, status=0, timeout=TIMEOUT):
        try:
            text = app.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            raise Failure(f"{command_of(app.pid)}: still running after {timeout} s") from None
        equal(app.returncode, status, f"exit status of {app.args}: {text}")
        return text

    # -- the end

    def leftovers(self):
        """Ends the daemon and fails when anything is left."""
        if self.daemon:
            # "destroy" refuses a session for which another command is in progress.
            wait_for(lambda: self.request(command="destroy", all=True) and self.request(command="list").get("sessions") == [],
                lambda: f"the end of all sessions: {self.request(command='list').get('sessions')}")
            wait_for(lambda: len(open_fds(self.daemon.pid)) <= len(self.daemon_fds),
                lambda: f"descriptors of the daemon: {self.new_fds()}")
            self.stop_daemon()
        wait_for(lambda: not processes_with(self.mark), "all processes of the test to end")

    def new_fds(self):
        extra = collections.Counter(open_fds(self.daemon.pid)) - collections.Counter(self.daemon_fds)
        return dict(extra)

    def tear_down(self, keep):
        for pid in {*processes_with(self.mark), *own_children()}:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            for stream in (process.stdin, process.stdout):
                if stream:
                    stream.close()
        if keep:
            print(f"# kept: {self.top}")
        else:
            shutil.rmtree(self.top, ignore_errors=True)


# ---- reading with babeltrace2

Event = collections.namedtuple("Event", "time name cpu fields")
# An event in babeltrace2's text; a string in it may have several lines.
LINES = re.compile(r"^\[(\d+)\] \(\S+\) (?:\S+ )?([^ :\n]+:[^ \n]+): (?:\{ (?:cpu_id = (\d+))?[^}]* \}, )?"
    r"(?:\{ vpid = \d+, vtid = \d+ \}, )?\{ ?((?:[^\n]*(?:\n(?!\[)[^\n]*)*?[^\n ])??) ?\}\n(?=\[|\Z)",
    re.MULTILINE)
# babeltrace2 prints the second form if the files with the first packets were removed: it cannot
# know how many events were discarded.
DISCARDED = re.compile(r"Tracer (?:discarded (\d+)|may have discarded) events?")


class Geometry:
    """The layout of a ring set (docs/shm-abi.md); offsets in bytes."""

    CONTROL, CONTROL_SIZE, ENTRY_SIZE, ROOM = 4096, 128, 64, 128

    def __init__(self, n_rings, n_blocks, block_size, per_thread=0):
        self.n_rings, self.n_blocks, self.block_size = n_rings, n_blocks, block_size
        self.control = self.CONTROL + ((n_rings * 8 + 4095) & ~4095 if per_thread else 0)
        self.table = self.control + n_rings * self.CONTROL_SIZE
        self.table_stride = (self.ENTRY_SIZE * n_blocks + 127) & ~127
        self.data = (self.table + n_rings * self.table_stride + 4095) & ~4095
        self.ring_size = n_blocks * block_size
        self.oldest = self.data + n_rings * self.ring_size
        self.total = self.oldest + ((n_rings * 8 + 4095) & ~4095)

    def control_of(self, ring):
        return self.control + ring * self.CONTROL_SIZE

    def table_of(self, ring):
        return self.table + ring * self.table_stride

    def data_of(self, ring):
        """Returns the offset of position 0."""
        return self.data + ring * self.ring_size + self.ROOM


# babeltrace2 looks at all streams for each event that it prints: more than these it reads in parts.
MAX_STREAMS = 32
TIME = re.compile(r"^\[(\d+)\] \(", re.MULTILINE)


def babeltrace(trace, *options):
    """
    Returns babeltrace2's text with times in nanoseconds, and the number of discarded events that it
    reported. Fails on other warnings.
    """
    groups = stream_groups(trace)
    if not groups:
        return babeltrace_part(trace, *options)
    with tempfile.TemporaryDirectory(prefix="kymo-parts-") as top:
        texts, discarded = zip(*(babeltrace_part(make_part(trace, paths, top), *options) for paths in groups))
    return in_order(texts), sum(discarded)


def metadata_sizes(trace):
    """Returns the size of each metadata file of a trace, which may move to an archive meanwhile."""
    found = {}
    for path in files_below(trace):
        with contextlib.suppress(FileNotFoundError):
            if path.name == "metadata":
                found[path] = path.stat().st_size
    return found


def babeltrace_part(trace, *options):
    """
    As babeltrace(), at once. A consumer may begin a chunk at any time: babeltrace2 reads the trace
    again if it may have found a metadata file without its text.
    """
    while True:
        wait_for(lambda: all(metadata_sizes(trace).values()), f"the text of the metadata of {trace}")
        before = metadata_sizes(trace)
        try:
            return babeltrace_once(trace, *options)
        except Failure:
            if metadata_sizes(trace) == before:
                raise


def babeltrace_once(trace, *options):
    with tempfile.TemporaryFile() as out:  # a pipe costs a wake-up for each line
        done = subprocess.run(["babeltrace2", "--clock-cycles", *options, str(trace)], stdout=out, stderr=subprocess.PIPE,
            timeout=TIMEOUT * 2, env={**os.environ, "LC_ALL": "C.UTF-8"})
        out.seek(0)
        text = out.read().decode(errors="surrogateescape")
    errors = done.stderr.decode(errors="replace")
    warnings = warnings_of(errors)
    check(done.returncode == 0 and not warnings, f"babeltrace2 ended with {done.returncode} and said:\n{errors[:3000]}")
    return text, sum(int(n or 0) for n in DISCARDED.findall(errors))


def stream_groups(trace):
    """
    Returns lists of stream files, each with at most MAX_STREAMS streams of one metadata file; none
    if the trace does not have more of them.
    """
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in streams(trace):
        found[path.parent][stream_of(path)].append(path)
    groups = []
    for files in map(list, map(dict.values, found.values())):
        groups += [sum(files[i : i + MAX_STREAMS], []) for i in range(0, len(files), MAX_STREAMS)]
    return groups if len(groups) > len(found) else []


def make_part(trace, paths, top):
    """Makes a trace below top that has only these streams, by links; returns its directory."""
    top = tempfile.mkdtemp(dir=top)
    part = pathlib.Path(top, paths[0].parent.relative_to(trace))
    part.mkdir(parents=True, exist_ok=True)
    for path in (paths[0].parent / "metadata", *paths):
        os.link(path, part / path.name)
    return top


def stream_of(path):
    """Returns the numbers that the files of one stream have in common."""
    with open(path, "rb") as f:
        data = f.read(PACKET.size)
    return Packet(*PACKET.unpack(data), None)[2:4] if len(data) == PACKET.size else path.name


def in_order(texts):
    """Returns the events of several texts in order of their times."""
    events = []
    for text in texts:
        starts = [(int(match[1]), match.start()) for match in TIME.finditer(text)]
        ends = [start for _, start in starts[1:]] + [len(text)]
        events += [(time, text[start:end]) for (time, start), end in zip(starts, ends)]
    return "".join(event for _, event in sorted(events, key=lambda event: event[0]))


def warnings_of(errors):
    """Returns what babeltrace2 said on stderr, without its reports of discarded events."""
    return [line for line in errors.splitlines() if line.strip() and not DISCARDED.search(line)]


def check_documented(found, section):
    """Checks that the manual page of kymo has each member of a command's JSON object."""
    text = (SOURCE / "man/kymo.1").read_text().split(f"\n.Ss {section}\n")[1].split("\n.Ss ")[0]
    missing = [name for name in found if name != "ok" and not re.search(rf"\b{name}\b", text)]
    equal(missing, [], f"members of {section} --json that the manual page does not have")


def read_trace(trace):
    """Returns all events, in order of time, with their fields as text or parsed (see fields())."""
    text, discarded = babeltrace(trace)
    return events_of(text), discarded


def events_of(text):
    """Returns the events of babeltrace2's text."""
    events = [Event(int(time), name, int(cpu) if cpu else None, found) for time, name, cpu, found in LINES.findall(text)]
    n_lines = text.count("\n[") + bool(text)
    check(len(events) == n_lines, lambda: f"babeltrace2 printed {n_lines} events, of which {len(events)} have the usual form: {odd_line(text)!r}")
    return events


def odd_line(text):
    """Returns the first event that LINES does not match."""
    end = 0
    for match in LINES.finditer(text):
        if match.start() != end:
            break
        end = match.end()
    return text[end : end + 1000]


INTEGERS = re.compile(r"(\w+) = (0x[0-9A-F]+|-?\d+)")


def integers(event):
    """Parses the fields of an event that has only integers, fast."""
    return {name: int(value, 16 if value[:2] == "0x" else 10) for name, value in INTEGERS.findall(event.fields)}


class Values:
    """
    Parses babeltrace2's text of fields: numbers, strings, arrays, structures, enumerations. A
    variant is a list of one element.
    """

    ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
    NAMED = re.compile(r"\w+ = ")
    NUMBER = re.compile(r"[-+]?(?:0x[0-9A-Fa-f]+|nan|inf|[0-9.]+(?:e[-+]?\d+)?)")

    def __init__(self, text):
        self.text = text
        self.pos = 0

    def take(self, token):
        if not self.text.startswith(token, self.pos):
            return False
        self.pos += len(token)
        return True

    def want(self, token):
        if not self.take(token):
            self.fail(repr(token))

    def fail(self, wanted):
        raise Failure(f"wanted {wanted} at {self.pos} of {self.text!r}")

    def fields(self, end):
        found = {}
        while self.pos < len(self.text) and not (end and self.text.startswith(end, self.pos)):
            name = re.compile(r"\w+").match(self.text, self.pos)
            if not name:
                self.fail("a field's name")
            self.pos = name.end()
            self.want(" = ")
            found[name[0]] = self.value()
            self.take(", ")
            self.take(" ") if not end else None
        return found

    def value(self):
        if self.take("["):
            return self.array()
        if self.take("( "):
            return self.enumeration()
        if self.take("{ }"):
            return {}
        if self.take("{ "):
            found = self.fields(" }") if self.NAMED.match(self.text, self.pos) else [self.value()]
            self.want(" }")
            return found
        if self.take('"'):
            return self.string()
        match = self.NUMBER.match(self.text, self.pos)
        if not match:
            self.fail("a value")
        self.pos = match.end()
        return self.number(match[0])

    @staticmethod
    def number(text):
        if "0x" in text:
            return int(text, 16)
        if text == "-0":
            return -0.0
        return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)

    def string(self):
        out = []
        while not self.take('"'):
            char = self.text[self.pos]
            self.pos += 1
            if char == "\\":
                char = self.text[self.pos]
                self.pos += 1
                char = self.ESCAPES.get(char, char)
            out.append(char)
        return "".join(out)

    def array(self):
        out = []
        self.take(" ")
        while not self.take("]"):
            self.want("[")
            self.pos = self.text.index("] = ", self.pos) + 4
            out.append(self.value())
            self.take(",")
            self.take(" ")
        return out

    def enumeration(self):
        """
        Parses ( "LABEL" : container = 3 ), with <unknown> if there is no label; returns (label or
        None, number).
        """
        label = None
        if not self.take("<unknown>"):
            self.want('"')
            label = self.string()
        self.want(" : container = ")
        number = self.value()
        self.want(" )")
        return (label, number)


# Most events have only integers. -0 is a floating-point number.
ONLY_INTEGERS = re.compile(r"(?:\w+ = (?:0x[0-9A-F]+|0|-?[1-9][0-9]*)(?:, (?!$)|$))+")


def fields(event):
    return integers(event) if ONLY_INTEGERS.fullmatch(event.fields) else Values(event.fields).fields("")


# ---- reading packets, as docs/trace-format.md describes them: babeltrace2's text does not show
# them

PACKET = struct.Struct("<I16sIQ24sQQQQQQQQQ")
Packet = collections.namedtuple("Packet", "magic uuid stream_id instance owner pos_begin"
    " begin end events lost_too_big content_bits packet_bits seq discarded payload")
Record = collections.namedtuple("Record", "id time payload")
WORD = struct.Struct("<I")
PACKET_MAGIC = 0xC1FC1FC1


def check_private(trace):
    """Checks that users outside the owner's group can neither read nor enter a trace."""
    found = {(p.is_dir(), p.stat().st_mode & 0o777) for p in (trace, *trace.rglob("*"))}
    equal(found, {(True, 0o750), (False, 0o640)}, f"modes of directories and files in {trace}")


def files_below(top):
    """Returns what is no directory below this one; directories may move meanwhile."""
    return [pathlib.Path(folder, name) for folder, _, names in os.walk(top) for name in names]


def streams(trace):
    """Returns the stream files of a trace, except those that were set apart."""
    others = ("index", "damaged")
    return sorted(p for p in files_below(trace) if p.is_file() and p.name not in ("metadata", ".watermark") and p.parent.name not in others)


def packets(path, first=0, growing=False):
    """
    Yields the packets of a stream file. Fails unless each packet's header respects every rule of
    the format. first: the number of the first packet; None for a file that may continue another
    one. growing: a part of a packet that is being written is ignored.
    """
    data = pathlib.Path(path).read_bytes()
    offset, before = 0, None
    while offset < len(data):
        if growing and (offset + PACKET.size > len(data) or offset + Packet(*PACKET.unpack_from(data, offset), None).packet_bits // 8 > len(data)):
            return
        check(offset + PACKET.size <= len(data), f"{path}: {len(data) - offset} bytes after the last packet")
        packet = Packet(*PACKET.unpack_from(data, offset), None)
        size, content = packet.packet_bits // 8, packet.content_bits // 8
        check(PACKET.size <= content <= size and offset + size <= len(data), f"{path}: packet sizes at {offset}: {packet}")
        packet = packet._replace(payload=data[offset + PACKET.size : offset + content])
        check_packet(path, packet, before, first)
        yield packet
        offset, before = offset + size, packet


def check_packet(path, packet, before, first):
    where = f"{path}: packet {packet.seq}: {packet._replace(payload=None)}"
    check(packet.magic == PACKET_MAGIC, where)
    check(packet.begin <= packet.end, f"{where}: ends before it begins")
    check((packet.events == 0) == (not packet.payload), f"{where}: events without bytes, or bytes without events")
    if not before:
        check(first is None or packet.seq == first, f"{where}: first is not number {first}")
        return
    check(packet.seq == before.seq + 1, f"{where}: number does not follow {before.seq}")
    check(packet.begin >= before.end, f"{where}: begins before the last one ended")
    check(packet.pos_begin >= before.pos_begin + len(before.payload), f"{where}: begins before the position where the last one ended")
    check((packet.uuid, packet.stream_id, packet.instance) == (before.uuid, before.stream_id, before.instance),
        f"{where}: of another stream")
    check(packet.discarded >= before.discarded, f"{where}: discarded count fell")


def records(packet, size_of, last):
    """
    Yields the records of a packet. size_of(id, payload, offset) returns the number of bytes of a
    payload. last: the clock of the previous record, 0 if there is none.
    """
    payload, length, offset, n = packet.payload, len(packet.payload), 0, 0
    begin, end = packet.begin, packet.end
    last = last or begin
    while offset < length:
        word = WORD.unpack_from(payload, offset)[0] if offset + 4 <= length else payload[offset]
        event = word & 31
        if event == 31:
            event, now = struct.unpack_from("<IQ", payload, offset + 1)
            offset += 13
        else:
            now = (last & ~0x7FFFFFF) | word >> 5
            if now < last:
                now += 0x8000000
            offset += 4
        if not (last <= now <= end and begin <= now):
            raise Failure(f"record {n} at {now} is not between {max(last, begin)} and the packet's end {end}")
        size = size_of(event, payload, offset)
        if offset + size > length:
            raise Failure(f"record {n} (event {event}) crosses the packet's end")
        yield Record(event, now, payload[offset : offset + size])
        offset, last, n = offset + size, now, n + 1
    equal(n, packet.events, "records in a packet whose header counts them")


def check_streams(trace, size_of=None, first=0, growing=False):
    """
    Checks every packet, and with size_of the clock of every record; returns (events, discarded) of
    the whole trace. first: None if a stream has several files. growing: it is being written.
    """
    total, lost = 0, {}
    for path in streams(trace):
        last = 0
        for packet in packets(path, first, growing):
            stream = (packet.uuid, packet.stream_id, packet.instance)
            lost[stream] = max(lost.get(stream, 0), packet.discarded)
            total += packet.events
            if size_of:
                for record in records(packet, size_of, last):
                    last = record.time
    return total, sum(lost.values())


def fixed(size):
    return lambda event, payload, offset: size


def private_mib(pid):
    """Returns the process's memory that no file backs."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status)[1]) / 1024


def check_counts(k, trace, emitted):
    """
    Checks that recorded + discarded = emitted, and that the three readers agree on both; returns
    the events.
    """
    events, bt_discarded = read_trace(trace)
    recorded, discarded = check_streams(trace)
    equal(len(events), recorded, "events that babeltrace2 reads, against those the packets count")
    equal(bt_discarded, discarded, "discarded events that babeltrace2 reports, against those the packets count")
    stat = k.kymo_json("stat", trace)
    equal((stat["events"], stat["discarded"]), (recorded, discarded), "what kymo stat says of the trace")
    equal(recorded + discarded, emitted, f"recorded ({recorded}) + discarded ({discarded}), against emitted")
    return events


# ---- running the tests of a file


def run_one(name, function, keep):
    k = Kymo()
    try:
        function(k)
        k.leftovers()
        return "ok", None
    except Skip as e:
        return "skip", str(e)
    except Exception as e:
        where = traceback.extract_tb(e.__traceback__)[1:]
        lines = [f"{pathlib.Path(f.filename).name}:{f.lineno} {f.line}" for f in where]
        log = k.daemon_log()
        return "FAIL", "\n".join([str(e) if isinstance(e, Failure) else repr(e), *lines, *(["session daemon:", *log.splitlines()[-20:]] if log else [])])
    finally:
        k.tear_down(keep)


def main():
    module = sys.modules["__main__"]
    names = [a for a in sys.argv[1:] if a != "-k"]
    tests = [(n, f) for n, f in vars(module).items() if n.startswith("test_") and callable(f)]
    tests = [(n, f) for n, f in tests if not names or any(wanted in n for wanted in names)]
    tests = [(n, f) for n, f in tests if not getattr(f, "left_out", False)]
    results = []
    if not os.access(SESSIOND, os.X_OK):
        sys.exit(f"nothing to test: {SESSIOND} is missing (set KYMO_TEST_BUILD to a build directory)")
    print(f"1..{len(tests)}")
    for number, (name, function) in enumerate(tests, 1):
        begin = time.monotonic()
        result, detail = run_one(name, function, "-k" in sys.argv)
        results.append(result)
        head = "not ok" if result == "FAIL" else "ok"
        print(f"{head} {number} - {name} ({time.monotonic() - begin:.1f} s)" + (f" # SKIP: {detail}" if result == "skip" else ""))
        for line in (detail or "").splitlines() if result == "FAIL" else []:
            print(f"#   {line}")
        sys.stdout.flush()
    if "FAIL" in results or not results:
        sys.exit(1)
    sys.exit(77 if set(results) == {"skip"} else 0)
