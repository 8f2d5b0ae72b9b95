# SPDX-License-Identifier: MIT
"""Varnish with one pool of threads, which caches the files of an nginx behind it."""

import os

from .nginx import Nginx
from .servers import Server, connects, find_program, version

VCL = """\
vcl 4.1;
backend nginx {{
    .host = "127.0.0.1";
    .port = "{behind}";
}}
sub vcl_backend_response {{
    set beresp.ttl = 1h;
}}
"""
LEAST_THREADS = 16


class Varnish(Server):
    """For that many connections, each of which has a thread while it is busy.

    It always logs to memory.
    """

    def __init__(self, context, root, connections, mib):
        super().__init__("varnish", context.directory, context.server_cpu)
        self.behind = Nginx(context, root, "varnish-nginx")
        threads = max(LEAST_THREADS, 2 * connections)
        program = find_program("varnishd")
        find_program("cc")  # to compile its configuration
        self.version = version([program, "-V"])
        self.detail = f"one pool, {threads} threads; cached from nginx"
        vcl = os.path.join(self.directory, "default.vcl")
        with open(vcl, "w") as file:
            file.write(VCL.format(behind=self.behind.port))
        self.argv = [program, "-F", "-j", "none", "-n", os.path.join(self.directory, "work"),
                     "-a", f"127.0.0.1:{self.port}", "-f", vcl, "-s", f"malloc,{mib}m",
                     "-p", "thread_pools=1", "-p", f"thread_pool_min={threads}",
                     "-p", "timeout_idle=3600"]

    def begin(self):
        self.behind.begin()
        self.popens = self.behind.popens
        self.launch(self.argv, "varnish", lambda log: connects(self.port))
