# SPDX-License-Identifier: MIT
"""How workers end: they are asked to first, and what they have started ends with them."""

import os
import signal

import pytest

from client import fetch
from server import Process, Server, children_of, name_of
from test_cgi import gone
from test_pools import pool, status_pool
from test_worker_users import config, root_alone, run

ENDS = r"worker-obey: \d+ ends"
KILLED = r"worker app\[\d\] \(pid \d+\) does not end: killing it"
BY = [{}, {"directory": "/"}, pytest.param({"user": "nobody"}, marks=root_alone)]


def pids(server):
    return {process["pid"] for process in status_pool(server)["processes"]} - {0}


def replaced(server, before, count):
    server.wait_status(lambda status: all(
        process["pid"] not in before | {0}
        for process in status["workers"]["pools"][0]["processes"]))
    assert len(pids(server)) == count


@pytest.mark.parametrize("by", BY)
def test_asked_at_reload_and_end(config, run, by):
    """Each of two workers, at three reloads and the end of the server: none is killed."""
    server = run(pool(processes=2, environment="OBEY_END=say", **by))
    for _ in range(3):
        before = pids(server)
        config.reload(server)
        replaced(server, before, 2)
    assert server.errors.wait(ENDS, 6), server.errors.text()
    server.send_signal(signal.SIGTERM)
    server.finished()
    assert server.errors.count(ENDS) == 8
    assert not server.errors.count(KILLED)


@pytest.mark.parametrize("by", BY)
def test_asked_after_its_requests(config, run, by):
    server = run(pool(processes=1, max_requests=1, environment="OBEY_END=say", **by))
    assert fetch(server.port, "/a/header").body == b"obeyed\n"
    assert server.errors.wait(ENDS)


@pytest.mark.parametrize("by", BY)
def test_killed_after_the_timeout(config, run, by):
    """Its successor does not wait for that; no loop does; its children end with it."""
    fifo = config.folder / "never"
    os.mkfifo(fifo)
    config.folder.chmod(0o755)
    fifo.chmod(0o666)
    server = run(pool(processes=1, environment=f"OBEY_END={fifo}", **by),
                 "threads=1\nstop-timeout=2s")
    before = pids(server)
    child = Process(int(fetch(server.port, "/a/child").body))
    config.reload(server)
    assert server.errors.wait(ENDS)
    replaced(server, before, 1)
    assert fetch(server.port, "/a/header").body == b"obeyed\n"
    assert not server.errors.count(KILLED) and not child.ended(0)
    assert server.errors.wait(KILLED)
    assert child.ended()
    child.close()
    assert all(gone(pid) for pid in before)
    # The same at the end of the server; another signal ends the wait.
    config.write(pool(processes=1, environment=f"OBEY_END={fifo}", **by) + "[path /a]\npool=app\n",
                 "threads=1\nstop-timeout=1h")
    before = pids(server)
    config.reload(server)
    replaced(server, before, 1)
    assert fetch(server.port, "/a/header").body == b"obeyed\n"  # else it ends before it can say so
    last = before | pids(server)
    server.send_signal(signal.SIGTERM)
    assert server.errors.wait(ENDS, 3)
    server.send_signal(signal.SIGTERM)
    server.finished()
    assert all(gone(pid) for pid in last)


@pytest.mark.parametrize("how", ["exits", "crashes", "reload", "end"])
@pytest.mark.parametrize("by", BY)
def test_children_end_with_it(config, run, by, how):
    server = run(pool(processes=1, **by))
    (pid,) = pids(server)
    children = [Process(int(fetch(server.port, "/a/child").body)) for _ in range(2)]
    if how == "exits":
        fetch(server.port, "/a/exit")
    elif how == "crashes":
        os.kill(pid, signal.SIGABRT)
    elif how == "reload":
        config.reload(server)
    else:
        server.stop()
    for child in children:
        assert child.ended(), name_of(child.pid)
        child.close()
    assert gone(pid)


@pytest.mark.parametrize("by", BY)
def test_children_end_with_a_killed_server(kind, config, by):
    config.write(pool(processes=1, **by) + "[path /a]\npool=app\n")
    server = Server(kind, None, "--config", config.path, listen=None)
    try:
        processes = [Process(int(fetch(server.port, f"/a/{what}").body))
                     for what in ("pid", "child", "child")]
    finally:
        server.kill()
    for process in processes:
        assert process.ended()
        process.close()


def test_guard_is_not_needed(config, run):
    """It may be killed; the server serves, and says what is lost when it matters."""
    server = run(pool(processes=1))
    (guard,) = [pid for pid in children_of(server.pid) if name_of(pid) == "sweet: guard"]
    process = Process(guard)
    process.kill()
    assert process.ended()
    process.close()
    config.reload(server)
    assert server.errors.wait("the process that guards the workers cannot be told of them")
    assert fetch(server.port, "/a/header").body == b"obeyed\n"
