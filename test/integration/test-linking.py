#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that are linked in other ways than ours: statically, or without what seems to be unused."""

import collections
import pathlib

import kymotest
from emitcheck import run_exact
from kymotest import LIBDIR, SOURCE, Skip, check_counts, equal, without_sanitizers


FOUND = {"LD_LIBRARY_PATH": str(LIBDIR)}
EMIT = SOURCE / "test" / "integration" / "apps" / "emit.c"
CPLUSPLUS = """
#include <kymo/tracepoint.h>
KYMO_EVENT_DEFINE(linked, in_header, KYMO_INFO, KYMO_ARGS(int a), kymo_i32(a, a))
template <class T> void in_template(T value) { kymo_event(linked, in_template, kymo_f64(value, value)); }
int main()
{
	in_template(1);
	in_template(1.5);
	kymo_event(linked, in_main);
	kymo_trace(linked, in_header, 3);
}
"""


def build(k, source, *flags, compiler="gcc"):
    """Compiles a program; skips where the compiler cannot link with such flags."""
    app = pathlib.Path(k.top, "app")
    empty = k.run([compiler, *flags, "-xc", "-", "-o", app], status=None, input="int main(void) { return 0; }\n")
    if empty.returncode:
        raise Skip(f"{compiler} {' '.join(flags)} does not link")
    k.run([compiler, "-O2", f"-I{SOURCE / 'include'}", "-D_GNU_SOURCE", "-pthread", *flags, "-o", app, source])
    return app


def static(k, flag):
    """A static program has a C library of its own and cannot take libkymo: it runs, and records nothing."""
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


# The linker drops each section that nothing refers to; what lists the events is to stay.
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


kymotest.main()
