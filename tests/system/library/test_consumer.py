# SPDX-License-Identifier: MIT
"""A server of a third party (consumer/), which uses the library as its manual
describes it and is built against an installed tree: every byte of many responses is
right."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from client import fetch
from files import KB, MB, pattern, write
from server import BUILD, DENY, SCALE, TIMEOUT, UNDER, VALGRIND, Lines, children_of

SOURCES = os.path.join(os.path.dirname(__file__), "consumer")
REQUESTS = 100_000 // SCALE
PATIENCE = 600  # seconds for a build or all requests
SIZES = (0, 1, 512, 4 * KB, 10_000, 32 * KB, 100_000, 256 * KB + 1, MB)
# Without io_uring the library uses plain system calls; Valgrind does not support io_uring.
KINDS = {"denied": [DENY, "EPERM"]} if VALGRIND else {"uring": [], "denied": [DENY, "EPERM"]}


def built_with(name):
    """Returns the value of a variable in the Makefile of the build."""
    with open(os.path.join(BUILD, "Makefile")) as makefile:
        return re.search(rf"^{name} = ?(.*)$", makefile.read(), re.MULTILINE)[1]


def make(*arguments, **environment):
    """Not a part of the make that runs the tests, so without its options."""
    options = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "GNUMAKEFLAGS")
    own = {name: value for name, value in os.environ.items() if name not in options}
    done = subprocess.run(
        ["make", *map(str, arguments)],
        env={**own, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")


@pytest.fixture(scope="session")
def consumer(tmp_path_factory):
    """The folder with the programs, and the environment to run them in."""
    top = tmp_path_factory.mktemp("consumer")
    root = pathlib.Path(os.environ.get("NABC_INSTALLED") or top / "installed")
    if "NABC_INSTALLED" not in os.environ:
        make("-C", BUILD, "install", f"DESTDIR={root}")
    (described,) = root.rglob("nabc.pc")
    library = described.parent.parent
    # Not in the source tree: the folder of a release may be read-only.
    programs = top / "programs"
    programs.mkdir()
    for name in os.listdir(SOURCES):
        shutil.copyfile(os.path.join(SOURCES, name), programs / name)
    make(
        "-C",
        programs,
        f"CC={built_with('CC')}",
        f"CFLAGS=-O2 -g -Werror {built_with('SANITIZE')}",
        "PKG_CONFIG=pkg-config" + ("" if any(library.glob("*.so")) else " --static"),
        PKG_CONFIG_PATH=str(described.parent),
        PKG_CONFIG_SYSROOT_DIR=str(root),
        # If the prefix is /usr: below DESTDIR it is not that of the system.
        PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1",
        PKG_CONFIG_ALLOW_SYSTEM_LIBS="1",
    )
    return programs, {**os.environ, "LD_LIBRARY_PATH": str(library)}


class Running:
    """The server with its files; it must exit with success."""

    def __init__(self, kind, consumer, folder):
        self.programs, self.environment = consumer
        self.files, self.socket = folder / "files", folder / "socket"
        for size in SIZES:
            write(self.files / f"of-{size}", pattern(size, size))
        command = [*KINDS[kind], *UNDER, self.programs / "server", "0", self.files, self.socket]
        self.process = subprocess.Popen(
            [*command, self.programs / "worker"],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.output, self.errors = Lines(self.process.stdout), Lines(self.process.stderr)
        port = self.output.wait("^port ")
        assert port, self.errors.text()
        self.port = int(port.split()[1])

    def ask(self, program, *arguments, timeout=TIMEOUT):
        """Runs one of the other programs."""
        return subprocess.run(
            [self.programs / program, *map(str, arguments)],
            env={**self.environment, "NABC_CACHE": str(self.socket)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
        )

    def statistics(self, seen=0):
        """Returns what it prints; seen: how often it has printed before."""
        self.process.send_signal(signal.SIGUSR1)
        words = self.output.wait("^units ", seen + 1).split(maxsplit=17)
        return dict(zip(words[:-1:2], words[1::2]))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(TIMEOUT) == 0, self.errors.text()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def server(kind, consumer, tmp_path):
    running = Running(kind, consumer, tmp_path)
    try:
        yield running
        running.stop()
    finally:
        running.process.kill()
        running.process.wait()


@pytest.mark.thorough
def test_every_byte(server, kind):
    done = server.ask("client", server.port, server.files, REQUESTS, timeout=PATIENCE)
    assert done.returncode == 0, (done.stderr.decode(), server.errors.text())
    assert done.stdout.decode() == f"{REQUESTS} answers, all as they must be\n"
    told = server.statistics()
    files = len(SIZES) - 1  # the empty one is no unit
    assert told["failures"] == "0"
    assert int(told["units"]) == files
    assert int(told["inserts"]) - int(told["destroys"]) == files
    assert int(told["inserts"]) > REQUESTS // 20
    assert int(told["copy"]) > 0 and int(told["splice"]) > 0
    assert kind == "uring" or told["uring"] != "used"


def test_worker_that_ends(server):
    """Its client gets an error, the next request a new worker."""
    page = b"1 of 2: 1\n2 of 2: 4\n"
    assert fetch(server.port, "/squares/2").body == page
    before = children_of(server.process.pid)
    assert fetch(server.port, "/squares/-1").status == 502
    assert fetch(server.port, "/squares/2").body == page
    after = children_of(server.process.pid)
    assert (len(before), len(after)) == (1, 1) and before != after


@pytest.mark.skipif(VALGRIND, reason="Valgrind knows no pidfd_open, by which grants name processes")
def test_another_process(server):
    """A member gets the bytes that were granted to it, and no others."""
    for size in SIZES[1:]:
        done = server.ask("fetch", server.port, f"of-{size}")
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout == pattern(size, size)
    number = fetch(server.port, f"/grant/{server.process.pid}/of-512").body.decode().strip()
    done = server.ask("fetch", "-", number)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"NC_pread: Permission denied" in done.stderr
