# SPDX-License-Identifier: MIT
"""The status page in a browser: it draws by itself and only loads from its own server."""

import os
import re
import threading

import pytest

import browser as browsers
from client import Client
from files import KB, pattern, write
from server import VALGRIND, Server, running

pytestmark = [
    pytest.mark.skipif(VALGRIND, reason="the page is not the server's; its data are tested there"),
    pytest.mark.needs("chromium"),
]

LIVE = "document.getElementById('state').className === 'live'"
# Returns the number of points of a plot's line; a part of it begins with M, further points with
# L.
POINTS = """(title => [...document.querySelectorAll('#plots .card')]
    .find(card => card.querySelector('h2').textContent === title)
    .querySelector('.line').getAttribute('d').split(/[ML]/).length - 1)"""


@pytest.fixture(scope="module")
def chromium():
    with browsers.browsing() as browser:
        yield browser


@pytest.fixture
def browser(chromium):
    """A browser without open pages, before and after."""
    yield chromium
    chromium.open("about:blank")
    chromium.requests.clear()
    chromium.complaints.clear()


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "file", pattern(3 * KB))
    return tmp_path


class Load:
    """A client that sends requests continuously."""

    def __init__(self, port):
        self.ended = False
        self.thread = threading.Thread(target=self.ask, args=(port,))

    def ask(self, port):
        with Client(port) as client:
            while not self.ended:
                client.get("/file")

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *unused):
        self.ended = True
        self.thread.join()


def asked(browser):
    """Returns the requests of the browser so far; it must not have reported errors."""
    assert browser.complaints == []
    return {url for url in browser.requests if not url.startswith(("data:", "about:"))}


def test_draws(browser, root):
    with running("epoll", root, "--threads", 2) as server, Load(server.port):
        browser.open(server.url + "/.sweet/status")
        browser.until(f"{LIVE} && {POINTS}('Requests') >= 3")
        for plot in ("Bytes sent", "Latency", "Connections", "Files found in the cache",
                     "Memory of the cache", "Processor"):
            assert browser.evaluate(f"{POINTS}('{plot}')") >= 3, plot
        text = browser.evaluate("document.body.innerText")
        assert not re.search(r"NaN|Infinity|undefined|null|\[object", text), text
        assert f"pid {server.pid}" in text and "/s" in text and "\u00b5s" in text
        # A narrow window: nothing exceeds its width.
        browser.call("Emulation.setDeviceMetricsOverride", width=360, height=800,
                     deviceScaleFactor=1, mobile=True)
        assert browser.evaluate("document.documentElement.scrollWidth") <= 360
        browser.call("Emulation.clearDeviceMetricsOverride")
        # Only these requests to its own server.
        assert asked(browser) == {server.url + "/.sweet/status", server.url + "/.sweet/status.json"}


def test_explains_its_numbers(browser, root):
    """A title or a legend for each, in whole notes; and that copies are right on this machine."""
    with running("epoll", root) as server, Load(server.port):
        browser.open(server.url + "/.sweet/status")
        browser.until(f"{LIVE} && {POINTS}('Requests') >= 3")
        bare = browser.evaluate(
            "[...document.querySelectorAll('#plots h2')].filter(h => !h.title)"
            ".concat([...document.querySelectorAll('#tables section')]"
            "  .filter(card => !card.querySelector('.about')))"
            ".map(one => one.textContent).join('; ')")
        assert bare == ""
        for row in ("ids refused", "small files kept ready", "lingering", "evicted", "splice"):
            assert browser.evaluate("[...document.querySelectorAll('#tables tr')].find("
                                    f"row => row.cells[0].textContent === '{row}').title.length") > 9, row
        text = browser.evaluate("document.body.textContent")
        assert "man 8 sweet" in text and "copies are right" in text
        for width in (360, 1200):
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800,
                         deviceScaleFactor=1, mobile=True)
            assert browser.evaluate("[...document.querySelectorAll('.note span')].every("
                                    "note => note.scrollWidth <= note.clientWidth)")
        browser.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("way", ["link", "address"])
def test_list_of_its_numbers(browser, root, way):
    """Without a pointer: a link opens the list of all numbers, in the page itself; with everything
    that a title says, and each column."""
    with running("epoll", root) as server:
        browser.open(server.url + "/.sweet/status" + ("#meanings" if way == "address" else ""))
        browser.until(LIVE)
        if way == "link":
            assert not browser.evaluate("document.getElementById('meanings').open")
            browser.evaluate("document.querySelector('footer a[href=\"#meanings\"]').click()")
        browser.until("document.getElementById('meanings').open")
        browser.until("document.querySelector('#meanings dl').getBoundingClientRect().height > 100")
        missing = browser.evaluate(
            "(listed => [...document.querySelectorAll('[title], .about')]"
            ".map(one => one.title || one.textContent).filter(text => !listed.includes(text))"
            ".join('; '))([...document.querySelectorAll('#meanings dd')].map(one => one.textContent))")
        assert missing == ""
        names = browser.evaluate(
            "[...document.querySelectorAll('#meanings dt')].map(one => one.textContent).join(';')").split(";")
        for name in ("Latency", "Cache", "ids refused", "large pieces", "in flight", "5xx", "p99"):
            assert name in names, name
        browser.call("Emulation.setDeviceMetricsOverride", width=360, height=800,
                     deviceScaleFactor=1, mobile=True)
        assert browser.evaluate("document.documentElement.scrollWidth") <= 360
        browser.call("Emulation.clearDeviceMetricsOverride")
        assert asked(browser) <= {server.url + "/.sweet/status" + end
                                  for end in ("", "#meanings", ".json")}


@pytest.mark.parametrize("scheme, paper", [("light", "255,253,248"), ("dark", "21,25,29")])
def test_demo(browser, scheme, paper):
    """The page of ./quickstart: fits a telephone, is dark where the reader wants that, its drawing
    too, and names the server's own address."""
    demo = os.path.join(os.environ["srcdir"], "sweet", "demo")
    with running("epoll", demo) as server:
        browser.call("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.call("Emulation.setDeviceMetricsOverride", width=390, height=800,
                     deviceScaleFactor=1, mobile=True)
        browser.open(server.url + "/")
        browser.until("document.readyState === 'complete'")
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390
        shown = browser.evaluate("""(() => {
            const image = document.querySelector('img'), canvas = document.createElement('canvas');
            canvas.width = 720; canvas.height = 300;
            const drawing = canvas.getContext('2d');
            drawing.drawImage(image, 0, 0);
            return [...drawing.getImageData(3, 3, 1, 1).data.slice(0, 3)].join(',');
        })()""")
        assert shown == paper
        text = browser.evaluate("document.querySelector('pre').textContent")
        assert text.count(server.url) == 3 and ":8080" not in text
        browser.call("Emulation.clearDeviceMetricsOverride")
        browser.call("Emulation.setEmulatedMedia", features=[])


def test_policy(browser, root):
    """The page obeys its policy: no other origin, no other script."""
    with running("epoll", root) as server, running("epoll", root) as other:
        browser.open(server.url + "/.sweet/status")
        browser.until(LIVE)
        for way in (f"fetch('{other.url}/file')",
                    "new Promise((good, bad) => { const s = document.createElement('script');"
                    "s.textContent = 'window.broken = 1'; document.body.append(s);"
                    "window.broken ? good() : bad(); })",
                    f"new Promise((good, bad) => {{ const i = new Image(); i.onload = good;"
                    f"i.onerror = bad; i.src = '{other.url}/file'; }})"):
            assert browser.evaluate(f"{way}.then(() => 'done', () => 'refused')") == "refused", way
        assert any("Content Security Policy" in str(said) for said in browser.complaints)
        assert other.status()["requests"] == 1


def test_pauses_when_hidden(browser, root):
    def hide(hidden):
        browser.evaluate(f"""Object.defineProperty(document, 'hidden', {{configurable: true, get: () => {hidden}}});
                             document.dispatchEvent(new Event('visibilitychange')); 0""")

    with running("epoll", root) as server:
        browser.open(server.url + "/.sweet/status")
        browser.until(f"{LIVE} && {POINTS}('Requests') >= 1")
        hide("true")
        browser.until("document.getElementById('state').textContent === 'paused'")
        line = "document.querySelector('.line').getAttribute('d')"
        parts = browser.evaluate(f"{line}.split('M').length")
        before = server.status()["requests"]
        browser.evaluate("new Promise(resolve => setTimeout(resolve, 2500))")
        assert server.status()["requests"] == before + 1
        hide("false")
        # A gap, besides those of a busy machine, is as wide as the time that it was hidden.
        browser.until(f"{LIVE} && {line}.split('M').length > {parts}")
        drawn = browser.evaluate(line)[1:].split("M")
        assert max(float(after.split()[0]) - float(before.split("L")[-1].split()[0])
                   for before, after in zip(drawn, drawn[1:])) >= 3
        assert asked(browser)


def test_server_gone_and_back(browser, root):
    with running("epoll", root) as server:
        browser.open(server.url + "/.sweet/status")
        browser.until(f"{LIVE} && {POINTS}('Requests') >= 1")
        asked(browser)
        server.stop()
        browser.until("/not reachable/.test(document.getElementById('state').textContent)")
        assert browser.evaluate("document.getElementById('state').className") == "gone"
        # Another process in its place, with new counters.
        again = Server("epoll", root, "--listen", f"127.0.0.1:{server.port}")
        try:
            # The line continues after a gap, with no value below zero or out of range.
            line = "document.querySelector('.line').getAttribute('d')"
            browser.until(f"{LIVE} && {line}.split('M').length === 3")
            assert f"pid {again.pid}" in browser.evaluate("document.body.innerText")
            line = browser.evaluate(line)
            assert all(0 <= float(y) <= 40 for y in re.findall(r" (-?[\d.]+)", line)), line
            # The browser may report refused connections.
            assert all("ERR_CONNECTION" in str(said) for said in browser.complaints)
        finally:
            again.stop()
