# SPDX-License-Identifier: MIT
"""slow: the throughput of normal clients beside 2,000 that read slowly, or not at all.

Two loads take turns: busy connections, and the same beside slow readers of large,
small and generated bodies, opened again for each run. At the end, those that read
must have received the exact bytes.
"""

import collections
import multiprocessing
import os
import re
import selectors
import socket
import time

from . import cgroup, dynamic, files, load, report
from .documents import Documents, body
from .idle import ADDRESSES, raise_limit
from .process import Failure
from .servers import SWEET_WORKERS, Row, Sweet

KB, MB = 1 << 10, 1 << 20
COUNT, QUICK_COUNT = 2_000, 400
BUSY = 64
SIZES, QUICK_SIZES = (1 * KB, 64 * KB), (1 * KB,)
CACHE_MIB, SOCKETS_MIB, WORKER_MIB = 256, 256, 64  # SWEET's own defaults
RECEIVE_BUFFER = 4 * KB
GROUP_BYTES = 8 << 30  # more than a machine needs, so that defaults do not depend on the machine
GENERATED = MB
# Path and bytes; each of the smaller ones is requested by at most a few.
PAGE = [(f"/generate?size={GENERATED}", GENERATED)]
HUGE = [("/huge.bin", 128 * MB)]
LARGE = [(f"/large/{number}.bin", 2 * MB) for number in range(COUNT // 4)]
SMALL = [(f"/small/{number}.bin", 64 * KB) for number in range(COUNT // 4)]

READ_EVERY, READ_BYTES = 1.0, 2 * KB  # of a reader
OPEN_RATE = 500  # connections per second: a quarter request 1 MB, which goes to the spool
OPEN_SECONDS, SETTLE_SECONDS, END_SECONDS = 60, 2, 300
REQUESTS_BAR, P99_BAR, MEMORY_BAR = 0.9, 2.0, 1.0


class Reader:
    """A connection whose response is not read, or read slowly."""

    def __init__(self, address, port, number, pages):
        """number: every second one reads."""
        # A response that nobody reads completely may be huge.
        self.reads = number % 2 == 1
        group = (SMALL, LARGE, LARGE if self.reads else HUGE, PAGE)[number // 2 % 4]
        self.path, _ = group[number // 8 % len(group)]
        self.body = pages[self.path] if self.reads else b""
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self.socket.settimeout(OPEN_SECONDS)
        self.socket.connect((address, port))
        self.socket.sendall(f"GET {self.path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        self.socket.setblocking(False)
        self.head, self.at, self.wrong = b"", 0, None

    def take(self, most):
        """Reads a little; returns False when it has everything, or never will."""
        try:
            data = self.socket.recv(most)
        except BlockingIOError:
            return True
        except OSError as error:
            self.wrong = str(error)
            return False
        if not data:
            self.wrong = "the server closed the connection"
            return False
        if self.head is not None:
            self.head += data
            head, end, data = self.head.partition(b"\r\n\r\n")
            if not end:
                return True
            self.head = None
            if not head.startswith(b"HTTP/1.1 200 "):
                self.wrong = head.partition(b"\r\n")[0].decode(errors="replace")
                return False
        if data != self.body[self.at:self.at + len(data)]:
            self.wrong = f"wrong bytes after {self.at}"
            return False
        self.at += len(data)
        return self.at < len(self.body)


class Crowd:
    """A process with the slow connections; whole() reports their results."""

    def __init__(self, context, server, count, pages):
        fork = multiprocessing.get_context("fork")
        self.pipe, other = fork.Pipe()
        self.process = fork.Process(target=crowd, daemon=True, args=(
            other, context.client_cpu, server.port, count, pages))
        self.process.start()
        other.close()
        self.hear(OPEN_SECONDS)

    def hear(self, seconds):
        if not self.pipe.poll(seconds):
            raise Failure("the slow readers did not get on")
        try:
            said = self.pipe.recv()
        except EOFError:
            raise Failure("the slow readers ended") from None
        if isinstance(said, str):
            raise Failure(said)
        return said

    def whole(self):
        """Reads everything; returns {outcome: how many}."""
        self.pipe.send("read")
        return self.hear(END_SECONDS)

    def close(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()


def crowd(pipe, cpu, port, count, pages):
    os.sched_setaffinity(0, {cpu})
    try:
        all_of_them = []
        for number in range(count):
            all_of_them.append(Reader(ADDRESSES[number % len(ADDRESSES)], port, number, pages))
            time.sleep(1 / OPEN_RATE)
    except OSError as error:
        pipe.send(f"slow reader: {error}")
        return
    pipe.send(count)
    readers = collections.deque(one for one in all_of_them if one.reads)
    # One after the other, at a constant rate.
    while not pipe.poll(READ_EVERY / max(len(readers), 1)):
        if readers:
            readers.rotate(-1)
            if not readers[0].take(READ_BYTES):
                readers.popleft()
    pipe.recv()
    pipe.send(read_all([one for one in all_of_them if one.reads]))


def read_all(readers):
    selector = selectors.DefaultSelector()
    for one in readers:
        if one.at < len(one.body) and not one.wrong:
            selector.register(one.socket, selectors.EVENT_READ, one)
    limit = time.monotonic() + END_SECONDS
    while selector.get_map() and time.monotonic() < limit:
        for key, _ in selector.select(1):
            if not key.data.take(64 * KB):
                selector.unregister(key.fileobj)
    for key in list(selector.get_map().values()):
        key.data.wrong = "not whole in time"
    return dict(collections.Counter(one.wrong or "whole" for one in readers))


def tcp_memory():
    """Returns the bytes of all sockets of this network namespace."""
    with open("/proc/net/sockstat") as file:
        return int(re.search(r"^TCP:.* mem (\d+)", file.read(), re.M)[1]) * os.sysconf("SC_PAGE_SIZE")


class Memory:
    """Returns memory of the server and its workers: private, shared, and of sockets."""

    def __init__(self, group):
        self.group, self.before = group, tcp_memory()

    def used(self):
        stat = dict(line.split() for line in cgroup.read(self.group.memory, "memory.stat").splitlines())
        names = ("total_rss", "total_shmem") if "total_rss" in stat else ("anon", "shmem")
        own = sum(int(stat[name]) for name in names)
        return own, max(0, tcp_memory() - self.before)


def measure_one(context, io, group, pages, root):
    spool = os.path.join(context.directory, f"spool-{io}")
    os.mkdir(spool, 0o700)
    sweet = Sweet(context, root, io, CACHE_MIB, True, arguments=["--spool-directory", spool])
    sweet.argv += [part for address in ADDRESSES[1:]
                   for part in ("--listen", f"{address}:{sweet.port}")]
    sweet.before = group.enter
    context.start([sweet])
    count = context.pick(None, COUNT, QUICK_COUNT)
    turn, most, outcomes = 0, (0, 0), {}
    memory = Memory(group)
    for size in context.pick(context.sizes, SIZES, QUICK_SIZES):
        loads = {f"{BUSY} busy": [], f"{BUSY} busy, {count} slow": []}

        def run(name):
            nonlocal turn
            turn += 1
            sweet.address = ADDRESSES[turn % len(ADDRESSES)]
            client = load.Wrk(context.client_cpu, BUSY, size, f"/{size}/000.bin")
            loads[name].append(context.turn(Row(sweet.name, sweet, client), context.seconds))

        for number in range(context.runs):
            run(f"{BUSY} busy")
            slow = Crowd(context, sweet, count, pages)
            try:
                time.sleep(SETTLE_SECONDS)  # until all that happens by itself has happened
                run(f"{BUSY} busy, {count} slow")
                most = max(most, memory.used(), key=sum)
                if number == context.runs - 1:
                    outcomes = slow.whole()
            finally:
                slow.close()
        context.cases.append({"parameters": {"server": sweet.name, "size": size}, "runs": loads})
        tell(context, f"{sweet.name}, {report.size_name(size)}", loads)
    tell_memory(context, sweet.name, most)
    tell_outcomes(context, sweet.name, outcomes)


def tell(context, name, loads):
    alone, beside = loads.values()
    row = []
    for field, words, bar, least in (("requests_per_s", "requests/s", REQUESTS_BAR, True),
                                     ("p99_us", "p99", P99_BAR, False),
                                     ("cpu_us_per_request", "CPU/request", None, False)):
        got = report.ratio(beside, alone, field)
        row.append(report.spread(got))
        if bar:
            context.verdicts.append((f"{name}: beside slow readers / alone, {words}", got[0], bar,
                                     got[0] >= bar if least else got[0] <= bar))
    context.table(f"{name}: beside slow readers / alone, medians (least-most of the pairs of runs)",
                  ["", "", "requests/s", "p99", "CPU/request"], [["ratio", "", *row]])


def tell_memory(context, name, used):
    bound = (CACHE_MIB + SOCKETS_MIB + SWEET_WORKERS * WORKER_MIB) * MB
    context.table(f"{name}: memory beside slow readers, in MB",
                  ["", "", "its own and shared", "its sockets", "cache, sockets, workers as configured"],
                  [["most", "", *(f"{value / MB:.0f}" for value in (*used, bound))]])
    context.verdicts.append((f"{name}: memory / what is configured", sum(used) / bound,
                             f"at most {MEMORY_BAR}", sum(used) <= MEMORY_BAR * bound))


def tell_outcomes(context, name, outcomes):
    context.table(f"{name}: what came of the slow ones that read", ["", "", "connections"],
                  [[outcome, "", str(number)] for outcome, number in sorted(outcomes.items())])
    whole = outcomes.get("whole", 0) / max(sum(outcomes.values()), 1)
    context.verdicts.append((f"{name}: slow readers that got all", whole, 1, whole == 1))


def measure(context):
    # Ours, wrk's and the server's, each on its own.
    raise_limit(2 * COUNT + 1000)
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    some = [*LARGE, *SMALL]
    root = Documents(context, "slow", [*some, *HUGE]).root
    files.make_files(root, sizes)
    pages = {path: body(size, number) for number, (path, size) in enumerate(some)}
    pages[PAGE[0][0]] = dynamic.body_of(GENERATED)
    for io in context.io:
        group = cgroup.Group(f"bench-slow-{os.getpid()}", GROUP_BYTES)
        try:
            measure_one(context, io, group, pages, root)
        finally:
            context.stop()
            group.remove()
