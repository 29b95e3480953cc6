#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
No test is forgotten: the meson.build beside each test-NAME file, or the next one above, names it;
and no function of a test in Python hides an earlier one of the same name.
Python files of the tests use all that they import.
"""

import ast
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
NOT_TESTS = {"src/ring/test-fixture.c"}  # other tests of its folder include it


def is_listed(path):
    build = next(p / "meson.build" for p in path.parents if (p / "meson.build").exists())
    name, folder = re.escape(path.stem.removeprefix("test-")), re.escape(str(path.parent.relative_to(build.parent)) + "/")
    folder = "" if folder == re.escape("./") else folder
    return re.search(rf"'{folder}(test-)?{name}({re.escape(path.suffix)})?'", build.read_text())


def hidden(path):
    """Names of functions that the file defines more than once."""
    names = re.findall(r"^def (\w+)\(", path.read_text(), re.M) if path.suffix == ".py" else []
    return sorted({name for name in names if names.count(name) > 1})


def unused(text):
    """Yields the names that a Python program imports and does not use."""
    words = collections.Counter(re.findall(r"\w+", text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [(name.asname or name.name).partition(".")[0] for name in node.names]
            yield from (name for name in names if words[name] == 1)


assert list(unused("import os\nfrom re import match, sub as put\nput()\n")) == ["os", "match"]
found = [p for top in ("src", "test") for p in (ROOT / top).rglob("test-*") if p.suffix in (".c", ".cpp", ".py")]
forgotten = [p for p in found if str(p.relative_to(ROOT)) not in NOT_TESTS and not is_listed(p)]
for path in forgotten:
    print(f"{path.relative_to(ROOT)} is not in the meson.build beside it", file=sys.stderr)
doubles = [(path, name) for path in found for name in hidden(path)]
for path, name in doubles:
    print(f"{path.relative_to(ROOT)} defines {name} more than once: only the last one runs", file=sys.stderr)
surplus = [(path, name) for path in sorted((ROOT / "test").rglob("*.py")) for name in unused(path.read_text())]
for path, name in surplus:
    print(f"{path.relative_to(ROOT)} does not use {name}, which it imports", file=sys.stderr)
print(f"{len(found)} tests, {len(forgotten)} of them forgotten, {len(doubles)} functions hidden, {len(surplus)} imports unused")
sys.exit(1 if forgotten or doubles or surplus or not found else 0)
