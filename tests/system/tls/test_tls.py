# SPDX-License-Identifier: MIT
"""TLS: handshakes, names and certificates, sessions, and clients that do not speak it.

That everything else works as in clear text is tested by the other tests, with SWEET_OVER=tls.
"""

import contextlib
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading

import pytest

import tls
from client import Client, exchange, request
from files import KB, pattern, write
from server import TIMEOUT, Lines, running, sanitized

pytestmark = pytest.mark.clear("these choose what is below")

V12, V13 = (ssl.TLSVersion.TLSv1_2,) * 2, (ssl.TLSVersion.TLSv1_3,) * 2
SIZES = [0, 1, 16383, 16384, 16385, 100_000, 3_000_000]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    for size in SIZES:
        write(folder / f"{size}.bin", pattern(size, seed=size))
    return folder


@pytest.fixture(scope="module")
def server(kind, root):
    with running(kind, root, *tls.options("ec", "rsa"), listen="127.0.0.1:0,tls") as made:
        yield made


def with_hosts(kind, root, config, *options, **how):
    """A server whose default host has the certificate "ec", and these hosts."""
    path = write(root / "sweet.conf", config.replace("CERTIFICATES", tls.FOLDER).encode())
    return running(kind, root, "--config", path, *tls.options(), *options,
                   listen="127.0.0.1:0,tls", **how)


def connect(server, **how):
    return Client(server.port, secure=how or True)


def peer(client):
    return dict(part[0] for part in client.socket.getpeercert()["subject"])["commonName"]


@pytest.mark.parametrize("ciphers", ["ECDHE-RSA-AES128-GCM-SHA256",
                                     "ECDHE-ECDSA-CHACHA20-POLY1305", None])
def test_bytes(server, root, ciphers):
    settings = tls.context(versions=V12 if ciphers else V13)
    if ciphers:
        settings.set_ciphers(ciphers)
    with connect(server, settings=settings) as client:
        assert client.socket.cipher()[0] == (ciphers or "TLS_AES_128_GCM_SHA256")
        for size in SIZES:
            assert client.get(f"/{size}.bin").body == (root / f"{size}.bin").read_bytes()


class Relay:
    """Passes bytes between a client and a server, and keeps what comes from the server."""

    def __init__(self, port):
        self.wire = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.far = socket.create_connection(("127.0.0.1", port), TIMEOUT)
        self.threads = [threading.Thread(target=self.run, daemon=True)]
        self.threads[0].start()

    def run(self):
        self.near, _ = self.listener.accept()
        back = threading.Thread(target=self.back, daemon=True)
        back.start()
        while data := self.near.recv(1 << 16):
            self.far.sendall(data)
        self.far.shutdown(socket.SHUT_WR)
        back.join(TIMEOUT)

    def back(self):
        while data := self.far.recv(1 << 16):
            self.wire += data
            self.near.sendall(data)

    def close(self):
        self.threads[0].join(TIMEOUT)
        for one in (self.listener, self.near, self.far):
            one.close()


def test_nothing_is_readable_on_the_wire(server, root):
    relay = Relay(server.port)
    with Client(relay.port, secure=True) as client:
        answer = client.get("/100000.bin", fields="Connection: close\r\n")
        assert client.at_end()
    relay.close()
    assert len(relay.wire) > len(answer.body)
    assert b"HTTP/1.1" not in relay.wire and b"SWEET" not in relay.wire
    for at in range(0, len(answer.body) - 16, 1024):
        assert answer.body[at:at + 16] not in relay.wire


def records(wire):
    """Returns the lengths of the records of data."""
    lengths, at = [], 0
    while at < len(wire):
        length = int.from_bytes(wire[at + 3:at + 5], "big")
        if wire[at] == 23:
            lengths.append(length)
        at += 5 + length
    assert at == len(wire)
    return lengths


def test_records_are_short_until_the_client_reads(server):
    relay = Relay(server.port)
    with Client(relay.port, secure=True) as client:
        client.get("/3000000.bin", fields="Connection: close\r\n")
        assert client.at_end()
    relay.close()
    lengths = records(relay.wire)
    whole = [length for length in lengths if length > 16384]
    assert len(whole) * 16384 > 2_800_000
    assert lengths.index(whole[0]) > 10
    assert max(lengths[:lengths.index(whole[0])]) < 4200


def test_end_is_announced(server):
    """close_notify: a client can tell an end from a connection that was cut (RFC 8446, 6.1)."""
    settings = tls.context()
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as plain:
        with settings.wrap_socket(plain, server_hostname="test",
                                  suppress_ragged_eofs=False) as secure:
            secure.sendall(b"GET /1.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
            while secure.recv(1 << 16):
                pass


# --- names and certificates ------------------------------------------------------------

HOSTS = """
[host other]
names=other.example;*.wild.example
certificate=CERTIFICATES/other.pem
key=CERTIFICATES/other.key
"""


def test_certificate_by_name(kind, tmp_path):
    with with_hosts(kind, tmp_path, HOSTS) as server:
        for name, common in [("other.example", "other.example"), ("OTHER.EXAMPLE", "other.example"),
                             ("a.wild.example", "other.example"), ("localhost", "localhost"),
                             ("unknown.example", "localhost"), (None, "localhost")]:
            with connect(server, name=name) as client:
                assert peer(client) == common, name
                assert client.get("/none").status == 404


def test_certificate_by_kind_of_key(server):
    """Of a list, the one whose key the client's ciphers want."""
    for cipher, bits in [("ECDHE-ECDSA-AES128-GCM-SHA256", 256), ("ECDHE-RSA-AES128-GCM-SHA256", 2048)]:
        settings = tls.context(versions=V12)
        settings.set_ciphers(cipher)
        with connect(server, settings=settings) as client:
            length = len(client.socket.getpeercert(binary_form=True))
            assert (length > 600) == (bits == 2048)


@pytest.mark.parametrize("wanted, chosen", [
    ("ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256", "AES128-GCM"),
    ("ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256", "CHACHA20"),
    ("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305", "AES128-GCM"),
])
def test_preferred_cipher(server, wanted, chosen):
    settings = tls.context(versions=V12)
    settings.set_ciphers(wanted)
    with connect(server, settings=settings) as client:
        assert chosen in client.socket.cipher()[0]


@pytest.mark.parametrize("offered, chosen", [
    ([], None), (["http/1.1"], "http/1.1"), (["h3", "http/1.1"], "http/1.1"),
    (["http/1.0"], "http/1.0"),
])
def test_protocol(server, offered, chosen):
    settings = tls.context()
    if offered:
        settings.set_alpn_protocols(offered)
    with connect(server, settings=settings) as client:
        assert client.socket.selected_alpn_protocol() == chosen
        assert client.get("/1.bin").status == 200


def test_no_common_protocol(server):
    settings = tls.context()
    settings.set_alpn_protocols(["imap"])
    with pytest.raises(ssl.SSLError, match="NO_APPLICATION_PROTOCOL|alert"):
        connect(server, settings=settings)


@pytest.mark.parametrize("profile, version, good", [
    ("intermediate", ssl.TLSVersion.TLSv1_1, False), ("intermediate", ssl.TLSVersion.TLSv1_2, True),
    ("intermediate", ssl.TLSVersion.TLSv1_3, True), ("modern", ssl.TLSVersion.TLSv1_2, False),
    ("modern", ssl.TLSVersion.TLSv1_3, True),
])
def test_versions(kind, root, profile, version, good):
    settings = tls.context()
    settings.set_ciphers("ALL:@SECLEVEL=0")
    settings.minimum_version = settings.maximum_version = version
    with running(kind, root, *tls.options(), "--tls-profile", profile, "--log-level", "info",
                 listen="127.0.0.1:0,tls") as server:
        if good:
            with connect(server, settings=settings) as client:
                assert client.get("/1.bin").status == 200
        else:
            with pytest.raises(ssl.SSLError):
                connect(server, settings=settings)
            assert server.errors.wait(r"TLS handshake: .*(version|protocol).*: closing")


# --- sessions ----------------------------------------------------------------------------


def again(server, version, session=None, name="test", settings=None):
    """Returns a session, and whether it was resumed."""
    settings = settings or tls.context(versions=version)
    with connect(server, settings=settings, session=session, name=name) as client:
        assert client.get("/none").status == 404
        return client.socket.session, client.socket.session_reused


@pytest.mark.parametrize("version", [V12, V13])
def test_resumption(kind, tmp_path, version):
    """On any thread, and after a reload; not below another name."""
    settings = tls.context(versions=version)
    with with_hosts(kind, tmp_path, HOSTS, "--threads", "2") as server:
        session, resumed = again(server, version, settings=settings)
        assert not resumed
        for _ in range(8):
            session, resumed = again(server, version, session, settings=settings)
            assert resumed
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded ")
        session, resumed = again(server, version, session, settings=settings)
        assert resumed
        _, resumed = again(server, version, session, "other.example", settings)
        assert not resumed
        counts = server.status()["tls"]
    assert counts["resumed"] == 9 and counts["failed"] == 0 and counts["handshakes"] >= 11


def test_resumption_by_another_process(kind, tmp_path):
    settings = tls.context(versions=V13)
    with running(kind, tmp_path, *tls.options(), "--arch", "mp", "--threads", "2",
                 listen="127.0.0.1:0,tls") as server:
        session, _ = again(server, V13, settings=settings)
        for _ in range(8):
            session, resumed = again(server, V13, session, settings=settings)
            assert resumed


# --- clients that are no good --------------------------------------------------------------


def test_clear_text(server):
    answer = exchange(server.port, request("/1.bin"))
    assert answer.startswith(b"HTTP/1.1 400 ") and b"use https" in answer
    assert b"Connection: close" in answer


def test_tls_on_a_clear_address(kind, root):
    with running(kind, root, "--log-level", "info") as server:
        with pytest.raises(ssl.SSLError):
            connect(server)
        assert server.errors.wait("400: TLS on an address that expects HTTP in clear text")


def test_line_ends_in_a_hello(kind, root):
    """Its random bytes may be what ends the head of a request."""
    with running(kind, root, "--log-level", "info") as server:
        with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as client:
            client.sendall(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + b"\r\n" * 16)
            assert client.recv(4096).startswith(b"HTTP/1.1 400 ")
        assert server.errors.wait("400: TLS on an address that expects HTTP in clear text")


@pytest.mark.parametrize("data", [
    b"\x16", b"\x16\x03\x01\x40\x01" + bytes(20), b"\x80\x2e\x01\0\x02\0\x15\0\0\0\x10" + bytes(36),
    b"\0" * 100, b"\x15\x03\x01\0\x02\x02\x28", b"\x16\x03\x01\xff\xff" + b"x" * 70000, b"get /",
], ids=["a byte", "too long", "sslv2", "zeros", "alert", "oversized", "lower case"])
def test_not_a_handshake(kind, root, data):
    with running(kind, root, *tls.options(), "--log-level", "info", "--threads", "1",
                 listen="127.0.0.1:0,tls") as server:
        with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as plain:
            try:
                plain.sendall(data)
                plain.shutdown(socket.SHUT_WR)
                while plain.recv(4096):
                    pass
            except ConnectionResetError:
                pass
        with connect(server) as client:
            assert client.get("/1.bin").status == 200


def test_handshake_in_pieces(server):
    """A byte at a time, through memory."""
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        held = tls.Held(plain)

        def send():
            data = held.out.read()
            for at in range(len(data)):
                plain.sendall(data[at:at + 1])

        def run(what, *arguments):
            result = held.run(what, *arguments, send=send)
            send()
            return result

        run(held.secure.do_handshake)
        run(held.secure.write, request("/1.bin"))
        answer = b""
        while not answer.endswith(pattern(1, seed=1)):
            answer += run(held.secure.read, 4096)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def in_records(message, size):
    """The messages of a handshake in records of at most that many bytes."""
    return b"".join(b"\x16\x03\x01" + struct.pack("!H", len(part)) + part for part in (
        message[at:at + size] for at in range(0, len(message), size)))


@pytest.mark.parametrize("size", [1, 5, 100])
def test_hello_in_records(server, size):
    """A message may be spread over records (RFC 8446, section 5.1)."""
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as plain:
        held = tls.Held(plain)
        held.begin()
        plain.sendall(in_records(held.out.read()[5:], size))
        held.run(held.secure.do_handshake, send=held.send)
        held.secure.write(request("/1.bin"))
        held.send()
        assert held.run(held.secure.read, 4096).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("data", [
    b"\x16\x03\x01\x40\0\x01\0\x40\x01" + bytes(16380),
    in_records(b"\x01\0\x3f\0" + bytes(5000), 1),
], ids=["a long message", "many records"])
def test_hello_is_too_long(kind, root, data):
    with running(kind, root, *tls.options(), "--log-level", "info", "--threads", "1",
                 listen="127.0.0.1:0,tls") as server:
        with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as plain:
            plain.sendall(data)
            assert plain.recv(100) == b"\x15\x03\x01\0\x02\x02\x32"  # decode_error
            assert plain.recv(100) == b""
        assert server.errors.wait("TLS handshake: a ClientHello of more than 16384 bytes: closing")
        assert server.status()["tls"]["failed"] == 1


def test_clients_that_hold_back_a_hello(kind, root):
    """Without the last byte, there is nothing to begin a handshake with, nor memory for one."""
    count, least = 200, 40 * KB  # of a handshake
    with running(kind, root, *tls.options(), "--threads", "1",
                 listen="127.0.0.1:0,tls") as server, contextlib.ExitStack() as stack:
        before = server.memory()
        waiting = []
        for _ in range(count):
            plain = stack.enter_context(
                socket.create_connection(("127.0.0.1", server.port), TIMEOUT))
            held = tls.Held(plain)
            held.begin()
            data = held.out.read()
            plain.sendall(data[:-1])
            waiting.append((held, data))
        server.wait_status(lambda status: status["connections"]["open"] == count + 1)
        # A status is a handshake of its own: what came before it was read.
        assert server.memory() - before < count * least / (2 if sanitized() else 4)
        for held, data in waiting[::50]:
            held.plain.sendall(data[-1:])
            held.run(held.secure.do_handshake, send=held.send)


def test_handshake_takes_too_long(kind, root, clock):
    with running(kind, root, *tls.options(), "--log-level", "info", "--threads", "1",
                 "--header-timeout", f"{clock.limit}s", listen="127.0.0.1:0,tls",
                 clock=clock) as server:
        with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as plain:
            plain.sendall(b"\x16\x03\x01\x02\0\x01\0\x01\xfc")
            server.wait_status(lambda status: status["connections"]["open"] == 2)
            server.forward(clock.limit + 1)
            assert server.errors.wait("no TLS handshake in time: closing")
            assert plain.recv(100) == b""


def test_certificates_behind_the_proxy_protocol(kind, root, tmp_path):
    log = tmp_path / "log"
    with running(kind, root, *tls.options(), "--proxy-protocol", "127.0.0.0/8", "--access-log", log,
                 listen="127.0.0.1:0,tls") as server:
        with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as plain:
            plain.sendall(b"PROXY TCP4 192.0.2.9 198.51.100.1 4711 443\r\n")
            with tls.wrap(plain) as secure:
                secure.sendall(request("/1.bin", fields="Connection: close\r\n"))
                answer = b""
                while data := secure.recv(4096):
                    answer += data
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert "192.0.2.9" in log.read_text()


def s_client(server, version, letter, said):
    """Lets OpenSSL's client do what a letter means, and then send a request; returns its output."""
    process = subprocess.Popen(
        ["openssl", "s_client", "-crlf", "-connect", f"127.0.0.1:{server.port}", version,
         "-CAfile", tls.file("authority.pem")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = Lines(process.stdout)
    try:
        assert output.wait("^ *Verify return code: 0"), output.text()
        process.stdin.write(f"{letter}\n".encode())
        process.stdin.flush()
        assert output.wait(said), output.text()
        with contextlib.suppress(BrokenPipeError):  # it may have ended
            process.stdin.write(b"GET /1.bin HTTP/1.1\nHost: test\nConnection: close\n\n")
            process.stdin.flush()
        process.wait(TIMEOUT)
        output.thread.join(TIMEOUT)
        return output.text()
    finally:
        process.kill()
        process.wait(TIMEOUT)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("letter", ["k", "K"], ids=["client", "both"])
def test_key_update(server, letter):
    """A client may change its key, and want the server to change its own (RFC 8446, 4.6.3)."""
    assert "HTTP/1.1 200 OK" in s_client(server, "-tls1_3", letter, "KEYUPDATE")


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("groups, offered, agreed", [
    ("", "P-256", "P-256|prime256v1"), ("P-384 P-256", "X25519:P-384", "P-384|secp384r1"),
    ("P-256", "X25519", ""),
])
def test_groups(kind, root, groups, offered, agreed):
    chosen = [word for name in groups.split() for word in ("--tls-groups", name)]
    with running(kind, root, *tls.options(), *chosen, listen="127.0.0.1:0,tls") as server:
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-groups", offered],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=TIMEOUT)
    if agreed:
        assert re.search(rf"^(Server Temp Key|Peer Temp Key|Negotiated TLS1.3 group): .*({agreed})",
                         done.stdout, re.M), done.stdout
    else:
        assert "handshake failure" in done.stdout


@pytest.mark.needs("openssl")
def test_ocsp_staple(kind, root, tmp_path):
    """A client that asks for it gets the response of ocsp-staple."""
    run = lambda *words: subprocess.run(
        ["openssl", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT).stdout
    pem, key, staple = (tmp_path / name for name in ["a.pem", "a.key", "a.der"])
    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", pem, "-days", 2,
        "-subj", "/CN=a", "-set_serial", 1)
    index = write(tmp_path / "index", b"V\t491231235959Z\t\t01\tunknown\t/CN=a\n")
    run("ocsp", "-index", index, "-CA", pem, "-rsigner", pem, "-rkey", key, "-issuer", pem,
        "-serial", 1, "-ndays", 1, "-respout", staple)
    for options, said in [([], "OCSP response: no response sent"),
                          (["--ocsp-staple", staple], "OCSP Response Status: successful")]:
        with running(kind, root, "--certificate", pem, "--key", key, *options,
                     listen="127.0.0.1:0,tls") as server:
            assert said in run("s_client", "-connect", f"127.0.0.1:{server.port}", "-status")


@pytest.mark.needs("openssl")
def test_renegotiation(server):
    """Refused: a client could let the server compute forever."""
    output = s_client(server, "-tls1_2", "R", "RENEGOTIATING")
    assert "HTTP/1.1" not in output and "no renegotiation" in output
