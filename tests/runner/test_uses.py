# SPDX-License-Identifier: MIT
"""Tests of check-uses.sh: which functions it takes for used."""

import os
import subprocess

import pytest

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "check-uses.sh")
HEADER = """/* A door: door_shut() shuts it. */
struct door {
	int open;
};
int door_open(struct door *door,
	      int key);
void door_shut(struct door *door) __attribute__((nonnull));
static inline int door_is_open(const struct door *door)
{
	return door->open;
}
"""
SOURCE = """/* door_shut() ends this. */
int door_open(struct door *door,
	      int key)
{
	log("door_shut");
	return door_helper(key);
}

void door_shut(struct door *door)
{
}
"""


@pytest.fixture
def tree(tmp_path):
    for folder in ("sweet/base", "libnabc/include", "bench", "tests/unit"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sweet/base/door.h").write_text(HEADER)
    (tmp_path / "sweet/base/door.c").write_text(SOURCE)
    (tmp_path / "sweet/base/main.c").write_text("int main(void)\n{\n\treturn door_open(NULL, 0);\n}\n")
    (tmp_path / "tests/unit/test-door.c").write_text("void test(void)\n{\n\tdoor_shut(NULL);\n}\n")
    return tmp_path


def check(tree):
    done = subprocess.run([SCRIPT], capture_output=True, text=True, env={**os.environ, "srcdir": str(tree)})
    return done.returncode, done.stdout


def test_called_by_tests_alone(tree):
    assert check(tree) == (1, "check-uses: sweet/base/door.h: door_shut() is called by tests alone, if at all: "
                           "use it, or remove it\n")


@pytest.mark.parametrize("path, text", [
    ("sweet/base/main.c", "int main(void)\n{\n\tdoor_open(NULL, 0), door_shut(NULL);\n}\n"),
    ("bench/doors.c", "void doors(void)\n{\n\tdoor_shut(NULL);\n}\n"),
    ("sweet/base/bell.h", "static inline void ring(void)\n{\n\tdoor_shut(NULL);\n}\n"),
    ("sweet/base/table.c", "static void (*const table[])(struct door *) = {door_shut};\n"),
])
def test_used(tree, path, text):
    (tree / path).write_text(text + "int first = door_open(NULL, 0);\n")
    assert check(tree) == (0, "check-uses: the product uses all 2 functions that its headers declare\n")


def test_public(tree):
    (tree / "sweet/base/door.h").rename(tree / "libnabc/include/door.h")
    assert check(tree)[0] == 0
