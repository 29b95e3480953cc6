#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A program writes random words into all memory that it shares with the tracer. The daemons survive,
and so do other programs and the program itself. With buffers for each process, and for other users
in any case, no event of other programs is lost or changed.

KYMO_TEST_STORES: number of words. KYMO_TEST_SEED: the seed of the random numbers.
"""

import mmap
import os
import random
import re
import shutil
import struct

import kymotest
from emitcheck import SCALE, check_values
from kymotest import check, equal, main, wait_for
from program import EMPTY, Program

SEED = int(os.environ.get("KYMO_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
STORES = int(os.environ.get("KYMO_TEST_STORES", 1000000)) // SCALE
SECONDS = kymotest.TIMEOUT + STORES // 200000
N = 3000 // SCALE
ROOMY = ("--subbuf-size=1M", "--num-subbuf=4")
WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
print(f"# KYMO_TEST_SEED={SEED}, {STORES} stores", flush=True)


def scribbler(k, **options):
    app = k.spawn("scribble", SEED, STORES, **options)
    k.expect(app, "ready")
    return app


def scribbled(k, app):
    """Waits for the program's exit, which must be a normal one."""
    said = re.fullmatch(r"stores (\d+) events (\d+) opened (\d+)\n", k.finish(app, timeout=SECONDS))
    check(said, "the program that scribbles has not ended well")
    equal((int(said[1]), int(said[3])), (STORES, 0), "words written, and mappings that it could open")


def others_meanwhile(k, app, env=None):
    """
    Runs other programs, some of which started before, and some of which start while it writes.
    Returns their number; each emits 2 * N events.
    """
    early = k.spawn("emit", "-p", 0, "-t", 2, "-n", N, "-w", env=env)
    k.expect(early, "ready")
    k.let_go(app)
    n = 1
    while app.poll() is None:
        k.app("emit", "-p", n, "-t", 2, "-n", N, env=env)
        n += 1
    k.let_go(early)
    k.read_until(early, f"records {2 * N}")
    k.let_go(early)
    k.finish(early)
    return n


def lives(k, consumer):
    equal(k.daemon.poll(), None, "the session daemon")
    equal(kymotest.consumers(k), [consumer], "the consumer")
    log = k.daemon_log()
    check("runtime error" not in log and "AddressSanitizer" not in log, log[-3000:])


def of_process(k, env=None):
    k.start_daemon()
    trace = k.record(channel=("--buffers=process", *ROOMY))
    (consumer,) = kymotest.consumers(k)
    app = scribbler(k, env=env)
    n = others_meanwhile(k, app, env)
    scribbled(k, app)
    lives(k, consumer)
    k.kymo("stop", "s", status=None)
    # whatever the program has written into its own part
    k.run([kymotest.CLI, "view", trace], status=None)
    k.run([kymotest.CLI, "stat", trace], status=None)
    rest = k.top / "rest"
    shutil.copytree(trace, rest)
    spoilt = [p for p in rest.rglob(f"*-p{app.pid}-*") if p.is_file()]
    check(spoilt or "has damaged this ring" in k.daemon_log(), "the program has neither files nor damaged its buffers")
    for path in spoilt:
        path.unlink()
    events, _ = kymotest.read_trace(rest)
    recorded, discarded = kymotest.check_streams(rest)
    equal(len(check_values(events)), recorded, "events of the others, whole")
    equal(recorded + discarded, n * 2 * N, f"recorded ({recorded}) + discarded ({discarded}) of the others, against emitted")
    lives(k, consumer)


def test_buffers_of_processes(k):
    """The program's writes to its own buffers do not affect others."""
    of_process(k)


def test_buffers_of_processes_without_rseq(k):
    of_process(k, WITHOUT_RSEQ)


def shared(k, env=None):
    """Programs that share buffers with it may lose recorded events, but nothing else."""
    k.start_daemon()
    k.record(channel=ROOMY)
    (consumer,) = kymotest.consumers(k)
    app = scribbler(k, env=env)
    others_meanwhile(k, app, env)
    scribbled(k, app)
    lives(k, consumer)
    k.kymo("stop", "s", status=None)
    k.kymo("destroy", "s", status=None)
    trace = k.record("emit:*", session="after")
    k.app("emit", "-n", N)
    k.kymo("stop", "after")
    events = kymotest.check_counts(k, trace, N)
    equal(len(check_values(events)), N, "events of the session after that")


def test_shared_buffers(k):
    shared(k)


def test_shared_buffers_without_rseq(k):
    shared(k, WITHOUT_RSEQ)


def test_threads_buffers(k):
    k.start_daemon()
    k.record(channel=("--buffers=thread",))
    (consumer,) = kymotest.consumers(k)
    app = scribbler(k)
    others_meanwhile(k, app)
    scribbled(k, app)
    lives(k, consumer)
    k.kymo("destroy", "s", status=None)


def test_counted_when_given_up(k):
    """
    Events that programs record into a ring that was given up are counted; a count that is
    impossible subtracts nothing.
    """
    k.start_daemon()
    k.record("emit:*", "shop:*")
    program = Program(k, EMPTY)
    program.serve()
    (number,) = program.fds
    geometry = program.geometry[number]
    with mmap.mmap(program.fds[number][0], geometry.total) as memory:
        for ring in range(geometry.n_rings):
            struct.pack_into("<Q", memory, geometry.control_of(ring) + 64, 2**64 - 1000)
            struct.pack_into("<Q", memory, geometry.control_of(ring), 77 << 32 | geometry.block_size - 1)
    wait_for(lambda: k.daemon_log().count("has damaged this ring") == geometry.n_rings, "the rings to be given up")
    for _ in range(3):
        k.app("emit", "-n", 1000)
    counts = k.kymo_json("stop", "s")["sessions"][0]
    equal((counts["recorded"], counts["discarded"]), (0, 3000), "recorded and discarded")
    program.close()
    k.kymo("destroy", "s", status=None)


main()
