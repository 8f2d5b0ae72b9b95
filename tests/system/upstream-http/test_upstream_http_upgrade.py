# SPDX-License-Identifier: MIT
"""WebSocket, and other protocols that a client and an HTTP server behind this one switch to."""

import socket
import struct
import threading

import pytest

from client import Closed, request
from files import KB, MB, pattern
from server import TIMEOUT, refuses
from test_fastcgi import Client

pytestmark = pytest.mark.http1("HTTP/2 has no field Upgrade")

ASK = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n"
SWITCHED = (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: upgrade\r\n"
            b"Sec-WebSocket-Accept: y\r\nContent-Type: a/b\r\n\r\n")
POOL = "upgrade=websocket\nkeep-connection=1h\n"


def echo(asked):
    """Echoes all bytes until their end, and then says so."""
    if "upgrade" not in asked.fields:
        asked.answer(b"plain")
        return True
    assert asked.fields["upgrade"] == "websocket" and asked.fields["connection"] == "Upgrade"
    asked.send(SWITCHED)
    while True:
        if asked.data:
            asked.send(asked.data)
        asked.data = asked.connection.socket.recv(1 << 20)
        if not asked.data:
            asked.send(b"end")
            return False


def upgrade(client, fields=ASK, more=b""):
    client.send(request("/app", fields=fields) + more)
    return client.head()


def test_echo(behind):
    app = behind(echo, pool=POOL)
    with Client(app.server.port) as client:
        head = upgrade(client).decode()
        assert head.startswith("HTTP/1.1 101 Switching Protocols\r\n")
        fields = head.lower().split("\r\n")[1:]
        assert "upgrade: websocket" in fields and "connection: upgrade" in fields
        assert "sec-websocket-accept: y" in fields
        assert not [field for field in fields
                    if field.startswith(("content-length", "transfer-encoding"))]
        for size in (1, 100, 100 * KB, 1):
            client.send(pattern(size))
            assert client.take(size) == pattern(size)
        client.half_close()
        assert client.take(3) == b"end" and client.at_end()
    with Client(app.server.port) as client:
        assert client.get("/app").body == b"plain"


def test_large(behind):
    """Both directions at the same time."""
    app = behind(echo, pool=POOL)
    data = pattern(8 * MB)
    with Client(app.server.port) as client:
        upgrade(client)

        def send():
            client.send(data)

        thread = threading.Thread(target=send)
        thread.start()
        assert client.take(len(data)) == data
        thread.join(TIMEOUT)


def test_bytes_with_the_heads(behind):
    def eager(asked):
        asked.send(SWITCHED + b"first")
        asked.send(asked.take(5))
        return False

    app = behind(eager, pool=POOL)
    with Client(app.server.port) as client:
        upgrade(client, more=b"early")
        assert client.take(10) == b"firstearly"


def test_declined(behind):
    """An ordinary response: the connection of the client continues with HTTP."""

    def declined(asked):
        asked.answer(b"no", status=b"426 Upgrade Required")

    app = behind(declined, pool=POOL)
    with Client(app.server.port) as client:
        for _ in range(3):
            got = client.get("/app", fields=ASK)
            assert (got.status, got.body) == (426, b"no")


@pytest.mark.parametrize("fields", [
    "Connection: Upgrade\r\nUpgrade: h2c\r\n",
    "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n",
    "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n",
    "Connection: Upgrade\r\n",
    "Upgrade: websocket\r\n",
    "Connection: close\r\nUpgrade: websocket\r\n",
])
def test_not_asked(behind, fields):
    """Nothing else than a protocol of the list is asked for."""
    app = behind(echo, pool=POOL)
    with Client(app.server.port) as client:
        assert client.get("/app", fields=fields).body == b"plain"


def test_only_get(behind):
    app = behind(echo, pool=POOL)
    with Client(app.server.port) as client:
        for method in ("POST", "DELETE", "OPTIONS"):
            fields = ASK + ("Content-Length: 0\r\n" if method == "POST" else "")
            assert client.get("/app", method, fields).body == b"plain"
        client.send(request("/app", fields=ASK + "Content-Length: 2\r\n") + b"ab")
        assert client.response().body == b"plain"


@pytest.mark.parametrize(("lines", "said"), [
    (b"Connection: Upgrade\r\nUpgrade: h2c\r\n", "another protocol"),
    (b"Connection: Upgrade\r\n", "another protocol"),
    (b"Upgrade: websocket\r\n", "another protocol"),
    (b"Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n", "another protocol"),
    (b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n", "Content-Length"),
    (b"Connection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n",
     "Transfer-Encoding"),
])
def test_wrong_switch(behind, lines, said):
    def wrong(asked):
        if "upgrade" not in asked.fields:
            asked.answer(b"plain")
            return True
        asked.send(b"HTTP/1.1 101 Switching Protocols\r\n" + lines + b"\r\nabc")
        return asked.closed() and False

    app = behind(wrong, pool=POOL)
    with Client(app.server.port) as client:
        assert client.get("/app", fields=ASK).status == 502
        assert client.get("/app").body == b"plain"
    assert app.server.errors.wait(said)


def test_ends_while_it_is_asked(behind):
    app = behind(lambda asked: False, pool=POOL)
    with Client(app.server.port) as client:
        assert client.get("/app", fields=ASK).status == 502


@pytest.mark.parametrize(("sent", "said"), [
    (SWITCHED[:40], "in the middle of its response head"),
    (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nhalf", "announced length"),
    (b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf", "chunked body"),
])
def test_refused_half_way(behind, sent, said):
    """Not a whole response, and the connection is not used again."""

    def half(asked):
        if "upgrade" not in asked.fields:
            asked.answer(b"plain")
            return True
        asked.send(sent)
        return False

    app = behind(half, pool=POOL)
    with Client(app.server.port) as client:
        client.send(request("/app", fields=ASK))
        try:
            got = client.response()
            assert got.status == 502 and got.body != b"half"
        except (Closed, AssertionError) as cut:
            assert isinstance(cut, Closed) or "closed after" in str(cut)
    assert app.server.errors.wait(said)
    with Client(app.server.port) as client:
        assert client.get("/app").body == b"plain"
    assert app.connections == 2


def test_slow_server(behind):
    """A server that does not read stops the client: little is held in memory."""
    done = threading.Event()

    def slow(asked):
        asked.send(SWITCHED)
        done.wait(2 * TIMEOUT)
        return False

    app = behind(slow, pool=POOL)
    sent = 0
    with Client(app.server.port) as client:
        upgrade(client)
        client.socket.settimeout(2)
        with pytest.raises(TimeoutError):
            while sent < 256 * MB:
                client.socket.sendall(bytes(MB))
                sent += MB
    done.set()
    assert sent < 64 * MB


def test_slow_client(behind):
    sent = []

    def endless(asked):
        asked.send(SWITCHED)
        asked.connection.socket.settimeout(2)
        try:
            while True:
                sent.append(asked.connection.socket.send(bytes(MB)))
        except (TimeoutError, ConnectionError):
            return False

    app = behind(endless, pool=POOL + "response-buffering=off\nstream-ahead=2M\n")
    with Client(app.server.port, buffer=64 * KB) as client:
        upgrade(client)
        assert app.ended.acquire(timeout=TIMEOUT)
    assert sum(sent) < 64 * MB


def test_silence(behind):
    heard = threading.Event()

    def silent(asked):
        asked.send(SWITCHED)
        if asked.closed():
            heard.set()
        return False

    app = behind(silent, pool=POOL + "upgrade-timeout=1s\n")
    with Client(app.server.port) as client:
        upgrade(client)
        assert client.at_end()
    assert heard.wait(TIMEOUT)


def test_silence_within_its_limit(behind):
    """The timeouts of clients with HTTP do not apply."""
    asked_for = threading.Event()

    def late(asked):
        asked.send(SWITCHED)
        assert asked.take(4) == b"late"
        asked.send(b"last")
        return False

    app = behind(late, pool=POOL, more="send-timeout=1s\nheader-timeout=1s\nbody-timeout=1s\n"
                 "keep-alive-timeout=1s\n")
    with Client(app.server.port) as client:
        upgrade(client)
        # Longer than all of them; a slow machine makes it only longer.
        asked_for.wait(3)
        client.send(b"late")
        assert client.take(4) == b"last"


def test_end_before_a_slow_client(behind):
    """The limit of silence ends with the server behind: the client still gets everything."""
    data = pattern(12 * MB)

    def large(asked):
        asked.send(SWITCHED + data)
        return False

    app = behind(large, pool=POOL + "upgrade-timeout=1s\n")
    with Client(app.server.port, buffer=64 * KB) as client:
        upgrade(client)
        assert app.ended.acquire(timeout=TIMEOUT)
        threading.Event().wait(2)
        assert client.take(len(data)) == data and client.at_end()


@pytest.mark.parametrize("who", ["client", "server"])
def test_reset(behind, who):
    heard, at_work = threading.Event(), threading.Event()
    reset = struct.pack("ii", 1, 0)

    def working(asked):
        if "upgrade" not in asked.fields:
            asked.answer(b"plain")
            return True
        asked.send(SWITCHED)
        at_work.set()
        if who == "server":
            asked.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            return False
        if asked.closed():
            heard.set()
        return False

    app = behind(working, pool=POOL)
    with Client(app.server.port) as client:
        upgrade(client)
        assert at_work.wait(TIMEOUT)
        if who == "client":
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        else:
            try:
                assert client.receive(1) == b""
            except ConnectionError:
                pass
    assert who == "server" or heard.wait(TIMEOUT)
    with Client(app.server.port) as client:
        assert client.get("/app").body == b"plain"


def test_not_cached(behind):
    """Two clients are not joined, and what is cached for others is not sent."""

    def both(asked):
        if "upgrade" in asked.fields:
            return echo(asked)
        asked.answer(b"page", b"Cache-Control: max-age=60\r\n")
        return True

    app = behind(both, pool=POOL, path="cache=response\n")
    with Client(app.server.port) as one, Client(app.server.port) as other:
        assert one.get("/app").body == b"page"
        assert b" 101 " in upgrade(one) and b" 101 " in upgrade(other)
        for client, data in ((one, b"one"), (other, b"two")):
            client.send(data)
            assert client.take(3) == data


@pytest.mark.parametrize(("lines", "said"), [
    ("protocol=http\nupgrade=h2c", "must not be HTTP/2"),
    ("protocol=http\nupgrade=web socket", "must be the name of a protocol"),
    ("protocol=fastcgi\nupgrade=websocket", "has upgrade, which is for HTTP servers"),
])
def test_wrong_keys(tmp_path, lines, said):
    refuses(tmp_path, f"[sweet]\nroot={tmp_path}\n[pool app]\n{lines}\n"
                 "upstream=unix:/a\n[path /app]\npool=app\n", said)
