# SPDX-License-Identifier: MIT
"""A process with the pid of an earlier one: units of the earlier one do not belong to it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from client import fetch
from files import write
from server import TIMEOUT, running
from test_fastcgi_units import SECRET, SPAWNED, surroundings
from test_nabc_py import python

LAST = "/proc/sys/kernel/ns_last_pid"  # the next process gets the number after it

# The server and the kernel's threads of io_uring take numbers at any moment: many processes make
# units, one after the other, that a program started later gets the number of one of them.
MAKERS = 40
MAKE = """
secret = sys.argv[1].encode()
for _ in range(int(sys.argv[2])):
    if not os.fork():
        os.setsid()
        print(nabc.put(secret, lifetime=60), os.getpid(), flush=True)
        os._exit(0)
    os.wait()
"""

# Names the unit that a process of its own number has made.
CGI = """#!/bin/sh
echo $$ >{told}
read unit <{units}/$$
printf 'Content-Type: text/plain\\r\\nX-NABC-Cache-Id: %s\\r\\n\\r\\n' $unit
"""

OWN = "NABC_TEST_OWN_PIDS"  # in the environment: these are the only processes


def own_pids(function):
    """Runs the test again in a pid namespace of its own, where it can choose pids."""
    if OWN in os.environ:
        return function

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can choose the number of a process")
    def again(kind):
        done = subprocess.run(
            ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-m",
             "pytest", "-p", "no:cacheprovider", "-q", "-rs", f"{__file__}::{function.__name__}[{kind}]"],
            env={**os.environ, OWN: "1", "COLUMNS": "500"}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=5 * TIMEOUT, check=False)
        skipped = re.search(r"^SKIPPED \[1\] \S+: (.*)$", done.stdout, re.M)
        if skipped:
            pytest.skip(skipped[1])
        assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr

    again.__name__ = function.__name__
    return again


def reuse(units):
    """From now on, processes get the numbers of those that made units."""
    with open(LAST, "w") as file:
        file.write(str(min(units) - 1))


@pytest.fixture
def serve(kind, tmp_path):
    """serve(lines of a pool): a server to whose cache others can attach."""
    with contextlib.ExitStack() as stack:
        def begin(pool):
            conf = write(tmp_path / "conf",
                         f"[sweet]\nroot={tmp_path}\nthreads=1\ncache-socket={tmp_path}/cache\n"
                         f"[pool app]\n{pool}[path /app]\npool=app\n".encode())
            tmp_path.chmod(0o755)
            return stack.enter_context(running(kind, None, "--config", conf))

        yield begin


def made(tmp_path):
    """{pid: id}: units, and the processes that made them and have exited, each in its own session."""
    lines = python(MAKE, SECRET.decode(), MAKERS, NABC_CACHE=tmp_path / "cache").splitlines()
    units = {int(pid): int(unit) for unit, pid in map(str.split, lines)}
    assert len(units) == MAKERS
    return units


@own_pids
def test_cgi(serve, tmp_path):
    told = tmp_path / "told"
    write(tmp_path / "cgi" / "name",
          CGI.format(units=tmp_path / "units", told=told).encode()).chmod(0o755)
    server = serve(f"protocol=cgi\nfolder={tmp_path}/cgi\n")
    units = made(tmp_path)
    for pid, unit in units.items():
        write(tmp_path / "units" / str(pid), b"%d\n" % unit)
    reuse(units)
    got = fetch(server.port, "/app/name")
    assert int(told.read_text()) in units, "the number was not given again"
    assert got.status == 502 and SECRET not in got.body
    assert server.errors.wait("neither the program nor a process of its session made it")


def follow(port, before):
    """Returns the pid of the process that follows another one, when it exists."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        got = fetch(port, "/app/pid/")
        if got.status == 200 and got.body != before:
            return int(got.body)
    return pytest.fail("no process followed the one that was killed")


@own_pids
def test_spawned(serve, tmp_path):
    program = write(tmp_path / "spawned.py", SPAWNED.encode())
    environment = ";".join(f"{name}={value}" for name, value in surroundings().items())
    server = serve(f"protocol=fastcgi\ncommand=/usr/bin/python3 {program}\n"
                   f"environment={environment}\nprocesses=1\n")
    # Its own unit, to show that a refusal has no other reason.
    assert fetch(server.port, "/app/").body == b"own page\n"
    units = made(tmp_path)
    before = fetch(server.port, "/app/pid/").body
    reuse(units)
    os.kill(int(before), signal.SIGKILL)
    pid = follow(server.port, before)
    assert pid in units, "the number was not given again"
    got = fetch(server.port, f"/app/name/{units[pid]}/")
    assert got.status == 502 and SECRET not in got.body
    assert fetch(server.port, "/app/").body == b"own page\n"
