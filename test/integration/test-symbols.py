#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kymo view --symbols, symbol() of kymo sql and folded call stacks: compared with addr2line for real
programs, and with a list of who had which file where for made-up state events.
"""

import collections
import json
import pathlib
import random
import re
import resource
import shutil
import sqlite3
import subprocess

import answers
from kymotest import BUILD, CLI, SANITIZED, SOURCE, Skip, check, equal, need_program, rounds, without_sanitizers

APPS = SOURCE / "test" / "integration" / "apps"
LIBRARY = """
#include <kymo/tracepoint.h>
%s
void entry(void);
void entry(void) { NAME(); __asm__ volatile(""); }
"""
FUNCTION = """
__attribute__((noinline)) void NAME(void)
{
	kymo_event(calls, NAME, kymo_i32(n, 1));
	__asm__ volatile("");
}
"""
CPLUSPLUS = """
#include <kymo/tracepoint.h>
namespace shop { template <typename T> struct Cart {
	__attribute__((noinline)) void add(const T &)
	{ kymo_event(calls, cart, kymo_i32(n, 1)); __asm__ volatile(""); }
}; }
int main() { shop::Cart<int> c; c.add(1); return 0; }
"""


def compile_program(k, source, output, *flags, compiler="cc"):
    k.run([compiler, "-g", "-O2", "-fno-omit-frame-pointer", f"-I{SOURCE}/include", f"-I{BUILD}/include", "-o", output, source, *flags])
    return output


def library(k, name):
    """Makes a library with that function; names of the same length make equal sizes."""
    source = k.top / f"{name}.c"
    source.write_text((LIBRARY % FUNCTION).replace("NAME", name))
    return compile_program(k, source, k.top / f"lib{name}.so", "-shared", "-fPIC")


def record(k, *command, options=("-t", "ip,callstack:8,procname")):
    trace = k.top / f"trace{len(list(k.top.glob('trace*')))}"
    k.kymo("record", "--no-summary", *options, "-o", trace, "--", *command)
    return trace


def view(k, trace, *options):
    return [json.loads(line) for line in k.kymo("view", "--format=json", *options, trace).stdout.splitlines()]


def mapped(events):
    """Returns the files of each process: (path, lowest address, size, whether it may move)."""
    files = collections.defaultdict(list)
    for e in events:
        f = e["fields"]
        if e["name"] in ("kymo_statedump:bin_info", "kymo_lib:load"):
            files[e["context"]["vpid"]].append((f["path"], f["baddr"], f["memsz"], f["is_pic"]))
    return files


def addr2line(path, address):
    """Returns the functions at an address, the innermost first: [(name, file:line)]."""
    lines = subprocess.run(["addr2line", "-C", "-f", "-i", "-s", "-e", path, hex(address)], capture_output=True, text=True,
        check=True).stdout.splitlines()
    places = [re.sub(r" \(discriminator \d+\)", "", line) for line in lines[1::2]]
    found = list(zip(lines[::2], places))
    while len(found) > 1 and found[0][0].startswith("kymo__"):
        found = found[1:]
    return found


def begin_of(path, name):
    """Returns the address of a function."""
    lines = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(int(line.split()[0], 16) for line in lines if re.sub(r" \[clone .*| *$", "", line.split(None, 2)[-1]) == name and line[0] in "0123456789abcdef")


def wanted(path, base, pic, address):
    """Returns what --symbols shows for an address behind a call."""
    at = address - (base if pic else 0)
    frames = addr2line(path, at - 1)
    texts = [f"{name} ({place})" for name, place in frames[:-1]]
    name, place = frames[-1]
    return " in ".join([*texts, f"{name}+{at - begin_of(path, name):#x} ({place})"])


def compare(k, trace, program, debug=None, options=("--symbols",)):
    """Compares all addresses in the program's own file; returns their texts."""
    events, texts = view(k, trace, *options), []
    files = mapped(events)
    for e in events:
        context = e["context"]
        for name in ("ip", "callstack"):
            if e["name"].startswith("kymo_"):
                continue
            addresses, symbols = context[name], context[f"{name}_symbol"]
            pairs = list(zip(addresses, symbols, strict=True)) if name == "callstack" else [(addresses, symbols)]
            for address, symbol in pairs:
                own = [f for f in files[context["vpid"]] if f[0] == str(program) and f[1] < address <= f[1] + f[2]]
                check(symbol is None if not address else symbol, f"{name} {address:#x}: {symbol}")
                if own:
                    equal(symbol, wanted(debug or program, own[0][1], own[0][3], address), f"{name} {address:#x}")
                    texts.append(symbol)
    check(texts, "no address of the program")
    return texts


@without_sanitizers
def test_programs(k):
    """Functions, lines, inlined functions: position-independent and not, C++, several processes."""
    need_program("addr2line", "binutils")
    for name, flags in {"pie": ["-fPIE", "-pie"], "no-pie": ["-fno-pie", "-no-pie"]}.items():
        program = compile_program(k, APPS / "calls.c", k.top / name, *flags)
        trace = record(k, "sh", "-c", f"{program} & {program}; wait")
        texts = compare(k, trace, program)
        equal(sum(text.startswith("leaf+") for text in texts), 2 * 3 * 2, f"{name}: leaf as ip and innermost call")
        check(any(re.fullmatch(r"inlined \(calls\.c:\d+\) in outer\+0x[0-9a-f]+ \(calls\.c:\d+\)", t) for t in texts), texts)
    source = k.top / "cart.cpp"
    source.write_text(CPLUSPLUS)
    program = compile_program(k, source, k.top / "cart", compiler="c++")
    # addr2line names functions that were inlined into a clone wrongly.
    found = view(k, record(k, program), "--symbols", "-e", "calls:cart")[0]["context"]["ip_symbol"]
    check(re.fullmatch(r"shop::Cart<int>::add\(int const&\)\+0x[0-9a-f]+ \(cart\.cpp:5\)", found), found)


@without_sanitizers
def test_text_and_options(k):
    program = compile_program(k, APPS / "calls.c", k.top / "program")
    trace = record(k, program, options=("-t", "ip,vpid"))
    line = k.kymo("view", "-e", "calls:leaf", "--symbols", trace).stdout.splitlines()[0]
    check(re.search(r"ip = 0x[0-9A-F]+ <leaf\+0x[0-9a-f]+ \(calls\.c:\d+\)>", line), line)
    check("<" not in k.kymo("view", "-e", "calls:leaf", trace).stdout, "symbols unasked")
    line = k.kymo("view", "-e", "calls:leaf", "--symbols", "--fields=ip,n", trace).stdout.splitlines()[0]
    check(re.search(r"\{ ip = 0x[0-9A-F]+ <leaf\+.*>, n = 1 \}$", line), line)
    found = view(k, trace, "-e", "calls:leaf", "--symbols", "--fields=ip")[0]["fields"]
    check(found["ip_symbol"].startswith("leaf+0x"), found)
    # Fields that are named, whatever their base and name.
    found = view(k, trace, "--symbols=baddr,n", "-e", "kymo_statedump:bin_info")[0]["fields"]
    check(found["baddr_symbol"].startswith("program"), found)
    for options, text in ((["--symbols=no/such/directory"], "No such file"), (["--symbols="], "has an empty argument")):
        check(text in k.kymo("view", *options, trace, status=(1, 2)).stderr, options)
    # A name that is no field may be mistyped, or that of a directory.
    (k.top / "root").mkdir()
    for name, said in (("badr", "'badr': did you mean 'baddr'?"), ("root", "'root': write a directory with a '/': 'root/'"), ("baddr,n", "")):
        warned = [line for line in k.kymo("view", f"--symbols={name}", trace, cwd=k.top).stderr.splitlines() if "no event of the trace has a field" in line]
        equal([line.endswith(said) for line in warned], [True] * bool(said), f"warnings of --symbols={name}: {warned}")
    # State events that are not recorded, and one line that says so.
    k.kymo("record", "--no-summary", "-t", "vpid", "-o", k.top / "plain", "--", program)
    done = k.kymo("view", "--symbols=n", k.top / "plain")
    equal(done.stderr.count("does not say which files were in memory"), 1, done.stderr)


@without_sanitizers
def test_library_is_missing(k):
    """libdw is loaded when symbols are wanted: without it, one line says so."""
    trace = record(k, compile_program(k, APPS / "calls.c", k.top / "program"))
    done = k.kymo("view", "--symbols", "-e", "calls:leaf", trace, env=k.env_without("libdw.so.1"))
    check("libdw.so.1, which reads files, is missing on this machine" in done.stderr, done.stderr)
    check("program+0x" in done.stdout, done.stdout)


@without_sanitizers
def test_debug_files(k):
    """
    Debugging information in other files: by debug link, build ID, sysroot, .gnu_debugdata. That of
    another build is not used.
    """
    need_program("objcopy", "binutils")
    whole = compile_program(k, APPS / "calls.c", k.top / "whole", "-Wl,--build-id=sha1")
    program, debug = k.top / "dir" / "program", k.top / "dir" / "program.debug"
    program.parent.mkdir()
    k.run(["objcopy", "--only-keep-debug", whole, debug])
    k.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", whole, program])
    trace = record(k, program)
    compare(k, trace, program, whole)
    build_id = re.search(r"Build ID: (\w+)", k.run(["readelf", "-n", whole]).stdout)[1]
    # The debug file by its build ID, with the program and without it.
    by_id = k.top / "symbols" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    by_id.parent.mkdir(parents=True)
    debug.rename(by_id)
    leaf = lambda *options: view(k, trace, "-e", "calls:leaf", *options)[0]["context"]["ip_symbol"]
    equal(leaf("--symbols")[:10], "program+0x", "without debugging information")
    options = (f"--symbols={k.top}/symbols",)
    compare(k, trace, program, whole, options)
    moved = program.rename(k.top / "moved")
    compare(k, trace, program, whole, options)
    # A file system of the recorded machine.
    (k.top / "root" / str(program.parent)[1:]).mkdir(parents=True)
    shutil.copy(whole, k.top / "root" / str(program)[1:])
    compare(k, trace, program, whole, (f"--symbols={k.top}/root",))
    # A program without debugging information, but with the names in .gnu_debugdata.
    if shutil.which("xz"):
        names = k.top / "names"
        k.run(["objcopy", "-S", "--keep-symbol=leaf", "--keep-symbol=outer", whole, names])
        k.run(["xz", "-k", names])
        k.run(["objcopy", f"--add-section=.gnu_debugdata={names}.xz", moved, program])
        check(re.fullmatch(r"leaf\+0x[0-9a-f]+ \(program\)", leaf("--symbols")), leaf("--symbols"))
        program.unlink()
    # Another build in its place.
    compile_program(k, APPS / "calls.c", program, "-O1", "-Wl,--build-id=sha1")
    done = k.kymo("view", "--symbols", "-e", "calls:leaf", trace)
    check("<program+0x" in done.stdout and "leaf+" not in done.stdout, done.stdout)
    equal(done.stderr.count(f"program is another build than the one that ran, build ID {build_id}"), 1, done.stderr)


@without_sanitizers
def test_libraries(k):
    """Libraries at the same address one after the other, each with its own names."""
    program = compile_program(k, APPS / "calls.c", k.top / "program", "-ldl")
    names = ["first", "other", "third"]
    trace = record(k, program, *(library(k, name) for name in names))
    events = view(k, trace, "--symbols")
    bases = {f[1] for f in mapped(events)[events[0]["context"]["vpid"]] if pathlib.Path(f[0]).name.removeprefix("lib").removesuffix(".so") in names}
    for name in names:
        event = next(e for e in events if e["name"] == f"calls:{name}")
        check(event["context"]["ip_symbol"].startswith(f"{name}+0x"), event)
    check(len(bases) < len(names), f"no address was used twice: {bases}")


@without_sanitizers
def test_folded(k):
    """Call stacks of events, as lines and as differences."""
    program = compile_program(k, APPS / "calls.c", k.top / "program")
    trace = record(k, program)
    lines = k.kymo("export", trace, "--to=folded", "-o", "-").stdout.splitlines()
    stacks = {re.sub(r"^.*;main;", "", line.rpartition(" ")[0]): int(line.rpartition(" ")[2]) for line in lines}
    equal(stacks, {"outer;inlined;leaf": 3, "outer;inlined": 3}, "call stacks")
    check(all(line.startswith("program;") for line in lines), lines)
    other = record(k, "sh", "-c", f"{program}; {program}")
    lines = k.kymo("diff", trace, other, "--to=folded").stdout.splitlines()
    equal({tuple(line.rsplit(" ", 2)[1:]) for line in lines}, {("3", "6")}, "both sides")
    equal(k.kymo_json("diff", trace, other, "--to=folded", "-o", k.top / "diff"), {"ok": True, "output": str(k.top / "diff")}, "into a file")
    equal((k.top / "diff").read_text().splitlines(), lines, "the file")
    check("no span" in k.kymo("export", trace, "--to=folded", "--stacks=spans", "-o", "-", status=1).stderr, "spans alone")
    check("--to=folded" in k.kymo("export", trace, "--to=csv", "--stacks=calls", "-o", k.top / "x", status=2).stderr, "of csv")
    check("folded" in k.kymo("diff", trace, other, "--stacks=calls", status=2).stderr, "stacks of a table")


@without_sanitizers
def test_sql(k):
    program = compile_program(k, APPS / "calls.c", k.top / "program")
    trace = record(k, program)
    rows = json.loads(k.kymo("sql", "--json", trace,
        'SELECT ip, symbol(ip - 1) a, symbol(ip - 1, pid) b, symbol(ip - 1, pid, ts) c, symbol(ip, pid + 1) d, symbol(7) e FROM "calls:leaf"').stdout)["rows"]
    equal(len(rows), 3, "rows")
    for row in rows:
        values = list(row.values()) if isinstance(row, dict) else row
        check(re.fullmatch(r"leaf\+0x[0-9a-f]+ \(calls\.c:\d+\)", values[1]), values)
        equal(values[2:], [values[1], values[1], None, None], "the same by process and time")


# ---- made-up state events

BIN_INFO = [("x64", "baddr"), ("u64", "memsz"), ("string", "path"), ("u8", "is_pic"), ("u8", "has_build_id"), ("u8", "has_debug_link")]
STATE = {
    "lttng_ust_statedump:start": [], "lttng_ust_statedump:end": [], "lttng_ust_statedump:bin_info": BIN_INFO,
    "lttng_ust_lib:load": BIN_INFO, "lttng_ust_lib:unload": [("x64", "baddr")],
    "kymo_lib:fork": [("i64", "parent")], "kymo_lib:exec": [],
    "a:at": [("x64", "ip"), ("x64", "addr"), ("u32", "n")],
}


class StateTrace(answers.Trace):
    def __init__(self):
        super().__init__(STATE)
        self.records, self.now = [], 1000

    def add(self, name, *values, pid=1):
        self.now += 10
        self.records.append(self.record(self.now, name, *values, pid=pid))

    def load(self, what, base, size, path, pid=1):
        self.add(f"lttng_ust_{what}", base, size, path, 1, 0, 0, pid=pid)

    def finish(self, path):
        self.packet(0, self.records)
        return self.write(path)


def test_mappings(k):
    """Random processes load and unload files at the same addresses; a list in Python knows each."""
    size, rng = 0x1000, random.Random()
    for number in rounds():
        t, now, wanted_texts = StateTrace(), collections.defaultdict(dict), []
        for _ in range(300):
            pid, base = rng.randrange(1, 4), 0x10000 + size * rng.randrange(4)
            action = rng.randrange(5)
            if action == 0:
                path = f"/no/such/file{rng.randrange(3)}.so"
                t.load("lib:load", base, size, path, pid)
                now[pid][base] = pathlib.Path(path).name
            elif action == 1 and base in now[pid]:
                t.add("lttng_ust_lib:unload", base, pid=pid)
                del now[pid][base]
            elif action == 2 and rng.randrange(8) == 0:
                # A complete state dump: what it leaves out is not there any more.
                t.add("lttng_ust_statedump:start", pid=pid)
                now[pid] = dict(rng.sample(sorted(now[pid].items()), len(now[pid]) // 2))
                for b, name in now[pid].items():
                    t.load("statedump:bin_info", b, size, f"/no/such/{name}", pid)
                t.add("lttng_ust_statedump:end", pid=pid)
            elif base in now[pid]:
                at = rng.randrange(size)
                t.add("a:at", base + at + 1, base + at, len(wanted_texts), pid=pid)
                wanted_texts.append((f"{now[pid][base]}+{at + 1:#x}", f"{now[pid][base]}+{at:#x}"))
        trace = t.finish(k.top / f"trace{number}")
        found = [e["fields"] for e in view(k, trace, "--symbols", "-e", "a:at")]
        equal([(f["ip_symbol"], f["addr_symbol"]) for f in found], wanted_texts, "files of addresses")


def test_forks(k):
    """
    Random processes begin with the files of their parents, load and unload others, run other
    programs, and end; numbers of processes are used again.
    """
    size, rng = 0x1000, random.Random()
    for number in rounds():
        t, now, wanted_texts, n = StateTrace(), collections.defaultdict(dict), [], 0
        for _ in range(600):
            pid, base, action = rng.randrange(1, 7), 0x10000 + size * rng.randrange(4), rng.randrange(10)
            if action < 2:
                n += 1
                end = base + size * rng.randrange(1, 3)
                t.load("lib:load", base, end - base, f"/no/such/file{n}.so", pid)
                now[pid] = {b: f for b, f in now[pid].items() if f[0] <= base or b >= end} | {base: (end, f"file{n}.so")}
            elif action == 2:
                t.add("lttng_ust_lib:unload", base, pid=pid)
                now[pid].pop(base, None)
            elif action < 5:
                parent = rng.randrange(1, 7)
                t.add("kymo_lib:fork", parent, pid=pid)
                now[pid] = dict(now[parent]) if parent != pid else {}
            elif action == 5 and rng.randrange(2):
                t.add("kymo_lib:exec", pid=pid)
                now[pid] = {}
            else:
                t.add("a:at", base + 2, base + 1, 0, pid=pid)
                wanted_texts.append(next((f"{f[1]}+{base + 1 - b:#x}" for b, f in now[pid].items() if b <= base < f[0]), None))
        found = [e["fields"] for e in view(k, t.finish(k.top / f"trace{number}"), "--symbols", "-e", "a:at")]
        wrong = [i for i, f in enumerate(found) if wanted_texts[i] and f["addr_symbol"] != wanted_texts[i]]
        equal((len(found), wrong), (len(wanted_texts), []), "events, and those with another file")


def test_many_forks(k):
    """Many processes with many files of their parent take little memory, whatever they do."""
    if SANITIZED:
        raise Skip("sanitizers need all addresses")
    n, size = 4000, 0x1000
    for name in ("same", "changed"):
        t = StateTrace()
        for i in range(n):
            t.load("lib:load", 0x100000 + size * i, size, "/no/such/file.so")
        for pid in range(2, n):
            t.add("kymo_lib:fork", pid - 1, pid=pid)
            if name == "changed":
                t.load("lib:load", 0x10000, size, "/no/such/own.so", pid)
        t.add("a:at", 0x100002, 0x100001, 0, pid=3)
        trace = t.finish(k.top / name)
        done = k.run([CLI, "view", "--symbols", "-e", "a:at", trace],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20)))
        check("file.so+0x1" in done.stdout, done.stdout)
        equal("too many files" in done.stderr, name == "changed", f"{name}: a warning that files are left out")


def test_before_the_state(k):
    """Events from before a process's files were reported; unknown and wrong processes."""
    t = StateTrace()
    t.add("a:at", 0x10801, 0x10800, 0)
    t.load("statedump:bin_info", 0x10000, 0x1000, "/x/one.so")
    t.add("lttng_ust_lib:unload", 0x10000)
    t.add("a:at", 0x10801, 0x10800, 1)
    t.load("lib:load", 0x10000, 0x1000, "/x/two.so")
    t.add("a:at", 0x10801, 0x10800, 2)
    t.add("a:at", 0x11001, 0x11000, 3)
    t.add("a:at", 0x10801, 0x10800, 4, pid=2)
    t.add("lttng_ust_statedump:start", pid=3)  # of a process whose files were not recorded
    t.add("a:at", 0x10801, 0x10800, 5, pid=3)
    trace = t.finish(k.top / "trace")
    found = [e["fields"]["ip_symbol"] for e in view(k, trace, "--symbols", "-e", "a:at")]
    equal(found, ["one.so+0x801", "two.so+0x801", "two.so+0x801", None, None, None], "symbols")
    # Two files were there: without a time, that is nobody's.
    done = k.kymo("sql", "--json", trace, "SELECT symbol(67584), symbol(67584, 1, 0), symbol(67584, 2)")
    rows = json.loads(done.stdout)["rows"]
    equal(list(rows[0].values()) if isinstance(rows[0], dict) else rows[0], [None, "one.so+0x800", None], "symbol()")


def test_sizes(k):
    """A file without build ID is used only if its size is that of the recorded one."""
    need_program("addr2line", "binutils")
    source = k.top / "small.c"
    source.write_text("void small(void);\nvoid small(void) { __asm__ volatile(\"nop; nop; nop; nop\"); }\n")
    path = k.top / "small.so"
    k.run(["cc", "-g", "-shared", "-fPIC", "-Wl,--build-id=none", "-o", path, source])
    loads = re.findall(r"LOAD\s+0x\w+ 0x(\w+) 0x\w+ 0x\w+ 0x(\w+)", k.run(["readelf", "-lW", path]).stdout)
    size = max(int(at, 16) + int(n, 16) for at, n in loads)
    base, at = 0x7F0000000000, begin_of(path, "small")
    for number, recorded in enumerate((size, size + 8192)):
        t = StateTrace()
        t.load("statedump:bin_info", base, recorded, str(path))
        t.add("a:at", base + at + 1, base + at, 0)
        found = view(k, t.finish(k.top / f"trace{number}"), "--symbols", "-e", "a:at")[0]["fields"]
        equal(found["addr_symbol"], f"small+0x0 (small.c:2)" if recorded == size else f"small.so+{at:#x}", "addr")


def test_kernel(k):
    """Addresses of the kernel by the copy of /proc/kallsyms beside the trace."""
    t = StateTrace()
    for address in (0xFFFFFFFF81000010, 0xFFFFFFFF81000210, 0xFFFFFFFFC0000005, 0xFFFFFFFF80000000, 0xFFFFFFFFFFFFFFFF):
        t.add("a:at", address, address, 0)
    trace = t.finish(k.top / "trace")
    addresses = lambda: [e["fields"]["addr_symbol"] for e in view(k, trace, "--symbols", "-e", "a:at")]
    equal(addresses(), [None] * 5, "without symbols")
    (trace / "index").mkdir()
    (trace / "index" / "kallsyms").write_text("ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000200 t do_one [not]\n"
        "ffffffff81000200 D data\nffffffffc0000000 t ext4_read\t[ext4]\nbroken\nzz T x\n0000000000001000 A low\n")
    equal(addresses(), ["_stext+0x10 (kernel)", "do_one+0x10 (not)", "ext4_read+0x5 (ext4)", None, None], "with symbols")
    # A name has no marks that separate the frames and counts of folded stacks.
    t = answers.Trace({"kymo_sample": [("x64", "callstack_kernel[1]")]})
    t.packet(0, [t.record(10, "kymo_sample", 0xFFFFFFFF81000010)])
    trace = t.write(k.top / "stacks")
    (trace / "index").mkdir()
    (trace / "index" / "kallsyms").write_text("ffffffff81000000 T a;b\x01c\n")
    k.kymo("export", trace, "--to=folded", "-o", k.top / "folded")
    equal((k.top / "folded").read_text(), "prog;a:b_c 1\n", "folded stacks")


@without_sanitizers
def test_module(k):
    """symbol() in another program's SQLite."""
    db = sqlite3.connect(":memory:")
    module = BUILD / "src" / "sql" / "libkymo-sqlite"
    if not hasattr(db, "enable_load_extension"):
        raise Skip("this Python loads no extensions of SQLite")
    if not module.with_suffix(".so").exists():
        raise Skip("built without the extension of SQLite")
    db.enable_load_extension(True)
    db.load_extension(str(module))
    t = StateTrace()
    t.load("statedump:bin_info", 0x10000, 0x1000, "/x/one.so")
    db.execute("SELECT kymo_open(?)", (str(t.finish(k.top / "trace")),))
    equal(db.execute("SELECT symbol(65537)").fetchall(), [("one.so+0x1",)], "symbol()")
    db.close()


@without_sanitizers
def test_explain(k):
    """
    The mutex and the function that held it, outside any span, have their names, if the trace says
    which files the program had in memory: --with=pthread sees to it.
    """
    program = compile_program(k, APPS / "locker.c", k.top / "locker", "-pthread")
    preloaded = ["env", f"LD_PRELOAD={BUILD}/src/preload/libkymo-pthread.so", program]
    for command, options, is_named in (([program], ["--with=pthread"], True), (preloaded, [], False)):
        trace = record(k, *command, options=(*options, "-t", "vtid,vpid,procname"))
        out = k.kymo("explain", trace, "--span=shop:checkout", "--slowest=25ms").stdout
        first = out.splitlines()[0]
        check(re.search(r"waits for mutex 0x[0-9a-f]+%s, which thread" % (r" \(ledger_lock\)" if is_named else ""), first), first)
        check(("(audit_ledger+0x" in first) == is_named, first)
        check(("record -t vtid,vpid,procname,ip" in out) != is_named, out)


if __name__ == "__main__":
    import kymotest

    kymotest.main()
