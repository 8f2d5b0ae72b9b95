# SPDX-License-Identifier: MIT
"""What bench computes and writes: ratios, tables, CSV, RESULTS.md; and what it
reads of its load generators.  It measures nothing here: tests/check-bench.sh does that."""

import contextlib
import csv
import importlib.machinery
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import threading
import types

import pytest

BENCH = os.path.join(os.environ["srcdir"], "bench")
sys.path.insert(0, BENCH)

from lib import (kernel, load, pipe, plot, report, results, sanity, scaling, servers,  # noqa: E402
                 weave)
from lib.experiments import EXPERIMENTS, Context  # noqa: E402
from lib.process import Failure  # noqa: E402

pytestmark = pytest.mark.bench


def figures(rate, **more):
    return {"requests": rate, "seconds": 1.0, "requests_per_s": rate, "mb_per_s": rate / 1000,
            "p50_us": 10.0, "p99_us": None, "cpu_us_per_request": 1e6 / rate,
            "client_us_per_request": 2.0, "core_percent": 90.0, "other_percent": 0.0, **more}


def case(parameters, **rows):
    return {"parameters": parameters, "runs": {row: [figures(rate) for rate in rates]
                                               for row, rates in rows.items()}}


@pytest.fixture
def cases():
    return [case({"size": 1024, "connections": 64}, sweet=[100, 200, 300], nginx=[50, 100, 100]),
            case({"size": 1 << 20, "connections": 64}, sweet=[10, 30], nginx=[10, 10])]


@pytest.fixture
def content(cases):
    return {
        "experiment": "fixed", "command": "bench/bench fixed", "date": "2020-02-02 02:02 UTC",
        "machine": {"cpus": 2, "cpu_model": "a|b", "kernel": "6.1", "load_average": 0.5},
        "servers": {"sweet": {"version": "sweet 1"}, "other": {"version": "sweet 1"}},
        "options": {"runs": 3, "seconds": 1, "quick": False},
        "cases": [{**one, "summary": {
            row: {field: triple and {"median": triple[0]}
                  for field, triple in report.summary(runs).items()}
            for row, runs in one["runs"].items()}} for one in cases],
        "columns": report.COLUMNS, "records": [],
        "tables": [{"title": "two\nwords", "heads": ["what", "", "ns"],
                    "rows": [["a", "", "1.5"], ["b", "", ""]]}],
        "verdicts": [{"text": "twice", "value": 2.0, "bar": 1.5, "reached": True},
                     {"text": "half", "value": 0.4, "bar": 0.5, "reached": False}],
        "plots": [["fixed-rate.svg", "fixed: rate"]],
    }


def test_ratio_is_of_medians_and_pairs(cases):
    runs = cases[0]["runs"]
    assert report.ratio(runs["sweet"], runs["nginx"], "requests_per_s") == (2.0, 2.0, 3.0)
    (row,) = report.ratios(cases[0])
    assert (row["peer"], row["sweet"]) == ("nginx", "sweet")
    assert row["cpu"][0] == pytest.approx(2.0)


def test_summary_leaves_out_what_is_not_known(cases):
    cases[0]["runs"]["sweet"][0]["p99_us"] = 7
    of = report.summary(cases[0]["runs"]["sweet"])
    assert of["p99_us"] == (7, 7, 7)
    assert report.summary(cases[0]["runs"]["nginx"])["p99_us"] is None
    assert report.spread(None) == "-" == report.number(None)


def test_names():
    assert report.case_name(case({"size": 100, "connections": 4, "rate": 5, "way": "kept"})) \
        == "100 B, 4c, rate 5, kept"
    assert [report.size_name(size) for size in (1023, 1024, 320 << 10, 1 << 20)] \
        == ["1023 B", "1 KB", "320 KB", "1 MB"]


def test_csv_has_a_column_for_each_parameter_and_field(cases, content, tmp_path):
    content["cases"].append(case({"size": 1, "rate": 9}, apache=[40]))
    content["cases"][-1]["runs"]["apache"][0]["error_percent"] = 2.5
    report.write_csv(tmp_path / "x.csv", content)
    with open(tmp_path / "x.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 3 + 3 + 2 + 2 + 1
    assert (lines[0]["size"], lines[0]["rate"], lines[0]["run"]) == ("1024", "", "1")
    assert lines[-1]["connections"] == "" and lines[-1]["rate"] == "9"
    assert lines[-1]["error_percent"] == "2.500" and lines[0]["error_percent"] == ""


def test_csv_of_records(content, tmp_path):
    content.update(cases=[], records=[{"a": 1}, {"a": 2, "b": "x"}])
    report.write_csv(tmp_path / "x.csv", content)
    assert (tmp_path / "x.csv").read_text().split() == ["a,b", "1,", "2,x"]


def test_section_is_woven(content):
    text = weave.section("# Title\n\n{{command}}\n\n{{verdict}}\n\n{{plot}}\n\n{{table}}\n\n"
                         "It is {{ratio sweet nginx requests_per_s size=1024}} times as fast,"
                         " {{figure nginx requests_per_s size=1048576}} a second.\n",
                         content, "fixed")
    assert "`bench/bench fixed`, 2020-02-02" in text and "sweet 1." in text
    assert "| half | 0.40 | 0.5 | **missed** |" in text
    assert "![fixed: rate](results/fixed-rate.svg)" in text
    assert "| 1 KB, 64c | nginx | 100.0 (50.00-100.0) |" in text
    assert "two words:\n\n| what | ns |\n| --- | --: |\n| a | 1.5 |" in text
    assert "It is 2.00 times as fast, 10.00 a second." in text


def test_disturbed_runs_are_told(content):
    """Under the command of a section, as bench itself warns of them."""
    assert "Disturbed" not in weave.section("{{command}}\n", content, "fixed")
    content["cases"][0]["runs"]["nginx"][2]["other_percent"] = 9.4
    content["cases"][1]["runs"]["sweet"][0]["other_percent"] = 5.6
    assert ("**Disturbed**: in 2 of 10 runs other programs took more than 5 % of the servers' CPU;"
            " worst: 9 % in run 3 of nginx, 1 KB, 64c."
            in weave.section("{{command}}\n", content, "fixed"))


def test_section_without_results_says_so():
    text = weave.section("# T\n\n{{command}}\n{{table}}\n{{figure a b}}\n", None, "fixed")
    assert "Not measured yet: `bench/bench fixed`." in text and "{{" not in text


def test_section_names_the_command_in_any_case(content):
    assert "`bench/bench fixed`" in weave.section("only text\n", content, "fixed")


@pytest.mark.parametrize("text", ["{{figure sweet requests_per_s size=5}}", "{{figure x y}}",
                                  "{{nonsense}}"])
def test_section_that_asks_for_what_is_not_there(content, text):
    with pytest.raises(Failure, match="sections/fixed.md"):
        weave.section(text, content, "fixed")


def test_results_are_woven_in_order(content, tmp_path):
    os.makedirs(tmp_path / "results")
    os.makedirs(tmp_path / "sections")
    (tmp_path / "sections/fixed.md").write_text("<!-- hidden -->\n# One size\n\n## Why\n")
    (tmp_path / "results/fixed.json").write_text(json.dumps(content))
    weave.weave(tmp_path, tmp_path / "results", ["idle", "fixed"],
                {"idle": "idle ones", "fixed": ""}, tmp_path / "RESULTS.md")
    text = (tmp_path / "RESULTS.md").read_text()
    assert text.index("## idle\n\nIdle ones.") < text.index("## fixed\n\n**One size**")
    assert "\n### Why\n" in text and "hidden" not in text
    assert "| [fixed](#fixed) | twice | 2.00 | 1.5 | reached |" in text


def test_plot_of_lines_and_of_columns(cases):
    script = plot.script(plot.USUAL[0], cases, "a 'title'", "/x.svg")
    assert "set title 'a ''title'''" in script and "set logscale x" in script
    assert "'1 KB' 1024" in script and "1024 200 100 300" in script
    words = [case({"way": "a"}, sweet=[1]), case({"way": "b"}, sweet=[2])]
    assert "with boxes" in plot.script(plot.USUAL[0], words, "", "/x.svg")
    assert plot.script(plot.Plot("p99_us", "", ""), cases, "", "/x.svg") is None


def test_plots_stand_apart_by_the_other_parameters():
    some = [case({"size": size, "way": way}, sweet=[1]) for size in (1, 2) for way in "ab"]
    assert {name: len(part) for name, part in plot.panels(some, "size").items()} \
        == {"a": 2, "b": 2}
    assert plot.file_name("fixed", plot.Plot("p50_us", "", ""), "1 KB, a") \
        == "fixed-p50-us-1-KB-a.svg"


def left(directory, content):
    (directory / "fixed.json").write_text(json.dumps(content))
    (directory / "fixed.csv").write_text("x")
    (directory / "fixed-rate.svg").write_text("x")
    return sanity.complaints(directory, "fixed")


def test_sanity(content, tmp_path):
    assert left(tmp_path, content) == []
    assert sanity.complaints(tmp_path, "idle") == ["it left no results"]
    content["cases"][0]["runs"]["sweet"][1]["requests_per_s"] = 0
    content["cases"][1]["runs"]["nginx"] = []
    content["verdicts"][0]["value"] = float("nan")
    assert len(left(tmp_path, content)) == 3
    os.unlink(tmp_path / "fixed-rate.svg")
    assert sanity.complaints(tmp_path, "fixed")[-1].startswith("fixed-rate.svg")
    content.update(cases=[], verdicts=[])
    assert left(tmp_path, content) == ["neither cases nor records"]
    content.update(skipped="no QEMU")
    assert left(tmp_path, content) == []


HTTPERF = """\
Total: connections 100 requests 90 replies 80 test-duration 2.000 s

Connection time [ms]: min 0.2 avg 0.4 max 1.0 median 0.5 stddev 0.1
Reply time [ms]: response 0.3 transfer 0.1
Reply size [B]: header 100.0 content 1024.0 footer 0.0 (total 1124.0)
Reply status: 1xx=0 2xx={good} 3xx=0 4xx=0 5xx=0

Errors: total 20 client-timo 10 socket-timo 0 connrefused 0 connreset 0
Errors: fd-unavail 5 addrunavail 0 ftab-full 0 other 5
"""


@pytest.fixture
def httperf(monkeypatch):
    monkeypatch.setattr(load, "find_program", lambda name: name)
    return load.Httperf(0, 50, 1024, "/x")


def test_httperf_is_read(httperf):
    got = httperf.figures("s", HTTPERF.format(good=80), 0, 100, 10)
    assert (got["requests"], got["bytes"], got["duration"]) == (80, 80 * 1024, 2e6)
    assert (got["p50"], got["error_percent"], got["own_error_percent"]) == (500, 20, 5)
    assert got["server_error_percent"] == 15


def test_httperf_fails_on_bad_replies(httperf):
    for output, status in ((HTTPERF.format(good=79), 0), (HTTPERF.format(good=80), 1), ("", 0)):
        with pytest.raises(Failure):
            httperf.figures("s", output, status, 100, 10)


H2LOAD = """\
finished in 1.00s, 100.00 req/s, 1.00MB/s
requests: 104 total, 106 started, 104 done, 104 succeeded, {failed} failed, 0 errored, 0 timeout
status codes: 104 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 1.00MB (1048576) total, 20.00KB (20480) headers (space savings 0.00%), 104KB ({data}) data
"""


def test_h2load_is_read(monkeypatch):
    monkeypatch.setattr(load, "find_program", lambda name: name)
    client = load.H2load(0, 4, 1024, "/x")
    times = list(range(100))
    got = client.figures("s", H2LOAD.format(failed=0, data=106496), 0, times, 1)
    assert got == {"requests": 104, "bytes": 106496, "duration": 1e6, "p50": 50, "p99": 99}
    for failed, data in ((1, 106496), (0, 100)):
        with pytest.raises(Failure):
            client.figures("s", H2LOAD.format(failed=failed, data=data), 0, times, 1)


def command():
    loader = importlib.machinery.SourceFileLoader("bench_command", os.path.join(BENCH, "bench"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_command",
                                                                             loader))
    loader.exec_module(module)
    return module


def test_command_line_is_told_without_places():
    tell = command().command_line
    assert tell(["fixed", "--quick", "--results", "/x", "--json=/y", "--sizes", "1K"]) \
        == "bench/bench fixed --quick --sizes 1K"


def run(*arguments):
    return subprocess.run([sys.executable, os.path.join(BENCH, "bench"), *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60, check=False)


def test_list_names_all():
    done = run("--list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(EXPERIMENTS)


def test_unknown_experiment_names_those_there_are():
    done = run("nonsense")
    assert done.returncode == 2 and "fixed" in done.stdout and "all" in done.stdout


def test_all_names_every_missing_package_at_once(monkeypatch):
    monkeypatch.setattr(servers, "which", lambda name: None)
    missing = servers.find_missing()
    assert {"wrk", "h2o", "lighttpd", "gnuplot-nox", "apache2-bin"} <= set(missing)
    assert len(missing) == len(set(missing))


@pytest.mark.parametrize("file", ["bench/README.md", "tests/runner/suites.py"])
def test_packages_are_named_where_they_are_installed(file):
    with open(os.path.join(os.path.dirname(BENCH), file), encoding="utf-8") as text:
        words = set(re.split(r"[\s\"]+", text.read()))
    packages = {*servers.PACKAGES.values(), *servers.HEADERS.values()} - {"gcc"}
    assert packages <= words


FAKE = """\
import sys, time
if sys.argv[1] == "slow":
    time.sleep(30)
sys.exit(sys.argv[1] == "bad")
"""


def test_all_goes_on_after_failures(monkeypatch, tmp_path, capfd):
    (tmp_path / "bench").write_text(FAKE)
    monkeypatch.setattr(results, "find_missing", lambda: [])
    monkeypatch.setattr(results, "LIMIT_SECONDS", 2)
    # Children that bench has beside this one are other tests' servers here.
    monkeypatch.setattr(results.process, "end_all", lambda: None)
    os.makedirs(tmp_path / "results")
    (tmp_path / "results/bad.json").write_text("of yesterday")
    options = types.SimpleNamespace(quick=False, build="/", given={},
                                    results=str(tmp_path / "results"))
    names = {name: types.SimpleNamespace(summary=name) for name in ("good", "bad", "slow", "last")}
    assert results.measure_all(options, str(tmp_path), names) == 1
    out, err = capfd.readouterr()
    assert "== last (4 of 4) ==" in out and "slow: 2 s, FAILED: did not end in 2 s" in out
    assert "bad failed: status 1" in err and "last failed" not in err
    assert not os.path.exists(tmp_path / "results/bad.json")
    assert "Not measured yet: `bench/bench bad`." in (tmp_path / "RESULTS.md").read_text()
    del names["bad"], names["slow"]
    assert results.measure_all(options, str(tmp_path), names) == 0


def test_all_begins_with_what_is_missing(monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(results, "find_missing", lambda: ["h2o", "wrk"])
    options = types.SimpleNamespace(results=str(tmp_path))
    assert results.measure_all(options, str(tmp_path), {}) == 1
    assert "h2o wrk" in capfd.readouterr().err


@pytest.mark.needs("gnuplot")
def test_replacement_leaves_results(tmp_path):
    done = run("replacement", "--percents", "10", "--build", os.environ["builddir"],
               "--results", str(tmp_path / "results"))
    assert done.returncode == 0, done.stdout
    assert sanity.complaints(tmp_path / "results", "replacement") == []
    done = run("results", "--results", str(tmp_path / "results"))
    assert done.returncode == 0, done.stdout
    text = (tmp_path / "RESULTS.md").read_text()
    assert "`bench/bench replacement --percents 10`" in text
    assert "Not measured yet: `bench/bench fixed`." in text


# --- bars ------------------------------------------------------------------------


def costs(parameters, **rows):
    """A case whose rows took so many us of CPU for a request, run by run."""
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


def test_bars_of_tux_are_of_replies_on_single_connections(content):
    """Not of CPU time on kept ones; and httperf's own errors are not the server's."""
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
                if row == "nginx":  # as much CPU time and as many bytes by twice the requests
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
    """page(answer): the port of a server that says that again and again, whatever it is asked."""
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
    # Small documents by the way that is made for them.
    assert reached("dynamic", "virtio-1500", 10 * kernel.KB, module=[20], module_put=[10],
                   pipe_write=[11]) == [(1.1, 1.2, False)]
    assert reached("dynamic", "virtio-1500", 100 * kernel.KB, module=[10], module_put=[20],
                   pipe_write=[15]) == [(1.5, 1.5, True)]
    assert reached("dynamic", "veth-9000", kernel.MB, module=[1], pipe_write=[1]) == []


def test_kernel_is_skipped_without_qemu(monkeypatch, tmp_path):
    context = types.SimpleNamespace(source=BENCH, directory=str(tmp_path), build=str(tmp_path),
                                    skipped=None)
    monkeypatch.setattr(kernel, "which", lambda name: None)
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
                                    connections=None, io=[], quick=False)
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
