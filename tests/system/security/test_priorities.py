# SPDX-License-Identifier: MIT
"""What a client can make expensive is computed by threads that leave the processor to the event
loops; what all clients wait for is not."""

import pytest

import dav
from files import write
from priorities import await_work, low_threads, nice_of_threads, wakes


@pytest.fixture
def server(start, tmp_path):
    folder = dav.make(tmp_path)
    for name in ("listed", "copied", "moved", "removed"):
        write(folder / name / "file", b"file\n")
    write(folder / "changes.txt", b"before\n")
    server = dav.begin(start, tmp_path, "--listing", "on", "--threads", "1")
    # From now on the password is remembered.
    assert dav.status(server, "GET", "/dav/changes.txt") == 200
    return server


EXPENSIVE = [
    ("GET", "/dav/listed/", "", None, 200),
    ("GET", "/dav/listed/?format=json", "", None, 200),
    ("PROPFIND", "/dav/listed/", "Depth: 1\r\n", None, 207),
    ("COPY", "/dav/copied", dav.to("/dav/copy"), None, 201),
    ("MOVE", "/dav/moved", dav.to("/dav/other"), None, 201),
    ("DELETE", "/dav/removed", "", None, 204),
    ("PUT", "/dav/changes.txt", "", b"after\n", 204),
]


@pytest.mark.parametrize("method, target, fields, body, status", EXPENSIVE,
                         ids=["listing", "json", "propfind", "copy", "move", "delete", "put"])
def test_low(server, method, target, fields, body, status):
    # Two threads for folders, then those for passwords.
    low = low_threads(server.pid)
    if method in ("GET", "PROPFIND"):
        low = low[:2]
    else:
        # WebDAV's own threads are started when they are needed.
        copy = dav.to("/dav/another.txt")
        assert dav.status(server, "COPY", "/dav/changes.txt", copy) == 201
        low = [thread for thread in low_threads(server.pid) if thread not in low]
    assert low
    before = wakes(server.pid, low)
    assert dav.call(server, method, target, fields, body=body).status == status
    await_work(server.pid, low, before)


def test_files(start, tmp_path):
    """Files are read by threads as important as the event loops: everybody waits for them."""
    write(tmp_path / "root/file", b"file\n")
    server = start(tmp_path / "root", "--threads", "1")
    low = low_threads(server.pid)
    values = nice_of_threads(server.pid)
    # The main loop, an event loop, four helpers; the two for folders.  There is none lower than 19.
    assert values[server.pid] == 19 or (len(values) - len(low) >= 6 and len(low) == 2)
