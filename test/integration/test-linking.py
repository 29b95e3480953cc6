#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that are linked in other ways than ours: statically, or without what seems to be unused."""

import pathlib

import kymotest
from kymotest import LIBDIR, SOURCE, Skip, equal, without_sanitizers


def build(k, *flags, compiler="gcc"):
    """Compiles emit.c; skips where the compiler cannot do so with such flags."""
    app = pathlib.Path(k.top, "emit")
    source = SOURCE / "test" / "integration" / "apps" / "emit.c"
    empty = k.run([compiler, *flags, "-xc", "-", "-o", app], status=None, input="int main(void) { return 0; }\n")
    if empty.returncode:
        raise Skip(f"{compiler} {' '.join(flags)} does not link")
    k.run([compiler, "-O2", f"-I{SOURCE / 'include'}", "-D_GNU_SOURCE", "-o", app, source, *flags, "-pthread"])
    return app


def static(k, flag):
    """A static program has a C library of its own and cannot take libkymo: it runs, and records nothing."""
    app = build(k, flag)
    k.start_daemon()
    k.record()
    done = k.run([app, "-n", 10], env={"LD_LIBRARY_PATH": str(LIBDIR)})
    equal(done.stderr, "", "messages of the program")
    equal(k.kymo_json("stop", "s")["sessions"][0]["recorded"], 0, "events recorded")


@without_sanitizers
def test_static(k):
    static(k, "-static")


@without_sanitizers
def test_static_pie(k):
    static(k, "-static-pie")


kymotest.main()
