# SPDX-License-Identifier: MIT
"""Methods, versions, and when a connection lasts."""

import pytest

from client import Client, fetch
from files import write
from server import running


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = tmp_path_factory.mktemp("http")
    write(root / "index.html", b"here\n")
    with running(kind, root) as server:
        yield server


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_method_not_allowed(server, method):
    with Client(server.port) as client:
        got = client.get("/", method)
        assert got.status == 405
        assert got["Allow"] == "GET, HEAD, OPTIONS"
        # Well-formed, so the connection goes on.
        assert client.get("/").body == b"here\n"


@pytest.mark.parametrize("method", ["BREW", "get", "Head", "G-E.T"])
def test_method_unknown(server, method):
    with Client(server.port) as client:
        assert client.get("/", method).status == 501
        assert client.get("/").body == b"here\n"


def test_body_of_a_refused_post_is_not_a_request(server):
    body = b"GET /none HTTP/1.1\r\nHost: test\r\n\r\n"
    with Client(server.port) as client:
        client.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert client.response().status == 405
        client.send(body)
        assert client.get("/").body == b"here\n"


def test_1_0_closes(server):
    with Client(server.port) as client:
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        got = client.response()
        assert (got.status, got.body) == (200, b"here\n")
        assert got["Connection"] == "close"
        assert client.at_end()


def test_1_0_keep_alive(server):
    with Client(server.port) as client:
        for _ in range(3):
            client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            got = client.response()
            assert (got.body, got["Connection"]) == (b"here\n", "keep-alive")


def test_1_1_lasts_until_it_is_closed(server):
    with Client(server.port) as client:
        assert "Connection" not in client.get("/")
        assert "Connection" not in client.get("/none")
        got = client.get("/", fields="Connection: Close\r\n")
        assert (got.body, got["Connection"]) == (b"here\n", "close")
        assert client.at_end()


def test_later_minor_version_is_1_1(server):
    with Client(server.port) as client:
        client.send(b"GET / HTTP/1.7\r\nHost: test\r\n\r\n")
        assert client.response().body == b"here\n"
        assert client.get("/").body == b"here\n"


def test_empty_lines_before_a_request(server):
    with Client(server.port) as client:
        client.send(b"\r\n\r\nGET / HTTP/1.1\r\nHost: test\r\n\r\n")
        assert client.response().body == b"here\n"


def test_head_of_an_error_has_no_page(server):
    with Client(server.port) as client:
        assert client.get("/none", "HEAD").status == 404
        assert client.get("/").body == b"here\n"


def test_absolute_form(server):
    assert fetch(server.port, "http://test/index.html").body == b"here\n"
    assert fetch(server.port, "http://test").body == b"here\n"
