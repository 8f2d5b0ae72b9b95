# SPDX-License-Identifier: MIT
"""Long heads of programs' responses: by CGI, FastCGI and workers, up to the limit of
the pool, and beyond it."""

import contextlib

import pytest

from files import KB, write
from responder import Application, end
from server import OBEY, running
from test_fastcgi import Client as ChunkedClient

LEAST = 1000
PROTOCOLS = ["cgi", "fastcgi", "worker"]


def lines(length):
    """Header lines of that many bytes, as worker-obey.c makes them."""
    made = []
    while length:
        line = length if length < 2000 else 1000
        made.append(b"x%04d: " % len(made) + b"x" * (line - 9) + b"\r\n")
        length -= line
    return b"".join(made)


def head_of(length, ending=b"\r\n"):
    """A whole head of that many bytes, with its empty line."""
    return lines(length - len(ending)) + ending


def asked_for(target):
    """The values of the query: bytes of the head, and whether there is a body."""
    length, _, body = target.partition("+")
    return head_of(int(length)) + (b"the body\n" if body else b"")


@pytest.fixture
def serve(kind, tmp_path):
    """serve(protocol, keys, options...): get(client, length, body) by it."""
    with contextlib.ExitStack() as stack:
        def begin(protocol, keys="", *options):
            def answer(asked):
                asked.body()
                asked.out(asked_for(asked.variables["QUERY_STRING"]))
                asked.send(end())

            if protocol == "worker":
                pool = f"command={OBEY}\n"
            elif protocol == "cgi":
                pool = f"folder={tmp_path}/cgi\n"
            else:
                app = Application(answer, tmp_path / "app.sock")
                stack.callback(app.close)
                pool = f"upstream={app.address}\n"
            config = write(tmp_path / "sweet.conf",
                           f"[sweet]\nroot={tmp_path}\nthreads=1\ncache=response\n"
                           f"[pool app]\nprotocol={protocol}\n{pool}{keys}\n"
                           "[path /app]\npool=app\n".encode())
            write(tmp_path / "cgi" / "long",
                  f"#!/bin/sh\nexec cat '{tmp_path}/said/'\"$QUERY_STRING\"\n".encode()).chmod(0o755)
            server = stack.enter_context(running(kind, None, "--config", config, *options))

            def get(client, length, body=True, method="GET"):
                # For workers only the lines count, without an empty line.
                query = f"{length}{'+body' if body else ''}"
                write(tmp_path / "said" / query, asked_for(query))
                return client.get(f"/app/long?{query}", method)

            server.get = get
            return server

        yield begin


def sent(length, protocol):
    return lines(length) if protocol == "worker" else lines(length - 2)


def is_whole(got, length, protocol):
    """All lines have arrived unchanged."""
    assert got.status == 200
    assert sent(length, protocol) in got.head + b"\r\n"
    assert got.body == b"the body\n"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_default(serve, protocol):
    """Also the next response on the same connection; a head of the usual length is cached,
    others are not."""
    server = serve(protocol)
    with ChunkedClient(server.port) as client:
        for length in (20000, LEAST, 8064, 8065, 8192, 8193, 32 * KB - 1, 32 * KB, LEAST):
            for _ in range(2):
                is_whole(server.get(client, length), length, protocol)
    if protocol != "worker":
        assert_too_long(server, 32 * KB + 1, 32 * KB)


def assert_too_long(server, length, limit):
    with ChunkedClient(server.port) as client:
        got = server.get(client, length)
        assert got.status == 502 and b"xxxx" not in got.head + got.body
    assert server.errors.wait(f"max-response-header.*{limit if limit else ''}")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("limit", [KB, 20000, 31 * KB])
def test_limit(serve, protocol, limit):
    server = serve(protocol, f"max-response-header={limit}\n")
    with ChunkedClient(server.port) as client:
        is_whole(server.get(client, limit), limit, protocol)
    assert_too_long(server, limit + 1, "" if protocol == "worker" else limit)
    with ChunkedClient(server.port) as client:
        is_whole(server.get(client, limit), limit, protocol)


@pytest.mark.parametrize("protocol", ["cgi", "fastcgi"])
def test_higher_limit(serve, protocol):
    server = serve(protocol, "max-response-header=1M\n")
    with ChunkedClient(server.port) as client:
        for length in (100 * KB, 1024 * KB):
            is_whole(server.get(client, length), length, protocol)
    assert_too_long(server, 1024 * KB + 1, 1024 * KB)


@pytest.mark.parametrize("options", [["--data-path", "posix"], ["--header-align", "64"],
                                     ["--header-option", "off"]])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ways_to_send(serve, protocol, options):
    server = serve(protocol, "", *options)
    with ChunkedClient(server.port) as client:
        for length in (20000, 32 * KB):
            is_whole(server.get(client, length), length, protocol)
            assert server.get(client, length, method="HEAD").status == 200


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_body(serve, protocol):
    server = serve(protocol)
    with ChunkedClient(server.port) as client:
        got = server.get(client, 20000, body=False)
        assert got.status == 200 and got.body == b"" and sent(20000, protocol) in got.head + b"\r\n"


def test_kept_or_not(one):
    """A head that is too long to be cached is fetched each time, and the cache remembers that."""
    asked_for = []

    def answer(asked):
        asked.body()
        length = int(asked.variables["QUERY_STRING"])
        asked_for.append(length)
        asked.answer(b"the body\n", b"Cache-Control: max-age=60\r\n" + lines(length))

    app = one(answer, "--cache", "response")
    with ChunkedClient(app.server.port) as client:
        for length in (1000, 20000):
            for _ in range(3):
                got = client.get(f"/app?{length}")
                assert got.body == b"the body\n" and lines(length) in got.head + b"\r\n"
    assert asked_for == [1000, *[20000] * 3]
