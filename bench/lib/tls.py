# SPDX-License-Identifier: MIT
"""tls: SWEET, its peers and the limit over TLS 1.3: files on kept connections and workers' pages,
each with HTTP/1.1 and HTTP/2, handshakes, and the memory of idle connections.
"""

from . import bars, dynamic, files, http2, idle, load, process, report
from .apache import Apache, ApacheH2
from .certificates import Tls
from .h2o import H2o
from .haproxy import HAProxy
from .lighttpd import Lighttpd
from .nginx import Nginx, NginxFastCgi
from .plot import Plot
from .process import Failure
from .servers import (AGAIN, BEFORE, NOT_INSTALLED, NullH2, NullTls, Row, Sweet, find_program,
                      peer, present)

KB, MB = 1 << 10, 1 << 20
SIZES, QUICK_SIZES = (1 * KB, 10 * KB, 100 * KB, 1 * MB), (10 * KB,)
CONNECTIONS, QUICK_CONNECTIONS = (1, 10), (10,)
# The connections for generated pages: with HTTP/2 one, because nginx needs a process of the FastCGI
# program for each request at a time.
PROTOCOLS = {"http/1.1": None, "h2": 1}
CHECKS = {"http/1.1": load.check, "h2": http2.check}
PARTS = (*PROTOCOLS, "again", "handshakes", "idle")
# One file again and again, with HTTP/2: the streams of each connection.
AGAIN_SIZE = 1 * KB
STREAMS, QUICK_STREAMS = (10, 100), (10,)
AGAIN_PEERS = ("h2o", "nginx")
DYNAMIC_SIZES = (10 * KB, 100 * KB)
HANDSHAKE_SIZE = 1 * KB
HANDSHAKE_CONNECTIONS = 8  # at a time
# What is measured, the servers' key, and whether the client resumes.
HANDSHAKES = (("full, ECDSA P-256", "ecdsa", False), ("resumed", "ecdsa", True),
              ("full, RSA-2048", "rsa", False))
IDLE, QUICK_IDLE = 1000, 250
IDLE_WARM = 10  # times all files

# HAProxy keeps the files in its memory, as SWEET does, and every server has to encrypt them.
PEERS = (*bars.PEERS, "haproxy")
OPENSSL = "sweet-openssl"  # SWEET without records of its own
OWN_RECORDS = 1.05  # what they have to gain
# SWEET's targets: the CPU time of others divided by its own.
BEST_PEER = {1 * KB: 1.1, 10 * KB: 1.1, 100 * KB: 1.05, 1 * MB: 1.05}
BEST_PEER_H2 = {1 * KB: 1.2, 10 * KB: 1.1, 100 * KB: 1.1}
H2O_AGAIN = 1  # one small file again and again
HANDSHAKE = 0.97
NEAR = 1.1  # times the limit's CPU time are enough, too
FASTCGI = {10 * KB: 2.5, 100 * KB: 2}


def of_files(of):
    """Whether a case with these parameters is of files of each size."""
    return "connections" in of and "page" not in of and "streams" not in of


PLOTS = (Plot("cpu_us_per_request", "server CPU, us", "CPU time of the server for a handshake",
              "handshake", where=lambda of: "handshake" in of, name="handshake-cpu-us"),
         Plot("cpu_us_per_request", "server CPU, us/request", "CPU time of the server per request",
              "size", wide=True, where=of_files),
         Plot("requests_per_s", "requests/s", "requests/s", "size", wide=True,
              where=of_files))

def parts(text):
    """Of --parts."""
    values = text.split(",")
    if not set(values) <= set(PARTS):
        raise ValueError
    return values


def add_options(parser):
    parser.add_argument("--parts", type=parts, metavar="LIST", default=list(PARTS),
                        help=f"tls: only these: {', '.join(PARTS)}")


def start(context, root, sizes, connections, tls):
    """Returns {protocol: servers of the files}, {protocol: the program that only encrypts and
    sends}."""
    mib = files.cache_mib(sizes)
    sweets = [Sweet(context, root, io, mib, dynamic=True, tls=tls) for io in context.io]
    openssl = Sweet(context, root, context.io[0], mib, name=OPENSSL, tls=tls,
                    arguments=["--tls-records", "openssl"])
    context.start([*sweets, openssl, peer("nginx", Nginx, context, root, tls=tls),
                   peer("lighttpd", Lighttpd, context, root, tls=tls),
                   peer("h2o", H2o, context, root, tls=tls),
                   peer("apache", Apache, context, root, max(connections, HANDSHAKE_CONNECTIONS),
                        files.paths(root, sizes), tls=tls),
                   peer("haproxy", HAProxy, context, root, max(sizes), mib, tls=tls)])
    servers = list(context.servers)
    other = peer("apache-h2", ApacheH2, context, root, connections, tls)
    nulls = {"http/1.1": NullTls(context, files.FILES, tls),
             "h2": NullH2(context, files.FILES, tls)}
    context.start([other, *nulls.values()])
    return {"http/1.1": servers,
            "h2": [other if server.name == "apache" else server for server in servers]}, nulls


def measure(context):
    find_program("h2load")
    idle.raise_limit(IDLE + 1000)
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    counts = context.pick(context.connections, CONNECTIONS, QUICK_CONNECTIONS)
    # Some parts have a size of their own.
    every = list(dict.fromkeys((*sizes, HANDSHAKE_SIZE, AGAIN_SIZE)))
    root = files.make_root(context, every)
    tls = Tls(context)
    servers, nulls = start(context, root, every, max(counts), tls)
    protocols = [protocol for protocol in PROTOCOLS if protocol in context.options.parts]
    for protocol in protocols:
        measure_kept(context, servers[protocol], nulls[protocol], protocol, sizes, counts)
    if "again" in context.options.parts:
        measure_again(context, servers["h2"], nulls["h2"], counts)
    servers = servers["http/1.1"]
    measure_dynamic(context, servers, root, protocols,
                    [size for size in DYNAMIC_SIZES if size in sizes], max(counts), tls)
    if "handshakes" in context.options.parts:
        measure_handshakes(context, servers, nulls["http/1.1"], tls)
    if "idle" in context.options.parts:
        measure_idle(context, servers, tls)


def check(servers, protocol, size):
    for server in present(servers):
        CHECKS[protocol](server.name, server.port, files.pages(size), tls=server.tls)


def row(server, client):
    """The same peer may be another server with HTTP/2."""
    return Row(server.name.replace("apache-h2", "apache"), server, client)


def runs(context):
    """Returns the runs of a server in a case; None: the usual number."""
    return 1 if context.quick else None


def measure_kept(context, servers, null, protocol, sizes, counts):
    for size in sizes:
        check(servers, protocol, size)
        null.serve(size)
        for connections in counts:
            client = load.H2load(context.client_cpu, connections, size, files.page(size),
                                 files.FILES, protocol)
            context.turns({"protocol": protocol, "size": size, "connections": connections},
                          [row(server, client) for server in (*servers, null)],
                          runs=runs(context))
        check(servers, protocol, size)


def measure_again(context, servers, null, counts):
    """One small file for all requests: what a request costs beside its bytes."""
    some = [*servers[:len(context.io)],
            *(server for server in servers if server.name in AGAIN_PEERS)]
    check(some, "h2", AGAIN_SIZE)
    null.serve(AGAIN_SIZE)
    for streams in context.pick(None, STREAMS, QUICK_STREAMS):
        for connections in counts:
            client = load.H2load(context.client_cpu, connections, AGAIN_SIZE,
                                 files.page(AGAIN_SIZE) % 0, protocol="h2", streams=streams)
            context.turns({"protocol": "h2", "file": "one file", "size": AGAIN_SIZE,
                           "streams": streams, "connections": connections},
                          [row(server, client) for server in (*some, null)], runs=runs(context))
    check(some, "h2", AGAIN_SIZE)


def measure_dynamic(context, servers, root, protocols, sizes, connections, tls):
    """SWEET's workers, and nginx in front of FastCGI responders, without files."""
    if not sizes or not protocols:
        return
    at_once = max((PROTOCOLS[protocol] or 0) * load.H2load.STREAMS for protocol in protocols)
    nginx = peer("nginx-fastcgi", NginxFastCgi, context, root, max(sizes), max(connections, at_once),
                 tls)
    context.start([nginx])
    ways = [dynamic.Way(server.name, server, dynamic.PAGE)
            for server in (*servers[:len(context.io)], nginx)]
    for protocol in protocols:
        count = PROTOCOLS[protocol] or connections
        for size in sizes:
            dynamic.check(ways, size, CHECKS[protocol])
            client = load.H2load(context.client_cpu, count, size, dynamic.PAGE.format(size=size),
                                 protocol=protocol)
            context.turns({"page": "generated", "protocol": protocol, "size": size,
                           "connections": count},
                          [Row(way.name, way.server, client) for way in ways],
                          runs=runs(context))
            dynamic.check(ways, size, CHECKS[protocol])


def restart(servers, tls, kind):
    """Gives servers this certificate."""
    tls.use(kind)
    for server in servers:
        server.restart()


def measure_handshakes(context, servers, null, tls):
    kind = "ecdsa"
    null.serve(HANDSHAKE_SIZE)
    for name, wanted, resume in HANDSHAKES:
        if wanted != kind:
            kind = wanted
            restart([*servers, null], tls, kind)
        check(servers, "http/1.1", HANDSHAKE_SIZE)
        client = load.Handshakes(context, HANDSHAKE_CONNECTIONS, HANDSHAKE_SIZE,
                                 files.page(HANDSHAKE_SIZE) % 0, resume)
        context.turns({"handshake": name, "size": HANDSHAKE_SIZE},
                      [Row(server.name, server, client) for server in (*servers, null)],
                      runs=runs(context))


def memory(server):
    """Returns what idle.memory() does, for all processes of a server."""
    pids = process.tree([popen.pid for popen in server.popens])
    return tuple(map(sum, zip(*map(idle.least_memory, pids))))


def measure_idle(context, servers, tls):
    count = QUICK_IDLE if context.quick else IDLE
    each = {}
    restart(servers, tls, "ecdsa")  # nothing that earlier connections freed may be used again
    for server in present(servers):
        addresses = [server.address]
        # What all connections share, such as the buffers of an io_uring, has been used before.
        for _ in range(IDLE_WARM):
            load.check(server.name, server.port, files.pages(idle.SIZE), tls=tls)
        before = memory(server)
        connections = idle.Idle(server.port, count, addresses, tls)
        after = memory(server)
        left = connections.still_open()
        connections.close()
        if left != count:
            raise Failure(f"{server.name} closed {count - left} idle connections")
        each[server.name] = [(then - now) / count for now, then in zip(before, after)]
    tell_idle(context, each, count, {one.name: one.absent for one in servers if one.absent})


def tell_idle(context, each, count, absent):
    context.table(f"memory of each of {count} idle connections over TLS, in bytes",
                  ["server", "", "the server's own", "all that it has mapped"],
                  [*([name, "", *(f"{value:.0f}" for value in values)]
                     for name, values in each.items()),
                   *([name, "", why, ""] for name, why in absent.items())])
    peers = [name for name in PEERS if name in each]
    best = min(peers, key=lambda name: max(each[name]), default=None)
    for name, values in each.items():
        if name.startswith("sweet") and not name.startswith(OPENSSL) and \
                name.rpartition("-")[2] not in (BEFORE, AGAIN):
            text = f"{name}: bytes of an idle connection over TLS"
            context.verdicts.append((text, max(values), f"at most {max(each[best]):.0f} ({best})",
                                     max(values) <= max(each[best])) if best else
                                    (text, max(values), "the best peer's", NOT_INSTALLED))


def verdicts(cases):
    result = []
    for case in cases:
        words, of = report.case_name(case), case["parameters"]
        if "handshake" in of:
            result += bars.best_peer(case, HANDSHAKE, words, PEERS, NEAR)
            continue
        if "streams" in of:
            result += bars.other_row(case, "h2o", "h2o", H2O_AGAIN, words)
            continue
        page, size, old = "page" in of, of["size"], of["protocol"] == "http/1.1"
        # Pages with HTTP/2 have no target.
        if page and old and size in FASTCGI:
            result += bars.other_row(case, "nginx-fastcgi", "nginx with FastCGI", FASTCGI[size],
                                     words)
        bar = (BEST_PEER if old else BEST_PEER_H2).get(size)
        if not page:
            result += bars.other_row(case, OPENSSL, "OpenSSL's records", OWN_RECORDS, words)
        if bar and not page:
            result += bars.best_peer(case, bar, words, PEERS, NEAR)
    return result
