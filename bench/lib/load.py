# SPDX-License-Identifier: MIT
"""The client's side: checking what a server delivers, and one run of wrk."""

import http.client
import os
import re
import subprocess

from . import process
from .process import Failure

GRACE_SECONDS = 20
CHECK_SECONDS = 10


def check(name, port, pages):
    """Fails unless every (path, bytes) arrives as expected over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=CHECK_SECONDS)
    try:
        for path, expected in pages:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise Failure(f"{name}: GET {path}: status {response.status}")
            if body != expected:
                raise Failure(f"{name}: GET {path}: {len(body)} bytes that are not the"
                              f" {len(expected)} expected ones; {difference(body, expected)}")
            if response.will_close:
                raise Failure(f"{name}: GET {path}: the connection is not kept")
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{name}: check of {path} failed: {error!r}") from error
    finally:
        connection.close()


def difference(body, expected):
    for i, (got, wanted) in enumerate(zip(body, expected)):
        if got != wanted:
            return f"first difference at byte {i}"
    return "one is the beginning of the other"


class Wrk:
    """Runs wrk on one CPU."""

    def __init__(self, program, script, cpu, connections, headers=()):
        self.headers = [part for header in headers for part in ("-H", header)]
        self.program = program
        self.script = script
        self.cpu = cpu
        self.connections = connections

    def run(self, name, url, around, size, seconds):
        """One run; around is (count, path format) or ().  Returns wrk's figures."""
        argv = [self.program, "-t1", f"-c{self.connections}", f"-d{seconds}s", "--latency",
                *self.headers, "-s", self.script, url, *map(str, around)]
        wrk = process.start(argv, self.cpu, subprocess.PIPE)
        try:
            output = wrk.communicate(timeout=seconds + GRACE_SECONDS)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            raise Failure(f"{name}: wrk did not end in time") from None
        finally:
            if wrk.poll() is None:
                wrk.kill()
                wrk.wait()
            wrk.stdout.close()
        return self.figures(name, output, wrk.returncode, size)

    @staticmethod
    def figures(name, output, status, size):
        line = re.search(r"^bench (.*)$", output, re.M)
        if status or not line:
            raise Failure(f"{name}: wrk ended with status {status}:\n{output}")
        figures = {k: int(v) for k, v in (pair.split("=") for pair in line[1].split())}
        errors = [f"{figures[k]} {k}" for k in ("connect", "read", "write", "status", "timeout")
                  if figures[k]]
        if errors:
            raise Failure(f"{name}: wrk met errors ({', '.join(errors)}):\n{output}")
        if not figures["requests"]:
            raise Failure(f"{name}: no request was answered:\n{output}")
        # wrk takes a 3xx or a short body for success; the byte count does not.
        if figures["bytes"] < figures["requests"] * size:
            raise Failure(f"{name}: {figures['requests']} bodies of {size} bytes do not fit"
                          f" into the {figures['bytes']} bytes received:\n{output}")
        return figures


def script_path():
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "urls.lua")
