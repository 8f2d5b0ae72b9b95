# SPDX-License-Identifier: MIT
"""The parts of a request's time: in the access log, in Server-Timing."""

import json
import os
import re
import signal
import time

import pytest

from client import Client, exchange, fetch, request
from files import write
from server import OBEY, running

LEAST = 0.05  # seconds; the loop's clock may be a turn late
LOG = "time-queue time-program time-send time-total path status".split()


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "root" / "five", b"five\n")
    slow = tmp_path / "cgi" / "slow"
    os.mkfifo(tmp_path / "gate")
    write(slow, f"#!/bin/sh\nread line <{tmp_path}/gate\n"
          "printf 'Content-Type: text/plain\\nContent-Length: 5\\n\\nslow\\n'\n".encode())
    slow.chmod(0o755)
    return tmp_path


def serve(kind, folder, keys):
    config = folder / "sweet.conf"
    write(config, f"""[sweet]
root={folder}/root
access-log={folder}/log
threads=1
log-format=json-template:{{{{{",".join(f'"{name}":{{{name}}}' for name in LOG)}}}}}
{keys}
[pool slow]
protocol=cgi
folder={folder}/cgi
processes=1
[path /cgi]
pool=slow
server-timing=on
""".encode())
    return running(kind, None, "--config", config)


def logged(folder):
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def waiting(status):
    return sum(pool["waiting"] for pool in status["workers"]["pools"])


def release(folder):
    """Lets one program respond, which has waited for a while: that time is measured."""
    with open(folder / "gate", "w", encoding="ascii") as gate:  # opened when the program runs
        time.sleep(2 * LEAST)
        gate.write("x\n")


def test_parts(kind, folder):
    """Of two requests for a program that runs once at a time, one waits for the other."""
    with serve(kind, folder, "") as server:
        fetch(server.port, "/five")
        with Client(server.port) as first, Client(server.port) as second:
            first.send(request("/cgi/slow"))
            server.wait_status(lambda status: status["workers"]["requests"] == 1)
            second.send(request("/cgi/slow"))
            server.wait_status(lambda status: waiting(status) == 1)
            for client in [first, second]:
                release(folder)
                assert client.response().body == b"slow\n"
        exchange(server.port, b"NONSENSE\r\n\r\n")
    file, first, second, bad = [line for line in logged(folder) if "status" not in line["path"]]
    for line in [file, bad]:
        assert line["time-queue"] is None and line["time-program"] is None
        assert 0 <= line["time-send"] <= line["time-total"]
    for line in [first, second]:
        assert line["time-program"] >= LEAST * 1e6
        assert line["time-queue"] + line["time-program"] + line["time-send"] <= line["time-total"] + 3
    assert second["time-queue"] >= LEAST * 1e6
    assert first["time-queue"] < first["time-program"]


def test_lost(folder):
    """A program that ends without a response has a time, too."""
    with serve("epoll", folder, f"worker=/o={OBEY}\nworkers=1\n") as server:
        assert fetch(server.port, "/o/exit").status == 502
    line, = logged(folder)
    assert line["status"] == 502 and line["time-queue"] >= 0 and line["time-program"] >= 0


def test_slow_log(kind, folder):
    """Only requests that take longer, by path; reopened as the others."""
    with serve(kind, folder, f"slow-log={folder}/slow\nslow-time=50ms\nrequest-id=on\n"
               "[path /five]\nslow-time=1h\n[path /cgi/quiet]\npool=slow\nslow-time=0\n") as server:
        ids = []
        for target in ["/five", "/cgi/slow?a=\"b", "/cgi/quiet", "/cgi/slow"]:
            with Client(server.port) as client:
                client.send(request(target))
                if target.startswith("/cgi/slow"):
                    release(folder)
                    ids.append(client.response()["x-request-id"])
                else:
                    client.response()
            if target == "/cgi/quiet":
                os.rename(folder / "slow", folder / "slow.1")
                server.send_signal(signal.SIGUSR1)
                assert server.errors.wait("reopened the logs")
    for name, target, number in [("slow.1", r'/cgi/slow\?a=\\x22b', ids[0]), ("slow", "/cgi/slow", ids[1])]:
        line = (folder / name).read_text()
        match = re.fullmatch(r"\S+Z 127\.0\.0\.1 200 total=(\d+)us queue=(\d+)us program=(\d+)us send=\d+us "
                             rf'bytes=5 pool=slow cache=pass id={number} host=test "GET {target} \S+"\n', line)
        assert match and int(match[1]) >= int(match[3]) >= LEAST * 1e6, line
    # The others are in the access log alone.
    assert len(logged(folder)) == 4


def test_slow_log_alone(folder):
    """Without an access log, and by a reload."""
    config = folder / "sweet.conf"
    text = f"[sweet]\nroot={folder}/root\nworker=/o={OBEY}\nworkers=1\nslow-time=1\n"
    write(config, text.encode())
    with running("epoll", None, "--config", config) as server:
        write(config, f"{text}slow-log={folder}/slow\n".encode())
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded")
        with Client(server.port) as client:
            client.send(request("/o/hang"))
            assert server.errors.wait("worker-obey: hangs")
            time.sleep(LEAST)
            for process in server.status()["workers"]["pools"][0]["processes"]:
                os.kill(process["pid"], signal.SIGKILL)
            assert client.response().status == 502
    assert " 502 total=" in (folder / "slow").read_text()


def test_server_timing(kind, folder):
    with serve(kind, folder, "[path /five]\nserver-timing=on\n[path /none]\n") as server:
        with Client(server.port) as client:
            assert re.fullmatch(r"total;dur=\d+\.\d{3}", client.get("/five")["server-timing"])
            assert "server-timing" not in client.get("/none")
            client.send(request("/cgi/slow"))
            release(folder)
            value = client.response()["server-timing"]
            match = re.fullmatch(r"queue;dur=(\d+\.\d{3}), program;dur=(\d+\.\d{3}), "
                                 r"total;dur=(\d+\.\d{3})", value)
            assert match, value
            queue, program, total = map(float, match.groups())
            assert program >= LEAST * 1000 and queue + program <= total + 0.01
