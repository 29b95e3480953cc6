#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tree's language is plain (scripts/check-language), and the check would see it if it were not."""

import pathlib
import subprocess
import sys
import tempfile

CHECK, ROOT = sys.argv[1:3]
CLEAN = {"docs/page.md": "The daemon reports the event.\n", "src/a.c": "/* Returns 0. */\nint a;\n"}
IDENTITY = ["-c", "user.name=x", "-c", "user.email=x@example.org"]


def run(*args):
    return subprocess.run([CHECK, *args], capture_output=True, text=True)


def plant(root, files):
    for name, text in {**CLEAN, **files}.items():
        path = pathlib.Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def planted(files):
    with tempfile.TemporaryDirectory() as root:
        plant(root, files)
        return run(root)


def commits(*subjects):
    """A tree whose first commit introduces the check, and others with these subjects."""
    with tempfile.TemporaryDirectory() as root:
        plant(root, {"scripts/check-language": "#!/bin/sh\n"})
        git = ["git", *IDENTITY, "-C", root]
        subprocess.run([*git, "init", "-q"], check=True)
        for subject in ("check: " + "x" * 100, *subjects):
            subprocess.run([*git, "add", "-A"], check=True)
            subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", subject], check=True)
        return run(root)


def expect(what, done, text=""):
    """text: what it must say; none: it must pass."""
    if bool(done.returncode) != bool(text) or text not in done.stderr:
        sys.exit(f"FAIL {what}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"ok {what}")


WIDE = "x " * 60
expect("plain text", planted({}))
expect("coined word in a document", planted({"docs/b.md": "The peer is gone.\n"}), "docs/b.md:1: coined word 'gone'")
expect("coined word in a comment", planted({"src/b.c": "int a;\n/*\n * Tells the daemon.\n */\n"}), "src/b.c:3: coined word 'Tells'")
expect("coined word in a script", planted({"test/b.py": "#!x\n# told\n"}), "test/b.py:2: coined word 'told'")
expect("coined word in a message", planted({"src/b.c": 'int a; f("nobody told");\n'}), "src/b.c:1: coined word 'told'")
expect("a name in code", planted({"src/b.c": "int tell(void);\n", "docs/b.md": "```\ntell()\n```\n"}))
expect("clause as subject", planted({"docs/b.md": "It works. Who asks gets one.\n"}), "begins with 'Who'")
expect("clause in a comment", planted({"src/b.h": "/* What is left is freed. */\n"}), "begins with 'What'")
expect("a name that is missing", planted({"src/b.c": "int b;\n/* Pairs with ky_take(). */\nint a;\n"}), "src/b.c:2: a comment names ky_take")
expect("a name of an access that is missing", planted({"src/b.c": "/* Acquire: pairs with the release in set_it. */\n"}), "src/b.c:1: a comment names set_it")
expect("a name that is there", planted({"src/b.c": "/* ky_take() pairs with give_it. */\nint ky_take(void), give_it;\n"}))
expect("a clause alone", planted({"src/b.h": "int n; /* that were lost */\n"}), "src/b.h:1: a comment begins with 'that'")
expect("a clause within", planted({"src/b.h": "int n; /* events that were lost */\n"}))
expect("a question", planted({"docs/b.md": "What is a trace?\n"}))
expect("wide document", planted({"docs/b.md": WIDE + "\n"}), "120 columns")
expect("wide comment", planted({"src/b.c": f"/* {WIDE}*/\n"}), "columns")
expect("tabs count", planted({"src/b.c": "\t" * 10 + "/* a comment of more than twenty columns */\n"}), "columns")
expect("table", planted({"docs/b.md": f"| {WIDE}|\n"}))
for what, head in (("", "static void "), (" with an attribute", "static __attribute__((cold, aligned(8)))\nvoid "), (" with a macro", "static void KY_PRINTF(1, 2) ")):
    expect(f"a bare name twice{what}", planted({"src/b.c": f"{head}put(int n)\n", "src/d/c.h": "static inline char *put(void)\n"}), "src/b.c, src/d/c.h: static functions 'put'")
expect("names of functions", planted({
    "src/b.c": "static int put(void)\nstatic int put_b(void)\nstatic char c[sizeof(int)];\nint get(void)\n",
    "src/c.c": "static int put_c(void)\nstatic char b[sizeof(int)];\nstatic int get(void)\n\tput(c);\n"}))
expect("bare names of a test", planted({f"src/test-{n}.c": "static int setup(void)\nstatic int teardown(void)\n" for n in "bc"}))
expect("short subject", commits("area: do it"))
expect("long subject", commits("area: " + "y" * 70), "has 76 characters")
expect("this tree", run(ROOT))
