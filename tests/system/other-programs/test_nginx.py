# SPDX-License-Identifier: MIT
"""The same requests to SWEET and to nginx: the same status, body and fields.

What is answered in another way on purpose stands in ON_PURPOSE with the reason.  What nginx responds
is in nginx-responses.json, so that SWEET is tested where there is no nginx; where there is one,
test_recorded compares it with the file, and writes the file if NABC_RECORD is in the environment.
nginx 1.22 (Debian 12) and 1.26 (Debian 13) write the same file.
"""

import email.utils
import hashlib
import http.client
import io
import json
import os
import pwd
import re

import pytest

from client import connect
from files import pattern, write
from programs import Daemon
from server import TIMEOUT, VALGRIND, running
from tools import find

CONFIGURATION = """\
{user}
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
    access_log off;
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    # As HTTP says, and as SWEET does.
    if_modified_since before;
    absolute_redirect off;
    client_body_temp_path {folder}/body;
    fastcgi_temp_path {folder}/fastcgi;
    proxy_temp_path {folder}/proxy;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        root {root};
    }}
}}
"""
FILES = {
    "index.html": 300, "empty": 0, "one": 1, "file.txt": 1000, "page.html": 4096, "large.bin": 300000,
    "huge.bin": 3000000, "folder/index.html": 50, "folder/file": 77, "folder/deep/file": 78,
    "a folder/a file": 79, "a folder/index.html": 80, "ümläut/日本": 81, "a%b": 82, "a+b": 83,
    "q?x": 84, "h#x": 85, "bare/file": 86, "semi;colon": 87, "amp&er": 88, "tilde~": 89,
    "..two": 90, "Case": 91, "case": 92, "star*": 93, "(braces)": 94, "quote'": 95, "c:d": 96,
    "dot.": 97, "folder.d/file": 98, "%41": 99, "image.png": 100, "a.css": 101, "a.js": 102,
    ".hidden": 103, ".git/config": 104, ".well-known/note": 105,
}
OLD, NEW = 1_000_000_000, 1_500_000_000  # before and after the files' time
TIME = 1_234_567_890
DATES = {name: email.utils.formatdate(at, usegmt=True)
         for name, at in (("old", OLD), ("new", NEW), ("same", TIME))}

# (method, target, field lines); {etag} and the dates are put in.
PLAIN = [(method, target, "") for method in ("GET", "HEAD") for target in [
    "/", "/?", "/?a=b&c=%20", "/index.html", "/empty", "/one", "/file.txt", "/page.html",
    "/large.bin", "/huge.bin", "/folder/", "/folder/?q", "/folder/file", "/folder/deep/file",
    "/a%20folder/a%20file", "/a%20folder/", "/%C3%BCml%C3%A4ut/%E6%97%A5%E6%9C%AC",
    "/%c3%bcml%c3%a4ut/%e6%97%a5%e6%9c%ac", "/a%25b", "/a+b", "/a%2Bb", "/a%2bb", "/q%3Fx",
    "/h%23x", "/bare/file", "/semi;colon", "/semi%3bcolon", "/amp&er", "/amp%26er", "/tilde~",
    "/%7etilde", "/tilde%7E", "/..two", "/Case", "/case", "/%43ase", "/star*", "/(braces)",
    "/quote'", "/c:d", "/dot.", "/folder.d/file", "/%2541", "/image.png", "/a.css", "/a.js",
    # Nothing there.
    "/none", "/none/", "/none/file", "/CASE", "/file.txt/", "/file.txt/x", "/file.tx",
    "/file.txtt", "/file.txt%20", "/file.txt.", "/folder/none", "/folder/index.htm", "/bare/index.html",
    "/a%20folder", "/q?x", "/" + "n" * 255, "/" + "n" * 256, "/" + "n" * 1000, "/n" * 500,
    "/%E6%97", "/%ff%fe", "/*", "/$", "/@", "/a%5Cb", "/folder/..%5cone", "/a%2520folder/",
    # Folders.
    "/folder", "/folder?query", "/folder/deep", "/folder.d", "/bare", "/%C3%BCml%C3%A4ut",
    "/bare/", "/folder/deep/", "/folder.d/",
    # Ways through folders.
    "//", "//file.txt", "///folder//file", "/./file.txt", "/folder/../file.txt", "/folder/./file",
    "/folder/deep/../file", "/folder/deep/../../one", "/none/../one", "/folder/%2e%2e/one",
    "/folder/.%2E/one", "/folder/deep/..", "/folder/.", "/folder/..", "/%66ile.txt",
    # And out of the root.
    "/..", "/../", "/../one", "/folder/../../one", "/%2e%2e/one", "/folder/deep/../../../one",
    "/.%2e/%2e./one", "/%00", "/one%00", "/%",  "/one%", "/one%2", "/one%zz", "/%zzone",
]]
ABSOLUTE = [("GET", "http://test" + target, "") for target in [
    "/", "/file.txt", "/folder", "/folder/", "/none", "/a%20folder/a%20file", "",
]] + [("GET", "http://TEST/one", ""), ("HEAD", "http://test:80/one", "")]
METHODS = [(method, "/file.txt", "") for method in ("POST", "PUT", "DELETE", "PATCH")] + [
    ("POST", "/file.txt", "Content-Length: 0\r\n"), ("TRACE", "/", ""),
]
RANGES = [("GET", target, f"Range: {spans}\r\n") for target, spans in [
    *(("/file.txt", "bytes=" + spans) for spans in [
        "0-0", "0-", "0-999", "0-1000", "0-99999", "1-1", "1-", "500-600", "998-", "999-", "999-999",
        "-1", "-999", "-1000", "-1001", "-99999", "000-0009", "0-99999999999999", " 0-9", "0- 9",
        # Beyond the end.
        "1000-", "1000-1000", "2000-3000", "99999999999-",
        # Several.
        "0-0,2-2", "0-9,20-29,40-", "0-0,-1", "-1,0-0", "0-0, 5-5", "0-0 ,5-5", "0-9,2000-",
        "2000-,0-9", "2000-,3000-", "1-1,3-3,5-5,7-7,9-9,11-11", "10-19,0-4",
    ]),
    *(("/large.bin", "bytes=" + spans) for spans in [
        "0-65535", "65535-65536", "4095-4097", "100000-", "-70000", "299999-", "0-0,299999-299999",
        "1-65536,70000-140000", "-1,0-65536",
    ]),
    *(("/huge.bin", "bytes=" + spans) for spans in [
        "0-2999999", "1048575-1048577", "2999999-", "-1", "1000000-2000000", "0-9,2000000-2000009",
    ]),
    *(("/one", "bytes=" + spans) for spans in ["0-0", "0-", "-1", "1-", "1-1"]),
    ("/empty", "bytes=0-"), ("/none", "bytes=0-1"), ("/folder/", "bytes=0-9"), ("/folder", "bytes=0-9"),
    ("/file.txt", "lines=0-9"), ("/file.txt", "items 0-9"), ("/file.txt", "none"),
    ("/file.txt", "bytes"),
]]
CONDITIONS = [(method, "/file.txt", lines) for method in ("GET", "HEAD") for lines in [
    "If-None-Match: {etag}\r\n", 'If-None-Match: "other"\r\n', "If-None-Match: W/{etag}\r\n",
    'If-None-Match: "a", {etag}, "b"\r\n', 'If-None-Match: "a","b"\r\n', "If-None-Match: *\r\n",
    'If-None-Match: ""\r\n', "If-Match: {etag}\r\n", 'If-Match: "other"\r\n', "If-Match: *\r\n",
    'If-Match: "a", {etag}\r\n', "If-Match: W/{etag}\r\n", "If-Modified-Since: {same}\r\n",
    "If-Modified-Since: {old}\r\n", "If-Modified-Since: {new}\r\n",
    "If-Modified-Since: yesterday\r\n", "If-Unmodified-Since: {same}\r\n",
    "If-Unmodified-Since: {old}\r\n", "If-Unmodified-Since: {new}\r\n",
    "If-None-Match: {etag}\r\nIf-Modified-Since: {old}\r\n",
    'If-None-Match: "other"\r\nIf-Modified-Since: {new}\r\n',
    "If-Match: {etag}\r\nIf-None-Match: {etag}\r\n",
    'If-Match: "other"\r\nIf-None-Match: {etag}\r\n',
    "If-Unmodified-Since: {new}\r\nIf-Modified-Since: {same}\r\n",
]] + [("GET", "/file.txt", "Range: bytes=0-9\r\n" + lines) for lines in [
    "If-Range: {etag}\r\n", 'If-Range: "other"\r\n', "If-Range: {same}\r\n", "If-Range: {old}\r\n",
    "If-None-Match: {etag}\r\n", 'If-Match: "other"\r\n', "If-Match: {etag}\r\n",
    "If-Unmodified-Since: {old}\r\n", "If-Modified-Since: {old}\r\n",
]] + [("GET", target, lines) for target, lines in [
    ("/none", "If-None-Match: *\r\n"), ("/none", "If-Modified-Since: {new}\r\n"),
    ("/folder", "If-None-Match: *\r\n"), ("/folder/", "If-Modified-Since: {same}\r\n"),
    ("/file.txt", "Range: bytes=5000-\r\nIf-Range: \"other\"\r\n"),
]]
OTHERS = [
    ("GET", "/.hidden", ""), ("GET", "/.git/config", ""), ("GET", "/.well-known/note", ""),
    ("GET", "/folder%2ffile", ""), ("GET", "/folder%2Findex.html", ""), ("GET", "/file.txt#part", ""),
    ("HEAD", "/file.txt", "Range: bytes=0-9\r\n"), ("FOO", "/file.txt", ""),
    ("OPTIONS", "/file.txt", ""), ("OPTIONS", "*", ""), ("GET", "*", ""),
    ("GET", "/file.txt", "Range: bytes=0-,0-\r\n"), ("GET", "/file.txt", "Range: bytes=0-9,5-14\r\n"),
    ("GET", "/file.txt", "Range: bytes=9-0\r\n"), ("GET", "/file.txt", "Range: bytes=x\r\n"),
    ("GET", "/file.txt", "Range: bytes=-0\r\n"), ("GET", "/file.txt", "Range: bytes=\r\n"),
    ("GET", "/file.txt", "Range: BYTES=0-9\r\n"), ("GET", "/out", ""), ("GET", "/inside", ""),
    ("GET", "/file.txt", "Expect: 100-continue\r\n"), ("GET", "/file.txt", "Content-Length: 0\r\n"),
    ("GET", "/file.txt", "Accept-Encoding: gzip\r\n"), ("GET", "/file.txt", "Upgrade: websocket\r\n"),
    ("GET", "/file.txt", "Host: other\r\n"), ("GET", "/file.txt", "X-Long: " + "x" * 4000 + "\r\n"),
    ("GET", "/file.txt", "If-Range: {etag}\r\n"), ("GET", "/file.txt", "TE: trailers\r\n"),
    ("GET", "/file.txt", "Range: bytes=0-9\r\nIf-Range: W/{etag}\r\n"),
    ("GET", "/file.txt", "Range: bytes=0-9\r\nIf-Range: {new}\r\n"),
    ("GET", "/caf\xe9", ""), ("GET", "/a|b", ""), ("GET", '/a"b', ""), ("GET", "/<a>", ""),
    ("GET", "file.txt", ""),
]
REQUESTS = PLAIN + ABSOLUTE + METHODS + RANGES + CONDITIONS + OTHERS

# (method, target, field lines): (status of SWEET, of nginx, why); method None: any.
HIDDEN = (404, 200, "names that begin with a dot are hidden unless configured otherwise")
SLASH = (400, 200, "an escaped slash is no separator (RFC 3986, 2.2), and proxies take it for none")
BAD_RANGE = (200, 416, "what is no range is ignored (RFC 9110, 14.2)")
ON_PURPOSE = {
    (None, "/..two", ""): HIDDEN,
    ("GET", "/.hidden", ""): HIDDEN,
    ("GET", "/.git/config", ""): HIDDEN,
    ("GET", "/folder%2ffile", ""): SLASH,
    ("GET", "/folder%2Findex.html", ""): SLASH,
    ("GET", "/file.txt#part", ""): (400, 200, "a target has no fragment (RFC 9112, 3.2)"),
    ("GET", "/caf\xe9", ""): (400, 404, "a target is ASCII (RFC 3986, 2)"),
    ("GET", "/out", ""): (403, 200, "links lead nowhere out of the root"),
    ("FOO", "/file.txt", ""): (501, 405, "a method that it does not know (RFC 9110, 15.6.2)"),
    ("OPTIONS", "/file.txt", ""): (204, 405, "tells the methods (RFC 9110, 9.3.7)"),
    ("OPTIONS", "*", ""): (204, 400, "is about the server (RFC 9110, 9.3.7)"),
    ("GET", "/file.txt", "Range: bytes=0- 9\r\n"): (200, 206, "a blank there makes it no range"),
    ("GET", "/file.txt", "Range: bytes=9-0\r\n"): BAD_RANGE,
    ("GET", "/file.txt", "Range: bytes=x\r\n"): BAD_RANGE,
    ("GET", "/empty", "Range: bytes=0-\r\n"): (416, 200, "nothing is there at 0 (RFC 9110, 14.1.2)"),
    ("HEAD", "/file.txt", "Range: bytes=0-9\r\n"): (200, 206, "ranges are GET's (RFC 9110, 14.2)"),
    ("GET", "/file.txt", "Range: bytes=0-,0-\r\n"): (206, 200, "ranges that overlap are one"),
    ("GET", "/file.txt", "Range: bytes=0-9,5-14\r\n"): (206, 206, "ranges that overlap are one"),
    (None, "/file.txt", "If-None-Match: {etag}\r\nIf-Modified-Since: {old}\r\n"):
        (304, 200, "the date does not count beside a tag (RFC 9110, 13.1.3)"),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("nginx-root")
    for number, (name, size) in enumerate(FILES.items()):
        path = write(root / name, pattern(size, number))
        os.utime(path, (TIME, TIME))
    (root / "out").symlink_to("/etc/passwd")
    (root / "inside").symlink_to("file.txt")
    return root


@pytest.fixture(scope="module")
def sweet(root):
    with running("epoll", root) as server:
        yield server.port


RECORD = os.path.join(os.path.dirname(__file__), "nginx-responses.json")


@pytest.fixture(scope="module")
def nginx(root, tmp_path_factory):
    program, folder = find("nginx"), tmp_path_factory.mktemp("nginx")
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""

    def command(port):
        write(folder / "nginx.conf", CONFIGURATION.format(
            user=user, folder=folder, port=port, root=root).encode())
        return [program, "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr"]

    with Daemon(command, folder) as daemon:
        yield daemon.port


class Received:
    """Bytes that have come, as the socket that http.client reads from."""

    def __init__(self, data):
        self.data = data

    def makefile(self, *_):
        return io.BytesIO(self.data)


def answer(port, method, target, lines):
    data = f"{method} {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{lines}\r\n"
    with connect(port) as connection:
        connection.sendall(data.encode("latin-1"))
        received = b""
        while piece := connection.recv(1 << 20):
            received += piece
    response = http.client.HTTPResponse(Received(received), method=method)
    response.begin()
    response.data = response.read()
    return response


def parts_of(response):
    """Content-Range and bytes of each part of a multipart answer; None: it is none."""
    kind = response.headers.get("Content-Type", "")
    boundary = re.match(r'multipart/byteranges; *boundary="?([^";]+)"?$', kind)
    if not boundary:
        return None
    before, *parts, after = (b"\r\n" + response.data).split(b"\r\n--" + boundary[1].encode())
    assert before in (b"", b"\r\n") and after == b"--\r\n"
    found = []
    for part in parts:
        head, _, data = part.partition(b"\r\n\r\n")
        fields = http.client.parse_headers(io.BytesIO(head.lstrip(b"\r\n") + b"\r\n\r\n"))
        found.append((fields["Content-Range"], data))
    return found


def digest(data):
    return f"{len(data)} bytes, {hashlib.sha256(data).hexdigest()[:16]}"


def essence(response):
    """What must be the same; pages of errors and redirects are each server's own."""
    fields = response.headers
    said = {"status": response.status, "range": fields.get("Content-Range")}
    if response.status in (200, 206):
        parts = parts_of(response)
        said["body"] = [[span, digest(data)] for span, data in parts] if parts else digest(
            response.data)
        said["modified"] = fields.get("Last-Modified")
        said["length"] = None if parts else fields.get("Content-Length")
    elif response.status == 301:
        said["location"] = fields.get("Location")
    elif response.status == 304:
        said["body"] = digest(response.data)
    return {name: value for name, value in said.items() if value is not None}


def on_purpose(method, target, lines):
    return ON_PURPOSE.get((method, target, lines)) or ON_PURPOSE.get((None, target, lines))


def key(method, target, lines):
    return f"{method} {target} {lines}".strip().replace("\r\n", "; ")


class Asked:
    """A server, and the tag that it gives /file.txt."""

    def __init__(self, port):
        self.port = port
        self.etag = answer(port, "HEAD", "/file.txt", "").headers.get("ETag", "none")

    def answer(self, method, target, lines):
        return answer(self.port, method, target, lines.format(etag=self.etag, **DATES))


@pytest.fixture(scope="module")
def asked(sweet):
    return Asked(sweet)


@pytest.fixture(scope="module")
def recorded():
    with open(RECORD) as file:
        return json.load(file)


@pytest.mark.parametrize("method, target, lines", REQUESTS,
                         ids=lambda text: re.sub(r"\s+", " ", text)[:60])
def test_same(asked, recorded, method, target, lines):
    if VALGRIND and target == "/inside":
        pytest.skip("Valgrind has no openat2(), without which links are not followed")
    ours, theirs = asked.answer(method, target, lines), recorded[key(method, target, lines)]
    expected = on_purpose(method, target, lines)
    if expected:
        assert (ours.status, theirs["status"]) == expected[:2]
    else:
        assert essence(ours) == theirs


@pytest.mark.needs("nginx")
def test_recorded(nginx, recorded):
    """One response of nginx's for each request, and it is what is recorded."""
    server, found = Asked(nginx), {}
    for request in REQUESTS:
        response = server.answer(*request)
        # Of some only the status counts, and may count: /out is a file of the machine.
        found[key(*request)] = {"status": response.status} if on_purpose(*request) else essence(response)
    if os.environ.get("NABC_RECORD"):
        with open(RECORD, "w") as file:
            file.write("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(said)}"
                                          for name, said in found.items()) + "\n}\n")
        return
    assert found == recorded


def test_table():
    """Enough of them, each once; and nothing on purpose that is not asked for."""
    assert len(set(REQUESTS)) == len(REQUESTS) == len({key(*request) for request in REQUESTS}) >= 100
    asked = {*REQUESTS, *((None, target, lines) for _, target, lines in REQUESTS)}
    assert set(ON_PURPOSE) <= asked
