# SPDX-License-Identifier: MIT
"""Compressed variants of cached responses of programs (compress=)."""

import gzip

import pytest

from client import Client, fetch
from files import MB, write
from server import SCALE, running
from test_compress import decode, has, idle
from test_response_cache import TOLD, Site

PAGE = "Cache-Control:max-age=600&Content-Type:text/html&size=20000"


@pytest.fixture(scope="module", autouse=True)
def needs_gzip():
    has("gzip")


@pytest.fixture
def site(kind, tmp_path):
    config = tmp_path / "sweet.conf"
    write(config, f"""[sweet]
cache-socket={tmp_path}/socket
worker=/w={TOLD}
workers=1
cache=response
compress=gzip
[path /w/off]
compress=off
[path /w/fixed]
header=Cache-Control: no-transform
""".encode())
    with running(kind, tmp_path, "--config", config) as server:
        yield Site(server, tmp_path)


def packed(site, target, fields="", method="GET"):
    return site.get(target, f"Accept-Encoding: gzip\r\n{fields}", method)


def made(site, target, fields=""):
    """Requests until there is a variant; returns a plain response of the cache, and the variant."""
    count = site.server.status()["compress"]["made"]
    first = packed(site, target, fields)
    second = packed(site, target, fields)
    assert first.body == second.body and "Content-Encoding" not in second
    site.server.wait_status(lambda status: status["compress"]["made"] > count)
    return second, packed(site, target, fields)


def made_again(site, target):
    """The same for a response that the cache has, and that has no variant; returns the variant."""
    count = site.server.status()["compress"]["made"]
    assert "Content-Encoding" not in packed(site, target)
    site.server.wait_status(lambda status: status["compress"]["made"] > count)
    return packed(site, target)


def test_variant(site):
    target = f'/w/a?{PAGE}&ETag:"v1"&Last-Modified:Sun,+06+Nov+1994+08:49:37+GMT&X-Own:kept'
    plain, got = made(site, target)
    assert plain["Vary"] == got["Vary"] == "Accept-Encoding"
    assert got["Content-Encoding"] == "gzip" and gzip.decompress(got.body) == plain.body
    assert got["Content-Length"] == str(len(got.body)) and len(got.body) < 1000
    assert got["ETag"].startswith('"v1-gzip') and got["ETag"].endswith('"')
    for name in ("Content-Type", "Cache-Control", "Last-Modified", "X-Own"):
        assert got[name] == plain[name]
    assert "Age" in got
    head = packed(site, target, method="HEAD")
    changing = {"date": "", "age": ""}
    assert {**head.fields, **changing} == {**got.fields, **changing}
    other = site.get(target)
    assert (other.body, other["ETag"]) == (plain.body, '"v1"')
    assert other["Vary"] == "Accept-Encoding" and "Content-Encoding" not in other
    counts = site.server.status()
    assert counts["compress"]["made"] == 1 and counts["answers"]["stored"] == 1


@pytest.mark.parametrize("coding", [pytest.param("br", marks=pytest.mark.needs("brotli")),
                                    pytest.param("zstd", marks=pytest.mark.needs("zstd"))])
def test_other_codings(tmp_path, coding):
    has(coding)
    config = tmp_path / "sweet.conf"
    write(config, f"[sweet]\nworker=/w={TOLD}\nworkers=1\ncache=response\n"
                  f"compress={coding};gzip\n".encode())
    with running("epoll", tmp_path, "--config", config) as server:
        fields = "Accept-Encoding: gzip, br, zstd\r\n"
        for _ in range(2):
            plain = fetch(server.port, f"/w/a?{PAGE}", fields=fields)
        server.wait_status(lambda status: status["compress"]["made"] == 1)
        got = fetch(server.port, f"/w/a?{PAGE}", fields=fields)
        assert got["Content-Encoding"] == coding and "ETag" not in got
        assert decode(coding, got.body) == plain.body


def test_conditions_and_ranges(site):
    target = f'/w/a?{PAGE}&ETag:"v1"&Last-Modified:Sun,+06+Nov+1994+08:49:37+GMT'
    plain, got = made(site, target)
    tag = got["ETag"]
    same = packed(site, target, f"If-None-Match: {tag}\r\n")
    assert (same.status, same["ETag"], same["Vary"]) == (304, tag, "Accept-Encoding")
    assert "Content-Encoding" not in same
    assert packed(site, target, 'If-None-Match: "v1"\r\n').body == got.body
    same = site.get(target, 'If-None-Match: "v1"\r\n')
    assert (same.status, same["Vary"]) == (304, "Accept-Encoding")
    assert packed(site, target, 'If-Match: "v2"\r\n').status == 412
    for fields in ("", f"If-Range: {tag}\r\n"):
        part = packed(site, target, f"Range: bytes=5-14\r\n{fields}")
        assert (part.status, part.body) == (206, got.body[5:15])
        assert part["Content-Range"] == f"bytes 5-14/{len(got.body)}"
        assert part["Content-Encoding"] == "gzip" and part["ETag"] == tag
    part = packed(site, target, f"Range: bytes={len(got.body)}-\r\n")
    assert (part.status, part["Content-Range"]) == (416, f"bytes */{len(got.body)}")
    part = packed(site, target, 'Range: bytes=5-\r\nIf-Range: "v1"\r\n')
    assert (part.status, part.body) == (206, plain.body[5:]) and "Content-Encoding" not in part
    dated = "Range: bytes=5-\r\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    assert packed(site, target, dated).body == got.body
    assert site.get(target, dated).body == plain.body


def test_weak_and_odd_tags(site):
    got = made(site, f'/w/a?{PAGE}&ETag:W/"v1"')[1]
    assert got["ETag"].startswith('W/"v1-gzip')
    same = packed(site, f'/w/a?{PAGE}&ETag:W/"v1"', f"If-None-Match: {got['ETag']}\r\n")
    assert same.status == 304
    got = made(site, f"/w/a?{PAGE}&ETag:odd")[1]
    assert "ETag" not in got


@pytest.mark.parametrize("extra", [
    "Content-Encoding:x-own", "Content-Encoding:gzip", "Cache-Control:no-transform",
    "Content-MD5:abc", "Repr-Digest:sha-256=:x:", "Content-Digest:sha-256=:x:",
    "Content-Type:image/png", "status=404", "status=203", "short"])
def test_what_is_not_compressed(site, extra):
    target = f"/w/a?{PAGE}&{extra}"
    if "Content-Type" in extra:
        target = target.replace("&Content-Type:text/html", "")
    if "no-transform" in extra:
        target = f"/w/a?{PAGE}".replace("max-age=600", "max-age=600,+no-transform")
    if extra == "short":
        target = target.replace("size=20000", "size=500")
    for _ in range(4):
        got = packed(site, target)
        assert got.fields.get("content-encoding") == (extra.partition(":")[2] if
                                                      "Encoding" in extra else None)
        assert "Vary" not in got
    counts = site.server.status()
    assert counts["compress"]["made"] == counts["compress"]["waiting"] == 0
    assert counts["answers"]["hits"] == 3


@pytest.mark.parametrize("path", ["off", "fixed"])
def test_rules_of_paths(site, path):
    for _ in range(3):
        got = packed(site, f"/w/{path}?{PAGE}")
        assert "Content-Encoding" not in got and "Vary" not in got
    assert site.server.status()["compress"]["made"] == 0


def test_not_cached(site):
    """Responses that are not cached leave as they are."""
    for _ in range(3):
        got = packed(site, "/w/a?Content-Type:text/html&size=20000")
        assert "Content-Encoding" not in got and "Vary" not in got
    assert site.server.status()["compress"]["made"] == 0


def test_errors_about_a_variant_vary(site):
    for own, vary in [("", "Accept-Encoding"),
                      ("&Vary:Accept-Language,+Accept-Encoding", "Accept-Language, Accept-Encoding")]:
        target = f"/w/a?{PAGE}&X-Number:{len(own)}{own}"
        assert fetch(site.port, target).status == 200
        for fields, status in [('If-Match: "other"\r\n', 412), ("Range: bytes=9999999-\r\n", 416)]:
            got = fetch(site.port, target, fields=fields)
            assert (got.status, got["Vary"]) == (status, vary), fields
            assert ("Content-Range" in got) == (status == 416) and "X-Number" not in got


def test_own_vary(site):
    """A program's Vary is not repeated; its other fields select as before."""
    target = f"/w/a?{PAGE}&Vary:Accept-Language,+Accept-Encoding"
    german, english = "Accept-Language: de\r\n", "Accept-Language: en\r\n"
    plain, got = made(site, target, german)
    assert got["Vary"] == plain["Vary"] == "Accept-Language, Accept-Encoding"
    assert b" de " in gzip.decompress(got.body)
    assert b" en " in gzip.decompress(made(site, target, english)[1].body)
    assert packed(site, target, german).body == got.body


def test_purged_by_tag(site):
    """The variant has its source's tags: a purge ends both, and their units."""
    units = site.server.status()["cache"]["units"]
    target = f"/w/a?{PAGE}&X-NABC-Tag:news"
    first = made(site, target)[1]
    assert "X-NABC-Tag" not in first
    assert site.purge("news") == 1
    site.server.wait_status(lambda status: status["cache"]["units"] <= units)
    got = packed(site, target)
    assert "Content-Encoding" not in got
    assert got.body.split()[0] != gzip.decompress(first.body).split()[0]
    assert gzip.decompress(made_again(site, target).body) == got.body


def test_soft_purge(site):
    """Makes the variant stale with its source: each is sent until a new response has come."""
    target = f"/w/a?{PAGE}&X-NABC-Tag:news"
    plain, got = made(site, target)
    assert site.purge("--soft", "news") == 1
    stale = site.counters()["stale"]
    again = packed(site, target)
    assert again.body in (got.body, plain.body) and site.counters()["stale"] == stale + 1
    site.server.wait_status(lambda status: status["answers"]["stored"] == 2)
    new = site.get(target)
    assert new.body != plain.body and "Content-Encoding" not in new
    # Nothing of the old one is left.
    assert packed(site, target).body == new.body
    site.server.wait_status(lambda status: status["compress"]["made"] == 2)
    assert gzip.decompress(packed(site, target).body) == new.body


def test_invalidated_and_destroyed(site):
    """By a change at the URL, and by the end of the program's own unit."""
    target = f"/w/a?{PAGE}"
    made(site, target)
    site.get(target, "Content-Length: 0\r\n", "POST")
    assert "Content-Encoding" not in packed(site, target)
    target = f"/w/b?{PAGE}&keep"
    got = made(site, target)[1]
    site.get("/w/c?destroy")
    assert "Content-Encoding" not in packed(site, target)
    assert gzip.decompress(made_again(site, target).body) != gzip.decompress(got.body)


def test_stale(kind, tmp_path, clock):
    """The variant is as old as its source: Age grows, and it is not sent when that is over."""
    config = tmp_path / "sweet.conf"
    write(config, f"[sweet]\nworker=/w={TOLD}\nworkers=1\ncache=response\ncompress=gzip\n".encode())
    target = f"/w/a?{PAGE}".replace("600", "10")
    with running(kind, tmp_path, "--config", config, "--threads", 1, clock=clock) as server:
        site = Site(server, tmp_path)
        got = made(site, target)[1]
        server.forward(5)
        assert packed(site, target)["Age"] == "5"
        server.forward(10)
        again = packed(site, target)
        assert "Content-Encoding" not in again
        assert again.body.split()[0] != gzip.decompress(got.body).split()[0]


def test_several_ranges(site):
    """A body of several units becomes one."""
    target = f"/w/a?{PAGE}&mixed"
    plain, got = made(site, target)
    assert gzip.decompress(got.body) == plain.body


def test_little_memory(kind, tmp_path):
    config = tmp_path / "sweet.conf"
    write(config, f"[sweet]\nworker=/w={TOLD}\nworkers=1\ncache=response\ncompress=gzip\n"
                  f"compress-min=1\n".encode())
    with running(kind, tmp_path, "--config", config, "--cache-size", 2 * MB) as server:
        with Client(server.port) as client:
            for i in range(100 // SCALE):
                target = f"/w/{i}?Cache-Control:max-age=60&Content-Type:text/css&size=50000"
                for _ in range(4):
                    got = client.get(target, fields="Accept-Encoding: gzip\r\n")
                    body = gzip.decompress(got.body) if "Content-Encoding" in got else got.body
                    assert got.status == 200 and body.endswith(b"x" * 50000)
        status = server.wait_status(idle)
        assert status["compress"]["made"] > 0
