# SPDX-License-Identifier: MIT
"""Wrong settings: one line with the error, status 1, nothing started."""

import os
import socket

import pytest

from client import fetch
from files import write
from server import GENERATE, Server, once
from test_paths import as_anyone

OPTIONS = [
    "listen", "root", "threads", "worker", "workers", "worker-memory", "io", "access-log",
    "cache-size", "pin", "cache-socket", "spool-directory", "spool-size", "spool-memory",
    "revalidate", "config", "reload", "version",
]


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "root/index.html", b"here\n")
    write(tmp_path / "file", b"")
    return tmp_path / "root"


def complaint(*arguments, prefix=()):
    """Returns the one line that the server prints for wrong arguments."""
    done = once(*arguments, prefix=prefix)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("sweet: ") and done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr[len("sweet: ") : -1]


def test_help():
    done = once("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for option in OPTIONS:
        assert f"--{option}" in done.stdout


def test_version():
    done = once("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sweet (nabc) ") and done.stdout.count("\n") == 1


@pytest.mark.parametrize(
    "arguments, hint",
    [
        (["--no-such-option"], "--no-such-option"),
        (["--threads"], "--threads"),
        (["stray"], '"stray"'),
        (["--root", "root", "stray"], '"stray"'),
        (["--listen", "nonsense"], '"nonsense"'),
        (["--listen", ""], '""'),
        (["--listen", "127.0.0.1:"], '"127.0.0.1:"'),
        (["--listen", "127.0.0.1:65536"], '"127.0.0.1:65536"'),
        (["--listen", "127.0.0.1:-1"], '"127.0.0.1:-1"'),
        (["--listen", "127.0.0.1:80x"], '"127.0.0.1:80x"'),
        (["--listen", "300.0.0.1:0"], '"300.0.0.1:0"'),
        (["--listen", "[::1:0"], '"[::1:0"'),
        (["--listen", "localhost:0"], '"localhost:0"'),
        (["--listen", "127.0.0.1:0", "--listen", "bad"], '"bad"'),
        (["--listen", "192.0.2.1:0"], "192.0.2.1:0"),  # an address of documentation, not ours
        (["--threads", "0"], 'threads "0"'),
        (["--threads", "65"], 'threads "65"'),
        (["--threads", "-1"], 'threads "-1"'),
        (["--threads", "two"], 'threads "two"'),
        (["--threads", "2x"], 'threads "2x"'),
        (["--threads", ""], 'threads ""'),
        (["--workers", "0"], 'workers "0"'),
        (["--workers", "many"], 'workers "many"'),
        (["--worker-memory", "1"], 'worker-memory "1"'),
        (["--worker-memory", "64X"], 'worker-memory "64X"'),
        (["--cache-size", "0"], 'cache-size "0"'),
        (["--cache-size", "-64M"], 'cache-size "-64M"'),
        (["--cache-size", "64MM"], 'cache-size "64MM"'),
        (["--cache-size", "99999999999G"], 'cache-size "99999999999G"'),
        (["--revalidate", "-1"], 'revalidate "-1"'),
        (["--revalidate", "soon"], 'revalidate "soon"'),
        (["--io", "select"], 'io "select"'),
        (["--root", "no-such-folder"], '"no-such-folder"'),
        (["--root", "file"], '"file"'),
        (["--root", ""], '""'),
        (["--access-log", "no-such-folder/log"], '"no-such-folder/log"'),
        (["--access-log", "root"], '"root"'),
        (["--worker", "nonsense"], '"nonsense"'),
        (["--worker", "no-slash=/bin/true"], '"no-slash=/bin/true"'),
        (["--worker", "/=/bin/true"], '"/=/bin/true"'),
        (["--worker", "/w="], '"/w="'),
        (["--worker", "/w=/no/such/program"], '"/no/such/program"'),
        (["--worker", "/w=no-such-program-anywhere"], '"no-such-program-anywhere"'),
        (["--worker", "/w='unfinished"], "/w='unfinished"),
        (["--worker", "/w=."], '"."'),
        (["--cache-socket", "file"], '"file"'),
        (["--cache-socket", "no-such-folder/socket"], '"no-such-folder/socket"'),
        (["--cache-socket", ""], '""'),
        (["--cache-socket", 120 * "x"], 120 * "x"),
        (["--config", "no-such-file"], "no-such-file"),
        (["--config", "root"], "root"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong(root, tmp_path, monkeypatch, arguments, hint):
    monkeypatch.chdir(tmp_path)
    rest = [] if "--listen" in arguments else ["--listen", "127.0.0.1:0"]
    assert hint in complaint(*rest, *arguments)


def test_nothing_is_started_before(root, tmp_path):
    """A valid worker beside an invalid setting is never run."""
    for wrong in (["--threads", "0"], ["--worker", "/bad=/no/such"], ["--root", "/no/such"],
                  ["--listen", "bad"]):
        complaint("--root", root, "--worker", f"/w=/usr/bin/touch {tmp_path}/started", *wrong)
        assert not (tmp_path / "started").exists()


def test_root_without_leave(root):
    root.chmod(0)
    try:
        said = complaint("--root", root, "--listen", "127.0.0.1:0", prefix=as_anyone())
    finally:
        root.chmod(0o700)
    assert "Permission denied" in said and str(root) in said


@pytest.mark.parametrize("threads", [1, 4])
def test_port_in_use(root, threads):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        said = complaint("--root", root, "--threads", threads, "--listen", address)
    assert address in said and "in use" in said


@pytest.mark.parametrize("threads", [1, 4])
def test_port_of_another_sweet(start, root, threads):
    """Two servers never share a port by mistake, though threads of one server do."""
    server = start(root, "--threads", threads)
    said = complaint("--root", root, "--threads", threads, "--listen", f"127.0.0.1:{server.port}")
    assert "in use" in said
    assert fetch(server.port, "/").body == b"here\n"


def test_several_addresses(start, root):
    server = start(root, "--listen", "127.0.0.1:0")
    line = server.errors.wait("listening on ", 2)
    ports = {server.port, int(line.split("127.0.0.1:")[1].split("/")[0])}
    assert len(ports) == 2
    for port in ports:
        assert fetch(port, "/").body == b"here\n"


def test_current_folder_is_the_default_root(kind, root, monkeypatch):
    monkeypatch.chdir(root)
    server = Server(kind, ".")
    try:
        assert fetch(server.port, "/").body == b"here\n"
    finally:
        server.stop()


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_threads(start, root, threads):
    server = start(root, "--threads", threads)
    assert server.status()["threads"] == threads
    assert f"{threads} thread" in server.ready
    for _ in range(4 * threads):
        assert fetch(server.port, "/").body == b"here\n"


def test_command_is_split_like_a_shell_but_by_none(kind, start, root, tmp_path):
    program = tmp_path / "a worker; $HOME"
    os.symlink(GENERATE, program)
    server = start(root, "--worker", f"/generate='{program}' unused '$(touch {tmp_path}/ran)'")
    assert len(fetch(server.port, "/generate?size=3").body) == 3
    assert not (tmp_path / "ran").exists()
