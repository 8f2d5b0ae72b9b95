# SPDX-License-Identifier: MIT
"""HTTP servers behind this one that respond wrongly, late or not at all."""

import http.client
import socket
import struct
import threading

import pytest

import behind_checks
from client import Closed, request
from files import KB, MB, pattern
from server import SCALE, SOON, TIMEOUT
from test_fastcgi import Client, ask, fetch
from upstream import Upstream

OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"Content-Length: 3\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

# What the server behind sends before it closes, and what the log says.
BAD = {
    "nothing": (b"", "ended before the answer did"),
    "half a head": (OK + b"A: ", "in the middle of its response head"),
    "only an interim response": (b"HTTP/1.1 100 Continue\r\n\r\n", "ended before the answer did"),
    "no HTTP": (b"hello\r\n\r\n", "does not speak HTTP/1.1"),
    "no HTTP and no end": (b"hello", "does not speak HTTP/1.1"),
    "version": (b"HTTP/2.0 200 OK\r\n\r\n", "does not speak HTTP/1.1"),
    "records": (struct.pack("!BBHHBx", 1, 6, 1, 3, 0) + b"abc", "does not speak HTTP/1.1"),
    "status": (b"HTTP/1.1 2000 OK\r\n\r\n", "malformed status line"),
    "status 700": (b"HTTP/1.1 700 OK\r\n\r\n", "not from 100 to 599"),
    "line": (OK + b"<html>\r\n\r\n", "malformed header line"),
    "space before the colon": (OK + b"A : b\r\n\r\n", "malformed header line"),
    "folded": (OK + b"A: b\r\n c\r\n\r\n", "folded header line"),
    "bare CR": (OK + b"A: b\rB: c\r\n\r\n", "malformed header line"),
    "bare LF": (OK + b"A: b\n\r\n", "without CR"),
    "NUL": (OK + b"A: b\0\r\n\r\n", "malformed header line"),
    "two lengths": (OK + LENGTH + b"Content-Length: 4\r\n\r\nabcd", "two Content-Length"),
    "length list": (OK + b"Content-Length: 3, 3\r\n\r\nabc", "invalid Content-Length"),
    "signed length": (OK + b"Content-Length: +3\r\n\r\nabc", "invalid Content-Length"),
    "length and chunks": (OK + LENGTH + CHUNKED + b"\r\n0\r\n\r\n", "both a Content-Length"),
    "coding": (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "coding other than chunked"),
    "old coding": (b"HTTP/1.0 200 OK\r\n" + CHUNKED + b"\r\n0\r\n\r\n", "of HTTP/1.0"),
    "chunks without a body": (b"HTTP/1.1 103 x\r\n" + CHUNKED + b"\r\n0\r\n\r\n", "interim"),
    "switched": (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
                 "switched protocols"),
    "many fields": (OK + b"A: b\r\n" * 257 + b"\r\n", "more than 256 header lines"),
    "long head": (OK + b"A: " + b"b" * 40000 + b"\r\n\r\n", "response head is too long"),
    "endless head": (OK + (b"A: " + b"b" * 1000 + b"\r\n") * 100, "response head is too long"),
}


def good(asked):
    """Responds to a request that checks the server behind."""
    if asked.target != "/app?good":
        return False
    asked.body()
    asked.answer(b"plain")
    return True


@pytest.mark.parametrize("what", BAD)
def test_bad_answer(behind, what):
    answer, said = BAD[what]

    def bad(asked):
        if good(asked):
            return True
        asked.send(answer)
        # These are wrong only because the connection ends; the server closes it after the others.
        ends = what in ("nothing", "half a head", "only an interim response")
        assert ends or asked.closed()
        return False

    app = behind(bad)
    got = fetch(app.server.port, "/app")
    assert got.status == 502 and b"502 Bad Gateway" in got.body
    assert app.server.errors.wait(f"pool app: .*app\\.sock: .*{said}"), app.server.errors.text()
    # Nothing of it reaches the next request.
    assert fetch(app.server.port, "/app?good").body == b"plain"


@pytest.mark.parametrize("size", ["x", "-1", "0x3", " 3", "3 ", "3\n", "1" * 17, ""])
def test_bad_chunk_first(behind, size):
    """A wrong size in the first read still makes a 502, or cuts the response off."""

    def bad(asked):
        asked.send(OK + CHUNKED + b"\r\n" + size.encode() + b"\r\nabc\r\n0\r\n\r\n")
        return asked.closed() and False

    app = behind(bad)
    try:
        assert ask(app.server.port, "/app").status == 502
    except (http.client.HTTPException, ConnectionError):
        pass
    assert app.server.errors.wait("malformed chunk")


@pytest.mark.parametrize("how", ["length", "chunked", "bad chunk"])
def test_broken_off(behind, how):
    """After the head was sent, only the end of the connection can show it."""
    shown = threading.Event()

    def broken(asked):
        asked.body()
        data = pattern(100 * KB)
        if how == "length":
            asked.send(OK + b"Content-Length: 1000000\r\n\r\n" + data)
        else:
            asked.send(OK + CHUNKED + b"\r\n%x\r\n" % len(data) + data + b"\r\n")
        shown.wait(TIMEOUT)
        if how == "bad chunk":
            asked.send(b"zz\r\n")
            return asked.closed() and False
        return False

    app = behind(broken)
    with Client(app.server.port) as client:
        client.send(request("/app"))
        head = client.head()
        shown.set()
        client.data = head + b"\r\n\r\n" + client.data
        with pytest.raises((Closed, AssertionError)):
            client.response()
    assert app.server.errors.wait("announced length|chunked body|malformed chunk")


@pytest.mark.parametrize("how", ["length", "chunked", "empty", "204", "204 with a length"])
def test_bytes_after_the_end(behind, how):
    """They are no response to the next request."""
    answers = {"length": OK + LENGTH + b"\r\nabc",
               "chunked": OK + CHUNKED + b"\r\n3\r\nabc\r\n0\r\n\r\n",
               "empty": OK + b"Content-Length: 0\r\n\r\n",
               "204": b"HTTP/1.1 204 No Content\r\n\r\n",
               "204 with a length": b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n"}

    def more(asked):
        asked.body()
        asked.send(answers[how] + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        return asked.closed() and False

    app = behind(more, "--log-level", "info", pool="keep-connection=1h\n")
    with Client(app.server.port) as client:
        for _ in range(5):
            got = client.get("/app")
            assert got.body in (b"abc", b"") and got.status == (204 if "204" in how else 200)
    assert app.connections == 5
    assert app.server.errors.wait(
        r"pool app: .*app\.sock: 42 bytes after the end of the response: closing", 5)


def test_failure_while_a_part_is_read(behind):
    """The next part of a stored body comes from disk when the client gets its error already."""
    app = behind(lambda asked: False, pool="request-buffering=on\n")
    body = request("/app", "POST", f"Content-Length: {2 * MB}\r\n") + pattern(2 * MB)
    seen = []

    def post():
        for _ in range(20 // SCALE):
            with Client(app.server.port) as client:
                client.send(body)
                seen.append(client.response().status)

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [502] * (8 * (20 // SCALE))


def test_bytes_while_idle(behind):
    """A response that nobody has asked for closes a kept connection."""
    later = threading.Event()

    def more(asked):
        asked.body()
        asked.answer(b"good")
        later.wait(TIMEOUT)
        asked.send(OK + b"Content-Length: 4\r\n\r\nevil")
        return asked.closed() and False

    app = behind(more, "--log-level", "info", pool="keep-connection=1h\n")
    with Client(app.server.port) as client:
        for _ in range(3):
            later.clear()
            assert client.get("/app").body == b"good"
            later.set()
            assert app.ended.acquire(timeout=TIMEOUT)
    assert app.connections == 3
    assert app.server.errors.wait(r"pool app: .*app\.sock: bytes on an idle connection", 3)


def test_too_late(behind):
    heard = threading.Event()

    def silent(asked):
        if good(asked):
            return True
        if asked.closed():
            heard.set()
        return False

    app = behind(silent, pool=f"timeout={SOON}s\n")
    assert fetch(app.server.port, "/app").status == 504
    assert heard.wait(TIMEOUT)
    assert app.server.errors.wait("took too long to answer")
    assert fetch(app.server.port, "/app?good").body == b"plain"


@pytest.mark.parametrize("framing", [b"Content-Length: 100\r\n\r\nbegun",
                                     CHUNKED + b"\r\n5\r\nbegun\r\n",
                                     b"Connection: close\r\n\r\nbegun"])
def test_silence_in_the_middle(behind, framing):
    behind_checks.silence_in_the_middle(behind, good, OK + framing, lambda asked: asked.closed())


def test_pause(behind):
    behind_checks.pause(behind, OK + b"Content-Length: 10\r\n\r\nbegun", b"ended")


def test_too_late_at_one_address(behind, tmp_path):
    """It is not used for a while: the other address gets the requests."""
    silent = Upstream(lambda asked: asked.closed() and False, tmp_path / "silent.sock")
    app = behind(good, others=[silent.address], pool=f"timeout={SOON}s\n")
    statuses = [fetch(app.server.port, "/app?good").status for _ in range(2)]
    assert sorted(statuses) == [200, 504]
    assert app.server.errors.wait(r"pool app: .*silent\.sock: took too long to answer")
    # If the machine is slow, the time may be over, and is twice as long after that.
    statuses = [fetch(app.server.port, "/app?good").status for _ in range(20)]
    assert statuses.count(200) >= 17 and set(statuses) <= {200, 504}
    assert silent.requests == 1 + statuses.count(504)
    silent.close()


@pytest.mark.parametrize("begun", [True, False])
def test_client_goes(behind, begun):
    behind_checks.client_goes(behind, good,
                              OK + CHUNKED + b"\r\n5\r\nbegun\r\n" if begun else None,
                              lambda asked: asked.closed())


def test_client_goes_within_its_body(behind):
    """The server behind sees a request that is not complete."""
    gone, begun = threading.Event(), threading.Event()

    def reading(asked):
        if good(asked):
            return True
        begun.set()
        asked.fields["content-length"] = str(1 << 40)
        if asked.closed():
            gone.set()
        return False

    app = behind(reading, pool="request-buffering=off\n")
    with Client(app.server.port) as client:
        client.send(request("/app", "POST", "Content-Length: 50000000\r\n") + pattern(2000 * KB))
        assert begun.wait(TIMEOUT)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert gone.wait(TIMEOUT)
    assert fetch(app.server.port, "/app?good").body == b"plain"
