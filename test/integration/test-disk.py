#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Faults of the disk with the traces: I/O errors, quota, no space, from each call of the consumer on,
also with a write that writes only a part. Recording continues, and status names the file and the
cause. When the fault ends, everything is written. If it never ends, the events are counted as
discarded.
"""

import errno
import itertools
import os
import re
import shutil

import kymotest
from emitcheck import check_values
from kymotest import APPS, CLI, check, check_counts, equal, main, wait_for

N = 150
ROOMY = ("--subbuf-size=64K", "--num-subbuf=4", "--switch-timer=20ms")


def start(k):
    """Starts a daemon whose consumers use such a disk."""
    k.traces.mkdir()
    k.start_daemon(env={"LD_PRELOAD": str(APPS / "faulty-disk.so"), "DISK_UNDER": str(k.traces), "DISK_FAULT": str(k.top / "fault"), "DISK_SAY": str(k.top / "failed")})


def break_disk(k, error, call, short):
    (k.top / "failed").unlink(missing_ok=True)
    written = k.top / "fault-to-be"
    written.write_text(f"{error} {call} {short}")
    written.rename(k.top / "fault")


def mend_disk(k):
    (k.top / "fault").unlink()


def failed(k):
    path = k.top / "failed"
    return path.read_text().split() if path.exists() else []


def error_of(k):
    return k.kymo_json("status", "s")["session"]["error"]


def begin(k, error, channel=ROOMY):
    """
    Starts a session that records. Returns None if it cannot be created on such a disk; the error
    must say so.
    """
    trace = k.traces / "s"
    done = k.run([CLI, "create", "s", "-o", trace], status=None)
    if done.returncode:
        check(os.strerror(error) in done.stderr and str(trace) in done.stderr, f"create says {done.stderr!r}")
        mend_disk(k)
        shutil.rmtree(trace, ignore_errors=True)
        k.kymo("create", "s", "-o", trace)
    k.kymo("enable-channel", "channel0", "-s", "s", *channel)
    k.kymo("enable-event", "-s", "s", "emit:*")
    k.kymo("start", "s")
    return trace if not done.returncode else None


def record(k, error, call, short):
    """
    Records N events, and checks that the fault is reported. Returns the trace; None if the fault
    prevented the session, False if there was no such call.
    """
    break_disk(k, error, call, short)
    trace = begin(k, error)
    if not trace:
        return None
    k.app("emit", "-n", N, "-p", 1)
    settled = lambda: failed(k) or k.kymo_json("status", "s")["session"]["recorded"] == N
    wait_for(settled, "events to be written, or not")
    if not failed(k):
        return False
    text = wait_for(lambda: error_of(k), "status to report the error")
    check(os.strerror(error) in text and str(trace) in text, f"status reports {text!r} for {failed(k)[0]}, error {error}")
    return trace


def heals(k, error, short):
    """Tries each call as the first one that fails; returns the names of these calls."""
    calls = []
    for call in itertools.count(1):
        trace = record(k, error, call, short)
        if trace is False:
            mend_disk(k)
            k.kymo("destroy", "s")
            check(len(calls) > 3, f"hardly a call failed: {calls}")
            return calls
        if trace:
            calls += failed(k)[:1]
            k.app("emit", "-n", N, "-p", 2)
            mend_disk(k)
            wait_for(lambda: error_of(k) == "", lambda: f"the error to go: {error_of(k)}")
            k.app("emit", "-n", N, "-p", 3)
        else:
            k.app("emit", "-n", 3 * N, "-p", 2)
        final = k.kymo_json("destroy", "s")["sessions"][0]
        equal((final["recorded"], final["discarded"], final["unwritten"], final["error"]), (3 * N, 0, 0, ""), f"counts, {failed(k)} having failed")
        events = check_counts(k, k.traces / "s", 3 * N)
        equal(len(check_values(events)), 3 * N, "events")
        shutil.rmtree(k.traces / "s")


def stays(k, error, short):
    """The fault lasts to the end."""
    for call in itertools.count(1):
        trace = record(k, error, call, short)
        if trace is False:
            mend_disk(k)
            k.kymo("destroy", "s")
            check(call > 4, f"only {call - 1} calls failed")
            return
        if trace:
            k.app("emit", "-n", N, "-p", 2)
            final = k.kymo_json("destroy", "s", status=1)["sessions"][0]
            check_what_is_there(k, trace, final, 2 * N)
            mend_disk(k)
        else:
            k.kymo("destroy", "s")
        shutil.rmtree(k.traces / "s", ignore_errors=True)


def check_what_is_there(k, trace, final, emitted):
    what = f"with {failed(k)[0]} and all calls after it failing"
    equal(final["recorded"] + final["discarded"] + final["unwritten"], emitted, f"recorded + discarded + unwritten {what}: {final}")
    recorded, _ = kymotest.check_streams(trace) if list(trace.rglob("index")) else (0, 0)
    equal(recorded, final["recorded"], f"events on disk {what}")
    if recorded:
        events, _ = kymotest.read_trace(trace)
        equal(len(check_values(events)), recorded, f"events that babeltrace2 reads {what}")


def test_errors(k):
    start(k)
    calls = heals(k, errno.EIO, 0)
    for wanted in ("mkdirat", "openat", "pwrite", "pwritev"):
        check(wanted in calls, f"{wanted} was never the first to fail: {calls}")


def test_quota(k):
    start(k)
    heals(k, errno.EDQUOT, 0)


def test_short_writes(k):
    """A write that wrote only a part is repeated as a whole."""
    start(k)
    heals(k, errno.ENOSPC, 1)


def test_errors_stay(k):
    start(k)
    stays(k, errno.EIO, 0)


def test_quota_stays(k):
    start(k)
    stays(k, errno.EDQUOT, 1)


def test_reason_of_losses(k):
    """
    Nobody is advised to enlarge the buffers because the disk is full, and a stop does not succeed
    whose events are not in the trace.
    """
    start(k)
    break_disk(k, errno.ENOSPC, 6, 0)
    check(begin(k, errno.ENOSPC, ("--subbuf-size=4K", "--num-subbuf=2", "--burst-size=0")), "the disk failed too early")
    k.app("emit", "-n", 10000)
    wait_for(lambda: failed(k) and error_of(k), "status to report the error")
    wait_for(lambda: k.kymo_json("status", "s")["session"]["discarded"], "the daemon to hear of the losses")
    stopped = k.kymo("stop", "s", status=1)
    check(re.fullmatch(r"kymo: session 's': \d+ recorded events are not in the trace yet: cannot write .*\n", stopped.stderr), f"{stopped.stderr!r}")
    for said in (k.kymo("status", "s").stdout, stopped.stdout):
        check("the buffers were full, and the trace could not be written" in said, said)
        check("--subbuf-size" not in said, f"advice that does not help: {said}")
    mend_disk(k)
    wait_for(lambda: error_of(k) == "", "the error to go")
    k.kymo("stop", "s")
    k.kymo("destroy", "s")


main()
