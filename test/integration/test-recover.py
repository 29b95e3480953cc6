#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Buffers in files (`kymo create --shm-path`): after everything was killed, `kymo recover` writes
their contents to the trace; also from copies of the files, made at any moment. KYMO_TEST_SEED: the
seed of the random numbers.
"""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import time

import kymotest
from emitcheck import by_thread
from kymotest import babeltrace, check, consumers, equal, processes_with, read_trace, rounds, wait_for

SEED = int(os.environ.get("KYMO_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
RNG = random.Random(SEED)
WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
ROOMY = ("--subbuf-size=1M", "--num-subbuf=8")
SMALL = ("--subbuf-size=16K", "--num-subbuf=4")


# ---- programs that will be killed


class Victim:
    """A program that records in two threads; its counters outlive it."""

    def __init__(self, k, number, **options):
        self.number, self.file = number, k.top / f"counters-{number}"
        self.file.write_bytes(bytes(4096))
        self.app = k.spawn("victim", "last", number, self.file, **options)
        k.expect(self.app, "recording")

    def counts(self):
        """Returns how many events of each thread have returned."""
        return struct.unpack("<2Q", self.file.read_bytes()[:16])


def session(k, *options, channel=ROOMY, output=True):
    """
    Creates and starts a session with buffers in files; returns their directory and the trace's.
    """
    shm, trace = k.top / "shm", k.traces / "s"
    k.kymo("create", "s", f"--shm-path={shm}", *(("-o", trace) if output else ("--no-output",)), *options)
    k.kymo("enable-channel", "channel0", *channel)
    k.kymo("enable-event", "*")
    k.kymo("start")
    return shm, trace


def kill_everything(k):
    """Kills daemon, consumer and programs, in a random order, at once."""
    killed = set()
    # a daemon that lives a moment longer may have started another consumer
    while pids := processes_with(k.mark):
        RNG.shuffle(pids)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.update(pids)
    # A process that is exiting has no environment any more, but still its locks.
    wait_for(lambda: not any(map(kymotest.alive, killed)), "the killed processes to exit")
    k.daemon = None
    for app in k.started:
        app.wait()


def some_time():
    end = time.monotonic() + RNG.random() * 0.15
    wait_for(lambda: time.monotonic() > end, "the moment")


def check_all(found, victims, discarded):
    """
    Checks that all events that had returned, and at most one that had not yet, are there, each once
    and in order, but for those that were discarded: a consumer that waits for the disk lets buffers
    become full.
    """
    missing = []
    for victim in victims:
        for thread, counted in enumerate(victim.counts()):
            seen = found.pop((victim.number, thread), [])
            what = f"victim {victim.number}, thread {thread} (KYMO_TEST_SEED={SEED})"
            equal(seen, sorted(set(seen)), f"events of {what}")
            check(not seen or seen[-1] <= counted, f"{what}: event {seen[-1:]} is in the trace, {counted} had returned")
            missing += [(victim.number, thread, n, counted) for n in sorted(set(range(counted)) - set(seen))]
    equal(dict(found), {}, "events of others")
    # of each thread one more, which had not returned
    most = len(missing) + 2 * len(victims)
    check(len(missing) <= discarded <= most, f"{len(missing)} events are missing (victim, thread, number, returned: {missing[:9]}), "
        f"{discarded} were discarded (KYMO_TEST_SEED={SEED})")


def recover(k, shm, *options):
    return k.kymo_json("recover", shm, *options)


def killed(k, *options, channel=ROOMY, env=None, trace=None):
    """Everything is killed, again and again; the trace is complete each time."""
    print(f"# KYMO_TEST_SEED={SEED}", flush=True)
    for _ in rounds():
        k.start_daemon()
        shm, out = session(k, *options, channel=channel)
        victims = [Victim(k, n, env=env) for n in range(2)]
        some_time()
        kill_everything(k)
        done = recover(k, shm)
        equal((done["damaged"], done["left_out"]), (0, 0), f"{done}")
        equal(pathlib.Path(done["output"]), out / trace if trace else out, "where the trace is")
        check(not shm.exists(), "what was recovered is still there")
        check_all(by_thread(read_trace(done["output"])[0]), victims, done["discarded"])
        shutil.rmtree(out)


def test_killed(k):
    killed(k)


def test_killed_with_small_buffers(k):
    """Positions have wrapped when everything is killed, and packets are written all the time."""
    killed(k, channel=("--subbuf-size=64K", "--num-subbuf=8", "--switch-timer=2ms"))


def test_killed_with_buffers_for_threads(k):
    killed(k, channel=("--buffers=thread", "--subbuf-size=512K", "--num-subbuf=4"))


def test_killed_without_rseq(k):
    killed(k, channel=("--subbuf-size=256K", "--num-subbuf=4"), env=WITHOUT_RSEQ)


def test_killed_with_buffers_for_processes(k):
    killed(k, channel=("--buffers=process", *ROOMY))


def test_killed_with_limited_files(k):
    killed(k, channel=(*ROOMY, "--tracefile-size=1M"))


def test_killed_in_overwrite_mode(k):
    """The events that only snapshots would have written go into the trace as well."""
    killed(k, channel=("--overwrite", *ROOMY))


def test_killed_flight_recorder(k):
    """A session for snapshots has no trace: recovery writes its events beside its snapshots."""
    killed(k, "--snapshot", channel=ROOMY, trace="recovered")


def test_killed_after_rotation(k):
    """
    Archives are complete, and recovery completes the present chunk; together they have all events.
    """
    k.start_daemon()
    shm, trace = session(k)
    victim = Victim(k, 0)
    for _ in range(2):
        some_time()
        k.kymo("rotate")
    some_time()
    kill_everything(k)
    done = recover(k, shm)
    # each chunk is a trace of its own: babeltrace2 merges them by time
    check_all(by_thread(read_trace(trace)[0]), [victim], done["discarded"])


def test_killed_record(k):
    """Also kymo record."""
    shm, out = k.top / "shm", k.top / "out"
    (k.top / "tmp").mkdir()  # for its run directory, which it cannot remove
    recording = [kymotest.CLI, "record", f"--shm-path={shm}", "-o", str(out), *ROOMY, "--"]
    victim = Victim(k, 0, env={"TMPDIR": str(k.top / "tmp")}, wrap=recording)
    some_time()
    # a process that notices the exit of another one ends the recording
    kymotest.stop(*processes_with(k.mark))
    kill_everything(k)
    done = recover(k, shm)
    check(not shm.exists(), "what was recovered is still there")
    check_all(by_thread(read_trace(out)[0]), [victim], done["discarded"])


def test_record(k):
    """
    kymo record that ends normally leaves no buffers; it refuses an unusable directory before it
    runs the command.
    """
    shm, out = k.top / "shm", k.top / "out"
    k.run([kymotest.CLI, "record", "--shm-path", shm, "-o", out, kymotest.APPS / "emit", "-n", 100])
    check(not shm.exists(), "buffers are left")
    equal(len(read_trace(out)[0]), 100, "events")
    done = k.run([kymotest.CLI, "record", "--shm-path", out, "-o", k.top / "other", "echo", "ran"], status=1)
    check(str(out) in done.stderr and not done.stdout, done)


def test_interrupted(k):
    """If a recovery fails, here because the disk is full, another one completes it."""
    kymotest.need_mounts()
    k.start_daemon()
    shm, trace = session(k)
    k.kymo("enable-channel", "ring", "--overwrite", *ROOMY)
    k.kymo("enable-event", "-c", "ring", "*")
    victim = Victim(k, 0)
    wait_for(lambda: victim.counts()[0] > 3000, "some events")
    kill_everything(k)
    # the same files, in a mount namespace in which the trace is on a small disk
    small = f"mount -t tmpfs -o size=100k none {k.traces} && cp -a {k.top}/kept/. {k.traces}"
    shutil.copytree(k.traces, k.top / "kept")
    done = k.run(["unshare", "-m", "sh", "-c", f"{small} && {kymotest.CLI} recover {shm}"], status=1)
    check("No space left" in done.stderr, done.stderr)
    recover(k, shm)
    found = by_thread(read_trace(trace)[0])
    # two channels; the victim may be killed after it has recorded an event in only one of them
    for seen in found.values():
        equal(seen, sorted(seen), "order")
        equal(seen[::2], list(range((len(seen) + 1) // 2)), "events")
        equal(seen[1::2], list(range(len(seen) // 2)), "events")
    check(min(map(len, found.values())) >= 2 * min(victim.counts()), "events are missing")


# ---- copies


def view(k, trace):
    """Reads a trace that may end anywhere, as a copy of a trace that is being written does."""
    text = k.run([kymotest.CLI, "view", trace]).stdout
    return [kymotest.Event(0, None, None, line) for line in text.splitlines()]


def copies(k, *options, channel=ROOMY, env=None):
    """
    Yields (counts before the copy, events in the trace then, events that a copy of the buffers
    holds, discarded events by then).
    """
    print(f"# KYMO_TEST_SEED={SEED}", flush=True)
    k.start_daemon()
    shm, trace = session(k, *options, channel=channel)
    victim = Victim(k, 0, env=env)
    for n in rounds():
        some_time()
        counted = victim.counts()
        copy, out = k.top / f"copy-{n}", k.top / f"out-{n}"
        subprocess.run(["cp", "-r", shm, copy], check=True)
        shutil.copytree(trace, k.top / f"trace-{n}")
        kymotest.stop(victim.app.pid)  # reading takes some time
        done = recover(k, copy, "-o", out)
        equal((done["damaged"], done["left_out"]), (0, 0), f"{done}")
        there = any(p.stat().st_size for p in (k.top / f"trace-{n}").rglob("metadata"))
        lost = k.kymo_json("status")["session"]["discarded"]
        yield counted, by_thread(view(k, k.top / f"trace-{n}") if there else []), by_thread(read_trace(out)[0]), lost
        for path in (copy, out, k.top / f"trace-{n}"):
            shutil.rmtree(path, ignore_errors=True)
        victim.app.send_signal(signal.SIGCONT)
    k.let_go(victim.app)
    k.finish(victim.app)
    k.kymo("destroy")
    check(not shm.exists(), "buffers are left")


def check_copies(k, *options, channel=ROOMY, env=None):
    for counted, written, held, lost in copies(k, *options, channel=channel, env=env):
        missing = []
        for thread, n in enumerate(counted):
            seen = held[0, thread]
            equal(seen, sorted(set(seen)), "events of a copy: each once, in order")
            missing += sorted(set(range(n)) - set(seen) - set(written[0, thread]))
        # A consumer that gets no CPU for a while lets full buffers discard events.
        check(len(missing) <= lost, f"{len(missing)} of {counted} events are neither in the trace nor in the copy, {lost} were discarded (KYMO_TEST_SEED={SEED}), as {missing[:5]}")


def test_copies(k):
    check_copies(k)


def test_copies_that_are_overtaken(k):
    """Buffers wrap while they are copied."""
    check_copies(k, channel=("--subbuf-size=4K", "--num-subbuf=32", "--read-timer=1ms"))


def test_copies_without_rseq(k):
    check_copies(k, channel=("--subbuf-size=256K", "--num-subbuf=4"), env=WITHOUT_RSEQ)


def test_copies_in_overwrite_mode(k):
    for counted, _, held, _ in copies(k, channel=("--overwrite", *ROOMY)):
        for thread, n in enumerate(counted):
            seen = held[0, thread]
            equal(seen, list(range(seen[0], seen[-1] + 1)), "events of a copy")
            check(seen[0] == 0 or len(seen) > 1000, f"only {len(seen)} events")
            check(seen[-1] >= n - 1, f"event {n - 1} is missing, {seen[-1]} is the last one")


def test_copies_of_small_rings(k):
    """The buffers are overwritten all the time: the records in a copy are whole."""
    for _, _, held, _ in copies(k, channel=("--overwrite", "--subbuf-size=4K", "--num-subbuf=4")):
        for seen in held.values():
            equal(seen, sorted(set(seen)), "events of a copy")


def test_of_a_living_session(k):
    """Without --output it is refused; with --output it is one more snapshot."""
    k.start_daemon()
    shm, trace = session(k)
    k.app("emit", "-n", 1000)
    done = k.kymo("recover", shm, status=1)
    check("in use" in done.stderr, done.stderr)
    equal(recover(k, shm, "-o", k.top / "out")["recovered"], 1000, "events")
    equal(len(read_trace(k.top / "out")[0]), 1000, "events")
    for pid in consumers(k):  # for a moment the daemon is its only user
        os.kill(pid, signal.SIGKILL)
    check("in use" in k.kymo("recover", shm, status=1).stderr, "the daemon lives")
    k.kymo("destroy")
    equal(len(read_trace(trace)[0]), 1000, "events")


def test_the_consumer_alone_has_it(k):
    """
    The daemon was killed: its consumer continues, and a successor takes over; then everything is
    killed.
    """
    k.start_daemon()
    shm, trace = session(k)
    k.app("emit", "-n", 1000)
    k.daemon.kill()
    k.daemon.wait()
    check("in use" in k.kymo("recover", shm, status=1).stderr, "the consumer lives")
    k.start_daemon()
    k.app("emit", "-n", 1000, "-p", 1)
    for pid in consumers(k):
        os.kill(pid, signal.SIGKILL)
    k.app("emit", "-n", 1000, "-p", 2)
    check("in use" in k.kymo("recover", shm, status=1).stderr, "the successor lives")
    kill_everything(k)
    recover(k, shm)
    equal(len(read_trace(trace)[0]), 3000, "events")


def check_successor(k, last_words=""):
    """last_words: of the daemon that is killed, in its journal."""
    k.start_daemon()
    shm, trace = session(k)
    k.app("emit", "-n", 1000)
    kill_everything(k)
    with (k.rundir / "sessions" / "s").open("a") as journal:
        journal.write(last_words)
    k.start_daemon()
    check(f"kymo recover {shm}" in k.daemon_log(), k.daemon_log())
    recover(k, shm)
    equal(len(read_trace(trace)[0]), 1000, "events")
    check(not shm.exists(), "the directory is still there")


def test_successor_of_everything(k):
    """A successor that finds no process left reports how to continue."""
    check_successor(k)


def test_successor_of_a_destruction(k):
    """Likewise if the session was being destroyed: its buffers may not be written out yet."""
    check_successor(k, '{"state":"ending"}\n')


# ---- the directory


def test_orderly_end(k):
    """The directory is removed with the session; it may exist before, if it is empty."""
    k.start_daemon()
    for made in (False, True):
        if made:
            (k.top / "shm").mkdir()
        shm, trace = session(k, channel=("--buffers=process", *ROOMY))
        equal(shm.stat().st_mode & 0o7777, 0o700, "mode of the directory")
        equal({p.stat().st_mode & 0o777 for p in shm.rglob("*") if p.is_file()}, {0o600}, "modes of files")
        equal(k.kymo_json("status")["session"]["shm_path"], str(shm), "what status says")
        check(f"buffers are files in {shm}" in k.kymo("status").stdout, "what status shows")
        for n in range(3):
            k.app("emit", "-n", 100, "-p", n)
        wait_for(lambda: not list(shm.glob("buffers/*")), "buffers of processes that ended to go")
        k.kymo("destroy")
        check(not shm.exists(), f"left: {list(shm.rglob('*'))}")
        equal(len(read_trace(trace)[0]), 300, "events")
        shutil.rmtree(trace)
    shm, trace = session(k)
    k.app("emit", "-n", 100)
    k.stop_daemon()
    check(not shm.exists(), f"left: {list(shm.rglob('*'))}")


def test_refused(k):
    """Unusable directories."""
    k.start_daemon()
    full = k.top / "full"
    (full / "x").mkdir(parents=True)
    for path, why in ((full, "not empty"), (k.top / "no" / "such", "No such file"), (full / "x/y/z", "No such file")):
        done = k.kymo("create", "s", f"--shm-path={path}", "--no-output", status=1)
        check(why in done.stderr, done.stderr)
    full.chmod(0o755)
    k.kymo("create", "s", f"--shm-path={full}", "--no-output", status=1)
    equal(full.stat().st_mode & 0o7777, 0o755, "the mode of a directory that was refused")
    everybodys = k.top / "everybodys"
    everybodys.mkdir()
    everybodys.chmod(0o1777)
    check("all users may write" in k.kymo("create", "s", f"--shm-path={everybodys}", "--no-output", status=1).stderr, "one like /dev/shm")
    equal(everybodys.stat().st_mode & 0o7777, 0o1777, "the mode of everybody's directory")
    check("has an empty argument" in k.kymo("create", "s", "--shm-path=", status=2).stderr, "an empty name")
    equal(k.request(command="create", session="s", output="", shm_path="a/b")["code"], "usage", "a relative path")
    k.kymo("create", "s", f"--shm-path={full / 'x'}", "--no-output")
    check("not empty" in k.kymo("create", "t", f"--shm-path={full / 'x'}", "--no-output", status=1).stderr, "one for two")
    used = k.traces / "used"
    used.mkdir(parents=True)
    (used / "file").touch()
    k.kymo("create", "t", "-o", used, f"--shm-path={k.top / 'new'}", status=1)
    check(not (k.top / "new").exists(), "left of a session that could not be made")


def test_full_disk(k):
    """Missing space is reported when the buffers are created, not when a program uses them."""
    kymotest.need_mounts()
    small = k.top / "small"
    small.mkdir()
    k.daemon = k.spawn_daemon(wrap=["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=2m none {small} && exec "$@"', "sh"])
    wait_for(k.answers, "the session daemon to answer")
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)
    k.kymo("create", "s", f"--shm-path={small / 's'}", "-o", k.traces / "s")
    k.kymo("enable-event", "*")
    k.kymo("start")
    k.app("emit", "-n", 100)
    check("No space left" in k.kymo("status").stdout, "status says why nothing is recorded")


# ---- damaged files


def left_behind(k, *options, channel=SMALL, n=200):
    """Returns the files of a session of n events that was killed before anything was written."""
    k.start_daemon()
    shm, trace = session(k, *options, channel=(*channel, "--switch-timer=0"))
    k.app("emit", "-n", n)
    kill_everything(k)
    return shm, trace


def attempt(k, shm, *options):
    """Recovers damaged files: the command ends normally, with a result or an error."""
    done = k.run([kymotest.CLI, "--json", "recover", shm, *options], status=None)
    check(done.returncode in (0, 1), f"exit {done.returncode}: {done.stderr}")
    check("Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr)
    if done.returncode:
        check(len(done.stderr.splitlines()) >= 1, "no reason was given")
        return None, done.stderr
    return kymotest.json.loads(done.stdout), done.stderr


def test_cut_off(k):
    """
    Each of the files, truncated to each of many sizes: it is refused, or skipped and reported; a
    reader can read what was recovered.
    """
    shm, _ = left_behind(k)
    for path in sorted(p for p in shm.rglob("*") if p.is_file()):
        size = path.stat().st_size
        for at in sorted({0, 1, 7, 8, 100, 128, 4095, 4096, size // 2, size - 1} - set(range(size, 5000))):
            copy, out = k.top / "copy", k.top / "out"
            shutil.copytree(shm, copy)
            os.truncate(copy / path.relative_to(shm), at)
            done, said = attempt(k, copy, "-o", out)
            what = f"{path.relative_to(shm)} cut at {at}: {done} {said}"
            if path.parent.name == "positions" or path.name == "memory":
                equal(done["recovered"], 200, what)  # not needed for the contents of the buffers
            # metadata may lack the description of an event
            elif path.parent.name != "metadata" or not done:
                check(not done or done["left_out"], what)
                check("damaged" in said or "left out" in said, what)
            if done and done["recovered"] and path.parent.name != "metadata":
                babeltrace(out)
            shutil.rmtree(copy)
            shutil.rmtree(out, ignore_errors=True)


def test_read_errors(k):
    """A file that cannot be read is not taken for a shorter one: a later attempt recovers all."""
    kymotest.need_program("strace", "strace")
    shm, _ = left_behind(k)
    for path in (shm / "session", *(shm / "metadata").iterdir()):
        wrap = ["strace", "-f", "-q", "-o", "/dev/null", "-P", path, "-e", "inject=read:error=EIO"]
        done = k.run([*wrap, kymotest.CLI, "recover", shm], status=1)
        check("Input/output error" in done.stderr, f"{path}: {done.stderr}")
    equal(recover(k, shm)["recovered"], 200, "recovered events")


def pretend(copy):
    """Makes a copy of a session's directory look like the directory itself."""
    st = (copy / "memory").stat()
    with open(copy / "memory", "r+b") as f:
        f.seek(24)  # src/abi/resume.h
        f.write(struct.pack("<QQ", st.st_dev, st.st_ino))


def test_random_bytes(k):
    """The files may contain anything. In the session's own trace, and in another directory."""
    print(f"# KYMO_TEST_SEED={SEED}", flush=True)
    shm, trace = left_behind(k, *RNG.choice(((), ("--snapshot",))))
    files = sorted(p.relative_to(shm) for p in shm.rglob("*") if p.is_file())
    trace.mkdir(exist_ok=True)
    shutil.copytree(trace, k.top / "trace")
    for n in rounds():
        copy, out = k.top / "copy", k.top / "out"
        shutil.copytree(shm, copy)
        pretend(copy)
        path = copy / RNG.choice(files)
        with open(path, "r+b") as f:
            size = path.stat().st_size
            for _ in range(RNG.choice((1, 10, 1000))):
                f.seek(RNG.choice((RNG.randrange(size), RNG.randrange(min(size, 8192)))))
                f.write(RNG.randbytes(RNG.choice((1, 8))))
        attempt(k, copy, *(("-o", out) if n % 2 else ()))
        shutil.rmtree(trace)
        shutil.copytree(k.top / "trace", trace)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)


def test_others_files(k):
    """Files of another session in place of this one's, links, and objects that are no files."""
    shm, _ = left_behind(k)
    mine = k.top / "mine"
    shm.rename(mine)
    shutil.rmtree(k.traces / "s")
    other, _ = left_behind(k)
    metadata = next(mine.glob("metadata/*")).name
    for path, theirs in (("buffers/1", "buffers/1"), (f"metadata/{metadata}", f"metadata/{next(other.glob('metadata/*')).name}")):
        copy = k.top / "copy"
        shutil.copytree(mine, copy)
        shutil.copy(other / theirs, copy / path)
        done, said = attempt(k, copy, "-o", k.top / "out")
        check(not done and "of another session" in said, f"{path}: {done} {said}")
        for make in (lambda p: p.symlink_to(other / theirs), os.mkfifo, os.mkdir):
            (copy / path).unlink()
            make(copy / path)
            done, said = attempt(k, copy, "-o", k.top / "out")
            check(not done, f"{path}: {done} {said}")
            (copy / path).rmdir() if (copy / path).is_dir() else (copy / path).unlink()
            (copy / path).touch()
        shutil.rmtree(copy)
        shutil.rmtree(k.top / "out", ignore_errors=True)


def test_no_such(k):
    """The named object does not exist, or cannot be recovered."""
    shm, trace = left_behind(k)
    check("no buffers" in k.kymo("recover", k.top, status=1).stderr, "another directory")
    check("no buffers" in k.kymo("recover", k.top / "none", status=1).stderr, "no directory")
    k.kymo("recover", status=2)
    check("has an empty argument" in k.kymo("recover", shm, "-o", "", status=2).stderr, "an empty name")
    shutil.copytree(shm, k.top / "copy")
    check("is a copy" in k.kymo("recover", k.top / "copy", status=1).stderr, "a copy")
    check("not empty" in k.kymo("recover", shm, "-o", trace.parent, status=1).stderr, "an output that is in use")
    if os.geteuid() == 0:
        os.chown(shm, 1, 1)
        check("another user's" in k.kymo("recover", shm, status=1).stderr, "a directory that could make root write elsewhere")
        os.chown(shm, 0, 0)
    trace.rename(k.traces / "t")
    check("No such file" in k.kymo("recover", shm, status=1).stderr, "a trace that was removed")
    (k.traces / "t").rename(trace)
    recover(k, shm)
    equal(len(read_trace(trace)[0]), 200, "events")


def test_without_trace(k):
    """A session that only counted."""
    k.start_daemon()
    shm, _ = session(k, output=False)
    k.app("emit", "-n", 100)
    kill_everything(k)
    check("wrote no trace" in k.kymo("recover", shm, status=1).stderr, "no place to write to")
    recover(k, shm, "-o", k.top / "out")
    equal(len(read_trace(k.top / "out")[0]), 100, "events")
    shutil.rmtree(shm)


def test_shortened_while_in_use(k):
    """
    A user who can write his buffers can also truncate them: neither daemon nor consumer ends, and
    the events of others are recorded.
    """
    k.start_daemon()
    shm, trace = session(k, channel=("--buffers=process", *SMALL))
    app = k.spawn("emit", "-n", 100, "-w")
    k.expect(app, "ready")
    (pid,) = consumers(k)
    (file,) = shm.glob("buffers/*")
    os.truncate(file, 0)
    app.kill()
    app.wait()
    k.app("emit", "-n", 100, "-p", 1)
    wait_for(lambda: not list(shm.glob("buffers/*")), "buffers of processes that ended to go")
    equal(consumers(k), [pid], "consumers")
    k.kymo("destroy")
    equal(len(read_trace(trace)[0]), 100, "events")


@kymotest.without_sanitizers
def test_confined(k):
    """
    The recovering process, perhaps root with files of other users, has no more permissions than a
    consumer.
    """
    shm, trace = left_behind(k)
    said, full = os.pipe()
    os.set_blocking(full, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(full, bytes(4096))
    os.set_blocking(full, True)
    recovery = subprocess.Popen([kymotest.RUN_FROM / "src/consumerd/kymo-consumerd", f"--recover={shm}"], env=k.env, stdout=full)
    k.started.append(recovery)
    os.close(full)
    # it cannot report its end, so it has not ended
    wait_for(lambda: not list(shm.iterdir()), "all to be recovered")
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{recovery.pid}/status").read_text().splitlines())
    if "Seccomp" in status:
        equal((status["Seccomp"], status["NoNewPrivs"]), ("2", "1"), "filter of system calls, no new privileges")
    with open(said, "rb") as f:
        check(f.read().strip(b"\0").startswith(b"recovered 200 "), "what the recovery says")
    equal(recovery.wait(kymotest.TIMEOUT), 0, "exit status")
    equal(len(read_trace(trace)[0]), 200, "events")


kymotest.main()
