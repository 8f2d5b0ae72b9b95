# SPDX-License-Identifier: MIT
"""Clients of the stage "backends" that read documents which applications let the server send, or
send themselves and let be cached. Each answer is one whole version of the right document: of a file,
one that it had between request and answer; of a text from the cache, that of the answer which was
cached, for as long as the rules permit, and none from before a purge."""

import collections
import contextlib
import re
import time

from backend_clients import ERRORS, Clients, Wrong
from backend_files import DOCUMENTS, KEPT

KINDS = ("right", "right", "right", "bad")
FILES = ("file", "led")  # how the server sends the current file
RECENT = 3  # entity tags that a client may know still
AGAIN = 0.7  # the share of requests for what the client asked for before, so that it is cached
SOFT = 0.2  # of these: a soft purge of it comes before
PURGED = 0.01  # the share of requests that purge a document
LATE = 2.0  # seconds: ages are whole ones, of the answer's arrival
REFUSED = (403, 404, *ERRORS)  # for an application that names what it may not, or nothing
RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
LEFT_MOST = 200_000  # bytes after which a client leaves


class Reading:
    """One request: drawn from rng, perhaps for what the one before asked for."""

    def __init__(self, rng, documents, etags, before=None, purge=None):
        self.key = f"a{rng.getrandbits(64):016x}"
        self.purge = purge
        self.way, self.wire = rng.choice(KINDS), rng.choice(("fastcgi", "http"))
        self.document = documents.all[rng.randrange(DOCUMENTS)]
        if before:
            self.way, self.wire, self.document = before.way, before.wire, before.document
        prefix = "bad" if self.way == "bad" and not purge else "files"
        self.path = f"/{prefix}/{self.wire}/{purge or self.way}/{self.document.number}"
        self.token = self.document.token
        self.method = "HEAD" if rng.random() < 0.1 and not self.purge else "GET"
        self.more = ""
        self.start = None  # of a range
        if not self.purge and rng.random() < 0.2:
            self.start = rng.choice((0, 10, 1000, 100_000))
            self.more = f"Range: bytes={self.start}-{self.start + rng.randrange(5000)}\r\n"
        elif not self.purge and rng.random() < 0.3 and etags[self.document]:
            self.more = f"If-None-Match: {rng.choice([*etags[self.document]][-RECENT:])}\r\n"
        self.left = rng.randrange(LEFT_MOST) if rng.random() < 0.08 else None
        self.resets = rng.random() < 0.5
        self.fields = {}
        self.floor = self.document.floor
        self.began = time.monotonic()

    def head(self):
        return (f"{self.method} {self.path} HTTP/1.1\r\nHost: test\r\nX-Ask: {self.key}\r\n"
                f"{self.more}\r\n").encode()


class Readers(Clients):
    def __init__(self, server, rng, count, documents, ending):
        self.documents = documents
        # What a document's entity tags stand for: {tag: numbers of versions}.
        self.etags = {one: collections.defaultdict(set) for one in documents.all}
        self.others = []  # identifiers of requests that got the answer to another
        super().__init__(server, rng, count, ending)

    def connected(self, asker, rng):
        for one in self.draw(rng):
            with contextlib.suppress(ConnectionError):  # there may be a response all the same
                asker.send(one.head())
            if not self.receive(asker, one) or self.ending.is_set():
                return

    def draw(self, rng):
        """The requests of a connection, one when the one before has its response."""
        before = None
        for _ in range(rng.randint(1, 12)):
            if rng.random() >= AGAIN:
                before = None
            if rng.random() < PURGED:
                yield Reading(rng, self.documents, self.etags, before, "purge")
            elif before and rng.random() < SOFT:
                yield Reading(rng, self.documents, self.etags, before, "soft")
            before = Reading(rng, self.documents, self.etags, before)
            yield before

    def judge(self, one, status, body):
        ended = time.monotonic()
        made = self.documents.made.get(one.fields.get("x-made"))
        what = f"{one.method} {one.path} ({one.more.strip()}), {one.key}: status {status}, " \
            f"{made}, {one.fields.get('x-made')}"
        if status in (200, 206, 304, 416) and body is not None:
            self.check(one, status, body, made, ended, what)
            self.add("files" if made and made.how in FILES else "texts")
        elif one.way == "bad" and status in (*REFUSED, 0, 200):
            self.add("files refused" if body is not None else "cut off")
        elif self.pulse.stood_still(one.began) and status in (*ERRORS, 0, 200):
            self.add("cut off since the applications stood still")
        else:
            raise Wrong(f"{what}, cut off: {body is None}")

    def check(self, one, status, body, made, ended, what):
        if one.purge:
            if body != b"purged\n":
                raise Wrong(f"{what}: {body[:60]!r}")
            self.add("purges")
            if one.purge == "soft":
                return
            # What was answered before this request began was purged by now.
            one.document.floor = max(one.document.floor, one.began)
        elif status == 304:
            self.check_unchanged(one, ended, what)
        elif status == 416:
            if not any(len(one.document.body(version)) <= one.start
                       for version in self.lately(one, ended)):
                raise Wrong(f"{what}: every version has this part")
        elif not made:
            raise Wrong(f"{what}: an answer of nobody: {one.fields}, {body[:60]!r}")
        else:
            versions = self.permitted(one, made, ended, what)
            self.compare(one, status, body, versions, what)

    def lately(self, one, ended):
        """The versions that the file had, or a text that is still cached."""
        return one.document.between(one.began - KEPT / 2, ended)

    def check_unchanged(self, one, ended, what):
        # Two versions of one tag would be one to the server.
        tag = one.more.split(": ")[1].strip()
        known = self.etags[one.document][tag]
        late = tag.startswith('"o')
        versions = self.lately(one, ended) if late else one.document.between(one.began, ended)
        if not known & {version.number for version in versions}:
            raise Wrong(f"{what}: it has changed: {known}, {[v.number for v in versions]}")

    def permitted(self, one, made, ended, what):
        """The versions that the answer may be; notes what was not made for this request."""
        key, prefix = one.fields["x-made"], "x-"
        if made.how == "onward":
            # Such an answer is for its request, what it leads to may be cached.
            self.check_own_key(one, key, one.key, what)
            key, prefix = one.fields.get("x-inner-made"), "x-inner-"
            made = self.documents.made.get(key)
            what += f", within {made}, {key}"
            if not made:
                raise Wrong(f"{what}: an answer of nobody")
        own = one.key if prefix == "x-" else "i" + one.key
        if one.fields.get(prefix + "how") != made.how:
            raise Wrong(f"{what}: of two answers: {one.fields}")
        if made.how in FILES:
            self.check_own_key(one, key, own, what)
            return one.document.between(one.began, ended)
        if made.how != "own":
            raise Wrong(f"{what}: a body")
        if key != own:
            self.check_age(one, made, what)
            with self.lock:
                self.others.append(own)
            self.add("from the cache")
        return [made.version]

    @staticmethod
    def check_own_key(one, key, own, what):
        if key != own:
            raise Wrong(f"{what}: the answer that sends a file was cached")

    def check_age(self, one, made, what):
        age = one.began - made.time
        if not made.life:
            raise Wrong(f"{what}: an answer that may not be cached")
        if age > made.life + LATE and not self.pulse.stood_still(one.began - age):
            raise Wrong(f"{what}: {age:.1f} s old")
        if made.time < one.floor:
            raise Wrong(f"{what}: it was purged {one.began - one.floor:.3f} s ago")

    def compare(self, one, status, body, versions, what):
        found = [version for version in versions
                 if self.equals(one, status, body, one.document.body(version), what)]
        if not found:
            raise Wrong(f"{what}: {len(body)} bytes that are no version of that time "
                        f"({[version.number for version in versions]}): {body[:60]!r}")
        etag = one.fields.get("etag")
        if etag and len(found) == 1 and status == 200 and one.method == "GET":
            self.etags[one.document][etag].add(found[0].number)

    @staticmethod
    def equals(one, status, body, expected, what):
        if status == 200:
            if one.method == "HEAD":
                return one.fields.get("content-length", str(len(expected))) == str(len(expected))
            return body == expected
        found = RANGE.fullmatch(one.fields.get("content-range", ""))
        if not found:
            raise Wrong(f"{what}: a part without a range: {one.fields}")
        first, last, total = map(int, found.groups())
        if first != one.start:
            raise Wrong(f"{what}: another part: {found[0]}")
        return total == len(expected) and (one.method == "HEAD" or body == expected[first:last + 1])

    def refreshed(self):
        """What became of requests that were answered from the cache, but for which an application
        was asked: {how: number}."""
        made = (self.documents.made.get(key) for key in self.others)
        return collections.Counter(one.how for one in made if one)
