# SPDX-License-Identifier: MIT
"""Tests of check-calls.sh: which calls go to an upper folder."""

import fake_nm
import pytest

GOOD = {
    "libnabc/wire/.libs/libnabc_internal_la-key.o": ["T nc_key"],
    "libnabc/api/.libs/libnabc_internal_la-door.o": ["T NC_door", "U nc_key"],
    "sweet/base/libsweet_a-key.o": ["T key", "U malloc", "U table", "U NC_door"],
    "sweet/tls/record/libsweet_a-bell.o": ["T bell", "T bell_again", "R table", "U key", "U bell"],
    # Another program's.
    "sweet/base/nabcctl_libnabcctl_a-key.o": ["U bell"],
}


def check(tmp_path, objects, sources=lambda path: path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "folders.txt").write_text(
        "# A line for each part.\nlibnabc       wire api\nnabcctl       .\nsweet         base tls tls/record\n")
    for name, symbols in objects.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{name}:{'':16} {symbol}\n" for symbol in symbols))
        source = sources(name.replace(".libs/", "").replace("libnabc_internal_la-", "").replace("libsweet_a-", "")
                         .replace(".o", ".c"))
        if source:
            (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / source).write_text("")
    return fake_nm.check(tmp_path, "check-calls.sh", f'shift\ncat "$@" | sed "s|^|{tmp_path}/|"')


def test_good(tmp_path):
    assert check(tmp_path, GOOD) == (0, "check-calls: no function calls one of an upper folder\n")


@pytest.mark.parametrize("user, function, home", [
    ("sweet/base/libsweet_a-key.o", "bell_again", "sweet/tls/record/bell.c"),
    ("libnabc/wire/.libs/libnabc_internal_la-key.o", "NC_door", "libnabc/api/door.c")])
def test_up(tmp_path, user, function, home):
    source = f"{user.split('/')[0]}/{user.split('/')[1]}/key.c"
    assert check(tmp_path, {**GOOD, user: [*GOOD[user], f"U {function}"]}) == (
        1, f"check-calls: {source} calls {function}() of the upper {home}\n")


def test_old_object(tmp_path):
    objects = {**GOOD, "sweet/base/libsweet_a-old.o": ["U bell"]}
    assert check(tmp_path, objects, lambda path: None if "old" in path else path)[0] == 0


def test_no_objects(tmp_path):
    objects = {name: symbols for name, symbols in GOOD.items() if name.startswith("libnabc")}
    (tmp_path / "sweet" / "base").mkdir(parents=True)
    assert check(tmp_path, objects) == (1, "check-calls: sweet: no objects\n")
