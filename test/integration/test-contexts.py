#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Contexts: the values at the begin of a record are those that system calls return to the program at
the same place.
"""

import errno
import os
import re
import signal
import struct
import time

import kymotest
from program import ACK, CAP_RSEQ, CONTEXTS, RING_SET, START, UNCOUNTED, Daemon, Program, blob, description, text
from kymotest import LIBDIR, RUN_FROM, SANITIZED, SOURCE, Skip, Values, babeltrace, check, equal, wait_for, without_sanitizers

NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
KEPT = ["vpid", "vtid", "pthread_id", "procname", "vuid", "veuid", "vsuid", "vgid", "vegid", "vsgid", "cgroup_ns", "ipc_ns",
    "mnt_ns", "net_ns", "pid_ns", "time_ns", "user_ns", "uts_ns"]
CODE_SIZE = 16384 if SANITIZED else 4096  # no function of the program is larger
LINE = re.compile(r"\[\S+\] \(\S+\) (?:\S+ )?(?P<name>[^ :]+:[^ ]+): (?P<scopes>\{.*)$")


def split(scopes):
    """Returns the texts between outermost braces."""
    found, values = [], Values(scopes)
    while values.pos < len(scopes):
        check(values.take("{"), f"a scope at {values.pos} of {scopes!r}")
        found.append({} if scopes.startswith(" }", values.pos) else values.take(" ") and values.fields(" }"))
        values.want(" }")
        values.take(", ")
    return found


def read(k, trace):
    """
    Returns [(name, contexts, fields)] from babeltrace2's text; kymo view must print the same text.
    """
    text, discarded = babeltrace(trace)
    equal(discarded, 0, "discarded events")
    plain = k.run(["babeltrace2", trace], env={"TZ": "UTC"}).stdout
    equal(k.kymo("view", trace, env={"TZ": "UTC"}).stdout, plain, "what kymo view prints, against babeltrace2")
    events = []
    for line in text.splitlines():
        match = LINE.match(line)
        check(match, f"a line of another form: {line!r}")
        scopes = split(match["scopes"])
        events.append((match["name"], scopes[1] if len(scopes) == 3 else {}, scopes[-1]))
    return events


def create(k, *contexts, rules="ctx:*", options=()):
    out = k.record(rules, start=False)
    if contexts:
        k.kymo("add-context", "-u", *[a for c in contexts for a in ("-t", c)], *options)
    k.kymo("start")
    return out


def check_kept(events, kinds):
    """Compares each context with the field t_NAME, which holds the true value."""
    for _, context, fields in events:
        equal(list(context)[: len(kinds)], list(kinds), "order of contexts")
        for kind in kinds:
            equal(context[kind], fields[f"t_{kind}"], f"{kind} in step '{fields['step']}'")


def run_kept(k, kinds, *situations, env=None, app="contexts"):
    k.start_daemon()
    trace = create(k, *kinds)
    k.app(app, *situations, env=env)
    k.kymo("stop")
    events = read(k, trace)
    check_kept(events, kinds)
    return [e[2]["step"] for e in events]


def steps_of_all(env=None):
    def test(k):
        situations = ["main", "name", "thread", "signal", "fork", "name-silently", "coroutine"]
        steps = ["main", "renamed", "thread", "handler", "handler", "child", "renamed silently", "coroutine"]
        if os.geteuid() == 0 and kymotest.may_unshare("--uts", "--ipc"):
            situations += ["namespaces"]
            steps += ["before unshare", "other namespaces"]
        equal(run_kept(k, KEPT, *situations, env=env), steps, "steps")

    return test


test_truth = steps_of_all()
test_truth_thread_rings = steps_of_all(NO_RSEQ)


def test_truth_one_by_one(k):
    """Other orders, and lists that omit a value in the middle."""
    for kinds in (["uts_ns", "vpid"], ["procname"], ["vtid", "vpid", "vgid", "vuid"]):
        k.start_daemon()
        trace = create(k, *kinds)
        k.app("contexts", "main", "name", "thread", "fork")
        k.kymo("stop")
        check_kept(read(k, trace), kinds)
        k.kymo("destroy", "s")
        k.stop_daemon()
        for path in sorted(trace.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        trace.rmdir()


def test_preloaded(k):
    """The library that intercepts prctl makes the next event exact."""
    if SANITIZED:
        raise Skip("a program with AddressSanitizer does not start with other libraries before the sanitizer's")
    library = RUN_FROM / "src" / "preload" / "libkymo-libc.so"
    steps = run_kept(k, ["vpid", "procname"], *["preloaded"] * 20, env={"LD_PRELOAD": str(library), "LD_LIBRARY_PATH": LIBDIR})
    equal(steps, ["before", "preloaded"] * 20, "steps")


def test_long_header(k):
    """
    In two sessions: an event that occurs so much later that it needs a long header is recorded
    once.
    """
    k.start_daemon()
    traces = [k.record("alpha:one", session=name, start=False) for name in ("one", "two")]
    for name in ("one", "two"):
        k.kymo("add-context", "-t", "vpid", "-s", name)
    k.kymo("start", "-a")
    app = k.spawn("rules", "-w", *[2] * 5)
    for _ in range(5):
        k.expect(app, "ready")
        time.sleep(0.1)  # 2^27 ticks of the clock
        k.let_go(app)
    k.expect(app, "ready")
    k.let_go(app)
    k.finish(app)
    k.kymo("stop", "-a")
    for trace in traces:
        equal([e[-1]["n"] for e in read(k, trace)], [0, 1] * 5, "events")


def test_cpu_and_ip(k):
    k.start_daemon()
    trace = create(k, "cpu_id", "ip")
    k.app("contexts", "main")
    k.kymo("stop")
    ((_, context, fields),) = read(k, trace)
    check(context["cpu_id"] in os.sched_getaffinity(0), context)
    check(0 < context["ip"] - fields["t_function"] < CODE_SIZE, f"ip is not in the function: {context} {fields}")


def stacks(k, app, env=None):
    k.start_daemon()
    trace = create(k, "callstack:32", "ip", "vtid")
    k.app(app, "main", "deep", "thread", "signal", "coroutine", env=env)
    k.kymo("stop")
    events = read(k, trace)
    equal([e[2]["step"] for e in events], ["main", "deep", "thread", "handler", "handler", "coroutine"], "steps")
    for _, context, fields in events:
        equal(len(context["callstack"]), 32, "array")
        equal(context["callstack"][0], context["ip"], f"innermost address in {fields['step']}")
        check(0 < context["ip"] - fields["t_function"] < CODE_SIZE, f"ip is not in the function: {context} {fields}")
    return {e[2]["step"]: [a for a in e[1]["callstack"] if a] for e in events}


def test_callstack(k):
    found = stacks(k, "contexts")
    if SANITIZED:
        return  # a sanitizer may keep the stack elsewhere
    check(len(found["deep"]) >= len(found["main"]) + 5, f"deep is not deep: {found}")
    check(len(found["main"]) >= 3, f"main has no callers: {found}")
    check(len(found["thread"]) >= 2, f"a thread's stack: {found}")
    equal(len(found["handler"]), 1, "on another stack nothing is walked")
    equal(len(found["coroutine"]), 1, "on another stack nothing is walked")


def test_callstack_without_frames(k):
    stacks(k, "contexts-no-frames")


def test_callstack_thread_rings(k):
    stacks(k, "contexts", NO_RSEQ)


def need_counters(k):
    """Skips the test if a running daemon cannot open counters."""
    k.kymo("create", "probe")
    if k.kymo("add-context", "-s", "probe", "-t", "perf:thread:page-faults", status=None).returncode:
        raise Skip("the kernel does not let programs count (kernel.perf_event_paranoid)")
    k.kymo("destroy", "probe")


def uncounted(k):
    """Returns status's warnings about counters."""
    return [w for w in k.kymo_json("status")["warnings"] if "is 0 in events of application" in w]


def test_perf(k):
    k.start_daemon()
    need_counters(k)
    trace = create(k, "perf:thread:page-faults", "perf:thread:task-clock")
    k.app("contexts", *["faults"] * 2, "thread", "fork")
    k.kymo("stop")
    events = read(k, trace)
    last = {e[2]["step"]: e[1] for e in events}
    rise = last["after faults"]["perf_thread_page_faults"] - last["before faults"]["perf_thread_page_faults"]
    check(100 <= rise < 200, f"100 faults were counted as {rise}")
    check(last["after faults"]["perf_thread_task_clock"] > last["before faults"]["perf_thread_task_clock"], "the clock stands")
    check(last["child"]["perf_thread_page_faults"] < rise, "a child's counter is its own")
    equal(uncounted(k), [], "warnings")


def test_perf_forbidden(k):
    """
    A program that may not use counters, and exits by itself: its events have the value 0, and
    status gives the reason.
    """
    k.start_daemon()
    need_counters(k)
    trace = create(k, "perf:thread:page-faults", "vpid", "perf:thread:task-clock")
    for _ in range(2):
        app = k.spawn("contexts", "forbid-counting-at-start", "main")
        k.finish(app)
    warnings = uncounted(k)
    equal(len(warnings), 2, f"one for each counter: {warnings}")
    for warning, name in zip(warnings, ("page-faults", "task-clock")):
        check(f"'perf:thread:{name}' is 0 in events of application contexts (pid " in warning and "seccomp" in warning, warning)
    k.kymo("stop")
    events = read(k, trace)
    equal([(e[1]["perf_thread_page_faults"], e[1]["perf_thread_task_clock"]) for e in events], [(0, 0)] * 2, "counters")


def test_perf_forbidden_later(k):
    """
    A thread loses the right to use counters after the session started: status reports it when the
    session stops, at the latest.
    """
    k.start_daemon()
    need_counters(k)
    create(k, "perf:thread:page-faults")
    app = k.spawn("contexts", "forbid-counting", "main", "wait")
    k.expect(app, "ready")
    k.kymo("stop")
    (warning,) = uncounted(k)
    check(f"(pid {app.pid})" in warning, warning)
    k.kymo("create", "second", "-o", k.traces / "second")
    k.kymo("enable-event", "ctx:*")
    equal(uncounted(k), [], "in a session that counts nothing")
    k.kymo("add-context", "-t", "vpid,perf:thread:page-faults")
    k.kymo("start")
    k.let_go(app)
    k.finish(app)
    k.kymo("stop")
    equal(len(uncounted(k)), 1, "reported again in a later session")


def test_perf_forbidden_unasked(k):
    """... and soon, without any command."""
    k.start_daemon()
    need_counters(k)
    create(k, "perf:thread:page-faults")
    app = k.spawn("contexts", "forbid-counting", "main", "wait")
    k.expect(app, "ready")
    wait_for(lambda: uncounted(k), "a warning while the session records")
    k.let_go(app)
    k.finish(app)


def test_perf_forbidden_record(k):
    done = k.kymo("record", "-o", k.traces / "r", "-t", "perf:thread:page-faults", "--", kymotest.APPS / "contexts",
        "forbid-counting-at-start", "main", status=None)
    if "does not let its user count" in done.stderr:
        raise Skip("the kernel does not let programs count (kernel.perf_event_paranoid)")
    check("'perf:thread:page-faults' is 0 in events of application contexts" in done.stderr, done.stderr)


def test_uncounted_before_ack(k):
    """
    With a simulated daemon: the application reports the counters that it could not open before it
    acknowledges, again after each CONTEXTS.
    """
    rings, consumed = os.memfd_create("rings"), os.memfd_create("consumed")
    os.ftruncate(consumed, 4096)
    with Daemon(k, n_active=0) as daemon:
        app = k.spawn("contexts", "wait")
        peer = daemon.accept()
        rseq = struct.unpack_from("<III", peer.hello)[2] & CAP_RSEQ
        size = kymotest.Geometry(1, 2, 4096, not rseq).total
        os.ftruncate(rings, size)
        k.expect(app, "ready")
        peer.send(RING_SET, struct.pack("<7IQIII", 5, 0 if rseq else 1, 0, 0, 1, 2, 4096, size, 0, 1, 1), [rings, consumed])
        counters = [(2, ""), (21, "ffff:abc123456789"), (21, "fffe:1")]  # no kernel has these
        contexts = blob(b"".join(struct.pack("<I", kind) + text(argument) for kind, argument in counters))
        for cookie in (1, 2):
            kymotest.stop(app.pid)  # both messages have arrived before it reads
            peer.send(CONTEXTS, struct.pack("<II", 5, len(counters)) + contexts)
            peer.send(START, struct.pack("<II", cookie, 5))
            os.kill(app.pid, signal.SIGCONT)
            for type_, config in ((0xFFFF, 0xABC123456789), (0xFFFE, 1)):
                *counter, status = struct.unpack("<IQi", peer.expect(UNCOUNTED))
                equal(counter, [type_, config], "counter")
                check(status < 0, status)
            equal(struct.unpack("<Ii", peer.expect(ACK)), (cookie, 0), "ACK")
        equal(peer.order(START, 5), 0, "START: reported counters are not reported again")
        k.let_go(app)
        k.finish(app)
        peer.close()
    for fd in (rings, consumed):
        os.close(fd)


def test_uncounted_is_checked(k):
    """
    A simulated application reports anything: the daemon accepts only counters of its channels, and
    each once.
    """
    k.start_daemon(env={"KYMO_CLOCK": "monotonic"})
    need_counters(k)
    create(k, "vpid", "perf:thread:page-faults", "perf:thread:task-clock")
    program = Program(k, description("event", provider="ctx"), name="liar")
    program.serve()
    for type_, config, status in ((1, 3, -1), (0, 2, -1), (1, 2, -errno.EACCES), (1, 2, -errno.EMFILE), (1, 1, 7), (1, 1, -2**31)):
        program.send(UNCOUNTED, struct.pack("<IQi", type_, config, status))
    first, second = wait_for(lambda: len(uncounted(k)) == 2 and uncounted(k), "two warnings")
    check("page-faults" in first and "liar" in first and "kernel.perf_event_paranoid" in first, first)
    check("task-clock" in second, second)
    program.send(UNCOUNTED, b"\1\0\0\0")
    while program.receive():  # a truncated message ends the connection
        pass
    program.close()


def test_application(k):
    k.start_daemon()
    trace = create(k, "$app.shop:number", "$app.shop:user", "$app.shop:real", "vpid")
    k.app("contexts", "main", "application")
    k.kymo("stop")
    found = [(e[1]["_app_shop_number"], e[1]["_app_shop_user"], e[1]["_app_shop_real"]) for e in read(k, trace)]
    equal(found, [("", "", ""), ("-42", "bob", "0.5"), ("43", "x" * 255, "0.5"), ("", "", "")], "values of the program's own")


POISONED = """
#include <kymo/context.h>
static void get_user(void *data, union kymo_context_value *value) { value->string = data; }
static char bob[] = "bob";
static struct kymo_context user = {sizeof(user), KYMO_CONTEXT_STRING, "shop:user", get_user, bob};
static void leave_memory_without_value(void)
{
	char unused[16384];
	__asm__("" : : "r"(unused) : "memory");
}
int main(void)
{
	int r = kymo_context_register(&user);
	leave_memory_without_value();
	kymo_event(ctx, poisoned);
	return r;
}
"""


@without_sanitizers
def test_memory_sanitizer(k):
    """The library's values are no error of a program that clang's memory sanitizer examines."""
    (k.top / "user.c").write_text(POISONED)
    k.run(["clang", "-g", "-fsanitize=memory", f"-I{SOURCE / 'include'}", k.top / "user.c", "-o", k.top / "user"])
    k.start_daemon()
    trace = create(k, "$app.shop:user")
    k.run([k.top / "user"], env={"LD_LIBRARY_PATH": str(LIBDIR)})
    k.kymo("stop")
    equal([e[1]["_app_shop_user"] for e in read(k, trace)], ["bob"], "values of the program's own")


def test_large_records(k):
    k.start_daemon()
    trace = create(k, "vpid", "callstack:64", "procname")
    app = k.spawn("contexts", "large")
    k.finish(app)
    k.kymo("stop")
    ((_, context, fields),) = read(k, trace)
    equal((context["vpid"], context["procname"], fields), (app.pid, "contexts", {"text": "L" * 2999, "last": 7}), "large record")


def test_exact_counts(k):
    """
    Contexts are added before events exist, to running programs, and while they record: no event is
    lost or recorded twice.
    """
    k.start_daemon()
    trace = create(k, "vpid", options=("-s", "s"))
    app = k.spawn("contexts", *["many", "wait"] * 4)
    k.expect(app, "ready")
    k.kymo("add-context", "-t", "vtid")
    k.let_go(app)
    k.expect(app, "ready")
    k.kymo("stop")
    k.kymo("start")
    k.let_go(app)
    k.expect(app, "ready")
    k.kymo("stop")
    k.kymo("add-context", "-t", "procname")
    k.kymo("start")
    k.let_go(app)
    k.expect(app, "ready")
    k.let_go(app)
    k.finish(app)
    k.kymo("stop")
    events = read(k, trace)
    equal([e[2]["i"] for e in events], list(range(5000)) * 4, "events")
    shapes = [tuple(e[1]) for e in events]
    equal(shapes, [("vpid",)] * 5000 + [("vpid", "vtid")] * 10000 + [("vpid", "vtid", "procname")] * 5000, "shapes")
    check(all(e[1]["vpid"] == app.pid for e in events), "vpid")


def test_known_events_at_once(k):
    """In a session that records, known events of programs get the context too."""
    k.start_daemon()
    trace = create(k)
    k.app("contexts", "many")
    k.kymo("add-context", "-t", "vpid")
    k.app("contexts", "main", "many")
    k.kymo("stop")
    events = read(k, trace)
    equal({(e[0], tuple(e[1])) for e in events}, {("ctx:many", ()), ("ctx:many", ("vpid",)), ("ctx:event", ("vpid",))}, "events")
    k.kymo("start")
    k.app("contexts", "main")
    k.kymo("stop")
    equal(read(k, trace)[-1][1].keys(), {"vpid"}, "after the next start")


def test_late_in_each_session(k):
    """
    One session after the other gets its context while it records: each has all events, with the
    context or without it, and the memory of the program does not grow.
    """
    k.start_daemon()
    n_sessions = 12
    app = k.spawn("contexts", *["wait", "kinds", "wait", "kinds"] * n_sessions, "wait")
    k.expect(app, "ready")
    for i in range(n_sessions):
        if i == n_sessions // 2:
            before = kymotest.private_mib(app.pid)
        trace = k.record("ctx:kind*", session=f"s{i}")
        k.let_go(app)
        k.expect(app, "ready")
        k.ask("add-context", session=f"s{i}", contexts=["vpid"])
        k.let_go(app)
        k.expect(app, "ready")
        k.kymo("stop", f"s{i}")
        events = read(k, trace)
        k.kymo("destroy", f"s{i}")
        equal([tuple(e[1]) for e in events], [()] * 100 + [("vpid",)] * 100, f"shapes in session {i}")
        equal([e[2]["i"] for e in events], list(range(100, 200)) * 2, f"values in session {i}")
    grown = kymotest.private_mib(app.pid) - before
    check(grown < 1 / 16, f"{n_sessions // 2} sessions took {grown} MiB of the program's memory")
    k.let_go(app)
    k.finish(app)


def test_while_programs_record(k):
    """
    At full speed, in several threads, with and without a filter: each event is recorded once, with
    or without the context.
    """
    k.start_daemon()
    for name, filtered in (("plain", ()), ("filtered", ("-f", "thread >= 0"))):
        trace = k.traces / name
        k.kymo("create", name, "-o", trace)
        k.kymo("enable-event", "-s", name, "emit:*", *filtered)
        k.kymo("start", name)
        app = k.spawn("emit", "-n", 60000, "-t", 3, "-w")
        k.expect(app, "ready")
        k.let_go(app)
        for kind in ("vpid", "vtid", "procname"):
            k.kymo("add-context", "-s", name, "-t", kind)
        k.read_until(app, "done")
        k.let_go(app)
        k.finish(app)
        k.kymo("destroy", name)
        kymotest.check_counts(k, trace, 180000)


def test_two_channels(k):
    """The same event in channels with different contexts, and without contexts."""
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    for name, kinds in (("one", ["vpid"]), ("two", ["procname", "vtid"]), ("three", [])):
        k.kymo("enable-channel", name)
        k.kymo("enable-event", "-c", name, "ctx:many")
        if kinds:
            k.kymo("add-context", "-c", name, "-t", ",".join(kinds))
    k.kymo("start")
    k.app("contexts", "many")
    k.kymo("stop")
    shapes = [tuple(e[1]) for e in read(k, k.traces / "s")]
    equal({s: shapes.count(s) for s in set(shapes)}, {("vpid",): 5000, ("procname", "vtid"): 5000, (): 5000}, "shapes")


def test_record(k):
    trace = k.traces / "r"
    k.kymo("record", "-o", trace, "-t", "vpid,procname", "--", kymotest.APPS / "contexts", "main")
    check_kept(read(k, trace), ["vpid", "procname"])


def test_refusals(k):
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    for wrong, says in (("vpdi", "did you mean 'vpid'"), ("perf:thread:page-fualts", "did you mean perf:thread:page-faults"),
            ("callstack:65", "1 to 64"), ("$app.x", "$app.PROVIDER:NAME"), (".x:y", "in single quotes"), ("perf:thread:raw:x:y", "raw:rHEX:NAME"),
            ("perf:cpu:cycles", "perf:thread:NAME"), ("zzzzzzzz", "add-context --list")):
        done = k.kymo("add-context", "-t", wrong, status=2)
        check(says in done.stderr, f"{wrong}: {done.stderr}")
    check("no channel" in k.kymo("add-context", "-t", "vpid", "-c", "none", status=1).stderr, "unknown channel")
    k.kymo("add-context", "-t", "vpid,vpid")
    check("already" in k.kymo("add-context", "-t", "vpid").stdout, "twice")
    check("vpid" in k.kymo("status").stdout, "status")
    done = k.kymo("add-context", "-t", "callstack:4,callstack:8", status=2)
    check("'callstack:4' and 'callstack:8' exclude each other" in done.stderr, f"two depths at once: {done.stderr}")
    equal(k.kymo_json("status")["session"]["channels"][0]["contexts"], ["vpid"], "status in JSON")
    k.kymo("enable-channel", "stacks")
    k.kymo("add-context", "-t", "callstack:4,callstack:4", "-c", "stacks")
    done = k.kymo("add-context", "-t", "callstack:8", "-c", "stacks", status=1)
    check("records 'callstack:4', so it cannot also record 'callstack:8'" in done.stderr, f"another depth later: {done.stderr}")
    check("already" in k.kymo("add-context", "-t", "callstack:4", "-c", "stacks").stdout, "the same depth later")
    check("vtid" in k.kymo("add-context", "--list").stdout, "list")


kymotest.main()
