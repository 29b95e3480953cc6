# SPDX-License-Identifier: MIT
"""
A real browser without a window, driven by its own protocol (Chrome DevTools Protocol) over two
pipes: https://chromedevtools.github.io/devtools-protocol/.
"""

import base64
import itertools
import json
import os
import shutil
import subprocess

import kymotest
from kymotest import check, equal, wait_for

PROGRAM = "chromium-headless-shell"


class Browser:
    """Use it in a with statement. `requests` are the addresses that pages asked for."""

    def __init__(self, k, *flags):
        kymotest.need_program(PROGRAM, PROGRAM)
        self.directory = k.top / "browser"
        self.directory.mkdir(exist_ok=True)
        to_browser, self.to = os.pipe()
        self.of, of_browser = os.pipe()
        # The program expects its pipes as descriptors 3 and 4.
        command = (f'exec {shutil.which(PROGRAM)} --no-sandbox --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe'
            f' --user-data-dir="{self.directory}" --window-size=1400,900 {" ".join(flags)} about:blank 3<&{to_browser} 4>&{of_browser}')
        env = {"PATH": os.environ["PATH"], "HOME": str(self.directory)}
        self.process = subprocess.Popen(["sh", "-c", command], env=env, pass_fds=(to_browser, of_browser), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_browser)
        os.close(of_browser)
        self.numbers = itertools.count(1)
        self.rest = b""
        self.requests, self.errors = [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to)  # the browser exits when its pipe ends
        try:
            self.process.wait(kymotest.TIMEOUT)
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self.of)

    def receive(self):
        while b"\0" not in self.rest:
            data = os.read(self.of, 1 << 16)
            check(data, "the browser has exited")
            self.rest += data
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params)[:1000])

    def call(self, method, session=None, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            reply = self.receive()
            if reply.get("id") == number:
                check("error" not in reply, f"{method}: {reply.get('error')}")
                return reply["result"]
            self.note(reply)

    def open(self, url, is_awaited=True):
        """Opens a page, and waits until it says that it is ready, if it is awaited."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable", self.session)
        self.call("Page.navigate", self.session, url=str(url))
        if not is_awaited:
            return
        wait_for(lambda: self.js("document.body && document.body.dataset.ready"), f"{url} to be ready")
        equal(self.js("document.body.dataset.ready"), "1", f"state of the page: {self.js('document.body.innerText')[:300]}")

    def js(self, expression):
        """Evaluates JavaScript in the page; waits for promises."""
        reply = self.call("Runtime.evaluate", self.session, expression=expression, awaitPromise=True, returnByValue=True)
        check("exceptionDetails" not in reply, f"{expression[:200]}: {json.dumps(reply.get('exceptionDetails'))[:1000]}")
        return reply["result"].get("value")

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
            self.call("Input.dispatchKeyEvent", self.session, type=kind, key=key, **text)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", self.session, type=kind, x=x, y=y, **more)

    def drag(self, x0, y0, x1, y1, shift=False):
        more = {"button": "left", "buttons": 1, "clickCount": 1, "modifiers": 8 if shift else 0}
        self.mouse("mousePressed", x0, y0, **more)
        self.mouse("mouseMoved", x1, y1, **more)
        self.mouse("mouseReleased", x1, y1, **more)

    def accessible(self, role):
        """Returns the names of what has this role for people who cannot see the page."""
        nodes = self.call("Accessibility.getFullAXTree", self.session)["nodes"]
        return [n.get("name", {}).get("value", "") for n in nodes if n.get("role", {}).get("value") == role]

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", self.session)["data"]))
