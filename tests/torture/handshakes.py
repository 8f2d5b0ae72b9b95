#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The stage handshakes: hostile clients of TLS, and honest clients that must not suffer from them.

Three parts, each with a share of the time:

- rates: honest clients beside a flood of 2,000 connections that never finish a
  handshake: they send nothing, or half of a ClientHello, or one byte of it per
  second; and beside clients that send records longer than any may be.  Half of
  the honest clients keep their connections, the others perform a handshake for
  each request.  hostile.py describes what is fair to ask of their rate.  The
  memory of the server has a limit for each connection that a flood holds: each
  flood has many more in turn, so that memory that is lost for each exceeds it.
- ends: header-timeout ends every connection of a flood, and the log says so.
- words: a record that is too long has its alert, before the handshake and after
  it; a client that never reads, not even its tickets, loses its connection, with
  requests and without.

Limits are those of sweet/sweet.conf, but header-timeout and send-timeout are
short, so that many connections meet them.  The flood comes from 250 addresses,
so that no limit of a client's connections stops it.  Descriptors: the server
needs 3,000, else the flood is smaller; each attacker needs 800.
"""

import concurrent.futures
import contextlib
import os
import socket
import ssl
import time

import server as servers
import tls
import hostile
from client import Client, request
from files import KB
from hostile import ALONE, ATTACKERS_CPU, CROWD, PART, WAITED, Figures, Program, Window

SHARE = 0.1

KEPT = 0.9  # of the honest clients' rate
# Connections that each kind holds.
FLOOD = {"half-hello": 700, "slow-hello": 700, "connects": 600}
RECORDS = {"long-record": 50}
OPEN, CUT = 5, 2  # figures of hostile-http.c
PER_CONNECTION = 64 * KB  # memory of the server
REPEATED = 5  # turns with each group of attackers
SILENT = 100  # clients that never read
TURNS = {"kept": 100, "new": 1}  # requests of an honest connection
LATE = "no TLS handshake in time: closing"


class Stage(hostile.Stage):
    def make_config(self):
        path = super().make_config()
        text = path.read_text().replace(
            "listen=127.0.0.1:0\n", "listen=127.0.0.1:0,tls\n"
            f"certificate={tls.file('ec.pem')}\nkey={tls.file('ec.key')}\n")
        for name in ("header", "send"):
            text = "\n".join(f"{name}-timeout=2s" if line.startswith(f"{name}-timeout=") else line
                             for line in text.split("\n"))
        path.write_text(text)
        return path

    @contextlib.contextmanager
    def honest_tls(self, server, rates):
        """Honest clients of both kinds, as {kind: program}."""
        with contextlib.ExitStack() as ends:
            yield {name: ends.enter_context(self.honest(
                server, rate, "-a", tls.file("authority.pem"), "-n", TURNS[name]))
                for name, rate in rates.items()}

    @contextlib.contextmanager
    def flood(self, server, kinds):
        """Attackers, as {kind: program}; all connections of those that hold them are open."""
        programs = {}
        with contextlib.ExitStack() as ends:
            for kind, count in kinds.items():
                programs[kind] = Program(self, "hostile-http", kind, server.port,
                                         self.part(count), CROWD, ATTACKERS_CPU / len(kinds),
                                         self.torture.random.randrange(1 << 31), Figures)
                ends.callback(programs[kind].end)
            if kinds is FLOOD:
                # Some are just being replaced.
                wait(f"{kinds}", lambda: all(programs[kind].figures[OPEN] > 0.9 * self.part(count)
                                             for kind, count in kinds.items()))
            yield programs
        for kind, program in programs.items():
            self.torture.count(f"{kind} connections", program.figures[0])

    def part(self, count):
        """How many of them there are descriptors for."""
        return int(count * min(1, (self.descriptors - 1000) / sum(FLOOD.values())))


def wait(what, good):
    deadline = time.monotonic() + servers.TIMEOUT
    while not good():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {servers.TIMEOUT} s")
        time.sleep(0.02)


def resident(server):
    """Bytes of memory that the server has."""
    with open(f"/proc/{server.pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * KB


# --- rates --------------------------------------------------------------------------------


def capacity(stage, server, seconds):
    """Requests per second that each kind of honest clients reaches alone."""
    found = {}
    for name in TURNS:
        with stage.honest_tls(server, {name: 0}) as honest:
            time.sleep(seconds / 3)
            found[name] = Window(server, honest[name], seconds).answers
    return found


def windows(server, honest, seconds):
    """The same period of all kinds, as {kind: window}."""
    with concurrent.futures.ThreadPoolExecutor(len(honest)) as pool:
        made = pool.map(lambda program: Window(server, program, seconds), honest.values())
        return dict(zip(honest, made))


def rates(stage, kind, until):
    seconds = until - time.monotonic()
    groups = {"a flood": FLOOD, "long records": RECORDS}
    # Each has tens of handshakes at least.
    length = max(1.2, seconds / (len(groups) * REPEATED * 3))
    pairs, memory = {(group, name): [] for group in groups for name in TURNS}, []
    with stage.serving(kind) as server:
        most = capacity(stage, server, max(0.5, min(3, seconds / 20)))
        share = {name: rate * PART / len(TURNS) for name, rate in most.items()}
        with stage.honest_tls(server, share) as honest:
            time.sleep(length / 2)
            memory.append(resident(server))
            for group in [*groups] * REPEATED:
                with stage.flood(server, groups[group]):
                    time.sleep(length / 4)
                    beside = windows(server, honest, length)
                    if groups[group] is FLOOD:
                        memory.append(resident(server))
                time.sleep(length / 4)
                alone = windows(server, honest, length)
                for name, rate in share.items():
                    disturbed = (alone[name].answers < ALONE * rate
                                 or beside[name].waited > WAITED)
                    pairs[group, name].append((alone[name], beside[name], disturbed))
                stage.alive(server)
    for (group, name), those in pairs.items():
        hostile.judge(stage, kind, group, those,
                      "connections" if name == "kept" else "handshakes", KEPT)
    judge_memory(stage, kind, memory)


def judge_memory(stage, kind, memory):
    """memory: bytes before the floods, and in each of them."""
    before, *floods = memory
    each = (max(memory) - before) / stage.part(sum(FLOOD.values()))
    stage.torture.say(
        f"{kind}: {before >> 20} MB before the floods, {floods[0] >> 20} MB in the first, "
        f"{floods[-1] >> 20} MB in the last: at most {each / KB:.0f} KB for each connection")
    if each > PER_CONNECTION:
        stage.wrong.append(
            f"{kind}: a connection without a handshake has {each / KB:.0f} KB of memory")


# --- ends ---------------------------------------------------------------------------------


def ends(stage, kind, until):
    """header-timeout ends every connection of a flood."""
    with stage.serving(kind, "--log-level", "info") as server:
        lines, turns = 0, 0
        while not turns or time.monotonic() < until:
            with stage.flood(server, FLOOD) as programs:
                wait("the end of a flood's first connections", lambda: all(
                    programs[name].figures[CUT] >= stage.part(count)
                    for name, count in FLOOD.items()))
                lines += sum(program.figures[CUT] for program in programs.values())
                if not server.errors.wait(LATE, lines):
                    raise stage.Wrong(f"{lines} connections were ended, but the log has "
                                      f"{server.errors.count(LATE)} lines \"{LATE}\"")
            turns += 1
            # Those that the attackers closed, and those that have ended since.
            server.wait_status(lambda status: status["connections"]["open"] <= 2)
            lines = server.errors.count(LATE)
        stage.torture.count("handshakes that were not in time", lines)
        stage.alive(server)


# --- words --------------------------------------------------------------------------------


def too_long(random, kind):
    length = random.randrange(16385 + 256, 65536)
    return kind + length.to_bytes(2, "big") + random.randbytes(length)


def long_record_first(stage, server):
    with socket.create_connection(("127.0.0.1", server.port), servers.TIMEOUT) as plain:
        answer = b""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            plain.sendall(too_long(stage.torture.random, b"\x16\x03\x01"))
            while piece := plain.recv(4096):
                answer += piece
    # A fatal alert, record_overflow.
    if answer[:1] + answer[5:] != b"\x15\x02\x16":
        raise stage.Wrong(f"a long record was answered by {answer!r}")


def long_record_later(stage, server):
    with Client(server.port, secure=True) as client:
        client.get("/small")
        with socket.socket(fileno=os.dup(client.socket.fileno())) as below:
            below.sendall(too_long(stage.torture.random, b"\x17\x03\x03"))
        try:
            while client.socket.recv(4096):
                pass
        except ssl.SSLError as error:
            if "RECORD_OVERFLOW" not in str(error):
                raise
        else:
            raise stage.Wrong("a long record ended the connection without an alert")


def never_reading(server, asks):
    """Returns the socket of a client that has finished its handshake, and reads nothing since."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    plain.settimeout(servers.TIMEOUT)
    plain.connect(("127.0.0.1", server.port))
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls.usual().wrap_bio(received, sent, server_hostname="test")
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            plain.sendall(sent.read())
            received.write(plain.recv(1 << 16))
    if asks:
        client.write(request("/big") * 3)
    plain.sendall(sent.read())
    return plain


def words(stage, kind, until):
    with stage.serving(kind, "--connections-per-client", "0", "--log-level", "info") as server:
        turns = 0
        while not turns or time.monotonic() < until:
            for _ in range(20):
                long_record_first(stage, server)
                long_record_later(stage, server)
                stage.torture.count("long records", 2)
            with contextlib.ExitStack() as ends:
                for number in range(SILENT):
                    ends.enter_context(never_reading(server, number % 2))
                # A client whose buffer is full may not notice the end.
                server.wait_status(lambda status: status["connections"]["open"] <= 1)
                stage.torture.count("clients that never read", SILENT)
            turns += 1
        # OpenSSL's name for it in a handshake, and RFC 8446's for the server's own records.
        for line in ("TLS handshake: .* length too long", "TLS: record overflow"):
            if server.errors.count(line) < 20 * turns:
                raise stage.Wrong(f"the log has not each \"{line}\"")
        stage.alive(server)


PARTS = ((rates, 0.7), (ends, 0.15), (words, 0.15))


def run(torture):
    stage = Stage(torture)
    stage.wrong, stage.worst = [], 1e9
    start, done = torture.deadline - torture.seconds, 0
    kinds = list(servers.KINDS)[:2]
    torture.random.shuffle(kinds)
    # Both kernel interfaces, and in a short time one for each part.
    for number, (part, share) in enumerate(PARTS):
        turns = kinds if share * torture.seconds > 60 else [kinds[number % len(kinds)]]
        for kind in turns:
            done += share / len(turns)
            part(stage, kind, start + done * torture.seconds)
    if stage.worst < 1e9:
        torture.count("percent of their rate that honest clients keep at least",
                      round(100 * stage.worst))
        torture.count("ms of the slowest honest answer", round(stage.slowest / 1000))
    if stage.wrong:
        raise stage.Wrong("; ".join(stage.wrong))
