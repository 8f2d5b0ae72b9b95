# SPDX-License-Identifier: MIT
"""Virtual hosts by name and address, and rules for their paths: aliases, redirects,
rewrites.  The content of each file names its host."""

import re
import subprocess

import pytest

import server as servers
import tls
from client import Client, has_ipv6
from files import write

HOSTS = ["default", "one", "wild", "below"]
PATHS = ["index.html", "images/a.txt", "imagesx/a.txt", "deep/er/a.txt"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    top = tmp_path_factory.mktemp("hosts")
    for host in HOSTS:
        for path in PATHS:
            write(top / host / path, f"{host} {path}\n".encode())
    write(top / "pictures/a.txt", b"aliased a.txt\n")
    write(top / "pictures/sub/b c.txt", b"aliased b c.txt\n")
    write(top / "pictures/sub/index.html", b"aliased sub\n")
    write(top / "secret.txt", b"secret\n")
    return top


def serve(tree, text, *options):
    path = write(tree / "sweet.conf", text.encode())
    return servers.running("epoll", tree / "default", "--config", path, *options)


def ask(port, target, host="nobody.example", version="1.1", fields="", address="127.0.0.1"):
    line = f"Host: {host}\r\n" if host is not None else ""
    with Client(port, address=address) as client:
        client.send(f"GET {target} HTTP/{version}\r\n{line}{fields}\r\n".encode("latin-1"))
        return client.response()



NAMES = """[sweet]
[host one.example]
root={top}/one
[host wild]
names=*.one.example;wild.example
root={top}/wild
[host below]
names=*.below.one.example
root={top}/below
"""


@pytest.fixture(scope="module")
def named(tree):
    with serve(tree, NAMES.format(top=tree)) as server:
        yield server


@pytest.mark.parametrize(("host", "whose"), [
    ("one.example", "one"),
    ("ONE.Example", "one"),
    ("one.example.", "one"),
    ("one.example:80", "one"),
    ("one.example.:8080", "one"),
    ("a.one.example", "wild"),
    ("a.b.one.example", "wild"),
    ("A.One.Example.:1", "wild"),
    ("wild.example", "wild"),
    ("x.below.one.example", "below"),
    ("below.one.example", "wild"),
    ("xone.example", "default"),
    ("one.example.org", "default"),
    ("nobody.example", "default"),
    ("127.0.0.1", "default"),
    ("", "default"),
])
def test_names(named, host, whose):
    for path in PATHS:
        answer = ask(named.port, f"/{path}", host)
        assert (answer.status, answer.body) == (200, f"{whose} {path}\n".encode())


def test_same_paths_on_one_connection(named):
    """Files of different hosts are kept apart although their paths are equal."""
    with Client(named.port) as client:
        for _ in range(3):
            for host, whose in [("one.example", "one"), ("wild.example", "wild"), ("x", "default")]:
                client.send(f"GET /images/a.txt HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                assert client.response().body == f"{whose} images/a.txt\n".encode()


def test_without_host(named):
    assert ask(named.port, "/", None, "1.0").body == b"default index.html\n"
    assert ask(named.port, "/", "one.example", "1.0").body == b"one index.html\n"
    # A client of HTTP/2 takes it from the URL.
    assert tls.HTTP2 or ask(named.port, "/", None).status == 400


def test_absolute_form(named):
    """The host in the target counts, whatever the field says (RFC 9112, section 3.2.2)."""
    for target in ["http://one.example/", "http://one.example:99/", "http://ONE.example./",
                   "http://one.example"]:
        assert ask(named.port, target, "wild.example").body == b"one index.html\n"
    assert ask(named.port, "http://one.example/", "one.example").body == b"one index.html\n"


@pytest.mark.skipif(not has_ipv6(), reason="no ::1 here")
def test_by_address(tree):
    text = f"""[sweet]
[host plain]
names=one.example
listen=127.0.0.1:0
redirect=308 https://one.example/
[host secure]
names=one.example
listen=127.0.0.2:0
root={tree}/one
[host six]
names=six.example
listen=[::1]:0
root={tree}/wild
[host everywhere]
names=below.example
root={tree}/below
"""
    with serve(tree, text, "--listen", "127.0.0.2:0", "--listen", "[::1]:0") as server:
        assert server.errors.wait("listening on ", 3)
        ports = dict(re.findall(r"http://(\S+):(\d+)/", server.errors.text()))
        second, third = int(ports["127.0.0.2"]), int(ports["[::1]"])
        answer = ask(server.port, "/images/a.txt", "one.example")
        assert answer.status == 308
        assert answer["Location"] == "https://one.example/images/a.txt"
        assert ask(second, "/", "one.example", address="127.0.0.2").body == b"one index.html\n"
        # An unknown name, or one of another address: the first host of the address.
        for host in ["nobody.example", "six.example", ""]:
            assert ask(second, "/", host, address="127.0.0.2").body == b"one index.html\n"
            assert ask(third, "/", host, address="::1").body == b"wild index.html\n"
        for port, address in [(server.port, "127.0.0.1"), (second, "127.0.0.2"), (third, "::1")]:
            assert ask(port, "/", "below.example", address=address).body == b"below index.html\n"


RULES = """[sweet]
[path /images]
alias={top}/pictures
[path /images/sub]
listing=on
[path /images/own]
alias={top}/one/images
[path /here/and/there]
alias={top}/one
[path /old]
redirect=301 /new/
[path /older]
redirect=https://other.example/x/
[path /fixed]
redirect=307 /images/a.txt
[path /with]
redirect=303 /found?by=us
[path /moved]
rewrite=/images
[path /loop]
rewrite=/loop
[path /ping]
rewrite=/pong
[path /pong]
rewrite=/ping
[path /root]
rewrite=/
[path /onward]
rewrite=/old
[path /longer]
rewrite=/deep/er
[host moved.example]
redirect=https://one.example/
[path moved.example/.well-known]
redirect=off
root={top}/default
[path moved.example/special]
index=x.html
"""


@pytest.fixture(scope="module")
def ruled(tree):
    write(tree / "default/.well-known/token", b"token\n")
    with serve(tree, RULES.format(top=tree)) as server:
        yield server


def test_alias(ruled):
    get = lambda target: ask(ruled.port, target)
    assert get("/images/a.txt").body == b"aliased a.txt\n"
    assert get("/images/sub/").body == b"aliased sub\n"
    assert get("/images/sub/b%20c.txt").body == b"aliased b c.txt\n"
    assert get("/images/none").status == 404
    # A prefix must consist of whole segments.
    assert get("/imagesx/a.txt").body == b"default imagesx/a.txt\n"
    assert get("/images.txt").status == 404
    # The longest prefix.
    assert get("/images/own/a.txt").body == b"one images/a.txt\n"
    assert get("/images/ownx").status == 404
    assert get("/here/and/there/deep/er/a.txt").body == b"one deep/er/a.txt\n"
    assert get("/here/and").status == 404


def test_alias_folder(ruled):
    for target, location in [("/images", "/images/"), ("/images?a=b", "/images/?a=b"),
                             ("/images/sub", "/images/sub/"),
                             ("/here/and/there", "/here/and/there/")]:
        answer = ask(ruled.port, target)
        assert (answer.status, answer["Location"]) == (301, location)
    assert ask(ruled.port, "/images/").status in (403, 404)  # it has no index
    assert ask(ruled.port, "/here/and/there/").body == b"one index.html\n"


@pytest.mark.parametrize("target", [
    "/images/../secret.txt",
    "/images/..%2fsecret.txt",
    "/images/%2e%2e/secret.txt",
    "/images/sub/../../secret.txt",
    "/images/%2e%2e%2fsecret.txt",
    "/images/./../secret.txt",
    "/images//../secret.txt",
    "/images../secret.txt",
    "/images%2f..%2f..%2fsecret.txt",
    "/images/..\\secret.txt",
    "/moved/../../secret.txt",
    "/moved/%2e%2e/secret.txt",
    "/root/../secret.txt",
])
def test_no_way_out(ruled, target):
    answer = ask(ruled.port, target)
    assert answer.status in (400, 404) and b"secret\n" not in answer.body


def test_dots_lead_to_other_rules(ruled):
    """Prefixes are matched with the normalised path."""
    assert ask(ruled.port, "/old/../images/a.txt").body == b"aliased a.txt\n"
    assert ask(ruled.port, "//images///a.txt").body == b"aliased a.txt\n"
    assert ask(ruled.port, "/%69mages/a.txt").body == b"aliased a.txt\n"
    assert ask(ruled.port, "/images/../old/x")["Location"] == "/new/x"


@pytest.mark.parametrize(("target", "status", "location"), [
    ("/old", 301, "/new/"),
    ("/old/", 301, "/new/"),
    ("/old/a/b", 301, "/new/a/b"),
    ("/old/a/?x=1&y=%20", 301, "/new/a/?x=1&y=%20"),
    ("/old//a", 301, "/new/a"),
    ("/old//evil.example/", 301, "/new/evil.example/"),
    ("/old/%5cevil.example", 301, "/new/%5Cevil.example"),
    ("/old/a%20b%3f%23%25", 301, "/new/a%20b%3F%23%25"),
    ("/old/gr%c3%bcn", 301, "/new/gr%C3%BCn"),
    ("/older/a", 302, "https://other.example/x/a"),
    ("/fixed", 307, "/images/a.txt"),
    ("/fixed/more?q", 307, "/images/a.txt?q"),
    ("/with/a?b", 303, "/found?by=us&b"),
])
def test_redirects(ruled, target, status, location):
    answer = ask(ruled.port, target)
    assert (answer.status, answer["Location"]) == (status, location)


def test_redirects_every_method(ruled):
    with Client(ruled.port) as client:
        client.send(b"POST /old/form HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
                    b"HEAD /old/form HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.response()["Location"] == "/new/form"
        assert client.response("HEAD")["Location"] == "/new/form"


def test_redirect_no_room(ruled):
    """A redirect that does not fit into the response is refused, not cut off."""
    assert ask(ruled.port, "/old/" + "a" * 8000)["Location"] == "/new/" + "a" * 8000
    assert ask(ruled.port, "/old/" + "{" * 3000).status in (400, 414)
    assert ask(ruled.port, "/old/" + "a" * 8187).status == 414


def test_redirect_of_host(ruled):
    get = lambda target: ask(ruled.port, target, "moved.example")
    assert get("/")["Location"] == "https://one.example/"
    assert get("/a/b?c")["Location"] == "https://one.example/a/b?c"
    assert get("/special/x")["Location"] == "https://one.example/special/x"
    assert get("/.well-known/token").body == b"token\n"


def test_rewrites(ruled):
    get = lambda target: ask(ruled.port, target)
    assert get("/moved/a.txt").body == b"aliased a.txt\n"
    assert get("/moved/sub/b%20c.txt").body == b"aliased b c.txt\n"
    assert get("/movedx/a.txt").status == 404
    assert get("/longer/a.txt").body == b"default deep/er/a.txt\n"
    assert get("/root/images/").status in (403, 404)
    assert get("/root").body == b"default index.html\n"
    assert get("/root/").body == b"default index.html\n"
    assert get("/root/deep/er/a.txt").body == b"default deep/er/a.txt\n"
    # Rewritten once; then it is an ordinary path, and its file does not exist.
    for path in ["/loop/a", "/ping/a", "/pong/a", "/onward/a"]:
        assert get(path).status == 404
    # The longer prefix does not fit.
    assert get("/longer/" + "a" * 8183).status == 404
    assert get("/longer/" + "a" * 8184).status == 414


def test_curl_follows(ruled):
    run = subprocess.run(
        ["curl", "-sSL", "--max-time", "20", "--noproxy", "*", f"{ruled.url}/fixed?x"],
        capture_output=True, check=True)
    assert run.stdout == b"aliased a.txt\n"
