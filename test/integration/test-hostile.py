#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Hostile applications and clients connect to a session daemon: with messages that are almost valid,
unexpected descriptors, floods, and peers that do not read. Meanwhile the daemon serves all others,
and afterwards nothing of the attack is left.
"""

import contextlib
import functools
import json
import os
import random
import signal
import socket
import statistics
import struct
import threading
import time

import kymotest
from kymotest import SANITIZED, check, equal, wait_for, without_sanitizers
from program import (ACK, CAP_TSC, EMPTY, EVENTS, HELLO, LEFT_OUT, MAP, NEW_EVENTS, ORDER, ORDER_TEXT, REFUSED, UINT, Program, ask, blob, description,
    map_entries, text)

SECONDS = 3
ENUM = 5  # a kind of fields
# For most of the well-behaved peers: seconds of the daemon's CPU time, because others may use the
# machine; and seconds on a machine that stands still now and then.
PROMPT_CPU, PROMPT = 1.5 if SANITIZED else 0.3, 20.0


def message(kind, payload):
    return struct.pack("<IHH", len(payload) + 8, kind, 0) + payload


def hello(caps=3):
    return message(HELLO, struct.pack("<IIIII", 2, 64, caps, 1, 3) + text("evil") + struct.pack("<I", 7))


def events(rng, query):
    """
    Returns a reply with events that are valid, invalid, in conflict or repeated, at small and large
    numbers.
    """
    kinds = [ORDER, ORDER_TEXT, EMPTY, description("e%d" % rng.randrange(3000)), b"", bytes(rng.randrange(60)), ORDER[:-rng.randrange(1, 20)]]
    n = rng.randrange(6)
    entries = b"".join(struct.pack("<I", rng.choice((0, 1, 2, 99, 65535, 65536))) + blob(rng.choice(kinds)) for _ in range(n))
    return message(EVENTS, struct.pack("<III", query, rng.choice((0, 0, 0, 1)), rng.choice((n, n, n, n + 1, 0xFFFFFFFF))) + blob(entries))


def mutated(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((0, 0, 1, 2, 8))):
        data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 255, rng.randrange(256)))
    return bytes(data[: rng.randrange(1, len(data) + 1)]) if rng.random() < 0.1 else bytes(data)


def evil_program(k, rng):
    """One connection: sends a few messages, some of them replies to queries, then disconnects."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(1)
        s.connect(str(k.rundir / "app.sock"))
        query, cookie = 1, 0
        if rng.random() < 0.95:
            s.send(hello(rng.choice((0, 2, 3, 0xFFFFFFFF))))
        for _ in range(rng.randrange(1, 12)):
            kind = rng.randrange(6)
            data = (events(rng, query) if kind < 2 else message(ACK, struct.pack("<Ii", cookie, rng.choice((0, -5, 7)))) if kind == 2
                else message(NEW_EVENTS, struct.pack("<I", 3)) if kind == 3 else hello() if kind == 4 else os.urandom(rng.randrange(1, 300)))
            fds = [0, 1, 2, 0, 1, 2][: rng.randrange(1, 7)] if rng.random() < 0.03 else []
            socket.send_fds(s, [mutated(rng, data)], fds)
            with contextlib.suppress(BlockingIOError):
                got, received, _, _ = socket.recv_fds(s, 65536, 4, socket.MSG_DONTWAIT)
                for fd in received:
                    os.close(fd)
                if len(got) >= 12:
                    number, = struct.unpack_from("<I", got, 8)
                    query, cookie = (number, cookie) if got[4] == 16 else (query, number)


def evil_client(k, rng):
    lines = [b'{"command": "status"}', b'{"command": "create", "session": "x%d", "output": ""}' % rng.randrange(5), b'{"command": "destroy", "all": true}',
        b'{"command": "enable-event", "session": "x%d", "patterns": ["*%d*"]}' % (rng.randrange(5), rng.randrange(9)), b'{"command": "list-events"}',
        b'{"command": "start", "session": "x%d"}' % rng.randrange(5), b'{"command": "disable-event", "session": "x1", "all_rules": true}', b"{}", b"[[[[", os.urandom(40)]
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(1)
        s.connect(str(k.rundir / "control.sock"))
        for _ in range(rng.randrange(1, 5)):
            s.send(mutated(rng, rng.choice(lines)) + rng.choice((b"\n", b"\n", b"\n", b"")))
        if rng.random() < 0.5:
            s.recv(1 << 16)


def attack(k, seed, stop, evil, done):
    rng = random.Random(seed)
    while not stop.is_set():
        with contextlib.suppress(OSError):
            evil(k, rng)
        done[0] += 1


@contextlib.contextmanager
def attacked(k, *evils):
    """Runs each of these functions in a thread, again and again, until the `with` block ends."""
    stop, done = threading.Event(), [0]
    threads = [threading.Thread(target=attack, args=(k, seed, stop, evil, done)) for seed, evil in enumerate(evils)]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        stop.set()
        for thread in threads:
            thread.join(kymotest.TIMEOUT)


def prompt(k, seconds, turn):
    """
    Repeats a turn that usually takes almost no time. Checks its duration, and what the daemon does
    meanwhile.
    """
    end, took, worked = time.monotonic() + seconds, [], []
    while time.monotonic() < end or len(took) < 9:
        begin, before = time.monotonic(), cpu_seconds(k)
        turn()
        took.append(time.monotonic() - begin)
        worked.append(cpu_seconds(k) - before)
    check(statistics.median(took) < PROMPT, f"how long a client had to wait: {took}")
    check(statistics.median(worked) < PROMPT_CPU, f"how long the daemon worked before a client had its replies: {worked}")


def others_are_served(k, seconds):
    """Well-behaved peers get their replies, promptly, all the time."""
    def turn():
        ask(k, "list")
        check(wait_for(lambda: mapped(k), "a program"), "the events of a program are not mapped")

    prompt(k, seconds, turn)


def mapped(k):
    """
    Returns the identifiers of a good program's events; none if the program got no CPU for the
    second in which it has to say hello.
    """
    begin = time.monotonic()
    try:
        with contextlib.closing(Program(k, ORDER, name="good")) as program:
            return program.serve()
    except ConnectionError:
        if time.monotonic() - begin < 1:
            raise


def start(k):
    k.start_daemon(env={"KYMO_CLOCK": "monotonic"})
    ask(k, "create", session="s", output="")
    ask(k, "enable-event", patterns=["shop:*"])
    ask(k, "start")
    program = Program(k, ORDER)  # first, so that its definition is the valid one
    check(program.serve(), "the first program")
    return program


def all_gone(k, *programs):
    for program in programs:
        program.close()
    known = lambda: k.request(command="list-events")["applications"]
    wait_for(lambda: not known(), lambda: f"the programs to be forgotten: {known()}")


def test_nonsense(k):
    first = start(k)
    with attacked(k, evil_program, evil_program, evil_client) as done:
        # A client has all rights of its user: "destroy all" is executed, so the sessions may not
        # exist any more.
        prompt(k, SECONDS, lambda: check("ok" in k.request(command="list"), "an answer"))
        wait_for(lambda: done[0] > 50, lambda: f"more than {done[0]} attempts")
    check(k.daemon.poll() is None, f"the daemon died:\n{k.daemon_log()[-3000:]}")
    all_gone(k, first)
    check("ERROR: " not in k.daemon_log() and "runtime error" not in k.daemon_log(), k.daemon_log()[-3000:])


def test_requests_that_are_nearly_json(k):
    """
    They are refused, even if the parser library would accept them; valid JSON is accepted in any
    position.
    """
    k.start_daemon()
    good = (b'{"command":"hello"}', b'  {"command" : "hello"}', b'{"com\\u006dand":"hel\\u006co"}')
    bad = (b'{"command":"hello","command":"hello"}', b"{'command':'hello'}", b'{"command":"hello"}{}', b'{"command":"hello"}"x"', b'{"command":"hello"',
        b'{"command"}', b'["command","hello"]', b'"hello"', b'{"command":"hello\0"}', b"")
    for line in good + bad:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(k.rundir / "control.sock"))
            s.sendall(line + b"\n")
            reply = json.loads(s.makefile("rb").readline())
        equal(reply.get("code", "ok"), "ok" if line in good else "usage", f"answer to {line}")


def test_nonsense_of_programs(k):
    """Messages of some applications do not change what others record."""
    first = start(k)
    with attacked(k, evil_program, evil_program, evil_program) as done:
        others_are_served(k, SECONDS)
        wait_for(lambda: done[0] > 50, lambda: f"more than {done[0]} attempts")
    all_gone(k, first)


def test_daemon_is_late(k):
    """An application whose first message came in time stays, however late the daemon is."""
    hello_ns = 10**9  # src/sessiond/peers/app.h
    first = start(k)
    while True:
        program = Program(k, hello=False)
        ask(k, "list")  # the daemon knows the connection
        kymotest.stop(k.daemon.pid)
        with contextlib.suppress(OSError):
            program.socket.send(hello())
            break
        os.kill(k.daemon.pid, signal.SIGCONT)  # this process had no CPU for so long
        program.close()
    begin = time.monotonic_ns()
    wait_for(lambda: time.monotonic_ns() - begin > 1.2 * hello_ns, "the time for a first message to be over")
    os.kill(k.daemon.pid, signal.SIGCONT)
    program.expect_query()
    all_gone(k, first, program)


def test_not_watched_for_nothing(k):
    """
    An application with buffers for threads disconnects and continues to run: the daemon watches it
    only as long as such buffers exist.
    """
    first = start(k)
    watched = lambda: kymotest.open_fds(k.daemon.pid).count("anon_inode:[pidfd]") + kymotest.open_fds(k.daemon.pid).count("pidfd:")
    before = watched()
    program = Program(k, ORDER, caps=CAP_TSC, process=7)
    check(program.serve(), "mapped")
    check(watched() > before, "its end is not watched")
    program.close()
    ask(k, "list")
    check(watched() > before, "one that may go on recording is forgotten")
    ask(k, "create", session="other", output="")
    ask(k, "destroy", session="other")
    check(watched() > before, "another session's end")
    ask(k, "destroy", session="s")
    wait_for(lambda: watched() == before, "it to be forgotten")
    all_gone(k, first)


@without_sanitizers
def test_nobody_reads(k):
    """
    Applications that do not read: the messages that wait for them are bounded, for each and in
    total. Their requests to be asked again are one while a query is in flight.
    """
    first = start(k)
    before = kymotest.private_mib(k.daemon.pid)
    greedy = []
    data = message(NEW_EVENTS, struct.pack("<I", 3))
    for _ in range(420):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(str(k.rundir / "app.sock"))
        s.setblocking(False)
        greedy.append(s)
        with contextlib.suppress(OSError):
            s.send(hello())
            for _ in range(1000):
                s.send(data)
    ask(k, "list")
    equal(k.daemon_log().count("No buffer space"), 0, "applications that were dropped for their requests alone")
    n = 0
    while k.daemon_log().count("No buffer space") < 120:
        check(n < 40, f"no application was dropped, or too few:\n{k.daemon_log()[-1000:]}")
        ask(k, "enable-event", patterns=[f"shop:{n}-{i}-" + "x" * 200 for i in range(20)])
        n += 1
    grown = kymotest.private_mib(k.daemon.pid) - before
    check(grown < 100, f"the daemon grew by {grown:.0f} MiB")
    for s in greedy:
        s.close()
    all_gone(k, first)


def test_flood_of_connections(k):
    """Applications that connect and disconnect as fast as they can, and some that send nothing."""
    first = start(k)

    def come_and_go(k, rng):
        crowd = []
        for _ in range(50):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.setblocking(False)
            crowd.append(s)
            with contextlib.suppress(OSError):
                s.connect(str(k.rundir / "app.sock"))
                if rng.random() < 0.5:
                    s.send(hello())
        for s in crowd:
            s.close()

    with attacked(k, come_and_go, come_and_go) as done:
        others_are_served(k, SECONDS)
        wait_for(lambda: done[0] > 10, lambda: f"more than {done[0]} floods")
    all_gone(k, first)


def test_metadata_is_bounded(k):
    """
    All events of an application have long descriptions: a session stores a bounded number of them,
    and status reports it.
    """
    first = start(k)
    ask(k, "enable-event", patterns=["*:*"])
    fields = [(2, 8, f"f{i:03}" + "x" * 120) for i in range(30)]
    program = Program(k)
    number, _ = program.expect_query()
    full = lambda: any("descriptions of events" in w for w in ask(k, "status", session="s")["warnings"])
    n = 0
    while not full():
        check(n < 40000, f"{n} events, and still no end")
        for _ in range(100):
            entries = b"".join(struct.pack("<I", n + i) + blob(description(f"e{n + i}", *fields)) for i in range(12))
            # and more follows
            program.send(EVENTS, struct.pack("<III", number, 1, 12) + blob(entries))
            n += 12
    check(n > 3000, f"only {n} events")
    check(SANITIZED or kymotest.private_mib(k.daemon.pid) < 300, f"the daemon takes {kymotest.private_mib(k.daemon.pid):.0f} MiB")
    ask(k, "create", session="other", output="")
    ask(k, "enable-event", session="other", patterns=["shop:order"])
    good = Program(k, ORDER, name="good")
    check(good.serve(), "events of a program in another session")
    all_gone(k, first, program, good)


def test_tables_are_bounded(k):
    """
    One event at the highest number needs a large table: the applications of a user cannot have an
    unlimited number of them.
    """
    first = start(k)
    equal(k.daemon.poll(), None, "the daemon")
    programs = []
    for _ in range(300):
        program = Program(k, ORDER)
        number, _ = program.expect_query()
        program.send(EVENTS, struct.pack("<III", number, 0, 1) + blob(struct.pack("<I", 65535) + blob(ORDER)))
        programs.append(program)
    ask(k, "list")
    wait_for(lambda: "too many" in k.daemon_log(), "somebody to be refused")
    check(any("too many" in w for w in k.request(command="status", session="s").get("warnings", [])), "status does not report the limit")
    all_gone(k, first, *programs)
    program = Program(k, ORDER)
    check(program.serve(), "afterwards there is room again")
    program.close()


# ---- descriptors that block when closed


@contextlib.contextmanager
def lingering():
    """
    Returns a socket that takes minutes to close: its peer reads nothing, it has more data than the
    buffers hold, and SO_LINGER is set.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as sender:
            with server.accept()[0] as receiver:
                sender.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        sender.send(bytes(65536))
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
                yield sender
                receiver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def pass_away(k, name, kind, data, hang_up):
    """
    Sends a lingering socket, so that the daemon has the only copy, and must close it, in the
    message or with the connection. Or the kernel refuses to send it, if the daemon has requested
    that.
    """
    with lingering() as sender, socket.socket(socket.AF_UNIX, kind) as s:
        kymotest.stop(k.daemon.pid)  # until our copy is closed
        s.connect(str(k.rundir / name))
        try:
            socket.send_fds(s, [data], [sender.fileno()])
            os.close(sender.detach())
        except PermissionError:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if hang_up:
            s.close()
        os.kill(k.daemon.pid, signal.SIGCONT)
        for _ in range(3):
            ask(k, "list")


def check_descriptors_that_block(k):
    first = start(k)
    for hang_up in (False, True):
        pass_away(k, "app.sock", socket.SOCK_SEQPACKET, hello(), hang_up)
        pass_away(k, "control.sock", socket.SOCK_STREAM, b"{", hang_up)
        pass_away(k, "drain.sock", socket.SOCK_SEQPACKET, b"x", hang_up)
    all_gone(k, first)


def test_descriptors_that_block(k):
    """
    The close of a foreign descriptor may never return: meanwhile the daemon replies to others.
    """
    check_descriptors_that_block(k)


@without_sanitizers
def test_descriptors_that_block_on_older_kernels(k):
    k.env["LD_PRELOAD"] = str(kymotest.APPS / "no-passrights.so")
    check_descriptors_that_block(k)


# ---- messages that are expensive


@functools.cache
def costly(n_fields, n):
    """
    Returns descriptions that only their last field makes malformed, so that the daemon keeps none:
    as many as a message holds.
    """
    names = [(UINT, 8, f"f{i:03}") for i in range(n_fields - 1)]
    return (struct.pack("<I", 1) + blob(description("evil", *names, (UINT, 8, names[0][2])))) * n, n


def cpu_seconds(k):
    with open(f"/proc/{k.daemon.pid}/stat") as f:
        times = f.read().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


@without_sanitizers
def test_expensive_messages(k):
    """
    When the daemon continues, messages of the highest cost wait for it, as many as 800 sockets
    hold: it serves others meanwhile. The test measures only a part of its CPU time, because others
    may use the machine.
    """
    first = start(k)
    ask(k, "enable-event", patterns=["*:*"])
    program = Program(k)
    number, _ = program.expect_query()
    entries, n = costly(255, 10)
    crowd = [Program(k).socket for _ in range(800)]
    ask(k, "list")
    kymotest.stop(k.daemon.pid)
    for s in crowd:
        s.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                s.send(message(EVENTS, struct.pack("<III", number, 1, n) + blob(entries)))
    os.kill(k.daemon.pid, signal.SIGCONT)
    before = cpu_seconds(k)
    for _ in range(3):
        ask(k, "list")
    took = (cpu_seconds(k) - before) / 3
    check(took < 0.3, f"for an answer the daemon takes {took} s of CPU time")
    wait_for(lambda: "is not recorded" in k.daemon_log(), "the messages to arrive")
    for s in crowd:
        s.close()
    all_gone(k, first, program)


def test_definitions_of_one_name(k):
    """
    One application defines an event 20,000 times: the time is not quadratic, and the events of
    almost all definitions are counted as discarded.
    """
    first = start(k)
    ask(k, "enable-event", patterns=["*:*"])
    program = Program(k)
    number, _ = program.expect_query()
    n, identifiers = 20000, set()
    receiver = threading.Thread(target=lambda: identifiers.update(receive_maps(program, n)))
    receiver.start()
    for at in range(0, n, 400):
        entries = b"".join(struct.pack("<I", i) + blob(description("same", (UINT, 8, f"f{i}"))) for i in range(at, at + 400))
        program.send(EVENTS, struct.pack("<III", number, at + 400 < n, 400) + blob(entries))
    prompt(k, 0, lambda: ask(k, "list"))
    receiver.join(kymotest.TIMEOUT)
    check(REFUSED in identifiers and len(identifiers) < 100, f"{len(identifiers)} identifiers")
    check(any("definitions" in w for w in ask(k, "status", session="s")["warnings"]), "status says why")
    all_gone(k, first, program)


def test_left_out_is_bounded(k):
    """
    Applications report many events that they cannot record, with long texts: the daemon keeps the
    first ones, adds a few of them to a session's warnings, and continues to serve the applications.
    """
    first = start(k)
    ask(k, "enable-event", patterns=["*:*"])
    crowd = [Program(k, name="evil") for _ in range(10)]
    for c, p in enumerate(crowd):
        for i in range(1000):
            p.send(LEFT_OUT, text(f"evil:{c}-{i}-" + "*" * 20000) + text("\x1b[2J" + "x" * 20000))
    ask(k, "create", session="later", output=str(k.top / "later"))
    ask(k, "enable-event", session="later", patterns=["evil:*"])
    ask(k, "start", session="later")
    for session in ("s", "later"):
        warnings = ask(k, "status", session=session)["warnings"]
        named = [w for w in warnings if "application evil: 'evil:" in w]
        check(0 < len(named) <= 64, f"{session}: {len(named)} warnings")
        check(all(len(w) < 600 and w.isprintable() for w in named), f"{session}: {named[0][:1000]!r}")
    check(kymotest.private_mib(k.daemon.pid) < 40, f"{kymotest.private_mib(k.daemon.pid)} MiB")
    for p in crowd:
        p.events = [EMPTY]
        p.send(NEW_EVENTS, struct.pack("<I", 1))
        p.expect_query()
    all_gone(k, first, *crowd)


def test_share_of_the_journal(k):
    """
    An application sends more descriptions than the journal could hold: its user's share is
    exhausted first, and the session survives the daemon.
    """
    k.start_daemon(env={"KYMO_CLOCK": "monotonic"})
    ask(k, "create", session="s", output=str(k.traces / "s"))
    ask(k, "enable-event", patterns=["*:*"])
    ask(k, "start")
    program = Program(k)
    number, _ = program.expect_query()
    threading.Thread(target=drain, args=(program,), daemon=True).start()
    for i in range(1200):
        # little text in the metadata
        labels = b"".join(text("x") + struct.pack("<QQ", n, n) for n in range(1400))
        field = struct.pack("<BBBBI", ENUM, 0, 8, 0, 0) + text("f") + text("e") + struct.pack("<I", 1400) + labels
        event = text("shop") + text(f"e{i}") + struct.pack("<iI", 13, 1) + blob(field)
        program.send(EVENTS, struct.pack("<III", number, 1, 1) + blob(struct.pack("<I", i) + blob(event)))
    warned = lambda: [w for w in ask(k, "status", session="s")["warnings"] if "descriptions of events" in w or "survive" in w]
    wait_for(warned, "a share to be used up")
    check(not any("survive" in w for w in warned()), f"{warned()}")
    k.daemon.kill()
    k.daemon.wait()
    k.start_daemon(env={"KYMO_CLOCK": "monotonic"})
    equal([s["name"] for s in ask(k, "list")["sessions"]], ["s"], "sessions")
    ask(k, "destroy", session="s")


@without_sanitizers
def test_restart_with_many_events(k):
    """
    A successor reads the journal of a session with 60,000 events in a time that is not quadratic.
    The test measures CPU time, because others may use the machine.
    """
    k.start_daemon(env={"KYMO_CLOCK": "monotonic"})
    ask(k, "create", session="s", output="")
    ask(k, "enable-event", patterns=["*:*"])
    ask(k, "start")
    program = Program(k)
    number, _ = program.expect_query()
    n, mapped = 60000, []
    receiver = threading.Thread(target=lambda: mapped.extend(receive_maps(program, n)))
    receiver.start()
    for at in range(0, n, 1000):
        entries = b"".join(struct.pack("<I", i) + blob(description(f"e{i}")) for i in range(at, at + 1000))
        program.send(EVENTS, struct.pack("<III", number, at + 1000 < n, 1000) + blob(entries))
    receiver.join(kymotest.TIMEOUT)
    equal(len(set(mapped)), n, "identifiers")
    k.daemon.kill()
    k.daemon.wait()
    k.start_daemon(env={"KYMO_CLOCK": "monotonic"})
    equal([s["name"] for s in ask(k, "list")["sessions"]], ["s"], "sessions")
    check(cpu_seconds(k) < 2, f"the successor took {cpu_seconds(k)} s of CPU time")
    program.close()
    ask(k, "destroy", session="s")


def drain(program):
    with contextlib.suppress(OSError):
        while program.receive():
            pass


@without_sanitizers
def test_no_descriptor_for_a_connection(k):
    """A daemon that has no descriptor left does not spin while somebody waits to be accepted."""
    k.start_daemon(wrap=["prlimit", "--nofile=40:40"])
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(60)]
    for s in crowd:
        s.connect(str(k.rundir / "control.sock"))
    wait_for(lambda: len(os.listdir(f"/proc/{k.daemon.pid}/fd")) >= 40, "all descriptors to be in use")
    begin, before = time.monotonic(), cpu_seconds(k)
    wait_for(lambda: time.monotonic() > begin + 2, "some time to pass")
    took = cpu_seconds(k) - before
    check(took < 0.2, f"{took} s of CPU time in 2 s")
    for s in crowd:
        s.close()
    ask(k, "list")


def receive_maps(program, n):
    """Returns the identifiers of n events."""
    mapped = {}
    while len(mapped) < n:
        kind, payload = program.receive()
        if kind == MAP:
            mapped.update(map_entries(payload)[1])
    return mapped.values()


if __name__ == "__main__":
    kymotest.main()
