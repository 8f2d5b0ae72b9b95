# SPDX-License-Identifier: MIT
"""The interface to a supervisor such as systemd: sockets that outlive the server, and
notifications.  The tests are the supervisor."""

import os
import re
import select
import signal
import socket
import sys

import pytest

from client import Client, fetch, request
from files import write
from server import OBEY, TIMEOUT, once, running

# Becomes the server with the sockets as descriptors 3, 4, ..., which only the process itself
# can say whose they are.
AS_SERVICE = """
import os, sys
have = [int(fd) for fd in sys.argv[1].split(",") if fd]
high = [os.dup2(fd, 200 + number) for number, fd in enumerate(have)]
for number, fd in enumerate(high):
    os.dup2(fd, 3 + number)
    os.close(fd)
for fd in have:
    if fd >= 3 + len(have):
        os.close(fd)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(have)),
                  WATCHDOG_PID=str(os.getpid()))
os.execvp(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "root/index.html", b"here\n")
    return tmp_path / "root"


def service(sockets=(), **variables):
    """Arguments of a Server that is started by a supervisor."""
    fds = [one.fileno() for one in sockets]
    return {
        "prefix": [sys.executable, "-c", AS_SERVICE, ",".join(map(str, fds))],
        "pass_fds": fds,
        "env": {**os.environ, **variables},
    }


def listening(family=socket.AF_INET, address=("127.0.0.1", 0), kind=socket.SOCK_STREAM):
    one = socket.socket(family, kind)
    one.bind(address)
    if kind == socket.SOCK_STREAM:
        one.listen(100)
    return one


class Notified:
    """The supervisor's socket."""

    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(TIMEOUT)

    def heard(self):
        """The next message, as a dictionary."""
        lines = self.socket.recv(4096).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def waiting(self):
        return bool(select.select([self.socket], [], [], 0)[0])


def test_sockets_outlive_the_server(start, root, tmp_path):
    first, second = listening(), listening()
    unix = listening(socket.AF_UNIX, str(tmp_path / "socket"))
    sockets = [first, second, unix]
    ports = [one.getsockname()[1] for one in sockets[:2]]
    for _ in range(2):
        server = start(root, "--threads", 3, listen=None, **service(sockets))
        assert server.errors.wait("listening on", 3)
        # Nothing else, though the default is an address.
        assert server.errors.count("listening on", 3) == 3
        for port in ports:
            assert fetch(port, "/").body == b"here\n"
        with Client(ports[0]) as idle:
            assert idle.get("/").status == 200
            server.stop()
            assert idle.at_end()
        # A client that connects now waits for the next server.
        waiting = Client(ports[0])
        waiting.send(request("/"))
        server = start(root, listen=None, **service(sockets))
        assert waiting.response().body == b"here\n"
        waiting.close()
        server.stop()
    assert (tmp_path / "socket").exists()
    for one in sockets:
        one.close()


def test_sockets_and_addresses(root, tmp_path):
    """One that listen names is taken for it; one that it does not name is served as well."""
    named, other = listening(), listening()
    config = tmp_path / "sweet.conf"
    name = "127.0.0.1:%d" % named.getsockname()[1]
    config.write_text(f"[sweet]\nroot={root}\nlisten={name};127.0.0.1:0\n")
    with running("epoll", None, "--config", config, listen=None,
                 **service([named, other])) as server:
        assert server.errors.wait("listening on", 3)
        text = server.errors.text()
        for port in map(int, re.findall(r"http://127\.0\.0\.1:(\d+)/", text)):
            assert fetch(port, "/").status == 200
        # They stay through a reload that names others.
        config.write_text(f"[sweet]\nroot={root}\nlisten=127.0.0.1:0\n")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded")
        assert fetch(named.getsockname()[1], "/").status == 200
        assert fetch(other.getsockname()[1], "/").status == 200


def test_bad_sockets(root):
    for bad in (listening(kind=socket.SOCK_DGRAM), socket.socketpair()[0]):
        result = once("--root", root, prefix=service([bad])["prefix"],
                      pass_fds=[bad.fileno()], env={**os.environ, "LISTEN_FDNAMES": "odd"})
        assert result.returncode == 1
        assert '"odd"' in result.stderr and "not a listening stream socket" in result.stderr
        bad.close()


def test_news(start, root, tmp_path):
    notified = Notified(tmp_path)
    config = tmp_path / "sweet.conf"
    config.write_text(f"[sweet]\nroot={root}\nlisten=127.0.0.1:0\n")
    server = start(None, "--config", config, listen=None,
                   **service(NOTIFY_SOCKET=notified.path))
    ready = notified.heard()
    assert (ready["READY"], ready["MAINPID"]) == ("1", str(server.pid))
    assert fetch(server.port, "/").status == 200
    times = []
    assert ready["STATUS"] == "serving on 1 address"
    for text in (config.read_text(), "nonsense", config.read_text()):
        config.write_text(text)
        server.send_signal(signal.SIGHUP)
        reloading = notified.heard()
        assert reloading["RELOADING"] == "1"
        times.append(int(reloading["MONOTONIC_USEC"]))
        ready = notified.heard()
        assert ready["READY"] == "1"
        assert ready["STATUS"].startswith("the new configuration was refused") == (
            text == "nonsense")
    assert times == sorted(times) and len(set(times)) == 3
    assert not notified.waiting()
    server.stop()
    assert notified.heard()["STOPPING"] == "1"


def test_watchdog(root, tmp_path):
    notified = Notified(tmp_path)
    how = service(NOTIFY_SOCKET=notified.path, WATCHDOG_USEC="200000")
    with running("epoll", root, "--threads", 3, **how):
        assert notified.heard()["READY"] == "1"
        for _ in range(3):
            assert notified.heard() == {"WATCHDOG": "1"}


def test_workers_are_no_services(root, tmp_path):
    """They would take the variables for their own."""
    notified = Notified(tmp_path)
    one = listening()
    how = service([one], NOTIFY_SOCKET=notified.path, LISTEN_FDNAMES="x")
    with running("epoll", root, "--worker", f"/obey={OBEY}", "--workers", 1, **how) as server:
        pid = int(fetch(server.port, "/obey/pid").body)
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
        assert not re.search(rb"LISTEN_|NOTIFY_|WATCHDOG_", environment)
        fds = f"/proc/{pid}/fd"
        inodes = [os.stat(f"{fds}/{fd}").st_ino for fd in os.listdir(fds)]
        assert os.fstat(one.fileno()).st_ino not in inodes
