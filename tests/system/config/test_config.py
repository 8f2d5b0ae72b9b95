# SPDX-License-Identifier: MIT
"""The file of --config: the same settings, equally strict, with lower priority."""

import pytest

from client import fetch
from files import write
from server import GENERATE, OBEY
from test_command_line import complaint


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "root/index.html", b"here\n")
    return tmp_path / "root"


@pytest.fixture
def config(tmp_path):
    def make(text):
        return write(tmp_path / "sweet.conf", text.encode())

    return make


def test_keys_are_the_options(start, root, config, tmp_path):
    path = config(
        "# a comment\n\n[sweet]\nthreads=3\ncache-size=32M\nrevalidate=3600000\n"
        f"access-log={tmp_path}/log\nlisten=127.0.0.1:1\n"
    )
    server = start(root, "--config", path)
    status = server.status()
    assert (status["threads"], status["cache"]["size"]) == (3, 32 << 20)
    assert fetch(server.port, "/").body == b"here\n"
    write(root / "index.html", b"changed\n")
    assert fetch(server.port, "/").body == b"here\n"
    server.stop()
    assert "GET / HTTP/1.1" in (tmp_path / "log").read_text()


def test_root_of_the_file(kind, start, root, config, tmp_path):
    """An option overrides the file: here only the option's root exists."""
    server = start(root, "--config", config("[sweet]\nroot=/no/such/folder\nthreads=2\n"),
                   "--threads", "1")
    assert fetch(server.port, "/").body == b"here\n"
    assert server.status()["threads"] == 1
    assert "/no/such/folder" in complaint(
        "--listen", "127.0.0.1:0", "--config", config("[sweet]\nroot=/no/such/folder\n")
    )


def test_workers(kind, start, root, config):
    path = config(f"[sweet]\nworkers=3\nworker=/g={GENERATE};/o={OBEY}\nworker-memory=2M\n")
    server = start(root, "--config", path)
    assert len(server.workers()) == 6
    assert len(fetch(server.port, "/g?size=7").body) == 7
    assert fetch(server.port, "/g?size=4000000").status == 503  # can never fit
    assert int(fetch(server.port, "/o/pid").body) in server.workers()


def test_options_replace_all_values(kind, start, root, config):
    path = config(f"[sweet]\nworkers=3\nworker=/g={GENERATE};/o={OBEY}\n")
    server = start(root, "--config", path, "--worker", f"/x={OBEY}", "--workers", 1)
    assert len(server.workers()) == 1
    assert fetch(server.port, "/g?size=7").status == 404
    assert int(fetch(server.port, "/x/pid").body) in server.workers()


@pytest.mark.parametrize(
    "text, hint",
    [
        ("[sweet]\nno-such-key=1\n", '"no-such-key"'),
        ("[sweet]\nThreads=1\n", '"Threads"'),
        ("[sweet]\nconfig=other\n", '"config"'),
        ("[sweet]\nthreads=0\n", 'threads "0"'),
        ("[sweet]\nthreads=\n", 'threads ""'),
        ("[sweet]\nthreads=1 2\n", 'threads "1 2"'),
        ("[sweet]\ncache-size=big\n", 'cache-size "big"'),
        ("[sweet]\nio=poll\n", 'io "poll"'),
        ("[sweet]\nlisten=127.0.0.1:0;bad\n", '"bad"'),
        ("[sweet]\nworker=/w=/no/such/program\n", '"/no/such/program"'),
        ("[server]\nthreads=1\n", "[server]"),
        ("[sweet]\nthreads=1\n[other]\n", "[other]"),
        ("threads=1\n", "sweet.conf"),
        ("[sweet]\nthreads\n", "sweet.conf"),
        ("[sweet\nthreads=1\n", "sweet.conf"),
        ("[sweet]\nroot=\\q\n", "root"),
    ],
)
def test_wrong(config, text, hint):
    more = [] if "listen" in text else ["--listen", "127.0.0.1:0"]
    said = complaint("--config", config(text), *more)
    assert hint in said
