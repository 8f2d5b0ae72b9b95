# SPDX-License-Identifier: MIT
"""What bench prints and writes: the machine, tables, ratios, JSON and CSV.

A case is {"parameters": {name: number or word}, "runs": {row: [figures]}}, and figures are
{field: number}: those of RUN_FIELDS and others of the client. A field may be None if a client
does not report it.
"""

import csv
import json
import os
import platform
import re
import statistics
import time

from . import process

RUN_FIELDS = ("requests_per_s", "mb_per_s", "p50_us", "p99_us", "cpu_us_per_request",
              "client_us_per_request", "core_percent", "other_percent")
DISTURBED_PERCENT = 5
# The columns of tables: (field, head, whether with minimum and maximum).
COLUMNS = (("requests_per_s", "requests/s", True), ("mb_per_s", "MB/s", False),
           ("p50_us", "p50 us", False), ("p99_us", "p99 us", False),
           ("cpu_us_per_request", "CPU us/request", True),
           ("client_us_per_request", "client us", False), ("core_percent", "core %", False))


def size_name(size):
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def read_line(path):
    try:
        with open(path) as file:
            return file.readline().strip()
    except OSError:
        return "unknown"


def machine(context):
    model = "unknown"
    with open("/proc/cpuinfo") as file:
        match = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.M)
        if match:
            model = match[1]
    return {
        "cpus": os.cpu_count(),
        "cpu_model": model,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "load_average": os.getloadavg()[0],
        "shmem_huge_pages": read_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
        "io_uring_disabled": read_line("/proc/sys/kernel/io_uring_disabled"),
        "server_cpu": context.server_cpu,
        "client_cpu": context.client_cpu,
        "cpu_time_from": process.cpu_source(),
    }


def print_machine(facts):
    print(f"machine: {facts['cpus']} x {facts['cpu_model']}, Linux {facts['kernel']}"
          f" {facts['architecture']}, load {facts['load_average']:.2f}")
    print(f"         servers on CPU {facts['server_cpu']}, client on CPU {facts['client_cpu']};"
          f" CPU time from {facts['cpu_time_from']}")
    print(f"         shmem huge pages {facts['shmem_huge_pages']};"
          f" io_uring_disabled {facts['io_uring_disabled']}", flush=True)


def fields(cases):
    """Returns all numeric fields of the runs: first the common ones, then the others."""
    known = {field: value for case in cases for runs in case["runs"].values() for run in runs
             for field, value in run.items() if isinstance(value, (int, float))}
    usual = RUN_FIELDS if not known or known.keys() & set(RUN_FIELDS) else ()
    return list(dict.fromkeys([*usual, *known]))


def middle(values):
    """Returns (median, minimum, maximum) of the known values, or None."""
    known = [value for value in values if value is not None]
    return (statistics.median(known), min(known), max(known)) if known else None


def summary(runs):
    """{field: (median, least, most) or None} of the runs of one row in one case."""
    return {field: middle([run.get(field) for run in runs])
            for field in fields([{"runs": {"": runs}}])}


def number(value):
    if value is None:
        return "-"
    digits = 0 if value >= 1000 else 1 if value >= 100 else 2
    return f"{value:,.{digits}f}"


def spread(triple):
    if triple is None:
        return "-"
    return f"{number(triple[0])} ({number(triple[1])}-{number(triple[2])})"


def table(heads, rows):
    """Prints columns; columns that begin with a word are left-aligned."""
    widths = [max(len(line[i]) for line in [heads, *rows]) for i in range(len(heads))]
    for line in [heads, *rows]:
        print("  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(line, widths))).rstrip())


def parameter_name(name, value):
    if name == "size":
        return size_name(value)
    if name == "connections":
        return f"{value}c"
    return f"{name} {value}" if isinstance(value, (int, float)) else str(value)


def case_name(case):
    return ", ".join(parameter_name(*item) for item in case["parameters"].items())


def absent_rows(case):
    """[(row, why)] of the peers that are not installed."""
    return case.get("absent", {}).items()


def cases_table(cases, columns):
    """(heads, rows) of all cases."""
    rows = []
    for case in cases:
        for row, runs in case["runs"].items():
            of = summary(runs)
            triples = [of.get(field) for field, _, _ in columns]
            rows.append([case_name(case), row,
                         *(spread(triple) if whole else number(triple and triple[0])
                           for triple, (_, _, whole) in zip(triples, columns))])
        rows += [[case_name(case), row, why, *("" for _ in columns[1:])]
                 for row, why in absent_rows(case)]
    return ["case", "server", *(head for _, head, _ in columns)], rows


def print_results(cases, columns):
    print("\nmedian (least-most) of the runs; MB are 10^6 bytes of bodies; client us: CPU time"
          " of the client per request;\ncore %: how busy this server kept the servers' CPU; well"
          " under 100, the client is the limit of requests/s\n")
    table(*cases_table(cases, columns))


def ratio(over, under, field):
    """Returns (ratio of the medians, minimum, maximum of the pairs) of two rows' runs."""
    pairs = [a[field] / b[field] for a, b in zip(over, under)]
    return (statistics.median(run[field] for run in over)
            / statistics.median(run[field] for run in under), min(pairs), max(pairs))


def ratios(case):
    """Compares a peer with each sweet; nothing if their CPU time was not measured."""
    twins = twin_names(case)
    runs = {row: some for row, some in case["runs"].items() if row not in twins}
    if any("cpu_us_per_request" not in run for some in runs.values() for run in some):
        return []
    return [{"peer": peer, "sweet": sweet,
             "cpu": ratio(runs[peer], runs[sweet], "cpu_us_per_request"),
             "requests": ratio(runs[sweet], runs[peer], "requests_per_s")}
            for peer in runs if not peer.startswith("sweet")
            for sweet in runs if sweet.startswith("sweet")]


def twin_names(case):
    """Returns the rows that --before adds."""
    return {name for pair in case.get("twins", {}).values() for name in pair.values()}


def print_ratios(cases):
    """By CPU time only: with files, the client limits requests/s."""
    heads = ["case", "peer / sweet", "CPU/request: peer / sweet"]
    rows = [[case_name(case), f"{row['peer']} / {row['sweet']}", spread(row["cpu"])]
            for case in cases for row in ratios(case)]
    print("\nratio of medians (least-most of the pairs of runs); over 1 is in favour of SWEET\n")
    table(heads, rows)


def disturbances(cases):
    """Reports how many runs shared the servers' CPU with other programs; "" for none."""
    disturbed, count = [], 0
    for case in cases:
        for server, runs in case["runs"].items():
            count += len(runs)
            disturbed += [(case_name(case), server, i + 1, run["other_percent"])
                          for i, run in enumerate(runs)
                          if (run.get("other_percent") or 0) > DISTURBED_PERCENT]
    if not disturbed:
        return ""
    body, server, run, percent = max(disturbed, key=lambda entry: entry[3])
    return (f"in {len(disturbed)} of {count} runs other programs took more than"
            f" {DISTURBED_PERCENT} % of the servers' CPU; worst: {percent:.0f} % in run {run} of"
            f" {server}, {body}")


def print_disturbances(cases):
    told = disturbances(cases)
    if told:
        print(f"\nwarning: {told}")


def summary_document(runs):
    """The summary of the runs of one row in one case, for JSON."""
    return {field: triple and dict(zip(("median", "least", "most"), triple))
            for field, triple in summary(runs).items()}


def verdicts_document(verdicts):
    return [dict(zip(("text", "value", "bar", "reached"), verdict)) for verdict in verdicts]


def document(context, experiment, command, facts, servers, verdicts, absent=()):
    """All that one experiment found, for JSON."""
    options = context.options
    return {
        "experiment": experiment.name, "command": command,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": facts, "servers": servers, "absent": list(absent),
        "options": {"runs": options.runs, "seconds": options.seconds, "quick": options.quick},
        "cases": [{
            "parameters": case["parameters"], "runs": case["runs"],
            "absent": dict(absent_rows(case)),
            "summary": {row: summary_document(runs) for row, runs in case["runs"].items()},
            "ratios": [{key: dict(zip(("medians", "least", "most"), value))
                        if isinstance(value, tuple) else value for key, value in row.items()}
                       for row in ratios(case)],
        } for case in context.cases],
        "columns": experiment.columns,
        "tables": context.tables,
        "skipped": context.skipped,
        "verdicts": verdicts_document(verdicts),
        "records": context.records,
        "plots": [],
    }


def write_json(path, content):
    with open(path, "w") as file:
        json.dump(content, file, indent=2)
        file.write("\n")


def write_csv(path, content):
    """One line per run, one column per parameter and per field; or the records."""
    cases = content["cases"]
    if not cases:
        write_records(path, content["records"])
        return
    names = list(dict.fromkeys(name for case in cases for name in case["parameters"]))
    columns = fields(cases)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["experiment", *names, "server", "run", *columns])
        for case in cases:
            start = [content["experiment"], *(case["parameters"].get(name, "") for name in names)]
            for row, runs in case["runs"].items():
                for i, run in enumerate(runs):
                    writer.writerow([*start, row, i + 1,
                                     *(cell(run.get(field)) for field in columns)])
            for row, why in absent_rows(case):
                writer.writerow([*start, row, why, *("" for _ in columns)])


def cell(value):
    return "" if value is None else f"{value:.3f}"


def write_records(path, records):
    """CSV of what has no cases: a line for each of some flat dictionaries."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for one in records for key in one)))
        writer.writeheader()
        writer.writerows(records)


def outcome(reached, missed="MISSED"):
    """None: there was no target, only the limit; a text: why nothing was compared."""
    if isinstance(reached, str):
        return reached
    return "the limit" if reached is None else "reached" if reached else missed


def print_verdicts(verdicts):
    if verdicts:
        print()
        table(["what is to be reached", "", "found", "bar", ""],
              [[text, "", number(value), f"{bar:g}" if isinstance(bar, (int, float)) else bar,
                outcome(reached)] for text, value, bar, reached in verdicts])
