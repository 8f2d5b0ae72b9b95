# SPDX-License-Identifier: MIT
"""The values that bench computes and writes: ratios, tables, CSV, RESULTS.md; and how
it reads the output of its load generators.  It measures nothing here:
tests/check-bench.sh does that."""

import csv
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
import types

import pytest

BENCH = os.path.join(os.environ["srcdir"], "bench")
sys.path.insert(0, BENCH)

from lib import load, plot, report, results, sanity, servers, weave  # noqa: E402
from lib.experiments import EXPERIMENTS  # noqa: E402
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
    """Listed under the command of a section, as bench itself warns of them."""
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
    monkeypatch.setattr(servers.os.path, "exists", lambda path: False)
    missing, peers = servers.find_missing()
    assert {"wrk", "gnuplot-nox", "libfcgi-dev"} <= set(missing)
    assert set(peers) == {"h2o", "lighttpd", "lighttpd-mod-openssl", "apache2-bin", "nginx-light",
                          "haproxy", "varnish"}
    assert len([*missing, *peers]) == len({*missing, *peers})


@pytest.mark.parametrize("file", ["bench/README.md", "tests/runner/suites.py"])
def test_packages_are_named_where_they_are_installed(file):
    with open(os.path.join(os.path.dirname(BENCH), file), encoding="utf-8") as text:
        words = set(re.split(r"[\s\"|]+", text.read()))
    packages = {name for some in (servers.PACKAGES, servers.PEERS, servers.FILES, servers.PEER_FILES)
                for name in some.values()} - {"gcc"}
    assert packages <= words


FAKE = """\
import sys, time
if sys.argv[1] == "slow":
    time.sleep(30)
sys.exit(sys.argv[1] == "bad")
"""


def test_all_goes_on_after_failures(monkeypatch, tmp_path, capfd):
    (tmp_path / "bench").write_text(FAKE)
    monkeypatch.setattr(results, "find_missing", lambda: ([], ["h2o"]))
    monkeypatch.setattr(results, "LIMIT_SECONDS", 2)
    # Other children of this process are servers of other tests.
    monkeypatch.setattr(results.process, "end_all", lambda: None)
    os.makedirs(tmp_path / "results")
    (tmp_path / "results/bad.json").write_text("of yesterday")
    options = types.SimpleNamespace(quick=False, build="/", given={},
                                    results=str(tmp_path / "results"))
    names = {name: types.SimpleNamespace(summary=name) for name in ("good", "bad", "slow", "last")}
    assert results.measure_all(options, str(tmp_path), names) == 1
    out, err = capfd.readouterr()
    assert "peers without figures, because these packages are not installed: h2o\n" in out
    assert "== last (4 of 4) ==" in out and "slow: 2 s, FAILED: did not end in 2 s" in out
    assert "bad failed: status 1" in err and "last failed" not in err
    assert not os.path.exists(tmp_path / "results/bad.json")
    assert "Not measured yet: `bench/bench bad`." in (tmp_path / "RESULTS.md").read_text()
    del names["bad"], names["slow"]
    assert results.measure_all(options, str(tmp_path), names) == 0


def test_all_begins_with_what_is_missing(monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(results, "find_missing", lambda: (["wrk"], ["h2o"]))
    options = types.SimpleNamespace(results=str(tmp_path))
    assert results.measure_all(options, str(tmp_path), {}) == 1
    assert "wrk h2o" in capfd.readouterr().err


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
