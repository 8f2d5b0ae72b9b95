# SPDX-License-Identifier: MIT
"""HTTP servers behind this one that answer, whole and well, before they have read the request, and
then close: the answer, and the end of the send that it made fail, reach the server together."""

import os
import signal

import pytest

from files import KB, pattern
from stopped import stop
from test_fastcgi import ask

# From what one send holds to more than the socket does, so that some bodies are in their last
# piece when the send fails.
SIZES = range(16 * KB, 320 * KB, 8 * KB)


@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
def test_answer_before_the_request_was_sent(behind, tcp):
    server = None

    def early(asked):
        if asked.method == "GET":
            asked.answer(b"plain")
            return True
        stop(server.pid)
        asked.answer(b"early")
        asked.connection.socket.close()
        os.kill(server.pid, signal.SIGCONT)
        return False

    app = behind(early, tcp=tcp)
    server = app.server
    for size in SIZES:
        got = ask(server.port, "/app", "POST", body=pattern(size))
        # Without a byte of it, where the system drops what waits with the connection.
        assert (got.status, got.data) == (200, b"early") or (tcp and got.status == 502)
        # What failed is not used again.
        assert ask(server.port, "/app").data == b"plain"
