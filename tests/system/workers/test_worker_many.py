# SPDX-License-Identifier: MIT
"""Workers that have many requests at the same time: in threads, or in an event loop."""

import contextlib
import os
import signal

import pytest

from client import Client
from server import BUILD, SCALE, running
from test_worker_stream import chunks, reset

MANY = os.path.join(BUILD, "tests", "system", "worker-many")
THREADS = 8
WINDOW = 8  # pieces
PIECE = 4096
HELD = 5  # by one worker; a thread of the server sends a few at a time


@pytest.fixture
def threads(kind, tmp_path):
    with running(kind, tmp_path, "--worker", f"/many={MANY}", "--workers", 1) as server:
        yield server


@pytest.fixture
def loop(kind, tmp_path):
    with running(kind, tmp_path, "--worker", f"/many={MANY} loop", "--workers", 1) as server:
        yield server


def begin(client, query, body=None):
    """Sends a request; a body is the length of what the caller sends then."""
    head = f"GET /many?{query} HTTP/1.1\r\nHost: test\r\n\r\n" if body is None else \
        f"POST /many?{query} HTTP/1.1\r\nHost: test\r\nContent-Length: {body}\r\n\r\n"
    client.send(head.encode())


def end(client):
    assert client.head().startswith(b"HTTP/1.1 200")
    return chunks(client)


def connected(server, count):
    stack = contextlib.ExitStack()
    return stack, [stack.enter_context(Client(server.port)) for _ in range(count)]


def test_as_many_as_threads(threads):
    """Each thread waits for the others before it responds."""
    stack, clients = connected(threads, THREADS)
    with stack:
        for _ in range(20 // SCALE):
            for client in clients:
                begin(client, "together")
            for client in clients:
                assert end(client) == b""


def test_no_request_waits_for_a_slow_one(threads, tmp_path):
    """All threads but one wait; the last one serves all others."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    stack, slow = connected(threads, THREADS - 1)
    with stack, Client(threads.port) as client:
        for one in slow:
            begin(one, f"wait={fifo}")
        for _ in range(100 // SCALE):
            begin(client, "")
            assert end(client) == b""
        with open(fifo, "wb") as out:
            out.write(bytes(len(slow)))
            out.flush()
            for one in slow:
                assert end(one) == b""


def test_bodies_in_threads(threads):
    stack, clients = connected(threads, THREADS)
    body = os.urandom(1 << 20)
    with stack:
        for client in clients:
            begin(client, "", len(body))
        for client in clients:
            client.send(body[: 1 << 19])
        for client in reversed(clients):
            client.send(body[1 << 19 :])
            assert end(client) == body


@pytest.mark.parametrize("count", [1, 40])
def test_loop(loop, count):
    """Bodies that arrive in parts, of all requests in turn."""
    stack, clients = connected(loop, count)
    body = os.urandom(1 << 18)
    with stack:
        for _ in range(3):
            for client in clients:
                begin(client, "pieces=3", len(body))
            for at in range(0, len(body), 1 << 16):
                for client in clients:
                    client.send(body[at : at + (1 << 16)])
            for client in clients:
                data = end(client)
                assert len(data) == 3 * PIECE + len(body)
                assert data[3 * PIECE :] == body


def test_full_windows(loop):
    """Clients that do not read keep their windows full, and no other request waits."""
    count = 3000 // SCALE
    stack, slow = contextlib.ExitStack(), []
    with stack, Client(loop.port) as client:
        for _ in range(HELD):
            slow.append(stack.enter_context(Client(loop.port, buffer=4096)))
            begin(slow[-1], f"pieces={count}")
        for _ in range(100 // SCALE):
            begin(client, f"pieces={2 * WINDOW}")
            assert len(end(client)) == 2 * WINDOW * PIECE
        for one in slow:
            one.hurry()
            assert len(end(one)) == count * PIECE


def aborted(server):
    with Client(server.port) as client:
        begin(client, "count")
        return int(end(client))


def test_clients_leave(loop):
    """Each is reported once, in the middle of others, whatever its request waits for."""
    for round in range(1, 4):
        stack, held = connected(loop, HELD)
        with stack:
            for client in held:
                begin(client, "hold")
            # A request is discarded that the server has not read when its connection is reset.
            for client in held:
                client.head()
                reset(client)
            with Client(loop.port) as client:
                begin(client, "pieces=30000")
                client.head()
                reset(client)
            with Client(loop.port) as client:
                begin(client, "", 1 << 20)
                client.send(bytes(1 << 18))
                reset(client)
        loop.wait_status(lambda _: aborted(loop) >= HELD * round)
        assert aborted(loop) == HELD * round
    assert ask_pieces(loop) == 5 * PIECE


def ask_pieces(server):
    with Client(server.port) as client:
        begin(client, "pieces=5")
        return len(end(client))


def test_threads_return(threads):
    with Client(threads.port) as client:
        begin(client, "")
        assert end(client) == b""
    threads.send_signal(signal.SIGTERM)
    threads.finished()
    assert threads.errors.count("worker-many: a thread has ended") == THREADS


def test_loop_returns(loop):
    assert ask_pieces(loop) == 5 * PIECE
    loop.send_signal(signal.SIGTERM)
    loop.finished()
    assert loop.errors.count("worker-many: the loop has ended") == 1
