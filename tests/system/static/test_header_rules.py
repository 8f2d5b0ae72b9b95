# SPDX-License-Identifier: MIT
"""header: fields that the operator sets, adds and removes, in responses of files and programs."""

import pytest

import server as servers
from client import Client
from files import write

RULES = r"""[sweet]
request-id=on
header=X-Frame-Options: DENY;always Strict: a\; b;+Vary: Origin;-ETag;always X-Method: {method}
error-page=404=/missing.html;501=/a.txt
[path /plain]
header=off
[path /cached]
cache-control=max-age=60
header=Cache-Control: no-store
[path /programs]
header=X-Powered-By: us;-Set-Cookie;always +X: 1
pool=programs
[path /elsewhere]
redirect=/new
[path /variables]
header=Link: <https://{host}{path}>\; rel="canonical";always X-Client: {client};X-Id: <{request-id}>;+X: {scheme} {method} {query}
[pattern groups]
match=^/groups/([^/]+)$
rewrite=/variables/a.txt
[pattern group]
match=^/variables/(.)\\.txt$
header=+Y: {1};-X
[path /to-slow]
rewrite=/slow/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!
[path /slow]
header=always X-Method: {method};always X-Path: {path}
[pattern slow]
match=^/slow/(a+)+$
[path /internal]
internal=on
[path /denied]
deny=all
[path /password]
auth-realm=x
auth-file={top}/users
header=always X-User: [{user}]
[path /cors]
header=Access-Control-Allow-Origin: https://app.example;Access-Control-Allow-Methods: GET, PUT;Content-Security-Policy: default-src 'self'\; img-src *
[path /cors/pool]
pool=programs
[path /rate]
request-rate=1
request-burst=0
[path /gone]
pool=gone
[path /busy]
try-files==503
[pool programs]
protocol=cgi
folder={top}/programs
[pool gone]
protocol=http
upstream=127.0.0.1:1
[host other]
header=always X-Host: {host}
"""
PROGRAM = b"""#!/bin/sh
echo Status: ${QUERY_STRING:-200}
echo X-Powered-By: them
echo Set-Cookie: a=b
echo Content-Type: text/plain
echo Content-Length: 2
echo
echo x
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    top = tmp_path_factory.mktemp("headers")
    for name in ["a.txt", "variables/a.txt", "variables/a.html", "plain/a.txt", "cached/a.txt", "missing.html", "cors/a.txt", "password/a.txt"]:
        write(top / "root" / name, b"a file\n")
    write(top / "programs/p", PROGRAM).chmod(0o755)
    write(top / "users", b"a:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n")
    rules = write(top / "sweet.conf", RULES.replace("{top}", str(top)).encode())
    with servers.running("epoll", top / "root", "--config", rules) as server:
        yield server


def ask(server, target, fields="", method="GET", host="a"):
    with Client(server.port) as client:
        client.send(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode())
        return client.response()


def test_files(server):
    answer = ask(server, "/a.txt")
    assert answer.body == b"a file\n" and "ETag" not in answer
    assert [answer[name] for name in ["X-Frame-Options", "Strict", "Vary"]] == [
        "DENY", "a; b", "Origin"]
    answer = ask(server, "/a.txt", f"If-Modified-Since: {answer['Last-Modified']}\r\n")
    assert answer.status == 304 and answer["X-Frame-Options"] == "DENY"
    answer = ask(server, "/a.txt", "Range: bytes=2-5\r\n")
    assert (answer.status, answer.body) == (206, b"file")
    assert answer["X-Frame-Options"] == "DENY"


def test_paths(server):
    answer = ask(server, "/plain/a.txt")
    assert "ETag" in answer and "X-Frame-Options" not in answer
    answer = ask(server, "/cached/a.txt")
    assert answer["Cache-Control"] == "no-store" and "X-Frame-Options" not in answer


def test_statuses(server):
    answer = ask(server, "/none")
    assert (answer.status, answer.body) == (404, b"a file\n")
    assert answer["Strict"] == "a; b" and "X-Frame-Options" not in answer
    answer = ask(server, "/elsewhere")
    assert answer.status == 302 and answer["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize(("status", "method", "target", "fields"), [
    (204, "OPTIONS", "*", ""),
    # Before the path is known.
    (400, "GET", "/%zz", ""),
    (405, "TRACE", "/a.txt", ""),
    (501, "BREW", "/a.txt", ""),
    # Before its other rules are.
    (200, "GET", "/.sweet/ready", ""),
    (404, "GET", "/internal", ""),
    (403, "GET", "/denied", ""),
    (404, "GET", "/none", ""),
    (405, "POST", "/a.txt", ""),
    (413, "POST", "/programs/p", "Content-Length: 2000000\r\n"),
    (416, "GET", "/a.txt", "Range: bytes=100-\r\n"),
    (502, "GET", "/gone", ""),
    (503, "GET", "/busy", ""),
])
def test_always(server, status, method, target, fields):
    answer = ask(server, target, fields, method)
    assert answer.status == status
    if target.startswith("/programs"):
        assert answer["X"] == "1"
    else:
        assert (answer["Strict"], answer["X-Method"]) == ("a; b", method)
    assert ("X-Frame-Options" in answer) == (status < 300)


def test_user(server):
    """The name is known only when the password is."""
    answer = ask(server, "/password/a.txt")
    assert (answer.status, answer["X-User"]) == (401, "[]") and "Strict" not in answer
    for _ in range(2):
        answer = ask(server, "/password/a.txt", "Authorization: Basic YTpzZWNyZXQ=\r\n")
        assert (answer.status, answer["X-User"]) == (200, "[a]")


PREFLIGHT = "Origin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\n"


@pytest.mark.parametrize(("method", "target", "status"), [
    ("OPTIONS", "/cors/a.txt", 204), ("OPTIONS", "/cors/pool/p?204", 204),
    ("GET", "/cors/a.txt", 200), ("GET", "/cors/pool/p", 200)])
def test_cors(server, method, target, status):
    answer = ask(server, target, PREFLIGHT, method)
    assert answer.status == status
    assert answer["Access-Control-Allow-Origin"] == "https://app.example"
    assert answer["Access-Control-Allow-Methods"] == "GET, PUT"
    assert answer["Content-Security-Policy"] == "default-src 'self'; img-src *"


def test_early(server):
    """The host is known, and what a head shows that cannot be read is not."""
    assert [ask(server, "/rate").status for _ in range(3)][1:] == [429, 429]
    assert ask(server, "/rate")["X-Method"] == "GET"
    answer = ask(server, "/%zz", host="other")
    assert answer["X-Host"] == "other" and "Strict" not in answer
    answer = ask(server, "/%zz" + "x" * 3000, method="BREW")
    assert (answer.status, answer.body) == (501, b"a file\n")
    assert "Strict" not in ask(server, "/a.txt", "Expect: nothing\r\n")
    # The fields are those of the path that a rewrite leads to.
    answer = ask(server, "/to-slow")
    assert (answer.status, answer["X-Method"]) == (500, "GET")
    assert answer["X-Path"] == "/slow/" + "a" * 60 + "!" and "Strict" not in answer


def test_programs(server):
    answer = ask(server, "/programs/p/x")
    assert answer.body == b"x\n" and "Set-Cookie" not in answer
    assert (answer["X-Powered-By"], answer["X"]) == ("us", "1")
    answer = ask(server, "/programs/p?500")
    assert answer.status == 500
    assert [answer[name] for name in ["X-Powered-By", "Set-Cookie", "X"]] == ["them", "a=b", "1"]


@pytest.mark.parametrize(("value", "message"), [
    ("Name", 'header "Name": must be NAME: VALUE, +NAME: VALUE or -NAME'),
    ("Content-Length: 1", 'header "Content-Length: 1": must be another field'),
    (";".join(["A: " + "b" * 300] * 7), "must be shorter: the fields of a path may have 2048 bytes together"),
])
def test_bad_values(tmp_path, value, message):
    rules = write(tmp_path / "sweet.conf", f"[sweet]\nheader={value}\n".encode())
    status, errors = servers.check_config(rules)
    assert status == 1 and message in errors, errors


def test_variables(server):
    answer = ask(server, "/variables/a.html?b=%0d&c")
    assert answer["Link"] == '<https://a/variables/a.html>; rel="canonical"'
    assert answer["X-Client"] == "127.0.0.1"
    assert answer["X-Id"] == f"<{answer['X-Request-Id']}>" != "<>"
    assert answer["X"] in ["http GET b=%0d&c", "https GET b=%0d&c"]
    assert ask(server, "/variables/none")["X-Client"] == "127.0.0.1"
    assert "Link" not in ask(server, "/variables/none")
    # The rules of the path that a rewrite leads to, which replace those of its prefix.
    for target in ["/variables/a.txt", "/groups/b"]:
        answer = ask(server, target)
        assert (answer.status, answer["Y"]) == (200, "a")
        assert "X" not in answer and "X-Client" not in answer
    answer = ask(server, "/variables/a.html?" + "x" * 2000)
    assert answer.status == 414 and "Link" not in answer
