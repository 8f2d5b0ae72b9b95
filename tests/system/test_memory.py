# SPDX-License-Identifier: MIT
"""What the server needs besides its cache, with the defaults."""

import re

import pytest

from client import Client, fetch
from files import KB, MB, pattern, write
from server import GENERATE, UNDER, Server, sanitized

if UNDER or sanitized():
    pytest.skip("the memory of a sanitizer or Valgrind is not the server's",
                allow_module_level=True)


def resident(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) * KB


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
