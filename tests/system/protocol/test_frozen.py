# SPDX-License-Identifier: MIT
"""A server that is stopped for longer than its time limits (SIGSTOP, docker pause): what its
clients and programs did in time meanwhile counts as in time."""

import os
import signal
import threading
import time

import pytest

import tls
from client import Client, request
from files import write
from server import OBEY, TIMEOUT
from stopped import stop

# More than one wait of the server reports; handshakes take the time of all of them.
CLIENTS = 20 if tls.OVER else 100
LIMIT = 2  # seconds, in which a test that is not frozen has done its part


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "file", b"a file\n")
    return tmp_path


def freeze(server, meanwhile):
    """Stops the server for longer than its limits."""
    stop(server.pid)
    meanwhile()
    # Its clock passes its limits; no event of the system tells that.
    time.sleep(LIMIT + 0.5)
    os.kill(server.pid, signal.SIGCONT)


def test_rest_of_a_request(start, root):
    server = start(root, "--threads", 1, f"--header-timeout={LIMIT}s")
    clients = []
    half, rest = request("/file")[:9], request("/file")[9:]

    def send():
        for client in clients:
            client.send(rest)

    for _ in range(CLIENTS):
        clients.append(Client(server.port))
        clients[-1].send(half)
    # The server has these halves: their time has begun.
    assert fetch_one(server) == b"a file\n"
    freeze(server, send)
    for client in clients:
        assert client.response().body == b"a file\n"
        client.close()


def fetch_one(server):
    with Client(server.port) as client:
        return client.get("/file").body


def test_next_request(start, root):
    server = start(root, "--threads", 1, f"--keep-alive-timeout={LIMIT}s")
    clients = [Client(server.port) for _ in range(CLIENTS)]

    def send():
        for client in clients:
            client.send(request("/file"))

    for client in clients:
        assert client.get("/file").body == b"a file\n"
    freeze(server, send)
    for client in clients:
        assert client.response().body == b"a file\n"
        client.close()


def test_answer_of_a_worker(start, root, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    config = tmp_path / "sweet.conf"
    config.write_text(f"[pool obey]\ncommand={OBEY}\nprocesses=1\ntimeout={LIMIT}s\n"
                      "[path /obey]\npool=obey\n")
    server = start(root, "--threads", 1, "--config", config)
    with Client(server.port) as client:
        first = client.get("/obey/pid").body
        client.send(request(f"/obey/wait?{fifo}"))
        assert server.errors.wait("waits")
        freeze(server, lambda: fifo.write_bytes(b"x"))
        # It was neither given up nor killed.
        assert client.response().body == first
        assert client.get("/obey/pid").body == first


def test_answer_of_a_server_behind(behind):
    asked, answer = threading.Event(), threading.Event()

    def handle(request):
        asked.set()
        answer.wait(TIMEOUT)
        request.answer(b"in time")
        return True

    app = behind(handle, pool=f"timeout={LIMIT}s\n")
    with Client(app.server.port) as client:
        client.send(request("/app"))
        assert asked.wait(TIMEOUT)
        freeze(app.server, answer.set)
        assert client.response().body == b"in time"
