#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Buffers grow while the consumer is late, so that a burst is recorded whole. Afterwards they give
their memory back.
"""

import contextlib
import os
import pathlib
import signal

import kymotest
from kymotest import Skip, check, check_counts, equal, wait_for

KIB, MIB = 1 << 10, 1 << 20
HOME = 2 * MIB  # of a CPU's buffer, by default
BURST = 220000  # events, some 6 MiB

PINNED = ("taskset", "-c", str(min(os.sched_getaffinity(0))))


def buffers(k, session="s"):
    """Returns what status reports of the only buffers of a session."""
    (channel,) = k.kymo_json("status", session)["session"]["channels"]
    (found,) = channel["ring_sets"]
    return found


def memory(k, session="s"):
    return buffers(k, session)["memory"]


def is_home(n_bytes):
    """Returns whether buffers with this memory have no more than without a burst."""
    return n_bytes < os.cpu_count() * HOME + 64 * KIB


def at_home(k):
    return is_home(memory(k))


def begin(k, *channel, daemon=(), session="s"):
    k.start_daemon(*daemon)
    trace = k.record("emit:*", session=session, channel=channel)
    k.app("emit", "-n", 10, "-p", 1)
    return trace


def burst(k, n=BURST, process=2, session="s"):
    """
    Records a burst on one CPU while the consumer gets no processor; returns the memory of the
    buffers then.
    """
    (consumer,) = kymotest.consumers(k)
    kymotest.stop(consumer)
    try:
        k.finish(k.spawn("emit", "-n", n, "-p", process, wrap=PINNED))
        return memory(k, session)
    finally:
        os.kill(consumer, signal.SIGCONT)


def test_burst(k):
    """A burst is recorded whole, again and again, and the memory is given back each time."""
    trace = begin(k)
    check(at_home(k), f"{memory(k)} bytes at first")
    check(buffers(k)["burst_size"] > buffers(k)["size"] == HOME, buffers(k))
    for n in range(2):
        check(not is_home(burst(k, process=2 + n)), "the buffers did not grow")
        wait_for(lambda: at_home(k), lambda: f"memory to be given back: {memory(k)} bytes are in use")
    k.kymo("stop", "s")
    equal(len(check_counts(k, trace, 10 + 2 * BURST)), 10 + 2 * BURST, "events in the trace")


def test_fixed_size(k):
    """Buffers whose size the user gives do not grow, unless the user says how far."""
    n = 100000
    trace = begin(k, "--num-subbuf=4", "--subbuf-size=64K")
    equal(buffers(k)["burst_size"], 256 * KIB, "size of the buffers")
    burst(k, n)
    k.kymo("destroy", "s")
    check(len(check_counts(k, trace, 10 + n)) < 10 + n, "nothing was discarded")
    trace = k.record("emit:*", session="grows", channel=("--num-subbuf=4", "--subbuf-size=64K", "--burst-size=16M"))
    burst(k, n, session="grows")
    k.kymo("destroy", "grows")
    equal(len(check_counts(k, trace, n)), n, "events of a buffer that may grow")


def test_limit(k):
    """A buffer grows within the memory that its user may have."""
    begin(k, daemon=("--max-memory-per-user=256M",))
    size = buffers(k)["burst_size"]
    check(HOME < size <= 16 * MIB / os.cpu_count(), f"a buffer may have {size} bytes")


@contextlib.contextmanager
def control_group(limit):
    """Makes a control group that may have this much memory."""
    for root, file in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        group = pathlib.Path(root, f"kymo-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / file).exists():
                (group / file).write_text(str(limit))
                yield group
                wait_for(lambda: not (group / "cgroup.procs").read_text(), "the group to be empty")
                return
        finally:
            group.rmdir()
    raise Skip("control groups with a limit of memory cannot be made here (root with a writable /sys/fs/cgroup)")


def test_control_group(k):
    """A program does not grow its buffers if its control group has little memory."""
    with control_group(64 * MIB) as group:
        trace = begin(k)
        (consumer,) = kymotest.consumers(k)
        kymotest.stop(consumer)
        enter = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
        k.finish(k.spawn("emit", "-n", 2 * BURST, "-p", 2, wrap=(*enter, *PINNED)))
        check(memory(k) <= os.cpu_count() * 4 * MIB + 64 * KIB, f"{memory(k)} bytes are in use")
        os.kill(consumer, signal.SIGCONT)
    k.kymo("stop", "s")
    check(len(check_counts(k, trace, 10 + 2 * BURST)) < 10 + 2 * BURST, "nothing was discarded")


def test_others_do_not_grow(k):
    """Overwritten buffers and those of threads have the size that they have."""
    k.start_daemon()
    for session, option in (("overwrite", "--overwrite"), ("thread", "--buffers=thread")):
        k.record("emit:*", session=session, channel=(option,))
    k.app("emit", "-n", 10)
    for session in ("overwrite", "thread"):
        equal(buffers(k, session)["burst_size"], buffers(k, session)["size"], f"size of {session}")


def test_killed(k):
    """Daemon or consumer is killed while the buffers are large: its successor loses nothing."""
    for victim in ("consumer", "daemon"):
        trace = begin(k, session=victim)
        (consumer,) = kymotest.consumers(k)
        kymotest.stop(consumer)
        k.app("emit", "-n", BURST, "-p", 2)
        if victim == "daemon":
            k.daemon.kill()
            k.daemon.wait()
            os.kill(consumer, signal.SIGCONT)
            k.start_daemon()
        else:
            os.kill(consumer, signal.SIGKILL)
        k.app("emit", "-n", BURST, "-p", 3)
        k.kymo("stop", victim)
        equal(len(check_counts(k, trace, 10 + 2 * BURST)), 10 + 2 * BURST, f"events after the death of {victim}")
        k.kymo("destroy", victim)
        k.stop_daemon()


def test_snapshot(k):
    """A snapshot of buffers that have grown, and of those whose memory was given back, is whole."""
    trace = begin(k)
    burst(k)
    for name in ("grown", "given-back"):
        k.kymo("snapshot", "record", "s", "-o", k.traces / name)
        there = [e["seq"] for e in map(kymotest.fields, kymotest.read_trace(k.traces / name)[0]) if e["process"] == 2]
        check(there and there == list(range(BURST - len(there), BURST)), f"{name}: {len(there)} events are not the last ones")
        wait_for(lambda: at_home(k), "memory to be given back")
    k.kymo("stop", "s")
    equal(len(check_counts(k, trace, 10 + BURST)), 10 + BURST, "events in the trace")


if __name__ == "__main__":
    kymotest.main()
