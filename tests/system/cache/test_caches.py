# SPDX-License-Identifier: MIT
"""The three caches of files, each on and off, in all eight combinations: the same
responses from all of them.  And padding of heads."""

import contextlib
import gzip
import itertools
import os
import signal
import threading

import pytest

from client import Client, request
from files import KB, MB, pattern, write
from server import SCALE, running

WAYS = list(itertools.product(("on", "off"), repeat=3))
SIZES = [0, 1, 4 * KB, 10 * KB + 1, 100 * KB, MB]
LARGE = 6 * MB  # more than a unit of this cache
CACHE = ["--cache-size", "16M"]


def options(way):
    path, header, content = way
    return ["--path-cache", path, "--header-cache", header, "--content-cache", content]


def ask(client, path, field):
    return client.get(path, fields=field + "\r\n" if field else "")


@pytest.fixture(params=WAYS, ids="-".join)
def way(request):
    return request.param


@pytest.fixture
def served(kind, way, tmp_path):
    for number, size in enumerate([*SIZES, LARGE]):
        write(tmp_path / f"{size}.html", pattern(size, number))
    write(tmp_path / "folder" / "index.html", b"index")
    write(tmp_path / "packed.css", b"p" * 1000)
    write(tmp_path / "packed.css.gz", gzip.compress(b"p" * 1000))
    write(tmp_path / "404.html", b"nothing\n")
    more = ["--precompressed", "on", "--error-page", "404=/404.html", "--threads", 2]
    with running(kind, tmp_path, *CACHE, *options(way), *more) as server:
        server.way = way
        server.root = tmp_path
        yield server


def test_bytes(served):
    with Client(served.port) as client:
        for _ in range(3):
            for number, size in enumerate([*SIZES, LARGE]):
                got = client.get(f"/{size}.html")
                assert got.status == 200
                assert got["Content-Type"] == "text/html; charset=utf-8"
                assert got["Content-Length"] == str(size)
                assert got.body == pattern(size, number)
            assert client.get("/folder/").body == b"index"
            assert client.get("/folder").status == 301
            gone = client.get("/none")
            assert (gone.status, gone.body) == (404, b"nothing\n")
            assert client.get("/../x").status in (400, 403, 404)
    status = served.status()
    switches = {"on": 1, "off": 0}
    assert status["caches"] == dict(zip(("path", "header", "content"),
                                        map(switches.get, served.way)))
    if served.way[2] == "off":
        assert status["files"]["hit_bytes"] == 0
        assert status["cache"]["units"] == 0


def test_conditions_and_ranges(served):
    with Client(served.port) as client:
        for size in (4 * KB, 100 * KB, LARGE):
            data = pattern(size, [*SIZES, LARGE].index(size))
            path = f"/{size}.html"
            first = client.get(path)
            again = client.get(path)
            assert first["ETag"] == again["ETag"]
            assert first["Last-Modified"] == again["Last-Modified"]
            got = ask(client, path, "If-None-Match: " + first["ETag"])
            assert (got.status, got.body, got["ETag"]) == (304, b"", first["ETag"])
            got = ask(client, path, "If-Modified-Since: " + first["Last-Modified"])
            assert got.status == 304
            assert ask(client, path, 'If-Match: "other"').status == 412
            got = ask(client, path, "Range: bytes=10-1999")
            assert (got.status, got.body) == (206, data[10:2000])
            assert got["Content-Range"] == f"bytes 10-1999/{size}"
            got = ask(client, path, "Range: bytes=1-2,-5")
            assert got.status == 206 and data[1:3] in got.body and data[-5:] in got.body
            assert ask(client, path, f"Range: bytes={size}-").status == 416
            got = client.get(path, "HEAD")
            assert got["Content-Length"] == str(size)
            assert (got["ETag"], got.body) == (first["ETag"], b"")


def test_siblings(served):
    with Client(served.port) as client:
        for _ in range(3):
            got = ask(client, "/packed.css", "Accept-Encoding: gzip")
            assert gzip.decompress(got.body) == b"p" * 1000
            assert got["Content-Encoding"] == "gzip"
            assert got["Content-Type"] == "text/css; charset=utf-8"
            plain = client.get("/packed.css")
            assert plain.body == b"p" * 1000 and "Content-Encoding" not in plain
            assert plain["Vary"] == "Accept-Encoding"
            assert plain["ETag"] != got["ETag"]


def test_changes(served):
    path = served.root / "file.txt"
    with Client(served.port) as client, Client(served.port) as other:
        assert client.get("/file.txt").status == 404
        for number, size in enumerate([10, 10, 5000, 5000, 0, 300 * KB, 10, LARGE, 7]):
            if number % 2:
                write(path, pattern(size, number))  # in place
            else:
                new = write(served.root / "new", pattern(size, number))
                os.replace(new, path)
            for one in (client, other):
                got = one.get("/file.txt")
                assert got.body == pattern(size, number)
                assert got["Content-Length"] == str(size)
        path.unlink()
        assert client.get("/file.txt").status == other.get("/file.txt").status == 404


def test_deleted_while_sent(served):
    with Client(served.port, buffer=4096) as slow, Client(served.port) as client:
        path = write(served.root / "big.bin", pattern(3 * MB, 1))
        slow.send(request("/big.bin"))
        head = slow.head()
        assert head.startswith(b"HTTP/1.1 200 ")
        new = write(served.root / "new", pattern(2 * MB, 2))
        os.replace(new, path)
        assert client.get("/big.bin").body == pattern(2 * MB, 2)
        path.unlink()
        assert client.get("/big.bin").status == 404
        assert slow.take(3 * MB) == pattern(3 * MB, 1)


def test_many_at_once(served):
    """Clients that request a file while it is replaced: one version or another."""
    path = served.root / "file.bin"
    versions = [pattern(20 * KB, seed) for seed in (1, 2)]
    write(path, versions[0])
    faults, over = [], threading.Event()

    def ask():
        with Client(served.port) as client:
            while not over.is_set():
                got = client.get("/file.bin")
                if got.status != 503 and (got.status != 200 or got.body not in versions):
                    faults.append((got.status, len(got.body)))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(16 // SCALE):
        os.replace(write(served.root / "new", versions[number % 2]), path)
        over.wait(0.03)
    over.set()
    for thread in threads:
        thread.join()
    assert faults == []


@pytest.mark.parametrize("switch", ["path-cache", "header-cache", "content-cache"])
def test_reload(kind, tmp_path, switch):
    """A changed switch takes effect when the configuration is read again."""
    write(tmp_path / "root" / "file", b"file\n")
    config = write(tmp_path / "sweet.conf", b"[sweet]\n")
    with running(kind, tmp_path / "root", "--config", config) as server:
        for turn, value in enumerate(("off", "on")):
            with Client(server.port) as client:
                config.write_text(f"[sweet]\n{switch}={value}\n")
                server.send_signal(signal.SIGHUP)
                server.wait_status(
                    lambda status, turn=turn: status["config"]["generation"] == turn + 2)
                assert client.get("/file").body == b"file\n"
                name = switch.partition("-")[0]
                assert server.status()["caches"][name] == (value == "on")


# --- heads of a certain length -------------------------------------------------------


@contextlib.contextmanager
def padded(kind, tmp_path, *more):
    write(tmp_path / "file.txt", b"x" * 1000)
    write(tmp_path / "file.html", b"x")
    with running(kind, tmp_path, *more) as server, Client(server.port) as client:
        yield client


def lengths(client):
    """Returns the lengths of the heads of responses of every kind, and their Server fields."""
    for target, field in [("/file.txt", None), ("/file.html", None), ("/none", None),
                          ("/.sweet/status", None), ("/file.txt", "Range: bytes=1-5"),
                          ("/file.txt", "Range: bytes=1-2,5-"), ("/file.txt", 'If-Match: "x"')]:
        got = ask(client, target, field)
        yield len(got.head) + 4, got.fields.get("server", "off").rstrip(" ")


@pytest.mark.http1("a head in HPACK has no padding")
@pytest.mark.parametrize("server_header", ["SWEET", "a somewhat longer text (of mine)", "off"])
@pytest.mark.parametrize("align", [32, 64])
def test_padding(kind, tmp_path, align, server_header):
    more = ["--header-align", align, "--server-header", server_header]
    with padded(kind, tmp_path, *more) as client:
        for length, server in lengths(client):
            assert length % align == 0
            assert server == server_header


def test_no_padding(kind, tmp_path):
    with padded(kind, tmp_path) as client:
        assert any(length % 32 for length, _ in lengths(client))
