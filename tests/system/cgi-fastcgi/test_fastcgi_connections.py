# SPDX-License-Identifier: MIT
"""Connections to FastCGI applications: kept, refused, overloaded."""

import socket
import threading
import time

import pytest

import behind_checks
import responder
from client import request
from responder import Application, end
from files import MB, pattern, write
from server import TIMEOUT, running
from test_fastcgi import Client, ask, fetch


def plain(asked):
    asked.body()
    asked.answer(b"plain")


def is_good(asked):
    """Responds to a simple request that checks the application."""
    asked.body()
    if asked.variables["QUERY_STRING"] != "good":
        return False
    asked.answer(b"plain")
    return True


def test_kept(one):
    app = one(plain)
    with Client(app.server.port) as client:
        for _ in range(50):
            assert client.get("/app").body == b"plain"
    # Kept not forever, but for many requests.
    assert app.requests == 50 and app.connections < 25


@pytest.mark.parametrize(("keep", "connections"), [("1h", 1), ("0", 50)])
def test_kept_as_configured(one, keep, connections):
    app = one(plain, pool=f"keep-connection={keep}\n")
    with Client(app.server.port) as client:
        for _ in range(50):
            assert client.get("/app").body == b"plain"
    assert (app.requests, app.connections) == (50, connections)


def test_not_kept(one):
    """An application that closes each connection after a response."""

    def closing(asked):
        asked.body()
        asked.answer(b"closing")
        return False

    app = one(closing)
    with Client(app.server.port) as client:
        for _ in range(50):
            assert client.get("/app").body == b"closing"
    assert app.requests == 50


def test_last_request_of_a_connection(one):
    """Programs of libfcgi take what they left of a request for the next one, some time later, and
    close the connection: such a connection must not have another request."""
    long = 4500  # there is also REQUEST_URI
    flags = []

    def leaving(asked):
        flags.append(asked.flags)
        asked.body()
        asked.answer(b"left")
        variables = asked.variables
        if not variables.get("CONTENT_LENGTH") and len(variables["QUERY_STRING"]) < long:
            return True
        # Until the server closes it, or has sent another request.
        asked.connection.socket.recv(1, socket.MSG_PEEK)
        return False

    app = one(leaving)
    for method, query, body in (("POST", "", b"body"), ("POST", "", b"body"), ("GET", "", None),
                                ("POST", "", b"body"), ("GET", "q" * long, None)):
        answer = ask(app.server.port, f"/app?{query}", method, body)
        assert (answer.status, answer.data) == (200, b"left")
    assert flags == [0, 0, 1, 0, 0]


def test_closed_when_used_again(one):
    """A kept connection that closes at the next request, which the application does not read:
    idempotent requests are repeated."""
    methods = []

    def once(asked):
        asked.body()
        methods.append(asked.variables["REQUEST_METHOD"])
        asked.answer(b"once")
        # Until the next request has come, or the server has closed it.
        asked.connection.socket.recv(1, socket.MSG_PEEK)
        return False

    app = one(once, pool="keep-connection=1h\n")
    with Client(app.server.port) as client:
        for _ in range(5):
            assert client.get("/app").body == b"once"
    assert methods == ["GET"] * 5
    # Other requests are sent once, by a connection of their own.
    assert ask(app.server.port, "/app", "POST", b"x").status == 200
    assert methods.count("POST") == 1
    assert fetch(app.server.port, "/app").body == b"once"


def test_closed_a_moment_later(one):
    """An application that closes each connection after its response, whatever the server asked for:
    it may do so while the next request is pending, and some requests must not be repeated."""
    methods = []

    def once(asked):
        asked.body()
        methods.append(asked.variables["REQUEST_METHOD"])
        asked.answer(b"once")
        # Until the next request has come, or the server has closed it.
        asked.connection.socket.recv(1, socket.MSG_PEEK)
        return False

    app = one(once)
    requests = [("GET", None), ("POST", b"x"), ("GET", None), ("GET", None), ("POST", None),
                ("POST", None), ("GET", None), ("POST", b"x")]
    for method, body in requests:
        answer = ask(app.server.port, "/app", method, body)
        assert (answer.status, answer.data) == (200, b"once")
    assert methods == [method for method, _ in requests]


def test_kept_for_every_method(one):
    """After an application has had two requests by one connection, all requests are sent by it."""
    app = one(plain, pool="keep-connection=1h\n")
    for method in ("GET", "POST", "GET", "POST", "POST"):
        assert ask(app.server.port, "/app", method, None).data == b"plain"
    assert app.connections == 2


def test_others_are_kept(one):
    """A request that opens its own connection closes one, not all that are kept."""
    barrier = threading.Barrier(3)

    def together(asked):
        if asked.variables["QUERY_STRING"] == "together":
            barrier.wait(TIMEOUT)
        plain(asked)

    def three():
        clients = [threading.Thread(target=fetch, args=(app.server.port, "/app?together"))
                   for _ in range(3)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    app = one(together, pool="keep-connection=1h\n")
    three()
    assert ask(app.server.port, "/app", "POST", None).data == b"plain"
    three()
    # Four, or five: if the application is slow to accept the fourth, one more is closed for it.
    assert app.connections < 6


def test_one_of_two_is_away(one, tmp_path):
    behind_checks.one_of_two_is_away(one, tmp_path, plain)


def test_all_are_away(one, tmp_path):
    behind_checks.all_are_away(one, tmp_path, plain, Application)


def test_refused_by_tcp(kind, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with running(kind, tmp_path, "--fastcgi", f"/app={address}") as server:
            assert fetch(server.port, "/app").status in (502, 503)
            assert ask(server.port, "/app", "POST", pattern(MB // 2)).status in (502, 503)
            assert server.errors.wait("cannot be reached: Connection refused")


@pytest.mark.parametrize("how", ["closes", "overloaded"])
def test_next_address(one, tmp_path, how):
    """If an application closes without a response, or accepts no connection, the next address
    is used if a repetition is harmless."""
    asked_there = []

    def bad(asked):
        asked.body()
        asked_there.append(asked.variables["REQUEST_METHOD"])
        if how == "overloaded":
            asked.send(end(0, responder.OVERLOADED))
        return False

    other = Application(bad, tmp_path / "other.sock")
    app = one(plain, others=[other.address])
    for _ in range(6):
        assert fetch(app.server.port, "/app").body == b"plain"
    assert "GET" in asked_there
    got = [ask(app.server.port, "/app", "POST", b"x").status for _ in range(6)]
    assert set(got) == ({200} if how == "overloaded" else {200, 502})
    other.close()


def test_overloaded_alone(one):
    def busy(asked):
        asked.body()
        asked.send(end(0, responder.OVERLOADED))

    app = one(busy)
    assert fetch(app.server.port, "/app").status in (502, 503)
    assert app.requests == 1


def test_too_many(kind, tmp_path):
    """in-flight limits the requests of an application, the queue limits the waiting ones."""
    go_on = threading.Event()

    def wait(asked):
        asked.body()
        assert go_on.wait(TIMEOUT)
        asked.answer(b"waited")

    app = Application(wait, tmp_path / "app.sock")
    conf = write(tmp_path / "conf", f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\nthreads=1\n"
                 f"[pool app]\nprotocol=fastcgi\nupstream={app.address}\nin-flight=2\nqueue=1\n"
                 "[path /app]\npool=app\n".encode())
    with running(kind, None, "--config", conf, listen=None) as server:
        clients = [Client(server.port) for _ in range(4)]
        for number, client in enumerate(clients):
            client.send(request("/app"))
            # The third waits in the queue, the fourth does not fit.
            if number < 2:
                while app.requests <= number:
                    time.sleep(0.01)
        got = clients[3].response()
        assert got.status == 503 and got["Retry-After"] == "1"
        assert app.requests == 2
        go_on.set()
        assert [client.response().body for client in clients[:3]] == [b"waited"] * 3
        for client in clients:
            client.close()
    app.close()
    assert not app.faults
