# SPDX-License-Identifier: MIT
"""proxy: bodies of an HTTP server behind, passed on by SWEET and by its peers for each request; and
by SWEET from its cache of responses, beside a file of the same size.

The server behind only sends; it runs on the client's CPU, and is not counted.
"""

import os

from . import bars, load, report
from .haproxy import HAProxyPlain
from .nginx import NginxProxy
from .servers import NullFiles, Row, Sweet, find_program, peer, present

KB = 1 << 10
SIZES, QUICK_SIZES = (1 * KB, 10 * KB, 100 * KB), (10 * KB,)
CONNECTIONS = (64,)
CACHE_MIB = 64
CHECKS = 32  # requests of a page before and after its runs
PEERS = ("nginx-proxy", "haproxy")
PASSED, KEPT = "/passed", "/kept"

BEST_PEER = 1  # CPU time of the best peer, by SWEET's
STATIC = 0.95  # CPU time for a file, by that for a cached response

SWEET = """\
[sweet]
[pool behind]
protocol=http
upstream=127.0.0.1:{port}
keep-connection=1h
[path {passed}]
pool=behind
[path {kept}]
pool=behind
cache=1h
"""


class Behind(NullFiles):
    """The server behind: one body, whatever is asked for."""

    required = True

    def __init__(self, context):
        super().__init__(context, "epoll", 1)
        self.cpu = context.client_cpu
        self.detail = "behind the others, on the client's CPU"

    def body(self):
        return b"a" * self.size


class SweetProxy(Sweet):
    """In front of that server."""

    def __init__(self, context, root, io, behind):
        super().__init__(context, root, io, CACHE_MIB)
        self.behind = behind
        self.conf = os.path.join(self.directory, "sweet.conf")
        self.argv += ["--config", self.conf]

    def begin(self):
        with open(self.conf, "w") as file:
            file.write(SWEET.format(port=self.behind.port, passed=PASSED, kept=KEPT))
        super().begin()


class Way:
    """A page of a server."""

    def __init__(self, name, server, path):
        self.name, self.server, self.path = name, server, path

    def row(self, context, size, connections):
        return Row(self.name, self.server, load.Wrk(context.client_cpu, connections, size,
                                                    self.path))


def start(context, behind, root):
    """Starts all servers; returns what is measured of them."""
    sweets = [SweetProxy(context, root, io, behind) for io in context.io]
    proxies = [*sweets, peer("nginx-proxy", NginxProxy, context, root, behind, max(SIZES)),
               peer("haproxy", HAProxyPlain, context, behind)]
    context.start([behind, *proxies])
    ways = [Way(proxy.name, proxy, PASSED) for proxy in proxies]
    return [*ways, Way("sweet-kept", sweets[0], KEPT), Way("sweet-static", sweets[0], "/file")]


def change_size(context, behind, root, size):
    """The server behind moves to another port, so that no response of the old size is left."""
    behind.serve(size)
    with open(os.path.join(root, "file"), "wb") as file:
        file.write(behind.body())
    for server in context.servers:
        if server is not behind:
            server.restart()


def check(ways, behind):
    for way in ways:
        for server in present([way.server]):
            load.check(way.name, server.port, [(way.path, behind.body())] * CHECKS)


def measure(context):
    find_program("wrk")
    root = os.path.join(context.directory, "root")
    os.mkdir(root, 0o755)
    behind = Behind(context)
    ways = start(context, behind, root)
    for size in context.pick(context.sizes, SIZES, QUICK_SIZES):
        change_size(context, behind, root, size)
        check(ways, behind)
        for connections in context.connections or CONNECTIONS:
            context.turns({"size": size, "connections": connections},
                          [way.row(context, size, connections) for way in ways])
        check(ways, behind)


def verdicts(cases):
    result = []
    for case in cases:
        words = report.case_name(case)
        result += bars.best_peer(case, BEST_PEER, words, PEERS)
        result.append(bars.at_least(
            f"CPU time, file : cached response, {words}",
            bars.median(case, "sweet-static") / bars.median(case, "sweet-kept"), STATIC))
    return result
