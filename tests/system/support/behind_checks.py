# SPDX-License-Identifier: MIT
"""What holds for every kind of application behind the server: its addresses, and clients that
leave.  begin: the fixture one or behind."""

import itertools
import socket
import struct
import threading
import time

import pytest

from client import request
from server import SOON, TIMEOUT
from test_fastcgi import Client, ask, fetch

PAUSE = 3  # seconds, the least send-timeout is one
AWAY = "nobody.sock: cannot be reached: Connection refused"


def nobody(folder):
    """An address on which no process listens any more."""
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(str(folder / "nobody.sock"))
    return f"unix:{folder / 'nobody.sock'}"


def together(handle, count):
    """The first requests, at all addresses, have that many connections: none has its response
    before all have come."""
    all_there = threading.Barrier(count)
    numbers = itertools.count()

    def both(asked):
        if next(numbers) < count:
            all_there.wait(TIMEOUT)
        return handle(asked)

    return both


def at_once(port, count):
    """That many requests together, each answered."""
    clients = [Client(port) for _ in range(count)]
    for client in clients:
        client.send(request("/app"))
    for client in clients:
        assert client.response().status == 200
        client.close()


def one_of_two_is_away(begin, folder, plain):
    app = begin(plain, others=[nobody(folder)])
    for method in ("GET", "POST"):
        for _ in range(6):
            assert ask(app.server.port, "/app", method, b"" if method == "POST" else None) \
                .data == b"plain"
    # Logged once, not with each request, though it may be tried again.
    assert app.server.errors.wait(AWAY)
    assert app.server.errors.count(AWAY) == 1


def all_are_away(begin, folder, plain, application):
    app = begin(plain)
    app.close()
    (folder / "app.sock").unlink()
    for _ in range(3):
        got = fetch(app.server.port, "/app")
        assert got.status == 503 and got["Retry-After"] == "1"
    assert app.server.errors.wait("app.sock: cannot be reached: No such file")
    assert app.server.errors.count("app.sock: cannot be reached: No such file") == 1
    # It is used at once when it returns.
    again = application(plain, folder / "app.sock")
    assert fetch(app.server.port, "/app").body == b"plain"
    assert app.server.errors.wait("app.sock: answers again")
    again.close()


# The client finds an end that is no end of a response.
CUT_OFF = (AssertionError, ConnectionError)


def silence_in_the_middle(begin, is_good, beginning, left):
    """The response is cut off, and the application gets the end of its connection."""
    heard = threading.Event()

    def stopping(asked):
        if is_good(asked):
            return True
        asked.send(beginning)
        if left(asked):
            heard.set()
        return False

    app = begin(stopping, pool=f"timeout={SOON}s\n")
    with pytest.raises(CUT_OFF, match="closed|reset"):
        fetch(app.server.port, "/app")
    assert heard.wait(TIMEOUT)
    assert app.server.errors.wait("stopped writing in the middle of its response")
    assert fetch(app.server.port, "/app?good").body == b"plain"


def pause(begin, beginning, rest):
    """A program may be silent for longer than a client may."""
    def pausing(asked):
        asked.body()
        asked.send(beginning)
        # Not an event: the server must do nothing in this time.
        time.sleep(PAUSE)
        asked.send(rest)
        return False

    app = begin(pausing, "--send-timeout", "1s")
    assert fetch(app.server.port, "/app").body == b"begunended"


def client_goes(begin, is_good, beginning, left):
    """beginning: what the application has sent then, or None; left(asked): whether it is told."""
    heard, at_work = threading.Event(), threading.Event()

    def working(asked):
        if is_good(asked):
            return True
        if beginning:
            asked.send(beginning)
        at_work.set()
        if left(asked):
            heard.set()
        return False

    app = begin(working)
    with Client(app.server.port) as client:
        client.send(request("/app"))
        assert at_work.wait(TIMEOUT)
        if beginning:
            client.head()
        # A reset: after a mere end of its stream, the client might still wait for the response.
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert heard.wait(TIMEOUT)
    assert fetch(app.server.port, "/app?good").body == b"plain"
