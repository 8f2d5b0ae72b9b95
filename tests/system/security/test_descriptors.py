# SPDX-License-Identifier: MIT
"""Descriptors that peers pass over Unix sockets: the process that closes the last one
of a lingering connection blocks, and this must not be an event loop."""

import contextlib
import os
import signal
import socket

import pytest

import lingering
from client import Client, request
from files import write
from responder import STDOUT, Application, end, numbered, record
from server import TIMEOUT
from stopped import stop
from test_unix import UnixClient

LONG = 4 * TIMEOUT  # seconds that closing a connection takes

needs_refusal = pytest.mark.skipif(not lingering.can_be_refused(),
                                   reason="the system has no SO_PASSRIGHTS (Linux 6.16)")


@pytest.fixture
def peer():
    with lingering.Peer() as peer:
        yield peer


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "root" / "file", b"a file\n")
    tmp_path.chmod(0o755)
    return tmp_path / "root"


def is_served(server):
    with Client(server.port) as client:
        assert client.get("/file").body == b"a file\n"


@contextlib.contextmanager
def stopped(server):
    """The server does nothing meanwhile."""
    try:
        stop(server.pid)
        yield
    finally:
        server.send_signal(signal.SIGCONT)


@needs_refusal
def test_client(start, root, tmp_path, peer):
    """Those of an HTTP client are refused, whether or not its data is read."""
    server = start(root, "--listen", f"unix:{tmp_path}/socket", "--threads", 1)
    with UnixClient(tmp_path / "socket") as client:
        with pytest.raises(PermissionError):
            lingering.send(client.socket, request("/file"), peer.port, LONG)
        is_served(server)
        assert client.get("/file").body == b"a file\n"


@needs_refusal
def test_fastcgi(start, root, tmp_path, peer):
    """So are those of an application."""
    refused = []

    def handle(asked):
        asked.body()
        answer = record(STDOUT, b"Content-Length: 4\r\n\r\ntext") + end()
        try:
            lingering.send(asked.connection.socket, numbered(answer, asked.number), peer.port,
                           LONG)
        except PermissionError:
            refused.append(True)
            asked.send(answer)

    app = Application(handle, tmp_path / "app.sock")
    server = start(root, "--threads", 1, "--fastcgi", f"/app={app.address}")
    with Client(server.port) as client:
        assert client.get("/app").body == b"text"
    assert refused
    is_served(server)
    app.close()


def test_cgi(start, root, tmp_path, peer):
    """A CGI program has no socket to send one over."""
    write(tmp_path / "cgi" / "pass", f"""#!/usr/bin/python3
import socket, sys
sys.path.insert(0, {os.path.dirname(lingering.__file__)!r})
sys.dont_write_bytecode = True
import lingering
try:
    lingering.send(socket.socket(fileno=0), b"x", {peer.port}, {LONG})
    text = "passed"
except OSError as error:
    text = type(error).__name__
print("Content-Type: text/plain", "Content-Length: %d" % len(text), "", text, sep="\\r\\n", end="")
""".encode()).chmod(0o755)
    server = start(root, "--threads", 1, "--cgi", f"/cgi={tmp_path}/cgi")
    with Client(server.port) as client:
        client.send(b"POST /cgi/pass HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789")
        body = client.response().body
    is_served(server)
    assert body == b"OSError"


def attaches(path):
    """A process that is no member is told so, which needs the thread that serves members."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as member:
        member.settimeout(TIMEOUT)
        member.connect(str(path))
        member.send(b"no hello")
        while member.recv(1 << 16):
            pass


@pytest.mark.parametrize(("message", "count"), [(b"no hello", 1), (b"", 1), (b"x", 1), (b"x", 9)])
def test_member(start, root, tmp_path, peer, message, count):
    """Members pass some: neither a loop nor another member waits.  With an empty message the
    descriptor is closed with the socket."""
    server = start(root, "--threads", 1, "--cache-socket", tmp_path / "cache")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as member:
        member.settimeout(TIMEOUT)
        # Stopped, the server closes no descriptor before the test has closed its own: the last
        # one to close blocks.
        with stopped(server):
            member.connect(str(tmp_path / "cache"))
            for _ in range(3 if message else 1):
                lingering.send(member, message, peer.port, LONG, count)
            if not message:
                member.shutdown(socket.SHUT_RDWR)
    for _ in range(5):
        is_served(server)
        attaches(tmp_path / "cache")
    # It ends with the connection, and so does the server.
    peer.__exit__()
