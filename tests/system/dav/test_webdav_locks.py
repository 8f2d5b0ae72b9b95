# SPDX-License-Identifier: MIT
"""LOCK and UNLOCK: what locks protect, from whom, and how they end."""

import xml.etree.ElementTree as tree

import pytest

import dav
from dav import call, find, lock, names, properties, responses, status, to
from files import write

DEEP = "Depth: infinity\r\n"


@pytest.fixture
def folder(tmp_path):
    folder = dav.make(tmp_path)
    write(folder / "a", b"a")
    write(folder / "f/b", b"b")
    write(folder / "f/g/c", b"c")
    return folder


@pytest.fixture
def server(start, folder, tmp_path):
    return dav.begin(start, tmp_path)


def having(token):
    return f"If: (<{token}>)\r\n"


def test_exclusive(server):
    answer, token = lock(server, "/dav/a")
    assert answer.status == 200
    active = tree.fromstring(answer.body).find("{DAV:}lockdiscovery/{DAV:}activelock")
    text = lambda path: active.find(path).text
    assert text("{DAV:}depth") == "0"
    assert text("{DAV:}owner") == "anna"
    assert text("{DAV:}locktoken/{DAV:}href") == token
    assert text("{DAV:}lockroot/{DAV:}href") == "/dav/a"
    assert 0 < int(text("{DAV:}timeout").removeprefix("Second-")) <= 600
    for scope in ["exclusive", "shared"]:
        answer, none = lock(server, "/dav/a", scope)
        assert (answer.status, none) == (423, None)
        assert answer.body.count(b"<D:href>/dav/a</D:href>") == 1
    attempts = [("PUT", "/dav/a", "", b"x"), ("DELETE", "/dav/a", "", None),
                ("MOVE", "/dav/a", to("/dav/x"), None), ("COPY", "/dav/f/b", to("/dav/a"), None),
                ("MOVE", "/dav/f/b", to("/dav/a"), None),
                ("PROPPATCH", "/dav/a", "", b'<propertyupdate xmlns="DAV:"><set><prop><x/></prop></set>'
                 b"</propertyupdate>")]
    for method, target, fields, body in attempts:
        answer = call(server, method, target, fields, body)
        assert answer.status == 423, method
        condition = tree.fromstring(answer.body)[0]
        assert condition.tag == "{DAV:}lock-token-submitted"
        assert condition[0].text == "/dav/a"
        # The token is of no use to others.
        tagged = f"If: </dav/a> (<{token}>)\r\n"
        assert status(server, method, target, fields + tagged, body, user="bert") == 423
        assert status(server, method, target, fields + having("urn:uuid:x"), body) == 412
    assert call(server, "GET", "/dav/a").body == b"a"
    assert status(server, "PUT", "/dav/a", having(token), b"new") == 204
    assert status(server, "COPY", "/dav/a", to("/dav/copy")) == 201
    # A copy has no lock; nor has a name whose file is gone.
    assert status(server, "PUT", "/dav/copy", "", b"x") == 204
    assert status(server, "MOVE", "/dav/a", to("/dav/moved") + having(token)) == 201
    assert status(server, "PUT", "/dav/moved", "", b"x") == 204
    assert status(server, "PUT", "/dav/a", "", b"x") == 201


def test_shared(server):
    _, anna = lock(server, "/dav/a", "shared")
    _, bert = lock(server, "/dav/a", "shared", user="bert")
    assert anna and bert and anna != bert
    assert lock(server, "/dav/a")[0].status == 423
    assert status(server, "PUT", "/dav/a", "", b"x") == 423
    assert status(server, "PUT", "/dav/a", having(anna), b"x") == 204
    assert status(server, "PUT", "/dav/a", having(bert), b"x", user="bert") == 204
    found = properties(responses(find(server, "/dav/a", "<lockdiscovery/>"))["/dav/a"])
    assert len(found[200]["{DAV:}lockdiscovery"]) == 2


def test_folders(server):
    _, token = lock(server, "/dav/f", fields=DEEP)
    for method, target, fields in [
            ("PUT", "/dav/f/b", ""), ("PUT", "/dav/f/new", ""), ("DELETE", "/dav/f/g/c", ""),
            ("MKCOL", "/dav/f/g/d", ""), ("MOVE", "/dav/a", to("/dav/f/a")),
            ("MOVE", "/dav/f/b", to("/dav/b")), ("DELETE", "/dav/f", "")]:
        assert status(server, method, target, fields) == 423, (method, target)
    assert lock(server, "/dav/f/g/c")[0].status == lock(server, "/dav/f/g/new")[0].status == 423
    assert status(server, "PUT", "/dav/f/g/new", having(token), b"x") == 201
    # By the list of another resource than that of the request.
    tagged = f"If: </dav/f> (<{token}>)\r\n"
    assert status(server, "MOVE", "/dav/a", to("/dav/f/a") + tagged) == 201
    assert status(server, "DELETE", "/dav/f", having(token)) == 204
    assert status(server, "MKCOL", "/dav/f") == 201


def test_members(server):
    """A lock of a folder alone protects its list of members."""
    _, token = lock(server, "/dav/f")
    assert status(server, "PUT", "/dav/f/b", "", b"x") == 204
    assert status(server, "PUT", "/dav/f/new", "", b"x") == 423
    assert status(server, "DELETE", "/dav/f/b") == status(server, "MKCOL", "/dav/f/d") == 423
    assert lock(server, "/dav/f/new")[0].status == 423
    assert status(server, "MKCOL", "/dav/f/d", f"If: </dav/f> (<{token}>)\r\n") == 201
    assert status(server, "MKCOL", "/dav/f/g/d") == 201
    # And a folder with a locked member is not removed.
    assert status(server, "UNLOCK", "/dav/f", f"Lock-Token: <{token}>\r\n") == 204
    _, token = lock(server, "/dav/f/g/c", user="bert")
    assert status(server, "DELETE", "/dav/f") == 423
    assert status(server, "MOVE", "/dav/f", to("/dav/h")) == 423
    assert lock(server, "/dav/f", fields=DEEP)[0].status == 423


def test_new_names(server, folder):
    """A lock of a name that nothing has makes an empty file."""
    answer, token = lock(server, "/dav/new")
    assert answer.status == 201
    assert (folder / "new").read_bytes() == b""
    assert status(server, "PUT", "/dav/new", "", b"x") == 423
    assert status(server, "PUT", "/dav/new", having(token), b"x") == 204
    for target, expected in [("/dav/none/x", 409), ("/dav/none/", 409), ("/dav/.x", 403)]:
        assert lock(server, target)[0].status == expected
    # None of these has left a lock.
    assert status(server, "MKCOL", "/dav/none") == 201
    assert status(server, "PUT", "/dav/none/x", "", b"x") == 201


def test_refresh_and_unlock(server):
    answer, token = lock(server, "/dav/f", fields=DEEP + "Timeout: Second-100\r\n")
    timeout = lambda answer: int(tree.fromstring(answer.body).find(".//{DAV:}timeout").text[7:])
    assert timeout(answer) <= 100
    refresh = lambda target, fields, **more: call(server, "LOCK", target, fields, **more)
    # By a path that it covers, too.
    answer = refresh("/dav/f/b", having(token) + "Timeout: Infinite\r\n")
    assert answer.status == 200 and "Lock-Token" not in answer
    assert 100 < timeout(answer) <= 3600
    assert refresh("/dav/f", having(token), user="bert").status == 412
    assert refresh("/dav/a", having(token)).status == 412
    assert refresh("/dav/f", "").status == 400
    unlock = lambda target, token, **more: status(
        server, "UNLOCK", target, f"Lock-Token: <{token}>\r\n", **more)
    assert unlock("/dav/a", token) == unlock("/dav/f", "urn:x") == 409
    assert unlock("/dav/f", token, user="bert") == 403
    assert status(server, "UNLOCK", "/dav/f") == 400
    assert unlock("/dav/f/b", token) == 204
    assert unlock("/dav/f", token) == 409
    assert status(server, "DELETE", "/dav/f") == 204


def test_conditions(server):
    _, token = lock(server, "/dav/a")
    tag = call(server, "GET", "/dav/a")["ETag"]
    put = lambda value: status(server, "PUT", "/dav/a", f"If: {value}\r\n", b"x")
    assert put(f"(<{token}> [\"other\"])") == 412
    assert put("(Not <urn:x>)") == 423
    assert put(f"(<{token}> [{tag}])") == 204
    assert put(f"(<urn:x>) (Not <urn:x> <{token}>)") == 204
    assert put(f"</dav/f/b> (<{token}>)") == 412
    assert put(f"<http://other/dav/a> (<{token}>)") == 412
    assert put(f"<http://test/dav/a> (<{token}>)") == 204
    assert put(f"</outside.txt> (Not <urn:x> <{token}>)") == 412


def test_expiry(server):
    answer, token = lock(server, "/dav/a", fields="Depth: 0\r\nTimeout: Second-1\r\n")
    assert answer.status == 200
    # Nothing announces it; it takes a second.
    while status(server, "PUT", "/dav/a", "", b"x") == 423:
        pass
    assert call(server, "GET", "/dav/a").body == b"x"
    assert status(server, "PUT", "/dav/a", having(token), b"y") == 412


def test_reload(server, folder):
    """A reload keeps the locks."""
    _, token = lock(server, "/dav/a")
    server.send_signal(1)
    server.wait_status(lambda status: status["config"]["generation"] == 2)
    assert status(server, "PUT", "/dav/a", "", b"x") == 423
    assert status(server, "PUT", "/dav/a", having(token), b"x") == 204


def test_limit(server, folder):
    """One user leaves locks for the others."""
    owner = f"<x>{'x' * 2000}</x>"
    body = ('<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype>'
            f"<owner>{owner}</owner></lockinfo>").encode()
    assert status(server, "LOCK", "/dav/a", "Depth: 0\r\n", body) == 507
    assert status(server, "PUT", "/dav/a", "", b"x") == 204
    assert names(folder) == ["a", "f", "f/b", "f/g", "f/g/c"]
