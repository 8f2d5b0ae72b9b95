# SPDX-License-Identifier: MIT
"""Clients that read slowly, or not to the end."""

import pytest

from client import Client, request
from files import KB, MB, pattern, write
from server import GENERATE, SCALE, running
from test_generate import page

LARGE = pattern(8 * MB // SCALE)
STREAMED = pattern(24 * MB // SCALE, seed=1)
SMALL_BUFFER = 4096


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("readers")
    write(root / "large", LARGE)
    write(root / "streamed", STREAMED)
    write(root / "small", b"small\n")
    return root


@pytest.fixture(scope="module")
def server(kind, root):
    # A unit is at most a quarter: one file is cached, the other streamed.
    with running(kind, root, "--cache-size", 64 * MB // SCALE) as server:
        yield server


def read_slowly(client, body, step=10 * KB):
    """Reads a body in small steps: the server repeatedly finds the socket full."""
    head = client.head()
    assert b"Content-Length: %d\r\n" % len(body) in head + b"\r\n"
    got = bytearray(client.data)
    client.data = b""
    while len(got) < len(body):
        piece = client.socket.recv(step)
        assert piece
        got += piece
    assert bytes(got) == body


@pytest.mark.parametrize("target, body", [("/large", LARGE), ("/streamed", STREAMED)], ids=["large", "streamed"])
def test_slow_reader(server, target, body):
    with Client(server.port, SMALL_BUFFER) as client:
        client.send(request(target))
        read_slowly(client, body)
        assert client.get("/small").body == b"small\n"


def test_many_slow_readers(server):
    count = 24
    clients = [Client(server.port, SMALL_BUFFER) for _ in range(count)]
    got = [bytearray() for _ in clients]
    body = LARGE
    try:
        for client in clients:
            client.send(request("/large"))
        # All of them have begun before any of them continues; others are served.
        for client in clients:
            client.head()
        with Client(server.port) as other:
            assert other.get("/small").body == b"small\n"
        for number, client in enumerate(clients):
            got[number] += client.data
        while any(len(one) < len(body) for one in got):
            for number, client in enumerate(clients):
                if len(got[number]) < len(body):
                    piece = client.socket.recv(256 * KB)
                    assert piece
                    got[number] += piece
        assert all(bytes(one) == body for one in got)
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize("target", ["/large", "/streamed"])
def test_client_that_goes(server, target):
    before = server.status()["connections"]["open"]
    for read in (0, 1, 100 * KB):
        for _ in range(5):
            with Client(server.port, SMALL_BUFFER) as client:
                client.send(request(target))
                if read:
                    client.take(read)
    with Client(server.port) as client:
        assert client.get("/small").body == b"small\n"
        assert client.get(target).body == (LARGE if target == "/large" else STREAMED)
    server.wait_status(lambda status: status["connections"]["open"] <= before)


def test_client_that_goes_from_a_worker(kind, root):
    with running(kind, root, "--worker", f"/generate={GENERATE}") as server:
        for read in (0, 1, 100 * KB):
            for _ in range(10):
                with Client(server.port, SMALL_BUFFER) as client:
                    client.send(request(f"/generate?size={4 * MB}"))
                    if read:
                        client.take(read)
        # The memory of unread responses is free again.
        with Client(server.port) as client:
            for _ in range(8):
                got = client.get(f"/generate?size={24 * MB}")
                assert (got.status, got.body == page(24 * MB)) == (200, True)
        assert server.status()["workers"]["failures"] == 0
