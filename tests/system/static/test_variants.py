# SPDX-License-Identifier: MIT
"""Precompressed files beside the plain ones, and Cache-Control by rule."""

import gzip
import os
import subprocess

import pytest

from client import Client, fetch
from files import MB, pattern, write
from server import SCALE, running

PLAIN = b"body { color: red }\n" * 50
SUFFIXES = {"br": ".br", "zstd": ".zst", "gzip": ".gz"}


def beside(path, coding, body, later=0):
    """Writes a precompressed sibling, by default with the same time as the plain file."""
    sibling = write(path.with_name(path.name + SUFFIXES[coding]), body)
    stat = path.stat()
    os.utime(sibling, ns=(stat.st_mtime_ns + later, stat.st_mtime_ns + later))
    return sibling


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("variants")
    for coding in SUFFIXES:
        beside(write(root / "all.css", PLAIN) if coding == "br" else root / "all.css",
               coding, f"in {coding}".encode())
    beside(write(root / "gz.js", PLAIN), "gzip", gzip.compress(PLAIN))
    write(root / "none.txt", PLAIN)
    beside(write(root / "old.txt", PLAIN), "gzip", b"old", -1)
    beside(write(root / "index.html", PLAIN), "br", b"index in br")
    beside(write(root / "empty.txt", PLAIN), "br", b"")
    (root / "folder.txt").write_bytes(PLAIN)
    (root / "folder.txt.br").mkdir()
    beside(write(root / "out.txt", PLAIN), "gzip", b"gz")
    (root / "out.txt.br").symlink_to("/etc/passwd")
    return root


@pytest.fixture(scope="module")
def server(root):
    with running("epoll", root, "--precompressed", "on") as server:
        yield server


def ask(server, target, accept=None, method="GET"):
    fields = f"Accept-Encoding: {accept}\r\n" if accept is not None else ""
    return fetch(server.port, target, method, fields)


@pytest.mark.parametrize(
    "accept, coding",
    [(None, None), ("", None), ("identity", None), ("gzip", "gzip"), ("br", "br"),
     ("zstd", "zstd"), ("gzip, deflate, br, zstd", "br"), ("gzip;q=1, br;q=0.5", "gzip"),
     ("*", "br"), ("br;q=0, *", "zstd"), ("identity, gzip;q=0.2", None), ("x-gzip", "gzip")],
)
def test_choice(server, accept, coding):
    for _ in range(2):
        got = ask(server, "/all.css", accept)
        assert got.body == (f"in {coding}".encode() if coding else PLAIN)
        assert got.fields.get("content-encoding") == coding
        assert got["Content-Type"] == "text/css; charset=utf-8"
        assert got["Vary"] == "Accept-Encoding"
    head = ask(server, "/all.css", accept, "HEAD")
    assert {**head.fields, "date": ""} == {**got.fields, "date": ""}


def test_variants_have_their_own_versions(server):
    tags = {coding: ask(server, "/all.css", coding)["ETag"]
            for coding in ("identity", "br", "zstd", "gzip")}
    assert len(set(tags.values())) == 4
    for coding, tag in tags.items():
        got = fetch(server.port, "/all.css",
                    fields=f"Accept-Encoding: {coding}\r\nIf-None-Match: {tag}\r\n")
        assert got.status == 304 and got["Vary"] == "Accept-Encoding"


def test_errors_about_a_variant_vary(server):
    """As the variant would: a cache between must not answer others with them."""
    for coding in ("identity", "br", "gzip"):
        accept = f"Accept-Encoding: {coding}\r\n"
        for fields, status in [('If-Match: "other"\r\n', 412), ("Range: bytes=9999999-\r\n", 416),
                               ("If-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n", 412)]:
            got = fetch(server.port, "/all.css", fields=accept + fields)
            assert (got.status, got["Vary"]) == (status, "Accept-Encoding"), fields
            assert "Content-Encoding" not in got and "ETag" not in got
            assert ("Content-Range" in got) == (status == 416)
            assert "Vary" not in fetch(server.port, "/none.txt", fields=accept + fields)


def test_only_some(server):
    got = ask(server, "/gz.js", "br, zstd, gzip;q=0.1")
    assert gzip.decompress(got.body) == PLAIN and got["Content-Encoding"] == "gzip"
    got = ask(server, "/gz.js", "br")
    assert got.body == PLAIN and got["Vary"] == "Accept-Encoding"
    got = ask(server, "/none.txt", "br, zstd, gzip")
    assert got.body == PLAIN and "Vary" not in got and "Content-Encoding" not in got


@pytest.mark.parametrize("name", ["old.txt", "folder.txt"])
def test_not_fit(server, name):
    """An older sibling, or a different kind of file with that name, is not used."""
    for _ in range(3):
        got = ask(server, "/" + name, "br, gzip")
        assert got.body == PLAIN and "Content-Encoding" not in got and "Vary" not in got
    assert "Vary" not in ask(server, "/" + name)


def test_next_best(server):
    """A sibling that leads out of the root is not used; the next one is."""
    for _ in range(2):
        got = ask(server, "/out.txt", "br, gzip;q=0.5")
        assert (got.body, got["Content-Encoding"]) == (b"gz", "gzip")


def test_empty_sibling(server):
    got = ask(server, "/empty.txt", "br")
    assert (got.body, got["Content-Encoding"], got["Content-Length"]) == (b"", "br", "0")


def test_index(server):
    got = ask(server, "/", "br")
    assert got.body == b"index in br" and got["Content-Type"] == "text/html; charset=utf-8"


def test_sibling_by_its_own_name(server):
    got = ask(server, "/gz.js.gz", "gzip")
    assert gzip.decompress(got.body) == PLAIN
    assert "Content-Encoding" not in got and "javascript" not in got["Content-Type"]


def test_off(root):
    with running("epoll", root) as server:
        got = ask(server, "/all.css", "br, gzip")
        assert got.body == PLAIN and "Vary" not in got and "Content-Encoding" not in got


def test_large(kind, tmp_path):
    """Larger than a unit, plain or compressed."""
    plain, packed = pattern(3 * MB // SCALE), pattern(2 * MB // SCALE, 1)
    beside(write(tmp_path / "large", plain), "gzip", packed)
    with running(kind, tmp_path, "--precompressed", "on", "--cache-size", 2 * MB,
                 "--cache-control", "no-cache") as server:
        got = ask(server, "/large", "gzip")
        assert got.body == packed and got["Content-Encoding"] == "gzip"
        assert got["Vary"] == "Accept-Encoding" and got["Cache-Control"] == "no-cache"
        assert ask(server, "/large").body == plain


def wait_for(server, target, body):
    """Waits until it is sent compressed with this body."""
    with Client(server.port) as client:
        return any(client.get(target, fields="Accept-Encoding: gzip\r\n").body == body
                   for _ in range(1000000))


def test_changes(tmp_path):
    """When a plain file changes, its siblings are outdated until they are created again."""
    path = write(tmp_path / "file.txt", b"first")
    sibling = beside(path, "gzip", b"packed first")
    with running("epoll", tmp_path, "--precompressed", "on") as server:
        assert ask(server, "/file.txt", "gzip").body == b"packed first"
        write(path, b"second")
        later = path.stat().st_mtime_ns + 5_000_000
        os.utime(path, ns=(later, later))
        for _ in range(3):
            got = ask(server, "/file.txt", "gzip")
            assert got.body == b"second" and "Content-Encoding" not in got
        # Replaced, changed, and removed: detected by the next request.
        write(path, b"third")
        sibling.unlink()
        beside(path, "gzip", b"packed third")
        assert ask(server, "/file.txt", "gzip").body == b"packed third"
        write(sibling, b"packed again")
        assert ask(server, "/file.txt", "gzip").body == b"packed again"
        os.utime(sibling, ns=(1, 1))
        assert ask(server, "/file.txt", "gzip").body == b"third"
        beside(path, "gzip", b"packed once more")
        assert wait_for(server, "/file.txt", b"packed once more")
        sibling.unlink()
        assert ask(server, "/file.txt", "gzip").body == b"third"


def test_new_sibling_is_found(tmp_path):
    """Its absence is cached for a while, not forever."""
    path = write(tmp_path / "file.txt", PLAIN)
    with running("epoll", tmp_path, "--precompressed", "on") as server, Client(server.port) as client:
        assert client.get("/file.txt", fields="Accept-Encoding: gzip\r\n").body == PLAIN
        beside(path, "gzip", b"packed")
        assert wait_for(server, "/file.txt", b"packed")


@pytest.mark.parametrize("program, coding", [
    pytest.param(program, coding, marks=pytest.mark.needs(program))
    for program, coding in [("gzip", "gzip"), ("zstd", "zstd"), ("brotli", "br")]
])
def test_real_packers(tmp_path, program, coding):
    """The output of a compressor counts as new, whatever time it sets."""
    path = write(tmp_path / "file.css", PLAIN)
    subprocess.run([program, "-k", *(["-q"] if program == "zstd" else []), path], check=True)
    with running("epoll", tmp_path, "--precompressed", "on") as server:
        got = ask(server, "/file.css", coding)
        assert got["Content-Encoding"] == coding
        assert got.body == (tmp_path / ("file.css" + SUFFIXES[coding])).read_bytes()


# --- Cache-Control -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ruled(root):
    with running("epoll", root, "--precompressed", "on", "--cache-control", "*.css max-age=60",
                 "--cache-control", "index.* no-cache", "--cache-control", "*.css never",
                 "--cache-control", "public, max-age=5") as server:
        yield server


@pytest.mark.parametrize(
    "target, expected",
    [("/all.css", "max-age=60"), ("/index.html", "no-cache"), ("/", "no-cache"),
     ("/none.txt", "public, max-age=5"), ("/gz.js", "public, max-age=5"), ("/nothing", None)],
)
def test_cache_control(ruled, target, expected):
    for accept in ("br", ""):
        assert ask(ruled, target, accept).fields.get("cache-control") == expected


def test_cache_control_of_what_the_client_has(root):
    with running("epoll", root, "--precompressed", "on", "--cache-control", "max-age=5") as server:
        for accept in ("br", "identity"):
            tag = ask(server, "/all.css", accept)["ETag"]
            fields = f"Accept-Encoding: {accept}\r\n"
            got = fetch(server.port, "/all.css", fields=fields + f"If-None-Match: {tag}\r\n")
            assert (got.status, got["ETag"]) == (304, tag)
            assert got["Cache-Control"] == "max-age=5" and got["Vary"] == "Accept-Encoding"
            got = fetch(server.port, "/all.css", fields=fields + "Range: bytes=1-2\r\n")
            assert (got.status, got.body) == (206, b"n " if accept == "br" else PLAIN[1:3])
            assert got.fields.get("content-encoding") == (accept if accept == "br" else None)
            assert got["Content-Type"] == "text/css; charset=utf-8" and got["Vary"]
            assert got["Cache-Control"] == "max-age=5"


def test_cache_control_by_name_alone(tmp_path):
    write(tmp_path / "a.css", b"")
    write(tmp_path / "a.css.txt", b"")
    write(tmp_path / "dir.css/x", b"")
    with open(os.path.join(os.fsencode(tmp_path), b"bad\xf0"), "wb") as out:
        out.write(b"x")
    with running("epoll", tmp_path, "--cache-control", "*.css max-age=1",
                 "--cache-control", "favicon.ico max-age=2", "--cache-control", "bad? no-store",
                 ) as server:
        write(tmp_path / "favicon.ico", b"")
        assert fetch(server.port, "/a.css")["Cache-Control"] == "max-age=1"
        assert fetch(server.port, "/favicon.ico")["Cache-Control"] == "max-age=2"
        for name in ("a.css.txt", "dir.css/x", "bad%f0"):
            got = fetch(server.port, "/" + name)
            assert got.status == 200 and "Cache-Control" not in got
