#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Every way to write an event and every place where it can be; and programs that find no tracer
library.
"""

import collections
import pathlib

import kymotest
from kymotest import APPS, check, check_counts, equal, fields

WANTED = {
    "forms:plain": 4, "forms:warning": 1, "forms:twice": 2, "forms:shared": 3, "forms:step_one": 1, "forms:step_two": 1,
    "forms:in_template": 1, "forms:in_lambda": 1, "forms:in_member": 1, "forms:in_library": 1, "kymo_tracef:event": 3,
    "kymo_tracelog:WARNING": 1,
}


def run_forms(k, *args):
    """Runs forms with all events enabled; returns its events."""
    k.start_daemon()
    trace = k.record()
    text = k.app("forms", *args)
    k.kymo("stop", "s")
    lines = dict(line.split() for line in text.splitlines())
    equal(lines["errno"], "1", "kymo_tracef preserves errno")
    equal(lines["enabled"], "101", "kymo_event_enabled of an event, of none, kymo_trace_enabled")
    return check_counts(k, trace, int(lines["emitted"]))


def test_forms(k):
    events = run_forms(k)
    equal(collections.Counter(e.name for e in events), WANTED, "events by name")
    shared = [fields(e) for e in events if e.name == "forms:shared"]
    equal({(f["number"], f["from"]) for f in shared}, {(1, "C"), (2, "second"), (3, "C++")}, "one event of three sources")
    in_lambda = next(fields(e) for e in events if e.name == "forms:in_lambda")
    equal(in_lambda, {"number": 2, "shape": -2, "wide": -2}, "a number, and values of an enum class")
    member = next(fields(e) for e in events if e.name == "forms:in_member")
    equal(member, {"name": "thing", "_numbers_length": 3, "numbers": [1, 2, 3]}, "fields from C++")
    messages = [fields(e)["msg"] for e in events if e.name == "kymo_tracef:event"]
    equal(messages, ["7 green bottles", "p" * 1000, ""], "messages of kymo_tracef")
    log = next(fields(e) for e in events if e.name == "kymo_tracelog:WARNING")
    equal((log["msg"], log["func"], pathlib.Path(log["file"]).name), ("careful at 3", "printf_style", "forms.c"), "kymo_tracelog")


def test_loaded_library(k):
    events = run_forms(k, APPS / "forms-loaded.so")
    loaded = [fields(e)["number"] for e in events if e.name == "forms:in_loaded"]
    equal(loaded, [0, 1, 2], "events of a library that was loaded and unloaded three times")


def test_levels_and_patterns(k):
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    k.kymo("enable-event", "-s", "s", "forms:*", "-l", "NOTICE", "-x", "*two")
    k.kymo("enable-event", "-s", "s", "forms:in_l*,no:such*")
    k.kymo("start", "s")
    text = k.app("forms")
    k.kymo("stop", "s")
    check("enabled 000" in text, f"kymo_event_enabled of events that no rule wants: {text}")
    events, _ = kymotest.read_trace(k.traces / "s")
    names = collections.Counter(e.name for e in events)
    equal(names, {"forms:warning": 1, "forms:step_one": 1, "forms:in_lambda": 1, "forms:in_library": 1}, "events that match")


def without_library(k, directory):
    k.start_daemon()
    k.record()
    text = k.app("forms", APPS / "forms-loaded.so", env={"LD_LIBRARY_PATH": str(directory)})
    equal(text.splitlines(), ["errno 1", "emitted 23", "enabled 000"], "output of a program that finds no library")
    stop = k.kymo_json("stop", "s")
    equal(stop["sessions"][0]["recorded"], 0, "events recorded")


def test_no_library(k):
    known = k.run(["/sbin/ldconfig", "-p"]).stdout
    if "libkymo.so.0" in known:
        raise kymotest.Skip("libkymo.so.0 is installed on this machine")
    without_library(k, "/nonexistent")


def test_broken_library(k):
    pathlib.Path(k.home, "libkymo.so.0").write_text("")
    without_library(k, k.home)


kymotest.main()
