#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Every command in the guide runs as it stands there, and prints what stands there.

A fenced block of a page is one of these, by the word behind its fence:

    console  commands behind "$ " (continued behind "> "), each followed by what it prints
    sh       commands only: each must succeed
    text     no commands: what a file has, or a sketch
    other    a file: its first line is a comment with its name ("/* hello.c */", "# Makefile"); with
             `excerpt=FILE` a part of a file of the tree

All blocks of a page run in order, in one shell and one directory. `console by-hand` and
`sh by-hand` need what a test has not (the system's service manager, containers): these blocks are
not run, and test_by_hand lists how many there are. The commands of `console varies` must succeed
and print something; what it is depends on the machine. Numbers with their units, times, and
addresses may differ from what the page says, and so may the number of blanks; "..." is any text of
a line or, alone, any number of lines.
"""

import difflib
import functools
import os
import re
import shutil
import subprocess
import sys

import kymotest
from kymotest import BUILD, CLI, LIBDIR, SOURCE, check, equal

GUIDE = SOURCE / "docs" / "guide"
# A change of this number is a change of what is tested.
BY_HAND = {"README.md": 2, "docs/guide/containers.md": 2, "docs/guide/elsewhere.md": 2, "docs/guide/fleet.md": 2, "docs/guide/instrument.md": 1, "docs/guide/production.md": 2, "docs/guide/users.md": 1}
AGENT = kymotest.RUN_FROM / "src" / "fleet" / "kymo-agent"
BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.M | re.S)
FILE_NAME = re.compile(r"^(?:/\*|//|#|<!--)\s*([\w./-]+)")
# The first session daemon that starts after another test has killed its own says this.
OTHERS = re.compile(r"kymo: removing \d+ tracefs instances? ")
MARK = "\x01"
NUMBER = re.compile(r"(?:0x[0-9A-Fa-f]+|\d[\d,.:]*)(?:\s?(?:ns|us|ms|s|B|KiB|MiB|GiB|bytes|K|M|G|%)(?!\w))*")


def blocks_of(page):
    """Yields (kind, the words behind it, text) of each block."""
    for kind, more, text in BLOCK.findall(page.read_text()):
        yield kind, more.split(), text


def commands_of(text):
    """Returns [(command, wanted output)] of a console block."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0] += "\n" + line[2:]
        else:
            check(found, f"a console block begins with a command, not with {line!r}")
            found[-1][1].append(line)
    return found


def script_of(page):
    """
    Returns a shell script that runs a page, and the wanted output of each of its commands (None:
    any).
    """
    script, wanted = [], []
    for kind, more, text in blocks_of(page):
        excerpt = next((word.partition("=")[2] for word in more if word.startswith("excerpt=")), None)
        if excerpt:
            check(text in (SOURCE / excerpt).read_text(), f"{page.name}: {excerpt} does not have the excerpt that begins with {text.splitlines()[0]!r}")
        if "by-hand" in more or kind == "text" or excerpt:
            continue
        if kind == "console":
            commands = commands_of(text)
            if "varies" in more:
                commands = [(command, None) for command, _ in commands]
        elif kind == "sh":
            commands = [(text, None)]
        else:
            name = FILE_NAME.match(text)
            check(name, f"{page.name}: a block of {kind or 'nothing'} without a name of its file:\n{text}")
            script.append(f"mkdir -p $(dirname {name[1]}); cat >{name[1]} <<'GUIDE_FILE_END'\n{text}GUIDE_FILE_END")
            continue
        for command, output in commands:
            # Background jobs must not hold the pipe. The status is that of the last command.
            script.append(f"printf '{MARK}'\n{command}\nprintf '{MARK}%d{MARK}' $?")
            wanted.append((command, output))
    return "\n".join(script), wanted


def plain(line, k):
    """A line without what may differ from run to run."""
    for path, name in ((k.traces, "/home/me/kymo-traces"), (k.home, "/home/me"), (k.rundir, "/run/user/1000/kymo"), (kymotest.RUN_FROM, "")):
        line = line.replace(str(path), name)
    line = NUMBER.sub("#", line)
    line = re.sub(r"(# [a-z]+?)s\b", r"\1", line)  # "2 streams", "1 stream"
    line = re.sub(r"\(\+[?.#]+\) \S+ ", "(+#) host ", line)  # of an event: time since the last one, host's name
    return re.sub(r"\s+", " ", line).strip()


def matches(got, wanted):
    """True if the lines are the same; "..." stands for any number of lines."""
    if not wanted:
        return not got
    if wanted[0] == "...":
        return any(matches(got[i:], wanted[1:]) for i in range(len(got) + 1))
    pattern = ".*".join(re.escape(part) for part in wanted[0].split("..."))
    return bool(got) and re.fullmatch(pattern, got[0]) is not None and matches(got[1:], wanted[1:])


def compare(k, page, command, output, wanted):
    got_lines = [line for line in output.splitlines() if not OTHERS.match(line)]
    got, want = [plain(line, k) for line in got_lines], [plain(line, k) for line in wanted]
    if not matches(got, want):
        difference = "\n".join(difflib.unified_diff(want, got, "guide", "printed", lineterm=""))
        raise kymotest.Failure(f"{page.name}: $ {command}\n{difference}\nprinted:\n{output}")


def environment(k):
    """A user's: the programs in the path, and the compiler finds header and libraries."""
    packages = k.top / "pkgconfig"
    packages.mkdir()
    for name, libs in (("kymo", ""), ("kymo-ctl", f"-L{BUILD}/src/control -lkymo-ctl"), ("kymo-reader", f"-L{BUILD}/src/reader -lkymo-reader")):
        (packages / f"{name}.pc").write_text(f"Name: {name}\nDescription: of the build\nVersion: 0\nCflags: -I{SOURCE}/include\nLibs: {libs}\n")
    libraries = ":".join([LIBDIR, *(str(BUILD / "src" / part) for part in ("control", "reader", "analysis"))])
    return {"PATH": f"{os.path.dirname(CLI)}:{AGENT.parent}:{os.environ['PATH']}", "PKG_CONFIG_PATH": str(packages), "LD_LIBRARY_PATH": libraries, "TERM": "dumb",
        "KYMO_HOME": str(k.home / "kymo-traces"), "SHELL": "/bin/sh", "PYTHONPATH": str(SOURCE / "src" / "python"), "PYTHONDONTWRITEBYTECODE": "1"}


def run_page(page, k):
    for program, package in NEEDS.get(page.name, ()):
        kymotest.need_program(program, package)
    if page.name == "fleet.md" and not AGENT.exists():
        raise kymotest.Skip("this build has no kymo-agent: libnats is missing (Debian package libnats-dev)")
    shutil.copytree(SOURCE / "examples", k.home / "examples")
    script, wanted = script_of(page)
    done = k.run(["bash", "-c", f"exec 2>&1\n{script}"], env=environment(k), cwd=k.home, timeout=4 * kymotest.TIMEOUT)
    parts = done.stdout.split(MARK)
    equal(len(parts) // 3, len(wanted), f"{page.name}: commands that were run; the output ends with {done.stdout[-2000:]}")
    for (command, output), (printed, status) in zip(wanted, zip(parts[1::3], parts[2::3])):
        if output is None:
            equal(status, "0", f"{page.name}: status of\n{command}\nwhich prints\n{printed}\n")
        else:
            compare(k, page, command, printed, output)
    k.run(["sh", "-c", "for lock in $KYMO_RUNDIR/lock; do [ ! -s $lock ] || kill $(cat $lock); done"])
    kymotest.wait_for(lambda: not kymotest.processes_with(k.mark), "daemons and companions to end")


NEEDS = {"elsewhere.md": (("babeltrace2", "babeltrace2"),), "fleet.md": (("nats-server", "nats-server"), ("openssl", "openssl")), "instrument.md": (("cmake", "cmake"), ("meson", "meson"), ("g++", "g++"))}

for path in [SOURCE / "README.md", *sorted(GUIDE.glob("*.md"))]:
    name = f"test_{path.stem.replace('-', '_').lower()}"
    if any(kind in ("console", "sh") and "by-hand" not in more for kind, more, _ in blocks_of(path)):
        globals()[name] = functools.partial(run_page, path)
        globals()[name].__name__ = name


MANUAL = SOURCE / "man"
# Commands before a page's examples. Those of kymo-kernel(7) need the kernel of the machine:
# test-kernel-trace.py tries such ones.
BEFORE = {"kymo-filter.7": "kymo create filtered", "kymo-with.7": "", "kymo.1": "", "libkymo.3": ""}


def examples_of(page):
    """Returns the lines of the page's EXAMPLES that are shown literally, as a terminal has them."""
    section = page.read_text().partition(".Sh EXAMPLES\n")[2].partition("\n.Sh ")[0]
    blocks = re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed$", section, re.M | re.S) + re.findall(r"^\.Dl (.*)$", section, re.M)
    text = "\n".join(block.rstrip("\n") for block in blocks)
    for roff, sign in (("\\(aq", "'"), ("\\-", "-"), ("\\e", "\\"), ("\\&", "")):
        text = text.replace(roff, sign)
    return text.splitlines()


def test_manual(k):
    """Every command in the examples of manual pages succeeds; libkymo(3) has a program."""
    found = {p.name for p in MANUAL.glob("*.[1-8]") if any(line.startswith("kymo ") for line in examples_of(p))}
    equal(found, {*BEFORE, "kymo-kernel.7"}, "pages with examples of commands")
    source = [line for line in examples_of(MANUAL / "libkymo.3") if not line.startswith("kymo ")]
    (k.home / "hello.c").write_text("\n".join(source) + "\n")
    (k.home / "file").write_text("b\na\n")
    tools = k.top / "tools"
    tools.mkdir()
    (tools / "less").write_text("#!/bin/sh\nexec cat\n")
    (tools / "less").chmod(0o755)
    env = environment(k)
    env["PATH"] = f"{tools}:{env['PATH']}"
    k.run(["sh", "-ec", "cc -o hello hello.c $(pkg-config --cflags --libs kymo); cp hello program"], env=env, cwd=k.home)
    for page, before in BEFORE.items():
        commands = [before, *(line for line in examples_of(MANUAL / page) if line.startswith("kymo "))]
        check(len(commands) > 1, f"{page} has no examples")
        for command in commands:
            done = k.run(["bash", "-o", "pipefail", "-c", command], env=env, cwd=k.home, status=None, timeout=2 * kymotest.TIMEOUT)
            equal(done.returncode, 0, f"{page}: $ {command}\n{done.stdout[-1000:]}{done.stderr[-1000:]}\nexit status")
            check(command != "kymo view hello-trace" or done.stdout.count("hello:greeting: ") == 3, f"{page}: {command} printed {done.stdout}")
    k.run(["sh", "-c", "for lock in $KYMO_RUNDIR/lock; do [ ! -s $lock ] || kill $(cat $lock); done"])
    kymotest.wait_for(lambda: not kymotest.processes_with(k.mark), "daemons and companions to end")


def test_by_hand(k):
    """Blocks that no test runs do not become more."""
    found = {str(p.relative_to(SOURCE)): sum("by-hand" in more for _, more, _ in blocks_of(p)) for p in [SOURCE / "README.md", *GUIDE.glob("*.md")]}
    equal({name: n for name, n in found.items() if n}, BY_HAND, "blocks to be run by hand")


def test_differences(k):
    """The comparison notices another word, a missing line and one too many, and no other number."""
    same = (["7 events in 1.5 ms at 0xAB"], ["12 events in 900 us at 0xCD"])
    for got, wanted, expected in ((*same, True), (["a", "b"], ["a"], False), (["a"], ["a", "b"], False), (["ab"], ["ac"], False), (["a", "b", "c"], ["a", "..."], True),
        (["a", "b", "c"], ["...", "c"], True), (["a"], ["...", "d"], False),
        (["the end"], ["the...d"], True), (["the end"], ["the...s"], False)):
        equal(matches([plain(g, k) for g in got], [plain(w, k) for w in wanted]), expected, f"{got} and {wanted}")


def test_html(k):
    """The one page has each page of the guide, and its links lead to its own parts."""
    pythons = [p for p in (sys.executable, "/usr/bin/python3") if not subprocess.run([p, "-c", "import markdown"], capture_output=True).returncode]
    if not pythons:
        raise kymotest.Skip("markdown is missing (Debian package python3-markdown)")
    k.run([pythons[0], SOURCE / "scripts" / "guide-html", GUIDE, k.top / "guide.html"])
    text = (k.top / "guide.html").read_text()
    sections = re.findall(r'<section id="([^"]+)">', text)
    equal(sorted(sections), sorted(p.stem for p in GUIDE.glob("*.md")), "sections")
    links = re.findall(r'href="#?([^"#]+)[^"]*"', text)
    equal([n for n in links if n not in sections and not (SOURCE / "docs" / n).exists()], [], "links that lead nowhere")
    check("```" not in text, "a block that is not understood")


def anchors_of(page):
    """The names by which links reach the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links(k):
    """
    Each link of the documents leads to a file of the tree and, with '#', to a heading of it. A link
    leads to each document.
    """
    linked = set()
    for page in [*SOURCE.glob("*.md"), *(SOURCE / "docs").rglob("*.md")]:
        for name, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text()):
            target = page.parent / name if name else page
            where = f"{page.relative_to(SOURCE)}: {name}#{anchor}"
            check("://" in name or target.exists(), f"{where}: there is no such file")
            linked.add(target.resolve())
            check(not anchor or "://" in name or target.suffix != ".md" or anchor in anchors_of(target), f"{where}: there is no such heading")
    equal([str(page.relative_to(SOURCE)) for page in (SOURCE / "docs").rglob("*.md") if page.resolve() not in linked], [], "documents to which no link leads")


kymotest.main()
