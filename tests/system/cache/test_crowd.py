# SPDX-License-Identifier: MIT
"""Hundreds of clients that wait for one page, one listing or one file of the only thread: all get
it, in several turns of its loop, while some leave, while others come, and when the server ends."""

import json
import os
import signal

import pytest

from client import Client, request
from files import MB, write
from server import SCALE
from stopped import stop
from test_response_cache import TOLD, Gate

CROWD = 300 // SCALE
FILES = 200


@pytest.fixture
def gate(tmp_path):
    gate = Gate(tmp_path / "gate")
    yield gate
    gate.close()


@pytest.fixture
def paged(start, tmp_path, gate):
    config = tmp_path / "sweet.conf"
    write(config, f"""[sweet]
worker=/w={TOLD}
workers=1
threads=1
root={tmp_path}
[path /w]
cache=response
""".encode())
    write(tmp_path / "small", b"small\n")
    return start(None, "--config", config)


def gather(server, target, count=CROWD):
    """All requests have come before the server looks at any."""
    clients = [Client(server.port) for _ in range(count)]
    assert server.status()
    stop(server.pid)
    for client in clients:
        client.send(request(target))
    os.kill(server.pid, signal.SIGCONT)
    return clients


def page(gate, lines="Cache-Control:max-age=600"):
    return f"/w/page?wait={gate.path}&{lines}&size=5000"


def await_crowd(server, count=CROWD):
    """All but the first wait for it."""
    server.wait_status(lambda status: status["answers"]["waited"] >= count - 1)


def test_page(paged, gate):
    clients = gather(paged, page(gate))
    await_crowd(paged)
    gate.let()
    bodies = {client.response().body for client in clients}
    assert len(bodies) == 1 and len(bodies.pop()) > 5000
    status = paged.status()["answers"]
    assert status["waited"] == CROWD - 1 and status["stored"] == 1
    # Their connections are good for more.
    for client in clients:
        client.send(request("/small"))
    assert {client.response().body for client in clients} == {b"small\n"}


def test_page_is_not_kept(paged, gate):
    """Each gets a page of its own then."""
    clients = gather(paged, page(gate, "Cache-Control:no-store"))
    await_crowd(paged)
    gate.let(CROWD)
    assert len({client.response().body for client in clients}) == CROWD


def test_some_leave(paged, gate):
    clients = gather(paged, page(gate))
    await_crowd(paged)
    for client in clients[1::3]:
        client.close()
    with Client(paged.port) as other:
        other.send(request("/small"))
        gate.let()
        # More leave while others are answered.
        for client in clients[2::3]:
            client.close()
        assert other.response().body == b"small\n"
    assert len({client.response().body for client in clients[::3]}) == 1
    paged.wait_status(lambda status: status["connections"]["open"] <= len(clients[::3]) + 1)


def test_end(paged, gate):
    """The server was told to end: all get their last response."""
    clients = gather(paged, page(gate))
    await_crowd(paged)
    paged.send_signal(signal.SIGTERM)
    assert paged.errors.wait("ending: ")
    gate.let()
    for client in clients:
        assert len(client.response().body) > 5000
    paged.finished()


def test_end_at_once(paged, gate):
    """The second signal: nobody is answered any more."""
    clients = gather(paged, page(gate))
    await_crowd(paged)
    stop(paged.pid)
    gate.let()
    paged.send_signal(signal.SIGTERM)
    paged.send_signal(signal.SIGTERM)
    os.kill(paged.pid, signal.SIGCONT)
    paged.finished()
    for client in clients:
        client.close()


def test_listing(start, tmp_path):
    for number in range(FILES):
        write(tmp_path / f"root/folder/{number}", b"")
    server = start(tmp_path / "root", "--threads", 1, "--listing", "on")
    clients = gather(server, "/folder/?format=json")
    for client in clients[1::3]:
        client.close()
    for client in clients[::3]:
        assert len(json.loads(client.response().body)) == FILES
    for client in clients[2::3]:
        assert len(json.loads(client.response().body)) == FILES


def test_file(start, tmp_path):
    write(tmp_path / "root/file", os.urandom(MB))
    # A helper reads it.
    server = start(tmp_path / "root", "--threads", 1, "--page-cache", "bypass")
    clients = gather(server, "/file")
    for client in clients[1::3]:
        client.close()
    content = (tmp_path / "root/file").read_bytes()
    for client in clients[::3] + clients[2::3]:
        assert client.response().body == content
