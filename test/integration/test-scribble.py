#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A program writes random words into all memory that it shares with the tracer. The daemons survive,
and so do other programs and the program itself. With buffers for each process, and for other users
in any case, no event of other programs is lost or changed.

KYMO_TEST_STORES: number of words. KYMO_TEST_SEED: the seed of the random numbers.
"""

import contextlib
import mmap
import os
import random
import re
import signal
import struct
from types import SimpleNamespace

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
    reply = k.kymo_json("stop", "s", status=None)
    (counts,) = reply["sessions"]
    check(f"-p{app.pid}-" in k.daemon_log(), "the program has not damaged its buffers")
    check(counts["given_up"], f"nothing warns of the damage: {reply}")
    check("given up" in k.kymo("status", "s").stdout, "kymo status does not warn of the damage")
    others = all_of_others(k, trace, app, n * 2 * N)
    equal(counts["recorded"] - counts["damaged"], others.recorded, "events that are in the trace")
    equal(counts["discarded"], others.discarded, "discarded events")
    for path in trace.rglob(f"*-p{app.pid}-*"):
        equal((path.is_file(), path.parent.name), (True, "damaged"), f"where {path.name} is")
    lives(k, consumer)


def all_of_others(k, trace, app, emitted):
    """The readers agree on the events of all programs but app, and read all of them."""
    events = kymotest.check_counts(k, trace, emitted)
    equal(len(check_values(events)), len(events), "events of the others, whole")
    equal(k.kymo("view", trace).stdout.count("\n"), len(events), "events that kymo view reads")
    recorded, discarded = kymotest.check_streams(trace)
    return SimpleNamespace(recorded=recorded, discarded=discarded)


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


def write_nonsense(program):
    """Damages all rings of a program that is served; returns their number."""
    (number,) = program.fds
    geometry = program.geometry[number]
    with mmap.mmap(program.fds[number][0], geometry.total) as memory:
        for ring in range(geometry.n_rings):
            struct.pack_into("<Q", memory, geometry.control_of(ring) + 64, 2**64 - 1000)
            struct.pack_into("<Q", memory, geometry.control_of(ring), 77 << 32 | geometry.block_size - 1)
    return geometry.n_rings


def damage_all_rings(k):
    program = Program(k, EMPTY)
    program.serve()
    given_up = lambda: k.daemon_log().count("has damaged this ring")
    before = given_up()
    n_rings = write_nonsense(program)
    wait_for(lambda: given_up() == before + n_rings, "the rings to be given up")
    wait_for(lambda: ring_sets(k)[-1]["replaced"], "the set to be replaced")
    return program


def ring_sets(k):
    return k.kymo_json("status", "s")["session"]["channels"][0]["ring_sets"]


def set_apart(k, *limits):
    """
    Shared rings are damaged in the second chunk; later the consumer dies. A program that has these
    rings loses its events, which are counted; later ones get other rings.
    """
    k.start_daemon()
    trace = k.record("emit:*", "shop:*", channel=limits)
    early = k.spawn("emit", "-n", N, "-w")
    k.expect(early, "ready")
    k.app("emit", "-n", N)
    k.kymo("rotate", "s")
    k.app("emit", "-n", N)
    k.kymo("stop", "s")
    k.kymo("start", "s")
    program = damage_all_rings(k)
    apart = sorted(path.name for path in trace.rglob("damaged/*"))
    check(apart, "no file was set apart")
    k.let_go(early)
    k.read_until(early, f"records {N}")
    k.kymo("stop", "s")
    k.kymo("start", "s")
    (consumer,) = kymotest.consumers(k)
    os.kill(consumer, signal.SIGKILL)
    wait_for(lambda: kymotest.consumers(k) not in ([], [consumer]), "another consumer")
    k.app("emit", "-n", N)
    counts = k.kymo_json("stop", "s")["sessions"][0]
    events, _ = kymotest.read_trace(trace)
    equal(len(events), counts["recorded"] - counts["damaged"] - counts["removed"], "events that are in the trace")
    equal(counts["recorded"], 3 * N, "recorded events")
    check(0 < counts["damaged"] <= N, f"damaged: {counts}")
    equal(sorted(path.name for path in trace.rglob("damaged/*")), apart, "files that were set apart")
    _, discarded = kymotest.check_streams(trace, first=None)
    equal(discarded, N, "discarded events, which packets report")
    k.kymo("rotate", "s", status=None)
    program.close()
    k.let_go(early)
    k.finish(early)
    k.kymo("destroy", "s", status=None)


def test_set_apart(k):
    set_apart(k)


def test_set_apart_with_limited_files(k):
    set_apart(k, "--subbuf-size=16K", "--num-subbuf=16", "--tracefile-size=16K", "--tracefile-count=3")


def test_counted_when_given_up(k):
    """
    Events that programs record into a ring that was given up are counted; a count that is
    impossible subtracts nothing.
    """
    k.start_daemon()
    k.record("emit:*", "shop:*")
    early = [k.spawn("emit", "-n", 1000, "-w") for _ in range(3)]
    for app in early:
        k.expect(app, "ready")
    program = damage_all_rings(k)
    (geometry,) = program.geometry.values()
    words = f"(head {77 << 32 | geometry.block_size - 1:#x}, before that position 0, oldest 0 and 0)"
    equal(k.daemon_log().count(words), geometry.n_rings, "rings whose words are in the log")
    k.kymo("snapshot", "record")
    equal(k.daemon_log().count(words), 2 * geometry.n_rings, "the same, with those of the snapshot")
    for app in early:
        k.let_go(app)
        k.read_until(app, "records 1000")
    counts = k.kymo_json("stop", "s")["sessions"][0]
    equal((counts["recorded"], counts["discarded"]), (0, 3000), "recorded and discarded")
    program.close()
    for app in early:
        k.let_go(app)
        k.finish(app)
    k.kymo("destroy", "s", status=None)


def restart_daemon(k):
    fds = k.daemon_fds
    k.daemon.kill()
    k.daemon.wait()
    k.start_daemon()
    k.daemon_fds = fds


def test_replaced(k):
    """
    Programs that start after damage are recorded in full, also after the session daemon was killed
    (once with a journal that was compacted since the damage), and after further damage.
    """
    k.start_daemon()
    trace = k.record("emit:*", "shop:*")
    damage_all_rings(k).close()
    k.app("emit", "-p", 0, "-n", N)
    restart_daemon(k)
    k.app("emit", "-p", 1, "-n", N)
    kymotest.compact_journal(k)
    restart_daemon(k)
    k.app("emit", "-p", 3, "-n", N)
    equal([s["replaced"] for s in ring_sets(k)], [True, False], "the sets, replaced or not")
    k.kymo("rotate", "s")
    damage_all_rings(k).close()
    k.app("emit", "-p", 2, "-n", N)
    counts = k.kymo_json("stop", "s")["sessions"][0]
    equal((counts["recorded"], counts["discarded"], counts["damaged"]), (4 * N, 0, 0), "recorded, discarded and damaged")
    equal(len(check_values(kymotest.check_counts(k, trace, 4 * N))), 4 * N, "events of the trace")
    k.kymo("destroy", "s", status=None)


def test_replaced_in_an_earlier_version(k):
    """Compacted journals of earlier versions do not say which sets were replaced."""
    k.start_daemon()
    trace = k.record("emit:*", "shop:*")
    damage_all_rings(k).close()
    k.app("emit", "-p", 0, "-n", N)
    k.daemon.kill()
    k.daemon.wait()
    journal = k.rundir / "sessions" / "s"
    lines = journal.read_text().splitlines(keepends=True)
    check(any('{"replaced"' in line for line in lines), "no set was replaced")
    journal.write_text("".join(line for line in lines if '{"replaced"' not in line))
    fds = k.daemon_fds
    k.start_daemon()
    k.daemon_fds = fds
    k.app("emit", "-p", 1, "-n", N)
    counts = k.kymo_json("stop", "s")["sessions"][0]
    equal((counts["recorded"], counts["discarded"]), (2 * N, 0), "recorded and discarded")
    equal(len(check_values(kymotest.check_counts(k, trace, 2 * N))), 2 * N, "events of the trace")
    k.kymo("destroy", "s", status=None)


def damage_as(k, uid, n):
    """Programs of that user damage n rings, with those that replace damaged ones."""
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            os.setgid(uid)
            os.setuid(uid)
            seen = 0
            while n > 0:
                program = Program(k, EMPTY)
                program.serve()
                if max(program.fds) > seen:
                    seen = max(program.fds)
                    n -= write_nonsense(program)
                program.close()
            os._exit(0)
        os._exit(1)
    equal(os.waitpid(pid, 0)[1], 0, "status of the other user's programs")


def test_log_of_another_user(k):
    """The log has at most 20 lines a minute about buffers that one user damages."""
    if os.getuid():
        raise kymotest.Skip("programs of other users need root")
    k.top.chmod(0o755)
    k.start_daemon()
    k.record("shop:*")
    n = 24
    damage_as(k, 64871, n)
    wait_for(lambda: k.kymo_json("status", "s")["session"]["given_up"] >= n, "the rings to be given up")
    equal(k.daemon_log().count("has damaged this ring"), 20, "lines of the log")
    k.kymo("destroy", "s", status=None)


main()
