#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Applications with few permissions: recording needs no permission."""

import collections
import ctypes
import os
import platform
import re
import struct
import sys

from kymotest import APPS, RUN_FROM, Skip, check, check_counts, equal, integers, main, without_sanitizers

WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
ROOMY = ("--subbuf-size=4M", "--num-subbuf=8")
SMALL = ("--subbuf-size=4K", "--num-subbuf=2")


def run_quiet(k, n, channel, env=None):
    """No system call, no lock, no allocation: from the first event to the end of the program."""
    k.start_daemon()
    trace = k.record("quiet:*", channel=channel)
    done = k.run([APPS / "quiet", n], env=env, status=None)
    if done.returncode == 77:
        raise Skip("the kernel has no seccomp filters")
    equal(done.returncode, 0, f"exit status (-31: killed for a system call) of quiet: {done.stdout}")
    emitted, allocations, locks, calls = map(int, re.findall(r"\d+", done.stdout))
    equal((allocations, locks), (0, 0), "allocations and locks while it recorded")
    check(calls > 3, f"{calls} calls were counted in all: those of the library are not")
    k.kymo("stop", "s")
    return emitted, len(check_counts(k, trace, emitted))


@without_sanitizers
def test_quiet(k):
    emitted, recorded = run_quiet(k, 50000, ROOMY)
    equal(recorded, emitted, "events recorded")


@without_sanitizers
def test_quiet_without_rseq(k):
    emitted, recorded = run_quiet(k, 50000, ROOMY, env=WITHOUT_RSEQ)
    equal(recorded, emitted, "events recorded")


@without_sanitizers
def test_quiet_and_full(k):
    """The same with full buffers: discarded events are counted without any call."""
    run_quiet(k, 200000, SMALL)


@without_sanitizers
def test_quiet_and_full_without_rseq(k):
    run_quiet(k, 200000, SMALL, env=WITHOUT_RSEQ)


# Calls that the library or the C library makes for it, by their numbers on x86-64.
CALLS = {"mmap": 9, "madvise": 28, "socket": 41, "connect": 42, "sendto": 44, "recvmsg": 47, "getsockopt": 55, "prctl": 157,
    "unshare": 272, "pipe2": 293, "prlimit64": 302, "getrandom": 318, "membarrier": 324, "clone3": 435, "close_range": 436}
EPERM = 1


def forbid(number):
    """
    For a child: installs a filter so that this call fails, in it and in all programs that it
    executes.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    code = struct.pack("<" + "HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, number, 0x06, 0, 0, 0x00050000 | EPERM, 0x06, 0, 0, 0x7FFF0000)
    text = ctypes.create_string_buffer(code)
    program = struct.pack("<HxxxxxxQ", 4, ctypes.addressof(text))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program):
        os._exit(77)


def run_forbidden(k, number, *args):
    done = k.run([APPS / "emit", *args], preexec_fn=lambda: forbid(number), status=None)
    if done.returncode == 77:
        raise Skip("the kernel has no seccomp filters")
    return done.returncode, done.stdout, done.stderr


@without_sanitizers
def test_forbidden_calls(k):
    """
    Filters that exist before the program starts: its output is the same as without tracing, and it
    is traced as far as possible.
    """
    if platform.machine() != "x86_64":
        raise Skip("the numbers of system calls are those of x86-64")
    k.start_daemon()
    trace = k.record("emit:*")
    for i, (name, number) in enumerate(CALLS.items()):
        k.env["KYMO_OFF"] = "1"
        plain = run_forbidden(k, number, "-n", 50, "-p", i)
        del k.env["KYMO_OFF"]
        equal(run_forbidden(k, number, "-n", 50, "-p", i), plain, f"what the program says where {name} is forbidden")
    stopped = k.kymo_json("stop", "s")["sessions"][0]
    events = check_counts(k, trace, stopped["recorded"] + stopped["discarded"])
    recorded = collections.Counter(list(CALLS)[integers(e)["process"]] for e in events)
    for name in ("madvise", "unshare", "pipe2", "prlimit64", "getrandom", "membarrier", "close_range"):
        equal(recorded[name], 50, f"events recorded where {name} is forbidden")


# Runs a command that may read in one directory and those of the system; it may connect to sockets.
LANDLOCK = """
import ctypes, os, struct, sys
READ, RULESET, RULE, RESTRICT = 1 << 2 | 1 << 3, 444, 445, 446
libc = ctypes.CDLL(None, use_errno=True)
attributes = struct.pack("Q", READ)
rules = libc.syscall(RULESET, attributes, len(attributes), 0)
if rules < 0:
    sys.exit(77)
system = ("/usr", "/lib", "/lib32", "/lib64", "/etc", "/proc", "/dev")
for path in (*system, sys.argv[1]):
    if os.path.exists(path):
        libc.syscall(RULE, rules, 1, struct.pack("=Qi", READ, os.open(path, os.O_PATH)), 0)
libc.prctl(38, 1, 0, 0, 0)
if libc.syscall(RESTRICT, rules, 0):
    sys.exit(77)
os.execv(sys.argv[2], sys.argv[2:])
"""


@without_sanitizers
def test_unreadable_run_directory(k):
    """A program that may not read in the run directory loses no event at its start."""
    k.start_daemon()
    trace = k.record("emit:*")
    for i in range(5):
        done = k.run([sys.executable, "-c", LANDLOCK, RUN_FROM, APPS / "emit", "-n", 50, "-p", i], status=None)
        if done.returncode == 77:
            raise Skip("the kernel has no Landlock")
        equal(done.returncode, 0, f"exit status of emit: {done.stderr}")
    k.kymo("stop", "s")
    check_counts(k, trace, 250)


main()
