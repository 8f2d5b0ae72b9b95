# SPDX-License-Identifier: MIT
"""[pool NAME]: which paths belong to a pool, its limits, and its life over reloads."""

import contextlib
import signal
import socket
import struct
import threading

import pytest

from client import Client, fetch, request
from files import write
from responder import STDOUT, Application, end, record
from server import GENERATE, OBEY, SOON, TIMEOUT, UNDER


class Config:
    """A configuration file that tests rewrite."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "sweet.conf"
        write(folder / "root" / "file", b"a file\n")
        write(folder / "root" / "app" / "files" / "file", b"a file in the app\n")

    def write(self, groups, keys=""):
        fresh = self.folder / "fresh.conf"
        fresh.write_text(f"[sweet]\nlisten=127.0.0.1:0\nroot={self.folder}/root\n{keys}\n{groups}")
        fresh.replace(self.path)

    def reload(self, server, expected=r"reloaded .*sweet\.conf"):
        before = len(server.errors.lines)
        done = server.errors.count(expected)
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait(expected, done + 1), server.errors.text()
        return "\n".join(server.errors.lines[before:])


@pytest.fixture
def config(tmp_path):
    return Config(tmp_path)


@pytest.fixture
def run(config, start):
    def begin(groups, keys=""):
        config.write(groups, keys)
        return start(None, "--config", config.path, listen=None)

    return begin


def pool(name="app", command=OBEY, **keys):
    lines = "".join(f"{key.replace('_', '-')}={value}\n" for key, value in keys.items())
    return f"[pool {name}]\ncommand={command}\n{lines}"


def status_pool(server, name="app"):
    return next(pool for pool in server.status()["workers"]["pools"] if pool["prefix"] == name)


def test_path_is_given_to_a_pool(run):
    server = run(pool() + "[path /app]\npool=app\n[path /app/files]\npool=off\n")
    got = fetch(server.port, "/app/deep/variable?a=b").body.decode().splitlines()
    assert got[1:4] == ["SCRIPT_NAME=/app", "PATH_INFO=/deep/variable", "QUERY_STRING=a=b"]
    assert fetch(server.port, "/app/files/file").body == b"a file in the app\n"
    assert fetch(server.port, "/file").body == b"a file\n"
    assert fetch(server.port, "/application").status == 404


def test_inherited_pool_keeps_its_name(run):
    """A path below it, with rules of its own, uses the same program."""
    server = run(pool() + "[path /app]\npool=app\n[path /app/big]\nmax-body=10M\n")
    got = fetch(server.port, "/app/big/variable").body.decode().splitlines()
    assert got[1:3] == ["SCRIPT_NAME=/app", "PATH_INFO=/big/variable"]


def test_whole_host(run):
    server = run(pool(), "pool=app")
    got = fetch(server.port, "/x/variable").body.decode().splitlines()
    assert got[1:3] == ["SCRIPT_NAME=", "PATH_INFO=/x/variable"]


def test_hosts_have_pools_of_their_own(run):
    server = run(pool("one") + pool("two", GENERATE) +
                 "[host one.test]\npool=one\n[host two.test]\n[path two.test/g]\npool=two\n")
    bodies = {}
    for name in ("one", "two"):
        with Client(server.port) as client:
            client.send(f"GET /g?size=5 HTTP/1.1\r\nHost: {name}.test\r\n\r\n".encode())
            bodies[name] = client.response()
    assert (bodies["one"].status, bodies["two"].body) == (404, b"abcde")


def test_option_comes_first(run):
    server = run(pool() + "[path /app]\npool=app\n", f"worker=/app/g={GENERATE}")
    assert fetch(server.port, "/app/g?size=3").body == b"abc"
    assert fetch(server.port, "/app/header").body == b"obeyed\n"


def environment(pid):
    """Until the program is loaded: the server's, none, or what only root may read, because the
    helper that starts programs lets no other user look into its memory."""
    with contextlib.suppress(PermissionError), open(f"/proc/{pid}/environ", "rb") as file:
        return set(file.read().split(b"\0"))
    return set()


def test_environment_and_processes(run):
    server = run(pool(processes=3, environment="ONE=1;TWO=2") + "[path /a]\npool=app\n")
    assert len(status_pool(server)["processes"]) == 3
    for process in status_pool(server)["processes"]:
        server.wait_status(lambda _, pid=process["pid"]:
                           {b"ONE=1", b"TWO=2"} <= environment(pid))


def end_hanging(server):
    """Otherwise the server would wait for hanging requests when it stops."""
    for process in server.workers().values():
        process.kill()


def test_full_queue_is_503_at_once(run):
    """One in the worker, one in the queue of each thread."""
    server = run(pool(processes=1, in_flight=1, queue=1) + "[path /a]\npool=app\n", "threads=1")
    held = []
    for path, state in (("/a/hang", {"in_flight": 1, "waiting": 0}),
                        ("/a/header", {"in_flight": 1, "waiting": 1})):
        held.append(Client(server.port))
        held[-1].send(request(path))
        server.wait_status(lambda status: (
            status["workers"]["pools"][0]["processes"][0]["in_flight"],
            status["workers"]["pools"][0]["waiting"]) == tuple(state.values()))
    got = fetch(server.port, "/a/pid")
    assert (got.status, got["Retry-After"]) == (503, "1")
    for client in held:
        client.close()
    end_hanging(server)


def test_who_waits_too_long_is_503(run):
    server = run(pool(processes=1, in_flight=1, queue_timeout="1s") + "[path /a]\npool=app\n",
                 "threads=1")
    with Client(server.port) as first:
        first.send(request("/a/hang"))
        server.wait_status(
            lambda status: status["workers"]["pools"][0]["processes"][0]["in_flight"] == 1)
        assert fetch(server.port, "/a/pid").status == 503
    end_hanging(server)


def test_who_waits_leaves_with_its_client(run):
    server = run(pool(processes=1, in_flight=1) + "[path /a]\npool=app\n", "threads=1")
    with Client(server.port) as first:
        first.send(request("/a/hang"))
        server.wait_status(
            lambda status: status["workers"]["pools"][0]["processes"][0]["in_flight"] == 1)
        second = Client(server.port)
        second.send(request("/a/pid"))
        server.wait_status(lambda status: status["workers"]["pools"][0]["waiting"] == 1)
        second.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        second.close()  # by a reset
        server.wait_status(lambda status: status["workers"]["pools"][0]["waiting"] == 0)
    end_hanging(server)


def test_worker_that_hangs_is_504(run):
    server = run(pool(processes=1, timeout=f"{SOON}s") + "[path /a]\npool=app\n")
    assert fetch(server.port, "/a/hang").status == 504
    assert server.errors.wait(r"worker app\[0\] \(pid \d+\) took too long to answer")
    assert fetch(server.port, "/a/header").body == b"obeyed\n"


def test_processes_are_replaced_after_so_many_requests(run):
    server = run(pool(processes=2, max_requests=5) + "[path /a]\npool=app\n")
    assert len(server.bodies("/a/pid", 4)) == 4
    assert server.status()["workers"]["failures"] == 0


def test_changed_pool_is_a_new_one(run, config):
    server = run(pool(environment="A=1") + "[path /a]\npool=app\n")
    before = set(server.workers())
    config.write(pool(environment="A=2") + "[path /a]\npool=app\n")
    config.reload(server)
    assert int(fetch(server.port, "/a/pid").body) not in before
    server.wait_status(lambda _: not before & set(server.workers()))
    assert server.errors.count("pool app: ending", 1) == 1


def test_pools_come_and_go(run, config):
    server = run("")
    assert fetch(server.port, "/a/pid").status == 404
    config.write(pool() + "[path /a]\npool=app\n")
    config.reload(server)
    assert fetch(server.port, "/a/header").body == b"obeyed\n"
    config.write("")
    config.reload(server)
    assert fetch(server.port, "/a/pid").status == 404
    server.wait_status(lambda _: not server.workers())


def test_old_pool_answers_what_began_with_it(run, config):
    server = run(pool(processes=1) + "[path /a]\npool=app\n")
    with Client(server.port) as client:
        client.send(b"POST /a/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab")
        server.wait_status(lambda status: status["connections"]["reading"] == 1)
        config.write("")
        config.reload(server)
        client.send(b"cd")
        assert client.response().status == 200
    server.wait_status(lambda _: not server.workers())
    assert server.errors.count("pool app: ending", 1) == 1
    assert not server.errors.count("starting again")


@pytest.mark.parametrize("late", (False, True))
def test_fastcgi_pool_goes(run, config, late):
    """Begun requests are completed; then its connections are closed, the idle one too. late:
    the end of a request arrives when its response is complete, and the pool has ended."""
    began, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def handle(asked):
        asked.body()
        slow = asked.variables["REQUEST_URI"] == "/a/slow"
        if slow:
            began.set()
            assert go_on.wait(TIMEOUT)
        said = record(STDOUT, b"Content-Type: text/plain\r\nContent-Length: 8\r\n\r\nanswered")
        if slow and late:
            asked.send(said)
            assert over.wait(TIMEOUT)
            assert asked.aborted()
            said = b""
        asked.send(said + record(STDOUT) + end())

    app = Application(handle, config.folder / "app.sock")
    server = run(f"[pool app]\nprotocol=fastcgi\nupstream={app.address}\nkeep-connection=1h\n"
                 "[path /a]\npool=app\n", "threads=1")
    with Client(server.port) as client:
        client.send(request("/a/slow"))
        assert began.wait(TIMEOUT)
        assert fetch(server.port, "/a/quick").body == b"answered"
        config.write("", "threads=1")
        config.reload(server)
        assert fetch(server.port, "/a/quick").status == 404
        assert not server.errors.count("pool app: ending")
        go_on.set()
        assert client.response().body == b"answered"
        assert server.errors.wait("pool app: ending")
        over.set()
        assert all(app.ended.acquire(timeout=TIMEOUT) for _ in range(2))
        assert client.get("/file").body == b"a file\n"
    app.close()
    assert app.connections == 2 and not app.faults


def test_reload_that_cannot_start_changes_nothing(run, config):
    server = run(pool() + "[path /a]\npool=app\n")
    config.write(pool(command="/no/such/program") + "[path /a]\npool=app\n")
    said = config.reload(server, r"the old configuration stays")
    assert 'no program "/no/such/program" that can be run' in said
    assert fetch(server.port, "/a/header").body == b"obeyed\n"


@contextlib.contextmanager
def loaded(server):
    """Clients that send requests continuously, all of which must succeed."""
    ended, wrong = threading.Event(), []

    def load():
        with Client(server.port) as client:
            while not ended.is_set():
                got = client.get("/a/header")
                if (got.status, got.body) != (200, b"obeyed\n"):
                    wrong.append(got.status)
                    return

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not wrong


def test_reloads_under_load(run, config):
    """No client notices that pools are renewed, replaced and removed."""
    texts = [pool(processes=2) + "[path /a]\npool=app\n",
             pool(processes=2, environment="A=1") + "[path /a]\npool=app\n",
             pool(processes=1) + pool("other") + "[path /a]\npool=other\n"]
    server = run(texts[0])
    with loaded(server):
        for i in range(6 if UNDER else 20):
            config.write(texts[i % 3])
            config.reload(server)
