#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Compiles each installed header alone as C11 (pedantic), C++11, C++17 and C++20 without a warning.
The same for use.c, because macros are compiled only where they are used. Also for other machine
architectures.

For these checks the headers lose the pragma that makes them system headers, which would hide the
warnings. With the pragma, use.c compiles without a warning when every warning is enabled. Mistakes
do not compile, and the compiler's message names them. The other sources are programs that take
their own events. The test runs them, also with the address sanitizer.

    test-headers.py INCLUDE-DIRECTORY USE.C PROGRAM... COMPILER...
"""

import errno
import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

STANDARDS = [("c", "c11"), ("c", "gnu17"), ("c++", "c++11"), ("c++", "c++17"), ("c++", "c++20")]
# The kernel's headers for -m32 are those of 64 bits, if gcc-multilib does not point there.
M32 = ["-m32", "-idirafter", "/usr/include/x86_64-linux-gnu"]
CODE = [[], ["-fPIC"], ["-fno-pie"], M32, ["-mcmodel=large", "-fPIC"]]
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wundef", "-Werror", "-pedantic"]
SYSTEM = "#pragma GCC system_header\n"
# These disable warnings about the program, which are not about macros: unused macros and functions,
# padding.
GNU_STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Wundef", "-Wconversion", "-Wsign-conversion", "-Wcast-qual", "-Wcast-align",
    "-Wdouble-promotion", "-Wformat=2", "-Wfloat-equal", "-Wswitch-enum", "-Wredundant-decls", "-Wpointer-arith", "-Wvla",
    "-Wmissing-declarations", "-pedantic", "-Werror"]
C_STRICT = ["-Wstrict-prototypes", "-Wmissing-prototypes", "-Wbad-function-cast", "-Wc++-compat", "-Wnested-externs"]
CPP_STRICT = ["-Wold-style-cast", "-Wuseless-cast", "-Wzero-as-null-pointer-constant", "-Weffc++", "-Wsuggest-override"]
CLANG_STRICT = ["-Weverything", "-Wno-c++98-compat", "-Wno-c++98-compat-pedantic", "-Wno-unused-macros", "-Wno-padded",
    "-Wno-declaration-after-statement", "-Wno-covered-switch-default", "-Wno-reserved-identifier",
    "-Wno-unknown-warning-option", "-Wno-unsafe-buffer-usage", "-Wno-pre-c++17-compat", "-Wno-pre-c++14-compat", "-Wno-unused-template",
    "-Wno-poison-system-directories", "-Wno-used-but-marked-unused", "-ferror-limit=0", "-Werror"]

# A program that has macros with the names of attributes, kinds and types begins so.
BESIDE = "".join(f"#include <{h}>\n" for h in ("stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "sys/types.h")) \
    + "#ifdef __cplusplus\n#include <string>\n#include <type_traits>\n#endif\n" \
    + "".join(f"#define {a} __attribute__(({a}))\n" for a in ("unused", "used", "retain", "weak", "cold", "always_inline", "nothrow")) \
    + "".join(f"#define {a} (none)\n" for a in ("section", "visibility", "format", "printf", "constructor", "destructor", "cleanup", "weakref", "error",
        "no_instrument_function")) \
    + "".join(f"#define {w} (none)\n" for w in "ONE MORE SCALAR BYTES ARRAY SEQUENCE ENUM STRING TEXT BLOB STRUCT VARIANT NESTED OPTIONAL "
        "i8 i16 i64 u8 u16 u32 u64 x8 x16 x32 x64 net16 net32 net64 f32 f64 string P S T V".split()) \
    + "".join(f"#define {f}(...) (none) %\n" for f in "add enter finish forget invalidate leave put record record_flat record_word".split()) \
    + "#include <kymo/context.h>\n#include <kymo/statedump.h>\n"

# Declarations, mistakes, and the part of the compiler's message that names each mistake.
TYPES = """#include <kymo/nested.h>
#include <kymo/span.h>
#include <kymo/state.h>
KYMO_STRUCT(point, const int *p, kymo_i32(x, *p))
KYMO_VARIANT(either, const int *p, *p, kymo_case(1, kymo_i32(x, *p)))
"""
MISTAKES = {
    'kymo_event("shop", paid)': 'names_are_not_quoted_',
    'kymo_event(shop, "paid", kymo_u8(x, n))': 'names_are_not_quoted_',
    'kymo_event(shop, paid, kymo_u8("x", n))': 'names_are_not_quoted_',
    'kymo_event(shop, paid, kymo_struct("x", point, &n))': 'names_are_not_quoted_',
    'kymo_span("shop", paid)': 'names_are_not_quoted_',
    'kymo_async_begin(shop, "paid", n)': 'names_are_not_quoted_',
    'kymo_state_event(shop, "paid", kymo_u8(x, n))': 'names_are_not_quoted_',
    'kymo_event(shop)': 'the_name_is_missing',
    'kymo_event(, paid)': 'the_name_is_missing',
    'kymo_span(shop)': 'the_name_is_missing',
    'kymo_event(shop, paid, kymo_u8(, n))': 'the_name_is_missing',
    'kymo_event(shop, paid, kymo_integer(x, n))': 'kymo_integer',
    'kymo_event(shop, paid, n)': 'F_n',
    'kymo_event(shop, paid, kymo_struct(x, either, &n))': 'STRUCT_either',
    'kymo_event(shop, paid, kymo_seq_struct(x, either, &n, 1))': 'STRUCT_either',
    'kymo_event(shop, paid, kymo_optional_struct(x, either, &n))': 'STRUCT_either',
    'kymo_event(shop, paid, kymo_variant(x, point, &n))': 'VARIANT_point',
    'kymo_event(shop, paid, kymo_enum(x, colour, n))': 'enum_colour',
}

# Values that are wider than their fields, which compilers detect when they generate code; and
# values that are not.
WIDE = ["kymo_i32(x, l)", "kymo_u32(x, u)", "kymo_u16(x, u)", "kymo_i8(x, l + n)", "kymo_x32(x, sizeof(n) + u)", "kymo_i32(x, d)",
    "kymo_net32(x, u)"]
NARROW = ["kymo_i64(x, l)", "kymo_u32(x, sizeof(n))", "kymo_i32(x, 5L)", "kymo_u8(x, n)", "kymo_i16(x, n + 1)", "kymo_f32(x, d)",
    "kymo_i32(x, (int)l)", "kymo_bool(x, l)", "kymo_u8(x, 1 == l)", "kymo_i32(x, s.bits)"]
# a function with one of them
WIDTHS = """#line 1 "part-{part}"
void f{n}(int n, long l, unsigned long u, double d, struct s s);
void f{n}(int n, long l, unsigned long u, double d, struct s s)
{{
    (void)n, (void)l, (void)u, (void)d, (void)s;
    kymo_event(a, b, {field});
}}
"""
COROUTINE = """#include <coroutine>
#include <kymo/span.h>
struct task {
    struct promise_type {
        task get_return_object() { return {}; }
        std::suspend_never initial_suspend() { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
};
task work() { kymo_span(a, b); co_await std::suspend_never{}; }
"""
PART = re.compile(r"part-(\d+)")
ERROR = re.compile(r"^(?=.* error: )", re.MULTILINE)


def compile_text(compiler, language, standard, include, text, code=("-fsyntax-only",)):
    command = [compiler, f"-x{language}", f"-std={standard}", *WARNINGS, f"-I{include}", f"-I{include}/kymo-lttng", *code, "-S",
        "-o", os.devnull, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True)


def check_alone(compiler, include, texts):
    """
    Compiles each text alone in each language; returns the number of failures. The sources of one
    language are compiled by one command.
    """
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        paths = [pathlib.Path(directory, name.replace("/", ":")) for name in texts]
        for path, text in zip(paths, texts.values()):
            path.write_text(text)
        for language, standard in STANDARDS:
            command = [compiler, f"-x{language}", f"-std={standard}", *WARNINGS, f"-I{include}", f"-I{include}/kymo-lttng", "-fsyntax-only"]
            done = subprocess.run([*one_process(command, paths[0]), *paths], capture_output=True, text=True)
            if done.returncode:
                failed += 1
                print(f"FAIL {compiler} -std={standard}\n{done.stderr}")
    return failed


def one_process(command, path):
    """
    Returns clang's own command for a source, without its name. It reads each of several sources
    from a new beginning, as do the processes that the usual command starts for them. A start of
    clang takes longer than a header.
    """
    if command[0] != "clang":
        return command
    steps = subprocess.run([*command, "-###", path], capture_output=True, text=True, check=True).stderr.splitlines()
    words = shlex.split(steps[-1])
    if "-cc1" not in words or words[-1] != str(path):
        sys.exit(f"FAIL: not a command of clang's: {steps[-1]}")
    return words[:-1]


def check_code(compiler, include, text):
    """
    Compiles the text for each machine architecture that the compiler has; returns the number of
    failures.
    """
    failed = 0
    for language, standard in (("c", "c11"), ("c++", "c++11")):
        for code in CODE:
            if compile_text(compiler, language, standard, include, "#include <stdlib.h>\nextern int i;\n", code).returncode:
                print(f"skipped {compiler} -std={standard} {' '.join(code)}")
                continue
            for level in ("-O0", "-O2"):
                done = compile_text(compiler, language, standard, include, text, [*code, level])
                if done.returncode:
                    failed += 1
                    print(f"FAIL {compiler} -std={standard} {level} {' '.join(code)}\n{done.stderr}")
    return failed


def compile_parts(parts, compiler, language, standard, include, head):
    """
    Compiles one text; returns its exit status, and the compiler's errors in each of its parts. The
    lines that follow an error name the macro's place in the part.
    """
    text = "".join(f'#line 1 "part-{number}"\n{part}\n' for number, part in enumerate(parts))
    no_limit = ["-ferror-limit=0"] if compiler == "clang" else []
    done = compile_text(compiler, language, standard, include, head + text, ["-fsyntax-only", *no_limit])
    errors = [""] * len(parts)
    for error in ERROR.split(done.stderr)[1:]:
        part = PART.search(error)
        errors[int(part[1]) if part else -1] += error
    return done.returncode, errors


def check_mistakes(compiler, include):
    """
    Returns the number of mistakes that compile, or for which the compiler has another message.
    """
    failed, mistakes = 0, {"(void)n": "", **MISTAKES}
    for language, standard in STANDARDS:
        parts = [f"int f{i}(int n);\nint f{i}(int n) {{ {mistake}; return n; }}" for i, mistake in enumerate(mistakes)]
        status, messages = compile_parts(parts, compiler, language, standard, include, TYPES)
        for (mistake, wanted), said in zip(mistakes.items(), messages):
            if bool(said) != bool(wanted) or wanted not in said or not status:
                failed += 1
                print(f"FAIL {mistake}: {compiler} -std={standard}\n{said}")
    return failed


def check_widths(compiler, include):
    """
    Returns the number of fields that accept values which are too wide, or refuse other values.
    """
    failed = 0
    for language, standard in STANDARDS:
        fields = [*WIDE, *NARROW]
        # clang's errors in C++ do not name the place: there each wide field has its own source.
        sources = [fields] if (compiler, language) != ("clang", "c++") else [*([f] for f in WIDE), NARROW]
        for source in sources:
            parts = "".join(WIDTHS.format(n=n, part=fields.index(field), field=field) for n, field in enumerate(source))
            for level in ("-O0", "-O2"):
                done = compile_text(compiler, language, standard, include,
                    f"#include <kymo/tracepoint.h>\nstruct s {{ unsigned bits : 3; }};\n{parts}", [level])
                refused = refused_in(done.stderr) if len(sources) == 1 else set(source) if "wider than its field" in done.stderr else set()
                if refused != set(source) & set(WIDE) or (done.returncode != 0) != bool(refused):
                    failed += 1
                    print(f"FAIL {source}: {compiler} -std={standard} {level}\n{done.stderr}")
    return failed


def refused_in(errors):
    """
    Returns the fields that the compiler calls too narrow. It names the part before the error, or in
    the line before if the error is in a function of the headers.
    """
    found = set()
    for before in errors.split("wider than its field")[:-1]:
        found.add([*WIDE, *NARROW][int(PART.findall(before)[-1])])
    return found


def check_strict(compiler, include, use):
    """Compiles the text with every warning; returns the number of failures."""
    failed = 0
    for language, standard in STANDARDS:
        flags = CLANG_STRICT if compiler == "clang" else GNU_STRICT + (C_STRICT if language == "c" else CPP_STRICT)
        for level in ("-O0", "-O2"):
            command = [compiler, f"-x{language}", f"-std={standard}", *flags, level, f"-I{include}", "-S", "-o", os.devnull, "-"]
            done = subprocess.run(command, input=use, capture_output=True, text=True)
            if done.returncode:
                failed += 1
                print(f"FAIL {' '.join(command)}\n{done.stderr}")
    return failed


@functools.cache
def links(driver, *code):
    """Returns whether programs for such code can be linked here."""
    language = "-xc++" if driver.endswith("++") else "-xc"
    return not subprocess.run([driver, *code, language, "-", "-o", os.devnull], input="int main(void) { return 0; }\n",
        capture_output=True, text=True).returncode


def run(program):
    """Returns the program's status. An emulator runs it if the kernel does not (32 bits)."""
    try:
        return subprocess.run([program]).returncode
    except OSError as e:
        if e.errno != errno.ENOEXEC:
            raise
        return subprocess.run(["qemu-i386", program]).returncode


def check_coroutine(include):
    """
    A span in a coroutine, whose frame has its variables: no warning, as gcc gives it also for
    system headers. Returns the number of failures.
    """
    done = subprocess.run(["g++", "-xc++", "-std=c++20", "-Werror", f"-I{include}", "-c", "-o", os.devnull, "-"], input=COROUTINE, capture_output=True, text=True)
    if done.returncode:
        print(f"FAIL coroutine: {done.stderr}")
    return done.returncode != 0


def check_run(compiler, include, source):
    """
    Runs the program with 64 and with 32 bits, and with sanitizers; returns the number of failures.
    """
    failed = 0
    driver = {"gcc": "g++", "clang": "clang++"}[compiler] if source.endswith("pp") else compiler
    sanitized = ["-g", "-fsanitize=address,undefined", "-fsanitize-address-use-after-scope", "-fno-sanitize-recover=all"]
    with tempfile.TemporaryDirectory() as directory:
        program = pathlib.Path(directory, "program")
        for code in ([], M32, sanitized, ["-std=c++17"] if source.endswith("pp") else ["-O0"]):
            if not links(driver, *code):
                print(f"skipped {driver} {' '.join(code)}: does not link")
                continue
            subprocess.run([driver, "-O2", *code, f"-I{include}", "-o", program, source], check=True)
            status = run(program)
            print(f"{'FAIL' if status else 'ran'} {driver} {' '.join(code)} {source}: {status}")
            failed += status != 0
    return failed


def show_warnings(include, copy):
    """Copies the headers to a directory in which they are not system headers."""
    shutil.copytree(include, copy)
    for header in copy.rglob("*.h"):
        header.write_text(header.read_text().replace(SYSTEM, ""))
    return copy


def main():
    with tempfile.TemporaryDirectory() as directory:
        return check(pathlib.Path(sys.argv[1]), show_warnings(sys.argv[1], pathlib.Path(directory, "include")))


def check(installed, include):
    use = pathlib.Path(sys.argv[2]).read_text()
    programs = [a for a in sys.argv[3:] if a.endswith((".c", ".cpp"))]
    compilers = [c for c in sys.argv[3:] if c not in programs and shutil.which(c)]
    headers = sorted(p.relative_to(include / folder) for folder in (".", "kymo-lttng")
        for p in (include / folder).glob("lttng/**/*.h" if folder != "." else "kymo/**/*.h"))
    if not headers or not compilers:
        sys.exit(f"FAIL: {len(headers)} headers, compilers: {compilers}")
    if compile_text(compilers[0], "c", "c11", include, "int f(void) { return ({ 1; }); }\n").returncode == 0:
        sys.exit("FAIL: a statement expression passed as pedantic C11: this test tests nothing")

    texts = {str(h): f"#include <{h}>\nextern int only_this;\n" for h in headers}
    texts["use of the macros"] = use
    texts["use beside a program's macros"] = BESIDE + use
    failed = sum(check_alone(compiler, include, texts) for compiler in compilers)
    print(f"checked {', '.join(texts)}")
    failed += sum(check_code(compiler, include, use) for compiler in compilers)
    failed += sum(check_mistakes(compiler, include) for compiler in compilers)
    failed += sum(check_widths(compiler, installed) + check_strict(compiler, installed, use) for compiler in compilers)
    failed += sum(check_run(compiler, installed, p) for compiler in compilers for p in programs)
    failed += check_coroutine(installed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
