# SPDX-License-Identifier: MIT
"""The client's side: checking what a server delivers, and the load generators.

A client loads a server: run(server, seconds) returns what it counted:

  requests    that were answered
  bytes       of the bodies
  duration    in us
  p50, p99    latency in us, or None where the program does not tell

and whatever else it knows.  Any error raises a Failure.
"""

import http.client
import os
import re
import subprocess

from . import process
from .process import Failure
from .servers import find_program

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


def run_program(name, argv, cpu, seconds):
    """(output, status) of a load generator that is to end by itself after some seconds."""
    popen = process.start(argv, cpu, subprocess.PIPE)
    program = os.path.basename(argv[0])
    try:
        output = popen.communicate(timeout=seconds + GRACE_SECONDS)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        raise Failure(f"{name}: {program} did not end in time") from None
    finally:
        if popen.poll() is None:
            popen.kill()
            popen.wait()
        popen.stdout.close()
    return output, popen.returncode


class Wrk:
    """wrk on one CPU, kept connections: bodies of one size.

    path is one page; with a count it is a format that makes as many of a number from 0.
    """

    def __init__(self, cpu, connections, size, path, count=0, headers=()):
        self.headers = [part for header in headers for part in ("-H", header)]
        self.program = find_program("wrk")
        self.cpu, self.connections, self.size = cpu, connections, size
        self.path = "/" if count else path
        self.around = [str(count), path] if count else []

    def run(self, server, seconds):
        url = f"http://{server.address}:{server.port}{self.path}"
        argv = [self.program, "-t1", f"-c{self.connections}", f"-d{seconds}s", "--latency",
                *self.headers, "-s", script_path(), url, *self.around]
        output, status = run_program(server.name, argv, self.cpu, seconds)
        got = self.figures(server.name, output, status, self.size)
        return {"requests": got["requests"], "bytes": got["requests"] * self.size,
                "duration": got["duration"], "p50": got["p50"], "p99": got["p99"]}

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
