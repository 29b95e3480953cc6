#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The manual pages in man/ agree with the programs. The page has each option of a program's --help,
and --help has each option of the page, with the same letter and argument. Each environment variable
that the code reads is in a page. libkymo(3) has everything that the installed headers have. mandoc
has no complaint.

    test-manual.py SOURCE KYMO SESSIOND CONSUMERD COLLECTD AGENTD [AGENT]
"""

import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(sys.argv[1])
KYMO, SESSIOND, CONSUMERD, COLLECTD, AGENTD = sys.argv[2:7]
AGENT = sys.argv[7:8]  # a build without libnats has none
PAGES = {p.name: p.read_text() for p in sorted((SOURCE / "man").glob("*.[1-8]"))}
# of every command, or without effect: no synopsis has them
EVERYWHERE = {"--json", "--help", "--userspace"}


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


# ---- reading


def rows_of_help(text):
    """Returns "-o, --output=DIR" of each line that begins with an option."""
    return [re.split(r"\s{2,}", line.strip())[0] for line in text.splitlines() if re.match(r"\s+-", line)]


def rows_of_page(text):
    """The same for each item of a list, from `.It Fl o , Fl -output Ns = Ns Ar DIR`."""
    found = []
    for line in re.findall(r"^\.It (Fl .*)$", text, re.M):
        line = re.sub(r" ?Ns ?", "\0", re.sub(r"\b(Op|Ar|Cm) ", "", re.sub(r"Fl (?=\S)", "-", line)))
        found.append(line.replace("\0", "").replace(" ,", ","))
    return found


def plain(row):
    """
    Removes what may differ between a page and a help text: the brackets of optional parts, and how
    an argument follows a letter.
    """
    row = re.sub(r"[\[\]]", "", row)
    return re.sub(r"^(-\w) (\w+)$", r"\1=\2", row)


def names(row):
    return re.findall(r"--?[\w-]+", row.partition("=")[0])


def flags(text):
    """Returns every option that a page's text has as a macro."""
    found = set()
    for line in re.findall(r"^\.(.*)$", text, re.M):
        for words in re.findall(r"\bFl ((?:[\w-]+(?: , )?)+)", line):
            found.update(f"-{word}" for word in words.split(" , ") if word not in ("Fl", "-"))
    return found


def section(page, heading, text):
    found = re.search(rf"^\.{heading} {re.escape(text)}\n(.*?)(?=^\.S[hs] |\Z)", page, re.M | re.S)
    return found[1] if found else ""


# ---- comparing: each function returns a list of complaints


def compare(what, help_text, page, common=""):
    """Compares both sets of options. common: text whose items may replace the page's own."""
    helps, own = [plain(r) for r in rows_of_help(help_text)], [plain(r) for r in rows_of_page(page)]
    shared = [plain(r) for r in rows_of_page(common)]
    known = {n for row in helps for n in names(row)}
    wrong = [f"{what}: {row!r} of --help is not in the page" for row in helps if row not in own and row not in shared]
    wrong += [f"{what}: {row!r} of the page is not in --help" for row in own if row not in helps]
    wrong += [f"{what}: the page speaks of {f}, which is no option" for f in flags(page) - known]
    if common:
        wrong += [f"{what}: the synopsis lacks {row!r}" for row in helps
            if not set(names(row)) & (flags(page) | EVERYWHERE)]
    return wrong


def check_beginning(help_text, page):
    """A program's --help begins with the page's "NAME - SUMMARY", and then the usage."""
    name, summary = (re.search(rf"^\.{macro} (.*)$", page, re.M)[1] for macro in ("Nm", "Nd"))
    wanted = f"{name} - {summary}\n\nUsage: {name} "
    return [] if help_text.startswith(wanted) else [f"--help of {name} does not begin with {wanted!r}"]


def commands(overview):
    return re.findall(r"^  ([a-z-]+) {2,}\S", overview.partition("A first trace")[0], re.M)


def check_commands(page, overview, help_of):
    common = section(page, "Sh", "COMMON OPTIONS")
    there = re.findall(r"^\.Ss (\S+)$", page, re.M)
    wrong = [] if there == commands(overview) else [f"commands of the page: {there}, of --help: {commands(overview)}"]
    used = set()
    for name in commands(overview):
        text = help_of(name)
        used.update(plain(r) for r in rows_of_help(text))
        wrong += compare(f"kymo {name}", text, section(page, "Ss", name), common)
    return wrong + [f"common option {row!r}: no command has it" for row in rows_of_page(common) if plain(row) not in used]


def check_variables(sources, pages):
    asked = {v for text in sources for v in re.findall(r'"(KYMO_[A-Z_]+)=?"', text)}
    told = {v for page in pages for v in re.findall(r"^\.It Ev (KYMO_\w+)", page, re.M)}
    return [f"{v}: in the sources or in the pages alone" for v in sorted(asked ^ told)]


def check_library(headers, page):
    """Compares the headers' definitions for programs with the page, in both directions."""
    public = {n for text in headers for n in re.findall(r"^#define (kymo_\w+|KYMO_[A-Z_]+)\(", text, re.M)}
    public |= {n for text in headers for n in re.findall(r"^static inline .*?(kymo_[a-z]\w*)\(", text, re.M)}
    public = {n for n in public if "__" not in n}
    said = set(re.findall(r"\bkymo_[a-z]\w*|\bKYMO_[A-Z]\w*", section(page, "Sh", "DESCRIPTION") + "".join(
        section(page, "Ss", s) for s in re.findall(r"^\.Ss (.*)$", page, re.M))))
    everything = set(re.findall(r"\w+", "".join(headers).replace("KYMO__F_", "")))
    wrong = [f"libkymo(3) lacks {n}" for n in sorted(public - said)]
    return wrong + [f"libkymo(3) has {n}, the headers do not" for n in sorted(said - everything)]


def check_preload(guide, page):
    """Compares the events and fields of docs/preload.md with those of kymo-with(7)."""
    wrong = []
    for names, fields in re.findall(r"^\|[^|]*\| (?!event|none)([^|]*`[^|]*) \| ([^|]*) \|$", guide, re.M):
        items = " , ".join(f"Cm {n}" for n in re.findall(r"`([^`]+)`", names))
        if not re.search(rf"^\.It {re.escape(items)}(?: No \(span\))?\n{re.escape(fields.replace('`', ''))}$", page, re.M):
            wrong.append(f"kymo-with(7) lacks {names}: {fields}, which preload.md has")
    return wrong


# ---- the tests


def test_kymo():
    return check_commands(PAGES["kymo.1"], run(KYMO, "--help"), lambda name: run(KYMO, name, "--help"))


def test_programs():
    wrong = []
    for page, program in (("kymo-sessiond.8", [SESSIOND]), ("kymo-consumerd.8", [CONSUMERD]), ("kymo-collectd.8", [COLLECTD]), ("kymo-agentd.8", [AGENTD]),
            ("kymo-gen-tp.1", ["sh", SOURCE / "scripts" / "kymo-gen-tp"]),
            ("kymo-lttng-switch.8", ["sh", SOURCE / "src" / "lttng" / "kymo-lttng-switch.in"]),
            *[("kymo-agent.8", [agent]) for agent in AGENT]):
        wrong += compare(page, run(*program, "--help"), PAGES[page]) + check_beginning(run(*program, "--help"), PAGES[page])
    return wrong


def test_variables():
    sources = [p.read_text() for p in (SOURCE / "src").rglob("*.[ch]") if not p.name.startswith("test-")]
    return check_variables(sources, PAGES.values())


def test_library():
    return check_library([p.read_text() for p in (SOURCE / "include" / "kymo").rglob("*.h") if p.name not in ("ctl.h", "reader.h")], PAGES["libkymo.3"])


def test_reader():
    """Each function of libkymo-reader is in the page, and no other function."""
    functions = set(re.findall(r"\b(kymo_[a-z_]+)\(", re.sub(r"/\*.*?\*/", "", (SOURCE / "include" / "kymo" / "reader.h").read_text(), flags=re.S)))
    described = set(re.findall(r"^\.It Fn (kymo_[a-z_]+)", PAGES["libkymo-reader.3"], re.M))
    return [f"libkymo-reader(3) lacks {f}" for f in sorted(functions - described)] + [f"no function: {f}" for f in sorted(described - functions)]


def test_preload():
    return check_preload((SOURCE / "docs" / "preload.md").read_text(), PAGES["kymo-with.7"])


def test_packages():
    """Each page is in a Debian package, and meson installs it."""
    wanted = "\n".join(p.read_text() for p in (SOURCE / "debian").glob("*.install"))
    installed = (SOURCE / "man" / "meson.build").read_text()
    missing = [f"{n}: in no package" for n in PAGES if f"/{n}\n" not in wanted and not (n.endswith(".3") and "/man3\n" in wanted)]
    return missing + [f"{n}: not in man/meson.build" for n in PAGES if f"'{n}'" not in installed]


def test_lint():
    if not shutil.which("mandoc"):
        return None
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *(SOURCE / "man" / n for n in PAGES)], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)
    return done.stdout.splitlines()


def test_faults():
    """Each comparison finds the faults that it is for."""
    page, overview = PAGES["kymo.1"], run(KYMO, "--help")
    help_of = {name: run(KYMO, name, "--help") for name in commands(overview)}
    planted = {
        "an option that the page lacks": lambda: check_commands(page.replace(".It Fl m , Fl -max-size Ns = Ns Ar SIZE\n", ""), overview, help_of.get),
        "an option that is none": lambda: check_commands(page.replace(".Ss stat\n", ".Ss stat\n.Op Fl -fast\n"), overview, help_of.get),
        "another letter": lambda: check_commands(page.replace(".It Fl r , Fl -remove", ".It Fl R , Fl -remove"), overview, help_of.get),
        "another argument": lambda: check_commands(page.replace("-pool-size Ns = Ns Ar N", "-pool-size"), overview, help_of.get),
        "a synopsis without": lambda: check_commands(page.replace(".Ic kymo rotate\n.Op Oo Fl s Oc Ar NAME\n", ".Ic kymo rotate\n"), overview, help_of.get),
        "a command that the page lacks": lambda: check_commands(page, overview.replace("  stat  ", "  stat  s\n  sweep  "), {**help_of, "sweep": ""}.get),
        "a variable": lambda: check_variables(['getenv("KYMO_SPEED")', *PAGES.values()], PAGES.values()),
        "a field of a call": lambda: check_preload("| | `libc:calloc` | nmemb, size, ptr |\n", PAGES["kymo-with.7"].replace("nmemb, size", "size")),
        "another summary": lambda: check_beginning("kymo-x - do this\n\nUsage: kymo-x [-a]\n", ".Nm kymo-x\n.Nd do that\n"),
        "no usage": lambda: check_beginning("kymo-x - do that\n\nOptions:\n", ".Nm kymo-x\n.Nd do that\n"),
        "a macro": lambda: check_library(["#define kymo_event(a)\n#define kymo_sing(song)"], ".Ss Events\n.Fn kymo_event\n"),
        "a macro that is none": lambda: check_library(["#define kymo_event(a)"], ".Ss Events\n.Fn kymo_event\n.Fn kymo_sing\n"),
    }
    return [f"not noticed: {what}" for what, look in planted.items() if not look()]


TESTS = [test_kymo, test_programs, test_variables, test_library, test_reader, test_preload, test_packages, test_lint, test_faults]
failed = False
print(f"1..{len(TESTS)}")
for i, test in enumerate(TESTS, 1):
    complaints = test()
    if complaints is None:
        print(f"ok {i} - {test.__name__} # SKIP mandoc is missing (Debian package mandoc)")
        continue
    for line in complaints:
        print(line, file=sys.stderr)
    failed = failed or bool(complaints)
    print(f"{'not ok' if complaints else 'ok'} {i} - {test.__name__}")
sys.exit(failed)
