# SPDX-License-Identifier: MIT
"""tests/torture/torture itself: its output, its files and its exit status, with stages
made for this test."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from server import BUILD, TIMEOUT

pytestmark = pytest.mark.bench

TORTURE = os.path.join(os.environ["srcdir"], "tests", "torture", "torture")

STAGES = {
    "good": """
SHARE = 0.3
def run(torture):
    assert torture.left() > 0 and not any(torture.scratch.iterdir())
    (torture.scratch / "file").write_text("to be removed")
    print("scratch", torture.scratch)
    print("drawn", torture.random.random())
    torture.count("things", 2)
    torture.count("things")
    torture.count("wrong", 0)
""",
    "bad": """
SHARE = 0.1
def run(torture):
    torture.count("things")
    raise torture.Wrong("a byte was lost")
""",
    "broken": """
SHARE = 0.1
def run(torture):
    assert 1 + 1 == 3
""",
    # An orphan: its parent has exited.
    "leaving": """
import subprocess
SHARE = 0.1
def run(torture):
    subprocess.run(["sh", "-c", "sleep 1000 >/dev/null & echo left $!"], check=True)
""",
    "logged": """
SHARE = 0.1
def run(torture):
    with torture.serving("epoll", torture.scratch) as server:
        print("server", server.pid, flush=True)
        raise torture.Wrong("after the start")
""",
}


@pytest.fixture
def torture(tmp_path):
    """torture(arguments...): returns its output, its exit status in `returncode`."""
    for name, text in STAGES.items():
        (tmp_path / f"{name}.py").write_text(text)

    def call(*arguments):
        return subprocess.run([sys.executable, TORTURE, "--build", BUILD, "--stages", tmp_path,
                               *map(str, arguments)], capture_output=True, text=True,
                              timeout=3 * TIMEOUT)

    return call


def test_passes(torture, tmp_path):
    results = tmp_path / "results.json"
    done = torture("--seconds", 10, "--seed", 7, "--results", results, "good")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^torture: good: 3 things, 0 wrong, \d+ s: passed$", done.stdout, re.M)
    assert done.stdout.splitlines()[-1].startswith("torture: 1 stages, 0 failed, seed 7, ")
    assert not os.path.exists(re.search(r"^scratch (.*)$", done.stdout, re.M)[1])
    written = json.loads(results.read_text())
    assert written["passed"] and written["seed"] == 7 and written["seconds"] == 10
    assert written["stages"]["good"]["counts"] == {"things": 3, "wrong": 0}


def test_a_stage_that_fails(torture, tmp_path):
    """The other stages run all the same."""
    results = tmp_path / "results.json"
    done = torture("--seconds", 10, "--seed", 7, "--results", results, "bad", "broken", "good")
    assert done.returncode == 1
    assert "torture: bad: a byte was lost\n" in done.stdout
    assert "torture --seed 7 --seconds 2 bad\n" in done.stdout
    assert re.search(r"^torture: bad: 1 things, \d+ s: FAILED$", done.stdout, re.M)
    assert "assert 1 + 1 == 3" in done.stdout
    assert re.search(r"^torture: good: .*: passed$", done.stdout, re.M)
    assert re.search(r"^torture: 3 stages, 2 failed, .*: FAILED$", done.stdout, re.M)
    written = json.loads(results.read_text())
    assert not written["passed"] and written["stages"]["bad"]["wrong"] == "a byte was lost"


def test_what_is_left_running_is_a_failure(torture):
    done = torture("--seconds", 1, "leaving")
    pid = int(re.search(r"^left (\d+)$", done.stdout, re.M)[1])
    assert done.returncode == 1
    assert f"it leaves running: sleep ({pid})" in done.stdout
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_that_failed_is_ended_and_its_log_shown(torture):
    done = torture("--seconds", 1, "logged")
    assert done.returncode == 1
    assert "torture: logged: after the start\n" in done.stdout
    assert "    sweet: listening on " in done.stdout
    with pytest.raises(ProcessLookupError):
        os.kill(int(re.search(r"^server (\d+)$", done.stdout, re.M)[1]), 0)


def test_the_seed_says_what_is_random(torture):
    said = [torture("--seconds", 1, "--seed", seed, "good").stdout for seed in (1, 1, 2)]
    drawn = [re.search(r"^drawn .*$", text, re.M)[0] for text in said]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_stage_that_is_missing(torture):
    done = torture("--seconds", 1, "good", "none")
    assert done.returncode == 1 and "there is no stage none" in done.stderr
    assert "torture: good" not in done.stdout


def test_is_ended_with_its_server(tmp_path):
    """By SIGTERM in the middle of a stage."""
    (tmp_path / "long.py").write_text("""
import signal
SHARE = 1
def run(torture):
    with torture.serving("epoll", torture.scratch) as server:
        print("server", server.pid, flush=True)
        signal.pause()
""")
    with subprocess.Popen([sys.executable, TORTURE, "--build", BUILD, "--stages", tmp_path,
                           "--seconds", "100", "long"], stdout=subprocess.PIPE, text=True) as one:
        pid = int(one.stdout.readline().split()[1])
        one.send_signal(signal.SIGTERM)
        one.communicate(timeout=TIMEOUT)
        assert one.returncode == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
