#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Checks the names that one of our shared libraries adds to a process: they begin with kymo_, or are
functions that it interposes. Also checks that the library calls no function that could end the
process.

    test-symbols.py LIBRARY [INTERPOSED-NAME...]
"""

import pathlib
import subprocess
import sys
import tempfile

FATAL = {"abort", "__assert_fail", "__assert", "exit", "_exit", "_Exit", "quick_exit", "raise", "err", "errx"}
LINKER_MADE = {"_init", "_fini", "_edata", "_end", "__bss_start"}


def names(library, which):
    text = subprocess.run(["nm", "-D", which, str(library)], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return {row[-1].partition("@")[0] for row in rows if row[-2] != "A"}


def problems(library, interposed):
    for name in sorted(names(library, "--defined-only") - LINKER_MADE):
        if not name.startswith("kymo_") and name not in interposed:
            yield f"exports {name}"
    for name in sorted(names(library, "--undefined-only") & FATAL):
        yield f"calls {name}"
    for name in sorted(interposed - names(library, "--defined-only")):
        yield f"does not export {name}"


def check_the_check():
    """Builds a library with one fault of each kind: the check must find them."""
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory, "bad.c")
        library = pathlib.Path(directory, "bad.so")
        source.write_text("#include <stdlib.h>\nvoid helper(void) { abort(); }\nvoid kymo_fine(void) {}\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
        found = list(problems(library, {"malloc"}))
    if found != ["exports helper", "calls abort", "does not export malloc"]:
        sys.exit(f"FAIL: planted faults gave {found}")


def main():
    check_the_check()
    library = sys.argv[1]
    found = list(problems(library, set(sys.argv[2:])))
    for problem in found:
        print(f"FAIL {pathlib.Path(library).name} {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
