# SPDX-License-Identifier: MIT
"""Helper threads do not work for clients that have left, and clients take turns with them.

Each name links to the same large folder: its listing takes a helper long, and no two are equal.
"""

import contextlib
import os
import socket
import struct

import pytest

import dav
from client import Client
from files import MB, pattern, write
from server import UNDER, sanitized

# A sanitizer takes ten times as long for each.
ENTRIES, NAMES = 3000, 60 if UNDER or sanitized() else 300
LARGE = 2 * MB


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    top = tmp_path_factory.mktemp("left")
    dav.make(top)
    for i in range(ENTRIES):
        write(top / f"root/dav/large/{i}", b"")
    for i in range(NAMES):
        (top / f"root/dav/name{i}").symlink_to("large")
    write(top / "root/small/file", b"")
    write(top / "root/bytes", pattern(LARGE))
    return top


@pytest.fixture
def server(start, folders):
    return start(folders / "root", "--config", folders / "sweet.conf", "--listing", "on",
                 "--threads", "1")


def jobs(server):
    return server.status()["jobs"]


def get(path):
    return f"GET {path} HTTP/1.1\r\nHost: test\r\n{dav.login('anna')}\r\n".encode()


def propfind(path):
    return (f"PROPFIND {path} HTTP/1.1\r\nHost: test\r\nDepth: 1\r\n"
            f"{dav.login('anna')}\r\n").encode()


@contextlib.contextmanager
def asked(server, request, count, reset=False):
    """Requests the listings of that many names, each on a connection of its own, which ends by a
    reset or as usual."""
    server.wait_status(lambda status: status["jobs"]["slow_waiting"] == 0)
    # The check of the password is no job of the pool: from now on it is remembered.
    assert dav.call(server, "GET", "/dav/").status == 200
    before = jobs(server)["slow_run"]
    with contextlib.ExitStack() as clients:
        # The handshakes of TLS take longer than the listings.
        connected = [clients.enter_context(Client(server.port)) for _ in range(count)]
        for i, client in enumerate(connected):
            client.send(request(f"/dav/name{i}/"))
            if reset:
                with socket.socket(fileno=os.dup(client.socket.fileno())) as plain:
                    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                     struct.pack("ii", 1, 0))
        server.wait_status(lambda status: status["jobs"]["slow_waiting"] +
                           status["jobs"]["slow_run"] - before >= count)
        yield


@pytest.mark.parametrize("request_of", [get, propfind], ids=["listing", "propfind"])
def test_left(server, request_of):
    """Who resets the connection has left: what is queued for it is not done."""
    before = jobs(server)
    with asked(server, request_of, NAMES, reset=True):
        pass
    assert dav.call(server, "GET", "/bytes").body == pattern(LARGE)
    after = server.wait_status(lambda status: status["jobs"]["slow_waiting"] == 0)["jobs"]
    run = after["slow_run"] - before["slow_run"] - 1
    assert run + after["cancelled"] - before["cancelled"] == NAMES
    assert run < NAMES


@pytest.mark.parametrize("request_of", [get, propfind], ids=["listing", "propfind"])
def test_may_have_left(server, request_of):
    """Who only ends its requests may still read; but others do not wait for that."""
    with Client(server.port) as waits:
        with asked(server, request_of, NAMES):
            waits.send(request_of("/dav/name0/"))
            waits.half_close()
        assert dav.call(server, "GET", "/bytes").body == pattern(LARGE)
        assert dav.call(server, "GET", "/small/").status == 200
        after = jobs(server)
        assert after["slow_waiting"] + after["cancelled"] > 0
        assert waits.response("PROPFIND").status in (200, 207)


@pytest.mark.parametrize("request_of", [get, propfind], ids=["listing", "propfind"])
def test_share(server, request_of):
    """A file needs a helper too, and gets one before the folders are listed."""
    with asked(server, request_of, NAMES):
        assert dav.call(server, "GET", "/bytes").body == pattern(LARGE)
        assert jobs(server)["slow_waiting"] > 0


def test_turns(server):
    """Another client's listing does not wait for all of the first one's."""
    with Client(server.port, source="127.0.0.2") as other, asked(server, get, NAMES):
        other.send(get("/small/"))
        answer = other.response()
        assert (answer.status, b"file" in answer.body) == (200, True)
        assert jobs(server)["slow_waiting"] > 0


def test_equal(server):
    """Requests for the same listing that wait are answered by one."""
    with contextlib.ExitStack() as stack:
        equal = [stack.enter_context(Client(server.port)) for _ in range(60)]
        stack.enter_context(asked(server, get, NAMES))
        before = jobs(server)
        for client in equal[:50]:
            client.send(get("/small/"))
        for client in equal[50:]:
            client.send(get("/small/?sort=size"))
        # Those who leave do not take it away from the others.
        equal[0].close()
        for client in equal[1:]:
            assert b"file" in client.response().body
        after = jobs(server)
        added = (after["slow_run"] + after["slow_waiting"] - before["slow_run"] -
                 before["slow_waiting"])
        assert added < 60
