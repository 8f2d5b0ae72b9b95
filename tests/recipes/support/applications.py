# SPDX-License-Identifier: MIT
"""Applications of the recipes that are written by their operators: their folders, and the programs
that serve them."""

import http.client
import os

from server import TIMEOUT

USER = "nobody"  # of the server, too


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(text, bytes) else "w") as file:
        file.write(text)


def folders(recipe, *paths):
    """Empty folders for the test, which belong to the application."""
    recipe.cover("/srv", empty=True)
    for path in paths:
        os.makedirs(path, exist_ok=True)
        recipe.run("chown", USER, path)


def serve(recipe, command, socket, **how):
    """Starts the application as another user than root, at a Unix socket."""
    os.makedirs(os.path.dirname(socket), exist_ok=True)
    recipe.run("chown", USER, os.path.dirname(socket))
    return recipe.daemon(command, socket, user=USER, group="www-data", extra_groups=[], **how)


def listen(host, visitor):
    """Each event of /events reaches the client before /ring lets the application make the next."""
    stream = http.client.HTTPConnection("127.0.0.1", 80, timeout=TIMEOUT)
    stream.request("GET", "/events", headers={"Host": host})
    answer = stream.getresponse()
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.readline() == b"data: first\n" and answer.readline() == b"\n"
    assert visitor.get("/ring").status in (200, 204)
    assert answer.read() == b"data: second\n\n"
    stream.close()
