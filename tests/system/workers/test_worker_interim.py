# SPDX-License-Identifier: MIT
"""Interim responses of workers (RFC 9110, section 15.2; early hints: RFC 8297)."""

import os

import pytest

from client import Client, exchange, fetch, request
from server import BUILD
from streams import Streams, needs_h2
from test_pools import config, pool

HEADS = os.path.join(BUILD, "tests", "system", "worker-heads")
BAD = r"WARNING|ERROR"
clear = pytest.mark.clear("this chooses what is below")
http1 = pytest.mark.http1("this is of HTTP/1.1")


@pytest.fixture
def run(config, start):
    def begin(keys="", path="", **settings):
        config.write(pool(command=HEADS, **settings) + f"[path /a]\npool=app\n{path}", keys)
        return start(None, "--config", config.path, listen=None)

    return begin


def is_pid(body):
    return len(body) == 10 and int(body) > 1


@http1
@pytest.mark.parametrize("how", ["interim", "pieces"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_passed_on(run, how, method):
    server = run()
    with Client(server.port) as client:
        for _ in range(2):
            client.send(request(f"/a/{how}?103X-One:_1|X-Two:__2|/199/102X-Three:_3|", method,
                                "Content-Length: 0\r\n" if method == "POST" else ""))
            assert client.head() == b"HTTP/1.1 103 Early Hints\r\nX-One: 1\r\nX-Two:  2"
            assert client.head() == b"HTTP/1.1 199 Unknown"
            assert client.head() == b"HTTP/1.1 102 Processing\r\nX-Three: 3"
            got = client.response(method)
            assert got.status == 200
            assert method == "HEAD" or is_pid(got.body)
    assert not server.errors.count(BAD), server.errors.text()


@http1
def test_fields_of_the_server_stay_away(run):
    server = run()
    with Client(server.port) as client:
        client.send(request("/a/interim?103Connection:_X-Hop|X-Hop:_1|Content-Length:_5|X-Good:_1"
                            "|X-NABC-Tag:_t|Transfer-Encoding:_chunked|Date:_now|Status:_200|"))
        assert client.head() == b"HTTP/1.1 103 Early Hints\r\nX-Good: 1"
        assert is_pid(client.response().body)


@pytest.mark.parametrize("lines", ["X|", "X:_1", "_X:_1|", "X_:_1|", "Content-Length:_x|"])
def test_malformed(run, lines):
    server = run()
    assert fetch(server.port, f"/a/interim?103{lines}").status == 502
    assert server.errors.wait("malformed header lines in an interim response")
    got = fetch(server.port, "/a/pid")
    assert got.status == 200 and is_pid(got.body)


@http1
def test_few(run):
    """A worker could send them without end."""
    server = run()
    with Client(server.port) as client:
        client.send(request("/a/hints?10000"))
        for number in range(8):
            assert client.head() == (b"HTTP/1.1 103 Early Hints\r\nLink: </%d>; rel=preload"
                                     % number)
        assert is_pid(client.response().body)


@clear
def test_not_for_http10(run):
    server = run()
    got = exchange(server.port, b"GET /a/interim?103X-One:_1| HTTP/1.0\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200 OK\r\n") and b"X-One" not in got


def test_too_late(run):
    """Such a worker breaks the protocol, and is ended."""
    server = run(processes=1)
    with Client(server.port) as client:
        client.send(request("/a/late"))
        client.head()
        assert server.errors.wait("broke the queue protocol"), server.errors.text()
        assert client.at_end()
    assert is_pid(fetch(server.port, "/a/pid").body)


@http1
def test_not_cached(run):
    server = run(path="cache=response\n", processes=1)
    with Client(server.port) as client:
        client.send(request("/a/interim?103X-One:_1|"))
        assert client.head() == b"HTTP/1.1 103 Early Hints\r\nX-One: 1"
        first = client.response().body
        client.send(request("/a/interim?103X-One:_1|"))
        got = client.response()
        assert got.status == 200 and got.body == first


@http1
def test_does_not_read(run):
    """The interim responses that do not fit are left out; no response is damaged."""
    server = run()
    count = 2000
    with Client(server.port, buffer=4096) as client:
        ask = request("/a/hints?3")
        client.send(ask * count)
        whole = hints = 0
        while whole < count:
            head = client.head()
            if head.startswith(b"HTTP/1.1 103 "):
                hints += 1
                continue
            assert head.startswith(b"HTTP/1.1 200 OK"), head
            assert is_pid(client.take(10))
            whole += 1
    assert 0 < hints <= 3 * count


@needs_h2
@clear
@pytest.mark.parametrize("how", ["interim", "pieces"])
def test_http2(run, how):
    server = run("http2=clear")
    with Streams(server.port) as session:
        streams = [session.open(f"/a/{how}?103X-One:_1|X-Two:_{number}|/102") for number in range(9)]
        for number, stream in enumerate(streams):
            answer = session.answer(stream)
            assert answer.interim == [103, 102]
            assert answer.hints == [{"x-one": "1", "x-two": str(number)}, {}]
            assert answer.status == 200 and is_pid(answer.body)
        answer = session.get("/a/hints?10000")
        assert answer.interim == [103] * 8
        assert answer.hints[7] == {"link": "</7>; rel=preload"}
        answer = session.get("/a/interim?103Connection:_close|Keep-Alive:_1|X-Good:_1|")
        assert answer.hints == [{"x-good": "1"}] and answer.status == 200
        assert session.get("/a/interim?103X").status == 502
