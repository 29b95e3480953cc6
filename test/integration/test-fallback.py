#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Without restartable sequences each thread has its own ring: the results are as exact, also with
other C libraries.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess

import kymotest
from emitcheck import SCALE, check_values, run_exact
from kymotest import BUILD, SOURCE, Skip, check, check_counts, equal, integers, need_program, streams, without_sanitizers

NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
MONOTONIC = {"KYMO_CLOCK": "monotonic"}


def per_thread(k, runs, **options):
    trace, events, counts = run_exact(k, runs, env=NO_RSEQ, **options)
    names = {p.name for p in streams(trace)}
    check(names and all("-thread_" in n for n in names), f"streams are not those of threads: {sorted(names)}")
    return events, counts


def test_one_thread(k):
    per_thread(k, [["-n", 50000 // SCALE]])


def test_sixteen_threads(k):
    per_thread(k, [["-t", 16, "-n", 5000 // SCALE]])


def test_four_processes(k):
    per_thread(k, [["-t", 4, "-n", 5000 // SCALE]] * 4)


def test_signals(k):
    _, counts = per_thread(k, [["-t", 2, "-n", 100000 // SCALE, "-s", 20, "-m"]])
    check(counts[0][1] > 10, f"the timer fired {counts[0][1]} times only: nothing was tested")


def test_overflow(k):
    small = ("--subbuf-size=4K", "--num-subbuf=2")
    events, counts = per_thread(k, [["-t", 4, "-n", 30000 // SCALE, "-s", 50]] * 2, channel=small, lossless=False)
    check(len(events) < sum(map(sum, counts)), "nothing overflowed")


def test_both_modes(k):
    """Programs with and without restartable sequences in one session."""
    k.start_daemon()
    trace = k.record("emit:*")
    n = 3000
    apps = [k.spawn("emit", "-p", i, "-n", n, env=NO_RSEQ if i else {}) for i in range(2)]
    for app in apps:
        k.finish(app)
    k.kymo("stop", "s")
    equal(len(check_values(check_counts(k, trace, 2 * n))), 2 * n, "events of both programs")


# A program maps 1024 times this size for a ring set of threads. Emulators need it to be small.
SMALL = ("--subbuf-size=256K", "--num-subbuf=2")


@without_sanitizers
def test_valgrind(k):
    need_program("valgrind", "valgrind")
    run_exact(k, [["-t", 2, "-n", 500]], channel=SMALL, wrap=["valgrind", "-q", "--error-exitcode=9"], env=MONOTONIC)


# The kernel's headers for -m32 are those of 64 bits. gcc-multilib would point there, but it
# conflicts with the cross compilers.
M32 = ["-m32", "-idirafter", "/usr/include/x86_64-linux-gnu"]

CCACHE = ["ccache"] if shutil.which("ccache") else []
CROSS = """[binaries]
c = {c}
ar = '{ar}'
strip = '{strip}'
[built-in options]
c_args = {c_args}
c_link_args = {c_args}
[host_machine]
system = 'linux'
cpu_family = '{cpu}'
cpu = '{cpu}'
endian = 'little'
"""


def foreign(k, name, compiler, cpu, c_args=(), binutils="", program="emit"):
    """
    Builds everything that programs need for another ABI; returns the environment and a program of
    test/integration/apps.
    """
    directory = BUILD / f"foreign-{name}"
    cross = BUILD / f"foreign-{name}.ini"
    cross.write_text(CROSS.format(c=[*CCACHE, compiler], ar=f"{binutils}ar", strip=f"{binutils}strip", c_args=list(c_args), cpu=cpu))
    if not (directory / "build.ninja").exists():
        shutil.rmtree(directory, ignore_errors=True)
        k.run(["meson", "setup", directory, SOURCE, "--cross-file", cross, "-Ddaemons=false", "-Dtests=disabled", "-Ddebug=false",
            "--werror"], timeout=8 * kymotest.TIMEOUT, env={"PATH": os.environ["PATH"]})
    k.run(["ninja", "-C", directory], timeout=8 * kymotest.TIMEOUT)
    app = pathlib.Path(k.top, program)
    source = SOURCE / "test" / "integration" / "apps" / f"{program}.c"
    k.run([compiler, *c_args, "-O2", f"-I{SOURCE / 'include'}", "-D_GNU_SOURCE", "-o", app, source, "-pthread"])
    return {**MONOTONIC, "LD_LIBRARY_PATH": str(directory / "src" / "tracer")}, app


def runner_of_32_bit():
    """Returns the command that runs 32-bit programs: none, or an emulator if the kernel cannot."""
    with contextlib.suppress(OSError):
        subprocess.run(["/lib/ld-linux.so.2", "--version"], capture_output=True)
        return []
    need_program("qemu-i386", "qemu-user")
    return ["qemu-i386"]


def run_foreign(k, env, app, abi, wrap=(), n=3000):
    trace, events, _ = run_exact(k, [["-t", 4, "-n", n]], channel=SMALL, app=app, env=env, wrap=wrap)
    equal({p.name for p in (trace / "ust" / "uid" / str(os.getuid())).iterdir()}, {abi}, "ABI of the trace")
    check(len(events) == 4 * n, "not all recorded")


STATEMENTS = """
#include <kymo/span.h>
KYMO_EVENT_DEFINE(other, shared, KYMO_INFO, KYMO_ARGS(int n), kymo_i32(n, n))
#if !defined(__cplusplus) || !(defined(__arm__) || defined(__m68k__))
static inline void in_line(int n)
{
	kymo_span(other, span, kymo_i32(n, n));
}
#else
#define in_line(n) (void)(n)
#endif
#ifdef __cplusplus
template <typename T> void in_template(T n)
{
	kymo_trace(other, shared, static_cast<int>(n));
	in_line(static_cast<int>(n));
}
#else
#define in_template(n) in_line(n)
#endif
int main(int argc, char **argv)
{
	(void)argv;
	kymo_trace(other, shared, argc);
	in_template(argc);
	in_template('x');
	return 0;
}
"""


def test_other_processors(k):
    """The headers compile and link for each processor that there is a compiler for."""
    compilers = [p for p in pathlib.Path("/usr/bin").glob("*-linux-gnu*-g*[c+]-12") if p.name.endswith(("-gcc-12", "-g++-12"))]
    (k.top / "other.c").write_text(STATEMENTS)
    for compiler in compilers:
        for flags in (["-O2", "-fPIC"], ["-O0"]):
            language = "c++" if "g++" in compiler.name else "c"
            k.run([compiler, *flags, f"-I{SOURCE}/include", f"-x{language}", k.top / "other.c", "-o", k.top / "other"])
    check(compilers, "there is no compiler")


@without_sanitizers
def test_32_bit(k):
    need_program("gcc-12", "gcc-12-multilib")
    if k.run(["gcc-12", "-m32", "-xc", "-", "-o", "/dev/null"], status=None, input="int main(void) { return 0; }\n").returncode:
        raise Skip("gcc -m32 does not link (Debian package gcc-12-multilib)")
    env, app = foreign(k, "i386", "gcc-12", "x86", M32)
    run_foreign(k, env, app, "32-bit", runner_of_32_bit())


@without_sanitizers
def test_32_bit_signals(k):
    if not (BUILD / "foreign-i386" / "build.ninja").exists():
        raise Skip("no 32-bit library was built (see test_32_bit)")
    if runner_of_32_bit():
        raise Skip("this kernel runs no 32-bit programs, and qemu-i386 fails when signals come in such numbers")
    env, app = foreign(k, "i386", "gcc-12", "x86", M32)
    run_exact(k, [["-t", 2, "-n", 20000, "-s", 50, "-m"]], app=app, env=env)


@without_sanitizers
def test_both_abis(k):
    """
    Programs of 32 and 64 bits in one session: an event of one name may have a wider field in one of
    them, and is exact in both.
    """
    if not (BUILD / "foreign-i386" / "build.ninja").exists():
        raise Skip("no 32-bit library was built (see test_32_bit)")
    env, narrow = foreign(k, "i386", "gcc-12", "x86", M32, program="abi")
    k.start_daemon(env=MONOTONIC)
    n = 2000
    trace = k.record("abi:*", channel=SMALL)
    wrap = runner_of_32_bit()
    for _ in range(2):
        apps = [k.spawn(narrow, n, env=env, wrap=wrap) if i % 2 else k.spawn("abi", n) for i in range(4)]
        for app in apps:
            equal(k.finish(app), f"{3 * n}\n", "what it says")
    equal([w for w in k.kymo_json("status")["warnings"] if kymotest.LATE_CONSUMER not in w], [], "warnings: nothing is in conflict")
    k.kymo("destroy")
    top = trace / "ust" / "uid" / str(os.getuid())
    equal({p.name for p in top.iterdir()}, {"32-bit", "64-bit"}, "ABIs of the trace")
    events = check_counts(k, trace, 8 * 3 * n)
    for bits, words in ((32, 4), (64, 8)):
        mine = check_counts(k, top / f"{bits}-bit", 4 * 3 * n)
        for name in ("same", "word", f"here_{bits}"):
            values = sorted(abs(next(iter(integers(e).values()))) for e in mine if e.name == f"abi:{name}")
            equal(values, sorted(4 * list(range(n))), f"values of {name} in the {bits}-bit part")
        metadata = (top / f"{bits}-bit" / "metadata").read_text()
        word = metadata[metadata.index('"abi:word"'):]
        check(f"size = {8 * words};" in word[:word.index("_value")].rpartition("fields")[2], f"width of a long in the {bits}-bit part: {word[:400]}")
    seen = k.kymo("view", trace).stdout.splitlines()
    theirs = k.run(["babeltrace2", trace]).stdout.splitlines()
    equal(sorted(line.partition(") ")[0] + line.partition("abi:")[2] for line in seen),
        sorted(line.partition(") ")[0] + line.partition("abi:")[2] for line in theirs), "lines of kymo view and babeltrace2")
    equal(len(seen), len(events), "events of the whole trace")


@without_sanitizers
def test_emulator(k):
    """QEMU's emulation: a child, and a program that main leaves, end as they do untraced."""
    need_program("qemu-x86_64", "qemu-user")
    k.start_daemon()
    out = k.record("last:*")
    for env in {"KYMO_OFF": "1"}, {}:
        done = k.run(["qemu-x86_64", kymotest.APPS / "last", 0, "-", "fork"], env=env)
        equal((done.stdout, done.stderr), ("bye\n", ""), f"with {env}")
    equal(k.run(["qemu-x86_64", kymotest.APPS / "last", 4], env=env).stdout, "bye\n", "output of a program that records")
    k.kymo("destroy")
    kymotest.check_counts(k, out, 40)


@without_sanitizers
def test_musl(k):
    need_program("musl-gcc", "musl-tools")
    # musl's compiler wrapper searches only musl's directories, which do not have the kernel's
    # headers.
    env, app = foreign(k, "musl", "musl-gcc", "x86_64", ["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"])
    run_foreign(k, env, app, "64-bit")
    # Libraries that were made for another C library do not end the program.
    done = k.kymo("record", "--no-summary", "--with=libc,pthread,dl,crash,cyg-profile", "-o", k.top / "with", "--", "sh", "-c",
        f"echo begins; {app} -n 1 >/dev/null && echo ends")
    equal((done.stdout, done.stderr), ("begins\nends\n", ""), "output of the command")


@without_sanitizers
def test_aarch64(k):
    need_program("aarch64-linux-gnu-gcc-12", "gcc-12-aarch64-linux-gnu")
    need_program("qemu-aarch64", "qemu-user")
    env, app = foreign(k, "aarch64", "aarch64-linux-gnu-gcc-12", "aarch64", binutils="aarch64-linux-gnu-")
    library = env.pop("LD_LIBRARY_PATH")
    wrap = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-E", f"LD_LIBRARY_PATH={library}"]
    run_foreign(k, env, app, "64-bit", wrap)


@without_sanitizers  # it has nothing of the build
def test_aarch64_writer(k):
    """
    The assembly of the writers: the emulator has no restartable sequences, but runs their code.
    """
    need_program("aarch64-linux-gnu-gcc-12", "gcc-12-aarch64-linux-gnu")
    need_program("qemu-aarch64", "qemu-user")
    ring = SOURCE / "src" / "ring"
    sources = [ring / name for name in ("test-writer.c", "test-fixture.c", "record.c", "thread.c", "parts.c", "slots.c", "wait.c", "geometry.c", "rseq-aarch64.S")]
    test = pathlib.Path(k.top, "test-writer")
    k.run(["aarch64-linux-gnu-gcc-12", "-O2", "-D_GNU_SOURCE", "-static", "-pthread", "-Wall", "-Werror", "-o", test,
        f"-I{SOURCE / 'src'}", f"-I{SOURCE / 'include'}", f"-I{SOURCE / 'test' / 'foreign'}", *sources], timeout=8 * kymotest.TIMEOUT)
    k.run(["qemu-aarch64", test], timeout=8 * kymotest.TIMEOUT)


kymotest.main()
