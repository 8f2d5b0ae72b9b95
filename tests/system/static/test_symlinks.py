# SPDX-License-Identifier: MIT
"""symlinks: which symbolic links of a folder are followed, for files and for CGI programs."""

import os

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
