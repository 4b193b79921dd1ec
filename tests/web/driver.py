"""A browser by the WebDriver protocol, spoken by the standard library alone."""

import base64
import json
import subprocess
import time
import urllib.error
import urllib.request

# Longer than a page takes on a machine that is busy with other things.
PATIENCE_S = 90


class Browser:
    """Headless Chromium with a driver of its own, and the log of all that it asked for."""

    def __init__(self, port, scripts=True, dark=False, size=(1280, 900)):
        self.process = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        self.session = ""
        self.wait("the driver", lambda: self.call("GET", "/status")["ready"])
        options = {
            "args": [
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--no-first-run",
                "--no-proxy-server",
                f"--window-size={size[0]},{size[1]}",
            ],
        }
        if not scripts:
            options["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{answer['sessionId']}"
        if dark:
            feature = {"name": "prefers-color-scheme", "value": "dark"}
            self.command("Emulation.setEmulatedMedia", {"features": [feature]})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.session:
                self.call("DELETE", self.session)
        finally:
            self.process.terminate()
            self.process.wait(60)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].splitlines()[0]) from None

    def command(self, name, parameters):
        return self.call("POST", self.session + "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def wait(self, what, is_so, patience_s=PATIENCE_S):
        until = time.monotonic() + patience_s
        while True:
            try:
                found = is_so()
                if found:
                    return found
            except (OSError, RuntimeError):
                pass
            if time.monotonic() > until:
                raise SystemExit(f"after {patience_s} s not yet: {what}")
            time.sleep(0.1)

    def open(self, url):
        self.call("POST", self.session + "/url", {"url": url})

    def url(self):
        return self.call("GET", self.session + "/url")

    def find(self, selector):
        found = self.call("POST", self.session + "/element", {"using": "css selector", "value": selector})
        return f"{self.session}/element/{next(iter(found.values()))}"

    def text(self, selector="body"):
        return self.call("GET", self.find(selector) + "/text")

    def source(self):
        return self.call("GET", self.session + "/source")

    def click(self, selector):
        self.call("POST", self.find(selector) + "/click", {})

    def type(self, selector, text):
        self.call("POST", self.find(selector) + "/value", {"text": text})

    def keys(self, *keys):
        press = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keys", "actions": press}]})

    def run(self, script, *arguments):
        return self.call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("GET", self.session + "/screenshot")))

    def log(self, kind):
        """What the log has since it was last asked for."""
        return self.call("POST", self.session + "/se/log", {"type": kind})

    def errors(self):
        return [entry["message"] for entry in self.log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requested(self):
        """The addresses that the page asked for."""
        told = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [event["params"]["request"]["url"] for event in told if event["method"] == "Network.requestWillBeSent"]
