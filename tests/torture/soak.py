# SPDX-License-Identifier: MIT
"""Runs servers for long with all kinds of content, while the configuration is read
again every few seconds, which replaces all workers.  No response is wrong or
missing, the log has no error, and the resources of the server do not grow:
descriptors, threads, processes, memory, pinned or locked pages, units.
"""

import collections
import contextlib
import os
import re
import signal
import statistics
import threading
import time

import mixed
import server as servers
import tree
from kills import usable
from ports import free_port
from visitors import Visitors

SHARE = 0.4
CLIENTS = 6
SLOW = 1
PROCESSES = 2  # of a pool
RELOAD = 1.0  # seconds from the end of one to the next
ROUNDS, ROUND_LEAST, ROUND_MOST = 12, 3.0, 20.0  # seconds of load between two samples
SAMPLE = 0.25
VARIANTS = (("epoll", "amped"), ("uring", "mt"), ("uring", "amped"), ("epoll", "mp"))
SLOT = 60.0  # seconds of a server, if that many are left
CACHE = 24 * mixed.MB  # full soon

MB = 1 << 20
# The permitted growth from the second quarter to the end: a number, and a share
# of the previous value.  For memory that is the variation of malloc()'s arenas;
# sanitizers find small leaks.  In addition, half an object for each reload
# between them: this detects a leak of one for each reload.
SLACK = {"descriptors": (3, 0), "threads": (1, 0), "processes": (3, 0), "memory": (6 * MB, 0.1),
         "pinned": (0, 0), "locked": (0, 0), "shared descriptors": (8, 0.1),
         "cache": (MB, 0.05), "members": (1, 0)}
LOST = "pool application: the connection (broke: Connection reset by peer|ended before the answer)"
COUNTED = ("descriptors", "threads", "processes", "members")


def run(torture):
    variants = [variant for variant in VARIANTS if variant[0] == "epoll"
                or usable(torture, variant[0])]
    count = max(1, min(len(variants), int(torture.seconds / SLOT)))
    for number, (kind, arch) in enumerate(variants[:count]):
        Soak(torture, kind, arch, number).run(torture.left() / (count - number))


def fields(pid):
    """Of /proc/PID/status, those in kB as bytes."""
    with open(f"/proc/{pid}/status") as file:
        return {name: int(value) * 1024 for name, value in
                re.findall(r"^(\w+):\s+(\d+) kB$", file.read(), re.MULTILINE)}


class Soak:
    """One kind of server."""

    def __init__(self, torture, kind, arch, number):
        self.torture, self.kind, self.arch = torture, kind, arch
        self.site = mixed.Site(torture.scratch / str(number), torture.random)
        self.log = self.site.folder / "error.log"
        self.port = free_port()
        self.threads = {"amped": 2, "mt": 12, "mp": 8}[arch]
        self.cache = CACHE * (self.threads if arch == "mp" else 1)
        self.reloads = self.lost = 0
        # Sealed units outlive their creators by a minute, or until the cache is full.
        self.site.pages = [page for page in self.site.pages if not page.sealed]
        self.configure()

    def wrong(self, what):
        self.torture.say("the log:\n" + self.log.read_text(errors="replace")[-3000:])
        raise self.torture.Wrong(f"{self.kind}, {self.arch}, {self.reloads} reloads: {what}")

    def configure(self):
        """Every second time the pools of workers are different ones, otherwise the same are
        renewed."""
        self.site.configure(f"127.0.0.1:{self.port}", self.arch, self.threads,
                            1 if self.arch == "mp" else PROCESSES,
                            # Old processes of mp wait for slow clients.
                            f"error-log={self.log}\nstop-timeout=60s",
                            str(self.reloads // 2), self.cache)

    def run(self, seconds):
        until = time.monotonic() + seconds
        length = min(max(seconds / ROUNDS, ROUND_LEAST), ROUND_MOST)
        samples = []
        with self.torture.serving(self.kind, None, "--config", self.site.config, listen=None,
                                  env=self.site.environment()) as server:
            self.server = server
            while len(samples) < 4 or time.monotonic() + length < until:
                self.round(length)
                samples.append((self.reloads, self.settled()))
            self.torture.count("reloads", self.reloads)
            self.judge(samples)
        self.judge_log()

    def round(self, seconds):
        """Clients and reloads for that long."""
        visitors = Visitors(self.port, self.site.pages, self.torture.random, CLIENTS,
                            lambda page: page.pool == "application", slow=SLOW,
                            may_close=self.arch == "mp", kept=4 if self.arch == "mp" else 20)
        try:
            until = time.monotonic() + seconds
            while not visitors.ending.wait(RELOAD) and time.monotonic() < until:
                self.reload(visitors)
        finally:
            said = visitors.end()
        self.torture.count("responses", sum(visitors.good.values()))
        self.torture.count("MB", visitors.bytes // MB)
        if said:
            self.wrong(said)
        # The replacement of a FastCGI application may cost its current request (sweet(8)).
        self.lost += len(visitors.failures)
        self.torture.count("lost by FastCGI", len(visitors.failures))
        if self.lost > self.reloads * PROCESSES * (self.threads if self.arch == "mp" else 1):
            self.wrong(f"{self.lost} requests were lost by FastCGI")

    def reload(self, visitors):
        self.reloads += 1
        self.configure()
        self.server.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + servers.TIMEOUT
        # It is reported only in the log.
        while self.log.read_text(errors="replace").count("] reloaded") < self.reloads:
            if visitors.ending.wait(SAMPLE):
                return
            if time.monotonic() > deadline:
                self.wrong("a reload does not come to its end")

    def settled(self):
        """Returns the figures as soon as they are stable."""
        deadline = time.monotonic() + servers.TIMEOUT
        before, now = None, self.sample()
        while time.monotonic() < deadline:
            if before and all(now[what] == before[what] for what in SLACK if what != "memory"):
                return now
            threading.Event().wait(SAMPLE)  # no event announces that
            before, now = now, self.sample()
        self.wrong(f"does not come to rest: {dict(before)}, {dict(now)}")
        return None

    def sample(self):
        """Returns the resources of the server and its processes."""
        figures = collections.Counter()
        entries = tree.below(self.server.pid)
        figures["processes"] = sum(entry.role != "cgi" for entry in entries)
        for pid in [self.server.pid] + [one.pid for one in entries if one.role == "process"]:
            with contextlib.suppress(OSError):  # it may just have retired
                self.add_process(figures, pid)
        with contextlib.suppress(OSError):
            cache = self.server.status()["cache"]
            if self.arch != "mp":
                figures["cache"], figures["members"] = cache["used"], cache["members"]
        return figures

    @staticmethod
    def add_process(figures, pid):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                shared = os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/memfd:")
                figures["shared descriptors" if shared else "descriptors"] += 1
        figures["threads"] += len(os.listdir(f"/proc/{pid}/task"))
        status = fields(pid)
        figures["memory"] += status.get("RssAnon", 0)
        figures["pinned"] += status.get("VmPin", 0)
        figures["locked"] += status.get("VmLck", 0)

    def judge(self, samples):
        """Compares the medians of the second quarter and the last."""
        quarter = len(samples) // 4
        second, last = samples[quarter:2 * quarter], samples[3 * quarter:]
        if not second:
            return
        between = (statistics.mean(reloads for reloads, _ in last)
                   - statistics.mean(reloads for reloads, _ in second))
        for what, (number, part) in SLACK.items():
            before, after = (statistics.median(figures[what] for _, figures in these)
                             for these in (second, last))
            most = before * (1 + part) + number + (between / 2 if what in COUNTED else 0)
            if after > most:
                self.wrong(f"{what}: {before:.0f} in the second quarter, {after:.0f} in the last, "
                           f"with {between:.0f} reloads between")

    def judge_log(self):
        for line in self.log.read_text(errors="replace").splitlines():
            if re.search(LOST, line):
                continue
            if "[notice]" not in line or re.search("by signal (?!15)| with status ", line):
                self.wrong(f"the log says: {line}")
