# SPDX-License-Identifier: MIT
"""Runs system tests that need Debian packages, each with its packages alone: tests/without hides
those of the tiers that the test does not name.  A test that uses another program, and does not say
so, fails here.

Usage: alone.py OPTIONS-AND-FILES-OF-CHECK-SYSTEM...    with the environment of tests/in-build.sh
Exit status: 0; 1 when a test failed; 77 where nothing can be hidden, or no test can run.
"""

import os
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NONE = 5  # pytest's status when no test was selected


def main():
    system = os.path.join(TESTS, "check-system.sh")
    with tempfile.NamedTemporaryFile("r") as needs:
        listed = subprocess.run([system, f"--list-needs={needs.name}", "-q", *sys.argv[1:]])
        if listed.returncode not in (0, NONE):
            return listed.returncode
        sets = needs.read().split()
    failed, ran = False, False
    for packages in sets:
        print(f"\n== {packages}", flush=True)
        status = subprocess.run(
            [os.path.join(TESTS, "without"), "--all-but", *packages.split(","), "--",
             system, f"--needing={packages}", *sys.argv[1:]]).returncode
        failed = failed or status not in (0, 77)
        ran = ran or status == 0
    return 1 if failed else 0 if ran or not sets else 77


if __name__ == "__main__":
    sys.exit(main())
