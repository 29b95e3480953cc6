#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Several users on one machine: root's daemon with its group, users' own daemons, and both at the same
time. The others cannot reach what belongs to one user: the test tries every descriptor, mapping,
socket and file.

Runs in its own mount namespace, with an empty /run and its own users and groups. So it can use the
real default directories, and leaves the machine unchanged.
"""

import argparse
import contextlib
import ctypes
import errno
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import kymotest
from emitcheck import SCALE, check_values
from fuse import HungFiles
from kymotest import CLI, IMPATIENT, SESSIOND, check, equal, read_trace, wait_for
from program import Daemon, Program

GROUP = 64105
USERS = {"alice": 64101, "bob": 64102, "carol": 64103, "dave": 64104}
MEMBERS = ("carol", "dave")  # of group `tracing`
APP = str(kymotest.APPS / "emit")


class User:
    """Runs programs as a user of the machine, with a home directory, without KYMO_RUNDIR."""

    def __init__(self, k, name):
        self.k, self.name, self.uid = k, name, USERS.get(name, 0)
        self.home = k.top / name
        self.home.mkdir(mode=0o700)
        os.chown(self.home, self.uid, self.uid)
        self.env = {v: k.env[v] for v in ("LC_ALL", "LD_LIBRARY_PATH", "KYMO_REGISTER_TIMEOUT", "KYMO_TEST_MARK", "NO_COLOR")}
        self.env.update(HOME=str(self.home), PATH="/usr/bin:/bin", USER=name)

    def options(self):
        groups = [GROUP] if self.name in MEMBERS else []
        return dict(user=self.uid, group=self.uid, extra_groups=groups, env=self.env, cwd="/", text=True)

    def run(self, *command, status=0):
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, timeout=kymotest.TIMEOUT, **self.options())
        if status is not None:
            equal(done.returncode, status, f"status of {command} as {self.name}: {done.stdout}{done.stderr}")
        return done

    def kymo(self, *args, status=0):
        done = self.run(CLI, *args, status=status)
        if status:
            equal(len(done.stderr.splitlines()), 1, f"lines on stderr of kymo {args}: {done.stderr}")
        return done

    def spawn(self, *command):
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **self.options())
        self.k.started.append(process)
        return process

    def emit(self, number=0, n=100):
        """Starts a program that emits when it gets a line, and waits again before it exits."""
        app = self.spawn(APP, "-n", n, "-p", number, "-w")
        self.k.expect(app, "ready")
        return app

    def record(self, name, *rules):
        """Creates and starts a session of this user; returns its trace directory."""
        out = self.home / name
        self.kymo("create", name, "-o", out)
        self.kymo("enable-event", "-s", name, *(rules or ["emit:*"]))
        self.kymo("start", name)
        return out


def emitted(k, app):
    """Makes the application emit; it then waits for another line."""
    k.let_go(app)
    k.read_until(app, "done")


def ended(k, app):
    k.let_go(app)
    k.finish(app)


def numbers(trace):
    """Returns the number of records of each process in the trace; checks all records."""
    events, discarded = kymotest.read_trace(trace)
    equal(discarded, 0, "discarded events")
    counts = {}
    for process, _, _ in check_values(events):
        counts[process] = counts.get(process, 0) + 1
    return counts


def system_daemon(k, *args):
    """Starts root's daemon in its default directory."""
    k.top.chmod(0o755)
    k.env.pop("KYMO_RUNDIR")
    k.rundir = pathlib.Path("/run/kymo")
    k.remove_rundir()  # of a function that failed: its sessions would continue
    k.start_daemon(*args)


def own_daemon(user, rundir=None):
    """Returns the user's own daemon, which `kymo create` starts."""
    user.run(SESSIOND, "--daemonize")
    return int(user.run("cat", (rundir or user.home / ".kymo") / "lock").stdout)


def successor_of(pid, user):
    """Returns the daemon that replaces the user's killed one while the user has sessions."""
    def successor():
        text = (user.home / ".kymo" / "lock").read_text().strip()
        return int(text) if text and int(text) != pid and kymotest.alive(int(text)) else None
    return wait_for(successor, "the killed daemon to be replaced")


def end_own(pid):
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not kymotest.alive(pid), "a user's daemon to end")


def rings_of(pid):
    """Returns the inodes of the rings that a process has mapped or open."""
    found = set()
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        if "memfd:kymo-" in line:
            found.add(line.split()[4])
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that was joined may still be exiting
            found |= {str(st.st_ino) for _, link, st in kymotest.descriptors(f"{pid}/task/{task}") if "memfd:kymo-" in link}
    return found


def nice_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[16])


# ---- both daemons at once


def test_two_daemons(k):
    """
    Root's daemon and the user's own daemon record one program, each exactly; the death of either
    leaves the other exact.
    """
    system_daemon(k)
    alice, root = User(k, "alice"), User(k, "root")
    own = own_daemon(alice)
    theirs, mine = root.record("all"), alice.record("mine")
    app = alice.emit(1)
    emitted(k, app)
    ended(k, app)
    for user, name, out in ((root, "all", theirs), (alice, "mine", mine)):
        user.kymo("stop", name)
        equal(numbers(out), {1: 100}, f"events in the trace of {user.name}")
        user.kymo("destroy", name)

    theirs, mine = root.record("all2"), alice.record("mine2")
    apps = [alice.emit(2), root.emit(3)]
    k.daemon.kill()
    k.daemon.wait()
    for app in apps:
        emitted(k, app)
    alice.kymo("stop", "mine2")
    equal(numbers(mine), {2: 100}, "alice's daemon goes on when root's is dead")
    for app in apps:
        ended(k, app)

    k.start_daemon()
    root.kymo("destroy", "all2")
    equal(numbers(theirs), {2: 100, 3: 100}, "what was recorded without root's daemon")
    theirs = root.record("all3")
    alice.kymo("start", "mine2")
    app = alice.emit(4)
    os.kill(own, signal.SIGKILL)
    wait_for(lambda: not kymotest.alive(own), "alice's daemon to die")
    emitted(k, app)
    ended(k, app)
    root.kymo("stop", "all3")
    equal(numbers(theirs), {4: 100}, "root's daemon goes on when alice's is dead")
    own = successor_of(own, alice)
    alice.kymo("destroy", "mine2")
    equal(numbers(mine), {2: 100, 4: 100}, "what was recorded without alice's daemon")
    end_own(own)


def is_turned_away(user):
    """
    Returns true if the daemon disconnects root's program, which has access to every directory, at
    once. A silent program of the user would have one second.
    """
    intruder = Program(argparse.Namespace(rundir=user.home / ".kymo"), hello=False)
    begin = time.monotonic()
    equal(intruder.receive(), None, "what a silent program hears")
    intruder.close()
    return time.monotonic() - begin < 0.5


def test_own_daemon_is_for_its_user(k):
    """It has no programs of other users, not even root's; no other user can reach its sockets."""
    system_daemon(k)
    alice, bob, root = (User(k, name) for name in ("alice", "bob", "root"))
    own = own_daemon(alice)
    mine = alice.record("mine", "*")
    apps = [user.emit(number) for number, user in enumerate((alice, bob, root))]
    for app in apps:
        emitted(k, app)
    seen = {a["uid"] for a in json.loads(alice.kymo("--json", "list", "-u").stdout)["applications"]}
    equal(seen, {alice.uid}, "whose programs alice's daemon knows")
    for app in apps:
        ended(k, app)
    check(any(is_turned_away(alice) for _ in range(10)), "a program of another user that comes to her daemon")
    alice.kymo("destroy", "mine")
    equal(numbers(mine), {0: 100}, "events in alice's trace")
    equal((alice.home / ".kymo").stat().st_mode & 0o777, 0o700, "mode of her run directory")
    end_own(own)


# ---- root's daemon and its group


def test_rings_are_not_shared(k):
    """
    Programs of one user share rings, except root's; those of several users never do; each user has
    a trace.
    """
    system_daemon(k)
    alice, bob, root = (User(k, name) for name in ("alice", "bob", "root"))
    out = root.record("all")
    apps = {user.name: [user.emit(2 * number + i) for i in range(2)] for number, user in enumerate((alice, bob, root))}
    for pair in apps.values():
        for app in pair:
            emitted(k, app)
    rings = {name: [rings_of(app.pid) for app in pair] for name, pair in apps.items()}
    for name, (first, second) in rings.items():
        check(len(first) == len(second) == 2, f"{name}'s two programs map {first} and {second}")
        equal(first == second, name != "root", f"{name}'s programs share rings")
    equal(len(set().union(*(r for pair in rings.values() for r in pair))), 8, f"different rings: {rings}")
    for pair in apps.values():
        for app in pair:
            ended(k, app)
    root.kymo("destroy", "all")
    equal(numbers(out), {number: 100 for number in range(6)}, "events of all")
    equal({p.name for p in (out / "ust/uid").iterdir()}, {str(u.uid) for u in (alice, bob, root)}, "users in the trace")
    for user, mine in ((alice, {0, 1}), (bob, {2, 3}), (root, {4, 5})):
        equal(set(numbers(out / "ust/uid" / str(user.uid))), mine, f"programs in the trace of {user.name}")


def test_precedence(k):
    """
    Root's daemon gives itself precedence, unless an option forbids it or it has a nice value
    already. It does not pass precedence on; its session (autogroup) has it, too. Without
    precedence, it passes on its nice value.
    """
    system_daemon(k)
    k.stop_daemon()
    kept = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    except PermissionError:
        raise kymotest.Skip("precedence needs CAP_SYS_NICE") from None
    try:
        for given, precedence, own, inherited in ((0, True, -10, 0), (-7, False, -7, 0), (5, True, 5, 5), (0, False, 0, 0)):
            os.setpriority(os.PRIO_PROCESS, 0, given)
            k.start_daemon(wrap=["setsid"], precedence=precedence)
            k.kymo("create", "s", "--no-output")
            k.kymo("start")
            (consumer,) = kymotest.consumers(k)
            autogroup = pathlib.Path(f"/proc/{k.daemon.pid}/autogroup")
            equal([nice_of(k.daemon.pid), nice_of(consumer)], [own, inherited], "nice values of daemon and consumer")
            said = autogroup.read_text().split() if autogroup.exists() else []
            equal(said[-1:], [str(min(own, 0))] if said else [], "the nice value of the daemon's session")
            k.kymo("destroy")
            k.stop_daemon()
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, kept)


def test_members_of_the_group(k):
    """
    A member has sessions of all users' programs, with traces that belong to the member; a session
    of another user is refused by name.
    """
    system_daemon(k)
    alice, carol, dave = (User(k, name) for name in ("alice", "carol", "dave"))
    app = alice.emit(5)
    k.wait_registered(app)
    out = carol.record("hers")
    (consumer,) = kymotest.consumers(k)
    check(f"\nUid:\t{carol.uid}\t{carol.uid}\t{carol.uid}\t" in pathlib.Path(f"/proc/{consumer}/status").read_text(), "the user of the consumer")
    for file in ("mem", "fd/3", "environ"):
        done = carol.run("head", "-c", 1, f"/proc/{consumer}/{file}", status=1)
        check("Permission denied" in done.stderr, f"{file} of carol's consumer, which has descriptors of other users' buffers: {done.stderr}")
    check("alice" not in os.listdir("/run/kymo"), "directory of the daemon")
    emitted(k, app)
    ended(k, app)
    for args in (("status", "hers"), ("list-triggers", "-s", "hers"), ("watch", "hers"), ("stop", "hers"), ("destroy", "hers"), ("enable-event", "-s", "hers", "a:*"), ("enable-channel", "c", "-s", "hers")):
        text = dave.kymo(*args, status=1).stderr
        check("hers" in text and str(carol.uid) in text and "root" in text, f"kymo {args}: {text!r}")
    check("hers" not in dave.kymo("list").stdout, "dave sees carol's session")
    check("exists" in dave.kymo("create", "hers", "-o", dave.home / "x", status=1).stderr, "a name that is in use")
    dave.kymo("destroy", "--all")
    carol.kymo("destroy", "hers")
    equal(numbers(out), {5: 100}, "events in carol's trace")
    for path in [out, *out.rglob("*")]:
        equal((path.stat().st_uid, path.stat().st_mode & 0o007), (carol.uid, 0), f"owner and rights of others of {path}")


def test_buffers_in_files(k):
    """
    All users' programs record into root's files, which they cannot reach. The files are complete
    after everything was killed. A member cannot have such files.
    """
    system_daemon(k)
    alice, bob, carol, root = (User(k, name) for name in ("alice", "bob", "carol", "root"))
    files = root.home / "files"
    refused = carol.kymo("create", "hers", "--no-output", f"--shm-path={carol.home / 'files'}", status=1).stderr
    check("own user" in refused and not (carol.home / "files").exists(), refused)
    out = root.home / "all"
    root.kymo("create", "all", "-o", out, f"--shm-path={files}")
    root.kymo("enable-event", "emit:*")
    root.kymo("start")
    apps = [user.emit(number) for number, user in enumerate((alice, bob, root))]
    for app in apps:
        emitted(k, app)
    alice.run("ls", files, status=2)
    equal(len(list((files / "buffers").iterdir())), 3, "sets of buffers")
    for pid in kymotest.processes_with(k.mark):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not kymotest.processes_with(k.mark), "all to die")
    for app in (*apps, k.daemon):
        app.wait()
    k.daemon = None
    root.kymo("recover", files)
    equal(numbers(out), {0: 100, 1: 100, 2: 100}, "events of all")


def test_not_a_member(k):
    """Other users get the advice what to do; their own daemon works all the same."""
    system_daemon(k)
    bob = User(k, "bob")
    for args, status in ((("list",), 0), (("list", "-u"), 0), (("status",), 1), (("start", "s"), 1)):
        done = bob.kymo(*args, status=status)
        text = done.stdout + done.stderr
        for word in ("group", "tracing", "kymo create"):
            check(word in text, f"kymo {args}: no {word!r} in {text!r}")
    out = bob.record("own")
    app = bob.emit(1)
    emitted(k, app)
    ended(k, app)
    bob.kymo("destroy", "own")
    equal(numbers(out), {1: 100}, "events in bob's trace")
    end_own(int(bob.run("cat", bob.home / ".kymo" / "lock").stdout))


def test_other_group(k):
    """
    --group names the group that has control; if that group does not exist, only root has control,
    and the daemon reports it.
    """
    system_daemon(k, "--group=bob")
    bob, carol = User(k, "bob"), User(k, "carol")
    bob.record("his")
    bob.kymo("destroy", "his")
    check("group 'bob'" in carol.kymo("status", status=1).stderr, "the message does not name the group")
    k.stop_daemon()
    k.start_daemon("--group=nobodys")
    check("group 'nobodys' does not exist" in k.daemon_log(), k.daemon_log())
    check("for root alone" in bob.kymo("status", status=1).stderr, "the message does not say that only root has control")


def kernel_daemon(k):
    """Starts root's daemon, if it can record kernel events."""
    kymotest.need_tracefs("events/syscalls")
    system_daemon(k)


def test_kernel_members(k):
    """
    record -k of a member: root's daemon records the kernel, on the same clock, into files of the
    member's. Others read what is missing.
    """
    kernel_daemon(k)
    alice, carol = User(k, "alice"), User(k, "carol")
    out, n = carol.home / "r", 500
    writes = str(kymotest.APPS / "writes")
    done = carol.run(CLI, "record", "-o", out, "--syscall=write", "-e", "writes:*", "--", writes, n)
    check("of the kernel: " in done.stderr, done.stderr)
    equal({f.stat().st_uid for f in out.rglob("*")}, {carol.uid}, "owners of the trace")
    text, discarded = kymotest.babeltrace(out)
    equal(discarded, 0, "discarded events")
    names = re.findall(r" (writes:\w+|syscall_\w+): ", text)
    begin = names.index("writes:before")
    wanted = ["writes:before", "syscall_entry_write", "syscall_exit_write", "writes:after"]
    equal(names[begin:], wanted * n, "events, in their order")
    k.kymo("status", status=1)  # no session is left
    refused = alice.kymo("record", "-o", alice.home / "r", "--syscall=write", "--", "true", status=1)
    check("kernel events need root's daemon" in refused.stderr, refused.stderr)
    for user, has_kernel in ((carol, True), (alice, False)):
        said = user.run(CLI, "record", "--explain", "-o", user.home / "why", "--", writes, n).stderr
        equal(("kymo: of the kernel: " in said, "--explain without events of the kernel" in said), (has_kernel, not has_kernel), said)


def test_kernel_member_killed(k):
    """The session that root's daemon has for a command ends with the command."""
    kernel_daemon(k)
    carol = User(k, "carol")
    process = carol.spawn(CLI, "record", "-o", carol.home / "r", "-k", "sched_switch", "--", "cat")
    wait_for(lambda: [s for s in k.kymo_json("list")["sessions"] if s["state"] == "started"], "the session of the command")
    process.kill()
    process.communicate(timeout=kymotest.TIMEOUT)  # its command reads the end of the file
    wait_for(lambda: not k.kymo_json("list")["sessions"], "the session to end")


def test_kernel_member_survives_restart(k):
    """If root's daemon is restarted, its session for a command ends, and the command reports it."""
    kernel_daemon(k)
    carol = User(k, "carol")
    process = carol.spawn(CLI, "record", "-o", carol.home / "r", "-k", "sched_switch", "--", "cat")
    wait_for(lambda: [s for s in k.kymo_json("list")["sessions"] if s["state"] == "started"], "the session of the command")
    k.daemon.kill()
    k.daemon.wait()
    fds = k.daemon_fds
    k.start_daemon()
    k.daemon_fds = fds
    wait_for(lambda: not k.kymo_json("list")["sessions"], "the session to end")
    said = process.communicate(timeout=kymotest.TIMEOUT)[0]
    check("the recording of the kernel ended early: root's session daemon ended, or was restarted" in said, said)
    check(kymotest.babeltrace(carol.home / "r" / "system")[0], "no event of the kernel")


PROBED = kymotest.APPS / "probed"
DEFINITIONS = kymotest.TRACING / "dynamic_events"
REQUEST = """
import json, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect("/run/kymo/control.sock")
    s.sendall(sys.argv[1].encode() + b"\\n")
    print(s.makefile().readline())
"""


def enable_probe(user, place, **params):
    """Sends a member's request as no `kymo` would; returns the refusal, or ""."""
    request = {"command": "enable-event", "session": "s", "domain": "kernel", "kind": "userspace-probe", "place": place,
        "patterns": ["of_carol"], **params}
    return json.loads(user.run("python3", "-c", REQUEST, json.dumps(request)).stdout).get("error", "")


def probes_daemon(k):
    kernel_daemon(k)
    kymotest.need_tracefs("uprobe_events")


def test_member_probes(k):
    """Members have probes of programs, where the files' own tables have places."""
    probes_daemon(k)
    carol, n = User(k, "carol"), 50
    rules = f"--userspace-probe={PROBED}:probed_function", f"--userspace-probe=sdt:{PROBED}:probed:step"
    carol.run(CLI, "record", "-o", carol.home / "r", *rules, "--", "sh", "-c", f"echo | {PROBED} {n}")
    text, discarded = kymotest.babeltrace(carol.home / "r")
    equal((discarded, text.count(" probed_function: "), text.count(" probed_step: ")), (0, n, n), "events")
    check(f"a1 = {n - 1}, a2 = -{n - 1} " in text, "the arguments are missing")
    refused = carol.kymo("record", "-o", carol.home / "x", f"--userspace-probe={PROBED}:probed_function+1", "--", "true", status=1)
    check("only root may probe a program at an offset" in refused.stderr, refused.stderr)


def test_member_probes_are_looked_up(k):
    """The daemon believes no offset of a member's, and opens no file that members may not read."""
    probes_daemon(k)
    carol = User(k, "carol")
    secret, own = carol.home / "secret", carol.home / "own"
    shutil.copy(PROBED, secret)
    secret.chmod(0o600)
    carol.kymo("create", "s", "-o", carol.home / "t")
    for place, why in ((f"{secret}:probed_function", "Permission denied"),
            (f"/proc/self/root{PROBED}:probed_function", "Too many levels of symbolic links"),
            (f"{PROBED}:probed_function+1", "only root may probe a program at an offset"),
            (f"{PROBED}:no_such", "no such function"), (f"sdt:{PROBED}:probed:none", "no such SDT probe"),
            ("/dev/null:main", "it is no program"), (f"{carol.home}:main", "it is no program"),
            ("probed:main", "is not a place of a program"), ("sdt:/x:y", "is not a place of a program")):
        refusal = enable_probe(carol, place)
        check(why in refusal, f"{place}: {refusal or 'it was not refused'}")
    equal(enable_probe(carol, f"{PROBED}:probed_function", definitions=["of_carol /bin/true:0x1235"]), "", "refusal")
    # The same test of another build may define such a probe at this moment.
    daemon = re.search(r"/instances/kymo-([0-9a-f]+)-", " ".join(kymotest.open_paths(k.daemon.pid)))[1]
    found = [line for line in DEFINITIONS.read_text().splitlines() if re.match(rf"p:kymo_{daemon}_\d+/of_carol ", line)]
    equal(len(found), 1, "definitions")
    check("true" not in found[0] and "1235" not in found[0], found[0])
    carol.kymo("destroy", "s")
    # The path leads to another file when the probe is defined.
    shutil.copy(PROBED, own)
    carol.kymo("create", "s", "-o", carol.home / "t2")
    carol.kymo("enable-channel", "-k", "kernel0")
    carol.kymo("disable-channel", "-k", "kernel0")
    equal(enable_probe(carol, f"{own}:probed_function"), "", "refusal")
    shutil.copy(PROBED, secret)
    secret.replace(own)
    refused = carol.kymo("enable-channel", "-k", "kernel0", status=1)
    check("file was changed meanwhile" in refused.stderr, refused.stderr)
    carol.kymo("destroy", "s")


MANY_REQUESTS = """
import json, socket, sys
connections = [socket.socket(socket.AF_UNIX) for _ in range(int(sys.argv[2]))]
for s in connections:
    s.connect("/run/kymo/control.sock")
    s.sendall(sys.argv[1].encode() + b"\\n")
for s in connections:
    print(json.loads(s.makefile().readline())["error"], flush=True)
"""


def test_member_probes_wait(k):
    """
    While a member's program is on files that do not answer, only the member's commands wait, and
    not for ever.
    """
    searches_max = 8  # of a user: src/sessiond/peers/program-places.c
    probes_daemon(k)
    carol = User(k, "carol")
    carol.kymo("create", "s", "-o", carol.home / "t")
    mount = carol.home / "hung"
    mount.mkdir()
    with HungFiles(mount) as files:
        request = {"command": "enable-event", "session": "s", "domain": "kernel", "kind": "userspace-probe",
            "place": f"{mount}/program:main", "patterns": ["of_carol"]}
        many = carol.spawn("python3", "-c", MANY_REQUESTS, json.dumps(request), str(searches_max))
        wait_for(lambda: files.asked, "a child of the daemon's to look")
        equal([s["name"] for s in k.kymo_json("list")["sessions"]], ["s"], "sessions")
        wait_for(lambda: "too many searches" in enable_probe(carol, f"{PROBED}:no_such"), "the limit")
        check(many.poll() is None, "the daemon has waited for the files")
        said = many.communicate(timeout=kymotest.TIMEOUT)[0].splitlines()
    equal(set(said), {f"{mount}/program: it cannot be read in time"}, "refusals")
    equal(len(said), searches_max, "refusals")
    wait_for(lambda: not enable_probe(carol, f"{PROBED}:probed_function"), "the children to be forgotten")
    carol.kymo("destroy", "s")


def test_false_daemons(k):
    """A program does not talk to the daemon of another user, wherever its environment points."""
    k.top.chmod(0o755)
    alice = User(k, "alice")
    with Daemon(k) as daemon:
        k.rundir.chmod(0o755)
        for path in k.rundir.iterdir():
            path.chmod(0o666)
        for path in (k.rundir, *k.rundir.iterdir()):
            os.chown(path, USERS["bob"], USERS["bob"])
        # bob's process listens: the kernel remembers the process that called listen().
        daemon.listener.close()
        (k.rundir / "app.sock").unlink()
        bob = User(k, "bob")
        bob.env["KYMO_RUNDIR"] = alice.env["KYMO_RUNDIR"] = str(k.rundir)
        code = ("import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind(sys.argv[1]); s.listen();"
            "import os; os.chmod(sys.argv[1], 0o666); print('listening', flush=True); print(s.accept()[0].recv(100), flush=True)")
        server = bob.spawn("python3", "-c", code, k.rundir / "app.sock")
        k.expect(server, "listening")
        app = alice.emit(1)
        emitted(k, app)
        # before the program exits: it may have continued without its listener
        k.expect(server, "b''")
        ended(k, app)


# ---- resources that one user may take from others


def buffers_of(user, session):
    """Returns the buffers of programs in the session: for each user and kind, count and size."""
    return json.loads(user.kymo("--json", "status", session).stdout)["session"]["channels"][0]["ring_sets"]


def numbers_of(user, session, trace):
    user.kymo("destroy", session)
    return numbers(trace)


def with_memory_for(k, root, n):
    """Starts root's daemon, with memory for n sets of buffers for CPUs for each user's programs."""
    alice = User(k, "memory")
    alice.uid = USERS["alice"]
    system_daemon(k)
    root.record("first")
    alice.run(APP)
    (found,) = buffers_of(root, "first")
    root.kymo("destroy", "first")
    k.stop_daemon()
    k.start_daemon(f"--max-memory-per-user={found['count'] * found['size'] * (2 * n + 1) // 2 >> 10}K")


def test_memory_of_a_user(k):
    """
    A user whose buffers use the maximum of memory is not recorded further, and is named, until
    memory is released; others are recorded.
    """
    alice, bob, root = (User(k, name) for name in ("alice", "bob", "root"))
    with_memory_for(k, root, 1)
    first, second = root.record("one"), root.record("two")
    apps = [user.emit(number) for number, user in enumerate((alice, bob))]
    for app, user in zip(apps, (alice, bob)):
        emitted(k, app)
        told = [w for w in json.loads(root.kymo("--json", "status", "two").stdout)["warnings"] if "--max-memory-per-user" in w]
        check(any(f"pid {app.pid}" in w and f"user {user.uid} " in w for w in told), f"status of the second session: {told}")
    equal(numbers_of(root, "one", first), {0: 100, 1: 100}, "events of the session that came first")
    # there is memory for the second session now
    apps += [user.emit(2 + number) for number, user in enumerate((alice, bob))]
    for app in apps[2:]:
        emitted(k, app)
    for app in apps:
        ended(k, app)
    equal(numbers_of(root, "two", second), {2: 100, 3: 100}, "events of the session that had to wait")


def test_programs_wait_for_memory(k):
    """
    A running program that was left out is recorded as soon as another program of its user has
    exited.
    """
    root = User(k, "root")
    with_memory_for(k, root, 2)
    out = root.home / "s"
    root.kymo("create", "s", "-o", out)
    root.kymo("enable-channel", "channel0", "-s", "s", "--buffers=process")
    root.kymo("enable-event", "-s", "s", "emit:*")
    root.kymo("start", "s")
    apps = [root.emit(number) for number in range(3)]
    equal([len(rings_of(app.pid)) for app in apps], [2, 2, 0], "programs with buffers")
    emitted(k, apps[0])
    ended(k, apps[0])
    wait_for(lambda: rings_of(apps[2].pid), "the program to be recorded that was left out")
    root.kymo("enable-event", "-s", "s", "emit:*")  # returns when the program records
    for app in apps[1:]:
        emitted(k, app)
        ended(k, app)
    equal(numbers_of(root, "s", out), {number: 100 for number in range(3)}, "events")


def test_clients_of_a_user(k):
    """A member of the group cannot use all connections and sessions."""
    system_daemon(k)
    carol, dave = User(k, "carol"), User(k, "dave")
    # a connection that the daemon has already refused breaks the send
    code = ("import contextlib, socket, sys; l = [socket.socket(socket.AF_UNIX) for i in range(400)]; [s.connect('/run/kymo/control.sock') for s in l]\n"
        "with contextlib.suppress(OSError): l[-1].send(b'x')\nprint('connected', flush=True); sys.stdin.readline()")
    greedy = carol.spawn("python3", "-c", code)
    k.expect(greedy, "connected")
    dave.kymo("list")
    wait_for(lambda: "too many clients" in k.daemon_log(), "some clients to be refused")
    check("too many connections" in carol.kymo("list", status=1).stderr, "the reason is said")
    k.let_go(greedy)
    k.finish(greedy)
    wait_for(lambda: carol.run(CLI, "list", status=None).returncode == 0, "the client to be served again")


FLOOD = r"""
import socket, sys, time
print('begun', flush=True)
end = time.monotonic() + float(sys.argv[1])
n = 0
while time.monotonic() < end or n < 500:
    crowd = []
    for i in range(300):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        crowd.append(s)
        try:
            s.connect("/run/kymo/app.sock")
            n += 1
        except OSError:
            pass
print(n, flush=True)
"""


def test_flood_of_another_user(k):
    """
    One user opens connections as fast as possible: the programs of other users are recorded all the
    same, from their first event on.
    """
    system_daemon(k)
    alice, bob, root = (User(k, name) for name in ("alice", "bob", "root"))
    out = root.record("all")
    floods = [alice.spawn("python3", "-c", FLOOD, 4) for _ in range(2)]
    for flood in floods:
        k.expect(flood, "begun")
    n = 0
    while any(flood.poll() is None for flood in floods):
        equal(bob.run(APP, "-n", 100, "-p", n).stdout.split()[1], "100", "what the program says")
        n += 1
    for flood in floods:
        k.finish(flood)
    equal(numbers_of(root, "all", out), {number: 100 for number in range(n)}, "events of the other user's programs")


CALLERS = """
import socket

def call():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/run/kymo/drain.sock")
    return s

for _ in range(40):
    call().close()
last = call()
print("made", flush=True)
last.recv(64)
"""


def test_false_consumers(k):
    """Another user's connections to the socket for consumers cause at most 20 lines of the log."""
    system_daemon(k)
    kymotest.stop(k.daemon.pid)
    callers = User(k, "alice").spawn("python3", "-c", CALLERS)
    k.expect(callers, "made")
    os.kill(k.daemon.pid, signal.SIGCONT)
    k.finish(callers)
    equal(k.daemon_log().count("consumer of the previous session daemon"), 20, "lines of the log")


def test_another_user_scribbles(k):
    """
    A program writes into all memory that it shares with the tracer: no event of other users is lost
    or changed.
    """
    system_daemon(k)
    alice, bob, root = (User(k, name) for name in ("alice", "bob", "root"))
    out = root.record("all", "*")
    (consumer,) = kymotest.consumers(k)
    scribbler = alice.spawn(kymotest.APPS / "scribble", 1, 1000000 // SCALE)
    k.expect(scribbler, "ready")
    early = bob.emit(0)
    k.let_go(scribbler)
    n = 1
    while scribbler.poll() is None:
        bob.run(APP, "-n", 100, "-p", n)
        n += 1
    check("opened 0" in k.finish(scribbler), "read-only memory could be made writable")
    emitted(k, early)
    ended(k, early)
    root.kymo("stop", "all", status=None)
    equal(numbers(out / "ust/uid" / str(bob.uid)), {number: 100 for number in range(n)}, "events of the other user")
    equal(kymotest.consumers(k), [consumer], "the consumer")


FORGED = (
    ("last_ts", 2**64 - 1),
    ("last_ts", 2**63),
    ("begin_ts", 2**64 - 1),
    ("begin_count", 2**40),
    ("used", 64),
)


def test_another_user_forges(k):
    """
    A program overwrites words that describe its records with values that are impossible. The
    consumer gives its rings up: babeltrace2 reads the whole trace, with all events of other users.
    """
    system_daemon(k)
    alice, bob, root = (User(k, name) for name in ("alice", "bob", "root"))
    given_up = lambda: json.loads(root.kymo("status", "all", "--json").stdout)["session"]["given_up"]
    for word, value in FORGED:
        out = root.home / "all"
        root.kymo("create", "all", "-o", out)
        root.kymo("enable-channel", "small", "--subbuf-size=4k")
        root.kymo("enable-event", "*", "-c", "small")
        root.kymo("start", "all")
        forger = alice.spawn(kymotest.APPS / "forge", word, value)
        k.expect(forger, "ready")
        bob.run(APP, "-n", 100, "-p", 0)
        wait_for(given_up, f"the rings with forged {word} to be given up")
        bob.run(APP, "-n", 100, "-p", 1)
        ended(k, forger)
        root.kymo("destroy", "all", status=None)
        events = [e for e in kymotest.read_trace(out)[0] if e.name.startswith("emit:")]
        equal(len(check_values(events)), 200, f"events of the other user, with forged {word}")
        shutil.rmtree(out)


def test_another_user_forges_triggers(k):
    """
    A program says that all triggers have fired. Those that none of its events can fire have not; of
    the others, no message names another program, and no number is impossible.
    """
    system_daemon(k)
    alice, bob, root = (User(k, name) for name in ("alice", "bob", "root"))
    out = root.record("all", "*")
    root.kymo("add-trigger", "stops", "--when=event(emit:nosuch)", "--do=stop")
    root.kymo("add-trigger", "slow", "--when=span(emit:nosuch) > 1s", "--do=notify")
    root.kymo("add-trigger", "real", "--when=event(emit:*)", "--do=notify")
    forger = alice.spawn(kymotest.APPS / "forge", "triggers", 2**62)
    k.expect(forger, "ready")
    bob.run(APP, "-n", 100)
    triggers = lambda: {t["name"]: t for t in json.loads(root.kymo("list-triggers", "--json").stdout)["triggers"]}
    wait_for(lambda: triggers()["real"]["fired"], "the other user's event to fire its trigger")
    root.kymo("add-trigger", "own", "--when=event(forge:own)", "--do=notify")
    wait_for(lambda: triggers()["own"]["fired"], "the program's event to fire its trigger")
    found = triggers()
    equal((found["stops"]["fired"], found["slow"]["fired"]), (0, 0), "how often triggers fired that no event can fire")
    for t in found.values():
        check(t["left_out"] < 2**41 and t.get("missed_spans", 0) < 2**41, f"counts of a trigger: {t}")
    said = re.findall("trigger '(real|own)': (.*)", k.daemon_log())
    known = (f"a program of user {alice.uid} (by its own account pid 1, thread 1)", f"forge (pid {forger.pid}, thread {forger.pid})")
    check(all((text in known) == (name == "own") for name, text in said), f"messages: {said}")
    ended(k, forger)
    root.kymo("destroy", "all", status=None)
    equal(len([e for e in kymotest.read_trace(out)[0] if e.name.startswith("emit:")]), 100, "events of the other user")


# ---- what other users can reach

PROBE = r"""
import json, os, socket, sys
reached = []

def attempt(what, fn, *args):
    try:
        fn(*args)
        reached.append(what)
    except OSError:
        pass

def connect(kind, path):
    s = socket.socket(socket.AF_UNIX, kind)
    s.settimeout(60)
    s.connect(path)

n = 0
for pid in sys.argv[1].split(","):
    top = f"/proc/{pid}"
    # The numbers are not to be listed, so they are guessed; names of mappings come from our own.
    for task in os.listdir(top + "/task"):
        for fd in range(64):
            for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY):
                attempt(f"{top}/task/{task}/fd/{fd}", os.open, f"{top}/task/{task}/fd/{fd}", flags)
                n += 1
    for name in ("fd", "map_files", "fdinfo"):
        attempt(f"{top}/{name}", os.listdir, f"{top}/{name}")
    for name in ("mem", "environ", "maps", "smaps", "pagemap", "io", "auxv", "stack", "syscall"):
        attempt(f"{top}/{name}", lambda p: open(p, "rb").read(1), f"{top}/{name}")
    for path in sys.argv[2].split(","):
        attempt(f"{top}/map_files/{path}", os.open, f"{top}/map_files/{path}", os.O_RDWR)
    attempt(f"{top}/root", os.listdir, f"{top}/root/")
    attempt(f"{top}/cwd", os.listdir, f"{top}/cwd/")
for path in sys.argv[3:]:
    attempt("list " + path, os.listdir, path)
    for name in ("app.sock", "control.sock", "state", "wake", "lock", "log"):
        p = f"{path}/{name}"
        for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT):
            flags |= os.O_NONBLOCK
            attempt(f"open {flags & 3} {p}", os.open, p, flags)
        attempt("stream " + p, connect, socket.SOCK_STREAM, p)
        attempt("seqpacket " + p, connect, socket.SOCK_SEQPACKET, p)
        attempt("unlink " + p, os.unlink, p)
print(json.dumps([n, sorted(reached)]))
"""

# By design, root's daemon gives these to everybody: docs/protocol.md.
PUBLIC = {"list /run/kymo", "open 0 /run/kymo/state", "open 0 /run/kymo/wake", "seqpacket /run/kymo/app.sock"}


def mappings(pids):
    """Returns the names below map_files of the rings that the processes have mapped."""
    found = set()
    for pid in pids:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            if "memfd:kymo-" in line:
                found.add("-".join(x.lstrip("0") for x in line.split()[0].split("-")))
    return found


def test_nothing_is_in_reach(k):
    """
    Another user tries every descriptor, mapping, socket and file of a user, of that user's daemons
    and consumers, and of root's.
    """
    system_daemon(k)
    alice, bob, root = (User(k, name) for name in ("alice", "bob", "root"))
    own = own_daemon(alice)
    root.record("all")
    alice.record("mine")
    apps = [alice.emit(1), root.emit(2)]
    for app in apps:
        emitted(k, app)
    # programs, daemons, the one that replaces alice's, and consumers; children of daemons end
    others = lambda: [p for p in kymotest.processes_with(k.mark) if not kymotest.command_of(p).startswith("kymo-collectd")]
    wait_for(lambda: len(others()) == 7, lambda: f"seven processes: {[kymotest.command_of(p) for p in others()]}")
    pids = kymotest.processes_with(k.mark)
    names = mappings(pids)
    check(len(names) >= 3, f"mapped rings: {names}")

    def probe(user):
        done = user.run("python3", "-c", PROBE, ",".join(map(str, pids)), ",".join(names), "/run/kymo", alice.home / ".kymo", alice.home / "mine")
        tried, reached = json.loads(done.stdout)
        check(tried > 1000, f"only {tried} attempts")
        return set(reached)

    equal(probe(bob), PUBLIC, "what bob reaches of others'")
    check(len(probe(alice) - PUBLIC) > 50, "the probe reaches nothing even of the user's own: nothing is tested")
    check(kymotest.alive(k.daemon.pid), "root's daemon has ended")
    for app in apps:
        ended(k, app)
    wait_for(lambda: not kymotest.alive(own), "the user's own daemon to end, whose run directory her own probe has emptied")


def test_private_daemon_of_root(k):
    """
    kymo record by root: only root controls its daemon. A program that becomes another user is
    recorded on.
    """
    system_daemon(k)
    k.stop_daemon()
    root, bob = User(k, "root"), User(k, "bob")
    root.env["TMPDIR"] = str(root.home)  # where only root gets: the directory is elsewhere
    record = root.spawn(CLI, "record", "-o", root.home / "trace", "--", kymotest.APPS / "dropper", USERS["bob"])
    k.expect(record, "ready")
    daemons = [p for p in kymotest.processes_with(k.mark) if "kymo-sessiond" in kymotest.command_of(p)]
    equal(len(daemons), 1, "private daemons")
    env = pathlib.Path(f"/proc/{daemons[0]}/environ").read_bytes().decode()
    rundir = re.search(r"KYMO_RUNDIR=([^\0]*)", env)[1]
    check("Permission" in bob.run("ls", rundir, status=None).stderr, "bob can list it")
    bob.env["KYMO_RUNDIR"] = rundir
    check("ermission" in bob.run(CLI, "list", status=None).stderr, "bob can control it")
    k.let_go(record)
    k.expect(record, "dropped")
    root.env["KYMO_RUNDIR"] = rundir
    status = lambda: json.loads(root.run(CLI, "--json", "status").stdout)
    wait_for(lambda: [a["uid"] for a in status()["session"]["applications"]] == [USERS["bob"]], "the program to be bob's")
    k.let_go(record)
    said = k.finish(record)
    check("became another user" in said, said)
    events = read_trace(root.home / "trace")[0]
    equal([re.search(r"\bi = (\d+)", e.fields)[1] for e in events], [str(i) for i in (*range(10), *range(10))], "events")


def enter_namespace():
    """
    Enters a mount namespace with an empty /run and the users of this test, then executes the file
    again.
    """
    if os.geteuid():
        print("1..1\nok 1 - users # SKIP: needs root, to become other users")
        sys.exit(77)
    if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/run"], capture_output=True).returncode:
        print("1..1\nok 1 - users # SKIP: mounting needs root that may (in a container: --privileged)")
        sys.exit(77)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000):  # CLONE_NEWNS
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "kymo-test", "/run"], check=True)
    if "hidepid=" in pathlib.Path("/proc/mounts").read_text():  # then users would not find what the tests forbid them
        subprocess.run(["mount", "-t", "proc", "-o", "hidepid=0", "kymo-test", "/proc"], check=True)
    lines = {"passwd": [f"{n}:x:{u}:{u}::/nonexistent:/bin/sh" for n, u in USERS.items()],
        "group": [*(f"{n}:x:{u}:" for n, u in USERS.items()), f"tracing:x:{GROUP}:{','.join(MEMBERS)}"]}
    for name, more in lines.items():
        kept = [l for l in pathlib.Path("/etc", name).read_text().splitlines() if l.partition(":")[0] not in (*USERS, "tracing")]
        pathlib.Path("/run", name).write_text("\n".join(kept + more) + "\n")
        subprocess.run(["mount", "--bind", f"/run/{name}", f"/etc/{name}"], check=True)


def test_program_drops_its_rights(k):
    """
    A program of root's that changes its user cannot reach what it recorded before; from then on it
    is recorded as its new user.
    """
    system_daemon(k)
    out = k.record("drop:*")
    app = k.spawn("dropper", USERS["bob"])
    k.expect(app, "ready")
    k.let_go(app)
    k.expect(app, "dropped")
    status = lambda: k.request(command="status")
    wait_for(lambda: [a["uid"] for a in status()["session"]["applications"]] == [USERS["bob"]], "the program to be bob's")
    said = wait_for(lambda: [w for w in status()["warnings"] if "ran unrecorded" in w], "the program to be named")
    check(f"(pid {app.pid}," in said[0] and "became another user" in said[0], said)
    k.let_go(app)
    k.finish(app)
    k.kymo("destroy")
    kymotest.check_counts(k, out, 20)
    equal(sorted(p.name for p in (out / "ust" / "uid").iterdir()), ["0", str(USERS["bob"])], "whose events are in the trace")


def test_program_drops_its_rights_early(k):
    """
    A program that changes its user before the daemon has answered registers again. Only the time
    until then is reported, not a program that has ended.
    """
    system_daemon(k)
    k.record("drop:*")
    kymotest.stop(k.daemon.pid)
    app = k.spawn("dropper", USERS["bob"], env=IMPATIENT)
    k.expect(app, "no rings")
    first = wait_for(lambda: sockets_of(app.pid), "the program to connect")
    k.let_go(app)
    k.expect(app, "dropped")
    wait_for(lambda: sockets_of(app.pid) - first, "the program to connect again")
    os.kill(k.daemon.pid, signal.SIGCONT)
    said = wait_for(lambda: [w for w in k.request(command="status")["warnings"] if "ran unrecorded" in w], "the program to be named")
    check(re.search(rf" dropper \(pid {app.pid}, [0-9.]+ ms\);", said[0]), said)
    k.let_go(app)
    k.finish(app)


def test_program_is_another_user_for_a_time(k):
    """It keeps its buffers, and so loses no event."""
    system_daemon(k)
    out = k.record("drop:*")
    app = k.spawn("dropper", USERS["bob"], "return")
    k.expect(app, "ready")
    rings = rings_of(app.pid)
    for line in "dropped", "back":
        k.let_go(app)
        k.expect(app, line)
        k.kymo("enable-event", "drop:e*")  # the program answers, and so has seen its user
        equal(rings_of(app.pid), rings, f"its rings when it is {line}")
    k.let_go(app)
    k.finish(app)
    equal(k.request(command="status")["warnings"], [], "warnings")
    k.kymo("destroy")
    kymotest.check_counts(k, out, 30)
    equal([p.name for p in (out / "ust" / "uid").iterdir()], ["0"], "whose events are in the trace")


def sockets_of(pid):
    """Returns the names of the sockets of a process, whose threads may have tables of their own."""
    names = set()
    for fd in glob.glob(f"/proc/{pid}/task/*/fd/*"):
        with contextlib.suppress(FileNotFoundError):
            names.add(os.readlink(fd))
    return {name for name in names if name.startswith("socket:")}


def test_capabilities_of_main(k):
    """
    A program of one thread changes its user and groups after it has kept or given up capabilities.
    The C library ends a program of which a thread gets another result.
    """
    root = User(k, "root")
    for how in ((), ("at-once",), ("give-up",), ("without-main",)):
        command = (kymotest.APPS / "keeper", USERS["bob"], *how)
        root.env["KYMO_OFF"] = "1"
        expected = root.run(*command).stdout
        check("become root: Operation not permitted" in expected, expected)
        del root.env["KYMO_OFF"]
        for i in range(3):
            out = root.home / f"trace-{''.join(how)}-{i}"
            done = root.run(CLI, "record", "-o", out, "--with=libc,pthread", "-e", "keeper:*,kymo_statedump:*", "--", *command)
            equal(done.stdout, expected, "results")
            check("keeper:step" in [e.name for e in read_trace(out)[0]], done.stderr)


def test_explain_of_a_user(k):
    """A user who may not record the kernel gets the rest, also beside a daemon of their own."""
    k.top.chmod(0o755)
    alice = User(k, "alice")
    own = own_daemon(alice)
    done = alice.run(CLI, "record", "--explain", "-o", alice.home / "trace", "--", APP, "-n", 3)
    check("--explain without events of the kernel: kernel events need root's daemon" in done.stderr, done.stderr)
    check({"emit:record", "libc:malloc"} <= {e.name for e in read_trace(alice.home / "trace")[0]}, done.stderr)
    end_own(own)


def test_root_does_not_share(k):
    """
    Programs of root's share no buffers with each other, unless the channel says so; those of
    another user do.
    """
    system_daemon(k)
    root, alice = User(k, "root"), User(k, "alice")
    for options, shared in (((), {root: False, alice: True}), (("--buffers=cpu",), {root: True, alice: True})):
        k.kymo("create", "s", "-o", k.traces / str(len(options)))
        if options:
            k.kymo("enable-channel", "channel0", *options)
        k.kymo("enable-event", "emit:*")
        k.kymo("start")
        for user, wanted in shared.items():
            apps = [user.emit(n) for n in (1, 2)]
            equal(bool(rings_of(apps[0].pid) & rings_of(apps[1].pid)), wanted, f"{user.name}'s programs share buffers")
            for app in apps:
                emitted(k, app)
                ended(k, app)
        k.kymo("stop")
        kymotest.check_counts(k, k.traces / str(len(options)), 400)
        k.kymo("destroy")


def test_user_namespaces(k):
    """
    Root's daemon records a program in a user namespace that does not have root. A daemon of another
    user does so only if the program's environment allows it.
    """
    kymotest.need_unshare("-Ur")
    system_daemon(k)
    alice, bob = User(k, "alice"), User(k, "bob")
    out = k.record("emit:*")
    bob.env["KYMO_DEBUG"] = "1"
    equal(bob.run("unshare", "-Ur", APP, "-n", 30, "-p", 1).stderr, "", "what the library says with root's daemon")
    k.kymo("stop")
    equal(numbers(out), {1: 30}, "events")
    k.kymo("destroy")
    false = k.top / "false"
    false.mkdir()
    os.chown(false, alice.uid, alice.uid)
    alice.env["KYMO_RUNDIR"] = bob.env["KYMO_RUNDIR"] = str(false)
    pid = own_daemon(alice, false)
    false.chmod(0o755)
    for path in false.iterdir():
        with contextlib.suppress(FileNotFoundError):  # the daemon still starts: some files are temporary
            path.chmod(0o777 if path.name == "app.sock" else 0o755)
    app, said = bob.spawn("unshare", "-Ur", APP, "-n", 30, "-w"), ""
    while "docs/containers.md" not in said:  # a thread reports it: the program must not exit before
        line = app.stdout.readline()
        check(line, f"no line about alice's daemon: {said}")
        said += line
    said += app.communicate("\n\n", timeout=kymotest.TIMEOUT)[0]
    equal((app.returncode, said.count("docs/containers.md")), (0, 1), f"exit status, lines about alice's daemon: {said}")
    bob.env["KYMO_HOST_DAEMON"] = "1"
    check("docs/containers.md" not in bob.run("unshare", "-Ur", APP, "-n", 30).stderr, "where bob trusts that daemon")
    end_own(pid)


def n_sleeps(pid):
    """Returns how often the threads of a process have waited for something."""
    states = [path.read_text() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(n) for state in states for n in re.findall(r"^voluntary_ctxt_switches:\s+(\d+)", state, re.MULTILINE))


def test_directory_of_another_user(k):
    """
    With KYMO_DEBUG, a program says once that it may not enter its run directory. It says nothing if
    there is no directory.
    """
    k.top.chmod(0o755)
    alice, bob = User(k, "alice"), User(k, "bob")
    bob.env.update(KYMO_DEBUG="1", KYMO_RUNDIR=str(alice.home / "run"))
    app = bob.spawn(APP, "-n", 30, "-w")
    said = app.stdout.readline() + app.stdout.readline()  # a thread reports it
    sleeps = n_sleeps(app.pid)
    wait_for(lambda: n_sleeps(app.pid) > sleeps + 1, "the thread to look again")
    said += app.communicate("\n\n", timeout=kymotest.TIMEOUT)[0]
    line = f"{alice.home}/run: not used: user {bob.uid} cannot connect to a daemon there: error {errno.EACCES}"
    equal((app.returncode, said.count("libkymo["), said.count(line)), (0, 1, 1), f"exit status and lines: {said}")
    bob.env["KYMO_RUNDIR"] = str(bob.home / "run")
    equal(bob.run(APP, "-n", 30).stderr, "", "what the library says without a directory")


def test_wake_of_another_user(k):
    """
    A FIFO that another user has created, and filled, is ignored: otherwise programs would never
    sleep.
    """
    k.top.chmod(0o755)
    alice, bob = User(k, "alice"), User(k, "bob")
    common = k.top / "common"
    (common / ".kymo").mkdir(parents=True)
    os.mkfifo(common / ".kymo" / "wake", 0o666)
    for path in (common, common / ".kymo", common / ".kymo" / "wake"):
        os.chown(path, alice.uid, alice.uid)
        path.chmod(0o755)
    keeper = os.open(common / ".kymo" / "wake", os.O_RDWR)
    os.write(keeper, b"x")
    bob.env.update(HOME=str(common), KYMO_RUNDIR_ONLY="1")
    app = subprocess.Popen([APP, "-n", "10", "-w"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **bob.options())
    k.started.append(app)
    k.expect(app, "ready")

    def listener_sleeps():
        listener = kymotest.listener_of(app.pid)
        if not listener or (listener / "syscall").read_text().split()[0] != "7":
            return False
        return not any("wake" in link for _, link, _ in kymotest.descriptors(f"{app.pid}/task/{listener.name}"))

    wait_for(listener_sleeps, "the listener to sleep without the FIFO")
    os.close(keeper)
    k.let_go(app)
    k.read_until(app, "done")
    k.let_go(app)
    k.finish(app)


def test_contexts_of_another_user(k):
    """A child that becomes another user is recorded as that user, with correct contexts."""
    system_daemon(k)
    out = k.record("ctx:*", start=False)
    ids = [f"v{e}{kind}id" for kind in "ug" for e in ("", "e", "s")]
    k.kymo("add-context", *[word for name in ids for word in ("-t", name)])
    k.kymo("start")
    k.app("contexts", "user")
    k.kymo("stop")
    lines = k.run(["babeltrace2", out]).stdout.splitlines()
    for step, first in (("before setresuid", 0), ("other user", 21)):
        (line,) = [line for line in lines if f'step = "{step}"' in line]
        values = dict(re.findall(r"(\w+) = (\d+)", line))
        equal([values[name] for name in ids], [values[f"t_{name}"] for name in ids], f"contexts {step}")
        equal(int(values["vuid"]), first, f"user {step}")


if __name__ == "__main__":
    enter_namespace()
    kymotest.main()
