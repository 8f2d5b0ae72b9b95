# SPDX-License-Identifier: MIT
"""Answers of programs that are kept: for how long and for whom, one call for
many clients, an old one while a new one is fetched, and what ends them.

The worker (worker-told.c) answers as the query says; the first word of a body
is the number of its call, so that an answer that was kept shows."""

import email.utils
import http.client
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import time

import pytest

from client import Client, fetch, request
from files import MB, write
from server import BUILD, SCALE, TIMEOUT, running

TOLD = os.path.join(BUILD, "tests", "system", "worker-told")
NABCCTL = os.path.abspath(os.path.join(BUILD, "nabcctl", "nabcctl"))


class Site:
    """A server with a worker in one process, below paths with rules of their own."""

    def __init__(self, server, folder):
        self.server = server
        self.folder = folder
        self.port = server.port

    def get(self, target, fields="", method="GET"):
        return fetch(self.port, target, method, fields)

    def call(self, target, fields="", method="GET"):
        """The number of the call that the answer came from."""
        got = self.get(target, fields, method)
        assert got.status == 200, got.head
        return int(got.body.split()[0])

    def is_kept(self, target, fields=""):
        return self.call(target, fields) == self.call(target, fields)

    def counters(self):
        return self.server.status()["answers"]

    def purge(self, *names):
        done = subprocess.run(
            [NABCCTL, "--cache", self.folder / "socket", "--json", "purge", *names],
            capture_output=True, timeout=TIMEOUT, check=True,
        )
        return json.loads(done.stdout)["purged"]



@pytest.fixture(scope="module")
def site(kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    config = folder / "sweet.conf"
    write(config, f"""[sweet]
cache-socket={folder}/socket
worker=/w={TOLD}
workers=1
[path /w/r]
cache=response
[path /w/t]
cache=30s
[path /w/off]
cache=off
""".encode())
    with running(kind, folder, "--config", config) as server:
        yield Site(server, folder)


class Gate:
    """A FIFO at which the worker waits; who was let before need not."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = path
        self.end = os.open(path, os.O_RDWR)

    def let(self, calls=1):
        os.write(self.end, calls * b"x")

    def await_comer(self, pids):
        """Until one of the processes stands at it."""
        deadline = time.monotonic() + TIMEOUT
        while not any(map(self.has_come, pids)):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def has_come(self, pid):
        try:
            return any(os.readlink(end) == str(self.path)
                       for end in pathlib.Path(f"/proc/{pid}/fd").iterdir())
        except FileNotFoundError:
            return False

    def close(self):
        os.close(self.end)


@pytest.fixture
def gate(tmp_path):
    gate = Gate(tmp_path / "gate")
    yield gate
    gate.close()


# --- which are kept --------------------------------------------------------------------------


@pytest.mark.parametrize("target, kept", [
    ("/w/r/a?Cache-Control:max-age=30", True),
    ("/w/r/a?Cache-Control:s-maxage=30", True),
    ("/w/r/a?Expires:Fri,+31+Dec+9999+23:59:59+GMT", True),
    ("/w/r/a?X-NABC-Max-Age:30&Cache-Control:no-store", True),
    ("/w/r/a", False),
    ("/w/r/a?Cache-Control:no-store", False),
    ("/w/r/a?Cache-Control:private,+max-age=30", False),
    ("/w/r/a?Cache-Control:no-cache", False),
    ("/w/r/a?Cache-Control:max-age=0", False),
    ("/w/r/a?Cache-Control:max-age=30&Vary:*", False),
    ("/w/r/a?Cache-Control:max-age=30&Set-Cookie:a=b", False),
    ("/w/t/a", True),
    ("/w/t/a?Cache-Control:no-store", False),
    ("/w/t/a?Set-Cookie:a=b", False),
    ("/w/off/a?Cache-Control:max-age=30&X-NABC-Max-Age:30", False),
    ("/w/a?Cache-Control:max-age=30", False),
])
def test_rules(site, target, kept):
    site.purge("/*")
    assert site.is_kept(target) == kept


def test_marked_from_the_second_on(site):
    target = "/w/marked?X-NABC-Max-Age:30"
    first, second = site.call(target), site.call(target)
    assert first != second
    assert site.call(target) == second


def test_statuses(site):
    for status, kept in [(404, True), (301, True), (500, False), (302, False), (206, False)]:
        target = f"/w/t/status?status={status}&Location:/x"
        one, other = site.get(target), site.get(target)
        assert (one.status, other.status) == (status, status)
        assert (one.body == other.body) == kept
    target = "/w/t/status?status=204"
    before = site.counters()["hits"]
    assert [site.get(target).status for _ in range(3)] == [204] * 3
    assert site.counters()["hits"] == before + 2


def test_the_same_answer(site):
    target = "/w/r/same?Cache-Control:max-age=30&Content-Type:text/x-a&X-B:c&size=5000"
    one, other = site.get(target), site.get(target)
    assert one.body == other.body and len(one.body) > 5000
    assert "Age" not in one and 0 <= int(other["Age"]) < 30
    for name in ("Content-Type", "X-B", "Cache-Control", "Content-Length"):
        assert one[name] == other[name]
    assert "X-NABC-Max-Age" not in other
    head = site.get(target, method="HEAD")
    assert (head.status, head["Content-Length"]) == (200, str(len(one.body)))


def test_query_and_host_tell_apart(site):
    target = "/w/r/key?Cache-Control:max-age=30"
    first = site.call(target)
    assert site.call(target + "&") != first
    assert site.call("/w/r/keY?Cache-Control:max-age=30") != first
    with Client(site.port) as client:
        client.send(f"GET {target} HTTP/1.1\r\nHost: other\r\n\r\n".encode())
        assert int(client.response().body.split()[0]) != first
    assert site.call(target) == first


PLACES = """[sweet]
cache-socket={folder}/socket
[host one]
names=name.example
listen=127.0.0.1:0
[host other]
names=name.example
listen=127.0.0.2:0
[pool first]
protocol=worker
command={worker}
processes=1
[pool second]
protocol=worker
command={worker} {folder}
processes=1
[path one/w]
pool=first
cache=response
[path one/w/below]
pool={pool}
[path other/w]
pool=first
cache=response
"""


def test_places_tell_apart(kind, tmp_path):
    """Nothing is given to others than those for whom it was made: neither by another address,
    host or scope, nor when a reload gives the path to another pool."""
    config = tmp_path / "sweet.conf"

    def write_config(pool):
        write(config, PLACES.format(folder=tmp_path, worker=TOLD, pool=pool).encode())

    write_config("first")
    with running(kind, tmp_path, "--config", config, "--listen", "127.0.0.2:0") as server:
        site = Site(server, tmp_path)
        assert server.errors.wait("listening on ", 2)
        ports = dict(re.findall(r"http://(127\.0\.0\.\d):(\d+)/", server.errors.text()))

        def call(address, target="/w/a?Cache-Control:max-age=600", host="name.example"):
            with Client(int(ports[address]), address=address) as client:
                head = f"GET {target} HTTP/1.1\r\nHost: {host}\r\n" if host else (
                    f"GET {target} HTTP/1.0\r\n")
                client.send(f"{head}\r\n".encode())
                return int(client.response().body.split()[0])

        one, other = call("127.0.0.1"), call("127.0.0.2")
        assert one != other
        assert (call("127.0.0.1"), call("127.0.0.2")) == (one, other)
        # A program sees whether a host was named.
        named = f"127.0.0.1:{ports['127.0.0.1']}"
        bare = call("127.0.0.1", host=None)
        assert call("127.0.0.1", host=None) == bare != call("127.0.0.1", host=named)
        assert site.purge(f"http://{named}/w/a?Cache-Control:max-age=600") == 2
        assert site.purge("http://name.example/w/a?Cache-Control:max-age=600") == 2
        assert call("127.0.0.1") != one and call("127.0.0.2") != other
        # The other pool's process counts its calls from one.
        below = "/w/below/a?Cache-Control:max-age=600"
        first = call("127.0.0.1", below)
        assert call("127.0.0.1", below) == first > 1
        write_config("second")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded ")
        assert call("127.0.0.1", below) == 1


def test_vary(site):
    target = "/w/r/vary?Cache-Control:max-age=30&Vary:Accept-Language"
    calls = {}
    for _ in range(3):
        for language in ("de", "en", "fr"):
            got = site.get(target, f"Accept-Language: {language}\r\n").body.split()
            assert got[2].decode() == language
            assert calls.setdefault(language, got[0]) == got[0]
    assert len(set(calls.values())) == 3


def test_authorization(site):
    with_password = "Authorization: Basic eDp5\r\n"
    private = "/w/r/auth?Cache-Control:max-age=30"
    kept = site.call(private)
    assert site.call(private) == kept
    assert not site.is_kept(private, with_password)
    public = "/w/r/auth?Cache-Control:public,+max-age=30"
    assert site.is_kept(public, with_password)
    assert site.call(public) == site.call(public, with_password)


def test_expires(site):
    target = "/w/r/expires?Cache-Control:max-age=1"
    first = site.call(target)
    deadline = time.monotonic() + TIMEOUT
    while site.call(target) == first:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_large(site):
    target = f"/w/r/large?Cache-Control:max-age=30&size={3 * MB}"
    one, other = site.get(target), site.get(target)
    assert one.body == other.body
    # Too large to be copied: not kept, but whole.
    target = f"/w/r/large?Cache-Control:max-age=30&size={6 * MB}"
    one, other = site.get(target), site.get(target)
    assert one.body != other.body and len(one.body) == len(other.body)


def test_long_head(site):
    """All that a head has room for is passed on; what a hit can add its lines to is kept."""
    def ask(length):
        target = "/w/r/long?Cache-Control:max-age=30&X-A:"
        return site.get(target + "a" * (length - len("Cache-Control: max-age=30\r\nX-A: \r\n")))
    pairs = {length: (ask(length), ask(length))
             for length in (7000, *range(7992, 8065, 8), 7890, 7936, 7937)}
    for length, (one, other) in pairs.items():
        assert (one.status, other.status, one["X-A"]) == (200, 200, other["X-A"])
        assert (one.body == other.body) == (length == 7000), length


def test_hit_ratio(site):
    site.purge("/*")
    before = site.counters()
    with Client(site.port) as client:
        for number in range(1000 // SCALE):
            client.get(f"/w/t/ratio?{number % 10}")
    after = site.counters()
    assert after["misses"] - before["misses"] == 10
    assert after["hits"] - before["hits"] == 1000 // SCALE - 10


# --- conditions and ranges -------------------------------------------------------------------


def test_conditions(site):
    target = '/w/r/etag?Cache-Control:max-age=30&ETag:"v1"&Content-Type:text/x-a'
    first = site.call(target)
    got = site.get(target, 'If-None-Match: "v0", W/"v1"\r\n')
    assert (got.status, got["ETag"], got["Cache-Control"]) == (304, '"v1"', "max-age=30")
    assert "Content-Type" not in got and "Age" in got
    assert site.call(target, 'If-None-Match: "v2"\r\n') == first
    assert site.get(target, 'If-Match: "v2"\r\n').status == 412
    # There is no date to compare.
    assert site.call(target, "If-Modified-Since: Fri, 31 Dec 9999 23:59:59 GMT\r\n") == first
    # The program is not told what this one client has, or its 304 would be kept.
    site.purge("/w/r/etag*")
    got = site.get(target, 'If-None-Match: "v1"\r\n')
    assert (got.status, got.body.split()[3]) == (200, b"-")
    assert site.get(target, 'If-None-Match: "v1"\r\n').status == 304


def test_range(site):
    target = "/w/r/range?Cache-Control:max-age=30&size=1000"
    # Of what is not there the program is asked for the part.
    assert site.get(target, "Range: bytes=0-3\r\n").body.split()[4] == b"bytes=0-3"
    whole = site.get(target)
    got = site.get(target, "Range: bytes=-100\r\n")
    length = len(whole.body)
    assert (got.status, got.body) == (206, whole.body[-100:])
    assert got["Content-Range"] == f"bytes {length - 100}-{length - 1}/{length}"
    assert site.get(target, "Range: bytes=1-2,4-5\r\n").body == whole.body
    # Nothing of it, as with a file.
    for fields in (f"Range: bytes={length}-\r\n", "Range: bytes=9999-10000,5000-\r\n"):
        got = site.get(target, fields)
        assert (got.status, got["Content-Range"]) == (416, f"bytes */{length}")
        assert "Age" not in got and "X-B" not in got
    assert site.get(target, f"Range: bytes={length}-\r\n", "HEAD").status == 200
    assert site.get(target, f'Range: bytes={length}-\r\nIf-Range: "x"\r\n').status == 200
    assert site.get(target).body == whole.body


@pytest.mark.parametrize("what", ['ETag:W/"v"', "mixed", "status=404"])
def test_range_of_others(site, what):
    """A weak tag does not stand in the way of a range, but it is no condition of one; what is
    no representation has no ranges."""
    target = f"/w/r/others?Cache-Control:max-age=30&size=1000&{what}"
    whole = site.get(target)
    beyond = site.get(target, "Range: bytes=99999-\r\n")
    assert beyond.status == (404 if "404" in what else 416)
    if "ETag" in what:
        got = site.get(target, "Range: bytes=1-2\r\n")
        assert (got.status, got.body) == (206, whole.body[1:3])
        got = site.get(target, 'Range: bytes=1-2\r\nIf-Range: W/"v"\r\n')
        assert (got.status, got.body) == (200, whole.body)
    site.get("/w/other?destroy")


# --- age -------------------------------------------------------------------------------------


def age_of(answer):
    return int(answer["Age"])


def date_of(answer):
    return email.utils.parsedate_to_datetime(answer["Date"]).timestamp()


def test_date_stays(site):
    """Age counts from the Date beside it: a cache behind this one would count twice."""
    target = '/w/r/date?Cache-Control:max-age=600&ETag:"v"'
    site.get(target)
    one = site.get(target)
    deadline = time.monotonic() + TIMEOUT
    while age_of(site.get(target)) <= age_of(one):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for fields in ("", "Range: bytes=0-1\r\n", 'If-None-Match: "v"\r\n'):
        assert site.get(target, fields)["Date"] == one["Date"]
    # An answer of the server's own has a date of its own.
    while date_of(site.get(target, "If-Match: x\r\n")) <= date_of(one):
        assert time.monotonic() < deadline
        time.sleep(0.05)


OLD = "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize("date, sent", [
    (OLD, OLD),
    ("Sunday, 06-Nov-94 08:49:37 GMT", OLD),
    ("Sun Nov  6 08:49:37 1994", OLD),
    ("Fri, 31 Dec 9999 23:59:59 GMT", None),
    ("yesterday", None),
    (f"{OLD}&Date:{OLD}", None),
])
def test_own_date(site, date, sent):
    """A program's own Date is passed on and counts as the age, in any form that is one."""
    # Thirty years are more than ten minutes.
    target = f"/w/r/own?Cache-Control:max-age=600&Date:{date}".replace(" ", "+")
    assert (site.get(target)["Date"] == OLD) == (sent is not None)
    assert site.is_kept(target) == (sent is None)
    if sent:
        target = f"/w/r/own?Cache-Control:max-age=2000000000&Date:{date}".replace(" ", "+")
        first, hit = site.get(target), site.get(target)
        assert first.body == hit.body and hit["Date"] == sent
        assert age_of(hit) > 30 * 365 * 86400


def test_first_age_counts(site):
    target = "/w/r/ages?Cache-Control:max-age=600&Age:100,+500"
    assert site.is_kept(target)
    hit = site.get(target)
    assert 100 <= age_of(hit) < 400


def test_s_maxage_is_not_stale(site):
    target = "/w/r/shared?Cache-Control:s-maxage=1,+stale-while-revalidate=600"
    before = site.counters()["stale"]
    first = site.call(target)
    deadline = time.monotonic() + TIMEOUT
    while site.call(target) == first:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert site.counters()["stale"] == before


def test_connection_of_a_program(site):
    target = "/w/r/hop?Cache-Control:max-age=600&Connection:x-a,+ETag&X-A:b&X-B:c&ETag:v"
    for got in (site.get(target), site.get(target)):
        assert "X-A" not in got and "ETag" not in got and "Connection" not in got
        assert got["X-B"] == "c"
    assert site.is_kept(target)
    many = ",".join(f"a{number}" for number in range(17))
    assert site.get(f"/w/r/hop?Connection:{many}").status == 502


# --- one call for many -------------------------------------------------------------------------


def ask_all(site, target, count, fields=""):
    """That many clients that have asked and wait."""
    clients = [Client(site.port) for _ in range(count)]
    for client in clients:
        client.send(request(target, "GET", fields))
    return clients


def await_waiting(site, count, before):
    site.server.wait_status(lambda status: status["answers"]["waited"] - before >= count)


def bodies(clients):
    got = [client.response().body for client in clients]
    for client in clients:
        client.close()
    return got


def test_one_call_for_all(site, gate):
    before = site.counters()
    count = 100 // SCALE
    clients = ask_all(site, f"/w/r/all?Cache-Control:max-age=30&wait={gate.path}", count)
    await_waiting(site, count - 1, before["waited"])
    gate.let()
    assert len(set(bodies(clients))) == 1
    after = site.counters()
    assert after["misses"] - before["misses"] == 1
    assert after["stored"] - before["stored"] == 1


def test_what_is_not_kept_is_asked_for_by_each(site, gate):
    before = site.counters()["waited"]
    clients = ask_all(site, f"/w/r/each?Cache-Control:no-store&wait={gate.path}", 5)
    await_waiting(site, 4, before)
    gate.let(5)
    assert len(set(bodies(clients))) == 5


def test_the_fetcher_goes(site, gate):
    """Its worker answers all the same, for those who wait."""
    target = f"/w/r/goes?Cache-Control:max-age=30&wait={gate.path}"
    before = site.counters()
    fetcher = ask_all(site, target, 1)[0]
    site.server.wait_status(lambda status: status["answers"]["misses"] > before["misses"])
    clients = ask_all(site, target, 3)
    await_waiting(site, 3, before["waited"])
    fetcher.close()
    gate.let()
    assert len(set(bodies(clients))) == 1
    assert site.counters()["misses"] == before["misses"] + 1


def test_one_who_waits_goes(site, gate):
    target = f"/w/r/leaves?Cache-Control:max-age=30&wait={gate.path}"
    before = site.counters()
    clients = ask_all(site, target, 4)
    await_waiting(site, 3, before["waited"])
    clients.pop(2).close()
    gate.let()
    assert len(set(bodies(clients))) == 1


def test_the_worker_ends(kind, tmp_path, gate):
    """Nobody is left behind when the fetcher's worker dies."""
    config = tmp_path / "sweet.conf"
    write(config, f"[sweet]\nworker=/w={TOLD}\nworkers=1\ncache=response\n".encode())
    with running(kind, tmp_path, "--config", config) as server:
        site = Site(server, tmp_path)
        target = f"/w/a?Cache-Control:max-age=30&wait={gate.path}"
        clients = ask_all(site, target, 1)
        server.wait_status(lambda status: status["answers"]["misses"] == 1)
        clients += ask_all(site, target, 2)
        await_waiting(site, 2, 0)
        workers = server.workers()
        # What a worker has not begun with goes to the next.
        gate.await_comer(workers)
        for process in workers.values():
            process.kill()
        # The first is told so; the others ask by themselves, of the next worker.
        assert clients[0].response().status == 502
        gate.let(2)
        assert [client.response().status for client in clients[1:]] == [200, 200]
        for client in clients:
            client.close()


def test_the_server_ends(kind, tmp_path, gate):
    """While one is fetched in front of a client, one behind its back, and others wait."""
    config = tmp_path / "sweet.conf"
    write(config, f"[sweet]\nworker=/w={TOLD}\nworkers=2\ncache=response\nstop-timeout=0s\n"
                  .encode())
    with running(kind, tmp_path, "--config", config) as server:
        stale = f"/w/s?Cache-Control:max-age=1,+stale-while-revalidate=600&wait={gate.path}"
        gate.let()
        fetch(server.port, stale)
        clients = ask_all(Site(server, tmp_path),
                          f"/w/a?Cache-Control:max-age=30&wait={gate.path}", 4)
        await_waiting(Site(server, tmp_path), 3, 0)
        deadline = time.monotonic() + TIMEOUT
        while server.status()["answers"]["stale"] == 0:
            fetch(server.port, stale)
            assert time.monotonic() < deadline
            time.sleep(0.05)
    for client in clients:
        client.close()


# --- an old one meanwhile -----------------------------------------------------------------------


def test_stale_while_revalidate(site, gate):
    target = ("/w/r/stale?Cache-Control:max-age=1,+stale-while-revalidate=600"
              f"&wait={gate.path}")
    gate.let()
    first = site.get(target)
    before = site.counters()
    deadline = time.monotonic() + TIMEOUT
    while site.counters()["stale"] == before["stale"]:
        assert site.get(target).body == first.body
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # The worker is at it, and nobody waits for it.
    for _ in range(5):
        assert site.get(target).body == first.body
    gate.let()
    site.server.wait_status(lambda status: status["answers"]["stored"] > before["stored"])
    assert site.get(target).body != first.body


# --- what ends them -------------------------------------------------------------------------------


def test_destroyed_by_its_worker(site):
    target = "/w/r/kept?X-NABC-Max-Age:600&keep&size=300000"
    first = site.call(target)
    assert site.call(target) == first
    # One reads it slowly, so that the server holds it all the time.
    with Client(site.port, buffer=4096) as slow:
        slow.send(request(target))
        slow.head()
        site.get("/w/other?destroy")
        again = site.call(target)
        assert again > first
        assert site.call(target) == again
        assert slow.take(300000)[: len(str(first))] == str(first).encode()


def test_one_unit_of_two_stays(site):
    """What does not stay is copied, and what does ends the answer all the same."""
    target = "/w/r/mixed?X-NABC-Max-Age:600&mixed&size=100"
    first = site.get(target).body
    assert len(first.split(b"GET")) == 3
    # The worker has its memory back and writes over it.
    for number in range(20):
        site.get(f"/w/other?{number}")
    assert site.get(target).body == first
    assert site.purge("/w/r/mixed*") == 1
    second = site.get(target).body
    one, other = first.split(b"\n"), second.split(b"\n")
    assert one[0] == other[0] and one[1] != other[1]
    assert site.get(target).body == second
    site.get("/w/other?destroy")
    assert site.get(target).body.split(b"\n")[0] != one[0]
    site.get("/w/other?destroy")


def test_kept_unit_is_not_copied(site):
    target = "/w/r/kept2?X-NABC-Max-Age:600&keep&size=300000"
    site.get("/w/other?destroy")
    before = site.server.status()["cache"]["used"]
    site.get(target)
    assert site.is_kept(target)
    assert site.server.status()["cache"]["used"] == before
    site.get("/w/other?destroy")


def test_purge_by_url(site):
    target = "/w/r/url?Cache-Control:max-age=600&Vary:Accept-Language"
    de, en = "Accept-Language: de\r\n", "Accept-Language: en\r\n"
    first = [site.call(target, de), site.call(target, en)]
    other = site.call(target + "&x")
    assert site.purge(f"http://test{target}") == 2
    assert site.purge(f"http://test{target}") == 0
    assert site.call(target, de) not in first
    assert site.call(target + "&x") == other
    assert site.purge("http://test/w/r/url*") == 2
    assert site.call(target + "&x") != other


def test_purge_by_tag(site):
    targets = [f"/w/r/tag?Cache-Control:max-age=600&X-NABC-Tag:t{n}+all&{n}" for n in range(3)]
    first = [site.call(target) for target in targets]
    assert site.purge("t1") == 1
    assert [site.call(target) == call for target, call in zip(targets, first)] == [
        True, False, True]
    assert site.purge("all", "t2") == 3
    assert "X-NABC-Tag" not in site.get(targets[0])


def test_purge_by_an_answer(site):
    target = "/w/r/answer?Cache-Control:max-age=600&X-NABC-Tag:mine"
    first = site.call(target)
    got = site.get("/w/r/x?X-NABC-Purge:other,+mine&Cache-Control:no-store", method="POST",
                   fields="Content-Length: 0\r\n")
    assert "X-NABC-Purge" not in got
    assert site.call(target) != first


def test_changed_by_a_request(site):
    target = "/w/t/changed"
    first = site.call(target)
    site.get(target, "Content-Length: 0\r\n", "POST")
    second = site.call(target)
    assert second != first
    site.get(target + "?status=400", "Content-Length: 0\r\n", "POST")
    site.get("/w/t/changed2", "Content-Length: 0\r\n", "DELETE")
    assert site.call(target) == second


def test_purged_while_it_is_fetched(site, gate):
    target = f"/w/r/late?Cache-Control:max-age=600&X-NABC-Tag:late&wait={gate.path}"
    before = site.counters()
    clients = ask_all(site, target, 1)
    site.server.wait_status(lambda status: status["answers"]["misses"] > before["misses"])
    assert site.purge("late") == 0
    gate.let(2)
    assert bodies(clients)[0] != site.get(target).body


def test_purge_is_for_operators(site):
    done = subprocess.run([NABCCTL, "--cache", site.folder / "socket", "purge", "a b"],
                          capture_output=True, timeout=TIMEOUT)
    assert done.returncode == 1 and b"neither a URL" in done.stderr
    if os.geteuid() == 0:
        (site.folder / "socket").chmod(0o666)
        for folder in [site.folder, *site.folder.parents]:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
        done = subprocess.run(
            ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", NABCCTL,
             "--cache", site.folder / "socket", "purge", "/*"],
            capture_output=True, timeout=TIMEOUT)
        assert done.returncode == 1 and b"permission denied" in done.stderr


# --- answers in pieces ---------------------------------------------------------------------------


def whole(site, target):
    """A body in the chunked coding, or of a known length; b"" when it is broken off."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=TIMEOUT)
    try:
        connection.request("GET", target, headers={"Host": "test"})
        return connection.getresponse().read()
    except http.client.IncompleteRead:
        return b""
    finally:
        connection.close()


@pytest.mark.parametrize("size", [0, 1000, 70000])
def test_pieces(site, size):
    target = f"/w/r/pieces?Cache-Control:max-age=600&pieces=5&size={size}"
    first = whole(site, target)
    assert first.count(b"GET") == 6 and len(first) >= 6 * size
    assert whole(site, target) == first
    assert int(site.get(target)["Content-Length"]) == len(first)


def test_pieces_of_a_known_length(site):
    """What is more than that is neither sent nor kept."""
    for length in (20, 3000, 6012):
        target = (f"/w/r/pieces?Cache-Control:max-age=600&pieces=5&size=1000"
                  f"&Content-Length:{length}")
        first = whole(site, target)
        assert len(first) in (length, 0)
        assert len(whole(site, target)) in (length, 0)


def test_a_first_piece_beyond_the_length(site):
    """The same if all is there at once, and only the end follows."""
    target = "/w/r/pieces?Cache-Control:max-age=600&end&size=1000&Content-Length:20"
    before = site.counters()["stored"]
    assert [len(site.get(target).body) for _ in range(3)] == [20] * 3
    assert site.counters()["stored"] == before
    good = "/w/r/pieces?Cache-Control:max-age=600&end&size=1000"
    assert whole(site, good) == whole(site, good)
    assert site.counters()["stored"] == before + 1


def test_pieces_that_break_off(site):
    target = "/w/r/pieces?Cache-Control:max-age=600&pieces=5&size=1000&abort"
    before = site.counters()["stored"]
    assert [whole(site, target) for _ in range(2)] == [b"", b""]
    assert site.counters()["stored"] == before


def test_too_many_pieces(site):
    target = f"/w/r/pieces?Cache-Control:max-age=600&pieces=5&size={MB}"
    before = site.counters()["stored"]
    one, other = whole(site, target), whole(site, target)
    assert len(one) > 6 * MB and len(other) > 6 * MB and one != other
    assert site.counters()["stored"] == before


# --- programs that have ended --------------------------------------------------------------------


def test_unit_of_a_script(kind, tmp_path):
    """It is used where it lies, and destroying it is enough."""
    script = tmp_path / "cgi" / "page"
    write(script, f"""#!/bin/sh
echo x >>{tmp_path}/calls
id=$(wc -l <{tmp_path}/calls | {NABCCTL} --cache {tmp_path}/socket put --ttl 600 -) || exit 1
echo "$id" >{tmp_path}/id
printf 'Content-Type: text/plain\\r\\nX-NABC-Max-Age: 600\\r\\nX-NABC-Cache-Id: %s\\r\\n\\r\\n' "$id"
""".encode()).chmod(0o755)
    config = tmp_path / "sweet.conf"
    write(config, f"[sweet]\ncache-socket={tmp_path}/socket\ncgi=/cgi={tmp_path}/cgi\n"
                  "cache=response\n".encode())
    with running(kind, tmp_path, "--config", config) as server:
        for call in range(1, 4):
            for _ in range(3):
                got = fetch(server.port, "/cgi/page")
                assert (got.status, int(got.body)) == (200, call)
            destroyed = (tmp_path / "id").read_text().strip()
            subprocess.run([NABCCTL, "--cache", tmp_path / "socket", "destroy", destroyed],
                           timeout=TIMEOUT, check=True)
        assert server.status()["answers"]["dead"] == 2
