# SPDX-License-Identifier: MIT
"""Requests whose clients have gone while an application works on them: it continues, so they count
against its limit until it is done."""

import socket
import struct
import threading

import pytest

from client import Client, exchange, request
from server import TIMEOUT

LIMIT = 4
PROTOCOLS = ["http", "fastcgi"]


class Slow:
    """An application that does not notice that a client has gone; counts requests at work."""

    def __init__(self):
        self.changed = threading.Condition()
        self.open = self.most = self.begun = 0
        self.done = False

    def __call__(self, asked):
        asked.body()
        with self.changed:
            self.begun += 1
            self.open += 1
            self.most = max(self.most, self.open)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self.done, TIMEOUT)
            self.open -= 1
            self.changed.notify_all()
        asked.answer(b"done")

    def wait(self, true):
        with self.changed:
            assert self.changed.wait_for(lambda: true(self), TIMEOUT)

    def finish(self):
        with self.changed:
            self.done = True
            self.changed.notify_all()


@pytest.fixture(params=PROTOCOLS)
def start(request, behind, one):
    """start(handle, pool): an application behind a server with one thread, below /app."""
    begin = behind if request.param == "http" else one
    return lambda handle, pool: begin(handle, pool=pool)


def abandon(server):
    """A client that goes when the server has its request, with a reset."""
    client = Client(server.port)
    client.send(request("/app"))
    server.wait_status(lambda now: now["connections"]["working"] == 2)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    server.wait_status(lambda now: now["connections"]["open"] == 1)


def test_clients_that_go(start):
    slow = Slow()
    app = start(slow, f"in-flight={LIMIT}\n")
    for _ in range(10 * LIMIT):
        abandon(app.server)
    slow.wait(lambda now: now.begun >= LIMIT)
    app.server.status()
    assert slow.most == LIMIT
    # One that waits gets its turn as soon as the application is done with one of them.
    with Client(app.server.port) as client:
        client.send(request("/app"))
        app.server.status()
        assert slow.most == LIMIT
        slow.finish()
        assert client.head().startswith(b"HTTP/1.1 200 ")
    # All permits have come back.
    for _ in range(2 * LIMIT):
        assert b"done" in exchange(app.server.port, request("/app", fields="Connection: close\r\n"))
    slow.wait(lambda now: not now.open)
    assert slow.most == LIMIT


def test_application_that_is_never_done(start):
    """It holds its permits no longer than a call whose client waits."""
    slow = Slow()
    app = start(slow, f"in-flight={LIMIT}\ntimeout=1s\n")
    for _ in range(LIMIT):
        abandon(app.server)
    slow.wait(lambda now: now.begun == LIMIT)
    with Client(app.server.port) as client:
        client.send(request("/app"))
        slow.wait(lambda now: now.begun == LIMIT + 1)
        slow.finish()
        assert client.head().startswith(b"HTTP/1.1 200 ")


def test_server_that_ends(start):
    """It does not wait for what nobody waits for."""
    slow = Slow()
    app = start(slow, f"in-flight={LIMIT}\n")
    for _ in range(LIMIT):
        abandon(app.server)
    slow.wait(lambda now: now.begun == LIMIT)
    app.server.stop()
    slow.finish()
