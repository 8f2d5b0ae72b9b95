# SPDX-License-Identifier: MIT
"""FastCGI applications that respond wrongly, late or not at all."""

import contextlib
import http.client
import threading
import time

import pytest

import behind_checks
import responder
from client import Closed, request
from responder import Application, end, numbered, record
from files import KB, MB, pattern, write
from server import SCALE, SOON, TIMEOUT, running
from test_fastcgi import HEAD, Client, apps, ask, fetch, server
from test_fastcgi_connections import is_good


BAD = {
    "nothing": (b"", "ended before the answer did"),
    "end alone": (end(), "without a response"),
    "half a head": (record(6, b"Content-Type: text/pl") + end(), "in the middle of its response head"),
    "no line": (record(6, b"<html>\r\n\r\n") + end(), "malformed header line"),
    "two statuses": (record(6, b"Status: 200\nStatus: 200\n\n") + end(), "two Status lines"),
    "HTTP": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "not FastCGI"),
    "version": (record(6, HEAD + b"\r\n", version=2), "not FastCGI"),
    "other request": (record(6, HEAD + b"\r\n", number=2), "the id of another request"),
    "type": (record(4, HEAD + b"\r\n"), "a type that no application sends"),
    "short end": (record(3, b"x"), "length does not match its type"),
    "foreign unit": (record(6, b"X-NABC-Cache-Id: 77\r\n" + HEAD + b"\r\n") + end(),
                     "sent the id of a unit that it may not use"),
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
    assert app.server.errors.wait("its response head is too long")


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("how", ["closes", "garbage"])
def test_broken_off(one, known, how):
    """After the head was sent, only the close of the connection can show it."""

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
    assert app.server.errors.wait("before it had sent the announced length")


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
    # What a reader of the log is too late for is counted, in front of the next message.
    app.handle = complaining
    assert fetch(app.server.port, "/app").body == b"done"
    assert app.server.errors.wait("says more, which is left out|messages that were lost")
    assert app.server.errors.count("a line of many") < 2000


@pytest.mark.parametrize("what", ["errors", "empty records"])
def test_flood_of_what_no_client_gets(kind, tmp_path, what):
    """Read at a limited rate, 1 MB in a second and what sockets hold, until the time limit."""
    sent = []
    flood = {"errors": record(responder.STDERR, b"e" * 60000) * 10,
             "empty records": record(responder.STDOUT, padding=200) * 1000}[what]

    def flooding(asked):
        if is_good(asked):
            return True
        flooded = numbered(flood, asked.number)
        with contextlib.suppress(ConnectionError):
            while sum(sent) < 256 * MB:
                asked.connection.send(flooded)
                sent.append(len(flooded))
        return False

    app = Application(flooding, tmp_path / "app.sock")
    conf = write(tmp_path / "conf", f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\nthreads=1\n"
                 f"[pool app]\nprotocol=fastcgi\nupstream={app.address}\ntimeout={2 * SOON}s\n"
                 "[path /app]\npool=app\n".encode())
    with running(kind, None, "--config", conf, listen=None) as server:
        with Client(server.port) as client:
            client.send(request("/app"))
            assert fetch(server.port, "/app?good").body == b"plain"
            assert client.response().status in (502, 504)
        assert fetch(server.port, "/app?good").body == b"plain"
    app.close()
    assert not app.faults
    assert 0 < sum(sent) < (2 * SOON + 6) * MB


def test_errors_between_parts_of_a_response(one):
    """They come at the same limited rate, and so does the response."""
    errors = record(responder.STDERR, b"e" * 60000)
    began = []

    def both(asked):
        asked.body()
        began.append(time.monotonic())
        asked.out(HEAD + b"Content-Length: 60\r\n\r\n")
        for _ in range(60):
            asked.send(errors + record(responder.STDOUT, b"x"))
        asked.send(end())

    app = one(both)
    assert fetch(app.server.port, "/app").body == b"x" * 60
    assert 60 * len(errors) < (time.monotonic() - began[0] + 2) * MB


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
    """The application is told, and the server continues."""
    behind_checks.client_goes(one, is_good, record(responder.STDOUT, HEAD + b"\r\nbegun") if begun else None,
                              lambda asked: asked.aborted())


def test_silence_in_the_middle(one):
    behind_checks.silence_in_the_middle(one, is_good, record(responder.STDOUT, HEAD + b"\r\nbegun"),
                                        lambda asked: asked.aborted())


def test_pause(one):
    behind_checks.pause(one, record(responder.STDOUT, HEAD + b"\r\nbegun"),
                        record(responder.STDOUT, b"ended") + record(responder.STDOUT) + end())


def test_end_of_the_server(kind, tmp_path):
    """With pending requests and kept connections."""
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
