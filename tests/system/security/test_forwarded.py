# SPDX-License-Identifier: MIT
"""trusted-proxies: clients that proxies name in fields of requests; what others say of themselves
counts nothing."""

import re

import pytest

import server as servers
from client import Client
from files import write
from responder import Application

RULES = """[sweet]
trusted-proxies=127.0.0.2;192.0.2.0/24
hsts=max-age=60
log-level=info
access-log={top}/log
log-format=common
[path /inside]
allow=198.51.100.0/24
[path /outside]
deny=203.0.113.0/24
[path /limited]
request-rate=1
request-burst=1
[path /tls]
redirect=301 tls
[path /app]
pool=app
[path /from]
pool=redirecting
[pool app]
protocol=fastcgi
upstream={address}
script-suffix=
[pool redirecting]
protocol=cgi
folder={top}/programs
[host other]
names=other.example
root={top}/other
"""
FOR = "X-Forwarded-For: 198.51.100.7\r\n"
PROXY = "127.0.0.2"


def answer(request):
    request.body()
    text = "".join(f"{name}={value}\n" for name, value in sorted(request.variables.items()))
    request.answer(text.encode(),
                   b"Content-Type: text/plain\r\nContent-Length: %d\r\n" % len(text))


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    top = tmp_path_factory.mktemp("forwarded")
    write(top / "root/inside/a.txt", b"inside\n")
    write(top / "root/outside/a.txt", b"outside\n")
    write(top / "root/a.txt", b"here\n")
    write(top / "other/a.txt", b"other\n")
    write(top / "programs/on", b"#!/bin/sh\nprintf 'Location: /app/x\\n\\n'\n").chmod(0o755)
    return top


@pytest.fixture(scope="module")
def app(top):
    made = Application(answer, top / "app.sock")
    yield made
    made.close()
    assert not made.faults


@pytest.fixture(scope="module")
def server(top, app):
    rules = write(top / "sweet.conf", RULES.format(top=top, address=app.address).encode())
    with servers.running("epoll", top / "root", "--config", rules) as server:
        yield server


def ask(server, target, fields="", source=PROXY, host="a"):
    with Client(server.port, source=source) as client:
        client.send(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode())
        return client.response()


# What a client sends, so that the address that the proxy adds is not read.
SWALLOWING = ['"', '"\\', '198.51.100.7;x="', 'for="x', 'for=198.51.100.7;by="', 'for="x\\',
              'for=198.51.100.7;by="\\', 'unknown, "', '_hidden;"', "[", "[::1", "\\"]


@pytest.fixture(scope="module")
def standard(top, app):
    rules = RULES.format(top=top, address=app.address).replace(
        "hsts=", "forwarded=forwarded\nhsts=").replace("/log\n", "/standard.log\n")
    with servers.running("epoll", top / "root", "--config",
                         write(top / "standard.conf", rules.encode())) as server:
        yield server


@pytest.mark.parametrize("address", ["203.0.113.9", "2001:db8:9::9"])
@pytest.mark.parametrize("text", SWALLOWING)
def test_client_of_no_rule(server, standard, text, address):
    """Whatever it sends, a client that is served by a proxy is no proxy, and nobody else."""
    for one, fields in [(server, f"X-Forwarded-For: {text}, {address}\r\n"),
                        (server, f"X-Forwarded-For: {text}\r\nX-Forwarded-For: {address}\r\n"),
                        (standard, f'Forwarded: {text}, for="[{address}]:1"\r\n'),
                        (standard, f"Forwarded: {text}, for={address};by=\"_a\"\r\n")]:
        got = variables(one, fields)["REMOTE_ADDR"]
        assert got in (address, "0.0.0.0"), fields
        for path, status in (("/inside/a.txt", 403), ("/.sweet/status", 404)):
            assert ask(one, path, fields).status == status, fields
        if got == "0.0.0.0" or address.startswith("203"):
            assert ask(one, "/outside/a.txt", fields).status == 403, fields


def test_unknown_client(server):
    """It may be one that is denied, and it is not the proxy."""
    for entry in ("unknown", "_hidden", "garbage", "unknown, 192.0.2.1", "garbage, 192.0.2.1"):
        fields = f"X-Forwarded-For: {entry}\r\n"
        got = variables(server, fields)
        assert (got["REMOTE_ADDR"], got["REMOTE_PORT"]) == ("0.0.0.0", "0")
        for path in ("/inside/a.txt", "/outside/a.txt"):
            assert ask(server, path, fields).status == 403
        assert ask(server, "/a.txt", fields).body == b"here\n"
    assert ask(server, "/outside/a.txt").body == b"outside\n"


def variables(server, fields="", target="/app/x", **how):
    lines = ask(server, target, fields, **how).body.decode().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_access(server):
    assert ask(server, "/inside/a.txt", FOR).body == b"inside\n"
    for fields, source in [("", PROXY), (FOR, "127.0.0.1"), (FOR, "127.0.0.3"),
                           ("X-Forwarded-For: 198.51.100.7, 203.0.113.1\r\n", PROXY),
                           ("Forwarded: for=198.51.100.7\r\n", PROXY),
                           ("X-Real-IP: 198.51.100.7\r\n", PROXY)]:
        assert ask(server, "/inside/a.txt", fields, source).status == 403
    # What the client sent itself is to the left.
    assert ask(server, "/inside/a.txt", "X-Forwarded-For: 203.0.113.1, 198.51.100.7, 192.0.2.1\r\n"
               ).status == 200


@pytest.mark.clear("the scheme of the connection counts")
def test_programs(server):
    all_of_them = (FOR + "X-Forwarded-Proto: https\r\nX-Forwarded-Host: third.example\r\n"
                   "X-Forwarded-Port: 443\r\nForwarded: for=1.2.3.4\r\nX-Forwarded: 1.2.3.4\r\n"
                   "X-Real-IP: 1.2.3.4\r\n")
    got = variables(server, all_of_them)
    assert got["REMOTE_ADDR"] == "198.51.100.7" and got["REMOTE_PORT"] == "0"
    assert (got["HTTPS"], got["REQUEST_SCHEME"]) == ("on", "https")
    assert (got["HTTP_HOST"], got["SERVER_NAME"]) == ("third.example", "third.example")
    assert not [name for name in got if "FORWARDED" in name or "REAL" in name]
    got = variables(server, all_of_them, source="127.0.0.1")
    assert got["REMOTE_ADDR"] == "127.0.0.1" and "HTTPS" not in got
    assert got["HTTP_HOST"] == "a"
    assert not [name for name in got if "FORWARDED" in name or "REAL" in name]
    # A program sends the request to another path: it is the same client's.
    got = variables(server, all_of_them, "/from/on")
    assert (got["REMOTE_ADDR"], got["HTTPS"]) == ("198.51.100.7", "on")
    assert got["HTTP_HOST"] == "third.example"


@pytest.mark.clear("the scheme of the connection counts")
def test_hosts_and_schemes(server):
    assert ask(server, "/a.txt", "X-Forwarded-Host: other.example\r\n").body == b"other\n"
    assert ask(server, "/a.txt", "X-Forwarded-Host: other.example\r\n",
               "127.0.0.1").body == b"here\n"
    answer = ask(server, "/tls/x", FOR)
    assert (answer.status, answer["Location"]) == (301, "https://a/tls/x")
    assert "Strict-Transport-Security" not in answer
    answer = ask(server, "/tls/x", FOR + "X-Forwarded-Proto: https\r\n")
    assert answer.status == 404 and answer["Strict-Transport-Security"] == "max-age=60"


def is_limited(server, client, source=PROXY):
    """Returns True if the next request of the client exceeds its rate."""
    answer = ask(server, "/limited/x", f"X-Forwarded-For: {client}\r\n", source)
    assert answer.status in (404, 429)
    return answer.status == 429


def test_rate(server):
    """Each client behind a proxy has a limit of its own; another one cannot say who it is."""
    # The first request beyond the limit may come only after some that are slow.
    assert any(is_limited(server, "198.51.100.1") for _ in range(200))
    assert not is_limited(server, "198.51.100.2")
    assert any(is_limited(server, f"203.0.113.{number}", "127.0.0.1") for number in range(200))
    assert not is_limited(server, "203.0.113.1")


@pytest.mark.clear("the scheme of the connection counts")
def test_wrong_hops(server):
    """They end the list, and nothing that stands beside them is taken; the log has each once."""
    more = "X-Forwarded-Proto: https\r\nX-Forwarded-Host: third.example\r\n"
    before = server.errors.count("has no address")
    for number, entry in enumerate(("garbage", "198.51.100.700", "[2001:db8::7", "a b")):
        got = variables(server, f"X-Forwarded-For: 198.51.100.7, {entry}\r\n" + more)
        assert got["REMOTE_ADDR"] == "0.0.0.0" and "HTTPS" not in got and got["HTTP_HOST"] == "a"
        assert server.errors.wait("this proxy's X-Forwarded-For has no address in ",
                                  before + number + 1)
        assert server.errors.wait(f'{PROXY}: .*"{re.escape(entry)}": the client counts as unknown')
    got = variables(server, "X-Forwarded-For: wrong, 192.0.2.1\r\n" + more)
    assert got["REMOTE_ADDR"] == "0.0.0.0" and got["HTTPS"] == "on"
    assert server.errors.wait(f'{PROXY}: .*"wrong"')
    # Neither a proxy that does not know, nor what the client says itself.
    for fields in ("X-Forwarded-For: unknown\r\n", "X-Forwarded-For: other, 198.51.100.7\r\n"):
        assert variables(server, fields + more)["HTTPS"] == "on"
    variables(server, "X-Forwarded-For: garbage\r\n", source="127.0.0.1")
    assert ask(server, "/a.txt", "X-Forwarded-For: last\r\n").status == 200
    assert server.errors.wait('"last"')
    assert server.errors.count("has no address") == before + 6


@pytest.mark.clear("the scheme of the connection counts")
def test_lists_of_other_lengths(server):
    """The last ones of the shorter or longer list count."""
    hops = "X-Forwarded-For: 203.0.113.1, 198.51.100.7, 192.0.2.1\r\n"
    for schemes, https in (("https, http", False), ("http, https", True),
                           ("http, https, http", True), ("https, https, https, http", False)):
        got = variables(server, f"{hops}X-Forwarded-Proto: {schemes}\r\n")
        assert got["REMOTE_ADDR"] == "198.51.100.7" and ("HTTPS" in got) == https, schemes


def test_many_hops(server):
    """The last 32 entries are read."""
    for number, client in ((31, "198.51.100.7"), (32, "192.0.2.9"), (100, "192.0.2.9")):
        proxies = ", 192.0.2.9" * number
        got = variables(server, f"X-Forwarded-For: 198.51.100.7{proxies}\r\n")
        assert got["REMOTE_ADDR"] == client, number


def test_log(top, app):
    rules = write(top / "log.conf", RULES.format(top=top, address=app.address).replace(
        "/log\n", "/own.log\n").encode())
    with servers.running("epoll", top / "root", "--config", rules) as server:
        assert ask(server, "/a.txt?logged", FOR).status == 200
        assert ask(server, "/a.txt?itself").status == 200
    lines = (top / "own.log").read_text().splitlines()
    assert [line.split()[0] for line in lines if "logged" in line] == ["198.51.100.7"]
    assert [line.split()[0] for line in lines if "itself" in line] == [PROXY]


def test_standard(top, app):
    rules = write(top / "standard.conf",
                  (RULES.format(top=top, address=app.address)
                   + "[path /none]\n").replace("hsts", "forwarded=forwarded\nhsts").encode())
    with servers.running("epoll", top / "root", "--config", rules) as server:
        got = variables(server, FOR + "Forwarded: for=203.0.113.9, for=\"[2001:db8::9]:1\";"
                        "proto=https;host=third.example, for=192.0.2.1;proto=http\r\n")
        assert got["REMOTE_ADDR"] == "2001:db8::9" and got["HTTPS"] == "on"
        assert got["HTTP_HOST"] == "third.example" and "HTTP_X_FORWARDED_FOR" not in got


def test_without_proxies(top, app):
    """Then these are fields as any other."""
    rules = write(top / "plain.conf", RULES.format(top=top, address=app.address).replace(
        "trusted-proxies", "#").encode())
    with servers.running("epoll", top / "root", "--config", rules) as server:
        got = variables(server, FOR)
        assert got["REMOTE_ADDR"] == PROXY and got["HTTP_X_FORWARDED_FOR"] == "198.51.100.7"
