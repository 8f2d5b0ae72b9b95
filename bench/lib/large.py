# SPDX-License-Identifier: MIT
"""large: files that are larger than any cache of contents, with SWEET's two methods and by its
peers. The unit is megabytes, because a run ends in the middle of a file.
"""

import os

from . import bars, documents, load, report
from .apache import Apache
from .h2o import H2o
from .lighttpd import Lighttpd
from .nginx import Nginx
from .servers import Row, Sweet, find_program, peer

MB = 1 << 20
SIZES = (54 * MB, 1024 * MB)
QUICK_SIZES = (54 * MB,)
CONNECTIONS = (1, 16)
CACHE_MIB = 64  # a quarter of it is less than each file
SECONDS, QUICK_SECONDS = 3, 1  # at least: a file takes half a second

BEST_PEER = 1.0  # CPU time of both ends for a megabyte, the best peer's by SWEET's
COPY = 1.0  # the strict way costs more


class Megabytes(load.Wrk):
    """wrk, counting received megabytes as requests."""

    TIMEOUT = 60

    def run(self, server, seconds):
        url = f"http://{server.address}:{server.port}{self.path}"
        argv = [self.program, "-t1", f"-c{self.connections}", f"-d{seconds}s", "--latency",
                "--timeout", f"{self.TIMEOUT}s", "-s", load.script_path(), url]
        output, status = load.run_program(server.name, argv, self.cpu, seconds)
        got = self.figures(server.name, output, status, 0)
        return {"requests": got["bytes"] // MB, "bytes": got["bytes"],
                "duration": got["duration"], "p50": None, "p99": None}


def path(size):
    return f"/{size // MB}.bin"


def start(context, sizes, counts):
    pages = [(path(size), size) for size in sizes]
    files = documents.Documents(context, "large", pages)
    context.start([*(Sweet(context, files.root, io, CACHE_MIB) for io in context.io),
                   Sweet(context, files.root, context.io[0], CACHE_MIB, name="sweet-copy",
                         arguments=["--large-files", "copy"]),
                   peer("nginx", Nginx, context, files.root),
                   peer("lighttpd", Lighttpd, context, files.root),
                   peer("h2o", H2o, context, files.root),
                   peer("apache", Apache, context, files.root, max(counts),
                        [files.root + name for name, _ in pages])])
    return files


def measure(context):
    find_program("wrk")
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    counts = context.pick(context.connections, CONNECTIONS, CONNECTIONS[-1:])
    seconds = context.pick(None, SECONDS, QUICK_SECONDS)
    files = start(context, sizes, counts)
    for size in sizes:
        # All of it is in the page cache, for all servers.
        with open(os.path.join(files.root, path(size)[1:]), "rb") as file:
            while file.read(MB):
                pass
        for connections in counts:
            client = Megabytes(context.client_cpu, connections, size, path(size))
            context.turns({"size": size, "connections": connections},
                          [Row(server.name, server, client) for server in context.servers],
                          seconds=max(seconds, context.seconds))


def verdicts(cases):
    result = []
    for case in cases:
        words = report.case_name(case)
        result += bars.best_peer_both_ends(case, BEST_PEER, words)
        result += bars.other_row(case, "sweet-copy", "SWEET, large-files=copy", COPY, words)
    return result
