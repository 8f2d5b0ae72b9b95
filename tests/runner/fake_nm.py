# SPDX-License-Identifier: MIT
"""Runs a check of objects beside an nm that prints what a test has written into them."""

import os
import subprocess

CHECKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def check(tmp_path, script, commands):
    """The folder is that of the sources and of the build; commands: of the shell, what nm does with
    its arguments.  Returns the status and what was printed."""
    nm = tmp_path / "nm"
    nm.write_text(f"#!/bin/sh\n{commands}\n")
    nm.chmod(0o755)
    done = subprocess.run([os.path.join(CHECKS, script)], capture_output=True, text=True,
                          env={**os.environ, "srcdir": str(tmp_path), "builddir": str(tmp_path), "NM": str(nm)})
    assert not done.stderr
    return done.returncode, done.stdout
