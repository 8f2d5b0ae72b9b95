# SPDX-License-Identifier: MIT
"""The segments of a short connection over TLS, as the client's kernel counts them: each costs the
server a call and both kernels the work of a packet.
"""

import select
import socket
import ssl
import struct

import pytest

import tls
from files import pattern, write
from server import TIMEOUT, running

pytestmark = pytest.mark.clear("these choose what is below")

BODY = pattern(1000)
CONNECTIONS = 20
DATA_SEGMENTS = 152  # offset of tcpi_data_segs_in in struct tcp_info
TCP_ULP = 31


def kernel_encrypts():
    with socket.create_server(("127.0.0.1", 0)) as listener, \
            socket.create_connection(listener.getsockname()) as connected:
        try:
            connected.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
        except OSError:
            return False
    return True


# Then OpenSSL writes the handshake and the end to the socket, which the server sees nothing of.
KERNEL = kernel_encrypts()


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = write(tmp_path_factory.mktemp("segments") / "file", BODY).parent
    with running(kind, root, *tls.options("ec"), "--threads", 1,
                 listen="127.0.0.1:0,tls") as made:
        yield made


class Plain:
    """A connection whose TLS is in memory: what is sent together is the test's choice."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), TIMEOUT)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = tls.context().wrap_bio(self.incoming, self.outgoing)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def receive(self):
        data = self.socket.recv(1 << 16)
        assert data
        self.incoming.write(data)

    def shake(self):
        """Sends the first message, and takes the answer to it; the last one is not sent yet."""
        while True:
            try:
                return self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.socket.sendall(self.outgoing.read())
                self.receive()

    def request(self):
        self.tls.write(b"GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.socket.sendall(self.outgoing.read())

    def response(self):
        data = b""
        while not data.endswith(BODY):
            try:
                data += self.tls.read(1 << 16)
            except ssl.SSLWantReadError:
                self.receive()
        assert data.startswith(b"HTTP/1.1 200 ")

    def segments(self):
        """Those with data that have come."""
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        return struct.unpack_from("I", info, DATA_SEGMENTS)[0]


def test_tickets_with_the_response(server):
    for i in range(CONNECTIONS):
        with Plain(server) as client:
            client.shake()
            client.request()
            client.response()
            # The first response may wait for the file.
            assert client.segments() == 2 + KERNEL or i == 0
            client.request()
            client.response()
            assert client.segments() == 3 + KERNEL or i == 0


def test_tickets_before_the_request(server):
    """A client that waits for them gets them."""
    with Plain(server) as client:
        client.shake()
        client.socket.sendall(client.outgoing.read())
        client.receive()
        assert client.segments() == 2
        client.request()
        client.response()
        assert client.segments() == 3


def test_end(server):
    """The last record and the end of the stream come together."""
    poll = select.poll()
    for _ in range(CONNECTIONS):
        with Plain(server) as client:
            client.shake()
            client.request()
            client.response()
            poll.register(client.socket, select.POLLIN | select.POLLRDHUP)
            with pytest.raises(ssl.SSLWantReadError):
                client.tls.unwrap()
            client.socket.sendall(client.outgoing.read())
            ((_, events),) = poll.poll(TIMEOUT * 1000)
            assert events == select.POLLIN | select.POLLRDHUP or KERNEL
            client.receive()
            client.tls.unwrap()
            poll.unregister(client.socket)
