# SPDX-License-Identifier: MIT
"""Control groups for servers: a limit of memory, which includes the page cache that they fill,
and a limit of disk reads. Version 1 or 2, depending on which has the machine's controllers;
needs root.

remove() deletes a Group, whose processes must have ended before.
"""

import os
import re
import time

from .process import Failure

ROOT = "/sys/fs/cgroup"
REMOVE_SECONDS = 60


class Unavailable(Failure):
    """This machine, or the container, does not permit it."""


def above(controller, wanted):
    """Returns (directory to make a group in, version); with version 1, bench's own group.

    With version 2, a group that delegates controllers contains no processes, so this is the
    nearest ancestor of bench's own group that delegates all that are needed: there, a process is
    in one group.
    """
    with open("/proc/self/cgroup") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for _, names, path in lines:
        if {"io": "blkio"}.get(controller, controller) in names.split(","):
            mount = os.path.join(ROOT, {"io": "blkio"}.get(controller, controller))
            own = mount + path
            return own if os.path.isdir(own) else mount, 1
    directory = ROOT + next((path for _, names, path in lines if not names), "/")
    directory = os.path.normpath(directory)
    if not os.path.exists(os.path.join(directory, "cgroup.subtree_control")):
        raise Unavailable(f"no control groups with {controller} in {ROOT}")
    while not wanted <= set(read(directory, "cgroup.subtree_control").split()):
        if directory == ROOT:
            write(ROOT, "cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(wanted)))
            break
        directory = os.path.dirname(directory)
    return directory, 2


def write(directory, name, value):
    try:
        with open(os.path.join(directory, name), "w") as file:
            file.write(str(value))
    except OSError as error:
        raise Unavailable(f"{directory}/{name}: {error.strerror}; control groups need root, and"
                          " their file system to be writable") from error


def read(directory, name):
    with open(os.path.join(directory, name)) as file:
        return file.read()


def disk_of(path):
    """Returns MAJOR:MINOR of the whole disk that contains a file."""
    device = os.stat(path).st_dev
    place = os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if os.path.exists(os.path.join(place, "partition")):
        place = os.path.dirname(place)
    try:
        return read(place, "dev").strip()
    except OSError:
        raise Unavailable(f"{path} lies on no disk whose speed could be limited; TMPDIR says"
                          " where it is to be") from None


class Group:
    """A group of its own in each hierarchy that it needs."""

    def __init__(self, name, memory=None, disk=None, read_bytes=None, read_operations=None):
        """memory: bytes; disk: MAJOR:MINOR, with a limit of bytes and of reads per second."""
        self.directories = []
        self.memory = None
        self.wanted = {*(["memory"] if memory else []), *(["io"] if disk else [])}
        try:
            if memory:
                self.memory, version = self.make(name, "memory")
                write(self.memory, "memory.limit_in_bytes" if version == 1 else "memory.max",
                      memory)
            if disk:
                self.limit_disk(name, disk, read_bytes, read_operations)
        except Failure:
            self.remove()
            raise

    def make(self, name, controller):
        """(directory, version)."""
        place, version = above(controller, self.wanted)
        directory = os.path.join(place, name)
        if directory not in self.directories:
            try:
                os.mkdir(directory)
            except OSError as error:
                raise Unavailable(f"{directory}: {error.strerror}; control groups need root, and"
                                  " their file system to be writable") from error
            self.directories.append(directory)
        return directory, version

    def limit_disk(self, name, disk, read_bytes, read_operations):
        directory, version = self.make(name, "io")
        if version == 1:
            if read_bytes:
                write(directory, "blkio.throttle.read_bps_device", f"{disk} {read_bytes}")
            if read_operations:
                write(directory, "blkio.throttle.read_iops_device", f"{disk} {read_operations}")
        else:
            write(directory, "io.max", f"{disk} rbps={read_bytes or 'max'}"
                                       f" riops={read_operations or 'max'}")

    def enter(self):
        """Moves the calling process into it; for a child before it becomes a server."""
        for directory in self.directories:
            write(directory, "cgroup.procs", os.getpid())

    def killed(self):
        """Returns how many of its processes the kernel has killed for lack of memory."""
        name = "memory.events" if os.path.exists(os.path.join(self.memory, "memory.events")) \
            else "memory.oom_control"
        return int(re.search(r"^oom_kill (\d+)$", read(self.memory, name), re.M)[1])

    def remove(self):
        """A process that has ended may count for another moment."""
        limit = time.monotonic() + REMOVE_SECONDS
        while self.directories:
            try:
                os.rmdir(self.directories[-1])
                self.directories.pop()
            except FileNotFoundError:
                self.directories.pop()
            except OSError:
                if time.monotonic() > limit:
                    raise
                time.sleep(0.02)
