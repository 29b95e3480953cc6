#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tree respects layers.txt, and check-layers would detect if it did not."""

import pathlib
import subprocess
import sys
import tempfile

CHECK = sys.argv[1]
ROOT = sys.argv[2]

LAYERS = "base:\nring: base\nsvc: base\ntracer: base ring\nsessiond: base svc\nconsumerd: base svc\n"


def run(root):
    return subprocess.run([CHECK, root], capture_output=True, text=True)


def planted(layers, files):
    with tempfile.TemporaryDirectory() as root:
        pathlib.Path(root, "layers.txt").write_text(layers)
        for name, text in files.items():
            path = pathlib.Path(root, "src", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return run(root)


def expect(what, done, status, text=""):
    if (done.returncode != 0) != (status != 0) or text not in done.stderr:
        sys.exit(f"FAIL {what}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"ok {what}")


good = {"ring/a.c": '#include "base/util.h"\n#include "ring/a.h"\n#include <stdio.h>\n'}
expect("allowed includes", planted(LAYERS, good), 0)
expect("upwards", planted(LAYERS, {"base/a.c": '\n#include "ring/a.h"\n'}), 1, "src/base/a.c:2:")
expect("headers count", planted(LAYERS, {"base/deep/a.h": '# include "ring/a.h"\n'}), 1, "src/base/deep/a.h:1:")
expect("no folder", planted(LAYERS, {"base/a.c": '#include "util.h"\n'}), 1, "no folder")
expect("by way of ..", planted(LAYERS, {"base/a.c": '#include "../ring/a.h"\n'}), 1, "no folder")
expect("unknown folder", planted(LAYERS, {"new/a.c": "\n"}), 1, "not in layers.txt")
expect("tracer reaches svc", planted(LAYERS.replace("ring: base", "ring: base svc"), good), 1, "tracer reaches svc")
expect("daemons apart", planted(LAYERS + "sessiond: consumerd\n", good), 1, "sessiond reaches consumerd")
deep = LAYERS + "sessiond/low: base\nsessiond: base svc sessiond/low\n"
expect("folders of a folder", planted(deep, {"sessiond/a.c": '#include "sessiond/low/b.h"\n', "sessiond/low/b.h": '#include "base/a.h"\n'}), 0)
expect("upwards in a folder", planted(deep, {"sessiond/low/a.c": '#include "sessiond/b.h"\n'}), 1, "sessiond/low must not include")
expect("what a folder's folder has not", planted(deep, {"sessiond/low/a.c": '#include "svc/b.h"\n'}), 1, "sessiond/low must not include")
expect("cycle", planted(LAYERS.replace("base:", "base: ring"), good), 1, "cycle")
ring_of = {"sessiond/a.h": '#include "sessiond/b.h"\n', "sessiond/b.h": "\n", "sessiond/b.c": '#include "sessiond/c.h"\n', "sessiond/c.c": '#include "sessiond/a.h"\n'}
expect("cycle of modules", planted(LAYERS, ring_of), 1, "src/sessiond/c: part of a cycle of includes, by: sessiond/a\n")
of_ring = {name.replace("sessiond", "ring"): text.replace("sessiond", "ring") for name, text in ring_of.items()}
expect("cycle of a library's modules", planted(LAYERS, of_ring), 1, "src/ring/c: part of a cycle")
expect("no cycle of modules", planted(LAYERS, {**ring_of, "sessiond/c.c": '#include "sessiond/c.h"\n'}), 0)
twice = {"base/a.h": "struct ky_a {\n};\nstruct b {\n};\n", "ring/a.c": "struct ky_c {\n\tstruct ky_a a;\n};\nstruct b {\n};\n"}
expect("a type of a library", planted(LAYERS, twice), 0)
expect("two types of a name", planted(LAYERS, {**twice, "svc/a.c": "enum ky_a {\n};\n"}), 1, "src/base/a.h: ky_a is defined in other files, too: src/svc/a.c\n")
expect("nothing to check", planted(LAYERS, {}), 1, "no source")
expect("this tree", run(ROOT), 0)
