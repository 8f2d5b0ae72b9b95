# SPDX-License-Identifier: MIT
"""tls: SWEET, its peers and the limit over TLS 1.3: handshakes, files on kept connections, workers'
pages, and the memory of idle connections.
"""

from . import bars, dynamic, files, idle, load, process, report
from .apache import Apache
from .certificates import Tls
from .h2o import H2o
from .haproxy import HAProxy
from .lighttpd import Lighttpd
from .nginx import Nginx, NginxFastCgi
from .plot import Plot
from .process import Failure
from .servers import NullTls, Row, Sweet, find_program

KB, MB = 1 << 10, 1 << 20
SIZES, QUICK_SIZES = (1 * KB, 10 * KB, 100 * KB, 1 * MB), (10 * KB,)
CONNECTIONS, QUICK_CONNECTIONS = (1, 10), (10,)
PROTOCOLS = ("http/1.1",)
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
# SWEET's targets: the CPU time of others divided by its own.
BEST_PEER = {1 * KB: 1.1, 10 * KB: 1.1, 100 * KB: 1.05, 1 * MB: 1.05}
HANDSHAKE = 0.97
FASTCGI = {10 * KB: 2.5, 100 * KB: 2}

PLOTS = (Plot("cpu_us_per_request", "server CPU, us", "CPU time of the server for a handshake",
              "handshake", where=lambda of: "handshake" in of, name="handshake-cpu-us"),
         Plot("cpu_us_per_request", "server CPU, us/request", "CPU time of the server per request",
              "size", wide=True, where=lambda of: "connections" in of and "page" not in of),
         Plot("requests_per_s", "requests/s", "requests/s", "size", wide=True,
              where=lambda of: "connections" in of and "page" not in of))


def start(context, root, sizes, connections, tls):
    """Returns (servers of the files, the program that only encrypts and sends)."""
    mib = files.cache_mib(sizes)
    sweets = [Sweet(context, root, io, mib, dynamic=True, tls=tls) for io in context.io]
    context.start([*sweets, Nginx(context, root, tls=tls), Lighttpd(context, root, tls=tls),
                   H2o(context, root, tls=tls),
                   Apache(context, root, max(connections, HANDSHAKE_CONNECTIONS),
                          files.paths(root, sizes), tls=tls),
                   HAProxy(context, root, max(sizes), mib, tls=tls)])
    servers = list(context.servers)
    null = NullTls(context, files.FILES, tls)
    context.start([null])
    return servers, null


def measure(context):
    find_program("h2load")
    idle.raise_limit(IDLE + 1000)
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    counts = context.pick(context.connections, CONNECTIONS, QUICK_CONNECTIONS)
    # The handshakes and the idle connections have a size of their own.
    every = list(dict.fromkeys((*sizes, HANDSHAKE_SIZE)))
    root = files.make_root(context, every)
    tls = Tls(context)
    servers, null = start(context, root, every, max(counts), tls)
    measure_kept(context, servers, null, sizes, counts)
    measure_dynamic(context, servers, root, [size for size in DYNAMIC_SIZES if size in sizes],
                    max(counts), tls)
    measure_handshakes(context, servers, null, tls)
    measure_idle(context, servers, tls)


def measure_kept(context, servers, null, sizes, counts):
    for size in sizes:
        context.check(files.pages, size)
        null.serve(size)
        for protocol in PROTOCOLS:
            for connections in counts:
                client = load.H2load(context.client_cpu, connections, size, files.page(size),
                                     files.FILES, protocol)
                context.turns({"protocol": protocol, "size": size, "connections": connections},
                              [Row(server.name, server, client) for server in (*servers, null)])
        context.check(files.pages, size)


def measure_dynamic(context, servers, root, sizes, connections, tls):
    """SWEET's workers, and nginx in front of FastCGI responders, without files."""
    if not sizes:
        return
    nginx = NginxFastCgi(context, root, max(sizes), connections, tls)
    context.start([nginx])
    ways = [dynamic.Way(server.name, server, dynamic.PAGE)
            for server in (*servers[:len(context.io)], nginx)]
    for size in sizes:
        dynamic.check(ways, size)
        for protocol in PROTOCOLS:
            client = load.H2load(context.client_cpu, connections, size,
                                 dynamic.PAGE.format(size=size), protocol=protocol)
            context.turns({"page": "generated", "protocol": protocol, "size": size,
                           "connections": connections},
                          [Row(way.name, way.server, client) for way in ways])
        dynamic.check(ways, size)


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
        context.check(files.pages, HANDSHAKE_SIZE)
        client = load.Handshakes(context, HANDSHAKE_CONNECTIONS, HANDSHAKE_SIZE,
                                 files.page(HANDSHAKE_SIZE) % 0, resume)
        context.turns({"handshake": name, "size": HANDSHAKE_SIZE},
                      [Row(server.name, server, client) for server in (*servers, null)],
                      runs=1 if context.quick else None)


def memory(server):
    """Returns what idle.memory() does, for all processes of a server."""
    pids = process.tree([popen.pid for popen in server.popens])
    return tuple(map(sum, zip(*map(idle.least_memory, pids))))


def measure_idle(context, servers, tls):
    count = QUICK_IDLE if context.quick else IDLE
    each = {}
    restart(servers, tls, "ecdsa")  # nothing that earlier connections freed may be used again
    for server in servers:
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
    tell_idle(context, each, count)


def tell_idle(context, each, count):
    context.table(f"memory of each of {count} idle connections over TLS, in bytes",
                  ["server", "", "the server's own", "all that it has mapped"],
                  [[name, "", *(f"{value:.0f}" for value in values)]
                   for name, values in each.items()])
    best = min(PEERS, key=lambda name: max(each[name]))
    for name, values in each.items():
        if name.startswith("sweet"):
            context.verdicts.append((f"{name}: bytes of an idle connection over TLS", max(values),
                                     f"at most {max(each[best]):.0f} ({best})",
                                     max(values) <= max(each[best])))


def verdicts(cases):
    result = []
    for case in cases:
        words, of = report.case_name(case), case["parameters"]
        if "handshake" in of:
            result += bars.best_peer(case, HANDSHAKE, words, PEERS)
        elif "page" in of:
            result += bars.other_row(case, "nginx-fastcgi", "nginx with FastCGI",
                                     FASTCGI[of["size"]], words)
        elif of["size"] in BEST_PEER:
            result += bars.best_peer(case, BEST_PEER[of["size"]], words, PEERS)
    return result
