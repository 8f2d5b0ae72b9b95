#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-docs.sh - what the documents at the top of the tree and in doc/ refer to
# exists: targets of relative links with their headings, files named in
# `backquotes`, by their path or, in a source's case, by name alone; and manual
# pages named as `NAME(3)` or NAME(8) if they are ours.  Each block of C in doc/ compiles, if
# this system has the headers that it includes.
#
# Environment: srcdir, the top of the sources (default: above this script); CC (cc).
# Exit status: 0 good, 1 not, 77 without python3.

command -v python3 >/dev/null || {
	echo "check-docs: python3 is missing; on Debian: apt-get install python3"
	exit 77
}
cd "${srcdir:-$(dirname "$0")/..}" || exit 1
exec python3 - README.md ARCHITECTURE.md CHANGES.md CONTRIBUTING.md SECURITY.md doc/*.md doc/recipes/*.md tests/README.md <<'PYTHON'
import os
import re
import shlex
import shutil
import subprocess
import sys

FOLDERS = ("libnabc", "libnabc-fcgi", "libnabc-glib", "nabcctl", "sweet", "kernel-shim", "tests", "bench", "man", "doc",
           "cgi-examples", "examples")
names = {name for folder in FOLDERS for _, _, files in os.walk(folder) for name in files}
pages = {name for name in names if re.fullmatch(r".*\.[1-8]", name)}
COMPILER = shlex.split(os.environ.get("CC", "cc"))
wrong = []


def anchors(path):
    """The headings of a document, as links name them."""
    with open(path) as document:
        titles = re.findall(r"^#+ (.*)$", document.read(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def check(path):
    with open(path) as document:
        text = document.read()
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    text = re.sub(r"^    .*$", "", text, flags=re.M)
    folder = os.path.dirname(path)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(folder, name)) if name else path
        if not os.path.exists(file):
            wrong.append(f"{path}: a link to {target}, which does not exist")
        elif anchor and anchor not in anchors(file):
            wrong.append(f"{path}: {file} has no heading #{anchor}")
    for quoted in re.findall(r"`([^`\n]+)`", text):
        if re.fullmatch(r"(%s)/[\w./-]*" % "|".join(FOLDERS), quoted):
            if not os.path.exists(quoted):
                wrong.append(f"{path}: {quoted} does not exist")
        elif re.fullmatch(r"[\w-]+\.[ch]", quoted) and quoted not in names and "/" not in quoted:
            wrong.append(f"{path}: there is no source {quoted}")
    for name, section in re.findall(r"\b(NC_\w+|nabc|nabcctl|sweet|sweet\.conf|sweet-experiments)\(([1-8])\)", text):
        if f"{name}.{section}" not in pages:
            wrong.append(f"{path}: there is no page {name}({section})")


def compiles(code):
    """Returns what the compiler says against it."""
    command = [*COMPILER, "-x", "c", "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only",
               "-Wall", "-Wextra", "-Werror", "-Ilibnabc/include", "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def check_code(path):
    with open(path) as document:
        blocks = re.findall(r"^```c\n(.*?)^```$", document.read(), re.M | re.S)
    for number, block in enumerate(blocks, 1):
        includes = "".join(re.findall(r"^#include.*\n", block, re.M))
        if not compiles(includes) and (said := compiles(block)):
            wrong.append(f"{path}: block {number} of C does not compile:\n{said}")


for document in sys.argv[1:]:
    check(document)
    if document.startswith("doc/") and shutil.which(COMPILER[0]):
        check_code(document)
print("\n".join(f"check-docs: {line}" for line in wrong) or
      f"check-docs: the references of {len(sys.argv) - 1} documents are good")
sys.exit(bool(wrong))
PYTHON
