# SPDX-License-Identifier: MIT
"""Pages that workers generate: bytes, refusals, and how the bytes were passed."""

import pytest

from client import Client, fetch
from files import MB
from server import GENERATE, running

LINE = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-\n"
SIZES = [0, 1, 4095, 4096, 4097, 100000, MB]


def page(size):
    return (LINE * (size // len(LINE) + 1))[:size]


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = tmp_path_factory.mktemp("generate")
    with running(kind, root, "--worker", f"/generate={GENERATE}") as server:
        yield server


@pytest.mark.parametrize("size", SIZES)
def test_bytes(server, size):
    for _ in range(3):
        got = fetch(server.port, f"/generate?size={size}")
        assert got.status == 200
        assert got.body == page(size)
        assert got["Content-Type"] == "text/plain"
        assert got["Cache-Control"] == "no-store"


@pytest.mark.parametrize("size", SIZES)
def test_head(server, size):
    with Client(server.port) as client:
        got = client.get(f"/generate?size={size}", "HEAD")
        assert (got.status, got["Content-Length"]) == (200, str(size))
        # The next response begins right after the head.
        assert client.get("/generate?size=10").body == page(10)


@pytest.mark.parametrize(
    "query",
    ["size=70000000", "size=1000000000000000", "size=99999999999999999999999", "size=abc",
     "size=12x", "size=", "size=-1", "size=%31", "size", "other=1", ""],
)
def test_refused(server, query):
    with Client(server.port) as client:
        got = client.get(f"/generate?{query}")
        assert got.status == 400
        assert b"<h1>400 " in got.body
        assert client.get("/generate?size=10").body == page(10)


def test_other_parameters(server):
    assert fetch(server.port, "/generate?a=b&size=77&c=size=9").body == page(77)


def test_kept_units(server):
    """More sizes than a worker keeps, so that units are destroyed and created again."""
    sizes = [10 + 4000 * number for number in range(12)]
    with Client(server.port) as client:
        for _ in range(3):
            for size in sizes:
                for _ in range(8):
                    assert client.get(f"/generate?size={size}&kept=1").body == page(size)
        assert client.get("/generate?size=70000000&kept=1").status == 400
        assert client.get("/generate?size=10&kept=2").body == page(10)


def test_cached_pages(server):
    """From the third request on no worker is involved."""
    before = server.status()["workers"]["requests"]
    with Client(server.port) as client:
        for _ in range(10):
            got = client.get("/generate?size=5000&cached=1")
            assert got.body == page(5000)
    assert server.status()["workers"]["requests"] - before == 2


def test_only_below_the_prefix(server):
    assert fetch(server.port, "/generate/more?size=5").body == page(5)
    assert fetch(server.port, "/generated?size=5").status == 404


def test_many_at_once(server):
    clients = [Client(server.port) for _ in range(20)]
    try:
        for round in range(5):
            for number, client in enumerate(clients):
                client.send(
                    b"GET /generate?size=%d HTTP/1.1\r\nHost: test\r\n\r\n"
                    % (number * 3001 + round)
                )
            for number, client in enumerate(clients):
                assert client.response().body == page(number * 3001 + round)
    finally:
        for client in clients:
            client.close()


def test_bodies_go_by_cache_id(server):
    before = server.status()
    with Client(server.port) as client:
        for size in SIZES:
            assert client.get(f"/generate?size={size}").body == page(size)
    after = server.wait_status(
        lambda status: status["bodies"]["bytes"] - before["bodies"]["bytes"] >= sum(SIZES)
    )
    grown = {
        key: after["workers"][key] - before["workers"][key]
        for key in ("requests", "message_bytes", "body_bytes_by_cache_id", "failures")
    }
    with_body = sum(size > 0 for size in SIZES)
    # The text of a status is a unit, too, if it is long enough.
    texts = after["requests"] - before["requests"] - len(SIZES)
    by_id = after["bodies"]["by_cache_id"] - before["bodies"]["by_cache_id"]
    assert with_body <= by_id <= with_body + texts
    assert grown["requests"] == len(SIZES)
    assert grown["body_bytes_by_cache_id"] == sum(SIZES)
    # Variables and header lines: the same for a byte and for a megabyte.
    assert 0 < grown["message_bytes"] < 2000 * len(SIZES)
    assert grown["failures"] == 0
