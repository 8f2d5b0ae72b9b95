# SPDX-License-Identifier: MIT
"""Folders: their index, their redirect, their listing; names that are not served."""

import html.parser
import json
import os
import pathlib
import tempfile
import urllib.parse

import pytest

import tls
from client import Client, fetch
from files import write
from server import VALGRIND, running

ODD = ["a b", "100%", "it's", "<b>&amp;\"", "javascript:alert(1)", "?a=b&c", "#x", "\\", "ü€",
       "日本", "a+b", "~user", "x;y", "-rf", "next\x85line"]
BAD = b"bad\xff\xc3"
CONTROLS = [b"line\nend\x01", b"\r\nX-A: b", b"\x1b[31m", b"tab\t", b"rubout\x7f"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    top = tmp_path_factory.mktemp("folders")
    root = top / "root"
    write(top / "secret", b"outside")
    write(root / "plain/file.txt", b"12345")
    write(root / "plain/Big.bin", b"x" * 2000)
    write(root / "plain/.hidden", b"h")
    write(root / "plain/.git/config", b"h")
    write(root / "plain/sub/x", b"")
    for name in ODD:
        write(root / "odd" / name, name.encode())
    write(root / "odd/folder <i>/in", b"in")
    (root / "odd").mkdir(exist_ok=True)
    with open(os.path.join(os.fsencode(root / "odd"), BAD), "wb") as out:
        out.write(b"bad")
    for name in CONTROLS:
        with open(os.path.join(os.fsencode(root / "odd"), name), "wb") as out:
            out.write(b"cannot be asked for")
    (root / "links").mkdir()
    for name, target in {"in": "../plain/file.txt", "folder": "../plain", "out": "../../secret",
                         "dangling": "none", "loop": "loop"}.items():
        (root / "links" / name).symlink_to(target)
    os.mkfifo(root / "links/fifo")
    write(root / "links/real", b"1")
    write(root / "one/index.html", b"html")
    write(root / "one/index.txt", b"txt")
    write(root / "two/index.txt", b"txt")
    write(root / "two/index.html/in", b"a folder of that name")
    write(root / "three/start", b"start")
    (root / "empty").mkdir()
    write(root / ".well-known/security.txt", b"contact")
    write(root / ".well-known/.inner", b"h")
    write(root / ".well-knownx/file", b"h")
    write(root / "sub/.well-known/file", b"h")
    write(root / ".dot/file", b"h")
    write(root / "..dots/file", b"h")
    write(root / ".html", b"h")
    write(root / "script.php", b"<?php")
    write(root / "script.php.", b"dot")
    write(root / "picture.php.jpg", b"jpg")
    write(root / "picture.jpg.php", b"php")
    write(root / "file.txt", b"txt")
    return root


@pytest.fixture(scope="module")
def server(root):
    with running("epoll", root, "--listing", "on") as server:
        yield server


@pytest.fixture(scope="module")
def open_server(root):
    """A server that serves hidden names."""
    with running("epoll", root, "--hidden", "on", "--listing", "on") as server:
        yield server


class Rows(html.parser.HTMLParser):
    """Collects the links of a listing's rows, and their text."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.titles, self.open, self.row = [], "", [], None
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "img", "link", "iframe", "base", "form")
        if tag != "meta":
            self.open.append(tag)
        if tag == "tr" and "tbody" in self.open:
            self.row = []
        if tag == "a" and self.row is not None:
            self.row.append(dict(attributes)["href"])
        if tag == "td":
            self.row.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "tr" and self.row is not None:
            self.rows.append(self.row)
            self.row = None

    def handle_data(self, data):
        if self.row:
            self.row[-1] += data
        elif "title" in self.open:
            self.titles += data


def listing(server, target, fields=""):
    got = fetch(server.port, target, fields=fields)
    assert got.status == 200 and got["Content-Type"] == "text/html; charset=utf-8"
    return Rows(got.body.decode()), got


def objects(server, target, fields="Accept: application/json\r\n"):
    got = fetch(server.port, target, fields=fields)
    assert got.status == 200 and got["Content-Type"] == "application/json"
    return json.loads(got.body)


# --- index ----------------------------------------------------------------------------


def test_index_list(root):
    with running("epoll", root, "--index", "index.html", "--index", "index.txt",
                 "--index", "start") as server:
        for folder, body in ("one", b"html"), ("two", b"txt"), ("three", b"start"):
            got = fetch(server.port, f"/{folder}/")
            assert (got.status, got.body) == (200, body)
            head = fetch(server.port, f"/{folder}/?a=b", "HEAD")
            assert head["Content-Length"] == str(len(body))
        # Without a listing, a folder without an index is forbidden.
        assert fetch(server.port, "/plain/").status == 403
        assert fetch(server.port, "/none/").status == 404


def test_index_comes_before_the_listing(server):
    assert fetch(server.port, "/one/").body == b"html"
    assert fetch(server.port, "/one/?format=json").body == b"html"


def test_index_that_comes_and_goes(server, root):
    path = root / "comes"
    path.mkdir()
    with Client(server.port) as client:
        for _ in range(2):
            assert b"Index of /comes/" in client.get("/comes/").body
            write(path / "index.html", b"now")
            assert client.get("/comes/").body == b"now"
            (path / "index.html").unlink()
    path.rmdir()


@pytest.mark.parametrize(
    "target, location",
    [("/plain", "/plain/"), ("/plain?", "/plain/"), ("/plain?a=b&c=%20", "/plain/?a=b&c=%20"),
     ("//plain/sub", "/plain/sub/"), ("/odd/folder%20%3ci%3e", "/odd/folder%20%3Ci%3E/"),
     ("/./plain/../plain?x", "/plain/?x")],
)
def test_redirect(server, target, location):
    for method in ("GET", "HEAD"):
        got = fetch(server.port, target, method)
        assert (got.status, got["Location"]) == (301, location)


# --- listing --------------------------------------------------------------------------


def test_listing(server):
    page, got = listing(server, "/plain/")
    assert page.titles == "Index of /plain/"
    assert [row[:2] for row in page.rows] == [["", "../.."], ["", "sub/sub/"],
                                              ["", "Big.binBig.bin"], ["", "file.txtfile.txt"]]
    assert page.rows[2][2] == "1.95 KiB" and page.rows[3][2] == "5 B"
    assert got["Vary"] == "Accept" and got["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in got["Content-Security-Policy"]
    assert "X-Listing" not in got
    top, _ = listing(server, "/")
    assert "../.." not in [row[1] for row in top.rows]
    empty, _ = listing(server, "/empty/")
    assert [row[1] for row in empty.rows] == ["../.."]


def test_listing_orders(server):
    def names(query):
        return [entry["name"] for entry in objects(server, f"/plain/?format=json&{query}")]

    assert names("") == names("sort=name") == ["sub", "Big.bin", "file.txt"]
    assert names("order=desc") == ["sub", "file.txt", "Big.bin"]
    assert names("sort=size") == ["sub", "file.txt", "Big.bin"]
    assert names("sort=size&order=desc") == ["sub", "Big.bin", "file.txt"]


@pytest.mark.parametrize(
    "target, accept, json_wanted",
    [("/plain/", None, False), ("/plain/", "*/*", False), ("/plain/", "application/json", True),
     ("/plain/", "text/html, application/json;q=0.9", False),
     ("/plain/?format=json", "text/html", True), ("/plain/?format=html", "application/json", False),
     ("/plain/?a&format=json", None, True)],
)
def test_listing_format(server, target, accept, json_wanted):
    got = fetch(server.port, target, fields=f"Accept: {accept}\r\n" if accept else "")
    assert got["Content-Type"].startswith("application/json" if json_wanted else "text/html")


def test_listing_json(server, root):
    stat = (root / "plain/file.txt").stat()
    found = {entry["name"]: entry for entry in objects(server, "/plain/")}
    assert sorted(found) == ["Big.bin", "file.txt", "sub"]
    assert found["file.txt"]["type"] == "file" and found["file.txt"]["size"] == 5
    assert found["sub"]["type"] == "directory" and found["sub"]["size"] is None
    assert found["file.txt"]["mtime"].endswith("Z")
    assert int(found["file.txt"]["mtime"][17:19]) == int(stat.st_mtime) % 60
    assert objects(server, "/empty/") == []


def test_odd_names(server):
    """Each link leads to the file that it shows."""
    page, _ = listing(server, "/odd/")
    found = objects(server, "/odd/")
    assert len(page.rows) - 1 == len(found) == len(ODD) + 2
    for entry in found:
        if entry["type"] == "directory":
            assert fetch(server.port, "/odd/" + entry["href"] + "in").body == b"in"
            continue
        raw = urllib.parse.unquote_to_bytes(entry["href"])
        got = fetch(server.port, "/odd/" + entry["href"])
        assert got.body == (b"bad" if raw == BAD else raw)
        assert entry["name"] == raw.decode(errors="replace")
    shown = "".join(row[1] for row in page.rows)
    assert "<b>&amp;\"" in shown and "bad\ufffd\ufffd" in shown


@pytest.mark.parametrize("name", CONTROLS)
def test_controls_in_names(server, name):
    """Neither listed, as the tests above show, nor served, however the name is encoded."""
    path = "/odd/" + urllib.parse.quote_from_bytes(name)
    for target in (path, path + "/", path.lower(), f"/odd/sub/..{path[4:]}", f"{path}/in"):
        assert fetch(server.port, target).status == 400
    # Names that a request line can contain must be refused, too; HTTP/2 refuses them before.
    if b"\r" not in name and b"\n" not in name and not tls.HTTP2:
        with Client(server.port) as client:
            client.send(b"GET /odd/" + name + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.response().status == 400


def test_listed_is_what_can_be_had(server):
    """Links out of the root and other kinds of files are left out; all others are served."""
    names = [entry["name"] for entry in objects(server, "/links/")]
    expected = ["folder", "in", "real"]
    if VALGRIND:  # no openat2 there, so no link is followed
        expected = ["real"]
    assert names == expected
    for entry in objects(server, "/links/"):
        assert fetch(server.port, "/links/" + entry["href"]).status == 200


@pytest.mark.parametrize(
    "target, status",
    [("/file.txt/", 404), ("/none/", 404), ("/plain/x/", 404), ("/links/out/", 403),
     ("/links/fifo/", 404), ("/links/loop/", 403)],
)
def test_no_folder(server, target, status):
    got = fetch(server.port, target)
    assert got.status == status or (VALGRIND and got.status in (403, 404))


def test_settings_of_a_path(root, tmp_path):
    """An alias and its settings, and error pages inside it."""
    write(tmp_path / "other/sub/file.css", b"other")
    write(tmp_path / "other/sub/file.css.gz", b"packed")
    write(tmp_path / "other/.hidden", b"h")
    write(tmp_path / "other/.well-known/file", b"h")
    write(tmp_path / "other/missing.html", b"our page")
    (tmp_path / "conf").write_text(f"""[sweet]
root={root}
error-page=404=/pub/missing.html
[path /pub]
alias={tmp_path}/other
listing=on
precompressed=on
cache-control=*.css max-age=9
""")
    with running("epoll", root, "--config", tmp_path / "conf") as server:
        assert fetch(server.port, "/plain/").status == 403
        page, _ = listing(server, "/pub/")
        assert page.titles == "Index of /pub/"
        assert [row[0] + row[1] for row in page.rows] == ["../..", "sub/sub/",
                                                          "missing.htmlmissing.html"]
        assert [entry["name"] for entry in objects(server, "/pub/sub/")] == ["file.css",
                                                                            "file.css.gz"]
        for target in ("/pub", "/pub/sub"):
            got = fetch(server.port, target + "?q")
            assert (got.status, got["Location"]) == (301, target + "/?q")
        got = fetch(server.port, "/pub/sub/file.css", fields="Accept-Encoding: gzip\r\n")
        assert (got.body, got["Vary"], got["Cache-Control"]) == (
            b"packed", "Accept-Encoding", "max-age=9")
        assert "Cache-Control" not in fetch(server.port, "/file.txt")
        for target in ("/pub/.hidden", "/pub/.well-known/file", "/pub/none", "/none", "/.dot/file"):
            got = fetch(server.port, target)
            assert (got.status, got.body) == (404, b"our page")


def test_listing_head(server):
    with_body = fetch(server.port, "/plain/")
    without = fetch(server.port, "/plain/", "HEAD")
    assert without["Content-Length"] == with_body["Content-Length"] == str(len(with_body.body))


def test_large_listing(kind, tmp_path):
    """More than fits into the memory after a head."""
    (tmp_path / "some").mkdir()
    for number in range(300):
        (tmp_path / f"some/{number:04} {'x' * 60}").touch()
    with running(kind, tmp_path, "--listing", "on") as server:
        for _ in range(2):
            page, got = listing(server, "/some/")
            assert len(page.rows) == 301 and len(got.body) > 20000
        assert fetch(server.port, "/some/", "HEAD")["Content-Length"] == str(len(got.body))
        # A client that disconnects early.
        with Client(server.port, buffer=4096) as client:
            client.send(b"GET /some/ HTTP/1.1\r\nHost: x\r\n\r\n")
            client.head()
        status = server.wait_status(lambda status: status["connections"]["open"] == 1)
        assert status["cache"]["failures"] == 0


@pytest.fixture
def quick_path(tmp_path):
    """A folder in memory, if possible: creating many files on a disk takes long."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as path:
        yield pathlib.Path(path)


def test_bounded_listing(quick_path):
    """More entries than the limit, and more than a unit can hold."""
    (quick_path / "many").mkdir()
    for number in range(10010):
        os.mknod(quick_path / f"many/{number:05}")
    with running("epoll", quick_path, "--listing", "on", "--cache-size", "2M") as server:
        got = fetch(server.port, "/many/")
        assert got.body.count(b"<bdi>") == 10000 and b"are not shown" in got.body
        got = fetch(server.port, "/many/?format=json")
        assert len(json.loads(got.body)) == 10000 and got["X-Listing"] == "incomplete"


# --- names that are not served ------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    ["/plain/.hidden", "/plain/%2ehidden", "/plain/.git/config", "/plain/.git/", "/plain/.git",
     "/.dot/file", "/..dots/file", "/.dot/../.dot/file", "/.html", "/.well-known/.inner",
     "/.well-knownx/file", "/sub/.well-known/file", "/.well-known/../.dot/file", "/.none"],
)
def test_hidden(server, open_server, target):
    assert fetch(server.port, target).status == 404
    expected = {"/plain/.git": 301, "/.none": 404}.get(target, 200)
    assert fetch(open_server.port, target).status == expected


def test_hidden_in_listings(server, open_server):
    assert [entry["name"] for entry in objects(server, "/")] == [
        "empty", "links", "odd", "one", "plain", "sub", "three", "two", "file.txt",
        "picture.jpg.php", "picture.php.jpg", "script.php", "script.php."]
    assert objects(server, "/sub/") == []
    assert [entry["name"] for entry in objects(server, "/.well-known/")] == ["security.txt"]
    names = [entry["name"] for entry in objects(open_server, "/plain/")]
    assert ".git" in names and ".hidden" in names


def test_type_of_a_hidden_name(open_server):
    """The leading dot hides it, it does not begin an extension."""
    assert fetch(open_server.port, "/.html")["Content-Type"] == "application/octet-stream"


def test_no_redirect_into_nothing(tmp_path):
    """The path with its slash has other rules than an exact path: who is sent there finds it."""
    for name in ("dir.php", "app.php", ".dot", "same"):
        write(tmp_path / "other" / name / "index.html", b"index")
        write(tmp_path / "other" / name / "index.php", b"<?php")
    write(tmp_path / "root/same/index.html", b"index")
    write(tmp_path / "root/.dot/index.html", b"index")
    rules = write(tmp_path / "sweet.conf", f"""[pool php]
protocol=fastcgi
upstream=unix:{tmp_path}/none
script-suffix=.php
[path =/dir.php]
root={tmp_path}/other
[path =/app.php]
root={tmp_path}/other
index=index.php
pool=php
[path =/.dot]
hidden=on
[path =/same]
root={tmp_path}/other
[path =/gone]
root={tmp_path}/other
[path /inside]
internal=on
""".encode())
    with running("epoll", tmp_path / "root", "--config", rules) as server:
        for path in ("/dir.php", "/app.php", "/.dot"):
            assert fetch(server.port, path).status == fetch(server.port, path + "/").status == 404
            assert fetch(server.port, path + "?a").status == 404
        assert fetch(server.port, "/same")["Location"] == "/same/"
        assert fetch(server.port, "/same/").body == b"index"


def test_well_known(server):
    assert fetch(server.port, "/.well-known/security.txt").body == b"contact"
    assert fetch(server.port, "/.well-known")["Location"] == "/.well-known/"


@pytest.mark.parametrize(
    "target",
    ["/file.txt.", "/file.txt..", "/file.txt%20", "/file.txt%20.", "/file.txt/", "/file.txt/.",
     "/file.txt/index.html", "/FILE.TXT", "/file.TXT", "/File.txt", "/%20file.txt",
     "/file.txt::$DATA", "/file.txt%5c", "/file~1.txt", "/file.txt;x", "/file.txt%23",
     "/script.php..", "/script.php%20", "/script.php/x", "/script.PHP", "/PLAIN/file.txt",
     "/plain./file.txt", "/plain%20/file.txt", "/plain.../file.txt"],
)
def test_traps(server, target):
    assert fetch(server.port, target).status == 404


@pytest.mark.parametrize(
    "name, body, media",
    [("script.php.", b"dot", "application/octet-stream"), ("picture.php.jpg", b"jpg", "image/jpeg"),
     ("file.txt", b"txt", "text/plain; charset=utf-8")],
)
def test_types_of_traps(server, name, body, media):
    got = fetch(server.port, "/" + name)
    assert (got.status, got.body, got["Content-Type"]) == (200, body, media)
    assert fetch(server.port, "/picture.jpg.php")["Content-Type"] != "image/jpeg"
