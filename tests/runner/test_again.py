# SPDX-License-Identifier: MIT
"""tests/again and its load."""

import os
import subprocess
import time

import load
import suites
from conftest import TOP
from files import write

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


def tree_of_one_unit(path, script):
    """Makes a tree whose unit test-one is a script."""
    write(path / "tests" / "unit" / "test-one.c", b"")
    for name in ("again", "runner", "system", "recipes", "in-build.sh", "times.txt"):
        (path / "tests" / name).symlink_to(os.path.join(TOP, "tests", name))
    write(path / "build" / "Makefile", b"")
    write(path / "build" / "config.h", b"#define HAVE_CHECK 1\n")
    write(path / "build" / "tests" / "unit" / "test-one",
          f"#!/bin/sh\n{script}\n".encode()).chmod(0o755)


def test_logs_are_kept(tmp_path):
    """What failed can be read after a later run."""
    tree_of_one_unit(tmp_path, f"echo so it was; exit $(cat {tmp_path}/status)")
    for status in (1, 0, 0):
        write(tmp_path / "status", f"{status}".encode())
        done = subprocess.run([tmp_path / "tests" / "again", "-n", "1", "test-one"],
                              stdout=subprocess.PIPE, text=True)
        assert done.returncode == status
    assert not os.listdir(tmp_path / "build" / "again")
    assert "so it was" in (tmp_path / "build" / "again.old" / "1:test-one.log").read_text()


def test_stopped(tmp_path):
    """It ends its jobs and says what it has found."""
    number = tmp_path / "number"
    tree_of_one_unit(tmp_path, f"echo $$ >{number}\nexec sleep 1000")
    with subprocess.Popen([tmp_path / "tests" / "again", "-n", "1", "test-one"],
                          stdout=subprocess.PIPE, text=True) as run:
        while not (number.exists() and number.read_text().endswith("\n")):
            assert run.poll() is None
            time.sleep(0.01)
        run.terminate()
        assert run.communicate(timeout=60)[0] == "again: 0 tests, 0 runs, 0 failed\n"
    assert run.returncode == 1
    while os.path.exists(f"/proc/{int(number.read_text())}"):
        time.sleep(0.01)


def test_no_build():
    done = subprocess.run([AGAIN, "--build", "build-none", "x"], capture_output=True, text=True)
    assert done.returncode == 2 and "invalid choice" in done.stderr


def test_names_are_told():
    done = subprocess.run([AGAIN, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for tree in suites.TREES:
        assert tree in done.stdout
