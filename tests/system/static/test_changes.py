# SPDX-License-Identifier: MIT
"""Files that change while clients request them continuously.  Every byte of a version
identifies it, each change is one system call, and a response must equal the file at
some moment between its request and its end: complete, and never older than the last
change before the request.
"""

import os
import threading

import pytest

from client import Client, Closed
from files import KB, MB, pattern, write
from server import SCALE, TIMEOUT, running

CLIENTS = 4
ROUNDS = 24 // SCALE
GONE = None


def version(number, size):
    return bytes([number % 251 + 1]) * size


class Watched:
    """A file and all its states; clients request it while it changes."""

    def __init__(self, server, path, may_break=False):
        self.server = server
        self.path = path
        self.may_break = may_break  # a large response may be cut off
        self.states = [path.read_bytes()]
        self.made = 0  # states that certainly exist
        self.answers = [0] * CLIENTS
        self.faults = []
        self.over = False
        self.changed = threading.Condition()

    def ask(self, number):
        client = Client(self.server.port)
        while not self.over:
            first = self.made
            try:
                got = client.get("/" + self.path.name)
                status, body, whole = got.status, got.body, True
            except Closed as short:
                status, body, whole = 200, short.data, False
                client.close()
                client = Client(self.server.port)
            except OSError as error:
                status, body, whole = 0, str(error).encode(), True
            with self.changed:
                if not self.possible(first, status, body, whole):
                    self.faults.append(
                        f"{status}, {len(body)} bytes of {sorted(set(body))[:9]}, whole: {whole}, "
                        f"not version {first} of {len(self.states)} or later"
                    )
                    self.over = True
                self.answers[number] += whole and status != 503
                self.changed.notify_all()
        client.close()

    def possible(self, first, status, body, whole):
        if self.may_break and status == 503:
            return b"The file is being changed." in body
        if not whole:
            return self.may_break and any(
                state.startswith(body) for state in self.states[first:]
            )
        if status == 404:
            return GONE in self.states[first:]
        return status == 200 and body in self.states[first:]

    def change(self, state, call, *arguments):
        self.states.append(state)
        call(*arguments)
        with self.changed:
            self.made = len(self.states) - 1
            # Each client has a response whose request was sent after the change.
            seen = [answer + 2 for answer in self.answers]
            assert self.changed.wait_for(
                lambda: self.over or all(a >= s for a, s in zip(self.answers, seen)), TIMEOUT
            )

    def run(self, changes):
        threads = [threading.Thread(target=self.ask, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            for state, call, *arguments in changes:
                self.change(state, call, *arguments)
                if self.over:
                    break
        finally:
            self.over = True
            for thread in threads:
                thread.join(TIMEOUT)
        assert not self.faults, self.faults[0]
        assert min(self.answers) >= 2 * (len(self.states) - 1) > 0


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = tmp_path_factory.mktemp("changes")
    with running(kind, root, "--cache-size", "16M") as server:
        server.root = root
        yield server


def watched(server, name, size, **more):
    path = server.root / name
    path.unlink(missing_ok=True)
    return Watched(server, write(path, version(0, size)), **more)


def other_name(path, data):
    """Writes the data to another file, which is to be renamed."""
    beside = path.with_name("beside")
    beside.write_bytes(data)
    return beside


@pytest.mark.parametrize("size", [1, 4096, 100 * KB, MB], ids=str)
def test_renamed_over(server, size):
    file = watched(server, "renamed", size)

    def changes():
        for number in range(1, ROUNDS):
            data = version(number, size + number % 3)
            yield data, os.replace, other_name(file.path, data), file.path

    file.run(changes())


@pytest.mark.parametrize("options", [(), ("--content-cache", "off"), ("--path-cache", "off")],
                         ids=lambda options: "-".join(options).strip("-") or "default")
@pytest.mark.parametrize("size", [10, 100 * KB, 6 * MB], ids=str)
def test_renamed_over_all_the_time(kind, tmp_path, size, options):
    """Every file that is opened is one version, which nobody writes to any more."""
    path = write(tmp_path / "file", version(0, size))
    over = threading.Event()

    def replace():
        number = 0
        while not over.wait(0.01):
            number += 1
            os.replace(other_name(path, version(number, size)), path)

    thread = threading.Thread(target=replace)
    with running(kind, tmp_path, "--cache-size", "16M", *options) as server:
        thread.start()
        try:
            with Client(server.port) as client:
                for _ in range(48 // SCALE):
                    got = client.get("/file")
                    assert got.status == 200 and got.body == got.body[:1] * size
        finally:
            over.set()
            thread.join(TIMEOUT)


def test_streamed_and_renamed_over(server):
    """Too large to be cached whole: a pending response continues from the open file."""
    file = watched(server, "large", 6 * MB)

    def changes():
        for number in range(1, ROUNDS // 3 + 1):
            data = version(number, 6 * MB + number % 3)
            yield data, os.replace, other_name(file.path, data), file.path

    file.run(changes())


@pytest.mark.parametrize("size", [1, 4096, 64 * KB], ids=str)
def test_written_in_place(server, size):
    """The same file, the same size."""
    file = watched(server, "written", size)
    with open(file.path, "r+b", buffering=0) as out:
        file.run(
            (version(number, size), os.pwrite, out.fileno(), version(number, size), 0)
            for number in range(1, ROUNDS)
        )


def test_truncated_and_grown(server):
    file = watched(server, "grown", 100 * KB)

    def changes():
        data = file.states[0]
        for number in range(1, ROUNDS // 2 + 1):
            data = data[: len(data) // 2]
            yield data, os.truncate, file.path, len(data)
            more = version(number, 50 * KB)
            data += more
            yield data, append, file.path, more

    file.run(changes())


def append(path, data):
    with open(path, "ab", buffering=0) as out:
        out.write(data)


def test_emptied_and_filled(server):
    file = watched(server, "emptied", 5000)

    def changes():
        for number in range(1, ROUNDS // 2 + 1):
            yield b"", os.truncate, file.path, 0
            data = version(number, 5000)
            yield data, append, file.path, data

    file.run(changes())


def test_removed_and_there_again(server):
    file = watched(server, "removed", 5000)

    def changes():
        for number in range(1, 3 * ROUNDS + 1):
            yield GONE, os.unlink, file.path
            data = version(number, 5000)
            yield data, os.replace, other_name(file.path, data), file.path

    file.run(changes())


def test_folder_in_its_place(server):
    path = server.root / "place"
    with Client(server.port) as client:
        write(path, b"a file\n")
        assert client.get("/place").body == b"a file\n"
        path.unlink()
        write(path / "index.html", b"a folder\n")
        assert client.get("/place").status == 301
        assert client.get("/place/").body == b"a folder\n"
        (path / "index.html").unlink()
        assert client.get("/place/").status == 403
        path.rmdir()
        assert client.get("/place/").status == 404
        write(path, b"a file again\n")
        assert client.get("/place").body == b"a file again\n"


def test_answer_under_way_keeps_its_version(server):
    """A pending response to a slow client does not change."""
    old, new = pattern(3 * MB, seed=1), pattern(3 * MB, seed=2)
    path = write(server.root / "slow", old)
    with Client(server.port, 4096) as slow, Client(server.port) as other:
        slow.send(b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n")
        slow.head()
        os.replace(other_name(path, new), path)
        assert other.get("/slow").body == new
        assert slow.take(len(old)) == old


def test_streamed_file_that_changes_breaks_off(server):
    """Too large to be cached: the client gets a cut-off response, and can detect that."""
    size = 12 * MB
    path = write(server.root / "streamed", version(1, size))
    with Client(server.port, 4096) as client:
        client.send(b"GET /streamed HTTP/1.1\r\nHost: test\r\n\r\n")
        assert b"Content-Length: %d" % size in client.head()
        with open(path, "r+b", buffering=0) as out:
            os.pwrite(out.fileno(), version(2, size), 0)
        length = len(client.data)
        with pytest.raises(ConnectionResetError):
            while piece := client.socket.recv(MB):
                length += len(piece)
        assert length < size
    with Client(server.port) as client:
        assert client.get("/streamed").body == version(2, size)


def test_trusted_for_a_while(kind, tmp_path):
    """With --revalidate a known file is not checked again so soon."""
    path = write(tmp_path / "file", b"old\n")
    with running(kind, tmp_path, "--revalidate", 3600000) as server:
        with Client(server.port) as client:
            assert client.get("/file").body == b"old\n"
            path.write_bytes(b"new\n")
            assert client.get("/file").body == b"old\n"
            assert client.get("/file?").body == b"old\n"
