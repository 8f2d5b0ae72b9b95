# SPDX-License-Identifier: MIT
"""Which threads of a server have a low priority, and how often they had something to do."""

import pathlib
import time

from server import TIMEOUT

LOWER = 10  # LOW_PRIORITY_NICE of the server


def nice_of_threads(pid):
    """The nice value of each thread, by its number."""
    values = {}
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        stat = (thread / "stat").read_text(encoding="latin-1")
        values[int(thread.name)] = int(stat.rpartition(")")[2].split()[16])
    return values


def low_threads(pid):
    """The threads with a low priority, the oldest first, when all of a server have begun to wait."""
    end = time.monotonic() + TIMEOUT
    while not all(wakes(pid, [thread]) for thread in nice_of_threads(pid)):
        assert time.monotonic() < end, "a thread that never waits"
        time.sleep(0.01)
    values = nice_of_threads(pid)
    return sorted(thread for thread in values if values[thread] == min(19, values[pid] + LOWER))


def wakes(pid, threads):
    """How often these threads have begun to wait, together."""
    count = 0
    for thread in threads:
        status = pathlib.Path(f"/proc/{pid}/task/{thread}/status").read_text(encoding="ascii")
        count += int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return count


def await_work(pid, threads, before):
    """Waits until one of them has had something to do: soon after a response it waits again."""
    end = time.monotonic() + TIMEOUT
    while wakes(pid, threads) == before and time.monotonic() < end:
        time.sleep(0.01)
    assert wakes(pid, threads) > before
