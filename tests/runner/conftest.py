# SPDX-License-Identifier: MIT
"""The tests of the test runner: they need no build."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
SYSTEM = os.path.join(TOP, "tests", "system")
sys.path[:0] = [HERE, os.path.join(SYSTEM, "support"), os.path.join(TOP, "tests", "recipes", "support")]
os.environ.setdefault("builddir", os.path.join(TOP, "build"))
os.environ.setdefault("srcdir", TOP)

import results  # noqa: E402


def pytest_configure(config):
    results.open_for(config)
