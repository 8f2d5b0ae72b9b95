#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-words.sh - names and texts without the words of tests/words.txt, each of
# which has a usual term instead, so that a search for that term finds the place.
# Names are those of sources, types and functions of libnabc, nabcctl and sweet,
# and of their unit tests; texts are the documents, the manual, and the comments
# of C, Python and shell sources, with Python's docstrings.  What stands in
# `backquotes` or code, or between quotation marks, is a quotation.
#
# Environment: srcdir, the top of the sources (default: above this script).
# Exit status: 0 good, 1 not, 77 without python3.

command -v python3 >/dev/null || {
	echo "check-words: python3 is missing; on Debian: apt-get install python3"
	exit 77
}
cd "${srcdir:-$(dirname "$0")/..}" || exit 1
exec python3 - <<'END'
import ast
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


FOLDERS = ("libnabc", "libnabc-fcgi", "libnabc-glib", "nabcctl", "sweet", "tests/unit")
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
QUOTED = r"`[^`\n]*`|\"[^\"\n]*\""


def blank(found):
    """Keeps the lines' numbers."""
    return re.sub(r"[^\n]", " ", found[0])


def check_text(path, text, quoted):
    text = re.sub(quoted, blank, text, flags=re.S | re.M)
    for found in phrases.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        word = re.sub(r"\s+", " ", found[1].lower())
        wrong.append(f"{path}:{line}: \"{word}\": say {words['text'][word]}")


# Strings come first: they may contain what looks like a comment.
C = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|(/\*.*?\*/|//[^\n]*)", re.S)
PYTHON = re.compile(r"\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|\"(?:\\.|[^\"\\\n])*\"|"
                    r"'(?:\\.|[^'\\\n])*'|(\#[^\n]*)", re.S)
SHELL = re.compile(r"^[^\"'#\n]*?(?<!\S)(\#.*)", re.M)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(text):
    """Yields the first and the last line of each, counted from 1."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            yield node.body[0].lineno, node.body[0].end_lineno


def comments(text, pattern):
    """Returns only the comments of a source, each on its lines, and ";" between two of them."""
    lines = [";"] * (text.count("\n") + 1)
    for found in pattern.finditer(text):
        if not found[1]:
            continue
        first = text.count("\n", 0, found.start(1))
        # A comment of lines with "#" continues unless code stands before the mark.
        alone = not text[text.rfind("\n", 0, found.start(1)) + 1:found.start(1)].strip()
        for number, line in enumerate(found[1].split("\n"), first):
            lines[number] = re.sub(r"^\s*(?:/\*+|\*+(?!/)|//+|#+)|\*/", " ", line)
        if not (alone and pattern is not C):
            lines[first] = "; " + lines[first]
    if pattern is PYTHON:
        for first, last in docstrings(text):
            lines[first - 1:last] = text.split("\n")[first - 1:last]
            lines[first - 1] = lines[first - 1].replace('"""', ";", 1)
            lines[last - 1] = lines[last - 1].replace('"""', ";")
    return "\n".join(lines)


for folder, folders, names in os.walk("."):
    # Skips what tools build or hide.
    folders[:] = sorted(name for name in folders if name == ".ci" or not (
        name.startswith((".", "_", "build", "autom4te")) or os.path.islink(f"{folder}/{name}")))
    for name in sorted(set(names) - {"configure", "libtool", "ltmain.sh"}):
        path = os.path.relpath(f"{folder}/{name}")
        pattern = {".c": C, ".h": C, ".py": PYTHON, ".sh": SHELL}.get(os.path.splitext(name)[1])
        if not pattern and "." not in name and os.access(path, os.X_OK):
            with open(path, "rb") as script:
                start = script.readline(100)
            pattern = PYTHON if b"python" in start else SHELL if start.startswith(b"#!") else None
        if pattern:
            with open(path) as source:
                check_text(path, comments(source.read(), pattern), QUOTED)

for path in sorted([*glob.glob("*.md"), *glob.glob("doc/*.md"), *glob.glob("man/*.[1-8]"),
                    *glob.glob("**/README.md", recursive=True), *glob.glob("bench/sections/*.md")]):
    if not path.startswith("build"):
        with open(path) as document:
            check_text(path, document.read(), rf"```.*?```|{QUOTED}|^    [^\n]*$")
print("\n".join(f"check-words: {line}" for line in sorted(set(wrong))) or
      "check-words: no replaced word is left")
sys.exit(bool(wrong))
END
