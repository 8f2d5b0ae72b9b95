# SPDX-License-Identifier: MIT
"""Files in which every part shows its position."""

import hashlib
import os

KB, MB = 1 << 10, 1 << 20


def pattern(size, seed=0):
    """Returns size bytes in which no two blocks of 64 are equal."""
    block = 4096
    made = bytearray()
    for number in range((min(size, MB) + block - 1) // block):
        made += hashlib.shake_128(f"{seed} {number}".encode()).digest(block)
    return bytes(made[:size]) if size <= MB else repeat(bytes(made), size)


def repeat(block, size):
    """Returns repetitions of the block, each with its number in front."""
    pieces = []
    for number in range((size + len(block) - 1) // len(block)):
        pieces.append(number.to_bytes(8, "big") + block[8:])
    return b"".join(pieces)[:size]


def in_memory():
    """Returns a folder in memory that can be written to; None: there is none."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        kinds = dict(line.split()[1:3] for line in mounts)
    for path in ("/dev/shm", "/run", "/dev"):
        if kinds.get(path) in ("tmpfs", "ramfs", "devtmpfs") and os.access(path, os.W_OK):
            return path
    return None


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
