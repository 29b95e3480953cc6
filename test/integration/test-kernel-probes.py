#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Probes: events that the kernel makes at functions of programs, at their SDT probes and at its own
functions. Exact counts, semaphores, and nothing left in tracefs. Needs root and tracefs.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import sys
import time

import kymotest
from kymotest import TRACING, babeltrace, check, consumers, equal, wait_for

PROBED = kymotest.APPS / "probed"
STEP = f"sdt:{PROBED}:probed:step"
N = 500


def need_tracefs(*places):
    kymotest.need_tracefs(*places or ("uprobe_events",))


def events(trace, name):
    """Returns the fields of the events of this name, and checks that none was discarded."""
    text, discarded = babeltrace(trace)
    equal(discarded, 0, "discarded events")
    return re.findall(rf" {name}: \{{[^}}]*\}}, \{{ tid = (\d+)[^}}]* \}}, \{{ (.*) \}}$", text, re.MULTILINE)


def go(k, app):
    """Lets the program run once; returns how often its semaphore was on."""
    k.let_go(app)
    return int(app.stdout.readline())


def definitions(group):
    return [line for line in (TRACING / "dynamic_events").read_text().splitlines() if f":{group}/" in line]


def groups(k):
    """Returns the groups of probes of the daemon's sessions."""
    found = (re.search(r"/instances/(kymo-[0-9a-f]{8}-\d+)$", path) for path in kymotest.open_paths(k.daemon.pid))
    return sorted({m[1].replace("-", "_") for m in found if m})


def track(k, app, *sessions):
    for s in sessions or ("s",):
        k.kymo("track", "-s", s, f"--pid={app.pid}")


def test_function(k):
    """Each call of a function of a tracked process, and of no other."""
    need_tracefs()
    k.start_daemon()
    out = k.top / "trace"
    k.kymo("create", "s", "-o", out)
    k.kymo("enable-event", "-k", f"--userspace-probe={PROBED}:probed_function", "called")
    apps = [k.spawn("probed", N) for _ in range(2)]
    track(k, apps[0])
    k.kymo("start")
    for app in apps:
        go(k, app)
        k.finish(app)
    made = groups(k)
    equal(len(definitions(made[0])), 1, "definitions")
    k.kymo("destroy")
    found = events(out, "called")
    equal(len(found), N, "calls")
    equal({tid for tid, _ in found}, {str(apps[0].pid)}, "threads")
    check(re.fullmatch("ip = 0x[0-9A-F]+", found[0][1]), found[0][1])
    wait_for(lambda: not definitions(made[0]), lambda: f"the definitions to be removed: {definitions(made[0])}")


def test_chosen_function(k):
    """A function of the C library that only chooses another one: a warning says so."""
    need_tracefs()
    k.start_daemon()
    k.kymo("create", "s", "--no-output")
    libc = re.search(r" (/\S*/libc\.so\.6)$", pathlib.Path("/proc/self/maps").read_text(), re.MULTILINE)
    if not libc:
        raise kymotest.Skip("this Python has no libc.so.6")
    done = k.kymo("enable-event", "-k", f"--userspace-probe={libc[1]}:memcpy", status=0)
    check("'memcpy' chooses a function for each program that starts: " in done.stderr, done.stderr)


def test_replaced(k):
    """The program's file is replaced: a notice says that the probe is in the earlier one."""
    need_tracefs()
    k.start_daemon()
    out, program = k.top / "trace", k.top / "program"
    shutil.copy(PROBED, program)
    k.kymo("create", "s", "-o", out)
    k.kymo("enable-event", "-k", f"--userspace-probe={program}:probed_function", "called")
    k.kymo("start")
    k.kymo("rotate")
    check("another file" not in k.kymo("status").stdout, "a file that was not replaced")
    shutil.copy(PROBED, k.top / "new")
    os.rename(k.top / "new", program)
    k.kymo("enable-event", "-k", f"--userspace-probe={program}:probed_function", "again")
    for command in ("rotate", "stop", "start"):
        k.kymo(command)
        notices = k.kymo("status").stdout
        equal(notices.count(f"{program} is another file now, and probe 'called' is in the earlier one"), 1, notices)
    check("probe 'again'" not in notices, notices)
    k.run([program, "1"], input="\n")
    k.kymo("destroy")
    equal([len(events(out, name)) for name in ("called", "again")], [0, 1], "calls in the earlier file, and in the new one")


def write_definitions(*lines):
    """As another program does it."""
    fd = os.open(TRACING / "dynamic_events", os.O_WRONLY | os.O_APPEND)
    for line in lines:
        os.write(fd, f"{line}\n".encode())
    os.close(fd)


def remove_definition(group, name):
    write_definitions(f"-:{group}/{name}")


def test_removed(k):
    """Another program has removed a probe while no rule recorded it: it is defined again."""
    need_tracefs()
    k.start_daemon()
    k.kymo("create", "s", "-o", k.top / "trace")
    rule = ("enable-event", "-k", f"--userspace-probe={PROBED}:probed_function", "called")
    k.kymo(*rule)
    k.kymo("enable-event", "-k", f"--userspace-probe={STEP}", "step")
    (group,) = groups(k)
    for name in ("called", "step"):
        remove_definition(group, name)
    k.kymo("start")
    k.kymo("disable-event", "-k", "called")
    remove_definition(group, "called")
    k.run([PROBED, "1"], input="\n")
    k.kymo(*rule)
    k.run([PROBED, "1"], input="\n")
    notices = k.kymo("status").stdout
    check("removed probe" not in notices, notices)
    k.kymo("destroy")
    equal([len(events(k.top / "trace", name)) for name in ("called", "step")], [1, 2], "events")


def test_defined_again(k):
    """Another program's probes change their places, numbers and fields between two starts."""
    need_tracefs()
    k.start_daemon()
    out, theirs = k.top / "trace", f"theirs{os.getpid()}"
    k.kymo("create", "s", "-o", out)
    k.kymo("enable-event", "-k", f"--userspace-probe={PROBED}:probed_function", "called")
    place = definitions(groups(k)[0])[0].split()[1]

    def remove():
        """The daemon disables the events of a stopped session a little later."""
        for name in ("a", "b"):
            with contextlib.suppress(OSError):
                remove_definition(theirs, name)
        return not definitions(theirs)

    try:
        write_definitions(f"p:{theirs}/a {place} old=\\1:u8", f"p:{theirs}/b {place} old=\\2:u8")
        k.kymo("enable-event", "-k", f"{theirs}:a", f"{theirs}:b")
        k.kymo("start")
        k.run([PROBED, "1"], input="\n")
        k.kymo("stop")
        wait_for(remove, "the probes to be removed")
        write_definitions(f"p:{theirs}/b {place} new=\\3:u64", f"p:{theirs}/a {place} first=\\4:u16 second=\\5:u32")
        k.kymo("start")
        k.run([PROBED, "1"], input="\n")
        k.kymo("destroy")
        found = [[fields.split(", ", 1)[1] for _, fields in events(out, name)] for name in ("a", "b")]
        equal(found, [["old = 1", "first = 4, second = 5"], ["old = 2", "new = 3"]], "events")
    finally:
        wait_for(remove, "the probes to be removed")


def test_many(k):
    """The kernel takes long to remove many probes: meanwhile, the daemon serves others."""
    need_tracefs()
    k.start_daemon()
    k.kymo("create", "s", "--no-output")
    for i in range(30):
        k.kymo("enable-event", "-k", f"--userspace-probe={PROBED}:probed_function", f"called{i}")
    (group,) = groups(k)
    k.kymo("start")
    app = k.spawn("probed", 1)
    begin = time.monotonic()
    k.kymo("destroy")
    n_served = 0
    while definitions(group):
        k.kymo("list")
        n_served += 1
    took = time.monotonic() - begin
    go(k, app)
    k.finish(app)
    check(n_served > 3 or took < 0.5, f"{n_served} commands were served in {took:.1f} s")


def test_many_of_the_dead(k):
    """
    A daemon that starts serves others while it removes the probes of a dead one. Daemons of other
    tests remove them, too, and a busy machine may not see the moment: there are several turns.
    """
    need_tracefs()
    k.start_daemon()
    k.kymo("create", "s", "--no-output")
    k.kymo("enable-event", "-k", f"--userspace-probe={PROBED}:probed_function", "called")
    place = definitions(groups(k)[0])[0].split()[1]
    k.stop_daemon()
    app = k.spawn("probed", 1)
    for turn in range(10):
        instance = TRACING / "instances" / f"kymo-{os.getpid():08x}-{turn}"
        group = instance.name.replace("-", "_")
        instance.mkdir()
        write_definitions(*(f"p:{group}/called{i} {place}" for i in range(30)))
        with contextlib.suppress(FileNotFoundError):
            (instance / "events" / group / "enable").write_text("1")
        k.start_daemon()
        k.kymo("list")
        served = definitions(group) and "of session daemons that died" in k.daemon_log()
        k.stop_daemon()
        wait_for(lambda: not definitions(group), "the definitions to be removed")
        if served:
            break
    go(k, app)
    k.finish(app)
    check(served, "no command was served before all probes were removed")


def test_sdt(k):
    """An SDT probe with its arguments. The program sees by its semaphore that it is recorded."""
    need_tracefs()
    k.start_daemon()
    out = k.top / "trace"
    app = k.spawn("probed", N)
    k.kymo("create", "s", "-o", out)
    equal(go(k, app), 0, "semaphore before the rule")
    k.kymo("enable-event", "-k", f"--userspace-probe={STEP}")
    track(k, app)
    k.kymo("start")
    equal(go(k, app), N, "semaphore while recording")
    k.kymo("stop")
    wait_for(lambda: go(k, app) == 0, "the semaphore of a stopped session to be 0")
    k.kymo("start")
    equal(go(k, app), N, "semaphore while recording again")
    k.kymo("destroy")
    equal(go(k, app), 0, "semaphore after the session")
    k.finish(app)
    values = [re.search(r"a1 = (\d+), a2 = (-?\d+)$", fields) for _, fields in events(out, "probed_step")]
    equal([(int(m[1]), int(m[2])) for m in values], [(i, -i) for i in range(N)] * 2, "arguments")


def test_record(k):
    """record --userspace-probe: the command's processes."""
    need_tracefs()
    out = k.top / "trace"
    options = (f"--userspace-probe={STEP}", f"--userspace-probe={PROBED}:probed_function")
    k.kymo("record", "-o", out, *options, "--", "sh", "-c", f"(echo | {PROBED} {N}) & echo | {PROBED} {N}; wait", status=0)
    equal((len(events(out, "probed_step")), len(events(out, "probed_function"))), (2 * N, 2 * N), "events")


def test_two_sessions(k):
    """Two sessions probe one place; one of them ends."""
    need_tracefs()
    k.start_daemon()
    app = k.spawn("probed", N)
    for s in ("a", "b"):
        k.kymo("create", s, "-o", k.top / s)
        k.kymo("enable-event", "-s", s, "-k", f"--userspace-probe={STEP}", "-f", "a1 >= 100")
    track(k, app, "a", "b")
    for s in ("a", "b"):
        k.kymo("start", s)
    go(k, app)
    k.kymo("destroy", "a")
    equal(go(k, app), N, "semaphore for the other session")
    k.kymo("destroy", "b")
    k.finish(app)
    equal([len(events(k.top / s, "probed_step")) for s in ("a", "b")], [N - 100, 2 * (N - 100)], "events")


def test_used_by_others(k):
    """Another program uses a probe when its session ends: the probe is removed afterwards."""
    need_tracefs()
    k.start_daemon()
    k.kymo("create", "s", "-o", k.top / "trace")
    for name in ("first", "second"):
        k.kymo("enable-event", "-k", f"--userspace-probe={PROBED}:probed_function", name)
    (group,) = groups(k)
    left = lambda: [line.split()[0] for line in definitions(group)]
    other = TRACING / "instances" / f"other-{os.getpid()}"
    other.mkdir()
    try:
        enable = other / "events" / group / "second" / "enable"
        enable.write_text("1")
        k.kymo("destroy")
        equal(left(), [f"p:{group}/second"], "the probe that is used")
        enable.write_text("0")
        wait_for(lambda: not left(), "the probe to be removed")
    finally:
        other.rmdir()


def test_rules(k):
    """A rule is disabled and enabled again, and removed; its name means one place."""
    need_tracefs()
    k.start_daemon()
    app = k.spawn("probed", N)
    k.kymo("create", "s", "-o", k.top / "trace")
    probe = ("enable-event", "-k", f"--userspace-probe={STEP}", "step")
    k.kymo(*probe)
    track(k, app)
    k.kymo("start")
    equal(go(k, app), N, "semaphore")
    k.kymo("disable-event", "-k", "step")
    equal(go(k, app), 0, "semaphore of a disabled rule")
    k.kymo(*probe)
    equal(go(k, app), N, "semaphore of an enabled rule")
    k.kymo("disable-event", "-k", "--remove", "step")
    done = k.kymo("enable-event", "-k", f"--userspace-probe={PROBED}:main", "step", status=None)
    check("has had an event 'step' at another place" in done.stderr, done.stderr)
    equal([r["pattern"] for r in k.kymo_json("status")["session"]["channels"][0]["rules"]], [], "rules")
    k.kymo("destroy")
    k.finish(app)
    equal(len(events(k.top / "trace", "step")), 2 * N, "events")


def test_save(k):
    """A saved probe is looked up again when it is loaded."""
    need_tracefs()
    k.start_daemon()
    k.kymo("create", "s", "-o", k.top / "trace")
    k.kymo("enable-event", "-k", f"--userspace-probe={STEP}", "-f", "a1 < 10")
    k.kymo("enable-event", "-k", f"--userspace-probe={PROBED}:probed_function", "called")
    saved = k.kymo("save", "s").stdout
    k.kymo("destroy")
    shutil.rmtree(k.top / "trace")
    (k.top / "s.json").write_text(saved)
    k.kymo("load", k.top / "s.json")
    equal(k.kymo("save", "s").stdout, saved, "session that was saved again")
    app = k.spawn("probed", N)
    track(k, app)
    k.kymo("start")
    go(k, app)
    k.finish(app)
    k.kymo("destroy")
    equal([len(events(k.top / "trace", name)) for name in ("probed_step", "called")], [10, N], "events")


def test_killed(k):
    """The daemon is killed, and recording goes on; daemon and consumer are: nothing is left."""
    need_tracefs()
    k.start_daemon()
    app = k.spawn("probed", N)
    k.kymo("create", "s", "-o", k.top / "trace")
    k.kymo("enable-event", "-k", f"--userspace-probe={STEP}")
    track(k, app)
    k.kymo("start")
    made = groups(k)
    k.daemon.kill()
    k.daemon.wait()
    equal(go(k, app), N, "semaphore without a daemon")
    k.start_daemon()
    equal(go(k, app), N, "semaphore with another daemon")
    consumer = wait_for(lambda: consumers(k), "the consumer")[0]
    equal(len(definitions(made[0])), 1, "definitions")
    k.daemon.kill()
    k.daemon.wait()
    os.kill(consumer, signal.SIGKILL)
    wait_for(lambda: not kymotest.alive(consumer), "the consumer to end")
    k.start_daemon()
    wait_for(lambda: not definitions(made[0]), "the definitions to be removed")
    equal(go(k, app), 0, "semaphore afterwards")
    k.finish(app)


def test_refused(k):
    """Each refusal is one line that says what is missing."""
    need_tracefs()
    k.start_daemon()
    k.kymo("create", "s", "--no-output")
    refused = [
        (f"--userspace-probe={PROBED}:probed_functio", "has no function 'probed_functio': did you mean 'probed_function'?"),
        (f"--userspace-probe=sdt:{PROBED}:probed:stop", "has no SDT probe 'probed:stop': it has probed:step"),
        ("--userspace-probe=/etc/passwd:main", "/etc/passwd is not a 64-bit program or library"),
        ("--userspace-probe=/no/such:main", "/no/such: No such file"),
        ("--userspace-probe=main", "'main' is not a place of a program"),
        *((f"--userspace-probe={PROBED}:main+{bad}", "is not a place of a program") for bad in ("", "x", "-1", " 4", "+4", "9" * 30)),
        (f"--userspace-probe={PROBED}:main+0x10000", "offset 65536 is behind the end of function 'main'"),
    ]
    if not (TRACING / "kprobe_events").exists():
        refused.append(("--probe=do_nothing", "this kernel has no probes of itself (CONFIG_KPROBE_EVENTS)"))
        refused.append(("--function=do_*", "this kernel has no probes of itself (CONFIG_KPROBE_EVENTS)"))
    for option, wanted in refused:
        done = k.kymo("enable-event", "-k", option, status=None)
        check(done.returncode, f"{option} was not refused")
        equal(done.stderr.count("\n"), 1, f"lines of {done.stderr!r}")
        check(wanted in done.stderr, f"{option}: {done.stderr!r} lacks {wanted!r}")
    for name in ("x:y", "n" * 64):
        done = k.kymo("enable-event", "-k", f"--userspace-probe={PROBED}:probed_function", name, status=None)
        equal(done.stderr, f"kymo: '{name}' cannot name an event: use up to 63 letters, digits and '_'\n", "a bad name")


def test_kernel_function(k):
    """A probe of the kernel's own: its entry and exit for each call of the tracked process."""
    need_tracefs("kprobe_events", "events/syscalls")
    k.start_daemon()
    out = k.top / "trace"
    k.kymo("create", "s", "-o", out)
    k.kymo("enable-event", "-k", "--probe=vfs_write", "entered")
    k.kymo("enable-event", "-k", "--function=vfs_write")
    app = k.spawn("writes", "-w", N)
    app.stdout.readline()
    track(k, app)
    k.kymo("start")
    k.let_go(app)
    k.finish(app)
    k.kymo("destroy")
    for name in ("entered", "vfs_write_entry", "vfs_write_exit"):
        equal(len(events(out, name)), N, name)


def test_kernel_functions_return(k):
    """The exit of each call: of functions that have no value, and while many threads are in one."""
    need_tracefs("kprobe_events")
    threads = 300
    script = f"""
import threading, time
all = [threading.Thread(target=time.sleep, args=(1,)) for _ in range({threads})]
for one in all: one.start()
for one in all: one.join()
open("/dev/null").close()
"""
    k.kymo("record", "-o", k.top / "trace", "--function=hrtimer_nanosleep", "--function=fput", "--", sys.executable, "-c", script, status=0)
    for name in ("hrtimer_nanosleep", "fput"):
        entries, exits = (len(events(k.top / "trace", f"{name}_{what}")) for what in ("entry", "exit"))
        check(entries >= (threads if name == "hrtimer_nanosleep" else 1), lambda: f"{entries} calls of {name}")
        equal(exits, entries, f"exits of {name}")


kymotest.main()
