#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
docs/protocol.md is complete: it has each message of the binary protocols, each command of the
control socket with its parameters, each option of a channel, each member of a reply, and each code
of a refusal.

    test-protocol.py SOURCE
"""

import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
CONTROL = SOURCE / "src" / "sessiond" / "control"


def section(page, heading):
    return re.search(rf"^## {heading}\b(.*?)(?=^## |\Z)", page, re.M | re.S)[1]


def has(text, word):
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)


def missing(words, text, what):
    return [f"docs/protocol.md lacks the {what} {w}" for w in sorted(words) if not has(text, w)]


# ---- comparing: each function returns a list of complaints


def check_messages(header, text):
    """header: one that lists its messages as `KY_APP_HELLO = 1,`."""
    return missing(re.findall(r"^\tKY_(?:APP|CONS)_([A-Z_]+) = \d+,", header, re.M), text, "message")


def rows(text):
    """{command: its parameters}, of a table whose first cell names commands."""
    found = {}
    for names, params in re.findall(r"^\| (`[^|]*`) \|([^|]*)\|", text, re.M):
        for name in re.findall(r"`([a-z-]+)`", names):
            found[name] = f"{found.get(name, '')} {params}"
    return found


def commands(source):
    """(name, scope, parameters) of each row of the table of commands."""
    for name, text in re.findall(r"^#define (\w+) (\{.*)$", source, re.M):
        source = re.sub(rf"(?<=[{{ ]){name}\b", lambda _: text, source)
    for name, scope, params in re.findall(r'\{"([a-z-]+)", SCOPE_(\w+), run_\w+,\s*\{(.*?)\}\}', source, re.S):
        yield name, scope, set(re.findall(r'\{"(\w+)", PARAM_(?!OPTION)', params))


def check_commands(source, text):
    wrong, described = [], rows(text)
    there = list(commands(source))
    brought = {"NONE": set(), "SESSION": {"session"}, "SESSIONS": {"session", "all", "no_wait"}}
    for name, scope, params in there:
        if name not in described:
            wrong.append(f"docs/protocol.md lacks the command {name}")
        else:
            wrong += missing(params | brought[scope], described[name], f"parameter of '{name}':")
    return wrong if there else ["no command found"]


def check_options(source, text):
    """Each option of a channel has a row of its own."""
    options = {key.replace("-", "_") for key in re.findall(r'^\t\{"([a-z-]+)", OPTION_', source, re.M)}
    described = set(re.findall(r"^\| `(\w+)` \|", text, re.M))
    return [f"docs/protocol.md lacks the option {o}" for o in sorted(options - described)] if options else ["no option found"]


def check_members(sources, text):
    members = set()
    for source in sources:
        members.update(re.findall(r'\b(?:json_add|add_\w+)\(\w+, "(\w+)"', source))
        members.update(re.findall(r'\breply_add(?:_to)?\([^,;]*, "(\w+)"', source))
    return missing(members, text, "member")


def check_codes(sources, text):
    """The list of codes is a sentence of its own, and has no others."""
    used = {c for s in sources for c in re.findall(r'\bre(?:quest_refuse|fusal_set)\(\s*\w+,\s*"([a-z-]+)"', s)}
    listed = set(re.findall(r"`([a-z-]+)`", re.search(r"^Codes: (.*?)\.$", text, re.M | re.S)[1].partition("(")[0]))
    return [f"code of a refusal '{c}': in the sources or in docs/protocol.md alone" for c in sorted(used ^ listed)]


# ---- the tests


PAGE = (SOURCE / "docs" / "protocol.md").read_text()
SOURCES = [p.read_text() for p in sorted(CONTROL.glob("*.c")) if not p.name.startswith("test-")]
COMMANDS = (CONTROL / "commands.c").read_text()
OPTIONS = (SOURCE / "src" / "sessiond" / "model" / "option.c").read_text()


def header(name):
    return (SOURCE / "src" / "proto" / name).read_text()


def test_faults():
    """Each comparison finds the fault that it is for."""
    control = section(PAGE, "Control")
    planted = {
        "a message": check_messages("\tKY_APP_SING = 99,\n", section(PAGE, "Programs")),
        "a command": check_commands(COMMANDS.replace('"rotate"', '"sing"'), control),
        "a parameter": check_commands(COMMANDS.replace('"max_size"', '"song"'), control),
        "a parameter of a macro": check_commands(COMMANDS.replace('"vgid"', '"song"'), control),
        "an option": check_options(OPTIONS.replace('"pool-size"', '"song-size"'), control),
        "a member": check_members(['add_number(o, "song", 1);'], control),
        "a member of a reply": check_members(['reply_add_to(o->request, "song", v);'], control),
        "a code": check_codes([*SOURCES, 'request_refuse(\n\tr, "sung", "text")'], control),
        "a code that is none": check_codes([s.replace('"busy"', '"usage"') for s in SOURCES], control),
    }
    return [f"not noticed: {what}" for what, complaints in planted.items() if not complaints]


complaints = [
    *check_messages(header("app.h"), section(PAGE, "Programs")),
    *check_messages(header("consumer.h"), section(PAGE, "Consumer")),
    *check_commands(COMMANDS, section(PAGE, "Control")),
    *check_options(OPTIONS, section(PAGE, "Control")),
    *check_members(SOURCES, section(PAGE, "Control")),
    *check_codes(SOURCES, section(PAGE, "Control")),
    *test_faults(),
]
for line in complaints:
    print(line, file=sys.stderr)
sys.exit(1 if complaints else 0)
