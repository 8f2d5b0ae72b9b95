#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-lists.sh - each list of files in Makefile.am and in local.mk is in the order of the
# alphabet (of bytes, as LC_ALL=C sort has it), and has no file twice.  A list is one assignment
# that has nothing but paths; what programs are linked with has an order of its own.
#
# Usage: check-lists.sh [--mend]    (--mend sorts what is not sorted)
# Environment: srcdir, the top of the sources (default: above this script).
# Exit status: 0 good, 1 not, 77 without python3.

command -v python3 >/dev/null || {
	echo "check-lists: python3 is missing; on Debian: apt-get install python3"
	exit 77
}
cd "${srcdir:-$(dirname "$0")/..}" || exit 1
exec python3 - "$@" <<'PYTHON'
import glob
import os
import re
import sys

WIDTH = 100
ASSIGNMENT = re.compile(r"(?P<name>\w+) *(?P<operator>\+?=)(?P<words>(?:[^\\\n]|\\\n)*)\n", re.ASCII)
PATH = re.compile(r"[\w.+-]+(/[\w.+-]+)+", re.ASCII)
LINKED = ("LDADD", "LIBADD", "DEPENDENCIES", "libs", "library")
mend = sys.argv[1:] == ["--mend"]
if sys.argv[1:] and not mend:
    sys.exit("Usage: check-lists.sh [--mend]")


def written(match, paths):
    """The assignment: in one line if it began there and fits, else a line for each name.c with its
    name.h."""
    head = f"{match['name']} {match['operator']}"
    line = " ".join([head, *paths])
    if len(line) <= WIDTH and not match["words"].startswith(" \\\n"):
        return line + "\n"
    lines = []
    for path in paths:
        stem = os.path.splitext(path)[0]
        if lines and os.path.splitext(lines[-1])[0] == stem:
            lines[-1] += f" {path}"
        else:
            lines.append(path)
    return " \\\n\t".join([head, *lines]) + "\n"


def check(name):
    """Reports, or mends, what is wrong in a makefile."""
    with open(name) as file:
        text = file.read()
    found, made, end = [], [], 0
    # From the start of a line that continues none.
    for match in re.finditer(rf"(?<![^\n])(?<!\\\n){ASSIGNMENT.pattern}", text, re.ASCII):
        paths = match["words"].replace("\\\n", " ").split()
        if match["name"].endswith(LINKED) or not all(PATH.fullmatch(path) for path in paths):
            continue
        wrong = next(((this, last) for last, this in zip(paths, paths[1:]) if this <= last), None)
        if wrong:
            before = text[:match.start("words")] + match["words"][:position(match["words"], wrong)]
            found.append(f"{name}:{before.count(chr(10)) + 1}: {wrong[0]} " +
                         (f"is not behind {wrong[1]} in the alphabet" if wrong[0] != wrong[1] else "stands twice"))
            made += [text[end:match.start()], written(match, sorted(set(paths)))]
            end = match.end()
    if found and mend:
        with open(name, "w") as file:
            file.write("".join(made) + text[end:])
    return found


def position(words, wrong):
    """Where the second of two neighbours stands in the text of a list."""
    this, last = wrong
    return re.search(rf"(?:^|\s){re.escape(last)}[\s\\]+(?={re.escape(this)}(?:\s|$))", words).end()


makefiles = ["Makefile.am", *sorted(glob.glob("*/local.mk") + glob.glob("tests/*/local.mk"))]
found = [line for name in makefiles for line in check(name)]
for line in found:
    print(f"check-lists: {line}{': sorted' if mend else ''}")
if found and not mend:
    print("check-lists: this sorts them: tests/check-lists.sh --mend")
if not found:
    print(f"check-lists: the lists of {len(makefiles)} makefiles are sorted")
sys.exit(bool(found) and not mend)
PYTHON
