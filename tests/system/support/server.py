# SPDX-License-Identifier: MIT
"""One server that was built, as a process: started, watched and ended.

SWEET_UNDER names a command that the server is run under, such as Valgrind;
then loads are smaller and waits longer.  SWEET_THREADS is how many threads it
has where a test does not say (as many as there are processors).
"""

import collections
import contextlib
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

BUILD = os.environ["builddir"]
SWEET = os.path.join(BUILD, "sweet", "sweet")
GENERATE = os.path.join(BUILD, "cgi-examples", "generate")
DENY = os.path.join(BUILD, "tests", "system", "deny-io-uring")
OBEY = os.path.join(BUILD, "tests", "system", "worker-obey")
STREAM = os.path.join(BUILD, "tests", "system", "worker-stream")
UNDER = shlex.split(os.environ.get("SWEET_UNDER", ""))
VALGRIND = bool(UNDER) and "valgrind" in os.path.basename(UNDER[0])
# Seconds until a wait has failed; below 30, when the server itself gives a client up.
TIMEOUT = 120 if UNDER else 20
THREADS = os.environ.get("SWEET_THREADS")
SOON = 5 if UNDER else 1  # seconds of a limit that is to be met, and by a good request not
SCALE = 8 if UNDER else 1  # what loads are divided by

# Each kind: what the server is run through, and its options.
KINDS = {
    "uring": ([], ["--io", "uring"]),
    "epoll": ([], ["--io", "epoll"]),
    "no-uring": ([DENY, "ENOSYS"], []),
}


# For whoever reads of a test that failed (postmortem.py): the servers that were started, and
# what was sent and came last, as (seconds, port, what, data).
started = []
exchanges = collections.deque(maxlen=12)


def note(port, what, data):
    exchanges.append((time.monotonic(), port, what, data))


class Lines:
    """The lines of a pipe, gathered by a thread as they come."""

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
        """How many lines have the pattern; those that are sure to come are waited for."""
        if least:
            self.wait(pattern, least)
        with self.changed:
            return sum(bool(re.search(pattern, line)) for line in self.lines)

    def wait(self, pattern, count=1):
        """The count-th line that has the pattern, or None when none comes."""
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
    """Another process by pidfd, so that its number cannot become another's."""

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


def inside(pid, name):
    """The path of what only root is told of a server, since it cannot be dumped."""
    path = f"/proc/{pid}/{name}"
    try:
        os.close(os.open(path, os.O_RDONLY))
    except PermissionError:
        if os.geteuid() == 0:
            raise
        raise unittest.SkipTest("only root can look into a server") from None
    return path


def descriptors(pid):
    return len(os.listdir(inside(pid, "fd")))


def children_of(pid):
    """Numbers of the processes that pid has started."""
    children = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as stat:
            if int(stat.read().rpartition(")")[2].split()[1]) == pid:
                children.append(int(name))
    return children


def command(kind, options, prefix=(), listen="127.0.0.1:0", clock=None):
    before, more = KINDS[kind]
    where = ["--listen", listen] if listen else []
    if THREADS and not {"--threads", "--config"} & set(options):
        where += ["--threads", THREADS]
    moved = clock.command() if clock else []
    return [*prefix, *before, *UNDER, *moved, SWEET, *where, *more, *options]


class Server:
    """Started when the constructor returns; stop() asserts a good end.

    listen and root may be None, for a configuration or a supervisor to say;
    clock is the one that forward() moves; how is for Popen.
    """

    def __init__(self, kind, root, *options, prefix=(), listen="127.0.0.1:0", clock=None, **how):
        self.last_status = None
        self.known = {}
        self.clock = clock
        self.asked = 0  # how often for its status, which is an answer as well
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
        port = re.search(r"http://[^/]*:(\d+)/", self.ready)
        self.port = int(port[1]) if port else None
        self.url = f"http://127.0.0.1:{self.port}"

    def read(self, path, timeout):
        # No proxy of the environment: this is the loopback.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + path, timeout=timeout) as answer:
            return answer.read()

    def body(self, path):
        """Of a 200."""
        note(self.port, "sent", f"GET {path}".encode())
        return self.read(path, TIMEOUT)

    def status(self):
        self.asked += 1
        self.last_status = json.loads(self.body("/.sweet/status"))
        return self.last_status

    def try_status(self):
        """For a test that fails: the status if the server still tells it."""
        if self.port and self.process.poll() is None:
            # Not body(): what the test asked last is told as well.
            with contextlib.suppress(OSError, ValueError):
                self.last_status = json.loads(self.read("/.sweet/status", 2))

    def wait_status(self, good):
        """The status as soon as good() is true of it; counters come a moment later."""
        deadline = time.monotonic() + TIMEOUT
        while not good(status := self.status()):
            assert time.monotonic() < deadline, status
        return status

    def forward(self, seconds):
        """Its clock goes on by so much, and its thread, if it has but one, looks at it."""
        # What has come until now is seen at its time; and a timer looks when something comes.
        self.status()
        self.clock.forward(seconds)
        self.status()

    def bodies(self, path, count):
        """So many that differ, by as many requests as that takes."""
        found, deadline = set(), time.monotonic() + TIMEOUT
        while len(found) < count and time.monotonic() < deadline:
            found.add(self.body(path))
        return found

    def workers(self):
        """The present children; each is remembered until the end."""
        present = {}
        for pid in children_of(self.pid):
            if pid not in self.known or self.known[pid].ended(0):
                try:
                    self.known[pid] = Process(pid)
                except ProcessLookupError:
                    continue
            present[pid] = self.known[pid]
        return present

    def kill(self):
        """Without asking; for tests of that, and when all else failed."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT)

    def send_signal(self, number):
        self.process.send_signal(number)

    def finished(self):
        """Waits for the end; asserts that it was good and that no worker is left."""
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
        # Of the kernel's own threads in the process, io_uring's, LeakSanitizer gets no registers.
        bad = r"Sanitizer|runtime error:|^==\d+==(?!Unable to get registers from thread)"
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
    server.stop()


def once(*arguments, kind="epoll", prefix=(), **how):
    """Runs the server with arguments that make it end by itself."""
    done = subprocess.run(
        [*prefix, *KINDS[kind][0], *UNDER, SWEET, *map(str, arguments)],
        **how,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT,
    )
    if VALGRIND:
        # It tells of system calls that are newer than it is, even if it is to be quiet.
        done.stderr = re.sub(r"^--\d+-- .*\n", "", done.stderr, flags=re.M)
    return done


def sanitized(*by):
    """True: the server carries a sanitizer (or one of these), whose memory is not the server's."""
    with open(SWEET, "rb") as program:
        text = program.read()
    return any(f"lib{name}.so".encode() in text for name in by or ("asan", "tsan"))
