# SPDX-License-Identifier: MIT
"""Clients of the stage "backends": each request has a token, and nothing that a client gets may have
the token of another.  Some leave in the middle of a request or of its answer, some read slowly, some
have several requests on their way."""

import collections
import contextlib
import re
import socket
import struct
import threading
import time

from backend_answers import RIGHT, WRONG, lines
from visitors import Connection, Cut

TOKEN = re.compile(rb"t[0-9a-f]{16}")
ERRORS = (502, 503, 504)  # of the server, for any request
LEFT_MOST = 200_000  # bytes after which a client leaves
STILL = 2  # seconds without this process; the applications are in it, and have twice as much to answer
BEAT = 0.05  # seconds
WEIGHTS = {"plain": 6, "endless": 0.3, "silent": 0.05}


def new_token(rng):
    return b"t%016x" % rng.getrandbits(64)


class Wrong(Exception):
    """What no client may see."""


class Pulse:
    """Notices when this process had no processor for long, at once or in sum, or was stopped."""

    def __init__(self, ending, still=STILL):
        self.ending, self.still = ending, still
        self.last = time.monotonic()
        self.pauses = collections.deque(maxlen=1000)  # (when it ended, its seconds)
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.beat, daemon=True)
        self.thread.start()

    def note(self):
        with self.lock:
            now = time.monotonic()
            if now - self.last > 2 * BEAT:
                self.pauses.append((now, now - self.last))
            self.last = now

    def beat(self):
        while not self.ending.wait(BEAT):
            self.note()

    def stood_still(self, since):
        self.note()
        with self.lock:
            return sum(seconds for ended, seconds in self.pauses if ended > since) > self.still


class Request:
    """One request: drawn from rng."""

    def __init__(self, rng):
        self.began = time.monotonic()
        self.token = new_token(rng)
        ways = RIGHT + WRONG
        self.way = rng.choices(ways, [WEIGHTS.get(way, 1) for way in ways])[0]
        self.count = rng.choice((1, 2, 100, 1000, 20000))
        self.method = rng.choices(("GET", "HEAD", "POST", "PUT"), (5, 1, 2, 2))[0]
        body = self.method in ("POST", "PUT")
        self.uploaded = rng.choice((0, 1, 500, 8000, 40000)) if body else 0
        self.chunked = body and rng.random() < 0.3
        self.path = f"/{rng.choice(('fastcgi', 'http'))}/{self.way}/{self.count}/" \
            f"{self.uploaded}/{self.token.decode()}"
        # How much of the request is sent, and of the response read, before the client leaves.
        self.sent = rng.random() if body and rng.random() < 0.1 else None
        self.left = rng.randrange(LEFT_MOST) if self.way == "endless" or rng.random() < 0.08 \
            else None
        self.resets = rng.random() < 0.5
        self.body = lines(self.token, self.count)

    def head(self):
        framing = ""
        if self.chunked:
            framing = "Transfer-Encoding: chunked\r\n"
        elif self.method in ("POST", "PUT"):
            framing = f"Content-Length: {self.uploaded * (len(self.token) + 1)}\r\n"
        return f"{self.method} {self.path} HTTP/1.1\r\nHost: test\r\n{framing}\r\n".encode()

    def upload(self):
        data = lines(self.token, self.uploaded)
        if not self.chunked:
            return data
        return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in
                        (data[at:at + 10000] for at in range(0, len(data), 10000))) + b"0\r\n\r\n"


class Leaving(Exception):
    """The client has read what it wanted."""


class Asker(Connection):
    """Reads the responses of some requests, and keeps what was read of the current one."""

    def __init__(self, port, slow):
        self.used, self.most = [], None
        self.fields = {}  # of the last response
        super().__init__(port, slow)

    def begin(self, most):
        self.used, self.most = [], most

    def take(self, length):
        while len(self.data) < length:
            self.data += self.part()
            self.check_left()
        data, self.data = self.data[:length], self.data[length:]
        self.used.append(data)
        return data

    def until(self, end):
        while end not in self.data:
            self.data += self.part()
            self.check_left()
        found, _, self.data = self.data.partition(end)
        self.used.append(found)
        return found

    def check_left(self):
        if self.most is not None and sum(map(len, self.used)) + len(self.data) > self.most:
            raise Leaving

    def response(self, head_only):
        """Returns status, body, and whether the connection stays open; body None: cut off."""
        status = 100
        while status < 200:
            first, *more = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            status = int(first.split(" ", 2)[1])
        fields = {name.lower(): value for name, _, value in
                  (line.partition(": ") for line in more)}
        self.fields = fields
        stays = fields.get("connection") != "close"
        try:
            if head_only or status in (204, 304):
                return status, b"", stays
            if fields.get("transfer-encoding") == "chunked":
                return status, self.chunks(), stays
            return status, self.take(int(fields["content-length"])), stays
        except Cut:
            return status, None, False

    def seen(self):
        return b"".join(self.used) + self.data


class Clients:
    """`count` threads that send requests to a server until ended."""

    def __init__(self, server, rng, count, ending=None):
        self.server, self.port = server, server.port
        self.said = []  # by the server, until something was wrong
        self.figures = collections.Counter()
        self.answers = collections.Counter()  # right ones, by way
        self.wrong = []
        self.lock = threading.Lock()
        self.ending = ending or threading.Event()  # of several groups of clients
        self.pulse = Pulse(self.ending)
        self.threads = [threading.Thread(target=self.run, args=(type(rng)(rng.random()),),
                                         daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def ask(port, pool, rng):
        """The status of a plain answer."""
        with Connection(port) as connection:
            connection.send(f"GET /{pool}/plain/1/0/{new_token(rng).decode()} HTTP/1.1\r\n"
                            "Host: test\r\n\r\n".encode())
            return int(connection.until(b"\r\n").split(b" ", 2)[1])

    def end(self, seconds):
        """Awaits pending responses."""
        self.ending.set()
        deadline = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self.threads):
            self.wrong.append("a client has waited for an answer for too long")

    def run(self, rng):
        try:
            while not self.ending.is_set():
                with Asker(self.port, rng.random() < 0.05) as asker:
                    self.connected(asker, rng)
        except Exception as error:  # reported by the stage
            with self.lock:
                self.said = self.said or self.server.errors.text().splitlines()
            self.wrong.append(f"{type(error).__name__}: {error}")
            self.ending.set()

    def connected(self, asker, rng):
        """Some requests of one connection, up to three at a time."""
        for _ in range(rng.randint(1, 8)):
            asked = [Request(rng)]
            # None of them closes or leaves before the others have their responses.
            while rng.random() < 0.2 and len(asked) < 3 and asked[-1].left is None \
                    and asked[-1].sent is None and not asked[-1].uploaded:
                asked.append(Request(rng))
            if not self.send(asker, asked, rng):
                return
            for number, one in enumerate(asked):
                if not self.receive(asker, one):
                    return
                if number == len(asked) - 1 and asker.data:
                    raise Wrong(f"{one.path}: {len(asker.data)} bytes after its response: "
                                f"{asker.data[:60]!r}")
            if self.ending.is_set():
                return

    def send(self, asker, asked, rng):
        """Returns false if the client has left."""
        data = b"".join(one.head() + one.upload() for one in asked)
        left = asked[-1].sent
        if left is not None:
            data = data[:int(left * len(data))]
        with contextlib.suppress(ConnectionError):  # there may be a response all the same
            at = 0
            if rng.random() < 0.3:
                at = rng.randrange(len(data) + 1)
                asker.send(data[:at])
                threading.Event().wait(rng.random() * 0.01)
            asker.send(data[at:])
        if left is not None:
            self.leave(asker, asked[-1])
            self.add("uploads left")
        return left is None

    def add(self, name, number=1):
        with self.lock:
            self.figures[name] += number

    @staticmethod
    def leave(asker, one):
        if one.resets:
            asker.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def receive(self, asker, one):
        """Checks one response; returns whether the connection may have more."""
        asker.begin(one.left)
        asker.fields = {}
        try:
            status, body, stays = asker.response(one.method == "HEAD")
        except Leaving:
            self.check_tokens(asker, one)
            self.leave(asker, one)
            self.add("answers left")
            return False
        except Cut:
            status, body, stays = 0, None, False
        except socket.timeout as error:
            raise Wrong(f"{one.method} {one.path}: no answer") from error
        self.check_tokens(asker, one)
        one.fields = asker.fields
        self.judge(one, status, body)
        return stays

    @staticmethod
    def check_tokens(asker, one):
        # After a response, bytes of the next may have come: its own check sees them.
        seen = b"".join(asker.used) if asker.data and asker.used else asker.seen()
        for token in set(TOKEN.findall(seen)):
            if token != one.token:
                raise Wrong(f"{one.method} {one.path}: an answer of another client, {token!r}: "
                            f"{seen[:300]!r}")

    def judge(self, one, status, body):
        what = f"{one.method} {one.path}: status {status}"
        if status == 200 and body is not None:
            if one.method != "HEAD" and not one.way == "endless" \
                    and body != (one.body[:5000] if one.way == "tiny" else
                                 lines(one.token, 1) if one.way == "late" else one.body):
                raise Wrong(f"{what}: a whole body of {len(body)} bytes, which is not right: "
                            f"{body[:60]!r}")
            with self.lock:
                self.answers[one.way] += 1
            self.add("answers")
        elif status in ERRORS:
            self.add(f"status {status}")
            if one.way == "plain":
                self.add("plain ones lost")
        elif status in (0, 200) and one.way not in RIGHT:
            self.add("cut off")
        elif status in (0, 200) and body is None and self.pulse.stood_still(one.began):
            # The server has waited for as long as it is configured to.
            self.add("cut off since the applications stood still")
        else:
            raise Wrong(f"{what}, cut off: {body is None}")
