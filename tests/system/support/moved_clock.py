# SPDX-License-Identifier: MIT
"""A clock of a server that a test moves, so that no test waits for its timers, and no timer
expires because the machine is busy."""

import time

from fault_plan import FAULT, Plan
from server import SOON, UNDER, sanitized

SECOND = 10**9


class Clock:
    """Uses the library of tests/faults. It does not work with Valgrind and sanitizers: with
    these it sleeps, and limits are short. Programs that the server starts use the machine's
    clock."""

    def __init__(self, path):
        self.plan = None if UNDER or sanitized() else Plan(path)
        # Seconds of a limit that a good request does not reach before the clock is moved.
        self.limit = 100 if self.plan else SOON

    def close(self):
        if self.plan:
            self.plan.close()

    def command(self):
        """Returns the command that runs the server."""
        if not self.plan:
            return []
        # Not in the environment of all, because the wrapper that denies io_uring is a program of
        # its own.
        return ["env", f"LD_PRELOAD={FAULT}", f"FAULT_PLAN={self.plan.path}"]

    def forward(self, seconds):
        if self.plan:
            self.plan["monotonic"] += int(seconds * SECOND)
        else:
            time.sleep(seconds)
