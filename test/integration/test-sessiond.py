#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The session daemon through its protocols only: with simulated applications, byte for byte, and
control requests as JSON.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import threading
import time

import kymotest
from kymotest import Skip, alive, check, consumers, equal, wait_for
from program import (ACK, CAP_RSEQ, DONE, EMPTY, EVENTS, HELLO, NEW_EVENTS, ORDER, ORDER_TEXT, QUERY, REFUSED, RING_SET, START,
    STOP, UINT, UNMAP, Program, ask, blob, description, listed, refused, text)

F_GET_SEALS, SEALS = 1034, 1 | 2 | 4
PATIENCE = 0.09  # seconds that a command waits for an application


def make_session(k, *patterns, start=True, **channel):
    out = k.traces / "s"
    k.traces.mkdir(exist_ok=True)
    ask(k, "create", session="s", output=str(out))
    if channel:
        ask(k, "enable-channel", channel="channel0", **channel)
    ask(k, "enable-event", patterns=list(patterns) or ["*"])
    if start:
        ask(k, "start")
    return out


def start_daemon(k):
    k.start_daemon("--no-collectd", env={"KYMO_CLOCK": "monotonic"})


def state_page(k):
    return struct.unpack("<IIIIQ", (k.rundir / "state").read_bytes())


# ---- the daemon as a process


def test_launcher_returns_when_ready(k):
    for options in (["-b"], ["-d"]):
        subprocess.run([kymotest.SESSIOND, *options], env=k.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=kymotest.TIMEOUT, check=True)
        check(k.answers(), f"the daemon does not answer when {options} has returned")
        pid = k.request(command="hello")["pid"]
        equal(state_page(k)[2], pid, "pid in the state page")
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not alive(pid), "the daemon to end")
        equal(state_page(k)[2], 0, "pid in the state page after the end")
        (k.rundir / "log").unlink(missing_ok=True)
        equal({p.name for p in k.rundir.iterdir()}, kymotest.LEFT_IN_RUNDIR, "left in the run directory")


def test_group(k):
    """The log names a missing group only if an option asks for it."""
    if os.geteuid():
        raise Skip("only root's daemon is controlled by a group")
    k.start_daemon("--group=nobody-is-here")
    check("group 'nobody-is-here' does not exist" in k.daemon_log(), k.daemon_log())
    k.stop_daemon()
    before = len(k.daemon_log())
    k.start_daemon()
    equal(k.daemon_log()[before:], "", "what a daemon says by default")


def test_second_daemon_is_refused(k):
    start_daemon(k)
    for options in ([], ["-b"], ["-d"]):
        done = k.run([kymotest.SESSIOND, *options], status=3)
        equal(len(done.stderr.splitlines()), 1, f"lines on stderr: {done.stderr}")
        check(f"pid {k.daemon.pid} " in done.stderr, done.stderr)


def test_bad_run_directories(k):
    plain = k.top / "file"
    plain.write_text("")
    shared = k.top / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    for rundir, words in ((plain, "Not a directory"), (shared, "can write"), (k.top / ("x" * 110), "too long"), (k.top / "no" / "run", "parent"),
        ("relative", "absolute")):
        done = k.run([kymotest.SESSIOND], env={"KYMO_RUNDIR": str(rundir)}, status=1)
        check(words in done.stderr and len(done.stderr.splitlines()) == 1, f"{rundir}: {done.stderr}")


def test_bound_ends_with_its_pipe(k):
    """
    A private daemon ends with its pipe. It does not make its directory: if its starter was killed,
    another one may have removed the directory as a leftover.
    """
    k.run([kymotest.SESSIOND, "--bound"], status=1, stdin=subprocess.PIPE)
    check(not k.rundir.exists(), "a private daemon has made its run directory")
    k.rundir.mkdir(mode=0o700)
    daemon = subprocess.Popen([kymotest.SESSIOND, "--bound"], env=k.env, stdin=subprocess.PIPE)
    k.started.append(daemon)
    wait_for(k.answers, "the daemon to answer")
    make_session(k)
    daemon.stdin.close()
    equal(daemon.wait(kymotest.TIMEOUT), 0, "exit status")
    equal({p.name for p in k.rundir.iterdir()}, kymotest.LEFT_IN_RUNDIR, "left in the run directory")


def test_readiness_is_told(k):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(kymotest.TIMEOUT)
    manager.bind(str(k.top / "notify"))
    told = []
    old = signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
    try:
        k.start_daemon("-S", "-g", "root", "--pidfile", str(k.top / "pid"), env={"NOTIFY_SOCKET": str(k.top / "notify")})
        equal(manager.recv(100), f"READY=1\nMAINPID={k.daemon.pid}\n".encode(), "message to the service manager")
        wait_for(lambda: told, "SIGUSR1")
        equal((k.top / "pid").read_text(), f"{k.daemon.pid}\n", "pidfile")
    finally:
        signal.signal(signal.SIGUSR1, old)
        manager.close()


def test_wake_and_stale_sockets(k):
    start_daemon(k)
    wake = os.open(k.rundir / "wake", os.O_RDONLY | os.O_NONBLOCK)
    k.daemon.kill()
    k.daemon.wait()
    check((k.rundir / "app.sock").exists(), "the killed daemon leaves its socket")
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    equal(poll.poll(0), [], "before a daemon starts")
    start_daemon(k)
    equal(poll.poll(1000 * kymotest.TIMEOUT), [(wake, select.POLLHUP)], "when a daemon has started")
    os.close(wake)


# ---- applications


def test_no_session(k):
    start_daemon(k)
    program = Program(k, ORDER)
    equal(program.expect(DONE), struct.pack("<I", 0), "DONE")
    equal(state_page(k)[3], 0, "active sessions")
    program.close()


def test_conversation(k):
    start_daemon(k)
    make_session(k, "shop:*")
    equal(state_page(k)[3], 1, "active sessions")
    first = Program(k, ORDER, EMPTY)
    number, n = first.expect_query()
    equal(n, 1, "rules")
    first.answer(number)
    first.expect(RING_SET)
    equal(first.expect_map(), (number, {0: 0, 1: 1}), "identifiers count from 0")
    equal(first.acknowledge(START), number, "set in START")
    equal(first.expect(DONE), struct.pack("<I", 1), "DONE")
    rings, consumed = first.fds[number]
    for fd, flags in ((rings, os.O_RDWR), (consumed, os.O_RDONLY)):
        equal(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE, flags, "access mode")
        equal(fcntl.fcntl(fd, F_GET_SEALS), SEALS, "seals")
        equal(os.fstat(fd).st_mode & 0o777, 0o600, "mode")
    equal(struct.unpack("<I", os.pread(rings, 4, 0)), (0x474E525F,), "magic")
    second = Program(k, EMPTY, ORDER)
    equal(second.serve(), {0: 1, 1: 0}, "the same signatures have the same identifiers")
    first.close()
    second.close()


def test_conflict_is_told(k):
    start_daemon(k)
    make_session(k, "shop:*")
    first, second = Program(k, ORDER, name="first"), Program(k, ORDER_TEXT, EMPTY, name="second")
    equal(first.serve(), {0: 0}, "first")
    equal(second.serve(), {0: REFUSED, 1: 1}, "the one in conflict is refused, others are not")
    warnings = " ".join(status_of(k, first, second)["warnings"])
    for words in ("shop:order", "second", "(u64 id)", "(string id)", str(os.getpid())):
        check(words in warnings, f"{words!r} is not in {warnings!r}")
    first.close()
    second.close()


def ask_meanwhile(k, programs, **request):
    """Returns the reply to a request, before which each application replies to a query."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(kymotest.TIMEOUT)
        s.connect(str(k.rundir / "control.sock"))
        s.sendall(json.dumps(request).encode() + b"\n")
        for program in programs:
            program.answer(program.expect_query()[0])
        return json.loads(s.makefile().readline())


def status_of(k, *programs):
    return ask_meanwhile(k, programs, command="status")


def in_time(attempt):
    """
    Repeats what fails if the test, whose applications are simulated, gets no CPU for longer than a
    command waits for them.
    """
    for left in range(20, 0, -1):
        begin = time.monotonic()
        try:
            return attempt()
        except kymotest.Failure:
            if left == 1 or time.monotonic() - begin < PATIENCE:
                raise


def test_rules_later(k):
    start_daemon(k)
    in_time(lambda: rules_later(k))


def rules_later(k):
    out = make_session(k, "none:*")
    with contextlib.closing(Program(k, ORDER, EMPTY)) as program:
        equal(serve_one(program), {}, "nothing matches")
        try:
            change_rules(k, program)
        finally:
            ask(k, "destroy")
            shutil.rmtree(out, ignore_errors=True)


def change_rules(k, program):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(kymotest.TIMEOUT)
        s.connect(str(k.rundir / "control.sock"))
        s.sendall(b'{"command": "enable-event", "patterns": ["shop:*"], "exclude": ["*:empty"]}\n')
        number, n = program.expect_query()
        equal(n, 2, "rules")
        program.answer(number)  # sends more than was requested
        program.expect(RING_SET)
        equal(program.expect_map(), (number, {0: 0}), "what the rules want")
        program.acknowledge(START)
        lines = s.makefile()
        equal(json.loads(lines.readline())["matched"], 1, "matched")
        s.sendall(b'{"command": "disable-event", "patterns": ["shop:*"]}\n')
        equal(program.expect(UNMAP), struct.pack("<IIII", number, 1, 4, 0), "UNMAP")
        ask(k, "hello")
        equal(select.select([s], [], [], 0)[0], [], "replies before the program has answered")
        program.acknowledge(START)
        equal(json.loads(lines.readline())["ok"], True, "disabled")


def serve_one(program):
    """Replies to the queries with no events, until DONE."""
    while True:
        kind, payload = program.receive()
        if kind == DONE:
            return {}
        equal(kind, QUERY, "type")
        program.send(EVENTS, payload[:4] + struct.pack("<II", 0, 0) + blob(b""))


def test_refused_definitions(k):
    """One name has more definitions than are recorded: all are unmapped with the rule."""
    start_daemon(k)
    make_session(k, "shop:*", start=False)
    program = Program(k, *(description("same", (UINT, 8, f"f{i}")) for i in range(70)))
    number, _ = program.expect_query()
    program.answer(number)
    program.expect(RING_SET)
    mapped = program.expect_map()[1]
    equal((len(mapped), sum(i == REFUSED for i in mapped.values())), (70, 69), "mapped and refused")
    program.expect(DONE)
    reply = []
    command = threading.Thread(target=lambda: reply.append(k.request(command="disable-event", patterns=["shop:*"])))
    command.start()
    unmapped = struct.unpack_from("<70I", program.expect(UNMAP), 12)
    equal(sorted(unmapped), list(range(70)), "unmapped")
    command.join()
    check(reply[0]["ok"], f"{reply}")
    program.close()


def test_client_dies_during_a_step(k):
    """A session that is bound to a connection ends with it, also while a step is in progress."""
    start_daemon(k)
    with socket.socket(socket.AF_UNIX) as s, s.makefile() as lines:
        s.connect(str(k.rundir / "control.sock"))
        for request in ({"command": "create", "session": "s", "output": "", "bound": True}, {"command": "enable-event", "session": "s", "patterns": ["shop:*"]}):
            s.sendall(json.dumps(request).encode() + b"\n")
            check(json.loads(lines.readline())["ok"], f"{request}")
        program = Program(k, ORDER)
        program.answer(program.expect_query()[0])
        program.expect(RING_SET)
        program.expect_map()
        program.expect(DONE)
        s.sendall(b'{"command": "start", "session": "s"}\n')
        cookie = program.expect(START)[:4]
    ask(k, "hello")
    program.send(ACK, cookie + struct.pack("<i", 0))
    wait_for(lambda: not ask(k, "list")["sessions"], "the session to end")
    program.close()


def test_program_without_the_clock(k):
    k.start_daemon(env={"KYMO_CLOCK": "tsc"})
    make_session(k)
    program = Program(k, ORDER, caps=CAP_RSEQ)
    equal(program.expect(DONE), struct.pack("<I", 0), "it is left out")
    check(any("KYMO_CLOCK=monotonic" in w for w in status_of(k, program)["warnings"]), "and the status says so")
    other = Program(k, ORDER)
    equal(other.serve(), {0: 0}, "another is not")
    program.close()
    other.close()


def test_program_without_restartable_sequences(k):
    start_daemon(k)
    make_session(k)
    program = Program(k, ORDER, caps=0)
    number, _ = program.expect_query()
    program.answer(number)
    program.expect(RING_SET)
    equal((*program.kind[number], program.geometry[number].n_rings), (1, 0, 1024), "mode, clock and rings")
    program.close()


def test_objects_loaded_later(k):
    start_daemon(k)
    make_session(k)
    program = Program(k, ORDER)
    equal(program.serve(), {0: 0}, "first")
    program.events.append(EMPTY)
    program.send(NEW_EVENTS, struct.pack("<I", 2))
    equal(program.serve(), {1: 1}, "only what is new is mapped")
    program.close()


def test_events_in_the_first_message(k):
    """
    A program that lists its events when it registers is not asked about them, but about those that
    it loads later.
    """
    start_daemon(k)
    make_session(k, "shop:*")
    program = Program(k, ORDER, EMPTY, more=listed(ORDER, EMPTY))
    program.expect(RING_SET)
    number, mapped = program.expect_map()
    equal(mapped, {0: 0, 1: 1}, "the identifiers")
    equal(program.acknowledge(START), number, "set in START")
    equal(program.expect(DONE), struct.pack("<I", 1), "DONE")
    program.events.append(description("later"))
    program.send(NEW_EVENTS, struct.pack("<I", 3))
    equal(program.expect_query(), (number, 1), "a query")
    program.answer(number)
    equal(program.serve(), {2: 2}, "the event that was loaded later")
    rules = k.request(command="status")["session"]["channels"][0]["rules"]
    equal([r["matched"] for r in rules], [3], "events that match the rule")
    program.close()
    other = Program(k, more=listed(description("other", provider="house")))
    equal(other.expect(DONE), struct.pack("<I", 0), "DONE if no rule matches")
    names = [e["name"] for a in k.request(command="list-events")["applications"] for e in a["events"]]
    equal(names, ["house:other"], "the events that the daemon knows without a question")
    other.close()
    events = [description(f"event{i}") for i in range(33)]
    program = Program(k, more=listed(*events[:32]))
    equal(len(program.serve()), 32, "as many as may be listed")
    program.close()
    for bad in (listed(*events), listed(ORDER, n=2), listed(ORDER)[:-1], listed(ORDER, n=0xFFFFFFFF)):
        program = Program(k, more=bad)
        equal(program.receive(), None, "the answer to a bad list")
        program.close()
    check(k.answers(), "the daemon lives")


def test_recording(k):
    start_daemon(k)
    out = make_session(k)
    program = Program(k, ORDER, EMPTY)
    number, _ = program.expect_query()
    program.answer(number)
    program.expect(RING_SET)
    program.expect_map()
    program.acknowledge(START)
    for i in range(100):
        program.record(number, 0, struct.pack("<Q", i))
    program.record(number, 1, b"")
    program.close()  # the application exits; its events stay
    session = ask(k, "stop")["sessions"][0]
    equal((session["recorded"], session["discarded"], session["state"]), (101, 0, "stopped"), "counts")
    events, _ = kymotest.read_trace(out)
    equal([kymotest.integers(e)["id"] for e in events[:-1]], list(range(100)), "events")
    equal(events[-1].name, "shop:empty", "last event")
    check(abs(events[0].time - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) < 60e9, "clock")


def test_dead_consumer_is_replaced(k):
    start_daemon(k)
    out = make_session(k)
    program = Program(k, ORDER)
    number, _ = program.expect_query()
    program.answer(number)
    program.expect(RING_SET)
    program.expect_map()
    program.acknowledge(START)
    for i in range(300):
        program.record(number, 0, struct.pack("<Q", i))
        if i % 100 == 50:
            pid, = consumers(k)
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: consumers(k) not in ([], [pid]), "another consumer")
    program.close()
    session = ask(k, "destroy")["sessions"][0]
    equal((session["recorded"], session["discarded"], session["error"]), (300, 0, ""), "counts")
    events, _ = kymotest.read_trace(out)
    equal([kymotest.integers(e)["id"] for e in events], list(range(300)), "each event once")


def test_consumer_that_cannot_be_replaced(k):
    """destroy ends even then, and reports the loss."""
    libexec = k.top / "libexec"
    libexec.mkdir()
    program = libexec / "kymo-consumerd"
    program.symlink_to(pathlib.Path(kymotest.SESSIOND).parent.parent / "consumerd" / "kymo-consumerd")
    k.start_daemon(env={"KYMO_CLOCK": "monotonic", "KYMO_LIBEXECDIR": str(libexec)})
    make_session(k)
    program.unlink()
    os.kill(consumers(k)[0], signal.SIGKILL)
    wait_for(lambda: ask(k, "status")["session"]["error"], "an error in the status")
    refused(k, "failed", "lost", command="destroy")
    equal(ask(k, "list")["sessions"], [], "the session still exists")
    refused(k, "failed", "consumer", command="create", session="t", output="")


def slowest_answer(k):
    """Returns the time of the slowest command while applications do not reply."""
    ask(k, "create", session="s", output="")
    ask(k, "enable-event", patterns=["*"])
    silent = [Program(k, ORDER) for _ in range(20)]
    for program in silent:
        program.answer(program.expect_query()[0])
        program.expect(RING_SET)
    took = []
    for command in ("start", "stop", "status", "list-events", "destroy"):
        begin = time.monotonic()
        ask(k, command)
        took.append(time.monotonic() - begin)
    for program in silent:
        program.close()
    return max(took)


def test_nobody_waits_for_a_silent_program(k):
    start_daemon(k)
    took = [slowest_answer(k) for _ in range(5)]
    check(min(took) < 1, f"seconds that the slowest command took: {took}")


def test_hello_has_a_deadline(k):
    start_daemon(k)
    program = Program(k, hello=False)
    equal(program.receive(), None, "a program that says nothing is dropped")
    program.close()


def test_hostile_programs(k):
    start_daemon(k)
    make_session(k)
    rng = random.Random(7)
    good = struct.pack("<IIIII", 2, 64, 3, 1, 1) + text("x") + struct.pack("<I", 7)
    events = struct.pack("<I", 0) + blob(ORDER)

    def attempt(*messages, fds=()):
        program = Program(k, hello=False)
        try:
            for kind, payload in messages:
                socket.send_fds(program.socket, [struct.pack("<IHH", len(payload) + 8, kind, 0) + payload], fds)
            while program.receive():
                pass
        except OSError:
            pass
        program.close()

    attempt((HELLO, good), (HELLO, good))
    attempt((EVENTS, struct.pack("<III", 1, 0, 1) + blob(events)))
    attempt((HELLO, good), (EVENTS, struct.pack("<III", 1, 0, 0xFFFFFFFF) + blob(events)))
    attempt((HELLO, good), (EVENTS, struct.pack("<III", 77, 0, 1) + blob(events)))
    attempt((HELLO, good), (EVENTS, struct.pack("<III", 1, 0, 1) + struct.pack("<I", 0xFFFFFFF0)))
    attempt((HELLO, good[:-3]))
    attempt((HELLO, struct.pack("<IIIII", 2, 48, 3, 1, 1) + text("x") + struct.pack("<I", 7)))
    attempt((HELLO, good), fds=[0, 1])
    for _ in range(200):
        payload = bytearray((good + events) * 2)
        for _ in range(8):
            payload[rng.randrange(len(payload))] = rng.randrange(256)
        attempt((HELLO, good), (rng.randrange(1, 5), bytes(payload[:rng.randrange(len(payload))])), (STOP, b""), (HELLO, b""))
    check(k.answers(), "the daemon lives")
    equal(k.new_fds().get("/dev/null", 0), 0, "descriptors that came are closed")
    program = Program(k, ORDER)
    check(program.serve(), "other programs are served")
    program.close()


def test_bad_descriptions_are_left_out(k):
    start_daemon(k)
    make_session(k)
    program = Program(k, description('a"b'), ORDER, description("x", (UINT, 3, "f")), description("y", (UINT, 8, "a b")),
        description("ok\x1b"), b"")
    equal(program.serve(), {1: 0}, "only the good one is mapped")
    refused = [w for w in status_of(k, program)["warnings"] if "is not recorded" in w]
    equal(len(refused), 5, f"refused events in {refused}")
    ask(k, "create", session="later", output=str(k.traces / "later"))
    ask_meanwhile(k, [program], command="enable-event", session="later", patterns=["shop:x"])
    refused = [w for w in ask(k, "status", session="later")["warnings"] if "is not recorded" in w]
    check(len(refused) == 1 and "'shop:x'" in refused[0], f"refused events in {refused}")
    program.close()
    ask(k, "destroy", session="s")
    ask(k, "destroy", session="later")


# ---- control


def test_refusals(k):
    start_daemon(k)
    k.traces.mkdir()
    refused(k, "usage", "unknown command", command="fly")
    refused(k, "usage", "parameter 'x'", command="hello", x=1)
    refused(k, "usage", "must be a string", command="create", session=7)
    refused(k, "usage", "of at most 4096 bytes", command="create", session="x" * 4097)
    refused(k, "no-session", "kymo create", command="start")
    refused(k, "not-found", "'s'", command="start", session="s")
    for name in ("", ".", "..", ".a", "a/b", "a b", "a\nb", "x" * 129, "\x1b[31m", "é"):
        refused(k, "usage", "cannot name a session", command="create", session=name)
    refused(k, "usage", "absolute", command="create", session="s", output="relative")
    ask(k, "create", session="s", output="")
    refused(k, "exists", "kymo destroy s", command="create", session="s", output="")
    refused(k, "usage", "needs the parameter", command="enable-event")
    refused(k, "usage", "not a pattern", command="enable-event", patterns=[""])
    refused(k, "usage", "not both", command="enable-event", patterns=["*"], loglevel=1, loglevel_only=2)
    refused(k, "usage", "unknown", command="enable-event", patterns=["*"], loglevel=15)
    refused(k, "not-found", "no channel", command="disable-event", patterns=["*"])
    refused(k, "not-found", "no channel", command="disable-channel", channel="c")
    refused(k, "usage", "'cpu', 'thread', 'process' or 'auto'", command="enable-channel", channel="c", buffers="user")
    refused(k, "usage", "channel", command="enable-channel", channel="../c")
    refused(k, "usage", "channel", command="enable-channel", channel="c-thread")
    ask(k, "enable-channel", channel="c")
    refused(k, "exists", "channel 'c'", command="enable-channel", channel="c")
    for command in ("enable-event", "disable-event"):
        refused(k, "usage", "needs the parameter", command=command, channel="c", patterns=[])
    ask(k, "track", vpid=[str(i) for i in range(1024)])
    refused(k, "failed", "it has 1024", command="track", vpid=["1024"])
    ask(k, "disable-channel", channel="c")
    refused(k, "usage", "without options", command="enable-channel", channel="c", num_subbuf=4)
    equal(ask(k, "enable-channel", channel="c")["channel"]["enabled"], True, "enabled again")
    refused(k, "failed", "directory", command="create", session="t", output="/proc/no/where")
    ask(k, "create", session="t", output=str(k.traces / "t"))
    for line in (b"\n", b"[]\n", b"{\n", b'{"command": "hello"} x\n', b"\xff\n", b"[" * 1000 + b"\n", b'{"a":' * 1000 + b"\n"):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(kymotest.TIMEOUT)
            s.connect(str(k.rundir / "control.sock"))
            s.sendall(line + b'{"command": "hello"}\n')
            lines = s.makefile()
            equal(json.loads(lines.readline())["code"], "usage", line[:20])
            equal(json.loads(lines.readline())["ok"], True, "the connection stays")


def test_refused_commands_change_nothing(k):
    """If one command requests several changes, either all are made, or none."""
    start_daemon(k)
    ask(k, "create", session="s", output="")
    ask(k, "enable-channel", channel="b")
    ask(k, "enable-channel", channel="c")
    ask(k, "add-context", contexts=["callstack:4"], channel="c")
    ask(k, "track", vpid=["1"])
    ask(k, "enable-event", patterns=[f"a:{i}" for i in range(1023)], channel="b")
    before = ask(k, "status")["session"]
    refused(k, "exists", "cannot also record", command="add-context", contexts=["vpid", "callstack:8"])
    refused(k, "failed", "too many", command="add-context", channel="b", contexts=["vpid"] + [f"$app.p:n{i}" for i in range(63)])
    refused(k, "usage", "not a vuid", command="track", vpid=["2"], vuid=["3", "x"])
    refused(k, "not-found", "does not track", command="untrack", vpid=["1", "4"])
    refused(k, "failed", "more than 1024 rules", command="enable-event", patterns=["b:1", "b:2"], channel="b")
    refused(k, "usage", "filter", command="enable-event", patterns=["b:1"], filter="1 +", channel="new")
    refused(k, "usage", "cannot be", command="enable-channel", channel="new", buffers="user")
    after = ask(k, "status")["session"]
    for key in ("channels", "tracked"):
        equal(after[key], before[key], f"{key} after refused commands")


def test_channels_and_rules(k):
    start_daemon(k)
    ask(k, "create", session="s", output="")
    reply = ask(k, "enable-channel", channel="c", subbuf_size=5000, num_subbuf=3)
    equal((reply["channel"]["subbuf_size"], reply["channel"]["num_subbuf"], len(reply["notes"])), (8192, 4, 2), "sizes")
    for _ in range(2):
        reply = ask(k, "enable-event", patterns=["a:*", "b:*"], channel="c", loglevel=4, exclude=["a:x"])
        equal([r["pattern"] for r in reply["rules"]], ["a:*", "b:*"], "rules")
    ask(k, "enable-event", patterns=["a:*"])
    channels = {c["name"]: c for c in ask(k, "status")["session"]["channels"]}
    equal({n: len(c["rules"]) for n, c in channels.items()}, {"c": 2, "channel0": 1}, "rules are not doubled")
    rule = channels["c"]["rules"][0]
    equal((rule["exclude"], rule["loglevel_type"], rule["loglevel"], rule["enabled"]), (["a:x"], "at-least", 4, True), "rule")
    refused(k, "not-found", "--all", command="disable-event", patterns=["*"], channel="c")
    refused(k, "usage", "one of them", command="disable-event", patterns=["a:*"], all_rules=True, channel="c")
    equal(len(ask(k, "disable-event", all_rules=True, channel="c")["rules"]), 2, "all are disabled")
    refused(k, "not-found", "no enabled rule", command="disable-event", patterns=["a:*"], channel="c")
    reply = ask(k, "enable-event", patterns=["a:*"], channel="c", exclude=["a:y"])
    check(not any("another form" in n for n in reply["notes"]), f"notes: {reply}")
    check("another form" in ask(k, "enable-event", patterns=["a:*"], channel="c")["notes"][0], "no note of the wider rule")
    refused(k, "not-found", "did you mean 'a:*'", command="disable-event", patterns=["a:"], channel="c")
    equal(len(ask(k, "disable-event", patterns=["a:*"], channel="c", remove=True)["rules"]), 3, "removed: disabled ones too")
    channels = {c["name"]: c for c in ask(k, "status")["session"]["channels"]}
    equal([r["pattern"] for r in channels["c"]["rules"]], ["b:*"], "rules left")
    ask(k, "disable-channel", channel="c")
    check("disabled" in ask(k, "enable-event", patterns=["d:*"], channel="c")["notes"][0], "no note of the disabled channel")
    check("channel0" in ask(k, "enable-event", patterns=["d:*"], channel="chanel0")["notes"][0], "no note of the near name")
    refused(k, "not-found", "did you mean 'channel0'", command="disable-channel", channel="chanl0")
    ask(k, "create", session="demo", output="")
    refused(k, "not-found", "did you mean 'demo'", command="start", session="deom")


def test_current_session(k):
    start_daemon(k)
    for name in ("a", "b", "c"):
        ask(k, "create", session=name, output="")
    equal(ask(k, "status")["session"]["name"], "c", "the last one made")
    ask(k, "set-session", session="a")
    equal(ask(k, "start")["sessions"][0]["name"], "a", "the one chosen")
    equal(sorted(s["name"] for s in ask(k, "stop", all=True)["sessions"]), ["a", "b", "c"], "all")
    ask(k, "destroy")
    refused(k, "no-session", "set-session", command="status")
    equal(sorted(s["name"] for s in ask(k, "destroy", all=True)["sessions"]), ["b", "c"], "all that are left")
    equal(ask(k, "list")["sessions"], [], "none is left")


def test_status_explains(k):
    start_daemon(k)
    make_session(k, "shop:ordre", start=False)
    check(any("no instrumented application" in w for w in ask(k, "status")["warnings"]), "no program")
    program = Program(k, ORDER)
    serve_one(program)
    explains = lambda reply: any("did you mean 'shop:order'" in w for w in reply["warnings"])
    first = status_of(k, program)
    # Later replies have what came too late for the first one.
    wait_for(lambda: explains(first) or explains(ask(k, "status")), "a name that is near")
    program.close()


def as_user(k, uid, gid, request):
    """Sends a request as another user; returns the reply."""
    code = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode() + b'\\n'); "
        "print(s.makefile().readline())")
    return subprocess.run(["python3", "-c", code, str(k.rundir / "control.sock"), json.dumps(request)], user=uid, group=gid,
        extra_groups=[], capture_output=True, text=True, timeout=kymotest.TIMEOUT, env={"PATH": "/usr/bin:/bin"})


def test_files_look_used(k):
    """
    The files in the run directory have the sticky bit, with which clean-ups of old files leave them
    alone: without the lock file, a daemon ends.
    """
    k.start_daemon()
    k.record("emit:*")
    modes = {p.name: stat.S_IMODE(p.lstat().st_mode) for p in k.rundir.rglob("*") if p.is_file() or p.is_fifo()}
    equal({name: oct(modes[name]) for name in ("lock", "state", "wake", "s")}, {"lock": "0o1600", "state": "0o1644", "wake": "0o1644", "s": "0o1600"},
        "modes")
    equal([name for name, mode in modes.items() if not mode & stat.S_ISVTX], [], "files without the bit")


def test_files_removed(k):
    """Somebody removes files in the run directory: the daemon makes them again."""
    k.start_daemon()
    trace = k.record("emit:*")
    for n, name in enumerate(("app.sock", "control.sock", "state", "wake")):
        path = k.rundir / name
        before = path.lstat()
        path.unlink()
        owner_and_mode = lambda st: (st.st_mode, st.st_uid, st.st_gid)
        wait_for(lambda: path.exists() and owner_and_mode(path.lstat()) == owner_and_mode(before), f"{name} to be made again, as it was")
        wait_for(k.answers, "the daemon to answer")
        k.app("emit", "-p", n, "-n", 100)
    k.kymo("stop", "s")
    equal(len(kymotest.check_counts(k, trace, 400)), 400, "events")


def test_users_are_kept_apart(k):
    if os.geteuid():
        raise kymotest.Skip("only root's daemon serves several users")
    k.top.chmod(0o755)
    k.start_daemon("--group=nogroup", env={"KYMO_CLOCK": "monotonic"})
    equal(k.rundir.stat().st_mode & 0o777, 0o755, "mode of the run directory")
    equal((k.rundir / "app.sock").stat().st_mode & 0o777, 0o666, "mode of app.sock")
    equal((k.rundir / "control.sock").stat().st_mode & 0o777, 0o660, "mode of control.sock")
    group = os.stat(k.rundir / "control.sock").st_gid
    equal(as_user(k, 1, 1, {"command": "hello"}).returncode, 1, "a user outside of the group")
    home = k.top / "theirs"
    home.mkdir()
    os.chown(home, 65534, group)
    out = home / "trace"
    reply = json.loads(as_user(k, 65534, group, {"command": "create", "session": "s", "output": str(out)}).stdout)
    equal(reply["session"]["owner"], 65534, "owner")
    equal((out.stat().st_uid, out.stat().st_mode & 0o777), (65534, 0o750), "the consumer runs as the owner")
    pid, = kymotest.children(k.daemon.pid, "kymo-consumerd")
    status = open(f"/proc/{pid}/status").read()
    for field in ("Uid", "Gid"):
        equal(len(set(re.search(rf"{field}:\s*(.*)", status)[1].split())), 1, f"{field} of the consumer")
    reply = json.loads(as_user(k, 1, group, {"command": "destroy", "session": "s"}).stdout)
    equal(reply["code"], "permission", "another user of the group")
    equal(json.loads(as_user(k, 1, group, {"command": "list"}).stdout)["sessions"], [], "what another user sees")
    for request in ({"command": "enable-event", "patterns": ["*"]}, {"command": "start"}):
        check(json.loads(as_user(k, 65534, group, request).stdout)["ok"], request)
    program = Program(k, ORDER)
    check(program.serve(), "a member of the group records programs of all users")
    program.close()
    ask(k, "destroy", session="s")  # root has permission


def test_crowds_and_slow_clients(k):
    start_daemon(k)
    idle = []
    for _ in range(100):
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(k.rundir / "control.sock"))
        s.sendall(b'{"comm')
        idle.append(s)
    ask(k, "create", session="s", output="")  # the daemon serves others
    greedy = socket.socket(socket.AF_UNIX)
    greedy.setblocking(False)
    greedy.connect(str(k.rundir / "control.sock"))
    sent = 0
    try:
        while sent < 64 << 20:
            sent += greedy.send(b'{"command":"list"}\n' * 1000)
    except BlockingIOError:
        pass
    check(sent < 64 << 20, "a client that never reads is not listened to for ever")
    ask(k, "list")
    huge = socket.socket(socket.AF_UNIX)
    huge.settimeout(kymotest.TIMEOUT)
    huge.connect(str(k.rundir / "control.sock"))
    try:
        for _ in range(40):
            huge.sendall(b" " * 65536)
        equal(huge.recv(1), b"", "a line without end")
    except (BrokenPipeError, ConnectionResetError):
        pass
    for s in (*idle, greedy, huge):
        s.close()


if __name__ == "__main__":
    kymotest.main()
