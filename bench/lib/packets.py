# SPDX-License-Identifier: MIT
"""Packets of one HTTP/1.0 exchange of 1 KB, between two network namespaces.

Each variant is a set of options of SWEET and of the client's socket, and the packets that they
must produce, as tcpdump sees them at the client's end; the system test asserts the same lists.
Counts are exact because only the two ends determine them: the client closes after the server's
end has arrived. An exchange in which a timer of the system was needed (a process did not get a
CPU for 40 ms) is repeated.
"""

import contextlib
import os
import re
import select
import signal
import socket
import struct
import subprocess
import time

from . import netns
from .process import Failure
from .servers import Sweet, find_program

MSG_FASTOPEN = 0x20000000
FASTOPEN_BOTH = 3  # net.ipv4.tcp_fastopen: clients and servers
BODY, REQUEST = 1024, 60
PATH = "/body"
WAIT_SECONDS = 60
EXCHANGES_MOST = 20  # for one that no timer disturbs
MARK_PORT = 9
# A window of two segments.  The answer takes so much of the memory behind it that the window
# has become smaller; otherwise Linux acknowledges data that end with a FIN at once, to tell
# that there is room (tcp_input.c, __tcp_ack_snd_check()).
SMALL_BUFFER = 3000
TIMERS = ("TcpExtDelayedACKs", "TcpExtTCPTimeouts", "TcpRetransSegs")

CLIENT, SERVER = "client", "server"
SYN, SYN_ACK, ACK, FIN = "SYN", "SYN ACK", "ACK", "FIN ACK"
ANSWER = "answer"  # the response's length, whatever the fields of its head


class Variant:
    """Options of both ends, and the packets: (from, flags, bytes of data).

    client: "delay-ack-data", "delay-ack-syn", "delay-ack-fin" and "fastopen". paper: the paper's
    number of packets; None: it has none.
    """

    def __init__(self, name, paper, arguments, client, packets):
        self.name, self.paper = name, paper
        self.arguments, self.client, self.packets = arguments, client, packets


OPENING = [(CLIENT, SYN, 0), (SERVER, SYN_ACK, 0)]
ASKING = [(CLIENT, ACK, 0), (CLIENT, ACK, REQUEST)]
CLOSING = [(CLIENT, FIN, 0), (SERVER, ACK, 0)]
VARIANTS = [
    Variant("defaults of SWEET and Linux", None, [], set(),
            [*OPENING, *ASKING, (SERVER, ACK, 0), (SERVER, FIN, ANSWER), (CLIENT, ACK, 0),
             *CLOSING]),
    Variant("figure 2: as it was", 9, ["--delay-ack=on", "--close-option=off"],
            {"delay-ack-data"},
            [*OPENING, *ASKING, (SERVER, ACK, ANSWER), (SERVER, FIN, 0), (CLIENT, ACK, 0),
             *CLOSING]),
    Variant("figure 3: the FIN piggy-backed", 8, ["--delay-ack=on"], {"delay-ack-data"},
            [*OPENING, *ASKING, (SERVER, FIN, ANSWER), (CLIENT, ACK, 0), *CLOSING]),
    Variant("figure 4: and its ACK delayed", 7, ["--delay-ack=on"],
            {"delay-ack-data", "delay-ack-fin"},
            [*OPENING, *ASKING, (SERVER, FIN, ANSWER), *CLOSING]),
    Variant("figure 5: and that of the SYN", 6, ["--delay-ack=on"],
            {"delay-ack-data", "delay-ack-fin", "delay-ack-syn"},
            [*OPENING, (CLIENT, ACK, REQUEST), (SERVER, FIN, ANSWER), *CLOSING]),
    Variant("TCP Fast Open", None, ["--delay-ack=on", "--fastopen=16", "--linger=off"],
            {"delay-ack-data", "delay-ack-fin", "delay-ack-syn", "fastopen"},
            [(CLIENT, SYN, REQUEST), (SERVER, SYN_ACK, 0), (SERVER, FIN, ANSWER), *CLOSING]),
    # The FIN must wait for the client's first ACK, the response need not.
    Variant("TCP Fast Open, lingering", None, ["--delay-ack=on", "--fastopen=16"],
            {"delay-ack-syn", "fastopen"},
            [(CLIENT, SYN, REQUEST), (SERVER, SYN_ACK, 0), (SERVER, ACK, ANSWER),
             (CLIENT, ACK, 0), (SERVER, FIN, 0), *CLOSING]),
]


def make_root(directory):
    with open(os.path.join(directory, PATH[1:]), "wb") as file:
        file.write(bytes(range(256)) * (BODY // 256))
    os.chmod(os.path.join(directory, PATH[1:]), 0o644)


def make_pair():
    """Namespaces in which both ends may use TCP Fast Open."""
    pair = netns.Pair()
    for end in (pair.server, pair.client):
        end.set("ipv4/tcp_fastopen", FASTOPEN_BOTH)
    return pair


def request():
    start = f"GET {PATH} HTTP/1.0\r\nUser-Agent: ".encode()
    return start.ljust(REQUEST - 4, b"x") + b"\r\n\r\n"


# --- the capture ------------------------------------------------------------------


class Capture:
    """tcpdump at the client's end of the cable."""

    def __init__(self, pair):
        argv = [find_program("tcpdump"), "-i", pair.device, "-lnp", "--immediate-mode",
                f"tcp or udp port {MARK_PORT}"]
        self.pair = pair
        self.text = b""
        self.popen = subprocess.Popen(pair.client.argv(*argv), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = b""
        while b"listening on" not in said:
            more = self.read(self.popen.stderr)
            if not more:
                self.stop()
                raise Failure(f"tcpdump does not capture: {said.decode(errors='replace')}")
            said += more

    @staticmethod
    def read(stream):
        """Returns the captured lines as soon as there are some; nothing at the end or after a
        timeout."""
        ready = select.select([stream], [], [], WAIT_SECONDS)[0]
        return os.read(stream.fileno(), 1 << 16) if ready else b""

    def packets(self, port):
        """Returns all packets so far, as (from, flags, bytes); port is the server's."""
        with self.pair.client, socket.socket(type=socket.SOCK_DGRAM) as mark:
            mark.sendto(b"that was all", (self.pair.addresses[0], MARK_PORT))
        while not re.search(rb"> \S+\." + str(MARK_PORT).encode() + rb": UDP.*\n", self.text):
            more = self.read(self.popen.stdout)
            if not more:
                raise Failure("tcpdump tells of no more packets")
            self.text += more
        found = re.findall(rb"IP \S+\.(\d+) > \S+: Flags \[(\S+)\],.* length (\d+)", self.text)
        return [(SERVER if int(source) == port else CLIENT, flag_words(flags.decode()),
                 int(length)) for source, flags, length in found]

    def stop(self):
        self.popen.terminate()
        self.popen.wait()
        self.popen.stdout.close()
        self.popen.stderr.close()


def flag_words(flags):
    """Translates tcpdump's letters into the paper's words; ignores PSH."""
    words = {"S": "SYN", "F": "FIN", "R": "RST", ".": "ACK"}
    return " ".join(word for letter, word in words.items() if letter in flags)


# --- the client --------------------------------------------------------------------


def set_tcp(connection, option, value):
    connection.setsockopt(socket.IPPROTO_TCP, option, value)


def ask(pair, port, client, server_pid):
    """Makes one exchange; returns the bytes of the response, and the client's port."""
    address = pair.addresses[0], port
    with pair.client:
        connection = socket.socket()
    with connection:
        # The kernel's timeout, because Python's makes the socket non-blocking.
        for limit in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            connection.setsockopt(socket.SOL_SOCKET, limit, struct.pack("ll", WAIT_SECONDS, 0))
        if "delay-ack-fin" in client:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        if "delay-ack-syn" in client:
            set_tcp(connection, socket.TCP_QUICKACK, 0)
        if "fastopen" in client:
            # The response may arrive with the SYN: not before the client is ready.
            with stopped(server_pid):
                connection.sendto(request(), MSG_FASTOPEN, address)
                if "delay-ack-data" in client:
                    set_tcp(connection, socket.TCP_QUICKACK, 0)
        else:
            connection.connect(address)
            if "delay-ack-data" in client:
                set_tcp(connection, socket.TCP_QUICKACK, 0)
            connection.sendall(request())
        own = connection.getsockname()[1]
        poll = select.poll()
        poll.register(connection, select.POLLRDHUP)
        if not poll.poll(WAIT_SECONDS * 1000):
            raise Failure("the server does not close the connection")
        if "delay-ack-fin" in client:
            # Before anything is read, because that would send an acknowledgement.
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while more := connection.recv(1 << 16):
            answer += more
    if not answer.startswith(b"HTTP/1.1 200 ") or len(answer.partition(b"\r\n\r\n")[2]) != BODY:
        raise Failure(f"the answer is not the file: {answer[:200]!r}")
    return len(answer), own


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def urgent():
    """Gives this thread priority, if permitted, so that acknowledgements are not late."""
    policy, param = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, policy, param)


def hurry(pid):
    """Gives the threads of a server priority, if permitted."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(1))


def await_closed(pair, port):
    """Waits until the client's connection from that port has ended: its last packet has
    arrived."""
    limit = time.monotonic() + WAIT_SECONDS
    pattern = re.compile(rf"^ *\d+: [0-9A-F]+:{port:04X} ", re.M)
    while True:
        with pair.client, open("/proc/thread-self/net/tcp") as file:
            if not pattern.search(file.read()):
                return
        if time.monotonic() > limit:
            raise Failure("the connection does not end")
        time.sleep(0.001)


def timers(pair):
    """Returns how often a timer of the system's TCP has expired."""
    counters = [end.counters() for end in (pair.server, pair.client)]
    return [each[name] for each in counters for name in TIMERS]


def exchange(pair, port, variant, server_pid):
    """Returns (packets, bytes of the response) of one undisturbed exchange."""
    hurry(server_pid)
    for _ in range(EXCHANGES_MOST):
        if "fastopen" in variant.client:
            with urgent():  # to get the cookie
                await_closed(pair, ask(pair, port, variant.client, server_pid)[1])
        capture = Capture(pair)
        try:
            before = timers(pair)
            with urgent():
                length, own = ask(pair, port, variant.client, server_pid)
                await_closed(pair, own)
            disturbed = timers(pair) != before
            packets = capture.packets(port)
        finally:
            capture.stop()
        if not disturbed:
            return packets, length
    raise Failure(f"{variant.name}: a timer was needed in each of {EXCHANGES_MOST} exchanges:"
                  " the machine is too busy")


def expected(variant, length):
    """Returns the packets of a variant whose response has that length."""
    return [(end, flags, length if data == ANSWER else data)
            for end, flags, data in variant.packets]


# --- the experiment ---------------------------------------------------------------------


def line(packet):
    end, flags, length = packet
    return f"{end}: {flags}" + (f" ({length})" if length else "")


def measure(context):
    root = os.path.join(context.directory, "root")
    os.mkdir(root, 0o755)
    make_root(root)
    found = []
    with make_pair() as pair:
        for number, variant in enumerate(VARIANTS):
            sweet = Sweet(context, root, context.io[0], 8, name=f"sweet-{number}",
                          arguments=variant.arguments)
            sweet.enter(pair.server, pair.addresses[0])
            context.start([sweet])
            found.append(exchange(pair, sweet.port, variant, sweet.popens[0].pid))
            sweet.stop()
    most = max(len(packets) for packets, _ in found)
    context.table("packets of one exchange, with the bytes of data in them",
                  ["", *(variant.name for variant in VARIANTS)],
                  [[str(i + 1), *(line(packets[i]) if i < len(packets) else ""
                                  for packets, _ in found)] for i in range(most)])
    context.records += [{"variant": variant.name, "packet": i + 1, "from": end, "flags": flags,
                         "bytes": length}
                        for variant, (packets, _) in zip(VARIANTS, found)
                        for i, (end, flags, length) in enumerate(packets)]
    context.verdicts += [
        (f"{variant.name}: packets", len(packets), variant.paper or len(variant.packets),
         packets == expected(variant, length))
        for variant, (packets, length) in zip(VARIANTS, found)]
