# SPDX-License-Identifier: MIT
"""Exact paths and patterns: rewrites and redirects with what matched, and access rules that no
pattern leads around."""

import os
import signal

import pytest

import server as servers
from client import Client
from files import write
from responder import Application

RULES = """[sweet]
request-rate=0
[path /app]
pool=app
[path /private]
deny=all
[path /private/open]
allow=all
deny=
[path /plain]
redirect=301 /new/
[path /moved]
redirect=308 https://{host}/a{path}?from={client}&{query}
[path =/health]
rewrite=/a.txt
[path =/private]
header=always X-Exact: yes
[path /one]
rewrite=/two
[path /two]
rewrite=/one
[pattern self]
match=^/self/(.*)$
rewrite=/self/x{1}
[pattern users]
match=^/users/([^/]+)(/.*)?$
rewrite=/app{2}?id={1}
[pattern old]
match=^/old/(.*)$
redirect=301 /{1}
[pattern dots]
match=^/dots(.*)$
rewrite=/sub/{1}
[pattern slow]
match=^/slow/(a+)+$
[pattern texts]
match=\\\\.txt$
header=X-Text: yes
cache-control=max-age=7
[pattern app]
match=^/(x*)$
rewrite=/b.txt
[pool app]
protocol=fastcgi
upstream={address}
script-suffix=
[host other]
names=other.example
[pattern other/all]
match=^/(.*)$
redirect={scheme}://b.example/{1}
[path whole/]
alias={top}/root/sub
header=X-Whole: yes
[path whole/plain]
alias={top}/root
[pattern whole/html]
match=html$
header=X-Text: yes
[host whole]
names=whole.example
root={top}
header=X-Host: yes
"""


def answer(request):
    request.body()
    text = "".join(f"{name}={request.variables.get(name)}\n" for name in
                   ["SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "REQUEST_URI"])
    request.answer(text.encode(),
                   b"Content-Type: text/plain\r\nContent-Length: %d\r\n" % len(text))


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    return tmp_path_factory.mktemp("rules")


@pytest.fixture(scope="module")
def rules(top):
    app = Application(answer, top / "app.sock")
    for name in ["a", "b", "private/a", "private/open/a", "sub/a"]:
        write(top / f"root/{name}.txt", name.encode())
    write(top / "root/private/a.html", b"html")
    for name in ["one/a.html", "two/a.html", "self/xa.html"]:
        write(top / "root" / name, name.encode())
    config = RULES.replace("{address}", app.address).replace("{top}", str(top)).replace(
        "\\\\\\\\", "\\\\")
    yield write(top / "sweet.conf", config.encode())
    app.close()
    assert not app.faults


@pytest.fixture(scope="module")
def server(top, rules):
    with servers.running("epoll", top / "root", "--config", rules) as server:
        yield server


def ask(server, target, host="a.example"):
    with Client(server.port) as client:
        client.send(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return client.response()


def test_patterns(server):
    answer = ask(server, "/a.txt")
    assert (answer.body, answer["X-Text"], answer["Cache-Control"]) == (b"a", "yes", "max-age=7")
    assert ask(server, "/xxx").body == b"b"
    assert ask(server, "/").body == b"b"
    assert "X-Text" not in ask(server, "/xxx.html")


def test_exact(server):
    assert ask(server, "/health").body == b"a"
    assert ask(server, "/health/").status == 404
    assert ask(server, "/private")["X-Exact"] == "yes"


def test_whole(server):
    """[path /] of a host: its keys come before those of the host."""
    answer = ask(server, "/a.txt", "whole.example")
    assert (answer.body, answer["X-Whole"]) == (b"sub/a", "yes") and "X-Host" not in answer
    answer = ask(server, "/plain/b.txt", "whole.example")
    assert (answer.body, answer["X-Whole"]) == (b"b", "yes")
    answer = ask(server, "/plain/private/a.html", "whole.example")
    assert (answer.body, answer["X-Text"]) == (b"html", "yes")


def test_access(server):
    """A pattern adds to the rules of a path."""
    assert ask(server, "/private/a.html").status == 403
    assert ask(server, "/private/a.txt").status == 403
    assert ask(server, "/private").status == 403
    answer = ask(server, "/private/open/a.txt")
    assert (answer.status, answer.body, answer["X-Text"]) == (200, b"private/open/a", "yes")


@pytest.mark.parametrize("target, path, query", [
    ("/users/42", "", "id=42"),
    ("/users/42/edit?a=b", "/edit", "id=42&a=b"),
    # What a client sends is one value of the query.
    ("/users/1%26admin=1%23", "", "id=1%26admin%3D1%23"),
    ("/users/%7Ba%7D%25", "", "id=%7Ba%7D%25"),
    ("/users/x/%3Fy", "/?y", "id=x"),
])
def test_rewrite(server, target, path, query):
    got = ask(server, target).body.decode().splitlines()
    assert got == ["SCRIPT_NAME=/app", f"PATH_INFO={path}", f"QUERY_STRING={query}",
                   f"REQUEST_URI={target}"]


@pytest.mark.parametrize("target, location", [
    ("/old/a/b?c=d", "/a/b?c=d"),
    ("/old/a%20b%0d", None),
    ("/old/a%20b%22", "/a%20b%22"),
    # Not the host evil.example.
    ("/old//evil.example", "/evil.example"),
    ("/old/%5Cevil.example", "/%5Cevil.example"),
    ("/old/", "/"),
    ("/plain/a?b", "/new/a?b"),
    ("/plain/old/x", "/new/old/x"),
])
def test_redirect(server, target, location):
    answer = ask(server, target)
    if location:
        assert (answer.status, answer["Location"]) == (301, location)
    else:
        assert answer.status == 400


def test_redirect_with_variables(server):
    answer = ask(server, "/moved/x%20y?q=%22", "A.example:1")
    assert answer.status == 308
    assert answer["Location"] == "https://A.example/a/moved/x%20y?from=127.0.0.1&q=%22"
    over = os.environ.get("SWEET_OVER")
    assert ask(server, "/x/y", "other.example")["Location"] == (
        "https://b.example/x/y" if over else "http://b.example/x/y")


def test_loops(server):
    """A request is rewritten once, also where that leads to a rule that would apply again."""
    assert ask(server, "/one/a.html").body == b"two/a.html"
    assert ask(server, "/two/a.html").body == b"one/a.html"
    assert ask(server, "/self/a.html").body == b"self/xa.html"
    assert ask(server, "/self/xa.html").status == 404
    assert ask(server, "/one/none").status == 404


def test_dots(server):
    """What a rewrite makes is normalised as what a client sends."""
    assert ask(server, "/dots/a.txt").body == b"sub/a"
    assert ask(server, "/dots..").status == 403
    assert ask(server, "/dots../a.txt").body == b"a"
    assert ask(server, "/dots../private/a.html").status == 403
    assert ask(server, "/dots../../a.txt").body == b"a"


def test_backtracking(server):
    for _ in range(3):
        assert ask(server, "/slow/" + "a" * 60 + "!").status == 500
    assert ask(server, "/slow/aaa").status == 404
    assert server.errors.count(r"\[pattern slow\]", 1) == 1


def test_reload(top, rules):
    """What was remembered is of the configuration that is gone."""
    text = rules.read_text()
    own = write(top / "own.conf", text.encode())
    with servers.running("epoll", top / "root", "--config", own) as server:
        assert ask(server, "/a.txt")["X-Text"] == "yes"
        own.write_text(text.replace("X-Text: yes", "X-Text: no"))
        server.send_signal(signal.SIGHUP)
        server.wait_status(lambda status: status["config"]["generation"] == 2)
        assert ask(server, "/a.txt")["X-Text"] == "no"
