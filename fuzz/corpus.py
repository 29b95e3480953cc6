#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Manages the corpora of the fuzz targets: corpus/NAME.txt holds inputs, one in a line, in base64. The
unit suite replays them (replay.c).

    corpus.py run TARGET OPTION...     runs a libFuzzer target, starting with its corpus
    corpus.py renew TARGET DIRECTORY   replaces its corpus by the smallest inputs that reach all
                                       that the corpus and the inputs in DIRECTORY reach, up to
                                       MAX_BYTES
"""

import base64
import pathlib
import subprocess
import sys
import tempfile

CORPORA = pathlib.Path(__file__).resolve().parent / "corpus"
MAX_BYTES = 4000  # of inputs in a corpus, to keep the tree small


def corpus_of(target):
    return CORPORA / f"{pathlib.Path(target).name.removeprefix('fuzz-')}.txt"


def unpack(target, directory):
    path = corpus_of(target)
    for number, line in enumerate(path.read_text().split() if path.exists() else ()):
        (pathlib.Path(directory) / f"seed-{number}").write_bytes(base64.b64decode(line))


def run(target, *options):
    with tempfile.TemporaryDirectory(prefix="kymo-fuzz-") as directory:
        unpack(target, directory)
        # libFuzzer's own status of a crash is 77, which means skipped to meson and scripts/check.
        return subprocess.run([target, "-error_exitcode=1", *options, directory]).returncode


def renew(target, found):
    with tempfile.TemporaryDirectory(prefix="kymo-fuzz-") as directory, tempfile.TemporaryDirectory(prefix="kymo-fuzz-") as merged:
        unpack(target, directory)
        subprocess.run([target, "-merge=1", merged, directory, found], check=True, stderr=subprocess.DEVNULL)
        inputs = sorted((p.read_bytes() for p in pathlib.Path(merged).iterdir()), key=lambda data: (len(data), data))
    chosen, size = [], 0
    for data in inputs:
        size += len(data)
        if size > MAX_BYTES:
            break
        chosen.append(data)
    CORPORA.mkdir(exist_ok=True)
    corpus_of(target).write_text("".join(f"{base64.b64encode(data).decode()}\n" for data in chosen if data))
    print(f"{corpus_of(target).name}: {len(chosen)} of {len(inputs)} inputs")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("run", "renew"):
        sys.exit(__doc__)
    sys.exit({"run": run, "renew": renew}[sys.argv[1]](*sys.argv[2:]))
