# SPDX-License-Identifier: MIT
"""Workers that ask to be replaced."""

import os
import threading

import pytest

from client import Client, fetch, request
from server import BUILD
from test_pools import config, pool, status_pool
from test_worker_users import root_alone

HEADS = os.path.join(BUILD, "tests", "system", "worker-heads")
ASKS = r"worker app\[\d\] \(pid \d+\) asks to be replaced"
ENDS = r"worker-heads: \d+ ends"
BAD = r"WARNING|ERROR|after a pause|killing it"
BY = [{}, pytest.param({"user": "nobody"}, marks=root_alone)]


@pytest.fixture
def run(config, start):
    config.folder.chmod(0o755)

    def begin(keys="", **settings):
        config.write(pool(command=HEADS, **settings) + "[path /a]\npool=app\n", keys)
        return start(None, "--config", config.path, listen=None)

    return begin


def pid_from(server, path="/a/pid"):
    got = fetch(server.port, path)
    assert got.status == 200, got
    return int(got.body)


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("when", ["replace", "before"])
def test_one_after_the_other(run, by, when):
    """No restart is delayed, and no fault is logged."""
    server = run(processes=1, **by)
    seen = {pid_from(server)}
    for i in range(1, 6):
        assert pid_from(server, f"/a/{when}") in seen
        assert server.errors.wait(ASKS, i), server.errors.text()
        assert server.errors.wait(ENDS, i), server.errors.text()
        seen.add(pid_from(server))
        assert len(seen) == i + 1
    assert not server.errors.count(BAD), server.errors.text()


def test_completes_what_it_has(run, config):
    """It continues with a response that it has begun; requests that come then wait for the next."""
    fifo = config.folder / "go"
    os.mkfifo(fifo)
    server = run("threads=1", processes=1)
    first = pid_from(server)
    with Client(server.port) as slow, Client(server.port) as other:
        slow.send(request(f"/a/last?{fifo}"))
        assert server.errors.wait(ASKS), server.errors.text()
        server.status()  # by then its thread knows, too
        other.send(request("/a/pid"))
        fifo.write_bytes(b"!")
        got = slow.response()
        assert got.status == 200 and int(got.body) == first
        got = other.response()
        assert got.status == 200 and int(got.body) != first
    assert server.errors.wait(ENDS), server.errors.text()
    assert not server.errors.count(BAD), server.errors.text()


def test_others_serve_meanwhile(run, config):
    fifo = config.folder / "go"
    os.mkfifo(fifo)
    server = run("threads=1", processes=2)
    with Client(server.port) as slow:
        slow.send(request(f"/a/last?{fifo}"))
        assert server.errors.wait(ASKS), server.errors.text()
        server.status()
        pids = {pid_from(server) for _ in range(10)}
        fifo.write_bytes(b"!")
        assert int(slow.response().body) not in pids
    assert not server.errors.count(BAD), server.errors.text()


def test_under_load(run):
    """Several clients at once, while each tenth request replaces its worker."""
    server = run(processes=2)
    faults = []

    def ask(number):
        with Client(server.port) as client:
            for i in range(100):
                got = client.get("/a/replace" if (i + number) % 10 == 0 else "/a/pid")
                if got.status != 200:
                    faults.append(got.status)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert server.errors.count(ASKS) >= 2
    assert not server.errors.count(BAD), server.errors.text()


def test_at_once_is_a_failure(run):
    """One that asks before it has served a request would start again and again."""
    server = run(processes=1, environment="HEADS_AT_ONCE=1")
    assert server.errors.wait("starting again after a pause"), server.errors.text()
    assert status_pool(server)["processes"]
