# SPDX-License-Identifier: MIT
"""tux: the advantage of a server in the kernel over Apache, compared with SWEET's.

First the CPU time of a request, by wrk, on kept connections and with one for each request; then
httperf opens connections at a growing rate, whether it gets responses or not, until the servers
are saturated and beyond.
"""

import statistics

from . import bars, files, load, report
from .apache import Apache
from .nginx import Nginx
from .plot import Plot
from .servers import Row, Sweet, find_program, peer

KB = 1 << 10
SIZES, QUICK_SIZES = (1 * KB, 320 * KB, 900 * KB), (1 * KB, 900 * KB)
CONNECTIONS = 64
APACHE_CONNECTIONS = 128  # httperf keeps more of them than wrk if the server is late
# Fractions of the maximum connections/s that SWEET answered with wrk.
STEPS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25)
QUICK_STEPS = (0.1, 0.5)
STEP_SECONDS = 2
# Requests/s at saturation of TUX and Apache, in the paper's table 2.
PAPER = {1 * KB: (9700, 1381), 320 * KB: (1000, 641), 900 * KB: (320, 258)}
BARS = {1 * KB: 7.0, 320 * KB: 1.56, 900 * KB: 1.24}
COLUMNS = (*report.COLUMNS, ("server_error_percent", "errors %", False),
           ("own_error_percent", "client's errors %", False), ("reply_ms", "reply ms", False))
FAR_OFF = 0.5  # of the median: runs with fewer replies/s are reported


def steady(parameters):
    return "rate" not in parameters


def rising(parameters):
    return "rate" in parameters


PLOTS = (Plot("cpu_us_per_request", "server CPU, us/request", "CPU time of the server per request",
              x="size", wide=True, where=steady),
         Plot("requests_per_s", "replies/s", "connections asked for a second, and replies",
              x="rate", where=rising, log="", name="reply-rate"),
         Plot("server_error_percent", "connections that failed, %",
              "connections that failed, but for those that the client could not open",
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
    apache = peer("apache", Apache, context, root, max(connections, APACHE_CONNECTIONS),
                  files.paths(root, sizes))
    nginx = peer("nginx", Nginx, context, root)
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
    for table in tables(context.cases):
        context.table(*table)


def rise(context, servers, size, peak):
    """One case for each rate; a step is short and its errors are among its figures."""
    for step in QUICK_STEPS if context.quick else STEPS:
        rate = round(peak * step)
        client = load.Httperf(context.client_cpu, rate, size, files.page(size), files.FILES)
        context.turns({"rate": rate, "size": size},
                      [Row(server.name, server, client) for server in servers],
                      seconds=min(STEP_SECONDS, context.seconds), warm=False)


def sizes_of(cases):
    return list(dict.fromkeys(case["parameters"]["size"] for case in cases
                              if rising(case["parameters"])))


def saturation(cases, size):
    """Returns {row: (maximum replies/s, the case)} while the rate of connections rises."""
    found = {}
    cases = [case for case in cases
             if rising(case["parameters"]) and case["parameters"]["size"] == size]
    for row in cases[0]["runs"]:
        best = max(cases, key=lambda case, row=row: median(case, row, "requests_per_s"))
        found[row] = (median(best, row, "requests_per_s"), best)
    return found


def absent_of(cases, size):
    """{row: why} of the peers that are not installed."""
    return {row: why for case in cases
            if rising(case["parameters"]) and case["parameters"]["size"] == size
            for row, why in report.absent_rows(case)}


def tables(cases):
    """Returns (title, heads, rows) of what the cases show together."""
    most, cpu, far = [], [], []
    for size in sizes_of(cases):
        found = saturation(cases, size)
        for row, (replies, best) in found.items():
            most.append([report.size_name(size), row, report.number(replies),
                         f"{best['parameters']['rate']:,}",
                         report.number(median(best, row, "server_error_percent")),
                         report.number(median(best, row, "own_error_percent")), "", ""])
        if len(found) == 2:
            (first, _), (second, _) = found.values()
            most[-2][-2:] = [report.number(first / second), paper_ratio(size)]
        most += [[report.size_name(size), row, why, *[""] * 5]
                 for row, why in absent_of(cases, size).items()]
    for case in filter(lambda case: steady(case["parameters"]), cases):
        row = next(iter(case["runs"]))
        if "apache" in case["runs"]:
            found = report.ratio(case["runs"]["apache"], case["runs"][row], "cpu_us_per_request")
            cpu.append([report.case_name(case), report.spread(found)])
        else:
            cpu.append([report.case_name(case), case["absent"]["apache"]])
    for case in filter(lambda case: rising(case["parameters"]), cases):
        for row, runs in case["runs"].items():
            usual = median(case, row, "requests_per_s")
            far += [[report.case_name(case), row, str(i + 1), report.number(run["requests_per_s"]),
                     report.number(usual), report.number(run["server_error_percent"]),
                     report.number(run["own_error_percent"])]
                    for i, run in enumerate(runs) if run["requests_per_s"] < FAR_OFF * usual]
    result = [("the most replies/s while the rate of connections rises, of one request each;"
               " paper: TUX by Apache",
               ["size", "server", "replies/s", "asked for", "errors %", "client's errors %",
                "by Apache's", "paper"], most),
              ("CPU time of a request, Apache's by SWEET's; the paper has no such figure",
               ["case", "Apache / SWEET"], cpu)]
    if far:
        result.append((f"runs with fewer than {100 * FAR_OFF:.0f} % of the median's replies/s",
                       ["case", "server", "run", "replies/s", "median", "errors %",
                        "client's errors %"], far))
    return result


def paper_ratio(size):
    return report.number(PAPER[size][0] / PAPER[size][1]) if size in PAPER else "-"


def verdicts(cases):
    """Only the paper's comparison: replies/s at saturation, one request per connection."""
    result = []
    for size in sizes_of(cases):
        if size not in BARS:
            continue
        found = saturation(cases, size)
        text = (f"{report.size_name(size)}, a connection for each request: {next(iter(found))} /"
                f" Apache, the most replies/s (paper: TUX / Apache {paper_ratio(size)})")
        if len(found) == 2:
            (first, _), (second, _) = found.values()
            result.append(bars.at_least(text, first / second, BARS[size]))
        else:
            result.append((text, None, BARS[size], absent_of(cases, size)["apache"]))
    return result


def derive(content):
    """Computes again what follows from the cases, also for results of an earlier version."""
    for case in filter(lambda case: rising(case["parameters"]), content["cases"]):
        for row, runs in case["runs"].items():
            for run in runs:
                run["server_error_percent"] = load.server_errors(run["error_percent"],
                                                                 run["own_error_percent"])
            case["summary"][row] = report.summary_document(runs)
    content["columns"] = COLUMNS
    content["tables"] = [dict(zip(("title", "heads", "rows"), table))
                         for table in tables(content["cases"])]
    content["verdicts"] = report.verdicts_document(verdicts(content["cases"]))
    return True
