#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which lines of libnabc and of SWEET ran, of a build with --enable-coverage.

Usage: coverage.py BUILD [--lines] [--at-least NAME=PERCENT ...] [FILE ...]

Adds up BUILD/counts, where each program of the build has counted, and prints
for each file its lines, how many of them ran and how many not; --lines names
those that did not.  FILE, such as libnabc/membership/rpc-server.c, is one of those to be shown.
A line counts when there is code in it: no comments, no lone braces.  Exit
status: 1 when a folder has less than it must.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

PARTS = ("libnabc", "nabcctl", "sweet")
NO_CODE = re.compile(r"\s*(?:[{}();]*|else|\} else \{|/\*.*|\*.*|#.*|\w+:)\s*(?:/\*.*)?$")
ELF = b"\x7fELF"


def part_of(path):
    """Returns the part of the tree, or None."""
    names = path.parts[-3:-1]
    if "tests" in path.parts:  # tests/unit has folders of the same names
        return None
    return next((name for name in reversed(names) if name in PARTS), None)


def programs(build):
    """Returns the files of the build that may have counted."""
    for path in sorted(build.glob("**/*")):
        if path.is_symlink() or not path.is_file() or path.suffix in (".o", ".a", ".la"):
            continue
        if any(part in path.parts for part in ("counts", "fuzzing", "autom4te.cache")):
            continue
        with open(path, "rb") as file:
            if file.read(4) == ELF:
                yield path


def counted(build):
    """Returns how often each line ran: {file: {line: times}}; a file has its name in the tree."""
    merged = build / "counts.profdata"
    raw = sorted(map(str, (build / "counts").glob("*.profraw")))
    if not raw:
        sys.exit(f"coverage: nothing has counted in {build}/counts")
    # A file that a killed process has begun is broken; without others, nothing has counted.
    subprocess.run(["llvm-profdata", "merge", "--sparse", "--failure-mode=all", "-o", merged, *raw],
                   check=True)
    first, *more = programs(build)
    command = ["llvm-cov", "export", "--format=lcov", "--skip-functions",
               f"--instr-profile={merged}", str(first)]
    for program in more:
        command += ["--object", str(program)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True).stdout
    lines = collections.defaultdict(dict)
    of = None
    for line in output.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "SF":
            path = pathlib.Path(rest)
            of = path if path.suffix in (".c", ".h") and part_of(path) else None
        elif kind == "DA" and of:
            number, times = rest.split(",")[:2]
            lines[of][int(number)] = int(times)
    return lines


def with_code(path, times):
    """Keeps only lines that contain code; a comment ends at its end mark."""
    inside = False
    kept = {}
    for number, text in enumerate(path.read_text().splitlines(), 1):
        comment = inside or NO_CODE.fullmatch(text)
        if inside or text.lstrip().startswith("/*"):
            inside = "*/" not in text
        if not comment and number in times:
            kept[number] = times[number]
    return kept


def spans(numbers):
    """Writes 1 2 3 7 as "1-3 7"."""
    runs = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{a}-{b}" if a != b else str(a) for a, b in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("--at-least", action="append", default=[], metavar="NAME=PERCENT")
    parser.add_argument("files", nargs="*")
    given = parser.parse_intermixed_args()
    least = dict(item.split("=") for item in given.at_least)
    total = {part: [0, 0] for part in PARTS}
    rows = []
    for path, times in counted(given.build).items():
        kept = with_code(path, times)
        missing = [number for number, count in kept.items() if not count]
        part = part_of(path)
        name = "/".join(path.parts[-3 if path.parts[-3] == part else -2:])
        rows.append((name, len(kept), missing))
        total[part][0] += len(kept)
        total[part][1] += len(missing)
    for name, count, missing in sorted(rows, key=lambda row: (-len(row[2]), row[0])):
        if count and (not given.files or name in given.files):
            print(f"{name:32} {count:5} lines, {100 - 100 * len(missing) / count:5.1f} % ran, "
                  f"{len(missing):4} not" + (f": {spans(missing)}" if given.lines else ""))
    status = 0
    for part, (count, missing) in total.items():
        ran = 100 - 100 * missing / max(count, 1)
        print(f"coverage: {part}: {ran:.1f} % of {count} lines ran, {missing} did not")
        if ran < float(least.get(part, 0)):
            print(f"coverage: {part}: that is less than {least[part]} %")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
