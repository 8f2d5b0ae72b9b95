# SPDX-License-Identifier: MIT
"""Tests of check-format.sh: what it reports, and which clang-format it takes."""

import os
import shutil
import subprocess

import pytest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT = os.path.join(TESTS, "check-format.sh")
GOOD = "int door(int key)\n{\n\treturn key ? 1 : 2;\n}\n"

needs_it = pytest.mark.skipif(not shutil.which("clang-format"),
                              reason="clang-format is missing; on Debian: apt-get install clang-format")


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "sweet/base").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    shutil.copy(os.path.join(os.path.dirname(TESTS), ".clang-format"), tmp_path)
    return tmp_path


def check(tree, *files, **environment):
    done = subprocess.run([SCRIPT, *files], capture_output=True, text=True,
                          env={**os.environ, "srcdir": str(tree), **environment})
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


@needs_it
def test_good(tree):
    (tree / "sweet/base/door.c").write_text(GOOD)
    code, said = check(tree)
    assert code == 0 and said[0].endswith(" changes no source") and len(said) == 1


@needs_it
@pytest.mark.parametrize("path", ["sweet/base/door.c", "tests/door.h"])
@pytest.mark.parametrize("old, new, line", [
    ("\treturn", "    return", 3), ("? 1 : 2", "?1:2", 3), ("key)\n{", "key) {", 1)])
def test_bad(tree, path, old, new, line):
    (tree / "sweet/base/good.c").write_text(GOOD)
    (tree / path).write_text(GOOD.replace(old, new))
    expected = [f"check-format: {path}:{line}: clang-format has this line otherwise",
                f"check-format: this mends them: clang-format -i {path}"]
    assert check(tree) == (1, expected)
    assert check(tree, path) == (1, expected)
    assert check(tree, "sweet/base/good.c") == (0, [])
    subprocess.run(["clang-format", "-i", path], cwd=tree, check=True)
    assert check(tree)[0] == 0


@needs_it
def test_no_such_file(tree):
    assert check(tree, "sweet/none.c") == (1, ["check-format: there is no file sweet/none.c"])


@pytest.mark.parametrize("version, says", [
    ("clang-format version 13.0.1", "13"), ("Debian clang-format version 20.1.0 (1)", "20"), ("", "of no version")])
def test_other_versions(tree, version, says):
    program = tree / "format"
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)
    assert check(tree, CLANG_FORMAT=str(program)) == (
        77, [f"check-format: this is clang-format {says}; those from 14 to 19 agree on the sources"])


def test_missing(tree):
    assert check(tree, CLANG_FORMAT="/none") == (
        77, ["check-format: clang-format is missing; on Debian: apt-get install clang-format"])
