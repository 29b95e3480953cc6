#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Programs that are linked in unusual ways: statically, or without sections that seem to be unused.
"""

import collections
import pathlib
import re

import kymotest
from emitcheck import run_exact
from kymotest import APPS, BUILD, LIBDIR, SOURCE, Skip, check, check_counts, equal, fields, without_sanitizers


FOUND = {"LD_LIBRARY_PATH": str(LIBDIR)}
APPS_SOURCE = SOURCE / "test" / "integration" / "apps"
EMIT = APPS_SOURCE / "emit.c"
CPLUSPLUS = """
#include <kymo/tracepoint.h>
KYMO_EVENT_DEFINE(linked, in_header, KYMO_INFO, KYMO_ARGS(int a), kymo_i32(a, a))
template <class T> void in_template(T value)
{
	kymo_event(linked, in_template, kymo_f64(value, value));
}
int main()
{
	in_template(1);
	in_template(1.5);
	kymo_event(linked, in_main);
	kymo_trace(linked, in_header, 3);
}
"""


def build(k, source, *flags, compiler="gcc", archive=False):
    """Compiles a program; skips the test if the compiler cannot link with these flags."""
    app = pathlib.Path(k.top, "app")
    empty = k.run([compiler, *flags, "-xc", "-", "-o", app], status=None, input="int main(void) { return 0; }\n")
    if empty.returncode:
        raise Skip(f"{compiler} {' '.join(flags)} does not link")
    k.run([compiler, "-O2", f"-I{SOURCE / 'include'}", "-D_GNU_SOURCE", "-pthread", *flags, "-o", app, source, *(ARCHIVE if archive else [])])
    return app


def static(k, flag):
    """
    A static program has its own C library and cannot load libkymo: it runs, and records nothing.
    """
    app = build(k, EMIT, flag)
    k.start_daemon()
    k.record()
    done = k.run([app, "-n", 10], env=FOUND)
    equal(done.stderr, "", "messages of the program")
    equal(k.kymo_json("stop", "s")["sessions"][0]["recorded"], 0, "events recorded")


@without_sanitizers
def test_static(k):
    static(k, "-static")


@without_sanitizers
def test_static_pie(k):
    static(k, "-static-pie")


# The flags of pkg-config --static, for a build directory.
PC = (BUILD / "meson-private" / "kymo.pc").read_text()
ARCHIVE = re.search("(?m)^Libs.private: (.*)", PC)[1].replace("${libdir}", str(BUILD / "src" / "tracer")).split()


@without_sanitizers
def test_static_with_library(k):
    """
    A static program that contains the library is traced as any other, in rings of either kind.
    """
    app = build(k, EMIT, "-static", archive=True)
    run_exact(k, [["-n", 2000, "-t", 4, "-s", 100]] * 2, app=app)


@without_sanitizers
def test_static_pie_with_library(k):
    app = build(k, EMIT, "-static-pie", archive=True)
    run_exact(k, [["-n", 2000, "-t", 4]], app=app, env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})


TWICE = """
#include <dlfcn.h>
#include <kymo/tracepoint.h>
int main(int argc, char **argv)
{
	void *library = dlopen(argv[argc - 1], RTLD_NOW);
	void (*provide)(int, int);

	*(void **)&provide = library ? dlsym(library, "provide") : NULL;
	if (!provide)
		return 1;
	for (int i = 0; i < 100; i++) {
		kymo_event(twice, event, kymo_i32(i, i));
		provide(0, i);
	}
	return 0;
}
"""


@without_sanitizers
def test_library_twice(k):
    """
    A program that contains a copy of the library loads an object that finds another one: both
    record.
    """
    source = pathlib.Path(k.top, "twice.c")
    source.write_text(TWICE)
    app = build(k, source, archive=True)
    k.start_daemon()
    trace = k.record()
    k.run([app, APPS / "loads-provider.so"], env=FOUND)
    k.kymo("stop", "s")
    names = collections.Counter(e.name for e in check_counts(k, trace, 301))
    equal(names, {"twice:event": 100, "loads:constructed": 1, "loads:always": 100, "loads:sometimes": 100}, "events by name")


UNLOADS = """
#include <dlfcn.h>
int main(int argc, char **argv)
{
	for (int i = 0; i < 100; i++) {
		void *plugin = dlopen(argv[argc - 1], RTLD_NOW);
		void (*provide)(int, int);

		*(void **)&provide = plugin ? dlsym(plugin, "provide") : 0;
		if (!provide)
			return 1;
		provide(0, i);
		dlclose(plugin);
	}
	return 0;
}
"""


@without_sanitizers
def test_plugin_with_library(k):
    """A program unloads a plug-in that contains a copy of the library, whose thread runs."""
    plugin = build(k, APPS_SOURCE / "loads-provider.c", "-shared", "-fPIC", archive=True).rename(k.top / "plugin.so")
    source = pathlib.Path(k.top, "unloads.c")
    source.write_text(UNLOADS)
    app = build(k, source)
    k.run([app, plugin])  # without a daemon
    k.start_daemon()
    trace = k.record()
    k.run([app, plugin])
    k.kymo("stop", "s")
    names = collections.Counter(e.name for e in check_counts(k, trace, 201))
    equal(names, {"loads:constructed": 1, "loads:always": 100, "loads:sometimes": 100}, "events by name")


# The linker drops each section that nothing refers to; the list of the events must stay.
COLLECT = ["-fuse-ld=lld", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]


@without_sanitizers
def test_collected(k):
    run_exact(k, [["-n", 100]], app=build(k, EMIT, *COLLECT), env=FOUND)


@without_sanitizers
def test_collected_cplusplus(k):
    source = pathlib.Path(k.top, "linked.cpp")
    source.write_text(CPLUSPLUS)
    app = build(k, source, *COLLECT, compiler="g++")
    k.start_daemon()
    trace = k.record()
    k.run([app], env=FOUND)
    k.kymo("stop", "s")
    names = collections.Counter(e.name for e in check_counts(k, trace, 4))
    equal(names, {"linked:in_template": 2, "linked:in_main": 1, "linked:in_header": 1}, "events by name")


OBJECTS = """
#include <kymo/span.h>
#include <kymo/state.h>
struct object {
	object()
	{
		kymo_span(linked, constructor);
		kymo_state_event(linked, state, kymo_u8(key, 1));
	}
	~object() { kymo_event(linked, destroyed); }
};
static object here;
int main() {}
"""


@without_sanitizers
def test_static_objects(k):
    """
    Constructors and destructors of static objects have their events, in all ways of linking. With
    control flow integrity (cfi), too: the tracer's functions are called by pointers.
    """
    source = pathlib.Path(k.top, "objects.cpp")
    source.write_text(OBJECTS)
    k.start_daemon()
    clang = ["clang++", "-flto", "-fuse-ld=lld"]
    for number, (compiler, *flags) in enumerate((["g++"], ["g++", "-flto"], clang, [*clang, "-fsanitize=cfi", "-fvisibility=hidden"])):
        app = build(k, source, *flags, compiler=compiler)
        trace = k.record("linked:*", session=f"s{number}")
        k.run([app], env=FOUND)
        k.kymo("stop", f"s{number}")
        events = check_counts(k, trace, 4)
        equal([e.name for e in events], [f"linked:{n}" for n in ("constructor_begin", "state", "constructor_end", "destroyed")], f"events of {compiler} {flags}")
        check(fields(events[0])["span_tid"] != 0, "the span has no thread")


kymotest.main()
