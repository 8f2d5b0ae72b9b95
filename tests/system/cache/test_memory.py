# SPDX-License-Identifier: MIT
"""The memory that the server needs besides its cache, with the defaults."""

import contextlib
import resource

import pytest

from client import Client, fetch, request
from files import MB, pattern, write
from memory_limit import limited
from server import GENERATE, UNDER, resident, running, sanitized

if UNDER or sanitized():
    pytest.skip("the memory of a sanitizer or Valgrind is not the server's",
                allow_module_level=True)


def test_idle_memory(kind, start, tmp_path):
    for number in range(20):
        write(tmp_path / str(number), pattern(MB, number))
    server = start(tmp_path, "--worker", f"/generate={GENERATE}")
    assert resident(server.pid) < 32 * MB
    with Client(server.port) as client:
        for number in range(20):
            assert client.get(f"/{number}").body == pattern(MB, number)
            assert client.get("/generate?size=100000").status == 200
    used = server.status()["cache"]["used"]
    assert used >= 20 * MB
    assert resident(server.pid) - used < 32 * MB


def test_clients_that_went_leave_nothing(start, tmp_path):
    write(tmp_path / "file", pattern(100))
    server = start(tmp_path)
    clients = [Client(server.port) for _ in range(500)]
    for client in clients:
        assert client.get("/file").status == 200
    for client in clients:
        client.close()
    server.wait_status(lambda status: status["connections"]["open"] == 1)
    before = resident(server.pid)
    for _ in range(4000):
        assert fetch(server.port, "/file").status == 200
    assert resident(server.pid) - before < MB


def test_default_size_in_a_cgroup(kind, tmp_path):
    """A quarter of 128 MB: more files than that, and clients that do not read, do not cause an
    OOM kill."""
    count, body = 160, pattern(MB)
    for number in range(count):
        write(tmp_path / str(number), body)
    with limited(128 * MB) as prefix, \
            running(kind, tmp_path, "--threads", "2", prefix=prefix) as server:
        assert server.errors.count(
            r"cache of 32M: cache-size is not set, and /sys/fs/cgroup\S+ allows 128M") == 1
        assert server.status()["cache"]["size"] == 32 * MB
        slow = [Client(server.port, 4096) for _ in range(16)]
        for number, client in enumerate(slow):
            client.send(request(f"/{number}"))
        clients = [Client(server.port) for _ in range(8)]
        for number in range(count):
            assert clients[number % 8].get(f"/{number}").body == body
        for client in clients + slow:
            client.close()


def test_default_number_of_connections_in_a_cgroup(tmp_path):
    """With 128 MB 1024, of 64 KB each; the configuration may say another number, or none."""
    said = r"at most 1024 connections: max-connections is not set, and /sys\S+ allows 128M"
    write(tmp_path / "file", b"here")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with limited(128 * MB) as prefix:
        for option, most in (None, 1024), ("--max-connections=7", 7), ("--max-connections=0", 0):
            with running("epoll", tmp_path, *filter(None, [option]), prefix=prefix) as server:
                assert server.errors.count(said) == (not option)
                assert server.status()["connections"]["limit"] == most
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            # One thread accepts in the order of connecting.
            with running("epoll", tmp_path, "--threads", 1, prefix=prefix) as server, \
                    contextlib.ExitStack() as stack:
                first, *_ = [stack.enter_context(Client(server.port)) for _ in range(1024)]
                with Client(server.port) as refused:
                    assert refused.response().status == 503
                assert first.get("/file").body == b"here"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_than_there_is(tmp_path):
    """A configured size is used, with a warning if it is not available."""
    more = r"a cache of 256M and workers with 64M may take more memory than there is: .* 128M"
    options = ["--worker", f"/generate={GENERATE}", "--worker-memory", "32M", "--cache-size"]
    with limited(128 * MB) as prefix:
        for size, warned in (("256M", 1), ("16M", 0)):
            with running("epoll", tmp_path, *options, size, prefix=prefix) as server:
                assert server.errors.count(more) == warned, server.errors.text()


def test_in_a_cgroup(kind, tmp_path):
    """Of 96 MB a cache of 32 leaves enough for the rest: there is no OOM kill."""
    for number in range(150):
        write(tmp_path / str(number), pattern(MB, number))
    with limited(96 * MB) as prefix, \
            running(kind, tmp_path, "--cache-size", "32M", "--threads", "2",
                    "--worker", f"/generate={GENERATE}", prefix=prefix) as server:
        clients = [Client(server.port) for _ in range(4)]
        for number in range(300):
            client = clients[number % 4]
            assert client.get(f"/{number % 150}").body == pattern(MB, number % 150)
            assert client.get(f"/generate?size={number * 10000}").status == 200
        for client in clients:
            client.close()
        assert server.status()["workers"]["failures"] == 0
