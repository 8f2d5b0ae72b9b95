# SPDX-License-Identifier: MIT
"""breakdown: the effect of each of SWEET's three caches of files, by file size; and of heads
padded to a multiple of 32 or 64 bytes.
"""

import itertools

from . import files, load, report
from .plot import Plot
from .servers import Row, Sweet, find_program

KB = 1 << 10
SIZES, QUICK_SIZES = (100, 1 * KB, 2 * KB, 4 * KB, 7 * KB, 10 * KB, 15 * KB, 20 * KB), (1 * KB,)
CONNECTIONS = 64
CACHES = ("path", "header", "content")
# All eight combinations, from all caches to none.
WAYS = tuple(way for count in (3, 2, 1, 0) for way in itertools.combinations(CACHES, count))
ALIGNS = (32, 64)
SMALL = 4 * KB  # files up to this are small
BAR = 1.5
PLOTS = (Plot("requests_per_s", "requests/s", "requests/s", log=""),
         Plot("cpu_us_per_request", "server CPU, us/request", "CPU time of the server per request",
              log=""))


def way_name(way):
    return "+".join(way) or "none"


def arguments(way):
    return [f"--{cache}-cache={'on' if cache in way else 'off'}" for cache in CACHES]


def make_servers(context, root, mib):
    io = context.io[0]
    return [*(Sweet(context, root, io, mib, name=way_name(way), arguments=arguments(way))
              for way in WAYS),
            *(Sweet(context, root, io, mib, name=f"align-{align}",
                    arguments=["--header-align", str(align)]) for align in ALIGNS)]


def measure(context):
    find_program("wrk")
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    connections = context.connections[0] if context.connections else CONNECTIONS
    root = files.make_root(context, sizes)
    context.start(make_servers(context, root, files.cache_mib(sizes)))
    for size in sizes:
        context.check(files.pages, size)
        client = load.Wrk(context.client_cpu, connections, size, files.page(size), files.FILES)
        context.turns({"size": size},
                      [Row(server.name, server, client) for server in context.servers])
        context.check(files.pages, size)


def verdicts(cases):
    """By CPU time, which also shows where the client is slower than the server."""
    result = []
    for case in cases:
        size, rows = case["parameters"]["size"], list(case["runs"])
        if size > SMALL:
            continue
        full, none = rows[0], rows[len(WAYS) - 1]
        found = report.ratio(case["runs"][none], case["runs"][full], "cpu_us_per_request")[0]
        result.append((f"{report.size_name(size)}: CPU/request without any cache / with all three"
                       " (paper: about 2)", found, BAR, found >= BAR))
    return result
