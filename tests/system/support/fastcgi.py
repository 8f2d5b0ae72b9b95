# SPDX-License-Identifier: MIT
"""FastCGI 1.0 as a web server uses it: applications, and direct requests to them."""

import contextlib
import socket
import struct
import subprocess

from server import TIMEOUT

# The beginning of a program that accepts requests at its descriptor 0, one after the other.
APPLICATION = r"""
import os, re, signal, socket, struct, sys, time
listener = socket.socket(fileno=0)

def take(connection, length):
    data = b""
    while len(data) < length:
        piece = connection.recv(length - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data

number = 1  # of the request

def record(kind, data):
    return struct.pack("!BBHHBx", 1, kind, number, len(data), 0) + data

def take_request(connection):
    global number
    params, ended = b"", False
    while not ended:
        _, kind, number, length, padding = struct.unpack("!BBHHBx", take(connection, 8))
        data = take(connection, length + padding)[:length]
        params += data if kind == 4 else b""
        ended = kind == 5 and not data
    return params

def respond(connection, rest):
    # The head's other lines, an empty one, and the body.
    connection.sendall(record(6, b"Content-Type: text/plain\r\n" + rest)
                       + record(6, b"") + record(3, bytes(8)))

def serve(answer):
    # One connection at a time, as most applications do it.
    while True:
        connection = listener.accept()[0]
        try:
            while True:
                respond(connection, answer(take_request(connection)))
        except (EOFError, ConnectionError):
            connection.close()
"""

BEGIN, END, PARAMS, STDIN, STDOUT, STDERR = 1, 3, 4, 5, 6, 7
RESPONDER = 1


def record(kind, content=b"", number=1):
    return struct.pack(">BBHHBx", 1, kind, number, len(content), 0) + content


def pair(name, value):
    lengths = b"".join(bytes([len(part)]) if len(part) < 128 else
                       struct.pack(">I", len(part) | 1 << 31) for part in (name, value))
    return lengths + name + value


class Application:
    """A program that listens at its descriptor 0, until the end of a with statement."""

    def __init__(self, folder, *command, **environment):
        self.path = str(folder / "application.sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path)
            listener.listen(64)
            self.process = subprocess.Popen(command, stdin=listener, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.PIPE, env=environment or None)

    def ask(self, body=b"", **variables):
        """Returns the head as a dictionary of bytes, and the body, of one request's response."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT)
            connection.connect(self.path)
            params = b"".join(pair(name.encode(), value.encode("utf-8", "surrogateescape"))
                              for name, value in variables.items())
            connection.sendall(
                record(BEGIN, struct.pack(">HB5x", RESPONDER, 0)) + record(PARAMS, params)
                + record(PARAMS) + (record(STDIN, body) if body else b"") + record(STDIN))
            with connection.makefile("rb") as stream:
                return split(self.output(stream))

    @staticmethod
    def output(stream):
        said = b""
        while True:
            head = stream.read(8)
            assert len(head) == 8, f"the application went after {said[:200]!r}"
            _, kind, _, length, padding = struct.unpack(">BBHHBx", head)
            content = stream.read(length + padding)[:length]
            if kind == STDOUT:
                said += content
            elif kind == END:
                assert content[:5] == b"\0" * 5, content
                return said

    def stop(self):
        """Returns what it wrote to its standard error."""
        self.process.terminate()
        try:
            return self.process.communicate(timeout=TIMEOUT)[1]
        finally:
            self.process.kill()


def split(said):
    head, empty, body = said.partition(b"\r\n\r\n")
    assert empty, said[:500]
    return dict(line.split(b": ", 1) for line in head.split(b"\r\n")), body


@contextlib.contextmanager
def application(folder, *command, **environment):
    running = Application(folder, *command, **environment)
    try:
        yield running
    except BaseException:
        running.process.kill()
        running.process.communicate()
        raise
    running.stop()
