# SPDX-License-Identifier: MIT
"""Workers and FastCGI applications whose user holds their start: only their pool waits, neither the
main loop nor an event loop."""

import os
import signal

import pytest

from client import Client, fetch, request
from held import Held, is_read
from server import OBEY, Process, children_of, name_of
from test_pools import pool, status_pool
from test_worker_end import pids
from test_worker_users import config, root_alone, run

PATH_A = "[path /a]\npool=app\n"  # which run() adds
BY = [{"directory": "/"}, pytest.param({"user": "nobody"}, marks=root_alone)]


def pools(script, by):
    return (pool(command=str(script), processes=2, queue_timeout="60s", **by)
            + pool("other", processes=1, directory="/") + "[path /b]\npool=other\n")


@pytest.fixture
def script(config):
    path = config.folder / "worker.sh"
    path.write_text(f"#!/bin/sh\nexec {OBEY}\n")
    path.chmod(0o755)
    return path


def others_answer(config, server):
    """A file, the status, which the main thread serves, and another pool: also a new process."""
    before = pids_of(server, "other")
    for _ in range(3):
        assert fetch(server.port, "/file").body == b"a file\n"
        assert fetch(server.port, "/b/header").body == b"obeyed\n"
    fetch(server.port, "/b/exit")
    server.wait_status(lambda _: not {0, *before} & pids_of(server, "other"))
    assert fetch(server.port, "/b/header").body == b"obeyed\n"


def pids_of(server, name):
    return {process["pid"] for process in status_pool(server, name)["processes"]}


@pytest.mark.parametrize("by", BY)
def test_at_a_reload(config, run, script, by):
    server = run(pools(script, by), "threads=1")
    first = pids(server)
    assert is_read(first, "worker-obey")
    with Held(script) as lease:
        config.write(pools(script, by) + PATH_A, "threads=1")
        config.reload(server)
        lease.begun()
        others_answer(config, server)
        # One after the other: the second one serves until the first has a successor.
        assert fetch(server.port, "/a/header").body == b"obeyed\n"
        # The next configuration does not wait for it, either.
        config.reload(server)
        others_answer(config, server)
    server.wait_status(lambda _: not first & pids(server) and len(pids(server)) == 2)
    assert fetch(server.port, "/a/header").body == b"obeyed\n"


@pytest.mark.parametrize("by", BY)
def test_at_the_start(config, run, script, by):
    with Held(script) as lease:
        server = run(pools(script, by), "threads=1")
        lease.begun()
        others_answer(config, server)
        with Client(server.port) as client:
            client.send(request("/a/header"))
            others_answer(config, server)
            lease.release()
            assert client.response().body == b"obeyed\n"


@root_alone
def test_stopped(config, run, script):
    """By SIGSTOP, before it has become the program."""
    by = {"user": "nobody"}
    with Held(script) as lease:
        server = run(pools(script, by), "threads=1")
        lease.begun()
        (keeper,) = [pid for pid in children_of(server.pid) if name_of(pid) == "sweet: keeper"]
        (starter,) = children_of(keeper)
        stopped = [pid for pid in children_of(starter) if name_of(pid) == "sweet: starter"]
        assert len(stopped) == 2
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
    others_answer(config, server)
    with Client(server.port) as client:
        client.send(request("/a/header"))
        others_answer(config, server)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        assert client.response().body == b"obeyed\n"


@pytest.mark.parametrize("by", BY)
def test_end_of_the_pool_and_of_the_server(config, run, script, by):
    """A process that is held ends with its pool, and with the server."""
    with Held(script) as lease:
        server = run(pools(script, by), "threads=1")
        lease.begun()
        config.write(pool("other", processes=1, directory="/") + "[path /b]\npool=other\n",
                     "threads=1")
        config.reload(server)
        server.wait_status(lambda status: len(status["workers"]["pools"]) == 1)
        config.write(pools(script, by) + PATH_A, "threads=1")
        assert "restart" not in config.reload(server)
        keeper = next(pid for pid in children_of(server.pid) if name_of(pid) == "sweet: keeper")
        process = Process(keeper)
        server.stop()
        assert process.ended()
        process.close()
