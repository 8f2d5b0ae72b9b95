# SPDX-License-Identifier: MIT
"""The servers compared: how each is configured, started, measured and ended.

A Server owns its processes and its directory below bench's temporary one.
"""

import http.client
import os
import shutil
import socket
import subprocess

from . import process
from .process import Failure

SWEET_WORKERS = 2
# What rows without figures say.
NOT_INSTALLED = "not installed"
NO_GROUP = "no group"  # a name follows
# Why the command line leaves a server out: it has no rows.
NOT_SELECTED = "not selected"
# With --before: the labels of the twins of SWEET, which are the build before, and this one again.
BEFORE, AGAIN = "before", "again"
# What the experiments need from Debian: the program, and its package.
PACKAGES = {"wrk": "wrk", "cc": "gcc", "h2load": "nghttp2-client", "httperf": "httperf",
            "gnuplot": "gnuplot-nox", "valgrind": "valgrind", "tcpdump": "tcpdump",
            "ip": "iproute2", "ethtool": "ethtool", "openssl": "openssl"}
# The peers.  One that is missing keeps its rows, which say so: not each release has all.
PEERS = {"nginx": "nginx-light", "lighttpd": "lighttpd", "apache2": "apache2-bin", "h2o": "h2o",
         "haproxy": "haproxy", "varnishd": "varnish"}
# How the names of servers begin: SWEET, its peers, and the programs that are the limit.
NAMES = ("sweet", "nginx", "lighttpd", "h2o", "apache", "haproxy", "varnish", "null")
# The same for what is no program.
FILES = {"/usr/include/fcgiapp.h": "libfcgi-dev"}
LIGHTTPD_TLS_MODULE = "/usr/lib/lighttpd/mod_openssl.so"
PEER_FILES = {LIGHTTPD_TLS_MODULE: "lighttpd-mod-openssl"}


class NotInstalled(Failure):
    """The program of a peer is missing."""

    def __init__(self, program, file, package):
        super().__init__(f"{file} not found: install the Debian package {package}")
        self.program = program

    def words(self, name):
        """What the row of that name says: it may be another program behind it that is missing."""
        own = name.partition("-")[0] in self.program
        return NOT_INSTALLED if own else f"{self.program} {NOT_INSTALLED}"


def which(name):
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")


def missing_of(programs, files):
    return ([package for name, package in programs.items() if not which(name)]
            + [package for path, package in files.items() if not os.path.exists(path)])


def find_missing():
    """Returns the Debian packages that are missing: those that some experiment needs, and those of
    peers."""
    return missing_of(PACKAGES, FILES), missing_of(PEERS, PEER_FILES)


def find_program(name):
    """Returns the path of a program of Debian; fails with the name of its package."""
    path = which(name)
    if path:
        return path
    if name in PEERS:
        raise NotInstalled(name, name, PEERS[name])
    raise Failure(f"{name} not found: install the Debian package {PACKAGES[name]}")


def require_peer_file(path):
    """Fails with the name of its package if a file of a peer is missing."""
    if not os.path.exists(path):
        raise NotInstalled(path, path, PEER_FILES[path])


def find_built(build, *names):
    path = os.path.join(build, *names)
    if not os.access(path, os.X_OK) or os.path.isdir(path):
        raise Failure(f"{path} not found: build the project first, or name its build"
                      " directory with --build or NABC_BUILD")
    return path


def version(argv):
    """Returns the first line of a program's version output, on either stream."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else "unknown"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connects(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def http_connection(address, port, seconds, tls=None):
    """Returns a connection of the standard library; every operation has a timeout."""
    if tls:
        return http.client.HTTPSConnection(address, port, timeout=seconds, context=tls.settings)
    return http.client.HTTPConnection(address, port, timeout=seconds)


def line_starting(path, start):
    with open(path, errors="replace") as file:
        return next((line.strip() for line in file if line.startswith(start)), None)


class Server:
    """A running server and the processes that work for it."""

    passing = False  # some of them come and go with the requests
    own_bodies = False  # it serves other bodies than the experiment's files
    tls = None  # a certificates.Tls: clients use it
    absent = ""  # why it is not there; see Absent
    twins = ()  # the same server by other builds: each row of this one has one of theirs beside it
    required = False  # the experiment cannot leave it out

    def __init__(self, name, directory, cpu):
        self.name = name
        self.directory = os.path.join(directory, name)
        self.cpu = cpu
        self.address = "127.0.0.1"  # where the next run connects
        self.port = free_port()
        self.popens = []
        self.before = None  # what its processes call before they become the server
        self.cpu_then = None  # at the end of its last run
        self.version = "unknown"
        self.detail = ""
        os.mkdir(self.directory)

    @property
    def origin(self):
        """Returns the front of its URLs."""
        return f"{'https' if self.tls else 'http'}://{self.address}:{self.port}"

    def launch(self, argv, label, ready):
        """Starts one process; ready(log) returns true when it is ready."""
        log = os.path.join(self.directory, label + ".log")
        with open(log, "wb") as output:
            popen = process.start(argv, self.cpu, output, self.before)
        self.popens.insert(0, popen)
        process.await_ready(popen, log, lambda: ready(log))
        return log

    def cpu_now(self):
        return process.Cpu([popen.pid for popen in self.popens])

    def check_alive(self):
        for popen in self.popens:
            if popen.poll() is not None:
                name = os.path.basename(popen.args[0])
                raise Failure(f"{self.name}: {name} ended, status {popen.returncode}:\n"
                              + "".join(process.tail(os.path.join(self.directory, log))
                                        for log in sorted(os.listdir(self.directory))
                                        if log.endswith(".log")))

    def stop(self):
        for one in (self, *self.twins):
            process.end(one.popens)
            one.popens = []

    def restart(self):
        if self.absent:
            return
        self.stop()
        for one in (self, *self.twins):
            one.cpu_then = None
            one.begin()


class Absent:
    """Stands for a peer that is not installed: its rows have no figures, and say why."""

    own_bodies, passing, tls, twins, required = True, False, None, (), False
    detail = ""

    def __init__(self, name, why=NOT_INSTALLED):
        self.name = name
        self.version = self.absent = why
        self.popens = []

    def begin(self):
        """There is nothing to begin."""

    stop = restart = check_alive = begin


def peer(name, make, *arguments, **how):
    """Returns what make() makes, or what stands for it if it is not installed."""
    try:
        return make(*arguments, **how)
    except NotInstalled as missing:
        return Absent(name, missing.words(name))


def present(servers):
    """Returns those that run, each with its twins."""
    return [one for server in servers if not server.absent for one in (server, *server.twins)]


class Null(Server):
    """A program that only generates bodies and sends them: the limit."""

    def __init__(self, context):
        super().__init__("null", context.directory, context.server_cpu)
        self.argv = [find_built(context.build, "bench", "null-generate"), str(self.port)]
        self.version = "one process and thread, epoll, no server"

    def begin(self):
        self.launch(self.argv, "null", lambda log: line_starting(log, "null-generate: ready"))


class NullFiles(Server):
    """A program that only sends bodies of one size in the cheapest known way: the limit.

    They are not files; backend is uring or epoll.
    """

    own_bodies = True
    READY = "null-server: ready"
    SPLICE_FROM = 256 << 10  # below, a copy is cheaper than splicing pages
    ANSWER_SECONDS = 60

    def __init__(self, context, backend, count):
        super().__init__("null" if backend == "uring" else "null-" + backend,
                         context.directory, context.server_cpu)
        self.program = find_built(context.build, "bench", "null-server")
        self.backend, self.count = backend, count
        self.size, self.connection = 1 << 10, "kept"
        self.version = f"one process and thread, {backend}, no server"

    def serve(self, size, connection="kept"):
        """Sets the size of bodies from now on, and whether connections are kept."""
        self.size, self.connection = size, connection
        self.port = free_port()  # the old process's ring is freed after its end
        self.restart()

    def arguments(self):
        way = "send" if self.size < self.SPLICE_FROM else "splice"
        return [self.backend, way, self.connection]

    def begin(self):
        argv = [self.program, str(self.port), str(self.size), str(self.count), *self.arguments()]
        log = self.launch(argv, "null", lambda log: line_starting(log, self.READY))
        # It is ready before it knows whether the kernel has io_uring.
        self.try_out(log)

    def try_out(self, log):
        client = http_connection(self.address, self.port, self.ANSWER_SECONDS, self.tls)
        try:
            client.request("GET", "/")
            got = len(client.getresponse().read())
        except (OSError, http.client.HTTPException) as error:
            raise Failure(f"{self.name}: {error!r}: {process.tail(log)}") from error
        finally:
            client.close()
        if got != self.size:
            raise Failure(f"{self.name}: {got} bytes came, not {self.size}")


class NullTls(NullFiles):
    """The same over TLS, by the OpenSSL that SWEET uses."""

    READY = "null-tls: ready"

    def __init__(self, context, count, tls, kind="tls"):
        super().__init__(context, kind, count)
        self.program = find_built(context.build, "bench", self.name)
        self.tls = tls

    def arguments(self):
        return [self.tls.pem]


class NullH2(NullTls):
    """The same with HTTP/2, by the libnghttp2 that SWEET uses."""

    READY = "null-h2: ready"

    def __init__(self, context, count, tls):
        super().__init__(context, count, tls, "h2")

    def try_out(self, log):
        """It has no ring, and speaks no HTTP/1.1."""


class Row:
    """One row of a comparison: a server and the client that loads it."""

    def __init__(self, name, server, client):
        self.name, self.server, self.client = name, server, client


class Sweet(Server):
    """SWEET with one thread; io is auto, uring or epoll.

    twin(context) makes the same server in another context, so subclasses are complete when they
    have been made.
    """

    def __new__(cls, context, *arguments, **how):
        made = super().__new__(cls)
        made.twin = lambda other: cls(other, *arguments, **how)
        return made

    def __init__(self, context, root, io, cache_mib, dynamic=False, name="sweet", arguments=(),
                 tls=None):
        self.label = context.label
        name += "" if io == "auto" else "-" + io
        name += self.label and "-" + self.label
        self.program = find_built(context.build, "sweet", "sweet")
        argv = [self.program, "--listen", "", "--root", root, "--threads", "1",
                "--cache-size", f"{cache_mib}M", "--revalidate", "1000", *arguments]
        if io != "auto":
            argv += ["--io", io]
        if dynamic:
            generate = find_built(context.build, "cgi-examples", "generate")
            argv += ["--worker", "/generate=" + generate, "--workers", str(SWEET_WORKERS)]
        super().__init__(name, context.directory, context.server_cpu)
        argv[2] = f"127.0.0.1:{self.port}"
        if tls:
            self.tls = tls
            argv[2] += ",tls"
            argv += ["--certificate", tls.pem]
        self.argv = argv
        self.responders = None
        self.version = version([self.program, "--version"])

    def enter(self, namespace, address):
        """Serves in a network namespace, on one of its addresses."""
        self.address = address
        self.argv[2] = f"{address}:{self.port}"
        self.argv = namespace.argv(*self.argv)

    def add_responders(self, prefix, responders):
        self.responders = responders
        conf = os.path.join(self.directory, "sweet.conf")
        with open(conf, "w") as file:
            file.write("[sweet]\n"
                       f"[pool responders]\nprotocol=fastcgi\nupstream=unix:{responders.socket}\n"
                       f"in-flight={responders.processes}\nkeep-connection=1h\n"
                       f"[path {prefix}]\npool=responders\n")
        self.argv += ["--config", conf]

    def begin(self):
        if self.responders:
            self.responders.launch()
        ready = "sweet: listening on"
        log = self.launch(self.argv, "sweet", lambda log: line_starting(log, ready))
        self.detail = line_starting(log, ready)
