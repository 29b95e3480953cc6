#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
'kymo merge': traces of hosts whose clocks differ become one, in the right order, with an error that
is stated.
"""

import os
import pathlib
import re
import shutil
import tempfile

import kymotest
from kymotest import check, equal

REQUESTS = 200
OFFSET = re.compile(r"(\toffset_s = )(\d+)")


def record(k, wrong_s, caller="rpc:send,rpc:answered"):
    """
    Records requests between two hosts: the callers' events and the callees' are two sessions. The
    clock of the callees is wrong. Returns their directories.
    """
    k.start_daemon()
    traces = [k.record(caller, session="caller"), k.record("rpc:receive,rpc:answer", session="callee")]
    k.app("flows", REQUESTS)
    for name in ("caller", "callee"):
        k.kymo("destroy", name)
    (metadata,) = traces[1].rglob("metadata")
    text = metadata.read_text()
    metadata.write_text(OFFSET.sub(lambda m: m[1] + str(int(m[2]) + wrong_s), text, count=1))
    return traces


def merged(k, traces, flows, name):
    out = k.top / name
    return out, k.kymo_json("merge", *traces, "-o", out, *(f"--flows={f}" for f in flows))


def order_of(trace):
    """Returns the names of events in the order in which babeltrace2 merges them."""
    events, discarded = kymotest.read_trace(trace)
    equal((len(events), discarded), (4 * REQUESTS, 0), "events")
    return [e.name for e in events]


def test_flows(k):
    """Requests and answers show how far the clocks are apart; the error is stated, and true."""
    traces = record(k, wrong_s=5)
    right = ["rpc:send", "rpc:receive", "rpc:answer", "rpc:answered"] * REQUESTS
    for flows in (["calls"], ["rpc:send,rpc:receive,id", "rpc:answer,rpc:answered,id"]):
        out, said = merged(k, traces, flows, f"merged-{len(flows)}")
        caller, callee = said["traces"]
        equal((caller["shift_ns"], caller["name"], callee["name"]), (0, "caller", "callee"), "traces")
        # Both clocks were measured, when the sessions were created: they differ by a little.
        check(abs(callee["shift_ns"] + 5 * 10**9) <= callee["error_ns"] + 10**8 and callee["error_ns"] >= 990, said)
        equal(order_of(out), right, "order")
        text = (out / "callee").rglob("metadata").__next__().read_text()
        for wanted in (f"clock_shift_ns = {callee['shift_ns']};", f"clock_error_ns = {callee['error_ns']};", 'clock_source = "flows";', "absolute = TRUE;"):
            check(wanted in text, wanted)
        equal(len(k.kymo("view", out).stdout.splitlines()), 4 * REQUESTS, "events that kymo view prints")
        kymotest.check_private(out)


def test_calls_without_ends(k):
    """A caller's only event is not its end: it gives the same bounds as w3c."""
    traces = record(k, wrong_s=-5, caller="rpc:send")
    shifts = [merged(k, traces, [flows], f"merged-{flows}")[1]["traces"] for flows in ("w3c", "calls")]
    equal(shifts[1], shifts[0], "clocks")
    check(shifts[0][1]["shift_ns"] > 4 * 10**9, shifts)


def test_one_way(k):
    """Requests alone show only that the callee's clock is too early, and by how much at least."""
    traces = record(k, wrong_s=-5)
    out, said = merged(k, traces, ["w3c"], "merged")
    callee = said["traces"][1]
    check("error_ns" not in callee, said)
    check(callee["shift_ns"] > 4 * 10**9, said)
    equal(said["flows"], REQUESTS, "flows")
    names = order_of(out)
    equal(names[0], "rpc:send", "what comes first")


def test_recorded(k):
    """Without flows the clocks stay as they were recorded, and babeltrace2 reads both at once."""
    traces = record(k, wrong_s=5)
    out, said = merged(k, traces, [], "merged")
    equal([t["shift_ns"] for t in said["traces"]], [0, 0], "shifts")
    names = order_of(out)
    equal(set(names[: 2 * REQUESTS]), {"rpc:send", "rpc:answered"}, "what comes first")
    # Archives of a session, and directories behind links, are copied as well.
    rotated, links = k.top / "rotated", k.top / "links"
    shutil.copytree(traces[0], rotated / "archives" / "1-2-0")
    (rotated / "archives" / ".removed").write_text("chunks 1\nevents 7\nbytes 1\nlast 0-1-0\n")
    links.mkdir()
    (links / "callee").symlink_to(traces[1])
    out, said = merged(k, [rotated, links], [], "chunks")
    equal(order_of(out), names, "events of archives and links")
    removed = "archives/.removed"
    equal((out / "rotated" / removed).read_text(), (rotated / removed).read_text(), "what was removed")
    check("7 recorded events were removed" in k.kymo("stat", out).stderr, "events of removed archives")


def measured(trace, error_ns, reference):
    """Writes the note of 'kymo fleet fetch' into a trace's metadata."""
    (metadata,) = trace.rglob("metadata")
    note = f'env {{\n\tclock_error_ns = {error_ns};\n\tclock_reference = "{reference}";'
    text = re.sub(r"\n\tclock_(source|error_ns|reference) = .*", "", metadata.read_text())
    metadata.write_text(text.replace("env {", note, 1))


def test_measured(k):
    """Fetched copies keep their errors: a merge states the sum, and flows reduce it."""
    traces = record(k, wrong_s=0)
    measured(traces[0], 3 * 10**9, "k1")
    measured(traces[1], 10**9, "k1")
    _, said = merged(k, traces, [], "merged")
    equal([t.get("error_ns") for t in said["traces"]], [0, 4 * 10**9], "errors")
    out, said = merged(k, traces, ["calls"], "flows")
    check(said["traces"][1]["error_ns"] < 10**9, said)
    text = next((out / "callee").rglob("metadata")).read_text()
    equal((text.count("clock_error_ns"), text.count("clock_reference")), (1, 0), "notes in the metadata")
    measured(traces[1], 10**9, "k2")
    _, said = merged(k, traces, [], "others")
    check("error_ns" not in said["traces"][1], said)


def test_measured_wrong(k):
    traces = record(k, wrong_s=5)
    for trace in traces:
        measured(trace, 10**9, "k1")
    done = k.kymo("merge", *traces, "-o", k.top / "a", "--flows=calls", status=1)
    check("contradict each other, or the errors that were measured" in done.stderr, done.stderr)


def test_refused(k):
    traces = record(k, wrong_s=5)
    for args, status, said in (
        ([*traces], 2, "the output is missing"),
        ([traces[0], "-o", "x"], 2, "usage"),
        ([*traces, "-o", k.top / "a", "--flows=x"], 2, "neither w3c, calls nor"),
        ([*traces, "-o", k.top / "b", "--flows=rpc:answered,rpc:send,id", "--flows=rpc:receive,rpc:send,id", "--flows=calls"], 1, "contradict each other"),
        ([*traces, "-o", traces[0]], 1, "is not empty"),
        ([*traces, "-o", traces[0] / "in"], 2, "is in one of the traces"),
        ([*traces, "-o", traces[1] / ".." / traces[1].name / "ust" / "in/"], 2, "is in one of the traces"),
        ([k.top / "nothing", traces[0], "-o", k.top / "c"], 1, f"cannot read {k.top}/nothing: No such file"),
        ([*traces, traces[0], "-o", k.top / "c"], 2, "have the same traces"),
        ([traces[0] / "ust", *traces, "-o", k.top / "c"], 2, "have the same traces"),
    ):
        done = k.kymo("merge", *args, status=status)
        check(said in done.stderr, done.stderr)
    check(not any((k.top / n).exists() for n in "abc"), "what is refused makes no directory")


def test_other_file_system(k):
    """Traces and the output may be on different file systems, where the kernel copies no ranges."""
    traces = record(k, wrong_s=0)
    with tempfile.TemporaryDirectory(prefix="kymo-test-", dir="/dev/shm") as other:
        check(os.stat(other).st_dev != os.stat(k.top).st_dev, "/dev/shm is a file system of its own")
        out, _ = merged(k, traces, [], pathlib.Path(other) / "merged")
        order_of(out)
        for path in traces[0].rglob("channel0_*"):
            equal((out / "caller" / path.relative_to(traces[0])).read_bytes(), path.read_bytes(), path.name)


def test_failed(k):
    """A merge that fails leaves no copies, so that the same command can be repeated."""
    traces = record(k, wrong_s=0)
    (metadata,) = traces[1].rglob("metadata")
    right = metadata.read_text()
    metadata.write_text(right.replace("\tabsolute = ", "\tkymo_absolute = "))
    empty = k.top / "empty"
    empty.mkdir()
    for out in (empty, k.top / "new"):
        said = k.kymo("merge", *traces, "-o", out, status=1).stderr
        check(f" to {out}: this metadata was not written by Kymo" in said, said)
    equal((list(empty.iterdir()), (k.top / "new").exists()), ([], False), "copies")
    metadata.write_text(right)
    order_of(merged(k, traces, [], "new")[0])


if __name__ == "__main__":
    kymotest.main()
