# SPDX-License-Identifier: MIT
"""Which kernel interface is used, and that the server says why."""

import pytest

from client import fetch
from files import write
from server import DENY, VALGRIND, KINDS, once, running


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "index.html", b"here\n")
    return tmp_path


def test_kind_is_told(kind, root):
    wanted = {"uring": "io_uring", "epoll": "epoll"}.get(kind)
    wanted = wanted or "epoll (no io_uring: io_uring_setup: Function not implemented)"
    with running(kind, root) as server:
        assert server.status()["io"] == wanted
        assert server.ready.endswith(f", {wanted})")


def test_cache_tells_as_well(kind, root):
    with running(kind, root) as server:
        said = server.status()["transmit"]["io_uring"]
    if kind == "epoll":
        assert said.startswith("not used: ")
    if kind == "no-uring":
        assert "Function not implemented" in said


@pytest.mark.parametrize(
    "error, text",
    [("ENOSYS", "Function not implemented"), ("EPERM", "Operation not permitted")],
)
def test_automatic_choice_without_io_uring(monkeypatch, root, error, text):
    monkeypatch.setitem(KINDS, "denied", ([DENY, error], []))
    with running("denied", root) as server:
        assert text in server.ready and "epoll" in server.ready
        assert text in server.status()["io"]
        assert fetch(server.port, "/").body == b"here\n"


@pytest.mark.parametrize(
    "error, text",
    [("ENOSYS", "Function not implemented"), ("EPERM", "Operation not permitted")],
)
def test_uring_that_was_asked_for_is_not_replaced(root, error, text):
    done = once("--io", "uring", "--root", root, "--listen", "127.0.0.1:0", prefix=[DENY, error])
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "io_uring cannot be used" in done.stderr and text in done.stderr


def test_automatic_choice_takes_io_uring_where_it_can(monkeypatch, root):
    if VALGRIND:
        pytest.skip("Valgrind stops for ever in io_uring_enter")
    try:
        with running("uring", root):
            wanted = "io_uring"
    except AssertionError:
        wanted = "epoll (no io_uring: "
    monkeypatch.setitem(KINDS, "automatic", ([], []))
    with running("automatic", root) as server:
        assert server.status()["io"].startswith(wanted)
