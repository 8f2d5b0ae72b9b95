# SPDX-License-Identifier: MIT
"""HTTP/2 (RFC 9113): sessions and their streams, windows and priorities, and the end of both.

That everything above works as with HTTP/1.1 is tested by the other tests, with SWEET_OVER=h2.
"""

import contextlib
import itertools
import os
import signal
import socket

import pytest

import tls
from client import Client, exchange
from files import MB, pattern, write
from server import TIMEOUT, running
from stopped import stop
from streams import (DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, Answer, Reset, Streams,
                     block, frame, h2, needs_h2)

pytestmark = [pytest.mark.clear("these choose what is below"), needs_h2]

SIZES = [0, 1, 2048, 2049, 16375, 16376, 65535, 65536, 300_000, 3_000_000]
ECHO = """printf 'Content-Type: text/plain\\r\\n\\r\\n'
echo "$SERVER_PROTOCOL $REQUEST_METHOD $QUERY_STRING $CONTENT_LENGTH $HTTP_COOKIE $HTTP_HOST"
cat
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("http2")
    for size in SIZES:
        write(folder / "root" / f"{size}.bin", pattern(size, seed=size))
    write(folder / "cgi" / "echo", b"#!/bin/sh\n" + ECHO.encode()).chmod(0o755)
    write(folder / "cgi" / "wait",
          b"#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\nbegun\\n'\n"
          b"while [ ! -e \"$PATH_TRANSLATED\" ]; do sleep 0.02; done\necho done\n").chmod(0o755)
    folder.chmod(0o755)
    return folder


numbers = itertools.count()


def serve(kind, root, *options, **how):
    return running(kind, root / "root", "--http2", "clear", "--cgi", f"/cgi={root}/cgi",
                   "--cache-socket", root / f"cache-{next(numbers)}", "--max-body", "10M", *options, **how)


@pytest.fixture(scope="module")
def server(kind, root):
    with serve(kind, root, *tls.options("ec"), "--listen", "127.0.0.1:0,tls") as made:
        line = made.errors.wait("https://")
        made.secure = int(line.split("https://127.0.0.1:")[1].split("/")[0])
        yield made


@pytest.fixture(params=["clear", "tls"])
def session(request, server):
    secure = request.param == "tls"
    with Streams(server.secure if secure else server.port, secure=secure) as made:
        yield made


def test_files(session, root):
    """Requests at once, of all sizes; each body arrives on its own stream."""
    streams = {session.open(f"/{size}.bin"): size for size in SIZES * 5}
    for stream, size in streams.items():
        answer = session.answer(stream)
        assert answer.status == 200
        assert answer.fields["content-length"] == str(size)
        assert answer.body == (root / "root" / f"{size}.bin").read_bytes()


def test_parts(session, root):
    whole = (root / "root" / "300000.bin").read_bytes()
    answer = session.get("/300000.bin", fields=[("range", "bytes=100-99999")])
    assert (answer.status, answer.body) == (206, whole[100:100_000])
    answer = session.get("/300000.bin", fields=[("range", "bytes=0-9,50000-50009")])
    assert answer.status == 206 and whole[50_000:50_010] in answer.body
    etag = answer.fields["etag"]
    answer = session.get("/300000.bin", fields=[("if-none-match", etag)])
    assert (answer.status, answer.body) == (304, b"")
    answer = session.get("/300000.bin", method="HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.fields["content-length"] == "300000"
    assert session.get("/nothing").status == 404
    assert not {"connection", "transfer-encoding"} & set(answer.fields)


def test_program(session):
    answer = session.get("/cgi/echo?a=b", fields=[("cookie", "one=1"), ("x", "y"),
                                                  ("cookie", "two=2")])
    assert answer.status == 200
    assert answer.body.decode().split("\n")[0] == "HTTP/2.0 GET a=b  one=1; two=2 test"


@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("size", [0, 1, 70_000, 3 * MB])
def test_upload(session, size, length):
    data = pattern(size, seed=7)
    stream = session.open("/cgi/echo", method="POST", end=False,
                          fields=[("content-length", str(size))] if length else [])
    session.content(stream, data)
    answer = session.answer(stream)
    assert answer.status == 200
    assert answer.body.partition(b"\n")[2] == data


def test_uploads_at_once(session):
    data = [pattern(200_000, seed=number) for number in range(8)]
    streams = [session.open("/cgi/echo", method="POST", end=False) for _ in data]
    for at in range(0, 200_000, 10_000):
        for stream, content in zip(streams, data):
            session.content(stream, content[at:at + 10_000], end=at == 190_000)
    for stream, content in zip(streams, data):
        assert session.answer(stream).body.partition(b"\n")[2] == content


def test_continue(session):
    stream = session.open("/cgi/echo", method="POST", end=False,
                          fields=[("expect", "100-continue"), ("content-length", "5")])
    session.until(lambda: session.answers[stream].interim)
    session.content(stream, b"hello")
    answer = session.answer(stream)
    assert answer.interim == [100] and answer.body.endswith(b"\nhello")


def test_trailers(session):
    stream = session.open("/cgi/echo", method="POST", end=False, fields=[("te", "trailers")])
    session.content(stream, b"hello", end=False)
    session.h2.send_headers(stream, [("x-sum", "1")], end_stream=True)
    session.flush()
    assert session.answer(stream).body.endswith(b"\nhello")


def test_response_before_the_body(session):
    """The client gets its response; what it still sends is dropped, and more is refused."""
    stream = session.open("/0.bin", method="POST", end=False)
    assert session.answer(stream).status == 405
    # The library still counts the window of the stream, and does not know that it is over.
    for _ in range(4):
        session.h2.send_data(stream, bytes(16_000))
        session.flush()
    assert session.answers[stream].code is None
    for _ in range(6):
        session.raw(frame(DATA, bytes(16_000), stream=stream))
    session.until(lambda: stream in session.resets)
    assert session.resets[stream] == h2.errors.ErrorCodes.NO_ERROR
    assert session.get("/1.bin").status == 200


def test_stream_that_stalls(server, root):
    """One that gets no window keeps no other from its response."""
    with Streams(server.port, window=1000, take=False) as session:
        session.h2.increment_flow_control_window(5 * MB)
        session.flush()
        slow = session.open("/3000000.bin")
        session.until(lambda: len(session.answers[slow].body) == 1000)
        other = session.open("/300000.bin")
        session.h2.increment_flow_control_window(MB, other)
        session.flush()
        assert session.answer(other).body == (root / "root" / "300000.bin").read_bytes()
        assert len(session.answers[slow].body) == 1000
        session.h2.increment_flow_control_window(3 * MB, slow)
        session.flush()
        assert session.answer(slow).body == (root / "root" / "3000000.bin").read_bytes()


def test_priorities(server):
    """The more urgent stream is sent first (RFC 9218), by the field and by a frame."""
    with Streams(server.port, take=False) as session:
        late = session.open("/300000.bin", fields=[("priority", "u=5")])
        soon = session.open("/65536.bin", fields=[("priority", "u=1")])
        middle = session.open("/65536.bin", fields=[("priority", "u=3")])
        session.until(lambda: sum(len(answer.body) for answer in session.answers.values()) == 65535)
        for stream in (late, soon, middle):
            session.h2.increment_flow_control_window(MB, stream)
        session.flush()
        before = {stream: len(session.answers[stream].body) for stream in (late, soon, middle)}
        session.h2.increment_flow_control_window(65_536 * 2)
        session.flush()
        session.answer(soon)
        session.answer(middle)
        assert len(session.answers[late].body) - before[late] <= 2 * 65_536 - sum(
            65_536 - before[stream] for stream in (soon, middle))


def test_reset(server):
    """A client that resets a stream in the middle keeps the session."""
    with Streams(server.port, window=4 * MB) as session:
        for _ in range(20):
            stream = session.open("/3000000.bin")
            session.until(lambda: session.answers[stream].body)
            session.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
            session.flush()
        assert session.get("/2049.bin").status == 200


def test_log_and_status(kind, root, tmp_path):
    log = tmp_path / "access.log"
    with serve(kind, root, "--access-log", log) as server:
        with Streams(server.port) as session:
            assert session.get("/1.bin?x").status == 200
            assert server.status()["connections"]["http2"] == 1
    assert '"GET /1.bin?x HTTP/2.0" 200 1 ' in log.read_text()


@pytest.mark.parametrize("fields, status", [
    ([("x" * 100, "y" * 17_000)], 431),
    ([(f"x{number}", "y") for number in range(101)], 431),
    ([("host", "other")], 400),
    ([("host", "TEST")], 200),
    ([("expect", "more")], 417),
])
def test_heads(server, fields, status):
    with Streams(server.port) as session:
        assert session.get("/1.bin", fields=fields).status == status
        assert session.get("/1.bin").status == 200


@pytest.mark.parametrize("how, status", [
    ({"path": "/" + "x" * 8200}, 414), ({"path": "/a b"}, 400), ({"path": "no"}, 400),
    ({"path": "*", "method": "OPTIONS"}, 204), ({"authority": "a@b"}, 400),
    ({"method": "TRACE"}, 405), ({"method": "NEW"}, 501),
])
def test_pseudo_fields(server, how, status):
    with Streams(server.port) as session:
        try:
            assert session.get(**how).status == status
        except Reset as reset:  # the library refuses some itself
            assert status == 400 and reset.code == h2.errors.ErrorCodes.PROTOCOL_ERROR
        assert session.get("/1.bin").status == 200


def test_connect(server):
    with Streams(server.port) as session:
        stream = session.h2.get_next_available_stream_id()
        session.answers[stream] = Answer()
        session.h2.send_headers(stream, [(":method", "CONNECT"), (":authority", "a:1")],
                                end_stream=True)
        session.flush()
        assert session.answer(stream).status == 501


def test_too_many_streams(kind, root):
    """A client that knows of max-streams must not exceed it."""
    with serve(kind, root, "--max-streams", 3) as server:
        with Streams(server.port) as session:
            session.get("/1.bin")
            assert session.h2.remote_settings.max_concurrent_streams == 3
            session.h2.remote_settings.max_concurrent_streams = 100
            session.h2.remote_settings.acknowledge()
            for _ in range(4):
                session.open("/cgi/wait/never")
            assert session.end()[1] == h2.errors.ErrorCodes.PROTOCOL_ERROR
        # One that does not know of it yet may try again.
        with Streams(server.port, settle=False) as session:
            streams = [session.open("/cgi/wait/soon") for _ in range(5)]
            for stream in streams[3:]:
                with pytest.raises(Reset) as refused:
                    session.answer(stream)
                assert refused.value.code == h2.errors.ErrorCodes.REFUSED_STREAM
            write(root / "root" / "soon", b"")
            for stream in streams[:3]:
                assert session.answer(stream).body == b"begun\ndone\n"
            (root / "root" / "soon").unlink()


def test_last_request(kind, root):
    """After keep-alive-requests the client is told, and gets what it has requested."""
    with serve(kind, root, "--keep-alive-requests", 3) as server:
        with Streams(server.port) as session:
            for _ in range(3):
                assert session.get("/1.bin").status == 200
            assert session.end() == (5, h2.errors.ErrorCodes.NO_ERROR)


def test_stop(kind, root):
    """Responses that have begun are finished; then the session ends."""
    with serve(kind, root, "--stop-timeout", "60s") as server:
        with Streams(server.port) as session:
            session.get("/1.bin")
            stream = session.open("/cgi/wait/flag")
            session.until(lambda: session.answers[stream].body)
            server.send_signal(signal.SIGTERM)
            session.until(lambda: session.goaway)
            write(root / "root" / "flag", b"")
            assert session.answer(stream).body == b"begun\ndone\n"
            assert session.end()[1] == h2.errors.ErrorCodes.NO_ERROR
        (root / "root" / "flag").unlink()


def test_reload(kind, root, tmp_path):
    """The next request gets its response, and the client connects again."""
    path = write(tmp_path / "sweet.conf", b"[sweet]\n")
    with serve(kind, root, "--config", path) as server:
        with Streams(server.port) as session:
            assert session.get("/1.bin").status == 200
            server.send_signal(signal.SIGHUP)
            assert server.errors.wait("reloaded ")
            assert session.get("/1.bin").status == 200
            assert session.end()[1] == h2.errors.ErrorCodes.NO_ERROR


def test_request_behind_a_handshake_that_waits(kind, root):
    """Many clients begin a handshake at once, and the last ones have to wait for another turn of the
    loop.  Behind one of them comes a request, and then nothing happens that wakes the loop."""
    with (serve(kind, root, *tls.options("ec"), "--threads", "1", listen="127.0.0.1:0,tls") as server,
          contextlib.ExitStack() as ends):
        held = []
        for _ in range(151):
            plain = socket.create_connection(("127.0.0.1", server.port), TIMEOUT)
            held.append(tls.Held(ends.enter_context(plain), tls.usual("h2")))
            held[-1].begin()
        last = held[-1]
        last.send()
        last.run(last.secure.do_handshake)
        last.secure.write(PREFACE + frame(SETTINGS) + frame(HEADERS, block("/2048.bin"),
                                                            END_HEADERS | END_STREAM, 1))
        stop(server.pid)
        for client in held:
            client.send()
        os.kill(server.pid, signal.SIGCONT)
        came = b""
        while pattern(2048, seed=2048) not in came:
            came += last.run(last.secure.read, 1 << 16)


def test_off(kind, root):
    """Without HTTP/2, and by default in clear text, the preface is a request of HTTP/1.1."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for options in ([], ["--http2", "off"]):
        with running(kind, root / "root", *options, *tls.options("ec"), "--listen",
                     "127.0.0.1:0,tls") as server:
            assert exchange(server.port, preface).startswith(b"HTTP/1.1 505 ")
            secure = int(server.errors.wait("https://").split("https://127.0.0.1:")[1]
                         .split("/")[0])
            chosen = tls.context()
            chosen.set_alpn_protocols(["h2", "http/1.1"])
            with Client(secure, secure={"settings": chosen}) as client:
                protocol = client.socket.selected_alpn_protocol()
                assert protocol == ("http/1.1" if options else "h2")


def test_programs_that_end(server, root):
    """What a program cannot finish is reset, and the session continues."""
    write(root / "cgi" / "short", b"#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n"
          b"Content-Length: 100\\r\\n\\r\\nabc'\n").chmod(0o755)
    with Streams(server.port) as session:
        with pytest.raises(Reset):
            answer = session.get("/cgi/short")
            assert answer.status == 502, answer.body
            raise Reset(None)
        assert session.get("/1.bin").status == 200


def test_client_goes(kind, root):
    """Its streams end, and nothing of them stays."""
    with serve(kind, root) as server:
        for _ in range(5):
            with Streams(server.port, window=MB) as session:
                for size in SIZES:
                    session.open(f"/{size}.bin")
                session.open("/cgi/wait/never")
                session.more()
        server.wait_status(lambda now: now["connections"]["open"] <= 1)

