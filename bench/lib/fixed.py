# SPDX-License-Identifier: MIT
"""fixed: static files of one size at a time, by SWEET, its peers, and a program that only sends;
finally, with a connection for each request.
"""

from . import bars, files, load, report
from .apache import Apache
from .h2o import H2o
from .haproxy import HAProxy
from .lighttpd import Lighttpd
from .nginx import Nginx
from .plot import USUAL, Plot
from .servers import NullFiles, Row, Sweet, find_program, peer
from .varnish import Varnish

KB, MB = 1 << 10, 1 << 20
SIZES = (100, 1 * KB, 10 * KB, 100 * KB, 1 * MB)
QUICK_SIZES = (1 * KB, 100 * KB)
CONNECTIONS = (64,)
CLOSED_SIZE = 1 * KB  # with a connection for each request
PLOTS = (*USUAL, Plot("mb_per_s", "MB/s", "bytes of bodies"))
CLIENTS = {"wrk": load.Wrk, "h2load": load.H2load}

# SWEET's targets: the CPU time of others divided by its own.
BEST_PEER = {1 * KB: 1.25, 10 * KB: 1.15, 100 * KB: 1.25, 1 * MB: 1.15}
POSIX = {10 * KB: 1.12, 100 * KB: 1.12}
NULL = 0.9
CLOSED_BEST, CLOSED_APACHE = 1, 2.4
BEST_PEER_REQUESTS = {1 * MB: 1.15}  # requests/s


def start(context, root, sizes, counts):
    """Returns (servers of the files, programs that only send as many bytes)."""
    mib = files.cache_mib(sizes)
    context.start([*(Sweet(context, root, io, mib) for io in context.io),
                   Sweet(context, root, context.io[0], mib, name="sweet-posix",
                         arguments=["--data-path", "posix"]),
                   peer("nginx", Nginx, context, root), peer("lighttpd", Lighttpd, context, root),
                   peer("h2o", H2o, context, root),
                   peer("apache", Apache, context, root, max(counts), files.paths(root, sizes)),
                   peer("haproxy", HAProxy, context, root, max(sizes), mib),
                   peer("varnish", Varnish, context, root, max(counts), mib)])
    servers = list(context.servers)
    nulls = [NullFiles(context, backend, files.FILES) for backend in ("uring", "epoll")]
    return servers, [null for null in nulls if context.start_if_possible(null)]


def measure(context):
    find_program(context.options.client)
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    counts = context.connections or CONNECTIONS
    root = files.make_root(context, sizes)
    servers, nulls = start(context, root, sizes, counts)
    for size in sizes:
        context.check(files.pages, size)
        for null in nulls:
            null.serve(size)
        for connections in counts:
            client = CLIENTS[context.options.client](context.client_cpu, connections, size,
                                                     files.page(size), files.FILES)
            context.turns({"size": size, "connections": connections},
                          [Row(server.name, server, client) for server in servers + nulls])
        context.check(files.pages, size)
    if CLOSED_SIZE in sizes:
        measure_closed(context, servers, nulls, counts[-1])


def measure_closed(context, servers, nulls, connections):
    """A connection for each request: the servers of files, and the limit."""
    names = {*bars.PEERS, *(server.name for server in servers[:len(context.io)])}
    for null in nulls:
        null.serve(CLOSED_SIZE, "one")
    client = load.Wrk(context.client_cpu, connections, CLOSED_SIZE, files.page(CLOSED_SIZE),
                      files.FILES, ["Connection: close"])
    context.turns({"size": CLOSED_SIZE, "connections": connections, "connection": "closed"},
                  [Row(server.name, server, client) for server in servers + nulls
                   if server in nulls or server.name in names],
                  runs=1 if context.quick else None)
    context.check(files.pages, CLOSED_SIZE)


def verdicts(cases):
    kept = [case for case in cases if "connection" not in case["parameters"]]
    return ([line for case in kept for line in kept_verdicts(case)]
            + [line for case in cases if case not in kept for line in closed_verdicts(case)])


def kept_verdicts(case):
    size = case["parameters"]["size"]
    words = report.case_name(case)
    result = []
    if size in BEST_PEER:
        result += bars.best_peer(case, BEST_PEER[size], words)
    if size in BEST_PEER_REQUESTS:
        best = bars.most(case, bars.PEERS, "requests_per_s")
        result += [bars.at_least(
            f"requests/s, SWEET : best peer ({best}), {words}",
            bars.median(case, bars.sweet_of(case), "requests_per_s")
            / bars.median(case, best, "requests_per_s"), BEST_PEER_REQUESTS[size])] if best else \
            bars.uncompared(case, bars.PEERS, f"requests/s, SWEET : best peer, {words}",
                            BEST_PEER_REQUESTS[size])
    result += bars.null_share(case, NULL, words)
    if size in POSIX:
        result += bars.other_row(case, "sweet-posix", "SWEET posix", POSIX[size], words)
    return result


def closed_verdicts(case):
    words = report.case_name(case)
    return [*bars.best_peer(case, CLOSED_BEST, words),
            *bars.other_row(case, "apache", "Apache", CLOSED_APACHE, words)]
