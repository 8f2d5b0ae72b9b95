# SPDX-License-Identifier: MIT
"""libnabc alone: runs the program bench/library of the build, test by test, and reports its
figures and whether they reach the library's targets.
"""

import resource
import statistics
import subprocess
import time

from . import process, report
from .process import Failure
from .servers import find_built

UNITS = 1_000_000
UNITS_QUICK = 100_000
THREADS, MOST_THREADS = 8, 16
MS_PER_SECOND = 50  # of --seconds: a round of one subject is that short
LIMIT_SECONDS = 900
SETTINGS = (("2 CPUs", 1), ("2 CPUs", 16), ("1 CPU", 1), ("1 CPU", 16))
WAYS = ("cache id", "pipe", "pipe of 1 MB", "Unix socket")
SENDS = ("NC_socksend, a unit each", "NC_socksend, one unit for all")
INSERTS = "insert, NC_socksend, destroy"
HOLDS = ("hold, release, a unit each", "hold, release, one unit for all",
         "hold, release, any of 1,000")
TASKS = ("send(), no library", *SENDS, INSERTS, "insert, destroy", *HOLDS)
SCALING_BAR = 0.9  # calls a second in all: more threads than CPUs by one for each


def memory_available():
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


def units_that_fit(wanted):
    """A unit takes a page, and further pages beside them are needed."""
    while wanted > 1000 and memory_available() < wanted * 4096 * 3 // 2:
        wanted //= 10
    return wanted


class Disturbance:
    """Returns the time that other programs used of the CPUs of the tests."""

    def __init__(self, cpus):
        self.cpus = cpus
        self.start = time.monotonic()
        self.others = self.busy_with_others()

    def busy_with_others(self):
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (sum(process.core_busy(cpu) for cpu in self.cpus) / 1e9
                - usage.ru_utime - usage.ru_stime)

    def tell(self):
        taken = self.busy_with_others() - self.others
        percent = 100 * taken / (time.monotonic() - self.start) / len(self.cpus)
        if percent > report.DISTURBED_PERCENT:
            print(f"\nwarning: other programs took {percent:.0f} % of the CPUs meanwhile")


class Figures:
    """{(test, subject, field): one value for each round}"""

    def __init__(self):
        self.values = {}

    def add(self, line):
        test, subject, field, value = line.split("\t")
        self.values.setdefault((test, subject, field), []).append(float(value))

    def of(self, *key):
        return self.values[key]

    def median(self, *key):
        return statistics.median(self.values[key])

    def spread(self, *key):
        values = self.values[key]
        return report.spread((statistics.median(values), min(values), max(values)))

    def ratio(self, over, under):
        """Returns (ratio of the medians, minimum, maximum of the rounds' ratios)."""
        pairs = [a / b for a, b in zip(self.of(*over), self.of(*under))]
        return self.median(*over) / self.median(*under), min(pairs), max(pairs)


def run(program, name, settings, figures):
    argv = [program, name, *map(str, settings)]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=LIMIT_SECONDS, check=False,
                              text=True)
    except subprocess.TimeoutExpired:
        raise Failure(f"library {name} does not end") from None
    if done.returncode:
        raise Failure(f"library {name}: status {done.returncode}\n{done.stderr}")
    for line in done.stdout.splitlines():
        figures.add(line)


def measure(context):
    program = find_built(context.build, "bench", "library")
    units = units_that_fit(UNITS_QUICK if context.quick else UNITS)
    settings = (context.runs, context.seconds * MS_PER_SECOND, units, MOST_THREADS,
                context.server_cpu, context.client_cpu)
    figures = Figures()
    print(f"         {context.runs} rounds of {settings[1]} ms; up to {units:,} units", flush=True)
    watch = Disturbance((context.server_cpu, context.client_cpu))
    for name in ("owner", "worker", "handover", "lookup", "threads"):
        run(program, name, settings, figures)
    counts = sorted(int(subject) for test, subject, field in figures.values
                    if test == "lookup" and field == "ns")
    print_units(context, figures)
    print_handovers(context, figures)
    print_lookups(context, figures, counts)
    print_threads(context, figures)
    context.verdicts = [(what, found, f"{kind} {bound}", reached(found, kind, bound))
                        for what, found, kind, bound in bars(figures, counts)]
    watch.tell()
    context.records = [{"test": test, "subject": subject, "field": field, "round": i + 1,
                        "value": value}
                       for (test, subject, field), values in figures.values.items()
                       for i, value in enumerate(values)]


def print_units(context, figures):
    heads = ["a unit of 4 KB, ns", "", "made, inserted, destroyed", "checksum of 4 KB",
             "a unit of 1 byte", "1 byte by pipe", "pipe / unit"]
    rows = [[who, "", figures.spread(who, "unit, 4 KB", "ns"),
             figures.spread(who, "checksum of 4 KB", "ns"),
             figures.spread(who, "unit, 1 byte", "ns"),
             figures.spread(who, "pipe, 1 byte", "ns"),
             report.spread(figures.ratio((who, "pipe, 1 byte", "ns"), (who, "unit, 4 KB", "ns")))]
            for who in ("owner", "worker")]
    context.table("median (least-most) of the rounds", heads, rows)


def print_handovers(context, figures):
    heads = ["100 KB, worker to owner", "by", "CPU us", "clock us", "CPU us, no body",
             "CPU: to cache id", "with its summing"]
    rows = []
    for where, depth in SETTINGS:
        test = f"{where}, depth {depth}"
        for way in WAYS:
            row = [f"{where}, {depth} under way", way, figures.spread(test, way, "cpu_us"),
                   figures.spread(test, way, "wall_us"), figures.spread(test, way, "empty_us")]
            if way == WAYS[0]:
                fill, copy = (figures.median(test, way, field) for field in ("fill_us", "copy_us"))
                row += [f"(filled in {fill:.2f},", f"copied in {copy:.2f})"]
            else:
                row += [report.spread(figures.ratio((test, way, "cpu_us"), (test, WAYS[0], field)))
                        for field in ("cpu_us", "summed_us")]
            rows.append(row)
    for row in rows:
        row += [""] * (len(heads) - len(row))
    context.table("CPU us: of both processes, user and system, for one body, filling the unit"
                  " apart; no body:\nthe same request answered with nothing or 1 byte; with its"
                  " summing: only a plain copy apart", heads, rows)


def print_lookups(context, figures, counts):
    heads = ["look-up by id", "", "hold + release, ns", f"to {counts[0]:,}", "plain array, ns",
             f"to {counts[0]:,}"]
    rows = []
    for count in counts:
        line = [f"{count:,} units", ""]
        for field in ("ns", "array_ns"):
            base = figures.median("lookup", str(counts[0]), field)
            line += [figures.spread("lookup", str(count), field),
                     report.number(figures.median("lookup", str(count), field) / base)]
        rows.append(line)
    context.table("random ids; plain array: the same atomic steps on random elements as large as"
                  " a unit's entry", heads, rows)
    print(f"\na unit costs {figures.median('memory', 'a unit', 'bytes'):.1f} bytes beside its own"
          f" pages (entry {figures.median('memory', 'a unit', 'struct_bytes'):.0f}), and"
          f" {figures.median('memory', 'a unit', 'page_table_bytes'):.1f} of page tables")


def print_threads(context, figures):
    heads = ["1 KB by socket pair, or nothing sent", "threads", "1000/s, all together", "CPU ns",
             "waits for locks in 10^6"]
    rows = []
    for task in TASKS:
        for threads in sorted(int(subject) for test, subject, field in figures.values
                              if test == task and field == "cpu_ns"):
            rate = figures.of(task, str(threads), "per_s")
            rows.append([task, str(threads),
                         report.spread([value / 1e3 for value in
                                        (statistics.median(rate), min(rate), max(rate))]),
                         figures.spread(task, str(threads), "cpu_ns"),
                         figures.spread(task, str(threads), "waits")])
    context.table("what threads wait for", heads, rows)


def bars(figures, counts):
    """The library's targets: (what, found, "at least" or "under", bound)."""
    most, least = str(counts[-1]), str(counts[0])
    result = []
    for who in ("owner", "worker"):
        result.append((f"{who}: 1 byte by pipe / a unit of 4 KB",
                       figures.ratio((who, "pipe, 1 byte", "ns"), (who, "unit, 4 KB", "ns"))[0],
                       "at least", 1))
    for where in ("2 CPUs", "1 CPU"):
        for way, bound in (("pipe", 10), ("Unix socket", 5)):
            test = f"{where}, depth 16"
            result.append((f"{where}, 16 under way: 100 KB by {way} / by cache id, CPU",
                           figures.ratio((test, way, "cpu_us"), (test, WAYS[0], "cpu_us"))[0],
                           "at least", bound))
    growth = [figures.median("lookup", most, field) / figures.median("lookup", least, field)
              for field in ("ns", "array_ns")]
    result.append((f"look-up, {counts[-1]:,} units / {counts[0]:,}: growth beside an array's",
                   growth[0] / growth[1], "under", 2))
    result.append(("bytes a unit beside its pages and checksums",
                   figures.median("memory", "a unit", "bytes"), "under", 128))
    for task in SENDS:
        result.append((f"{task}, {THREADS} threads: waits for locks in 10^6",
                       figures.median(task, str(THREADS), "waits"), "under", 1))
    result.append((f"{INSERTS}: CPU, {THREADS} threads / 2",
                   figures.median(INSERTS, str(THREADS), "cpu_ns")
                   / figures.median(INSERTS, "2", "cpu_ns"), "under", 1.2))
    for task in TASKS[1:]:
        result.append((f"{task}: calls a second of all, {THREADS} threads / 2",
                       figures.median(task, str(THREADS), "per_s")
                       / figures.median(task, "2", "per_s"), "at least", SCALING_BAR))
    return result


def reached(found, kind, bound):
    return found >= bound if kind == "at least" else found < bound
