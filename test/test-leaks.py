#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test-leaks.py PROGRAM: the leak detector of a sanitized build finds lost memory, and no other."""

import subprocess
import sys


def main():
    print("1..2")
    for number, (name, args, is_lost) in enumerate((("kept memory", [], False), ("lost memory", ["lose"], True)), 1):
        done = subprocess.run([sys.argv[1], *args], stderr=subprocess.PIPE, text=True)
        found = done.returncode != 0 and "100 byte(s) leaked in 1 allocation(s)" in done.stderr
        right = found if is_lost else done.returncode == 0 and not done.stderr
        print(f"{'ok' if right else 'not ok'} {number} - {name}")
        if not right:
            print(*(f"# {line}" for line in done.stderr.splitlines()), sep="\n")


if __name__ == "__main__":
    main()
