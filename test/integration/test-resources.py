#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A resource is exhausted, in the program or in a daemon: the program runs as usual, events are
recorded or counted, and everything works again when the resource is available.
"""

import contextlib
import mmap
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

import kymotest
from emitcheck import check_values, emitted
from kymotest import APPS, CLI, SESSIOND, Skip, check, check_counts, equal, main, need_mounts, need_program, need_unshare, open_fds, wait_for, without_sanitizers
from program import CAP_TSC, EMPTY, Program, ask

N = 200
NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def limited(option):
    """Returns a command that runs another one within a limit."""
    need_program("prlimit", "util-linux")
    return ["prlimit", option]


def emit(k, *args, wrap=(), status=0, env=None):
    done = k.run([*wrap, APPS / "emit", "-n", N, *args], status=status, env=env)
    equal((emitted(done.stdout), done.stderr), ((N, 0), ""), f"what the program says within {wrap}")


def stop_and_check(k, trace, at_least):
    stopped = k.kymo_json("stop", "s")["sessions"][0]
    events = check_counts(k, trace, stopped["recorded"] + stopped["discarded"])
    check_values(events)
    check(len(events) >= at_least, f"{len(events)} events, at least {at_least} must be there")
    return events


def test_no_descriptors(k):
    """
    Programs with few descriptors, or with none: those that can start at all do so, and exit as
    usual.
    """
    k.start_daemon()
    trace = k.record("emit:*")
    for n in range(4, 12):
        emit(k, "-p", n, wrap=limited(f"--nofile={n}"))
    emit(k, "-p", 99)
    events = stop_and_check(k, trace, N)
    check(sum(kymotest.integers(e)["process"] == 99 for e in events) == N, "the program without a limit was not recorded")


def test_size_of_files(k):
    """
    Buffers are files: their size follows the daemon's hard limit, but for a size that was asked
    for, which is too large. The soft limit does not matter.
    """
    for limit, limited_hard in ("102400:unlimited", False), ("1000000:1000000", True):
        k.start_daemon(wrap=limited(f"--fsize={limit}"))
        trace = k.record("emit:*")
        k.kymo("enable-channel", "-s", "s", "large", "--subbuf-size=1M")
        k.kymo("enable-event", "-s", "s", "-c", "large", "emit:*")
        emit(k)
        said = k.kymo("status", "s").stdout
        refused = [line for line in said.splitlines() if "channel 'large': cannot record 'emit:" in line]
        equal(any("File too large" in line and "ulimit -f" in line for line in refused), limited_hard, said)
        stopped = k.kymo_json("stop", "s")["sessions"][0]
        check_counts(k, trace, stopped["recorded"])
        equal(stopped["recorded"], N if limited_hard else 2 * N, "events recorded")
        k.kymo("destroy", "s")
        k.stop_daemon()
        shutil.rmtree(trace)


def test_processor_time(k):
    """A soft limit of processor time, as of a shell, does not end the daemons."""
    k.start_daemon(wrap=[*limited("--cpu=2:unlimited"), *limited("--rttime=2000000:unlimited")])
    k.record("emit:*")
    for pid in k.daemon.pid, *kymotest.consumers(k):
        rows = [line.split() for line in pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines()]
        equal([row[3:5] for row in rows if row[1:3] in (["cpu", "time"], ["realtime", "timeout"])],
            [["unlimited", "unlimited"]] * 2, "soft and hard limits")


@without_sanitizers
def test_little_stack(k):
    """
    The daemons raise a low limit of the stack, and the session daemon does not start if it cannot.
    """
    may_not = () if os.geteuid() else ("setpriv", "--inh-caps=-sys_resource", "--bounding-set=-sys_resource")
    k.start_daemon(wrap=[*limited("--stack=131072:unlimited"), *may_not])
    trace = k.record("emit:*")
    emit(k)
    equal(len(stop_and_check(k, trace, N)), N, "events recorded")
    k.stop_daemon()
    done = k.run([*limited("--stack=131072:131072"), *may_not, SESSIOND], status=1)
    equal(done.stderr, "kymo-sessiond: the limit of the stack is too low: raise it, 'ulimit -s 8192'\n", "the daemon's message")


def test_few_descriptors(k):
    """The session daemon starts with as many descriptors as one program needs, or says why not."""
    needs = "the limit of open files, 31, is too low: raise it, 'ulimit -n 1024'"
    done = k.run([*limited("--nofile=31"), CLI, "record", "-o", k.top / "few", APPS / "emit", "-n", N], status=1)
    check(needs in done.stderr, done.stderr)
    done = k.run([*limited("--nofile=32"), CLI, "record", "-o", k.top / "enough", APPS / "emit", "-n", N])
    check(f"{N} events recorded, 0 discarded" in done.stderr, done.stderr)


@without_sanitizers
def test_no_proc(k):
    """Without /proc, the session daemon does not start, and says why."""
    need_unshare("-m")
    done = k.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", SESSIOND], status=1)
    equal(done.stderr, "kymo-sessiond: /proc is not mounted: mount it, 'mount -t proc proc /proc'\n", "the daemon's message")


def test_no_null_device(k):
    """Without /dev/null, as in a new root directory, no daemon starts; commands say why."""
    need_unshare("-m")
    says = "/dev/null cannot be used: make it, 'mknod -m 666 /dev/null c 1 3'"
    for command in ([SESSIOND], [SESSIOND, "--daemonize"], [CLI, "record", "-o", k.top / "out", "true"], [CLI, "create", "s"]):
        done = k.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "sh", *command], status=1)
        check(says in done.stderr, f"{command}: {done.stderr}")


@without_sanitizers  # sanitizers look for leaks in /proc
def test_descriptors_run_out(k):
    """
    A program that cannot open any more files, as in a sandbox, continues to record, and to talk to
    the daemon, although the kernel does not let it poll so many either.
    """
    k.start_daemon()
    trace = k.record("emit:*")
    for i, most in enumerate((0, 1, 2)):
        if i:
            k.kymo("start", "s")
        app = k.spawn("emit", "-w", "-n", N, "-p", i)
        k.expect(app, "ready")
        resource.prlimit(app.pid, resource.RLIMIT_NOFILE, (most, most))
        k.kymo("enable-event", "-s", "s", f"other{i}:*")
        k.let_go(app)
        k.expect(app, f"records {N}")
        pids = [a["pid"] for a in k.ask("list-events", brief=True)["applications"]]
        equal(pids, [app.pid], f"programs that the daemon knows, {most} being the limit of descriptors")
        equal(len(stop_and_check(k, trace, (i + 1) * N)), (i + 1) * N, f"events recorded with a limit of {most} descriptors")
        k.let_go(app)
        k.finish(app)


@without_sanitizers
def test_stopped_without_descriptors(k):
    """Such a program heeds the session's end, also after it has received something else."""
    k.start_daemon()
    k.record("emit:*")
    app = k.spawn("emit", "-w", "-n", N)
    k.expect(app, "ready")
    resource.prlimit(app.pid, resource.RLIMIT_NOFILE, (0, 0))
    k.kymo("enable-event", "-s", "s", "other:*")
    k.kymo("stop", "s")
    k.let_go(app)
    k.expect(app, f"records {N}")
    k.let_go(app)
    k.finish(app)
    session = k.kymo_json("status", "s")["session"]
    equal((session["recorded"], session["discarded"], session["in_buffers"]), (0, 0, 0), "events of a session that was stopped")


@without_sanitizers
def test_no_memory(k):
    """Programs that may not map as much memory as the rings need."""
    k.start_daemon()
    trace = k.record("emit:*")
    for i, mib in enumerate((4, 6, 8, 12, 16, 24, 32, 64)):
        done = k.run([*limited(f"--as={mib << 20}"), APPS / "emit", "-n", N, "-p", i], status=None)
        plain = k.run([*limited(f"--as={mib << 20}"), APPS / "emit", "-n", N], env={"KYMO_OFF": "1"}, status=None)
        equal((done.returncode, done.stdout, done.stderr), (plain.returncode, plain.stdout, plain.stderr), f"the program with {mib} MiB, as against without tracing")
    warnings = k.kymo_json("status", "s")["warnings"]
    check(any("application emit" in w and "is not recorded: Cannot allocate memory" in w for w in warnings), f"status says {warnings}")
    emit(k, "-p", 99)
    stop_and_check(k, trace, N)


def test_many_channels(k):
    """A program has the buffers of 256 channels. kymo status says why it is not in another one."""
    k.start_daemon()
    options = {"subbuf-size": 4096, "num-subbuf": 2, "burst-size": 0}
    for i in range(5):
        ask(k, "create", session=f"s{i}", output=str(k.traces / f"s{i}"))
        for channel in range(64 if i < 4 else 1):
            ask(k, "enable-channel", session=f"s{i}", channel=f"c{channel}", **options)
            ask(k, "enable-event", session=f"s{i}", channel=f"c{channel}", patterns=["emit:*"])
        ask(k, "start", session=f"s{i}")
    emit(k)
    recorded = [k.kymo_json("stop", f"s{i}")["sessions"][0]["recorded"] for i in range(5)]
    equal((sum(recorded), recorded.count(0)), (256 * N, 1), f"events recorded: {recorded}")
    warnings = k.kymo_json("status", f"s{recorded.index(0)}")["warnings"]
    check(any("is not recorded: it has the buffers of as many channels as a program can have" in w for w in warnings), f"status says {warnings}")


SMALL = ("--subbuf-size=64K", "--num-subbuf=4")


@without_sanitizers
def test_buffers_that_grow(k):
    """
    They need more address space than a program may have: this program is recorded into buffers that
    do not grow. With more space than that of small programs, the warning says what needs less.
    """
    k.start_daemon()
    trace = k.record("emit:*", channel=(*SMALL, "--burst-size=64M"))
    k.run([*limited(f"--as={256 << 20}"), APPS / "emit", "-n", N])
    (rings,) = k.kymo_json("status", "s")["session"]["channels"][0]["ring_sets"]
    equal(rings["burst_size"], rings["size"], "size to which the program's buffers may grow")
    stopped = k.kymo_json("stop", "s")["sessions"][0]
    check_counts(k, trace, N)
    equal(stopped["recorded"] + stopped["discarded"], N, "events recorded and discarded")
    trace = k.record("emit:*", session="t", channel=(*SMALL, "--burst-size=512M"))
    k.run([*limited(f"--as={5 << 30}"), APPS / "emit", "-n", N])
    (rings,) = k.kymo_json("status", "t")["session"]["channels"][0]["ring_sets"]
    needed = rings["count"] * rings["burst_size"]
    check(needed <= (5 << 30) / 8 or any("--burst-size=0" in w for w in k.kymo_json("status", "t")["warnings"]), f"no warning that {needed} bytes are too much")


def without_descriptors(k, pid):
    """Prevents a daemon from opening anything; returns its previous limit."""
    return resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(open_fds(pid)), resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))


def test_daemon_without_descriptors(k):
    """
    Programs start and run, and commands succeed or end with a message; afterwards, everything is
    recorded.
    """
    k.start_daemon()
    trace = k.record("emit:*")
    emit(k, "-p", 1)
    before = without_descriptors(k, k.daemon.pid)
    emit(k, "-p", 2)
    done = k.run([CLI, "create", "other", "-o", k.traces / "other"], status=None)
    check(done.returncode == 0 or len(done.stderr.strip().splitlines()) == 1, f"create: {done.stderr!r}")
    resource.prlimit(k.daemon.pid, resource.RLIMIT_NOFILE, before)
    wait_for(k.answers, "the daemon to answer")
    emit(k, "-p", 3)
    k.kymo("set-session", "s")
    events = stop_and_check(k, trace, 2 * N)
    seen = {kymotest.integers(e)["process"] for e in events}
    check({1, 3} <= seen, f"programs recorded: {seen}")


def test_daemon_with_huge_limit(k):
    """No part iterates over all possible descriptors, or allocates memory for them."""
    highest = int(open("/proc/sys/fs/nr_open").read())
    if subprocess.run(["prlimit", f"--nofile={highest}", "true"], capture_output=True).returncode:
        highest = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    k.daemon = k.spawn_daemon(wrap=limited(f"--nofile={highest}"))
    wait_for(k.answers, "the daemon to answer")
    k.daemon_fds = open_fds(k.daemon.pid)
    trace = k.record("emit:*")
    emit(k, wrap=limited(f"--nofile={highest}"))
    equal(len(stop_and_check(k, trace, N)), N, "events recorded")
    pages = int(open(f"/proc/{k.daemon.pid}/statm").read().split()[1])
    check(pages * 4 < (1 << 20 if kymotest.SANITIZED else 32 << 10), f"the daemon takes {pages * 4} KiB")


@without_sanitizers
def test_little_address_space(k):
    """
    Rings for threads are so few that daemon, consumer and program have enough address space for
    them.
    """
    little = limited(f"--as={1 << 30}")
    k.daemon = k.spawn_daemon(wrap=little)
    wait_for(k.answers, "the daemon to answer")
    k.daemon_fds = open_fds(k.daemon.pid)
    trace = k.record("emit:*", channel=("--buffers=thread",))
    emit(k, wrap=little)
    equal(len(stop_and_check(k, trace, N)), N, "events recorded")


@without_sanitizers
def test_no_address_space_left(k, n=24):
    """
    Programs have more buffers than the consumer has address space for: the last sets are refused.
    The consumer goes on, and the programs before them lose nothing.
    """
    k.start_daemon("--max-memory-per-user=4G", wrap=limited(f"--as={512 << 20}"))
    trace = k.record("emit:*", channel=("--buffers=process", "--subbuf-size=64K", "--num-subbuf=4"))
    before = kymotest.consumers(k)
    # Sets of threads' rings have one size on all machines.
    apps = [k.spawn("emit", "-n", 1, "-p", p, "-w", env=NO_RSEQ) for p in range(n)]
    for app in apps:
        k.expect(app, "ready")
    said = k.kymo("status", "s").stdout
    check("Cannot allocate memory" in said, said)
    n_made = ring_sets(k)[0]["count"]
    check(5 < n_made < n, f"{n_made} programs have buffers")
    for app in apps:
        k.let_go(app)
        k.read_until(app, "done")
        k.let_go(app)
        k.finish(app)
    equal(kymotest.consumers(k), before, "the consumer")
    equal(len(stop_and_check(k, trace, 0)), n_made, "events, one of each program that has buffers")


@without_sanitizers
def test_daemon_without_memory(k):
    """
    A daemon without memory reports it to the affected users, and works when it has memory again.
    """
    k.start_daemon()
    trace = k.record("emit:*")
    emit(k, "-p", 1)
    size = int(open(f"/proc/{k.daemon.pid}/statm").read().split()[0]) * 4096
    before = resource.prlimit(k.daemon.pid, resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
    emit(k, "-p", 2)
    for i in range(20):
        done = k.run([CLI, "create", f"other{i}", "-o", k.traces / f"other{i}"], status=None)
        check(done.returncode == 0 or len(done.stderr.strip().splitlines()) == 1, f"create: {done.stderr!r}")
    check(k.daemon.poll() is None, "the daemon has ended")
    resource.prlimit(k.daemon.pid, resource.RLIMIT_AS, before)
    k.kymo("set-session", "s")
    emit(k, "-p", 3)
    stop_and_check(k, trace, 2 * N)


def threads_set(k, **options):
    """Returns a program that has a set of threads' rings, which it can misuse."""
    program = Program(k, EMPTY, caps=CAP_TSC, **options)
    program.serve()
    (number,) = program.fds
    return program, program.geometry[number], program.fds[number][0]


def ring_sets(k):
    return k.kymo_json("status", "s")["session"]["channels"][0]["ring_sets"]


def test_memory_taken_at_once(k):
    """
    What a program takes of threads' buffers beyond the user's limit does not stay: the set is
    withdrawn, also if the program has exited. Later programs are recorded in full.
    """
    k.start_daemon("--max-memory-per-user=96M")
    trace = k.record("emit:*", "shop:*")
    for exits in (False, True):
        program, geometry, fd = threads_set(k)
        os.posix_fallocate(fd, geometry.data, 256 << 20)
        if exits:
            program.close()
        wait_for(lambda: not ring_sets(k), "the set to be withdrawn")
        check("--max-memory-per-user" in k.kymo("status", "s").stdout, "kymo status does not say why")
        k.app("emit", "-p", int(exits), "-n", N, env=NO_RSEQ)
        wait_for(lambda: kymotest.check_streams(trace, growing=True)[0] == N * (1 + exits), "all events to be written")
        equal(ring_sets(k)[0]["replaced"], False, "whether the set of later programs was replaced")
        if not exits:
            program.close()
    k.kymo("stop", "s")
    equal(len(check_values(check_counts(k, trace, 2 * N))), 2 * N, "events")


def test_memory_that_was_never_taken(k):
    """
    A program writes control words as if it had filled 150 rings. Neither the consumer nor a
    snapshot reads them, which would allocate their memory.
    """
    k.start_daemon()
    k.record("emit:*", "shop:*", channel=("--num-subbuf=4", "--subbuf-size=256K"))
    program, geometry, fd = threads_set(k)
    n, used = 150, geometry.block_size - 160
    with mmap.mmap(fd, geometry.total) as memory:
        for ring in range(n):
            for block in range(geometry.n_blocks):
                struct.pack_into("<QQQ", memory, geometry.table_of(ring) + 64 * block, block, block, used)
            struct.pack_into("<Q", memory, geometry.control_of(ring), 3 << 32 | 3 * geometry.block_size)
        struct.pack_into("<Q", memory, 2048, n)
    in_use = os.fstat(fd).st_blocks * 512
    k.kymo("snapshot", "record", "-s", "s", "-o", k.traces / "snapshot", status=None)
    wait_for(lambda: k.daemon_log().count("has damaged this ring") >= n, "the rings to be given up")
    check(os.fstat(fd).st_blocks * 512 < in_use + (16 << 20), f"{in_use} bytes were in use, now {os.fstat(fd).st_blocks * 512}")
    program.close()
    k.kymo("destroy", "s", status=None)


def test_no_shared_memory_file_system(k):
    """/dev/shm is not needed."""
    need_mounts()
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=4k,ro none /dev/shm && exec "$0" "$@"']
    k.daemon = k.spawn_daemon(wrap=hidden)
    wait_for(k.answers, "the daemon to answer")
    k.daemon_fds = open_fds(k.daemon.pid)
    trace = k.record("emit:*")
    emit(k, wrap=hidden)
    equal(len(stop_and_check(k, trace, N)), N, "events recorded")


def test_full_run_directory(k):
    """The command says why it cannot record, in one line, although nobody can write it down."""
    need_mounts()
    disk = k.top / "full"
    disk.mkdir()
    full = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=64k none "{disk}"; dd if=/dev/zero of="{disk}/file" 2>/dev/null; exec "$0" "$@"']
    done = k.run([*full, CLI, "record", "-o", k.traces / "r", "--", APPS / "emit"], status=None, env={"TMPDIR": str(disk), "XDG_RUNTIME_DIR": ""})
    check(done.returncode and len(done.stderr.strip().splitlines()) == 1 and "full?" in done.stderr, f"the command says {done.stderr!r}")


def test_read_only_run_directory(k):
    """A daemon reports what it cannot create; programs run."""
    need_mounts()
    k.rundir.mkdir()
    read_only = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o ro none "{k.rundir}" && exec "$0" "$@"']
    done = k.run([*read_only, SESSIOND], status=1)
    check(len(done.stderr.strip().splitlines()) == 1 and str(k.rundir) in done.stderr, f"the daemon says {done.stderr!r}")
    emit(k, wrap=read_only)


def test_suspended_daemons(k):
    """The rings hold what is recorded while both daemons are stopped; later, it is in the trace."""
    k.start_daemon()
    trace = k.record("emit:*")
    app = k.spawn("emit", "-w", "-n", N, "-p", 1)
    k.expect(app, "ready")
    consumer = wait_for(lambda: [p for p in kymotest.processes_with(k.mark) if "kymo-consumerd" in kymotest.command_of(p)], "the consumer")[0]
    stopped = (k.daemon.pid, consumer)
    kymotest.stop(*stopped)
    k.let_go(app)
    k.expect(app, f"records {N}")
    emit(k, "-p", 2, env=kymotest.IMPATIENT)  # the daemon does not reply to it: it is not recorded, and not delayed
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    k.let_go(app)
    k.finish(app)
    emit(k, "-p", 3)
    events = stop_and_check(k, trace, 2 * N)
    seen = {kymotest.integers(e)["process"] for e in events}
    check({1, 3} <= seen, f"programs recorded: {seen}")


@contextlib.contextmanager
def memory_group(k, mib):
    """
    Creates a control group whose processes have limited memory, page cache included. Returns a
    command that runs another one in it.
    """
    unified = pathlib.Path("/sys/fs/cgroup/cgroup.controllers")
    top = unified.parent if unified.exists() else unified.parent / "memory"
    group = top / k.top.name
    try:
        group.mkdir()
        (group / ("memory.max" if unified.exists() else "memory.limit_in_bytes")).write_text(str(mib << 20))
    except OSError as e:
        if group.exists():
            group.rmdir()
        raise Skip(f"no control group that limits memory can be made: {e}") from e
    try:
        yield ["sh", "-c", f'echo $$ >"{group}/cgroup.procs" && exec "$0" "$@"']
    finally:
        for pid in kymotest.processes_with(k.mark):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not (group / "cgroup.procs").read_text(), "the group's processes to end")
        group.rmdir()


@without_sanitizers
def test_daemons_with_little_memory(k):
    """
    Daemons in a control group with less memory than the data that they write: the trace is as exact
    as usual, and the consumer keeps none of the data. (The kernel may kill it all the same, while
    the disk is slower than the events: then another one goes on.)
    """
    with memory_group(k, 24) as limited_group:
        k.daemon = k.spawn_daemon(wrap=limited_group)
        wait_for(k.answers, "the daemon to answer")
        k.daemon_fds = open_fds(k.daemon.pid)
        trace = k.record("emit:*", channel=("--subbuf-size=4M", "--num-subbuf=4"))
        each = 2 * 1000000
        n = 0
        written = lambda: k.kymo_json("status", "s")["session"]["recorded"]

        # The disk and the consumer's share of the processors decide how many are discarded.
        def emit_until_enough():
            nonlocal n
            k.app("emit", "-n", each // 2, "-t", 2)
            n += each
            return written() * 24 > 24 << 20

        wait_for(emit_until_enough, lambda: f"more events in the trace than the memory holds: {written()} of {n}")
        k.kymo("stop", "s")
        recorded, discarded = kymotest.check_streams(trace)
        equal(recorded + discarded, n, f"recorded ({recorded}) + discarded ({discarded})")
        consumer, = wait_for(lambda: kymotest.consumers(k), "the consumer")
        own = kymotest.private_mib(consumer)
        check(own < 4, f"the consumer has {own} MiB of its own memory")
        k.kymo("destroy", "s")
        k.stop_daemon()


def test_memory_that_is_not_overcommitted(k):
    """
    Where the kernel promises no more memory than there is, buffers have all of theirs when they are
    made: a program that finds none in an event would be killed.
    """
    need_mounts()
    mode = k.top / "overcommit_memory"
    mode.write_text("2\n")
    bound = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /proc/sys/vm/overcommit_memory && exec "$@"', mode)
    k.start_daemon(wrap=bound)
    for buffers in ("cpu", "thread"):
        trace = k.record("emit:*", session=buffers, channel=(f"--buffers={buffers}", "--subbuf-size=64K", "--num-subbuf=4"))
        emit(k, "-n", N)
        files = [f"/proc/{k.daemon.pid}/fd/{fd}" for fd in os.listdir(f"/proc/{k.daemon.pid}/fd")]
        sizes = [os.stat(f) for f in files if re.search("memfd:kymo-(rings|consumed)", os.readlink(f))]
        check(sizes, "the daemon has no memory of the session")
        equal([s.st_blocks * 512 for s in sizes], [s.st_size for s in sizes], "memory that is taken, of each file")
        k.kymo("stop", buffers)
        check_counts(k, trace, N)
        k.kymo("destroy", buffers)
    k.record("emit:*")
    check("grows to" not in k.kymo("status", "s").stdout, "status says that buffers grow")


@without_sanitizers  # the sanitizer library must be loaded first
def test_wall_clock_jumps(k):
    """
    The wall clock jumps days ahead, a year back, and back to the right time, for daemons, programs
    and commands: traces and timers are not affected.
    """
    jump = lambda seconds: (k.top / "wall-clock").write_text(f"{seconds:+}")
    k.env.update(LD_PRELOAD=str(APPS / "wall-clock.so"), WALL_CLOCK=str(k.top / "wall-clock"))
    jump(0)
    k.start_daemon()
    begin = time.time()
    trace = k.record("emit:*", channel=("--switch-timer=20ms",))
    app = k.spawn("emit", "-w", "-n", N)
    k.expect(app, "ready")
    recorded = lambda: k.kymo_json("status", "s")["session"]["recorded"]
    jumps = (3 * 86400, -400 * 86400, 0)
    for i, seconds in enumerate(jumps, 1):
        emit(k, "-p", 2 * i)
        jump(seconds)
        emit(k, "-p", 2 * i + 1)
        wait_for(lambda: recorded() == 2 * i * N, lambda: f"the timer to write what there is: {recorded()} of {2 * i * N}")
        k.kymo("snapshot", "record", "-s", "s")
    k.let_go(app)
    k.read_until(app, f"records {N}")
    k.let_go(app)
    k.finish(app)
    equal(len(stop_and_check(k, trace, 0)), (2 * len(jumps) + 1) * N, "events")
    text = k.run(["babeltrace2", "--clock-seconds", trace], env={"LD_PRELOAD": ""}).stdout
    times = [float(line[1:line.index("]")]) for line in text.splitlines()]
    check(begin - 1 < min(times) <= max(times) < time.time() + 1, f"times in the trace: {min(times)} to {max(times)}, the session began at {begin}")
    order = [kymotest.integers(e)["process"] for e in kymotest.read_trace(trace)[0]]
    equal(sorted(order[:-N]), order[:-N], "programs in the order in which they ran")


main()
