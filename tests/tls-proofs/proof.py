# SPDX-License-Identifier: MIT
"""What the proofs share: a test authority and its certificates, the servers, environments for
programs of PyPI, and the end of a proof that cannot run here.
"""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.dont_write_bytecode = True
os.environ.setdefault("srcdir", str(SOURCE))
os.environ.setdefault("builddir", str(SOURCE / "build"))
BUILD = pathlib.Path(os.environ["builddir"]).resolve()
sys.path.append(str(SOURCE / "tests" / "system" / "support"))

import server as servers
import tools

# The end of a proof ends its servers.
signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))

# As that of tools.
PACKAGES = {"nginx": "nginx-light", "openssl": "openssl", "testssl": "testssl.sh",
            "venv": "python3-venv"}
# The kinds of keys, and what openssl calls them.
KEYS = {"rsa": ["rsa:2048"], "ec": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]}
# What the profile "intermediate" of Mozilla has for nginx, with the order and groups of SWEET.
CIPHERS = ":".join([
    "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
    "DHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES256-GCM-SHA384", "DHE-RSA-CHACHA20-POLY1305"])
GROUPS = "X25519:prime256v1:secp384r1"
PAGE = b"<!DOCTYPE html><title>proof</title>\n"


def skip(why):
    """Ends the proof; run-tests shows the line."""
    print(why)
    sys.exit(77)


def missing(name):
    return f"{name} is missing; on Debian: apt-get install {PACKAGES[name]}"


def program(name):
    """Returns the path of a program of Debian, or ends the proof."""
    return tools.find(name) or skip(missing(name))


def openssl(*arguments):
    subprocess.run([program("openssl"), *map(str, arguments)], check=True, capture_output=True)


def certificates(folder):
    """Makes certificates, NAME.pem and NAME.key, and an authority of the same kind of key for each,
    since clients may accept one kind of signatures only; authority.pem contains both."""
    common = ["-nodes", "-sha256", "-addext", "subjectKeyIdentifier=hash"]
    for name, kind in KEYS.items():
        authority, key = folder / f"authority-{name}.pem", folder / f"authority-{name}.key"
        openssl("req", "-x509", "-newkey", *kind, *common, "-days", 365,
                "-subj", f"/CN=SWEET proofs authority {name}", "-keyout", key, "-out", authority,
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        openssl("req", "-x509", "-CA", authority, "-CAkey", key, "-newkey", *kind, *common,
                "-days", 90, "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-addext", "basicConstraints=critical,CA:FALSE",
                "-addext", "extendedKeyUsage=serverAuth",
                "-addext", "keyUsage=critical,digitalSignature",
                "-addext", "authorityKeyIdentifier=keyid",
                # Nothing fetches it; one program wants to see it.
                "-addext", "crlDistributionPoints=URI:http://localhost/authority.crl",
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")
        with open(folder / "authority.pem", "ab") as both:
            both.write(authority.read_bytes())


@contextlib.contextmanager
def place():
    """Makes a folder with certificates, and a page in its folder root."""
    with tempfile.TemporaryDirectory(prefix="tls-proof-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        certificates(folder)
        (folder / "root").mkdir()
        (folder / "root" / "index.html").write_bytes(PAGE)
        yield folder


@contextlib.contextmanager
def sweet(folder, **settings):
    """SWEET with both certificates; yields its port."""
    keys = {"certificate": f"{folder}/ec.pem;{folder}/rsa.pem",
            "key": f"{folder}/ec.key;{folder}/rsa.key", "hsts": "max-age=63072000",
            # These programs look at what is said, not at the time that it takes.
            "header-timeout": "60s", **settings}
    path = folder / "sweet.conf"
    path.write_text(f"[sweet]\nlisten=127.0.0.1:0,tls\nroot={folder}/root\n"
                    + "".join(f"{name}={value}\n" for name, value in keys.items()))
    with servers.running("epoll", None, "--config", path, listen=None) as one:
        yield one.port


NGINX = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl;
        root {folder}/root;
        ssl_certificate {folder}/ec.pem;
        ssl_certificate_key {folder}/ec.key;
        ssl_certificate {folder}/rsa.pem;
        ssl_certificate_key {folder}/rsa.key;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_ciphers {ciphers};
        ssl_ecdh_curve {groups};
        ssl_dhparam {folder}/dh.pem;
        ssl_prefer_server_ciphers on;
        ssl_conf_command Options PrioritizeChaCha;
        ssl_session_cache shared:sessions:1m;
    }}
}}
"""


@contextlib.contextmanager
def nginx(folder):
    """nginx with the same certificates, ciphers and groups; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    openssl("genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048",
            "-out", folder / "dh.pem")
    path = folder / "nginx.conf"
    path.write_text(NGINX.format(folder=folder, port=port, ciphers=CIPHERS, groups=GROUPS))
    process = subprocess.Popen([program("nginx"), "-e", folder / "nginx.log", "-c", path])
    try:
        deadline = time.monotonic() + servers.TIMEOUT
        while True:
            assert process.poll() is None and time.monotonic() < deadline, \
                (folder / "nginx.log").read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(servers.TIMEOUT)


def environment(name, *requirements):
    """Returns the Python of a virtual environment in the build folder that has these packages of
    PyPI; ends the proof if they are not there and cannot be fetched."""
    folder = BUILD / "tests" / "tls-proofs" / name
    made, wanted = folder / "requirements.txt", "\n".join(requirements)
    python = folder / "bin" / "python"
    if made.is_file() and made.read_text() == wanted:
        return python
    done = subprocess.run([sys.executable, "-m", "venv", "--clear", folder],
                          capture_output=True, text=True)
    if done.returncode:
        skip(missing("venv"))
    done = subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "-q", "install",
                           "--retries", "1", *requirements],
                          capture_output=True, text=True)
    if done.returncode:
        print(done.stderr)
        skip(f"{name} cannot be installed from PyPI")
    made.write_text(wanted)
    return python
