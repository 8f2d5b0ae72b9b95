# SPDX-License-Identifier: MIT
"""Files of given sizes, for a log or a model of users, and whether the system holds them in
memory.
"""

import ctypes
import mmap
import os
import shutil

from . import load
from .process import Failure

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
LIBC.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
MAP_FAILED = ctypes.c_void_p(-1).value
PAGE = mmap.PAGESIZE
BLOCK_LINES = 2048
CHECKED = 20
DROP_TRIES = 5


def body(size, number):
    """Returns contents that differ from file to file."""
    block = b"".join(b"document %06d, line %013d\n" % (number, line)
                     for line in range(min(size // 38 + 1, BLOCK_LINES)))
    return (block * (size // len(block) + 1))[:size]


class Documents:
    """Creates files (path, size) below a root, written to disk before it returns; each has one
    owner."""

    def __init__(self, context, name, pages):
        self.root = os.path.join(context.directory, name)
        self.pages = pages
        need = sum(size for _, size in pages)
        os.makedirs(self.root, 0o755, exist_ok=True)
        if need > shutil.disk_usage(self.root).free // 2:
            raise Failure(f"{need >> 20} MiB of files are too much for {self.root}")
        for number, (path, size) in enumerate(pages):
            file_name = self.root + path
            os.makedirs(os.path.dirname(file_name), 0o755, exist_ok=True)
            with open(file_name, "wb") as file:
                file.write(body(size, number))
        self.write_back()

    def write_back(self):
        """Writes all at once, which is faster than one by one, so that no write-back disturbs
        the runs."""
        fd = os.open(self.root, os.O_RDONLY)
        try:
            if LIBC.syncfs(fd):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), self.root)
        finally:
            os.close(fd)

    def paths(self):
        return [self.root + path for path, _ in self.pages]

    def check(self, servers):
        """Fails unless some of them, including the largest, arrive correctly."""
        largest = max(range(len(self.pages)), key=lambda number: self.pages[number][1])
        step = max(1, len(self.pages) // CHECKED)
        numbers = [*range(0, len(self.pages), step), largest]
        for server in servers:
            load.check(server.name, server.port,
                       ((self.pages[number][0], body(self.pages[number][1], number))
                        for number in numbers), server.address)

    def drop(self):
        """Makes the system drop its cache of the files; returns the share that it keeps."""
        for _ in range(DROP_TRIES):
            for path in self.paths():
                fd = os.open(path, os.O_RDONLY)
                try:
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(fd)
            kept = self.resident()
            if not kept:
                break
        return kept

    def resident(self):
        """Returns the share of the files' pages in memory."""
        held = total = 0
        for path in self.paths():
            size = os.path.getsize(path)
            if size:
                held += resident_pages(path, size)
                total += -(-size // PAGE)
        return held / total if total else 0


def resident_pages(path, size):
    count = -(-size // PAGE)
    states = (ctypes.c_ubyte * count)()
    fd = os.open(path, os.O_RDONLY)
    try:
        at = LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    finally:
        os.close(fd)
    if at == MAP_FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    try:
        if LIBC.mincore(at, size, states):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    finally:
        LIBC.munmap(at, size)
    return sum(state & 1 for state in states)
