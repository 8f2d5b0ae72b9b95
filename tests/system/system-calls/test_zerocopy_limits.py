# SPDX-License-Identifier: MIT
"""Zero-copy sends of a server that may lock no memory, and from the memory of a worker that
removes its pages, overwrites it or unmaps it."""

import resource

import pytest

from client import Client, Closed, request
from files import KB, pattern, write
from server import OBEY, running, sanitized
from test_pin import limited

LARGE = 200 * KB
SENDS = 60  # enough for a segment of 256 KiB to be registered; see nabc(7)
SMALL_BUFFER = 32 * KB  # of a client that does not read
# To a client of another address, as to another machine, the server tries zero-copy.
ELSEWHERE = "127.0.0.2"
NO_SENDS = "memory for zero-copy sends cannot be locked"
NO_BLOCKS = "no more memory may be locked"
UNPRIVILEGED = limited(0)[2:]  # the limit counts for root, too


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "root" / "large", pattern(LARGE))
    return tmp_path / "root"


def serve(kind, root, method, *options, **how):
    """Only a server with io_uring sends without a copy."""
    return running(kind, root, "--threads", 1, "--send-method",
                   method if kind == "uring" else "auto", *options, **how)


def send_often(client):
    for _ in range(SENDS):
        assert client.get("/large").body == pattern(LARGE)


@pytest.mark.parametrize("method", ["auto", "zerocopy"])
@pytest.mark.parametrize("size", [0, 64 * KB])
def test_memlock(kind, root, size, method):
    """All is served, and one line for each says what needs locked memory."""
    with serve(kind, root, method, "--cache-size", "4M", prefix=UNPRIVILEGED) as server, \
            Client(server.port, 10 * LARGE, source=ELSEWHERE) as client:
        pinned = server.status()["process"]["pinned"]
        # Newer kernels lock the memory of a ring, too: the loop has its own already.
        resource.prlimit(server.pid, resource.RLIMIT_MEMLOCK, (size, size))
        send_often(client)
        status = server.status()
        transmit = status["transmit"]
        assert transmit["zerocopy"]["sends"] == transmit["registered_bytes"] == 0
        declined = transmit["zerocopy_memory"] > 0
        assert declined == (kind == "uring")
        failed = transmit["registrations_failed"] > 0
        assert failed == (kind == "uring" and method == "zerocopy")
        assert status["process"]["pinned"] == pinned
        assert server.errors.count(NO_SENDS, least=declined) == declined
        assert server.errors.count(NO_BLOCKS, least=failed) == failed


@pytest.mark.parametrize("size", [0, 64 * KB])
def test_memlock_at_start(root, size):
    """A kernel that locks the memory of rings gives the loop none, which the first line states;
    perhaps the cache has a small one."""
    with running("uring", root, "--io", "auto", "--cache-size", "4M",
                 prefix=limited(size)) as server, \
            Client(server.port, 10 * LARGE, source=ELSEWHERE) as client:
        send_often(client)
        status = server.status()
        assert "no io_uring" in server.ready or status["io"] == "io_uring"
        declined = status["transmit"]["zerocopy_memory"] > 0
        assert server.errors.count(NO_SENDS, least=declined) == declined


@pytest.mark.parametrize("registered", ["on", "off"])
def test_registered_memory(kind, root, registered):
    """The experiment's key: with off, no block is registered, however much is sent from it."""
    with serve(kind, root, "zerocopy", "--cache-size", "4M", "--registered-memory",
               registered) as server, Client(server.port, 10 * LARGE) as client:
        assert ("memory not registered" in server.ready) == (registered == "off")
        send_often(client)
        transmit = server.status()["transmit"]
        assert (transmit["zerocopy"]["sends"] > 0) == (kind == "uring")
        assert (transmit["registered_bytes"] > 0) == (kind == "uring" and registered == "on")


def bytes_of(client, length):
    """Returns what arrives of a body."""
    try:
        return client.take(length)
    except Closed as closed:
        return closed.data


# What the worker does, and the bytes that its page may have then.
ABUSES = {"punch": b"p\0", "overwrite": b"p\xee"}
if not sanitized():
    # A sanitizer would report the worker's access to what it unmapped.
    ABUSES["unmap"] = b"p"


@pytest.mark.parametrize("abuse", ABUSES)
def test_worker(kind, root, abuse):
    """A page of the worker and a file are in flight to clients that do not read. Then others
    get right bytes, and nothing of the worker's memory remains pinned."""
    with serve(kind, root, "zerocopy", "--cache-size", "16M", "--worker", f"/obey={OBEY}",
               "--workers", 1, "--worker-memory", "1M") as server:
        pinned = server.status()["process"]["pinned"]
        with Client(server.port, 10 * LARGE) as client, \
                Client(server.port, SMALL_BUFFER) as slow, \
                Client(server.port, SMALL_BUFFER) as other:
            for _ in range(3 * SENDS):
                assert client.get(f"/obey/page?{LARGE}").body == b"p" * LARGE
            slow.send(request(f"/obey/page?{LARGE}"))
            assert b" 200 " in slow.head()
            other.send(request("/large"))
            assert b" 200 " in other.head()
            assert client.get(f"/obey/{abuse}").status in (200, 502)
            assert set(bytes_of(slow, LARGE)) <= set(ABUSES[abuse])
            assert other.take(LARGE) == pattern(LARGE)
            assert server.errors.wait("has ended")
            assert client.get("/large").body == pattern(LARGE)
            assert client.get(f"/obey/page?{LARGE}").body == b"p" * LARGE
        server.wait_status(lambda status: status["process"]["pinned"] ==
                           pinned + status["transmit"]["registered_bytes"])
