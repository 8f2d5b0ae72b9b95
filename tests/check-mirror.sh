#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-mirror.sh - every source has a unit test of its name, or a line of
# tests/covered-by.txt that names the tests that cover it.  tests/unit/FOLDER/test-NAME.c
# is the test of FOLDER/NAME.c, and so is test-NAME-MORE.c unless it is that of a source
# NAME-MORE.c.
#
# Environment: srcdir, the top of the sources (default: above this script).
# Exit status: 0 good, 1 not, 77 without python3.

command -v python3 >/dev/null || {
	echo "check-mirror: python3 is missing; on Debian: apt-get install python3"
	exit 77
}
cd "${srcdir:-$(dirname "$0")/..}" || exit 1
exec python3 - <<'PYTHON'
import glob
import os
import re
import sys

LIST = "tests/covered-by.txt"
FOLDERS = ("libnabc", "libnabc-fcgi", "libnabc-glib", "nabcctl", "sweet")
# A build inside the source tree writes it there.
GENERATED = {"sweet/handler/status-html.c"}
wrong = []


def find(*folders):
    """The paths of all sources below the folders, without .c."""
    return {path.removesuffix(".c") for folder in folders
            for path in glob.glob(f"{folder}/**/*.c", recursive=True) if path not in GENERATED}


sources = find(*FOLDERS)
unit_tests = {path for path in find("tests/unit") if os.path.basename(path).startswith("test-")}
known_tests = {os.path.basename(path) for path in [*unit_tests, *glob.glob("tests/system/*/test_*.py")]}


def source_of(test):
    """The source that a unit test is named after: the longest name that begins its own; or None."""
    folder, name = os.path.split(os.path.relpath(test, "tests/unit"))
    parts = name.split("-")[1:]
    names = (os.path.join(folder, "-".join(parts[:count])) for count in range(len(parts), 0, -1))
    return next((name for name in names if name in sources), None)


tested = {source_of(test) for test in unit_tests}


def check_line(place, path, tests, reason):
    source = path.removesuffix(".c")
    if re.search(r"[*?[]", path) or os.path.isdir(path):
        wrong.append(f"{place}: {path}: a line names one source, no folder and no pattern")
    elif not path.endswith(".c") or source not in sources:
        wrong.append(f"{place}: {path}: there is no such source: remove the line")
    elif source in tested:
        wrong.append(f"{place}: {path}: it has a unit test of its name: remove the line")
    if not tests or not reason:
        wrong.append(f"{place}: not SOURCE TEST,... REASON")
    for test in filter(None, tests.split(",")):
        if test not in known_tests:
            wrong.append(f"{place}: {path}: there is no test {test}")


listed = []
with open(LIST) as file:
    for number, line in enumerate(file, 1):
        if line.strip() and not line.startswith("#"):
            path, tests, reason = [*line.split(maxsplit=2), "", ""][:3]
            check_line(f"{LIST}:{number}", path, tests, reason)
            if listed and path <= listed[-1]:
                wrong.append(f"{LIST}:{number}: {path}: is not behind {listed[-1]} in the alphabet")
            listed.append(path)
for source in sorted(sources - tested - {path.removesuffix(".c") for path in listed}):
    wrong.append(f"{source}.c: write tests/unit/{os.path.dirname(source)}/"
                 f"test-{os.path.basename(source)}.c, or a line of {LIST}")
print("\n".join(f"check-mirror: {line}" for line in wrong) or
      f"check-mirror: of {len(sources)} sources, {len(sources) - len(set(listed))} have a unit test of "
      f"their name, {len(set(listed))} a line of {LIST}")
sys.exit(bool(wrong))
PYTHON
