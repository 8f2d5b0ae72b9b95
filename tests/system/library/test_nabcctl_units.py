# SPDX-License-Identifier: MIT
"""nabcctl: units are read, put, kept, destroyed and purged."""

import json
import os
import re
import signal
import time

import pytest

from files import MB, pattern, write
from server import TIMEOUT
from test_nabcctl import (NOBODY, as_nobody, bad, ctl, folder, good, ids, only_root, open_owner,
                          owner, sealed, shell)


# --- get ------------------------------------------------------------------------------------------


def test_get(owner):
    for number, unit in enumerate(owner.ids):
        assert good(owner.path, "get", unit) == owner.data(number)
        assert good(owner.path, "get", hex(unit)) == owner.data(number)


@pytest.mark.parametrize(
    "offset, length", [(0, 0), (0, 1), (1, 4094), (4095, 2), (4999, 1), (4999, 100), (5000, 5)]
)
def test_get_range(owner, offset, length):
    got = good(owner.path, "get", owner.ids[1], "--offset", offset, "--length", length)
    assert got == owner.data(1)[offset : offset + length]
    got = good(owner.path, "get", owner.ids[1], "--offset", offset)
    assert got == owner.data(1)[offset:]


def test_get_behind_the_end(owner):
    said = bad(owner.path, "get", owner.ids[1], "--offset", 5001)
    assert "has 5000 bytes" in said and "5001" in said
    bad(owner.path, "get", owner.ids[1], "--offset", 2**64 - 1, "--length", 2**64 - 1)


def test_unknown_ids(owner):
    for unit in (owner.ids[0] + 1, 2**64 - 1, 12345):
        for words in (["get"], ["destroy"], ["grant", "--user", 0], ["grants"], ["stat"]):
            done = ctl(owner.path, *words, unit)
            assert done.returncode == 1
            assert f"unit {unit}" in done.stderr.decode(), done.stderr
    good(owner.path, "destroy", owner.ids[0])
    assert "destroyed or evicted" in bad(owner.path, "get", owner.ids[0])


def test_reader_that_ends_early(owner):
    done = shell(owner.path, f"nabcctl get {owner.ids[2]} | head -c 1")
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")
    # In a script under a server that ignores SIGPIPE.
    done = shell(owner.path, f"nabcctl get {owner.ids[2]} | head -c 1", restore_signals=False)
    assert (done.returncode, done.stderr) == (1, b"")


def test_full_standard_output(owner):
    with open("/dev/full", "wb") as full:
        for words in (["get", owner.ids[1]], ["list"], ["stat"]):
            said = bad(owner.path, *words, stdout=full)
            assert "standard output: No space left" in said


# --- put ----------------------------------------------------------------------------------------------


def put(path, *words, **options):
    said = good(path, "put", *words, **options)
    assert re.fullmatch(rb"[1-9][0-9]*\n", said)
    return int(said)


@pytest.mark.parametrize("size", [1, 4096, 65535, 65536, 65537, 3 * MB])
def test_put(owner, folder, size):
    data = pattern(size)
    path = write(folder / "file", data)
    by_name = put(owner.path, path)
    by_pipe = put(owner.path, "-", input=data)
    with open(path, "rb") as file:
        redirected = put(owner.path, "-", stdin=file)
    with open(path, "rb") as file:
        os.lseek(file.fileno(), size - 1, os.SEEK_SET)
        rest = put(owner.path, "-", stdin=file)
    assert len({by_name, by_pipe, redirected, rest}) == 4
    for unit in (by_name, by_pipe, redirected):
        assert good(owner.path, "get", unit) == data
    assert good(owner.path, "get", rest) == data[-1:]
    # A process that has exited has made each of them.
    assert {int(unit["id"]) for unit in sealed(owner.path)} == {by_name, by_pipe, redirected, rest}


def test_put_json(owner):
    unit = json.loads(good(owner.path, "--json", "put", "-", input=b"x"))
    assert list(unit) == ["id"] and good(owner.path, "get", unit["id"]) == b"x"


def test_put_fragments(owner):
    data = pattern(10000)
    unit = put(owner.path, "--fraglen", 1000, "-", input=data)
    found = json.loads(good(owner.path, "stat", "--json", unit))[0]
    assert (found["fraglen"], found["fragments"]) == (1000, 10)
    assert good(owner.path, "get", unit, "--offset", 999, "--length", 3002) == data[999:4001]
    assert "--fraglen 5000" in bad(owner.path, "put", "--fraglen", 5000, "-", input=b"x")


def test_put_what_has_no_size(owner):
    assert good(owner.path, "get", put(owner.path, "/proc/version")).startswith(b"Linux")


def test_file_of_an_odd_name(owner, folder):
    name = write(folder / "--json \xff\n", b"odd")
    with open(os.fsencode(folder) + b"/-\xff", "wb") as file:
        file.write(b"bytes")
    assert good(owner.path, "get", put(owner.path, name)) == b"odd"
    done = ctl(owner.path, "put", "--", b"-\xff".decode(errors="surrogateescape"), cwd=folder)
    assert good(owner.path, "get", int(done.stdout)) == b"bytes"


def test_bad_files(owner, folder):
    before = good(owner.path, "list")
    assert "No such file" in bad(owner.path, "put", folder / "missing")
    assert "Is a directory" in bad(owner.path, "put", folder)
    assert "it is empty" in bad(owner.path, "put", write(folder / "empty", b""))
    assert "it is empty" in bad(owner.path, "put", "-", input=b"")
    assert "it is empty" in bad(owner.path, "put", "/dev/null")
    large = write(folder / "large", bytes(4 * MB + 1))
    assert "limit for one unit" in bad(owner.path, "put", large)
    assert "limit for one unit" in bad(owner.path, "put", "-", input=bytes(4 * MB + 1))
    # An endless one is aborted as soon as it is too large.
    assert "limit for one unit" in bad(owner.path, "put", "/dev/zero")
    assert good(owner.path, "list") == before


def test_id_that_nobody_hears(owner):
    with open("/dev/full", "wb") as full:
        assert "No space left" in bad(owner.path, "put", "-", input=b"x", stdout=full)
    assert sealed(owner.path) == []


# --- keep ---------------------------------------------------------------------------------------------


def counter(path, name):
    return json.loads(good(path, "stat", "--json"))[name]


def gone(path, unit):
    """Waits until a unit has expired."""
    deadline = time.monotonic() + TIMEOUT
    while ctl(path, "stat", unit).returncode == 0:
        assert time.monotonic() < deadline
    return "not in the cache" in bad(path, "get", unit)


def test_keep(owner):
    first, second = owner.ids[:2]
    good(owner.path, "keep", first, "--priority", "pinned", "--ttl", 3600)
    assert counter(owner.path, "pinned") == 1
    good(owner.path, "keep", first, "--ttl", 0, "--priority", "low")
    assert counter(owner.path, "pinned") == 0
    good(owner.path, "keep", second, "--ttl", "0.000001")
    assert gone(owner.path, second)
    assert counter(owner.path, "expired") == 1
    assert ids(owner.path) == sorted(set(owner.ids) - {second})
    assert "more than a year" in bad(owner.path, "keep", first, "--ttl", 366 * 86400)
    assert "not in the cache" in bad(owner.path, "keep", second, "--ttl", 1)


def test_put_for_a_time(owner):
    unit = put(owner.path, "-", "--ttl", "0.05", "--priority", "pinned", input=b"x")
    assert gone(owner.path, unit)
    assert counter(owner.path, "pinned") == 0
    # If the lifetime is invalid, the unit is not made at all.
    assert "more than a year" in bad(owner.path, "put", "-", "--ttl", "1e9", input=b"x")
    assert sealed(owner.path) == []


@only_root
def test_strangers_keep(open_owner):
    path, unit = open_owner.path, open_owner.ids[1]
    good(path, "grant", unit, "--user", NOBODY)
    # A grant does not permit to keep or to destroy it.
    assert "permission denied" in bad(path, "keep", unit, "--ttl", 1, prefix=as_nobody)
    own = int(good(path, "put", "-", "--ttl", "0.05", "--priority", "low", prefix=as_nobody,
                   input=b"mine"))
    assert gone(path, own)
    for priority in ("high", "pinned"):
        said = bad(path, "put", "-", "--priority", priority, prefix=as_nobody, input=b"x")
        assert "only the owner of the cache and root" in said
    assert sealed(path) == []


# --- destroy -----------------------------------------------------------------------------------------


def test_destroy_goes_on(owner):
    done = ctl(owner.path, "destroy", owner.ids[0], 12345, hex(owner.ids[3]), owner.ids[0])
    assert (done.returncode, done.stdout) == (1, b"")
    assert [line.split(":")[1] for line in done.stderr.decode().splitlines()] == [
        " unit 12345", f" unit {owner.ids[0]}",
    ]
    assert ids(owner.path) == sorted(owner.ids[1:3])
    assert good(owner.path, "destroy", *owner.ids[1:3]) == b""
    assert ids(owner.path) == []


# --- purge -------------------------------------------------------------------------------------------


def test_purge(owner):
    assert good(owner.path, "purge", 5000) == b"1\n"
    assert good(owner.path, "purge", 5000, 4096, 300000) == b"2\n"
    assert json.loads(good(owner.path, "purge", "--json", 1)) == {"purged": 1}
    assert good(owner.path, "list").count(b"\n") == 1


def test_purge_goes_on(owner):
    done = ctl(owner.path, "purge", 1, "x", 4096)
    assert (done.returncode, done.stdout) == (1, b"2\n")
    assert done.stderr.decode().startswith('nabcctl: "x": neither a URL')
