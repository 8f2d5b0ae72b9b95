# SPDX-License-Identifier: MIT
"""The files that servers deliver: FILES of each size below a root, ROOT/SIZE/NUMBER.bin."""

import os
import shutil

from .process import Failure

FILES = 100
CACHE_MIB = 256


def body(size, number):
    """Returns contents that differ from file to file and from place to place."""
    block = b"".join(b"file %04d, %d bytes, line %09d\n" % (number, size, line)
                     for line in range(size // 32 + 1))
    return block[:size]


def make_root(context, sizes, name="root"):
    """Returns the directory, with all files."""
    root = os.path.join(context.directory, name)
    os.mkdir(root, 0o755)
    make_files(root, sizes)
    return root


def make_files(root, sizes):
    need = FILES * sum(sizes)
    if need > shutil.disk_usage(root).free // 2:
        raise Failure(f"{need >> 20} MiB of files are too much for {root}")
    for size in sizes:
        os.mkdir(os.path.join(root, str(size)), 0o755)
        for number in range(FILES):
            with open(os.path.join(root, str(size), f"{number:03d}.bin"), "wb") as file:
                file.write(body(size, number))
                file.flush()
                os.fsync(file.fileno())  # no write-back during the runs


def paths(root, sizes):
    """Returns all files, for servers that need them in advance."""
    return [os.path.join(root, str(size), f"{number:03d}.bin")
            for size in sizes for number in range(FILES)]


def page(size):
    """Returns the format that makes a URL's path from a number."""
    return f"/{size}/%03d.bin"


def pages(size):
    """Returns (path, body) of all files of one size."""
    return ((page(size) % number, body(size, number)) for number in range(FILES))


def cache_mib(sizes):
    """Returns the size of a cache that holds all files twice."""
    return max(CACHE_MIB, 2 * FILES * sum(sizes) >> 20)
