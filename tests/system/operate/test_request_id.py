# SPDX-License-Identifier: MIT
"""The id of a request: made or taken, sent to programs and clients, and logged."""

import json
import re

import pytest

from client import Client, exchange, fetch
from files import write
from server import running

MADE = re.compile(r"[0-9a-f]{32}")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "root" / "five", b"five\n")
    script = tmp_path / "cgi" / "id"
    write(script, b"#!/bin/sh\nprintf 'Content-Type: text/plain\\nX-Request-Id: of the program\\n"
                  b"X-Other: yes\\nContent-Length: %d\\n\\n%s' ${#HTTP_X_REQUEST_ID} \"$HTTP_X_REQUEST_ID\"\n")
    script.chmod(0o755)
    return tmp_path


def serve(kind, folder, keys):
    config = folder / "sweet.conf"
    write(config, f"[sweet]\nroot={folder}/root\naccess-log={folder}/log\nthreads=1\n"
                  "log-format=template:{request-id} {status}\n"
                  f"cgi=/cgi={folder}/cgi\n{keys}".encode())
    return running(kind, None, "--config", config)


def test_made(kind, folder):
    """Each request has another id; programs, clients and the log have the same one."""
    with serve(kind, folder, "request-id=on\n") as server:
        seen = []
        with Client(server.port) as client:
            for target, fields in [("/five", ""), ("/five", "X-Request-Id: mine\r\n"), ("/none", ""),
                                   ("/cgi/id", "X-Request-Id: mine\r\n"), ("/cgi/id", "")]:
                got = client.get(target, fields=fields)
                assert MADE.fullmatch(got["x-request-id"])
                assert got.head.lower().count(b"x-request-id:") == 1
                seen.append(got["x-request-id"])
                if target == "/cgi/id":
                    assert got.body.decode() == seen[-1] and got["x-other"] == "yes"
        # What cannot be understood has one, too.
        answer = exchange(server.port, b"NONSENSE\r\n\r\n").decode()
        seen.append(re.search(r"\r\nX-Request-Id: (\w+)\r\n", answer, re.I)[1])
        assert len(set(seen)) == len(seen)
    assert (folder / "log").read_text().split()[::2] == seen


def test_off(folder):
    with serve("epoll", folder, "") as server:
        assert "x-request-id" not in fetch(server.port, "/five", fields="X-Request-Id: a\r\n")
        got = fetch(server.port, "/cgi/id", fields="X-Request-Id: a\r\n")
        assert got.body == b"a" and got["x-request-id"] == "of the program"
    assert (folder / "log").read_text() == "- 200\n- 200\n"


@pytest.mark.parametrize("given, taken", [
    ("Abc.1_2-3", True), ("x" * 64, True), ("x" * 65, False), ("", False), ("a b", False),
    ("a\"b", False), ("a/b", False), ("\xe4", False), ("a\tb", False)])
def test_trust(folder, given, taken):
    with serve("epoll", folder, "request-id=trust\n") as server:
        got = fetch(server.port, "/cgi/id", fields=f"X-Request-Id: {given}\r\n")
        assert (got["x-request-id"] == given) == taken
        assert taken or MADE.fullmatch(got["x-request-id"])
        assert got.body.decode() == got["x-request-id"]


@pytest.mark.parametrize("proxies, taken", [("127.0.0.1", True), ("192.0.2.0/24", False)])
def test_trusted_proxies(folder, proxies, taken):
    """With proxies that are trusted, others cannot choose the id."""
    with serve("epoll", folder, f"request-id=trust\ntrusted-proxies={proxies}\n") as server:
        got = fetch(server.port, "/cgi/id", fields="X-Request-Id: abc\r\n")
        assert (got["x-request-id"] == "abc") == taken
        assert got.body.decode() == got["x-request-id"]


def test_kept_response(folder):
    """A response from the cache has the id of its own request."""
    with serve("epoll", folder, "request-id=on\n[path /cgi]\ncache=30s\n") as server:
        first = fetch(server.port, "/cgi/id")
        second = fetch(server.port, "/cgi/id")
        assert first.body == second.body == first["x-request-id"].encode()
        assert MADE.fullmatch(second["x-request-id"]) and second["x-request-id"] != first["x-request-id"]


def test_json(folder):
    write(folder / "sweet.conf", f"[sweet]\nroot={folder}/root\naccess-log={folder}/log\n"
          "log-format=json\nrequest-id=trust\n".encode())
    with running("epoll", None, "--config", folder / "sweet.conf") as server:
        fetch(server.port, "/five", fields="X-Request-Id: abc\r\n")
    assert json.loads((folder / "log").read_text())["request_id"] == "abc"
