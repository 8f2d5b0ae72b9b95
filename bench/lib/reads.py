# SPDX-License-Identifier: MIT
"""How a file gets into the memory of a unit: runs the program bench/read-ways of the build on one
CPU, and prints a line for each size, with and without the page cache, for small and huge pages.
"""

from . import report
from .process import output_of
from .servers import find_built

SIZES = (4 << 10, 100 << 10, 1 << 20)
WAYS = ("pread", "READ", "READ_FIXED")
PAGES = {"small": "4 KB", "huge": "2 MB"}
THROUGH = {"cache": "page cache", "direct": "O_DIRECT"}


def read(line):
    size, through, pages, *times = line.split()
    return {"size": int(size), "through": through, "pages": pages,
            **{f"{way}_cpu_us": float(time) for way, time in zip(WAYS, times)}}


def measure(context, sizes):
    program = find_built(context.build, "bench", "read-ways")
    said = output_of([program, context.directory, *map(str, sizes)], context.server_cpu)
    # What is impossible here is said on lines of another form.
    rows = [read(line) for line in said.splitlines() if line.split()[1:2] in (["cache"], ["direct"])]
    for line in said.splitlines():
        if line.startswith("read-ways:"):
            print(line)
    context.table(
        "CPU time of one read, us; medians; the ratio is to pread()",
        ["size", "", "through", "pages of", *WAYS, "READ_FIXED / pread"],
        [[report.size_name(row["size"]), "", THROUGH[row["through"]], PAGES[row["pages"]],
          *(f"{row[f'{way}_cpu_us']:.2f}" for way in WAYS),
          f"{row['READ_FIXED_cpu_us'] / row['pread_cpu_us']:.2f}"] for row in rows])
    context.records = rows
