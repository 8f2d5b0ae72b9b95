# SPDX-License-Identifier: MIT
"""FastCGI applications that the server starts: on one socket, supervised."""

import glob
import os
import shlex
import signal
import sys
import tempfile

import pytest

from fastcgi import APPLICATION
from files import write
from server import Process, running
from test_fastcgi import Client, ask, fetch

PROGRAM = APPLICATION + r"""
def answer(params):
    if b"/die" in params:
        os._exit(3)
    if b"/sleep" in params:
        time.sleep(0.1)
    body = "\n".join([str(os.getpid()), os.getcwd(), str(os.getuid()),
                      os.environ.get("EXTRA", "-"), os.environ.get("HOME", "-"),
                      os.environ.get("NABC_SERVER_PID", "-"), *sys.argv[1:]])
    return b"\r\n" + body.encode()

serve(answer)
"""


@pytest.fixture
def begin(kind, tmp_path, monkeypatch):
    """begin(keys): a server with a pool of the program."""
    contexts = []
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    program = write(tmp_path / "program.py", PROGRAM.encode())

    def start(keys="", threads=1):
        command = shlex.join([sys.executable, str(program), "two words"])
        conf = write(tmp_path / "conf",
                     f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\nthreads={threads}\n"
                     f"[pool app]\nprotocol=fastcgi\ncommand={command}\n{keys}\n"
                     "[path /app]\npool=app\n".encode())
        contexts.append(running(kind, None, "--config", conf, listen=None))
        return contexts[-1].__enter__()

    yield start
    for context in contexts:
        context.__exit__(None, None, None)
    # No sockets and no folders are left behind.
    assert not glob.glob(str(tmp_path / "sweet-*"))


def pid(server, path="/app"):
    return int(fetch(server.port, path).body.split()[0])


def test_told(begin, tmp_path):
    (tmp_path / "x").mkdir()
    server = begin(f"processes=1\ndirectory={tmp_path}/x\nenvironment=EXTRA=more")
    lines = fetch(server.port, "/app").body.decode().split("\n")
    assert lines[1:] == [str(tmp_path / "x"), str(os.getuid()), "more", "-",
                         str(server.process.pid), "two words"]


def test_each_has_one_request(begin):
    """At most one request for each process; the others wait for their turn."""
    server = begin("processes=3")
    clients = [Client(server.port) for _ in range(9)]
    for client in clients:
        client.send(b"GET /app/sleep HTTP/1.1\r\nHost: test\r\n\r\n")
    pids = [client.response().body.split()[0] for client in clients]
    assert len(set(pids)) == 3
    for client in clients:
        client.close()


def test_their_socket_has_no_name(begin, tmp_path):
    """Therefore a server that is killed leaves none."""
    server = begin("processes=1")
    assert pid(server)
    assert not glob.glob(str(tmp_path / "sweet-*"))


@pytest.mark.parametrize("threads, processes", [(2, 1), (2, 3), (3, 2)])
def test_threads_share_them(begin, threads, processes):
    server = begin(f"processes={processes}", threads)
    clients = [Client(server.port) for _ in range(8)]
    for _ in range(5):
        for client in clients:
            assert client.get("/app").status == 200
    for client in clients:
        client.close()


def test_killed_and_dying(begin):
    server = begin("processes=1")
    first = pid(server)
    process = Process(first)
    process.kill()
    assert process.ended()
    assert server.errors.wait(rf"app\[0\] \(pid {first}\) has ended by signal 9 \(Killed\)$")
    second = pid(server)
    assert second != first
    # The interrupted request may be repeated, or not.
    got = ask(server.port, "/app/die", "POST", b"x")
    assert got.status == 502
    assert server.errors.wait(rf"app\[0\] \(pid {second}\) has ended with status 3$")
    assert pid(server) not in (first, second)
    process.close()


def test_dying_of_a_request(begin):
    """A request that ends its process gets no other, though each has a connection that is kept;
    unless the server itself may have ended the first."""
    server = begin("processes=6")
    clients = [Client(server.port) for _ in range(12)]
    for client in clients:
        client.send(b"GET /app/sleep HTTP/1.1\r\nHost: test\r\n\r\n")
    assert len({client.response().body.split()[0] for client in clients}) == 6
    for client in clients:
        client.close()
    assert fetch(server.port, "/app/die").status == 502
    assert server.errors.wait(r"app.* has ended with status 3$")
    assert pid(server)
    assert server.errors.count("has ended with status 3") == 1
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("starting again", 2)
    assert fetch(server.port, "/app/die").status == 502
    assert server.errors.wait("has ended with status 3$", 2)
    assert server.errors.count("has ended with status 3") <= 3


def test_status_has_no_figures_of_their_requests(begin):
    """Processes accept from the socket; the server knows only for workers which process has
    which request."""
    server = begin("processes=3")
    for _ in range(5):
        pid(server)
    (pool,) = server.status()["workers"]["pools"]
    assert len(pool["processes"]) == 3
    for number, process in enumerate(pool["processes"]):
        assert process["pid"] > 0
        assert process == {"number": number, "up": True, "pid": process["pid"], "in_flight": 0,
                           "requests": 0, "restarts": 0, "failures": 0}


def test_reload_replaces_them(begin):
    server = begin("processes=2")
    before = {pid(server) for _ in range(20)}
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait(r"app\[1\]: starting again")
    assert server.errors.wait("reloaded")
    assert all(pid(server) not in before for _ in range(20))


def test_max_requests(begin):
    server = begin("processes=1\nmax-requests=5")
    first = pid(server)
    for _ in range(5):
        assert fetch(server.port, "/app").status == 200
    assert server.errors.wait(rf"app\[0\] \(pid {first}\) has ended")
    assert pid(server) != first


def test_cannot_be_run(kind, tmp_path):
    conf = write(tmp_path / "conf", f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\n"
                 "[pool app]\nprotocol=fastcgi\ncommand=/nowhere/program\n"
                 "[path /app]\npool=app\n".encode())
    with pytest.raises(AssertionError, match="/nowhere/program"):
        with running(kind, None, "--config", conf, listen=None):
            pass
