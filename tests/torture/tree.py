# SPDX-License-Identifier: MIT
"""The processes below a server, as listed in /proc, and the role of each."""

import collections
import contextlib
import os

import mixed

Entry = collections.namedtuple("Entry", "pid parent state name role")


def words(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return [os.path.basename(word) for word in file.read().split(b"\0")[:-1]]


def role_of(pid, name, parent):
    """The role of a process; None: it has none yet, or is a child of a program. parent: its
    entry; None: the server itself.
    """
    if name.startswith("sweet: "):
        return None if parent and parent.name == name else name.partition(" ")[2]
    if name == "sweet":
        return None if parent else "process"  # of arch mp, or about to be a worker
    said = [word.decode(errors="replace") for word in words(pid)]
    for role in mixed.POOLS:
        if role in (said[:1] + said[-1:]):
            return role
    return "cgi" if said and (said[0] == "cgi" or said[-1] == "slow") else None


def below(server):
    """Entries of all processes that the server and its children have started, parents first."""
    seen = collections.defaultdict(list)
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
            before, _, after = file.read().rpartition(")")
            state, parent = after.split()[:2]
            seen[int(parent)].append((int(name), state, before.partition("(")[2]))
    found, waiting = [], [(server, None)]
    while waiting:
        number, above = waiting.pop()
        for pid, state, name in seen[number]:
            role = None
            with contextlib.suppress(OSError):
                role = role_of(pid, name, above)
            entry = Entry(pid, number, state, name, role)
            found.append(entry)
            waiting.append((pid, entry))
    return found


def under(entries, pid):
    """Those of entries that descend from pid."""
    numbers = {pid}
    found = []
    for entry in entries:
        if entry.parent in numbers:
            numbers.add(entry.pid)
            found.append(entry)
    return found


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))
