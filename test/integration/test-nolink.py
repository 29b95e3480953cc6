#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Programs and libraries that are not linked with the tracer, with every header, in C and C++. They
run if it is not installed, and are traced if it is found, preloaded, or loaded later. If two of
them disagree about a definition, neither ends.
"""

import atexit
import collections
import pathlib
import re
import shutil
import tempfile

import kymotest
from kymotest import LIBDIR, SOURCE, Skip, check, equal, read_trace

PROVIDER = """
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER nolink_lttng
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./tp.h"
#if !defined(TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TP_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(nolink_lttng, event, LTTNG_UST_TP_ARGS(int, n),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, n, n)))
#endif
#include <lttng/tracepoint-event.h>
"""
WORK = """
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tp.h"
#include <kymo/context.h>
#include <kymo/span.h>
#include <kymo/state.h>
#include <kymo/statedump.h>
#include <lttng/tracef.h>
#include <lttng/tracelog.h>

KYMO_EVENT_DEFINE(nolink, in_header, KYMO_INFO, KYMO_ARGS(int n), kymo_i32(n, n))
static void get(void *data, union kymo_context_value *value) { value->i64 = *(int *)data; }
static void dump(void *data) { kymo_event(nolink, dumped, kymo_i32(n, *(int *)data)); }
static int number = 7;
static struct kymo_context context = {
	sizeof(context), KYMO_CONTEXT_I64, "nolink:number", get, &number};
static struct kymo_statedump state = {sizeof(state), 0, dump, &number};
#ifdef __cplusplus
template <class T> static void in_template(T n) { kymo_event(nolink, in_template, kymo_i64(n, n)); }
extern "C"
#endif
void work(void);
void work(void)
{
	if (kymo_context_register(&context) || kymo_statedump_register(&state))
		abort();
	{
		kymo_span(nolink, span);
		kymo_event(nolink, event, kymo_string(text, "text"));
		kymo_trace(nolink, in_header, 3);
	}
	kymo_state_event(nolink, state, kymo_i32(key, 1), kymo_i32(value, 2));
	kymo_state_end(nolink, state, kymo_i32(key, 1));
	kymo_tracef("%d", 1);
	lttng_ust_tracepoint(nolink_lttng, event, 1);
	lttng_ust_tracef("%d", 2);
	lttng_ust_tracelog(LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO, "%d", 3);
#ifdef __cplusplus
	in_template(1);
	in_template(1L);
#endif
	kymo_statedump_unregister(&state);
	kymo_context_unregister(&context);
}
"""
MAIN = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#ifdef LINKED
extern void work(void);
#endif
int main(void)
{
	char line[4096];
	void *library;
	void (*other)(void);

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\\n")] = 0;
		if (!strcmp(line, "quit"))
			break;
#ifdef LINKED
		if (!strcmp(line, "work")) {
			work();
			puts("ok");
			fflush(stdout);
			continue;
		}
#endif
#ifndef ALONE
		library = dlopen(line, RTLD_NOW | RTLD_LOCAL);
		if (!library)
			puts(dlerror());
		*(void **)&other = library ? dlsym(library, "work") : NULL;
		if (other)
			other();
#else
		(void)library, (void)other;
#endif
		puts("ok");
		fflush(stdout);
	}
	return 0;
}
"""
COMMON = {"nolink:span_begin": 1, "nolink:span_end": 1, "nolink:event": 1, "nolink:in_header": 1, "nolink:state": 1, "nolink:state_end": 1,
    "kymo_tracef:event": 1, "nolink_lttng:event": 1, "lttng_ust_tracef:event": 1}
LOG = "lttng_ust_tracelog:LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO"
NOWHERE = {"LD_LIBRARY_PATH": "/nonexistent"}


def wanted(compiler):
    return {**COMMON, LOG: 1, **({"nolink:in_template": 2} if compiler == "g++" else {})}


def compile_to(k, name, text, *flags, compiler="gcc", folder=None):
    folder = folder or k.top
    source = folder / f"{name}.{'cpp' if compiler == 'g++' else 'c'}"
    source.write_text(text)
    (folder / "tp.h").write_text(PROVIDER)
    (folder / "conflict-tp.h").write_text(CONFLICTING_PROVIDER)
    includes = [f"-I{folder}", f"-I{SOURCE / 'include'}", f"-I{SOURCE / 'include' / 'kymo-lttng'}"]
    k.run([compiler, "-O2", "-Wall", "-Werror", *includes, "-D_GNU_SOURCE", "-o", folder / name, source, *flags])
    return folder / name


def library(k, name, text, *flags, **options):
    return compile_to(k, name + ".so", text, "-shared", "-fPIC", *flags, **options)


def links(k, *flags):
    return k.run(["gcc", *flags, "-xc", "-", "-o", k.top / "empty"], status=None, input="int main(void) { return 0; }\n").returncode == 0


PROGRAMS = {}


def programs(k, compiler):
    """
    Returns (name, command, lines that make it work) of each form. Compiles them once for all tests.
    """
    if compiler not in PROGRAMS:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-nolink-"))
        atexit.register(shutil.rmtree, folder)
        PROGRAMS[compiler] = list(compile_programs(k, compiler, folder))
    return PROGRAMS[compiler]


def compile_programs(k, compiler, folder):
    plain = library(k, "work", WORK, compiler=compiler, folder=folder)
    yield "loaded", compile_to(k, "main", MAIN, "-ldl", folder=folder), str(plain)
    yield "shared", compile_to(k, "main-shared", MAIN, "-DLINKED", plain, f"-Wl,-rpath,{folder}", "-ldl", folder=folder), "work"
    source = folder / ("work-object.cpp" if compiler == "g++" else "work-object.c")
    source.write_text(WORK)
    for form in ([], ["-no-pie", "-fno-pie"], ["-flto"], ["-O0"], ["-Wl,--gc-sections", "-ffunction-sections", "-fdata-sections"]):
        name = "-".join(["program", *(f.strip("-").replace(",", "") for f in form)])
        k.run([compiler, "-O2", "-c", f"-I{folder}", f"-I{SOURCE / 'include'}", f"-I{SOURCE / 'include' / 'kymo-lttng'}", *form, "-o", folder / "work.o", source])
        yield name, compile_to(k, name, MAIN, "-DLINKED", *form, folder / "work.o", "-lstdc++", "-ldl", folder=folder), "work"


def run_program(k, app, env, *lines):
    program = k.spawn(app, env=env)
    k.expect(program, "ready")
    for line in lines:
        program.stdin.write(f"{line}\n")
        program.stdin.flush()
        k.expect(program, "ok")
    program.stdin.write("quit\n")
    k.finish(program)


def not_installed(k):
    if "libkymo.so.0" in k.run(["/sbin/ldconfig", "-p"]).stdout:
        raise Skip("libkymo.so.0 is installed on this machine")


def check_dependencies(k, path):
    """It depends on no library of ours, and has no strong reference to our names."""
    dynamic = k.run(["readelf", "-dW", path]).stdout
    check("libkymo" not in dynamic and "lttng" not in dynamic, f"{path.name} depends on a library: {dynamic}")
    strong = re.findall(r"^ *U .*(?:kymo|lttng).*", k.run(["nm", "-D", "--undefined-only", path]).stdout, re.MULTILINE)
    equal(strong, [], f"names that {path.name} must find")


def events(k, env, before=(), compiler="gcc"):
    """Each form gets some lines that make it work, and records all events."""
    not_installed(k)
    k.start_daemon()
    for n, (name, app, work) in enumerate(programs(k, compiler)):
        check_dependencies(k, app)
        session = f"{'gcc' if compiler == 'gcc' else 'cc'}-{n}"
        trace = k.record("nolink*:*,*trace*:*", session=session)
        run_program(k, app, env, *(b if b != "work" else work for b in before), work)
        k.kymo("destroy", session)
        found = read_trace(trace)[0] if (trace / "ust").exists() else []
        yield name, collections.Counter(e.name for e in found)


def test_absent(k):
    for compiler in ("gcc", "g++"):
        for name, found in events(k, NOWHERE, compiler=compiler):
            equal(found, {}, f"events of {name}")
        check_dependencies(k, pathlib.Path(programs(k, compiler)[0][2]))
        k.stop_daemon()


def test_found(k):
    for compiler in ("gcc", "g++"):
        for name, found in events(k, {"LD_LIBRARY_PATH": str(LIBDIR)}, compiler=compiler):
            dumped = found.pop("nolink:dumped", 0)
            equal((found, dumped), (wanted(compiler), 1), f"events of {name}")
        k.stop_daemon()


def test_preloaded(k):
    for name, found in events(k, {**NOWHERE, "LD_PRELOAD": f"{LIBDIR}/libkymo.so.0"}):
        found.pop("nolink:dumped", 0)
        equal(found, wanted("gcc"), f"events of {name}")


def test_loaded_later(k):
    """The program has searched the library in vain, has worked, and then loads it."""
    for compiler in ("gcc", "g++"):
        for name, found in events(k, NOWHERE, before=("work", f"{LIBDIR}/libkymo.so.0"), compiler=compiler):
            dumped = found.pop("nolink:dumped", 0)
            equal((found, dumped), (wanted(compiler), 1), f"events of {name}")
        k.stop_daemon()


def test_brought_along(k):
    """
    The program loads a library that is linked with the tracer: objects that were loaded before are
    traced too, and can be unloaded.
    """
    not_installed(k)
    main = compile_to(k, "main", MAIN, "-ldl")
    first = library(k, "first", WORK)
    second = library(k, "second", '#include <kymo/tracepoint.h>\nvoid work(void);\nvoid work(void) { kymo_event(second, event); }\n',
        "-Wl,--no-as-needed", f"-L{LIBDIR}", f"-Wl,-rpath,{LIBDIR}", "-l:libkymo.so.0")
    k.start_daemon()
    trace = k.record("nolink:event,second:*")
    run_program(k, main, NOWHERE, first, second, first, second)
    k.kymo("destroy", "s")
    equal(collections.Counter(e.name for e in read_trace(trace)[0]), {"nolink:event": 1, "second:event": 2}, "events")


AUDIT = """
#include <kymo/tracepoint.h>
#include <link.h>
unsigned int la_version(unsigned int version)
{
	kymo_event(audit, version);
	return version;
}
unsigned int la_objopen(struct link_map *map, Lmid_t id, uintptr_t *cookie)
{
	kymo_event(audit, object, kymo_string(name, map->l_name));
	return 0;
}
"""


def test_audit_library(k):
    """
    The dynamic linker loads an auditing library (rtld-audit(7)) before it knows the program: both
    run as they do without events, and are recorded if the library is found.
    """
    main = compile_to(k, "main", WORK + MAIN, "-DLINKED", "-ldl")
    audit = {"LD_AUDIT": str(library(k, "audit", AUDIT))}
    run_program(k, main, {**NOWHERE, **audit}, "work")
    k.start_daemon()
    trace = k.record("audit:*,nolink:event")
    run_program(k, main, {"LD_LIBRARY_PATH": str(LIBDIR), **audit}, "work")
    k.kymo("destroy", "s")
    found = collections.Counter(e.name for e in read_trace(trace)[0])
    equal((found["audit:version"], found["audit:object"] > 2, found["nolink:event"]), (1, True, 1), "events")


def test_static(k):
    """A static program with every header runs; it cannot find a library."""
    k.start_daemon()
    for compiler in ("gcc", "g++"):
        for flag in ("-static", "-static-pie"):
            if not links(k, flag):
                raise Skip(f"gcc {flag} does not link")
            text = MAIN if compiler == "gcc" else MAIN.replace("extern void", 'extern "C" void')
            app = compile_to(k, "static", WORK + text, flag, "-DLINKED", "-DALONE", "-fno-strict-aliasing", compiler=compiler)
            strong = re.findall(r"^ *U .*", k.run(["nm", app]).stdout, re.MULTILINE)
            equal(strong, [], "undefined names of a static program")
            k.record(session="s")
            run_program(k, app, {"LD_LIBRARY_PATH": str(LIBDIR)}, "work")
            equal(k.kymo_json("destroy", "s")["sessions"][0]["recorded"], 0, "events recorded")


# ---- two objects with different definitions

CONFLICTING_PROVIDER = PROVIDER.replace("nolink_lttng", "conflict_lttng").replace("tp.h", "conflict-tp.h").replace("_integer(int,", "_integer(LTTNG_TYPE,")
CONFLICT = """
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "conflict-tp.h"
#include <kymo/span.h>
#include <kymo/state.h>
KYMO_EVENT_DEFINE(conflict, shared, LEVEL, KYMO_ARGS(TYPE value), FIELD(value, value))
#ifdef __cplusplus
template <class T> void both(T value)
{
	kymo_event(conflict, templated, kymo_i32(from, FROM), FIELD(value, (TYPE)value));
}
inline void inlined(void) { kymo_event(conflict, inlined, kymo_i32(from, FROM), FIELD(value, 1)); }
extern "C"
#endif
void work(void);
void work(void)
{
	kymo_event(conflict, same, kymo_i32(value, 1));
	kymo_event(conflict, other, kymo_i32(from, FROM), FIELD(value, 1));
	kymo_trace(conflict, shared, 1);
	kymo_state_event(conflict, state, FIELD(key, 1));
	lttng_ust_tracepoint(conflict_lttng, event, FROM);
#ifdef __cplusplus
	both(1);
	both(2L);
	inlined();
#endif
}
"""
SIDES = (["-DFROM=1", "-DLEVEL=KYMO_INFO", "-DTYPE=int32_t", "-DFIELD=kymo_i32", "-DLTTNG_TYPE=short"],
    ["-DFROM=2", "-DLEVEL=KYMO_WARNING", "-DTYPE=double", "-DFIELD=kymo_f64", "-DLTTNG_TYPE=long"])


def test_conflicts(k):
    """
    Events with one name and different fields: refused and counted, or separate events; never the
    end of a program. The second library's tracepoint of LTTng's records an event for the provider
    of each library.
    """
    k.start_daemon()
    for compiler in ("gcc", "g++"):
        main = compile_to(k, "main", MAIN, "-ldl")
        both = [library(k, f"side{n}", CONFLICT, *flags, compiler=compiler) for n, flags in enumerate(SIDES)]
        of_cplusplus = 3 if compiler == "g++" else 0
        for session, channel, recorded in (("refuse", (), 7 + of_cplusplus), ("separate", ("--event-conflict=separate",), 11 + 2 * of_cplusplus)):
            trace = k.record("conflict*:*", session=session, channel=channel)
            run_program(k, main, {"LD_LIBRARY_PATH": str(LIBDIR)}, *both)
            k.kymo("destroy", session)
            found, discarded = read_trace(trace)
            equal((len(found), discarded), (recorded, 11 + 2 * of_cplusplus - recorded), f"recorded and discarded ({session}, {compiler})")
            trace.rename(k.top / f"{session}-{compiler}")


def test_one_definition_rule(k):
    """
    Two sources of one C++ program have templates and inline functions with the same names. C++
    keeps one of each, and its event. If they differ (docs/limits.md), the records may be
    meaningless, but the program runs.
    """
    k.start_daemon()
    main = compile_to(k, "main", MAIN, "-ldl")
    both = 'extern "C" void work0(void), work1(void), work(void);\nvoid work(void) { work0(); work1(); }\n'
    for level, sides in (("-O0", (SIDES[0],) * 2), ("-O2", (SIDES[0],) * 2), ("-O0", SIDES), ("-O2", SIDES)):
        parts = [k.top / "part0.o", k.top / "part1.o"]
        for n, part in enumerate(parts):
            source = k.top / f"part{n}.cpp"
            # a library defines a provider only once
            text = CONFLICT if n == 0 else re.sub("#define LTTNG.*", "", CONFLICT)
            source.write_text(text.replace("work", f"work{n}"))
            k.run(["g++", level, "-c", "-fPIC", f"-I{k.top}", f"-I{SOURCE / 'include'}", f"-I{SOURCE / 'include' / 'kymo-lttng'}",
                *sides[n], "-o", part, source])
        app = library(k, "both", both, *parts, compiler="g++")
        trace = k.record("conflict:*", channel=("--event-conflict=separate",))
        run_program(k, main, {"LD_LIBRARY_PATH": str(LIBDIR)}, app)
        k.kymo("destroy", "s")
        if sides[0] == sides[1]:
            names = collections.Counter(e.name for e in read_trace(trace)[0])
            equal((names["conflict:templated"], names["conflict:inlined"], names["conflict:other"]), (4, 2, 2), f"events at {level}")
        shutil.rmtree(trace)


kymotest.main()
