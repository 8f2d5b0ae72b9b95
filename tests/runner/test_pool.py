# SPDX-License-Identifier: MIT
"""Parallel jobs: which ones start when, and that none hangs or leaves processes."""

import os
import time

import pytest

import report
from pool import Job, Pool

FOR_EVER = 600


@pytest.fixture
def run(tmp_path):
    """run(jobs, processors): the jobs in the order in which they ended."""
    def run_jobs(jobs, processors=2, **how):
        ended = []
        pool = Pool(processors, ended.append)
        for job in jobs:
            pool.add(job)
        pool.run(**how)
        return ended

    return run_jobs


@pytest.fixture
def job(tmp_path):
    def make(name, text, **more):
        return Job(name, "suite", ["sh", "-c", text], str(tmp_path / f"{name}.log"),
                   folder=str(tmp_path), **more)

    return make


def test_rank_decides(run, job):
    jobs = [job(f"{rank}", "true", rank=rank) for rank in (1, 3, 2)]
    assert [one.name for one in run(jobs, processors=1)] == ["3", "2", "1"]
    assert all(one.good for one in jobs)


def test_weights(run, job, tmp_path):
    """Two halves and a whole on one processor: at most the weight of one processor."""
    text = ('mkdir {0} && ls -d whole half-a half-b 2>/dev/null | tr "\\n" " " >>seen; echo >>seen; '
            "sleep 0.2; rmdir {0}")
    run([job("whole", text.format("whole")), job("half-a", text.format("half-a"), weight=0.5),
         job("half-b", text.format("half-b"), weight=0.5)], processors=1)
    for line in (tmp_path / "seen").read_text().splitlines():
        assert line.split() == ["whole"] or "whole" not in line


@pytest.mark.parametrize("weight", [1.5, 2])
def test_heavy_job_is_not_passed_for_ever(run, job, weight):
    """It is the second; jobs that could start before it do not."""
    jobs = [job("first", "sleep 0.3", rank=3), job("heavy", "sleep 0.1", weight=weight, rank=2),
            *(job(f"light-{number}", "sleep 0.2", weight=0.5, rank=1) for number in range(4))]
    assert [one.name for one in run(jobs)][:2] == ["first", "heavy"]


def test_heavier_than_the_machine(run, job):
    assert run([job("huge", "true", weight=64)])[0].good


def test_after(run, job):
    jobs = [job("second", "test -e made", after=("first",), rank=9), job("first", "touch made")]
    assert [one.name for one in run(jobs)] == ["first", "second"]
    assert all(one.good for one in jobs)


@pytest.mark.parametrize("status, why", [(3, "failed"), (77, "was skipped")])
def test_after_what_did_not_work(run, job, status, why):
    jobs = [job("build", f"exit {status}"), job("test", "touch ran", after=("build",)),
            job("last", "touch ran", after=("test",)), job("other", "true")]
    ended = run(jobs)
    assert sorted(one.name for one in ended) == ["build", "last", "other", "test"]
    assert jobs[1].fault == f"not run: build {why}" and jobs[2].fault == "not run: test failed"
    assert jobs[3].good and not os.path.exists(os.path.join(jobs[1].folder, "ran"))


def test_after_each_other(run, job):
    ended = run([job("a", "true", after=("b",)), job("b", "true", after=("a",))])
    assert len(ended) == 2 and not any(one.good for one in ended)


def test_deadline(run, job, tmp_path):
    """All its processes are killed, whatever they ignore; the log says what ran."""
    text = f"trap '' ABRT TERM; setsid sleep {FOR_EVER} & echo $! >pid; sleep {FOR_EVER}"
    slow = job("slow", text, deadline=0.5)
    began = time.monotonic()
    ended = run([slow, job("other", "true")])
    assert time.monotonic() - began < 60
    assert {one.name for one in ended} == {"slow", "other"}
    assert slow.fault == "was not done after 0 s" and not slow.good
    assert f"sleep {FOR_EVER}" in report.text_of(slow.log)
    pid = int((tmp_path / "pid").read_text())
    assert not is_alive(pid)


def is_alive(pid):
    """A zombie does not count as alive; a kill takes a moment."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return False
        except (FileNotFoundError, ProcessLookupError):
            return False
        time.sleep(0.01)
    return True


def test_python_says_where_it_was(run, tmp_path):
    code = "import faulthandler, time\nfaulthandler.enable()\ndef here():\n time.sleep(600)\nhere()"
    slow = Job("slow", "suite", ["python3", "-c", code], str(tmp_path / "log"), deadline=2)
    run([slow])
    assert " in here" in report.text_of(slow.log)


def test_what_is_left_running_is_a_fault(run, job, tmp_path, monkeypatch):
    monkeypatch.setattr("pool.PATIENCE", 0.5)
    bad = job("bad", f"setsid sleep {FOR_EVER} & echo $! >pid")
    run([bad])
    assert bad.status == 0 and bad.fault == f"left running: sleep {FOR_EVER}"
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_what_ends_a_moment_later_is_none(run, job):
    late = job("late", "setsid sleep 0.3 & :")
    assert run([late]) == [late] and late.good


def test_no_such_program(run, tmp_path):
    lost = Job("lost", "suite", ["/nowhere/at-all"], str(tmp_path / "log"))
    run([lost])
    assert lost.fault.startswith("cannot be started: ") and not lost.good


def test_end_of_all_time(run, job):
    jobs = [job("running", f"sleep {FOR_EVER}", rank=1), job("waiting", "true")]
    ended = run(jobs, processors=1, until=time.monotonic() + 0.5)
    assert len(ended) == 2
    assert jobs[0].fault.startswith("was not done") and jobs[1].fault == "not run: there was no time left"


def test_tick(job):
    seen = []
    pool = Pool(1, tick=lambda running, waiting: seen.append(([one.name for one in running], waiting)),
                every=0.1)
    pool.add(job("a", "sleep 0.5", rank=1))
    pool.add(job("b", "true"))
    pool.run()
    assert seen[0] == (["a"], 1)
