# SPDX-License-Identifier: MIT
"""Logs whose reader has stopped: the server continues, counts the lines that are lost, opens its
logs again, and ends."""

import contextlib
import fcntl
import os
import re
import signal
import subprocess

import pytest

from client import Client, request
from files import write
from server import TIMEOUT, Server, command

SMALL = 4096  # bytes of a pipe
REQUESTS = 3000


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "root/five", b"five\n")
    (tmp_path / "root/folder").mkdir()
    return tmp_path / "root"


class Unread(Server):
    """A server of whose standard output and error only the first lines are read."""

    # pylint: disable-next=super-init-not-called
    def __init__(self, kind, root, *options):
        self.last_status, self.known, self.clock, self.asked = None, {}, None, 0
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        for pipe in (out, err):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, SMALL)
        self.process = subprocess.Popen(
            command(kind, ["--root", str(root), *map(str, options)]),
            stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.pid = self.process.pid
        # The server shares them with others, who may not expect another mode.
        self.ends = out, err
        text = b""
        while b"listening on" not in text or not text.endswith(b"\n"):
            text += os.read(self.err, SMALL)
        self.port = int(re.search(rb"http://[^/]*:(\d+)/", text)[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def drain(self, end):
        """Returns the lines that are in a pipe."""
        os.set_blocking(end, False)
        text = b""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(end, 1 << 20):
                text += piece
        os.set_blocking(end, True)
        return text.decode().splitlines()

    def close(self):
        self.kill()
        for end in (self.out, self.err, *self.ends):
            os.close(end)


@pytest.fixture
def unread(kind, root):
    with contextlib.ExitStack() as stack:
        def begin(*options):
            server = Unread(kind, root, *options)
            stack.callback(server.close)
            return server

        yield begin


def ask(server, path, count):
    """Sends that many requests, so that each may write a line."""
    with Client(server.port) as client:
        for _ in range(0, count, 50):
            client.send(request(path) * 50)
            for _ in range(50):
                client.response()


def end(server):
    server.send_signal(signal.SIGTERM)
    assert server.process.wait(TIMEOUT) == 0


@pytest.mark.parametrize("output", ["out", "err"])
def test_standard(unread, output):
    """Requests, signals and the end do not wait for a pipe that is full."""
    server = unread("--access-log", "-", "--log-level", "info")
    ask(server, "/five", REQUESTS)
    ask(server, "/folder/", REQUESTS)
    lost = server.wait_status(lambda status: status["logs"]["lost"] > 0)["logs"]["lost"]
    for _ in range(3):
        server.send_signal(signal.SIGUSR1)
        assert server.status()["requests"] > 2 * REQUESTS
    server.send_signal(signal.SIGHUP)
    server.wait_status(lambda status: status["config"]["generation"] > 1)
    assert server.status()["logs"]["lost"] >= lost
    # The flags of the open file are not changed.
    for pipe in server.ends:
        assert not fcntl.fcntl(pipe, fcntl.F_GETFL) & os.O_NONBLOCK
    # Both can be read again; messages say what is lost.
    if output == "err":
        assert len(server.drain(server.err)) > 10
        ask(server, "/folder/", 50)
        assert any(re.search(r"lost before the next one: \d+$", line)
                   for line in server.drain(server.err))
    else:
        assert server.drain(server.out)
        for line in server.drain(server.out):
            assert re.search(r"(GET|-)", line)
    end(server)


def test_fifo(start, root, tmp_path):
    """No process has opened the FIFO; then one does, and stops; then the log is opened again."""
    fifo, errors = tmp_path / "fifo", tmp_path / "errors"
    os.mkfifo(fifo)
    os.mkfifo(errors)
    server = start(root, "--access-log", fifo, "--error-log", errors, "--log-level", "info")
    ask(server, "/five", REQUESTS)
    with open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        assert reader.readline().endswith(b"\n")
        ask(server, "/five", REQUESTS)
        server.wait_status(lambda status: status["logs"]["lost"] > 0)
        server.send_signal(signal.SIGUSR1)
        ask(server, "/folder/", REQUESTS)
        assert server.status()["logs"]["lost"] > 0
    # Without a reader, again.
    server.send_signal(signal.SIGUSR1)
    ask(server, "/five", 50)
    fifo.unlink()
    server.send_signal(signal.SIGUSR1)
    server.wait_status(lambda status: fifo.exists())
    ask(server, "/five", 50)
    server.stop(signal.SIGTERM)
    # The new file has whole lines only.
    assert all(re.search(r'"GET /', line) for line in fifo.read_text().splitlines())
