# SPDX-License-Identifier: MIT
"""What "bench tls" is made of: the client that measures handshakes, the limit, certificates, the
peers' configurations, and targets."""

import contextlib
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import types

import pytest

from files import MB
from ports import free_port
from server import SCALE, TIMEOUT, UNDER

BENCH = os.path.join(os.environ["srcdir"], "bench")
sys.path.insert(0, BENCH)

from lib import (certificates, groups, h2o, http2, idle, load, nginx, sanity,  # noqa: E402
                 weave)
from lib.experiments import EXPERIMENTS  # noqa: E402
from lib import tls as over_tls  # noqa: E402
from lib.process import Failure  # noqa: E402
from test_bench_bars import costs, outcomes  # noqa: E402

pytestmark = [pytest.mark.bench, pytest.mark.needs("openssl")]

BUILT = os.path.join(os.environ["builddir"], "bench")
SIZE = 1024


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return certificates.Tls(types.SimpleNamespace(directory=tmp_path_factory.mktemp("tls")))


@pytest.fixture
def tls(made):
    made.use("ecdsa")
    return made


@contextlib.contextmanager
def null_server(tls, size=SIZE, program="null-tls"):
    """Yields its port."""
    port = free_port()
    with subprocess.Popen([*UNDER, os.path.join(BUILT, program), str(port), str(size), "3",
                           tls.pem], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout.readline() == f"{program}: ready\n".encode()
            yield port
        finally:
            server.kill()


@contextlib.contextmanager
def one_response(tls, data, tickets=2):
    """Yields the port of a server that sends this to each client, and closes."""
    settings = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    settings.load_cert_chain(tls.pem)
    settings.num_tickets = tickets

    def serve():
        with contextlib.suppress(OSError):  # the client ends early, or the test
            while True:
                with contextlib.suppress(ssl.SSLError, ConnectionError):
                    with settings.wrap_socket(listener.accept()[0], server_side=True) as one:
                        one.recv(4096)
                        one.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def run(port, *options, size=SIZE):
    return subprocess.run([*UNDER, os.path.join(BUILT, "handshakes"), *map(str, options),
                           f"127.0.0.1:{port}", "/", str(size)],
                          capture_output=True, text=True, timeout=3 * TIMEOUT, check=False)


def figures(done):
    assert done.returncode == 0, done.stderr
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", done.stdout)}


# --- the client ------------------------------------------------------------------


@pytest.mark.parametrize("kind", certificates.KEYS)
@pytest.mark.parametrize("options", [[], ["--resume"],
                                     ["--cipher", "TLS_AES_256_GCM_SHA384", "--resume"]])
def test_handshakes_are_counted(tls, kind, options):
    count = 60 // SCALE
    tls.use(kind)
    with null_server(tls) as port:
        got = figures(run(port, "--connections", 4, "--seconds", TIMEOUT, "--requests", count,
                          *options))
    assert (got["requests"], got["bytes"]) == (count, count * SIZE)
    assert 0 < got["p50"] <= got["p99"]


@pytest.mark.parametrize("group", ["P-256", "X25519", "X25519MLKEM768"])
def test_group_is_the_clients(tls, group):
    """Each server has it if its library does, which is the client's, too."""
    with null_server(tls) as port:
        done = run(port, "--requests", 3, "--group", group)
    if group == "X25519MLKEM768" and done.returncode == 3:
        assert re.fullmatch(r"handshakes: OpenSSL [\d.]+ knows no group X25519MLKEM768\n", done.stderr)
        assert not done.stdout
    else:
        assert figures(done)["requests"] == 3


def test_rows_of_groups(tls):
    """A server that has not the client's group, or a library that does not know it, keeps its row."""
    context = types.SimpleNamespace(build=os.environ["builddir"], client_cpu=min(os.sched_getaffinity(0)))
    with null_server(tls) as port:
        server = types.SimpleNamespace(name="nginx", tls=tls, address="127.0.0.1", port=port, absent="")
        for group, words in (("X25519", ""), ("NoSuchGroup", "no group NoSuchGroup in OpenSSL "),
                             # Not with TLS 1.3.
                             ("secp192r1", "no group secp192r1")):
            client = load.Handshakes(context, 1, SIZE, "/", group=group)
            row = groups.row(server, client)
            assert row.name == "nginx" and row.server.absent.startswith(words)
            assert bool(row.server.absent) == bool(words)
        server.name = "sweet"
        with pytest.raises(Failure, match="^sweet: no group secp192r1, which the library has$"):
            groups.row(server, client)


def test_case_of_a_group_that_the_library_does_not_know():
    absent = dict.fromkeys(("sweet", "sweet-again", "nginx", "null-tls"), "no group G in OpenSSL 3.0.1")
    cases = [costs({"group": "X25519"}, **{name: [10] for name in absent}),
             {"parameters": {"group": "G"}, "runs": {}, "absent": absent}]
    verdicts = EXPERIMENTS["groups"].verdicts(cases)
    assert [text for text, *_ in verdicts] == ["CPU time, best peer (nginx) : SWEET, X25519",
                                              "CPU time, SWEET again : SWEET, X25519"]
    # 0.8 is not 0.97, but a second SWEET is as far from the first.
    noisy = costs({"group": "X25519"}, **dict(
        zip(("sweet", "sweet-again", "nginx", "null-tls"), ([10], [8], [8], [5]))))
    assert outcomes(EXPERIMENTS["groups"].verdicts([noisy])) == {
        "CPU time, best peer (nginx) : SWEET, X25519": (0.8, 0.97, "below the noise"),
        "CPU time, best peer (nginx) : null, X25519": (1.6, 0.97, None),
        "CPU time, SWEET again : SWEET, X25519": (0.8, "-", "the noise")}
    # By --io epoll,uring.
    names = ("sweet-epoll", "sweet-uring", "sweet-again-epoll", "nginx")
    assert EXPERIMENTS["groups"].verdicts([costs({"group": "X25519"}, **dict(
        zip(names, ([10], [30], [11], [20]))))])[-1][1] == 1.1
    assert list(sanity.bad_cases(cases)) == []
    assert "| G | nginx | no group G in OpenSSL 3.0.1 |" in weave.tables(
        {"cases": cases, "tables": [], "columns": groups.COLUMNS})


def test_time_ends_it(tls):
    with null_server(tls) as port:
        got = figures(run(port, "--connections", 2, "--seconds", 1))
    assert got["requests"] > 0
    assert 1_000_000 <= got["duration"] < TIMEOUT * 1_000_000


GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"


@pytest.mark.parametrize("data, words", [
    (GOOD.replace(b"200", b"404"), "status 404 with 3 bytes, not 3"),
    (GOOD.replace(b"3", b"2")[:-1], "status 200 with 2 bytes, not 3"),
    (GOOD[:-1], "the response ended early"),
    (GOOD + b"d", "the response is not one of HTTP"),
    (b"nothing\r\n", "the response is not one of HTTP"),
    (GOOD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), "does not keep the connection"),
])
def test_wrong_responses_end_it(tls, data, words):
    with one_response(tls, data) as port:
        assert words in run(port, "--requests", 1, size=3).stderr


def test_servers_that_resume_nothing_end_it(tls):
    with one_response(tls, GOOD, tickets=0) as port:
        done = run(port, "--requests", 2, "--resume", size=3)
    assert done.returncode == 1 and "the server gave no ticket" in done.stderr


def test_other_servers_end_it(tls):
    with null_server(tls) as port:
        done = run(port, "--requests", 1, "--cipher", "TLS_AES_128_CCM_8_SHA256")
        assert done.returncode == 1 and "handshake" in done.stderr
    done = run(port, "--requests", 1)
    assert done.returncode == 1


def test_wrong_options_are_refused():
    for options in (["--connections", 0], ["--seconds", "x"], ["--nonsense"]):
        assert run(1, *options).returncode == 2


# --- the limit -------------------------------------------------------------------


def test_null_server_waits_for_slow_clients(tls):
    """More than the socket takes is sent when the client reads."""
    size = 3 * MB
    with null_server(tls, size) as port, socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        plain.connect(("127.0.0.1", port))
        with tls.settings.wrap_socket(plain, server_hostname="127.0.0.1") as client:
            client.settimeout(TIMEOUT)
            client.sendall(b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r")
            client.sendall(b"\n")
            got = bytearray()
            while len(got) < 2 * size or got.count(b"Content-Length") < 2:
                got += client.recv(65536)
            while not got.endswith(got[-1:] * size):
                got += client.recv(65536)
            first, second = got.split(b"HTTP/1.1 200 OK\r\n")[1:]
            # Connections go round the bodies.
            assert first.partition(b"\r\n\r\n")[2] == bytes([first[-1]]) * size
            assert second[-1] == ord("a") + (first[-1] - ord("a") + 1) % 3


def test_null_server_survives_other_clients(tls):
    with null_server(tls) as port:
        with socket.create_connection(("127.0.0.1", port), TIMEOUT) as plain:
            plain.sendall(b"no handshake\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                while plain.recv(100):
                    pass
        assert figures(run(port, "--requests", 1))["requests"] == 1


BLOCK = (16 << 10) - 9  # the content of a record with one frame


@pytest.mark.parametrize("size", [1, 2048, 2049, BLOCK - 1, BLOCK, BLOCK + 1, 4 * BLOCK,
                                  20 * BLOCK + 100])
def test_null_h2_sends_whole_bodies(tls, size):
    """Connections go round the bodies, and frames divide them."""
    bodies = [letter * size for letter in (b"a", b"b", b"c", b"a")]
    with null_server(tls, size, "null-h2") as port:
        for first in range(2):
            http2.check("null", port, [("/", body) for body in bodies[first:]], tls=tls)


def test_null_h2_waits_for_slow_clients(tls):
    """More than the socket takes is sent when the client reads; streams share the connection."""
    count, size = 5, 2 * MB
    with null_server(tls, size, "null-h2") as port:
        with contextlib.closing(http2.Client("127.0.0.1", port, TIMEOUT, tls)) as client:
            fields = bytes([http2.GET, http2.HTTPS]) + http2.literal(http2.PATH, "/")
            flags = http2.END_STREAM | http2.END_HEADERS
            client.socket.sendall(b"".join(http2.frame(http2.HEADERS, flags, stream, fields)
                                           for stream in range(1, 2 * count, 2)))
            time.sleep(0.2)
            bodies, ended = {}, 0
            while ended < count:
                kind, flags, stream, payload = client.read_frame()
                if kind == http2.DATA:
                    bodies.setdefault(stream, bytearray()).extend(payload)
                    ended += flags & http2.END_STREAM
    assert sorted(bodies.values()) == sorted(letter * size for letter in (b"a", b"a", b"b", b"b",
                                                                         b"c"))


def test_null_h2_survives_other_clients(tls):
    settings = ssl.create_default_context(cafile=tls.pem)
    settings.set_alpn_protocols(["http/1.1"])
    with null_server(tls, program="null-h2") as port:
        with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", port)) as plain:
            settings.wrap_socket(plain, server_hostname="127.0.0.1")
        assert run(port, "--requests", 1).returncode == 1  # HTTP/1.1 without ALPN
        with contextlib.closing(http2.Client("127.0.0.1", port, TIMEOUT, tls)) as client:
            good, body = client.get("/")
        assert good and len(body) == SIZE


# --- what measures -----------------------------------------------------------------


def test_clients_trust_the_certificates_of_this_run_only(tls, tmp_path):
    with null_server(tls) as port:
        for kind in certificates.KEYS:
            tls.use(kind)  # running servers keep theirs
            with pytest.raises(Failure, match="bytes that are not"):
                load.check("null", port, [("/", b"x")], tls=tls)
        os.mkdir(tmp_path / "other")
        other = certificates.Tls(types.SimpleNamespace(directory=tmp_path / "other"))
        with pytest.raises(Failure, match="certificate verify failed"):
            load.check("null", port, [("/", b"x")], tls=other)


def test_idle_connections_stay_open(tls):
    with null_server(tls) as port:
        connections = idle.Idle(port, 5, ["127.0.0.1"], tls)
        assert connections.still_open() == 5
    assert connections.still_open() == 0
    connections.close()


@pytest.mark.needs("h2load")
def test_h2load_offers_one_cipher(tls):
    with null_server(tls) as port:
        server = types.SimpleNamespace(name="null", tls=tls, origin=f"https://127.0.0.1:{port}")
        got = load.H2load(0, 2, SIZE, "/").run(server, 1)
    assert got["bytes"] == got["requests"] * SIZE > 0
    with pytest.raises(Failure, match="the cipher is not TLS_AES_128_GCM_SHA256"):
        load.check_cipher(server, "Cipher: TLS_AES_256_GCM_SHA384\n")


@pytest.mark.needs("h2load")
def test_h2load_speaks_either_protocol(tls):
    for program, protocol, other in (("null-tls", "http/1.1", "h2"), ("null-h2", "h2", "http/1.1")):
        with null_server(tls, program=program) as port:
            server = types.SimpleNamespace(name="null", tls=tls, origin=f"https://127.0.0.1:{port}")
            got = load.H2load(0, 2, SIZE, "/", protocol=protocol).run(server, 1)
            assert got["bytes"] == got["requests"] * SIZE > 0
    with pytest.raises(Failure, match=f"the protocol is not {other}"):
        load.check_protocol(server, f"Application protocol: {protocol}\n", other)


@pytest.mark.needs("h2load")
def test_h2load_counts_what_is_not_complete_with_http2():
    output = ("requests: 9 total, 9 started, 9 done, 2 succeeded, 0 failed, 0 errored, 0 timeout\n"
              "status codes: 5 2xx, 0 3xx, 0 4xx, 0 5xx\n"
              "traffic: 4KB (4096) total, 9B (9) headers (space savings 80%), 3KB (3500) data\n")
    for protocol, requests in (("http/1.1", 2), ("h2", 3)):
        client = load.H2load(0, 2, 1000, "/", protocol=protocol)
        assert client.figures("x", output, 0, [1, 2], 1)["requests"] == requests
    assert client.figures("x", output, 0, [], 1)["p50"] is None
    with pytest.raises(Failure, match="no request"):
        client.figures("x", output.replace("3500", "900").replace("2 suc", "0 suc"), 0, [], 1)


def test_other_bytes_and_protocols_end_a_check_by_http2(tls):
    with null_server(tls, program="null-h2") as port:
        with pytest.raises(Failure, match="bytes that are not"):
            http2.check("null", port, [("/", b"x")], tls=tls)
    with null_server(tls) as port, pytest.raises(Failure, match="does not choose HTTP/2"):
        http2.check("null", port, [("/", b"x")], tls=tls)


def test_status_of_http2():
    assert http2.is_good(b"\x88\x00") and http2.is_good(b"\x20\x3f\xe1\x1f\x88")
    assert not http2.is_good(b"\x8d") and not http2.is_good(b"\x3f\xe1") and not http2.is_good(b"")
    assert http2.content(http2.PADDED | http2.PRIORITY, b"\2.....abc..") == b"abc"


@pytest.mark.parametrize("by_kernel", [False, True])
def test_configurations_of_peers(by_kernel):
    tls = types.SimpleNamespace(pem="/x.pem", by_kernel=by_kernel)
    text = nginx.conf_text("/d", 1, "/r", tls=tls)
    assert "listen 127.0.0.1:1 ssl http2 backlog" in text and "ssl_certificate_key /x.pem;" in text
    assert ("ssl_conf_command Options KTLS;" in text) == by_kernel
    assert "ssl" not in nginx.conf_text("/d", 1, "/r")
    assert h2o.configuration("/d", 1, "/r", tls=tls)["listen"]["ssl"]["key-file"] == "/x.pem"
    assert "ssl" not in h2o.configuration("/d", 1, "/r")["listen"]


def test_bars():
    kept = costs({"protocol": "http/1.1", "size": 1 << 10, "connections": 1},
                 **{"sweet": [10], "nginx": [12], "haproxy": [10.5], "null-tls": [8]})
    pages = costs({"page": "generated", "protocol": "http/1.1", "size": 10 << 10,
                   "connections": 10}, **{"sweet": [10], "nginx-fastcgi": [30]})
    handshakes = costs({"handshake": "resumed", "size": 1 << 10}, sweet=[100], apache=[98])
    many = [costs({"protocol": "h2", "size": size, "connections": 1},
                  **{"sweet": [sweet], "h2o": [12], "null-h2": [9]})
            for size, sweet in ((1 << 10, 10), (10 << 10, 11), (100 << 10, 9.5), (1 << 20, 99))]
    untold = costs({**pages["parameters"], "protocol": "h2"},
                   **{"sweet": [10], "nginx-fastcgi": [11]})
    assert outcomes(EXPERIMENTS["tls"].verdicts([kept, pages, handshakes, *many, untold])) == {
        "CPU time, best peer (haproxy) : SWEET, http/1.1, 1 KB, 1c": (1.05, 1.1, False),
        "CPU time, best peer (haproxy) : null, http/1.1, 1 KB, 1c": (1.312, 1.1, None),
        "CPU time, nginx with FastCGI : SWEET, generated, http/1.1, 10 KB, 10c": (3, 2.5, True),
        "CPU time, best peer (apache) : SWEET, resumed, 1 KB": (0.98, 0.97, True),
        "CPU time, best peer (h2o) : SWEET, h2, 1 KB, 1c": (1.2, 1.2, True),
        "CPU time, best peer (h2o) : SWEET, h2, 10 KB, 1c": (1.091, 1.1, False),
        "CPU time, best peer (h2o) : null, h2, 10 KB, 1c": (1.333, 1.1, None),
        "CPU time, best peer (h2o) : SWEET, h2, 100 KB, 1c": (1.263, 1.1, True)}


def test_near_the_limit_is_enough():
    case = costs({"protocol": "h2", "size": 1 << 10, "connections": 1},
                 **{"sweet": [10.8], "h2o": [12], "null-h2": [10]})
    assert outcomes(EXPERIMENTS["tls"].verdicts([case])) == {
        "CPU time, SWEET : null, h2, 1 KB, 1c": (1.08, "at most 1.1", True),
        "CPU time, best peer (h2o) : null, h2, 1 KB, 1c": (1.2, 1.2, None)}


# --- one file again and again ----------------------------------------------------


@pytest.mark.needs("h2load")
def test_streams_are_for_http2_only():
    assert "-m10" in load.H2load(0, 1, 1, "/", protocol="h2", streams=10).options
    assert "-m100" in load.H2load(0, 1, 1, "/", protocol="h2").options
    assert load.H2load(0, 1, 1, "/", streams=10).options == ["--h1"]


@pytest.mark.needs("h2load")
def test_one_file_again_and_again(monkeypatch):
    monkeypatch.setattr(over_tls, "check", lambda *_: None)
    some = [types.SimpleNamespace(name=name)
            for name in ("sweet", over_tls.OPENSSL, "nginx", "lighttpd", "h2o", "apache-h2")]
    null = types.SimpleNamespace(name="null-h2", serve=lambda size: None)
    found = []
    context = types.SimpleNamespace(
        io=["auto"], client_cpu=0, quick=False, pick=lambda given, usual, quick: usual,
        turns=lambda parameters, rows, runs: found.append((parameters, rows, runs)))
    over_tls.measure_again(context, some, null, (1, 10))
    assert [(of["streams"], of["connections"]) for of, _, _ in found] == \
        [(10, 1), (10, 10), (100, 1), (100, 10)]
    for of, made, _ in found:
        assert [row.name for row in made] == ["sweet", "nginx", "h2o", "null-h2"]
        for client in (row.client for row in made):
            assert f"-m{of['streams']}" in client.options and client.paths == ["/1024/000.bin"]
            assert (client.protocol, client.size, client.connections) == ("h2", 1024,
                                                                          of["connections"])


def test_target_of_one_file_is_of_h2o():
    def one(sweet):
        return costs({"protocol": "h2", "file": "one file", "size": 1024, "streams": 10,
                      "connections": 1},
                     **{"sweet": [sweet], "h2o": [10], "nginx": [1], "null-h2": [9]})

    text = "CPU time, h2o : SWEET, h2, one file, 1 KB, streams 10, 1c"
    for sweet, found in ((10, (1, 1, True)), (12.5, (0.8, 1, False))):
        assert outcomes(EXPERIMENTS["tls"].verdicts([one(sweet)])) == {text: found}
    assert not over_tls.of_files(one(1)["parameters"])
    assert over_tls.of_files({"protocol": "h2", "size": 1024, "connections": 1})
