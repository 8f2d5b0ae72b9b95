# SPDX-License-Identifier: MIT
"""bench where peers are not installed: their rows stay, and say so, in each table and file."""

import csv
import os
import sys
import types

import pytest

BENCH = os.path.join(os.environ["srcdir"], "bench")
sys.path.insert(0, BENCH)

from lib import apache, nic, plot, report, sanity, servers, tls, tux, weave  # noqa: E402
from lib.experiments import EXPERIMENTS, Context  # noqa: E402
from lib.h2o import H2o  # noqa: E402
from lib.haproxy import HAProxy  # noqa: E402
from lib.lighttpd import Lighttpd  # noqa: E402
from lib.process import Failure  # noqa: E402
from test_bench_bars import costs  # noqa: E402

pytestmark = pytest.mark.bench
WORDS = "not installed"
KB, MB = 1 << 10, 1 << 20


@pytest.fixture
def lacking(monkeypatch):
    """lacking(*programs): these are not found, and the modules that come with them."""
    which = servers.which

    def lack(*programs):
        if "apache2" in programs:
            monkeypatch.setattr(apache, "MODULES", ())
        monkeypatch.setattr(servers, "which", lambda name: None if name in programs else which(name))
    return lack


@pytest.fixture
def context(tmp_path):
    options = types.SimpleNamespace(
        build=os.environ["builddir"], cpus=(0, 1), runs=1, seconds=1, sizes=[KB], connections=[4],
        io=["auto"], quick=True, client="wrk", before=None, servers=None)
    made = Context(options, BENCH, str(tmp_path))
    yield made
    made.stop()


def absent_case(parameters, absent, **rows):
    return {**costs(parameters, **rows), "absent": dict.fromkeys(absent, WORDS)}


def test_missing_peer_is_no_failure(lacking, context, tmp_path):
    lacking("h2o", "nginx", "haproxy")
    found = servers.peer("h2o", H2o, context, "/")
    assert (found.name, found.absent, found.version) == ("h2o", WORDS, WORDS)
    # It is nginx behind it that is looked for first.
    found = servers.peer("haproxy", HAProxy, context, "/", KB, 1)
    assert (found.name, found.absent) == ("haproxy", f"nginx {WORDS}")
    assert servers.present([found]) == []


def test_missing_module_of_lighttpd_is_a_missing_peer(monkeypatch, context):
    monkeypatch.setattr(servers, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(servers.os.path, "exists", lambda path: False)
    with pytest.raises(Failure, match="install the Debian package lighttpd-mod-openssl"):
        Lighttpd(context, "/", tls=types.SimpleNamespace(pem="/x.pem"))


def test_what_no_experiment_can_do_without_is_a_failure(lacking):
    lacking("wrk")
    with pytest.raises(Failure, match="^wrk not found: install the Debian package wrk$") as failure:
        servers.find_program("wrk")
    assert not isinstance(failure.value, servers.NotInstalled)


@pytest.mark.skipif(not {0, 1} <= os.sched_getaffinity(0), reason="it takes two CPUs")
def test_experiment_without_any_peer(lacking, context, tmp_path, capsys):
    """Files, by SWEET and the programs that only send: all of what is written has the other rows."""
    lacking(*servers.PEERS)
    fixed = EXPERIMENTS["fixed"]
    fixed.measure(context)
    peers = ["nginx", "lighttpd", "h2o", "apache", "haproxy", "varnish"]
    behind = {"haproxy": f"nginx {WORDS}", "varnish": f"nginx {WORDS}"}
    kept, closed = context.cases
    assert kept["absent"] == {name: behind.get(name, WORDS) for name in peers}
    assert set(closed["absent"]) == set(peers[:4])
    assert all(len(runs) == 1 for case in context.cases for runs in case["runs"].values())
    assert {"sweet", "sweet-posix"} <= set(kept["runs"]) and not set(peers) & set(kept["runs"])
    verdicts = fixed.verdicts(context.cases)
    assert ("CPU time, best peer : SWEET, 1 KB, 4c", None, 1.25, WORDS) in verdicts
    known = {server.name: {"version": server.version, "detail": ""} for server in context.servers}
    content = report.document(context, fixed, "bench/bench fixed", report.machine(context), known,
                              verdicts, [server.name for server in context.servers if server.absent])
    assert content["cases"][0]["absent"] == kept["absent"]
    report.write_json(tmp_path / "fixed.json", content)
    report.write_csv(tmp_path / "fixed.csv", content)
    assert sanity.complaints(tmp_path, "fixed") == []
    with open(tmp_path / "fixed.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["server"], line["run"]) for line in lines if line["connection"] == ""][-6:] == \
        list(kept["absent"].items())
    text = weave.section("{{table}}\n\n{{verdict}}\n\n{{figure h2o mb_per_s size=1024}}\n\n{{command}}\n",
                         content, "fixed")
    assert "| 1 KB, 4c | h2o | not installed |" in text
    assert "\n(h2o: not installed)\n" in text
    assert "Not installed: nginx, lighttpd, h2o, apache, haproxy, varnish." in text
    assert "| CPU time, best peer : SWEET, 1 KB, 4c | - | 1.25 | not installed |" in text
    # Columns of figures stay at the right.
    assert "| --- | --- | --: |" in text
    report.print_results(context.cases, report.COLUMNS)
    report.print_ratios(context.cases)
    report.print_verdicts(verdicts)
    assert "not installed" in capsys.readouterr().out


def test_plots_name_the_rows_without_a_line():
    cases = [absent_case({"size": size}, ["h2o"], sweet=[10], nginx=[20]) for size in (KB, MB)]
    assert plot.lacking(cases) == "; not installed: h2o"
    script = plot.script(plot.USUAL[0], cases, "a title", "/x.svg")
    assert "'nginx'" in script and "h2o" not in script
    assert plot.lacking([costs({"size": KB}, sweet=[1])]) == ""


FILES = ("nginx", "lighttpd", "h2o", "apache")
LINK = {"link": "wide", "control": "bbr", "connections": 16}


@pytest.mark.parametrize("name, parameters, absent, rows", [
    ("fixed", {"size": MB, "connections": 64}, FILES, {"sweet": [1]}),
    ("fixed", {"size": KB, "connections": 64, "connection": "closed"}, FILES, {"sweet": [1]}),
    ("large", {"size": MB, "connections": 1}, FILES, {"sweet": [1], "sweet-copy": [1]}),
    ("specweb", {"clients": 4}, FILES, {"sweet": [1], "sweet-posix": [1]}),
    ("trace", {"set_mb": 10, "cache": "larger", "files": "warm"}, FILES,
     {"sweet": [1], "sweet-posix": [1]}),
    ("tls", {"handshake": "full", "size": KB}, tls.PEERS, {"sweet": [1], "null-tls": [1]}),
    ("tls", {"page": "generated", "protocol": "http/1.1", "size": 10 * KB, "connections": 1},
     ["nginx-fastcgi"], {"sweet": [1]}),
    ("dynamic", {"size": 10 * KB, "connections": 64},
     ["nginx-fastcgi", "lighttpd-fastcgi", "lighttpd-sendfile", "apache-fastcgi"], {"sweet": [1]}),
    ("few", {"connections": 64, "program": "libfcgi", "processes": 8}, ["nginx"], {"sweet": [1]}),
    ("few", {"connections": 40, "program": "php-fpm", "processes": 5}, ["sweet", "nginx"], {}),
    ("proxy", {"size": KB, "connections": 64}, ["nginx-proxy", "haproxy"],
     {"sweet": [1], "sweet-kept": [1], "sweet-static": [1]}),
    ("compress", {"size": 100 * KB, "connections": 16}, ["nginx"],
     {"sweet": [1], "sweet-precompressed": [1]}),
    ("tux", {"rate": 1000, "size": KB}, ["apache"], {"sweet": [1]}),
    ("pipe", LINK, ["nginx"], {"sweet": [1]}),
    ("nic", {"kernel": "Linux 6.1", "card": "virtio", "network": nic.QUICK_NETWORKS[0],
             "body": nic.STATIC, "size": 10 * KB}, ["nginx", "lighttpd", "h2o"], {"sweet": [1]}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_verdicts_say_what_was_not_compared(name, parameters, absent, rows):
    one = absent_case(parameters, absent, **rows)
    for run in (run for runs in one["runs"].values() for run in runs):
        run.update({nic.FIELD: 5, "client_us_per_request": 1, "steady_mb_per_s": 1, "jain": 1,
                    "mb_per_s": 1, "server_error_percent": 0, "own_error_percent": 0})
    verdicts = EXPERIMENTS[name].verdicts([one])
    assert WORDS in [reached for *_, reached in verdicts], verdicts
    assert all(value is not None or reached == WORDS for _, value, _, reached in verdicts)
    content = {"verdicts": report.verdicts_document(verdicts), "skipped": None}
    assert f"| {WORDS} |" in weave.verdict(content)


def test_table_of_tux_without_apache():
    one = absent_case({"rate": 1000, "size": KB}, ["apache"], sweet=[1])
    one["runs"]["sweet"][0].update(server_error_percent=0, own_error_percent=0)
    two = absent_case({"size": KB, "connection": "kept"}, ["apache"], sweet=[1])
    (_, _, most), (_, _, cpu), *_ = tux.tables([one, two])
    assert [row[:3] for row in most] == [["1 KB", "sweet", most[0][2]], ["1 KB", "apache", WORDS]]
    assert [row[1] for row in cpu] == [WORDS]


def test_memory_of_idle_connections_without_peers(context, capsys):
    tls.tell_idle(context, {"sweet": (100, 200)}, 10, dict.fromkeys(tls.PEERS, WORDS))
    assert ["h2o", "", WORDS, ""] in context.tables[0]["rows"]
    assert context.verdicts == [("sweet: bytes of an idle connection over TLS", 200,
                                 "the best peer's", WORDS)]
    capsys.readouterr()


def test_columns_of_nic(lacking, context, capsys):
    lacking("h2o")
    assert nic.absent_of(("sweet", "h2o")) == {"h2o": WORDS}
    nic.add_cases(context, "6.1", "virtio", [(nic.QUICK_NETWORKS[0], nic.STATIC, "sweet", KB, 40, 1, 0)],
                  {"h2o": WORDS, "nginx-fastcgi": WORDS})
    assert context.cases[0]["absent"] == {"h2o": WORDS}
    nic.tell(context)
    (table,) = context.tables
    assert table["heads"][2:] == ["sweet", "h2o"] and table["rows"][0][2:] == ["40", WORDS]
    capsys.readouterr()
