# SPDX-License-Identifier: MIT
"""Applications whose responses come in tiny pieces, to clients that do not read: what holds the
pieces counts for the memory as the bytes do."""

import contextlib

import pytest

import responder
import upstream
from client import Client, request
from files import KB, MB
from memory_limit import limited
from server import TIMEOUT, UNDER, opener, running, sanitized

if UNDER or sanitized():
    pytest.skip("the memory of a sanitizer or Valgrind is not the server's",
                allow_module_level=True)

CLIENTS = 150
ROUNDS = 2  # of that many pieces
PIECES = 128 * KB
PADDED = 16 * KB  # such pieces
MOST = 64 * MB  # half of what the server has: the cache is half of this


def chunked(application):
    """HTTP, in chunks of one byte."""
    application.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(ROUNDS):
        application.send(b"1\r\nx\r\n" * PIECES)
    application.send(b"0\r\n\r\n")


def records(application):
    """FastCGI, in records of one byte."""
    application.send(responder.record(responder.STDOUT, b"Content-Type: text/plain\r\n\r\n"))
    piece = responder.record(responder.STDOUT, b"x", number=application.number)
    for _ in range(ROUNDS):
        # Not by send(), which looks for the records.
        application.connection.socket.sendall(piece * PIECES)
    application.send(responder.record(responder.STDOUT) + responder.end())


def padded(application):
    """FastCGI, in records of one byte and much padding."""
    application.send(responder.record(responder.STDOUT, b"Content-Type: text/plain\r\n\r\n"))
    piece = responder.record(responder.STDOUT, b"x", padding=255, number=application.number)
    application.connection.socket.sendall(piece * PADDED)
    application.send(responder.record(responder.STDOUT) + responder.end())


def serve(kind, folder, protocol, handle, prefix):
    """Returns the application, and the server before it."""
    if protocol == "http":
        application = upstream.Upstream(handle, folder / "app.sock")
    else:
        application = responder.Application(handle, folder / "app.sock")
    config = folder / "sweet.conf"
    config.write_text(f"[sweet]\nlisten=127.0.0.1:0\nroot={folder}\nthreads=2\n"
                      f"[pool app]\nprotocol={protocol}\nupstream={application.address}\n"
                      f"in-flight={CLIENTS + 2}\n"
                      + ("script-suffix=\n" if protocol == "fastcgi" else "")
                      + "[path /app]\npool=app\n")
    return application, running(kind, None, "--config", config, listen=None, prefix=prefix)


@pytest.mark.parametrize("protocol, handle, count", [
    ("http", chunked, ROUNDS * PIECES), ("fastcgi", records, ROUNDS * PIECES),
    ("fastcgi", padded, PADDED),
])
def test_tiny_pieces(kind, tmp_path, protocol, handle, count):
    """The server takes all of each response, and keeps it for a client that does not read."""
    done = []

    def answer(application):
        application.body()
        handle(application)
        done.append(True)
        return False

    with limited(128 * MB) as prefix:
        application, server = serve(kind, tmp_path, protocol, answer, prefix)
        with contextlib.closing(application), server as server, contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(server.port, 4096)) for _ in range(CLIENTS)]
            for number, client in enumerate(clients, 1):
                client.send(request("/app"))
                # Not more at once than the application's socket queues.
                if number % 50 == 0:
                    server.wait_status(lambda _, number=number: application.requests == number)
            server.wait_status(lambda _: len(done) == CLIENTS)
            assert server.memory() < MOST
            with opener().open(f"{server.url}/app", timeout=TIMEOUT) as whole:
                assert whole.read() == b"x" * count
