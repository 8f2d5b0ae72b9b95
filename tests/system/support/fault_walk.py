# SPDX-License-Identifier: MIT
"""Faults of a whole server: one system call fails while the server does everything that it can
do; then everything must work as before."""

import contextlib
import errno
import http.client
import os
import signal
import subprocess
import time
import unittest

from fault_plan import SHORT, Plan, name_of
from client import http_connection
from files import KB, MB, pattern, write
from responder import Application
from server import GENERATE, OBEY, TIMEOUT, Server, command, descriptors

# Permitted statuses while something fails, beside the correct response: 403 is EACCES.
REFUSED = (403, 500, 502, 503, 504)
# What no client may notice.
HARMLESS = (errno.EINTR, SHORT)
BROKEN = (ConnectionError, http.client.IncompleteRead, http.client.BadStatusLine)
BODY = pattern(100 * KB, "body")
CGI = """#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\n'
cat
printf done
"""


class Wrong(AssertionError):
    """The server did not survive a fault."""


def answer_of(port, method, target, body=None, chunked=False):
    """Returns (status, body) of a request on a connection of its own."""
    connection = http_connection(port)
    try:
        connection.request(method, target, iter([body]) if chunked else body,
                           encode_chunked=chunked,
                           headers={"Transfer-Encoding": "chunked"} if chunked else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except BrokenPipeError:
        # The server responded before it had read everything, and closed.
        with contextlib.suppress(*BROKEN, OSError):
            answer = connection.getresponse()
            return answer.status, answer.read()
        raise
    finally:
        connection.close()


class Site:
    """What a server under faults serves: files, and all kinds of programs."""

    def __init__(self, folder):
        self.root = folder / "root"
        write(self.root / "small", pattern(5 * KB, "small"))
        write(self.root / "large", pattern(3 * MB, "large"))
        write(self.root / "folder" / "index.html", b"index\n")
        write(self.root / "listed" / "one", b"1")
        program = write(folder / "cgi" / "program", CGI.encode())
        program.chmod(0o755)
        self.log = folder / "access.log"
        self.app = Application(self.handle, folder / "app.sock")
        self.number = 0
        self.generated = None
        self.options = [
            "--root", self.root, "--threads", "2", "--cache-size", "8M", "--max-body", "1M",
            "--worker", f"/generate={GENERATE}", "--worker", f"/obey={OBEY}",
            "--cgi", f"/cgi={folder / 'cgi'}", "--fastcgi", f"/app={self.app.address}",
            "--access-log", self.log, "--listing", "on",
        ]

    @staticmethod
    def handle(request):
        return request.answer(b"app " + request.body()) or True

    def close(self):
        self.app.close()

    def exchanges(self):
        """Returns (name, arguments of answer_of, the body of the correct response); files are
        new each time."""
        self.number += 1
        fresh = f"fresh-{self.number}"
        data = pattern(30 * KB, self.number)
        write(self.root / fresh, data)
        write(self.root / (fresh + "-large"), pattern(300 * KB, fresh))
        yield "fresh", ("GET", "/" + fresh), data
        yield "fresh again", ("GET", "/" + fresh), data
        yield "fresh large", ("GET", f"/{fresh}-large"), pattern(300 * KB, fresh)
        os.unlink(self.root / fresh)
        os.unlink(self.root / (fresh + "-large"))
        yield "small", ("GET", "/small"), pattern(5 * KB, "small")
        yield "larger than a unit", ("GET", "/large"), pattern(3 * MB, "large")
        yield "index", ("GET", "/folder/"), b"index\n"
        yield "listing", ("GET", "/listed/"), None
        yield "worker", ("GET", "/generate?size=20000"), self.generated
        yield "worker's upload", ("POST", "/obey/echo", BODY), BODY
        yield "worker's chunked upload", ("POST", "/obey/echo", BODY, True), BODY
        yield "cgi", ("POST", "/cgi/program", BODY), BODY + b"done"
        yield "fastcgi", ("POST", "/app", BODY), b"app " + BODY
        yield "status", ("GET", "/.sweet/status"), None

    def clean(self, port):
        """Asserts that all responses are correct; a program may need a moment to restart."""
        for name, arguments, wanted in self.exchanges():
            deadline = time.monotonic() + TIMEOUT
            while True:
                try:
                    status, body = answer_of(port, *arguments)
                except (*BROKEN, TimeoutError) as error:
                    raise Wrong(f"{name} afterwards: {error!r}") from error
                if status == 200 and (wanted is None or body == wanted):
                    break
                if status != 503 or time.monotonic() > deadline:
                    raise Wrong(f"{name} afterwards: {status}, {len(body)} bytes")

    def faulty(self, port):
        """Asserts correct responses, error responses or closed connections; returns (answered,
        refused, broken)."""
        outcome = [0, 0, 0]
        for name, arguments, wanted in self.exchanges():
            try:
                status, body = answer_of(port, *arguments)
            except BROKEN:
                outcome[2] += 1
                continue
            except TimeoutError as error:
                raise Wrong(f"{name}: no answer") from error
            if status in REFUSED:
                outcome[1] += 1
                continue
            # A program whose input ends early can compare it with CONTENT_LENGTH.
            if name == "cgi" and wanted.startswith(body[:-4]) and body[-4:] == wanted[-4:]:
                wanted = body
            if status != 200 or (wanted is not None and body != wanted):
                raise Wrong(f"{name}: {status}, {len(body)} bytes")
            outcome[0] += 1
        return outcome


class Walk:
    """A server with faults; say() receives a line about each step."""

    def __init__(self, folder, kind="uring", options=()):
        self.site = Site(folder)
        self.plan = Plan(folder / "plan")
        self.kind = kind
        self.options = [*self.site.options, *options]
        self.counts = dict.fromkeys(
            ("faults", "clock jumps", "starts", "answered", "refused", "broken"), 0)
        self.server = None

    def close(self):
        if self.server:
            self.server.kill()
        self.site.close()
        self.plan.close()

    def start(self):
        self.plan.reset()
        self.server = Server(self.kind, None, *self.options, env=self.plan.environment())
        self.plan.learn()
        self.site.generated = answer_of(self.server.port, "GET", "/generate?size=20000")[1]
        self.site.clean(self.server.port)

    def stop(self):
        self.plan.disarm()
        self.server.stop()
        self.server = None

    def calls_of_a_round(self):
        """Returns how often each kind of call is made, without those that are never made."""
        before = self.plan.all_calls()
        self.site.clean(self.server.port)
        after = self.plan.all_calls()
        return {kind: after[kind] - before[kind] for kind in after if after[kind] > before[kind]}

    def descriptors(self):
        """Returns 0 if only root can read it."""
        with contextlib.suppress(unittest.SkipTest):
            return descriptors(self.server.pid)
        return 0

    def fail(self, kind, ahead, error, times=1):
        """Makes a call of that kind fail, the one that is `ahead` calls ahead, during a round."""
        what = f"{kind} +{ahead} {name_of(error)} x{times}"
        fired = self.plan["fired"]
        self.plan.arm(kind, self.plan.calls(kind) + ahead, error, times)
        try:
            outcome = self.site.faulty(self.server.port)
            if error in HARMLESS and outcome[1:] != [0, 0]:
                raise Wrong(f"{outcome[1]} refused, {outcome[2]} broken for nothing")
            self.plan.disarm()
            self.site.clean(self.server.port)
        except (Wrong, OSError) as wrong:
            self.plan.disarm()
            died = self.server.process.poll()
            said = "\n".join(self.server.errors.text().split("\n")[-6:])
            raise Wrong(f"{what}: {wrong!r}; the server "
                        f"{'lives' if died is None else f'died: {died}'}; "
                        f"the fault: {self.plan.where()}\n{said}") from wrong
        self.counts["faults"] += self.plan["fired"] - fired
        for name, number in zip(("answered", "refused", "broken"), outcome):
            self.counts[name] += number

    def jump(self, clock, nanoseconds):
        """Moves that clock of the server forward or back."""
        self.plan[clock] += nanoseconds
        self.site.clean(self.server.port)
        self.counts["clock jumps"] += 1

    def start_with(self, kind, number, error, times=1):
        """Starts the server while a call fails: it must serve, or exit with a message; returns
        its output."""
        what = f"start: {kind} {number} {name_of(error)}"
        self.plan.reset()
        self.plan.arm(kind, number, error, times)
        process = subprocess.Popen(command(self.kind, list(map(str, self.options))),
                                   env=self.plan.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = []
        lame = None
        try:
            for line in process.stderr:
                said.append(line)
                if "sweet: listening on" in line:
                    self.plan.disarm()
                    port = int(line.split("//")[1].split("/")[0].rpartition(":")[2])
                    try:
                        self.site.clean(port)
                    except Wrong as wrong:
                        lame = wrong
                    process.send_signal(signal.SIGINT)
            status = process.wait(TIMEOUT)
            if lame:
                raise lame
            if status < 0 or status > 2 or (status and not said):
                raise Wrong(f"exit status {status}")
            if status == 0 and not said:
                raise Wrong("ended well without a word")
        except (Wrong, subprocess.TimeoutExpired, OSError) as wrong:
            raise Wrong(f"{what}: {wrong!r}; {self.plan.where()}\n{''.join(said)}") from wrong
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
        self.counts["starts"] += 1
        self.counts["faults"] += self.plan["fired"]
        return "".join(said)
