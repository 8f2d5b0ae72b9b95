# SPDX-License-Identifier: MIT
"""A limit of memory for what a test starts, by a cgroup."""

import contextlib
import os

import pytest


@contextlib.contextmanager
def limited(limit):
    """A cgroup with a limit of that many bytes, of either version; yields how to start
    something in it."""
    for parent, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                         ("/sys/fs/cgroup", "memory.max")):
        folder = f"{parent}/sweet-test-{os.getpid()}"
        with contextlib.suppress(OSError):
            os.mkdir(folder)
            try:
                with open(f"{folder}/{name}", "w") as file:
                    file.write(str(limit))
            except OSError:
                os.rmdir(folder)
                continue
            break
    else:
        pytest.skip("there is no cgroup to make here")
    try:
        yield ("sh", "-c", f'echo $$ >{folder}/cgroup.procs && exec "$@"', "sh")
    finally:
        os.rmdir(folder)
