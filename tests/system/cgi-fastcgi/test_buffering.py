# SPDX-License-Identifier: MIT
"""Bodies that are spooled to disk: of requests, so that slow clients occupy no
program, and of programs' responses, so that programs need not wait for slow
clients.  Each pool here has one process, which does one thing at a time."""

import contextlib
import hashlib
import os
import socket
import struct
import threading

import pytest

from client import Client, Closed, Response, request
from files import KB, MB, pattern, write
from responder import Application
from server import SCALE, TIMEOUT, inside
from test_slow_clients import whole
from test_upload_programs import answer, head

CACHE = 16 * MB
LARGE = 32 * MB // SCALE
ANSWER = 16 * MB  # more than sockets buffer
PART = 3 * MB  # more than is kept in memory
CLIENTS = 8
TEXT = "printf 'Content-Type: text/plain\\r\\n\\r\\n'\n"


def sum_of(data):
    return hashlib.md5(data).hexdigest().encode()


class Programs:
    """Programs of one protocol; /app/sum responds with the length and sum of a body, /app/small
    is small, /app/large has as many bytes of the pattern as its query says."""

    def __init__(self, protocol, folder, start):
        self.protocol = protocol
        self.folder = folder
        self.start = start
        self.application = None
        self.server = None
        self.lost = None

    def serve(self, keys="", pool="", **how):
        programs = self.cgi() if self.protocol == "cgi" else self.fastcgi()
        (self.folder / "spool").mkdir()
        config = write(self.folder / "sweet.conf", (
            f"[sweet]\nlisten=127.0.0.1:0\nroot={self.folder}\nthreads=1\nmax-body=0\n"
            f"cache-size={CACHE}\nspool-directory={self.folder}/spool\nspool-memory=on\n{keys}\n"
            f"[pool app]\nprotocol={self.protocol}\nqueue-timeout={TIMEOUT}s\n{programs}\n{pool}\n"
            "[path /app]\npool=app\n").encode())
        self.server = self.start(None, "--config", config, listen=None, **how)
        return self.server

    def cgi(self):
        write(self.folder / "pattern", pattern(ANSWER))
        for name, text in {
            "small": "echo small",
            "large": f'head -c "$QUERY_STRING" {self.folder}/pattern',
            "sum": "echo $CONTENT_LENGTH $(md5sum)",
        }.items():
            write(self.folder / "cgi" / name, f"#!/bin/sh\n{TEXT}{text}\n".encode()).chmod(0o755)
        self.folder.chmod(0o755)
        if self.lost:
            begins, begun, go = self.lost
            first = f"{TEXT}echo begun" if begins else ":"
            last = ":" if begins else TEXT
            write(self.folder / "cgi/lost", (f"#!/bin/sh\n{first}\necho x >{begun}\nread x <{go}\n"
                                            f"md5sum >&2\n{last}\n").encode()).chmod(0o755)
        return f"processes=1\nfolder={self.folder}/cgi"

    def when_asked(self, begins, begun, go):
        """/app/lost reports through a pipe that it has begun, perhaps with its response, and
        reads its body when it is told to."""
        self.lost = begins, begun, go

    def fastcgi(self):
        # As one process would: a request begins when the previous one is complete.
        one = threading.Lock()

        def handle(asked):
            with one:
                if asked.variables["PATH_INFO"] == "/lost":
                    begins, begun, go = self.lost
                    if begins:
                        asked.out(b"Content-Type: text/plain\r\n\r\nbegun\n")
                    begun.write_text("x\n")
                    with open(go) as told:
                        told.readline()
                body = asked.body()
                if asked.variables["PATH_INFO"] == "/sum":
                    length = asked.variables["CONTENT_LENGTH"]
                    asked.answer(f"{length} ".encode() + sum_of(body))
                elif asked.variables["PATH_INFO"] == "/large":
                    asked.answer(pattern(int(asked.variables["QUERY_STRING"])), size=32768)
                else:
                    asked.answer(b"small\n")

        self.application = Application(handle, self.folder / "app.sock")
        return f"upstream={self.application.address}\nin-flight=1\nscript-suffix="

    def small(self):
        """Returns the status of a response that needs the one process."""
        with Client(self.server.port) as client:
            client.send(request("/app/small"))
            said = Response(client.head(), b"")
            whole(client, said)
            return said.status

    def await_empty(self):
        self.server.wait_status(lambda status: status["spool"]["bytes"] == 0
                                and status["spool"]["files"] == 0
                                and status["cache"]["units"] == 0)


@pytest.fixture(params=["fastcgi", "cgi"])
def programs(request, tmp_path, start):
    made = Programs(request.param, tmp_path, start)
    yield made
    if made.application:
        made.application.close()
        assert not made.application.faults


def spooled(status):
    return status["spool"]["bytes"]


def summed(client, data):
    status, said = answer(client)
    assert status == 200, said
    assert said.split()[:2] == [b"%d" % len(data), sum_of(data)]


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


# --- requests -----------------------------------------------------------------------------


def test_slow_uploads_hold_no_program(programs):
    """Many clients stop in the middle: all other requests are served meanwhile."""
    server = programs.serve()
    data = pattern(PART)
    clients = [Client(server.port) for _ in range(CLIENTS)]
    for number, client in enumerate(clients):
        if number % 2:
            client.send(head("/app/sum", None) + chunk(data[: 2 * MB]))
        else:
            client.send(head("/app/sum", len(data)) + data[: 2 * MB])
    # All received bytes except the last incomplete piece.
    server.wait_status(lambda status: spooled(status) > CLIENTS * MB)
    assert programs.small() == 200
    for number, client in enumerate(clients):
        rest = data[2 * MB :]
        client.send(chunk(rest) + b"0\r\n\r\n" if number % 2 else rest)
        summed(client, data)
        client.close()
    programs.await_empty()


def test_large_chunked_upload(programs):
    """Larger than any unit; its program gets the length."""
    server = programs.serve()
    data = pattern(LARGE)
    with Client(server.port) as client:
        client.send(head("/app/sum", None))
        for at in range(0, LARGE, 4 * MB):
            client.send(chunk(data[at : at + 4 * MB]))
        client.send(b"0\r\n\r\n")
        summed(client, data)
        # The connection is still usable after it.
        client.send(head("/app/sum", None) + chunk(data[:PART]) + b"0\r\n\r\n")
        summed(client, data[:PART])
    assert server.status()["spool"]["written_bytes"] >= LARGE
    programs.await_empty()


def test_large_uploads_at_once(programs):
    """More than fits into memory."""
    server = programs.serve()
    data = pattern(LARGE // 2)
    answers = []

    def upload(number):
        with Client(server.port) as client:
            client.send(head("/app/sum", len(data) if number else None))
            client.send(data if number else chunk(data) + b"0\r\n\r\n")
            summed(client, data)
            answers.append(number)

    threads = [threading.Thread(target=upload, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [0, 1, 2]
    programs.await_empty()


@pytest.mark.parametrize("size", [1, MB, MB + 1, MB + 2, 5 * 256 * KB - 1, 5 * 256 * KB,
                                  5 * 256 * KB + 1])
@pytest.mark.parametrize("chunked", [False, True])
def test_sizes(programs, size, chunked):
    server = programs.serve()
    data = pattern(size)
    with Client(server.port) as client:
        body = chunk(data) + b"0\r\n\r\n" if chunked else data
        client.send(head("/app/sum", None if chunked else size) + body)
        summed(client, data)
    programs.await_empty()


def test_many_small_uploads(programs):
    """More of them than fit into memory: received data is spooled, too."""
    server = programs.serve()
    data = pattern(MB)
    clients = [Client(server.port) for _ in range(CLIENTS)]
    for client in clients:
        client.send(head("/app/sum", MB) + data[: 900 * KB])
    server.wait_status(lambda status: spooled(status) > MB)
    assert programs.small() == 200
    for client in clients:
        client.send(data[900 * KB :])
        summed(client, data)
        client.close()
    programs.await_empty()


def test_refused_closes_nothing(programs):
    """A request that no program has received leaves the server's descriptors unchanged."""
    server = programs.serve("spool-size=4M")
    path = f"{inside(server.process.pid, 'fd')}/0"
    before = os.readlink(path)
    with Client(server.port) as client:
        client.send(head("/app/sum", 4 * MB + 1) + b"x")
        assert answer(client)[0] == 413
    server.wait_status(lambda status: status["spool"]["files"] == 0)
    assert os.readlink(path) == before


def test_deleted_folder(programs):
    """The log says what is wrong, once; a new folder in its place is used at once."""
    server = programs.serve("log-level=info")
    data, folder = pattern(PART), programs.folder / "spool"
    folder.rmdir()
    for _ in range(2):
        with Client(server.port) as client:
            client.send(head("/app/sum", PART) + data)
            assert answer(client)[0] == 503
    assert server.errors.wait(r'spool": was deleted, and cannot be opened again: No such file')
    assert server.errors.text().count("was deleted") == 1
    folder.mkdir()
    for _ in range(2):
        with Client(server.port) as client:
            client.send(head("/app/sum", PART) + data)
            summed(client, data)
    assert server.errors.text().count("and is opened again") == 1
    assert server.errors.text().count("the request body cannot be kept on disk") == 2
    assert "no valid response" not in server.errors.text()
    programs.await_empty()


def test_no_room(programs):
    """The limit, for one body alone and for all; each refusal is logged, and counted."""
    server = programs.serve("spool-size=4M")
    data = pattern(PART)
    with Client(server.port) as first, Client(server.port) as second, \
            Client(server.port) as third:
        third.send(head("/app/sum", 4 * MB + 1) + b"x")
        assert answer(third)[0] == 413
        first.send(head("/app/sum", PART) + data[: 5 * MB // 2])
        server.wait_status(lambda status: spooled(status) >= 2 * MB)
        second.send(head("/app/sum", PART) + data)
        assert answer(second)[0] == 503
        assert server.errors.wait(r"127\.0\.0\.1: pool app: request body, at byte \d+: disk error: "
                                  "spool-size is reached")
        # The second one releases its part, then there is space again.
        server.wait_status(lambda status: status["spool"]["files"] == 1)
        first.send(data[5 * MB // 2 :])
        summed(first, data)
    assert server.status()["spool"]["refused"] == 1
    programs.await_empty()


LIMITED = ("sh", "-c", 'ulimit -f 2048; exec "$@"', "sh")  # 1 MB of a file, a full disk's stand-in


def test_full_disk(programs):
    server = programs.serve(prefix=LIMITED)
    with Client(server.port) as client:
        client.send(head("/app/sum", PART) + pattern(PART))
        assert answer(client)[0] == 503
    assert server.errors.wait("pool app: request body, at byte .* disk error: File too large")
    assert programs.small() == 200
    programs.await_empty()


@pytest.mark.parametrize("sent", [2 * MB, PART])
def test_client_goes(programs, sent):
    """In the middle of its body, or before the response: nothing of it is left."""
    server = programs.serve()
    with Client(server.port) as client:
        client.send(head("/app/sum", PART) + pattern(sent))
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert programs.small() == 200
    programs.await_empty()


def test_end(programs):
    """A server that exits drops waiting bodies."""
    server = programs.serve("stop-timeout=0s")
    with Client(server.port) as client:
        client.send(head("/app/sum", PART) + pattern(2 * MB))
        server.wait_status(lambda status: spooled(status) >= MB)
        server.stop()


def spool_files(server, folder):
    files = []
    for entry in os.scandir(inside(server.pid, "fd")):
        # Others are opened and closed meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(entry.path).startswith(folder):
                files.append(entry.path)
    return files


@pytest.mark.parametrize("keys", ["", "read-only=on"])
def test_files(programs, keys):
    """No other process can open them, by name or by mode; they can be created in a sandbox."""
    server = programs.serve(keys)
    folder = f"{programs.folder}/spool/"
    data = pattern(PART)
    with Client(server.port) as client:
        client.send(head("/app/sum", PART) + data[: 2 * MB])
        server.wait_status(lambda status: spooled(status) >= MB)
        files = spool_files(server, folder)
        assert len(files) == 1
        assert os.stat(files[0]).st_mode == 0o100600 and os.stat(files[0]).st_nlink == 0
        assert os.listdir(folder) == []
        client.send(data[2 * MB :])
        summed(client, data)
    programs.await_empty()


@pytest.mark.parametrize("begins", [False, True])
def test_lost(programs, begins):
    """Data that cannot be read from the disk is not replaced: the request fails."""
    begun, go = programs.folder / "begun", programs.folder / "go"
    for fifo in (begun, go):
        os.mkfifo(fifo)
    programs.when_asked(begins, begun, go)
    server = programs.serve()
    with Client(server.port) as client, open(go, "r+b", buffering=0) as told:
        client.send(head("/app/lost", PART) + pattern(PART))
        begun.read_text()
        if begins:
            # The error kills the program, and what it wrote may then be lost.
            assert b" 200 " in client.head()
        files = spool_files(server, f"{programs.folder}/spool/")
        os.truncate(files[0], 0)
        # The program may have been killed already: the server reads ahead.
        told.write(b"go\n")
        if begins:
            with pytest.raises((Closed, ConnectionResetError)):
                client.take(PART)
        else:
            assert answer(client)[0] == 502
    assert server.errors.wait("pool app: request body, at byte .* disk error: Input/output error")
    assert server.errors.wait("the request body cannot be read back from disk")
    assert programs.small() == 200
    programs.await_empty()


# --- responses ------------------------------------------------------------------------------


def read_slowly(client, size):
    said = Response(client.head(), b"")
    assert said.status == 200
    sum, at = hashlib.md5(), 0
    while at < size:
        if "Content-Length" in said:
            piece = client.take(min(MB, size - at))
        else:
            text = client.take(1)
            while not text.endswith(b"\r\n"):
                text += client.take(1)
            piece = client.take(int(text, 16) + 2)[:-2]
            assert piece
        sum.update(piece)
        at += len(piece)
    if "Content-Length" not in said:
        assert client.take(5) == b"0\r\n\r\n"
    return at, sum.hexdigest().encode()


def test_slow_readers_hold_no_program(programs):
    """The complete response waits, and arrives unchanged, however late."""
    server = programs.serve()
    clients = [Client(server.port, buffer=64 * KB) for _ in range(2)]
    for client in clients:
        client.send(request(f"/app/large?{ANSWER}"))
    assert programs.small() == 200
    assert spooled(server.status()) > 0
    for client in clients:
        assert read_slowly(client, ANSWER) == (ANSWER, sum_of(pattern(ANSWER)))
        client.close()
    assert server.status()["workers"]["slow_clients"] == 0
    programs.await_empty()


def test_answer_without_room(programs):
    """A part is reserved for uploads: beyond it the program waits for its client, as without
    spooling."""
    size = ANSWER
    server = programs.serve("spool-size=4M", "stream-ahead=0")
    with Client(server.port, buffer=64 * KB) as client:
        client.send(request(f"/app/large?{size}"))
        server.wait_status(lambda status: spooled(status) > 2 * MB)
        assert read_slowly(client, size) == (size, sum_of(pattern(size)))
    assert server.status()["spool"]["refused"] == 0
    assert programs.small() == 200
    programs.await_empty()


def test_answer_on_full_disk(programs):
    """It is cut off in a way that the client detects, and its program continues."""
    size = ANSWER
    server = programs.serve(pool="stream-ahead=0", prefix=LIMITED)
    with Client(server.port, buffer=64 * KB) as client:
        client.send(request(f"/app/large?{size}"))
        assert server.errors.wait("cannot store its response on disk: File too large")
        with pytest.raises((Closed, ConnectionResetError)):
            read_slowly(client, size)
    assert programs.small() == 200
    programs.await_empty()


def test_reader_goes(programs):
    server = programs.serve()
    with Client(server.port, buffer=64 * KB) as client:
        client.send(request(f"/app/large?{ANSWER}"))
        server.wait_status(lambda status: spooled(status) > MB)
    programs.await_empty()


def test_off(programs):
    """Options of the pool disable spooling completely."""
    server = programs.serve(pool="request-buffering=off\nresponse-buffering=off\n")
    data = pattern(PART)
    with Client(server.port) as client:
        client.send(head("/app/sum", PART) + data)
        summed(client, data)
        client.send(request(f"/app/large?{8 * MB}"))
        assert read_slowly(client, 8 * MB) == (8 * MB, sum_of(pattern(8 * MB)))
    assert server.status()["spool"]["written_bytes"] == 0
