# SPDX-License-Identifier: MIT
"""rules: what a configuration of many paths costs a request of 1 KB: none; 80 prefixes and 20
regular expressions; the same where no memory may be made executable, so that PCRE2 interprets.

Each with a short path, whose rules are remembered, and with one that is too long for that, as if
every request had another path.
"""

import ctypes
import os

from . import bars, documents, load, report
from .servers import Row, Sweet, find_program

PREFIXES = 80
EXPRESSIONS = [
    r"^/users/([0-9]+)$", r"\\.php$", r"^/old/(.*)$", r"\\.(gif|jpe?g|png|webp)$",
    r"^/blog/([0-9]{4})/([0-9]{2})/", r"^/api/v[0-9]+/", r"(?i)\\.(bak|old|swp)$",
    r"/\\.(git|svn)/", r"^/shop/(.+)/item/([0-9]+)$", r"\\.(css|js)$", r"^/[a-z]{2}/news/",
    r"^/search$", r"^/feed/?$", r"^/(wp-admin|wp-login)", r"^/tag/([^/]+)/page/([0-9]+)$",
    r"\\.(mp4|webm)$", r"^/u/([a-z0-9_]+)/photos$", r"^/download/(.+)\\.zip$",
    r"/index\\.html?$", r"^/static/[0-9a-f]{8}/"]
SIZE = 1024
PATHS = {"remembered": "/page", "not remembered": "/" + "/".join(["a-folder-of-pages"] * 12)}
CONNECTIONS = (1, 16)
CACHE_MIB = 64

REMEMBERED, OTHERS = 1.05, 1.25  # CPU time with rules, by that without

PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1


def refuse_executable_memory():
    """As a service with MemoryDenyWriteExecute=yes, if the kernel knows it (6.3)."""
    ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)


def configuration(context, root):
    path = os.path.join(context.directory, "rules.conf")
    with open(path, "w") as file:
        file.write(f"[sweet]\nroot={root}\n")
        for number in range(PREFIXES):
            file.write(f"[path /area{number}]\nheader=X-Area: {number}\n")
        for number, expression in enumerate(EXPRESSIONS):
            file.write(f"[pattern p{number}]\nmatch={expression}\nheader=X-Pattern: {number}\n")
    return path


def start(context):
    files = documents.Documents(context, "rules", [(path, SIZE) for path in PATHS.values()])
    config = ["--config", configuration(context, files.root)]
    interpreted = Sweet(context, files.root, context.io[0], CACHE_MIB, name="sweet-interpreted",
                        arguments=config)
    interpreted.before = refuse_executable_memory
    context.start([Sweet(context, files.root, context.io[0], CACHE_MIB),
                   Sweet(context, files.root, context.io[0], CACHE_MIB, name="sweet-rules",
                         arguments=config), interpreted])


def measure(context):
    find_program("wrk")
    start(context)
    for kind, path in PATHS.items():
        for connections in context.connections or CONNECTIONS:
            client = load.Wrk(context.client_cpu, connections, SIZE, path)
            context.turns({"path": kind, "connections": connections},
                          [Row(server.name, server, client) for server in context.servers])


def verdicts(cases):
    result = []
    for case in cases:
        bar = REMEMBERED if case["parameters"]["path"] == "remembered" else OTHERS
        words = report.case_name(case)
        plain = bars.median(case, bars.sweet_of(case))
        for row in case["runs"]:
            if not row.startswith(("sweet-rules", "sweet-interpreted")):
                continue
            value = bars.median(case, row) / plain
            result.append((f"CPU time, {row} : without rules, {words}", value, bar, value <= bar))
    return result
