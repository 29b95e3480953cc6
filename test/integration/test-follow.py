#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
`kymo view --follow`: what it prints while a trace is recorded is what `kymo view` prints of the
complete trace, and it ends with the session.
"""

import struct
import subprocess
import threading

import answers
import kymotest
from kymotest import CLI, check, equal, wait_for

WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


class Follower:
    """A `kymo view --follow` whose output is kept."""

    def __init__(self, k, *args):
        self.lines = []
        self.process = subprocess.Popen([CLI, "view", "--follow", *map(str, args)], env=k.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        k.started.append(self.process)
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout))
        self.reader.start()

    def end(self):
        """Returns the output and the errors, once it has ended by itself."""
        self.reader.join(kymotest.TIMEOUT)
        check(not self.reader.is_alive(), "the follower is still running")
        errors = self.process.stderr.read().decode(errors="replace")
        equal(self.process.wait(kymotest.TIMEOUT), 0, f"status of the follower: {errors}")
        return self.lines, errors


def lines_of(k, trace, *args):
    return subprocess.run([CLI, "view", trace, *args], env=k.env, capture_output=True, timeout=kymotest.TIMEOUT).stdout.splitlines(keepends=True)


def without_distance(lines):
    """Events of equal times may come in any order."""
    return sorted(line.split(b") ", 1)[1] for line in lines)


def test_follow(k):
    """
    New packets, new streams (of threads), new classes of events, and new directories (by a
    rotation, which also moves the old ones).
    """
    k.start_daemon()
    trace = k.record()
    k.app("emit", "-n", 1000)
    k.kymo("rotate", "s")
    follower = Follower(k, trace, "--delay=500ms")
    wait_for(lambda: len(follower.lines) >= 1000, lambda: f"the first events: {len(follower.lines)} lines")
    k.app("emit", "-n", 500, env=WITHOUT_RSEQ)
    k.app("nested")
    wait_for(lambda: len(follower.lines) > 1500, lambda: f"events of a new class: {len(follower.lines)} lines")
    k.kymo("rotate", "s")
    k.app("emit", "-n", 700)
    wait_for(lambda: len(follower.lines) > 2200, lambda: f"events of the last chunk: {len(follower.lines)} lines")
    check(follower.process.poll() is None, "the follower ended before the session")
    k.kymo("destroy", "s")
    lines, errors = follower.end()
    wanted = lines_of(k, trace)
    equal(len(lines), len(wanted), f"lines: {errors}")
    equal(without_distance(lines), without_distance(wanted), "events")


def test_follow_selection(k):
    """The selection, --fields and --tail hold for what comes later, too."""
    k.start_daemon()
    trace = k.record()
    k.app("emit", "-n", 100)
    k.kymo("rotate", "s")
    name = lines_of(k, trace)[0].split(b": {")[0].split()[-1].decode()
    follower = Follower(k, trace, "--delay=100ms", "-e", name, "--tail=10")
    nothing = Follower(k, trace, "--delay=100ms", "-e", "no:such")
    wait_for(lambda: len(follower.lines) == 10, lambda: f"the last 10 of the first events: {len(follower.lines)}")
    k.app("nested")
    k.app("emit", "-n", 50)
    k.kymo("destroy", "s")
    equal(len(follower.end()[0]), 60, "events")
    equal(nothing.end()[0], [], "events that are not selected")


def test_follow_complete(k):
    """A complete trace is printed, and that is all."""
    k.start_daemon()
    trace = k.record()
    k.app("emit", "-n", 100)
    k.kymo("destroy", "s")
    equal(Follower(k, trace).end()[0], lines_of(k, trace), "lines")


FOREIGN = """/* CTF 1.8 */
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; map = clock.c.value; } := time_t;
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000000000; };
stream {
	packet.context := struct { u32 content_size; u32 packet_size; %s };
	event.header := struct { time_t timestamp; };
};
event { name = "e"; fields := struct { u32 a; }; };
"""


def test_follow_without_times(k):
    """
    Packets of other tracers need not say when they begin and end: their events do. Without a clock,
    events have no times either.
    """
    for number, (context, values) in enumerate((("", ""), ("time_t timestamp_begin;", "b"), ("time_t timestamp_end;", "e"), ("", ""))):
        trace = k.top / f"foreign{number}"
        trace.mkdir()
        metadata = FOREIGN % context
        (trace / "metadata").write_text(metadata if number < 3 else metadata.replace("time_t timestamp;", "time_t other;").replace(" map = clock.c.value;", ""))
        with open(trace / "s", "wb", buffering=0) as file:
            for i in range(4):
                begin, size = 10**12 + 10**9 * i, 8 * (20 + 8 * len(values))
                heads = {"b": begin, "e": begin + 9}
                file.write(struct.pack("<II", size, size) + b"".join(struct.pack("<Q", heads[v]) for v in values) + struct.pack("<QI", begin + 5, i))
                if not i:
                    follower = Follower(k, trace, "--delay=50ms")
                wait_for(lambda: len(follower.lines) == i + 1, lambda: f"event {i} with '{context}': {len(follower.lines)} lines")
        equal(follower.lines, lines_of(k, trace), f"lines with '{context}'")
        follower.process.terminate()
        follower.reader.join(kymotest.TIMEOUT)


def test_follow_pipe(k):
    """The follower ends if nobody reads its output, although there are no events."""
    k.start_daemon()
    trace = k.record()
    k.app("emit", "-n", 1)
    k.kymo("rotate", "s")
    process = subprocess.Popen([CLI, "view", "--follow", "-e", "no:such", str(trace)], env=k.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    k.started.append(process)
    process.stdout.close()
    equal(process.wait(kymotest.TIMEOUT), 0, "status")
    k.kymo("destroy", "s")


def test_follow_from_the_start(k):
    """A session that has recorded no event yet: by its name, and by its directory."""
    k.start_daemon()
    trace = k.record()
    followers = [Follower(k, name, "--delay=100ms") for name in ("s", trace)]
    several = k.kymo("view", "--follow", trace, trace, status=1).stderr
    check("is no trace" in several, several)
    check(all(f.process.poll() is None for f in followers), "a follower did not wait")
    k.app("emit", "-n", 10)
    k.kymo("destroy", "s")
    for follower in followers:
        equal(without_distance(follower.end()[0]), without_distance(lines_of(k, trace)), "events")
    empty = k.record(session="t")
    follower = Follower(k, empty)
    k.kymo("destroy", "t")
    equal((follower.process.wait(kymotest.TIMEOUT), f"{empty} is no trace" in follower.process.stderr.read().decode()), (1, True), "without an event")


def test_follow_errors(k):
    k.start_daemon()
    trace = k.record()
    k.app("emit", "-n", 1)
    k.kymo("destroy", "s")
    for args, word in ((["--delay=1s"], "--follow"), (["--follow", "--delay=soon"], "soon")):
        done = k.kymo("view", trace, *args, status=2)
        check(word in done.stderr, f"{args}: {done.stderr}")


def test_pager(k):
    """
    On a terminal, the pager of the environment shows the text, in colour unless NO_COLOR is set. A
    pager that reads nothing is no error.
    """
    k.start_daemon()
    trace = k.record()
    k.app("emit", "-n", 5)
    k.kymo("destroy", "s")
    counting, xterm = "sed s/^/PAGED/", {"TERM": "xterm"}
    text, status = k.on_terminal("view", trace, env={**xterm, "PAGER": counting, "NO_COLOR": ""})
    equal((text.count(b"PAGED"), b"\x1b[1m" in text, status), (5, True, 0), f"lines through the pager, colour, status: {text}")
    text, _ = k.on_terminal("view", trace, env={**xterm, "PAGER": counting, "NO_COLOR": "1"})
    equal((text.count(b"PAGED"), b"\x1b" in text), (5, False), "lines, colour with NO_COLOR")
    for args, env in ((["--no-pager"], {"PAGER": counting}), ([], {"PAGER": ""}), ([], {"PAGER": "cat"}), (["--follow"], {"PAGER": counting})):
        text, _ = k.on_terminal("view", trace, *args, env={**xterm, **env})
        equal((text.count(b"PAGED"), text.count(b"\n")), (0, 5), f"{args} {env}: {text}")
    text, _ = k.on_terminal("view", trace, env={**xterm, "PAGER": "no-such-pager -x"})
    check(b"PAGER is 'no-such-pager -x', which is not installed" in text and text.count(b"emit:record") == 5, f"without the pager that is wanted: {text!r}")
    text, status = k.on_terminal("view", trace, env={**xterm, "PAGER": "true"})
    equal((text, status), (b"", 0), "a pager that reads nothing")
    lossy = answers.Trace({"a:b": []})
    lossy.packet(0, [lossy.record(100, "a:b")], discarded=1)
    lossy.packet(0, [lossy.record(200, "a:b")], discarded=3)
    text, _ = k.on_terminal("view", lossy.write(k.top / "lossy"), env={**xterm, "PAGER": counting, "NO_COLOR": "1"})
    marks = [b"discarded" in line for line in text.splitlines() if line.startswith(b"PAGED")]
    equal((len(marks), sum(marks)), (4, 2), f"warnings go through the pager, too: {text}")


if __name__ == "__main__":
    kymotest.main()
