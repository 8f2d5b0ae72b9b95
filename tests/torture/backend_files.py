# SPDX-License-Identifier: MIT
"""Applications of the stage "backends" that let the server send files, and documents that are
replaced all the time.

A document has a token, and each line of a version is the token and the version's number. An
application answers for it by itself, for the cache, or by X-Sendfile or X-Accel-Redirect, which the
request's own identifier decides: often the refresh of a cached response is answered with a file. An
answer names the request that it was made for: a client knows what it got, and from when it is.
"""

import collections
import contextlib
import os
import random
import threading
import time

from backend_answers import HTTP, SPOIL, Answers, FastCGI, pause

DOCUMENTS = 12
SIZES = (1, 40, 300, 8000, 60000)  # lines
PAUSES = (0.005, 0.02, 0.1)  # seconds between two replacements
LIVES = ((1, 1), (1, 3), (2, 2), (3, 0))  # seconds: max-age, stale-while-revalidate
KEPT = 30.0  # seconds for which a version is known after its end
# Where no text is cached, so that one is; and where one may be: to a refresh, mostly.
FIRST = {"own": 12, "file": 2, "led": 1, "onward": 1}
AGAIN = {"own": 4, "file": 4, "led": 2, "onward": 1}
FIRST_INNER, AGAIN_INNER = {"own": 5, "file": 1}, {"own": 1, "file": 1}  # "onward" leads there
BAD = {"own": 3, "file": 3, "cut": 1, "reset": 1, "refuse": 1, "garbage": 1, "outside": 1,
       "missing": 1, "dots": 1}
SPOILS = ("files", "old", "torn")  # what some answers lead to: other files, of before, not whole
PURGES = {"purge": b"X-NABC-Purge", "soft": b"X-NABC-Soft-Purge"}
BODIES = (b"", b"the program itself\n")  # beside the field that names a file
SOFT = 0.005  # the share of answers with a soft purge of another document

# life: seconds until it may not be used any more; 0: it is not cached.
Made = collections.namedtuple("Made", "how version time life")


class Version:
    """Of a document; it was in the file at some time within born to gone."""

    def __init__(self, number, lines):
        self.number, self.lines = number, lines
        self.born, self.gone = time.monotonic(), float("inf")


class Document:
    def __init__(self, number, rng, folder):
        self.number = number
        self.token = b"t%016x" % rng.getrandbits(64)
        self.path = folder / "inside" / str(number)
        self.temporary = folder / f"next-{number}"
        self.versions = []  # the current one last
        self.floor = float("-inf")  # nothing that was made before may be seen any more
        self.replace(rng)

    def body(self, version):
        return b"%s %d\n" % (self.token, version.number) * version.lines

    def replace(self, rng):
        """The client's list has the version before anybody can see it."""
        number = self.versions[-1].number + 1 if self.versions else 1
        version = Version(number, rng.choice(SIZES) + number % 7)
        self.temporary.write_bytes(self.body(version))
        version.born = time.monotonic()
        before = [one for one in self.versions if one.gone > version.born - KEPT]
        self.versions = [*before, version]
        os.rename(self.temporary, self.path)
        if before:
            before[-1].gone = time.monotonic()

    def between(self, began, ended):
        """The versions of which the file may have been one in that time."""
        return [one for one in self.versions if one.born <= ended and one.gone >= began]


class Documents:
    """A thread replaces them until the end. spoil: what is wrong in some answers, or None."""

    def __init__(self, folder, rng, spoil):
        self.folder, self.spoil = folder, spoil
        (folder / "inside" / "old").mkdir(parents=True)
        self.all = [Document(number, rng, folder) for number in range(DOCUMENTS)]
        for one in self.all:
            (folder / "inside" / "old" / str(one.number)).write_bytes(one.path.read_bytes())
        self.made = {}  # by the identifier of the request
        self.replaced = 0
        self.random = random.Random(rng.random())
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ending.wait(self.random.choice(PAUSES)):
            self.random.choice(self.all).replace(self.random)
            self.replaced += 1

    def end(self):
        self.ending.set()
        self.thread.join()

    def file_for(self, one, rng):
        """The path of the file, or of a wrong one."""
        if not self.spoil or rng.random() >= SPOIL:
            return one.path
        if self.spoil == "files":
            return self.all[(one.number + 1) % DOCUMENTS].path
        if self.spoil == "old":
            return self.folder / "inside" / "old" / str(one.number)
        body = one.body(one.versions[-1])
        torn = self.folder / "inside" / "old" / f"torn-{rng.getrandbits(64):x}"
        torn.write_bytes(body.replace(b" %d\n" % one.versions[-1].number, b" 0\n", 1))
        return torn


class FilesByFastCGI(FastCGI):
    @staticmethod
    def field(asked, name):
        return asked.variables.get("HTTP_" + name.upper().replace("-", "_"), "")

    def with_lines(self, asked, lines, body):
        return self.part(asked, lines + b"\r\n" + body) + self.over(asked)


class FilesByHTTP(HTTP):
    @staticmethod
    def path(asked):
        return asked.target.partition("/http")[2]

    @staticmethod
    def field(asked, name):
        return asked.fields.get(name.lower(), "")

    @staticmethod
    def with_lines(asked, lines, body):
        return b"HTTP/1.1 200 OK\r\n" + lines + b"Content-Length: %d\r\n\r\n" % len(body) \
            + (b"" if asked.method == "HEAD" else body)


class FileAnswers:
    """Applications of one protocol, all of which have the same documents."""

    def __init__(self, wire, documents):
        self.wire, self.documents = wire, documents
        self.faults = []
        self.cached = {}  # until when the text of a path may be

    def handle(self, asked):
        _, kind, number = self.wire.path(asked).split("/")
        asked.document = self.documents.all[int(number)]
        asked.key = self.wire.field(asked, "X-Ask")
        asked.rng = random.Random(asked.key + kind)
        if self.wire.protocol == "fastcgi" and asked.body():
            self.faults.append("a GET with a body")
        if kind in PURGES:
            asked.connection.send(self.wire.with_lines(
                asked, b"Content-Type: text/plain\r\nCache-Control: no-store\r\n"
                b"%s: d%d\r\n" % (PURGES[kind], asked.document.number), b"purged\n"))
            return True
        asked.prefix = b"X-"
        if kind == "onward":
            asked.key, asked.prefix = "i" + asked.key, b"X-Inner-"
        asked.place = kind, number
        cached = self.cached.get(asked.place, 0) > time.monotonic()
        hows = {"right": (FIRST, AGAIN), "onward": (FIRST_INNER, AGAIN_INNER),
                "bad": (BAD, BAD)}[kind][cached]
        how = asked.rng.choices([*hows], [*hows.values()])[0]
        return WAYS[how](self, asked, how)

    def prepare(self, asked, how, lines, body, version=None, life=0):
        """The bytes of an answer; notes it before anybody can see it."""
        self.documents.made[asked.key] = Made(how, version, time.monotonic(), life)
        lines += b"%sMade: %s\r\n%sHow: %s\r\n" % (asked.prefix, asked.key.encode(), asked.prefix,
                                                 how.encode())
        if asked.rng.random() < SOFT:
            lines += b"X-NABC-Soft-Purge: d%d\r\n" % asked.rng.randrange(DOCUMENTS)
        return self.wire.with_lines(asked, lines, body)

    def send(self, asked, *what):
        data = self.prepare(asked, *what)
        if asked.rng.random() < 0.3:
            at = asked.rng.randrange(min(len(data), 400))
            asked.connection.send(data[:at])
            pause(asked)
            data = data[at:]
        asked.connection.send(data)

    def own(self, asked, how):
        """Its own text, for the cache as a rule."""
        version = asked.document.versions[-1]
        fresh, stale = asked.rng.choice(LIVES)
        life, control = fresh + stale, b"max-age=%d, stale-while-revalidate=%d" % (fresh, stale)
        if asked.rng.random() < 0.1:
            life, control = 0, b"no-store"
        self.cached[asked.place] = time.monotonic() + life
        pause(asked)
        self.send(asked, how, b"Content-Type: text/plain\r\nCache-Control: %s\r\nETag: \"o%d\"\r\n"
                  b"X-NABC-Tag: d%d\r\n" % (control, version.number, asked.document.number),
                  asked.document.body(version), version, life)

    def file(self, asked, how):
        path = self.documents.file_for(asked.document, asked.rng)
        self.send(asked, how, b"Content-Type: text/x-file\r\nX-Sendfile: %s\r\n" % bytes(path),
                  asked.rng.choice(BODIES))

    def led(self, asked, how):
        self.send(asked, how, b"X-Accel-Redirect: /inside/%d\r\n" % asked.document.number,
                  asked.rng.choice(BODIES))

    def onward(self, asked, how):
        """To a path of the same applications, whose own answers are cached."""
        self.send(asked, how, b"X-Accel-Redirect: /onward/%s/onward/%d\r\n" %
                  (self.wire.protocol.encode(), asked.document.number), asked.rng.choice(BODIES))

    # --- what no application should do ----------------------------------------------------------

    def outside(self, asked, how):
        """A file of no folder that the pool may send, one that is not there, or a way out."""
        name = {"outside": "sweet.conf", "missing": "inside/none",
                "dots": "inside/../sweet.conf"}[how]
        self.send(asked, how, b"X-Sendfile: %s/%s\r\n" % (bytes(self.documents.folder),
                                                        name.encode()), asked.rng.choice(BODIES))

    def cut(self, asked, how):
        """In the head that leads to a file, or after it; or in its own text."""
        document, lines = asked.document, b"Content-Type: text/plain\r\n"
        if asked.rng.random() < 0.5:
            data = self.prepare(asked, "file", lines + b"X-Sendfile: %s\r\n" %
                                bytes(document.path), b"never whole\n" * 20)
        else:
            version = document.versions[-1]
            data = self.prepare(asked, "own", lines, document.body(version), version)
        asked.connection.send(data[:asked.rng.randrange(min(len(data), 400) - 1)])
        return False

    def reset(self, asked, how):
        self.cut(asked, how)
        Answers.end_by_reset(asked)
        return False

    def refuse(self, asked, how):
        asked.connection.send(self.wire.refusal(asked))

    def garbage(self, asked, how):
        with contextlib.suppress(OSError):
            asked.connection.send(asked.rng.randbytes(asked.rng.randint(1, 5000)))
        return False


WAYS = {name: getattr(FileAnswers, name) for name in
        ("own", "file", "led", "onward", "outside", "cut", "reset", "refuse", "garbage")}
WAYS["missing"] = WAYS["dots"] = FileAnswers.outside
