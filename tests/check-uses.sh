#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-uses.sh - what a private header of libnabc, nabcctl or SWEET declares, the product or a
# benchmark uses: a function that tests alone call is code that nobody needs, and everybody reads.
#
# It counts words: a function that a header declares must stand in the sources a third time, beside
# its declaration and its definition; comments and texts do not count.
#
# Environment: srcdir, the top of the sources (default: above this script).
# Exit status: 0 good, 1 not, 77 without python3.

command -v python3 >/dev/null || {
	echo "check-uses: python3 is missing; on Debian: apt-get install python3"
	exit 77
}
cd "${srcdir:-$(dirname "$0")/..}" || exit 1
exec python3 - <<'PYTHON'
import collections
import glob
import re
import sys

PUBLIC = ("libnabc/include/", "libnabc-fcgi/interface.h", "libnabc-fcgi/stdio-interface.h",
          "libnabc-glib/", "bench/")
# What CPUs without extensions run, for tests on all others.
EXCEPT = {"nc_checksum_plain", "nc_crc32c_add_plain"}
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', re.S)
# At the beginning of a line: a type, and a name with its parameters.
DECLARED = re.compile(r"^(?!static|typedef|_Static_assert|#|\s)[\w *]*?\b(\w+)\([^;{]*\)[^;{]*;", re.M)

words, declared = collections.Counter(), {}
for part in ("libnabc", "libnabc-fcgi", "libnabc-glib", "nabcctl", "sweet", "bench"):
    for path in sorted(glob.glob(f"{part}/**/*.[ch]", recursive=True)):
        with open(path) as file:
            text = NO_CODE.sub(" ", file.read())
        words.update(re.findall(r"\w+", text))
        if path.endswith(".h") and not path.startswith(PUBLIC):
            for match in DECLARED.finditer(text):
                declared.setdefault(match[1], path)

wrong = sorted((path, name) for name, path in declared.items() if words[name] <= 2 and name not in EXCEPT)
for path, name in wrong:
    print(f"check-uses: {path}: {name}() is called by tests alone, if at all: use it, or remove it")
if not wrong:
    print(f"check-uses: the product uses all {len(declared)} functions that its headers declare")
used = sorted(name for name in EXCEPT & {*declared} if words[name] > 2)
for name in used:
    print(f"check-uses: {declared[name]}: {name}() is used: it needs no exception of check-uses.sh")
sys.exit(bool(wrong or used))
PYTHON
