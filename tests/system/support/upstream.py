# SPDX-License-Identifier: MIT
"""An HTTP server in the tests' own process, behind the one that is tested: it does what a test
chooses, including what no server should do."""

import responder
from responder import Gone


class Request:
    """One request, as far as it was received; body() reads its body, strictly."""

    def __init__(self, connection):
        self.connection = connection
        self.data = b""
        while b"\r\n\r\n" not in self.data:
            self.more()
        self.head, _, self.data = self.data.partition(b"\r\n\r\n")
        first, *lines = self.head.decode("latin-1").split("\r\n")
        self.method, self.target, version = first.split(" ")
        assert version == "HTTP/1.1", first
        self.lines = [tuple(line.split(": ", 1)) for line in lines]
        self.fields = {name.lower(): value for name, value in self.lines}
        assert not {"content-length", "transfer-encoding"} <= self.fields.keys(), self.head

    def more(self):
        piece = self.connection.socket.recv(1 << 20)
        if not piece:
            raise Gone
        self.data += piece

    def take(self, length):
        while len(self.data) < length:
            self.more()
        data, self.data = self.data[:length], self.data[length:]
        return data

    def line(self):
        while b"\r\n" not in self.data:
            self.more()
        line, _, self.data = self.data.partition(b"\r\n")
        return line

    def pieces(self):
        """The parts of a body, as they come."""
        if self.fields.get("transfer-encoding") == "chunked":
            while size := int(self.line(), 16):
                yield self.take(size)
                assert self.line() == b""
            assert self.line() == b"" and not self.data
        left = int(self.fields.get("content-length", 0))
        while left:
            if not self.data:
                self.more()
            piece = self.take(min(left, len(self.data)))
            left -= len(piece)
            yield piece

    def body(self):
        return b"".join(self.pieces())

    def send(self, data):
        self.connection.send(data)

    def answer(self, body=b"", fields=b"Content-Type: text/plain\r\n", status=b"200 OK"):
        length = b"" if status[:3] in (b"204", b"304") else b"Content-Length: %d\r\n" % len(body)
        self.send(b"HTTP/1.1 " + status + b"\r\n" + fields + length + b"\r\n"
                  + (b"" if self.method == "HEAD" else body))

    def chunks(self, *pieces, fields=b"Content-Type: text/plain\r\n", trailer=b""):
        self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + fields + b"\r\n")
        for piece in filter(None, pieces):
            self.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.send(b"0\r\n" + trailer + b"\r\n")

    def closed(self):
        """Returns True if the server closes the connection before the test's deadline."""
        try:
            while True:
                self.more()
        except (Gone, ConnectionResetError):
            return True
        except TimeoutError:
            return False


class Upstream(responder.Application):
    """Calls handle(request) in a thread for each connection; if it returns False, the request is
    the last of its connection."""

    request = Request


def config(folder, addresses, pool="", path="", more="", name="app"):
    """Writes a configuration with a pool for all paths below /app."""
    file = folder / f"{name}.conf"
    file.write_text(f"[sweet]\nmax-body=0\n{more}[pool app]\nprotocol=http\n"
                    f"upstream={';'.join(addresses)}\n{pool}[path /app]\npool=app\n{path}")
    return file
