# SPDX-License-Identifier: MIT
"""Bodies of requests above the limit for collection, sent to CGI programs and FastCGI
applications: piece by piece, as fast as these read.  This is without
request-buffering; test_buffering.py tests the other case."""

import hashlib
import os
import re
import socket
import struct
import threading

import pytest

from client import Client, Closed, request
from files import KB, MB, pattern, write
from responder import ABORT, STDIN, Application, Gone
from server import SCALE, TIMEOUT, UNDER, sanitized
from test_cgi import TEXT, Folder, gone

CACHE = 16 * MB
KEPT = CACHE // 4  # of a body, if necessary
LARGE = 64 * MB // SCALE
GB = 1 << 30


@pytest.fixture
def folder(tmp_path, start):
    return Folder(tmp_path, start)


@pytest.fixture
def begin(one, tmp_path):
    """begin(handle, options...): an application behind a server; its address is under /app."""
    write(tmp_path / "file", b"a file\n")

    def begin(handle, *options, **how):
        return one(handle, "--max-body=0", f"--cache-size={CACHE}", *options,
                   pool="request-buffering=off\n", **how)

    return begin


def serve(folder, *options):
    return folder.configured("request-buffering=off",
                             f"cache-socket={folder.path}/cache\nmax-body=0\ncache-size={CACHE}",
                             options=options)


def head(path, length, fields=b"", method=b"POST"):
    how = b"Content-Length: %d" % length if length is not None else b"Transfer-Encoding: chunked"
    return b"%s %s HTTP/1.1\r\nHost: test\r\n%s\r\n%s\r\n" % (method, path.encode(), how, fields)


def answer(client):
    """The next response, of known length or in chunks."""
    first = client.head()
    status = int(first.split()[1])
    length = re.search(rb"(?i)\r\nContent-Length: (\d+)", first)
    if length:
        return status, client.take(int(length[1]))
    assert b"chunked" in first
    body = b""
    while True:
        while b"\r\n" not in client.data:
            client.more()
        size, _, client.data = client.data.partition(b"\r\n")
        piece = client.take(int(size, 16) + 2)
        if len(piece) == 2:
            return status, body
        body += piece[:-2]


def upload(port, path, data, **how):
    """Returns status and body of the response; unwanted data is not sent."""
    with Client(port) as client:
        def send():
            try:
                client.send(head(path, len(data), **how) + data)
            except OSError:
                pass  # the server does not want it

        sender = threading.Thread(target=send)
        sender.start()
        try:
            return answer(client)
        finally:
            client.socket.shutdown(socket.SHUT_RDWR)
            sender.join()


def sum_of(data):
    return hashlib.md5(data).hexdigest().encode()


def upload_and_watch(server, path, size):
    """Uploads `size` bytes; returns the response, the sum, and the maximum memory meanwhile."""
    block, sum, most = pattern(MB), hashlib.md5(), 0
    with Client(server.port) as client:
        client.send(head(path, size))
        for number in range(size // MB):
            sum.update(block)
            client.send(block)
            if number % 16 == 0 and not UNDER and not sanitized():
                most = max(most, server.memory())
        return answer(client), sum.hexdigest().encode(), most


def judge(server, path, size, body=lambda body: body):
    """The sum must be right, and at most some pieces were in memory at a time."""
    upload_and_watch(server, path, 2 * MB)
    before = server.memory() if not UNDER and not sanitized() else 0
    (status, said), sum, most = upload_and_watch(server, path, size)
    assert status == 200 and body(said) == sum
    assert most < before + 6 * MB
    server.wait_status(lambda status: status["cache"]["units"] == 0)


def pieces(asked):
    """Of the body, one record after the other."""
    while True:
        kind, data = asked.connection.record()
        if kind == ABORT:
            raise Gone
        assert kind == STDIN, kind
        if not data:
            return
        yield data


def summed(asked):
    sum, length = hashlib.md5(), 0
    for piece in pieces(asked):
        sum.update(piece)
        length += len(piece)
    assert asked.variables["CONTENT_LENGTH"] == str(length)
    asked.answer(sum.hexdigest().encode())


# --- to a CGI program ------------------------------------------------------------------


@pytest.mark.parametrize("first", ["reads", "writes"])
def test_cgi(folder, first):
    """A program that reads before it writes, and, like most shell scripts, the other way round."""
    folder.script("reads.sh", f"sum=$(md5sum)\n{TEXT}echo $CONTENT_LENGTH $sum\n")
    folder.script("writes.sh", f"{TEXT}echo $CONTENT_LENGTH $(md5sum)\n")
    server = serve(folder)
    judge(server, f"/cgi/{first}.sh", LARGE, lambda body: body.split()[1])


@pytest.mark.skipif(bool(UNDER) or sanitized(), reason="it takes too long")
@pytest.mark.thorough
def test_cgi_gigabyte(folder):
    folder.script("count.sh", f"{TEXT}echo sum $(tail -c 100 | md5sum)\n")
    block = pattern(MB)
    server = serve(folder)
    with Client(server.port) as client:
        client.send(head("/cgi/count.sh", GB))
        for _ in range(GB // MB):
            client.send(block)
        assert answer(client)[1].split()[1] == sum_of(block[-100:])
    with open(f"/proc/{server.pid}/status") as status:
        assert int(re.search(r"VmHWM:\s*(\d+) kB", status.read())[1]) * KB < 64 * MB


def test_cgi_next_request(folder):
    """The connection is still usable after such a body."""
    folder.script("sum.sh", f"{TEXT}md5sum\n")
    data = pattern(2 * MB)
    with Client(serve(folder).port) as client:
        for _ in range(3):
            client.send(head("/cgi/sum.sh", len(data)) + data + request("/index.html"))
            status, said = answer(client)
            assert (status, said.split()[0]) == (200, sum_of(data))
            assert answer(client) == (200, b"the index\n")


def test_cgi_chunks(folder):
    """Without a length it is collected, up to the limit."""
    folder.script("sum.sh", f"{TEXT}echo $CONTENT_LENGTH $(md5sum)\n")
    data = pattern(MB)
    chunk = b"%x\r\n%s\r\n" % (MB, data)
    port = serve(folder).port
    with Client(port) as client:
        client.send(head("/cgi/sum.sh", None) + 3 * chunk + b"0\r\n\r\n")
        assert answer(client)[1].split()[:2] == [b"%d" % (3 * MB), sum_of(3 * data)]
    with Client(port) as client:
        client.send(head("/cgi/sum.sh", None) + 4 * chunk + b"1\r\nx")
        assert answer(client)[0] == 413


def test_cgi_early_answer(folder):
    """The server does not wait for the rest of a body that its program does not read."""
    folder.script("deaf.sh", TEXT + "echo no thanks\n")
    folder.script("half.sh", TEXT + "head -c 400000 >/dev/null\necho enough\n")
    folder.script("closes.sh", "exec <&-\n" + TEXT + "echo none\n")
    server = serve(folder)
    for name, said in [("deaf", b"no thanks\n"), ("half", b"enough\n"), ("closes", b"none\n")]:
        for size in (2 * MB, LARGE):
            assert upload(server.port, f"/cgi/{name}.sh", pattern(size)) == (200, said)
        with Client(server.port) as client:
            client.send(head(f"/cgi/{name}.sh", GB) + pattern(MB))
            assert answer(client) == (200, said)
    server.wait_status(lambda status: status["cache"]["units"] == 0)


def test_cgi_redirect(folder):
    """To a file, and to a program, which gets no body; the old one is still arriving."""
    folder.script("file.sh", "printf 'Location: /index.html\\r\\n\\r\\n'\n")
    folder.script("other.sh", "printf 'Location: /cgi/other2.sh\\r\\n\\r\\n'\n")
    folder.script("other2.sh", TEXT + "echo $REQUEST_METHOD ${CONTENT_LENGTH-none} $(md5sum)\n")
    server = serve(folder)
    for size in (100, 3 * MB, LARGE):
        assert upload(server.port, "/cgi/file.sh", pattern(size)) == (200, b"the index\n")
        status, said = upload(server.port, "/cgi/other.sh", pattern(size))
        assert (status, said.split()[:3]) == (200, [b"GET", b"none", sum_of(b"")])
    # The file.
    server.wait_status(lambda status: status["cache"]["units"] == 1)


def test_cgi_ends(folder):
    """A program that dies before its response, while its body arrives."""
    folder.script("dies.sh", "head -c 600000 >/dev/null\nkill -9 $$\n")
    folder.script("begins.sh", TEXT + "head -c 600000 >/dev/null\necho begun; kill -9 $$\n")
    server = serve(folder)
    assert upload(server.port, "/cgi/dies.sh", pattern(LARGE))[0] == 502
    assert server.errors.wait(r"dies\.sh \(pid \d+\): was ended by signal 9")
    # A partial response is invalid, and is cut off if a part was sent.
    try:
        assert upload(server.port, "/cgi/begins.sh", pattern(LARGE))[0] == 502
    except (Closed, OSError):
        pass
    assert server.errors.wait(r"begins\.sh \(pid \d+\): was killed, possibly before its response was complete")
    server.wait_status(lambda status: status["cache"]["units"] == 0)


def test_cgi_client_goes(folder):
    """Its program has read a part of the body, and waits for more."""
    os.mkfifo(folder.path / "begun")
    folder.script("reads.sh", f"echo $$ > {folder.path}/begun\nexec cat >/dev/null\n")
    server = serve(folder)
    with Client(server.port) as client:
        client.send(head("/cgi/reads.sh", GB) + pattern(300 * KB))
        pid = int((folder.path / "begun").read_text())
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert gone(pid)
    server.wait_status(lambda status: status["cache"]["units"] == 0)


def takes(client, data):
    """Sends until the server accepts no more for a while; returns the number of bytes."""
    client.socket.settimeout(0.5)
    taken = 0
    try:
        while taken < GB:
            taken += client.socket.send(data[taken % len(data):])
    except TimeoutError:
        pass
    client.socket.settimeout(TIMEOUT)
    return taken


def test_cgi_slow(folder):
    """The client waits for a program that is slow; others do not."""
    os.mkfifo(folder.path / "go")
    folder.script("slow.sh", f"read x < {folder.path}/go\n{TEXT}wc -c\n")
    folder.script("fast.sh", TEXT + "echo fast\n")
    server = serve(folder)
    before = server.cache_used()
    with Client(server.port) as client:
        client.send(head("/cgi/slow.sh", GB))
        data = pattern(MB)
        # Most of it is in sockets.
        taken = takes(client, data)
        assert taken < 32 * MB
        assert upload(server.port, "/cgi/fast.sh", b"x") == (200, b"fast\n")
        assert server.cache_used() < before + 4 * MB
        (folder.path / "go").write_text("go\n")
        # More than a socket can hold.
        client.send(pattern(5 * MB))


def test_cgi_too_slow(folder):
    """A program that reads nothing has a time limit."""
    folder.script("stuck.sh", "exec sleep 1000\n")
    server = folder.configured("timeout=1s\nrequest-buffering=off", "max-body=0")
    with Client(server.port) as client:
        client.send(head("/cgi/stuck.sh", GB) + pattern(2 * MB))
        assert answer(client)[0] == 504


def test_cgi_filter(folder):
    """A response that cannot wait: the rest of the body is collected instead, if it is small."""
    folder.script("cat.sh", TEXT + "exec cat\n")
    server = serve(folder)
    data = pattern(KEPT)
    assert upload(server.port, "/cgi/cat.sh", data) == (200, data)
    assert upload(server.port, "/cgi/cat.sh", pattern(32 * MB))[0] == 413
    assert server.errors.wait("cat.sh .*too large to be kept")
    server.wait_status(lambda status: status["cache"]["units"] == 0)


def test_cgi_progress(folder):
    """Many small pieces before the body is read: none of it is lost."""
    folder.script("dots.sh", TEXT + "i=0; while [ $i -lt 300 ]; do echo $i; i=$((i + 1)); "
                                    "head -c 5000 >/dev/null; done; md5sum\n")
    data = pattern(KEPT)
    status, said = upload(serve(folder).port, "/cgi/dots.sh", data)
    lines = said.split(b"\n")
    assert status == 200 and lines[:300] == [b"%d" % number for number in range(300)]
    assert lines[300].split()[0] == sum_of(data[300 * 5000:])


# --- many at once -------------------------------------------------------------------------


def test_many(folder, tmp_path):
    """Of both kinds, on several threads; none gets bytes of another."""
    app = Application(summed, tmp_path / "app.sock")
    folder.script("sum.sh", f"{TEXT}md5sum\n")
    server = serve(folder, "--threads", 2, "--fastcgi", f"/app={app.address}")
    wrong = []

    def work(number):
        data = pattern(2 * MB + number * 1000, number)
        for path in ("/app", "/cgi/sum.sh", "/app"):
            status, said = upload(server.port, path, data)
            if status != 200 or said.split()[0] != sum_of(data):
                wrong.append((number, path, status, said))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    server.wait_status(lambda status: status["cache"]["units"] == 0)
    app.close()
    assert not app.faults
