# SPDX-License-Identifier: MIT
"""Requests that wait in a worker behind one that makes it exit: the next worker gets
them, and their clients only notice a delay."""

import contextlib
import hashlib
import signal
import socket
import struct
import threading

import pytest

from client import Client, fetch, request
from files import KB, MB, pattern
from server import OBEY
from stopped import stop


@pytest.fixture
def run(tmp_path, start):
    """run(keys...): a server of one thread with a pool of one worker that obeys."""

    def begin(threads=1, clock=None, **keys):
        keys = {"processes": 1, "in-flight": 4} | keys
        if clock:
            keys |= {"timeout": "1h", "queue-timeout": "1h"}
        path = tmp_path / "sweet.conf"
        path.write_text(
            f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\nthreads={threads}\nmax-body=0\n"
            f"[pool app]\ncommand={OBEY}\n"
            + "".join(f"{key}={value}\n" for key, value in keys.items())
            + "[path /a]\npool=app\n"
        )
        return start(None, "--config", path, listen=None, clock=clock)

    return begin


def skip_pauses(server, count):
    """The worker exits that often, and each time there is a pause before the next one."""
    for number in range(count):
        assert server.errors.wait("starting again", number + 1)
        # From 0.2 s on each pause is twice as long.
        server.forward(0.25 * 2**number)


def pool(status):
    (pool,) = status["workers"]["pools"]
    return pool


def process(status):
    (process,) = pool(status)["processes"]
    return process


def present(status):
    """Returns the requests in the pool, begun or not."""
    return process(status)["in_flight"] + pool(status)["waiting"]


def await_present(server, count):
    server.wait_status(lambda status: present(status) == count)


def await_idle(server, requests, failures):
    """Nothing is left behind, and all was counted once."""
    server.wait_status(lambda status: (
        present(status), process(status)["up"], status["cache"]["units"],
        status["workers"]["requests"], status["workers"]["failures"]
    ) == (0, True, 0, requests, failures))


def order(name, data=None):
    if data is None:
        return request(f"/a/{name}")
    return request(f"/a/{name}", "POST", f"Content-Length: {len(data)}\r\n") + data


@contextlib.contextmanager
def asleep(server):
    """The worker does nothing meanwhile; yields its process."""
    (worker,) = server.workers().values()
    stop(worker.pid)
    yield worker
    # It may have been killed.
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(worker.fd, signal.SIGCONT)


def send_all(server, orders):
    """One client for each, whose requests arrived in that order."""
    clients = []
    for text in orders:
        clients.append(Client(server.port))
        clients[-1].send(text if isinstance(text, bytes) else order(text))
        await_present(server, len(clients))
    return clients


def answers(clients):
    got = [client.response() for client in clients]
    for client in clients:
        client.close()
    return got


def statuses(clients):
    return [got.status for got in answers(clients)]


def test_behind_one_that_ends(run):
    """Four are in the worker, the third of which makes it exit, and five in the queue."""
    server = run()
    with asleep(server) as old:
        clients = send_all(server, ["pid", "pid", "exit", *["pid"] * 6])
    got = answers(clients)
    assert [answer.status for answer in got] == [200, 200, 502, *[200] * 6]
    assert {int(answer.body) for answer in got[:2]} == {old.pid}
    (new,) = server.workers()
    assert {int(answer.body) for answer in got[3:]} == {new} != {old.pid}
    status = server.status()
    assert process(status)["failures"] == 1 and process(status)["restarts"] == 1
    await_idle(server, 9, 1)


def test_order(run, clock):
    """The first one is also the first with the next worker, before those that were in no worker."""
    server = run(clock=clock)
    with asleep(server):
        clients = send_all(server, ["exit", "pid"] * 3)
    skip_pauses(server, 3)
    got = answers(clients)
    assert [answer.status for answer in got] == [502, 200] * 3
    assert server.errors.wait("has ended", 3)
    ended = [int(line.split("(pid ")[1].split(")")[0])
             for line in server.errors.lines if "has ended" in line]
    assert [int(answer.body) for answer in got[1::2]] == [*ended[1:], *server.workers()]


def test_behind_one_that_hangs(run):
    """It alone exceeds its time, however long the others were behind it."""
    server = run(timeout="1s")
    clients = send_all(server, ["hang", *["pid"] * 6])
    assert statuses(clients) == [504, *[200] * 6]
    assert server.errors.count("took too long to answer: ending it", 1) == 1
    await_idle(server, 7, 1)


def test_other_worker_takes_over(run):
    """The other worker has them at once, and all but one before the first one has exited."""
    server = run(processes=2)
    clients = [Client(server.port) for _ in range(8)]
    workers = server.workers()
    for worker in workers.values():
        stop(worker.pid)
    for number, client in enumerate(clients):
        client.send(order("pid"))
        server.wait_status(lambda status: number + 1 == sum(
            process["in_flight"] for process in pool(status)["processes"]))
    killed, left = workers.values()
    signal.pidfd_send_signal(left.fd, signal.SIGCONT)
    server.wait_status(lambda status: 1 == sum(
        process["in_flight"] for process in pool(status)["processes"]))
    killed.kill()
    got = answers(clients)
    assert [(answer.status, int(answer.body)) for answer in got] == [(200, left.pid)] * 8


def test_worker_that_had_begun_nothing(run):
    server = run()
    with asleep(server) as worker:
        clients = send_all(server, ["pid"] * 6)
        worker.kill()
    assert statuses(clients) == [200] * 6
    await_idle(server, 6, 0)


def test_threads(run):
    """In any order, one fails."""
    server = run(threads=2)
    with asleep(server):
        clients = send_all(server, ["pid"] * 3 + ["exit"] + ["pid"] * 8)
    assert sorted(statuses(clients)) == [200] * 11 + [502]
    await_idle(server, 12, 1)


def test_bodies(run):
    """Each piece is granted again, also in several pieces: only the first one was passed."""
    bodies = [pattern(size) for size in (1, 100, 300 * KB, MB, 3 * MB, 5 * MB)]
    server = run(**{"in-flight": 8})
    with asleep(server):
        clients = send_all(server, ["exit"])
        threads = []
        for body in bodies:
            clients.append(Client(server.port))
            threads.append(threading.Thread(
                target=clients[-1].send, args=(order("upload", body),), daemon=True))
            threads[-1].start()
            await_present(server, len(clients))
    first, *rest = answers(clients)
    assert first.status == 502
    for answer, body in zip(rest, bodies, strict=True):
        method, length, digest, _ = answer.body.decode().split()
        assert (method, int(length)) == ("POST", len(body))
        assert digest == hashlib.md5(body).hexdigest()
    for thread in threads:
        thread.join()
    await_idle(server, 1 + len(bodies), 1)


def test_behind_a_body_that_does_not_come(run):
    """The worker has taken them out of its queue while it waits, but begun none."""
    server = run()
    with Client(server.port) as slow:
        slow.send(b"POST /a/upload HTTP/1.1\r\nHost: test\r\nContent-Length: 9000000\r\n\r\n")
        slow.send(pattern(MB + 300 * KB))
        # It has the first piece, and requests more.
        server.wait_status(
            lambda status: present(status) == 1 and status["connections"]["reading"] == 1)
        (worker,) = server.workers().values()
        others = [Client(server.port) for _ in range(3)]
        for number, client in enumerate(others):
            client.send(order("pid"))
            await_present(server, number + 2)
        worker.kill()
        assert statuses(others) == [200] * 3
        assert slow.response().status == 502
    await_idle(server, 4, 1)


def test_client_that_has_gone(run):
    """It is not repeated."""
    server = run()
    with asleep(server):
        clients = send_all(server, ["exit", "pid", "exit", "pid"])
        clients[2].socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        clients.pop(2).close()
        server.wait_status(lambda status: status["connections"]["open"] == 4)
    assert statuses(clients) == [502, 200, 200]
    assert process(server.status())["restarts"] == 1
    await_idle(server, 4, 1)


@pytest.mark.parametrize("killers", [1, 2, 3, 5])
def test_again_and_again(run, clock, killers):
    """A request is passed to a third worker, and not to a fourth."""
    server = run(clock=clock, **{"in-flight": 16})
    with asleep(server):
        clients = send_all(server, ["exit"] * killers + ["pid"] * 4)
    skip_pauses(server, min(killers, 3))
    assert statuses(clients) == [502] * killers + [200 if killers < 3 else 502] * 4
    assert process(server.status())["restarts"] <= 3
    await_idle(server, killers + 4, killers + (4 if killers > 2 else 0))


def test_who_waits_in_the_queue(run, clock):
    """It was in no worker, so it can wait for any number of exits."""
    server = run(clock=clock, **{"in-flight": 1})
    with asleep(server):
        clients = send_all(server, ["exit"] * 4 + ["pid"] * 2)
    skip_pauses(server, 4)
    assert statuses(clients) == [502] * 4 + [200] * 2
    await_idle(server, 6, 4)


def test_queue_is_full_already(run):
    """An accepted request is not rejected later."""
    server = run(**{"in-flight": 4, "queue": 2})
    with asleep(server):
        clients = send_all(server, ["exit", *["pid"] * 5])
    assert statuses(clients) == [502, *[200] * 5]
    await_idle(server, 6, 1)


def test_pause_before_the_next(run):
    """A request that arrives meanwhile waits."""
    server = run()
    for _ in range(2):
        assert fetch(server.port, "/a/exit").status == 502
    assert fetch(server.port, "/a/pid").status == 200
    await_idle(server, 3, 2)


def test_worker_that_takes_all_back(run):
    """An impossible number is not trusted: nothing is repeated."""
    server = run()
    with Client(server.port) as client:
        for _ in range(300):
            assert client.get("/a/pid").status == 200
    with asleep(server):
        clients = send_all(server, ["pid", "forget", "pid", "pid"])
    assert statuses(clients) == [200, 502, 502, 502]
    assert server.errors.wait("its report of unprocessed requests is invalid")
    await_idle(server, 304, 3)
    assert process(server.status())["restarts"] == 1


def test_worker_that_denies_what_it_began(run):
    """A part of its response was sent: such a request is not repeated."""
    server = run()
    with asleep(server):
        clients = send_all(server, ["deny", "pid", "pid"])
    with clients.pop(0) as client:
        assert b"chunked" in client.head()
        with pytest.raises((AssertionError, ConnectionResetError)):
            client.more()
    assert statuses(clients) == [502, 502]
    assert server.errors.wait("its report of unprocessed requests is invalid")
    await_idle(server, 3, 3)


def test_worker_that_takes_one_back(run, clock):
    """It can have its own requests repeated, a few times, and no others."""
    server = run(clock=clock)
    with asleep(server):
        clients = send_all(server, ["again", "pid", "pid", "pid", "pid"])
    skip_pauses(server, 3)
    assert statuses(clients) == [502, 502, 502, 502, 200]
    assert process(server.status())["restarts"] == 3
    await_idle(server, 5, 4)
