# SPDX-License-Identifier: MIT
"""Which clients may request, how often and over how many connections: by address."""

import contextlib
import re
import threading
import time

import pytest

import server as servers
from client import Client, has_ipv6
from files import write

ADDRESSES = """[sweet]
[path /none]
deny=all
[path /local]
allow=127.0.0.0/8;::1
[path /some]
allow=127.0.0.2;127.0.0.16/28
[path /but]
deny=127.0.0.2
[path /mixed]
allow=127.0.0.2;127.1.0.0/16
deny=127.0.0.0/8
[path /none/again]
deny=
allow=127.0.0.1
[path /into]
rewrite=/none
[path /none/onward]
redirect=/elsewhere
[path /.sweet]
deny=all
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    top = tmp_path_factory.mktemp("rules")
    for path in ["none", "none/again", "local", "some", "but", "mixed", "slow", "slow/in", "free"]:
        write(top / "root" / path / "index.html", f"{path}\n".encode())
    return top


@contextlib.contextmanager
def serving(tree, text, *options, kind="epoll"):
    path = write(tree / "sweet.conf", text.encode())
    with servers.running(kind, tree / "root", "--config", path, *options) as server:
        yield server


def ask(port, target, source="127.0.0.1", address="127.0.0.1"):
    with Client(port, address=address, source=source) as client:
        return client.get(target)


@pytest.mark.skipif(not has_ipv6(), reason="no ::1 here")
def test_addresses(tree):
    with serving(tree, ADDRESSES, "--listen", "[::1]:0") as server:
        assert server.errors.wait("listening on ", 2)
        port6 = int(re.search(r"http://\[::1\]:(\d+)/", server.errors.text())[1])

        def get(target, source="127.0.0.1"):
            return ask(server.port, target, source).status

        def get6(target):
            return ask(port6, target, "::1", "::1").status

        answer = ask(server.port, "/none/")
        assert answer.status == 403 and b"none\n" not in answer.body
        assert get("/none/x") == get("/none") == get("/free/../none/") == get6("/none/") == 403
        assert get("/none/again/") == 200 and get("/none/again/", "127.0.0.2") == 403
        assert get6("/none/again/") == 403
        assert get("/local/") == get("/local/", "127.9.9.9") == get6("/local/") == 200
        for source, status in [("127.0.0.1", 403), ("127.0.0.2", 200), ("127.0.0.15", 403),
                               ("127.0.0.16", 200), ("127.0.0.31", 200), ("127.0.0.32", 403)]:
            assert get("/some/", source) == status, source
        assert get6("/some/") == 403
        assert (get("/but/"), get("/but/", "127.0.0.2"), get6("/but/")) == (200, 403, 200)
        for source, status in [("127.0.0.1", 403), ("127.0.0.2", 200), ("127.1.2.3", 200),
                               ("127.2.2.3", 403)]:
            assert get("/mixed/", source) == status, source
        assert get6("/mixed/") == 403  # only who is allowed
        # Through a rewrite; before a redirect; not the status page, which has its own list.
        assert get("/into/") == get("/none/onward") == 403
        assert get("/.sweet/status") == 200 and get("/.sweet/other") == 403


def test_status_allow(tree):
    with serving(tree, "[sweet]\n", "--status-allow", "127.0.0.0/8") as server:
        assert ask(server.port, "/.sweet/status", "127.0.0.7").status == 200
    with serving(tree, "[sweet]\nstatus-allow=127.0.0.7\n") as server:
        assert ask(server.port, "/.sweet/status").status == 404
        assert ask(server.port, "/.sweet/status", "127.0.0.7").status == 200
    with serving(tree, "[sweet]\nstatus-allow=\n") as server:
        assert ask(server.port, "/.sweet/status").status == 404


RATES = """[sweet]
[path /slow]
request-rate=1
request-burst=4
[path /slow/own]
request-rate=1
request-burst=0
[path /slow/free]
request-rate=0
[path /to]
rewrite=/slow
request-rate=1
request-burst=1
[path /slow/self]
rewrite=/slow
"""


def test_rate(tree):
    with serving(tree, RATES) as server:
        def many(target, count, source):
            with Client(server.port, source=source) as client:
                return [client.get(target) for _ in range(count)]

        began = time.monotonic()
        answers = many("/slow/", 30, "127.0.0.2")
        statuses = [answer.status for answer in answers]
        most = 5 + time.monotonic() - began + 1
        assert statuses[:5] == [200] * 5 and 5 <= statuses.count(200) <= most
        refused = [answer for answer in answers if answer.status == 429]
        assert all(answer["Retry-After"] == "1" for answer in refused)
        # Inherited: one bucket. Redefined: another. Another client, too.
        assert 429 in [answer.status for answer in many("/slow/in/", 30, "127.0.0.2")]
        assert many("/slow/own/", 1, "127.0.0.2")[0].status == 404
        assert [answer.status for answer in many("/slow/free/", 20, "127.0.0.2")] == [404] * 20
        assert [answer.status for answer in many("/free/", 20, "127.0.0.2")] == [200] * 20
        assert [answer.status for answer in many("/slow/", 5, "127.0.0.3")] == [200] * 5
        # Both buckets of a rewrite; a shared one only once.
        assert many("/to/", 1, "127.0.0.4")[0].status == 200
        assert 429 in [answer.status for answer in many("/to/", 30, "127.0.0.4")]
        assert [answer.status for answer in many("/slow/self/", 5, "127.0.0.5")] == [200] * 5


def test_rate_across_threads(tree):
    """The threads of the server share the counters."""
    with serving(tree, RATES, "--threads", "4") as server:
        statuses = []

        def some():
            for _ in range(5):
                statuses.append(ask(server.port, "/slow/", "127.0.0.2").status)

        began = time.monotonic()
        threads = [threading.Thread(target=some) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 5 <= statuses.count(200) <= 5 + time.monotonic() - began + 1
        assert statuses.count(429) == 40 - statuses.count(200)


def is_open(client):
    try:
        return client.get("/free/").status == 200
    except (AssertionError, ConnectionError):
        return False


def refused(port, source):
    """What a client with too many connections gets: a response, if it arrived before the close."""
    with Client(port, source=source) as client:
        data = b""
        with contextlib.suppress(ConnectionError):
            while piece := client.socket.recv(1000):
                data += piece
        return data


@pytest.mark.clear("with TLS a client is refused without a response")
def test_connections(kind, tree):
    with serving(tree, "[sweet]\nconnections-per-client=3\nthreads=2\n", kind=kind) as server:
        clients = [Client(server.port, source="127.0.0.2") for _ in range(3)]
        assert all(map(is_open, clients))
        for _ in range(5):
            answer = refused(server.port, "127.0.0.2")
            assert answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 1\r\n" in answer
        # Others are not affected; open connections continue.
        assert ask(server.port, "/free/", "127.0.0.3").status == 200
        assert all(map(is_open, clients))
        clients.pop().close()
        # After one is closed, one more is accepted.
        server.wait_status(lambda status: status["connections"]["open"] <= 3)
        clients.append(Client(server.port, source="127.0.0.2"))
        assert is_open(clients[-1])
        assert refused(server.port, "127.0.0.2").startswith(b"HTTP/1.1 503 ")
        for client in clients:
            client.close()


def test_no_limit_of_connections(tree):
    with serving(tree, "[sweet]\n") as server:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(server.port)) for _ in range(200)]
            assert all(map(is_open, clients))
