# SPDX-License-Identifier: MIT
"""What a test of a recipe has: the page's configuration in a running server, folders of Debian's
that are its own, daemons, and users who visit the site."""

import shutil
import subprocess

import namespace
import selection
import server as servers
import tls
from page import Page
from programs import Service
from visitor import Visitor

# The server is neither root nor the owner of the files; its group may connect to php-fpm, as
# SupplementaryGroups=www-data of a service permits.
USER = ["--user", "nobody", "--group", "www-data"]
# The usual ports: the network is the test's own.
LISTEN, SECURE = "127.0.0.1:80", "127.0.0.1:443,tls"


def installed(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", package],
                          capture_output=True, text=True, check=False)
    return done.stdout == "installed"


class Recipe:
    def __init__(self, name, folder):
        self.page = Page(name)
        self.folder = folder
        self.kind = next(kind for kind in servers.KINDS if not selection.why_not(kind))
        self.services = []
        self.server = None

    def lacks(self):
        """Returns a line that names what is missing, or nothing."""
        if not shutil.which("dpkg-query"):
            return "this is not Debian, whose packages the recipes are about"
        missing = [package for package in self.page.packages if not installed(package)]
        return missing and (f"{missing[0]} is missing; on Debian: apt-get install "
                            f"{' '.join(missing)}") or ""

    def cover(self, path, empty=False):
        """Gives the test a copy of a folder of the machine, or an empty folder, at its path."""
        namespace.cover(path, self.folder / path.strip("/").replace("/", "-"), empty)

    def daemon(self, command, address, **how):
        """Starts a server that the site needs, at a port or a Unix socket; returns it when it
        answers there.  It ends with the test."""
        log = self.folder / f"{len(self.services)}.log"
        self.services.append(Service(command, address, log, **how))
        service = self.services[-1]
        assert service.answers(), f"{command[0]} has not started: {service.said()}"
        return service

    def run(self, *command, **how):
        """Runs a command, which must end well; returns its output."""
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False,
                              timeout=10 * servers.TIMEOUT, **{"stdin": subprocess.DEVNULL, **how})
        assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {done.stdout[-3000:]}"
        return done.stdout

    def start(self, *options):
        """Starts the server with the configuration of the page."""
        path = self.folder / "recipe.conf"
        path.write_text(self.page.configuration)
        self.server = servers.Server(
            self.kind, None, "--config", path, *USER, "--listen", SECURE, *tls.options(),
            "--log-level", "info", "--access-log", self.folder / "access.log", *options,
            listen=LISTEN, cwd="/")
        return self.server

    def visitor(self, host, scheme="http"):
        return Visitor(host, scheme)

    def sections(self):
        """For a test that failed: (title, text) for each daemon."""
        for service in self.services:
            yield service.process.args[0], service.said()

    def stop(self):
        """Ends everything, the newest first; asserts that the server ended well."""
        try:
            if self.server:
                self.server.stop()
        finally:
            for service in reversed(self.services):
                service.stop()


def is_short(page, nginx):
    """nginx: the number of lines of the configuration for nginx in the application's documentation,
    or elsewhere as the test says, without empty lines, comments, and lines that are only a brace."""
    assert page.lines() <= nginx, f"{page.lines()} lines, nginx's: {nginx}"
