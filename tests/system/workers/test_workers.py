# SPDX-License-Identifier: MIT
"""Worker processes: how many, their output, and the handling of their exits."""

import os
import signal
import time

import pytest

from client import Client, fetch, request
from files import KB, pattern, write
from server import BUILD, GENERATE, OBEY, TIMEOUT, Process, Server, running

TOLD = os.path.join(BUILD, "tests", "system", "worker-told")


@pytest.fixture
def start_workers(kind, start, tmp_path):
    write(tmp_path / "file", b"a file\n")

    def begin(*options, **how):
        return start(tmp_path, *options, **how)

    return begin


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = tmp_path_factory.mktemp("workers")
    write(root / "file", b"a file\n")
    with running(kind, root, "--worker", f"/obey={OBEY}") as server:
        yield server


def pid_of(port, target="/obey/pid"):
    return int(fetch(port, target).body)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_number(start_workers, number):
    server = start_workers("--worker", f"/obey={OBEY}", "--workers", number)
    present = server.workers()
    assert len(present) == number
    assert pid_of(server.port) in present


def test_default_is_two_for_each_prefix(start_workers):
    server = start_workers("--worker", f"/obey={OBEY}", "--worker", f"/generate={GENERATE}")
    assert len(server.workers()) == 4
    assert pid_of(server.port) in server.workers()
    assert len(fetch(server.port, "/generate?size=10").body) == 10
    assert fetch(server.port, "/file").body == b"a file\n"


def test_longer_prefix_wins(start_workers):
    server = start_workers("--worker", f"/a={OBEY}", "--worker", f"/a/b={GENERATE}")
    assert pid_of(server.port, "/a/pid") in server.workers()
    assert len(fetch(server.port, "/a/b?size=5").body) == 5
    assert fetch(server.port, "/a/bc").status == 404


def test_variables(server):
    got = fetch(server.port, "/obey/x/../variable?q=%20&r", fields="X-Test: one\r\nx-test: two\r\n")
    assert got.body.decode().splitlines() == [
        "REQUEST_METHOD=GET", "SCRIPT_NAME=/obey", "PATH_INFO=/variable", "QUERY_STRING=q=%20&r",
        "HTTP_X_TEST=one, two", "REMOTE_ADDR=127.0.0.1", "AUTH_TYPE=(none)", "REMOTE_USER=(none)",
        "HTTP_AUTHORIZATION=(none)",
    ]
    assert got["Content-Type"] == "application/octet-stream"


def test_header_lines(server):
    got = fetch(server.port, "/obey/header")
    assert (got["X-Obeyed"], got["Content-Type"], got.body) == ("yes", "text/x-obeyed", b"obeyed\n")
    # They are for the server, and workers cannot use them.
    assert "X-Sendfile" not in got and "X-Accel-Redirect" not in got


def test_kept_unit(server):
    with Client(server.port) as client:
        for _ in range(20):
            assert client.get("/obey/kept").body == b"the same each time\n"


def test_list_of_units(server):
    body = b"a line of three\nthe middle one\na line of three\n"
    with Client(server.port) as client:
        for _ in range(20):
            got = client.get("/obey/list")
            assert (got.status, got.body) == (200, body)
            assert got["Content-Length"] == str(len(body))
        head = client.get("/obey/list", method="HEAD")
        assert (head.status, head.body, head["Content-Length"]) == (200, b"", str(len(body)))
        assert client.get("/obey/list").body == body


def test_status_without_body(server):
    got = fetch(server.port, "/obey/no-such-order")
    assert got.status == 404 and b"<h1>404 " in got.body


@pytest.mark.parametrize("order", ["garbage", "stray"])
def test_bad_answer(server, order):
    with Client(server.port) as client:
        for _ in range(5):
            got = client.get(f"/obey/{order}")
            assert got.status == 502
            assert b"smuggled" not in got.head + got.body
            assert "X-Obeyed" not in got
            assert client.get("/obey/pid").status == 200


def test_end_in_mid_request(start_workers):
    server = start_workers("--worker", f"/obey={OBEY}", "--workers", 1)
    (old,) = server.workers()
    with Client(server.port) as client:
        assert client.get("/obey/exit").status == 502
        # The next request waits for the next worker.
        new = int(client.get("/obey/pid").body)
        assert new != old
        assert client.get("/file").body == b"a file\n"
    assert server.known[old].ended()


def hanging(server, count):
    """Clients whose requests hang in a worker: it has taken them all from its queue, and has
    begun one.  Before that, the exit of the worker would pass that one on to the next."""
    before = server.status()["workers"]["requests"]
    begun = server.errors.count("worker-obey: hangs")
    clients = [Client(server.port) for _ in range(count)]
    for client in clients:
        client.send(request("/obey/hang"))
    server.wait_status(lambda status: status["workers"]["requests"] == before + count)
    assert server.errors.wait("worker-obey: hangs", begun + 1)
    return clients


def test_killed_in_mid_request(start_workers):
    """Its current request ends with it; the next worker gets the others, which end with the
    third one."""
    server = start_workers("--worker", f"/obey={OBEY}", "--workers", 1)
    (old,) = server.workers()
    clients = hanging(server, 10)
    for number in (1, 2, 3):
        assert server.errors.wait("worker-obey: hangs", number)
        (process,) = server.workers().values()
        process.kill()
    assert [client.response().status for client in clients] == [502] * 10
    # There is a pause before the fourth one.
    server.wait_status(lambda status: status["workers"]["pools"][0]["processes"][0]["up"])
    for client in clients:
        new = int(client.get("/obey/pid").body)
        assert new != old
        client.close()
    assert list(server.workers()) == [new]


def test_others_go_on_when_one_hangs(start_workers):
    server = start_workers("--worker", f"/obey={OBEY}", "--workers", 2, "--threads", 1)
    (stuck,) = hanging(server, 1)
    with Client(server.port) as client:
        assert client.get("/file").body == b"a file\n"
        pids = {int(client.get("/obey/pid").body) for _ in range(10)}
        assert len(pids) == 1
        (free,) = pids
        (busy,) = set(server.workers()) - pids
        server.workers()[busy].kill()
        assert stuck.response().status == 502
        assert stuck.get("/file").body == b"a file\n"
        stuck.close()
        assert int(client.get("/obey/pid").body) in server.workers()


@pytest.mark.parametrize("kind", ["epoll"], indirect=True)  # all pauses, and no kind's own
def test_idle_process_is_found(start_workers, tmp_path):
    """No request waits behind a long one of another loop, whichever loop has it."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    server = start_workers("--worker", f"/told={TOLD}", "--workers", 2, "--threads", 2)

    def is_taken(status):
        processes = status["workers"]["pools"][0]["processes"]
        return sum(process["in_flight"] for process in processes) == 1

    with Client(server.port) as long:
        long.send(request(f"/told?wait={fifo}"))
        server.wait_status(is_taken)
        # Enough of them for both loops.
        for _ in range(24):
            assert fetch(server.port, "/told?size=1").status == 200
        fifo.write_bytes(b"x")
        assert long.response().status == 200


class Held:
    """A pool of two processes, each with a request that ends when the test says so; of two
    loops, whose further requests can only wait behind those."""

    def __init__(self, start, folder, in_flight, *more, threads=2, first="wait"):
        path = folder / "sweet.conf"
        path.write_text(
            f"[sweet]\nlisten=127.0.0.1:0\nroot={folder}\nthreads={threads}\n[pool app]\n"
            f"command={OBEY}\nprocesses=2\nin-flight={in_flight}\nqueue-timeout={TIMEOUT}s\n"
            "[path /obey]\npool=app\n" + "".join(f"{line}\n" for line in more)
        )
        self.server = start(None, "--config", path, listen=None)
        self.sent = 0
        self.fifos = [folder / "one", folder / "other"]
        for fifo in self.fifos:
            os.mkfifo(fifo)
        self.held = [self.send(f"/obey/{how}?{fifo}")
                     for how, fifo in zip((first, "wait"), self.fifos)]
        # Before that, a process could begin a request of another loop.
        assert self.server.errors.wait("worker-obey: waits", 2)

    def send(self, target, body=None):
        """With a client of its own, once it is in the pool; nothing else may end meanwhile."""
        client = Client(self.server.port)
        if body is None:
            client.send(request(target))
        else:
            client.send(request(target, "POST", f"Content-Length: {len(body)}\r\n") + body)
        self.sent += 1
        self.server.wait_status(lambda status: self.present(status) == self.sent)
        return client

    def present(self, status):
        (pool,) = status["workers"]["pools"]
        return pool["waiting"] + sum(process["in_flight"] for process in pool["processes"])

    def release(self, which):
        """Returns the pid of the process that had it."""
        self.fifos[which].write_bytes(b"x")
        with self.held[which] as client:
            got = client.response()
        assert got.status == 200
        return int(got.body)

    def await_idle(self):
        """Nothing is left behind, and each request was counted once."""
        self.server.wait_status(lambda status: (
            self.present(status), status["cache"]["units"], status["workers"]["requests"],
            status["workers"]["failures"]
        ) == (0, 0, self.sent, 0))


@pytest.mark.parametrize("in_flight", [256, 3, 1])
@pytest.mark.parametrize("which", [0, 1])
def test_waiting_requests_move(kind, start, tmp_path, which, in_flight):
    """Requests queued behind both go to the first process that is free, whichever loop has them
    and whichever process they were queued for."""
    held = Held(start, tmp_path, in_flight)
    waiting = [held.send("/obey/pid") for _ in range(16)]
    free = held.release(which)
    for client in waiting:
        got = client.response()
        assert (got.status, int(got.body)) == (200, free)
        client.close()
    assert held.release(1 - which) != free
    held.await_idle()
    assert held.server.errors.count("has ended") == 0


def test_waiting_bodies_move(kind, start, tmp_path):
    """With their bodies, either complete or with one piece received."""
    held = Held(start, tmp_path, 256, "max-body=0")
    sizes = [1, 1000, KB, 300 * KB, 1200 * KB, 1500 * KB + 1] * 2
    waiting = [(held.send("/obey/echo", pattern(size, size)), size) for size in sizes]
    held.release(0)
    for client, size in waiting:
        got = client.response()
        assert (got.status, got.body) == (200, pattern(size, size))
        client.close()
    held.release(1)
    held.await_idle()


def test_waiting_requests_whose_clients_have_gone(kind, start, tmp_path):
    """They end with the others, although their process still has the long one."""
    held = Held(start, tmp_path, 256)
    waiting = [held.send("/obey/pid") for _ in range(12)]
    for client in waiting[::2]:
        client.close()
    free = held.release(0)
    for client in waiting[1::2]:
        assert int(client.response().body) == free
        client.close()
    held.server.wait_status(lambda status: held.present(status) == 1)
    held.release(1)


def test_worker_begins_with_what_does_not_move(kind, start, tmp_path):
    """If all are busy for long, each process handles the requests queued for it."""
    held = Held(start, tmp_path, 256)
    waiting = [held.send("/obey/pid") for _ in range(8)]
    pids = {held.release(0), held.release(1)}
    for client in waiting:
        assert int(client.response().body) in pids
        client.close()
    held.await_idle()


def test_worker_that_denies_what_it_answers(kind, start, tmp_path):
    """It is killed when the server would withdraw that one; requests that waited behind it are
    served."""
    held = Held(start, tmp_path, 256, threads=1, first="back")
    waiting = [held.send("/obey/pid") for _ in range(8)]
    free = held.release(1)
    assert held.server.errors.wait("broke the queue protocol")
    for client in waiting:
        got = client.response()
        assert got.status == 200
        assert int(got.body) == free or int(got.body) in held.server.workers()
        client.close()
    assert held.held[0].socket.recv(1 << 16).startswith(b"HTTP/1.1 200")
    assert held.held[0].at_end()
    held.held[0].close()


def test_worker_that_ends_at_once(start_workers, clock):
    """The server survives, refuses requests in the end, and does not restart processes in a
    rush."""
    began, moved, said = time.monotonic(), 0, []
    server = start_workers("--worker", "/false=/bin/false", "--workers", 1, "--threads", 1,
                           clock=clock)
    with Client(server.port) as client:
        client.send(request("/false"))
        # Withdrawn from workers that exited, a request starts to wait again.
        for ends in range(1, 20):
            assert server.errors.wait(r"worker /false\[0\] .* has ended", ends)
            server.status()
            if client.readable():
                got = client.response()
                said.append(got.status)
                if got.status == 503:
                    break
                assert got.status == 502
                assert client.get("/file").body == b"a file\n"
                client.send(request("/false"))
            pause = min(0.2 * 2**(ends - 1), 10)
            server.forward(1.1 * pause)
            moved += 1.1 * pause if clock.plan else 0
    assert said[-1] == 503
    assert got["Retry-After"]
    # Between them were pauses of 200, 400, 800 ms and so on, all of which must have passed.
    ended = server.errors.count("has ended")
    pauses = sum(min(0.2 * 2**i, 10) for i in range(ended - 1))
    assert pauses <= moved + time.monotonic() - began


def test_program_that_is_no_worker(start_workers):
    """It reads and writes like a filter and never attaches: other requests are served."""
    server = start_workers("--worker", "/cat=/bin/cat", "--worker", f"/obey={OBEY}")
    assert fetch(server.port, "/file").body == b"a file\n"
    assert pid_of(server.port) in server.workers()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_all_end_with_the_server(start_workers, number):
    server = start_workers("--worker", f"/obey={OBEY}", "--worker", f"/generate={GENERATE}")
    children = [Process(pid) for pid in server.workers()]
    assert len(children) == 4
    server.stop(number)
    for child in children:
        assert child.ended(0), "it ended before its server did"
        child.close()


def test_all_end_when_the_server_is_killed(kind, tmp_path):
    server = Server(
        kind, tmp_path, "--worker", f"/obey={OBEY}", "--worker", f"/generate={GENERATE}"
    )
    try:
        clients = hanging(server, 1)
        children = list(server.workers().values())
        assert len(children) == 4
    finally:
        server.kill()
    for child in children:
        assert child.ended()
        child.close()
    for client in clients:
        client.close()
