# SPDX-License-Identifier: MIT
"""Clients that request the pages of a site at random, each in a thread, and check
every received byte."""

import collections
import contextlib
import socket
import threading
import time

from client import Client
from server import TIMEOUT

SLOW_PAUSE = 0.005  # seconds, between the small reads of a slow client
Failure = collections.namedtuple("Failure", "page status began ended")  # status 0: cut off


class Cut(Exception):
    """The connection was closed within a response, or before it."""


class Connection(Client):
    """Responses of any length, chunked ones too; slow: in small pieces, with pauses."""

    def __init__(self, port, slow=False):
        self.slow = slow
        super().__init__(port, buffer=4096 if slow else None)

    def part(self):
        """Returns received data, at least a byte."""
        if self.slow:
            threading.Event().wait(SLOW_PAUSE)
        try:
            data = self.socket.recv(16384 if self.slow else 1 << 20)
        except ConnectionError as error:
            raise Cut from error
        if not data:
            raise Cut
        return data

    def take(self, length):
        parts, have = [self.data], len(self.data)
        while have < length:
            parts.append(self.part())
            have += len(parts[-1])
        data = b"".join(parts)
        self.data = data[length:]
        return data[:length]

    def until(self, end):
        while end not in self.data:
            self.data += self.part()
        found, _, self.data = self.data.partition(end)
        return found

    def chunks(self):
        body = []
        while length := int(self.until(b"\r\n"), 16):
            body.append(self.take(length))
            assert self.take(2) == b"\r\n"
        assert self.take(2) == b"\r\n"
        return b"".join(body)

    def ask(self, page, close=False):
        """Returns status, body, and whether the connection stays open."""
        self.answered = False
        with contextlib.suppress(ConnectionError):  # there may be a response all the same
            self.send(page.request(close))
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        self.answered = True
        status = int(lines[0].split(" ", 2)[1])
        fields = {name.lower(): value for name, _, value in
                  (line.partition(": ") for line in lines[1:])}
        if page.method == "HEAD":
            body = b""
        elif fields.get("transfer-encoding") == "chunked":
            body = self.chunks()
        else:
            body = self.take(int(fields["content-length"]))
        return status, body, fields.get("connection") != "close"


class Visitors:
    """`count` threads that send requests until stopped. may_fail(page): whether a
    bad gateway or a cut-off response is recorded in failures; any other error is wrong, and
    stops them. may_close: an idle connection may be closed at any time, as by the old
    processes of mp.
    """

    def __init__(self, port, pages, rng, count, may_fail, kept=20, slow=0, may_close=False):
        self.may_close = may_close
        self.port, self.pages, self.may_fail, self.kept = port, pages, may_fail, kept
        self.weights = [page.weight for page in pages]
        self.good = collections.Counter()  # by pool
        self.bytes = 0
        self.failures = []
        self.wrong = []
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.threads = [
            threading.Thread(target=self.visit, args=(type(rng)(rng.random()), number < slow),
                             daemon=True)
            for number in range(count)]
        for thread in self.threads:
            thread.start()

    def end(self):
        """Awaits pending responses; returns a description of the error, or None."""
        self.ending.set()
        for thread in self.threads:
            thread.join(2 * TIMEOUT)
        if any(thread.is_alive() for thread in self.threads):
            return "a client has waited for an answer for too long"
        return self.wrong[0] if self.wrong else None

    def visit(self, rng, slow):
        try:
            while not self.ending.is_set():
                self.connected(rng, slow)
        except Exception as error:  # reported by the stage
            self.complain(f"{type(error).__name__}: {error}")

    def complain(self, what):
        with self.lock:
            self.wrong.append(what)
        self.ending.set()

    def connected(self, rng, slow):
        """One connection, for some requests."""
        with Connection(self.port, slow) as connection:
            left = rng.randint(1, self.kept)
            stays, fresh = True, True
            while stays and left and not self.ending.is_set():
                left -= 1
                page = rng.choices(self.pages, self.weights)[0]
                stays = self.request(connection, page, left == 0, fresh)
                fresh = False

    def request(self, connection, page, close, fresh):
        began = time.monotonic()
        try:
            status, body, stays = connection.ask(page, close)
        except Cut:
            if self.may_close and not fresh and not connection.answered:
                return False
            status, body, stays = 0, b"", False
        except socket.timeout:
            self.complain(f"{page.method} {page.target}: no answer in {TIMEOUT} s")
            return False
        if status == page.status and page.is_right(body):
            with self.lock:
                self.good[page.pool] += 1
                self.bytes += len(body)
            return stays
        failure = Failure(page, status, began, time.monotonic())
        if status in (0, 502, 503) and self.may_fail(page):
            with self.lock:
                self.failures.append(failure)
            return stays
        what = (f"status {status}" if status != page.status else
                f"wrong body of {len(body)} bytes") if status else "cut off"
        self.complain(f"{page.method} {page.target} ({page.fields.strip()}): {what}: "
                      f"{body[:100]!r}")
        return False
