# SPDX-License-Identifier: MIT
"""groups: full handshakes by the group of their key exchange, X25519 and the hybrid with ML-KEM-768
that TLS libraries prefer since OpenSSL 3.5; SWEET and nginx in turn, and SWEET once more, which shows
the noise.  Servers have their own default groups, and the client offers one.
"""

from . import bars, files, load, report, tls
from .certificates import Tls
from .nginx import Nginx
from .plot import Plot
from .process import Failure
from .servers import NO_GROUP, Absent, NullTls, Row, Sweet, peer

GROUPS = ("X25519", "X25519MLKEM768")
SIZE = tls.HANDSHAKE_SIZE
AGAIN = "sweet-again"
PLOTS = (Plot("cpu_us_per_request", "server CPU, us", "CPU time of the server for a handshake",
              "group", name="cpu-us"),
         Plot("requests_per_s", "handshakes/s", "handshakes/s", "group", name="handshakes-per-s"))
COLUMNS = (("requests_per_s", "handshakes/s", True), ("p50_us", "p50 us", False),
           ("p99_us", "p99 us", False), ("cpu_us_per_request", "CPU us/handshake", True),
           ("client_us_per_request", "client us", False), ("core_percent", "core %", False))


def start(context, root, key):
    mib = files.cache_mib([SIZE])
    context.start([*(Sweet(context, root, io, mib, tls=key) for io in context.io),
                   Sweet(context, root, context.io[0], mib, name=AGAIN, tls=key),
                   peer("nginx", Nginx, context, root, tls=key)])
    servers = list(context.servers)
    null = NullTls(context, files.FILES, key)
    context.start([null])
    null.serve(SIZE)
    return [*servers, null]


def row(server, client):
    """A server that does not agree on the group has a row without figures."""
    why = "" if server.absent else client.lacks(server)
    if why == f"{NO_GROUP} {client.group}" and server.name.startswith("sweet"):
        raise Failure(f"{server.name}: {why}, which the library has")
    if why:
        server = Absent(server.name, why)
    return Row(server.name, server, client)


def measure(context):
    root = files.make_root(context, [SIZE])
    servers = start(context, root, Tls(context))
    context.check(files.pages, SIZE)
    for group in GROUPS:
        client = load.Handshakes(context, tls.HANDSHAKE_CONNECTIONS, SIZE, files.page(SIZE) % 0,
                                 group=group)
        context.turns({"group": group}, [row(server, client) for server in servers])


def verdicts(cases):
    """Nothing is said of a distance from the target that is below the noise."""
    result = []
    for case in cases:
        if not case["runs"]:
            continue  # the library does not know the group
        words = report.case_name(case)
        again = next(name for name in case["runs"] if name.startswith(AGAIN))
        noise = bars.median(case, again) / bars.median(case, bars.sweet_of(case))
        for text, value, bar, reached in bars.best_peer(case, tls.HANDSHAKE, words, ("nginx",),
                                                        tls.NEAR):
            # Of the limit there is no verdict, and without nginx there is no value.
            if isinstance(reached, bool) and isinstance(bar, float) and \
                    abs(value - bar) <= abs(1 - noise):
                reached = "below the noise"
            result.append((text, value, bar, reached))
        result.append((f"CPU time, SWEET again : SWEET, {words}", noise, "-", "the noise"))
    return result


def derive(content):
    """Computes the verdicts again."""
    content["verdicts"] = report.verdicts_document(verdicts(content["cases"]))
    return True
