# SPDX-License-Identifier: MIT
"""Selects the tests to run, and the backend of the server for each: the options --backends,
--thin and --slice, and the marks."""

import collections
import functools
import tempfile
import zlib

import pytest

import server as servers
import tls
import tools

# The areas that are about requests and responses, whatever carries them.
OVER = ("protocol", "static", "cache", "workers", "cgi-fastcgi", "upstream-http",
        "security", "dav")
NONE = "none"  # for tests that choose no backend
FIRST = "first"

OPTIONS = [
    ("--backends", {"metavar": "LIST", "help": "only tests with these backends, words with commas "
     f"between them: {', '.join(servers.KINDS)}, {FIRST} (of each test the first that this kernel has), "
     f"{NONE} (tests that choose none)"}),
    ("--thin", {"action": "store_true", "help": "each test function once: with one of the "
     "backends in turn, and with the first of its other parameters"}),
    ("--slice", {"metavar": "N/M", "help": "the Nth of M slices of the tests"}),
    ("--shuffle", {"metavar": "SEED", "help": "in an order that SEED decides"}),
    ("--lacking", {"metavar": "PACKAGE", "help": "only tests that need a program of this Debian package, "
     "which is not there: they must be skipped"}),
    ("--needing", {"metavar": "LIST", "help": "only tests that need programs of these Debian packages "
     "and of no others"}),
    ("--list-needs", {"metavar": "FILE", "help": "writes to FILE a line for --needing for each set of "
     "packages, and runs no test"}),
]
MARKS = [
    "needs(program, ...): skipped without these programs of others",
    "clear(why): not run with TLS (SWEET_OVER=tls, SWEET_OVER=h2)",
    "http1(why): about HTTP/1.1 itself, and not run over HTTP/2 (SWEET_OVER=h2)",
    "thorough: gigabytes, or many seconds of computing, which the first tier leaves to the second",
    "bench: tests the tools of bench/ and tests/torture/, not the server: no sanitizer looks at it",
]


@functools.lru_cache
def why_not(kind):
    """Returns why a backend cannot run on this machine; empty if it can."""
    if kind == "uring" and servers.VALGRIND:
        return "Valgrind stops for ever in io_uring_enter"
    try:
        with tempfile.TemporaryDirectory() as root, servers.running(kind, root):
            return ""
    except AssertionError as error:
        said = str(error)
        # Only what a kernel may lack; anything else is a failure.
        if "io_uring cannot be used: " in said and kind == "uring":
            return said
        raise


def backend_of(item):
    """Returns the backend among a test's parameters, whatever the parameter's name."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    chosen = [parameters["kind"]] if "kind" in parameters else parameters.values()
    for value in chosen:
        if isinstance(value, str) and value in servers.KINDS:
            return value
    return NONE


def by_backends(items, words):
    """Returns the items that --backends selects."""
    wanted, known = words.split(","), (*servers.KINDS, FIRST, NONE)
    for word in wanted:
        if word not in known:
            raise pytest.UsageError(f"--backends: {word} is none of {', '.join(known)}")
    kept = {item for item in items if backend_of(item) in wanted}
    if FIRST in wanted:
        here = [kind for kind in servers.KINDS if not why_not(kind)]
        for variants in functions_of(items).values():
            having = set(map(backend_of, variants))
            first = next((kind for kind in here if kind in having), None)
            kept |= {item for item in variants if backend_of(item) == first}
    return [item for item in items if item in kept]


def functions_of(items):
    """Returns {function: its items}."""
    functions = collections.defaultdict(list)
    for item in items:
        functions[item.path, item.originalname].append(item)
    return functions


def one_of_each(items):
    """Returns one item of each function; the functions use the backends in turn."""
    kept = []
    for (_, name), variants in functions_of(items).items():
        backends = list(dict.fromkeys(map(backend_of, variants)))
        # By name, so that the choice does not depend on the other tests.
        turn = backends[zlib.crc32(name.encode()) % len(backends)]
        kept.append(next(item for item in variants if backend_of(item) == turn))
    return kept


def slice_of(items, number, count):
    """Neighbours stay together, because they share servers."""
    if not 1 <= number <= count:
        raise pytest.UsageError(f"--slice: there is no {number} of {count}")
    return items[len(items) * (number - 1) // count:len(items) * number // count]


def choose(config, items):
    """Returns the items that the options select."""
    option = config.getoption
    kept = list(items)
    if tls.OVER:
        kept = [item for item in kept if item.path.parent.name in OVER
                and not item.get_closest_marker("clear")
                and not (tls.HTTP2 and item.get_closest_marker("http1"))]
    if option("backends"):
        kept = by_backends(kept, option("backends"))
    if option("thin"):
        kept = one_of_each(kept)
    if option("slice"):
        kept = slice_of(kept, *map(int, option("slice").split("/")))
    if option("lacking"):
        kept = [item for item in kept if option("lacking") in packages_of(item)]
    if option("needing"):
        kept = [item for item in kept if packages_of(item) == set(option("needing").split(","))]
    if option("list_needs"):
        with open(option("list_needs"), "w") as file:
            file.writelines(sorted({",".join(sorted(packages_of(item))) + "\n" for item in kept} - {"\n"}))
        return []
    return kept


def needs_of(item):
    """Returns the programs that a test needs."""
    return [name for mark in item.iter_markers("needs") for name in mark.args]


def packages_of(item):
    """Returns the Debian packages that a test needs; a program that Debian does not have counts as
    one."""
    return {tools.PACKAGES.get(name, name) for name in needs_of(item)}


def lacking(item):
    """Returns a line that names the program that a test lacks, or nothing."""
    for name in needs_of(item):
        if not tools.find(name):
            return tools.missing(name)
    return ""


def found_of(item, package):
    """Returns the programs of a package that a test needs and finds."""
    return [name for name in needs_of(item) if tools.PACKAGES.get(name) == package and tools.find(name)]
