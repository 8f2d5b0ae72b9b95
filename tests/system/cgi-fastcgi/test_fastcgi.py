# SPDX-License-Identifier: MIT
"""FastCGI applications: what they are told, what becomes of their answers, and
of those that answer badly, late or not at all."""

import hashlib
import http.client
import socket
import struct
import threading
import time

import pytest

import responder
import client as clients
from client import Closed, request
from responder import Application, end, record
from files import KB, MB, pattern, write
from server import SCALE, SOON, TIMEOUT, running

HEAD = b"Content-Type: text/plain\r\n"


class Applications:
    """What a path of the applications of this module means."""

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
    """One that knows of chunks: an application's answer has a length if it came at once."""

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
    """By a client that others wrote, who knows of chunks."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    client.request(method, target, body, headers or {})
    answer = client.getresponse()
    answer.data = answer.read()
    client.close()
    return answer


# --- what they are told --------------------------------------------------------------


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
    assert told["REQUEST_SCHEME"] == "http" and told["SERVER_ADDR"] == "127.0.0.1"
    assert told["REDIRECT_STATUS"] == "200"
    assert told["NABC_SERVER_PID"] == str(server.process.pid)
    assert "HTTPS" not in told and "CONTENT_LENGTH" not in told


def test_script_in_front_of_an_alias(kind, tmp_path):
    """An alias's folder is all that its programs are told of: neither a script of the section
    above, nor what an earlier request has left in memory."""

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
    """Names and values of both kinds of length."""

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
    """The rest of a body is not sent to who has answered; the connection is not used again."""

    @apps.on
    def early(asked):
        asked.answer(b"too much\n", b"Status: 413\r\n" + HEAD)
        return False

    for _ in range(3):
        got = ask(server.port, "/app/early", "POST", pattern(4 * MB))
        assert (got.status, got.data) == (413, b"too much\n")
    assert fetch(server.port, "/file").body == b"a file\n"


# --- answers --------------------------------------------------------------------------


@pytest.mark.parametrize("size, padding", [(1, 0), (7, 1), (100, 255), (8184, 0), (65535, 7)])
def test_records(server, apps, size, padding):
    """Whatever records a body comes in, it is the same body."""
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
    """What is there is sent, though more is to come."""
    apps.go_on.clear()

    @apps.on
    def stream(asked):
        asked.body()
        asked.out(HEAD + b"\r\nfirst\n")
        assert apps.go_on.wait(TIMEOUT)
        asked.out(b"second\n")
        asked.send(end())

    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
    client.request("GET", "/app/stream")
    answer = client.getresponse()
    assert answer.getheader("Transfer-Encoding") == "chunked"
    assert answer.readline() == b"first\n"
    apps.go_on.set()
    assert answer.read() == b"second\n"
    client.close()


def test_old_client(server, apps):
    """HTTP/1.0 has no chunks: the end of the connection ends the body."""

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
    """More than is read ahead for it: the application waits, and the body is whole."""
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


# --- connections -----------------------------------------------------------------------


def plain(asked):
    asked.body()
    asked.answer(b"plain")


def is_good(asked):
    """Answers a request that only asks whether all is well."""
    asked.body()
    if asked.variables["QUERY_STRING"] != "good":
        return False
    asked.answer(b"plain")
    return True


def test_kept(one):
    app = one(plain)
    with Client(app.server.port) as client:
        for _ in range(50):
            assert client.get("/app").body == b"plain"
    # Not for ever, but for many.
    assert app.requests == 50 and app.connections < 25


@pytest.mark.parametrize(("keep", "connections"), [("1h", 1), ("0", 50)])
def test_kept_as_configured(kind, tmp_path, keep, connections):
    app = Application(plain, tmp_path / "app.sock")
    conf = tmp_path / "sweet.conf"
    write(conf, f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\nthreads=1\n"
                f"[pool app]\nprotocol=fastcgi\nupstream={app.address}\nkeep-connection={keep}\n"
                "[path /app]\npool=app\n".encode())
    with (running(kind, None, "--config", conf, listen=None) as server,
          Client(server.port) as client):
        for _ in range(50):
            assert client.get("/app").body == b"plain"
    assert (app.requests, app.connections) == (50, connections)
    app.close()
    assert not app.faults


def test_not_kept(one):
    """An application that closes each connection, whatever it was asked."""

    def closing(asked):
        asked.body()
        asked.answer(b"closing")
        return False

    app = one(closing)
    with Client(app.server.port) as client:
        for _ in range(50):
            assert client.get("/app").body == b"closing"
    assert app.requests == 50


def test_closed_when_used_again(one):
    """A kept connection that ends with the next request: what may be repeated is."""
    seen, methods = set(), []

    def once(asked):
        asked.body()
        methods.append(asked.variables["REQUEST_METHOD"])
        if asked.connection.socket in seen:
            return False
        seen.add(asked.connection.socket)
        asked.answer(b"once")
        return True

    app = one(once)
    with Client(app.server.port) as client:
        for _ in range(5):
            assert client.get("/app").body == b"once"
    assert methods.count("GET") >= 5
    # What may not be repeated is asked for once, and told about.
    fetch(app.server.port, "/app")
    assert ask(app.server.port, "/app", "POST", b"x").status in (200, 502)
    assert methods.count("POST") == 1
    assert fetch(app.server.port, "/app").body == b"once"


def nobody(folder):
    """An address where nobody listens any more."""
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(str(folder / "nobody.sock"))
    return f"unix:{folder / 'nobody.sock'}"


def test_one_of_two_is_away(one, tmp_path):
    app = one(plain, others=[nobody(tmp_path)])
    for method in ("GET", "POST"):
        for _ in range(6):
            assert ask(app.server.port, "/app", method, b"" if method == "POST" else None) \
                .data == b"plain"
    # Told once, not with each request, though it may be tried again.
    assert app.server.errors.wait("nobody.sock: cannot be reached: Connection refused")
    assert app.server.errors.count("nobody.sock: cannot be reached: Connection refused") == 1


def test_all_are_away(one, tmp_path):
    app = one(plain)
    app.close()
    (tmp_path / "app.sock").unlink()
    for _ in range(3):
        got = fetch(app.server.port, "/app")
        assert got.status == 503 and got["Retry-After"] == "1"
    assert app.server.errors.wait("app.sock: cannot be reached: No such file")
    assert app.server.errors.count("app.sock: cannot be reached: No such file") == 1
    # It comes back: at once.
    again = Application(plain, tmp_path / "app.sock")
    assert fetch(app.server.port, "/app").body == b"plain"
    assert app.server.errors.wait("app.sock: answers again")
    again.close()


def test_refused_by_tcp(kind, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with running(kind, tmp_path, "--fastcgi", f"/app={address}") as server:
            assert fetch(server.port, "/app").status in (502, 503)
            assert ask(server.port, "/app", "POST", pattern(MB // 2)).status in (502, 503)
            assert server.errors.wait("cannot be reached: Connection refused")


@pytest.mark.parametrize("how", ["closes", "overloaded"])
def test_next_address(one, tmp_path, how):
    """Who closes without an answer, or takes none, has others asked if that can do no harm."""
    asked_there = []

    def bad(asked):
        asked.body()
        asked_there.append(asked.variables["REQUEST_METHOD"])
        if how == "overloaded":
            asked.send(end(0, responder.OVERLOADED))
        return False

    other = Application(bad, tmp_path / "other.sock")
    app = one(plain, others=[other.address])
    for _ in range(6):
        assert fetch(app.server.port, "/app").body == b"plain"
    assert "GET" in asked_there
    got = [ask(app.server.port, "/app", "POST", b"x").status for _ in range(6)]
    assert set(got) == ({200} if how == "overloaded" else {200, 502})
    other.close()


def test_overloaded_alone(one):
    def busy(asked):
        asked.body()
        asked.send(end(0, responder.OVERLOADED))

    app = one(busy)
    assert fetch(app.server.port, "/app").status in (502, 503)
    assert app.requests == 1


def test_too_many(kind, tmp_path):
    """in-flight bounds what an application gets, the queue what waits."""
    go_on = threading.Event()

    def wait(asked):
        asked.body()
        assert go_on.wait(TIMEOUT)
        asked.answer(b"waited")

    app = Application(wait, tmp_path / "app.sock")
    conf = write(tmp_path / "conf", f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\nthreads=1\n"
                 f"[pool app]\nprotocol=fastcgi\nupstream={app.address}\nin-flight=2\nqueue=1\n"
                 "[path /app]\npool=app\n".encode())
    with running(kind, None, "--config", conf, listen=None) as server:
        clients = [Client(server.port) for _ in range(4)]
        for number, client in enumerate(clients):
            client.send(request("/app"))
            # The third waits in the queue, for the fourth there is no room.
            if number < 2:
                while app.requests <= number:
                    time.sleep(0.01)
        got = clients[3].response()
        assert got.status == 503 and got["Retry-After"] == "1"
        assert app.requests == 2
        go_on.set()
        assert [client.response().body for client in clients[:3]] == [b"waited"] * 3
        for client in clients:
            client.close()
    app.close()
    assert not app.faults


# --- bad applications ---------------------------------------------------------------------


BAD = {
    "nothing": (b"", "ended before the answer did"),
    "end alone": (end(), "without an answer"),
    "half a head": (record(6, b"Content-Type: text/pl") + end(), "in the middle of its head"),
    "no line": (record(6, b"<html>\r\n\r\n") + end(), "malformed header line"),
    "two statuses": (record(6, b"Status: 200\nStatus: 200\n\n") + end(), "two Status lines"),
    "HTTP": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "not FastCGI"),
    "version": (record(6, HEAD + b"\r\n", version=2), "not FastCGI"),
    "other request": (record(6, HEAD + b"\r\n", number=2), "a request that it does not have"),
    "type": (record(4, HEAD + b"\r\n"), "a type that no application sends"),
    "short end": (record(3, b"x"), "a length that its type does not have"),
    "foreign unit": (record(6, b"X-NABC-Cache-Id: 77\r\n" + HEAD + b"\r\n") + end(),
                     "named a unit that is not its own, or gone"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_answer(one, what):
    answer, said = BAD[what]

    def bad(asked):
        if is_good(asked):
            return True
        asked.send(answer)
        return False

    app = one(bad)
    got = fetch(app.server.port, "/app")
    assert got.status == 502 and b"502 Bad Gateway" in got.body
    assert app.server.errors.wait(f"pool /app.*{said}"), app.server.errors.text()
    assert fetch(app.server.port, "/app?good").body == b"plain"


def test_endless_head(one):
    def endless(asked):
        asked.body()
        number = 0
        while True:
            asked.out(b"X-%d: %s\r\n" % (number, b"x" * 1000))
            number += 1

    app = one(endless)
    assert fetch(app.server.port, "/app").status == 502
    assert app.server.errors.wait("its head is too long")


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("how", ["closes", "garbage"])
def test_broken_off(one, known, how):
    """Behind a head that has left, only the end of the connection can tell."""

    def broken(asked):
        asked.body()
        length = b"Content-Length: 1000000\r\n" if known else b""
        asked.out(HEAD + length + b"\r\n" + pattern(100 * KB))
        time.sleep(0.1)
        if how == "garbage":
            asked.send(b"garbage, no record")
        return False

    app = one(broken)
    if known:
        with pytest.raises(Closed) as closed:
            fetch(app.server.port, "/app")
        assert pattern(100 * KB).startswith(closed.value.data)
    else:
        with pytest.raises(http.client.IncompleteRead):
            ask(app.server.port, "/app")
    assert app.server.errors.wait("pool /app")


def test_shorter_than_announced(one):
    def short(asked):
        asked.body()
        asked.answer(b"x" * 10, HEAD + b"Content-Length: 11\r\n")

    app = one(short)
    with pytest.raises((Closed, AssertionError)):
        assert fetch(app.server.port, "/app").status == 200
    assert app.server.errors.wait("before the length that it had announced")


def test_longer_than_announced(one):
    def long(asked):
        asked.body()
        asked.answer(b"x" * 10 + b"HTTP/1.1 200 OK\r\n\r\n", HEAD + b"Content-Length: 10\r\n")

    app = one(long)
    with Client(app.server.port) as client:
        for _ in range(3):
            assert client.get("/app").body == b"x" * 10


def test_errors_are_logged(one):
    def complaining(asked):
        asked.body()
        asked.send(record(responder.STDERR, b"first line\nsecond \x1b[31m\n"))
        asked.send(record(responder.STDERR, b"x" * 5000))
        asked.answer(b"done")

    def flooding(asked):
        asked.body()
        for _ in range(1000):
            asked.send(record(responder.STDERR, b"a line of many\n" * 100))
        asked.answer(b"done")

    app = one(complaining)
    assert fetch(app.server.port, "/app").body == b"done"
    assert app.server.errors.wait(r"pool /app: .*app\.sock: says: first line$")
    assert app.server.errors.wait(r"says: second \\x1b\[31m$")
    app.handle = flooding
    assert fetch(app.server.port, "/app").body == b"done"
    assert app.server.errors.wait("says more, which is left out")
    assert app.server.errors.count("a line of many") < 2000


def test_too_late(kind, tmp_path):
    heard = threading.Event()

    def silent(asked):
        if is_good(asked):
            return True
        if asked.aborted():
            heard.set()
        return False

    app = Application(silent, tmp_path / "app.sock")
    conf = write(tmp_path / "conf", f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\n"
                 f"[pool app]\nprotocol=fastcgi\nupstream={app.address}\ntimeout={SOON}s\n"
                 "[path /app]\npool=app\n".encode())
    with running(kind, None, "--config", conf, listen=None) as server:
        assert fetch(server.port, "/app").status == 504
        assert heard.wait(TIMEOUT)
        assert server.errors.wait("took too long to answer")
        assert fetch(server.port, "/app?good").body == b"plain"
    app.close()
    assert not app.faults


@pytest.mark.parametrize("begun", [True, False])
def test_client_goes(one, begun):
    """The application hears of it, and the server goes on."""
    heard, at_work = threading.Event(), threading.Event()

    def working(asked):
        if is_good(asked):
            return True
        if begun:
            asked.out(HEAD + b"\r\nbegun")
        at_work.set()
        if asked.aborted():
            heard.set()
        return False

    app = one(working)
    with Client(app.server.port) as client:
        client.send(request("/app"))
        assert at_work.wait(TIMEOUT)
        if begun:
            client.head()
        # A reset: the end of its stream alone would leave it waiting for the answer.
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert heard.wait(TIMEOUT)
    assert fetch(app.server.port, "/app?good").body == b"plain"


def test_end_of_the_server(kind, tmp_path):
    """With requests at work and connections kept."""
    at_work = threading.Event()

    def working(asked):
        if is_good(asked):
            return True
        at_work.set()
        return asked.aborted() and False

    app = Application(working, tmp_path / "app.sock")
    with running(kind, tmp_path, "--stop-timeout", "1s", "--fastcgi", f"/app={app.address}") \
            as server:
        assert fetch(server.port, "/app?good").body == b"plain"
        client = Client(server.port)
        client.send(request("/app"))
        assert at_work.wait(TIMEOUT)
        assert fetch(server.port, "/app?good").body == b"plain"
    client.close()
    app.close()
    assert not app.faults


def test_many_at_once(server, apps):
    body = pattern(30 * KB)

    @apps.on
    def each(asked):
        asked.body()
        asked.answer(body + asked.variables["QUERY_STRING"].encode())

    faults = []

    def load(number):
        with Client(server.port) as client:
            for at in range(40 // SCALE):
                prefix = ("/app", "/tcp")[at % 2]
                got = client.get(f"{prefix}/each?{number}.{at}").body
                if got != body + f"{number}.{at}".encode():
                    faults.append((number, at, len(got)))

    threads = [threading.Thread(target=load, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * TIMEOUT)
    assert not faults
