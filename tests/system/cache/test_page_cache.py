# SPDX-License-Identifier: MIT
"""The content of the cache, and of the page cache: page-cache=keep, =drop and =bypass,
checked with mincore(2)."""

import ctypes
import mmap
import os
import pathlib
import tempfile

import pytest

from client import Client
from files import MB, pattern, write
from server import BUILD, inside, running

PAGE = mmap.PAGESIZE
SIZES = [1, 511, 4095, 4096, 4097, 100000, MB + 1]
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


def kept(path, read):
    """Returns what resident() does after a read. The kernel may take a page away at any time,
    as it did when the machine was busy; what a server drops is absent after each read."""
    for _ in range(5):
        read()
        have, pages = resident(path)
        if have == pages:
            break
    return have, pages


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
            if resident(path / str(MB + 1))[0] == 0:
                yield path
                return
    pytest.skip("neither the temporary folder nor the build is on a disk")


@pytest.fixture
def direct(root):
    """The same, if its file system permits direct reads."""
    try:
        os.close(os.open(root / "1", os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        pytest.skip(f"the file system of the tests refuses O_DIRECT: {error.strerror}")
    return root


def read_from_disk(server):
    """Returns the bytes that the server, including its helpers, has read from disks."""
    with open(inside(server.pid, "io")) as file:
        fields = dict(line.split(": ") for line in file.read().splitlines())
    return int(fields["read_bytes"])


@pytest.mark.parametrize("what", ["keep", "drop", "bypass"])
def test_what_the_cache_holds(root, what):
    options = ["--cache-size", "16M", "--page-cache", what]
    with running("epoll", root, *options) as server, Client(server.port) as client:
        for number, size in enumerate(SIZES):
            path = root / str(size)

            def read():
                forget(path)
                os.utime(path)  # to the server another file, which it reads again
                for _ in range(3):
                    assert client.get(f"/{size}").body == pattern(size, number)

            if what == "keep":
                have, pages = kept(path, read)
                assert have == pages, size
            else:
                read()
                assert resident(path)[0] == 0, size
        units = server.status()["cache"]["used"]
        assert units >= sum(SIZES)


def test_what_it_does_not_hold_stays(root):
    """The page cache keeps a streamed file, of which there is no other copy in memory."""
    options = ["--cache-size", "16M", "--page-cache", "drop"]
    with running("epoll", root, *options) as server, Client(server.port) as client:

        def read():
            assert client.get(f"/{LARGE}").body == pattern(LARGE, len(SIZES))

        have, pages = kept(root / str(LARGE), read)
        assert have == pages


def test_bypass(direct):
    """The disk is read although the page cache has a copy; the copy is dropped."""
    path = direct / str(MB + 1)
    data = path.read_bytes()  # makes that copy
    with running("epoll", direct, "--page-cache", "bypass") as server:
        with Client(server.port) as client:
            before = read_from_disk(server)
            assert client.get(f"/{path.name}").body == data
            assert read_from_disk(server) - before >= len(data)
        assert resident(path)[0] == 0
        assert server.errors.count("O_DIRECT") == 0


def test_bypass_of_a_modified_file(direct):
    """Pages that are not on the disk yet are written there, read and dropped."""
    with running("epoll", direct, "--page-cache", "bypass") as server:
        with Client(server.port) as client:
            for seed, size in enumerate([100000, 4097, 200000]):
                write(direct / "modified", pattern(size, seed))
                assert client.get("/modified").body == pattern(size, seed)
                assert resident(direct / "modified")[0] == 0


def test_bypass_refused():
    """sysfs refuses direct reads: the files are served, and one line states why."""
    root = pathlib.Path("/sys/kernel")
    try:
        notes = (root / "notes").read_bytes()
    except OSError as error:
        pytest.skip(f"no file is known that refuses O_DIRECT: /sys/kernel/notes: {error.strerror}")
    with running("epoll", root, "--page-cache", "bypass", "--log-level", "info") as server:
        with Client(server.port) as client:
            response = client.get("/notes")
            assert (response.status, response.body) == (200, notes)
            assert server.errors.wait(
                r"page-cache=bypass: cannot read with O_DIRECT: /notes: Invalid argument "
                r"\(such files are read as with page-cache=drop; logged once\)")
            # Shorter than sysfs states, so it is refused; but it is another file to read.
            assert client.get("/uevent_seqnum").status == 503
        assert server.errors.wait("/uevent_seqnum")
        assert server.errors.count("O_DIRECT") == 1
