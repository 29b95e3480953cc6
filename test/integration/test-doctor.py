#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
`kymo doctor` finds each fault that prevents recording, says what to do, and changes nothing.
"""

import json
import grp
import os
import pathlib
import re
import shutil
import socket
import threading

import kymotest
from kymotest import CLI, LIBDIR, check, equal, need_mounts, without_sanitizers


def doctor(k, status, env=None, wrap=()):
    """Returns {check: [(state, text, advice)]}; the text output has the same lines."""
    before = files(k)
    found = json.loads(k.run([*wrap, CLI, "--json", "doctor"], status=status, env=env).stdout)
    done = k.run([*wrap, CLI, "doctor"], status=status, env=env)
    equal(files(k), before, "files")
    equal(done.stderr, "", "messages")
    by_name = {}
    for c in found["checks"]:
        by_name.setdefault(c["check"], []).append((c["state"], c["text"], c["advice"]))
        check(any(line.split()[:2] == [c["state"], c["check"]] for line in done.stdout.splitlines()), done.stdout)
        check(c["advice"] in done.stdout, c)
    kymotest.check_documented([*found, *found["checks"][0]], "doctor")
    states = [c["state"] for c in found["checks"]]
    equal((found["failures"], found["warnings"]), (states.count("fail"), states.count("warn")), "counts")
    return by_name


def files(k):
    return sorted((str(p), p.lstat().st_mode, p.lstat().st_mtime_ns) for p in k.top.rglob("*") if p.name not in ("sessiond.log", "state"))


def one(found, name, state, *words):
    """Checks that a check of that name has the state and the words."""
    matching = [f for f in found.get(name, []) if f[0] == state and all(w in f[1] + f[2] for w in words)]
    check(matching, f"{name}: wanted {state} {words} in {found.get(name)}")


def test_all_is_well(k):
    k.traces.mkdir()
    found = doctor(k, 0)
    one(found, "daemon", "ok", "none runs")
    one(found, "programs", "ok", str(pathlib.Path(CLI).resolve().parents[1] / "consumerd/kymo-consumerd"))
    one(found, "library", "ok", "libkymo.so.0")
    one(found, "rundir", "ok", str(k.rundir))
    check(not k.rundir.exists(), "a daemon was started")
    k.start_daemon()
    one(doctor(k, 0), "daemon", "ok", f"pid {k.daemon.pid}")


def test_run_directory(k):
    k.rundir.mkdir()
    k.rundir.chmod(0o777)
    one(doctor(k, 1), "rundir", "fail", "others can write", "go-w")
    k.rundir.rmdir()
    k.rundir.write_text("")
    one(doctor(k, 1), "rundir", "fail", "is no directory")
    for path, words in (("/tmp/" + "x" * 200, ["too long"]), ("relative", ["not an absolute path"]), (f"{k.top}/none/run", ["cannot be made", "No such file"]),
            (f"{k.rundir}/run", ["Not a directory"])):
        one(doctor(k, 1, env={"KYMO_RUNDIR": path}), "rundir", "fail", *words)
    if os.geteuid() == 0:
        k.rundir.unlink()
        k.rundir.mkdir()
        os.chown(k.rundir, 65534, 65534)
        one(doctor(k, 1), "rundir", "fail", "belongs to user 65534")
        k.top.chmod(0o755)
        k.rundir.chmod(0o500)
        wrap = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        one(doctor(k, 1, wrap=wrap), "rundir", "fail", "no socket can be made", "Permission denied")
        one(doctor(k, 1, wrap=wrap, env={"KYMO_RUNDIR": f"{k.top}/new"}), "rundir", "fail", "cannot be made", "Permission denied")


def test_daemon_dead_or_stopped(k):
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    k.daemon.kill()
    k.daemon.wait()
    k.daemon = None
    one(doctor(k, 1), "daemon", "fail", "was killed", "successor")
    k.start_daemon()
    k.kymo("destroy", "s")


def test_other_daemons(k):
    """A daemon of another version, and one that does not answer."""
    k.rundir.mkdir(mode=0o700)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(k.rundir / "control.sock"))
    server.listen()
    replies = [b'{"ok": true, "version": "99.1", "pid": 1}\n']

    def serve():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb") as f:
                while f.readline() and replies:
                    f.write(replies[0])
                    f.flush()

    thread = threading.Thread(target=serve)
    thread.start()
    one(doctor(k, 0), "daemon", "warn", "99.1", "restart")
    replies.clear()
    one(doctor(k, 1), "daemon", "fail", "does not answer", "'kill -CONT PID'")
    (k.rundir / "lock").write_text("4711\n")
    one(doctor(k, 1), "daemon", "fail", "(pid 4711) does not answer", "'kill -CONT 4711'", "'kill -9 4711'")
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()
    shutil.rmtree(k.rundir)


@without_sanitizers
def test_library_of_another_version(k):
    """A prefix whose library is another build's, or missing."""
    (k.top / "p" / "cli").mkdir(parents=True)
    (k.top / "p" / "tracer").mkdir()
    shutil.copy2(CLI, k.top / "p" / "cli" / "kymo")
    library = (pathlib.Path(LIBDIR) / "libkymo.so.0").read_bytes()
    mark = library.index(b"libkymo version ") + len(b"libkymo version ")
    (k.top / "p" / "tracer" / "libkymo.so.0").write_bytes(library[:mark] + b"9" + library[mark + 1 :])
    text = k.run([k.top / "p" / "cli" / "kymo", "--json", "doctor"], status=1, env={"LD_LIBRARY_PATH": ""}).stdout
    states = {(c["check"], c["state"]) for c in json.loads(text)["checks"]}
    check({("library", "warn"), ("programs", "fail")} <= states, states)
    # the dynamic loader takes the library of LD_LIBRARY_PATH, but none of another architecture
    (k.top / "other").mkdir()
    (k.top / "other" / "libkymo.so.0").write_bytes(library[:4] + b"\1" + library[5:])
    found = doctor(k, 0, env={"LD_LIBRARY_PATH": f"{k.top}/none::{k.top}/other:{k.top}/p/tracer"})
    one(found, "library", "warn", f"{k.top}/p/tracer/libkymo.so.0 (LD_LIBRARY_PATH)", "version 9")


def test_limits(k):
    few = ("sh", "-c", 'ulimit -n 256 && ulimit -f 1000 && exec "$@"', "sh")
    one(doctor(k, 0, wrap=few), "limits", "warn", "256 open files", "ulimit -Hn")
    one(doctor(k, 0, wrap=few), "limits", "warn", "512000 bytes")


def test_no_rseq(k):
    one(doctor(k, 0, env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}), "rseq", "warn", "no restartable sequences")


def test_clock_and_environment(k):
    found = doctor(k, 0, env={"KYMO_CLOCK": "monotonic", "KYMO_OFF": "1"})
    one(found, "clock", "warn", "CLOCK_MONOTONIC")
    one(found, "environment", "warn", "KYMO_OFF")
    check("environment" not in doctor(k, 0, env={"KYMO_OFF": "0", "KYMO_STANDALONE": ""}), "variables that are off")


def test_other_libexecdir(k):
    """The consumer is looked for where the session daemon looks for it."""
    found = doctor(k, 1, env={"KYMO_LIBEXECDIR": str(k.top)})
    one(found, "programs", "fail", "kymo-consumerd was not found", "unset KYMO_LIBEXECDIR")
    one(doctor(k, 0, env={"KYMO_LIBEXECDIR": ""}), "programs", "ok", "kymo-consumerd")


def test_without_sys_and_full_disk(k):
    need_mounts()
    (k.top / "disk").mkdir()
    hide = ("unshare", "-m", "sh", "-c", f'mount -t tmpfs none /sys && mount -t tmpfs -o size=1m none "{k.top}/disk" && exec "$@"', "sh")
    found = doctor(k, 1, wrap=hide, env={"KYMO_HOME": str(k.top / "disk")})
    one(found, "clock", "warn", "/sys is missing")
    # The daemon needs no mount of tracefs, so neither does the check.
    recorded = k.run([*hide, CLI, "record", "-o", k.top / "kernel", "-k", "sched_switch", "--", "true"], status=None).returncode == 0
    one(found, "kernel", "ok" if recorded else "warn", "events of the kernel can be recorded" if recorded else "cannot be recorded")
    one(found, "traces", "fail", "are free")
    # no room for a byte, or for a file; and a file system that does not report its size
    for size, fill in ("size=64k", 'head -c 1m /dev/zero >"$0/fill"'), ("nr_inodes=2", "true"):
        full = ("unshare", "-m", "sh", "-c", f'mount -t tmpfs -o {size} none "$0" && mkdir "$0/run"; {fill} 2>/dev/null; exec "$@"', str(k.top / "disk"))
        found = doctor(k, 1, wrap=full, env={"KYMO_RUNDIR": str(k.top / "disk" / "run"), "KYMO_HOME": str(k.top / "disk")})
        one(found, "rundir", "fail", "is full", "free some space")
        one(found, "traces", "fail", "No space left on device", "free some space")
    vast = ("unshare", "-m", "sh", "-c", 'mount -t ramfs none "$0" && exec "$@"', str(k.top / "disk"))
    one(doctor(k, 0, wrap=vast, env={"KYMO_HOME": str(k.top / "disk")}), "traces", "ok", "does not report")


@without_sanitizers
def test_incomplete_system(k):
    """The system lacks something that daemons need, as in a small container."""
    need_mounts()
    empty, read_only = "mount -t tmpfs -o nr_inodes=1 none {0}", "mount --bind {0} {0} && mount -o remount,ro,bind {0}"
    for hide, path, name, words in ((empty, "/proc", "environment", "/proc is not mounted"), (empty, "/dev", "environment", "/dev/null cannot be used"),
            (read_only, "/tmp", "rundir", "'kymo record' can make no directory")):
        wrap = ("env", "-u", "XDG_RUNTIME_DIR", "-u", "TMPDIR", "unshare", "-m", "sh", "-c", f'{hide.format(path)} && exec "$@"', "sh")
        done = k.run([*wrap, CLI, "doctor"], status=1)
        check(re.search(rf"^fail  {name} .*{re.escape(words)}", done.stdout, re.MULTILINE), done.stdout)


def test_pid_namespace(k):
    where = ("-p", "-f", "--mount-proc")
    kymotest.need_unshare(*where)
    one(doctor(k, 0, wrap=("unshare", *where)), "kernel", "warn", "initial PID namespace", "--pid=host")


def test_unwritable_traces(k):
    (k.top / "file").write_text("")
    for path in ("file", "file/here"):
        one(doctor(k, 1, env={"KYMO_HOME": str(k.top / path)}), "traces", "fail", "cannot be written", "Not a directory")


def test_relative_home(k):
    """Traces are below a relative HOME too, seen from the current directory."""
    env = {"HOME": "here", "KYMO_HOME": ""}
    one(doctor(k, 0, env=env), "traces", "ok", f"{pathlib.Path.cwd()}/here/kymo-traces")


def test_unprivileged(k):
    """Another user, whom a run directory of root's keeps out."""
    if os.geteuid() != 0:
        raise kymotest.Skip("needs root, to become another user")
    k.start_daemon()
    k.top.chmod(0o755)
    wrap = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    found = doctor(k, 1, wrap=wrap)
    one(found, "rundir", "fail", "belongs to user 0")
    group = grp.getgrgid((k.rundir / "control.sock").stat().st_gid).gr_name
    accepted = "root alone" if group == "root" else f"root and members of group '{group}'"
    one(found, "daemon", "fail", f"the session daemon in {k.rundir} is for {accepted}")
    done = k.run([*wrap, kymotest.CLI, "list"], status=1)
    check(f"permission denied: the session daemon in {k.rundir} is for {accepted}" in done.stderr, done.stderr)


kymotest.main()
