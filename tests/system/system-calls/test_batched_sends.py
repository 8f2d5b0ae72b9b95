# SPDX-License-Identifier: MIT
"""Small responses of many connections leave together, by the system call that waits."""

import contextlib
import signal

import pytest

from client import Client, request
from files import KB, pattern, write
from server import GENERATE, SCALE, running

CONNECTIONS = 64
ROUNDS = 16 // SCALE
SIZES = {"1k": KB, "10k": 10 * KB}


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = tmp_path_factory.mktemp("batched")
    for name, size in SIZES.items():
        write(root / name, pattern(size))
    with running(kind, root, "--threads", 1, "--worker", f"/generate={GENERATE}") as server:
        yield server


def calls(status):
    return status["loops"]["waits"] + status["loops"]["sends"]


def rounds(server, target, size):
    """Requests that all arrive while the server is stopped, so that it meets them at once.

    Returns the status before and after."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server.port)) for _ in range(CONNECTIONS)]
        for client in clients:
            assert len(client.get(target).body) == size
        before = server.status()
        for _ in range(ROUNDS):
            server.send_signal(signal.SIGSTOP)
            for client in clients:
                client.send(request(target))
            server.send_signal(signal.SIGCONT)
            for client in clients:
                answer = client.response()
                assert answer.status == 200 and len(answer.body) == size
        return before, server.status()


@pytest.mark.parametrize("name", SIZES)
def test_static(kind, server, name):
    before, after = rounds(server, f"/{name}", SIZES[name])
    requests = CONNECTIONS * ROUNDS
    batched = after["loops"]["batched_sends"] - before["loops"]["batched_sends"]
    if kind == "uring":
        assert batched >= requests
        assert (calls(after) - calls(before)) / requests <= 0.2
    else:
        assert batched == 0
        assert after["loops"]["sends"] - before["loops"]["sends"] >= requests


@pytest.mark.parametrize("name", SIZES)
def test_dynamic(kind, server, name):
    before, after = rounds(server, f"/generate?size={SIZES[name]}", SIZES[name])
    batched = after["loops"]["batched_sends"] - before["loops"]["batched_sends"]
    # How many requests a worker answers at a time is its affair.
    assert (batched >= CONNECTIONS * ROUNDS) == (kind == "uring")
