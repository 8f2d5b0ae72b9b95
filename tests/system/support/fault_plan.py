# SPDX-License-Identifier: MIT
"""The plan for tests/faults/fault.c, which makes calls of a server fail; both share it."""

import errno
import mmap
import os
import struct
import subprocess

from server import BUILD

FAULT = os.path.join(BUILD, "tests", "faults", ".libs", "fault.so")
MAGIC = 0x6661756c74303121
SHORT, LOST, CUT = -1, -2, -3
NONE = 0xFFFFFFFF
SIZE = 1 << 16
# As in fault.h: words of 8 bytes, then the counters of the kinds.
WORDS = ["magic", "fired", "at", "times", "error", "kind", "live", "realtime", "monotonic", "base",
         "frame_count"]
FRAMES = 16
COUNTER = struct.Struct("=24s8iQ")


def name_of(error):
    return {SHORT: "short", LOST: "lost", CUT: "cut"}.get(error) or errno.errorcode[error]


def preload():
    """Returns the value of LD_PRELOAD: a sanitizer must come first."""
    from server import SWEET

    said = subprocess.run(["ldd", SWEET], capture_output=True, text=True, check=False).stdout
    before = [line.split()[2] for line in said.splitlines() if "san.so" in line]
    return ":".join([*before, FAULT])


class Plan:
    """A file; one program at a time runs with its environment()."""

    def __init__(self, path):
        self.path = str(path)
        with open(self.path, "w+b") as file:
            file.truncate(SIZE)
            self.memory = mmap.mmap(file.fileno(), SIZE)
        self.words = memoryview(self.memory).cast("q")
        self.kinds = {}  # name: (number, errors)

    def close(self):
        self.words.release()
        self.memory.close()
        os.unlink(self.path)

    def environment(self):
        return {**os.environ, "LD_PRELOAD": preload(), "FAULT_PLAN": self.path}

    def __getitem__(self, word):
        return self.words[WORDS.index(word)]

    def __setitem__(self, word, value):
        self.words[WORDS.index(word)] = value

    @property
    def counters(self):
        return (len(WORDS) + FRAMES + 1) * 8

    def learn(self):
        """Reads the kinds, which the program wrote when it started."""
        assert self["magic"] == MAGIC, "the program runs without fault.so"
        count = self.words[len(WORDS) + FRAMES]
        for number in range(count):
            at = self.counters + number * COUNTER.size
            name, *errors, _ = COUNTER.unpack_from(self.memory, at)
            self.kinds[name.rstrip(b"\0").decode()] = (number, [error for error in errors if error])

    def calls(self, kind):
        at = self.counters + self.kinds[kind][0] * COUNTER.size + COUNTER.size - 8
        return self.words[at // 8]

    def all_calls(self):
        return {kind: self.calls(kind) for kind in self.kinds}

    def arm(self, kind, number, error, times=1):
        """Makes the calls from that number on fail, counted from the program's start."""
        self["kind"] = NONE
        self["error"] = error
        self["times"] = times
        self["at"] = number
        self["kind"] = self.kinds[kind][0]

    def disarm(self):
        self["kind"] = NONE
        self["times"] = 0

    def reset(self):
        """Resets it for the next start of a program; the kinds stay known."""
        self.memory[:] = bytes(SIZE)
        self["kind"] = NONE

    def where(self):
        """Returns the code that met the last fault, as names of functions and lines."""
        from server import SWEET

        frames = self.words[len(WORDS):len(WORDS) + self["frame_count"]]
        addresses = [hex(frame - self["base"] - 1) for frame in frames
                     if 0 < frame - self["base"] < 1 << 28]
        if not addresses:
            return ""
        said = subprocess.run(["addr2line", "-f", "-s", "-e", SWEET, *addresses],
                              capture_output=True, text=True, check=False).stdout.split("\n")
        return " < ".join(f"{name}:{line.split(':')[-1]}"
                          for name, line in zip(said[::2], said[1::2]) if name != "??")
