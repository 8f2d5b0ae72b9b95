# SPDX-License-Identifier: MIT
"""Tests of tests/without, with packages that each test run has: pytest's, and those of each system."""

import os
import shutil
import subprocess
import sys

import pytest

import hide
import suites
import tier_path
from conftest import TOP

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-query"), reason="dpkg-query is missing; "
                                "on Debian: apt-get install dpkg")
IMPORT = "/usr/bin/python3 -c 'import pytest'"


def without(*words):
    return subprocess.run([os.path.join(TOP, "tests", "without"), *words], capture_output=True,
                          text=True, timeout=60)


@pytest.fixture(scope="module")
def permitted():
    """Whether packages can be hidden here."""
    if "python3-pytest" not in tier_path.closure(["python3-pytest"]):
        pytest.skip("python3-pytest is missing; on Debian: apt-get install python3-pytest")
    done = without("--all-but", "--", "true")
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())


def test_package_is_missing(permitted):
    done = without("python3-pytest", "--", "sh", "-c", f"{IMPORT} && exit 3")
    assert "ModuleNotFoundError: No module named 'pytest'" in done.stderr and done.returncode == 1
    assert "python3-pytest" in done.stdout.split("\n")[0].split()
    # Of the machine nothing was removed.
    assert subprocess.run(["sh", "-c", IMPORT]).returncode == 0


def test_named_package_is_there(permitted):
    assert without("--all-but", "python3-pytest", "--", "sh", "-c", f"{IMPORT} && exit 3").returncode == 3


def test_no_file_of_the_packages_is_there(permitted):
    hidden = hide.removed(["python3-pytest"])
    files = [path for path in hide.paths(hidden) if path.startswith(hide.COVERED)]
    assert files and all(map(os.path.lexists, files))
    done = without("python3-pytest", "--", sys.executable, "-c",
                   "import os, sys; print('left:', *filter(os.path.lexists, sys.argv[1:]))", *files)
    assert done.stdout.splitlines()[-1] == "left:", done.stdout + done.stderr


def test_folders_keep_their_modes(permitted):
    command = ["stat", "-c", "%n %a %U", "/etc", "/usr/bin", "/usr/lib/python3/dist-packages"]
    before = subprocess.run(command, capture_output=True, text=True).stdout
    assert without("python3-pytest", "--", *command).stdout.split("\n", 1)[1] == before


def test_no_mount_and_no_folder_is_left(permitted, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert without("python3-pytest", "--", "true").returncode == 0
    assert not os.listdir(tmp_path)
    with open("/proc/mounts") as mounts:
        assert str(tmp_path) not in mounts.read()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide packages")
@pytest.mark.parametrize("package, why", [
    ("no-such-package", "no-such-package is not installed"),
    ("dpkg", "dpkg cannot be missing: each build needs it, or each system has it")])
def test_what_cannot_be_hidden(package, why):
    done = without(package, "--", "true")
    assert (done.returncode, done.stdout) == (77, f"without: {why}\n")


@pytest.mark.parametrize("words", [["python3-pytest"], ["--", "true"], ["python3-pytest", "--"]])
def test_usage(words):
    assert without(*words).returncode == 2


def test_what_goes_with_a_package():
    """Those that need it go, too, and what only these need; what others need stays."""
    needs = {"a": [["lib-a"], ["lib"]], "b": [["a"], ["lib-b"]], "c": [["lib"]], "lib": [],
             "lib-a": [], "lib-b": []}
    wanted = {"a", "b", "c"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tier_path, "installed", lambda: (needs, {}, set()))
        patch.setattr(suites, "packages_of", lambda *tiers: wanted)
        patch.setattr(suites, "packages_of_build", lambda top: [])
        patch.setattr(suites, "HARNESS", ())
        assert hide.removed(["a"]) == {"a", "lib-a", "b", "lib-b"}
        assert hide.removed(["b"]) == {"b", "lib-b"}
        assert hide.removed(["c"]) == {"c"}
        assert hide.others(["c"]) == {"a", "lib-a", "b", "lib-b"}
