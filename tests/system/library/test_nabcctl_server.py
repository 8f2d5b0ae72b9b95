# SPDX-License-Identifier: MIT
"""nabcctl: routes, and the cache of the server."""

import json
import stat
import time

from client import Client, fetch
from files import MB, pattern, write
from server import TIMEOUT, Server, once, running
from test_nabcctl import bad, ctl, folder, good, header_fields, ids, owner


# --- routes --------------------------------------------------------------------------------------


def routes(path):
    return {one["address"]: one for one in json.loads(good(path, "routes", "--json"))}


def test_routes_can_be_set(owner):
    assert routes(owner.path) == {} and good(owner.path, "routes").count(b"\n") == 1
    assert good(owner.path, "routes", "set", "192.0.2.1", "copy") == b""
    good(owner.path, "routes", "set", "2001:db8::1", "splice")
    found = routes(owner.path)
    assert set(found) == {"192.0.2.1", "2001:db8::1"}
    assert set(found["192.0.2.1"]) == header_fields("NC_route") - {"octets"}
    assert (found["192.0.2.1"]["method"], found["192.0.2.1"]["family"]) == ("copy", "inet")
    assert (found["2001:db8::1"]["method"], found["2001:db8::1"]["family"]) == ("splice", "inet6")
    good(owner.path, "routes", "set", "*", "learn")
    assert {one["method"] for one in routes(owner.path).values()} <= {"learn"}
    assert "IPv4 or IPv6 address" in bad(owner.path, "routes", "set", "example.org", "copy")
    assert "cannot send by kernel" in bad(owner.path, "routes", "set", "192.0.2.1", "kernel")


def test_no_room_for_routes(owner):
    """At most the limit can be fixed; after one is set to learn, another fits."""
    count = 0
    while not (done := ctl(owner.path, "routes", "set", f"192.0.2.{count}", "copy")).returncode:
        count += 1
    assert b"cannot fix more routes" in done.stderr and count == 64
    assert len(routes(owner.path)) == count
    good(owner.path, "routes", "set", "192.0.2.7", "learn")
    good(owner.path, "routes", "set", "198.51.100.1", "copy")
    assert "198.51.100.1" in routes(owner.path) and len(routes(owner.path)) == count


def route_with(path, total):
    """Returns the route of the loopback, once all sent bytes are counted."""
    deadline = time.monotonic() + TIMEOUT
    while sum((route := routes(path)["127.0.0.1"])["bytes"].values()) < total:
        assert time.monotonic() < deadline, route
    return route


def test_socket_of_a_server_that_was_killed(kind, folder):
    """The next server replaces it; the socket of a living one is never replaced."""
    write(folder / "root/page", b"page\n")
    path = folder / "socket"
    options = ["--cache-socket", path]
    Server(kind, folder / "root", *options).kill()
    assert path.is_socket()
    with running(kind, folder / "root", *options):
        assert b"units" in good(path, "stat")
        said = once("--listen", "127.0.0.1:0", "--root", folder / "root", *options)
        assert said.returncode == 1 and "Address already in use" in said.stderr
        assert b"units" in good(path, "stat")
    assert not path.exists()
    write(path, b"somebody's file")
    said = once("--listen", "127.0.0.1:0", "--root", folder / "root", *options)
    assert said.returncode == 1 and path.read_bytes() == b"somebody's file"


def test_routes_of_the_server(kind, folder):
    body = pattern(MB)
    write(folder / "root/page", body)
    path = folder / "socket"
    with running(kind, folder / "root", "--cache-socket", path) as server:
        with Client(server.port) as client:
            assert client.get("/page").body == body
            # The whole of it is counted before the next request begins.
            client.get("/page", "HEAD")
        # Of small messages, a route counts a sample.
        before = route_with(path, MB // 2)
        assert before["method"] == "learn" and before["local"] == 1 and before["why"]
        # Whatever the route has learnt, from now on its bytes are copied.
        good(path, "routes", "set", "127.0.0.1", "copy")
        assert fetch(server.port, "/page").body == body
        after = route_with(path, sum(before["bytes"].values()) + MB // 2)
        assert after["method"] == after["lasting"] == "copy"
        assert after["bytes"]["copy"] - before["bytes"]["copy"] >= MB // 2
        assert after["bytes"]["splice"] == before["bytes"]["splice"]
        line = good(path, "routes").decode().splitlines()[1].split()
        assert line[:3] == ["127.0.0.1", "yes", "copy"]


# --- the server's cache --------------------------------------------------------------------------------------------


def test_of_the_server(kind, folder):
    body = pattern(300000)
    write(folder / "root/page", body)
    path = folder / "socket"
    with running(kind, folder / "root", "--cache-socket", path) as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert fetch(server.port, "/page").body == body
        units = json.loads(good(path, "list", "--json"))
        assert [unit["size"] for unit in units] == [len(body)]
        assert good(path, "get", units[0]["id"]) == body
        counters = json.loads(good(path, "stat", "--json"))
        shown = server.wait_status(lambda status: status["cache"]["members"] == 0)["cache"]
        assert {name: counters[name] for name in ("size", "units", "inserts")} == {
            name: shown[name] for name in ("size", "units", "inserts")
        }
        # A file whose unit was destroyed is read again.
        good(path, "destroy", units[0]["id"])
        assert fetch(server.port, "/page").body == body
        assert len(ids(path)) == 1 and ids(path) != [int(units[0]["id"])]
    assert not path.exists()


def test_by_the_file_of_settings(kind, folder):
    (folder / "root").mkdir()
    path = folder / "socket"
    config = write(folder / "sweet.conf", f"[sweet]\ncache-socket={path}\n".encode())
    with running(kind, folder / "root", "--config", config):
        assert ids(path) == []
