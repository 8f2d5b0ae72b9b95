# SPDX-License-Identifier: MIT
"""Many streams of HTTP/2 in little memory: what a thread has beyond its bound is refused, so the
kernel ends no process, others are answered, and streams can be opened again afterwards."""

import contextlib
import os
import re

import pytest

import upstream
from client import fetch
from files import KB, MB, pattern, write
from memory_limit import limited
from server import STREAM, UNDER, running, sanitized
from streams import ACK, END_HEADERS, HEADERS, PING, RESET, Raw, Streams, block, frame, h2, needs_h2
from test_memory_of_connections import FIELD, NAMED
from test_scarce import folder_of, killed

pytestmark = [pytest.mark.clear("these choose what is below"), needs_h2]
if UNDER or sanitized():
    pytest.skip("the memory of a sanitizer or Valgrind is not the server's",
                allow_module_level=True)

LIMIT = 64 * MB
STREAMS = 128  # max-streams, by default: of a session
SESSIONS = 12  # of clients that do not let their responses end
ROOM = 8  # connections for others
FAILED, REFUSED = 2, 7  # RFC 9113, section 7
CONFIG = """[sweet]
listen=127.0.0.1:0
root={root}
threads={threads}
http2=clear
[pool app]
protocol=http
upstream={address}
in-flight=256
[path /app]
pool=app
[pool page]
protocol=worker
command={stream}
processes=2
memory=4M
[path /page]
pool=page
"""


def answer(asked):
    """The application: nothing, or too much for a client that does not read."""
    asked.body()
    if asked.target == "/app/silent":
        asked.closed()
        return False
    asked.chunks(*[bytes(64 * KB)] * 256)
    return False


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    write(folder / "root" / "small", b"small")
    write(folder / "root" / "file", pattern(MB))
    write(folder / "root" / "large", pattern(16 * MB))
    return folder


@pytest.fixture(scope="module")
def application(root):
    with contextlib.closing(upstream.Upstream(answer, root / "app.sock")) as made:
        yield made


@contextlib.contextmanager
def serving(kind, root, application, threads):
    """In the cgroup; yields the server, and how many streams of a thread are not refused."""
    config = root / "sweet.conf"
    config.write_text(CONFIG.format(root=root / "root", threads=threads, stream=STREAM,
                                    address=application.address))
    with limited(LIMIT) as prefix, \
            running(kind, None, "--config", config, listen=None, prefix=prefix) as server:
        connections = re.search(r"at most (\d+) connections: .* allows 64M", server.errors.text())
        programs = server.workers()
        yield server, max(int(connections[1]) // threads, 256)
        assert killed(folder_of(os.getpid())) == 0
        assert server.workers().keys() == programs.keys()


def unread(path, fails=False):
    """Opens as many streams as a client may, and reads only heads; returns how many are refused.
    An answer to a ping may come before what was refused earlier: waits for that many, unless a
    program may fail without the system's memory, and leave room for another stream."""
    def session(stack, port, refused=0):
        client = stack.enter_context(Streams(port, window=0, take=False))
        for _ in range(STREAMS):
            client.open(path)
        client.h2.ping(bytes(8))
        client.flush()
        client.until(lambda: client.pings and (fails or len(client.resets) >= refused))
        codes = list(client.resets.values())
        assert set(codes) <= ({REFUSED, FAILED} if fails else {REFUSED})
        count = codes.count(REFUSED)
        return max(count, refused) if fails else count

    return session


def posts(stack, port, count, times, refused=0):
    """POSTs whose bodies do not come; each byte more of a head is a field of 3.9 KB."""
    def resets():
        return [one for one in client.frames if one[0] == RESET]

    client = stack.enter_context(Raw(port))
    head = block("/app", "POST")
    client.send(frame(HEADERS, head + FIELD + NAMED * (times - 1), END_HEADERS, 1), *(
        frame(HEADERS, head + NAMED * times, END_HEADERS, stream)
        for stream in range(3, 2 * count, 2)), frame(PING, bytes(8)))
    while (not any(one[:2] == (PING, ACK) for one in client.frames)
           or len(resets()) < refused):
        assert client.more()
    assert {one[3] for one in resets()} <= {bytes((0, 0, 0, REFUSED))}
    return len(resets())


def references(stack, port, refused=0):
    return posts(stack, port, STREAMS, 1, refused)


KINDS = {
    "a file": unread("/file"),
    "a file larger than the cache permits": unread("/large"),
    "pieces of a worker without end": unread("/page/endless"),
    "an application's response": unread("/app/much", fails=True),
    "an application that says nothing": unread("/app/silent"),
    "uploads with references": references,
}


def others_are_answered(server):
    """Also over HTTP/2, one request after the other, whatever the attackers hold."""
    assert fetch(server.port, "/small").body == b"small"
    with Streams(server.port) as good:
        for _ in range(3):
            assert good.get("/small").body == b"small"


def all_is_released(server):
    """Streams of a session can be opened again, all of them; returns the memory that is kept."""
    server.wait_status(lambda status: status["connections"]["open"] == 1)
    with Streams(server.port, window=0) as client:
        opened = [client.open("/small") for _ in range(STREAMS)]
        for stream in opened:
            client.h2.increment_flow_control_window(KB, stream)
        client.flush()
        for stream in opened:
            assert client.answer(stream).body == b"small"
    server.wait_status(lambda status: status["connections"]["open"] == 1)
    return server.memory()


def again_and_again(server, attack):
    """attack() opens sessions, which are closed when others have been answered. What is kept for
    the next ones is used by them: a further time takes no more."""
    kept = []
    for _ in range(3):
        with contextlib.ExitStack() as stack:
            attack(stack)
            for _ in range(3):
                others_are_answered(server)
            assert server.memory() < LIMIT
        kept.append(all_is_released(server))
    assert kept[2] < kept[1] + 4 * MB, kept


@pytest.mark.parametrize("which", KINDS)
def test_beyond_the_bound(kind, root, application, which):
    with serving(kind, root, application, 1) as (server, most):
        full = most // STREAMS

        def attack(stack):
            # Beyond the bound each session has its first stream.
            expected = [0] * full + [STREAMS - 1] * (SESSIONS - full)
            assert [KINDS[which](stack, server.port, count) for count in expected] == expected

        again_and_again(server, attack)


def test_the_first_of_each_session(kind, root, application):
    """At the bound of streams, and nearly that of connections, with heads as long as they may be,
    nearly."""
    with serving(kind, root, application, 1) as (server, most):
        def attack(stack):
            full = most // STREAMS
            assert sum(posts(stack, server.port, STREAMS, 1) for _ in range(full)) == 0
            for _ in range(most - full - ROOM):
                assert posts(stack, server.port, 2, 4, 1) == 1

        again_and_again(server, attack)


def refused_or_closed(session, stack, port):
    """Who does not read may be closed, if its memory is needed elsewhere."""
    try:
        return session(stack, port)
    except ConnectionError:
        return STREAMS
    except AssertionError as error:
        if not str(error).startswith("the server has closed"):
            raise
        return STREAMS


def test_all_kinds_at_once(kind, root, application):
    with serving(kind, root, application, 2) as (server, most):
        def attack(stack):
            refused = [refused_or_closed(session, stack, server.port)
                       for session in [*KINDS.values()] * 4]
            assert 0 < len(refused) * STREAMS - sum(refused) <= 2 * most + len(refused)

        again_and_again(server, attack)
