# SPDX-License-Identifier: MIT
"""Responses of many connections leave together, by the system call that waits: small ones, and
those that are sent without a copy."""

import contextlib
import signal

import pytest

from client import Client, request
from files import KB, pattern, write
from server import GENERATE, SCALE, running
from stopped import stop

CONNECTIONS = 64
ROUNDS = 16 // SCALE
SIZES = {"1k": KB, "10k": 10 * KB}
LARGE = 100 * KB


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = tmp_path_factory.mktemp("batched")
    for name, size in SIZES.items():
        write(root / name, pattern(size))
    with running(kind, root, "--threads", 1, "--worker", f"/generate={GENERATE}") as server:
        yield server


def calls(status):
    return status["loops"]["waits"] + status["loops"]["sends"]


def rounds(server, target, size, buffer=None):
    """Requests that all arrive while the server is stopped, so that it meets them at once.

    Returns the status before and after."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server.port, buffer)) for _ in range(CONNECTIONS)]
        for client in clients:
            assert len(client.get(target).body) == size
        before = server.status()
        for _ in range(ROUNDS):
            stop(server.pid)
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


def test_zerocopy(kind, tmp_path):
    """The kernel copies on a loopback, but the calls are those of a network card."""
    write(tmp_path / "large", pattern(LARGE))
    with running(kind, tmp_path, "--threads", 1, "--send-method",
                 "zerocopy" if kind == "uring" else "auto") as server:
        # The client's window is larger than a response, so that no socket takes only a part.
        before, after = rounds(server, "/large", LARGE, buffer=10 * LARGE)
        batched = after["loops"]["batched_sends"] - before["loops"]["batched_sends"]
        if kind == "uring":
            assert batched >= CONNECTIONS * ROUNDS
            # How often the loop wakes for notifications depends on what else the machine does.
            sends = after["loops"]["sends"] - before["loops"]["sends"]
            assert sends <= CONNECTIONS * ROUNDS / 10
        else:
            assert batched == 0
