# SPDX-License-Identifier: MIT
"""charset, default-type and types: the Content-Type of files, by path."""

import pytest

import server as servers
from client import fetch
from files import write

RULES = """[sweet]
types=text/x-c c h
[path /old]
charset=koi8-r
alias={top}/root
[path /none]
charset=off
default-type=text/plain
types=application/x-own html;text/x-c c
alias={top}/root
[host other]
types=
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    top = tmp_path_factory.mktemp("types")
    for name in ["a.html", "a.c", "README", "a.png"]:
        write(top / "root" / name, b"text")
    rules = write(top / "sweet.conf", RULES.replace("{top}", str(top)).encode())
    with servers.running("epoll", top / "root", "--config", rules) as server:
        yield server


@pytest.mark.parametrize("path, kind", [
    ("/a.html", "text/html; charset=utf-8"), ("/a.c", "text/x-c; charset=utf-8"),
    ("/README", "application/octet-stream"), ("/a.png", "image/png"),
    ("/old/a.html", "text/html; charset=koi8-r"), ("/old/a.c", "text/x-c; charset=koi8-r"),
    ("/none/a.html", "application/x-own"), ("/none/README", "text/plain"),
    ("/none/a.c", "text/x-c"), ("/none/a.png", "image/png")])
def test_types(server, path, kind):
    for _ in range(2):
        assert fetch(server.port, path)["Content-Type"] == kind


@pytest.mark.parametrize("text, message", [
    ("charset=utf 8", "must be a name like utf-8"), ("charset=", "must be a name like utf-8"),
    ("default-type=text", "must be a type like text/plain"),
    ("types=text/plain", "must be TYPE EXTENSION"), ("types=c text/x-c", "must be TYPE EXTENSION")])
def test_bad(tmp_path, text, message):
    servers.refuses(tmp_path, f"[sweet]\n{text}\n", message)
