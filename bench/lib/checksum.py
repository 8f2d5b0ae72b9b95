# SPDX-License-Identifier: MIT
"""Checksums compared with memcpy(): runs the program bench/checksum of the build on one CPU,
counts its instructions with Valgrind, and prints a line for each size.
"""

import re
import shutil

from . import report
from .process import Failure, output_of
from .servers import find_built

SIZES = (1 << 10, 4 << 10, 16 << 10, 64 << 10)
WORKS = ("copy", "checksum", "crc32c")
COUNTED_BYTES = 4 << 20


def instructions(program, work, size, cpu):
    """Returns instructions per byte, only of the loop and the functions that it calls."""
    count = max(1, COUNTED_BYTES // size)
    said = output_of(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                      "--toggle-collect=run_*", program, "--once", work, str(size), str(count)], cpu)
    found = re.search(r"Collected : (\d+)", said)
    if not found:
        raise Failure(f"Valgrind counted nothing:\n{said}")
    return int(found.group(1)) / count / size


def measure(context, sizes):
    program = find_built(context.build, "bench", "checksum")
    counts = bool(shutil.which("valgrind"))
    rows = []
    for line in output_of([program, *map(str, sizes)], context.server_cpu).splitlines()[1:]:
        size, *figures = line.split()
        row = {"size": int(size)}
        for work, rate in zip(WORKS, figures):
            row[f"{work}_bytes_per_ns"] = float(rate)
        for work in WORKS if counts else ():
            row[f"{work}_instructions_per_byte"] = instructions(program, work, row["size"],
                                                                context.server_cpu)
        rows.append(row)
    tell(context, rows, counts)
    if not counts:
        print("\nwithout Valgrind (Debian package valgrind) instructions are not counted")
    context.records = rows


def tell(context, rows, counts):
    lines = []
    for row in rows:
        line = [report.size_name(row["size"]), ""]
        line += [f"{row[f'{work}_bytes_per_ns']:.1f}" for work in WORKS]
        line += [f"{row[f'{work}_bytes_per_ns'] / row['copy_bytes_per_ns']:.2f}"
                 for work in WORKS[1:]]
        if counts:
            line += [f"{row[f'{work}_instructions_per_byte']:.3f}" for work in WORKS]
        lines.append(line)
    heads = ["size", "", *(f"{work}, bytes/ns" for work in WORKS),
             *(f"{work} / copy" for work in WORKS[1:])]
    if counts:
        heads += [f"{work}, instr./byte" for work in WORKS]
    context.table("medians; both ratios are to copy, instructions are counted by callgrind",
                  heads, lines)
