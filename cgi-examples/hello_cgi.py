#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hello_cgi.py - a CGI program (RFC 3875) in Python.

Its page goes into the server's cache, and its standard output names it there;
without a cache, the page itself goes through the standard output, as ever.
"""

import os
import sys

import nabc

LIFETIME = 60  # seconds, should nobody come for the page

page = (f"Hello {os.environ.get('REMOTE_ADDR', 'stranger')}, this is process {os.getpid()}.\n"
        f"You asked for \"{os.environ.get('PATH_INFO') or '/'}\".\n")
data = page.encode("utf-8", "surrogateescape")
head = b"Content-Type: text/plain; charset=utf-8\r\n"

try:
    head += b"X-NABC-Cache-Id: %d\r\n" % nabc.put(data, lifetime=LIFETIME)
    data = b""
except OSError as error:
    if "NABC_CACHE" in os.environ:
        print(f"hello_cgi.py: {error}; the page goes by the pipe", file=sys.stderr)
if data:
    head += b"Content-Length: %d\r\n" % len(data)
sys.stdout.buffer.write(head + b"\r\n" + data)
