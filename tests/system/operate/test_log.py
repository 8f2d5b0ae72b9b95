# SPDX-License-Identifier: MIT
"""The access log: a line for each request, and its fields."""

import email.utils
import re
import time

import pytest

from client import Client, exchange, fetch, request
from files import MB, pattern, write
from server import once, running

LINE = re.compile(r'^(\S+) \[([^]]*)\] "((?:[^"\\]|\\x[0-9a-f]{2})*)" (\d{3}) (\d+) (\d+)us$')


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("log")
    write(root / "five", b"five\n")
    write(root / "large", pattern(MB))
    return root


@pytest.fixture
def server(kind, root):
    with running(kind, root, "--access-log", "-") as server:
        yield server


def entry(server, pattern, count=1):
    line = server.output.wait(pattern, count)
    assert line, server.output.text()
    fields = LINE.match(line)
    assert fields, line
    return fields.groups()


@pytest.mark.parametrize(
    "target, method, status, length",
    [("/five", "GET", 200, 5), ("/five", "HEAD", 200, 0), ("/none", "HEAD", 404, 0),
     ("/large", "GET", 200, MB), ("/", "GET", 403, None), ("/none", "POST", 405, None)],
)
def test_line(server, target, method, status, length):
    got = fetch(server.port, target, method)
    client, date, line, logged, sent, _ = entry(server, f'"{method} {target} ')
    assert client == "127.0.0.1"
    assert email.utils.parsedate_to_datetime(date) == email.utils.parsedate_to_datetime(got["Date"])
    assert line == f"{method} {target} HTTP/1.1"
    assert int(logged) == got.status == status
    assert int(sent) == len(got.body) == (len(got.body) if length is None else length)


def test_duration_is_of_the_request_alone(server):
    """The duration is at most the time from before the request to after its response."""
    bounds = []
    with Client(server.port) as client:
        for _ in range(5):
            # The server waits meanwhile; this time does not count for the next request.
            once("--version")
            before = time.monotonic_ns()
            assert client.get("/five").body == b"five\n"
            # It is counted, and so logged, before the next response is made.
            assert client.get("/five").status == 200
            bounds.append(time.monotonic_ns() - before)
    for number, bound in enumerate(bounds):
        microseconds = entry(server, "/five", 2 * number + 1)[5]
        assert int(microseconds) * 1000 <= bound


def test_every_request_has_a_line(server):
    with Client(server.port) as client:
        client.send(request("/five") * 50 + request("/none") * 50)
        for _ in range(100):
            client.response()
    entry(server, '"GET /five ', 50)
    entry(server, '"GET /none ', 50)
    assert server.output.count(".") == 100
    assert server.output.count('" 200 5 ') == 50


def test_line_cannot_be_forged(server):
    """No content of a request line ends the quotes or the line."""
    evil = b'GET /a"b\\c\x01\x7f\xff\x1b[31m HTTP/1.1'
    exchange(server.port, evil + b"\r\nHost: test\r\n\r\n")
    _, _, line, status, _, _ = entry(server, "GET /a")
    assert line == r"GET /a\x22b\x5cc\x01\x7f\xff\x1b[31m HTTP/1.1"
    assert status == "400"


def test_file_is_appended_to(kind, root, tmp_path):
    log = write(tmp_path / "log", b"what was there before\n")
    for _ in range(2):
        with running(kind, root, "--access-log", log) as server:
            # On one connection: the lines of different threads have no order.
            with Client(server.port) as client:
                client.get("/five")
                client.get("/none")
    first, *lines = log.read_text().splitlines()
    assert first == "what was there before"
    assert [LINE.match(line)[3] for line in lines] == [
        "GET /five HTTP/1.1", "GET /none HTTP/1.1"
    ] * 2


def test_off(kind, root):
    with running(kind, root) as server:
        assert fetch(server.port, "/five").status == 200
    assert server.output.text() == ""
