# SPDX-License-Identifier: MIT
"""Applications by FastCGI and HTTP that answer in all ways, right and wrong, while clients upload,
leave and read slowly, and the configuration changes: no client gets a byte of another one's answer,
none gets a part of an answer as a whole one, none waits without end, and the server continues.  Others
let the server send files, by X-Sendfile and X-Accel-Redirect, also as the answer to a refresh of the
cache: each answer is a whole version of the right file.

backend_answers.py and backend_files.py have the applications, backend_clients.py and
backend_readers.py the clients.
"""

import os
import random
import signal
import time

import server as servers
from backend_answers import HTTP, Answers, FastCGI
from backend_clients import Clients
from backend_files import SPOILS, Documents, FileAnswers, FilesByFastCGI, FilesByHTTP
from backend_readers import Readers
from kills import usable
from ports import free_port

SHARE = 0.2
ARCHS = ("amped", "sped", "mt")
SLOT = 20.0  # seconds of a server
CLIENTS = 12
READERS = 8  # clients that get files
TIME_LIMIT = 4  # seconds for an application to respond, more than a busy machine stops one
RELOAD = (0.3, 2.0)  # seconds between two
ADDRESSES = 3  # of a pool
SAID = 30  # lines of the log up to an error
TRIES = 8  # of a request; the connections of an application may have late answers


def run(torture):
    spoil = os.environ.get("TORTURE_SPOIL")
    if spoil not in (None, "1", *SPOILS):
        raise torture.Wrong(f"TORTURE_SPOIL is none of 1, {', '.join(SPOILS)}: {spoil}")
    kinds = [kind for kind in ("epoll", "uring") if usable(torture, kind)]
    torture.count("answers", 0)
    torture.count("wrong", 0)
    count = max(len(kinds), round(torture.seconds / SLOT))
    # The number of reloads depends on the time, so each server has its own random numbers.
    seeds = [torture.random.random() for _ in range(count)]
    for number, seed in enumerate(seeds):
        Slot(torture, kinds[number % len(kinds)], number, random.Random(seed), spoil).run(
            torture.left() / (count - number))
    torture.count("servers", count)


class Slot:
    """One server, and its applications."""

    def __init__(self, torture, kind, number, rng, spoil):
        self.torture, self.kind = torture, kind
        self.random = rng
        self.arch = self.random.choice(ARCHS)
        self.cache = self.random.choice(("8M", "32M"))
        self.port = free_port()
        self.folder = torture.scratch / str(number)
        self.folder.mkdir()
        self.config = self.folder / "sweet.conf"
        self.answers = [Answers(wire, spoil == "1") for wire in (FastCGI(), HTTP())]
        self.documents = Documents(self.folder, self.random, None if spoil == "1" else spoil)
        self.files = [FileAnswers(wire, self.documents)
                      for wire in (FilesByFastCGI(), FilesByHTTP())]
        self.applications = []
        for one in self.answers + self.files:
            for place in range(ADDRESSES):
                name = f"{type(one).__name__}-{one.wire.protocol}{place}"
                path = self.folder / name if place else None
                self.applications.append((one, one.wire.application(one.handle, path)))

    def wrong(self, what):
        self.torture.count("wrong")
        raise self.torture.Wrong(f"{self.kind}, {self.arch}: {what}")

    def configure(self):
        draw = self.random.choice
        text = (f"[sweet]\nlisten=127.0.0.1:{self.port}\nroot={self.folder}\narch={self.arch}\n"
                f"threads={4 if self.arch == 'mt' else 2}\nstop-timeout=5s\nmax-body=8M\n"
                f"cache-size={self.cache}\n")
        for one in self.answers:
            name = one.wire.protocol
            text += self.pool(name, one) + f"[path /{name}]\npool={name}\n"
        for one in self.files:
            name = one.wire.protocol
            for prefix in ("files", "bad"):
                text += (f"{self.pool(f'{prefix}-{name}', one)}"
                         f"accel=internal;{self.folder}/inside\n"
                         f"[path /{prefix}/{name}]\npool={prefix}-{name}\ncache=response\n")
            text += f"[path /onward/{name}]\npool=files-{name}\ncache=response\ninternal=on\n"
        text += "[path /inside]\ninternal=on\n"
        # A reload may be under way.
        new = self.config.with_suffix(".new")
        new.write_text(text)
        new.replace(self.config)

    def pool(self, name, answers):
        """The section of a pool of these applications."""
        draw = self.random.choice
        addresses = [application.address for its, application in self.applications
                     if its is answers]
        self.random.shuffle(addresses)
        return (f"[pool {name}]\nprotocol={answers.wire.protocol}\n"
                f"upstream={';'.join(addresses[:draw((1, 2, ADDRESSES))])}\n"
                f"timeout={TIME_LIMIT}s\nin-flight={draw((2, 8))}\nqueue=64\n"
                f"queue-timeout=5s\nkeep-connection={draw(('0', '100ms', '5s'))}\n"
                f"request-buffering={draw(('on', 'off'))}\n"
                f"response-buffering={draw(('on', 'off'))}\n"
                f"stream-ahead={draw(('64K', '1M'))}\n")

    def run(self, seconds):
        self.configure()
        until = time.monotonic() + seconds
        try:
            with self.torture.serving(self.kind, None, "--config", self.config,
                                      listen=None) as server:
                self.load(server, until)
        finally:
            self.documents.end()
            for _, application in self.applications:
                application.close()

    def load(self, server, until):
        clients = Clients(server, self.random, CLIENTS)
        readers = Readers(server, self.random, READERS, self.documents, clients.ending)
        reloads = 0
        try:
            while time.monotonic() < until and not clients.ending.wait(
                    min(self.random.uniform(*RELOAD), max(0.0, until - time.monotonic()))):
                self.configure()
                server.send_signal(signal.SIGHUP)
                reloads += 1
        finally:
            for one in (clients, readers):
                one.end(3 * servers.TIMEOUT)  # three requests may be under way
        self.torture.count("reloads", reloads)
        for name, figure in (clients.figures + readers.figures).items():
            self.torture.count(name, figure)
        for how, figure in readers.refreshed().items():
            self.torture.count(f"refreshes with {how}", figure)
        self.torture.count("versions", self.documents.replaced)
        if server.process.poll() is not None:
            self.wrong(f"the server has ended with status {server.process.returncode}")
        faults = [fault for one, application in self.applications
                  for fault in one.faults + application.faults
                  if not isinstance(fault, TimeoutError)]
        said = clients.said or readers.said
        if clients.wrong or readers.wrong:
            said = [line for line in said if ": says: " not in line][-SAID:]
            self.torture.say("the server's log until then:\n" + "\n".join(said))
        for what in clients.wrong + readers.wrong + faults:
            self.wrong(what if isinstance(what, str) else repr(what))
        if clients.answers["plain"] <= clients.figures["plain ones lost"]:
            self.wrong(f"hardly any answers: {dict(clients.figures)}")
        self.settle(server.port)

    def settle(self, port):
        """The pools work as before: what was given up has left no place taken."""
        for one in self.answers:
            got = [Clients.ask(port, one.wire.protocol, self.random) for _ in range(TRIES)]
            if 200 not in got:
                self.wrong(f"pool {one.wire.protocol} does not answer any more: {got}")
