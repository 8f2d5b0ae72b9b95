# SPDX-License-Identifier: MIT
"""Bodies of an HTTP server behind that are larger than all memory: 1 GB, and 10 in the suite
"large". Each passes through little memory in one pass, and arrives complete."""

import os

import pytest

from client import request
from files import MB, pattern
from server import SCALE, UNDER, sanitized
from test_fastcgi import Client
from test_upload_programs import head

# With a sanitizer the memory is not the server's alone, and is not judged.
SIZE = (int(os.environ.get("SWEET_LARGE_GB", "1")) << 30) // (8 if sanitized() else SCALE)
CACHE = 64 * MB
# Of which the cache, where the bodies wait, may have all.
MOST = CACHE + 32 * MB
BLOCK = pattern(MB)
WATCHED = 64  # blocks from one look at the memory to the next

pytestmark = [pytest.mark.http1("the translator's memory and time are not the server's"),
              pytest.mark.thorough]


class Watch:
    """The maximum memory of a server."""

    def __init__(self, server):
        self.server, self.blocks, self.most = server, 0, 0

    def look(self):
        self.blocks += 1
        if self.blocks % WATCHED == 1:
            self.most = max(self.most, self.server.memory())

    def judge(self):
        assert UNDER or sanitized() or self.most < MOST, self.most


def is_pattern(piece, at):
    """Whether a piece from that place on is part of the blocks, one after the other."""
    start = at % MB
    return (BLOCK[start:] + BLOCK * (len(piece) // MB + 1)).startswith(piece)


def receive(client, size, watch):
    """Takes that many bytes of the body, which are dropped."""
    at = 0
    while at < size:
        piece, client.data = client.data[:size - at], client.data[size - at:]
        if not piece:
            piece = client.receive(min(MB, size - at))
        assert piece and is_pattern(piece, at)
        at += len(piece)
        if at // MB != (at - len(piece)) // MB:
            watch.look()


@pytest.mark.parametrize(("how", "buffering"),
                         [("length", "on"), ("length", "off"), ("closed", "on")])
def test_response(behind, how, buffering):
    def endless(asked):
        length = b"Content-Length: %d\r\n" % SIZE if how == "length" else b""
        asked.send(b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n" + length + b"\r\n")
        for _ in range(SIZE // MB):
            asked.send(BLOCK)
        return how == "length"

    app = behind(endless, f"--cache-size={CACHE}", pool=f"response-buffering={buffering}\n")
    watch = Watch(app.server)
    with Client(app.server.port) as client:
        client.send(request("/app"))
        if how == "length":
            assert f"Content-Length: {SIZE}".encode() in client.head()
            receive(client, SIZE, watch)
        else:
            assert b"chunked" in client.head()
            receive_chunks(client, watch)
    watch.judge()


def test_chunked_response(behind):
    def endless(asked):
        asked.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(SIZE // MB):
            asked.send(b"%x\r\n%s\r\n" % (MB, BLOCK))
        asked.send(b"0\r\n\r\n")

    app = behind(endless, f"--cache-size={CACHE}")
    watch = Watch(app.server)
    with Client(app.server.port) as client:
        client.send(request("/app"))
        assert b"chunked" in client.head()
        receive_chunks(client, watch)
    watch.judge()


def receive_chunks(client, watch):
    at = 0
    while True:
        while b"\r\n" not in client.data:
            client.more()
        line, _, client.data = client.data.partition(b"\r\n")
        size = int(line, 16)
        piece = client.take(size + 2)
        assert piece.endswith(b"\r\n") and is_pattern(piece[:-2], at)
        if not size:
            break
        at += size
        watch.look()
    assert at == SIZE


@pytest.mark.parametrize("length", [True, False])
def test_upload(behind, length):
    taken = []

    def counting(asked):
        at = 0
        for piece in asked.pieces():
            assert is_pattern(piece, at)
            at += len(piece)
        taken.append(at)
        asked.answer(b"%d" % at)

    app = behind(counting, f"--cache-size={CACHE}", pool="request-buffering=off\n")
    watch = Watch(app.server)
    with Client(app.server.port) as client:
        client.send(head("/app", SIZE if length else None))
        for _ in range(SIZE // MB):
            client.send(BLOCK if length else b"%x\r\n%s\r\n" % (MB, BLOCK))
            watch.look()
        client.send(b"" if length else b"0\r\n\r\n")
        assert client.response().body == b"%d" % SIZE
    assert taken == [SIZE]
    watch.judge()
