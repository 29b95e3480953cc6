#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kymo load: sessions from profiles that LTTng's `lttng save` wrote."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
import kymotest  # noqa: E402
from kymotest import check, equal  # noqa: E402

CHANNEL = """<channel><name>{name}</name><enabled>{enabled}</enabled><overwrite_mode>{mode}</overwrite_mode>
<subbuffer_size>{size}</subbuffer_size><subbuffer_count>{count}</subbuffer_count><switch_timer_interval>{switch}</switch_timer_interval>
<read_timer_interval>0</read_timer_interval><output_type>MMAP</output_type><blocking_timeout>{blocking}</blocking_timeout>
<monitor_timer_interval>1000000</monitor_timer_interval><tracefile_size>{file}</tracefile_size><tracefile_count>{files}</tracefile_count>
<live_timer_interval>0</live_timer_interval><events>{events}</events><contexts>{contexts}</contexts></channel>
"""
USUAL = {"enabled": "true", "mode": "DISCARD", "size": 524288, "count": 4, "switch": 0, "blocking": 0, "file": 0, "files": 0, "contexts": ""}


def channel(name, events, **other):
    return CHANNEL.format(name=name, events=events, **{**USUAL, **other})


def event(name, level="<loglevel_type>ALL</loglevel_type>", enabled="true", rest=""):
    return f"<event><name>{name}</name><enabled>{enabled}</enabled><type>TRACEPOINT</type>{level}{rest}</event>"


def profile(*domains, name="prof", started="false", attributes="", output=""):
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<sessions xmlns="https://lttng.org/xml/ns/lttng-mi">
\t<session>\t<name>{name}</name><domains>{''.join(domains)}</domains>
<started>{started}</started><attributes>{attributes}</attributes><output>{output}</output></session>
</sessions>
"""


def domain(type, *channels, buffers="PER_UID", rest=""):
    return f"<domain><type>{type}</type><buffer_type>{buffers}</buffer_type><channels>{''.join(channels)}</channels>{rest}</domain>"


def tracker(attribute, *values):
    values = "".join(f"<{attribute}>{v}</{attribute}>" for v in values)
    return f"<process_attr_trackers><{attribute}_process_attr_tracker><process_attr_values>{values}</process_attr_values>" \
        f"</{attribute}_process_attr_tracker></process_attr_trackers>"


NETWORK = "<consumer_output><enabled>true</enabled><destination><net_output><control_uri>tcp4://10.0.0.1:5342/</control_uri></net_output>" \
    "</destination></consumer_output>"


def start(k, text):
    (k.top / "p.lttng").write_text(text)
    k.env["LTTNG_HOME"] = str(k.home)
    k.start_daemon()
    return k.top / "p.lttng"


def test_whole_profile(k):
    level = "<loglevel_type>{}</loglevel_type><loglevel>{}</loglevel>".format
    ust = domain("UST",
        channel("first", event("one:two", level("SINGLE", 3)) + event("shop:*", level("RANGE", 6),
            rest="<filter>n &gt; 3 &amp;&amp; s == &quot;a&lt;b&quot;</filter><exclusions><exclusion>shop:a</exclusion><exclusion>shop:b</exclusion></exclusions>"),
            mode="OVERWRITE", size=1048576, count=8, switch=2000000, file=16777216, files=4,
            contexts="<context><type>VPID</type></context><context><app><provider_name>prov</provider_name><ctx_name>Ctx</ctx_name></app></context>"
            "<context><type>PTHREAD_ID</type></context>"),
        channel("second", event("*", enabled="false"), enabled="false", blocking=-1), buffers="PER_PID",
        rest="<process_attr_trackers><vpid_process_attr_tracker><process_attr_values><vpid><id>200</id></vpid><vpid><id>100</id></vpid>"
        "</process_attr_values></vpid_process_attr_tracker></process_attr_trackers>")
    python = domain("PYTHON", channel("lttng_python_channel", event("my.log", level("RANGE", 20),
        rest="<filter>(logger_name == &quot;my.log&quot;) &amp;&amp; (int_loglevel &gt;= 20)</filter>")))
    jul = domain("JUL", channel("lttng_jul_channel", event("*")))
    kernel = domain("KERNEL", channel("channel0", event("sched_switch")))
    path = start(k, profile(ust, domain("LOG4J"), python, jul, kernel, started="true",
        attributes="<rotation_schedules><size_threshold><bytes>104857600</bytes></size_threshold></rotation_schedules>",
        output=f"<consumer_output><enabled>true</enabled><destination><path>{k.top}/out</path></destination></consumer_output>"))
    done = k.kymo("load", path)
    check("of the kernel are left out" in done.stderr and "'prof' loaded, and started" in done.stdout, f"{done.stdout}{done.stderr}")
    s = k.kymo_json("status", "prof")["session"]
    equal((s["state"], s["output"]), ("started", str(k.top / "out")), "the session")
    channels = {c["name"]: c for c in s["channels"]}
    equal(list(channels), ["first", "second", "lttng_python_channel", "lttng_jul_channel"], "channels")
    first, second = channels["first"], channels["second"]
    equal([first[f] for f in ("mode", "subbuf_size", "num_subbuf", "switch_timer", "tracefile_size", "tracefile_count", "buffers", "enabled")],
        ["overwrite", 1048576, 8, 2000000, 16777216, 4, "process", True], "options of the first channel")
    equal(first["contexts"], ["vpid", "$app.prov:Ctx", "pthread_id"], "its contexts")
    equal([(r["pattern"], r["loglevel"], r["loglevel_type"], r["filter"], r["exclude"]) for r in first["rules"]],
        [("one:two", 3, "only", "", []), ("shop:*", 6, "at-least", 'n > 3 && s == "a<b"', ["shop:a", "shop:b"])], "its rules")
    equal((second["enabled"], second["rules"][0]["enabled"]), (False, False), "what is disabled")
    python, jul = channels["lttng_python_channel"]["rules"][0], channels["lttng_jul_channel"]["rules"][0]
    equal((python["pattern"], python["filter"]), ("lttng_python:event",
        'logger_name == "my.log" && ((logger_name == "my.log") && (int_loglevel >= 20))'), "the rule of a logger")
    equal((jul["pattern"], jul["filter"]), ("lttng_jul:event", ""), "the rule of all loggers")
    k.kymo("disable-event", "--python", "-s", "prof", "-c", "lttng_python_channel", "my.log")


def test_bad_numbers(k):
    """A size that is no number is refused; it is not taken for LTTng's 0, the default."""
    path = start(k, "")
    for value in ("-1", "abc", "1e9", "1M", "0x1000"):
        path.write_text(profile(domain("UST", channel("channel0", event("a:b"), size=value))))
        said = k.kymo("load", path, "-o", k.top / "out", status=1).stderr
        check(f"channel 'channel0': subbuffer_size is '{value}', not a number" in said, said)
        equal(k.kymo_json("list")["sessions"], [], "sessions")


def test_disabled_rules(k):
    """Rules of one pattern, of which some are disabled, with all that a rule may have."""
    level = "<loglevel_type>RANGE</loglevel_type><loglevel>6</loglevel>"
    rest = "<filter>n == 1</filter><exclusions><exclusion>a:b</exclusion></exclusions>"
    path = start(k, profile(domain("UST", channel("channel0", event("a:*") + event("a:*", level, "false") + event("a:*", enabled="false", rest=rest)
        + event("c:d", level, "false")))))
    k.kymo("load", path, "-o", k.top / "out")
    rules = k.kymo_json("status", "prof")["session"]["channels"][0]["rules"]
    found = sorted((r["pattern"], r["filter"], r["loglevel_type"], r["enabled"]) for r in rules)
    equal(found, sorted([("a:*", "", "all", True), ("a:*", "", "at-least", False), ("a:*", "n == 1", "all", False), ("c:d", "", "at-least", False)]), "the rules")


def test_trackers(k):
    """A tracker without values tracks nothing; users and groups may have names."""
    path = start(k, "")
    for attribute, values, wanted in (("vpid", (), []), ("vuid", ("<name>root</name>", "<id>1</id>"), ["0", "1"]), ("vgid", ("<name>root</name>",), ["0"])):
        path.write_text(profile(domain("UST", channel("channel0", event("a:b")), rest=tracker(attribute, *values))))
        k.kymo("load", "--force", path, "-o", k.top / attribute)
        equal(sorted(k.kymo_json("status", "prof")["session"]["tracked"][attribute]), wanted, f"{attribute} that are tracked")


def test_outputs(k):
    """Snapshots go to their output, a session of another host to --output; buffers stay there."""
    directory = "<consumer_output><enabled>true</enabled><destination><path>{}</path></destination></consumer_output>".format
    snapshots = f"<snapshot_outputs><output><name>snapshot-1</name><max_size>0</max_size>{directory(k.top / 'snapshots')}</output></snapshot_outputs>"
    path = start(k, profile(attributes="<snapshot_mode>true</snapshot_mode>", output=snapshots))
    k.kymo("load", path)
    equal(k.kymo_json("status", "prof")["session"]["output"], str(k.top / "snapshots"), "where snapshots go")
    path.write_text(profile(name="net", attributes="<live_timer_interval>1000000</live_timer_interval>", output=NETWORK))
    k.kymo("load", path, "-o", k.top / "here")
    path.write_text(profile(name="shm", output=directory(k.top / "out")).replace("<domains>", f"<shared_memory_path>{k.top}/a/b</shared_memory_path><domains>"))
    k.kymo("load", path)
    equal(k.kymo_json("status", "shm")["session"]["shm_path"], str(k.top / "a" / "b"), "where buffers are")
    k.kymo("destroy", "--all")


def test_records(k):
    """A session of a profile records as one that was made by commands."""
    path = start(k, profile(domain("UST", channel("channel0", event("lttng_ust_nothing:*") + event("emit:*"))), started="true"))
    k.kymo("load", path, "-o", k.top / "out", "--override-name=other")
    k.app("emit", "-n", 10)
    said = k.kymo("destroy", "other").stdout
    check("'other' destroyed: 10 events recorded, 0 discarded" in said, said)


def test_names_and_places(k):
    path = start(k, profile(domain("UST", channel("channel0", event("a:b")))))
    (k.home / ".lttng" / "sessions").mkdir(parents=True)
    path.rename(k.home / ".lttng" / "sessions" / "saved.lttng")
    k.kymo("load", "saved", "-o", k.top / "1")
    check("exists" in k.kymo("load", "saved", "-o", k.top / "2", status=1).stderr, "the name is taken")
    k.kymo("load", "--force", "saved", "-o", k.top / "2")
    equal(k.kymo_json("status", "prof")["session"]["output"], str(k.top / "2"), "the output of the second")
    k.kymo("load", "-f", "-i", k.home / ".lttng" / "sessions", "saved", "-o", k.top / "3")
    check("there is no profile" in k.kymo("load", "missing", status=1).stderr, "a missing profile")
    k.kymo("load", status=2)


def test_refused(k):
    """A profile that cannot be loaded leaves no session."""
    path = start(k, "")
    for text, said in (
        ("", "no profile"),
        ("<a/>", "no profile"),
        ("<sessions></sessions>", "no profile"),
        (profile(domain("UST", channel("channel0", event("a:b", rest="<filter>n &gt;</filter>")))), "filter"),
        (profile(domain("UST", channel("channel0", event("a:b"), contexts="<context><type>NONE_SUCH</type></context>"))), "none_such"),
        (profile(domain("WINDOWS")), "unknown domain"),
        (profile(output=NETWORK), "over a network: give --output=DIR"),
        (profile(domain("UST", rest=tracker("vuid", "<name>none-such</name>"))), "there is no user 'none-such'"),
    ):
        path.write_text(text)
        done = k.kymo("load", path, *(["-o", k.top / "out"] if NETWORK not in text else []), status=(1, 2))
        check(said in done.stderr, f"{said}: {done.stderr}")
        equal(k.request(command="list")["sessions"], [], f"sessions after {said}")


if __name__ == "__main__":
    kymotest.main()
