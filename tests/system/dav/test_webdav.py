# SPDX-License-Identifier: MIT
"""WebDAV: files and folders that clients write, remove, copy and move; what is refused, and what
a client leaves behind that goes away."""

import contextlib
import os
import threading
import time

import pytest

import dav
from client import Client
from dav import call, names, status, to
from files import MB, pattern, write
from server import TIMEOUT, VALGRIND, descriptors

TAG = "If-None-Match: *\r\n"


@pytest.fixture
def folder(tmp_path):
    return dav.make(tmp_path)


@pytest.fixture
def server(start, folder, tmp_path):
    return dav.begin(start, tmp_path)


def test_put(server, folder):
    answer = call(server, "PUT", "/dav/a.txt", body=b"one")
    assert (answer.status, answer.body) == (201, b"")
    again = call(server, "GET", "/dav/a.txt")
    assert (again.status, again.body, again["ETag"]) == (200, b"one", answer["ETag"])
    assert again["Content-Type"].startswith("text/plain")
    answer = call(server, "PUT", "/dav/a.txt", body=b"two")
    assert answer.status == 204
    # The next request gets the new bytes.
    again = call(server, "GET", "/dav/a.txt")
    assert (again.body, again["ETag"]) == (b"two", answer["ETag"])
    assert status(server, "PUT", "/dav/empty", body=b"") == 201
    assert status(server, "PUT", "/dav/nothing") == 201
    assert status(server, "PUT", "/dav/%C3%A4%20%26.txt", body=b"3") == 201
    assert names(folder) == ["a.txt", "empty", "nothing", "ä &.txt"]
    mask = os.umask(0)
    os.umask(mask)
    assert (folder / "a.txt").stat().st_mode & 0o777 == 0o666 & ~mask


def test_put_large(server, folder):
    data = pattern(5 * MB + 1)
    assert status(server, "PUT", "/dav/large", body=data) == 201
    assert (folder / "large").read_bytes() == data
    assert call(server, "GET", "/dav/large").body == data


def test_put_chunked(server, folder):
    with Client(server.port) as client:
        client.send(b"PUT /dav/a HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n"
                    + dav.login("anna").encode() + b"\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert client.response().status == 201
    assert (folder / "a").read_bytes() == b"abcde"
    with Client(server.port) as client:
        client.send(b"PUT /dav/a HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n"
                    + dav.login("anna").encode() + b"\r\n0\r\n\r\n")
        assert client.response().status == 204
    assert (folder / "a").read_bytes() == b""


@pytest.mark.http1("chunks")
def test_put_bad_chunks(start, tmp_path):
    """Neither what is malformed nor what is too long leaves anything."""
    folder = dav.make(tmp_path)
    (tmp_path / "sweet.conf").write_text(
        (tmp_path / "sweet.conf").read_text().replace("max-body=64M", "max-body=1M"))
    server = dav.begin(start, tmp_path)
    chunk = b"80000\r\n" + bytes(0x80000) + b"\r\n"
    for chunks, expected in [(chunk + b"x\r\n", 400), (3 * chunk, 413)]:
        with Client(server.port) as client:
            client.send(b"PUT /dav/a HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n"
                        + dav.login("anna").encode() + b"\r\n" + chunks)
            assert client.response().status == expected
    assert names(folder) == []


@pytest.mark.http1("Expect")
def test_put_expect(server, folder):
    head = "PUT {} HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\nExpect: 100-continue\r\n"
    with Client(server.port) as client:
        client.send((head.format("/dav/a") + dav.login("anna") + "\r\n").encode())
        assert client.head().startswith(b"HTTP/1.1 100 ")
        client.send(b"abc")
        assert client.response().status == 201
    # What is refused is not asked for.
    with Client(server.port) as client:
        client.send((head.format("/dav/none/a") + dav.login("anna") + "\r\n").encode())
        assert client.response().status == 409
    assert names(folder) == ["a"]


@pytest.mark.parametrize("target, expected", [
    ("/dav/none/a", 409), ("/dav/file/a", 409), ("/dav/f", 405), ("/dav/f/", 405),
    ("/dav/new/", 409), ("/dav", 403), ("/dav/", 403), ("/dav/.hidden", 403), ("/dav/.f/a", 403),
    ("/outside.txt", 405), ("/new.txt", 405), ("/dav/../outside.txt", 405), ("/dav/%2e%2e/a", 405),
    ("/dav/a%2fb", 400), ("/dav/a%00", 400), ("/dav/link/a", 403), ("/dav/inner/a", 403),
    ("/dav/" + "a" * 256, 403)])
def test_put_refused(server, folder, target, expected):
    (folder / "f").mkdir()
    write(folder / "file", b"file")
    write(folder.parent / "other/a", b"other")
    (folder / "link").symlink_to(folder.parent / "other")
    (folder / "inner").symlink_to("f")
    before = names(folder.parent)
    assert status(server, "PUT", target, body=b"x") == expected
    assert names(folder.parent) == before
    assert (folder.parent / "outside.txt").read_bytes() == b"outside\n"
    assert (folder.parent / "other/a").read_bytes() == b"other"


@pytest.mark.skipif(VALGRIND, reason="Valgrind knows no openat2, which resolves links")
def test_a_link_is_replaced(server, folder):
    """What a link leads to is not written."""
    (folder / "link").symlink_to("../outside.txt")
    assert status(server, "PUT", "/dav/link", body=b"new") == 204
    assert not (folder / "link").is_symlink()
    assert (folder.parent / "outside.txt").read_bytes() == b"outside\n"


def test_users(server, folder):
    for method in ["PUT", "DELETE", "MKCOL", "COPY", "MOVE", "PROPFIND", "PROPPATCH", "LOCK",
                   "UNLOCK", "OPTIONS"]:
        assert status(server, method, "/dav/a", user=None) == 401
    assert names(folder) == []
    # There is no WebDAV elsewhere, and none of its methods is known.
    assert status(server, "PUT", "/a", body=b"", user=None) == 405
    assert status(server, "MKCOL", "/a", user=None) == 501


def test_conditions(server, folder):
    put = lambda fields, target="/dav/a": status(server, "PUT", target, fields, b"x")
    assert put("If-Match: *\r\n") == 412
    assert put(TAG) == 201
    assert put(TAG) == 412
    tag = call(server, "GET", "/dav/a")["ETag"]
    assert put('If-Match: "other"\r\n') == 412
    assert put(f"If-Match: {tag}\r\n") == 204
    assert put(f"If-Match: {tag}\r\n") == 412
    tag = call(server, "GET", "/dav/a")["ETag"]
    assert put(f"If: ([{tag}])\r\n") == 204
    assert put(f"If: ([{tag}])\r\n") == 412
    assert put(f"If: (Not [{tag}])\r\n") == 204
    assert put("If: (<urn:x>\r\n") == 400
    assert put("If-Unmodified-Since: Mon, 01 Jan 2001 00:00:00 GMT\r\n") == 412
    assert put("Content-Range: bytes 0-0/2\r\n") == 400
    assert status(server, "DELETE", "/dav/a", f"If-Match: {tag}\r\n") == 412
    assert status(server, "DELETE", "/dav/a", "If-Match: *\r\n") == 204


def test_limit(server, folder):
    assert status(server, "PUT", "/dav/a", "Content-Length: 99999999\r\n") == 413
    assert names(folder) == []


def test_client_leaves(server, folder):
    """Neither a file nor a descriptor remains of a body that does not end."""
    before = descriptors(server.pid)
    for _ in range(3):
        with Client(server.port) as client:
            client.send(("PUT /dav/a HTTP/1.1\r\nHost: test\r\nContent-Length: 2000000\r\n"
                         + dav.login("anna") + "\r\n").encode() + bytes(1000000))
    server.wait_status(lambda status: status["connections"]["open"] == 1)
    # Helpers close the files, soon.
    deadline = time.monotonic() + TIMEOUT
    while descriptors(server.pid) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert descriptors(server.pid) <= before
    assert names(folder) == []


def test_clients_that_do_not_wait(server, folder):
    """A change is made even if its client has gone; nothing else happens."""
    for number in range(20):
        write(folder / f"f{number}/a", b"a")
        for method, fields, body in [("PUT", "Content-Length: 1\r\n", b"x"),
                                     ("PROPFIND", "Depth: 1\r\n", b""),
                                     ("COPY", to(f"/dav/c{number}"), b""),
                                     ("DELETE", "", b"")]:
            target = f"/dav/p{number}" if method == "PUT" else f"/dav/f{number}"
            with Client(server.port) as client:
                client.send((f"{method} {target} HTTP/1.1\r\nHost: test\r\n{fields}"
                             f"{dav.login('anna')}\r\n").encode() + body)
    assert call(server, "GET", "/dav/none").status == 404
    assert dav.responses(dav.find(server, "/dav/", depth="1"))


@pytest.mark.clear("ends sessions by other means")
def test_stop_during_upload(start, folder, tmp_path):
    server = dav.begin(start, tmp_path, "--stop-timeout", "0")
    with contextlib.ExitStack() as stack:
        # Some wait for the client, others for a thread that writes.
        for number in range(20):
            client = stack.enter_context(Client(server.port))
            client.send((f"PUT /dav/{number} HTTP/1.1\r\nHost: test\r\n"
                         f"Content-Length: 2000000\r\n{dav.login('anna')}\r\n").encode()
                        + bytes(1000000))
        server.stop()
    assert names(folder) == []


def test_delete(server, folder):
    write(folder / "f/g/a", b"a")
    write(folder / "f/.hidden", b"h")
    (folder / "f/link").symlink_to("../../outside.txt")
    (folder / "f/loop").symlink_to(".")
    write(folder / "a", b"a")
    delete = lambda target, fields="": status(server, "DELETE", target, fields)
    assert delete("/dav/a") == 204
    assert delete("/dav/a") == 404
    assert delete("/dav/f/", "Depth: 0\r\n") == 400
    assert delete("/dav/f") == 204
    assert names(folder) == []
    assert delete("/dav/") == delete("/dav") == 403
    assert delete("/outside.txt") == 405
    assert (folder.parent / "outside.txt").exists()


def test_mkcol(server, folder):
    make = lambda target, **more: status(server, "MKCOL", target, **more)
    assert make("/dav/f") == make("/dav/g/") == make("/dav/f/h/") == 201
    assert make("/dav/f") == make("/dav/") == 405
    assert make("/dav/none/f") == 409
    assert make("/dav/x", body=b"<x/>") == 415
    assert make("/dav/.x") == 403
    write(folder / "file", b"")
    assert make("/dav/file/f") == 409
    assert names(folder) == ["f", "f/h", "file", "g"]


def test_copy(server, folder):
    write(folder / "a", b"a")
    write(folder / "f/g/b", b"b")
    write(folder / "f/.hidden", b"h")
    copy = lambda source, target, more="": status(server, "COPY", source, to(target, more))
    assert copy("/dav/a", "/dav/b") == 201
    assert copy("/dav/a", "/dav/b") == 204
    assert copy("/dav/a", "/dav/b", "Overwrite: F\r\n") == 412
    assert copy("/dav/f/", "/dav/h/") == 201
    assert copy("/dav/f", "/dav/e", "Depth: 0\r\n") == 201
    assert copy("/dav/none", "/dav/x") == 404
    assert copy("/dav/a", "/dav/none/x") == 409
    assert copy("/dav/a", "/dav/a") == copy("/dav/f", "/dav/f/x") == copy("/dav/f/g", "/dav/f") == 403
    assert names(folder) == ["a", "b", "e", "f", "f/.hidden", "f/g", "f/g/b", "h", "h/g", "h/g/b"]
    # A folder replaces another as a whole.
    write(folder / "e/old", b"old")
    assert copy("/dav/h", "/dav/e") == 204
    assert names(folder / "e") == ["g", "g/b"]
    assert copy("/dav/a", "/dav/e") == 204
    assert (folder / "e").read_bytes() == b"a"


def test_move(server, folder):
    write(folder / "a", b"a")
    write(folder / "f/g/b", b"b")
    move = lambda source, target, more="": status(server, "MOVE", source, to(target, more))
    assert move("/dav/a", "/dav/b") == 201
    assert move("/dav/f", "/dav/h/") == 201
    assert names(folder) == ["b", "h", "h/g", "h/g/b"]
    write(folder / "a", b"new")
    assert move("/dav/a", "/dav/b", "Overwrite: F\r\n") == 412
    assert move("/dav/a", "/dav/b") == 204
    assert (folder / "b").read_bytes() == b"new"
    assert move("/dav/h", "/dav/h/g/x") == 403
    assert move("/dav/h", "/dav/x", "Depth: 0\r\n") == 400
    assert move("/dav/", "/dav/x") == 403
    assert move("/dav/b", "/dav/h") == 204
    assert names(folder) == ["h"]


@pytest.mark.parametrize("name", ["._x", ".DS_Store", ".f/a", "f/._x"])
def test_hidden_names(server, folder, name):
    """As for GET, they do not exist; and nobody makes one."""
    write(folder / "a", b"a")
    write(folder / name, b"hidden")
    before = names(folder)
    for method in ("PROPFIND", "PROPPATCH", "DELETE", "UNLOCK", "HEAD"):
        fields = "Depth: 0\r\nLock-Token: <opaquelocktoken:a>\r\n"
        assert status(server, method, f"/dav/{name}", fields) == 404
    for method in ("COPY", "MOVE"):
        assert status(server, method, f"/dav/{name}", to("/dav/new")) == 404
        assert status(server, method, "/dav/a", to(f"/dav/{name}")) == 403
    for method in ("PUT", "MKCOL", "LOCK"):
        assert status(server, method, f"/dav/{name}") == 403
    assert names(folder) == before


@pytest.fixture
def open_server(start, tmp_path):
    """As the manual for operators says."""
    dav.make(tmp_path)
    config = tmp_path / "sweet.conf"
    config.write_text(config.read_text().replace("webdav=on\n", "webdav=on\nhidden=on\n"))
    return dav.begin(start, tmp_path)


LOCK = b"""<?xml version="1.0" encoding="utf-8"?>
<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
<D:locktype><D:write/></D:locktype><D:owner><D:href>http://www.apple.com/webdav_fs/</D:href></D:owner>
</D:lockinfo>"""


def test_finder_copies(open_server, tmp_path):
    """A file with a resource fork, as macOS writes it."""
    folder = tmp_path / "root/dav"
    for name in ("a.txt", "._a.txt", ".DS_Store"):
        target = f"/dav/{name}"
        assert status(open_server, "PROPFIND", target, "Depth: 0\r\n") == 404
        assert status(open_server, "PUT", target, body=b"") == 201
        locked = call(open_server, "LOCK", target, "Depth: 0\r\nTimeout: Second-600\r\n", LOCK)
        assert locked.status == 200
        token = locked["Lock-Token"]
        assert status(open_server, "PUT", target, f"If: ({token})\r\n", name.encode()) == 204
        assert status(open_server, "PROPFIND", target, "Depth: 0\r\n") == 207
        assert status(open_server, "UNLOCK", target, f"Lock-Token: {token}\r\n") == 204
    listed = call(open_server, "PROPFIND", "/dav/", "Depth: 1\r\n")
    assert listed.status == 207 and b"/dav/._a.txt<" in listed.body
    assert names(folder) == [".DS_Store", "._a.txt", "a.txt"]


def test_rclone_syncs(open_server, tmp_path):
    """A folder with names that begin with a dot: made, listed, and removed again."""
    folder = tmp_path / "root/dav"
    assert status(open_server, "PROPFIND", "/dav/.git/", "Depth: 1\r\n") == 404
    assert status(open_server, "MKCOL", "/dav/.git/") == 201
    for name in (".git/config", ".profile"):
        assert status(open_server, "PUT", f"/dav/{name}", body=b"1") == 201
        assert status(open_server, "PROPFIND", f"/dav/{name}", "Depth: 0\r\n") == 207
    assert b"/dav/.git/config<" in call(open_server, "PROPFIND", "/dav/.git/", "Depth: 1\r\n").body
    assert status(open_server, "MOVE", "/dav/.profile", to("/dav/.git/b")) == 201
    assert status(open_server, "COPY", "/dav/.git", to("/dav/.copy")) == 201
    assert names(folder) == [".copy", ".copy/b", ".copy/config", ".git", ".git/b", ".git/config"]
    assert status(open_server, "DELETE", "/dav/.git/") == 204
    assert status(open_server, "DELETE", "/dav/.copy/b") == 204


@pytest.mark.parametrize("target, expected", [
    ("/outside.txt", 403), ("/dav/../new", 403), ("/dav/%2e%2e/new", 403), ("/dav/", 403),
    ("/dav/.hidden", 403), ("http://test/dav/good", 201), ("http://test:8080/dav/good", 201),
    ("http://other/dav/a", 502), ("ftp://test/dav/a", 400), ("dav/a", 400), ("//test/dav/a", 403),
    ("/dav/a%2fb", 400), ("/dav/a?b", 400), ("/dav/a#b", 400), ("http://test", 403),
    ("/other/a", 403), ("/same/a", 201), ("/dav/link/x", 403), ("/dav/exact", 403),
    ("/dav/a.run", 403)])
def test_destinations(start, tmp_path, target, expected):
    folder = dav.make(tmp_path, """[path /other]
webdav=on
auth-realm=Others
auth-file={top}/others
[path /same]
webdav=on
auth-realm=Files
auth-file={top}/users
[path =/dav/exact]
deny=all
[pattern run]
match=[.]run$
internal=on
""")
    write(tmp_path / "others", dav.USERS.encode())
    for name in ["other", "same"]:
        (folder.parent / name).mkdir()
    (folder / "link").symlink_to(folder.parent)
    write(folder / "s", b"s")
    server = dav.begin(start, tmp_path)
    before = names(folder.parent)
    for method in ["COPY", "MOVE"]:
        if method == "MOVE" and expected == 201:
            expected = 204
        assert status(server, method, "/dav/s", to(target)) == expected
        if expected >= 400:
            assert names(folder.parent) == before


def test_other_rules_below(start, tmp_path):
    """A folder is not changed as a whole if a path below has other rules."""
    folder = dav.make(tmp_path, """[path /dav/f/closed]
deny=all
[path /dav/g/read]
webdav=off
[path /dav/h/same]
cache-control=no-store
[pattern secret]
match=[.]secret$
deny=all
[path /pattern]
webdav=off
""")
    for name in ["f/closed/a", "g/read/a", "h/same/a"]:
        write(folder / name, b"a")
    server = dav.begin(start, tmp_path)
    before = names(folder)
    for name in ["f", "g", "f/closed", "g/read"]:
        for method in ["DELETE", "MOVE", "COPY"]:
            # The pattern applies to all paths.
            expected = {"f/closed": (403,), "g/read": (405, 501)}.get(name, (403,))
            assert status(server, method, f"/dav/{name}", to("/dav/x")) in expected
    assert status(server, "DELETE", "/dav/h") == 403
    assert names(folder) == before
    # A list names what the client may not get.
    assert status(server, "GET", "/dav/h/a.secret") == 403
    write(folder / "h/a.secret", b"a")
    listed = dav.responses(call(server, "PROPFIND", "/dav/h", "Depth: 1\r\n"))
    assert "/dav/h/a.secret" in listed
    # A single file has only its own rules.
    assert status(server, "DELETE", "/dav/h/same/a") == 204


def test_rules_below_that_are_the_same(start, tmp_path):
    folder = dav.make(tmp_path, """[path /dav/h/same]
cache-control=no-store
""")
    write(folder / "h/same/a", b"a")
    server = dav.begin(start, tmp_path)
    assert status(server, "MOVE", "/dav/h", to("/dav/i")) == 201
    assert status(server, "DELETE", "/dav/i") == 204


def test_failures_of_members(server, folder):
    """What cannot be copied is named; the rest is."""
    write(folder / "f/a", b"a")
    (folder / "f/link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "f/pipe")
    found = dav.responses(call(server, "COPY", "/dav/f", to("/dav/g")))
    assert {path: one.find("{DAV:}status").text for path, one in found.items()} == {
        "/dav/g/link": "HTTP/1.1 403 Forbidden", "/dav/g/pipe": "HTTP/1.1 403 Forbidden"}
    assert names(folder / "g") == ["a"]


def test_alias(start, tmp_path):
    """The files lie elsewhere, and so do not hide those of the root."""
    dav.make(tmp_path, "alias={top}/store\n")
    (tmp_path / "store").mkdir()
    server = dav.begin(start, tmp_path)
    assert status(server, "PUT", "/dav/a", body=b"a") == 201
    assert status(server, "MKCOL", "/dav/f/") == 201
    assert status(server, "MOVE", "/dav/a", to("/dav/f/b")) == 201
    assert call(server, "GET", "/dav/f/b").body == b"a"
    assert names(tmp_path / "store") == ["f", "f/b"]
    assert list(dav.responses(dav.find(server, "/dav/", depth="1"))) == ["/dav/", "/dav/f/"]
    assert status(server, "DELETE", "/dav") == 403


def test_options(server):
    answer = call(server, "OPTIONS", "/dav/a")
    assert (answer.status, answer["DAV"]) == (204, "1, 2")
    allowed = answer["Allow"].split(", ")
    assert {"PUT", "MKCOL", "PROPFIND", "LOCK"} <= set(allowed)
    assert "DAV" not in call(server, "OPTIONS", "/outside.txt")
    answer = call(server, "POST", "/dav/a", body=b"")
    assert (answer.status, answer["Allow"].split(", ")) == (405, allowed)
    assert status(server, "SEARCH", "/dav/a") == 501


def test_many_at_once(server, folder):
    """Each response is that of its own request; a reader gets a whole file, old or new."""
    texts = [bytes([65 + number]) * 300000 for number in range(4)]
    assert status(server, "PUT", "/dav/a", body=texts[0]) == 201
    failed = []

    def work(number):
        for turn in range(5):
            if status(server, "PUT", "/dav/a", body=texts[number]) != 204:
                failed.append("put")
            if call(server, "GET", "/dav/a").body not in texts:
                failed.append("mixed")
            if status(server, "MKCOL", f"/dav/{number}-{turn}") != 201:
                failed.append("mkcol")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(names(folder)) == 21
