# SPDX-License-Identifier: MIT
"""pipe: one large file over a long fat pipe, a link of 100 ms and 1 Gbit/s: whether SWEET fills
it as nginx does, and whether connections get equal shares of it, and of loopback.
"""

import json
import os
import sys

from . import bars, load, netns, process, report
from .lighttpd import Lighttpd
from .nginx import Nginx
from .plot import Plot
from .process import Failure
from .servers import Row, Sweet, peer, present
from .wan import SERVER, Wan

SIZE = 64 << 20
PAGE = "/large.bin"
CACHE_MIB = 512
# Of each direction; the queue holds what a round trip carries.
DELAY_MS, RATE_MBIT, QUEUE_KB, SEED = 50, 1000, 12500, 1
# Of both ends: windows of several round trips, and no connection knows of those before it.
SYSCTLS = {"tcp_wmem": f"4096 65536 {64 << 20}", "tcp_rmem": f"4096 131072 {64 << 20}",
           "tcp_no_metrics_save": 1}
CONNECTIONS, QUICK_CONNECTIONS = (1, 4, 16), (16,)
SHARERS = 16
WIDE_SECONDS, LOOPBACK_SECONDS = 8, 4
BEGINNING = 3 / 8  # of a run: slow start, and the excess that it sent
PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "pull.py")

RATE_BAR, FAIR_BAR = 0.95, 0.9
# What packets of 1,500 bytes leave for bodies, with 52 bytes of heads in each.
LINK_MB = RATE_MBIT / 8 * 1448 / 1500

COLUMNS = (("steady_mb_per_s", "steady MB/s", True), ("mb_per_s", "MB/s of all", False),
           ("first_s", "first file, s", False), ("jain", "Jain's index", True),
           ("least_by_most", "least / most", False), ("cpu_us_per_mb", "CPU us/MB", True),
           ("link_us_per_mb", "link's us/MB", False), ("resent_percent", "sent again, %", False),
           ("core_percent", "core %", False))


def wide(parameters):
    return parameters["link"] == "wide"


PLOTS = (Plot("steady_mb_per_s", "MB/s", "a link of 100 ms and 1 Gbit/s", "connections",
              where=wide, name="mb-per-s"),
         Plot("resent_percent", "segments sent again, %", "a link of 100 ms and 1 Gbit/s",
              "connections", where=wide, name="sent-again"))


def jain(shares):
    """Returns 1 if all are equal; 1 / their number if one has everything."""
    squares = len(shares) * sum(share * share for share in shares)
    return sum(shares) ** 2 / squares if squares else 0


class Pull:
    """pull.py on one CPU; with a link also what that spent and what was sent again."""

    def __init__(self, context, connections, link=None):
        self.cpu, self.connections, self.link = context.client_cpu, connections, link
        self.passing = False  # for process.Cpu: the link's one process is to stay
        self.name = "wan"

    def run(self, server, seconds):
        before = self.look()
        argv = [sys.executable, PROGRAM, server.address, str(server.port), PAGE, str(SIZE),
                str(self.connections), str(seconds), str(seconds * BEGINNING)]
        output, status = load.run_program(server.name, argv, self.cpu, seconds)
        if status:
            raise Failure(f"{server.name}: pull.py ended with status {status}:\n{output}")
        told = json.loads(output)
        got, steady = sum(told["bytes"]), told["steady_bytes"]
        return {"requests": got / SIZE, "bytes": got, "duration": told["seconds"] * 1e6,
                "steady_mb_per_s": sum(steady) / told["steady_seconds"] / 1e6,
                "first_s": told["first_seconds"], "jain": jain(steady),
                "least_by_most": min(steady) / max(steady) if max(steady) else 0,
                **self.since(before, got)}

    def look(self):
        return self.link and (process.Cpu([self.link.popen.pid]), self.link.server.counters())

    def since(self, before, got):
        if not before:
            return {}
        cpu, counters = self.look()
        resent, sent = (counters[key] - before[1][key] for key in ("TcpRetransSegs", "TcpOutSegs"))
        return {"link_us_per_mb": cpu.since(before[0], self) / 1e3 / (got / 1e6),
                "resent_percent": 100 * resent / max(1, sent + resent)}


def make_root(context):
    root = os.path.join(context.directory, "large")
    os.mkdir(root, 0o755)
    body = os.urandom(SIZE)
    with open(os.path.join(root, PAGE[1:]), "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())  # no write-back during the runs
    return root, body


def servers(context, label, root):
    """Returns {row: server}, not started; listening on every address, for any namespace."""
    made = {"sweet": Sweet(context, root, context.io[0], CACHE_MIB, name=f"sweet-{label}"),
            "nginx": peer("nginx", Nginx, context, root, f"nginx-{label}", listen="0.0.0.0")}
    if not context.quick:
        made["sweet-posix"] = Sweet(context, root, context.io[0], CACHE_MIB,
                                    name=f"sweet-posix-{label}",
                                    arguments=["--data-path", "posix"])
        made["lighttpd"] = peer("lighttpd", Lighttpd, context, root, f"lighttpd-{label}",
                                listen="0.0.0.0")
    for name, server in made.items():
        if name.startswith("sweet"):
            server.argv[2] = f"0.0.0.0:{server.port}"
    return made


def start(context, some, body):
    context.start(some.values())
    for server in present(some.values()):
        load.check(server.name, server.port, [(PAGE, body)])


def take_turns(context, parameters, some, client, seconds):
    """Measures one case; CPU time per MB, because a run has only a few files, and parts of
    them."""
    case = context.turns(parameters, [Row(name, one, client) for name, one in some.items()],
                         seconds=context.seconds if context.quick else seconds)
    for run in (run for runs in case["runs"].values() for run in runs):
        moved = run["mb_per_s"] * run["seconds"]
        run["cpu_us_per_mb"] = run["cpu_us_per_request"] * run["requests"] / moved


def controls(context):
    """Returns TCP's congestion controls that a namespace may use, the system's default first."""
    def words(name):
        with open(f"/proc/sys/net/ipv4/tcp_{name}congestion_control") as file:
            return file.read().split()

    own = words("")
    return own if context.quick else list(dict.fromkeys(own + words("allowed_")))


def over_the_link(context, root, body, control):
    link = Wan(context, DELAY_MS, 0, RATE_MBIT, QUEUE_KB, SEED)
    some = servers(context, control, root)
    try:
        for end in (link.server, link.client):
            for name, value in {**SYSCTLS, "tcp_congestion_control": control}.items():
                end.set("ipv4/" + name, value)
        with link.server:  # the server's own checks would take long over the link
            start(context, some, body)
        for server in some.values():
            server.address = SERVER
        for count in context.pick(context.connections, CONNECTIONS, QUICK_CONNECTIONS):
            with link.client:
                take_turns(context, {"connections": count, "link": "wide", "control": control},
                           some, Pull(context, count, link), WIDE_SECONDS)
        told = link.end()
    finally:
        for server in some.values():
            server.stop()
        link.close()
    context.table(f"The link with {control}, by what it counted",
                  ["from the", "packets", "lost to a full queue, %", "not read in time, %"],
                  [[end, f"{one['packets']}", share(one, "overflowed"), share(one, "unread")]
                   for end, one in told.items()])


def share(counts, key):
    return f"{100 * counts[key] / max(1, counts['packets']):.2f}"


def over_loopback(context, root, body):
    some = servers(context, "loopback", root)
    try:
        start(context, some, body)
        take_turns(context, {"connections": SHARERS, "link": "loopback", "control": "any"}, some,
                   Pull(context, SHARERS), LOOPBACK_SECONDS)
    finally:
        for server in some.values():
            server.stop()


def measure(context):
    netns.require()
    root, body = make_root(context)
    for control in controls(context):
        over_the_link(context, root, body, control)
    over_loopback(context, root, body)


def verdicts(cases):
    """Targets: the pipe as full as with nginx; shares that are equal, or as equal as nginx's."""
    found = []
    for case in cases:
        name = report.case_name(case)
        if wide(case["parameters"]):
            # When the part began, more than the link carries was waiting behind a lost segment.
            text = f"steady MB/s, SWEET by nginx, {name}"
            if "nginx" in case["runs"]:
                value, other = (min(LINK_MB, bars.median(case, row, "steady_mb_per_s"))
                                for row in ("sweet", "nginx"))
                found.append(bars.at_least(text, value / other, RATE_BAR))
            else:
                found += bars.uncompared(case, ["nginx"], text, RATE_BAR)
        if case["parameters"]["connections"] == SHARERS:
            value = bars.median(case, "sweet", "jain")
            other = bars.median(case, "nginx", "jain") if "nginx" in case["runs"] else 1
            found.append((f"Jain's index of SWEET, {name}", value,
                          f"at least {FAIR_BAR}, or nginx's ({other:.3f})",
                          value >= min(FAIR_BAR, other)))
    return found
