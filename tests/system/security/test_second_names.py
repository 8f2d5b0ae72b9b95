# SPDX-License-Identifier: MIT
"""Names that the server appends to a request's path, or puts in its place: whose rules hold."""

import base64
import gzip

import pytest

import server as servers
from client import Client
from files import write
from responder import Application

SOURCE = b"<?php secret();\n"
# Both have the password "geheim".
USERS = b"anna:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\n"
RULES = """[sweet]
index=index.html
error-page=404=/missing.php;410=/closed/gone.html
[path =/sub/index.html]
deny=all
[path =/second/two.html]
deny=all
[path /second]
index=one.html;two.html
[path /gone]
index=none.html;index.html
try-files=file;folder;=410
[path =/gone/index.html]
header=X-Index: yes
[path =/locked/index.html]
auth-realm=Index
auth-file={top}/users
[path =/inner/index.html]
internal=on
[path =/moved/index.html]
redirect=301 /moved/
[path =/limited/index.html]
request-rate=1
request-burst=1
[path /closed]
deny=all
[path /listed]
listing=on
[path =/listed/denied.txt]
deny=all
[path /listed/deep]
index=denied.txt
[path =/listed/deep/denied.txt]
deny=all
[path /precompressed]
precompressed=on
[pattern gz]
match=[.]gz$
deny=all
[path /app]
pool=own
index=index.php
[path =/app/closed/index.php]
deny=all
[path =/app/files/index.php]
pool=off
header=X-Served: as a file
[path /tried]
index=index.php
try-files=file;pool:own
[path =/tried/closed/index.php]
deny=all
[path /folders]
index=index.html;index.php
try-files=file;folder;pool:own
[path /both]
index=index.html;index.php
pool=own
try-files=folder;=410
[path /front]
index=index.html;index.php
try-files=file;folder;=410
[path =/front/index.php]
pool=own
[path /files]
pool=own
try-files=folder;=410
[path =/files/index.html]
header=X-Index: yes
[host round]
names=round
root={top}/root/round
try-files=/
[path round=/index.html]
try-files=/
[path /dot]
index=.index.html;index.html
[path =/dot/index.html]
header=X-Index: yes
[path /dotted]
index=.index.html;index.html
[host php]
names=php
root={top}/php
index=index.php
error-page=404=/missing.php
[pattern php/php]
match=[.]php(/|$)
pool=own
[path php/admin]
deny=all
[host suffix]
names=suffix
root={top}/php
index=index.php
[path suffix=/sub/index.php]
deny=all
[path suffix/run]
header=X-Folder: yes
[path suffix=/run/index.php]
header=X-Index: yes
[host led]
names=led
root={top}/led
[path led/app]
pool=leads
[path led/inside]
internal=on
[path led/inside/closed]
deny=all
[path led=/inside/folder/index.html]
deny=all
[pool own]
protocol=fastcgi
upstream={address}
[pool php]
protocol=fastcgi
upstream={address}
suffix=.php
[pool leads]
protocol=fastcgi
upstream={leads}
accel=internal;{top}/files
"""


def say(request):
    request.body()
    text = request.variables["SCRIPT_NAME"].encode()
    request.answer(text, b"Content-Type: text/plain\r\nContent-Length: %d\r\n" % len(text))


def lead(request):
    request.body()
    fields = request.variables["HTTP_LEAD"].encode()
    request.answer(b"", fields + b"\r\nContent-Type: text/plain\r\n")


def rules(suffix):
    """With the pool of a suffix or without it, since files with the suffix are never sent then."""
    if suffix:
        return RULES
    head, _, rest = RULES.partition("[pool php]\n")
    return head + rest[rest.index("[pool leads]"):]


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    top = tmp_path_factory.mktemp("second")
    for name in ["sub/index.html", "second/two.html", "gone/index.html", "locked/index.html",
                 "inner/index.html", "moved/index.html", "limited/index.html", "closed/gone.html",
                 "listed/a.txt", "listed/denied.txt", "listed/deep/denied.txt", "files/index.html",
                 "round/index.html", "dot/.index.html", "dot/index.html", "dotted/.index.html",
                 "dotted/index.html", "folders/html/index.html", "precompressed/a.txt"]:
        write(top / "root" / name, name.encode())
    write(top / "root/precompressed/a.txt.gz", gzip.compress(b"packed"))
    for name in ["root/missing.php", "root/app/index.php", "root/app/closed/index.php",
                 "root/app/files/index.php", "root/tried/index.php", "root/tried/closed/index.php",
                 "root/front/index.php", "root/folders/index.php", "root/folders/sub/index.php",
                 "root/folders/html/index.php", "root/both/index.php", "php/index.php", "php/missing.php", "php/sub/index.php",
                 "php/admin/index.php", "php/run/index.php"]:
        write(top / name, SOURCE)
    for name in ["inside/a.txt", "inside/closed/a.txt", "inside/folder/index.html"]:
        write(top / "led" / name, name.encode())
    write(top / "files/folder/index.html", b"of a folder")
    write(top / "users", USERS)
    return top


@pytest.fixture(scope="module", params=[False, True], ids=["paths", "suffix"])
def server(request, top):
    apps = [Application(say, top / f"say-{request.param}.sock"),
            Application(lead, top / f"lead-{request.param}.sock")]
    text = rules(request.param).format(top=top, address=apps[0].address, leads=apps[1].address)
    config = write(top / f"{request.param}.conf", text.encode())
    with servers.running("epoll", top / "root", "--config", config) as server:
        server.has_suffix = request.param
        yield server
    for app in apps:
        app.close()
        assert not app.faults


def ask(server, target, host="a", fields="", method="GET"):
    with Client(server.port) as client:
        client.send(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode())
        return client.response(method)


def test_index_is_a_path(server):
    """Its rules hold, beside those of the folder."""
    for target in ["/sub/index.html", "/sub/", "/second/"]:
        assert ask(server, target).status == 403
    answer = ask(server, "/gone/")
    assert (answer.body, answer["X-Index"]) == (b"gone/index.html", "yes")
    assert ask(server, "/gone/", method="HEAD")["X-Index"] == "yes"
    assert ask(server, "/gone/", method="POST").status == 405


def test_password_of_the_index(server):
    answer = ask(server, "/locked/")
    assert (answer.status, answer["WWW-Authenticate"][:18]) == (401, 'Basic realm="Index')
    word = base64.b64encode(b"anna:geheim").decode()
    answer = ask(server, "/locked/", fields=f"Authorization: Basic {word}\r\n")
    assert (answer.status, answer.body) == (200, b"locked/index.html")


def test_where_an_index_leads(server):
    """To internal paths, as a rewrite; and it is not redirected."""
    assert ask(server, "/inner/index.html").status == 404
    assert ask(server, "/inner/").body == b"inner/index.html"
    assert ask(server, "/moved/index.html").status == 301
    assert ask(server, "/moved/").body == b"moved/index.html"


def test_rate_of_the_index(server):
    statuses = [ask(server, "/limited/").status for _ in range(5)]
    assert statuses[0] == 200 and 429 in statuses


def test_index_runs(server):
    """Of a pool that its path has by a pattern, and its source is not sent."""
    for target, name in [("/", b"/index.php"), ("/sub/", b"/sub/index.php"),
                         ("/index.php/a/b", b"/index.php")]:
        for method in ["GET", "POST"]:
            answer = ask(server, target, "php", method=method)
            assert (answer.status, answer.body) == (200, name)
    assert ask(server, "/admin/", "php").status == 403
    assert ask(server, "/front/").body == b"/front/index.php"


def test_index_of_a_pool(server):
    """The pool of the folder runs it only as its own rules permit."""
    for prefix in ["/app", "/tried"]:
        assert ask(server, f"{prefix}/").body == f"{prefix}/index.php".encode()
        assert ask(server, f"{prefix}/closed/index.php").status == 403
        assert ask(server, f"{prefix}/closed/").status == 403
    answer = ask(server, "/app/files/")
    if not server.has_suffix:
        assert (answer.body, answer["X-Served"]) == (SOURCE, "as a file")


def test_index_of_a_suffix(server):
    if not server.has_suffix:
        assert ask(server, "/", "suffix").body == SOURCE
        return
    assert ask(server, "/", "suffix").body == b"/index.php"
    assert ask(server, "/sub/", "suffix").status == 403
    answer = ask(server, "/run/", "suffix")
    assert (answer.body, answer["X-Index"]) == (b"/run/index.php", "yes")
    assert "X-Folder" not in answer


def test_tried_index(server):
    """The folder that try-files finds is answered by its index, even if that has other rules."""
    answer = ask(server, "/files/")
    assert (answer.body, answer["X-Index"]) == (b"files/index.html", "yes")
    assert ask(server, "/files/none/").status == 410
    # The index leads back to its folder.
    assert ask(server, "/round/", "round").body == b"round/index.html"


def test_hidden_index(server):
    for target in ["/dot/", "/dotted/"]:
        assert ask(server, target).body == target[1:].encode() + b"index.html"


def test_source_by_try_files(server):
    """A file that the path's pool would run is not sent instead."""
    assert ask(server, "/tried/index.php").body == b"/tried/index.php"


def test_folder_whose_index_runs(server):
    """By the pool that the path has, or tries at the end."""
    for name in ["/folders/", "/folders/sub/", "/both/"]:
        assert ask(server, name).body == name.encode() + b"index.php"
    assert ask(server, "/folders/sub")["Location"] == "/folders/sub/"
    assert ask(server, "/folders/html/").body == b"folders/html/index.html"
    assert ask(server, "/both/none/").status == 410


def test_listing(server):
    """A list names what its reader may not get."""
    assert ask(server, "/listed/denied.txt").status == 403
    assert b"denied.txt" in ask(server, "/listed/").body
    assert ask(server, "/listed/deep/").status == 403


def test_precompressed(server):
    """The rules of the file hold, not those of its compressed form."""
    assert ask(server, "/precompressed/a.txt.gz").status == 403
    answer = ask(server, "/precompressed/a.txt", fields="Accept-Encoding: gzip\r\n")
    assert answer["Content-Encoding"] == "gzip" and gzip.decompress(answer.body) == b"packed"


def test_error_pages(server):
    """They are sent whatever the rules of their paths; a script is not sent, nor run."""
    assert ask(server, "/closed/gone.html").status == 403
    answer = ask(server, "/gone/none")
    assert (answer.status, answer.body) == (410, b"closed/gone.html")
    answer = ask(server, "/none", "php")
    assert answer.status == 404 and b"404 Not Found" in answer.body


def led(server, field):
    return ask(server, "/app/x", "led", f"Lead: {field}\r\n")


def test_accel(server, top):
    """X-Accel-Redirect is a request: the rules of its path hold, and those of an index there."""
    assert led(server, "X-Accel-Redirect: /inside/a.txt").body == b"inside/a.txt"
    assert led(server, "X-Accel-Redirect: /inside/closed/a.txt").status == 403
    assert led(server, "X-Accel-Redirect: /inside/folder/").status == 403
    # X-Sendfile names a file, which has no path.
    assert led(server, f"X-Sendfile: {top}/files/folder/index.html").body == b"of a folder"
    assert led(server, f"X-Sendfile: {top}/files/folder/").status == 404
