#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-words.sh - names and texts without the words of tests/words.txt, each of
# which has a usual term instead, so that a search for that term finds the place.
# Names are those of sources, types and functions of libnabc, nabcctl and sweet,
# and of their unit tests; texts are the documents and the manual.  What stands in
# `backquotes` or code, or between quotation marks, is a quotation.
#
# Environment: srcdir, the top of the sources (default: above this script).
# Exit status: 0 good, 1 not, 77 without python3.

command -v python3 >/dev/null || {
	echo "check-words: python3 is missing; on Debian: apt-get install python3"
	exit 77
}
cd "${srcdir:-$(dirname "$0")/..}" || exit 1
exec python3 - <<'PYTHON'
import glob
import os
import re
import sys

words = {"file": {}, "name": {}, "text": {}}
with open("tests/words.txt") as file:
    for number, line in enumerate(file, 1):
        if line.strip() and not line.startswith("#"):
            found = re.fullmatch(r"(file|name|text) (.+?) = (.+)\n?", line)
            if not found:
                sys.exit(f"check-words: tests/words.txt:{number}: not WHERE WORD = WHAT TO SAY")
            words[found[1]][found[2]] = found[3]
wrong = []


def check_name(place, name, known):
    for part in re.split(r"[-_.]", name):
        if part in known:
            wrong.append(f"{place}: {name}: say {known[part]}")


FOLDERS = ("libnabc", "libnabc-glib", "nabcctl", "sweet", "tests/unit")
# A type, a function that is defined or declared at the front of a line, or an enumerator.
NAMES = re.compile(r"^(?:static |extern |inline |const )*(?:struct|enum|union) (\w+)|^[\w*\s]*?\b(\w+)\(", re.M)
for folder in FOLDERS:
    for path in sorted(glob.glob(f"{folder}/**/*.[ch]", recursive=True)):
        check_name(path, os.path.basename(path), {**words["name"], **words["file"]})
        with open(path) as source:
            text = re.sub(r"/\*.*?\*/", "", source.read(), flags=re.S)
        for found in sorted({name for pair in NAMES.findall(text) for name in pair if name}):
            check_name(path, found, words["name"])

phrases = re.compile(r"\b(%s)\b" % "|".join(
    re.escape(word).replace(r"\ ", r"\s+") for word in words["text"]), re.I)
for path in sorted([*glob.glob("*.md"), *glob.glob("doc/*.md"), *glob.glob("man/*.[1-8]"),
                    *glob.glob("**/README.md", recursive=True), *glob.glob("bench/sections/*.md")]):
    if path.startswith("build"):
        continue
    with open(path) as document:
        text = document.read()

    def blank(found):
        """Keeps the lines' numbers."""
        return re.sub(r"[^\n]", " ", found[0])

    text = re.sub(r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"|^    [^\n]*$", blank, text, flags=re.S | re.M)
    for found in phrases.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        word = re.sub(r"\s+", " ", found[1].lower())
        wrong.append(f"{path}:{line}: \"{word}\": say {words['text'][word]}")
print("\n".join(f"check-words: {line}" for line in sorted(set(wrong))) or
      "check-words: no replaced word is left")
sys.exit(bool(wrong))
PYTHON
