# SPDX-License-Identifier: MIT
"""pull.py - downloads one large file on some kept connections, again and again.

    pull.py ADDRESS PORT PATH SIZE CONNECTIONS SECONDS SKIP

lib/pipe.py runs it.  One thread.  Each connection asks for the file once more
while one is coming, so that no round trip lies between two of them.  What
comes is counted and dropped in the kernel (MSG_TRUNC); status and length of
each answer are looked at.  Tells in JSON what each connection got, in all and
after SKIP seconds.
"""

import json
import re
import select
import selectors
import socket
import sys
import time

PIECE = 1 << 20
HEAD_MAX = 4096
AHEAD = 2  # requests under way on a connection
CONNECT_SECONDS = 10
STALL_SECONDS = 5


class Download:
    """One connection: what it got, and where in an answer it is."""

    def __init__(self, address, port, path, size):
        self.request = f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()
        self.size, self.got, self.left, self.head = size, 0, 0, b""
        self.first = None  # when the first whole file had come
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex((address, port))  # all at a time: each is a round trip

    def await_connection(self):
        select.select([], [self.socket], [], CONNECT_SECONDS)
        self.socket.getpeername()  # fails if there is none

    def begin(self):
        self.socket.sendall(self.request * AHEAD)  # a few bytes: there is room

    def read(self, buffer):
        """Takes what has come, up to the length of the buffer."""
        try:
            if self.left:
                count = self.socket.recv_into(buffer, min(self.left, len(buffer)),
                                              socket.MSG_TRUNC)
                self.take(count)
            else:
                piece = self.socket.recv(HEAD_MAX)
                count = len(piece)
                self.head += piece
                self.open_head()
        except BlockingIOError:
            return
        if not count:
            raise SystemExit("pull: the server closed a connection that was to be kept")

    def take(self, count):
        self.got += count
        self.left -= count
        if not self.left:
            self.first = self.first or time.monotonic()
            self.socket.send(self.request)

    def open_head(self):
        head, end, rest = self.head.partition(b"\r\n\r\n")
        if not end:
            if len(head) >= HEAD_MAX:
                raise SystemExit("pull: an endless head")
            return
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
        if not head.startswith(b"HTTP/1.1 200 ") or not length or int(length[1]) != self.size:
            raise SystemExit(f"pull: the server said {head[:200]!r}")
        # No file is shorter than a head: the rest is of this body.
        self.head, self.left = b"", self.size
        self.take(len(rest))


def pull(downloads, seconds, skip):
    """(bytes of each at skip, at the end, when it began, was at skip, was at the end)."""
    selector = selectors.DefaultSelector()
    buffer = bytearray(PIECE)
    start = time.monotonic()
    for one in downloads:
        one.begin()
        selector.register(one.socket, selectors.EVENT_READ, one)
    now, warm = start, None
    while now < start + seconds:
        if warm is None and now >= start + skip:
            warm = now, [one.got for one in downloads]
        ready = selector.select(STALL_SECONDS)
        if not ready:
            raise SystemExit(f"pull: nothing came for {STALL_SECONDS} s")
        for key, _ in ready:
            key.data.read(buffer)
        now = time.monotonic()
    if warm is None:
        raise SystemExit("pull: SKIP is not less than SECONDS")
    return start, warm, (now, [one.got for one in downloads])


def main():
    address, port, path = sys.argv[1:4]
    size, connections = map(int, sys.argv[4:6])
    seconds, skip = map(float, sys.argv[6:8])
    try:
        downloads = [Download(address, int(port), path, size) for _ in range(connections)]
        for one in downloads:
            one.await_connection()
        start, (warm_at, warm), (end, got) = pull(downloads, seconds, skip)
    except OSError as error:
        raise SystemExit(f"pull: {error}") from error
    firsts = [one.first for one in downloads if one.first]
    print(json.dumps({
        "seconds": end - start, "bytes": got, "steady_seconds": end - warm_at,
        "steady_bytes": [late - early for late, early in zip(got, warm)],
        "first_seconds": min(firsts) - start if firsts else None,
    }))


if __name__ == "__main__":
    main()
