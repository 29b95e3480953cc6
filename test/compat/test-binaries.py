#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Programs compiled with LTTng-UST's own headers and library (Debian package liblttng-ust-dev), not
with Kymo's. 'kymo record --with=lttng' records them, and the traces must be those that LTTng makes
of them (expected/).
"""

import collections
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import compat

sys.path.insert(0, str(compat.HERE.parent / "integration"))
import kymotest  # noqa: E402
from kymotest import BUILD, SOURCE, Failure, check  # noqa: E402

COMPILERS = {"c": [], "c_not_pic": ["-fno-pie"], "c_sanitized": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]}
LINK = {"-fno-pie": ["-no-pie"]}
HEADER = """#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER binary
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./binary.h"
#if !defined(BINARY_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define BINARY_H
#include <lttng/tracepoint.h>
#ifndef BINARY_TYPES
#define BINARY_TYPES
typedef int (*binary_function)(void);
#endif
#ifdef UNUSUAL
TRACEPOINT_ENUM(binary, empty, TP_ENUM_VALUES(ctf_enum_value("", 5)))
TRACEPOINT_EVENT(binary, number, TP_ARGS(int, n),
    TP_FIELDS(ctf_integer(int, 2nd, n) ctf_string(3, "z") ctf_enum(binary, empty, int, f, n)))
#else
TRACEPOINT_EVENT(binary, number, TP_ARGS(int, n, const char *, s, binary_function, f),
    TP_FIELDS(ctf_integer(int, n, n) ctf_string(s, s) ctf_integer(int, inner, f ? f() : 0)))
#endif
#endif
#include <lttng/tracepoint-event.h>
"""


def need_lttng():
    if not list(pathlib.Path("/usr/include").rglob("lttng/tracepoint.h")):
        raise Failure("LTTng-UST's headers are missing (scripts/deps --test)")


def record(k, rule, command, *options, env=None):
    trace = k.top / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    k.kymo("record", "--no-summary", "-t", "none", "-o", trace, "--with=lttng", *rule, *options, "--", *command, env=env or {})
    return compat.text_of(trace)


def run(k, case, flags):
    need_lttng()
    compiler = ["gcc", "-std=gnu11", *flags]
    out = pathlib.Path(k.top, "build")
    out.mkdir()
    tools = compat.Tools(compiler, compiler, [], [*LINK.get(flags[0] if flags else None, flags), "-llttng-ust"], "lttng-gen-tp", os.environ, out)
    command, preload = case.build(tools, case)
    preloads = os.pathsep.join(filter(None, [k.env.get("LD_PRELOAD"), str(preload) if preload else None]))
    # The program alone gets the library: the command line may be built with a sanitizer.
    wrap = ["env", f"LD_PRELOAD={preloads}"] if preloads else []
    text = record(k, ["-e", case.rule, *(["-f", case.filter] if case.filter else [])], [*wrap, *command])
    wanted = (compat.HERE / "expected" / f"{case.name}.txt").read_text()
    if case.name == "messages":
        wanted = wanted.replace("lttng_ust_tracelog:TRACE_", "lttng_ust_tracelog:LTTNG_UST_TRACEPOINT_LOGLEVEL_")
    if text != wanted:
        raise Failure("".join(difflib.unified_diff(wanted.splitlines(True), text.splitlines(True), "LTTng", "Kymo", n=0)))


def add_tests():
    for case in compat.CASES:
        for name, flags in COMPILERS.items():
            everywhere = case.name in ("version0", "messages")
            if case.of_2_13 and (everywhere or name == "c"):
                globals()[f"test_{case.name}_{case.build.__name__}_{name}"] = lambda k, case=case, flags=flags: run(k, case, flags)


def build(k, main, *flags, name="binary", provider=True):
    need_lttng()
    (k.top / "binary.h").write_text(HEADER)
    source = k.top / f"{name}.c"
    source.write_text(("#define TRACEPOINT_CREATE_PROBES\n" if provider else "") + "#define TRACEPOINT_DEFINE\n#include \"binary.h\"\n" + main)
    k.run(["gcc", "-O2", f"-I{k.top}", *flags, "-o", k.top / name, source, "-llttng-ust", "-ldl", "-pthread"])
    return k.top / name


def test_signals(k):
    """A handler that records interrupts a probe between the fields of its record."""
    program = build(k, """#include <signal.h>
        static volatile int depth;
        static int inner(void);
        static void handler(int s)
        {
            (void)s;
            depth++;
            tracepoint(binary, number, depth, "handler", depth < 3 ? inner : NULL);
            depth--;
        }
        static int inner(void) { raise(SIGUSR1); return 7; }
        int main(void) {
            struct sigaction a = {.sa_handler = handler, .sa_flags = SA_NODEFER};
            sigaction(SIGUSR1, &a, NULL);
            for (int i = 0; i < 100; i++) tracepoint(binary, number, i, "main", inner);
            return 0; }""")
    text = record(k, ["-e", "binary:*"], [program])
    # LTTng evaluates the field of a sequence twice, for its size and for its value; other fields,
    # as here, once.
    check(text.count('s = "main", inner = 7') == 100, f"100 events of main: {text[:500]}")
    check(text.count('s = "handler"') == 300 and text.count('n = 3, s = "handler", inner = 0') == 100, f"300 of handlers: {text[:900]}")


def test_loaded(k):
    """A program sees that the library is there, as lttng-ust(3) says."""
    program = build(k, """int lttng_ust_loaded __attribute__((weak));
        int main(void) { tracepoint(binary, number, lttng_ust_loaded, "is", NULL); return 0; }""")
    check("n = 1, s = \"is\"" in record(k, ["-e", "binary:*"], [program]), "lttng_ust_loaded is 1")


def test_fork_and_threads(k):
    program = build(k, """#include <pthread.h>
        #include <sys/wait.h>
        static void *work(void *data)
        {
            for (int i = 0; i < 50; i++)
                tracepoint(binary, number, i, data, NULL);
            return NULL;
        }
        int main(void) {
            for (int i = 0; i < 20; i++) {
                pthread_t t[4];
                pid_t pid;
                for (int j = 0; j < 4; j++) pthread_create(&t[j], NULL, work, "thread");
                pid = fork();
                if (!pid) { work("child"); _exit(0); }
                waitpid(pid, NULL, 0);
                for (int j = 0; j < 4; j++) pthread_join(t[j], NULL);
            }
            return 0; }""")
    text = record(k, ["-e", "binary:*"], [program])
    check(text.count('s = "thread"') == 4000, "all events of threads: %d" % text.count('s = "thread"'))
    check(text.count('s = "child"') == 1000, "all events of children: %d" % text.count('s = "child"'))


def test_lengths(k):
    """
    Records larger than the memory of a thread; a record larger than a buffer is counted as
    discarded.
    """
    program = build(k, """int main(void) {
            static char s[200000];
            static const int lengths[] = {0, 1, 6, 7, 8, 9, 60000, 65000, 65536, 70000, 199999};
            for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
                memset(s, 'x', lengths[i]); s[lengths[i]] = 0;
                tracepoint(binary, number, lengths[i], s, NULL);
            }
            return 0; }""")
    text = record(k, ["-e", "binary:*"], [program], "--subbuf-size=1M")
    for n in (0, 1, 6, 7, 8, 9, 60000, 65000, 65536, 70000, 199999):
        check(f'n = {n}, s = "{"x" * n}", inner = 0' in text, f"{n} bytes")


def test_loaded_and_unloaded(k):
    """The program loads and unloads providers, and tracepoints, with dlopen and dlclose."""
    build(k, "void work(int n); void work(int n) { tracepoint(binary, number, n, \"plugin\", NULL); }\n", "-shared", "-fPIC", name="plugin.so")
    program = build(k, """#include <dlfcn.h>
        int main(int argc, char **argv) {
            (void)argc;
            for (int i = 0; i < 200; i++) {
                void *p = dlopen(argv[1], RTLD_NOW);
                void (*work)(int) = (void (*)(int))dlsym(p, "work");
                work(i);
                dlclose(p);
            }
            return 0; }""", "-DTRACEPOINT_PROBE_DYNAMIC_LINKAGE", name="loader", provider=False)
    text = record(k, ["-e", "binary:*"], [program, k.top / "plugin.so"])
    check(text.count('s = "plugin"') == 200, "an event of each: %d" % text.count('s = "plugin"'))


def test_switched_while_it_runs(k):
    """The program itself reads the word that says whether a session records the event."""
    program = build(k, """#include <stdio.h>
        int main(void) {
            char line[8];
            while (puts(tracepoint_enabled(binary, number) ? "on" : "off"), fflush(stdout),
                   fgets(line, sizeof(line), stdin))
                tracepoint(binary, number, 1, "asked", NULL);
            return 0; }""")
    env = {**os.environ, **k.env, "LD_LIBRARY_PATH": f"{BUILD / 'src' / 'lttng'}:{k.env.get('LD_LIBRARY_PATH', '')}"}
    k.start_daemon()
    k.kymo("create", "demo", "--output", k.top / "demo")
    p = subprocess.Popen([program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        check(p.stdout.readline() == "off\n", "off at first")
        k.kymo("enable-event", "-s", "demo", "binary:*")
        k.kymo("start", "demo")
        p.stdin.write("a\n"), p.stdin.flush()
        p.stdout.readline()
        p.stdin.write("b\n"), p.stdin.flush()
        check(p.stdout.readline() == "on\n", "on while a session records")
        k.kymo("stop", "demo")
        p.stdin.write("c\n"), p.stdin.flush()
        p.stdout.readline()
        p.stdin.write("d\n"), p.stdin.flush()
        check(p.stdout.readline() == "off\n", "off again")
    finally:
        p.stdin.close()
        p.wait()
    k.kymo("destroy", "demo")


THREADS = """#include <pthread.h>
    static void *work(void *p)
    {
        for (int i = 0; i < 100; i++)
            tracepoint(binary, number, i, "work", NULL);
        return p;
    }
    int main(void) {
        pthread_t t[4];
        for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, work, NULL);
        for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
        return 0; }"""


def test_read_lock_inline(k):
    """
    _LGPL_SOURCE: the program contains the code of the read lock, which uses variables of the
    library.
    """
    program = build(k, THREADS, "-D_LGPL_SOURCE", "-Wl,--no-as-needed", "-llttng-ust-common")
    # kymo-lttng-switch does not replace liblttng-ust-common: then its variables are LTTng's.
    some = k.top / "some"
    some.mkdir()
    for name in ("liblttng-ust.so.1", "liblttng-ust-tracepoint.so.1"):
        (some / name).symlink_to(BUILD / "src" / "lttng" / name)
    for command in ([program], ["env", f"LD_LIBRARY_PATH={some}:{k.env.get('LD_LIBRARY_PATH', '')}", program]):
        text = record(k, ["-e", "binary:*"], command)
        check(text.count('s = "work"') == 400, "all events: %d" % text.count('s = "work"'))


def test_unusual_names(k):
    """Fields whose names begin with a digit, and an empty label."""
    program = build(k, "int main(void) { tracepoint(binary, number, 5); return 0; }", "-DUNUSUAL")
    text = record(k, ["-e", "binary:*"], [program])
    check('{ 2nd = 5, 3 = "z", f = ( "" : container = 5 ) }' in text, text)


def test_beside_libraries_of_lttng(k):
    """Libraries of LTTng's that programs preload, and those of its daemons, find what they need."""
    def symbols(path):
        text = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        return {line.split()[-1] for line in text.splitlines() if " lttng_ust_" in line}

    common = next(pathlib.Path("/usr/lib").rglob("liblttng-ust-common.so.1"))
    missing = symbols(common) - symbols(BUILD / "src" / "lttng" / "liblttng-ust-tracepoint.so.1")
    check(missing <= {"lttng_ust_safe_closefrom_fd"}, f"{missing} are missing")  # which is not for Linux
    program = build(k, "int main(void) { tracepoint(binary, number, 1, \"x\", NULL); return fclose(stdin); }")
    for name in ("dl", "fd", "fork", "libc-wrapper"):
        library = common.with_name(f"liblttng-ust-{name}.so.1")
        text = record(k, ["-e", "binary:*"], ["env", "LD_BIND_NOW=1", f"LD_PRELOAD={library}", program])
        check(text.count('s = "x"') == 1, f"{name}: {text}")


def test_beside_recompiled(k):
    """One process has the provider twice: compiled with LTTng's headers, and with Kymo's."""
    build(k, "void other(void); void other(void) { tracepoint(binary, number, 1, \"as it is\", NULL); }\n", "-shared", "-fPIC", name="libother.so")
    program = build(k, "void other(void); int main(void) { tracepoint(binary, number, 2, \"recompiled\", NULL); other(); return 0; }",
        f"-I{SOURCE / 'include' / 'kymo-lttng'}", f"-I{SOURCE / 'include'}", f"-L{k.top}", "-Wl,--no-as-needed", "-l:libother.so",
        f"-Wl,-rpath,{k.top}")
    text = record(k, ["-e", "binary:*"], [program])
    check(text.count('s = "as it is"') == 1 and text.count('s = "recompiled"') == 1, f"an event of each: {text}")


def test_functions_of_the_program(k):
    """
    The library calls a function that the program registered, with the arguments of a tracepoint,
    whether a session records it or not.
    """
    program = build(k, """#include <stdio.h>
        static int calls;
        static void called(void *data, int n, const char *s, binary_function f)
        {
            (void)s, (void)f;
            calls += n == 3 && data == &calls;
        }
        int main(void) {
            int (*add)(const char *, const char *, void (*)(void), void *, const char *) =
                lttng_ust_tracepoint_provider_register;
            add("binary", "number", (void (*)(void))called, &calls,
                lttng_ust_tracepoint_binary___number.signature);
            tracepoint(binary, number, 3, "x", NULL);
            lttng_ust_tracepoint_provider_unregister("binary", "number",
                (void (*)(void))called, &calls);
            tracepoint(binary, number, 3, "x", NULL);
            return calls != 1; }""", "-Wl,--no-as-needed", "-llttng-ust-tracepoint")
    k.run([program], env={"LD_LIBRARY_PATH": str(BUILD / "src" / "lttng")})


def test_exceptions(k):
    """Probes that end by longjmp, in the middle of a record, do not use more and more memory."""
    program = build(k, """#include <setjmp.h>
        #include <stdio.h>
        #include <string.h>
        static jmp_buf out;
        static int leave(void) { longjmp(out, 1); }
        static char large[100000];
        static void once(int i, const char *s)
        {
            if (!setjmp(out)) tracepoint(binary, number, i, s, leave);
        }
        static long pages(void)
        {
            long n = 0;
            FILE *f = fopen("/proc/self/statm", "r");
            if (f && fscanf(f, "%ld", &n) == 1) fclose(f);
            return n;
        }
        int main(void) {
            for (int i = 0; i < 100000; i++) once(i, "left");
            memset(large, 'x', sizeof(large) - 1);
            once(0, large);
            long before = pages();
            for (int i = 0; i < 100; i++) once(i, large);
            if (pages() - before > 1000) return 1;
            for (int i = 0; i < 10; i++) tracepoint(binary, number, i, "whole", NULL);
            return 0; }""")
    text = record(k, ["-e", "binary:*"], [program])
    check(text.count('s = "whole"') == 10 and "left" not in text, f"the whole events alone: {text[:500]}")


LEFT_OUT = """void *lttng_ust_context_provider_register(void *);
    int main(void)
    {
        lttng_ust_context_provider_register((void *)0);
        tracepoint(binary, number, 1, "x", NULL);
        getchar();
        return 0;
    }"""


def test_left_out(k):
    """
    A program with a provider of an unknown version, and contexts of its own, runs. With
    KYMO_DEBUG=1 it prints what is left out; `status` names it in sessions whose rules match it,
    whether they were made before the program's start or after.
    """
    (k.top / "old.h").write_text("#include <stdio.h>\n#include <lttng/ust-events.h>\n#undef LTTNG_UST_PROVIDER_MAJOR\n"
        "#define LTTNG_UST_PROVIDER_MAJOR 9\n")
    program = build(k, LEFT_OUT, "-include", k.top / "old.h", "-Wl,--no-as-needed")
    env = {**os.environ, **k.env, "KYMO_DEBUG": "1", "LD_LIBRARY_PATH": f"{BUILD / 'src' / 'lttng'}:{k.env.get('LD_LIBRARY_PATH', '')}"}
    wanted = "application binary: 'binary:*' is not recorded: the provider is of version 9 of LTTng-UST's interface, not of 3"
    context = "application binary: '*' is not recorded: contexts of the program's own ($app) are not recorded"

    def warnings(session):
        return k.kymo_json("status", session)["warnings"]

    def create(session, rule):
        k.kymo("create", session, "--output", k.top / session)
        k.kymo("enable-event", "-s", session, rule)
        k.kymo("start", session)

    k.start_daemon()
    create("before", "binary:number")
    p = subprocess.Popen([program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # The context is reported after main() has begun.
        kymotest.wait_for(lambda: context in warnings("before"), "the second report")
        create("after", "bin*")
        create("other", "other:*")
        for session in ("before", "after"):
            check(wanted in warnings(session), f"{session}: {warnings(session)}")
        check(wanted in k.kymo("status", "after").stdout, "as text")
        check(wanted not in warnings("other"), f"other: {warnings('other')}")
    finally:
        errors = p.communicate("\n")[1]
    check(p.returncode == 0, f"it runs: {p.returncode}")
    check(errors.count("is left out") == 2 and "'binary:*' is left out: the provider is of version 9" in errors, f"lines: {errors}")
    check(wanted in warnings("before"), "also after its end")
    k.kymo("destroy", "--all")


def test_left_out_at_once(k):
    """A program that ends at once reports its provider: its constructor waits for that."""
    (k.top / "old.h").write_text("#include <lttng/ust-events.h>\n#undef LTTNG_UST_PROVIDER_MAJOR\n#define LTTNG_UST_PROVIDER_MAJOR 9\n")
    program = build(k, "int main(void) { tracepoint(binary, number, 1, \"x\", NULL); return 0; }", "-include", k.top / "old.h")
    done = k.kymo("record", "-o", k.top / "trace", "--with=lttng", "-e", "binary:number", "--", program)
    check("'binary:*' is not recorded: the provider is of version 9" in done.stderr, done.stderr)


def test_left_out_arguments(k):
    """A tracepoint whose arguments differ from its event's is named: recompiled, and as it is."""
    (k.top / "binary.h").write_text(HEADER)
    (k.top / "provider.c").write_text("#define TRACEPOINT_CREATE_PROBES\n#include \"binary.h\"\n")
    other = HEADER.replace("TP_ARGS(int, n,", "TP_ARGS(long, n,")
    (k.top / "other.h").write_text(other.replace("./binary.h", "./other.h"))
    (k.top / "main.c").write_text("#define TRACEPOINT_DEFINE\n#define TRACEPOINT_PROBE_DYNAMIC_LINKAGE\n#include \"other.h\"\n"
        "int main(void) { tracepoint(binary, number, 1, \"x\", NULL); return 0; }\n")
    recompiled = [f"-I{SOURCE / 'include' / 'kymo-lttng'}", f"-I{SOURCE / 'include'}"]
    for flags in ([], recompiled):
        k.run(["gcc", *flags, f"-I{k.top}", "-shared", "-fPIC", "-o", k.top / "provider.so", k.top / "provider.c", *([] if flags else ["-llttng-ust"])])
        k.run(["gcc", *flags, f"-I{k.top}", "-o", k.top / "main", k.top / "main.c", "-ldl"])
        shutil.rmtree(k.top / "trace", ignore_errors=True)
        done = k.kymo("record", "-o", k.top / "trace", *([] if flags else ["--with=lttng"]), "-e", "binary:*", "--",
            "env", f"LD_PRELOAD={k.top / 'provider.so'}", k.top / "main")
        check(re.search(r"application main: 'binary:number' is not recorded: a tracepoint has the arguments \(?long, n", done.stderr), done.stderr)


STRICT = {
    "gcc": ["-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wsign-conversion", "-Wcast-qual", "-Wcast-align=strict", "-Wshadow", "-Wundef",
        "-Wredundant-decls", "-Wmissing-prototypes", "-Wstrict-prototypes", "-Wbad-function-cast", "-Wc++-compat", "-Wnested-externs",
        "-Wold-style-definition", "-Wdeclaration-after-statement", "-Wlogical-op", "-Wunused-macros", "-Wnull-dereference", "-Wvla"],
    "g++": ["-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wsign-conversion", "-Wcast-qual", "-Wcast-align=strict", "-Wshadow", "-Wundef",
        "-Wold-style-cast", "-Wuseless-cast", "-Wzero-as-null-pointer-constant", "-Wredundant-decls", "-Wmissing-declarations", "-Weffc++",
        "-Wlogical-op", "-Wnull-dereference", "-Wvla"],
    "clang": ["-Weverything", "-ferror-limit=0"],
    # C++98 has no empty macro arguments, and no tracepoints.
    "clang++": ["-Weverything", "-Wno-c++98-compat-pedantic", "-ferror-limit=0"],
}


def warnings(compiler, language, include, source):
    """Returns how often the compiler gives each warning."""
    done = subprocess.run([*compat.CCACHE, compiler, f"-x{language}", f"-std={'c++17' if '++' in compiler else 'gnu11'}", "-O2", *STRICT[compiler],
        f"-I{compat.PROGRAMS}", *include, "-c", "-o", f"{compat.kept.name}/warned.o", source], capture_output=True, text=True, cwd=compat.PROGRAMS)
    check(done.returncode == 0, f"{compiler} {source}: {done.stderr[-1000:]}")
    return collections.Counter(re.findall(r"\[-W[^]]*\]", done.stderr)), done.stderr


@kymotest.without_sanitizers  # it uses nothing of the build
def test_no_more_warnings(k):
    """With every warning enabled, Kymo's headers cause none that LTTng's headers do not cause."""
    need_lttng()
    ours = [f"-I{SOURCE / 'include' / 'kymo-lttng'}", f"-I{SOURCE / 'include'}"]
    for compiler in STRICT:
        # LTTng does not compile providers with negative values of enumerations in C++.
        names = ("version0", "version1", "variety", "messages", *(() if "++" in compiler else ("version0-tp", "version1-tp", "variety-tp")))
        for name in names:
            language = "c++" if "++" in compiler else "c"
            theirs, _ = warnings(compiler, language, [], compat.PROGRAMS / f"{name}.c")
            found, text = warnings(compiler, language, ours, compat.PROGRAMS / f"{name}.c")
            check(not found - theirs, f"{compiler} {name}: {found - theirs}\n{text[:3000]}")


add_tests()
if __name__ == "__main__":
    kymotest.main()
