#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Programs that forbid a system call to all their threads: if they are traced, they print and exit as
untraced. For each call that libkymo makes, in each of the kernel's ways to forbid it.
"""

import contextlib
import ctypes
import os
import platform
import re
import signal
import subprocess

import kymotest
from kymotest import APPS, Skip, check, equal, wait_for, without_sanitizers

CALLS = """
    access clone clone3 close close_range connect futex getdents64 geteuid getpid getrandom
    getsockopt gettid lseek madvise membarrier mmap mprotect munmap nanosleep clock_nanosleep
    newfstatat openat poll pread64 prctl prlimit64 readlink recvmsg rseq rt_sigprocmask sendto
    set_robust_list signalfd4 socket tgkill unshare
""".split()
# the C library needs futex in any program with threads, and so does libkymo: docs/limits.md
LISTENER_CALLS = set(CALLS) - {"futex"}
PLUGIN = APPS / "loads-provider.so"


def numbers():
    """Returns the numbers of system calls, from the C library's headers."""
    text = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], capture_output=True, text=True, check=True).stdout
    found = {name: int(n) for name, n in re.findall(r"#define __NR_(\w+) (\d+)$", text, re.MULTILINE)}
    return {name: found[name] for name in CALLS if name in found}


def run(k, number, action, env=None, between=lambda app, line: None, early=False, more=(), plugin=PLUGIN):
    """
    Runs the program from its start to its exit; returns its output, and how it exited. between:
    called whenever the program waits. early: the filter exists before the program's start.
    """
    if early:  # the program that installs the filter is not traced
        more, env = ["exec-off" if env else "exec"], {"KYMO_OFF": "1"}
    app = k.spawn("sandbox", number, action, plugin, *more, env=env)
    said = []
    while line := app.stdout.readline():
        said.append(line.strip())
        between(app, line.strip())
        try:
            k.let_go(app)
        except BrokenPipeError:
            break
    app.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        app.stdin.close()
    try:
        app.wait(timeout=kymotest.TIMEOUT)
    except subprocess.TimeoutExpired:
        app.kill()
        app.wait()
        said.append("hangs")
    k.started.remove(app)
    if app.returncode == 77:
        raise Skip("the kernel has no seccomp filters")
    return said, app.returncode


OUTCOME = (["ready", "filtered", "child 1792", "done"], 5)
LEFT = ([*OUTCOME[0], "last"], 0)
# pthread_exit() calls munmap in some runs; madvise: docs/limits.md
LEAVING_CALLS = LISTENER_CALLS - {"munmap", "madvise"}


def need_x86_64():
    if platform.machine() != "x86_64":
        raise Skip("the handler of the program knows x86-64")


def compare(k, action, between, calls, early=False, plugin=PLUGIN, runs=1):
    """runs: so many at most, of which one must be as untraced."""
    need_x86_64()
    wrong, n = [], 0
    for name, number in numbers().items():
        if name not in calls:
            continue
        plain = run(k, number, action, env={"KYMO_OFF": "1"}, between=lambda app, line: None, early=early, plugin=plugin)
        if plain != OUTCOME:
            continue  # the program itself needs the call
        n += 1
        for _ in range(runs):
            traced = run(k, number, action, between=between, early=early, plugin=plugin)
            if traced == plain:
                break
        else:
            wrong.append(f"{name}: {traced}")
    check(n >= 15, f"only {n} calls are none of the program's own")
    check(not wrong, f"{action}: other than untraced without " + "; ".join(wrong))


def quiet(app, line):
    """
    Returns when the listener has slept once more after the filter was installed, or has ended. As
    a rule it has then seen the filter. Not always: it polls a FIFO that the programs of all tests
    share, and each of them that ends wakes it inside poll(), which then sleeps again. So no test
    may rely on it.
    """
    if line == "ready":
        wait_for(lambda: waits(app.pid), "the listener to be there")
    elif line == "filtered":
        # it may just have looked, before the filter: then it has to sleep first
        before = wait_for(lambda: ended(app) or sleeps(app.pid), "the listener to sleep")
        wait_for(lambda: ended(app) or sleeps(app.pid) - before, "the listener to have looked")


def ended(app):
    """Returns a set, which is not empty if the program or its listener has ended."""
    return {"ended"} if app.poll() is not None or not listener(app.pid) else set()


def listener(pid):
    """Returns the directory in /proc of the listener; None if it has ended."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            if open(f"/proc/{pid}/task/{task}/comm").read() == "kymo-listener\n":
                return f"/proc/{pid}/task/{task}"
    return None


def waits(pid):
    """Returns true if the listener is in poll()."""
    with contextlib.suppress(OSError, TypeError):
        return open(listener(pid) + "/syscall").read().split()[0] == "7"
    return False


def sleeps(pid):
    """Returns a set: how often the listener has slept, if it is in poll(); else nothing."""
    def count():
        status = open(listener(pid) + "/status").read()
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE)[1])
    with contextlib.suppress(OSError, TypeError):
        n = count()
        # the number of the sleep that it is in, not of the one before
        return {n} if waits(pid) and count() == n else set()
    return set()


@without_sanitizers
def test_without_daemon_trap(k):
    compare(k, "trap", quiet, LISTENER_CALLS)


@without_sanitizers
def test_without_daemon_thread(k):
    compare(k, "thread", quiet, LISTENER_CALLS)


@without_sanitizers
def test_without_daemon_process(k):
    """
    Likewise, except the calls that a program needs to check for a filter, and to sleep. Several
    runs, because the filter kills the program if it is installed between the listener's check and
    its next call: docs/limits.md.
    """
    compare(k, "process", quiet, LISTENER_CALLS - {"prctl", "poll"}, runs=3)


@without_sanitizers
def test_without_daemon_error(k):
    compare(k, "error", quiet, LISTENER_CALLS)


def unseen(app, line):
    """The program goes on before the listener has looked for a filter."""
    if line == "ready":
        wait_for(lambda: waits(app.pid), "the listener to be there")


@without_sanitizers
def test_unseen(k):
    """Without a daemon, and with one that does not record."""
    compare(k, "thread", unseen, LISTENER_CALLS)
    compare(k, "trap", unseen, LISTENER_CALLS)
    k.start_daemon()
    compare(k, "thread", unseen, LISTENER_CALLS)
    compare(k, "trap", unseen, LISTENER_CALLS)


@without_sanitizers
def test_no_plugin(k):
    """Programs that load nothing, and so need fewer calls than the dynamic linker makes."""
    # fork() blocks signals: docs/limits.md
    calls = {"thread": LISTENER_CALLS - {"rt_sigprocmask"}, "trap": LISTENER_CALLS, "error": LISTENER_CALLS}
    for start in (lambda: None, k.start_daemon, lambda: k.record("sandbox:*")):
        start()
        for action in calls:
            compare(k, action, unseen, calls[action], plugin="-")
        compare(k, "thread", quiet, calls["thread"], plugin="-")
    k.kymo("destroy")


def commands(k):
    """A session starts and stops while the program waits."""
    def between(app, line):
        if line == "ready":
            wait_for(lambda: waits(app.pid), "the listener to be there")
        elif line == "filtered":
            k.kymo("start", "s")
        elif line.startswith("child"):
            k.kymo("stop", "s")
            k.kymo("start", "s")
        else:
            k.kymo("stop", "s")
    return between


@without_sanitizers
def test_recorded_trap(k):
    k.start_daemon()
    k.record("sandbox:*", start=False)
    compare(k, "trap", commands(k), LISTENER_CALLS)
    k.kymo("destroy")


@without_sanitizers
def test_recorded_thread(k):
    k.start_daemon()
    k.record("sandbox:*", start=False)
    compare(k, "thread", commands(k), LISTENER_CALLS)
    k.kymo("destroy")


@without_sanitizers
def test_recorded_error(k):
    k.start_daemon()
    k.record("sandbox:*", start=False)
    compare(k, "error", commands(k), LISTENER_CALLS)
    k.kymo("destroy")


def unneeded(k, calls, more, outcome):
    """
    Returns the numbers of those of the calls that the program itself does not need, separated by
    commas.
    """
    off = {"KYMO_OFF": "1"}
    found = [number for name, number in numbers().items() if name in calls and run(k, number, "thread", env=off, more=more) == outcome]
    check(len(found) >= 15, f"only {len(found)} calls are none of the program's own")
    together = ",".join(map(str, found))
    for action in ("thread", "trap", "error"):
        equal(run(k, together, action, env=off, more=more), outcome, f"{action}: untraced")
    return together


def all_at_once(k, names, more, outcome):
    """A list of what is allowed has nothing that only libkymo needs."""
    need_x86_64()
    calls = unneeded(k, names, more, outcome)
    for between in (unseen, quiet):
        for action in ("thread", "trap", "error"):
            equal(run(k, calls, action, between=between, more=more), outcome, f"{action}, {between.__name__}: without a daemon")
    k.start_daemon()
    k.record("sandbox:*", start=False)
    for between in (unseen, commands(k)):
        for action in ("thread", "trap", "error"):
            equal(run(k, calls, action, between=between, more=more), outcome, f"{action}, {between.__name__}: with a daemon")
            k.kymo("stop", "s", status=None)
    k.kymo("destroy")


@without_sanitizers
def test_all_at_once(k):
    all_at_once(k, LISTENER_CALLS, (), OUTCOME)


@without_sanitizers
def test_all_at_once_and_pthread_exit(k):
    all_at_once(k, LEAVING_CALLS, ["leave"], LEFT)


@without_sanitizers
def test_pthread_exit(k):
    """main leaves by pthread_exit() behind a filter that the listener has not seen."""
    need_x86_64()
    for action in ("thread", "trap", "error"):
        wrong = []
        for name, number in numbers().items():
            plain = run(k, number, action, env={"KYMO_OFF": "1"}, more=["leave"])
            traced = run(k, number, action, between=unseen, more=["leave"]) if plain == LEFT and name in LEAVING_CALLS else plain
            if traced != plain:
                wrong.append(f"{name}: {traced}")
        check(not wrong, f"{action}: other than untraced without " + "; ".join(wrong))


@without_sanitizers
def test_calls_that_are_not_made(k):
    """A filter may let a call succeed that is not made; main leaves by pthread_exit() or not."""
    # clone, exit, ...: docs/limits.md
    names = {"getdents64", "sendto", "recvmsg", "connect", "socket", "madvise", "close_range", "membarrier"}
    wrong = []
    for more, outcome in (((), OUTCOME), (["leave"], LEFT)):
        for name, number in numbers().items():
            if name in names and run(k, number, "zero", env={"KYMO_OFF": "1"}, more=more) == outcome:
                traced = run(k, number, "zero", between=unseen, more=more)
                wrong += [f"{name}: {traced}"] if traced != outcome else []
    check(not wrong, "other than untraced without " + "; ".join(wrong))


@without_sanitizers
def test_poll_that_is_not_made(k):
    """The listener does not run all the time if poll() returns at once."""
    app = k.spawn("sandbox", numbers()["poll"], "zero", "-")
    k.expect(app, "ready")
    wait_for(lambda: waits(app.pid), "the listener to be there")
    k.let_go(app)
    k.expect(app, "filtered")
    wait_for(lambda: not listener(app.pid), "the listener to end")
    for line in "child 1792", "done":
        k.let_go(app)
        k.expect(app, line)
    k.let_go(app)
    equal(app.wait(kymotest.TIMEOUT), 5, "exit status")
    k.started.remove(app)
    app.stdout.close()
    app.stdin.close()


@without_sanitizers
def test_threads(k):
    """More threads than have prepared buffers record before the listener has seen the filter."""
    need_x86_64()
    number = 25  # mremap
    k.start_daemon()
    k.record("sandbox:*")
    for action in ("process", "trap", "error", "thread"):
        plain, traced = (run(k, number, action, env=env, more=["threads"]) for env in ({"KYMO_OFF": "1"}, {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}))
        equal(traced, plain, f"{action}: traced, as against untraced")
    k.kymo("stop", "s")
    counts = k.kymo_json("status", "s")["session"]
    equal(counts["recorded"] + counts["discarded"], 4 * 300, "events of the programs; their children are not recorded")
    k.kymo("destroy")


PTRACE_GETREGS, PTRACE_DETACH, PTRACE_SYSCALL, PTRACE_SEIZE, PTRACE_INTERRUPT = 12, 17, 24, 0x4206, 0x4207
PTRACE_O_TRACESYSGOOD = 1
WALL = 0x40000000
SYS_PTRACE = 101


class Held:
    """Holds a thread where it returns from a system call the next time."""

    libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self, thread, number):
        self.thread = thread
        self.trace(PTRACE_SEIZE, 0, PTRACE_O_TRACESYSGOOD)
        self.trace(PTRACE_INTERRUPT)
        stops = 0  # each call stops the thread when it is entered, and when it returns
        while stops < 2:
            _, status = os.waitpid(thread, WALL)
            check(os.WIFSTOPPED(status), "the thread ended")
            if os.WSTOPSIG(status) == signal.SIGTRAP | 0x80 and self.call() == number:
                stops += 1
            if stops < 2:
                self.trace(PTRACE_SYSCALL)

    def trace(self, request, address=0, data=0):
        number = SYS_PTRACE  # the C library's function has a variable list of arguments
        arguments = (ctypes.c_long(x) for x in (number, request, self.thread, address, data))
        check(self.libc.syscall(*arguments) == 0, f"ptrace {request}: {os.strerror(ctypes.get_errno())}")

    def call(self):
        registers = (ctypes.c_ulong * 27)()
        self.trace(PTRACE_GETREGS, 0, ctypes.addressof(registers))
        return registers[15]  # orig_rax

    def release(self):
        self.trace(PTRACE_DETACH)


@without_sanitizers
def test_between_look_and_poll(k):
    """The program installs the filter after the listener has looked, and before it waits again."""
    need_x86_64()
    number = numbers()
    held = []

    def between(app, line):
        if line == "ready":
            wait_for(lambda: waits(app.pid), "the listener to be there")
            held.append(Held(int(listener(app.pid).split("/")[-1]), number["prctl"]))
        elif line == "filtered":
            held.pop().release()
            wait_for(lambda: app.poll() is not None or not listener(app.pid), "the listener to end")

    for action in ("trap", "error", "thread"):
        # the C library calls madvise when a thread ends
        equal(run(k, f"{number['poll']},{number['madvise']}", action, between=between), OUTCOME, action)


# without prctl, nothing can ask for a filter; without futex, the C library aborts
EARLY_CALLS = set(CALLS) - {"prctl", "futex"}


def restart(k):
    """A session starts and stops, also while programs that are not traced wait."""
    def between(app, line):
        if line == "filtered":
            k.kymo("stop", "s")
            k.kymo("start", "s")
    return between


def before_start(k, action):
    """The filter exists before the program starts: without a daemon, and while one records."""
    compare(k, action, lambda app, line: None, EARLY_CALLS, early=True)
    k.start_daemon()
    k.record("sandbox:*")
    compare(k, action, restart(k), EARLY_CALLS, early=True)
    k.kymo("destroy")


@without_sanitizers
def test_before_start_trap(k):
    before_start(k, "trap")


@without_sanitizers
def test_before_start_thread(k):
    before_start(k, "thread")


@without_sanitizers
def test_before_start_process(k):
    before_start(k, "process")


@without_sanitizers
def test_before_start_error(k):
    before_start(k, "error")


@without_sanitizers
def test_before_start_recorded(k):
    """A filter that forbids none of libkymo's calls: the program and its child are recorded."""
    k.start_daemon()
    k.record("sandbox:*")
    unused = 2**16 - 1
    found = run(k, unused, "process", between=lambda app, line: None, early=True)
    equal(found, OUTCOME, "as untraced")
    k.kymo("stop", "s")
    equal(k.kymo_json("status", "s")["session"]["recorded"], 300, "events")
    k.kymo("destroy")


if __name__ == "__main__":
    kymotest.main()
