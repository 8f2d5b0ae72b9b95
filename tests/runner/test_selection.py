# SPDX-License-Identifier: MIT
"""Which tests are chosen, with which backends, and what is reported of those that run."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import selection
from conftest import SYSTEM

KINDS = ("uring", "epoll", "no-uring")


class Item:
    def __init__(self, name, **params):
        self.path = pathlib.Path("test_a.py")
        self.originalname = name
        if params:
            self.callspec = type("Spec", (), {"params": params})()


class Config:
    def __init__(self, **options):
        self.options = {"backends": None, "thin": False, "slice": None, "lacking": None,
                        "needing": None, "list_needs": None, **options}

    def getoption(self, name):
        return self.options[name]


def items():
    return [*(Item("test_of_kinds", kind=kind, size=size) for kind in KINDS for size in (1, 2)),
            *(Item("test_other_name", walk=kind) for kind in KINDS),
            Item("test_own_kinds", kind="denied"), Item("test_plain"), Item("test_sizes", size="x")]


def choose(**options):
    return [(item.originalname, selection.backend_of(item))
            for item in selection.choose(Config(**options), items())]


def test_backend_is_any_parameter():
    assert choose(backends="epoll") == [("test_of_kinds", "epoll")] * 2 + [("test_other_name", "epoll")]


def test_none():
    assert choose(backends="none") == [("test_own_kinds", "none"), ("test_plain", "none"),
                                       ("test_sizes", "none")]


def test_each_is_in_one_backend():
    parts = [choose(backends=word) for word in (*KINDS, "none")]
    assert sum(map(len, parts)) == len(items())


def test_first(monkeypatch):
    monkeypatch.setattr(selection, "why_not", lambda kind: "no io_uring" if kind == "uring" else "")
    assert choose(backends="first") == choose(backends="epoll")


def test_first_of_a_test_that_has_few(monkeypatch):
    monkeypatch.setattr(selection, "why_not", lambda kind: "")
    some = [Item("test_all", kind=kind) for kind in KINDS] + [Item("test_epoll", kind="epoll")]
    kept = selection.choose(Config(backends="first"), some)
    assert [(item.originalname, selection.backend_of(item)) for item in kept] == \
        [("test_all", "uring"), ("test_epoll", "epoll")]


@pytest.mark.parametrize("words", ["nothing", "epoll,", "first,evil"])
def test_bad_backends(words, monkeypatch):
    monkeypatch.setattr(selection, "why_not", lambda kind: "")
    with pytest.raises(pytest.UsageError, match="is none of"):
        choose(backends=words)


def test_thin_takes_one_of_each():
    chosen = choose(thin=True)
    assert [name for name, _ in chosen] == list(dict.fromkeys(item.originalname for item in items()))
    assert choose(thin=True, backends="epoll,none")[0] == ("test_of_kinds", "epoll")


def test_thin_takes_backends_in_turn():
    many = [Item(f"test_{number}", kind=kind) for number in range(60) for kind in KINDS]
    chosen = [selection.backend_of(item) for item in selection.choose(Config(thin=True), many)]
    assert len(chosen) == 60 and all(chosen.count(kind) >= 10 for kind in KINDS)
    # Whichever other tests there are.
    few = [selection.backend_of(item) for item in selection.choose(Config(thin=True), many[90:])]
    assert few == chosen[30:]


def test_slices_are_all_of_it():
    parts = [selection.choose(Config(slice=f"{part}/4"), list(range(10))) for part in (1, 2, 3, 4)]
    assert sum(parts, []) == list(range(10))
    with pytest.raises(pytest.UsageError):
        choose(slice="5/4")


def run(folder, text, *options, **environment):
    """A test beside the conftest of the system tests."""
    for name in ("conftest.py", "support"):
        if not os.path.lexists(folder / name):
            os.symlink(os.path.join(SYSTEM, name), folder / name)
    (folder / "test_it.py").write_text("import pytest\n" + text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder), *options],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "NABC_RESULTS": str(folder / "results"), **environment})


def rows(folder):
    with open(folder / "results") as file:
        return [json.loads(line) for line in file]


def test_results(tmp_path):
    run(tmp_path, """
def test_good(): pass
def test_bad(): assert False
def test_skipped(): pytest.skip("no such thing")
@pytest.fixture
def broken():
    yield
    assert False
def test_broken_end(broken): pass
""")
    found = {row["test"].rpartition("::")[2]: (row["outcome"], row["reason"])
             for row in rows(tmp_path) if "test" in row}
    assert found["test_good"] == ("passed", "")
    assert found["test_bad"][0] == "failed" and found["test_broken_end"][0] == "failed"
    assert found["test_skipped"] == ("skipped", "no such thing")
    assert rows(tmp_path)[0]["begin"].endswith("test_good")


def test_file_that_cannot_be_read(tmp_path):
    assert run(tmp_path, "import nothing_of_that_name\n").returncode != 0
    assert rows(tmp_path)[0]["outcome"] == "failed"


def test_file_that_is_skipped(tmp_path):
    run(tmp_path, "pytest.skip('not here', allow_module_level=True)\n")
    assert [(row["outcome"], row["reason"]) for row in rows(tmp_path)] == [("skipped", "not here")]


def test_missing_program(tmp_path):
    text = """
@pytest.fixture
def never(): assert False
@pytest.mark.needs("nginx")
def test_it(never): pass
"""
    run(tmp_path, text, PATH=str(tmp_path / "none"))
    (row,) = (row for row in rows(tmp_path) if "test" in row)
    # Debian installs it in a folder that is always searched.
    if not os.path.exists("/usr/sbin/nginx"):
        assert row["outcome"] == "skipped"
        assert row["reason"] == "nginx is missing; on Debian: apt-get install nginx-light"


# sh, because each system has it, stands for a program of the package.
NEEDS = """
import tools
tools.PACKAGES.update({"none-a": "package-a", "none-b": "package-b", "sh": "package-sh"})
pytestmark = [pytest.mark.needs("none-a")] if MARKED else []
@pytest.mark.needs("sh")
def test_sh(): pass
@pytest.mark.needs("none-b", "sh")
def test_two(): pass
def test_plain(): pass
"""


def outcomes(folder, text, *options):
    if os.path.exists(folder / "results"):
        os.remove(folder / "results")
    done = run(folder, text, *options)
    return {row["test"].rpartition("::")[2]: (row["outcome"], row["reason"])
            for row in rows(folder) if "test" in row}, done.returncode


def test_needing(tmp_path):
    """The tests of each line of --list-needs are all tests that need something."""
    plain, marked = NEEDS.replace("MARKED", "False"), NEEDS.replace("MARKED", "True")
    list_needs = f"--list-needs={tmp_path}/needs"
    assert outcomes(tmp_path, plain, list_needs) == ({}, 0)
    assert (tmp_path / "needs").read_text() == "package-b,package-sh\npackage-sh\n"
    assert outcomes(tmp_path, marked, list_needs) == ({}, 0)
    assert (tmp_path / "needs").read_text() == \
        "package-a\npackage-a,package-b,package-sh\npackage-a,package-sh\n"
    assert outcomes(tmp_path, plain, "--needing=package-sh") == ({"test_sh": ("passed", "")}, 0)
    lacks = ("skipped", "none-b is missing; on Debian: apt-get install package-b")
    assert outcomes(tmp_path, plain, "--needing=package-sh,package-b") == ({"test_two": lacks}, 0)
    assert outcomes(tmp_path, plain, "--needing=package-a") == ({}, 0)


def test_lacking(tmp_path):
    plain = NEEDS.replace("MARKED", "False")
    lacks = ("skipped", "none-b is missing; on Debian: apt-get install package-b")
    assert outcomes(tmp_path, plain, "--lacking=package-b") == ({"test_two": lacks}, 0)
    found, status = outcomes(tmp_path, plain, "--lacking=package-sh")
    said = ("failed", "package-sh is said to be missing, and sh is found")
    assert found == {"test_sh": said, "test_two": said} and status == 1


def test_what_is_said_of_a_failure(tmp_path):
    """The server's command, exit, log and status, the requests: within a hundred lines."""
    done = run(tmp_path, """
import collections, types, time
import client, postmortem, server
def test_it():
    fake = types.SimpleNamespace(
        process=types.SimpleNamespace(args=["sweet", "--root", "/x y"], poll=lambda: -11), pid=7,
        errors=types.SimpleNamespace(text=lambda: "\\n".join(f"line {n}" for n in range(300))),
        try_status=lambda: None, last_status={"requests": 12})
    server.started += [fake] * 5
    server.note(80, "sent", b"GET /what HTTP/1.1")
    assert False
""")
    lines = done.stdout.splitlines()
    assert len(lines) < 100
    text = done.stdout
    for part in ("server 5 of 5", "sweet --root '/x y'", "process 7: ended with -11", "log: line 299",
                 "288 lines of the log before these", '"requests": 12', "sent 18 bytes b'GET /what"):
        assert part in text, part
