"""A Chromium of one's own, spoken to through its WebDriver, without packages."""

import base64
import json
import shutil
import urllib.error
import urllib.request

import cv2
import numpy
import pytest

from live import Server, free_port
from test_outputs import until

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--force-color-profile=srgb",
         "--autoplay-policy=no-user-gesture-required"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"up": "\ue013", "down": "\ue015", "left": "\ue012", "right": "\ue014", "enter": "\ue007", "tab": "\ue004",
        "escape": "\ue00c", "alt": "\ue00a", "control": "\ue009", "shift": "\ue008", "home": "\ue011",
        "end": "\ue010", "space": " ", "backspace": "\ue003"}

needs_chromium = pytest.mark.skipif(not shutil.which("chromedriver") or not shutil.which("chromium"),
                                    reason="no chromium with its driver")


class Browser:
    """A browser of its own, in a folder of its own."""

    def __init__(self, folder, *flags):
        port = free_port()
        self.root, self.server = f"http://127.0.0.1:{port}", Server("chromedriver", f"--port={port}")
        until(lambda: self.answers("/status"), why="chromedriver does not answer")
        options = {"args": [*FLAGS, *flags, f"--user-data-dir={folder}"], "binary": shutil.which("chromium")}
        made = self.ask("/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"},
            "pageLoadStrategy": "none"}}})
        self.root += f"/session/{made['sessionId']}"

    def ask(self, path, body=None):
        request = urllib.request.Request(self.root + path, None if body is None else json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=40) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {json.load(error)['value']['message']}") from None

    def answers(self, path):
        try:
            return self.ask(path)["ready"]
        except OSError:
            return False

    def open(self, url):
        self.ask("/url", {"url": url})

    def run(self, script, *arguments):
        return self.ask("/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments):
        """The value of a script that calls the last of its arguments with it."""
        return self.ask("/execute/async", {"script": script, "args": list(arguments)})

    def element(self, selector):
        found = self.ask("/element", {"using": "css selector", "value": selector})
        return found[ELEMENT]

    def click(self, selector):
        self.ask(f"/element/{self.element(selector)}/click", {})

    def give(self, selector, file):
        """Choose a file where one is asked for."""
        self.ask(f"/element/{self.element(selector)}/value", {"text": str(file)})

    def turn_away(self):
        """Look at another tab; returns what brings this one back."""
        mine = self.ask("/window")
        self.ask("/window", {"handle": self.ask("/window/new", {"type": "tab"})["handle"]})

        def back():
            urllib.request.urlopen(urllib.request.Request(self.root + "/window", method="DELETE"), timeout=40)
            self.ask("/window", {"handle": mine})
        return back

    def press(self, *keys):
        """Keys, all held down together, to what has the focus."""
        keys = [KEYS.get(key, key) for key in keys]
        actions = [{"type": "keyDown", "value": key} for key in keys]
        actions += [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self.ask("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def drag(self, selector, dx, dy, steps=5):
        """Press the mouse on an element and let it go some pixels beside."""
        origin = {ELEMENT: self.element(selector)}
        moves = [{"type": "pointerMove", "duration": 20, "origin": "pointer", "x": round(dx / steps),
                  "y": round(dy / steps)} for _ in range(steps)]
        actions = [{"type": "pointerMove", "duration": 0, "origin": origin, "x": 0, "y": 0},
                   {"type": "pointerDown", "button": 0}, *moves, {"type": "pointerUp", "button": 0}]
        self.ask("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def devtools(self, command, **parameters):
        return self.ask("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height, scale=1):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=scale, mobile=False)

    def complaints(self):
        """What the console says of errors since the last time."""
        lines = self.ask("/se/log", {"type": "browser"})
        return [line["message"] for line in lines if line["level"] == "SEVERE"]

    def shot(self):
        return base64.b64decode(self.ask("/screenshot"))

    def picture(self, width, height):
        """What is at the page's top left, as blue, green and red."""
        whole = cv2.imdecode(numpy.frombuffer(self.shot(), numpy.uint8), cv2.IMREAD_COLOR)
        return whole[:height, :width].astype(int)

    def close(self):
        try:
            urllib.request.urlopen(urllib.request.Request(self.root, method="DELETE"), timeout=40)
        finally:
            self.server.kill()
