# SPDX-License-Identifier: MIT
"""The example servers that are installed as documentation: complete bodies for all
clients, with and without io_uring, and a clean exit."""

import contextlib
import os
import signal
import socket
import subprocess
import threading

import pytest

from client import Client, Closed, fetch
from files import write
from server import BUILD, DENY, SCALE, TIMEOUT, UNDER, VALGRIND

KB = 1024
# How each one is run; without io_uring the library's ring uses epoll.
SERVERS = {
    "epoll": ("epoll-server", []),
    "epoll-denied": ("epoll-server", [DENY, "EPERM"]),
    "glib": ("glib-server", []),
    "glib-denied": ("glib-server", [DENY, "ENOSYS"]),
    "uring": ("uring-server", []),
}


@contextlib.contextmanager
def running(name, path):
    """Yields the port of an example server for one file; stops it by SIGTERM and checks its
    exit."""
    program, prefix = SERVERS[name]
    if VALGRIND and not prefix:
        pytest.skip("Valgrind stops for ever in io_uring_enter")
    command = [*prefix, *UNDER, os.path.join(BUILD, "examples", program), "0", path]
    # The caller's stderr shows messages of a sanitizer or of Valgrind.
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            line = process.stdout.readline().decode()
            if not line and program == "uring-server":
                pytest.skip("io_uring cannot be used")
            yield int(line.rstrip("/\n").rpartition(":")[2])
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT) == 0
        finally:
            process.kill()


@pytest.fixture(params=SERVERS)
def example(request):
    return request.param


@pytest.fixture(params=[1, 100, 40 * KB, 1000 * KB], ids=str)
def body(request, tmp_path):
    data = os.urandom(request.param)
    write(tmp_path / "body", data)
    return data


def test_keep_alive_and_close(example, body, tmp_path):
    with running(example, tmp_path / "body") as port, Client(port) as client:
        for _ in range(3):
            got = client.get("/")
            assert (got.status, got.body) == (200, body)
            assert "Connection" not in got
        assert client.get("/", fields="Connection: close\r\n").body == body
        assert client.at_end()


def test_pipelined(example, body, tmp_path):
    with running(example, tmp_path / "body") as port, Client(port) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n" * 5)
        for _ in range(5):
            assert client.response().body == body


def test_many_clients(example, tmp_path):
    data = os.urandom(300 * KB)
    write(tmp_path / "body", data)
    wrong = []

    def ask(port):
        try:
            with Client(port, buffer=4 * KB) as client:
                for _ in range(16 // SCALE):
                    if client.get("/").body != data:
                        wrong.append("other bytes")
        except (AssertionError, OSError) as error:
            wrong.append(repr(error))

    with running(example, tmp_path / "body") as port:
        threads = [threading.Thread(target=ask, args=(port,)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_clients_that_go_away(example, tmp_path):
    """Clients disconnect in the middle of a body, by a reset or an end; the others get theirs."""
    data = os.urandom(8000 * KB)
    write(tmp_path / "body", data)
    with running(example, tmp_path / "body") as port, Client(port, buffer=4 * KB) as slow:
        slow.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
        slow.head()
        for reset in (True, False) * 5:
            with Client(port, buffer=4 * KB) as client:
                client.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
                client.head()
                if reset:
                    linger = b"\1\0\0\0\0\0\0\0"
                    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        assert fetch(port, "/").body == data
        assert slow.take(len(data)) == data


def test_end_while_sending(example, tmp_path):
    """The server exits cleanly although clients wait; they have received a part of the body."""
    data = os.urandom(8000 * KB)
    write(tmp_path / "body", data)
    with contextlib.ExitStack() as stack:
        with running(example, tmp_path / "body") as port:
            client = stack.enter_context(Client(port, buffer=4 * KB))
            client.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            client.head()
        with pytest.raises((Closed, ConnectionResetError)) as raised:
            client.take(len(data))
    if isinstance(raised.value, Closed):
        assert data.startswith(raised.value.data)


def test_usage(example):
    program, prefix = SERVERS[example]
    command = [*prefix, os.path.join(BUILD, "examples", program)]
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{program}: usage: {program} PORT FILE".encode())
