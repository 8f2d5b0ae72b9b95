# SPDX-License-Identifier: MIT
"""Trailers of workers (RFC 9110, section 6.5), behind bodies of unknown length."""

import pytest

from client import Client, exchange, fetch, request
from streams import Reset, Streams, needs_h2
from test_pools import config
from test_worker_interim import BAD, clear, http1, run

TE = "TE: trailers\r\n"
SOME = "X-Sum:_1|X-Count:_2|"
HEAD = b"Transfer-Encoding: chunked"


def chunked(client):
    """Returns the content and the lines of the trailers."""
    content = b""
    while True:
        size = int(line(client), 16)
        if size == 0:
            break
        content += client.take(size)
        assert client.take(2) == b"\r\n"
    trailers = []
    while (one := line(client)):
        trailers.append(one)
    return content, trailers


def line(client):
    while b"\r\n" not in client.data:
        client.more()
    one, _, client.data = client.data.partition(b"\r\n")
    return one


def ask(client, target, fields=TE, method="GET"):
    client.send(request(target, method, fields))
    head = client.head()
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and HEAD in head
    return chunked(client)


@http1
@pytest.mark.parametrize("te", ["TE: trailers", "TE: gzip;q=0.5, Trailers", "te:trailers,"])
def test_passed_on(run, te):
    server = run()
    with Client(server.port) as client:
        for _ in range(2):
            content, trailers = ask(client, f"/a/trailers?{SOME}", te + "\r\n")
            assert len(content) == 10 and trailers == [b"X-Sum: 1", b"X-Count: 2"]
    assert not server.errors.count(BAD), server.errors.text()


@http1
@pytest.mark.parametrize("fields", ["", "TE: gzip\r\n", "TE: trailer\r\n",
                                    'TE: x;y="trailers"\r\n'])
def test_not_without_te(run, fields):
    server = run()
    with Client(server.port) as client:
        assert ask(client, f"/a/trailers?{SOME}", fields)[1] == []


@http1
def test_fields_that_come_before_the_body(run):
    server = run()
    names = ["Content-Length:_1", "Transfer-Encoding:_chunked", "Host:_a", "Content-Type:_a/b",
             "Content-Encoding:_gzip", "Set-Cookie:_a=b", "Cache-Control:_no-store", "Trailer:_X",
             "Connection:_close", "Location:_/", "WWW-Authenticate:_Basic", "X-NABC-Tag:_a",
             "Content-Range:_bytes_0-1/2", "Date:_now", "Vary:_*", "Authorization:_a", "Age:_1"]
    with Client(server.port) as client:
        assert ask(client, f"/a/trailers?{'|'.join(names)}|X-Good:_1|")[1] == [b"X-Good: 1"]
        assert ask(client, f"/a/trailers?{'|'.join(names)}|")[1] == []


@http1
@pytest.mark.parametrize("lines", ["X|", "X:_1", "_X:_1|", "Content-Length:_x|",
                                   "X:_" + "y" * 4096 + "|"],
                         ids=["name", "end", "blank", "length", "long"])
def test_malformed(run, lines):
    """The response is cut off: its end is not the end of the body."""
    server = run()
    with Client(server.port) as client:
        client.send(request(f"/a/trailers?{lines}", fields=TE))
        client.head()
        assert server.errors.wait("malformed trailer fields"), server.errors.text()
        with pytest.raises(AssertionError, match="closed"):
            chunked(client)
    assert fetch(server.port, "/a/pid").status == 200


@http1
def test_known_length(run):
    """The client has the whole response with the last byte."""
    server = run()
    with Client(server.port) as client:
        for _ in range(2):
            got = client.get(f"/a/known?{SOME}", fields=TE)
            assert got.status == 200 and len(got.body) == 10 and client.data == b""


@http1
def test_head(run):
    server = run()
    with Client(server.port) as client:
        for _ in range(3):
            client.send(request(f"/a/trailers?{SOME}", "HEAD", TE))
            assert client.head().startswith(b"HTTP/1.1 200 OK\r\n")
        assert len(client.get("/a/pid").body) == 10


@clear
def test_not_for_http10(run):
    server = run()
    got = exchange(server.port, f"GET /a/trailers?{SOME} HTTP/1.0\r\n{TE}\r\n".encode())
    assert b"X-Sum" not in got and got.startswith(b"HTTP/1.1 200 OK\r\n")


@http1
def test_compressed(run):
    """Digests are those of other bytes."""
    server = run(path="compress=gzip\ncompress-types=application/octet-stream\ncompress-min=1\n"
                      "compress-uncached=on\n")
    with Client(server.port) as client:
        target = "/a/trailers?Repr-Digest:_a|X-Sum:_1|Content-MD5:_a|"
        content, trailers = ask(client, target, TE + "Accept-Encoding: gzip\r\n")
        assert content[:2] == b"\x1f\x8b" and trailers == [b"X-Sum: 1"]
        assert len(ask(client, target)[1]) == 3


@needs_h2
@clear
def test_http2(run):
    server = run("http2=clear")
    with Streams(server.port) as session:
        streams = [session.open(f"/a/trailers?X-Sum:_{number}|Set-Cookie:_a|X-B:_2|")
                   for number in range(9)]
        for number, stream in enumerate(streams):
            answer = session.answer(stream)
            assert answer.status == 200 and len(answer.body) == 10
            assert answer.trailers == {"x-sum": str(number), "x-b": "2"}
        assert session.get("/a/trailers?Set-Cookie:_a|").trailers is None
        assert session.get(f"/a/known?{SOME}").trailers is None
        assert session.get(f"/a/trailers?{SOME}", method="HEAD").trailers is None
        with pytest.raises(Reset):
            session.get("/a/trailers?X")
        assert session.get("/a/pid").status == 200
