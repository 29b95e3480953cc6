#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kymo record --sample: what the command's processes execute, with their call stacks, on the clock of
their events; also after a consumer was killed, and with losses counted. Needs perf_event_open.
"""

import json
import os
import pathlib
import re
import signal

import kymotest
from kymotest import babeltrace, check, children, equal, wait_for, without_sanitizers

SAMPLE = "kymo_sample"
N_MS = 300
HZ_LOSSES = 3000


def need_samples(k):
    tried = k.kymo("record", "--no-summary", "--sample", "-o", k.top / "tried", "--", "true", status=None)
    if tried.returncode == 1 and "CPU samples" in tried.stderr:
        raise kymotest.Skip(tried.stderr.strip())
    equal((tried.returncode, tried.stderr), (0, ""), "result of a recording of nothing")


def record(k, *options, command):
    trace = k.top / "trace"
    done = k.kymo("record", "--sample", *options, "-o", trace, "--", *command)
    return trace, done


def folded(k, trace):
    """Returns the stacks, each as a list of functions with the number of its samples."""
    text = k.kymo("export", "--to=folded", "--stacks=calls", trace, "-o", "-").stdout
    return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in text.splitlines()]


def recorded(stderr):
    return int(re.search(r"(\d+) events recorded", stderr)[1])


def discarded(stderr):
    return int(re.search(r"(\d+) discarded", stderr)[1])


def in_user(stacks, *functions):
    """Returns how many samples have these functions, one directly below the other."""
    def has(stack):
        return any(tuple(stack[i:i + len(functions)]) == functions for i in range(len(stack)))
    return sum(n for stack, n in stacks if has(stack))


def spawn(k, *args, options=()):
    """Records a program that waits for lines; returns it with its session daemon's number."""
    trace = k.top / "trace"
    app = k.spawn("spins", *args, wrap=[kymotest.CLI, "record", "--sample", *options, "-o", trace, "--"])
    int(app.stdout.readline())
    daemons = [pid for pid in children(app.pid, "") if "kymo-sessiond" in kymotest.command_of(pid)]
    equal(len(daemons), 1, "session daemons of the recording")
    return app, trace, daemons[0]


def consumer_of(daemon):
    return next(iter(children(daemon, "kymo-consumerd")), None)


def written(trace):
    return sum(f.stat().st_size for f in (trace / "kernel").glob("samples_*"))


def wait_more(trace):
    before = written(trace)
    wait_for(lambda: written(trace) > before, "more samples in the trace")


def test_samples(k):
    """Functions of the command and its children, between the events that they are between."""
    need_samples(k)
    trace, done = record(k, command=(kymotest.APPS / "spins", N_MS))
    text, lost = babeltrace(trace)
    equal(lost, 0, "discarded events")
    equal(len(text.splitlines()), recorded(done.stderr), "events in the trace")
    stacks = folded(k, trace)
    equal(sum(n for _, n in stacks), text.count(f" {SAMPLE}: "), "samples in the graph")
    check(in_user(stacks, "main", "outer", "inner") >= 3, lambda: f"samples of outer() and inner(): {stacks}")
    check(in_user(stacks, "main", "in_child") >= 3, lambda: f"samples of the child: {stacks}")
    equal([s for s, _ in stacks if "inner" in s and "in_child" in s], [], "stacks that cannot be")
    events = [json.loads(line) for line in k.kymo("view", "--json", "--symbols", trace).stdout.splitlines()]
    times = {name: [e["timestamp"] for e in events if e["name"] == name] for name in ("spins:begin", "spins:end")}
    times["inner"] = [e["timestamp"] for e in events if any(s and "outer+" in s for s in e["fields"].get("callstack_user_symbol", []))]
    equal((len(times["spins:begin"]), len(times["spins:end"])), (1, 1), "events of the program")
    check(times["spins:begin"][0] < min(times["inner"]) and max(times["inner"]) < times["spins:end"][0],
        lambda: f"a sample of inner() is not between the events around it: {times}")


def test_text(k):
    """The text that babeltrace2 prints; files that the process had, with their identity."""
    need_samples(k)
    trace, _ = record(k, command=(kymotest.APPS / "spins", 20))
    theirs = k.run(["babeltrace2", trace])
    equal(kymotest.warnings_of(theirs.stderr), [], "warnings of babeltrace2")
    equal(k.kymo("view", trace).stdout == theirs.stdout, True, "the two texts are equal")
    names = re.findall(r'kymo_lib:map: .* path = "([^"]+)"', theirs.stdout)
    check(any(name.endswith("/spins") for name in names), lambda: f"the program among {names}")
    equal(len(re.findall(r"kymo_lib:fork: ", theirs.stdout)), 1, "forks")
    equal(re.findall(r'kymo_lib:exec: .* name = "([^"]+)"', theirs.stdout), ["spins"], "programs")


def test_explained(k):
    """The function that slow spans execute is named. A span that does not run has few samples."""
    need_samples(k)
    trace, _ = record(k, command=(kymotest.APPS / "squeezes",))
    out = k.kymo("explain", "--span=zip:file", trace).stdout
    check("samples are in squeeze" in out or "it hardly runs" in out, lambda: f"what explain says: {out}")


def test_consumer_killed(k):
    """The next consumer continues: no sample twice, and none without its place."""
    need_samples(k)
    app, trace, daemon = spawn(k, 1, 1)
    for _ in range(3):
        wait_more(trace)
        victim = wait_for(lambda: consumer_of(daemon), "a consumer")
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: consumer_of(daemon) not in (None, victim), "another consumer")
    wait_more(trace)
    k.let_go(app)
    k.let_go(app)
    text = k.finish(app)
    equal(discarded(text), 0, "discarded events")
    lines = babeltrace(trace)[0].splitlines()
    equal(len(lines), recorded(text), "events in the trace")
    equal(len(set(lines)), len(lines), "events that are different")


@without_sanitizers
def test_losses(k):
    """A consumer that does not read: what the buffers cannot hold is counted."""
    need_samples(k)
    if int(pathlib.Path("/proc/sys/kernel/perf_event_max_sample_rate").read_text()) < HZ_LOSSES:
        raise kymotest.Skip(f"kernel.perf_event_max_sample_rate is less than {HZ_LOSSES}")
    app, trace, daemon = spawn(k, 1000, 100, options=[f"--sample={HZ_LOSSES}"])
    wait_more(trace)
    consumer = consumer_of(daemon)
    kymotest.stop(consumer)
    k.let_go(app)
    k.expect(app, "done")
    os.kill(consumer, signal.SIGCONT)
    k.let_go(app)
    text = k.finish(app)
    check(discarded(text) > 0, f"nothing was lost: {text}")
    lines, lost = babeltrace(trace)
    equal((len(lines.splitlines()), lost), (recorded(text), discarded(text)), "recorded and discarded events")


def test_refused(k):
    """One line, and the command does not run."""
    need_samples(k)
    ran = k.top / "ran"
    for options, wanted in {
            ("--sample=2000000000",): "CPU samples a second",
            ("--sample=x",): "is not a number",
            ("--sample=0",): "must be at least 1",
            ("--sample=",): "has an empty argument",
            ("--sample", "--snapshot"): "exclude each other"}.items():
        done = k.kymo("record", *options, "-o", k.top / "refused", "--", "touch", ran, status=(1, 2))
        check(wanted in done.stderr, lambda done=done: f"unexpected: {done.stderr}")
        equal((ran.exists(), (k.top / "refused").exists()), (False, False), "the command ran, a trace is there")
    k.start_daemon()
    k.kymo("create", "s", "-o", k.top / "other")
    answer = k.request(command="sample", frequency=99)
    equal((answer["ok"], answer["code"]), (False, "unsupported"), "a daemon that is not a command's")


if __name__ == "__main__":
    kymotest.main()
