# SPDX-License-Identifier: MIT
"""Applications whose addresses are names: the addresses that they have, and later have, and what
name servers do that know none, say nonsense or nothing."""

import contextlib
import os
import signal
import subprocess
import threading
import time

import pytest

import upstream
from client import http_connection, request
from names import BROKEN, SILENT, Names
from responder import Application
from server import TIMEOUT, check_config, once
from test_fastcgi import Client, fetch
from test_privileges import folder  # noqa: F401 (a fixture)

SOON = "resolve-interval=1s\n"

# In a container, root may not be permitted to.
CAN = os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0
own_names = pytest.mark.skipif(not CAN, reason="only root can give a server names of its own")


@pytest.fixture
def names(tmp_path):
    made = Names(tmp_path / "etc")
    yield made
    made.close()


class Hosts:
    """One application at a port of several addresses: it answers with the address."""

    def __init__(self):
        self.port = 0
        self.all = []

    def add(self, host, handle=None, kind=upstream.Upstream):
        app = kind(handle or (lambda asked: asked.answer(host.encode())), None, host, self.port)
        self.port = app.port
        self.all.append(app)
        return app

    def close(self):
        for app in self.all:
            app.close()
            assert not app.faults


@pytest.fixture
def hosts():
    made = Hosts()
    yield made
    made.close()


@pytest.fixture
def begin(start, tmp_path, names, hosts):
    """begin(name): a server in front of the hosts of that name."""
    def begin_with(name="app.test", pool=SOON, more="", root=tmp_path):
        file = upstream.config(tmp_path, [f"{name}:{hosts.port}"], pool=pool, more=more)
        return start(root, "--threads", 2, "--config", file, prefix=names.prefix)

    return begin_with


def seen(server, count):
    """Returns who answers that many requests."""
    answers = [fetch(server.port, "/app") for _ in range(count)]
    assert {answer.status for answer in answers} == {200}
    return {answer.body.decode() for answer in answers}


def seen_soon(server, count, expected):
    """Threads learn of new addresses a moment after the log."""
    deadline = time.monotonic() + TIMEOUT
    while (last := seen(server, count)) != expected:
        assert time.monotonic() < deadline, last


def addresses(server):
    return server.status()["workers"]["pools"][0]["addresses"]


def is_now(server, hosts, *texts, name="app.test"):
    """Waits until the log says that the name has these addresses."""
    told = ", ".join(f"{text}:{hosts.port}" for text in texts)
    assert server.errors.wait(f'"{name}:{hosts.port}" is {told}$'), server.errors.text()


# --- without a name server -------------------------------------------------------------------


def test_localhost(served, tmp_path):
    """With the names of this machine."""
    app = upstream.Upstream(lambda asked: asked.answer(b"here"))
    file = upstream.config(tmp_path, [f"localhost:{app.port}"])
    served(app, "--config", file)
    assert fetch(app.server.port, "/app").body == b"here"
    assert app.address in addresses(app.server)


@own_names
def test_both_families(begin, names, hosts):
    hosts.add("127.0.0.1")
    there = ["127.0.0.1"]
    with contextlib.suppress(OSError):
        hosts.add("::1")
        there.append("::1")
    server = begin("localhost")
    assert seen(server, 8) == set(there)
    assert addresses(server) == [app.address for app in hosts.all]


@own_names
def test_hosts_file_changes(begin, names, hosts):
    for host in ("127.0.0.2", "127.0.0.3"):
        hosts.add(host)
    names.hosts("127.0.0.2 app.test app\n")
    server = begin("app")
    assert seen(server, 4) == {"127.0.0.2"}
    names.hosts("127.0.0.3 app.test app\n")
    is_now(server, hosts, "127.0.0.3", name="app")
    seen_soon(server, 4, {"127.0.0.3"})
    assert seen(server, 4) == {"127.0.0.3"}


# --- addresses ---------------------------------------------------------------------------------


@own_names
@pytest.mark.parametrize("ttl", [0, 0x7FFFFFFF, 0xFFFFFFFF])
def test_addresses_come_and_go(begin, names, hosts, ttl):
    """However long a DNS server says that they are good for."""
    for host in ("127.0.0.2", "127.0.0.3", "127.0.0.4"):
        hosts.add(host)
    names.set("app.test", "127.0.0.3", "127.0.0.2", ttl=ttl)
    server = begin()
    assert seen(server, 12) == {"127.0.0.2", "127.0.0.3"}
    names.set("app.test", "127.0.0.3", "127.0.0.4", ttl=ttl)
    is_now(server, hosts, "127.0.0.3", "127.0.0.4")
    server.wait_status(lambda status: status["workers"]["pools"][0]["addresses"] == [
        f"127.0.0.3:{hosts.port}", f"127.0.0.4:{hosts.port}"])
    seen_soon(server, 12, {"127.0.0.3", "127.0.0.4"})
    assert seen(server, 12) == {"127.0.0.3", "127.0.0.4"}


@own_names
@pytest.mark.parametrize("keep", ["", "keep-connection=1h\n"])
def test_running_requests_end_where_they_are(begin, names, hosts, keep):
    reached, go_on = threading.Event(), threading.Event()

    def slow(asked):
        if asked.target == "/app/slow":
            asked.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nold")
            reached.set()
            assert go_on.wait(TIMEOUT)
            asked.send(b"end")
        else:
            asked.answer(b"127.0.0.2")

    old = hosts.add("127.0.0.2", slow)
    hosts.add("127.0.0.3")
    names.set("app.test", "127.0.0.2")
    server = begin(pool=SOON + keep)
    assert seen(server, 4) == {"127.0.0.2"}
    with contextlib.closing(http_connection(server.port)) as connection:
        connection.request("GET", "/app/slow")
        assert reached.wait(TIMEOUT)
        names.set("app.test", "127.0.0.3")
        is_now(server, hosts, "127.0.0.3")
        seen_soon(server, 4, {"127.0.0.3"})
        before = old.requests
        assert seen(server, 8) == {"127.0.0.3"}
        go_on.set()
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"oldend")
    # It is not kept for a next request, nor is any other one to the address.
    for _ in range(old.connections):
        assert old.ended.acquire(timeout=TIMEOUT)
    assert old.requests == before


@own_names
@pytest.mark.parametrize("pool", ["", "keep-connection=1h\n", "keep-connection=1h\nin-flight=1\n"])
def test_no_request_fails_while_addresses_change(begin, names, hosts, pool):
    """Under load, by connections that are kept or not, and that calls wait for."""
    every = [f"127.0.0.{i}" for i in range(2, 8)]
    hosts.add("0.0.0.0")
    names.set("app.test", *every[:2])
    server = begin(pool=SOON + pool)
    over, failed = threading.Event(), []

    def load():
        with Client(server.port) as client:
            while not over.is_set():
                client.send(request("/app"))
                answer = client.response()
                if answer.status != 200:
                    failed.append(answer)

    clients = [threading.Thread(target=load) for _ in range(6)]
    for one in clients:
        one.start()
    try:
        for at in (2, 4, 1):
            names.set("app.test", *every[at : at + 2])
            is_now(server, hosts, *every[at : at + 2])
    finally:
        over.set()
        for one in clients:
            one.join(TIMEOUT)
    assert not failed
    server.wait_status(lambda status: status["connections"]["working"] == 1)


@own_names
def test_fails_over(begin, names, hosts):
    """An address where nobody listens is left out; and the name is looked up at once."""
    hosts.add("127.0.0.2")
    names.set("app.test", "127.0.0.2", "127.0.0.3")
    server = begin(pool="resolve-interval=1h\n")
    assert seen(server, 12) == {"127.0.0.2"}
    assert server.errors.wait("127.0.0.3:.*: cannot be reached")
    names.set("app.test", "127.0.0.2")
    is_now(server, hosts, "127.0.0.2")


@own_names
def test_fastcgi(start, tmp_path, names, hosts):
    def handle(asked):
        asked.body()
        asked.answer(b"by FastCGI")

    app = hosts.add("127.0.0.2", handle, Application)
    names.set("app.test", "127.0.0.2")
    for options in (["--fastcgi", f"/app=app.test:{app.port}"],
                    ["--fastcgi", f"/app=127.0.0.9:1,app.test:{app.port}"]):
        server = start(tmp_path, *options, prefix=names.prefix)
        assert seen(server, 8) == {"by FastCGI"}


# --- no addresses ------------------------------------------------------------------------------


@own_names
def test_unknown_at_the_start(begin, names, hosts):
    """As behind an application that is started later: the server serves all else, and the pool as
    soon as the name is known."""
    hosts.add("127.0.0.2")
    server = begin(pool="resolve-interval=1h\n")
    assert server.errors.wait('upstream "app.test": the name cannot be resolved: .*no request gets')
    assert [fetch(server.port, path).status for path in ("/app", "/nothing", "/app")] == [
        503, 404, 503]
    assert addresses(server) == []
    names.set("app.test", "127.0.0.2")
    is_now(server, hosts, "127.0.0.2")
    assert server.errors.wait("resolved again")
    assert seen(server, 4) == {"127.0.0.2"}
    assert server.errors.count("cannot be resolved") == 1


@own_names
def test_addresses_stay_when_lookups_fail(begin, names, hosts):
    hosts.add("127.0.0.2")
    names.set("app.test", "127.0.0.2")
    server = begin()
    for wrong in ([], ["0.0.0.0", "224.0.0.1", "::"], [SILENT], [BROKEN], ["app.test"]):
        names.set("app.test", *wrong)
        # The second of them begins after the first has ended.
        names.wait_asked("app.test", 2)
        assert seen(server, 4) == {"127.0.0.2"}
    assert server.errors.count("cannot be resolved: .*its last addresses stay in use", 1) == 1
    names.unset("app.test")
    names.wait_asked("app.test", 2)
    assert seen(server, 4) == {"127.0.0.2"}
    assert addresses(server) == [f"127.0.0.2:{hosts.port}"]
    assert server.errors.count("cannot be resolved") == 1
    names.set("app.test", "127.0.0.2")
    assert server.errors.wait("resolved again")


@own_names
def test_silent_name_server(begin, names, hosts):
    """The start waits a moment only; requests wait for the first answer; the end waits for none."""
    hosts.add("127.0.0.2")
    names.set("app.test", SILENT)
    names.resolve("timeout:30 attempts:5")
    server = begin(pool=SOON + "queue-timeout=1s\n")
    assert server.errors.wait("no name server has answered for the name yet")
    assert fetch(server.port, "/nothing").status == 404
    assert fetch(server.port, "/app").status == 503
    server.stop()


@own_names
@pytest.mark.parametrize("first", [[SILENT], []])
def test_requests_wait_for_the_first_lookup(begin, names, hosts, first):
    """Of a pool that a reload brings. The system's resolver asks again after a second."""
    names.resolve("timeout:1 attempts:5")
    hosts.add("127.0.0.2")
    names.set("app.test", "127.0.0.2")
    names.set("new.test", *first)
    server = begin()
    path = server.process.args[server.process.args.index("--config") + 1]
    with open(path, "r+", encoding="utf-8") as file:
        text = file.read().replace("app.test", "new.test")
        file.seek(0)
        file.write(text)
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("reloaded")
    if not first:
        assert server.errors.wait('"new.test": the name cannot be resolved')
        assert fetch(server.port, "/app").status == 503
    names.set("new.test", "127.0.0.2")
    if first:
        assert seen(server, 1) == {"127.0.0.2"}
        assert server.errors.count("cannot be resolved") == 0
    is_now(server, hosts, "127.0.0.2", name="new.test")
    assert seen(server, 4) == {"127.0.0.2"}


@own_names
def test_too_many_addresses(begin, names, hosts):
    """Some of a thousand are used; the others come when these go."""
    hosts.add("0.0.0.0")
    many = [f"127.0.{i // 200 + 3}.{i % 200 + 1}" for i in range(1000)]
    names.set("app.test", "127.0.0.2", *many)
    server = begin(pool=SOON + "queue-timeout=1s\n")
    assert server.errors.wait("the name has 1001 addresses")
    assert len(addresses(server)) == 32
    assert seen(server, 40) == {"0.0.0.0"}
    names.set("app.test", "127.0.0.2")
    is_now(server, hosts, "127.0.0.2")
    assert addresses(server) == [f"127.0.0.2:{hosts.port}"]
    assert seen(server, 4) == {"0.0.0.0"}


# --- the rest of the server --------------------------------------------------------------------


@own_names
def test_reload_keeps_addresses(begin, names, hosts):
    """Also if something else of the pool changes, while no name server answers."""
    hosts.add("127.0.0.2")
    names.set("app.test", "127.0.0.2")
    server = begin()
    names.set("app.test", SILENT)
    names.wait_asked("app.test", 1)
    path = server.process.args[server.process.args.index("--config") + 1]
    for count, more in enumerate(["", "timeout=50s\n", "timeout=40s\nqueue=0\n"], 1):
        with open(path, encoding="utf-8") as file:
            text = file.read().replace("[pool app]\n", "[pool app]\n" + more)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded", count)
        assert seen(server, 4) == {"127.0.0.2"}
        assert addresses(server) == [f"127.0.0.2:{hosts.port}"]
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(more, "", 1))


@own_names
def test_after_the_privileges_are_dropped(begin, folder, names, hosts):
    for host in ("127.0.0.2", "127.0.0.3"):
        hosts.add(host)
    names.set("app.test", "127.0.0.2")
    server = begin(more="user=nobody\nread-only=on\n", root=folder)
    assert seen(server, 2) == {"127.0.0.2"}
    names.set("app.test", "127.0.0.3")
    is_now(server, hosts, "127.0.0.3")
    seen_soon(server, 2, {"127.0.0.3"})


@own_names
def test_check_asks_no_name_server(tmp_path, names):
    names.set("app.test", SILENT)
    file = upstream.config(tmp_path, ["app.test:80"])
    done = once("--check-config", "--config", file, prefix=names.prefix)
    assert (done.returncode, done.stderr) == (0, "")
    assert not names.asked


@pytest.mark.parametrize("text", [
    "app", "app:", "app:0", "app:65536", "app:http", "a..b:80", "-a:80", "127.0.0.256:80", "127.1:80",
    "0x7f000001:80", "a" * 64 + ":80", "http://app:80", "app:80,tls", "127.0.0.1:80,tls", "app/x:80",
    ".".join(["a" * 63] * 4) + ":80"])
def test_no_names(tmp_path, text):
    status, said = check_config(upstream.config(tmp_path, [text]))
    assert status == 1 and f'upstream "{text}"' in said, said


def test_more_addresses_than_possible(tmp_path):
    names = [f"app{i}:80" for i in range(65)]
    status, said = check_config(upstream.config(tmp_path, names))
    assert status == 1 and "at most 64" in said, said
    assert check_config(upstream.config(tmp_path, names[:64])) == (0, "")


def test_status_of_fixed_addresses(behind):
    app = behind(lambda asked: asked.answer(b""), tcp=True)
    assert addresses(app.server) == [app.address]
