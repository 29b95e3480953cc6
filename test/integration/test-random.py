#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Channels of any kind, and random steps in a session, checked by exact accounting: each event that a
program recorded while the session recorded is in the trace, once and with its values, or in a
count. KYMO_TEST_SEED: the seed of the random numbers (the test prints that of each session).
"""

import os
import random
import signal

import kymotest
from emitcheck import check_values, emitted
from kymotest import SANITIZED, check, check_streams, equal, read_trace, rounds, streams, wait_for

SEED = int(os.environ.get("KYMO_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
MOST = 4000 if SANITIZED else 20000  # events of a program
WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def channel(rng, overwrite):
    """Returns the options of a channel."""
    sizes = [f"--buffers={rng.choice(('cpu', 'cpu', 'thread', 'process'))}", f"--subbuf-size={rng.choice((4096, 8192, 65536, 1 << 20))}",
        f"--num-subbuf={rng.choice((2, 4, 16))}"]
    if overwrite:
        return [*sizes, "--overwrite"]
    files = rng.choice(([f"--tracefile-size={rng.choice((1 << 20, 4 << 20))}"], ["--tracefile-size=1M", "--tracefile-count=2"]))
    more = ([f"--switch-timer={rng.choice((0, 5000, 100000))}"], [f"--read-timer={rng.choice((500, 20000))}"], files)
    return sizes + [option for options in more if rng.randrange(3) == 0 for option in options]


class Session:
    """
    A session, and how many events were recorded into it. Its steps are the methods named step_*.
    """

    def __init__(self, k, number):
        self.k = k
        self.rng = rng = random.Random(f"{SEED} {number}")
        self.name = f"s{number}"
        self.overwrite = rng.randrange(4) == 0
        self.options = channel(rng, self.overwrite)
        self.trace = k.record("emit:*", session=self.name, channel=self.options)
        self.n_emitted = self.n_programs = 0
        self.on = True
        self.running = []
        self.beside = None
        self.steps = []

    def program(self, *args):
        rng = self.rng
        args = ["-p", self.n_programs, "-t", rng.choice((1, 2, 5)), "-n", rng.randrange(1, MOST), *args]
        args += rng.choice(((), (), ("-s", 300), ("-m",)))
        self.n_programs += 1
        return self.k.spawn("emit", *args, env=rng.choice((None, None, WITHOUT_RSEQ)))

    def count(self, app):
        n = sum(emitted(self.k.finish(app)))
        self.n_emitted += n if self.on else 0

    def step_program(self):
        self.count(self.program())

    def step_program_beside(self):
        """A program that runs during the next steps, except those that end the recording."""
        if self.on:
            app = self.ready_program()
            self.k.let_go(app)
            self.running.append(app)

    def settle(self):
        while self.running:
            self.count(self.running.pop())

    def ready_program(self):
        """Returns a program that waits for let_go() before and after it emits its events."""
        app = self.program("-w")
        self.k.expect(app, "ready")
        return app

    def emit_all(self, app):
        """Returns how many events it has emitted; it does not end yet."""
        self.k.let_go(app)
        return sum(int(app.stdout.readline().split()[1]) for _ in range(2))

    def step_killed(self):
        """A program that is killed after it has recorded all its events."""
        app = self.ready_program()
        n = self.emit_all(app)
        self.n_emitted += n if self.on else 0
        app.kill()
        app.wait()

    def step_off(self):
        self.settle()
        self.on = False
        self.k.kymo(self.rng.choice(("pause", "stop")), self.name)
        self.step_program()
        self.k.kymo("start", self.name)
        self.on = True

    def step_rotate(self):
        if not self.overwrite:
            self.k.kymo("rotate", "-s", self.name, status=None)

    def step_clear(self):
        if not self.overwrite:
            self.k.kymo("clear", self.name)

    def step_set(self):
        if not self.overwrite:
            self.k.kymo("set", "-s", self.name, f"switch-timer={self.rng.choice((0, 2000, 1000000))}", f"read-timer={self.rng.choice((0, 1000, 50000))}")

    def step_kill_consumer(self):
        for consumer in kymotest.consumers(self.k):
            os.kill(consumer, signal.SIGKILL)
            wait_for(lambda: kymotest.consumers(self.k) not in ([], [consumer]), "another consumer")

    def warnings(self):
        return [w for name in (self.name, self.beside) if name for w in self.k.ask("status", session=name)["warnings"]]

    def step_kill_daemon(self):
        """
        The programs that run go on, and none starts. A consumer that was killed before has been
        replaced: the daemon had the buffers for the new one.
        """
        wait_for(lambda: "consumer" not in str(self.warnings()), lambda: f"the consumer: {self.warnings()}")
        self.k.daemon.kill()
        self.k.daemon.wait()
        self.k.start_daemon()

    def step_context(self):
        """The events of the programs that run get further contexts."""
        self.k.kymo("add-context", "-s", self.name, "-t", "vpid", "-t", "vtid", status=None)

    def step_rule(self):
        """The rule ends and begins again; a program emits its events in between."""
        self.settle()
        app = self.ready_program()
        self.k.kymo("disable-event", "-s", self.name, "emit:*")
        self.emit_all(app)
        self.k.kymo("enable-event", "-s", self.name, "emit:*")
        self.k.finish(app)

    def step_session_beside(self):
        """Another session records the events of the programs that run, for a while."""
        if self.beside:
            self.k.kymo("destroy", self.beside)
            self.beside = None
        else:
            self.beside = f"{self.name}-beside-{len(self.steps)}"
            self.k.record("emit:*", session=self.beside, channel=channel(self.rng, False))
            self.k.kymo("add-context", "-s", self.beside, "-t", "procname")

    def step_snapshot(self):
        out = self.k.traces / f"{self.name}-snapshot-{len(self.steps)}"
        reply = self.k.kymo_json("snapshot", "record", "-s", self.name, "-o", out)["snapshot"]
        if reply["recorded"]:
            equal(len(check_values(read_trace(out)[0])), reply["recorded"], "events of a snapshot")

    def run(self):
        steps = sorted(name for name in dir(self) if name.startswith("step_"))
        for _ in range(self.rng.randrange(4, 10)):
            self.steps.append(self.rng.choice(steps))
            getattr(self, self.steps[-1])()
        self.step_program()
        self.settle()

    def check_files(self):
        """Checks all chunks together."""
        counts = self.k.kymo_json("stop", self.name)["sessions"][0]
        chunks = [*sorted((self.trace / "archives").glob("*")), self.trace / "ust"]
        chunks = [chunk for chunk in chunks if chunk.exists() and streams(chunk)]
        first = None if any("tracefile" in option for option in self.options) else 0
        there, lost = map(sum, zip((0, 0), *(check_streams(chunk, first=first) for chunk in chunks)))
        events = [event for chunk in chunks for event in read_trace(chunk)[0]]
        equal(len(check_values(events)), there, "events that babeltrace2 reads")
        equal(there + counts["removed"] + counts["cleared"], counts["recorded"], "events there, removed and cleared, and what stop says of all")
        check(lost == counts["discarded"] or lost < counts["discarded"] and "step_clear" in self.steps, f"{lost} discarded, and stop says {counts['discarded']}")
        equal(counts["recorded"] + counts["discarded"], self.n_emitted, "recorded and discarded, against emitted")
        return there

    def check_memory(self):
        """Checks the events that the buffers still hold, and those that they have overwritten."""
        out = self.k.traces / f"{self.name}-last"
        self.k.kymo("stop", self.name)
        reply = self.k.kymo_json("snapshot", "record", "-s", self.name, "-o", out)["snapshot"]
        equal(reply["recorded"] + reply["overwritten"] + reply["left_out"] + reply["discarded"], self.n_emitted, f"all that became of the events: {reply}; emitted")
        equal(len(check_values(read_trace(out)[0])), reply["recorded"], "events that babeltrace2 reads")
        return reply["recorded"]

    def finish(self):
        n = self.check_memory() if self.overwrite else self.check_files()
        for name in filter(None, (self.name, self.beside)):
            self.k.kymo("destroy", name)
        return n


def test_random(k):
    print(f"# KYMO_TEST_SEED={SEED}", flush=True)
    k.start_daemon()
    for number in rounds():
        session = Session(k, number)
        try:
            session.run()
            n = session.finish()
        except kymotest.Failure as e:
            raise kymotest.Failure(f"session {number} (KYMO_TEST_SEED={SEED}): {' '.join(session.options)}: {' '.join(session.steps)}: {e}") from e
        print(f"# {n} of {session.n_emitted} events are there: {' '.join(session.options)}: {' '.join(session.steps)}")


kymotest.main()
