# SPDX-License-Identifier: MIT
"""Kills workers, CGI programs, FastCGI applications, members, processes that start
programs, and processes of arch mp at random while clients continue, and then the
server itself.

Each process that ends may cost one request of the same pool; all other answers
are right.
Afterwards processes, descriptors, memory and members are as before.  A killed
server is started again at once, with the files that it left.
"""

import collections
import contextlib
import os
import socket
import statistics
import subprocess
import threading
import time

import mixed
import server as servers
import tree
from client import Client
from ports import free_port
from visitors import Connection, Visitors

SHARE = 0.2
ARCHS = ("amped", "sped", "mt", "mp")
SLOT = 14  # seconds of a server, at least
RATE = 12  # kills a second that are tried
OLD = 1.1  # seconds; a younger process that dies is replaced after a pause
CLIENTS = 6
MEMBERS = 3
RESTARTED = 5.0  # seconds to the first response that are too long on any machine

FILES = 5  # maximum of units for the site's files
SLACK = {"descriptors beside units": 4}  # connections that vary
WORKERS = ("page", "obey", "stream", "confined")

# The first requests to a restarted server.
FIRST = ("/small", "/page?size=1", "/confined?size=1", "/application?size=1", "/obey/kept",
         "/cgi/slow", "/stream/pieces?5:1000")

# The share of each victim, in percent; only mp has processes, only the others have members.
CHANCES = {"page": 15, "obey": 15, "stream": 15, "confined": 10, "application": 8, "cgi": 20,
           "process": 10, "member": 6, "starter": 8}
STARTED = ("confined", "application", "cgi")  # by the spawner


def shared_memory():
    return set(os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else ())


def run(torture):
    kinds = [kind for kind in ("epoll", "uring") if usable(torture, kind)]
    variants = [(kind, arch) for kind in kinds for arch in ARCHS]
    torture.random.shuffle(variants)
    count = max(1, min(len(variants), int(torture.seconds / SLOT)))
    times = []  # from the killing of a server to the first answer of the next
    for number, (kind, arch) in enumerate(variants[:count]):
        Slot(torture, kind, arch, number, torture.left() / (count - number), times).run()
    torture.count("ms until a killed server answers again, median",
                  round(1000 * statistics.median(times)))
    torture.count("ms at most", round(1000 * max(times)))


def usable(torture, kind):
    """Returns false if this kernel has no io_uring for us."""
    try:
        with servers.running(kind, torture.scratch):
            return True
    except AssertionError as error:
        if kind == "uring" and "io_uring cannot be used: " in str(error):
            torture.say("without io_uring, which cannot be used here")
            return False
        raise


class Members:
    """Programs that are attached to the cache; killed ones are replaced."""

    def __init__(self, site, count):
        self.command = [os.path.join(servers.BUILD, "nabcctl", "nabcctl"), "--cache",
                        str(site.cache), "top"]
        self.processes = []
        for _ in range(count):
            self.start()

    def start(self):
        self.processes.append(subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL))

    def kill(self, rng):
        process = self.processes.pop(rng.randrange(len(self.processes)))
        process.kill()
        process.wait()
        self.start()

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes = []


class Slot:
    """One kind of server, for that many seconds."""

    def __init__(self, torture, kind, arch, number, seconds, times):
        self.torture, self.kind, self.arch, self.times = torture, kind, arch, times
        self.random = torture.random
        self.until = time.monotonic() + seconds
        self.seconds = seconds
        self.site = mixed.Site(torture.scratch / str(number), torture.random)
        # Sealed units outlive their creator; every second slot has none.
        self.sealed = number % 2 == 1
        if not self.sealed:
            self.site.pages = [page for page in self.site.pages if not page.sealed]
        self.threads = {"amped": 2, "sped": 2, "mt": 12, "mp": 4}[arch]
        self.port = free_port()
        self.site.configure(f"127.0.0.1:{self.port}", arch, self.threads,
                            2 if arch == "mp" else 4)
        self.kills = collections.Counter()  # by role; those that died with another one count, too
        self.born = {}  # when a process was first noticed

    def wrong(self, what):
        raise self.torture.Wrong(f"{self.kind}, {self.arch}: {what}")

    def run(self):
        with self.torture.serving(self.kind, None, "--config", self.site.config, listen=None,
                                  env=self.site.environment()) as server:
            self.server = server
            members = Members(self.site, 0 if self.arch == "mp" else MEMBERS)
            try:
                self.kill_all_sorts(members)
            finally:
                members.end()
        self.look_for_leftovers("a server that has ended", alive=False)
        self.kill_servers()

    # --- child processes ----------------------------------------------------------------

    def kill_all_sorts(self, members):
        self.settled_visit(0.1 * self.seconds, None)
        before = self.settle(members)
        self.settled_visit(0.6 * self.seconds, members)
        for entry in tree.below(self.server.pid):
            if entry.role in WORKERS:
                self.kill(entry, [])
        after = self.settle(members)
        # Units of dead processes are gone, also those that they wanted to keep.
        before["units"] = FILES * (self.threads if self.arch == "mp" else 1)
        if self.sealed:
            del before["units"]
        for what, most in before.items():
            if after[what] > most + SLACK.get(what, 0):
                self.wrong(f"{what}: {most} before the kills, {after[what]} after")

    def settled_visit(self, seconds, members):
        """Runs clients for that long; with members, kills."""
        killing = members is not None
        visitors = Visitors(self.port, self.site.pages, self.random, CLIENTS,
                            lambda page: killing and (page.pool or self.arch == "mp"),
                            kept=4 if self.arch == "mp" else 20, slow=1)
        until = time.monotonic() + seconds
        while not visitors.ending.wait(self.random.expovariate(RATE)) and time.monotonic() < until:
            if killing:
                self.kill_one(members)
        wrong = visitors.end()
        if wrong:
            self.wrong(wrong)
        self.torture.count("responses", sum(visitors.good.values()))
        self.account(visitors.failures)

    def account(self, failures):
        """A kill may cost the current request of each process that it ends, and no other."""
        lost = collections.Counter(failure.page.pool for failure in failures)
        self.torture.count("lost requests", len(failures))
        for pool, count in lost.items():
            paid = self.kills[pool] + self.kills["process"]
            if pool in STARTED:
                # Processes that started between the check and the kill, at most one for each
                # client.
                paid += self.kills["starter"] * CLIENTS
            if count > paid:
                status = collections.Counter(failure.status for failure in failures
                                             if failure.page.pool == pool)
                self.wrong(f"{count} requests for {pool or 'files'} were lost by {paid} kills; "
                           f"by status: {dict(status)}")

    def kill_one(self, members):
        entries = tree.below(self.server.pid)
        now = time.monotonic()
        self.born = {entry.pid: self.born.get(entry.pid, now) for entry in entries}
        by_role = collections.defaultdict(list)
        for entry in entries:
            if entry.role and entry.state != "Z":
                by_role[entry.role].append(entry)
        if members.processes:
            by_role["member"] = [None]
        roles = [role for role in CHANCES
                 if by_role[role] and (role != "process" or self.arch == "mp")]
        if not roles:
            return
        role = self.random.choices(roles, [CHANCES[role] for role in roles])[0]
        if role == "member":
            members.kill(self.random)
            self.count_kill(role)
            return
        # With a spawner all of its pools end; if that happens repeatedly, they would count as
        # useless.
        young_too = role == "cgi" or (role != "starter" and self.random.random() < 0.1)
        victims = [entry for entry in by_role[role]
                   if young_too or now - self.born[entry.pid] >= OLD]
        if victims:
            self.kill(self.random.choice(victims), entries)

    def kill(self, entry, entries):
        with contextlib.suppress(ProcessLookupError):  # it may have exited by itself
            process = servers.Process(entry.pid)
            try:
                # Another process may have its pid by now.
                if any(now.pid == entry.pid and now.role == entry.role
                       for now in tree.below(self.server.pid)):
                    process.kill()
                    self.count_kill(entry.role)
                    for other in tree.under(entries, entry.pid):
                        self.kills[other.role] += 1
            finally:
                process.close()

    def count_kill(self, role):
        self.kills[role] += 1
        self.torture.count("kills")
        self.torture.count(f"of {role}")

    # --- afterwards ------------------------------------------------------------------------

    def settle(self, members):
        """Returns the figures when all processes exist again and nothing is pending."""
        deadline = time.monotonic() + servers.TIMEOUT
        bad, statuses = "no status", {}
        while bad and time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError):  # one of arch mp may just be exiting
                status = self.server.status()
                statuses[status["pid"]] = status
            present = {entry.pid for entry in tree.below(self.server.pid)} | {self.server.pid}
            statuses = {pid: one for pid, one in statuses.items() if pid in present}
            bad = self.unsettled(statuses.values(), members)
            threading.Event().wait(0.02)  # polls the status, which announces nothing by itself
        if bad:
            self.wrong(f"not as before the kills: {bad}")
        # A unit of a member is a descriptor as long as it is kept.
        return {
            "descriptors beside units": sum(tree.descriptors(pid) - status["cache"]["units"]
                                            for pid, status in statuses.items()),
            "threads": sum(len(os.listdir(f"/proc/{pid}/task")) for pid in statuses),
            "units": sum(status["cache"]["units"] - status["answers"]["kept"]
                         for status in statuses.values()),
        }

    def unsettled(self, statuses, members):
        """Returns what is still missing, or None."""
        wanted = self.threads if self.arch == "mp" else 1
        if len(statuses) != wanted:
            return f"{len(statuses)} of {wanted} processes serve"
        for status in statuses:
            for pool in status["workers"]["pools"]:
                for process in pool["processes"]:
                    if not process["up"] or process["in_flight"]:
                        return f"pool {pool['prefix']}: {process}"
            if status["connections"]["open"] > 1:
                return f"connections {status['connections']}"
            cache = status["cache"]
            if cache["pinned"]:
                return f"cache {cache}"
            workers = sum(len(pool["processes"]) for pool in status["workers"]["pools"]
                          if pool["prefix"] != "application")
            if cache["members"] != workers + len(members.processes):
                return f"{cache['members']} members of {workers + len(members.processes)}"
        for entry in tree.below(self.server.pid):
            if entry.state == "Z":
                return f"zombie {entry}"
            if entry.role == "cgi":
                return f"CGI program {entry}"
        return None

    def look_for_leftovers(self, whose, alive):
        left = sorted(path.name for path in self.site.temporary.iterdir())
        left += [] if alive else [str(path) for path in (self.site.socket, self.site.cache,
                                                         self.site.pid_file) if path.exists()]
        if left:
            self.wrong(f"{whose} leaves {', '.join(left)}")

    # --- the server itself --------------------------------------------------------------------

    def kill_servers(self):
        """Repeatedly; each start uses the files that the previous one has left."""
        self.shared = shared_memory()
        times, old, last = [], [], False
        killed = time.monotonic()
        while not last:
            last = len(times) >= 3 and time.monotonic() > self.until
            server = servers.Server(self.kind, None, "--config", self.site.config, listen=None,
                                    env=self.site.environment())
            try:
                self.server = server
                self.look_at_new(old)
                times.append(self.answered - killed)
                if last:
                    server.stop()
                else:
                    old = self.kill_busy(server)
                    killed = time.monotonic()
                    server.kill()
            except BaseException:
                server.kill()
                self.torture.say("the server's log:\n" + server.errors.text()[-4000:])
                raise
        self.look_for_leftovers("a server that has ended", alive=False)
        self.torture.count("servers killed", len(times) - 1)
        # The first was no restart.
        self.times += times[1:]
        if statistics.median(times[1:]) > RESTARTED:
            self.wrong(f"restarts took {times[1:]} s")

    def look_at_new(self, old):
        pages = {page.target: page for page in self.site.pages if not page.fields
                 and page.method != "HEAD"}
        self.answered = None
        for target in FIRST:
            with Connection(self.port) as connection:
                status, body, _ = connection.ask(pages[target])
            self.answered = self.answered or time.monotonic()
            if status != 200 or not pages[target].is_right(body):
                self.wrong(f"a server that was started anew answers {target} with {status}")
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(servers.TIMEOUT)
            client.connect(str(self.site.socket))
            client.sendall(b"HEAD /small HTTP/1.1\r\nHost: test\r\n\r\n")
            if not client.recv(100).startswith(b"HTTP/1.1 200 "):
                self.wrong("a restarted server does not answer at its Unix socket")
        if int(self.site.pid_file.read_text()) != self.server.pid:
            self.wrong("the pid file is not that of the restarted server")
        if self.arch != "mp":
            subprocess.run([os.path.join(servers.BUILD, "nabcctl", "nabcctl"), "--cache",
                            str(self.site.cache), "stat"], check=True, timeout=servers.TIMEOUT,
                           stdout=subprocess.DEVNULL)
        for process in old:
            if not process.ended():
                self.wrong(f"process {process.pid} outlives its server that was killed")
            process.close()
        self.look_for_leftovers("a server that was killed", alive=True)
        # Programs of other users vary.
        deadline = time.monotonic() + servers.TIMEOUT
        while more := shared_memory() - self.shared:
            if time.monotonic() > deadline:
                self.wrong(f"there is more in /dev/shm: {', '.join(sorted(more))}")
            time.sleep(0.1)

    def kill_busy(self, server):
        """Requests all kinds of content; returns the processes that must end with the server."""
        asked = [page for page in self.site.pages if page.pool]
        clients = []
        for page in self.random.sample(asked, 2 * len(mixed.POOLS)):
            clients.append(Client(self.port))
            clients[-1].send(page.request())
        old = []
        for entry in tree.below(server.pid):
            with contextlib.suppress(ProcessLookupError):
                old.append(servers.Process(entry.pid))
        for client in clients:
            client.close()
        return old
