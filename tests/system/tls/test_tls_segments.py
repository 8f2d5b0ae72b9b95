# SPDX-License-Identifier: MIT
"""The segments of a short connection over TLS, as the client's kernel counts them: each costs the
server a call and both kernels the work of a packet.
"""

import os
import select
import socket
import ssl
import struct
import sys

import pytest

import tls
from files import pattern, write
from server import TIMEOUT, running

sys.path.insert(0, os.path.join(os.environ["srcdir"], "bench"))
from lib.certificates import kernel_encrypts  # noqa: E402

pytestmark = pytest.mark.clear("these choose what is below")

BODY = pattern(1000)
CONNECTIONS = 20
DATA_SEGMENTS = 152  # offset of tcpi_data_segs_in in struct tcp_info

# Then OpenSSL writes the handshake and the end to the socket, which the server sees nothing of.
KERNEL = kernel_encrypts()


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = write(tmp_path_factory.mktemp("segments") / "file", BODY).parent
    with running(kind, root, *tls.options("ec"), "--threads", 1,
                 listen="127.0.0.1:0,tls") as made:
        yield made


class Client(tls.Held):
    def __init__(self, server):
        super().__init__(socket.create_connection(("127.0.0.1", server.port), TIMEOUT))

    def __enter__(self):
        """The last message of the handshake is not sent yet."""
        self.run(self.secure.do_handshake, send=self.send)
        return self

    def __exit__(self, *_):
        self.plain.close()

    def get(self):
        self.secure.write(b"GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.send()
        data = b""
        while not data.endswith(BODY):
            data += self.run(self.secure.read, 1 << 16)
        assert data.startswith(b"HTTP/1.1 200 ")

    def segments(self):
        """Those with data that have come."""
        info = self.plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        return struct.unpack_from("I", info, DATA_SEGMENTS)[0]


def test_tickets_with_the_response(server):
    for i in range(CONNECTIONS):
        with Client(server) as client:
            client.get()
            # The first response may wait for the file.
            assert client.segments() == 2 + KERNEL or i == 0
            client.get()
            assert client.segments() == 3 + KERNEL or i == 0


def test_tickets_before_the_request(server):
    """A client that waits for them gets them."""
    with Client(server) as client:
        client.send()
        client.come.write(client.plain.recv(1 << 16))
        assert client.segments() == 2
        client.get()
        assert client.segments() == 3


def test_end(server):
    """The last record and the end of the stream come together."""
    poll = select.poll()
    for _ in range(CONNECTIONS):
        with Client(server) as client:
            client.get()
            poll.register(client.plain, select.POLLIN | select.POLLRDHUP)
            with pytest.raises(ssl.SSLWantReadError):
                client.secure.unwrap()
            client.send()
            ((_, events),) = poll.poll(TIMEOUT * 1000)
            assert events == select.POLLIN | select.POLLRDHUP or KERNEL
            client.run(client.secure.unwrap)
            poll.unregister(client.plain)
