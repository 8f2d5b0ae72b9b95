# SPDX-License-Identifier: MIT
"""Responses of workers in several pieces, and the handling of aborted ones."""

import socket
import struct
import time

import pytest

import tls
from client import Client, Closed, Response, request
from files import KB, MB
from server import POLL, SCALE, SOON, STREAM, TIMEOUT, UNDER, running, sanitized

PIECE = 64 * KB  # the worker's default
SLACK = 64 * MB if UNDER or sanitized() else 0  # memory of a checker itself


def serve(kind, root, *options):
    return running(kind, root, "--worker", f"/stream={STREAM}", *options)


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    with serve(kind, tmp_path_factory.mktemp("stream"), "--workers", 1) as server:
        yield server


def ask(client, order, version=b"1.1", method=b"GET"):
    client.send(b"%s /stream/%s HTTP/%s\r\nHost: test\r\n\r\n" % (method, order.encode(), version))
    return Response(client.head(), b"")


def line(client):
    while b"\r\n" not in client.data:
        client.more()
    text, _, client.data = client.data.partition(b"\r\n")
    return text


def chunk(client):
    """Returns the next chunk, whose end may arrive with the next one; b"" is the last."""
    size = int(line(client) or line(client), 16)
    if size:
        return client.take(size)
    assert line(client) == b""
    return b""


def chunks(client):
    data = []
    while one := chunk(client):
        data.append(one)
    return b"".join(data)


def piece(client, size=PIECE):
    """Returns a piece of the worker: over HTTP/1.1 it is one chunk."""
    if not tls.HTTP2:
        return chunk(client)
    data = getattr(client, "rest", b"")
    while len(data) < size and (more := chunk(client)):
        data += more
    client.rest = data[size:]
    return data[:size]


def numbers(data, size):
    """Returns the numbers in front of the pieces; all but the last have size bytes."""
    return [int(data[at : at + 12]) for at in range(0, len(data), size)]


def reset(client):
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def cancellations(server):
    with Client(server.port) as client:
        return int(client.get("/stream/notes").body)


def await_cancellations(server, count):
    server.wait_status(lambda _: cancellations(server) >= count)


@pytest.mark.parametrize("count,size", [(1, 1000), (2, 12), (20, 100), (100, 70000)])
def test_pieces(server, count, size):
    with Client(server.port) as client:
        for _ in range(3):
            answer = ask(client, f"pieces?{count}:{size}")
            assert answer.status == 200
            assert answer["Transfer-Encoding"] == "chunked"
            assert answer["Content-Type"] == "application/octet-stream"
            data = chunks(client)
            assert len(data) == count * size
            assert numbers(data, size) == list(range(count))


def test_known_length(server):
    with Client(server.port) as client:
        for _ in range(3):
            answer = client.get("/stream/pieces?30:5000:150000")
            assert "Transfer-Encoding" not in answer
            assert numbers(answer.body, 5000) == list(range(30))


def test_empty_pieces(kind, root):
    """They use no space in the socket, so that nothing would limit their number."""
    with serve(kind, root, "--workers", 1, "--threads", 1) as server, \
            Client(server.port) as client, Client(server.port) as other:
        ask(client, "empty")
        for _ in range(20):
            assert other.get("/none").status == 404
        assert chunks(client) == b"refused"


def test_known_length_that_is_a_lie(server):
    """Excess bytes are dropped; missing ones close the connection."""
    with Client(server.port) as client:
        assert numbers(client.get("/stream/pieces?9:5000:12000").body, 5000) == [0, 1, 2]
        assert numbers(client.get("/stream/pieces?9:5000:5000").body, 5000) == [0]
        with pytest.raises(Closed) as closed:
            client.get("/stream/pieces?2:5000:10001")
        assert len(closed.value.data) == 10000
    assert cancellations(server) >= 0


def test_head_and_old_clients(server):
    with Client(server.port) as client:
        assert ask(client, "pieces?5:1000:5000", method=b"HEAD")["Content-Length"] == "5000"
        assert ask(client, "pieces?5:1000", method=b"HEAD")["Transfer-Encoding"] == "chunked"
        answer = ask(client, "pieces?5:1000", version=b"1.0")
        assert "Transfer-Encoding" not in answer
        assert numbers(client.take(5000), 1000) == list(range(5))
        assert client.at_end()


def test_list(server):
    with Client(server.port) as client:
        for _ in range(5):
            answer = client.get("/stream/list")
            assert answer.body == b"head and foot\na fresh middle\nhead and foot\n"
    # The one that is kept.
    server.wait_status(lambda status: status["workers"]["requests"] >= 5)


def test_pipeline(server):
    orders = ["pieces?3:1000", "list", "pieces?2:70000:140000", "notes", "pieces?1:50"] * 4
    with Client(server.port) as client:
        client.send(b"".join(request(f"/stream/{order}") for order in orders))
        for order in orders:
            answer = Response(client.head(), b"")
            assert answer.status == 200
            if "Transfer-Encoding" in answer:
                count, size = map(int, order[7:].split(":"))
                assert len(chunks(client)) == count * size
            else:
                client.take(int(answer["Content-Length"]))


def test_abort(server):
    with Client(server.port) as client:
        assert client.get("/stream/abort?0").status == 502
        assert ask(client, "abort?3")["Transfer-Encoding"] == "chunked"
        for number in range(3):
            assert int(piece(client)[:12]) == number
        # The end of the last chunk may have arrived, the end of the body has not.
        assert client.data in (b"", b"\r\n")
        client.data = b""
        assert client.at_end() or client.data == b""
    assert cancellations(server) >= 0


def test_end_of_the_worker(kind, root):
    with serve(kind, root, "--workers", 3) as server:
        for count in (1, 5):
            with Client(server.port) as client:
                ask(client, f"die?{count}")
                with pytest.raises((AssertionError, ConnectionResetError)):
                    chunks(client)
        # Another one.
        assert cancellations(server) == 0


def test_client_that_goes(server):
    """The worker is told, while it waits for its window as well as when it checks."""
    before = cancellations(server)
    for count in range(1, 4):
        with Client(server.port) as client:
            ask(client, "endless")
            for number in range(20):
                assert int(piece(client)[:12]) == number
        await_cancellations(server, before + count)
    # A client that has only closed its sending end might still read.
    with Client(server.port) as client:
        ask(client, "await")
        reset(client)
    await_cancellations(server, before + 4)


def test_client_that_reads_slowly(server):
    """Neither side keeps more than a window; others are not affected."""
    most = server.memory() + 12 * PIECE + 4 * MB + SLACK
    with Client(server.port, buffer=PIECE) as slow:
        ask(slow, "endless")
        for _ in range(30):
            assert chunk(slow)
            assert server.memory() < most
    await_cancellations(server, 1)


def test_large(root, kind):
    """The stream is not kept in memory."""
    count, size = 4096 // SCALE // SCALE, 256 * KB
    with serve(kind, root, "--workers", 1, "--threads", 1) as server, Client(server.port) as client:
        assert len(piece_lengths(client, 50, size)) == 50
        before = server.memory()
        assert piece_lengths(client, count, size) == [size] * count
        assert server.memory() < before + 4 * MB + SLACK


def piece_lengths(client, count, size):
    ask(client, f"pieces?{count}:{size}")
    lengths = []
    while data := piece(client, size):
        assert int(data[:12]) == len(lengths)
        lengths.append(len(data))
    return lengths


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("root")


def one_worker(start, folder, in_flight, threads=1, clock=None, timeout=SOON):
    """A server with one worker that has little time to respond."""
    path = folder / "sweet.conf"
    path.write_text(
        f"[sweet]\nlisten=127.0.0.1:0\nthreads={threads}\nroot={folder}\n[pool stream]\n"
        f"command={STREAM}\nprocesses=1\nin-flight={in_flight}\ntimeout={timeout}s\n"
        f"queue-timeout={TIMEOUT}s\n[path /stream]\npool=stream\n"
    )
    return start(None, "--config", path, listen=None, clock=clock)


def test_end_of_a_chunk(kind, tmp_path, start):
    """The end arrives with the chunk, not with the next one: clients process a chunk when it is
    complete."""
    server = one_worker(start, tmp_path, 1)
    with Client(server.port) as client:
        ask(client, "hang?2")
        assert len(chunk(client)) == PIECE
        assert len(chunk(client)) == PIECE
        assert client.take(2) == b"\r\n"
        assert not client.data


def test_worker_that_hangs(kind, tmp_path, start, clock):
    """In the middle of its response, with and without a client: others get their turn."""
    server = one_worker(start, tmp_path, 1, clock=clock)
    with Client(server.port) as client:
        ask(client, "hang?2")
        assert len(chunk(client)) == PIECE
        assert len(chunk(client)) == PIECE
        assert line(client) == b""
        server.forward(1.1 * SOON)
        assert client.at_end() or not client.data
    assert cancellations(server) == 0
    with Client(server.port) as client:
        # No event shows when the worker begins: its clock is not moved.
        client.send(request("/stream/hang?0"))
        assert client.response().status == 504
    with Client(server.port) as client:
        ask(client, "hang?2")
    # Only the status connection is open; the time begins when the disconnect is noticed.
    server.wait_status(lambda status: status["connections"]["open"] == 1)
    server.forward(1.1 * SOON)
    assert cancellations(server) == 0
    assert server.errors.count("ending it", 3) == 3


@pytest.mark.parametrize("threads", [1, 2])
def test_who_waits_behind_a_long_answer(kind, tmp_path, start, threads):
    """Waits no longer than for a worker that hangs, but this one does not hang."""
    # Within this time, the worker must also end what is cancelled, on a busy machine.
    server = one_worker(start, tmp_path, 4, threads, timeout=max(SOON, 4))
    with Client(server.port) as long, Client(server.port) as gone, Client(server.port) as late:
        ask(long, "endless")
        chunk(long)
        gone.send(request("/stream/list"))
        server.wait_status(lambda status: in_flight(status) == 2)
        reset(gone)
        gone.close()
        late.send(request("/stream/list"))
        server.wait_status(lambda status: in_flight(status) == 3)
        while not late.readable():
            assert len(chunk(long)) == PIECE
            time.sleep(POLL)  # the worker must not use the processor all the time
        got = late.response()
        assert (got.status, got["Retry-After"]) == (503, "1"), server.errors.text()
        assert len(chunk(long)) == PIECE
    await_cancellations(server, 1)
    assert server.errors.count("ending it") == 0


def in_flight(status):
    return status["workers"]["pools"][0]["processes"][0]["in_flight"]
