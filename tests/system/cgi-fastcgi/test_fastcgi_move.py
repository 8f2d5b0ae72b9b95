# SPDX-License-Identifier: MIT
"""FastCGI requests go to any idle process, whichever event loop has them: connections
move from loop to loop, and none is lost or duplicated meanwhile."""

import contextlib
import os
import shlex
import signal
import sys
import threading

import pytest

from client import request
from fastcgi import APPLICATION
from files import write
from responder import Application
from server import TIMEOUT, Process, running
from test_fastcgi import Client

# /hold/X continues when the FIFO X says so; /work takes a moment.
PROGRAM = APPLICATION + r"""
def answer(params):
    held = re.search(rb"PATH_INFO/hold/(.)", params)
    if held:
        name = held[1].decode()
        print("program: holds", name, flush=True, file=sys.stderr)
        open(os.path.join(sys.argv[1], name), "rb").read(1)
    if b"PATH_INFO/work" in params:
        time.sleep(0.002)
    if b"PATH_INFO/die" in params:
        os._exit(3)
    return b"\r\n%d" % os.getpid()

serve(answer)
"""

TELLING = 40  # requests that show which loop a client is on: more than those for the status


class Held:
    """A server whose clients are known by their loops, and a pool of processes that the test
    can block."""

    def __init__(self, server, folder, loops):
        self.server, self.folder = server, folder
        self.loops = [[] for _ in range(loops)]
        self.all = []
        self.fifos = {}

    def requests(self):
        return [thread["requests"] for thread in self.server.status()["each_thread"]]

    def clients(self, loop, count):
        """That many clients of the loop; the kernel chooses the loop of a connection."""
        while len(self.loops[loop]) < count:
            client = Client(self.server.port)
            self.all.append(client)
            before = self.requests()
            for _ in range(TELLING):
                assert client.get("/file").status == 200
            more = [now - then for now, then in zip(self.requests(), before)]
            self.loops[more.index(max(more))].append(client)
        taken, self.loops[loop] = self.loops[loop][:count], self.loops[loop][count:]
        return taken

    def hold(self, client, name):
        """Returns when a process has begun with it."""
        os.mkfifo(self.folder / name)
        # Opened before, so that no byte is lost if the process opens it later.
        self.fifos[name] = os.open(self.folder / name, os.O_RDWR)
        client.send(request(f"/app/hold/{name}"))
        assert self.server.errors.wait(f"program: holds {name}")

    def release(self, client, name):
        """Returns the pid of the process that was blocked."""
        os.write(self.fifos[name], b"x")
        got = client.response()
        assert got.status == 200
        return int(got.body)

    def close(self):
        for client in self.all:
            client.close()
        for fifo in self.fifos.values():
            os.close(fifo)

    def await_waiting(self, count):
        self.server.wait_status(lambda status: status["workers"]["pools"][0]["waiting"] == count)


@pytest.fixture
def held(kind, tmp_path):
    with contextlib.ExitStack() as stack:
        def start(processes, threads=2, keys="", pool=None):
            program = write(tmp_path / "program.py", PROGRAM.encode())
            command = shlex.join([sys.executable, str(program), str(tmp_path)])
            write(tmp_path / "file", b"a file\n")
            conf = write(tmp_path / "conf",
                         f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\nthreads={threads}\n"
                         "[pool app]\nprotocol=fastcgi\n"
                         f"{pool or f'command={command}'}\nprocesses={processes}\n"
                         f"queue-timeout={TIMEOUT}s\n{keys}\n[path /app]\npool=app\n".encode())
            server = stack.enter_context(running(kind, None, "--config", conf, listen=None))
            made = Held(server, tmp_path, threads)
            stack.callback(made.close)
            return made

        yield start


def pids(clients):
    got = [client.response() for client in clients]
    assert [one.status for one in got] == [200] * len(got)
    return {int(one.body) for one in got}


def ask(clients, path="/app"):
    for client in clients:
        client.send(request(path))


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("loop", [0, 1])
def test_requests_move(held, loop, warm):
    """Requests that wait behind a long one go to the idle process, whether the other loop has a
    connection to it or has none."""
    pool = held(2)
    long, *others = pool.clients(loop, 9)
    if warm:
        ask(pool.clients(1 - loop, 1))
    pool.hold(long, "a")
    for _ in range(3):
        ask(others)
        free = pids(others)
        assert len(free) == 1
    # The other loop has it when it needs it, and it is returned.
    neighbours = pool.clients(1 - loop, 4)
    for _ in range(3):
        for some in (neighbours, others):
            ask(some)
            assert pids(some) == free
    ask(neighbours + others)
    assert pids(neighbours + others) == free
    assert pool.release(long, "a") not in free


def test_one_loop_has_all_processes(held):
    """As many long requests as there are processes, all of one loop; later ones wait."""
    pool = held(3)
    for loop, names in ((0, "abc"), (1, "def")):
        long, others = pool.clients(loop, 3), pool.clients(1 - loop, 2)
        for client, name in zip(long, names):
            pool.hold(client, name)
        ask(others)
        pool.await_waiting(2)
        free = pool.release(long[1], names[1])
        assert pids(others) == {free}
        assert len({free, pool.release(long[0], names[0]), pool.release(long[2], names[2])}) == 3


@pytest.mark.parametrize("processes", [1, 2])
def test_fewer_processes_than_loops(held, processes):
    pool = held(processes, threads=3)
    clients = [client for loop in range(3) for client in pool.clients(loop, 2)]
    for _ in range(10):
        for client in clients:
            assert client.get("/app").status == 200
    for _ in range(10):
        ask(clients)
        pids(clients)


def test_loop_that_is_always_busy(held):
    """It does not monopolise the only process that is not blocked."""
    pool = held(2)
    (long, *others), busy = pool.clients(0, 7), pool.clients(1, 4)
    pool.hold(long, "a")
    done = threading.Event()
    faults = []

    def work(client):
        try:
            while not done.is_set():
                assert client.get("/app/work").status == 200
        except (AssertionError, OSError) as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(client,)) for client in busy]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            ask(others)
            assert len(pids(others)) == 1
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not faults
    pool.release(long, "a")


def test_bounded_connections_move(held, tmp_path):
    """The same for an application that another program has started, whose connections are kept."""
    go_on, lock, most = threading.Event(), threading.Lock(), []
    begun = threading.Semaphore(0)
    present = 0

    def handle(asked):
        nonlocal present
        asked.body()
        with lock:
            present += 1
            most.append(present)
        if asked.variables["PATH_INFO"] == "/hold":
            begun.release()
            assert go_on.wait(TIMEOUT)
        with lock:
            present -= 1
        asked.answer(b"1")

    app = Application(handle, tmp_path / "app.sock")
    pool = held(2, pool=f"upstream={app.address}", keys="in-flight=1\nkeep-connection=1h")
    (long, *others), neighbours = pool.clients(0, 7), pool.clients(1, 3)
    ask(neighbours)
    pids(neighbours)
    ask([long], "/app/hold")
    assert begun.acquire(timeout=TIMEOUT)
    for _ in range(3):
        ask(others + neighbours)
        pids(others + neighbours)
    go_on.set()
    pids([long])
    assert max(most) == 2
    app.close()
    assert not app.faults


@pytest.mark.parametrize("what", ["client", "late", "die", "kill", "reload"])
def test_nothing_is_lost(held, what):
    """Whatever happens to requests, their clients and their processes: there is exactly one
    connection for each process, for either loop."""
    pool = held(2, keys="timeout=1s" if what == "late" else "")
    for loop, name in ((0, "a"), (1, "b")):
        long, *others = pool.clients(loop, 6)
        neighbours = pool.clients(1 - loop, 3)
        pool.hold(long, name)
        ask(others + neighbours)
        if what == "client":
            # Some wait, and one is in a process.
            for client in (*others[::2], *neighbours[::2]):
                client.close()
            long.close()
            os.write(pool.fifos[name], b"x")
            continue
        free = pids(others + neighbours)
        if what == "late":
            assert long.response().status == 504
            os.write(pool.fifos[name], b"x")
            continue
        if what == "die":
            others[0].send(request("/app/die", "POST", "Content-Length: 1\r\n") + b"x")
            assert others[0].response().status == 502
        elif what == "kill":
            with contextlib.closing(Process(*free)) as process:
                process.kill()
                assert process.ended()
        elif what == "reload":
            pool.server.send_signal(signal.SIGHUP)
            assert pool.server.errors.wait("reloaded", 1 + loop)
        if what == "reload":
            # Its process may have been stopped before.
            os.write(pool.fifos[name], b"x")
            assert long.response().status in (200, 502)
            assert pool.server.errors.wait("starting again", 2 + 2 * loop)
        else:
            assert pool.release(long, name) not in free
    pool.await_waiting(0)
    for loop, names in ((0, "cd"), (1, "ef")):
        long, others = pool.clients(loop, 2), pool.clients(1 - loop, 2)
        for client, name in zip(long, names):
            pool.hold(client, name)
        if what != "late":
            ask(others)
            pool.await_waiting(2)
        for client, name in zip(long, names):
            os.write(pool.fifos[name], b"x")
            assert client.response().status in (200, 504 if what == "late" else 200)
        if what != "late":
            pids(others)


def test_end_of_a_loop(held):
    """Connections of a loop that has ended go to the others, which complete their last requests."""
    pool = held(2)
    long, late = pool.clients(0, 2)
    ask(neighbours := pool.clients(1, 1))
    other = pids(neighbours)
    pool.hold(long, "a")
    late.send(request("/app", "POST", "Content-Length: 2\r\n") + b"1")
    tasks = f"/proc/{pool.server.process.pid}/task"
    before = len(os.listdir(tasks))
    for loop in pool.loops:
        for client in loop:
            client.close()
    neighbours[0].close()
    pool.server.send_signal(signal.SIGTERM)
    assert pool.server.errors.wait("draining")
    while len(os.listdir(tasks)) == before:
        assert pool.server.process.poll() is None
    late.send(b"2")
    assert pids([late]) == other
    pool.release(long, "a")
    assert pool.server.process.wait(TIMEOUT) == 0
