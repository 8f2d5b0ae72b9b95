# SPDX-License-Identifier: MIT
"""A CGI program that answers all paths below one (command)."""

import pytest

import server as servers
from files import write
from test_cgi import TEXT, ask

SHOW = ('#!/bin/sh\n' + TEXT + 'echo "$SCRIPT_NAME|$PATH_INFO|$QUERY_STRING|$SCRIPT_FILENAME|$*"\n'
        'pwd\ncat\n')
RULES = """\
[sweet]
listen=127.0.0.1:0
root={top}
[path /all]
pool=one
[host front]
try-files=file;pool:one
[pool one]
protocol=cgi
command={top}/show.sh 'a b' c
"""


@pytest.fixture
def top(tmp_path):
    write(tmp_path / "show.sh", SHOW.encode()).chmod(0o755)
    return tmp_path


@pytest.fixture
def server(top, start):
    file = write(top / "sweet.conf", RULES.format(top=top).encode())
    return start(None, "--config", file, listen=None)


def lines(server, *how, **fields):
    answer = ask(server, *how, fields=fields)
    assert answer.status == 200, answer.text
    first, *rest = answer.text.splitlines()
    return first.split("|"), rest


def test_all_paths(server, top):
    def got(path, info):
        return ["/all", info, "q=1", f"{top}/show.sh", "a b c"]

    for path, info in [("/all", ""), ("/all/", "/"), ("/all/a/../b", "/b"), ("/all/x%20y", "/x y"),
                       ("/all/.hidden", "/.hidden"), ("/all/" + "n" * 3000, "/" + "n" * 3000)]:
        assert lines(server, path + "?q=1") == (got(path, info), ["/"])
    assert lines(server, "/all/up", "POST", b"body")[1] == ["/", "body"]
    assert lines(server, "/some/page", Host="front")[0][:2] == ["", "/some/page"]


def test_log(server, top):
    """Messages name the program."""
    write(top / "show.sh", b"#!/bin/sh\necho a word >&2\n").chmod(0o755)
    assert ask(server, "/all/x").status == 502
    assert server.errors.wait(rf"script {top}/show.sh( \(pid \d+\))?: says: a word")
    (top / "show.sh").unlink()
    assert ask(server, "/all/x").status == 500
    assert server.errors.wait(f"script {top}/show.sh: cannot be run: No such file")


@pytest.mark.parametrize(("pool", "message"), [
    ("", "needs either a folder of programs or the command of one"),
    ("folder=/\ncommand=/bin/true", "needs either a folder of programs or the command of one"),
    ("command=/bin/true\nupstream=a:1", "is of CGI programs, which have no upstream"),
    ("command=/bin/true\nsymlinks=deny", "has symlinks, which is for the folder of CGI programs"),
    ("command=/no/such", 'no program "/no/such" that can be run'),
])
def test_bad_values(tmp_path, pool, message):
    servers.refuses(tmp_path, f"[pool x]\nprotocol=cgi\n{pool}\n", message)
