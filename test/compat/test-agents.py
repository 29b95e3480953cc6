#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
LTTng-UST's own agents for Python and Java record into Kymo's sessions (docs/agents.md), and the
port that they connect to. Simple agents of the test's own speak the protocol where the order of
messages matters.
"""

import contextlib
import json
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
import kymotest  # noqa: E402
from kymotest import BUILD, RUN_FROM, TIMEOUT, Failure, Skip, check, equal, wait_for, without_sanitizers  # noqa: E402

AGENTD = str(RUN_FROM / "src" / "agentd" / "kymo-agentd")
STAND_IN = str(BUILD / "src" / "lttng")
PYTHON = "/usr/bin/python3"  # Debian's, which has the agent
JARS = [f"/usr/share/java/{n}.jar" for n in ("lttng-ust-agent-common", "lttng-ust-agent-jul", "lttng-ust-agent-log4j", "log4j-1.2")]
JNI = "/usr/lib/x86_64-linux-gnu/jni"
PYTHON_DOMAIN, JUL_DOMAIN = 5, 3
LIST, ENABLE, DISABLE, REGISTERED = 1, 2, 3, 4
WANTS, IS_READY = 0, 2  # of src/abi/agents.h
SUCCESS = struct.pack(">I", 1)
OTHER_USER = 54321

LOGS = """import logging, lttngust
mine, other = logging.getLogger("my.logger"), logging.getLogger("other")
for i in range(3):
    mine.info("hello %d", i)
    mine.warning('careful "%d"', i)
    other.error("no %d", i)
    mine.debug("detail")
"""
SERVICE = """import logging, sys, lttngust
mine = logging.getLogger("my.logger")
print(len(logging.getLogger().handlers), flush=True)
for line in sys.stdin:
    mine.warning(line.strip())
    print(len(logging.getLogger().handlers), flush=True)
"""
# LTTng's agent waits for one session daemon alone, root's if that has a port: another one than
# this test's may run, so the programs wait until the agent is enabled.
JUL = """import java.util.logging.*;
import org.lttng.ust.agent.jul.LttngLogHandler;
public class Jul {
    public static void main(String[] args) throws Exception {
        Logger mine = Logger.getLogger("my.logger"), other = Logger.getLogger("other");
        Logger early = Logger.getLogger("early");
        LttngLogHandler h = new LttngLogHandler();
        for (Logger l : new Logger[] {mine, other, early}) {
            l.addHandler(h);
            l.setUseParentHandlers(false);
            l.setLevel(Level.ALL);
        }
        for (; h.getEventCount() == 0; Thread.sleep(10))
            early.finest("not enabled yet");
        for (int i = 0; i < 3; i++) {
            mine.info("hello " + i);
            mine.warning("careful " + i);
            other.severe("no " + i);
            mine.fine("detail");
        }
        h.close();
    }
}
"""
LOG4J = """import org.apache.log4j.*;
import org.lttng.ust.agent.log4j.LttngLogAppender;
public class Log4j {
    public static void main(String[] args) throws Exception {
        Logger mine = Logger.getLogger("my.logger"), other = Logger.getLogger("other");
        Logger early = Logger.getLogger("early");
        LttngLogAppender a = new LttngLogAppender();
        mine.addAppender(a);
        other.addAppender(a);
        early.addAppender(a);
        for (; a.getEventCount() == 0; Thread.sleep(10))
            early.debug("not enabled yet");
        for (int i = 0; i < 3; i++) {
            mine.info("hello " + i);
            mine.warn("careful " + i);
            other.error("no " + i);
            mine.debug("detail");
        }
        a.close();
    }
}
"""


def need_python():
    if not os.path.exists("/usr/lib/python3/dist-packages/lttngust"):
        raise Skip("LTTng's agent for Python is missing (Debian package python3-lttngust)")


def need_java():
    if not shutil.which("javac") or not all(os.path.exists(j) for j in JARS):
        raise Skip("a JDK, Log4j or LTTng's agents for Java are missing (scripts/deps --compat)")


def messages(trace, *fields):
    """Returns these fields of each event, as text."""
    events, discarded = kymotest.read_trace(trace)
    equal(discarded, 0, "discarded events")
    return [tuple(kymotest.fields(e)[f] for f in fields) for e in events]


def record(k, *args, env=None):
    trace = k.top / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    k.kymo("record", "--no-summary", "-o", trace, *args, env=env)
    return trace


def by_text(trace):
    return [text for text, in messages(trace, "msg")]


def file_of(k):
    return k.home / ".lttng" / "agent.port"


def start(k):
    k.env["LTTNG_HOME"] = str(k.home)
    k.start_daemon()
    k.kymo("create", "demo", "-o", k.top / "trace")


# ---- LTTng's agents


@without_sanitizers
def test_python_program(k):
    need_python()
    (k.top / "app.py").write_text(LOGS)
    run = ["--", PYTHON, k.top / "app.py"]
    trace = record(k, "--python", "-e", "my.logger", *run)
    equal(messages(trace, "msg", "logger_name", "int_loglevel", "lineno", "threadName")[:2],
        [("hello 0", "my.logger", 20, 4, "MainThread"), ('careful "0"', "my.logger", 30, 5, "MainThread")], "the first messages")
    equal(len(messages(trace)), 9, "messages of the logger")
    equal(len(messages(record(k, "--python", *run))), 12, "messages of all loggers")
    equal(by_text(record(k, "-p", "-e", "my.*,none", "-l", "WARNING", *run)), [f'careful "{i}"' for i in range(3)], "of a level or more")
    equal(by_text(record(k, "-p", "-e", "my.logger", "--loglevel-only=PYTHON_DEBUG", *run)), ["detail"] * 3, "of one level")
    equal(by_text(record(k, "-p", "-e", "my.logger,other", "-f", 'msg == "*2*" && int_loglevel > 20', *run)), ['careful "2"', "no 2"], "filtered")


@without_sanitizers
def test_python_service(k):
    """A program that runs is switched on and off, and its messages go to a session."""
    need_python()
    start(k)
    k.kymo("enable-event", "--python", "-s", "demo", "my.logger,other", "--loglevel=INFO")
    app = subprocess.Popen([PYTHON, "-c", SERVICE], env={**k.env, "LD_LIBRARY_PATH": f"{STAND_IN}:{k.env['LD_LIBRARY_PATH']}"}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    k.started.append(app)
    k.expect(app, "1")
    k.wait_registered(app)

    def log(text):
        app.stdin.write(text + "\n")
        app.stdin.flush()
        return app.stdout.readline().strip()

    log("before start")
    k.kymo("start", "demo")
    log("one")
    k.kymo("disable-event", "--python", "-s", "demo", "my.logger")
    log("disabled")
    k.kymo("enable-event", "--python", "-s", "demo", "my.logger", "-f", 'msg != "two"')
    log("two")
    log("three")
    k.kymo("disable-event", "--python", "-s", "demo", "--all")
    wait_for(lambda: log("all disabled") == "0", "the agent to be switched off")
    wait_for(lambda: not file_of(k).exists(), "the port to be closed")
    k.finish(app)
    k.kymo("destroy", "demo")
    equal(by_text(k.top / "trace"), ["one", "three"], "messages")


def java(k, name, source, option, levels):
    """levels: of INFO, WARNING and the error, and the domain's text of the second."""
    need_java()
    path = os.pathsep.join([*JARS, str(k.top)])
    (k.top / f"{name}.java").write_text(source)
    k.run(["javac", "-cp", path, "-d", k.top, k.top / f"{name}.java"])
    run = ["--", "java", "-cp", path, f"-Djava.library.path={JNI}", name]
    trace = record(k, option, "-e", "my.logger", "-l", levels[3], *run)
    equal(messages(trace, "msg", "logger_name", "class_name", "int_loglevel"), [(f"careful {i}", "my.logger", name, levels[1]) for i in range(3)],
        "messages of a level")
    equal(by_text(record(k, option, "-f", f"int_loglevel == {levels[2]} || msg == \"hello 1\"", *run)), ["no 0", "hello 1", "no 1", "no 2"],
        "filtered messages")


@without_sanitizers
def test_java_util_logging(k):
    java(k, "Jul", JUL, "--jul", (800, 900, 1000, "WARNING"))


@without_sanitizers
def test_log4j(k):
    java(k, "Log4j", LOG4J, "--log4j", (20000, 30000, 40000, "LOG4J_WARN"))


@without_sanitizers
def test_python_loggers(k):
    need_python()
    start(k)
    k.kymo("enable-event", "--python", "-s", "demo", "none")
    app = subprocess.Popen([PYTHON, "-c", SERVICE], env={**k.env, "LD_LIBRARY_PATH": f"{STAND_IN}:{k.env['LD_LIBRARY_PATH']}"}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    k.started.append(app)
    k.expect(app, "1")
    k.wait_registered(app)
    said = wait_for(lambda: "my.logger" in (text := k.kymo("list", "--python").stdout) and text, "the loggers")
    check(f"{app.pid} python3, user {os.geteuid()}, python\n" in said and "\n  my.logger\n" in said, said)
    check("my.logger" not in k.kymo("list", "-j", "-l").stdout, "loggers of another kind")
    k.finish(app)
    k.kymo("destroy", "demo")


@without_sanitizers
def test_java_loggers(k):
    """Both of LTTng's Java agents list the loggers that have its handler."""
    need_java()
    start(k)
    k.kymo("enable-event", "--jul", "-s", "demo", "none")
    k.kymo("enable-event", "--log4j", "-s", "demo", "none")
    path = os.pathsep.join([*JARS, str(k.top)])
    apps = []
    for name, source, end in (("Jul", JUL, "h.close();"), ("Log4j", LOG4J, "a.close();")):
        (k.top / f"{name}.java").write_text(source.replace(end, f"System.in.read(); {end}"))
        k.run(["javac", "-cp", path, "-d", k.top, k.top / f"{name}.java"])
        apps.append(subprocess.Popen(["java", "-cp", path, f"-Djava.library.path={JNI}", name], stdin=subprocess.PIPE,
            env={**k.env, "LD_LIBRARY_PATH": f"{STAND_IN}:{k.env['LD_LIBRARY_PATH']}"}, stderr=subprocess.DEVNULL))
        k.started.append(apps[-1])

    def listed(*options):
        text = k.kymo("list", *options).stdout
        return "\n  my.logger\n" in text and "\n  other\n" in text and text

    check("log4j" not in wait_for(lambda: listed("--jul"), "the loggers of java.util.logging"), "only these")
    wait_for(lambda: listed("--log4j"), "the loggers of Log4j")
    for app in apps:
        app.communicate(b"end\n", timeout=TIMEOUT)
    k.kymo("destroy", "demo")


# ---- the protocol


class Agent:
    def __init__(self, port, domain, major=2):
        self.s = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
        self.s.sendall(struct.pack(">IIII", domain, os.getpid(), major, 0))

    def receive(self, n):
        data = b""
        while len(data) < n:
            more = self.s.recv(n - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def command(self, reply=True):
        """Receives a command and replies; returns its number."""
        size, number, _ = struct.unpack(">QII", self.receive(16))
        body = self.receive(size)
        if number in (ENABLE, DISABLE):
            check(b"*\0" in body, f"all loggers are meant: {body}")
            if reply:
                self.s.sendall(SUCCESS)
        return number

    def is_closed(self):
        try:
            return not self.s.recv(1)
        except ConnectionError:
            return True


def port_of(k):
    return int(file_of(k).read_text())


def has_listener(port):
    with contextlib.closing(socket.socket()) as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def test_port_while_used(k):
    start(k)
    check(not file_of(k).exists(), "no port before it is used")
    k.kymo("enable-event", "-s", "demo", "*,lttng_ust_tracef:*")
    check(not file_of(k).exists(), "nor for other events")
    k.kymo("enable-event", "--jul", "-s", "demo", "a.b")
    port = port_of(k)
    listening = [line.split()[1] for name in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"]
    equal(listening, [f"0100007F:{port:04X}"], "it listens on the loopback address alone")
    # Another kind of agent is registered, and records nothing.
    agent = Agent(port, JUL_DOMAIN)
    equal([agent.command(), agent.command()], [ENABLE, REGISTERED], "commands")
    python = Agent(port, PYTHON_DOMAIN)
    equal(python.command(), REGISTERED, "the command")
    k.kymo("create", "second", "-o", k.top / "second")
    k.kymo("enable-event", "--python", "-s", "second", "--all")
    equal(python.command(), ENABLE, "after a rule for Python")
    k.kymo("disable-event", "--jul", "-s", "demo", "a.b")
    equal(agent.command(), DISABLE, "after the last rule for Java")
    equal(port_of(k), port, "the port")
    k.kymo("destroy", "second")
    equal(python.command(), DISABLE, "after the last rule")
    check(python.is_closed() and agent.is_closed(), "the connections are closed")
    wait_for(lambda: not file_of(k).parent.exists() and not has_listener(port), "the port to be closed")


def test_silent_agents(k):
    """Agents that do not reply, and connections that are no agents, delay nobody."""
    start(k)
    k.kymo("enable-event", "--jul", "-s", "demo", "--all")
    silent, empty = Agent(port_of(k), JUL_DOMAIN), socket.create_connection(("127.0.0.1", port_of(k)))
    equal(silent.command(reply=False), ENABLE, "command")
    for _ in range(3):
        k.kymo("disable-event", "--jul", "-s", "demo", "--all", "--remove")
        k.kymo("enable-event", "--jul", "-s", "demo", "--all")
    agent = Agent(port_of(k), JUL_DOMAIN)
    equal(agent.command(), ENABLE, "command")
    other = Agent(port_of(k), JUL_DOMAIN, major=9)
    check(other.is_closed(), "an agent of another version is refused")
    for _ in range(40):
        check(Agent(port_of(k), JUL_DOMAIN, major=9).is_closed(), "so are more of them")
    equal(k.daemon_log().count("speaks another version"), 20, "lines of the log, which are limited")
    odd = Agent(port_of(k), PYTHON_DOMAIN)
    equal(odd.command(), REGISTERED, "command")
    odd.s.sendall(b"something else")
    check(odd.is_closed(), "a reply to nothing is refused")
    empty.close()


class Lister:
    """An agent that replies to requests for its loggers, until its connection ends."""

    def __init__(self, k, domain, enabled, reply):
        self.agent = Agent(port_of(k), domain)
        self.reply = reply  # or None: it does not reply any more
        for command in [ENABLE, REGISTERED] if enabled else [REGISTERED]:
            equal(self.agent.command(), command, "command")
        self.commands = []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        with contextlib.suppress(EOFError, OSError):
            self.agent.s.settimeout(None)
            while True:
                self.commands.append(self.agent.command())
                if self.commands[-1] == LIST and self.reply:
                    self.agent.s.sendall(self.reply)

    def end(self):
        with contextlib.suppress(OSError):
            self.agent.s.shutdown(socket.SHUT_RDWR)
        self.thread.join()


def list_of(names, tail=b""):
    data = b"".join(n + b"\0" for n in names) + tail
    return struct.pack(">III", 1, len(data), len(names)) + data


def agents_of(k):
    return json.loads(k.kymo("list", "--jul", "--json").stdout)["agents"]


def test_lists(k):
    """Long, odd and missing lists of loggers."""
    start(k)
    k.kymo("enable-event", "--jul", "-s", "demo", "--all")
    equal(k.kymo("list", "--jul").stdout, "no program of that kind is connected\n", "without agents")
    many = [f"com.example.part{i}.Class{i}".encode() for i in range(5000)]
    agents = [Lister(k, JUL_DOMAIN, True, list_of(many)), Lister(k, JUL_DOMAIN, True, list_of([b"a\xff\x1b[1m", b"", "\u00fc".encode()], b"cut")),
        Lister(k, PYTHON_DOMAIN, False, struct.pack(">I", 2))]
    try:
        names = [*(n.decode() for n in many), "a?\x1b[1m", "", "\u00fc"]
        who = {"pid": os.getpid(), "uid": os.geteuid()}
        # Agents of one process are listed together; one has refused.
        wanted = [{"domain": "jul", **who, "answered": True, "complete": True, "loggers": names},
            {"domain": "python", **who, "answered": False, "complete": False, "loggers": []}]
        # They have a second for their replies, which may not be enough for this program.
        wait_for(lambda: agents_of(k) == wanted, "the lists")
        agents[2].reply = list_of([])
        wait_for(lambda: agents_of(k)[1] == {"domain": "python", **who, "answered": True, "complete": True, "loggers": []}, "no logger")
        # An agent that does not reply is named as such; others are listed.
        agents[0].reply = None
        said = k.kymo("list", "--jul").stdout
        check("  it has not answered\n" in said and "part1" not in said, said)
        # It replies late: the next list is another one. This one is too long.
        agents[0].agent.s.sendall(list_of([b"late"]))
        agents[0].reply = list_of([b"x" * 1000] * 5000)
        found = wait_for(lambda: (a := agents_of(k)[0])["answered"] and not a["complete"] and a["loggers"], "a part of a long list")
        check(found.count("x" * 1000) > 100 and set(found) <= {"x" * 1000, *names}, "its names")
        # It may be late again.
        wait_for(lambda: k.kymo("list", "--jul").stdout.count("and more: too many to list") == 1, "what is said of it")
        # They are switched as before.
        k.kymo("enable-event", "--python", "-s", "demo", "--all")
        k.kymo("disable-event", "--jul", "-s", "demo", "--all")
        wait_for(lambda: [a.commands[-1] for a in agents] == [DISABLE, DISABLE, ENABLE], "the last commands")
    finally:
        for a in agents:
            a.end()


def test_lists_at_once(k):
    """Several requests are answered, also when the process dies meanwhile."""
    start(k)
    k.kymo("enable-event", "--jul", "-s", "demo", "--all")
    said = []

    def ask():
        t = threading.Thread(target=lambda: said.append(k.kymo("list", "--jul").stdout))
        t.start()
        return t

    agent = Lister(k, JUL_DOMAIN, True, list_of([b"one"]))
    try:
        for t in [ask() for _ in range(4)]:
            t.join()
        equal(len(said), 4, "lists")
        wait_for(lambda: "\n  one\n" in k.kymo("list", "--jul").stdout, "the list")
    finally:
        agent.end()
    agent = Lister(k, JUL_DOMAIN, True, None)
    try:
        asking = ask()
        wait_for(lambda: agent.commands == [LIST], "the request")
        (pid,) = kymotest.children(k.daemon.pid, "kymo-agentd")
        os.kill(pid, signal.SIGKILL)
        asking.join()
        equal(len(said), 5, "lists")
    finally:
        agent.end()
    wait_for(lambda: kymotest.children(k.daemon.pid, "kymo-agentd") not in ([], [pid]), "another process")


def test_hostile_programs(k):
    """Programs that send anything, half of it, or too often do not disturb agents."""
    start(k)
    k.kymo("enable-event", "--jul", "-s", "demo", "--all")
    port = port_of(k)
    agent = Agent(port, JUL_DOMAIN)
    equal([agent.command(), agent.command()], [ENABLE, REGISTERED], "commands")
    (pid,) = kymotest.children(k.daemon.pid, "kymo-agentd")
    rng = random.Random(1)
    registration = struct.pack(">IIII", JUL_DOMAIN, 1, 2, 0)
    for i in range(300):
        with contextlib.suppress(OSError):
            s = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
            half = registration[:rng.randrange(17)] if i % 2 else b"GET / HTTP/1.1\r\n\r\n"
            s.sendall(half + rng.randbytes(rng.choice((0, 3, 100, 100000))) if i % 3 else half)
            s.close()
    # One user has no more than 256 agents, and there is room again when these have ended.
    crowd = []
    for i in range(300):
        crowd.append(socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT))
    refused = wait_for(lambda: select.select(crowd, [], [], TIMEOUT)[0], "those that are too many")
    check(all(s.recv(1) == b"" for s in refused), "they are closed")
    for s in crowd:
        s.close()
    equal(kymotest.children(k.daemon.pid, "kymo-agentd"), [pid], "the process")

    def connects():
        with contextlib.suppress(EOFError, OSError):
            a = Agent(port, JUL_DOMAIN)
            return [a.command(), a.command()] == [ENABLE, REGISTERED] and a

    wait_for(connects, "room for another agent").s.close()
    k.kymo("disable-event", "--jul", "-s", "demo", "--all")
    equal(agent.command(), DISABLE, "the first agent's command")


def test_daemon_dies(k):
    """Agents find the next daemon's port, because it is the same."""
    start(k)
    k.kymo("enable-event", "--python", "-s", "demo", "--all")
    port, old = port_of(k), k.daemon
    agent = Agent(port, PYTHON_DOMAIN)
    equal([agent.command(), agent.command()], [ENABLE, REGISTERED], "commands")
    old.kill()
    old.wait()
    check(agent.is_closed(), "the connection is closed")

    def reconnect():
        with contextlib.suppress(OSError):
            return Agent(port, PYTHON_DOMAIN)

    if not k.answers():
        with contextlib.suppress(Failure):
            k.start_daemon()
    agent = wait_for(reconnect, "the port of the next daemon")
    equal([agent.command(), agent.command()], [ENABLE, REGISTERED], "commands")
    equal(port_of(k), port, "the port")
    k.kymo("destroy", "demo")
    wait_for(lambda: not file_of(k).parent.exists(), "the port to be closed")


def test_port_of_another(k):
    """A port that another server has in the file is left alone, and named."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        file_of(k).parent.mkdir()
        file_of(k).write_text(f"{port}\n")
        start(k)
        said = k.kymo("enable-event", "--python", "-s", "demo", "x").stdout
        check(f"{file_of(k)} is in use" in said and f"on port {port}" in said, said)
        said = k.kymo("status", "demo").stdout
        check("is in use" in said, said)
        equal(port_of(k), port, "the port")
        k.kymo("destroy", "demo")
    equal(port_of(k), port, "the file of the other")
    shutil.rmtree(file_of(k).parent)


def test_process_dies(k):
    """The daemon starts the process again."""
    start(k)
    k.kymo("enable-event", "--python", "-s", "demo", "x")
    (pid,) = kymotest.children(k.daemon.pid, "kymo-agentd")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: kymotest.children(k.daemon.pid, "kymo-agentd") not in ([], [pid]), "another process")
    wait_for(lambda: has_listener(port_of(k)), "its port")
    check("cannot connect" not in k.kymo("enable-event", "--python", "-s", "demo", "y").stdout, "it is well")


def test_users(k):
    """Only programs of the same user may connect."""
    if os.geteuid() != 0:
        raise Skip("other users need root")
    k.top.chmod(0o755)
    home = k.top / "other"
    home.mkdir()
    os.chown(home, OTHER_USER, OTHER_USER)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen([AGENTD, home / ".lttng" / "agent.port"], stdin=theirs, user=OTHER_USER, group=OTHER_USER, extra_groups=[],
        env=k.env)
    k.started.append(process)
    theirs.close()
    ours.settimeout(TIMEOUT)
    ours.send(struct.pack("=III", WANTS, PYTHON_DOMAIN, OTHER_USER))
    equal(ours.recv(100), struct.pack("=I", IS_READY), "its report")
    port = int((home / ".lttng" / "agent.port").read_text())
    check(Agent(port, PYTHON_DOMAIN).is_closed(), "root's programs are root's daemon's")
    # Java's sockets are of the second family.
    for family, address in (("AF_INET", "127.0.0.1"), ("AF_INET6", "::ffff:127.0.0.1")):
        program = f"""import socket, struct
s = socket.socket(socket.{family})
s.connect(("{address}", {port}))
s.sendall(struct.pack(">IIII", {PYTHON_DOMAIN}, 1, 2, 0))
print(struct.unpack(">QII", s.recv(16))[1])
"""
        done = subprocess.run([PYTHON, "-c", program], user=OTHER_USER, group=OTHER_USER, extra_groups=[], capture_output=True, text=True)
        equal(done.stdout, f"{ENABLE}\n", f"the first command to its user's program ({family}): {done.stderr}")
    ours.send(struct.pack("=I", WANTS))
    equal(process.wait(TIMEOUT), 0, "its end")
    check(not (home / ".lttng").exists(), "the port is removed")


# ---- the command line


def test_refused_options(k):
    start(k)
    for args, said in (
        (["--python", "--jul", "x"], "either --python or --jul"),
        (["--python", "x", "-l", "LOUD"], "CRITICAL, ERROR, WARNING, INFO, DEBUG, NOTSET"),
        (["--jul", "x", "-l", "99999999999"], "is not a level of --jul"),
        (["--jul", "x", "-x", "y"], "use a filter to exclude loggers"),
        (["--jul"], "no pattern"),
        (["-l", "my.logger", "x"], "--log4j"),
    ):
        check(said in k.kymo("enable-event", "-s", "demo", *args, status=2).stderr, f"{args}")
    k.kymo("enable-event", "--log4j2", "-s", "demo", "a", "-l", "WARN")
    rule = k.kymo_json("status", "demo")["session"]["channels"][0]["rules"][0]
    equal((rule["pattern"], rule["filter"]), ("lttng_log4j2:event", 'logger_name == "a" && int_loglevel <= 300'), "the rule")
    check("no enabled rule" in k.kymo("disable-event", "--log4j2", "-s", "demo", "b", status=1).stderr, "nothing to disable")
    k.kymo("disable-event", "--log4j2", "-s", "demo", "a", "--remove")
    equal(k.kymo_json("status", "demo")["session"]["channels"][0]["rules"], [], "rules")


if __name__ == "__main__":
    kymotest.main()
