# SPDX-License-Identifier: MIT
"""Tests of check-names.sh: which functions it takes for callbacks, and which names for the same."""

import os
import subprocess

import pytest

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "check-names.sh")
DOOR = "static void *begin(void *context)\n{\n\treturn context;\n}\n\n"
# What calls a function of this name, and lets nobody else call it.
BELL = "static int begin(int left,\n\t\t int right)\n{\n\treturn left + right;\n}\n"
WRONG = ("check-names: sweet/base/door.c: the callback begin() has a namesake in libnabc/bell.c: "
         "give it the prefix of its module\n")


@pytest.fixture
def tree(tmp_path):
    for folder in ("sweet/base", "libnabc"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "libnabc/bell.c").write_text(BELL)
    return tmp_path


def check(tree, text):
    (tree / "sweet/base/door.c").write_text(text)
    done = subprocess.run([SCRIPT], capture_output=True, text=True, env={**os.environ, "srcdir": str(tree)})
    return done.returncode, done.stdout


@pytest.mark.parametrize("use", [
    "static const struct door door = {.open = begin};\n",
    "static const struct door door = {\n\t.close = NULL,\n\t.open = begin,\n};\n",
    "#define OPENS \\\n\t.begin = begin\n\nstatic const struct door door = {OPENS};\n",
    "static const struct door doors[] = {{\"front\", begin}};\n",
    "static void (*const doors[])(void) = {[FRONT] = (door_open)begin};\n",
    "static const struct door door = {(void (*)(void))begin};\n",
    "void door_open(struct door *door)\n{\n\tdoor->open = begin;\n}\n",
    "void door_open(struct door *door)\n{\n\tthread_start(door, begin, NULL);\n}\n",
    "void door_open(struct door *door)\n{\n\tdoor_on(door->late ? begin : NULL);\n}\n",
])
def test_callback(tree, use):
    assert check(tree, DOOR + use) == (1, WRONG)


@pytest.mark.parametrize("use", [
    "void door_open(void *door)\n{\n\tbegin(begin(door));\n}\n",
    "/* .open = begin; */\nconst char *door_name(void)\n{\n\treturn door_log(\".open = begin;\", 1);\n}\n",
    "void door_open(struct door *begin)\n{\n\tdoor_close(begin, NULL);\n}\n",
])
def test_no_callback(tree, use):
    assert check(tree, DOOR + use) == (0, "check-names: each of 0 callbacks has a name of its own\n")


def test_prefix(tree):
    use = "static const struct door door = {.open = door_begin, .close = door_close};\n"
    assert check(tree, DOOR.replace("begin", "door_begin") + use) == (
        0, "check-names: each of 1 callbacks has a name of its own\n")
