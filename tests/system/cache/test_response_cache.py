# SPDX-License-Identifier: MIT
"""Cached responses of programs: which, for how long and for which clients."""

import email.utils
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from client import Client, fetch, http_connection
from files import MB, write
from server import BUILD, SCALE, TIMEOUT, running

TOLD = os.path.join(BUILD, "tests", "system", "worker-told")
NABCCTL = os.path.abspath(os.path.join(BUILD, "nabcctl", "nabcctl"))


class Site:
    """A server with a worker in one process, under paths with rules of their own."""

    def __init__(self, server, folder):
        self.server = server
        self.folder = folder
        self.port = server.port

    def get(self, target, fields="", method="GET"):
        return fetch(self.port, target, method, fields)

    def call(self, target, fields="", method="GET"):
        """Returns the number of the call that generated the response."""
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
    """A FIFO at which the worker waits; not if it was released before."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = path
        self.end = os.open(path, os.O_RDWR)

    def let(self, calls=1):
        os.write(self.end, calls * b"x")

    def await_comer(self, pids):
        """Waits until one of the processes waits there."""
        deadline = time.monotonic() + TIMEOUT
        while not any(map(self.has_come, pids)):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def has_come(self, pid):
        try:
            return any(os.readlink(end) == str(self.path)
                       for end in pathlib.Path(f"/proc/{pid}/fd").iterdir())
        # Until the program is loaded, only root may look into its process.
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            return False

    def close(self):
        os.close(self.end)


@pytest.fixture
def gate(tmp_path):
    gate = Gate(tmp_path / "gate")
    yield gate
    gate.close()


def whole(site, target):
    """A body in the chunked coding, or of a known length; b"" when it is cut off."""
    connection = http_connection(site.port)
    try:
        connection.request("GET", target, headers={"Host": "test"})
        return connection.getresponse().read()
    except http.client.IncompleteRead:
        return b""
    finally:
        connection.close()


# --- which are cached ------------------------------------------------------------------------


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


@pytest.mark.clear("it chooses its addresses")
def test_places_tell_apart(kind, tmp_path):
    """A response is never used for other requests: neither for another address, host or scope,
    nor when a reload gives the path to another pool."""
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
        # A program sees whether the request named a host.
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


@pytest.mark.parametrize("field", ["X-NABC-Tag", "Surrogate-Key", "Cache-Tag"])
def test_tags(site, field):
    """A response is purged by its tags, whichever field has them; no client sees these fields."""
    target = f"/w/r/tags?Cache-Control:max-age=600&{field}:first+{field},second"
    got = site.get(target)
    assert got.status == 200 and field.lower() not in got.head.decode().lower()
    assert site.is_kept(target)
    before = site.call(target)
    assert site.purge("x" + field) == 0
    assert site.purge("second") == 1
    assert site.call(target) > before
    # Another response purges it.
    before = site.call(target)
    assert site.get(f"/w/r/other?X-NABC-Purge:{field}").status == 200
    assert site.call(target) > before
    site.purge("/*")


def test_many_tag_lines(site):
    """A response that could not be found by all of its tags is not kept."""
    lines = "&".join(f"Cache-Tag:t{number}" for number in range(9))
    assert not site.is_kept(f"/w/r/many?Cache-Control:max-age=600&{lines}")


@pytest.mark.parametrize("how", ["tag", "/w/r/soft*", "program"])
def test_soft_purge(site, how):
    """The stale response is sent while another one is fetched."""
    target = "/w/r/soft?Cache-Control:max-age=600&Surrogate-Key:tag"
    before = site.call(target)
    assert site.is_kept(target)
    if how == "program":
        assert site.get("/w/r/other?X-NABC-Soft-Purge:tag").status == 200
    else:
        assert site.purge("--soft", how) == 1
        assert site.purge("--soft", how) == 0
    stale = site.counters()["stale"]
    assert site.call(target) == before
    assert site.counters()["stale"] == stale + 1
    deadline = time.monotonic() + TIMEOUT
    while site.call(target) == before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert site.is_kept(target)
    site.purge("/*")


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
    # Too large to be copied: not cached, but complete.
    target = f"/w/r/large?Cache-Control:max-age=30&size={6 * MB}"
    one, other = site.get(target), site.get(target)
    assert one.body != other.body and len(one.body) == len(other.body)


def test_long_head(site):
    """Any head that fits is passed on; it is cached if there is space for the lines of a hit."""
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
    # Without a date there is nothing to compare.
    assert site.call(target, "If-Modified-Since: Fri, 31 Dec 9999 23:59:59 GMT\r\n") == first
    # The program does not get the conditions of this client, or its 304 would be cached.
    site.purge("/w/r/etag*")
    got = site.get(target, 'If-None-Match: "v1"\r\n')
    assert (got.status, got.body.split()[3]) == (200, b"-")
    assert site.get(target, 'If-None-Match: "v1"\r\n').status == 304


def test_range(site):
    target = "/w/r/range?Cache-Control:max-age=30&size=1000"
    # If nothing is cached, the program gets the range.
    assert site.get(target, "Range: bytes=0-3\r\n").body.split()[4] == b"bytes=0-3"
    whole = site.get(target)
    got = site.get(target, "Range: bytes=-100\r\n")
    length = len(whole.body)
    assert (got.status, got.body) == (206, whole.body[-100:])
    assert got["Content-Range"] == f"bytes {length - 100}-{length - 1}/{length}"
    assert site.get(target, "Range: bytes=1-2,4-5\r\n").body == whole.body
    # An unsatisfiable range, as with a file.
    for fields in (f"Range: bytes={length}-\r\n", "Range: bytes=9999-10000,5000-\r\n"):
        got = site.get(target, fields)
        assert (got.status, got["Content-Range"]) == (416, f"bytes */{length}")
        assert "Age" not in got and "X-B" not in got
    assert site.get(target, f"Range: bytes={length}-\r\n", "HEAD").status == 200
    assert site.get(target, f'Range: bytes={length}-\r\nIf-Range: "x"\r\n').status == 200
    assert site.get(target).body == whole.body


@pytest.mark.parametrize("what", ['ETag:W/"v"', "mixed", "status=404"])
def test_range_of_others(site, what):
    """A weak tag does not prevent a range, but cannot be a condition of one; a response other
    than 200 has no ranges."""
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
    """Age is relative to the Date beside it: otherwise a cache behind this one would count
    twice."""
    target = '/w/r/date?Cache-Control:max-age=600&ETag:"v"'
    site.get(target)
    one = site.get(target)
    deadline = time.monotonic() + TIMEOUT
    while age_of(site.get(target)) <= age_of(one):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for fields in ("", "Range: bytes=0-1\r\n", 'If-None-Match: "v"\r\n'):
        assert site.get(target, fields)["Date"] == one["Date"]
    # A response of the server itself has a current date.
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
    """A Date of the program is passed on and counts for the age, in any valid form."""
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
