# SPDX-License-Identifier: MIT
"""What curl can do besides fetching: ranges, conditions, going on, uploads."""

import os
import re

import pytest

import website
from files import KB, MB, write
from programs import curl
from server import OBEY, running


@pytest.fixture(scope="module")
def server(kind, site):
    with running(kind, os.fsdecode(site.root), "--cache-size", website.CACHE,
                 "--worker", f"/worker={OBEY}", "--max-body", 2 * MB) as server:
        yield server


@pytest.mark.parametrize("spans", ["0-0", "5-1004", "-1", "-70000", "65530-", "1-65536,70000-"])
def test_curl_range(server, site, tmp_path, spans):
    file = site.of_size(128 * KB)
    data = site.data(file)
    said = curl("-r", spans, "-o", tmp_path / "got", "-w", "%{http_code} %{content_type}",
                server.url + file.url)
    assert said.startswith("206 ")
    wanted = []
    for span in spans.split(","):
        first, last = span.split("-")
        if not first:
            wanted.append(data[-int(last):])
        else:
            wanted.append(data[int(first):int(last) + 1 if last else None])
    got = (tmp_path / "got").read_bytes()
    if len(wanted) == 1:
        assert got == wanted[0]
        return
    boundary = re.search(r'multipart/byteranges; boundary="?([^"]+)"?$', said)[1].encode()
    before, *parts, after = (b"\r\n" + got).split(b"\r\n--" + boundary)
    assert before in (b"", b"\r\n") and after == b"--\r\n"
    assert [part.partition(b"\r\n\r\n")[2] for part in parts] == wanted


def test_curl_resume(server, site, tmp_path):
    for size in (MB, 3 * MB):  # in one unit; too large for that
        file = site.of_size(size)
        data = site.data(file)
        for have in (1, file.size // 3, file.size - 1):
            got = write(tmp_path / "got", data[:have])
            curl("--fail", "-C", "-", "-o", got, server.url + file.url)
            assert website.digest_of(got) == file.digest


def test_curl_conditional(server, site, tmp_path):
    url = server.url + site.of_size(1000).url
    got, etag = tmp_path / "got", tmp_path / "etag"
    asked = ["-o", got, "-w", "%{http_code} %{size_download}", url]
    assert curl("-R", "--etag-save", etag, *asked).startswith("200 ")
    assert curl("--etag-compare", etag, *asked) == "304 0"
    curl("-R", "-o", got, url)
    assert curl("-z", got, *asked) == "304 0"
    os.utime(got, (1, 1))
    assert curl("-z", got, *asked).startswith("200 ")
    write(etag, b'"another"\n')
    assert curl("--etag-compare", etag, *asked).startswith("200 ")


WAYS = {
    "PUT": ["-T", "{}"],
    "POST": ["--data-binary", "@{}", "-H", "Content-Type: application/octet-stream"],
    "chunked": ["-T", "{}", "-H", "Transfer-Encoding: chunked"],
    "form": ["-F", "file=@{}"],
}


@pytest.mark.parametrize("way", WAYS)
def test_curl_upload(server, site, tmp_path, way):
    """For the largest curl asks first, by Expect."""
    # Of an empty file in chunks, curl 7.88 does not send the last chunk.
    for size in (0, 1, 65536, 3 * MB // 2)[way == "chunked":]:
        file = site.of_size(size)
        options = [option.format(site.path(file)) for option in WAYS[way]]
        said = curl("-o", tmp_path / "got", "-w", "%{http_code}", *options,
                    server.url + "/worker/echo")
        assert said == "200"
        got = (tmp_path / "got").read_bytes()
        assert site.data(file) in got if way == "form" else site.data(file) == got


def test_curl_upload_refused(server, site):
    """Too much for the worker, or to where no worker is."""
    large = site.path(site.of_size(3 * MB))
    for target, status in (("/worker/echo", "413"), ("/sizes/1.bin", "405"), ("/none", "405")):
        said = curl("-T", large, "-o", os.devnull, "-w", "%{http_code}", server.url + target)
        assert said == status
