# SPDX-License-Identifier: MIT
"""Conditional requests (RFC 9110, section 13), by raw requests and by curl."""

import email.utils
import gzip
import os
import re
import shutil
import subprocess
import time

import pytest

from client import Client, fetch
from files import KB, MB, pattern, write
from server import TIMEOUT, running

CACHE = 4 * MB  # a unit is a quarter of it
SIZES = {"empty": 0, "small": 1000, "large": 3 * MB}
DAY = 86400


def date(when):
    return email.utils.formatdate(when, usegmt=True)


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = tmp_path_factory.mktemp("conditions")
    for name, size in SIZES.items():
        os.utime(write(root / name, pattern(size)), (time.time(), 1500000000))
    with running(kind, root, "--cache-size", CACHE) as server:
        server.root = root
        yield server


def validators(client, name):
    got = client.get("/" + name, "HEAD")
    assert re.fullmatch(r'"[0-9A-Za-z_-]{16}"', got["ETag"])
    return got["ETag"], email.utils.mktime_tz(email.utils.parsedate_tz(got["Last-Modified"]))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("name", SIZES)
def test_precedence(server, name, method):
    with Client(server.port) as client:
        tag, when = validators(client, name)
        at, before, after = date(when), date(when - 1), date(when + 1)
        for fields, status in [
            (f"If-None-Match: {tag}\r\n", 304),
            (f"If-None-Match: W/{tag}\r\n", 304),
            ("If-None-Match: *\r\n", 304),
            (f'If-None-Match: "x", {tag}\r\n', 304),
            (f'If-None-Match: "x"\r\nIf-None-Match: {tag}\r\n', 304),
            ('If-None-Match: "x"\r\n', 200),
            (f'If-None-Match: "x"\r\nIf-Modified-Since: {after}\r\n', 200),
            (f"If-None-Match: {tag}\r\nIf-Modified-Since: {before}\r\n", 304),
            (f"If-Modified-Since: {at}\r\n", 304),
            (f"If-Modified-Since: {after}\r\n", 304),
            (f"If-Modified-Since: {before}\r\n", 200),
            (f"If-Modified-Since: {time.asctime(time.gmtime(when))}\r\n", 304),
            ("If-Modified-Since: today\r\n", 200),
            (f"If-Match: {tag}\r\n", 200),
            ("If-Match: *\r\n", 200),
            ('If-Match: "x"\r\n', 412),
            (f"If-Match: W/{tag}\r\n", 412),
            (f"If-Match: {tag}\r\nIf-None-Match: {tag}\r\n", 304),
            (f'If-Match: "x"\r\nIf-None-Match: {tag}\r\n', 412),
            (f"If-Match: {tag}\r\nIf-Unmodified-Since: {before}\r\n", 200),
            (f"If-Unmodified-Since: {at}\r\n", 200),
            (f"If-Unmodified-Since: {before}\r\n", 412),
            ('If-Match: "x"\r\nRange: bytes=0-1\r\n', 412),
        ]:
            got = client.get("/" + name, method, fields) if status != 304 else ask(
                client, name, method, fields
            )
            assert got.status == status, fields
            if status == 200:
                assert got["ETag"] == tag
                assert method == "HEAD" or len(got.body) == SIZES[name]
            if status == 412:
                assert "ETag" not in got and "Last-Modified" not in got


def ask(client, name, method, fields):
    """Sends a request; a 304 response has no body, whatever its fields say."""
    got = client.get("/" + name, "HEAD", fields) if method == "HEAD" else None
    if got is None:
        client.send(f"GET /{name} HTTP/1.1\r\nHost: t\r\n{fields}\r\n".encode())
        got = client.response("HEAD")
    for field in ("ETag", "Date", "Last-Modified"):
        assert field in got
    for field in ("Content-Length", "Content-Type", "Content-Range"):
        assert field not in got
    return got


@pytest.mark.parametrize("name", ["small", "large"])
def test_if_range(server, name):
    with Client(server.port) as client:
        tag, when = validators(client, name)
        for validator, status in [
            (tag, 206),
            ("W/" + tag, 200),
            ('"x"', 200),
            (f'"x", {tag}', 200),
            (date(when), 206),
            (date(when + 1), 200),
            (date(when - 1), 200),
            ("nonsense", 200),
        ]:
            fields = f"Range: bytes=0-9\r\nIf-Range: {validator}\r\n"
            got = client.get("/" + name, fields=fields)
            assert got.status == status, validator
            assert len(got.body) == (10 if status == 206 else SIZES[name])


def test_file_read_first(server):
    """The conditions are still valid after its file was read."""
    for number in range(5):
        name = f"cold-{number}"
        write(server.root / name, pattern(100 * KB, number))
        with Client(server.port) as client:
            got = client.get("/" + name, fields='If-Match: "x"\r\nAccept: */*\r\n')
            assert got.status == 412
        name = f"cold-too-{number}"
        write(server.root / name, pattern(100 * KB, number))
        with Client(server.port) as client:
            got = client.get("/" + name, fields='Range: bytes=5-9\r\nIf-None-Match: "x"\r\n')
            assert (got.status, got.body) == (206, pattern(100 * KB, number)[5:10])


def test_tag_changes_with_the_file(server):
    path = server.root / "changing"
    tags = set()
    with Client(server.port) as client:
        for number in range(8):
            path.write_bytes(pattern(500, number))
            os.utime(path, (1500000000, 1500000000))  # with the same time and size
            tag, _ = validators(client, "changing")
            assert tag not in tags
            for old in tags:
                got = client.get("/changing", fields=f"If-None-Match: {old}\r\n")
                assert (got.status, got.body) == (200, pattern(500, number))
                got = client.get("/changing", fields=f"Range: bytes=0-1\r\nIf-Range: {old}\r\n")
                assert (got.status, got.body) == (200, pattern(500, number))
            tags.add(tag)


def test_tag_outlives_the_server(kind, tmp_path):
    write(tmp_path / "file", b"the same\n")
    tags = set()
    for _ in range(2):
        with running(kind, tmp_path) as server, Client(server.port) as client:
            tags.add(client.get("/file")["ETag"])
    assert len(tags) == 1


def dates(got):
    """Returns Last-Modified and Date, in seconds."""
    return [email.utils.mktime_tz(email.utils.parsedate_tz(got[field]))
            for field in ("Last-Modified", "Date")]


def test_no_file_is_of_the_future(server):
    """Each is looked at again, also while the server's second ends."""
    until = time.monotonic() + 1.2
    number = 0
    with Client(server.port) as client:
        while time.monotonic() < until or number < 5:
            number += 1
            path = write(server.root / f"future-{number}", b"x")
            # The second is about to begin, or a day away.
            when = time.time() + (1 if number % 2 else DAY)
            os.utime(path, (when, when))
            modified, sent = dates(client.get(f"/future-{number}"))
            assert modified <= sent
            path.unlink()


def test_date_of_the_future_is_weak(server):
    """It says when the file was looked at: no part of another version may be added to it."""
    path = write(server.root / "weak", pattern(1000))
    when = time.time() + DAY
    os.utime(path, (when, when))
    with Client(server.port) as client:
        got = client.get("/weak")
        modified, sent = dates(got)
        deadline = time.monotonic() + TIMEOUT
        while sent <= modified:
            assert time.monotonic() < deadline
            sent = dates(client.get("/weak"))[1]
        since = got["Last-Modified"]
        part = client.get("/weak", fields=f"Range: bytes=5-9\r\nIf-Range: {since}\r\n")
        assert (part.status, part.body) == (200, pattern(1000))
        part = client.get("/weak", fields=f"Range: bytes=5-9\r\nIf-Range: {got['ETag']}\r\n")
        assert (part.status, part.body) == (206, pattern(1000)[5:10])
        assert ask(client, "weak", "GET", f"If-Modified-Since: {since}\r\n").status == 304
        assert client.get("/weak", fields=f"If-Unmodified-Since: {since}\r\n").status == 200


BACK = 100  # seconds


def get(client, name, method, fields):
    return client.get("/" + name, method, fields)


@pytest.mark.parametrize("age", [BACK // 2, -DAY], ids=["past", "future"])
@pytest.mark.parametrize("name, coding", [("small", ""), ("large", ""), ("coded", "gzip")])
def test_clock_is_set_back(start, clock, tmp_path, name, coding, age):
    """Date is that of the clock, and what is kept of a file from before then is not later: the head,
    small files that are kept ready, variants, and files that are streamed."""
    root = tmp_path / "root"
    when = time.time() - age
    for file, size in ("small", 1000), ("large", 3 * MB), ("coded", 5000):
        os.utime(write(root / file, pattern(size)), (when, when))
    os.utime(write(root / "coded.gz", gzip.compress(pattern(5000))), (when, when))
    conf = write(tmp_path / "conf", f"[sweet]\nroot={root}\nlisten=127.0.0.1:0\nprecompressed=on\n"
                 f"cache-size={CACHE}\nthreads=1\n".encode())
    server = start(None, "--config", conf, clock=clock)
    accept = f"Accept-Encoding: {coding}\r\n" if coding else ""
    with Client(server.port) as client:
        for _ in range(6):
            got = client.get(f"/{name}", fields=accept)
            assert got.status == 200
            assert got.fields.get("content-encoding", "") == coding
        before = dates(got)[1]
        if clock.plan:
            clock.plan["realtime"] = -BACK * 10**9
        deadline = time.monotonic() + TIMEOUT
        while clock.plan and dates(client.get(f"/{name}", "HEAD"))[1] >= before:
            assert time.monotonic() < deadline
        for _ in range(6):
            modified, sent = dates(client.get(f"/{name}", fields=accept))
            assert modified <= sent
        for status, method, fields in [
                (200, "HEAD", ""), (304, "GET", f"If-None-Match: {got['ETag']}\r\n"),
                (206, "GET", "Range: bytes=1-3\r\n"),
                (206, "GET", "Range: bytes=1-3,9-12\r\n")]:
            said = (ask if status == 304 else get)(client, name, method, accept + fields)
            assert said.status == status
            modified, sent = dates(said)
            assert modified <= sent, fields
        # Then it is right again.
        if clock.plan:
            clock.plan["realtime"] = 0
        while clock.plan and dates(client.get(f"/{name}", "HEAD"))[1] < before:
            assert time.monotonic() < deadline
        modified, sent = dates(client.get(f"/{name}", fields=accept))
        assert modified <= sent and (age < 0 or modified == int(when))


def test_too_long(server):
    with Client(server.port) as client:
        long = ", ".join(f'"{number:020}"' for number in range(100))
        assert client.get("/small", fields=f"If-None-Match: {long}\r\n").status == 431
        assert client.get("/small").status == 200


def test_error_has_no_conditions(server):
    """Conditions apply only to existing files (RFC 9110, section 13.2.1)."""
    with Client(server.port) as client:
        for fields in ('If-Match: "x"\r\n', "If-None-Match: *\r\n"):
            assert client.get("/none", fields=fields).status == 404


def curl(*arguments):
    return subprocess.run(
        ["curl", "--noproxy", "*", "-sS", "--max-time", str(TIMEOUT), *arguments],
        capture_output=True, timeout=TIMEOUT * 2, check=True,
    ).stdout


def test_curl(server, tmp_path):
    url, got, tag = server.url + "/small", tmp_path / "got", tmp_path / "tag"
    code = ["-o", got, "-w", "%{http_code}", url]
    assert curl("--etag-save", tag, *code) == b"200"
    assert got.stat().st_size == SIZES["small"]
    assert curl("--etag-compare", tag, *code) == b"304"
    assert curl("-R", *code) == b"200"
    assert curl("-z", got, *code) == b"304"
    long_ago = date(1000000000)
    assert curl("-z", "-" + long_ago, *code) == b"412"  # If-Unmodified-Since
    assert curl("-z", long_ago, *code) == b"200"


@pytest.mark.parametrize("size", [5, 6 * MB], ids=str)
def test_tag_of_each_node(tmp_path, size):
    """etag=time: what the machines of a site have copied has one tag, whatever chmod did."""
    one = write(tmp_path / "one/file", pattern(size))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    copy = tmp_path / "two/file"
    os.link(copy, tmp_path / "two/link")
    options = ["--cache-size", "16M", "--etag", "time"]
    with running("epoll", tmp_path / "one", *options) as first, \
            running("epoll", tmp_path / "two", *options) as second:
        def tag(server):
            return fetch(server.port, "/file")["ETag"]

        known = tag(first)
        assert tag(second) == known
        copy.chmod(0o640)
        assert tag(second) == known
        got = fetch(second.port, "/file", fields=f"If-None-Match: {known}\r\n", method="HEAD")
        assert got.status == 304
        # It is another one if its bytes may be others.
        os.utime(copy, ns=(0, one.stat().st_mtime_ns + 1))
        assert tag(second) != known
        os.utime(copy, ns=(0, one.stat().st_mtime_ns))
        assert tag(second) == known
        os.truncate(copy, size - 1)
        os.utime(copy, ns=(0, one.stat().st_mtime_ns))
        assert tag(second) != known
    # Without the key, a tag is of one file.
    with running("epoll", tmp_path / "one") as server:
        assert fetch(server.port, "/file")["ETag"] != known
