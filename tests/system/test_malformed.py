# SPDX-License-Identifier: MIT
"""Requests that are none: refused with the right status, and the connection
closed, for what follows cannot be told apart from the rest (RFC 9112)."""

import pytest

from client import Client, Response, exchange, fetch
from files import write
from server import running

HOST = b"Host: test\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST
CASES = {
    # The request line, section 3.
    "no spaces": (400, b"GET/HTTP/1.1\r\n" + HOST),
    "no version": (400, b"GET /\r\n" + HOST),
    "no target": (400, b"GET HTTP/1.1\r\n" + HOST),
    "empty target": (400, b"GET  HTTP/1.1\r\n" + HOST),
    "two spaces": (400, b"GET /  HTTP/1.1\r\n" + HOST),
    "space in front": (400, b" GET / HTTP/1.1\r\n" + HOST),
    "space behind": (400, b"GET / HTTP/1.1 \r\n" + HOST),
    "space in target": (400, b"GET /a b HTTP/1.1\r\n" + HOST),
    "tabs": (400, b"GET\t/\tHTTP/1.1\r\n" + HOST),
    "method with brackets": (400, b"G(E)T / HTTP/1.1\r\n" + HOST),
    "method with a colon": (400, b"GET: / HTTP/1.1\r\n" + HOST),
    "method of eight bits": (400, b"G\xc9T / HTTP/1.1\r\n" + HOST),
    "no method": (400, b"/ HTTP/1.1\r\n" + HOST),
    "only empty lines": (400, b"\r\n\r\n\r\n\r\n\r\n\r\n"),
    "relative target": (400, b"GET index.html HTTP/1.1\r\n" + HOST),
    "asterisk": (400, b"GET * HTTP/1.1\r\n" + HOST),
    "authority": (501, b"CONNECT test:80 HTTP/1.1\r\n" + HOST),
    "scheme without host": (400, b"GET http:/// HTTP/1.1\r\n" + HOST),
    "another scheme": (400, b"GET ftp://test/ HTTP/1.1\r\n" + HOST),
    "user in absolute form": (400, b"GET http://me@test/ HTTP/1.1\r\n" + HOST),
    "fragment": (400, b"GET /#part HTTP/1.1\r\n" + HOST),
    "NUL in target": (400, b"GET /a\0b HTTP/1.1\r\n" + HOST),
    "control byte in target": (400, b"GET /a\x01b HTTP/1.1\r\n" + HOST),
    "DEL in target": (400, b"GET /a\x7fb HTTP/1.1\r\n" + HOST),
    "eight bits in target": (400, b"GET /\xe9 HTTP/1.1\r\n" + HOST),
    "bare CR in the line": (400, b"GET /\r HTTP/1.1\r\n" + HOST),
    "bare LF ends the line": (400, b"GET / HTTP/1.1\n" + HOST),
    "lower-case protocol": (400, b"GET / http/1.1\r\n" + HOST),
    "another protocol": (400, b"GET / ICY/1.1\r\n" + HOST),
    "version without minor": (400, b"GET / HTTP/1\r\n" + HOST),
    "version of two digits": (400, b"GET / HTTP/1.10\r\n" + HOST),
    "version with a comma": (400, b"GET / HTTP/1,1\r\n" + HOST),
    "HTTP/0.9": (505, b"GET / HTTP/0.9\r\n" + HOST),
    "HTTP/2.0": (505, b"GET / HTTP/2.0\r\n" + HOST),
    "preface of HTTP/2": (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n"),
    "long target": (414, b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + HOST),
    "endless target": (414, b"GET /" + b"a" * 40000),
    "endless method": (414, b"G" * 40000),
    # Fields, sections 3.2, 5 and 2.2.
    "no Host": (400, b"GET / HTTP/1.1\r\n"),
    "two Hosts": (400, GET + HOST),
    "two Hosts that differ": (400, GET + b"Host: other\r\n"),
    "Host with a path": (400, b"GET / HTTP/1.1\r\nHost: test/\r\n"),
    "Host with a blank": (400, b"GET / HTTP/1.1\r\nHost: a b\r\n"),
    "Host list": (400, b"GET / HTTP/1.1\r\nHost: a, b\r\n"),
    "Host with a bad port": (400, b"GET / HTTP/1.1\r\nHost: test:99999\r\n"),
    "no colon": (400, GET + b"Accept text/html\r\n"),
    "no name": (400, GET + b": value\r\n"),
    "space before colon": (400, GET + b"Accept : text/html\r\n"),
    "tab before colon": (400, GET + b"Accept\t: text/html\r\n"),
    "space before name": (400, b"GET / HTTP/1.1\r\n Host: test\r\n"),
    "folded line": (400, GET + b"Accept: text/html,\r\n text/plain\r\n"),
    "folded with a tab": (400, GET + b"Accept: text/html,\r\n\ttext/plain\r\n"),
    "name with brackets": (400, GET + b"A(b): c\r\n"),
    "name with NUL": (400, GET + b"A\0b: c\r\n"),
    "name of eight bits": (400, GET + b"\xc4: c\r\n"),
    "NUL in value": (400, GET + b"A: b\0c\r\n"),
    "NUL far in value": (400, GET + b"A: " + b"b" * 100 + b"\0c\r\n"),
    "control byte in value": (400, GET + b"A: b\x0bc\r\n"),
    "DEL in value": (400, GET + b"A: b\x7fc\r\n"),
    "bare CR in value": (400, GET + b"A: b\rc\r\n"),
    "bare CR between fields": (400, GET + b"A: b\rC: d\r\n"),
    "bare LF between fields": (400, GET + b"A: b\nC: d\r\n"),
    "CR CR LF": (400, GET + b"A: b\r\r\n"),
    "too many fields": (431, GET + b"A: b\r\n" * 100),
    "long field": (431, GET + b"A: " + b"b" * 40000),
    "long name": (431, GET + b"A" * 40000),
    "long head": (431, GET + b"A: bcdefghijklmnopqrstuvwxyz\r\n" * 2000),
    # The length of the body, section 6.
    "two lengths": (400, GET + b"Content-Length: 3\r\nContent-Length: 3\r\n"),
    "two lengths that differ": (400, GET + b"Content-Length: 3\r\nContent-Length: 4\r\n"),
    "list of lengths": (400, GET + b"Content-Length: 3, 3\r\n"),
    "empty length": (400, GET + b"Content-Length:\r\n"),
    "negative length": (400, GET + b"Content-Length: -1\r\n"),
    "length with a sign": (400, GET + b"Content-Length: +1\r\n"),
    "hexadecimal length": (400, GET + b"Content-Length: 0x10\r\n"),
    "length with a letter": (400, GET + b"Content-Length: 3a\r\n"),
    "length with a blank": (400, GET + b"Content-Length: 1 0\r\n"),
    "length in quotes": (400, GET + b'Content-Length: "3"\r\n'),
    "length of 64 bits and more": (400, GET + b"Content-Length: 18446744073709551617\r\n"),
    "length and coding": (400, GET + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
    "coding and length": (400, GET + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"),
    "coding in HTTP/1.0": (400, b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n"),
    "unknown coding": (501, GET + b"Transfer-Encoding: rot13, chunked\r\n"),
    "coding without chunked": (400, GET + b"Transfer-Encoding: rot13\r\n"),
    # Escapes in the path.
    "broken escape": (400, b"GET /%4 HTTP/1.1\r\nConnection: close\r\n" + HOST),
    "escape of no number": (400, b"GET /%zz HTTP/1.1\r\nConnection: close\r\n" + HOST),
    "escaped NUL": (400, b"GET /%00 HTTP/1.1\r\nConnection: close\r\n" + HOST),
}


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = tmp_path_factory.mktemp("malformed")
    write(root / "index.html", b"here\n")
    with running(kind, root) as server:
        yield server


def refused(answer, status):
    """One answer, an error page, and nothing behind it."""
    head, _, body = answer.partition(b"\r\n\r\n")
    got = Response(head, body)
    assert got.status == status
    assert got["Connection"] == "close"
    assert len(body) == int(got["Content-Length"]) < 1024
    assert b"<h1>%d " % status in body


@pytest.mark.parametrize("case", CASES)
def test_refused(server, case):
    status, data = CASES[case]
    # What stands behind would be answered, were the connection not given up.
    smuggled = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
    refused(exchange(server.port, data + b"\r\n" + smuggled), status)
    assert fetch(server.port, "/").body == b"here\n"


@pytest.mark.parametrize("case", ["no spaces", "no Host", "two lengths", "long field", "NUL in value"])
def test_after_good_requests(server, case):
    status, data = CASES[case]
    with Client(server.port) as client:
        client.send((GET + b"\r\n") * 3 + data + b"\r\n")
        for _ in range(3):
            assert client.response().body == b"here\n"
        assert client.response().status == status
        assert client.at_end()


@pytest.mark.parametrize("case", ["no spaces", "no colon", "folded line", "length and coding"])
def test_byte_by_byte(server, case):
    status, data = CASES[case]
    with Client(server.port) as client:
        for byte in data + b"\r\n":
            client.send(bytes([byte]))
        assert client.response().status == status
        assert client.at_end()


def test_no_request_at_all(server):
    for data in (b"", b"\r\n", b"GET", b"GET / HTTP/1.1\r\nHost: te"):
        with Client(server.port) as client:
            client.send(data)
            client.half_close()
            assert client.at_end()
    assert fetch(server.port, "/").body == b"here\n"


def test_noise(server):
    """Bytes of every value, in every order that a generator gives."""
    state = 1
    for _ in range(50):
        noise = bytearray()
        for _ in range(300):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            noise.append(state >> 56)
        exchange(server.port, bytes(noise).replace(b"\n", b"\r") + b"\r\n\r\n")
    assert fetch(server.port, "/").body == b"here\n"
