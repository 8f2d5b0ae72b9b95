# SPDX-License-Identifier: MIT
"""With --before: the SWEET of this build beside that of an earlier one, and beside itself, which
shows how much two equal programs differ (the A/A spread).

Ratios over 1 are in favour of this build.
"""

from . import report
from .servers import AGAIN, BEFORE

CPU, RATE = "cpu_us_per_request", "requests_per_s"
NAMES = {CPU: "CPU/request, before : now", RATE: "requests/s, now : before"}


def gain(now, other, field):
    """Returns the ratio of two rows' runs, which is over 1 if those of now are better."""
    return report.ratio(other, now, field) if field == CPU else report.ratio(now, other, field)


def word(ratio, spread):
    """Judges a ratio by the spread of a build beside itself, in either direction."""
    low, high = min(spread[1], 1 / spread[2]), max(spread[2], 1 / spread[1])
    return "even" if low <= ratio[0] <= high else "better" if ratio[0] > high else "worse"


def comparisons(cases):
    """Returns what each row of each case says, for both fields."""
    result = []
    for case in cases:
        runs = case["runs"]
        for row, twins in case.get("twins", {}).items():
            for field in NAMES:
                ratio = gain(runs[row], runs[twins[BEFORE]], field)
                spread = report.ratio(runs[twins[AGAIN]], runs[row], field)
                result.append({"case": report.case_name(case), "row": row, "field": field,
                               "ratio": ratio, "spread": spread, "word": word(ratio, spread)})
    return result


def table(found):
    """(title, heads, rows): a line for both fields of a row."""
    heads = ["case", "row"]
    for name in NAMES.values():
        heads += [name, "again : now", "found"]
    lines = {}
    for one in found:
        lines.setdefault((one["case"], one["row"]), []).extend(
            [report.spread(one["ratio"]), report.spread(one["spread"]), one["word"]])
    title = ("this build (now) beside the one before: ratio of medians (least-most of the pairs of"
             " runs); over 1 is\nin favour of this build; again : now is this build beside itself;"
             " even: within that spread, in either direction")
    return title, heads, [[*key, *cells] for key, cells in lines.items()]


def worst(found):
    """Returns a line on the lowest ratio: of those that are worse, if any is."""
    one = min(found, key=lambda one: (one["word"] != "worse", one["ratio"][0]))
    count = sum(other["word"] == "worse" for other in found)
    return (f"worst: {NAMES[one['field']]}: {report.spread(one['ratio'])}, again : now"
            f" {report.spread(one['spread'])}: {one['word']}; {one['case']}, {one['row']};"
            f" {count} of {len(found)} ratios are worse")
