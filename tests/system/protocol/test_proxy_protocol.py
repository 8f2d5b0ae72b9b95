# SPDX-License-Identifier: MIT
"""The PROXY protocol: the client of a connection, and which peers are not trusted."""

import ipaddress
import re
import struct
import subprocess

import pytest

from client import Client, request
from files import write
from server import OBEY, SCALE, TIMEOUT, once, running

pytestmark = pytest.mark.clear("the header comes before TLS: test_tls.py")

PROXY = "127.0.0.2"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def binary(command, family, addresses, *extensions):
    body = addresses + b"".join(
        struct.pack("!BH", kind, len(value)) + value for kind, value in extensions
    )
    return SIGNATURE + bytes([0x20 | command, family]) + struct.pack("!H", len(body)) + body


def pair(source, target, *ports):
    return b"".join(ipaddress.ip_address(a).packed for a in (source, target)) + struct.pack(
        "!HH", *ports
    )


V4 = b"PROXY TCP4 192.0.2.9 198.51.100.1 4711 80\r\n"
B6 = binary(1, 0x21, pair("2001:db8::9", "2001:db8::1", 4712, 443), (4, b"\0" * 9), (2, b"name"))

# Header, and the client's address in the log.
GOOD = {
    "text 4": (V4, "192.0.2.9"),
    "text 6": (b"PROXY TCP6 2001:db8::9 2001:db8::1 4711 80\r\n", "2001:db8::9"),
    "text mapped": (b"PROXY TCP6 ::ffff:192.0.2.9 ::1 4711 80\r\n", "192.0.2.9"),
    "text unknown": (b"PROXY UNKNOWN ignored\r\n", PROXY),
    "binary 4": (binary(1, 0x11, pair("192.0.2.9", "198.51.100.1", 1, 2)), "192.0.2.9"),
    "binary 6": (B6, "2001:db8::9"),
    "binary unix": (binary(1, 0x31, b"/socket".ljust(216, b"\0")), "unix:"),
    "binary local": (binary(0, 0, b""), PROXY),
    "binary unknown": (binary(1, 0, b"", (4, b"x")), PROXY),
    "binary long": (binary(1, 0x11, pair("192.0.2.9", "198.51.100.1", 1, 2), (4, b"x" * 4096)),
                    "192.0.2.9"),
}

BAD = {
    "no header": request("/file"),
    "text malformed": b"PROXY TCP4 192.0.2.9 198.51.100.1 4711\r\n" + request("/file"),
    "text too long": b"PROXY UNKNOWN " + b"x" * 200 + b"\r\n" + request("/file"),
    "binary version": SIGNATURE + b"\x31\x11\0\x0c" + bytes(12) + request("/file"),
    "binary short": SIGNATURE + b"\x21\x11\0\x0b" + bytes(11) + request("/file"),
    "binary too long": SIGNATURE + b"\x21\x11\xff\xff",
    "nothing at all": b"\0" * 100,
}


@pytest.fixture(scope="module")
def server(kind, tmp_path_factory):
    root = tmp_path_factory.mktemp("proxy")
    write(root / "file", b"a file\n")
    with running(kind, root, "--proxy-protocol", PROXY, "--log-level", "info", "--access-log", "-",
                 "--worker", f"/obey={OBEY}") as server:
        yield server


def logged(server, target):
    line = server.output.wait(f'"GET {re.escape(target)} ')
    assert line, server.output.text()
    return line.split()[0]


def test_client_is_the_proxys_client(server):
    wanted = {}
    for name, (header, address) in GOOD.items():
        target = f"/file?{name.replace(' ', '-')}"
        wanted[target] = wanted[f"{target}-again"] = address
        with Client(server.port, source=PROXY) as client:
            client.send(header + request(target) + request(f"{target}-again"))
            assert [client.response().body for _ in range(2)] == [b"a file\n"] * 2, name
            got = client.get("/obey/variable").body.decode().splitlines()
            assert f"REMOTE_ADDR={address}" in got
            # The status is for this machine: for the proxy itself, not for its clients.
            status = 200 if name == "binary local" else 404
            assert client.get("/.sweet/status").status == status, name
    # All at the end: the log is written a second later.
    assert {target: logged(server, target) for target in wanted} == wanted


def test_loopback_client_of_the_proxy(server):
    with Client(server.port, source=PROXY) as client:
        client.send(b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n")
        assert client.get("/.sweet/status").status == 200


def test_header_in_pieces(server):
    for name in ("text 6", "binary 6"):
        header = GOOD[name][0]
        for cut in range(1, len(header), SCALE):
            with Client(server.port, source=PROXY) as client:
                client.send(header[:cut])
                client.send(header[cut:] + request("/file"))
                assert client.response().body == b"a file\n"
        with Client(server.port, source=PROXY) as client:
            for at in range(len(header)):
                client.send(header[at:at + 1])
            assert client.get(f"/file?bytes{name[0]}").body == b"a file\n"
    for name in ("text 6", "binary 6"):
        assert logged(server, f"/file?bytes{name[0]}") == GOOD[name][1]


def test_much_behind_half_a_header(server):
    """More than the server reads ahead, in one piece with the rest of the header."""
    with Client(server.port, source=PROXY) as client:
        client.send(V4[:10])
        client.send(V4[10:] + request("/file") * 1000)
        assert all(client.response().body == b"a file\n" for _ in range(1000))


@pytest.mark.parametrize("name", BAD)
def test_no_header_no_connection(server, name):
    before = server.errors.count("127.0.0.2: not a PROXY header")
    with Client(server.port, source=PROXY) as client:
        client.send(BAD[name])
        try:
            assert client.socket.recv(1) == b""
        except ConnectionResetError:
            pass
    assert server.errors.wait("127.0.0.2: not a PROXY header: closing", before + 1)


def test_half_a_header_and_the_end(server):
    for cut in (0, 1, 20):
        with Client(server.port, source=PROXY) as client:
            client.send(V4[:cut])
            client.half_close()
            assert client.at_end()


def test_second_header_is_a_request(server):
    with Client(server.port, source=PROXY) as client:
        client.send(V4 + V4 + request("/file"))
        assert client.response().status == 400
        assert client.at_end()


def test_others_are_not_believed(server):
    for name in ("text 4", "binary 4"):
        with Client(server.port, source="127.0.0.1") as client:
            client.send(GOOD[name][0] + request("/file"))
            assert client.response().status == 400
    with Client(server.port, source="127.0.0.3") as client:
        assert client.get("/file?plain").body == b"a file\n"
    assert logged(server, "/file?plain") == "127.0.0.3"


def test_without_the_key_nobody_is_believed(tmp_path):
    write(tmp_path / "file", b"a file\n")
    with running("epoll", tmp_path) as server, Client(server.port, source=PROXY) as client:
        client.send(V4 + request("/file"))
        assert client.response().status == 400


def test_rules_and_limits_are_for_the_client(tmp_path):
    def header(last):
        return f"PROXY TCP4 192.0.2.{last} 198.51.100.1 4711 80\r\n".encode()

    write(tmp_path / "file", b"a file\n")
    with running("epoll", tmp_path, "--proxy-protocol", PROXY, "--deny", "192.0.2.9",
                 "--connections-per-client", 2) as server:
        def get(last):
            client = Client(server.port, source=PROXY)
            client.send(header(last) + request("/file"))
            return client, client.response().status

        assert get(9)[1] == 403
        held = [get(1), get(1), get(2), get(1)]
        assert [status for _, status in held] == [200, 200, 200, 503]
        # Connections of the proxy itself, or with an incomplete header, are not counted.
        waiting = [Client(server.port, source=PROXY) for _ in range(5)]
        for client in waiting:
            client.send(GOOD["binary local"][0] + request("/file"))
            assert client.response().status == 200
        for client in waiting + [client for client, _ in held]:
            client.close()


def test_curl(kind, tmp_path):
    write(tmp_path / "file", b"a file\n")
    with running(kind, tmp_path, "--proxy-protocol", "127.0.0.0/8", "--access-log", "-",
                 "--log-format", "json") as server:
        got = subprocess.run(
            ["curl", "-sS", "--haproxy-protocol", server.url + "/file"],
            capture_output=True, timeout=TIMEOUT, check=True,
        )
        assert got.stdout == b"a file\n"
        assert server.output.wait('"remote":"127.0.0.1"')


def test_proxy_that_is_slow_is_given_up(tmp_path):
    """Within the timeout for a head, and with a line that says why."""
    with running("epoll", tmp_path, "--proxy-protocol", "127.0.0.1", "--header-timeout", "1s",
                 "--log-level", "info") as server:
        with Client(server.port) as client:
            client.send(V4[:10])
            assert client.socket.recv(1) == b""
        assert server.errors.wait("127.0.0.1: no PROXY header in time")


@pytest.mark.parametrize("value", ["127.0.0.1/33", "localhost", "1.2.3.4;x"])
def test_check_config(tmp_path, value):
    path = write(tmp_path / "sweet.conf", f"[sweet]\nroot=.\nproxy-protocol={value}\n".encode())
    got = once("--check-config", "--config", path)
    assert got.returncode == 1
    assert f"{path}:3: " in got.stderr and "must be an address, a network" in got.stderr


def test_stop_while_a_header_is_waited_for(tmp_path):
    with running("epoll", tmp_path, "--proxy-protocol", "127.0.0.1",
                 "--stop-timeout", "1s") as server:
        with Client(server.port) as client:
            client.send(V4[:10])
            server.stop()
            assert client.at_end()
