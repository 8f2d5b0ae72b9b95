# SPDX-License-Identifier: MIT
"""Clients of HTTP/2 that cost more than they should, by frames that are permitted one by one."""

import struct

import pytest

from files import MB, pattern, write
from server import UNDER, resident, running, sanitized
from streams import (CONTINUATION, DATA, END_HEADERS, GOAWAY, HEADERS, OPEN, PADDED, PING, PREFACE,
                     RESET, SETTINGS, WINDOW, Raw, Streams, block, frame, needs_h2)
from test_http2_hostile import server, serves  # noqa: F401

pytestmark = [pytest.mark.clear("these choose what is below"), needs_h2]

NONE, SETTINGS_TIMEOUT, REFUSED, CALM = 0, 4, 7, 11
STREAMS = 128  # max-streams, by default
# GET, http, /, and an authority: a few bytes for each request (RFC 7541).
SHORT = b"\x82\x86\x84\x01\x04test"
# Settings with windows of 0 bytes; the server's are not acknowledged.
UNSETTLED = PREFACE + frame(SETTINGS, struct.pack(">HI", 4, 0))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("floods")
    write(folder / "root" / "index.html", pattern(1 * MB, seed=1))
    write(folder / "root" / "small", b"small\n")
    write(folder / "cgi" / "count", b"#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\n"
          b"cat > /dev/null\necho good\n").chmod(0o755)
    folder.chmod(0o755)
    return folder


def requests(count, first=1):
    return b"".join(frame(HEADERS, SHORT, OPEN, stream)
                    for stream in range(first, first + 2 * count, 2))


# --- clients that do not read --------------------------------------------------------------------

FLOODS = {
    "refused": lambda: requests(300_000, 2 * STREAMS + 1),
    "pings": lambda: frame(PING, bytes(8)) * 300_000,
    "settings": lambda: frame(SETTINGS) * 300_000,
    "windows": lambda: b"".join(
        frame(WINDOW, struct.pack(">I", 0x7fffffff), stream=stream) + frame(HEADERS, SHORT, OPEN,
                                                                         stream + 2)
        for stream in range(2 * STREAMS - 1, 300_000, 2)),
}


@pytest.mark.skipif(bool(UNDER) or sanitized(),
                    reason="the memory of a sanitizer or Valgrind is not the server's")
@pytest.mark.parametrize("which", FLOODS)
def test_frames_that_wait_for_the_client(kind, root, which):
    """What the server has to say to a client that does not read is bounded."""
    flood = FLOODS[which]()
    with running(kind, root / "root", "--http2", "clear", "--threads", 1) as server:
        serves(server)
        before = resident(server.pid)
        with Raw(server.port, UNSETTLED, buffer=4096) as client:
            client.send(requests(STREAMS))
            client.send_unread(flood)
            assert resident(server.pid) - before < 8 * MB
        serves(server)


def test_client_that_reads_late(server):
    """Nothing of what waited is lost: the server continues when the client reads."""
    count = 1500
    with Raw(server.port, UNSETTLED, buffer=4096) as client:
        client.send(requests(STREAMS), requests(count, 2 * STREAMS + 1))
        refused = set()
        while len(refused) < count:
            assert client.more()
            refused |= {stream for kind, _, stream, _ in client.frames if kind == RESET}
        assert all(struct.unpack(">I", payload)[0] == REFUSED
                   for kind, _, _, payload in client.frames if kind == RESET)


def test_settings_without_acknowledgement(kind, root, clock):
    with running(kind, root / "root", "--http2", "clear", f"--header-timeout={clock.limit}s",
                 "--keep-alive-timeout=9000s", "--threads", 1, clock=clock) as server:
        with Raw(server.port, UNSETTLED) as client, Raw(server.port) as other:
            client.send(frame(PING, bytes(8)))
            client.until(PING, 0)
            other.send(frame(PING, bytes(8)))
            other.until(PING, 0)
            server.forward(clock.limit / 2)
            # A request does not prolong it.
            client.send(requests(1))
            client.until(HEADERS, 1)
            server.forward(clock.limit / 2 + 2)
            assert client.end() == SETTINGS_TIMEOUT
            other.send(requests(1))
            other.until(HEADERS, 1)


# --- frames that achieve nothing ------------------------------------------------------------

def test_refused_streams(server):
    """A client that never acknowledges the settings has no more of them than of other frames."""
    with Raw(server.port, UNSETTLED) as client:
        client.send(requests(STREAMS))
        for first in range(2 * STREAMS + 1, 40_000, 1000):
            if not client.send(requests(500, first)):
                break
        assert client.end() in (CALM, None)
        assert sum(kind == RESET for kind, _, _, _ in client.frames) < 5000
    serves(server)


def until_calm(client, make):
    """Sends the frames that make() returns until the server ends the session."""
    for _ in range(40):
        if not client.send(b"".join(make() for _ in range(500))):
            break
    assert client.end() in (CALM, None)
    assert client.frames[-1][0] == GOAWAY or not client.frames


def test_padding(server):
    """Content of which everything is padding is none."""
    with Raw(server.port) as client:
        client.send(frame(HEADERS, block("/cgi/count", "POST"), END_HEADERS, 1))
        until_calm(client, lambda: frame(DATA, b"\x03\0\0\0", PADDED, 1))
    serves(server)


def test_content_of_streams_that_were_reset(server):
    """What comes for them is forgiven, as long as the client cannot know; not forever."""
    with Raw(server.port) as client:
        client.send(frame(HEADERS, block("/cgi/count", "POST"), END_HEADERS, 1),
                    frame(WINDOW, struct.pack(">I", 0x7fffffff), stream=1))
        client.until(RESET, 1)
        until_calm(client, lambda: frame(DATA, b"x", 0, 1))
    serves(server)


def test_content_byte_by_byte(server):
    """Each byte of a body is progress, however many frames it needs."""
    with Streams(server.port) as session:
        stream = session.open("/cgi/count", method="POST", end=False)
        session.raw(frame(DATA, b"x", 0, stream) * 5000)
        session.h2.end_stream(stream)
        session.flush()
        assert session.answer(stream).body == b"good\n"


# --- heads that cost more to decode than to send --------------------------------------------

LONG = 4000
# A field for the table, with a long value; then each byte names it (a bomb of HPACK).
NAMED = b"\x40\x01a" + b"\x7f" + bytes([LONG - 127 & 0x7f | 0x80, LONG - 127 >> 7]) + b"b" * LONG
BOMB = NAMED + b"\xbe" * 8000


def statuses(client):
    """Returns the statuses of the responses by their streams."""
    import hpack
    decoder = hpack.Decoder()  # of all: they share a table
    return {stream: dict(decoder.decode(payload, raw=True))[b":status"]
            for kind, _, stream, payload in client.frames if kind == HEADERS}


def code(client, stream):
    client.until(RESET, stream)
    return next(struct.unpack(">I", payload)[0] for kind, _, number, payload in client.frames
                if (kind, number) == (RESET, stream))


def test_head_without_end(server):
    """It is refused before its end has come, and what follows is decoded for other heads only."""
    with Raw(server.port) as client:
        client.send(frame(PING, bytes(8)))
        client.until(PING, 0)  # the server has sent its settings
        client.send(frame(HEADERS, SHORT + BOMB, 1, 1))
        client.until(HEADERS, 1)
        assert statuses(client) == {1: b"431"}
        assert code(client, 1) == NONE
        # A field that the next head refers to.
        client.send(frame(CONTINUATION, b"\xbe" * 8000 + b"\x44\x06/small", END_HEADERS, 1),
                    frame(HEADERS, b"\x82\x86\xbe\x01\x04test", OPEN, 3))
        client.until(DATA, 3)
        assert b"small\n" in [payload for kind, _, _, payload in client.frames if kind == DATA]


def test_heads_that_are_too_long(server):
    """A few are refused one by one."""
    with Raw(server.port) as client:
        for stream in range(1, 2000, 2):
            if not client.send(frame(HEADERS, SHORT + (BOMB if stream == 1 else BOMB[-8000:]),
                                     OPEN, stream)):
                break
        assert client.end() in (CALM, None)
        assert sum(kind == HEADERS for kind, _, _, _ in client.frames) < 30
    serves(server)


def test_heads_that_are_a_little_too_long(server):
    """The same, without a reset."""
    with Raw(server.port) as client:
        for stream in range(1, 11, 2):
            client.send(frame(HEADERS, SHORT + (NAMED if stream == 1 else b"") + b"\xbe" * 5,
                              OPEN, stream))
            client.until(HEADERS, stream)
            assert statuses(client)[stream] == b"431"
        client.send(frame(HEADERS, block("/small"), OPEN, 11))
        client.until(DATA, 11)
        assert not [one for one in client.frames if one[0] == RESET]
        for stream in range(13, 2000, 2):
            if not client.send(frame(HEADERS, SHORT + b"\xbe" * 5, OPEN, stream)):
                break
        assert client.end() in (CALM, None)
    serves(server)


def test_trailers_that_are_too_long(server):
    """They are ignored, so nothing else would limit them."""
    post = block("/cgi/count", "POST")
    with Raw(server.port) as client:
        client.send(frame(HEADERS, post, END_HEADERS, 1), frame(HEADERS, BOMB, OPEN, 1))
        assert code(client, 1) == CALM
        for stream in range(3, 2000, 2):
            if not client.send(frame(HEADERS, post, END_HEADERS, stream),
                               frame(HEADERS, BOMB[-8000:], OPEN, stream)):
                break
        assert client.end() in (CALM, None)
        assert sum(kind == RESET for kind, _, _, _ in client.frames) < 30
    serves(server)


# A field of 4,000 bytes, which is remembered; and two bytes that name it.
KEPT = b"\x40\x01a\x7f" + bytes([4000 - 127 & 0x7f | 0x80, 4000 - 127 >> 7]) + b"b" * 4000
KEPT_AGAIN = b"\xbe"


def test_heads_of_open_streams(server):
    """A few bytes of each request name much, which is kept while its body does not come."""
    upload = block("/cgi/count", "POST")
    with Raw(server.port) as client:
        # 512 KB of heads, and then one.
        client.send(frame(HEADERS, upload + KEPT, END_HEADERS, 1),
                    *(frame(HEADERS, upload + KEPT_AGAIN * 2, END_HEADERS, stream)
                      for stream in range(3, 2 * 80, 2)))
        assert code(client, 2 * 79 + 1) == REFUSED
        assert [stream for kind, _, stream, _ in client.frames if kind == RESET][0] in range(
            2 * 62, 2 * 68)
        # They count as long as their streams are open.
        client.send(*(frame(RESET, struct.pack(">I", 8), stream=stream)
                      for stream in range(1, 2 * 30, 2)),
                    frame(HEADERS, upload + KEPT_AGAIN * 2, OPEN, 201))
        client.until(HEADERS, 201)
    serves(server)
