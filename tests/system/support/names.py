# SPDX-License-Identifier: MIT
"""Names of hosts that only a tested server has: a file /etc/hosts, and a DNS server in the tests'
own process, which says what a test chooses, including what no good one would."""

import collections
import contextlib
import ipaddress
import os
import random
import socket
import struct
import threading
import time

from server import TIMEOUT

SILENT = "silent"  # instead of records: nothing is said
BROKEN = "broken"  # what is said is no message
A, CNAME, AAAA = 1, 5, 28
NXDOMAIN = 3
UDP_MAX = 512
NSSWITCH = "hosts: files dns\n"

# The files are the server's alone, in mounts of its own.
ENTER = """for name in hosts resolv.conf nsswitch.conf; do
    mount --bind "$0/$name" "/etc/$name" || exit 1
done
exec "$@"
"""


def labels(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def record(text, ttl):
    """Returns the type of an address or name, and its record for the name that was asked for."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(text)
        kind = A if address.version == 4 else AAAA
        return kind, struct.pack("!HHHIH", 0xC00C, kind, 1, ttl, len(address.packed)) + address.packed
    target = labels(text)
    return CNAME, struct.pack("!HHHIH", 0xC00C, CNAME, 1, ttl, len(target)) + target


class Names:
    """set(name, addresses...): what the server at self.address says; without it, there is no such
    name. hosts(text) replaces /etc/hosts. With prefix before a server, it has these names."""

    def __init__(self, folder):
        self.folder = folder
        self.said = {}
        self.asked = collections.Counter()  # requests for the IPv4 addresses of a name
        self.changed = threading.Condition()
        self.closing = False
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.tcp = None
        while not self.tcp:
            # Another test may have a server, but all of this network is the host's own.
            self.address = f"127.{random.randrange(1, 255)}.{random.randrange(255)}.53"
            with contextlib.suppress(OSError):
                self.tcp = socket.create_server((self.address, 53))
        self.udp.bind((self.address, 53))
        self.threads = [threading.Thread(target=one, daemon=True)
                        for one in (self.serve_udp, self.serve_tcp)]
        folder.mkdir()
        self.hosts("127.0.0.1 localhost\n::1 localhost\n")
        (folder / "nsswitch.conf").write_text(NSSWITCH)
        self.resolve("timeout:1 attempts:1")
        # A server may be another user.
        os.chmod(folder, 0o755)
        self.prefix = ["unshare", "--mount", "sh", "-c", ENTER, str(folder)]
        for one in self.threads:
            one.start()

    def hosts(self, text):
        # In place: it is mounted.
        with open(self.folder / "hosts", "w", encoding="ascii") as file:
            file.write(text)

    def resolve(self, options):
        """Before a server starts: the options of its resolver."""
        (self.folder / "resolv.conf").write_text(f"nameserver {self.address}\nsearch test\n"
                                                 f"options {options}\n")

    def set(self, name, *said, ttl=0):
        with self.changed:
            self.said[name] = (said, ttl)

    def unset(self, name):
        with self.changed:
            self.said.pop(name)

    def wait_asked(self, name, count):
        """Waits for that many further lookups of a name."""
        deadline = time.monotonic() + TIMEOUT
        with self.changed:
            count += self.asked[name]
            while self.asked[name] < count:
                assert self.changed.wait(deadline - time.monotonic()), "it is not looked up"

    def reply(self, request, most):
        """Returns the message for a request; None: none."""
        number, = struct.unpack_from("!H", request)
        at, parts = 12, []
        while request[at]:
            parts.append(request[at + 1 : at + 1 + request[at]].decode())
            at += 1 + request[at]
        kind, = struct.unpack_from("!H", request, at + 1)
        name, question = ".".join(parts), request[12 : at + 5]
        with self.changed:
            said, ttl = self.said.get(name, ((), 0))
            code = 0 if name in self.said else NXDOMAIN
            self.asked[name] += kind == A
            self.changed.notify_all()
        if SILENT in said:
            return None
        if BROKEN in said:
            return struct.pack("!HHHHHH", number, 0x8180, 1, 65535, 65535, 65535) + question + b"\xc0\xff"
        records = [data for of, data in (record(text, ttl) for text in said) if of in (kind, CNAME)]
        body = b"".join(records)
        flags, count = 0x8180 | code, len(records)
        if 12 + len(question) + len(body) > most:
            flags, count, body = flags | 0x0200, 0, b""
        return struct.pack("!HHHHHH", number, flags, 1, count, 0, 0) + question + body

    def serve_udp(self):
        while not self.closing:
            request, client = self.udp.recvfrom(4096)
            if len(request) > 12 and (message := self.reply(request, UDP_MAX)):
                self.udp.sendto(message, client)

    def serve_tcp(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.tcp.accept()[0]
                threading.Thread(target=self.serve_client, args=(client,), daemon=True).start()

    def serve_client(self, client):
        client.settimeout(TIMEOUT)
        with client, contextlib.suppress(OSError, struct.error), client.makefile("rb") as file:
            while True:
                length, = struct.unpack("!H", file.read(2))
                if message := self.reply(file.read(length), 65535):
                    client.sendall(struct.pack("!H", len(message)) + message)

    def close(self):
        self.closing = True
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:
            waker.sendto(b"end", (self.address, 53))
        with contextlib.suppress(OSError):
            self.tcp.shutdown(socket.SHUT_RDWR)
        for one in self.threads:
            one.join(TIMEOUT)
        self.udp.close()
        self.tcp.close()
