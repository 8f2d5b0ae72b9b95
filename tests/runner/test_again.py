# SPDX-License-Identifier: MIT
"""tests/again and its load."""

import os
import subprocess
import time

import load
import suites
from conftest import TOP

AGAIN = os.path.join(TOP, "tests", "again")


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as numbers:
        return set(numbers.read().split())


def test_load_ends(tmp_path):
    before = children()
    with load.busy(tmp_path):
        pids = children() - before
        # One for each processor, one for memory and one for the disk.
        assert len(pids) == len(os.sched_getaffinity(0)) + 2
        deadline = time.monotonic() + 60
        while not all(used(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert all(used(pid) for pid in pids)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def used(pid):
    """Whether a process has used CPU time."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]) > 0


def test_no_build():
    done = subprocess.run([AGAIN, "--build", "build-none", "x"], capture_output=True, text=True)
    assert done.returncode == 2 and "invalid choice" in done.stderr


def test_names_are_told():
    done = subprocess.run([AGAIN, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for tree in suites.TREES:
        assert tree in done.stdout
