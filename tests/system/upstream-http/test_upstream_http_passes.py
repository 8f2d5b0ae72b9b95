# SPDX-License-Identifier: MIT
"""HTTP servers behind this one: what of requests and responses passes as it is, and what the
server adds nothing to."""

import pytest

from client import request
from files import MB, pattern, write
from test_fastcgi import Client, fetch

END = b"Content-Length: 0\r\n\r\n"


# --- the path --------------------------------------------------------------------------------


# What the client sends, and what the server behind receives.
PATHS = [
    # Signed URLs, and URLs in URLs: not one byte changes.
    ("/app/http%3A//example.org/a//b?c", "/app/http%3A//example.org/a//b?c"),
    ("/app//a%7Eb%2c%3b;v=1,%C3%A4//", "/app//a%7Eb%2c%3b;v=1,%C3%A4//"),
    ("/app/%61%2E%2e%2Eb//", "/app/%61%2E%2e%2Eb//"),
    # Two slashes at the start would name a host for those who resolve it as a reference.
    ("//app/a//b%3A", "/app/a//b%3A"),
    ("///app//", "/app//"),
    # Dot segments are resolved: then the normal form leaves.
    ("/app/a//./b%3A", "/app/a/b:"),
    ("/x/../app/%41", "/app/A"),
    ("/x//%2E%2e//app//b", "/app/b"),
]


@pytest.mark.parametrize("target, sent", PATHS)
def test_path(behind, target, sent):
    def answer(asked):
        asked.answer(asked.target.encode())

    app = behind(answer)
    assert fetch(app.server.port, target).body == sent.encode()


def test_path_and_rules(behind):
    """Rules see the normal form, and no other form of a path escapes them."""
    def answer(asked):
        asked.answer(asked.target.encode())

    app = behind(answer, path="[path /app/secret]\npool=app\ndeny=all\n[path /app/moved]\n"
                              "rewrite=/app/new\n")
    for target in ("/app/secret/a", "/app//secret/a", "//app/secret", "/app/%73ecret//a",
                   "/app/x/..//secret", "/app/./secret", "/app//./secret", "///app///secret"):
        assert fetch(app.server.port, target).status == 403
    assert fetch(app.server.port, "/app//moved/a%3Ab").body == b"/app/new/a:b"


@pytest.mark.parametrize("target", ["/app/..;/secret", "/app/x/..;a=b//y", "/app/.;", "/app/%2e.;x/",
                                    "/app/..%3B/secret"])
def test_dots_with_a_parameter(behind, target):
    """Java's servers drop the parameter, and resolve the dots that the rules saw as a name."""
    app = behind(lambda asked: asked.answer(asked.target.encode()))
    assert fetch(app.server.port, target).status == 400
    assert fetch(app.server.port, "/app/a..;b/.c;/...;").body == b"/app/a..;b/.c;/...;"


RULES = ("[path =/app/exact]\npool=app\ndeny=all\n[path /app/secret]\npool=app\ndeny=all\n"
         "[pattern private]\nmatch=/private[0-9]*$\npool=app\ndeny=all\n")


@pytest.mark.parametrize("target", [
    "/app/exact;x", "/app/;x/exact", "/app;x/exact", "/app/secret;", "/app/secret;a=b/c",
    "/app/secret%3Bx/c", "/app/a/private1;b", "/app/a;x/private;y", "/;x/app/secret",
])
def test_parameters_that_hide_rules(behind, target):
    """Many servers look at /app/secret for /app/secret;x, whose rules are others."""
    app = behind(lambda asked: asked.answer(asked.target.encode()), path=RULES)
    assert fetch(app.server.port, target).status in (400, 404)
    assert app.requests == 0


@pytest.mark.parametrize("target", ["/app/x;session=1", "/app/a;b=c/d;e", "/app/;",
                                    "/app/exact;x/y", "/app/private1;b/z"])
def test_other_parameters(behind, target):
    app = behind(lambda asked: asked.answer(asked.target.encode()), path=RULES)
    assert fetch(app.server.port, target).body == target.encode()


# --- a page of one client ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Accept, x-forwarded-for", "traceparent"])
def test_vary_by_what_the_server_sets(behind, name):
    """The server's own value is compared with no client's: such a page is not for others."""
    own = name.split()[-1].lower()

    def answer(asked):
        asked.answer(asked.fields[own].encode(),
                     f"Cache-Control: max-age=60\r\nVary: {name}\r\n".encode())

    app = behind(answer, path="cache=response\n", more="trace=on\n")
    pages = []
    for source in ("127.0.0.1", "127.0.0.2"):
        with Client(app.server.port, source=source) as client:
            pages.append(client.get("/app").body)
    assert pages[0] != pages[1] and app.requests == 2


# --- the response ----------------------------------------------------------------------------


def test_no_invented_type(behind):
    def answer(asked):
        if asked.target == "/app/chunks":
            asked.chunks(b"<p>", b"page", fields=b"")
        else:
            asked.answer(b"<p>page", b"")

    app = behind(answer)
    for path in ("/app", "/app/chunks"):
        got = fetch(app.server.port, path)
        assert (got.status, got.body) == (200, b"<p>page") and "Content-Type" not in got
        assert "Content-Type" not in fetch(app.server.port, path, "HEAD")


EMPTY = {
    "length": b"Content-Length: 0\r\n\r\n",
    "type": b"Content-Type: text/plain\r\nContent-Length: 0\r\n\r\n",
    "chunks": b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "cached": b"Cache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n",
    "cached type": b"Cache-Control: max-age=60\r\nContent-Type: a/b\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("how", EMPTY)
@pytest.mark.parametrize("status", ["404 Not Found", "500 Oh"])
@pytest.mark.parametrize("intercepts", [False, True])
def test_empty_error(behind, tmp_path, how, status, intercepts):
    write(tmp_path / "sorry.txt", b"sorry")
    app = behind(lambda asked: asked.send(f"HTTP/1.1 {status}\r\n".encode() + EMPTY[how]),
                 path="cache=response\n",
                 more="error-page=404=/sorry.txt;500=/sorry.txt\n"
                      + ("intercept-errors=on\n" if intercepts else ""))
    for _ in range(3):
        got = fetch(app.server.port, "/app")
        assert (got.status, got.body) == (int(status[:3]), b"sorry" if intercepts else b"")
        if not intercepts:
            assert got.fields.get("content-type") == (
                "text/plain" if how == "type" else "a/b" if how == "cached type" else None)
            assert got.fields.get("content-length", "0") == "0"


@pytest.mark.http1("about a text that HTTP/2 does not have")
@pytest.mark.parametrize("line, reason", [
    ("200 Fine", "Fine"), ("404 No such thing \t(really)", "No such thing \t(really)"),
    ("404 Not Found", "Not Found"), ("299 H\xe4", "H\xe4"), ("499 Client Closed", "Client Closed"),
    # Nothing to pass, and too much.
    ("200 ", "OK"), ("404", "Not Found"), ("404 " + "x" * 300, "Not Found")])
def test_reason(behind, line, reason):
    app = behind(lambda asked: asked.send(
        f"HTTP/1.1 {line}\r\nCache-Control: max-age=60\r\n".encode("latin-1") + END),
                 path="cache=response\n")
    for _ in range(3):
        got = fetch(app.server.port, "/app")
        assert (got.status, got.reason) == (int(line[:3]), reason)
    assert fetch(app.server.port, "/file").reason == "Not Found"


@pytest.mark.http1("about a text that HTTP/2 does not have")
def test_reason_of_another_status(behind, tmp_path):
    """The phrase belongs to the status that came with it."""
    write(tmp_path / "sorry.txt", b"sorry")
    app = behind(lambda asked: asked.answer(b"x", b'ETag: "a"\r\nCache-Control: max-age=60\r\n',
                                            b"404 Away" if "gone" in asked.target else b"200 Here"),
                 path="cache=response\n", more="intercept-errors=on\nerror-page=404=/sorry.txt\n")
    with Client(app.server.port) as client:
        assert client.get("/app/gone").reason == "Not Found"
        assert client.get("/app").reason == "Here"
        got = client.get("/app", fields='If-None-Match: "a"\r\n')
        assert (got.status, got.reason) == (304, "Not Modified")
        got = client.get("/app", fields="Range: bytes=0-0\r\n")
        assert (got.status, got.reason) == (206, "Partial Content")


@pytest.mark.http1("about a text that HTTP/2 does not have")
def test_reason_before_the_body(behind):
    """A head that waits until the request's body has been sent."""
    def early(asked):
        next(asked.pieces())
        asked.answer(b"enough", status=b"403 No more")
        return asked.closed() and False

    app = behind(early, pool="request-buffering=off\n")
    with Client(app.server.port) as client:
        client.send(request("/app", "POST", f"Content-Length: {3 * MB}\r\n") + pattern(2 * MB))
        got = client.response()
        assert (got.status, got.reason, got.body) == (403, "No more", b"enough")


def test_no_content_in_chunks(behind):
    def answer(asked):
        if asked.target == "/app/204":
            asked.send(b"HTTP/1.1 204 No Content\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n"
                       b"0\r\n\r\n")
        elif asked.target == "/app/bare":
            asked.send(b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n")
        else:
            asked.answer(b"next")

    app = behind(answer)
    with Client(app.server.port) as client:
        for _ in range(3):
            got = client.get("/app/204")
            assert got.status == 204 and got["X-A"] == "b" and "Transfer-Encoding" not in got
            assert client.get("/app/bare").status == 204
            assert client.get("/app").body == b"next"


@pytest.mark.parametrize("minor", [2, 9])
def test_later_minor_version(behind, minor):
    def answer(asked):
        asked.send(f"HTTP/1.{minor} 200 OK\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n"
                   "\r\n3\r\nabc\r\n0\r\n\r\n".encode())

    app = behind(answer, pool="keep-connection=1h\n")
    with Client(app.server.port) as client:
        for _ in range(3):
            assert client.get("/app").body == b"abc"
    # As those of HTTP/1.1, its connections stay.
    assert app.connections == 1


@pytest.mark.parametrize("count", [20, 2000])
def test_many_interim_responses(behind, count):
    def answer(asked):
        asked.send(b"HTTP/1.1 102 Processing\r\nX-Part: 1\r\n\r\n" * count)
        asked.answer(b"done")

    app = behind(answer)
    with Client(app.server.port) as client:
        for _ in range(2):
            got = client.get("/app")
            assert (got.status, got.body) == (200, b"done") and "X-Part" not in got


def test_endless_interim_responses(behind):
    """They do not extend the time that the server behind has for its response."""
    def answer(asked):
        try:
            while True:
                asked.send(b"HTTP/1.1 102 Processing\r\n\r\n" * 10)
        except OSError:
            return False

    app = behind(answer, pool="timeout=1s\n")
    assert fetch(app.server.port, "/app").status == 504
