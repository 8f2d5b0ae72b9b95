# SPDX-License-Identifier: MIT
"""Reports each test, as it happens, to the process that runs the tests: a line of
JSON in the file $NABC_RESULTS for each beginning and each end.

    {"begin": NAME}
    {"test": NAME, "outcome": "passed", "failed" or "skipped", "seconds": S, "reason": WHY}
"""

import json
import os

PLUGIN = "nabc-results"


class Writer:
    def __init__(self, path):
        self.file = open(path, "a", buffering=1)
        self.seconds = 0
        self.outcome = "passed"
        self.reason = ""

    def write(self, **what):
        self.file.write(json.dumps(what) + "\n")

    def pytest_runtest_logstart(self, nodeid):
        self.seconds, self.outcome, self.reason = 0, "passed", ""
        self.write(begin=nodeid)

    def pytest_runtest_logreport(self, report):
        """Three reports of a test: set up, called, torn down."""
        self.seconds += report.duration
        if report.failed:
            self.outcome = "failed"
            self.reason = str(report.longrepr).strip().splitlines()[-1] if report.longrepr else ""
        elif report.skipped and self.outcome == "passed":
            self.outcome = "skipped"
            self.reason = why_skipped(report)

    def pytest_runtest_logfinish(self, nodeid):
        self.write(test=nodeid, outcome=self.outcome, seconds=round(self.seconds, 3),
                   reason=self.reason)

    def pytest_collectreport(self, report):
        """A file that is skipped completely, or cannot be read, has no tests to report."""
        if report.skipped or report.failed:
            self.write(test=report.nodeid, outcome="skipped" if report.skipped else "failed",
                       seconds=0, reason=why_skipped(report) if report.skipped else "collection")


def why_skipped(report):
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def are_wanted():
    return bool(os.environ.get("NABC_RESULTS"))


def open_for(config):
    if are_wanted():
        config.pluginmanager.register(Writer(os.environ["NABC_RESULTS"]), PLUGIN)
