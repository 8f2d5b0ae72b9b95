# SPDX-License-Identifier: MIT
"""The four architectures (--arch): the same responses from each, which thread or
process serves how many connections, and the processes of mp: started, renewed,
replaced, stopped."""

import contextlib
import os
import re
import signal
import socket
import threading

import pytest

from client import Client, fetch, request
from files import MB, pattern, write
from ports import free_port
from server import GENERATE, SCALE, TIMEOUT, Process, Server, running, sanitized
from stopped import stop

ARCHS = ("amped", "sped", "mt", "mp")
CACHE = 16 * MB
LARGE = pattern(6 * MB)  # not for a unit of any of them


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("arch")
    write(root / "small", b"small\n")
    write(root / "large", LARGE)
    write(root / "folder" / "index.html", b"<p>index")
    return root


def options(arch, threads=2, cache=CACHE):
    return ["--arch", arch, "--threads", threads, "--cache-size", cache]


@pytest.mark.parametrize("arch", ARCHS)
def test_answers(kind, root, arch):
    with running(kind, root, *options(arch)) as server:
        words = {"amped": r"\(root \S+, 2 threads", "mp": r"mp, 2 processes\)"}
        assert re.search(words.get(arch, arch + ", 2 threads"), server.ready)
        assert server.status()["arch"] == arch
        for _ in range(2):
            with Client(server.port) as client:
                for _ in range(3):
                    assert client.get("/small").body == b"small\n"
                    assert client.get("/large").body == LARGE
                    assert client.get("/folder/").body == b"<p>index"
                    assert client.get("/missing").status == 404
                    part = client.get("/large", fields="Range: bytes=5000000-5000009\r\n")
                    assert part.status == 206 and part.body == LARGE[5000000:5000010]
        write(root / "small", b"changed\n")
        assert fetch(server.port, "/small").body == b"changed\n"
        write(root / "small", b"small\n")


@pytest.mark.parametrize("arch", ARCHS)
def test_many_clients(kind, root, arch):
    """More clients than threads, each with a connection for some requests."""
    failures = []

    def ask(port):
        try:
            for _ in range(max(2, 24 // SCALE)):
                with Client(port) as client:
                    for _ in range(3):
                        assert client.get("/small").body == b"small\n"
        except (AssertionError, OSError) as failure:
            failures.append(failure)

    with running(kind, root, *options(arch, 3)) as server:
        clients = [threading.Thread(target=ask, args=(server.port,)) for _ in range(10)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert not failures


@pytest.mark.parametrize("arch", ("mt", "mp"))
def test_one_connection_each(kind, root, arch):
    with running(kind, root, *options(arch)) as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server.port)) for _ in range(4)]
        first, second = clients[:2]
        assert first.get("/small").body == b"small\n"
        assert second.get("/small").body == b"small\n"
        for waiting in clients[2:]:
            waiting.send(request("/small"))
        # No thread has time for them, as a response on a busy connection shows.
        for _ in range(20):
            assert first.get("/small").body == b"small\n"
        clients[2].socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            clients[2].socket.recv(1)
        clients[2].socket.settimeout(TIMEOUT)
        first.close()
        assert clients[2].response().body == b"small\n"
        second.close()
        assert clients[3].response().body == b"small\n"


@pytest.mark.parametrize("arch", ("amped", "sped"))
def test_many_connections_of_one_loop(kind, root, arch):
    with running(kind, root, *options(arch, 1)) as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server.port)) for _ in range(10)]
        for client in clients:
            assert client.get("/small").body == b"small\n"


def test_who_is_turned_away_holds_nobody_up(kind, root):
    with running(kind, root, *options("mt"), "--max-connections", 1) as server:
        with Client(server.port) as client:
            assert client.get("/small").body == b"small\n"
            # All by the other thread, which has no connection after any of them.
            for _ in range(5):
                with Client(server.port) as other:
                    assert other.response().status == 503
            assert client.get("/small").body == b"small\n"


@pytest.mark.parametrize("arch", ("mt", "mp"))
def test_two_addresses(kind, root, arch):
    with running(kind, root, *options(arch, 1), "--listen", "127.0.0.2:0") as server:
        line = server.errors.wait(r"listening on http://127\.0\.0\.2:(\d+)")
        port = int(re.search(r"127\.0\.0\.2:(\d+)", line)[1])
        for _ in range(3):
            with Client(server.port) as client:
                assert client.get("/small").body == b"small\n"
            with Client(port, address="127.0.0.2") as client:
                assert client.get("/small").body == b"small\n"


@pytest.mark.skipif(sanitized("tsan"), reason="it has a thread of its own")
def test_helpers_of_amped_alone(root):
    counts = {}
    for arch in ("amped", "sped", "mt"):
        with running("epoll", root, *options(arch)) as server:
            counts[arch] = len(os.listdir(f"/proc/{server.pid}/task")) - 3
    # Two read folders only.
    assert counts == {"amped": 6, "sped": 0, "mt": 0}


@pytest.mark.parametrize("arch", ARCHS)
def test_end_with_open_connections(kind, root, arch):
    """Idle ones, and one in the middle of a response."""
    with running(kind, root, *options(arch)) as server:
        with Client(server.port, 4096) as busy, Client(server.port) as idle:
            busy.send(request("/large"))
            assert b" 200 " in busy.head()
            assert idle.get("/small").body == b"small\n"
            server.send_signal(signal.SIGTERM)
            assert idle.at_end()
            assert busy.take(len(LARGE)) == LARGE
        server.finished()


@pytest.mark.parametrize("arch", ARCHS)
def test_workers(kind, root, arch):
    with running(kind, root, *options(arch, cache=64 * MB), "--workers", 1, "--worker-memory", "2M",
                 "--worker", f"/generate={GENERATE}") as server:
        for size in (10, 100000):
            assert len(fetch(server.port, f"/generate?size={size}").body) == size


# --- mp -------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path):
    for name in "ab":
        write(tmp_path / name / "name", name.encode())
    return tmp_path


def configure(site, root, threads=2, more="", listen="127.0.0.1:0"):
    fresh = site / "fresh.conf"
    fresh.write_text(f"[sweet]\nlisten={listen}\nroot={site / root}\narch=mp\nthreads={threads}\n"
                     f"cache-size={CACHE}\n{more}\n")
    fresh.rename(site / "sweet.conf")


def serving(site, kind="epoll"):
    return running(kind, None, "--config", site / "sweet.conf", listen=None)


def reload(server, expected):
    done = server.errors.count(expected)
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait(expected, done + 1), server.errors.text()


def processes(server, count):
    """Waits until there are that many."""
    present = server.workers()
    while len(present) != count:
        for process in present.values():
            if len(present) > count and process.ended(0.05):
                break
        present = server.workers()
    return present


def test_killed_process_is_replaced(kind, site):
    configure(site, "a", 3)
    with serving(site, kind) as server:
        before = processes(server, 3)
        victim = next(iter(before.values()))
        victim.kill()
        assert victim.ended()
        assert server.errors.wait(rf"process {victim.pid} was ended by signal 9 .*starting another")
        after = processes(server, 3)
        assert len(set(before) & set(after)) == 2
        for _ in range(6):
            assert fetch(server.port, "/name").body == b"a"


def test_reload(kind, site):
    """New processes with the new settings; old ones complete their responses."""
    configure(site, "a")
    write(site / "a" / "large", LARGE)
    with serving(site, kind) as server:
        before = set(processes(server, 2))
        with Client(server.port, 4096) as busy:
            busy.send(request("/large"))
            assert b" 200 " in busy.head()
            configure(site, "b", 4, listen="127.0.0.1:0;127.0.0.2:0")
            reload(server, "reloaded: 4 new processes serve")
            processes(server, 5)  # with the busy one
            for _ in range(8):
                assert fetch(server.port, "/name").body == b"b"
            line = server.errors.wait(r"listening on http://127\.0\.0\.2:")
            port = int(re.search(r"127\.0\.0\.2:(\d+)", line)[1])
            with Client(port, address="127.0.0.2") as client:
                assert client.get("/name").body == b"b"
            assert busy.take(len(LARGE)) == LARGE
        assert not before & set(processes(server, 4))


def test_bad_reload_changes_nothing(site):
    configure(site, "a")
    with serving(site) as server:
        before = set(processes(server, 2))
        for settings, complaint in (({"threads": "x"}, r'threads "x": must be'),
                                    ({"more": "workers=x"}, r'workers "x"'),
                                    ({"listen": "192.0.2.1:80"}, r"192\.0\.2\.1:80"),
                                    ({"more": "error-log=/nowhere/at/all"}, "/nowhere/at/all"),
                                    ({"more": "[path /x]\nalias=/nowhere"}, "/nowhere")):
            configure(site, "b", **settings)
            reload(server, "the old configuration stays")
            assert server.errors.wait(complaint), server.errors.text()
        text = (site / "sweet.conf").read_text().replace("arch=mp", "arch=amped")
        (site / "sweet.conf").write_text(re.sub(r"\[path(.|\n)*", "", text))
        done = server.errors.count("the old configuration stays")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("the old configuration stays", done + 1)
        assert server.errors.wait("arch is read at the start only")
        assert set(server.workers()) == before
        assert fetch(server.port, "/name").body == b"a"


def test_reload_under_load(kind, site):
    """No connection is lost, whatever process retires."""
    configure(site, "a")
    failures, ending = [], threading.Event()

    def ask(port):
        while not ending.is_set():
            try:
                assert fetch(port, "/name").body in (b"a", b"b")
            except (AssertionError, OSError) as failure:
                failures.append(failure)

    with serving(site, kind) as server:
        clients = [threading.Thread(target=ask, args=(server.port,)) for _ in range(6)]
        for client in clients:
            client.start()
        for number in range(max(2, 8 // SCALE)):
            configure(site, "ab"[number % 2])
            reload(server, "reloaded: 2 new processes serve")
        ending.set()
        for client in clients:
            client.join()
        assert not failures


def test_processes_end_with_their_parent(site):
    configure(site, "a")
    with contextlib.suppress(AssertionError), serving(site) as server:
        children = [Process(pid) for pid in processes(server, 2)]
        server.kill()
        assert all(child.ended() for child in children)
        for child in children:
            child.close()


def test_successor_of_a_parent_that_was_killed(kind, site):
    """It gets the addresses, though old processes still send a response."""
    write(site / "a" / "large", LARGE)
    port, path = free_port(), site / "socket"
    configure(site, "a", more=f"stop-timeout={TIMEOUT}s",
              listen=f"127.0.0.1:{port};unix:{path}")
    first = Server(kind, None, "--config", site / "sweet.conf", listen=None)
    try:
        with Client(port, 4096) as busy, Client(port) as idle:
            assert idle.get("/name").body == b"a"
            busy.send(request("/large"))
            assert b" 200 " in busy.head()
            first.kill()
            with serving(site, kind):
                assert fetch(port, "/name").body == b"a"
                assert busy.take(len(LARGE)) == LARGE
    finally:
        first.kill()


def test_start_fails_once(site):
    configure(site, "missing", 8)
    with pytest.raises(AssertionError) as caught, serving(site):
        pass
    assert str(caught.value).count("cannot serve the root") == 1


def test_files_are_the_parents(site):
    pid_file, path = site / "pid", site / "socket"
    configure(site, "a", more=f"pid-file={pid_file}", listen=f"127.0.0.1:0;unix:{path}")
    with serving(site) as server:
        assert int(pid_file.read_text()) == server.pid
        next(iter(processes(server, 2).values())).kill()
        assert server.errors.wait("starting another")
        processes(server, 2)
        assert pid_file.exists() and path.exists()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(request("/name"))
            assert client.recv(1000).startswith(b"HTTP/1.1 200 ")
        server.stop()
        assert not pid_file.exists() and not path.exists()


def test_logs_are_opened_anew_by_all(site):
    """It is reported when no process writes to the old one any more, not before."""
    log = site / "access.log"
    configure(site, "a", 3, more=f"access-log={log}")
    with serving(site) as server:
        slow, slower, killed = processes(server, 3).values()
        for process in (slow, slower):
            stop(process.pid)
        log.rename(site / "old.log")
        # It handles this signal before it learns of the other processes.
        server.send_signal(signal.SIGUSR1)
        killed.kill()
        assert server.errors.wait("starting another")
        slow.signal(signal.SIGCONT)
        assert not server.errors.count("reopened the logs")
        # A request that arrives before all have replied is handled as well.
        server.send_signal(signal.SIGUSR1)
        slower.signal(signal.SIGCONT)
        assert server.errors.wait("reopened the logs", 2)
        before = (site / "old.log").read_bytes()
        for _ in range(8):
            fetch(server.port, "/name")
        server.stop()
        assert log.read_text().count("GET /name") == 8
        assert (site / "old.log").read_bytes() == before
        assert server.errors.count("reopened the logs") == 2


def test_logs_are_opened_anew(site):
    log = site / "access.log"
    configure(site, "a", more=f"access-log={log}")
    with serving(site) as server:
        log.rename(site / "old.log")
        server.send_signal(signal.SIGUSR1)
        assert server.errors.wait("reopened the logs")
        fetch(server.port, "/name")
        server.stop()
        assert "GET /name" in log.read_text()
