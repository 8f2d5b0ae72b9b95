# SPDX-License-Identifier: MIT
"""The stage "twins" of tests/torture: a short run, and that it fails when it should."""

import os
import re
import subprocess
import sys

import pytest

from server import BUILD, TIMEOUT

pytestmark = pytest.mark.bench

TORTURE = os.path.join(os.environ["srcdir"], "tests", "torture", "torture")


@pytest.mark.parametrize("spoil, status", [("0", 0), ("1", 1)])
def test_twins(spoil, status):
    """Spoilt, the server that remembers nothing has another limit, too."""
    done = subprocess.run([sys.executable, TORTURE, "--build", BUILD, "--seconds", "3", "--seed", "5",
                           "twins"], capture_output=True, text=True, timeout=6 * TIMEOUT,
                          env={**os.environ, "TORTURE_SPOIL": spoil})
    assert done.returncode == status, done.stdout
    assert re.search(r"^torture: twins: [1-9]\d* heads, ", done.stdout, re.M), done.stdout
    assert ("has one answer from a server that remembers" in done.stdout) == (status == 1)
