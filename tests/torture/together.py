# SPDX-License-Identifier: MIT
"""The stage together: all attacks at once, from one address and from 50, beside four classes of
honest clients that must keep their rate and their times.

The attacks (KINDS below, hostile-http.c and hostile-worker.c): clients that read slowly, listings
and streams that are left, PROPFIND, HTTP/2 with refused streams, with streams that the server must
reset, and with bombs of HPACK; WebSockets that are silent; guessed passwords; a worker that lies,
passes descriptors whose last close lingers, and seals units; and a program whose start a lease
holds.  TORTURE_SLOW is the number of slow readers (400; 2000 need 4,000 descriptors);
TORTURE_KINDS=hpack,guess runs these alone, to find the one that hurts.

The honest clients: files in the cache, a file too large for it, pages of a worker, and a file
behind a password that the server remembers.  Each class has a program and a rate of its own.

The method.  Turns alternate, so that other loads of the machine meet all: alone, beside the
attacks from one address, beside those from 50.  As in hostile.py, which describes what is
fair on one machine, the server has a CPU of its own, all attackers together use at most 0.4 of the
other one, after the honest clients, who ask for 0.3 of what is possible.  What runs inside the
server's programs, the hostile worker, is on the attackers' CPU too.  As root, the stage has a
higher share of the CPUs than other sessions (sched(7), autogroup: else nice values count within
a session only).  Turns that other loads disturbed are left out.  The rates compared are medians of turns; for p99, the answers of all turns
are one set, by eighths of powers of two: a figure is at most an eighth too large.

The stage is no part of a run without names, since its bars are not met from 50 addresses on one
processor: README.md has what is known.

Bars, in one run: 90 % of the rate alone, p99 within 3 times of alone, and memory: that of the
server within the sum of what is configured (cache, memory of the pools, 64 KB for each connection
and stream), response bytes in sockets within socket-memory.
"""

import concurrent.futures
import contextlib
import math
import os
import re
import statistics
import time

import server as servers
import hostile
from files import KB, MB, pattern, write
from hostile import ALONE, ATTACKERS_CPU, PART, WAITED, Program, Window
from held import Held
from lingering import Peer
from server import resident
from test_generate import page
from upstream import Upstream

SHARE = 0.15

KEPT = 0.9  # of the honest clients' rate
SLOWER = 3  # times of p99
LEAST_US = 1000  # below, p99 shows the machine's scheduler
SLOW = int(os.environ.get("TORTURE_SLOW", "400"))
# Connections that each kind holds.
KINDS = {"slow-read": SLOW, "listing": 50, "propfind": 20, "refused-streams": 20,
         "made-resets": 20, "hpack": 20, "websocket": 200, "guess": 50, "accomplice": 16, "held": 8}
if "TORTURE_KINDS" in os.environ:
    KINDS = {kind: KINDS[kind] for kind in os.environ["TORTURE_KINDS"].split(",")}
SESSIONS = ("refused-streams", "made-resets", "hpack")
FROM = (1, 50)  # addresses of attackers
MANY, DAV_FILES = 2000, 200  # files of the folder that is listed, and of that of WebDAV
CACHE, POOL_MEMORY, UNCACHED = 8 * MB, 4 * MB, 2200 * KB
STREAMS = 128  # max-streams
PER_CONNECTION = 64 * KB
EIGHTHS = 8  # of honest.c
# "geheim", by bcrypt: as slow to verify as passwords should be.
USERS = b"anna:$2b$10$abcdefghijklmnopqrstuu3qWavo/JrKRRVDF/68ERj4rQOXSVCG2\n"
LOGIN = "Authorization: Basic YW5uYTpnZWhlaW0="
UPGRADED = (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")


def silent(asked):
    """An application of WebSocket that says nothing, until the client has left."""
    asked.send(UPGRADED)
    asked.connection.socket.settimeout(None)
    while asked.connection.socket.recv(4096):
        pass
    return False


class Stage(hostile.Stage):
    def __init__(self, torture, peer, sockets):
        self.peer, self.sockets = peer, sockets
        super().__init__(torture)
        self.classes = {
            "files in the cache": ([], ["/small=" + str(self.root / "small"),
                                        "/page=" + str(self.root / "page"),
                                        "/large=" + str(self.root / "large")]),
            "files not in the cache": ([], ["/uncached=" + str(self.root / "uncached")]),
            "pages of a worker": ([], ["/work?size=2000=" + str(self.scratch / "work")]),
            "passwords": (["-f", LOGIN], ["/closed/page=" + str(self.root / "closed" / "page")]),
        }

    def make_root(self):
        root = super().make_root()
        write(root / "uncached", pattern(UNCACHED))
        write(root / "closed" / "page", pattern(10 * KB))
        for number in range(MANY):
            write(root / "many" / f"a file with a name of some length {number}", b"")
        for number in range(DAV_FILES):
            write(root / "dav" / f"{number}", pattern(KB))
        write(self.scratch / "users", USERS)
        write(self.scratch / "work", page(2000))
        self.held = write(self.scratch / "programs" / "held.sh",
                          b"#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nheld\\n'\n")
        self.held.chmod(0o755)
        return root

    def make_config(self):
        path = super().make_config()
        text = path.read_text().replace("cache-size=64M\n", f"cache-size={CACHE}\nhttp2=clear\n")
        away = " ".join([*self.client_cpu, "nice", "-n", "34"])
        text = re.sub(r"^(command=)(\S+hostile-worker \d+)$", rf"\1{away} \2 {self.peer.port}",
                      text, flags=re.MULTILINE)
        text = re.sub(r"^(\[pool (?:work|taken-over)\])$", rf"\1\nmemory={POOL_MEMORY}",
                      text, flags=re.MULTILINE)
        self.pools = 10  # processes with memory, of both
        write(path, (text + (
            f"[path /many]\nlisting=on\n"
            f"[path /dav]\nwebdav=on\nauth-realm=Dav\nauth-file={self.scratch}/users\n"
            f"[path /closed]\nauth-realm=Closed\nauth-file={self.scratch}/users\n"
            f"[pool held]\nprotocol=cgi\nfolder={self.scratch}/programs\n"
            f"[path /held]\npool=held\n"
            f"[pool sockets]\nprotocol=http\nupstream={self.sockets.address}\nupgrade=websocket\n"
            f"[path /socket]\npool=sockets\n")).encode())
        return path

    @contextlib.contextmanager
    def honest_all(self, server, rates):
        """Honest clients of all classes, as {class: program}."""
        with contextlib.ExitStack() as ends:
            yield {name: ends.enter_context(self.honest(server, rate, *self.classes[name][0],
                                                        targets=self.classes[name][1]))
                   for name, rate in rates.items()}

    @contextlib.contextmanager
    def attack_all(self, server, addresses):
        programs = {}
        with contextlib.ExitStack() as ends:
            ends.enter_context(Held(self.held))
            for kind, count in KINDS.items():
                programs[kind] = Program(self, "hostile-http", kind, server.port, count, addresses,
                                         ATTACKERS_CPU / len(KINDS),
                                         self.torture.random.randrange(1 << 31),
                                         hostile.Figures)
                ends.callback(programs[kind].end)
            yield programs
        for kind, program in programs.items():
            self.torture.count(f"{kind} connections", program.figures[0])

    def sum_of_memory(self, base):
        """What the configuration permits the server."""
        connections = sum(KINDS.values()) + 16 * len(self.classes)
        streams = sum(KINDS.get(kind, 0) for kind in SESSIONS) * STREAMS
        return (base + CACHE + self.pools * POOL_MEMORY
                + (connections + streams) * PER_CONNECTION)


class Turn:
    """A period: a window of each class, and the times of its answers."""

    def __init__(self, server, honest, seconds):
        before = {name: program.figures.times() for name, program in honest.items()}
        with concurrent.futures.ThreadPoolExecutor(len(honest)) as pool:
            made = pool.map(lambda program: Window(server, program, seconds), honest.values())
            self.windows = dict(zip(honest, made))
        self.times = {name: [now - then for now, then in
                             zip(program.figures.times(), before[name])]
                      for name, program in honest.items()}


def percentile(times, share):
    """Microseconds within which this share of the answers came."""
    due = share * sum(times)
    for at, count in enumerate(times):
        due -= count
        if due <= 0:
            power, eighth = divmod(at, EIGHTHS)
            return 2 ** power * (1 + (eighth + 1) / EIGHTHS)
    return math.inf


def capacity(stage, server, seconds):
    found = {}
    for name in stage.classes:
        with stage.honest_all(server, {name: 0}) as honest:
            time.sleep(seconds / 3)
            found[name] = Window(server, honest[name], seconds).answers
    return found


def attacked(stage, kind, until):
    seconds = until - time.monotonic()
    turns = max(2, min(10, round(seconds / 40)))
    length = max(1.5, seconds / (turns * (1 + 2 * len(FROM)) + 2))
    found = {number: [] for number in FROM}
    memory = sockets = 0
    with stage.serving(kind, "--socket-memory", 64 * MB) as server:
        base = resident(server.pid)
        most = capacity(stage, server, max(0.5, min(3, seconds / 40)))
        rates = {name: rate * PART / len(most) for name, rate in most.items()}
        with stage.honest_all(server, rates) as honest:
            time.sleep(length / 2)
            for _ in range(turns):
                time.sleep(length / 5)
                alone = Turn(server, honest, length)
                for number in FROM:
                    with stage.attack_all(server, number):
                        time.sleep(length)
                        beside = Turn(server, honest, length)
                        memory = max(memory, resident(server.pid))
                        sockets = max(sockets, server.status()["slow"]["socket_bytes"])
                    found[number].append((alone, beside))
                    stage.alive(server)
    for number, pairs in found.items():
        for name in stage.classes:
            judge(stage, f"{kind}, {name}, beside {number} addresses", rates[name],
                  [(alone.windows[name], beside.windows[name], alone.times[name],
                    beside.times[name]) for alone, beside in pairs])
    allowed = stage.sum_of_memory(base)
    stage.torture.say(f"{kind}: the server had {memory >> 20} MB of {allowed >> 20}, and "
                      f"{sockets >> 20} MB in sockets")
    stage.torture.count(f"MB of the server's memory ({kind})", memory >> 20)
    if memory > allowed:
        stage.wrong.append(f"{kind}: the server has {memory >> 20} MB, more than the sum of "
                           f"{allowed >> 20}")
    if sockets > 64 * MB:
        stage.wrong.append(f"{kind}: {sockets >> 20} MB in sockets, more than socket-memory")


def judge(stage, what, rate, pairs):
    """Checks one class, in the turns in which the machine permits a judgement."""
    good = [pair for pair in pairs
            if pair[0].answers >= ALONE * rate and pair[1].waited <= WAITED]
    stage.torture.count("turns of a class", len(pairs))
    stage.torture.count("of them disturbed by others", len(pairs) - len(good))
    if not good:
        stage.torture.say(f"{what}: the machine was too busy with other things to judge")
        return
    alone, beside = ([statistics.median(pair[at].answers for pair in good) for at in (0, 1)])
    times = [percentile([sum(column) for column in zip(*(pair[at] for pair in good))], 0.99)
             for at in (2, 3)]
    kept, slower = beside / alone, times[1] / max(times[0], LEAST_US)
    cpu = statistics.median(pair[1].cpu - pair[0].cpu for pair in good)
    stage.worst = min(getattr(stage, "worst", 1e9), kept)
    stage.slower = max(getattr(stage, "slower", 0), slower)
    stage.torture.say(f"{what}: {100 * kept:.0f} % of {alone:.0f} answers/s, p99 {times[1]:.0f} us "
                      f"instead of {times[0]:.0f}; the server used {100 * cpu:+.0f} % of a CPU")
    if kept < KEPT:
        stage.wrong.append(f"{what}: honest clients keep {100 * kept:.0f} % only")
    if slower > SLOWER:
        stage.wrong.append(f"{what}: p99 is {slower:.1f} times of alone")


@contextlib.contextmanager
def before_others():
    """This session has the processors before others; without effect where that is not possible."""
    def be(nice):
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as file:
            file.write(str(nice))

    be(-15)
    try:
        yield
    finally:
        be(0)


def run(torture):
    kinds = list(servers.KINDS)[:2]
    torture.random.shuffle(kinds)
    if torture.seconds < 120:
        del kinds[1:]
    with before_others(), Peer() as peer:
        sockets = Upstream(silent)
        try:
            stage = Stage(torture, peer, sockets)
            stage.wrong = []
            for number, kind in enumerate(kinds):
                attacked(stage, kind, time.monotonic() + torture.left() / (len(kinds) - number))
        finally:
            sockets.close()
    if hasattr(stage, "worst"):
        torture.count("percent of their rate that honest clients keep at least",
                      round(100 * stage.worst))
        torture.count("times of p99 alone at most", round(stage.slower, 1))
    if stage.wrong:
        raise stage.Wrong("; ".join(stage.wrong))
