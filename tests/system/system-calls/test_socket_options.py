# SPDX-License-Identifier: MIT
"""Options of TCP and of sending: the effect of each, how it is reported, and that a
reload changes it. test_packets.py checks the packets."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from client import Client, fetch
from files import KB, MB, pattern, write
from server import SWEET, TIMEOUT, running

sys.path.insert(0, os.path.join(os.environ["srcdir"], "bench"))
from lib import netns  # noqa: E402

SIZES = [0, 1, KB, 20 * KB, 300 * KB, 3 * MB]
# Whether the module is available to these servers; tests/kernel/test-sweet.sh tests both cases.
MODULE = os.access("/dev/nabc", os.R_OK | os.W_OK)
GET = b"GET /1024 HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for number, size in enumerate(SIZES):
        write(folder / str(size), pattern(size, number))
    return folder


def check_files(port):
    """Requests each file over one connection, and over one that is closed."""
    with Client(port) as client:
        for number, size in enumerate(SIZES):
            client.send(f"GET /{size} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            assert client.response().body == pattern(size, number)
    for number, size in enumerate(SIZES):
        with Client(port) as client:
            client.send(f"GET /{size} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            assert client.response().body == pattern(size, number)
            assert client.socket.recv(1) == b""


@pytest.mark.parametrize("path", ["nabc", "posix"])
def test_every_answer_arrives(kind, root, path):
    options = ["--header-option=off", "--close-option=off", "--linger=off", "--delay-ack=on",
               "--defer-accept=on", "--send-method=copy"]
    with running(kind, root, "--data-path", path) as plain:
        check_files(plain.port)
        assert plain.status()["socket_options"] == ""
    for option in options:
        with running(kind, root, "--data-path", path, option) as server:
            check_files(server.port)
    with running(kind, root, "--data-path", path, *options) as server:
        check_files(server.port)
        told = ("defer-accept, delay-ack, send-method copy, header-option off, close-option off,"
                " linger off")
        assert server.status()["socket_options"] == told
        assert told + ")" in server.ready


# --- listening sockets ---------------------------------------------------------------------


def silent(server, count):
    """Returns the accepted connections of silent clients, once the server has had time for them."""
    clients = [Client(server.port) for _ in range(count)]
    # A client that sends, behind them in the queue of the only thread.
    with Client(server.port) as client:
        client.send(GET)
        assert client.response().status == 200
    return clients


def test_deferred_connections_are_not_taken(kind, root):
    with running(kind, root, "--threads", 1, "--defer-accept", "on") as server:
        clients = silent(server, 5)
        time.sleep(0.1)
        # The client that requests it is one of them.
        assert server.status()["connections"]["accepted"] == 2
        for client in clients:
            client.send(GET)
            assert client.response().body == pattern(KB, SIZES.index(KB))
            client.close()
    with running(kind, root, "--threads", 1) as server:
        clients = silent(server, 5)
        server.wait_status(lambda status: status["connections"]["open"] >= 6)
        for client in clients:
            client.close()


def test_reload_changes_what_listens(start, tmp_path):
    write(tmp_path / "1024", b"small")
    path = tmp_path / "sweet.conf"

    def put(*lines):
        path.write_text("\n".join(["[sweet]", "listen=127.0.0.1:0", f"root={tmp_path}",
                                   "threads=2", *lines, ""]))

    def silent_ones(status):
        """Returns the total of connections except those that request the status."""
        return status["connections"]["accepted"] - server.asked

    def await_silent():
        before = silent_ones(server.status())
        with Client(server.port):
            server.wait_status(lambda status: silent_ones(status) == before + 1)

    def accepts_silence():
        before = silent_ones(server.status())
        with Client(server.port):
            time.sleep(0.2)  # nothing tells that it is left alone
            return silent_ones(server.status()) > before

    def reload(*lines):
        put(*lines)
        done = server.errors.count(r"reloaded .*sweet\.conf")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait(r"reloaded .*sweet\.conf", done + 1), server.errors.text()

    put()
    server = start(None, "--config", path, listen=None)
    await_silent()
    reload("defer-accept=on", "send-method=copy")
    assert server.status()["socket_options"] == "defer-accept, send-method copy"
    assert not accepts_silence()
    reload("close-option=off")
    assert server.status()["socket_options"] == "close-option off"
    await_silent()
    # An unavailable option changes nothing.
    if MODULE:
        return
    put("send-method=kernel", "defer-accept=on")
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("the old configuration stays")
    assert server.errors.count('send-method "kernel": the kernel module nabc is not used', 1) == 1
    assert server.status()["socket_options"] == "close-option off"
    await_silent()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make namespaces")
@pytest.mark.needs("ip")
def test_fastopen_warns_of_a_system_that_forbids_it(root):
    with netns.Pair() as pair:
        for allowed in (1, 2, 3):
            pair.server.set("ipv4/tcp_fastopen", allowed)
            for queue in (0, 16):
                with running("epoll", root, "--fastopen", queue, prefix=pair.server.argv(),
                             listen=f"{pair.addresses[0]}:0") as server:
                    warned = server.errors.count(r"fastopen has no effect.*\(now 1\) to 3")
                    assert warned == (queue > 0 and allowed == 1)


# --- how bodies are sent --------------------------------------------------------------------


def sends(server):
    """{method: bytes of bodies}."""
    opened = fetch(server.port, "/.sweet/metrics").body.decode()
    return {method: int(count) for method, count in
            re.findall(r'transmit_bytes_total\{method="(\w+)"\} (\d+)', opened)}


def test_methods(kind, root):
    total = 2 * sum(SIZES)
    for method, other in (("copy", "splice"), ("splice", "copy")):
        with running(kind, root, "--send-method", method) as server:
            check_files(server.port)
            moved = sends(server)
            assert moved[method] == total - moved[other]
            assert moved["zerocopy"] == moved["kernel"] == 0
            # Small files may be in recycled memory, which cannot be lent.
            assert moved[other] < (1 if method == "copy" else 100 * KB), method


@pytest.mark.parametrize("kind", ["uring"], indirect=True)
def test_zerocopy(kind, root):
    with running(kind, root, "--send-method", "zerocopy") as server:
        check_files(server.port)
        moved = sends(server)
        # Bytes that do not fit into the socket or the ring at the moment are copied.
        assert moved["zerocopy"] >= 300 * KB
        assert moved["splice"] == 0


def test_auto(kind, tmp_path):
    """A client that reads gets pages lent, also if no response ever fills its socket."""
    write(tmp_path / "page", pattern(40 * KB))
    with running(kind, tmp_path, "--threads", 1) as server, \
            Client(server.port, source="127.0.0.2") as client:
        for _ in range(3):
            assert client.get("/page").body == pattern(40 * KB)
        # Not yet more than the kernel receives without a reader: nothing but copies.
        moved = sends(server)
        assert moved["splice"] == moved["zerocopy"] == 0
        for _ in range(5):
            assert client.get("/page").body == pattern(40 * KB)
        # The first guess of a route to another machine.
        assert sends(server)["splice"] >= 40 * KB


def test_without_module(tmp_path):
    if MODULE:
        with running("epoll", tmp_path, "--send-method=kernel") as server:
            assert server.status()["transmit"]["module"] == "used"
        return
    told = 'send-method "kernel": the kernel module nabc is not used: /dev/nabc: '
    refused(tmp_path, ["--send-method=kernel"], told)
    with running("epoll", tmp_path) as server:
        assert server.status()["transmit"]["module"].startswith("not used: /dev/nabc: ")


@pytest.mark.parametrize("options, why", [
    (["--send-method=kernel", "--data-path=posix"], "send-method: must be auto or copy"),
    (["--send-method=zerocopy", "--io=epoll"],
     'send-method "zerocopy": the cache has no io_uring'),
    (["--send-method=zerocopy", "--data-path=posix"], "send-method: must be auto or copy"),
    (["--send-method=splice", "--data-path=posix"], "send-method: must be auto or copy"),
    (["--send-method=sendfile"], "send-method"),
    (["--fastopen=-1"], "fastopen"),
    (["--close-option=maybe"], "close-option"),
])
def test_refused(tmp_path, options, why):
    refused(tmp_path, options, why)


def refused(root, options, why):
    done = subprocess.run([SWEET, "--listen", "127.0.0.1:0", "--root", root, *options],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT,
                          check=False)
    assert done.returncode == 1
    assert why in done.stderr.decode()


# --- ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("linger", ["on", "off"])
def test_lingering(kind, root, linger):
    with running(kind, root, "--threads", 1, "--linger", linger) as server:
        client = Client(server.port)
        client.send(b"GET /1024 HTTP/1.0\r\n\r\n")
        assert client.response().status == 200
        assert client.socket.recv(1) == b""
        # The end of this side is still open.
        server.wait_status(lambda status:
                           status["connections"]["lingering"] == (linger == "on"))
        client.socket.send(b"more")
        if linger == "off":
            with pytest.raises((ConnectionResetError, BrokenPipeError)):
                for _ in range(100):
                    client.socket.send(b"more")
                    client.socket.recv(1, socket.MSG_DONTWAIT)
                    time.sleep(0.01)
        client.close()
