# SPDX-License-Identifier: MIT
"""Programs of libfcgi, unchanged, as workers: libnabc-fcgi is preloaded.  A pool beside it runs the
same program by FastCGI, and both must answer alike."""

import hashlib
import http.client
import os
import re
import subprocess
import threading

import pytest

from client import Client, http_connection, request
from files import KB, MB, pattern
from server import BUILD, TIMEOUT, refuses, sanitized

pytestmark = [
    pytest.mark.needs("fcgiapp.h"),
    pytest.mark.skipif(bool(sanitized()), reason="a sanitizer comes before all preloaded libraries"),
]

LIBRARY = os.path.join(BUILD, "libnabc-fcgi", ".libs", "libnabc-fcgi.so")
SOURCES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOTH = "/worker", "/fastcgi"


def build(folder, name, sources=SOURCES):
    program = folder / name
    subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-o", program, os.path.join(sources, f"{name}.c"),
                    "-lfcgi", "-lpthread"], check=True, timeout=TIMEOUT)
    return program


@pytest.fixture(scope="module")
def obey(tmp_path_factory):
    return build(tmp_path_factory.mktemp("obey"), "fcgi-obey")


@pytest.fixture
def run(tmp_path, start):
    """run(program, keys...): a server with two pools of it, each of one process; keys are of the
    pool of workers."""

    def begin(program, threads=1, **keys):
        keys = {"preload": LIBRARY} | keys
        path = tmp_path / "sweet.conf"
        path.write_text(
            f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\nthreads={threads}\nmax-body=0\n"
            f"[pool worker]\nprotocol=worker\ncommand={program}\nprocesses=1\n"
            + "".join(f"{key}={value}\n" for key, value in keys.items())
            + f"[pool fastcgi]\nprotocol=fastcgi\ncommand={program}\nprocesses=1\n"
            "[path /worker]\npool=worker\n[path /fastcgi]\npool=fastcgi\n"
        )
        return start(None, "--config", path, listen=None)

    return begin


@pytest.fixture
def pair(run, obey):
    return run(obey)


def ask(port, target, method="GET", body=None, fields=()):
    """A response without what differs between two of one program."""
    connection = http_connection(port)
    connection.request(method, target, body, dict(fields))
    response = connection.getresponse()
    lines = [f"{name}: {value}" for name, value in response.getheaders() if name != "Date"]
    data = response.read()
    connection.close()
    return response.status, lines, data


def cut_off(port, target):
    """What came of a response whose end the server has not sent."""
    connection = http_connection(port)
    connection.request("GET", target)
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        connection.getresponse().read()
    connection.close()


def alike(server, order, **how):
    """Both pools answer an order in one way; returns status and body."""
    ours, theirs = (ask(server.port, f"{path}?{order}", **how) for path in BOTH)
    assert (ours[0], sorted(ours[1]), ours[2]) == (theirs[0], sorted(theirs[1]), theirs[2])
    return ours[0], ours[2]


def letters(length):
    line = b"abcdefghijklmnopqrstuvwxyz\n"
    return (line * (length // len(line) + 1))[:length]


@pytest.mark.parametrize("order", ["once", "bytes", "in-place"])
@pytest.mark.parametrize("length", [0, 1, KB, 16 * KB, 100 * KB, MB, 10 * MB])
def test_pages(pair, order, length):
    """Twice: the second page is written into memory of the first one's length."""
    if order == "bytes":
        length = min(length, 2 * MB)
    for _ in range(2):
        # FastCGI has no length of these pages: the server sends them in chunks.
        ours = ask(pair.port, f"/worker?{order}={length}")
        theirs = ask(pair.port, f"/fastcgi?{order}={length}")
        assert (ours[0], ours[2]) == (theirs[0], theirs[2]) == (
            200, b"p" * length if order == "in-place" else letters(length))
        # A page without a length is sent as a whole, and then has one.
        assert "Content-Type: text/plain" in ours[1]


@pytest.mark.parametrize("order", [
    "lines=0", "lines=1", "lines=100", "head=304", "head=204", "head=404", "head=200", "redirect",
    "announce=10", "text", "none", "head=99", "head=1000",
])
def test_heads(pair, order):
    """A head without a body, none, and a wrong one."""
    ours, theirs = (ask(pair.port, f"{path}?{order}") for path in BOTH)
    assert ours[0] == theirs[0]
    # The server's page says which kind of program has failed.
    assert ours[2] == theirs[2] or ours[0] == 502
    names = [sorted(line for line in lines if re.match("(?i)x-|location", line))
             for _, lines, _ in (ours, theirs)]
    assert names[0] == names[1]
    assert ask(pair.port, "/worker?once=3")[2] == b"abc"


@pytest.mark.parametrize("length, body", [(5, b"01234"), (10, b"0123456789")])
def test_announced_length(pair, length, body):
    """The program's length is what the client gets."""
    assert alike(pair, f"announce={length}") == (200, body)


def test_announced_too_much(pair):
    for path in BOTH:
        assert ask(pair.port, f"{path}?announce=20")[0] == 502


def test_head_request(pair):
    for order in "once=100", "announce=10", "announce=20":
        alike(pair, order, method="HEAD")


@pytest.mark.parametrize("length", [0, 1, 100, 70000, 10 * MB])
def test_upload(pair, length):
    body = pattern(length)
    status, back = ask(pair.port, "/worker?echo", "POST", body)[::2]
    assert status == 200 and hashlib.sha256(back).digest() == hashlib.sha256(body).digest()
    assert ask(pair.port, "/fastcgi?echo", "POST", body)[2] == body


def test_chunked_upload(pair):
    for path in BOTH:
        with Client(pair.port) as client:
            client.send(request(f"{path}?echo", "POST", "Transfer-Encoding: chunked\r\n"))
            client.send(b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
            assert client.response("POST").body == b"abcdefg"


@pytest.mark.parametrize("body", [b"", b"one", b"one\ntwo\n", b"\n\n\n", b"x" * 250 + b"\nlast"])
def test_lines(pair, body):
    """Bytes that are put back, and differ from those that were read."""
    status, lines, text = ask(pair.port, "/worker?read-lines", "POST", body)
    assert status == 200 and text == ask(pair.port, "/fastcgi?read-lines", "POST", body)[2]


def test_part_of_a_body(pair):
    """The rest is not read, and the connection has its next request."""
    for length in 3 * KB, 3 * MB:
        for path in BOTH:
            with Client(pair.port) as client:
                body = pattern(length)
                client.send(request(f"{path}?part=10", "POST", f"Content-Length: {length}\r\n") + body)
                assert client.response("POST").body == body[:10]
        assert ask(pair.port, "/worker?once=3")[2] == b"abc"


def test_two_requests(pair):
    """At once on one connection, and in a row on another."""
    for path in BOTH:
        with Client(pair.port) as client:
            client.send(request(f"{path}?once=10") + request(f"{path}?bytes=5"))
            assert client.response().body == letters(10)
            assert client.response().body == letters(5)
            assert client.get(f"{path}?head=304").status == 304
            assert client.get(f"{path}?once=1").body == b"a"


def test_variables(pair):
    ours, theirs = (set(ask(pair.port, f"{path}?variables", fields={"X-Field": "1"})[2].split(b"\n"))
                    for path in BOTH)
    kept = [{line.replace(path.encode(), b"/") for line in lines if not line.startswith(b"REMOTE_PORT=")}
            for path, lines in zip(BOTH, (ours, theirs))]
    assert b"FCGI_ROLE=RESPONDER" in kept[0] and b"HTTP_X_FIELD=1" in kept[0]
    assert kept[0] == kept[1] and any(line.startswith(b"SCRIPT_FILENAME=") for line in kept[0])


def test_errors(pair):
    assert alike(pair, "complain=47") == (200, b"complained")
    assert pair.errors.wait("complaint 47", 2)


@pytest.mark.parametrize("length", [0, 100, 3 * MB])
def test_exit(pair, length):
    """In the middle of a response; the next process answers."""
    pid = int(ask(pair.port, "/worker?pid")[2])
    if length < MB:
        assert ask(pair.port, f"/worker?leave={length}")[0] == 502
    else:
        cut_off(pair.port, f"/worker?leave={length}")
    assert int(ask(pair.port, "/worker?pid")[2]) != pid


def test_fork(pair):
    """A child that a program forks in a request answers nothing, and does no harm."""
    for _ in range(3):
        assert ask(pair.port, "/worker?fork", "POST", b"body")[2] == b"0 from the parent"
    assert pair.errors.wait("is a child of the worker and gets no requests")


def test_client_leaves(pair):
    for count in 1, 2:
        with Client(pair.port) as client:
            client.send(request("/worker?endless"))
            assert client.head()
        assert pair.errors.wait("the client has left", count)
    assert ask(pair.port, "/worker?once=3")[2] == b"abc"


def test_little_memory(run, obey):
    """Pages larger than the worker's memory leave in pieces."""
    server = run(obey, memory="1M")
    for order in "once", "bytes":
        assert ask(server.port, f"/worker?{order}={3 * MB}")[2] == letters(3 * MB)


# --- fcgi_stdio.h --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stdio(tmp_path_factory):
    return build(tmp_path_factory.mktemp("stdio"), "fcgi-stdio")


def test_stdio(run, stdio):
    server = run(stdio)
    body = b"one\n>two\n\n" + b"x" * 100 + b"\nlast"
    assert b"  2!>two\n" in alike(server, "lines", method="POST", body=body)[1]
    alike(server, "lines")
    for length in 1, 5000, 3 * MB:
        body = pattern(length)
        for path in BOTH:
            assert ask(server.port, f"{path}?copy", "POST", body)[2] == body
    assert alike(server, "file")[1].startswith(b"105 in a file")
    alike(server, "error")
    assert server.errors.wait("stdio complains", 2)
    # Variables and counts are those of each request.
    assert [alike(server, query)[1] for query in ("first", "finish", "third")] == [
        b" 1 first", b" 2 finish", b" 3 third"]


# --- the program of the benchmarks ---------------------------------------------------------


def test_generate(run, tmp_path):
    server = run(build(tmp_path, "fcgi-generate", os.path.join(SOURCES, "..", "..", "bench")))
    for size in 0, 1, 10 * KB, 100 * KB, MB, 5 * MB:
        status, body = alike(server, f"size={size}")
        assert status == 200 and len(body) == size
    assert alike(server, "size=x")[0] == 400


def test_forks_first(run, tmp_path):
    """A program that manages processes of its own: they get no requests, and the log says so."""
    program = build(tmp_path, "fcgi-generate", os.path.join(SOURCES, "..", "..", "bench"))
    server = run(f"{program} {tmp_path}/socket 2")
    assert server.errors.wait("is a child of the worker and gets no requests")
    assert server.errors.wait("worker worker.* has ended with status 1")


# --- many threads --------------------------------------------------------------------------


def test_threads(run, tmp_path):
    """Each of eight threads accepts: requests of eight clients, bodies and pages of all lengths."""
    server = run(build(tmp_path, "fcgi-threads"), threads=2)
    failed = []

    def visit(number):
        try:
            for length in (number, 1000 * number, 100 * KB + number, 3):
                body = pattern(length)
                for path in BOTH:
                    answer = ask(server.port, path, "POST", body)
                    assert answer[0] == 200 and answer[2] == body, (path, length)
        except Exception as error:
            failed.append(error)

    clients = [threading.Thread(target=visit, args=(number,)) for number in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert not failed


def test_slow_uploads(run, tmp_path):
    """Seven threads wait for the rest of their requests' bodies; the eighth has the next request."""
    server = run(build(tmp_path, "fcgi-threads"), **{"request-buffering": "off"})
    body, slow = pattern(4 * MB), [http_connection(server.port) for _ in range(7)]
    for number, connection in enumerate(slow):
        connection.putrequest("POST", f"/worker?{number}")
        connection.putheader("Content-Length", len(body))
        connection.endheaders(body[: 3 * MB])
        assert server.errors.wait(f"begins: {number}")
    assert ask(server.port, "/worker", "POST", b"whole")[2] == b"whole"
    for connection in slow:
        connection.send(body[3 * MB :])
        assert connection.getresponse().read() == body
        connection.close()


# --- what is no program of libfcgi ---------------------------------------------------------


def test_own_libfcgi(tmp_path, obey, start):
    """A program that has the functions in itself does not see the library, and the log says so."""
    path = tmp_path / "sweet.conf"
    path.write_text(f"[sweet]\nlisten=127.0.0.1:0\nroot={tmp_path}\n"
                    f"[pool app]\ncommand=/bin/true\nprocesses=1\npreload={LIBRARY}\n"
                    "[path /app]\npool=app\n")
    server = start(None, "--config", path, listen=None)
    assert server.errors.wait("has ended; if it has a libfcgi of its own")


def test_plain(tmp_path, obey):
    """Where no server started the program, libfcgi has all calls: as a CGI program it ends."""
    done = subprocess.run([obey], env={"LD_PRELOAD": LIBRARY, "NABC_WORKER_FD": "0"}, check=False,
                          stdin=subprocess.DEVNULL, timeout=TIMEOUT)
    assert done.returncode == 1


@pytest.mark.parametrize("keys, why", [
    ("protocol=fastcgi\ncommand=true\npreload=fcgi", "has preload, which makes programs workers"),
    ("command=true\npreload=other", "neither fcgi nor the path of a library"),
    ("command=true\npreload=/nonexistent/library.so", "cannot be read"),
])
def test_refused(tmp_path, keys, why):
    refuses(tmp_path, f"[pool p]\n{keys}\n[sweet]\nroot={tmp_path}\npool=p\n", why)
