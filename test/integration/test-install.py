#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
All commands that the README gives to a new user work with an installed Kymo, in a prefix of its
own.
"""

import contextlib
import json
import os
import re
import shutil

import answers
import kymotest
from kymotest import BUILD, SOURCE, check, equal, read_trace, wait_for

# Beside the build under test, so that compilers get the same paths and ccache finds its object
# files.
INSTALLED = BUILD.parent / f"{BUILD.name}-installed"
PREFIX = INSTALLED / "prefix"


def install(k):
    """
    Builds for a prefix and installs there, as 'make install' does; returns the environment of its
    user.
    """
    shutil.rmtree(PREFIX, ignore_errors=True)
    path = {"PATH": os.environ["PATH"]}
    if not (INSTALLED / "build.ninja").exists():
        shutil.rmtree(INSTALLED, ignore_errors=True)
        how = "-Dbuildtype=debugoptimized" if shutil.which("ccache") else "-Dbuildtype=plain"
        k.run(["meson", "setup", INSTALLED, SOURCE, f"--prefix={PREFIX}", "-Dtests=disabled", "--werror", how], timeout=8 * kymotest.TIMEOUT,
            env=path)
    k.run(["ninja", "-C", INSTALLED], timeout=8 * kymotest.TIMEOUT, env=path)
    k.run(["meson", "install", "-C", INSTALLED, "--no-rebuild"], env=path)
    pkg_config = next(PREFIX.rglob("kymo.pc")).parent
    return {"PATH": f"{PREFIX / 'bin'}:{os.environ['PATH']}", "PKG_CONFIG_PATH": str(pkg_config), "LD_LIBRARY_PATH": ""}


def readme_blocks():
    text = (SOURCE / "README.md").read_text()
    section = text[text.index("## First trace") : text.index("## More instrumentation")]
    return re.findall(r"```(\w*)\n(.*?)```", section, re.DOTALL)


def test_readme(k):
    env = install(k)
    (language, source), (_, first), (_, alone), (_, session) = readme_blocks()[:4]
    equal(language, "c", "the README's first block")
    (k.home / "hello.c").write_text(source)
    output = k.run(["sh", "-ec", first], env=env, cwd=k.home).stdout
    equal(len(re.findall(r"hello:greeting: .*text = \"hello, world\"", output)), 3, f"events that the README's commands show: {output}")
    equal(len(read_trace(k.home / "hello-trace")[0]), 3, "events in the trace")

    # Without a daemon. The companions exit by themselves; nothing waits for them.
    output = k.run(["sh", "-ec", alone], env=env, cwd=k.home)
    equal((output.stdout, output.stderr), ("", ""), "output of programs that have companions")
    wait_for(lambda: not kymotest.processes_with(k.mark), "the companions to end")
    for trace in ("hello-trace-2", "other-trace"):
        equal(len(read_trace(k.home / trace)[0]), 3, f"events in {trace}")

    # The last block starts a daemon on demand, and writes to the directory that the README names.
    session = session.replace("~/kymo-traces", str(k.traces))
    output = k.run(["sh", "-ec", session], env=env, cwd=k.home).stdout
    check(len(re.findall(r"hello:greeting: ", output)) == 3, f"output of the README's session: {output}")
    for pid in kymotest.processes_with(k.mark):
        if "kymo-sessiond" in kymotest.command_of(pid):
            with contextlib.suppress(ProcessLookupError):  # it ends by itself
                os.kill(pid, 15)


def test_make_help(k):
    """`make help` lists the targets, and `make test` is `make check`."""
    env = {"PATH": os.environ["PATH"]}
    text = k.run(["make", "-C", SOURCE, "help"], env=env).stdout
    check(all(f"make {target}" in text for target in ("demo", "check", "install")), text)
    check("scripts/check" in k.run(["make", "-n", "-C", SOURCE, "test"], env=env).stdout, "make test")


def test_python(k):
    """Python finds the module in its prefix, and the module finds the libraries beside it."""
    install(k)
    module = next(PREFIX.rglob("kymo.py")).parent
    trace = k.top / "trace"
    answers.hostile(trace)
    done = k.run(["python3", "-c", "import kymo, sys; print(sum(1 for _ in kymo.open(sys.argv[1]).events()))", trace],
        env={"PYTHONPATH": str(module), "LD_LIBRARY_PATH": "", "PYTHONDONTWRITEBYTECODE": "1"})
    equal(done.stdout, "24\n", "events")


def test_python_path(k):
    """With the default prefix, the system's Python finds the module without a variable."""
    env, build = {"PATH": "/usr/bin:/bin"}, k.top / "build"
    if not shutil.which("meson", path=env["PATH"]) or not shutil.which("python3", path=env["PATH"]):
        raise kymotest.Skip("needs meson and python3 in /usr/bin")
    k.run(["meson", "setup", build, SOURCE, "--prefix=/usr/local", "-Dtests=disabled"], timeout=8 * kymotest.TIMEOUT, env=env)
    installed = json.loads(k.run(["meson", "introspect", "--installed", build], env=env).stdout)
    place = os.path.dirname(next(to for to in installed.values() if to.endswith("/kymo.py")))
    looks_in = json.loads(k.run(["python3", "-c", "import json, sys; print(json.dumps(sys.path))"], env=env).stdout)
    check(place in looks_in, f"{place} is not in {looks_in}")


def test_static_program(k):
    env = install(k)
    source = readme_blocks()[0][1]
    (k.home / "hello.c").write_text(source)
    k.run(["sh", "-ec", "cc -static -o hello hello.c $(pkg-config --static --cflags --libs kymo)"], env=env, cwd=k.home)
    k.run(["kymo", "record", "-o", k.traces / "static", "--", k.home / "hello"], env=env)
    equal(len(read_trace(k.traces / "static")[0]), 3, "events of a static program")


def test_examples(k):
    """The examples compile with the commands in their own comments."""
    env = install(k)
    for name in ("shop.c", "spike.c", "parcels.cpp"):
        text = (SOURCE / "examples" / name).read_text()
        command = re.search(r"^ \*\t(c(?:c|\+\+) .*)$", text, re.MULTILINE)[1].replace(name, str(SOURCE / "examples" / name))
        k.run(["sh", "-ec", command], env=env, cwd=k.home)
        trace = k.traces / name
        k.run(["kymo", "record", "-o", trace, "--", k.home / name.partition(".")[0]], env=env)
        check(len(read_trace(trace)[0]) > 100, f"{name}: few events")


def test_manual_and_removal(k):
    """
    Pages and completion are in the directories in which man and bash look, and programs look for
    their configuration where the pages say; 'make uninstall' removes everything.
    """
    install(k)
    for name, place in (("kymo-sessiond", "/etc/kymo/sessions.d"), ("kymo-agent", "/etc/kymo/fleet/fleet.conf")):
        for program in (p for p in PREFIX.rglob(name) if p.is_file() and os.access(p, os.X_OK)):
            check(place in re.split(r"[\s()]+", k.run([program, "--help"]).stdout), f"{program} does not look in {place}")
    pages = {p.name for p in (SOURCE / "man").glob("*.[1-8]")}
    equal({p.name for p in (PREFIX / "share" / "man").rglob("*.[1-8]")}, pages, "installed pages")
    text = "\n".join(p.read_text() for p in (SOURCE / "man").glob("*.[1-8]"))
    equal(re.findall(r"^\.Pa (?!share/doc/)[^\s*]+\.(?:md|json)\b.*", text, re.MULTILINE), [], "documents without the place of their installation")
    for page in re.findall(r"^\.Pa share/(doc/\S+)", text, re.MULTILINE):
        check((PREFIX / "share" / page).is_file(), f"{page}, of which a manual page speaks, is not installed")
    for page in (SOURCE / "docs" / "guide").glob("*.md"):
        for name in re.findall(r"\bexamples/\S+\.c", page.read_text()):
            check((PREFIX / "share" / "doc" / "kymo" / name).is_file(), f"{name}, which {page.name} compiles, is not installed")
    check((PREFIX / "share" / "bash-completion" / "completions" / "kymo").is_file(), "no completion")
    k.run(["make", "-C", SOURCE, f"BUILD={INSTALLED}", "uninstall"], env={"PATH": os.environ["PATH"]})
    equal([p for p in PREFIX.rglob("*") if not p.is_dir()], [], "files that are left")


def test_destdir(k):
    """A relative DESTDIR is below the directory of make's user; it and PREFIX may have spaces."""
    for path, text in (("bin/meson", 'echo "$DESTDIR"'), ("bin/ninja", ""), ("scripts/set-prefix", 'echo "$2"'), ("build/build.ninja", "")):
        (k.home / path).parent.mkdir(exist_ok=True)
        (k.home / path).write_text(f"#!/bin/sh\n{text}\n")
        (k.home / path).chmod(0o755)
    for given, wanted in (("a stage", k.home / "a stage"), ("/a stage", "/a stage")):
        done = k.run(["make", "-s", "-f", SOURCE / "Makefile", "install", f"DESTDIR={given}", "PREFIX=/a place"], cwd=k.home,
            env={"PATH": f"{k.home / 'bin'}:{os.environ['PATH']}"})
        equal(done.stdout, f"/a place\n{wanted}\n", f"prefix, and DESTDIR of meson, for {given!r}")


def test_spaces(k):
    """Directories that make is given may have spaces: `make clean` removes no other ones."""
    for path, text in (("bin/git", "printf '%s\n' \"$@\""), ("bin/rm", "printf '%s\n' \"$@\"")):
        (k.home / path).parent.mkdir(exist_ok=True)
        (k.home / path).write_text(f"#!/bin/sh\n{text}\n")
        (k.home / path).chmod(0o755)
    for arguments, wanted in ((("dist", "DIST=a place"), "a place/kymo-"), (("clean", "BUILD=a build"), "a build")):
        done = k.run(["make", "-s", "-C", SOURCE, *arguments], env={"PATH": f"{k.home / 'bin'}:{os.environ['PATH']}"})
        check(any(line.startswith(wanted) for line in done.stdout.splitlines()), f"{arguments}: {done.stdout}")


kymotest.main()
