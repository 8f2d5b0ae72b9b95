# SPDX-License-Identifier: MIT
"""CGI programs: limits of time and number, users, reloads, and that none of them
blocks the server."""

import contextlib
import functools
import http.client
import os
import signal
import socket
import struct
import threading
import time

import pytest

from client import Client, connect, http_connection, request
from files import write
from server import SOON, TIMEOUT, VALGRIND, Server, children_of, descriptors
from test_cgi import TEXT, Answer, ask, folder, gone, until


# --- limits ----------------------------------------------------------------------------------


def test_too_late(folder, clock):
    os.mkfifo(folder.path / "begun")
    folder.script("hang.sh", f"trap '' TERM; echo $$ > {folder.path}/begun\n"
                             "while :; do sleep 1000 & wait; done\n")
    # Not moved until then: the spawner must have reported the pid of the program.
    server = folder.configured(f"timeout={SOON}s", "threads=1", clock=clock)
    with Client(server.port) as client:
        client.send(request("/cgi/hang.sh"))
        pid = int((folder.path / "begun").read_text())
        assert client.response().status == 504
    assert server.errors.wait(r"hang\.sh \(pid \d+\): took too long to answer: ending it")
    # It has 2 s to exit by itself.
    server.forward(2.1)
    assert gone(pid)
    assert server.errors.wait(r"hang\.sh \(pid \d+\): does not end after SIGTERM: killing it")


def test_silence_in_the_middle(folder):
    folder.script("stop.sh", TEXT + f"echo $$ > {folder.path}/pid; echo half; exec sleep 1000\n")
    server = folder.configured(f"timeout={SOON}s")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        ask(server, "/cgi/stop.sh")
    assert gone(int((folder.path / "pid").read_text()))
    assert server.errors.wait(r"stop\.sh \(pid \d+\): stopped writing")


def ask_for_error(server, path, errors):
    with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
        errors.append(ask(server, path).status)


@pytest.mark.parametrize("head, status", [("", 504), (TEXT + "echo half\n", None)])
@pytest.mark.parametrize("by", ["", "setsid "])
def test_silence_of_what_is_left(folder, head, status, by):
    """The program has ended, what it started holds its output: the timeout continues."""
    folder.script("left.sh", f"{by}sh -c 'echo $$ > {folder.path}/pid; exec sleep 1000' &\n"
                             f"until [ -s {folder.path}/pid ]; do sleep 0.01; done\n" + head)
    # The other program has to begin meanwhile, on whatever machine.
    server = folder.configured(f"timeout={4 * SOON}s")
    statuses = []
    ask_for_error(server, "/cgi/left.sh", statuses)
    assert statuses == [status] * bool(status)
    pid = int((folder.path / "pid").read_text())
    if by:  # it has left the program's group
        os.kill(pid, signal.SIGKILL)
    assert gone(pid)


@pytest.mark.parametrize("output", ["", " > /dev/null 2>&1"])
def test_what_is_left_counts(folder, output):
    """Whether it holds the output or not; the place is free when it was ended."""
    os.mkfifo(folder.path / "begun")
    folder.script("left.sh", f"(echo > {folder.path}/begun; exec sleep 1000){output} &\n"
                  + "printf 'Content-Length: 2\\n'\n" + TEXT + "echo 1\n")
    folder.script("next.sh", TEXT + "echo next\n")
    server = folder.configured(f"processes=1\nqueue=10\ntimeout={2 * SOON}s", "threads=1")
    texts = []

    def left():
        texts.append(ask(server, "/cgi/left.sh").text)

    first = threading.Thread(target=left)
    first.start()
    (folder.path / "begun").read_text()
    first.join()
    assert texts == ["1\n"]
    second = threading.Thread(target=lambda: texts.append(ask(server, "/cgi/next.sh").text))
    second.start()
    server.wait_status(lambda status: status["workers"]["pools"][0]["waiting"] == 1)
    second.join()
    assert texts[1:] == ["next\n"]
    assert server.errors.wait(r"left\.sh \(pid \d+\): continues after its response: ending it")


def test_client_goes(folder):
    """Before the response, and in the middle: the program is stopped, too."""
    os.mkfifo(folder.path / "begun")
    begun = f"echo $$ > {folder.path}/begun\n"
    folder.script("silent.sh", begun + "exec sleep 1000\n")
    folder.script("endless.sh", begun + TEXT + "exec cat /dev/zero\n")
    server = folder.serve()
    for name in ["silent.sh", "endless.sh"]:
        with connect(server.port) as client:
            client.sendall(f"GET /cgi/{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            pid = int((folder.path / "begun").read_text())
            if name == "endless.sh":
                assert client.recv(1000)
            # Disconnected, not only silent.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert gone(pid), name


def test_slow_client(folder):
    """Little is read ahead for a client that reads nothing, and others are served meanwhile."""
    folder.script("endless.sh", TEXT + "exec cat /dev/zero\n")
    folder.script("fast.sh", TEXT + "echo fast\n")
    server = folder.serve("--cache-size", "8M")
    with connect(server.port) as client:
        client.sendall(b"GET /cgi/endless.sh HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1000)
        for _ in range(5):
            assert ask(server, "/cgi/fast.sh").text == "fast\n"


def test_many_at_once(folder):
    """At most the limit of them runs; the others wait, and requests beyond that are refused."""
    os.mkfifo(folder.path / "go")
    write(folder.path / "begun", b"")
    folder.script("wait.sh", f"echo x >> {folder.path}/begun\n" + TEXT
                  + f"read x < {folder.path}/go; echo done\n")
    server = folder.configured("processes=2\nqueue=3", "threads=1")
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(ask(server, "/cgi/wait.sh").status))
               for _ in range(8)]
    for thread in threads:
        thread.start()
    assert until(lambda: len(statuses) == 3)
    assert statuses == [503] * 3
    assert until(lambda: (folder.path / "begun").read_text() == "x\nx\n")
    while any(thread.is_alive() for thread in threads):
        go = os.open(folder.path / "go", os.O_RDWR)
        os.write(go, b"\n")
        time.sleep(0.05)
        os.close(go)
    assert sorted(statuses) == [200] * 5 + [503] * 3


def test_flood_of_complaints(folder):
    """Read at a limited rate, 1 MB in a second and what pipes hold, until the time limit."""
    taken = folder.path / "taken"
    folder.script("flood.sh", f"yes complaint | head -c 128000000 | tee {taken} >&2\n")
    server = folder.configured(f"timeout={2 * SOON}s")
    assert ask(server, "/cgi/flood.sh").status in (502, 504)
    assert 0 < taken.stat().st_size < (2 * SOON + 4) << 20


def test_waiting_costs_nothing(folder):
    """A waiting request is notified of free capacity, and does not poll."""
    os.mkfifo(folder.path / "go")
    folder.script("wait.sh", TEXT + f"cat {folder.path}/go; echo done\n")
    server = folder.configured("processes=1\nqueue=10", "threads=1")

    def used():
        with open(f"/proc/{server.pid}/stat") as stat:
            return sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))

    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(server, "/cgi/wait.sh").text))
               for _ in range(2)]
    for thread in threads:
        thread.start()
    server.wait_status(lambda status: status["workers"]["pools"][0]["waiting"] == 1)
    before, began = used(), time.monotonic()
    time.sleep(0.5)  # nothing happens; the test checks that
    share = (used() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)
    for count in (1, 2):
        (folder.path / "go").write_bytes(b"well ")
        assert until(lambda: len(answers) == count)
    for thread in threads:
        thread.join()
    assert answers == ["well done\n"] * 2
    assert share < 0.5


def test_waiting_for_descriptors(folder):
    """A program whose start failed starts as soon as it can, though no other program exits."""
    folder.script("page.sh", TEXT + "echo page\n")
    folder.start = functools.partial(folder.start, prefix=("prlimit", "--nofile=100:100"))
    server = folder.configured("", "threads=1")
    connection = http_connection(server.port)
    clients = []
    try:
        connection.request("GET", "/index.html")
        connection.getresponse().read()
        # Each one is served or rejected before the next one arrives.
        while not server.errors.count("accepting connections: Too many open files"):
            clients.append(Client(server.port))
            with contextlib.suppress(AssertionError, ConnectionError):
                clients[-1].get("/index.html")
        connection.request("GET", "/cgi/page.sh")
        assert server.errors.wait("cannot start a program: Too many open files")
        for client in clients:
            client.close()
        answer = Answer(connection.getresponse())
        assert (answer.status, answer.text) == (200, "page\n")
    finally:
        connection.close()
        for client in clients:
            client.close()


def test_waiting_is_over_threads(folder):
    """Capacity that one thread frees goes to another thread that waits."""
    folder.script("short.sh", TEXT + "sleep 0.02; echo done\n")
    server = folder.configured("processes=1\nqueue=100", "threads=2")
    statuses = []

    def client():
        for _ in range(1 if VALGRIND else 5):
            statuses.append(ask(server, "/cgi/short.sh").status)

    threads = [threading.Thread(target=client) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200}


# --- users, configurations, exits -------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become others")
def test_users(folder):
    folder.path.parent.chmod(0o755)
    folder.path.parent.parent.chmod(0o755)
    folder.script("id.sh", TEXT + "id -un; id -gn; grep NoNew /proc/self/status\n")
    server = folder.configured("user=daemon", "user=nobody")
    assert ask(server, "/cgi/id.sh").text.split()[:2] == ["daemon", "daemon"]
    server.stop()
    server = folder.configured("", "user=nobody")
    assert ask(server, "/cgi/id.sh").text.split()[0] == "nobody"


def test_environment_and_limits(folder):
    folder.script("show.sh", TEXT + 'echo "$COLOUR $(ulimit -v)"; pwd\n')
    server = folder.configured("environment=COLOUR=blue\nmemory-limit=512M\ndirectory=/usr")
    assert ask(server, "/cgi/show.sh").text == "blue 524288\n/usr\n"


def test_reload(folder):
    """Programs belong to the first configuration; unchanged ones continue."""
    folder.script("show.sh", TEXT + "echo $COLOUR\n")
    server = folder.configured("environment=COLOUR=blue")
    config = folder.path / "sweet.conf"
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("reloaded ")
    assert ask(server, "/cgi/show.sh").text == "blue\n"
    config.write_text(config.read_text().replace("protocol=cgi", "protocol=cgi\ntimeout=7s"))
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("reloaded ", 2)
    assert ask(server, "/cgi/show.sh").text == "blue\n"
    config.write_text(config.read_text().replace("blue", "red"))
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("pool scripts: a reload cannot add or change a CGI "
                              "program: restart the server")
    assert ask(server, "/cgi/show.sh").text == "blue\n"
    config.write_text("[sweet]\nlisten=127.0.0.1:0\n"
                      f"root={folder.path}/root\n[pool scripts]\nprotocol=cgi\n"
                      f"folder={folder.path}/cgi\nenvironment=COLOUR=blue\n")
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("reloaded ", 3)
    assert ask(server, "/cgi/show.sh").status == 404


def test_pool_ends(folder):
    """A reload that removes the programs stops the running ones, in the end."""
    os.mkfifo(folder.path / "begun")
    folder.script("page.sh", f"echo $$ > {folder.path}/begun\n" + TEXT
                  + "echo half; exec >&-; exec sleep 1000\n")
    server = folder.configured("")
    answers = []
    thread = threading.Thread(target=lambda: answers.append(ask(server, "/cgi/page.sh").text))
    thread.start()
    pid = int((folder.path / "begun").read_text())
    thread.join()
    assert answers == ["half\n"]
    (folder.path / "sweet.conf").write_text(f"[sweet]\nlisten=127.0.0.1:0\n"
                                            f"root={folder.path}/root\n")
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("pool scripts: ending")
    assert gone(pid)


def test_end_of_the_server(folder, kind):
    os.mkfifo(folder.path / "begun")
    folder.script("hang.sh", f"echo $$ > {folder.path}/begun\nexec sleep 1000\n")
    folder.start = functools.partial(Server, kind)
    server = folder.serve()
    with connect(server.port) as client:
        client.sendall(b"GET /cgi/hang.sh HTTP/1.1\r\nHost: x\r\n\r\n")
        pid = int((folder.path / "begun").read_text())
        server.kill()
        assert gone(pid)


def test_nothing_is_left_behind(folder):
    folder.script("page.sh", TEXT + "echo page\n")
    folder.script("none.sh", "")
    server = folder.serve()
    counts = []
    for _ in range(2):
        for _ in range(20):
            assert ask(server, "/cgi/page.sh").text == "page\n"
            assert ask(server, "/cgi/none.sh").status == 502
            assert ask(server, "/cgi/nowhere").status == 404
        until(lambda: not counts or descriptors(server.pid) <= counts[0])
        counts.append(descriptors(server.pid))
    assert counts[1] <= counts[0] + 2, counts
    (keeper,) = server.workers()
    assert len(children_of(keeper)) == 1
