#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Programs written for LTTng-UST, compiled with Kymo's headers in several languages: the traces must
be those that LTTng makes.
"""

import difflib
import os
import pathlib
import re
import shutil
import sys

import compat

sys.path.insert(0, str(compat.HERE.parent / "integration"))
import kymotest  # noqa: E402
from kymotest import SOURCE, Failure, Skip, check, equal  # noqa: E402

INCLUDE = [f"-I{SOURCE / 'include'}", f"-I{SOURCE / 'include' / 'kymo-lttng'}"]
COMPILERS = {
    "gnu89": ["gcc", "-std=gnu99"],  # the programs; their providers: -std=gnu89
    "gnu99": ["gcc", "-std=gnu99"],
    "c11_pedantic": ["gcc", "-std=c11", "-pedantic"],
    "clang": ["clang", "-std=gnu11"],
    "cplusplus11": ["g++", "-xc++", "-std=c++11"],
    "cplusplus20": ["g++", "-xc++", "-std=c++20"],
    "clang_cplusplus17": ["clang++", "-xc++", "-std=c++17"],
    "not_optimised": ["gcc", "-std=gnu11", "-O0", "-fPIC"],
}


def record(k, case, command, preload):
    trace = k.top / "trace"
    rule = ["-e", case.rule, *(["-f", case.filter] if case.filter else [])]
    # only for the program: a command line that is built with sanitizers does not start if other
    # libraries are loaded before these
    wrap = ["env", f"LD_PRELOAD={preload}"] if preload else []
    k.kymo("record", "--no-summary", "-t", "none", "-o", trace, *rule, "--", *wrap, *command)
    return compat.text_of(trace)


def run(k, case, compiler, *libs):
    out = pathlib.Path(k.top, "build")
    out.mkdir()
    flags = " ".join(INCLUDE)
    probes = ["gcc", "-std=gnu89"] if compiler is COMPILERS["gnu89"] else compiler
    tools = compat.Tools(compiler, probes, INCLUDE, libs, str(SOURCE / "scripts" / "kymo-gen-tp"), {**os.environ, "CPPFLAGS": flags}, out)
    command, preload = case.build(tools, case)
    text = record(k, case, command, preload)
    wanted = (compat.HERE / "expected" / f"{case.name}.txt").read_text()
    if text != wanted:
        raise Failure("".join(difflib.unified_diff(wanted.splitlines(True), text.splitlines(True), "LTTng", "Kymo", n=0)))
    shutil.rmtree(out)
    shutil.rmtree(k.top / "trace", ignore_errors=True)


def add_tests():
    """
    Adds one test for each case in C. The cases with all fields, and those with all ways of linking,
    also get tests in other languages: without sanitizers, because the compiled programs and
    libraries have none, and the daemons get the same descriptions and events.
    """
    for case in compat.CASES:
        everywhere = case.name in ("version0", "version1", "messages", "variety", "extended", "ended") or case.cplusplus or case.build in (compat.shared, compat.plugin)
        for name, compiler in COMPILERS.items():
            if (everywhere or name == "gnu99") and (not case.cplusplus or "cplusplus" in name):
                function = lambda k, case=case, compiler=compiler: run(k, case, compiler)  # noqa: E731
                if name != ("cplusplus11" if case.cplusplus else "gnu99"):
                    kymotest.without_sanitizers(function)
                globals()[f"test_{case.name}_{case.build.__name__}_{name}"] = function


def test_the_comparison_can_fail(k):
    case = next(c for c in compat.CASES if c.name == "generated")
    wrong = compat.Case("messages", case.source, case.build, case.rule)
    try:
        run(k, wrong, COMPILERS["gnu99"])
    except Failure:
        return
    check(False, "another case's trace passed")


add_tests()


@kymotest.without_sanitizers  # the same events as without the macros
def test_macros_of_the_program(k):
    """Words of the implementation are macros of the program's, as a parser has them."""
    words = "ONE MORE REC ASIDE INTEGER FLOAT ENUM STRING ARRAY SEQUENCE TEXT TEXT_SEQUENCE BYTES SCALAR PROTO TYPE VALUE DESC ROOM PUT"
    for case in compat.CASES:
        if case.build is compat.together and case.name in ("version0", "version1", "variety") or case.name == "messages":
            types = " i32 u32" if case.name == "messages" else ""  # the others have fields of these names
            run(k, case, ["gcc", "-std=gnu99", *(f"-D{w}=7" for w in (words + types).split())])


@kymotest.without_sanitizers  # it uses nothing of the build
def test_linkage_of_c(k):
    """A C++ program may include its providers in extern "C"."""
    for compiler in ("g++", "clang++"):
        for name in ("version0", "version1", "parts", "extended"):
            k.run([compiler, "-xc++", "-std=c++11", "-fsyntax-only", f"-I{compat.PROGRAMS}", *INCLUDE, "-"],
                input=f'extern "C" {{\n#include "{name}-tp.c"\n}}\n')



def linked(k, *flags):
    """Libraries with providers, with log levels and without, are linked by another linker."""
    if k.run(["gcc", *flags, "-xc", "-", "-o", os.devnull], input="int main(void) { return 0; }\n", status=None).returncode:
        raise Skip(f"gcc {' '.join(flags)} does not link")
    for case in compat.CASES:
        if case.build in (compat.shared, compat.plugin, compat.versions) or case.name == "version1":
            run(k, case, COMPILERS["gnu99"], *flags)


@kymotest.without_sanitizers  # the same events as with the usual linker
def test_gold(k):
    linked(k, "-fuse-ld=gold")


@kymotest.without_sanitizers  # the same events as with the usual linker
def test_gold_folds(k):
    linked(k, "-fuse-ld=gold", "-Wl,--icf=all", "-Wl,--gc-sections")


@kymotest.without_sanitizers  # the same events as with the usual linker
def test_lld(k):
    linked(k, "-fuse-ld=lld", "-Wl,--icf=all", "-Wl,--gc-sections")


@kymotest.without_sanitizers  # it uses nothing of the build
def test_probes_of_systemtap(k):
    """LTTNG_UST_HAVE_SDT_INTEGRATION: each tracepoint has a probe with its arguments."""
    if k.run(["gcc", "-E", "-"], input="#include <sys/sdt.h>", status=None).returncode:
        raise Skip("sys/sdt.h is missing (Debian package systemtap-sdt-dev)")
    for compiler, source in (("gcc", "variety.c"), ("g++", "variety.c")):
        program = k.top / "probes.o"
        k.run([compiler, "-x", "c++" if compiler == "g++" else "c", "-O2", "-DLTTNG_UST_HAVE_SDT_INTEGRATION", f"-I{compat.PROGRAMS}",
            *INCLUDE, "-c", "-o", program, compat.PROGRAMS / source])
        notes = k.run(["readelf", "-n", "--wide", program]).stdout
        found = re.findall(r"Provider: (\w+)\s+Name: (\w+)\s.*?Arguments: ?([^\n]*)", notes, re.S)
        names = {name: len(arguments.split()) for provider, name, arguments in found if provider == "variety"}
        equal({n: names.get(n) for n in ("early", "packet", "no_arguments", "nothing")}, {"early": 2, "packet": 1, "no_arguments": 0, "nothing": 0},
            f"arguments of probes ({compiler})")


if __name__ == "__main__":
    kymotest.main()
