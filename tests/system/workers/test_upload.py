# SPDX-License-Identifier: MIT
"""Bodies of requests to workers."""

import hashlib
import re
import subprocess
import threading

import pytest

from client import Client, fetch
from files import KB, MB, pattern, write
from server import OBEY, SCALE, TIMEOUT, descriptors, running

SIZES = [1, 2, 100, 4095, 4096, 4097, 65536, 300001, MB]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("upload")


def serve(kind, root, *options):
    return running(kind, root, "--worker", f"/obey={OBEY}", *options)


@pytest.fixture(scope="module")
def server(kind, root):
    with serve(kind, root) as server:
        yield server


def expected(method, data):
    return [method, str(len(data)), hashlib.md5(data).hexdigest()]


def curl(server, path, *arguments):
    """Returns standard output and trace of curl."""
    done = subprocess.run(
        ["curl", "-sS", "-v", "--noproxy", "*", "--max-time", str(TIMEOUT), *arguments,
         server.url + path],
        capture_output=True, check=True, timeout=2 * TIMEOUT,
    )
    return done.stdout, done.stderr.decode("latin-1")


def head(method, length, fields=b""):
    how = b"Content-Length: %d" % length if length is not None else b"Transfer-Encoding: chunked"
    return b"%s /obey/upload HTTP/1.1\r\nHost: test\r\n%s\r\n%s\r\n" % (method, how, fields)


def chunks(data, size):
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@pytest.mark.parametrize("how", ["-T", "--data-binary", "chunked", "expect", "chunked expect"])
def test_curl(server, tmp_path, how):
    data = pattern(700001)
    path = str(write(tmp_path / "data", data))
    arguments = ["-T", path] if how == "-T" else ["--data-binary", f"@{path}"]
    if "chunked" in how:
        arguments += ["-H", "Transfer-Encoding: chunked"]
    arguments += ["-H", "Expect: 100-continue" if "expect" in how else "Expect:"]
    out, trace = curl(server, "/obey/upload", *arguments)
    assert out.decode().split()[:3] == expected("PUT" if how == "-T" else "POST", data)
    assert bool(re.search("< HTTP/[0-9.]+ 100", trace)) == ("expect" in how)
    out, _ = curl(server, "/obey/echo", *arguments)
    assert out == data


def test_curl_is_refused_before_it_sends(server, tmp_path):
    path = str(write(tmp_path / "data", pattern(2 * MB)))
    out, trace = curl(server, "/obey/upload", "-T", path, "-H", "Expect: 100-continue")
    assert b"413" in out
    assert not re.search("< HTTP/[0-9.]+ 100", trace)


@pytest.mark.parametrize("size", SIZES)
def test_sizes(server, size):
    data = pattern(size)
    with Client(server.port) as client:
        client.send(head(b"POST", size) + data)
        assert client.response().body.decode().split()[:3] == expected("POST", data)
        client.send(head(b"PUT", None) + chunks(data, 1 + size // 7))
        assert client.response().body.decode().split()[:3] == expected("PUT", data)


def test_no_body(server):
    """None, one of zero bytes, one without chunks: no unit is made."""
    empty = hashlib.md5(b"").hexdigest()
    with Client(server.port) as client:
        client.send(b"POST /obey/upload HTTP/1.1\r\nHost: test\r\n\r\n" + head(b"POST", 0)
                    + head(b"POST", None) + b"0\r\n\r\n")
        for length in ("-", "0", "0"):
            assert client.response().body.decode() == f"POST {length} {empty} 0\n"


def test_pieces(server):
    data = pattern(500)
    with Client(server.port) as client:
        for piece in (1, 3, 17):
            raw = head(b"POST", None) + chunks(data, 40) + head(b"POST", len(data)) + data
            for at in range(0, len(raw), piece):
                client.send(raw[at : at + piece])
            for _ in range(2):
                assert client.response().body.decode().split()[:3] == expected("POST", data)


def test_pipeline(server):
    """Bodies, files and pages in one pipeline."""
    bodies = [pattern(size, size) for size in (10, 5000, 1, 70 * KB, 333)]
    raw = b"".join(
        head(b"POST", None if len(body) % 2 else len(body))
        + (chunks(body, 1000) if len(body) % 2 else body)
        + b"GET /obey/pid HTTP/1.1\r\nHost: test\r\n\r\nGET /none HTTP/1.1\r\nHost: test\r\n\r\n"
        for body in bodies
    )
    with Client(server.port) as client:
        sender = threading.Thread(target=client.send, args=(raw,))
        sender.start()
        for body in bodies:
            assert client.response().body.decode().split()[:3] == expected("POST", body)
            assert client.response().body.isdigit()
            assert client.response().status == 404
        sender.join()


def test_body_is_gone_after_the_answer(server):
    with Client(server.port) as client:
        client.send(head(b"POST", 3) + b"abc")
        unit = client.response().body.split()[3].decode()
        assert int(unit) != 0
        got = client.get(f"/obey/read?{unit}").body
        assert got in (b"No such file or directory", b"Permission denied"), got


def test_client_that_goes(server):
    """In the middle, and when all is sent; nothing leaks in either case."""
    for _ in range(20):
        with Client(server.port) as client:
            client.send(head(b"POST", 200 * KB) + b"x" * 100 * KB)
        with Client(server.port) as client:
            client.send(head(b"POST", 3) + b"abc")
    # The worker may still have the last one.
    server.wait_status(lambda status: status["cache"]["units"] == 0)


def test_many(kind, root):
    """More than there are descriptors: completed ones are closed."""
    count = 1500 // SCALE
    with serve(kind, root, "--threads", 1, "--workers", 1) as server:
        with Client(server.port) as client:
            worker = int(client.get("/obey/pid").body)
            for number in range(count):
                if number == 100 // SCALE:
                    before = descriptors(server.pid), descriptors(worker)
                data = b"%d" % number
                client.send(head(b"POST", len(data)) + data)
                assert client.response().body.decode().split()[:3] == expected("POST", data)
            after = descriptors(server.pid), descriptors(worker)
        assert after[0] <= before[0] + 2
        assert after[1] <= before[1] + 2
        server.wait_status(lambda status: status["cache"]["units"] == 0)


def test_worker_that_ends(server):
    with Client(server.port) as client:
        client.send(b"POST /obey/exit HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc")
        assert client.response().status == 502
        # The next one waits for a worker, with its body.
        client.send(head(b"POST", 3) + b"abc")
        assert client.response().body.decode().split()[:3] == expected("POST", b"abc")


def test_large(root):
    """Larger than a unit, if that is permitted."""
    data = pattern(40 * MB // SCALE)
    with serve("epoll", root, "--max-body=0", "--cache-size=64M") as server:
        with Client(server.port) as client:
            client.send(head(b"POST", len(data)) + data)
            assert client.response().body.decode().split()[:3] == expected("POST", data)


def test_threads(root):
    """Concurrent clients, of all threads to all workers."""
    with serve("epoll", root, "--threads", 3, "--workers", 3) as server:
        wrong = []

        def upload(number):
            with Client(server.port) as client:
                for round in range(40 // SCALE):
                    data = pattern(number * 1000 + round, round)
                    client.send(head(b"POST", len(data)) + data)
                    if client.response().body.decode().split()[:3] != expected("POST", data):
                        wrong.append((number, round))

        threads = [threading.Thread(target=upload, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert fetch(server.port, "/obey/upload").status == 200
