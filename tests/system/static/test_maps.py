# SPDX-License-Identifier: MIT
"""[map]: tables from a value of a request to another one, in redirects, rewrites and fields."""

import pytest

import server as servers
from client import Client
from files import write

RULES = r"""[sweet]
redirect=301 {map:moved}
header=X-Zone: {map:zone}
[map moved]
file={top}/moved.txt
values=/c /d?x=%20y;/e https://a.example/?a#b
[map zone]
lookup={host}{path}
values=a.example/a.txt one two
default=none
[pattern all]
match=^/files/(.*)
rewrite={map:files}
[map files]
lookup={1}
values=first /a.txt;second /b.txt?q;bad a.txt;up /../a.txt
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    top = tmp_path_factory.mktemp("maps")
    for name in ["a.txt", "b.txt", "files/other"]:
        write(top / "root" / name, name.encode())
    write(top / "moved.txt", b"# old and new\n\n/a /b\n  /old/x\t /new/x  \n/\xc3\xa4 /ae\n")
    rules = write(top / "sweet.conf", RULES.replace("{top}", str(top)).encode())
    with servers.running("epoll", top / "root", "--config", rules) as server:
        yield server


def ask(server, target, host="a.example"):
    with Client(server.port) as client:
        client.send(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return client.response()


@pytest.mark.parametrize("target, location", [
    ("/a", "/b"), ("/a?q", "/b?q"), ("/old/x", "/new/x"), ("/c", "/d?x=%20y"),
    ("/c?q", "/d?x=%20y&q"), ("/e", "https://a.example/?a#b"), ("/%C3%A4", "/ae")])
def test_redirect(server, target, location):
    answer = ask(server, target)
    assert (answer.status, answer["Location"]) == (301, location)


def test_nothing(server):
    assert ask(server, "/b.txt").body == b"b.txt"
    assert ask(server, "/files/other").body == b"files/other"
    assert ask(server, "/A").status == 404


def test_rewrite(server):
    assert ask(server, "/files/first").body == b"a.txt"
    assert ask(server, "/files/second").body == b"b.txt"
    for name in ["bad", "up"]:
        assert ask(server, f"/files/{name}").status == 400


def test_field(server):
    assert ask(server, "/a.txt")["X-Zone"] == "one two"
    assert ask(server, "/a.txt", "b.example")["X-Zone"] == "none"


@pytest.mark.parametrize("text, message", [
    ("[map a]\nvalues=x\n", 'values "x": must be KEY VALUE'),
    ("[map a]\nvalues=x y;x z\n", "has a key that is given twice"),
    ("[map a]\nfile=/none\n", "file: Failed to open file"),
    ("[map a]\nlookup={client}\n", "unknown variable {client}"),
    ("[map a]\nlisting=on\n", 'key "listing" does not belong into [map a]'),
    ("[sweet]\nlookup={path}\n", "but into [map NAME]"),
    ("[sweet]\nredirect={map:a}\n", "{map:a}: there is no such [map]"),
    ("[sweet]\nheader=A: {map:a}\n", "{map:a}: there is no such [map]"),
])
def test_bad(tmp_path, text, message):
    servers.refuses(tmp_path, text, message)


def test_bad_file(tmp_path):
    table = write(tmp_path / "table", b"a b\nc\na d\n")
    rules = write(tmp_path / "sweet.conf", f"[map a]\nfile={table}\n".encode())
    status, said = servers.check_config(rules)
    assert status == 1
    assert f'{table}:2: "c" must be KEY VALUE' in said
    assert f'{table}:3: "a d" has a key that is given twice' in said
