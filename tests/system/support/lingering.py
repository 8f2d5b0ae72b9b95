# SPDX-License-Identifier: MIT
"""TCP connections whose end takes as long as their maker likes: whoever closes the last
descriptor of one waits."""

import array
import socket

SO_PASSRIGHTS = 83  # since Linux 6.16


class Peer:
    """What they connect to: it takes nothing, and ends them all when it is closed."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.listener.close()


def connection(port, seconds):
    """To a peer's port: with bytes under way that nobody takes."""
    made = socket.create_connection(("127.0.0.1", port))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, array.array("i", (1, int(seconds))))
    made.setblocking(False)
    try:
        while True:
            made.send(bytes(1 << 16))
    except BlockingIOError:
        return made


def send(over, data, port, seconds):
    """Sends data with the only descriptor of such a connection; PermissionError: it is refused."""
    with connection(port, seconds) as passed:
        try:
            over.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                   array.array("i", [passed.fileno()]))])
        except OSError:
            # It is the last one again.
            passed.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, array.array("i", (1, 0)))
            raise


def can_be_refused():
    """Whether this system has the option."""
    with socket.socket(socket.AF_UNIX) as trial:
        try:
            trial.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
        except OSError:
            return False
    return True
