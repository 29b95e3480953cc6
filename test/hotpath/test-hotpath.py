#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Keeps the path of an event short. The test counts instructions, which are the same on any machine at
any time:

* the instructions that one turn of hotpath.c's loop executes (callgrind; ring of a thread), with an
  event, with one that has a text, and with a disabled one;
* the instructions on the straight path through the restartable sequence (objdump), with no
  conditional jump taken.

If you make the path longer on purpose, raise the figure here, and give the reason in the commit.

    test-hotpath.py HOTPATH-PROGRAM COMPILER-AND-VERSION OPTIMIZATION LIBKYMO
"""

import re
import shutil
import subprocess
import sys
import tempfile

# Instructions with gcc 12, -O2; a count may exceed its figure by this much.
RECORD, TEXT, DISABLED = 347, 335, 11
# On the straight path: each function of ring/rseq-x86_64.S; conditional jumps not taken.
SEQUENCES = {"ky_rseq_word_known": 37, "ky_rseq_word": 39, "ky_rseq_flat_known": 46, "ky_rseq_word_special_known": 44,
    "ky_rseq_flat_special_known": 54}
# An event that a filter with one comparison rejects: functions of libkymo, jumps as above.
REJECTIONS = {"filtered_word": 25, "filtered_flat": 28}
TOLERANCE = 1.1

FEW, MANY = 1000, 3000
COLLECTED = re.compile(r"Collected : (\d+)")
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*([^#<\n]*)")
EXPENSIVE = re.compile(r"lock|.?fence|call|syscall|xchg|cpuid|rdtscp")


class Skip(Exception):
    pass


def executed(program, mode, n):
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/out", program, mode, str(n)],
            capture_output=True, text=True, timeout=120)
    match = COLLECTED.search(done.stderr)
    if done.returncode or not match:
        raise AssertionError(f"hotpath {mode} {n} ended with {done.returncode}: {done.stderr[-500:]}")
    return int(match[1])


def per_turn(program, mode):
    """Returns the instructions of one turn, without those that are executed only once."""
    return (executed(program, mode, MANY) - executed(program, mode, FEW)) / (MANY - FEW)


def bounded(what, count, figure):
    assert count <= figure * TOLERANCE, f"{what}: {count:g} instructions, allowed are {figure} and a tenth more"
    return f"{count:g} instructions"


def need_known_compiler(compiler, optimization):
    if not shutil.which("valgrind"):
        raise Skip("valgrind is missing (Debian package valgrind)")
    if not compiler.startswith("gcc-12.") or optimization != "2":
        raise Skip(f"the figures are those of gcc 12 with -O2, not of {compiler} with -O{optimization}")


def test_record(program, compiler, optimization):
    need_known_compiler(compiler, optimization)
    twice = per_turn(program, "twice")
    assert twice > RECORD * TOLERANCE, f"two events in a turn were not noticed ({twice:g}): this test tests nothing"
    return bounded("a turn with an event", per_turn(program, "record"), RECORD)


def test_text(program, compiler, optimization):
    need_known_compiler(compiler, optimization)
    return bounded("a turn with two integers and a constant text", per_turn(program, "text"), TEXT)


def test_disabled(program, compiler, optimization):
    need_known_compiler(compiler, optimization)
    return bounded("a turn with a disabled event", per_turn(program, "disabled"), DISABLED)


def straight_path(program, function):
    """
    Returns the instructions from the function's entry to its return: jumps are followed,
    conditional ones are not taken.
    """
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True).stdout
    body = text.split(f"<{function}>:\n", 1)[1].split("\n\n", 1)[0]
    code = [LINE.match(line) for line in body.splitlines()]
    code = [(int(m[1], 16), m[2], m[3].strip()) for m in code if m]
    at = {address: number for number, (address, _, _) in enumerate(code)}
    path, number = [], 0
    while len(path) <= len(code):
        _, operation, operand = code[number]
        path.append(f"{operation} {operand}")
        if operation.startswith("ret"):
            return path
        number = at[int(operand.split()[0], 16)] if operation == "jmp" else number + 1
    raise AssertionError(f"the straight path through {function} does not end")


def test_sequences(program, *_):
    said = []
    for function, figure in SEQUENCES.items():
        path = straight_path(program, function)
        expensive = [i for i in path if EXPENSIVE.match(i)]
        assert not expensive, f"{function}: on the straight path: {expensive}"
        assert sum(i.startswith("rdtsc") for i in path) == 1, f"{function}: the clock is not read once: {path}"
        said.append(f"{function}: {bounded(function, len(path), figure)}")
    return ", ".join(said)


def test_rejected(program, compiler, optimization):
    need_known_compiler(compiler, optimization)
    said = []
    for function, figure in REJECTIONS.items():
        path = straight_path(sys.argv[4], function)
        expensive = [i for i in path if EXPENSIVE.match(i)]
        assert not expensive, f"{function}: on the straight path: {expensive}"
        said.append(f"{function}: {bounded(function, len(path), figure)}")
    return ", ".join(said)


def main():
    tests = [test_sequences, test_rejected, test_record, test_text, test_disabled]
    failed = 0
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        name = test.__name__.partition("_")[2]
        try:
            print(f"ok {number} - {name} ({test(*sys.argv[1:4])})")
        except Skip as e:
            print(f"ok {number} - {name} # SKIP: {e}")
        except (AssertionError, subprocess.SubprocessError) as e:
            failed += 1
            print(f"not ok {number} - {name}\n# {e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
