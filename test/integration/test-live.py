#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
'kymo live' (docs/live.md): babeltrace2, unchanged, reads sessions while they record, complete and
in order: what it prints is what it prints of the finished trace.

A record that a CPU was kept from publishing in time (docs/trace-format.md, "Watermark") is not
shown, but counted: shown + counted = emitted.
"""

import contextlib
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import socket
import struct
import subprocess

import kymotest
from emitcheck import CYCLES
from kymotest import CLI, TIMEOUT, check, equal, wait_for

FAST = ("--switch-timer=20ms",)
PACKETS = re.compile(r"Tracer discarded \d+ packets?")  # that came too late
LATE = re.compile(r"not shown (\d+) event")


class Live:
    """A running 'kymo live'."""

    def __init__(self, k, *args):
        self.k = k
        self.errors = k.top / "live.log"
        with open(self.errors, "wb") as log:
            self.process = subprocess.Popen([CLI, "live", "--listen=127.0.0.1:0", *args], env=k.env, stdout=subprocess.PIPE, stderr=log, text=True)
        k.started.append(self.process)
        self.links = []
        while (line := self.process.stdout.readline().strip()) != "^C ends":
            check(line, f"kymo live ended: {self.errors.read_text()}")
            self.links += re.findall(r"net://\S+", line)
        self.port = int(re.search(r":(\d+)", self.links[0])[1])

    def view(self, link=None):
        """Starts a viewer; it ends with the session."""
        return Viewer(self.k, link or self.links[0])

    def end(self):
        """Ends it; returns how many events its viewers were not shown."""
        self.process.send_signal(signal.SIGTERM)
        equal(self.process.wait(TIMEOUT), 0, "exit status of kymo live")
        said = self.errors.read_text()
        check(all(LATE.search(line) for line in said.splitlines()), f"kymo live said: {said}")
        return sum(map(int, LATE.findall(said)))


class Viewer:
    number = 0

    def __init__(self, k, link):
        Viewer.number += 1
        self.out, self.err = k.top / f"viewer-{Viewer.number}", k.top / f"viewer-{Viewer.number}.err"
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(["babeltrace2", "--clock-cycles", "--input-format=lttng-live", link], stdout=out, stderr=err,
                env={**os.environ, "LC_ALL": "C.UTF-8", "KYMO_TEST_MARK": k.top.name})
        k.started.append(self.process)

    def finish(self):
        """Waits for its end; returns the events, and how many it reported as discarded."""
        status = self.process.wait(TIMEOUT)
        errors = self.err.read_text(errors="replace")
        warnings = [line for line in errors.splitlines() if line.strip() and not kymotest.DISCARDED.search(line) and not PACKETS.search(line)]
        check(status == 0 and not warnings, f"babeltrace2 ended with {status} and said:\n{errors[:3000]}")
        return kymotest.events_of(self.out.read_text(errors="surrogateescape")), sum(int(n or 0) for n in kymotest.DISCARDED.findall(errors))


def check_order(events):
    """babeltrace2 merges by nanoseconds, which have some cycles of the clock each."""
    for before, event in zip(events, events[1:]):
        check(event.time > before.time - CYCLES, f"{before} is shown before {event}")


def check_same(shown, late, trace):
    """Checks that a viewer was shown the trace in order, but for the events that came too late."""
    events, discarded = shown
    all_events, all_discarded = kymotest.read_trace(trace)
    equal(len(events) + late, len(all_events), "events shown, and those counted as too late")
    equal(discarded, all_discarded, "discarded events")
    check_order(events)
    if not late:
        equal(sorted(events, key=str), sorted(all_events, key=str), "events")


def count(trace):
    events, discarded = kymotest.read_trace(trace)
    return len(events) + discarded


def test_while_recording(k):
    """From before the first event to the end: streams come later, and CPUs are quiet."""
    k.start_daemon()
    trace = k.record("*", channel=FAST)
    live = Live(k, "s", "--from-start")
    viewer = live.view()
    for n in (1, 2, 1, 3):
        k.app("emit", "-n", 2000, "-t", n)
    k.kymo("destroy", "s")
    shown = viewer.finish()
    equal(count(trace), 14000, "events emitted")
    check_same(shown, live.end(), trace)


def test_json(k):
    """With --json, the links are one object."""
    k.start_daemon()
    k.record("*")
    process = subprocess.Popen([CLI, "live", "s", "--listen=127.0.0.1:0", "--json"], env=k.env, stdout=subprocess.PIPE, text=True)
    k.started.append(process)
    result = json.loads(process.stdout.readline())
    check(result["ok"] and re.fullmatch(r"net://localhost:\d+/host/[^/]+/s", result["links"][0]), result)
    process.send_signal(signal.SIGTERM)
    equal((process.communicate(timeout=TIMEOUT)[0], process.returncode), ("", 0), "the rest of the output, exit status")
    k.kymo("destroy", "s")


def test_printed_command(k):
    """A shell runs the command that is printed, whatever the name of the trace is."""
    k.start_daemon()
    trace = k.record("*")
    k.run([kymotest.APPS / "emit", "-n", 10])
    k.kymo("destroy", "s")
    for name in ("my trace", "it's", "a$b", "plain"):
        named = trace.rename(k.top / name)
        process = subprocess.Popen([CLI, "live", named, "--from-start", "--listen=127.0.0.1:0"], env=k.env, stdout=subprocess.PIPE, text=True)
        k.started.append(process)
        command = process.stdout.readline().strip()
        shown = k.run(["sh", "-c", command]).stdout
        equal(shown.count("\n"), 10, f"events that are shown by: {command}")
        check(name != "plain" or "'" not in command, f"quotes that nobody needs: {command}")
        process.send_signal(signal.SIGTERM)
        equal(process.wait(TIMEOUT), 0, "exit status of kymo live")
        process.stdout.close()
        trace = named


def test_busy_streams(k):
    """Threads that move from CPU to CPU, and signals; a viewer that comes late."""
    k.start_daemon()
    trace = k.record("*", channel=(*FAST, "--subbuf-size=64K", "--num-subbuf=8"))
    k.app("emit", "-n", 3000, "-t", 3, "-m", "-s", 200)
    live = Live(k, trace, "--from-start")
    viewers = [live.view(), live.view()]
    k.app("emit", "-n", 3000, "-t", 3, "-m", "-s", 200)
    viewers.append(live.view())
    k.kymo("destroy", "s")
    shown = [viewer.finish() for viewer in viewers]
    late = live.end()  # of all viewers
    n = len(kymotest.read_trace(trace)[0])
    equal(sum(n - len(events) for events, _ in shown), late, "events not shown, and those counted as too late")
    for each in shown:
        check_same(each, n - len(each[0]), trace)


def test_from_now(k):
    """Without --from-start, a viewer is shown what comes after it, all of it."""
    k.start_daemon()
    trace = k.record("*", channel=FAST)
    k.app("emit", "-n", 5000, "-p", 1)
    mark = trace / ".watermark"
    for _ in range(2):  # the round that the second one reports began after the events
        before = mark.read_bytes() if mark.exists() else b""
        wait_for(lambda: mark.exists() and mark.read_bytes() != before, "a later watermark")
    live = Live(k, "s")
    viewer = live.view()

    def reads():
        k.app("emit", "-n", 100, "-p", 2)
        return viewer.out.stat().st_size

    wait_for(reads, "the viewer to show something")
    k.app("emit", "-n", 2000, "-t", 2, "-p", 3)
    k.kymo("destroy", "s")
    events, discarded = viewer.finish()
    late = live.end()
    of = [sum(kymotest.integers(e)["process"] == p for e in events) for p in (1, 2, 3)]
    equal(of[0], 0, "events of before")
    check(4000 - late <= of[2] <= 4000, f"{of[2]} of 4000 events are shown, and {late} came too late")
    equal(discarded, 0, "discarded events")
    check_order(events)


def test_buffers_of_each(k):
    """Programs with buffers of their own, for processes and threads: a stream for each."""
    k.start_daemon()
    for kind in ("process", "thread"):
        trace = k.record("*", session=kind, channel=(*FAST, f"--buffers={kind}"))
        live = Live(k, kind, "--from-start")
        viewer = live.view()
        for i in range(8):
            k.app("emit", "-n", 50, "-t", 2, "-p", i)
        k.kymo("destroy", kind)
        shown = viewer.finish()
        equal(count(trace), 800, f"events emitted, {kind}")
        check_same(shown, live.end(), trace)


def test_killed(k):
    """Programs, the consumer and the session daemon are killed; the viewer reads on."""
    k.start_daemon()
    trace = k.record("*", channel=FAST)
    live = Live(k, "s", "--from-start")
    viewer = live.view()
    app = k.spawn("emit", "-n", 1000, "-w")
    k.expect(app, "ready")
    k.let_go(app)
    k.read_until(app, "done")
    app.kill()
    consumer, = kymotest.consumers(k)
    os.kill(consumer, signal.SIGKILL)
    wait_for(lambda: kymotest.consumers(k) not in ([], [consumer]), "another consumer")
    k.app("emit", "-n", 1000)
    k.daemon.kill()
    k.daemon.wait()
    k.start_daemon()
    k.app("emit", "-n", 1000)
    k.kymo("destroy", "s")
    shown = viewer.finish()
    equal(count(trace), 3000, "events emitted")
    check_same(shown, live.end(), trace)


def test_rotations(k):
    """A chunk that was archived is read to its end, and the next one follows."""
    k.start_daemon()
    trace = k.record("*", channel=FAST)
    live = Live(k, "s", "--from-start")
    viewer = live.view()
    for _ in range(4):
        k.app("emit", "-n", 1000)
        k.kymo("rotate", "s")
    k.app("emit", "-n", 1000)
    k.kymo("destroy", "s")
    events, discarded = viewer.finish()
    equal(len(events) + live.end() + discarded, 5000, "events shown")
    check_order(events)


def test_files_of_limited_size(k):
    """A stream in several files is one stream."""
    k.start_daemon()
    trace = k.record("*", channel=(*FAST, "--subbuf-size=4K", "--num-subbuf=16", "--tracefile-size=8K"))
    live = Live(k, "s", "--from-start")
    viewer = live.view()
    for _ in range(5):
        k.app("emit", "-n", 4000)
    k.kymo("destroy", "s")
    shown = viewer.finish()
    files = kymotest.streams(trace)
    check(len(files) > 2 * len({p.name.rpartition("_")[0] for p in files}), f"files of a stream: {files}")
    check_same(shown, live.end(), trace)


def test_received(k):
    """A directory of received traces: the session is listed when it is there, and read."""
    k.start_daemon()
    far = k.top / "far"
    far.mkdir()
    live = Live(k, far, "--from-start")
    trace = k.record("*", channel=FAST)
    k.app("emit", "-n", 1000)
    command = f"{shlex.quote(str(CLI))} receive {shlex.quote(str(far))}"
    ship = subprocess.Popen([CLI, "ship", trace, f"exec:{command}"], env=k.env, stdout=subprocess.DEVNULL)
    k.started.append(ship)
    listed = wait_for(lambda: re.search(r"net://\S+/s ", list_sessions(live) + " "), "the session in the list")
    viewer = live.view(listed[0].strip())
    k.app("emit", "-n", 1000)
    k.kymo("destroy", "s")
    shown = viewer.finish()
    equal(ship.wait(TIMEOUT), 0, "exit status of kymo ship")
    equal(count(trace), 2000, "events emitted")
    check_same(shown, live.end(), trace)


def test_beyond_the_watermark(k):
    """Events beyond the watermark wait: a stream that is found later can begin before them."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise kymotest.Skip("one CPU: all events are in one stream")
    k.start_daemon()
    trace = k.record("*")
    for n, cpu in ((11, cpus[0]), (12, cpus[1]), (13, cpus[0])):
        k.run(["taskset", "-c", str(cpu), kymotest.APPS / "emit", "-n", n])
    k.kymo("destroy", "s")
    last = kymotest.read_trace(trace)[0][10].time  # before the second stream begins
    far, moved = k.top / "far", []
    shutil.copytree(trace, far)
    for number, path in enumerate(sorted(far.rglob(f"*_{cpus[1]}*"))):
        moved.append((path, path.rename(k.top / f"hidden-{number}")))
    equal(len(moved), 2, "files of the second stream")
    (far / ".recording").write_bytes(b"x")
    (far / ".watermark").write_bytes(struct.pack("<3Q", last + 16 * CYCLES, 0, 0))
    live = Live(k, far, "--from-start")
    viewer = live.view()
    wait_for(lambda: viewer.out.read_text().count("\n") >= 11, "the events up to the watermark")
    for path, hidden in moved:
        hidden.rename(path)
    (far / ".watermark").write_bytes(struct.pack("<3Q", 2**64 - 1, 0, 1))
    check_same(viewer.finish(), live.end(), trace)


def test_damaged(k):
    """Of a stream with a packet that makes no sense, the rest is left out, and this is reported."""
    k.start_daemon()
    trace = k.record("*", channel=("--subbuf-size=4K", "--num-subbuf=64"))
    k.run(["taskset", "-c", str(min(os.sched_getaffinity(0))), kymotest.APPS / "emit", "-n", 2000])
    k.kymo("destroy", "s")
    emitted = count(trace)
    index = max(trace.rglob("*.kyx"), key=lambda path: path.stat().st_size)
    with open(index.parent.parent / index.stem, "r+b") as f:
        f.seek(struct.unpack_from("<Q", index.read_bytes(), 16 + 2 * 48)[0])  # of the third packet
        f.write(bytes(4))
    live = Live(k, trace, "--from-start")
    shown, _ = live.view().finish()
    check(0 < len(shown) < emitted, f"{len(shown)} of {emitted} events are shown")
    live.process.send_signal(signal.SIGTERM)
    equal(live.process.wait(TIMEOUT), 0, "exit status of kymo live")
    said = live.errors.read_text()
    check("not shown the rest of 1 damaged stream:" in said, f"kymo live said: {said}")


def list_sessions(live):
    done = subprocess.run(["babeltrace2", "--input-format=lttng-live", f"net://localhost:{live.port}"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT)
    return done.stdout


def test_silent_connections(k):
    """Connections that ask nothing keep no viewer away."""
    k.start_daemon()
    trace = k.record("*")
    live = Live(k, trace)
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            silent = stack.enter_context(socket.create_connection(("localhost", live.port)))
            with contextlib.suppress(OSError):
                silent.send(b"hello?")
        check(trace.name in list_sessions(live), "a listing of the sessions")
    live.end()


def test_descriptors(k):
    """Connections that ask nothing keep no viewer away, even if they take all descriptors."""
    k.start_daemon()
    live = Live(k, k.record("*"))
    resource.prlimit(live.process.pid, resource.RLIMIT_NOFILE, (24, 24))
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(socket.create_connection(("localhost", live.port)))
        equal(len(talk(live, CONNECT)), 20, "bytes of the reply to a viewer")
    live.end()


def test_flood(k):
    """A viewer that is sent away has a line on the screen; a flood of them has a count."""
    k.start_daemon()
    live = Live(k, k.record("*"))
    for _ in range(100):
        equal(talk(live, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), b"", "a reply")
    live.process.send_signal(signal.SIGTERM)
    equal(live.process.wait(TIMEOUT), 0, "exit status of kymo live")
    said = live.errors.read_text().splitlines()
    equal(sum("a viewer was disconnected" in line for line in said), 20, f"viewers sent away: {said[:3]}")
    check("80 more viewers were disconnected" in said[-1], said)


def request(command, data=b"", size=None):
    return struct.pack(">QII", len(data) if size is None else size, command, 0) + data


CONNECT = request(1, struct.pack(">QIII", 0, 2, 4, 1))


def talk(live, data):
    """Sends bytes, and returns what comes until the end of the connection."""
    with socket.create_connection(("127.0.0.1", live.port), TIMEOUT) as s:
        s.sendall(data)
        with contextlib.suppress(OSError):  # it has closed the connection
            s.shutdown(socket.SHUT_WR)
        got = b""
        while True:
            try:
                more = s.recv(65536)
            except ConnectionResetError:  # it closed with bytes unread
                return got
            if not more:
                return got
            got += more


def test_hostile(k):
    """Bytes that are no request end the connection; nonsense gets an error; nobody else notices."""
    k.start_daemon()
    trace = k.record("*", channel=FAST)
    live = Live(k, "s", "--from-start")
    viewer = live.view()
    equal(len(talk(live, CONNECT)), 20, "bytes of the reply to a viewer")
    for data in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", request(99), request(4, b"", 2**63), request(3, b"x"), request(0)):
        equal(talk(live, data), b"", f"reply to {data!r}")
    for command, data, reply in (
        (3, struct.pack(">QQI", 77, 0, 2), struct.pack(">II", 3, 0)),  # no such session
        (3, struct.pack(">QQI", 1, 0, 9), struct.pack(">II", 5, 0)),  # no such place
        (4, struct.pack(">Q", 2**64 - 1), struct.pack(">7QII", *[0] * 7, 4, 0)),
        (5, struct.pack(">QQI", 1 << 32 | 1, 2**64 - 1, 2**32 - 1), struct.pack(">III", 3, 0, 0)),
        (6, struct.pack(">Q", 1 << 32 | 0x80000001), struct.pack(">QI", 0, 2)),
        (7, struct.pack(">Q", 0), struct.pack(">II", 3, 0)),
        (9, struct.pack(">Q", 5), struct.pack(">I", 2)),
    ):
        equal(talk(live, request(command, data)), reply, f"reply to command {command}")
    k.app("emit", "-n", 100)
    k.kymo("destroy", "s")
    shown = viewer.finish()
    live.process.send_signal(signal.SIGTERM)
    equal(live.process.wait(TIMEOUT), 0, "exit status of kymo live")
    said = live.errors.read_text()
    equal(said.count("does not speak LTTng's live protocol"), 5, f"viewers sent away: {said}")
    late = sum(map(int, LATE.findall(said)))
    check_same(shown, late, trace)


@kymotest.without_sanitizers
def test_confined(k):
    """It has given up all system calls that it does not need."""
    k.start_daemon()
    k.record("*")
    live = Live(k, "s")

    def status():
        return pathlib.Path(f"/proc/{live.process.pid}/status").read_text()

    if "Seccomp:" not in status():
        raise kymotest.Skip("the kernel has no seccomp filters")
    wait_for(lambda: "Seccomp:\t2" in status() and "NoNewPrivs:\t1" in status(), "the filter")
    equal(live.end(), 0, "events that came too late")


def test_usage(k):
    k.start_daemon()
    for args, status, said in (
        ([], 1, "no session writes a trace"),
        ([k.top / "none"], 1, f"cannot read {k.top}/none: No such file"),
        (["none"], 1, "no session 'none'"),
        ([k.top, "--listen=nowhere"], 2, "bad address"),
    ):
        done = k.kymo("live", *args, status=status)
        check(said in done.stderr, done.stderr)
    k.kymo("create", "memory", "--snapshot")
    check("keeps its events in memory" in k.kymo("live", "memory", status=1).stderr, "a session of snapshots is refused")


if __name__ == "__main__":
    kymotest.main()
