# SPDX-License-Identifier: MIT
"""Ranges of files (RFC 9110, section 14): one, several, unsatisfiable ones; by raw
requests and by curl. Files that fit into a unit and files that do not."""

import filecmp
import re
import subprocess

import pytest

from client import Client, fetch
from files import KB, MB, pattern, write
from server import TIMEOUT, running

CACHE = 4 * MB  # a unit is a quarter of it
FILES = {"small": 1000, "whole": 100 * KB, "large": 3 * MB + 7, "empty": 0}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("ranges")
    for number, (name, size) in enumerate(FILES.items()):
        write(root / f"{name}.txt", pattern(size, number))
    return root


@pytest.fixture(scope="module")
def server(kind, root):
    with running(kind, root, "--cache-size", CACHE) as server:
        server.data = {name: (root / f"{name}.txt").read_bytes() for name in FILES}
        yield server


def parts_of(response):
    """Returns the parts of a multipart/byteranges as (first, last, size, bytes)."""
    boundary = re.fullmatch(
        r"multipart/byteranges; boundary=([0-9A-Za-z'()+_,./:=?-]{1,70})", response["Content-Type"]
    )[1].encode()
    start, *pieces, end = response.body.split(b"--" + boundary)
    assert start == b"" and end == b"--\r\n"
    parts = []
    for piece in pieces:
        head, _, body = piece.partition(b"\r\n\r\n")
        assert head.startswith(b"\r\n") and body.endswith(b"\r\n")
        assert b"Content-Type: text/plain; charset=utf-8" in head.split(b"\r\n")
        place = re.search(rb"\r\nContent-Range: bytes (\d+)-(\d+)/(\d+)$", head)
        parts.append((*map(int, place.groups()), body[:-2]))
    return parts


@pytest.mark.parametrize("name", ["small", "whole", "large"])
def test_one(server, name):
    data = server.data[name]
    size = len(data)
    with Client(server.port) as client:
        plain = client.get(f"/{name}.txt")
        assert plain.status == 200 and plain["Accept-Ranges"] == "bytes"
        for value, first, last in [
            ("0-0", 0, 0),
            ("1-9", 1, 9),
            ("0-", 0, size - 1),
            ("500-", 500, size - 1),
            ("-1", size - 1, size - 1),
            (f"-{size + 5}", 0, size - 1),
            (f"{size - 1}-{size + 5}", size - 1, size - 1),
            (f"{size // 2}-{size - 2}", size // 2, size - 2),
            ("0-5,3-9,10-20", 0, 20),  # joined, it is one
        ]:
            got = client.get(f"/{name}.txt", fields=f"Range: bytes={value}\r\n")
            assert got.status == 206, value
            assert got["Content-Range"] == f"bytes {first}-{last}/{size}"
            assert got.body == data[first : last + 1]
            for field in ("ETag", "Last-Modified", "Content-Type", "Accept-Ranges"):
                assert got[field] == plain[field]


@pytest.mark.parametrize("name", ["small", "whole", "large"])
def test_several(server, name):
    data = server.data[name]
    size = len(data)
    with Client(server.port) as client:
        plain = client.get(f"/{name}.txt")
        for ranges in (
            [(0, 0), (size - 1, size - 1)],
            [(size - 10, size - 1), (5, 9)],  # in the order of the request
            [(i * 50, i * 50 + 20) for i in range(16)],
            [(0, size // 2 - 1), (size // 2 + 1, size - 1)],  # all but one byte
        ):
            value = ", ".join(f"{first}-{last}" for first, last in ranges)
            got = client.get(f"/{name}.txt", fields=f"Range: bytes={value}\r\n")
            assert got.status == 206
            assert parts_of(got) == [(a, b, size, data[a : b + 1]) for a, b in ranges]
            assert "Content-Range" not in got and got["ETag"] == plain["ETag"]
        # Unsatisfiable ones are left out; if one is left, the response has no parts.
        got = client.get(f"/{name}.txt", fields=f"Range: bytes={size}-,0-1,4-5\r\n")
        assert [part[:2] for part in parts_of(got)] == [(0, 1), (4, 5)]
        got = client.get(f"/{name}.txt", fields=f"Range: bytes={size}-,0-1\r\n")
        assert (got.status, got["Content-Range"]) == (206, f"bytes 0-1/{size}")


def test_each_answer_has_its_boundary(server):
    with Client(server.port) as client:
        types = {
            client.get("/small.txt", fields="Range: bytes=0-1,4-5\r\n")["Content-Type"]
            for _ in range(20)
        }
    assert len(types) == 20


@pytest.mark.parametrize("name", ["small", "large", "empty"])
def test_not_there(server, name):
    size = FILES[name]
    with Client(server.port) as client:
        for value in (f"{size}-", f"{size + 5}-{size + 6}", "-0", "99999999999999999999999-"):
            got = client.get(f"/{name}.txt", fields=f"Range: bytes={value}\r\n")
            assert got.status == 416
            assert got["Content-Range"] == f"bytes */{size}"
            assert "ETag" not in got and b"416" in got.body
        assert client.get(f"/{name}.txt").body == server.data[name]


@pytest.mark.parametrize("name", ["small", "large"])
def test_ignored(server, name):
    """As if there were no Range: other units, invalid values, and attacks."""
    data = server.data[name]
    many = ",".join(f"{i * 4}-{i * 4 + 1}" for i in range(17))
    with Client(server.port) as client:
        for fields in (
            "Range: items=0-5\r\n",
            "Range: bytes=5-0\r\n",
            "Range: bytes=a-b\r\n",
            "Range: 0-5\r\n",
            f"Range: bytes={many}\r\n",
            "Range: bytes=0-,0-,0-,0-,0-\r\n",
            "Range: bytes=0-1\r\nRange: bytes=4-5\r\n",
        ):
            got = client.get(f"/{name}.txt", fields=fields)
            assert got.status == 200 and got.body == data, fields
            assert "Content-Range" not in got
        got = client.get("/empty.txt", fields="Range: bytes=-5\r\n")
        assert (got.status, got.body) == (200, b"")


def test_head_knows_no_ranges(server):
    with Client(server.port) as client:
        for name, size in FILES.items():
            for value in ("0-1", "0-1,4-5", f"{size}-"):
                got = client.get(f"/{name}.txt", "HEAD", f"Range: bytes={value}\r\n")
                assert (got.status, got["Content-Length"]) == (200, str(size))


def test_errors_know_no_ranges(server):
    got = fetch(server.port, "/none", fields="Range: bytes=0-1\r\n")
    assert got.status == 404 and "Content-Range" not in got


def test_pipelined(server):
    """Parts and wholes in a row; each has the announced length."""
    wanted = []
    with Client(server.port) as client:
        for name in ("small", "large", "whole"):
            for value in ("0-9,20-29", "5-6", "7-7,9-9,0-0"):
                client.send(
                    f"GET /{name}.txt HTTP/1.1\r\nHost: t\r\nRange: bytes={value}\r\n\r\n".encode()
                )
                wanted.append((name, value))
        for name, value in wanted:
            got = client.response()
            assert got.status == 206
            places = [tuple(map(int, one.split("-"))) for one in value.split(",")]
            bodies = [body for *_, body in parts_of(got)] if len(places) > 1 else [got.body]
            assert bodies == [server.data[name][a : b + 1] for a, b in places]


def test_http10_and_close(server):
    with Client(server.port) as client:
        client.send(b"GET /large.txt HTTP/1.0\r\nRange: bytes=0-5,10-15\r\n\r\n")
        got = client.response()
        assert [part[3] for part in parts_of(got)] == [
            server.data["large"][0:6], server.data["large"][10:16]
        ]
        assert client.at_end()


def test_slow_client_of_large_parts(server):
    """The windows of parts wait for a client that reads slowly."""
    data = server.data["large"]
    size = len(data)
    with Client(server.port, 4096) as client:
        client.send(
            b"GET /large.txt HTTP/1.1\r\nHost: t\r\nRange: bytes=-2000000,0-900000\r\n\r\n"
        )
        got = client.response()
        assert parts_of(got) == [
            (size - 2000000, size - 1, size, data[-2000000:]), (0, 900000, size, data[:900001])
        ]


def curl(*arguments):
    return subprocess.run(
        ["curl", "--noproxy", "*", "-sS", "--max-time", str(TIMEOUT), *arguments],
        capture_output=True, timeout=TIMEOUT * 2, check=True,
    ).stdout


@pytest.mark.parametrize("name", ["whole", "large"])
def test_curl_resumes(server, root, tmp_path, name):
    data, got = server.data[name], tmp_path / "got"
    url = f"{server.url}/{name}.txt"
    assert curl("-r", "100-299", url) == data[100:300]
    assert curl("-r", "-7", url) == data[-7:]
    got.write_bytes(data[: len(data) // 3])
    code = curl("-C", "-", "-o", got, "-w", "%{http_code}", url)
    assert code == b"206" and filecmp.cmp(got, root / f"{name}.txt", shallow=False)
