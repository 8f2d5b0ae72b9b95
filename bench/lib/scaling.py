# SPDX-License-Identifier: MIT
"""scaling: SWEET with 1, 2 and 4 loop threads on two CPUs that it shares with its client: the
cost of a request with as many threads as CPUs and more, and how threads share the work.
"""

import json
import urllib.request

from . import bars, files, load, process, report
from .nginx import Nginx
from .plot import Plot
from .servers import Row, Sweet, peer

SIZES, QUICK_SIZES = (1 << 10, 10 << 10), (1 << 10,)
CONNECTIONS = 64
THREADS = (1, 2, 4)
WORKERS = (1, 2)
STATUS_SECONDS = 60
# Targets: CPU time of a request and requests/s compared with fewer threads, and with as many as
# CPUs.
CPU_BAR, RATE_BAR, BALANCE_BAR = 1.1, 0.9, 0.5

COLUMNS = (("requests_per_s", "requests/s", True), ("cpu_us_per_request", "CPU us/request", True),
           ("client_us_per_request", "client us", False), ("core_percent", "% of a core", False),
           ("p50_us", "p50 us", False), ("p99_us", "p99 us", False),
           ("accepted_balance", "accepted, least / most", False),
           ("cpu_balance", "CPU, least / most", False))
PLOTS = (Plot("cpu_us_per_request", "server CPU, us/request", "CPU time by threads", "size"),
         Plot("requests_per_s", "requests/s", "requests/s by threads", "size"))


def sweet_name(threads):
    return f"sweet, {threads} thread{'s' * (threads > 1)}"


def least_by_most(values):
    return min(values) / max(values) if max(values) > 0 else 0


class Watched:
    """A client of a server with that many loops; also reports how evenly they shared the work."""

    def __init__(self, client, loops):
        self.client, self.loops = client, loops

    def run(self, server, seconds):
        times, accepted = self.times(server), self.accepted(server)
        got = self.client.run(server, seconds)
        spent = sorted((now - times.get(which, 0) for which, now in self.times(server).items()),
                       reverse=True)
        # The busiest threads are the loops; the others wait for a disk or supervise.
        got["cpu_balance"] = least_by_most(spent[:self.loops])
        if accepted:
            got["accepted_balance"] = least_by_most(
                [now - then for now, then in zip(self.accepted(server), accepted)])
        return got

    @staticmethod
    def times(server):
        """{(process, thread): ns on a CPU}"""
        return {(pid, thread): spent
                for pid in process.tree([popen.pid for popen in server.popens])
                for thread, spent in process.thread_times(pid).items()}

    @staticmethod
    def accepted(server):
        """Returns the connections that each thread of SWEET has accepted; None for other
        servers."""
        if not isinstance(server, Sweet):
            return None
        url = f"http://{server.address}:{server.port}/.sweet/status.json"
        with urllib.request.urlopen(url, timeout=STATUS_SECONDS) as answer:
            return [one["accepted"] for one in json.load(answer)["each_thread"]]


def measure(context):
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    root = files.make_root(context, sizes)
    cpus = {context.server_cpu, context.client_cpu}
    loops, rows = {}, {}
    for threads in THREADS:
        sweet = Sweet(context, root, context.io[0], files.cache_mib(sizes),
                      name=f"sweet-{threads}-threads")
        sweet.argv[sweet.argv.index("--threads") + 1] = str(threads)
        loops[sweet], rows[sweet] = threads, sweet_name(threads)
    for workers in WORKERS:
        nginx = peer("nginx", Nginx, context, root, f"nginx-{workers}-workers", workers)
        loops[nginx], rows[nginx] = workers, f"nginx, {workers} worker{'s' * (workers > 1)}"
    for server in loops:
        server.cpu = cpus
    context.start(loops)
    for size in sizes:
        context.check(files.pages, size)
        for connections in context.connections or (CONNECTIONS,):
            client = load.Wrk(cpus, connections, size, files.page(size), files.FILES)
            context.turns({"size": size, "connections": connections},
                          [Row(rows[server], server, Watched(client, count))
                           for server, count in loops.items()])


def verdicts(cases):
    found = []
    one, two, four = map(sweet_name, THREADS)
    for case in cases:
        name = report.case_name(case)
        for over, under in ((two, one), (four, two)):
            value = (bars.median(case, over, "cpu_us_per_request")
                     / bars.median(case, under, "cpu_us_per_request"))
            found.append((f"CPU per request, {over} by {under}: {name}", value,
                          f"at most {CPU_BAR}", value <= CPU_BAR))
        value = bars.median(case, four, "requests_per_s") / bars.median(case, two, "requests_per_s")
        found.append((f"requests/s, {four} by {two}: {name}", value, RATE_BAR, value >= RATE_BAR))
        value = bars.median(case, two, "accepted_balance")
        found.append((f"connections accepted by a thread, least / most of {two}: {name}", value,
                      BALANCE_BAR, value >= BALANCE_BAR))
    return found
