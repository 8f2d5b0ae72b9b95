# SPDX-License-Identifier: MIT
"""Checks whether results are complete: each experiment has figures, and they are plausible.

The speed itself is not checked.
"""

import math
import os
import sys

from . import weave

POSITIVE = ("requests", "seconds", "requests_per_s", "mb_per_s", "p50_us", "p99_us",
            "cpu_us_per_request")


def bad_numbers(where, figures):
    """Returns what is wrong with a flat dictionary's numbers; unknown ones are None."""
    for field, value in figures.items():
        if not isinstance(value, (int, float)):
            continue
        if not math.isfinite(value) or (field in POSITIVE and value <= 0):
            yield f"{where}: {field} is {value}"


def bad_cases(cases):
    for case in cases:
        where = f"case {case['parameters']}"
        if not case["runs"] and not case.get("absent"):
            yield f"{where}: no rows"
        for row, runs in case["runs"].items():
            if not runs:
                yield f"{where}, {row}: no runs"
            for run in runs:
                yield from bad_numbers(f"{where}, {row}", run)


def complaints(directory, name):
    """Returns everything that is wrong with one experiment's results."""
    content = weave.load(directory, name)
    if content is None:
        return ["it left no results"]
    if content.get("skipped"):
        return []
    found = list(bad_cases(content["cases"]))
    if not content["cases"] and not content["records"]:
        found.append("neither cases nor records")
    for number, record in enumerate(content["records"], 1):
        found += bad_numbers(f"record {number}", record)
    for one in content["verdicts"]:
        found += bad_numbers(one["text"], {"value": one["value"]})
    for file in [f"{name}.csv", *(file for file, _ in content["plots"])]:
        path = os.path.join(directory, file)
        if not os.path.exists(path) or not os.path.getsize(path):
            found.append(f"{file} is not there or empty")
    return found


def check(options, _source, experiments):
    """Command "sanity"."""
    count = 0
    for name in experiments:
        for complaint in complaints(options.results, name):
            print(f"bench: {name}: {complaint}", file=sys.stderr)
            count += 1
    print(f"sanity: {len(experiments)} experiments, {count} complaints")
    return 1 if count else 0
