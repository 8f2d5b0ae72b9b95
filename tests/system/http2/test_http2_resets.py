# SPDX-License-Identifier: MIT
"""Clients of HTTP/2 that reset their requests, or make the server reset them (CVE-2025-8671)."""

import itertools
import struct

import pytest

from streams import (DATA, END_HEADERS, END_STREAM, HEADERS, OPEN, PING, RESET, SETTINGS,
                     WINDOW, Raw, block, frame, literal, needs_h2)
from test_abandoned_calls import Slow
from test_http2_floods import CALM, REFUSED, root, server, serves  # noqa: F401

pytestmark = [pytest.mark.clear("these choose what is below"), needs_h2]

INTERNAL, PROTOCOL, FLOW = 2, 1, 3
OVERFLOW = struct.pack(">I", 0x7fffffff)


def post(stream, **fields):
    return frame(HEADERS, block("/cgi/count", "POST", **fields), END_HEADERS, stream)


# Each makes the server reset a stream.
WAYS = {
    "window": lambda n: frame(HEADERS, block("/"), OPEN, n) + frame(WINDOW, OVERFLOW, stream=n),
    "short content": lambda n: post(n, **{"content-length": "5"})
    + frame(DATA, b"x", END_STREAM, n),
    "long content": lambda n: post(n, **{"content-length": "1"}) + frame(DATA, b"xx", 0, n),
    "trailers without an end": lambda n: post(n)
    + frame(HEADERS, literal("a", "b"), END_HEADERS, n),
    "malformed trailers": lambda n: post(n) + frame(HEADERS, literal(":path", "/"), OPEN, n),
    "malformed head": lambda n: frame(HEADERS, block("/", A="b"), OPEN, n),
    "reset by the client": lambda n: post(n) + frame(RESET, struct.pack(">I", 8), stream=n),
}


@pytest.mark.parametrize("which", WAYS)
def test_resets_without_number(server, which):  # noqa: F811
    """One limit for those by the client and by the server, below that of useless frames."""
    make = WAYS[which]
    with Raw(server.port) as client:
        for first in range(0, 1900, 100):
            if not client.send(*(make(2 * n + 1) for n in range(first, first + 100))):
                break
        assert client.end() in (CALM, INTERNAL, None)
    serves(server)


def test_settings_that_reset(server):  # noqa: F811
    """One frame makes the windows of many streams too large."""
    with Raw(server.port) as client:
        streams = itertools.count(1, 2)
        for _ in range(38):
            batch = list(itertools.islice(streams, 50))
            client.send(*(frame(HEADERS, block("/"), OPEN, n)
                          + frame(WINDOW, struct.pack(">I", 0x7fff0000), stream=n)
                          for n in batch),
                        frame(SETTINGS, struct.pack(">HI", 4, 0x20000)),
                        frame(SETTINGS, struct.pack(">HI", 4, 0xffff)))
        assert client.end() in (CALM, INTERNAL, None)
        assert {struct.unpack(">I", payload)[0] for kind, _, _, payload in client.frames
                if kind == RESET} <= {FLOW}
    serves(server)


def test_few_resets(server):  # noqa: F811
    """What a client does by mistake ends no session."""
    with Raw(server.port) as client:
        client.send(frame(WINDOW, struct.pack(">I", 1 << 30)))
        streams = itertools.count(1, 2)
        for make in WAYS.values():
            for stream in itertools.islice(streams, 20):
                client.send(make(stream))
        last = next(streams)
        client.send(frame(HEADERS, block("/small"), OPEN, last))
        client.until(DATA, last)


@pytest.mark.parametrize("which", ["window", "reset by the client"])
@pytest.mark.parametrize("limit", ["max-streams", "in-flight"])
def test_requests_at_work(behind, which, limit):
    """A client has no more requests at the application than its limits say, whatever became of
    their streams."""
    most, slow = 8, Slow()
    end = {"window": lambda n: frame(WINDOW, OVERFLOW, stream=n),
           "reset by the client": lambda n: frame(RESET, struct.pack(">I", 8), stream=n)}[which]
    app = behind(slow, "--http2", "clear", *(["--max-streams", most] if limit == "max-streams"
                                            else []),
                 pool=f"in-flight={most}\n" if limit == "in-flight" else "")
    with Raw(app.server.port) as client:
        for stream in range(1, 201, 2):
            client.send(frame(HEADERS, block("/app"), OPEN, stream), end(stream))
            if stream < 2 * most:
                slow.wait(lambda now: now.begun >= stream // 2)
            if which == "window":
                client.until(RESET, stream)
        client.send(frame(PING, bytes(8)))
        client.until(PING, 0)
        app.server.status()
        assert slow.most <= most
        if limit == "max-streams":
            # Those beyond the limit were not begun.
            codes = [struct.unpack(">I", payload)[0] for kind, _, _, payload in client.frames
                     if kind == RESET]
            assert codes.count(REFUSED) >= (100 - most if which == "window" else 0)
        slow.finish()
        slow.wait(lambda now: not now.open)
        app.server.status()
        client.send(frame(HEADERS, block("/app"), OPEN, 201))
        client.until(DATA, 201)
    assert slow.most <= most
