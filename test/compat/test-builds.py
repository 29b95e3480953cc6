#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Builds of projects that look for LTTng-UST find Kymo if they are pointed to one directory: CMake,
autoconf, meson, pkg-config, lttng-gen-tp and plain -llttng-ust. The test installs Kymo to a
directory of its own.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
import kymotest  # noqa: E402
from kymotest import BUILD, SOURCE, check, equal  # noqa: E402

TP = """#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER hello
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./tp.h"
#if !defined(TP_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define TP_H
#include <lttng/tracepoint.h>
TRACEPOINT_EVENT(hello, world, TP_ARGS(int, n), TP_FIELDS(ctf_integer(int, n, n)))
#endif
#include <lttng/tracepoint-event.h>
"""
MAIN = """#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tp.h"
int main(void) { tracepoint(hello, world, 42); return 0; }
"""
TEMPLATE = "TRACEPOINT_EVENT(hello, world, TP_ARGS(int, n), TP_FIELDS(ctf_integer(int, n, n)))\n"

CMAKE = """cmake_minimum_required(VERSION 3.16)
project(hello C)
find_package(LTTngUST 2.16 REQUIRED)
find_program(GEN_TP lttng-gen-tp REQUIRED)
if(NOT LTTNGUST_HAS_TRACEF OR NOT LTTNGUST_HAS_TRACELOG)
  message(FATAL_ERROR "tracef or tracelog is missing")
endif()
add_executable(hello main.c)
target_include_directories(hello PRIVATE .)
target_link_libraries(hello LTTng::UST)
"""
CMAKE_PKG = """cmake_minimum_required(VERSION 3.16)
project(hello C)
find_package(PkgConfig REQUIRED)
pkg_check_modules(UST REQUIRED IMPORTED_TARGET lttng-ust>=2.16)
add_executable(hello main.c)
target_include_directories(hello PRIVATE .)
target_link_libraries(hello PkgConfig::UST)
"""
CMAKE_NAMES = """cmake_minimum_required(VERSION 3.16)
project(hello C)
find_path(LIBRARY_DIR NAMES liblttng-ust.so PATH_SUFFIXES lib REQUIRED)
find_path(INCLUDE_DIR NAMES lttng/tracepoint.h REQUIRED)
find_library(UST_LIBRARY lttng-ust PATHS ${LIBRARY_DIR} REQUIRED)
add_executable(hello main.c)
target_include_directories(hello PRIVATE . ${INCLUDE_DIR})
target_link_libraries(hello ${UST_LIBRARY} ${LIBRARY_DIR}/liblttng-ust-fork.so)
"""
CONFIGURE = """AC_INIT([hello], [1])
AC_PROG_CC
AC_CHECK_HEADERS([lttng/tracepoint.h lttng/ust-config.h], [], [AC_MSG_ERROR([a header is missing])])
AC_CHECK_LIB([lttng-ust], [lttng_ust_init_thread], [], [AC_MSG_ERROR([the library is missing])])
AC_CHECK_LIB([lttng-ust], [lttng_ust_probe_register], [], [AC_MSG_ERROR([a function is missing])])
AC_CHECK_PROG([GEN_TP], [lttng-gen-tp], [yes], [no])
AS_IF([test "$GEN_TP" = yes], [], [AC_MSG_ERROR([lttng-gen-tp is missing])])
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
"""
MAKEFILE = "hello: main.c\n\t@CC@ @CFLAGS@ @CPPFLAGS@ -I. -o $@ $< @LDFLAGS@ @LIBS@\n"
MESON = """project('hello', 'c')
ust = dependency('lttng-ust', version: '>=2.16')
executable('hello', 'main.c', dependencies: ust)
"""
SUBPROJECT = """project('hello', 'c')
kymo = dependency('kymo', fallback: 'kymo', default_options: ['daemons=false', 'tests=disabled'])
executable('native', 'native.c', dependencies: kymo)
executable('hello', 'main.c', dependencies: dependency('kymo-lttng', fallback: 'kymo'))
"""
NATIVE = """#include <kymo/tracepoint.h>
int main(void) { kymo_event(hello, world, kymo_i32(n, 42)); return 0; }
"""


BUILD_PREFIX = next(o["value"] for o in json.loads((BUILD / "meson-info" / "intro-buildoptions.json").read_text()) if o["name"] == "prefix")


def unreadable(folder, names):
    return [n for n in names if not os.access(os.path.join(folder, n), os.R_OK, follow_symlinks=False)]


def install(k):
    """Returns the prefix in which LTTng-UST seems to be."""
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", k.top / "root"], check=True,
        stdout=subprocess.DEVNULL)
    prefix = next(p for p in (k.top / "root").rglob("kymo-lttng") if p.is_dir())
    link = prefix / "bin" / "lttng-gen-tp"
    real = next((k.top / "root").rglob("kymo-gen-tp"))
    check(os.readlink(link).endswith("/kymo-gen-tp"), "lttng-gen-tp is a link to kymo-gen-tp")
    link.unlink()  # it points to the final place of the installation
    link.symlink_to(real)
    return prefix


def project(k, **files):
    top = k.top / "project"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    for name, text in {"tp.h": TP, "main.c": MAIN, **files}.items():
        (top / name).write_text(text)
    return top


def run(command, cwd, **env):
    done = subprocess.run([str(c) for c in command], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True)
    check(done.returncode == 0, f"{command}: {done.stdout}{done.stderr}")


def check_program(k, program):
    """The program records with Kymo, and does not use LTTng's library."""
    needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    libraries = [line for line in needed.splitlines() if "(NEEDED)" in line]
    check(libraries and "lttng" not in str(libraries), f"{program} uses no library of LTTng's: {needed}")
    trace = k.top / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    k.kymo("record", "--no-summary", "-o", trace, "-e", "hello:*", "--", program)
    text = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True).stdout
    check("hello:world" in text and "n = 42" in text, f"the event is recorded: {text}")


def test_cmake(k):
    prefix = install(k)
    for lists in (CMAKE, CMAKE_PKG, CMAKE_NAMES):
        top = project(k, **{"CMakeLists.txt": lists})
        run(["cmake", "-S", ".", "-B", "b", f"-DCMAKE_PREFIX_PATH={prefix}"], top)
        run(["cmake", "--build", "b"], top)
        check_program(k, top / "b" / "hello")


def test_autoconf(k):
    prefix = install(k)
    top = project(k, **{"configure.ac": CONFIGURE, "Makefile.in": MAKEFILE})
    run(["autoconf"], top)
    run(["./configure", f"CPPFLAGS=-I{prefix / 'include'}", f"LDFLAGS=-L{prefix / 'lib'}", f"PATH={prefix / 'bin'}:{os.environ['PATH']}"], top,
        PATH=f"{prefix / 'bin'}:{os.environ['PATH']}")
    run(["make"], top)
    check_program(k, top / "hello")


def test_meson(k):
    prefix = install(k)
    top = project(k, **{"meson.build": MESON})
    run(["meson", "setup", "b", f"-Dpkg_config_path={prefix / 'lib' / 'pkgconfig'}"], top)
    run(["ninja", "-C", "b"], top)
    check_program(k, top / "b" / "hello")


def test_subproject(k):
    """A project may have these sources as a subproject: a wrap, or a git submodule."""
    top = project(k, **{"meson.build": SUBPROJECT, "native.c": NATIVE})
    (top / "subprojects").mkdir()
    (top / "subprojects" / "kymo").symlink_to(SOURCE)
    run(["meson", "setup", "b", "--force-fallback-for=kymo,kymo-lttng"], top)
    run(["ninja", "-C", "b", "native", "hello"], top)
    for name in ("native", "hello"):
        check_program(k, top / "b" / name)


def test_make(k):
    """Plain flags, all libraries that programs name, and pkg-config."""
    prefix = install(k)
    top = project(k)
    libraries = ["-llttng-ust", "-llttng-ust-fork", "-llttng-ust-common", "-llttng-ust-tracepoint", "-llttng-ust-dl", "-ldl"]
    run(["gcc", f"-I{prefix / 'include'}", "-I.", "-o", "hello", "main.c", f"-L{prefix / 'lib'}", *libraries], top)
    check_program(k, top / "hello")
    run(["sh", "-c", "gcc -I. -o hello main.c $(pkg-config --cflags --libs 'lttng-ust >= 2.16')"], top,
        PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig"))
    check_program(k, top / "hello")


def test_beside_lttng(k):
    """The flags of pkg-config find Kymo's headers if LTTng-UST is in the same prefix."""
    install(k)
    top = project(k)
    files = next((k.top / "root").rglob("kymo-lttng.pc")).parent
    include = next((k.top / "root").rglob("include/kymo")).parent
    (include / "lttng").mkdir()
    (include / "lttng" / "tracepoint.h").write_text("#error LTTng-UST's header\n")
    for path in files.glob("*.pc"):
        path.write_text(re.sub(r"^prefix=", f"prefix={k.top / 'root'}", path.read_text(), flags=re.MULTILINE))
    run(["sh", "-c", "gcc -I. -o hello main.c $(pkg-config --cflags --libs kymo-lttng)"], top, PKG_CONFIG_PATH=str(files))
    check_program(k, top / "hello")


def test_generator(k):
    prefix = install(k)
    top = project(k, **{"gen.tp": TEMPLATE, "main.c": '#include "gen.h"\nint main(void) { tracepoint(hello, world, 42); return 0; }\n'})
    for output in (["--output=gen.h"], ["--output", "gen.c"], ["-o", "gen.o"]):
        run(["lttng-gen-tp", "gen.tp", *output], top, PATH=f"{prefix / 'bin'}:{os.environ['PATH']}", PKG_CONFIG_PATH="/nonexistent")
    run(["gcc", f"-I{prefix / 'include'}", "-I.", "-o", "hello", "main.c", "gen.o", f"-L{prefix / 'lib'}", "-llttng-ust"], top)
    check_program(k, top / "hello")


def test_generator_arguments(k):
    """Arguments and comments as lttng-gen-tp takes them."""
    events = "# all\n" + TEMPLATE.replace("int, n),", 'int, n), # "the" *event*\n', 1) + '/* bug #12 */ // "a # b"\n'
    top = project(k, **{"gen.tp": events, "of two.tp": TEMPLATE.replace("hello", "two")})
    flags = f"-I{SOURCE / 'include' / 'kymo-lttng'} -I{SOURCE / 'include'}"
    for arguments, made in ((["gen.tp", "of two.tp"], ["gen.c", "gen.h", "gen.o", "of two.c", "of two.h", "of two.o"]),
            (["-ob.o", "-o", "b.c", "gen.tp", "--output=b.h"], ["b.c", "b.h", "b.o"]), (["-vo", "x y.h", "--", "gen.tp"], ["x y.h"])):
        run(["sh", SOURCE / "scripts" / "kymo-gen-tp", *arguments], top, CPPFLAGS=flags)
        found = sorted(p for p in top.iterdir() if p.suffix in (".h", ".c", ".o") and p.name not in ("main.c", "tp.h"))
        equal([p.name for p in found], made, f"files of {arguments}")
        for path in found:
            path.unlink()


def test_where_it_was_installed(k):
    """
    A program without a run path loads the library from the place of its installation, also as a
    static PIE.
    """
    install(k)
    include = next((k.top / "root").rglob("include/kymo")).parent
    library = next(p for p in (k.top / "root").rglob("libkymo.so.0"))
    (include / "kymo" / "detail" / "installed.h").write_text(f'#define KYMO__INSTALLED "{library}"\n')
    (k.top / "main.c").write_text("#include <kymo/tracepoint.h>\nint main(void) { kymo_event(hello, world, kymo_i32(n, 42)); return 0; }\n")
    run(["gcc", f"-I{include}", "-o", "hello", "main.c"], k.top)
    pc = next((k.top / "root").rglob("kymo.pc")).read_text()
    check("rpath" not in pc, f"pkg-config names no run path: {pc}")
    k.env.pop("LD_LIBRARY_PATH", None)
    trace = k.top / "trace"
    k.kymo("record", "--no-summary", "-o", trace, "-e", "hello:*", "--", "env", "-u", "LD_LIBRARY_PATH", k.top / "hello")
    text = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True).stdout
    check("n = 42" in text, f"the event is recorded: {text}")
    archive = next((k.top / "root").rglob("libkymo.a")).parent
    run(["gcc", "-static-pie", f"-I{include}", "-o", "static", "main.c", "-Wl,--undefined=kymo_object_register", f"-L{archive}", "-l:libkymo.a", "-pthread"],
        k.top)
    status = subprocess.run([k.top / "static"]).returncode
    check(status == 0, "a static PIE runs")


SWITCHED = """set -eu
    program=$1 daemon=$2
    events()
    {
        "$KYMO" record --no-summary -o "$TOP/$1" -e 'hello:*' -- "$program"
        echo "$1: $(ls "$TOP/$1" 2>/dev/null | wc -l)"
    }
    mount --bind "$TOP/etc" /etc
    mount --bind "$TOP/root/usr/local" /usr/local
    mkdir -p /var/cache/ldconfig && mount -t tmpfs none /var/cache/ldconfig
    unset LD_LIBRARY_PATH
    switch=/usr/local/sbin/kymo-lttng-switch
    $switch status; events before
    $switch on; $switch on; $switch status; events on
    ldd "$program" "$daemon" | grep -F 'lttng-ust' | sort -u
    $switch off; $switch off; $switch status; events off
"""


def test_system_switch(k):
    """
    kymo-lttng-switch changes which library programs for LTTng-UST find, and back, for the whole
    system: here in a mount namespace with a copy of /etc.
    """
    options = ["-m"] if os.geteuid() == 0 else ["-U", "-r", "-m"]
    kymotest.need_unshare(*options)
    check(BUILD_PREFIX == "/usr/local", "the build's prefix is the one that the test mounts")
    install(k)
    top = project(k)
    run(["gcc", "-I.", "-o", "hello", "main.c", "-llttng-ust", "-ldl"], top)
    (top / "daemon.c").write_text("int main(void) { return 0; }\n")
    run(["gcc", "-o", "daemon", "daemon.c", "-Wl,--no-as-needed,--unresolved-symbols=ignore-in-shared-libs", "-llttng-ust-ctl"], top)
    shutil.copytree("/etc", k.top / "etc", symlinks=True, ignore=unreadable)
    done = k.run(["unshare", *options, "sh", "-c", SWITCHED, "sh", top / "hello", top / "daemon"], env={"KYMO": str(kymotest.CLI), "TOP": str(k.top)})
    lines = [re.sub(r" \(0x[0-9a-f]*\)|^\s+", "", line) for line in done.stdout.splitlines()]
    check([line.split(":")[0] for line in lines if line.startswith("o")] == ["off", "on", "on", "on", "on", "off", "off", "off", "off"], done.stdout)
    check("before: 0" in lines and "on: 1" in lines and "off: 0" in lines, f"events only while it is on: {done.stdout}{done.stderr}")
    loaded = [line for line in lines if " => " in line]
    check(any(line.startswith("liblttng-ust.so.1 => /usr/local/") for line in loaded), f"the program has Kymo's library: {loaded}")
    daemon = [line for line in loaded if re.match("liblttng-ust-(common|ctl)", line)]
    check(daemon and not any("/usr/local" in line for line in daemon), f"LTTng's daemon has its own libraries: {loaded}")


@kymotest.without_sanitizers  # a script: it uses nothing of the build
def test_switch_with_spaces(k):
    """Kymo's directory may have spaces, and another library may be found."""
    name = "liblttng-ust.so.1"
    (k.top / "switch").write_text((SOURCE / "src" / "lttng" / "kymo-lttng-switch.in").read_text().replace("@DIRECTORY@", "/a place"))
    ldconfig = k.top / "ldconfig"
    for path, wanted in (("/a place", "on: programs for LTTng-UST record with Kymo"), ("/lib/a b", "off: programs for LTTng-UST record with LTTng")):
        ldconfig.write_text(f"#!/bin/sh\nprintf '\\t%s (libc6,x86-64) => %s\\n' {name} '{path}/{name}' {name} /lib/{name}\n")
        ldconfig.chmod(0o755)
        done = k.run(["sh", k.top / "switch", "status"], env={"PATH": f"{k.top}:{os.environ['PATH']}"})
        equal(done.stdout, f"{wanted} ({path}/{name})\n", f"with {path}")


if __name__ == "__main__":
    kymotest.main()
