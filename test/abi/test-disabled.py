#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Checks the cost of a tracepoint that no session records: a load, a comparison and a branch that is
not taken. The test compiles a function with a tracepoint between two calls. It compares the
straight path from call to call with that of the same function without a tracepoint. (The test does
not look at the function's prologue, which may save more registers and make a larger frame.)

    test-disabled.py INCLUDE-DIRECTORY COMPILER...
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = """
#include <kymo/tracepoint.h>
void before(uint64_t a), after(uint64_t a, const char *s);
void plain(uint64_t a, const char *s);
void traced(uint64_t a, const char *s);
void plain(uint64_t a, const char *s)
{
	before(a);
	after(a, s);
}
void traced(uint64_t a, const char *s)
{
	before(a);
	%s
	after(a, s);
}
"""
EVENT = "kymo_event(shop, order, kymo_u64(id, a * a), kymo_string(customer, s), kymo_f64(total, a * 0.5));"
VARIANTS = {
    "kymo_event": EVENT,
    "kymo_event_level": "kymo_event_level(shop, order, KYMO_INFO, kymo_u64(id, a), kymo_blob(data, s, a));",
    "kymo_event_enabled": "if (kymo_event_enabled(shop, order)) after(a + 1, s);",
    "kymo_tracef": 'kymo_tracef("order %s", s);',
}
SLOW = "__atomic_fetch_add((int *)s, 1, __ATOMIC_SEQ_CST);"
INSTRUCTION = re.compile(r"^\s*[0-9a-f]+:\s+(\S+)\s*([^#<\n]*)")


def straight_path(text, function):
    """
    Returns the instructions from the call of before() to that of after() when no jump is taken.
    """
    body = text.split(f"<{function}>:\n", 1)[1].split("\n\n", 1)[0]
    path, calls = [], 0
    for line in body.splitlines():
        match = INSTRUCTION.match(line)
        if not match or match[1].startswith(("nop", "endbr", "data16")):
            continue
        calls += match[1] == "call"
        if calls == 2:
            return path[1:]
        if calls == 1:
            path.append(f"{match[1]} {match[2].strip()}")
    raise ValueError(f"no straight path through {function}:\n{body}")


def check(text):
    """Returns None, or the reason why the disabled tracepoint costs too much."""
    plain, traced = (straight_path(text, f) for f in ("plain", "traced"))
    loads = [i for i in traced if "(%rip)" in i]
    branches = [i for i in traced if i.startswith("j")]
    if len(loads) != 1 or len(branches) != 1 or len(traced) > len(plain) + 3 or any("lock" in i for i in traced):
        return f"{traced} against {plain}"
    return None


def disassemble(compiler, include, statement):
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory, "a.c")
        source.write_text(SOURCE % statement)
        output = source.with_suffix(".o")
        subprocess.run([compiler, "-O2", "-fno-optimize-sibling-calls", "-c", f"-I{include}", "-o", output, source], check=True)
        return subprocess.run(["objdump", "-d", "--no-show-raw-insn", output], check=True, capture_output=True,
            text=True).stdout


def main():
    include, compilers = sys.argv[1], [c for c in sys.argv[2:] if shutil.which(c)]
    if not compilers:
        sys.exit("FAIL: no compiler")
    failed = 0
    for compiler in compilers:
        if not check(disassemble(compiler, include, SLOW + EVENT)):
            sys.exit(f"FAIL {compiler}: an atomic operation in front was not noticed: this test tests nothing")
        for name, statement in VARIANTS.items():
            problem = check(disassemble(compiler, include, statement))
            print(f"{'FAIL' if problem else 'ok'} {compiler}: {name} {problem or ''}")
            failed += bool(problem)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
