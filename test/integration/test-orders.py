#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
All orders of these steps: the daemon starts; a session with a channel is created; its rule is
enabled and disabled; it is started and stopped; a program starts, and loads a library. The program
emits after each step. The trace has the events that it emitted while rule and session were active,
once, and no others.
"""

import collections
import itertools

import kymotest
from kymotest import APPS, check, equal, integers, read_trace

# The step that must have happened before.
NEEDS = {"daemon": None, "create": "daemon", "enable": "create", "disable": "enable", "start": "create", "stop": "start",
    "program": None, "load": "program"}


def orders():
    for order in itertools.permutations(NEEDS):
        if all(not need or order.index(need) < order.index(step) for step, need in NEEDS.items()):
            yield order


class Run:
    """One order: done has the steps so far."""

    def __init__(self, k, name):
        self.k = k
        self.name = name
        self.done = set()
        self.app = None
        self.wanted = collections.Counter()
        self.trace = k.traces / name

    def ask(self, command, **params):
        reply = self.k.request(command=command, session=self.name, **params)
        check(reply["ok"], f"{command}: {reply}")
        return reply

    def say(self, line):
        self.app.stdin.write(f"{line}\n")
        self.app.stdin.flush()
        self.k.expect(self.app, "ready")

    def step(self, step):
        if step == "daemon" and not self.k.daemon:
            self.k.start_daemon()
        elif step == "create":
            self.ask("create", output=str(self.trace))
            self.ask("enable-channel", channel="channel0", subbuf_size=16384, num_subbuf=2)
        elif step in ("enable", "disable"):
            self.ask(f"{step}-event", patterns=["*:*"])
        elif step in ("start", "stop"):
            self.ask(step)
        elif step == "program":
            self.app = self.k.spawn("orders", APPS / "loads-provider.so")
            self.k.expect(self.app, "ready")
        elif step == "load":
            self.say("load")
        self.done.add(step)
        if {"daemon", "program"} <= self.done and step in ("daemon", "program"):
            self.k.wait_registered(self.app)

    def on(self):
        return {"enable", "start"} <= self.done and not self.done & {"disable", "stop"}

    def emit(self, number, step):
        if not self.app:
            return
        self.say(number)
        if not self.on():
            return
        self.wanted.update({("orders:program", number): 1})
        if "load" in self.done:
            self.wanted.update({(f"loads:{name}", number): 1 for name in ("always", "sometimes")})
        if step == "load":
            self.wanted.update({("loads:constructed", None): 1})

    def finish(self):
        final = self.ask("destroy")["sessions"][0]
        self.app.stdin.close()
        equal(self.app.wait(kymotest.TIMEOUT), 0, "exit status")
        self.app.stdout.close()
        equal((final["recorded"], final["discarded"]), (sum(self.wanted.values()), 0), "events recorded and discarded")
        if self.wanted:
            got = collections.Counter((e.name, integers(e).get("n")) for e in read_trace(self.trace)[0])
            equal(got, self.wanted, "events")


def run_orders(k, chosen):
    for number, order in enumerate(chosen):
        run = Run(k, f"s{number}")
        try:
            for i, step in enumerate(order, 1):
                run.step(step)
                run.emit(i, step)
            run.finish()
        except kymotest.Failure as e:
            raise kymotest.Failure(f"{' '.join(order)}: {e}") from e
        if order[0] != "daemon":
            k.stop_daemon()
    return number + 1


def test_daemon_first(k):
    check(run_orders(k, [o for o in orders() if o[0] == "daemon"]) > 100, "orders are missing")


def test_program_first(k):
    check(run_orders(k, [o for o in orders() if o[0] != "daemon"]) > 30, "orders are missing")


kymotest.main()
