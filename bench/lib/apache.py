# SPDX-License-Identifier: MIT
"""Apache httpd, event MPM: for files, or in front of FastCGI responders by mod_proxy_fcgi."""

import os

from .fastcgi import Responders, library_version
from .servers import NotInstalled, Server, connects, find_program, version

PROCESSES = 4
MODULES = ("/usr/lib/apache2/modules", "/usr/lib64/httpd/modules")

# Twice as many threads as connections: with fewer, it closes connections that should be kept.
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
"""

# Files that are named before the start stay open.
APACHE_FILES = """\
EnableSendfile On
LoadModule file_cache_module {modules}/mod_file_cache.so
"""

# Its one process accepts no more connections than threads, and this many for each idle thread.
APACHE_TLS = """\
AsyncRequestWorkerFactor 1000
LoadModule ssl_module {modules}/mod_ssl.so
SSLEngine on
SSLCertificateFile {pem}
SSLProtocol TLSv1.3
SSLSessionCache none
"""

# mod_file_cache sends each file once and then waits forever: with HTTP/2 it cannot be used.
APACHE_H2 = """\
LoadModule http2_module {modules}/mod_http2.so
Protocols h2 http/1.1
H2MinWorkers 4
H2MaxWorkers 4
"""

# One process with one pool of connections to the responders: a request waits for one of them.
APACHE_FASTCGI = """\
LoadModule proxy_module {modules}/mod_proxy.so
LoadModule proxy_fcgi_module {modules}/mod_proxy_fcgi.so
ProxyPass "/generate" "unix:{socket}|fcgi://bench/generate" enablereuse=on max={processes}
"""


def modules():
    for folder in MODULES:
        if os.path.exists(os.path.join(folder, "mod_proxy_fcgi.so")):
            return folder
    raise NotInstalled("apache2", "mod_proxy_fcgi", "apache2-bin")


def write_conf(server, root, threads, more):
    server.program = find_program("apache2")
    server.version = version([server.program, "-v"])
    # It refuses to serve as root.
    user = "User nobody\nGroup nogroup" if os.geteuid() == 0 else ""
    server.conf = os.path.join(server.directory, "httpd.conf")
    with open(server.conf, "w") as file:
        file.write(APACHE.format(dir=server.directory, port=server.port, root=root, user=user,
                                 modules=modules(), threads=threads) + more)


def launch(server):
    server.launch([server.program, "-f", server.conf, "-DFOREGROUND"], "apache",
                  lambda log: connects(server.port))


class Apache(Server):
    """Serves files, with those of paths kept open; for at most that many connections."""

    def __init__(self, context, root, connections, paths=(), tls=None):
        super().__init__("apache", context.directory, context.server_cpu)
        self.tls = tls
        threads = 2 * connections
        self.detail = f"event MPM, {threads} threads, {len(paths)} files kept open"
        write_conf(self, root, threads, APACHE_FILES.format(modules=modules())
                   + "".join(f"CacheFile {path}\n" for path in paths)
                   + (APACHE_TLS.format(modules=modules(), pem=tls.pem) if tls else ""))

    def begin(self):
        launch(self)


class ApacheH2(Server):
    """Serves files over TLS, also with HTTP/2; for at most that many connections."""

    def __init__(self, context, root, connections, tls):
        super().__init__("apache-h2", context.directory, context.server_cpu)
        self.tls = tls
        threads = 2 * connections
        self.detail = f"event MPM, {threads} threads, mod_http2 with 4 threads"
        write_conf(self, root, threads, "EnableSendfile On\n"
                   + APACHE_TLS.format(modules=modules(), pem=tls.pem)
                   + APACHE_H2.format(modules=modules()))

    def begin(self):
        launch(self)


class ApacheFastCgi(Server):
    """For at most that many connections."""

    def __init__(self, context, root, connections):
        super().__init__("apache-fastcgi", context.directory, context.server_cpu)
        self.responders = Responders(context, self, PROCESSES)
        threads = 2 * connections
        self.detail = (f"event MPM, {threads} threads, mod_proxy_fcgi; {PROCESSES} FastCGI"
                       f" processes on kept connections; libfcgi {library_version()}")
        write_conf(self, root, threads,
                   APACHE_FASTCGI.format(modules=modules(), processes=PROCESSES,
                                         socket=self.responders.socket))

    def begin(self):
        self.responders.launch()
        launch(self)
