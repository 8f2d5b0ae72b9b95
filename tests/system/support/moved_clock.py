# SPDX-License-Identifier: MIT
"""A clock of a server that a test moves, so that nobody waits for its timers, and a
machine that is busy for a while makes none of them expire."""

import time

from fault_plan import FAULT, Plan
from server import SOON, UNDER, sanitized

SECOND = 10**9


class Clock:
    """By the library of tests/faults.  Valgrind and sanitizers stand in its way: with
    them it is a sleep, and limits are short.  Programs that the server starts have the
    machine's clock."""

    def __init__(self, path):
        self.plan = None if UNDER or sanitized() else Plan(path)
        # Seconds of a limit that a good request does not meet before the clock is moved.
        self.limit = 100 if self.plan else SOON

    def close(self):
        if self.plan:
            self.plan.close()

    def command(self):
        """What goes before the server."""
        if not self.plan:
            return []
        # Not in the environment of all: who denies io_uring is a program of its own.
        return ["env", f"LD_PRELOAD={FAULT}", f"FAULT_PLAN={self.plan.path}"]

    def forward(self, seconds):
        if self.plan:
            self.plan["monotonic"] += int(seconds * SECOND)
        else:
            time.sleep(seconds)
