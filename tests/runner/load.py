# SPDX-License-Identifier: MIT
"""A busy machine: every processor computes, memory is touched and a file is written
and synced, until the process that started it exits or stops it."""

import contextlib
import ctypes
import mmap
import os
import signal
import tempfile

MEMORY = 8  # the touched share of all memory: one eighth
PIECE = 4 << 20
FILE = 256 << 20
PR_SET_PDEATHSIG = 1


def compute():
    while True:
        pass


def touch():
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MEMORY
    with mmap.mmap(-1, size) as memory:
        value = 0
        while True:
            value = (value + 1) % 256
            for at in range(0, size, mmap.PAGESIZE):
                memory[at] = value


def store(folder):
    data = os.urandom(PIECE)
    with tempfile.TemporaryFile(dir=folder) as file:
        while True:
            file.seek(0)
            for _ in range(FILE // PIECE):
                file.write(data)
                file.flush()
                os.fsync(file.fileno())


def begin(function, *arguments):
    """Starts a process that does not outlive this one."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            try:
                function(*arguments)
            finally:
                os._exit(1)
        os._exit(0)
    return pid


@contextlib.contextmanager
def busy(folder):
    """For the duration of a with statement; files are in folder."""
    pids = [begin(compute) for _ in os.sched_getaffinity(0)]
    pids += [begin(touch), begin(store, folder)]
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
