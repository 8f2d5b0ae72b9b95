# SPDX-License-Identifier: MIT
"""What helps to understand a failed test, in a few dozen lines: the command, the end, the last
log lines and the status of its servers; and the last requests and responses."""

import json
import shlex
import time

import server as servers

SERVERS = 3  # of a test with more, the last ones
LINES = 12  # of a log
WIDTH = 180  # of a line
STATUS = 1200  # characters


def cut(text, width=WIDTH):
    return text if len(text) <= width else f"{text[:width]}... ({len(text)} characters)"


def of_server(server):
    status = server.process.poll()
    server.try_status()
    lines = [f"{cut(shlex.join(map(str, server.process.args)), 3 * WIDTH)}",
             f"  process {server.pid}: " + ("running" if status is None else f"ended with {status}")]
    said = server.errors.text().splitlines()
    if len(said) > LINES:
        lines.append(f"  ... {len(said) - LINES} lines of the log before these")
    lines += [f"  log: {cut(line)}" for line in said[-LINES:]]
    if server.last_status is not None:
        lines.append(f"  status: {cut(json.dumps(server.last_status), STATUS)}")
    return lines


def of_exchange(when, port, what, data):
    ago = time.monotonic() - when
    return f"{ago:8.3f} s ago, port {port}: {what} {len(data)} bytes {cut(repr(data[:120]))}"


def forget():
    """Before each test: drops what an earlier one left, but keeps a server that several tests
    share."""
    servers.started[:] = [server for server in servers.started if server.process.poll() is None]
    servers.exchanges.clear()


def sections():
    """Returns (title, text) for each thing to report."""
    kept = servers.started[-SERVERS:]
    for number, server in enumerate(kept, len(servers.started) - len(kept) + 1):
        yield f"server {number} of {len(servers.started)}", "\n".join(of_server(server))
    if servers.exchanges:
        yield "last requests and answers", "\n".join(of_exchange(*one) for one in servers.exchanges)
