#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Programs that create other processes, in every way; programs that close descriptors that they do not
know, become other users, or move to other namespaces. KYMO_TEST_FORKS: number of forks in a storm.
"""

import collections
import os
import pathlib
import shutil

from kymotest import APPS, LIBDIR, SANITIZED, SOURCE, Skip, check, check_counts, equal, integers, listener_of, main, need_mounts, need_unshare, wait_for, without_sanitizers

WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def record_forks(k, env=None):
    """
    Each child registers as a separate process before its first event: no event is lost or recorded
    twice.
    """
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
    """
    The program uses these descriptor numbers itself: the library uses none of them, and continues
    to record.
    """
    k.start_daemon()
    trace = k.record("processes:*")
    equal(k.app("processes", "closes").strip(), "unharmed", "the program's own pipe")
    k.kymo("stop", "s")
    equal(len(check_counts(k, trace, 100)), 100, "events recorded")


FORKS = int(os.environ.get("KYMO_TEST_FORKS", 200 if SANITIZED else 1000))
EACH = 5
ROOMY = ("--subbuf-size=1M", "--num-subbuf=8")


def run_family(k, *args, env=None, wrap=(), emitted=None, events="family:event"):
    """
    Records a run of apps/family.c: every event is in the trace, under the pid of the process that
    emitted it.
    """
    k.start_daemon()
    trace = k.record(events, channel=ROOMY, start=False)
    k.kymo("add-context", "-t", "vpid")
    k.kymo("start", "s")
    said = k.run([*wrap, APPS / "family", *args], env=env).stdout
    emitted = int(said) if emitted is None else emitted
    k.kymo("stop", "s")
    recorded = check_counts(k, trace, emitted)
    equal(len(recorded), emitted, "events recorded, none being discarded")
    pids = collections.Counter()
    for event in recorded:
        values = integers(event)
        equal(values["vpid"], values["pid"], f"the process of {event}")
        pids[values["pid"]] += 1
    return pids


# AddressSanitizer's allocator may stay locked in a child that is forked while another thread
# allocates.
@without_sanitizers
def test_storm(k):
    """
    Sixteen threads fork children of all kinds, while signal handlers record: no deadlock, and each
    event has its true pid.
    """
    pids = run_family(k, "storm", 16, FORKS)
    check(len(pids) > FORKS // 2, f"only {len(pids)} processes recorded")


@without_sanitizers
def test_storm_without_rseq(k):
    """The same with rings of threads."""
    run_family(k, "storm", 16, min(FORKS, 1000) // 5, env=WITHOUT_RSEQ)


def test_exec_loop(k):
    """The same process executes a program again and again: the trace has the events of each."""
    rounds = 100 if SANITIZED else 1000
    pids = run_family(k, "exec", rounds, emitted=rounds * EACH)
    equal(len(pids), 1, "processes")


def test_fork_in_handler(k):
    """A signal handler forks while the thread that it interrupts forks too."""
    run_family(k, "handler", 100)


def test_fork_while_linking(k):
    """A child whose parent had a thread in the dynamic linker."""
    run_family(k, "linker")


def test_raw_clone(k):
    """A raw clone child records nothing, and does not harm its parent when it exits."""
    run_family(k, "raw-clone")


def test_raw_clone_without_rseq(k):
    run_family(k, "raw-clone", env=WITHOUT_RSEQ)


def test_vfork(k):
    """Events between vfork and exec, which POSIX forbids, do no harm."""
    run_family(k, "vfork", 200)


def test_mount_namespace(k):
    """
    The listener does not prevent the program from changing its mount namespace, also as the first
    thing that the program does, when it has waited for no daemon.
    """
    need_mounts()
    for _ in range(20):
        k.app("family", "setns")
    run_family(k, "setns")


def test_current_directory(k):
    """
    The listener keeps no directory in use: a program that has left the one in which it was started
    allows to unmount it. The program's own directory stays, also if it has an unshare() of its own.
    """
    own = k.top / "own.c"
    own.write_text("int unshare(int flags);\nint unshare(int flags) { return (void)flags, 0; }\n")
    k.run(["cc", "-O2", "-rdynamic", "-D_GNU_SOURCE", f"-I{SOURCE}/include", "-o", k.top / "own",
        SOURCE / "test" / "integration" / "apps" / "emit.c", own, "-pthread"])
    for program in ("emit", k.top / "own"):
        app = k.spawn(program, "-n", 1, "-w", wrap=("sh", "-c", 'cd "$0" && exec "$@"', str(k.home)))
        k.expect(app, "ready")
        link = lambda task: os.readlink(task / "cwd")
        wait_for(lambda: (task := listener_of(app.pid)) and link(task) == "/", "the listener to leave the directory")
        equal(link(pathlib.Path(f"/proc/{app.pid}")), str(k.home), "current directory of the program")
        k.let_go(app)
        k.read_until(app, "done")
        k.let_go(app)
        k.finish(app)


@without_sanitizers  # sanitizers look for leaks in /proc
def test_chroot(k):
    """
    Recording continues in a root directory without the run directory. A child finds no daemon
    there, runs, and is not traced.
    """
    need_root()
    (k.top / "jail").mkdir()
    run_family(k, "chroot", k.top / "jail", emitted=2 * EACH)


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def run_in_namespaces(k, *options):
    need_mounts()
    need_unshare(*options)
    return run_family(k, "storm", 1 if SANITIZED else 2, 16, wrap=["unshare", *options])


def test_pid_namespace(k):
    """
    Contexts have the numbers that the program sees; the kernel gives the daemon those that the
    daemon sees.
    """
    pids = run_in_namespaces(k, "--fork", "--pid", "--mount-proc")
    check(1 in pids, f"the first process of the namespace did not record: {pids}")


def test_user_namespace(k):
    run_in_namespaces(k, "--user", "--map-root-user")


def test_all_namespaces(k):
    run_in_namespaces(k, "--user", "--map-root-user", "--fork", "--pid", "--mount-proc", "--net", "--ipc", "--uts", "--cgroup", "--mount")


SECURE = """
#include <kymo/tracepoint.h>
#include <stdio.h>
#include <sys/auxv.h>
int main(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	kymo_event(secure, event);
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Threads:", 8))
			printf("secure %d threads %d\\n",
				(int)getauxval(AT_SECURE), atoi(line + 8));
	return 0;
}
"""


@without_sanitizers
def test_time_namespace(k):
    """
    A program with another CLOCK_MONOTONIC is left out by name, where sessions use that clock, and
    is recorded where they use the machine's counter.
    """
    need_unshare("-T")
    other_time = ("unshare", "-T", "--fork", "--monotonic", "8640000")
    k.start_daemon(env={"KYMO_CLOCK": "monotonic"})
    out = k.record("emit:*")
    k.app("emit", "-p", 1, "-n", 100)
    k.run([*other_time, APPS / "emit", "-p", 2, "-n", 100])
    k.app("emit", "-p", 3, "-n", 100)
    check("time namespace" in k.kymo("status", "s").stdout, "status does not name the program")
    k.kymo("destroy", "s")
    events = check_counts(k, out, 200)
    check(events[-1].time - events[0].time < 3600 * 10**9, "times of other programs are those of the program")
    k.stop_daemon()
    k.start_daemon(env={"KYMO_CLOCK": "tsc"})
    out = k.record("emit:*", session="counter")
    k.run([*other_time, APPS / "emit", "-p", 2, "-n", 100])
    k.kymo("destroy", "counter")
    equal(len(check_counts(k, out, 100)), 100, "events")


def test_setuid(k):
    """
    A program with more rights than the user who started it: no listener thread, no event, and its
    environment is ignored.
    """
    need_root()
    k.top.chmod(0o755)
    source, app = k.top / "secure.c", k.top / "secure"
    source.write_text(SECURE)
    # By run path, because the environment is ignored.
    k.run(["gcc", f"-I{SOURCE / 'include'}", "-D_GNU_SOURCE", f"-Wl,-rpath,{LIBDIR}", "-o", app, source])
    setuid = shutil.copy(app, k.top / "setuid")
    shutil.chown(setuid, "nobody")
    os.chmod(setuid, 0o4755)
    k.start_daemon()
    trace = k.record("secure:*")
    equal(k.run([app]).stdout, "secure 0 threads 2\n", "the program as it is")
    done = k.run([setuid], env={"KYMO_DEBUG": "1"})
    if "secure 0" in done.stdout:
        raise Skip("this file system does not honour setuid")
    equal((done.stdout, done.stderr), ("secure 1 threads 1\n", ""), "the setuid program")
    k.kymo("stop", "s")
    equal(len(check_counts(k, trace, 1)), 1, "events recorded: those of the program that is not setuid")


main()
