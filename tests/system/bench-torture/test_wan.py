# SPDX-License-Identifier: MIT
"""The wide-area link of bench/bench architectures: its delay, its losses, its rate.

Only what a link can be held to on a busy machine: times have lower bounds.
"""

import contextlib
import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
import types

import pytest

from server import BUILD, TIMEOUT

sys.path.insert(0, os.path.join(os.environ["srcdir"], "bench"))

from lib.wan import SERVER, Wan  # noqa: E402

pytestmark = [
    pytest.mark.bench,
    pytest.mark.needs("ip"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make network devices"),
]
WAN = os.path.join(BUILD, "bench", "wan")
MB = 1_000_000
SO_RCVBUFFORCE = 33  # Python has no name for it


@pytest.fixture
def join(tmp_path):
    """join(...): a link, closed after the test."""
    links = []

    def make(delay=0, loss=0, rate=0, queue=1000, seed=1, **more):
        context = types.SimpleNamespace(build=BUILD, directory=tmp_path,
                                        client_cpu=min(os.sched_getaffinity(0)))
        links.append(Wan(context, delay, loss, rate, queue, seed, **more))
        return links[-1]

    yield make
    for link in links:
        link.close()


def listening(link, kind=socket.SOCK_STREAM):
    with link.server:
        one = socket.socket(socket.AF_INET, kind)
    one.settimeout(TIMEOUT)
    one.bind((SERVER, 0))
    if kind == socket.SOCK_STREAM:
        one.listen()
    return one


def connected(link, listener):
    """(the client's end, the server's)."""
    with link.client:
        here = socket.create_connection(listener.getsockname(), TIMEOUT)
    there = listener.accept()[0]
    there.settimeout(TIMEOUT)
    return here, there


def transfer(link, data):
    """Sends data to the client; (what arrived, seconds that it took)."""
    with listening(link) as listener:
        here, there = connected(link, listener)
    with here, there:
        start = time.monotonic()
        sender = threading.Thread(target=lambda: (there.sendall(data),
                                                  there.shutdown(socket.SHUT_WR)))
        sender.start()
        pieces = list(iter(lambda: here.recv(1 << 16), b""))
        took = time.monotonic() - start
        sender.join(TIMEOUT)
    return b"".join(pieces), took


def consistent(counts):
    assert counts["packets"] == sum(counts[key] for key in
                                    ("lost", "overflowed", "delivered", "under_way"))
    assert counts["unread"] == 0


def test_delay(join):
    """Each way, from the first packet on."""
    link = join(delay=40)
    with listening(link) as listener:
        start = time.monotonic()
        here, there = connected(link, listener)
        assert time.monotonic() - start >= 0.080
    with here, there:
        for _ in range(3):
            start = time.monotonic()
            here.sendall(b"ping")
            assert there.recv(4) == b"ping"
            assert time.monotonic() - start >= 0.040
            there.sendall(b"pong")
            assert here.recv(4) == b"pong"
            assert time.monotonic() - start >= 0.080


def datagrams(link, count):
    """Numbered ones to the server; (numbers that arrived, what the link counted of them).

    At the end others follow until one arrives, and so all that were before it.
    """
    with listening(link, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 * MB)
        with link.client:
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        got, sent = [], 0
        deadline = time.monotonic() + TIMEOUT
        with sender:
            while sent < count or not got or got[-1] < count:
                assert time.monotonic() < deadline
                sender.sendto(sent.to_bytes(4, "big"), receiver.getsockname())
                sent += 1
                if sent > count:
                    receiver.settimeout(0.05)
                    got += received(receiver)
        counts = link.end()
        receiver.setblocking(False)
        got += received(receiver)
    consistent(counts["client"])
    assert counts["client"]["packets"] == sent
    assert counts["client"]["delivered"] == len(got)
    assert got == sorted(set(got))  # in order, and none twice
    assert counts["server"]["packets"] == 0
    return got, counts["client"]


def received(receiver):
    got = []
    with contextlib.suppress(TimeoutError, BlockingIOError):
        while True:
            got.append(int.from_bytes(receiver.recv(4), "big"))
    return got


def test_loss(join):
    """Each datagram is lost or arrives, by the receiver's count and by the link's."""
    got, counts = datagrams(join(loss=10), 4000)
    assert len(got) == counts["packets"] - counts["lost"] - counts["under_way"]
    # Six standard deviations.
    assert counts["packets"] / 10 - 120 <= counts["lost"] <= counts["packets"] / 10 + 120


def test_seed_tells_which(join):
    """Another seed, other losses; the same seed, the same."""
    def fate(seed):
        return [number for number in datagrams(join(loss=50, seed=seed), 64)[0] if number < 64]

    assert fate(7) == fate(7)
    assert fate(7) != fate(8)


def test_all_arrives_through_loss(join):
    link = join(delay=5, loss=2, rate=200)
    data = os.urandom(3 * MB)
    got, _ = transfer(link, data)
    assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()
    counts = link.end()
    consistent(counts["server"])
    consistent(counts["client"])
    assert counts["server"]["lost"] > 0
    assert counts["server"]["delivered_bytes"] >= len(data)


def test_rate(join):
    """No more than it takes, whatever the queue; which is full for a while."""
    link = join(rate=10, queue=30)
    got, took = transfer(link, bytes(MB))
    assert len(got) == MB
    # What the queue and the socket hold comes later, not sooner.
    assert took >= MB * 8 / 10e6
    counts = link.end()
    consistent(counts["server"])
    assert counts["server"]["lost"] == 0


@pytest.mark.parametrize("arguments, status, says", [
    ([], 2, "usage"),
    (["--loss", "101", "a", "b"], 2, "--loss 101"),
    (["--delay", "1x", "a", "b"], 2, "--delay 1x"),
    (["--rate", "-1", "a", "b"], 2, "--rate -1"),
    (["--nonsense", "a", "b"], 2, "nonsense"),
    (["no-such-namespace", "nor-this"], 1, "no-such-namespace"),
    (["--device", "a-name-that-is-too-long", "/proc/self/ns/net", "/proc/self/ns/net"], 1,
     "a-name-that-is-too-long"),
])
def test_command_line(arguments, status, says):
    done = subprocess.run([WAN, *arguments], capture_output=True, text=True, timeout=TIMEOUT,
                          check=False)
    assert (done.returncode, says in done.stderr) == (status, True), done.stderr


def test_twice_and_late(join):
    """What TCP makes of it is what was sent."""
    link = join(delay=1, duplicate=5, reorder=5, late=4)
    data = os.urandom(2 * MB)
    got, _ = transfer(link, data)
    assert got == data
    counts = link.end()["server"]
    assert counts["duplicated"] > 10 and counts["late"] > 10 and counts["spoiled"] == 0
    assert counts["delivered"] + counts["under_way"] == counts["packets"] + counts["duplicated"]


def test_spoiled(join):
    """As many bytes, of which each packet has one that is wrong by a bit; no checksum tells."""
    link = join(spoil=100)
    data = os.urandom(MB)
    got, _ = transfer(link, data)
    assert len(got) == len(data)
    wrong = [a ^ b for a, b in zip(got, data) if a != b]
    assert 0 < len(wrong) <= link.end()["server"]["spoiled"]
    assert all(bits.bit_count() == 1 for bits in wrong)
