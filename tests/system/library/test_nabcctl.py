# SPDX-License-Identifier: MIT
"""nabcctl: in pipelines and scripts, on caches of other programs and of the server."""

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
import stat
import struct
import subprocess
import tempfile
import termios
import threading
import time

import pytest

from client import fetch
from files import MB, pattern, write
from server import BUILD, TIMEOUT, UNDER, Lines, Server, once, running

NABCCTL = os.path.join(BUILD, "nabcctl", "nabcctl")
OWNER = os.path.join(BUILD, "tests", "system", "cache-owner")
SOURCE = pathlib.Path(os.environ["srcdir"])
COMMANDS = ["stat", "top", "routes", "list", "get", "put", "grant", "revoke", "keep", "destroy",
            "purge"]
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
    """One that lets everybody attach."""
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
    """Its standard output, when all went well without a word."""
    done = ctl(path, *words, **options)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    return done.stdout


def bad(path, *words, status=1, lines=1, **options):
    """What it says, on one line that begins with its name."""
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
        ([], "which command?"),
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
        (["grant", "1"], "whom?"),
        (["grant", "--pid", "1"], "one id"),
        (["grant", "1", "--pid", "0"], '"0"'),
        (["grant", "1", "--pid", "4294967296"], '"4294967296"'),
        (["grant", "1", "--pid", "1", "--group", "no-such-group"], '"no-such-group"'),
        (["grant", "1", "--user", "4294967295"], '"4294967295"'),
        (["revoke", "x", "--user", "0"], '"x"'),
        (["put", "-", "--ttl", "soon"], '--ttl "soon"'),
        (["put", "-", "--ttl", "1s"], '--ttl "1s"'),
        (["put", "-", "--ttl", "1e99"], '--ttl "1e99"'),
        (["put", "-", "--priority", "urgent"], '--priority "urgent"'),
        (["keep", "1"], "how?"),
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
    assert hint in said and "--help tells more" in said
    assert good(owner.path, "list") == before


def test_which_cache(owner, folder):
    assert "NABC_CACHE" in bad(None, "list", status=2)
    assert "NABC_CACHE" in bad(None, "--cache", "", "list", status=2)
    for words in (["--cache", owner.path, "list"], ["list", "--cache", owner.path]):
        assert good(None, *words)
        # What is given counts more than the environment.
        assert good(folder / "elsewhere", *words)
    assert good(folder / "elsewhere", "--cache", folder / "neither", "list", "--cache", owner.path)


def test_owner_that_speaks_otherwise(folder):
    # A welcome of version 7, whose owner names no oldest one.
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
            assert "speaks versions 7 to 7 of the cache's protocol, this process 8 to 8" in told
        else:
            assert ("not the socket of a cache" if answer else "hung up") in told


def test_owner_that_is_stopped(folder):
    """Whoever asks it waits, but not for ever, and it has lost nothing by that."""
    with owning(folder / "cache") as owner:
        owner.process.send_signal(signal.SIGSTOP)
        try:
            assert "does not answer" in bad(owner.path, "list")
        finally:
            owner.process.send_signal(signal.SIGCONT)
        assert ids(owner.path) == owner.ids


# --- what is there ---------------------------------------------------------------------------


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
    """Of more than one message of the owner, and of more than one page of the caller."""
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
    # A look is no use: nothing was copied or lent for it.
    assert sealed(owner.path) == []


# --- top -----------------------------------------------------------------------------------------


def test_top(owner):
    text = good(owner.path, "top", "--interval", 0.01, "--count", 3).decode()
    blocks = text.split("\n\n\n")
    assert text.count(" members\n") == 3 and "\033" not in text
    for name in ("inserts", "failures", "copy", "zerocopy"):
        assert len(re.findall(rf"^{name} +0\.0 +\d+", text, re.M)) == 3, blocks


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
        "size", "used", "units", "members", "pinned", "uring", "kernel",
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
    # Nothing more happens, so nothing has a rate any more.
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
    # As it was found, or the shell's next line would not be seen.
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


# --- routes --------------------------------------------------------------------------------------


def routes(path):
    return {one["address"]: one for one in json.loads(good(path, "routes", "--json"))}


def test_routes_can_be_set(owner):
    assert routes(owner.path) == {} and good(owner.path, "routes").count(b"\n") == 1
    assert good(owner.path, "routes", "set", "192.0.2.1", "copy") == b""
    good(owner.path, "routes", "set", "2001:db8::1", "splice")
    found = routes(owner.path)
    assert set(found) == {"192.0.2.1", "2001:db8::1"}
    assert set(found["192.0.2.1"]) == header_fields("NC_route") - {"octets"}
    assert (found["192.0.2.1"]["method"], found["192.0.2.1"]["family"]) == ("copy", "inet")
    assert (found["2001:db8::1"]["method"], found["2001:db8::1"]["family"]) == ("splice", "inet6")
    good(owner.path, "routes", "set", "*", "learn")
    assert {one["method"] for one in routes(owner.path).values()} <= {"learn"}
    assert "not an address" in bad(owner.path, "routes", "set", "example.org", "copy")
    assert "cannot send by kernel" in bad(owner.path, "routes", "set", "192.0.2.1", "kernel")


def test_no_room_for_routes(owner):
    """As many as are fixed are kept; one may learn again for another's sake."""
    count = 0
    while not (done := ctl(owner.path, "routes", "set", f"192.0.2.{count}", "copy")).returncode:
        count += 1
    assert b"no room for more fixed routes" in done.stderr and count == 64
    assert len(routes(owner.path)) == count
    good(owner.path, "routes", "set", "192.0.2.7", "learn")
    good(owner.path, "routes", "set", "198.51.100.1", "copy")
    assert "198.51.100.1" in routes(owner.path) and len(routes(owner.path)) == count


def route_with(path, total):
    """The route of the loopback, once what was sent is counted."""
    deadline = time.monotonic() + TIMEOUT
    while sum((route := routes(path)["127.0.0.1"])["bytes"].values()) < total:
        assert time.monotonic() < deadline, route
    return route


def test_socket_of_a_server_that_was_killed(kind, folder):
    """The next one takes its place; of one that lives nobody does."""
    write(folder / "root/page", b"page\n")
    path = folder / "socket"
    options = ["--cache-socket", path]
    Server(kind, folder / "root", *options).kill()
    assert path.is_socket()
    with running(kind, folder / "root", *options):
        assert b"units" in good(path, "stat")
        said = once("--listen", "127.0.0.1:0", "--root", folder / "root", *options)
        assert said.returncode == 1 and "Address already in use" in said.stderr
        assert b"units" in good(path, "stat")
    assert not path.exists()
    write(path, b"somebody's file")
    said = once("--listen", "127.0.0.1:0", "--root", folder / "root", *options)
    assert said.returncode == 1 and path.read_bytes() == b"somebody's file"


def test_routes_of_the_server(kind, folder):
    body = pattern(MB)
    write(folder / "root/page", body)
    path = folder / "socket"
    with running(kind, folder / "root", "--cache-socket", path) as server:
        assert fetch(server.port, "/page").body == body
        # Of what leaves in small pieces a route counts a sample.
        before = route_with(path, MB // 2)
        assert before["method"] == "learn" and before["local"] == 1 and before["why"]
        # Whatever was learnt, from now on it is copied.
        good(path, "routes", "set", "127.0.0.1", "copy")
        assert fetch(server.port, "/page").body == body
        after = route_with(path, sum(before["bytes"].values()) + MB // 2)
        assert after["method"] == after["lasting"] == "copy"
        assert after["bytes"]["copy"] - before["bytes"]["copy"] >= MB // 2
        assert after["bytes"]["splice"] == before["bytes"]["splice"]
        line = good(path, "routes").decode().splitlines()[1].split()
        assert line[:3] == ["127.0.0.1", "yes", "copy"]


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
        for words in (["get"], ["destroy"], ["grant", "--user", 0], ["stat"]):
            done = ctl(owner.path, *words, unit)
            assert done.returncode == 1
            assert f"unit {unit}" in done.stderr.decode(), done.stderr
    good(owner.path, "destroy", owner.ids[0])
    assert "destroyed or evicted" in bad(owner.path, "get", owner.ids[0])


def test_reader_that_ends_early(owner):
    done = shell(owner.path, f"nabcctl get {owner.ids[2]} | head -c 1")
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")
    # In a script under a server that ignores the signal.
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
    # Each of them was made by a process that has ended.
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
    assert "larger than the largest unit" in bad(owner.path, "put", large)
    assert "larger than the largest unit" in bad(owner.path, "put", "-", input=bytes(4 * MB + 1))
    # One that never ends is given up as soon as it is too large.
    assert "larger than the largest unit" in bad(owner.path, "put", "/dev/zero")
    assert good(owner.path, "list") == before


def test_id_that_nobody_hears(owner):
    with open("/dev/full", "wb") as full:
        assert "No space left" in bad(owner.path, "put", "-", input=b"x", stdout=full)
    assert sealed(owner.path) == []


# --- keep ---------------------------------------------------------------------------------------------


def counter(path, name):
    return json.loads(good(path, "stat", "--json"))[name]


def gone(path, unit):
    """Waits until a unit has ended by itself."""
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
    # What cannot be kept as it was said is not there at all.
    assert "more than a year" in bad(owner.path, "put", "-", "--ttl", "1e9", input=b"x")
    assert sealed(owner.path) == []


@only_root
def test_strangers_keep(open_owner):
    path, unit = open_owner.path, open_owner.ids[1]
    good(path, "grant", unit, "--user", NOBODY)
    # Leave to use is no leave to keep or to end it.
    assert "permission denied" in bad(path, "keep", unit, "--ttl", 1, prefix=as_nobody)
    own = int(good(path, "put", "-", "--ttl", "0.05", "--priority", "low", prefix=as_nobody,
                   input=b"mine"))
    assert gone(path, own)
    for priority in ("high", "pinned"):
        said = bad(path, "put", "-", "--priority", priority, prefix=as_nobody, input=b"x")
        assert "for the owner of the cache and root to give" in said
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


# --- in scripts ------------------------------------------------------------------------------------------


def test_pipeline(owner, folder):
    write(folder / "data", pattern(MB))
    done = shell(owner.path, "nabcctl put - <data | xargs nabcctl get | cmp - data", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = shell(owner.path, "cat data | nabcctl put - | xargs nabcctl get | cmp - data",
                 cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = shell(owner.path, "nabcctl list | awk 'NR > 1 { print $1 }' | xargs nabcctl destroy")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert ids(owner.path) == []


def test_many_at_once(owner):
    """Each process is a member of its own."""
    script = "for i in $(seq 8); do echo text $i | nabcctl put - & done; wait"
    done = shell(owner.path, script)
    assert done.stderr == b""
    texts = {good(owner.path, "get", unit) for unit in done.stdout.decode().split()}
    assert texts == {b"text %d\n" % i for i in range(1, 9)}


def test_cgi_script(owner):
    """A head that names the body, as a server with that cache would send it."""
    script = SOURCE / "cgi-examples" / "hello.sh"
    done = subprocess.run(
        [script], env=environment(owner.path, REMOTE_ADDR="192.0.2.7", PATH_INFO="/a b"),
        capture_output=True, timeout=TIMEOUT,
    )
    assert done.returncode == 0 and done.stderr == b""
    head, empty, body = done.stdout.partition(b"\r\n\r\n")
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n"))
    assert (empty, body) == (b"\r\n\r\n", b"")
    assert fields[b"Content-Type"].startswith(b"text/plain")
    page = good(owner.path, "get", fields[b"X-NABC-Cache-Id"].decode())
    assert page.startswith(b"Hello 192.0.2.7, ") and b'"/a b"' in page


def test_cgi_script_without_a_cache(folder):
    done = subprocess.run(
        [SOURCE / "cgi-examples" / "hello.sh"], env=environment(folder / "none"),
        capture_output=True, timeout=TIMEOUT,
    )
    assert (done.returncode, done.stdout) == (0, b"Status: 503 Service Unavailable\r\n\r\n")
    assert b"no such socket" in done.stderr


# --- other users ---------------------------------------------------------------------------------------------


@only_root
def test_closed_to_others(owner):
    assert "permission denied" in bad(owner.path, "list", prefix=as_nobody)
    assert "permission denied" in bad(owner.path, "put", "-", prefix=as_nobody, input=b"x")
    # Whatever the socket's permissions have become: who may join was said when it was served.
    os.chmod(owner.path, 0o777)
    assert "permission denied" in bad(owner.path, "list", prefix=as_nobody)


@only_root
def test_stranger(open_owner):
    path = open_owner.path
    for command in ("stat", "top", "routes"):
        assert "for the owner of the cache and for root" in bad(path, command, prefix=as_nobody)
    assert ids(path, prefix=as_nobody) == []
    for unit in open_owner.ids:
        for words in (["get"], ["destroy"], ["stat"], ["grant", "--user", NOBODY],
                      ["revoke", "--user", 0]):
            done = ctl(path, *words, unit, prefix=as_nobody)
            assert done.returncode == 1 and b"permission denied" in done.stderr, done.stderr
    assert ids(path) == sorted(open_owner.ids)


@only_root
def test_grant_to_a_user(open_owner):
    path, unit = open_owner.path, open_owner.ids[1]
    good(path, "grant", unit, "--user", NOBODY)
    assert ids(path, prefix=as_nobody) == [unit]
    assert good(path, "get", unit, prefix=as_nobody) == open_owner.data(1)
    found = json.loads(good(path, "stat", "--json", unit, prefix=as_nobody))[0]
    assert found["size"] == LENGTHS[1]
    assert "permission denied" in bad(path, "destroy", unit, prefix=as_nobody)
    good(path, "revoke", unit, "--user", NOBODY)
    assert "permission denied" in bad(path, "get", unit, prefix=as_nobody)
    assert ids(path, prefix=as_nobody) == []
    assert "no such grant" in bad(path, "revoke", unit, "--user", NOBODY)


@only_root
def test_grant_to_a_group(open_owner):
    path, unit = open_owner.path, open_owner.ids[3]
    member = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--groups=4242"]
    good(path, "grant", unit, "--group", 4242)
    assert good(path, "get", unit, prefix=member) == open_owner.data(3)
    assert "permission denied" in bad(path, "get", unit, prefix=as_nobody)


@only_root
def test_grant_to_a_process(open_owner, folder):
    path, unit = open_owner.path, open_owner.ids[2]
    waiting = subprocess.Popen(
        [*as_nobody, "/bin/sh", "-c", f"read go && exec {folder}/nabcctl get {unit}"],
        env=environment(path), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    good(path, "grant", unit, "--pid", waiting.pid)
    # Not to others of the same user.
    assert "permission denied" in bad(path, "get", unit, prefix=as_nobody)
    assert waiting.communicate(b"go\n", timeout=TIMEOUT)[0] == open_owner.data(2)
    assert waiting.returncode == 0
    assert "it has ended" in bad(path, "grant", unit, "--pid", waiting.pid)


@only_root
def test_put_by_a_stranger(open_owner):
    path = open_owner.path
    unit = int(good(path, "put", "-", prefix=as_nobody, input=b"mine"))
    # Its maker has ended, and nobody else was given leave.
    assert "permission denied" in bad(path, "get", unit, prefix=as_nobody)
    assert good(path, "get", unit) == b"mine"
    unit = int(good(path, "put", "-", "--user", NOBODY, prefix=as_nobody, input=b"ours"))
    assert good(path, "get", unit, prefix=as_nobody) == b"ours"
    assert ids(path, prefix=as_nobody) == [unit]


def test_put_that_cannot_be_granted(owner):
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    assert "it has ended" in bad(owner.path, "put", "-", "--pid", child.pid, input=b"x")
    assert sealed(owner.path) == []


# --- owners that are not there ----------------------------------------------------------------------------------


def test_dead_owner(folder):
    owner = Owner(folder / "cache")
    owner.kill()
    assert os.path.exists(owner.path)
    assert "nobody serves a cache there any more" in bad(owner.path, "list")
    os.unlink(owner.path)
    assert "no such socket" in bad(owner.path, "list")


def test_owner_that_dies_meanwhile(folder):
    owner = Owner(folder / "cache")
    with open(folder / "words", "wb"):
        pass
    done = subprocess.Popen(
        [NABCCTL, "put", "-"], env=environment(owner.path), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    # More than a pipe holds: when all is written, it has attached.
    done.stdin.write(bytes(2 * MB))
    owner.kill()
    out, said = done.communicate(timeout=TIMEOUT)
    assert (done.returncode, out) == (1, b"")
    assert b"the owner of the cache has ended" in said and said.count(b"\n") == 1


def test_wrong_sockets(folder):
    assert "no such socket" in bad(folder / "none", "list")
    assert "is not a socket" in bad(write(folder / "file", b""), "list")
    assert "is not a socket" in bad(folder, "list")
    assert "too long" in bad(f"{folder}/{'x' * 200}", "list")
    with socket.socket(socket.AF_UNIX) as stream:
        stream.bind(str(folder / "stream"))
        stream.listen()
        assert "not the socket of a cache" in bad(folder / "stream", "list")


@pytest.mark.parametrize("says", [b"", b"garbage", bytes(64), None], ids=repr)
def test_stranger_for_an_owner(folder, says):
    """Something else listens: it says other things, or hangs up."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(folder / "other"))
        listener.listen()

        def answer():
            peer = listener.accept()[0]
            if says is not None:
                peer.send(says)
            peer.recv(1000)
            peer.close()

        thread = threading.Thread(target=answer)
        thread.start()
        bad(folder / "other", "list")
        thread.join(TIMEOUT)


class Liar:
    """An owner by the form of its messages, which answers what it likes."""

    MAGIC = 0x4342414E

    def __init__(self, path, answers):
        self.answers = answers
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        peer = self.listener.accept()[0]
        version, flags = struct.unpack("4I", peer.recv(100))[1:3]
        peer.send(struct.pack("=IIi5I3Q2I", self.MAGIC, version, 0, 0, 0, 0, 0, 0, 0, 0, MB,
                              flags, 0))
        while question := peer.recv(20000):
            op, tag = struct.unpack_from("=4xIQ", question)
            size, behind = self.answers[op](question)
            peer.send(struct.pack("=IiQQQQIIII", self.MAGIC, 0, tag, 0, size, 0, 0, 0,
                                  len(behind), 0) + behind)
        peer.close()

    def close(self):
        self.thread.join(TIMEOUT)
        self.listener.close()


LIST, COUNTERS, ROUTES = 7, 9, 10  # questions


def test_list_without_an_end(folder):
    liar = Liar(folder / "liar", {LIST: lambda question: (5, b"")})
    assert "listing: not the socket of a cache" in bad(folder / "liar", "list")
    liar.close()


def test_escapes_of_another_process(folder):
    """What would change the terminal of whoever looks."""

    def counters(question):
        size = struct.unpack_from("=24xQ", question)[0]
        return 0, (b"\033]0;owned\007\xff" * size)[:size]

    def one_route(question):
        return 1, counters(question)[1]

    for words in (["stat"], ["stat", "--json"], ["routes"], ["routes", "--json"]):
        liar = Liar(folder / "liar", {COUNTERS: counters, ROUTES: one_route})
        text = good(folder / "liar", *words)
        assert b"owned" in text and b"\033" not in text and b"\007" not in text
        assert text.decode()
        liar.close()
        os.unlink(folder / "liar")


# --- the server's cache --------------------------------------------------------------------------------------------


def test_of_the_server(kind, folder):
    body = pattern(300000)
    write(folder / "root/page", body)
    path = folder / "socket"
    with running(kind, folder / "root", "--cache-socket", path) as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert fetch(server.port, "/page").body == body
        units = json.loads(good(path, "list", "--json"))
        assert [unit["size"] for unit in units] == [len(body)]
        assert good(path, "get", units[0]["id"]) == body
        counters = json.loads(good(path, "stat", "--json"))
        shown = server.wait_status(lambda status: status["cache"]["members"] == 0)["cache"]
        assert {name: counters[name] for name in ("size", "units", "inserts")} == {
            name: shown[name] for name in ("size", "units", "inserts")
        }
        # A file that is gone from the cache is read again.
        good(path, "destroy", units[0]["id"])
        assert fetch(server.port, "/page").body == body
        assert len(ids(path)) == 1 and ids(path) != [int(units[0]["id"])]
    assert not path.exists()


def test_by_the_file_of_settings(kind, folder):
    (folder / "root").mkdir()
    path = folder / "socket"
    config = write(folder / "sweet.conf", f"[sweet]\ncache-socket={path}\n".encode())
    with running(kind, folder / "root", "--config", config):
        assert ids(path) == []
