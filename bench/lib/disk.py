# SPDX-License-Identifier: MIT
"""The speed of a disk, measured by reads of files without the page cache, one at a time; and
what servers read from it. The disk of a virtual machine may be its host's memory.
"""

import mmap
import os
import statistics
import time

from . import process
from .process import Failure

BLOCK = 64 << 10
READS = 200


def read_times(paths):
    """Returns the seconds that each read of the first BLOCK bytes of one of the files took."""
    times, block = [], mmap.mmap(-1, BLOCK)
    for path in paths:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        try:
            start = time.perf_counter()
            os.preadv(fd, [block], 0)
            times.append(time.perf_counter() - start)
        finally:
            os.close(fd)
    return times


def speed(paths):
    """Returns [(name of the pass, median us, 99th percentile us, MB/s)] for files that are large
    enough.

    The second pass is faster if something behind the disk has cached them.
    """
    large = [path for path in paths if os.path.getsize(path) >= BLOCK]
    some = large[::-(-len(large) // READS) or 1]
    if not some:
        raise Failure(f"no file has {BLOCK} bytes")
    found = []
    for which in ("first", "second"):
        times = sorted(read_times(some))
        found.append((which, 1e6 * statistics.median(times),
                      1e6 * times[len(times) * 99 // 100],
                      len(times) * BLOCK / sum(times) / 1e6))
    return found


def bytes_read(server):
    """Returns how much a server's processes have read from disks so far."""
    total = 0
    for pid in process.tree([popen.pid for popen in server.popens]):
        with open(f"/proc/{pid}/io") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("read_bytes:"))
    return total


class Watched:
    """A client that also reports what the server has read meanwhile."""

    def __init__(self, client):
        self.client = client

    def run(self, server, seconds):
        before = bytes_read(server)
        got = self.client.run(server, seconds)
        return {**got, "disk_mb_per_s": (bytes_read(server) - before) / got["duration"]}
