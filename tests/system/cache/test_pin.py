# SPDX-License-Identifier: MIT
"""pin=on: the memory of the cache is locked, and what the server says if it is not."""

import json
import os
import re
import signal
import tempfile
from pathlib import Path

import pytest

from client import fetch
from files import KB, MB, pattern, write
from server import GENERATE, children_of, running
from test_nabcctl import good

FILES = 4
SAID = "locked, the rest is not"
OPTIONS = ["--pin", "on", "--cache-size", "4M", "--threads", 1]


@pytest.fixture
def root(tmp_path):
    for number in range(FILES):
        write(tmp_path / "root" / str(number), pattern(100 * KB + number, number))
    return tmp_path / "root"


def limited(size):
    """A prefix: at most that many bytes may be locked, and no capability exempts root."""
    drop = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-all"] if os.geteuid() == 0 else []
    return ["prlimit", f"--memlock={size}:{size}", *drop]


def locked(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmLck:\s+(\d+) kB", status.read())[1]) * KB


def serve_files(server):
    for number in range(FILES):
        assert fetch(server.port, f"/{number}").body == pattern(100 * KB + number, number)


def test_off(kind, root):
    with running(kind, root, "--cache-size", "4M") as server:
        assert "pinned" not in server.ready
        serve_files(server)
        status = server.status()
        assert (status["cache"]["locked_bytes"], status["cache"]["unlocked_bytes"]) == (0, 0)
        assert status["process"]["locked"] == locked(server.pid) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can lock any amount of memory")
def test_all_is_locked(kind, root, tmp_path):
    """The files, and the pages of a worker; only in the server itself, and after a reload too."""
    socket = tmp_path / "cache"
    with running(kind, root, *OPTIONS, "--cache-socket", socket, "--worker",
                 f"/generate={GENERATE}", "--workers", 1, "--worker-memory", "1M") as server:
        assert ", memory pinned" in server.ready
        for again in range(2):
            serve_files(server)
            assert fetch(server.port, "/generate?size=100000").status == 200
            # After the reload, the pages of the former worker are released by a thread.
            status = server.wait_status(
                lambda status: status["cache"]["members"] == 1
                and status["cache"]["locked_bytes"] == status["cache"]["used"] + MB
            )
            cache, process = status["cache"], status["process"]
            assert cache["used"] >= FILES * 100 * KB
            assert cache["unlocked_bytes"] == 0
            # The response of the status may have taken another segment since then.
            assert locked(server.pid) >= process["locked"] == cache["locked_bytes"]
            assert process["pinned"] % KB == 0
            text = server.body("/.sweet/metrics").decode()
            lines = dict(re.findall(r"^sweet_(\w+_bytes) (\d+)$", text, re.M))
            assert lines["cache_locked_bytes"] == lines["locked_memory_bytes"]
            assert int(lines["cache_locked_bytes"]) >= cache["locked_bytes"]
            assert lines["cache_unlocked_bytes"] == "0" and "pinned_memory_bytes" in lines
            counters = json.loads(good(socket, "stat", "--json"))
            assert counters["locked_bytes"] == counters["used"] + MB
            assert all(locked(child) == 0 for child in children_of(server.pid))
            if not again:
                server.send_signal(signal.SIGHUP)
                assert server.errors.wait("reloaded")
        assert re.search(rb"^unlocked_bytes +0$", good(socket, "stat"), re.M)
        assert server.errors.count(SAID) == 0


@pytest.mark.parametrize("size", [0, 64 * KB])
def test_small_limit(root, size):
    """All is served, and one line says what is not locked."""
    # io_uring may need locked memory for itself.
    with running("epoll", root, *OPTIONS, prefix=limited(size)) as server:
        serve_files(server)
        status = server.status()
        cache = status["cache"]
        assert cache["locked_bytes"] == status["process"]["locked"] <= size
        assert cache["locked_bytes"] + cache["unlocked_bytes"] == cache["used"]
        assert cache["unlocked_bytes"] >= 256 * KB
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded")
        serve_files(server)
        said = server.errors.wait(SAID)
        assert re.search(rf": \d+ KiB of \d+ KiB of memory are {SAID} and may be swapped out: "
                         rf"RLIMIT_MEMLOCK is {size // KB} KiB; raise it to at least 4 MiB "
                         r"\(ulimit -l, LimitMEMLOCK=\)", said)
        assert server.errors.count(SAID) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to give up")
@pytest.mark.parametrize("size, unlocked", [(300 * KB, 256 * KB), (8 * MB, 0)])
def test_limit_of_a_server_without_privileges(size, unlocked):
    """The capability of root goes with its user: then the limit counts."""
    with tempfile.TemporaryDirectory(prefix="sweet-test-") as folder:
        os.chmod(folder, 0o755)
        for number in range(FILES):
            write(Path(folder) / str(number), pattern(100 * KB + number, number))
        with running("epoll", folder, *OPTIONS, "--user", "54321", "--group", "12345",
                     prefix=["prlimit", f"--memlock={size}:{size}"]) as server:
            serve_files(server)
            cache = server.status()["cache"]
            assert locked(server.pid) >= cache["locked_bytes"] >= 256 * KB
            assert cache["unlocked_bytes"] >= unlocked
            assert cache["locked_bytes"] + cache["unlocked_bytes"] == cache["used"]
            said = int(unlocked > 0)
            assert server.errors.count(SAID, least=said) == said
