# SPDX-License-Identifier: MIT
"""TCP connections whose close takes as long as their creator chooses: closing the last
descriptor of one blocks."""

import array
import contextlib
import socket

SO_PASSRIGHTS = 83  # since Linux 6.16


class Peer:
    """Their peer: it reads nothing, and ends them all when it is closed."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.listener.close()


def connection(port, seconds):
    """Connects to a peer's port, with bytes in flight that nobody reads."""
    made = socket.create_connection(("127.0.0.1", port))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, array.array("i", (1, int(seconds))))
    made.setblocking(False)
    try:
        while True:
            made.send(bytes(1 << 16))
    except BlockingIOError:
        return made


def send(over, data, port, seconds, count=1):
    """Sends data with the only descriptors of such connections; PermissionError: they are
    refused."""
    with contextlib.ExitStack() as stack:
        passed = [stack.enter_context(connection(port, seconds)) for _ in range(count)]
        try:
            over.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                   array.array("i", [one.fileno() for one in passed]))])
        except OSError:
            # Now they are the last ones again.
            for one in passed:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, array.array("i", (1, 0)))
            raise


def can_be_refused():
    """Returns True if this system has the option."""
    with socket.socket(socket.AF_UNIX) as trial:
        try:
            trial.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
        except OSError:
            return False
    return True
