# SPDX-License-Identifier: MIT
"""Responses of HTTP servers in the cache: which are used again, and with which fields (RFC 9111)."""

import email.utils
import time

import pytest

from server import TIMEOUT
from test_fastcgi import Client, fetch

CACHE = "cache=response\n"


class Origin:
    """A server that counts its responses; lines are those of the next ones."""

    def __init__(self, lines="", status="200 OK"):
        self.lines, self.status = lines, status
        self.asked = 0

    def __call__(self, asked):
        asked.body()
        self.asked += 1
        asked.answer(b"%d" % self.asked, self.lines.encode(), self.status.encode())


# --- which are used again --------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 203, 299, 301, 303, 400, 403, 404, 410, 499, 500,
                                    502, 503, 504, 599])
def test_no_lifetime(behind, status):
    """Last-Modified alone states no lifetime."""
    origin = Origin("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", f"{status} Some")
    app = behind(origin, path=CACHE)
    with Client(app.server.port) as client:
        for count in range(1, 4):
            got = client.get("/app")
            assert (got.status, got.body) == (status, b"%d" % count)


@pytest.mark.parametrize(("status", "kept"), [
    (200, True), (203, True), (301, True), (302, True), (307, True), (308, True), (404, True),
    (410, True), (201, False), (299, False), (303, False), (400, False), (499, False), (500, False),
    (502, False), (503, False), (504, False), (599, False),
])
def test_fresh(behind, status, kept):
    origin = Origin("Cache-Control: max-age=600\r\n", f"{status} Some")
    app = behind(origin, path=CACHE)
    with Client(app.server.port) as client:
        for count in range(1, 4):
            got = client.get("/app")
            assert (got.status, got.body) == (status, b"1" if kept else b"%d" % count)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "M-SEARCH"])
def test_changed_by_a_request(behind, method):
    """A request that may change the page drops it, unless it fails; of other pages, it drops none
    (RFC 9111, section 4.4)."""
    origin = Origin("Cache-Control: max-age=600\r\n")
    app = behind(origin, pool="methods=any\n", path=CACHE)
    with Client(app.server.port) as client:
        def change(status):
            origin.status = f"{status} Some"
            assert client.get("/app/a", method, "Content-Length: 0\r\n").status == status
            origin.status = "200 OK"

        one, other = client.get("/app/a").body, client.get("/app/b").body
        change(500)
        assert client.get("/app/a").body == one
        change(200)
        assert client.get("/app/a").body == b"%d" % origin.asked != one
        assert client.get("/app/b").body == other


# --- their fields ----------------------------------------------------------------------------

END_TO_END = ("Content-Foo: a\r\nX-Content-Foo: a\r\nContent-Encoding: a\r\nContent-Language: a\r\n"
              "Content-Location: /a\r\nContent-MD5: a\r\nContent-Security-Policy: a\r\n"
              "Clear-Site-Data: a\r\nX-Frame-Options: a\r\nSet-Cookie2: a\r\n"
              "Cache-Control: max-age=600, a\r\nContent-Type: a/b\r\nETag: \"a\"\r\nVary: X-A\r\n"
              "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nWarning: 110 - a\r\n"
              "Expires: Fri, 31 Dec 9999 23:59:59 GMT\r\n")
HOP = ("Connection: X-A, Content-Bar\r\nX-A: a\r\nContent-Bar: a\r\nKeep-Alive: timeout=5\r\n"
       "Proxy-Authenticate: Basic\r\nProxy-Authentication-Info: a\r\nProxy-Authorization: a\r\n"
       "Proxy-Connection: close\r\nTE: a\r\nUpgrade: a\r\n")


def test_fields(behind):
    """A hit has those of the first response, and neither has those of one connection."""
    app = behind(Origin(END_TO_END + HOP), path=CACHE)
    wanted = dict(line.split(": ", 1) for line in END_TO_END.lower().split("\r\n") if line)
    for number in range(3):
        got = fetch(app.server.port, "/app")
        assert got.body == b"1"
        fields = {name: value.lower() for name, value in got.fields.items()}
        assert wanted.items() <= fields.items()
        assert fields.keys() - wanted.keys() == {"server", "date", "content-length",
                                                 *(["age"] if number else [])}


def test_interim(behind):
    """Only the final response is kept."""
    def answer(asked):
        for status in (b"102 Processing", b"103 Early Hints"):
            asked.send(b"HTTP/1.1 " + status + b"\r\nLink: </a>\r\nCache-Control: max-age=1\r\n\r\n")
        asked.answer(b"%d" % app.requests, b"Cache-Control: max-age=600\r\n")

    app = behind(answer, path=CACHE)
    for _ in range(3):
        got = fetch(app.server.port, "/app")
        assert (got.status, got.body, got["Cache-Control"]) == (200, b"1", "max-age=600")
        assert "Link" not in got


@pytest.mark.parametrize("how", ["max-age", "Expires"])
def test_age(behind, how):
    """Age grows, and what it is relative to stays as it was."""
    now = int(time.time())
    expires = email.utils.formatdate(now + 600, usegmt=True)
    lifetime = "Cache-Control: max-age=700\r\n" if how == "max-age" else f"Expires: {expires}\r\n"
    date = email.utils.formatdate(now - 10, usegmt=True)
    app = behind(Origin(f"Date: {date}\r\nAge: 100\r\n{lifetime}"), path=CACHE)
    first = fetch(app.server.port, "/app")
    hit = fetch(app.server.port, "/app")
    age = int(hit["Age"])
    assert first.body == hit.body == b"1" and age >= 100
    deadline = time.monotonic() + TIMEOUT
    while int((hit := fetch(app.server.port, "/app"))["Age"]) <= age:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert hit.body == b"1" and hit["Date"] == date
    if how == "Expires":
        assert hit["Expires"] == expires
