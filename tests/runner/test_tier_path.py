# SPDX-License-Identifier: MIT
"""Tests of the PATH that has the programs of some packages alone."""

import os
import shutil

import pytest

import tier_path

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-query"), reason="dpkg-query is missing; "
                                "on Debian: apt-get install dpkg")


@pytest.fixture
def made(tmp_path):
    def make(*packages):
        folder = tmp_path / "programs"
        path = tier_path.make(str(folder), packages).split(":")
        assert path[-1] == str(folder) and set(path[:-1]) <= {"/usr/lib/ccache"}
        return set(os.listdir(folder))
    return make


def test_what_each_system_has(made):
    found = made()
    assert {"sh", "sed", "dpkg", "setpriv"} <= found
    # A link of update-alternatives.
    assert "awk" in found
    assert not found & {"gcc", "make", "pytest-3", "curl"}


def test_packages_and_what_they_need(made):
    found = made("gcc", "make")
    assert {"gcc", "make", "ld", "as", "cc"} <= found
    assert "curl" not in found


def test_names():
    assert list(tier_path.names("libc6 (>= 2.36), debconf (>= 0.5) | debconf-2.0, a:any")) == [
        ["libc6"], ["debconf", "debconf-2.0"], ["a"]]
    assert list(tier_path.names(", ")) == []


def test_unknown_packages(made):
    assert made("no-such-package") == made()
