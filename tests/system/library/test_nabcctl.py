# SPDX-License-Identifier: MIT
"""nabcctl: its command line, statistics, lists and top, on caches of other programs."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import termios
import threading

import pytest

from files import MB
from server import BUILD, TIMEOUT, UNDER, Lines
from stopped import stop

NABCCTL = os.path.join(BUILD, "nabcctl", "nabcctl")
OWNER = os.path.join(BUILD, "tests", "system", "cache-owner")
SOURCE = pathlib.Path(os.environ["srcdir"])
COMMANDS = ["stat", "top", "routes", "list", "get", "put", "grant", "grants", "revoke", "keep",
            "destroy", "purge"]
NOBODY = 65534
LENGTHS = [1, 5000, 300000, 4096]


class Owner:
    """A process that owns a cache with units of some lengths."""

    def __init__(self, path, mode="600", size=16 * MB, lengths=LENGTHS):
        self.path = str(path)
        self.process = subprocess.Popen(
            [*UNDER, OWNER, self.path, mode, str(size), *map(str, lengths)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.errors = Lines(self.process.stderr)
        self.ids = []
        for line in iter(self.process.stdout.readline, b"\n"):
            assert line, self.errors.text()
            self.ids.append(int(line))
        self.lengths = list(lengths)

    def data(self, number):
        return bytes((7 * i + number) & 255 for i in range(self.lengths[number]))

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        status = self.process.wait(TIMEOUT)
        self.errors.thread.join(TIMEOUT)
        assert status == 0, f"exit status {status}: {self.errors.text()}"

    def kill(self):
        self.process.kill()
        self.process.wait(TIMEOUT)
        self.process.stdin.close()
        self.process.stdout.close()


@contextlib.contextmanager
def owning(path, **options):
    owner = Owner(path, **options)
    try:
        yield owner
    except BaseException:
        owner.kill()
        raise
    owner.close()


@pytest.fixture
def folder():
    """A folder that any user can reach, with a copy of nabcctl."""
    path = pathlib.Path(tempfile.mkdtemp())
    path.chmod(0o755)
    shutil.copy(NABCCTL, path / "nabcctl")
    yield path
    shutil.rmtree(path)


@pytest.fixture
def owner(folder):
    with owning(folder / "cache") as owner:
        yield owner


@pytest.fixture
def open_owner(folder):
    """An owner that permits all users to attach."""
    with owning(folder / "cache", mode="666") as owner:
        yield owner


def environment(path, **more):
    known = {"PATH": os.path.dirname(NABCCTL) + ":" + os.environ["PATH"], **more}
    return {**known, "NABC_CACHE": str(path)} if path else known


def ctl(path, *words, prefix=(), **options):
    program = os.path.join(os.path.dirname(path), "nabcctl") if prefix else NABCCTL
    options.setdefault("stdin", subprocess.DEVNULL) if "input" not in options else None
    return subprocess.run(
        [*prefix, program, *map(str, words)], env=environment(path), timeout=TIMEOUT,
        stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, **options,
    )


def good(path, *words, **options):
    """Returns its standard output; it must succeed without any message."""
    done = ctl(path, *words, **options)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    return done.stdout


def bad(path, *words, status=1, lines=1, **options):
    """Returns its message, on one line that begins with its name."""
    done = ctl(path, *words, **options)
    said = done.stderr.decode()
    assert done.returncode == status, (done.returncode, said)
    assert not done.stdout, done.stdout
    assert said.count("\n") == lines and said.startswith("nabcctl: "), said
    return said


def shell(path, script, **options):
    return subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", script], env=environment(path), timeout=TIMEOUT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )


def ids(path, **options):
    return [int(unit["id"]) for unit in json.loads(good(path, "list", "--json", **options))]


def sealed(path):
    return [unit for unit in json.loads(good(path, "list", "--json")) if unit["kind"] == "sealed"]


as_nobody = [
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all",
]
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")


# --- the command line ------------------------------------------------------------------


def test_help():
    text = good(None, "--help").decode()
    assert all(f"  {command} " in text for command in COMMANDS)
    for command in COMMANDS:
        text = good(None, command, "--help").decode()
        assert f"nabcctl {command} " in text and "--cache" in text and "--json" in text


def test_version():
    assert good(None, "--version").startswith(b"nabcctl (nabc) ")


@pytest.mark.parametrize(
    "words, hint",
    [
        ([], "no command given"),
        (["frobnicate"], '"frobnicate"'),
        (["--frobnicate"], "--frobnicate"),
        (["list", "--frobnicate"], "--frobnicate"),
        (["list", "stray"], '"stray"'),
        (["get"], "one id"),
        (["get", "1", "2"], "one id"),
        (["get", "0"], '"0"'),
        (["get", ""], '""'),
        (["get", "12x"], '"12x"'),
        (["get", "+1"], '"+1"'),
        (["get", "0x"], '"0x"'),
        (["get", "0xfg"], '"0xfg"'),
        (["get", "0x0x1"], '"0x0x1"'),
        (["get", "18446744073709551616"], '"18446744073709551616"'),
        (["get", "1", "--offset", "x"], '--offset "x"'),
        (["get", "1", "--offset=-1"], '--offset "-1"'),
        (["get", "1", "--length", "1K"], '--length "1K"'),
        (["put"], "one file"),
        (["put", "a", "b"], "one file"),
        (["put", "-", "--fraglen", "0"], '--fraglen "0"'),
        (["put", "-", "--fraglen", "many"], '--fraglen "many"'),
        (["put", "-", "--user", "no-such-user"], '"no-such-user"'),
        (["grant", "1"], "no grantee given"),
        (["grant", "--pid", "1"], "one id"),
        (["grant", "1", "--pid", "0"], '"0"'),
        (["grant", "1", "--pid", "4294967296"], '"4294967296"'),
        (["grant", "1", "--pid", "1", "--group", "no-such-group"], '"no-such-group"'),
        (["grant", "1", "--user", "4294967295"], '"4294967295"'),
        (["grants"], "one id"),
        (["grants", "1", "2"], "one id"),
        (["grants", "one"], '"one"'),
        (["revoke", "x", "--user", "0"], '"x"'),
        (["put", "-", "--ttl", "soon"], '--ttl "soon"'),
        (["put", "-", "--ttl", "1s"], '--ttl "1s"'),
        (["put", "-", "--ttl", "1e99"], '--ttl "1e99"'),
        (["put", "-", "--priority", "urgent"], '--priority "urgent"'),
        (["keep", "1"], "nothing to set"),
        (["keep", "--ttl", "1"], "one id"),
        (["keep", "x", "--ttl", "1"], '"x"'),
        (["keep", "1", "--ttl=-1"], '--ttl "-1"'),
        (["keep", "1", "--ttl", "nan"], '--ttl "nan"'),
        (["keep", "1", "--ttl", "1", "--priority", ""], '--priority ""'),
        (["destroy"], "one id"),
        (["destroy", "1", "x"], '"x"'),
        (["purge"], "one URL or tag"),
        (["stat", "1", "x"], '"x"'),
        (["routes", "set"], "set ADDRESS METHOD"),
        (["routes", "set", "unix"], "set ADDRESS METHOD"),
        (["routes", "get", "unix", "copy"], "set ADDRESS METHOD"),
        (["routes", "set", "unix", "fly"], '"fly"'),
        (["routes", "set", "unix", "unknown"], '"unknown"'),
        (["top", "stray"], '"stray"'),
        (["top", "--interval", ""], '--interval ""'),
        (["top", "--interval", "0"], '--interval "0"'),
        (["top", "--interval", "nan"], '--interval "nan"'),
        (["top", "--interval", "1s"], '--interval "1s"'),
        (["top", "--interval", "100000"], '--interval "100000"'),
        (["top", "--count", "0"], '--count "0"'),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_misuse(owner, words, hint):
    before = good(owner.path, "list")
    said = bad(owner.path, *words, status=2)
    assert hint in said and "--help)" in said
    assert good(owner.path, "list") == before


def test_which_cache(owner, folder):
    assert "NABC_CACHE" in bad(None, "list", status=2)
    assert "NABC_CACHE" in bad(None, "--cache", "", "list", status=2)
    for words in (["--cache", owner.path, "list"], ["list", "--cache", owner.path]):
        assert good(None, *words)
        # The argument overrides the environment.
        assert good(folder / "elsewhere", *words)
    assert good(folder / "elsewhere", "--cache", folder / "neither", "list", "--cache", owner.path)


def test_owner_that_speaks_otherwise(folder):
    # A welcome of version 7, without the field for the oldest version.
    old = b"NABC" + (7).to_bytes(4, "little") + bytes(56)
    for answer in (b"", b"welcome", bytes(256), old):
        path = folder / f"cache{len(answer)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            listener.listen()

            def answer_all():
                with contextlib.suppress(OSError):
                    while True:
                        with listener.accept()[0] as peer:
                            if answer:
                                peer.send(answer)

            thread = threading.Thread(target=answer_all)
            thread.start()
            told = bad(path, "stat")
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
        if answer == old:
            assert "speaks versions 7 to 7 of the cache's protocol, this process 8 to 9" in told
        else:
            assert ("not the socket of a cache" if answer else "hung up") in told


def test_owner_that_is_stopped(folder):
    """The tool waits, but not forever, and the owner has lost nothing by that."""
    with owning(folder / "cache") as owner:
        stop(owner.process.pid)
        try:
            assert "does not answer" in bad(owner.path, "list")
        finally:
            owner.process.send_signal(signal.SIGCONT)
        assert ids(owner.path) == sorted(owner.ids)


# --- listing ---------------------------------------------------------------------------------


def header_fields(structure):
    text = (SOURCE / "libnabc" / "include" / "nabc.h").read_text()
    body = re.search(r"struct %s \{(.*?)\n\};" % structure, text, re.S)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    # By method, in two objects.
    body = re.sub(r"struct NC_method_count [^;]*;", "sends; bytes;", body)
    return set(re.findall(r"(\w+)(?:\[\d+\])?;", body))


def test_stat(owner):
    found = json.loads(good(owner.path, "stat", "--json"))
    assert set(found) == header_fields("NC_cache_stat")
    assert (found["size"], found["units"], found["inserts"]) == (16 * MB, 4, 4)
    assert found["members"] == 1  # nabcctl itself
    assert set(found["sends"]) == set(found["bytes"]) == {"copy", "splice", "zerocopy", "kernel"}
    lines = dict(line.split(None, 1) for line in good(owner.path, "stat").decode().splitlines())
    assert lines["units"] == "4" and lines["sends.copy"] == "0" and lines["uring"]
    assert {name.split(".")[0] for name in lines} == set(found)


def test_counters_are_the_owners(owner):
    for _ in range(3):
        good(owner.path, "put", "-", input=b"x")
    good(owner.path, "destroy", owner.ids[0])
    bad(owner.path, "get", owner.ids[0])
    found = json.loads(good(owner.path, "stat", "--json"))
    assert (found["inserts"], found["destroys"], found["units"]) == (7, 1, 6)
    assert found["stale"] == 1


def test_list(owner):
    units = json.loads(good(owner.path, "list", "--json"))
    assert set(units[0]) == header_fields("NC_stat")
    assert [int(unit["id"]) for unit in units] == sorted(owner.ids)
    for unit in units:
        assert unit["size"] == owner.lengths[owner.ids.index(int(unit["id"]))]
        assert unit["fragments"] == -(-unit["size"] // unit["fraglen"])
        assert unit["kind"] == ("appended" if unit["size"] >= 32768 else "recycled")
        assert (unit["member"], unit["holds"]) == (0, 0)
    lines = good(owner.path, "list").decode().splitlines()
    assert lines[0].split()[:2] == ["ID", "SIZE"]
    assert [int(line.split()[0]) for line in lines[1:]] == sorted(owner.ids)


def test_long_list(folder):
    """More units than one message of the owner holds, and more than one page of the caller."""
    with owning(folder / "cache", lengths=700 * [10]) as owner:
        assert ids(owner.path) == sorted(owner.ids)
        assert good(owner.path, "list").count(b"\n") == 701


def test_empty_list(folder):
    with owning(folder / "cache", lengths=[]) as owner:
        assert json.loads(good(owner.path, "list", "--json")) == []
        assert good(owner.path, "list").count(b"\n") == 1


def test_stat_of_units(owner):
    first, second = owner.ids[0], owner.ids[2]
    units = json.loads(good(owner.path, "stat", "--json", second, first))
    assert [int(unit["id"]) for unit in units] == [second, first]
    assert units[0]["size"] == LENGTHS[2]
    done = ctl(owner.path, "stat", "--json", 12345, first)
    assert done.returncode == 1 and b"unit 12345: not in the cache" in done.stderr
    assert [int(unit["id"]) for unit in json.loads(done.stdout)] == [first]
    # Listing is not a use: nothing was copied or exported for it.
    assert sealed(owner.path) == []


# --- top -----------------------------------------------------------------------------------------


def test_top(owner):
    text = good(owner.path, "top", "--interval", 0.01, "--count", 3).decode()
    blocks = text.split("\n\n\n")
    assert text.count(" members\n") == 3 and "\033" not in text
    for name in ("inserts", "failures", "copy", "zerocopy"):
        assert len(re.findall(rf"^{name} +0\.0 +\d+", text, re.M)) == 3, blocks
    # Each counter says in words what it counts, within a terminal of 80 columns.
    assert len(re.findall(r"^evictions +0\.0 +\d+  units that made room$", text, re.M)) == 3
    for block in blocks:
        counters = block.split("\n\nsends")[0].splitlines()[3:]
        assert counters and all(re.fullmatch(r"\w+ +[\d.]+ +\d+  [a-z].{5,}", line)
                                for line in counters if line), block
    assert max(map(len, text.splitlines())) <= 80


def test_every_counter_has_words():
    with open(os.path.join(os.environ["srcdir"], "nabcctl", "ctl-counter.c")) as file:
        rows = re.findall(r"\{AT\((\w+)\)(.*?)\},", file.read(), re.S)
    assert len(rows) > 30
    for name, row in rows:
        words = re.search(r'\.words = "(.*)"', row)
        assert (".gauge" in row) != bool(words), name
        assert not words or 5 < len(words[1]) <= 30, name


def start_top(path, *words, **options):
    return subprocess.Popen(
        [NABCCTL, "top", *map(str, words)], env=environment(path), stderr=subprocess.PIPE,
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **options},
    )


def test_top_json(owner):
    """Rates are the differences of the totals."""
    top = start_top(owner.path, "--json", "--interval", 0.05)
    before = json.loads(top.stdout.readline())
    assert set(before["counters"]) == header_fields("NC_cache_stat")
    assert set(before["counters"]) - set(before["rates"]) == {
        "size", "used", "units", "members", "pinned", "uring", "kernel", "locked_bytes",
        "unlocked_bytes", "registered_bytes",
    }
    for _ in range(5):
        good(owner.path, "put", "-", input=b"x")
    grown = 0
    while before["counters"]["inserts"] < 9:
        block = json.loads(top.stdout.readline())
        more = block["counters"]["inserts"] - before["counters"]["inserts"]
        assert block["seconds"] >= 0 and (block["rates"]["inserts"] > 0) == (more > 0)
        grown, before = grown + more, block
    assert 0 < grown <= 5
    # Nothing more happens, so all rates are zero.
    assert json.loads(top.stdout.readline())["rates"]["inserts"] == 0
    top.send_signal(signal.SIGINT)
    out, said = top.communicate(timeout=TIMEOUT)
    assert (top.returncode, said) == (0, b"")
    assert all(json.loads(line) for line in out.splitlines())


def test_top_of_an_owner_that_dies(folder):
    owner = Owner(folder / "cache")
    top = start_top(owner.path, "--interval", 0.05)
    assert top.stdout.readline()
    owner.kill()
    out, said = top.communicate(timeout=TIMEOUT)
    assert top.returncode == 1 and b"the owner of the cache has ended" in said


def test_top_whose_reader_ends(owner):
    done = shell(owner.path, "nabcctl top --interval 0.01 | head -n 1")
    assert done.returncode == 128 + signal.SIGPIPE and done.stderr == b""
    assert done.stdout.startswith(b"4 units, ")


@pytest.mark.parametrize("key", [b"xq", b"\x03"], ids=["q", "Ctrl-C"])
def test_top_on_a_terminal(owner, key):
    ours, theirs = os.openpty()

    def begin():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    before = termios.tcgetattr(theirs)
    top = start_top(owner.path, "--interval", 0.05, stdin=theirs, stdout=theirs,
                    start_new_session=True, preexec_fn=begin)
    seen = b""
    while seen.count(b"\033[H\033[J") < 3:
        assert select.select([ours], [], [], TIMEOUT)[0], top.communicate()
        seen += os.read(ours, 4096)
    assert termios.tcgetattr(theirs)[3] != before[3]
    os.write(ours, key)
    said = top.communicate(timeout=TIMEOUT)[1]
    assert (top.returncode, said) == (0, b"")
    # Unchanged, otherwise the shell's next line would be invisible.
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)
