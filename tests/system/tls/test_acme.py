# SPDX-License-Identifier: MIT
"""ACME clients with an authority of their own, pebble: the server shows their answers, gets the
certificate by a reload, and its renewals by the client's hook.  doc/operator.md has the commands."""

import contextlib
import grp
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import threading

import pytest

import tls
from client import Client
from files import write
from programs import Daemon, run
from server import SWEET, TIMEOUT, running
from tools import find

pytestmark = [pytest.mark.clear("these choose what is below"), pytest.mark.needs("pebble")]

NAME = "test.example"
HERE = "127.0.0.1"


class Names:
    """Answers all questions for an IPv4 address with 127.0.0.1, other questions with nothing."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((HERE, 0))
        self.address = "%s:%d" % self.socket.getsockname()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            question, peer = self.socket.recvfrom(4096)
            if not question:
                return
            # RFC 1035, section 4.1: the header, the name, its type and class.
            end = question.index(0, 12) + 5
            wanted = question[end - 4:end] == b"\0\1\0\1"
            self.socket.sendto(question[:2] + b"\x81\x80\0\1" + (b"\0\1" if wanted else b"\0\0")
                               + b"\0\0\0\0" + question[12:end]
                               + (b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton(HERE)
                                  if wanted else b""), peer)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.socket.sendto(b"", self.socket.getsockname())
        self.thread.join(TIMEOUT)
        self.socket.close()


class Site:
    """A server that an authority validates, and its configuration."""

    def __init__(self, folder):
        self.folder = folder
        # Keys belong to a group that may read them; only root can choose one.
        self.group = grp.getgrnam("nogroup").gr_gid if os.geteuid() == 0 else os.getegid()
        self.challenges = folder / "acme/.well-known/acme-challenge"
        self.answers = folder / "answers"
        for one in (self.challenges, self.answers, folder / "root", folder / "home"):
            one.mkdir(parents=True)
        write(folder / "root/index.html", b"page\n")
        self.path = folder / "sweet.conf"
        # Something to begin with, as an operator needs it too.
        self.configure(tls.file("ec.pem"), tls.file("ec.key"))

    def configure(self, certificate, key):
        fresh = self.folder / "fresh.conf"
        fresh.write_text(f"""[sweet]
listen={HERE}:0;{HERE}:0,tls
root={self.folder}/root
certificate={certificate}
key={key}
redirect=301 tls
tls-alpn-01={self.answers}
log-level=info
keep-alive-timeout=1h
pid-file={self.folder}/pid

[path /.well-known/acme-challenge]
alias={self.challenges}
redirect=off
""")
        fresh.replace(self.path)

    @contextlib.contextmanager
    def running(self):
        with running("epoll", None, "--config", self.path, listen=None) as self.server:
            ready = self.server.errors.wait("listening on https://")
            self.tls_port = int(re.search(r":(\d+)/", ready)[1])
            yield

    def reload(self):
        return f"{SWEET} --reload {self.folder}/pid"

    def connect(self):
        settings = tls.context()
        settings.verify_mode = ssl.CERT_NONE
        return Client(self.tls_port, secure={"name": NAME, "settings": settings})

    def shown(self):
        """Returns the certificate that a client gets."""
        with self.connect() as client:
            return client.socket.getpeercert(binary_form=True)


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    with made.running():
        yield made


@pytest.fixture
def directory(site):
    """The address of an authority that validates what the server shows."""
    def command(port):
        path = site.folder / "pebble.json"
        path.write_text(json.dumps({"pebble": {
            "listenAddress": f"{HERE}:{port}", "managementListenAddress": "",
            "certificate": tls.file("ec.pem"), "privateKey": tls.file("ec.key"),
            "httpPort": site.server.port, "tlsPort": site.tls_port}}))
        return ["env", "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0", "PEBBLE_AUTHZREUSE=0",
                find("pebble"), "-config", path, "-dnsserver", names.address]

    with Names() as names, Daemon(command, site.folder) as pebble:
        yield f"https://{HERE}:{pebble.port}/dir"


class AcmeClient:
    """command(): runs it, without a proxy and with trust in pebble."""

    def __init__(self, site, directory):
        self.site, self.directory = site, directory
        self.home = site.folder / "home"

    def command(self, *arguments):
        own = {name: value for name, value in os.environ.items()
               if not name.lower().endswith("_proxy")}
        trust = ("REQUESTS_CA_BUNDLE", "LEGO_CA_CERTIFICATES", "CURL_CA_BUNDLE")
        run(find(self.name), *arguments, cwd=self.home, stdin=subprocess.DEVNULL,
            env={**own, "HOME": str(self.home), **dict.fromkeys(trust, tls.file("authority.pem"))})


class Certbot(AcmeClient):
    name = "certbot"

    def prepare(self):
        self.folders = [part for kind in ("config", "work", "logs")
                        for part in (f"--{kind}-dir", self.home / kind)]
        live = self.home / "config/live" / NAME
        self.certificate, self.key = live / "fullchain.pem", live / "privkey.pem"

    def issue(self):
        self.command("certonly", "--webroot", "-w", self.site.folder / "acme", "-d", NAME,
                     "--deploy-hook", self.site.reload(), "--server", self.directory, "--agree-tos",
                     "--register-unsafely-without-email", "--non-interactive", *self.folders)

    def renew(self):
        self.command("renew", "--force-renewal", "--no-random-sleep-on-renew", *self.folders)


class Lego(AcmeClient):
    name = "lego"

    def prepare(self):
        self.options = ["--server", self.directory, "--email", f"hostmaster@{NAME}", "--accept-tos",
                        "--path", self.home, "--domains", NAME, "--http", "--http.webroot",
                        self.site.folder / "acme"]
        self.certificate = self.home / "certificates" / f"{NAME}.crt"
        self.key = self.home / "certificates" / f"{NAME}.key"

    def issue(self):
        self.command(*self.options, "run", "--run-hook", self.site.reload())

    def renew(self):
        self.command(*self.options, "renew", "--days", "9999", "--no-random-sleep", "--renew-hook",
                     self.site.reload())


class Dehydrated(AcmeClient):
    name = "dehydrated"
    challenge = "http-01"

    def prepare(self):
        self.certificate, self.key = self.home / "cert.pem", self.home / "key.pem"
        hook = self.home / "hook.sh"
        hook.write_text(f"""#!/bin/sh
[ "$1" = deploy_cert ] || exit 0
install -m 644 "$5" {self.certificate} &&
install -m 640 -g {self.site.group} "$3" {self.key} &&
{self.site.reload()}
""")
        hook.chmod(0o755)
        self.config = self.home / "config"
        # A key of the account of 4096 bits, the default, takes seconds.
        self.config.write_text(f"""CA="{self.directory}"
BASEDIR={self.home}
CHALLENGETYPE="{self.challenge}"
WELLKNOWN={self.site.challenges}
ALPNCERTDIR={self.site.answers}
HOOK={hook}
KEYSIZE=2048
""")
        (self.home / "domains.txt").write_text(f"{NAME}\n")
        self.command("--register", "--accept-terms", "-f", self.config)

    def issue(self):
        self.command("--cron", "-f", self.config)

    def renew(self):
        self.command("--cron", "--force", "-f", self.config)


class DehydratedByTls(Dehydrated):
    challenge = "tls-alpn-01"


def first_of(path):
    """Returns the first certificate of a file."""
    text = pathlib.Path(path).read_text()
    end = text.index(ssl.PEM_FOOTER) + len(ssl.PEM_FOOTER)
    return ssl.PEM_cert_to_DER_cert(text[text.index(ssl.PEM_HEADER):end])


def check(client):
    """The first certificate comes by a change of the configuration, the next one by the hook."""
    site = client.site
    client.prepare()
    client.issue()
    site.configure(client.certificate, client.key)
    run(*site.reload().split())
    first = first_of(client.certificate)
    assert site.shown() == first
    key = client.key.resolve()
    os.chown(key, -1, site.group)
    key.chmod(0o640)
    with site.connect() as kept:
        assert kept.get("/").status == 200
        client.renew()
        second = first_of(client.certificate)
        assert second != first
        assert site.shown() == second
        assert kept.get("/").status == 200
    # A renewed key has the group and the mode of the last one.
    status = client.key.stat()
    assert (status.st_gid, status.st_mode & 0o777) == (site.group, 0o640)
    assert not any(site.challenges.iterdir()) and not any(site.answers.iterdir())


@pytest.mark.needs("certbot")
def test_certbot(site, directory):
    check(Certbot(site, directory))


@pytest.mark.needs("lego")
def test_lego(site, directory):
    check(Lego(site, directory))


@pytest.mark.needs("dehydrated")
def test_dehydrated(site, directory):
    check(Dehydrated(site, directory))


@pytest.mark.needs("dehydrated")
def test_dehydrated_by_tls(site, directory):
    check(DehydratedByTls(site, directory))
    assert site.server.errors.count("answered the challenge tls-alpn-01") >= 2
