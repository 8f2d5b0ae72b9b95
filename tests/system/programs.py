# SPDX-License-Identifier: MIT
"""Clients that others wrote, as processes: what they say, and that they end well."""

import os
import shutil
import subprocess

import pytest

from server import TIMEOUT, VALGRIND

# For load generators.
not_under_valgrind = pytest.mark.skipif(
    VALGRIND, reason="a load tells nothing of a server under Valgrind"
)


PACKAGES = {
    "ab": "apache2-utils", "chromium": "chromium", "go": "golang-go", "h2load": "nghttp2-client",
    "haproxy": "haproxy", "httperf": "httperf", "nginx": "nginx-light",
}


def need(name, *places):
    """Path of a program, which may lie in places; without it the test is skipped."""
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin"
    for place in (*places, name):
        found = shutil.which(place, path=path)
        if found:
            return found
    missing = f"{name} is missing; on Debian: apt-get install {PACKAGES[name]}"
    # Where nothing may be skipped, this is a failure.
    (pytest.fail if os.environ.get("NABC_NO_SKIP") else pytest.skip)(missing)


def run(*command, **more):
    """What a program said on both its outputs; its end must be good."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=3 * TIMEOUT, check=False, **more)
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {said[-2000:]}"
    return said


def curl(*arguments):
    return run("curl", "--noproxy", "*", "-sS", "--max-time", 2 * TIMEOUT, *arguments)
