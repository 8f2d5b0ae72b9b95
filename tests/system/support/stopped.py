# SPDX-License-Identifier: MIT
"""Processes that are stopped for a while, so that nothing happens in them."""

import contextlib
import os
import signal


def stop(pid):
    """Returns when all threads have stopped, or ended as io_uring's may: the signal alone reaches
    those that run later."""
    os.kill(pid, signal.SIGSTOP)
    for thread in os.listdir(f"/proc/{pid}/task"):
        with (contextlib.suppress(FileNotFoundError, ProcessLookupError),
              open(f"/proc/{pid}/task/{thread}/stat", encoding="latin-1") as file):
            while file.read().rpartition(")")[2].split()[0] not in "Tt":
                file.seek(0)
