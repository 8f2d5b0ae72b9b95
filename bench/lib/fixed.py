# SPDX-License-Identifier: MIT
"""fixed: static files of one size at a time, by SWEET and its peers."""

from . import files, load
from .apache import Apache
from .h2o import H2o
from .haproxy import HAProxy
from .lighttpd import Lighttpd
from .nginx import Nginx
from .plot import USUAL, Plot
from .servers import Row, Sweet, find_program
from .varnish import Varnish

SIZES = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20)
QUICK_SIZES = (1 << 10, 100 << 10)
CONNECTIONS = (64,)
PLOTS = (*USUAL, Plot("mb_per_s", "MB/s", "bytes of bodies"))
CLIENTS = {"wrk": load.Wrk, "h2load": load.H2load}


def measure(context):
    find_program(context.options.client)
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    counts = context.connections or CONNECTIONS
    root = files.make_root(context, sizes)
    mib = files.cache_mib(sizes)
    context.start([*(Sweet(context, root, io, mib) for io in context.io),
                   Sweet(context, root, context.io[0], mib, name="sweet-posix",
                         arguments=["--data-path", "posix"]),
                   Nginx(context, root), Lighttpd(context, root), H2o(context, root),
                   Apache(context, root, max(counts), files.paths(root, sizes)),
                   HAProxy(context, root, max(sizes), mib),
                   Varnish(context, root, max(counts), mib)])
    for size in sizes:
        context.check(files.pages, size)
        for connections in counts:
            client = CLIENTS[context.options.client](context.client_cpu, connections, size,
                                                     files.page(size), files.FILES)
            context.turns({"size": size, "connections": connections},
                          [Row(server.name, server, client) for server in context.servers])
        context.check(files.pages, size)
