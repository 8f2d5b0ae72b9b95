# SPDX-License-Identifier: MIT
"""Formats of the access log by template, and a log for each host."""

import datetime
import json
import os
import re
import signal
import socket
import struct

import pytest

import tls
from client import Client, exchange, fetch, request
from files import write
from server import BUILD, OBEY, TIMEOUT, check_config, running

TOLD = os.path.join(BUILD, "tests", "system", "worker-told")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "root" / "five", b"five\n")
    return tmp_path


def serve(kind, folder, keys, *options, **how):
    """A server with one thread, so that lines have an order; keys of [sweet], then groups."""
    config = folder / "sweet.conf"
    write(config, f"[sweet]\nroot={folder}/root\naccess-log={folder}/log\nthreads=1\n{keys}".encode())
    return running(kind, None, "--config", config, *options, **how)


def lines(folder, name="log"):
    return (folder / name).read_text().splitlines()


def test_words(kind, folder):
    """Each variable that a file has, within quotes and without."""
    before = datetime.datetime.now(datetime.timezone.utc)
    with serve(kind, folder, "log-format=template:{client} {client-port} {user} {time} [{time-local}] "
               '"{method} {path}" {query} {target} {protocol} {host} {status} {bytes} {head-bytes} '
               '{time-total} {tls-version} {pool} {cache} "{request.X-One}" {request.x-two} '
               '{response.content-type} {{}} {response.none}\n') as server:
        with Client(server.port) as client:
            assert client.get("/five?a b=1").status == 400
        with Client(server.port) as client:
            port = client.socket.getsockname()[1]
            answer = client.get("/five?b=1", fields="X-One: a \"quoted\" \\ text\r\nX-Two: b c\r\n")
            assert answer.body == b"five\n"
            client.get("/five")
            client.get("/none", "HEAD")
    bad, full, plain, none = lines(folder)
    assert ' "GET /five" a\\x20b=1 /five?a\\x20b=1 HTTP/1.1 - 400 ' in bad
    match = re.fullmatch(
        rf'127\.0\.0\.1 {port} - (\S+) \[(\d\d/\w{{3}}/\d{{4}}:\d\d:\d\d:\d\d [+-]\d{{4}})\] "GET /five" '
        r"b=1 /five\?b=1 HTTP/\S+ test 200 5 (\d+) \d+ (-|TLSv1\.[23]) - - "
        r'"a \\x22quoted\\x22 \\x5c text" b\\x20c (\S+) \{\} -', full)
    assert match, full
    when = datetime.datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%S.%f%z")
    now = datetime.datetime.now(datetime.timezone.utc)
    assert before - datetime.timedelta(seconds=1) <= when <= now
    assert int(match[3]) >= 100
    assert ' "GET /five" - /five HTTP' in plain and ' "-" - ' in plain
    assert ' "HEAD /none" ' in none and " 404 0 " in none


def test_json(kind, folder):
    """A line is valid JSON, whatever clients send."""
    with serve(kind, folder, 'log-format=json-template:{{"time":{time},"status":{status},"user":{user},'
               '"line":{request},"text":"<{request.X-A}>","agent":{request.User-Agent},'
               '"us":{time-total}}}\n') as server:
        fetch(server.port, "/five", fields='X-A: "quoted" \\ \xff\r\nUser-Agent:\r\n')
        exchange(server.port, b'NON"SENSE\x01\\\r\n\r\n')
    first, second = [json.loads(line) for line in lines(folder)]
    assert first["status"] == 200 and first["user"] is None and first["agent"] == ""
    assert first["line"].startswith("GET /five HTTP/")
    assert first["text"] in ('<"quoted" \\ \xff>', '<"quoted" \\ \u00c3\u00bf>')
    assert isinstance(first["us"], int)
    assert second["status"] == 400 and second["line"] == 'NON"SENSE\x01\\' and second["text"] == "<>"


def test_programs(kind, folder):
    """Which pool answered, what the response cache did, and fields of the program."""
    with serve(kind, folder, f"worker=/o={OBEY};/t={TOLD}\nworkers=1\n"
               "log-format=template:{path} {status} {pool} {cache} {response.x-obeyed}\n"
               "[path /t]\ncache=30s\n[path /o/off]\ncache=off\n") as server:
        with Client(server.port) as client:
            for target in ["/five", "/o/echo", "/o/nothing/x", "/t/a", "/t/a"]:
                client.get(target)
            client.get("/t/a", "POST", "Content-Length: 0\r\n")
    got = lines(folder)
    assert got[0] == "/five 200 - - -"
    assert re.fullmatch(r"/o/echo \d+ /o pass \S+", got[1])
    assert got[3:] == ["/t/a 200 /t miss -", "/t/a 200 /t hit -", "/t/a 200 /t pass -"]


@pytest.mark.clear("chooses TLS itself")
def test_tls(folder):
    with serve("epoll", folder, "log-format=template:{tls-version} {tls-cipher} {status}\n",
               *tls.options("ec"), listen="127.0.0.1:0,tls") as server:
        with Client(server.port, secure=True) as client:
            client.get("/five")
    assert re.fullmatch(r"TLSv1\.3 TLS_\w+ 200", lines(folder)[0])


HOSTS = """log-format=template:{path}
[host a.example]
access-log=%(folder)s/a
[host b.example]
log-format=template:b {path} {request.X-B}
[host c.example]
access-log=off
"""


def get_of_each(port, target):
    for host in ["a.example", "b.example", "c.example", "d.example"]:
        assert exchange(port, f"GET {target} HTTP/1.1\r\nHost: {host}\r\nX-B: x\r\n"
                              "Connection: close\r\n\r\n".encode()).endswith(b"five\n")


def test_hosts(kind, folder):
    """A file and a format for each host, reopened by the signal, with the permissions of others."""
    with serve(kind, folder, HOSTS % {"folder": folder}) as server:
        get_of_each(server.port, "/five?1")
        for name in ["log", "a"]:
            assert os.stat(folder / name).st_mode & 0o037 == 0
            os.rename(folder / name, folder / f"{name}.1")
        server.send_signal(signal.SIGUSR1)
        assert server.errors.wait("reopened the logs")
        get_of_each(server.port, "/five?2")
    for suffix in ["", ".1"]:
        assert lines(folder, "a" + suffix) == ["/five"]
        # Each format of a file has lines of its own order.
        assert sorted(lines(folder, "log" + suffix)) == ["/five", "b /five x"]


def test_reload(folder):
    """Requests of the old configuration get a line in the log of their host, in its new format."""
    with serve("epoll", folder, f"worker=/o={OBEY}\nworkers=1\n" + HOSTS % {"folder": folder}) as server:
        with Client(server.port) as client:
            client.send(b"GET /o/hang HTTP/1.1\r\nHost: b.example\r\nX-B: x\r\nX-C: y\r\n\r\n")
            server.wait_status(lambda status: status["workers"]["requests"] == 1)
            write(folder / "sweet.conf", f"""[sweet]
root={folder}/root
access-log={folder}/new
threads=1
log-format=template:{{request.X-C}} {{request.X-B}} {{path}}
worker=/o={OBEY}
workers=1
[host z.example]
access-log=off
[host b.example]
access-log={folder}/b
""".encode())
            server.send_signal(signal.SIGHUP)
            assert server.errors.wait("reloaded")
            # A reset: after a mere end, the client may still wait for the answer.
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.wait_status(lambda status: status["connections"]["open"] == 1)
        fetch(server.port, "/five", fields="X-B: 1\r\nX-C: 2\r\n")
    # The field X-C was not saved: no template named it when the request came.
    assert lines(folder, "b") == ["- x /o/hang"]
    assert lines(folder, "new")[-1] == "2 1 /five"


@pytest.mark.parametrize("text, says", [
    ("log-format=template:{client} {clint} {status}",
     'log-format "{clint} {status}": names no variable here; variables are client, client-port, user'),
    ("log-format=template:{client", "single brace"),
    ("log-format=template:{request.Authorization}", "names no variable"),
    ("[host a]\naccess-log=/none/such/log", 'access-log "/none/such/log": there is no folder'),
])
def test_check_config(folder, text, says):
    write(folder / "sweet.conf", f"[sweet]\n{text}\n".encode())
    status, said = check_config(folder / "sweet.conf")
    assert status == 1 and says in said
    assert re.search(r"sweet\.conf:(\d)", said)[1] == ("3" if "[host" in text else "2")
