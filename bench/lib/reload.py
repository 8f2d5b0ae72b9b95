# SPDX-License-Identifier: MIT
"""reload: whether any request fails while the configuration changes.

Two loads run at a time, one on kept connections and one with a connection for each request,
until they have made a million requests; meanwhile repeated SIGHUPs change the root, the Server
field and a second address.
"""

import os
import signal
import threading
import time

from . import files, load
from .process import Failure
from .servers import Sweet

SIZE = 1 << 10
REQUESTS, QUICK_REQUESTS = 1_000_000, 50_000
KEPT, CLOSING = 32, 16  # connections
LINE = "sweet: reloaded "


class Load(threading.Thread):
    """Runs wrk repeatedly; its errors fail the experiment."""

    def __init__(self, context, sweet, connections, headers=()):
        super().__init__(daemon=True)
        self.wrk = load.Wrk(context.client_cpu, connections, SIZE, f"/{SIZE}/000.bin",
                            headers=headers)
        self.sweet, self.seconds = sweet, context.seconds
        self.requests, self.failure = 0, None
        self.ending = threading.Event()

    def run(self):
        try:
            while not self.ending.is_set():
                got = self.wrk.run(self.sweet, self.seconds)
                self.requests += got["requests"]
        except Failure as failure:
            self.failure = failure


def count(log):
    with open(log, errors="replace") as file:
        return sum(line.startswith(LINE) for line in file)


def configure(context, sweet, number):
    """Every second configuration has another root, Server field and address."""
    other = number % 2
    fresh = os.path.join(context.directory, "fresh.conf")
    with open(fresh, "w") as file:
        file.write(f"[sweet]\nlisten=127.0.0.1:{sweet.port}"
                   + (f";127.0.0.{2 + number % 3}:0" if other else "") + "\n"
                   f"root={context.directory}/{'other' if other else 'root'}\n"
                   f"server-header={'other' if other else 'one'}\nthreads=2\nrevalidate=1000\n")
    os.rename(fresh, os.path.join(context.directory, "sweet.conf"))


def reload(sweet, log, times):
    sweet.popens[0].send_signal(signal.SIGHUP)
    limit = time.monotonic() + 30
    while count(log) < times:
        if time.monotonic() > limit:
            raise Failure("the server does not reload:\n" + open(log).read()[-2000:])
        sweet.check_alive()
        time.sleep(0.02)


def measure_one(context, io):
    sweet = Sweet(context, context.directory, io, 64, False)
    configure(context, sweet, 0)
    sweet.argv = [sweet.argv[0], "--config", os.path.join(context.directory, "sweet.conf"),
                  "--io", io]
    context.start([sweet])
    log = os.path.join(sweet.directory, "sweet.log")
    loads = [Load(context, sweet, KEPT), Load(context, sweet, CLOSING, ["Connection: close"])]
    least = QUICK_REQUESTS if context.quick else REQUESTS
    reloads = 0
    for one in loads:
        one.start()
    try:
        while sum(one.requests for one in loads) < least and not any(one.failure for one in loads):
            reloads += 1
            configure(context, sweet, reloads)
            reload(sweet, log, reloads)
    finally:
        for one in loads:
            one.ending.set()
        for one in loads:
            one.join()
    for one in loads:
        if one.failure:
            raise one.failure
    kept, closing = (one.requests for one in loads)
    context.records.append({"server": sweet.name, "reloads": reloads, "requests_kept": kept,
                            "requests_closing": closing, "failed": 0})
    sweet.stop()


def measure(context):
    for name in ("root", "other"):
        files.make_root(context, [SIZE], name)
    for io in context.io:
        measure_one(context, io)
    context.table("requests while the configuration changed; one that fails ends the experiment",
                  ["server", "", "reloads", "on kept connections", "on ones of their own",
                   "failed"],
                  [[one["server"], "", *(f"{one[key]:,}" for key in
                    ("reloads", "requests_kept", "requests_closing", "failed"))]
                   for one in context.records])
    context.verdicts = [(f"{one['server']}: requests that failed", one["failed"], "at most 0",
                         not one["failed"]) for one in context.records]
