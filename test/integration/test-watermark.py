#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
TRACE/.watermark: all records up to its clock are in files when it appears, while the session still
records. The consumer's side of it is in test-consumerd.py.
"""

import collections
import os
import signal
import struct

import kymotest
from emitcheck import SCALE
from kymotest import check, equal, main, wait_for

END = 2**64 - 1


def watermark(trace):
    """Returns clock, chunk and flags; zeros if there is no watermark yet."""
    path = trace / ".watermark"
    data = path.read_bytes() if path.exists() else b""
    return struct.unpack("<3Q", data or bytes(24))


def events_in_files(trace):
    """Returns how many events of each CPU are in files, by their indexes."""
    n = collections.Counter()
    for path in trace.rglob("index/*_*.kyx"):
        data = path.read_bytes()[16:]
        n[int(path.stem.rpartition("_")[2])] += sum(entry[4] for entry in struct.iter_unpack("<6Q", data[: len(data) // 48 * 48]))
    return n


def samples(trace, n):
    """Returns n successive watermarks, each with the events that were in files by then."""
    wait_for(lambda: events_in_files(trace), "events in files")
    found = []
    while len(found) < n:
        before = found[-1][0] if found else 0
        clock = wait_for(lambda: watermark(trace)[0] > before and watermark(trace)[0], "a later watermark")
        found.append((clock, events_in_files(trace)))
    return found


def test_while_recording(k):
    """A record whose writer's CPU stands still for long may be late: one for each CPU."""
    k.start_daemon()
    # The program emits until the consumer has had its turns: small buffers limit the trace.
    trace = k.record(channel=("--subbuf-size=64K", "--num-subbuf=16", "--switch-timer=20ms"))
    app = k.spawn("emit", "-t", 2, "-f", "-m", "-s", 100)
    k.expect(app, "emitting")
    found = samples(trace, max(30 // SCALE, 5))
    k.let_go(app)
    k.finish(app)
    k.kymo("stop", "s")
    events, _ = kymotest.read_trace(trace)
    equal([clock for clock, _ in found], sorted({clock for clock, _ in found}), "watermarks")
    for clock, in_files in found:
        due = collections.Counter(event.cpu for event in events if event.time <= clock)
        for cpu, n in due.items():
            check(n <= in_files[cpu] + 1, f"at {clock}, CPU {cpu} had {in_files[cpu]} events in files, and {n} were due")
    check(due.total(), "no event is before the last watermark")
    k.kymo("rotate", "s")
    equal(watermark(trace)[1:], (1, 0), "chunk and flags after a rotation")
    k.kymo("destroy", "s")
    equal(watermark(trace), (END, 1, 1), "watermark at the end")


def announced_sets(k):
    """Returns the number of ring sets in the session's memory (src/abi/resume.h)."""
    fd, = [fd for fd, link, _ in kymotest.descriptors(k.daemon.pid) if link.startswith("/memfd:kymo-session")]
    with open(f"/proc/{k.daemon.pid}/fd/{fd}", "rb") as f:
        return struct.unpack_from("<Q", f.read(), 88)[0]


def test_sets_are_announced(k):
    """An application can record only into sets of which the consumer knows that they are there."""
    k.start_daemon()
    k.record(channel=("--buffers=process",))
    consumer, = kymotest.consumers(k)
    equal(announced_sets(k), 0, "sets before the first application")
    for n in range(1, 4):
        kymotest.stop(consumer)
        k.app("emit", "-n", 10)
        equal(announced_sets(k), n, "sets when an application has recorded")
        os.kill(consumer, signal.SIGCONT)
    os.kill(consumer, signal.SIGKILL)
    wait_for(lambda: kymotest.consumers(k) not in ([], [consumer]), "another consumer")
    k.app("emit", "-n", 10)
    check(1 <= announced_sets(k) <= 4, "sets that another consumer knows")


def test_nothing_recorded(k):
    k.start_daemon()
    trace = k.record()
    k.kymo("destroy", "s")
    check(not (trace / ".watermark").exists(), "a watermark of nothing")


main()
