# SPDX-License-Identifier: MIT
"""The client of tests/torture, stage "bytes", detects errors: with a server that
responds rightly, or almost."""

import contextlib
import functools
import os
import re
import socket
import struct
import subprocess
import sys
import threading

import pytest

from server import BUILD, TIMEOUT

pytestmark = pytest.mark.bench

CLIENT = os.path.join(BUILD, "tests", "torture", "client")
TORTURE = os.path.join(os.environ["srcdir"], "tests", "torture", "torture")
ALL = (1 << 64) - 1
SIZES = (0, 1, 7, 8, 100, 1000, 4000, 4096, 4097, 10000, 16384, 30000, 65536, 65537, 100000,
         131072, 200000, 300000, 500000, 1000000, 1 << 20, 1500000, 2500000, 5000000)


def scramble(word):
    word ^= word >> 30
    word = word * 0xbf58476d1ce4e5b9 & ALL
    word ^= word >> 27
    word = word * 0x94d049bb133111eb & ALL
    return word ^ word >> 31


@functools.lru_cache(128)
def content(number, version=1, kind="s"):
    """A steady file, by an implementation independent of content.h."""
    size = SIZES[number % len(SIZES)]
    key = scramble(ord(kind) << 32 | number + 1)
    words = (scramble(key ^ (version << 32 | place)) for place in range((size + 7) // 8))
    return b"".join(struct.pack("<Q", word) for word in words)[:size]


def right(body, number, first, last):
    return body


def flipped(body, number, first, last):
    """One bit, somewhere in the middle."""
    at = len(body) // 2
    return body[:at] + bytes([body[at] ^ 4]) + body[at + 1:] if body else body


def mixed(body, number, first, last):
    """Another version from the middle on."""
    half = len(body) // 2
    return body[:half] + content(number, 2)[first:last][half:]


def short(body, number, first, last):
    return body[:-1]


def displaced(body, number, first, last):
    """The right document, but bytes of another place."""
    half = (len(body) // 2 + 7) & ~7
    return body[:half] + body[:half] + body[2 * half:] if len(body) > 32 else body


def another(body, number, first, last):
    return content((number + 24) % 96)[first:last]


class Server:
    """Answers each request with what `spoil` makes of the right body."""

    def __init__(self, spoil):
        self.spoil = spoil
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection = self.socket.accept()[0]
                thread = threading.Thread(target=self.serve, args=(connection,))
                self.threads.append(thread)
                thread.start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as lines, contextlib.suppress(OSError):
            head = []
            for line in lines:
                head.append(line.decode().strip())
                if not head[-1]:
                    connection.sendall(self.answer(head))
                    if "Connection: close" in head:
                        return
                    head = []

    def answer(self, head):
        number = int(re.match(r"GET /s/(\d+) ", head[0])[1])
        body = content(number)
        size = len(body)
        close = b"Connection: close\r\n" if "Connection: close" in head else b""
        wanted = re.search(r"Range: bytes=(.*)", "\n".join(head))
        if not wanted:
            made = self.spoil(body, number, 0, size)
            return b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n" % (close, len(made)) + made
        parts = []
        for first, last in re.findall(r"(\d+)-(\d+)", wanted[1]):
            first, end = int(first), min(int(last) + 1, size)
            if first < size:
                parts.append((b"Content-Range: bytes %d-%d/%d\r\n" % (first, end - 1, size),
                              self.spoil(body[first:end], number, first, end)))
        if not parts:
            return b"HTTP/1.1 416 No\r\n%sContent-Length: 0\r\n\r\n" % close
        field, made = parts[0]
        if len(parts) > 1:
            field = b"Content-Type: multipart/byteranges; boundary=x--\r\n"
            made = b"".join(b"\r\n--x--\r\n%s\r\n%s" % part for part in parts) + b"\r\n--x----\r\n"
        return b"HTTP/1.1 206 Part\r\n%s%sContent-Length: %d\r\n\r\n" % (
            close, field, len(made)) + made

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for thread in self.threads:
            thread.join(TIMEOUT)


def ask(spoil):
    """What the client says, and its exit status."""
    server = Server(spoil)
    try:
        return subprocess.run([CLIENT, "--kinds", "s", "--connections", "2", "--slow", "0",
                               "--seconds", "2", "--seed", "1", "127.0.0.1", str(server.port)],
                              capture_output=True, text=True, timeout=TIMEOUT)
    finally:
        server.close()


def test_right_answers():
    done = ask(right)
    assert done.returncode == 0, done.stdout
    said = {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", done.stdout)}
    assert said["responses"] > said["ranges"] > 0 and said["parts"] > said["ranges"]


@pytest.mark.parametrize("spoil, why", [
    (flipped, "is not of version 1; the next are "),
    (mixed, "is not of version 1; the next are of s/[0-9]+, version 2, byte "),
    (displaced, "is not of version 1; the next are of s/[0-9]+, version 1, byte "),
    (another, "of s/[0-9]+, version 1, byte "),
    (short, "another length: |not a version: |it ends early: |no range is told: "),
], ids=lambda value: getattr(value, "__name__", ""))
def test_wrong_answers(spoil, why):
    done = ask(spoil)
    assert done.returncode == 1
    assert re.search("^client: WRONG: s/[0-9]+.*(" + why + ")", done.stdout, re.M), done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make network devices")
@pytest.mark.thorough
@pytest.mark.needs("ip")
def test_bytes_spoiled_on_the_link():
    """The whole stage, and a link whose checksums do not tell."""
    done = subprocess.run([sys.executable, TORTURE, "--build", BUILD, "--seconds", "20",
                           "--seed", "1", "bytes"], capture_output=True, text=True,
                          timeout=6 * TIMEOUT, env={**os.environ, "TORTURE_SPOIL": "1"})
    assert done.returncode == 1
    assert "client: WRONG: " in done.stdout
    assert re.search(r"^torture: bytes: .* 1 wrong, .*: FAILED$", done.stdout, re.M), done.stdout
