# SPDX-License-Identifier: MIT
"""Clients that read, or send, almost nothing: they occupy no program.  Each pool here
has one process, which does one thing at a time."""

import contextlib
import threading

import pytest

from client import Client, Response, request
from files import KB, MB, pattern, write
from responder import STDERR, STDOUT, Application, record
from server import STREAM, TIMEOUT

PIECE = 64 * KB
MANY = 64 * MB
SHOWN = 512 * KB  # of an endless response
SHORT = 0.2  # seconds, for clients that are to be disconnected


def flood(asked):
    """The announced number of bytes, and then an endless excess."""
    asked.send(record(STDOUT, b"Content-Length: %d\r\n\r\n" % SHOWN))
    data = record(STDOUT, bytes(32768)) * 64 + record(STDERR, bytes(32768)) * 64
    with contextlib.suppress(OSError):
        while True:
            asked.send(data)


class Programs:
    """Programs of one protocol; each responds to /pieces?COUNT:SIZE, /small, and /sum for a
    body."""

    def __init__(self, protocol, folder, start):
        self.protocol = protocol
        self.folder = folder
        self.start = start
        self.application = None
        self.server = None

    def serve(self, clock=None, **keys):
        """With a clock that stands unless moved, only slow-client expires."""
        how = {"worker": self.worker, "cgi": self.cgi, "fastcgi": self.fastcgi}[self.protocol]()
        # Otherwise no program waits for a slow client; test_buffering.py tests that.
        keys = {"request_buffering": "off", "response_buffering": "off", **keys}
        if clock:
            keys["timeout"] = "1h"
        lines = "".join(f"{key.replace('_', '-')}={value}\n" for key, value in keys.items())
        others = "body-timeout=1h\nsend-timeout=1h\n" if clock else ""
        config = write(self.folder / "sweet.conf", (
            f"[sweet]\nlisten=127.0.0.1:0\nroot={self.folder}\nthreads=1\nmax-body=0\n"
            f"{others}[pool app]\nprotocol={self.protocol}\nin-flight=1\nqueue-timeout={TIMEOUT}s\n"
            f"{how}\n{lines}[path /app]\npool=app\n").encode())
        self.server = self.start(None, "--config", config, listen=None, clock=clock)
        return self.server

    def worker(self):
        return f"processes=1\ncommand={STREAM}"

    def cgi(self):
        for name, text in {
            "small": "echo small",
            "pieces": "head -c $((${QUERY_STRING%:*} * ${QUERY_STRING#*:})) /dev/zero",
            "sum": "md5sum",
            "flood": "exec cat /dev/zero",
        }.items():
            length = f"Content-Length: {SHOWN}\\r\\n" if name == "flood" else ""
            text = ("#!/bin/sh\n"
                    f"printf 'Content-Type: text/plain\\r\\n{length}\\r\\n'\n{text}\n")
            write(self.folder / "cgi" / name, text.encode()).chmod(0o755)
        self.folder.chmod(0o755)
        return f"processes=1\nfolder={self.folder}/cgi"

    def fastcgi(self):
        def handle(asked):
            asked.body()
            if "flood" in asked.variables["SCRIPT_NAME"] + asked.variables["PATH_INFO"]:
                flood(asked)
                return False
            count, _, size = asked.variables.get("QUERY_STRING").partition(":")
            body = bytes(int(count) * int(size)) if size else b"small\n"
            asked.answer(body, size=32768)

        self.application = Application(handle, self.folder / "app.sock")
        return f"upstream={self.application.address}\nscript-suffix="

    def small(self):
        """A response that needs the one process."""
        # The stream worker has nothing smaller.
        name = "list" if self.protocol == "worker" else "small"
        with Client(self.server.port) as client:
            client.send(request(f"/app/{name}"))
            answer = Response(client.head(), b"")
            whole(client, answer)
            return answer.status

    def slow(self):
        return self.server.status()["workers"]["slow_clients"]

    def await_taken(self):
        """An application that does not read a request is given up, after a timeout of its own."""
        self.server.wait_status(lambda _: not self.application or self.application.requests)

    def await_idle(self):
        def idle(status):
            pools = status["workers"]["pools"]
            return (status["cache"]["units"] == 0
                    and all(process["in_flight"] == 0 for pool in pools
                            for process in pool["processes"]))

        self.server.wait_status(idle)


@pytest.fixture(params=["worker", "cgi", "fastcgi"])
def programs(request, tmp_path, start):
    made = Programs(request.param, tmp_path, start)
    yield made
    if made.application:
        made.application.close()


def ask(client, count, size):
    client.send(request(f"/app/pieces?{count}:{size}"))


def whole(client, answer):
    """Reads the body of the response whose head was read; returns its length."""
    if "Content-Length" in answer:
        return len(client.take(int(answer["Content-Length"])))
    bytes = 0
    while True:
        while b"\r\n" not in client.data:
            client.more()
        text, _, client.data = client.data.partition(b"\r\n")
        size = int(text, 16)
        assert client.take(size + 2).endswith(b"\r\n")
        if not size:
            return bytes
        bytes += size


@pytest.mark.parametrize("reads", ["nothing", "crumbs"])
@pytest.mark.parametrize("ahead", ["0", "4M"])
def test_slow_reader(programs, reads, ahead):
    server = programs.serve(slow_client=f"{int(1000 * SHORT)}ms", stream_ahead=ahead)
    ended = threading.Event()

    def crumbs():
        while not ended.wait(0.02):
            try:
                if not slow.socket.recv(1):
                    return
            except OSError:
                return

    with Client(server.port, buffer=PIECE) as slow:
        ask(slow, MANY // PIECE, PIECE)
        assert b" 200 " in slow.head()
        reader = threading.Thread(target=crumbs)
        if reads == "crumbs":
            reader.start()
        assert programs.small() == 200
        ended.set()
        if reads == "crumbs":
            reader.join()
        # The bytes in flight, and the end.
        with pytest.raises((AssertionError, ConnectionResetError)):
            slow.take(MANY)
    assert programs.slow() == 1
    assert server.errors.wait(r"^sweet: 127\.0\.0\.1: /app/pieces: pool app: kept a program "
                              rf"waiting for {SHORT:g} s: closing the connection$")
    assert server.errors.count("closing the connection") == 1
    assert server.errors.count("ending it") == 0
    programs.await_idle()


@pytest.mark.parametrize("size,keys", [(3 * MB, {}), (14 * MB, {"stream_ahead": "16M"})])
def test_program_is_free_at_once(programs, size, keys):
    """Its response waits in the server, forever; and is complete in the end.  A socket alone
    may buffer some MB."""
    server = programs.serve(slow_client="0s", **keys)
    with Client(server.port, buffer=PIECE) as slow:
        ask(slow, size // PIECE, PIECE)
        answer = Response(slow.head(), b"")
        for _ in range(2):
            assert programs.small() == 200
        assert whole(slow, answer) == size
    assert programs.slow() == 0
    programs.await_idle()


def test_more_than_was_announced(programs):
    """A program that writes as fast as it is read, without a client, lets the others use the
    one loop."""
    server = programs.serve(slow_client="0s", stream_ahead="4M")
    query = f"pieces?{10 ** 9}:{PIECE}:{SHOWN}" if programs.protocol == "worker" else "flood"
    with Client(server.port, buffer=PIECE) as slow, Client(server.port) as other:
        slow.send(request(f"/app/{query}"))
        answer = Response(slow.head(), b"")
        for _ in range(20):
            assert other.get("/none").status == 404
        assert whole(slow, answer) == SHOWN
    assert programs.small() == 200
    programs.await_idle()


def test_steady_reader_is_served(programs, clock):
    """Slowly, but steadily, pieces that take longer than the limit."""
    # The server may learn of a third of a full socket at once: a period is more than that.
    count, size, steps = 12, 4 * MB, 30
    server = programs.serve(clock, slow_client=f"{clock.limit}s", stream_ahead="64K")
    with Client(server.port, buffer=PIECE) as slow:
        ask(slow, count, size)
        answer = Response(slow.head(), b"")
        # The first piece takes three periods.
        taken = []
        for _ in range(steps):
            server.forward(clock.limit / 10)
            while len(slow.data) < size // steps:
                slow.more(size // steps)
            taken.append(slow.data)
            slow.data = b""
        slow.data = b"".join(taken) + slow.data
        assert whole(slow, answer) == count * size
    assert programs.slow() == 0
    assert programs.small() == 200
    programs.await_idle()


def test_slow_uploader(programs):
    """A client whose body arrives in pieces is disconnected."""
    server = programs.serve(slow_client=f"{int(1000 * SHORT)}ms")
    length = 4 * MB
    with Client(server.port) as slow:
        slow.send(f"POST /app/sum HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()
                  + pattern(MB))
        if programs.protocol == "worker":
            # It has begun; on a busy machine it may have ended as well.
            server.wait_status(lambda status: status["workers"]["slow_clients"] == 1
                               or status["workers"]["pools"][0]["processes"][0]["in_flight"] == 1)
        assert programs.small() == 200
        assert slow.response().status == 408
        assert programs.slow() == 1
    programs.await_idle()


def test_slow_uploader_of_little(programs, clock):
    """While the body is collected before the program gets it, no program waits."""
    server = programs.serve(clock, slow_client=f"{clock.limit}s")
    with Client(server.port) as slow:
        slow.send(f"POST /app/sum HTTP/1.1\r\nHost: x\r\nContent-Length: {MB}\r\n\r\n".encode()
                  + pattern(MB // 2))
        # The received part is collected, and more is expected.
        server.wait_status(lambda status: status["connections"]["reading"] == 1)
        server.forward(1.5 * clock.limit)
        assert programs.small() == 200
        slow.send(bytes(MB // 2))
        assert Response(slow.head(), b"").status == 200
        assert programs.slow() == 0
    programs.await_idle()


def test_steady_uploader_is_served(programs, clock):
    server = programs.serve(clock, slow_client=f"{clock.limit}s")
    length = 4 * MB
    with Client(server.port) as slow:
        slow.send(f"POST /app/sum HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()
                  + pattern(MB))
        programs.await_taken()
        # A window of 256 KB takes more than a period.
        for _ in range(20):
            server.forward(clock.limit / 3)
            slow.send(bytes(64 * KB))
        slow.send(bytes(length - MB - 20 * 64 * KB))
        assert Response(slow.head(), b"").status == 200
    assert programs.slow() == 0
    programs.await_idle()
