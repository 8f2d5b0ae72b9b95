# SPDX-License-Identifier: MIT
"""lighttpd with one process: for files, or in front of FastCGI responders."""

import os

from .fastcgi import Responders, library_version
from .servers import (LIGHTTPD_TLS_MODULE, Server, connects, find_program, require_peer_file,
                      version)

PROCESSES = 4
FILE_PROCESSES = 2

# No log of requests, which would be a module. It closes a connection after the maximum of
# requests, here the largest permitted number.
LIGHTTPD = """\
server.modules = ({modules})
server.bind = "{listen}"
server.port = {port}
server.document-root = "{root}"
server.errorlog = "{dir}/error.log"
server.pid-file = "{dir}/lighttpd.pid"
server.upload-dirs = ("{dir}")
server.listen-backlog = 1024
server.max-fds = 16384
server.max-connections = 8192
server.max-keep-alive-idle = 3600
server.max-keep-alive-requests = 65535
"""

# It caches what it knows of a file until inotify reports a change.
LIGHTTPD_FILES = """\
server.network-backend = "sendfile"
server.stat-cache-engine = "inotify"
"""

LIGHTTPD_TLS = """\
ssl.engine = "enable"
ssl.pemfile = "{pem}"
ssl.openssl.ssl-conf-cmd = ("MinProtocol" => "TLSv1.3")
"""

# It connects to a responder for each request, because it cannot keep connections.
# stream-response-body 1 sends while the responder writes, and reads everything that it has
# written; 0, the default, writes a large body into a file first.
LIGHTTPD_FASTCGI = """\
server.stream-response-body = 1
fastcgi.server = ("/generate" => ((
    "socket" => "{socket}",
    "check-local" => "disable"{sendfile}
)))
"""
SENDFILE = """,
    "x-sendfile" => "enable",
    "x-sendfile-docroot" => ("{folder}/")"""


def conf_text(directory, port, root, modules, more, listen="127.0.0.1"):
    return LIGHTTPD.format(port=port, root=root, dir=directory, modules=modules,
                           listen=listen) + more


def write_conf(server, root, modules, more, listen="127.0.0.1"):
    server.program = find_program("lighttpd")
    server.version = version([server.program, "-v"])
    server.conf = os.path.join(server.directory, "lighttpd.conf")
    with open(server.conf, "w") as file:
        file.write(conf_text(server.directory, server.port, root, modules, more, listen))


def launch(server):
    server.launch([server.program, "-D", "-f", server.conf], "lighttpd",
                  lambda log: connects(server.port))


class Lighttpd(Server):
    """For files; listen: the address."""

    def __init__(self, context, root, name="lighttpd", listen="127.0.0.1", tls=None):
        super().__init__(name, context.directory, context.server_cpu)
        self.tls = tls
        if tls:
            require_peer_file(LIGHTTPD_TLS_MODULE)
        write_conf(self, root, '"mod_openssl"' if tls else "",
                   LIGHTTPD_FILES + (LIGHTTPD_TLS.format(pem=tls.pem) if tls else ""), listen)

    def begin(self):
        launch(self)


class LighttpdFastCgi(Server):
    """With a folder, responders write bodies there and lighttpd sends the files."""

    def __init__(self, context, root, folder=None):
        super().__init__("lighttpd-sendfile" if folder else "lighttpd-fastcgi",
                         context.directory, context.server_cpu)
        self.responders = Responders(context, self, FILE_PROCESSES if folder else PROCESSES,
                                     folder)
        sendfile = SENDFILE.format(folder=folder) if folder else ""
        write_conf(self, root, '"mod_fastcgi"',
                   LIGHTTPD_FASTCGI.format(socket=self.responders.socket, sendfile=sendfile))
        self.detail = (f"{self.responders.processes} FastCGI processes, a connection per request;"
                       f" libfcgi {library_version()}"
                       + (f"; X-Sendfile from {folder}" if folder else ""))

    def begin(self):
        self.responders.launch()
        launch(self)
