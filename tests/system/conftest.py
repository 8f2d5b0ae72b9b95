# SPDX-License-Identifier: MIT
"""Shared by all tests: which of them run (support/selection.py), what is recorded of
each (support/results.py, support/postmortem.py), and the servers that they use."""

import os
import random
import sys

import pytest

# The modules of support/; and tests import from other tests.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [entry.path for entry in os.scandir(HERE) if entry.is_dir()]

import postmortem  # noqa: E402
import responder  # noqa: E402
import results  # noqa: E402
import selection  # noqa: E402
import server as servers  # noqa: E402
import upstream as upstreams  # noqa: E402
import website  # noqa: E402
from moved_clock import Clock  # noqa: E402


def pytest_addoption(parser):
    for name, how in selection.OPTIONS:
        parser.addoption(name, **how)


def pytest_configure(config):
    for mark in selection.MARKS:
        config.addinivalue_line("markers", mark)
    results.open_for(config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Runs after -k and -m have selected."""
    kept = selection.choose(config, items)
    if config.getoption("shuffle"):
        random.Random(config.getoption("shuffle")).shuffle(kept)
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


def pytest_sessionfinish(session, exitstatus):
    """It is no error if some files have no selected test, unless a person selected the tests."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and results.are_wanted():
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Runs before any fixture, which may start a missing program."""
    postmortem.forget()
    package = item.config.getoption("lacking")
    found = package and selection.found_of(item, package)
    if found:
        pytest.fail(f"{package} is said to be missing, and {', '.join(found)} is found", pytrace=False)
    lacks = selection.lacking(item)
    if lacks:
        pytest.skip(lacks)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        report.sections += postmortem.sections()


@pytest.fixture(scope="session", params=servers.KINDS)
def kind(request):
    why = selection.why_not(request.param)
    if why:
        pytest.skip(why)
    return request.param


@pytest.fixture
def start(kind):
    """start(root, options...): a server for one test, stopped and checked after it."""
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
def clock(tmp_path):
    """For a server's clock=, which its timers use."""
    made = Clock(tmp_path / "clock")
    yield made
    made.close()


@pytest.fixture
def served(kind, tmp_path):
    """served(app, *options): a server with one thread in front of an application; both end
    with the test, and the application has had no fault."""
    started = []

    def begin(app, *options):
        context = servers.running(kind, tmp_path, "--threads", 1, *options)
        started.append((app, context))
        app.server = context.__enter__()
        return app

    yield begin
    for app, context in started:
        context.__exit__(None, None, None)
        app.close()
        assert not app.faults


@pytest.fixture
def one(served, tmp_path):
    """one(handle): an application, and a server with one thread for it."""

    def begin(handle, *options, others=(), path="app.sock", pool=None, tcp=False):
        """pool: lines of its section, instead of an option."""
        app = responder.Application(handle, None if tcp else tmp_path / path)
        addresses = [app.address, *others]
        if pool is None:
            how = ["--fastcgi", f"/app={','.join(addresses)}"]
        else:
            config = tmp_path / f"{path}.conf"
            config.write_text(f"[pool app]\nprotocol=fastcgi\nupstream={';'.join(addresses)}\n"
                              f"{pool}[path /app]\npool=app\n")
            how = ["--config", config]
        return served(app, *how, *options)

    return begin


@pytest.fixture
def behind(served, tmp_path):
    """behind(handle): an HTTP server, and a server with one thread in front of it; options:
    see upstream.config()."""
    def begin(handle, *options, others=(), tcp=False, name="app", **how):
        app = upstreams.Upstream(handle, None if tcp else tmp_path / f"{name}.sock")
        file = upstreams.config(tmp_path, [app.address, *others], name=name, **how)
        return served(app, "--config", file, *options)

    return begin


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site of website.py; tests that add files must choose names of their own."""
    return website.Site(tmp_path_factory.mktemp("site"))
