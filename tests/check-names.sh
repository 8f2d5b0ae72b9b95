#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-names.sh - a backtrace says which module a callback belongs to: a static function that is put
# into a table, assigned to a member or passed to another function has a name that no other source of
# the product gives to a function of its own.  The prefix of its module makes it so.
#
# An argument may be a variable: it is not looked at where its source has a variable of that name.
#
# Environment: srcdir, the top of the sources (default: above this script).
# Exit status: 0 good, 1 not, 77 without python3.

command -v python3 >/dev/null || {
	echo "check-names: python3 is missing; on Debian: apt-get install python3"
	exit 77
}
cd "${srcdir:-$(dirname "$0")/..}" || exit 1
exec python3 - <<'PYTHON'
import collections
import glob
import re
import sys

NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', re.S)
# At the beginning of a line: a type, a name with its parameters, and the body.
FUNCTION = re.compile(r"^(?!typedef|#|\s)([\w *]*?)\b(\w+)\([^;{}]*\)\s*\{", re.M)
# A name that is not called, with what stands before and behind it: the value of a member of a table
# or of an object; an argument, or a row of a table.
MEMBER = re.compile(r"(?:[.>]\w+(?:\[\w+\])?|\]) *=\s*(?:\([^()]*\)\s*)?&?(\w+)[ \t]*[,;}\n]")
ARGUMENT = re.compile(r"(?:[({,?:]|\(\*\)\(\w+\)\))\s*&?(?=(\w+)\s*[,)}:])")


def values(text, functions):
    """Those of the functions whose address the text takes."""
    found = {name for name in MEMBER.findall(text) if name in functions}
    for name in {*ARGUMENT.findall(text)} & functions - found:
        # A declaration of a variable of this name, which may hide the function.
        if not re.search(rf"(?:\w +|\w \*+){name}\s*[;,=)\[]|, \*?{name}\s*[;=\[]", text):
            found.add(name)
    return found


defined, texts, own = collections.defaultdict(set), {}, collections.defaultdict(set)
for part in ("libnabc", "libnabc-fcgi", "libnabc-glib", "nabcctl", "sweet"):
    for path in sorted(glob.glob(f"{part}/**/*.c", recursive=True)):
        with open(path) as file:
            texts[path] = NO_CODE.sub(" ", file.read())
        for before, name in FUNCTION.findall(texts[path]):
            defined[name].add(path)
            if before.startswith("static"):
                own[path].add(name)

wrong, count = [], 0
for path, text in texts.items():
    names = values(text, own[path])
    count += len(names)
    wrong += [(path, name) for name in sorted(names) if len(defined[name]) > 1]
for path, name in wrong:
    others = ", ".join(sorted(defined[name] - {path}))
    print(f"check-names: {path}: the callback {name}() has a namesake in {others}: give it the prefix of its module")
if not wrong:
    print(f"check-names: each of {count} callbacks has a name of its own")
sys.exit(bool(wrong))
PYTHON
