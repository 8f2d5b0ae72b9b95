# SPDX-License-Identifier: MIT
"""Shared by the tests of the recipes: the fixture `recipe` for the page of doc/recipes/ that has the
name of the test's file, and the namespaces in which these tests run."""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEM = os.path.join(os.path.dirname(HERE), "system", "support")
sys.path[:0] = [os.path.join(HERE, "support"), SYSTEM]

import namespace  # noqa: E402
import postmortem  # noqa: E402
import results  # noqa: E402


def pytest_configure(config):
    results.open_for(config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    postmortem.forget()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        report.sections += postmortem.sections()
        if "recipe" in item.funcargs:
            report.sections += item.funcargs["recipe"].sections()


@pytest.fixture(scope="session")
def namespaces():
    """Applications that are installed are used, but nothing of theirs is changed."""
    if os.geteuid() != 0:
        pytest.skip("only root can have mounts and a network of its own")
    try:
        namespace.enter()
    except OSError as error:
        pytest.skip(f"no mounts and network of its own here: {error.strerror}")


@pytest.fixture(scope="module")
def recipe(request, namespaces, tmp_path_factory):
    from recipe import Recipe
    name = request.module.__name__.removeprefix("test_").replace("_", "-")
    made = Recipe(name, tmp_path_factory.mktemp(name))
    lacks = made.lacks()
    if lacks:
        pytest.skip(lacks)
    yield made
    made.stop()
