# SPDX-License-Identifier: MIT
"""Tests of check-memory.sh: which objects it takes for those of GLib's memory."""

import fake_nm
import pytest

TABLE = """# Security
| `base/none` | outside of the table |
<!-- GLib -->
| sources | for |
|---|---|
| `base/door`, `server/main` | doors |
| `http/bell` | bells |
<!-- GLib -->
"""
OBJECTS = {
    "base/libsweet_a-door.o": ["g_malloc0", "g_free"],
    "base/libsweet_a-key.o": ["malloc", "g_free", "g_try_malloc", "g_hash_table_lookup", "g_queue_push_tail_link"],
    "http/libsweet_a-bell.o": ["g_string_append_len"],
    "server/sweet-main.o": ["g_strdup"],
    # Another program's.
    "base/nabcctl_libnabcctl_a-door.o": ["g_malloc"],
}


def check(tmp_path, objects, table=TABLE, removed=()):
    (tmp_path / "SECURITY.md").write_text(table)
    for name, calls in objects.items():
        path = tmp_path / "sweet" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"                 U {call}\n" for call in calls))
        if name not in removed:
            (path.parent / f"{path.stem.split('-', 1)[1]}.c").write_text("")
    return fake_nm.check(tmp_path, "check-memory.sh", 'cat "$2"')


def test_good(tmp_path):
    assert check(tmp_path, OBJECTS) == (
        0, "check-memory: SECURITY.md lists the 3 sources for which GLib allocates memory\n")


@pytest.mark.parametrize("call", ["g_memdup2", "g_malloc_n", "g_ptr_array_add", "g_string_insert_c", "g_strdup_printf"])
def test_not_listed(tmp_path, call):
    assert check(tmp_path, {**OBJECTS, "base/libsweet_a-key.o": [call]}) == (
        1, "check-memory: sweet/base/key.c: GLib allocates memory for it, and aborts without: use malloc() and "
        'handle its failure, or list it in SECURITY.md, at "Memory limits"\n')


def test_listed_without_need(tmp_path):
    assert check(tmp_path, {**OBJECTS, "http/libsweet_a-bell.o": ["g_free"]}) == (
        1, "check-memory: SECURITY.md: lists http/bell, for which GLib allocates nothing: remove it\n")


def test_listed_twice(tmp_path):
    table = TABLE.replace("`http/bell`", "`base/door`, `http/bell`")
    assert check(tmp_path, OBJECTS, table) == (1, "check-memory: SECURITY.md: lists base/door twice\n")


def test_old_object(tmp_path):
    old = "base/libsweet_a-old.o"
    assert check(tmp_path, {**OBJECTS, old: ["g_malloc"]}, removed=[old])[0] == 0


def test_no_objects(tmp_path):
    assert check(tmp_path, {"base/libsweet_a-door.o": []})[0] == 1
