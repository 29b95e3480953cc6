#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often is the first line of `kymo explain` right? Builds the programs of cases/, records each
several times, explains each trace, and compares the first line with the planted cause. This is not
a test: programs and machine are noisy.

  score.py [-n RUNS] [-k] [--build=DIR] [--out=DIR] [--cases=DIR] [--record=OPTIONS]
           [--spans] [--kernel=COMMAND] [--load=N] [CASE...]

-k explains again what was recorded before. --load=N runs N busy programs beside. --spans records
spans only, without locks and allocations. --kernel=COMMAND, for cases/kernel, records the kernel
into the directory DIR of the command until it is terminated. The first comment of a
program says:
  span: NAME  args: A|B  record: OPTIONS  spans: REGULAR EXPRESSION  expect: REGULAR EXPRESSION
The program runs once for each argument. An expected "nothing" means that no cause is to be claimed.
`spans` is what to expect with --spans, if that differs."""
import argparse
import glob
import os
import re
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SPANS = "-t vtid,vpid,procname --subbuf-size=2M"
DEFAULT = "--with=libc,pthread " + SPANS


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("-n", type=int, default=1)
    p.add_argument("-k", action="store_true")
    p.add_argument("--build", default=os.path.join(HERE, "../../build"))
    p.add_argument("--out", default="/tmp/kymo-explain-score")
    p.add_argument("--cases", default=os.path.join(HERE, "cases"))
    p.add_argument("--record", default="")
    p.add_argument("--load", type=int, default=0)
    p.add_argument("--spans", action="store_true")
    p.add_argument("--kernel")
    p.add_argument("-v", action="store_true")
    p.add_argument("names", nargs="*")
    return p.parse_args()


class Case:
    def __init__(self, path, argument="", spans=False):
        with open(path) as f:
            head = " ".join(f.read().split("/*", 1)[1].split(" */", 1)[0].replace("\n *", " ").split())
        self.path, self.program = path, os.path.splitext(os.path.basename(path))[0]
        self.argument, self.name = argument, self.program + ("_" + argument if argument else "")
        self.arguments = (self.field(head, "args") or "").split("|")
        self.span = self.field(head, "span") or "shop:checkout"
        self.expect = spans and self.field(head, "spans") or self.field(head, "expect")
        self.record = SPANS if spans else self.field(head, "record") or DEFAULT

    @staticmethod
    def field(head, name):
        m = re.search(r"(?:^| )%s: (.*?)(?= (?:span|args|record|spans|expect): |$)" % name, head)
        return m[1].strip() if m else None


def find_cases(directory, spans=False):
    for path in sorted(glob.glob(directory + "/*.c") + glob.glob(directory + "/*.cpp")):
        for argument in Case(path).arguments:
            yield Case(path, argument, spans)


def environment(build):
    env = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
    env["LD_LIBRARY_PATH"] = os.path.join(build, "src/tracer")
    return env


def flags(build):
    source = os.path.join(HERE, "../..")
    return ["-I", os.path.join(source, "include"), "-I", os.path.join(build, "include"), "-I", HERE + "/cases",
            "-L", os.path.join(build, "src/tracer"), "-lkymo", "-pthread", "-lm"]


def compile_case(case, out, build):
    program = os.path.join(out, case.program + ".bin")
    compiler = ["g++", "-std=c++17"] if case.path.endswith("pp") else ["gcc"]
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(case.path):
        subprocess.check_call(compiler + ["-O1", "-g", "-o", program, case.path] + flags(build))
    return program


def record(case, program, trace, args, env):
    subprocess.call(["rm", "-rf", trace])
    options = shlex.split(args.record or case.record)
    kernel = start_kernel(args.kernel, trace + ".kernel") if args.kernel else None
    p = subprocess.run([os.path.join(args.build, "src/cli/kymo"), "record", *options, "-o", trace, "--", program,
                        *filter(None, [case.argument])], env=env, capture_output=True, text=True)
    if kernel:
        kernel.terminate()
        kernel.wait()
        os.rename(trace + ".kernel", trace + "/kernel")
    if p.returncode or " 0 discarded" not in p.stderr:
        print(case.name, p.stderr.strip())


def start_kernel(command, directory):
    subprocess.call(["rm", "-rf", directory])
    os.makedirs(directory)
    kernel = subprocess.Popen([directory if x == "DIR" else x for x in shlex.split(command)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(.7)
    return kernel


def explain(case, trace, args, env):
    p = subprocess.run([os.path.join(args.build, "src/cli/kymo"), "explain", trace, "--span=" + case.span], env=env,
                       capture_output=True, text=True)
    lines = p.stdout.splitlines()
    return lines[0] if lines else "(exit %d) %s" % (p.returncode, p.stderr)


def is_right(case, first):
    if case.expect == "nothing":
        return bool(re.search(": nothing (stands out|recorded tells)", first))
    return bool(re.search(case.expect, first, re.S))


def main():
    args = arguments()
    args.build = os.path.abspath(args.build)
    env = environment(args.build)
    os.makedirs(args.out, exist_ok=True)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for i in range(args.load)]
    good = total = false = nulls = claimed = 0
    try:
        for case in find_cases(args.cases, args.spans):
            if args.names and case.name not in args.names or not case.expect:
                continue
            program = compile_case(case, args.out, args.build)
            right, wrong = 0, []
            for r in range(args.n):
                trace = os.path.join(args.out, "%s.%d" % (case.name, r))
                if not args.k:
                    record(case, program, trace, args, env)
                first = explain(case, trace, args, env)
                claimed += "is slow because" in first and case.expect != "nothing"
                if is_right(case, first):
                    right += 1
                else:
                    wrong.append("run %d: %s" % (r, first))
            if case.expect == "nothing":
                nulls, false = nulls + args.n, false + args.n - right
            else:
                total, good = total + args.n, good + right
            print("%-20s %d/%d  %s" % (case.name, right, args.n, wrong[0] if wrong else first), flush=True)
            for w in wrong[1:]:
                print(" " * 26 + w)
    finally:
        for b in busy:
            b.kill()
            b.wait()
    print("first line right: %d of %d (%d claim a cause); false claims: %d of %d" % (good, total, claimed, false, nulls))


if __name__ == "__main__":
    main()
