# SPDX-License-Identifier: MIT
"""sweet --reload: a reload that reports its result to the caller."""

import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from client import fetch
from server import SWEET, TIMEOUT, VALGRIND, Server, command, once, running
from stopped import stop
from test_reload import Site, site  # noqa: F401  (a fixture)

REFUSED = "the old configuration stays"


def call(server):
    done = once("--reload", server)
    assert done.stdout == ""
    return done.returncode == 0, done.stderr.splitlines()


def await_body(server, body):
    deadline = time.monotonic() + TIMEOUT
    while fetch(server.port, "/name").body != body:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("arch", ["amped", "mp"])
def test_verdict(site, arch):
    keys = f"arch={arch}\nthreads=2\npid-file={site.folder}/pid"
    site.write(keys)
    with site.running() as server:
        assert call(server.pid) == (True, [])
        site.write(keys, root="b")
        assert call(site.folder / "pid") == (True, [])
        # It is reported when the new configuration is in use, not before; old processes may
        # accept a last client.
        assert arch == "mp" or fetch(server.port, "/name").body == b"b"
        await_body(server, b"b")
        for text, why in [(f"{keys}\nno-such-key=1", 'unknown key "no-such-key"'),
                          (f"{keys}\naccess-log=/no/such/folder/log", "/no/such/folder"),
                          (f"{keys}\nauth-realm=x", "auth-realm needs an auth-file")]:
            site.write(text)
            good, lines = call(server.pid)
            assert not good and why in lines[0] and REFUSED in lines[-1], lines
            assert all(line.startswith("sweet: ") for line in lines), lines
            await_body(server, b"b")
        # A plain signal works as before.
        site.write(keys)
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded", 3)


def test_what_needs_a_restart(site):
    site.write()
    with site.running() as server:
        site.write("cache-size=32M")
        good, lines = call(server.pid)
        assert good and "cache-size; restart" in lines[0], lines


def test_many_callers(site):
    """The kernel merges pending signals, but each caller gets its result."""
    site.write()
    with site.running() as server, concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, [server.pid] * 12)) == [(True, [])] * 12
        site.write("nonsense=1")
        verdicts = list(pool.map(call, [server.pid] * 12))
        assert all(not good and REFUSED in lines[-1] for good, lines in verdicts), verdicts


def await_pending(pid, number):
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        with open(f"/proc/{pid}/status") as status:
            pending = re.search(r"^ShdPnd:\s*(\w+)$", status.read(), re.M)[1]
        if int(pending, 16) >> (number - 1) & 1:
            return
        time.sleep(0.01)
    raise AssertionError(f"signal {number} has not been sent")


@pytest.mark.skipif(VALGRIND, reason="Valgrind knows no pidfd_open")
def test_server_that_ends(site):
    site.write()
    server = site.start(lambda *arguments, **how: Server("epoll", *arguments, **how))
    # It cannot respond, now or later.
    stop(server.pid)
    caller = subprocess.Popen(command("epoll", ["--reload", str(server.pid)], listen=None),
                              stderr=subprocess.PIPE, text=True)
    await_pending(server.pid, signal.SIGHUP)
    server.kill()
    assert caller.communicate(timeout=TIMEOUT)[1] == f"sweet: process {server.pid} has ended\n"
    assert caller.returncode == 1


# The caller of the tests may have it ignored, as nohup(1) does.
@pytest.mark.parametrize("trap", ["trap - HUP", "trap '' HUP"], ids=["default", "ignored"])
def test_no_server(tmp_path, trap):
    """A signal must not kill a process that does not expect it."""
    idle = subprocess.Popen(["sh", "-c", f"{trap}; echo; exec sleep 1000"],
                            stdout=subprocess.PIPE)
    try:
        idle.stdout.read(1)
        (tmp_path / "pid").write_text(f"{idle.pid}\n")
        good, lines = call(tmp_path / "pid")
        assert not good and "is not a running server: it does not handle SIGHUP" in lines[0]
        assert idle.poll() is None
    finally:
        idle.kill()
        idle.communicate(timeout=TIMEOUT)
    good, lines = call(idle.pid)
    assert not good and "there is no process" in lines[0], lines
    for text, why in [("", "contains no process id"), ("nonsense\n", "contains no process id"),
                      ("-1\n", "contains no process id"), ("0\n", "contains no process id"),
                      ("99999999999999999999\n", "contains no process id")]:
        (tmp_path / "pid").write_text(text)
        good, lines = call(tmp_path / "pid")
        assert not good and why in lines[0], lines
    good, lines = call(tmp_path / "none")
    assert not good and "cannot read the pid-file" in lines[0], lines


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_not_allowed(site):
    site.write()
    # The program may be in a folder that only root can read: it is opened before the change of
    # user.
    become = [sys.executable, "-c", "import os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\n"
              "os.set_inheritable(fd, True)\nos.setgroups([])\nos.setgid(65534)\n"
              "os.setuid(65534)\nos.execve(fd, sys.argv[1:], {})"]
    with site.running() as server:
        done = subprocess.run([*become, SWEET, "--reload", str(server.pid)], capture_output=True,
                              text=True, timeout=TIMEOUT)
        assert done.returncode == 1
        assert done.stderr == (f"sweet: cannot signal process {server.pid}: "
                               "Operation not permitted\n")
