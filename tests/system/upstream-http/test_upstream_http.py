# SPDX-License-Identifier: MIT
"""HTTP servers behind this one: the requests that they receive, and the results of their
responses."""

import contextlib
import threading

import pytest

import tls
from client import http_connection, request
from files import KB, MB, pattern, write
from server import TIMEOUT, refuses
from test_fastcgi import Client, ask, fetch
from upstream import config

SIZES = (0, 1, 4 * KB, 100 * KB, 3 * MB + 1)


class Recorder:
    """Responds with nothing, and records what it has received."""

    def __call__(self, asked):
        self.asked = asked
        self.body = asked.body()
        asked.answer(b"seen")

    def names(self):
        return [name.lower() for name, _ in self.asked.lines]


@pytest.fixture
def seen():
    return Recorder()


# --- what they receive -----------------------------------------------------------------------


@pytest.mark.parametrize("tcp", [False, True])
def test_request(behind, seen, tcp):
    app = behind(seen, tcp=tcp)
    got = fetch(app.server.port, "/app/a%20b?x=1&y", fields="X-Test: one\r\nAccept: */*\r\n")
    assert (got.status, got.body, got["Content-Type"]) == (200, b"seen", "text/plain")
    assert seen.asked.method == "GET" and seen.asked.target == "/app/a%20b?x=1&y"
    assert seen.asked.fields == {
        "host": "test", "x-test": "one", "accept": "*/*", "x-forwarded-for": "127.0.0.1",
        "x-forwarded-proto": "https" if app.server.port in tls.ports else "http",
        "x-forwarded-host": "test"}
    assert len(seen.asked.lines) == len(seen.asked.fields)


@pytest.mark.http1("about fields that HTTP/2 does not have")
def test_fields_of_one_hop(behind, seen):
    app = behind(seen)
    fetch(app.server.port, "/app", fields=(
        "Connection: keep-alive, X-Hop, Upgrade\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
        "Upgrade: websocket\r\nProxy-Connection: x\r\nProxy-Authorization: x\r\nTrailer: x\r\n"
        "X_Test: 1\r\nCookie: a=b\r\n"))
    assert sorted(seen.names()) == ["cookie", "host", "x-forwarded-for", "x-forwarded-host",
                                    "x-forwarded-proto"]


def test_who_the_client_is(behind, seen):
    """A client cannot say that it is another one."""
    app = behind(seen)
    fetch(app.server.port, "/app", fields=(
        "X-Forwarded-For: 1.2.3.4\r\nx-forwarded-proto: gopher\r\nX-Forwarded-Host: evil\r\n"
        "Forwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\n"))
    assert sorted(seen.names()) == ["host", "x-forwarded-for", "x-forwarded-host",
                                    "x-forwarded-proto"]
    assert seen.asked.fields["x-forwarded-for"] == "127.0.0.1"
    assert seen.asked.fields["x-forwarded-host"] == "test"


def test_behind_a_trusted_proxy(behind, seen):
    app = behind(seen, more="trusted-proxies=127.0.0.0/8\n")
    fetch(app.server.port, "/app", fields=(
        "X-Forwarded-For: 192.0.2.7, 127.0.0.9\r\nX-Forwarded-Proto: https\r\n"
        "X-Forwarded-Host: www.example\r\n"))
    assert seen.asked.fields == {
        "host": "www.example", "x-forwarded-for": "192.0.2.7", "x-forwarded-proto": "https",
        "x-forwarded-host": "www.example"}


def test_request_id(behind, seen):
    app = behind(seen, more="request-id=on\ntrace=on\n")
    got = fetch(app.server.port, "/app", fields=(
        "X-Request-Id: mine\r\ntraceparent: wrong\r\ntracestate: a=b\r\n"))
    assert seen.asked.fields["x-request-id"] == got["X-Request-Id"] != "mine"
    assert seen.asked.fields["traceparent"].startswith("00-")
    assert "tracestate" not in seen.asked.fields


@pytest.mark.parametrize("passes", [False, True])
def test_authorization(behind, seen, passes):
    app = behind(seen, pool="pass-authorization=on\n" if passes else "")
    fetch(app.server.port, "/app", fields="Authorization: Bearer x\r\n")
    assert seen.asked.fields.get("authorization") == ("Bearer x" if passes else None)


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("buffering", ["on", "off"])
def test_bodies_larger_than_the_spool(behind, seen, tmp_path, buffering, chunked):
    """max-body=0 permits them; but only what is passed on as it comes needs no place on the disk."""
    (tmp_path / "spool").mkdir()
    app = behind(seen, more=f"spool-size=2M\nspool-directory={tmp_path}/spool\nspool-memory=on\n",
                 pool=f"request-buffering={buffering}\n")
    body = pattern(3 * MB)
    pieces = (body[at : at + MB] for at in range(0, len(body), MB)) if chunked else body
    answer = ask(app.server.port, "/app", "PUT", pieces)
    spool = app.server.status()["spool"]
    if buffering == "off":
        assert (answer.status, answer.data, seen.body == body) == (200, b"seen", True)
        assert spool["written_bytes"] == 0
    else:
        assert answer.status == 413 and not app.requests


def test_paths(behind, seen):
    """The server behind sees the path that this server's rules have seen."""
    app = behind(seen, more="[path /old]\nrewrite=/app/new\n")
    for target, sent in [("/app/%7Ea;b@:c'(d)?%2F", "/app/%7Ea;b@:c'(d)?%2F"),
                         ("/app/./a//b/../c?d", "/app/a/c?d"), ("/app/a//b", "/app/a//b"),
                         ("/x/%2e%2e/app/%c3%a4", "/app/%C3%A4"),
                         ("/old/x%20y?q", "/app/new/x%20y?q")]:
        assert fetch(app.server.port, target).body == b"seen"
        assert seen.asked.target == sent


@pytest.mark.parametrize("methods, known, unknown", [
    ("", "PATCH", "REPORT"), ("methods=REPORT;X-OWN\n", "X-OWN", "PROPFIND"),
    ("methods=any\n", "PROPFIND", None)])
def test_methods(behind, seen, methods, known, unknown):
    app = behind(seen, pool=methods)
    for body in (None, b"abc"):
        assert ask(app.server.port, "/app", known, body).data == b"seen"
        assert (seen.asked.method, seen.body) == (known, body or b"")
        if unknown:
            assert ask(app.server.port, "/app", unknown, body).status == 501
    assert ask(app.server.port, "/app", "TRACE").status == 405
    assert ask(app.server.port, "/file", known, b"abc").status in (405, 501)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("buffering", ["on", "off"])
def test_bodies(behind, seen, size, buffering):
    app = behind(seen, pool=f"request-buffering={buffering}\n")
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        got = ask(app.server.port, "/app", method, pattern(size))
        assert got.status == 200 and seen.body == pattern(size) and seen.asked.method == method
        if size or method != "DELETE":
            assert seen.asked.fields["content-length"] == str(size)
        assert "transfer-encoding" not in seen.asked.fields


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("buffering", ["on", "off"])
def test_bodies_of_unknown_length(behind, seen, size, buffering):
    """With chunks, only if the body does not come as a whole."""
    app = behind(seen, pool=f"request-buffering={buffering}\n")
    client = http_connection(app.server.port)
    data = pattern(size)
    client.request("POST", "/app", iter([data[:1000], data[1000:]] if size else []),
                   {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    assert client.getresponse().read() == b"seen"
    client.close()
    assert seen.body == data
    chunked = seen.asked.fields.get("transfer-encoding") == "chunked"
    assert chunked == (buffering == "off" and size > MB)


@pytest.mark.parametrize("size", [5, 3 * MB])
@pytest.mark.parametrize("buffering", ["on", "off"])
def test_trailer_of_a_request(behind, seen, buffering, size):
    """It is not forwarded, and the body has one framing, the server's own."""
    app = behind(seen, pool=f"request-buffering={buffering}\nkeep-connection=1h\n")
    framing = (("Transfer-Encoding", "chunked") if buffering == "off" and size > MB
               else ("Content-Length", str(size)))
    with Client(app.server.port) as client:
        for _ in range(3):
            client.send(request("/app", "POST", "Transfer-Encoding: chunked\r\nTrailer: X-Late\r\n")
                        + b"%x;a=b\r\n%s\r\n" % (size, pattern(size))
                        + b"0\r\nX-Late: 1\r\nContent-Length: 3\r\n\r\n")
            assert client.response().body == b"seen"
            # The program's own reader refuses a trailer behind the last chunk.
            assert seen.body == pattern(size) and not seen.asked.data
            assert not {"trailer", "x-late"} & set(seen.names())
            assert [line for line in seen.asked.lines if line[0].lower() in (
                "content-length", "transfer-encoding")] == [framing]
    assert app.connections == 1


@pytest.mark.http1("HTTP/2 has no 100-continue of this kind in the translator")
def test_expect(behind, seen):
    app = behind(seen)
    with Client(app.server.port) as client:
        client.send(request("/app", "POST", "Expect: 100-continue\r\nContent-Length: 3\r\n"))
        assert client.head() == b"HTTP/1.1 100 Continue"
        client.send(b"abc")
        assert client.response().body == b"seen"
    assert seen.body == b"abc" and "expect" not in seen.asked.fields


# --- what they respond -----------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("how", ["length", "chunked", "closed"])
def test_answers(behind, size, how):
    data = pattern(size)

    def answer(asked):
        asked.body()
        if how == "length":
            asked.answer(data)
        elif how == "chunked":
            asked.chunks(*filter(None, (data[:1], data[1:5000], data[5000:])),
                         trailer=b"X-Late: 1\r\n")
        else:
            asked.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + data)
        return how != "closed"

    app = behind(answer)
    with Client(app.server.port) as client:
        for _ in range(3):
            got = client.get("/app")
            assert (got.status, got.body) == (200, data) and "X-Late" not in got
    if how == "closed":
        assert app.connections == 3


def test_no_body(behind):
    def answer(asked):
        asked.body()
        if asked.target == "/app/304":
            asked.answer(b"", b"Content-Length: 5\r\nETag: \"a\"\r\n", b"304 Not Modified")
        elif asked.target == "/app/204":
            asked.answer(b"", status=b"204 No Content")
        else:
            asked.answer(b"hello")

    app = behind(answer)
    with Client(app.server.port) as client:
        for _ in range(3):
            got = client.get("/app/304")
            assert got.status == 304 and got["ETag"] == '"a"'
            assert client.get("/app/204").status == 204
            got = client.get("/app/head", "HEAD")
            assert got.status == 200 and got["Content-Length"] == "5"
            assert client.get("/app/head").body == b"hello"
    assert app.requests == 12 and app.connections < 12


def test_byte_by_byte(behind):
    def answer(asked):
        for byte in (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                     b"Content-Type: a/b\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n"):
            asked.send(bytes([byte]))

    app = behind(answer)
    with Client(app.server.port) as client:
        for _ in range(3):
            got = client.get("/app")
            assert (got.body, got["Content-Type"]) == (b"abcde", "a/b")


def test_interim(behind):
    def answer(asked):
        asked.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        asked.answer(b"final")

    app = behind(answer)
    with Client(app.server.port) as client:
        for _ in range(3):
            got = client.get("/app")
            assert (got.status, got.body) == (200, b"final") and "Link" not in got


def test_fields(behind, tmp_path):
    """What only CGI programs can say has no meaning."""
    write(tmp_path / "file", b"a file\n")

    def answer(asked):
        asked.answer(b"", b"Location: /file\r\nStatus: 404\r\nX-NABC-Cache-Id: 1\r\n"
                     b"X-NABC-Max-Age: 5\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n"
                     b"Proxy-Authenticate: x\r\nServer: other\r\nSet-Cookie: a=b\r\n"
                     b"Upgrade: h2c\r\nX_Own: 1\r\n", b"302 Moved")

    app = behind(answer)
    got = fetch(app.server.port, "/app")
    assert got.status == 302
    assert set(got.fields) == {"location", "date", "server", "set-cookie", "content-length",
                               "x_own"}
    assert got["Location"] == "/file" and got["Server"] != "other"


def test_location_with_200(behind):
    app = behind(lambda asked: asked.answer(b"made", b"Location: /file\r\n"))
    got = fetch(app.server.port, "/app")
    assert (got.status, got.body, got["Location"]) == (200, b"made", "/file")


def test_early_answer(behind):
    """A server that responds before it has read the body."""

    def early(asked):
        next(asked.pieces())
        asked.answer(b"enough\n", status=b"403 Forbidden")
        return asked.closed() and False

    app = behind(early, pool="request-buffering=off\n")
    for size in (3 * MB, 8 * MB):
        with Client(app.server.port) as client:
            client.send(request("/app", "POST", f"Content-Length: {size}\r\n") + pattern(2 * MB))
            got = client.response()
            assert (got.status, got.body) == (403, b"enough\n")


def test_endless(behind):
    """A client that reads nothing stops the server behind: little is held in memory."""
    sent = []

    def endless(asked):
        asked.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        asked.connection.socket.settimeout(2)
        try:
            while True:
                sent.append(asked.connection.socket.send(bytes(MB)))
        except (TimeoutError, ConnectionError):
            return False

    app = behind(endless, pool="response-buffering=off\nstream-ahead=2M\n")
    with Client(app.server.port, buffer=64 * KB) as client:
        client.send(request("/app"))
        client.head()
        assert app.ended.acquire(timeout=TIMEOUT)
        assert sum(sent) < 64 * MB


# --- files that the server sends instead -------------------------------------------------------


@pytest.mark.parametrize("permitted", [True, False])
def test_accel(behind, tmp_path, permitted):
    (tmp_path / "files").mkdir()
    write(tmp_path / "files" / "one", pattern(MB))
    write(tmp_path / "hidden" / "two", b"two")

    def answer(asked):
        field = (b"X-Sendfile: %s/files/one" % bytes(tmp_path) if asked.target == "/app/file"
                 else b"X-Accel-Redirect: /hidden/two")
        asked.answer(b"own", field + b"\r\n")

    app = behind(answer, pool=f"accel=internal;{tmp_path}/files\n" if permitted else "",
                 path="[path /hidden]\ninternal=on\n", more=f"root={tmp_path}\n")
    with Client(app.server.port) as client:
        for target, body in (("/app/file", pattern(MB)), ("/app/path", b"two")) * 2:
            got = client.get(target)
            assert got.body == (body if permitted else b"own")
            assert "X-Sendfile" not in got and "X-Accel-Redirect" not in got


# --- the cache of responses ------------------------------------------------------------------


CACHE = "cache=response\n"


def test_cache(behind):
    def answer(asked):
        asked.answer(b"%d" % app.requests, b"Cache-Control: max-age=60\r\nContent-Type: a/b\r\n"
                     b"Status: 404\r\nLocation: /x\r\nX-NABC-Tag: one two\r\n")

    app = behind(answer, path=CACHE)
    for _ in range(3):
        got = fetch(app.server.port, "/app/a")
        assert (got.status, got.body, got["Content-Type"]) == (200, b"1", "a/b")
        assert "X-NABC-Tag" not in got
    assert fetch(app.server.port, "/app/b").body == b"2"


@pytest.mark.parametrize("size", [5, 300 * KB])
def test_misses_at_once(behind, size):
    """They are one request; a hit is sent by its cache id from the unit that is kept."""
    all_wait = threading.Event()

    def answer(asked):
        all_wait.wait(TIMEOUT)
        asked.answer(pattern(size), b"Cache-Control: max-age=60\r\n")

    app = behind(answer, path=CACHE)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(app.server.port)) for _ in range(8)]
        for client in clients:
            client.send(request("/app/a"))
        app.server.wait_status(lambda status: status["answers"]["waited"] == 7)
        all_wait.set()
        assert [client.response().body for client in clients] == [pattern(size)] * 8
    assert app.requests == 1
    before = app.server.wait_status(lambda status: status["answers"]["stored"] == 1)
    for _ in range(3):
        assert fetch(app.server.port, "/app/a").body == pattern(size)
    # The client can have the last body before the server has counted it.
    after = app.server.wait_status(
        lambda status: status["bodies"]["bytes"] >= before["bodies"]["bytes"] + 3 * size)
    assert after["answers"]["hits"] == before["answers"]["hits"] + 3
    assert after["answers"]["misses"] == before["answers"]["misses"] == 1
    assert after["bodies"]["by_cache_id"] >= before["bodies"]["by_cache_id"] + 3
    assert after["cache"]["units"] == before["cache"]["units"] and app.requests == 1


def test_cache_tags(behind):
    def answer(asked):
        fields = b"Cache-Control: max-age=60\r\nX-NABC-Tag: page\r\n"
        if asked.method == "POST":
            asked.body()
            fields = b"X-NABC-Purge: page\r\n"
        asked.answer(b"%d" % app.requests, fields)

    app = behind(answer, path=CACHE)
    assert [fetch(app.server.port, "/app/a").body for _ in range(2)] == [b"1", b"1"]
    assert ask(app.server.port, "/app/other", "POST", b"x").data == b"2"
    assert fetch(app.server.port, "/app/a").body == b"3"


# --- configuration ---------------------------------------------------------------------------


@pytest.mark.parametrize(("lines", "said"), [
    ("", "needs an upstream"),
    ("upstream=unix:/a\nsuffix=.php", "has a suffix, which is for scripts"),
    ("upstream=unix:/a\ncommand=/bin/cat", "neither command nor folder"),
    ("upstream=unix:/a\nfolder=/tmp", "neither command nor folder"),
    ("command=/bin/cat", "neither command nor folder"),
    ("upstream=unix:/a\nvariable=A=b", "has a variable, which HTTP servers do not get"),
    ("upstream=unix:/a\nenvironment=A=b", "has environment"),
    ("upstream=unix:/a\nuser=nobody", "has user"),
    ("upstream=unix:/a\ntrust-cache-ids=on", "has trust-cache-ids, but"),
    ("upstream=http://a/", "must be ADDRESS:PORT"),
])
def test_wrong_keys(tmp_path, lines, said):
    refuses(tmp_path, f"[sweet]\nroot={tmp_path}\n[pool app]\nprotocol=http\n{lines}\n"
                 "[path /app]\npool=app\n", said)
