# SPDX-License-Identifier: MIT
"""tux: what a server in the kernel was to Apache, set beside what SWEET is.

First the CPU time of a request, by wrk, on kept connections and with one for
each request; then httperf connects more and more often, whether it is answered
or not, until the servers are saturated and beyond.
"""

import statistics

from . import files, load, report
from .apache import Apache
from .nginx import Nginx
from .plot import Plot
from .servers import Row, Sweet, find_program

KB = 1 << 10
SIZES, QUICK_SIZES = (1 * KB, 320 * KB, 900 * KB), (1 * KB, 900 * KB)
CONNECTIONS = 64
APACHE_CONNECTIONS = 128  # httperf keeps more of them than wrk when the server is late
# Of the most connections a second that SWEET answered to wrk.
STEPS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25)
QUICK_STEPS = (0.1, 0.5)
STEP_SECONDS = 2
# Requests/s at saturation of TUX and Apache, in the paper's table 2.
PAPER = {1 * KB: (9700, 1381), 320 * KB: (1000, 641), 900 * KB: (320, 258)}
BARS = {1 * KB: 7.0, 320 * KB: 1.56, 900 * KB: 1.24}
COLUMNS = (*report.COLUMNS, ("error_percent", "errors %", False), ("reply_ms", "reply ms", False))


def steady(parameters):
    return "rate" not in parameters


def rising(parameters):
    return "rate" in parameters


PLOTS = (Plot("cpu_us_per_request", "server CPU, us/request", "CPU time of the server per request",
              x="size", wide=True, where=steady),
         Plot("requests_per_s", "replies/s", "connections asked for a second, and replies",
              x="rate", where=rising, log="", name="reply-rate"),
         Plot("error_percent", "connections that failed, %", "connections that failed",
              x="rate", where=rising, log="", name="error-rate"))


def median(case, row, field):
    return statistics.median(run[field] for run in case["runs"][row])


def measure(context):
    for program in ("wrk", "httperf"):
        find_program(program)
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    connections = context.connections[0] if context.connections else CONNECTIONS
    root = files.make_root(context, sizes)
    sweet = Sweet(context, root, context.io[0], files.cache_mib(sizes))
    apache = Apache(context, root, max(connections, APACHE_CONNECTIONS),
                    files.paths(root, sizes))
    nginx = Nginx(context, root)
    context.start([sweet, apache, nginx])
    peaks = {}
    for size in sizes:
        context.check(files.pages, size)
        for connection, headers in (("kept", []), ("closed", ["Connection: close"])):
            if connection == "closed" and context.quick and size != sizes[0]:
                continue
            client = load.Wrk(context.client_cpu, connections, size, files.page(size),
                              files.FILES, headers)
            case = context.turns({"size": size, "connection": connection},
                                 [Row(server.name, server, client) for server in context.servers])
            if connection == "closed":
                peaks[size] = median(case, sweet.name, "requests_per_s")
    for size, peak in peaks.items():
        rise(context, [sweet, apache], size, peak)
    tell_saturation(context, peaks)


def rise(context, servers, size, peak):
    """One case for each rate; a step is short and its errors are among its figures."""
    for step in QUICK_STEPS if context.quick else STEPS:
        rate = round(peak * step)
        client = load.Httperf(context.client_cpu, rate, size, files.page(size), files.FILES)
        context.turns({"rate": rate, "size": size},
                      [Row(server.name, server, client) for server in servers],
                      seconds=min(STEP_SECONDS, context.seconds), warm=False)


def tell_saturation(context, sizes):
    """The most replies a second of each server, and at which rate."""
    rows = []
    for size in sizes:
        cases = [case for case in context.cases
                 if rising(case["parameters"]) and case["parameters"]["size"] == size]
        most = {}
        for row in cases[0]["runs"]:
            best = max(cases, key=lambda case, row=row: median(case, row, "requests_per_s"))
            most[row] = median(best, row, "requests_per_s")
            rows.append([report.size_name(size), row, report.number(most[row]),
                         f"{best['parameters']['rate']:,}",
                         report.number(median(best, row, "error_percent"))])
        first, second = most.values()
        rows[-2] += [report.number(first / second), paper_ratio(size)]
        rows[-1] += ["", ""]
    context.table("the most replies/s while the rate of connections rises, of one request each;"
                  " paper: TUX by Apache", ["size", "server", "replies/s", "asked for", "errors %",
                                            "by Apache's", "paper"], rows)


def paper_ratio(size):
    return report.number(PAPER[size][0] / PAPER[size][1]) if size in PAPER else "-"


def verdicts(cases):
    result = []
    for case in cases:
        parameters = case["parameters"]
        size, row = parameters["size"], next(iter(case["runs"]))
        if parameters.get("connection") != "kept" or size not in BARS:
            continue
        found = report.ratio(case["runs"]["apache"], case["runs"][row], "cpu_us_per_request")[0]
        result.append((f"{report.size_name(size)}, kept connections: Apache / {row}, CPU/request"
                       f" (paper: TUX / Apache, requests/s: {paper_ratio(size)})",
                       found, BARS[size], found >= BARS[size]))
    return result
