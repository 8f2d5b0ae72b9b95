# SPDX-License-Identifier: MIT
"""Files of the site that replace the built-in error pages."""

import pytest

from client import Client, fetch
from files import MB, pattern, write
from responder import Application
from server import OBEY, SCALE, running

MISSING = b"<p>our own page for what is missing</p>\n" * 200
DENIED = b"denied\n"
DOWN = b"no worker\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("errors")
    write(root / ".errors/404.html", MISSING)
    write(root / ".errors/403.txt", DENIED)
    write(root / "down.html", DOWN)
    write(root / "empty.html", b"")
    write(root / "big.html", pattern(3 * MB))
    write(root / "folder/file", b"")
    write(root / "file", b"file")
    (root / "loop").symlink_to("loop")
    return root


PAGES = ["--error-page", "404=/.errors/404.html", "--error-page", "403=/.errors/403.txt",
         "--error-page", "503=/down.html", "--error-page", "405=/none.html",
         "--error-page", "502=/down.html"]


@pytest.fixture(scope="module")
def server(kind, root):
    with running(kind, root, *PAGES) as server:
        yield server


def test_page(server):
    with Client(server.port) as client:
        for _ in range(3):
            got = client.get("/missing")
            assert (got.status, got.reason, got.body) == (404, "Not Found", MISSING)
            assert got["Content-Type"] == "text/html; charset=utf-8"
            # Here it is not a file: it has no validators and no ranges.
            for name in ("Last-Modified", "ETag", "Accept-Ranges", "Cache-Control"):
                assert name not in got
            assert client.get("/file").body == b"file"
        got = client.get("/folder/")
        assert (got.status, got.body) == (403, DENIED)
        assert got["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("target, status", [("/missing", 404), ("/folder/", 403), ("/loop", 403)])
def test_head(server, target, status):
    with Client(server.port) as client:
        whole = client.get(target)
        assert whole.status == status
        for _ in range(2):
            head = client.get(target, "HEAD")
            assert {**head.fields, "date": ""} == {**whole.fields, "date": ""}
        assert client.get("/file").body == b"file"


def test_workers(kind, root):
    """Errors from a worker, or of a worker; with a body of its own a response stays unchanged."""
    with running(kind, root, *PAGES, "--worker", f"/obey={OBEY}", "--workers", 1) as server:
        with Client(server.port) as client:
            assert client.get("/obey/nothing").body == MISSING
            assert client.get("/obey/nothing", "HEAD")["Content-Length"] == str(len(MISSING))
            got = client.get("/obey/garbage")
            assert (got.status, got.body) == (502, DOWN)
            assert client.get("/obey/header").body == b"obeyed\n"
            got = client.get("/obey/exit")
            assert (got.status, got.body) == (502, DOWN)
            assert client.get("/obey/header").body == b"obeyed\n"
            assert client.get("/file").body == b"file"


def test_programs(kind, root, tmp_path):
    """Responses of a program without body and type get the page."""
    for name, rest in (("bare", "0\\n\\n"), ("own", "4\\n\\nown\\n"),
                       ("typed", "0\\nContent-Type: text/html\\n\\n")):
        script = f"#!/bin/sh\nprintf 'Status: 404\\nContent-Length: {rest}'\n"
        write(tmp_path / name, script.encode()).chmod(0o755)
    with running(kind, root, *PAGES, "--cgi", f"/cgi={tmp_path}") as server:
        for name, body in (("bare", MISSING), ("own", b"own\n"), ("typed", b"")):
            got = fetch(server.port, f"/cgi/{name}")
            assert (got.status, got.body) == (404, body), name


def test_refusals(root, tmp_path):
    """The fields of a refusal stay, and the page itself is not refused."""
    (tmp_path / "users").write_text("me:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n")
    with running("epoll", root, *PAGES, "--error-page", "401=/down.html", "--auth-realm", "here",
                 "--auth-file", tmp_path / "users") as server:
        for _ in range(2):
            got = fetch(server.port, "/file")
            assert (got.status, got.body) == (401, DOWN)
            assert got["WWW-Authenticate"].startswith('Basic realm="here"')
    with running("epoll", root, *PAGES, "--deny", "all") as server:
        got = fetch(server.port, "/file")
        assert (got.status, got.body) == (403, DENIED)


def test_conditions_that_fail(root):
    """A page for 412 and 416, whose fields stay."""
    with running("epoll", root, "--error-page", "412=/down.html", "--error-page",
                 "416=/down.html") as server, Client(server.port) as client:
        for _ in range(2):
            got = client.get("/file", fields="Range: bytes=100-\r\n")
            assert (got.status, got.body, got["Content-Range"]) == (416, DOWN, "bytes */4")
            got = client.get("/file", fields='If-Match: "other"\r\n')
            assert (got.status, got.body) == (412, DOWN)
            assert client.get("/file").body == b"file"


def test_conditions_and_ranges_do_not_count(server):
    got = fetch(server.port, "/missing", fields="Range: bytes=0-3\r\nIf-None-Match: *\r\n")
    assert (got.status, got.body) == (404, MISSING)


def test_page_that_is_missing(server):
    """The built-in page, one error message, and the fields of the response unchanged."""
    got = fetch(server.port, "/file", "DELETE")
    assert got.status == 405 and got["Allow"] == "GET, HEAD, OPTIONS"
    assert b"<h1>405 Method Not Allowed</h1>" in got.body


def test_missing_page_for_missing_files(root):
    """The page for 404 does not exist itself."""
    with running("epoll", root, "--error-page", "404=/none", "--error-page", "403=/folder") as server:
        assert b"<h1>404 Not Found</h1>" in fetch(server.port, "/none").body
        assert b"<h1>404 Not Found</h1>" in fetch(server.port, "/other").body
        assert b"<h1>403 Forbidden</h1>" in fetch(server.port, "/folder/").body


def test_page_by_its_own_name(server, root):
    """As an error page it is sent; by its own hidden name it is not found."""
    assert fetch(server.port, "/.errors/404.html").status == 404
    assert fetch(server.port, "/down.html").body == DOWN


def test_odd_pages(root):
    with running("epoll", root, "--error-page", "404=/empty.html", "--error-page",
                 "403=/big.html", "--cache-size", 2 * MB) as server:
        got = fetch(server.port, "/missing")
        assert (got.status, got.body) == (404, b"")
        # Too large for a unit of this cache: the built-in page.
        assert b"<h1>403 Forbidden</h1>" in fetch(server.port, "/folder/").body


def test_page_that_changes(tmp_path):
    page = write(tmp_path / "page.html", b"first")
    with running("epoll", tmp_path, "--error-page", "404=/page.html") as server:
        assert fetch(server.port, "/none").body == b"first"
        write(page, b"second")
        assert fetch(server.port, "/none").body == b"second"
        page.unlink()
        assert b"<h1>404 Not Found</h1>" in fetch(server.port, "/none").body
        write(page, b"third")
        assert fetch(server.port, "/none").body == b"third"


def test_clients_that_go(server):
    """Before the page is read."""
    for _ in range(50 // SCALE):
        client = Client(server.port)
        client.send(b"GET /missing HTTP/1.1\r\nHost: x\r\n\r\n" * 5)
        client.close()
    assert fetch(server.port, "/missing").body == MISSING


def test_pipelined(server):
    with Client(server.port) as client:
        client.send(b"GET /missing HTTP/1.1\r\nHost: x\r\n\r\nGET /file HTTP/1.1\r\nHost: x\r\n\r\n" * 10)
        for _ in range(10):
            assert client.response().body == MISSING
            assert client.response().body == b"file"


@pytest.mark.http1("HTTP/2 cannot carry a malformed line")
def test_malformed_requests_get_the_usual_page(server):
    with Client(server.port) as client:
        client.send(b"GET / HTTP/1.1\r\nBad Line\r\n\r\n")
        got = client.response()
        assert got.status == 400 and b"<h1>400 Bad Request</h1>" in got.body
        assert client.at_end()


PROGRAM = b"""#!/bin/sh
echo Status: ${QUERY_STRING%%&*}
echo Set-Cookie: a=b
echo 'WWW-Authenticate: Basic realm="a"'
echo Retry-After: 7
echo Content-Type: text/plain
echo Cache-Control: max-age=60
echo X-NABC-Max-Age: 60
test -n "$HTTP_LENGTH" && echo Content-Length: 8
echo
echo program
test -n "$HTTP_LENGTH" || head -c 1000000 /dev/zero
"""

RULES = """[sweet]
error-page=404=/page.html=200;503=/page.html;500=/page=404.html;502=/none.html;410=/page.html=404
[path /on]
intercept-errors=on
pool=programs
[path /off]
pool=programs
[path /fast]
intercept-errors=on
pool=fast
[pool programs]
protocol=cgi
folder={top}/programs
[pool fast]
protocol=fastcgi
upstream={address}
"""


def answer(request):
    """As the program."""
    request.body()
    length = b"Content-Length: 8\r\n" if "HTTP_LENGTH" in request.variables else b""
    request.answer(b"program\n" + (b"" if length else bytes(100000)), (
        f"Status: {request.variables['QUERY_STRING']}\r\nSet-Cookie: a=b\r\nRetry-After: 7\r\n"
        "Content-Type: text/plain\r\nCache-Control: max-age=60\r\n").encode() + length)


@pytest.fixture(scope="module")
def programs(kind, tmp_path_factory):
    top = tmp_path_factory.mktemp("intercept")
    write(top / "programs/p", PROGRAM).chmod(0o755)
    write(top / "root/page.html", b"page")
    write(top / "root/page=404.html", b"equals")
    app = Application(answer, top / "app.sock")
    rules = write(top / "sweet.conf", RULES.format(top=top, address=app.address).encode())
    with running(kind, top / "root", "--config", rules) as server:
        yield server
    app.close()
    assert not app.faults


def test_status_of_a_page(programs):
    with Client(programs.port) as client:
        got = client.get("/users/42")
        assert (got.status, got.body, got["Content-Type"]) == (
            200, b"page", "text/html; charset=utf-8")


@pytest.mark.parametrize("path", ["/on", "/fast"])
@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("status, sent, body", [
    (404, 200, b"page"), (410, 404, b"page"), (503, 503, b"page"), (500, 500, b"equals"),
    (401, 401, None), (200, 200, None)])
def test_intercept(programs, path, length, status, sent, body):
    with Client(programs.port) as client:
        for _ in range(3):
            client.send(f"GET {path}/p?{status} HTTP/1.1\r\nHost: a\r\n"
                        f"{'Length: 1' if length or not body else 'Other: 1'}\r\n\r\n".encode())
            got = client.response()
            assert got.status == sent
            if body:
                assert got.body == body
                assert "Set-Cookie" not in got and "Cache-Control" not in got
                assert (got["Retry-After"], got["Content-Type"]) == (
                    "7", "text/html; charset=utf-8")
            else:
                assert got.body.startswith(b"program\n") and got["Set-Cookie"] == "a=b"
        client.send(f"GET /off/p?{status} HTTP/1.1\r\nHost: a\r\nLength: 1\r\n\r\n".encode())
        got = client.response()
        assert got.status == status and got.body == b"program\n"
    # Without its page, the program's answer is lost, as the server's own page says.
    with Client(programs.port) as client:
        got = client.get(f"{path}/p?502")
        assert got.status == 502 and b"program" not in got.body


def test_intercepted_and_cached(programs):
    """A response that is kept is replaced as well; clients that wait for one do not hang."""
    clients = [Client(programs.port) for _ in range(8)]
    for client in clients:
        client.send(b"GET /on/p?404&kept HTTP/1.1\r\nHost: a\r\n\r\n")
    for client in clients:
        assert client.response().body == b"page"
        assert client.get("/on/p?404&kept").body == b"page"
        client.close()
