# SPDX-License-Identifier: MIT
"""Connections to HTTP servers behind this one: kept, closed, refused, repeated."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import behind_checks
from files import MB, pattern
from server import SCALE, TIMEOUT
from test_fastcgi import Client, ask, fetch
from upstream import Upstream

KEEP = "keep-connection=1h\n"
EACH = 60  # requests of a client


def plain(asked):
    asked.body()
    asked.answer(b"plain")


@pytest.mark.parametrize(("keep", "connections"), [("1h", 1), ("0", 50)])
def test_kept_as_configured(behind, keep, connections):
    app = behind(plain, pool=f"keep-connection={keep}\n")
    with Client(app.server.port) as client:
        for at in range(50):
            method = ("GET", "HEAD", "DELETE")[at % 3]
            got = client.get("/app", method)
            assert got.status == 200 and got.body == (b"" if method == "HEAD" else b"plain")
    assert (app.requests, app.connections) == (50, connections)


@pytest.mark.parametrize("how", [b"Connection: close\r\n", b"Connection: x, CLOSE\r\n"])
def test_announced_close(behind, how):
    """The connection is not used again, even if it stays open."""
    app = behind(lambda asked: asked.answer(b"last", how), pool=KEEP)
    with Client(app.server.port) as client:
        for _ in range(5):
            assert client.get("/app").body == b"last"
    assert app.connections == 5


def test_not_kept(behind):
    app = behind(lambda asked: asked.answer(b"closing") or False, pool=KEEP)
    with Client(app.server.port) as client:
        for _ in range(20):
            assert client.get("/app").body == b"closing"
    assert app.requests == 20


@pytest.mark.parametrize(("method", "body", "times"), [
    ("GET", None, 2), ("HEAD", None, 2), ("OPTIONS", None, 2), ("OPTIONS", b"x" * 1000, 2),
    ("POST", b"x", 1), ("PUT", b"x", 1), ("DELETE", None, 1), ("PATCH", b"x", 1)])
def test_closed_when_used_again(behind, method, body, times):
    """A kept connection that closes at the next request: only a safe request is repeated."""
    seen, requests = set(), []

    def once(asked):
        asked.body()
        requests.append(asked.method)
        if asked.connection.socket in seen:
            return False
        seen.add(asked.connection.socket)
        asked.answer(b"once")
        return True

    app = behind(once, pool=KEEP)
    assert fetch(app.server.port, "/app").body == b"once"
    got = ask(app.server.port, "/app", method, body)
    assert got.status == (200 if times == 2 else 502)
    assert len(requests) == 1 + times
    if times == 1:
        assert app.server.errors.wait("the connection ended before the answer did")
    assert fetch(app.server.port, "/app").body == b"once"


def test_new_connection_that_closes(behind, tmp_path):
    """Not a kept connection: the request may be the reason, and is not repeated elsewhere."""

    def none(asked):
        return False

    other = Upstream(none, tmp_path / "other.sock")
    app = behind(none, pool=KEEP, others=[other.address])
    assert fetch(app.server.port, "/app").status == 502
    assert app.requests + other.requests == 1
    other.close()


def test_kept_connections_that_close(behind):
    """A safe request is sent once more, by a new connection, however many are kept."""
    deaths = []

    def dying(asked):
        asked.body()
        if asked.target == "/app?die":
            deaths.append(asked.method)
            return False
        asked.answer(b"well")
        return True

    app = behind(behind_checks.together(dying, 6), pool=KEEP)
    behind_checks.at_once(app.server.port, 6)
    assert app.connections == 6
    assert fetch(app.server.port, "/app?die").status == 502
    assert deaths == ["GET"] * 2
    assert fetch(app.server.port, "/app").body == b"well"


def test_closed_within_a_response(behind):
    """Not repeated after the first byte of a response."""
    count = []

    def half(asked):
        count.append(asked)
        if len(count) == 1:
            asked.answer(b"first")
            return True
        asked.send(b"H")
        return False

    app = behind(half, pool=KEEP)
    assert fetch(app.server.port, "/app").body == b"first"
    assert fetch(app.server.port, "/app").status == 502
    assert len(count) == 2


def test_closed_while_idle(behind):
    """Each kept connection is checked before a request that must not be sent twice."""

    def last(asked):
        asked.body()
        asked.answer(b"x")
        # Now, not after the release of app.ended.
        asked.connection.socket.shutdown(socket.SHUT_RDWR)
        return False

    app = behind(last, pool=KEEP)
    with Client(app.server.port) as client:
        for _ in range(5):
            assert client.get("/app").body == b"x"
            assert app.ended.acquire(timeout=TIMEOUT)
            assert ask(app.server.port, "/app", "POST", b"x").data == b"x"
            assert app.ended.acquire(timeout=TIMEOUT)


def test_one_of_two_is_away(behind, tmp_path):
    behind_checks.one_of_two_is_away(behind, tmp_path, plain)


def test_all_are_away(behind, tmp_path):
    behind_checks.all_are_away(behind, tmp_path, plain, Upstream)


def test_balanced(behind, tmp_path):
    """Two requests at a time, to one server each."""
    both = threading.Barrier(2)

    def meet(asked):
        asked.body()
        both.wait(TIMEOUT)
        asked.answer(b"met")

    other = Upstream(meet, tmp_path / "other.sock")
    app = behind(meet, others=[other.address], pool="in-flight=1\n")
    results = []
    threads = [threading.Thread(target=lambda: results.append(fetch(app.server.port, "/app").body))
               for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert results == [b"met"] * 2 and (app.requests, other.requests) == (1, 1)
    other.close()


def test_refused_by_tcp(behind, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        app = behind(plain, others=[f"127.0.0.1:{taken.getsockname()[1]}"])
        for _ in range(4):
            assert ask(app.server.port, "/app", "POST", pattern(MB // 2)).data == b"plain"


def test_many_at_once(behind):
    body = pattern(30000)

    def each(asked):
        data = asked.body()
        number = int(asked.target.split("?")[1])
        if number % 3 == 0:
            asked.chunks(body[:number * 100 + 1], data, asked.target.encode())
        else:
            asked.answer(body + data + asked.target.encode())

    app = behind(each, pool=f"in-flight=4\n{KEEP}")
    faults = []

    def load(first):
        with Client(app.server.port) as client:
            for number in range(first, first + 40 // SCALE):
                target = f"/app?{number}"
                got = client.get(target).body
                before = body[:number * 100 + 1] if number % 3 == 0 else body
                if got != before + target.encode():
                    faults.append((number, len(got)))

    threads = [threading.Thread(target=load, args=(40 * number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * TIMEOUT)
    assert not faults and app.connections < app.requests


@pytest.mark.parametrize("tcp", [False, True])
def test_kept_though_responses_take_long(behind, tcp):
    """A server that serves all connections keeps them: that others have no response yet does not
    mean that it has not accepted them."""
    def work(asked):
        asked.body()
        time.sleep((0.005, 0.01, 0.02, 0.03)[int(asked.target[-1]) % 4])
        asked.answer(b"worked")

    def ask_on(client, first):
        for number in range(EACH):
            assert client.get(f"/app/{(first + number) % 10}").body == b"worked"

    app = behind(work, pool=KEEP, tcp=tcp)
    clients = [Client(app.server.port) for _ in range(12)]
    with ThreadPoolExecutor(len(clients)) as pool:
        for done in [pool.submit(ask_on, client, at) for at, client in enumerate(clients)]:
            done.result(TIMEOUT)
    for client in clients:
        client.close()
    assert app.requests == len(clients) * EACH
    assert app.connections < app.requests / 5
