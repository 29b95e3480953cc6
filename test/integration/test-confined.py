#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that may not do much: recording asks for nothing."""

import re

from kymotest import APPS, Skip, check, check_counts, equal, main, without_sanitizers

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
    """What does not fit is counted as quietly."""
    run_quiet(k, 200000, SMALL)


@without_sanitizers
def test_quiet_and_full_without_rseq(k):
    run_quiet(k, 200000, SMALL, env=WITHOUT_RSEQ)


main()
