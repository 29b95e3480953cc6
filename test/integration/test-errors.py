#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An error has a message of one line and the right exit status, and does no harm."""

import os
import pathlib
import shutil
import subprocess

import answers
import kymotest
from kymotest import CLI, SESSIOND, Skip, check, check_streams, equal, wait_for

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def refused(k, *args, status=(1, 2), says=()):
    done = k.kymo(*args, status=status)
    for word in says:
        check(str(word) in done.stderr, f"kymo {' '.join(map(str, args))}: no {word!r} in {done.stderr!r}")
    return done.stderr


def daemon_refused(k, says, env=None, command=(), status=1):
    done = k.run([*command, SESSIOND], status=status, env=env)
    lines = done.stderr.strip().splitlines()
    check(len(lines) == 1, f"wanted one line, got {done.stderr!r}")
    for word in says:
        check(str(word) in lines[0], f"no {word!r} in {lines[0]!r}")


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root, to become another user")


def test_no_consumer(k):
    """An incomplete installation is recognized."""
    k.start_daemon(env={"KYMO_LIBEXECDIR": "/nonexistent"})
    check("kymo-consumerd was not found" in k.kymo("create", "s", status=1).stderr, "what is missing")


def test_second_daemon(k):
    daemon = k.start_daemon()
    daemon_refused(k, [daemon.pid], status=3)
    check(k.answers(), "the first daemon does not answer any more")


def test_one_directory_for_two(k):
    """Two sessions never write to one directory, under any of its names."""
    k.start_daemon()
    k.kymo("create", "first", "-o", k.traces / "same")
    os.symlink(k.traces / "same", k.traces / "other")
    for name in ("same", "same/"):
        refused(k, "create", "second", "-o", f"{k.traces}/{name}", says=["first", "another output directory"])
    refused(k, "create", "second", "-o", k.traces / "other", says=["choose another one"])  # a link is no directory
    k.kymo("destroy", "first")


def test_empty_variables(k):
    """A variable that is empty counts as absent: each part then looks in the same place."""
    need_root()
    k.top.chmod(0o755)
    done = k.run([*NOBODY, CLI, "list"], env={"KYMO_RUNDIR": "", "XDG_RUNTIME_DIR": "", "HOME": str(k.top)}, status=0)
    check("KYMO_RUNDIR" not in done.stdout, done.stdout)
    k.start_daemon(env={"KYMO_LIBEXECDIR": ""})
    k.kymo("create", "s", "-o", k.traces / "s")


def test_directory_of_another_user(k):
    """A user who keeps another user's XDG_RUNTIME_DIR, as behind `su`, gets the true reason."""
    need_root()
    k.top.chmod(0o755)
    k.rundir.mkdir(mode=0o700)
    env = {name: value for name, value in k.env.items() if name != "KYMO_RUNDIR"} | {"XDG_RUNTIME_DIR": str(k.rundir), "HOME": str(k.top)}
    for args, status, says in (("list",), 1, "set XDG_RUNTIME_DIR to this user's directory"), (("status", "--check"), 3, ""), (("doctor",), 1, "set XDG_RUNTIME_DIR"):
        done = subprocess.run([*NOBODY, CLI, *args], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=kymotest.TIMEOUT)
        text = done.stdout + done.stderr
        check(done.returncode == status and f"this user may not enter {k.rundir}/kymo" in text and says in text, f"{args}: {text}")


def test_stale_daemon(k):
    """A new daemon replaces the files that a killed one left."""
    k.start_daemon()
    k.daemon.kill()
    k.daemon.wait()
    check((k.rundir / "control.sock").exists(), "nothing stale was left: nothing is tested")
    k.start_daemon()


def test_run_directory(k):
    k.rundir.write_text("")
    daemon_refused(k, [k.rundir])
    daemon_refused(k, [], env={"KYMO_RUNDIR": str(k.top / ("long" * 40))})


def test_run_directory_forbidden(k):
    need_root()
    k.top.chmod(0o755)
    daemon_refused(k, [k.rundir], command=NOBODY)


def test_no_daemon(k):
    for command in (["start"], ["stop"], ["destroy"], ["enable-event", "a:b"], ["enable-channel", "c"], ["set-session", "s"]):
        refused(k, *command, says=["no session daemon"])
    check(not (k.rundir / "control.sock").exists(), "a daemon was started")


def test_no_successor(k):
    """-n starts no daemon, also if one is killed before it replies, and leaves a consumer."""
    k.start_daemon()
    k.record("none:such")
    kymotest.stop(k.daemon.pid)
    asks = subprocess.Popen([kymotest.CLI, "-n", "list"], env=k.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # it has sent its request when it sleeps with a socket; before, it finds no daemon
    wait_for(lambda: any("socket:" in link for link in kymotest.open_fds(asks.pid)), "the request")
    wait_for(lambda: "S" == pathlib.Path(f"/proc/{asks.pid}/stat").read_text().rpartition(")")[2].split()[0], "the command to wait")
    k.daemon.kill()
    k.daemon.wait()
    asks.wait(kymotest.TIMEOUT)
    check(not k.answers(), "a daemon was started")
    k.start_daemon()
    k.kymo("destroy", "--all")


def test_names(k):
    k.start_daemon()
    for name in ("..", ".hidden", "a/b", "a\nb", "\x1b[31m", "ü", "x" * 129, "a b"):
        text = refused(k, "create", name, "-o", k.traces / "t")
        check("\x1b" not in text, f"the escape sequence was printed: {text!r}")
    k.kymo("create", "x" * 128, "-o", k.traces / "t")
    for name, shown in (os.fsdecode(b"tr\xff"), r"tr\xff"), ("a b", "a b"):
        equal(refused(k, "view", name), f"kymo: there is no trace '{shown}' here\n", "what view says")


def test_usage(k):
    k.start_daemon()
    refused(k, "creat", status=2, says=["creat", "create"])
    refused(k, "create", "--outptu=x", status=2, says=["--output"])
    refused(k, "enable-event", status=2)
    k.kymo("create", "s", "-o", k.traces / "s")
    for args in (("destroy", ""), ("view", ""), ("recover", ""), ("enable-event", ""), ("record", "--", "")):
        refused(k, *args, status=2, says=["argument 1 is empty"])
    refused(k, "diff", "a", "", status=2, says=["argument 2 is empty"])
    k.kymo("record", "--", "true", "")
    (k.top / "profiles").mkdir()
    refused(k, "load", k.top / "profiles", says=["has no file *.json"])
    k.kymo("load", "--missing", k.top / "profiles")
    for size in ("0", "-1", "10x", "3T", ""):
        k.run([CLI, "enable-channel", "c", f"--subbuf-size={size}"], status=None)
        check(not k.kymo_json("status", "s")["session"]["channels"], f"a channel with --subbuf-size={size!r} was made")


def test_amounts(k):
    """Of an amount that cannot be, the message names the option, and the form or the bound."""
    k.start_daemon()
    trace = str(answers.Trace(answers.SPAN_EVENTS).write(k.top / "trace"))
    huge = "99999999999999999999"
    for args, says in (
        (("create", "s", "--max-disk=0"), "--max-disk: '0' is too small: it must be at least 1 byte"),
        (("create", "s", f"--keep-free={huge}"), f"--keep-free: '{huge}' is too large: it can be at most 9223372036854775807 bytes"),
        (("create", "s", "--snapshot", "--seconds=2m"), "--seconds: '2m' is not a number"),
        (("create", "s", "--set-url=exec:true", "--ship-rate=5"), "--ship-rate: '5' is too small: it must be at least 1024 bytes"),
        (("ship", trace, "exec:true", "--spool=1.5G"), "--spool: '1.5G' is not a size: write a number of bytes, or one with K, M or G"),
        (("receive", k.top / "received", "--max=x"), "--max: 'x' is not a size"),
        (("enable-channel", "c", "--subbuf-size=1MB"), "--subbuf-size: '1MB' is not a size"),
        (("enable-channel", "c", "--num-subbuf=0"), "--num-subbuf: '0' is too small: it must be at least 1"),
        (("enable-rotation", "--timer=0"), "--timer: '0' is too small: it must be at least 1us"),
        (("enable-rotation", "--size=1T"), "--size: '1T' is not a size"),
        (("snapshot", "record", "--max-size=0"), "--max-size: '0' is too small"),
        (("status", "--check", "--within=1d"), "--within: '1d' is not a time: write a number of seconds, or one with us, ms, s, m or h"),
        (("top", "--delay=2h"), "--delay: '2h' is too large: it can be at most 1h"),
        (("top", "--rounds=0"), "--rounds: '0' is too small"),
        (("view", trace, "--tail=-1"), "--tail: '-1' is not a number"),
        (("report", trace, "--detail=all"), "--detail: 'all' is not a number"),
        (("watch", "--count=0"), "--count: '0' is too small"),
        (("record", "--sample=fast", "--", "true"), "--sample: 'fast' is not a number"),
    ):
        refused(k, *args, status=2, says=[says])


def test_unknown(k):
    k.start_daemon()
    refused(k, "start", "nothing", says=["nothing"])
    refused(k, "stop")
    k.kymo("create", "s", "-o", k.traces / "s")
    refused(k, "create", "s", "-o", k.traces / "s2", says=["s"])
    refused(k, "enable-event", "-s", "other", "a:b", says=["other"])
    refused(k, "disable-event", "-s", "s", "no:rule", says=["channel0"])
    k.kymo("enable-channel", "channel0", "-s", "s")
    refused(k, "disable-event", "-s", "s", "no:rule", says=["no enabled rule"])
    refused(k, "enable-event", "-s", "s", "-l", "LOUD", "a:b", status=None, says=["LOUD"])


def test_patterns(k):
    """A pattern with a character that no event's name has is refused, wherever it is given."""
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    for pattern in ("a:b c", "*:b c", "a:b?", "a:[bc]", "a/b", "a:\u00e9", r"a:\*", "a:b, c:d", " a:b"):
        said = refused(k, "enable-event", "x:y," + pattern, says=["can match no event"])
        equal(len(said.splitlines()), 1, f"lines of {said!r}")
        refused(k, "enable-event", "*", "-x", pattern, says=["can match no event"])
    check(not k.kymo_json("status", "s")["session"]["channels"], "a refused pattern left a channel")
    refused(k, "record", "-e", "a b", "true", says=["'a b' can match no event"])
    for pattern in ("aA_.-0:b:c", "*", r"a:\b", "a.b-c:*_*", "some"):
        k.kymo("enable-event", pattern)


def test_json_errors(k):
    k.start_daemon()
    reply = k.kymo_json("start", "nothing", status=1)
    equal((reply["ok"], reply["code"]), (False, "not-found"), "error as JSON")


def test_output(k):
    k.start_daemon()
    there = k.traces / "there"
    there.mkdir(parents=True)
    (there / "file").write_text("")
    refused(k, "create", "a", "-o", there, says=[there])
    refused(k, "create", "a", "-o", there / "file" / "below", says=[there / "file"])
    refused(k, "create", "a", "-o", "/proc/no/such", says=["/proc/no/such"])
    equal(k.kymo_json("list")["sessions"], [], "sessions after all that")
    refused(k, "view", k.traces / "absent", says=["absent"])
    refused(k, "stat", there, says=[there])


def test_output_forbidden(k):
    need_root()
    k.traces.mkdir()
    for path in (k.top, k.home, k.traces):
        path.chmod(0o755)
    k.rundir.mkdir()
    os.chown(k.rundir, 65534, 65534)
    k.daemon = k.spawn_daemon(wrap=NOBODY)
    wait_for(lambda: k.rundir.joinpath("control.sock").exists() and k.answers(), "the daemon to answer")
    k.daemon_fds = kymotest.open_fds(k.daemon.pid)
    done = k.run([*NOBODY, CLI, "create", "s", "-o", k.traces / "s"], status=1)
    check(str(k.traces / "s") in done.stderr and "ermission" in done.stderr, f"says: {done.stderr}")


def test_other_user(k):
    """A user who is neither root nor in the group cannot control root's daemon."""
    need_root()
    k.top.chmod(0o755)
    k.start_daemon()
    for args in ["list"], ["view", "absent"]:
        done = k.run([*NOBODY, CLI, *args], status=1)
        check("and not for this user" in done.stderr, f"{args}: {done.stdout}{done.stderr}")


def test_trace_removed(k):
    """A trace is removed while its session records: commands say so, and what comes then counts."""
    k.start_daemon()
    trace = k.record("emit:*")
    k.app("emit", "-n", 100)
    wait_for(lambda: k.kymo_json("status", "s")["session"]["recorded"] == 100, "the events to be written")
    shutil.rmtree(trace)
    status = wait_for(lambda: (s := k.kymo_json("status", "s")["session"])["error"] and s, "status to report that the trace is gone")
    check(".watermark: No such file" in status["error"], status["error"])
    k.app("emit", "-n", 50)
    k.run([CLI, "stop", "s"], status=None)
    final = k.kymo_json("destroy", "s", status=1)["sessions"][0]
    equal((final["recorded"], final["discarded"], final["unwritten"]), (100, 0, 50), "events recorded, discarded, and not written")
    check("No such file" in final["error"], final["error"])
    trace = k.record("emit:*")
    k.app("emit", "-n", 100)
    k.kymo("stop", "s")
    shutil.rmtree(trace)
    equal(k.kymo_json("destroy", "s")["sessions"][0]["error"], "", "error after the trace of a stopped session was removed")


def test_disk_full(k):
    """
    Recording survives a full disk: the trace is readable, and the events that could not be written
    are counted.
    """
    disk = k.start_daemon_with_disk("1m")
    k.kymo("create", "s", "-o", disk / "s")
    k.kymo("enable-event", "-s", "s", "emit:*")
    k.kymo("start", "s")
    k.app("emit", "-n", 100000)
    error = wait_for(lambda: k.kymo_json("status", "s")["session"]["error"], "status to report the full disk")
    check(f"\n  error: {error}\n" in (listed := k.kymo("list").stdout), f"list does not name the problem: {listed}")
    check(f"fail  session     's': {error}\n" in (found := k.run([CLI, "doctor"], status=1).stdout), f"doctor does not name the problem: {found}")
    check(f"error: {error}\n" in (top := k.kymo("top", "s", "--rounds=1", "-d", "10ms").stdout), f"top does not say why there are no events: {top}")
    k.run([CLI, "stop", "s"], status=None)
    session = k.kymo_json("status", "s")["session"]
    check("No space left" in session["error"], f"status does not report the full disk: {session}")
    final = k.kymo_json("destroy", "s", status=1)["sessions"][0]
    reason = f"cannot write all events below {disk / 's'}: No space left on device"  # the count is in `unwritten`
    check(not final["unwritten"] or final["error"] == reason, f"the error is {final['error']!r}, not {reason!r}")
    copy = k.top / "copy"
    shutil.copytree(pathlib.Path(f"/proc/{k.daemon.pid}/root") / (disk / "s").relative_to("/"), copy)
    events, _ = kymotest.read_trace(copy)
    recorded, _ = check_streams(copy)
    equal(len(events), recorded, "events on the full disk that babeltrace2 reads")
    check(0 < recorded < 100000, f"{recorded} events written: the disk was not full")
    equal(final["recorded"], recorded, "events that destroy says were recorded")
    equal(recorded + final["discarded"] + final["unwritten"], 100000, "recorded + discarded + unwritten")


kymotest.main()
