# SPDX-License-Identifier: MIT
"""Parallel jobs: a pool that keeps the processors busy.  A job is a command with a
log, a weight (how many processors it uses) and a deadline.  It starts when the jobs
that it names have succeeded and its weight is free; of several such jobs, the one
of the highest rank starts.  A job beyond its deadline is killed with all its
processes, and its log says what was running.
"""

import dataclasses
import heapq
import os
import select
import signal
import subprocess
import time

GRACE = 5  # seconds from the first signal to the last
PATIENCE = 10  # seconds that the processes of a job may outlive it
TAG = "NABC_JOB"  # in the environment of all that a job starts


@dataclasses.dataclass
class Job:
    name: str
    suite: str
    command: list
    log: str
    weight: float = 1
    deadline: float = 300  # seconds
    rank: float = 0
    after: tuple = ()  # names of other jobs
    environment: dict = dataclasses.field(default_factory=dict)
    folder: str = "."
    results: str = ""  # a file with a line of JSON for each test, which the job writes
    scratch: str = ""  # its folder of temporary files

    # The result:
    status: int | None = None  # of the command; None: it has not run
    seconds: float = 0
    fault: str = ""  # why it failed, if its status does not show that
    done: bool = False  # none of its processes is left, or it will not run

    def own(self, folder):
        """Creates its folder of temporary files; the job may run as another user.  All jobs share
        one for what compilers keep."""
        self.scratch = folder
        shared = os.path.join(os.path.dirname(folder), "shared")
        for path in (folder, shared):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o1777)
        self.environment = {**self.environment, "TMPDIR": folder, "NABC_SHARED": shared}

    @property
    def good(self):
        return self.status in (0, 77) and not self.fault


class Running:
    """The processes of a job."""

    def __init__(self, job, tag):
        self.job = job
        self.tag = f"{TAG}={tag}".encode()
        self.began = time.monotonic()
        self.killed = 0
        self.looks = 0  # how many checks found no process
        with open(job.log, "wb") as log:
            self.process = subprocess.Popen(
                job.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                cwd=job.folder, start_new_session=True,
                env={**os.environ, **job.environment, TAG: tag,
                     **({"NABC_RESULTS": job.results} if job.results else {})})
        self.pidfd = os.pidfd_open(self.process.pid)

    def left(self):
        """Seconds until the next action is due."""
        limit = self.job.deadline + (GRACE if self.killed else 0)
        return self.began + limit - time.monotonic()

    def group(self):
        """The pids of all processes of the job."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as environ:
                    if self.tag in environ.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                pass  # it has exited, or belongs to another user
        return found

    def signal(self, number, pids):
        for pid in pids:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass
        # After it was reaped, its pid may belong to another process.
        if self.process.returncode is None:
            try:
                os.killpg(self.process.pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    def overdue(self):
        """First ABRT to the job itself, on which Python prints its stack; then KILL to all."""
        if not self.killed:
            self.job.fault = f"was not done after {self.job.deadline:.0f} s"
            with open(self.job.log, "ab") as log:
                log.write(f"\n{self.job.name} {self.job.fault}; it runs:\n".encode())
                for pid in self.group():
                    log.write(f"  {pid}: {command_of(pid)}\n".encode())
            try:
                os.kill(self.process.pid, signal.SIGABRT)
            except ProcessLookupError:
                pass
        else:
            self.signal(signal.SIGKILL, self.group())
        self.killed += 1

    def end(self):
        """When the process itself has ended."""
        self.job.status = self.process.wait()
        self.job.seconds = time.monotonic() - self.began
        os.close(self.pidfd)

    def is_clear(self, patience):
        """Whether no process is left; processes that remain longer are killed, and the job has
        failed."""
        left = self.group()
        # A process during exec has no environment for a moment.
        self.looks = 0 if left else self.looks + 1
        if self.looks == 1:
            return False
        if left and time.monotonic() < self.began + self.job.seconds + patience:
            return False
        if left and not self.killed:
            self.job.fault = "left running: " + ", ".join(map(command_of, left))
        self.signal(signal.SIGKILL, left)
        return True


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
            return cmdline.read().replace(b"\0", b" ").decode(errors="replace").strip()[:200]
    except OSError:
        return "(ended)"


class Pool:
    """run() runs all jobs; ended(job) is called as each one ends, or cannot start, and
    tick(running jobs, number of waiting ones) whenever that many seconds have passed."""

    def __init__(self, processors, ended=lambda job: None, tick=None, every=60):
        self.free = float(processors)
        self.processors = processors
        self.ended = ended
        self.tick = tick
        self.every = every
        self.jobs = {}
        self.waiting = []  # (-rank, number, job)
        self.running = {}  # by pidfd
        self.ending = []  # whose processes may not all have exited
        self.poll = select.poll()
        self.busy = 0.0  # used processor seconds

    def add(self, job):
        assert job.name not in self.jobs, job.name
        self.jobs[job.name] = job
        heapq.heappush(self.waiting, (-job.rank, len(self.jobs), job))

    def blocked(self, job):
        """Whether it has to wait for another job; if that one fails, it will not run."""
        for name in job.after:
            before = self.jobs[name]
            if not before.done:
                return True
            if not before.good or before.status == 77:
                job.fault = f"not run: {name} " + ("was skipped" if before.good else "failed")
        return False

    def start_some(self):
        """The highest rank first.  No lighter job passes one that does not fit: otherwise that
        one would wait until the end, and then leave the other processors idle."""
        passed = []
        room = self.free
        while self.waiting and room > 1e-9:
            entry = heapq.heappop(self.waiting)
            job = entry[2]
            if self.blocked(job):
                passed.append(entry)
                continue
            if job.fault:
                self.drop(job)
                # Others may have waited for it.
                for one in passed:
                    heapq.heappush(self.waiting, one)
                passed = []
                continue
            weight = min(job.weight, self.processors)
            if weight > room + 1e-9:
                passed.append(entry)
                break
            room -= weight
            self.start(job, weight)
        for entry in passed:
            heapq.heappush(self.waiting, entry)

    def drop(self, job):
        job.done = True
        self.ended(job)

    def start(self, job, weight):
        try:
            one = Running(job, f"{os.getpid()}:{job.name}")
        except OSError as error:
            job.fault = f"cannot be started: {error}"
            self.drop(job)
            return
        self.free -= weight
        self.running[one.pidfd] = (one, weight)
        self.poll.register(one.pidfd, select.POLLIN)

    def reap(self, pidfd):
        one, weight = self.running.pop(pidfd)
        self.poll.unregister(pidfd)
        one.end()
        self.free += weight
        self.busy += weight * one.job.seconds
        self.ending.append(one)

    def settle(self):
        """Jobs whose last process has exited have ended."""
        for one in list(self.ending):
            if one.is_clear(0 if one.killed else PATIENCE):
                self.ending.remove(one)
                one.job.done = True
                self.ended(one.job)

    def run(self, until=float("inf")):
        """Runs until all jobs have ended, or until that time of the monotonic clock."""
        next_tick = time.monotonic() + self.every
        try:
            while True:
                self.settle()
                self.start_some()
                if not self.running and not self.ending:
                    break
                wait = [one.left() for one, _ in self.running.values()]
                wait += [0.1] if self.ending else []
                wait += [next_tick - time.monotonic()] if self.tick else []
                wait += [until - time.monotonic()] if time.monotonic() < until else []
                for pidfd, _ in self.poll.poll(max(0, min(3600, *wait) * 1000)):
                    self.reap(pidfd)
                if self.tick and time.monotonic() >= next_tick:
                    next_tick += self.every
                    self.tick([one.job for one, _ in self.running.values()], len(self.waiting))
                self.enforce(until)
            # They wait for each other.
            self.refuse("what it waits for never ends")
        finally:
            for one in [*(one for one, _ in self.running.values()), *self.ending]:
                one.signal(signal.SIGKILL, one.group())

    def stop(self, why):
        """Jobs that have not started will not."""
        waiting, self.waiting = self.waiting, []
        for _, _, job in waiting:
            job.fault = f"not run: {why}"
            job.done = True

    def refuse(self, why):
        late = [job for _, _, job in self.waiting]
        self.stop(why)
        for job in late:
            self.ended(job)

    def enforce(self, until):
        """Deadlines: of each job, and of the whole run."""
        now = time.monotonic()
        if now > until:
            self.refuse("there was no time left")
        for one, _ in list(self.running.values()):
            if now > until and not one.killed:
                one.job.deadline = min(one.job.deadline, now - one.began)
            if one.left() <= 0:
                one.overdue()
