# SPDX-License-Identifier: MIT
"""A FastCGI application in the tests' own process, which does what a test chooses, including
what no application should do."""

import contextlib
import socket
import struct
import threading

from server import TIMEOUT

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR = range(1, 8)
COMPLETE, CANT_MULTIPLEX, OVERLOADED, UNKNOWN_ROLE = range(4)


class Gone(Exception):
    """The server has closed the connection."""


CURRENT = 0  # instead of the id of the request that sends the record


def record(kind, data=b"", padding=0, number=CURRENT, version=1):
    return struct.pack("!BBHHBx", version, kind, number, len(data), padding) + data + b"p" * padding


def end(status=0, protocol=COMPLETE):
    return record(END, struct.pack("!IBxxx", status, protocol))


def numbered(data, number):
    """The records, with that id where they have none."""
    data = bytearray(data)
    at = 0
    while at + 8 <= len(data) and data[at] == 1:
        _, _, found, length, padding = struct.unpack_from("!BBHHB", data, at)
        if found == CURRENT and data[at + 1] <= STDERR:
            struct.pack_into("!H", data, at + 2, number)
        at += 8 + length + padding
    return bytes(data)


class Request:
    """One request, as far as it was received; body() reads more of its body."""

    def __init__(self, connection):
        self.connection = connection
        kind, data = connection.begin()
        if kind == ABORT:
            raise Gone
        assert kind == BEGIN and len(data) == 8, (kind, data)
        self.number = connection.number
        self.role, self.flags = struct.unpack("!HB", data[:3])
        block = b""
        self.records = 0
        while True:
            kind, data = connection.record()
            assert kind == PARAMS, kind
            if not data:
                break
            self.records += 1
            block += data
        self.variables = dict(self.pairs(block))

    @staticmethod
    def pairs(block):
        at = 0
        while at < len(block):
            lengths = []
            for _ in range(2):
                if block[at] < 128:
                    lengths.append(block[at])
                    at += 1
                else:
                    lengths.append(struct.unpack_from("!I", block, at)[0] & 0x7FFFFFFF)
                    at += 4
            name, value = block[at : at + lengths[0]], block[at + lengths[0] : at + sum(lengths)]
            at += sum(lengths)
            yield name.decode("latin-1"), value.decode("latin-1")

    def body(self):
        pieces = []
        while True:
            kind, data = self.connection.record()
            if kind == ABORT:
                raise Gone
            assert kind == STDIN, kind
            if not data:
                return b"".join(pieces)
            pieces.append(data)

    def send(self, data):
        self.connection.send(numbered(data, self.number))

    def out(self, data, size=8184, padding=0):
        """Sends it in records of that size."""
        for at in range(0, len(data), size):
            self.send(record(STDOUT, data[at : at + size], padding))

    def answer(self, body, head=b"Content-Type: text/plain\r\n", size=8184, padding=0):
        self.out(head + b"\r\n" + body, size, padding)
        self.send(record(STDOUT) + end())

    def aborted(self):
        """Returns True if the server aborts the request before the test's deadline."""
        try:
            while True:
                if self.connection.record()[0] == ABORT:
                    return True
        except (Gone, ConnectionResetError):
            return True
        except TimeoutError:
            return False


class Connection:
    """number: the id of the current request."""

    def __init__(self, accepted):
        self.socket = accepted
        self.number = None
        self.socket.settimeout(TIMEOUT)

    def take(self, length):
        data = bytearray()
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise Gone
            data += piece
        return bytes(data)

    def begin(self):
        """The first record of a request, whose id the others must have."""
        self.number = None
        return self.record()

    def record(self):
        version, kind, number, length, padding = struct.unpack("!BBHHBx", self.take(8))
        if self.number is None:
            self.number = number
        assert version == 1 and number == self.number, (version, number)
        data = self.take(length)
        self.take(padding)
        return kind, data

    def send(self, data):
        self.socket.sendall(data)


class Application:
    """Calls handle(request) in a thread for each connection; if it returns False, the request is
    the last of its connection."""

    request = Request

    def __init__(self, handle, path=None, host="127.0.0.1", port=0):
        self.handle = handle
        if path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(str(path))
            self.address = f"unix:{path}"
        else:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self.listener = socket.create_server((host, port), family=family)
            self.port = self.listener.getsockname()[1]
            self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self.listener.listen(128)
        self.connections = 0
        self.requests = 0
        self.lock = threading.Lock()
        self.faults = []
        self.ended = threading.Semaphore(0)  # one for each closed connection
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                accepted = self.listener.accept()[0]
                with self.lock:
                    self.connections += 1
                threading.Thread(target=self.serve, args=(accepted,), daemon=True).start()

    def serve(self, accepted):
        with accepted:
            try:
                while True:
                    request = self.request(Connection(accepted))
                    with self.lock:
                        self.requests += 1
                    if self.handle(request) is False:
                        return
            except (Gone, ConnectionError):
                pass
            except Exception as fault:  # for the test to check
                self.faults.append(fault)
                raise
            finally:
                self.ended.release()

    def close(self):
        # Wakes the thread, which close() alone does not.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(TIMEOUT)
