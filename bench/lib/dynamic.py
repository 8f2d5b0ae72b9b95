# SPDX-License-Identifier: MIT
"""dynamic: bodies generated for each request, by SWEET's workers and by peers' FastCGI
responders; and SWEET's other interfaces, such as CGI/1.1.

Several rows may use the same server.
"""

import os
import shutil
import tempfile

from . import bars, load, report
from .apache import ApacheFastCgi
from .fastcgi import Responders, compile_responder
from .lighttpd import FILE_PROCESSES, LighttpdFastCgi
from .nginx import NginxFastCgi
from .process import Failure
from .servers import SWEET_WORKERS, Null, Row, Sweet, find_built, find_program, peer, present

PATTERN = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-\n"
SHARED_MEMORY = "/dev/shm"
FILES = 64  # of each process and size: fcgi-generate.c
CHECKS = 32  # requests of a page before and after its runs
SIZES = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20)
QUICK_SIZES = (10 << 10,)
CONNECTIONS, QUICK_CONNECTIONS = (16, 64), (64,)
CACHE_MIB = 256
PAGE = "/generate?size={size}"
CGI_PAGE = "/cgi" + PAGE
CGI_CACHE_MIB = 4096
PEERS = ("nginx-fastcgi", "lighttpd-fastcgi", "lighttpd-sendfile", "apache-fastcgi")

# SWEET's targets, by size: requests/s of one row divided by another's.
BEST_PEER = {1 << 10: 4, 10 << 10: 3.5, 100 << 10: 4, 1 << 20: 3.5}
POSIX = {10 << 10: 1.6, 100 << 10: 4}
KEPT, FASTCGI = 0.9, 1


class Way:
    """A page of a server; path is a format with the size."""

    def __init__(self, name, server, path):
        self.name, self.server, self.path = name, server, path

    def row(self, context, size, connections):
        return Row(self.name, self.server, load.Wrk(context.client_cpu, connections, size,
                                                    self.path.format(size=size)))


def body_of(size):
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def shared_folder(context, sizes):
    """Makes the folder of files that lighttpd sends; it is removed with the context."""
    need = FILE_PROCESSES * FILES * sum(sizes)
    if not os.access(SHARED_MEMORY, os.W_OK):
        raise Failure(f"lighttpd sends files in {SHARED_MEMORY}, which cannot be written to: "
                      f"mount -t tmpfs tmpfs {SHARED_MEMORY}")
    if need > shutil.disk_usage(SHARED_MEMORY).free // 2:
        raise Failure(f"{need >> 20} MiB of files are too much for {SHARED_MEMORY}")
    folder = tempfile.mkdtemp(prefix="bench-", dir=SHARED_MEMORY)
    context.folders.append(folder)
    os.chmod(folder, 0o755)
    return folder


def sweet_posix(context, root):
    return Sweet(context, root, context.io[0], CACHE_MIB, dynamic=True, name="sweet-posix",
                 arguments=["--data-path", "posix"])


class SweetFastCgi(Sweet):
    """A proxy for the responders that nginx has."""

    def __init__(self, context, root, processes):
        super().__init__(context, root, context.io[0], CACHE_MIB, name="sweet-fastcgi")
        self.add_responders("/generate", Responders(context, self, processes))


class SweetPreload(Sweet):
    """The responders' program as workers: libnabc-fcgi is preloaded."""

    def __init__(self, context, root):
        super().__init__(context, root, context.io[0], CACHE_MIB, name="sweet-preload")
        library = find_built(context.build, "libnabc-fcgi", ".libs", "libnabc-fcgi.so")
        conf = os.path.join(self.directory, "sweet.conf")
        with open(conf, "w") as file:
            file.write(f"[pool preloaded]\nprotocol=worker\ncommand={compile_responder(context)}\n"
                       f"processes={SWEET_WORKERS}\npreload={library}\n"
                       "[path /generate]\npool=preloaded\n")
        self.argv += ["--config", conf]


class SweetCgi(Sweet):
    """A CGI program for each request: its body by cache id, or with plain=1 through its pipe."""

    passing = True

    def __init__(self, context, root):
        super().__init__(context, root, context.io[0], CGI_CACHE_MIB, name="sweet-cgi")
        folder = os.path.join(self.directory, "programs")
        os.mkdir(folder, 0o755)
        shutil.copy(find_built(context.build, "cgi-examples", "generate"), folder)
        self.argv += ["--cgi", f"/cgi={folder}",
                      "--cache-socket", os.path.join(self.directory, "cache")]


def start(context, root, sizes, connections):
    """Starts all servers that this build has; returns the rows."""
    ways = [Way("sweet" if io == "auto" else "sweet-" + io,
                Sweet(context, root, io, CACHE_MIB, dynamic=True), PAGE) for io in context.io]
    context.start([way.server for way in ways])
    sweet = ways[0].server
    null = Null(context)
    context.start([null])
    ways += [Way("null", null, PAGE),
             Way("sweet-kept", sweet, PAGE + "&kept=1"),
             Way("sweet-cached", sweet, PAGE + "&cached=1"),
             Way("sweet-static", sweet, "/{size}.bin")]
    for make in (lambda: sweet_posix(context, root),
                 lambda: SweetPreload(context, root),
                 lambda: SweetFastCgi(context, root, connections)):
        server = make()
        if context.start_if_possible(server):
            ways.append(Way(server.name, server, PAGE))
    cgi = SweetCgi(context, root)
    context.start([cgi])
    ways += [Way("sweet-cgi", cgi, CGI_PAGE), Way("sweet-cgi-pipe", cgi, CGI_PAGE + "&plain=1")]
    peers = [peer("nginx-fastcgi", NginxFastCgi, context, root, max(sizes), connections),
             peer("lighttpd-fastcgi", LighttpdFastCgi, context, root),
             peer("lighttpd-sendfile", LighttpdFastCgi, context, root,
                  shared_folder(context, sizes)),
             peer("apache-fastcgi", ApacheFastCgi, context, root, connections)]
    context.start(peers)
    return ways + [Way(server.name, server, PAGE) for server in peers]


def check(ways, size, one=load.check):
    """one(): load.check() or http2.check()."""
    for way in ways:
        for server in present([way.server]):
            one(way.name, server.port, [(way.path.format(size=size), body_of(size))] * CHECKS,
                tls=server.tls)


def measure(context):
    find_program("wrk")
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    counts = context.pick(context.connections, CONNECTIONS, QUICK_CONNECTIONS)
    root = os.path.join(context.directory, "root")
    os.mkdir(root, 0o755)
    for size in sizes:
        with open(os.path.join(root, f"{size}.bin"), "wb") as file:
            file.write(body_of(size))
    ways = start(context, root, sizes, max(counts))
    for size in sizes:
        check(ways, size)
        for connections in counts:
            context.turns({"size": size, "connections": connections},
                          [way.row(context, size, connections) for way in ways], refresh)
        check(ways, size)


def refresh(row):
    """Empties the cache, which the pages of CGI programs fill.

    They remain when their programs have ended. When the cache is full, a page may be evicted
    before the server holds it, and its request fails. The pages of one run fit.
    """
    if row.server.passing:
        row.server.restart()


def comparisons(case):
    """Returns (row, the other row, target or None) of one case."""
    runs, size = case["runs"], case["parameters"]["size"]
    best = bars.most(case, PEERS, "requests_per_s")
    wanted = [("sweet", best, BEST_PEER.get(size)), ("null", best, None),
              ("sweet", "sweet-posix", POSIX.get(size)),
              ("sweet-kept", "sweet-static", KEPT), ("sweet-cached", "sweet-static", KEPT),
              ("sweet-fastcgi", "nginx-fastcgi", FASTCGI),
              ("sweet-preload", "sweet", None), ("sweet-preload", best, None)]
    return [line for line in wanted if line[0] in runs and line[1] in runs]


def verdicts(cases):
    """If a target is missed, reports the limit beside the best peer."""
    result = []
    for case in cases:
        def line(row, other, bar, case=case):
            return bars.at_least(f"{report.case_name(case)}: {row} / {other}, requests/s",
                                 bars.median(case, row, "requests_per_s")
                                 / bars.median(case, other, "requests_per_s"), bar)

        size = case["parameters"]["size"]
        if size in BEST_PEER and not any(peer in case["runs"] for peer in PEERS):
            result += bars.uncompared(case, PEERS, f"{report.case_name(case)}: sweet / best peer,"
                                      " requests/s", BEST_PEER[size])
        for row, other, bar in comparisons(case):
            if bar is None:
                continue
            result.append(line(row, other, bar))
            if other in PEERS and row == "sweet" and not result[-1][3] and "null" in case["runs"]:
                result.append((*line("null", other, bar)[:3], None))
    return result


def print_bars(cases):
    heads = ["case", "row / row", "requests/s", "bar", "", "CPU/request: row by row", "CPU us",
             "core %"]
    lines = []
    for case in cases:
        runs = case["runs"]
        for row, other, bar in comparisons(case):
            ratio = report.ratio(runs[row], runs[other], "requests_per_s")
            mine, others = bars.median(case, row), bars.median(case, other)
            lines.append([
                report.case_name(case), f"{row} / {other}", report.spread(ratio),
                "" if bar is None else f"{bar:g}",
                "" if bar is None else report.outcome(ratio[0] >= bar),
                report.spread(report.ratio(runs[other], runs[row], "cpu_us_per_request")),
                f"{report.number(mine)} : {report.number(others)}",
                f"{bars.median(case, row, 'core_percent'):.0f}"])
    print("\nsweet beside the best peer of each case, and beside itself by other ways; ratio of"
          " medians\n(least-most of the pairs of runs); CPU/request: of the other row by this"
          " one's; core %: of the\nfirst row: well under 100, the client is the limit of"
          " requests/s\n")
    report.table(heads, lines)
