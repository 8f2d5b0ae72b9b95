# SPDX-License-Identifier: MIT
"""access-log by path: which requests the log leaves out."""

import re

import pytest

from client import Client, fetch
from files import write
from server import once, running

CONFIG = """[sweet]
listen=127.0.0.1:0
root={root}
access-log={log}
{keys}[path /health]
access-log=off
[path /health/deep]
access-log=on
[path =/exact]
access-log=off
[pattern pictures]
match=[.]png$
access-log=off
"""
OWN = ["/.sweet/ready", "/.sweet/status", "/.sweet/status.html", "/.sweet/metrics"]


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    for name in ("file", "exact", "a.png", "health/file", "health/deep/file", "healthy"):
        write(root / name, b"a file\n")
    return root


def start(kind, root, keys=""):
    log = root.parent / "log"
    path = write(root.parent / "conf", CONFIG.format(root=root, log=log, keys=keys).encode())
    return log, running(kind, None, "--config", path, listen=None)


def targets(log):
    return re.findall(r'"GET (\S+) ', log.read_text())


def test_by_path(kind, root):
    log, run = start(kind, root)
    with run as server, Client(server.port) as client:
        # Twice: the second time the connection's memory knows the requests.
        for _ in range(2):
            for target in ["/file", "/exact", "/a.png", "/health/file", "/health/none",
                           "/health/deep/file", "/healthy", "/none", "/exact/", "/%2e%2e/"]:
                client.get(target)
    seen = ["/file", "/health/deep/file", "/healthy", "/none", "/exact/", "/%2e%2e/"]
    assert targets(log) == 2 * seen


@pytest.mark.parametrize("keys, seen", [
    ("", []), ("[path /.sweet]\naccess-log=on\n", OWN), ("[path /.sweet]\naccess-log=off\n", []),
    ("[path /]\naccess-log=on\n", OWN)])
def test_own_pages(root, keys, seen):
    log, run = start("epoll", root, keys)
    with run as server:
        for target in OWN:
            assert fetch(server.port, target).status == 200
        # Not one of them: a path of the site.
        assert fetch(server.port, "/.sweet/none").status == 404
    logged = targets(log)
    # Each thread writes its own lines.
    assert sorted(target for target in logged if target != "/.sweet/none") == sorted(seen)
    assert ("/.sweet/none" in logged) == ("off" not in keys)


def test_pages_that_are_refused_are_logged(root):
    log, run = start("epoll", root, "status-allow=192.0.2.1\n")
    with run as server:
        assert fetch(server.port, "/.sweet/status").status == 404
        assert fetch(server.port, "/.sweet/ready").status == 200
    assert targets(log) == ["/.sweet/status"]


def test_a_path_has_no_log_of_its_own(tmp_path):
    path = write(tmp_path / "conf", b"[sweet]\nroot=/\n[path /a]\naccess-log=/var/log/a\n")
    got = once("--check-config", "--config", path)
    assert got.returncode == 1
    assert re.search(r'conf:4: access-log "/var/log/a": must be .*auto, on, off', got.stderr)
