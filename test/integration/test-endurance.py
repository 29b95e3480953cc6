#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Programs record at full speed while random disturbances happen to them and to the daemons, until
KYMO_TEST_EVENTS events are recorded and each kind of disturbance has happened at least once. Each
event is in the trace once, complete and in order, or counted as discarded.
After each disturbance the test stops the programs, checks a chunk and removes it. So the trace
never has more than the events of a moment, on slow machines too. KYMO_TEST_SEED: the seed of the
random numbers.
"""

import contextlib
import os
import random
import shutil
import signal
import time

import kymotest
from emitcheck import emitted
from kymotest import SANITIZED, equal, streams, wait_for

EVENTS = int(os.environ.get("KYMO_TEST_EVENTS", 0))
SEED = int(os.environ.get("KYMO_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
RNG = random.Random(SEED)
WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
# Fewer where each event costs more: what is tested is the same.
PROGRAMS, THREADS = (2, (1, 2)) if SANITIZED else (3, (1, 2, 5))


@contextlib.contextmanager
def held(pids):
    """Stops these processes meanwhile."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def some_time():
    end = time.monotonic() + RNG.random() * 0.3
    wait_for(lambda: time.monotonic() > end, "the moment")


def hold(pids):
    with held(pids):
        some_time()


class Endurance:
    """A session and its programs, which start and exit. Its steps are the methods named step_*."""

    def __init__(self, k):
        self.k = k
        self.trace = k.record("emit:record", channel=("--subbuf-size=256K", "--num-subbuf=16", f"--buffers={RNG.choice(('cpu', 'thread'))}"))
        self.n_programs = self.n_emitted = self.n_recorded = self.n_discarded = self.n_chunks = 0
        self.n_rounds = 0
        self.running = [self.program() for _ in range(PROGRAMS)]

    def program(self):
        args = ["-f", "-p", self.n_programs, "-t", RNG.choice(THREADS), *RNG.choice(((), ("-m",)))]
        self.n_programs += 1
        app = self.k.spawn("emit", *args, env=RNG.choice((None, None, WITHOUT_RSEQ)))
        self.k.expect(app, "emitting")
        return app

    def end(self, app):
        self.k.let_go(app)
        self.n_emitted += sum(emitted(self.k.finish(app)))

    def look_at(self, chunk):
        """Counts the events of a chunk; Kymo's reader must find the same."""
        recorded, discarded = map(int, self.k.app("tally", *streams(chunk), timeout=600).split())
        stat = self.k.kymo_json("stat", chunk)
        equal((stat["events"], stat["discarded"]), (recorded, discarded), f"what kymo stat says of {chunk}")
        self.n_recorded += recorded
        self.n_discarded += discarded
        self.n_chunks += 1

    def look_at_archives(self):
        for chunk in sorted((self.trace / "archives").glob("*")):
            self.look_at(chunk)
            shutil.rmtree(chunk)

    def rotate(self):
        """Waits until a rotation that a killed consumer had begun is complete."""
        said = []

        def is_done():
            done = self.k.kymo("rotate", status=None)
            said.append(done.stderr)
            return done.returncode == 0

        wait_for(is_done, lambda: f"a rotation; it says: {said[-1]}{self.k.kymo('status', status=None).stdout}")
        with held([app.pid for app in self.running]):
            self.look_at_archives()

    # ---- the disturbances

    def step_hold_a_program(self):
        hold([RNG.choice(self.running).pid])

    def step_hold_the_consumer(self):
        hold(kymotest.consumers(self.k))

    def step_hold_the_daemon(self):
        hold([self.k.daemon.pid])

    def step_another_program(self):
        self.end(self.running.pop(RNG.randrange(PROGRAMS)))
        self.running.append(self.program())

    def step_kill_consumer(self):
        for consumer in kymotest.consumers(self.k):
            os.kill(consumer, signal.SIGKILL)
            wait_for(lambda: kymotest.consumers(self.k) not in ([], [consumer]), "another consumer")

    def step_kill_consumer_while_it_rotates(self):
        self.k.kymo("rotate", "--no-wait", status=None)
        self.step_kill_consumer()

    # ---- the run

    def run(self):
        names = sorted(name for name in dir(self) if name.startswith("step_"))
        while not self.n_rounds or self.n_recorded < EVENTS:
            for name in RNG.sample(names, len(names)):
                getattr(self, name)()
                some_time()
                self.rotate()
            self.n_rounds += 1

    def finish(self):
        while self.running:
            self.end(self.running.pop())
        counts = self.k.kymo_json("stop")["sessions"][0]
        self.look_at_archives()
        if streams(self.trace / "ust"):
            self.look_at(self.trace / "ust")
        equal((counts["recorded"], counts["discarded"]), (self.n_recorded, self.n_discarded), "what stop says, against what all chunks hold")
        equal(self.n_recorded + self.n_discarded, self.n_emitted, "recorded and discarded, against emitted")


def test_endurance(k):
    print(f"# KYMO_TEST_SEED={SEED}", flush=True)
    k.start_daemon()
    e = Endurance(k)
    e.run()
    e.finish()
    print(f"# {e.n_recorded} events of {e.n_programs} programs recorded, {e.n_discarded} discarded, {e.n_chunks} chunks, {e.n_rounds} rounds")


kymotest.main()
