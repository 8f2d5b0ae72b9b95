# SPDX-License-Identifier: MIT
"""The results of jobs: counts, permitted and other skips, the slowest tests, and the
output lines."""

import collections
import dataclasses
import fnmatch
import json
import os
import re

TAIL = 100  # lines of the log that are printed for a failed job
SLOWEST = 20


@dataclasses.dataclass
class Test:
    name: str
    outcome: str  # passed, failed, skipped
    seconds: float = 0
    reason: str = ""
    count: int = 1  # a unit test program contains many


class Allowed:
    """tests/allowed-skips.txt: lines of SUITE TEST REASON, the first two patterns of a shell,
    the last a regular expression that is somewhere in the reason."""

    def __init__(self, path):
        self.rows = []
        with open(path) as file:
            for number, line in enumerate(file, 1):
                words = line.split(maxsplit=2)
                if not words or words[0].startswith("#"):
                    continue
                if len(words) != 3:
                    raise SystemExit(f"{path}:{number}: not SUITE TEST REASON: {line.strip()}")
                self.rows.append((words[0], words[1], re.compile(words[2].strip())))

    def has(self, suite, test):
        return any(fnmatch.fnmatchcase(suite, suites) and fnmatch.fnmatchcase(test.name, tests)
                   and reason.search(test.reason) for suites, tests, reason in self.rows)


def text_of(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def tests_of(job):
    """Returns the tests of a job; a job that reports no tests counts as one."""
    if job.results:
        found = list(tests_of_results(job.results))
        # A job that failed without a failed test has failed as a whole.
        if not job.good and not any(test.outcome == "failed" for test in found):
            found.append(Test(job.name, "failed", 0, why(job)))
        return found
    text = text_of(job.log)
    if job.status == 77 and not job.fault:
        lines = text.strip().splitlines()
        return [Test(job.name, "skipped", job.seconds, lines[-1] if lines else "exit status 77")]
    checks = re.findall(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$", text, re.M)
    if not checks:
        return [Test(job.name, "passed" if job.good else "failed", job.seconds, why(job))]
    count, *bad = map(sum, zip(*(map(int, row) for row in checks)))
    failed = sum(bad)
    rows = [Test(job.name, "passed", job.seconds, "", count - failed)]
    if failed or not job.good:
        rows.append(Test(job.name, "failed", 0, why(job), max(failed, 1)))
    return rows


def tests_of_results(path):
    begun = None
    for line in text_of(path).splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            # Its writer was killed, or the disk is full.
            yield Test(path, "failed", 0, f"no line of results: {line[:80]}")
            continue
        if "begin" in row:
            begun = row["begin"]
        else:
            begun = None
            yield Test(row["test"], row["outcome"], row["seconds"], row["reason"])
    if begun:
        yield Test(begun, "failed", 0, "it had begun and has not ended")


def why(job):
    if job.fault:
        return job.fault
    if job.status and job.status < 0:
        return f"ended by signal {-job.status}"
    return f"exit status {job.status}" if job.status else ""


def tail(path, lines=TAIL):
    return "\n".join(text_of(path).rstrip().splitlines()[-lines:])


@dataclasses.dataclass
class Result:
    """The result of one suite."""
    name: str
    tests: list = dataclasses.field(default_factory=list)
    jobs: int = 0
    failed: list = dataclasses.field(default_factory=list)  # (job's name, log, why)
    unlisted: list = dataclasses.field(default_factory=list)  # unlisted skipped tests
    began: float = float("inf")
    ended: float = 0

    def add(self, job, allowed):
        self.jobs += 1
        tests = tests_of(job)
        self.tests += tests
        if any(test.outcome == "failed" for test in tests):
            reasons = [test.reason for test in tests if test.outcome == "failed" and test.reason]
            self.failed.append((job.name, job.log, reasons[-1] if reasons else ""))
        self.unlisted += [test for test in tests
                          if test.outcome == "skipped" and not allowed.has(self.name, test)]

    def count(self, outcome):
        return sum(test.count for test in self.tests if test.outcome == outcome)

    @property
    def seconds(self):
        return sum(test.seconds for test in self.tests)

    def good(self, strict):
        return not self.failed and not (strict and self.unlisted)

    def line(self):
        counts = ", ".join(f"{self.count(what)} {what}" for what in ("passed", "failed", "skipped")
                           if self.count(what) or what == "passed")
        return (f"{self.name:16} {counts}; {self.seconds:.0f} s of tests in {self.jobs} jobs, "
                f"{self.ended - self.began:.0f} s from first to last")

    def to_json(self):
        return {"name": self.name, "line": self.line(), "passed": self.count("passed"),
                "failed": self.count("failed"), "skipped": self.count("skipped"),
                "seconds": round(self.seconds, 1), "tests": len(self.tests),
                "failures": [[name, log, reason] for name, log, reason in self.failed],
                "unlisted": [[test.name, test.reason] for test in self.unlisted]}


def slowest(results):
    rows = [(test.seconds, result.name, test.name) for result in results for test in result.tests]
    return [f"{seconds:8.2f} s  {suite}: {name}"
            for seconds, suite, name in sorted(rows, reverse=True)[:SLOWEST]]


def skips(results):
    """A line for each reason."""
    reasons = collections.Counter((result.name, test.reason) for result in results
                                  for test in result.tests if test.outcome == "skipped")
    return [f"{count:5} in {suite}: {reason}" for (suite, reason), count in sorted(reasons.items())]


def areas(results):
    """A line for each folder of system tests, and for each other suite, of which tests were skipped:
    how many, and what was missing."""
    found = collections.defaultdict(collections.Counter)
    for result in results:
        for test in result.tests:
            if test.outcome == "skipped":
                area = re.search(r"tests/system/([^/]+)/", test.name)
                # "NAME is missing; on Debian: ..."; other reasons are said above.
                lack = re.match(r"(\S+) is missing;", test.reason)
                found[area[1] if area else result.name][lack[1] if lack else "other reasons"] += test.count
    return [f"{sum(lacks.values()):5} of {area}: " + ", ".join(
        f"{name} {count}" for name, count in sorted(lacks.items())) for area, lacks in sorted(found.items())]


def growth(results, times):
    """Compares the seconds of tests with those in tests/times.txt."""
    for result in results:
        if result.name in times.suites:
            tests, seconds = times.suites[result.name]
            yield (f"{result.name}: {len(result.tests)} tests in {result.seconds:.0f} s; "
                   f"tests/times.txt has {tests} in {seconds:.0f} s")


def save(folder, result):
    with open(os.path.join(folder, f"{result.name}.json"), "w") as file:
        json.dump(result.to_json(), file, indent=1)


def forget(folder, name):
    """So that an interrupted run leaves nothing of an earlier one."""
    path = os.path.join(folder, f"{name}.json")
    if os.path.exists(path):
        os.remove(path)


def load(folder, name):
    """Returns the result of a suite in an earlier run, or None."""
    text = text_of(os.path.join(folder, f"{name}.json"))
    return json.loads(text) if text else None
