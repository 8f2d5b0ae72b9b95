# SPDX-License-Identifier: MIT
"""compress-uncached: answers of programs that are compressed while they are sent."""

import gzip
import socket
import struct
import threading
import zlib

import pytest

from client import exchange
from files import MB, pattern, write
from server import GENERATE, STREAM, TIMEOUT, refuses, running
from test_compress import ALL, TEXT, decode, has
from test_fastcgi import Client, fetch

HTML = b"Content-Type: text/html\r\n"
BEGIN = b"HTTP/1.1 200 OK\r\n" + HTML + b"Transfer-Encoding: chunked\r\n\r\n"
ASKED = b"GET /app HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"
ON = "compress=gzip\ncompress-uncached=on\n"


@pytest.fixture(autouse=True)
def needs_gzip():
    has("gzip")


def get(app, fields="", accept="gzip", method="GET", target="/app"):
    return fetch(app.server.port, target, method, f"Accept-Encoding: {accept}\r\n{fields}")


def answering(body=TEXT, fields=HTML, status=b"200 OK"):
    return lambda request: request.answer(body, fields, status)


def chunk(piece):
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def counts(app, *expected):
    """Waits until that many are compressed, were, and could not be: the end of one may be late."""
    names = ("streams", "streamed", "streams_refused")
    app.server.wait_status(
        lambda status: [status["compress"][name] for name in names] == list(expected))


def is_coded(got, body=TEXT, coding="gzip"):
    return (got["Content-Encoding"] == coding and decode(coding, got.body) == body
            and got["Vary"] == "Accept-Encoding" and "Content-Length" not in got)


def is_plain(got, body=TEXT):
    return "Content-Encoding" not in got and got.body == body


@pytest.mark.parametrize("coding", ALL)
def test_each_coding(behind, coding):
    has(coding)
    app = behind(answering(), path=f"compress={coding}\ncompress-uncached=on\n")
    got = get(app, accept=coding)
    assert got.status == 200 and is_coded(got, coding=coding)
    assert len(got.body) < len(TEXT) // 4 and got["Content-Type"] == "text/html"
    counts(app, 0, 1, 0)


def test_preference(behind):
    has("zstd")
    app = behind(answering(), path="compress=zstd;gzip\ncompress-uncached=on\n")
    assert is_coded(get(app, accept="zstd;q=0.5, gzip"))
    assert get(app, accept="zstd, gzip")["Content-Encoding"] == "zstd"
    for accept in ("br", "identity", "gzip;q=0", "*;q=0"):
        got = get(app, accept=accept)
        assert is_plain(got) and got["Vary"] == "Accept-Encoding"
        assert got["Content-Length"] == str(len(TEXT))
    assert is_plain(fetch(app.server.port, "/app"))


def test_hidden_from_program(behind):
    """Else a program could compress by itself, which costs it time."""
    asked = []

    def answer(request):
        asked.append(request.fields)
        request.answer(TEXT, HTML)

    app = behind(answer, path=ON + "request-header=-Accept-Encoding\n")
    assert is_coded(get(app)) and "accept-encoding" not in asked[0]


@pytest.mark.parametrize("path", ["", "compress=gzip\n", "compress-uncached=on\n",
                                  "compress=off\ncompress-uncached=on\n"])
def test_off(behind, path):
    app = behind(answering(fields=HTML + b'ETag: "x"\r\n'), path=path)
    got = get(app)
    assert is_plain(got) and "Vary" not in got and got["ETag"] == '"x"'
    counts(app, 0, 0, 0)


@pytest.mark.parametrize("size", [1024, 65535, 65536, 65537, 3 * MB + 1])
def test_sizes(behind, size):
    body = pattern(size, seed=2)
    answers = (answering(body),
               lambda request: request.chunks(body[:100], body[100:], fields=HTML))
    for name, answer in zip(("known", "chunks"), answers):
        app = behind(answer, path=ON, name=name)
        assert is_coded(get(app), body)


def test_zeros(behind):
    """Of much input that becomes little, other clients get their turn, and this one its bytes."""
    body = bytes(20 * MB)
    app = behind(answering(body), path=ON + "compress-max=64M\n")
    got = get(app)
    assert gzip.decompress(got.body) == body and len(got.body) < 200000


@pytest.mark.parametrize("fields, status", [
    (HTML + b"Content-Encoding: br\r\n", b"200 OK"),
    (HTML + b"Cache-Control: public, no-transform\r\n", b"200 OK"),
    (HTML + b"Content-Range: bytes 0-9/20\r\n", b"206 Partial Content"),
    (HTML + b"Content-Digest: sha-256=:x:\r\n", b"200 OK"),
    (b"Content-Type: image/png\r\n", b"200 OK"),
    (b"Content-Type: text/event-stream\r\n", b"200 OK"),
    (b"", b"200 OK"),
], ids=["coded", "no-transform", "part", "digest", "type", "events", "untyped"])
def test_as_it_is(behind, fields, status):
    app = behind(answering(TEXT, fields + b'ETag: "x"\r\n', status), path=ON)
    got = get(app)
    assert got.status == int(status[:3]) and got.body == TEXT and "Vary" not in got
    assert got["Content-Length"] == str(len(TEXT)) and got["ETag"] == '"x"'
    counts(app, 0, 0, 0)


def test_limits_of_size(behind):
    app = behind(answering(b"x" * 1023), path=ON)
    assert is_plain(get(app), b"x" * 1023)
    app = behind(answering(b"x" * 5000), path=ON + "compress-max=4K\n", name="other")
    assert is_plain(get(app), b"x" * 5000)


@pytest.mark.parametrize("status", [b"404 Not Found", b"500 Internal Server Error", b"201 Created"])
def test_other_statuses(behind, status):
    app = behind(answering(status=status), path=ON)
    got = get(app)
    assert got.status == int(status[:3]) and is_coded(got)


def test_error_page(behind, tmp_path):
    """A file in place of the answer is a file."""
    write(tmp_path / "oops.html", TEXT)
    app = behind(answering(b"", HTML, b"500 Oops"),
                 path=ON + "intercept-errors=on\nerror-page=500=/oops.html\n")
    got = get(app)
    assert got.status == 500 and is_plain(got)


@pytest.mark.parametrize("tag, weak", [(b'"x"', 'W/"x"'), (b'W/"x"', 'W/"x"')])
def test_entity_tag(behind, tag, weak):
    fields = HTML + b"ETag: " + tag + b"\r\nAccept-Ranges: bytes\r\n"
    app = behind(answering(fields=fields), path=ON)
    got = get(app)
    assert got["ETag"] == weak and "Accept-Ranges" not in got
    assert gzip.decompress(got.body) == TEXT
    plain = get(app, accept="identity")
    assert plain["ETag"] == tag.decode() and plain["Accept-Ranges"] == "bytes"


def test_vary_is_added(behind):
    app = behind(answering(fields=HTML + b"Vary: Cookie\r\n"), path=ON)
    with Client(app.server.port) as client:
        client.send(ASKED)
        head = client.head().lower()
    assert b"\r\nvary: cookie\r\n" in head and b"\r\nvary: accept-encoding\r\n" in head


@pytest.mark.parametrize("vary", [b"Accept-Encoding", b"cookie, ACCEPT-encoding", b"*"])
def test_vary_is_there(behind, vary):
    app = behind(answering(fields=HTML + b"Vary: " + vary + b"\r\n"), path=ON)
    got = get(app)
    assert got["Vary"] == vary.decode() and gzip.decompress(got.body) == TEXT


def test_not_modified(behind):
    """Like the 200 whose body the client has: else it could not update that."""
    app = behind(answering(b"", b'ETag: "x"\r\n', b"304 Not Modified"), path=ON)
    got = get(app, 'If-None-Match: W/"x"\r\n')
    assert (got.status, got["ETag"], got["Vary"]) == (304, 'W/"x"', "Accept-Encoding")
    assert "Content-Encoding" not in got
    assert get(app, accept="br")["ETag"] == '"x"'


def test_no_content(behind):
    app = behind(answering(b"", b'ETag: "x"\r\n', b"204 No Content"), path=ON)
    got = get(app)
    assert got.status == 204 and got["ETag"] == '"x"' and "Content-Encoding" not in got


def test_head(behind):
    app = behind(answering(fields=HTML + b'ETag: "x"\r\n'), path=ON)
    got = get(app, method="HEAD")
    assert got.status == 200 and got["Content-Encoding"] == "gzip" and got["ETag"] == 'W/"x"'
    assert "Content-Length" not in got and got.body == b""
    counts(app, 0, 0, 0)
    assert get(app, method="HEAD", accept="br")["Content-Length"] == str(len(TEXT))


@pytest.mark.http1("looks at chunks")
def test_pause(behind):
    """What a program has written before a pause is there before it continues."""
    steps = [b"first line\n" * 300, b"one more\n", b"and the last\n" * 10]
    seen = []

    def answer(request):
        request.send(BEGIN)
        for step in steps:
            request.send(chunk(step))
            assert app.go.acquire(timeout=TIMEOUT)
        request.send(b"0\r\n\r\n")

    app = behind(answer, path=ON)
    app.go = threading.Semaphore(0)
    with Client(app.server.port) as client:
        client.send(ASKED)
        reader = zlib.decompressobj(31)
        pieces = Pieces(client)
        for step in steps:
            got = b""
            while len(got) < len(step):
                got += reader.decompress(pieces.next())
            seen.append(got)
            app.go.release()
        while piece := pieces.next():
            assert reader.decompress(piece) == b""
        assert reader.eof
    assert seen == steps


class Pieces:
    """The chunks of a response, as they come."""

    def __init__(self, client):
        self.client = client
        assert b"Content-Encoding: gzip" in client.head()

    def line(self):
        line = b""
        while not line.endswith(b"\r\n"):
            line += self.client.take(1)
        return line

    def next(self):
        length = int(self.line(), 16)
        piece = self.client.take(length)
        assert self.line() == b"\r\n"
        return piece


@pytest.mark.parametrize("whole", [True, False])
def test_cut_off(behind, whole):
    """A program that breaks off is seen by its client."""
    def answer(request):
        length = b"Content-Length: 100000\r\n" if whole else b"Transfer-Encoding: chunked\r\n"
        request.send(b"HTTP/1.1 200 OK\r\n" + HTML + length + b"\r\n")
        request.send(TEXT if whole else chunk(TEXT))
        return False

    app = behind(answer, path=ON)
    with Client(app.server.port) as client, pytest.raises((AssertionError, OSError, EOFError)):
        client.get("/app", fields="Accept-Encoding: gzip\r\n")
    app.server.wait_status(lambda status: status["compress"]["streams"] == 0)


def test_client_goes(behind):
    """In the middle of a body: its program is told, and its encoder is free again."""
    def answer(request):
        request.send(BEGIN)
        piece = pattern(65536, seed=3)
        with pytest.raises(OSError):
            while True:
                request.send(chunk(piece))
        return False

    app = behind(answer, path=ON)
    with Client(app.server.port, buffer=4096) as client:
        client.send(ASKED)
        client.head()
        counts(app, 1, 1, 0)
    assert app.ended.acquire(timeout=TIMEOUT)
    app.server.wait_status(lambda status: status["compress"]["streams"] == 0)


def test_client_goes_in_a_pause(behind):
    def answer(request):
        request.send(BEGIN)
        request.send(chunk(TEXT))
        assert request.closed()
        return False

    app = behind(answer, path=ON)
    with Client(app.server.port) as client:
        client.send(ASKED)
        client.head()
        # A reset: after a mere end of its stream, the client might still wait for the response.
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert app.ended.acquire(timeout=TIMEOUT)
    app.server.wait_status(lambda status: status["compress"]["streams"] == 0)


def test_limit_of_streams(behind):
    """Beyond it, responses leave as they are, and vary."""
    go = threading.Event()

    def answer(request):
        if request.target.endswith("wait"):
            request.send(BEGIN)
            request.send(chunk(TEXT))
            assert go.wait(TIMEOUT)
            request.send(b"0\r\n\r\n")
        else:
            request.answer(TEXT, HTML + b'ETag: "x"\r\n')

    app = behind(answer, more="compress-streams=1\n", path=ON)
    with Client(app.server.port) as client:
        client.send(b"GET /app/wait HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
        client.head()
        got = get(app)
        assert is_plain(got) and got["Vary"] == "Accept-Encoding" and got["ETag"] == '"x"'
        counts(app, 1, 1, 1)
        go.set()
    app.server.wait_status(lambda status: status["compress"]["streams"] == 0)
    assert is_coded(get(app))


@pytest.mark.http1("about HTTP/1.0")
def test_http10(behind):
    app = behind(answering(), path=ON)
    got = exchange(app.server.port, b"GET /app HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n")
    head, _, body = got.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in head and gzip.decompress(body) == TEXT


def test_fastcgi(one):
    def answer(request):
        request.body()
        request.answer(TEXT, HTML)

    app = one(answer, "--compress", "gzip", "--compress-uncached", "on")
    assert is_coded(get(app))


def test_cgi(kind, tmp_path):
    write(tmp_path / "text", TEXT)
    script = tmp_path / "cgi" / "a"
    write(script, b"#!/bin/sh\nprintf 'Content-Type: text/html\\n\\n'\n"
                  + f"cat {tmp_path}/text\n".encode())
    script.chmod(0o755)
    with running(kind, tmp_path, "--cgi", f"/cgi={tmp_path}/cgi", "--compress", "gzip",
                 "--compress-uncached", "on") as server:
        got = fetch(server.port, "/cgi/a", fields="Accept-Encoding: gzip\r\n")
        assert is_coded(got)


@pytest.mark.parametrize("size", [2000, 300000])
def test_worker(kind, tmp_path, size):
    """A unit as the whole body; and a stream of pieces."""
    with running(kind, tmp_path, "--worker", f"/w={GENERATE}", "--worker", f"/s={STREAM}",
                 "--compress", "gzip", "--compress-uncached", "on", "--compress-types", "text/*",
                 "--compress-types", "application/octet-stream") as server:
        plain = fetch(server.port, f"/w?size={size}")
        got = fetch(server.port, f"/w?size={size}", fields="Accept-Encoding: gzip\r\n")
        assert is_coded(got, plain.body) and len(plain.body) == size
        plain = fetch(server.port, f"/s/pieces?7:{size}")
        got = fetch(server.port, f"/s/pieces?7:{size}", fields="Accept-Encoding: gzip\r\n")
        assert is_coded(got, plain.body) and len(plain.body) == 7 * size
        server.wait_status(lambda status: status["compress"]["streams"] == 0)


def test_worker_dies(kind, tmp_path):
    with running(kind, tmp_path, "--worker", f"/s={STREAM}", "--compress", "gzip",
                 "--compress-uncached", "on", "--compress-types", "application/octet-stream",
                 "--compress-types", "text/plain") as server:
        for target in ("/s/die?3", "/s/abort?3"):
            with Client(server.port) as client, pytest.raises((AssertionError, OSError, EOFError)):
                client.get(target, fields="Accept-Encoding: gzip\r\n")
        server.wait_status(lambda status: status["compress"]["streams"] == 0)


@pytest.mark.parametrize("keys, message", [("compress-uncached=yes", "must be on or off"),
                                           ("compress-streams=x", "must be a number")])
def test_wrong(tmp_path, keys, message):
    refuses(tmp_path, f"[sweet]\nroot={tmp_path}\n{keys}\n", message)
