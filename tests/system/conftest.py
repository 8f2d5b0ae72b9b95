# SPDX-License-Identifier: MIT
"""The kinds of server that every test runs with, what is missing here, and
which of the tests are run."""

import collections
import functools

import pytest

import responder
import server as servers
import website


def pytest_addoption(parser):
    parser.addoption("--thin", action="store_true",
                     help="each test with the first of its parameters alone")
    parser.addoption("--part", metavar="N/M",
                     help="the Nth of M parts of the tests, to be run beside each other")


def first_of_each(items):
    """One item of each function."""
    return list({(item.path, item.originalname): item for item in reversed(items)}.values())[::-1]


def part_of(items, number, count):
    """A file's tests of one kind stay together, since they share servers; parts are as large."""
    def group(item):
        return str(item.path), getattr(item, "callspec", None) and item.callspec.params.get("kind")

    sizes = collections.Counter(map(group, items))
    parts = [set() for _ in range(count)]
    totals = [0] * count
    for key, size in sorted(sizes.items(), key=lambda entry: (-entry[1], str(entry[0]))):
        least = totals.index(min(totals))
        parts[least].add(key)
        totals[least] += size
    return [item for item in items if group(item) in parts[number - 1]]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """After -k has chosen."""
    kept = first_of_each(items) if config.getoption("thin") else list(items)
    if config.getoption("part"):
        kept = part_of(kept, *map(int, config.getoption("part").split("/")))
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


@functools.lru_cache
def why_not(kind, root):
    """Why a kind cannot run on this machine; empty when it can."""
    if kind == "uring" and servers.VALGRIND:
        return "Valgrind stops for ever in io_uring_enter"
    try:
        with servers.running(kind, root):
            return ""
    except AssertionError as error:
        said = str(error)
        # Only what a kernel can lack; anything else is a failure.
        if "io_uring cannot be used: " in said and kind == "uring":
            return said
        raise


@pytest.fixture(scope="session", params=servers.KINDS)
def kind(request, tmp_path_factory):
    why = why_not(request.param, tmp_path_factory.getbasetemp())
    if why:
        pytest.skip(why)
    return request.param


@pytest.fixture
def start(kind):
    """start(root, options...): a server for one test, ended and judged after it."""
    started = []

    def begin(root, *options, **how):
        started.append(servers.Server(kind, root, *options, **how))
        return started[-1]

    yield begin
    try:
        for one in started:
            one.stop()
    finally:
        for one in started:
            one.kill()


@pytest.fixture
def one(kind, tmp_path):
    """one(handle): an application, and a thread's server for it."""
    started = []

    def begin(handle, *options, others=(), path="app.sock"):
        app = responder.Application(handle, tmp_path / path)
        addresses = ",".join([app.address, *others])
        context = servers.running(kind, tmp_path, "--threads", 1, "--fastcgi", f"/app={addresses}",
                          *options)
        started.append((app, context))
        app.server = context.__enter__()
        return app

    yield begin
    for app, context in started:
        context.__exit__(None, None, None)
        app.close()
        assert not app.faults


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site of website.py; who adds files to it gives them names of their own."""
    return website.Site(tmp_path_factory.mktemp("site"))
