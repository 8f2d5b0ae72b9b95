# SPDX-License-Identifier: MIT
"""Bodies of requests that are too large to be collected: they reach a worker in
pieces, while the server keeps little of them."""

import hashlib
import re
import socket
import struct
import subprocess
import threading

import pytest

import tls
from client import Client, request
from files import KB, MB, pattern, write
from server import STREAM, TIMEOUT, UNDER, running, sanitized

WHOLE = MB  # limit for collection
PIECE = 256 * KB
GB = 1 << 30


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("upload")


def serve(kind, root, *options):
    if not any(str(option).startswith("--max-body") for option in options):
        options = ("--max-body=0", *options)
    return running(kind, root, "--worker", f"/stream={STREAM}", *options)


@pytest.fixture(scope="module")
def server(kind, root):
    with serve(kind, root, "--workers", 1, "--threads", 1) as server:
        yield server


def head(order, length=None, fields=b""):
    how = b"Content-Length: %d" % length if length is not None else b"Transfer-Encoding: chunked"
    return b"POST /stream/%s HTTP/1.1\r\nHost: test\r\n%s\r\n%s\r\n" % (order.encode(), how, fields)


def chunks(data, size):
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def cancellations(server):
    with Client(server.port) as client:
        return int(client.get("/stream/notes").body)


def await_cancellations(server, count):
    server.wait_status(lambda _: cancellations(server) >= count)


def worker(status):
    """The first one."""
    return status["workers"]["pools"][0]["processes"][0]


def await_idle(server):
    """Nothing is left behind."""
    server.wait_status(
        lambda status: status["cache"]["units"] == 0 and worker(status)["in_flight"] == 0
    )


@pytest.mark.parametrize(
    "size", [WHOLE, WHOLE + 1, WHOLE + 2, 5 * PIECE - 1, 5 * PIECE, 5 * PIECE + 1, 9 * MB]
)
def test_sizes(server, size):
    data = pattern(size)
    sum = hashlib.md5(data).hexdigest()
    with Client(server.port) as client:
        client.send(head("sum", size) + data)
        count, length, got = client.response().body.decode().split()
        assert (int(length), got) == (size, sum)
        assert int(count) == (1 if size <= WHOLE + 1 else (size + PIECE - 1) // PIECE)
        client.send(head("sum") + chunks(data, 100000))
        count, length, got = client.response().body.decode().split()
        assert (int(length), got) == (size, sum)
    await_idle(server)


@pytest.mark.parametrize("how", ["-T", "chunked", "expect"])
def test_curl(server, tmp_path, how):
    data = pattern(3 * MB + 5)
    path = str(write(tmp_path / "data", data))
    fields = {
        "-T": "Expect:",
        "chunked": "Transfer-Encoding: chunked",
        "expect": "Expect: 100-continue",
    }
    done = subprocess.run(
        ["curl", "-sS", "-v", "--noproxy", "*", "--max-time", str(TIMEOUT), "-T", path, "-H",
         fields[how], server.url + "/stream/sum"],
        capture_output=True, check=True, timeout=2 * TIMEOUT,
    )
    assert done.stdout.decode().split()[1:] == [str(len(data)), hashlib.md5(data).hexdigest()]
    if how == "expect":
        assert len(re.findall(rb"< HTTP/[0-9.]+ 100", done.stderr)) == 1


def test_pipeline(server):
    """Requests behind large bodies."""
    bodies = [pattern(size, size) for size in (2 * MB, 10, 3 * MB + 1, WHOLE + 7)]
    raw = b"".join(
        (head("sum") + chunks(body, 70000) if len(body) % 2 else head("sum", len(body)) + body)
        + request("/stream/notes")
        for body in bodies
    )
    with Client(server.port) as client:
        sender = threading.Thread(target=client.send, args=(raw,))
        sender.start()
        for body in bodies:
            assert client.response().body.decode().split()[2] == hashlib.md5(body).hexdigest()
            assert client.response().body.isdigit()
        sender.join()


@pytest.mark.skipif(bool(UNDER) or sanitized(), reason="their memory is not the server's")
@pytest.mark.parametrize("size,chunked", [
    pytest.param(GB, False, marks=pytest.mark.thorough), (256 * MB, True)])
def test_memory(root, size, chunked):
    """Neither the server nor its cache keeps more than a window of it."""
    block = pattern(MB)
    sum = hashlib.md5()
    most = 0
    with serve("epoll", root, "--workers", 1, "--threads", 1, "--cache-size=64M") as server:
        with Client(server.port) as client:
            client.send(head("sum", 2 * MB) + block * 2)
            assert client.response().status == 200
            before = server.memory()
            client.send(head("sum", None if chunked else size))
            for number in range(size // MB):
                sum.update(block)
                client.send(b"%x\r\n%s\r\n" % (MB, block) if chunked else block)
                if number % 64 == 0:
                    most = max(most, server.memory())
            if chunked:
                client.send(b"0\r\n\r\n")
            _, length, got = client.response().body.decode().split()
        assert (int(length), got) == (size, sum.hexdigest())
        assert most < before + 6 * MB
        # Nor did it meanwhile.
        with open(f"/proc/{server.pid}/status") as status:
            peak = int(re.search(r"VmHWM:\s*(\d+) kB", status.read())[1]) * KB
        assert peak < 64 * MB
        await_idle(server)


def test_early_answer(server):
    """A short rest is dropped; otherwise the connection is closed."""
    data = pattern(WHOLE + 2)
    with Client(server.port) as client:
        for _ in range(3):
            client.send(head("early?1", len(data)) + data)
            assert client.response().body == b"enough"
        client.send(head("early?1", 2 * GB) + data)
        answer = client.response()
        assert answer.body == b"enough"
        assert answer["Connection"] == "close"
    await_idle(server)


def test_client_that_goes(server):
    """While the server collects a piece, and while the worker has one."""
    before = cancellations(server)
    data = pattern(PIECE)
    cases = [("sum", 1), ("take?1", 1), ("sum", 3), ("take?3", 3)]
    for count, (order, pieces) in enumerate(cases, 1):
        with Client(server.port) as client:
            client.send(head(order, 8 * MB) + data * pieces)
            server.wait_status(lambda status: worker(status)["in_flight"])
            if order == "sum":
                client.half_close()
            else:
                server.wait_status(lambda status: status["cache"]["units"] > 0)
                client.socket.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
        await_cancellations(server, before + count)
        await_idle(server)


@pytest.mark.http1("chunks that are none")
def test_client_that_lies(server):
    """The worker, which has a part of it, learns that no more will arrive."""
    before = cancellations(server)
    data = pattern(WHOLE + 1)
    good = b"%x\r\n%s\r\n" % (len(data), data)
    for count, (bad, status) in enumerate([(b"x\r\n", 400), (b"5;" + b"y" * 5000, 431)], 1):
        with Client(server.port) as client:
            client.send(head("sum") + good + bad)
            assert client.response().status == status
        await_cancellations(server, before + count)
    await_idle(server)


def test_limit(kind, root):
    with serve(kind, root, "--max-body=3M", "--workers=1") as server:
        data = pattern(MB)
        with Client(server.port) as client:
            client.send(head("sum", 3 * MB + 1))
            assert client.response().status == 413
        with Client(server.port) as client:
            client.send(head("sum", 3 * MB) + 3 * data)
            assert client.response().status == 200
            client.send(head("sum") + (b"%x\r\n%s\r\n" % (MB, data)) * 3 + b"1\r\nx")
            assert client.response().status == 413
        # The size of a chunk exceeds it, before any of its bytes has arrived.
        for where in () if tls.HTTP2 else ("sum", "early?1"):
            with Client(server.port) as client:
                client.send(head(where) + b"%x\r\n" % (4 * GB))
                assert client.response().status == 413
        await_cancellations(server, 1)


def test_slow_client(kind, root, tmp_path, start):
    """It is disconnected in time, and the worker is free again."""
    path = tmp_path / "sweet.conf"
    path.write_text(
        f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\nmax-body=0\nbody-timeout=1s\nthreads=1\n"
        f"[pool stream]\ncommand={STREAM}\nprocesses=1\n[path /stream]\npool=stream\n"
    )
    server = start(None, "--config", path, listen=None)
    with Client(server.port) as client:
        client.send(head("sum", 2 * MB) + pattern(PIECE) + b"x")
        assert client.response().status == 408
    await_cancellations(server, 1)
    assert server.errors.count("ending it") == 0


def test_worker_that_ends(kind, root):
    data = pattern(PIECE)
    with serve(kind, root, "--workers", 4) as server:
        for count in (1, 2):
            with Client(server.port) as client:
                client.send(head(f"leave?{count}", GB) + data * 2)
                assert client.response().status == 502
        assert cancellations(server) == 0
        server.wait_status(lambda status: status["cache"]["units"] == 0)


@pytest.mark.clear("an error of TLS is none of sockets")
def test_worker_that_wants_both(server):
    before = cancellations(server)
    with Client(server.port) as client:
        client.send(head("both?1", GB) + pattern(2 * PIECE))
        assert b"chunked" in client.head()
        with pytest.raises((AssertionError, ConnectionResetError)):
            client.more()
    await_cancellations(server, before + 1)
    await_idle(server)
