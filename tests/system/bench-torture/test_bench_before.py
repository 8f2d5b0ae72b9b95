# SPDX-License-Identifier: MIT
"""bench --before and --servers: which servers run, their rows, and what is said of two builds."""

import json
import os
import sys
import types

import pytest

BENCH = os.path.join(os.environ["srcdir"], "bench")
sys.path.insert(0, BENCH)

from lib import before, process, report, servers  # noqa: E402
from lib.experiments import EXPERIMENTS, Context  # noqa: E402
from lib.process import Failure  # noqa: E402
from test_bench import command, run  # noqa: E402
from test_bench_bars import costs, outcomes  # noqa: E402

pytestmark = pytest.mark.bench
BUILD = os.environ["builddir"]
TWINS = {"sweet": {"before": "sweet-before", "again": "sweet-again"}}


# --- what is said ----------------------------------------------------------------


@pytest.mark.parametrize("ratio, spread, found", [
    (1.01, (1, 0.98, 1.02), "even"), (0.99, (1, 0.98, 1.02), "even"),
    (1.03, (1, 0.98, 1.02), "better"), (0.97, (1, 0.98, 1.02), "worse"),
    # A spread counts in either direction: a build is never better than itself.
    (1, (1.02, 1.01, 1.03), "even"), (0.98, (1.02, 1.01, 1.03), "even"),
    (1.02, (0.98, 0.97, 0.99), "even"), (0.95, (1.02, 1.01, 1.03), "worse"),
])
def test_even_is_within_the_spread(ratio, spread, found):
    assert before.word((ratio, ratio, ratio), spread) == found


def compared(**rows):
    return {**costs({"size": 1024, "connections": 4}, **rows), "twins": TWINS}


def test_comparison_favours_less_cpu_time_and_more_requests():
    one = compared(**{"sweet": [10, 10], "sweet-before": [12, 14], "sweet-again": [10, 11],
                      "h2o": [20, 20]})
    for run_ in one["runs"]["sweet-before"]:
        run_["requests_per_s"] = 200_000
    cpu, rate = before.comparisons([one])
    assert (cpu["case"], cpu["row"], cpu["field"]) == ("1 KB, 4c", "sweet", "cpu_us_per_request")
    assert cpu["ratio"] == pytest.approx((1.3, 1.2, 1.4))
    assert cpu["spread"] == pytest.approx((1.05, 1, 1.1))
    assert cpu["word"] == "better"
    # 100,000 requests/s, where there were 200,000.
    assert rate["ratio"] == pytest.approx((0.5, 0.5, 0.5)) and rate["word"] == "worse"
    (_, heads, (line,)) = before.table([cpu, rate])
    assert len(heads) == len(line)
    assert line[:5] == ["1 KB, 4c", "sweet", "1.30 (1.20-1.40)", "1.05 (1.00-1.10)", "better"]
    assert line[-1] == "worse"


def test_cases_without_twins_are_not_compared():
    assert before.comparisons([costs({"size": 1}, sweet=[1], h2o=[2])]) == []


def test_last_line_names_the_lowest_ratio_of_those_that_are_worse():
    def one(row, ratio, found):
        return {"case": "1 KB", "row": row, "field": before.CPU, "ratio": (ratio, ratio, ratio),
                "spread": (1, 0.9, 1.1), "word": found}

    some = [one("a", 0.8, "even"), one("b", 0.9, "worse"), one("c", 0.85, "worse"),
            one("d", 1.5, "better")]
    assert before.worst(some) == ("worst: CPU/request, before : now: 0.85 (0.85-0.85), again : now"
                                  " 1.00 (0.90-1.10): worse; 1 KB, c; 2 of 4 ratios are worse")
    assert before.worst([some[3], some[0]]).endswith("even; 1 KB, a; 0 of 2 ratios are worse")


def test_peers_and_targets_are_compared_with_this_build():
    one = compared(**{"sweet": [10], "sweet-before": [5], "sweet-again": [10], "nginx": [20]})
    assert [(row["peer"], row["sweet"]) for row in report.ratios(one)] == [("nginx", "sweet")]
    verdicts = outcomes(EXPERIMENTS["fixed"].verdicts([one]))
    assert verdicts["CPU time, best peer (nginx) : SWEET, 1 KB, 4c"] == (2, 1.25, True)


# --- which servers run -----------------------------------------------------------


class Idle(servers.Sweet):
    """It is SWEET, but no process runs."""

    log = []

    def begin(self):
        self.log.append(("begin", self.name, self.program))


class Peer(servers.Server):
    """A peer without a process."""

    def __init__(self, context, name):
        super().__init__(name, context.directory, 0)

    def begin(self):
        Idle.log.append(("begin", self.name, ""))


class Client:
    """It names the servers that are loaded."""

    def __init__(self):
        self.loaded = []

    def run(self, server, _seconds):
        self.loaded.append(server.name)
        return {"requests": 1, "bytes": 1, "duration": 1}


@pytest.fixture
def older(tmp_path):
    """Another build."""
    os.makedirs(tmp_path / "older/sweet")
    os.symlink(os.path.join(BUILD, "sweet/sweet"), tmp_path / "older/sweet/sweet")
    return str(tmp_path / "older")


@pytest.fixture
def make_context(tmp_path, monkeypatch, capsys):
    """make_context(before, servers): a Context with these options; it runs nothing."""
    monkeypatch.setattr(Idle, "log", [])
    monkeypatch.setattr(process, "core_busy", lambda cpu: 0)

    def make(earlier=None, chosen=None, io=("auto",)):
        options = types.SimpleNamespace(
            build=BUILD, cpus=(0, 1), runs=2, seconds=1, sizes=None, connections=None,
            io=list(io), quick=True, before=earlier, servers=chosen)
        return Context(options, BENCH, str(tmp_path))
    yield make
    capsys.readouterr()


def rows(some, client):
    return [servers.Row(server.name, server, client) for server in some]


def test_twins_take_turns_with_the_others(make_context, older):
    context, client = make_context(older), Client()
    sweet, peer = Idle(context, "/", "auto", 1), Peer(context, "h2o")
    context.start([sweet, peer])
    assert Idle.log == [("begin", "sweet", f"{BUILD}/sweet/sweet"),
                        ("begin", "sweet-before", f"{older}/sweet/sweet"),
                        ("begin", "sweet-again", f"{BUILD}/sweet/sweet"), ("begin", "h2o", "")]
    # All are different servers with the same settings.
    assert len({one.port for one in (sweet, *sweet.twins)}) == 3
    assert {tuple(one.argv[3:]) for one in (sweet, *sweet.twins)} == {tuple(sweet.argv[3:])}
    assert [one.name for one in servers.present([sweet, peer])] == \
        ["sweet", "sweet-before", "sweet-again", "h2o"]
    case = context.turns({"size": 1}, [*rows([sweet, peer], client),
                                       servers.Row("sweet-kept", sweet, client)])
    assert client.loaded == 2 * ["sweet", "sweet-before", "sweet-again", "h2o",
                                 "sweet", "sweet-before", "sweet-again"]
    assert list(case["runs"]) == ["sweet", "sweet-before", "sweet-again", "h2o", "sweet-kept",
                                  "sweet-kept-before", "sweet-kept-again"]
    assert case["twins"] == {**TWINS, "sweet-kept": {
        "before": "sweet-kept-before", "again": "sweet-kept-again"}}


def test_twins_are_restarted_with_their_server(make_context, older):
    context = make_context(older)
    sweet = Idle(context, "/", "uring", 1)
    context.start([sweet])
    Idle.log.clear()
    sweet.twins[0].cpu_then = 1
    sweet.restart()
    assert [name for _, name, _ in Idle.log] == ["sweet-uring", "sweet-uring-before",
                                                 "sweet-uring-again"]
    assert sweet.twins[0].cpu_then is None


def test_there_are_no_twins_by_default(make_context):
    context, client = make_context(), Client()
    sweet, peer = Idle(context, "/", "auto", 1), Peer(context, "h2o")
    context.start([sweet, peer])
    case = context.turns({"size": 1}, rows([sweet, peer], client))
    assert client.loaded == 2 * ["sweet", "h2o"] and "twins" not in case


NAMES = ("sweet-posix", "nginx", "nginx-fastcgi", "h2o", "null", "null-h2")


@pytest.mark.parametrize("chosen, io, expected", [
    (None, "auto", ["sweet", *NAMES]),
    (["sweet"], "auto", ["sweet"]),
    (["sweet"], "epoll", ["sweet-epoll"]),
    (["sweet", "sweet-posix", "null"], "auto", ["sweet", "sweet-posix", "null", "null-h2"]),
    (["sweet", "nginx"], "auto", ["sweet", "nginx", "nginx-fastcgi"]),
    (["sweet", "nginx-fastcgi"], "auto", ["sweet", "nginx-fastcgi"]),
])
def test_selected_servers_run(make_context, chosen, io, expected):
    context, client = make_context(None, chosen, [io]), Client()
    some = [Idle(context, "/", io, 1), Idle(context, "/", "auto", 1, name="sweet-posix"),
            *(Peer(context, name) for name in NAMES[1:])]
    behind = Peer(context, "null-epoll")
    behind.required = True
    context.start([*some, behind])
    for one in some:
        one.restart()
    assert {name for _, name, _ in Idle.log} == {*expected, "null-epoll"}
    case = context.turns({"size": 1}, rows(some, client))
    assert list(case["runs"]) == expected and "absent" not in case


# --- options ---------------------------------------------------------------------


@pytest.mark.parametrize("arguments, words", [
    (["fixed", "--servers", "h2o"], "sweet is missing"),
    (["fixed", "--servers", "sweet,h20"], "h20 is none of: sweet, nginx,"),
    (["all", "--servers", "sweet"], "all has neither --before nor --servers"),
    (["all", "--before", "/"], "all has neither --before nor --servers"),
])
def test_wrong_choices_are_refused(arguments, words, capsys):
    with pytest.raises(SystemExit) as end:
        command().parse(arguments)
    assert end.value.code == 2 and words in capsys.readouterr().err


def test_names_are_those_of_servers():
    options = command().parse(["fixed", "--servers", ",".join(servers.NAMES)])
    assert options.servers == list(servers.NAMES)


def test_other_experiments_refuse_them(older, tmp_path):
    parse = command().parse
    for option, value in (("--before", older), ("--servers", "sweet")):
        with pytest.raises(Failure, match="^replacement has neither .*: fixed, large, dynamic, proxy"):
            EXPERIMENTS["replacement"].check(parse(["replacement", option, value]))
    options = parse(["fixed", "--before", str(tmp_path / "none"), "--cpus", "0,1"])
    options.cpus = sorted(os.sched_getaffinity(0))[:1]
    with pytest.raises(Failure, match="none/sweet/sweet not found"):
        EXPERIMENTS["fixed"].check(options)
    options.before = older
    EXPERIMENTS["fixed"].check(options)


def test_command_tells_of_another_build_but_not_where():
    tell = command().command_line
    assert tell(["fixed", "--before", "/x", "--quick"]) == "bench/bench fixed --before DIR --quick"
    assert tell(["--before=/x", "fixed"]) == "bench/bench --before DIR fixed"


@pytest.mark.needs("wrk")
@pytest.mark.skipif(not {0, 1} <= os.sched_getaffinity(0), reason="it takes two CPUs")
def test_files_by_two_builds(older, tmp_path):
    done = run("fixed", "--quick", "--runs", "1", "--sizes", "1K", "--connections", "4",
               "--servers", "sweet", "--build", BUILD, "--before", older, "--json",
               str(tmp_path / "fixed.json"))
    assert done.returncode == 0, done.stdout
    with open(tmp_path / "fixed.json", encoding="utf-8") as file:
        content = json.load(file)
    assert [list(case["runs"]) for case in content["cases"]] == \
        2 * [["sweet", "sweet-before", "sweet-again"]]
    assert set(content["servers"]) == {"sweet", "sweet-before", "sweet-again"}
    assert [(one["row"], one["field"]) for one in content["before"]] == \
        2 * [("sweet", before.CPU), ("sweet", before.RATE)]
    assert done.stdout.splitlines()[-1].startswith("worst: ")
    assert done.stdout.splitlines()[-1].endswith(" of 4 ratios are worse")
