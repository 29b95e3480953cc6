#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
'kymo ship' and 'kymo receive' (docs/shipping.md): traces arrive whole and once, whatever happens to
the connection and both ends, and can be read meanwhile.
"""

import contextlib
import os
import pathlib
import re
import shlex
import signal
import stat
import struct
import subprocess
import sys
import time

import kymotest
from kymotest import CLI, TIMEOUT, check, equal, wait_for

EVENTS = 20000
# Passes a connection on until a number of bytes has come from the sender; then it ends.
CUT = """import os, select, subprocess, sys
left = int(sys.argv[1])
far = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
while left > 0:
    for fd in select.select([0, far.stdout], [], [])[0]:
        data = os.read(0, min(left, 65536)) if fd == 0 else os.read(far.stdout.fileno(), 65536)
        if not data:
            sys.exit(1)
        if fd == 0:
            left -= len(data)
            far.stdin.write(data)
            far.stdin.flush()
        else:
            os.write(1, data)
far.kill()
"""
# Passes a connection on, slowly, and notes how many bytes have come from the sender.
SLOW = """import os, select, subprocess, sys, time
passed = 0
far = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
while True:
    for fd in select.select([0, far.stdout], [], [])[0]:
        data = os.read(0, 16384) if fd == 0 else os.read(far.stdout.fileno(), 65536)
        if fd != 0 and data:
            os.write(1, data)
        elif data:
            passed += len(data)
            far.stdin.write(data)
            far.stdin.flush()
            time.sleep(0.02)
        else:
            open(sys.argv[1], "w").write(str(passed))
            sys.exit(0)
"""
# listen PORT COMMAND...: gives each connection to a command. connect HOST PORT: passes one on.
TCP = """import select, socket, subprocess, sys, os
if sys.argv[1] == "listen":
    s = socket.create_server(("", int(sys.argv[2])))
    print("ready", flush=True)
    while True:
        c, _ = s.accept()
        subprocess.Popen(sys.argv[3:], stdin=c, stdout=c)
        c.close()
c = socket.create_connection((sys.argv[2], int(sys.argv[3])), timeout=5)
c.settimeout(None)
while True:
    for fd in select.select([0, c], [], [])[0]:
        data = os.read(0, 65536) if fd == 0 else c.recv(65536)
        if not data:
            sys.exit(1)
        c.sendall(data) if fd == 0 else os.write(1, data)
"""
# listen SOCKET CUT COMMAND...: gives each connection to a command. When there is a file CUT,
# nothing more passes through a connection, but the command's end stays open, noted in SOCKET.held.
# ALIVE segments of commands are noted in SOCKET.alive. connect SOCKET: passes one on.
SILENT = """import os, select, socket, subprocess, sys, threading
held = []
def pass_on(c):
    far = subprocess.Popen(sys.argv[4:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    while True:
        for end in select.select([c, far.stdout], [], [])[0]:
            data = c.recv(65536) if end is c else os.read(far.stdout.fileno(), 65536)
            if os.path.exists(sys.argv[3]):
                held.append((c, far))
                open(sys.argv[2] + ".held", "w").close()
                return
            if not data:
                far.stdin.close()
                far.wait()
                c.close()
                return
            if end is c:
                while data:
                    data = data[far.stdin.write(data):]
            else:
                c.sendall(data)
                if len(data) == 40 and data[8] == 10:
                    open(sys.argv[2] + ".alive", "w").close()
s = socket.socket(socket.AF_UNIX)
if sys.argv[1] == "listen":
    s.bind(sys.argv[2])
    s.listen()
    print("ready", flush=True)
    while True:
        threading.Thread(target=pass_on, args=(s.accept()[0],), daemon=True).start()
s.connect(sys.argv[2])
while True:
    for fd in select.select([0, s], [], [])[0]:
        data = os.read(0, 65536) if fd == 0 else s.recv(65536)
        if not data:
            sys.exit(1)
        s.sendall(data) if fd == 0 else os.write(1, data)
"""


def far_of(k):
    return k.top / "far"


def receive(k):
    return f"{shlex.quote(str(CLI))} receive {shlex.quote(str(far_of(k)))}"


def files_of(trace):
    """The trace's own files: not what each end notes for itself."""
    return {str(p.relative_to(trace)): p.read_bytes() for p in pathlib.Path(trace).rglob("*") if p.is_file()
        and p.name not in (".recording", ".shipped", ".shipping", ".watermark") and "archives" not in p.relative_to(trace).parts}


def same(trace, far, what):
    ours, theirs = files_of(trace), files_of(far)
    equal(sorted(theirs), sorted(ours), f"{what}: files")
    check(ours == theirs, f"{what}: their bytes")


def start_ship(k, trace, command, *options, within=()):
    p = subprocess.Popen([*within, CLI, "ship", trace, f"exec:{command}", *options], env=k.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    k.started.append(p)
    return p


def count(trace):
    events, discarded = kymotest.read_trace(trace)
    return len(events) + discarded


def test_finished(k):
    """A trace that is there; a second time nothing is sent, and nothing changes."""
    k.start_daemon()
    trace = k.record("*")
    k.app("emit", "-n", EVENTS)
    k.kymo("destroy", "s")
    for _ in range(2):
        said = k.kymo("ship", trace, f"exec:{receive(k)}").stdout
        check("files shipped to exec:" in said, said)
        same(trace, far_of(k) / trace.name, "copy")
    equal(count(far_of(k) / trace.name), EVENTS, "events")
    equal(len(list(far_of(k).iterdir())), 1, "directories")


def test_while_recorded(k):
    """The connection breaks after random numbers of bytes, and both ends are killed meanwhile."""
    (k.top / "cut.py").write_text(CUT)
    k.start_daemon()
    trace = k.record("*")
    command = f"{sys.executable} {k.top}/cut.py $(shuf -n 1 -i 100000-2000000) {receive(k)}"
    ship = start_ship(k, trace, command)
    far = far_of(k) / trace.name
    total = 0
    for i in range(6):
        k.app("emit", "-n", EVENTS)
        total += EVENTS
        if any(p.stat().st_size for p in far.glob("ust/**/metadata")):
            k.kymo("stat", far)  # what has arrived can be read
        if i % 2:
            ship.kill()
            ship.wait()
            ship = start_ship(k, trace, command)
    k.kymo("destroy", "s")
    said = ship.communicate(timeout=TIMEOUT)[0]
    equal(ship.returncode, 0, f"exit status: {said}")
    same(trace, far, "copy")
    equal(count(far), total, "events")


def test_talkative_command(k):
    """The output of a command takes little memory, however long it is."""
    k.start_daemon()
    trace = k.record("*")
    k.app("emit", "-n", 10)
    ship = start_ship(k, trace, f"head -c 5000000 /dev/zero | tr '\\0' x >&2; {receive(k)}")

    def size():
        """Returns the length of the output that is kept, and the memory that it takes."""
        for path in pathlib.Path(f"/proc/{ship.pid}/fd").iterdir():
            try:
                if "memfd:kymo-ship" in os.readlink(path):
                    return path.stat().st_size, 512 * path.stat().st_blocks
            except FileNotFoundError:
                pass  # a descriptor that was just closed
        return 0, 0

    wait_for(lambda: size()[0] == 5000000, "the output")
    k.app("emit", "-n", 10)
    wait_for(lambda: 0 < size()[1] <= 65536, "most of the output to be forgotten")
    k.kymo("destroy", "s")
    equal((ship.wait(TIMEOUT), count(far_of(k) / trace.name)), (0, 20), "status and events")


def test_slow_link(k):
    """Bytes are compressed while it is the link that is slow; what arrives is the same."""
    (k.top / "slow.py").write_text(SLOW)
    k.start_daemon()
    trace = k.record("*")
    k.app("emit", "-n", 5 * EVENTS)
    k.kymo("destroy", "s")
    k.kymo("ship", trace, f"exec:{sys.executable} {k.top}/slow.py {k.top}/passed {receive(k)}")
    same(trace, far_of(k) / trace.name, "copy")
    size = sum(len(data) for data in files_of(trace).values())
    passed = int(wait_for(lambda: (k.top / "passed").exists() and (k.top / "passed").read_text(), "the number of bytes"))
    check(passed < size * 3 / 4, f"{passed} bytes were sent of {size}")


def sizes_of(directory):
    """Yields path and stat of the regular files below, without those that are removed meanwhile."""
    for path in pathlib.Path(directory).rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            info = path.stat()
            if stat.S_ISREG(info.st_mode):
                yield path, info


def used(trace):
    """Returns the disk space of the streams, without the two pages that a packet keeps."""
    space = 0
    for path, info in sizes_of(trace / "ust"):
        if path.parent.name == "index":
            space -= info.st_size // 48 * 8192
        elif path.name != "metadata":
            space += info.st_blocks * 512
    return max(space, 0)


def has_expired(k, trace, limit):
    """Is what was recorded, 25 bytes or more for each event, in files that take little space?"""
    recorded = k.kymo_json("status", "s")["session"]["recorded"]
    written = sum(info.st_size for _, info in sizes_of(trace / "ust"))
    return written > recorded * 25 and used(trace) < limit * 2


def emit(k, n):
    k.app("emit", "-n", n, "-p", 1)
    return n


def breakable(k):
    """A command that leads to the receiver while there is no file `down`."""
    return f"[ ! -e {k.top}/down ] || {{ echo no route to host >&2; exit 1; }}; exec {receive(k)}"


def test_rate(k):
    """No more bytes pass in a second than the limit says; what arrives is the same."""
    k.start_daemon()
    trace = k.record("*")
    k.app("emit", "-n", EVENTS)
    k.kymo("destroy", "s")
    passed = k.top / "passed"
    begin = time.monotonic()
    k.kymo("ship", trace, f"exec:tee {passed} | {receive(k)}", "--ship-rate=200K")
    seconds = time.monotonic() - begin
    same(trace, far_of(k) / trace.name, "copy")
    # It may be less time by that of the last tenth of a second.
    check(seconds >= passed.stat().st_size / (200 << 10) - 0.2, f"{passed.stat().st_size} bytes in {seconds} s")


def test_spool(k):
    """
    A spool gives back the space of what has arrived. The oldest events expire while the other end
    stays away, also when the sender was killed meanwhile; each event arrives or is counted.
    """
    limit = 256 << 10
    k.start_daemon()
    trace = k.record("emit:*", channel=("--subbuf-size=64K", "--num-subbuf=16", "--switch-timer=20ms"))
    total = emit(k, 1000)
    wait_for(lambda: (trace / "ust").exists(), "the first files")
    (k.top / "down").touch()
    ship = start_ship(k, trace, breakable(k), "--spool=256K")
    for _ in range(5):
        total += emit(k, EVENTS)
    wait_for(lambda: has_expired(k, trace, limit), "events to expire")
    (k.top / "down").unlink()
    total += emit(k, EVENTS)
    wait_for(lambda: (far_of(k) / trace.name / "ust").exists() and used(trace) < limit / 4, "space to be given back")
    (k.top / "down").touch()
    for p in kymotest.children(ship.pid, "kymo"):
        os.kill(p, signal.SIGKILL)
    for _ in range(3):
        total += emit(k, EVENTS)
    ship.kill()
    ship.wait()
    total += emit(k, EVENTS)
    ship = start_ship(k, trace, breakable(k), "--spool=256K")
    wait_for(lambda: has_expired(k, trace, limit), "events to expire after a sender was killed")
    (k.top / "down").unlink()
    k.kymo("destroy", "s")
    said = ship.communicate(timeout=TIMEOUT)[0]
    equal(ship.returncode, 0, f"exit status: {said}")
    far = far_of(k) / trace.name
    equal(count(far), total, "events that arrived or were counted")
    expired = int(re.search(r"(\d+) events were removed", said).group(1))
    check(EVENTS < expired < total, f"{expired} of {total} events expired")
    check(used(trace) < limit / 4, f"{used(trace)} bytes are still here")
    check("is a spool" in k.kymo("stat", trace, status=None).stderr, "a reader is warned")
    check("for another address" in k.kymo("ship", trace, "exec:true", "--spool=1M", status=1).stderr, "another address is refused")


def test_full_disk(k):
    """The other end's disk is full for a while: status says so, and each event arrives at last."""
    disk = k.start_daemon_with_disk("1m")
    trace = k.record("emit:*", channel=("--subbuf-size=64K", "--num-subbuf=16"))
    total = emit(k, 5 * EVENTS)
    inside = ["nsenter", "-m", "-t", str(k.daemon.pid)]
    ship = start_ship(k, trace, shlex.join([*inside, str(CLI), "receive", str(disk / "far")]))
    # Events that a slow consumer left in the buffers, or that were discarded, fill no disk.
    while "No space left" not in k.kymo_json("status", "s").get("shipping", {}).get("trouble", ""):
        total += emit(k, EVENTS // 10)
        check(total < 1000 * EVENTS, k.kymo("status", "s").stdout)
    total += emit(k, EVENTS)
    k.run([*inside, "mount", "-o", "remount,size=64m", disk])
    k.kymo("destroy", "s")
    said = ship.communicate(timeout=TIMEOUT)[0]
    equal(ship.returncode, 0, f"exit status: {said}")
    equal(count(pathlib.Path(f"/proc/{k.daemon.pid}/root{disk}/far/s")), total, "events")


def is_drained(k):
    session = k.kymo_json("status", "s")["session"]
    return not session["in_buffers"] and not session["error"]


def test_full_disk_here(k):
    """
    The disk of a spool is full while the other end stays away: what finds no room is discarded.
    When the other end is back, the session goes on, because its bytes give back their space.
    """
    disk = k.start_daemon_with_disk("2m")
    inside = ["nsenter", "-m", "-t", str(k.daemon.pid)]
    trace = pathlib.Path(f"/proc/{k.daemon.pid}/root{disk}/s")
    k.kymo("create", "s", f"--output={disk}/s")
    k.kymo("enable-channel", "c", "--subbuf-size=64K", "--num-subbuf=16", "--switch-timer=20ms")
    k.kymo("enable-event", "-c", "c", "emit:*")
    k.kymo("start", "s")
    total = emit(k, 1000)
    wait_for(lambda: (trace / "ust").exists(), "the first files")
    (k.top / "down").touch()
    ship = start_ship(k, disk / "s", breakable(k), "--spool=4M", within=inside)
    wait_for((trace / ".shipping").exists, "the command to try")
    for _ in range(12):
        total += emit(k, EVENTS)
    wait_for(lambda: "No space left" in k.kymo("status", "s").stdout, "the full disk")
    (k.top / "down").unlink()
    # The buffers can hold as much as the disk, and fill it again until they are empty.
    wait_for(lambda: is_drained(k) and used(trace) < 256 << 10, "all to be written, and its space given back")
    total += emit(k, 1000)
    k.kymo("destroy", "s")
    said = ship.communicate(timeout=TIMEOUT)[0]
    equal(ship.returncode, 0, f"exit status: {said}")
    far = far_of(k) / trace.name
    equal(count(far), total, "events that arrived or were counted")
    arrived = len(kymotest.read_trace(far)[0])
    check(1000 < arrived < total, f"{arrived} events of {total} arrived")


def test_created(k):
    """
    A session with an address sends its trace in the background. A refused address leaves no
    session.
    """
    k.start_daemon()
    for wrong in (("--set-url=net://host",), ("--set-url=ssh://host",), ("--set-url=exec:true", "--spool=0"), ("--set-url=exec:true", "--no-output"), ("--spool=1M",)):
        said = k.kymo("create", "s", *wrong, status=2).stderr
        check(said.startswith("kymo: create: ") and said.count("\n") == 1, f"{wrong}: {said}")
    equal(k.kymo_json("list")["sessions"], [], "sessions")
    (k.top / "down").touch()
    k.kymo("create", "s", f"--output={k.top}/s", f"--set-url=exec:{breakable(k)}")
    k.kymo("enable-event", "*")
    k.kymo("start")
    total = emit(k, EVENTS)
    wait_for(lambda: "no route" in k.kymo_json("status", "s").get("shipping", {}).get("trouble", ""), "the command to try")
    check("shipping to exec:" in k.kymo("stop").stdout, "stop says how far it is")
    check("no route" in k.kymo("destroy").stdout, "destroy says why it does not go on")
    (k.top / "down").unlink()
    far = far_of(k) / "s"
    wait_for(lambda: not (k.top / "s/.shipping").exists(), "all to be there")
    same(k.top / "s", far, "copy")
    equal(count(far), total, "events")


@contextlib.contextmanager
def two_hosts(k):
    """Two network namespaces with a link between them: their names."""
    names = [f"kymo-{os.getpid()}-{side}" for side in "ab"]
    if subprocess.run(["ip", "netns", "add", names[0]], capture_output=True).returncode:
        raise kymotest.Skip("network namespaces need root that may make them (in a container: --privileged)")
    try:
        k.run(["ip", "netns", "add", names[1]])
        k.run(["ip", "-n", names[0], "link", "add", "name", "kymo0", "type", "veth", "peer", "name", "kymo0", "netns", names[1]])
        for n, name in enumerate(names):
            k.run(["ip", "-n", name, "addr", "add", f"10.0.0.{n + 1}/24", "dev", "kymo0"])
            k.run(["ip", "-n", name, "link", "set", "kymo0", "up"])
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def n_packets(trace):
    return sum(p.stat().st_size // 48 for p in pathlib.Path(trace, "ust").rglob("*.kyx"))


def test_cut_link(k):
    """The link between two hosts is cut while they record; all events arrive."""
    with two_hosts(k) as (a, b):
        (k.top / "tcp.py").write_text(TCP)
        tcp = [sys.executable, str(k.top / "tcp.py")]
        listener = subprocess.Popen(["ip", "netns", "exec", b, *tcp, "listen", "9000", CLI, "receive", far_of(k)],
            env=k.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        k.started.append(listener)
        equal(listener.stdout.readline(), "ready\n", "the other end")
        k.start_daemon()
        trace = k.record("emit:*", channel=("--subbuf-size=64K", "--num-subbuf=16", "--switch-timer=20ms"))
        total = emit(k, EVENTS)
        ship = start_ship(k, trace, shlex.join(["ip", "netns", "exec", a, *tcp, "connect", "10.0.0.2", "9000"]))
        far = far_of(k) / trace.name
        for _ in range(3):
            before = n_packets(far)
            total += emit(k, EVENTS)
            wait_for(lambda: n_packets(far) > before, "events to arrive")
            k.run(["ip", "-n", b, "link", "set", "kymo0", "down"])
            total += emit(k, EVENTS)
            k.run(["ip", "-n", b, "link", "set", "kymo0", "up"])
        k.kymo("destroy", "s")
        said = ship.communicate(timeout=TIMEOUT)[0]
        equal(ship.returncode, 0, f"exit status: {said}")
        same(trace, far, "copy")
        equal(count(far), total, "events")
        listener.kill()
        listener.wait()


def test_silent_link(k):
    """
    The other host does not notice that a connection is dead, and keeps its receiver, which holds
    the trace's lock. It ends by itself, and the next one goes on.
    """
    (k.top / "silent.py").write_text(SILENT)
    silent, cut, socket = [sys.executable, str(k.top / "silent.py")], k.top / "cut", k.top / "socket"
    listener = subprocess.Popen([*silent, "listen", socket, cut, CLI, "receive", far_of(k)],
        env=k.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    k.started.append(listener)
    equal(listener.stdout.readline(), "ready\n", "the other host")
    k.start_daemon()
    trace = k.record("*")
    command = shlex.join([*silent, "connect", str(socket)])
    ship = start_ship(k, trace, command)
    k.app("emit", "-n", EVENTS)
    wait_for((k.top / "socket.alive").exists, "a connection that is in use without data")
    wait_for((far_of(k) / trace.name / ".recording").exists, "the trace to be taken")
    cut.touch()
    k.app("emit", "-n", EVENTS)
    ship.kill()
    ship.wait()
    k.kymo("destroy", "s")
    wait_for((k.top / "socket.held").exists, "the connection to be dead")
    cut.unlink()
    said = start_ship(k, trace, command).communicate(timeout=TIMEOUT)[0]
    check("files shipped to exec:" in said, said)
    same(trace, far_of(k) / trace.name, "copy")
    equal(count(far_of(k) / trace.name), 2 * EVENTS, "events")
    listener.kill()
    listener.wait()


def test_follows(k):
    """Events arrive while the session records; the command ends with the session."""
    k.start_daemon()
    trace = k.record("*", channel=("--switch-timer=100ms",))
    ship = start_ship(k, trace, receive(k))
    k.app("emit", "-n", 100)
    far = far_of(k) / trace.name

    def arrived():
        done = k.kymo("stat", "--json", far, status=None)
        return done.returncode == 0 and '"events": 100,' in done.stdout

    wait_for(arrived, "the events")
    check(ship.poll() is None, "it goes on")
    k.kymo("destroy", "s")
    equal(ship.wait(TIMEOUT), 0, "exit status")
    same(trace, far, "copy")


def test_rotation(k):
    """Each part of a session goes to a directory of its own; the sum is what was recorded."""
    k.start_daemon()
    trace = k.record("*")
    k.app("emit", "-n", EVENTS)
    wait_for(lambda: (trace / "ust").exists(), "the first files")
    ship = start_ship(k, trace, receive(k))
    wait_for(lambda: (far_of(k) / trace.name / ".recording").exists(), "the first part to be taken")
    k.kymo("rotate", "s")
    k.app("emit", "-n", EVENTS)
    wait_for(lambda: (far_of(k) / f"{trace.name}-2" / ".recording").exists(), "the second part to be taken")
    k.kymo("destroy", "s")
    said = ship.communicate(timeout=TIMEOUT)[0]
    equal(ship.returncode, 0, f"exit status: {said}")
    parts = [far_of(k) / n for n in (trace.name, f"{trace.name}-2")]
    equal([count(part) for part in parts], [EVENTS, EVENTS], "events")
    for part, chunk in zip(parts, (0, 1)):
        equal(struct.unpack("<3Q", (part / ".watermark").read_bytes()), (2**64 - 1, chunk, 1), f"watermark of {part.name}")


def test_rotated_meanwhile(k):
    """
    Parts that are rotated while the receiver cannot be reached, and while no sender runs, are sent
    later: each once, to a directory of its own.
    """
    k.start_daemon()
    trace = k.record("*")
    k.app("emit", "-n", EVENTS)
    wait_for(lambda: (trace / "ust").exists(), "the first files")
    before = k.kymo_json("rotate", "s")["rotation"]["path"]
    emitted = []

    def next_part():
        k.app("emit", "-n", EVENTS + len(emitted))
        emitted.append(EVENTS + len(emitted))
        k.kymo("rotate", "s")

    def parts():
        return [count(p) for p in sorted(far_of(k).iterdir())]

    down = k.top / "down"
    k.app("emit", "-n", 1)
    wait_for(lambda: (trace / "ust").exists(), "the first files of the second part")
    down.touch()
    ship = start_ship(k, trace, breakable(k))
    wait_for(lambda: (trace / "ust" / ".recording").exists(), "the second part to be begun")
    for _ in range(3):
        next_part()
    down.unlink()
    emitted[0] += 1  # the event that was emitted before
    wait_for(lambda: len(list(trace.glob("archives/*/ust/.shipped"))) == len(emitted), "three parts to arrive")
    equal(parts(), emitted, "parts")
    ship.kill()
    ship.wait()
    for _ in range(2):
        next_part()
    k.app("emit", "-n", EVENTS)
    k.kymo("destroy", "s")
    done = k.kymo("ship", trace, f"exec:{breakable(k)}")
    check("1 part was rotated and never shipped" in done.stderr, done.stderr)
    equal(parts(), [*emitted, EVENTS], "parts")
    for number, part in enumerate(sorted(far_of(k).iterdir()), 1):
        equal(struct.unpack("<3Q", (part / ".watermark").read_bytes()), (2**64 - 1, number, 1), f"watermark of {part.name}")
    check(not list(pathlib.Path(before).rglob(".recording")), "the part before the first command was begun")
    k.kymo("ship", trace, f"exec:{breakable(k)}")
    equal(parts(), [*emitted, EVENTS], "parts after another command")


def test_rotated_spool(k):
    """Rotated parts of a spool expire no more: their space is given back when they have arrived."""
    k.start_daemon()
    trace = k.record("*")
    emit(k, EVENTS)
    wait_for(lambda: (trace / "ust").exists(), "the first files")
    down = k.top / "down"
    down.touch()
    ship = start_ship(k, trace, breakable(k), "--spool=16K")
    wait_for(lambda: (trace / "ust" / ".recording").exists(), "the first part to be begun")
    k.kymo("rotate", "s")
    for _ in range(4):
        emit(k, EVENTS)
        k.kymo("stop", "s")  # ends a packet
        k.kymo("start", "s")
    path = pathlib.Path(k.kymo_json("rotate", "s")["rotation"]["path"])
    before = used(path)
    down.unlink()
    wait_for((path / "ust" / ".shipped").exists, "the second part to arrive")
    events, discarded = kymotest.read_trace(far_of(k) / f"{trace.name}-2")
    equal((len(events), discarded), (4 * EVENTS, 0), "events of the second part, and those that expired")
    check(used(path) < before / 2, f"{used(path)} of {before} bytes are still used")
    k.kymo("destroy", "s")
    equal(ship.wait(TIMEOUT), 0, "exit status")


def test_machine_failed(k):
    """The machine failed while a rotation moved a chunk: it is shipped all the same."""
    k.start_daemon()
    trace = k.record("*")
    k.app("emit", "-n", EVENTS)
    k.kymo("destroy", "s")
    (trace / ".moving").mkdir()
    (trace / "ust").rename(trace / ".moving" / "ust")
    for _ in range(2):
        said = k.kymo("ship", trace, f"exec:{receive(k)}").stdout
        check("files shipped to exec:" in said, said)
        equal(count(far_of(k) / trace.name), EVENTS, "events")
    equal(len(list(far_of(k).iterdir())), 1, "directories")


@kymotest.without_sanitizers
def test_confined(k):
    """The receiving end has given up all system calls that it does not need."""
    far = subprocess.Popen([CLI, "receive", far_of(k)], env=k.env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    k.started.append(far)

    def status():
        return pathlib.Path(f"/proc/{far.pid}/status").read_text()

    if "Seccomp:" not in status():
        raise kymotest.Skip("the kernel has no seccomp filters")
    wait_for(lambda: "Seccomp:\t2" in status() and "NoNewPrivs:\t1" in status(), "the filter")
    far.stdin.close()
    equal(far.wait(TIMEOUT), 1, "exit status at the end of the connection")


def test_interrupted(k):
    """Without the other end it tries again, names the reason once, and is ended by a signal."""
    k.start_daemon()
    trace = k.record("*")
    k.app("emit", "-n", 10)
    k.kymo("destroy", "s")
    tries = k.top / "tries"
    ship = start_ship(k, trace, f"echo >> {tries}; printf 'known host\\r\\nno such host {'x' * 600}\\r\\n' >&2; exit 255")
    line = ship.stdout.readline()
    check(": no such host x" in line and "trying again" in line, line)
    wait_for(lambda: len(tries.read_text()) > 2, "more tries")
    ship.send_signal(signal.SIGTERM)
    said = ship.communicate(timeout=TIMEOUT)[0]
    equal(ship.returncode, 1, "exit status")
    check("interrupted" in said and "trying again" not in said, said)


def test_command_ignores_signals(k):
    """A signal ends kymo ship, even if its command ignores SIGTERM."""
    k.start_daemon()
    trace = k.record("*")
    k.app("emit", "-n", 10)
    k.kymo("destroy", "s")
    ready = k.top / "ready"
    ship = start_ship(k, trace, f"trap '' TERM; touch {ready}; sleep 1000")
    wait_for(ready.exists, "the command")
    ship.send_signal(signal.SIGTERM)
    said = ship.communicate(timeout=TIMEOUT)[0]
    check("interrupted" in said, said)


def test_status(k):
    """'kymo status' says how far the other end is, and why it does not go on."""
    k.start_daemon()
    trace = k.record("*", channel=("--switch-timer=20ms",))
    k.app("emit", "-n", 1000)
    wait_for(lambda: (trace / "ust").exists(), "the first files")

    def shipping():
        return k.kymo_json("status", "s").get("shipping", {})

    equal(shipping(), {}, "shipping before")
    ship = start_ship(k, trace, "echo no such host >&2; exit 255")
    state = wait_for(lambda: "trouble" in shipping() and shipping(), "the trouble")
    equal((state["runs"], state["bytes_there"]), (True, 0), "what is there")
    check("no such host" in state["trouble"], str(state))
    text = k.kymo("status", "s").stdout
    check("shipping to exec:echo" in text and re.search(r"nothing (of [0-9.]+ KiB )?is there yet", text) and "no such host, since" in text and "trying again" in text, text)
    recorded = wait_for(lambda: shipping()["bytes"], "what there is to send")
    k.app("emit", "-n", 1000)
    wait_for(lambda: shipping()["bytes"] > recorded, "what was recorded meanwhile")
    ship.send_signal(signal.SIGTERM)
    ship.communicate(timeout=TIMEOUT)
    check("no 'kymo ship' runs" in k.kymo("status", "s").stdout, "that it has ended")
    ship = start_ship(k, trace, receive(k))
    state = wait_for(lambda: shipping().get("bytes_there") and shipping(), "progress")
    check(state["runs"] and "trouble" not in state, str(state))
    k.kymo("destroy", "s")
    equal(ship.wait(TIMEOUT), 0, "exit status")
    check(not (trace / ".shipping").exists(), "the note is removed when all has arrived")


def test_quota(k):
    k.start_daemon()
    trace = k.record("*")
    k.app("emit", "-n", EVENTS)
    k.kymo("destroy", "s")
    ship = start_ship(k, trace, f"{receive(k)} --max=64K")
    line = ship.stdout.readline()
    equal(line.count("has its limit of 65536 bytes"), 1, line)  # it is reported to both ends
    ship.send_signal(signal.SIGTERM)
    ship.communicate(timeout=TIMEOUT)
    size = sum(p.stat().st_size for p in far_of(k).rglob("*") if p.is_file() and p.name[0] != ".")
    check(size <= 65536, f"{size} bytes")
    k.kymo("ship", trace, f"exec:{receive(k)}")
    same(trace, far_of(k) / trace.name, "copy")


def test_ssh(k):
    """ssh gets an IPv6 address without brackets, the port, and a directory that its shell reads."""
    trace = k.top / "other"
    (trace / "index").mkdir(parents=True)
    (trace / "metadata").write_text("/* CTF 1.8 */\n")
    ssh = k.top / "ssh"
    ssh.write_text(f"#!/bin/sh\nwhile [ \"$1\" != -- ]; do [ \"$1\" != -p ] || echo $2 >>{k.top}/got; shift; done\n"
        f"printf '%s\\n' \"$@\" >>{k.top}/got\nexec {receive(k)}\n")
    ssh.chmod(0o755)
    env = {**k.env, "PATH": f"{k.top}:{os.environ['PATH']}"}
    for place, wanted in (
        ("me@[fe80::1%eth0]:2222/a b", ["2222", "--", "me@fe80::1%eth0", "kymo receive 'a b'"]),
        ("[::1]//t", ["--", "::1", "kymo receive /t"]),
        ("me@host:22/t", ["22", "--", "me@host", "kymo receive t"]),
        ("host/t", ["--", "host", "kymo receive t"]),
    ):
        k.kymo("ship", trace, f"ssh://{place}", "--once", env=env)
        equal((k.top / "got").read_text().splitlines(), wanted, place)
        (k.top / "got").unlink()


def test_other_tracers(k):
    """Files beside a directory, as the 'index' of other tracers, are shipped, too."""
    trace = k.top / "other"
    (trace / "index").mkdir(parents=True)
    done = k.kymo("ship", trace, f"exec:{receive(k)}", "--once")
    check("no packets were found to ship" in done.stderr, done.stderr)
    files = {"metadata": b"/* CTF 1.8 */\n", "channel0_0": bytes(4096), "index/channel0_0.idx": b"x"}
    for name, content in files.items():
        (trace / name).write_bytes(content)
    k.kymo("ship", trace, f"exec:{receive(k)}", "--once")
    equal({name: (far_of(k) / "other" / name).read_bytes() for name in files}, files, "files that have arrived")


def test_unsent_archives(k):
    """A part that was rotated before its turn is named at the end, until it is shipped."""
    trace = k.top / "rotated"
    chunks = [trace, trace / "archives" / "1-2-0", trace / "archives" / "2-3-1"]
    for chunk in chunks:
        (chunk / "ust").mkdir(parents=True)
        (chunk / "ust" / "metadata").write_text("/* CTF 1.8 */\n")
    for n_left, said in ((2, "2 parts were rotated and never shipped"), (1, "1 part was rotated and never shipped"), (0, "")):
        done = k.kymo("ship", trace, f"exec:{receive(k)}", "--once")
        check(said in done.stderr if said else not done.stderr, done.stderr)
        if n_left:
            k.kymo("ship", chunks[n_left], f"exec:{receive(k)}", "--once")


def test_usage(k):
    k.start_daemon()
    empty = k.top / "empty"
    empty.mkdir()
    for args, status, said in (
        (["x", "exec:true"], 1, "No such file"),
        ([empty, "exec:true"], 1, "there is no trace"),
        ([empty, "tcp://host"], 2, "is no address: use"),
        ([empty, "me@host:traces"], 2, "did you mean 'ssh://me@host/traces'?"),
        ([empty, "host:/var/traces"], 2, "did you mean 'ssh://host//var/traces'?"),
        ([empty, "ssh://host"], 2, "is not ssh://"),
        ([empty, "ssh://-oProxyCommand=x/y"], 2, "is not ssh://"),
        *(([empty, f"ssh://{host}/y"], 2, "is not ssh://") for host in ("h:", "h:0", "h:65536", "h:x", "h:-1", "me@", "::1", "[::1", "[]", "[::1]22")),
        ([empty, "exec:true", "--name=a/b"], 2, "cannot name the directory"),
        ([empty, "exec:true", "--ship-rate=0"], 2, "must be at least 1024 bytes"),
        ([empty, "exec:true", "--ship-rate=fast"], 2, "is not a size"),
    ):
        done = k.kymo("ship", *args, status=status)
        check(said in done.stderr, done.stderr)
    done = k.run([CLI, "receive", far_of(k)], status=1, input="GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n")
    check("is not 'kymo ship'" in done.stderr, done.stderr)
    equal(list(far_of(k).iterdir()), [], "what it made")


if __name__ == "__main__":
    kymotest.main()
