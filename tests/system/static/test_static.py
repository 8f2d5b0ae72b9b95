# SPDX-License-Identifier: MIT
"""Files by curl: bytes, types, heads, folders."""

import email.utils
import filecmp
import re
import subprocess

import pytest

from client import fetch
from files import KB, MB, pattern, write
from server import SCALE, TIMEOUT, running

SIZES = [0, 1, 4095, 4096, 4097, MB, 64 * MB // SCALE]
HUGE = 200 * MB // SCALE
TYPES = {
    "a.html": "text/html; charset=utf-8",
    "a.css": "text/css; charset=utf-8",
    "a.js": "text/javascript; charset=utf-8",
    "a.png": "image/png",
    "a.txt": "text/plain; charset=utf-8",
    "a.svg": "image/svg+xml",
    "a.no-such-type": "application/octet-stream",
    "a": "application/octet-stream",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("static")
    for size in SIZES:
        write(root / f"{size}.bin", pattern(size))
    write(root / "index.html", b"<p>the first page</p>\n")
    write(root / "folder/index.html", b"<p>of the folder</p>\n")
    write(root / "a folder/b", b"")
    write(root / "bare/file", b"found\n")
    for name in TYPES:
        write(root / "types" / name, name.encode())
    return root


@pytest.fixture(scope="module")
def server(kind, root):
    with running(kind, root) as server:
        yield server


def curl(*arguments):
    return subprocess.run(
        ["curl", "--noproxy", "*", "-sS", "--max-time", str(TIMEOUT), *arguments],
        capture_output=True, timeout=TIMEOUT * 2, check=True,
    ).stdout


@pytest.mark.parametrize("size", SIZES)
def test_bytes(server, root, tmp_path, size):
    for _ in range(2):  # from the disk, then from the cache
        curl("-o", tmp_path / "got", f"{server.url}/{size}.bin")
        assert filecmp.cmp(tmp_path / "got", root / f"{size}.bin", shallow=False)


def test_file_larger_than_the_cache(kind, tmp_path):
    size = 16 * MB
    (tmp_path / "root").mkdir()
    write(tmp_path / "root/huge", pattern(HUGE))
    with running(kind, tmp_path / "root", "--cache-size", size) as server:
        curl("-o", tmp_path / "got", server.url + "/huge")
        assert filecmp.cmp(tmp_path / "got", tmp_path / "root/huge", shallow=False)
        assert server.status()["cache"]["used"] <= size


@pytest.mark.parametrize("name", [f"{size}.bin" for size in SIZES] + ["", "folder/", "none"])
def test_head(server, name):
    heads = []
    for option in (["-D", "-", "-o", "/dev/null"], ["-I"]):
        said = curl(*option, f"{server.url}/{name}").decode("latin-1")
        said, empty, rest = said.partition("\r\n\r\n")
        assert empty and not rest
        heads.append(re.sub(r"\r\ndate: [^\r]*", "", said.lower()))
    assert heads[0] == heads[1]
    assert "content-length: " in heads[0] and "content-type: " in heads[0]
    # And nothing follows the head that HEAD gets.
    with_body = fetch(server.port, f"/{name}", fields="Connection: close\r\n")
    without = fetch(server.port, f"/{name}", "HEAD", "Connection: close\r\n")
    assert without["Content-Length"] == with_body["Content-Length"] == str(len(with_body.body))


def test_last_modified(server, root):
    got = fetch(server.port, "/1.bin")
    stat = (root / "1.bin").stat()
    assert email.utils.parsedate_to_datetime(got["Last-Modified"]).timestamp() == int(stat.st_mtime)
    assert got["Last-Modified"].endswith(" GMT")
    assert email.utils.parsedate_to_datetime(got["Date"])


@pytest.mark.parametrize("name", TYPES)
def test_type(server, name):
    got = fetch(server.port, f"/types/{name}")
    assert (got.status, got.body) == (200, name.encode())
    assert got["Content-Type"] == TYPES[name]


def test_index(server):
    assert fetch(server.port, "/").body == b"<p>the first page</p>\n"
    assert fetch(server.port, "/folder/").body == b"<p>of the folder</p>\n"
    assert fetch(server.port, "/folder/?query").body == b"<p>of the folder</p>\n"


def test_folder_without_slash(server):
    for target, location in (("/folder", "/folder/"), ("/a%20folder", "/a%20folder/")):
        got = fetch(server.port, target)
        assert (got.status, got["Location"]) == (301, location)
    assert curl("-L", server.url + "/folder") == b"<p>of the folder</p>\n"


def test_folder_without_index(server):
    assert fetch(server.port, "/bare/").status == 403
    assert fetch(server.port, "/bare/file").body == b"found\n"


@pytest.mark.parametrize("target", ["/none", "/none/", "/bare/none", "/1.bin/", "/1.bin/x"])
def test_missing(server, target):
    assert fetch(server.port, target).status == 404


@pytest.mark.parametrize("target, status", [("/none", 404), ("/bare/", 403), ("/folder", 301)])
def test_error_page(server, target, status):
    got = fetch(server.port, target)
    assert got["Content-Type"] == "text/html; charset=utf-8"
    assert len(got.body) < KB
    assert got.body.startswith(b"<!DOCTYPE html>") and got.body.endswith(b"</html>\n")
    assert f"<h1>{status} ".encode() in got.body
