# SPDX-License-Identifier: MIT
"""A site of 1,000 files of all sizes and with all kinds of names, always the same, and their
SHA-256, by which a test verifies what its client received."""

import hashlib
import os
import random
import struct
import urllib.parse
import zlib

from files import KB, MB

LUA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "website.lua")  # for wrk
COUNT = 1000
# For servers of the site: files over 2 MB are then too large for a unit, and not the whole site
# fits, so that files are evicted and read again.
CACHE = 8 * MB
LARGEST = 5 * MB
# Around the sizes that matter to the server and the network: sectors, TCP segments, pages,
# pipes, windows and the limit of a unit.
GRAINS = [512, 1000, KB, 1448, 1460, 4 * KB, 8 * KB, 16 * KB, 32 * KB, 64 * KB, 65535, 128 * KB,
          256 * KB, 512 * KB, MB, CACHE // 4]
SIZES = [0, 1, 2, 3, *(grain + more for grain in GRAINS for more in (-1, 0, 1)),
         2 * MB + 4097, 3 * MB, LARGEST]
SIZES = list(dict.fromkeys(SIZES))

ODD = [
    "with a space", " at both ends ", "per%cent", "%41", "%2e%2e", "100%", "%", "plus+plus",
    "a&b=c;d,e", "question?mark", "hash#mark", "back\\slash", "quote's \"quotes\"", "<b>bold",
    "[brackets]", "{braces}", "{1,2}[3-4]", "colon:colon", "user@host", "~tilde", "-dash",
    "--version", "star*", "pipe|pipe", "car^et", "back`tick", "$HOME", "$(date)", "!bang",
    "two..dots", "a dot at the end.", "index.html.", "Case", "case", "CASE", "http:", "con",
    "ümläut", "日本語", "Ελληνικά", "Русский", "عربي", "emoji 😀", "e\u0301 of two", "é of one",
    "no-break\u00a0space", "\ufeffmark", b"latin-1 \xe9t\xe9", b"\xff\xfe", b"cut \xe2\x82",
    "l" * 255, "é" * 127, "%" * 200, "long." + "x" * 246 + ".txt",
]
DEEP = ["/".join(["deep"] * depth) for depth in (5, 40, 150)] + ["/".join(["k" * 200] * 15)]
# Characters that need no escape in a URL (RFC 3986, section 3.3), without the quote.
PLAIN = "/:@!$&()*+,;=~-._"


class File:
    """path: bytes, relative to the root; url: its escaped path; digest: its SHA-256."""

    def __init__(self, path, data):
        self.path = path
        self.size = len(data)
        self.digest = hashlib.sha256(data).hexdigest()
        folder, slash, name = path.rpartition(b"/")
        asked = folder + slash if name == b"index.html" else path
        self.url = "/" + urllib.parse.quote(asked, safe=PLAIN)
        self.suffix = os.path.splitext(name)[1].decode(errors="replace")

    def __repr__(self):
        return f"{self.url} of {self.size} bytes"


class Bytes:
    """Slices of one pool of random bytes, in which all positions differ."""

    def __init__(self):
        self.pool = hashlib.shake_128(b"site").digest(LARGEST + COUNT * KB)

    def raw(self, number, size):
        return self.pool[number * KB:number * KB + size]

    def letters(self, number, size):
        return self.raw(number, (size + 1) // 2).hex().encode()[:size]


def script(filler, number, size):
    """JavaScript that reports that it ran."""
    head = b"window.ran = (window.ran || 0) + 1; // %d " % number
    return head + filler.letters(number, max(0, size - len(head)))


def page(filler, number, size):
    head = b"<!DOCTYPE html><meta charset='utf-8'><title>%d</title><p>%d<!-- " % (number, number)
    return head + filler.letters(number, max(0, size - len(head) - 4)) + b" -->"


def style(filler, number, size):
    head = b"b { color: rgb(1, 2, 3); } /* %d " % number
    return head + filler.letters(number, max(0, size - len(head) - 3)) + b" */"


def image(filler, number, size):
    """A PNG of one pixel; an unknown chunk fills it up to the size."""
    def chunk(name, data):
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    rest = chunk(b"IDAT", zlib.compress(b"\0\x80")) + chunk(b"IEND", b"")
    return start + chunk(b"siTe", filler.raw(number, max(0, size - len(start + rest) - 12))) + rest


KINDS = {".js": script, ".html": page, ".css": style, ".png": image}


def plan():
    """Returns (path, size) of each file."""
    dice = random.Random(4)
    planned = [(b"sizes/%d.bin" % size, size) for size in SIZES]
    for folder in ("odd", "odd/a folder/100%/ümläut", "odd/" + "f" * 255):
        for name in ODD:
            name = name if isinstance(name, bytes) else name.encode()
            planned.append((folder.encode() + b"/" + name, dice.randrange(3000)))
    for folder in DEEP:
        planned += [(f"{folder}/{name}".encode(), dice.randrange(9000))
                    for name in ("index.html", "file", "ümläut.txt", "a b.png")]
    suffixes = ["", ".txt", ".bin", ".js", ".html", ".css", ".png", ".svg", ".json", ".tar"]
    for number in range(len(planned), COUNT):
        folder = f"part-{number % 7}/{number % 31:02d}"
        name = f"{number:04d}{suffixes[number % len(suffixes)]}"
        if number > COUNT - 40:
            name = "index.html"
        # As many of 1 to 10 bytes as of 10 to 100, and so on.
        planned.append((f"{folder}/{name}".encode(), int(10 ** (dice.random() * 4.9))))
    return planned


class Site:
    """Written below root when it is created."""

    def __init__(self, root):
        self.root = os.fsencode(root)
        filler = Bytes()
        folders = set()
        self.files = []
        for number, (path, size) in enumerate(plan()):
            make = KINDS.get(os.path.splitext(path)[1].decode(errors="replace"), Bytes.raw)
            data = make(filler, number, size)
            folder = os.path.dirname(path)
            if folder not in folders:
                os.makedirs(os.path.join(self.root, folder), exist_ok=True)
                folders.add(folder)
            with open(os.path.join(self.root, path), "xb") as file:
                file.write(data)
            self.files.append(File(path, data))
        assert len(self.files) == COUNT

    def path(self, file):
        return os.fsdecode(os.path.join(self.root, file.path))

    def data(self, file):
        with open(self.path(file), "rb") as opened:
            return opened.read()

    def of_size(self, size):
        """Returns the file whose size is closest to this."""
        return min(self.files, key=lambda file: abs(file.size - size))


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
