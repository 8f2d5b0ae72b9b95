# SPDX-License-Identifier: MIT
"""try-files: a file or folder that exists, or what answers instead of it."""

import pytest

import server as servers
from client import Client
from files import write

PAGE = b"the application\n"
RULES = """[sweet]
try-files=file;folder;/index.html
error-page=410=/gone.html
[path /files]
try-files=file;=410
[path /only]
try-files=file;folder
[path /off]
try-files=off
[path /page]
try-files=file;/private/page.html
[path /lost]
try-files=file;/missing.html
[path /round]
try-files=/round/again
[path /private]
deny=all
try-files=off
[path /old]
rewrite=/files
[path /here]
alias={top}/other
[path /echo]
pool=echo
try-files=file;pool:echo
[path /below]
pool=echo
[path /below/deep]
listing=on
[path /below/file]
try-files=file
[pool echo]
protocol=cgi
folder={top}/programs
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    top = tmp_path_factory.mktemp("try")
    root = top / "root"
    for name, content in [("index.html", PAGE), ("a.css", b"style\n"), ("gone.html", b"gone\n"),
                          ("folder/index.html", b"folder\n"), ("files/a.txt", b"a\n"),
                          (".secret", b"secret\n"), ("only/a.txt", b"only\n"),
                          ("below/file", b"a file\n"), ("below/deep/file", b"a file\n"),
                          ("private/page.html", b"private\n"), ("echo/file", b"a file\n"),
                          ("off/a.txt", b"off\n")]:
        write(root / name, content)
    (root / "bare").mkdir()
    (root / "folder/sub").mkdir()
    write(top / "other/file", b"other\n")
    program = write(top / "programs/name", b"#!/bin/sh\necho Content-Type: text/plain\n"
                    b'echo Content-Length: 14\necho\necho "$SCRIPT_NAME $PATH_INFO"\n')
    program.chmod(0o755)
    rules = write(top / "sweet.conf", RULES.format(top=top).encode())
    with servers.running("epoll", root, "--config", rules) as server:
        yield server


def ask(server, target, method="GET", fields=""):
    with Client(server.port) as client:
        client.send(f"{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode())
        return client.response(method)


@pytest.mark.parametrize("target", ["/users/42", "/users/42/", "/a.css/b", "/folder/none", "/x?y=z",
                                    "/.secret", "/.secret/x", "/bare/none/"])
def test_application(server, target):
    for method in ["GET", "HEAD"]:
        answer = ask(server, target, method)
        assert (answer.status, answer["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert answer["Content-Length"] == str(len(PAGE))
        assert answer.body == (PAGE if method == "GET" else b"")
    etag = ask(server, target)["ETag"]
    assert ask(server, target, fields=f"If-None-Match: {etag}\r\n").status == 304
    assert ask(server, target, fields="Range: bytes=4-6\r\n").body == b"app"


def test_what_exists(server):
    assert ask(server, "/").body == PAGE
    assert ask(server, "/a.css").body == b"style\n"
    assert ask(server, "/folder/").body == b"folder\n"
    answer = ask(server, "/folder?q=1")
    assert (answer.status, answer["Location"]) == (301, "/folder/?q=1")
    assert ask(server, "/bare/").status == 403


def test_other_methods(server):
    for target in ["/a.css", "/users/42"]:
        answer = ask(server, target, "POST", "Content-Length: 0\r\n")
        assert (answer.status, answer["Allow"]) == (405, "GET, HEAD, OPTIONS")


def test_statuses(server):
    assert ask(server, "/files/a.txt").body == b"a\n"
    answer = ask(server, "/files/b.txt")
    assert (answer.status, answer.body) == (410, b"gone\n")
    # A folder is not tried there.
    assert ask(server, "/files/").status == 410
    # After a rewrite, the rule of the new path.
    assert ask(server, "/old/a.txt").body == b"a\n"
    assert ask(server, "/old/b.txt").status == 410
    # The end of the list.
    assert ask(server, "/only/a.txt").body == b"only\n"
    assert ask(server, "/only/b.txt").status == 404
    assert ask(server, "/off/a.txt").body == b"off\n"
    assert ask(server, "/off/b.txt").status == 404


def test_rules_of_the_other_path(server):
    assert ask(server, "/page/x").status == 403
    assert ask(server, "/private/page.html").status == 403


def test_once(server):
    """The other path must exist: it is not tried again."""
    assert ask(server, "/lost/x").status == 404
    assert ask(server, "/round/x").status == 404


def test_alias(server):
    assert ask(server, "/here/file").body == b"other\n"
    assert ask(server, "/here/none").body == PAGE


def test_pool(server):
    assert ask(server, "/echo/file").body == b"a file\n"
    assert ask(server, "/echo/name/x").body == b"/echo/name /x\n"


def test_pool_does_not_inherit(server):
    assert ask(server, "/below/name/x").body == b"/below/name /x"
    assert ask(server, "/below/deep/file").status == 404
    assert ask(server, "/below/file").body == b"a file\n"


@pytest.mark.parametrize(("value", "message"), [
    ("file;folder;index.html", 'try-files "index.html": must be file, folder, /PATH, pool:NAME, or'
                               " =STATUS from 400 to 599"),
    ("=200", 'try-files "=200": must be file'),
    ("/a;file", 'try-files "/a": must be the last one: it always answers'),
    ("/a/../b", 'try-files "/a/../b": must be a path like'),
    ("file;pool:none", 'try-files "pool:none": there is no [pool none]'),
    ("pool:", 'try-files "pool:": must be file'),
    ("off;file", 'try-files "off": must be file'),
])
def test_bad_values(tmp_path, value, message):
    rules = write(tmp_path / "sweet.conf", f"[sweet]\ntry-files={value}\n".encode())
    status, errors = servers.check_config(rules)
    assert status == 1 and f"sweet.conf:2: {message}" in errors, errors
