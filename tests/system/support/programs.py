# SPDX-License-Identifier: MIT
"""Third-party clients as processes: their output, and that they end well."""

import socket
import subprocess
import time

import pytest

from ports import free_port
from server import TIMEOUT, VALGRIND

# For load generators.
not_under_valgrind = pytest.mark.skipif(
    VALGRIND, reason="a load tells nothing of a server under Valgrind"
)


def run(*command, **more):
    """Returns both outputs of a program, which must end well."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=3 * TIMEOUT, check=False, **more)
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {said[-2000:]}"
    return said


def curl(*arguments):
    return run("curl", "--noproxy", "*", "-sS", "--max-time", 2 * TIMEOUT, *arguments)


class Service:
    """A third-party server, which may have started; address: a port of this machine, or the path of
    a Unix socket."""

    def __init__(self, command, address, log, **how):
        self.address, self.log = address, log
        with open(log, "wb") as file:
            self.process = subprocess.Popen([str(part) for part in command],
                                            stdin=subprocess.DEVNULL, stdout=file,
                                            stderr=subprocess.STDOUT, **how)

    def connects(self):
        unix = not isinstance(self.address, int)
        with socket.socket(socket.AF_UNIX if unix else socket.AF_INET) as probe:
            return probe.connect_ex(str(self.address) if unix
                                    else ("127.0.0.1", self.address)) == 0

    def answers(self):
        deadline = time.monotonic() + TIMEOUT
        while self.process.poll() is None and time.monotonic() < deadline:
            if self.connects():
                return True
            time.sleep(0.01)  # it prints nothing to wait for
        return False

    def said(self):
        return self.log.read_text(errors="replace")[-2000:]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(TIMEOUT)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()


class Daemon(Service):
    """A third-party server at a port, until the end of a with statement.

    make(port): its command.
    """

    def __init__(self, make, folder):
        self.port = free_port()
        super().__init__(make(self.port), self.port, folder / f"{self.port}.log")
        if not self.answers():
            self.stop()
            raise AssertionError(f"{self.process.args[0]} has not started: {self.said()}")
