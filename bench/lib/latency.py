# SPDX-License-Identifier: MIT
"""latency: response times at 70 % of the best peer's maximum rate.

First each peer runs at full speed; the best one's rate determines the request rate for all
servers, which does not depend on their responses. A request's time counts from when it was due,
so that a late server cannot hide its delay.
"""

import os

from . import bars, files, load, report
from .h2o import H2o
from .lighttpd import Lighttpd
from .nginx import Nginx
from .plot import Plot
from .servers import NOT_INSTALLED, Row, Sweet, peer, present

KB = 1 << 10
SIZES, QUICK_SIZES = (1 * KB, 10 * KB, 100 * KB), (1 * KB,)
CONNECTIONS = 64
SHARE = 0.7
PEERS = ("nginx", "lighttpd", "h2o")
BAR = 1  # SWEET's p99 by the best peer's
COLUMNS = (("target_per_s", "asked for/s", False), ("requests_per_s", "requests/s", True),
           ("p50_us", "p50 us", True), ("p99_us", "p99 us", True),
           ("cpu_us_per_request", "CPU us/request", False), ("core_percent", "core %", False))


def at_rate(parameters):
    return parameters["loop"] == "open"


PLOTS = (Plot("p99_us", "p99, us", "99 of 100 answers took no longer", x="size", where=at_rate,
              wide=True),
         Plot("p50_us", "p50, us", "half of the answers took no longer", x="size", where=at_rate,
              wide=True))


def measure(context):
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    connections = context.connections[0] if context.connections else CONNECTIONS
    root = files.make_root(context, sizes)
    peers = [peer("nginx", Nginx, context, root), peer("lighttpd", Lighttpd, context, root),
             peer("h2o", H2o, context, root)]
    if not present(peers):
        context.skipped = f"{', '.join(PEERS)}: {NOT_INSTALLED}"
        return
    sweets = [Sweet(context, root, io, files.cache_mib(sizes)) for io in context.io]
    context.start(sweets + peers)
    for size in sizes:
        context.check(files.pages, size)
        wanted = os.path.join(context.directory, f"{size}.list")
        load.write_list(wanted, [(files.page(size) % number, size)
                                 for number in range(files.FILES)])
        parameters = {"size": size, "connections": connections}
        case = turns(context, {**parameters, "loop": "closed"}, peers, wanted,
                     runs=1 if context.quick else None)
        best = bars.median(case, bars.most(case, PEERS, "requests_per_s"), "requests_per_s")
        turns(context, {**parameters, "loop": "open"}, sweets + peers, wanted,
              rate=round(SHARE * best))
        context.check(files.pages, size)


def turns(context, parameters, servers, wanted, rate=None, runs=None):
    client = load.Replay(context, parameters["connections"], wanted, rate=rate)
    return context.turns(parameters, [Row(server.name, server, client) for server in servers],
                         runs=runs)


def verdicts(cases):
    result = []
    for case in cases:
        if not at_rate(case["parameters"]):
            continue
        best = bars.least(case, PEERS, "p99_us")
        value = (bars.median(case, bars.sweet_of(case), "p99_us")
                 / bars.median(case, best, "p99_us"))
        result.append((f"p99 at {SHARE:.0%} of the best peer's most, SWEET : best peer ({best}),"
                       f" {report.size_name(case['parameters']['size'])}",
                       value, f"at most {BAR}", value <= BAR))
    return result
