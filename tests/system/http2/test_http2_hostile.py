# SPDX-License-Identifier: MIT
"""Clients of HTTP/2 that send what they should not, too much of it, or nothing."""

import struct

import pytest

from client import Client
from files import MB, pattern, write
from server import running
from streams import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, OPEN, PING,
                     PREFACE, PRIORITY, RESET, SETTINGS, WINDOW, Raw, Streams, block, frame, h2,
                     literal, needs_h2)

pytestmark = [pytest.mark.clear("these choose what is below"), needs_h2]

CALM, PROTOCOL, COMPRESSION, SIZE, FLOW, INTERNAL = 11, 1, 9, 6, 3, 2


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    write(folder / "root" / "small", b"small\n")
    write(folder / "root" / "large", pattern(8 * MB, seed=1))
    write(folder / "cgi" / "count", b"#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\n"
          b"cat > /dev/null\necho good\n").chmod(0o755)
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def server(kind, root):
    with running(kind, root / "root", "--http2", "clear", "--threads", 1, "--cgi",
                 f"/cgi={root}/cgi", "--cache-socket", root / "cache") as made:
        yield made


def serves(server):
    """An honest client gets its response."""
    with Streams(server.port) as session:
        assert session.get("/small").body == b"small\n"


FLOODS = {
    "resets": lambda n: frame(HEADERS, block("/large"), OPEN, 2 * n + 1)
    + frame(RESET, struct.pack(">I", 8), stream=2 * n + 1),
    "pings": lambda n: frame(PING, struct.pack(">Q", n)),
    "pings that answer": lambda n: frame(PING, struct.pack(">Q", n), ACK),
    "settings": lambda n: frame(SETTINGS, struct.pack(">HI", 3, n)),
    "priorities": lambda n: frame(PRIORITY, struct.pack(">IB", 0, 1), stream=2 * n + 1),
    "windows": lambda n: frame(WINDOW, struct.pack(">I", 1)),
    "unknown frames": lambda n: frame(0xee, b"x"),
    "updates of priorities": lambda n: frame(0x10, struct.pack(">I", 2 * n + 1) + b"u=1"),
}


@pytest.mark.parametrize("which", FLOODS)
def test_floods(server, which):
    make = FLOODS[which]
    with Raw(server.port) as client:
        for n in range(0, 20_000, 500):
            if not client.send(*(make(at) for at in range(n, n + 500))):
                break
        # The library has a limit of its own for resets.
        assert client.end() in (CALM, None, INTERNAL)
    serves(server)


def test_empty_content(server):
    with Raw(server.port) as client:
        client.send(frame(HEADERS, block("/cgi/count", "POST"), END_HEADERS, 1))
        for _ in range(20):
            client.send(frame(DATA, stream=1) * 500)
        assert client.end() in (CALM, None)
    serves(server)


def test_continuations(server):
    """A head that never ends: nothing of it is kept beyond max-header."""
    with Raw(server.port) as client:
        client.send(frame(HEADERS, block(), END_STREAM, 1))
        for _ in range(2000):
            if not client.send(frame(CONTINUATION, literal("a", "b" * 100) * 100, stream=1)):
                break
        client.end()
    serves(server)


def test_fields_that_grow(server):
    """A few bytes that name a long field of the table many times (a bomb of HPACK)."""
    size = 4000
    name = b"\x40\x01a" + b"\x7f" + bytes([size - 127 & 0x7f | 0x80, size - 127 >> 7]) + b"b" * size
    with Raw(server.port) as client:
        client.send(frame(HEADERS, block() + name + b"\xbe" * 5000, OPEN, 1))
        client.until(HEADERS, 1)
        status = next(payload for kind, _, stream, payload in client.frames
                      if kind == HEADERS and stream == 1)
        assert b"431" in h2_decode(status)
    serves(server)


def h2_decode(payload):
    import hpack
    return dict(hpack.Decoder().decode(payload, raw=True))[b":status"]


@pytest.mark.parametrize("frames, codes", [
    (frame(DATA, b"x", stream=1), [PROTOCOL]),
    (frame(HEADERS, block(), OPEN, 2), [PROTOCOL]),
    (frame(HEADERS, b"\x80", OPEN, 1), [COMPRESSION]),
    (frame(HEADERS, b"\xff\xff\xff\xff\xff\xff", OPEN, 1), [COMPRESSION]),
    (frame(SETTINGS, b"12345"), [SIZE]),
    (frame(SETTINGS, struct.pack(">HI", 4, 1 << 31)), [FLOW]),
    (frame(WINDOW, struct.pack(">I", 0)), [PROTOCOL]),
    (frame(WINDOW, struct.pack(">I", 0x7fffffff)), [FLOW]),
    (frame(PING, b"1"), [SIZE]),
    (frame(CONTINUATION, block(), END_HEADERS, 1), [PROTOCOL]),
    (frame(HEADERS, block(), END_STREAM, 1) + frame(PING, bytes(8)), [PROTOCOL]),
    (b"\x00\x40\x01" + frame(DATA, b"", stream=1)[3:] + bytes(16385), [SIZE, PROTOCOL]),
    (frame(HEADERS, block(), OPEN, 5) + frame(HEADERS, block(), OPEN, 3), [PROTOCOL]),
])
def test_errors(server, frames, codes):
    with Raw(server.port) as client:
        client.send(frames)
        assert client.end() in codes
    serves(server)


@pytest.mark.parametrize("fields", [
    {"connection": "close"}, {"transfer-encoding": "chunked"}, {"te": "gzip"}, {"A": "b"},
    {":status": "200"}, {"upgrade": "h2c"}, {"x": "a\rb"}, {"x": "a\nb"}, {"x": "a\0b"},
    {"content-length": "5"}, {"content-length": "x"}, {":method": "GET "}, {"x y": "a"},
    {":path": "/a\r\nHost: b"}, {":authority": "a\r\nb: c"}, {":authority": "a b"},
    {":path": "/ HTTP/1.1"}, {":scheme": "foo"},
])
def test_malformed_requests(server, fields):
    """Reset, or refused with 400; never a request."""
    with Raw(server.port) as client:
        client.send(frame(HEADERS, block(**{"path": "/small", **fields})
                          if ":path" not in fields else block(**fields), OPEN, 1))
        while not any(stream == 1 for _, _, stream, _ in client.frames):
            assert client.more()
        kind, _, _, payload = next(one for one in client.frames if one[2] == 1)
        assert kind == RESET or h2_decode(payload) == b"400"
    serves(server)


def test_half_a_preface(kind, root, clock):
    with running(kind, root / "root", "--http2", "clear", f"--header-timeout={clock.limit}s",
                 "--threads", 1, clock=clock) as server, Client(server.port) as client:
        client.send(PREFACE[:10])
        server.wait_status(lambda now: now["connections"]["reading"] == 1)
        server.forward(clock.limit + 1)
        assert b"408" in client.head()


@pytest.mark.parametrize("data, timeout", [
    (b"", "keep-alive"),
    (frame(HEADERS, block(), END_STREAM, 1), "header"),
    (frame(HEADERS, block(), OPEN, 1)[:7], "keep-alive"),
    (frame(PING, bytes(8)), "keep-alive"),
])
def test_timeouts(kind, root, clock, data, timeout):
    """A session on which nothing happens, and a head that does not end."""
    with running(kind, root / "root", "--http2", "clear", f"--{timeout}-timeout={clock.limit}s",
                 "--threads", 1, clock=clock) as server, Raw(server.port) as client:
        client.send(data)
        client.until(SETTINGS, 0)
        if timeout == "header":
            server.wait_status(lambda now: now["connections"]["reading"] == 1)
        server.forward(clock.limit / 2)
        client.send(frame(PING, bytes(8)) if timeout == "keep-alive" and len(data) != 7 else b"")
        server.forward(clock.limit / 2 + 2)
        client.end()
        assert client.frames[-1][0] == GOAWAY


def test_body_that_stops(kind, root, clock):
    with running(kind, root / "root", "--http2", "clear", f"--body-timeout={clock.limit}s",
                 "--keep-alive-timeout=9000s", "--threads", 1, "--cgi", f"/cgi={root}/cgi", "--cache-socket",
                 root / "cache-body", clock=clock) as server, Streams(server.port) as session:
        stream = session.open("/cgi/count", method="POST", end=False)
        session.content(stream, b"x" * 100, end=False)
        other = session.get("/small")
        assert other.status == 200
        for _ in range(3):
            server.forward(clock.limit)
        assert session.answer(stream).status == 408
        assert session.get("/small").status == 200


def test_stream_that_is_not_read(kind, root, clock):
    """Its window stays closed: it is reset, and the others continue."""
    with running(kind, root / "root", "--http2", "clear", f"--send-timeout={clock.limit}s",
                 "--keep-alive-timeout=9000s", "--threads", 1, clock=clock) as server, \
            Streams(server.port, window=1000, take=False) as session:
        stream = session.open("/large")
        session.until(lambda: len(session.answers[stream].body) == 1000)
        for _ in range(4):
            server.forward(clock.limit)
        session.until(lambda: session.answers[stream].over)
        assert session.answers[stream].code == h2.errors.ErrorCodes.INTERNAL_ERROR
        assert session.get("/small").status == 200


def test_session_that_is_not_read(kind, root, clock):
    """Windows without end, but the socket is full: the connection is closed."""
    with running(kind, root / "root", "--http2", "clear", f"--send-timeout={clock.limit}s",
                 "--threads", 1, clock=clock) as server:
        with Streams(server.port, window=1 << 30, take=False, buffer=4096) as session:
            session.h2.increment_flow_control_window(1 << 30)
            for _ in range(20):
                session.open("/large")
            server.wait_status(lambda now: now["connections"]["sending"] == 1)
            for _ in range(4):
                server.forward(clock.limit)
            server.wait_status(lambda now: now["connections"]["open"] == 1)


def test_goaway_that_is_ignored(kind, root, clock):
    """A client that opens streams although it should not gets no response in the end."""
    with running(kind, root / "root", "--http2", "clear", "--keep-alive-requests", 2,
                 "--threads", 1, "--keep-alive-timeout=9000s", clock=clock) as server, \
            Streams(server.port, window=1000, take=False) as session:
        large = session.open("/large")
        session.until(lambda: len(session.answers[large].body) == 1000)
        for _ in range(5):
            assert session.get("/small").status == 200
        server.forward(2)
        last = session.open("/small")
        session.answer(last)
        session.until(lambda: session.goaway[0] == last)
        ignored = session.open("/small")
        session.h2.increment_flow_control_window(16 * MB)
        session.h2.increment_flow_control_window(16 * MB, large)
        session.flush()
        assert len(session.answer(large).body) == 8 * MB
        assert session.end() == (last, h2.errors.ErrorCodes.NO_ERROR)
        assert session.answers[ignored].status is None


def test_many_uploads_that_stop(server):
    """Bytes that no program takes are bounded by the windows."""
    with Streams(server.port) as session:
        streams = [session.open("/small", method="POST", end=False) for _ in range(50)]
        for stream in streams:
            assert session.answer(stream).status == 405
    serves(server)


class Bodies:
    """An HTTP server that records the bodies of the requests that came to their end."""

    def __init__(self):
        self.lengths = []

    def __call__(self, asked):
        self.lengths.append(len(asked.body()))
        asked.answer(b"seen")


def content(data, end=END_STREAM):
    """The frames of a body."""
    pieces = [data[at:at + 16384] for at in range(0, len(data), 16384)]
    return [frame(DATA, piece, 0 if piece is not pieces[-1] else end, 1) for piece in pieces]


def code_of_reset(client):
    client.until(RESET, 1)
    return next(struct.unpack(">I", payload)[0] for kind, _, stream, payload in client.frames
                if (kind, stream) == (RESET, 1))


@pytest.mark.parametrize("buffering", ["on", "off"])
@pytest.mark.parametrize("announced, sent", [(5, 0), (5, 4), (5, 6), (60_000, 59_999),
                                             (60_000, 60_001), (60_000, 65_000)])
def test_length_of_a_body(behind, buffering, announced, sent):
    """The stream is reset, and no complete request reaches the program."""
    bodies = Bodies()
    app = behind(bodies, "--http2", "clear", pool=f"request-buffering={buffering}\n")
    head = block("/app", "POST", **{"content-length": str(announced)})
    with Raw(app.server.port) as client:
        client.send(frame(HEADERS, head, END_HEADERS | (0 if sent else END_STREAM), 1),
                    *content(bytes(sent)))
        assert code_of_reset(client) == PROTOCOL
        assert not [one for one in client.frames if one[0] == HEADERS]
    with Streams(app.server.port) as session:
        assert session.get("/app").body == b"seen"
    assert bodies.lengths == [0]


def test_content_after_its_length(behind):
    """A request is complete with its length; what follows resets the stream and goes nowhere."""
    bodies = Bodies()
    app = behind(bodies, "--http2", "clear")
    with Raw(app.server.port) as client:
        client.send(frame(HEADERS, block("/app", "POST", **{"content-length": "5"}), END_HEADERS, 1),
                    *content(b"12345", 0))
        client.until(HEADERS, 1)
        client.send(*content(b"GET /app HTTP/1.1\r\nHost: a\r\n\r\n"))
        assert code_of_reset(client) == PROTOCOL
    with Streams(app.server.port) as session:
        assert session.get("/app").body == b"seen"
    assert bodies.lengths == [5, 0]
