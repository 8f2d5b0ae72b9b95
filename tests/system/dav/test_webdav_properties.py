# SPDX-License-Identifier: MIT
"""PROPFIND and PROPPATCH: the properties that the server makes, and those of clients."""

import os
import xml.etree.ElementTree as tree

import pytest

import dav
from dav import call, find, names, properties, responses, status, to
from files import write

LIVE = {"creationdate", "getlastmodified", "lockdiscovery", "resourcetype", "supportedlock"}
LIVE_OF_FILES = LIVE | {"getcontentlength", "getcontenttype", "getetag"}
PATCH = '<propertyupdate xmlns="DAV:" xmlns:x="urn:x">{}</propertyupdate>'
SET, REMOVE = "<set><prop>{}</prop></set>", "<remove><prop>{}</prop></remove>"


@pytest.fixture
def folder(tmp_path):
    return dav.make(tmp_path)


@pytest.fixture
def server(start, folder, tmp_path):
    return dav.begin(start, tmp_path)


def needs_attributes(folder):
    if not dav.has_attributes(folder):
        pytest.skip("no extended attributes on this file system")


def patch(server, target, *updates, fields=""):
    return call(server, "PROPPATCH", target, fields, PATCH.format("".join(updates)).encode())


def one(server, target, names=""):
    """The properties of a single resource."""
    found = responses(find(server, target, names))
    assert len(found) == 1
    return properties(*found.values())


def test_live(server, folder):
    write(folder / "a.html", b"<p>")
    found = one(server, "/dav/a.html")[200]
    assert set(found) - {"{DAV:}creationdate"} == {
        f"{{DAV:}}{name}" for name in LIVE_OF_FILES - {"creationdate"}}
    answer = call(server, "GET", "/dav/a.html")
    value = lambda name: found[f"{{DAV:}}{name}"].text
    assert value("getcontentlength") == "3"
    assert value("getcontenttype") == answer["Content-Type"]
    assert value("getetag") == answer["ETag"]
    assert value("getlastmodified") == answer["Last-Modified"]
    assert len(found["{DAV:}resourcetype"]) == 0
    assert len(found["{DAV:}supportedlock"]) == 2
    found = one(server, "/dav")[200]
    assert found["{DAV:}resourcetype"][0].tag == "{DAV:}collection"
    assert "{DAV:}getetag" not in found


def test_depth(server, folder):
    write(folder / "f/a b", b"a")
    write(folder / "f/.hidden", b"h")
    write(folder / "f/g/deep", b"d")
    (folder / "f/outside").symlink_to("/etc/passwd")
    listed = lambda target, depth: set(responses(find(server, target, depth=depth)))
    assert listed("/dav/f", "0") == {"/dav/f/"}
    assert listed("/dav/f", "1") == listed("/dav/f/", "1") == {"/dav/f/", "/dav/f/a%20b",
                                                               "/dav/f/g/"}
    assert listed("/dav/f/a%20b", "1") == listed("/dav/f/a%20b", "infinity") == {"/dav/f/a%20b"}
    for fields in ["Depth: infinity\r\n", ""]:
        answer = call(server, "PROPFIND", "/dav/f", fields)
        assert answer.status == 403
        assert tree.fromstring(answer.body)[0].tag == "{DAV:}propfind-finite-depth"
    assert status(server, "PROPFIND", "/dav/f", "Depth: 2\r\n") == 400
    assert status(server, "PROPFIND", "/dav/none", "Depth: 0\r\n") == 404
    assert status(server, "PROPFIND", "/dav/f/.hidden", "Depth: 0\r\n") == 404
    assert status(server, "PROPFIND", "/dav/f/outside", "Depth: 0\r\n") == 403


def test_what_is_asked_for(server, folder):
    write(folder / "a", b"a")
    found = one(server, "/dav/a", '<getetag/><none/><x xmlns="urn:x"/><y xmlns=""/>')
    assert set(found) == {200, 404}
    assert set(found[200]) == {"{DAV:}getetag"}
    assert set(found[404]) == {"{DAV:}none", "{urn:x}x", "y"}
    body = b'<propfind xmlns="DAV:"><propname/></propfind>'
    answer = call(server, "PROPFIND", "/dav/a", "Depth: 0\r\n", body)
    found = properties(responses(answer)["/dav/a"])[200]
    assert all(len(one) == 0 and not one.text for one in found.values())
    assert "{DAV:}getetag" in found


@pytest.mark.parametrize("body, expected", [
    (b"x", 400), (b"<propfind>", 400), (b"<propfind/>", 422),
    (b'<!DOCTYPE p [<!ENTITY e "x">]><propfind xmlns="DAV:"><allprop/></propfind>', 400),
    (b"<a>" * 100 + b"</a>" * 100, 400), (b" " * 70000, 413)])
def test_bad_bodies(server, body, expected):
    assert status(server, "PROPFIND", "/dav/", "Depth: 0\r\n", body) == expected
    if expected != 413:
        assert status(server, "PROPPATCH", "/dav/", "", body) in (400, 422)
        assert status(server, "LOCK", "/dav/", "Depth: 0\r\n", body) in (400, 422)


def test_dead(server, folder):
    needs_attributes(folder)
    write(folder / "a", b"a")
    value = '<x:p xml:lang="de" n="1">ä<q xmlns="urn:q">x:y</q>&lt;</x:p>'
    found = properties(responses(patch(server, "/dav/a", SET.format(value)))["/dav/a"])
    assert list(found) == [200] and list(found[200]) == ["{urn:x}p"]
    for target in ["/dav/a", "/dav/b", "/dav/c"]:
        got = one(server, target, '<p xmlns="urn:x"/>')[200]["{urn:x}p"]
        assert (got.text, got[0].tag, got[0].text, got[0].tail) == ("ä", "{urn:q}q", "x:y", "<")
        assert got.attrib == {"{http://www.w3.org/XML/1998/namespace}lang": "de", "n": "1"}
        assert "{urn:x}p" in one(server, target)[200]
        # They stay with the file: it is written again, then copied, then moved.
        if target == "/dav/a":
            assert status(server, "PUT", "/dav/a", body=b"new") == 204
            assert status(server, "COPY", "/dav/a", to("/dav/b")) == 201
            assert status(server, "MOVE", "/dav/a", to("/dav/c")) == 201
    assert patch(server, "/dav/c", REMOVE.format("<x:p/><x:none/>")).status == 207
    assert 404 in one(server, "/dav/c", '<p xmlns="urn:x"/>')
    # A folder has them too.
    assert patch(server, "/dav/", SET.format("<displayname>Files</displayname>")).status == 207
    assert one(server, "/dav/", "<displayname/>")[200]["{DAV:}displayname"].text == "Files"
    assert names(folder) == ["b", "c"]


def test_all_or_none(server, folder):
    """Properties that cannot be set keep the others from being set."""
    needs_attributes(folder)
    write(folder / "a", b"a")
    assert patch(server, "/dav/a", SET.format("<x:old>1</x:old>")).status == 207
    big = f"<x:big>{'x' * 20000}</x:big>"
    for bad, expected in [("<getetag>x</getetag>", 403), (big, 507)]:
        answer = patch(server, "/dav/a", SET.format("<x:new>1</x:new><x:old>2</x:old>"), SET.format(bad),
                       REMOVE.format("<x:old/>"))
        found = properties(responses(answer)["/dav/a"])
        assert set(found) == {expected, 424}
        assert set(found[424]) == {"{urn:x}new", "{urn:x}old"}
        found = one(server, "/dav/a", '<new xmlns="urn:x"/><old xmlns="urn:x"/>')
        assert list(found[404]) == ["{urn:x}new"]
        assert found[200]["{urn:x}old"].text == "1"
    assert patch(server, "/dav/none", SET.format("<x:a/>")).status == 404


def test_no_room(server, folder):
    """A file system has less room for attributes than clients want."""
    needs_attributes(folder)
    write(folder / "a", b"a")
    for number in range(64):
        answer = patch(server, "/dav/a", SET.format(f"<x:p{number}>{'x' * 8000}</x:p{number}>"))
        found = properties(responses(answer)["/dav/a"])
        if 507 in found:
            break
    else:
        pytest.skip("no extended attributes on this file system")
    # It is still there.
    assert call(server, "GET", "/dav/a").body == b"a"


def test_attributes_of_others(server, folder):
    """What others write there is neither believed nor shown."""
    needs_attributes(folder)
    write(folder / "a", b"a")
    for number, value in enumerate([b"", b"urn:x\np\n<p", b"DAV:\ngetetag\n</x>", b"\xff\n\n"]):
        os.setxattr(folder / "a", f"user.sweet.dav.{number}", value)
    assert set(one(server, "/dav/a")[200]) <= {f"{{DAV:}}{name}" for name in LIVE_OF_FILES}
