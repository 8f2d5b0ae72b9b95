# SPDX-License-Identifier: MIT
"""Many concurrent requests by wrk: no errors, and the status counts them all."""

import itertools
import re
import signal
import subprocess
import threading

import pytest

from client import Client
from files import KB, MB, pattern, write
from server import GENERATE, SCALE, TIMEOUT, Process, running


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("load")
    write(root / "1k", pattern(KB))
    write(root / "1m", pattern(MB))
    return root


@pytest.fixture(scope="module")
def server(kind, root):
    with running(kind, root) as server:
        yield server


@pytest.fixture(scope="module")
def worker_server(kind, root):
    with running(kind, root, "--worker", f"/generate={GENERATE}") as server:
        yield server


def wrk(server, target, connections, *more):
    said = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", "-d1s", "--timeout", f"{TIMEOUT}s", *more,
         server.url + target],
        capture_output=True, text=True, timeout=TIMEOUT, check=True,
    ).stdout
    assert "Socket errors" not in said, said
    assert "Non-2xx" not in said, said
    return int(re.search(r"(\d+) requests in ", said)[1])


def loaded(server, target, length, connections):
    """The requests of wrk are answered and counted; at its end there may be one more for each
    connection."""
    before, asked = server.status(), server.asked
    requests = wrk(server, target, connections)
    assert requests > 0
    # Its connections are closed, and the last responses with them.
    after = server.wait_status(
        lambda status: status["connections"]["open"] <= before["connections"]["open"]
        and status["responses"]["2xx"] - before["responses"]["2xx"] > requests
    )
    # A status does not count itself, but all earlier ones since the first.
    asked = server.asked - asked
    answers = after["responses"]["2xx"] - before["responses"]["2xx"] - asked
    assert requests <= answers <= requests + connections + 1
    assert after["responses"]["4xx"] == before["responses"]["4xx"]
    assert after["responses"]["5xx"] == before["responses"]["5xx"]
    assert after["bodies"]["bytes"] - before["bodies"]["bytes"] >= requests * length
    accepted = after["connections"]["accepted"] - before["connections"]["accepted"]
    assert accepted >= connections


@pytest.mark.parametrize("target, length", [("/1k", KB), ("/1m", MB)])
def test_files(server, target, length):
    loaded(server, target, length, 32 // SCALE)


def test_worker_pages(worker_server):
    loaded(worker_server, "/generate?size=10000", 10000, 32 // SCALE)
    assert worker_server.status()["workers"]["failures"] == 0


def test_many_connections(server):
    loaded(server, "/1k", KB, 300 // SCALE)


def test_many_connections_to_workers(worker_server):
    loaded(worker_server, "/generate?size=100000", 100000, 300 // SCALE)
    assert worker_server.status()["workers"]["failures"] == 0


def test_idle_connections_cost_others_nothing(server):
    idle = [Client(server.port) for _ in range(1000 // SCALE)]
    try:
        with Client(server.port) as client:
            assert client.get("/1k").body == pattern(KB)
        server.wait_status(lambda status: status["connections"]["open"] >= len(idle))
        for client in idle[::50]:
            assert client.get("/1k").body == pattern(KB)
    finally:
        for client in idle:
            client.close()
    server.wait_status(lambda status: status["connections"]["open"] < len(idle))


def test_signals_all_the_time(kind, root, tmp_path):
    """Signals that it handles, those that it ignores, and stops: no request is affected."""
    numbers = [signal.SIGUSR1, signal.SIGHUP, signal.SIGCHLD, signal.SIGWINCH, signal.SIGURG,
               signal.SIGPIPE, signal.SIGSTOP, signal.SIGCONT]
    over = threading.Event()

    def bother(process):
        for number in itertools.cycle(numbers):
            process.signal(number)
            if over.wait(0.002) and number == signal.SIGCONT:
                return

    with running(kind, root, "--worker", f"/generate={GENERATE}",
                 "--access-log", tmp_path / "log") as server:
        process = Process(server.pid)
        thread = threading.Thread(target=bother, args=(process,))
        thread.start()
        try:
            for target in ("/1k", "/1m", "/generate?size=10000"):
                wrk(server, target, 32 // SCALE)
        finally:
            over.set()
            thread.join()
            process.close()
        assert server.status()["workers"]["failures"] == 0
