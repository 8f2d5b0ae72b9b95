# SPDX-License-Identifier: MIT
"""A client of HTTP/2 over TLS that compares what a server delivers, with the standard library only.

It sends one request after the other over one connection. Of the fields of a response it reads the
status only, which is 200 in a table of HPACK (RFC 7541, appendix A): it has no decoder.
"""

import contextlib
import socket
import struct

from . import load
from .process import Failure

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK = END_STREAM = 0x1
END_HEADERS, PADDED, PRIORITY = 0x4, 0x8, 0x20
ENABLE_PUSH, INITIAL_WINDOW_SIZE = 2, 4
WINDOW, WINDOW_BEFORE = (1 << 31) - 1, (1 << 16) - 1
# Indexed fields, and names without an index for their values.
GET, HTTPS, PATH, AUTHORITY, STATUS_200 = 0x82, 0x87, 0x04, 0x01, 0x88
SIZE_UPDATE, SIZE_UPDATE_MASK = 0x20, 0xe0
VALUE_MAX = 126  # the length is one byte


def frame(kind, flags, stream, payload):
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def literal(name, value):
    if len(value) > VALUE_MAX:
        raise ValueError(value)
    return bytes([name, len(value)]) + value.encode()


def is_good(block):
    """Whether the first field of a block is the status 200."""
    at = 0
    while at < len(block) and block[at] & SIZE_UPDATE_MASK == SIZE_UPDATE:
        at += 1
        if block[at - 1] == SIZE_UPDATE | 0x1f:
            while at < len(block) and block[at] & 0x80:
                at += 1
            at += 1
    return block[at:at + 1] == bytes([STATUS_200])


def content(flags, payload):
    """Returns a payload without padding and priority."""
    at = end = 0
    if flags & PADDED:
        at, end = 1, payload[0]
    if flags & PRIORITY:
        at += 5
    return payload[at:len(payload) - end]


class Client:
    """One connection; every operation has a timeout."""

    def __init__(self, address, port, seconds, tls):
        self.authority = f"{address}:{port}"
        self.stream = -1
        plain = socket.create_connection((address, port), seconds)
        try:
            self.socket = tls.settings_h2.wrap_socket(plain, server_hostname=address)
        except OSError:
            plain.close()
            raise
        self.input = self.socket.makefile("rb")
        if self.socket.selected_alpn_protocol() != "h2":
            self.close()
            raise Failure("the server does not choose HTTP/2")
        settings = struct.pack(">HIHI", ENABLE_PUSH, 0, INITIAL_WINDOW_SIZE, WINDOW)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0, settings)
                            + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW - WINDOW_BEFORE)))

    def close(self):
        self.input.close()
        self.socket.close()

    def read(self, length):
        data = self.input.read(length)
        if len(data) < length:
            raise Failure("the connection ended early")
        return data

    def read_frame(self):
        """Returns (type, flags, stream, payload), and acknowledges what needs it."""
        first, flags, stream = struct.unpack(">IBI", self.read(9))
        kind, payload = first & 0xff, self.read(first >> 8)
        if kind in (SETTINGS, PING) and not flags & ACK:
            self.socket.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
        if kind == GOAWAY or (kind == RST_STREAM and stream == self.stream):
            (error,) = struct.unpack_from(">I", payload, 4 if kind == GOAWAY else 0)
            raise Failure(f"the server ended it with error {error}")
        return kind, flags, stream, payload

    def get(self, path):
        """Returns (whether the status is 200, body)."""
        self.stream += 2
        fields = bytes([GET, HTTPS]) + literal(PATH, path) + literal(AUTHORITY, self.authority)
        self.socket.sendall(frame(HEADERS, END_STREAM | END_HEADERS, self.stream, fields))
        block, body, ended = b"", bytearray(), False
        while not ended:
            kind, flags, stream, payload = self.read_frame()
            if stream != self.stream or kind not in (DATA, HEADERS):
                continue
            if kind == DATA:
                body += content(flags, payload)
            else:
                block = block or content(flags, payload)
            ended = flags & END_STREAM
        return is_good(block), bytes(body)


def check(name, port, pages, address="127.0.0.1", tls=None):
    """As load.check(), over HTTP/2."""
    path = "/"
    try:
        with contextlib.closing(Client(address, port, load.CHECK_SECONDS, tls)) as client:
            for path, expected in pages:
                good, body = client.get(path)
                if not good:
                    raise Failure("the status is not 200")
                load.compare(name, path, body, expected)
    except (OSError, Failure) as error:
        raise Failure(f"{name}: check of {path} by HTTP/2 failed: {error}") from error
