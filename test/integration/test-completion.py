#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Completion in bash and zsh offers what the command line accepts."""

import pathlib
import re

import kymotest
from kymotest import CLI, SOURCE, check, equal

ASK = """
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
compopt() { COMPOPT="$*"; } # of a completion under way, which this is not
COMPREPLY=()
_kymo
[ "$COMPOPT" = "-o filenames" ] && printf 'as files: '
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(k, *words):
    """
    Returns what is offered for the last of the words, as bash splits them; every message is a
    failure.
    """
    path = f"{pathlib.Path(CLI).parent}:{k.env['PATH']}"
    done = k.run(["bash", "-c", ASK, "bash", SOURCE / "src" / "cli" / "completion.bash", "kymo", *words], env={"PATH": path})
    equal(done.stderr, "", f"messages of {words}")
    return done.stdout.split()


def test_words(k):
    (k.home / "out").mkdir()
    equal(complete(k, "disable-"), ["disable-channel", "disable-event", "disable-rotation"], "commands")
    equal(complete(k, "-"), ["--quiet", "--verbose", "--no-sessiond", "--json", "--help", "--version"], "options before a command")
    equal(complete(k, "-q", "-v", "disable-e"), ["disable-event"], "a command after such options")
    equal(complete(k, "-q", "create", "--sn"), ["--snapshot"], "an option of a command after such options")
    check("standalone" not in complete(k, ""), "a command for other parts of Kymo is offered")
    equal(complete(k, "help", "stat"), ["status", "stat"], "commands that there is help for")
    equal(complete(k, "create", "--s"), ["--snapshot", "--seconds=", "--shm-path=", "--set-url=", "--spool=", "--ship-rate="], "options")
    equal(complete(k, "start", "-"), ["--session=", "--all", "--no-wait", "--json", "--help"], "all options")
    equal(complete(k, "record", "--buffers", "=", "t"), ["thread"], "words of an option")
    equal(complete(k, "enable-channel", "--blocking-timeout", "="), ["inf"], "words, not what stands for a number")
    files = ["as", "files:", f"{k.home}/out"]
    equal(complete(k, "create", "-o", f"{k.home}/o"), files, "directories of an option")
    equal(complete(k, "view", f"{k.home}/o"), files, "directories")
    equal(complete(k, "view", "a/b", f"{k.home}/o"), files, "directories after a word with a slash")
    complete(k, "view", f"d/x/;1e touch {k.home / 'run'};#", "")
    check(not (k.home / "run").exists(), "a word of the command line was executed")
    equal(complete(k, "snapshot", ""), ["record"], "what can be done with snapshots")
    equal(complete(k, "fleet", "f"), ["fetch", "forget"], "what can be done with fleets")
    check("kymo-none-such" not in complete(k, "record", "bas") and "bash" in complete(k, "record", "bas"), "commands to record")
    for options in ([], ["--"], ["-e", "cat"], ["--event", "=", "cat"], ["--sample", "--with", "libc"]):
        check("bash" in complete(k, "record", *options, "bas"), f"no command to record is offered after {options}")
        for behind in (["cat"], ["cat", "-n"]):
            for word in ("bas", "-"):
                equal(complete(k, "record", *options, *behind, word), [], f"arguments {word} of the command after {options}")
    equal(complete(k, "create", ""), [], "a new name")
    equal(complete(k, "nothing", "--"), [], "options of a command that is none")
    equal(complete(k, "stop", ""), [], "sessions without a daemon")
    check(not k.rundir.exists(), "a daemon was started")


def test_sessions(k):
    k.start_daemon()
    for name in ("shop", "shed", "other"):
        k.kymo("create", name, "-o", k.traces / name)
    equal(sorted(complete(k, "stop", "sh")), ["shed", "shop"], "names")
    equal(complete(k, "set-session", "o"), ["other"], "names for set-session")
    for words in (["-s", "o"], ["--session", "=", "o"], ["--session", "o"]):
        equal(complete(k, "enable-event", *words), ["other"], " ".join(words))


def test_zsh(k):
    """Completion in zsh, with functions in the place of its line editor."""
    kymotest.need_program("zsh", "zsh")
    path = f"{pathlib.Path(CLI).parent}:{k.env['PATH']}"
    script, completion = SOURCE / "test" / "packages" / "complete.zsh", SOURCE / "data" / "completion.zsh"

    def offered(*words):
        done = k.run(["zsh", "-f", script, completion, "kymo", *words], env={"PATH": path})
        equal(done.stderr, "", f"messages of {words}")
        return sorted(done.stdout.split())
    k.start_daemon()
    for name in ("shop", "shed", "other"):
        k.kymo("create", name, "-o", k.traces / name)
    for words, wanted in ((("disable-",), ["disable-channel", "disable-event", "disable-rotation"]), (("stop", "sh"), ["shed", "shop"]),
            (("enable-event", "-s", "o"), ["other"]), (("enable-event", "--session", "o"), ["other"]), (("enable-event", "--session=o",), ["other"]),
            (("record", "--buffers=t"), ["thread"]), (("record", "--buffers", "t"), ["thread"]), (("create", "--sn"), ["--snapshot"]),
            (("-q", "disable-e"), ["disable-event"]), (("--v",), ["--verbose", "--version"]), (("snapshot", ""), ["record"]), (("help", "stat"), ["stat", "status"])):
        equal(offered(*words), wanted, " ".join(words))
    for words, wanted in (("cat",), "files"), (("-e", "cat"), "commands"), (("-e", "cat", "cat"), "files"), (("--", "cat"), "files"), (("--event=x",), "commands"):
        equal(offered("record", *words, ""), [wanted], f"what is offered after {words}")
    equal(offered("record", "cat", "-"), ["files"], "options of the command that is recorded")
    equal(offered("record", "--sa"), ["--sample"], "an option whose argument can be left out")
    equal([word for word in offered("start", "-") if not word.startswith("--")], [], "options of one letter")


def test_all_options(k):
    """Every option of every command is offered, and nothing else."""
    for command in re.findall(r"^  ([a-z-]+) {2,}\S", k.kymo("help").stdout.partition("A first trace")[0], re.M):
        wanted = re.findall(r"^ +(?:-., )?(--[^ =\[]+=?)", k.kymo("help", command).stdout.partition("\nOptions:")[2], re.M)
        equal(complete(k, command, "--"), wanted, command)


kymotest.main()
