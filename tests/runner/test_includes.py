# SPDX-License-Identifier: MIT
"""Tests of check-includes.py: what it reports, and where --fix adds it."""

import os
import shutil
import subprocess
import sys

import pytest

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "check-includes.py")
pytestmark = pytest.mark.skipif(not shutil.which("iwyu"),
                                reason="iwyu is missing; on Debian: apt-get install iwyu")

TREE = {
    # Others include it, and so get whatever it includes.
    "sweet/base/room.h": "#ifndef ROOM_H\n#define ROOM_H\n\n"
                         "#include <errno.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
                         "struct room {\n\tsize_t size;\n};\n\n#endif\n",
    "sweet/base/door.h": '#ifndef DOOR_H\n#define DOOR_H\n\n#include "base/room.h"\n\n'
                         "struct door {\n\tstruct room room;\n};\nint door_open(struct door *door);\n\n"
                         "#endif\n",
}
GOOD = """/* door.c */
#include <errno.h>
#include <stdint.h>

#include "base/door.h"

int door_open(struct door *door)
{
	return (uintptr_t)door ? (int)door->room.size : -EINVAL;
}
"""


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "sweet/base").mkdir(parents=True)
    for name, text in TREE.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def check(tree, source, *options, name="door.c"):
    (tree / "sweet/base" / name).write_text(source)
    done = subprocess.run([sys.executable, SCRIPT, *options, "sweet"], capture_output=True, text=True,
                          env={**os.environ, "srcdir": str(tree)})
    return done.returncode, done.stdout.splitlines()


def test_good(tree):
    assert check(tree, GOOD) == (0, [])


@pytest.mark.parametrize("line, said", [
    ("#include <errno.h>\n", "sweet/base/door.c: add #include <errno.h> (EINVAL)"),
    ("#include <stdint.h>\n", "sweet/base/door.c: add #include <stdint.h> (uintptr_t)"),
])
def test_missing(tree, line, said):
    assert check(tree, GOOD.replace(line, "")) == (1, [said])


def test_missing_own(tree):
    source = GOOD.replace('"base/door.h"', '"base/room.h"').replace("door->room.size", "0")
    assert "sweet/base/door.c: add #include \"base/door.h\" (its own header)" in check(tree, source)[1]


def test_structure_of_a_prototype(tree):
    """Its declaration comes only with another header."""
    (tree / "sweet/base/key.h").write_text("#ifndef KEY_H\n#define KEY_H\n\n#include \"base/door.h\"\n"
                                           "#include <stddef.h>\n\n"
                                           "size_t key(struct room *room);\n\n#endif\n")
    assert check(tree, GOOD) == (1, ["sweet/base/key.h: add struct room;"])


@pytest.mark.parametrize("line", ["#include <errno.h>\n", "#include <stdint.h>\n"])
def test_fix(tree, line):
    assert check(tree, GOOD.replace(line, ""), "--fix")[0] == 1
    assert (tree / "sweet/base/door.c").read_text() == GOOD


def test_does_not_compile(tree):
    code, said = check(tree, GOOD.replace("uintptr_t", "uintptr"))
    assert code == 1
    assert any("error: use of undeclared identifier 'uintptr'" in line for line in said)
