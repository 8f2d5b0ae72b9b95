#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hello_worker.py - a worker in Python.

It greets each client, shows the data of a POST, and answers /about with a page
that is made once and sent again for each request.
"""

import hashlib
import os

import nabc

TEXT = [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")]
ABOUT = b"This page was put into the cache once, by one process.\n"
kept = {}


def about(request):
    if "about" not in kept:
        kept["about"] = nabc.put(ABOUT)
    request.respond(200, TEXT, kept["about"], keep=True)


def answer(request):
    known = request.variables
    if known.get("PATH_INFO") == "/about":
        about(request)
    elif known.get("REQUEST_METHOD") == "POST":
        length, digest = 0, hashlib.sha256()
        for piece in request.pieces():
            length += piece.length
            digest.update(nabc.get(*piece))
        text = f"{length} bytes, SHA-256 {digest.hexdigest()}\n"
        request.respond(200, TEXT, text.encode())
    else:
        text = f"Hello {known.get('REMOTE_ADDR', 'stranger')}, this is process {os.getpid()}.\n"
        request.respond(200, TEXT, text.encode())


if __name__ == "__main__":
    with nabc.Worker() as worker:
        worker.serve(answer)
