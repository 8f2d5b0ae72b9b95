# SPDX-License-Identifier: MIT
"""Programs in Go, compiled by the tests."""

import os
import pathlib
import subprocess

from tools import find


def build_go(source, program):
    """Compiles a program.  Nothing is fetched for that.  Its libraries, which take half a minute,
    are compiled once for all tests of ./run-tests, and each user."""
    kept = pathlib.Path(os.environ.get("NABC_SHARED", program.parent)) / f"go-{os.geteuid()}"
    environment = {**os.environ, "GOCACHE": f"{kept}/cache", "GOPATH": f"{kept}/path",
                   "GO111MODULE": "off", "GOFLAGS": "-mod=mod", "GOPROXY": "off",
                   "GOTOOLCHAIN": "local", "GOENV": "off", "CGO_ENABLED": "0"}
    done = subprocess.run([find("go"), "build", "-o", program, source], env=environment,
                          cwd=program.parent, capture_output=True, text=True, timeout=600,
                          check=False)
    assert done.returncode == 0, done.stderr
