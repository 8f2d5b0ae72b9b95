#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check-includes.py - each source and header includes what it uses.

A file that gets a declaration only through another header breaks when that header
stops including it, which a newer library may do at any time.  include-what-you-use
reads each file as it is compiled; tests/includes.imp says which public header stands
for which parts of it.  Prints a line for each header to add, with what it declares:

    sweet/dav/dav-xml.c: add #include <stdint.h> (uintptr_t)

Usage: check-includes.py [--fix] [-j JOBS] [PATH...]

  --fix     also adds the lines, each in its block, in order
  -j JOBS   files that are read at the same time (default: the processors)
  PATH...   only these files and folders, named from the top of the sources

Environment: srcdir, the top of the sources (default: above this script); IWYU
(iwyu); PKG_CONFIG (pkg-config).
Exit status: 0 good, 1 not, 77 without include-what-you-use.
"""

import argparse
import collections
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
IWYU = os.environ.get("IWYU", "iwyu")
PARTS = ("libnabc", "libnabc-fcgi", "libnabc-glib", "nabcctl", "sweet", "cgi-examples", "examples", "bench", "tests")
FOLDERS = (
    ("-I", ("libnabc", "libnabc-fcgi", "sweet", "nabcctl", "bench", "bench/load", "tests/unit", "tests/fuzz")),
    # Their check.h and guest.h must not stand before those of others.
    ("-iquote", ("tests/torture", "tests/faults", "bench/kernel", "tests/kernel")),
    # As system headers, which are included with <>.
    ("-idirafter", ("libnabc/include", "libnabc-glib", "kernel-shim")))
LIBRARIES = ("glib-2.0", "gio-2.0", "liburing", "openssl", "libnghttp2", "check", "expat",
             "libcurl", "libpcre2-8", "zlib")
DEFINED = ("_GNU_SOURCE", 'PACKAGE_VERSION="0"', "HAVE_ZSTD=1", "HAVE_BROTLI=1", "HAVE_ZLIB=1",
           "HAVE_LIBFCGI=1", 'PKGLIBDIR="/usr/lib/nabc"',
           # It aborts at vectors of the compiler's.
           "vector_size(bytes)=aligned(1)")
# Other names of one header.
ALIASES = {"<syscall.h>": "<sys/syscall.h>", "<cstdio>": "<stdio.h>", "<glib/gtypes.h>": "<glib.h>"}
# Of what POSIX lets several headers declare, each of them will do; which one include-what-you-use
# names depends on its version.
COMMON = {
    "size_t ssize_t NULL": "stddef.h stdio.h stdlib.h string.h sys/socket.h sys/types.h sys/uio.h "
                           "time.h unistd.h",
    "off_t off64_t SEEK_SET SEEK_END": "fcntl.h stdio.h sys/mman.h sys/stat.h sys/types.h unistd.h",
    "blkcnt_t dev_t ino_t mode_t": "fcntl.h sys/stat.h sys/types.h",
    "pid_t id_t": "fcntl.h sched.h signal.h sys/resource.h sys/types.h sys/wait.h unistd.h",
    "uid_t gid_t": "grp.h pwd.h sys/stat.h sys/types.h unistd.h",
    "time_t clockid_t timer_t timespec": "poll.h signal.h sys/stat.h sys/types.h time.h",
    "timeval suseconds_t useconds_t": "sys/resource.h sys/select.h sys/time.h sys/types.h unistd.h",
    "siginfo_t WEXITSTATUS WIFEXITED WIFSIGNALED WTERMSIG": "signal.h sys/wait.h",
    "iovec": "sys/socket.h sys/uio.h",
    "htonl htons ntohl ntohs": "arpa/inet.h netinet/in.h",
    "optarg optind": "getopt.h unistd.h",
    "INFINITY NAN": "math.h",
}
COMMON = {word: {f"<{header}>" for header in headers.split()}
          for words, headers in COMMON.items() for word in words.split()}


def sources(top, paths):
    """All C sources and headers there."""
    found = {path for path in paths if not os.path.isdir(os.path.join(top, path))}
    for path in paths:
        for kind in "ch":
            found.update(glob.glob(f"{path.rstrip('/')}/**/*.{kind}", root_dir=top, recursive=True))
    return sorted(found)


def flags(top):
    said = subprocess.run([os.environ.get("PKG_CONFIG", "pkg-config"), "--cflags", *LIBRARIES],
                          capture_output=True, text=True).stdout.split()
    folders = [how + os.path.join(top, folder) for how, row in FOLDERS for folder in row]
    return ["-std=gnu11", "-x", "c", *(f"-D{word}" for word in DEFINED), *folders, *said]


def read(top, path, options):
    """Returns what iwyu says of a file."""
    how = [f"--mapping_file={HERE}/includes.imp", "--max_line_length=1000"]
    command = [IWYU, *(word for option in how for word in ("-Xiwyu", option)), *options, path]
    done = subprocess.run(command, cwd=top, capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C"})
    ended = f"{path}: error: {IWYU} ended by signal {-done.returncode}\n" if done.returncode < 0 else ""
    return ended + done.stderr


def text_of(path):
    with open(path) as file:
        return file.read()


def included(top, path):
    return re.findall(r'^#include ([<"].*?[>"])', text_of(os.path.join(top, path)), re.M)


def known_of(top, path):
    """The headers that a file includes, and its own header for it."""
    found = set(included(top, path))
    own = path[:-2] + ".h"
    if path.endswith(".c") and os.path.exists(os.path.join(top, own)):
        found |= set(included(top, own))
    return found


class Findings:
    def __init__(self, top):
        self.top = top
        self.seen = set()
        self.add = collections.defaultdict(dict)  # {file: {header: what it declares}}
        self.tags = collections.defaultdict(list)  # {header: declarations of structures}
        self.errors = []

    def take(self, path, said):
        """Takes what iwyu said of a file."""
        self.seen.add(path)
        self.own(path)
        self.errors += [line for line in said.splitlines() if re.search(r"(^|: )(fatal )?error: ", line)]
        parts = re.split(r"^(\S+) should add these lines:$", said, flags=re.M)
        for name, text in zip(parts[1::2], parts[2::2]):
            name = os.path.normpath(os.path.relpath(os.path.join(self.top, name), self.top))
            text = text.split("\n\n")[0]
            for header, words in re.findall(r'^#include ([<"].*?[>"]) *(?:// for (.*))?$', text, re.M):
                self.missing(name, header, words.split(", "))
            # A prototype whose structure nothing has declared before is an error of its own.
            if name.endswith(".h"):
                self.tags[name] += [f"{tag};" for tag in re.findall(r"^((?:struct|union) \w+);$", text, re.M)
                                    if not self.is_defined(name, tag)]
        self.seen |= {os.path.normpath(name) for name in
                      re.findall(r"^\(?(\S+) (?:should add these lines:|has correct)", said, re.M)}

    def own(self, path):
        """A source includes its own header, which is then known to agree with it."""
        own = path[:-2] + ".h"
        if path.endswith(".c") and os.path.exists(os.path.join(self.top, own)):
            folders = [folder for how, row in FOLDERS for folder in row if how == "-I"]
            name = next((os.path.relpath(own, folder) for folder in folders
                         if own.startswith(folder + "/")), own)
            if not {f'"{name}"', f'"{os.path.basename(own)}"', f"<{os.path.basename(own)}>"} & set(
                    included(self.top, path)):
                self.add[path][self.spelled(path, f'"{name}"')] = ["its own header"]

    def missing(self, path, header, words):
        has = known_of(self.top, path)
        header = ALIASES.get(header, header)
        words = [word for word in words if not has & COMMON.get(word, set())]
        header = self.spelled(path, header)
        if words and header not in has and not os.path.basename(path) == header.strip('<">'):
            self.add[path][header] = sorted({*self.add[path].get(header, ()), *words})

    def is_defined(self, path, tag):
        """Whether a header declares a structure elsewhere, or includes one that defines it."""
        if f"\n{tag};" in text_of(os.path.join(self.top, path)):
            return True
        for header in included(self.top, path):
            for _, folders in FOLDERS:
                for folder in (os.path.dirname(path), *folders):
                    place = os.path.join(self.top, folder, header.strip('<">'))
                    if os.path.exists(place) and f"\n{tag} {{" in text_of(place):
                        return True
        return False

    def spelled(self, path, header):
        """As the file's neighbours include it: programs and tests name no folder for their own
        headers, and those of another part are in <>."""
        own = os.path.join(os.path.dirname(path), os.path.basename(header.strip('"')))
        if header[0] == '"' and not path.startswith(("libnabc/", "sweet/")) and own in (
                os.path.join(folder, header.strip('"')) for _, row in FOLDERS for folder in row):
            return f'"{os.path.basename(own)}"'
        if path.startswith("nabcctl/") and "/" in header:
            return header.replace('"', "<", 1).replace('"', ">")
        return header


def check(top, paths, jobs):
    findings = Findings(top)
    options = flags(top)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        # Headers that were read with their sources need not be read again.
        for kind in "ch":
            left = [path for path in paths if path.endswith(kind) and path not in findings.seen]
            for path, said in zip(left, pool.map(lambda path: read(top, path, options), left)):
                findings.take(path, said)
    return findings


def place_tag(lines, tag):
    """Where the declaration of a structure belongs: below the headers, in order."""
    starts = [number for number, line in enumerate(lines) if line.startswith(("#include", "#define"))]
    place = max((number for number in starts if lines[number].startswith("#include")),
                default=starts[0]) + 1
    if not re.match(r"(struct|union) \w+;$", lines[place + 1]):
        return place, True
    place += 1
    while re.match(r"(struct|union) \w+;$", lines[place]) and lines[place] < tag:
        place += 1
    return place, False


def kind(header):
    """Each kind has a block of its own; the project's public headers may stand in the first."""
    if header[0] == "<":
        return 1 if header.startswith("<nabc") else 0
    return 2 if "/" in header else 3


def place(lines, header):
    """Where a line belongs: in order in the block of its kind.  Returns its number, and whether
    it is a block of its own, before or after the others."""
    rows = [(number, re.match(r"#include ([<\"].*[>\"])", line)) for number, line in enumerate(lines)]
    rows = [(number, match.group(1)) for number, match in rows if match]
    same = [row for row in rows if kind(row[1]) == kind(header)] or \
        [row for row in rows if kind(row[1]) < 2 and kind(header) < 2]
    for number, other in same:
        if other > header:
            return number, ""
    if same:
        return same[-1][0] + 1, ""
    for number, other in rows:
        if kind(other) > kind(header):
            return number, "before"
    return rows[-1][0] + 1, "after"


def fix(top, findings):
    for path in {*findings.add, *findings.tags}:
        headers = findings.add.get(path, ())
        path = os.path.join(top, path)
        lines = text_of(path).split("\n")
        for header in headers:
            line, alone = place(lines, header)
            new = [f"#include {header}"]
            if alone:
                new = new + [""] if alone == "before" else [""] + new
            lines[line:line] = new
        for tag in sorted(set(findings.tags.get(os.path.relpath(path, top), ()))):
            line, alone = place_tag(lines, tag)
            lines[line:line] = ["", tag] if alone else [tag]
        with open(path, "w") as file:
            file.write("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(usage="check-includes.py [--fix] [-j JOBS] [PATH...]")
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("-j", dest="jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("paths", nargs="*", default=PARTS)
    given = parser.parse_args()
    if not shutil.which(IWYU):
        print("check-includes: include-what-you-use is missing; on Debian: apt-get install iwyu")
        return 77
    top = os.path.abspath(os.environ.get("srcdir", os.path.dirname(HERE)))
    findings = check(top, sources(top, given.paths), given.jobs)
    for path, headers in sorted(findings.add.items()):
        for header, words in sorted(headers.items()):
            print(f"{path}: add #include {header} ({', '.join(words)})")
    for path, tags in sorted(findings.tags.items()):
        for tag in sorted(set(tags)):
            print(f"{path}: add {tag}")
    for line in findings.errors:
        print(line)
    if given.fix:
        fix(top, findings)
    return 1 if findings.add or findings.errors or any(findings.tags.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
