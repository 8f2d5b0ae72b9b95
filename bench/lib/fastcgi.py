# SPDX-License-Identifier: MIT
"""The FastCGI program behind the servers.

fcgi-generate.c is compiled once for an invocation of bench; each server has its own processes of
it, on a Unix socket in the server's directory.
"""

import os
import re
import subprocess

from .process import Failure
from .servers import find_program, line_starting, version

READY = "fcgi-generate: ready"


class Responders:
    """Processes of the program for one server, which connects to their socket."""

    def __init__(self, context, server, processes, folder=None):
        self.program = compile_responder(context)
        self.server = server
        self.socket = os.path.join(server.directory, "fcgi.sock")
        self.processes = processes
        self.folder = folder  # for bodies as files, or None

    def launch(self):
        argv = [self.program, self.socket, str(self.processes)]
        if self.folder:
            argv.append(self.folder)
        self.server.launch(argv, "fcgi-generate", lambda log: line_starting(log, READY))


def compile_responder(context):
    """Compiles fcgi-generate.c into the temporary directory; returns its path."""
    target = os.path.join(context.directory, "fcgi-generate")
    if os.path.exists(target):
        return target
    argv = [find_program("cc"), "-std=c11", "-D_GNU_SOURCE", "-O2", "-o", target,
            os.path.join(context.source, "fcgi-generate.c"), "-lfcgi"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=False)
    if done.returncode:
        text = done.stdout.decode(errors="replace")
        hint = ""
        if re.search(r"fcgiapp\.h|-lfcgi", text):
            hint = "libfcgi not found: install the Debian package libfcgi-dev\n"
        raise Failure(f"{hint}fcgi-generate.c does not compile:\n{text}")
    return target


def library_version():
    answer = version(["dpkg-query", "-W", "-f", "${Version}\\n", "libfcgi-dev"])
    return answer if answer[:1].isdigit() else "(version unknown)"
