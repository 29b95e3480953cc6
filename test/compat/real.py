#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
real.py [NAME...]: recompiles other people's programs for LTTng-UST, from sources of Debian
packages, in build-compat/. Compiles their providers with the headers of both tracers. Compares the
events of QEMU and nfs-ganesha, and the traces of examples, event by event. Builds Tor and zebra of
FRR as a whole, runs them, and records them. It belongs to 'make compat', which installs what it
needs, and takes most of an hour.
"""

import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys

import compat

SOURCE = compat.HERE.parents[1]
TOP = SOURCE / "build-compat"
STAGE = TOP / "stage"
EXAMPLES = pathlib.Path("/usr/share/doc/liblttng-ust-dev/examples")
PACKAGES = {"qemu": "qemu", "ganesha": "nfs-ganesha", "erlang": "erlang", "tor": "tor", "frr": "frr", "libcamera": "libcamera", "suite": "ltt-control"}
ORACLE, OURS = "LTTng-UST", "Kymo"
# Scripts of these packages need Debian's own python3, which has the modules that they import.
ENV = {**os.environ, "PATH": "/usr/bin:" + os.environ["PATH"], "LC_ALL": "C.UTF-8"}


def run(*command, cwd=TOP, env=None, log=None, check=True):
    """Runs a program, with its output in a log. Returns the CPU seconds that it used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(TOP / f"{log or 'log'}.txt", "a") as out:
        done = subprocess.run([str(c) for c in command], cwd=cwd, env={**ENV, **(env or {})}, stdout=out, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}, see {out.name}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def say(name, text):
    print(f"{name}: {text}", flush=True)


# ---- sources


def fetch(packages):
    """
    Fetches sources by apt-get from the machine's package sources, with its own lists and caches.
    """
    apt = TOP / "apt"
    for folder in ("parts", "lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    lines = []
    for path in pathlib.Path("/etc/apt").glob("sources.list.d/*.sources"):
        lines.append(re.sub(r"^Types:.*", "Types: deb-src", path.read_text(), flags=re.MULTILINE))
    (apt / "parts" / "all.sources").write_text("\n\n".join(lines))
    lists = [p for p in (pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt").glob("sources.list.d/*.list")) if p.exists()]
    text = "\n".join(p.read_text() for p in lists)
    (apt / "parts" / "all.list").write_text("\n".join("deb-src" + line[3:] for line in text.splitlines() if line.startswith("deb ")) + "\n")
    conf = apt / "conf"
    conf.write_text(f'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "{apt}/parts";\nDir::State::Lists "{apt}/lists";\n'
        f'Dir::Cache "{apt}/cache";\nAPT::Sandbox::User "root";\n')
    env = {"APT_CONFIG": str(conf)}
    run("apt-get", "update", "-q", env=env, log="apt")
    for package in packages:
        if (TOP / package).exists():
            continue
        run("apt-get", "source", "-q", "--download-only", "--tar-only", package, env=env, log="apt")
        archive = next(p for p in TOP.glob(f"{package}_*.orig.tar.*") if p.suffix != ".asc")
        (TOP / package).mkdir()
        run("tar", "xf", archive, "-C", TOP / package, "--strip-components=1")


def install():
    """Installs Kymo below build-compat/stage, as 'make install' does."""
    build = TOP / "kymo"
    if not (build / "build.ninja").exists():
        run("meson", "setup", build, SOURCE, f"--prefix={STAGE}", "--libdir=lib", "-Dtests=disabled")
    run("ninja", "-C", build)
    run("meson", "install", "-C", build, "--no-rebuild")


FLAGS = {ORACLE: [], OURS: [f"-I{STAGE}/lib/kymo-lttng/include"]}
PC = {"PKG_CONFIG_PATH": f"{STAGE}/lib/pkgconfig:{STAGE}/lib/kymo-lttng/lib/pkgconfig"}


def compile_both(name, source, *flags, cwd, compiler="gcc"):
    """Compiles a file with the headers of each tracer; returns the objects."""
    objects, times = {}, {}
    for system, include in FLAGS.items():
        objects[system] = cwd / f"{pathlib.Path(source).stem}-{system}.o"
        times[system] = run(compiler, "-O2", "-w", *include, *flags, "-c", source, "-o", objects[system], cwd=cwd, log=name)
    sizes = [int(subprocess.run(["size", objects[s]], capture_output=True, text=True).stdout.splitlines()[1].split()[0]) for s in FLAGS]
    say(name, f"{source} compiles with both; seconds {times[ORACLE]:.1f} and {times[OURS]:.1f}, code {sizes[0]} and {sizes[1]} bytes")
    return objects


# ---- recording


def record_ours(out, rule, *command, cwd=TOP):
    """Records a command. rule: options of 'kymo record'."""
    shutil.rmtree(out, ignore_errors=True)
    run(STAGE / "bin" / "kymo", "record", "--no-summary", "-t", "none", "-o", out, *rule, "--", *command, cwd=cwd, log="record",
        check=False)
    return compat.text_of(out)


def compare(name, lttng, pattern, theirs, ours, filter=None):
    """Runs both programs, each under its tracer; fails if their traces differ."""
    wanted = lttng.record(compat.Case(name, name, compare, pattern, filter), theirs, None)
    text = record_ours(TOP / f"{name}-trace", ["-e", pattern, *(["-f", filter] if filter else [])], *ours)
    if not wanted or text != wanted:
        raise RuntimeError(f"{name}: the traces differ ({len(wanted.splitlines())} and {len(text.splitlines())} events)")
    say(name, f"{len(text.splitlines())} events, the same in both traces")


# ---- the programs


def examples(lttng):
    work = TOP / "examples"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(EXAMPLES, work)
    hello = work / "hello-static-lib"
    programs = {}
    for system, include in FLAGS.items():
        programs[system] = hello / f"hello-{system}"
        libs = ["-llttng-ust"] if system == ORACLE else []
        run("gcc", "-O2", "-I.", *include, "-o", programs[system], "hello.c", "tp.c", *libs, "-ldl", cwd=hello, log="examples")
    # It emits a million events, more than the buffers hold.
    compare("examples", lttng, "ust_tests_hello:tptest", [programs[ORACLE]], [programs[OURS]], "intfield < 1000")
    flags = FLAGS[OURS]
    for source in sorted(work.glob("*/*.c*")):
        if source.parent.name in ("demo", "demo-tracef", "demo-tracelog", "easy-ust", "cmake-multiple-shared-libraries"):
            run("g++" if source.suffix == ".cpp" else "gcc", "-Wall", "-Werror", *flags, "-I.", "-fPIC", "-c", source, "-o", os.devnull,
                cwd=source.parent, log="examples")
    say("examples", "demo, demo-tracef, demo-tracelog, easy-ust and the CMake one compile without warnings")


CALL = re.compile(r"TRACEPOINT_EVENT(?:_INSTANCE\(\s*\w+,|\()\s*(\w+),\s*(\w+),\s*TP_ARGS\(([^)]*)\)")


def calls(headers, text):
    """Writes a program that emits each event in the text of the headers once."""
    lines = [*(f'#include "{h}"' for h in headers), "int main(void)", "{"]
    for provider, name, args in CALL.findall(text):
        types = [] if args.strip() in ("", "void") else [a.strip() for a in args.split(",")][::2]
        values = [f'"text {i}"' if "char" in t and "*" in t else f"({t})({i * 77 + 1})" for i, t in enumerate(types)]
        lines.append(f"\ttracepoint({', '.join([provider, name, *values])});")
    return "\n".join([*lines, "\treturn 0;", "}", ""])


def qemu(lttng):
    work = TOP / "qemu-events"
    (work / "qemu").mkdir(parents=True, exist_ok=True)
    (work / "qemu" / "osdep.h").write_text("#include <stdint.h>\n#include <stddef.h>\n#include <stdbool.h>\n#include <sys/types.h>\n")
    # bsd-user has events with the same names as linux-user: QEMU never builds both.
    events = sorted(p for p in (TOP / "qemu").rglob("trace-events") if "bsd-user" not in p.parts)
    for kind in ("h", "c"):
        run("python3", "scripts/tracetool.py", "--backend=ust", "--group=all", f"--format=ust-events-{kind}", *events,
            work / f"trace-ust-all.{kind}", cwd=TOP / "qemu", log="qemu")
    (work / "calls.c").write_text(calls(["qemu/osdep.h", "trace-ust-all.h"], (work / "trace-ust-all.h").read_text()))
    probes = compile_both("qemu", "trace-ust-all.c", "-I.", cwd=work)
    callers = compile_both("qemu", "calls.c", "-I.", cwd=work)
    programs = {}
    for system in FLAGS:
        programs[system] = work / f"calls-{system}"
        libs = ["-llttng-ust"] if system == ORACLE else []
        run("gcc", "-o", programs[system], probes[system], callers[system], *libs, "-ldl", log="qemu")
    compare("qemu", lttng, "qemu:*", [programs[ORACLE]], [programs[OURS]])


def ganesha(lttng):
    """The providers of nfs-ganesha, in a library that the program finds when it starts."""
    work = TOP / "ganesha-events"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(TOP / "nfs-ganesha" / "src" / "include" / "gsh_lttng", work / "gsh_lttng")
    shutil.copytree(TOP / "nfs-ganesha" / "src" / "tracing", work / "tracing")
    for file in (work / "gsh_lttng" / "nfs_rpc.h", work / "tracing" / "nfs_rpc.c"):
        file.unlink()  # it needs the configured sources
    headers = sorted(work.glob("gsh_lttng/*.h"))
    text = "".join(re.sub(r"/\*.*?\*/", "", h.read_text(), flags=re.S) for h in headers)
    (work / "calls.c").write_text("#define TRACEPOINT_DEFINE\n#define TRACEPOINT_PROBE_DYNAMIC_LINKAGE\n"
        + calls([h.relative_to(work) for h in headers], text))
    programs = {}
    for system in FLAGS:
        libs, out = ["-llttng-ust"] if system == ORACLE else [], work / system
        out.mkdir()
        programs[system] = out / "calls"
        run("gcc", "-O2", "-w", "-shared", "-fPIC", "-I.", *FLAGS[system], "-o", out / "libtracing.so", *sorted(work.glob("tracing/*.c")), *libs,
            cwd=work, log="ganesha")
        run("gcc", "-O2", "-w", "-I.", *FLAGS[system], "-o", programs[system], "calls.c", "-Wl,--no-as-needed", out / "libtracing.so",
            f"-Wl,-rpath,{out}", *libs, "-ldl", cwd=work, log="ganesha")
    three_ways(lttng, "ganesha", "*", {s: [] for s in FLAGS}, work, programs)


def erlang(lttng):
    emulator = TOP / "erlang" / "erts" / "emulator" / "beam"
    (emulator / "config.h").write_text("")
    compile_both("erlang", "erlang_lttng.c", "-DUSE_LTTNG", "-DHAVE_CONFIG_H", "-I.", cwd=emulator)
    tools = TOP / "erlang" / "lib" / "runtime_tools" / "c_src"
    (tools / "probes.c").write_text("#include <stdint.h>\n#define TRACEPOINT_CREATE_PROBES\n#define TRACEPOINT_DEFINE\n"
        '#include "dyntrace_lttng.h"\n')
    compile_both("erlang", "probes.c", "-I.", cwd=tools)


def libcamera(lttng):
    work = TOP / "libcamera"
    if not (work / "build" / "build.ninja").exists():
        off = [f"-D{o}=disabled" for o in ("gstreamer", "cam", "qcam", "documentation", "pycamera", "lc-compliance")]
        run("meson", "setup", "build", "-Dpipelines=vimc", "-Dipas=", *off, "-Dtest=false", "-Dv4l2=false", "-Dtracing=enabled",
            cwd=work, env=PC, log="libcamera")
    commands = json.loads(subprocess.run(["ninja", "-C", work / "build", "-t", "compdb"], capture_output=True, text=True).stdout)
    built = next(c for c in commands if c["file"].endswith("tracepoints.cpp") and c["output"].endswith(".o"))
    # with all files that are generated before it
    run("ninja", "-C", work / "build", built["output"], log="libcamera")
    flags = [f for f in shlex.split(built["command"])[1:] if re.match(r"-[ID]|-std=|-include$|.*config\.h$", f) and str(STAGE) not in f]
    compile_both("libcamera", built["file"], *flags, cwd=work / "build", compiler="g++")
    run("ninja", "-C", work / "build", log="libcamera")
    needed = subprocess.run(["readelf", "-d", work / "build" / "src" / "libcamera" / "libcamera.so"], capture_output=True, text=True).stdout
    if "lttng" in needed:
        raise RuntimeError("libcamera found LTTng's library")
    say("libcamera", "built whole by its own build system")


def frr(lttng):
    work = TOP / "frr"
    if not (work / "Makefile").exists():
        run("autoreconf", "-fi", cwd=work, log="frr")
        run("./configure", "--disable-doc", "--disable-bgp-vnc", "--disable-ospfclient", "--enable-lttng=yes",
            "--enable-user=root", "--enable-group=root", f"--localstatedir={TOP}/frr-run", f"CPPFLAGS={' '.join(FLAGS[OURS])}",
            cwd=work, env=PC, log="frr")
    run("make", f"-j{os.cpu_count()}", "lib/route_types.h", "lib/libfrr.la", "zebra/zebra", cwd=work, log="frr")
    flags = ["-DHAVE_CONFIG_H", "-D_GNU_SOURCE", "-DHAVE_LTTNG=1", "-I.", "-Ilib", "-Iinclude"]
    for source in ("lib/libfrr_trace.c", "zebra/zebra_trace.c", "bgpd/bgp_trace.c"):
        compile_both("frr", source, *flags, cwd=work)
    (TOP / "frr-run").mkdir(exist_ok=True)
    text = record_ours(TOP / "frr-trace", ["-e", "frr_*"], "timeout", "5", work / "zebra" / "zebra", "-i", TOP / "frr-run" / "pid",
        "-z", TOP / "frr-run" / "api", "-f", os.devnull)
    whole("frr", text)


def tor(lttng):
    work = TOP / "tor"
    if not (work / "Makefile").exists():
        # Tor itself looks for the header, and names the library.
        run("./configure", "--enable-tracing-instrumentation-lttng", "--disable-asciidoc", "--disable-unittests",
            f"CPPFLAGS={' '.join(FLAGS[OURS])}", f"LDFLAGS=-L{STAGE}/lib/kymo-lttng/lib", cwd=work, log="tor")
    run("make", f"-j{os.cpu_count()}", "src/app/tor", cwd=work, log="tor")
    data = TOP / "tor-data"
    text = record_ours(TOP / "tor-trace", ["-e", "tor_*"], "timeout", "20", work / "src" / "app" / "tor", "--DataDirectory", data,
        "--SocksPort", "0", "-f", TOP / "none", "--ignore-missing-torrc", "--DisableNetwork", "0")
    whole("tor", text)


# LTTng's own tests, from the sources of lttng-tools: folder below tests/, sources, arguments.
SUITE = {
    "gen-ust-events": ("utils/testapp/gen-ust-events", ["gen-ust-events.c", "tp.c"], ["-i", "200", "-w", "0", "-f"]),
    "gen-ust-nevents": ("utils/testapp/gen-ust-nevents", ["gen-ust-nevents.c", "tp.c"], ["-i", "200", "-w", "0"]),
    "gen-ust-nevents-str": ("utils/testapp/gen-ust-nevents-str", ["gen-ust-nevents-str.c", "tp.c"], ["20", "one", "two", "*\\*"]),
    "gen-ust-tracef": ("utils/testapp/gen-ust-tracef", ["gen-ust-tracef.c"], ["200", "0"]),
    "filtering": ("regression/tools/filtering", ["gen-ust-events.c", "tp.c"], ["200", "0"]),
    "linking": ("regression/ust/linking", ["demo.c", "tp.c", "tp2.c", "tp3.c"], []),
    "overlap": ("regression/ust/overlap/demo", ["demo.c", "tp.c", "tp2.c", "tp3.c"], []),
    "type-declarations": ("regression/ust/type-declarations", ["type-declarations.c"], []),
    "multi-session": ("regression/ust/multi-session", ["gen-nevents.c", "tp.c"], ["200"]),
    "exit-fast": ("regression/ust/exit-fast", ["exit-fast.c"], []),
    "exit-fast-suicide": ("regression/ust/exit-fast", ["exit-fast.c"], ["suicide"]),
    "fork": ("regression/ust/fork", ["fork.c"], ["./fork2"]),
}
# Functions of the suite's helpers, which need its whole build.
SUITE_UTILS = """#include <fcntl.h>
#include <unistd.h>
int create_file(const char *path) { return close(creat(path, 0600)); }
int wait_on_file(const char *path) { (void)path; return 0; }
int usleep_safe(unsigned t) { return usleep(t); }
"""
LETTERS = "abcdefghijklmnop"
# Arguments of the suite's multi-lib tests: test, libraries.
MULTI_LIB = [("exec_with_callsites", 0, "a"), ("exec_with_callsites", 0, "ab"), ("exec_with_callsites", 0, LETTERS),
    ("exec_with_callsites", 1, "ab"), ("exec_with_callsites", 1, "ba"), ("exec_without_callsites", 2, "12")]


def same(name, wanted, found):
    """Fails if the texts of two traces differ. LTTng adds state dumps."""
    own = re.compile(r"\(\d+\) (lttng_ust_(statedump|lib|dl)|kymo_\w+):")
    texts = [[re.sub(r"\b(\w*pid|addr) = \d+", r"\1", line) for line in text.splitlines() if not own.match(line)] for text in (wanted, found)]
    if texts[0] == texts[1] or (name == "suite-fork" and sorted(texts[0]) == sorted(texts[1])):  # two processes at once
        return len(texts[0])
    for system, lines in zip(("lttng", "kymo"), texts):
        (TOP / f"{name}-{system}.txt").write_text("\n".join(lines))
    raise RuntimeError(f"{name}: the traces differ ({len(texts[0])} and {len(texts[1])} events): diff {TOP}/{name}-*.txt")


def three_ways(lttng, name, pattern, arguments, cwd, programs):
    """
    Compares LTTng's trace of a program with Kymo's of the same binary, and of the recompiled
    program.
    """
    before = os.getcwd()
    os.chdir(cwd)
    try:
        wanted = lttng.record(compat.Case(name, name, compare, pattern), [programs[ORACLE], *arguments[ORACLE]], None, check=False)
        ours = record_ours(TOP / f"{name}-trace", ["-e", pattern], programs[OURS], *arguments[OURS], cwd=cwd)
        as_it_is = record_ours(TOP / f"{name}-trace", ["--with=lttng", "-e", pattern], programs[ORACLE], *arguments[ORACLE], cwd=cwd)
    finally:
        os.chdir(before)
    n = same(name, wanted, ours)
    same(name, wanted, as_it_is)
    if not n:
        raise RuntimeError(f"{name}: no events")
    say(name, f"{n} events: recompiled and as it is, the same as LTTng's")


BOTH_TP = """#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER both
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./both.h"
#if !defined(BOTH_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define BOTH_H
#include <lttng/tracepoint.h>
TRACEPOINT_EVENT(both, event, TP_ARGS(int, n, const char *, by),
    TP_FIELDS(ctf_integer(int, n, n) ctf_string(by, by)))
#endif
#include <lttng/tracepoint-event.h>
"""
BOTH_PART = """#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "both.h"
void part(int n);
__attribute__((visibility("default"))) void part(int n) { tracepoint(both, event, n, PART); }
"""
BOTH_MAIN = """#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
void kymo_part(int n);
void lttng_part(int n);
static void *work(void *p)
{
    for (int i = 0; i < 1000; i++) kymo_part(i), lttng_part(i);
    return p;
}
int main(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    if (!fork()) { work(NULL); _exit(0); }
    wait(NULL);
    return 0;
}
"""


def both(lttng):
    """A process has a provider of each tracer, of the same name. Both tracers record it at once."""
    work = TOP / "both"
    work.mkdir(exist_ok=True)
    (work / "both.h").write_text(BOTH_TP)
    (work / "part.c").write_text(BOTH_PART)
    (work / "main.c").write_text(BOTH_MAIN)
    for name, system in (("lttng", ORACLE), ("kymo", OURS)):
        libs = ["-llttng-ust"] if system == ORACLE else []
        run("gcc", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-I.", *FLAGS[system], f'-DPART="{name}"', f"-Dpart={name}_part", "part.c", "-o",
            "libkymo-part.so" if system == OURS else "liblttng.so", *libs, cwd=work, log="both")
    run("gcc", "-O2", "main.c", "-o", "main", "-L.", "-lkymo-part", "-llttng", f"-Wl,-rpath,{work}", "-pthread", cwd=work, log="both")
    ours = TOP / "both-trace"
    shutil.rmtree(ours, ignore_errors=True)
    command = ["env", "-u", "LD_PRELOAD", STAGE / "bin" / "kymo", "record", "--no-summary", "-t", "none", "-o", ours, "-e", "both:*", "--", work / "main"]
    theirs = lttng.record(compat.Case("both", "both", both, "both:*"), command, None)
    for name, text in (("kymo", compat.text_of(ours)), ("lttng", theirs)):
        n = {by: text.count(f'by = "{by}"') for by in ("kymo", "lttng")}
        if n != {"kymo": 0, "lttng": 0, name: 4000}:
            raise RuntimeError(f"both: {name} recorded {n}, wanted 4000 of its own")
    say("both", "4000 events of each tracer, in one process and its child")


def suite_flags(tests):
    return ["-O2", "-w", "-D_GNU_SOURCE", "-I.", f"-I{tests}/utils", f"-I{tests}/utils/testapp"]


def suite_build(tests, folder, out, system, sources, *flags):
    libs = ["-llttng-ust", "-llttng-ust-common"] if system == ORACLE else []
    run("gcc", *suite_flags(tests), *FLAGS[system], *flags, "-o", out, *sources, *libs, "-ldl", "-lpopt", cwd=tests / folder, log="suite")
    return out


def suite(lttng):
    tests = TOP / "ltt-control" / "tests"
    utils = TOP / "suite-utils.c"
    utils.write_text(SUITE_UTILS)
    failed = []
    for name, (folder, sources, arguments) in SUITE.items():
        programs = {s: suite_build(tests, folder, TOP / f"suite-{name}-{s}", s, [*sources, utils]) for s in FLAGS}
        own = {s: arguments for s in FLAGS}
        if name == "fork":
            own = {s: [suite_build(tests, folder, TOP / f"suite-fork2-{s}", s, ["fork2.c"])] for s in FLAGS}
        try:
            three_ways(lttng, f"suite-{name}", "*", own, tests / folder, programs)
        except RuntimeError as e:
            failed.append(str(e))
    failed += multi_lib(lttng, tests)
    if failed:
        raise RuntimeError("; ".join(failed))


def multi_lib(lttng, tests):
    """Several versions of one provider in a process, which loads and unloads them."""
    folder = "regression/ust/multi-lib"
    programs, libraries, failed = {}, {}, []
    for s in FLAGS:
        programs["exec_with_callsites", s] = suite_build(tests, folder, TOP / f"suite-with-{s}", s, ["multi-lib-test.c", "callsites.c"],
            "-DHAS_CALLSITES=1")
        programs["exec_without_callsites", s] = suite_build(tests, folder, TOP / f"suite-without-{s}", s, ["multi-lib-test.c", "probes.c"],
            "-DHAS_CALLSITES=0", "-rdynamic")
        for x in LETTERS:
            libraries[x, s] = suite_build(tests, folder, TOP / f"suite-probes-{x}-{s}.so", s, ["probes.c"], "-shared", "-fPIC", f"-DACTIVATE_PROBES_{x.upper()}")
        for x in "12":
            libraries[x, s] = suite_build(tests, folder, TOP / f"suite-callsites-{x}-{s}.so", s, ["callsites.c"], "-shared", "-fPIC", f"-DVALUE={x * 5}")
    for program, number, letters in MULTI_LIB:
        arguments = {s: ["-t", str(number), *(libraries[x, s] for x in letters)] for s in FLAGS}
        try:
            three_ways(lttng, f"multi-lib-{number}-{letters}", "multi:*", arguments, tests / folder, {s: programs[program, s] for s in FLAGS})
        except RuntimeError as e:
            failed.append(str(e))
    return failed


def whole(name, text):
    names = {line.split(" ")[1] for line in text.splitlines()}
    if not names:
        raise RuntimeError(f"{name}: no events")
    say(name, f"built whole and run: {len(text.splitlines())} events of {len(names)} kinds")


TRIED = (examples, both, suite, qemu, ganesha, erlang, libcamera, frr, tor)


def main():
    from oracle import Lttng

    names = sys.argv[1:] or [f.__name__ for f in TRIED]
    unknown = set(names) - {f.__name__ for f in TRIED}
    if unknown:
        sys.exit(f"real.py: no such program: {', '.join(sorted(unknown))}; there are {', '.join(f.__name__ for f in TRIED)}")
    TOP.mkdir(exist_ok=True)
    failed = 0
    fetch([package for name, package in PACKAGES.items() if name in names])
    install()
    home = TOP / "lttng"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    lttng = Lttng(home)
    try:
        for function in TRIED:
            if function.__name__ in names:
                try:
                    function(lttng)
                except (RuntimeError, OSError, subprocess.SubprocessError) as e:
                    failed += 1
                    say(function.__name__, f"FAIL: {e}")
    finally:
        lttng.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
