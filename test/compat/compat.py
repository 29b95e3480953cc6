# SPDX-License-Identifier: MIT
"""
Programs written for LTTng-UST (programs/), built in the ways in which such programs are built, and
the text of their traces.

A case can be built with the headers of either tracer and recorded by either. test-compat.py uses
Kymo and compares with expected/CASE.txt. oracle.py uses LTTng and writes these files.
"""

import dataclasses
import pathlib
import re
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
CCACHE = ["ccache"] if shutil.which("ccache") else []
DYNAMIC = ["-DTRACEPOINT_DEFINE", "-DTRACEPOINT_PROBE_DYNAMIC_LINKAGE"]

# Objects by the command that compiles them: many cases differ in how they are linked or recorded.
objects = {}
kept = tempfile.TemporaryDirectory(prefix="kymo-objects-")


@dataclasses.dataclass
class Tools:
    """A compiler of C or C++, and the headers and library of a tracer."""

    compiler: list  # command
    probes: list  # command for files with probes; LTTng's probes must be compiled as C
    include: list
    libs: list
    gen_tp: str
    env: dict  # for gen_tp
    out: pathlib.Path

    def run(self, command, env=None):
        done = subprocess.run([str(c) for c in command], cwd=self.out, env=env, capture_output=True, text=True)
        if done.returncode or done.stderr:
            raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stderr}")

    def object(self, source, *flags, name=None):
        """
        Compiles a file of programs/ to an object; returns its path. A warning is a failure. Each
        command compiles once; sources that include headers of their own build are not kept.
        """
        out = self.out / (name or pathlib.Path(source).with_suffix(".o").name)
        probes = "CREATE_PROBES" in (PROGRAMS / source).read_text() or "-DTRACEPOINT_CREATE_PROBES" in flags
        command = [*(self.probes if probes else self.compiler), "-O2", "-Wall", "-Wextra", "-Werror", f"-I{PROGRAMS}", "-I.",
            *self.include, *flags, "-c", PROGRAMS / source]
        key = tuple(map(str, command))
        if key in objects:
            shutil.copy(objects[key], out)
            return out
        self.run([*CCACHE, *command, "-o", out])
        if not list(self.out.glob("*.h")):
            objects[key] = shutil.copy(out, pathlib.Path(kept.name, f"{len(objects)}.o"))
        return out

    def link(self, name, *parts):
        out = self.out / name
        driver = "g++" if "++" in self.compiler[0] else "gcc"
        self.run([driver, "-o", out, *parts, *self.libs, "-ldl"])
        return out


# Builds a case's program. Each function returns the program's command, and a library to preload or
# None.


def together(tools, case):
    return [tools.link("main", tools.object(f"{case.source}.c"), tools.object(f"{case.source}-tp.c"))], None


def alone(tools, case):
    return [tools.link("main", tools.object(f"{case.source}.c"))], None


def hidden(tools, case):
    """The program's tracepoints are not visible from outside."""
    flags = ["-DTRACEPOINT_HIDDEN_DEFINITION", "-DLTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION"]
    return [tools.link("main", tools.object("parts.c", *flags), tools.object("parts-tp.c", "-DTRACEPOINT_DEFINE", *flags))], None


def archive(tools, case):
    """
    The linker takes the provider out of an archive because the tracepoints' definition refers to
    it.
    """
    out = tools.out / "libparts.a"
    tools.run(["ar", "rc", out, tools.object("parts-tp.c")])
    return [tools.link("main", tools.object("parts.c", "-DTRACEPOINT_DEFINE"), out)], None


def shared(tools, case):
    """A library has everything except the calls."""
    provider = tools.object("parts-tp.c", "-fPIC", "-DTRACEPOINT_DEFINE")
    library = tools.link("libparts.so", "-shared", provider)
    return [tools.link("main", tools.object("parts.c"), library, f"-Wl,-rpath,{tools.out}")], None


def shared_probes(tools, case):
    """A library has the provider, the program has the definition."""
    library = tools.link("libparts.so", "-shared", tools.object("parts-tp.c", "-fPIC"))
    return [tools.link("main", tools.object("parts.c", "-DTRACEPOINT_DEFINE"), "-Wl,--no-as-needed", library,
        f"-Wl,-rpath,{tools.out}")], None


def dynamic(tools):
    return tools.link("main", tools.object("parts.c", *DYNAMIC)), \
        tools.link("libparts.so", "-shared", tools.object("parts-tp.c", "-fPIC"))


def loaded(tools, case):
    """The program loads the provider."""
    return dynamic(tools), None


def preloaded(tools, case):
    program, library = dynamic(tools)
    return [program], library


def absent(tools, case):
    """The provider is absent: nothing is recorded, and the program runs."""
    return [dynamic(tools)[0]], None


def plugin(tools, case):
    """
    A library with a provider of its own, in addition to the program's; the program unloads it.
    """
    library = tools.link("plugin.so", "-shared", tools.object("plugin.c", "-fPIC"))
    return [tools.link("main", tools.object("parts.c", "-DTRACEPOINT_DEFINE"), tools.object("parts-tp.c")), library, "plugin_run"], None


def versions(tools, case):
    """The program's library has another version of its provider, which nobody else sees."""
    library = tools.link("libversions.so", "-shared", tools.object("versions-lib.c", "-fPIC", "-fvisibility=hidden"), "-Wl,-Bsymbolic")
    return [tools.link("main", tools.object("versions.c", "-fvisibility=hidden"), library, f"-Wl,-rpath,{tools.out}")], None


def generated(tools, case):
    (tools.out / "generated.tp").write_text((PROGRAMS / "sample.tp").read_text())
    tools.run([tools.gen_tp, "generated.tp"], env=tools.env)
    return [tools.link("main", tools.object("sample.c"), tools.out / "generated.o")], None


@dataclasses.dataclass
class Case:
    name: str  # of the file of expectations
    source: str
    build: callable
    rule: str
    filter: str = None
    cplusplus: bool = False  # the case exists in C++ only
    of_2_13: bool = True  # LTTng-UST 2.13 has the feature, and records the events correctly


CASES = [
    *(Case(v, v, together, f"{v}:*") for v in ("version0", "version1", "variety")),
    Case("ended", "ended", together, "ended:*"),
    Case("extended", "extended", together, "extended:*", of_2_13=False),
    *(Case(name, "temporary", together, "temporary:*", text, cplusplus=True, of_2_13=False)
        for name, text in (("temporary", None), ("temporary-filter", 'aside == "aa*" && start == "aa"'))),
    *(Case(f"version0-filter{i}", "version0", together, "version0:aside", text) for i, text in enumerate([
        "hidden > 7 && n < 8", 'secret == "odd"', "half == 1.5", "some[1] == 1073741824", "two[0] == -1 && n == 3", "size == 4",
        'first == "ev" && text == "ev"', "two[1] == 5"])),
    *(Case("parts", "parts", how, "parts*") for how in (archive, hidden, shared, shared_probes, loaded, preloaded)),
    Case("absent", "parts", absent, "parts*"),
    Case("plugin", "parts", plugin, "parts*"),
    Case("messages", "messages", alone, "lttng_ust_trace*"),
    Case("versions", "versions", versions, "versions:*"),
    Case("generated", "sample", generated, "sample:*"),
]


def text_of(trace):
    """
    Returns babeltrace2's text of each event, without time and process: log level, model, name,
    fields.
    """
    if not any(pathlib.Path(trace).rglob("metadata")):
        return ""  # no program had such events
    done = subprocess.run(["babeltrace2", "--fields=loglevel,emf", "--no-delta", str(trace)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"babeltrace2 {trace}: {done.stderr}")
    text = re.sub(r"^\[[\d:.]+\] \S+ ", "", done.stdout, flags=re.MULTILINE)
    text = re.sub(r'file = "[^"]*/', 'file = "', text)
    return re.sub(r"\{ cpu_id = \d+ \}, ", "", text)
