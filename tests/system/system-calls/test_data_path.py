# SPDX-License-Identifier: MIT
"""Bodies as bytes, through pipes and plain system calls (--data-path posix): the same
responses, and the same handling of errors."""

import array
import contextlib
import fcntl
import os
import signal
import termios
import time

import pytest

from client import Client, Closed, fetch, request
from examples import worker
from files import KB, MB, pattern, write
from server import GENERATE, OBEY, STREAM, TIMEOUT, Server, inside, running
from stopped import stop
from test_generate import page
from test_worker_stream import ask, await_cancellations, chunks, numbers, reset

SIZES = [0, 1, 4095, 4096, 4097, 64 * KB - 100, 64 * KB, 64 * KB + 1, 100000, MB, 4 * MB]
SMALL_BUFFER = 4096
LARGE = pattern(8 * MB)  # streamed, with that cache
CACHE = 16 * MB


def serve(kind, root, *options):
    return running(kind, root, "--worker", f"/generate={GENERATE}", "--worker", f"/obey={OBEY}",
                   "--worker", f"/stream={STREAM}", "--worker", f"/template={worker('template')}",
                   "--workers", 1, *options)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("path")
    write(root / "small", b"small\n")
    write(root / "middle", pattern(MB + 1))
    write(root / "large", LARGE)
    return root


@pytest.fixture(scope="module")
def posix(kind, root):
    with serve(kind, root, "--data-path", "posix", "--cache-size", 64 * MB,
               "--max-body=0") as server:
        yield server


@pytest.fixture(scope="module")
def nabc(kind, root):
    with serve(kind, root) as server:
        yield server


def without_date(answer):
    return {name: value for name, value in answer.fields.items() if name != "date"}


@pytest.mark.parametrize("target", [
    *(f"/generate?size={size}" for size in SIZES), "/generate?size=abc", "/obey/list",
    "/obey/kept", "/obey/header", "/obey/no-such-order", "/template/a?b", "/small", "/middle",
])
def test_same_answers(posix, nabc, target):
    """Compares status, fields and bytes; and the next response must begin where this one ends."""
    with Client(posix.port) as one, Client(nabc.port) as other:
        for method in ("GET", "HEAD", "GET"):
            mine, others = one.get(target, method), other.get(target, method)
            assert mine.status == others.status
            assert without_date(mine) == without_date(others)
            # The pages of the template have a number.
            assert mine.body == others.body or "/template" in target
        if target.startswith("/generate?size=") and mine.status == 200:
            assert mine.body == page(int(target.rpartition("=")[2]))


def test_several_ranges(posix):
    with Client(posix.port) as client:
        pages = [client.get(f"/template/{number}").body for number in range(30)]
        for number, body in enumerate(pages):
            assert b"/%d" % number in body
            assert len(body) - len(str(number)) in range(len(pages[0]) - 3, len(pages[0]) + 3)
        assert len(set(pages)) == 30
        for _ in range(10):
            assert client.get("/obey/list").body.count(b"a line of three\n") == 2


def test_pieces(posix):
    with Client(posix.port) as client:
        for count, size in ((1, 1000), (20, 100), (100, 70000)):
            assert ask(client, f"pieces?{count}:{size}")["Transfer-Encoding"] == "chunked"
            assert numbers(chunks(client), size) == list(range(count))
        assert numbers(client.get("/stream/pieces?30:5000:150000").body, 5000) == list(range(30))
        # More than announced, and less.
        assert numbers(client.get("/stream/pieces?9:5000:12000").body, 5000) == [0, 1, 2]
        with pytest.raises(Closed) as closed:
            client.get("/stream/pieces?2:5000:10001")
        assert len(closed.value.data) == 10000


def test_pipeline(posix):
    sizes = [10, 100000, 0, 5000, MB, 1, 70000] * 3
    with Client(posix.port) as client:
        client.send(b"".join(request(f"/generate?size={size}") + request("/small")
                             for size in sizes))
        for size in sizes:
            assert client.response().body == page(size)
            assert client.response().body == b"small\n"


def test_uploads(posix):
    with Client(posix.port) as client:
        for size in (1000, MB, 3 * MB):
            body = pattern(size)
            client.send(b"POST /stream/sum HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n"
                        % size)
            client.send(body)
            assert client.response().body.split()[1] == b"%d" % size


def test_files(posix):
    with Client(posix.port) as client:
        for _ in range(3):
            assert client.get("/middle").body == pattern(MB + 1)
        got = client.get("/middle", fields="Range: bytes=5-99999,200000-200004\r\n")
        assert got.status == 206
        assert pattern(MB + 1)[5:100000] in got.body
        assert pattern(MB + 1)[200000:200005] in got.body


@pytest.mark.parametrize("target, body", [
    ("/generate?size=4194304", page(4 * MB)), ("/large", LARGE),
], ids=["worker", "file"])
def test_slow_reader(kind, root, target, body):
    with serve(kind, root, "--data-path", "posix", "--cache-size", CACHE) as server, \
            Client(server.port, SMALL_BUFFER) as slow, Client(server.port) as other:
        slow.send(request(target))
        assert b"Content-Length: %d" % len(body) in slow.head()
        assert other.get("/generate?size=100000").body == page(100000)
        got = bytearray(slow.data)
        slow.data = b""
        while len(got) < len(body):
            piece = slow.socket.recv(10 * KB)
            assert piece
            got += piece
        assert bytes(got) == body
        assert slow.get("/small").body == b"small\n"


def test_memory_is_bounded(kind, root):
    """Slow clients hold at most the size of the cache; others get an error."""
    with serve(kind, root, "--data-path", "posix", "--cache-size", CACHE,
               "--threads", 1) as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server.port, SMALL_BUFFER)) for _ in range(40)]
        for client in clients:
            client.send(request("/generate?size=4194304"))
        said = [b" 200 " in client.head().partition(b"\r\n")[0] for client in clients]
        assert any(said) and not all(said)
        (held, *_) = [client for client, good in zip(clients, said) if good]
        assert held.take(4 * MB) == page(4 * MB)
        for client in clients:
            client.close()
        with Client(server.port) as client:
            server.wait_status(lambda status: status["connections"]["open"] <= 2)
            assert client.get("/generate?size=4194304").body == page(4 * MB)


def test_client_that_goes(posix):
    for target, read in (("/generate?size=4194304", 0), ("/generate?size=4194304", 100 * KB),
                         ("/middle", 1), ("/obey/list", 0)):
        for _ in range(5):
            with Client(posix.port, SMALL_BUFFER) as client:
                client.send(request(target))
                if read:
                    client.take(read)
    assert fetch(posix.port, "/generate?size=4194304").body == page(4 * MB)
    with Client(posix.port, SMALL_BUFFER) as client:
        assert ask(client, "endless").status == 200
        client.take(200 * KB)
        reset(client)
    await_cancellations(posix, 1)


def test_end_in_mid_request(kind, root):
    with serve(kind, root, "--data-path", "posix") as server, Client(server.port) as client:
        assert client.get("/obey/exit").status == 502
        assert client.get("/obey/kept").body == b"the same each time\n"
        assert client.get("/stream/die?0").status == 502
        assert ask(client, "die?3").status == 200
        with pytest.raises(AssertionError):
            chunks(client)


def pipes(pid):
    """Returns the pipes of a process except its standard descriptors: their names and numbers."""
    found = {}
    for number in os.listdir(inside(pid, "fd")):
        with contextlib.suppress(OSError):
            if int(number) > 2 and (what := os.readlink(f"/proc/{pid}/fd/{number}")).startswith("pipe:"):
                found[what] = number
    return found


def waiting(pid, number):
    """Returns the number of bytes in a pipe of a process."""
    there = array.array("i", [0])
    fd = os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.ioctl(fd, termios.FIONREAD, there)
    finally:
        os.close(fd)
    return there[0]


def test_killed_in_mid_body(kind, root):
    """The server has a part of a body and will never get the rest."""
    server = Server(kind, root, "--worker", f"/generate={GENERATE}", "--workers", 1,
                    "--data-path", "posix", "--threads", 1)
    try:
        assert fetch(server.port, "/generate?size=5").body == page(5)
        ((pid, process),) = server.workers().items()
        inside(server.pid, "fd")
        asked = server.status()["workers"]["requests"]
        stop(pid)
        with Client(server.port) as client:
            client.send(request("/generate?size=1000000"))
            server.wait_status(lambda status: status["workers"]["requests"] > asked)
            # The worker is notified at the end of a turn, which this response shows.
            server.status()
            # It sleeps until the pipe is full and the worker waits in the middle.
            stop(server.pid)
            os.kill(pid, signal.SIGCONT)
            shared = [number for what, number in pipes(server.pid).items() if what in pipes(pid)]
            deadline = time.monotonic() + TIMEOUT
            while max(waiting(server.pid, number) for number in shared) < 64 * KB:
                assert time.monotonic() < deadline
            process.kill()
            assert process.ended()
            os.kill(server.pid, signal.SIGCONT)
            assert client.response().status == 502
            assert client.get("/generate?size=100000").body == page(100000)
        server.stop()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.pid, signal.SIGCONT)
        server.kill()


def test_kept_answers_are_copies(posix):
    before = posix.status()["workers"]["requests"]
    with Client(posix.port) as client:
        for _ in range(10):
            assert client.get("/generate?size=5000&cached=1").body == page(5000)
    assert posix.status()["workers"]["requests"] - before == 2


def test_how_they_went(posix):
    assert posix.ready.endswith(", data path posix)")
    before = posix.status()
    assert before["data_path"] == "posix"
    with Client(posix.port) as client:
        for size in SIZES:
            assert client.get(f"/generate?size={size}").body == page(size)
        assert client.get("/middle").status == 200
    after = posix.wait_status(
        lambda status: status["bodies"]["bytes"] - before["bodies"]["bytes"] >= sum(SIZES) + MB
    )
    assert after["workers"]["message_bytes"] - before["workers"]["message_bytes"] >= sum(SIZES)
    assert after["workers"]["body_bytes_by_cache_id"] == 0
    for method in ("copy", "splice", "zerocopy", "kernel"):
        assert after["transmit"][method]["sends"] == 0


def test_default(nabc):
    assert nabc.ready.endswith(")") and "data path" not in nabc.ready
    assert nabc.status()["data_path"] == "nabc"
