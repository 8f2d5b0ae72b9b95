# SPDX-License-Identifier: MIT
"""The benchmarks' own client, bench/client: against the server, and against sockets
that respond as no server should."""

import contextlib
import os
import socket
import subprocess
import threading
import time

import pytest

from files import KB, MB, pattern, write
from server import SCALE, STREAM, TIMEOUT, UNDER, VALGRIND

pytestmark = pytest.mark.bench

CLIENT = os.path.join(os.environ["builddir"], "bench", "client")
ERRORS = ("connect", "read", "write", "status", "timeout", "answer", "size")
SIZES = {"/small": 1 * KB, "/empty": 0, "/middle": 40 * KB, "/large": 3 * MB}


def run(port, lines, *options, seconds=TIMEOUT):
    """Returns the output of the client, as numbers."""
    argv = [*UNDER, CLIENT, "--list", "-", "--seconds", str(seconds), *map(str, options),
            f"127.0.0.1:{port}"]
    done = subprocess.run(argv, input="".join(f"{line}\n" for line in lines), text=True,
                          capture_output=True, timeout=3 * TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    assert "==ERROR" not in done.stderr
    word, *pairs = done.stdout.split()
    assert word == "bench"
    return {name: int(value) for name, value in (pair.split("=") for pair in pairs)}


def errors(figures):
    return {name: figures[name] for name in ERRORS if figures[name]}


@pytest.fixture
def server(start, tmp_path):
    for path, size in SIZES.items():
        write(tmp_path / "root" / path[1:], pattern(size))
    return start(tmp_path / "root", "--worker", f"/stream={STREAM}", "--workers", 1)


def lines():
    return [f"{path} {size}" for path, size in SIZES.items()]


def test_kept_connections(server):
    count = 4000 // SCALE
    got = run(server.port, lines(), "--clients", 8, "--requests", count)
    assert errors(got) == {}
    assert (got["requests"], got["connections"]) == (count, 8)
    assert got["bytes"] == count // 4 * sum(SIZES.values())
    assert 0 < got["p50"] <= got["p99"] <= got["max"] <= got["duration"]


@pytest.mark.parametrize("options", [[], ["--delay-ack-syn", "--delay-ack-fin"], ["--fastopen"],
                                     ["--source", "127.0.0.2,127.0.0.3"]])
def test_connection_for_each_request(server, options):
    count = 320 // SCALE
    got = run(server.port, lines(), "--clients", 8, "--requests", count, "--close", *options)
    assert errors(got) == {}
    assert (got["requests"], got["connections"]) == (count, count)
    assert got["bytes"] == count // 4 * sum(SIZES.values())


def test_time_ends_it(server):
    got = run(server.port, lines(), "--clients", 8, seconds=0.5)
    assert errors(got) == {}
    assert got["requests"] > 0
    assert 500000 <= got["duration"] < TIMEOUT * 1000000


def test_each_draws_for_itself(server):
    count = 2000 // SCALE
    got = run(server.port, lines(), "--clients", 8, "--requests", count, "--shuffle", 7)
    assert errors(got) == {}
    assert got["requests"] == count
    assert got["bytes"] != count // 4 * sum(SIZES.values())


def test_other_answers_than_the_list_tells_of(server):
    wanted = ["/small 1024", "/missing", "/missing - 404", "/small 1025", "/small"]
    got = run(server.port, wanted, "--clients", 1, "--requests", 50)
    assert errors(got) == {"status": 10, "size": 10}
    assert got["requests"] == 30


def test_chunked(server):
    """The worker does not announce the length of its response; with HTTP/1.0 it lasts until the
    end."""
    length = 5 * 100 * KB
    for options in ([], ["--close"]):
        got = run(server.port, [f"/stream/pieces?5:{100 * KB} {length}"], "--clients", 2,
                  "--requests", 20, *options)
        assert errors(got) == {}
        assert (got["requests"], got["bytes"]) == (20, 20 * length)


def test_surge(server, tmp_path):
    done = subprocess.run([*UNDER, CLIENT, "--documents", "50", "--surge", "3"],
                          capture_output=True, text=True, timeout=TIMEOUT, check=True)
    documents = [line.split() for line in done.stdout.splitlines()]
    assert [path for path, _ in documents] == [f"/{number:05d}" for number in range(50)]
    for path, size in documents:
        write(tmp_path / "root" / path[1:], pattern(int(size)))
    for options in ([], ["--pages"], ["--close"]):
        got = run(server.port, done.stdout.splitlines(), "--surge", 3, "--time-scale", 0.002,
                  "--clients", 20, "--requests", 800 // SCALE, *options)
        assert errors(got) == {}
        assert got["requests"] == 800 // SCALE
    assert got["connections"] == 800 // SCALE


@pytest.mark.parametrize("options", [[], ["--close"]])
def test_rate(server, options):
    """Exactly as many as are due; at random times, but always the same ones."""
    got = run(server.port, lines(), "--clients", 8, "--rate", 200 // SCALE, *options, seconds=2)
    assert errors(got) == {}
    assert 0.8 * 400 // SCALE < got["requests"] + got["late"] < 1.2 * 400 // SCALE + 10
    assert got["duration"] >= 2000000


def test_rate_ends_with_the_requests(server):
    got = run(server.port, lines(), "--clients", 8, "--rate", 1000, "--requests", 100)
    assert errors(got) == {}
    assert (got["requests"], got["late"]) == (100, 0)


# --- responses of a script -----------------------------------------------------


class Script:
    """A thread that responds to each connection by a function of its socket."""

    def __init__(self, answer):
        self.answer = answer
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self.serve)]
        self.threads[0].start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection = self.listener.accept()[0]
                self.connections += 1
                thread = threading.Thread(target=self.talk, args=(connection,))
                self.threads.append(thread)
                thread.start()

    def talk(self, connection):
        with connection, contextlib.suppress(OSError):
            connection.settimeout(TIMEOUT)
            self.answer(connection)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(TIMEOUT)


@pytest.fixture
def script():
    """script(answer): a port."""
    started = []

    def begin(answer):
        started.append(Script(answer))
        return started[-1].port

    yield begin
    for one in started:
        one.close()


def request(connection):
    """Returns the next head of a request, or b"" at the end."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        more = connection.recv(1)
        if not more:
            return b""
        data += more
    return data


def always(text, keep=True, pieces=None):
    """Sends the same bytes to each request."""

    def answer(connection):
        while request(connection):
            for at in range(0, len(text), pieces or len(text)):
                connection.sendall(text[at : at + (pieces or len(text))])
            if not keep:
                return

    return answer


GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"


@pytest.mark.parametrize("text", [GOOD, CHUNKED, b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD])
@pytest.mark.parametrize("pieces", [None, 1])
def test_good_answers(script, text, pieces):
    got = run(script(always(text, pieces=pieces)), ["/ 5"], "--clients", 2, "--requests", 20)
    assert errors(got) == {}
    assert (got["requests"], got["bytes"], got["connections"]) == (20, 100, 2)


def test_answers_until_the_end(script):
    port = script(always(b"HTTP/1.1 200 OK\r\n\r\nhello", keep=False))
    for options in ([], ["--close"]):
        got = run(port, ["/ 5"], "--requests", 10, *options)
        assert errors(got) == {}
        assert (got["requests"], got["connections"]) == (10, 10)


def test_connection_that_is_told_to_end(script):
    port = script(always(GOOD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), keep=False))
    got = run(port, ["/ 5"], "--requests", 10)
    assert errors(got) == {}
    assert (got["requests"], got["connections"], got["again"]) == (10, 10, 0)


def test_kept_connection_that_ends_untold(script):
    """The request may cross the close of the connection: it is sent again, and counted."""
    got = run(script(always(GOOD, keep=False)), ["/ 5"], "--requests", 10)
    assert errors(got) == {}
    assert got["requests"] == 10
    assert got["connections"] == 10


BAD = {
    "no HTTP": (b"hello\r\n", True, "answer"),
    "bytes behind it": (GOOD + b"more", True, "answer"),
    "half a head": (GOOD[:20], False, "read"),
    "half a body": (GOOD[:-2], False, "read"),
    "half a chunk": (CHUNKED[:-12], False, "read"),
    "nothing": (b"", False, "read"),
    "another length": (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell", True, "size"),
    "another status": (b"HTTP/1.1 500 Oh\r\nContent-Length: 5\r\n\r\nhello", True, "status"),
    "lengths that differ": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
                            True, "answer"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("options", [[], ["--close"]])
def test_bad_answers(script, name, options):
    text, keep, kind = BAD[name]
    port = script(always(text, keep=keep and not options) if text else lambda socket: None)
    got = run(port, ["/ 5"], "--clients", 2, "--requests", 6, *options)
    assert got["requests"] == 0
    assert errors(got) == {kind: 6}


def test_silence(script):
    def silent(connection):
        while connection.recv(4096):
            pass

    got = run(script(silent), ["/ 5"], "--clients", 3, "--requests", 3, "--timeout", 0.2)
    assert (got["requests"], errors(got)) == (0, {"timeout": 3})


def test_server_that_never_closes(script):
    """A complete response, but the server does not close the connection as announced."""
    got = run(script(always(GOOD)), ["/ 5"], "--requests", 1, "--close", "--timeout", 0.2)
    assert errors(got) == {"timeout": 1}


def test_reset(script):
    def reset(connection):
        request(connection)
        connection.sendall(GOOD[:-1])
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    got = run(script(reset), ["/ 5"], "--clients", 2, "--requests", 6)
    assert (got["requests"], errors(got)) == (0, {"read": 6})


def test_times_count_from_when_a_request_was_due(script):
    """One client; responses take longer than the time between two requests."""
    def slow(connection):
        while request(connection):
            time.sleep(0.05)
            connection.sendall(GOOD)

    port = script(slow)
    closed = run(port, ["/ 5"], seconds=1)
    got = run(port, ["/ 5"], "--rate", 100, seconds=1)
    assert errors(got) == errors(closed) == {}
    # About 80 of 100 are late, and count.
    assert got["late"] > got["requests"] > 0 == closed["late"]
    assert got["p50"] > 3 * closed["p50"]
    assert got["max"] > 500000


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    got = run(port, ["/ 5"], "--clients", 3, seconds=0.3)
    assert got["requests"] == 0
    # A pause after each error: no busy loop.
    assert 3 <= got["connect"] <= 120
    assert errors(got) == {"connect": got["connect"]}


def test_endless_answer_ends_with_the_time(script):
    def endless(connection):
        request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    got = run(script(endless), ["/"], "--clients", 2, seconds=0.5)
    assert (got["requests"], errors(got)) == (0, {})
    assert got["duration"] < (60 if VALGRIND else 5) * 1000000


# --- its command line ----------------------------------------------------------


@pytest.mark.parametrize("arguments, words", [
    ([], "usage:"),
    (["1.2.3.4"], "usage:"),
    (["x:80"], "usage:"),
    (["--clients", "0", "127.0.0.1:80"], "--clients 0: bad value"),
    (["--seconds", "-1", "127.0.0.1:80"], "--seconds -1: bad value"),
    (["--source", "1.2.3", "127.0.0.1:80"], "--source"),
    (["--field", "no colon", "127.0.0.1:80"], "--field no colon: bad value"),
    (["--shuffle", "1", "--surge", "1", "127.0.0.1:80"], "exclude each other"),
    (["--rate", "1", "--surge", "1", "127.0.0.1:80"], "exclude each other"),
    (["--rate", "0", "127.0.0.1:80"], "--rate 0: bad value"),
    (["--nonsense", "127.0.0.1:80"], "usage:"),
])
def test_bad_command_lines(arguments, words):
    done = subprocess.run([CLIENT, *arguments], capture_output=True, text=True, timeout=TIMEOUT,
                          check=False)
    assert done.returncode == 2
    assert words in done.stderr and not done.stdout


@pytest.mark.parametrize("text, words", [("/a 1\nb 2\n", "line 2 is not PATH"),
                                         ("# nothing\n", "No data available")])
def test_bad_lists(text, words):
    done = subprocess.run([CLIENT, "--list", "-", "127.0.0.1:9"], input=text, capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 1
    assert words in done.stderr and not done.stdout
