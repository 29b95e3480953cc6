#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
`kymo save` and `kymo load`: sessions round-trip, errors name file and line, and the daemon loads
its directory of sessions once.
"""

import json
import os
import random
import shutil
import subprocess
import sys

import kymotest
from kymotest import CLI, Skip, SOURCE, check, equal, rounds, wait_for

SCHEMA = SOURCE / "docs" / "sessions.schema.json"
VALIDATE = "import json, sys, jsonschema; jsonschema.validate(json.load(sys.stdin), json.load(open(sys.argv[1])))"

PATTERNS = ["shop:*", "*", "shop:order", "bank:tr*", "a:b", "a:*"]
FILTERS = ["x > 3", "name == \"a b\\\\c\"", "(x & 1) && $ctx.vpid != 7"]
CONTEXTS = ["vpid", "vtid", "procname", "$app.shop:cart", "ip"]


def maybe(r, o, name, value):
    if r.random() < 0.5:
        o[name] = value


def random_rule(r):
    rule = {"pattern": r.choice(PATTERNS)}
    maybe(r, rule, "exclude", r.sample(["shop:tick", "*:debug", "a:c"], r.randint(1, 3)))
    maybe(r, rule, r.choice(["loglevel", "loglevel_only"]), r.randint(0, 14))
    maybe(r, rule, "filter", r.choice(FILTERS))
    maybe(r, rule, "enabled", r.random() < 0.5)
    return rule


def random_channel(r, name, snapshot):
    overwrite = snapshot or r.random() < 0.2
    channel = {"name": name, "mode": "overwrite" if overwrite else "discard"}
    maybe(r, channel, "enabled", r.random() < 0.5)
    maybe(r, channel, "buffers", r.choice(["cpu", "thread", "process", "auto"]))
    maybe(r, channel, "subbuf_size", r.choice([4096, 65536, "128K"]))
    maybe(r, channel, "num_subbuf", 1 << r.randint(1, 4))
    maybe(r, channel, "burst_size", r.choice((0, 1 << 20, 1 << 26)))
    maybe(r, channel, "pool_size", r.randint(1, 64))
    maybe(r, channel, "event_conflict", r.choice(["refuse", "separate"]))
    maybe(r, channel, "switch_timer", r.choice([0, "500ms", 123456]))
    maybe(r, channel, "read_timer", r.choice([0, 2000]))
    if not overwrite:
        maybe(r, channel, "blocking_timeout", r.choice([0, 300, "inf"]))
        maybe(r, channel, "tracefile_size", 1 << 20)
        if "tracefile_size" in channel:
            maybe(r, channel, "tracefile_count", r.randint(1, 9))
    maybe(r, channel, "contexts", r.sample(CONTEXTS, r.randint(1, 3)))
    maybe(r, channel, "rules", [random_rule(r) for _ in range(r.randint(0, 5))])
    return channel


def random_trigger(r, name, writes):
    """Conditions and actions that any session may have."""
    trigger = {"name": name, "do": r.choice(["notify", "stop,notify", "start"]),
        "when": r.choice(["died", "died(shop*)", "discarded > 5", "events/s > 100", "event(shop:*, warning) && x > 3 && y",
            "span(shop:checkout) > 20ms", "span(*) > 1h && paid"])}
    maybe(r, trigger, "rate", r.choice(["1/1s", "3/1h"]))
    if writes and r.random() < 0.3:
        trigger["do"] = "snapshot,notify"
        maybe(r, trigger, "keep", r.choice(["1", "10", "500M"]))
    return trigger


def random_session(k, r, name):
    snapshot = r.random() < 0.2
    session = {"name": name, "output": "" if not snapshot and r.random() < 0.2 else str(k.traces / name)}
    if snapshot:
        session["snapshot"] = True
        maybe(r, session, "seconds", r.randint(1, 100))
    maybe(r, session, "absolute_clock", True)
    maybe(r, session, "state", r.choice(["started", "stopped", "paused"]))
    session["channels"] = [random_channel(r, f"c{i}", snapshot) for i in range(r.randint(0, 3))]
    maybe(r, session, "tracked", {a: r.choice([[], ["1", "77"]]) for a in r.sample(["vpid", "vuid", "vgid", "pid"], r.randint(1, 4))})
    if session["output"] and not snapshot:
        maybe(r, session, "rotation", {key: r.randint(1 << 30, 1 << 34) for key in r.sample(["timer", "size", "max_disk", "keep_free", "keep_chunks", "keep_bytes", "keep_s"], r.randint(1, 7))})
        if "keep_free" in session.get("rotation", {}):  # less than any disk has
            session["rotation"]["keep_free"] >>= 12
    if r.random() < 0.5:
        session["triggers"] = [random_trigger(r, f"t{i}", session["output"]) for i in range(r.randint(1, 4))]
    return session


def valid(text):
    """Fails if the text does not follow the published schema."""
    for python in (sys.executable, "/usr/bin/python3"):
        if not subprocess.run([python, "-c", "import jsonschema"], capture_output=True).returncode:
            done = subprocess.run([python, "-c", VALIDATE, SCHEMA], input=text, text=True, capture_output=True)
            return check(done.returncode == 0, f"{done.stderr[-500:]} in {text}")
    raise Skip("jsonschema is missing (Debian package python3-jsonschema)")


def test_round_trip(k):
    """Random sessions: save, destroy, load and save give equal bytes."""
    k.start_daemon()
    seed = random.randrange(1 << 30)
    for number in rounds():
        r = random.Random(seed + number)
        wanted = {"version": 1, "sessions": [random_session(k, r, f"s{i}") for i in range(r.randint(1, 3))]}
        what = f"seed {seed + number}: {json.dumps(wanted)}"
        first, second = k.top / "first.json", k.top / "second.json"
        valid(json.dumps(wanted))
        k.run([kymotest.CLI, "load", "/dev/stdin"], input=json.dumps(wanted))
        k.kymo("save", "-a", "-o", first, "-f")
        valid(first.read_text())
        k.kymo("destroy", "-a")
        shutil.rmtree(k.traces, ignore_errors=True)
        k.kymo("load", first)
        k.kymo("save", "-a", "-o", second, "-f")
        equal(second.read_text(), first.read_text(), what)
        saved = json.loads(first.read_text())["sessions"]
        for session, has in zip(wanted["sessions"], saved):
            for key in ("name", "output", "snapshot", "absolute_clock", "state", "tracked", "rotation", "triggers"):
                equal(has.get(key, session.get(key)), session.get(key, has.get(key)), f"{key}, {what}")
            for channel, have in zip(session["channels"], has["channels"]):
                rules = {(x["pattern"], tuple(x.get("exclude", ())), x.get("loglevel"), x.get("loglevel_only"), x.get("filter")) for x in channel.get("rules", [])}
                kept = {(x["pattern"], tuple(x.get("exclude", ())), x.get("loglevel"), x.get("loglevel_only"), x.get("filter")) for x in have["rules"]}
                equal(kept, rules, f"rules, {what}")
        k.kymo("destroy", "-a")
        shutil.rmtree(k.traces, ignore_errors=True)


def test_every_option(k):
    """Each option that `kymo set` knows is saved."""
    k.start_daemon()
    k.record("a:b")
    session = json.loads(k.kymo("save", "s").stdout)["sessions"][0]
    options = k.request(command="set", session="s")["channels"][0]["options"]
    equal({o["key"].replace("-", "_") for o in options} - set(session["channels"][0]), set(), "options that are not saved")
    equal(k.kymo_json("save", "s", "-o", k.top / "f.json"), {"ok": True, "output": str(k.top / "f.json")}, "the object of --json")
    k.kymo("save", "s", "-o", k.top / "f.json", status=1)
    for options in (), ("-f",):
        said = k.kymo("save", "s", "-o", k.top, *options, status=1).stderr
        check("is a directory: -o names a file" in said, said)
    k.kymo("save", "s", "-o", k.top / "f.json", "-f")
    kept = (k.top / "f.json").read_text()
    (k.top / "f.json.part").mkdir()
    k.kymo("add-context", "-t", "vtid")
    k.kymo("save", "s", "-o", k.top / "f.json", "-f", status=1)
    equal((k.top / "f.json").read_text(), kept, "a file that could not be replaced")
    (k.top / "link").symlink_to(k.top / "target")  # as /dev/stdout is one
    k.kymo("save", "s", "-o", k.top / "link", "-f", status=1)
    check((k.top / "link").is_symlink(), "save replaced a link")


BAD = [
    ('{"version": 1,\n "sessions": [\n {"name": "x",\n  "chanels": []}]}', 4, "did you mean 'channels'?"),
    ('{"version": 1,\n "sessions": [\n {"name": "x"\n  "channels": []}]}', 4, "this is no JSON"),
    ('{"version": 1,\n "sessions": [\n {"output": "/tmp"}]}', 3, "a session needs a 'name'"),
    ('{"version": 2}', 1, "'version' must be 1"),
    ('{"version": 1, "sessions": [{"name": "x", "channels": [\n{"name": "c", "rules": [\n{"pattern": "a:*"},\n{"pattern": "a:*", "filter": "x &&"}]}]}]}', 4, "filter"),
    ('{"version": 1, "sessions": [{"name": "x", "channels": [\n{"name": "c",\n"subbuf_size": true}]}]}', 3, "must be a number"),
    ('{"version": 1, "sessions": [{"name": "x", "channels": [\n{"name": "c", "subbuf_size": "many"}]}]}', 2, "subbuf"),
    ('{"version": 1, "sessions": [{"name": "x", "channels": [\n{"name": "c",\n "contexts": ["nothing"]}]}]}', 3, "nothing"),
    ('{"version": 1, "sessions": [{"name": "x",\n "tracked": {"vpid":\n ["me"]}}]}', 3, "me"),
    ('{"version": 1, "sessions": [{"name": "x",\n "state": "running"}]}', 2, "unknown state"),
    ('{"version": 1, "sessions": [{"name": "x", "triggers": [\n{"when": "died", "do": "notify"},\n{"when": "never", "do": "notify"}]}]}', 3, "unknown condition"),
    ('{"version": 1, "sessions": [{"name": "x", "triggers": [\n{"when": "died"}]}]}', 2, "needs 'when' and 'do'"),
    ('{"version": 1, "sessions": [{"name": "x", "triggers": [\n{"when": "died",\n "then": "notify"}]}]}', 3, "unknown member 'then'"),
    ('{"version": 1, "sessions": [{"name": "..x"}]}', 1, "cannot name a session"),
]


def test_errors(k):
    k.start_daemon()
    path = k.top / "bad.json"
    for text, line, words in BAD:
        path.write_text(text)
        said = k.kymo("load", path, status=1).stderr
        check(said.startswith(f"kymo: {path}:{line}: ") and words in said, f"{text}: {said}")
        equal(k.kymo_json("list")["sessions"], [], "sessions that are left")
    k.kymo("load", k.top / "none.json", status=1)
    path.write_text("nothing")
    check("is no profile" in k.kymo("load", path, status=1).stderr, "text that is neither JSON nor XML")


def test_no_profile_no_daemon(k):
    """A file that is no profile starts no daemon."""
    path = k.top / "bad.json"
    for text in ("nothing", "{", "<sessions>", "<sessions/>"):
        path.write_text(text)
        k.kymo("load", path, status=1)
    (k.top / "empty").mkdir()
    k.kymo("load", "--missing", k.top / "empty")
    check("no session daemon is running" in k.kymo("list").stdout, "a daemon runs")


def test_replace_and_missing(k):
    k.start_daemon()
    k.record("a:b")
    k.kymo("save", "s", "-o", k.top / "s.json")
    check("session 's' exists already" in k.kymo("load", k.top / "s.json", status=1).stderr, "a second session of the name")
    equal(k.kymo("load", "--missing", k.top / "s.json").stdout, "", "a session that exists")
    k.kymo("load", "-f", "-o", k.traces / "other", k.top / "s.json")
    k.kymo("load", "--override-name=t", "-o", k.traces / "third", k.top / "s.json")
    k.kymo("load", "--override-name=u", "-o", "fourth", k.top / "s.json", cwd=k.traces)
    outputs = {"s": "other", "t": "third", "u": "fourth"}
    equal({s["name"]: s["output"] for s in k.kymo_json("list")["sessions"]}, {name: str(k.traces / out) for name, out in outputs.items()}, "sessions")


def profile(k, name):
    return json.dumps({"version": 1, "sessions": [{"name": name, "output": str(k.traces / (name + "-*")), "state": "started", "channels": [{"name": "c", "rules": [{"pattern": "emit:*"}]}]}]})


def started(k):
    return sorted(s["name"] for s in k.request(command="list")["sessions"] if s["state"] == "started")


def loaded(k):
    """The daemon has no child any more that loads sessions."""
    return not kymotest.children(k.daemon.pid, "kymo -q")


def test_directory_of_the_daemon(k):
    """
    The daemon loads its sessions once: not again when it takes over a killed predecessor's. A bad
    file is one line of the log, and the others are loaded.
    """
    directory = k.top / "sessions.d"
    directory.mkdir()
    for name in ("one", "two"):
        (directory / f"{name}.json").write_text(profile(k, name))
    (directory / "bad.json").write_text('{"version": 1,\n"sessions": [\n{"nam": "x"}]}')
    (directory / "README").write_text("no profile")
    k.start_daemon(f"--sessions={directory}")
    wait_for(lambda: started(k) == ["one", "two"], "the sessions")
    wait_for(lambda: k.daemon_log().count("bad.json:3: unknown member 'nam'") == 1, "the line about the bad file")
    k.app("emit", "-n", 10)
    k.daemon.kill()
    k.daemon.wait()
    k.daemon = None
    k.start_daemon(f"--sessions={directory}")
    wait_for(lambda: k.daemon_log().count("bad.json:3: unknown member 'nam'") == 2, "the second reading")
    wait_for(lambda: loaded(k), "the end of the second reading")
    equal(started(k), ["one", "two"], "sessions after the daemon's death")
    equal(len(list(k.traces.iterdir())), 2, "traces")
    k.kymo("stop", "-a")
    for s in k.kymo_json("list")["sessions"]:
        equal(k.kymo_json("status", s["name"])["session"]["recorded"], 10, f"events of {s['name']}")


def test_directory_json(k):
    """The object names the loaded sessions, also if a profile is refused."""
    k.start_daemon()
    directory = k.top / "profiles"
    directory.mkdir()
    for name in ("one", "two"):
        (directory / f"{name}.json").write_text(profile(k, name))
    (directory / "bad.json").write_text("{")
    done = k.kymo("--json", "load", directory, status=1)
    result = json.loads(done.stdout)
    equal((result["ok"], result["code"], result["sessions"]), (False, "failed", ["one", "two"]), "result")
    check("bad.json:1: this is no JSON" in done.stderr, done.stderr)


def test_failed_save(k):
    """A file that cannot be written completely is removed, so that the same command can follow."""
    k.start_daemon()
    k.kymo("create", "s", "--no-output")
    path = k.top / "s.json"
    done = k.run(["sh", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "sh", CLI, "save", "s", "-o", path], status=1)
    check("File too large" in done.stderr and not path.exists(), done.stderr)
    k.kymo("save", "s", "-o", path)


def test_daemon_ends_first(k):
    """The command that loads the sessions of a daemon that has ended starts none in its place."""
    directory = k.top / "sessions.d"
    directory.mkdir()
    os.mkfifo(directory / "one.json")
    writer = os.open(directory / "one.json", os.O_RDWR)
    k.start_daemon(f"--sessions={directory}")
    wait_for(lambda: not loaded(k), "the command that loads")
    loader = kymotest.children(k.daemon.pid, "kymo -q")[0]
    k.stop_daemon()
    os.write(writer, profile(k, "one").encode())
    os.close(writer)
    wait_for(lambda: not kymotest.alive(loader), "its end")
    equal(kymotest.processes_with(k.mark), [], "processes without a daemon")


kymotest.main()
