#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that fork, and programs that close what they do not know."""

from kymotest import check_counts, equal, main

WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def record_forks(k, env=None):
    """Each child registers as itself before its first event: nothing is lost, nothing recorded twice."""
    k.start_daemon()
    trace = k.record("processes:*")
    n = int(k.app("processes", "forks", 40, env=env))
    k.kymo("stop", "s")
    equal(len(check_counts(k, trace, n)), n, "events recorded")


def test_forks(k):
    record_forks(k)


def test_forks_without_rseq(k):
    record_forks(k, env=WITHOUT_RSEQ)


def test_closes_descriptors(k):
    """The program's numbers are its own: the library has none of them, and goes on recording."""
    k.start_daemon()
    trace = k.record("processes:*")
    equal(k.app("processes", "closes").strip(), "unharmed", "the program's own pipe")
    k.kymo("stop", "s")
    equal(len(check_counts(k, trace, 100)), 100, "events recorded")


main()
