# SPDX-License-Identifier: MIT
"""Limits of a client: time, bytes, requests, memory."""

import contextlib
import email.utils
import json
import os
import signal
import socket
import time

import pytest

import tls
from client import Client, Closed, fetch, request
from files import KB, MB, pattern, write
from server import GENERATE, OBEY, TIMEOUT, VALGRIND, Server, inside, running, sanitized
from stopped import stop

BIG = pattern(12 * MB)  # more than the kernel buffers for a client that does not read


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("limits")
    write(root / "index.html", b"here\n")
    write(root / "big", BIG)
    return root


def serve(kind, root, *options, **how):
    return running(kind, root, "--worker", f"/obey={OBEY}", *options, **how)


# All timeouts at a second, the minimum.
HASTY = [f"--{name}-timeout=1s" for name in ("header", "body", "keep-alive", "send")]


@pytest.fixture(scope="module")
def hasty(kind, root):
    with serve(kind, root, *HASTY) as server:
        yield server


def trickle(server, clock, client, data):
    """Sends byte by byte, a tenth of a limit apart, until the server has responded."""
    for byte in data:
        client.send(bytes([byte]))
        server.forward(clock.limit / 10)
        if client.readable():
            return
    pytest.fail("the server waits for more")


def test_slow_in_every_way(hasty):
    """One after the other would take long, so all concurrently."""
    clients = {name: Client(hasty.port) for name in ("fresh", "idle", "body", "drop", "upload")}
    clients["idle"].get("/")
    if not tls.HTTP2:  # where a stream begins with a whole head
        clients["head"] = Client(hasty.port)
        clients["head"].send(b"GET / HTTP/1.1\r\nHost: te")
    clients["body"].send(b"POST /obey/upload HTTP/1.1\r\nHost: test\r\nContent-Length: 9999\r\n\r\n" + b"x" * 99)
    clients["drop"].send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 9999\r\n\r\n" + b"x" * 99)
    clients["upload"].send(b"POST /obey/upload HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12")
    # Nothing is sent if no request has begun.
    assert clients["fresh"].at_end()
    assert clients["idle"].at_end()
    for name in {"head", "body", "upload"} & set(clients):
        got = clients[name].response()
        assert (got.status, got["Connection"]) == (408, "close"), name
        assert clients[name].at_end()
    assert clients["drop"].response().status == 405
    assert clients["drop"].at_end()
    for client in clients.values():
        client.close()


@pytest.mark.http1("a stream begins with a whole head")
def test_head_that_trickles(root, clock):
    with serve("epoll", root, f"--header-timeout={clock.limit}s", "--threads", 1,
               clock=clock) as server, Client(server.port) as client:
        client.get("/")
        trickle(server, clock, client, request("/")[:20])
        assert client.response().status == 408
        assert client.at_end()


def test_body_that_trickles(root, clock):
    with serve("epoll", root, f"--body-timeout={clock.limit}s", "--threads", 1,
               clock=clock) as server, Client(server.port) as client:
        client.send(b"POST /obey/upload HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n")
        trickle(server, clock, client, b"x" * 20)
        assert client.response().status == 408
        assert client.at_end()


def test_body_that_moves(root, clock):
    """Slower than the timeout as a whole, but fast enough for its rate."""
    size = 200 * clock.limit
    data = pattern(15 * size)
    with serve("epoll", root, f"--body-timeout={clock.limit}s", "--threads", 1,
               clock=clock) as server, Client(server.port) as client:
        client.send(b"POST /obey/echo HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % len(data))
        for at in range(0, len(data), size):
            client.send(data[at : at + size])
            server.forward(clock.limit / 10)
        assert client.response().body == data


def test_answers(root, clock):
    """A response that is not read is cut off, one that is read slowly is not."""
    with serve("epoll", root, f"--send-timeout={clock.limit}s", "--threads", 1,
               clock=clock) as server, \
            Client(server.port, 4 * KB) as deaf, Client(server.port, 64 * KB) as slow:
        deaf.send(request("/big"))
        slow.send(request("/big"))
        assert b" 200 " in slow.head()
        server.wait_status(lambda status: status["connections"]["sending"] == 2)
        taken = b""
        # The first period of each only measures; in the others slow reads more than its buffers
        # hold, so that the server sees progress.
        for period in range(4):
            # Both, and the status request itself: between two pieces of a file neither is
            # sending.
            if period < 2:
                assert server.status()["connections"]["open"] == 3
            server.forward(1.1 * clock.limit)
            taken += slow.take(MB)
        server.wait_status(lambda status: status["connections"]["open"] == 2)
        with pytest.raises((Closed, ConnectionResetError)):
            deaf.response()
        assert taken + slow.take(len(BIG) - len(taken)) == BIG


def test_server_is_stopped_while_it_sends(kind, root):
    """A signal interrupts sendfile(2) although the socket has room, which no event reports."""
    with serve(kind, root, "--threads", 1) as server:
        for _ in range(1 if VALGRIND else 8):
            with Client(server.port, 64 * KB) as client:
                client.send(request("/big"))
                assert b" 200 " in client.head()
                for at in range(0, len(BIG), 64 * KB):
                    assert client.take(64 * KB) == BIG[at : at + 64 * KB]
                    for number in (signal.SIGSTOP, signal.SIGCONT):
                        os.kill(server.pid, number)


def test_requests_of_a_connection(root):
    with serve("epoll", root, "--keep-alive-requests=3") as server:
        for _ in range(2):
            with Client(server.port) as client:
                client.send(request("/") * 4)
                for last in (False, False, True):
                    got = client.response()
                    assert got.body == b"here\n"
                    assert got.fields.get("connection") == ("close" if last else None)
                assert client.at_end()


@pytest.mark.http1("a client that is rejected has no stream for a response")
def test_connections_at_once(root):
    with serve("epoll", root, "--max-connections=3", "--threads=2") as server:
        clients = [Client(server.port) for _ in range(3)]
        for client in clients:
            assert client.get("/").body == b"here\n"
        with Client(server.port) as refused:
            got = refused.response()
            assert (got.status, got["Connection"]) == (503, "close")
            assert refused.at_end()
        assert clients[0].get("/").body == b"here\n"
        clients.pop().close()
        # The server notices that after a while.
        deadline = time.monotonic() + 20
        status = 503
        while status == 503 and time.monotonic() < deadline:
            with Client(server.port) as client, contextlib.suppress(OSError):
                status = client.get("/").status
        assert status == 200
        for client in clients:
            client.close()


def test_bytes_of_a_head(root):
    with serve("epoll", root, "--max-header=2K") as server, Client(server.port) as client:
        assert client.get("/", fields="A: " + "b" * 1900 + "\r\n").status == 200
        assert client.get("/", fields="A: " + "b" * 2100 + "\r\n").status == 431
        assert tls.HTTP2 or client.at_end()
    with serve("epoll", root, "--max-header=64K") as server, Client(server.port) as client:
        assert client.get("/", fields="A: " + "b" * 60000 + "\r\n").status == 200
        assert client.get("/" + "a" * 9000).status == 414


def test_fields_of_a_head(root):
    fields = lambda count: "".join(f"A{i}: b\r\n" for i in range(count - 1))  # and Host
    for option, most in [((), 100), (("--max-fields=256",), 256), (("--max-fields=3",), 3)]:
        with serve("epoll", root, *option) as server, Client(server.port) as client:
            assert client.get("/", fields=fields(most)).status == 200
            assert client.get("/", fields=fields(most + 1)).status == 431
            assert tls.HTTP2 or client.at_end()


def test_server_field(root):
    for option, expected in (("a b/1", "a b/1"), ("off", None)):
        with serve("epoll", root, f"--server-header={option}") as server, Client(server.port) as client:
            for target in ("/", "/none"):
                assert client.get(target).fields.get("server") == expected
    with running("epoll", root) as server, Client(server.port) as client:
        assert client.get("/")["Server"].startswith("SWEET/")


def test_date(root):
    """The second of the response, whichever thread sends it."""
    with running("epoll", root, "--threads", 3) as server:
        for _ in range(8):
            with Client(server.port) as client:
                before = time.time()
                date = email.utils.parsedate_to_datetime(client.get("/")["Date"]).timestamp()
                assert int(before - 0.1) <= date <= time.time()
            time.sleep(0.11)


@pytest.mark.parametrize("whole", [False, True])
def test_all_bodies_together(root, tmp_path, whole):
    """A quarter of the cache limits the received bytes, not the announced ones.  Beyond that,
    bodies that are read in pieces get smaller ones, others are refused."""
    path, length, parts = b"/obey/upload", b"Content-Length: 900000\r\n\r\n", (600000, 296000)
    end = b""
    options = ["--cache-size=4M", "--max-body=0"]
    if whole:
        # Its program gets the length, so that all of it must have arrived before.
        write(tmp_path / "cgi/sum", b"#!/bin/sh\ncat >/dev/null\nprintf 'Content-Length: 0\\r\\n"
                                    b"Content-Type: text/plain\\r\\n\\r\\n'\n").chmod(0o755)
        config = write(tmp_path / "sweet.conf", (
            f"[pool app]\nprotocol=cgi\nfolder={tmp_path}/cgi\nrequest-buffering=off\n"
            "[path /app]\npool=app\n").encode())
        options += ["--config", config]
        path, length = b"/app/sum", b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % 500000
        parts, end = (400000, 96000), b"\r\n0\r\n\r\n"
    head = b"POST " + path + b" HTTP/1.1\r\nHost: test\r\n"
    with serve("epoll", root, *options) as server:
        clients = [Client(server.port) for _ in range(20)]
        for client in clients:
            client.send(head + length + b"x" * 4000)
        for client in clients[:2]:
            client.send(b"x" * parts[0])
        statuses = []
        for client in clients[:2]:
            client.socket.settimeout(1)
            try:
                statuses.append(client.response().status)
            except TimeoutError:
                client.socket.settimeout(20)
                client.send(b"x" * parts[1] + end)
                statuses.append(client.response().status)
        # One of the two has got the memory, the other has not.
        assert sorted(statuses) == [200, 503 if whole else 200]
        for client in clients:
            client.close()
        # Their memory is free again when the server has noticed that they disconnected.
        server.wait_status(lambda status: status["connections"]["open"] == 1)
        with Client(server.port) as client:
            client.send(head + b"Content-Length: 1048576\r\n\r\n" + b"y" * 1048576)
            assert client.response().status == 200


def resident(pid):
    with open(inside(pid, "smaps_rollup")) as lines:
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_Dirty:"))


@pytest.mark.skipif(VALGRIND or sanitized(), reason="their memory is not the server's")
@pytest.mark.clear("TLS needs memory of its own")
def test_memory_of_idle_connections(kind, root):
    count = 2000
    with running(kind, root, "--threads", 1) as server:
        clients = []

        def connect(number):
            for _ in range(number):
                one = socket.create_connection(("127.0.0.1", server.port))
                one.sendall(request("/"))
                clients.append(one)
            for one in clients[-number:]:
                assert one.recv(4096).endswith(b"here\n")

        try:
            # Memory that is allocated once: buffers to receive, and for concurrent responses, of
            # which there are most when all requests arrive together.
            connect(500)
            stop(server.pid)
            for one in clients:
                one.sendall(request("/"))
            server.send_signal(signal.SIGCONT)
            for one in clients:
                assert one.recv(4096).endswith(b"here\n")
            for _ in range(500):
                assert fetch(server.port, "/").body == b"here\n"
            before = resident(server.pid)
            connect(count)
            each = (resident(server.pid) - before) / count
        finally:
            for one in clients:
                one.close()
        # On io_uring up to a hundred more responses may be in memory at once than before: at most
        # a megabyte.
        limit = 1024 + (MB // count if kind == "uring" else 0)
        assert each <= limit, f"{each} bytes for each idle connection"


def answered(client):
    """Returns false if it was rejected, in whatever way a closed socket shows that."""
    try:
        client.send(request("/index.html"))
        return client.response().body == b"here\n"
    except (AssertionError, ConnectionError):
        return False


@pytest.mark.skipif(VALGRIND or sanitized(), reason="they need descriptors of their own")
def test_too_few_descriptors_to_start(kind, root):
    """It reports that and exits, unless it has enough to serve; nothing in between."""
    for limit in range(5, 100):
        try:
            server = Server(kind, root, "--threads", 1, "--worker", f"/generate={GENERATE}",
                            prefix=("prlimit", f"--nofile={limit}:{limit}"))
        except AssertionError as refused:
            assert "Too many open files" in str(refused) or "shared libraries" in str(refused)
            continue
        try:
            # Clients are rejected until the last pending work leaves enough for one.
            with contextlib.suppress(AssertionError, ConnectionError), Client(server.port) as client:
                assert answered(client)
                break
        finally:
            server.stop()
    else:
        pytest.fail("never enough")
    assert limit > 10


@pytest.mark.clear("its clients end before a handshake")
def test_out_of_descriptors(kind, root):
    """A client for which none is left is rejected at once, and others are not affected."""
    limit = 80 if VALGRIND else 64
    with running(kind, root, "--threads", 1, prefix=("prlimit", f"--nofile={limit}")) as server, \
            Client(server.port) as first, contextlib.ExitStack() as stack:
        assert first.get("/index.html").status == 200
        clients = [stack.enter_context(Client(server.port)) for _ in range(limit)]
        served = [client for client in clients if answered(client)]
        assert 10 <= len(served) < limit
        assert server.errors.count("accepting connections: Too many open files", 1) == 1
        for client in (first, *served):
            assert client.get("/index.html").body == b"here\n"
        for client in served:
            client.close()
        # When their descriptors are free again, other clients can connect.
        deadline = time.monotonic() + TIMEOUT
        while json.loads(first.get("/.sweet/status").body)["connections"]["idle"]:
            assert time.monotonic() < deadline
        with Client(server.port) as again:
            assert answered(again)
