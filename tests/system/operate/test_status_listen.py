# SPDX-License-Identifier: MIT
"""status-listen: addresses that have the status alone, and sites that then have none of it."""

import json
import re
import signal
import socket

import pytest

from client import Client, fetch, request
from files import write
from ports import free_port
from server import TIMEOUT, once, running
from spellings import STATUS

PAGES = ("status", "status.json", "status.html", "metrics", "ready")
ONLY = r"listening on (?:http://127\.0\.0\.1:(\d+)/|unix:\S+) \(status pages only\)"


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    write(root / "five", b"five\n")
    write(root / "missing.html", b"of the site\n")
    # A file of the site is no reason to show it among the pages of the status.
    write(root / ".sweet" / "own", b"own\n")
    return root


def start(root, *options):
    return running("epoll", root, "--status-listen", "127.0.0.1:0", *options)


def own_port(server, count=1):
    return int(re.search(ONLY, server.errors.wait(ONLY, count))[1])


def test_no_path_of_the_site_shows_it(root, start_kind):
    with start_kind(root) as server:
        for target in STATUS:
            assert fetch(server.port, target).status == 404, target
        with Client(server.port) as client:
            # Also when the connection's memory knows the request.
            for _ in range(3):
                assert client.get("/.sweet/ready").status == 404
                assert client.get("/five").body == b"five\n"


@pytest.fixture
def start_kind(kind):
    return lambda root, *options: running(kind, root, "--status-listen", "127.0.0.1:0", *options)


def test_its_own_address_has_nothing_else(root, start_kind, tmp_path):
    config = write(tmp_path / "conf", b"[sweet]\nerror-page=404=/missing.html\nheader=X-A: site\n"
                                      b"[path /moved]\nredirect=/five\n")
    with start_kind(root, "--config", config) as server, Client(own_port(server)) as client:
        assert fetch(server.port, "/five")["X-A"] == "site"
        assert fetch(server.port, "/none").body == b"of the site\n"
        for _ in range(2):
            for name in PAGES:
                got = client.get("/.sweet/" + name)
                assert got.status == 200 and "X-A" not in got, name
            for target in ["/", "/five", "/moved", "/.sweet/", "/.sweet/own", "/../five", "/none"]:
                got = client.get(target)
                assert got.status in (400, 404), target
                assert b"of the site" not in got.body and "X-A" not in got
            assert client.get("/.sweet/status", "POST", "Content-Length: 0\r\n").status == 404
        assert client.get("/.sweet/status", fields="Accept: text/html\r\n")["Vary"] == "Accept"


def test_who_may_see_it(root):
    with start(root, "--status-allow", "127.0.0.7", "--log-level", "info") as server:
        port = own_port(server)
        for source, status in [("127.0.0.7", 200), ("127.0.0.1", 403)]:
            with Client(port, source=source) as client:
                assert client.get("/.sweet/status").status == status
                assert client.get("/.sweet/ready").status == 200
        assert server.errors.wait("status-allow")
    with start(root, "--status", "off") as server, Client(own_port(server)) as client:
        assert client.get("/.sweet/status").status == client.get("/.sweet/ready").status == 404


def test_unix_socket(root, tmp_path):
    path = tmp_path / "status"
    with running("epoll", root, "--status-listen", f"unix:{path},mode=600",
                 "--status-allow", "unix") as server:
        assert server.errors.wait(ONLY)
        assert path.stat().st_mode & 0o777 == 0o600
        for target, status in [("/.sweet/status", b"200"), ("/five", b"404")]:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(TIMEOUT)
                client.connect(str(path))
                client.sendall(request(target, fields="Connection: close\r\n"))
                assert client.makefile("rb").readline().split()[1] == status
    assert not path.exists()


def listens(server, port):
    """A server that listens again finds the address in use; another test's may listen by now."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) != 0:
            return False
    try:
        return json.loads(fetch(port, "/.sweet/status.json").body)["pid"] == server.pid
    except (AssertionError, OSError, ValueError):
        return False


def test_addresses_change_their_pages(root, tmp_path):
    """A reload makes an address of the site one of the status, and the reverse; no connection that
    was accepted before changes what it has."""
    one, other = (f"127.0.0.1:{free_port()}" for _ in range(2))
    config = tmp_path / "conf"

    def use(listen, status):
        config.write_text(f"[sweet]\nlisten={listen}\nstatus-listen={status}\nroot={root}\n")

    def check(site, status):
        assert fetch(site, "/five").status == 200
        assert fetch(site, "/.sweet/status").status == 404
        assert fetch(status, "/five").status == 404
        assert fetch(status, "/.sweet/status").status == 200

    use(one, other)
    with running("epoll", None, "--threads", 2, "--config", config, listen=None) as server:
        first, second = int(one[10:]), int(other[10:])
        with Client(second) as kept:
            assert kept.get("/five").status == 404
            use(other, one)
            server.send_signal(signal.SIGHUP)
            assert server.errors.wait("reloaded "), server.errors.text()
            assert kept.get("/five").status == 404 and kept.get("/.sweet/ready").status == 200
        check(second, first)
        use(one, other)
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded ", 2), server.errors.text()
        check(first, second)
        # Without the key, the site has it again, and nobody listens there.
        config.write_text(f"[sweet]\nlisten={one}\nroot={root}\n")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded ", 3), server.errors.text()
        assert fetch(first, "/.sweet/status").status == 200
        assert listens(server, first) and not listens(server, second)


@pytest.mark.parametrize("listen,status,wrong", [
    ("127.0.0.1:8080", "127.0.0.1:8080", "needs one of its own"),
    ("8080", "127.0.0.1:9;127.0.0.1:8080", "needs one of its own"),
    ("unix:/tmp/a", "unix:/tmp/a,mode=600", "needs one of its own"),
    ("8080", "nowhere", "status-listen .*must be ADDRESS:PORT"),
])
def test_addresses_that_are_none(tmp_path, listen, status, wrong):
    config = write(tmp_path / "conf",
                   f"[sweet]\nlisten={listen}\nstatus-listen={status}\nroot=/\n".encode())
    done = once("--check-config", "--config", config)
    assert done.returncode == 1
    assert re.search(r"conf:3: .*" + wrong, done.stderr), done.stderr
