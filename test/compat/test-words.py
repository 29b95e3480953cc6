#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Each command and option of lttng(1) works under its name, or is refused by its name, with a reason;
docs/lttng-compat.md names each of them, and everything else that a program or its user can write.
The options are in expected/options.txt, as lttng-tools prints them, and the words of its manual
pages in expected/words.txt (oracle.py).
"""

import re
import sys

import compat

sys.path.insert(0, str(compat.HERE.parent / "integration"))
import kymotest  # noqa: E402
from kymotest import SOURCE, check  # noqa: E402

# of event rules, which lttng does not list
OF_RULES = {"add-trigger": "--capture -E --event-name -f --filter -L --location -l --log-level --rate-policy -t --type -x --exclude-name".split()}
# of every command of lttng's: for programs, not for people
OF_SCRIPTS = {"--list-options", "--list-commands"}


def options():
    """Yields each command, and its options."""
    for line in (compat.HERE / "expected" / "options.txt").read_text().splitlines():
        command, _, words = line.partition(":")
        yield command, [w for w in [*words.split(), *OF_RULES.get(command, [])] if w not in ("-h", "--help")]


def answer(k, command, *words):
    """Returns the first line of the answer of a kymo that starts no daemon."""
    done = k.kymo("-n", command, *words, status=None, cwd=k.top)
    return (done.stderr or done.stdout).partition("\n")[0]


def test_no_word_is_unknown(k):
    page = (SOURCE / "docs" / "lttng-compat.md").read_text()
    page = page[page.index("### Commands"):page.index("### Daemons")]
    missing = []
    for command, words in options():
        absent = "is not supported" in answer(k, command)
        for words in ([], *([w, "x"] for w in words if not absent)):
            said = answer(k, command, *words)
            check(not re.search("unknown (command|option)", said), f"{command} {' '.join(words)}: {said}")
            if "is not supported" in said:
                name = words[0] if words else command
                if name not in OF_SCRIPTS and not re.search(rf"[` ]{re.escape(name)}[`, =]", page):
                    missing.append(f"{command} {name}")
    check(not missing, f"the page names {', '.join(missing)}")


def test_no_word_of_the_manual_is_unknown(k):
    """
    The page names each option, variable, function, macro and event in the manual pages of LTTng's
    programs and libraries.
    """
    page = (SOURCE / "docs" / "lttng-compat.md").read_text()
    page = page[page.index("## Coming from LTTng"):page.index("## What was tried")]
    wanted = (compat.HERE / "expected" / "words.txt").read_text().split()
    check(len(wanted) > 200, "there are few words")
    missing = [w for w in wanted if not re.search(rf"(?<![\w-]){w}(?![\w-])", page)]
    check(not missing, f"the page names {', '.join(missing)}")


if __name__ == "__main__":
    kymotest.main()
