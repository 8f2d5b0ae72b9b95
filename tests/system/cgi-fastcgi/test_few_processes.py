# SPDX-License-Identifier: MIT
"""More requests than the application has processes, each of which serves one connection: with
FastCGI as php-fpm and programs of libfcgi do it, and with HTTP as servers of one process for each
connection do it.  The server keeps its connections, here for an hour, but lets none of its
requests wait behind them; their order stays, and none is executed twice."""

import collections
import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time

import pytest

from client import request
from fastcgi import APPLICATION
from files import MB, pattern, write
from server import TIMEOUT, running
from test_fastcgi import Client

# Notes each request before it is answered.  /hold/X and /stream/X wait for a byte from the FIFO X:
# before the response, and in its middle.
PROGRAM = APPLICATION + r"""
folder = sys.argv[2]

def note(*words):
    with open(os.path.join(folder, "done"), "ab", buffering=0) as file:
        file.write(b" ".join(words) + b"\n")

def await_byte(name):
    open(os.path.join(folder, name.decode()), "rb").read(1)

class FastCgi:
    def read(self, connection):
        global number
        params, length, ended = b"", 0, False
        while not ended:
            _, kind, number, size, padding = struct.unpack("!BBHHBx", take(connection, 8))
            data = take(connection, size + padding)[:size]
            params += data if kind == 4 else b""
            length += len(data) if kind == 5 else 0
            ended = kind == 5 and not data
        method = re.search(rb"REQUEST_METHOD([A-Z]+?)(?=[\0-\x1f])", params)[1]
        return method, re.search(rb"REQUEST_URI([!-~]+)", params)[1], length

    def begin(self, connection, length):
        connection.sendall(record(6, b"Content-Type: text/plain\r\n\r\n"))

    def send(self, connection, data):
        connection.sendall(record(6, data))

    def end(self, connection):
        connection.sendall(record(6, b"") + record(3, bytes(8)))

class Http:
    def read(self, connection):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += take(connection, 1)
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        length = int(length[1]) if length else 0
        take(connection, length)
        method, path, _ = head.split(b" ", 2)
        return method, path, length

    def begin(self, connection, length):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                           b"Content-Length: %d\r\n\r\n" % length)

    def send(self, connection, data):
        connection.sendall(data)

    def end(self, connection):
        pass

def answer(protocol, connection):
    method, path, length = protocol.read(connection)
    note(method, path, b"%d" % length, b"%d" % os.getpid())
    held = re.fullmatch(rb"/app/(hold|stream)/(.+)", path)
    body = b"%d" % os.getpid()
    if held and held[1] == b"hold":
        await_byte(held[2])
    protocol.begin(connection, 2 * len(body) if held and held[1] == b"stream" else len(body))
    protocol.send(connection, body)
    if held and held[1] == b"stream":
        await_byte(held[2])
        protocol.send(connection, body)
    protocol.end(connection)

protocol = {"fastcgi": FastCgi, "http": Http}[sys.argv[1]]()
while True:
    connection = listener.accept()[0]
    if connection.family == socket.AF_INET:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while True:
            answer(protocol, connection)
    except (EOFError, ConnectionError):
        connection.close()
"""


class Few:
    """The processes, and the requests that they have got."""

    def __init__(self, folder, protocol, tcp):
        self.folder, self.protocol = folder, protocol
        self.program = write(folder / "program.py", PROGRAM.encode())
        write(folder / "done", b"")
        self.processes, self.fifos = [], {}
        self.listener = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
        self.listener.bind(("127.0.0.1", 0) if tcp else str(folder / "few.sock"))
        self.listener.listen(128)
        name = self.listener.getsockname()
        self.address = f"{name[0]}:{name[1]}" if tcp else f"unix:{name}"

    def start(self, count):
        for _ in range(count):
            self.processes.append(subprocess.Popen(
                [sys.executable, self.program, self.protocol, self.folder], stdin=self.listener,
                stdout=subprocess.DEVNULL))

    def stop(self, count=None):
        for process in self.processes[:count]:
            process.kill()
            process.wait(TIMEOUT)
        del self.processes[:count]

    def gate(self, name):
        os.mkfifo(self.folder / name)
        # Opened before, so that no byte is lost if the process opens it later.
        self.fifos[name] = os.open(self.folder / name, os.O_RDWR)

    def open_gate(self, name):
        os.write(self.fifos[name], b"x")

    def done(self):
        """(method, path, bytes of the body, pid) of each request, in their order."""
        lines = (self.folder / "done").read_text().splitlines()
        return [(method, path, int(length), int(pid))
                for method, path, length, pid in (line.split() for line in lines)]

    def await_done(self, path):
        deadline = time.monotonic() + TIMEOUT
        while path not in [one[1] for one in self.done()]:
            assert time.monotonic() < deadline, (path, self.done())
            time.sleep(0.01)

    def close(self):
        self.stop()
        self.listener.close()
        for fifo in self.fifos.values():
            os.close(fifo)


@pytest.fixture(params=["fastcgi", "fastcgi-tcp", "http", "http-tcp"])
def few(request, kind, tmp_path):
    """few(processes): an application, and a server in front of it."""
    protocol, _, tcp = request.param.partition("-")
    with contextlib.ExitStack() as stack:
        def start(processes, threads=1, keys=""):
            application = Few(tmp_path, protocol, tcp)
            stack.callback(application.close)
            application.start(processes)
            conf = write(tmp_path / "conf",
                         f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\nthreads={threads}\n"
                         "max-body=0\n"
                         f"[pool app]\nprotocol={protocol}\nupstream={application.address}\n"
                         f"keep-connection=1h\nqueue-timeout={TIMEOUT}s\n{keys}\n"
                         "[path /app]\npool=app\n".encode())
            application.server = stack.enter_context(
                running(kind, None, "--config", conf, listen=None))
            application.client = lambda: stack.enter_context(Client(application.server.port))
            return application

        yield start


def message(method, path, length):
    if method == "GET":
        return request(path)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
    return head.encode() + pattern(length)


def counts(app, prefix):
    """How often each path with that prefix was executed."""
    return collections.Counter(path for _, path, _, _ in app.done() if path.startswith(prefix))


def load(app, clients, count, path="/app/load"):
    """Each client sends that many requests, one after the other; all are answered."""
    faults = []

    def work(client):
        try:
            for _ in range(count):
                got = client.get(path)
                assert got.status == 200, got
        except (AssertionError, OSError) as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


@pytest.mark.parametrize("method", ["GET", "POST", "both"])
@pytest.mark.parametrize("processes", [1, 3])
def test_all_are_answered(few, processes, method):
    """None waits behind a kept connection, and each is executed once."""
    app = few(processes)
    clients = [app.client() for _ in range(12)]
    for turn in range(5):
        for number, client in enumerate(clients):
            its = ("GET", "POST")[number % 2] if method == "both" else method
            client.send(message(its, f"/app/{turn}/{number}", 100))
        assert [client.response().status for client in clients] == [200] * len(clients)
    assert counts(app, "/app/") == {f"/app/{turn}/{number}": 1
                                    for turn in range(5) for number in range(12)}


def busy(few, count):
    """Returns an application whose only process waits for the gate "a", the client that it serves,
    and that many others."""
    app = few(1)
    app.gate("a")
    first, *others = [app.client() for _ in range(1 + count)]
    first.send(request("/app/hold/a"))
    app.await_done("/app/hold/a")
    return app, first, others


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_first_come(few, method):
    """Requests that wait for a process come before later ones, and in their order."""
    app, first, others = busy(few, 7)
    for number, client in enumerate(others):
        client.send(message(method, f"/app/{number}", 10))
        app.server.wait_status(
            lambda status: status["requests"] - app.server.asked >= number + 2)
    app.open_gate("a")
    assert first.response().status == 200
    # Of a client that never pauses.
    for _ in range(1000):
        assert first.get("/app/more").status == 200
        if len(counts(app, "/app/")) == len(others) + 2:
            break
    assert [client.response().status for client in others] == [200] * len(others)
    order = [path for _, path, _, _ in app.done() if re.fullmatch(r"/app/\d", path)]
    assert order == [f"/app/{number}" for number in range(len(others))]


def test_uploads(few):
    """Bodies of more than the system's buffers, of requests that wait, arrive whole and once."""
    app = few(2)
    clients = [app.client() for _ in range(6)]
    threads = [threading.Thread(target=client.send,
                                args=(message("POST", f"/app/{number}", MB + number),))
               for number, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [client.response().status for client in clients] == [200] * len(clients)
    assert sorted((path, length) for _, path, length, _ in app.done()) \
        == [(f"/app/{number}", MB + number) for number in range(len(clients))]


def test_streams(few):
    """Processes in the middle of long responses keep them; the others serve what waits."""
    app = few(3)
    for name in "ab":
        app.gate(name)
    streams = [app.client() for _ in "ab"]
    for client, name in zip(streams, "ab"):
        client.send(request(f"/app/stream/{name}"))
        app.await_done(f"/app/stream/{name}")
    load(app, [app.client() for _ in range(8)], 50)
    assert len({pid for _, path, _, pid in app.done() if path == "/app/load"}) == 1
    for client, name in zip(streams, "ab"):
        app.open_gate(name)
        got = client.response()
        pid = next(pid for _, path, _, pid in app.done() if path == f"/app/stream/{name}")
        assert (got.status, got.body.decode()) == (200, 2 * str(pid))
    assert set(counts(app, "/app/stream/").values()) == {1}


def test_more_processes(few):
    """What the server has learned does not keep new processes idle."""
    app = few(1)
    clients = [app.client() for _ in range(8)]
    load(app, clients, 100)
    app.start(3)
    deadline = time.monotonic() + TIMEOUT
    while len({pid for *_, pid in app.done()}) < 4:
        assert time.monotonic() < deadline
        load(app, clients, 20)
    # All at the same time.
    for name in "abcd":
        app.gate(name)
    for client, name in zip(clients, "abcd"):
        client.send(request(f"/app/hold/{name}"))
    for name in "abcd":
        app.await_done(f"/app/hold/{name}")
    for client, name in zip(clients, "abcd"):
        app.open_gate(name)
        assert client.response().status == 200


def test_restart_with_fewer(few):
    """All connections end, and fewer processes come: none waits for those that were."""
    app = few(4)
    clients = [app.client() for _ in range(8)]
    load(app, clients, 50)
    app.stop()
    app.start(1)
    load(app, clients, 20)
    app.stop()
    app.start(2)
    load(app, clients, 20)


def test_slow_at_first(few):
    """Requests come before the processes do."""
    app = few(0)
    clients = [app.client() for _ in range(9)]
    for number, client in enumerate(clients):
        client.send(message("POST" if number % 2 else "GET", f"/app/{number}", 10))
        app.server.wait_status(
            lambda status: status["requests"] - app.server.asked >= number + 1)
    app.start(2)
    assert [client.response().status for client in clients] == [200] * len(clients)
    assert counts(app, "/app/") == {f"/app/{number}": 1 for number in range(9)}
    load(app, clients, 50)


@pytest.mark.parametrize("processes", [1, 2])
def test_loops(few, processes):
    """An idle connection of one loop does not keep another loop's request from the process."""
    app = few(processes, threads=3)
    clients = [app.client() for _ in range(12)]
    for _ in range(3):
        for client in clients:
            assert client.get("/app/turn").status == 200
    load(app, clients, 30)


def test_client_leaves(few):
    """Requests that wait and whose clients leave do not hold the others up, and those that stay are
    executed once."""
    app, first, others = busy(few, 9)
    for number, client in enumerate(others):
        client.send(message("POST", f"/app/{number}", 10))
    app.server.wait_status(lambda status: status["requests"] - app.server.asked >= 10)
    for client in others[::2]:
        client.close()
    app.open_gate("a")
    assert first.response().status == 200
    assert [client.response().status for client in others[1::2]] == [200] * 4
    done = counts(app, "/app/")
    assert [done[f"/app/{number}"] for number in range(1, 9, 2)] == [1] * 4
    load(app, others[1::2], 20)


