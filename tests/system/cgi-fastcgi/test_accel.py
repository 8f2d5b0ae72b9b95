# SPDX-License-Identifier: MIT
"""internal paths, and programs that let the server send a file: X-Accel-Redirect, X-Sendfile."""

import http.client
import os
import re
import time
from urllib.parse import quote

import pytest

import server as servers
from client import Client
from files import MB, pattern, write
from responder import Application

RULES = """[sweet]
cache=response
error-page=503=/inside/sorry.html
[path /inside]
internal=on
[path /inside/app]
internal=on
pool=leads
[path /inside/open]
internal=off
[path /inside/timed]
internal=on
pool=leads
cache=1h
[path /led]
pool=leads
[path /plain]
pool=plain
[path /fast]
pool=fast
[path /fast-plain]
pool=fast-plain
[path /rewritten]
rewrite=/inside
[path /tried]
try-files=file;/inside/a.txt
[pool leads]
protocol=cgi
folder={top}/programs
accel=internal;{top}/files;{top}/files/deep
[pool plain]
protocol=cgi
folder={top}/programs
[pool fast]
protocol=fastcgi
upstream={address}
accel=internal;{top}/files;{top}/files/deep
[pool fast-plain]
protocol=fastcgi
upstream={address}
"""
PROGRAM = b"""#!/bin/sh
echo "$HTTP_FIELDS" | tr '|' '\\n'
echo "Content-Type: text/x-own"
echo "Set-Cookie: a=b"
echo ETag: mine
echo
echo the program itself
"""
# Its head is sent before its body ends, the first time that it runs.
SLOW = b"""#!/bin/sh
echo "Content-Type: text/plain"
cat {top}/lines
echo
echo begun
mkdir "{top}/once-$QUERY_STRING" && read -r end < {top}/end
echo "$$"
"""
LINES = b"""#!/bin/sh
echo "Content-Type: text/plain"
echo "Content-Length: 5"
cat {top}/lines
echo
echo made
"""
ERROR = b"""#!/bin/sh
echo Status: 503
test $QUERY_STRING = bare && echo Content-Length: 0 || echo Content-Type: text/plain
echo
"""
FILE = pattern(3 * MB + 7)


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    top = tmp_path_factory.mktemp("accel")
    for name in ["a.txt", "open/a.txt", "sorry.html"]:
        write(top / "root/inside" / name, name.encode())
    write(top / "programs/p", PROGRAM).chmod(0o755)
    write(top / "programs/slow", SLOW.replace(b"{top}", bytes(top))).chmod(0o755)
    write(top / "programs/lines", LINES.replace(b"{top}", bytes(top))).chmod(0o755)
    os.mkfifo(top / "end")
    write(top / "programs/error", ERROR).chmod(0o755)
    write(top / "files/big", FILE)
    write(top / "files/deep/.hidden", b"hidden")
    write(top / "outside", b"secret")
    os.symlink(top / "outside", top / "files/link")
    return top


def answer(request):
    """As the program."""
    request.body()
    fields = request.variables.get("HTTP_FIELDS", "").replace("|", "\r\n")
    request.answer(b"the program itself\n", (
        f"{fields}{fields and chr(13) + chr(10)}Content-Type: text/x-own\r\n"
        "Content-Length: 19\r\nSet-Cookie: a=b\r\nETag: mine\r\n").encode("latin-1"))


@pytest.fixture(scope="module")
def server(top):
    app = Application(answer, top / "app.sock")
    rules = RULES.replace("{top}", str(top)).replace("{address}", app.address)
    with servers.running("epoll", top / "root", "--config",
                         write(top / "sweet.conf", rules.encode())) as server:
        yield server
    app.close()
    assert not app.faults


def ask(server, target, fields=(), method="GET", more=""):
    with Client(server.port) as client:
        client.send(f"{method} {target} HTTP/1.1\r\nHost: a\r\nFields: {'|'.join(fields)}\r\n"
                    f"{more}\r\n".encode())
        return client.response(method)


def test_internal(server):
    assert ask(server, "/inside/a.txt").status == 404
    assert ask(server, "/inside").status == 404
    assert ask(server, "/inside/app/p").status == 404
    assert ask(server, "/inside/open/a.txt").body == b"open/a.txt"
    assert ask(server, "/rewritten/a.txt").body == b"a.txt"
    assert ask(server, "/tried/x").body == b"a.txt"
    # A Location that is a path is a request as the client's own.
    with Client(server.port) as client:
        client.send(b"GET /led/p HTTP/1.1\r\nHost: a\r\nFields: Location: /inside/a.txt\r\n\r\n")
        assert b" 302 " in client.head().splitlines()[0]


@pytest.mark.parametrize("path", ["/led/p", "/fast/p"])
def test_redirect(server, path):
    for _ in range(3):
        answer = ask(server, path, ["X-Accel-Redirect: /inside/a.txt", "Cache-Control: private"])
        assert (answer.status, answer.body) == (200, b"a.txt")
        assert answer["Content-Type"] == "text/x-own" and answer["Set-Cookie"] == "a=b"
        assert answer["Cache-Control"] == "private" and answer["ETag"] != "mine"
        assert "X-Accel-Redirect" not in answer
    answer = ask(server, path, ["X-Accel-Redirect: /inside/a.txt"], "HEAD")
    assert (answer.status, answer["Content-Length"]) == (200, "5")
    again = ask(server, path, ["X-Accel-Redirect: /inside/a.txt"],
                more=f"If-None-Match: {answer['ETag']}\r\n")
    assert again.status == 304 and again["Set-Cookie"] == "a=b"


NAMES = ["a b", "\u00e4\u20ac", "100% sure", '"<x>^`{}\\', "a#b", "c;d=e&f"]


@pytest.mark.parametrize("path", ["/led/p", "/fast/p"])
@pytest.mark.parametrize("name", NAMES)
def test_redirect_as_it_is(server, top, path, name):
    """Names that programs do not escape, and the same ones escaped."""
    write(top / "root/inside" / name, name.encode())
    for written in (name, quote(name), quote(name) + "?x=\u00e4 b"):
        answer = ask(server, path, [f"X-Accel-Redirect: /inside/{written}"])
        assert (answer.status, answer.body) == (200, name.encode())


@pytest.mark.parametrize("name", ["../outside", "../../outside", ".%2e/outside", "a%00b"])
def test_redirect_is_no_way_out(server, name):
    for rest in (name, name + " \u00e4"):
        assert ask(server, "/led/p", [f"X-Accel-Redirect: /inside/{rest}"]).status in (400, 502)


@pytest.mark.parametrize("target, status", [
    ("/inside/none", 404), ("/inside/open/a.txt", 502), ("/led/p", 502), ("/", 502),
    ("/inside/../outside", 502), ("/inside/%2e%2e/%2e%2e/outside", 400), ("/inside/app/p", 200)])
def test_redirect_elsewhere(server, target, status):
    answer = ask(server, "/led/p", [f"X-Accel-Redirect: {target}"])
    if target == "/inside/app/p":
        # It leads to itself, as the client's field says.
        assert answer.status == 502
        assert server.errors.wait("for the eleventh time")
        return
    assert answer.status == status
    # The fields of the program are not those of an error.
    assert "Set-Cookie" not in answer and "text/html" in answer["Content-Type"]


def test_error_page(server):
    """The path of an error page may be internal."""
    answer = ask(server, "/plain/error?bare")
    assert (answer.status, answer.body) == (503, b"sorry.html")
    assert answer["Content-Type"].startswith("text/html")
    with Client(server.port) as client:
        client.send(b"GET /plain/error?typed HTTP/1.1\r\nHost: a\r\n\r\n")
        head = client.head()
    assert b" 503 " in head.splitlines()[0] and b"text/plain" in head


def test_error_of_a_program_that_leads(server):
    answer = ask(server, "/led/p", ["Status: 503", "X-Accel-Redirect: /inside/a.txt"])
    assert (answer.status, answer.body) == (200, b"a.txt")


@pytest.mark.parametrize("path", ["/led/p", "/fast/p"])
def test_file(server, top, path):
    for _ in range(2):
        answer = ask(server, path, [f"X-Sendfile: {top}/files/big"])
        assert (answer.status, answer["Content-Type"]) == (200, "text/x-own")
        assert answer.body == FILE
        assert "X-Sendfile" not in answer and answer["Set-Cookie"] == "a=b"
    answer = ask(server, path, [f"X-Sendfile: {top}/files/big"], more="Range: bytes=5-9\r\n")
    assert (answer.status, answer.body) == (206, FILE[5:10])
    answer = ask(server, path, [f"X-Sendfile: {top}/files/big"],
                 more="Range: bytes=0-0,7-8\r\n")
    assert answer.status == 206
    assert re.match("multipart/byteranges; boundary=", answer["Content-Type"])
    answer = ask(server, path, [f"X-Sendfile: {top}/files/deep/.hidden"])
    assert answer.body == b"hidden"


@pytest.mark.parametrize("line, content", [("X-Sendfile: {top}/files/big", FILE),
                                           ("X-Accel-Redirect: /inside/a.txt", b"a.txt")])
def test_refresh(server, top, line, content):
    """Without a client: the response of another path, or a file, is not stored for this one."""
    path = f"/led/lines?{line.partition(':')[0]}"
    write(top / "lines", b"Cache-Control: max-age=600\nSurrogate-Key: tag\n")
    assert ask(server, path).body == b"made\n"
    assert ask(server, "/led/p", ["X-NABC-Soft-Purge: tag", "Content-Length: 19"]).status == 200
    stale = server.status()["answers"]["stale"]
    write(top / "lines", line.replace("{top}", str(top)).encode() + b"\n")
    assert ask(server, path).body == b"made\n"
    assert server.status()["answers"]["stale"] == stale + 1
    # When the refresh has ended, the page is kept no longer: the program answers a client.
    deadline = time.monotonic() + servers.TIMEOUT
    while (got := ask(server, path)).body == b"made\n":
        assert time.monotonic() < deadline
    assert (got.status, got.body) == (200, content)


@pytest.mark.parametrize("path", ["/led/p", "/fast/p"])
@pytest.mark.parametrize("line, content", [("X-Sendfile: {top}/files/big", FILE),
                                           ("X-Accel-Redirect: /inside/a.txt", b"a.txt"),
                                           ("X-Own: yes", b"made\n")],
                         ids=["file", "redirect", "own"])
def test_redirect_to_a_program(server, top, path, line, content):
    """Whatever it leads to in turn, the fields of the first program replace those of the second."""
    write(top / "lines", line.replace("{top}", str(top)).encode()
          + b"\nX-Second: b\nSet-Cookie: second=1\nETag: second\n")
    answer = ask(server, path, ["X-Accel-Redirect: /inside/app/lines", "X-First: a"])
    assert (answer.status, answer.body) == (200, content)
    assert (answer["X-First"], answer["X-Second"]) == ("a", "b")
    assert answer["Content-Type"] == "text/x-own" and answer["Set-Cookie"] == "a=b"
    assert answer["ETag"] != "mine" and (answer["ETag"] == "second") == ("Own" in line)


@pytest.mark.parametrize("file, status", [
    ("{top}/outside", 502), ("{top}/files", 502), ("{top}/filesystem", 502),
    ("{top}/files/../outside", 403), ("{top}/files/link", 403), ("{top}/files/deep", 404),
    ("{top}/files/deep/", 403), ("{top}/files/none", 404), ("relative", 502),
    ("/etc/passwd", 502)])
def test_file_elsewhere(server, top, file, status):
    answer = ask(server, "/led/p", [f"X-Sendfile: {file.replace('{top}', str(top))}"])
    assert answer.status in (status, 404) and answer.status >= 400
    assert b"secret" not in answer.body and "Set-Cookie" not in answer


@pytest.mark.parametrize("path, lines, kept", [
    ("/inside/app/slow?1", "Cache-Control: max-age=60", True),
    ("/inside/app/slow?2", "Cache-Control: private, max-age=60", False),
    ("/inside/app/slow?3", "X-None: a", False),
    ("/inside/timed/slow?4", "Cache-Control: max-age=60", True),
    ("/inside/timed/slow?5", "X-None: a", False)])
def test_kept(server, top, path, lines, kept):
    """What a program leads to is kept with explicit freshness alone, and without the program's
    fields, which are for one client."""
    def led(field, first=False):
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=servers.TIMEOUT)
        client.request("GET", "/led/p", headers={"Fields": f"X-Accel-Redirect: {path}|{field}: a"})
        answer = client.getresponse()
        if first:
            (top / "end").write_text("\n")
        body = answer.read()
        client.close()
        assert (answer.status, answer.headers[field]) == (200, "a")
        assert not ({"X-Ann", "X-Bob"} - {field}) & set(answer.headers)
        assert body.startswith(b"begun\n")
        return body

    (top / "lines").write_text(f"{lines}\n")
    assert (led("X-Ann", first=True) == led("X-Bob")) == kept


def test_fastcgi_elsewhere(server, top):
    for field, status in [(f"X-Sendfile: {top}/outside", 502), ("X-Accel-Redirect: /led/p", 502),
                          (f"X-Sendfile: {top}/files/none", 404)]:
        answer = ask(server, "/fast/p", [field])
        assert answer.status == status and "Set-Cookie" not in answer


def test_two(server, top):
    answer = ask(server, "/led/p", ["X-Accel-Redirect: /inside/a.txt",
                                    "X-Accel-Redirect: /inside/b.txt"])
    assert answer.status == 502


def test_not_asked_for(server, top):
    """Without accel, the program responds itself, and the fields do not get to the client."""
    for field in ["X-Accel-Redirect: /inside/a.txt", f"X-Sendfile: {top}/files/big"]:
        with Client(server.port) as client:
            client.send(f"GET /plain/p HTTP/1.1\r\nHost: a\r\nFields: {field}\r\n\r\n".encode())
            head = client.head().lower()
            while b"the program itself" not in client.data:
                client.more()
        assert b" 200 " in head.splitlines()[0]
        assert b"x-accel" not in head and b"x-sendfile" not in head
        answer = ask(server, "/fast-plain/p", [field])
        assert answer.body == b"the program itself\n" and answer["Set-Cookie"] == "a=b"
        assert "X-Accel-Redirect" not in answer and "X-Sendfile" not in answer


@pytest.mark.parametrize("text, message", [
    ("[pool a]\nprotocol=worker\ncommand=/bin/true\naccel=internal\n", "has accel, which is for"),
    ("[pool a]\nprotocol=cgi\nfolder=/tmp\naccel=files\n", "must be internal, or a folder"),
    ("[pool a]\nprotocol=cgi\nfolder=/tmp\naccel=/none\n", 'cannot serve the alias "/none"'),
])
def test_bad(tmp_path, text, message):
    servers.refuses(tmp_path, text, message)
