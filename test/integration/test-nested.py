#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Structures, arrays of them, optional fields, variants, and blocks of data with a media type, read
back by babeltrace2 and kymo view.
"""

import collections

import kymotest
from kymotest import APPS, Skip, check, check_counts, equal, fields

LONG = "a text that is longer than what is copied into the scratch buffer, which is 64 bytes"
TEXT = "a text of more than sixteen bytes"


def point(n):
    return {"x": n, "y": n / 2}


def named(name, colour):
    return {"name": name, "_bytes_length_": len(name), "bytes": list(map(ord, name)), "colour": colour, "_bytes_length": 7}


def deep():
    value = {"point": point(0), "pair": [point(0), point(1)]}
    value = {"one": value, "end": 2}
    for name in ("two", "three", "four", "five", "six"):
        value = {name: value}
    return value


def variant(name, label, number, value):
    return {f"_{name}_tag": (label, number), name: value}


REPLIES = [variant("reply", "_number", 0, [-1]), variant("reply", "_text", 1, [TEXT]),
    variant("reply", "_data", 2, [{"_data_length": 3, "data": [97, 98, 99]}]),
    variant("reply", "_points", 3, [{"_points_length": 2, "points": [point(0), point(1)]}]), variant("reply", "none", 4, [{}])]


def option(number, text, where):
    return {"_number_length": len(number), "number": number, "_text_length": len(text), "text": text, "_point_length": len(where),
        "point": where, "end": 1}


def outer(label, number, value):
    return {"_outer_tag_": (label, number), "outer": [value], "_outer_tag": 3}


WANTED = {
    "structure": [{"to": point(1), "end": 1}],
    "array": [{"corners": [point(0), point(1), point(2)], "end": 1}],
    "sequence": [{"_path_length": 2, "path": [point(0), point(1)], "_none_length": 0, "none": [], "end": 1}],
    "longest": [{"_path_length": 64, "path": [point(n) for n in range(64)]}],
    "named": [{"_list_length": 2, "list": [named("one", ("RED", 1)), named(TEXT, ("BLUE", 2))], "end": "end"}],
    "deep": [{"seven": {"six": deep()["six"]}}],
    "options": [option([5], ["here"], [point(1)]), option([], [], []), option([5], [LONG], [point(1)])],
    "variant": [{**r, "end": 1} for r in REPLIES],
    "answers": [{"answers": [{"before": 1, **r, "behind": 2} for r in REPLIES], "_reply_tag": 3}],
    "lists": [{"all": [variant("value", *r["_reply_tag"], r["reply"]) for r in REPLIES], "_some_length": 3,
        "some": [variant("value", "none", 2, [{}]), variant("value", "_two", 0, [2]), variant("value", "_three", 1, [3])], "_none_length": 0, "none": [], "end": 1}],
    "nested": [outer("_inner", 0, {"_inner_tag": ("none", 2), "inner": [{}]}), outer("_named", 1, named(TEXT, ("BLUE", 2))),
        outer("none", 2, {})],
    "truths": [{"_yes_length": 1, "yes": [1], "_no_length": 0, "no": []}],
    "lengths": [{"_a_length_": 1, "a": [97], "a_length": 2, "_which_tag_": ("_none", 0), "which": [1], "which_tag": 3,
        "_x_length": 4, "__x_length_": 1, "_x": [98], "__x": 5}],
    "nothing": [variant("which", "_none", 0, [1]), variant("which", "_none_", 1, [2]), variant("which", "none__", 2, [{}])],
    "blobs": [{"small_media_type": ('text/plain; charset="utf-8"', 0), "_small_length": 2, "small": [97, 98],
        "large_media_type": ("image/png", 0), "_large_length": 1000, "large": [255] * 1000, "_plain_length": 1, "plain": [255], "end": 1}],
    "state": [{"state_since": 0, "key": point(2), "_path_length": 1, "path": [point(0)]}],
}


def check_app(k, app):
    trace = k.record("nested:*", session=app, channel=("--subbuf-size=1M",))
    k.app(app)
    status = " ".join(k.kymo_json("status", app)["warnings"])
    check("'nested:too_deep' is not recorded: structures are nested too deeply" in status, f"status says that an event is refused: {status}")
    k.kymo("stop", app)
    events = check_counts(k, trace, sum(map(len, WANTED.values())) + 1)
    seen = collections.defaultdict(list)
    for event in events:
        seen[event.name.removeprefix("nested:")].append(fields(event))
    equal(set(seen), set(WANTED), "events")
    for name, wanted in WANTED.items():
        equal(seen[name], wanted, f"events {name}")
    equal(k.kymo("view", trace).stdout.count("media_type = ( \"image/png\" : container = 0 )"), 1, "media types that kymo view shows")
    k.kymo("destroy", app)


def test_nested(k):
    k.start_daemon()
    check_app(k, "nested")


def test_cplusplus(k):
    if not (APPS / "nested-cplusplus").exists():
        raise Skip("this build has no C++ compiler")
    k.start_daemon()
    check_app(k, "nested-cplusplus")


def test_filters(k):
    """
    Filters reach fields in structures, and fields after structures of fixed size. For fields that
    they cannot reach, the message names the position.
    """
    k.start_daemon()
    reached = {"structure": ("end == 1", 1), "array": ("end == 1", 1), "options": ("number[0] == 5", 2), "blobs": ("end == 1 && small_media_type == 0", 1),
        "sequence": ("end == 1 && path[1].x == 1 && path[1].y == .5", 1), "deep": ("seven.six.five.four.three.two.one.pair[1].x == 1", 1),
        "longest": ("path[63].x == 63 && !(path[63].y == 31)", 1)}
    inside = {"structure": ("to.x == 1 && to.y < 1", 1), "array": ("corners[2].x == 2 && corners[0].y == 0", 1), "options": ("point[0].x == 1", 2),
        "sequence": ("path[2].x == 2 || none[0].x == 0", 0), "answers": ("answers[0].before == 1", 1)}
    refused = {"structure": ("to == 1", "'to' is of structures: name a field of one, as in to.NAME, at character 1 of"),
        "array": ("corners[0].x == 1 && corners[0].z", "'corners' has no field 'z', at character 33"),
        "sequence": ("path.x == 1", "as in path[0]"), "st*": ("to.z == 1", "'to' has no field 'z', at character 4"), "answers": ("answers[1].before == 1", "'answers' is nested"),
        "variant": ("end == 1", "'reply' is nested"), "named": ("list[0].colour == 1", "size is not fixed"), "deep": ("seven.six.seven == 1", "at character 11 of")}
    for prefix, filters in (("yes", reached), ("inside", inside), ("no", refused)):
        for name, (text, _) in filters.items():
            session = f"{prefix}-{name.strip('*')}"
            k.kymo("create", session, "-o", k.traces / session)
            k.kymo("enable-event", "-s", session, f"nested:{name}", "-f", text)
            k.kymo("start", session)
    k.app("nested")
    for prefix, filters in (("yes", reached), ("inside", inside)):
        for name, (text, wanted) in filters.items():
            equal(k.kymo_json("stop", f"{prefix}-{name}")["sessions"][0]["recorded"], wanted, f"events {name} of which {text}")
    for name, (_, wanted) in refused.items():
        session = f"no-{name.strip('*')}"
        warnings = " ".join(k.kymo_json("status", session)["warnings"])
        check(wanted in warnings, f"why {name} is not recorded: {warnings}")
        equal(k.kymo_json("stop", session)["sessions"][0]["recorded"], 0, f"events {name}")


kymotest.main()
