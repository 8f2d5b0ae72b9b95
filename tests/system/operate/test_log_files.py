# SPDX-License-Identifier: MIT
"""The formats of the access log, rotation under load, full disks; where the error log
is written and how verbose it is."""

import base64
import contextlib
import datetime
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

from client import Client, exchange, fetch, request
from files import MB, pattern, write
from server import OBEY, SCALE, TIMEOUT, Server, once, running

ZONE = datetime.timezone(datetime.timedelta(hours=5, minutes=45))
QUOTED = r'"((?:[ !#-\[\]-~]|\\x[0-9a-f]{2})*)"'
COMMON = (r"(\S+) - (\S+) \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "
          + QUOTED + r" (\d{3}) ([1-9]\d*|-)")
COMBINED = COMMON + f" {QUOTED} {QUOTED}"
KEYS = ["time", "remote", "remote_port", "user", "method", "target", "protocol", "status", "bytes",
        "referer", "user_agent", "host", "duration_us", "queue_us", "program_us", "send_us"]


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    write(root / "five", b"five\n")
    write(root / "empty", b"")
    secret = base64.b64encode(hashlib.sha1(b"secret").digest()).decode()
    write(tmp_path / "users", f"ann smith:{{SHA}}{secret}\n".encode())
    return root


class Zone(Server):
    """A server in Nepal, whose time zone offset has minutes."""

    def __init__(self, *arguments):
        os.environ["TZ"] = "NPT-5:45"
        try:
            super().__init__(*arguments)
        finally:
            del os.environ["TZ"]


def requests(port):
    """Sends some requests of each sort; returns their expected results."""
    basic = base64.b64encode(b"ann smith:secret").decode()
    user = f"Authorization: Basic {basic}\r\n"
    with Client(port) as client:
        client.get("/five", fields=user)
        client.get("/five?a=\"b\"", "HEAD", user + "Referer: http://example.org/?q=1\r\n"
                   "User-Agent: Tester/1.0 (a; \"b\") \\ gr\xc3\xbc\xc3\x9f \xff\r\n")
        client.get("/empty", fields=user + "Referer:\r\nUser-Agent: " + "x" * 1000 + "\r\n")
        client.get("/five")
    exchange(port, b"NONSENSE\x01\r\n\r\n")


def lines_of(kind, root, tmp_path, log_format):
    log = tmp_path / "access.log"
    server = Zone(kind, root, "--access-log", log, "--log-format", log_format, "--threads", 1,
                  "--auth-file", tmp_path / "users", "--auth-realm", "test")
    try:
        requests(server.port)
    except BaseException:
        server.kill()
        raise
    server.stop()
    return log.read_text().splitlines()


def test_combined(kind, root, tmp_path):
    before = datetime.datetime.now(ZONE).replace(microsecond=0)
    lines = lines_of(kind, root, tmp_path, "combined")
    after = datetime.datetime.now(ZONE)
    got = [re.fullmatch(COMBINED, line).groups() for line in lines]
    for line in got:
        when = datetime.datetime.strptime(line[2], "%d/%b/%Y:%H:%M:%S %z")
        assert when.utcoffset() == ZONE.utcoffset(None) and before <= when <= after
    agent = r"Tester/1.0 (a; \x22b\x22) \x5c gr\xc3\xbc\xc3\x9f \xff"
    user = r"ann\x20smith"
    rest = [line[:2] + line[3:] for line in got]
    assert rest[:3] == [
        ("127.0.0.1", user, "GET /five HTTP/1.1", "200", "5", "-", "-"),
        ("127.0.0.1", user, r"HEAD /five?a=\x22b\x22 HTTP/1.1", "200", "-",
         "http://example.org/?q=1", agent),
        ("127.0.0.1", user, "GET /empty HTTP/1.1", "200", "-", "", "x" * 512),
    ]
    assert rest[3][:4] == ("127.0.0.1", "-", "GET /five HTTP/1.1", "401")
    assert rest[4][:4] == ("127.0.0.1", "-", r"NONSENSE\x01", "400")
    assert len(lines) == 5


def test_common(root, tmp_path):
    lines = lines_of("epoll", root, tmp_path, "common")
    got = [re.fullmatch(COMMON, line).groups() for line in lines]
    assert [line[4] for line in got] == ["200", "200", "200", "401", "400"]


def test_json(kind, root, tmp_path):
    before = datetime.datetime.now(datetime.timezone.utc)
    lines = lines_of(kind, root, tmp_path, "json")
    after = datetime.datetime.now(datetime.timezone.utc)
    # Each line is one object, with every key once.
    pairs = [json.loads(line, object_pairs_hook=list) for line in lines]
    assert [[key for key, _ in line] for line in pairs] == [KEYS] * 5
    got = [dict(line) for line in pairs]
    for line in got:
        when = datetime.datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
        when = when.replace(tzinfo=datetime.timezone.utc)
        # The loop's clock is a turn late, and milliseconds are cut off.
        second = datetime.timedelta(seconds=1)
        assert before - second <= when <= after and len(line["time"]) == 24
        assert line["remote"] == "127.0.0.1" and 1 <= line["remote_port"] <= 65535
        assert 0 <= line["duration_us"] <= (after - before).total_seconds() * 1e6 + 1
    assert (got[0]["user"], got[0]["referer"], got[0]["user_agent"]) == ("ann smith", None, None)
    assert got[1]["user_agent"] == "Tester/1.0 (a; \"b\") \\ gr\u00fc\u00df \xff"
    assert (got[1]["method"], got[1]["target"]) == ("HEAD", '/five?a="b"')
    assert (got[2]["bytes"], got[2]["referer"], got[2]["host"]) == (0, "", "test")
    assert (got[3]["user"], got[3]["status"]) == (None, 401)
    assert (got[4]["method"], got[4]["target"], got[4]["protocol"]) == (None, "NONSENSE\x01", None)


def test_rotation_under_load(kind, root, tmp_path):
    """Renamed repeatedly: as many complete lines as requests, in all files together."""
    log, errors = tmp_path / "access.log", tmp_path / "error.log"
    with running(kind, root, "--access-log", log, "--log-format", "combined", "--error-log", errors,
                 "--threads", 2) as server:
        load = subprocess.Popen(
            ["wrk", "-t1", "-c16", "-d1s", "--timeout", f"{TIMEOUT}s", server.url + "/five"],
            stdout=subprocess.DEVNULL,
        )
        rotations = 0
        while load.poll() is None:
            rotations += 1
            os.rename(log, f"{log}.{rotations}")
            os.rename(errors, f"{errors}.{rotations}")
            server.send_signal(signal.SIGUSR1)
            deadline = time.monotonic() + TIMEOUT
            # Its first line says so.
            while not (errors.exists() and "reopened the logs" in errors.read_text()):
                assert time.monotonic() < deadline
                time.sleep(0.001)
        assert load.returncode == 0
        # wrk exits without waiting for the last responses.
        status = server.wait_status(lambda status: status["connections"]["open"] == 1)
        # The log does not have those of the status.
        counted = status["requests"] - server.asked
    assert rotations > 3
    logs = [log] + [tmp_path / f"access.log.{number + 1}" for number in range(rotations)]
    lines = [line for name in logs for line in name.read_bytes().decode("ascii").splitlines(True)]
    assert len(lines) == counted > 1000 / SCALE
    assert all(line[-1] == "\n" and re.fullmatch(COMBINED, line[:-1]) for line in lines)
    # No rotated file is empty, except at the start and the end of the load.
    assert sum(name.stat().st_size > 0 for name in logs) > 1


def test_old_logs_stay_when_new_ones_cannot_be_had(root, tmp_path):
    log = tmp_path / "logs" / "access.log"
    log.parent.mkdir()
    with running("epoll", root, "--access-log", log) as server:
        moved = shutil.move(log.parent, tmp_path / "moved")
        server.send_signal(signal.SIGUSR1)
        assert server.errors.wait(f'cannot write the access log "{log}": No such file or directory; '
                                  "the old logs are kept")
        assert fetch(server.port, "/five").status == 200
    assert os.listdir(moved) == ["access.log"]
    assert "GET /five" in (tmp_path / "moved" / "access.log").read_text()


def test_full_disk(kind, root, tmp_path):
    with running(kind, root, "--access-log", "/dev/full", "--log-format", "json",
                 "--threads", 1) as server:
        with Client(server.port) as client:
            for _ in range(20):
                client.send(request("/five") * 100)
                assert all(client.response().body == b"five\n" for _ in range(100))
        assert server.errors.wait("cannot write the access log: No space left on device")
    assert server.errors.count("cannot write the access log") == 1


def test_who_goes_has_a_line(kind, root, tmp_path):
    write(root / "large", pattern(8 * MB))
    log = tmp_path / "access.log"
    with running(kind, root, "--access-log", log, "--worker", f"/obey={OBEY}",
                 "--workers", 1) as server:
        with Client(server.port, buffer=4096) as client:
            client.send(request("/large"))
            client.head()
        with Client(server.port) as client:
            client.send(request("/obey/hang"))
            server.wait_status(lambda status: status["workers"]["requests"] == 1)
            # A reset: after a mere end, the client may still wait for the answer.
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.wait_status(lambda status: status["connections"]["open"] == 1)
    text = log.read_text()
    assert re.search(r'"GET /large HTTP/1.1" 200 \d+ ', text)
    assert re.search(r'"GET /obey/hang HTTP/1.1" 499 0 ', text)


def test_error_log_file(root, tmp_path):
    errors = tmp_path / "error.log"
    with running("epoll", root, "--error-log", errors) as server:
        server.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + TIMEOUT
        while "reopened" not in errors.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    lines = errors.read_text().splitlines()
    when = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}"
    assert all(re.match(rf"{when} \[(error|warning|notice)\] \S", line) for line in lines), lines
    # The user who started it sees there where it listens, and nothing after that.
    assert server.errors.count("listening on") == 1
    assert server.errors.count("anew") == 0
    assert sum("listening on" in line for line in lines) == 1


@pytest.mark.parametrize("level, seen", [("notice", 0), ("info", 1)])
def test_level(root, level, seen):
    with running("epoll", root, "--proxy-protocol", "127.0.0.1", "--log-level", level) as server:
        with Client(server.port) as client:
            client.send(request("/five"))
            with contextlib.suppress(ConnectionResetError):
                assert client.socket.recv(1) == b""
    assert server.errors.count("not a PROXY header") == seen
    assert server.errors.count("listening on") == 1


def test_journal_that_is_not_there(root):
    if os.path.exists("/run/systemd/journal/socket"):
        pytest.skip("there is a journal")
    with running("epoll", root, "--error-log", "journal") as server:
        assert server.ready.startswith("<5>sweet: listening on ")


def test_error_log_that_cannot_be_had(root, tmp_path):
    got = once("--root", root, "--listen", "127.0.0.1:0",
               "--error-log", tmp_path / "none" / "log")
    assert got.returncode == 1
    assert "cannot write the error log" in got.stderr and "No such file" in got.stderr


def test_reasons(kind, tmp_path):
    """For each request that the server refuses, the error log has the reason, in one line at
    level info; responses of programs and ordinary events are not logged there."""
    root = tmp_path / "root"
    write(root / "file", b"a file\n")
    (root / "folder").mkdir()
    (root / "out").symlink_to("/etc/passwd")
    (root / "round").symlink_to("round")
    write(tmp_path / "sweet.conf",
          f"[sweet]\nroot={root}\nworker=/obey={OBEY}\nworkers=1\nmax-body=10\nlog-level=info\n"
          "header-timeout=1h\n[path /denied]\ndeny=all\n".encode())
    host = "Host: x\r\n"
    with running(kind, None, "--config", tmp_path / "sweet.conf") as server:
        for number, (head, status, reason) in enumerate([
                ("GET /a%2Fb HTTP/1.1\r\n" + host, 400, "a path with a bad escape"),
                ("GET /%00 HTTP/1.1\r\n" + host, 400, "a path with a bad escape"),
                ("GET /../x HTTP/1.1\r\n" + host, 400, "above the root"),
                ("GET / HTTP/1.1\r\n", 400, "no Host field"),
                ("GET / HTTP/1.1\r\nHost: [::x]\r\n", 400, "a malformed Host field"),
                ("GET / HTTP/1.1\r\nA b: c\r\n" + host, 400, "a malformed header field"),
                ("GET /out HTTP/1.1\r\n" + host, 403, "/out: .*symbolic link"),
                ("GET /round HTTP/1.1\r\n" + host, 403, "/round: too many symbolic links"),
                ("GET /folder/ HTTP/1.1\r\n" + host, 403, "/folder/: a folder without index"),
                ("GET /denied/x HTTP/1.1\r\n" + host, 403, "/denied/x: an address that"),
                ("POST /obey/echo HTTP/1.1\r\nContent-Length: 11\r\n" + host, 413,
                 "/obey/echo: a body that is longer than max-body"),
                ("GET /file HTTP/1.1\r\n" + host + "".join(f"A{i}: b\r\n" for i in range(300)), 431,
                 "more header fields than max-fields"),
                ("GET / HTTP/1.1\r\nA: " + "b" * 17000 + "\r\n" + host, 431, "a head that is longer")],
                1):
            answer = exchange(server.port, f"{head}Connection: close\r\n\r\n".encode())
            assert answer.startswith(f"HTTP/1.1 {status} ".encode())
            line = server.errors.wait(": answered ", number)
            assert re.search(rf"127\.0\.0\.1: answered {status}: .*{reason}", line)
        # These cause no line.
        for target, status in [("/file", 200), ("/none", 404), ("/obey/none", 404)]:
            assert fetch(server.port, target).status == status
        assert server.errors.count(": answered ") == number
