# SPDX-License-Identifier: MIT
"""Starts that a pool's user holds, for example by a lease on the program's file: they delay that
pool alone."""

import socket
import struct

import pytest

from client import connect, http_connection, request
from files import write
from held import Held
from test_cgi import TEXT, Answer, ask, folder


@pytest.mark.parametrize("count", [1, 5])
def test_other_pool_answers(folder, count):
    """On the same event loop, as often as it wants to; the held ones are served when they can be."""
    held = folder.script("held.sh", TEXT + "echo held\n")
    write(folder.path / "other" / "page.sh", b"#!/bin/sh\n" + TEXT.encode() + b"echo other\n") \
        .chmod(0o755)
    server = folder.configured(f"processes={count}\n[pool other]\nprotocol=cgi\n"
                               f"folder={folder.path}/other\n[path /other]\npool=other\n",
                               "threads=1")
    with Held(held) as lease:
        clients = [http_connection(server.port) for _ in range(count)]
        for client in clients:
            client.request("GET", "/cgi/held.sh")
        lease.begun()
        for _ in range(3):
            assert ask(server, "/other/page.sh").text == "other\n"
            assert ask(server, "/index.html").text == "the index\n"
        lease.release()
        for client in clients:
            got = Answer(client.getresponse())
            assert (got.status, got.text) == (200, "held\n")
            client.close()


def test_client_goes(folder):
    """The start is ended, although it is held; its place is free."""
    held = folder.script("held.sh", TEXT + "echo held\n")
    folder.script("next.sh", TEXT + "echo next\n")
    server = folder.configured("processes=1", "threads=1")
    with Held(held) as lease:
        with connect(server.port) as client:
            client.sendall(request("/cgi/held.sh"))
            lease.begun()
            # Disconnected, not only silent.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert ask(server, "/cgi/next.sh").text == "next\n"
