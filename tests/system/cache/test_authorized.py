# SPDX-License-Identifier: MIT
"""A page that was made for one user is not another one's, whatever the rules make of the fields by
which the client has shown who it is (RFC 9111, section 3.5)."""

import base64
import itertools

import pytest

import server as servers
import tls
from client import Client
from files import write
from responder import Application

RULES = """[sweet]
root={top}/root
certificate={certificate}
key={key}
client-ca={authority}
client-certificate=optional
[path /]
pool=app
cache=response
[path /user]
auth-realm=x
auth-file={top}/users
request-header=-Authorization;X-User: {user}
[path /user/timed]
cache=10s
[path /hidden]
request-header=-Authorization
[path /timed]
request-header=-Authorization
cache=10s
[path /subject]
request-header=X-User: {subject}
[path /constant]
request-header=Authorization: Basic c2VydmVyOng=
[pool app]
protocol=fastcgi
upstream={address}
script-suffix=
pass-authorization=on
"""
KEPT = "max-age=600"
SHARED = "public,max-age=600"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    numbers = itertools.count()

    def answer(request):
        """Says who asked, as far as the program can see."""
        request.body()
        seen = [request.variables.get(name, "") for name in (
            "HTTP_X_USER", "HTTP_AUTHORIZATION", "REMOTE_USER", "SSL_CLIENT_S_DN")]
        text = f"{next(numbers)} {seen}".encode()
        control, _, what = request.variables["QUERY_STRING"].partition("&")
        tag = "X-NABC-Soft-Purge" if what == "purge" else "Surrogate-Key"
        request.answer(text, f"Content-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
                             f"Cache-Control: {control}\r\n{tag}: pages\r\n".encode())

    made = Application(answer, tmp_path_factory.mktemp("app") / "socket")
    yield made
    made.close()
    assert not made.faults


@pytest.fixture(scope="module")
def server(app, kind, tmp_path_factory):
    top = tmp_path_factory.mktemp("authorized")
    (top / "root").mkdir()
    write(top / "users", b"alice:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"
                         b"bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n")
    rules = RULES
    for name, value in {"top": top, "address": app.address, "certificate": tls.file("ec.pem"),
                        "key": tls.file("ec.key"), "authority": tls.file("authority.pem")}.items():
        rules = rules.replace(f"{{{name}}}", str(value))
    config = write(top / "sweet.conf", rules.encode())
    with servers.running(kind, None, "--config", config, "--listen", "127.0.0.1:0,tls",
                         listen=None) as server:
        yield server


def get(server, target, user=None, certificate=None):
    basic = base64.b64encode(f"{user}:secret".encode()).decode()
    fields = f"Authorization: Basic {basic}\r\n" if user else ""
    with Client(server.port, secure={"settings": tls.context(certificate)}) as client:
        client.send(f"GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n".encode())
        got = client.response()
    assert got.status == 200, got
    return got.body


@pytest.mark.parametrize("path", ["/user", "/user/timed", "/hidden", "/timed", "/subject", "/"])
@pytest.mark.parametrize("user, certificate", [("alice", None), ("alice", "client")])
def test_password(server, path, user, certificate):
    """Neither another user nor an unknown client gets the page, and the user gets a new one."""
    target = f"{path}?{KEPT}"
    mine = get(server, target, user, certificate)
    assert get(server, target, "bob") != mine
    if not path.startswith("/user"):
        assert get(server, target) != mine
    assert get(server, target, user, certificate) != mine


@pytest.mark.parametrize("path", ["/hidden", "/timed", "/subject", "/"])
def test_certificate(server, path):
    """The same with one that the program sees as variables, or as the field of a rule."""
    target = f"{path}?{KEPT}&certificate"
    mine = get(server, target, certificate="client")
    assert b"CN=" in mine
    assert get(server, target) != mine
    assert get(server, target, certificate="client") != mine


@pytest.mark.parametrize("path", ["/user", "/hidden", "/subject"])
def test_shared(server, path):
    """The program says that the page is for all."""
    target = f"{path}?{SHARED}&shared"
    page = get(server, target, "alice")
    assert get(server, target, "bob") == page
    if path != "/user":
        assert get(server, target) == page


def test_constant(server):
    """The server's own password for a program says nothing about the client."""
    target = f"/constant?{KEPT}"
    page = get(server, target)
    assert get(server, target) == page
    assert get(server, target, "bob") != page


def test_refresh(server):
    """A refresh would have no certificate: the client's own request fetches the page."""
    target = f"/subject?{SHARED}&refresh"
    first = get(server, target, certificate="client")
    assert b"CN=" in first and get(server, target) == first
    get(server, "/subject?no-store&purge")
    second = get(server, target, certificate="client")
    assert b"CN=" in second and second != first
    assert get(server, target) == second
