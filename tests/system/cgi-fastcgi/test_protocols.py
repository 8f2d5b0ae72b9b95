# SPDX-License-Identifier: MIT
"""generate and attach-fcgi by CGI and FastCGI, called without a web server: their
output, with and without a cache, for valid and invalid requests."""

import contextlib
import os
import re
import shutil
import subprocess
import threading
import time

import pytest

from client import Client, fetch, http_connection
from examples import PROGRAMS, SOURCES, library_environment, needs_libfcgi
from fastcgi import application, split
from files import MB, write
from server import GENERATE, SCALE, TIMEOUT, UNDER, running
from test_generate import SIZES, page
from test_nabcctl import good, owning, sealed

ATTACH = os.path.join(PROGRAMS, "cgi-examples", "attach-fcgi")
FIELDS = {b"Content-Type": b"text/plain", b"Cache-Control": b"no-store"}
BAD = ["size=1000000000000000", "size=99999999999999999999999", "size=abc", "size=12x", "size=",
       "size=-1", "size=%31", "size", "other=1", "", "&&&", "=", "size=5%00", "size=" + "9" * 4000]


PROTOCOLS = ["cgi", pytest.param("fastcgi", marks=needs_libfcgi)]


@pytest.fixture
def owner(tmp_path):
    with owning(tmp_path / "cache", size=64 * MB) as owner:
        yield owner


@pytest.fixture(params=PROTOCOLS)
def generate(request, tmp_path):
    """generate(cache, variables...): returns head and body, by one of the protocols."""
    applications = {}

    def by_cgi(cache, **variables):
        done = subprocess.run([*UNDER, GENERATE], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT, env={**of(cache), "GATEWAY_INTERFACE": "CGI/1.1",
                                                    **variables})
        assert done.returncode == 0, done.stderr.decode()
        return split(done.stdout)

    def by_fastcgi(cache, **variables):
        if cache not in applications:
            folder = tmp_path / str(len(applications))
            folder.mkdir()
            applications[cache] = stack.enter_context(
                application(folder, *UNDER, GENERATE, **of(cache)))
        return applications[cache].ask(**variables)

    def of(cache):
        return {"PATH": os.environ["PATH"], **({"NABC_CACHE": cache} if cache else {})}

    with contextlib.ExitStack() as stack:
        yield by_cgi if request.param == "cgi" else by_fastcgi


@pytest.mark.parametrize("size", SIZES)
def test_plain(generate, owner, size):
    for cache, query in ((None, f"size={size}"), (owner.path, f"plain=1&size={size}"),
                         (owner.path, f"size={size}&a=b&plain=2")):
        head, body = generate(cache, QUERY_STRING=query, REQUEST_METHOD="GET")
        assert head == {**FIELDS, b"Content-Length": b"%d" % size}
        assert body == page(size)


@pytest.mark.parametrize("size", SIZES)
def test_by_unit(generate, owner, size):
    head, body = generate(owner.path, QUERY_STRING=f"size={size}")
    assert body == b""
    if size:
        unit = head.pop(b"X-NABC-Cache-Id")
        assert good(owner.path, "get", unit.decode()) == page(size)
    else:
        assert head.pop(b"Content-Length") == b"0"
    assert head == FIELDS


def test_many_units(generate, owner):
    """More bytes than a member of the cache may have at a time."""
    for _ in range(24):
        head, _ = generate(owner.path, QUERY_STRING=f"size={MB}")
        assert good(owner.path, "get", head[b"X-NABC-Cache-Id"].decode()) == page(MB)
    for _ in range(100 // SCALE):
        assert b"X-NABC-Cache-Id" in generate(owner.path, QUERY_STRING="size=1")[0]


def test_head(generate, owner):
    for cache in (None, owner.path):
        head, body = generate(cache, QUERY_STRING="size=100", REQUEST_METHOD="HEAD")
        assert (head, body) == ({**FIELDS, b"Content-Length": b"100"}, b"")
    assert sealed(owner.path) == []


@pytest.mark.parametrize("query", BAD)
def test_refused(generate, owner, query):
    for cache in (None, owner.path):
        head, body = generate(cache, QUERY_STRING=query)
        assert (head, body) == ({b"Status": b"400 Bad Request"}, b"")


def test_no_variables(generate, owner):
    for cache in (None, owner.path):
        assert generate(cache)[0][b"Status"] == b"400 Bad Request"


def test_cache_that_is_not_there(generate, tmp_path):
    head, body = generate(str(tmp_path / "none"), QUERY_STRING="size=5000")
    assert b"X-NABC-Cache-Id" not in head and body == page(5000)


def test_larger_than_a_unit(generate, owner):
    """It does not fall back to the pipe: a size that is too large was refused."""
    assert generate(owner.path, QUERY_STRING="size=70000000")[0][b"Status"] == b"400 Bad Request"


def test_started_by_nobody():
    done = subprocess.run([GENERATE], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=TIMEOUT, env={})
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.startswith(b"generate: run it as ")


# --- attach-fcgi ------------------------------------------------------------------


def asked(app, owner=None, **variables):
    """Returns the number of the page, which is in the owner's cache or has arrived with the
    head; and its id."""
    head, body = app.ask(**variables)
    unit = head.get(b"X-NABC-Cache-Id", b"").decode()
    assert bool(unit) == bool(owner)
    if owner:
        assert body == b""
        body = good(owner.path, "get", unit)
    return int(re.fullmatch(r"This is page (\d+) of process %d\.\n" % app.process.pid, body.decode())[1]), unit


def until(good):
    """Polls for a change that depends only on the clock."""
    deadline = time.monotonic() + TIMEOUT
    while not good():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@needs_libfcgi
def test_attach(owner, tmp_path):
    """One unit for all requests within a second, and never many at a time."""
    with application(tmp_path, *UNDER, ATTACH, NABC_CACHE=owner.path) as app:
        pages = [asked(app, owner) for _ in range(40)]
        numbers = [number for number, _ in pages]
        assert numbers[0] == 1 and numbers == sorted(numbers)
        assert len(set(pages)) == len(set(numbers)) < 40
        assert len(sealed(owner.path)) == len(set(numbers))


@needs_libfcgi
def test_attach_without_a_cache(tmp_path):
    with application(tmp_path, *UNDER, ATTACH, PATH=os.environ["PATH"]) as app:
        assert asked(app) == (1, "")
        until(lambda: asked(app)[0] > 1)
    os.unlink(app.path)
    with application(tmp_path, *UNDER, ATTACH, NABC_CACHE=str(tmp_path / "none")) as app:
        assert asked(app) == (1, "")


@needs_libfcgi
def test_attach_again(tmp_path):
    """The owner exits and another one starts: meanwhile pages are sent through the socket."""
    path = tmp_path / "cache"
    with application(tmp_path, *UNDER, ATTACH, NABC_CACHE=str(path)) as app:
        for _ in range(2):
            with owning(path) as owner:
                until(lambda: b"X-NABC-Cache-Id" in app.ask()[0])
                assert asked(app, owner)[1]
            until(lambda: b"X-NABC-Cache-Id" not in app.ask()[0])
            assert asked(app)[0] > 1


@needs_libfcgi
def test_attach_started_by_nobody():
    done = subprocess.run([ATTACH], stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT)
    assert done.returncode == 1
    assert b"descriptor 0 is not a listening socket" in done.stderr


# --- behind the server --------------------------------------------------------------


@pytest.fixture
def behind(kind, tmp_path):
    """behind(program, cache): a server for an application, which attaches to its cache if
    requested."""
    def begin(program, cache=True):
        app = stack.enter_context(application(
            tmp_path, *UNDER, program, **({"NABC_CACHE": str(tmp_path / "cache")} if cache else {})))
        return app, stack.enter_context(running(
            kind, tmp_path, "--cache-socket", tmp_path / "cache", "--fastcgi", f"/app=unix:{app.path}"))

    with contextlib.ExitStack() as stack:
        yield begin


@needs_libfcgi
@pytest.mark.parametrize("cache", [True, False], ids=["by-unit", "plain"])
def test_generate_behind_the_server(behind, cache):
    _, server = behind(GENERATE, cache)
    before = server.status()
    with Client(server.port) as client:
        for size in SIZES:
            got = client.get(f"/app?size={size}")
            assert (got.status, got.body, got["Content-Type"]) == (200, page(size), "text/plain")
            assert "X-NABC-Cache-Id" not in got
            got = client.get(f"/app?size={size}", "HEAD")
            assert (got.status, got["Content-Length"]) == (200, str(size))
        for query in ("size=x", "", "size=99999999999999"):
            assert client.get(f"/app?{query}").status == 400
    after = server.status()
    moved = after["workers"]["message_bytes"] - before["workers"]["message_bytes"]
    assert (moved < 1000 * 2 * len(SIZES)) == cache


@needs_libfcgi
def test_generate_for_many(behind):
    """Units in responses exist until these responses are sent."""
    _, server = behind(GENERATE)
    wrong = []

    def ask(number):
        with Client(server.port) as client:
            for turn in range(200 // SCALE):
                size = 1000 * number + turn
                got = client.get(f"/app?size={size}")
                if (got.status, got.body) != (200, page(size)):
                    wrong.append((size, got.status))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@needs_libfcgi
@pytest.mark.parametrize("cache", [True, False], ids=["by-unit", "plain"])
def test_attach_behind_the_server(behind, cache):
    app, server = behind(ATTACH, cache)
    with Client(server.port) as client:
        pages = [client.get("/app") for _ in range(50)]
        assert client.get("/app", "HEAD").status == 200
    assert {page.status for page in pages} == {200}
    said = {page.body.decode() for page in pages}
    assert all(re.fullmatch(rf"This is page \d+ of process {app.process.pid}\.\n", text) for text in said)
    assert not any("X-NABC-Cache-Id" in page for page in pages)
    moved = server.status()["workers"]["body_bytes_by_cache_id"]
    assert (moved >= sum(len(page.body) for page in pages)) == cache


@needs_libfcgi
def test_attach_when_the_server_comes_back(kind, tmp_path):
    """Pages of the old cache are invalid in the new one, for a second at most."""
    with application(tmp_path, *UNDER, ATTACH, NABC_CACHE=str(tmp_path / "cache")) as app:
        for _ in range(2):
            with running(kind, tmp_path, "--cache-socket", tmp_path / "cache",
                         "--fastcgi", f"/app=unix:{app.path}") as server:
                until(lambda: fetch(server.port, "/app").status in (200, 502) and
                      server.status()["workers"]["body_bytes_by_cache_id"] > 0)
                assert fetch(server.port, "/app").status == 200


# --- CGI behind the server ----------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["by-unit", "plain"])
def programs(request, kind, tmp_path):
    """A server for the CGI programs, with or without a cache that they can attach to."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for path in (GENERATE, *(os.path.join(SOURCES, name)
                             for name in ("hello.sh", "hello_cgi.py", "nabc.py"))):
        shutil.copy(path, folder)
    # Programs inherit the server's PATH and nothing else of its environment.
    known = " ".join(f"{name}={value}" for name, value in library_environment().items())
    python = f"#!/bin/sh\nexec env {known} {shutil.which('python3')} -B \"$@\"\n"
    write(tmp_path / "bin" / "python3", python.encode()).chmod(0o755)
    path = os.pathsep.join([str(tmp_path / "bin"), os.path.join(PROGRAMS, "nabcctl"), os.environ["PATH"]])
    cache = ["--cache-socket", tmp_path / "cache"] if request.param else []
    with running(kind, tmp_path, "--cgi", f"/cgi={folder}", *cache,
                 env={**os.environ, "PATH": path}) as server:
        yield server, request.param


def asked_by_http(server, target, method="GET"):
    """Returns status, type and body, in whatever way its end is marked."""
    connection = http_connection(server.port)
    with contextlib.closing(connection):
        connection.request(method, target)
        response = connection.getresponse()
        assert "X-NABC-Cache-Id" not in response.headers
        assert len(response.headers.get_all("Content-Type", [])) <= 1
        return response.status, response.headers["Content-Type"], response.read()


def test_generate_by_cgi(programs):
    server, cache = programs
    for size in SIZES:
        assert asked_by_http(server, f"/cgi/generate?size={size}") == (200, "text/plain", page(size))
        assert asked_by_http(server, f"/cgi/generate?size={size}", "HEAD") == (200, "text/plain", b"")
    for query in ("size=x", "", "size=99999999999999"):
        assert asked_by_http(server, f"/cgi/generate?{query}")[0] == 400
    moved = server.status()["workers"]["body_bytes_by_cache_id"]
    assert (moved >= sum(SIZES)) == cache


def test_hello_by_cgi(programs):
    server, cache = programs
    said = r'Hello 127\.0\.0\.1, this is process \d+\.\nYou asked for "(.*)"\.\n'
    for name in ("hello.sh", "hello_cgi.py") if cache else ("hello_cgi.py",):
        for info, shown in (("", "/"), ("/a/b", "/a/b"), ("/%22%ff", '/"\xff')):
            status, kind, body = asked_by_http(server, f"/cgi/{name}{info}?x=y")
            assert (status, kind) == (200, "text/plain; charset=utf-8")
            assert re.fullmatch(said, body.decode("latin-1"))[1] == shown
    if not cache:
        assert asked_by_http(server, "/cgi/hello.sh")[0] == 503
    assert asked_by_http(server, "/cgi/nabc.py")[0] in (403, 404)
    assert (server.status()["workers"]["body_bytes_by_cache_id"] > 0) == cache
