# SPDX-License-Identifier: MIT
"""Workers with a user, a folder or a limit of their own: the spawner starts them, and
all else works as with others."""

import errno
import grp
import hashlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import tempfile

import pytest

from client import Client, fetch, request
from examples import library_environment, SOURCES
from files import MB, pattern, write
from held import is_read
from server import OBEY, STREAM, VALGRIND, Process, Server, children_of, sanitized
from stopped import stop
from test_command_line import complaint
from test_pools import Config, loaded, pool, status_pool

root_alone = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become others")
not_sanitized = pytest.mark.skipif(sanitized(), reason="a sanitizer takes all of the address space")
USED = "[path /app]\npool=app\n"
NOBODY, DAEMON = pwd.getpwnam("nobody"), pwd.getpwnam("daemon")


@pytest.fixture
def config():
    """In a folder that every user can reach, unlike that of pytest."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sweet-test-"))
    folder.chmod(0o755)
    yield Config(folder)
    shutil.rmtree(folder)


@pytest.fixture
def run(config, start):
    def begin(groups, keys=""):
        config.write(groups + "[path /a]\npool=app\n", keys)
        return start(None, "--config", config.path, listen=None)

    return begin


def who(server, variable="HOME"):
    """uid and gid, groups, limit, folder, variable."""
    got = fetch(server.port, f"/a/who?{variable}")
    assert got.status == 200
    return got.body.decode().splitlines()


def groups_of(user, gid):
    return sorted(os.getgrouplist(user, gid))


def pids(server):
    return {process["pid"] for process in status_pool(server)["processes"]}


def programs(server):
    """Returns what the kernel says about each process, once it is the program: until then it is
    the helper that starts it."""
    def look():
        said = []
        for pid in pids(server):
            lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
            said.append(dict(re.split(r":\s*", line, maxsplit=1) for line in lines))
        return said

    server.wait_status(lambda _: not any(said["Name"].startswith("sweet: ") for said in look()))
    return look()


def close_all(processes):
    for process in processes:
        process.close()


@root_alone
@pytest.mark.parametrize("keys", ["", "user=daemon", "user=daemon\nread-only=on"])
def test_user(run, keys):
    """Whether or not the server is still root."""
    server = run(pool(user="nobody"), keys)
    found = who(server)
    assert found[0] == f"{NOBODY.pw_uid} {NOBODY.pw_gid}"
    assert sorted(map(int, found[1].split())) == groups_of("nobody", NOBODY.pw_gid)
    assert found[2:] == ["0", "/", "(none)"]
    for said in programs(server):
        assert said["Uid"].split() == [str(NOBODY.pw_uid)] * 4
        assert said["Gid"].split() == [str(NOBODY.pw_gid)] * 4
        assert int(said["CapPrm"], 16) == int(said["CapEff"], 16) == 0
        assert said["NoNewPrivs"] == "1"


@root_alone
def test_group(run):
    group = grp.getgrnam("daemon").gr_gid
    server = run(pool(user="nobody", group="daemon"))
    found = who(server)
    assert found[0] == f"{NOBODY.pw_uid} {group}"
    assert sorted(map(int, found[1].split())) == groups_of("nobody", group)


@root_alone
def test_server_user_is_the_default(run):
    server = run(pool(directory="/usr"), "user=daemon")
    assert who(server)[0] == f"{DAEMON.pw_uid} {DAEMON.pw_gid}"


def test_folder_and_environment(run, monkeypatch):
    """The operator's variables and PATH, and none of the server's own environment."""
    monkeypatch.setenv("SECRET", "of the server")
    server = run(pool(directory="/usr", environment="COLOUR=blue"))
    assert who(server, "COLOUR")[3:] == ["/usr", "blue"]
    assert who(server, "PATH")[4] == os.environ["PATH"]
    assert who(server, "SECRET")[4] == "(none)"
    assert who(server, "NABC_SERVER_PID")[4] == str(server.pid)


@root_alone
@pytest.mark.parametrize("keys", ["", "user=daemon", "user=daemon\ndata-path=posix"])
def test_bodies(run, keys):
    """Units pass in both directions, kept or not, whole or in pieces."""
    server = run(pool(user="nobody"), f"{keys}\nmax-body=0\nthreads=2")
    for size in (1, 100_000, 5 * MB):
        data = pattern(size)
        for path in ("upload", "echo"):
            with Client(server.port) as client:
                client.send(b"POST /a/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
                            % (path.encode(), size) + data)
                got = client.response()
            assert got.status == 200
            if path == "echo":
                assert got.body == data
            else:
                assert hashlib.md5(data).hexdigest() in got.body.decode()
    for _ in range(3):
        assert fetch(server.port, "/a/kept").body == b"the same each time\n"
    assert fetch(server.port, "/a/list").body.count(b"a line of three") == 2
    # An invalid one affects only its own response.
    assert fetch(server.port, "/a/stray").status == 502
    assert fetch(server.port, "/a/header").body == b"obeyed\n"


@root_alone
def test_pieces(run):
    server = run(pool(command=STREAM, user="nobody"), "user=daemon\nmax-body=0")
    body = fetch(server.port, "/a/pieces?100:70000:7000000").body
    assert [int(body[at : at + 12]) for at in range(0, len(body), 70000)] == list(range(100))
    with Client(server.port) as client:
        client.send(b"POST /a/sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n"
                    + bytes(5000000))
        assert client.response().body.split()[1:] == [
            b"5000000", hashlib.md5(bytes(5000000)).hexdigest().encode()]


@root_alone
def test_worker_in_python(run, config):
    for name in ("nabc.py", "hello_worker.py"):
        shutil.copy(os.path.join(SOURCES, name), config.folder / name)
    variables = ";".join("=".join(pair) for pair in library_environment().items())
    server = run(pool(command=f"/usr/bin/python3 -B {config.folder}/hello_worker.py", user="nobody",
                      environment=variables), "user=daemon")
    assert fetch(server.port, "/a").body.startswith(b"Hello 127.0.0.1, this is process")
    assert fetch(server.port, "/a/about").body.startswith(b"This page was put")


@not_sanitized
@pytest.mark.parametrize("user", ["", pytest.param("nobody", marks=root_alone)])
def test_memory_limit(run, user):
    """Allocations beyond it fail; others are not affected."""
    keys = {"user": user} if user else {}
    server = run(pool(processes=2, memory="8M", memory_limit="200M", **keys), "threads=1")
    assert who(server)[2] == str(200 * MB)
    before = pids(server)
    got = fetch(server.port, "/a/eat")
    assert got.status == 502
    assert server.errors.wait(r"worker app\[\d\] \(pid \d+\) has ended by signal \d+ \(.*\); "
                              r"its memory-limit is 204800 KiB")
    assert fetch(server.port, "/a/header").body == b"obeyed\n"
    server.wait_status(lambda _: 0 not in pids(server))
    assert len(before & pids(server)) == 1


def test_memory_limit_above_memory(config):
    config.write(pool(memory_limit="64M"))
    assert "not above memory" in complaint("--config", config.path)


# A sanitizer looks for leaks by ptrace().
FREE = {"environment": "ASAN_OPTIONS=detect_leaks=0"}


@pytest.mark.parametrize("user", ["", pytest.param("nobody", marks=root_alone)])
def test_seccomp(run, user):
    """System calls that no worker needs are refused; attaching and sending work."""
    keys = dict(FREE, user=user) if user else FREE
    server = run(pool(seccomp="on", **keys))
    for said in programs(server):
        assert said["Seccomp"] == "2"
    tried = dict(line.split() for line in fetch(server.port, "/a/forbidden").body.decode()
                 .splitlines())
    assert tried.pop("socket") == str(errno.EAFNOSUPPORT)
    assert len(tried) == 8 and set(tried.values()) == {str(errno.EPERM)}
    assert fetch(server.port, "/a/header").body == b"obeyed\n"
    assert fetch(server.port, "/a/kept").body == b"the same each time\n"
    body = pattern(MB // 2)
    with Client(server.port) as client:
        client.send(request("/a/echo", "POST", f"Content-Length: {len(body)}\r\n") + body)
        assert client.response().body == body


def test_no_seccomp(run):
    """Otherwise the kernel decides."""
    server = run(pool())
    assert f"process_vm_readv {errno.EPERM}" not in fetch(server.port, "/a/forbidden").body.decode()


@root_alone
def test_hanging_is_ended(run):
    """On whichever thread its request arrived, and a process that stops itself too."""
    server = run(pool(processes=1, user="nobody", timeout="1s"), "user=daemon\nthreads=3")
    first = Process(pids(server).pop())
    stop(first.pid)
    clients = [Client(server.port) for _ in range(9)]
    for client in clients:
        client.send(request("/a/hang"))
    # Requests that wait slightly less than the first one get the error of the exit.
    assert {504} <= {client.response().status for client in clients} <= {502, 504}
    close_all(clients)
    assert first.ended()
    assert server.errors.wait(rf"worker app\[0\] \(pid {first.pid}\) took too long to answer")
    assert server.errors.wait(rf"worker app\[0\] \(pid {first.pid}\) has ended by signal 9")
    assert server.errors.count("cannot be ended") == 0
    assert fetch(server.port, "/a/header").body == b"obeyed\n"
    first.close()


@root_alone
def test_reload_rolls_them(run):
    server = run(pool(processes=3, user="nobody"), "user=daemon")
    before = [Process(pid) for pid in pids(server)]
    with loaded(server):
        server.send_signal(signal.SIGHUP)
        for process in before:
            assert process.ended()
        server.wait_status(lambda _: 0 not in pids(server))
    assert not {process.pid for process in before} & pids(server)
    assert who(server)[0].split()[0] == str(NOBODY.pw_uid)
    close_all(before)


@root_alone
def test_max_requests(run):
    server = run(pool(processes=1, user="nobody", max_requests=5), "user=daemon")
    assert len(server.bodies("/a/pid", 4)) == 4
    assert server.status()["workers"]["failures"] == 0


@pytest.mark.parametrize("keys", [{}, {"directory": "/"}], ids=["own", "other"])
def test_how_it_ended_is_told(run, keys):
    server = run(pool(processes=1, **keys))
    pid = pids(server).pop()
    assert fetch(server.port, "/a/exit").status == 502
    assert server.errors.wait(rf"worker app\[0\] \(pid {pid}\) has ended with status 3$")
    process = Process(int(fetch(server.port, "/a/pid").body))
    process.kill()
    assert server.errors.wait(rf"\(pid {process.pid}\) has ended by signal 9 \(Killed\)$")
    process.close()


@pytest.mark.parametrize("kind", ["epoll"], indirect=True)  # all pauses, and no kind's own
def test_program_that_is_no_worker(run):
    """It exits repeatedly, with pauses."""
    # A withdrawn request starts to wait again.
    server = run(pool(command="/bin/false", processes=1, directory="/", queue_timeout="2s"))
    said = set()
    while 503 not in said:
        said.add(fetch(server.port, "/a").status)
        assert said <= {502, 503}
    assert server.errors.wait(r"worker app\[0\] \(pid \d+\) has ended with status 1")
    assert server.errors.wait(r"worker app\[0\]: starting again after a pause")


@pytest.mark.parametrize("kind", ["epoll"], indirect=True)
def test_what_log_level_warning_says(run, config):
    """The first end of each place that nobody wanted, and that no worker is left; of the rest of a
    row, and of ends that the server asked for, nothing."""
    script = write(config.folder / "worker.sh", f"#!/bin/sh\nexec {OBEY}\n".encode())
    script.chmod(0o755)
    server = run(pool(command=str(script), processes=2))
    assert fetch(server.port, "/a/who").status == 200
    config.write(pool(command=str(script), processes=2) + "[path /a]\npool=app\n",
                 "log-level=warning")
    before = set(server.workers())
    server.send_signal(signal.SIGHUP)
    server.wait_status(lambda status: status["config"]["generation"] == 2
                       and len(set(server.workers()) - before) == 2
                       and not before & set(server.workers()))
    assert fetch(server.port, "/a/who").status == 200
    # The shells have read the script that changes now.
    assert is_read(server.workers(), "worker-obey")
    said = len(server.errors.lines)
    fresh = write(config.folder / "fresh.sh", b"#!/bin/sh\nexit 1\n")
    fresh.chmod(0o755)
    fresh.replace(script)
    for process in server.workers().values():
        process.kill()
    assert server.errors.wait("pool app: no worker left: its requests get status 503")
    assert fetch(server.port, "/a").status == 503
    lines = [line for line in server.errors.lines[said:] if "no worker left" not in line]
    for number in range(2):
        ends = [line for line in lines if f"worker app[{number}] " in line]
        # Its killed process, and the first in a row that has status 1.
        assert 1 <= len(ends) <= 2 and "by signal 9" in ends[0], lines
    assert not any("starting again" in line for line in lines)
    assert server.errors.count("no worker left") == 1


@pytest.mark.skipif(VALGRIND, reason="what Valgrind cannot execute ends there, and has begun")
def test_program_that_cannot_be_run(config):
    script = write(config.folder / "script", b"#!/no/such/interpreter\n")
    script.chmod(0o755)
    config.write(pool(command=str(script), directory="/") + USED)
    assert "cannot start: No such file" in complaint("--config", config.path)


def test_program_that_goes(run, config):
    """Requests meanwhile do not wait in vain."""
    program = config.folder / "worker"
    shutil.copy(OBEY, program)
    server = run(pool(command=str(program), processes=1, directory="/", queue_timeout="60s"))
    assert fetch(server.port, "/a/header").status == 200  # the program runs
    program.unlink()
    assert fetch(server.port, "/a/exit").status == 502
    assert server.errors.wait(r"worker app\[0\]: cannot start: No such file or directory")
    got = fetch(server.port, "/a/header")
    assert (got.status, got["Retry-After"]) == (503, "1")
    assert fetch(server.port, "/file").body == b"a file\n"


def keeper_and_starter(server):
    (keeper,) = children_of(server.pid)
    (starter,) = children_of(keeper)
    return keeper, starter


def test_starter_that_is_killed(run):
    """Programs that it has started end with it; the next one starts them again, at once."""
    server = run(pool(processes=2, directory="/"), "threads=1")
    for _ in range(2):
        processes = [Process(pid) for pid in pids(server)]
        assert len(processes) == 2
        _, starter = keeper_and_starter(server)
        os.kill(starter, signal.SIGKILL)
        assert all(process.ended() for process in processes)
        assert fetch(server.port, "/a/header").body == b"obeyed\n"
        server.wait_status(lambda _: 0 not in pids(server))
        assert not {process.pid for process in processes} & pids(server)
        close_all(processes)
    assert server.errors.count("the process that starts programs was ended", 2) == 2
    assert fetch(server.port, "/file").body == b"a file\n"


@root_alone
def test_next_starter_is_root_as_well(run):
    """Though the server has dropped that privilege."""
    server = run(pool(processes=1, user="nobody"), "user=daemon")
    (old,) = pids(server)
    os.kill(keeper_and_starter(server)[1], signal.SIGKILL)
    server.wait_status(lambda _: not {0, old} & pids(server))
    assert who(server)[0] == f"{NOBODY.pw_uid} {NOBODY.pw_gid}"


def test_keeper_that_is_killed(run):
    """Nothing is lost by that.  After the last spawner is killed, no program can be started."""
    server = run(pool(processes=2, directory="/"), "threads=1")
    processes = [Process(pid) for pid in pids(server)]
    keeper, starter = keeper_and_starter(server)
    os.kill(keeper, signal.SIGKILL)
    assert fetch(server.port, "/a/exit").status == 502
    server.wait_status(lambda _: 0 not in pids(server))
    processes += [Process(pid) for pid in pids(server) - {process.pid for process in processes}]
    assert len(processes) == 3
    os.kill(starter, signal.SIGKILL)
    assert all(process.ended() for process in processes)
    assert server.errors.wait("the process that starts programs has ended")
    # A request from before both had failed would wait for its time in the queue.
    for number in range(2):
        assert server.errors.wait(rf"worker app\[{number}\]: cannot start: Broken pipe")
    server.wait_status(lambda _: fetch(server.port, "/a/header").status == 503)
    assert fetch(server.port, "/file").body == b"a file\n"
    close_all(processes)


def test_changed_one_wants_a_new_server(run, config):
    """A reload can change the limits of requests, but not the user."""
    server = run(pool(directory="/usr"))
    config.write(pool(directory="/usr", timeout="7s") + "[path /a]\npool=app\n")
    config.reload(server)
    assert who(server)[3] == "/usr"
    config.write(pool(directory="/tmp") + "[path /a]\npool=app\n")
    said = config.reload(server, "the old configuration stays")
    assert "pool app: a reload cannot change which programs run as another user" in said
    assert who(server)[3] == "/usr"


def test_pool_that_goes(run, config):
    server = run(pool(directory="/usr"))
    processes = [Process(pid) for pid in pids(server)]
    config.write("")
    config.reload(server)
    assert all(process.ended() for process in processes)
    close_all(processes)


@root_alone
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_none_outlives_the_server(config, kind, end):
    config.write(pool(user="nobody", processes=3) + "[path /a]\npool=app\n", "user=daemon")
    server = Server(kind, None, "--config", config.path, listen=None)
    try:
        processes = [Process(pid) for pid in pids(server)]
        assert len(processes) == 3
        processes += [Process(pid) for pid in keeper_and_starter(server)]
        if end == signal.SIGKILL:
            server.kill()
        else:
            server.stop(end)
        assert all(process.ended() for process in processes)
        close_all(processes)
    finally:
        server.kill()


@root_alone
def test_only_root_can(config):
    drop = ["setpriv", "--reuid=54321", "--regid=12345", "--clear-groups"]
    config.write(pool(user="nobody") + USED)
    said = complaint("--config", config.path, prefix=drop)
    assert f'"{os.path.abspath(OBEY)}": only root can start it as user {NOBODY.pw_uid}' in said


def test_unknown_user(config):
    config.write(pool(user="no-such-user") + USED)
    assert 'pool "app": user "no-such-user"' in complaint("--config", config.path)
