# SPDX-License-Identifier: MIT
"""Heads that come again and again are remembered (core/request-memory.h): whatever else a response
depends on counts each time, such as the client's address, the configuration and the file."""

import re

import pytest

import server as servers
import tls
from client import Client, request
from files import write
from test_reload import reload

TIMES = 4  # a head is remembered when it comes for the second time

CONFIG = """[sweet]
root={top}/a
status=on
threads=1
status-allow=127.0.0.1
request-id=on
[path /secret]
allow=127.0.0.1
[path /old]
redirect=308 /new/
[path /moved]
rewrite=/name
[path /down/deeper]
header=X-Path: {{path}}
[pattern numbers]
match=^/([0-9]+)$
rewrite=/{{1}}.txt
[host other]
names=other.example
root={top}/b
"""


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    top = tmp_path_factory.mktemp("repeated")
    for site in "ab":
        for name in ["name", "secret/name", "down/deeper/x", "1.txt", "2.txt"]:
            write(top / site / name, f"{site} {name}".encode())
    return top


@pytest.fixture(scope="module")
def server(top):
    with servers.running("epoll", top / "a", "--config",
                         write(top / "sweet.conf", CONFIG.format(top=top).encode())) as server:
        yield server


def ask(server, target, host="h", source=None, fields="", method="GET"):
    """Returns status, body and the fields that do not differ by time."""
    with Client(server.port, source=source) as client:
        client.send(request(target, method, fields, host))
        response = client.response(method)
    fields = {name: value for name, value in response.fields.items()
              if name not in ("date", "x-request-id")}
    return response.status, response.body, fields


@pytest.mark.parametrize("target, status, body", [
    ("/name", 200, b"a name"),
    ("/%6eame", 200, b"a name"),
    ("/moved", 200, b"a name"),
    ("/old", 308, None),
    ("/1", 200, b"a 1.txt"),
    ("/2", 200, b"a 2.txt"),
    ("/down/deeper/x", 200, b"a down/deeper/x"),
    ("/down/../name", 200, b"a name"),
    ("/down", 301, None),
    ("/%2e%2e/name", 400, None),
    ("/none", 404, None),
    ("/.hidden", 404, None),
])
def test_same(server, target, status, body):
    answers = [ask(server, target) for _ in range(TIMES)]
    assert answers == answers[:1] * TIMES
    assert answers[0][0] == status
    assert body is None or answers[0][1] == body


def test_fields(server):
    """Captures, variables and ids are of each request."""
    seen = set()
    for _ in range(TIMES):
        with Client(server.port) as client:
            client.send(b"GET /down/deeper/x HTTP/1.1\r\nHost: h\r\n\r\n")
            response = client.response()
        assert response["X-Path"] == "/down/deeper/x"
        seen.add(response["X-Request-Id"])
    assert len(seen) == TIMES


def test_address(server):
    """Rules for addresses count for each client; so does who may see the status page."""
    for _ in range(TIMES):
        assert ask(server, "/secret/name")[0] == 200
        assert ask(server, "/secret/name", source="127.0.0.2")[0] == 403
        assert ask(server, "/.sweet/status.json")[0] == 200
        assert ask(server, "/.sweet/status.json", source="127.0.0.2")[0] == 404
    # The other way around, so that the first to come was refused.
    for _ in range(TIMES):
        assert ask(server, "/secret/name", "x", source="127.0.0.2")[0] == 403
        assert ask(server, "/secret/name", "x")[0] == 200
        assert ask(server, "/.sweet/status.json", "x", source="127.0.0.2")[0] == 404
        assert ask(server, "/.sweet/status.json", "x")[0] == 200


def test_hosts(server):
    for _ in range(TIMES):
        assert ask(server, "/name", "other.example")[1] == b"b name"
        assert ask(server, "/name", "h.example")[1] == b"a name"


def test_hosts_by_address(kind, tmp_path):
    """One name leads to another host at another address."""
    for site in "ab":
        write(tmp_path / site / "name", site.encode())
    config = write(tmp_path / "sweet.conf", f"""[sweet]
listen=127.0.0.1:0;127.0.0.2:0
threads=1
root={tmp_path / "a"}
[host b]
listen=127.0.0.2:0
root={tmp_path / "b"}
""".encode())
    with servers.running(kind, None, "--config", config, listen=None) as server:
        assert server.errors.wait("listening on ", 2)
        ports = dict(re.findall(r"http://([\d.]+):(\d+)", server.errors.text()))
        for _ in range(TIMES):
            for address, site in [("127.0.0.1", b"a"), ("127.0.0.2", b"b")]:
                with Client(int(ports[address]), address=address) as client:
                    client.send(b"GET /name HTTP/1.1\r\nHost: h\r\n\r\n")
                    assert client.response().body == site


def test_methods_and_fields(server):
    for _ in range(TIMES):
        assert ask(server, "/name", method="HEAD")[1] == b""
        assert ask(server, "/name", fields="Range: bytes=2-\r\n")[:2] == (206, b"name")
        assert ask(server, "/name", fields="If-None-Match: *\r\n")[0] == 304
        assert ask(server, "/name", fields="Expect: other\r\n")[0] == 417
        assert ask(server, "/name", method="POST", fields="Content-Length: 0\r\n")[0] == 405


def test_pipelined(server):
    """Many of one kind at once, and a different one between them."""
    one = b"GET /name HTTP/1.1\r\nHost: h\r\n\r\n"
    other = b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n"
    with Client(server.port) as client:
        client.send((one * 20 + other) * 20)
        for _ in range(20):
            for _ in range(20):
                assert client.response().body == b"a name"
            assert client.response().body == b"a 1.txt"


def test_file(server, top):
    """The file counts each time."""
    path = top / "a/changes"
    for text in [b"one", b"two", b"three"]:
        write(path, text)
        for _ in range(TIMES):
            assert ask(server, "/changes")[1] == text
    path.unlink()
    for _ in range(TIMES):
        assert ask(server, "/changes")[0] == 404


def test_reloaded(kind, tmp_path):
    """The configuration counts each time: root, rules, limits, and whether proxies are known."""
    path = tmp_path / "sweet.conf"
    for name in "ab":
        write(tmp_path / name / "name", name.encode())

    def configure(keys, root="a"):
        write(path, f"[sweet]\nthreads=1\nroot={tmp_path / root}\n{keys}\n".encode())

    def get(source=None):
        return [ask(server, "/name", source=source, fields="X-Forwarded-For: 192.0.2.1\r\n")[:2]
                for _ in range(TIMES)]

    configure("")
    with servers.running(kind, None, "--config", path) as server:
        assert get() == [(200, b"a")] * TIMES
        configure("", "b")
        reload(server)
        assert get() == [(200, b"b")] * TIMES
        configure("deny=127.0.0.1", "b")
        reload(server)
        assert [status for status, _ in get()] == [403] * TIMES
        assert get("127.0.0.2") == [(200, b"b")] * TIMES
        configure("deny=192.0.2.1\ntrusted-proxies=127.0.0.1", "a")
        reload(server)
        assert [status for status, _ in get()] == [403] * TIMES
        assert get("127.0.0.2") == [(200, b"a")] * TIMES
        configure("max-fields=1")
        reload(server)
        assert [status for status, _ in get()] == [431] * TIMES
        configure("")
        reload(server)
        assert get() == [(200, b"a")] * TIMES


def test_certificates(kind, tmp_path):
    """The rules for clients' certificates count for each connection."""
    write(tmp_path / "root/name", b"name")
    config = write(tmp_path / "sweet.conf", f"""[sweet]
listen=127.0.0.1:0,tls
threads=1
root={tmp_path / "root"}
certificate={tls.file("ec.pem")}
key={tls.file("ec.key")}
client-ca={tls.file("authority.pem")}
[host inner]
names=inner.example
client-certificate=required
""".encode())

    def get(name, client=None):
        """The same head over a connection for that name."""
        with Client(server.port,
                    secure={"name": name, "settings": tls.context(client)}) as client:
            client.send(b"GET /name HTTP/1.1\r\nHost: inner.example\r\n\r\n")
            return client.response().status

    with servers.running(kind, None, "--config", config, listen=None) as server:
        for _ in range(TIMES):
            assert get("inner.example", "client") == 200
            assert get("plain.example", "client") == 421
            assert get("plain.example") == 421
