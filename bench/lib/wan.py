# SPDX-License-Identifier: MIT
"""A wide-area link between a namespace for servers and one for clients, by the program
bench/wan; needs root.

netem is not used even if the kernel has it: the same program on every machine loses packets in
the same way, and reports how many.
"""

import os
import re

from . import netns, process
from .process import Failure
from .servers import find_built, line_starting

SERVER, CLIENT = "10.78.0.1", "10.78.0.2"
DEVICE = "wan0"
END_SECONDS = 10


class Wan:
    """Between its creation and close(): "with" of .server or .client enters one end."""

    def __init__(self, context, delay, loss, rate, queue, seed, **more):
        """delay in ms and loss in percent, of each direction; rate in Mbit/s, queue in KB;

        more: other options of bench/wan.
        """
        self.server = self.client = self.popen = None
        program = find_built(context.build, "bench", "wan")
        self.log = os.path.join(context.directory, "wan.log")
        try:
            self.server, self.client = netns.Namespace(), netns.Namespace()
            argv = [program, "--delay", delay, "--loss", loss, "--rate", rate, "--queue", queue,
                    "--seed", seed, "--device", DEVICE]
            for name, value in more.items():
                argv += [f"--{name}", value]
            argv += [self.server.path, self.client.path]
            with open(self.log, "wb") as output:
                self.popen = process.start(list(map(str, argv)), context.client_cpu, output)
            process.await_ready(self.popen, self.log,
                                lambda: line_starting(self.log, "wan: ready"))
            for space, own, other in ((self.server, SERVER, CLIENT),
                                      (self.client, CLIENT, SERVER)):
                space.set(f"ipv6/conf/{DEVICE}/disable_ipv6", 1)  # it would send packets by itself
                space.run("ip", "address", "add", own, "peer", other, "dev", DEVICE)
                space.run("ip", "link", "set", DEVICE, "up")
        except BaseException:
            self.close()
            raise

    def end(self):
        """Ends the link; returns its counters of each direction: {"server": {...}, "client":
        ...}."""
        self.popen.terminate()
        if self.popen.wait(END_SECONDS):
            raise Failure("wan ended badly:\n" + process.tail(self.log))
        with open(self.log) as file:
            lines = re.findall(r"^wan: (from=.*)$", file.read(), re.M)
        counts = [{key: int(value) for key, value in re.findall(r"(\w+)=(\d+)(?= |$)", line)}
                  for line in lines]
        return dict(zip(("server", "client"), counts))

    def close(self):
        if self.popen and self.popen.poll() is None:
            process.end([self.popen])
        for space in (self.server, self.client):
            if space:
                space.close()
