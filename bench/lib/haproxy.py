# SPDX-License-Identifier: MIT
"""HAProxy with one thread: its cache holds the files of an nginx behind it, or it passes every request
to a server behind."""

import os

from .nginx import Nginx
from .servers import Server, connects, find_program, version

HAPROXY = """\
global
    nbthread 1
    maxconn 4096
defaults
    mode http
    option http-keep-alive
    timeout connect 5s
    timeout client 1h
    timeout server 10s
"""
CACHED = """\
cache files
    total-max-size {mib}
    max-object-size {most}
    max-age 3600
frontend clients
    bind 127.0.0.1:{port}{ssl}
    http-request cache-use files
    http-response cache-store files
    default_backend nginx
backend nginx
    server nginx 127.0.0.1:{behind}
"""
# What the server behind is told of the client is what SWEET tells it.
PLAIN = """\
frontend clients
    bind 127.0.0.1:{port}
    default_backend behind
backend behind
    http-reuse always
    option forwardfor
    http-request set-header X-Forwarded-Proto http
    http-request set-header X-Forwarded-Host %[req.hdr(host)]
    server behind 127.0.0.1:{behind}
"""
TLS = " ssl crt {pem} ssl-min-ver TLSv1.3 alpn h2,http/1.1"
MIB_MAX = 4095
OBJECT_ROOM = 4096  # for the head of a response


class HAProxy(Server):
    """Files of at most max_size, of which mib MiB fit into the cache."""

    def __init__(self, context, root, max_size, mib, tls=None):
        super().__init__("haproxy", context.directory, context.server_cpu)
        self.tls = tls
        self.behind = Nginx(context, root, "haproxy-nginx")
        self.program = find_program("haproxy")
        self.version = version([self.program, "-v"])
        self.detail = "one thread; cached from nginx"
        self.conf = os.path.join(self.directory, "haproxy.cfg")
        with open(self.conf, "w") as file:
            file.write(HAPROXY + CACHED.format(mib=min(MIB_MAX, mib), most=max_size + OBJECT_ROOM,
                                               port=self.port, behind=self.behind.port,
                                               ssl=TLS.format(pem=tls.pem) if tls else ""))

    def begin(self):
        self.behind.popens = []  # those of an earlier start have ended
        self.behind.begin()
        self.popens = self.behind.popens
        self.launch([self.program, "-db", "-f", self.conf], "haproxy",
                    lambda log: connects(self.port))


class HAProxyPlain(Server):
    """Without a cache, in front of a server of HTTP."""

    def __init__(self, context, behind):
        super().__init__("haproxy", context.directory, context.server_cpu)
        self.behind = behind
        self.program = find_program("haproxy")
        self.version = version([self.program, "-v"])
        self.detail = "one thread"
        self.conf = os.path.join(self.directory, "haproxy.cfg")

    def begin(self):
        with open(self.conf, "w") as file:
            file.write(HAPROXY + PLAIN.format(port=self.port, behind=self.behind.port))
        self.launch([self.program, "-db", "-f", self.conf], "haproxy",
                    lambda log: connects(self.port))
