# SPDX-License-Identifier: MIT
"""Bodies of requests above the limit for collection, sent to FastCGI applications."""

import hashlib
import socket
import struct
import threading

import pytest

from client import Client
from files import KB, MB, pattern
from responder import Application
from server import TIMEOUT
from test_upload_programs import (GB, KEPT, LARGE, answer, begin, head, judge, pieces, sum_of,
                                  summed, takes, upload)


def test_fastcgi(begin):
    app = begin(summed)
    judge(app.server, "/app", LARGE)
    # The connection is kept for the next request.
    assert app.connections < 4
    for size in (MB + 1, MB + 2, 5 * 256 * KB - 1, 5 * 256 * KB, 5 * 256 * KB + 1):
        assert upload(app.server.port, "/app", pattern(size)) == (200, sum_of(pattern(size)))


def test_fastcgi_writes_first(begin):
    def writes(asked):
        asked.out(b"Content-Type: text/plain\r\n\r\nthe sum: ")
        sum = hashlib.md5()
        for piece in pieces(asked):
            sum.update(piece)
        asked.out(sum.hexdigest().encode())
        asked.answer(b"", b"")

    app = begin(writes)
    data = pattern(LARGE)
    status, said = upload(app.server.port, "/app", data)
    assert status == 200 and said.startswith(b"the sum: " + sum_of(data))


@pytest.mark.parametrize("keeps", [True, False])
def test_fastcgi_early_answer(begin, keeps):
    def early(asked):
        next(pieces(asked))
        asked.answer(b"enough\n", b"Status: 403\r\nContent-Type: text/plain\r\n")
        return keeps and asked.aborted()

    app = begin(early)
    for size in (3 * MB, LARGE):
        assert upload(app.server.port, "/app", pattern(size)) == (403, b"enough\n")
    with Client(app.server.port) as client:
        client.send(head("/app", GB) + pattern(MB))
        assert answer(client) == (403, b"enough\n")
    app.server.wait_status(lambda status: status["cache"]["units"] == 0)


def test_fastcgi_redirect(begin):
    def moves(asked):
        if asked.variables["REQUEST_METHOD"] == "GET":
            assert asked.body() == b"" and "CONTENT_LENGTH" not in asked.variables
            asked.answer(asked.variables["PATH_INFO"].encode())
        elif asked.variables["PATH_INFO"] == "/file":
            asked.answer(b"", b"Location: /file\r\n")
            return False
        else:
            asked.answer(b"", b"Location: /app/other\r\n")
            return False
        return True

    app = begin(moves)
    for size in (100, 3 * MB, LARGE):
        assert upload(app.server.port, "/app/file", pattern(size)) == (200, b"a file\n")
        assert upload(app.server.port, "/app/here", pattern(size)) == (200, b"/other")


@pytest.mark.parametrize("count", [0, 1, 30])
def test_fastcgi_ends(begin, count):
    """An application that exits after that many records."""
    def dies(asked):
        for _, _ in zip(range(count), pieces(asked)):
            pass
        return False

    app = begin(dies)
    assert upload(app.server.port, "/app", pattern(LARGE))[0] == 502
    app.server.wait_status(lambda status: status["cache"]["units"] == 0)


def test_fastcgi_next_address(begin, tmp_path):
    """After the first piece was sent no other application is tried, for any method."""
    records = 1
    seen = []

    def dies(asked):
        for _, _ in zip(range(records), pieces(asked)):
            pass
        seen.append(records)
        return False

    other = Application(dies, tmp_path / "other.sock")
    app = begin(summed, others=[other.address])
    data = pattern(3 * MB)
    for records in (0, 30):
        seen.clear()
        got = {upload(app.server.port, "/app", data, method=b"PUT") for _ in range(4)}
        assert seen
        if records:
            assert got <= {(200, sum_of(data))} | {pair for pair in got if pair[0] == 502}
            assert any(status == 502 for status, _ in got)
        else:
            assert got == {(200, sum_of(data))}
    other.close()
    assert not other.faults


def test_fastcgi_client_goes(begin):
    begun, told = threading.Event(), threading.Event()

    def reads(asked):
        for _ in range(3):
            asked.connection.record()
        begun.set()
        if asked.aborted():
            told.set()
        return False

    app = begin(reads)
    with Client(app.server.port) as client:
        client.send(head("/app", GB) + pattern(300 * KB))
        assert begun.wait(TIMEOUT)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert told.wait(TIMEOUT)
    app.server.wait_status(lambda status: status["cache"]["units"] == 0)


def test_fastcgi_slow(begin):
    go = threading.Event()

    def slow(asked):
        assert go.wait(TIMEOUT)
        summed(asked)

    app = begin(slow)
    size = 40 * MB
    data = pattern(MB)
    before = app.server.cache_used()
    with Client(app.server.port) as client:
        client.send(head("/app", size))
        taken = takes(client, data)
        assert taken < 32 * MB
        assert app.server.cache_used() < before + 4 * MB
        go.set()
        rest = data[taken % MB:] + data * (size // MB - taken // MB - 1)
        client.send(rest)
        assert answer(client) == (200, sum_of(data * (size // MB)))


def test_fastcgi_filter(begin):
    def echo(asked):
        asked.out(b"Content-Type: text/plain\r\n\r\n")
        for piece in pieces(asked):
            asked.out(piece, 8184)
        asked.answer(b"", b"")

    app = begin(echo)
    data = pattern(KEPT)
    status, said = upload(app.server.port, "/app", data)
    assert status == 200 and said[: len(data)] == data
    assert upload(app.server.port, "/app", pattern(32 * MB))[0] == 413
    assert app.server.errors.wait("pool app: .*too large to be kept")


def test_fastcgi_large_early_answer(begin):
    """An application that closes without reading: more is left than can be held."""
    body = pattern(3 * MB)

    def early(asked):
        asked.answer(body)
        return False

    app = begin(early)
    for size in (2 * MB, KEPT):
        status, said = upload(app.server.port, "/app", pattern(size))
        assert (status, said) == (200, body)
