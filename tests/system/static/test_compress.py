# SPDX-License-Identifier: MIT
"""Compressed variants of files, which the server makes and keeps (compress=)."""

import gzip
import os
import subprocess

import pytest

from client import Client, fetch, request
from files import MB, pattern, write
from priorities import LOWER, nice_of_threads
from server import check_config, once, running
from test_reload import reload

TEXT = b"".join(b"<p>Paragraph %d of a page that can be compressed.</p>\n" % i for i in range(400))
PACKAGES = {"zstd": "libzstd-dev", "br": "libbrotli-dev", "gzip": "zlib1g-dev"}
ALL = [pytest.param("gzip"), pytest.param("br", marks=pytest.mark.needs("brotli")),
       pytest.param("zstd", marks=pytest.mark.needs("zstd"))]


def has(coding):
    """Skips the test if the server was built without the library."""
    if once("--check-config", "--compress", coding).returncode:
        pytest.skip(f"{PACKAGES[coding]} is missing; on Debian: apt-get install {PACKAGES[coding]}")


@pytest.fixture(autouse=True)
def needs_gzip():
    has("gzip")


def decode(coding, body):
    if coding == "gzip":
        return gzip.decompress(body)
    program = {"br": "brotli", "zstd": "zstd"}[coding]
    return subprocess.run([program, "-d", "-c"], input=body, capture_output=True, check=True).stdout


def compressed(*codings):
    return [word for coding in codings for word in ("--compress", coding)]


def get(server, target, accept="gzip", fields="", method="GET"):
    return fetch(server.port, target, method, f"Accept-Encoding: {accept}\r\n{fields}")


def is_plain(got, body=TEXT):
    return got.status == 200 and got.body == body and "Content-Encoding" not in got


def idle(status):
    return status["compress"]["waiting"] == 0


def made(server, target, accept="gzip"):
    """Requests a file until its variant is there; returns both responses."""
    count = server.status()["compress"]["made"]
    first = get(server, target, accept)
    assert "Content-Encoding" not in first
    server.wait_status(lambda status: status["compress"]["made"] > count)
    return first, get(server, target, accept)


def make(server, target):
    """Makes the variant of a file that may be evicted before it is compressed: then the next
    request begins again."""
    count = server.status()["compress"]["made"]

    def is_made(status):
        if status["compress"]["made"] > count:
            return True
        if idle(status):
            assert get(server, target).status == 200
        return False

    server.wait_status(is_made)


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "root" / "page.html", TEXT)
    return tmp_path / "root"


@pytest.mark.parametrize("coding", ALL)
def test_each_coding(kind, root, coding):
    has(coding)
    with running(kind, root, *compressed(coding)) as server:
        first, second = made(server, "/page.html", coding)
        assert is_plain(first) and first["Vary"] == "Accept-Encoding"
        assert second["Content-Encoding"] == coding and second["Vary"] == "Accept-Encoding"
        assert second["Content-Type"] == first["Content-Type"] == "text/html; charset=utf-8"
        assert second["Last-Modified"] == first["Last-Modified"]
        assert decode(coding, second.body) == TEXT and len(second.body) < len(TEXT) // 4
        assert second["ETag"] != first["ETag"] and second["ETag"][0] == '"'
        head = get(server, "/page.html", coding, method="HEAD")
        assert {**head.fields, "date": ""} == {**second.fields, "date": ""}
        assert is_plain(get(server, "/page.html", "identity"))
        # One unit each, however often it is requested.
        for _ in range(3):
            assert get(server, "/page.html", coding).body == second.body
        counts = server.status()["compress"]
        assert counts["made"] == 1 and counts["failed"] == counts["refused"] == 0
        assert (counts["bytes_in"], counts["bytes_out"]) == (len(TEXT), len(second.body))


def test_low_priority(root):
    """The thread that compresses files gives way to those that serve."""
    with running("epoll", root, "--threads", 2, *compressed("gzip")) as server:
        before = nice_of_threads(server.pid)
        made(server, "/page.html")
        after = nice_of_threads(server.pid)
        assert [after[thread] for thread in after if thread not in before] \
            == [min(19, after[server.pid] + LOWER)]


@pytest.mark.needs("zstd")
@pytest.mark.parametrize("order, accept, coding", [
    (["zstd", "gzip"], "gzip, zstd", "zstd"),
    (["gzip", "zstd"], "gzip, zstd", "gzip"),
    (["gzip", "zstd"], "gzip;q=0.5, zstd", "zstd"),
    (["zstd", "gzip"], "*", "zstd"),
    (["zstd"], "gzip, zstd;q=0.1", "zstd"),
])
def test_order(root, order, accept, coding):
    has("zstd")
    with running("epoll", root, *compressed(*order)) as server:
        assert made(server, "/page.html", accept)[1]["Content-Encoding"] == coding


def test_next_best_meanwhile(root):
    """A variant that exists is sent until the preferred one is made, too."""
    has("br")
    with running("epoll", root, *compressed("br", "gzip")) as server:
        made(server, "/page.html", "gzip")
        assert get(server, "/page.html", "br, gzip")["Content-Encoding"] == "gzip"
        server.wait_status(lambda status: status["compress"]["made"] == 2)
        assert get(server, "/page.html", "br, gzip")["Content-Encoding"] == "br"


def test_conditions_and_ranges(root):
    # A date within its own second does not permit a range in any case.
    os.utime(root / "page.html", (784111777, 784111777))
    with running("epoll", root, *compressed("gzip")) as server:
        plain, packed = made(server, "/page.html")
        tag = packed["ETag"]
        got = get(server, "/page.html", fields=f"If-None-Match: {tag}\r\n")
        assert (got.status, got["ETag"], got["Vary"]) == (304, tag, "Accept-Encoding")
        assert get(server, "/page.html", fields=f"If-None-Match: {plain['ETag']}\r\n").status == 200
        assert get(server, "/page.html", "identity",
                   f"If-None-Match: {plain['ETag']}\r\n").status == 304
        assert get(server, "/page.html", fields='If-Match: "other"\r\n').status == 412
        size = len(packed.body)
        for fields in ("", f"If-Range: {tag}\r\n"):
            got = get(server, "/page.html", fields=f"Range: bytes=10-29\r\n{fields}")
            assert (got.status, got.body) == (206, packed.body[10:30])
            assert got["Content-Range"] == f"bytes 10-29/{size}" and got["ETag"] == tag
            assert got["Content-Encoding"] == "gzip"
        got = get(server, "/page.html", fields="Range: bytes=0-1,10-11\r\n")
        assert got.status == 206 and packed.body[10:12] in got.body
        got = get(server, "/page.html", fields='Range: bytes=0-1\r\nIf-Range: "other"\r\n')
        assert (got.status, got.body) == (200, packed.body)
        got = get(server, "/page.html", fields=f"Range: bytes={size}-\r\n")
        assert (got.status, got["Content-Range"]) == (416, f"bytes */{size}")
        # A client that has a part of the file itself gets the rest of that.
        got = get(server, "/page.html", fields=f"Range: bytes=9-\r\nIf-Range: {plain['ETag']}\r\n")
        assert (got.status, got.body, got["ETag"]) == (206, TEXT[9:], plain["ETag"])
        assert "Content-Encoding" not in got and got["Vary"] == "Accept-Encoding"
        # A date does not say which of them it has.
        dated = f"Range: bytes=9-\r\nIf-Range: {plain['Last-Modified']}\r\n"
        assert get(server, "/page.html", fields=dated).body == packed.body
        assert is_plain(get(server, "/page.html", "identity", dated))


@pytest.mark.parametrize("fields, method", [
    ("Range: bytes=0-9\r\n", "GET"), ("", "HEAD"), ("Accept-Encoding: identity\r\n", "GET")])
def test_begins_nothing(root, fields, method):
    """Neither a part nor a head is worth the work."""
    accept = "" if "Accept" in fields else "Accept-Encoding: gzip\r\n"
    with running("epoll", root, *compressed("gzip")) as server:
        for _ in range(3):
            got = fetch(server.port, "/page.html", method, accept + fields)
            assert "Content-Encoding" not in got and got["Vary"] == "Accept-Encoding"
        counts = server.status()["compress"]
        assert counts["made"] == counts["waiting"] == 0


def test_what_is_not_compressed(root):
    """By type, by size, by rule: as if there were no compression, without Vary."""
    rules = root.parent / "rules.conf"
    rules.write_text("""[sweet]
compress=gzip
compress-max=100K
[path /secret]
compress=off
[path /whole]
cache-control=max-age=5, no-transform
[path /described]
header=Content-Encoding: x-own
[path /fixed]
header=Cache-Control: no-transform
[path /varied]
header=Cache-Control: {path}
[path /json]
compress-types=application/*
compress-min=10
""")
    for name in ("page.png", "secret/page.html", "whole/page.html", "fixed/page.html",
                 "varied/page.html", "json/page.html"):
        write(root / name, TEXT)
    write(root / "small.html", TEXT[:1023])
    write(root / "edge.html", TEXT[:1024])
    write(root / "large.html", TEXT * 10)
    write(root / "described" / "page.html", TEXT)
    write(root / "json" / "page.json", b'"' + b"a" * 50 + b'"')
    with running("epoll", root, "--config", rules) as server:
        for _ in range(2):
            for name in ("page.png", "secret/page.html", "whole/page.html", "fixed/page.html",
                         "varied/page.html", "small.html", "large.html", "json/page.html"):
                got = get(server, "/" + name)
                assert got.body == (root / name).read_bytes(), name
                assert "Content-Encoding" not in got and "Vary" not in got, name
            got = get(server, "/described/page.html")
            assert (got["Content-Encoding"], got.body) == ("x-own", TEXT)
        assert server.status()["compress"]["made"] == 0
        assert gzip.decompress(made(server, "/edge.html")[1].body) == TEXT[:1024]
        assert made(server, "/json/page.json")[1]["Content-Encoding"] == "gzip"


def test_not_smaller(root):
    """What does not become smaller is tried once."""
    body = os.urandom(20000)
    write(root / "random.txt", body)
    with running("epoll", root, *compressed("gzip")) as server:
        assert is_plain(get(server, "/random.txt"), body)
        server.wait_status(lambda status: status["compress"]["not_smaller"] == 1)
        for _ in range(3):
            got = get(server, "/random.txt")
            assert is_plain(got, body) and "Vary" not in got
        counts = server.wait_status(idle)["compress"]
        assert (counts["not_smaller"], counts["made"]) == (1, 0)


def test_changes(root):
    """The variant ends with the version of its file, and its unit, too."""
    with running("epoll", root, *compressed("gzip")) as server:
        before = made(server, "/page.html")[1]
        units = server.status()["cache"]["units"]
        for body in (TEXT[::-1], TEXT + b"more"):
            write(root / "page.html", body)
            got = get(server, "/page.html")
            assert is_plain(got, body)
            server.wait_status(idle)
            got = get(server, "/page.html")
            assert gzip.decompress(got.body) == body and got["ETag"] != before["ETag"]
            before = got
        server.wait_status(lambda status: status["cache"]["units"] <= units)
        (root / "page.html").unlink()
        assert get(server, "/page.html").status == 404


def test_same_tags_after_a_restart(root):
    with running("epoll", root, *compressed("gzip")) as server:
        first = made(server, "/page.html")[1]
    with running("epoll", root, *compressed("gzip")) as server:
        second = made(server, "/page.html")[1]
    assert (first["ETag"], first.body) == (second["ETag"], second.body)


def test_precompressed_first(root):
    """A file beside the plain one is preferred; its codings do not depend on the others."""
    has("br")
    once = gzip.compress(TEXT, 1)  # has the time
    packed = write(root / "page.html.gz", once)
    stat = (root / "page.html").stat()
    os.utime(packed, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
    with running("epoll", root, "--precompressed", "on", *compressed("br", "gzip")) as server:
        for _ in range(2):
            assert get(server, "/page.html").body == once
        assert server.status()["compress"]["made"] == 0
        first, second = made(server, "/page.html", "br")
        assert is_plain(first) and second["Content-Encoding"] == "br"


def test_index_and_reload(root):
    """The variant of an index; a reload keeps it, and can end its use."""
    write(root / "index.html", TEXT)
    config = root.parent / "sweet.conf"
    config.write_text("[sweet]\ncompress=gzip\n")
    with running("epoll", root, "--config", config) as server:
        assert made(server, "/")[1]["Content-Encoding"] == "gzip"
        config.write_text("[sweet]\ncompress=gzip\nhidden=on\n")
        reload(server)
        assert get(server, "/")["Content-Encoding"] == "gzip"
        config.write_text("[sweet]\n")
        reload(server)
        got = get(server, "/")
        assert is_plain(got) and "Vary" not in got
        assert server.status()["compress"]["made"] == 1


def test_many_files(kind, root):
    """More than wait at once: the others are made when they are requested again."""
    names = [f"/many/{i}.txt" for i in range(300)]
    for name in names:
        write(root / name[1:], TEXT[:2000] + name.encode())
    with running(kind, root, *compressed("gzip")) as server:
        missing = set(names)
        while missing:
            for name in sorted(missing):
                got = get(server, name)
                body = TEXT[:2000] + name.encode()
                if "Content-Encoding" in got:
                    assert gzip.decompress(got.body) == body
                    missing.remove(name)
                else:
                    assert is_plain(got, body)
        assert server.status()["compress"]["made"] == len(names)


def test_little_memory(kind, root):
    """Variants are a part of the cache: more of them than it can hold."""
    for i in range(60):
        write(root / f"{i}.txt", pattern(100_000, i).hex().encode()[:150_000])
    with running(kind, root, *compressed("gzip"), "--cache-size", 2 * MB) as server:
        for _ in range(3):
            for i in range(60):
                body = (root / f"{i}.txt").read_bytes()
                got = get(server, f"/{i}.txt")
                assert (gzip.decompress(got.body) if "Content-Encoding" in got else got.body) == body
        status = server.wait_status(idle)
        assert status["compress"]["made"] > 0 and status["cache"]["evictions"] > 0


def test_files_that_programs_have_sent(root):
    """They may have a Vary of their own, which would replace that of a variant."""
    program = root.parent / "programs" / "p"
    lines = ["#!/bin/sh", f"echo X-Sendfile: {root}/page.html", "echo Vary: Cookie", "echo", ""]
    write(program, "\n".join(lines).encode()).chmod(0o755)
    config = root.parent / "accel.conf"
    config.write_text(f"[sweet]\ncompress=gzip\n[path /p]\npool=sends\n[pool sends]\n"
                      f"protocol=cgi\nfolder={program.parent}\naccel={root}\n")
    with running("epoll", root, "--config", config) as server:
        made(server, "/page.html")
        for accept in ("gzip", "identity"):
            got = get(server, "/p/p", accept)
            assert is_plain(got) and got["Vary"] == "Cookie"


def test_slow_clients(kind, root):
    """They hold at most a part of the cache; the variant, which no file has, waits in the spool."""
    text = pattern(3 * MB // 2).hex().encode()
    count = 8
    for i in range(count):
        write(root / f"{i}.txt", b"%d %s" % (i, text))
    with running(kind, root, *compressed("gzip"), "--cache-size", 16 * MB) as server:
        clients = []
        for i in range(count):
            make(server, f"/{i}.txt")
            clients.append(Client(server.port, 4096))
            clients[-1].send(request(f"/{i}.txt", fields="Accept-Encoding: gzip\r\n"))
        server.wait_status(lambda status: status["slow"]["to_spool"] > 0
                           and status["slow"]["held_bytes"] <= 8 * MB)
        for i, client in enumerate(clients):
            client.hurry()
            got = client.response()
            packed = "Content-Encoding" in got  # not if it was evicted before the request
            assert (gzip.decompress(got.body) if packed else got.body) == b"%d %s" % (i, text)
            client.close()


def test_stops_while_it_compresses(root):
    write(root / "large.txt", TEXT * 300)
    with running("epoll", root, *compressed("gzip")) as server:
        assert get(server, "/large.txt").status == 200


@pytest.mark.parametrize("lines, message", [
    ("compress=deflate", 'compress "deflate": must be zstd, br or gzip; or off alone'),
    ("compress=gzip;gzip", 'compress "gzip": must be there once'),
    ("compress=gzip;off", 'compress "off": must be zstd, br or gzip; or off alone'),
    ("compress-types=text", 'compress-types "text": must be a media type'),
    ("compress-types=text/", 'compress-types "text/": must be a media type'),
    ("compress-min=0", 'compress-min "0": must be'),
])
def test_bad_values(tmp_path, lines, message):
    config = tmp_path / "bad.conf"
    config.write_text(f"[sweet]\n{lines}\n")
    status, text = check_config(config)
    assert status != 0 and message in text and "bad.conf:2" in text
