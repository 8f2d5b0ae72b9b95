# SPDX-License-Identifier: MIT
"""lighttpd in front of FastCGI responders: bodies by the connection or as files."""

import os

from .fastcgi import Responders, library_version
from .servers import Server, connects, find_program, version

PROCESSES = 4
FILE_PROCESSES = 2

# It connects to a responder for each request: keeping connections is not in it.
# stream-response-body 1 sends while the responder writes and reads all that it
# has written; 0, the default, puts a large body into a file first.
LIGHTTPD = """\
server.modules = ("mod_fastcgi")
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{root}"
server.errorlog = "{dir}/error.log"
server.pid-file = "{dir}/lighttpd.pid"
server.upload-dirs = ("{dir}")
server.listen-backlog = 1024
server.max-fds = 4096
server.max-keep-alive-idle = 3600
server.max-keep-alive-requests = 65535
server.stream-response-body = 1
fastcgi.server = ("/generate" => ((
    "socket" => "{socket}",
    "check-local" => "disable"{sendfile}
)))
"""
SENDFILE = """,
    "x-sendfile" => "enable",
    "x-sendfile-docroot" => ("{folder}/")"""


class Lighttpd(Server):
    """With a folder, responders put bodies there and lighttpd sends the files."""

    def __init__(self, context, root, folder=None):
        super().__init__("lighttpd-sendfile" if folder else "lighttpd-fastcgi",
                         context.directory, context.server_cpu)
        self.responders = Responders(context, self, FILE_PROCESSES if folder else PROCESSES,
                                     folder)
        self.program = find_program("lighttpd")
        self.version = version([self.program, "-v"])
        self.detail = (f"{self.responders.processes} FastCGI processes, a connection per request; libfcgi"
                       f" {library_version()}" + (f"; X-Sendfile from {folder}" if folder else ""))
        self.conf = os.path.join(self.directory, "lighttpd.conf")
        with open(self.conf, "w") as file:
            file.write(LIGHTTPD.format(port=self.port, root=root, dir=self.directory,
                                       socket=self.responders.socket,
                                       sendfile=SENDFILE.format(folder=folder) if folder else ""))

    def begin(self):
        self.responders.launch()
        self.launch([self.program, "-D", "-f", self.conf], "lighttpd",
                    lambda log: connects(self.port))
