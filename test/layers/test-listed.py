#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No test is forgotten: the meson.build beside each test-NAME file names it."""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
NOT_TESTS = {"src/ring/test-fixture.c"}  # other tests of its folder include it


def is_listed(path):
    name = re.escape(path.stem.removeprefix("test-"))
    return re.search(rf"'(test-)?{name}({re.escape(path.suffix)})?'", (path.parent / "meson.build").read_text())


found = [p for top in ("src", "test") for p in (ROOT / top).rglob("test-*") if p.suffix in (".c", ".cpp", ".py")]
forgotten = [p for p in found if str(p.relative_to(ROOT)) not in NOT_TESTS and not is_listed(p)]
for path in forgotten:
    print(f"{path.relative_to(ROOT)} is not in the meson.build beside it", file=sys.stderr)
print(f"{len(found)} tests, {len(forgotten)} of them forgotten")
sys.exit(1 if forgotten or not found else 0)
