# SPDX-License-Identifier: MIT
"""What a connection of each kind takes of the server's memory: at most what the table of SECURITY.md
says, which has a row for each function below, and no other."""

import collections
import contextlib
import os
import re
import socket
import struct

import pytest

import tls
import upstream
from client import Client, fetch, request
from files import KB, MB, pattern, write
from memory_limit import limited
from server import GENERATE, TIMEOUT, UNDER, running, sanitized
from streams import ACK, END_HEADERS, HEADERS, PING, Raw, block, frame, needs_h2

pytestmark = [pytest.mark.clear("these choose what is below"), needs_h2]
if UNDER or sanitized():
    pytest.skip("the memory of a sanitizer or Valgrind is not the server's",
                allow_module_level=True)

COUNT = 64  # connections of a kind
STREAMS = 128  # max-streams, by default
SMALL = 4096  # bytes that a client that does not read has room for
# A field of 3,900 bytes, which HPACK remembers; and a byte that names it.
FIELD = b"\x40\x01a\x7f" + bytes([3900 - 127 & 0x7f | 0x80, 3900 - 127 >> 7]) + b"b" * 3900
NAMED = b"\xbe"
UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\n"


def table():
    """Returns the rows: {kind: (bytes that the client sends, KB at most)}."""
    with open(os.path.join(os.environ["srcdir"], "SECURITY.md")) as file:
        part = file.read().split("<!-- connections -->")[1]
    rows = re.findall(r"^\| ([^|]+) \| ([\d,]+) \| ([\d.,]+) KB \|", part, re.M)
    return {kind: (int(sent.replace(",", "")), float(most.replace(",", "")))
            for kind, sent, most in rows}


class Kind:
    """Opens connections of one kind; sent: bytes of each that came to the server, but for TLS."""

    def __init__(self, server, stack):
        self.server = server
        self.stack = stack
        self.sent = 0
        self.expected = collections.Counter()

    def connect(self, data=b"", buffer=None):
        client = self.stack.enter_context(Client(self.server.port, buffer, secure=False))
        client.send(data)
        self.sent = len(data)
        return client

    def connections(self, name, count):
        """Waits until that many more are in that state."""
        self.expected[name] += count
        self.server.wait_status(
            lambda status: status["connections"][name] >= self.expected[name])


def idle(kind, count):
    for _ in range(count):
        assert kind.connect(request("/small")).response().body == b"small"


def half_a_head(kind, count):
    for _ in range(count):
        kind.connect(b"GET / HTTP/1.1\r\nHost: te")
    kind.connections("reading", count)


def half_a_hello(kind, count):
    for _ in range(count):
        kind.connect(b"\x16\x03\x01\x02\0\x01")
    kind.connections("open", count)
    # What has come before is read before this is.
    kind.server.status()


def handshake(kind, count):
    """Of which the client does not read the server's part."""
    for _ in range(count):
        held = tls.Held(None)
        held.begin()
        client = kind.connect(held.out.read())
        assert client.receive(1)


def idle_tls(kind, count):
    for _ in range(count):
        plain = socket.create_connection(("127.0.0.1", kind.server.port), TIMEOUT)
        secure = kind.stack.enter_context(tls.handshake(plain))
        secure.sendall(request("/small"))
        data = b""
        while not data.endswith(b"small"):
            data += secure.recv(4096)
    kind.sent = 600  # about, with the handshake


def session(kind, *frames):
    """One of HTTP/2, whose frames have been processed."""
    client = kind.stack.enter_context(Raw(kind.server.port))
    client.send(*frames, frame(PING, bytes(8)))
    while not any(one[:2] == (PING, ACK) for one in client.frames):
        assert client.more()
    kind.sent = 33 + sum(map(len, frames))


def idle_http2(kind, count):
    for _ in range(count):
        session(kind, frame(HEADERS, block("/small"), END_HEADERS | 1, 1))


def references(kind, count):
    """POSTs whose bodies do not come, with fields that a byte names; the server refuses some."""
    for _ in range(count):
        head = block("/app", "POST")
        session(kind, frame(HEADERS, head + FIELD, END_HEADERS, 1), *(
            frame(HEADERS, head + NAMED, END_HEADERS, stream)
            for stream in range(3, 2 * STREAMS, 2)))


def upload(kind, count):
    for _ in range(count):
        kind.connect(request("/app", "POST", "Content-Length: 1000\r\n") + b"a")
    kind.connections("reading", count)


def slow_reader(path):
    def open_all(kind, count):
        for _ in range(count):
            assert kind.connect(request(path), SMALL).receive(1)
        kind.connections("sending", count)

    return open_all


def tunnel(kind, count):
    for _ in range(count):
        assert kind.connect(request("/app/tunnel", fields=UPGRADE)).head().startswith(
            b"HTTP/1.1 101 ")


# The rows: what opens the connections, with TLS or not, and how many.
KINDS = {
    "idle": (idle, False, COUNT),
    "half of a head": (half_a_head, False, COUNT),
    "half of a ClientHello": (half_a_hello, True, COUNT),
    "a handshake that the client does not continue": (handshake, True, COUNT),
    "idle with TLS": (idle_tls, True, COUNT),
    "idle with HTTP/2": (idle_http2, False, COUNT),
    "HTTP/2, 128 uploads with references": (references, False, 4),
    "an upload that has begun": (upload, False, COUNT),
    "a slow reader of a file": (slow_reader("/file"), False, COUNT),
    "a slow reader of a file larger than the cache permits": (slow_reader("/large"), False, COUNT),
    "a slow reader of a worker's page": (slow_reader("/page?size=100000"), False, COUNT),
    "a slow reader of an application's response": (slow_reader("/app/much"), False, COUNT),
    "WebSocket": (tunnel, False, COUNT),
}


def answer(asked):
    """The application."""
    asked.body()
    if asked.target == "/app/tunnel":
        asked.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                   b"Upgrade: websocket\r\n\r\n")
        asked.closed()
        return False
    asked.chunks(*[bytes(64 * KB)] * 64)
    return False


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("connections")
    write(folder / "root" / "small", b"small")
    write(folder / "root" / "file", pattern(4 * MB))
    write(folder / "root" / "large", pattern(16 * MB))
    return folder


@pytest.fixture(scope="module")
def application(root):
    with contextlib.closing(upstream.Upstream(answer, root / "app.sock")) as made:
        yield made


@contextlib.contextmanager
def serving(kind, root, application, secure, prefix=()):
    listen = f"127.0.0.1:0{',tls' if secure else ''}"
    config = root / "sweet.conf"
    config.write_text(
        f"[sweet]\nlisten={listen}\nroot={root}/root\nthreads=1\ncache-size=32M\n"
        + (f"certificate={tls.file('ec.pem')}\nkey={tls.file('ec.key')}\n" if secure
           else "http2=clear\n")
        + f"[pool app]\nprotocol=http\nupstream={application.address}\nin-flight=256\n"
        f"upgrade=websocket\n[path /app]\npool=app\n"
        f"[pool page]\nprotocol=worker\ncommand={GENERATE}\nprocesses=1\n[path /page]\npool=page\n")
    with running(kind, None, "--config", config, listen=None, prefix=prefix) as server:
        yield server


def test_table():
    assert table().keys() == KINDS.keys()


@pytest.mark.parametrize("row", KINDS)
def test_memory(kind, root, application, row):
    open_all, secure, count = KINDS[row]
    bytes_sent, most = table()[row]
    with serving(kind, root, application, secure) as server, contextlib.ExitStack() as stack:
        connections = Kind(server, stack)
        # What is there once, however many there are.
        open_all(connections, 1 + count // 4)
        before = server.memory()
        open_all(connections, count)
        each = (server.memory() - before) / count
        assert connections.sent <= bytes_sent
        assert each <= most * KB


def test_all_at_once(kind, root, application):
    """Together they are no reason for the kernel to end the server."""
    with limited(128 * MB) as prefix, \
            serving(kind, root, application, False, prefix) as server, \
            contextlib.ExitStack() as stack:
        connections = Kind(server, stack)
        for row, count in (("HTTP/2, 128 uploads with references", 60), ("half of a head", 150),
                           ("an upload that has begun", 150), ("a slow reader of a file", 60),
                           ("a slow reader of an application's response", 60),
                           ("WebSocket", 60)):
            KINDS[row][0](connections, count)
        assert server.memory() < 96 * MB
        assert fetch(server.port, "/small").body == b"small"
