# SPDX-License-Identifier: MIT
"""Two servers with the same files and rules, of which one remembers nothing (header-cache=off,
path-cache=off), and requests that are right, nearly right and wrong, again and again: both say the
same, but for what depends on the time.  Behind both is an HTTP server that is strict: whatever
clients send, it gets requests that are right, and one for one.

A client sends a head TIMES times on one connection, with others between them that differ by one
mutation, so that what was remembered meets what only looks like it.
"""

import collections
import contextlib
import os
import re
import socket

import server as servers
from files import KB, pattern, write
from upstream import Upstream

SHARE = 0.1
TIMES = 3  # a head is remembered when it comes for the second time
BATCH = 200  # connections between two looks at the time
SPOIL = ("--max-fields", "3")
NONE = ("--header-cache", "off", "--path-cache", "off")

TARGETS = ["/", "/name", "/page", "/secret/name", "/old/x", "/moved", "/1", "/2", "/down/deeper/x",
           "/none", "/app/a", "/app/b?c=d", "http://h/name", "/name?q", "/%6eame", "//name", "*"]
FIELDS = ["Accept-Encoding: gzip", "If-None-Match: *", 'If-None-Match: "x"', "Range: bytes=0-3",
          "Range: bytes=5-", "If-Modified-Since: Mon, 01 Jan 2035 00:00:00 GMT", "Cookie: a=b",
          "Authorization: Basic YTpi", "User-Agent: twins", "Connection: keep-alive",
          "Content-Length: 0", "Content-Length: 5", "Transfer-Encoding: chunked", "Expect: x",
          "X-Forwarded-For: 1.2.3.4", "Host: other.example", "Connection: X-Forwarded-For",
          "Upgrade: x", "TE: trailers"]
METHODS = ["GET"] * 6 + ["HEAD", "POST", "OPTIONS", "PUT", "get"]
BYTES = [b"\0", b"\r", b"\n", b"\t", b" ", b"\x7f", b"\x80", b":", b"\r\n", b"\r\n ", b"%", b",", b"x"]
# What differs by time, or by connection.
VARIES = re.compile(rb"(?m)^(?:Date|X-Request-Id|Age): .*\r\n")
CONFIG = """[sweet]
listen=127.0.0.1:0
root={root}
threads=1
keep-alive-timeout=2s
header-timeout=2s
[path /secret]
deny=127.0.0.1
[path /old]
redirect=308 /new/
[path /moved]
rewrite=/name
[path /down/deeper]
header=X-Path: {{path}}
[pattern numbers]
match=^/([0-9]+)$
rewrite=/{{1}}.txt
[host other]
names=other.example
root={root}/down
[pool app]
protocol=http
upstream={address}
[path /app]
pool=app
"""


def head(rng):
    fields = rng.sample(FIELDS, rng.choice((0, 0, 1, 2, 3)))
    lines = [f"{rng.choice(METHODS)} {rng.choice(TARGETS)} HTTP/1.{rng.choice('1111110')}",
             "Host: h", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def mutated(rng, data):
    """One byte or two more, less or other ones."""
    at = rng.randrange(len(data))
    return rng.choice((
        lambda: data[:at] + rng.choice(BYTES) + data[at:],
        lambda: data[:at] + data[at + 1:],
        lambda: data[:at] + rng.choice(BYTES) + data[at + 1:],
        lambda: data[:at] + data[at:at + 1].swapcase() + data[at + 1:],
        lambda: data[:at] + data[at:at + rng.randrange(20)] + data[at:]))()


def said(port, data):
    """All that the server says to these bytes, whose end follows."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(servers.TIMEOUT)
        with contextlib.suppress(ConnectionError):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while piece := client.recv(1 << 16):
                answer += piece
    return VARIES.sub(b"", answer)


def run(torture):
    rng, root = torture.random, torture.scratch / "root"
    more = SPOIL if os.environ.get("TORTURE_SPOIL") == "1" else ()
    for name in ("index.html", "name", "secret/name", "1.txt", "2.txt", "down/deeper/x", "down/name"):
        write(root / name, f"{name}\n".encode())
    write(root / "page", pattern(10 * KB))
    seen = collections.Counter()

    def handle(asked):
        body = asked.body()
        seen["requests"] += 1
        asked.answer(b"%s %s %d\n" % (asked.method.encode(), asked.target.encode("latin-1"),
                                     len(body)))

    app = Upstream(handle)
    try:
        config = write(torture.scratch / "sweet.conf",
                       CONFIG.format(root=root, address=app.address).encode())
        with torture.serving("epoll", None, "--config", config, listen=None) as one, \
                torture.serving("epoll", None, "--config", config, *NONE, *more,
                                listen=None) as other:
            while torture.left():
                for _ in range(BATCH):
                    compare(torture, rng, one.port, other.port)
                faults = [fault for fault in app.faults if not isinstance(fault, TimeoutError)]
                if faults:
                    raise torture.Wrong(f"the server behind got what it must not get: {faults[0]!r}")
        torture.count("requests of the server behind", seen["requests"])
    finally:
        app.close()


def compare(torture, rng, port, forgets):
    first = head(rng)
    heads = [first] * TIMES + [mutated(rng, first), first]
    if rng.random() < 0.5:
        heads = [first if rng.random() < 0.7 else mutated(rng, first) for _ in range(TIMES)]
    data = b"".join(heads)
    torture.count("heads", len(heads))
    torture.count("mutated ones", sum(one != first for one in heads))
    answers = said(port, data), said(forgets, data)
    torture.count("answers", answers[0].count(b"HTTP/1.1 "))
    if answers[0] != answers[1]:
        torture.count("wrong")
        raise torture.Wrong(f"{data!r} has one answer from a server that remembers, another from one "
                            f"that does not:\n{answers[0]!r}\n{answers[1]!r}")
