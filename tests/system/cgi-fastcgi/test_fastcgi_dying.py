# SPDX-License-Identifier: MIT
"""FastCGI applications that die of a request: it is sent to one process of each address, and to none
after a byte of a response."""

import socket

import pytest

import behind_checks
import responder
from responder import Application, record
from test_fastcgi import Client, ask, fetch

KEPT = "keep-connection=1h\n"


@pytest.fixture(params=["unix", "tcp"])
def address(request, tmp_path):
    """address(handle, name): another application."""
    made = []

    def begin(handle, name):
        made.append(Application(handle, tmp_path / name if request.param == "unix" else None))
        return made[-1]

    begin.tcp = request.param == "tcp"
    yield begin
    for app in made:
        app.close()
        assert not app.faults


def dying(deaths):
    """A process answers at first, and dies of a request that says so."""

    def handle(asked):
        asked.body()
        if asked.variables["QUERY_STRING"] == "die":
            deaths.append(asked.variables["REQUEST_METHOD"])
            return False
        asked.answer(b"well")
        return True

    return handle


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_kept_connections(one, address, tmp_path, method):
    """However many are kept for each address: each address is asked once."""
    deaths = []
    kept = behind_checks.together(dying(deaths), 12)
    others = [address(kept, "other.sock")]
    app = one(kept, pool=KEPT, others=[app.address for app in others], path="app.sock",
              tcp=address.tcp)
    behind_checks.at_once(app.server.port, 12)
    assert [app.connections, others[0].connections] == [6, 6]
    body = b"" if method == "PUT" else None
    assert ask(app.server.port, "/app?die", method, body).status == 502
    assert deaths == [method] * 2
    assert app.server.errors.wait("the connection ended before the answer did")
    assert fetch(app.server.port, "/app").body == b"well"


@pytest.mark.parametrize("said", [record(responder.STDERR, b"a bug\n"), b"\1\6\0",
                                  record(responder.STDOUT)], ids=["error", "half", "empty"])
@pytest.mark.parametrize("again", [False, True])
def test_after_a_byte(one, tmp_path, said, again):
    """again: by a connection that had a response."""
    deaths = []

    def handle(asked):
        asked.body()
        if asked.variables["QUERY_STRING"] != "die":
            asked.answer(b"well")
            return True
        deaths.append(1)
        asked.send(said)
        return False

    other = Application(handle, tmp_path / "other.sock")
    app = one(handle, pool=KEPT, others=[other.address])
    with Client(app.server.port) as client:
        for _ in range(4 if again else 0):
            assert client.get("/app").body == b"well"
        assert client.get("/app?die").status == 502
        assert len(deaths) == 1
        assert client.get("/app").body == b"well"
    other.close()


def test_kept_connections_that_were_closed_before(one):
    """Their processes have not read the request: it is sent once more, by a new connection, and
    not by the other kept ones."""
    seen = []

    def closing(asked):
        asked.body()
        asked.answer(asked.variables["QUERY_STRING"].encode())
        # Until the next request has come, or the server has closed it.
        seen.append(asked.connection.socket.recv(1, socket.MSG_PEEK))
        return False

    app = one(behind_checks.together(closing, 6), pool=KEPT)
    behind_checks.at_once(app.server.port, 6)
    assert app.connections == 6
    assert fetch(app.server.port, "/app?again").body == b"again"
    assert app.connections == 7
    # One got the request and left it; one made room.
    assert seen.count(b"\1") == 1
