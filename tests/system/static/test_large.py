# SPDX-License-Identifier: MIT
"""Files that are too large to be cached whole: of 10 GB, for many clients
concurrently, and files that change while they are sent.  In all cases a client gets
the bytes of one version up to the announced length, or detects that it does not:
with large-files=sendfile by a reset, since its bytes may be a mixture; with copy
all its bytes are of one version.
"""

import os
import threading

import pytest

import tls
from client import Client
from files import KB, MB, pattern, write
from server import SCALE, TIMEOUT, VALGRIND, running

GB = 1 << 30
TEN = 10 * GB
MARKS = {0: b"the first", 9 * GB: b"at nine", TEN - 8: b"the last"}
SIZE = 6 * MB  # of files that change


def sparse(path, size, marks):
    with open(path, "wb") as out:
        for at, mark in marks.items():
            out.seek(at)
            out.write(mark)
        out.truncate(size)
    return path


def expected(first, last):
    data = bytearray(last + 1 - first)
    for at, mark in MARKS.items():
        for place in range(max(at, first), min(at + len(mark), last + 1)):
            data[place - first] = mark[place - at]
    return bytes(data)


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = tmp_path_factory.mktemp("large")
    sparse(root / "ten", TEN, MARKS)
    with running(kind, root, "--cache-size", "16M", "--log-level", "info") as server:
        server.root = root
        yield server
    (root / "ten").unlink()


def test_ten_gigabytes(server):
    with Client(server.port) as client:
        got = client.get("/ten", "HEAD")
        assert (got.status, got["Content-Length"]) == (200, str(TEN))
        tag = got["ETag"]
        for value, first, last in [
            ("9663676410-9663676429", 9 * GB - 6, 9 * GB + 13),
            (f"{9 * GB}-{9 * GB + 3 * MB}", 9 * GB, 9 * GB + 3 * MB),
            (f"{4 * GB - 5}-{4 * GB + 5}", 4 * GB - 5, 4 * GB + 5),
            (f"{TEN - 20}-", TEN - 20, TEN - 1),
            ("-8", TEN - 8, TEN - 1),
            (f"{TEN - 1}-{TEN + 5}", TEN - 1, TEN - 1),
        ]:
            got = client.get("/ten", fields=f"Range: bytes={value}\r\nIf-Range: {tag}\r\n")
            assert got.status == 206
            assert got["Content-Range"] == f"bytes {first}-{last}/{TEN}"
            assert got.body == expected(first, last)
        got = client.get("/ten", fields=f"Range: bytes=-8,{9 * GB}-{9 * GB + 6},0-4\r\n")
        assert got.status == 206
        for mark in (b"the last", b"at nine", b"the f"):
            assert b"\r\n\r\n" + mark + b"\r\n" in got.body
        got = client.get("/ten", fields=f"Range: bytes={TEN}-\r\n")
        assert (got.status, got["Content-Range"]) == (416, f"bytes */{TEN}")


def test_client_of_ten_gigabytes_goes_away(server):
    """Its memory is released, and the server stops reading for it."""
    for _ in range(3):
        with Client(server.port) as client:
            client.send(b"GET /ten HTTP/1.1\r\nHost: t\r\n\r\n")
            client.head()
            client.take(3 * MB)
    with Client(server.port) as client:
        got = client.get("/ten", fields="Range: bytes=0-8\r\n")
        assert got.body == b"the first"


@pytest.mark.skipif(VALGRIND, reason="two gigabytes take minutes under Valgrind")
@pytest.mark.thorough
def test_more_than_two_gigabytes(tmp_path):
    """Read completely: beyond 2^31, where a signed number would overflow."""
    size, at = 2 * GB + 3 * MB // 2, 2 * GB + 5
    sparse(tmp_path / "file", size, {at: b"behind"})
    zeros, buffer = bytes(MB), bytearray(MB)
    with running("epoll", tmp_path) as server, Client(server.port) as client:
        client.send(b"GET /file HTTP/1.1\r\nHost: t\r\n\r\n")
        assert b"Content-Length: %d\r\n" % size in client.head() + b"\r\n"
        have, found = len(client.data), b""
        assert not client.data.strip(b"\0")
        while have < size:
            length = client.socket.recv_into(buffer)
            assert length
            if buffer[:length] != zeros[:length]:
                found += buffer[:length].strip(b"\0")
                assert have <= at + 6 and at <= have + length
            have += length
        assert (have, found) == (size, b"behind")
    (tmp_path / "file").unlink()


def version(number, size=SIZE):
    return bytes([number]) * size


def begin(server, name, fields=b""):
    """A client that has received the head of the response and then stops reading."""
    path = write(server.root / name, version(1))
    client = Client(server.port, 4096)
    client.send(b"GET /%s HTTP/1.1\r\nHost: t\r\n%s\r\n" % (name.encode(), fields))
    assert b"Content-Length: " in client.head()
    return path, client


def rest(client):
    """Returns the bytes until the end, and whether that is a reset."""
    got = client.data
    try:
        while piece := client.socket.recv(MB):
            got += piece
    except ConnectionResetError:
        return got, True
    return got, False


@pytest.fixture(scope="module")
def copying(kind, tmp_path_factory):
    root = tmp_path_factory.mktemp("copying")
    options = ["--cache-size", "16M", "--large-files", "copy", "--log-level", "info"]
    with running(kind, root, *options) as server:
        server.root = root
        yield server


@pytest.fixture(params=["sendfile", "copy"])
def either(request, server, copying):
    server.lends, copying.lends = True, False
    return server if request.param == "sendfile" else copying


def rename_over(path):
    write(path.with_name("beside"), version(2))
    os.replace(path.with_name("beside"), path)


WHOLE = {
    "renamed-over": rename_over,
    "unlinked": os.unlink,
    "renamed": lambda path: os.rename(path, path.with_name("elsewhere")),
    "linked": lambda path: os.link(path, path.with_name("link")),
    "chmod": lambda path: path.chmod(0o600),
}


@pytest.mark.parametrize("name", WHOLE)
def test_sent_to_the_end(either, name):
    """Changes of its name do not affect a file that is being sent."""
    write(either.root / "other", b"the other")
    path, client = begin(either, name)
    with client:
        WHOLE[name](path)
        assert client.take(SIZE) == version(1)
        other = client.get("/other", fields="Range: bytes=0-3\r\n")
        assert other.body == b"the "
    for left in (path, path.with_name("elsewhere"), path.with_name("link")):
        left.unlink(missing_ok=True)


def rewrite(path):
    with open(path, "r+b", buffering=0) as out:
        os.pwrite(out.fileno(), version(2), 0)


def append(path):
    with open(path, "ab", buffering=0) as out:
        out.write(b"\2" * KB)


def rewrite_last(path):
    with open(path, "r+b", buffering=0) as out:
        os.pwrite(out.fileno(), b"\2", SIZE - 1)


def rewrite_and_restore(path):
    """As touch -r does, and what unpacks archives: the time of the content is the old one."""
    before = os.stat(path)
    rewrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CUT = {
    "rewritten": rewrite,
    "restored": rewrite_and_restore,
    "rewritten-last": rewrite_last,
    "emptied": lambda path: os.truncate(path, 0),
    "shorter": lambda path: os.truncate(path, SIZE - 1),
    "longer": append,
}


@pytest.mark.parametrize("name", CUT)
def test_cut_off(either, name):
    """If its bytes may have changed, the client does not get the full length."""
    path, client = begin(either, name)
    with client:
        CUT[name](path)
        got, reset = rest(client)
        assert len(got) < SIZE and reset == either.lends
        assert either.lends or got == version(1, len(got))
    with Client(either.port) as client:
        assert client.get("/" + name).body == path.read_bytes()
    either.errors.wait("the file was ")
    path.unlink()


def test_changed_near_its_end(either):
    """The last bytes are sent after all others were acknowledged: the client cannot have them
    yet.  A copied response may have been sent completely."""
    path, client = begin(either, "near", b"Connection: close\r\n")
    with client:
        got = client.take(SIZE - 64 * KB)
        assert got == version(1, len(got))
        rewrite_last(path)
        got, _ = rest(client)
        assert len(got) < 64 * KB if either.lends and tls.OVER != "h2" else got == version(1, len(got))
    path.unlink()


def test_range_cut_off(either):
    path, client = begin(either, "parts", b"Range: bytes=0-2999999,3000001-5999999\r\n")
    with client:
        rewrite(path)
        got, _ = rest(client)
        assert either.lends or b"\2" not in got
        assert len(got) < 5999999
    path.unlink()


def test_many_at_once(tmp_path):
    """More windows than the cache can hold: all clients are served in the end."""
    data = pattern(3 * MB)
    write(tmp_path / "many", data)
    faults = []

    def read(client):
        try:
            assert client.response().body == data
        except Exception as error:  # raised by the main thread
            faults.append(error)

    with running("epoll", tmp_path, "--cache-size", "4M") as server:
        clients = [Client(server.port, 4096) for _ in range(24 // SCALE)]
        for client in clients:
            client.send(b"GET /many HTTP/1.1\r\nHost: t\r\n\r\n")
        threads = [threading.Thread(target=read, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
            assert not thread.is_alive()
        for client in clients:
            client.close()
        assert not faults, faults[0]
        assert server.status()["cache"]["used"] <= 4 * MB


def test_replaced_all_the_time(tmp_path):
    """Looked up, opened, read: body and fields are of one version."""
    path = write(tmp_path / "replaced", version(1, SIZE - 1))
    over = threading.Event()

    def replace():
        number = 1
        while not over.wait(0.01):
            number = number % 250 + 1
            write(path.with_name("next"), version(number, SIZE - number))
            os.replace(path.with_name("next"), path)

    thread = threading.Thread(target=replace)
    with running("epoll", tmp_path, "--cache-size", "16M") as server, Client(server.port) as client:
        thread.start()
        try:
            for _ in range(16 // SCALE):
                got = client.get("/replaced")
                number = got.body[0]
                assert got.status == 200 and got.body == version(number, SIZE - number)
                got = client.get("/replaced", fields="Range: bytes=-7\r\n")
                number = got.body[0]
                assert got.status == 206 and got.body == version(number, 7)
                assert got["Content-Range"].endswith(f"/{SIZE - number}")
        finally:
            over.set()
            thread.join(TIMEOUT)


def test_another_version_is_opened(tmp_path):
    """Trusted for an hour, and replaced: the head describes the new version."""
    path = write(tmp_path / "file", version(1))
    options = ["--cache-size", "16M", "--revalidate", 3600000]
    with running("epoll", tmp_path, *options) as server, Client(server.port) as client:
        old = client.get("/file")
        assert old.body == version(1)
        path.write_bytes(version(2, 5 * MB))
        new = client.get("/file")
        assert (new.status, new.body) == (200, version(2, 5 * MB))
        assert new["ETag"] != old["ETag"] and new["Last-Modified"]
        got = client.get("/file", fields="Range: bytes=0-1,-2\r\n")
        assert got.status == 206 and got.body.count(b"/5242880\r\n\r\n\2\2\r\n--") == 2
        got = client.get("/file", fields=f"Range: bytes=0-4\r\nIf-Range: {new['ETag']}\r\n")
        # For the old version the range was ignored, for the new one it is valid.
        assert (got.status, got.body) == (206, b"\2" * 5)
        got = client.get("/file", fields=f"Range: bytes={5 * MB}-\r\n")
        assert (got.status, got["Content-Range"]) == (416, f"bytes */{5 * MB}")
        client.send(
            f"GET /file HTTP/1.1\r\nHost: t\r\nIf-None-Match: {new['ETag']}\r\n\r\n".encode()
        )
        got = client.response("HEAD")
        assert (got.status, got["ETag"]) == (304, new["ETag"])
        got = client.get("/file", fields=f"If-Match: {old['ETag']}\r\n")
        assert got.status == 412
        for data in (b"", b"small"):
            path.write_bytes(data)
            got = client.get("/file")
            assert (got.status, got.body) == (200, data)
        path.unlink()
        assert client.get("/file").status == 404
        assert client.get("/file", "HEAD").status == 200  # trusted, as configured
