# SPDX-License-Identifier: MIT
"""Which pool runs a script: the suffixes of several pools, hosts with pools of their own, and paths
where no file is run."""

import pytest

import server as servers
from client import Client
from files import write
from responder import Application

SOURCE = b"<?php secret();\n"
RULES = """[sweet]
index=index.php;index.html
root={top}/root
[path /uploads]
pool=off
[path /uploads/mine]
pool=other
[path /uploads/below]
listing=on
[path /app]
pool=app
[path /app/files]
pool=off
[path /led]
pool=app
[path /inside]
internal=on
pool=off
[pattern uploads]
match=^/patterns/
pool=off
[pattern shown]
match=[.]html$
header=X-Shown: yes
[host two]
names=two.example
[path two/uploads]
variable=A=b
[host three]
names=three.example
[host off]
names=off.example
pool=off
[path off/on]
pool=one
[pool one]
protocol=fastcgi
upstream={one}
suffix=.php
[pool two]
protocol=fastcgi
upstream={two}
suffix=.php
hosts=two
[pool long]
protocol=fastcgi
upstream={long}
suffix=.inc.php
hosts=default;two;three
[pool other]
protocol=fastcgi
upstream={two}
[pool app]
protocol=fastcgi
upstream={app}
script-suffix=
accel=internal
"""


def say(name):
    def answer(request):
        request.body()
        lead = request.variables.get("HTTP_LEAD", "").encode()
        text = b"%s %s" % (name, request.variables["SCRIPT_NAME"].encode())
        request.answer(text, lead + (lead and b"\r\n") + b"Content-Type: text/plain\r\n"
                       b"Content-Length: %d\r\n" % len(text))
    return answer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    top = tmp_path_factory.mktemp("owners")
    for name in ["index.php", "a.php", "a.inc.php", "uploads/a.php", "uploads/index.php",
                 "uploads/mine/a.php", "uploads/below/a.php", "app/files/a.php", "inside/a.php",
                 "patterns/a.php", "on/a.php"]:
        write(top / "root" / name, SOURCE)
    write(top / "root/uploads/index.html", b"uploads\n")
    names = ["one", "two", "long", "app"]
    apps = {name: Application(say(name.encode()), top / f"{name}.sock") for name in names}
    addresses = {name: app.address for name, app in apps.items()}
    config = write(top / "sweet.conf", RULES.format(top=top, **addresses).encode())
    with servers.running("epoll", None, "--config", config) as server:
        yield server
    for app in apps.values():
        app.close()
        assert not app.faults


def ask(server, target, host="x", fields=""):
    with Client(server.port) as client:
        client.send(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode())
        return client.response()


@pytest.mark.parametrize("target", ["/uploads/a.php", "/uploads/a.php/b", "/uploads/below/a.php",
                                    "/app/files/a.php", "/patterns/a.php", "/uploads/index.php"])
def test_off(server, target):
    """pool=off stops the pools of suffixes as well; a script is still no file to send."""
    answer = ask(server, target)
    assert answer.status == 404 and SOURCE not in answer.body


def test_index_where_it_is_off(server):
    """The next index that is a file."""
    assert ask(server, "/uploads/").body == b"uploads\n"


def test_near_pools(server):
    assert ask(server, "/uploads/mine/a.php").body == b"two /uploads/mine/a.php"
    assert ask(server, "/a.php").body == b"one /a.php"
    assert ask(server, "/").body == b"one /index.php"


def test_off_for_programs(server):
    """Nor can a program have it run."""
    answer = ask(server, "/led/x", fields="Lead: X-Accel-Redirect: /inside/a.php\r\n")
    assert answer.status == 404 and SOURCE not in answer.body


def test_hosts(server):
    assert ask(server, "/a.php", "two.example").body == b"two /a.php"
    assert ask(server, "/", "two.example").body == b"two /index.php"
    # A path of the default host is none of this one.
    assert ask(server, "/uploads/a.php", "two.example").body == b"two /uploads/a.php"
    assert ask(server, "/a.php", "three.example").body == b"one /a.php"
    assert ask(server, "/a.php", "off.example").status == 404
    assert ask(server, "/on/a.php", "off.example").body == b"one /on/a.php"


def test_longest_suffix(server):
    for host in ["x", "two.example", "three.example"]:
        assert ask(server, "/a.inc.php", host).body == b"long /a.inc.php"
    # No pool of this host has it, and what it would be is not sent.
    assert ask(server, "/a.inc.php", "off.example").status == 404


PHP = "[pool {name}]\nprotocol=fastcgi\nupstream=127.0.0.1:1\nsuffix={suffix}\n{more}\n"


def pools(*rows):
    return "".join(PHP.format(name=name, suffix=suffix, more=more) for name, suffix, more in rows)


@pytest.mark.parametrize("text, message", [
    (pools(("a", ".php", ""), ("b", ".php", "")),
     'sweet.conf:9: pool "b": suffix ".php" is also of pool "a" ({top}/sweet.conf:4)'),
    (pools(("a", ".php", "hosts=one"), ("b", ".php", "hosts=two;one")),
     'sweet.conf:9: pool "b": suffix ".php" of host one is also of pool "a" ({top}/sweet.conf:4)'),
    (pools(("a", ".php", "hosts=default"), ("b", ".php", "hosts=default")),
     'pool "b": suffix ".php" of host default is also of pool "a"'),
    (pools(("a", ".php", "hosts=none")),
     'pool "a": hosts "none": there is no [host none]'),
    ("[pool a]\nprotocol=fastcgi\nupstream=127.0.0.1:1\nhosts=one\n",
     'pool "a" has hosts, which says whose files its suffix is about, but no suffix'),
])
def test_refused(tmp_path, text, message):
    config = write(tmp_path / "sweet.conf", f"[sweet]\n[host one]\n[host two]\n{text}".encode())
    status, errors = servers.check_config(config)
    assert status == 1 and message.format(top=tmp_path) in errors, errors


@pytest.mark.parametrize("text", [
    pools(("a", ".php", "hosts=one"), ("b", ".php", "hosts=two"), ("c", ".php", "")),
    pools(("a", ".php", ""), ("b", ".inc.php", "")),
])
def test_good(tmp_path, text):
    config = write(tmp_path / "sweet.conf", f"[sweet]\n[host one]\n[host two]\n{text}".encode())
    assert servers.check_config(config)[0] == 0
