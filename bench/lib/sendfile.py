# SPDX-License-Identifier: MIT
"""The effect of each step from plain calls to send_file() and fewer packets.

Tables 3 to 10 of paper 000: a connection for each request of one file; each row has one more
option of SWEET, of the network or of the client than the row that it is compared with. Server
and client are in namespaces of their own on a cable; what the server's end receives is processed
by the server's CPU, as on a machine of its own.
"""

import os
import statistics

from . import load, netns, report
from .servers import Row, Sweet, find_program

KB = 1 << 10
SIZES = (KB, 2 * KB, 4 * KB, 8 * KB, 16 * KB, 64 * KB, 256 * KB, 1024 * KB)
QUICK_SIZES = (KB,)
CLIENTS = 30  # as WebStone in the paper
CACHE_MIB = 16
FASTOPEN_BOTH = 3  # net.ipv4.tcp_fastopen: clients and servers
PORTS = "1024 65535"
# The paper's percentages of more operations per second, in the order of SIZES.
ACCEPTEX = (1.03, 1.26, 1.08, 0.80, 0.53, 0.41, -0.24, 0.07)
SEND_FILE = (-5.11, -4.45, -2.38, -2.04, -3.23, -3.77, -18.30, -18.75)
NO_COPY = (7.13, 9.72, 13.17, 19.02, 30.21, 50.21, 85.14, 81.93)
NO_CHECKSUM = (1.68, 0.92, 2.02, 4.33, 6.41, 8.43, 8.64, 8.94)
CLOSE = (7.58, 6.48, 5.66, 0.47, -0.07, 0.06, 0.06, 0.37)
ACK_OF_FIN = (5.81, 5.13, 3.17, 2.46, 2.08, 0.39, -0.08, -0.46)
ACK_OF_SYN = (4.94, 5.23, 5.05, 3.67, 3.17, 0.88, -0.17, -0.05)
TOTAL = (23.46, 24.63, 29.06, 29.81, 41.12, 58.83, 64.00, 60.81)

# Of the server, in all rows: acknowledgements wait for responses, as on AIX.
COMMON = ["--delay-ack=on"]
PLAIN = ["--data-path=posix", "--close-option=off"]
COPY = ["--io=uring", "--send-method=copy", "--close-option=off"]
SPLICE = ["--io=uring", "--send-method=splice", "--close-option=off"]
CLOSING = ["--io=uring", "--send-method=splice"]
COLUMNS = (*report.COLUMNS, ("packets", "packets", False))
FIN_LATE = ["--delay-ack-fin"]
BOTH_LATE = ["--delay-ack-fin", "--delay-ack-syn"]


class Step:
    """A row, the row that it is compared with, and the paper's result.

    checksums: computed by the server's CPU, or left to a network card (here, to nobody).
    """

    def __init__(self, name, before, paper, arguments, checksums=True, client=()):
        self.name, self.before, self.paper = name, before, paper
        self.arguments, self.checksums, self.client = arguments, checksums, client


STEPS = [
    Step("plain", None, None, ["--io=epoll", *PLAIN]),
    Step("accept with receive", "plain", ACCEPTEX, ["--io=uring", *PLAIN]),
    Step("defer accept", "plain", ACCEPTEX, ["--io=epoll", *PLAIN, "--defer-accept=on"]),
    Step("send_file with a copy", "accept with receive", SEND_FILE, COPY),
    Step("splice, no header option", "send_file with a copy", None,
         [*SPLICE, "--header-option=off"]),
    Step("splice", "send_file with a copy", NO_COPY, SPLICE),
    Step("zero-copy", "send_file with a copy", NO_COPY,
         ["--io=uring", "--send-method=zerocopy", "--close-option=off"]),
    Step("no checksums", "splice", NO_CHECKSUM, SPLICE, checksums=False),
    Step("close option", "no checksums", CLOSE, CLOSING, checksums=False),
    Step("ACK of FIN late", "close option", ACK_OF_FIN, CLOSING, checksums=False,
         client=FIN_LATE),
    Step("ACK of SYN late", "ACK of FIN late", ACK_OF_SYN, CLOSING, checksums=False,
         client=BOTH_LATE),
    Step("TCP Fast Open", "ACK of SYN late", None,
         [*CLOSING, "--fastopen=1024", "--linger=off"], checksums=False,
         client=[*BOTH_LATE, "--fastopen"]),
]


class Inside(load.Replay):
    """Clients at their end of a cable; also reports how many packets a request took."""

    def __init__(self, pair, *arguments):
        super().__init__(*arguments)
        self.pair = pair
        self.program, *self.arguments = pair.client.argv(self.program, *self.arguments)

    def packets(self):
        counters = self.pair.server.counters()
        return counters["TcpInSegs"] + counters["TcpOutSegs"]

    def run(self, server, seconds):
        before = self.packets()
        got = super().run(server, seconds)
        return {**got, "packets": (self.packets() - before) / got["requests"]}


def make_pair(context):
    """The cable: segments of at most one packet, so that each has its checksum."""
    pair = netns.Pair()
    for end in (pair.server, pair.client):
        end.set("ipv4/tcp_fastopen", FASTOPEN_BOTH)
        end.set("ipv4/ip_local_port_range", PORTS)
    pair.offload("tso", "off", "gso", "off", "gro", "off")
    pair.steer(context.server_cpu, context.client_cpu)
    return pair


def make_servers(context, pair, root):
    """Returns {arguments: server}: steps of the network or the client share one."""
    servers = {}
    for step in STEPS:
        key = tuple(step.arguments)
        if key not in servers:
            servers[key] = Sweet(context, root, "auto", CACHE_MIB,
                                 name="sweet-" + step.name.replace(",", "").replace(" ", "-"),
                                 arguments=[*COMMON, *step.arguments])
            servers[key].enter(pair.server, pair.addresses[0])
    context.start(servers.values())
    return servers


def measure(context):
    find_program("ethtool")
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    root = os.path.join(context.directory, "root")
    os.mkdir(root, 0o755)
    for size in sizes:
        with open(os.path.join(root, str(size)), "wb") as file:
            file.write(os.urandom(size))
    with make_pair(context) as pair:
        take_turns(context, pair, make_servers(context, pair, root), sizes)
    for title, of in (("requests per second", gain), ("requests per CPU time", saving)):
        context.table(f"percent more {title} than the row before, and the paper's in brackets",
                      *steps_table(context.cases, of))
    context.table("packets of an exchange", *packets_table(context.cases))


def take_turns(context, pair, servers, sizes):
    checksums = None

    def prepare(row):
        nonlocal checksums
        if row.checksums != checksums:
            pair.offload("tx", "off" if row.checksums else "on")
            checksums = row.checksums

    for size in sizes:
        wanted = os.path.join(context.directory, f"{size}.list")
        load.write_list(wanted, [(f"/{size}", size)])
        rows = []
        for step in STEPS:
            client = Inside(pair, context, CLIENTS, wanted, ["--close", *step.client])
            row = Row(step.name, servers[tuple(step.arguments)], client)
            row.checksums = step.checksums
            rows.append(row)
        context.turns({"size": size}, rows, before=prepare)


# --- what it says ------------------------------------------------------------------


def middle(runs, field):
    return statistics.median(run[field] for run in runs)


def gain(case, row, before):
    runs = case["runs"]
    return middle(runs[row], "requests_per_s") / middle(runs[before], "requests_per_s")


def saving(case, row, before):
    runs = case["runs"]
    return middle(runs[before], "cpu_us_per_request") / middle(runs[row], "cpu_us_per_request")


def cell(case, of, row, before, paper):
    text = f"{(of(case, row, before) - 1) * 100:+.1f}"
    size = case["parameters"]["size"]
    return text + (f" ({paper[SIZES.index(size)]:+.1f})" if paper and size in SIZES else "")


def steps_table(cases, of):
    """(heads, rows)."""
    heads = ["step", "from", *(report.size_name(case["parameters"]["size"]) for case in cases)]
    wanted = [(step.name, step.before, step.paper) for step in STEPS if step.before]
    wanted.append(("ACK of SYN late", "plain", TOTAL))
    return heads, [[row, before, *(cell(case, of, row, before, paper) for case in cases)]
                   for row, before, paper in wanted]


def packets_table(cases):
    """(heads, rows)."""
    heads = ["step", *(report.size_name(case["parameters"]["size"]) for case in cases)]
    return heads, [[step.name, *(f"{middle(case['runs'][step.name], 'packets'):.2f}"
                                 for case in cases)] for step in STEPS]


def verdicts(cases):
    """Target: all steps together pay at each size, in CPU time; the paper's minimum is a
    quarter."""
    return [(f"{report.size_name(case['parameters']['size'])}: all steps of the paper, requests"
             " per CPU time, times those of plain calls", found, 1, found > 1)
            for case in cases for found in (saving(case, "ACK of SYN late", "plain"),)]
