# SPDX-License-Identifier: MIT
"""The stage "backends" of tests/torture: a short run, and that it fails when it should."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from server import BUILD, POLL, TIMEOUT, children_of

pytestmark = pytest.mark.bench

TORTURE = os.path.join(os.environ["srcdir"], "tests", "torture", "torture")


def torture(seconds, **environment):
    return subprocess.Popen(
        [sys.executable, TORTURE, "--build", BUILD, "--seconds", str(seconds), "--seed", "4",
         "backends"], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})


def said(process):
    try:
        return process.communicate(timeout=6 * TIMEOUT)[0]
    finally:
        process.kill()
        process.wait()


def test_short():
    process = torture(10)
    text = said(process)
    assert process.returncode == 0, text
    assert re.search(r"^torture: backends: \d+ answers, 0 wrong, .*: passed$", text, re.M)
    # Of documents: by the server, from the cache, and by the server to a refresh of the cache.
    for figure in ("files", "from the cache", "purges", "refreshes with (file|led|onward)"):
        assert re.search(rf" [1-9]\d* {figure},", text), (figure, text)


def test_an_answer_of_another_client():
    """Some applications answer with the token of another request."""
    process = torture(60, TORTURE_SPOIL="1")
    text = said(process)
    assert process.returncode == 1
    assert re.search("^torture: backends: .*: an answer of another client, ", text, re.M), text
    assert re.search(r"^torture: backends: .* 1 wrong, .*: FAILED$", text, re.M), text


@pytest.mark.parametrize("spoil, complaint", [
    ("files", "an answer of another client, "),
    ("old", r"\d+ bytes that are no version of that time"),
    ("torn", r"\d+ bytes that are no version of that time"),
])
def test_wrong_files(spoil, complaint):
    """Some applications let the server send another document, one of before, or one that is not
    whole."""
    process = torture(60, TORTURE_SPOIL=spoil)
    text = said(process)
    assert process.returncode == 1
    assert re.search(f"^torture: backends: .*: {complaint}", text, re.M), text
    assert re.search(r"^torture: backends: .* 1 wrong, .*: FAILED$", text, re.M), text


def abort_server(process):
    """Ends the first server as a failed assertion does."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        for pid in children_of(process.pid):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"sweet.conf" in file.read():
                    os.kill(pid, signal.SIGABRT)
                    return
        threading.Event().wait(POLL)


def test_a_server_that_aborts():
    process = torture(60)
    abort_server(process)
    text = said(process)
    assert process.returncode == 1
    assert re.search("the server has (ended with status -6|not started)", text), text


STOPS = """
import sys, threading
sys.path[:0] = sys.argv[1:]
import time
from backend_clients import Pulse
ending = threading.Event()
pulse = Pulse(ending, 0.4)
began = time.monotonic()
assert not pulse.stood_still(began)
print("runs", flush=True)
sys.stdin.readline()
print(pulse.stood_still(began), pulse.stood_still(time.monotonic()))
ending.set()
"""


@pytest.mark.parametrize("pauses", [1, 3])
def test_applications_that_stand_still(pauses):
    """A machine that stops them for long is no fault of the server's."""
    folder = os.path.dirname(TORTURE)
    support = os.path.join(folder, "..", "system", "support")
    process = subprocess.Popen([sys.executable, "-c", STOPS, folder, support],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "runs\n"
        for _ in range(pauses):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.6 / pauses)  # the test is of this time
            process.send_signal(signal.SIGCONT)
            time.sleep(0.1)  # in which it notices
        assert process.communicate("\n", timeout=TIMEOUT)[0] == "True False\n"
    finally:
        process.kill()
        process.wait()
