# SPDX-License-Identifier: MIT
"""The kinds of server that every test runs with, and what is missing here."""

import functools

import pytest

import server as servers
import website


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


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site of website.py; who adds files to it gives them names of their own."""
    return website.Site(tmp_path_factory.mktemp("site"))
