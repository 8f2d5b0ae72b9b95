# SPDX-License-Identifier: MIT
"""A server that has little: a cgroup's memory, address space, or time, beside clients that make it
use much (the attackers of tests/torture/hostile.py)."""

import contextlib
import glob
import os
import re
import resource
import signal
import struct
import subprocess
import time

import pytest

import server as servers
from client import Client, fetch, http_connection, request
from files import KB, MB, pattern, write
from responder import STDOUT, Application, end, record
from server import BUILD, OBEY, POLL, TIMEOUT, UNDER, running, sanitized
from stopped import stop

if UNDER or sanitized():
    pytest.skip("the memory of a sanitizer or Valgrind is not the server's",
                allow_module_level=True)
from test_memory import limited  # which has the same condition

pytestmark = pytest.mark.clear("hostile-http speaks no TLS")

HOSTILE = os.path.join(BUILD, "tests", "torture", "hostile-http")
FIGURES = 8 * 256  # hostile.h
CONFIG = """[sweet]
http2=clear
threads=1
max-body=1M
[path /many]
listing=on
[path /dav]
webdav=on
auth-realm=Dav
auth-file={top}/users
[pool echo]
command={obey}
processes=1
memory=4M
[path /echo]
pool=echo
[path /work]
pool=echo
"""
# Connections of each kind, and how many each replaces meanwhile; a slow one replaces none.
KINDS = {"slow-read": (300, 1), "listing": (50, 40), "propfind": (20, 3), "made-resets": (20, 5),
         "hpack": (20, 3), "pipeline": (50, 1), "ranges": (50, 3), "header-bomb": (50, 3),
         "body-bomb": (50, 1), "flood": (50, 10), "half-close": (50, 2)}


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    top = tmp_path_factory.mktemp("scarce")
    write(top / "root/small", b"small\n")
    write(top / "root/page", pattern(10 * KB))
    write(top / "root/big", pattern(12 * MB))
    for number in range(2000):
        write(top / "root/many" / f"a file with a name of some length {number}", b"")
    for number in range(200):
        write(top / "root/dav" / f"{number}", pattern(KB))
    write(top / "users", b"anna:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\n")
    write(top / "sweet.conf", CONFIG.format(top=top, obey=OBEY).encode())
    top.chmod(0o755)
    return top


@contextlib.contextmanager
def attackers(server, which, folder):
    """hostile-http, from 50 addresses; yields a function that returns a figure of it."""
    path = folder / f"figures-{which}"
    path.write_bytes(bytes(FIGURES))
    process = subprocess.Popen([HOSTILE, which, str(server.port), str(KINDS[which][0]), "50", "0.5",
                                "1", path], stdin=subprocess.DEVNULL)
    try:
        yield lambda number: struct.unpack_from("=Q", path.read_bytes(), 8 * number)[0]
    finally:
        process.terminate()
        assert process.wait(TIMEOUT) == 0


def serve_beside(server, which, folder):
    """Honest requests are answered until the attackers have had their connections."""
    hold, times = KINDS[which]
    with attackers(server, which, folder) as figure:
        deadline = time.monotonic() + TIMEOUT
        served = 0
        while (figure(0) < hold * times or served < 20) and time.monotonic() < deadline:
            assert fetch(server.port, "/small").body == b"small\n"
            served += 1
            time.sleep(POLL)
        assert figure(0) >= hold and served >= 20
    assert server.process.poll() is None


def killed(folder):
    """Processes that the kernel has killed when memory is short, in the cgroup of either version."""
    for name in ("memory.oom_control", "memory.events"):
        with contextlib.suppress(OSError), open(f"{folder}/{name}") as file:
            return int(re.search(r"^oom_kill (\d+)$", file.read(), re.MULTILINE)[1])
    return 0


def folder_of(pid):
    """The cgroup of test_memory.limited()."""
    found = glob.glob(f"/sys/fs/cgroup/memory/sweet-test-{pid}") + \
        glob.glob(f"/sys/fs/cgroup/sweet-test-{pid}")
    return found[0]


@pytest.mark.thorough
@pytest.mark.parametrize("limit", [64, 128])
def test_amplified_in_a_cgroup(kind, top, tmp_path, limit):
    """Whatever costs the server more than the client, the kernel kills no process."""
    with limited(limit * MB) as prefix, \
            running(kind, top / "root", "--config", top / "sweet.conf", prefix=prefix) as server:
        for which in KINDS:
            serve_beside(server, which, tmp_path)
            assert killed(folder_of(os.getpid())) == 0, which
        assert server.status()["workers"]["failures"] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("more", [16, 64])
def test_little_address_space(kind, top, tmp_path, more):
    """Allocations fail: requests are refused, no process ends by a signal, and all works later."""
    least = start_of(top, kind)
    with running(kind, top / "root", "--config", top / "sweet.conf", "--cache-size", "8M",
                 prefix=("prlimit", f"--as={least + more * MB}")) as server:
        for which in ("slow-read", "made-resets", "hpack", "pipeline", "header-bomb", "flood"):
            with attackers(server, which, tmp_path) as figure:
                deadline = time.monotonic() + TIMEOUT
                while figure(0) < KINDS[which][0] and time.monotonic() < deadline:
                    time.sleep(POLL)
                with contextlib.suppress(OSError, AssertionError):
                    fetch(server.port, "/small")
            assert server.process.poll() is None, which
        server.wait_status(lambda now: now["connections"]["open"] == 1)
        assert fetch(server.port, "/small").body == b"small\n"


@contextlib.contextmanager
def address_space(pid, more):
    """Bytes that the process can get beside what it has."""
    size = int(open(f"/proc/{pid}/statm").read().split()[0]) * resource.getpagesize()
    before = resource.prlimit(pid, resource.RLIMIT_AS, (size + more, -1))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_AS, before)


def test_status_without_memory(kind, top, tmp_path):
    """An operator looks at the status when the server can get little more address space: enough for
    its text, which GLib allocates, and not for a row for each thread that there could be."""
    with running(kind, top / "root", "--config", top / "sweet.conf", "--cache-size",
                 "8M") as server:
        with address_space(server.process.pid, 96 * KB):
            for form in ("status", "status.json", "metrics"):
                assert fetch(server.port, f"/.sweet/{form}").status in (200, 503)
        assert server.status()["responses"]["2xx"] >= 1


@pytest.mark.parametrize("way", ["fastcgi", "cgi"])
def test_response_waits_for_memory(kind, top, tmp_path, way):
    """What the server cannot store of a response that has begun stays with its program."""
    content, go_on = pattern(24 * MB), tmp_path / "go-on"
    write(tmp_path / "content", content)
    os.mkfifo(go_on)
    write(tmp_path / "cgi-bin/app", f"""#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\nbegin'
read -r line <{go_on}
exec cat {tmp_path}/content
""".encode()).chmod(0o755)

    write(tmp_path / "sweet.conf", f"""[pool fastcgi]
protocol=fastcgi
upstream=unix:{tmp_path}/app.sock
stream-ahead=64M
[path /fastcgi]
pool=fastcgi
[pool cgi]
protocol=cgi
folder={tmp_path}/cgi-bin
stream-ahead=64M
[path /cgi]
pool=cgi
""".encode())

    def answer(asked):
        asked.body()
        asked.send(record(STDOUT, b"Content-Type: text/plain\r\n\r\nbegin"))
        go_on.read_bytes()
        asked.out(content)
        asked.send(record(STDOUT) + end())

    with contextlib.closing(Application(answer, tmp_path / "app.sock")), \
            running(kind, tmp_path, "--threads", "1", "--cache-size", "256M", "--config",
                    tmp_path / "sweet.conf") as server:
        client = http_connection(server.port)
        client.request("GET", "/fastcgi" if way == "fastcgi" else "/cgi/app")
        response = client.getresponse()
        assert response.read(5) == b"begin"
        with address_space(server.process.pid, 0):
            go_on.write_bytes(b"\n")
            assert server.errors.wait("its response waits, as the cache has no memory for more")
        assert response.read() == content


def start_of(top, kind):
    """Bytes of address space with which it starts; with less it says why it does not."""
    least, most = 8 * MB, 1024 * MB
    while most - least > MB:
        middle = (least + most) // 2
        try:
            with running(kind, top / "root", "--config", top / "sweet.conf", "--cache-size", "8M",
                         prefix=("prlimit", f"--as={middle}")) as server:
                assert server.process.poll() is None
            most = middle
        except AssertionError as error:
            assert "has not started" in str(error), error
            least = middle
            started = servers.started[-1]
            assert started.process.returncode in (1, 127), (middle, error)
            assert started.errors.text().strip(), "a failed start without a message"
    return most


@pytest.mark.thorough
def test_stopped_for_a_minute(kind, top, tmp_path):
    """With the limits of a server without a configuration of them, all shorter than that: what came
    in time is answered, of clients and of a worker."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with running(kind, top / "root", "--config", top / "sweet.conf") as server:
        clients = [Client(server.port) for _ in range(3)]
        half, idle, waits = clients
        half.send(request("/small")[:9])
        assert idle.get("/small").body == b"small\n"
        pid = waits.get("/echo/pid").body
        waits.send(request(f"/echo/wait?{fifo}"))
        assert server.errors.wait("waits")
        stop(server.pid)
        half.send(request("/small")[9:])
        idle.send(request("/page"))
        fifo.write_bytes(b"x")
        time.sleep(61)  # the test is of this time
        os.kill(server.pid, signal.SIGCONT)
        assert half.response().body == b"small\n"
        assert idle.response().body == pattern(10 * KB)
        assert waits.response().body == pid
        assert waits.get("/echo/pid").body == pid


@pytest.mark.thorough
def test_worker_stopped_for_a_minute(kind, top):
    """Its request has the pool's time, other clients are served, and the pool works afterwards."""
    with running(kind, top / "root", "--config", top / "sweet.conf") as server:
        with Client(server.port) as client:
            pid = int(client.get("/echo/pid").body)
        stop(pid)
        begun = time.monotonic()
        with Client(server.port) as waits:
            waits.socket.settimeout(90)
            waits.send(request("/echo/pid"))
            while time.monotonic() < begun + 61:  # the test is of this time
                assert fetch(server.port, "/small").body == b"small\n"
                time.sleep(0.5)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            assert waits.response().status in (200, 502, 504)
        server.wait_status(lambda _: answers(server))
        assert server.process.poll() is None


def answers(server):
    with Client(server.port) as client:
        return client.get("/echo/header").body == b"obeyed\n"
