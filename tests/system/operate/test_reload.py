# SPDX-License-Identifier: MIT
"""SIGHUP: the next configuration, all of it or nothing, without an effect on clients."""

import re
import signal
import socket
import threading

import pytest

from client import Client, fetch, request
from files import MB, pattern, write
from ports import free_port
from server import OBEY, SCALE, TIMEOUT, running

LARGE = pattern(8 * MB)


class Site:
    """A configuration file that tests rewrite, and two folders for it."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "sweet.conf"
        for name in "ab":
            write(folder / name / "name", name.encode())
            write(folder / name / "large", LARGE if name == "a" else b"small")

    def write(self, keys="", root="a", listen="127.0.0.1:0"):
        text = f"[sweet]\nlisten={listen}\nroot={self.folder / root}\n{keys}\n"
        # The server may be reading it.
        fresh = self.folder / "fresh.conf"
        fresh.write_text(text)
        fresh.replace(self.path)

    def start(self, start):
        return start(None, "--config", self.path, listen=None)

    def running(self):
        """For tests that do not depend on the kind of loop."""
        return running("epoll", None, "--config", self.path, listen=None)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


GOOD = r"reloaded .*sweet\.conf"
BAD = r"the old configuration stays"


def reload(server, expected=GOOD):
    """Returns the messages meanwhile."""
    before = len(server.errors.lines)
    done = server.errors.count(expected)
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait(expected, done + 1), server.errors.text()
    return "\n".join(server.errors.lines[before:])


def listens(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), TIMEOUT).close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: closed during the handshake
        return False
    return True


def test_new_requests_get_the_new_files(start, site):
    site.write()
    server = site.start(start)
    with Client(server.port) as idle:
        assert idle.get("/name").body == b"a"
        site.write(root="b")
        assert "restart" not in reload(server)
        # The same connection, and a new one.
        assert idle.get("/name").body == b"b"
        assert fetch(server.port, "/name").body == b"b"
        site.write(root="a")
        reload(server)
        assert idle.get("/name").body == b"a"


def test_requests_end_as_they_began(start, site):
    site.write()
    server = site.start(start)
    with Client(server.port, 4096) as client:
        client.send(request("/large") + request("/large"))
        head = client.head()
        assert b"HTTP/1.1 200 " in head
        site.write(root="b")
        reload(server)
        assert client.take(len(LARGE)) == LARGE
        # The next request, which was waiting, starts now.
        assert client.response().body == b"small"


def worker_pids(status):
    return {process["pid"] for pool in status["workers"]["pools"] for process in pool["processes"]}


def test_workers_are_renewed_by_a_reload(start, site):
    """One after the other, and no client waits for long."""
    keys = f"worker=/obey={OBEY}\nworkers=3"
    site.write(keys)
    server = site.start(start)
    before = worker_pids(server.status())
    assert len(before) == 3
    site.write(keys, root="b")
    reload(server)
    server.wait_status(lambda status: len(worker_pids(status) - before - {0}) == 3)
    assert int(fetch(server.port, "/obey/pid").body) not in before
    assert server.status()["workers"]["failures"] == 0


@pytest.mark.parametrize(
    "text, why",
    [
        ("[sweet]\nno-such-key=1\n", r"sweet\.conf:3: unknown key"),
        ("[sweet]\nroot=/no/such/folder\n", r"no/such/folder"),
        ("[sweet]\nlisten=nowhere\n", r"nowhere.*must be"),
        ("[sweet]\nlisten=192.0.2.1:0\n", r"cannot listen on 192\.0\.2\.1"),
        ("[sweet]\naccess-log=/no/such/folder/log\n", r"no/such/folder/log"),
        ("nonsense", r"sweet\.conf"),
        ("", r"sweet\.conf: no section"),
        (None, r"sweet\.conf"),
    ],
)
def test_wrong_configuration_changes_nothing(site, text, why):
    site.write()
    with site.running() as server:
        with Client(server.port) as idle:
            assert idle.get("/name").body == b"a"
            if text is None:
                site.path.unlink()
            else:
                # Besides the error, a change whose effect would be visible.
                text = text.replace("[sweet]\n", "[sweet]\nserver-header=other\n")
                # The default address may be in use.
                if text and "listen=" not in text:
                    text += "listen=127.0.0.1:0\n"
                site.path.write_text(text)
            assert re.search(why, reload(server, BAD))
            answer = idle.get("/name")
            assert (answer.body, "other" in answer["Server"]) == (b"a", False)
            assert fetch(server.port, "/name").body == b"a"
            site.write(root="b")
            reload(server)
            assert idle.get("/name").body == b"b"


def test_addresses_come_and_go(start, site):
    site.write(listen="127.0.0.1:0;127.0.0.2:0")
    server = site.start(start)
    assert server.errors.wait("listening on", 2)
    ports = dict(re.findall(r"http://(127\.0\.0\.\d):(\d+)/", server.errors.text()))
    first, second = int(ports["127.0.0.1"]), int(ports["127.0.0.2"])
    assert listens(second, "127.0.0.2")
    with Client(first) as idle:
        other = socket.create_connection(("127.0.0.2", second), TIMEOUT)
        site.write(listen="127.0.0.1:0;127.0.0.3:0", root="b")
        ports = dict(re.findall(r"http://(127\.0\.0\.\d):(\d+)/", reload(server)))
        # An unchanged address keeps its port, and so its socket.
        assert int(ports["127.0.0.1"]) == first
        assert "127.0.0.2" not in ports
        assert listens(int(ports["127.0.0.3"]), "127.0.0.3")
        while listens(second, "127.0.0.2"):
            pass
        # A client that had connected to the removed address is still served.
        other.sendall(request("/name"))
        data = b""
        while not data.endswith(b"\r\n\r\nb"):
            piece = other.recv(4096)
            assert piece
            data += piece
        other.close()
        assert idle.get("/name").body == b"b"


def test_address_in_use_changes_nothing(site):
    site.write()
    with site.running() as server:
        port = free_port()
        taken = f"127.0.0.1:{port}"
        with socket.create_server(("127.0.0.1", port)):
            site.write(root="b", listen=f"127.0.0.5:0;{taken}")
            said = reload(server, BAD)
            assert f"cannot listen on {taken}" in said
            assert fetch(server.port, "/name").body == b"a"
        site.write(root="b", listen=taken)
        said = reload(server)
        assert f"http://{taken}/" in said


def test_keys_of_the_start_are_named(site):
    site.write("threads=2\ncache-size=16M")
    with site.running() as server:
        site.write("threads=3\ncache-size=32M", root="b")
        said = reload(server)
        assert re.search(r"threads, cache-size;.*restart", said), said
        assert server.status()["threads"] == 2
        assert fetch(server.port, "/name").body == b"b"
        # Once reported, it is not repeated.
        assert "restart" not in reload(server)


def test_logs_change(site, tmp_path):
    site.write(f"access-log={tmp_path}/one")
    with site.running() as server:
        assert fetch(server.port, "/name?1").status == 200
        # Its line is written when the kernel reports that it was sent, maybe after the client has
        # received it.
        server.wait_status(lambda status: status["responses"]["2xx"] >= server.asked)
        site.write(f"access-log={tmp_path}/two")
        reload(server)
        assert fetch(server.port, "/name?2").status == 200
        server.stop()
        assert "name?1" in (tmp_path / "one").read_text()
        assert "name?2" not in (tmp_path / "one").read_text()
        assert "name?2" in (tmp_path / "two").read_text()


class Load(threading.Thread):
    """Sends requests until told to stop; each on a kept connection, or on a new one."""

    def __init__(self, port, keep, enough):
        super().__init__(daemon=True)
        self.port, self.keep, self.enough = port, keep, enough
        self.count, self.bodies, self.failure = 0, set(), None
        self.stopping = threading.Event()

    def run(self):
        client = None
        try:
            while not self.stopping.is_set() or self.count < self.enough:
                client = client or Client(self.port)
                answer = client.get("/name")
                assert answer.status == 200
                self.bodies.add(answer.body)
                self.count += 1
                if not self.keep:
                    client.close()
                    client = None
        except (OSError, AssertionError) as error:
            self.failure = repr(error)


def test_no_request_fails_under_load(start, site):
    """A smaller version of bench/bench reload."""
    site.write()
    server = site.start(start)
    loads = [Load(server.port, keep, 200 // SCALE) for keep in (True, False, True, False)]
    for load in loads:
        load.start()
    for number in range(20 // SCALE):
        # Another address as well, so that listeners are opened and closed.
        extra = f";127.0.0.{number % 3 + 2}:0" if number % 2 else ""
        site.write(root="ab"[number % 2], listen=f"127.0.0.1:0{extra}")
        reload(server)
    for load in loads:
        load.stopping.set()
    for load in loads:
        load.join(TIMEOUT)
        assert not load.is_alive()
        assert load.failure is None, load.failure
        assert load.bodies <= {b"a", b"b"}
    assert any(load.bodies == {b"a", b"b"} for load in loads)


def test_many_signals_at_once(start, site):
    site.write()
    server = site.start(start)
    for number in range(100):
        site.write(root="ab"[number % 2])
        server.send_signal(signal.SIGHUP)
    site.write(root="b")
    # The last one may be merged with an earlier one, but not lost.
    before = server.errors.count(GOOD)
    server.send_signal(signal.SIGHUP)
    server.errors.wait(GOOD, before + 1)
    with Client(server.port) as client:
        while client.get("/name").body != b"b":
            pass


def test_end_in_the_middle_of_a_reload(start, site):
    for _ in range(5):
        site.write()
        server = site.start(start)
        for _ in range(3):
            server.send_signal(signal.SIGHUP)
        server.stop(signal.SIGTERM)
