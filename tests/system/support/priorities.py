# SPDX-License-Identifier: MIT
"""Which threads of a server have a low priority, and how often they had something to do."""

import pathlib
import time

from server import TIMEOUT

LOWER = 15  # LOW_PRIORITY_NICE of the server


def nice_of_threads(pid):
    """The nice value of each thread, by its number."""
    values = {}
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        stat = (thread / "stat").read_text(encoding="latin-1")
        values[int(thread.name)] = int(stat.rpartition(")")[2].split()[16])
    return values


def states(pid):
    """What each thread does, and how often it has begun to wait."""
    found = {}
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        stat = (thread / "stat").read_text(encoding="latin-1")
        found[int(thread.name)] = (stat.rpartition(")")[2].split()[0],
                                   wakes(pid, [int(thread.name)]))
    return found


def await_rest(pid):
    """Until all threads wait at the same time: then none is about to lower its priority."""
    end = time.monotonic() + TIMEOUT
    while True:
        now = states(pid)
        if all(state == "S" and count for state, count in now.values()) and states(pid) == now:
            return
        assert time.monotonic() < end, f"threads that never wait: {now}"
        time.sleep(0.01)


def low_threads(pid):
    """The threads with a low priority, the oldest first, when all of a server wait."""
    await_rest(pid)
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
