# SPDX-License-Identifier: MIT
"""The content of the cache, and of the page cache: page-cache=keep and =drop, checked
with mincore(2)."""

import ctypes
import mmap
import os
import pathlib
import tempfile

import pytest

from client import Client
from files import KB, MB, pattern, write
from server import BUILD, running

PAGE = mmap.PAGESIZE
SIZES = [1, PAGE, 100 * KB + 1, MB]
LARGE = 6 * MB  # more than a unit of this cache
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def resident(path):
    """Returns the pages of a file in the page cache, and all its pages."""
    size = path.stat().st_size
    pages = (size + PAGE - 1) // PAGE
    fd = os.open(path, os.O_RDONLY)
    try:
        at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
        assert at != ctypes.c_void_p(-1).value
        seen = ctypes.create_string_buffer(pages)
        assert libc.mincore(at, size, seen) == 0, os.strerror(ctypes.get_errno())
        libc.munmap(at, size)
    finally:
        os.close(fd)
    return sum(byte & 1 for byte in seen.raw), pages


def forget(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.fixture(scope="module")
def root():
    """Files on a file system that has a page cache beside its storage."""
    for place in (None, BUILD):
        with tempfile.TemporaryDirectory(prefix="sweet-test-", dir=place) as folder:
            path = pathlib.Path(folder)
            for number, size in enumerate([*SIZES, LARGE]):
                write(path / str(size), pattern(size, number))
                forget(path / str(size))
            if resident(path / str(MB))[0] == 0:
                yield path
                return
    pytest.skip("neither the temporary folder nor the build is on a disk")


@pytest.mark.parametrize("what", ["keep", "drop"])
def test_what_the_cache_holds(root, what):
    options = ["--cache-size", "16M", "--page-cache", what]
    with running("epoll", root, *options) as server, Client(server.port) as client:
        for number, size in enumerate(SIZES):
            path = root / str(size)
            forget(path)
            for _ in range(3):
                assert client.get(f"/{size}").body == pattern(size, number)
            have, pages = resident(path)
            assert have == (pages if what == "keep" else 0), size
        units = server.status()["cache"]["used"]
        assert units >= sum(SIZES)


def test_what_it_does_not_hold_stays(root):
    """The page cache keeps a streamed file, of which there is no other copy in memory."""
    options = ["--cache-size", "16M", "--page-cache", "drop"]
    with running("epoll", root, *options) as server, Client(server.port) as client:
        assert client.get(f"/{LARGE}").body == pattern(LARGE, len(SIZES))
        have, pages = resident(root / str(LARGE))
        assert have == pages
