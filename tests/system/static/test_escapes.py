# SPDX-License-Identifier: MIT
"""escaped-slash and raw-utf8: paths that most clients do not send, and that rules, files and
programs see in one form."""

import pytest

import server as servers
from client import Client
from files import write
from test_upstream_http import Recorder

RULES = r"""[sweet]
raw-utf8=on
escaped-slash=decode
max-body=0
[path /closed]
deny=all
[path /open/closed]
deny=all
[path /secret]
auth-realm=x
auth-file={top}/users
[path /cgi]
pool=programs
[path /old]
redirect=/new/
[host keep]
names=keep
escaped-slash=keep
[path keep/closed]
deny=all
[path keep/cgi]
pool=programs
[host strict]
names=strict
escaped-slash=refuse
[pool programs]
protocol=cgi
folder={top}/programs
"""
PROGRAM = b"""#!/bin/sh
text="$PATH_INFO $QUERY_STRING $REQUEST_URI"
echo Content-Type: text/plain
echo Content-Length: ${#text}
echo
echo -n "$text"
"""


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    top = tmp_path_factory.mktemp("escapes")
    for name in ["open/a", "open/closed/a", "closed/a", "\u00e4/\u20ac.txt", "open/b%2Fc", "secret/a"]:
        write(top / "root" / name, name.encode())
    write(top / "programs/p", PROGRAM).chmod(0o755)
    write(top / "users", b"a:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n")
    return top


@pytest.fixture(scope="module")
def server(top):
    rules = write(top / "sweet.conf", RULES.replace("{top}", str(top)).encode())
    with servers.running("epoll", top / "root", "--config", rules) as server:
        yield server


def ask(server, target, host="test", pieces=False):
    head = b"GET " + target + f" HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    with Client(server.port) as client:
        for part in ([head[i:i + 1] for i in range(len(head))] if pieces else [head]):
            client.send(part)
        return client.response()


@pytest.mark.parametrize(("host", "target", "status", "body"), [
    ("strict", b"/open%2Fa", 400, None),
    ("test", b"/open%2Fa", 200, b"open/a"),
    ("test", b"/open%2f%2Fa", 200, b"open/a"),
    ("test", b"/closed%2Fa", 403, None),
    ("test", b"/open%2Fclosed%2fa", 403, None),
    ("test", b"/open/%2e%2e%2Fclosed/a", 403, None),
    ("test", b"/secret%2Fa", 401, None),
    ("test", b"/open/..%2Fsecret/a", 401, None),
    ("test", b"/%2fsecret/a", 401, None),
    ("test", b"/open%2F..%2F..%2Fa", 400, None),
    ("test", b"/open/b%252Fc", 200, b"open/b%2Fc"),
    ("test", b"/cgi%2Fp%2Fx?%2F", 200, b"/x %2F /cgi%2Fp%2Fx?%2F"),
    ("keep", b"/open%2Fa", 404, None),
    ("keep", b"/open/b%2fc", 200, b"open/b%2Fc"),
    ("keep", b"/closed%2Fa", 404, None),
    ("keep", b"/open/..%2F..%2Fclosed/a", 404, None),
    ("keep", b"/cgi/p/x%2fy", 200, b"/x%2Fy  /cgi/p/x%2fy"),
    # Escaped twice, it is never a slash.
    ("test", b"/closed%252Fa", 404, None),
])
def test_escaped_slashes(server, host, target, status, body):
    got = ask(server, target, host)
    assert got.status == status and (body is None or got.body == body), got.body


@pytest.mark.parametrize("pieces", [False, True])
def test_raw_utf8(server, pieces):
    target = "/\u00e4/\u20ac.txt".encode()
    assert ask(server, target, pieces=pieces).body == target[1:]
    assert ask(server, b"/%c3%a4/%e2%82%ac.txt").body == target[1:]
    # Programs get what a client would have had to send.
    assert ask(server, "/cgi/p/\u00e4?\u20ac".encode()).body == (
        "/\u00e4 %E2%82%AC /cgi/p/%C3%A4?%E2%82%AC".encode())
    assert ask(server, "/old/\u00e4?\u00e4".encode())["Location"] == "/new/%C3%A4?%C3%A4"


@pytest.mark.parametrize("bad", [b"\xe4", b"\xc0\xaf", b"\xed\xa0\x80", b"\xc3"])
def test_other_bytes(server, bad):
    assert ask(server, b"/" + bad).status == 400


def test_off_by_default(tmp_path):
    with servers.running("epoll", tmp_path) as server:
        for target in [b"/%2F", "/\u00e4".encode()]:
            assert ask(server, target).status == 400


@pytest.mark.parametrize(("how", "target", "seen"), [
    ("decode", b"/app/a%2Fb%20c", "/app/a/b%20c"),
    ("decode", b"/other%2F..%2Fapp", "/app"),
    ("keep", b"/app/a%2Fb%20c", "/app/a%2Fb%20c"),
    ("keep", "/app/\u00e4%2f?\u00e4".encode(), "/app/%C3%A4%2f?%C3%A4"),
])
def test_http_server(behind, how, target, seen):
    """It gets the path that the rules have seen."""
    recorder = Recorder()
    app = behind(recorder, more=f"escaped-slash={how}\nraw-utf8=on\n")
    assert ask(app.server, target).body == b"seen"
    assert recorder.asked.target == seen


@pytest.mark.parametrize(("text", "message"), [
    ("escaped-slash=on", 'escaped-slash "on": must be one of refuse, decode, keep'),
    ("raw-utf8=yes", 'raw-utf8 "yes": must be on or off'),
])
def test_bad_values(tmp_path, text, message):
    servers.refuses(tmp_path, f"[sweet]\n{text}\n", message)
