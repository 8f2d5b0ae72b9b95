# SPDX-License-Identifier: MIT
"""specweb: SPECweb99's static files with its distribution of requests, for a growing number of
clients (002, figure 4): SWEET and its peers.
"""

import os

from . import bars, load, report
from .apache import Apache
from .documents import Documents
from .h2o import H2o
from .lighttpd import Lighttpd
from .nginx import Nginx
from .plot import USUAL, Plot
from .servers import Row, Sweet, peer, present

DIRECTORIES = 25  # as in the paper, regardless of the number of requests
CLASSES = ((102.4, 35), (1024, 50), (10240, 14), (102400, 1))  # step of sizes, percent
# Of the nine files of a class, by size: Zipf over these ranks, so that the
# fifth has 35.3 % of the class and the first 3.9 %.
RANKS = (9, 6, 4, 2, 1, 3, 5, 7, 8)
DRAWN_FROM = 100_000
CLIENTS = tuple(range(4, 81, 4))
QUICK_CLIENTS = (8, 80)
SEED = 99
CACHE_MIB = 256
BEST_PEER = 1.2  # CPU time of the best peer divided by SWEET's, over the whole mix
PLOTS = (*USUAL, Plot("mb_per_s", "MB/s", "bytes of bodies"))


def shares():
    """[(path, size, share of the requests)]; Zipf over directories, alpha 1."""
    zipf = [1 / rank for rank in range(1, DIRECTORIES + 1)]
    parts = [1 / rank for rank in RANKS]
    return [(f"/dir{number:05d}/class{kind}_{index}", int(step * (index + 1)),
             weight / sum(zipf) * percent / 100 * part / sum(parts))
            for number, weight in enumerate(zipf)
            for kind, (step, percent) in enumerate(CLASSES)
            for index, part in enumerate(parts)]


def drawn_from(pages):
    """A list that contains each page as often as its share requires."""
    due, given, result = 0.0, 0, []
    for path, size, share in pages:
        due += share * DRAWN_FROM
        count = round(due) - given
        given += count
        result += [(path, size)] * count
    return result


def measure(context):
    counts = context.pick(context.connections, CLIENTS, QUICK_CLIENTS)
    pages = shares()
    documents = Documents(context, "root", [page[:2] for page in pages])
    wanted = os.path.join(context.directory, "list")
    load.write_list(wanted, drawn_from(pages))
    root = documents.root
    servers = {
        "sweet": Sweet(context, root, context.io[0], CACHE_MIB),
        "sweet-posix": Sweet(context, root, context.io[0], CACHE_MIB, name="sweet-posix",
                             arguments=["--data-path", "posix"]),
        "nginx": peer("nginx", Nginx, context, root),
        "lighttpd": peer("lighttpd", Lighttpd, context, root),
        "h2o": peer("h2o", H2o, context, root),
        "apache": peer("apache", Apache, context, root, max(counts), documents.paths()),
    }
    context.start(servers.values())
    documents.check(present(context.servers))
    for count in counts:
        client = load.Replay(context, count, wanted, ["--shuffle", SEED])
        context.turns({"clients": count},
                      [Row(name, server, client) for name, server in servers.items()])
    documents.check(present(context.servers))


def beside_best(cases):
    """Over all numbers of clients, and the minimum."""
    if not bars.least(cases[0], bars.PEERS):
        return bars.uncompared(cases[0], bars.PEERS, "CPU time, best peer : SWEET", BEST_PEER)
    best = [bars.median(case, bars.least(case, bars.PEERS)) for case in cases]
    mine = [bars.median(case, "sweet") for case in cases]
    return [bars.at_least("CPU time, best peer of each case : SWEET, all numbers of clients",
                          sum(best) / sum(mine), BEST_PEER),
            bars.at_least("CPU time, best peer : SWEET, the least of all numbers of clients",
                          min(one / other for one, other in zip(best, mine)), 1)]


def verdicts(cases):
    """Beside the best peer of each case; the paper's SWEET-NABC is almost always ahead of both."""
    result = beside_best(cases) if cases else []
    for row, name in (("apache", "Apache"), ("sweet-posix", "SWEET posix")):
        ratios = [report.ratio(case["runs"][row], case["runs"]["sweet"], "cpu_us_per_request")[0]
                  for case in cases if row in case["runs"]]
        text = f"CPU time, {name} : SWEET, the least of all numbers of clients"
        if ratios:
            result.append((text, min(ratios), 1, min(ratios) >= 1))
        elif cases:
            result += bars.uncompared(cases[0], [row], text, 1)
    return result
