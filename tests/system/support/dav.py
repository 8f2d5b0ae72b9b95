# SPDX-License-Identifier: MIT
"""A server whose clients may write files, and requests of WebDAV to it."""

import base64
import os
import re
import xml.etree.ElementTree as tree

from client import Client
from files import write

# Both have the password "geheim".
USERS = "anna:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\nbert:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\n"
CONFIG = """[sweet]
[path /dav]
webdav=on
max-body=64M
auth-realm=Files
auth-file={top}/users
"""
MULTISTATUS = "{DAV:}multistatus"


def make(top, more=""):
    """Makes a root with a folder to write to, and a configuration."""
    (top / "root/dav").mkdir(parents=True)
    write(top / "root/outside.txt", b"outside\n")
    write(top / "users", USERS.encode())
    write(top / "sweet.conf", (CONFIG + more).format(top=top).encode())
    return top / "root/dav"


def begin(start, top, *options):
    return start(top / "root", "--config", top / "sweet.conf", *options)


def login(user):
    return f"Authorization: Basic {base64.b64encode(f'{user}:geheim'.encode()).decode()}\r\n"


def call(server, method, target, fields="", body=None, user="anna"):
    """Sends a request; returns its response."""
    fields += login(user) if user else ""
    if body is not None:
        fields += f"Content-Length: {len(body)}\r\n"
    with Client(server.port) as client:
        client.send(f"{method} {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n".encode("latin-1")
                    + (body or b""))
        return client.response(method)


def status(*arguments, **more):
    return call(*arguments, **more).status


def to(target, more=""):
    return f"Destination: {target}\r\n{more}"


def responses(answer):
    """Returns from the path of each resource of a multistatus to its element."""
    assert answer.status == 207, (answer.status, answer.body)
    assert answer["Content-Type"] == "application/xml; charset=utf-8"
    root = tree.fromstring(answer.body)
    assert root.tag == MULTISTATUS
    return {one.find("{DAV:}href").text: one for one in root}


def properties(element):
    """Returns the properties of each status: from a name to its element."""
    found = {}
    for stat in element.findall("{DAV:}propstat"):
        number = int(stat.find("{DAV:}status").text.split()[1])
        found[number] = {one.tag: one for one in stat.find("{DAV:}prop")}
    return found


def find(server, target, names="", depth="0", **more):
    """PROPFIND of these elements, or of all."""
    body = f'<propfind xmlns="DAV:"><prop>{names}</prop></propfind>'.encode() if names else None
    return call(server, "PROPFIND", target, f"Depth: {depth}\r\n", body, **more)


def lock(server, target, scope="exclusive", fields="Depth: 0\r\n", user="anna"):
    """LOCK; returns the response and its token."""
    body = (f'<lockinfo xmlns="DAV:"><lockscope><{scope}/></lockscope><locktype><write/></locktype>'
            f"<owner>{user}</owner></lockinfo>").encode()
    answer = call(server, "LOCK", target, fields, body, user=user)
    token = answer["Lock-Token"].strip("<>") if "Lock-Token" in answer else None
    assert token is None or re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", token)
    return answer, token


def names(folder):
    """All files and folders, also those that hide."""
    return sorted(os.path.relpath(os.path.join(top, name), folder)
                  for top, folders, files in os.walk(folder) for name in folders + files)


def has_attributes(folder):
    try:
        os.setxattr(folder, "user.test", b"1")
        os.removexattr(folder, "user.test")
    except OSError:
        return False
    return True
