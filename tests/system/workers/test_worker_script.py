# SPDX-License-Identifier: MIT
"""Workers that a script starts: with exec they are the process that the server knows."""

import pytest

from client import Client
from files import MB, pattern
from server import OBEY
from test_pools import pool
from test_worker_users import config, root_alone, run

STRANGER = (r"worker process (\d+) is not the process that was started as a worker, which is (\d+): "
            "its calls are refused, .* exec")


def script(config, text):
    path = config.folder / "worker.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def post(server, size):
    data = pattern(size)
    with Client(server.port) as client:
        client.send(b"POST /a/echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size + data)
        got = client.response()
    return got.status == 200 and got.body == data


@pytest.mark.parametrize("keys", [
    {}, {"directory": "/"}, pytest.param({"user": "nobody"}, marks=root_alone)])
def test_without_exec(config, run, keys):
    """It is reported before the first request; a request without a body is served."""
    server = run(pool(command=script(config, f"{OBEY}; exit $?"), processes=1, **keys))
    assert server.errors.wait(STRANGER), server.errors.text()
    with Client(server.port) as client:
        assert client.get("/a/header").body == b"obeyed\n"
    assert not post(server, MB)
    assert server.errors.count(STRANGER) == 1


@pytest.mark.parametrize("data_path", ["nabc", "posix"])
def test_each_is_reported(config, run, data_path):
    """Two pools, and the successors of their processes."""
    path = script(config, f"{OBEY}; exit $?")
    server = run(pool(command=path, processes=2) + pool("more", command=path, processes=1),
                 f"data-path={data_path}")
    assert server.errors.wait(STRANGER, 3)
    config.reload(server)
    assert server.errors.wait(STRANGER, 6)


def test_with_exec(config, run):
    server = run(pool(command=script(config, f"exec {OBEY}"), processes=1))
    assert post(server, MB)
    assert not server.errors.count(STRANGER)
