# SPDX-License-Identifier: MIT
"""HTTP servers behind this one: what of requests and responses passes as it is, and what the
server adds nothing to."""

import pytest

from test_fastcgi import Client, fetch


# --- the response ----------------------------------------------------------------------------


def test_no_content_in_chunks(behind):
    def answer(asked):
        if asked.target == "/app/204":
            asked.send(b"HTTP/1.1 204 No Content\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n"
                       b"0\r\n\r\n")
        elif asked.target == "/app/bare":
            asked.send(b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n")
        else:
            asked.answer(b"next")

    app = behind(answer)
    with Client(app.server.port) as client:
        for _ in range(3):
            got = client.get("/app/204")
            assert got.status == 204 and got["X-A"] == "b" and "Transfer-Encoding" not in got
            assert client.get("/app/bare").status == 204
            assert client.get("/app").body == b"next"


@pytest.mark.parametrize("minor", [2, 9])
def test_later_minor_version(behind, minor):
    def answer(asked):
        asked.send(f"HTTP/1.{minor} 200 OK\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n"
                   "\r\n3\r\nabc\r\n0\r\n\r\n".encode())

    app = behind(answer)
    with Client(app.server.port) as client:
        for _ in range(3):
            assert client.get("/app").body == b"abc"
    # As those of HTTP/1.1, its connections stay.
    assert app.connections == 1


@pytest.mark.parametrize("count", [20, 2000])
def test_many_interim_responses(behind, count):
    def answer(asked):
        asked.send(b"HTTP/1.1 102 Processing\r\nX-Part: 1\r\n\r\n" * count)
        asked.answer(b"done")

    app = behind(answer)
    with Client(app.server.port) as client:
        for _ in range(2):
            got = client.get("/app")
            assert (got.status, got.body) == (200, b"done") and "X-Part" not in got


def test_endless_interim_responses(behind):
    """They do not extend the time that the server behind has for its response."""
    def answer(asked):
        try:
            while True:
                asked.send(b"HTTP/1.1 102 Processing\r\n\r\n" * 10)
        except OSError:
            return False

    app = behind(answer, pool="timeout=1s\n")
    assert fetch(app.server.port, "/app").status == 504
