#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kernel.py [ROUNDS]: records the same load of kernel events with `kymo record`, trace-cmd and perf in
turn, and prints for each the processor time for a million events, without the traced load, and the
bytes of an event; of Kymo also the time of its consumer alone. Needs root, tracefs, trace-cmd and
perf; else it says so and ends. `make bench` runs it. TRACE_CMD replaces the command `trace-cmd`.

trace-cmd writes files of the function tracer, unasked, and ends if it may not. It then runs in a
mount namespace in which ordinary files are in their places.
"""

import collections
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("KYMO_BENCH_BUILD", ROOT / "build-bench"))
KYMO = BUILD / "src/cli/kymo"
LOAD = BUILD / "bench/kernel-load"
EVENTS = ("sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit")
N = 250000  # the cost of a start is then small
TRACING = pathlib.Path("/sys/kernel/tracing")
SWITCH = pathlib.Path("/proc/sys/kernel/ftrace_enabled")
MEMORY = pathlib.Path("/dev/shm")  # a disk's file system takes time of its own for each new file
HIDDEN = "pid", "notrace_pid", "filter", "notrace"
Result = collections.namedtuple("Result", "seconds events lost bytes")


def why_not():
    if os.geteuid():
        return "it needs root"
    if not os.access(TRACING / "instances", os.W_OK):
        return f"there is no tracefs at {TRACING} that can be written"
    missing = [p for p in (os.environ.get("TRACE_CMD", "trace-cmd"), "perf", "babeltrace2") if not shutil.which(p)]
    return f"{', '.join(missing)} missing" if missing else None


def times(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def load_script(top):
    return f"{LOAD} {N} 0 & {LOAD} {N} {max(os.sched_getaffinity(0))} & wait; times > {top}/times"


def measure(*command):
    """Runs a tool that runs the load; returns the tool's processor time, and its output."""
    before = times(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*map(str, command[1:]), "sh", "-c", load_script(command[0])], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[1]}: {done.stdout}{done.stderr}")
    # the children of the shell: minutes and seconds, user and system
    load = sum(int(m) * 60 + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", (command[0] / "times").read_text()))
    return times(resource.RUSAGE_CHILDREN) - before - load, done


def size_of(directory):
    return sum(f.stat().st_size for f in directory.rglob("*") if f.is_file() and "index" not in f.parts)


def by_kymo(top):
    out = top / "kymo"
    rules = [word for e in EVENTS for word in ("-k", e)]
    seconds, done = measure(top, KYMO, "record", "-o", out, "--whole-system", "-t", "none", "--subbuf-size=64K", "--num-subbuf=128", *rules, "--")
    counted = re.search(r"([\d,]+) events recorded, ([\d,]+) discarded", done.stderr)
    n, lost = (int(c.replace(",", "")) for c in counted.groups())
    return Result(seconds, n, lost, size_of(out))


def consumer_of(pid):
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return next(c for c in children if pathlib.Path(f"/proc/{c}/comm").read_text().startswith("kymo-consumer"))


@contextlib.contextmanager
def daemon(top):
    """A daemon of its own: yields its number, and a function that calls kymo."""
    env = {**os.environ, "KYMO_RUNDIR": str(top / "run"), "KYMO_HOME": str(top)}

    def kymo(*args):
        return subprocess.run([KYMO, *map(str, args)], env=env, capture_output=True, text=True, check=True).stdout

    with subprocess.Popen([BUILD / "src/sessiond/kymo-sessiond"], env=env, stderr=subprocess.DEVNULL) as process:
        while not (top / "run/control.sock").exists() and process.poll() is None:
            time.sleep(0.01)
        try:
            yield process.pid, kymo
        finally:
            process.terminate()


def by_consumer(top):
    """The consumer alone, which is what does something for each event."""
    with daemon(top) as (pid, kymo):
        kymo("create", "s", "-o", top / "kymo")
        kymo("enable-channel", "-k", "--subbuf-size=64K", "--num-subbuf=128", "kernel0")
        kymo("enable-event", "-k", ",".join(EVENTS))
        kymo("start")
        subprocess.run(["sh", "-c", load_script(top)], check=True)
        kymo("stop")
        tasks = pathlib.Path(f"/proc/{consumer_of(pid)}/task").glob("*/schedstat")
        seconds = sum(int(task.read_text().split()[0]) for task in tasks) / 1e9
        session = json.loads(kymo("status", "s", "--json"))["session"]
        kymo("destroy")
    return Result(seconds, session["recorded"], session["discarded"], session["bytes"])


def may_trace_functions():
    try:
        SWITCH.write_text(SWITCH.read_text())
    except OSError:
        return False
    return True


def hide_functions(top):
    """Returns the beginning of a command that sees ordinary files instead of that tracer's."""
    mounts = []
    for n, file in enumerate([SWITCH, *(TRACING / f"set_ftrace_{name}" for name in HIDDEN)]):
        if file.exists():
            (top / f"hidden{n}").write_text("1" if file == SWITCH else "")
            mounts.append(f"mount --bind {top}/hidden{n} {file}")
    return "unshare", "-m", "sh", "-c", " && ".join([*mounts, 'exec "$@"']), "sh"


@contextlib.contextmanager
def kept_settings():
    """trace-cmd changes settings of the top level, and leaves them so."""
    # "1", or "7 (expanded: 1408)"
    kept = {name: re.findall(r"\d+", (TRACING / name).read_text())[-1] for name in ("tracing_on", "buffer_size_kb")}
    try:
        yield
    finally:
        for name, value in kept.items():
            (TRACING / name).write_text(value)


def by_trace_cmd(top, compression):
    out, tool = top / "t.dat", os.environ.get("TRACE_CMD", "trace-cmd")
    how = ("--compression", "none") if compression == "none" else ()
    before = () if may_trace_functions() else hide_functions(top)
    with kept_settings():
        seconds, _ = measure(top, *before, tool, "record", *how, "-b", "8192", "-C", "x86-tsc", "-o", out, *(w for e in EVENTS for w in ("-e", e)))
    text = subprocess.run([tool, "report", "--stat", "-i", out], capture_output=True, text=True, check=True).stdout
    counts = {name: sum(int(n) for n in re.findall(rf"^{name}\D+(\d+)", text, re.M)) for name in ("read events", "entries", "overrun", "dropped")}
    return Result(seconds, counts["read events"] + counts["entries"], counts["overrun"] + counts["dropped"], out.stat().st_size)


def by_perf(top):
    out = top / "p.data"
    seconds, _ = measure(top, "perf", "record", "-a", "-m", "2048", *(w for e in EVENTS for w in ("-e", e)), "-o", out, "--")
    text = subprocess.run(["perf", "report", "--stats", "-i", out], capture_output=True, text=True, check=False).stdout
    n = max(map(int, re.findall(r"SAMPLE events:\s+(\d+)", text)), default=0)
    return Result(seconds, n, sum(map(int, re.findall(r"LOST\w* events:\s+(\d+)", text))), out.stat().st_size)


TOOLS = {
    "kymo": by_kymo,
    "kymo's consumer": by_consumer,
    "trace-cmd (uncompressed)": lambda top: by_trace_cmd(top, "none"),
    "trace-cmd": lambda top: by_trace_cmd(top, "default"),
    "perf": by_perf,
}


def main():
    reason = why_not()
    if reason:
        print(f"kernel events are not measured: {reason}")
        return
    results = collections.defaultdict(list)
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        for name, run in TOOLS.items():
            with tempfile.TemporaryDirectory(prefix="kymo-bench-", dir=MEMORY if MEMORY.is_dir() else None) as top:
                results[name].append(run(pathlib.Path(top)))
    print(f"{'':26}{'events':>10}{'lost':>9}{'CPU s/M events':>17}{'bytes/event':>13}")
    costs = {}
    for name, runs in results.items():
        costs[name] = statistics.median(r.seconds / r.events * 1e6 for r in runs)
        n, lost = (statistics.median(getattr(r, field) for r in runs) for field in ("events", "lost"))
        size = statistics.median(r.bytes / r.events for r in runs)
        print(f"{name:26}{n:10.0f}{lost:9.0f}{costs[name]:17.3f}{size:13.1f}")
    consumer, whole = (costs[name] / costs["trace-cmd (uncompressed)"] for name in ("kymo's consumer", "kymo"))
    print("of the processor time of uncompressed trace-cmd record:")
    print(f"kymo's consumer needs {consumer:.2f} (target: 0.33), kymo record in all {whole:.2f}")


if __name__ == "__main__":
    main()
