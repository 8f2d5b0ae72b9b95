# SPDX-License-Identifier: MIT
"""The servers compared: how each is configured, started, measured and ended.

A Server owns its processes and its directory below bench's temporary one.
"""

import os
import pwd
import re
import shutil
import socket
import subprocess

from . import process
from .process import Failure

FCGI_PROCESSES = 8
SWEET_WORKERS = 4
PACKAGES = {"wrk": "wrk", "nginx": "nginx-light", "cc": "gcc"}

# Of nginx: what its documentation recommends for speed, and no log.
NGINX = """\
{user}
daemon off;
worker_processes 1;
pid {dir}/nginx.pid;
error_log {dir}/error.log warn;
events {{
    worker_connections 4096;
}}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    open_file_cache max=10000 inactive=600s;
    open_file_cache_valid 1s;
    client_body_temp_path {dir}/body;
    fastcgi_temp_path {dir}/fastcgi;
    proxy_temp_path {dir}/proxy;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        root {root};
        {location}
    }}
}}
"""

# A whole body has to fit into the buffers: with no file to spill to, nginx
# would otherwise wait for its client and keep the responder waiting.
NGINX_FASTCGI = """\
location = /generate {{
            fastcgi_pass unix:{socket};
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param SCRIPT_NAME $uri;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_param SERVER_PROTOCOL $server_protocol;
            fastcgi_buffering on;
            fastcgi_buffer_size {buffer}k;
            fastcgi_buffers {buffers} {buffer}k;
            fastcgi_busy_buffers_size {busy}k;
            fastcgi_max_temp_file_size 0;
        }}"""
FCGI_BUFFER = 32  # KiB


def find_program(name):
    """Path of a program of Debian, or the package that it is missing from."""
    path = shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    if not path:
        raise Failure(f"{name} not found: install the Debian package {PACKAGES[name]}")
    return path


def find_built(build, *names):
    path = os.path.join(build, *names)
    if not os.access(path, os.X_OK) or os.path.isdir(path):
        raise Failure(f"{path} not found: build the project first, or name its build"
                      " directory with --build or NABC_BUILD")
    return path


def version(argv):
    """First line that a program tells of its version, on whichever stream."""
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


def line_starting(path, start):
    with open(path, errors="replace") as file:
        return next((line.strip() for line in file if line.startswith(start)), None)


class Server:
    """A running server and the processes that work for it."""

    def __init__(self, name, directory, cpu):
        self.name = name
        self.directory = os.path.join(directory, name)
        self.cpu = cpu
        self.address = "127.0.0.1"  # where the next run asks
        self.port = free_port()
        self.popens = []
        self.cpu_then = None  # at the end of its last run
        self.version = "unknown"
        self.detail = ""
        os.mkdir(self.directory)

    def launch(self, argv, label, ready):
        """Starts one process; ready(log) tells when it is."""
        log = os.path.join(self.directory, label + ".log")
        with open(log, "wb") as output:
            popen = process.start(argv, self.cpu, output)
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
        process.end(self.popens)
        self.popens = []


class Sweet(Server):
    """SWEET with one thread; io is auto, uring or epoll."""

    def __init__(self, context, root, io, cache_mib, dynamic):
        name = "sweet" if io == "auto" else "sweet-" + io
        program = find_built(context.build, "sweet", "sweet")
        argv = [program, "--listen", "", "--root", root, "--threads", "1",
                "--cache-size", f"{cache_mib}M", "--revalidate", "1000"]
        if io != "auto":
            argv += ["--io", io]
        if dynamic:
            generate = find_built(context.build, "cgi-examples", "generate")
            argv += ["--worker", "/generate=" + generate, "--workers", str(SWEET_WORKERS)]
        super().__init__(name, context.directory, context.server_cpu)
        argv[2] = f"127.0.0.1:{self.port}"
        self.argv = argv
        self.version = version([program, "--version"])

    def begin(self):
        ready = "sweet: listening on"
        log = self.launch(self.argv, "sweet", lambda log: line_starting(log, ready))
        self.detail = line_starting(log, ready)


class Nginx(Server):
    """nginx with one worker, for files or in front of FastCGI responders."""

    def __init__(self, context, root, dynamic_size=0):
        self.program = find_program("nginx")
        name = "nginx-fastcgi" if dynamic_size else "nginx"
        self.responder = compile_responder(context) if dynamic_size else None
        super().__init__(name, context.directory, context.server_cpu)
        self.socket = os.path.join(self.directory, "fcgi.sock")
        self.version = version([self.program, "-v"])
        location = ""
        if dynamic_size:
            self.version += f", libfcgi {library_version()}"
            buffers = max(8, dynamic_size // (FCGI_BUFFER << 10) + 2)
            self.detail = f"{FCGI_PROCESSES} FastCGI processes, {buffers} buffers of" \
                          f" {FCGI_BUFFER} KiB, a connection per request"
            location = NGINX_FASTCGI.format(socket=self.socket, buffers=buffers,
                                            buffer=FCGI_BUFFER, busy=2 * FCGI_BUFFER)
        user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
        self.conf = os.path.join(self.directory, "nginx.conf")
        with open(self.conf, "w") as file:
            file.write(NGINX.format(user=user, dir=self.directory, port=self.port, root=root,
                                    location=location))

    def begin(self):
        if self.responder:
            self.launch([self.responder, self.socket, str(FCGI_PROCESSES)], "fcgi-generate",
                        lambda log: line_starting(log, "fcgi-generate: ready"))
        self.launch([self.program, "-p", self.directory, "-c", self.conf,
                     "-e", os.path.join(self.directory, "error.log")], "nginx",
                    lambda log: connects(self.port))


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
