# SPDX-License-Identifier: MIT
"""The stage hostile: hostile clients, workers and members, and honest clients that
must not suffer from them.

Four parts, each with a share of the time:

- words: raw bytes of the table of the system tests and paths that try to leave
  the root, cut into random segments.  Each has the answer that the table says
  and no other, and no secret ever comes.
- rates: honest clients with attackers and without, in turns.
- crowd: as many silent connections as descriptors allow, ever new ones.
- inside: a worker that was taken over, and members of the cache's, as other
  users, beside honest clients.

What is fair to ask of the rates.  Everything runs on one machine, so attackers
take CPU time from their victims by merely running.  Therefore the server has a
CPU of its own, and honest clients and attackers share the other, of which all
attackers together may use 0.4 (they see to it themselves).  The honest clients
ask for 0.3 of what was possible at the beginning, which leaves a rest of that
CPU: were it full, attackers would take from the clients what they need before
they ever met the server.  So the server has 0.7 of its own CPU left to resist
with, and what it loses shows as soon as an attack takes twice as much of its CPU
time as of the attackers', or fills a table, a queue or a limit that is for all.
What it used is stated, too.  They come from 16 addresses, each of which may have
what the limits give a client: from more it would be many visitors, no attack.  The honest clients come before the attackers where CPU
time is short, as do other machines, which have their own.  Turns with and without
attackers alternate, so that other loads of the machine meet both, and medians are
compared; turns in which honest clients did not have their rate when they were
alone, or waited for a CPU of their own for long, show those loads and are left
out.  Limits are those of sweet/sweet.conf, so that they are shown to be good
ones; only the number of connections is that of the available descriptors.
"""

import collections
import concurrent.futures
import contextlib
import itertools
import mmap
import os
import re
import resource
import socket
import statistics
import struct
import subprocess
import time

import server as servers
from client import Client, fetch, request
from files import KB, MB, pattern, write
from test_generate import page
from test_protocol import CASES, check

SHARE = 0.2

KEPT = 0.8  # of the honest clients' rate
PART = 0.3  # share of the maximum that server and clients can reach
ATTACKERS_CPU = 0.4  # of one processor, of all together
# Connections that each kind holds.
KINDS = {"slowloris": 1000, "slow-read": 500, "slow-body": 500, "header-bomb": 50, "body-bomb": 50,
         "pipeline": 50, "reset": 50, "half-close": 50, "ranges": 50, "flood": 50, "garbage": 50,
         "connects": 1500}
ADDRESSES, CROWD = 16, 250  # addresses of attackers; the same in a crowd
GOOD, ERRORS, CONNECTIONS, SLOWEST, _, REASON, ALL_US, TIMES = range(8)  # honest.c
SECRET = b"nobody outside may read this"
NOBODY = 65534
ALONE = 0.9  # share of their rate that honest clients reach alone, unless others disturb
WAITED = 0.5  # maximum share of the time that honest clients may wait for a CPU in a valid turn
ASKERS = 8  # clients of a compromised worker


class Figures:
    """Counts of a program, while it runs."""

    SIZE = 8 * 256  # hostile.h

    def __init__(self, folder, name):
        self.path = folder / f"figures-{name}"
        self.path.write_bytes(bytes(self.SIZE))
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), self.SIZE)
        self.path.chmod(0o666)

    def __getitem__(self, number):
        return struct.unpack_from("=Q", self.map, 8 * number)[0]

    def times(self):
        """Answers by their time: EIGHTHS numbers for each power of two of microseconds."""
        return struct.unpack_from(f"={self.SIZE // 8 - TIMES}Q", self.map, 8 * TIMES)


class Program:
    """A program that runs until it is stopped; pinned to the CPU of clients."""

    numbers = itertools.count()

    def __init__(self, stage, name, *arguments, user=None):
        self.figures = Figures(stage.scratch, f"{name}-{next(self.numbers)}")
        arguments = [str(self.figures.path) if word is Figures else str(word) for word in arguments]
        self.process = subprocess.Popen(
            [*stage.client_cpu, "nice", "-n", str(stage.priority(name)),
             stage.build / "tests" / "torture" / name, *arguments],
            stdin=subprocess.DEVNULL, **({"user": user, "group": user, "extra_groups": []}
                                         if user else {}))

    def end(self):
        self.process.terminate()
        try:
            status = self.process.wait(servers.TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        if status:
            raise AssertionError(f"{self.process.args[-1]}: ended with status {status}")


class Stage:
    def __init__(self, torture):
        self.torture = torture
        self.Wrong = torture.Wrong
        self.scratch, self.build = torture.scratch, torture.build
        cpus = sorted(os.sched_getaffinity(0))
        self.server_cpu = ["taskset", "-c", str(cpus[0])] if len(cpus) > 1 else []
        self.client_cpu = ["taskset", "-c", str(cpus[1])] if len(cpus) > 1 else []
        if os.geteuid() == 0:
            self.server_cpu += ["nice", "-n", "-15"]
        self.root = self.make_root()
        self.config = self.make_config()
        self.targets = [f"{target}={path}" for target, path in (
            ("/small", self.root / "small"), ("/page", self.root / "page"),
            ("/large", self.root / "large"), ("/work?size=2000", self.scratch / "work"))]

    def make_root(self):
        """Files in a folder, and others outside of it."""
        self.scratch.chmod(0o755)
        root = self.scratch / "root"
        write(root / "index.html", b"here\n")
        write(root / "probe", b"the connection lasts\n")
        write(root / "small", pattern(1 * KB))
        write(root / "page", pattern(10 * KB))
        write(root / "large", pattern(100 * KB))
        write(root / "big", pattern(12 * MB))
        write(root / "folder" / "file", b"everybody may read this\n")
        write(self.scratch / "work", page(2000))
        for place in ("secret", "outside/secret", "root-2/secret"):
            write(self.scratch / place, SECRET)
        for name, target in {"out": "../secret", "out-folder": "../outside", "loop": "loop",
                             "absolute": str(self.scratch / "secret"), "up": ".."}.items():
            (root / name).symlink_to(target)
        return root

    def priority(self, name):
        """Honest clients stand for other machines: attackers must not take their CPU time."""
        return (-15 if os.geteuid() == 0 else 0) if name == "honest" else 4

    def limits(self):
        """Those of the example that users find, with the number of available connections."""
        text = (self.torture.source / "sweet" / "sweet.conf").read_text()
        block = next(part for part in text.split("\n\n") if "#max-connections=" in part)
        keys = dict(re.findall(r"^#([a-z-]+)=(.*)$", block, re.MULTILINE))
        if len(keys) < 8:
            raise AssertionError(f"sweet.conf has few limits: {keys}")
        self.descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        keys["max-connections"] = self.descriptors - 300
        return "".join(f"{key}={value}\n" for key, value in keys.items())

    def make_config(self):
        user = "user=nobody\n" if os.geteuid() == 0 else ""
        seed = self.torture.random.randrange(1 << 31)
        system = self.build / "tests" / "system"
        hostile = self.build / "tests" / "torture" / "hostile-worker"
        return write(self.scratch / "sweet.conf", (
            f"[sweet]\nlisten=127.0.0.1:0\nthreads=1\ncache-size=64M\n"
            f"cache-socket={self.scratch}/cache\nroot={self.root}\n{self.limits()}"
            f"[pool obey]\ncommand={system}/worker-obey\n[path /obey]\npool=obey\n"
            f"[path /obey/small]\nmax-body=10\n"
            f"[pool echo]\ncommand={system}/worker-obey\n[path /echo]\npool=echo\n"
            f"[pool work]\ncommand={servers.GENERATE}\n[path /work]\npool=work\n"
            f"[pool taken-over]\ncommand={hostile} {seed}\n{user}timeout=1s\nprocesses=8\n"
            f"[path /taken-over]\npool=taken-over\n").encode())

    @contextlib.contextmanager
    def serving(self, kind, *options):
        with self.torture.serving(kind, None, "--config", self.config, *options, listen=None,
                                  prefix=tuple(self.server_cpu)) as server:
            yield server

    @contextlib.contextmanager
    def honest(self, server, rate, *options, targets=None):
        """Honest clients; their errors are errors of the server."""
        program = Program(self, "honest", *options, server.port, rate, Figures,
                          *(targets or self.targets))
        try:
            yield program
        finally:
            program.end()
            figures = program.figures
            self.torture.count("honest answers", figures[GOOD])
            self.torture.count("honest connections", figures[CONNECTIONS])
            self.slowest = max(getattr(self, "slowest", 0), figures[SLOWEST])
        if figures[ERRORS]:
            reason = figures[REASON]
            reason = os.strerror(reason) if reason < 1000 else f"status {reason - 1000}"
            raise self.Wrong(f"{figures[ERRORS]} errors of honest clients beside {figures[GOOD]} "
                             f"good answers, the last: {reason}")
        if not figures[GOOD]:
            raise self.Wrong("not one honest client was answered")

    @contextlib.contextmanager
    def attack(self, server, kinds):
        """Attackers of some kinds together, which share their CPU time."""
        programs = {}
        with contextlib.ExitStack() as ends:
            for kind in kinds:
                programs[kind] = Program(self, "hostile-http", kind, server.port, KINDS[kind],
                                         ADDRESSES, ATTACKERS_CPU / len(kinds),
                                         self.torture.random.randrange(1 << 31), Figures)
                ends.callback(programs[kind].end)
            yield
        for kind, program in programs.items():
            self.torture.count("hostile connections", program.figures[0])
            self.torture.count("hostile sends", program.figures[1])
            self.torture.count(f"{kind} connections", program.figures[0])

    def alive(self, server):
        if server.process.poll() is not None:
            raise self.Wrong(f"the server has ended: {server.process.returncode}")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- words ------------------------------------------------------------------------


def in_segments(random):
    """A way to send: divided at random, mostly each piece in a segment of its own."""
    def send(client, data):
        cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.randrange(4)))
        for start, stop in zip([0, *cuts], [*cuts, len(data)]):
            if start < stop:
                client.send(data[start:stop])
    return send


ATOMS = ["..", "%2e%2e", ".%2e", "%2E.", "%252e%252e", "..%2f", "%2f..", "..%5c", "..\\", "...",
         "%c0%ae%c0%ae", "%c0%af", "%e0%80%ae", "%00", "..%00", ".", "", "..;", "..;/", "%20",
         "?..",
         "folder", "folder/..", "out", "out-folder", "absolute", "up", "loop", "file", "~", "*"]
ENDS = ["secret", "secret%00.html", "outside/secret", "root-2/secret", "../secret", "%2e%2e/secret",
        "etc/passwd", "proc/self/environ", "root/../secret", "secret/."]
STARTS = ["/", "//", "/./", "http://test/", "http://test//", "/\\", "/folder/", "/up/", "\\", ""]


def some_path(random):
    atoms = [random.choice(ATOMS) for _ in range(random.randrange(6))]
    return random.choice(STARTS) + "/".join([*atoms, random.choice(ENDS)])


def try_path(stage, server, target):
    with Client(server.port) as client:
        client.send(request(target).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        data = b""
        while piece := client.socket.recv(1 << 16):
            data += piece
    if SECRET in data or b"root:x:0:0" in data or b"PATH=" in data:
        raise stage.Wrong(f"{target!r} gave away what lies outside of the root")
    if not re.match(rb"HTTP/1\.1 (200|301|400|403|404) ", data):
        raise stage.Wrong(f"{target!r} was answered by {data[:60]!r}")


def words(stage, kind, until):
    random = stage.torture.random
    cases = random.sample(CASES, len(CASES))
    with stage.serving(kind, "--max-header", "16K", "--request-rate", "0") as server:
        turns = 0
        while not turns or time.monotonic() < until:
            for case in cases:
                if turns and time.monotonic() > until:
                    break
                try:
                    # A late body is requested (100), an early one is not.
                    whole = b"100-continue" in case.pieces[0].lower()
                    check(server.port, case, Client.send if whole else in_segments(random))
                except (BrokenPipeError, ConnectionResetError):
                    # A client that gets a response before the end of its request is not read to
                    # the end.
                    if case.fate == "kept":
                        raise
                except AssertionError as error:
                    raise stage.Wrong(f"{case.name}: {error}") from error
                stage.torture.count("cases of the protocol")
                try_path(stage, server, some_path(random))
                stage.torture.count("paths")
            turns += 1
        stage.alive(server)


# --- rates ------------------------------------------------------------------------


def capacity(stage, server, seconds):
    with stage.honest(server, 0) as honest:
        time.sleep(seconds / 3)
        return Window(server, honest, seconds).answers


def waited_seconds(pid):
    """Seconds for which the process was ready, but others ran."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[1]) / 1e9
    return 0


class Window:
    """A period: good responses per second, the share of a CPU that the server used, and the
    share of the time that the honest clients waited for one."""

    def __init__(self, server, honest, seconds):
        pid = honest.process.pid
        before = honest.figures[GOOD], cpu_seconds(server.pid), waited_seconds(pid)
        start = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - start
        self.answers = (honest.figures[GOOD] - before[0]) / took
        self.cpu = (cpu_seconds(server.pid) - before[1]) / took
        self.waited = (waited_seconds(pid) - before[2]) / took


def groups_of(stage, seconds):
    """Groups of attackers: each kind alone and all together; in little time some together."""
    kinds = list(KINDS)
    if seconds > 120:
        return [(kind,) for kind in kinds] + [tuple(kinds)]
    stage.torture.random.shuffle(kinds)
    return [tuple(kinds[:4]), tuple(kinds[4:8]), tuple(kinds[8:]), tuple(kinds)]


def rates(stage, kind, until):
    seconds = until - time.monotonic()
    groups = groups_of(stage, seconds)
    turns = 3 if seconds < 60 else 5
    length = max(0.3, seconds / (len(groups) * turns * 4.5))
    found = {group: [] for group in groups}
    with stage.serving(kind) as server:
        rate = capacity(stage, server, max(0.5, min(3, seconds / 20))) * PART
        with stage.honest(server, rate) as honest:
            time.sleep(length / 2)
            for group in groups * turns:
                with stage.attack(server, group):
                    time.sleep(length)
                    beside = Window(server, honest, length)
                time.sleep(length / 5)
                alone = Window(server, honest, length)
                disturbed = alone.answers < ALONE * rate or beside.waited > WAITED
                found[group].append((alone, beside, disturbed))
                stage.alive(server)
    for group, pairs in found.items():
        judge(stage, kind, "all" if len(group) == len(KINDS) else "+".join(group), pairs)


def judge(stage, kind, name, pairs, who="clients", least=KEPT):
    """Checks the rate of honest clients, in the turns in which the machine permits a judgement."""
    good = [(alone, beside) for alone, beside, disturbed in pairs if not disturbed]
    stage.torture.count("turns with attackers and without", len(pairs))
    stage.torture.count("of them disturbed by others", len(pairs) - len(good))
    if not good:
        stage.torture.say(f"{kind}, {name}: the machine was too busy with other things to judge")
        return
    without = statistics.median(window.answers for window, _ in good)
    kept = statistics.median(window.answers for _, window in good) / without
    more = statistics.median(beside.cpu - alone.cpu for alone, beside in good)
    stage.worst = min(getattr(stage, "worst", 1e9), kept)
    stage.torture.say(
        f"{kind}, {name}: honest {who} keep {100 * kept:.0f} % of {without:.0f} answers/s; the "
        f"server used {100 * more:+.0f} % of a CPU, attackers {100 * ATTACKERS_CPU:.0f} % at most")
    if kept < least:
        stage.wrong.append(f"{kind}: beside {name} honest {who} keep {100 * kept:.0f} % only")


# --- crowd --------------------------------------------------------------------------


def crowd(stage, kind, until):
    """For any number of connections, honest clients are served."""
    goal = stage.descriptors - 1500
    with stage.serving(kind, "--header-timeout", "2s", "--connections-per-client", "0") as server:
        with stage.honest(server, 300):
            program = Program(stage, "hostile-http", "connects", server.port, goal, CROWD, 0.8, 1,
                              Figures)
            try:
                most = 0
                while time.monotonic() < until or not program.figures[0]:
                    most = max(most, program.figures[5])
                    time.sleep(0.05)
            finally:
                program.end()
        stage.torture.count("silent connections", program.figures[0])
        stage.torture.say(f"{kind}: {program.figures[0]} silent connections, {most} at once")
        stage.alive(server)


# --- inside -------------------------------------------------------------------------


def unit_ids(stage, server):
    """Ids of units of the server: members try to get them."""
    for name in ("small", "page", "large", "folder/file"):
        fetch(server.port, "/" + name)
    done = subprocess.run([stage.build / "nabcctl" / "nabcctl", "--cache", stage.scratch / "cache",
                           "list"], capture_output=True, text=True, timeout=servers.TIMEOUT)
    return re.findall(r"^\s*(\d{3,})", done.stdout, re.MULTILINE)[:32]


def ask_taken_over(stage, server):
    """Sends one request to the compromised worker: any response or none, but no secret."""
    with Client(server.port) as client:
        client.send(request("/taken-over", fields="Connection: close\r\n"))
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := client.socket.recv(1 << 16):
                data += piece
    status = data[9:12].decode("latin-1") or "none"
    if data and not data.startswith(b"HTTP/1.1 "):
        raise stage.Wrong(f"a worker made the server say {data[:60]!r}")
    if pattern(1 * KB)[:64] in data or b"everybody may" in data:
        raise stage.Wrong("a worker was sent what is not its own")
    return status


def keep_asking(stage, server, until, statuses):
    while time.monotonic() < until and server.process.poll() is None:
        status = ask_taken_over(stage, server)
        statuses[status] += 1
        if status == "503":
            # The server starts it again after a pause.
            time.sleep(0.1)


def inside(stage, kind, until):
    random = stage.torture.random
    user = NOBODY if os.geteuid() == 0 else None
    with stage.serving(kind) as server:
        ids = unit_ids(stage, server)
        # The server would admit nobody; this tests the checks behind the file mode.
        (stage.scratch / "cache").chmod(0o666)
        members = []
        with stage.honest(server, 500):
            with contextlib.ExitStack() as ends:
                for number in range(3):
                    members.append(Program(stage, "hostile-member", stage.scratch / "cache", 0.1,
                                           random.randrange(1 << 31), Figures, *ids,
                                           user=user and user - number))
                    ends.callback(members[-1].end)
                statuses = collections.Counter()
                until = max(until, time.monotonic() + 2)
                with concurrent.futures.ThreadPoolExecutor(ASKERS) as pool:
                    asking = [pool.submit(keep_asking, stage, server, until, statuses)
                              for _ in range(ASKERS)]
                for one in asking:
                    one.result()
                stage.alive(server)
        if not statuses["200"]:
            raise stage.Wrong(f"a worker that lies at times had no good answer: {statuses}")
        stage.torture.count("requests to a worker that lies", sum(statuses.values()))
        stage.torture.count("of them answered well", statuses["200"])
        for member in members:
            figures = member.figures
            stage.torture.count("members that lie", figures[0])
            stage.torture.count("their messages", figures[1])
            if not figures[0]:
                raise stage.Wrong("no member could connect")
            if user and (figures[3] or figures[4]):
                raise stage.Wrong(f"a member of another user's became an operator {figures[3]} "
                                  f"times and got {figures[4]} units")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.connect(str(stage.scratch / "cache"))
        if fetch(server.port, "/small").body != pattern(1 * KB):
            raise stage.Wrong("the server's files are not what they were")


PARTS = ((words, 0.15), (rates, 0.5), (crowd, 0.12), (inside, 0.23))


def run(torture):
    stage = Stage(torture)
    stage.wrong = []
    start = torture.deadline - torture.seconds
    done = 0
    kinds = list(servers.KINDS)[:2]
    torture.random.shuffle(kinds)
    # Both kernel interfaces, and in a short time one for each part.
    for number, (part, share) in enumerate(PARTS):
        turns = kinds if share * torture.seconds > 60 else [kinds[number % len(kinds)]]
        for kind in turns:
            done += share / len(turns)
            part(stage, kind, start + done * torture.seconds)
    if hasattr(stage, "worst"):
        torture.count("percent of their rate that honest clients keep at least",
                      round(100 * stage.worst))
    torture.count("ms of the slowest honest answer", round(stage.slowest / 1000))
    if stage.wrong:
        raise stage.Wrong("; ".join(stage.wrong))
