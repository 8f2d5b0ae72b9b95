# SPDX-License-Identifier: MIT
"""Every received body is one complete version of its document.  Clients of all kinds
(client.c), some behind a link that loses, repeats and reorders packets, request
files that change all the time (files.c) and pages of workers that destroy units
they have named, and are killed (pages.c).  The cache is far too small.  In turn
with each kind of event loop, each method of sending and each data path.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import types

import server as servers
from lib import process
from lib.wan import SERVER, Wan

SHARE = 0.3
WAYS = (["--send-method", "auto"], ["--send-method", "copy"], ["--send-method", "splice"],
        ["--data-path", "posix"])
URING_WAYS = (["--send-method", "zerocopy"],)
MODULE_WAYS = (["--send-method", "kernel"],)
CACHES = "2M", "8M", "24M"
# Threads or processes; in mt and mp each has one connection, and in mp a cache and workers.
THREADS = {"amped": (1, 2), "sped": (1, 2), "mt": (64,), "mp": (12,)}
ARCHS = "amped", "amped", "sped", "mt", "mp"
CONNECTIONS = {"mp": 6}  # of each client; of the others:
MANY = 32
# Used from time to time.
SWITCHES = (["--content-cache", "off"], ["--path-cache", "off"], ["--header-cache", "off"],
            ["--page-cache", "drop"], ["--header-align", "64"], ["--header-option", "off"],
            ["--close-option", "off"], ["--linger", "off"])
# What an answer with bytes of two versions of a file that is written in place is (client.c),
# with each value of large-files: for clients on this machine, for those behind the link.
MIXTURES = {"sendfile": ("good", "cut"), "copy": ("wrong", "wrong")}
SLICE = 5, 20  # seconds of one server, at least and at most
WORKERS = 3
CHANGES = 400  # of files in a second
DESTROYS = 100  # of any units
KINDS = 6 * "srwoklpc" + "g"  # of documents: each CGI program is a process
LINK = {"delay": 2, "loss": 2, "rate": 0, "queue": 1000, "duplicate": 2, "reorder": 5, "late": 8}
WAIT = 60  # seconds for a client to end after its time
NAMES = {"responses": "responses", "ranges": "with ranges", "parts": "ranges", "none": "with none",
         "refused": "refused", "cut": "cut", "mixed": "of two versions", "left": "left by the client",
         "connections": "connections"}


def ways(torture):
    """Returns (kind, options) of each server, in any order; prints what this machine does not
    support."""
    found = [("epoll", way) for way in WAYS]
    torture.random.shuffle(found)
    if servers.VALGRIND:
        return found  # it hangs in io_uring
    try:
        with servers.running("uring", torture.scratch):
            found += [("uring", way) for way in WAYS + URING_WAYS]
    except AssertionError as error:
        if "io_uring cannot be used: " not in str(error):
            raise
        torture.say("without io_uring, which cannot be used here")
    if os.access("/dev/nabc", os.R_OK | os.W_OK):
        found += [(kind, way) for kind in ("epoll", "uring") for way in MODULE_WAYS]
    torture.random.shuffle(found)
    return found


def program(torture, name):
    return str(torture.build / "tests" / "torture" / name)


@contextlib.contextmanager
def ended(popen):
    """A process that is stopped by SIGTERM at the end, in any case."""
    try:
        yield popen
    finally:
        if popen.poll() is None:
            popen.terminate()
        try:
            popen.wait(WAIT)
        finally:
            popen.kill()
            popen.wait()
            if popen.stdout:
                popen.stdout.close()


@contextlib.contextmanager
def changing(torture):
    """The files, in the folder "root", which change."""
    root = torture.scratch / "root"
    root.mkdir()
    argv = [program(torture, "files"), root, torture.scratch / "board", CHANGES,
            torture.random.randrange(1 << 32)]
    with ended(subprocess.Popen(list(map(str, argv)), stdout=subprocess.PIPE)) as files:
        if files.stdout.readline() != b"files: ready\n":
            raise torture.Wrong("the files could not be made")
        yield files
        files.terminate()
        said = files.communicate(timeout=WAIT)[0].decode()
        torture.count("changes of files", int(re.search(r"changes=(\d+)", said)[1]))


class Loopback:
    """Replaces a link if the user may not create one."""

    server = client = None

    def end(self):
        return {}

    def close(self):
        pass


def join(torture):
    if os.geteuid() != 0:
        torture.say("no packets are lost: only root can make the link")
        return Loopback()
    context = types.SimpleNamespace(build=str(torture.build), directory=str(torture.scratch),
                                    client_cpu=os.sched_getaffinity(0))
    # To verify that the client detects it.
    more = {"spoil": os.environ["TORTURE_SPOIL"]} if "TORTURE_SPOIL" in os.environ else {}
    return Wan(context, **LINK, **more, seed=torture.random.randrange(1 << 32))


def within(space, *argv):
    return space.argv(*argv) if space else list(argv)


def client(torture, space, address, port, *options):
    argv = within(space, program(torture, "client"), "--board", torture.scratch / "board",
                  "--kinds", KINDS, "--seed", torture.random.randrange(1 << 32), *options,
                  address, port)
    return subprocess.Popen(list(map(str, argv)), stdout=subprocess.PIPE)


def options_of(torture, arch, way):
    """Returns further options of the server."""
    draw = torture.random
    options = [*way, "--arch", arch, "--threads", draw.choice(THREADS[arch]),
               "--cache-size", draw.choice(CACHES), "--worker-memory", "8M",
               "--workers", 1 if arch == "mp" else WORKERS,
               "--worker", f"/pages={program(torture, 'pages')}",
               "--cgi", f"/cgi={torture.scratch / 'cgi'}"]
    if has_units(arch, way):
        options += ["--cache-socket", torture.scratch / "cache"]
    for switch in SWITCHES:
        if draw.random() < 0.1:
            options += switch
    return list(map(str, options))


def has_units(arch, way):
    """One cache, with units that another process can destroy."""
    return arch != "mp" and "posix" not in way


@contextlib.contextmanager
def destroying(torture):
    """Destroys units of the cache."""
    argv = [program(torture, "destroyer"), torture.scratch / "cache", DESTROYS,
            torture.random.randrange(1 << 32)]
    with ended(subprocess.Popen(list(map(str, argv)), stdout=subprocess.PIPE)) as destroyer:
        yield
        destroyer.terminate()
        said = destroyer.communicate(timeout=WAIT)[0].decode()
        if destroyer.returncode:
            raise torture.Wrong("units could not be destroyed")
        torture.count("units destroyed", int(re.search(r"destroyed=(\d+)", said)[1]))


def pages_of(server):
    """Returns the processes of the workers."""
    pids = []
    for pid in process.tree([server.pid]):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as file:
            if file.read() == "pages\n":
                pids.append(pid)
    return pids


def kill_one(torture, server):
    pids = pages_of(server)
    if pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(torture.random.choice(sorted(pids)), signal.SIGKILL)
            torture.count("workers killed")


def judge(torture, popen, way):
    """Adds the counts of a client when it has exited."""
    said = popen.communicate(timeout=WAIT)[0].decode()
    figures = {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", said)}
    for name, figure in NAMES.items():
        torture.count(figure, figures.get(name, 0))
    torture.count("MB", figures.get("bytes", 0) >> 20)
    if popen.returncode:
        torture.count("wrong")
        raise torture.Wrong(f"{' '.join(way)}: {said.strip() or 'a client has failed'}")
    if not figures["responses"] > 4 * figures["refused"]:
        raise torture.Wrong(f"{' '.join(way)}: hardly any answers: {said.strip()}")


def serve(torture, link, seconds, kind, way):
    """Runs one server, its clients and the process that kills its workers, for a while."""
    dying = torture.random.random() < 0.7
    arch = torture.random.choice(ARCHS)
    large = torture.random.choice(sorted(MIXTURES))
    here, there = MIXTURES[large]
    options = [*options_of(torture, arch, way), "--large-files", large]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(torture.serving(
            kind, torture.scratch / "root", *options, listen="0.0.0.0:0",
            prefix=within(link.server)))
        if has_units(arch, way):
            stack.enter_context(destroying(torture))
        asked = ["--connections", CONNECTIONS.get(arch, MANY), "--seconds", seconds,
                 *(["--dying"] if dying else [])]
        clients = [client(torture, link.server, "127.0.0.1", server.port, *asked,
                          "--mixtures", here)]
        if link.client:
            clients.append(client(torture, link.client, SERVER, server.port, *asked,
                                  "--mixtures", there))
        for one in clients:
            stack.enter_context(ended(one))
        # The exit of the first client ends all.
        while True:
            try:
                clients[0].wait(torture.random.uniform(0.2, 1.2))
                break
            except subprocess.TimeoutExpired:
                if dying:
                    kill_one(torture, server)
        for one in clients:
            judge(torture, one, [kind, *options])
        with link.server or contextlib.nullcontext():
            cache = server.status()["cache"]
        torture.count("evictions", cache["evictions"])


def run(torture):
    torture.count("responses", 0)
    torture.count("wrong", 0)
    (torture.scratch / "cgi").mkdir()
    shutil.copy2(program(torture, "pages"), torture.scratch / "cgi")
    todo = ways(torture)
    seconds = min(max(torture.seconds / len(todo) - 1, SLICE[0]), SLICE[1])
    link = join(torture)
    try:
        with changing(torture) as files:
            number = 0
            while not number or torture.left() > seconds / 2:
                serve(torture, link, round(min(seconds, max(torture.left(), SLICE[0])), 1),
                      *todo[number % len(todo)])
                number += 1
                if files.poll() is not None:
                    raise torture.Wrong("nobody changes the files any more")
        torture.count("servers", number)
        if link.server:
            torture.count("segments sent again", link.server.counters()["TcpRetransSegs"])
        for counts in link.end().values():
            for name in ("lost", "duplicated", "late"):
                torture.count(f"packets {name}", counts[name])
    finally:
        link.close()
