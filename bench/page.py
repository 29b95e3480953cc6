#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
page.py [--quick] [EVENTS...]: opens the pages of `kymo report` in a real browser, and the same
traces in speedscope, which reads what `kymo export --to=chrome` writes. Prints for each the size,
the time to the first picture, and the time of a frame while the view zooms. Without EVENTS: 1, 10
and 50 millions. `make bench` runs it. SPEEDSCOPE is the directory of speedscope's index.html;
without it, npm's global one is taken.
"""

import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("KYMO_BENCH_BUILD", ROOT / "build-bench"))
KYMO = BUILD / "src/cli/kymo"
LOAD = BUILD / "bench/timeline"
EVENTS_OF_REQUEST = 36  # of three threads
TARGETS_MS = {10**6: 10, 10**7: 30}  # of a frame with all events on the screen
SPEEDSCOPE_BYTES = 500 << 20  # a browser's texts are not longer
OPENED_S = 600
FRAMES = 40
os.environ.setdefault("KYMO_TEST_BUILD", str(BUILD))
sys.path.insert(0, str(ROOT / "test/integration"))
import kymotest  # noqa: E402
from browser import Browser, PROGRAM  # noqa: E402

# Zooms in and out with the wheel, and returns the milliseconds of each frame.
ZOOM = """
new Promise(done => {
    const all = [], target = %s, box = target.getBoundingClientRect();
    let last;
    function step(now) {
        if (last)
            all.push(now - last);
        last = now;
        if (all.length === %d)
            return done(all);
        target.dispatchEvent(new WheelEvent('wheel', {
            bubbles: true, cancelable: true, ctrlKey: %s, deltaY: all.length %% 2 ? -40 : 40,
            clientX: box.left + box.width / 2, clientY: box.top + 60}));
        requestAnimationFrame(step);
    }
    requestAnimationFrame(step);
})
"""
# The page's own time of a frame: all events, a thirtieth of them, and a few.
OWN_FRAMES = """
[1, 30, 100000].map(part => {
    const all = [];
    for (let i = 0; i < %d; i++) {
        v0 = span * (.3 + i * .001 / part);
        v1 = v0 + span / part;
        if (part === 1)
            [v0, v1] = [-i, span + i];
        draw();
        all.push(perf.frame);
    }
    return all.sort((a, b) => a - b)[all.length >> 1];
})
"""


class Place:
    """Has a directory, as browser.py needs it of a test."""

    def __init__(self, top):
        self.top = top


def speedscope():
    """Returns speedscope's page, or None."""
    given = os.environ.get("SPEEDSCOPE")
    if not given and shutil.which("npm"):
        given = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, check=False).stdout.strip() + "/speedscope/dist/release"
    page = pathlib.Path(given or "/nowhere") / "index.html"
    return page if page.exists() else None


def make_trace(top, events):
    """Returns a trace of so many events; none is lost."""
    trace = top / f"trace-{events}"
    command = [KYMO, "record", "--no-summary", "-t", "vpid,vtid,procname", "-e", "line:*", "--blocking-timeout=inf", "-o", trace, "--", LOAD]
    done = subprocess.run([*map(str, command), str(events // EVENTS_OF_REQUEST)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"page.py: kymo record: {done.stderr}")
    return trace


def wait(condition):
    end = time.monotonic() + OPENED_S
    while time.monotonic() < end:
        with contextlib.suppress(kymotest.Failure):  # an old document may have gone
            if condition():
                return True
        time.sleep(0.02)
    return False


@contextlib.contextmanager
def opened(top, url, ready):
    """Yields a browser, and the seconds until `ready`, an expression, is true; None: never."""
    place = pathlib.Path(tempfile.mkdtemp(dir=top))
    with Browser(Place(place), "--disable-frame-rate-limit", "--disable-gpu-vsync") as browser:
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        begin = time.monotonic()
        browser.call("Page.navigate", browser.session, url=url)
        yield browser, time.monotonic() - begin if wait(lambda: browser.js(ready)) else None


def measure_kymo(top, trace, events):
    page = top / "page.html"
    begin = time.monotonic()
    subprocess.run([KYMO, "report", trace, "-o", page], check=True, stdout=subprocess.DEVNULL)
    made = time.monotonic() - begin
    with opened(top, f"file://{page}", "window.kymoPerf && kymoPerf.first && document.body.dataset.ready === '1'") as (browser, seconds):
        if seconds is None:
            return print(f"  kymo report: {page.stat().st_size / 1e6:.1f} MB, not open after {OPENED_S} s")
        everything, part, near = browser.js(OWN_FRAMES % FRAMES)
        browser.js("show(0, span)")
        zoom = statistics.median(browser.js(ZOOM % ("canvas", FRAMES, "false")))
    bound = TARGETS_MS.get(events)
    verdict = "" if bound is None else f" (≤ {bound} ms: {'met' if everything <= bound else 'NOT met'})"
    return print(f"  kymo report: {page.stat().st_size / 1e6:.1f} MB, made in {made:.1f} s; first picture {seconds:.2f} s; "
        f"frame {everything:.1f} ms with all{verdict}, {part:.1f} ms with a thirtieth, {near:.1f} ms near; {zoom:.1f} ms between frames while zooming")


def measure_speedscope(top, trace, page):
    exported, script = top / "chrome.json", top / "speedscope-data.js"
    done = subprocess.run([KYMO, "export", "--to=chrome", "-o", exported, trace], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return print(f"  speedscope: nothing to open: {done.stderr.strip()}")
    size = exported.stat().st_size
    if size * 4 / 3 > SPEEDSCOPE_BYTES:
        return print(f"  speedscope: cannot open {size / 1e6:.0f} MB of JSON: a browser's texts end at {SPEEDSCOPE_BYTES / 1e6:.0f} MB")
    with script.open("wb") as f:  # as its own command does
        f.write(b"speedscope.loadFileFromBase64('trace.json', '")
        f.write(subprocess.run(["base64", "-w0", exported], capture_output=True, check=True).stdout)
        f.write(b"')")
    with opened(top, f"file://{page}#localProfilePath={script}", "document.title !== 'speedscope' && document.querySelector('canvas') !== null && document.title.includes('trace')") as (browser, seconds):
        if seconds is None:
            return print(f"  speedscope: {size / 1e6:.1f} MB, not open after {OPENED_S} s")
        zoom = statistics.median(browser.js(ZOOM % ("[...document.querySelectorAll('canvas')].at(-1)", FRAMES, "true")))
    return print(f"  speedscope: {size / 1e6:.1f} MB of JSON; first picture {seconds:.2f} s; {zoom:.1f} ms between frames while zooming")


def main():
    given = [a for a in sys.argv[1:] if a != "--quick"]
    counts = [int(a) for a in given] or ([100000] if "--quick" in sys.argv else [10**6, 10**7, 5 * 10**7])
    if not shutil.which(PROGRAM):
        return print(f"pages in a browser: not measured: {PROGRAM} is missing")
    peer = speedscope()
    if not peer:
        print("speedscope is missing, and not measured: npm install -g speedscope")
    for events in counts:
        print(f"pages of {events:,} events in {PROGRAM}:", flush=True)
        with tempfile.TemporaryDirectory(prefix="kymo-bench-") as directory:
            top = pathlib.Path(directory)
            trace = make_trace(top, events)
            measure_kymo(top, trace, events)
            if peer:
                measure_speedscope(top, trace, peer)
    return None


main()
