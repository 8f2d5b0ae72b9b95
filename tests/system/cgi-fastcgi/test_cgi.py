# SPDX-License-Identifier: MIT
"""CGI programs (RFC 3875) in a folder: what they receive, and the results of their output."""

import hashlib
import http.client
import os
import re
import threading

import pytest

import tls
from client import PROTOCOL, connect, exchange, http_connection
from examples import SOURCES
from files import MB, pattern, write
from held import until
from server import BUILD, TIMEOUT, VALGRIND

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
    connection = http_connection(server.port)
    try:
        connection.request(method, target, body, fields or {})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def gone(pid):
    """Waits until no process has that pid, or only a zombie."""
    def is_gone():
        try:
            with open(f"/proc/{pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    return until(is_gone)


# --- what a program receives -----------------------------------------------------------


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
        "SERVER_PROTOCOL": PROTOCOL,
    }
    assert {name: variables.get(name) for name in expected} == expected
    assert not {"SECRET_OF_THE_SERVER", "HTTP_PROXY", "CONTENT_LENGTH"} & set(variables)


def test_example(folder):
    """cgi-examples/hello.sh with the variables of the server."""
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
    # The shell itself may use descriptor 10 for the script.
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
        # Valgrind crashes if an interpreter does not exist.
        if not VALGRIND or "lost" not in target:
            assert ask(server, target).status == status, target
    assert server.errors.wait(r"script /cgi/plain\.sh: cannot be run: Permission denied")
    assert server.errors.wait(r"script /cgi/text: cannot be run: Exec format error")


# --- its output ----------------------------------------------------------------------------


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
        # Invalid responses.
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
    """The redirected request has the version and the host of the original one."""
    folder.script("there.sh", "printf 'Location: /cgi/here.sh\\n\\n'\n")
    folder.script("here.sh", TEXT + 'echo "$SERVER_PROTOCOL $SERVER_NAME $SERVER_PORT"')
    server = folder.serve()
    for version, target, host, name in [
            ("1.0", "", None, "127.0.0.1"), ("1.0", "", "one:81", "one"), ("1.1", "", "one", "one"),
            ("1.1", "http://two", "one", "two"), ("1.0", "http://two:82", None, "two")]:
        for script in [] if tls.HTTP2 and version == "1.0" else ["here.sh", "there.sh"]:
            field = f"Host: {host}\r\n" if host else ""
            answer = exchange(server.port, f"GET {target}/cgi/{script} HTTP/{version}\r\n{field}"
                                           "Connection: close\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 200 "), answer
            protocol = PROTOCOL if version == "1.1" else "HTTP/1.0"
            assert f"{protocol} {name} {server.port}\n".encode() in answer


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
    connection = http_connection(server.port)
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
    # What a reader of the log is too late for is counted, in front of the next message.
    assert ask(server, "/cgi/complain.sh").status == 200
    assert server.errors.wait("says more, which is left out|messages that were lost")
    assert server.errors.count(r"says: complaint") < 2000


def test_ends_of_programs(folder):
    folder.script("kill.sh", "printf 'Content-Type: text/plain\\n\\nhalf'; kill -KILL $$\n")
    folder.script("before.sh", "kill -TERM $$\n")
    server = folder.serve()
    try:
        assert ask(server, "/cgi/kill.sh").status == 502
    except http.client.IncompleteRead:
        pass  # half of it was sent
    assert server.errors.wait(r"kill\.sh \(pid \d+\): was ended by signal 9")
    assert ask(server, "/cgi/before.sh").status == 502
    assert server.errors.wait(r"before\.sh \(pid \d+\): ended without a response")


def read_to_end(client, data=b""):
    """Returns what arrives, and whether that is complete, as far as the connection shows."""
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
    """If a program is killed, the end of its output is not the end of its response."""
    os.mkfifo(folder.path / "go")
    folder.script("end.sh", TEXT + f"echo half; read x < {folder.path}/go; {end}\n")
    server = folder.serve()
    go = os.open(folder.path / "go", os.O_RDWR)
    with connect(server.port) as client:
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
    """A program that closes its output and continues has completed its response."""
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
    """The page passes through no pipe; the program that made it has exited by then."""
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
    assert server.errors.wait(r"unit\.sh \(pid \d+\): sent a range that is outside its unit")


def test_unit_in_a_full_cache(folder):
    """The unit exists when its program names it, though the cache evicts all the time."""
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
    """An existing unit of another process is not sent."""
    write(folder.path / "page", b"a secret page\n")
    folder.script("make.sh", TEXT + f"{NABCCTL} put --ttl 60 {folder.path}/page\n")
    folder.script("name.sh", "printf \"X-NABC-Cache-Id: $QUERY_STRING\\n\\n\"\n")
    server = folder.serve()
    stranger = ask(server, "/cgi/make.sh").text.strip()
    assert stranger.isdigit()
    got = ask(server, f"/cgi/name.sh?{stranger}")
    assert got.status == 502 and b"secret" not in got.body
    assert server.errors.wait(r"name\.sh \(pid \d+\): sent the id of a unit that it may not use")
