# SPDX-License-Identifier: MIT
"""The recipes: each page has its test, its row in the index, its packages and one configuration; and
the release has all of them."""

import os
import re

import pytest

import page as pages
import suites
from conftest import TOP


def read(*path):
    with open(os.path.join(TOP, *path)) as file:
        return file.read()


def test_each_page_has_a_test_and_each_test_a_page():
    tested = {os.path.basename(path).removeprefix("test_").removesuffix(".py").replace("_", "-")
              for path in suites.recipe_files()}
    # A page may come before its test, if it says so.
    assert tested == set(pages.names()) - pages.NOT_TESTED


@pytest.mark.parametrize("name", pages.names())
def test_page(name):
    page = pages.Page(name)
    assert f"]({name}.md)" in read("doc", "recipes", "README.md"), "not in the index"
    assert f"doc/recipes/{name}.md" in read("doc", "local.mk"), "not in doc/local.mk"
    assert page.lines() > 2
    assert f"\n{page.lines()} lines" in page.text, f"does not say that it has {page.lines()} lines"
    if name in pages.NOT_TESTED:
        assert "not tested" in page.text
    else:
        assert bool(page.packages) != (name in pages.WITHOUT_PACKAGES)
        assert set(page.packages) <= set(pages.packages())


def test_lines_are_those_that_say_something():
    class Text(pages.Page):
        def __init__(self):
            self.name, self.text = "text", "a\n```ini\n# no\n[sweet]\n\nroot=/srv\n```\nb=c\n"

    assert Text().lines() == 2
    assert Text().configuration == "# no\n[sweet]\n\nroot=/srv\n"


def test_jobs(tmp_path):
    context = suites.Context(TOP, str(tmp_path), None, 2)
    (suite,) = (suite for suite in suites.SUITES if suite.name == "recipes")
    jobs = list(suite.jobs(context, suite))
    assert len(jobs) == len(suites.recipe_files()) > 0
    assert set(pages.packages()) <= set(suite.packages.split())


def test_release_has_the_tests():
    named = re.findall(r"tests/recipes/[\w./-]+", read("tests", "local.mk"))
    found = {os.path.relpath(os.path.join(folder, file), TOP)
             for folder, _, files in os.walk(os.path.join(TOP, "tests", "recipes"))
             for file in files if file.endswith(".py")}
    assert found == set(named)
