#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kymo top: what a session records now, until it stops."""

import collections
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import kymotest
from kymotest import CLI, check, equal, wait_for


def spawn(k, *args, **options):
    top = subprocess.Popen([CLI, *args], env=k.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    k.started.append(top)
    return top


def rounds_of(top):
    return [json.loads(line) for line in top.stdout]


def test_counts(k):
    """All rounds together have each event once. top ends when the session stops."""
    k.start_daemon()
    k.record(start=False)
    k.kymo("add-context", "-s", "s", "-t", "vpid,vtid")
    k.kymo("start", "s")
    tops = {by: spawn(k, "--json", "top", "s", f"--by={by}", "-d", "20ms", stdin=subprocess.DEVNULL) for by in ("event", "process", "thread")}
    first = {by: json.loads(top.stdout.readline()) for by, top in tops.items()}
    apps = [k.spawn("emit", "-n", 500, "-t", 2, "-w") for _ in range(2)]
    for app in apps:
        k.expect(app, "ready")
        k.let_go(app)
    for app in apps:
        k.let_go(app)
        k.finish(app)
    k.kymo("stop", "s")
    counts = {by: collections.Counter() for by in tops}
    for by, top in tops.items():
        for found in [first[by], *rounds_of(top)]:
            equal((found["ok"], found["session"], found["by"], found["discarded"]), (True, "s", by, 0), "a round")
            equal(sum(c["events"] for c in found["counts"]), found["events"], "sum of a round")
            kymotest.check_documented([*found, *(name for c in found["counts"] for name in c)], "top")
            for c in found["counts"]:
                counts[by][c.get("name"), c.get("pid"), c.get("tid")] += c["events"]
        equal(top.wait(kymotest.TIMEOUT), 0, "exit status when the session stops")
    equal({key: n for key, n in counts["event"].items() if n}, {("emit:record", app.pid, None): 1000 for app in apps}, "by name")
    equal({pid: n for (_, pid, _), n in counts["process"].items()}, {app.pid: 1000 for app in apps}, "by process")
    equal(sorted(counts["thread"].values()), [500] * 4, "by thread")
    equal({pid for _, pid, _ in counts["thread"]}, {app.pid for app in apps}, "processes of the threads")


def test_names(k):
    """The number of a process of a container does not get the name of the host's process."""
    kymotest.need_unshare("-p", "-f")
    k.start_daemon()
    k.record(start=False)
    k.kymo("add-context", "-s", "s", "-t", "vpid")
    k.kymo("start", "s")
    top = spawn(k, "top", "s", "--by=process", "-d", "20ms", stdin=subprocess.DEVNULL)
    as_json = spawn(k, "--json", "top", "s", "--by=process", "-d", "20ms", stdin=subprocess.DEVNULL)
    line = top.stdout.readline()  # of the first round: events from now on are counted
    check(line.startswith("s "), line)
    as_json.stdout.readline()
    apps = [k.spawn("emit", "-n", 1, "-w", wrap=wrap) for wrap in ((), ("unshare", "-p", "-f"))]
    for app in apps:
        k.expect(app, "ready")
        k.let_go(app)
    wanted = {f"emit {apps[0].pid}", "1"}
    while wanted:
        line = top.stdout.readline()
        check(line, "top ended")
        found = line.partition("%")[2].strip()
        check(not found.endswith(" 1"), line)
        wanted.discard(found)
    names = {}
    while len(names) < 2:
        names |= {c["pid"]: c.get("procname") for c in json.loads(as_json.stdout.readline())["counts"]}
    equal(names, {apps[0].pid: "emit", 1: None}, "names in JSON")
    top.kill()
    as_json.kill()
    for app in apps:
        k.let_go(app)
        k.finish(app)


def test_sample(k):
    """A round of many events reads a part of them, and the next round begins behind all of them."""
    k.start_daemon()
    k.record()
    top = spawn(k, "--json", "top", "s", "-d", "20ms", stdin=subprocess.DEVNULL)
    equal(json.loads(top.stdout.readline())["is_sample"], False, "a round without events")
    kymotest.stop(top.pid)
    k.app("emit", "-n", 2200000)
    written = lambda: (s := k.kymo_json("status", "s")["session"])["recorded"] + s["discarded"] == 2200000 and s
    recorded = wait_for(written, "the consumer to have written all")["recorded"]
    check(recorded > 2100000, f"hardly more events than a round reads: {recorded}")
    os.kill(top.pid, signal.SIGCONT)
    first = next(found for line in top.stdout if (found := json.loads(line))["events"])
    equal((first["is_sample"], sum(c["events"] for c in first["counts"])), (True, first["events"]), "a sample")
    check(2000000 <= first["events"] < 2100000, f"events that a round reads: {first}")
    k.app("emit", "-n", 30)
    k.kymo("stop", "s")
    rest = sum(found["events"] for found in rounds_of(top))
    check(30 <= rest < 100000, f"events of the rounds after the sample: {rest}")


def test_text(k):
    k.start_daemon()
    k.record()
    done = k.kymo("top", "s", "-d", "10ms", "--rounds=2")
    equal(done.stdout.count("events/s   share".replace("   ", "    ")), 2, f"heads of two rounds: {done.stdout}")
    lines = done.stdout.splitlines()
    check(lines[0].startswith("s   00:00:") and "discarded 0" in lines[0], done.stdout)


def test_terminal(k):
    """Keys change what is counted, and end it; the terminal is as before."""
    k.start_daemon()
    k.record()
    master, slave = pty.openpty()
    try:
        before = termios.tcgetattr(slave)
        top = subprocess.Popen([CLI, "top", "s", "-d", "20ms"], env={**k.env, "TERM": "xterm"}, stdin=slave, stdout=slave, stderr=slave)
        k.started.append(top)
        seen = b""
        for key, wanted in ((b"", b"name"), (b"t", b"thread\r\n"), (b"p", b"share  process\r\n")):
            os.write(master, key)
            while wanted not in seen:
                seen += os.read(master, 65536)
            seen = b""
        os.write(master, b"q")
        # top may wait for room in the terminal
        while top.poll() is None:
            kymotest.wait_for(lambda: top.poll() is not None or has_output(master), "the end of top")
            if has_output(master):
                os.read(master, 65536)
        equal(top.returncode, 0, "exit status")
        equal(termios.tcgetattr(slave), before, "settings of the terminal")
        subprocess.run([CLI, "top", "s", "--rounds=2", "-d", "1ms"], check=True, env={**k.env, "TERM": "dumb"}, stdin=slave, stdout=slave)
        seen = b""
        while seen.count(b"discarded") < 2:  # the kernel may hand it over in pieces
            kymotest.wait_for(lambda: has_output(master), f"two rounds in {seen}")
            seen += os.read(master, 65536)
        check(b"\x1b" not in seen, f"a terminal without escape sequences: {seen}")
    finally:
        os.close(master)
        os.close(slave)


def rows_of_screen(output, rows, columns):
    """Returns the rows that a terminal of this size shows after this output, as xterm does."""
    screen, wraps = [""], True
    for part in re.findall("\x1b\\[[?0-9;]*[A-Za-z]|[^\x1b]", output):
        if part == "\x1b[H":
            screen = [""]
        elif part in ("\x1b[?7l", "\x1b[?7h"):
            wraps = part[-1] == "h"
        elif part == "\n":
            screen.append("")
        elif part != "\r" and part[0] != "\x1b":
            if len(screen[-1]) == columns and wraps:
                screen.append("")
            screen[-1] = screen[-1][:columns - 1] + part if len(screen[-1]) == columns else screen[-1] + part
    return screen[-rows:]


def test_small_terminal(k):
    """The head stays on a screen that is narrower than the lines, and shorter than the list."""
    k.start_daemon()
    k.record()
    k.kymo("add-context", "-s", "s", "-t", "vtid")
    master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 6, 40, 0, 0))
        top = subprocess.Popen([CLI, "top", "s", "--by=thread", "-d", "20ms"], env={**k.env, "TERM": "xterm"}, stdin=slave, stdout=slave, stderr=slave)
        k.started.append(top)
        kymotest.wait_for(lambda: not termios.tcgetattr(slave)[3] & termios.ICANON, "top to use the terminal")
        app = k.spawn("emit", "-n", 100, "-t", 8, "-w")
        k.expect(app, "ready")
        k.let_go(app)
        k.let_go(app)
        k.finish(app)
        seen, shown = b"", []
        while not any("%  " in row for row in shown):
            seen += os.read(master, 1)
            if seen.endswith(b"\x1b[H"):  # the next screen begins: this one is complete
                shown = rows_of_screen(seen[:-3].decode(), 6, 40)
        equal((shown[0][:7], shown[1][:6], shown[2].split()), ("s   00:", "q quit", ["events/s", "share", "thread"]), f"heads of {shown}")
        check("%  " in shown[3], f"no row of a thread in {shown}")
        # a shell that stops top and continues it, by ^Z and fg, changes the terminal
        mode = termios.tcgetattr(slave)
        mode[3] |= termios.ICANON
        termios.tcsetattr(slave, termios.TCSANOW, mode)
        while termios.tcgetattr(slave)[3] & termios.ICANON:
            os.read(master, 1)
        os.write(master, b"q")
        while top.poll() is None:
            kymotest.wait_for(lambda: top.poll() is not None or has_output(master), "the end of top")
            if has_output(master):
                os.read(master, 65536)
    finally:
        os.close(master)
        os.close(slave)


def test_terminal_closed(k):
    """top ends when its terminal is closed, even without a signal, as under nohup."""
    k.start_daemon()
    k.record()
    master, slave = pty.openpty()
    top = subprocess.Popen([CLI, "top", "s", "-d", "1h"], env={**k.env, "TERM": "xterm"}, stdin=slave, stdout=slave, stderr=slave)
    k.started.append(top)
    os.close(slave)
    kymotest.wait_for(lambda: not termios.tcgetattr(master)[3] & termios.ICANON, "top to use the terminal")
    os.close(master)
    equal(top.wait(kymotest.TIMEOUT), 0, "exit status")


def has_output(fd):
    import select

    return bool(select.select([fd], [], [], 0)[0])


def test_end(k):
    """top ends without a message when the session or the daemon ends, or it is interrupted."""
    k.start_daemon()
    for end in ("destroy", "interrupt"):
        k.record()
        top = spawn(k, "top", "s", "-d", "10ms", stdin=subprocess.DEVNULL)
        top.stdout.readline()
        if end == "destroy":
            k.kymo("destroy", "s")
        else:
            top.send_signal(2)
        text = top.communicate(timeout=kymotest.TIMEOUT)[0]
        check("kymo:" not in text, text)
        equal(top.returncode, 0, f"exit status after {end}")


def test_errors(k):
    k.kymo("top", status=1)
    k.start_daemon()
    k.record(start=False)
    check("does not record" in k.kymo("top", "s", status=1).stderr, "a session that was not started")
    k.kymo("top", "none", status=1)
    for options in (["--by=cpu"], ["-d", "0"], ["-d", "x"], ["--rounds=0"], ["a", "b"]):
        k.kymo("top", *options, status=2)


kymotest.main()
