# SPDX-License-Identifier: MIT
"""What bench says about its targets: ratios, limits, and figures of guests."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import types

import pytest

BENCH = os.path.join(os.environ["srcdir"], "bench")
sys.path.insert(0, BENCH)

from lib import guests, kernel, pipe, report, scaling, servers, weave  # noqa: E402
from lib.experiments import EXPERIMENTS, Context  # noqa: E402
from lib.process import Failure  # noqa: E402
from test_bench import case, cases, content  # noqa: E402

pytestmark = pytest.mark.bench


# --- targets ---------------------------------------------------------------------


def costs(parameters, **rows):
    """A case whose rows used that many us of CPU for a request, run by run."""
    one = case(parameters, **rows)
    for row, values in rows.items():
        for run, value in zip(one["runs"][row], values):
            run.update(cpu_us_per_request=value, requests_per_s=1e6 / value)
    return one


def outcomes(verdicts):
    return {text: (round(value, 3), bar, reached) for text, value, bar, reached in verdicts}


def test_bars_of_fixed_are_of_the_best_peer():
    one = costs({"size": 1 << 20, "connections": 64}, **{
        "sweet": [10, 10, 90], "sweet-posix": [12, 12, 12], "nginx": [13, 13, 1],
        "lighttpd": [12, 12, 12], "apache": [30, 30, 30], "null": [9, 9, 9],
        "null-epoll": [8, 9.5, 9.5]})
    assert outcomes(EXPERIMENTS["fixed"].verdicts([one])) == {
        "CPU time, best peer (lighttpd) : SWEET, 1 MB, 64c": (1.2, 1.15, True),
        "requests/s, SWEET : best peer (lighttpd), 1 MB, 64c": (1.2, 1.15, True),
        "CPU time, null : SWEET, 1 MB, 64c": (0.9, 0.9, True)}


def test_missed_bar_of_fixed_tells_the_limit():
    one = costs({"size": 10 << 10, "connections": 64}, **{
        "sweet": [10], "sweet-posix": [11], "nginx": [11], "null": [10], "null-epoll": [8]})
    assert outcomes(EXPERIMENTS["fixed"].verdicts([one])) == {
        "CPU time, best peer (nginx) : SWEET, 10 KB, 64c": (1.1, 1.15, False),
        "CPU time, best peer (nginx) : null, 10 KB, 64c": (1.375, 1.15, None),
        "CPU time, null : SWEET, 10 KB, 64c": (0.8, 0.9, False),
        "CPU time, SWEET posix : SWEET, 10 KB, 64c": (1.1, 1.12, False)}
    assert [report.outcome(reached) for reached in (True, False, None)] \
        == ["reached", "MISSED", "the limit"]


def test_bars_of_compress_are_of_nginx_at_100_kb_only():
    rows = {"sweet": [10, 10], "sweet-precompressed": [9.6, 9.6], "nginx": [48, 48]}
    small, large = (costs({"size": size, "connections": 16}, **rows) for size in (10240, 102400))
    both = {name: (0.96, 0.95, True) for case in ("10 KB, 16c", "100 KB, 16c") for name in (
        f"requests/s, kept variant : precompressed file, {case}",
        f"CPU time, precompressed file : kept variant, {case}")}
    assert outcomes(EXPERIMENTS["compress"].verdicts([small, large])) == {
        **both, "requests/s, kept variant : nginx with gzip on, 100 KB, 16c": (4.8, 5, False)}


def test_bars_of_tux_are_of_replies_on_single_connections(content):
    """Not of CPU time on kept ones; and errors of httperf are not errors of the server."""
    def rising(rate, sweet, apache, failed, own):
        one = case({"rate": rate, "size": 1024}, sweet=sweet, apache=apache)
        for runs in one["runs"].values():
            for run in runs:
                run.update(error_percent=failed, own_error_percent=own)
        return {**one, "summary": {}}

    kept = costs({"size": 1024, "connection": "kept"}, sweet=[1], apache=[8], nginx=[2])
    content["cases"] = [{**kept, "summary": {}}, rising(10, [10, 10, 10], [10, 10, 10], 0, 0),
                        rising(20, [18, 18, 1], [12, 12, 12], 30, 28)]
    assert EXPERIMENTS["tux"].derive(content)
    (verdict,) = content["verdicts"]
    assert (verdict["value"], verdict["bar"], verdict["reached"]) == (1.5, 7.0, False)
    assert "a connection for each request" in verdict["text"]
    most, cpu, far = (table["rows"] for table in content["tables"])
    assert most[0] == ["1 KB", "sweet", "18.00", "20", "2.00", "28.00", "1.50", "7.02"]
    assert [row[1] for row in cpu] == ["8.00 (8.00-8.00)"]
    assert [row[:4] for row in far] == [["rate 20, 1 KB", "sweet", "3", "1.00"]]
    assert content["cases"][2]["summary"]["sweet"]["server_error_percent"]["median"] == 2


def test_bars_of_fixed_with_a_connection_for_each_request():
    one = costs({"size": 1 << 10, "connections": 64, "connection": "closed"},
                sweet=[10], nginx=[11], apache=[20], null=[5])
    assert outcomes(EXPERIMENTS["fixed"].verdicts([one])) == {
        "CPU time, best peer (nginx) : SWEET, 1 KB, 64c, closed": (1.1, 1, True),
        "CPU time, Apache : SWEET, 1 KB, 64c, closed": (2.0, 2.4, False)}


def test_null_server_is_started_for_each_size(tmp_path):
    context = types.SimpleNamespace(build=os.environ["builddir"], directory=str(tmp_path),
                                    server_cpu=min(os.sched_getaffinity(0)))
    null = servers.NullFiles(context, "epoll", 3)
    try:
        null.begin()
        for size, connection in ((100, "kept"), (300 << 10, "kept"), (1024, "one")):
            null.serve(size, connection)  # fails unless as many bytes come
            null.check_alive()
            assert null.cpu_now().processes
    finally:
        null.stop()


def test_bars_of_specweb_are_of_the_best_peer_of_each_case():
    some = [costs({"clients": 4}, sweet=[10], nginx=[14], h2o=[13], apache=[20],
                  **{"sweet-posix": [11]}),
            costs({"clients": 80}, sweet=[10], nginx=[11], h2o=[13], apache=[20],
                  **{"sweet-posix": [11]})]
    assert list(outcomes(EXPERIMENTS["specweb"].verdicts(some)).values())[:2] \
        == [(1.2, 1.2, True), (1.1, 1, True)]
    assert EXPERIMENTS["specweb"].verdicts([]) == []


def test_bars_of_trace_are_of_warm_files_and_the_whole_log():
    rows = {"sweet": [10], "sweet-posix": [12], "nginx": [11], "lighttpd": [15]}
    some = [costs({"set_mb": size, "cache": "larger", "files": files}, **rows)
            for size in (10, 559) for files in ("warm", "cold")]
    for one in some:
        for row, runs in one["runs"].items():
            for run in runs:
                run["mb_per_s"] = run["requests_per_s"]
                if row == "nginx":  # as much CPU time and as many bytes for twice the requests
                    run["cpu_us_per_request"] /= 2
                    run["requests_per_s"] *= 2
    found = outcomes(EXPERIMENTS["trace"].verdicts(some))
    assert found["CPU time by MB, best peer (nginx) : SWEET, 10 MB"] == (1.1, 1, True)
    assert found["CPU time by MB, best peer (nginx) : SWEET, 559 MB"] == (1.1, 1.2, False)
    assert len(found) == 4


def test_bars_of_dynamic_tell_the_limit_where_they_are_missed():
    rows = {"sweet": [10], "null": [5], "sweet-kept": [10], "sweet-static": [10],
            "nginx-fastcgi": [30], "apache-fastcgi": [50]}
    found = EXPERIMENTS["dynamic"].verdicts([costs({"size": 1 << 10, "connections": 64}, **rows)])
    assert outcomes(found) == {
        "1 KB, 64c: sweet / nginx-fastcgi, requests/s": (3, 4, False),
        "1 KB, 64c: null / nginx-fastcgi, requests/s": (6, 4, None),
        "1 KB, 64c: sweet-kept / sweet-static, requests/s": (1, 0.9, True)}


def test_bars_of_few_are_of_more_connections_than_processes():
    some = [costs({"connections": 5 * times, "program": "php-fpm", "processes": 5}, sweet=[10],
                  nginx=[20]) for times in (1, 2, 8)]
    for one, p99 in zip(some, (900, 150, 151)):
        one["runs"]["sweet"][0]["p99_us"] = p99
        one["runs"]["nginx"][0]["p99_us"] = 100
    assert outcomes(EXPERIMENTS["few"].verdicts(some)) == {
        "10c, php-fpm, processes 5: p99, SWEET : nginx": (1.5, "at most 1.5", True),
        "10c, php-fpm, processes 5: requests/s, SWEET : nginx": (2, 1, True),
        "40c, php-fpm, processes 5: p99, SWEET : nginx": (1.51, "at most 1.5", False),
        "40c, php-fpm, processes 5: requests/s, SWEET : nginx": (2, 1, True)}


def test_bar_of_latency_is_of_the_best_peer_at_the_same_rate():
    some = [costs({"size": 1 << 10, "loop": loop}, sweet=[1, 1, 1], nginx=[1, 1, 1], h2o=[1, 1, 1])
            for loop in ("closed", "open")]
    for row, values in (("sweet", (90, 95, 500)), ("nginx", (100, 100, 100)),
                        ("h2o", (80, 200, 200))):
        for run, value in zip(some[1]["runs"][row], values):
            run["p99_us"] = value
    del some[0]["runs"]["sweet"]
    ((text, value, bar, reached),) = EXPERIMENTS["latency"].verdicts(some)
    assert (value, bar, reached) == (0.95, "at most 1", True)
    assert "(nginx), 1 KB" in text


def test_equal_shares():
    assert pipe.jain([5, 5, 5, 5]) == 1.0
    assert pipe.jain([1, 0, 0, 0]) == 0.25
    assert pipe.jain([0, 0]) == 0
    assert scaling.least_by_most([2, 4]) == 0.5 and scaling.least_by_most([0, 0]) == 0


def test_bars_of_a_pipe():
    def one(link, mb, fair):
        case_of = case({"connections": 16, "link": link, "control": "x"}, sweet=[1], nginx=[1])
        for row, values in (("sweet", (mb, fair)), ("nginx", (100, 0.8))):
            case_of["runs"][row][0].update(zip(("steady_mb_per_s", "jain"), values))
        return pipe.verdicts([case_of])

    assert [reached for *_, reached in one("wide", 96, 0.85)] == [True, True]
    assert [reached for *_, reached in one("wide", 94, 0.7)] == [False, False]
    assert [reached for *_, reached in one("loopback", 1, 0.95)] == [True]


@pytest.fixture
def page():
    """page(answer): the port of a server that sends these bytes for every request."""
    listener = socket.create_server(("127.0.0.1", 0))
    ending = threading.Event()

    def serve(answer):
        with listener.accept()[0] as connection, contextlib.suppress(OSError):
            while not ending.is_set() and connection.recv(4096):
                connection.sendall(answer)

    def begin(answer):
        threading.Thread(target=serve, args=[answer], daemon=True).start()
        return listener.getsockname()[1]

    yield begin
    ending.set()
    listener.close()


def pull(port, size):
    argv = [sys.executable, os.path.join(BENCH, "pull.py"), "127.0.0.1", str(port), "/x",
            str(size), "1", "0.4", "0.1"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_pull_counts_bodies(page):
    size = 100_000
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
    told = json.loads(pull(page(head + bytes(size)), size).stdout)
    assert told["bytes"][0] >= told["steady_bytes"][0] > 0
    assert told["bytes"][0] >= size and told["first_seconds"] < told["seconds"]
    assert told["steady_seconds"] < told["seconds"]


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\n123456789",
    b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678",
    b"HTTP/1.1 200 OK\r\n\r\n123456789",
])
def test_pull_refuses_other_answers(page, answer):
    done = pull(page(answer), 9)
    assert done.returncode == 1 and "the server said" in done.stderr


# --- kernel: figures of guests ------------------------------------------------------


def kernel_case(body, network, size, **runs):
    return {"parameters": {"kernel": "Linux 6.1", "body": body,
                           "network": kernel.NETWORKS[network], "size": size},
            "runs": {way.replace("_", ", "): [{kernel.FIELD: n} for n in counts]
                     for way, counts in runs.items()}}


def test_kernel_bars():
    def reached(*case, **runs):
        return [(round(value, 2), bar, good) for _, value, bar, good
                in kernel.verdicts([kernel_case(*case, **runs)])]

    assert reached("static", "veth-1500-offload", kernel.MB, module=[2, 9, 3], write=[9],
                   sendfile=[6]) == [(3, 3, True), (2, 3, False)]
    assert reached("static", "veth-9000", kernel.MB, module=[100], sendfile=[150],
                   **{"module_kept sums": [91]}) == [(1.5, 1.5, True), (9, 10, False)]
    assert reached("static", "veth-1500", kernel.MB, module=[2], sendfile=[3]) == [(1.5, 1.5, True)]
    assert reached("static", "veth-1500-offload", kernel.KB, module=[1]) == []
    # Small documents by the method for small ones.
    assert reached("dynamic", "virtio-1500", 10 * kernel.KB, module=[20], module_put=[10],
                   pipe_write=[11]) == [(1.1, 1.2, False)]
    assert reached("dynamic", "virtio-1500", 100 * kernel.KB, module=[10], module_put=[20],
                   pipe_write=[15]) == [(1.5, 1.5, True)]
    assert reached("dynamic", "veth-9000", kernel.MB, module=[1], pipe_write=[1]) == []


def test_kernel_is_skipped_without_qemu(monkeypatch, tmp_path):
    context = types.SimpleNamespace(source=BENCH, directory=str(tmp_path), build=str(tmp_path),
                                    skipped=None)
    monkeypatch.setattr(guests, "which", lambda name: None)
    monkeypatch.delenv("NABC_NO_SKIP", raising=False)
    kernel.measure(context)
    assert context.skipped.startswith("no qemu-system-x86_64; on Debian: apt-get install")
    assert weave.section("{{command}}\n", {"skipped": context.skipped}, "kernel") \
        == f"Not measured: {context.skipped}.\n"
    monkeypatch.setenv("NABC_NO_SKIP", "1")
    with pytest.raises(Failure, match="no qemu"):
        kernel.measure(context)


def test_kernel_tables_are_its_own(capsys):
    options = types.SimpleNamespace(build="", cpus=(0, 1), runs=1, seconds=1, sizes=None,
                                    connections=None, io=[], quick=False, before=None,
                                    servers=None)
    context = Context(options, BENCH, "")
    kernel.add_cases(context, "6.1", [("veth-1500", "static", "write", 1024, 4000),
                                      ("veth-1500", "static", "module", 1024, 2000)])
    kernel.tell(context)
    content = {"cases": context.cases, "tables": context.tables, "columns": None}
    assert "| veth, no offload, MTU 1500 | 1 KB | 4,000 (2.00) | 2,000 (1.00) |" \
        in weave.tables(content)
    assert "server" not in weave.tables(content)
    assert report.fields(context.cases) == [kernel.FIELD, "per_byte"]
    capsys.readouterr()
