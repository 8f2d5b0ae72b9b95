# SPDX-License-Identifier: MIT
"""FastCGI applications: what they receive, and the results of their responses."""

import hashlib
import threading
import time

import pytest

import responder
import client as clients
import tls
from client import http_connection, request
from responder import Application, end, record
from files import MB, pattern, write
from server import SCALE, TIMEOUT, running

HEAD = b"Content-Type: text/plain\r\n"


class Applications:
    """The meaning of the paths of the applications in this module."""

    def __init__(self, folder):
        self.folder = folder
        self.handles = {}
        self.unix = Application(self.handle, folder / "app.sock")
        self.tcp = Application(self.handle)
        self.go_on = threading.Event()

    def handle(self, asked):
        return self.handles[asked.variables["PATH_INFO"].split("/")[1]](asked)

    def on(self, handle):
        self.handles[handle.__name__] = handle
        return handle


@pytest.fixture(scope="module")
def apps(tmp_path_factory):
    made = Applications(tmp_path_factory.mktemp("fastcgi"))
    yield made
    for one in (made.unix, made.tcp):
        one.close()
        assert not one.faults


@pytest.fixture(scope="module")
def server(kind, apps):
    root = apps.folder / "root"
    write(root / "file", b"a file\n")
    with running(kind, root, "--max-body", "64M", "--fastcgi", f"/app={apps.unix.address}",
                 "--fastcgi", f"/tcp={apps.tcp.address}") as server:
        yield server


class Client(clients.Client):
    """A client that supports chunks: a response has a length only if all of it arrived at once."""

    def response(self, method="GET"):
        answer = clients.Response(self.head(), b"")
        if method == "HEAD" or answer.status in (204, 304):
            return answer
        if "Content-Length" in answer:
            answer.body = self.take(int(answer["Content-Length"]))
            return answer
        assert answer["Transfer-Encoding"] == "chunked"
        while True:
            while b"\r\n" not in self.data:
                self.more()
            size, _, self.data = self.data.partition(b"\r\n")
            piece = self.take(int(size, 16) + 2)
            assert piece.endswith(b"\r\n")
            if len(piece) == 2:
                return answer
            answer.body += piece[:-2]


def fetch(port, target, method="GET", fields=""):
    with Client(port) as client:
        return client.get(target, method, fields)


def ask(port, target, method="GET", body=None, headers=None):
    """With a client of another project, which supports chunks."""
    client = http_connection(port)
    client.request(method, target, body, headers or {})
    answer = client.getresponse()
    answer.data = answer.read()
    client.close()
    return answer


# --- what they receive ---------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["/app", "/tcp"])
def test_variables(server, apps, prefix):
    @apps.on
    def variables(asked):
        assert asked.role == 1 and asked.flags & 1
        assert asked.body() == b""
        apps.told = asked.variables
        asked.answer(b"told\n")

    got = fetch(server.port, f"{prefix}/variables/a%20b?x=1&y", fields="X-Test: one\r\n")
    assert (got.status, got.body) == (200, b"told\n")
    told, root = apps.told, str(apps.folder / "root")
    assert told["SCRIPT_NAME"] == prefix and told["PATH_INFO"] == "/variables/a b"
    assert told["QUERY_STRING"] == "x=1&y" and told["HTTP_X_TEST"] == "one"
    assert told["REQUEST_METHOD"] == "GET" and told["GATEWAY_INTERFACE"] == "CGI/1.1"
    assert told["DOCUMENT_ROOT"] == root and told["SCRIPT_FILENAME"] == root + prefix
    assert told["PATH_TRANSLATED"] == root + "/variables/a b"
    secure = server.port in tls.ports
    assert told["REQUEST_SCHEME"] == ("https" if secure else "http")
    assert told.get("HTTPS") == ("on" if secure else None) and told["SERVER_ADDR"] == "127.0.0.1"
    assert told["REDIRECT_STATUS"] == "200"
    assert told["NABC_SERVER_PID"] == str(server.process.pid)
    assert "CONTENT_LENGTH" not in told


def test_script_in_front_of_an_alias(kind, tmp_path):
    """Programs under an alias see only its folder: neither a script of the section above, nor
    data of an earlier request in memory."""

    def variables(asked):
        asked.body()
        names = ("SCRIPT_NAME", "SCRIPT_FILENAME", "PATH_INFO")
        asked.answer("\n".join(asked.variables[name] for name in names).encode())

    app = Application(variables, tmp_path / "app.sock")
    files = tmp_path / "files"
    files.mkdir()
    write(tmp_path / "sweet.conf",
          f"[sweet]\nroot={tmp_path}\nthreads=1\nindex=index.php\n"
          f"pool=app\n[pool app]\nprotocol=fastcgi\nupstream={app.address}\n"
          f"[path /a.php/below]\nalias={files}\n[path /long/way/down]\nalias={files}\n".encode())
    with running(kind, None, "--config", tmp_path / "sweet.conf") as server:
        told = lambda path: fetch(server.port, path).body.decode().split("\n")
        for path, script, file, info in [
                ("/long/way/down/secret.php", "/long/way/down/secret.php", "/secret.php", ""),
                ("/long/way/down/none", "", "", "/long/way/down/none"),
                ("/a.php/below/secret.php", "/a.php/below/secret.php", "/secret.php", ""),
                ("/a.php/below", "", "", "/a.php/below"),
                ("/a.php/below/none", "", "", "/a.php/below/none"),
                ("/a.php/below/x/b.php/c", "/a.php/below/x/b.php", "/x/b.php", "/c"),
                ("/long/way/down/", "/long/way/down/index.php", "/index.php", "")]:
            assert told(path) == [script, f"{files}{file}", info], path
        assert told("/a.php/other") == ["/a.php", f"{tmp_path}/a.php", "/other"]
    app.close()
    assert not app.faults


def test_many_variables(server, apps):
    """Names and values with short and long length fields."""

    @apps.on
    def many(asked):
        asked.body()
        apps.told = asked.variables
        asked.answer(b"")

    fields = {f"X-{'n' * size}{size}": "v" * (size * 9 % 400) for size in range(0, 180, 7)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    assert fetch(server.port, "/app/many", fields=lines).status == 200
    for name, value in fields.items():
        assert apps.told["HTTP_" + name.upper().replace("-", "_")] == value


@pytest.mark.parametrize("size", [1, 65527, 65528, 65529, 65535, 65536, 131056, MB + 1, 10 * MB])
def test_upload(server, apps, size):
    @apps.on
    def upload(asked):
        body = asked.body()
        assert asked.variables["CONTENT_LENGTH"] == str(len(body))
        asked.answer(hashlib.md5(body).hexdigest().encode())

    body = pattern(size)
    for prefix in ("/app", "/tcp"):
        assert ask(server.port, prefix + "/upload", "POST", body).data \
            == hashlib.md5(body).hexdigest().encode()


def test_chunked_upload(server, apps):
    @apps.on
    def chunks(asked):
        body = asked.body()
        assert asked.variables["CONTENT_LENGTH"] == str(len(body))
        asked.answer(body)

    assert ask(server.port, "/app/chunks", "POST", iter([b"one ", b"two"])).data == b"one two"


def test_answer_before_the_body_is_read(server, apps):
    """The rest of a body is not sent to an application that has responded; the connection is
    not used again."""

    @apps.on
    def early(asked):
        asked.answer(b"too much\n", b"Status: 413\r\n" + HEAD)
        return False

    for _ in range(3):
        got = ask(server.port, "/app/early", "POST", pattern(4 * MB))
        assert (got.status, got.data) == (413, b"too much\n")
    assert fetch(server.port, "/file").body == b"a file\n"


# --- responses ------------------------------------------------------------------------


@pytest.mark.parametrize("size, padding", [(1, 0), (7, 1), (100, 255), (8184, 0), (65535, 7)])
def test_records(server, apps, size, padding):
    """A body is the same, in whatever records it arrives."""
    body = pattern(min(size * 3000, 5 * MB) // SCALE)

    @apps.on
    def records(asked):
        asked.body()
        asked.answer(body, HEAD, size, padding)

    @apps.on
    def known(asked):
        asked.body()
        asked.answer(body, HEAD + b"Content-Length: %d\r\n" % len(body), size, padding)

    for target in ("/app/records", "/app/known", "/tcp/records"):
        assert ask(server.port, target).data == body
    assert int(fetch(server.port, "/app/known")["Content-Length"]) == len(body)


def test_head_in_pieces(server, apps):
    @apps.on
    def slowly(asked):
        asked.body()
        for byte in b"Status: 203\r\nX-One: two\r\n\r\nbo":
            asked.send(record(responder.STDOUT, bytes([byte])))
            time.sleep(0.001)
        asked.out(b"dy")
        asked.send(end())

    got = ask(server.port, "/app/slowly")
    assert (got.status, got.getheader("X-One"), got.data) == (203, "two", b"body")


def test_stream(server, apps):
    """Available data is sent, though more follows."""
    apps.go_on.clear()

    @apps.on
    def stream(asked):
        asked.body()
        asked.out(HEAD + b"\r\nfirst\n")
        assert apps.go_on.wait(TIMEOUT)
        asked.out(b"second\n")
        asked.send(end())

    client = http_connection(server.port)
    client.request("GET", "/app/stream")
    answer = client.getresponse()
    assert answer.getheader("Transfer-Encoding") == "chunked"
    assert answer.readline() == b"first\n"
    apps.go_on.set()
    assert answer.read() == b"second\n"
    client.close()


def test_old_client(server, apps):
    """HTTP/1.0 has no chunks: the close of the connection ends the body."""

    @apps.on
    def old(asked):
        asked.body()
        asked.out(HEAD + b"\r\nfirst\n")
        time.sleep(0.05)
        asked.out(b"second\n")
        asked.send(end())

    with Client(server.port) as client:
        client.send(b"GET /app/old HTTP/1.0\r\n\r\n")
        head = client.head()
        assert b"Transfer-Encoding" not in head
        while len(client.data) < 13:
            client.more()
        assert client.data == b"first\nsecond\n"
        client.data = b""
        assert client.at_end()


@pytest.mark.parametrize("head, status, fields", [
    (b"Status: 404 Not here\r\n", 404, {}),
    (b"Location: http://elsewhere/\r\n", 302, {"Location": "http://elsewhere/"}),
    (b"Status: 301\r\nLocation: /app/x\r\n", 301, {"Location": "/app/x"}),
    (b"Set-Cookie: a=b\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n", 200,
     {"Set-Cookie": "a=b", "Connection": None}),
    (b"X-NABC-Max-Age: 0\r\nDate: x\r\nServer: mine\r\n", 200, {"X-NABC-Max-Age": None}),
])
def test_heads(server, apps, head, status, fields):
    @apps.on
    def heads(asked):
        asked.body()
        asked.answer(b"body", head + HEAD)

    got = ask(server.port, "/app/heads")
    assert (got.status, got.data) == (status, b"body")
    for name, value in fields.items():
        assert got.getheader(name) == value


@pytest.mark.http1("about a text that HTTP/2 does not have")
def test_reason(server, apps):
    @apps.on
    def reason(asked):
        asked.body()
        asked.answer(b"body", b"Status: 404 Not here\r\n" + HEAD)

    for _ in range(2):
        assert ask(server.port, "/app/reason").reason == "Not here"


def test_local_redirect(server, apps):
    @apps.on
    def local(asked):
        asked.body()
        asked.answer(b"", b"Location: /file\r\n")

    assert ask(server.port, "/app/local").data == b"a file\n"


@pytest.mark.parametrize("status", [204, 304])
def test_no_body(server, apps, status):
    @apps.on
    def bodiless(asked):
        asked.body()
        asked.answer(b"not to be sent", b"Status: %d\r\n" % status)

    with Client(server.port) as client:
        for _ in range(3):
            assert client.get("/app/bodiless").status == status


def test_empty(server, apps):
    @apps.on
    def empty(asked):
        asked.body()
        asked.answer(b"", asked.variables["QUERY_STRING"].encode() + b"\r\n" + HEAD)

    for status in (200, 503):
        got = fetch(server.port, f"/app/empty?Status:{status}")
        assert (got.status, got.body) == (status, b"")


def test_head_method(server, apps):
    @apps.on
    def known(asked):
        asked.body()
        asked.answer(b"a body\n", HEAD + b"Content-Length: 7\r\n")

    @apps.on
    def records(asked):
        asked.body()
        asked.answer(b"a body\n", HEAD, 2)

    with Client(server.port) as client:
        for target in ("/app/known", "/app/records", "/app/known"):
            assert client.get(target, "HEAD").status == 200
        assert client.get("/file").body == b"a file\n"


def test_slow_client(server, apps):
    """More than is read ahead for it: the application waits, and the body is complete."""
    body = pattern(4 * MB)

    @apps.on
    def large(asked):
        asked.body()
        asked.answer(body, HEAD + b"Content-Length: %d\r\n" % len(body))

    with Client(server.port, buffer=4096) as client:
        client.send(request("/app/large"))
        client.head()
        time.sleep(0.2)
        assert fetch(server.port, "/app/large").body == body
        assert client.take(len(body)) == body
