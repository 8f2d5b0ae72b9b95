# SPDX-License-Identifier: MIT
"""Processes of a benchmark: starting, ending and the CPU time they took.

Everything that bench starts is a child of bench, and orphans come back to it
(it is a subreaper), so that end_all() finds all of them.  One thread.
"""

import ctypes
import os
import re
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)
TICK = os.sysconf("SC_CLK_TCK")
START_SECONDS = 60
RUN_SECONDS = 300
END_SECONDS = 5


class Failure(Exception):
    """An error that makes a benchmark's figures worthless; ends bench with status 1."""


def become_subreaper():
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start(argv, cpu, output, before=None):
    """Starts argv on one CPU, or a set of them, in a session of its own: Ctrl-C is for bench.

    before(), if given, is called in the child, which then becomes argv.
    """

    def prepare():
        os.sched_setaffinity(0, {cpu} if isinstance(cpu, int) else cpu)
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if before:
            before()

    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output,
                            stderr=subprocess.STDOUT, start_new_session=True,
                            preexec_fn=prepare)


def output_of(argv, cpu):
    """Runs argv on one CPU, and returns what it writes to both streams."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=RUN_SECONDS, check=False,
                              text=True, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    except subprocess.TimeoutExpired:
        raise Failure(f"{argv[0]} does not end") from None
    if done.returncode:
        raise Failure(f"{argv[0]}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def await_ready(popen, log, ready):
    """Waits until ready() is true; fails after a timeout, or if popen ends."""
    limit = time.monotonic() + START_SECONDS
    while not ready():
        if popen.poll() is not None:
            raise Failure(f"{popen.args[0]} ended at start, status {popen.returncode}:\n"
                          + tail(log))
        if time.monotonic() > limit:
            raise Failure(f"{popen.args[0]} not ready after {START_SECONDS} s:\n" + tail(log))
        time.sleep(0.01)


def tail(path, lines=6):
    try:
        with open(path, errors="replace") as file:
            return "".join(file.readlines()[-lines:])
    except OSError:
        return ""


def stat_fields(pid):
    """Returns the fields of /proc/PID/stat from the third on, or None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def tree(roots):
    """Returns the pids of the roots and of all their running descendants."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = stat_fields(name)
            if fields and fields[0] != b"Z":
                children.setdefault(int(fields[1]), []).append(int(name))
    found = [pid for pid in roots if stat_fields(pid)]
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def thread_times(pid):
    """Returns {thread: ns on CPU}; empty if the kernel does not tell."""
    times = {}
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/schedstat") as file:
                times[int(tid)] = int(file.read().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return times


class Cpu:
    """The CPU time of a set of processes at one moment."""

    def __init__(self, roots):
        self.roots = set(roots)
        self.processes = {}
        for pid in tree(roots):
            fields = stat_fields(pid)
            if fields:
                own, reaped = (sum(map(int, fields[i:i + 2])) for i in (11, 13))
                self.processes[pid] = (int(fields[19]), own, reaped, thread_times(pid))

    def since(self, before, server):
        """Returns nanoseconds since an earlier Cpu of the same processes.

        The time of a short-lived process, such as a CGI program, is in its parent's.
        """
        for pid, (born, *_) in before.processes.items():
            lost = pid not in self.processes or self.processes[pid][0] != born
            if lost and (pid in before.roots or not server.passing):
                raise Failure(f"{server.name}: process {pid} ended between the first run and the"
                              " last")
        total = 0
        for pid, (_, own, reaped, threads) in self.processes.items():
            _, own0, reaped0, threads0 = before.processes.get(pid, (0, 0, 0, {}))
            # The nanoseconds of a thread that ended are lost; ticks still count them.
            if threads and any(threads.values()) and threads0.keys() <= threads.keys():
                total += sum(threads.values()) - sum(threads0.values())
            else:
                total += (own - own0) * 1_000_000_000 // TICK
            total += (reaped - reaped0) * 1_000_000_000 // TICK
        return total


def cpu_source():
    exact = any(thread_times(os.getpid()).values())
    return "schedstat, ns" if exact else f"stat, ticks of {1000 // TICK} ms"


def core_busy(cpu):
    """Returns the nanoseconds since boot in which a CPU was not idle, whatever the program."""
    with open("/proc/stat") as file:
        match = re.search(rf"^cpu{cpu} (.*)$", file.read(), re.M)
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, match[1].split()[:8])
    return (user + nice + system + irq + softirq + steal) * 1_000_000_000 // TICK


def end(popens, seconds=END_SECONDS):
    """Asks processes to end, then kills them and what they leave behind."""
    born = {}
    for pid in tree([p.pid for p in popens]):
        fields = stat_fields(pid)
        if fields:
            born[pid] = fields[19]
    for popen in popens:
        popen.terminate()
    limit = time.monotonic() + seconds
    for popen in popens:
        try:
            popen.wait(max(0, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
    for pid, start_time in born.items():
        fields = stat_fields(pid)
        if fields and fields[0] != b"Z" and fields[19] == start_time:
            kill(pid)
    for popen in popens:
        popen.wait()


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end_all():
    """Kills and reaps every remaining descendant."""
    limit = time.monotonic() + END_SECONDS
    while time.monotonic() < limit:
        for pid in tree([os.getpid()])[1:]:
            kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)
