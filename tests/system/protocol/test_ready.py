# SPDX-License-Identifier: MIT
"""Small responses that are sent often are kept ready, head and body in one piece (exchange/ready.h):
they are the same bytes as if they were made, with the date of their second."""

import email.utils
import threading
import time

import pytest

from client import Client, request
from files import KB, pattern, write
from server import TIMEOUT, running
from test_reload import reload

pytestmark = pytest.mark.clear("records and frames are made for each response")

READY_MAX = 12 * KB
TIMES = 6  # the third response of a unit is kept, the fourth is ready


def ready(server):
    return server.status()["bodies"]["ready"]


def answers(client, count, target, **how):
    """Returns the heads without their dates, and the bodies, of that many requests."""
    got = []
    for _ in range(count):
        client.send(request(target, **how))
        response = client.response(how.get("method", "GET"))
        head = response.head.replace(response["Date"].encode(), b"@", 1)
        got.append((head, response.body))
    return got


@pytest.mark.parametrize("size, kept", [(1, True), (1000, True), (4096, True), (10 * KB, True),
                                        (READY_MAX - 300, True), (READY_MAX - 100, False),
                                        (READY_MAX, False), (64 * KB, False)])
def test_bytes(kind, tmp_path, size, kept):
    body = pattern(size)
    write(tmp_path / "file.txt", body)
    with running(kind, tmp_path, "--threads", 1) as server, Client(server.port) as client:
        got = answers(client, TIMES, "/file.txt")
        assert got == got[:1] * TIMES
        assert got[0][1] == body
        assert ready(server) == (TIMES - 3 if kept else 0)


def test_others(kind, tmp_path):
    """What asks for anything else gets it, however often the file was sent."""
    body = pattern(5000)
    write(tmp_path / "file", body)
    with running(kind, tmp_path, "--threads", 1) as server, Client(server.port) as client:
        for _ in range(3):
            assert answers(client, TIMES, "/file")[-1][1] == body
            before = ready(server)
            head, nothing = answers(client, TIMES, "/file", method="HEAD")[-1]
            assert b"Content-Length: 5000\r\n" in head + b"\r\n" and nothing == b""
            head, part = answers(client, TIMES, "/file", fields="Range: bytes=10-19\r\n")[-1]
            assert head.startswith(b"HTTP/1.1 206 ") and part == body[10:20]
            head, _ = answers(client, TIMES, "/file", fields="If-None-Match: *\r\n")[-1]
            assert head.startswith(b"HTTP/1.1 304 ")
            assert ready(server) == before
            with Client(server.port) as other:
                other.send(request("/file", fields="Connection: close\r\n"))
                assert other.response()["Connection"] == "close"
            with Client(server.port) as other:
                other.send(b"GET /file HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                assert other.response()["Connection"] == "keep-alive"
            assert ready(server) == before


def test_date(kind, tmp_path):
    """Each response has the date of its second, also while a client does not read an older one."""
    write(tmp_path / "file", pattern(11 * KB))
    with running(kind, tmp_path, "--threads", 1) as server, Client(server.port) as client, \
            Client(server.port, buffer=4096) as slow:
        slow.send(request("/file") * 1000)
        seen, deadline = [], time.monotonic() + TIMEOUT
        while len(set(seen)) < 3:
            before = int(time.time())
            client.send(request("/file"))
            date = client.response()["Date"]
            when = email.utils.parsedate_to_datetime(date).timestamp()
            assert before - 1 <= when <= time.time()
            seen.append(date)
            assert time.monotonic() < deadline
        assert ready(server) > 0
        for _ in range(1000):
            response = slow.response()
            assert response.body == pattern(11 * KB)
            assert email.utils.parsedate(response["Date"])


def test_changes(kind, tmp_path):
    """A file that changes is never answered with what was kept of it."""
    with running(kind, tmp_path, "--threads", 1) as server, Client(server.port) as client:
        for size in [3000, 3000, 100, 9000, 3000]:
            body = bytes([size % 251 + size // 1000]) * size
            write(tmp_path / "file", body)
            before = ready(server)
            assert [got for _, got in answers(client, TIMES, "/file")] == [body] * TIMES
            assert ready(server) > before


CONFIG = """[sweet]
threads=1
root={top}
server-header={name}
{keys}
[path /cached]
cache-control=max-age=60
[path /ruled]
header=X-Rule: yes
[path /timed]
server-timing=on
[host second]
names=second.example
root={top}
cache-control=no-store
"""


def configure(top, name="one", keys=""):
    return write(top / "sweet.conf", CONFIG.format(top=top / "root", name=name, keys=keys).encode())


def test_lines(kind, tmp_path):
    """The lines of a response are those of its path and host; some differ for each response."""
    for name in ["plain", "cached/a", "ruled/a", "timed/a"]:
        write(tmp_path / "root" / name, b"body")
    with running(kind, None, "--config", configure(tmp_path)) as server, \
            Client(server.port) as client:
        for _ in range(3):
            for host, line in [("h", b""), ("second.example", b"Cache-Control: no-store\r\n")]:
                got = answers(client, TIMES, "/plain", host=host)
                assert got == got[:1] * TIMES
                assert (b"Cache-Control: " in got[0][0]) == bool(line)
            got = answers(client, TIMES, "/cached/a")
            assert got == got[:1] * TIMES and b"Cache-Control: max-age=60" in got[0][0]
        before = ready(server)
        assert before > 0
        assert all(b"X-Rule: yes" in head for head, _ in answers(client, TIMES, "/ruled/a"))
        assert all(b"Server-Timing: " in head for head, _ in answers(client, TIMES, "/timed/a"))
        assert ready(server) == before


def test_ids(kind, tmp_path):
    write(tmp_path / "root/plain", b"body")
    config = configure(tmp_path, keys="request-id=on")
    with running(kind, None, "--config", config) as server, Client(server.port) as client:
        heads = {head for head, _ in answers(client, TIMES, "/plain")}
        assert len(heads) == TIMES and ready(server) == 0


def test_reloaded(kind, tmp_path):
    """The lines are those of the configuration of the request."""
    write(tmp_path / "root/plain", b"body")
    with running(kind, None, "--config", configure(tmp_path)) as server, \
            Client(server.port) as client:
        for name in ["one", "two", "three", "one"]:
            configure(tmp_path, name)
            reload(server)
            before = ready(server)
            got = answers(client, TIMES, "/plain")
            assert got == got[:1] * TIMES
            assert f"Server: {name}\r\n".encode() in got[0][0]
            assert ready(server) > before


def test_aligned(kind, tmp_path):
    """Padding is part of what is kept."""
    write(tmp_path / "root/plain", b"body")
    config = configure(tmp_path, keys="header-align=64")
    with running(kind, None, "--config", config) as server, Client(server.port) as client:
        for head, _ in answers(client, TIMES, "/plain"):
            # With its date, and the empty line.
            assert (len(head) + 28 + 4) % 64 == 0
        assert ready(server) > 0


def test_clients_leave(kind, tmp_path):
    """Clients that end in the middle disturb no other, and nothing is kept for them."""
    files = {f"/{number}": pattern(number * 1000 + 500) for number in range(11)}
    for name, body in files.items():
        write(tmp_path / name[1:], body)
    faults = []

    def ask(number, server):
        try:
            with Client(server.port) as client:
                for turn in range(300):
                    name = f"/{(number + turn) % 11}"
                    client.send(request(name))
                    assert client.response().body == files[name]
        except AssertionError as fault:
            faults.append(fault)

    with running(kind, tmp_path, "--threads", 2) as server:
        threads = [threading.Thread(target=ask, args=(number, server)) for number in range(6)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            with Client(server.port, buffer=4096) as client:
                client.send(b"".join(request(name) for name in files) * 20)
        for thread in threads:
            thread.join(TIMEOUT)
        assert not faults, faults
        assert ready(server) > 0


def test_many(kind, tmp_path):
    """More files than a thread keeps: each is answered with its own bytes."""
    bodies = {f"/{number}": f"{number:04}".encode() * 100 for number in range(300)}
    for name, body in bodies.items():
        write(tmp_path / name[1:], body)
    with running(kind, tmp_path, "--threads", 1) as server, Client(server.port) as client:
        for turn in range(TIMES):
            client.send(b"".join(request(name) for name in bodies))
            for name, body in bodies.items():
                assert client.response().body == body, (turn, name)
        assert 0 < ready(server) < (TIMES - 3) * len(bodies)


def test_slow(kind, tmp_path, clock):
    """The timeout of responses counts for one that is ready, when its socket is full."""
    write(tmp_path / "file", pattern(11 * KB))
    with running(kind, tmp_path, "--threads", 1, "--send-timeout=20s", clock=clock) as server, \
            Client(server.port) as client, Client(server.port, buffer=4096) as slow:
        answers(client, TIMES, "/file")
        slow.send(request("/file") * 1000)
        server.wait_status(lambda now: now["connections"]["sending"] == 1)
        kept = ready(server)
        # The first period in which nothing moves only measures.
        for _ in range(20):
            server.forward(15)
            if server.status()["connections"]["sending"] == 0:
                break
        else:
            pytest.fail("the response has no timeout")
        # It is reset: nothing came for the rest.
        with pytest.raises((ConnectionError, AssertionError)):
            for _ in range(1000):
                slow.response()
        assert kept > TIMES - 3
