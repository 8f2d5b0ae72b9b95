# SPDX-License-Identifier: MIT
"""doc/haproxy.cfg, with other addresses: HAProxy in front of three SWEETs.

Each file is asked of one server; one that is away takes its share alone along;
one that is replaced under load costs no request.
"""

import collections
import contextlib
import hashlib
import http.client
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

import website
from client import Client, fetch, http_connection
from files import write
from ports import free_port
from programs import Daemon, not_under_valgrind
from server import TIMEOUT, Server, running
from spellings import STATUS
from tools import find

pytestmark = [not_under_valgrind, pytest.mark.needs("haproxy")]
CONFIGURATION = os.path.join(os.environ["srcdir"], "doc", "haproxy.cfg")
# Addresses of their own: nobody's connection takes a port away meanwhile.
HOSTS = ["127.66.0.1", "127.66.0.2", "127.66.0.3"]
CLIENTS = ["127.77.0.1", "127.77.0.2", "127.77.0.3", "127.77.0.4"]
STATUS_PORT = free_port()
LINE = re.compile(r'^(\S+) \[[^]]*\] "GET (\S+) HTTP/1\.1" (\d+) ')


def until(good):
    """Waits for what another process does without a word."""
    deadline = time.monotonic() + TIMEOUT
    while not good():
        assert time.monotonic() < deadline, good
        time.sleep(0.02)


def read_configuration():
    with open(CONFIGURATION) as file:
        return file.read()


class Instance:
    """One of the three; when started again it has the same address as before."""

    def __init__(self, number, root, folder):
        self.number, self.root = number, root
        self.log = folder / f"access-{number}"
        self.address = f"{HOSTS[number]}:0"
        self.start()

    def start(self):
        # One tells that it leaves before it does; of the others HAProxy learns by errors.
        delay = "1200ms" if self.number == 0 else "0"
        self.server = Server("epoll", self.root, "--access-log", self.log, "--threads", 1,
                             "--proxy-protocol", "127.0.0.1/32", "--drain-delay", delay,
                             "--status-listen", f"{HOSTS[self.number]}:{STATUS_PORT}", listen=self.address)
        self.address = f"{HOSTS[self.number]}:{self.server.port}"

    def lines(self):
        """(client, path, status) of each request by one of CLIENTS."""
        lines = (LINE.match(line) for line in self.log.read_text().splitlines())
        return [line.groups() for line in lines if line and line[1] in CLIENTS]

    def has_its_share(self):
        """Of what the other clients want."""
        return self.log.read_text().count('"GET /sizes/') > 100

    def forget(self):
        os.truncate(self.log, 0)


class Cluster:
    """The three and what is in front of them."""

    def __init__(self, site, folder, stack):
        self.instances = []
        for number in range(len(HOSTS)):
            self.instances.append(Instance(number, os.fsdecode(site.root), folder))
            stack.callback(lambda last=self.instances[-1]: last.server.stop())
        self.daemon = stack.enter_context(Daemon(lambda port: self.command(port, folder), folder))
        self.port = self.daemon.port
        # Its checks begin some time after it listens.
        for instance in self.instances:
            self.wait_for(instance, "UP")

    def command(self, port, folder):
        text = read_configuration()
        changes = [("check port 8081 ", f"check port {STATUS_PORT} "), ("bind :80\n", f"bind 127.0.0.1:{port}\n"),
                   ("maxconn 20000\n", f"maxconn 1000\n    stats socket {folder}/admin\n")]
        changes += [(f"10.0.0.1{instance.number + 1}:8080\n", instance.address + "\n")
                    for instance in self.instances]
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        self.admin = folder / "admin"
        return [find("haproxy"), "-db", "-f", write(folder / "haproxy.cfg", text.encode())]

    def state(self, instance):
        """What HAProxy thinks of it, such as "UP" or "DOWN 1/2"; and when checked last."""
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as asking:
            # It answers clients before there is this socket.
            until(lambda: asking.connect_ex(str(self.admin)) == 0)
            asking.sendall(b"show stat -1 4 -1\n")
            said = asking.makefile().read()
        names, *rows = [row.split(",") for row in said.lstrip("# ").splitlines() if row]
        for row in rows:
            found = dict(zip(names, row))
            if found["svname"] == f"sweet{instance.number + 1}":
                return found
        raise AssertionError(said)

    def wait_for(self, instance, state):
        until(lambda: (found := self.state(instance))["status"].startswith(state)
              and found["check_status"] in ("L7OK", "L4CON", "L7STS", "L4TOUT", "L6RSP", "L7RSP"))

    def fetch_all(self, files):
        """Every file by one of the clients; the bytes must be right."""
        wrong = []

        def fetch(number):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT,
                                                    source_address=(CLIENTS[number], 0))
            for file in files[number::len(CLIENTS)]:
                connection.request("GET", file.url)
                answer = connection.getresponse()
                data = answer.read()
                if answer.status != 200 or hashlib.sha256(data).hexdigest() != file.digest:
                    wrong.append((file, answer.status))
            connection.close()

        threads = [threading.Thread(target=fetch, args=(number,), daemon=True)
                   for number in range(len(CLIENTS))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * TIMEOUT)
            assert not thread.is_alive()
        assert wrong == []

    def shares(self, files, times=1):
        """Path to the number of the server that was asked for it, after that many
        fetches of all; the logs are emptied."""
        until(lambda: sum(len(one.lines()) for one in self.instances) >= times * len(files))
        shares = {}
        for instance in self.instances:
            for client, path, status in instance.lines():
                assert status == "200", (client, path)
                assert shares.setdefault(path, instance.number) == instance.number, path
            instance.forget()
        assert set(shares) == {file.url for file in files}
        return shares


@pytest.fixture(scope="module")
def files(site):
    """Those whose lines in the log are whole."""
    return [file for file in site.files if len(file.url) < 900]


@pytest.fixture(scope="module")
def cluster(site, tmp_path_factory):
    with contextlib.ExitStack() as stack:
        yield Cluster(site, tmp_path_factory.mktemp("haproxy"), stack)


def test_each_caches_its_share(cluster, files):
    for _ in range(2):
        cluster.fetch_all(files)
    shares = cluster.shares(files, 2)
    counts = collections.Counter(shares.values())
    assert min(counts[instance.number] for instance in cluster.instances) > len(files) // 5


def test_one_that_is_away_takes_its_share_along(cluster, files):
    cluster.fetch_all(files)
    before = cluster.shares(files)
    away = cluster.instances[1]
    away.server.stop(signal.SIGTERM)
    cluster.wait_for(away, "DOWN")
    cluster.fetch_all(files)
    without = cluster.shares(files)
    assert set(without.values()) == {0, 2}
    moved = {path for path in before if without[path] != before[path]}
    assert moved == {path for path in before if before[path] == 1}
    away.start()
    cluster.wait_for(away, "UP")
    cluster.fetch_all(files)
    assert cluster.shares(files) == before


def test_no_spelling_shows_the_status(cluster, tmp_path):
    """By the rule of the file, also where a server has no status-listen and no PROXY protocol, so that
    all clients are HAProxy, whose address the server trusts."""
    for target in STATUS:
        assert fetch(cluster.port, target).status == 403, target
    for instance in cluster.instances:
        with Client(STATUS_PORT, address=HOSTS[instance.number], source="127.77.0.1") as client:
            assert client.get("/.sweet/status").status == 200
    (tmp_path / "root").mkdir()
    with running("epoll", tmp_path / "root") as plain:
        text = read_configuration().replace("send-proxy-v2 check-send-proxy", "")
        text = re.sub(r"    server sweet[23] .*\n", "", text)
        text = text.replace("maxconn 20000", "maxconn 1000")
        text = text.replace("10.0.0.11:8080", f"127.0.0.1:{plain.port}")
        text = text.replace("check port 8081", f"check port {plain.port}")
        shown = [target for target in STATUS if fetch(plain.port, target).status == 200]
        assert shown == STATUS

        def command(port):
            bound = text.replace("bind :80\n", f"bind 127.0.0.1:{port}\n")
            return [find("haproxy"), "-db", "-f", write(tmp_path / "plain.cfg", bound.encode())]

        with Daemon(command, tmp_path) as daemon:
            # Without a server HAProxy answers 503.
            until(lambda: fetch(daemon.port, "/other").status == 404)
            for target in STATUS:
                assert fetch(daemon.port, target).status == 403, target


class Checking:
    """A client that compares all that it gets, until it is told to end."""

    def __init__(self, port, files):
        self.port, self.files = port, files
        self.good, self.wrong, self.ending = 0, [], False
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        connection = http_connection(self.port)
        try:
            while not self.ending:
                file = self.files[self.good % len(self.files)]
                connection.request("GET", file.url)
                answer = connection.getresponse()
                data = answer.read()
                if answer.status != 200 or hashlib.sha256(data).hexdigest() != file.digest:
                    self.wrong.append((file, answer.status))
                self.good += 1
        except (OSError, http.client.HTTPException) as error:
            self.wrong.append(error)
        connection.close()

    def some(self, count):
        """Waits for that many more responses."""
        wanted = self.good + count
        until(lambda: self.good >= wanted or self.wrong)

    def end(self):
        self.ending = True
        self.thread.join(2 * TIMEOUT)


def test_replaced_under_load(cluster, site, files, tmp_path):
    """SIGTERM to each in turn while requests come; another takes its place."""
    files = [file for file in files if file.size < 200000]
    write(tmp_path / "list", "".join(
        f"{file.url}\t{site.path(file)}\n" for file in files if b"odd" not in file.path).encode())
    wrk = subprocess.Popen(["wrk", "-t1", "-c16", f"-d{5 * TIMEOUT}s", "--timeout", f"{TIMEOUT}s", "-s",
                            website.LUA, f"http://127.0.0.1:{cluster.port}", tmp_path / "list"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    checking = [Checking(cluster.port, files) for _ in range(2)]
    try:
        for instance in cluster.instances:
            for one in checking:
                one.some(50)
            instance.server.stop(signal.SIGTERM)
            instance.forget()
            instance.start()
            cluster.wait_for(instance, "UP")
            until(instance.has_its_share)
    finally:
        for one in checking:
            one.end()
        wrk.send_signal(signal.SIGINT)
        said = wrk.communicate(timeout=TIMEOUT)[0].decode()
    assert [one.wrong for one in checking] == [[], []]
    assert "site wrong=0 missing=0 errors=0\n" in said
    assert "Non-2xx" not in said
