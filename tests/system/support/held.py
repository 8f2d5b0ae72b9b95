# SPDX-License-Identifier: MIT
"""A lease on a program's file, which delays each start of the program."""

import fcntl
import os
import signal
import time

from server import TIMEOUT, name_of


def until(good):
    """Polls for what nothing announces."""
    deadline = time.monotonic() + TIMEOUT
    while not good() and time.monotonic() < deadline:
        time.sleep(0.02)
    return good()


def is_read(pids, name):
    """Waits until processes that shells were have that name: a shell opens its script only after
    its own start, and would be held, too."""
    return until(lambda: all(name_of(pid) == name for pid in pids))


class Held:
    """Holds each execution of a file until release(): the kernel makes it wait for the lease."""

    def __init__(self, path):
        self.before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        self.fd = os.open(path, os.O_WRONLY)
        # A shell may be reading it.
        assert until(self.takes)

    def takes(self):
        try:
            fcntl.fcntl(self.fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except BlockingIOError:
            return False
        return True

    def begun(self):
        """Waits until a process waits."""
        assert until(lambda: fcntl.fcntl(self.fd, fcntl.F_GETLEASE) != fcntl.F_WRLCK)

    def release(self):
        if self.fd >= 0:
            os.close(self.fd)
            signal.signal(signal.SIGIO, self.before)
        self.fd = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()
