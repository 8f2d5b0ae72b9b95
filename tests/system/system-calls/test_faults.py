# SPDX-License-Identifier: MIT
"""Failing calls of the server: its responses are right or refusals, and the next ones
are right. fault_walk.py describes the load.  And failing calls of the library in
other programs, by tests/faults/library.c."""

import email.utils
import errno
import os
import time

import pytest

from client import fetch
from fault_plan import CUT, LOST
from fault_walk import Walk
from fault_library import SCENARIOS, walk as walk_library
from files import write
from selection import why_not
from server import TIMEOUT, UNDER, sanitized

if UNDER or sanitized():
    pytest.skip("calls are met by a preloaded library, as Valgrind and sanitizers do themselves",
                allow_module_level=True)


@pytest.fixture(scope="module", params=["uring", "epoll"])
def walk(request, tmp_path_factory):
    """A server for all tests of a kind."""
    why = why_not(request.param)
    if why:
        pytest.skip(why)
    one = Walk(tmp_path_factory.mktemp("faults"), request.param)
    try:
        one.start()
        yield one
        one.stop()
    finally:
        one.close()


@pytest.mark.parametrize("error, status", [
    (errno.EMFILE, 503), (errno.ENFILE, 503), (errno.ENOMEM, 503), (errno.EIO, 500),
    (errno.EACCES, 403),
], ids=errno.errorcode.get)
def test_status(walk, error, status):
    """For a file that cannot be opened; the next time it can."""
    name = f"opened-{error}"
    write(walk.site.root / name, b"opened\n")
    walk.plan.arm("openat2", walk.plan.calls("openat2"), error)
    assert fetch(walk.server.port, "/" + name).status == status
    assert walk.plan["fired"]
    walk.plan.disarm()
    assert fetch(walk.server.port, "/" + name).body == b"opened\n"


SECOND = 10**9
YEAR = 365 * 86400 * SECOND
JUMPS = {"realtime": [SECOND, -2 * SECOND, YEAR, -50 * YEAR, 100 * YEAR, -51 * YEAR],
         "monotonic": [SECOND, 20 * SECOND, 3600 * SECOND, YEAR]}

# Each was a defect: (call, error, how many in a row).
FOUND = {
    # Opening a file from the kernel's cache alone was abandoned, and so was opening a folder.
    "open-interrupted": ("openat2", errno.EINTR, 1),
    "folder-interrupted": ("open", errno.EINTR, 1),
    # The spawner closed the channel if it had no descriptors: no CGI program started afterwards.
    "starter-full": ("recvmsg", CUT, 1),
    # A worker's call that could not be read ended its membership, not the worker.
    "question-unread": ("recvmsg", errno.ENOMEM, 1),
    "question-unread-long": ("recvmsg", errno.ENOMEM, 20),
    # Members waited for 5 seconds: the watch of the cache's work reports each event only once.
    "work-interrupted": ("epoll_wait", errno.EINTR, 1),
}


@pytest.mark.parametrize("kind, error, times", FOUND.values(), ids=FOUND)
def test_found(walk, kind, error, times):
    """Anywhere in a round, or at 24 places."""
    fired = walk.plan["fired"]
    calls = walk.calls_of_a_round()[kind]
    for ahead in sorted({place * calls // 24 for place in range(24)}):
        walk.fail(kind, ahead, error, times)
    assert walk.plan["fired"] > fired


def test_answer_that_cannot_be_sent(walk):
    """To a call of a worker: it stays a worker, and its next call gets a reply.  Of three
    failures in a row two affect one reply, so that it is lost; the worker waits 5 seconds
    for each, as defined in libnabc/wire/rpc-client.c."""
    fired = walk.plan["fired"]
    walk.fail("sendmsg", 2, errno.ENOBUFS, 3)
    assert walk.plan["fired"] > fired


def test_lost_wakeups(walk):
    """A process that is not woken checks by itself soon: late, and nothing worse."""
    fired = walk.plan["fired"]
    for ahead in range(walk.calls_of_a_round()["wake"]):
        walk.fail("wake", ahead, LOST)
    assert walk.plan["fired"] > fired


def clock_error(walk):
    """Returns by how many seconds the server's responses differ from its clock."""
    date = email.utils.parsedate_to_datetime(fetch(walk.server.port, "/small")["Date"])
    return date.timestamp() - time.time() - walk.plan["realtime"] / SECOND


@pytest.mark.parametrize("clock", ["realtime", "monotonic"])
def test_clock_jumps(walk, clock):
    """A clock that is corrected, and a process that was suspended."""
    try:
        for jump in JUMPS[clock]:
            walk.jump(clock, jump)
            # A Date is valid for a second.
            deadline = time.monotonic() + TIMEOUT
            while abs(clock_error(walk)) > 60:
                assert time.monotonic() < deadline
    finally:
        # The other clock never goes back.
        walk.plan["realtime"] = 0
    walk.site.clean(walk.server.port)


def test_no_starter(tmp_path):
    """A failed setup is reported at once: formerly, a server that could start no program served
    all the same."""
    walk = Walk(tmp_path, "epoll")
    try:
        walk.start()
        calls = walk.plan.calls("signalfd")
        walk.stop()
        said = [walk.start_with("signalfd", number, errno.ENFILE) for number in range(calls)]
    finally:
        walk.close()
    wanted = "cannot start the process that starts programs: its initialisation: "
    assert [text for text in said if wanted + os.strerror(errno.ENFILE) in text], said


# Tests every n-th possible fault; `make torture` tests all of them.
STRIDES = {"units": 9, "sends": 17, "rings": 23, "registered": 29, "owner": 13, "member": 7,
           "server": 7, "worker": 1}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_library(tmp_path, scenario):
    """Its calls fail with documented errors, nothing leaks, and the next ones succeed."""
    rounds, possible, faults = walk_library(tmp_path, scenario, "-s", str(STRIDES[scenario]))
    assert possible > 50 and faults > rounds / 2


# Each was a defect.
@pytest.mark.parametrize("scenario, kind", [
    ("units", "mmap"),  # a unit that could not be frozen: SIGSEGV at the next attempt
    ("sends", "ring_submit"),  # bytes were sent twice, the second time for a freed send
    ("member", "mmap"),  # the owner kept a unit whose creator got an error
    ("member", "recvmsg"),
    ("worker", "calloc"),  # a lost request: its server waited forever
])
def test_library_found(tmp_path, scenario, kind):
    rounds, possible, faults = walk_library(tmp_path, scenario, "-k", kind)
    if kind == "ring_submit" and not possible:
        pytest.skip("io_uring cannot be used by this scenario: it submits nothing")
    assert faults


def test_library_late(tmp_path):
    """Late replies to abandoned calls: their descriptors are not kept."""
    assert walk_library(tmp_path, "member", "-k", "recvmsg", "-n", "3")[2]


def test_library_door_stays_open(tmp_path):
    """An owner without descriptors must retry by itself: no other event would wake it."""
    assert walk_library(tmp_path, "owner", "-k", "accept4", "-n", "2")[2]


def test_library_seals_again(tmp_path):
    """Another process may reference pages for a moment, without any notification."""
    failures = []
    assert walk_library(tmp_path, "units", "-k", "seal", "-n", "2", failures=failures)[2]
    assert not [call for call, error in failures if error == "EBUSY"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_library_interrupted(tmp_path, scenario):
    """Signals whose handlers return, within its calls: no call fails because of them."""
    rounds, _, signals = walk_library(tmp_path, scenario, "-i", "10")
    assert signals > rounds
