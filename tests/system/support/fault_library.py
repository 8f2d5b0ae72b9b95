# SPDX-License-Identifier: MIT
"""Faults of a program that uses the library (tests/faults/library.c): it runs a scenario, and
the errors of its calls are checked against their manual pages."""

import errno
import os
import re
import subprocess
from pathlib import Path

from fault_plan import FAULT, MAGIC, Plan
from server import BUILD, TIMEOUT

LIBRARY = os.path.join(BUILD, "tests", "faults", "library")
PAGES = Path(__file__).resolve().parents[3] / "man"
# Sorted: later scenarios build on earlier ones.
SCENARIOS = ["units", "sends", "rings", "registered", "owner", "member", "server", "worker"]
# What a page means by the errors of a system call: names of kinds of fault.h, and others.
SAME = {"sendmsg": ["send", "sendmsg", "sqe_send"], "readv": ["read", "readv"],
        "recvmsg": ["recvmsg"]}


class Wrong(AssertionError):
    """The library did not survive a fault."""


class Pages:
    """The errors that each call can return, according to man/*.3."""

    def __init__(self, errors_of_kinds):
        self.kinds = errors_of_kinds  # {name of a system call: names of errors}
        self.known = {}

    def _text(self, call):
        text = (PAGES / f"{call}.3").read_text()
        link = re.search(r"(?m)^\.so man3/(\S+)", text)
        return (PAGES / link[1]).read_text() if link else text

    def errors(self, call):
        """Returns the names of all errors; those of pages that it refers to belong to the call
        as well."""
        if call not in self.known:
            self.known[call] = found = set()
            text = self._text(call)
            section = re.search(r"^\.Sh ERRORS\n(.*?)^\.Sh ", text, re.M | re.S)[1]
            for line in re.findall(r"^(?:\.It Bq )?\.?Er (.*)$", section, re.M):
                found.update(re.findall(r"E[A-Z0-9]+", line))
            for name, number in re.findall(r"^\.Xr (\S+) ([23])\b", section, re.M):
                if number == "3" and name.startswith("NC_"):
                    found.update(self.errors(name))
                else:
                    for kind in SAME.get(name, [name]):
                        found.update(self.kinds.get(kind, ()))
        return self.known[call]


def with_lines(wrong):
    """Returns the error message with names for its addresses: the code that met the last
    fault."""
    text, *addresses = re.split(r"(?= 0x[0-9a-f]+)", wrong)
    said = subprocess.run(["addr2line", "-f", "-s", "-e", LIBRARY, *map(str.strip, addresses)],
                          capture_output=True, text=True, check=False).stdout.split("\n")
    names = [f"{name}:{line.split(':')[-1]}" for name, line in zip(said[::2], said[1::2])]
    return " < ".join([text, *names]) if addresses else text


def walk(folder, scenario, *options, failures=None):
    """Runs one scenario; returns (rounds, possible faults, injected faults or signals).
    failures: a list that receives failures, as pairs of a call's name and an error's."""
    plan = Plan(Path(folder) / f"plan-{scenario}")
    try:
        said = subprocess.run([LIBRARY, "-d", str(folder), *options, scenario],
                              env={**plan.environment(), "LD_PRELOAD": FAULT},
                              capture_output=True, text=True, check=False,
                              timeout=None if "-t" in options else 10 * TIMEOUT)
        lines = said.stdout.splitlines()
        bad = [with_lines(line) for line in lines if line.startswith("wrong: ")]
        if bad or said.returncode:
            raise Wrong("\n".join([*bad, f"exit status {said.returncode}", said.stderr]))
        if plan["magic"] != MAGIC:
            raise Wrong("the program ran without faults")
        plan.learn()
        pages = Pages({kind: {errno.errorcode[error] for error in errors if error > 0}
                       for kind, (_, errors) in plan.kinds.items()})
        failed = [line.split()[1:] for line in lines if line.startswith("failed ")]
        if failures is not None:
            failures += failed
        untold = sorted(f"{call}: {error}" for call, error in failed
                        if error not in pages.errors(call))
        if untold:
            raise Wrong(f"failed as no page tells: {', '.join(untold)}")
        return next(tuple(map(int, line.split()[2:])) for line in lines
                    if line.startswith("walked "))
    finally:
        plan.close()
