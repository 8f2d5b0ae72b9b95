# SPDX-License-Identifier: MIT
"""suffix: scripts below any folder, which a FastCGI application runs, and which are never sent;
front controllers, together with try-files."""

import pytest

import server as servers
from client import Client
from files import write
from responder import Application
from upstream import Upstream

SOURCE = b"<?php secret();\n"
RULES = """[sweet]
fastcgi=/mounted={address}
index=index.html;index.php
listing=on
error-page=404=/error.php
[host blog]
names=blog
root={top}/blog
try-files=file;folder;/index.php
[path /alias]
alias={top}/other
[path /closed]
deny=all
[path /app]
pool=app
[path /app/other]
variable=CONFIG=other;HTTP_ACCEPT=a
[path /own]
pool=php
alias={top}/own
[path /tried]
try-files=file;pool:own
alias={top}/own
[path /mounted]
alias={top}/own
[path /moved]
rewrite=/sub
[path /any]
pool=any
[path /cgi]
pool=cgi
[path /cgi-any]
pool=cgi-any
[path /leads]
pool=leads
[path /inside]
internal=on
[path /http]
try-files=file;pool:http
[path /files]
pool=http
[path /files/off]
pool=off
hidden=on
[path /files/again]
pool=php
hidden=on
[pool php]
protocol=fastcgi
upstream={address}
suffix=.php
[pool own]
protocol=fastcgi
upstream={address}
[pool any]
protocol=fastcgi
upstream={address}
script-suffix=
methods=any
[pool cgi]
protocol=cgi
folder={top}/programs
methods=REPORT
[pool cgi-any]
protocol=cgi
folder={top}/programs
methods=any
[pool leads]
protocol=cgi
folder={top}/programs
accel=internal;{top}/root
[pool http]
protocol=http
upstream={http}
[pool app]
protocol=fastcgi
upstream={address}
script-suffix=
pass-authorization=on
methods=PROPFIND;M-SEARCH
variable=CONFIG=/etc/app;DOCUMENT_ROOT=/srv/app
"""
PROGRAM = b"""#!/bin/sh
test -z "$HTTP_LEAD" || echo "$HTTP_LEAD"
echo Content-Type: text/plain
echo Content-Length: ${#REQUEST_METHOD}
echo
echo -n $REQUEST_METHOD
"""
NAMES = ["SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "REQUEST_METHOD"]


def say(request, text):
    head = f"Content-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
    request.answer(text.encode(), head.encode())


def answer(request):
    body = request.body()
    if "all" in request.variables["QUERY_STRING"]:
        say(request, "".join(f"{name}={value}\n" for name, value
                             in sorted(request.variables.items())))
        return
    values = [request.variables.get(name, "") for name in NAMES]
    file = request.variables["SCRIPT_FILENAME"]
    uri = request.variables["REQUEST_URI"]
    say(request, "\n".join([*values, file, uri, body.decode()]))


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture(scope="module")
def server(top):
    app = Application(answer, top / "app.sock")
    http = Upstream(lambda asked: asked.answer(b"http " + asked.target.encode()), top / "http.sock")
    for name in ["root/index.php", "root/sub/a.php", "root/sub/index.php", "root/both/index.php",
                 "root/error.php", "root/.hidden.php", "root/closed/a.php", "other/a.php",
                 "root/x.php5", "root/a.php.txt", "root/folder.php/b.php", "root/folder.php/c.txt",
                 "blog/index.php", "blog/wp-login.php", "root/a.PHP", "root/app/b.php",
                 "root/inside/a.php", "root/http/a.php", "root/files/off/a.php",
                 "root/files/off/.b.php", "root/files/again/a.php", "root/files/again/.b.php"]:
        write(top / name, SOURCE)
    write(top / "own/sub/index.php", SOURCE)
    (top / "own/bare").mkdir()
    write(top / "root/both/index.html", b"html\n")
    write(top / "root/page.txt", b"text\n")
    write(top / "root/http/page.txt", b"text\n")
    write(top / "programs/p", PROGRAM).chmod(0o755)
    write(top / "root/sub/a.php.gz", SOURCE)
    write(top / "blog/style.css", b"style\n")
    write(top / "blog/wp-admin/index.php", SOURCE)
    text = RULES.format(top=top, address=app.address, http=http.address)
    rules = write(top / "sweet.conf", text.encode())
    with servers.running("epoll", top / "root", "--config", rules, "--precompressed",
                         "on") as server:
        yield server
    for one in [app, http]:
        one.close()
        assert not one.faults


def ask(server, target, host="a", method="GET", body=b"", fields=""):
    fields += f"Content-Length: {len(body)}\r\n" if body else ""
    with Client(server.port) as client:
        client.send(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode() + body)
        return client.response(method)


def run(server, target, *rest, **how):
    """Returns the script's name, its further path, the query, and the file."""
    answer = ask(server, target, *rest, **how)
    assert answer.status == 200, answer
    lines = answer.body.decode().split("\n")
    assert lines[5] == target
    return lines[0], lines[1], lines[2], lines[4]


def test_scripts(server, top):
    assert run(server, "/sub/a.php") == ("/sub/a.php", "", "", f"{top}/root/sub/a.php")
    assert run(server, "/sub/a.php/b/c.txt?d=e") == ("/sub/a.php", "/b/c.txt", "d=e",
                                                     f"{top}/root/sub/a.php")
    assert run(server, "/alias/a.php") == ("/alias/a.php", "", "", f"{top}/other/a.php")
    answer = ask(server, "/sub/a.php", method="POST", body=b"a=b").body
    assert answer.startswith(b"/sub/a.php\n\n\nPOST\n") and answer.endswith(b"\na=b")


def test_index(server, top):
    assert run(server, "/") == ("/index.php", "", "", f"{top}/root/index.php")
    assert run(server, "/sub/?a=b") == ("/sub/index.php", "", "a=b", f"{top}/root/sub/index.php")
    # The first one that exists.
    assert ask(server, "/both/").body == b"html\n"
    answer = ask(server, "/sub?a=b")
    assert (answer.status, answer["Location"]) == (301, "/sub/?a=b")
    assert run(server, "/moved/a.php")[0] == "/sub/a.php"


@pytest.mark.parametrize("target", ["/none.php", "/none.php/a", "/page.txt/a.php", "/.hidden.php",
                                    "/folder.php/b.php"])
def test_missing(server, target):
    """Neither the application nor a client gets what is no script, or its source."""
    answer = ask(server, target)
    assert answer.status == 404 and SOURCE not in answer.body
    # The page for this error would be a script.
    assert b"404 Not Found" in answer.body


def test_other_names(server):
    assert ask(server, "/page.txt").body == b"text\n"
    for name in ["/x.php5", "/a.php.txt", "/a.PHP"]:
        assert ask(server, name).body == SOURCE
    assert ask(server, "/folder.php/c.txt").body == SOURCE
    assert ask(server, "/folder.php")["Location"] == "/folder.php/"


def test_rules(server):
    assert ask(server, "/closed/a.php").status == 403
    # The path's own pool is nearer.
    assert run(server, "/app/b.php")[:2] == ("/app", "/b.php")


@pytest.mark.parametrize("prefix", ["/own", "/tried", "/mounted"])
def test_folders_of_a_pool(server, top, prefix):
    """Also of one that try-files or the option leads to."""
    answer = ask(server, f"{prefix}/sub?a=b")
    assert (answer.status, answer["Location"]) == (301, f"{prefix}/sub/?a=b")
    assert run(server, f"{prefix}/sub/")[3] == f"{top}/own/sub/index.php"
    for target in ["/bare", "/none", "/sub/index.php/x"]:
        assert ask(server, prefix + target).status == 200
    assert ask(server, f"{prefix}/sub", method="POST", body=b"a").status == 200


def everything(server, target, fields=""):
    with Client(server.port) as client:
        client.send(f"GET {target}?all HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode())
        lines = client.response().body.decode().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_variables(server, top):
    sent = "Authorization: Bearer abc\r\nAccept: x/y\r\n"
    got = everything(server, "/app/x", sent)
    assert (got["CONFIG"], got["DOCUMENT_ROOT"]) == ("/etc/app", "/srv/app")
    assert (got["HTTP_AUTHORIZATION"], got["HTTP_ACCEPT"]) == ("Bearer abc", "x/y")
    got = everything(server, "/app/other", sent)
    assert (got["CONFIG"], got["DOCUMENT_ROOT"]) == ("other", "/srv/app")
    assert got["HTTP_ACCEPT"] == "a"
    got = everything(server, "/sub/a.php", sent)
    assert "CONFIG" not in got and "HTTP_AUTHORIZATION" not in got
    assert got["DOCUMENT_ROOT"] == f"{top}/root"


def test_methods(server):
    for method in ["PROPFIND", "M-SEARCH", "PATCH"]:
        assert ask(server, "/app/x", method=method, body=b"abc").body.split(b"\n")[3:4] == [
            method.encode()]
    for target, method in [("/app/x", "REPORT"), ("/app/x", "propfind"), ("/page.txt", "PROPFIND"),
                           ("/sub/a.php", "PROPFIND"), ("/none", "PROPFIND"), ("/", "M-SEARCH")]:
        assert ask(server, target, method=method).status == 501
    assert ask(server, "/app/x", method="TRACE").status == 405


@pytest.mark.parametrize("body", [b"", b"abc"])
def test_methods_of_pools(server, body):
    for target, method in [("/any/x", "PROPFIND"), ("/any/x", "x-own"), ("/any/x", "PATCH")]:
        assert ask(server, target, method=method, body=body).body.split(b"\n")[3] == method.encode()
    for target, method in [("/cgi/p", "REPORT"), ("/cgi/p", "PATCH"), ("/cgi-any/p", "REPORT"),
                           ("/cgi-any/p", "x-own")]:
        assert ask(server, target, method=method, body=body).body == method.encode()
    for target, method in [("/cgi/p", "PROPFIND"), ("/cgi/p", "report"), ("/http/x", "REPORT")]:
        assert ask(server, target, method=method, body=body).status == 501
    for target in ["/any/x", "/cgi-any/p"]:
        assert ask(server, target, method="TRACE").status == 405


def test_source_of_programs(server, top):
    """A program can let a script run, and cannot send its source."""
    got = ask(server, "/leads/p", fields=f"Lead: X-Sendfile: {top}/root/sub/a.php\r\n")
    assert got.status == 404 and SOURCE not in got.body
    got = ask(server, "/leads/p", fields=f"Lead: X-Sendfile: {top}/root/page.txt\r\n")
    assert (got.status, got.body) == (200, b"text\n")
    got = ask(server, "/leads/p", fields="Lead: X-Accel-Redirect: /inside/a.php/b?c=d\r\n")
    assert got.status == 200
    assert got.body.split(b"\n")[:5] == [b"/inside/a.php", b"/b", b"c=d", b"GET",
                                         f"{top}/root/inside/a.php".encode()]
    assert ask(server, "/inside/a.php").status == 404


def test_source_beside_pools(server, top):
    """Neither a pool of the path, nor that it has none, makes a script a file."""
    assert ask(server, "/http/page.txt").body == b"text\n"
    assert ask(server, "/http/none.php").body == b"http /http/none.php"
    assert run(server, "/http/a.php")[3] == f"{top}/root/http/a.php"
    assert ask(server, "/files/a.php").body == b"http /files/a.php"
    assert run(server, "/files/again/a.php")[3] == f"{top}/root/files/again/a.php"
    assert run(server, "/files/again/.b.php")[3] == f"{top}/root/files/again/.b.php"
    assert run(server, "/sub/a.php/")[:2] == ("/sub/a.php", "/")
    for target in ["/.hidden.php", "/a.php/", "/closed/a.php/", "/files/off/a.php",
                   "/files/off/.b.php"]:
        got = ask(server, target)
        assert got.status in (403, 404) and SOURCE not in got.body


def test_front_controller(server, top):
    get = lambda target, **how: run(server, target, "blog", **how)
    front = f"{top}/blog/index.php"
    assert get("/") == ("/index.php", "", "", front)
    assert get("/2026/11/hello?p=1") == ("/index.php", "", "p=1", front)
    assert get("/none.php") == ("/index.php", "", "", front)
    assert get("/wp-json/v2", method="POST", body=b"{}") == ("/index.php", "", "", front)
    assert get("/wp-login.php")[3] == f"{top}/blog/wp-login.php"
    assert get("/wp-admin/")[0] == "/wp-admin/index.php"
    assert get("/index.php/a/b")[:2] == ("/index.php", "/a/b")
    assert ask(server, "/style.css", "blog").body == b"style\n"
    assert ask(server, "/wp-admin", "blog")["Location"] == "/wp-admin/"


@pytest.mark.parametrize(("pool", "message"), [
    ("protocol=fastcgi\nupstream=a:1\nsuffix=php", 'suffix "php": must be the end of file names'),
    ("protocol=fastcgi\nupstream=a:1\nsuffix=./a", 'suffix "./a": must be the end of file names'),
    ("command=/bin/true\nmethods=A B", 'methods "A B": must be a method like PROPFIND'),
    ("command=/bin/true\nvariable=A", 'variable "A": must be NAME=VALUE'),
    ("command=/bin/true\nvariable=1A=b", 'variable "1A=b": must be NAME=VALUE'),
    ("command=/bin/true\nvariable=A-B=c", 'variable "A-B=c": must be NAME=VALUE'),
    ("command=/bin/true\nvariable=CONTENT_LENGTH=1", "must be another variable"),
    ("command=/bin/true\nsuffix=.php", "has a suffix, which is for scripts of FastCGI"),
])
def test_bad_values(tmp_path, pool, message):
    rules = write(tmp_path / "sweet.conf", f"[sweet]\n[pool x]\n{pool}\n".encode())
    status, errors = servers.check_config(rules)
    assert status == 1 and message in errors, errors
