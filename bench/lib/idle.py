# SPDX-License-Identifier: MIT
"""idle: what idle kept connections cost, in memory and in throughput.

Three loads take turns: 64 busy connections; the same beside 10,000 that were used once and are
idle; 10,000 busy ones.
"""

import resource
import socket
import ssl

from . import files, load, report
from .process import Failure
from .servers import Row, Sweet

CONNECTIONS = 10_000
BUSY = 64
SIZE = 1 << 10
# Addresses of the server: each has its own supply of client ports.
ADDRESSES = [f"127.0.0.{number}" for number in range(1, 9)]
OPEN_AT_ONCE = 500  # less than the shortest accept queue
# The client opens them first, within the time of the run.
CROWD_SECONDS = 5
MEMORY_BAR, THROUGHPUT_BAR = 1024, 0.8
REQUEST = b"GET /1024/000.bin HTTP/1.1\r\nHost: bench\r\n\r\n"


def raise_limit(least):
    """Raises the limit of descriptors for this process and its children."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= least:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, max(least, hard)))
    except (ValueError, PermissionError):
        raise Failure(f"{least} descriptors are more than the limit ({hard}): raise it by"
                      " ulimit -Hn") from None


def memory(pid):
    """Returns the bytes of a process's private memory, and of all that it has mapped, in RAM or
    swap."""
    sums = dict.fromkeys(("Private_Clean", "Private_Dirty", "Rss", "Swap"), 0)
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            name = line.partition(":")[0]
            if name in sums:
                sums[name] += int(line.split()[1]) << 10
    return (sums["Private_Clean"] + sums["Private_Dirty"] + sums["Swap"],
            sums["Rss"] + sums["Swap"])


class Idle:
    """Connections that each received one response; close() closes them."""

    def __init__(self, port, count, addresses=ADDRESSES, tls=None):
        self.sockets = []
        self.addresses, self.tls = addresses, tls
        try:
            while len(self.sockets) < count:
                self.open_some(port, min(OPEN_AT_ONCE, count - len(self.sockets)))
        except OSError as error:
            self.close()
            raise Failure(f"connection {len(self.sockets)} of {count}: {error}") from error

    def open_some(self, port, count):
        some = []
        for _ in range(count):
            address = self.addresses[len(self.sockets) % len(self.addresses)]
            some.append(self.connect(address, port))
            self.sockets.append(some[-1])
            some[-1].sendall(REQUEST)
        for one in some:
            answer = b""
            while len(answer.partition(b"\r\n\r\n")[2]) < SIZE:
                piece = one.recv(4096)
                if not piece:
                    raise Failure("the server closed a connection that was to be kept")
                answer += piece
            if not answer.startswith(b"HTTP/1.1 200 "):
                raise Failure(f"the server said {answer[:60]!r}")

    def connect(self, address, port):
        plain = socket.create_connection((address, port), load.CHECK_SECONDS)
        return self.tls.settings.wrap_socket(plain, server_hostname=address) if self.tls else plain

    def still_open(self):
        """Returns how many the server has not closed."""
        count = 0
        for one in self.sockets:
            one.setblocking(False)
            try:
                count += one.recv(1) != b""
            except (BlockingIOError, ssl.SSLWantReadError):
                count += 1
            except ConnectionError:
                pass
        return count

    def close(self):
        for one in self.sockets:
            one.close()
        self.sockets = []


def least_memory(pid):
    """Returns the minimum of some moments, because memory is freed a little later."""
    return tuple(map(min, zip(*(memory(pid) for _ in range(5)))))


def measure_one(context, root, io):
    sweet = Sweet(context, root, io, 64, False)
    sweet.argv += [part for address in ADDRESSES[1:]
                   for part in ("--listen", f"{address}:{sweet.port}")]
    context.start([sweet])
    pid = sweet.popens[0].pid
    turn = 0

    def run(connections, seconds):
        nonlocal turn
        turn += 1
        sweet.address = ADDRESSES[turn % len(ADDRESSES)]
        client = load.Wrk(context.client_cpu, connections, SIZE, f"/{SIZE}/000.bin")
        return context.turn(Row(sweet.name, sweet, client), seconds)

    run(BUSY, 1)
    before = least_memory(pid)
    idle = Idle(sweet.port, CONNECTIONS)
    after = least_memory(pid)
    own, mapped = ((then - now) / CONNECTIONS for now, then in zip(before, after))
    idle.close()
    loads = {f"{BUSY} busy": [], f"{BUSY} busy, {CONNECTIONS} idle": [], f"{CONNECTIONS} busy": []}
    alone, beside, crowd = loads.values()
    for _ in range(context.runs):
        alone.append(run(BUSY, context.seconds))
        idle = Idle(sweet.port, CONNECTIONS)
        beside.append(run(BUSY, context.seconds))
        left = idle.still_open()
        idle.close()
        if left != CONNECTIONS:
            raise Failure(f"the server closed {CONNECTIONS - left} idle connections")
        crowd.append(run(CONNECTIONS, max(context.seconds, CROWD_SECONDS)))
    context.cases.append({"parameters": {"server": sweet.name, "size": SIZE}, "runs": loads})
    tell(context, sweet, (own, mapped), loads)


def tell(context, sweet, bytes_each, loads):
    context.table(f"{sweet.name}: memory of each of {CONNECTIONS} idle connections, in bytes",
                  ["", "", "the server's own", "all that it has mapped"],
                  [["memory", "", *(f"{value:.0f}" for value in bytes_each)]])
    context.verdicts.append((f"{sweet.name}: bytes of an idle connection", max(bytes_each),
                             f"at most {MEMORY_BAR}", max(bytes_each) <= MEMORY_BAR))
    name, alone = next(iter(loads.items()))
    rows = []
    for other, runs in list(loads.items())[1:]:
        rate = report.ratio(runs, alone, "requests_per_s")
        rows.append([f"{other} / {name}", "", report.spread(rate),
                     report.spread(report.ratio(runs, alone, "cpu_us_per_request"))])
        context.verdicts.append((f"{sweet.name}: {other} / {name}, requests/s", rate[0],
                                 THROUGHPUT_BAR, rate[0] >= THROUGHPUT_BAR))
    context.table(f"{sweet.name}: ratio of medians (least-most of the pairs of runs)",
                  ["load / load", "", "requests/s", "CPU/request"], rows)


def measure(context):
    # Ours, wrk's and the server's, each on its own.
    raise_limit(CONNECTIONS + 1000)
    root = files.make_root(context, [SIZE])
    for io in context.io:
        measure_one(context, root, io)
