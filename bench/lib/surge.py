# SPDX-License-Identifier: MIT
"""surge: simulated users as in SURGE, and the effect of each step of the paper (000, table
11)."""

import os
import subprocess

from . import load, report
from .documents import Documents
from .nginx import Nginx
from .plot import USUAL
from .process import Failure
from .servers import Row, Sweet, find_built, peer, present

DOCUMENTS = 2000
USERS = 1500
QUICK_USERS = 500
SEED = 1
# Factor of the users' times between requests. Unscaled, users wait most of the time: a hundred
# thousand of them would be needed to load a server fully.
TIME_SCALE = 0.004
CACHE_MIB = 256
SECONDS_MAX = 30
# So that connections in TIME_WAIT do not use up one address's ports.
SOURCES = ",".join(f"127.0.1.{number}" for number in range(1, 9))

# (row, server of the row or its arguments, the client's arguments): each step
# has what the one before it has, as in the paper's table.
STEPS = (
    ("sweet-posix", ["--data-path", "posix", "--close-option", "off"], []),
    ("sweet-copy", ["--send-method", "copy", "--close-option", "off"], []),
    ("sweet-splice", ["--send-method", "splice", "--close-option", "off"], []),
    ("sweet-close", ["--send-method", "splice", "--close-option", "on"], []),
    ("sweet-ack-fin", "sweet-close", ["--delay-ack-fin"]),
    ("sweet-ack-syn", "sweet-close", ["--delay-ack-fin", "--delay-ack-syn"]),
)
FIRST, LAST = STEPS[0][0], STEPS[-1][0]
KEPT = ("sweet-posix", "sweet-copy", "sweet-splice", "nginx")
PLOTS = USUAL


def make_list(context):
    """[(path, size)] of the documents, the most popular first."""
    argv = [find_built(context.build, "bench", "client"), "--documents", str(DOCUMENTS),
            "--surge", str(SEED)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=SECONDS_MAX, check=False, text=True)
    if done.returncode:
        raise Failure(f"client --documents: status {done.returncode}\n{done.stdout}")
    return [(path, int(size)) for path, size in map(str.split, done.stdout.splitlines())]


def measure(context):
    users = context.options.users or context.pick(None, USERS, QUICK_USERS)
    pages = make_list(context)
    documents = Documents(context, "root", pages)
    wanted = os.path.join(context.directory, "list")
    load.write_list(wanted, pages)
    servers = {row: Sweet(context, documents.root, context.io[0], CACHE_MIB, name=row,
                          arguments=arguments)
               for row, arguments, _ in STEPS if isinstance(arguments, list)}
    servers["nginx"] = peer("nginx", Nginx, context, documents.root)
    context.start(servers.values())
    documents.check(present(context.servers))
    print(f"         {len(pages):,} documents, {sum(size for _, size in pages) / 1e6:.0f} MB",
          flush=True)

    def row(name, server, arguments):
        client = load.Replay(context, users, wanted,
                             ["--surge", SEED, "--time-scale", TIME_SCALE, "--source", SOURCES,
                              *arguments])
        return Row(name, servers[server], client)

    steps = [row(name, name if isinstance(server, list) else server, ["--close", *arguments])
             for name, server, arguments in STEPS]
    case = context.turns({"users": users, "connection": "by request"},
                         [*steps, row("nginx", "nginx", ["--close"])])
    tell_steps(context, case)
    if not context.quick:
        context.turns({"users": users, "connection": "by page"},
                      [row(name, name, ["--pages"]) for name in KEPT])
    documents.check(present(context.servers))


def positive(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def add_options(parser):
    parser.add_argument("--users", type=positive, metavar="N",
                        help=f"surge: how many ({USERS}; {QUICK_USERS} with --quick)")


def tell_steps(context, case):
    """Each step compared with the one before it, and all of them together."""
    runs = case["runs"]
    names = [name for name, *_ in STEPS]
    rows = [[f"{after} / {before}", "",
             report.spread(report.ratio(runs[after], runs[before], "requests_per_s")),
             report.spread(report.ratio(runs[before], runs[after], "cpu_us_per_request"))]
            for before, after in [*zip(names, names[1:]), (FIRST, LAST)]]
    context.table("each step by the one before it, then all of them; over 1 is in favour of the"
                  " step:\nrequests/s, and the inverse of CPU time per request",
                  ["step", "", "requests/s", "CPU/request"], rows)


def verdicts(cases):
    result = []
    for case in cases:
        runs = case["runs"]
        if LAST in runs:
            found = report.ratio(runs[FIRST], runs[LAST], "cpu_us_per_request")[0]
            result.append(("CPU time, SWEET posix : SWEET with all steps", found, 1.25,
                           found >= 1.25))
    return result
