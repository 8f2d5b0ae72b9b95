# SPDX-License-Identifier: MIT
"""Workers that answer 101, as for WebSocket: streams of bytes in both directions."""

import contextlib
import os
import signal
import sys
import threading

import pytest

from client import request
from examples import run_python
from files import KB, MB, pattern
from server import BUILD, SCALE, TIMEOUT, refuses
from test_fastcgi import Client
from test_reload import reload
from test_worker_stream import reset

try:
    import wsproto
    from wsproto import events
except ImportError:
    wsproto = None

pytestmark = pytest.mark.http1("HTTP/2 has no field Upgrade")

MANY = os.path.join(BUILD, "tests", "system", "worker-many")
ASK = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n"
LIMIT = "timeout=1s\n"

ONLY_LOOP = pytest.mark.parametrize("run", ["loop"], indirect=True)
ONLY_THREADS = pytest.mark.parametrize("run", ["threads"], indirect=True)


@pytest.fixture(params=["loop", "threads"])
def run(request, tmp_path, start):
    """run(keys): a server with a pool of such a worker."""

    def begin(keys="", more="", processes=1):
        path = tmp_path / "sweet.conf"
        path.write_text(
            f"[sweet]\nlisten=127.0.0.1:0\nthreads=1\nlog-level=info\n{more}"
            f"[pool many]\nprotocol=worker\ncommand={MANY} {request.param}\n"
            f"processes={processes}\nupgrade=websocket\n{keys}[path /many]\npool=many\n")
        return start(None, "--config", path, listen=None)

    return begin


def ask(client, query="switch", fields=ASK, more=b""):
    client.send(request(f"/many?{query}", fields=fields) + more)


def switch(client, query="switch", more=b""):
    ask(client, query, more=more)
    head = client.head()
    assert head.startswith(b"HTTP/1.1 101 "), head
    return head


def echoes(client, data=b"hello"):
    client.send(data)
    assert client.take(len(data)) == data


def plain(server):
    with Client(server.port) as client:
        client.send(request("/many?"))
        assert client.response().status == 200


def pool(server):
    return server.status()["workers"]["pools"][0]


def await_tunnels(server, count):
    server.wait_status(lambda status: status["workers"]["pools"][0]["tunnels"] == count)


@contextlib.contextmanager
def clients(port, count):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Client(port)) for _ in range(count)]


def test_echo(run):
    server = run()
    with Client(server.port) as client:
        fields = switch(client).decode().lower().split("\r\n")[1:]
        assert "upgrade: websocket" in fields and "connection: upgrade" in fields
        assert "sec-websocket-accept: any" in fields
        assert not [field for field in fields if field.startswith(
            ("content-", "transfer-encoding", "upgrade: other"))]
        for size in (1, 100, 100 * KB, 1):
            echoes(client, pattern(size))
        # The worker ends its direction when the client has ended its own.
        client.half_close()
        assert client.at_end()
    await_tunnels(server, 0)
    plain(server)


def test_bytes_with_the_head(run):
    with Client(run().port) as client:
        switch(client, more=b"early")
        assert client.take(5) == b"early"


def test_large(run):
    """Both directions at the same time."""
    data = pattern(8 * MB)
    with Client(run().port) as client:
        switch(client)
        thread = threading.Thread(target=client.send, args=(data,))
        thread.start()
        assert client.take(len(data)) == data
        thread.join(TIMEOUT)
        client.half_close()
        assert client.at_end()


def test_worker_ends(run):
    server = run()
    with Client(server.port) as client:
        switch(client, "switch-end")
        echoes(client)
        assert client.at_end()
    await_tunnels(server, 0)


def test_worker_dies(run):
    server = run()
    with Client(server.port) as client:
        switch(client, "switch-die")
        client.send(b"hello")
        # The last bytes of a worker that has ended are sent, and the end is no normal one.
        with pytest.raises((ConnectionError, AssertionError)):
            while True:
                client.more()
    await_tunnels(server, 0)
    plain(server)


def test_not_asked(run):
    """A worker may not switch for a client that does not ask for it; it continues."""
    server = run()
    with Client(server.port) as client:
        for fields in ("", "Connection: Upgrade\r\nUpgrade: other\r\n",
                       "Upgrade: websocket\r\n"):
            ask(client, fields=fields)
            assert client.response().status == 502
        switch(client)
        echoes(client)
    assert server.errors.wait("responded with 101 to a request that does not ask", 3)
    assert pool(server)["tunnels_refused"] == 0


@ONLY_LOOP  # each occupies a thread of the worker
def test_idle_ones(run):
    """They are no requests: with in-flight=1 and eight times a second one, others are answered."""
    server = run("in-flight=1\nmax-tunnels=0\ntunnels-per-client=0\n")
    count = 400 // SCALE
    with clients(server.port, count) as idle:
        for client in idle:
            switch(client)
        for _ in range(8):
            plain(server)
        assert pool(server)["tunnels"] == count
        assert [process["in_flight"] for process in pool(server)["processes"]] == [0]
        for client in idle:
            echoes(client)
    await_tunnels(server, 0)


def test_limits(run):
    server = run("tunnels-per-client=2\n")
    with clients(server.port, 3) as all_of_them:
        for client in all_of_them[:2]:
            switch(client)
        ask(all_of_them[2])
        refused = all_of_them[2].response()
        assert (refused.status, refused["Retry-After"]) == (503, "1")
        assert pool(server)["tunnels_refused"] == 1
    await_tunnels(server, 0)
    assert server.errors.wait("more than tunnels-per-client")


def test_silence(run):
    server = run("upgrade-timeout=1s\n" + LIMIT)
    with Client(server.port) as client:
        switch(client)
        echoes(client)
        assert client.at_end()
    assert server.errors.wait("silent for upgrade-timeout")
    await_tunnels(server, 0)
    plain(server)


def test_longer_than_an_answer(run):
    """The time limit of answers is not one of streams."""
    server = run(LIMIT)
    with Client(server.port) as client, Client(server.port) as other:
        switch(client)
        switch(other, "switch-end")
        # The other one is silent for longer than an answer may take.
        for _ in range(3):
            with Client(server.port) as third:
                ask(third, "switch-end")
                third.head()
                echoes(third)
                assert third.at_end()
            threading.Event().wait(0.5)
        echoes(client)
        echoes(other)
    assert "took too long" not in server.errors.text()


@ONLY_LOOP  # only the loop sends without being asked
def test_client_does_not_read(run):
    """The worker may not send more than its window and what the server takes."""
    server = run("stream-ahead=64K\n")
    count = 16384
    with Client(server.port, buffer=64 * KB) as client:
        switch(client, f"switch-pieces={count}")
        plain(server)
        client.hurry()
        for _ in range(count // 64):
            client.take(64 * 4096)
        echoes(client)


@ONLY_LOOP  # only the loop has requests that it does not read
def test_worker_does_not_read(run):
    """The client cannot send more than a few hundred KB, and the worker serves others."""
    server = run("upgrade-timeout=3s\n")
    with Client(server.port) as client:
        switch(client, "switch-hold")
        client.socket.settimeout(1)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 64 * MB:
                sent += client.socket.send(bytes(64 * KB))
        plain(server)
    await_tunnels(server, 0)


def test_client_resets(run):
    server = run(LIMIT)
    for query in ("switch", "switch-hold"):
        with Client(server.port) as client:
            switch(client, query)
            reset(client)
        await_tunnels(server, 0)
    plain(server)
    assert "killed" not in server.errors.text()


def test_reload(run):
    """The workers are replaced: their streams end, and the clients see that as an end."""
    server = run()
    with Client(server.port) as client:
        switch(client)
        echoes(client)
        reload(server, "reloaded")
        assert client.at_end()
    with Client(server.port) as client:
        switch(client)
        echoes(client)


@ONLY_THREADS  # only threads wait before they respond
def test_reload_before(run, tmp_path):
    """One that begins in a worker that is being replaced ends at once, too."""
    server = run()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with Client(server.port) as client:
        ask(client, f"switch-wait={fifo}")
        with open(fifo, "wb") as out:
            reload(server, "reloaded")
            out.write(b"x")
            out.flush()
            assert client.head().startswith(b"HTTP/1.1 101 ")
        assert client.at_end()
    plain(server)


@ONLY_LOOP  # only the loop has requests that it does not read
def test_reload_of_one_that_stays(run):
    """It has the time of an answer."""
    server = run(LIMIT)
    with Client(server.port) as client:
        switch(client, "switch-hold")
        reload(server, "reloaded")
        assert client.at_end()
    assert server.errors.wait("timeout has passed")
    plain(server)


def test_stop(run):
    """The server does not wait for clients that are silent."""
    server = run("", "stop-timeout=1h\n")
    with Client(server.port) as client:
        switch(client)
        echoes(client)
        server.send_signal(signal.SIGINT)
        assert client.at_end()
    server.stop()


def test_configuration(tmp_path):
    refuses(tmp_path, "[pool a]\nprotocol=cgi\ncommand=/bin/true\nupgrade=websocket\n",
            "has upgrade, which is for HTTP servers, and workers without preload")
    refuses(tmp_path, "[pool a]\nprotocol=worker\npreload=fcgi\ncommand=/bin/true\n"
            "upgrade=websocket\n", "has upgrade")


# --- WebSocket itself ------------------------------------------------------------------------

WORKER = """
import nabc
import wsproto
from wsproto import events


def frames(request, connection):
    for piece in request.pieces():
        connection.receive_data(nabc.get(*piece))
        for event in connection.events():
            if isinstance(event, events.Message):
                yield connection.send(events.Message(event.data))
            elif isinstance(event, (events.Ping, events.CloseConnection)):
                yield connection.send(event.response())


def answer(request):
    connection = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
    known = request.variables
    connection.receive_data((
        f"GET / HTTP/1.1\\r\\nHost: a\\r\\nUpgrade: {known['HTTP_UPGRADE']}\\r\\n"
        f"Connection: {known['HTTP_CONNECTION']}\\r\\n"
        f"Sec-WebSocket-Version: {known['HTTP_SEC_WEBSOCKET_VERSION']}\\r\\n"
        f"Sec-WebSocket-Key: {known['HTTP_SEC_WEBSOCKET_KEY']}\\r\\n\\r\\n").encode())
    head = connection.send(events.AcceptConnection()).decode()
    lines = dict(line.split(": ", 1) for line in head.split("\\r\\n")[1:] if line)
    accept = {name.lower(): value for name, value in lines.items()}["sec-websocket-accept"]
    request.stream(frames(request, connection), 101, [("Sec-WebSocket-Accept", accept)])


with nabc.Worker() as worker:
    worker.serve(answer)
"""


def received(client, connection):
    """The next event that comes."""
    while True:
        for event in connection.events():
            return event
        data = client.socket.recv(1 << 16)
        connection.receive_data(data or None)


@pytest.mark.skipif(not wsproto, reason="python3-wsproto is missing; on Debian: "
                                        "apt-get install python3-wsproto")
def test_websocket(tmp_path, start):
    """A client of another project, which checks what RFC 6455 says of both ends."""
    program = tmp_path / "worker.py"
    program.write_text(WORKER)
    path = tmp_path / "sweet.conf"
    path.write_text(
        "[sweet]\nlisten=127.0.0.1:0\n[pool many]\nprotocol=worker\nprocesses=1\n"
        f"command={run_python(program, sys.executable)}\nupgrade=websocket\n"
        "[path /many]\npool=many\n")
    server = start(None, "--config", path, listen=None)
    with Client(server.port) as client:
        connection = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        client.send(connection.send(events.Request(host="test", target="/many")))
        assert isinstance(received(client, connection), events.AcceptConnection)
        for text in ("hello", "x" * 70000):
            client.send(connection.send(events.TextMessage(text)))
            got = ""
            while len(got) < len(text):
                got += received(client, connection).data
            assert got == text
        client.send(connection.send(events.Ping(b"payload")))
        assert received(client, connection).payload == b"payload"
        client.send(connection.send(events.CloseConnection(1000)))
        assert received(client, connection).code == 1000
        client.half_close()
        assert client.at_end()
