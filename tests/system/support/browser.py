# SPDX-License-Identifier: MIT
"""Headless Chromium with one page, controlled through a pair of pipes: its requests, errors and
content are reported as they happen."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium")
TIMEOUT = 60  # seconds until a wait fails


class Browser:
    def __init__(self, profile, *options):
        commands, self.commands = os.pipe()
        self.events, events = os.pipe()
        self.number = 0
        self.data = b""
        self.requests = []  # URLs, in order
        self.complaints = []  # errors on the console and exceptions
        # Chromium reads its descriptor 3 and writes to 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{events}', "bash", CHROMIUM, "--headless=new",
             "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--no-proxy-server", f"--user-data-dir={profile}", "--remote-debugging-pipe", *options],
            pass_fds=(commands, events), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(events)
        self.session = None
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(domain + ".enable")

    def close(self):
        with contextlib.suppress(OSError, AssertionError):
            self.session = None
            self.call("Browser.close")
        os.close(self.commands)
        os.close(self.events)
        try:
            self.process.wait(TIMEOUT)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()

    def message(self, deadline):
        while b"\0" not in self.data:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.events], [], [], left)[0], "the browser is silent"
            more = os.read(self.events, 1 << 20)
            assert more, "the browser has ended"
            self.data += more
        text, _, self.data = self.data.partition(b"\0")
        return json.loads(text)

    def heed(self, event):
        method, about = event.get("method"), event.get("params")
        if method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(about["args"])
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"])

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT
        while True:
            message = self.message(deadline)
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]
            self.heed(message)

    def open(self, url):
        self.loaded = False
        assert "errorText" not in self.call("Page.navigate", url=url)
        deadline = time.monotonic() + TIMEOUT
        while not self.loaded:
            self.heed(self.message(deadline))

    def evaluate(self, expression):
        """Returns the value of an expression of JavaScript, or of its promise."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                        awaitPromise=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def until(self, expression):
        """Waits in the page until the expression is true."""
        good = self.evaluate(f"""new Promise(resolve => {{
            const end = Date.now() + {TIMEOUT * 500};
            const look = () => ({expression}) ? resolve(true)
                : Date.now() > end ? resolve(false) : setTimeout(look, 20);
            look();
        }})""")
        assert good, f"never true: {expression}: {self.evaluate('document.body.innerText')}"


@contextlib.contextmanager
def browsing(*options):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile, *options)
        try:
            yield browser
        finally:
            browser.close()
