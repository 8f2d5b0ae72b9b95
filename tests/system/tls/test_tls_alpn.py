# SPDX-License-Identifier: MIT
"""Answers to ACME's challenge tls-alpn-01 (RFC 8737), from a folder that an ACME client fills."""

import os
import shutil
import socket
import ssl

import pytest

import tls
from client import Client
from files import write
from server import TIMEOUT, once, running
from test_reload import BAD, reload

pytestmark = pytest.mark.clear("these choose what is below")

ANSWERS = "tls-alpn-01=%/answers\n"
USUAL = "certificate=@ec.pem\nkey=@ec.key\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "answers").mkdir()
    (tmp_path / "own").mkdir()
    write(tmp_path / "index.html", b"page\n")
    return tmp_path


@pytest.fixture
def answers(folder):
    return folder / "answers"


def config(folder, text):
    """@ stands for the folder of certificates, % for that of the test."""
    text = f"[sweet]\nlisten=127.0.0.1:0,tls\nroot=%\n{USUAL}{text}"
    return write(folder / "sweet.conf",
                 text.replace("@", f"{tls.FOLDER}/").replace("%", str(folder)).encode())


def add(answers, name, certificate="other"):
    """Adds an answer; any certificate is good enough for a server."""
    shutil.copy(tls.file(f"{certificate}.key"), answers / f"{name}.key.pem")
    shutil.copy(tls.file(f"{certificate}.pem"), answers / f"{name}.crt.pem")


def der(certificate):
    with open(tls.file(f"{certificate}.pem")) as file:
        text = file.read()
    start, end = ssl.PEM_HEADER, ssl.PEM_FOOTER
    return ssl.PEM_cert_to_DER_cert(text[text.index(start):text.index(end) + len(end) + 1])


def settings(*protocols):
    made = tls.context()
    made.verify_mode = ssl.CERT_NONE
    made.set_alpn_protocols(protocols)
    return made


def ask(server, name, *protocols):
    """Returns the certificate for an authority that looks at a name."""
    how = {"name": name, "settings": settings(*protocols or ["acme-tls/1"])}
    with Client(server.port, secure=how) as client:
        if not protocols:
            assert client.socket.selected_alpn_protocol() == "acme-tls/1"
            # It needs no hint that nothing follows.
            assert client.at_end()
        return client.socket.getpeercert(binary_form=True)


def must_refuse(server, name, *protocols):
    with pytest.raises(ssl.SSLError) as caught:
        ask(server, name, *protocols)
    assert "alert no application protocol" in str(caught.value)


def test_answers(folder, answers, kind):
    with running(kind, None, "--config", config(folder, ANSWERS), "--log-level", "info",
                 listen=None) as server:
        must_refuse(server, "other.example")
        assert server.errors.wait("tls-alpn-01: .*/answers/other.example.crt.pem\": No such file")
        assert server.errors.wait("TLS handshake: no application protocol: closing")
        add(answers, "other.example")
        assert ask(server, "other.example") == der("other")
        assert ask(server, "OTHER.example") == der("other")
        assert server.errors.wait("answered the challenge tls-alpn-01", 2)
        # Of no use to others.
        assert ask(server, "other.example", "http/1.1") == der("ec")
        assert ask(server, "other.example", "acme-tls/1", "http/1.1") == der("ec")
        must_refuse(server, "other.example", "acme-tls/2")
        must_refuse(server, "second.example")
        must_refuse(server, None)
        # The client removes it when the authority has seen it.
        for path in answers.iterdir():
            path.unlink()
        must_refuse(server, "other.example")


def test_no_requests(folder, answers):
    """A client that continues after the handshake gets no response."""
    add(answers, "other.example")
    with running("epoll", None, "--config", config(folder, ANSWERS), listen=None) as server:
        plain = socket.create_connection(("127.0.0.1", server.port), TIMEOUT)
        made = settings("acme-tls/1")
        made.sslsocket_class = ssl.SSLSocket
        with made.wrap_socket(plain, server_hostname="other.example",
                              suppress_ragged_eofs=False) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            # An end that is announced, and nothing before it.
            assert client.recv(100) == b""
        status = server.wait_status(lambda now: now["connections"]["lingering"] == 0)
        assert status["tls"]["failed"] == 0


def test_without_the_key(folder, answers):
    add(answers, "other.example")
    with running("epoll", None, "--config", config(folder, ""), listen=None) as server:
        must_refuse(server, "other.example")


def test_hosts(folder, answers, kind):
    """Each host has its folder, or that of [sweet]; a client's certificate is not asked for."""
    add(answers, "own.example", "stranger")
    add(answers, "none.example")
    add(answers, "other.example")
    add(folder / "own", "own.example", "other")
    text = ANSWERS + """client-ca=@authority.pem
[host own]
names=own.example
tls-alpn-01=%/own
client-certificate=required
[host none]
names=none.example
tls-alpn-01=off
"""
    with running(kind, None, "--config", config(folder, text), listen=None) as server:
        assert ask(server, "own.example") == der("other")
        assert ask(server, "other.example") == der("other")
        must_refuse(server, "none.example")


def test_reload(folder, answers, kind):
    path = config(folder, "")
    add(answers, "other.example")
    with running(kind, None, "--config", path, listen=None) as server:
        must_refuse(server, "other.example")
        with Client(server.port, secure=True) as client:
            assert client.get("/").status == 200
            config(folder, ANSWERS)
            reload(server)
            assert ask(server, "other.example") == der("other")
            config(folder, "tls-alpn-01=%/index.html\n")
            assert f'tls-alpn-01 "{folder}/index.html": is no folder' in reload(server, BAD)
            assert ask(server, "other.example") == der("other")
            assert client.get("/").status == 200


def test_missing_folder(folder):
    done = once("--config", config(folder, "tls-alpn-01=%/none\n"), "--check-config")
    assert done.returncode == 1
    assert f'tls-alpn-01 "{folder}/none": No such file or directory' in done.stderr


def test_files_of_anybody(folder, answers):
    """A name that a link or a pipe has is refused, and nobody waits for it."""
    add(answers, "other.example")
    os.mkfifo(answers / "pipe.example.crt.pem")
    for suffix in ("crt.pem", "key.pem"):
        (answers / f"link.example.{suffix}").symlink_to(f"other.example.{suffix}")
    with running("epoll", None, "--config", config(folder, ANSWERS), "--log-level", "info",
                 listen=None) as server:
        must_refuse(server, "pipe.example")
        assert server.errors.wait("pipe.example.crt.pem\": is no regular file")
        must_refuse(server, "link.example")
        assert server.errors.wait("link.example.crt.pem\": Too many levels of symbolic links")
        assert ask(server, "other.example") == der("other")
