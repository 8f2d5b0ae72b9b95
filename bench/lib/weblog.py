# SPDX-License-Identifier: MIT
"""Logs of web servers as lists of requests: the common and the combined log format, and lines
separated by tabs as in bench/traces; .gz or not.

Only GET requests with status 200 and a body count. A path is one document, with the largest size
in the log: smaller ones were interrupted transfers, or an older version. Invalid lines are
counted and reported, never guessed.
"""

import gzip
import re

from .process import Failure

# host ident user [time] "request" status bytes, then "referer" "user agent".
QUOTED = r'"((?:[^"\\]|\\.)*)"'
COMMON = re.compile(r"\S+ \S+ \S.* \[[^\]]+\] " + QUOTED + r" (\d{3}) (\d+|-)"
                    r"(?: " + QUOTED + " " + QUOTED + r")?")
REQUEST = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+)(?: HTTP/\d\.\d)?")
COLUMNS = 6
BAD_SHARE_MOST = 0.1
TOLD = 3
FULL = 0.99  # of a limit, above which no more documents are added


class Log:
    """order: the number of the document of each request; sizes: of the documents."""

    def __init__(self, order, sizes, words=""):
        self.order, self.sizes, self.words = order, sizes, words

    def within(self, limit):
        """Returns the requests for the documents that come first and together have limit bytes.

        All later requests for them are included, as in the papers. A document that is larger
        than the rest of the limit is skipped.
        """
        numbers, total = {}, 0
        for document in self.order:
            if document not in numbers and total + self.sizes[document] <= limit:
                total += self.sizes[document]
                numbers[document] = len(numbers)
                if total > FULL * limit:
                    break
        return Log([numbers[document] for document in self.order if document in numbers],
                   [self.sizes[document] for document in numbers])


def common(line):
    """Returns (method, path, status, bytes) or None; a line may contain an invalid request."""
    match = COMMON.fullmatch(line)
    if not match:
        return None
    request = REQUEST.fullmatch(match[1])
    if not request:
        return "", "", match[2], 0
    return request[1], request[2], match[2], 0 if match[3] == "-" else int(match[3])


def tabs(line):
    """Returns seconds, client, method, path, status, bytes."""
    columns = line.split("\t")
    if len(columns) != COLUMNS or not re.fullmatch(r"\d{3}", columns[4]) \
            or not re.fullmatch(r"[0-9]+", columns[5]):
        return None
    return columns[2], columns[3], columns[4], int(columns[5])


def parse(lines, name):
    """A Log of text lines."""
    reader, read, bad = None, 0, []
    numbers, order, sizes = {}, [], []
    for count, line in enumerate(lines, 1):
        line = line.rstrip("\r\n")
        if not line or line.startswith("#"):
            continue
        reader = reader or (tabs if line.count("\t") == COLUMNS - 1 else common)
        fields = reader(line)
        read += 1
        if not fields:
            bad.append(count)
            continue
        method, path, status, size = fields
        if method != "GET" or status != "200" or not size:
            continue
        number = numbers.setdefault(path, len(sizes))
        if number == len(sizes):
            sizes.append(0)
        sizes[number] = max(sizes[number], size)
        order.append(number)
    words = f"{name}: {len(order):,} of {read:,} requests, {len(sizes):,} documents," \
            f" {sum(sizes) / 1e6:,.1f} MB"
    if bad:
        words += f"; {len(bad):,} lines are no requests: " + ", ".join(map(str, bad[:TOLD])) \
                 + (", ..." if len(bad) > TOLD else "")
    if len(bad) > read * BAD_SHARE_MOST:
        raise Failure(f"{words}: this is no log in the common or combined format")
    if not order:
        raise Failure(f"{words}: nothing to be asked for")
    return Log(order, sizes, words)


def read(path):
    opener = gzip.open if path.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="latin-1", newline="\n") as file:
            return parse(file, path.rpartition("/")[2])
    except (EOFError, gzip.BadGzipFile) as error:
        raise Failure(f"{path}: {error}") from error
