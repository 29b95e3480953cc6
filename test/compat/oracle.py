#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
oracle.py [--write] [CASE...]: builds the same programs (compat.py) with LTTng-UST, records them
with it, and compares the traces with expected/. --write: writes these files. It needs Debian's
liblttng-ust-dev and lttng-tools.
"""

import difflib
import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import compat


class Lttng:
    """A session daemon with its own home directory."""

    def __init__(self, top):
        self.top = top
        self.env = {**os.environ, "LTTNG_HOME": str(top), "LTTNG_UST_REGISTER_TIMEOUT": "-1"}
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.env, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while subprocess.run(["lttng", "--no-sessiond", "list"], env=self.env, capture_output=True).returncode:
            if self.daemon.poll() is not None or time.monotonic() > end:
                sys.exit("oracle: lttng-sessiond does not start; is another one running?")
            time.sleep(0.05)

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait()

    def cli(self, *args):
        subprocess.run(["lttng", "--no-sessiond", *args], env=self.env, check=True, capture_output=True)

    def record(self, case, command, preload, check=True):
        out = self.top / f"trace-{case.build.__name__}-{case.name}"
        session = out.name
        self.cli("create", session, "-o", str(out))
        self.cli("enable-event", "-u", case.rule, "-s", session, *(["--filter", case.filter] if case.filter else []))
        self.cli("start", session)
        subprocess.run([str(c) for c in command], env={**self.env, **({"LD_PRELOAD": str(preload)} if preload else {})}, check=check,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.cli("destroy", session)
        return compat.text_of(out)


def run(case, lttng, top):
    out = pathlib.Path(tempfile.mkdtemp(dir=top))
    tools = compat.Tools(["gcc", "-std=gnu11"], ["gcc", "-std=gnu11"], [], ["-llttng-ust"], "lttng-gen-tp", os.environ, out)
    command, preload = case.build(tools, case)
    return lttng.record(case, command, preload)


def options():
    """Returns the commands of lttng(1), and the options of each."""
    def words(*command):
        return subprocess.run(["lttng", *command], capture_output=True, text=True, check=True).stdout.split()

    return "".join(f"{c}: {' '.join(words(c, '--list-options'))}\n" for c in words("--list-commands"))


# Options of other programs, and slips, in the manual pages.
NOT_OF_LTTNG = {"--no-as-needed", "--details", "--override", "--dynamic", "--user", "LTTNG_USTTRACEPOINT_INCLUDE"}


def words():
    """
    Returns what the manual pages of LTTng's programs and libraries name: options, variables of the
    environment, functions, macros and events.
    """
    found = set()
    for page in pathlib.Path("/usr/share/man").glob("man[1378]/lttng*.gz"):
        text = gzip.decompress(page.read_bytes()).decode()
        if "LTTNG_ANALYSES" in text or "analyses" in page.name or "lttng-track-process" in page.name:
            continue  # programs of another project
        text = re.sub(r"^\.TH .*|\\f.", "", text, flags=re.M).replace("\\-", "-").replace("\\&", "")
        found |= set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9](?![\w-])|\bLTTNG_[A-Z0-9_]*[A-Z0-9]\b|\blttng_[a-z0-9_]*[a-z0-9]\b", text))
    return "".join(f"{word}\n" for word in sorted(found - NOT_OF_LTTNG))


def main():
    write = "--write" in sys.argv
    names = [a for a in sys.argv[1:] if a != "--write"]
    failed = 0
    if write:
        (compat.HERE / "expected" / "options.txt").write_text(options())
        (compat.HERE / "expected" / "words.txt").write_text(words())
    with tempfile.TemporaryDirectory(prefix="kymo-oracle-") as top:
        lttng = Lttng(pathlib.Path(top))
        written = {}
        try:
            for case in compat.CASES:
                if not case.of_2_13 or (names and case.name not in names):
                    continue
                text = run(case, lttng, top)
                path = compat.HERE / "expected" / f"{case.name}.txt"
                if write and case.name not in written:
                    path.write_text(text)
                wanted = written.setdefault(case.name, path.read_text())
                failed += text != wanted
                print(f"{'same' if text == wanted else 'DIFFERS'}: {case.name} ({case.build.__name__}), {len(text.splitlines())} events")
                sys.stdout.writelines(difflib.unified_diff(wanted.splitlines(True), text.splitlines(True), "expected", "LTTng", n=0))
        finally:
            lttng.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
