# SPDX-License-Identifier: MIT
"""The durations of tests: tests/times.txt, for each file of the system tests and for
each suite, and the lines that a run adds to the history of its build.

Lines of tests/times.txt: "file NAME SECONDS" and "suite NAME TESTS SECONDS"; the
seconds are those of all tests added up, not of the clock.
"""

import os
import time

HEAD = """\
# Seconds of the tests, added up, at rest on two processors: of each file of system tests
# with one backend, by which ./run-tests cuts them into jobs, and of each suite, with which
# its summary compares.  Written anew by: ./run-tests --all --write-times
"""
UNKNOWN = 3  # seconds of a file that is not listed


class Times:
    def __init__(self, path):
        self.path = path
        self.files = {}
        self.suites = {}
        if os.path.exists(path):
            with open(path) as lines:
                for words in map(str.split, lines):
                    if words and words[0] == "file":
                        self.files[words[1]] = float(words[2])
                    elif words and words[0] == "suite":
                        self.suites[words[1]] = (int(words[2]), float(words[3]))

    def of_file(self, name):
        return self.files.get(name, UNKNOWN)

    def set_files(self, tests):
        """From system tests with one backend; if a file ran twice, the longer time."""
        longest = {}
        for test in tests:
            longest[test.name] = max(longest.get(test.name, 0), test.seconds)
        files = {}
        for name, seconds in longest.items():
            file = os.path.basename(name.partition("::")[0])
            if file.endswith(".py"):
                files[file] = files.get(file, 0) + seconds
        self.files = files or self.files

    def write(self):
        with open(self.path, "w") as file:
            file.write(HEAD)
            for name, seconds in sorted(self.files.items()):
                file.write(f"file {name} {seconds:.1f}\n")
            for name, (tests, seconds) in sorted(self.suites.items()):
                file.write(f"suite {name} {tests} {seconds:.0f}\n")


def remember(path, rows):
    """Adds a line for each suite: time, name, number of tests, their seconds."""
    with open(path, "a") as history:
        for name, tests, seconds in rows:
            history.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')}\t{name}\t{tests}\t{seconds:.1f}\n")
