# SPDX-License-Identifier: MIT
"""CGI programs (RFC 3875) in a folder: what they are told, what comes of what they
say, and that none of them holds up the server or another client."""

import contextlib
import functools
import hashlib
import http.client
import os
import re
import signal
import socket
import struct
import threading
import time

import pytest

from client import Client, exchange, request
from examples import SOURCES
from files import MB, pattern, write
from server import BUILD, SOON, TIMEOUT, VALGRIND, Server, children_of, descriptors

NABCCTL = os.path.abspath(os.path.join(BUILD, "nabcctl", "nabcctl"))
TEXT = "printf 'Content-Type: text/plain\\r\\n\\r\\n'\n"


class Folder:
    """A folder of programs, and servers for it."""

    def __init__(self, path, start):
        self.path = path
        self.start = start
        write(path / "root" / "index.html", b"the index\n")
        (path / "cgi").mkdir()
        path.chmod(0o755)

    def script(self, name, text, mode=0o755, shell="#!/bin/sh\n"):
        file = write(self.path / "cgi" / name, (shell + text).encode())
        file.chmod(mode)
        return file

    def serve(self, *options, **how):
        return self.start(self.path / "root", "--cgi", f"/cgi={self.path}/cgi",
                          "--cache-socket", self.path / "cache", *options, **how)

    def configured(self, pool, keys="", options=(), **how):
        config = self.path / "sweet.conf"
        config.write_text(f"[sweet]\nlisten=127.0.0.1:0\nroot={self.path}/root\n{keys}\n"
                          f"[pool scripts]\nprotocol=cgi\nfolder={self.path}/cgi\n{pool}\n"
                          "[path /cgi]\npool=scripts\n")
        return self.start(None, "--config", config, *options, listen=None, **how)


@pytest.fixture
def folder(tmp_path, start):
    return Folder(tmp_path, start)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.fields = response.headers
        self.body = response.read()
        self.text = self.body.decode("latin-1")


def ask(server, target, method="GET", body=None, fields=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
    try:
        connection.request(method, target, body, fields or {})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def until(good):
    """Waits for what is announced by nothing else."""
    deadline = time.monotonic() + TIMEOUT
    while not good() and time.monotonic() < deadline:
        time.sleep(0.02)
    return good()


def gone(pid):
    """Waits until no process has that number, or only what is left of one."""
    def is_gone():
        try:
            with open(f"/proc/{pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    return until(is_gone)


# --- what a program is told ------------------------------------------------------------


def test_variables(folder):
    folder.script("sub/show.sh", TEXT + "env | sort\npwd\n")
    os.environ["SECRET_OF_THE_SERVER"] = "1"
    try:
        server = folder.serve()
    finally:
        del os.environ["SECRET_OF_THE_SERVER"]
    got = ask(server, "/cgi/sub/show.sh/more%20path/x?a=b&c", fields={"X-Own": "v", "Proxy": "p"})
    *lines, directory = got.text.splitlines()
    variables = dict(line.split("=", 1) for line in lines)
    assert directory == f"{folder.path}/cgi/sub"
    expected = {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "HTTP_X_OWN": "v",
        "NABC_CACHE": f"{folder.path}/cache",
        "NABC_SERVER_PID": str(server.pid),
        "PATH_INFO": "/more path/x",
        "PATH_TRANSLATED": f"{folder.path}/root/more path/x",
        "QUERY_STRING": "a=b&c",
        "REMOTE_ADDR": "127.0.0.1",
        "REQUEST_METHOD": "GET",
        "SCRIPT_FILENAME": f"{folder.path}/cgi/sub/show.sh",
        "SCRIPT_NAME": "/cgi/sub/show.sh",
        "SERVER_PORT": str(server.port),
        "SERVER_PROTOCOL": "HTTP/1.1",
    }
    assert {name: variables.get(name) for name in expected} == expected
    assert not {"SECRET_OF_THE_SERVER", "HTTP_PROXY", "CONTENT_LENGTH"} & set(variables)


def test_example(folder):
    """cgi-examples/hello.sh with what the server gives it."""
    with open(os.path.join(SOURCES, "hello.sh")) as example:
        folder.script("hello.sh", example.read(), shell="")
    path = os.path.dirname(NABCCTL) + ":" + os.environ["PATH"]
    server = folder.serve(env={**os.environ, "PATH": path})
    got = ask(server, "/cgi/hello.sh/you")
    assert re.fullmatch(r"Hello 127\.0\.0\.1, this is process \d+\.\nYou asked for \"/you\"\.\n",
                        got.text), server.errors.text()
    assert got.fields["Content-Length"] == str(len(got.body))


def test_relative_folder(folder):
    folder.script("page.sh", TEXT + "echo page\n")
    relative = os.path.relpath(folder.path / "cgi")
    server = folder.start(folder.path / "root", "--cgi", f"/cgi={relative}")
    assert ask(server, "/cgi/page.sh").text == "page\n"


def test_descriptors(folder):
    folder.script("show.sh", TEXT + "for i in $(seq 0 99); do [ -e /proc/$$/fd/$i ] && echo $i; "
                                    "done; cat\n")
    # The shell itself may have the script as its 10.
    assert ask(folder.serve(), "/cgi/show.sh").text.split()[:4] in [["0", "1", "2"],
                                                                    ["0", "1", "2", "10"]]


@pytest.mark.parametrize("size", [1, 100, 70000, 3 * MB])
def test_body(folder, size):
    folder.script("sum.sh", TEXT + "echo $CONTENT_LENGTH; md5sum\n")
    body = pattern(size)
    server = folder.serve("--max-body", "4M")
    got = ask(server, "/cgi/sum.sh", "POST", body)
    assert got.text.split()[:2] == [str(size), hashlib.md5(body).hexdigest()]
    pieces = (body[at:at + 5000] for at in range(0, size, 5000))
    got = ask(server, "/cgi/sum.sh", "POST", pieces)  # chunked
    assert got.text.split()[:2] == [str(size), hashlib.md5(body).hexdigest()]


def test_body_that_is_not_read(folder):
    folder.script("deaf.sh", TEXT + "echo no thanks\n")
    server = folder.serve("--max-body", "4M")
    for _ in range(3):
        assert ask(server, "/cgi/deaf.sh", "POST", pattern(3 * MB)).text == "no thanks\n"


# --- which program ----------------------------------------------------------------------


def test_not_to_be_run(folder):
    folder.script("plain.sh", "", mode=0o644)
    folder.script("text", "no interpreter\n", shell="")
    folder.script("lost", "", shell="#!/nonexistent/interpreter\n")
    folder.script(".hidden.sh", TEXT)
    folder.script("sub/page.sh", TEXT)
    (folder.path / "cgi" / "out").symlink_to("/bin")
    server = folder.serve()
    for target, status in [
        ("/cgi/none", 404), ("/cgi/", 404), ("/cgi", 404), ("/cgi/plain.sh", 403),
        ("/cgi/sub", 403), ("/cgi/sub/", 404), ("/cgi/text", 500), ("/cgi/lost", 404),
        ("/cgi/.hidden.sh", 404), ("/cgi/out/true", 403), ("/cgi/%2e%2e/root/index.html", 404),
        ("/cgi/sub/page.sh", 200),
    ]:
        # Valgrind does not survive an interpreter that is not there.
        if not VALGRIND or "lost" not in target:
            assert ask(server, target).status == status, target
    assert server.errors.wait(r"script /cgi/plain\.sh: cannot be run: Permission denied")
    assert server.errors.wait(r"script /cgi/text: cannot be run: Exec format error")


# --- what it says --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said, status, fields, body",
    [
        ("Content-Type: text/x\\n\\nbody", 200, {"Content-Type": "text/x"}, b"body"),
        ("Status: 404 Nothing\\nContent-Type: text/x\\n\\nbody", 404, {}, b"body"),
        ("Content-Type: text/x\\r\\nContent-Length: 4\\r\\n\\r\\nbodybody", 200,
         {"Content-Length": "4"}, b"body"),
        ("Location: http://example.org/x\\n\\n", 302, {"Location": "http://example.org/x"}, b""),
        ("Status: 301\\nLocation: http://example.org/\\n\\n", 301, {}, b""),
        ("X-Own: 1\\nX-Nabc-Tag: t\\nContent-Type: a/b\\n\\n", 200,
         {"X-Own": "1", "X-NABC-Tag": None}, b""),
        ("Status: 204\\n\\n", 204, {}, b""),
        # What is no answer.
        ("", 502, {}, None),
        ("no header at all\\n", 502, {}, None),
        ("Content-Type: text/x\\n", 502, {}, None),
        ("Status: abc\\n\\n", 502, {}, None),
        ("X-NABC-Cache-Id: 12345\\n\\n", 502, {"X-NABC-Cache-Id": None}, None),
        ("X-NABC-Cache-Id: abc\\n\\n", 502, {}, None),
    ],
)
def test_heads(folder, said, status, fields, body):
    folder.script("say.sh", f"printf '{said}'\n")
    server = folder.serve()
    got = ask(server, "/cgi/say.sh")
    assert got.status == status
    assert {name: got.fields[name] for name in fields} == fields
    if body is not None:
        assert got.body.startswith(body) if status >= 300 else got.body == body
    else:
        assert server.errors.wait(r"script /cgi/say\.sh \(pid \d+\): ")
    assert ask(server, "/cgi/say.sh", "HEAD").body == b""


def test_local_redirect(folder):
    folder.script("there.sh", "printf 'Location: /cgi/here.sh/x?from=there\\n\\n'\n")
    folder.script("here.sh", TEXT + 'echo "$REQUEST_METHOD $SCRIPT_NAME $PATH_INFO $QUERY_STRING"')
    folder.script("file.sh", "printf 'Location: /index.html\\n\\n'\n")
    folder.script("round.sh", "printf 'Location: /cgi/round.sh\\n\\n'\n")
    server = folder.serve()
    assert ask(server, "/cgi/there.sh").text == "GET /cgi/here.sh /x from=there\n"
    assert ask(server, "/cgi/file.sh").body == b"the index\n"
    assert ask(server, "/cgi/round.sh").status >= 500


def test_local_redirect_of_the_same_request(folder):
    """The redirected request has the version and the host of the one that was sent."""
    folder.script("there.sh", "printf 'Location: /cgi/here.sh\\n\\n'\n")
    folder.script("here.sh", TEXT + 'echo "$SERVER_PROTOCOL $SERVER_NAME $SERVER_PORT"')
    server = folder.serve()
    for version, target, host, name in [
            ("1.0", "", None, "127.0.0.1"), ("1.0", "", "one:81", "one"), ("1.1", "", "one", "one"),
            ("1.1", "http://two", "one", "two"), ("1.0", "http://two:82", None, "two")]:
        for script in ["here.sh", "there.sh"]:
            field = f"Host: {host}\r\n" if host else ""
            answer = exchange(server.port, f"GET {target}/cgi/{script} HTTP/{version}\r\n{field}"
                                           "Connection: close\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 200 "), answer
            assert f"HTTP/{version} {name} {server.port}\n".encode() in answer


def test_large_answer(folder):
    data = pattern(20 * MB)
    write(folder.path / "data", data)
    folder.script("cat.sh", TEXT + f"cat {folder.path}/data\n")
    server = folder.serve("--cache-size", "16M")
    for _ in range(2):
        assert ask(server, "/cgi/cat.sh").body == data


def test_pieces_as_they_come(folder):
    os.mkfifo(folder.path / "go")
    folder.script("slow.sh", TEXT + f"echo one; read x < {folder.path}/go; echo two\n")
    server = folder.serve()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
    connection.request("GET", "/cgi/slow.sh")
    response = connection.getresponse()
    assert response.read(4) == b"one\n"
    assert response.fp.peek(2) == b"\r\n"  # the chunk's end
    (folder.path / "go").write_text("\n")
    assert response.read() == b"two\n"
    connection.close()


def test_complaints(folder):
    folder.script("complain.sh", "printf 'first\\nsecond \\033[1m\\nlast' >&2\n" + TEXT)
    folder.script("flood.sh", TEXT + "yes complaint | head -c 2000000 >&2; echo done\n")
    server = folder.serve()
    assert ask(server, "/cgi/complain.sh").status == 200
    assert server.errors.wait(r"script /cgi/complain\.sh \(pid \d+\): says: last$")
    assert server.errors.count(r"says: first$", 1) == 1
    assert server.errors.count(r"says: second \\x1b", 1) == 1
    assert ask(server, "/cgi/flood.sh").text == "done\n"
    assert server.errors.wait(r"says more, which is left out")
    assert server.errors.count(r"says: complaint") < 2000


def test_ends_of_programs(folder):
    folder.script("kill.sh", "printf 'Content-Type: text/plain\\n\\nhalf'; kill -KILL $$\n")
    folder.script("before.sh", "kill -TERM $$\n")
    server = folder.serve()
    try:
        assert ask(server, "/cgi/kill.sh").status == 502
    except http.client.IncompleteRead:
        pass  # its half had left
    assert server.errors.wait(r"kill\.sh \(pid \d+\): was ended by signal 9")
    assert ask(server, "/cgi/before.sh").status == 502
    assert server.errors.wait(r"before\.sh \(pid \d+\): ended without an answer")


def read_to_end(client, data=b""):
    """What comes, and whether that is all of it, as far as the connection tells."""
    try:
        while more := client.recv(65536):
            data += more
    except ConnectionResetError:
        return data, False
    return data, b"chunked" not in data or data.endswith(b"\r\n0\r\n\r\n")


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("end, good", [
    ("true", True), ("exit 9", True), ("kill -KILL $$", False), ("kill -TERM $$", False),
])
def test_end_of_unknown_length(folder, version, end, good):
    """Of a program that is killed the end of its output is not that of its answer."""
    os.mkfifo(folder.path / "go")
    folder.script("end.sh", TEXT + f"echo half; read x < {folder.path}/go; {end}\n")
    server = folder.serve()
    go = os.open(folder.path / "go", os.O_RDWR)
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as client:
        client.sendall(f"GET /cgi/end.sh HTTP/{version}\r\nHost: x\r\n"
                       "Connection: close\r\n\r\n".encode())
        data = b""
        while b"half" not in data:
            data += client.recv(65536)
        os.write(go, b"\n")
        data, whole = read_to_end(client, data)
    assert (b"chunked" in data) == (version == "1.1") and b" 200 " in data
    assert whole == good
    os.close(go)


def test_output_that_is_closed(folder):
    """Who closes it and goes on has said all."""
    os.mkfifo(folder.path / "go")
    folder.script("close.sh", TEXT + f"echo all; exec 1>&-; read x < {folder.path}/go\n"
                                     f"echo done > {folder.path}/done\nkill -KILL $$\n")
    server = folder.serve()
    assert ask(server, "/cgi/close.sh").text == "all\n"
    go = os.open(folder.path / "go", os.O_RDWR)
    os.write(go, b"\n")
    assert until((folder.path / "done").exists)
    os.close(go)


# --- units -----------------------------------------------------------------------------------


def test_unit(folder):
    """The page crosses no pipe; whoever made it has ended by then."""
    data = pattern(200000)
    write(folder.path / "page", data)
    folder.script("unit.sh", f"id=$({NABCCTL} put --ttl 60 {folder.path}/page) || exit 1\n"
                             "printf \"Content-Type: text/x\\nX-NABC-Cache-Id: $id\\n"
                             "$QUERY_STRING\\n\\n\"\n")
    server = folder.serve()
    for query, expected in [("X-NABC-Offset:0", data), ("X-NABC-Offset:1000", data[1000:]),
                            ("X-NABC-Length:5000", data[:5000])]:
        got = ask(server, f"/cgi/unit.sh?{query}")
        assert (got.status, got.fields["Content-Type"]) == (200, "text/x")
        assert got.body == expected
        assert not [name for name in got.fields if name.lower().startswith("x-nabc")]
    assert ask(server, "/cgi/unit.sh?X-NABC-Length:200001").status == 502
    assert ask(server, "/cgi/unit.sh?X-NABC-Offset:200001").status == 502
    assert server.errors.wait(r"unit\.sh \(pid \d+\): named a range that is not within its unit")


def test_unit_in_a_full_cache(folder):
    """It is there when its program tells of it, though the cache makes room all the time."""
    data = pattern(300000)
    write(folder.path / "page", data)
    for number in range(40):
        write(folder.path / "root" / f"file{number}", pattern(200000, number))
    os.mkfifo(folder.path / "made")
    os.mkfifo(folder.path / "go")
    folder.script("unit.sh", f"id=$({NABCCTL} put --ttl 60 {folder.path}/page) || exit 1\n"
                             f"echo > {folder.path}/made; read x < {folder.path}/go\n"
                             "printf \"X-NABC-Cache-Id: $id\\n\\n\"\n")
    server = folder.serve("--cache-size", "4M")
    got = []
    sender = threading.Thread(target=lambda: got.append(ask(server, "/cgi/unit.sh")))
    sender.start()
    (folder.path / "made").read_text()
    before = server.status()["cache"]["evictions"]
    for number in range(40):
        assert ask(server, f"/file{number}").body == pattern(200000, number)
    assert server.status()["cache"]["evictions"] > before
    (folder.path / "go").write_text("\n")
    sender.join(TIMEOUT)
    assert (got[0].status, got[0].body) == (200, data)


@pytest.mark.parametrize("said, method", [
    ("X-NABC-Cache-Id: $id\\n\\n", "GET"), ("Content-Length: 5\\n\\npage\\n", "GET"),
    ("Status: 204\\n\\n", "GET"), ("Content-Type: a/b\\n\\n", "HEAD"),
])
def test_work_after_the_answer(folder, said, method):
    folder.script("work.sh", f"id=$(echo page | {NABCCTL} put --ttl 60 -) || exit 1\n"
                             f"printf \"{said}\"\n"
                             f"read x < {folder.path}/go; echo done > {folder.path}/done\n")
    os.mkfifo(folder.path / "go")
    server = folder.serve()
    go = os.open(folder.path / "go", os.O_RDWR)
    assert ask(server, "/cgi/work.sh", method).status in (200, 204)
    os.write(go, b"\n")
    assert until((folder.path / "done").exists)
    os.close(go)


def test_unit_of_another(folder):
    """What somebody else has made is not sent, though it is there."""
    write(folder.path / "page", b"a secret page\n")
    folder.script("make.sh", TEXT + f"{NABCCTL} put --ttl 60 {folder.path}/page\n")
    folder.script("name.sh", "printf \"X-NABC-Cache-Id: $QUERY_STRING\\n\\n\"\n")
    server = folder.serve()
    stranger = ask(server, "/cgi/make.sh").text.strip()
    assert stranger.isdigit()
    got = ask(server, f"/cgi/name.sh?{stranger}")
    assert got.status == 502 and b"secret" not in got.body
    assert server.errors.wait(r"name\.sh \(pid \d+\): named a unit that is not its own, or gone")


# --- limits ----------------------------------------------------------------------------------


def test_too_late(folder, clock):
    os.mkfifo(folder.path / "begun")
    folder.script("hang.sh", f"trap '' TERM; echo $$ > {folder.path}/begun\n"
                             "while :; do sleep 1000 & wait; done\n")
    # Not moved until then: what starts programs must have told the program's number.
    server = folder.configured(f"timeout={SOON}s", "threads=1", clock=clock)
    with Client(server.port) as client:
        client.send(request("/cgi/hang.sh"))
        pid = int((folder.path / "begun").read_text())
        assert client.response().status == 504
    assert server.errors.wait(r"hang\.sh \(pid \d+\): took too long to answer: ending it")
    # It has 2 s to end by itself.
    server.forward(2.1)
    assert gone(pid)
    assert server.errors.wait(r"hang\.sh \(pid \d+\): does not end: ending it")


def test_silence_in_the_middle(folder):
    folder.script("stop.sh", TEXT + f"echo $$ > {folder.path}/pid; echo half; exec sleep 1000\n")
    server = folder.configured(f"timeout={SOON}s")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        ask(server, "/cgi/stop.sh")
    assert gone(int((folder.path / "pid").read_text()))
    assert server.errors.wait(r"stop\.sh \(pid \d+\): has stopped writing")


def test_client_goes(folder):
    """Before the answer, and while it comes: the program ends too."""
    os.mkfifo(folder.path / "begun")
    begun = f"echo $$ > {folder.path}/begun\n"
    folder.script("silent.sh", begun + "exec sleep 1000\n")
    folder.script("endless.sh", begun + TEXT + "exec cat /dev/zero\n")
    server = folder.serve()
    for name in ["silent.sh", "endless.sh"]:
        with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as client:
            client.sendall(f"GET /cgi/{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            pid = int((folder.path / "begun").read_text())
            if name == "endless.sh":
                assert client.recv(1000)
            # Gone, and not only silent.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert gone(pid), name


def test_slow_client(folder):
    """Little is read ahead for who reads nothing, and others are served meanwhile."""
    folder.script("endless.sh", TEXT + "exec cat /dev/zero\n")
    folder.script("fast.sh", TEXT + "echo fast\n")
    server = folder.serve("--cache-size", "8M")
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as client:
        client.sendall(b"GET /cgi/endless.sh HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1000)
        for _ in range(5):
            assert ask(server, "/cgi/fast.sh").text == "fast\n"


def test_many_at_once(folder):
    """No more run than may; the others wait, and too many are refused."""
    os.mkfifo(folder.path / "go")
    write(folder.path / "begun", b"")
    folder.script("wait.sh", f"echo x >> {folder.path}/begun\n" + TEXT
                  + f"read x < {folder.path}/go; echo done\n")
    server = folder.configured("processes=2\nqueue=3", "threads=1")
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(ask(server, "/cgi/wait.sh").status))
               for _ in range(8)]
    for thread in threads:
        thread.start()
    assert until(lambda: len(statuses) == 3)
    assert statuses == [503] * 3
    assert until(lambda: (folder.path / "begun").read_text() == "x\nx\n")
    while any(thread.is_alive() for thread in threads):
        go = os.open(folder.path / "go", os.O_RDWR)
        os.write(go, b"\n")
        time.sleep(0.05)
        os.close(go)
    assert sorted(statuses) == [200] * 5 + [503] * 3


def test_waiting_costs_nothing(folder):
    """Whoever waits for room is told of it, and does not ask over and over."""
    os.mkfifo(folder.path / "go")
    folder.script("wait.sh", TEXT + f"cat {folder.path}/go; echo done\n")
    server = folder.configured("processes=1\nqueue=10", "threads=1")

    def used():
        with open(f"/proc/{server.pid}/stat") as stat:
            return sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))

    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(server, "/cgi/wait.sh").text))
               for _ in range(2)]
    for thread in threads:
        thread.start()
    server.wait_status(lambda status: status["workers"]["pools"][0]["waiting"] == 1)
    before, began = used(), time.monotonic()
    time.sleep(0.5)  # nothing happens, which is what is looked at
    share = (used() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)
    for count in (1, 2):
        (folder.path / "go").write_bytes(b"well ")
        assert until(lambda: len(answers) == count)
    for thread in threads:
        thread.join()
    assert answers == ["well done\n"] * 2
    assert share < 0.5


def test_waiting_for_descriptors(folder):
    """A program that cannot be started is when it can be, though no other gives room back."""
    folder.script("page.sh", TEXT + "echo page\n")
    folder.start = functools.partial(folder.start, prefix=("prlimit", "--nofile=100:100"))
    server = folder.configured("", "threads=1")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
    clients = []
    try:
        connection.request("GET", "/index.html")
        connection.getresponse().read()
        # Each is served or turned away before the next comes.
        while not server.errors.count("accepting connections: Too many open files"):
            clients.append(Client(server.port))
            with contextlib.suppress(AssertionError, ConnectionError):
                clients[-1].get("/index.html")
        connection.request("GET", "/cgi/page.sh")
        assert server.errors.wait("cannot start a program: Too many open files")
        for client in clients:
            client.close()
        answer = Answer(connection.getresponse())
        assert (answer.status, answer.text) == (200, "page\n")
    finally:
        connection.close()
        for client in clients:
            client.close()


def test_waiting_is_over_threads(folder):
    """Room that one thread gives back is another's who waits."""
    folder.script("short.sh", TEXT + "sleep 0.02; echo done\n")
    server = folder.configured("processes=1\nqueue=100", "threads=2")
    statuses = []

    def client():
        for _ in range(1 if VALGRIND else 5):
            statuses.append(ask(server, "/cgi/short.sh").status)

    threads = [threading.Thread(target=client) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200}


# --- users, configurations, ends --------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become others")
def test_users(folder):
    folder.path.parent.chmod(0o755)
    folder.path.parent.parent.chmod(0o755)
    folder.script("id.sh", TEXT + "id -un; id -gn; grep NoNew /proc/self/status\n")
    server = folder.configured("user=daemon", "user=nobody")
    assert ask(server, "/cgi/id.sh").text.split()[:2] == ["daemon", "daemon"]
    server.stop()
    server = folder.configured("", "user=nobody")
    assert ask(server, "/cgi/id.sh").text.split()[0] == "nobody"


def test_environment_and_limits(folder):
    folder.script("show.sh", TEXT + 'echo "$COLOUR $(ulimit -v)"; pwd\n')
    server = folder.configured("environment=COLOUR=blue\nmemory-limit=512M\ndirectory=/usr")
    assert ask(server, "/cgi/show.sh").text == "blue 524288\n/usr\n"


def test_reload(folder):
    """The programs are the first configuration's; what is the same goes on."""
    folder.script("show.sh", TEXT + "echo $COLOUR\n")
    server = folder.configured("environment=COLOUR=blue")
    config = folder.path / "sweet.conf"
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("reloaded ")
    assert ask(server, "/cgi/show.sh").text == "blue\n"
    config.write_text(config.read_text().replace("protocol=cgi", "protocol=cgi\ntimeout=7s"))
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("reloaded ", 2)
    assert ask(server, "/cgi/show.sh").text == "blue\n"
    config.write_text(config.read_text().replace("blue", "red"))
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("pool scripts: what CGI programs there are is settled when the "
                              "server starts: start it anew")
    assert ask(server, "/cgi/show.sh").text == "blue\n"
    config.write_text("[sweet]\nlisten=127.0.0.1:0\n"
                      f"root={folder.path}/root\n[pool scripts]\nprotocol=cgi\n"
                      f"folder={folder.path}/cgi\nenvironment=COLOUR=blue\n")
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("reloaded ", 3)
    assert ask(server, "/cgi/show.sh").status == 404


def test_pool_ends(folder):
    """A reload that has no use for the programs ends those that still run, in the end."""
    os.mkfifo(folder.path / "begun")
    folder.script("page.sh", f"echo $$ > {folder.path}/begun\n" + TEXT
                  + "echo half; exec >&-; exec sleep 1000\n")
    server = folder.configured("")
    answers = []
    thread = threading.Thread(target=lambda: answers.append(ask(server, "/cgi/page.sh").text))
    thread.start()
    pid = int((folder.path / "begun").read_text())
    thread.join()
    assert answers == ["half\n"]
    (folder.path / "sweet.conf").write_text(f"[sweet]\nlisten=127.0.0.1:0\n"
                                            f"root={folder.path}/root\n")
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("pool scripts: ending")
    assert gone(pid)


def test_end_of_the_server(folder, kind):
    os.mkfifo(folder.path / "begun")
    folder.script("hang.sh", f"echo $$ > {folder.path}/begun\nexec sleep 1000\n")
    folder.start = functools.partial(Server, kind)
    server = folder.serve()
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as client:
        client.sendall(b"GET /cgi/hang.sh HTTP/1.1\r\nHost: x\r\n\r\n")
        pid = int((folder.path / "begun").read_text())
        server.kill()
        assert gone(pid)


def test_nothing_is_left_behind(folder):
    folder.script("page.sh", TEXT + "echo page\n")
    folder.script("none.sh", "")
    server = folder.serve()
    counts = []
    for _ in range(2):
        for _ in range(20):
            assert ask(server, "/cgi/page.sh").text == "page\n"
            assert ask(server, "/cgi/none.sh").status == 502
            assert ask(server, "/cgi/nowhere").status == 404
        until(lambda: not counts or descriptors(server.pid) <= counts[0])
        counts.append(descriptors(server.pid))
    assert counts[1] <= counts[0] + 2, counts
    (keeper,) = server.workers()
    assert len(children_of(keeper)) == 1
