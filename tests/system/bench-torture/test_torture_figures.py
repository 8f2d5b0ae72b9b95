# SPDX-License-Identifier: MIT
"""tests/torture/figures: what torture measured, as a table in a text."""

import json
import os
import pathlib
import subprocess

import pytest

pytestmark = pytest.mark.bench

FIGURES = pathlib.Path(os.environ["srcdir"]).resolve() / "tests/torture/figures"
RESULTS = {"seed": 7, "seconds": 60, "version": None, "date": "today", "kernel": "6.1", "cpus": 2,
           "passed": True, "stages": {"bytes": {"passed": True, "wrong": None, "seconds": 59.7,
                                                "counts": {"responses": 1203456, "wrong": 0}}}}


def weave(folder, text):
    (folder / "results").write_text(json.dumps(RESULTS))
    (folder / "text").write_text(text)
    done = subprocess.run([FIGURES, folder / "results", folder / "text"], capture_output=True,
                          text=True)
    return done, (folder / "text").read_text()


def test_table_is_replaced(tmp_path):
    done, text = weave(tmp_path, "before\n<!-- torture -->\nold\n<!-- torture -->\nafter\n")
    assert done.returncode == 0, done.stderr
    assert "old" not in text and text.startswith("before\n") and text.endswith("after\n")
    assert "| bytes | 60 | 1,203,456 responses, 0 wrong | passed |\n" in text
    again, same = weave(tmp_path, text)
    assert again.returncode == 0 and same == text


def test_nowhere_to_put_it(tmp_path):
    done, text = weave(tmp_path, "no marks\n")
    assert done.returncode == 1 and "two lines" in done.stderr
    assert text == "no marks\n"


def test_security_has_the_place():
    text = (FIGURES.parents[2] / "SECURITY.md").read_text()
    assert text.count("\n<!-- torture -->\n") == 2
