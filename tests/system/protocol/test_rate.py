# SPDX-License-Identifier: MIT
"""rate: how fast a response is sent, of files and of programs."""

import re
import shutil
import subprocess
import time

import pytest

from client import Client, Response, request
from files import MB, pattern, write
from server import GENERATE, check_config, running
from streams import Streams, needs_h2

RATE = 4 * MB
SIZE = 5 * MB
# Bytes that leave at once, before the kernel paces: ten segments, which are large on loopback.
BURST = 10 * 65536
BODY = pattern(SIZE)


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rate")
    write(folder / "root" / "slow" / "file", BODY)
    write(folder / "root" / "slower" / "file", BODY)
    write(folder / "root" / "fast" / "file", BODY)
    write(folder / "sweet.conf", f"""[sweet]
root={folder}/root
worker=/slow/generate={GENERATE}
[path /slow]
rate={RATE}
[path /slower]
rate=3M
""".encode())
    with running(kind, None, "--config", folder / "sweet.conf") as made:
        yield made


def least(size, rate):
    """A lower limit of the seconds: what is too late here may be the machine's fault."""
    return 0.8 * (size - BURST) / rate


@pytest.mark.parametrize("target", ["/slow/file", f"/slow/generate?size={SIZE}"])
def test_time(server, target):
    with Client(server.port) as client:
        before = time.monotonic()
        client.send(request(target))
        answer = client.response()
        after = time.monotonic()
    assert answer.status == 200 and len(answer.body) == SIZE
    assert target != "/slow/file" or answer.body == BODY
    assert after - before >= least(SIZE, RATE)


def limit_of(server, client):
    """Returns the limit of the server's socket, as the kernel has it, in bytes per second; or None."""
    if not shutil.which("ss"):
        pytest.skip("no ss; on Debian: apt-get install iproute2")
    port = client.socket.getsockname()[1]
    said = subprocess.run(["ss", "-Htin", f"sport = :{server.port} and dport = :{port}"],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    match = re.search(r"pacing_rate \d+bps(?:/(\d+)bps)?", said)
    assert match, said
    return match[1] and int(match[1]) // 8


@pytest.mark.http1("with HTTP/2, one connection has them all")
def test_kept_connection(server):
    """The limit is that of the path of each response, whatever came before."""
    with Client(server.port) as client:
        for target, limit in [("/fast/file", None), ("/slow/file", RATE), ("/slower/file", 3 * MB),
                              ("/fast/file", None), ("/none", None), ("/slow/none", RATE)]:
            client.send(request(target))
            answer = Response(client.head(), b"")
            assert limit_of(server, client) == limit, target
            length = int(answer["content-length"])
            assert client.take(length) == BODY or answer.status == 404


@needs_h2
@pytest.mark.clear("one session, without TLS")
def test_session(kind, tmp_path):
    """As long as a response of a session has a limit, no other request lifts it."""
    for name in ["slow", "slower", "fast"]:
        write(tmp_path / "root" / name, BODY)
    write(tmp_path / "root" / "small", b"small\n")
    write(tmp_path / "sweet.conf", f"""[sweet]
root={tmp_path}/root
http2=clear
[path /slow]
rate={RATE}
[path /slower]
rate=3M
""".encode())

    with running(kind, None, "--config", tmp_path / "sweet.conf") as server:
        with Streams(server.port, take=False) as session:
            for path, limit in [("/fast", None), ("/slow", RATE), ("/fast", RATE), ("/slower", 3 * MB),
                                ("/slow", 3 * MB), ("/fast", 3 * MB)]:
                stream = session.open(path)
                session.until(lambda: session.answers[stream].status)
                assert limit_of(server, session) == limit, path
        # When the limited ones have ended, the next response counts.
        with Streams(server.port) as session:
            for path, limit in [("/slower", 3 * MB), ("/slow", RATE), ("/small", None)]:
                stream = session.open(path)
                session.until(lambda: session.answers[stream].over)
                assert limit_of(server, session) == limit, path


def test_check_config(tmp_path):
    write(tmp_path / "sweet.conf", b"[sweet]\nrate=100\n")
    status, said = check_config(tmp_path / "sweet.conf")
    assert status == 1 and 'sweet.conf:2: rate "100": must be bytes per second like 500K' in said
