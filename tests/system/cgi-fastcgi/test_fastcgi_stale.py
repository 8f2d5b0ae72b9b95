# SPDX-License-Identifier: MIT
"""FastCGI records that come too late, for a request that is over, on a connection that is kept: no
other client gets them."""

import os
import signal
import socket
import threading

import pytest

import stopped
from client import request
from responder import STDERR, STDOUT, end, record
from server import SCALE, TIMEOUT
from test_fastcgi import HEAD, Client, fetch

LATE = record(STDOUT, HEAD + b"\r\nof another client") + record(STDOUT) + end()
KEPT = "keep-connection=1h\nin-flight=1\n"


def await_next(asked):
    """Returns when the next request has come, or the connection has ended."""
    asked.connection.socket.recv(1, socket.MSG_PEEK)


def own(asked):
    asked.body()
    asked.answer(asked.variables["QUERY_STRING"].encode())


def test_ids(one):
    """Each request of a connection has an id of its own, also one that ends it."""
    numbers = []

    def note(asked):
        numbers.append((asked.connection.socket.fileno(), asked.number))
        asked.body()
        asked.answer(b"noted")
        return True

    app = one(note, pool=KEPT)
    with Client(app.server.port) as client:
        for _ in range(4):
            assert client.get("/app").body == b"noted"
        assert client.get("/app", "PUT", "Content-Length: 0\r\n").body == b"noted"
    assert [number for _, number in numbers] == [1, 2, 3, 4, 5]
    assert app.connections == 1


def test_body_of_a_later_request(one):
    """Its records have the id, too: the application here checks it."""

    def echo(asked):
        asked.answer(asked.body())

    app = one(echo, pool=KEPT)
    for body in (b"", b"x" * 200000, b"", b"", b"y" * 70000):
        with Client(app.server.port) as client:
            client.send(request("/app", "PUT", f"Content-Length: {len(body)}\r\n") + body)
            assert client.response().body == body


@pytest.mark.parametrize("late", [LATE, record(STDERR, b"said late\n"), end()],
                         ids=["answer", "error", "end"])
def test_while_idle(one, late):
    """The server finds both at once: a request for a kept connection, and bytes on it."""
    asked_again, go_on = threading.Event(), threading.Event()

    def lag(asked):
        own(asked)
        if asked.variables["QUERY_STRING"] == "first":
            assert asked_again.wait(TIMEOUT)
            asked.send(late)
            go_on.set()

    app = one(lag, pool="keep-connection=1h\n")
    with Client(app.server.port) as client:
        assert client.get("/app?first").body == b"first"
        pid = app.server.process.pid
        stopped.stop(pid)
        try:
            client.send(request("/app?second"))
            asked_again.set()
            assert go_on.wait(TIMEOUT)
        finally:
            os.kill(pid, signal.SIGCONT)
        got = client.response()
    assert (got.status, got.body) == (200, b"second")
    assert app.connections == 2


def test_after_the_next_request(one):
    """The connection has been given to a client that waited, when records of the earlier request
    come: they are not its answer."""
    def lag(asked):
        own(asked)
        await_next(asked)
        asked.send(LATE)
        return False

    app = one(lag, pool=KEPT)
    targets = [f"/app?{number}" for number in range(60 // SCALE)]
    clients = [Client(app.server.port) for _ in targets]
    for client, target in zip(clients, targets):
        client.send(request(target))
    seen = []
    for client, target in zip(clients, targets):
        got = client.response()
        seen.append(got.status)
        assert got.status == 502 or got.body == target.partition("?")[2].encode()
        client.close()
    assert set(seen) == {200, 502}
    assert app.server.errors.wait("a record with the id of another request")
    app.handle = own
    assert fetch(app.server.port, "/app?good").body == b"good"


def test_with_the_answer(one):
    """More records in the bytes that end an answer: the connection is not kept."""

    def double(asked):
        asked.body()
        asked.send(record(STDOUT, HEAD + b"\r\nown") + end() + LATE)

    app = one(double, pool=KEPT)
    with Client(app.server.port) as client:
        for _ in range(5):
            assert client.get("/app").body == b"own"
    assert app.connections == 5
