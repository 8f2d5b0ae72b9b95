# SPDX-License-Identifier: MIT
"""The experiment "replacement": the hit ratio of the library's replacement policies for a list
of requests. Starts no server; runs the program bench/replay of the build, which computes it, and
makes tables of its output.
"""

import csv
import gzip
import os
import subprocess

from .process import Failure
from .servers import find_built

TRACE = "traces/semicomplete-2015.tsv.gz"
SECONDS_MAX = 1800


def add_options(parser):
    parser.add_argument("--trace", metavar="FILE",
                        help="replacement: lines as in bench/traces, .gz or not (the one there)")
    parser.add_argument("--zipf", metavar="OBJECTS,REQUESTS,ALPHA,SEED",
                        help="replacement: made by Zipf's law instead, like 5000,200000,0.8,1")
    parser.add_argument("--percents", metavar="LIST",
                        help="replacement: cache sizes in percent of the distinct bytes"
                        " (1,2,5,10,20,50)")
    parser.add_argument("--limits", metavar="LIST",
                        help="replacement: clean limits in percent of a segment (50,25,75)")
    parser.add_argument("--water", metavar="HIGH,LOW",
                        help="replacement: watermarks in percent of the cache (95,90)")
    parser.add_argument("--segments", metavar="N",
                        help="replacement: segments in the cache, if the library's sizes allow"
                        " it (16)")


def read(path):
    opener = gzip.open if path.endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            return file.read()
    except (EOFError, gzip.BadGzipFile) as error:
        raise Failure(f"{path}: {error}") from error


def replay(context):
    """(what was replayed, [a row of figures])."""
    options = context.options
    command, requests = [find_built(context.build, "bench", "replay")], b""
    if options.zipf:
        command += ["--zipf", options.zipf]
        name = f"Zipf {options.zipf}"
    else:
        path = options.trace or os.path.join(context.source, TRACE)
        name, requests = os.path.basename(path), read(path)
    for option in ("percents", "limits", "water", "segments"):
        if getattr(options, option):
            command += [f"--{option}", getattr(options, option)]
    ended = subprocess.run(command, input=requests, capture_output=True, timeout=SECONDS_MAX,
                           check=False)
    if ended.returncode:
        words = ended.stderr.decode(errors="replace").strip() or f"status {ended.returncode}"
        raise Failure(f"replay failed: {words}")
    first, *lines = ended.stdout.decode().splitlines()
    return f"{name}: {first.lstrip('# ')}", list(csv.DictReader(lines))


def ratios(row):
    return 100 * float(row["hit_ratio"]), 100 * float(row["byte_hit_ratio"])


def print_tables(context, rows):
    """One line for each policy and variant, one column for each cache size."""
    percents = list(dict.fromkeys(row["percent"] for row in rows))
    lines = {}
    for row in rows:
        lines.setdefault((row["policy"], row["variant"]), {})[row["percent"]] = ratios(row)
    heads = ["policy", "variant", *(f"{percent} %" for percent in percents)]
    context.table("hit ratio / byte hit ratio in %, by size of the cache in % of the distinct"
                  " bytes", heads, [[*key, *("{:.2f} / {:.2f}".format(*line[percent])
                                  for percent in percents)] for key, line in lines.items()])
    context.table("what segments win or lose: points against \"single\" of the same policy", heads,
                  [[*key, *("{:+.2f} / {:+.2f}".format(
                      *(with_ - without for with_, without
                        in zip(line[percent], lines[key[0], "single"][percent])))
                      for percent in percents)]
                   for key, line in lines.items() if key[1].startswith("segments")])


def number(text):
    return int(text) if text.isdigit() else float(text)


def measure(context):
    what, rows = replay(context)
    print(what)
    print_tables(context, rows)
    words = ("policy", "variant")
    context.records = [{"trace": what, **{field: text if field in words else number(text)
                                          for field, text in row.items()}} for row in rows]
