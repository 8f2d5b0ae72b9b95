# SPDX-License-Identifier: MIT
"""Who makes the records of TLS 1.3 after the handshake: the server or OpenSSL, by tls-records.  The
suite tls-openssl has OpenSSL make them in all tests of TLS and HTTP/2."""

import os
import signal
import ssl
import subprocess

import pytest

import tls
from client import Client
from files import KB, MB, pattern, write
from server import BUILD, SWEET, running

pytestmark = pytest.mark.clear("these choose what is below")

V12, V13 = (ssl.TLSVersion.TLSv1_2,) * 2, (ssl.TLSVersion.TLSv1_3,) * 2
SIZES = [0, 1, 16 * KB - 1, 16 * KB, 16 * KB + 1, 3 * MB]
KERNEL = "the kernel, as far as it knows their ciphers"


def has_own():
    """Whether the build has records of its own."""
    with open(os.path.join(BUILD, "config.log"), encoding="utf-8") as log:
        return "TLS_RECORDS_TRUE=''" in log.read()


def serve(kind, root, *options):
    return running(kind, root, *tls.options(), "--log-level", "info", *options,
                   listen="127.0.0.1:0,tls")


@pytest.mark.parametrize("versions", [V12, V13], ids=["1.2", "1.3"])
@pytest.mark.parametrize("records", ["own", "openssl"])
def test_bytes(kind, tmp_path, records, versions):
    for size in SIZES:
        write(tmp_path / str(size), pattern(size, seed=size))
    settings = tls.context(versions=versions)
    with serve(kind, tmp_path, "--tls-records", records) as server:
        with Client(server.port, secure={"settings": settings}) as client:
            for size in SIZES:
                assert client.get(f"/{size}").body == pattern(size, seed=size)
        maker = "the server" if records == "own" and has_own() else "OpenSSL"
        log = server.errors.wait("records are encrypted by")
        assert log.endswith(f'{maker} (the kernel has no module "tls")') or KERNEL in log


def test_they_are_chosen_at_the_start(kind, tmp_path):
    write(tmp_path / "page", b"page")
    config = tmp_path / "sweet.conf"
    keys = f"[sweet]\ncertificate={tls.file('ec.pem')}\nkey={tls.file('ec.key')}\n"
    config.write_text(keys + "tls-records=openssl\n")
    with running(kind, tmp_path, "--config", config, listen="127.0.0.1:0,tls") as server:
        config.write_text(keys)
        server.process.send_signal(signal.SIGHUP)
        assert server.errors.wait("read at the start only: tls-records;")
        with Client(server.port, secure=True) as client:
            assert client.get("/page").body == b"page"


def test_wrong_value(tmp_path):
    said = subprocess.run([SWEET, "--check-config", "--root", tmp_path, "--tls-records", "kernel"],
                          capture_output=True, text=True, check=False)
    assert said.returncode and "tls-records" in said.stderr
