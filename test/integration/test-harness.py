#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The harness itself: it ends what a failed test leaves running, and a test that leaves anything
behind fails.
"""

import os
import re
import sys

import kymotest
from kymotest import check, equal, wait_for

HEAD = """
import subprocess, sys
sys.path.insert(0, {folder!r})
import kymotest
"""


def run_tests(k, text):
    """Runs a file of tests; returns its exit status and its output."""
    path = k.top / "test-inner.py"
    path.write_text(HEAD.format(folder=os.path.dirname(kymotest.__file__)) + text + "\nkymotest.main()\n")
    env = {name: os.environ[name] for name in os.environ if name.startswith("KYMO_TEST_")}
    done = k.run([sys.executable, path], status=None, env={**env, "KYMO_TEST_BUILD": str(kymotest.BUILD)})
    return done.returncode, done.stdout


def number_after(text, word):
    return int(text.partition(word)[2].split()[0])


def test_children_of_a_failed_test(k):
    """They lack the environment variable by which the harness recognizes the test's processes."""
    status, said = run_tests(k, """
def test_fails(k):
    child = subprocess.Popen(["sleep", "1000"], env={})
    kymotest.check(False, f"child {child.pid} ")
""")
    equal(status, 1, f"exit status: {said}")
    check("not ok 1 - test_fails" in said, said)
    wait_for(lambda: not kymotest.alive(number_after(said, "child ")), "the child to end")


def test_process_that_is_left(k):
    status, said = run_tests(k, """
def test_leaves(k):
    k.run(["sh", "-c", "sleep 1000 >/dev/null 2>&1 &"])
    sleeps = lambda: "sleep 1000" in map(kymotest.command_of, kymotest.processes_with(k.mark))
    kymotest.wait_for(sleeps, "the process")
    kymotest.wait_for.__defaults__ = (0.1,)
""")
    equal(status, 1, f"exit status: {said}")
    check("all processes of the test to end" in said, said)


def test_long_lists(k):
    """Only the difference is printed."""
    status, said = run_tests(k, """
def test_differs(k):
    kymotest.equal(list(range(10000)), [*range(5000), *range(5001, 10000)], "numbers")
""")
    equal(status, 1, f"exit status: {said}")
    check(len(said) < 4000 and "different from number 5000 on: [5000, 5001, 5002], [5001, 5002, 5003]" in said, said)


def test_odd_text_of_babeltrace(k):
    """An event of an unknown form is a failure, and is not skipped."""
    usual = "[1] (+?) host p:e: { cpu_id = 1 }, { n = 1 }\n"
    equal(len(kymotest.events_of(usual * 3)), 3, "events")
    equal(len(kymotest.events_of("[1] (+?) p:e: { text = \"a\nb }\" }\n" + usual)), 2, "events, one of two lines")
    for text in ("[1] nonsense\n" + usual, usual + "[1] nonsense\n", usual + "[2] (+?) p:e { n = 1 }\n" + usual):
        try:
            kymotest.events_of(text)
        except kymotest.Failure:
            continue
        check(False, f"accepted: {text!r}")


def test_trace_in_parts(k):
    """babeltrace2 reads a trace of many streams in parts: its events are the same, in order."""
    k.start_daemon()
    trace = k.record("pool:*", channel=("--buffers=thread", "--subbuf-size=4K", "--num-subbuf=2"))
    k.app("pool", "-t", kymotest.MAX_STREAMS + 8, "-a", "-n", 500)
    k.kymo("stop", "s")
    equal(len(kymotest.stream_groups(trace)), 2, "parts")
    (text, discarded), (whole, wanted) = kymotest.babeltrace(trace), kymotest.babeltrace_part(trace)
    without_distance = lambda text: sorted(re.sub(r"\(\+\S+\)", "", text).splitlines())
    equal((without_distance(text), discarded), (without_distance(whole), wanted), "events and discarded events")
    times = [event.time for event in kymotest.events_of(text)]
    check(times and times == sorted(times), "events are not in order of time")


kymotest.main()
