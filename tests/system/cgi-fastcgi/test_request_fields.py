# SPDX-License-Identifier: MIT
"""request-header and variables of requests in variable: what programs get instead of, or beside,
what the client has sent."""

import threading

import pytest

import server as servers
from files import write
from test_cgi import until
from test_fastcgi import ask, fetch
from test_upstream_http import Recorder

RULES = r"""[sweet]
request-id=on
[path /cgi]
pool=programs
request-header=X-User: {user};-Cookie;X-Query: <{query}>;Authorization: Bearer a\;b
variable=OF_PATH={scheme}://{host}{path};SERVER_NAME={map:names}
[path /cgi/none]
request-header=off
[path /cgi/user]
auth-realm=x
auth-file={top}/users
[pattern item]
match=^/items/([a-z]+)$
rewrite=/cgi/item
[pattern env]
match=^/cgi/(i.)em$
variable=ITEM={1}
[map names]
lookup={host}
values=test of-the-map
default=other
[pool programs]
protocol=cgi
folder={top}/programs
variable=ID={request-id};CLIENT=[{client}];OF_PATH=no
"""
PROGRAM = b"""#!/bin/sh
echo Content-Type: text/plain
echo
env
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    top = tmp_path_factory.mktemp("fields")
    (top / "root").mkdir()
    write(top / "programs/env", PROGRAM).chmod(0o755)
    write(top / "users", b"a:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n")
    for name in ["none", "item", "user"]:
        write(top / "programs" / name, PROGRAM).chmod(0o755)
    rules = write(top / "sweet.conf", RULES.replace("{top}", str(top)).encode())
    with servers.running("epoll", top / "root", "--config", rules) as server:
        yield server


def environment(server, target, fields=""):
    got = fetch(server.port, target, fields=fields)
    assert got.status == 200, got
    return dict(line.split("=", 1) for line in got.body.decode().splitlines() if "=" in line), got


def test_fields_of_cgi(server):
    seen, _ = environment(server, "/cgi/env?a=%0d", fields=(
        "X-User: evil\r\nCookie: a=b\r\nX-Query: evil\r\nX-Other: c\r\nAuthorization: Basic eDp5\r\n"))
    # An empty value removes the field.
    assert "HTTP_X_USER" not in seen and "HTTP_COOKIE" not in seen
    assert seen["HTTP_X_QUERY"] == "<a=%0d>" and seen["HTTP_X_OTHER"] == "c"
    assert seen["HTTP_AUTHORIZATION"] == "Bearer a;b"
    seen, _ = environment(server, "/cgi/none", fields="X-User: mine\r\nCookie: a=b\r\n")
    assert (seen["HTTP_X_USER"], seen["HTTP_COOKIE"]) == ("mine", "a=b")
    assert "HTTP_AUTHORIZATION" not in seen


def test_user_of_cgi(server):
    fields = "X-User: evil\r\nAuthorization: Basic YTpzZWNyZXQ=\r\n"
    for _ in range(2):
        assert environment(server, "/cgi/user", fields)[0]["HTTP_X_USER"] == "a"
    assert fetch(server.port, "/cgi/user", fields="X-User: a\r\n").status == 401


def test_variables_of_cgi(server):
    seen, got = environment(server, "/cgi/env")
    assert seen["OF_PATH"] in ("http://test/cgi/env", "https://test/cgi/env")
    assert seen["ID"] == got["X-Request-Id"] != ""
    assert (seen["CLIENT"], seen["SERVER_NAME"]) == ("[127.0.0.1]", "of-the-map")


def test_groups_of_a_pattern(server):
    """Its variables replace all those of the prefix."""
    seen, _ = environment(server, "/items/abc")
    assert seen["ITEM"] == "it" and seen["OF_PATH"] == "no"


def test_too_large(server):
    got = fetch(server.port, "/cgi/env?" + "x" * 2100)
    assert got.status == 431
    assert fetch(server.port, "/cgi/none?" + "x" * 2100).status == 200


# --- HTTP servers ----------------------------------------------------------------------------


FIELDS = ("request-header=X-User: {user}-{client};-Cookie;X-Real-IP: {client};X-Forwarded-Port: 1;"
          "Authorization: Basic b3du\n")


@pytest.fixture
def seen():
    return Recorder()


@pytest.mark.parametrize("body", [None, b"body" * 1000])
def test_fields_of_http(behind, seen, body):
    app = behind(seen, path=FIELDS)
    got = ask(app.server.port, "/app/a", "POST" if body else "GET", body, {
        "X-User": "evil", "X-Real-IP": "1.2.3.4", "Cookie": "a=b", "Authorization": "Basic eDp5",
        "X-Other": "c"})
    assert got.data == b"seen" and seen.body == (body or b"")
    names = [name.lower() for name, _ in seen.asked.lines]
    assert len(names) == len(set(names)) and "cookie" not in names
    fields = seen.asked.fields
    assert fields["x-user"] == "-127.0.0.1" and fields["x-real-ip"] == "127.0.0.1"
    assert fields["authorization"] == "Basic b3du" and fields["x-forwarded-port"] == "1"
    assert fields["x-other"] == "c"


@pytest.mark.http1("about a field that HTTP/2 does not have")
def test_client_cannot_declare_them_of_one_hop(behind, seen):
    app = behind(seen, path=FIELDS)
    fetch(app.server.port, "/app", fields="Connection: X-User, Authorization\r\n")
    assert seen.asked.fields["x-user"] == "-127.0.0.1"
    assert seen.asked.fields["authorization"] == "Basic b3du"


class Varying:
    """Responds with what it was asked for, when the test lets it."""

    def __init__(self, fields=b"Vary: X-User, Cookie\r\n"):
        self.asked, self.may, self.fields = [], threading.Event(), fields

    def __call__(self, asked):
        self.asked.append(asked)
        assert self.may.wait(30)
        asked.answer(asked.fields.get("x-user", "").encode() + b" " * 2000,
                     b"Content-Type: text/plain\r\nCache-Control: max-age=60\r\n" + self.fields)


def test_cache_sees_what_the_program_got(behind):
    """Also for requests that wait for the same answer: they differ only in what is removed."""
    app = Varying()
    running = behind(app, path="request-header=X-User: {query};-Cookie\ncache=response\n")
    got = []

    def ask_as(number):
        got.append(fetch(running.server.port, "/app?one", fields=f"Cookie: {number}\r\nX-User: {number}\r\n"))

    threads = [threading.Thread(target=ask_as, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    app.may.set()
    for thread in threads:
        thread.join()
    assert {answer.body.strip() for answer in got} == {b"one"} and len(app.asked) == 1
    assert "cookie" not in app.asked[0].fields


def test_coding_that_the_program_does_not_see(behind):
    """The program need not compress; the client gets the kept variant that it accepts."""
    app = Varying(b"")
    app.may.set()
    running = behind(app, path="request-header=-Accept-Encoding\ncache=response\ncompress=gzip\n")

    def coding():
        got = fetch(running.server.port, "/app", fields="Accept-Encoding: gzip\r\n")
        return got.fields.get("content-encoding")

    assert until(lambda: coding() == "gzip")
    assert "accept-encoding" not in app.asked[0].fields and len(app.asked) == 1
    assert "Content-Encoding" not in fetch(running.server.port, "/app")


# --- bad values ------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "message"), [
    ("request-header=Name", 'request-header "Name": must be NAME: VALUE or -NAME'),
    ("request-header=X_A: b", "with letters, digits and - in the name"),
    ("request-header=Host: b", "must be another field"),
    ("request-header=-Content-Length", "must be another field"),
    ("request-header=A: {hots}", "unknown variable {hots}"),
    ("request-header=A: {map:none}", "{map:none}: there is no such [map]"),
    ("request-header=A: {1}", "{1}: only a [pattern] has groups"),
    ("variable=A={1}", "{1}: only a [pattern] has groups"),
    ("variable=A={map:none}", "{map:none}: there is no such [map]"),
    ("[pool p]\ncommand=/bin/true\nvariable=A={1}", "{1}: only a [pattern] has groups"),
    ("[pool p]\ncommand=/bin/true\nvariable=A={map:none}", "{map:none}: there is no such [map]"),
    ("[pattern p]\nmatch=^/(a)\nvariable=A={2}", "{2}: the expression of [pattern p] has 1 groups"),
])
def test_bad_values(tmp_path, text, message):
    servers.refuses(tmp_path, f"[sweet]\n{text}\n", message)
