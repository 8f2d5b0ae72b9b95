# SPDX-License-Identifier: MIT
"""The examples of cgi-examples/: what each shows; unexpected input of a client gets a
response of its own and affects no other client."""

import contextlib
import hashlib
import http.client
import os
import re
import threading

import pytest

from client import Client, fetch, http_connection
from examples import run_python, script, worker
from files import KB, MB, pattern, write
from server import SCALE, TIMEOUT, running

DATA = "one two three\n4 five\n\nsix"
HELLO = re.compile(rb"Hello 127\.0\.0\.1, this is process (\d+)\.\n")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "data", DATA.encode())


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory, data):
    root = tmp_path_factory.mktemp("examples")
    with running(
        kind, root, "--workers", 1, "--worker-memory", "1M",
        "--worker", f"/python={script('hello_worker.py')}",
        "--worker", f"/upload={worker('upload')}",
        "--worker", f"/template={worker('template')}",
        "--worker", f"/report={worker('cached-report', data)}",
    ) as server:
        yield server


def post(client, path, body, method=b"POST", fields=b""):
    client.send(b"%s %s HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n%s\r\n%s"
                % (method, path.encode(), len(body), fields, body))
    return client.response()


def moved(server, before):
    """Returns by how much the counters of workers have grown."""
    after = server.status()["workers"]
    return {key: after[key] - before["workers"][key]
            for key in ("requests", "failures", "body_bytes_by_cache_id")}


def inet(data):
    """RFC 1071, by a simple loop."""
    total = sum(int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big")
                for at in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


# --- upload ------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 4095, 4097, 300001, MB])
@pytest.mark.parametrize("method", [b"POST", b"PUT"])
def test_upload(server, size, method):
    body = pattern(size)
    with Client(server.port) as client:
        got = post(client, "/upload", body, method)
        assert got.body.decode() == f"{size} bytes, Internet checksum {inet(body):#06x}\n"
        assert (got.status, got["Content-Type"]) == (200, "text/plain")


def test_upload_in_chunks(server):
    body = pattern(100 * KB)
    with Client(server.port) as client:
        client.send(b"POST /upload HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(body), 999):
            piece = body[at : at + 999]
            client.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        client.send(b"0\r\n\r\n")
        assert client.response().body == b"%d bytes, Internet checksum 0x%04x\n" % (
            len(body), inet(body))


def test_upload_of_nothing(server):
    with Client(server.port) as client:
        assert post(client, "/upload", b"").body == b"0 bytes, Internet checksum 0x0000\n"
        client.send(b"POST /upload HTTP/1.1\r\nHost: test\r\n\r\n")
        assert client.response().body == b"0 bytes, Internet checksum 0x0000\n"


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS"])
def test_upload_by_other_methods(server, method):
    with Client(server.port) as client:
        got = client.get("/upload", method)
        assert (got.status, got["Allow"]) == (405, "POST, PUT")
        # A field of the client does not become a variable of the gateway.
        got = client.get("/upload?NABC_BODY_ID=1", method, "NABC_BODY_ID: 1\r\nNABC-Body-Id: 1\r\n")
        assert got.status in (400, 405)


def test_upload_leaves_nothing(server):
    with Client(server.port) as client:
        for size in (1, 5000, 70000):
            assert post(client, "/upload", pattern(size)).status == 200
    server.wait_status(lambda status: status["cache"]["units"] == 0)


def test_upload_larger_than_the_cache(kind, tmp_path):
    """It passes through a window of units, in pieces of any lengths."""
    body = pattern(64 * MB // SCALE + 1)
    # A ones' complement sum is a remainder of the number that the bytes represent.
    sums = int.from_bytes(body + b"\0", "big") % 0xFFFF
    with running(kind, tmp_path, "--workers", 1, "--cache-size=16M", "--max-body=0",
                 "--worker", f"/upload={worker('upload')}",
                 "--worker", f"/python={script('hello_worker.py')}") as server:
        with Client(server.port) as client:
            assert post(client, "/upload", body).body.decode() == (
                f"{len(body)} bytes, Internet checksum {sums:#06x}\n")
            assert post(client, "/python", body).body.decode() == (
                f"{len(body)} bytes, SHA-256 {hashlib.sha256(body).hexdigest()}\n")
        # The client disconnects in the middle; the next one gets a response.
        for path in ("/upload", "/python"):
            with Client(server.port) as client:
                client.send(b"POST %s HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n"
                            % (path.encode(), len(body)) + body[: 9 * MB // SCALE])
            with Client(server.port) as client:
                assert post(client, path, b"abc").body.startswith(b"3 bytes, ")
        assert server.errors.count("Traceback|cannot read") == 0


# --- cached-report ---------------------------------------------------------------


def report(port):
    """Returns number, process, lines, words, bytes."""
    got = fetch(port, "/report")
    assert got.status == 200 and got["Cache-Control"] == "no-cache"
    said = re.fullmatch(r"Report (\d+) of process (\d+): (\d+) lines, (\d+) words, (\d+) bytes\.\n",
                        got.body.decode())
    return [int(part) for part in said.groups()]


def test_report_until_the_data_change(server, data):
    write(data, DATA.encode())
    number, process, *counts = report(server.port)
    assert counts == [3, 6, len(DATA)]
    before = server.status()
    with Client(server.port) as client:
        bodies = {client.get("/report").body for _ in range(50)}
    assert len(bodies) == 1
    assert moved(server, before)["failures"] == 0
    assert report(server.port)[:2] == [number, process]
    for turn in range(1, 30):
        write(data, b"x" * turn)
        assert report(server.port) == [number + turn, process, 0, 1, turn]
        assert report(server.port)[0] == number + turn


def test_report_by_rename(server, data):
    """Replaced by another file of the same length and time."""
    write(data, b"abc\n")
    number = report(server.port)[0]
    other = write(data.with_name("other"), b"a b\n")
    os.utime(other, ns=(data.stat().st_atime_ns, data.stat().st_mtime_ns))
    other.rename(data)
    assert report(server.port)[0] == number + 1
    assert report(server.port)[2:] == [1, 2, 4]


@pytest.mark.parametrize("what", ["nothing", "folder", "fifo"])
def test_report_of_no_file(server, data, what):
    """404 as long as there is no file; the worker does not wait for a writer."""
    data.unlink(missing_ok=True)
    if what == "folder":
        data.mkdir()
    elif what == "fifo":
        os.mkfifo(data)
    try:
        assert fetch(server.port, "/report").status == 404
    finally:
        if what == "folder":
            data.rmdir()
        elif what == "fifo":
            data.unlink()
        write(data, DATA.encode())
    assert report(server.port)[2:] == [3, 6, len(DATA)]


def test_report_without_a_unit_too_many(server, data):
    """The file changes more often than the segment has pages: no unit leaks."""
    for turn in range(300):
        write(data, b"y" * (turn + 1))
        assert report(server.port)[4] == turn + 1


def test_report_for_many(server, data):
    """Requests during changes get one of the file's states, and no error."""
    wrong = []

    def ask():
        with Client(server.port) as client:
            for _ in range(200 // SCALE):
                got = client.get("/report")
                if got.status != 200 or b" bytes.\n" not in got.body:
                    wrong.append((got.status, got.body))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(20):
        write(data.with_name("next"), b"z" * (turn + 1)).rename(data)
    for thread in threads:
        thread.join()
    assert not wrong


# --- template --------------------------------------------------------------------


def middle(page):
    """Returns number, path and query; head and foot must be those of all pages."""
    assert page.startswith(b"<!DOCTYPE html>\n") and page.endswith(b"</body></html>\n")
    said = re.search(rb'\n<p>Page (\d+) was made for the path "(.*)" and the query "(.*)"\.</p>\n<p>',
                     page)
    return int(said[1]), said[2].decode("latin-1"), said[3].decode("latin-1")


def test_template(server):
    with Client(server.port) as client:
        pages = [client.get(f"/template/{number}?n={number}") for number in range(50)]
        head = client.get("/template", "HEAD")
        assert (head.status, int(head["Content-Length"])) == (200, len(client.get("/template").body))
    assert {page["Content-Type"] for page in pages} == {"text/html; charset=utf-8"}
    numbers = [middle(page.body)[0] for page in pages]
    assert numbers == list(range(numbers[0], numbers[0] + 50))
    assert [middle(page.body)[1:] for page in pages] == [
        (f"/{number}", f"n={number}") for number in range(50)]
    assert all(int(page["Content-Length"]) == len(page.body) for page in pages)


def test_template_is_escaped(server):
    with Client(server.port) as client:
        page = client.get("/template/%3Cscript%3E%26%22'?a=<b>&c")
        assert middle(page.body)[1:] == ("/&lt;script&gt;&amp;&quot;'", "a=&lt;b&gt;&amp;c")


@pytest.mark.parametrize("character", ["a", "%22", "%c3%a4", "%ff"])
def test_template_of_much(server, character):
    """The maximum length of a target; the rest is cut off between two characters."""
    with Client(server.port) as client:
        count = 7900 // len(character) - 100
        number, path, query = middle(client.get(f"/template/{character * count}?{'&' * 100}").body)
        assert 1400 < len(path) <= 1500 and query == "&amp;" * 100
        assert re.fullmatch(r"/(&quot;|[^&])*", path)
        # Nothing of it leaks: more middle parts than there are pages of memory.
        for _ in range(300):
            assert client.get("/template").status == 200


# --- Python ----------------------------------------------------------------------


def test_python_worker(server):
    before = server.status()
    with Client(server.port) as client:
        first = client.get("/python")
        assert (first.status, first["Content-Type"]) == (200, "text/plain; charset=utf-8")
        process = int(HELLO.fullmatch(first.body)[1])
        assert int(HELLO.fullmatch(client.get("/python/else?x=y").body)[1]) == process
        assert process in server.workers()
        for _ in range(20):
            assert client.get("/python/about").body.startswith(b"This page was put")
        assert client.get("/python/about", "HEAD").status == 200
    grown = moved(server, before)
    assert grown["requests"] == 23 and grown["failures"] == 0
    assert grown["body_bytes_by_cache_id"] > 0


@pytest.mark.parametrize("size", [0, 1, 4097, 300001, MB])
def test_python_body(server, size):
    body = pattern(size)
    with Client(server.port) as client:
        assert post(client, "/python", body).body.decode() == (
            f"{size} bytes, SHA-256 {hashlib.sha256(body).hexdigest()}\n")


def test_python_with_strange_bytes(server):
    """Variables that are neither UTF-8 nor numbers."""
    with Client(server.port) as client:
        for path in ("/python/%ff%fe", "/python/%c3%28%3c", "/python/=%3d=", "/python?a=%00&&="):
            assert HELLO.fullmatch(client.get(path, fields="X-Strange: \xff\xfe=\r\n").body)


def test_python_many(server):
    """Its memory is returned to it: more bytes than the segment has."""
    with Client(server.port) as client:
        for _ in range(400):
            assert HELLO.fullmatch(client.get("/python").body)


def one_python(kind, root, path, text):
    """A server with one worker whose source is that text."""
    write(root / "worker.py", text.encode())
    return running(kind, root, "--workers", 1, "--worker-memory", "1M",
                   "--worker", f"{path}={run_python(root / 'worker.py')}")


# A page of several parts; one that is refused; one without a response, and one that fails.
PARTS = """
import nabc
def answer(request):
    path = request.variables["PATH_INFO"]
    if path == "/list":
        request.respond(body=[kept, b"(fresh)", nabc.Range(kept, 1, 2), b""], keep=True)
    elif path == "/fresh":
        request.respond(body=[b"a" * 5000, b"", bytearray(b"b")])
    elif path == "/most":
        request.respond(body=[b"%x" % number for number in range(nabc.RANGES_MAX)], keep=True)
    elif path == "/header":
        request.respond(headers=[("X-Evil", "a\\r\\nX-Smuggled: yes")])
    elif path == "/many":
        request.respond(body=[b"x"] * (nabc.RANGES_MAX + 1))
    elif path == "/stranger":
        request.respond(body=1)
with nabc.Worker() as worker:
    kept = nabc.put(b"kept")
    worker.serve(answer)
"""


@pytest.fixture(scope="module")
def parts(kind, tmp_path_factory):
    with one_python(kind, tmp_path_factory.mktemp("parts"), "/parts", PARTS) as server:
        yield server


def test_python_list(parts):
    """Repeated many times: fresh units are returned, kept ones stay."""
    with Client(parts.port) as client:
        for _ in range(400):
            assert client.get("/parts/list").body == b"kept(fresh)ep"
            assert client.get("/parts/fresh").body == b"a" * 5000 + b"b"
        assert client.get("/parts/most").body == b"0123456789abcdef"


def test_python_errors(parts):
    """Each gets a 500, leaks nothing, and the log says why."""
    with Client(parts.port) as client:
        for _ in range(100):
            for path in ("header", "many", "stranger", "nothing"):
                got = client.get(f"/parts/{path}")
                assert got.status == 500 and "X-Smuggled" not in got
        assert client.get("/parts/list").body == b"kept(fresh)ep"
    for said in ("ValueError: no header line", r"\[Errno 22\]", r"\[Errno (2|13)\]",
                 "RuntimeError: the request has not been answered"):
        assert parts.errors.wait(said), said


# Responds piece by piece, rightly and wrongly; "/told" shows the result of the last one.
STREAM = """
import nabc
told = []
def endless(request):
    while True:
        told[:] = ["gone" if request.gone else "there"]
        yield b"x" * 10000
def failing():
    yield b"a part"
    raise KeyError("no more")
def answer(request):
    path = request.variables["PATH_INFO"]
    if path == "/pieces":
        pieces = [b"fresh ", [kept, b" and ", nabc.Range(kept, 0, 2)], b"", [], bytearray(b"!")]
        told[:] = [str(request.stream(iter(pieces), 203, [("X-One", "1")], keep=True))]
    elif path == "/endless":
        told.append(str(request.stream(endless(request))))
    elif path == "/fails":
        request.stream(failing())
    elif path == "/refused":
        request.stream([1])
    elif path == "/abort":
        request.abort()
    elif path == "/told":
        request.respond(body=" ".join(told).encode())
with nabc.Worker() as worker:
    kept = nabc.put(b"kept")
    worker.serve(answer)
"""


@pytest.fixture(scope="module")
def stream(kind, tmp_path_factory):
    with one_python(kind, tmp_path_factory.mktemp("stream"), "/stream", STREAM) as server:
        yield server


@contextlib.contextmanager
def http_client(server):
    """A client that decodes chunks."""
    connection = http_connection(server.port)
    with contextlib.closing(connection):
        yield connection


def get(connection, path):
    connection.request("GET", path)
    return connection.getresponse()


def test_python_stream(stream):
    """Repeated many times: fresh units are returned, kept ones stay."""
    with http_client(stream) as client:
        for _ in range(400):
            got = get(client, "/stream/pieces")
            assert (got.status, got.headers["X-One"], got.headers["Transfer-Encoding"]) == (
                203, "1", "chunked")
            assert got.read() == b"fresh kept and ke!"
        assert get(client, "/stream/told").read() == b"True"


def test_python_stream_whose_client_goes(stream):
    with http_client(stream) as client:
        assert len(get(client, "/stream/endless").read(MB)) == MB
    with http_client(stream) as client:
        assert re.fullmatch(rb"(there|gone) False", get(client, "/stream/told").read())


def test_python_stream_that_fails(stream):
    """Its client detects that it is incomplete; the next one gets a response."""
    for path, said in (("fails", "KeyError: 'no more'"), ("refused", r"\[Errno (2|13)\] NC_stat")):
        with http_client(stream) as client:
            got = get(client, f"/stream/{path}")
            assert got.status == 200
            with pytest.raises(http.client.IncompleteRead):
                got.read()
        assert stream.errors.wait(said)
    with http_client(stream) as client:
        got = get(client, "/stream/abort")
        assert got.status == 502 and b"The worker gave up." in got.read()
        assert get(client, "/stream/pieces").read() == b"fresh kept and ke!"
