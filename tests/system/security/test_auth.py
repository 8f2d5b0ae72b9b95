# SPDX-License-Identifier: MIT
"""Basic authentication: every form of password, files that change, clients that guess,
and requests that a password does not cover."""

import base64
import contextlib
import re
import subprocess
import time

import pytest

import server as servers
from client import Client, request
from files import write
from priorities import await_work, low_threads, nice_of_threads, wakes
from server import OBEY

# The password of all is "geheim".
USERS = """# users
anna:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=
bert:$apr1$iHINf4B6$eb9IWmliR8ThvscuHGukk/
carl:$2y$04$abcdefghijklmnopqrstuuPWRtT5yx7FBi4dcf6ROhboeNunUrLQ.
dora:$6$rounds=1000$abcdefgh$hNWV3710B01PtGd5gYCv63YkS8oo9IIeqTEUJHviy9fvppwU3reFqFFBfxg/qZSYskUYQ.RC.dFh9YoQLVC2L.
emil:$y$j75$abcdefgh$BNDMLQXNfxYvp1kwneELSFVpSGYRoN6/y0Pa9exxy//
"""
OTHERS = "fred:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\n"

CONFIG = """[sweet]
worker=/obey={obey}
workers=1
[path /closed]
auth-realm=The "inner" circle
auth-file={top}/users
[path /closed/open]
auth-realm=off
[path /closed/other]
auth-realm=Others
auth-file={top}/others
[path /into]
rewrite=/closed
[path /closed/onto]
rewrite=/closed/other
[path /closed/same]
rewrite=/closed
[path /closed/away]
redirect=/elsewhere/
[path /denied]
auth-realm=Nobody
auth-file={top}/users
deny=all
[path /obey]
auth-realm=Workers
auth-file={top}/users
"""


@pytest.fixture
def top(tmp_path):
    for path in ["index.html", "closed/a.txt", "closed/open/a.txt", "closed/other/a.txt"]:
        write(tmp_path / "root" / path, f"{path}\n".encode())
    write(tmp_path / "users", USERS.encode())
    write(tmp_path / "others", OTHERS.encode())
    write(tmp_path / "sweet.conf", CONFIG.format(top=tmp_path, obey=OBEY).encode())
    return tmp_path


def basic(user, password="geheim"):
    plain = f"{user}:{password}".encode()
    return f"Authorization: Basic {base64.b64encode(plain).decode()}\r\n"


def ask(port, target, fields="", source=None, method="GET", body=b""):
    with Client(port, source=source) as client:
        client.send(request(target, method, fields) + body)
        return client.response(method)


def start_it(start, top, *options):
    return start(top / "root", "--config", top / "sweet.conf", *options)


def test_forms(start, top):
    server = start_it(start, top)
    answer = ask(server.port, "/closed/a.txt")
    assert answer.status == 401
    assert answer["WWW-Authenticate"] == 'Basic realm="The \\"inner\\" circle", charset="UTF-8"'
    for user in ["anna", "bert", "carl", "dora", "emil"]:
        for _ in range(3):
            answer = ask(server.port, "/closed/a.txt", basic(user))
            assert (answer.status, answer.body) == (200, b"closed/a.txt\n"), user
        assert ask(server.port, "/closed/a.txt", basic(user, "Geheim")).status == 401
    for fields in [basic("fred"), basic("", ""), basic("anna", ""), "Authorization: Basic\r\n",
                   "Authorization: Bearer YW5uYTpnZWhlaW0=\r\n", "Authorization:\r\n",
                   "Authorization: Basic " + "QUFB" * 2000 + "\r\n"]:
        assert ask(server.port, "/closed/a.txt", fields).status == 401


@pytest.mark.parametrize("password, status", [("geheim", 200), ("guessed", 401)])
def test_event_loops_come_first(start, top, password, status):
    """The threads that compute for passwords leave the processor to all others."""
    server = start_it(start, top)
    low = low_threads(server.pid)
    before = wakes(server.pid, low)
    assert ask(server.port, "/closed/a.txt", basic("emil", password)).status == status
    await_work(server.pid, low, before)
    # The main loop, the event loops.
    values = list(nice_of_threads(server.pid).values())
    assert values.count(nice_of_threads(server.pid)[server.pid]) > server.status()["threads"]


def test_scopes(start, top):
    server = start_it(start, top)
    get = lambda target, fields="": ask(server.port, target, fields).status
    assert get("/") == 200
    assert get("/closed") == get("/closed/") == get("/closed/none") == 401
    assert get("/closed/none", basic("anna")) == 404
    assert get("/%63losed/a.txt") == get("//closed/a.txt") == get("/x/../closed/a.txt") == 401
    assert get("/closed/open/a.txt") == 200
    assert get("/closed/other/a.txt", basic("anna")) == 401
    assert get("/closed/other/a.txt", basic("fred")) == 200
    assert get("/denied/a") == get("/denied/a", basic("anna")) == 403
    assert get("/closed/away/a") == 401
    assert ask(server.port, "/closed/away/a", basic("anna"))["Location"] == "/elsewhere/a"


def test_rewritten_paths_keep_their_rules(start, top):
    server = start_it(start, top)
    get = lambda target, fields="": ask(server.port, target, fields).status
    assert get("/into/a.txt") == get("/into/a.txt", basic("fred")) == 401
    assert get("/into/a.txt", basic("anna")) == 200
    # Both files apply, and no user is in both.
    assert get("/closed/onto/a.txt", basic("anna")) == 401
    assert get("/closed/onto/a.txt", basic("fred")) == 401
    assert get("/closed/same/a.txt", basic("anna")) == 200


def test_in_order_on_one_connection(start, top):
    """A pipelined request waits for the check of an earlier password."""
    server = start_it(start, top)
    lines = [("/closed/a.txt", basic("carl"), 200), ("/", "", 200), ("/closed/a.txt", "", 401),
             ("/closed/a.txt", basic("carl", "x"), 401), ("/closed/a.txt", basic("emil"), 200),
             ("/", "", 200)]
    with Client(server.port) as client:
        client.send(b"".join(request(target, fields=fields) for target, fields, _ in lines))
        assert [client.response().status for _ in lines] == [status for *_, status in lines]


def test_methods(start, top):
    server = start_it(start, top)
    assert ask(server.port, "/closed/a.txt", method="HEAD").status == 401
    answer = ask(server.port, "/closed/a.txt", basic("anna"), method="HEAD")
    assert (answer.status, answer["Content-Length"]) == (200, "13")
    length = "Content-Length: 5\r\n"
    assert ask(server.port, "/closed/a.txt", length, method="POST", body=b"hello").status == 401
    assert ask(server.port, "/closed/a.txt", length + basic("anna"), method="POST",
               body=b"hello").status == 405


def test_workers_are_behind_it(start, top):
    """The request reaches the worker, with its body, as if there were no check."""
    server = start_it(start, top)
    assert ask(server.port, "/obey/pid").status == 401
    answer = ask(server.port, "/obey/pid", basic("carl"))
    assert answer.status == 200 and int(answer.body) in server.workers()
    lines = ask(server.port, "/obey/variable", basic("carl")).body.decode().splitlines()
    assert {"AUTH_TYPE=Basic", "REMOTE_USER=carl", "HTTP_AUTHORIZATION=(none)"} <= set(lines)
    answer = ask(server.port, "/obey/echo", "Content-Length: 5\r\n" + basic("emil"),
                 method="POST", body=b"hello")
    assert (answer.status, answer.body) == (200, b"hello")


@pytest.mark.parametrize("framing, body, whole", [
    ("Content-Length: 500000", b"x" * 20000, False),
    ("Content-Length: 50000", b"x" * 40000, False),
    ("Content-Length: 5", b"hello", True),
    ("Transfer-Encoding: chunked", b"5\r\nhello\r\n", False),
    ("Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n", True)],
    ids=["short", "paused", "whole", "chunk", "chunks"])
def test_half_closed_while_checking(start, top, framing, body, whole):
    """A body that ends too soon ends its request once the password is accepted and the worker
    requests the body. The address sanitizer detects a use after that."""
    server = start_it(start, top)
    # An accepted password is remembered, so that there is no second check.
    for user in ["bert", "carl", "dora", "emil"]:
        with Client(server.port) as client:
            client.send(f"POST /obey/echo HTTP/1.1\r\nHost: x\r\n{basic(user)}{framing}\r\n"
                        "\r\n".encode() + body)
            client.half_close()
            if whole:
                answer = client.response()
                assert (answer.status, answer.body) == (200, b"hello")
            with contextlib.suppress(ConnectionResetError):
                assert client.socket.recv(1) == b""
    assert ask(server.port, "/obey/pid", basic("anna")).status == 200


def add_slow(top, cost=9):
    """A user whose check takes time: twice as much with each step of cost."""
    slow = subprocess.run(["htpasswd", "-nbBC", str(cost), "slow", "geheim"], capture_output=True,
                          text=True, check=True).stdout
    write(top / "users", slow.encode())


@pytest.mark.needs("htpasswd")
@pytest.mark.parametrize("password, status", [("geheim", 200), ("falsch", 401)])
def test_parts_of_a_page(start, top, password, status):
    """More requests than a client may have wrong passwords, before the first answer."""
    add_slow(top)
    server = start_it(start, top)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server.port)) for _ in range(40)]
        for client in clients:
            client.send(request("/closed/a.txt", fields=basic("slow", password)))
        assert [client.response().status for client in clients] == [status] * len(clients)


@pytest.mark.needs("htpasswd")
def test_gone_client(start, top):
    """A client that disconnects during the check of a password affects nothing else."""
    server = start_it(start, top)
    server.stop()
    add_slow(top)
    server = start_it(start, top)
    before = server.status()["requests"]
    for _ in range(8):
        client = Client(server.port)
        client.send(request("/closed/a.txt", fields=basic("slow")))
        client.close()
    # The last response is sent after those of the others.
    assert ask(server.port, "/closed/a.txt", basic("slow")).status == 200
    assert server.status()["requests"] >= before + 9


@pytest.mark.needs("htpasswd")
def test_stop_while_checking(start, top):
    add_slow(top)
    server = start_it(start, top)
    clients = [Client(server.port) for _ in range(12)]
    for client in clients:
        client.send(request("/closed/a.txt", fields=basic("slow")))
    server.wait_status(lambda status: status["requests"] >= 12)
    server.stop()
    for client in clients:
        client.close()


def wait_until(good):
    deadline = time.monotonic() + servers.TIMEOUT
    while not good():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_changed_file(top):
    with servers.running("epoll", top / "root", "--config", top / "sweet.conf") as server:
        number = iter(range(2, 250))

        def get(user, password="geheim"):
            # From many addresses: a client that fails too often would have to wait.
            return ask(server.port, "/closed/a.txt", basic(user, password),
                       source=f"127.0.0.{next(number)}").status

        assert (get("anna"), get("gina")) == (200, 401)
        write(top / "users.new", b"gina:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\n")
        (top / "users.new").rename(top / "users")
        wait_until(lambda: get("gina") == 200)
        assert get("anna") == 401
        # An invalid line is reported with its place, once, and the users stay.
        write(top / "users", b"gina:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\nhans:plain\n")
        wait_until(lambda: get("gina") == 200 and server.errors.count(f"{top}/users:2: "))
        assert get("gina") == 200
        (top / "users").unlink()
        wait_until(lambda: get("gina") == 200 and server.errors.count("cannot read the users"))
        assert server.errors.count(f"{top}/users:2: ", 1) == 1


def test_bad_file_at_start(top):
    for text, says in [("anna\n", "users:1: there must be USER:HASH"),
                       ("# x\nanna:geheim\n", "users:2: the format of the password is unknown"),
                       (None, "cannot read the users and passwords")]:
        if text is None:
            (top / "users").unlink()
        else:
            write(top / "users", text.encode())
        for options in [["--check-config"], []]:
            run = servers.once("--listen", "127.0.0.1:0", "--root", top / "root", "--config",
                               top / "sweet.conf", *options)
            assert run.returncode == 1
            # In the line of the section that names it; other sections do not repeat it.
            assert run.stderr.count(says) == 1
            assert re.search(r"sweet\.conf:\d+: auth-file: ", run.stderr)


def test_guessing(top):
    with servers.running("epoll", top / "root", "--config", top / "sweet.conf") as server:
        def get(user, password, source):
            return ask(server.port, "/closed/a.txt", basic(user, password), source=source)

        assert get("anna", "geheim", "127.0.0.9").status == 200
        statuses = [get("anna", f"guess{i}", "127.0.0.9").status for i in range(40)]
        assert statuses[:20] == [401] * 20 and 429 in statuses
        # One of them may be sent just when two seconds are over.
        answers = [get(user, "geheim", "127.0.0.9") for user in ["carl", "dora", "emil"]]
        refused = [answer for answer in answers if answer.status == 429]
        assert refused and all(1 <= int(answer["Retry-After"]) <= 2 for answer in refused)
        # Remembered users, clients at other addresses, and requests without credentials are not
        # affected.
        assert get("anna", "geheim", "127.0.0.9").status == 200
        assert get("bert", "geheim", "127.0.0.8").status == 200
        assert ask(server.port, "/closed/a.txt", source="127.0.0.9").status == 401


def test_guessing_from_many_addresses(start, top):
    """Remembered users are not delayed; a check that is not made is answered as such, not as a
    wrong password."""
    add_slow(top, cost=7)  # 300 checks, one after another, which a client waits for
    with open(top / "users", "a") as users:
        users.write("\nanna:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\n")
    server = start(top / "root", "--config", top / "sweet.conf")
    assert ask(server.port, "/closed/a.txt", basic("anna")).status == 200
    with contextlib.ExitStack() as stack:
        sources = [f"127.0.{i // 200 + 1}.{i % 200 + 1}" for i in range(300)]
        clients = [stack.enter_context(Client(server.port, source=source)) for source in sources]
        for i, client in enumerate(clients):
            client.send(request("/closed/a.txt", fields=basic("slow", f"guess{i}")))
        assert ask(server.port, "/closed/a.txt", basic("anna")).status == 200
        # The first answer of a queue, not its last one.
        assert server.status()["responses"]["4xx"] < len(clients)
        answer = ask(server.port, "/closed/a.txt", basic("slow"), source="127.0.9.1")
        # As many clients as checks may wait: then none of them is dropped for this one.
        assert answer.status == 200 or (answer.status, answer["Retry-After"]) == (503, "1")
        for client in clients:
            answer = client.response()
            assert answer.status == 401 or (answer.status, answer["Retry-After"]) == (503, "1")


def test_curl(top):
    with servers.running("epoll", top / "root", "--config", top / "sweet.conf") as server:
        def curl(*options):
            return subprocess.run(
                ["curl", "-sS", "--max-time", "20", "--noproxy", "*", *options,
                 f"{server.url}/closed/a.txt"], capture_output=True, check=True).stdout

        assert curl("-u", "anna:geheim") == b"closed/a.txt\n"
        assert curl("--anyauth", "-u", "carl:geheim") == b"closed/a.txt\n"
        assert b"401" in curl("-u", "anna:falsch")


def test_access_log_and_cache(start, top):
    """A protected file is not served to the next client because it is cached."""
    server = start_it(start, top, "--access-log", top / "log", "--log-format", "common")
    assert ask(server.port, "/closed/a.txt", basic("anna")).status == 200
    assert ask(server.port, "/closed/a.txt").status == 401
    assert ask(server.port, "/closed/a.txt", basic("anna")).status == 200
