#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The work of reading a trace grows as the trace does, whatever is in it: for four times as many
events of one kind, a command executes about four times as many instructions (cachegrind). The work
of shipping a trace grows as the number of its files does.

    test-linear.py KYMO
"""

import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
import answers  # noqa: E402

# A table that grows and a sort cost a little more than four times as much.
GROWTH = 5
KERNEL = 0xFFFFFFFF81000000
COLLECTED = re.compile(r"I\s+refs:\s+([\d,]+)")


def nested(n):
    """Each span in all others of its thread."""
    return [("s:outer_begin", 1, 0)] * n + [("s:outer_end", 1, 0)] * n


def open_at_once(n):
    """Asynchronous spans, of which the first that began ends first."""
    return [("s:far_begin", i) for i in range(n)] + [("s:far_end", i) for i in range(n)]


def of_one_number(n):
    return [("s:far_begin", 7)] * n + [("s:far_end", 7)] * n


def in_stages(n):
    """Asynchronous spans with others of their number."""
    names = "far", "near"
    return [(f"s:{name}_{end}", i) for end in ("begin", "end") for i in range(n) for name in names]


def of_many_threads(n):
    return [(f"s:outer_{end}", i, 0) for end in ("begin", "end") for i in range(n)]


def at_one_time(n):
    return [("s:outer_begin", 1, 0), ("s:outer_end", 1, 0)] * n


def of_one_hash(n):
    """Texts that FNV-1a does not distinguish: behind a quotation mark, it has the same state after
    each part."""
    texts = map("".join, itertools.product(("OIklEB", "ZMiXDP"), repeat=13))
    return [("s:named", text) for text in itertools.islice(texts, n)]


def never_ended(n):
    """Spans, and inside them others that do not end."""
    return [("s:outer_begin", 1, 0)] * n + [("s:inner_begin", 1, 0)] * n + [("s:outer_end", 1, 0)] * n


def of_files(n):
    """Files at other addresses, then at the same one."""
    return [("kymo_lib:load", 4096 * (i + 1), 4096, f"/{i}") for i in range(n)] + [("kymo_lib:load", 4096, 4096, f"/{i}") for i in range(n)] + [("s:at", 4096)]


def before_losses(n):
    """Threads, spans and locks in the first half; then as many losses."""
    spans = [("s:outer_begin", i, 0, {"tid": i}) for i in range(n)]
    return spans + [("pthread:mutex_lock_acq", i + 1, 0, {"tid": i}) for i in range(n)] + [("lost",)] * n


def of_many_names(n):
    return [(f"a:{i}", 7) for i in range(n)]


def in_the_kernel(n):
    return [("s:at", KERNEL + i) for i in range(n)]


CASES = {
    "explain": ((nested, 1500), (in_stages, 1500), (of_many_threads, 1000)),
    "export --to=otlp": ((open_at_once, 2000), (of_many_threads, 1000)),
    "export --to=sqlite": ((of_many_names, 250),),
    "report": ((nested, 1000), (of_one_number, 3000), (before_losses, 1000)),
    "sql": ((of_many_names, 250),),
    "stat": ((nested, 1000), (open_at_once, 1000), (of_one_number, 1000), (of_many_threads, 1000), (at_one_time, 1000), (never_ended, 1000)),
    "view --symbols": ((of_files, 1000), (in_the_kernel, 2000)),
    "stat --locks": ((before_losses, 1000),),
    "stat --by=text": ((of_one_hash, 2000),),
}
FILES = 500
# A sender waits now more often, now less. If it compared each file with all others, four times as
# many files would cost sixteen times as much.
GROWTH_OF_SHIPPING = 8


def write(path, events, step):
    near = {f"s:near_{end}": [("u64", "async_id")] for end in ("begin", "end")}
    numbers = {name: [("u64", "n")] for name, *_ in events if name.startswith("a:")}
    t = answers.Trace(answers.SPAN_EVENTS | near | numbers | {"s:named": [("string", "text")], "s:at": [("x64", "ip")],
        "kymo_lib:load": [("x64", "baddr"), ("u64", "memsz"), ("string", "path")],
        "pthread:mutex_lock_acq": [("x64", "mutex"), ("i64", "status")]})
    records, n_lost = [], 0
    for i, (name, *values) in enumerate(events):
        time, who = 1 + i * step, values.pop() if values and isinstance(values[-1], dict) else {}
        if name == "lost":
            n_lost += 1
            t.packet(0, [], n_lost, time, time)
            continue
        records.append(t.record(time, name, *values, **who))
        if len(records) == 1000 or i + 1 == len(events) or events[i + 1][0] == "lost":
            t.packet(0, records, n_lost)
            records = []
    t.write(path)
    (path / "index").mkdir()
    (path / "index" / "kallsyms").write_text("".join(f"{KERNEL:x} T name{i}\n" for i in range(len(events))))
    return path


def write_files(path, n):
    """Writes a trace of n streams."""
    write(path, [("s:at", 1)], 10)
    (stream,) = (p for p in path.iterdir() if p.is_file() and p.name != "metadata")
    for i in range(n):
        shutil.copy(stream, path / f"copy_{i}")
    return path


def executed(kymo, top, command, trace):
    """Returns the instructions that the command executes."""
    name, *options = command.split()
    options += ["-o", f"{trace}.output"] if name in ("export", "report") else []
    options += ["SELECT count(*) FROM events"] if name == "sql" else []
    options += [f"exec:{kymo} receive {trace}.output"] if name == "ship" else []
    done = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={top}/counted", kymo, name, str(trace), *options],
        capture_output=True, text=True, timeout=300)
    match = COLLECTED.search(done.stderr)
    if done.returncode > 1 or not match:
        raise AssertionError(f"{command} {trace} ended with {done.returncode}: {done.stderr[-500:]}")
    return int(match[1].replace(",", ""))


def main(kymo):
    if not shutil.which("valgrind"):
        print("valgrind is missing (Debian package valgrind)")
        return 77
    failed = False
    has_sqlite = "has no SQLite" not in subprocess.run([kymo, "sql", "/", ""], capture_output=True, text=True).stderr
    for command, cases in CASES.items():
        if not has_sqlite and "sql" in command:
            print(f"this build has no SQLite: {command} is left out")
            continue
        for make, n in cases:
            with tempfile.TemporaryDirectory(prefix="kymo-test-") as top:
                top = pathlib.Path(top)
                few, many = (executed(kymo, top, command, write(top / str(i), make(i), 0 if make is at_one_time else 10)) for i in (n, 4 * n))
            growth = many / few
            failed |= growth > GROWTH
            print(f"{command}, {make.__name__}: {few} instructions for {n}, {growth:.1f} times as many for {4 * n}{' TOO MANY' if growth > GROWTH else ''}", flush=True)
    with tempfile.TemporaryDirectory(prefix="kymo-test-") as top:
        few, many = (executed(kymo, top, "ship", write_files(pathlib.Path(top) / f"t{n}", n)) for n in (FILES, 4 * FILES))
    failed |= many / few > GROWTH_OF_SHIPPING
    print(f"ship: {few} instructions for {FILES} files, {many / few:.1f} times as many for {4 * FILES}{' TOO MANY' if many / few > GROWTH_OF_SHIPPING else ''}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
