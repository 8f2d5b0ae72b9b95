# SPDX-License-Identifier: MIT
"""trace: a real log replayed in its order, cut to data sets of several sizes (002, figure 5;
003, figures 8-10): SWEET with a cache larger and smaller than the set, and its peers; with the
files in memory, or not.
"""

import os
import resource
import statistics

from . import bars, load, weblog
from .apache import Apache
from .documents import Documents
from .h2o import H2o
from .lighttpd import Lighttpd
from .nginx import Nginx
from .plot import Plot
from .process import Failure
from .servers import Row, Sweet, peer, present

TRACE = "traces/semicomplete-2015.tsv.gz"
SETS_MB = (10, 50, 100)
QUICK_SETS_MB = (10,)
MB = 1_000_000
CLIENTS = 64
LARGER, SMALLER = 1.5, 0.25  # than the data set
CACHE_MIB_LEAST = 2
FOLDER = 100  # files
OTHER_DESCRIPTORS = 256
PAPER = {10: 1.20, 50: 1.17, 100: 1.09}  # SWEET-NABC : SWEET
BEST_PEER, BEST_PEER_CUT = 1.2, 1  # the whole log, and cut
PLOTS = (Plot("mb_per_s", "MB/s", "bytes of bodies", x="set_mb"),
         Plot("cpu_us_per_request", "server CPU, us/request",
              "CPU time of the server per request", x="set_mb"))


def add_options(parser):
    parser.add_argument("--log", metavar="FILE",
                        help="trace: a log in the common or combined format, or lines as in"
                             " bench/traces; .gz or not (the one that is there)")
    parser.add_argument("--sets", metavar="LIST",
                        help="trace: sizes of the data sets in MB, \"all\" for the whole log"
                             " (10,50,100,all)")


def wanted_sets(context, log):
    """Sizes in bytes, none larger than the log."""
    whole = sum(log.sizes)
    words = (context.options.sets or "").split(",") if context.options.sets else \
        [*context.pick(None, SETS_MB, QUICK_SETS_MB), *([] if context.quick else ["all"])]
    try:
        sizes = [whole if word == "all" else int(word) * MB for word in words]
    except ValueError:
        raise Failure(f"--sets {context.options.sets}: not whole numbers of MB") from None
    if min(sizes) <= 0:
        raise Failure(f"--sets {context.options.sets}: not sizes")
    # By MB, which is the name.
    return sorted({size // MB: size for size in (min(size, whole) for size in sizes)}.values())


def pages_of(log, size):
    """The names do not matter to the servers, and those of a log may be invalid."""
    return [(f"/{size // MB}/{number // FOLDER:04d}/{number % FOLDER:02d}.bin", length)
            for number, length in enumerate(log.sizes)]


class Cold:
    """Before each run: restarts the row's server, and drops the files from memory."""

    def __init__(self, documents):
        self.documents = documents

    def __call__(self, row):
        server = row.server
        server.stop()
        kept = self.documents.drop()
        if kept:
            raise Failure(f"the system keeps {kept:.1%} of the files in memory: choose a"
                          " directory on a disk by $TMPDIR")
        server.begin()
        server.cpu_then = None


def can_be_cold(documents):
    """A file system in memory has no disk, so its files cannot be dropped."""
    return not documents.drop()


class DataSet:
    """The part of a log whose documents have that many bytes; its files and its list."""

    def __init__(self, context, log, size):
        part = log.within(size)
        pages = pages_of(part, size)
        self.size, self.requests = size, len(part.order)
        self.documents = Documents(context, "root", pages)
        self.list = os.path.join(context.directory, f"{size // MB}.list")
        load.write_list(self.list, (pages[number] for number in part.order))
        print(f"         {size / MB:.0f} MB: {self.requests:,} requests, {len(pages):,} files,"
              f" {sum(part.sizes) / MB:.1f} MB", flush=True)


def sweets(context, root, size, cache, factor):
    """Returns {row: server} with a cache of `factor` times the set."""
    mib = max(CACHE_MIB_LEAST, int(size * factor) >> 20)
    return {row: Sweet(context, root, context.io[0], mib, name=f"{row}-{size // MB}-{cache}",
                       arguments=arguments)
            for row, arguments in (("sweet", []), ("sweet-posix", ["--data-path", "posix"]))}


def measure_set(context, data, peers):
    documents = data.documents
    larger = sweets(context, documents.root, data.size, "larger", LARGER)
    smaller = sweets(context, documents.root, data.size, "smaller", SMALLER)
    mine = [*larger.values(), *smaller.values()]
    context.start(mine)
    documents.check([*mine, *present(peers.values())])
    case = {"set_mb": data.size // MB}

    def turns(cache, files, servers, requests=0, before=None):
        client = load.Replay(context, CLIENTS, data.list, requests=requests)
        context.turns({**case, "cache": cache, "files": files},
                      [Row(row, server, client) for row, server in servers.items()], before)

    turns("larger", "warm", {**larger, **peers})
    turns("smaller", "warm", smaller)
    if can_be_cold(documents):
        turns("larger", "cold", {**larger, **peers}, data.requests, Cold(documents))
    else:
        print(f"         {documents.root} is in memory: no run with cold files", flush=True)
    for server in mine:
        server.stop()


def measure(context):
    log = weblog.read(context.options.log or os.path.join(context.source, TRACE))
    print(f"         {log.words}", flush=True)
    sets = [DataSet(context, log, size) for size in wanted_sets(context, log)]
    root = sets[0].documents.root
    paths = [path for data in sets for path in data.documents.paths()]
    raise_limit(len(paths))
    peers = {"nginx": peer("nginx", Nginx, context, root),
             "lighttpd": peer("lighttpd", Lighttpd, context, root),
             "h2o": peer("h2o", H2o, context, root),
             "apache": peer("apache", Apache, context, root, CLIENTS, paths)}
    context.start(peers.values())
    for data in sets:
        measure_set(context, data, peers)


def raise_limit(files):
    """Apache keeps all files open that it is configured with, beside its connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = files + 4 * CLIENTS + OTHER_DESCRIPTORS
    if soft < need <= hard or hard == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, need), hard))


def cpu_by_mb(case, row):
    """us per MB of bodies. A run ends in the middle of large responses: per request, a server
    that delays them in favour of small ones would look cheaper."""
    return statistics.median(run["cpu_us_per_request"] * run["requests_per_s"] / run["mb_per_s"]
                             for run in case["runs"][row])


def verdicts(cases):
    """CPU time compared with the best peer, and the paper's result for its sets."""
    result = []
    for case in cases:
        of = case["parameters"]
        if of["cache"] != "larger" or of["files"] != "warm":
            continue
        costs = {row: cpu_by_mb(case, row) for row in case["runs"]}
        best = min((row for row in bars.PEERS if row in costs), key=costs.get, default=None)
        bar = BEST_PEER_CUT if of["set_mb"] in SETS_MB else BEST_PEER
        words = f"SWEET, {of['set_mb']} MB"
        result += [bars.at_least(f"CPU time by MB, best peer ({best}) : {words}",
                                 costs[best] / costs["sweet"], bar)] if best else \
            bars.uncompared(case, bars.PEERS, f"CPU time by MB, best peer : {words}", bar)
        result.append(bars.at_least(
            f"CPU time by MB, SWEET posix : SWEET, {of['set_mb']} MB",
            costs["sweet-posix"] / costs["sweet"], PAPER.get(of["set_mb"], 1)))
    return result
