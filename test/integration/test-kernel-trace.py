#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The trace of kernel events for its readers: `kymo view` prints what babeltrace2 prints, and tools
for kernel traces find what they require. Needs root and tracefs.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import kymotest
from kymotest import babeltrace, check, equal, without_sanitizers

INSTANCES = kymotest.TRACING / "instances"
CHECKER = kymotest.SOURCE / "scripts/check-kernel-trace"
EVENTS = "sched_switch,sched_waking,sched_process_*,irq_*,softirq_*,sys_enter_*,sys_exit_*,block_*,mm_page_alloc,mm_page_free"
ANALYSES = ("cputop schedtop schedstats schedfreq schedlog irqstats irqfreq irqlog memtop iousagetop iolatencytop iolatencystats iolatencyfreq iolog"
    " syscallstats periodtop periodstats periodfreq periodlog").split()
PERIOD = 'reading : $evt.$name == "syscall_entry_read" : $evt.$name == "syscall_exit_read" && $evt.tid == $begin.$evt.tid'
N = 2000


def need_tracefs(*places):
    kymotest.need_tracefs("events/syscalls", *places)


def record(k, *options, script="ls / >/dev/null; cat /etc/hostname >/dev/null; true | cat"):
    out = k.top / "trace"
    k.kymo("record", "-o", out, *options, "--", "sh", "-c", script, status=0)
    return out


def write_some(k, out, *setup):
    """Records one process's writes in a session with these commands; returns its number."""
    k.start_daemon()
    k.kymo("create", "s", "-o", out)
    for command in setup:
        k.kymo(*command)
    app = k.spawn("writes", "-w", N)
    pid = int(app.stdout.readline())
    k.kymo("track", f"--pid={pid}")
    k.kymo("start")
    k.let_go(app)
    k.finish(app)
    return pid


def test_view(k):
    """Any events, with losses or without: byte for byte as babeltrace2 prints them."""
    need_tracefs()
    out = record(k, "-k", EVENTS)
    theirs = subprocess.run(["babeltrace2", out], capture_output=True, text=True, check=True)
    equal(kymotest.warnings_of(theirs.stderr), [], "warnings of babeltrace2")
    equal(k.kymo("view", out).stdout == theirs.stdout, True, "the two texts are equal")
    for name in ("syscall_entry_openat", "syscall_exit_openat", "sched_process_exec", "sched_process_exit"):
        check(f" {name}: " in theirs.stdout, f"no {name}")


def test_requirements(k):
    """Environment, names and types; and the check finds what is wrong."""
    need_tracefs()
    out = record(k, "-k", EVENTS) / "kernel"
    done = subprocess.run([CHECKER, out], capture_output=True, text=True, check=False)
    equal((done.returncode, done.stdout), (0, ""), "what the tools miss")
    formats = (out / "index/formats").read_text()
    check("\nprint fmt: " in formats and formats.startswith("name: "), "the kernel's formats are in the index")
    metadata = out / "metadata"
    text = metadata.read_text()
    for old, new, fault in (
        ('domain = "kernel"', 'domain = "ust"', "env: domain"),
        ("_next_tid", "_next_pid", "sched_switch: next_tid is missing"),
        ("offset = ", "offset_ns = ", "clock: offset = nothing"),
        (" cpu_id;", " cpu;", "packet.context: cpu_id is missing"),
        ("irq_softirq_raise", "softirq_raise", "softirq_raise: readers expect another name"),
    ):
        metadata.write_text(text.replace(old, new))
        done = subprocess.run([CHECKER, out], capture_output=True, text=True, check=False)
        equal(done.returncode, 1, f"status without {old}")
        check(fault in done.stdout, done.stdout)


def test_all_requirements(k):
    """All events of the written list are in a trace as it says; the list is that of the check."""
    need_tracefs()
    page = (kymotest.SOURCE / "docs/kernel-trace.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    check(len(listed) > 40 and "syscall_entry_openat" in listed, listed)
    k.start_daemon()
    events = {e["name"] for e in k.kymo_json("list", "-k")["events"]}
    known = {f"syscall_entry_{e['syscall']}" for e in k.kymo_json("list", "-k", "--syscall")["events"]}
    k.stop_daemon()
    # the trace's name is the kernel's, or ends with it
    known |= {name for name in listed if name.startswith("lttng_") or any(f"_{name}".endswith(f"_{e}") for e in events)}
    if set(listed) - known:
        print(f"# this kernel or machine has no {', '.join(sorted(set(listed) - known))}")
    there = [name for name in listed if name in known]
    check("sched_switch" in there and len(there) > 25, there)
    rules = [name for name in there if not name.startswith(("lttng_", "syscall_"))]
    calls = [name.removeprefix("syscall_entry_") for name in there if name.startswith("syscall_entry_")]
    out = record(k, "-k", ",".join(rules), "--syscall=" + ",".join(calls)) / "kernel"
    metadata = (out / "metadata").read_text()
    has = set(re.findall(r'^\tname = "(\w+)";$', metadata, re.MULTILINE))
    equal(set(there) - has, set(), "events that the trace does not describe")
    done = subprocess.run([CHECKER, out], capture_output=True, text=True, check=False)
    equal((done.returncode, done.stdout), (0, ""), "what the tools miss")
    source = pathlib.Path(CHECKER).read_text()
    equal([name for name in listed if f'"{name}": {{' not in source], [], "events that the check does not know")
    checked = re.findall(r'^    "(\w+)": \{', source, re.MULTILINE)
    equal([name for name in checked if name not in listed], [], "events that the page does not have")


def test_buffers(k):
    """record gives the kernel's buffers the size that its options say."""
    need_tracefs()
    kymotest.need_program("pgrep", "procps")
    # of the daemon that this command has, which is its parent's child
    links = "for fd in /proc/$(pgrep -P $PPID kymo-sessiond)/fd/*; do readlink $fd; done"
    name = f"$({links} | grep -o 'kymo-[0-9a-f]*-[0-9]*$' | sort -u | head -n 1)"
    show = f"cat {INSTANCES}/{name}/buffer_size_kb"
    sizes = []
    for options in ((), ("--num-subbuf=32",)):
        out = k.top / f"trace{len(sizes)}"
        done = k.kymo("record", "-o", out, "-k", "sched_switch", *options, "--", "sh", "-c", show, status=0)
        sizes.append(max(int(word) for word in done.stdout.split() if word.isdigit()))
    check(sizes[1] >= 8192 > sizes[0], f"KiB of a CPU's buffer: {sizes}")


@without_sanitizers  # the readers are others' programs
def test_analyses(k):
    """lttng-analyses, unchanged, read the trace."""
    need_tracefs()
    if not shutil.which("lttng-cputop"):
        raise kymotest.Skip("python3-lttnganalyses is not installed")
    out = record(k, "-k", EVENTS) / "kernel"
    text, _ = babeltrace(out)
    # meson makes malloc fill memory: babeltrace 1 reads what it has not written, and crashes.
    env = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}

    def analyse(name):
        period = ("--period", PERIOD) if name.startswith("period") else ()
        done = subprocess.run([f"lttng-{name}", "--no-progress", *period, out], env=env, capture_output=True, text=True, check=False)
        equal(done.returncode, 0, f"lttng-{name}: {done.stdout}{done.stderr}")
        check("Timerange" in done.stdout, f"lttng-{name}: {done.stdout}")
        return done.stdout
    said = {name: analyse(name) for name in ANALYSES}

    def number(name, pattern):
        found = re.search(pattern, said[name])
        check(found, lambda: f"lttng-{name} does not say {pattern}: {said[name]}")
        return int(found[1])
    # what began before the recording, or does not return, does not count
    for name, pattern, event in (("memtop", r"(\d+) pages allocated", "kmem_mm_page_alloc: "),
            ("syscallstats", r"Total syscalls: (\d+)", "syscall_exit_"), ("periodstats", r"reading +(\d+) ", "syscall_exit_read: ")):
        counted, there = number(name, pattern), text.count(f" {event}")
        check(0.8 * there <= counted, f"lttng-{name} has {counted} of {there} {event}")
    check(re.search(r" read .* cat +\d+ ", said["iolog"]), lambda: f"cat has not read: {said['iolog']}")


def test_time_range(k):
    """
    All streams begin and end with the recording, however quiet their CPUs are: tools take the time
    that the streams have in common.
    """
    need_tracefs()
    kymotest.need_program("taskset", "util-linux")
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise kymotest.Skip("one CPU")
    # the first CPU has no event of the command at its end, the last has none at its begin
    emit = f"{kymotest.APPS / 'writes'} {N}"
    script = f"taskset -c {cpus[0]} {emit}; taskset -c {cpus[-1]} {emit}; taskset -c {cpus[-1]} {emit}"
    out = record(k, "--syscall=write", script=f"taskset -pc {cpus[0]} $$ >/dev/null; {script}")
    packets = [list(kymotest.packets(path)) for path in kymotest.streams(out / "kernel")]
    check(len(packets) >= 2, f"{len(packets)} streams")
    equal(len({p[-1].end for p in packets}), 1, "ends of streams")
    equal(len({p[0].begin for p in packets}), 1, "begins of streams")
    _, discarded = babeltrace(out)
    equal(discarded, 0, "discarded events")


def test_rotate(k):
    """Each chunk is a trace; together they have each event once."""
    need_tracefs()
    out = k.top / "trace"
    pid = write_some(k, out, ("enable-event", "-k", "--syscall", "write"))
    k.kymo("rotate")
    app = k.spawn("writes", "-w", N)
    other = int(app.stdout.readline())
    k.kymo("track", f"--pid={other}")
    k.let_go(app)
    k.finish(app)
    check(pid != other, "processes have numbers of their own")
    k.kymo("destroy")
    chunks = [*(out / "archives").iterdir(), out]
    equal(len(chunks), 2, f"chunks {chunks}")
    check(all((c / "kernel/metadata").exists() for c in chunks), "each chunk has the kernel's trace")
    check(all((c / "kernel/index/formats").exists() for c in chunks), "each chunk has the formats")
    text, discarded = babeltrace(out)
    equal((text.count(" syscall_entry_write: "), discarded), (2 * N, 0), "writes")


def test_filter(k):
    """The kernel decides a part of a filter, the consumer the rest."""
    need_tracefs()
    out = k.top / "trace"
    rule = "$ctx.procname == \"writes\" && count * 2 == 2 && fd + 0 != 1"
    pid = write_some(k, out, ("enable-event", "-k", "--syscall", "write", "--filter", rule))
    k.kymo("destroy")
    text, discarded = babeltrace(out)
    equal((text.count(" syscall_entry_write: "), discarded), (N, 0), f"writes of {pid} that the filter wants")


def test_named_values(k):
    """--symbols names flags and errors, from the trace's own index; without it, nothing changes."""
    need_tracefs()
    out = record(k, "--syscall=openat,mmap", "-k", "sched_switch,softirq_*", script="cat /nonexistent; sleep 0.01")
    theirs = k.run(["babeltrace2", out])
    equal(kymotest.warnings_of(theirs.stderr), [], "warnings of babeltrace2")
    equal(k.kymo("view", out).stdout == theirs.stdout, True, "the two texts are equal")

    def symbols():
        lines = k.kymo("view", "--json", "--symbols", out).stdout.splitlines()
        return {(e["name"], name, e["fields"][name.removesuffix("_symbol")], value) for e in map(json.loads, lines)
            for name, value in e["fields"].items() if name.endswith("_symbol") and value}
    found = symbols()
    for name, field, value, text in (
            ("syscall_entry_openat", "dfd", -100, "AT_FDCWD"),
            ("syscall_entry_openat", "flags", os.O_RDONLY, "O_RDONLY"),
            ("syscall_entry_openat", "flags", os.O_CLOEXEC, "O_RDONLY|O_CLOEXEC"),
            ("syscall_exit_openat", "ret", -2, "ENOENT"),
            ("syscall_entry_mmap", "prot", 3, "PROT_READ|PROT_WRITE"),
            ("sched_switch", "prev_state", 1, "S")):
        check((name, field + "_symbol", value, text) in found, lambda name=name, field=field: f"{name}: {field} among {sorted(found, key=str)}")
    text = k.kymo("view", "--symbols", out).stdout
    check("ret = -2 <ENOENT> }" in text, "an error in the text")
    with open(out / "kernel/index/formats", "a", encoding="latin-1") as f:
        f.write("# values\n# values\t\n# values\tsched_switch\tprev_state\n# values\tsched_switch\tprev_comm\tflags\tx\t1=A\n"
            "# values\tsched_switch\tnone\tflags\tff\t1=A\n# values\tsched_switch\tprev_state\tflags\tff\t=\tA\t\t5\n\0\377")
    equal(symbols(), found, "names with an index that has other lines too")


def test_contexts(k):
    """Threads, processes and names of events, and their stacks."""
    need_tracefs("options/stacktrace")
    out = k.top / "trace"
    contexts = [("add-context", "-k", "-t", t) for t in ("tid", "pid", "procname", "callstack-kernel")]
    pid = write_some(k, out, ("enable-event", "-k", "--syscall", "write"), *contexts)
    k.kymo("destroy")
    text, _ = babeltrace(out)
    lines = [line for line in text.splitlines() if " syscall_entry_write: " in line]
    wanted = f'tid = {pid}, pid = {pid}, procname = "writes", '
    equal([line for line in lines if wanted not in line], [], "events without their contexts")
    stacks = [re.search(r"\[0\] = (0x[0-9A-F]+)", line) for line in lines]
    equal(sum(int(m[1], 16) > 0 for m in stacks if m), N, "events with a stack")
    if " ffffffff" not in " " + pathlib.Path("/proc/kallsyms").read_text()[:20]:
        return  # the kernel hides its addresses, or has them elsewhere
    events = map(json.loads, k.kymo("view", "--json", "--symbols", out).stdout.splitlines())
    names = [e["context"]["callstack_kernel_symbol"][0] for e in events if e["name"] == "syscall_entry_write"]
    check(sum(bool(name) for name in names) >= 0.9 * N, lambda: f"functions of the kernel: {set(names)}")


def test_names(k):
    """
    Each event has the name that its thread had then: of children that execute a program, and of the
    kernel's workers, whose files also name their work.
    """
    need_tracefs()
    k.start_daemon()
    out = k.top / "trace"
    k.kymo("create", "s", "-o", out)
    k.kymo("enable-event", "-k", "sched_switch")
    k.kymo("add-context", "-k", "-t", "procname")
    k.kymo("start")
    subprocess.run(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do taskset -c 0 sleep 0.01; done"], check=True)
    k.kymo("destroy")
    events = [json.loads(line) for line in k.kymo("view", "--json", "-e", "sched_switch", out).stdout.splitlines()]
    names = [(e["fields"]["prev_comm"], e["context"]["procname"]) for e in events]
    ours = [pair for pair in names if set(pair) & {"taskset", "sleep"} or pair[0].startswith("kworker/")]
    check(len(ours) >= 20, lambda: f"too few switches: {names}")
    equal([pair for pair in ours if pair[0] != pair[1]], [], "names that are not those of the moment")


def test_names_of_short_threads(k):
    """Threads that change their names and exit while the consumer reads."""
    need_tracefs()
    k.start_daemon()
    out = k.top / "trace"
    k.kymo("create", "s", "-o", out)
    k.kymo("enable-event", "-k", "sched_process_exit")
    k.kymo("add-context", "-k", "-t", "procname,pid")
    k.kymo("start")
    script = """
import ctypes, threading
prctl = ctypes.CDLL(None).prctl
for i in range(10000):
    thread = threading.Thread(target=prctl, args=(15, b"short-%d" % i))
    thread.start()
    thread.join()
"""
    subprocess.run(["python3", "-S", "-c", script], check=True)
    k.kymo("destroy")
    lines = k.kymo("view", "--json", "-e", "sched_process_exit", out).stdout.splitlines()
    ours = [e for e in map(json.loads, lines) if e["fields"]["comm"].startswith("short-")]
    equal(len(ours), 10000, "threads")
    equal([e for e in ours if e["context"]["procname"] != e["fields"]["comm"]], [], "threads with another name")
    equal({e["context"]["pid"] for e in ours}, {ours[0]["context"]["pid"]}, "processes")


def test_kernel_symbols(k):
    """
    The trace has the kernel's functions of its stacks, so they are named where another kernel runs:
    in each chunk, and in what another consumer writes after the first was killed.
    """
    need_tracefs("options/stacktrace")
    if not int(pathlib.Path("/proc/kallsyms").read_text().split(maxsplit=1)[0], 16):
        raise kymotest.Skip("this kernel hides its addresses (kernel.kptr_restrict)")
    out = k.top / "trace"
    pids = [write_some(k, out, ("enable-event", "-k", "--syscall", "write"), ("add-context", "-k", "-t", "callstack-kernel"))]
    for command in (("rotate",), None, ("rotate",)):
        if command:
            k.kymo(*command)
        else:
            old = kymotest.consumers(k)[0]
            os.kill(old, signal.SIGKILL)
            kymotest.wait_for(lambda old=old: [pid for pid in kymotest.consumers(k) if pid != old], "another consumer")
        app = k.spawn("writes", "-w", N)
        pids.append(int(app.stdout.readline()))
        k.kymo("track", f"--pid={pids[-1]}")
        k.let_go(app)
        k.finish(app)
    k.kymo("destroy")

    def stacks(trace):
        events = map(json.loads, k.kymo("view", "--json", "--symbols", trace).stdout.splitlines())
        return [e["context"]["callstack_kernel_symbol"] for e in events if e["name"] == "syscall_entry_write"]
    here = stacks(out)
    equal(len(here), len(pids) * N, "writes")
    check(sum(bool(s[0]) for s in here) >= 0.9 * len(here), lambda: f"functions: {here[:3]}")
    for metadata in out.rglob("kernel/metadata"):
        text = metadata.read_text()
        metadata.write_text(re.sub(r'boot_id = "[^"]*"', 'boot_id = "another"', text))
        check(metadata.read_text() != text, "the metadata has no boot_id")
    elsewhere = stacks(out)
    check(sum(bool(s[0]) for s in elsewhere) >= 0.9 * len(here), lambda: f"functions elsewhere: {elsewhere[:3]}")
    different = [(a, b) for a, b in zip(here, elsewhere) if any(y and x != y for x, y in zip(a, b))]
    equal(different[:1], [], "functions that have other names on the machine itself")


def test_user_stacks(k):
    """Addresses of the program, with their functions: the files of the process are in the trace."""
    need_tracefs("options/userstacktrace")
    out = k.top / "trace"
    pid = write_some(k, out, ("enable-event", "-k", "--syscall", "write"), ("add-context", "-k", "-t", "pid"),
        ("add-context", "-k", "-t", "callstack-user"), ("enable-event", "kymo_statedump:*,kymo_lib:*"), ("add-context", "-t", "vpid"))
    k.kymo("destroy")
    babeltrace(out)
    lines = k.kymo("view", "--json", "--symbols", out).stdout.splitlines()
    entries = [e for e in map(json.loads, lines) if e["name"] == "syscall_entry_write" and e["context"]["pid"] == pid]
    first = [e["context"]["callstack_user_symbol"][0] or "" for e in entries]
    equal(len(first), N, "writes")
    check(sum("write" in text or "libc" in text for text in first) >= 0.9 * N, lambda: f"functions that write: {set(first)}")


kymotest.main()
