# SPDX-License-Identifier: MIT
"""litmus, the test suite for WebDAV servers: every test of it must pass."""

import re

import pytest

import dav
from programs import not_under_valgrind, run

SUITES = {"basic": 16, "copymove": 13, "props": 30, "locks": 41, "http": 4}


@pytest.mark.needs("litmus")
@pytest.mark.clear("Debian's litmus is built without TLS")
@not_under_valgrind
def test_litmus(start, tmp_path):
    folder = dav.make(tmp_path)
    if not dav.has_attributes(folder):
        pytest.skip("no extended attributes on this file system")
    server = dav.begin(start, tmp_path)
    said = run("litmus", f"http://127.0.0.1:{server.port}/dav/", "anna", "geheim", cwd=tmp_path)
    found = {name: (int(all_), int(good), int(bad)) for name, all_, good, bad in re.findall(
        r"<- summary for `(\w+)': of (\d+) tests run: (\d+) passed, (\d+) failed", said)}
    # Other versions have more tests, but never fewer.
    assert set(found) == set(SUITES), said
    for name, (all_, good, bad) in found.items():
        assert bad == 0 and good == all_ >= SUITES[name], said
    assert "WARNING" not in said, said
