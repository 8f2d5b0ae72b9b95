# SPDX-License-Identifier: MIT
"""Splits what a client sends over HTTP/1.1 into requests, as the bytes arrive.

It is strict: a test that sends what HTTP/2 cannot carry gets Untranslatable, and needs the mark
http1 (selection.py).
"""

import re

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
LINE = re.compile(rb"(%s) (\S+) HTTP/1\.([0-9])" % TOKEN)
FIELD = re.compile(rb"(%s):[ \t]*([^\0\r\n]*?)[ \t]*" % TOKEN)
ABSOLUTE = re.compile(rb"https?://([^/?]+)(.*)", re.I)
SIZE = re.compile(rb"([0-9a-fA-F]{1,16})([ \t]*;[^\r\n]*)?")
# They are about one connection, which here is another one (RFC 9113, section 8.2.2).
HOP = {b"connection", b"host", b"http2-settings", b"keep-alive", b"proxy-connection",
       b"transfer-encoding", b"upgrade"}


class Untranslatable(Exception):
    """HTTP/2 has no way to send this."""


class Head:
    """A request without its body. fields: (name, value), for HTTP/2; length: None if it is
    unknown; closes: no request follows it."""

    def __init__(self, data):
        first, *lines = data.split(b"\r\n")
        line = LINE.fullmatch(first)
        if not line:
            raise Untranslatable(first)
        self.method, self.path = line[1], line[2]
        self.old = line[3] == b"0"
        self.fields, named = [], {}
        for text in lines:
            field = FIELD.fullmatch(text)
            if not field:
                raise Untranslatable(text)
            name, value = field[1].lower(), field[2]
            named.setdefault(name, []).append(value)
            # With HTTP/1.0 an expectation has no meaning.
            if name not in HOP and (name != b"te" or value.lower() == b"trailers") \
                    and (name != b"expect" or not self.old):
                self.fields.append((name, value))
        self.read_framing(named)
        connection = b",".join(named.get(b"connection", [])).lower()
        options = [option.strip() for option in connection.split(b",")]
        self.keeps = self.old and b"keep-alive" in options and b"close" not in options
        self.closes = b"close" in options or self.old and not self.keeps
        self.expects = (b"expect", b"100-continue") in [
            (name, value.lower()) for name, value in self.fields]
        self.authority = self.only(named, b"host")
        absolute = ABSOLUTE.fullmatch(self.path)
        if absolute:
            self.authority, path = absolute.groups()
            if not path.startswith(b"/"):
                path = (b"*" if self.method == b"OPTIONS" and not path else b"/" + path)
            self.path = path

    @staticmethod
    def only(named, name):
        values = named.get(name, [])
        if len(values) > 1:
            raise Untranslatable(b"%s, more than once" % name)
        return values[0] if values else None

    def read_framing(self, named):
        coding, length = self.only(named, b"transfer-encoding"), self.only(named, b"content-length")
        self.chunked = coding is not None
        if self.chunked and (coding.lower() != b"chunked" or length is not None or self.old):
            raise Untranslatable(b"Transfer-Encoding: %s" % coding)
        if length is not None and not re.fullmatch(b"[0-9]+", length):
            raise Untranslatable(b"Content-Length: %s" % length)
        self.length = None if length is None else int(length)

    def body(self):
        return Body(self.length) if self.chunked or self.length else None


class Body:
    """What is left of a body: of a known length, or else in chunks, whose trailers are dropped."""

    def __init__(self, length):
        self.left = length or 0  # of the body, or of the chunk
        self.state = "size" if length is None else "data"
        self.chunked = length is None
        self.over = False
        self.begun = False
        self.line = b""

    def take(self, data, room):
        """Takes from the front of data: returns how many bytes, and those of the body among them,
        which are at most as many as there is room for."""
        self.begun = True
        if self.state == "data":
            count = min(len(data), self.left, room)
            self.left -= count
            if not self.left:
                self.state, self.over = ("end", False) if self.chunked else ("", True)
            return count, bytes(data[:count])
        known = len(self.line)
        self.line += bytes(data[:2 if self.state == "end" else 8192])
        line, end, _ = self.line.partition(b"\r\n")
        if not end:
            return len(self.line) - known, b""
        self.line = b""
        self.take_line(line)
        return len(line) + 2 - known, b""

    def take_line(self, line):
        if self.state == "size":
            size = SIZE.fullmatch(line)
            if not size:
                raise Untranslatable(b"a chunk of %s" % line)
            self.left = int(size[1], 16)
            self.state = "data" if self.left else "trailers"
        elif self.state == "trailers":
            self.over = not line
            if line and not FIELD.fullmatch(line):
                raise Untranslatable(line)
        elif line:
            raise Untranslatable(b"%s behind a chunk" % line)
        else:
            self.state = "size"
