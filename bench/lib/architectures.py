# SPDX-License-Identifier: MIT
"""architectures: SWEET as one loop with helpers (amped), one loop alone (sped),
a thread for each connection (mt) and a process for each (mp).

Three parts: files that are all in memory; a data set larger than the memory of
the servers' control group; few and many kept connections over a wide-area link.
"""

import os
import random
import statistics

from . import cgroup, disk, files, idle, netns, report, weblog
from .cgroup import Unavailable
from .documents import Documents
from .load import Replay, Wrk, check, write_list
from .plot import Plot
from .process import Failure
from .servers import Row, Sweet
from .tracereplay import TRACE
from .wan import SERVER, Wan

ARCHITECTURES = ("amped", "sped", "mt", "mp")
SIZES, QUICK_SIZES = (1 << 10, 10 << 10, 100 << 10), (10 << 10,)
CONNECTIONS = 64
KINDS = {"kept": (), "connection per request": ("Connection: close",)}
# If each connection needs a thread or a process, start some more: an old one may not be free
# yet.
SPARE = 8
CACHE_MIB = 128  # of all processes of a server together, as in the paper
LEAST_MIB = 1  # minimum of one process: the smallest that SWEET accepts

MEMORY_MIB, QUICK_MEMORY_MIB = 256, 64  # of a server's group
DISK_CACHE_MIB = 32  # the server's own cache, a part of that
DISK_QUICK_CONNECTIONS = 16
SETS = 3  # data set, in sizes of that memory
WARM_PERCENT = 1  # of the set that another program may have read
# One as slow as disks can be, and the one that is there: (bytes, reads) a second.
DISKS = {"slow disk": (50_000_000, 1000), "this disk": (None, None)}

WAN_CONNECTIONS, WAN_QUICK_CONNECTIONS = (16, 64, 256, 1000, 2000), (64,)
WAN_BYTES = 90_000_000  # the size of the paper's data set
DELAY_MS, LOSS_PERCENT, RATE_MBIT, QUEUE_KB = 20, 0.5, 400, 8000
# Many connections get longer runs: requests in flight at the end cost CPU time but are not
# counted.
WAN_CLIENTS_A_SECOND = 200
ANSWER_SECONDS = 15  # a packet may be lost repeatedly

LARGEST = 1 << 20  # maximum size of a trace's files: one of 60 MB would take a whole run
SEED = 1

AMPED_BY_SPED, AT_LEAST, NOISE = 1.03, 1.0, 0.03

COLUMNS = (*report.COLUMNS, ("disk_mb_per_s", "disk MB/s", False))


def part(name):
    """For the plot of one part's cases."""
    return lambda parameters: parameters["part"] == name


PLOTS = (
    Plot("cpu_us_per_request", "server CPU, us/request", "all in memory", "size",
         where=part("cached"), name="cached"),
    Plot("mb_per_s", "MB/s", "data set three times the memory", "disk",
         where=part("disk-bound"), name="disk"),
    Plot("requests_per_s", "requests/s", "wide-area link", "connections",
         where=part("wan"), name="wan-requests"),
    Plot("cpu_us_per_request", "server CPU, us/request", "wide-area link", "connections",
         where=part("wan"), name="wan-cpu"),
)


def servers(context, label, root, connections, cache_mib, own_mib=None):
    """Makes a server of each architecture, not started.

    The processes of mp divide the cache's size (sweet(8)), unless each is to have own_mib.
    """
    made = []
    for arch in ARCHITECTURES:
        count = connections + SPARE if arch in ("mt", "mp") else 1
        mib = own_mib * count if own_mib and arch == "mp" else cache_mib
        sweet = Sweet(context, root, context.io[0], mib, name=f"{arch}-{label}",
                      arguments=["--arch", arch])
        sweet.argv[sweet.argv.index("--threads") + 1] = str(count)
        made.append(sweet)
    return made


def rows(some, client):
    return [Row(arch, server, client) for arch, server in zip(ARCHITECTURES, some)]


def stop(some):
    """Stops them so that they disturb nobody; their names remain for the report."""
    for server in some:
        server.stop()


class Sites:
    """Makes several sites, each with the documents of a log, and requests for them.

    A request of the log goes to a random site, so the bytes that are requested repeatedly grow
    with the number of sites.
    """

    def __init__(self, context, at_least):
        """Makes sites with at least that many bytes."""
        log = weblog.read(context.options.log or os.path.join(context.source, TRACE))
        self.sizes = {number: size for number, size in enumerate(log.sizes) if size <= LARGEST}
        self.order = [number for number in log.order if number in self.sizes]
        if not self.order:
            raise Failure(f"{log.words}: none of at most {LARGEST} bytes")
        self.site_bytes = sum(self.sizes.values())
        self.count = self.sites_of(at_least)
        self.documents = Documents(context, "sites", [
            (self.path(site, number), size)
            for site in range(self.count) for number, size in self.sizes.items()])

    def sites_of(self, at_least):
        return -(-at_least // self.site_bytes)

    @staticmethod
    def path(site, number):
        return f"/{site:03d}/{number:04d}.bin"

    def list(self, context, name, count):
        """Returns the file of the requests for the first few sites, for Replay."""
        chance = random.Random(SEED)
        path = os.path.join(context.directory, name)
        write_list(path, ((self.path(chance.randrange(count), number), self.sizes[number])
                          for _ in range(count) for number in self.order))
        return path

    def go_cold(self):
        kept = 100 * self.documents.drop()
        if kept > WARM_PERCENT:
            raise Unavailable(f"{kept:.0f} % of the files stay in the page cache, which was to be"
                              " cold: is TMPDIR on a file system without a disk, such as tmpfs?")


# --- All in memory ---------------------------------------------------------------------


def cached(context):
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    root = files.make_root(context, sizes, "cached")
    # All files fit into the cache of each process, too.
    some = servers(context, "cached", root, CONNECTIONS, files.cache_mib(sizes),
                   LEAST_MIB + (2 * files.FILES * sum(sizes) >> 20))
    context.start(some)
    for size in sizes:
        for server in some:
            check(server.name, server.port, files.pages(size))
        for kind, headers in KINDS.items():
            if context.quick and headers:
                continue
            client = Wrk(context.client_cpu, CONNECTIONS, size, files.page(size), files.FILES,
                         headers)
            context.turns({"part": "cached", "size": size, "connections": CONNECTIONS,
                           "kind": kind}, rows(some, client))
    stop(some)


# --- Bound by the disk -----------------------------------------------------------------


def disk_bound(context, sites, memory):
    connections = context.pick(None, CONNECTIONS, DISK_QUICK_CONNECTIONS)
    client = disk.Watched(Replay(context, connections,
                                 sites.list(context, "disk.list", sites.count)))
    device = cgroup.disk_of(sites.documents.root)
    tell_speed(context, sites)
    for name, (read_bytes, reads) in DISKS.items():
        if context.quick and not reads:
            continue
        disk_case(context, sites, name, connections, client,
                  {"memory": memory << 20, "disk": device, "read_bytes": read_bytes,
                   "read_operations": reads})


def tell_speed(context, sites):
    try:
        found = disk.speed(sites.documents.paths())
    except OSError as error:
        raise Unavailable(f"{sites.documents.root}: no reading past the page cache:"
                          f" {error.strerror}") from error
    context.table("This disk, without a limit: reads of 64 KB, one at a time",
                  ["pass", "", "median us", "99th percentile us", "MB/s"],
                  [[which, "", f"{middle_us:.0f}", f"{late_us:.0f}", f"{rate:.0f}"]
                   for which, middle_us, late_us, rate in found])


def disk_case(context, sites, name, connections, client, limits):
    """Each server has a group of its own, so that no server profits from what another has
    read."""
    groups, some = [], []
    try:
        some = servers(context, name.replace(" ", "-"), sites.documents.root, connections,
                       DISK_CACHE_MIB)
        for server in some:
            groups.append(cgroup.Group(f"bench-{os.getpid()}-{server.name}", **limits))
            server.before = groups[-1].enter
        context.start(some)
        sites.documents.check(some)
        context.turns({"part": "disk-bound", "disk": name, "connections": connections,
                       "files": f"{sites.count * sites.site_bytes >> 20} MB of files",
                       "memory": f"{limits['memory'] >> 20} MB of memory"},
                      rows(some, client), lambda row: sites.go_cold())
    except Failure as failure:
        if any(group.killed() for group in groups):
            raise Failure(f"{failure}\nThe kernel has killed it: {limits['memory'] >> 20} MB"
                          " are too little for its processes.") from failure
        raise
    finally:
        stop(some)
        for group in groups:
            group.remove()


# --- A wide-area link ------------------------------------------------------------------


def wide_area(context, sites):
    names = sites.list(context, "wan.list", min(sites.count, sites.sites_of(WAN_BYTES)))
    counts = context.pick(context.connections, WAN_CONNECTIONS, WAN_QUICK_CONNECTIONS)
    idle.raise_limit(max(counts) + 1000)
    link = Wan(context, DELAY_MS, LOSS_PERCENT, RATE_MBIT, QUEUE_KB, SEED)
    try:
        for count in counts:
            client = Replay(context, count, names, ["--timeout", ANSWER_SECONDS])
            wide_area_case(context, sites, link, client, count)
        told = link.end()
    finally:
        link.close()
    context.table("The link, by what it counted", ["from the", "packets", "lost by chance, %",
                                                   "lost to a full queue, %", "not read in time"],
                  [[end, f"{one['packets']}", share(one, "lost"), share(one, "overflowed"),
                    f"{one['unread']}"] for end, one in told.items()])


def share(counts, key):
    return f"{100 * counts[key] / max(1, counts['packets']):.2f}"


def wide_area_case(context, sites, link, client, count):
    some = servers(context, f"wan-{count}", sites.documents.root, count, CACHE_MIB)
    for server in some:
        server.enter(link.server, SERVER)
    try:
        context.start(some)
        with link.server:  # with the long delay each request would take a round trip
            sites.documents.check(some)
        with link.client:
            context.turns({"part": "wan", "connections": count}, rows(some, client),
                          seconds=max(context.seconds, count // WAN_CLIENTS_A_SECOND))
    finally:
        stop(some)


# --- All of them -----------------------------------------------------------------------


def measure(context):
    netns.require()
    cached(context)
    memory = context.pick(None, MEMORY_MIB, QUICK_MEMORY_MIB)
    sites = Sites(context, SETS * memory << 20)
    try:
        disk_bound(context, sites, memory)
    except Unavailable as why:
        context.table("Left out", ["what", "", "why"], [["bound by the disk", "", str(why)]])
    wide_area(context, sites)


def pairs(case, over, under, field):
    return [a[field] / b[field] for a, b in zip(case["runs"][over], case["runs"][under])]


def verdicts(cases):
    found = []
    for case in cases:
        parameters = case["parameters"]
        if parameters["part"] == "cached":
            value, _ = middle(pairs(case, "amped", "sped", "cpu_us_per_request"))
            name = f"{parameters['size']} bytes, {parameters['kind']}"
            found.append((f"CPU per request, AMPED by SPED, cached: {name}", value,
                          f"at most {AMPED_BY_SPED}", value <= AMPED_BY_SPED))
        elif parameters["part"] == "disk-bound":
            for row in ("mp", "mt"):
                value, noise = middle(pairs(case, "amped", row, "mb_per_s"))
                found.append((f"MB/s, AMPED by {row.upper()}, {parameters['disk']}", value,
                              f"at least {AT_LEAST:g} (noise {noise:.3f})",
                              value >= AT_LEAST - noise))
    return found


def middle(ratios):
    """Returns (median, noise): half of the pairs differ from it by more; at most NOISE
    counts."""
    value = statistics.median(ratios)
    return value, min(NOISE, statistics.median(abs(ratio - value) for ratio in ratios))
