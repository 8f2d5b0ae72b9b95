# SPDX-License-Identifier: MIT
"""Apache httpd, event MPM, with mod_proxy_fcgi in front of FastCGI responders."""

import os

from .fastcgi import Responders, library_version
from .process import Failure
from .servers import Server, connects, find_program, version

PROCESSES = 4
MODULES = ("/usr/lib/apache2/modules", "/usr/lib64/httpd/modules")

# One process, which has one pool of connections to the responders: a request
# waits for one of them.  Twice the threads of the connections, since with
# fewer it closes connections that should be kept.
APACHE = """\
ServerRoot {dir}
ServerName bench
DefaultRuntimeDir {dir}
PidFile {dir}/httpd.pid
ErrorLog {dir}/error.log
LogLevel warn
Listen 127.0.0.1:{port}
ListenBackLog 1024
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule proxy_module {modules}/mod_proxy.so
LoadModule proxy_fcgi_module {modules}/mod_proxy_fcgi.so
{user}
ServerLimit 1
StartServers 1
ThreadLimit {threads}
ThreadsPerChild {threads}
MaxRequestWorkers {threads}
MinSpareThreads 1
MaxSpareThreads {threads}
MaxConnectionsPerChild 0
KeepAlive On
KeepAliveTimeout 3600
MaxKeepAliveRequests 0
DocumentRoot {root}
ProxyPass "/generate" "unix:{socket}|fcgi://bench/generate" enablereuse=on max={processes}
"""


def modules():
    for folder in MODULES:
        if os.path.exists(os.path.join(folder, "mod_proxy_fcgi.so")):
            return folder
    raise Failure("mod_proxy_fcgi not found: install the Debian package apache2-bin")


class Apache(Server):
    """For at most that many connections."""

    def __init__(self, context, root, connections):
        super().__init__("apache-fastcgi", context.directory, context.server_cpu)
        self.responders = Responders(context, self, PROCESSES)
        self.program = find_program("apache2")
        self.version = version([self.program, "-v"])
        threads = 2 * connections
        self.detail = (f"event MPM, {threads} threads, mod_proxy_fcgi; {PROCESSES} FastCGI"
                       f" processes on kept connections; libfcgi {library_version()}")
        # It refuses to serve as root.
        user = "User nobody\nGroup nogroup" if os.geteuid() == 0 else ""
        self.conf = os.path.join(self.directory, "httpd.conf")
        with open(self.conf, "w") as file:
            file.write(APACHE.format(dir=self.directory, port=self.port, root=root, user=user,
                                     modules=modules(), threads=threads, processes=PROCESSES,
                                     socket=self.responders.socket))

    def begin(self):
        self.responders.launch()
        self.launch([self.program, "-f", self.conf, "-DFOREGROUND"], "apache",
                    lambda log: connects(self.port))
