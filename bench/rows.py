#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
rows.py HOW TRACE NAME FIELD: reads a field of all events of a name, and prints how many there were,
and the seconds of processor time. HOW: kymo (tuples), columns (numpy), or bt2 (babeltrace2's
module). For bench.py.
"""

import sys
import time


def tuples(trace, name, field):
    import kymo

    return sum(1 for _, value in kymo.open(trace).events(name, "ts", field) if value is not None)


def columns(trace, name, field):
    import kymo

    return sum(len(batch[field]) for batch in kymo.open(trace).batches(name, "ts", field))


def by_bt2(trace, name, field):
    import bt2

    n = 0
    for message in bt2.TraceCollectionMessageIterator(trace):
        if type(message) is bt2._EventMessageConst and message.event.name == name:
            n += (message.default_clock_snapshot.ns_from_origin, message.event[field])[1] is not None
    return n


def main():
    how, *arguments = sys.argv[1:]
    if how != "bt2":
        import numpy  # its loading is not measured
    begin = time.process_time()
    n = {"kymo": tuples, "columns": columns, "bt2": by_bt2}[how](*arguments)
    print(n, time.process_time() - begin)


main()
