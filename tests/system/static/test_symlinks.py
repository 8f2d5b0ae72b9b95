# SPDX-License-Identifier: MIT
"""symlinks: which symbolic links of a folder are followed, for files and for CGI programs."""

import os
import time

import pytest

import server as servers
from client import fetch
from files import write

RULES = """[sweet]
listing=on
[path /follow]
symlinks=follow
alias={top}/root
[path /owner]
symlinks=owner
alias={top}/root
[path /deny]
symlinks=deny
alias={top}/root
[path /cgi]
pool=cgi
[path /cgi-follow]
pool=cgi-follow
[pool cgi]
protocol=cgi
folder={top}/programs
[pool cgi-follow]
protocol=cgi
folder={top}/programs
symlinks=follow
"""
PROGRAM = b"#!/bin/sh\nprintf 'Content-Type: text/plain\\nContent-Length: 4\\n\\nran\\n'\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    top = tmp_path_factory.mktemp("symlinks")
    write(top / "root/a.txt", b"inside")
    write(top / "outside/b.txt", b"outside")
    write(top / "elsewhere/p", PROGRAM).chmod(0o755)
    (top / "programs").mkdir()
    os.symlink("a.txt", top / "root/in.txt")
    os.symlink("../outside/b.txt", top / "root/out.txt")
    write(top / "root/sub/deep/c.txt", b"deep")
    os.symlink(top / "root/sub", top / "root/absolute")
    os.symlink(top / "root/sub/deep/c.txt", top / "root/absolute.txt")
    os.symlink("../root/absolute/deep", top / "root/there-and-back")
    os.symlink(top / "root", top / "root/itself")
    os.symlink(top / "root-not", top / "root/beside")
    write(top / "root-not/b.txt", b"outside")
    os.symlink(top / "nothing", top / "root/nothing")
    os.symlink("/etc/passwd", top / "root/sub/passwd")
    os.symlink(top / "alias", top / "root/by-an-alias")
    os.symlink("root/sub", top / "alias")
    os.symlink(top / "outside", top / "root/folder")
    os.symlink(top / "elsewhere/p", top / "programs/p")
    os.symlink(top / "elsewhere", top / "programs/folder")
    if os.geteuid() == 0:
        os.symlink("../outside/b.txt", top / "root/others.txt")
        os.chown(top / "root/others.txt", 65534, 65534, follow_symlinks=False)
    rules = write(top / "sweet.conf", RULES.replace("{top}", str(top)).encode())
    with servers.running("epoll", top / "root", "--config", rules) as server:
        yield server


@pytest.mark.skipif(servers.VALGRIND, reason="Valgrind knows no openat2, which resolves links")
@pytest.mark.parametrize("prefix, inside, outside", [
    ("", 200, 403), ("/follow", 200, 200), ("/owner", 200, 200), ("/deny", 403, 403)])
def test_files(server, prefix, inside, outside):
    for _ in range(2):
        assert fetch(server.port, f"{prefix}/a.txt").body == b"inside"
        assert fetch(server.port, f"{prefix}/in.txt").status == inside
        for name in ["out.txt", "folder/b.txt"]:
            got = fetch(server.port, f"{prefix}/{name}")
            assert got.status == outside
            assert (got.body == b"outside") == (outside == 200)
    # What is listed can be got.
    names = fetch(server.port, f"{prefix}/").body
    assert (b"out.txt" in names) == (outside == 200)
    assert (b"in.txt" in names) == (inside == 200)
    if os.geteuid() == 0:
        got = fetch(server.port, f"{prefix}/others.txt")
        assert got.status == (200 if prefix == "/follow" else 403)


@pytest.mark.skipif(servers.VALGRIND, reason="Valgrind knows no openat2, which resolves links")
@pytest.mark.parametrize("prefix, inside, outside", [
    ("", 200, 403), ("/follow", 200, 200), ("/owner", 200, 200), ("/deny", 403, 403)])
def test_absolute_links(server, prefix, inside, outside):
    """What stays inside is inside, however the link says where it leads."""
    for _ in range(2):
        for name in ["absolute/deep/c.txt", "absolute.txt", "there-and-back/c.txt",
                     "itself/sub/deep/c.txt", "itself/itself/absolute/deep/c.txt",
                     "by-an-alias/deep/c.txt"]:
            got = fetch(server.port, f"{prefix}/{name}")
            assert got.status == inside
            assert (got.body == b"deep") == (inside == 200)
        assert fetch(server.port, f"{prefix}/beside/b.txt").status == outside
        if outside == 403:
            # Nobody learns what exists outside.
            for name in ["nothing", "beside/none", "absolute/passwd", "folder/none"]:
                assert fetch(server.port, f"{prefix}/{name}").status == 403
    assert (b'"absolute.txt"' in fetch(server.port, f"{prefix}/").body) == (inside == 200)


@pytest.mark.parametrize("options", [(), ("--revalidate", 3600000), ("--path-cache", "off")],
                         ids=lambda options: "-".join(map(str, options)).strip("-") or "default")
def test_switched_root(tmp_path, options):
    """A deployment: within a second, all files are those of the new folder."""
    for number in (1, 2):
        for name in ("file", "sub/index.html"):
            write(tmp_path / f"release{number}" / name, b"%d" % number)
        write(tmp_path / f"release{number}/only{number}", b"only")
    current = tmp_path / "current"
    os.symlink("release1", current)
    with servers.running("epoll", current, "--listing", "on", *options) as server:
        assert fetch(server.port, "/file").body == b"1"
        assert fetch(server.port, "/sub/").body == b"1"
        os.symlink("release2", tmp_path / "next")
        os.replace(tmp_path / "next", current)
        deadline = time.monotonic() + servers.TIMEOUT
        while fetch(server.port, "/file").body != b"2":
            assert time.monotonic() < deadline
        assert fetch(server.port, "/sub/").body == b"2"
        assert fetch(server.port, "/only2").body == b"only"
        assert fetch(server.port, "/only1").status == 404
        assert b"only2" in fetch(server.port, "/").body
        assert server.errors.wait("leads to another folder")
        # While it leads nowhere, the old one stays.
        current.unlink()
        for _ in range(3):
            assert fetch(server.port, "/file").body == b"2"


def test_programs(server):
    for path in ["p", "folder/p"]:
        assert fetch(server.port, f"/cgi/{path}").status == 403
        assert fetch(server.port, f"/cgi-follow/{path}").body == b"ran\n"


@pytest.mark.parametrize("text, message", [
    ("[sweet]\nsymlinks=all\n", "must be one of inside, follow, owner, deny"),
    ("[pool a]\nprotocol=fastcgi\nupstream=:9\nsymlinks=follow\n", "has symlinks, which is for"),
])
def test_bad(tmp_path, text, message):
    servers.refuses(tmp_path, text, message)
