# SPDX-License-Identifier: MIT
"""Responses that arrive over HTTP/2, as the bytes that the server would send over HTTP/1.1."""

import collections
import http

# What the server drops of a body over HTTP/1.1, a megabyte, less what is in flight.
DROPPED = 15 << 16
# Over HTTP/1.1, no request follows these responses.
LAST = {408, 413}
REASONS = {status.value: status.phrase for status in http.HTTPStatus} | {
    413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable",
    422: "Unprocessable Content"}
# As the server writes them over HTTP/1.1; those of programs stay as they are.
NAMES = {name.lower().encode(): name.encode() for name in (
    "Accept-Ranges Age Allow Cache-Control Content-Encoding Content-Length Content-Range "
    "Content-Security-Policy Content-Type Date ETag Expires Last-Modified Location "
    "Referrer-Policy Retry-After Server Set-Cookie Strict-Transport-Security Vary "
    "WWW-Authenticate X-Content-Type-Options X-Listing").split()}


class Exchange:
    """A request, and what has arrived of its response as HTTP/1.1: parts are [bytes, credit], with
    what they took of the window; ended: "" until it is "whole", "early" or "reset"."""

    def __init__(self, head, stream):
        self.head = head
        self.stream = stream
        self.body = head.body()
        self.parts = collections.deque()
        self.chunked = self.unbounded = False
        self.closes = head.closes
        self.ended = ""

    def put(self, data, credit=0):
        self.parts.append([memoryview(data), credit])

    def respond(self, fields, empty, last):
        """A head; empty: all of it; last: the server takes no more requests."""
        status = next(int(value) for name, value in fields if name == b":status")
        lines = [b"HTTP/1.1 %d %s" % (status, REASONS.get(status, "Unknown").encode())]
        lines += [b"%s: %s" % (NAMES.get(name, name), value) for name, value in fields
                  if not name.startswith(b":")]
        if status >= 200:
            lines += self.framing(status, {name for name, _ in fields}, empty)
            self.closes |= last or status in LAST or self.is_left()
            if self.closes:
                lines.append(b"Connection: close")
            elif self.head.keeps:
                lines.append(b"Connection: keep-alive")
        elif self.body and self.body.begun and status == 100:
            return  # the client did not wait for it
        self.put(b"\r\n".join(lines) + b"\r\n\r\n")

    def framing(self, status, names, empty):
        if b"content-length" in names or status in (204, 304):
            return []
        if empty and self.head.method != b"HEAD":
            return [b"Content-Length: 0"]
        if self.head.old:
            self.unbounded = self.closes = True
            return []
        self.chunked = self.head.method != b"HEAD"
        return [b"Transfer-Encoding: chunked"]

    def is_left(self):
        """Returns True if the server would rather close than read the rest of the body."""
        if not self.body or self.body.over:
            return False
        return self.body.left > DROPPED or self.head.expects and not self.body.begun

    def receive(self, data, credit):
        self.put(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data, credit)

    def end(self, how):
        if self.ended:
            return
        if how == "whole" and self.chunked:
            self.put(b"0\r\n\r\n")
        # Only a reset shows it.
        self.ended = "reset" if how == "early" and self.unbounded else how

    def take(self, size):
        """Returns at most that many bytes, and their part of the window."""
        pieces, credit = [], 0
        while self.parts and size:
            part = self.parts[0]
            piece, part[0] = part[0][:size], part[0][size:]
            pieces.append(piece)
            size -= len(piece)
            given = min(part[1], len(piece)) if part[0] else part[1]
            part[1] -= given
            credit += given
            if not part[0]:
                self.parts.popleft()
        return b"".join(pieces), credit
