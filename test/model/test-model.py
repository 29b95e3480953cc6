#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
test-model.py FILE.pml: tries all interleavings of a model with spin. The model must hold. With each
of the mistakes that its head comment lists under "Must fail", enabled by -D, it must not hold.

KYMO_TEST_MODEL: additional options of spin for the first run, for example -DSWITCHES=3: a larger
model, which takes more time and memory.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MISTAKE = re.compile(r"^ \* (?:Must fail: |           )([A-Z_]{4,}) ", re.MULTILINE)
ERRORS = re.compile(r"errors: (\d+)")
CCACHE = ["ccache"] if shutil.which("ccache") else []
STATES = re.compile(r"(\d+) states, stored")


def explore(model, options, optimise):
    """
    Returns the verifier's output, or the reason why there is none. Processes that were killed never
    end: this is no deadlock.
    """
    with tempfile.TemporaryDirectory(prefix="kymo-model-") as directory:
        for command in (["spin", *options, "-a", str(model)], [*CCACHE, "cc", optimise, "-w", "-DSAFETY", "-DCOLLAPSE", "-c", "pan.c"],
                        ["cc", "-o", "pan", "pan.o"], ["./pan", "-E", "-m100000", "-w24"]):
            done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode:
                return f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def found(said):
    """Returns true if the verifier found an error; None when it did not complete."""
    match = ERRORS.search(said)
    complete = match and "max search depth too small" not in said and "out of memory" not in said
    return int(match[1]) > 0 if complete else None


def main():
    model = pathlib.Path(sys.argv[1]).resolve()
    mistakes = MISTAKE.findall(model.read_text())
    if not mistakes:
        sys.exit(f"{model}: lists no mistake that it finds")
    if not shutil.which("spin"):
        sys.exit("spin is missing: scripts/deps --test installs it")
    print(f"1..{1 + len(mistakes)}")
    failed = False
    for number, mistake in enumerate([None, *mistakes], 1):
        options = [f"-D{mistake}"] if mistake else os.environ.get("KYMO_TEST_MODEL", "").split()
        # Most mistakes are found so early that compiling takes longer than the search.
        said = explore(model, options, "-O0" if mistake else "-O2")
        good = found(said) is bool(mistake)
        states = STATES.search(said)
        what = f"fails with {mistake}" if mistake else "holds"
        print(f"{'' if good else 'not '}ok {number} - {model.stem} {what}", flush=True)
        print(f"# {states[1] if states else 'unknown number of'} states")
        if not good:
            print(said)
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
