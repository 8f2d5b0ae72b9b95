# SPDX-License-Identifier: MIT
"""The experiments, by name. Each starts its servers, checks them, measures them in turn and
stores its figures in the Context; the caller prints them.
"""

import copy
import os
import resource
import shutil
import sys

from . import (architectures, breakdown, checksum, compress, dynamic, few, fixed, groups, idle,
               kernel, large, latency, library, load, nic, packets, pipe, plot, process, proxy,
               reads, reload, replacement, report, rules, scaling, sendfile, slow, specweb, surge,
               tls, tracereplay, tux)
from .process import Failure
from .servers import AGAIN, BEFORE, NOT_SELECTED, Row, Sweet, find_built, present

EXPERIMENTS = {}


class Experiment:
    """One of them: how it is measured and what is said of its cases.

    compare: prints what the cases say of the servers, or None.
    module: may have verdicts(cases), a list of (text, value, bar, reached);
      PLOTS, of plot.Plot; COLUMNS, what tables show of the runs, as in report,
      or None: the module makes its own tables; derive(content), which makes again
      what follows from the cases of earlier results, and returns True.
    cpus: whether the servers' and the client's CPU are needed.
    root: whether it needs root, for namespaces and the like.
    choice: whether --before and --servers apply. It then starts and measures its servers by the
      Context only, and verdicts need no rows but those of the server "sweet".
    """

    def __init__(self, name, measure, compare, summary, module, cpus, root, choice):
        self.name, self.measure, self.compare, self.summary = name, measure, compare, summary
        self.cpus, self.root, self.choice = cpus, root, choice
        self.verdicts = getattr(module, "verdicts", lambda cases: [])
        self.plots = getattr(module, "PLOTS", plot.USUAL)
        self.columns = getattr(module, "COLUMNS", report.COLUMNS)
        self.derive = getattr(module, "derive", lambda content: False)

    def check(self, options):
        """Fails if the experiment cannot run here."""
        missing = set(options.cpus) - os.sched_getaffinity(0)
        if missing and self.cpus:
            raise Failure(f"CPU {min(missing)} is not there or not allowed: the servers and the"
                          " client need one each (--cpus)")
        if self.root and os.geteuid():
            raise Failure(f"{self.name} needs root: it makes network namespaces or limits of its"
                          " own")
        if (options.before or options.servers) and not self.choice:
            raise Failure(f"{self.name} has neither --before nor --servers; these have: "
                          + ", ".join(one.name for one in EXPERIMENTS.values() if one.choice))
        if options.before:
            find_built(options.before, "sweet", "sweet")


def experiment(name, compare, summary, module=None, cpus=True, root=False, choice=False):
    """Registers a function of a Context under a name."""

    def register(function):
        EXPERIMENTS[name] = Experiment(name, function, compare, summary, module, cpus, root,
                                       choice)
        return function

    return register


class Context:
    """The state of one invocation; owns the servers that it started.

    An experiment stores cases here, and prints its own tables with table(). Without cases, it
    stores records (flat dictionaries) and verdicts instead.
    """

    def __init__(self, options, source, directory):
        self.options = options
        self.build = options.build
        self.label = ""  # of the servers of this build; see with_build()
        self.source = source
        self.directory = directory
        self.server_cpu, self.client_cpu = options.cpus
        self.runs = options.runs
        self.seconds = options.seconds
        self.sizes = options.sizes  # None if the command line does not set it
        self.connections = options.connections
        self.io = options.io
        self.quick = options.quick
        self.servers = []
        self.folders = []  # outside of directory; removed at the end
        self.cases, self.tables, self.records, self.verdicts = [], [], [], []
        self.skipped = None  # why nothing was measured, if that is no failure

    def pick(self, given, usual, quick):
        """Returns what the command line says, or else the default with or without --quick."""
        return given or (quick if self.quick else usual)

    def table(self, title, heads, rows):
        """Prints a table and keeps it for the results."""
        print(f"\n{title}\n")
        report.table(heads, rows)
        self.tables.append({"title": title, "heads": heads, "rows": rows})

    def with_build(self, build, label):
        """Returns this context with another build, for servers whose names get that label."""
        other = copy.copy(self)
        other.build, other.label = build, label
        return other

    def selects(self, server):
        """With --servers: SWEET's names are exact; a peer's first word is enough."""
        chosen, first = self.options.servers, server.name.partition("-")[0]
        if not chosen or server.required:
            return True
        if not isinstance(server, Sweet):
            return server.name in chosen or first in chosen
        return server.name in chosen or ("sweet" in chosen and server.name in
                                         [f"sweet-{io}" for io in self.io])

    def twins(self, server):
        """With --before, returns SWEET of the other build, and of this one again."""
        if not self.options.before or not isinstance(server, Sweet):
            return ()
        return [server.twin(self.with_build(build, label))
                for build, label in ((self.options.before, BEFORE), (self.build, AGAIN))]

    def start(self, servers):
        for server in servers:
            if not self.selects(server):
                server.absent = NOT_SELECTED
                continue
            self.servers.append(server)
            server.twins = self.twins(server)
            for one in (server, *server.twins):
                one.begin()
                print(f"server:  {one.name}: {one.version}; {one.detail}".rstrip("; "),
                      flush=True)

    def start_if_possible(self, server):
        """Returns True if it succeeded: not every build and kernel supports everything."""
        try:
            self.start([server])
        except Failure as failure:
            print(f"skipped: {server.name}: {str(failure).splitlines()[-1]}", flush=True)
            self.servers.remove(server)
            server.stop()
            return False
        return True

    def stop(self):
        for server in self.servers:
            server.stop()
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)

    def check(self, pages, size):
        for server in present(self.servers):
            if server.own_bodies:
                continue
            load.check(server.name, server.port, pages(size), tls=server.tls)

    def turns(self, parameters, rows, before=None, seconds=None, warm=True,
              runs=None):
        """Measures one case: a warm-up, except with --quick, then the rows in turn, repeatedly.

        before(row), if given, is called before each run, and its time is not measured. runs:
        overrides the command line. A row whose server is not installed has no runs, but says so;
        one whose server is not selected is left out. A row is followed by those of the twins of
        its server, so that both of this build are equally far from the one between them.
        """
        seconds, count = seconds or self.seconds, runs or self.runs
        case = {"parameters": parameters}
        rows = [row for row in rows if row.server.absent != NOT_SELECTED]
        twins = {row.name: twin_rows(row) for row in rows if row.server.twins}
        if twins:
            case["twins"] = {name: {one.server.label: one.name for one in some}
                             for name, some in twins.items()}
            rows = [one for row in rows for one in (row, *twins.get(row.name, ()))]
        absent = {row.name: row.server.absent for row in rows if row.server.absent}
        if absent:
            case["absent"] = absent
        rows = [row for row in rows if not row.server.absent]
        case["runs"] = {row.name: [] for row in rows}
        for run in range(-1 if warm and not self.quick else 0, count):
            for row in rows:
                progress(f"{report.case_name(case)}, {row.name}, "
                         + (f"run {run + 1} of {count}" if run >= 0 else "warm-up"))
                if before:
                    before(row)
                figures = self.turn(row, seconds if run >= 0 else 1)
                if run >= 0:
                    case["runs"][row.name].append(figures)
        progress("")
        self.cases.append(case)
        return case

    def turn(self, row, seconds):
        """Returns the figures of one run of a row's client, with the server's CPU time."""
        server = row.server
        server.check_alive()
        client = children_cpu()
        cpu, busy = server.cpu_now(), process.core_busy(self.server_cpu)
        if server.cpu_then:
            cpu.since(server.cpu_then, server)  # fails if a process ended in between
        try:
            got = dict(row.client.run(server, seconds))
        except Failure:
            server.check_alive()  # the server's last messages tell more than the client's
            raise
        server.cpu_then = server.cpu_now()
        spent = server.cpu_then.since(cpu, server)
        other = process.core_busy(self.server_cpu) - busy - spent
        server.check_alive()
        requests, moved, microseconds = (got.pop(key) for key in ("requests", "bytes", "duration"))
        return {
            "requests": requests,
            "seconds": microseconds / 1e6,
            "requests_per_s": requests / microseconds * 1e6,
            "mb_per_s": moved / microseconds,
            "p50_us": got.pop("p50", None),
            "p99_us": got.pop("p99", None),
            "cpu_us_per_request": spent / requests / 1e3,
            "client_us_per_request": (children_cpu() - client) * 1e6 / requests,
            "core_percent": spent / microseconds / 10,
            "other_percent": max(0, other / microseconds / 10),
            **got,
        }


def twin_rows(row):
    return [Row(f"{row.name}-{twin.label}", twin, row.client) for twin in row.server.twins]


def children_cpu():
    """Returns the CPU seconds of the children that were waited for: here, the client."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


@experiment("fixed", report.print_ratios,
            "static files of one size, 100 of each: SWEET, its peers and the limit",
            fixed, choice=True)
def fixed_sizes(context):
    fixed.measure(context)


@experiment("large", report.print_ratios,
            "files that no cache holds, 54 MB and 1 GB: CPU time for a megabyte",
            large, choice=True)
def large_files(context):
    large.measure(context)


@experiment("rules", report.print_ratios,
            "a configuration of 80 prefixes and 20 regular expressions beside one without", rules)
def many_rules(context):
    rules.measure(context)


@experiment("compress", report.print_ratios,
            "text with gzip: kept variants, precompressed files, and nginx that compresses each",
            compress)
def compressed_text(context):
    compress.measure(context)


@experiment("groups", report.print_ratios,
            "full handshakes of TLS by the group of their key exchange: X25519, X25519MLKEM768",
            groups)
def groups_of_handshakes(context):
    groups.measure(context)


@experiment("dynamic", dynamic.print_bars,
            "bodies made anew per request: SWEET's workers and peers' FastCGI",
            dynamic, choice=True)
def dynamic_bodies(context):
    dynamic.measure(context)


@experiment("few", report.print_ratios,
            "FastCGI with more requests than processes: latency, SWEET beside nginx", few)
def few_processes(context):
    few.measure(context)


@experiment("proxy", report.print_ratios,
            "bodies of an HTTP server behind: SWEET and its peers; cached responses beside files",
            proxy, choice=True)
def http_behind(context):
    proxy.measure(context)


@experiment("tls", report.print_ratios,
            "over TLS: HTTP/1.1 and HTTP/2, workers' pages, handshakes, memory of idle connections",
            tls, choice=True)
def over_tls(context):
    tls.measure(context)


@experiment("tux", report.print_ratios,
            "SWEET beside Apache as TUX was: CPU time, and a rising rate of connections", tux)
def tux_and_apache(context):
    tux.measure(context)


@experiment("latency", None,
            "how long answers take at 70 % of what the best peer can do", latency)
def latencies(context):
    latency.measure(context)


@experiment("breakdown", None,
            "SWEET's three caches of files on and off, all eight ways; heads of 32 and 64 bytes",
            breakdown)
def three_caches(context):
    breakdown.measure(context)


@experiment("idle", None, "10,000 kept connections: memory of each, and how fast the others are",
            idle)
def idle_connections(context):
    idle.measure(context)


@experiment("slow", None,
            "2,000 clients that hardly read: what others keep, memory, and every byte", slow,
            root=True)
def slow_readers(context):
    slow.measure(context)


@experiment("reload", None, "a million requests while the configuration changes: none may fail")
def reload_under_load(context):
    reload.measure(context)


@experiment("library", None, "libnabc by itself: units, hand-overs, look-ups, threads")
def library_alone(context):
    library.measure(context)


@experiment("checksum", None, "the library's checksums beside memcpy(), in the CPU's caches")
def checksums(context):
    checksum.measure(context, context.sizes or checksum.SIZES)


@experiment("reads", None, "a file read into a unit's memory: pread(), READ, READ_FIXED")
def reads_of_a_file(context):
    reads.measure(context, context.sizes or reads.SIZES)


@experiment("packets", None, "packets of one exchange of 1 KB: 9, and 8 to 5 with options of TCP",
            cpus=False, root=True)
def packets_of_an_exchange(context):
    packets.measure(context)


@experiment("replacement", None,
            "hit ratios of the replacement policies on a trace, with and without segments",
            cpus=False)
def replacement_policies(context):
    replacement.measure(context)


@experiment("sendfile", None,
            "what each step to send_file() and fewer packets is worth, on a cable of its own",
            sendfile, root=True)
def steps_of_sending(context):
    sendfile.measure(context)


@experiment("architectures", None,
            "one loop with helpers, one loop, threads, processes: in memory, by disk, by WAN",
            architectures, root=True)
def server_architectures(context):
    architectures.measure(context)


@experiment("pipe", None,
            "a large file over a link of 100 ms and 1 Gbit/s: filled, and shared fairly?", pipe,
            root=True)
def long_fat_pipe(context):
    pipe.measure(context)


@experiment("scaling", None,
            "SWEET with more threads than CPUs: what a request costs, and who accepts it",
            scaling)
def threads_and_cpus(context):
    scaling.measure(context)


@experiment("surge", None,
            "users by SURGE's distributions: what each step of sending adds", surge)
def surge_users(context):
    surge.measure(context)


@experiment("specweb", report.print_ratios,
            "SPECweb99's static files for 4 to 80 clients: SWEET and its peers",
            specweb, choice=True)
def specweb_files(context):
    specweb.measure(context)


@experiment("trace", report.print_ratios,
            "a real log asked for in its order, cut to data sets: SWEET and its peers", tracereplay)
def trace_replay(context):
    tracereplay.measure(context)


@experiment("kernel", None,
            "instructions of write, sendfile, SEND_ZC and nabc.ko, counted in guests of QEMU",
            kernel, cpus=False)
def module_in_guests(context):
    kernel.measure(context)


@experiment("nic", None,
            "instructions of SWEET and its peers through a network card, in two guests of QEMU",
            nic, cpus=False, root=True)
def through_a_card(context):
    nic.measure(context)
