# SPDX-License-Identifier: MIT
"""Stopping by a signal: pending responses are completed, new requests are refused."""

import signal
import socket

import pytest

from client import Client, fetch, request
from files import MB, pattern, write
from ports import free_port
from server import OBEY, TIMEOUT, UNDER, Server, running
from test_workers import hanging

# More than sockets hold; a slow server can send it within its five seconds of grace.
LARGE = pattern((6 if UNDER else 16) * MB)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("stop")
    write(root / "large", LARGE)
    write(root / "small", b"small\n")
    return root


def reading(server):
    """A client in the middle of a large response."""
    client = Client(server.port, 4096)
    client.send(request("/large") + request("/small"))
    assert b"HTTP/1.1 200 " in client.head()
    return client


def refused(server):
    """Waits until no process listens any more."""
    for _ in range(100000):
        try:
            socket.create_connection(("127.0.0.1", server.port)).close()
        except ConnectionError:
            return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_answers_under_way_are_finished(kind, root, number):
    with running(kind, root) as server:
        with reading(server) as client, Client(server.port) as idle:
            assert idle.get("/small").body == b"small\n"
            server.send_signal(number)
            assert refused(server)
            assert idle.at_end()
            assert client.take(len(LARGE)) == LARGE


def test_second_signal_ends_at_once(kind, root):
    # Many threads, so that the client is hardly ever on the main one.
    with running(kind, root, "--threads", 8, "--stop-timeout", "1h") as server:
        with reading(server) as client:
            server.send_signal(signal.SIGINT)
            assert refused(server)
            server.send_signal(signal.SIGINT)
            # Without a second signal it would give the client an hour.
            server.process.wait(TIMEOUT)
            got = len(client.data)
            try:
                while piece := client.socket.recv(MB):
                    got += len(piece)
            except ConnectionResetError:
                pass
            assert got < len(LARGE)


def test_worker_that_hangs_does_not_hold_up_the_end(kind, root):
    with running(kind, root, "--worker", f"/obey={OBEY}", "--stop-timeout", "1h") as server:
        clients = hanging(server, 3)
        server.workers()
        server.send_signal(signal.SIGTERM)
        assert refused(server)
        server.send_signal(signal.SIGTERM)
        server.process.wait(TIMEOUT)
        for client in clients:
            client.close()


def test_not_ready_before_the_end(root):
    """During drain-delay the server reports that it stops, and serves as before."""
    with running("epoll", root, "--drain-delay", "1s") as server:
        assert fetch(server.port, "/.sweet/ready").status == 200
        with Client(server.port) as kept:
            server.send_signal(signal.SIGTERM)
            assert server.errors.wait("ending: not ready")
            assert kept.get("/.sweet/ready").status == 503
            answer = fetch(server.port, "/small")
            assert (answer.status, answer.fields.get("connection")) == (200, None)
            assert refused(server)
            assert kept.at_end()


def test_who_has_come_is_answered(kind, root):
    """A connection whose first request had not arrived at the signal."""
    # A new client has a fifth of that for the first byte.
    with running(kind, root, "--stop-timeout", "100s") as server:
        with Client(server.port) as fresh, Client(server.port) as begun:
            begun.send(b"GET /small HT")
            server.wait_status(lambda status: status["connections"]["open"] == 3)
            server.send_signal(signal.SIGTERM)
            assert server.errors.wait("ending: ") if UNDER else refused(server)
            fresh.send(request("/small"))
            begun.send(b"TP/1.1\r\nHost: test\r\n\r\n")
            for client in (fresh, begun):
                answer = client.response()
                assert answer.body == b"small\n"
                # A slow server may announce a kept connection before it begins to stop.
                assert UNDER or answer["Connection"] == "close"
                client.half_close()
                assert client.at_end()


def test_killed_and_started_at_once(kind, tmp_path):
    """On the same addresses, which the kernel may free only after the process has exited."""
    write(tmp_path / "file", b"a file\n")
    port = free_port()
    options = ["--arch", "mt", "--threads", 12, "--listen", f"unix:{tmp_path}/socket"]
    server = None
    try:
        for _ in range(4):
            server = Server(kind, tmp_path, *options, listen=f"127.0.0.1:{port}")
            assert fetch(port, "/file").body == b"a file\n"
            clients = [Client(port) for _ in range(3)]
            server.kill()
            for client in clients:
                client.close()
    finally:
        server.kill()
