# SPDX-License-Identifier: MIT
"""The programs of cgi-examples/ as commands for the server under test."""

import os
import shlex
import subprocess

import pytest

from server import BUILD, UNDER, sanitized

# For programs that run outside of the build folder.
SOURCES = os.path.abspath(os.path.join(os.environ["srcdir"], "cgi-examples"))
PROGRAMS = os.path.abspath(BUILD)
LIBRARY = os.path.join(PROGRAMS, "libnabc", ".libs")  # the one that others link to


def has_libfcgi():
    with open(os.path.join(PROGRAMS, "config.h")) as header:
        return "#define HAVE_FCGIAPP_H 1" in header.read()


LACKS_LIBFCGI = "" if has_libfcgi() else (
    "built without libfcgi; on Debian: apt-get install libfcgi-dev")
needs_libfcgi = pytest.mark.skipif(bool(LACKS_LIBFCGI), reason=LACKS_LIBFCGI)


def library_environment():
    """Lets programs that link to the library find the one under test."""
    known = {"LD_LIBRARY_PATH": LIBRARY}
    if sanitized("tsan"):
        pytest.skip("a Python that was built without the thread sanitizer dies with it")
    if sanitized():
        # A sanitizer that is only in the library must be loaded first, and Python's own leaks
        # are ignored.
        known["LD_PRELOAD"] = subprocess.check_output(
            [os.environ.get("CC", "cc").split()[0], "-print-file-name=libasan.so"],
            text=True).strip()
        known["ASAN_OPTIONS"] = "detect_leaks=0"
    return known


def worker(name, *arguments):
    """A worker in C, for --worker; Valgrind's output goes to the server's log."""
    return shlex.join([*UNDER, os.path.join(PROGRAMS, "cgi-examples", name), *map(str, arguments)])


def run_python(path, python="python3"):
    """A worker in Python, for --worker."""
    known = {**library_environment(), "PYTHONPATH": SOURCES, "PYTHONDONTWRITEBYTECODE": "1"}
    return shlex.join(["env", *map("=".join, known.items()), python, str(path)])


def script(name):
    """One of the examples in Python."""
    return run_python(os.path.join(SOURCES, name))
