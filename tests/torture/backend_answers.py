# SPDX-License-Identifier: MIT
"""Applications that answer in all ways, also those that none should use, in the process of the
stage "backends".

A request names its way, the lines of its answer and of its body, and a token in its path. Each line
of both bodies is the token, so each part of them shows to which request it belongs. What is drawn
within a way depends only on the token.
"""

import contextlib
import random
import socket
import struct
import threading

import responder
import upstream
from responder import OVERLOADED, STDERR, STDOUT, numbered, record

HEAD = b"Content-Type: text/plain\r\n"
PAUSE = 0.003  # seconds at most, between two pieces
LATE_MOST = 4000  # bytes; one read of the server, since records of HTTP have no number
SPOIL = 0.05  # the share of answers that are another's, if they are to be spoiled


def lines(token, count):
    return (token + b"\n") * count


class FastCGI:
    """The bytes of an answer, as one protocol has them."""

    protocol = "fastcgi"
    application = responder.Application

    @staticmethod
    def path(asked):
        return asked.variables["PATH_INFO"]

    @staticmethod
    def part(asked, data, size=60000):
        return b"".join(numbered(record(STDOUT, data[at:at + size]), asked.number)
                        for at in range(0, len(data), size))

    @staticmethod
    def over(asked):
        return numbered(record(STDOUT) + responder.end(), asked.number)

    def whole(self, asked, body, size=8184):
        length = b"Content-Length: %d\r\n" % len(body)
        return self.part(asked, HEAD + length + b"\r\n" + body, size) + self.over(asked)

    def streamed(self, asked, body, size):
        return self.part(asked, HEAD + b"\r\n" + body, size) + self.over(asked)

    def noise(self, asked, rng):
        return numbered(record(STDERR, b"complaint\n" * rng.randint(1, 9)), asked.number)

    @staticmethod
    def refusal(asked):
        return numbered(responder.end(0, OVERLOADED), asked.number)


class HTTP:
    protocol = "http"
    application = upstream.Upstream

    @staticmethod
    def path(asked):
        return asked.target.removeprefix("/http")

    @staticmethod
    def part(asked, data):
        return b"%x\r\n%s\r\n" % (len(data), data)

    @staticmethod
    def whole(asked, body, size=None):
        body = b"" if asked.method == "HEAD" else body
        return b"HTTP/1.1 200 OK\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body

    def streamed(self, asked, body, size):
        head = b"HTTP/1.1 200 OK\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        if asked.method == "HEAD":
            return head
        return head + b"".join(self.part(asked, body[at:at + size])
                               for at in range(0, len(body), size)) + b"0\r\n\r\n"

    @staticmethod
    def noise(asked, rng):
        return b"HTTP/1.1 103 Early Hints\r\nLink: </style>\r\n\r\n" * rng.randint(1, 3)

    @staticmethod
    def refusal(asked):
        return b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


class Answers:
    """Applications of one protocol. spoil: some answers have the token of another request."""

    def __init__(self, wire, spoil):
        self.wire, self.spoil = wire, spoil
        self.last = b"t" + b"0" * 16
        self.faults = []

    def handle(self, asked):
        """What an application does with a request; False ends the connection."""
        _, way, count, uploaded, token = self.wire.path(asked).split("/")
        token = token.encode()
        asked.rng = random.Random(token)
        asked.answered = self.last if self.spoil and asked.rng.random() < SPOIL else token
        asked.expected = lines(token, int(uploaded))
        self.last = token
        return WAYS[way](self, asked, lines(asked.answered, int(count)))

    def read(self, asked):
        """The body of a request, which must be its own, and whole."""
        body = asked.body()
        if body != asked.expected:
            self.faults.append(f"a body of {len(body)} bytes instead of {len(asked.expected)}, "
                               f"or not its own: {body[:60]!r}")

    def choose(self, asked, body):
        """The bytes of a right answer."""
        if asked.rng.random() < 0.5:
            return self.wire.whole(asked, body)
        return self.wire.streamed(asked, body, asked.rng.choice((100, 5000, 60000)))

    # --- right answers --------------------------------------------------------------------------

    def plain(self, asked, body):
        self.read(asked)
        asked.connection.send(self.choose(asked, body))

    def early(self, asked, body):
        """Before the body was read; it is read afterwards, or not."""
        asked.connection.send(self.choose(asked, body))
        if asked.expected and asked.rng.random() < 0.5:
            # The end of the connection must not overtake the answer: a reset discards it.
            with contextlib.suppress(OSError):  # the server may have closed it
                asked.connection.socket.shutdown(socket.SHUT_WR)
                while asked.connection.socket.recv(1 << 16):
                    pass
            return False
        self.read(asked)
        return True

    def split(self, asked, body):
        self.read(asked)
        self.pieces(asked, self.choose(asked, body))

    def pieces(self, asked, data):
        at = 0
        for _ in range(asked.rng.randint(1, 12)):
            size = asked.rng.choice((1, 7, 8, 100, len(data)))
            asked.connection.send(data[at:at + size])
            at += size
            pause(asked)
        asked.connection.send(data[at:])

    def tiny(self, asked, body):
        self.read(asked)
        asked.connection.send(self.wire.streamed(asked, body[:5000], 1))

    def noisy(self, asked, body):
        self.read(asked)
        asked.connection.send(self.wire.noise(asked, asked.rng) + self.choose(asked, body))

    def late(self, asked, body):
        """The same answer again, which is nobody's. HTTP has no numbers: nothing can tell it from
        the answer to a request that was sent before it comes."""
        self.read(asked)
        data = self.wire.whole(asked, body[:len(asked.answered) + 1])
        if self.wire.protocol == "http":
            asked.connection.send((data + data)[:LATE_MOST])
            return False
        asked.connection.send(data)
        if asked.rng.random() < 0.5:
            asked.connection.socket.recv(1, socket.MSG_PEEK)  # the next request, or the end
        asked.connection.send(data)
        return True

    def closing(self, asked, body):
        self.plain(asked, body)
        return False

    # --- no answers, or not whole ones ----------------------------------------------------------

    def cut(self, asked, body):
        """Ends somewhere, in the head too."""
        self.read(asked)
        data = self.choose(asked, body)
        asked.connection.send(data[:asked.rng.randrange(len(data) - 1)])
        return False

    def reset(self, asked, body):
        """Before the body was read, or after a part of the answer."""
        if asked.rng.random() < 0.7:
            self.read(asked)
        data = self.choose(asked, body)
        asked.connection.send(data[:asked.rng.choice((0, 1, asked.rng.randrange(len(data) - 1)))])
        self.end_by_reset(asked)
        return False

    @staticmethod
    def end_by_reset(asked):
        asked.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                           struct.pack("ii", 1, 0))

    def endless(self, asked, body):
        """Until the server has enough: a body, a head, or nothing that a client gets."""
        self.read(asked)
        kind = asked.rng.choice(("body", "head", "noise"))
        if kind == "body":
            asked.connection.send(self.wire.streamed(asked, body, 8000)
                                  .removesuffix(self.wire.over(asked)
                                                if self.wire.protocol == "fastcgi"
                                                else b"0\r\n\r\n"))
        if kind == "head":
            asked.connection.send(self.wire.streamed(asked, b"", 1)[:20])
        while True:
            more = {"body": lambda: self.wire.part(asked, body),
                    "head": lambda: self.field(asked),
                    "noise": lambda: self.wire.noise(asked, asked.rng)}[kind]()
            asked.connection.send(more * 20)

    def field(self, asked):
        text = b"X-Field: %s\r\n" % (b"x" * 500)
        return text if self.wire.protocol == "http" else self.wire.part(asked, text)

    def silent(self, asked, body):
        """Until the server has waited for too long, or the client has left."""
        self.read(asked)
        asked.connection.socket.recv(1)
        return False

    def refuse(self, asked, body):
        self.read(asked)
        asked.connection.send(self.wire.refusal(asked))

    def garbage(self, asked, body):
        self.read(asked)
        asked.connection.send(asked.rng.randbytes(asked.rng.randint(1, 5000)))
        return False


def pause(asked):
    if asked.rng.random() < 0.3:
        threading.Event().wait(asked.rng.random() * PAUSE)


# What a client may get: a right answer, or also a part of one, or none.
RIGHT = ("plain", "early", "split", "tiny", "noisy", "late", "closing")
WRONG = ("cut", "reset", "endless", "silent", "refuse", "garbage")
WAYS = {name: getattr(Answers, name) for name in RIGHT + WRONG}
