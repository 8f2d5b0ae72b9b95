# SPDX-License-Identifier: MIT
"""Paths that try to leave the root, and special files in a folder."""

import os
import socket

import pytest

from client import Client, fetch, request
from files import write
from server import VALGRIND, running

SECRET = b"root:x:0:0: nobody outside may read this"
INSIDE = b"everybody may read this\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    top = tmp_path_factory.mktemp("paths")
    root = top / "root"
    write(top / "secret", SECRET)
    write(top / "root-2/secret", SECRET)
    write(top / "outside/secret", SECRET)
    write(top / "outside/index.html", SECRET)
    write(root / "file", INSIDE)
    write(root / "index.html", b"the index\n")
    write(root / "folder/file", INSIDE)
    write(root / "folder/deep/file", INSIDE)
    write(root / "a b%c", INSIDE)
    write(root / "..hidden", INSIDE)
    write(root / ".hidden", INSIDE)
    write(root / "unreadable", SECRET).chmod(0)
    (root / "closed").mkdir()
    write(root / "closed/file", SECRET)
    for name, target in {
        "out-relative": "../secret",
        "out-absolute": str(top / "secret"),
        "out-folder": "../outside",
        "out-and-in": "../root/file",
        "in-absolute": str(root / "file"),
        "in-relative": "folder/file",
        "in-up": "folder/../file",
        "in-folder": "folder",
        "in-chain": "in-relative",
        "folder/deep/up": "../../file",
        "folder/deep/out": "../../../secret",
        "loop": "loop",
        "loop-a": "loop-b",
        "loop-b": "loop-a",
        "dangling": "no-such-file",
        "to-proc": "/proc/self/environ",
    }.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    here = os.getcwd()
    os.chdir(root)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    os.chdir(here)
    (root / "closed").chmod(0)
    yield root
    (root / "closed").chmod(0o700)


def as_anyone():
    """Drops the capability of root to read everything."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]


@pytest.fixture(scope="module")
def server(kind, root):
    with running(kind, root, prefix=as_anyone()) as server:
        yield server


@pytest.fixture(scope="module")
def links(server):
    """Returns whether links are followed; without openat2, which Valgrind lacks, none is."""
    return not VALGRIND or fetch(server.port, "/in-relative").status == 200


def ask(server, target):
    with Client(server.port) as client:
        got = client.get(target)
        assert SECRET not in got.head + got.body
        # After any response the server continues, on this connection too.
        assert client.get("/file").body == INSIDE
    return got


@pytest.mark.parametrize(
    "target",
    [
        "/..", "/../secret", "/../../../../../../etc/passwd", "/folder/../../secret",
        "/folder/deep/../../../secret", "/%2e%2e/secret", "/%2E%2E/secret", "/.%2e/secret",
        "/%2e./secret", "/..%2fsecret", "/..%2Fsecret", "/folder/..%2f..%2fsecret",
        "/%2e%2e%2fsecret", "/%2f", "/%2fetc/passwd", "/%00", "/file%00", "/file%00.html",
        "/%01", "/%0a", "/%0d%0aX:%20y", "/%7f", "/./../secret", "//../secret",
        "/../root-2/secret", "/../root/file", "/..//secret", "/folder//..//..//secret",
        "http://test/../secret", "http://test/%2e%2e/secret", "http://test/..%2fsecret",
    ],
)
def test_refused(server, target):
    assert ask(server, target).status == 400


@pytest.mark.parametrize(
    "target",
    [
        "/..%5csecret", "/%5c..%5csecret", "/..\\secret", "/...", "/.../secret", "/%252e%252e/secret",
        "/..%252fsecret", "/%c0%ae%c0%ae/secret", "/..%c0%afsecret", "/..;/secret", "/etc/passwd",
        "//etc/passwd", "/file/", "/file/../secret", "/FILE", "/file%20", "/file.", "/a+b%25c",
        "http://test/etc/passwd", "/proc/self/environ", "/%7e/secret", "/~root/",
        "/..hidden", "/.hidden", "/%2ehidden",
    ],
)
def test_not_there(server, target):
    assert ask(server, target).status == 404


@pytest.mark.parametrize(
    "target",
    [
        "/file", "//file", "///file", "/./file", "/folder/../file", "/folder//file",
        "/folder/deep/../file", "/folder/deep/%2e%2e/file", "/no-such-folder/../file", "/%66ile",
        "/%66%69%6c%65", "/file?../../secret", "/a%20b%25c",
        "http://test/file", "http://test:80/folder/../file", "https://test//file", "/file?a=%zz",
    ],
)
def test_found(server, target):
    got = ask(server, target)
    assert (got.status, got.body) == (200, INSIDE)


@pytest.mark.parametrize(
    "name",
    ["out-relative", "out-absolute", "out-folder/", "out-folder/secret", "folder/deep/out",
     "loop", "loop-a", "loop/file", "to-proc", "fifo", "socket",
     "unreadable", "closed/file", "closed/", "out-folder/no-such-file"],
)
def test_forbidden(server, links, name):
    for _ in range(2):
        assert ask(server, "/" + name).status in ([403] if links else [403, 404])


@pytest.mark.parametrize(
    "name", ["in-relative", "in-up", "in-folder/file", "in-chain", "folder/deep/up", "out-and-in",
             "in-absolute"]
)
def test_links_inside(server, links, name):
    got = ask(server, "/" + name)
    assert got.body == INSIDE if links else got.status in (403, 404)


def test_dangling_link(server, links):
    assert ask(server, "/dangling").status == (404 if links else 403)


def test_link_to_a_folder_without_slash(server, links):
    got = ask(server, "/in-folder")
    assert got["Location"] == "/in-folder/" if links else got.status == 403
    assert ask(server, "/out-folder").status == 403


def test_device(server, root):
    try:
        os.mknod(root / "device", 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("devices can be made by a whole root only")
    assert ask(server, "/device").status == 403


def test_fifos_do_not_hold_up_others(server):
    """More of them than there are threads for files."""
    clients = [Client(server.port) for _ in range(20)]
    try:
        for client in clients:
            client.send(request("/fifo"))
        assert fetch(server.port, "/folder/deep/file").body == INSIDE
        assert [client.response().status for client in clients] == [403] * 20
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize(
    "target, status",
    [("/" + "a" * 300, 404), ("/" + "a" * 8000, 404), ("/" + "a/" * 4000, 404),
     ("/" + "./" * 4000 + "file", 200), ("/" + "/" * 8000 + "file", 200),
     ("/" + "folder/../" * 800 + "file", 200), ("/" + "%66" * 2700, 404),
     ("/" + "folder/../" * 800 + "../secret", 400)],
    ids=["name", "long name", "depth", "dots", "slashes", "back and forth", "escapes", "out"],
)
def test_long(server, target, status):
    assert ask(server, target).status == status


def test_link_that_turns_outwards(server, root, links):
    """Cached as a file inside, then changed to lead out."""
    link = root / "turning"
    link.symlink_to("file")
    assert ask(server, "/turning").status == (200 if links else 403)
    link.unlink()
    link.symlink_to("../secret")
    assert ask(server, "/turning").status == 403
    link.unlink()
    assert ask(server, "/turning").status == 404
