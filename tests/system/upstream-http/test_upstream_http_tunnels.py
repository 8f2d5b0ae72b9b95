# SPDX-License-Identifier: MIT
"""How many connections may be passed to an HTTP server in another protocol: silent ones keep no other
request waiting, and no client has all of them."""

import contextlib

import pytest

from client import request
from files import KB, MB, pattern
from server import TIMEOUT
from test_fastcgi import Client
from test_reload import reload
from test_upstream_http_upgrade import ASK, POOL, SWITCHED, echo, upgrade

pytestmark = pytest.mark.http1("HTTP/2 has no field Upgrade")


@contextlib.contextmanager
def clients(port, count, source="127.0.0.1"):
    """That many clients of one address, each with a connection in another protocol."""
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(Client(port, source=source)) for _ in range(count)]
        for client in made:
            assert b" 101 " in upgrade(client)
        yield made


def pool(server):
    return server.status()["workers"]["pools"][0]


def await_tunnels(server, count):
    server.wait_status(lambda status: status["workers"]["pools"][0]["tunnels"] == count)


def refused(port, source="127.0.0.1"):
    with Client(port, source=source) as client:
        got = client.get("/app", fields=ASK)
        assert (got.status, got["Retry-After"]) == (503, "1")
        # The connection is one with HTTP still.
        assert client.get("/app").body == b"plain"


def test_silent(behind):
    """As many as there may be connections for requests, and requests are answered all the same."""
    app = behind(echo, pool=POOL + "in-flight=2\nqueue-timeout=1s\n")
    with clients(app.server.port, 5) as silent:
        with Client(app.server.port) as other:
            for _ in range(3):
                assert other.get("/app").body == b"plain"
        assert pool(app.server)["tunnels"] == 5
        for number, client in enumerate(silent):
            client.send(b"%d" % number)
            assert client.take(1) == b"%d" % number
    await_tunnels(app.server, 0)


def test_one_that_waits(behind):
    """A request that waits for a connection gets the place of one that switches."""
    app = behind(echo, pool=POOL + "in-flight=1\nqueue-timeout=1s\n")
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(Client(app.server.port)) for _ in range(8)]
        for client in made:
            client.send(request("/app", fields=ASK))
        for client in made:
            assert b" 101 " in client.head()


@pytest.mark.parametrize("how", ["end", "silence"])
def test_limit_of_a_client(behind, how):
    timeout = "upgrade-timeout=1s\n" if how == "silence" else ""
    app = behind(echo, pool=POOL + "tunnels-per-client=3\n" + timeout,
                 more="log-level=info\n")
    port = app.server.port
    with clients(port, 3) as silent:
        if how == "end":
            refused(port)
            assert pool(app.server)["tunnels_refused"] == 1
            with clients(port, 3, "127.0.0.2"):
                refused(port, "127.0.0.2")
                assert pool(app.server)["tunnels"] == 6
        else:
            for client in silent:
                assert client.at_end()
    await_tunnels(app.server, 0)
    with clients(port, 3):
        pass
    assert how != "end" or app.server.errors.wait("more than tunnels-per-client")


def test_limit_of_the_pool(behind):
    app = behind(echo, pool=POOL + "max-tunnels=4\ntunnels-per-client=0\n",
                 more="log-level=info\n")
    port = app.server.port
    with clients(port, 2), clients(port, 2, "127.0.0.2"):
        refused(port)
        refused(port, "127.0.0.3")
        assert pool(app.server)["tunnels"] == 4
        assert pool(app.server)["tunnels_refused"] == 2
    assert app.server.errors.wait("more than max-tunnels")
    await_tunnels(app.server, 0)
    with clients(port, 4):
        pass


def test_declined(behind):
    """A request that gets an ordinary response counts no longer, even before its end."""

    def declined(asked):
        if "upgrade" not in asked.fields:
            asked.answer(b"plain")
            return True
        asked.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
        return asked.closed() and False

    app = behind(declined, pool=POOL + "max-tunnels=1\n")
    with Client(app.server.port) as one, Client(app.server.port) as other:
        for client in (one, other):
            assert b" 200 " in upgrade(client)
        assert pool(app.server)["tunnels"] == 0


def test_failed(behind):
    """Those that fail count no longer."""

    def failing(asked):
        if "upgrade" not in asked.fields:
            asked.answer(b"plain")
            return True
        return False

    app = behind(failing, pool=POOL + "max-tunnels=1\n")
    with Client(app.server.port) as client:
        for _ in range(3):
            assert client.get("/app", fields=ASK).status == 502
    assert pool(app.server)["tunnels"] == 0 and pool(app.server)["tunnels_refused"] == 0


def test_slow_client(behind):
    """What a client has not got yet counts."""
    data = pattern(12 * MB)

    def large(asked):
        if "upgrade" not in asked.fields:
            asked.answer(b"plain")
            return True
        asked.send(SWITCHED + data)
        return False

    app = behind(large, pool=POOL + "max-tunnels=1\n")
    with Client(app.server.port, buffer=64 * KB) as client:
        upgrade(client)
        assert app.ended.acquire(timeout=TIMEOUT)
        refused(app.server.port)
        assert client.take(len(data)) == data and client.at_end()
    await_tunnels(app.server, 0)


def test_reload(behind):
    """A client cannot have more of them by a reload."""
    app = behind(echo, pool=POOL + "tunnels-per-client=2\n")
    with clients(app.server.port, 2):
        reload(app.server, "reloaded")
        refused(app.server.port)
