# SPDX-License-Identifier: MIT
"""Raw bytes and the server's response: every case of the table protocol-cases.txt with
one kind of server, samples of it with all.  Over HTTP/2 only the cases that it can carry."""

import os
import re

import pytest

import tls
from client import Client, Response, exchange, fetch, request
from files import write
from http1_requests import Head, Untranslatable
from server import OBEY, SCALE, running

MACROS = {
    "H": "Host: test\\r\\n",
    "C": "Transfer-Encoding: chunked\\r\\n",
    "G": "GET / HTTP/1.1\\r\\nHost: test\\r\\n",
    "F": "POST / HTTP/1.1\\r\\nHost: test\\r\\n",
    "W": "POST /obey/upload HTTP/1.1\\r\\nHost: test\\r\\n",
    "E": "\\r\\n",
}
ESCAPES = {"r": "\r", "n": "\n", "t": "\t", "\\": "\\"}
PROBE = b"the connection lasts\n"


def unescape(text):
    return re.sub(
        r"\\(x[0-9a-fA-F]{2}|.)",
        lambda found: chr(int(found[1][1:], 16)) if found[1][0] == "x" else ESCAPES[found[1]],
        text,
    )


class Case:
    def __init__(self, number, line):
        self.section, statuses, self.fate, text = line.split(None, 3)
        self.name = f"{number}: {line}"
        self.statuses = [] if statuses == "-" else statuses.split(",")
        text = re.sub(r"\$\{?([HCGFWE])\b\}?|\$([HCGFWE])", lambda m: MACROS[m[1] or m[2]], text)
        text = re.sub(r"\{(.*?)\*(\d+)\}", lambda found: found[1] * int(found[2]), text)
        # Text after an "&" is sent when the previous response has arrived.
        self.pieces = [unescape(piece).encode("latin-1") for piece in text.split("&")]

    def is_carried(self):
        """Returns True if HTTP/2 can carry it. The server's rejection of a request is not the end
        of a connection there."""
        if self.fate == "closed" and set(self.statuses) & {"400", "400h", "414", "417", "431",
                                                            "501", "505"}:
            return False
        data, heads, body = b"".join(self.pieces), 0, None
        if self.fate == "closed":
            data += request("/probe")
        try:
            while data := data.lstrip(b"\r\n") if not body else data:
                if body:
                    data = data[body.take(data, len(data))[0]:]
                elif b"\r\n\r\n" in data:
                    text, _, data = data.partition(b"\r\n\r\n")
                    heads, body = heads + 1, Head(text).body()
                else:
                    break
                body = None if body and body.over else body
        except Untranslatable:
            return False
        # The end within a body is a reset, which ends the response as well.
        return not (self.fate == "ended" and body and len(self.statuses) == heads)


def table():
    path = os.path.join(os.path.dirname(__file__), "protocol-cases.txt")
    with open(path, encoding="ascii") as lines:
        return [
            Case(number, line.rstrip("\n"))
            for number, line in enumerate(lines, 1)
            if line.strip() and not line.startswith("#")
        ]


ALL = table()
CASES = [case for case in ALL if not tls.HTTP2 or case.is_carried()]


def answer(client, expected):
    """Returns the next response, which must have the expected status and form."""
    head = client.head()
    got = Response(head, b"")
    assert got.status == int(expected.rstrip("h")), head
    if got.status == 100:
        assert not got.fields
        return got
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", got["Date"])
    if got.status == 204:
        assert "Content-Length" not in got and "Allow" in got
    elif not expected.endswith("h"):
        got.body = client.take(int(got["Content-Length"]))
    if got.status == 405:
        assert "GET" in got["Allow"]
    return got


def check(port, case, send=Client.send):
    with Client(port) as client:
        last = None
        rest = list(case.statuses)
        for piece in case.pieces[:-1]:
            send(client, piece)
            if rest and rest[0] == "100":
                answer(client, rest.pop(0))
        # Further data would get a response if the connection were not closed.
        send(client, case.pieces[-1] + (request("/probe") if case.fate == "closed" else b""))
        if case.fate == "ended":
            client.half_close()
        for status in rest:
            last = answer(client, status)
        if case.fate == "kept":
            old = b"HTTP/1.0" in case.pieces[0]
            assert last.fields.get("connection") == ("keep-alive" if old else None)
            got = client.get("/probe")
            assert (got.status, got.body) == (200, PROBE)
        else:
            assert client.at_end()
        if last and last.status >= 400 and last.body:
            assert b"<h1>%d " % last.status in last.body and len(last.body) < 1024


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("protocol")
    write(root / "index.html", b"here\n")
    write(root / "probe", PROBE)
    write(root / "sweet.conf", b"[path /obey/small]\nmax-body = 10\n")
    return root


def serve(kind, root):
    return running(kind, root, "--config", root / "sweet.conf", "--worker", f"/obey={OBEY}")


@pytest.fixture(scope="module")
def one_kind(root):
    with serve("epoll", root) as server:
        yield server


@pytest.fixture(scope="module")
def server(kind, root):
    with serve(kind, root) as server:
        yield server


def test_table():
    assert len(ALL) >= 250 and len(CASES) >= 100
    for case in ALL:
        assert re.fullmatch(r"(9110|9112|9113|6585|5789|3986)-\d+(\.\d+)*", case.section), case.name
        assert case.fate in ("kept", "closed", "ended"), case.name
    assert len({b"&".join(case.pieces) for case in ALL}) > len(ALL) - 10


@pytest.mark.parametrize("case", CASES[::SCALE], ids=lambda case: case.name)
def test_case(one_kind, case):
    check(one_kind.port, case)


def test_sample(server):
    for case in CASES[:: 5 * SCALE]:
        try:
            check(server.port, case)
        except Exception as error:
            raise AssertionError(case.name) from error


@pytest.mark.http1("noise is no request")
def test_noise(server):
    """Random bytes of every value."""
    state = 1
    for _ in range(50 // SCALE):
        noise = bytearray()
        for _ in range(300):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            noise.append(state >> 56)
        exchange(server.port, bytes(noise).replace(b"\n", b"\r") + b"\r\n\r\n")
    assert fetch(server.port, "/probe").body == PROBE


def byte_by_byte(client, data):
    for byte in data:
        client.send(bytes([byte]))


def test_byte_by_byte(server):
    """The short cases; an early close by the server is not an error."""
    short = [case for case in CASES if sum(map(len, case.pieces)) < 120]
    for case in short[:: 12 * SCALE]:
        try:
            check(server.port, case, byte_by_byte)
        except (BrokenPipeError, ConnectionResetError):
            continue
        except Exception as error:
            raise AssertionError(case.name) from error


def test_in_one_connection(server):
    """All cases that keep it open, one after the other, without waiting."""
    kept = [
        case for case in CASES
        if case.fate == "kept" and len(case.pieces) == 1 and len(case.pieces[0]) < 5000
    ]
    with Client(server.port) as client:
        client.send(b"".join(case.pieces[0] for case in kept))
        for case in kept:
            for status in case.statuses:
                answer(client, status)
        client.send(request("/probe"))
        assert client.response().body == PROBE
