#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kymo record runs the command as if the shell had started it, whatever happens to the tracing, and
leaves nothing behind.
"""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

import kymotest
from kymotest import CLI, Failure, alive, check, equal, processes_with, read_trace, wait_for, without_sanitizers

# Prints each signal that it receives; exits on SIGTERM. Handlers of Python would not do: if a
# signal arrives just before a system call that waits, the handler is called after that call.
SIGNALS = r"""
import signal, sys
numbers = {signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
print("ready", flush=True)
number = 0
while number != signal.SIGTERM:
    number = signal.sigwait(numbers)
    print("got", int(number), flush=True)
sys.exit(5)
"""


def places(k):
    """
    Sets the environment so that run directories are below k.top, where the test finds what is left.
    """
    tmp = k.top / "tmp"
    tmp.mkdir(exist_ok=True)
    k.env["TMPDIR"] = str(tmp)
    return tmp


def record(k, *args, status=0, **options):
    tmp = places(k)
    done = k.run([CLI, "record", *args], status=status, **options)
    equal(sorted(os.listdir(tmp)), [], "left in the place of run directories")
    wait_for(lambda: not processes_with(k.mark), "all processes of the recording to end")
    return done


def start(k, *args, **options):
    places(k)
    process = subprocess.Popen([CLI, "record", *map(str, args)], env=k.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **options)
    k.started.append(process)
    return process


def one_line(done, *words):
    lines = done.stderr.strip().splitlines()
    equal(len(lines), 1, f"lines on stderr: {done.stderr!r}")
    for word in words:
        check(str(word) in lines[0], f"no {word!r} in {lines[0]!r}")


def private_daemon(k):
    """Returns the process of the session daemon of a running recording."""
    found = [p for p in processes_with(k.mark) if "kymo-sessiond" in kymotest.command_of(p)]
    return found[0] if found else None


def test_events(k):
    out = k.top / "out dir"
    done = record(k, "-o", out, "--", kymotest.APPS / "emit", "-n", 500)
    check("500 events recorded, 0 discarded" in done.stderr and str(out) in done.stderr, f"summary: {done.stderr}")
    check(f"view it with: kymo view '{out}'" in done.stderr, f"summary: {done.stderr}")
    equal(len(read_trace(out)[0]), 500, "events in the trace")


@without_sanitizers
def test_without_proc(k):
    """Without /proc, `kymo` finds its daemon, wherever both are; the daemon says what it needs."""
    kymotest.need_unshare("-m")
    hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    done = k.run([*hide, CLI, "record", "-o", k.traces / "t", "--", kymotest.APPS / "emit"], status=1)
    one_line(done, "/proc is not mounted: mount it")


def test_default_place(k):
    """Recordings of the same command in the same second go to different directories."""
    for _ in range(3):
        record(k, kymotest.APPS / "emit", "-n", 10)
    traces = os.listdir(k.traces)
    equal(len(traces), 3, f"traces: {traces}")
    for name in traces:
        check(re.fullmatch(r"emit-\d{8}-\d{6}(-\d+)?", name), f"name of a trace: {name}")


def test_rules(k):
    out = k.top / "out"
    record(k, "-o", out, "-e", "no:thing,emit:sig*", "-e", "other:*", kymotest.APPS / "emit", "-n", 100, "-s", 500)
    names = {e.name for e in read_trace(out)[0]} if list(out.glob("**/metadata")) else set()
    check("emit:record" not in names, f"recorded without a rule: {names}")


def test_json(k):
    out = k.top / "out"
    done = record(k, "--json", "-o", out, kymotest.APPS / "emit", "-n", 20)
    v = json.loads(done.stderr)
    equal((v["ok"], v["recorded"], v["discarded"], v["output"], v["exit_code"], v["still_running"]), (True, 20, 0, str(out), 0, 0), "summary")
    kymotest.check_documented(v, "record")
    done = record(k, "--json", "/no/such/command", status=127)
    equal(json.loads(done.stderr)["ok"], False, "JSON of a failure")


def test_blocking(k):
    """--blocking-timeout: the command waits for space, with no other option."""
    for options, lossless in ((("--blocking-timeout=inf",), True), ((), False)):
        out = k.top / f"out-{lossless}"
        done = record(k, "--json", "-o", out, "--subbuf-size=4K", "--num-subbuf=2", *options, "--", kymotest.APPS / "emit", "-n", 20000)
        counts = json.loads(done.stderr)
        equal(counts["discarded"] == 0, lossless, f"with {options}: {counts['discarded']} events are discarded: is that none")
        equal(counts["recorded"] + counts["discarded"], 20000, "events")
    one_line(record(k, "--blocking-timeout=often", "true", status=2), "often")


def test_no_summary(k):
    equal(record(k, "--no-summary", kymotest.APPS / "emit", "-n", 20).stderr, "", "stderr")
    done = record(k, "--no-summary", "--subbuf-size=4096", "--num-subbuf=2", kymotest.APPS / "emit", "-n", 300000)
    check("discarded because the buffers were full" in done.stderr, f"nothing of what was lost: {done.stderr}")
    one_line(record(k, "--no-summary", "-f", "nope == 1", kymotest.APPS / "emit", "-n", 20), "no field 'nope'")
    places(k)
    done = k.kymo("-q", "record", "sh", "-c", '"$0" -n 3 >/dev/null; echo its own', kymotest.APPS / "emit")
    equal((done.stdout, done.stderr), ("its own\n", ""), "output with --quiet")


def test_seconds(k):
    """The summary of a flight recorder says if a buffer did not hold the seconds wanted."""
    for n, short in ((3, False), (10000, True)):
        done = record(k, "--snapshot", "--seconds=3600", "--subbuf-size=4K", "--num-subbuf=2", kymotest.APPS / "emit", "-n", n)
        equal("less than 3600 s" in done.stderr, short, f"a short past, after {n} events: {done.stderr}")


def test_nothing(k):
    """The command explains why it recorded no event."""
    done = record(k, "true")
    check("0 events recorded" in done.stderr and "--with=libc" in done.stderr, f"program without events: {done.stderr}")
    check("cannot start a thread" in done.stderr and "start after the command has ended" in done.stderr, f"programs that are not traced: {done.stderr}")
    done = record(k, "-e", "no:thing", kymotest.APPS / "emit", "-n", 3)
    check("0 events recorded" in done.stderr and "no event that matches --event" in done.stderr, f"no match: {done.stderr}")
    done = record(k, "--json", "-o", k.top / "out", "-e", "emit:signal", kymotest.APPS / "emit", "-n", 3)
    v = json.loads(done.stderr)
    equal((v["recorded"], v["session"]["channels"][0]["rules"][0]["matched"]), (0, 1), "event that never came")
    done = record(k, "-e", "emit:signal", kymotest.APPS / "emit", "-n", 3)
    check("have 1 such event, but did not reach it before " in done.stderr and "'kymo create'" in done.stderr, f"event that never came: {done.stderr}")
    done = record(k, "-l", "EMERG", kymotest.APPS / "emit", "-n", 3)
    check("no event of such a level" in done.stderr, f"no event of the level: {done.stderr}")
    if not kymotest.SANITIZED:  # sanitizers need all addresses
        done = record(k, "prlimit", f"--as={16 << 20}", kymotest.APPS / "emit", "-n", 3)
        check("did not reach" not in done.stderr, f"program without memory, as if it had no event: {done.stderr}")
        check("is not recorded: Cannot allocate memory" in done.stderr, f"program without memory: {done.stderr}")
    done = record(k, "-e", "emit:recrod", kymotest.APPS / "emit", "-n", 3)
    check("did you mean 'emit:record'?" in done.stderr, f"no similar name: {done.stderr}")
    done = record(k, "-e", "emit:record,emit:sginal", kymotest.APPS / "emit", "-n", 3)
    check("3 events recorded" in done.stderr and "did you mean 'emit:signal'?" in done.stderr, f"one of two: {done.stderr}")
    done = record(k, "-e", "emit:record,no:thing", kymotest.APPS / "emit", "-n", 3)
    check("'no:thing' matches nothing: none of the command's applications had such an event\n" in done.stderr, f"one rule of two: {done.stderr}")
    for value, says in (("1", "KYMO_OFF is set"), ("0", "3 events recorded"), ("", "3 events recorded")):
        k.env["KYMO_OFF"] = value
        check(says in record(k, kymotest.APPS / "emit", "-n", 3).stderr, f"KYMO_OFF={value}")


def test_moved(k):
    """The command moves the trace's directory, or removes it, also with a new one in its place."""
    out, moved = k.top / "out", k.top / "moved"
    emit = f"{kymotest.APPS / 'emit'} -n 20"
    for command in ("mv {0} {1}", "mv {0} {1}; mkdir {0}", "rm -r {0}"):
        done = record(k, "-o", out, "sh", "-c", f"{emit}; {command.format(out, moved)}")
        check("20 events" in done.stderr, f"{command}: {done.stderr}")
        check("no longer there" in done.stderr and "view it" not in done.stderr, f"{command}: {done.stderr}")
        equal(out.exists(), "mkdir" in command, f"{command}: a directory in the trace's place")
        if moved.exists():
            equal(len(read_trace(moved)[0]), 20, f"{command}: events in the moved trace")
            shutil.rmtree(moved)
        if out.exists():
            out.rmdir()
    done = record(k, "--json", "-o", out, "sh", "-c", f"{emit}; mv {out} {moved}")
    equal(json.loads(done.stderr)["output"], "", "JSON of a trace that was moved")


def test_explain(k):
    """--explain records all that kymo explain uses; without the kernel, a line says why."""
    able = record(k, "-k", "sched_switch", "--", "true", status=None).returncode == 0
    ways = [((), able)]
    if kymotest.may_unshare("-pf"):
        ways.append((("unshare", "-pf"), False))
    for wrap, has_kernel in ways:
        out = k.top / f"explain-{len(wrap)}"
        done = k.run([*wrap, kymotest.CLI, "record", "--explain", "-e", "emit:*", "-o", out, "--", kymotest.APPS / "emit", "-n", 5])
        lines = k.run(["babeltrace2", out]).stdout.splitlines()
        names = {word for line in lines for word in line.split(": {")[0].split()[-1:]}
        check({"emit:record", "libc:malloc"} <= names, f"events: {names}")
        equal("sched_switch" in names, has_kernel, f"kernel events {wrap}: {done.stderr}")
        equal("--explain without events of the kernel" in done.stderr, not has_kernel, f"line about the kernel: {done.stderr}")
        check(f"explain it with: kymo explain {out}" in done.stderr, done.stderr)
        check(all("procname" in line for line in lines if " emit:record: " in line), "names of threads")


def test_losses_are_told_once(k):
    """The summary has the losses and what to do; no warning repeats them otherwise."""
    small = ("--subbuf-size=4K", "--num-subbuf=2", "--burst-size=0")
    told = record(k, *small, "-o", k.top / "full", "--", kymotest.APPS / "emit", "-n", 100000).stderr
    equal(told.count("discarded because the buffers were full"), 1, told)
    script = f"{kymotest.APPS}/rules 2 >{k.top}/1; {kymotest.APPS}/rules-other 2 >{k.top}/2"
    told = record(k, "--event-conflict=refuse", "-o", k.top / "refused", "--", "sh", "-c", script).stderr
    equal((told.count("is counted as discarded: it is defined as"), told.count("another definition of the name came first")), (2, 1), told)
    check("kymo set" not in told and "4 discarded" in told, told)
    told = record(k, "-o", k.top / "separate", "--", "sh", "-c", script).stderr
    equal((told.count("is recorded as another event of that name"), told.count("0 discarded")), (2, 1), told)


def test_exit_status(k):
    for status in (0, 1, 7, 255):
        record(k, "--no-summary", "sh", "-c", f"exit {status}", status=status)
    one_line(record(k, "no-such-command", status=127), "no-such-command: command not found")
    one_line(record(k, "./emit -n 5", status=127, cwd=kymotest.APPS), "arguments behind it, outside of the quotes")
    one_line(record(k, "emit", status=127, cwd=kymotest.APPS), "emit: command not found: did you mean './emit'?")
    one_line(record(k, "/etc/passwd", status=126), "/etc/passwd")
    said = record(k, "env", "-i", kymotest.APPS / "emit", "-n", 1).stderr
    check("lose their environment (sudo, env -i)" in said, said)
    for options, says in ((), "its programs have no events"), (("-f", "n > 1"), "passed --filter"):
        found = json.loads(k.run([CLI, "--json", "record", *options, "--", "true"]).stderr)
        check(says in found["reasons"][0], f"reasons of {options}: {found['reasons']}")
        check("\n" not in "".join(found["reasons"]), found["reasons"])
    equal(os.listdir(k.traces), [], "traces of commands that never ran or recorded nothing")


def test_killed(k):
    """
    If a signal kills the command, kymo record ends by the same signal, so that the shell sees it;
    and the trace is complete.
    """
    out = k.top / "out"
    script = f'{kymotest.APPS}/emit -n 50 >&2; kill -{int(signal.SIGKILL)} $$'
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
        record(k, "--no-summary", "sh", "-c", f"kill -{int(number)} $$", status=-number)
    record(k, "-o", out, "sh", "-c", script, status=-signal.SIGKILL)
    equal(len(read_trace(out)[0]), 50, "events in the trace")


def test_descriptors(k):
    """The command has the descriptors that kymo record was started with, and no others."""
    listing = record(k, "--no-summary", "ls", "-l", "/proc/self/fd", input="x").stdout
    numbers = sorted(int(n) for n in re.findall(r" (\d+) -> ", listing))
    equal(numbers, [0, 1, 2, 3], "descriptors (3 is the listing's own)")
    done = record(k, "--no-summary", "cat", input="through and through\n")
    equal(done.stdout, "through and through\n", "stdout")
    places(k)
    done = k.run(["sh", "-c", f'"{CLI}" record --no-summary ls /proc/self/fd <&- 2>&-'])
    equal(done.stdout.split(), ["0", "1"], "descriptors when 0 and 2 are closed (0 is the listing's own)")


def test_nobody_listens(k):
    """
    kymo record does not die when it writes its summary to a closed pipe. The command still gets
    SIGPIPE as usual.
    """
    tmp = places(k)
    reader, writer = os.pipe()
    os.close(reader)
    for script, status in (("exit 3", 3), ("kill -PIPE $$", -signal.SIGPIPE)):
        done = subprocess.run([CLI, "record", "sh", "-c", script], env=k.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=writer, timeout=kymotest.TIMEOUT, check=False)
        equal(done.returncode, status, f"exit status of {script!r}")
        equal(os.listdir(tmp), [], "left in the place of run directories")
    os.close(writer)


def test_owner(k):
    """
    Events name their process and thread, unless an option disables it; buffers for threads do so
    themselves.
    """
    emit = kymotest.APPS / "emit"
    command = ("sh", "-c", f"{emit} -n 5 -t 2 >/dev/null & {emit} -n 5 -t 2; wait")

    def text(*options):
        out = k.top / f"out{options}"
        record(k, "-o", out, "-e", "emit:*", *options, "--", *command)
        return k.run(["babeltrace2", out]).stdout

    for options in ((), ("--snapshot",), ("--buffers=process",)):
        owners = re.findall(r"\{ vpid = (\d+), vtid = (\d+) \}", text(*options))
        equal((len(owners), len({p for p, _ in owners}), len(set(owners))), (20, 2, 4), f"events, processes and threads with {options}")
    check("vpid" not in text("-t", "none"), "no contexts were wanted")
    threads = text("--buffers=thread")
    equal((len(set(re.findall(r"vtid = (\d+)", threads))), threads.count("vtid")), (4, 20), "threads that the buffers name")


def test_absolute_clock(k):
    """A reader merges the traces of two boots if both have an absolute clock."""
    for options in (("--absolute-clock",), ()):
        traces = [k.top / f"{name}{len(options)}" for name in "ab"]
        for trace in traces:
            record(k, "-o", trace, "-e", "emit:*", *options, "--", kymotest.APPS / "emit", "-n", 5)
        (metadata,) = traces[1].glob("ust/uid/*/*/metadata")
        boot = open("/proc/sys/kernel/random/boot_id", encoding="ascii").read().strip()
        metadata.write_text(metadata.read_text().replace(f'uuid = "{boot}"', 'uuid = "00000000-1111-4222-8333-444444444444"'))
        done = k.run(["babeltrace2", *traces], status=None)
        equal((done.returncode == 0, len(done.stdout.splitlines()) == 10), (bool(options),) * 2, f"with {options}: {done.stderr[-500:]}")


def test_refused(k):
    """kymo record does not run a command that it cannot record."""
    out = k.top / "there"
    out.mkdir()
    (out / "file").write_text("")
    mark = k.top / "ran"
    one_line(record(k, "-o", out, "touch", mark, status=1), out)
    one_line(record(k, "-o", "/proc/no/such", "touch", mark, status=1), "/proc/no/such")
    one_line(record(k, "--subbuf-size=zero", "touch", mark, status=2), "zero")
    one_line(record(k, "--with=nonsense", "touch", mark, status=2), "nonsense")
    check(not mark.exists(), "the command ran")
    check((out / "file").exists(), "the existing directory was removed")


def test_signals_sent(k):
    """A signal that another process sends to kymo record reaches the command, once."""
    p = start(k, "--no-summary", sys.executable, "-c", SIGNALS)
    equal(p.stdout.readline(), "ready\n", "first line")
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        p.send_signal(number)
        equal(p.stdout.readline(), f"got {int(number)}\n", "line")
    p.send_signal(signal.SIGTERM)
    equal(p.stdout.readline(), f"got {int(signal.SIGTERM)}\n", "line")
    equal(p.wait(kymotest.TIMEOUT), 5, "exit status")


class Terminal:
    """kymo record on a terminal of its own."""

    def __init__(self, k, *args):
        places(k)
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execve(args[0], list(args), k.env)
        self.text = ""

    def count(self, text):
        """The terminal's echo of a key may come within a line of the program: it is left out."""
        return re.sub(r"\^[C\\\\]", "", self.text).count(text)

    def wait_text(self, text, times=1):
        end = time.monotonic() + kymotest.TIMEOUT
        while self.count(text) < times:
            if not select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
                raise Failure(f"waited for {text!r} on the terminal, which has {self.text!r}")
            try:
                self.text += os.read(self.master, 4096).decode(errors="replace")
            except OSError:
                raise Failure(f"the terminal closed without {text!r}: {self.text!r}") from None

    def type(self, text):
        os.write(self.master, text)

    def close(self):
        """Waits for the end, and returns the output until then."""
        with contextlib.suppress(OSError):
            while text := os.read(self.master, 4096):
                self.text += text.decode(errors="replace")
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.master)
        return os.waitstatus_to_exitcode(status)


def test_terminal(k):
    """
    Control-C and control-\\ reach the command once each, and end neither kymo record nor the
    daemon.
    """
    t = Terminal(k, CLI, "record", "--no-summary", sys.executable, "-c", """import signal
wanted = {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
print("ready", flush=True)
while (number := signal.sigwait(wanted)) != signal.SIGTERM:
    print("got", int(number), flush=True)""")
    t.wait_text("ready")
    command = next(p for p in processes_with(k.mark) if "sigwait" in kymotest.command_of(p))
    # a second, redundant signal merges with the first one if it arrives early: hence many attempts
    for n in range(1, 31):
        t.type(b"\x03")
        t.wait_text("got 2", times=n)
        t.type(b"\x1c")
        t.wait_text("got 3", times=n)
    os.kill(command, signal.SIGTERM)
    equal(t.close(), 0, "exit status")
    equal((t.count("got 2"), t.count("got 3")), (30, 30), "signals that the command got")
    check("kymo:" not in t.text, f"something went wrong: {t.text!r}")


def test_suspend(k):
    """A command that stops itself returns the terminal to its shell, and continues with it."""
    shell = "set -m; trap 'echo cont' CONT; \"$0\" record --no-summary sh -c 'kill -STOP $$; echo again'; echo stopped $?; fg; echo done $?"
    t = Terminal(k, "/bin/sh", "-c", shell, CLI)
    t.wait_text(f"stopped {128 + signal.SIGSTOP}")
    t.wait_text("again")
    t.wait_text("done 0")
    t.close()


def test_left_behind(k):
    """kymo record reports programs that outlive the command, and does not harm them."""
    out = k.top / "out"
    fifo = k.top / "fifo"
    os.mkfifo(fifo)
    emit = kymotest.APPS / "emit"
    places(k)
    # the command ends after the program that it starts has registered and printed "ready"
    script = f'"{emit}" -w -n 10 <"{fifo}" >"{k.top}/said" 2>&1 & exec 3>"{fifo}"; until grep -q ready "{k.top}/said"; do :; done'
    holder = os.open(fifo, os.O_RDWR)
    done = k.run([CLI, "record", "-o", out, "sh", "-c", script])
    check("1 program of it still runs" in done.stderr, f"stderr: {done.stderr}")
    left = [p for p in processes_with(k.mark) if "emit" in kymotest.command_of(p)]
    equal(len(left), 1, "programs that go on")
    os.write(holder, b"\n\n")
    wait_for(lambda: not alive(left[0]), "the program to end")
    os.close(holder)
    check("records 10" in (k.top / "said").read_text(), "the program was harmed")


def test_daemon_killed(k):
    """The daemon dies: the command continues, and kymo record reports it."""
    p = start(k, "sh", "-c", "echo ready; read x; echo went on; exit 3")
    equal(p.stdout.readline(), "ready\n", "first line")
    os.kill(private_daemon(k), signal.SIGKILL)
    text, errors = p.communicate("\n", timeout=kymotest.TIMEOUT)
    equal((text, p.returncode), ("went on\n", 3), "what the command did")
    check("daemon ended during the recording" in errors, f"stderr: {errors!r}")
    equal(os.listdir(k.top / "tmp"), [], "left in the place of run directories")


def test_we_are_killed(k):
    """
    kymo record is killed: the daemon completes the trace and exits, and the command continues.
    """
    out = k.top / "out"
    p = start(k, "-o", out, "sh", "-c", f"'{kymotest.APPS}/emit' -n 30; echo ready; read x; echo went on > '{k.top}/went-on'")
    wait_for(lambda: p.stdout.readline() == "ready\n", "the command to be ready")
    p.kill()
    p.wait()
    wait_for(lambda: not private_daemon(k), "the daemon to end")
    p.stdin.write("\n")
    p.stdin.close()
    wait_for(lambda: not processes_with(k.mark), "the command to end")
    check((k.top / "went-on").exists(), "the command did not go on")
    equal(len(read_trace(out)[0]), 30, "events in the trace")


def abandon(k):
    """Kills all processes of a recording; returns the directory that it leaves."""
    before = set(places(k).iterdir())
    p = start(k, "-o", k.top / f"killed-{len(before)}", "sh", "-c", "echo ready; read x")
    equal(p.stdout.readline(), "ready\n", "first line")
    rundir = (set(places(k).iterdir()) - before).pop()
    family = processes_with(f"KYMO_RUNDIR={rundir}")
    for pid in family:
        if "kymo-sessiond" in kymotest.command_of(pid):
            os.kill(pid, signal.SIGKILL)
    p.kill()
    p.communicate(timeout=kymotest.TIMEOUT)
    wait_for(lambda: not any(map(kymotest.alive, family)), "the abandoned processes to exit")
    return rundir


def test_run_directories_of_killed_ones(k):
    """The next recording removes what killed recordings have left, and nothing else."""
    tmp = places(k)
    alive_one = start(k, "-o", k.top / "alive", "sh", "-c", f"echo ready; read x; '{kymotest.APPS}/emit' -n 30")
    equal(alive_one.stdout.readline(), "ready\n", "first line")
    left = abandon(k)
    check((left / "lock").exists(), "nothing was left behind")
    started = tmp / "kymo-record-begun0"  # its creator was killed before it started a daemon
    started.mkdir(0o700)

    mine = tmp / "kymo-record-mytrac"
    mine.mkdir(0o700)
    (mine / "log").write_text("of my own")
    (mine / "metadata").write_text("of my own")
    open_one = tmp / "kymo-record-opened"
    open_one.mkdir()
    open_one.chmod(0o755)
    (tmp / "other").mkdir(0o700)
    (tmp / "other" / "log").write_text("elsewhere")
    (tmp / "kymo-record-linked").symlink_to("other")
    served = tmp / "kymo-record-served"  # a daemon still ends its sessions there
    served.mkdir(0o700)
    lock = (served / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    made = tmp / "kymo-record-justme"
    made.mkdir(0o700)
    maker = os.open(made, os.O_RDONLY)
    fcntl.flock(maker, fcntl.LOCK_EX)
    others = tmp / "kymo-record-others"
    others.mkdir(0o700)
    if os.geteuid() == 0:
        os.chown(others, 12345, 12345)
    else:
        others.chmod(0o755)

    k.run([CLI, "record", "-o", k.top / "out", kymotest.APPS / "emit", "-n", 30])
    check(not any(p.exists() for p in (left, started)), f"not removed: {os.listdir(tmp)}")
    check(all(p.is_dir() for p in (open_one, served, made, others)), f"removed: {os.listdir(tmp)}")
    equal(sorted(os.listdir(mine)), ["log", "metadata"], "a user's own directory")
    check((tmp / "kymo-record-linked").is_symlink() and (tmp / "other" / "log").exists(), "a link was followed")
    alive_one.communicate("\n", timeout=kymotest.TIMEOUT)
    equal(len(read_trace(k.top / "alive")[0]), 30, "events of the recording that went on")
    lock.close()
    os.close(maker)


def test_at_once(k):
    """
    If recordings start at the same moment, none of them removes the directory of another as a
    leftover.
    """
    for _ in range(4):
        for p in [start(k, "-o", k.top / f"t{i}", "true") for i in range(16)]:
            errors = p.communicate(timeout=kymotest.TIMEOUT)[1]
            equal(p.returncode, 0, errors)
        equal(os.listdir(places(k)), [], "left in the place of run directories")
    wait_for(lambda: not processes_with(k.mark), "all processes of the recordings to end")


def test_interrupted(k):
    """
    A signal at any moment: either the command never runs, or it receives the signal; kymo record
    ends by it, and leaves nothing.
    """
    for delay_ms in (0, 1, 2, 5, 10, 20, 50):
        p = start(k, "--no-summary", "sleep", 1000)
        time.sleep(delay_ms / 1000)
        p.terminate()
        equal(p.wait(kymotest.TIMEOUT), -signal.SIGTERM, f"exit status {delay_ms} ms after the start")
        wait_for(lambda: not processes_with(k.mark), "all processes to end")
        equal(os.listdir(k.top / "tmp"), [], "left in the place of run directories")
    equal(list(k.traces.iterdir()) if k.traces.exists() else [], [], "directories left for traces")


def test_blocked_signals(k):
    """Signals that the caller blocks stay blocked, for the command too."""
    mark = k.top / "ran"
    places(k)
    script = """import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.kill(os.getpid(), signal.SIGTERM)
os.execv(sys.argv[1], sys.argv[1:])"""
    k.run([sys.executable, "-c", script, CLI, "record", "--no-summary", "touch", mark])
    check(mark.exists(), "the command did not run")


kymotest.main()
