"""Drives a headless Chromium through the DevTools protocol. Debian: chromium, python3-websocket."""
import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time

import websocket


class Browser:
    """One page. `events`: what the browser reported so far, (method, params)."""

    def __init__(self):
        self.profile = tempfile.mkdtemp()
        self.process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0",
             "--remote-allow-origins=*", "--no-first-run", "--disable-background-networking", "--user-data-dir=" + self.profile, "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.numbers = itertools.count(1)
        self.events = []
        self.socket = websocket.create_connection(self.address(), timeout=120)
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Network", "Log", "Audits":
            self.call(domain + ".enable")

    def address(self):
        """The browser's, which it writes into its profile when it listens."""
        path = os.path.join(self.profile, "DevToolsActivePort")
        while not os.path.exists(path) or not open(path).read().count("\n"):
            if self.process.poll() is not None:
                raise RuntimeError("chromium ended with %d" % self.process.returncode)
            time.sleep(0.02)
        port, rest = open(path).read().split("\n")[:2]
        return "ws://127.0.0.1:%s%s" % (port, rest)

    def receive(self):
        message = json.loads(self.socket.recv())
        if "method" in message:
            self.events.append((message["method"], message.get("params", {})))
        return message

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]["message"]))
                return answer["result"]

    def open(self, url, width=1200, height=900, script=True, dark=False, media=""):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(method == "Page.loadEventFired" for method, _ in self.events):
            self.receive()

    def value(self, expression):
        """Of JavaScript, which runs also where the page's own scripts may not."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def key(self, key, text=""):
        code = {"Tab": 9, "Enter": 13, " ": 32}.get(key, 0)
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text if kind == "keyDown" else "")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, path, height=None):
        """Of the window, or of so much of the page from where it is."""
        clip = {}
        if height:
            metrics = self.call("Page.getLayoutMetrics")["cssVisualViewport"]
            clip = {"clip": {"x": 0, "y": metrics["pageY"], "width": metrics["clientWidth"], "height": height, "scale": 1},
                    "captureBeyondViewport": True}
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot", **clip)["data"]))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def close(self):
        try:
            self.call("Browser.close")
        except (RuntimeError, websocket.WebSocketException):
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
