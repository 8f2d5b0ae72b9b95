# SPDX-License-Identifier: MIT
"""trace=on: a trace is continued or begins; programs and the log see it."""

import json
import re

import pytest

from client import fetch
from files import write
from server import running

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "root" / "five", b"five\n")
    script = tmp_path / "cgi" / "trace"
    write(script, b"#!/bin/sh\nout=\"$HTTP_TRACEPARENT|$HTTP_TRACESTATE\"\n"
                  b"printf 'Content-Type: text/plain\\nContent-Length: %d\\n\\n%s' ${#out} \"$out\"\n")
    script.chmod(0o755)
    return tmp_path


def serve(kind, folder, keys="trace=on\n"):
    write(folder / "sweet.conf", f"[sweet]\nroot={folder}/root\naccess-log={folder}/log\nthreads=1\n"
          f"log-format=template:{{trace-id}} {{status}}\ncgi=/cgi={folder}/cgi\n{keys}".encode())
    return running(kind, None, "--config", folder / "sweet.conf")


def traced(server, *fields):
    """Returns version, trace, parent, flags and tracestate that a program sees."""
    got = fetch(server.port, "/cgi/trace", fields="".join(field + "\r\n" for field in fields))
    parent, _, state = got.body.decode().partition("|")
    match = re.fullmatch(r"(\w\w)-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", parent)
    assert match, parent
    return [*match.groups(), state]


def test_continued(kind, folder):
    with serve(kind, folder) as server:
        first = traced(server, f"traceparent: 00-{TRACE}-{PARENT}-00", "tracestate: a=1")
        second = traced(server, f"traceparent: cc-{TRACE}-{PARENT}-01-new", "tracestate: a=1")
    assert [first[0], first[1], first[3], first[4]] == ["00", TRACE, "00", "a=1"]
    assert [second[0], second[1], second[3], second[4]] == ["00", TRACE, "01", "a=1"]
    assert len({first[2], second[2], PARENT}) == 3
    assert (folder / "log").read_text() == f"{TRACE} 200\n" * 2


def test_begun(kind, folder):
    """Without a valid field a new trace begins, and tracestate is not passed."""
    with serve(kind, folder) as server:
        seen = [traced(server), traced(server, "traceparent: nonsense", "tracestate: a=1"),
                traced(server, *[f"traceparent: 00-{TRACE}-{PARENT}-01"] * 2)]
        assert fetch(server.port, "/five").body == b"five\n"
    assert all(one[0] == "00" and one[3] == "01" and one[4] == "" for one in seen)
    assert len({one[1] for one in seen} | {TRACE}) == 4
    logged = (folder / "log").read_text().split()[::2]
    assert logged[:3] == [one[1] for one in seen] and re.fullmatch("[0-9a-f]{32}", logged[3])


def test_trusted_proxies(folder):
    with serve("epoll", folder, "trace=on\ntrusted-proxies=192.0.2.0/24\n") as server:
        assert traced(server, f"traceparent: 00-{TRACE}-{PARENT}-00")[1] != TRACE


def test_off(folder):
    with serve("epoll", folder, "") as server:
        got = fetch(server.port, "/cgi/trace", fields=f"traceparent: {TRACE}\r\ntracestate: a\r\n")
    assert got.body.decode() == f"{TRACE}|a"
    assert (folder / "log").read_text() == "- 200\n"


def test_json(folder):
    write(folder / "sweet.conf", f"[sweet]\nroot={folder}/root\naccess-log={folder}/log\n"
          "log-format=json\ntrace=on\n".encode())
    with running("epoll", None, "--config", folder / "sweet.conf") as server:
        fetch(server.port, "/five", fields=f"traceparent: 00-{TRACE}-{PARENT}-00\r\n")
    assert json.loads((folder / "log").read_text())["trace_id"] == TRACE
