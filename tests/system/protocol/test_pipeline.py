# SPDX-License-Identifier: MIT
"""Requests that do not wait for responses: order and bytes."""

import threading

import pytest

from client import Client, request
from files import KB, MB, pattern, write
from server import GENERATE, SCALE, running
from test_generate import page

LONG = pattern(6 * MB)  # more than the kernel buffers for a client that does not read
FILES = {f"/{size}": pattern(size) for size in (0, 1, 100, 4096, 4097, 70 * KB)}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("pipeline")
    for name, data in FILES.items():
        write(root / name[1:], data)
    write(root / "long", LONG)
    return root


@pytest.fixture(scope="module")
def server(kind, root):
    with running(kind, root) as server:
        yield server


@pytest.fixture(scope="module")
def worker_server(kind, root):
    with running(kind, root, "--worker", f"/generate={GENERATE}") as server:
        yield server


def file_mix(count):
    """Returns pairs of a target and its body; None for the page of a 404."""
    mix = [*FILES.items(), ("/none", None)]
    return [mix[i * 5 % len(mix)] for i in range(count)]


def worker_mix(count):
    pages = [(f"/generate?size={i * 37}", page(i * 37)) for i in range(count)]
    return [pair for pairs in zip(file_mix(count), pages) for pair in pairs]


def check(client, expected, method="GET"):
    for number, (target, body) in enumerate(expected):
        got = client.response(method)
        assert got.status == (404 if body is None else 200), f"answer {number}, to {target}"
        if body is not None:
            length = int(got["Content-Length"])
            assert length == len(body), f"answer {number}, to {target}"
            assert method == "HEAD" or got.body == body, f"answer {number}, to {target}"


def burst(port, expected):
    data = b"".join(request(target) for target, _ in expected)
    with Client(port) as client:
        # Concurrently with reading: neither side could continue if both only wrote.
        sender = threading.Thread(target=client.send, args=(data,))
        sender.start()
        try:
            check(client, expected)
        finally:
            sender.join()
        assert client.get("/1").body == FILES["/1"]


def test_burst(server):
    burst(server.port, file_mix(600))


def test_burst_with_workers(worker_server):
    burst(worker_server.port, worker_mix(300))


def test_burst_of_heads(server):
    expected = file_mix(300)
    with Client(server.port) as client:
        client.send(b"".join(request(target, "HEAD") for target, _ in expected))
        check(client, expected, "HEAD")


def test_byte_by_byte(server):
    expected = file_mix(7)
    with Client(server.port) as client:
        for target, _ in expected:
            for byte in request(target):
                client.send(bytes([byte]))
        check(client, expected)


def test_byte_by_byte_with_workers(worker_server):
    expected = worker_mix(4)
    with Client(worker_server.port) as client:
        for target, _ in expected:
            for byte in request(target):
                client.send(bytes([byte]))
        check(client, expected)


@pytest.mark.parametrize("size", [2, 3, 7, 64, 1000])
def test_pieces(server, size):
    expected = file_mix(28)
    data = b"".join(request(target) for target, _ in expected)
    with Client(server.port) as client:
        for at in range(0, len(data), size):
            client.send(data[at : at + size])
        check(client, expected)


@pytest.mark.parametrize("length", [1, 100, 5000, 300 * KB // SCALE])
def test_body_on_get_is_skipped(server, length):
    body = (request("/none") * (length // 20 + 1))[:length]
    with Client(server.port) as client:
        sender = threading.Thread(
            target=client.send,
            args=(request("/100", fields=f"Content-Length: {length}\r\n") + body + request("/4097"),),
        )
        sender.start()
        try:
            check(client, [("/100", FILES["/100"]), ("/4097", FILES["/4097"])])
        finally:
            sender.join()


def test_close_in_the_middle_ends_the_pipeline(server):
    with Client(server.port) as client:
        client.send(
            request("/1") + request("/100", fields="Connection: close\r\n") + request("/4096")
        )
        check(client, [("/1", FILES["/1"]), ("/100", FILES["/100"])])
        assert client.at_end()


def test_half_close_still_gets_the_answers(server):
    expected = file_mix(50)
    with Client(server.port) as client:
        client.send(b"".join(request(target) for target, _ in expected))
        client.half_close()
        check(client, expected)
        assert client.at_end()


def test_half_close_with_workers(worker_server):
    expected = worker_mix(10)
    with Client(worker_server.port) as client:
        client.send(b"".join(request(target) for target, _ in expected))
        client.half_close()
        check(client, expected)
        assert client.at_end()


def half_closed_meanwhile(server, first, rest):
    """The client's stream ends while a long response is being sent."""
    with Client(server.port, 4096) as client:
        client.send(first + rest)
        client.half_close()
        check(client, [("/long", LONG)])
        assert client.at_end()


@pytest.mark.parametrize("rest", [b"", b"GET /1 HT", b"\r\n", b"G"])
def test_half_close_in_a_head(server, rest):
    half_closed_meanwhile(server, request("/long"), rest)


@pytest.mark.http1("half a body ends its stream, and the response too")
def test_half_close_in_a_body(server):
    half_closed_meanwhile(server, request("/long", fields="Content-Length: 10\r\n"), b"1234")
