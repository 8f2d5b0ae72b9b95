# SPDX-License-Identifier: MIT
"""Hostile clients, each kind alone; tests/torture/hostile.py runs thousands of them,
beside honest ones."""

import contextlib
import socket
import struct

import pytest

from client import Client, exchange, fetch, request
from files import KB, MB, pattern, write
from server import SCALE, VALGRIND, descriptors, running, sanitized
from test_limits import resident

PAGE = pattern(10 * KB)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("hostile")
    write(root / "page", PAGE)
    write(root / "big", pattern(12 * MB))
    return root


@pytest.fixture(scope="module")
def server(kind, root):
    with running(kind, root, "--threads", 1) as server:
        yield server


def alone(status):
    """The client that requests the status is the only one."""
    return status["connections"]["open"] == 1


def ask_on_and_on(client, data):
    """Sends as much as the server accepts, without reading responses; returns how much that was."""
    client.socket.setblocking(False)
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            # Continues at the right byte, so that each request is complete.
            sent += client.socket.send(data[sent % len(data):])
    client.socket.setblocking(True)
    return sent


@pytest.mark.clear("it sends without waiting, below TLS")
def test_pipelining_without_reading(server):
    """The server stops reading from a client that does not read, so that nothing grows; later
    the client gets all responses."""
    one = request("/page")
    assert fetch(server.port, "/page").body == PAGE
    clients, sent, held = [], [], []
    try:
        # The first make the server allocate what it needs once, however many are served together.
        for _ in range(2):
            some = [Client(server.port, 16 * KB) for _ in range(40 // SCALE)]
            clients += some
            sent += [ask_on_and_on(client, one * 1000) for client in some]
            assert fetch(server.port, "/page").body == PAGE
            held.append(resident(server.pid))
        each = (held[1] - held[0]) / len(some)
        # Its data is endless; its memory is limited.
        assert VALGRIND or sanitized() or each < 256 * KB, f"{each} bytes for each"
        assert min(sent) > 100 * len(one)
        for _ in range(100):
            assert clients[0].response().body == PAGE
    finally:
        for client in clients:
            client.close()
    server.wait_status(alone)


@pytest.mark.parametrize("data", [b"", b"GET /big HTTP/1.1\r\nHost: te", request("/big"),
                                  request("/page") * 100],
                         ids=["silent", "half a head", "answer", "answers"])
def test_resets(server, data):
    """Connections that break off at any moment leave nothing behind."""
    # Memory that the server needs for them once is allocated by this request.
    fetch(server.port, "/big")
    assert fetch(server.port, "/page").body == PAGE
    server.wait_status(alone)
    before = descriptors(server.pid)
    for _ in range(10):
        clients = [Client(server.port, 16 * KB) for _ in range(40 // SCALE)]
        for client in clients:
            client.send(data)
        for client in clients:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
    server.wait_status(alone)
    assert fetch(server.port, "/page").body == PAGE
    # That of the status request is closed a moment later.
    server.wait_status(lambda status: alone(status) and descriptors(server.pid) <= before)


def test_half_closed(server):
    """A client that has closed its sending end gets all responses, and then holds nothing."""
    with Client(server.port) as client:
        client.send(request("/page") * 200)
        client.half_close()
        for _ in range(200):
            assert client.response().body == PAGE
        assert client.at_end()
    server.wait_status(alone)


def test_no_descriptors_left(kind, root):
    """Connected clients are served; new ones are rejected, and served when others have
    disconnected."""
    with running(kind, root, "--threads", 1, prefix=("prlimit", "--nofile=100:100")) as server:
        with Client(server.port) as early:
            assert early.get("/page").body == PAGE
            crowd = []
            try:
                for _ in range(150):
                    crowd.append(socket.create_connection(("127.0.0.1", server.port)))
                assert server.errors.wait("accepting connections: Too many open files")
                assert early.get("/page").body == PAGE
                assert early.get("/page").body == PAGE
            finally:
                for one in crowd:
                    one.close()
            # All connections, rejected or not, are closed.
            while True:
                with contextlib.suppress(AssertionError, OSError), Client(server.port) as late:
                    assert late.get("/page").body == PAGE
                    break
            assert early.get("/page").body == PAGE
        server.wait_status(alone)
        # A line for each would be an attack by itself.
        assert server.errors.count("Too many open files") <= 2


TLS = (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(11, 43)) +
       b"\x20" + bytes(480))


@pytest.mark.http1("these are no requests")
@pytest.mark.parametrize("data", [b"GET /\r\n", b"GET / HTTP/1.1\n", TLS, TLS[:5], b"SSH-2.0-",
                                  b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", b"\0", b"\0" * 1000,
                                  b"GET / HTTP/1.1\r\nA: \0", b"\r\n\r\n\0\r\nQUIT\n",
                                  b"<policy-file-request/>\0", b"GET /  HTTP/1.1\r\n"],
                         ids=lambda data: repr(data[:20]))
def test_hopeless(kind, root, data):
    """A hopeless request is answered at once, whether it arrives whole or byte by byte."""
    with running(kind, root, "--header-timeout", "1h", "--log-level", "info") as server:
        for step in (len(data), 1):
            with Client(server.port) as client:
                with contextlib.suppress(ConnectionError):
                    for at in range(0, len(data), step):
                        client.send(data[at:at + step])
                assert client.response().status == 400
                # Bytes that arrive after the close cause a reset.
                with contextlib.suppress(ConnectionError):
                    assert client.socket.recv(1) == b""
        assert server.errors.wait("127.0.0.1: answered 400: ")


@pytest.mark.http1("the server closes after malformed heads")
@pytest.mark.parametrize("head, status", [
    ("HEAD / HTTP/1.1\r\n", 400), ("HEAD /\r\n", 400), ("HEAD / HTTP/2.0\r\n", 505),
    ("HEAD / HTTP/1.1\r\nHost: [ab..cd::1]\r\n", 400),
    ("HEAD / HTTP/1.1\r\nHost: x\r\nExpect: x\r\n", 417),
    ("HEAD /" + "x" * 9000 + " HTTP/1.1\r\nHost: x\r\n", 414),
    ("HEAD / HTTP/1.1\r\nHost: x\r\nA: " + "x" * 20000 + "\r\n", 431)])
def test_refused_head(server, head, status):
    """The response to HEAD has no body, even if the rest of the head is invalid."""
    answer = exchange(server.port, f"{head}\r\n".encode())
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert answer.endswith(b"\r\n\r\n") and answer.count(b"\r\n\r\n") == 1
    assert b"\r\nContent-Length: " in answer
