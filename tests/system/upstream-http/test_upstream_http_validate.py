# SPDX-License-Identifier: MIT
"""Outdated responses in the cache of responses: the HTTP server behind is asked whether they have
changed, and a 304 makes them fresh again (RFC 9111, section 4.3)."""

import threading

import pytest

from files import KB, pattern
from test_fastcgi import fetch

CACHE = "cache=response\n"
DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
VALIDATORS = {
    "strong": ('ETag: "one"', "if-none-match", '"one"'),
    "weak": ('ETag: W/"one"', "if-none-match", 'W/"one"'),
    "both": (f'ETag: "one"\r\nLast-Modified: {DATE}', "if-none-match", '"one"'),
    "date": (f"Last-Modified: {DATE}", "if-modified-since", DATE),
}
AGE = 1  # seconds that a response is fresh


class Origin:
    """A server whose page has a validator; responds with 304 to a condition."""

    def __init__(self, validator, body=b"page", more=b""):
        self.line, self.name, self.value = VALIDATORS[validator]
        self.body, self.more = body, more
        self.asked = []
        self.changed = b""  # the lines of a 304
        self.status = b"304 Not Modified"
        self.control = b"max-age=%d" % AGE
        self.away = False  # it closes instead of a response

    def __call__(self, asked):
        self.asked.append(asked.fields)
        if self.away:
            return False
        lines = b"Cache-Control: %s\r\n%s\r\n" % (self.control, self.line.encode())
        if self.name in asked.fields and self.status.startswith(b"304"):
            assert asked.fields[self.name] == self.value
            asked.answer(b"", self.changed or lines, self.status)
        elif self.name in asked.fields:
            asked.answer(b"other", lines + b"Content-Type: a/c\r\n", self.status)
        else:
            asked.answer(self.body, lines + self.more + b"Content-Type: a/b\r\nX-Own: old\r\n")
        return True

    def conditions(self):
        return [name for fields in self.asked for name in fields if name.startswith("if-")]


def outdate():
    """The times of the cache are those of the system's monotonic clock."""
    threading.Event().wait(AGE + 0.3)


@pytest.mark.parametrize(("validator", "size"), [("strong", 0), ("strong", 300 * KB), ("weak", 4),
                                                 ("both", 4), ("date", 4)])
def test_unchanged(behind, validator, size):
    origin = Origin(validator, pattern(size))
    app = behind(origin, path=CACHE)
    for rounds in range(3):
        if rounds:
            outdate()
        for _ in range(2):
            got = fetch(app.server.port, "/app")
            assert (got.status, got.body) == (200, pattern(size))
            assert got["Content-Type"] == "a/b" and got["X-Own"] == "old"
        assert len(origin.asked) == rounds + 1
        assert origin.conditions() == [origin.name] * rounds


def test_lines_of_the_304(behind):
    """They replace those of the stored response, except those about its body."""
    origin = Origin("strong")
    app = behind(origin, path=CACHE)
    fetch(app.server.port, "/app")
    outdate()
    origin.changed = (b'ETag: "one"\r\nCache-Control: max-age=60\r\nX-Own: new\r\nX-Other: 1\r\n'
                      b"Content-Type: wrong/one\r\nContent-Length: 999\r\n")
    for _ in range(3):
        got = fetch(app.server.port, "/app")
        assert (got.status, got.body, got["X-Own"], got["X-Other"]) == (200, b"page", "new", "1")
        assert (got["Content-Type"], got["Content-Length"]) == ("a/b", "4")
        assert got["Cache-Control"] == "max-age=60"
    outdate()
    assert fetch(app.server.port, "/app").body == b"page" and len(origin.asked) == 2


def test_tag_of_the_304(behind):
    """The stored body keeps its own tag: a weak one does not become strong."""
    origin = Origin("weak")
    app = behind(origin, path=CACHE)
    fetch(app.server.port, "/app")
    outdate()
    origin.changed = b'ETag: "one"\r\nCache-Control: max-age=60\r\nX-Own: new\r\n'
    for _ in range(3):
        got = fetch(app.server.port, "/app")
        assert (got.status, got.body) == (200, b"page")
        assert (got["ETag"], got["X-Own"]) == ('W/"one"', "new")
    assert len(origin.asked) == 2


@pytest.mark.parametrize(("validator", "tag"), [("strong", '"two"'), ("strong", 'W/"two"'),
                                                ("weak", '"two"'), ("both", '"two"')])
def test_304_of_another(behind, validator, tag):
    """A 304 with the tag of another response changes nothing (RFC 9111, section 4.3.4)."""
    origin = Origin(validator)
    app = behind(origin, path=CACHE)
    fetch(app.server.port, "/app")
    outdate()
    origin.changed = f"ETag: {tag}\r\nCache-Control: max-age=60\r\nX-Own: new\r\n".encode()
    for asked in (2, 3):
        got = fetch(app.server.port, "/app")
        assert (got.status, got.body) == (200, b"page")
        assert (got["ETag"], got["X-Own"]) == (origin.value, "old")
        assert len(origin.asked) == asked
    got = fetch(app.server.port, "/app", fields=f"{origin.name}: {origin.value}\r\n")
    assert (got.status, got.body) == (304, b"") and len(origin.asked) == 4
    origin.changed = b""
    for _ in range(2):
        assert fetch(app.server.port, "/app")["ETag"] == origin.value
    assert len(origin.asked) == 5


def test_changed(behind):
    origin = Origin("strong")
    app = behind(origin, path=CACHE)
    fetch(app.server.port, "/app")
    origin.status = b"200 OK"
    outdate()
    for _ in range(2):
        got = fetch(app.server.port, "/app")
        assert (got.body, got["Content-Type"]) == (b"other", "a/c") and "X-Own" not in got
    assert len(origin.asked) == 2


def test_no_longer_stored(behind):
    """A 304 may forbid to store the response, which is sent nevertheless."""
    origin = Origin("strong")
    app = behind(origin, path=CACHE)
    fetch(app.server.port, "/app")
    outdate()
    origin.changed = b"Cache-Control: no-store\r\n"
    assert fetch(app.server.port, "/app").body == b"page"
    assert fetch(app.server.port, "/app").body == b"page"
    assert origin.conditions() == [origin.name] and len(origin.asked) == 3


@pytest.mark.parametrize("validator", VALIDATORS)
def test_client_that_has_it(behind, validator):
    """Its own condition is answered when the response is fresh again."""
    origin = Origin(validator)
    app = behind(origin, path=CACHE)
    fetch(app.server.port, "/app")
    outdate()
    condition = f"{origin.name}: {origin.value}\r\n"
    for _ in range(2):
        got = fetch(app.server.port, "/app", fields=condition)
        assert (got.status, got.body) == (304, b"") and "Content-Type" not in got
    got = fetch(app.server.port, "/app", fields='If-None-Match: "two"\r\n')
    assert (got.status, got.body) == (200, b"page") and len(origin.asked) == 2


def test_client_that_has_another(behind):
    origin = Origin("strong")
    app = behind(origin, path=CACHE)
    fetch(app.server.port, "/app")
    outdate()
    got = fetch(app.server.port, "/app", fields='If-None-Match: "two"\r\n')
    assert (got.status, got.body) == (200, b"page")
    assert origin.conditions() == [origin.name]


@pytest.mark.parametrize("control", ["no-store", "no-store, max-age=0", "private", "no-cache"])
def test_changed_and_no_longer_stored(behind, control):
    """The older response is not used instead of one that must not be stored."""
    origin = Origin("strong")
    app = behind(origin, path=CACHE)
    fetch(app.server.port, "/app")
    outdate()
    origin.status, origin.control, origin.body = b"200 OK", control.encode(), b"other"
    for asked in (2, 3, 4):
        assert fetch(app.server.port, "/app").body == b"other"
        assert len(origin.asked) == asked
    assert origin.conditions() == [origin.name]


@pytest.mark.parametrize("control", ["must-revalidate", "proxy-revalidate", "s-maxage=1", "x"])
def test_application_is_away(behind, control):
    """An outdated response is not sent instead of an error."""
    origin = Origin("strong")
    origin.control = f"{control}, max-age={AGE}".encode()
    app = behind(origin, path=CACHE)
    assert [fetch(app.server.port, "/app").body for _ in range(2)] == [b"page"] * 2
    outdate()
    origin.away = True
    assert [fetch(app.server.port, "/app").status for _ in range(2)] == [502] * 2
    origin.away = False
    assert fetch(app.server.port, "/app").body == b"page"


def test_variant(behind):
    """The question has the fields by which the response varies; another variant is fetched."""
    origin = Origin("strong", more=b"Vary: X-One, X-Two\r\n")
    app = behind(origin, path=CACHE)
    fields = "X-Two: b\r\nX-One: a\r\n"
    for asked in (1, 2):
        for _ in range(2):
            assert fetch(app.server.port, "/app", fields=fields).body == b"page"
        assert len(origin.asked) == asked
        assert (origin.asked[-1]["x-one"], origin.asked[-1]["x-two"]) == ("a", "b")
        outdate()
    assert origin.conditions() == ["if-none-match"]
    for other in ("X-One: a\r\n", "X-Two: b\r\n", "X-One: b\r\nX-Two: a\r\n", ""):
        assert fetch(app.server.port, "/app", fields=other).body == b"page"
    assert len(origin.asked) == 6 and origin.conditions() == ["if-none-match"]


def test_tags(behind):
    """A 304 does not repeat the tags, so these responses are fetched again."""
    origin = Origin("strong", more=b"X-NABC-Tag: page\r\n")
    app = behind(origin, path=CACHE)
    for _ in range(2):
        assert fetch(app.server.port, "/app").body == b"page"
        outdate()
    assert not origin.conditions() and len(origin.asked) == 2


def test_fails(behind):
    origin = Origin("strong")
    app = behind(origin, path=CACHE)
    fetch(app.server.port, "/app")
    outdate()
    origin.status = b"500 Wrong"
    assert fetch(app.server.port, "/app").status == 500
    origin.status = b"304 Not Modified"
    assert fetch(app.server.port, "/app").body == b"page"
    assert origin.conditions() == [origin.name] * 2


def test_many_clients(behind):
    """One asks, the others wait."""
    origin = Origin("strong", pattern(100 * KB))
    app = behind(origin, path=CACHE)
    fetch(app.server.port, "/app")
    outdate()
    bodies = []
    threads = [threading.Thread(target=lambda: bodies.append(fetch(app.server.port, "/app").body))
               for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bodies == [pattern(100 * KB)] * 8 and len(origin.asked) == 2
