# SPDX-License-Identifier: MIT
"""Tests of check-lists.sh: which lists it takes for unsorted, and how --mend sorts them."""

import os
import subprocess

import pytest

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "check-lists.sh")
MENDS = "check-lists: this sorts them: tests/check-lists.sh --mend\n"
GOOD = """# A comment.
part_SOURCES = \\
	part/base/door-key.c \\
	part/base/door.c part/base/door.h \\
	part/top/bell.h
if BELLS
part_SOURCES += part/top/bell.c
endif
part_LDADD = part/second.a part/first.a
part_mixed = $(part_SOURCES) part/b.c part/a.c
part/part: part/z.c part/a.c
"""


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tests/fuzz").mkdir(parents=True)
    (tmp_path / "Makefile.am").write_text("EXTRA_DIST = README.md part/z part/a\n")
    return tmp_path


def check(tree, text, *options, name="tests/local.mk"):
    (tree / name).write_text(text)
    done = subprocess.run([SCRIPT, *options], capture_output=True, text=True,
                          env={**os.environ, "srcdir": str(tree)})
    return done.returncode, done.stdout


def test_good(tree):
    assert check(tree, GOOD) == (0, "check-lists: the lists of 2 makefiles are sorted\n")


@pytest.mark.parametrize("name", ["tests/local.mk", "tests/fuzz/local.mk", "Makefile.am"])
@pytest.mark.parametrize("old, new, says", [
    ("part/top/bell.h\n", "part/top/bell.h part/base/a.h\n",
     "5: part/base/a.h is not behind part/top/bell.h in the alphabet"),
    ("part/base/door-key.c \\\n\tpart/base/door.c part/base/door.h",
     "part/base/door.c part/base/door.h \\\n\tpart/base/door-key.c",
     "4: part/base/door-key.c is not behind part/base/door.h in the alphabet"),
    ("+= part/top/bell.c\n", "+= part/top/bell.c part/top/bell.c\n", "7: part/top/bell.c stands twice"),
    ("+= part/top/bell.c\n", "+= part/top/bell.c part/base/a.c\n",
     "7: part/base/a.c is not behind part/top/bell.c in the alphabet"),
])
def test_bad(tree, name, old, new, says):
    assert check(tree, GOOD.replace(old, new), name=name) == (1, f"check-lists: {name}:{says}\n{MENDS}")


def test_mend(tree):
    """It writes name.c and name.h in one line, and changes no other list."""
    bad = GOOD.replace("part/base/door.c part/base/door.h \\\n\tpart/top/bell.h",
                       "part/top/bell.h part/base/door.h \\\n\tpart/base/door.c part/base/door.h")
    code, said = check(tree, bad, "--mend")
    assert code == 0
    assert said == ("check-lists: tests/local.mk:4: part/base/door.h is not behind part/top/bell.h in the "
                    "alphabet: sorted\n")
    assert (tree / "tests/local.mk").read_text() == GOOD


def test_mend_one_line(tree):
    bad = "a_PROGRAMS = part/b part/a\nb_DATA = part/" + "b" * 50 + " part/" + "a" * 50 + "\n"
    assert check(tree, bad, "--mend")[0] == 0
    assert (tree / "tests/local.mk").read_text() == (
        "a_PROGRAMS = part/a part/b\nb_DATA = \\\n\tpart/" + "a" * 50 + " \\\n\tpart/" + "b" * 50 + "\n")
