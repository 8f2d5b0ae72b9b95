# SPDX-License-Identifier: MIT
"""Responses that arrive as bytes, from a FastCGI application: cached when they are
complete, in whatever pieces they arrived; and the fate of incomplete ones."""

import socket
import struct
import threading
import time

import pytest

from client import Client, Closed, fetch, request
from fastcgi import BEGIN, END, PARAMS, STDIN, STDOUT, record
from files import MB, write
from server import TIMEOUT, running

HEAD = b"Content-Type: text/plain\r\nCache-Control: max-age=600\r\n\r\n"


class Application:
    """An application on a thread; answer(number, send) makes one response."""

    def __init__(self, path):
        self.calls = 0
        self.answer = None
        self.goes = threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            while True:
                head = stream.read(8)
                if len(head) < 8:
                    return
                _, kind, number, length, padding = struct.unpack(">BBHHBx", head)
                content = stream.read(length + padding)[:length]
                if kind == BEGIN:
                    keeps = content[2] & 1
                if kind not in (BEGIN, PARAMS, STDIN):
                    return
                if kind != STDIN or content:
                    continue
                self.calls += 1
                try:
                    if self.reply(connection, number) is False or not keeps:
                        return
                except OSError:
                    return

    def reply(self, connection, number):
        def send(data):
            for at in range(0, len(data), 60000):
                connection.sendall(record(STDOUT, data[at:at + 60000], number))

        if self.answer(self.calls, send) is False:
            return False
        connection.sendall(record(STDOUT, b"", number) + record(END, bytes(8), number))
        return True

    def close(self):
        self.goes.set()
        self.listener.close()


@pytest.fixture
def application(tmp_path):
    application = Application(tmp_path / "app.sock")
    yield application
    application.close()


@pytest.fixture
def server(kind, tmp_path, application):
    config = tmp_path / "sweet.conf"
    write(config, f"""[sweet]
fastcgi=/f=unix:{tmp_path}/app.sock
cache=response
""".encode())
    with running(kind, tmp_path, "--config", config) as server:
        yield server


def counters(server):
    return server.status()["answers"]


def wait_for(server, counter, value):
    server.wait_status(lambda status: status["answers"][counter] >= value)


def body(client):
    """A body in the chunked coding or of a known length."""
    head = client.head()
    if b"chunked" not in head:
        length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
        return client.take(length)
    data = b""
    while True:
        while b"\r\n" not in client.data:
            client.more()
        line, _, client.data = client.data.partition(b"\r\n")
        size = int(line, 16)
        piece = client.take(size + 2)
        if not size:
            return data
        data += piece[:-2]


def get(server, target="/f/a"):
    with Client(server.port) as client:
        client.send(request(target))
        return body(client)


@pytest.mark.parametrize("pieces", [[b""], [b"x"], [b"a" * 1000, b"b" * 100000, b"c"],
                                    [b"m" * MB] * 3])
def test_pieces(server, application, pieces):
    def answer(number, send):
        send(HEAD + str(number).encode())
        for piece in pieces:
            time.sleep(0.01)
            if piece:
                send(piece)

    application.answer = answer
    first = get(server)
    assert first == b"1" + b"".join(pieces)
    wait_for(server, "stored", 1)
    got = fetch(server.port, "/f/a")
    assert (got.body, got["Content-Type"]) == (first, "text/plain")
    assert got["Content-Length"] == str(len(first))
    assert application.calls == 1


def test_known_length(server, application):
    """Cached with the last byte, whether or not the application ends the request."""
    def answer(number, send):
        send(b"Content-Length: 5\r\n" + HEAD + b"%05d" % number)
        application.goes.wait(TIMEOUT)

    application.answer = answer
    assert fetch(server.port, "/f/a").body == b"00001"
    assert fetch(server.port, "/f/a").body == b"00001"
    assert application.calls == 1


def test_too_large(server, application):
    def answer(number, send):
        send(HEAD)
        for _ in range(5):
            send(b"%06d" % number + b"x" * MB)

    application.answer = answer
    one, other = get(server), get(server)
    assert len(one) == len(other) > 5 * MB and one != other
    assert counters(server)["stored"] == 0


def test_broken_off(server, application):
    """Waiting clients do not get half of it."""
    def answer(number, send):
        send(HEAD + b"%d" % number)
        if number == 1:
            application.goes.wait(TIMEOUT)
            return False
        return True

    application.answer = answer
    with Client(server.port) as fetcher, Client(server.port) as waiter:
        fetcher.send(request("/f/a"))
        wait_for(server, "misses", 1)
        waiter.send(request("/f/a"))
        wait_for(server, "waited", 1)
        application.goes.set()
        with pytest.raises((AssertionError, Closed, ConnectionResetError)):
            body(fetcher)
        assert body(waiter) == b"2"
    assert counters(server)["stored"] == 0
    assert get(server) == b"3"


def test_the_fetcher_goes(server, application):
    """One of the waiting clients fetches in its place, and the others wait for that."""
    def answer(number, send):
        send(HEAD + b"%d" % number)
        if number == 1:
            # Until the server closes the connection.
            while not application.goes.is_set():
                send(b"x" * 1000)
                time.sleep(0.01)

    application.answer = answer
    waiters = [Client(server.port) for _ in range(5)]
    with Client(server.port) as fetcher:
        fetcher.send(request("/f/a"))
        wait_for(server, "misses", 1)
        for waiter in waiters:
            waiter.send(request("/f/a"))
        wait_for(server, "waited", 5)
    assert {body(waiter) for waiter in waiters} == {b"2"}
    application.goes.set()
    for waiter in waiters:
        waiter.close()
    assert application.calls == 2


def test_refreshed(server, application):
    """No client receives the result of a refresh, and yet all of it is cached."""
    def answer(number, send):
        send(b"Cache-Control: max-age=1, stale-while-revalidate=600\r\n\r\n")
        for _ in range(20):
            send(b"%d" % number * 50000)

    application.answer = answer
    first = get(server)
    assert first == b"1" * 1000000
    deadline = time.monotonic() + TIMEOUT
    while counters(server)["stale"] == 0:
        assert fetch(server.port, "/f/a").body == first
        assert time.monotonic() < deadline
        time.sleep(0.05)
    wait_for(server, "stored", 2)
    assert fetch(server.port, "/f/a").body[:1] > b"1"
    assert application.calls >= 2
