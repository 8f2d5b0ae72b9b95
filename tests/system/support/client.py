# SPDX-License-Identifier: MIT
"""A client of raw bytes: the test chooses what is sent, the responses are parsed strictly, and
every wait has a deadline."""

import http.client
import os
import select
import shutil
import socket
import subprocess

import tls
from server import TIMEOUT, clients, note


LARGE_BUFFER = 1 << 20

# As programs are told it of requests of version 1.1.
PROTOCOL = "HTTP/2.0" if tls.HTTP2 else "HTTP/1.1"


def has_ipv6():
    """Returns True if this machine has ::1; a container may not."""
    try:
        with socket.socket(socket.AF_INET6) as trial:
            trial.bind(("::1", 0))
    except OSError:
        return False
    return True


class Closed(AssertionError):
    """The server closed the connection within a response; data is the body received so far."""

    def __init__(self, data, wanted):
        super().__init__(f"closed after {len(data)} of {wanted} bytes of a body")
        self.data = data


class Response:
    def __init__(self, head, body):
        lines = head.decode("latin-1").split("\r\n")
        version, status, self.reason = lines[0].split(" ", 2)
        assert version == "HTTP/1.1", head
        self.status = int(status)
        self.fields = {}
        for line in lines[1:]:
            name, colon, value = line.partition(": ")
            assert colon and name and name.lower() not in self.fields, head
            self.fields[name.lower()] = value
        self.head = head
        self.body = body

    def __getitem__(self, name):
        return self.fields[name.lower()]

    def __contains__(self, name):
        return name.lower() in self.fields


def sockets(port):
    """What the system reports about both ends of a server's connections."""
    if not shutil.which("ss"):
        return "no ss; on Debian: apt-get install iproute2"
    return subprocess.run(["ss", "-tinmo", f"( sport = :{port} or dport = :{port} )"],
                          stdout=subprocess.PIPE, text=True).stdout


class Client:
    """A connection. buffer: SO_RCVBUF, for a client that reads slowly; source: its local
    address; secure: with TLS, as tls.wrap() (default: as the server, and SWEET_OVER)."""

    port = None

    def __init__(self, port, buffer=None, address="127.0.0.1", source=None,
                 secure=None):
        self.port = port
        self.socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        if source:
            self.socket.bind((source, 0))
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect((address, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if secure:
            self.socket = tls.wrap(self.socket, **(secure if isinstance(secure, dict) else {}))
        elif secure is None and port in tls.ports:
            self.socket = tls.over(self.socket, bool(buffer))
        self.data = b""
        clients.add(self)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.socket.close()

    def hurry(self):
        """Reads fast from now on: with a small buffer, a megabyte takes seconds."""
        with socket.socket(fileno=os.dup(self.socket.fileno())) as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LARGE_BUFFER)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, LARGE_BUFFER)

    def receive(self, at_most):
        try:
            return self.socket.recv(at_most)
        except TimeoutError:
            raise TimeoutError(f"nothing came\n{sockets(self.port)}") from None

    def send(self, data):
        note(self.port, "sent", data)
        self.socket.sendall(data)

    def half_close(self):
        if isinstance(self.socket, socket.socket):
            # Not SSLSocket's, after which nothing is decrypted.
            socket.socket.shutdown(self.socket, socket.SHUT_WR)
        else:
            self.socket.shutdown(socket.SHUT_WR)

    def readable(self):
        """Returns True if something has arrived, as far as that can be seen without waiting."""
        if isinstance(self.socket, socket.socket):
            return bool(select.select([self.socket], [], [], 0)[0])
        return self.socket.readable()

    def more(self, at_most=1 << 20):
        data = self.receive(at_most)
        note(self.port, "came", data)
        assert data, f"closed after {self.data[:200]!r}"
        self.data += data

    def head(self):
        while b"\r\n\r\n" not in self.data:
            self.more()
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        return head

    def take(self, length):
        pieces, have = [self.data], len(self.data)
        while have < length:
            piece = self.receive(1 << 20)
            if not piece:
                raise Closed(b"".join(pieces), length)
            pieces.append(piece)
            have += len(piece)
        data = b"".join(pieces)
        self.data = data[length:]
        return data[:length]

    def response(self, method="GET"):
        response = Response(self.head(), b"")
        # Without a body (RFC 9110, section 6.4.1).
        if method != "HEAD" and response.status not in (204, 304):
            response.body = self.take(int(response["Content-Length"]))
        return response

    def get(self, target, method="GET", fields=""):
        self.send(request(target, method, fields))
        return self.response(method)

    def at_end(self):
        """Returns True if the server has closed the connection and no data was left."""
        try:
            return self.data == b"" and self.socket.recv(1) == b""
        except ConnectionResetError:
            return False


def request(target, method="GET", fields="", host="test"):
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode("latin-1")


def fetch(port, target, method="GET", fields=""):
    with Client(port) as client:
        return client.get(target, method, fields)


def exchange(port, data):
    """Returns everything that the server sends in response to data until it closes."""
    with Client(port) as client:
        client.send(data)
        answer = b""
        while True:
            piece = client.socket.recv(1 << 20)
            if not piece:
                return answer
            answer += piece


class Connection(http.client.HTTPConnection):
    """Python's client, which keeps its connection, over what the server has."""

    def connect(self):
        self.sock = connect(self.port)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def http_connection(port):
    return Connection("127.0.0.1", port, timeout=TIMEOUT)


def connect(port):
    """Returns a socket that is connected to a server, with TLS as the server."""
    plain = socket.create_connection(("127.0.0.1", port), TIMEOUT)
    return tls.over(plain) if port in tls.ports else plain
