# SPDX-License-Identifier: MIT
"""Clients that stop reading hold at most a part of the cache: their responses continue
from the file, or from the spool, and all bytes are right."""

import contextlib
import os

import pytest

from client import Client, request
from files import KB, MB, pattern, write
from server import GENERATE, running
from test_generate import page

CACHE = 16 * MB
SIZE = 3 * MB  # less than a quarter of the cache, and more than a socket buffers
COUNT = 12  # that many are larger than the cache
SMALL_BUFFER = 4096


@pytest.fixture
def slow():
    """Clients that send a request and do not read."""
    clients = []

    def ask(server, target):
        client = Client(server.port, SMALL_BUFFER)
        clients.append(client)
        client.send(request(target))
        return client

    yield ask
    for client in clients:
        client.close()


def serve(kind, folder, *options):
    return running(kind, folder, "--cache-size", CACHE, "--log-level", "info", *options)


def wait_slow(server, **least):
    def enough(status):
        slow = status["slow"]
        return slow["held_bytes"] <= CACHE // 2 and all(slow[key] >= count
                                                        for key, count in least.items())
    return server.wait_status(enough)["slow"]


def read_whole(client, body):
    client.hurry()
    got = client.response()
    assert (got.status, got.body == body) == (200, True)


def files(folder):
    return [write(folder / f"file{number}", pattern(SIZE, seed=number)) for number in range(COUNT)]


def test_files(kind, tmp_path, slow):
    """They continue from the file; clients that read later get all of it, and others are served
    meanwhile."""
    paths = files(tmp_path)
    write(tmp_path / "small", b"small\n")
    with serve(kind, tmp_path) as server:
        clients = [slow(server, "/" + path.name) for path in paths]
        seen = wait_slow(server, to_files=1)
        assert seen["reset"] == seen["to_spool"] == 0
        with Client(server.port) as client:
            assert client.get("/small").body == b"small\n"
        for number, client in enumerate(clients):
            read_whole(client, pattern(SIZE, seed=number))
        wait_slow(server)
        assert server.status()["slow"]["held_bytes"] == 0


def test_ranges(kind, tmp_path, slow):
    """Parts of a file with texts between: also after the part that is being sent."""
    write(tmp_path / "file", pattern(SIZE))
    first, last = 5, SIZE - 7
    fields = b"Range: bytes=%d-%d,%d-%d\r\n" % (first, last - 100, last, last + 3)
    files(tmp_path)
    with serve(kind, tmp_path, "--threads", 1) as server:
        with Client(server.port, SMALL_BUFFER) as client:
            client.send(b"GET /file HTTP/1.1\r\nHost: t\r\n%s\r\n" % fields)
            server.wait_status(lambda status: status["slow"]["held_bytes"] > 0)
            for number in range(COUNT):
                slow(server, f"/file{number}")
            wait_slow(server, to_files=1)
            client.hurry()
            got = client.response()
            assert got.status == 206
            assert pattern(SIZE)[first:last - 99] in got.body
            assert pattern(SIZE)[last:last + 4] in got.body


@pytest.mark.parametrize("how", ["replaced", "rewritten", "gone"])
def test_version_is_gone(kind, tmp_path, slow, how):
    """The version of the unit no longer exists: its rest is spooled."""
    paths = files(tmp_path)
    with serve(kind, tmp_path, "--threads", 1) as server:
        first = slow(server, "/file0")
        server.wait_status(lambda status: status["slow"]["held_bytes"] >= SIZE)
        if how == "replaced":
            os.replace(write(tmp_path / "new", b"new"), paths[0])
        elif how == "rewritten":
            paths[0].write_bytes(b"new")
        else:
            paths[0].unlink()
        for path in paths[1:]:
            slow(server, "/" + path.name)
        wait_slow(server, to_spool=1)
        read_whole(first, pattern(SIZE, seed=0))
        server.wait_status(lambda status: status["spool"]["files"] == 0)


def pages(kind, folder, slow, check, **options):
    keys = {"cache-size": CACHE, "worker-memory": 4 * CACHE, **options}
    config = write(folder / "sweet.conf", (
        f"[sweet]\nlisten=127.0.0.1:0\nroot={folder}\nthreads=1\n"
        f"log-level=info\nworker=/app={GENERATE}\nworkers=1\n"
        f"{''.join(f'{key}={value}{chr(10)}' for key, value in keys.items())}").encode())
    with running(kind, None, "--config", config, listen=None) as server:
        check(server)


def test_pages(kind, tmp_path, slow):
    """A program gets the memory of its pages back, and continues to respond."""
    def check(server):
        clients = [slow(server, f"/app?size={SIZE}") for _ in range(COUNT)]
        wait_slow(server, to_spool=1)
        with Client(server.port) as client:
            assert client.get("/app?size=1000").body == page(1000)
        for client in clients:
            read_whole(client, page(SIZE))
        server.wait_status(lambda status: status["spool"]["files"] == 0)
        assert server.status()["slow"]["reset"] == 0

    pages(kind, tmp_path, slow, check)


def test_spool_is_full(kind, tmp_path, slow):
    """A client whose data does not fit there is reset, counted and logged; the others are
    served."""
    def check(server):
        clients = [slow(server, f"/app?size={SIZE}") for _ in range(COUNT)]
        wait_slow(server, reset=1)
        server.errors.wait("reads too slowly")
        with Client(server.port) as client:
            assert client.get("/app?size=1000").body == page(1000)
        cut = 0
        for client in clients:
            try:
                read_whole(client, page(SIZE))
            except (ConnectionResetError, AssertionError):
                cut += 1
        assert cut >= 1

    pages(kind, tmp_path, slow, check, **{"spool-size": "1M"})


def test_memory_of_a_program(kind, tmp_path, slow):
    """For a program with less memory than the cache, a part of that can be held, too."""
    def check(server):
        clients = []
        for number in range(COUNT):
            clients.append(slow(server, f"/app?size={SIZE}"))
            # Its memory fits five concurrent ones; two may be held.
            if number % 3 == 2:
                server.wait_status(lambda status, least=number - 1:
                                   status["slow"]["to_spool"] >= least)
        with Client(server.port) as client:
            assert client.get("/app?size=1000").body == page(1000)
        for client in clients:
            read_whole(client, page(SIZE))
        assert server.status()["slow"]["reset"] == 0

    pages(kind, tmp_path, slow, check, **{"cache-size": "256M", "worker-memory": "16M"})


def test_burst_of_pages(kind, tmp_path, slow):
    """Many concurrent requests of clients that read nothing: requests wait until pages are
    spooled."""
    def check(server):
        clients = [slow(server, f"/app?size={MB}&number={number}") for number in range(100)]
        for client in clients:
            assert b" 200 " in client.head().partition(b"\r\n")[0]
        with Client(server.port) as client:
            assert client.get("/app?size=1000").body == page(1000)
        for client in clients:
            assert client.take(MB) == page(MB)
        seen = server.wait_status(lambda status: status["spool"]["files"] == 0)
        assert seen["slow"]["reset"] == 0 and seen["responses"]["5xx"] == 0

    pages(kind, tmp_path, slow, check, **{"cache-size": "256M", "worker-memory": "16M"})


def test_pages_as_large_as_the_memory(kind, tmp_path, slow):
    """Memory for one page only: a client that reads nothing delays others only for a while."""
    def check(server):
        # Before the first page, the size is unknown.
        with Client(server.port) as client:
            assert client.get(f"/app?size={10 * MB}").body == page(10 * MB)
        clients = [slow(server, f"/app?size={10 * MB}") for _ in range(3)]
        for client in clients:
            assert b" 200 " in client.head().partition(b"\r\n")[0]
        for client in clients:
            assert client.take(10 * MB) == page(10 * MB)
        assert server.status()["responses"]["5xx"] == 0

    pages(kind, tmp_path, slow, check, **{"cache-size": "256M", "worker-memory": "16M"})


def test_idle_sockets(kind, tmp_path):
    """Bytes that a client has read since its response left are soon not counted any more."""
    write(tmp_path / "file", pattern(48 * KB))
    with serve(kind, tmp_path) as server, Client(server.port, SMALL_BUFFER) as client:
        client.send(request("/file"))
        server.wait_status(lambda status: status["connections"]["idle"] == 1
                           and status["slow"]["socket_bytes"] > 0)
        assert client.response().body == pattern(48 * KB)
        server.wait_status(lambda status: status["slow"]["socket_bytes"] == 0)


def test_sockets_take_little(kind, tmp_path, slow):
    """For a client that has not read anything: the size of its window, and a limit."""
    files(tmp_path)
    with serve(kind, tmp_path) as server:
        clients = [slow(server, f"/file{number}") for number in range(COUNT)]
        seen = wait_slow(server, to_files=1)
        # Its window is a few KB; the system fills up its last segment, of 64 KB.
        assert 0 < seen["socket_bytes"] <= COUNT * (128 + 16) * KB
        for number, client in enumerate(clients):
            read_whole(client, pattern(SIZE, seed=number))
            client.close()
        server.wait_status(lambda status: status["slow"]["socket_bytes"] == 0)


def test_readers_that_stop(kind, tmp_path, slow):
    """Lent pages stay unchanged until they are acknowledged."""
    paths = files(tmp_path)
    with serve(kind, tmp_path) as server:
        clients = [slow(server, "/" + path.name) for path in paths]
        for client in clients:
            while len(client.data) < SIZE // 3:
                client.more()
        wait_slow(server)
        whole = 0
        for number, client in enumerate(clients):
            with contextlib.suppress(ConnectionResetError):
                read_whole(client, pattern(SIZE, seed=number))
                whole += 1
        assert whole >= COUNT // 2
        server.wait_status(lambda status: status["slow"]["held_bytes"] == 0)


def test_sockets_take_little_of_readers(kind, tmp_path):
    """For clients on this machine that have read: 16 KB and a segment, also while so much is held
    that they get copies."""
    count, window = 30, 64 * KB
    paths = [write(tmp_path / f"file{number}", pattern(MB, seed=number)) for number in range(count)]
    with (serve(kind, tmp_path, "--threads", 1, "--cache-size", 64 * MB) as server,
          contextlib.ExitStack() as keep):
        clients = [keep.enter_context(Client(server.port, window)) for _ in paths]
        for _ in range(2):
            for client, path in zip(clients, paths):
                client.get("/" + path.name)
        for client, path in zip(clients, paths):
            client.send(request("/" + path.name))
        # More than half of what waiting responses may hold: the last ones are copied.
        seen = server.wait_status(lambda status: status["slow"]["held_bytes"] == count * MB)
        assert seen["slow"]["socket_bytes"] <= count * (2 * window + (64 + 16) * KB)
        for number, client in enumerate(clients):
            read_whole(client, pattern(MB, seed=number))


def test_socket_memory(kind, tmp_path, slow):
    """Beyond it the slowest clients are reset, and those that read are not."""
    most, count = 3 * MB, 16 * COUNT  # with TLS as well, sockets hold more
    files(tmp_path)
    with serve(kind, tmp_path, "--threads", 1, "--socket-memory", most) as server:
        clients = [slow(server, f"/file{number % COUNT}") for number in range(count)]
        server.wait_status(lambda status: status["slow"]["reset"] > 0)
        assert server.errors.wait(r"reads too slowly: resetting \(socket-memory is reached")
        with Client(server.port) as client:
            assert client.get("/file0").body == pattern(SIZE, seed=0)
        server.wait_status(lambda status: status["slow"]["socket_bytes"] <= most)
        whole = 0
        for number, client in enumerate(clients):
            with contextlib.suppress(ConnectionResetError):
                read_whole(client, pattern(SIZE, seed=number % COUNT))
                whole += 1
        assert count // 8 < whole < count


def test_clients_go_away(kind, tmp_path, slow):
    """In the middle of all that: nothing leaks."""
    def check(server):
        for number in range(3):
            clients = [slow(server, f"/app?size={SIZE}") for _ in range(COUNT)]
            clients += [slow(server, f"/file{at}") for at in range(COUNT)]
            if number:
                wait_slow(server, to_spool=1)
            for client in clients:
                client.close()
        server.wait_status(lambda status: status["connections"]["open"] == 1
                           and status["spool"]["files"] == 0)
        assert server.status()["slow"]["held_bytes"] == 0

    files(tmp_path)
    pages(kind, tmp_path, slow, check)
