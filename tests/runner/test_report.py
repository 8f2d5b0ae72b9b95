# SPDX-License-Identifier: MIT
"""The report on jobs: counts of tests, failures, and skips that no list permits."""

import json

import pytest

import estimates
import report
from pool import Job

UNIT = """\
Running suite(s): id
91%: Checks: 12, Failures: 1, Errors: 0
tests/unit/test-id.c:71:F:id:test_id:0: Assertion failed
Running suite(s): other
100%: Checks: 3, Failures: 0, Errors: 0
"""


@pytest.fixture
def job(tmp_path):
    def make(status, text="", rows=None, **more):
        one = Job("suite/job", "suite", [], str(tmp_path / "log"), **more)
        one.status = status
        (tmp_path / "log").write_text(text)
        if rows is not None:
            one.results = str(tmp_path / "results")
            (tmp_path / "results").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return one

    return make


def outcomes(job):
    return [(test.name, test.outcome, test.count, test.reason) for test in report.tests_of(job)]


def test_unit(job):
    assert outcomes(job(1, UNIT)) == [("suite/job", "passed", 14, ""),
                                      ("suite/job", "failed", 1, "exit status 1")]


def test_unit_that_died_after_its_checks(job):
    text = "100%: Checks: 3, Failures: 0, Errors: 0\n"
    assert outcomes(job(-11, text))[1] == ("suite/job", "failed", 1, "ended by signal 11")


def test_script(job):
    assert outcomes(job(0, "fine\n")) == [("suite/job", "passed", 1, "")]
    assert outcomes(job(1)) == [("suite/job", "failed", 1, "exit status 1")]
    assert outcomes(job(77, "a\nno curl\n")) == [("suite/job", "skipped", 1, "no curl")]


def row(name, outcome, reason=""):
    return {"test": name, "outcome": outcome, "seconds": 1, "reason": reason}


def test_results(job):
    rows = [{"begin": "a"}, row("a", "passed"), {"begin": "b"}, row("b", "skipped", "no b")]
    assert outcomes(job(0, rows=rows)) == [("a", "passed", 1, ""), ("b", "skipped", 1, "no b")]


def test_test_that_never_ended(job):
    found = outcomes(job(-9, rows=[{"begin": "a"}, row("a", "passed"), {"begin": "b"}]))
    assert found[1] == ("b", "failed", 1, "it had begun and has not ended")


def test_results_that_are_cut_off(job, tmp_path):
    one = job(-9, rows=[{"begin": "a"}, row("a", "passed")])
    with open(one.results, "a") as file:
        file.write('{"begin": "b')
    assert [test.outcome for test in report.tests_of(one)] == ["passed", "failed"]


@pytest.mark.parametrize("status, fault, why", [
    (2, "", "exit status 2"), (0, "left running: sweet", "left running: sweet"),
])
def test_bad_end_of_good_tests(job, status, fault, why):
    one = job(status, rows=[{"begin": "a"}, row("a", "passed")])
    one.fault = fault
    assert outcomes(one)[-1] == ("suite/job", "failed", 1, why)


@pytest.fixture
def allowed(tmp_path):
    (tmp_path / "allowed").write_text("# why\n\nsystem* *test_a.py* ^no [abc]$\n")
    return report.Allowed(tmp_path / "allowed")


@pytest.mark.parametrize("suite, test, reason, good", [
    ("system", "x/test_a.py::test", "no b", True),
    ("other", "x/test_a.py::test", "no b", False),
    ("system", "x/test_b.py::test", "no b", False),
    ("system", "x/test_a.py::test", "no d", False),
])
def test_allowed_skips(job, allowed, suite, test, reason, good):
    result = report.Result(suite)
    result.add(job(0, rows=[row(test, "skipped", reason)]), allowed)
    assert result.good(strict=False) and result.good(strict=True) == good


def test_bad_list(tmp_path):
    (tmp_path / "allowed").write_text("system only-two\n")
    with pytest.raises(SystemExit, match="allowed:1: not SUITE TEST REASON"):
        report.Allowed(tmp_path / "allowed")


def test_times(tmp_path):
    times = estimates.Times(tmp_path / "times.txt")
    assert times.of_file("test_a.py") == estimates.UNKNOWN
    times.files["test_a.py"] = 2.25
    times.suites["system"] = (10, 99.6)
    times.write()
    again = estimates.Times(tmp_path / "times.txt")
    assert again.of_file("test_a.py") == 2.2 and again.suites == {"system": (10, 100)}


def test_times_of_files(tmp_path):
    times = estimates.Times(tmp_path / "times.txt")
    times.set_files([report.Test("tests/test_a.py::one", "passed", 2),
                     report.Test("tests/test_a.py::two", "skipped", 0),
                     report.Test("tests/test_a.py::two", "passed", 1),
                     report.Test("tests/test_b.py::one", "passed", 4)])
    assert times.files == {"test_a.py": 3, "test_b.py": 4}
    times.set_files([])
    assert times.of_file("test_b.py") == 4


def test_what_an_earlier_run_left(tmp_path, job, allowed):
    result = report.Result("system")
    result.add(job(1, UNIT), allowed)
    report.save(tmp_path, result)
    assert report.load(tmp_path, "system")["failed"] == 1
    assert report.load(tmp_path, "nothing") is None
