#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Options of channels: displayed, changed while they record, and refused as a whole if the change is
impossible.
"""

import kymotest
from emitcheck import emitted
from kymotest import ONE_CPU, check, check_counts, equal, wait_for

WITHOUT_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def recorded(k):
    return k.kymo_json("status")["session"]["recorded"]


def channel(k, name="channel0"):
    return next(c for c in k.kymo_json("status")["session"]["channels"] if c["name"] == name)


def emit(k, n, **options):
    return sum(emitted(k.finish(k.spawn("emit", "-n", n, **options))))


def settle(k, *options):
    """
    Starts a program that has its buffers, which hold all its events. The session's timers for
    writing and reading are those of the options.
    """
    k.start_daemon()
    out = k.record("emit:*", channel=("--subbuf-size=4K", "--num-subbuf=8", *options))
    app = k.spawn("emit", "-w", "-n", 1000, wrap=ONE_CPU)
    k.expect(app, "ready")
    for _ in range(2):  # the consumer has started
        recorded(k)
    return out, app


def finish(k, out, app, n=1000):
    k.let_go(app)
    k.finish(app)
    k.kymo("stop")
    equal(len(check_counts(k, out, n)), n, "recorded")


def test_switch_timer(k):
    """
    Without it, partly filled sub-buffers wait for the stop; with it, they are written. Also for a
    session that records.
    """
    out, app = settle(k, "--switch-timer=0")
    k.let_go(app)
    k.read_until(app, "done")
    wait_for(lambda: recorded(k) > 0, "full sub-buffers to be written")
    check(recorded(k) < 1000, "the last sub-buffer, which is not full, was written")
    k.kymo("set", "switch-timer=1ms")
    wait_for(lambda: recorded(k) == 1000, "the last sub-buffer to be written")
    equal(channel(k)["switch_timer"], 1000, "the timer")
    finish(k, out, app)


def test_read_timer(k):
    """
    A consumer that does not read the buffers does not write; one that is ordered to read them does.
    """
    out, app = settle(k, "--switch-timer=0", "--read-timer=3600s")
    k.let_go(app)
    k.read_until(app, "done")
    equal(recorded(k), 0, "recorded before anybody looked")
    k.kymo("set", "read-timer=100")
    wait_for(lambda: recorded(k) > 0, "full sub-buffers to be written")
    k.kymo("set", "read-timer=0", "switch-timer=1s")
    wait_for(lambda: recorded(k) == 1000, "all to be written")
    finish(k, out, app)


def test_timers_of_a_new_consumer(k):
    """A consumer that replaces a killed one gets the timers, too."""
    out, app = settle(k, "--switch-timer=0", "--read-timer=3600s")
    k.let_go(app)
    k.read_until(app, "done")
    k.run(["kill", "-9", *kymotest.consumers(k)])
    k.kymo("set", "read-timer=100", "switch-timer=1ms")
    wait_for(lambda: recorded(k) == 1000, "all to be written")
    finish(k, out, app)


def test_sizes(k):
    """
    The new size is for buffers that are created later: programs without restartable sequences use
    other buffers.
    """
    k.start_daemon()
    out = k.record("emit:*", channel=("--subbuf-size=64K", "--num-subbuf=4"))
    total = emit(k, 100)
    reply = k.kymo_json("set", "subbuf-size=8K", "num-subbuf=5")
    check(any("keep the subbuf-size" in n for n in reply["notes"]) and any("became 8" in n for n in reply["notes"]), reply["notes"])
    total += emit(k, 100) + emit(k, 100, env=WITHOUT_RSEQ)
    sizes = sorted(s["size"] for s in channel(k)["ring_sets"])
    # the latter if there are no buffers for CPUs
    check(sizes in ([8 * 8192, 4 * 65536], [8 * 8192] * 2), f"sizes of buffers: {sizes}")
    k.kymo("destroy")
    check_counts(k, out, total)


def test_sizes_for_processes(k):
    """The next program has its own buffers, with the new size; the output says so."""
    k.start_daemon()
    out = k.record("emit:*", channel=("--buffers=process", "--subbuf-size=64K", "--num-subbuf=4"))
    app = k.spawn("emit", "-w", "-n", 100)
    k.expect(app, "ready")
    note = k.kymo_json("set", "num-subbuf=16")["notes"][0]
    check("each application that starts" in note and "other users" not in note, note)
    total = emit(k, 100)
    k.let_go(app)
    total += sum(emitted(k.finish(app)))
    k.kymo("destroy")
    check_counts(k, out, total)


def test_mode(k):
    """Possible as long as there are no buffers."""
    k.start_daemon()
    out = k.record("emit:*", start=False)
    k.kymo("set", "mode=overwrite")
    check("goes with discard mode" in k.kymo("set", "blocking-timeout=5", status=2).stderr, "blocking in overwrite mode")
    k.kymo("set", "mode=discard", "blocking-timeout=5")
    k.kymo("start")
    total = emit(k, 100)
    check("has buffers" in k.kymo("set", "mode=overwrite", "blocking-timeout=0", "switch-timer=5s", status=2).stderr, "mode of buffers")
    equal((channel(k)["blocking_timeout"], channel(k)["switch_timer"]), (5, 1000000), "options that were given with a refused one")
    k.kymo("destroy")
    check_counts(k, out, total)


def test_all_or_nothing(k):
    """
    Without a channel's name, the command changes all channels; if one of them refuses, none is
    changed.
    """
    k.start_daemon()
    k.kymo("create", "s", "--no-output")
    check("enable-channel" in k.kymo("set", status=1).stderr, "a session without channels")
    k.kymo("enable-channel", "a,b,c")
    equal(k.kymo("set", "switch-timer=2s").stdout, "".join(f"channel '{c}': switch-timer=2s\n" for c in "abc"), "what set says")
    said = k.kymo("set", "-c", "a", "read_timer=1500", "switch-timer=0", "num-subbuf=8").stdout
    equal(said, "channel 'a': read_timer=1500us, switch-timer=0, num-subbuf=8\n", "units")
    text = k.kymo("set", "-c", "b").stdout
    check("  switch-timer=2s  " in text and "  read-timer=0  " in text, f"times without units: {text}")
    k.kymo("set", "-c", "b", "mode=overwrite")
    k.kymo("set", "blocking-timeout=inf", status=2)
    equal([channel(k, c)["blocking_timeout"] for c in "abc"], [0, 0, 0], "timeouts")
    k.kymo("set", "-c", "c", "blocking-timeout=inf")
    equal([channel(k, c)["blocking_timeout"] for c in "abc"], [0, 0, "inf"], "timeouts")
    shown = {o["key"]: o["value"] for o in k.kymo_json("set", "-c", "c")["channels"][0]["options"]}
    equal((shown["switch-timer"], shown["mode"], shown["blocking-timeout"]), (2000000, "discard", "inf"), "options that are shown")


def test_refusals(k):
    k.start_daemon()
    k.kymo("create", "s", "--no-output")
    k.kymo("enable-channel", "a")
    for given, words, status in (
        ("swich-timer=5", "did you mean 'switch-timer'", 2),
        ("colour=red", "'kymo set' shows what there is", 2),
        ("output=/tmp", "'output' cannot be changed: the trace is there", 2),
        ("switch-timer=5", "from 100us to 1h", 2),
        ("read-timer=fast", "0 (adapted to the rate", 2),
        ("mode=drop", "'discard' or 'overwrite'", 2),
        ("blocking-timeout=-1", "or inf", 2),
        ("switch-timer", "KEY=VALUE", 2),
        ("switch-timer=", "KEY=VALUE", 2),
        ("=5", "KEY=VALUE", 2),
        ("session=5", "--session", 2),
        ("x" * 100 + "=5", "there is no option", 2),
    ):
        said = k.kymo("set", given, status=status).stderr
        check(words in said, f"{given}: {said}")
    said = k.kymo("set", "switch-timer=1s", "read-timer=0", "switch-timer=2s", status=2).stderr
    check("switch-timer can be given once only: 'switch-timer=1s' or 'switch-timer=2s'?" in said, said)
    said = k.kymo("enable-channel", "b", "--switch-timer=5", status=2).stderr
    check("from 100us to 1h" in said, said)
    said = k.kymo("enable-channel", "b", "--overwrite", "--blocking-timeout=inf", status=2).stderr
    check("discard mode" in said, said)
    equal([c["name"] for c in k.kymo_json("status")["session"]["channels"]], ["a"], "channels")


if __name__ == "__main__":
    kymotest.main()
