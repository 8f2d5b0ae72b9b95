# SPDX-License-Identifier: MIT
"""Unix listening sockets: equivalent to a port, with a file to manage."""

import signal
import socket
import stat

import pytest

from client import Client, request
from files import write
from server import OBEY, TIMEOUT, running
from test_command_line import complaint


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "root/index.html", b"here\n")
    return tmp_path / "root"


class UnixClient(Client):
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(str(path))
        self.data = b""


def test_serves(start, root, tmp_path):
    path = tmp_path / "socket"
    server = start(root, "--listen", f"unix:{path},mode=660", "--threads", 4,
                   "--worker", f"/obey={OBEY}", "--access-log", tmp_path / "log")
    assert server.errors.wait(f"listening on unix:{path} ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    for _ in range(20):
        with UnixClient(path) as client:
            assert client.get("/").body == b"here\n"
            assert client.get("/").body == b"here\n"
    with UnixClient(path) as client:
        assert b"REMOTE_ADDR=unix:\n" in client.get("/obey/variable").body
        # A client behind a proxy would also appear as local.
        assert client.get("/.sweet/status").status in (403, 404)
    server.stop()
    assert not path.exists()
    lines = (tmp_path / "log").read_text().splitlines()
    assert sum(line.startswith("unix: ") for line in lines) == 42


def test_alone(root, tmp_path):
    """No port besides; one name without a file."""
    with running("epoll", root, listen=f"unix:@{tmp_path}") as server:
        assert server.port is None
        with UnixClient(f"\0{tmp_path}") as client:
            assert client.get("/").body == b"here\n"


def test_stale_files_are_replaced(root, tmp_path):
    path = tmp_path / "socket"
    with running("epoll", root, listen=f"unix:{path}") as server:
        assert "in use" in complaint("--listen", f"unix:{path}", "--root", root)
        with UnixClient(path) as client:
            assert client.get("/").status == 200
        server.kill()
        assert path.exists()
        with running("epoll", root, listen=f"unix:{path}"):
            with UnixClient(path) as client:
                assert client.get("/").status == 200
        server.process.returncode = 0  # the test has killed it
    assert not path.exists()
    path.write_text("precious")
    assert "in use" in complaint("--listen", f"unix:{path}", "--root", root)
    assert path.read_text() == "precious"
    assert "No such file" in complaint("--listen", f"unix:{tmp_path}/no/socket", "--root", root)


def test_the_successors_file_stays(root, tmp_path):
    path = tmp_path / "socket"
    with running("epoll", root, listen=f"unix:{path}") as first:
        path.unlink()
        with running("epoll", root, listen=f"unix:{path}"):
            first.stop()
            with UnixClient(path) as client:
                assert client.get("/").status == 200


def test_reload(start, root, tmp_path):
    one, two, config = tmp_path / "one", tmp_path / "two", tmp_path / "sweet.conf"

    def reload(listen, count):
        config.write_text(f"[sweet]\nroot={root}\nthreads=2\nlisten={listen}\n")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded", count)

    config.write_text(f"[sweet]\nroot={root}\nthreads=2\nlisten=unix:{one},mode=600\n")
    server = start(None, "--config", config, listen=None)
    with UnixClient(one) as idle:
        assert idle.get("/").status == 200
        before = one.stat().st_ino
        reload(f"unix:{one},mode=640;unix:{two}", 1)
        assert (one.stat().st_ino, stat.S_IMODE(one.stat().st_mode)) == (before, 0o640)
        with UnixClient(two) as client:
            assert client.get("/").status == 200
        reload(f"unix:{two}", 2)
        assert not one.exists()
        idle.send(request("/"))
        assert idle.response().status == 200
        reload(f"unix:{one};unix:{two}", 3)
        with UnixClient(one) as client:
            assert client.get("/").status == 200
