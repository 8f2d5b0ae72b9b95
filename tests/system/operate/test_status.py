# SPDX-License-Identifier: MIT
"""The status of the server: as JSON, as metrics, and for which clients."""

import json
import os
import signal

import pytest

import metrics
from client import Client, fetch, request
from files import MB, pattern, write
from server import OBEY, SCALE, running

ALL = ("status", "status.json", "status.html", "metrics")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("status")
    write(root / "five", b"five\n")
    write(root / "large", pattern(8 * MB))
    return root


@pytest.fixture(scope="module")
def server(root):
    with running("epoll", root, "--threads", 2, "--worker", f'/a"b={OBEY}', "--workers", 2) as server:
        yield server


def agree(status):
    """True at a moment when no other thread counts."""
    states = status["connections"]
    return (states["open"] == sum(states[name] for name in
                                  ("idle", "reading", "working", "sending", "lingering"))
            and status["latency_us"]["count"] == sum(status["responses"].values()) >= 4)


def test_figures_agree(kind, root):
    with running(kind, root, "--threads", 2) as server:
        for _ in range(3):
            assert fetch(server.port, "/five").body == b"five\n"
        assert fetch(server.port, "/none").status == 404
        status = server.wait_status(agree)
        threads, latency = status["each_thread"], status["latency_us"]
        assert (status["pid"], status["threads"], len(threads)) == (server.pid, 2, 2)
        assert status["requests"] == sum(one["requests"] for one in threads) >= 5
        assert status["connections"]["accepted"] == sum(one["accepted"] for one in threads)
        assert latency["count"] == sum(count for _, count in latency["below"]) >= 4
        limits = [limit for limit, _ in latency["below"]]
        assert limits == sorted(limits)
        assert latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["p999"] <= latency["max"]
        assert latency["max"] <= latency["sum"] <= latency["max"] * latency["count"]
        files = status["files"]
        assert (files["known"], files["hits"], files["misses"]) == (1, 2, 2)
        assert (files["hit_bytes"], files["miss_bytes"]) == (10, 5)
        assert (files["hit_ratio"], files["byte_hit_ratio"]) == (0.5, 0.6667)
        assert status["process"]["memory"] > MB
        assert status["process"]["cpu_user_us"] + status["process"]["cpu_system_us"] > 0
        assert status["config"]["generation"] == 1
        assert status["started_ms"] <= status["now_ms"]
        assert status["started_ms"] >= status["config"]["loaded_ms"]
        assert status["draining"] is False


def test_states_of_connections(server):
    def states(status):
        return [status["connections"][name] for name in ("idle", "reading", "sending", "lingering")]

    # Connections of earlier tests may still be closing.
    server.wait_status(lambda status: states(status) == [0, 0, 0, 0])
    with Client(server.port) as idle, Client(server.port) as reading, \
            Client(server.port, buffer=4096) as sending, Client(server.port) as lingering:
        idle.get("/five")
        reading.send(request("/five")[:-2])
        sending.send(request("/large"))
        lingering.send(b"no request\r\n\r\n")
        lingering.head()
        server.wait_status(lambda status: states(status) == [1, 1, 1, 1])
        reading.send(b"\r\n")
        assert reading.response().body == b"five\n"
        server.wait_status(lambda status: states(status)[1] == 0)
    server.wait_status(lambda status: states(status) == [0, 0, 0, 0])


def test_workers_by_process(server):
    def processes(status=None):
        return (status or server.status())["workers"]["pools"][0]["processes"]

    (pool,) = server.status()["workers"]["pools"]
    assert (pool["prefix"], pool["command"], pool["waiting"]) == ('/a"b', [OBEY], 0)
    path = "/a%22b"
    with Client(server.port) as one, Client(server.port) as hanging:
        assert int(one.get(path + "/pid").body) in [each["pid"] for each in processes()]
        hung = server.errors.count("worker-obey: hangs")
        hanging.send(request(path + "/hang"))
        # Another worker gets a request that the first one has not taken when it ends.
        assert server.errors.wait("worker-obey: hangs", hung + 1)
        server.wait_status(lambda status: sum(each["in_flight"] for each in processes(status)) == 1)
        (busy,) = [each for each in processes() if each["in_flight"]]
        assert busy["up"] and busy["requests"] >= 1
        server.workers()[busy["pid"]].kill()
        assert hanging.response().status == 502
    server.wait_status(lambda status: processes(status)[busy["number"]]["restarts"] == 1)
    again = processes()[busy["number"]]
    assert again["up"] and again["pid"] not in (0, busy["pid"])
    assert (again["failures"], again["in_flight"]) == (busy["failures"] + 1, 0)
    assert processes()[1 - busy["number"]]["restarts"] == 0


def test_metrics(server):
    with Client(server.port) as client:
        client.get("/five")
        client.get("/large")
    status = server.status()
    got = fetch(server.port, "/.sweet/metrics")
    assert got["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = metrics.parse(got.body.decode())
    for name, key in [("sweet_cache_size_bytes", "size"), ("sweet_cache_units", "units"),
                      ("sweet_cache_inserts_total", "inserts"),
                      ("sweet_cache_evictions_total", "evictions")]:
        # A thread that reads a file may insert it in between.
        assert metrics.value(found, name) >= status["cache"][key]
    for method in ("copy", "splice", "zerocopy", "kernel"):
        for unit in ("sends", "bytes"):
            assert (metrics.value(found, f"sweet_transmit_{unit}_total", method=method)
                    >= status["transmit"][method][unit])
    assert metrics.value(found, "sweet_requests_total") == status["requests"] + 1
    assert metrics.value(found, "sweet_response_seconds_count") >= status["latency_us"]["count"]
    assert metrics.value(found, "sweet_connections", state="working") == 1
    assert metrics.value(found, "sweet_start_time_seconds") == status["started_ms"] / 1000
    for worker in "01":
        assert metrics.value(found, "sweet_worker_up", pool='/a"b', worker=worker) == 1
    assert metrics.value(found, "sweet_thread_requests_total", thread="1") >= 0


def test_form_by_accept(server):
    for accept, kind in [("", "application/json"), ("Accept: */*\r\n", "application/json"),
                         ("Accept: text/html,*/*;q=0.8\r\n", "text/html; charset=utf-8")]:
        got = fetch(server.port, "/.sweet/status", fields=accept)
        assert (got.status, got["Content-Type"], got["Vary"]) == (200, kind, "Accept")
        head = fetch(server.port, "/.sweet/status", "HEAD", accept)
        assert (head["Content-Type"], head.body) == (kind, b"")
        assert got["Cache-Control"] == "no-store"
    page = fetch(server.port, "/.sweet/status.html")
    path = os.path.join(os.environ["srcdir"], "sweet", "handler", "status.html")
    with open(path, "rb") as source:
        assert page.body == source.read()
    assert json.loads(fetch(server.port, "/.sweet/status.json", fields=accept).body)["pid"]
    assert fetch(server.port, "/.sweet/none").status == 404


def test_who_may_see(root):
    with running("epoll", root, "--status-allow", "192.0.2.1") as server:
        for name in ALL:
            assert fetch(server.port, "/.sweet/" + name).status == 404
        assert fetch(server.port, "/.sweet/ready").body == b"ready\n"
    with running("epoll", root, "--status", "off") as server:
        for name in (*ALL, "ready"):
            assert fetch(server.port, "/.sweet/" + name).status == 404


def test_ready(server):
    got = fetch(server.port, "/.sweet/ready")
    assert (got.status, got.body, got["Cache-Control"]) == (200, b"ready\n", "no-store")


def test_not_ready_before_the_end(root):
    with running("epoll", root, "--threads", 2, "--drain-delay", "60s") as server:
        before = server.status()
        assert before["draining"] is False
        server.send_signal(signal.SIGTERM)
        server.wait_status(lambda status: status["draining"])
        got = fetch(server.port, "/.sweet/ready")
        assert (got.status, got.body) == (503, b"draining\n")
        found = metrics.parse(fetch(server.port, "/.sweet/metrics").body.decode())
        assert metrics.value(found, "sweet_draining") == 1
        # Requests of clients other than load balancers are still served.
        assert fetch(server.port, "/five").body == b"five\n"


def test_configuration_by_number(root, tmp_path):
    config = write(tmp_path / "conf", f"[sweet]\nlisten=127.0.0.1:0\nroot={root}\n".encode())
    with running("epoll", None, "--config", config, listen=None) as server:
        first = server.status()["config"]
        assert first["generation"] == 1
        server.send_signal(signal.SIGHUP)
        server.wait_status(lambda status: status["config"]["generation"] == 2)
        assert server.status()["config"]["loaded_ms"] > first["loaded_ms"]
        config.write_text(f"[sweet]\nlisten=127.0.0.1:0\nroot={root}\nstatus-allow=192.0.2.1\n")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded ", 2), server.errors.text()
        assert fetch(server.port, "/.sweet/status").status == 404
        assert fetch(server.port, "/.sweet/ready").status == 200


def test_large_cache_of_texts(root):
    """Texts that do not fit into the memory after a head use the cache, and leave nothing there."""
    with running("epoll", root, "--cache-size", "1M") as server, Client(server.port) as client:
        before = server.status()
        for _ in range(400 // SCALE):
            assert len(client.get("/.sweet/status.html").body) > 4096
        # The last text has left the cache before the next request begins.
        assert client.get("/.sweet/ready").status == 200
        after = server.status()
        assert (after["cache"]["units"], after["cache"]["failures"]) == (0, 0)
        assert after["cache"]["used"] <= before["cache"]["size"]
        assert after["bodies"]["by_cache_id"] >= before["bodies"]["by_cache_id"] + 400 // SCALE
