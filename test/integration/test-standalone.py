#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
KYMO_STANDALONE=DIR: without a daemon, a companion traces programs. It outlives them and leaves
nothing behind.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import time

import kymotest
from kymotest import APPS, check, check_counts, equal, integers, processes_with, read_trace, wait_for, without_sanitizers

PATIENCE = 0.5  # seconds that a program waits when it exits, docs/limits.md
NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
PRELOAD = str(kymotest.RUN_FROM / "src" / "preload" / "libkymo-libc.so")


def prepare(k):
    """
    Sets up an environment without a daemon and a run directory. The companions' run directories are
    below k.top, so that the test finds what is left.
    """
    tmp = k.top / "tmp"
    tmp.mkdir()
    del k.env["KYMO_RUNDIR"]
    k.env["TMPDIR"] = str(tmp)
    return k.top / "trace"


def to(trace, *rules, **more):
    rules = {"KYMO_STANDALONE_EVENTS": ",".join(rules)} if rules else {}
    return {"KYMO_STANDALONE": str(trace), **rules, **more}


def companions(k, name=""):
    """Returns the companion's processes: itself, the session daemon, the consumer."""
    names = ("kymo standalone", "kymo-sessiond", "kymo-consumerd")
    return [p for p in processes_with(k.mark) if any(n in kymotest.command_of(p) for n in names if name in n)]


def wait_gone(k, *traces):
    """Waits until the companion has exited, and nothing of it is left."""
    wait_for(lambda: not processes_with(k.mark), "the companion to end")
    equal(os.listdir(k.top / "tmp"), [], "left in the place of run directories")
    for trace in traces:
        check(not os.path.lexists(trace / ".kymo"), f"{trace} has a link to a companion still")


def untraced(k, *words, env, wrap=()):
    """The program runs as usual, except for one line."""
    done = k.run([*wrap, APPS / "emit", "-n", 10], env=env)
    equal(done.stdout, "records 10\nsignals 0\n", "output of the program")
    lines = done.stderr.splitlines()
    equal(len(lines), 1, f"lines on stderr: {done.stderr!r}")
    for word in ("kymo: not traced", "KYMO_STANDALONE", *words):
        check(str(word) in lines[0], f"no {word!r} in {lines[0]!r}")
    wait_for(lambda: not processes_with(k.mark), "the companion to end")
    equal(os.listdir(k.top / "tmp"), [], "left in the place of run directories")


def test_events(k):
    trace = prepare(k)
    done = k.run([APPS / "emit", "-t", 4, "-n", 2000], env=to(trace))
    equal(done.stderr, "", "stderr")
    wait_gone(k, trace)
    events = check_counts(k, trace, 8000)
    equal({(f["thread"], f["seq"]) for f in map(integers, events)}, {(t, s) for t in range(4) for s in range(2000)}, "events")
    equal(stat.S_IMODE(trace.stat().st_mode) & 0o027, 0, "mode of the trace: others may read or write it")


def test_channel_options(k):
    """The variable also accepts the sizes and kinds of buffers, and the blocking timeout."""
    trace = prepare(k)
    options = "subbuf-size=4K,num-subbuf=2,blocking-timeout=inf,buffers=thread"
    k.app("emit", "-n", 20000, env=to(trace, KYMO_STANDALONE_CHANNEL=options, KYMO_ALLOW_BLOCKING="1"))
    wait_gone(k, trace)
    events, discarded = read_trace(trace)
    equal((len(events), discarded), (20000, 0), "events of 8 KiB of buffers that programs wait for")
    check("vtid" in k.run(["babeltrace2", trace]).stdout.splitlines()[0], "threads' buffers name them")
    untraced(k, "there is no option 'subbuf-sise'", env=to(k.top / "other", KYMO_STANDALONE_CHANNEL="subbuf-sise=4K"))


def test_at_once(k):
    """When a program has exited, its events are in the trace."""
    trace = prepare(k)
    for i in range(20):
        begin = time.monotonic()
        k.app("emit", "-n", 100, env=to(trace / str(i), **(NO_RSEQ if i % 2 else {})))
        if time.monotonic() - begin < PATIENCE:
            equal(len(read_trace(trace / str(i))[0]), 100, "events in the trace right after the program's end")
    wait_gone(k)
    equal([len(read_trace(trace / str(i))[0]) for i in range(20)], [100] * 20, "events in the traces")


def test_hung(k):
    """A program does not wait for a companion that hangs."""
    trace = prepare(k)
    for name in ("kymo-consumerd", "kymo-sessiond"):
        app = k.spawn("emit", "-w", "-n", 100, env=to(trace / name))
        k.expect(app, "ready")
        k.let_go(app)
        k.read_until(app, "done")
        pid = companions(k, name)[0]
        kymotest.stop(pid)
        k.let_go(app)
        k.finish(app)
        os.kill(pid, signal.SIGCONT)
        wait_gone(k, trace / name)
        check_counts(k, trace / name, 100)


def test_without_rseq(k):
    trace = prepare(k)
    k.app("emit", "-t", 3, "-n", 1000, "-s", 200, env=to(trace, "emit:record", **NO_RSEQ))
    wait_gone(k, trace)
    check_counts(k, trace, 3000)


def test_rules(k):
    trace = prepare(k)
    k.app("emit", "-n", 1000, "-s", 50, env=to(trace, "no:thing", "emit:sig*"))
    wait_gone(k, trace)
    names = {e.name for e in read_trace(trace)[0]} if trace.exists() else set()
    check("emit:record" not in names, f"recorded without a rule: {names}")


def test_nothing_recorded(k):
    """Without events there is no trace: a directory that did not exist before is removed again."""
    trace = prepare(k)
    equal(k.run([APPS / "emit", "-n", 10], env=to(trace, "no:thing")).stderr, "", "stderr")
    wait_gone(k)
    check(not trace.exists(), "an empty trace was left")


def test_replaced(k):
    """Another directory that is in the trace's place at the end stays."""
    trace = prepare(k)
    k.run(["sh", "-c", f"{APPS / 'emit'} -n 10 && mv {trace} {trace}-moved && mkdir {trace}"], env=to(trace, "no:thing"))
    wait_gone(k)
    check(trace.exists(), "a directory that the companion has not made was removed")


def test_empty_directory(k):
    """A directory that exists already; one whose parents do not exist; and a relative path."""
    prepare(k)
    (k.top / "here").mkdir()
    k.run([APPS / "emit", "-n", 10], env=to("here"), cwd=k.top)
    k.run([APPS / "emit", "-n", 20], env=to("./a/b//c/"), cwd=k.top)
    wait_gone(k, k.top / "here", k.top / "a/b/c")
    check_counts(k, k.top / "here", 10)
    check_counts(k, k.top / "a/b/c", 20)


def test_killed(k):
    """All events whose tracepoint returned before SIGKILL are in the trace."""
    trace = prepare(k)
    app = k.spawn("emit", "-w", "-t", 2, "-n", 5000, env=to(trace))
    k.expect(app, "ready")
    k.let_go(app)
    k.read_until(app, "done")
    app.kill()
    k.finish(app, status=-signal.SIGKILL)
    wait_gone(k, trace)
    check_counts(k, trace, 10000)


def test_killed_group(k):
    """
    The companion is in its own process session: a signal to the program's process group does not
    reach it.
    """
    trace = prepare(k)
    app = k.spawn("emit", "-w", "-n", 500, env=to(trace), wrap=("setsid",))
    k.expect(app, "ready")
    k.let_go(app)
    k.read_until(app, "done")
    os.killpg(app.pid, signal.SIGKILL)
    k.finish(app, status=-signal.SIGKILL)
    wait_gone(k, trace)
    check_counts(k, trace, 500)


def test_forks(k):
    trace = prepare(k)
    n = int(k.app("processes", "forks", 20, env=to(trace)))
    wait_gone(k, trace)
    pids = {e.fields.split(",")[0] for e in check_counts(k, trace, n)}
    equal(len(pids), 21, "processes in the trace")


def test_execs(k):
    """
    Another program runs meanwhile: otherwise the companion ends if one that was executed gets no
    CPU for a second.
    """
    trace = prepare(k)
    other = k.spawn("emit", "-w", "-n", 1, env=to(trace))
    k.expect(other, "ready")
    equal(k.run([APPS / "family", "exec", 10], env=to(trace)).stderr, "", "stderr")
    k.let_go(other)
    k.read_until(other, "done")
    k.let_go(other)
    k.finish(other)
    wait_gone(k, trace)
    equal(len(read_trace(trace)[0]), 51, "events")


def test_two_at_once(k):
    """
    Programs that start together have one companion and one trace; the first one that exits removes
    nothing.
    """
    trace = prepare(k)
    apps = [k.spawn("emit", "-w", "-p", i, "-n", 1000, env=to(trace)) for i in range(4)]
    for app in apps:
        k.expect(app, "ready")
    # Companions that started too late exit soon.
    wait_for(lambda: len(companions(k)) == 3, lambda: f"three processes of one companion: {companions(k)}")
    for app in apps:
        k.let_go(app)
        k.read_until(app, "done")
        k.let_go(app)
        k.finish(app)
    wait_gone(k, trace)
    events = check_counts(k, trace, 4000)
    equal({integers(e)["process"] for e in events}, set(range(4)), "programs")


def test_two_traces(k):
    """Two directories are two traces, although the programs run at the same time."""
    trace = prepare(k)
    traces = [k.top / f"trace{i}" for i in range(2)]
    apps = [k.spawn("emit", "-w", "-n", 100 + i, env=to(t)) for i, t in enumerate(traces)]
    for app in apps:
        k.expect(app, "ready")
    for app in apps:
        k.let_go(app)
        k.read_until(app, "done")
        k.let_go(app)
        k.finish(app)
    wait_gone(k, *traces)
    for i, t in enumerate(traces):
        check_counts(k, t, 100 + i)


@without_sanitizers
def test_children_elsewhere(k):
    """
    A shell whose library made the path absolute: its programs find the trace from any directory.
    """
    prepare(k)
    (k.top / "sub").mkdir()
    k.run(["sh", "-c", f"cd sub && {APPS}/emit -n 30 && cd / && {APPS}/emit -n 40"], env=to("trace", "emit:*", LD_PRELOAD=PRELOAD), cwd=k.top)
    wait_gone(k, k.top / "trace")
    check_counts(k, k.top / "trace", 70)


LOOK = r"""
import json, os, signal
try:
    os.waitpid(-1, os.WNOHANG)
    children = "some"
except ChildProcessError:
    children = "none"
print(json.dumps({"children": children, "pending": sorted(signal.sigpending()),
    "fds": sorted(os.listdir("/proc/self/fd")),
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))}))
"""


@without_sanitizers
def test_guest(k):
    """The program finds no child, signal or descriptor that it would not have otherwise."""
    trace = prepare(k)
    block = ["python3", "-c", "import signal, os, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD]);"
        "os.execvp(sys.argv[1], sys.argv[1:])"]  # a signal that arrives is then pending
    look = ["python3", "-c", LOOK]
    wanted = json.loads(k.run([*block, *look]).stdout)
    got = json.loads(k.run([*block, "env", f"LD_PRELOAD={PRELOAD}", *look], env=to(trace)).stdout)
    wait_gone(k, trace)
    equal(got, wanted, "what the program sees of itself")
    check(read_trace(trace)[0], "nothing was recorded: nothing was tested")


def test_companion(k):
    """It has nothing of the program's: descriptors, directory, process session."""
    trace = prepare(k)
    app = k.spawn("emit", "-w", "-n", 10, env=to(trace), wrap=("sh", "-c", 'exec 7</etc/passwd; exec "$@"', "-"))
    k.expect(app, "ready")
    links = {link for _, link, _ in kymotest.descriptors(app.pid)}
    check("/etc/passwd" in links and len(links) >= 3, f"descriptors of the program: {links}")
    for pid in companions(k):
        has = {link for _, link, _ in kymotest.descriptors(pid)}
        equal(has & links, set(), f"descriptors that {kymotest.command_of(pid)} has of the program")
        check(os.getsid(pid) != os.getsid(app.pid), f"{kymotest.command_of(pid)} is in the program's session")
        equal(os.readlink(f"/proc/{pid}/cwd"), "/", f"directory of {kymotest.command_of(pid)}")
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)
    wait_gone(k, trace)


def kill_one(k, name):
    """
    Kills one of the companion's processes while the program runs; returns the trace, which has all
    events before the kill.
    """
    trace = prepare(k)
    app = k.spawn("emit", "-w", "-n", 1000, env=to(trace))
    k.expect(app, "ready")
    k.let_go(app)
    k.read_until(app, "done")
    found = companions(k, name)
    equal(len(found), 1, f"processes of {name}")
    os.kill(found[0], signal.SIGKILL)
    wait_for(lambda: not kymotest.alive(found[0]), f"{name} to end")
    k.let_go(app)
    k.finish(app)
    wait_for(lambda: not processes_with(k.mark), "the companion to end")
    equal(len(check_counts(k, trace, 1000)), 1000, "events")
    return trace


def test_companion_killed(k):
    """The next companion removes what a killed one leaves behind."""
    rundir = kill_one(k, "kymo standalone") / ".kymo"
    check(os.listdir(os.readlink(rundir)), "nothing was left behind")
    k.app("emit", "-n", 10, env=to(k.top / "next"))
    check(not rundir.exists(), "the killed companion's run directory is still there")
    wait_gone(k, k.top / "next")


def test_terminated(k):
    """
    A service manager sends SIGTERM to all processes of a service, and the program still emits
    events.
    """
    trace = prepare(k)
    app = k.spawn("emit", "-w", "-n", 1000, env=to(trace))
    k.expect(app, "ready")
    for pid in companions(k):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(pid, number)
    k.rundir = pathlib.Path(os.readlink(trace / ".kymo"))
    for _ in range(2):  # when the daemon replies again, it has received its signals
        equal(k.request(command="status", session="standalone")["session"]["state"], "started", "the session's state")
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)
    wait_gone(k, trace)
    check_counts(k, trace, 1000)


def test_daemon_killed(k):
    wait_gone(k, kill_one(k, "kymo-sessiond"))


def test_daemon_killed_before_consumer_runs(k):
    """
    The consumer gets no CPU until the daemon is killed. It cannot reply to the first request, and
    still follows the later ones: the buffers of a new program are among them.
    """
    trace = prepare(k)
    env = to(trace, KYMO_STANDALONE_CHANNEL="buffers=process")
    first = k.spawn("emit", "-w", "-n", 1000, env=env)
    k.expect(first, "ready")
    (consumer,) = companions(k, "kymo-consumerd")
    (daemon,) = companions(k, "kymo-sessiond")
    kymotest.stop(consumer)
    k.let_go(first)
    k.read_until(first, "done")
    k.let_go(first)
    k.finish(first)  # the daemon asks the consumer to write the events of this program
    second = k.spawn("emit", "-w", "-n", 1000, env=env)
    k.expect(second, "ready")
    k.let_go(second)
    k.read_until(second, "done")
    os.kill(daemon, signal.SIGKILL)
    wait_for(lambda: not kymotest.alive(daemon), "the daemon to end")
    os.kill(consumer, signal.SIGCONT)
    k.let_go(second)
    k.finish(second)
    wait_gone(k, trace)
    check_counts(k, trace, 2000)


def test_consumer_killed(k):
    wait_gone(k, kill_one(k, "kymo-consumerd"))


def test_goes_on(k):
    """A program whose companion is killed during its work exits as usual."""
    trace = prepare(k)
    app = k.spawn("emit", "-w", "-t", 2, "-n", 200000, env=to(trace))
    k.expect(app, "ready")
    k.let_go(app)
    for pid in companions(k):
        with contextlib.suppress(ProcessLookupError):  # the other processes notice it, and exit
            os.kill(pid, signal.SIGKILL)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)


def test_not_empty(k):
    trace = prepare(k)
    trace.mkdir()
    (trace / "file").write_text("mine")
    untraced(k, trace, "not empty", env=to(trace))
    equal(os.listdir(trace), ["file"], "what is in the directory")


def test_second_run(k):
    """A trace that was ended is not continued."""
    trace = prepare(k)
    k.app("emit", "-n", 10, env=to(trace))
    wait_gone(k, trace)
    untraced(k, trace, "not empty", env=to(trace))
    check_counts(k, trace, 10)


def test_removed(k):
    """
    A trace is removed while its companion waits for other programs: the next program starts a new
    companion.
    """
    trace = prepare(k)
    k.app("emit", "-n", 10, env=to(trace))
    wait_for(lambda: kymotest.removed(trace), "the trace to be removed")
    k.app("emit", "-n", 20, env=to(trace))
    wait_gone(k, trace)
    check_counts(k, trace, 20)


def test_bad_places(k):
    prepare(k)
    (k.top / "file").write_text("mine")
    untraced(k, k.top / "file", "Not a directory", env=to(k.top / "file"))
    untraced(k, "/proc/none", "No such file or directory", env=to("/proc/none"))
    untraced(k, "too long", env=to("x" * 5000))
    removed = ("sh", "-c", 'mkdir here && cd here && rmdir ../here && exec "$@"', "sh")
    untraced(k, "current directory was removed", env=to("out"), wrap=removed)
    untraced(k, "',,'", "--help", env=to(k.top / "new", ",,"))
    check(not (k.top / "new").exists(), "a directory was made for nothing")


def test_not_writable(k):
    prepare(k)
    (k.top / "closed").mkdir(mode=0o500)
    wrap = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
    untraced(k, "Permission denied", env=to(k.top / "closed" / "trace"), wrap=wrap)


def test_unheard(k):
    """
    No process reads the line with the reason: the program neither exits nor waits because of it,
    and no other process waits either.
    """
    prepare(k)
    (k.top / "file").touch()
    for kind in ("broken", "full", "limited"):
        end, to_err = os.pipe()
        wrap = []
        if kind == "broken":
            os.close(end)
        elif kind == "full":
            os.write(to_err, bytes(fcntl.fcntl(to_err, fcntl.F_GETPIPE_SZ)))
        else:
            to_err = os.open(k.top / "limit", os.O_WRONLY | os.O_CREAT)
            os.lseek(to_err, 4096, os.SEEK_SET)
            wrap = ["prlimit", "--fsize=4096"]
        with open(to_err, "wb") as err:
            done = subprocess.run([*wrap, APPS / "emit", "-n", "10"], env={**k.env, **to(k.top / "file")},
                                  stdout=subprocess.PIPE, stderr=err, text=True, timeout=kymotest.TIMEOUT)
            equal((done.returncode, done.stdout), (0, "records 10\nsignals 0\n"), f"program whose stderr is {kind}")
            wait_for(lambda: not processes_with(k.mark), "the companion to end")


def test_no_companion(k):
    """Only the library exists."""
    trace = prepare(k)
    lib = k.top / "lib"
    lib.mkdir()
    shutil.copy2(os.path.join(kymotest.LIBDIR, "libkymo.so.0"), lib)
    if os.path.exists("/usr/local/bin/kymo"):
        raise kymotest.Skip("Kymo is installed")
    untraced(k, trace, "'kymo' is not installed", env=to(trace, LD_LIBRARY_PATH=str(lib)))


def test_record_is_first(k):
    """The variable does not redirect kymo record, or the programs of a daemon."""
    trace = prepare(k)
    k.kymo("record", "-o", k.top / "recorded", APPS / "emit", "-n", 10, env=to(trace))
    check_counts(k, k.top / "recorded", 10)
    check(not trace.exists(), "there is a trace of the command")


def test_collector(k):
    """A daemon's own traced program belongs to the daemon."""
    trace = prepare(k)
    k.env["KYMO_RUNDIR"] = str(k.rundir)
    k.start_daemon(env=to(trace), collector=True)
    equal((companions(k, "kymo standalone"), trace.exists()), ([], False), "companion and trace of the collector")
    k.stop_daemon()
    wait_gone(k)


def test_off(k):
    trace = prepare(k)
    equal(k.run([APPS / "emit", "-n", 10], env=to(trace, KYMO_OFF="1")).stderr, "", "stderr")
    equal(k.run([APPS / "emit", "-n", 10], env=to("")).stderr, "", "stderr")
    check(not trace.exists(), "there is a trace")


kymotest.main()
