# SPDX-License-Identifier: MIT
"""include: a configuration of several files."""

import signal

import pytest

import server as servers
from client import Client
from files import write
from server import check_config

SITES = """[host {name}.example]
root={top}/{name}
[path {name}.example/old]
redirect=/new
"""


@pytest.fixture()
def site(tmp_path):
    for name in ["one", "two"]:
        write(tmp_path / name / "index.html", f"{name}\n".encode())
        write(tmp_path / "sites.d" / f"{name}.conf",
              SITES.format(name=name, top=tmp_path).encode())
    write(tmp_path / "sites.d/ignored.conf~", b"nonsense\n")
    (tmp_path / "empty").mkdir()
    return tmp_path


def get(server, target, host):
    with Client(server.port) as client:
        client.send(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return client.response()


def test_sites(site):
    rules = write(site / "sweet.conf", b"[sweet]\ninclude=sites.d/*.conf;empty/*.conf\n")
    with servers.running("epoll", site / "one", "--config", rules) as server:
        for name in ["one", "two"]:
            assert get(server, "/", f"{name}.example").body == f"{name}\n".encode()
            assert get(server, "/old", f"{name}.example")["Location"] == "/new"


def test_reload(site):
    """It reads files that have come since, and not those that are gone."""
    rules = write(site / "sweet.conf", b"[sweet]\ninclude=sites.d/*.conf;empty/*.conf\n")
    with servers.running("epoll", site / "one", "--config", rules) as server:
        assert get(server, "/", "three.example").body == b"one\n"
        write(site / "three/index.html", b"three\n")
        write(site / "empty/three.conf", SITES.format(name="three", top=site).encode())
        (site / "sites.d/two.conf").unlink()
        server.send_signal(signal.SIGHUP)
        server.wait_status(lambda status: status["config"]["generation"] == 2)
        assert get(server, "/", "three.example").body == b"three\n"
        assert get(server, "/old", "three.example")["Location"] == "/new"
        assert get(server, "/", "two.example").body == b"one\n"
        # A file with an error changes nothing.
        write(site / "empty/four.conf", b"[host four.example]\nindx=a\n")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait('empty/four.conf:2: unknown key "indx"')
        assert get(server, "/", "three.example").body == b"three\n"


def test_folders_of_hosts(site):
    """One line names the folders of all sites."""
    write(site / "default/index.html", b"default\n")
    write(site / "files/one.example/a", b"one's own\n")
    for name in ["one", "two"]:
        (site / name).rename(site / f"{name}.example")
        write(site / "sites.d" / f"{name}.conf", f"[host {name}.example]\nnames={name}.example;{name}.other\n"
              f"[path {name}.example/files]\nalias={site}/files/{{host}}\n".encode())
    write(site / "files/two.example/a", b"two's own\n")
    rules = write(site / "sweet.conf",
                  f"[sweet]\ninclude=sites.d/*.conf\nroot={site}/{{host}}\n".encode())
    with servers.running("epoll", None, "--config", rules) as server:
        for host, body in [("one.example", "one"), ("two.other", "two"), ("none", "default")]:
            assert get(server, "/", host).body == f"{body}\n".encode()
        for name in ["one", "two"]:
            assert get(server, "/files/a", f"{name}.example").body == f"{name}'s own\n".encode()


@pytest.mark.parametrize(("files", "message"), [
    ({"a.conf": "[sweet]\nthreads=1\n"}, "sites.d/a.conf:1: [sweet] is given twice, first at "),
    ({"a.conf": "threads=1\n"}, 'sites.d/a.conf:1: "threads=1" comes before the first group'),
    ({"a.conf": "[host a]\n[host one.example]\n"}, "[host one.example] is given twice"),
    ({"a.conf": "[host a]\nroot=/\nroot=/\n"}, "sites.d/a.conf:3: root is given twice"),
    ({"a.conf": "[host a.example]\nindx=a\n"}, 'sites.d/a.conf:2: unknown key "indx"'),
    ({"a.conf": "[host a.example]\ninclude=a\n"},
     'key "include" does not belong into [host a.example]'),
    ({"a.conf/b": ""}, "a.conf"),
])
def test_errors(site, files, message):
    rules = write(site / "sweet.conf", f"[sweet]\ninclude={site}/sites.d/*.conf\n".encode())
    assert check_config(rules)[0] == 0
    for name, text in files.items():
        write(site / "sites.d" / name, text.encode())
    status, errors = check_config(rules)
    assert status == 1 and message in errors, errors


def test_missing(site):
    rules = write(site / "sweet.conf", b"[sweet]\ninclude=none.conf;sites.d/one.conf\n")
    status, errors = check_config(rules)
    assert status == 1
    assert 'sweet.conf:2: include "none.conf": there is no such file' in errors
