#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The command line: help, JSON, default names and places, a daemon on demand, and its output about
sessions and applications.
"""

import json
import os
import re
import signal
import subprocess

import kymotest
from kymotest import BUILD, CLI, check, equal, read_trace, wait_for

COMMANDS = ["record", "create", "destroy", "start", "stop", "enable-channel", "disable-channel", "enable-event", "disable-event",
    "track", "untrack", "list", "status", "set-session"]


def one_object(text):
    equal(len(text.strip().splitlines()), 1, f"lines of JSON: {text!r}")
    return json.loads(text)


def waiting_app(k):
    app = k.spawn("emit", "-w", "-n", 5)
    k.expect(app, "ready")
    k.wait_registered(app)
    return app


def test_help(k):
    overview = k.kymo("--help").stdout
    equal(k.kymo("help").stdout, overview, "kymo help")
    equal(k.run([CLI], status=2).stderr, overview, "kymo")
    listed = re.findall(r"^  ([a-z-]+) {2,}\S", overview.split("A first trace")[0], re.M)
    for command in listed:
        text = k.kymo(command, "--help").stdout
        equal(k.kymo("help", command).stdout, text, f"help {command}")
        equal(k.kymo("--help", command).stdout, text, f"--help {command}")
        check(f"Usage: kymo {command}" in text and "--json" in text, f"help of {command}: {text}")
    for command in COMMANDS:
        check(command in listed, f"{command} is not listed")
    check(re.fullmatch(r"kymo \d+\.\d+\.\d+\n", k.kymo("--version").stdout), "version")


def test_suggestions(k):
    for wrong, right in (("strat", "start"), ("enable-evnet", "enable-event"), ("lst", "list")):
        check(f"did you mean '{right}'" in k.kymo(wrong, status=2).stderr, wrong)
        check(f"did you mean '{right}'" in k.kymo("help", wrong, status=2).stderr, f"help {wrong}")
    check("--loglevel'" in k.kymo("enable-event", "--loglevle=1", "a", status=2).stderr, "option")
    check("NOTICE" in k.kymo("enable-event", "-l", "NOTIC", "a", status=2).stderr, "level")
    for option in ("--no-consumer", "--ctrl-url=x", "--mi"):
        check("is not supported: " in k.kymo("create", option, status=1).stderr, f"{option} is refused by name")
    for options in ("-m", "xml"), ("--mi=xml",), ("-g", "tracing"), ("--group=tracing",):
        check("is not supported: " in k.kymo(*options, "list", status=1).stderr, f"{options} in front are refused by name")
    check("is not supported: " in k.kymo("metadata", status=1).stderr, "a command that is refused by name")
    check("needs --snapshot" in k.kymo("create", "--seconds=5", status=2).stderr, "--seconds alone")
    for other in ("--snapshot", "--no-output"):
        check("either --live or" in k.kymo("create", "--live", other, status=2).stderr, f"--live with {other}")
    check("'--listen'" in k.kymo("live", "--port=5344", status=2).stderr, "another name of --listen")
    check("before the command" in k.kymo("list", "-q", status=1).stderr, "an option of kymo itself")
    check("--output=DIR" in k.kymo("create", "--set-url=file:///t", status=2).stderr, "an address on this host")
    check("'kymo live'" in k.kymo("create", "--set-url=net://localhost", status=2).stderr, "the address of a relay daemon")
    check("babeltrace2" in k.kymo("view", "net://localhost/host/vm/s", status=2).stderr, "the address of a live session")
    check("-o DIR" in k.kymo("snapshot", "record", "/t", status=2).stderr, "an address of a snapshot")
    check("name each session" in k.kymo("destroy", "--glob", "x*", status=1).stderr, "an option of a later lttng")
    for letter, right in (("-F", "--sample=HZ"), ("-g", "-t callstack"), ("-a", "--whole-system")):
        check(right in k.kymo("record", letter, "--", "true", status=1).stderr, f"an option of perf, {letter}")
    for options in ("-s", "x"), ("--output=x",):
        check("write the options of a command behind its name" in k.kymo(*options, "list", status=2).stderr, f"{options} in front")
    for wrong in "run", "trace", "exec":
        check("'kymo record COMMAND'" in k.kymo(wrong, "true", status=1).stderr, wrong)
    check("stat --locks" in k.kymo("lock", status=1).stderr, "a command of perf")
    for path, right in (("/bin/true", "record"), (k.home, "view")):
        check(f"did you mean 'kymo {right} {path}'?" in k.kymo(path, status=2).stderr, f"no command but {path}")
    check("'kymo track --vpid=123'" in k.kymo("record", "-p", "123", status=127).stderr, "the number of a process")
    for args in ("record", "--pid=123", "true"), ("start", "-p", "123"), ("status", "-p"):
        check("'kymo track --vpid=PID'" in k.kymo(*args, status=1).stderr, f"the number of a process: {args}")
    check("--by=process" in k.kymo("top", "-p", "123", status=1).stderr, "the number of a process, for top")
    check("'kymo enable-event' takes their names" in k.kymo("add-context", "-j", "-t", "vpid", status=1).stderr, "contexts of loggers")
    for args in ("view", "-j"), ("stop", "--python"), ("top", "-l"):
        check("unknown option" in k.kymo(*args, status=2).stderr, f"{args} is no option of loggers")


def test_help_to_full_output(k):
    """Help that cannot be printed is a failure, with one line about it."""
    for name in ("agentd", "collectd", "consumerd", "sessiond"):
        for option in ("--help", "--version"):
            program = BUILD / "src" / name / f"kymo-{name}"
            done = k.run(["sh", "-c", 'exec "$@" >/dev/full', "sh", program, option], status=1)
            equal(done.stderr, f"kymo-{name}: cannot write: No space left on device\n", f"{name} {option}")


def test_usage_is_2(k):
    """Exit status 2 and code "usage" always occur together, whichever part finds the mistake."""
    k.start_daemon()
    k.kymo("create", "s", "--no-output")
    bad = k.top / "bad.json"
    bad.write_text("{")
    for args in (("enable-event", "a", "-l", "LOUD"), ("enable-event", "a:b", "-f", "a &&"), ("enable-channel", "c", "--switch-timer=-1"),
        ("enable-channel", "c", "--subbuf-size=abc"), ("set", "x=1"), ("create", ".."), ("stop", "absent"), ("enable-event", "--kernel", "a"),
        ("start", "--frobnicate"), ("create", "s"), ("load", bad)):
        done = k.run([CLI, "--json", *args], status=(1, 2))
        code = json.loads(done.stdout)["code"]
        equal(done.returncode, 2 if code == "usage" else 1, f"exit status of {args}, whose code is {code}")
    equal(code, "failed", "code of a file that is no profile")
    k.kymo("regenerate", "statedump", status=1)
    check("metadata is always complete" in k.kymo("regenerate", "metadat", status=2).stderr, "what is regenerated")
    equal(k.kymo("regenerate", "metadata").stdout, "note: metadata is always complete: there was nothing to do\n", "metadata")
    check("not both" in k.kymo("watch", "--session=s", "absent", status=2).stderr, "two names of a session")


def test_bytes_that_are_no_text(k):
    """The argument that is not UTF-8 is named; or what is it in the environment."""
    k.start_daemon()
    for line, named in ((["stop", b"a\xff"], "argument 'a\\xff'"), (["create", "a", "-o", b"/tmp/\xff"], "--output=/tmp/\\xff"),
        (["record", "-e", b"\xff:*", "true"], "--event=\\xff:*"), (["record", "-o", b"\xfe", "echo", b"\xff"], "--output=\\xfe")):
        done = subprocess.run([CLI, *line], env=k.env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=kymotest.TIMEOUT)
        equal((done.returncode, done.stderr.decode()), (2, f"kymo: {named}: names, patterns and paths must be UTF-8\n"), line)
    odd = os.fsencode(k.top) + b"/\xff"
    done = subprocess.run([CLI, "record", "echo", b"\xfe"], env={**k.env, "KYMO_HOME": odd}, capture_output=True, check=False, timeout=kymotest.TIMEOUT)
    check(done.returncode == 2 and b"KYMO_HOME or HOME" in done.stderr, done.stderr)


def test_refused_as_a_whole(k):
    """A command that is refused for its last option has made nothing."""
    k.start_daemon()
    for option in ("--max-disk=abc", "--keep-free=-1", "--max-disk=1"):
        k.kymo("create", "s", "-o", k.traces / "s", option, status=(1, 2))
        equal(k.request(command="list")["sessions"], [], f"sessions after create {option}")


def test_wrong_session(k):
    """Each command that takes a session says which one may be meant, or that no daemon runs."""
    for command in ("live", "web"):
        said = k.kymo(command, "good", status=1).stderr
        check("there is no trace 'good'" in said and "no session daemon runs" in said, said)
    k.start_daemon()
    k.kymo("create", "good", "--no-output")
    for args in (("watch", "god"), ("list-triggers", "-s", "god"), ("status", "god"), ("top", "god"), ("live", "god"), ("web", "god"), ("save", "god")):
        check("there is no session 'god': did you mean 'good'?" in k.kymo(*args, status=1).stderr, args)
    check("there is no session 'god'" in k.run([CLI, "status", "--check", "god"], status=2).stdout, "status --check")
    check("'kymo save" in k.kymo("load", "nosuch", status=1).stderr, "load says what it loads")


def test_session_of_a_program(k):
    """A program in the working directory has the name of the session, whose trace is meant."""
    k.start_daemon()
    here = k.top / "here"
    here.mkdir()
    (here / "good").write_text("a program")
    for command in ("view", "live", "web"):
        check("good" in k.kymo(command, "good", cwd=here, status=1).stderr, f"{command} without a session")
    k.kymo("create", "good", "-o", k.traces / "good-20261130-101500")
    k.kymo("enable-event", "emit:record")
    k.kymo("start")
    k.app("emit", "-n", 3)
    k.kymo("stop")
    equal(k.kymo("view", "good", cwd=here).stdout.count("emit:record"), 3, "events of the session")
    for command in ("live", "web"):
        with subprocess.Popen([CLI, command, "good", "--listen=127.0.0.1:0"], env=k.env, cwd=here, stdout=subprocess.PIPE) as server:
            check(server.stdout.readline(), f"{command} does not start")
            server.terminate()
    k.kymo("destroy", "good")
    equal(k.kymo("view", "good", cwd=here).stdout.count("emit:record"), 3, "events of the trace of that name")
    check("is a file" in k.kymo("view", "./good", cwd=here, status=1).stderr, "a path")


def test_names_of_lttng(k):
    """The names of lttng's options work for options that have another name in Kymo."""
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    k.kymo("enable-channel", "-u", "a", "--buffers-pid", "-C", "1M", "-W", "3")
    k.kymo("enable-channel", "-u", "b", "--buffers-uid")
    channels = {c["name"]: c for c in k.kymo_json("status", "s")["session"]["channels"]}
    equal((channels["a"]["buffers"], channels["a"]["tracefile_size"], channels["a"]["tracefile_count"], channels["b"]["buffers"]),
        ("process", 1 << 20, 3, "cpu"), "options of channels")
    k.kymo("enable-event", "-c", "b", "--tracepoint", "--all-events")
    for context in "tid", "callstack-user":
        check("it is one of kernel events: --kernel" in k.kymo("add-context", "-u", "-t", context, status=2).stderr, context)
    k.kymo("start")
    k.kymo("list", "-u", "-f")
    k.kymo("snapshot", "record", "-n", "early", "-m", "1M")
    k.kymo("snapshot", "record", "late", "-o", k.traces / "late")
    check((k.traces / "late").exists() or "late" in str(list(k.traces.iterdir())), "a named snapshot in a place of its own")
    k.kymo("disable-event", "-c", "b", "--all-events")
    k.kymo("rotate", "-n")
    k.kymo("stop", "-n")
    wait_for(lambda: k.kymo_json("status", "s")["session"]["state"] == "stopped", "the session to stop")


def test_in_front(k):
    check(k.kymo("version").stdout == k.kymo("--version").stdout, "version")
    check(re.fullmatch(r"\d+\.\d+\.\d+", k.kymo_json("version")["version"]), "version as JSON")
    commands = {c["name"]: c for c in k.kymo_json("help")["commands"]}
    check("create" in commands and "standalone" not in commands, "help as JSON")
    check(any(o["name"] == "output" and o["letter"] == "o" for o in commands["create"]["options"]), "options as JSON")
    for name in commands:
        equal(k.kymo("help", name).stdout.lower().count("exit status"), 1, f"places of 'kymo help {name}' for its exit status")
    check("argument 1 is empty" in k.kymo("view", "", status=2).stderr, "no name of a trace")
    check("without it, all sessions" in k.kymo("help", "list-triggers").stdout, "help on a session that may be left out")
    check("no session daemon" in k.kymo("-n", "create", "s", status=1).stderr, "-n starts none")
    equal(k.kymo("-q", "list").stdout, "", "with --quiet")
    k.kymo("-q", "-v", "create", "s", "--no-output")
    os.kill(int((k.rundir / "lock").read_text()), signal.SIGTERM)
    wait_for(lambda: not (k.rundir / "control.sock").exists(), "the daemon to end")


def test_exchange_a_filter(k):
    """Filters distinguish rules that have the same pattern."""
    k.start_daemon()
    trace = k.record("none:such")
    for text in ("i < 5", "i >= 5"):
        k.kymo("enable-event", "emit:record", "-f", text)
    check("no such rule with the filter" in k.kymo("disable-event", "emit:record", "-f", "i == 7", status=1).stderr, "an unknown filter")
    check("1 rule" in k.kymo("disable-event", "emit:record", "-f", "i < 5").stdout, "one of two")
    rules = k.kymo_json("status", "s")["session"]["channels"][0]["rules"]
    equal({r["filter"]: r["enabled"] for r in rules if r["filter"]}, {"i < 5": False, "i >= 5": True}, "rules")
    k.kymo("destroy", "s")


def test_disable_some(k):
    """Of several patterns, those without a rule are named; the others are disabled then."""
    k.start_daemon()
    k.record("emit:a", start=False)
    for options in ("emit:b",), ("emit:b", "--remove"):
        k.kymo("enable-event", "emit:b")
        equal([r["enabled"] for r in k.kymo_json("disable-event", *options)["rules"]], [False], f"states of rules: {options}")
    done = k.kymo("disable-event", "emit:a,emit:nosuch").stdout
    check("1 rule disabled" in done and "has no enabled rule 'emit:nosuch'" in done, done)


def test_no_daemon(k):
    """Without a daemon, "nothing to list" is a success; any other command fails."""
    check("no session daemon" in k.kymo("list").stdout, "list")
    check("no session daemon" in k.kymo("list", "-u").stdout, "list -u")
    equal(k.kymo_json("list")["sessions"], [], "list --json")
    check("no session daemon" in k.kymo("status", status=1).stderr, "status")
    check(not k.rundir.exists(), "a daemon was started")


def test_on_demand(k):
    """
    create starts a daemon that outlives it, and that keeps none of its descriptors (run() waits
    until all are closed).
    """
    done = k.kymo("create")
    found = re.search(r"'(auto-\d{8}-\d{6})' created: its trace goes to (\S+)", done.stdout)
    check(found, f"create said {done.stdout!r}")
    equal(found[2], str(k.traces / found[1]), "default output")
    pid = k.request(command="hello")["pid"]
    k.kymo("create", "named")
    equal(k.request(command="hello")["pid"], pid, "daemon's pid after the second create")
    check([n for n in os.listdir(k.traces) if re.fullmatch(r"named-\d{8}-\d{6}", n)], f"traces: {os.listdir(k.traces)}")
    k.kymo("destroy", "-a")
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not kymotest.alive(pid), "the daemon to end")


CLOSED = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-']


def closed(k, *args, status=0):
    """Runs kymo without descriptors 0 to 2."""
    done = subprocess.run([*CLOSED, CLI, *args], env=k.env, timeout=kymotest.TIMEOUT, check=False)
    equal(done.returncode, status, f"exit status of {args}")


def record_closed(k):
    output = k.top / "trace"
    closed(k, "-q", "create", "s", "-o", output)
    closed(k, "-q", "enable-event", "emit:*")
    closed(k, "-q", "start")
    k.run([*CLOSED, kymotest.APPS / "emit", "-n", 100])
    pid = k.request(command="hello")["pid"]
    closed(k, "-q", "destroy")
    equal(len(read_trace(output)[0]), 100, "events in the trace")
    return pid


def test_no_standard_files(k):
    """Commands, and the daemons that they start, work without descriptors 0 to 2."""
    closed(k, "list", status=1)  # what it says cannot be written
    pid = record_closed(k)
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not kymotest.alive(pid), "the daemon to end")


def test_full_output(k):
    """Commands that go on after their first output end if it cannot be written."""
    k.start_daemon()
    k.record(start=False)
    k.kymo("start", "s")
    for args in (["live", "s"], ["top", "s", "-d", "10ms"], ["top", "s", "--json", "-d", "10ms"], ["web", "s"]):
        if args[0] == "web" and "no web server" in k.kymo("web", "--listen=x", "s", status=None).stderr:
            continue  # a build without it
        for to in (">/dev/full", ">&-"):
            done = k.run(["sh", "-c", f'exec "$0" "$@" {to}', CLI, *args], status=1)
            check("cannot write the output" in done.stderr, f"{args} {to}: {done.stderr!r}")
    for to, why in (">/dev/full", "No space left on device"), (">&-", "standard output is closed"):
        done = k.run(["sh", "-c", f'exec "$0" list {to}', CLI], status=1)
        equal(done.stderr, f"kymo: cannot write the output: {why}\n", f"list {to}")
        k.run(["sh", "-c", f'exec "$0" status --check {to}', CLI], status=3)  # 1 would be a warning


def test_daemon_without_standard_files(k):
    k.start_daemon(wrap=CLOSED)
    record_closed(k)


def test_daemon_cannot_start(k):
    """One line gives the reason."""
    k.rundir.write_text("")
    text = k.kymo("create", status=1).stderr
    check("did not start" in text and str(k.rundir) in text, f"create said {text!r}")
    k.rundir.unlink()
    text = k.kymo("create", status=1, env={"KYMO_CLOCK": "TSC"}).stderr
    check("KYMO_CLOCK is 'TSC': set it to monotonic or tsc" in text, f"create said {text!r}")
    equal(os.listdir(k.traces) if k.traces.exists() else [], [], "directories left")


def test_refused_output(k):
    """A session that is refused leaves no directory."""
    k.start_daemon()
    k.kymo("create", "s")
    k.kymo("create", "s", status=1)
    equal(len(os.listdir(k.traces)), 1, f"directories: {os.listdir(k.traces)}")


def test_json(k):
    """Each command prints one object, wherever --json is on the command line."""
    k.start_daemon()
    equal(one_object(k.kymo("create", "s", "--json").stdout)["session"]["name"], "s", "create")
    equal(one_object(k.kymo("--json", "enable-channel", "a,b").stdout)["channels"][1]["name"], "b", "enable-channel")
    equal(one_object(k.kymo("enable-event", "--json", "x:y,z:*", "-c", "a").stdout)["ok"], True, "enable-event")
    for line in (["list"], ["list", "s"], ["list", "-u"], ["status"], ["set-session", "s"], ["start"], ["disable-event", "x:y", "-c", "a"],
            ["disable-channel", "b"], ["stop"], ["destroy"]):
        equal(one_object(k.run([CLI, "--json", *line]).stdout)["ok"], True, " ".join(line))
    for line in (["--help"], ["view", "--help"], ["record", "-h"], ["help", "stop"]):
        check(one_object(k.kymo(*line, "--json").stdout)["commands"], f"help as JSON: {line}")
    for line in (["status"], ["strat"], ["list", "--sesion"], ["enable-event"], ["help", "nosuch"], []):
        done = k.run([CLI, *line, "--json"], status=None)
        check(done.returncode in (1, 2), f"{line}: exit {done.returncode}")
        equal(one_object(done.stdout)["ok"], False, " ".join(line))


def test_session(k):
    """The output of list and status about a session, its channels, rules and applications."""
    k.start_daemon()
    app = waiting_app(k)
    k.kymo("create", "s", "-o", k.traces / "s")
    check("1 event matches" in k.kymo("enable-event", "emit:rec*", "-x", "emit:other", "-l", "debug").stdout, "enable-event")
    for command in ("list", "status"):
        check("emit:record" in k.kymo(command, "-u").stdout, f"{command}: events of programs")
        check("channel0" in k.kymo(command, "s", "-u").stdout, f"{command}: channels of programs")
        check("channel0" not in k.kymo(command, "s", "-k").stdout, f"{command}: channels of the kernel")
    check("[stopped]" in k.kymo("list").stdout, "list")
    k.kymo("start")
    text = k.kymo("list", "s").stdout
    for part in ("s [started]", str(k.traces / "s"), "channel0", "8 sub-buffers of 256.0 KiB for each CPU", "emit:rec*, but not emit:other",
            f"{app.pid} emit"):
        check(part in text, f"no {part!r} in {text}")
    k.let_go(app)
    k.let_go(app)
    k.finish(app)
    check("session 's' stopped: 5 events recorded, 0 discarded" in k.kymo("stop").stdout, "stop")
    check("5 events recorded" in k.kymo("destroy").stdout, "destroy")


def test_collector_is_last(k):
    """The user's programs are listed before the collector, although it registered first."""
    k.start_daemon(collector=True)
    k.kymo("create", "s", "--no-output")
    wait_for(lambda: k.kymo_json("list", "-u")["applications"], "the collector's registration")
    app = waiting_app(k)
    names = [a["name"] for a in k.kymo_json("list", "-u")["applications"]]
    equal((len(names), names[0]), (2, "emit"), f"order of {names}")
    k.let_go(app)
    k.let_go(app)
    k.finish(app)


def test_programs(k):
    k.start_daemon()
    app = waiting_app(k)
    text = k.kymo("list", "-u").stdout
    check(f"{app.pid} emit" in text and "emit:record" in text and "emit:signal" in text, f"list -u: {text}")
    check("seq: u64" in k.kymo("list", "-u", "--fields").stdout, "fields")
    k.let_go(app)
    k.let_go(app)
    k.finish(app)


def test_nothing_matches(k):
    """A rule that matches nothing explains why."""
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    text = k.kymo("enable-event", "emit:recrod").stdout
    check("no event matches now" in text and "no instrumented application" in text, f"without a program: {text}")
    app = waiting_app(k)
    check("emit:record" in k.kymo("status").stdout, "status does not suggest the similar name")
    text = k.kymo("enable-event", "emit:record,emit:sginal").stdout
    check("1 event matches now" in text and "did you mean 'emit:signal'" in text, f"one of two: {text}")
    check("recrod" not in text, f"said of another rule: {text}")
    notes = k.kymo_json("enable-event", "emit:sginal")["notes"]
    check("did you mean 'emit:signal'" in notes[0], f"JSON: {notes}")
    k.let_go(app)
    k.let_go(app)
    k.finish(app)


def test_first_rule_matches_nothing(k):
    """The first enable-event names similar events, also of programs not queried before."""
    k.start_daemon()
    app = k.spawn("emit", "-w", "-n", 5)
    k.expect(app, "ready")
    k.kymo("create", "s", "-o", k.traces / "s")
    said = []

    def is_registered():
        said.append(k.kymo("enable-event", "emit:sginal").stdout)
        return "no instrumented application" not in said[-1]

    wait_for(is_registered, "the program to register")
    check("did you mean 'emit:signal'" in said[-1], f"the first rule: {said}")
    k.let_go(app)
    k.let_go(app)
    k.finish(app)


def test_form_of_names(k):
    """
    The warning differs for a pattern that can match nothing, and for one that nothing matches yet.
    The collector is not one of the user's applications.
    """
    k.start_daemon(collector=True)
    k.kymo("create", "s", "-o", k.traces / "s")
    for pattern, said in (("hello", "all of a provider 'hello:*'"), ("hello:", "all of a provider 'hello:*'"), (":b", "of any provider '*:b'")):
        check(f"events are called PROVIDER:NAME, {said}" in k.kymo("enable-event", pattern).stdout, f"what a pattern lacks: {pattern}")
    check("no instrumented application is running" in k.kymo("enable-event", "hello:one").stdout, "the collector alone")
    check("the only application that runs has no such event" in k.kymo("enable-event", "kymo_none:such").stdout, "the collector's")
    k.kymo("track", "--vpid=1")
    check("is not tracked" not in k.kymo("status").stdout, "the collector, which is not tracked")
    check("PROVIDER:NAME" in k.kymo("record", "-e", "emit", "--", kymotest.APPS / "emit", "-n", 1).stderr, "record -e without a provider")


def test_no_place(k):
    """
    If a trace cannot be created, the message names the place and the remedy; no daemon is started
    in vain.
    """
    k.env["KYMO_HOME"] = "/proc/nowhere"
    for command in (["create"], ["record", "true"]):
        text = k.kymo(*command, status=1).stderr
        check("/proc/nowhere" in text and "KYMO_HOME, or give --output" in text, f"{command[0]}: {text}")
        equal(len(text.splitlines()), 1, "lines")


def test_session_without_rules(k):
    """It is said when it starts, and by a reader that shows the newest trace instead."""
    k.start_daemon()
    k.kymo("record", "--with=libc", "-o", k.traces / "earlier", "--", "true")
    equal(k.kymo("stat").stderr, "", "without an empty directory")
    k.kymo("create", "s")
    check("note: session 's' records nothing yet, because it has no event rule" in k.kymo("start").stdout, "no note")
    k.kymo("stop")
    said = k.kymo("stat").stderr
    check(re.search(r"^kymo: s-\d+-\d+ is newer, but nothing was recorded there: this is .*/earlier$", said, re.M), said)
    equal(k.kymo("stat", k.traces / "earlier").stderr, "", "of a trace that is named")
    k.kymo("enable-event", "a:b")
    check("note" not in k.kymo("start").stdout, "a note in spite of a rule")


def test_newest_elsewhere(k):
    """Without a name, readers take the current session's trace if that is newer, also elsewhere."""
    emit = kymotest.APPS / "emit"

    k.start_daemon()
    k.kymo("record", "-o", k.traces / "earlier", "--", emit, "-n", 3)
    k.kymo("create", "s", "-o", k.top / "elsewhere")
    k.kymo("enable-event", "emit:*")
    k.kymo("start")
    equal(len(k.kymo("view").stdout.splitlines()), 3, "events before the session has a trace")
    k.run([emit, "-n", 5])
    k.kymo("stop")
    equal(len(k.kymo("view").stdout.splitlines()), 5, "events of the current session")
    k.kymo("record", "-o", k.traces / "later", "--", emit, "-n", 7)
    equal(len(k.kymo("view").stdout.splitlines()), 7, "events of a trace that is newer")


def test_losses(k):
    """The command reports discarded events, with the remedy."""
    k.start_daemon()
    k.record(channel=("--subbuf-size=4K", "--num-subbuf=2"))
    k.app("emit", "-n", 100000)
    for command in ("stop", "status", "destroy"):
        text = k.kymo(command).stdout
        check(re.search(r"[1-9]\d* discarded", text) and "--subbuf-size" in text, f"{command}: {text}")
        check(re.search(r"[1-9]\d* events were discarded because the buffers were full", text), f"{command}: {text}")


def test_selection(k):
    k.start_daemon()
    k.kymo("create", "a", "-o", k.traces / "a")
    k.kymo("create", "b", "-o", k.traces / "b")
    k.kymo("enable-event", "x")
    k.kymo("set-session", "a")
    k.kymo("enable-event", "y", "-s", "a")
    check(k.kymo("status").stdout.startswith("a "), "current session")
    equal(k.kymo_json("stop", "b", status=None)["ok"], True, "stopping what is stopped")
    k.kymo("destroy", "a")
    k.kymo("status", status=1)
    k.kymo("set-session", "nothing", status=1)


def test_session_name(k):
    """
    Commands for a session accept its name with and without -s, but not twice, and not together with
    --all.
    """
    k.start_daemon()
    k.kymo("create", "s", "-o", k.traces / "s")
    k.kymo("create", "current", "-o", k.traces / "current")
    k.kymo("enable-event", "-s", "s", "x:*")
    for command in ("start", "pause", "resume", "list", "status", "rotate", "clear", "enable-rotation", "disable-rotation", "stop", "destroy"):
        more = ["--size=1G"] if command == "enable-rotation" else []
        for name in (["s"], ["-s", "s"]):
            if command == "destroy" and name == ["-s", "s"]:
                k.kymo("create", "s", "-o", k.traces / "again")
            check("'s'" in k.kymo(command, *more, *name).stdout.replace("s [", "'s' ["), f"{command} {name}")
        check("not both" in k.kymo(command, *more, "s", "--session=s", status=2).stderr, f"{command}: named twice")
        if command in ("start", "stop", "pause", "resume", "destroy", "clear"):
            check("not both" in k.kymo(command, "-a", "--session=s", status=2).stderr, f"{command}: one, and all")


kymotest.main()
