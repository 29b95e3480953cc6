#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Durations of spans in random traces, with losses and without: kymo stat, explain, report and
export, which pair begins and ends in several places, have those of a slow model."""
import base64
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import traces  # noqa: E402

BUILD = os.environ.get("KYMO_TEST_BUILD", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build"))
KYMO = os.path.join(BUILD, "src/cli/kymo")


def kymo(*arguments):
    p = subprocess.run([KYMO, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert p.returncode == 0, (arguments, p.returncode, p.stdout, p.stderr)
    return p.stdout


def make_events(r):
    """Spans in three threads of two processes; some begin or end only, or cross others."""
    at, events, spans, asynchronous = 10**6, [], collections.defaultdict(list), []

    def add(name, **fields):
        events.append(traces.Event(at, name, r.randrange(2), thread, **fields))

    for _ in range(r.randrange(50, 400)):
        at += r.randrange(1, 5000)
        number, kind = r.randrange(3), r.random()
        tid = 100 + number
        thread, open_ = (tid, 50 + number // 2, "t%d" % number), spans[tid]
        if kind < .4:
            open_.append(r.choice("abc"))
            add("p:%s_begin" % open_[-1], span_tid=tid)
        elif kind < .75 and open_:
            add("p:%s_end" % open_.pop(-1 if r.random() < .9 else r.randrange(len(open_))), span_tid=tid)
        elif kind < .78:
            add("p:%s_end" % r.choice("abc"), span_tid=tid)
        elif kind < .88:
            asynchronous.append((r.choice("xy"), r.randrange(4)))
            add("p:%s_begin" % asynchronous[-1][0], async_id=asynchronous[-1][1])
        elif asynchronous:
            name, number = asynchronous.pop(r.randrange(len(asynchronous)))
            add("p:%s_end" % name, async_id=number)
    return events


def in_order(durations):
    return {name: sorted(v) for name, v in durations.items()}


def of_model(events):
    out, open_ = collections.defaultdict(list), collections.defaultdict(list)
    for e in events:
        name, what = e.name.rsplit("_", 1)
        key = (name, *sorted(e.fields.items()))
        if what == "begin":
            open_[key].append(e.ns)
        elif open_[key]:
            out[name].append(e.ns - open_[key].pop())
    return in_order(out)


def of_chrome(path, directory):
    out, open_ = collections.defaultdict(list), collections.defaultdict(list)
    made = os.path.join(directory, "chrome.json")
    kymo("export", path, "--to=chrome", "-o", made)
    with open(made, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    for e in events:
        key = (e["pid"], e["tid"]) if e["ph"] in "BE" else (e["name"], e.get("id"))
        if e["ph"] in "Bb":
            open_[key].append((e["name"], e["ts"]))
        elif e["ph"] in "Ee":
            name, begin = open_[key].pop()
            out[name].append(round(1000 * (e["ts"] - begin)))
    assert not any(open_.values()), open_
    return in_order(out)


def read_numbers(data, at, n):
    """Returns n numbers in LEB128, and the place behind them."""
    out = []
    for _ in range(n):
        number, shift = 0, 0
        while True:
            number, shift, at = number | (data[at] & 127) << shift, shift + 7, at + 1
            if data[at - 1] < 128:
                break
        out.append(number)
    return out, at


def of_page(path, directory):
    """The slices of a report that are not cut: docs/report.md has the form of its parts."""
    page, out = os.path.join(directory, "page.html"), collections.defaultdict(list)
    kymo("report", path, "-o", page)
    with open(page, encoding="utf-8") as f:
        text = f.read()
    names = json.loads(re.search(r'<script type="kymo" id="head">(.*?)</script>', text, re.S)[1])["names"]
    for packed in re.findall(r'<script type="kymo" id="s\d+">(.*?)</script>', text):
        data = zlib.decompress(base64.b64decode(packed), -15)
        (n_rows,), at = read_numbers(data, 0, 1)
        for _ in range(n_rows):
            (n, gaps, durations, _), at = read_numbers(data, at, 4)
            values, behind = read_numbers(data, at + gaps, n)
            assert behind == at + gaps + durations
            slices, at = read_numbers(data, behind, n)
            for ns, name in zip(values, slices):
                if not name & 3:
                    out[names[name >> 2]].append(ns)
    return in_order(out)


def sums(durations):
    return {name: (len(v), sum(v)) for name, v in durations.items() if v}


def of_stat(path):
    spans = json.loads(kymo("stat", "--json", path))["spans"]
    return {s["name"]: (s["count"], s["total_ns"]) for s in spans if s["count"]}


def check(seed, top):
    r = random.Random(seed)
    events, path, loses = make_events(r), os.path.join(top, "t%d" % seed), seed % 2
    lost = [(r.choice(events).ns, r.randrange(2), 3) for _ in range(r.randrange(1, 3))] if loses else []
    traces.write(path, events, packet=r.choice([200, 1000]), lost=lost)
    exported, shown, model = of_chrome(path, top), of_page(path, top), of_model(events)
    assert exported == shown, (seed, exported, shown)
    assert sums(exported) == of_stat(path), (seed, exported)
    if loses:  # what is left are durations of the model
        for name, v in shown.items():
            assert not collections.Counter(v) - collections.Counter(model[name]), (seed, name, v, model[name])
        return sum(map(len, model.values())) - sum(map(len, shown.values()))
    assert shown == model, (seed, shown, model)
    for name in ("p:a", "p:x"):
        if model.get(name):
            explained = json.loads(kymo("explain", path, "--span=" + name, "--json"))["count"]
            assert explained == len(model[name]), (seed, name, explained)
    return 0


def main():
    with tempfile.TemporaryDirectory(prefix="kymo-agree-") as top:
        n_cut = sum(check(seed, top) for seed in range(60))
    assert n_cut > 500, n_cut
    print("ok 1 - test_agree")


if __name__ == "__main__":
    main()
