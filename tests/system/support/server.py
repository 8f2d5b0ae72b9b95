# SPDX-License-Identifier: MIT
"""Runs the server as a process: starts, watches and ends it.

SWEET_UNDER names a command that runs the server, such as Valgrind; then loads are smaller and
deadlines longer. SWEET_THREADS is the number of threads if a test does not choose it (default:
one per processor).
"""

import collections
import contextlib
import functools
import json
import os
import re
import select
import shlex
import signal
import subprocess
import threading
import time
import unittest
import urllib.request
import weakref

import tls

BUILD = os.environ["builddir"]
SWEET = os.path.join(BUILD, "sweet", "sweet")
GENERATE = os.path.join(BUILD, "cgi-examples", "generate")
DENY = os.path.join(BUILD, "tests", "system", "deny-io-uring")
OBEY = os.path.join(BUILD, "tests", "system", "worker-obey")
STREAM = os.path.join(BUILD, "tests", "system", "worker-stream")
UNDER = shlex.split(os.environ.get("SWEET_UNDER", ""))
VALGRIND = bool(UNDER) and "valgrind" in os.path.basename(UNDER[0])
# Seconds until a wait fails; below 30, after which the server itself closes a client.
TIMEOUT = 120 if UNDER else 20
THREADS = os.environ.get("SWEET_THREADS")
POLL = 0.01  # seconds between two looks at what nothing announces
SOON = 5 if UNDER else 1  # seconds of a limit that must expire, but not for a good request
SCALE = 8 if UNDER else 1  # divisor of loads

# Each kind: the command that runs the server, and its options.
KINDS = {
    "uring": ([], ["--io", "uring"]),
    "epoll": ([], ["--io", "epoll"]),
    "no-uring": ([DENY, "ENOSYS"], []),
}


# For postmortem.py: the servers that were started, and the last data sent and received, as
# (seconds, port, what, data).
started = []
exchanges = collections.deque(maxlen=12)
# Connections of support/client.py, which running() closes before it stops its server.
clients = weakref.WeakSet()


def note(port, what, data):
    exchanges.append((time.monotonic(), port, what, data))


class Lines:
    """The lines of a pipe, collected by a thread as they arrive."""

    def __init__(self, pipe):
        self.lines = []
        self.ended = False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.gather, args=(pipe,), daemon=True)
        self.thread.start()

    def gather(self, pipe):
        with pipe:
            for line in pipe:
                with self.changed:
                    self.lines.append(line.decode(errors="replace").rstrip("\n"))
                    self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def count(self, pattern, least=0):
        """Returns how many lines match the pattern; waits for `least` lines."""
        if least:
            self.wait(pattern, least)
        with self.changed:
            return sum(bool(re.search(pattern, line)) for line in self.lines)

    def wait(self, pattern, count=1):
        """Returns the count-th line that matches the pattern, or None if it does not arrive."""
        deadline = time.monotonic() + TIMEOUT
        with self.changed:
            while True:
                found = [line for line in self.lines if re.search(pattern, line)]
                if len(found) >= count:
                    return found[count - 1]
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    return None
                self.changed.wait(left)

    def text(self):
        with self.changed:
            return "\n".join(self.lines)


class Process:
    """Another process by pidfd, so that its pid cannot become another process's."""

    def __init__(self, pid):
        self.pid = pid
        self.fd = os.pidfd_open(pid)

    def close(self):
        os.close(self.fd)

    def ended(self, timeout=TIMEOUT):
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(timeout * 1000))

    def signal(self, number):
        signal.pidfd_send_signal(self.fd, number)

    def kill(self):
        self.signal(signal.SIGKILL)


def name_of(pid):
    """Returns the name of a process, or None if there is no such process."""
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().rstrip("\n")
    except OSError:
        return None


def inside(pid, name):
    """Returns the path of a /proc file of a server; only root can read it, because the server is
    not dumpable."""
    path = f"/proc/{pid}/{name}"
    try:
        os.close(os.open(path, os.O_RDONLY))
    except PermissionError:
        if os.geteuid() == 0:
            raise
        raise unittest.SkipTest("only root can look into a server") from None
    return path


def resident(pid):
    """Returns the bytes of memory that a process has."""
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) * 1024


def descriptors(pid):
    return len(os.listdir(inside(pid, "fd")))


def children_of(pid):
    """Returns the pids of the children of pid."""
    children = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        # Not by open(), which takes several times longer.
        with contextlib.suppress(OSError):
            stat = os.open(f"/proc/{name}/stat", os.O_RDONLY)
            try:
                text = os.read(stat, 512)
            finally:
                os.close(stat)
            if int(text.rpartition(b")")[2].split(None, 2)[1]) == pid:
                children.append(int(name))
    return children


@functools.cache
def opener():
    # Ignore a proxy in the environment: this is the loopback.
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=tls.usual()),
    )


def command(kind, options, prefix=(), listen="127.0.0.1:0", clock=None):
    before, more = KINDS[kind]
    where = ["--listen", listen] if listen else []
    if tls.OVER and where:
        where = ["--listen", f"{listen},tls", *tls.options(),
                 "--http2", "on" if tls.OVER == "h2" else "off"]
    if THREADS and not {"--threads", "--config"} & set(options):
        where += ["--threads", THREADS]
    if tls.RECORDS != "own" and "--tls-records" not in options and "--certificate" in [*where, *options]:
        where += ["--tls-records", tls.RECORDS]
    moved = clock.command() if clock else []
    return [*prefix, *before, *UNDER, *moved, SWEET, *where, *more, *options]


class Server:
    """A running server when the constructor returns; stop() asserts that it ended well.

    listen and root may be None if a configuration or a supervisor sets them; clock is the one
    that forward() moves; how is passed to Popen.
    """

    def __init__(self, kind, root, *options, prefix=(), listen="127.0.0.1:0", clock=None, **how):
        self.last_status = None
        self.known = {}
        self.clock = clock
        self.asked = 0  # number of status requests, which count as responses too
        where = ["--root", str(root)] if root else []
        self.process = subprocess.Popen(
            command(kind, [*where, *map(str, options)], prefix, listen, clock),
            **how,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.pid = self.process.pid
        self.errors = Lines(self.process.stderr)
        self.output = Lines(self.process.stdout)
        self.port = None
        started.append(self)
        self.ready = self.errors.wait("sweet: listening on ")
        if not self.ready:
            self.kill()
            raise AssertionError(f"the server has not started: {self.errors.text()}")
        port = re.search(r"(https?)://[^/]*:(\d+)/", self.ready)
        self.port = int(port[2]) if port else None
        if port:
            (tls.ports.add if tls.OVER and port[1] == "https" else tls.ports.discard)(self.port)
        self.url = f"{port[1] if port else 'http'}://127.0.0.1:{self.port}"

    def read(self, path, timeout):
        with opener().open(self.url + path, timeout=timeout) as answer:
            return answer.read()

    def body(self, path):
        """Returns the body of a 200."""
        note(self.port, "sent", f"GET {path}".encode())
        return self.read(path, TIMEOUT)

    def status(self):
        self.asked += 1
        self.last_status = json.loads(self.body("/.sweet/status"))
        return self.last_status

    def cache_used(self):
        """Returns the bytes of the cache's blocks, with the one for texts of more than 4 KB.

        The status may be such a text, or become one while a test runs."""
        self.asked += 1
        assert len(self.body("/.sweet/status.html")) > 4096
        return self.status()["cache"]["used"]

    def memory(self):
        """Returns the bytes of the server's memory and of its cache."""
        used = self.cache_used()
        # The cache counts mapped units.
        with open(f"/proc/{self.pid}/status") as status:
            return used + int(re.search(r"RssAnon:\s*(\d+) kB", status.read())[1]) * 1024

    def try_status(self):
        """For a test that failed: returns the status if the server still answers."""
        if self.port and self.process.poll() is None:
            # Not body(), because that would be reported as the test's last request.
            with contextlib.suppress(OSError, ValueError):
                self.last_status = json.loads(self.read("/.sweet/status", 2))

    def wait_status(self, good):
        """Returns the status as soon as good() is true for it; counters may lag a little."""
        deadline = time.monotonic() + TIMEOUT
        while not good(status := self.status()):
            assert time.monotonic() < deadline, status
            time.sleep(POLL)  # leaves the processor to what is awaited
        return status

    def forward(self, seconds):
        """Moves the server's clock forward; its thread, if it has only one, notices at once."""
        # What arrived so far is handled at its time, and an event makes the timers run.
        self.status()
        self.clock.forward(seconds)
        self.status()

    def bodies(self, path, count):
        """Returns that many different ones, with as many requests as needed."""
        found, deadline = set(), time.monotonic() + TIMEOUT
        while len(found) < count and time.monotonic() < deadline:
            found.add(self.body(path))
        return found

    def workers(self):
        """Returns the current children; each is remembered until the end."""
        present = {}
        for pid in children_of(self.pid):
            if pid not in self.known or self.known[pid].ended(0):
                try:
                    self.known[pid] = Process(pid)
                except ProcessLookupError:
                    continue
            if name_of(pid) != "sweet: guard":
                present[pid] = self.known[pid]
        return present

    def kill(self):
        """Kills it without a request to end: for tests of that, and if all else failed."""
        self.forget_port()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT)

    def forget_port(self):
        """Its port may become that of another program, without TLS."""
        tls.ports.discard(self.port)

    def send_signal(self, number):
        self.process.send_signal(number)

    def finished(self):
        """Waits for the end; asserts that it was good and that no worker is left."""
        self.forget_port()
        try:
            status = self.process.wait(TIMEOUT)
            for process in self.known.values():
                assert process.ended(), f"worker {process.pid} outlives its server"
            self.errors.thread.join(TIMEOUT)
            self.output.thread.join(TIMEOUT)
        finally:
            self.kill()
            for process in self.known.values():
                process.close()
            self.known = {}
        assert status == 0, f"exit status {status}: {self.errors.text()}"
        assert self.errors.ended, "somebody holds the standard error of a server that has ended"
        # LeakSanitizer cannot read registers of the kernel's threads of io_uring in this
        # process.
        bad = r"Sanitizer|runtime error:|(^|: )==\d+==(?!Unable to get registers from thread)"
        assert self.errors.count(bad) == 0, self.errors.text()

    def stop(self, number=signal.SIGINT):
        if self.process.poll() is None:
            self.workers()
            self.send_signal(number)
        self.finished()


@contextlib.contextmanager
def running(kind, root, *options, **how):
    server = Server(kind, root, *options, **how)
    try:
        yield server
    except BaseException:
        server.try_status()
        server.kill()
        raise
    # It would wait until they have read their responses.
    for client in list(clients):
        if client.port == server.port:
            client.close()
    server.stop()


def once(*arguments, kind="epoll", prefix=(), **how):
    """Runs the server with arguments that make it exit by itself."""
    done = subprocess.run(
        [*prefix, *KINDS[kind][0], *UNDER, SWEET, *map(str, arguments)],
        **how,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT,
    )
    if VALGRIND:
        # Valgrind reports system calls that are newer than it, even with --quiet.
        done.stderr = re.sub(r"^--\d+-- .*\n", "", done.stderr, flags=re.M)
    return done


def check_config(path):
    """Returns the exit status and the messages of a check of that file."""
    done = once("--check-config", "--config", path)
    return done.returncode, done.stderr


def refuses(folder, text, message):
    """A configuration with that text is wrong, and a check says why."""
    path = folder / "refused.conf"
    path.write_text(text)
    status, said = check_config(path)
    assert status == 1 and message in said, said


def sanitized(*by):
    """Returns True if the server is built with a sanitizer (or one of these), which needs memory
    too."""
    with open(SWEET, "rb") as program:
        text = program.read()
    return any(f"lib{name}.so".encode() in text for name in by or ("asan", "tsan"))
