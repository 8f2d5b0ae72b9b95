# SPDX-License-Identifier: MIT
"""A server with all kinds of content, for the stages that run it for long: files, workers,
CGI, FastCGI, and what each of its pages must contain.

The program of each pool has a name of its own, which shows the pool of a process.
"""

import os
import shutil
import sys

from fastcgi import APPLICATION
from files import KB, MB, pattern, write
from server import GENERATE, OBEY, STREAM

LINE = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-\n"
THIN_AIR = LINE * (512 * KB // len(LINE))  # what generate.c makes, any size of it from the start
PIECE_DIGITS = 12  # at the start of each piece of worker-stream.c; the rest is not said

# One connection at a time, and bodies like those of generate.c.  It completes
# pending responses when it is stopped.
PROGRAM = APPLICATION + r'''
LINE = %r
busy = ending = False

def end(*unused):
    global ending
    ending = True
    if not busy:
        os._exit(0)

signal.signal(signal.SIGTERM, end)

while True:
    connection = listener.accept()[0]
    try:
        while True:
            params = take_request(connection)
            size = int(re.search(rb"QUERY_STRINGsize=(\d+)", params)[1])
            body = (LINE * (size // len(LINE) + 1))[:size]
            busy = True
            out = b"Content-Type: text/plain\r\n\r\n" + body
            for at in range(0, len(out), 32768):
                connection.sendall(record(6, out[at:at + 32768]))
            connection.sendall(record(6, b"") + record(3, bytes(8)))
            busy = False
            if ending:
                os._exit(0)
    except (EOFError, ConnectionError):
        connection.close()
        busy = False
        if ending:
            os._exit(0)
''' % LINE

SLOW_CGI = """#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\nbegun\\n'
sleep 0.3
echo ended
"""

POOLS = ("page", "obey", "stream", "confined", "application")  # of processes that stay
COMMANDS = {"page": GENERATE, "obey": OBEY, "stream": STREAM, "confined": GENERATE}


class Page:
    """A path, and its right result: a status and a body, or a check of the body. pool: the pool
    that makes it; None: the server itself. sealed: it is a unit that outlives its creator.
    """

    def __init__(self, target, body, status=200, pool=None, method="GET", fields="", send=b"",
                 weight=1, sealed=False):
        self.target, self.body, self.status, self.pool = target, body, status, pool
        self.method, self.fields, self.send, self.weight = method, fields, send, weight
        self.sealed = sealed

    def request(self, close=False):
        more = self.fields + ("Connection: close\r\n" if close else "")
        if self.method == "POST":
            more += f"Content-Length: {len(self.send)}\r\n"
        head = f"{self.method} {self.target} HTTP/1.1\r\nHost: test\r\n{more}\r\n"
        return head.encode() + self.send

    def is_right(self, body):
        return self.body(body) if callable(self.body) else body == self.body


def pieces(count, size):
    """A check: that many pieces, each with its number in front."""
    def check(body):
        return len(body) == count * size and all(
            body[number * size:number * size + PIECE_DIGITS] == b"%012d" % number
            for number in range(count))
    return check


def anything(unused):
    return True


class Site:
    """Uses an empty folder: the root, the programs and the configuration."""

    def __init__(self, folder, rng):
        self.folder = folder
        self.programs = folder / "programs"
        self.config = folder / "sweet.conf"
        self.pid_file = folder / "pid"
        self.socket = folder / "socket"
        self.cache = folder / "cache"
        self.temporary = folder / "tmp"
        for made in (self.programs, self.temporary, folder / "root", folder / "cgi"):
            made.mkdir(parents=True)
        for name, program in COMMANDS.items():
            shutil.copy(program, self.programs / name)
        shutil.copy(GENERATE, folder / "cgi" / "cgi")
        write(folder / "cgi" / "slow", SLOW_CGI.encode()).chmod(0o755)
        write(self.programs / "application", PROGRAM.encode())
        self.pages = [*self.files(rng), *self.dynamic(rng)]

    def files(self, rng):
        for name, size in (("empty", 0), ("small", KB), ("medium", 100 * KB), ("large", 2 * MB),
                           ("huge", 6 * MB)):
            data = pattern(size, rng.random())
            write(self.folder / "root" / name, data)
            yield Page(f"/{name}", data, weight=1 if size > MB else 3)
        part = rng.randrange(MB)
        yield Page("/large", pattern_part(self.folder / "root" / "large", part, 5000), 206,
                   fields=f"Range: bytes={part}-{part + 4999}\r\n")
        yield Page("/small", anything, 416, fields="Range: bytes=99999-\r\n")
        yield Page("/missing", anything, 404)
        yield Page("/small", b"", 200, method="HEAD")

    def dynamic(self, rng):
        for size in (1, 10000, 300 * KB):
            body = THIN_AIR[:size]
            for pool in ("page", "confined", "application"):
                yield Page(f"/{pool}?size={size}", body, pool=pool)
            yield Page(f"/page?size={size}&kept=1", body, pool="page", sealed=True)
            yield Page(f"/page?size={size}&cached=1", body, pool="page")
            yield Page(f"/cgi/cgi?size={size}", body, pool="cgi", sealed=True)
            yield Page(f"/cgi/cgi?size={size}&plain=1", body, pool="cgi")
        yield Page("/cgi/slow", b"begun\nended\n", pool="cgi")
        for size in (0, 700, 200 * KB, 2 * MB):
            body = pattern(size, rng.random())
            yield Page("/obey/echo", body, pool="obey", method="POST", send=body)
        yield Page("/obey/kept", b"the same each time\n", pool="obey")
        yield Page("/obey/list", b"a line of three\nthe middle one\na line of three\n", pool="obey")
        yield Page("/stream/pieces?5:1000", pieces(5, 1000), pool="stream")
        yield Page("/stream/pieces?40:65536", pieces(40, 65536), pool="stream")
        yield Page("/stream/pieces?3:5000:15000", pieces(3, 5000), pool="stream")

    def configure(self, listen, arch="amped", threads=2, processes=2, more="", environment="",
                  cache=64 * MB):
        """Replaced as a whole, as an editor does it."""
        command = {name: str(self.programs / name) for name in COMMANDS}
        command["application"] = f"{sys.executable} -S -E {self.programs}/application"
        groups = []
        for name in POOLS:
            keys = [f"command={command[name]}", f"processes={processes}", "memory=16M",
                    f"environment=TORTURE={environment}"]
            if name == "confined":
                keys = [*keys[:3], f"directory={self.folder}"]
            elif name == "application":
                keys = [keys[0], keys[1], "protocol=fastcgi"]
            groups.append("\n".join([f"[pool {name}]", *keys, f"[path /{name}]", f"pool={name}"]))
        attach = "" if arch == "mp" else f"cache-socket={self.cache}\n"
        fresh = self.folder / "fresh.conf"
        fresh.write_text(
            f"[sweet]\nlisten={listen};unix:{self.socket}\nroot={self.folder}/root\narch={arch}\n"
            f"threads={threads}\ncache-size={cache}\n{attach}pid-file={self.pid_file}\n"
            f"max-body=16M\n{more}\n[path /cgi]\npool=cgi\n[pool cgi]\nprotocol=cgi\n"
            f"folder={self.folder}/cgi\nprocesses=16\n" + "\n".join(groups) + "\n")
        fresh.replace(self.config)

    def environment(self):
        return {**os.environ, "TMPDIR": str(self.temporary)}


def pattern_part(path, at, length):
    with open(path, "rb") as file:
        file.seek(at)
        return file.read(length)
