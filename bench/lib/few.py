# SPDX-License-Identifier: MIT
"""few: more requests than an application has processes, each of which serves one connection.

In front of processes of libfcgi and of php-fpm; nginx opens a connection for each request, as it
does unless it is told to keep them.
"""

import os

from . import bars, load, report
from .fastcgi import Responders
from .nginx import FASTCGI_VARIABLES, arguments, write_conf
from .servers import NotInstalled, Row, Server, Sweet, connects, peer, which

TIMES = (1, 2, 8)  # as many connections as processes
QUICK_TIMES = (8,)
CACHE_MIB = 16
SIZE = 100
CHECKS = 8
LATENCY, RATE = 1.5, 1  # SWEET's p99 by nginx's, at most; its requests/s by nginx's, at least
BUSY = (2, 8)  # where there are targets

PHP = "<?php echo str_repeat('x', {size});\n"
PHP_FPM = """\
[global]
error_log = {log}
daemonize = no
[www]
{user}listen = {socket}
listen.backlog = 511
pm = static
pm.max_children = {processes}
"""
LOCATION = """\
location /app/ {{
            fastcgi_pass unix:{socket};
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            {variables}
        }}"""
POOL = """\
[pool app]
protocol=fastcgi
upstream=unix:{socket}
[path /app]
pool=app
"""


class PhpFpm:
    """A pool of php-fpm for one server, which connects to its socket."""

    def __init__(self, server, processes):
        self.program = next(filter(None, map(which, ("php-fpm8.4", "php-fpm8.2"))), None)
        if not self.program:
            raise NotInstalled("php-fpm", "php-fpm", "php-fpm")
        self.server, self.processes = server, processes
        self.socket = os.path.join(server.directory, "fcgi.sock")

    def launch(self):
        directory = self.server.directory
        conf = os.path.join(directory, "php-fpm.conf")
        user = "user = root\n" if os.geteuid() == 0 else ""
        with open(conf, "w") as file:
            file.write(PHP_FPM.format(log=os.path.join(directory, "php-fpm.errors"), user=user,
                                      socket=self.socket, processes=self.processes))
        argv = [self.program, "--nodaemonize", "--fpm-config", conf]
        if user:
            argv.append("--allow-to-run-as-root")
        self.server.launch(argv, "php-fpm", lambda log: os.path.exists(self.socket))


class Program:
    """An application: its page, and what it sends."""

    def __init__(self, name, processes, page, body):
        self.name, self.processes, self.page, self.body = name, processes, page, body

    def server(self, name):
        return f"{name}-{self.name}-{self.processes}"

    def make(self, context, server):
        if self.name == "php-fpm":
            return PhpFpm(server, self.processes)
        return Responders(context, server, self.processes)


class SweetFew(Sweet):
    """Settings as they are by default."""

    def __init__(self, context, root, program):
        super().__init__(context, root, context.io[0], CACHE_MIB, name=program.server("sweet"))
        self.responders = program.make(context, self)
        conf = os.path.join(self.directory, "sweet.conf")
        with open(conf, "w") as file:
            file.write(POOL.format(socket=self.responders.socket))
        self.argv += ["--config", conf]


class NginxFew(Server):
    """A connection for each request; one worker."""

    def __init__(self, context, root, program):
        super().__init__(program.server("nginx"), context.directory, context.server_cpu)
        self.responders = program.make(context, self)
        write_conf(self, root, location=LOCATION.format(socket=self.responders.socket,
                                                        variables=FASTCGI_VARIABLES))

    def begin(self):
        self.responders.launch()
        self.launch(arguments(self), "nginx", lambda log: connects(self.port))


def programs():
    # The page of bench/fcgi-generate.c is a pattern; the one of PHP is made like it.
    pattern = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-\n"
    made = (pattern * (SIZE // len(pattern) + 1))[:SIZE]
    return (Program("libfcgi", 8, f"/app/generate?size={SIZE}", made),
            Program("libfcgi", 1, f"/app/generate?size={SIZE}", made),
            Program("php-fpm", 5, "/app/page.php", b"x" * SIZE))


def measure(context):
    root = os.path.join(context.directory, "root")
    os.makedirs(os.path.join(root, "app"))
    with open(os.path.join(root, "app", "page.php"), "w") as file:
        file.write(PHP.format(size=SIZE))
    for program in programs():
        servers = [peer("sweet", SweetFew, context, root, program),
                   peer("nginx", NginxFew, context, root, program)]
        context.start(servers)
        for server in servers:
            if not server.absent:
                load.check(server.name, server.port, [(program.page, program.body)] * CHECKS)
        for times in QUICK_TIMES if context.quick else TIMES:
            connections = times * program.processes
            context.turns({"connections": connections, "program": program.name,
                           "processes": program.processes},
                          [Row(name, server,
                               load.Wrk(context.client_cpu, connections, SIZE, program.page))
                           for name, server in zip(("sweet", "nginx"), servers)])


def verdicts(cases):
    result = []
    for case in cases:
        parameters = case["parameters"]
        if parameters["connections"] // parameters["processes"] not in BUSY:
            continue
        name = report.case_name(case)
        for text, field, bar in ((f"{name}: p99, SWEET : nginx", "p99_us", LATENCY),
                                 (f"{name}: requests/s, SWEET : nginx", "requests_per_s", RATE)):
            if case.get("absent"):
                result += bars.uncompared(case, ("nginx",), text, bar)
                continue
            value = (bars.median(case, bars.sweet_of(case), field)
                     / bars.median(case, "nginx", field))
            if field == "p99_us":
                result.append((text, value, f"at most {bar}", value <= bar))
            else:
                result.append(bars.at_least(text, value, bar))
    return result
