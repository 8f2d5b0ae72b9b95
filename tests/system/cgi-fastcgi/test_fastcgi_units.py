# SPDX-License-Identifier: MIT
"""Units that FastCGI applications name: sent only if the kernel confirms that the
application created them or that they were granted to it, or if the operator trusts
it."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading

import pytest

from client import Client
from examples import SOURCES, library_environment
from fastcgi import APPLICATION
from files import MB, write
from responder import STDOUT, Application, end, record
from server import TIMEOUT, running
from test_fastcgi import fetch
from test_nabc_py import python

SECRET = b"a page of another member\n"

# In a session of its own: children of the test process might be in the session that it leads.
PUT = "os.setsid()\nunit = nabc.put(sys.argv[1].encode(), lifetime=60)\n"
TELL = "print(unit)\n"

# A process that listens, and two forked children: the first makes a unit, the other names it.
FORKED = APPLICATION.replace("listener = socket.socket(fileno=0)", """
import nabc
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
""") + r"""
reader, writer = os.pipe()
if not os.fork():
    os.write(writer, b"%d" % nabc.put(b"made by a brother\n", lifetime=60))
    signal.pause()
unit = os.read(reader, 30)
if os.fork():
    print("ready", flush=True)
    signal.pause()
connection = listener.accept()[0]
take_request(connection)
respond(connection, b"X-NABC-Cache-Id: %s\r\n\r\n" % unit)
signal.pause()
"""

# An application that the server starts: names the unit in the path, or one that it makes.
SPAWNED = APPLICATION.replace("import os,", "import nabc, os,") + r"""
def answer(params):
    asked = re.search(rb"/name/(\d+)/", params)
    if b"/pid/" in params:
        return b"\r\n%d" % os.getpid()
    unit = asked[1] if asked else b"%d" % nabc.put(b"own page\n", lifetime=60)
    return b"X-NABC-Cache-Id: %s\r\n\r\n" % unit

serve(answer)
"""


def surroundings():
    """The environment of a program that uses nabc.py."""
    return {**library_environment(), "PYTHONPATH": SOURCES, "PYTHONDONTWRITEBYTECODE": "1"}


def naming(asked):
    """Responds with the unit that the query names."""
    asked.body()
    unit = asked.variables["QUERY_STRING"].encode()
    asked.answer(b"", b"Content-Type: text/plain\r\nX-NABC-Cache-Id: %s\r\n" % unit)


@pytest.fixture
def serve(kind, tmp_path):
    """serve(address, keys): a server with a cache socket and a pool of that upstream."""
    with contextlib.ExitStack() as stack:
        def begin(address, keys="", handle=naming):
            app = None
            if address in ("unix", "tcp"):
                app = Application(handle, tmp_path / "app.sock" if address == "unix" else None)
                stack.callback(app.close)
                address = app.address
            conf = write(tmp_path / "conf",
                         f"[sweet]\nroot={tmp_path}\nthreads=1\ncache-socket={tmp_path}/cache\n"
                         "max-body=4M\n"
                         f"[pool app]\nprotocol=fastcgi\nupstream={address}\n{keys}"
                         "[path /app]\npool=app\n".encode())
            server = stack.enter_context(running(kind, None, "--config", conf))
            server.cache = tmp_path / "cache"
            server.app = app
            return server

        yield begin


def put(server, *, more="", arguments=()):
    """Returns the id of a unit that another process has created, and granted if `more` says so."""
    return python(PUT + more + TELL, SECRET.decode(), *arguments, NABC_CACHE=server.cache).strip()


def is_refused(server, unit, why):
    got = fetch(server.port, f"/app?{unit}")
    assert got.status == 502 and SECRET not in got.body
    return server.errors.wait(f"pool app: .*sent the id of a unit that it may not use: {unit}: .*{why}")


@pytest.mark.parametrize("address", ["unix", "tcp"])
def test_guessed(serve, address):
    server = serve(address)
    unit = put(server)
    before = server.status()["workers"]["body_bytes_by_cache_id"]
    assert is_refused(server, unit, r"trust-cache-ids=on for the pool"), server.errors.text()
    assert server.status()["workers"]["body_bytes_by_cache_id"] == before


@pytest.mark.parametrize("address", ["unix", "tcp"])
def test_trusted(serve, address):
    """By the operator; the server's own units stay private."""
    server = serve(address, "trust-cache-ids=on\n")
    assert fetch(server.port, f"/app?{put(server)}").body == SECRET
    assert is_refused(server, "77", "no member of the cache made it")


@pytest.mark.parametrize("principal, who", [("PROCESS", os.getpid()), ("USER", os.geteuid()),
                                            ("GROUP", os.getegid())])
def test_granted(serve, principal, who):
    server = serve("unix")
    grant = f"nabc.grant(unit, nabc.{principal}, int(sys.argv[2]))\n"
    unit = put(server, more=grant, arguments=[who])
    for _ in range(2):
        assert fetch(server.port, f"/app?{unit}").body == SECRET
    revoked = put(server, more=grant + grant.replace("grant(", "revoke("), arguments=[who])
    assert is_refused(server, revoked, "grant it")


def test_granted_to_another(serve):
    server = serve("unix")
    unit = put(server, more="nabc.grant(unit, nabc.PROCESS, int(sys.argv[2]))\n",
               arguments=[os.getppid()])
    assert is_refused(server, unit, "grant it")


def test_granted_over_tcp(serve):
    """The grantee is unknown."""
    server = serve("tcp")
    unit = put(server, more="nabc.grant(unit, nabc.USER, int(sys.argv[2]))\n",
               arguments=[os.geteuid()])
    assert is_refused(server, unit, "TCP")


@pytest.mark.parametrize("may", [True, False])
@pytest.mark.parametrize("length, first", [(1048000, 1048000), (3 * MB, 2 * MB)],
                         ids=["whole", "pieces"])
def test_answer_before_the_body(serve, may, length, first):
    """The application responds and reads no body.  The server has the complete response, and
    has detached the connection, before it checks the unit; with "pieces" the client sends
    the rest of the body only after the response."""
    answered, over = threading.Event(), threading.Event()

    def early(asked):
        unit = asked.variables["QUERY_STRING"].encode()
        # In one write: the server may close the connection if it refuses the unit.
        asked.send(record(STDOUT, b"Content-Type: text/plain\r\nX-NABC-Cache-Id: %s\r\n\r\n" % unit)
                   + record(STDOUT) + end())
        answered.set()
        over.wait(TIMEOUT)
        return False

    server = serve("unix", "request-buffering=off\n", early)
    unit = put(server, more="nabc.grant(unit, nabc.USER, int(sys.argv[2]))\n" if may else "",
               arguments=[os.geteuid()])
    try:
        with Client(server.port) as client:
            client.send(f"POST /app?{unit} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
                        .encode() + bytes(first))
            assert answered.wait(TIMEOUT)
            client.send(bytes(length - first))
            got = client.response()
    finally:
        over.set()
    assert (got.status, got.body) == (200, SECRET) if may else got.status == 502


@pytest.mark.parametrize("leads", [True, False])
def test_made_by_a_process_of_the_listening_one(serve, tmp_path, leads):
    """All processes of a session descend from its leader; otherwise nothing shows their origin."""
    server = serve(f"unix:{tmp_path}/forked.sock")
    program = write(tmp_path / "forked.py", FORKED.encode())
    app = subprocess.Popen([sys.executable, program, tmp_path / "forked.sock"],
                           env={**os.environ, **surroundings(), "NABC_CACHE": str(server.cache)},
                           stdout=subprocess.PIPE, start_new_session=leads,
                           process_group=None if leads else 0)
    try:
        assert app.stdout.readline() == b"ready\n"
        got = fetch(server.port, "/app")
        if leads:
            assert (got.status, got.body) == (200, b"made by a brother\n"), server.errors.text()
        else:
            assert got.status == 502
            assert server.errors.wait("the application did not make it: grant it")
    finally:
        os.killpg(app.pid, signal.SIGKILL)
        app.communicate(timeout=TIMEOUT)


def test_spawned(kind, tmp_path):
    """Processes of a pool share their units, and those that were granted to one of them."""
    program = write(tmp_path / "spawned.py", SPAWNED.encode())
    command = shlex.join([sys.executable, str(program)])
    environment = ";".join(f"{name}={value}" for name, value in surroundings().items())
    pool = f"protocol=fastcgi\ncommand={command}\nenvironment={environment}\nprocesses=1\n"
    conf = write(tmp_path / "conf",
                 f"[sweet]\nroot={tmp_path}\nthreads=1\ncache-socket={tmp_path}/cache\n"
                 f"[pool app]\n{pool}[path /app]\npool=app\n"
                 f"[pool other]\n{pool}[path /other]\npool=other\n".encode())
    with running(kind, None, "--config", conf) as server:
        server.cache = tmp_path / "cache"
        assert fetch(server.port, "/app/make/").body == b"own page\n"
        pid = int(fetch(server.port, "/app/pid/").body)
        grant = "nabc.grant(unit, nabc.PROCESS, int(sys.argv[2]))\n"
        for unit, may in [(put(server), {}), (put(server, more=grant, arguments=[pid]), {"/app"})]:
            for pool in ("/app", "/other"):
                got = fetch(server.port, f"{pool}/name/{unit}/")
                if pool in may:
                    assert (got.status, got.body) == (200, SECRET), server.errors.text()
                else:
                    assert got.status == 502 and SECRET not in got.body
                    assert server.errors.wait(f"pool {pool[1:]}: .*{unit}: no process of the pool "
                                              "made it: grant it")
