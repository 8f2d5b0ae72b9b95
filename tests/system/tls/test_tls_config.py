# SPDX-License-Identifier: MIT
"""The keys of TLS in the configuration: what is refused, what a reload changes, and what the
server adds to responses and to programs' variables."""

import os
import shutil
import signal
import subprocess

import pytest

import tls
from client import Client, exchange, fetch, request
from files import write
from server import SWEET, TIMEOUT, once, running

pytestmark = pytest.mark.clear("these choose what is below")


@pytest.fixture
def folder(tmp_path):
    """Copies of certificates and keys, to be changed."""
    for name in os.listdir(tls.FOLDER):
        shutil.copy(tls.file(name), tmp_path / name)
    (tmp_path / "root").mkdir()
    write(tmp_path / "root" / "index.html", b"page\n")
    return tmp_path


def config(folder, text):
    return write(folder / "sweet.conf",
                 ("[sweet]\nlisten=127.0.0.1:0,tls\n" + f"root={folder}/root\n" + text)
                 .replace("@", f"{folder}/").encode())


def encrypt(folder):
    subprocess.run(["openssl", "pkey", "-in", folder / "ec.key", "-aes256", "-passout", "pass:x",
                    "-out", folder / "bad.pem"], check=True)


def cut(folder):
    text = (folder / "ec.pem").read_bytes()
    (folder / "bad.pem").write_bytes(text + text[:300] + text[340:])


BAD = {
    "no certificate": ("", "an address has TLS, but [sweet] has no certificate"),
    "missing": ("certificate=@none.pem\n", 'certificate "@none.pem": No such file or directory'),
    "no key": ("certificate=@ec.pem\n", 'key "@ec.pem": has no private key in PEM form'),
    "folder": ("certificate=@\n", 'certificate "@": Is a directory'),
    "other key": ("certificate=@ec.pem\nkey=@other.key\n",
                  'key "@other.key": does not belong to the certificate of its place in the list'),
    "other kind": ("certificate=@ec.pem\nkey=@rsa.key\n",
                   'key "@rsa.key": does not belong to the certificate of its place in the list'),
    "key as certificate": ("certificate=@ec.key\nkey=@ec.key\n",
                           'certificate "@ec.key": has no certificate in PEM form'),
    "certificate as key": ("certificate=@ec.pem\nkey=@rsa.pem\n",
                           'key "@rsa.pem": has no private key in PEM form'),
    "two of a kind": ("certificate=@ec.pem;@other.pem\nkey=@ec.key;@other.key\n",
                      'certificate "@other.pem": has a key of the same kind as another '
                      'certificate of the list'),
    "keys missing": ("certificate=@ec.pem;@rsa.pem\nkey=@ec.key\n",
                     "key: there must be one for each certificate"),
    "no authority": ("certificate=@ec.pem\nkey=@ec.key\nclient-certificate=required\n",
                     "client-certificate needs a client-ca"),
    "bad authority": ("certificate=@ec.pem\nkey=@ec.key\nclient-certificate=optional\n"
                      "client-ca=@ec.key\n",
                      'client-ca "@ec.key": has no certificate in PEM form'),
    "profile": ("certificate=@ec.pem\nkey=@ec.key\ntls-profile=old\n",
                'tls-profile "old": must be one of intermediate, modern'),
    "groups": ("certificate=@ec.pem\nkey=@ec.key\ntls-groups=X25519;X25518\n",
               'tls-groups "X25519:X25518": OpenSSL '),
    "hsts": ("certificate=@ec.pem\nkey=@ec.key\nhsts=max-age=1\\n\n", "hsts"),
    "listen": ("certificate=@ec.pem\nkey=@ec.key\n[host a]\nlisten=127.0.0.1:1,tls\n",
               'listen "127.0.0.1:1,tls": must be one of listen of [sweet]'),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(folder, name):
    text, why = BAD[name]
    path = config(folder, text)
    for option in (["--check-config"], []):
        done = once("--config", path, *option)
        assert done.returncode == 1
        assert why.replace("@", f"{folder}/") in done.stderr, done.stderr
    assert done.stderr.count(f"{path}:") or name == "no certificate"


@pytest.mark.needs("openssl")
def test_encrypted_key(folder):
    encrypt(folder)
    done = once("--config", config(folder, "certificate=@ec.pem\nkey=@bad.pem\n"), "--check-config")
    assert done.returncode == 1
    assert f'key "{folder}/bad.pem": is encrypted: store it without a password' in done.stderr


def test_broken_chain(folder):
    cut(folder)
    done = once("--config", config(folder, "certificate=@bad.pem\nkey=@ec.key\n"), "--check-config")
    assert done.returncode == 1
    assert f'certificate "{folder}/bad.pem": has a broken certificate behind' in done.stderr


def test_key_in_the_certificates_file(folder):
    (folder / "both.pem").write_bytes((folder / "ec.key").read_bytes()
                                      + (folder / "ec.pem").read_bytes())
    path = config(folder, "certificate=@both.pem\n")
    assert once("--config", path, "--check-config").returncode == 0
    with running("epoll", None, "--config", path, listen=None) as server:
        assert fetch_over(server).status == 200


def fetch_over(server, target="/", **how):
    with Client(server.port, secure=how or True) as client:
        return client.get(target)


def name_of(server, name="test"):
    with Client(server.port, secure={"name": name}) as client:
        subject = client.socket.getpeercert()["subject"]
    return dict(part[0] for part in subject)["commonName"]


def test_reload(folder, kind):
    """New certificates for new connections, the old ones stay open; bad ones change nothing."""
    path = config(folder, "certificate=@ec.pem\nkey=@ec.key\npid-file=@pid\n")

    def reload():
        return subprocess.run([SWEET, "--reload", folder / "pid"], capture_output=True, text=True,
                              timeout=TIMEOUT)

    with running(kind, None, "--config", path, "--threads", "2", listen=None) as server:
        with Client(server.port, secure=True) as client:
            assert client.get("/").status == 200
            shutil.copy(folder / "other.key", folder / "ec.key")
            done = reload()
            assert done.returncode == 1 and "does not belong to the certificate" in done.stderr
            assert name_of(server) == "localhost"
            shutil.copy(folder / "other.pem", folder / "ec.pem")
            assert reload().returncode == 0
            assert name_of(server) == "other.example"
            assert client.get("/").status == 200


def test_same_address_with_tls_and_without(folder, kind):
    socket_path = folder / "socket"
    text = f"""[sweet]
listen=unix:{socket_path}LISTEN
root={folder}/root
certificate={folder}/ec.pem
key={folder}/ec.key
"""
    path = folder / "unix.conf"
    path.write_text(text.replace("LISTEN", ""))
    with running(kind, None, "--config", path, "--threads", "2", listen=None) as server:
        for count, (how, scheme) in enumerate([(",tls", "https"), ("", "http")], 1):
            path.write_text(text.replace("LISTEN", how))
            server.send_signal(signal.SIGHUP)
            assert server.errors.wait("reloaded ", count)
            done = subprocess.run(
                ["curl", "-sS", "--cacert", tls.file("authority.pem"), "--unix-socket", socket_path,
                 f"{scheme}://localhost/"], capture_output=True, timeout=TIMEOUT)
            assert done.stdout == b"page\n", done.stderr


# --- clients' certificates ---------------------------------------------------------------------

CLIENTS = """certificate=@ec.pem
key=@ec.key
client-ca=@authority.pem
[host inner]
names=inner.example
client-certificate=required
[host maybe]
names=maybe.example
client-certificate=optional
"""


def get(server, name, host, client=None):
    """Returns the status of a request for a host, over a connection for a name; None: refused."""
    try:
        with Client(server.port, secure={"name": name, "settings": tls.context(client)}) as one:
            one.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            return one.response().status
    except (OSError, AssertionError):
        return None


def test_clients_certificates(folder, kind):
    with running(kind, None, "--config", config(folder, CLIENTS), "--log-level", "info",
                 listen=None) as server:
        inner, maybe, plain = "inner.example", "maybe.example", "plain.example"
        assert get(server, inner, inner, "client") == 200
        assert get(server, inner, inner) is None
        assert server.errors.wait("TLS handshake: peer did not return a certificate")
        assert get(server, inner, inner, "stranger") is None
        assert server.errors.wait("TLS handshake: certificate verify failed")
        assert get(server, maybe, maybe, "client") == 200
        assert get(server, maybe, maybe) == 200
        assert get(server, maybe, maybe, "stranger") is None
        assert get(server, plain, plain) == 200
        # Nothing leads to the host around its handshake.
        assert get(server, plain, inner, "client") == 421
        assert get(server, maybe, inner, "client") == 421
        assert get(server, None, inner) == 421
        assert get(server, plain, maybe) == 421
        assert server.errors.wait("answered 421: /: a host whose rules for clients' certificates")


def test_session_does_not_replace_a_certificate(folder, kind):
    """A session of a host that wants none is not resumed where one is wanted."""
    settings = tls.context()
    with running(kind, None, "--config", config(folder, CLIENTS), listen=None) as server:
        with Client(server.port, secure={"name": "plain.example", "settings": settings}) as client:
            assert client.get("/").status == 200
            session = client.socket.session
        with pytest.raises(OSError):
            with Client(server.port, secure={"name": "inner.example", "settings": settings,
                                             "session": session}) as client:
                client.socket.do_handshake()
                client.send(request("/"))
                client.more()


def test_clear_text_to_a_host_that_wants_certificates(folder):
    path = config(folder, CLIENTS)
    path.write_text(path.read_text().replace("listen=127.0.0.1:0,tls",
                                             f"listen=127.0.0.1:0;unix:{folder}/s,tls"))
    with running("epoll", None, "--config", path, listen=None) as server:
        answer = exchange(server.port, b"GET / HTTP/1.1\r\nHost: inner.example\r\n"
                                       b"Connection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 421 ")


# --- what is added -------------------------------------------------------------------------------

def test_hsts_and_redirect(folder):
    path = config(folder, "certificate=@ec.pem\nkey=@ec.key\nhsts=max-age=63072000\n"
                          "redirect=308 tls\n")
    path.write_text(path.read_text().replace("listen=127.0.0.1:0,tls",
                                             f"listen=127.0.0.1:0;unix:{folder}/s,tls"))
    with running("epoll", None, "--config", path, "--status", "off", listen=None) as server:
        clear = fetch(server.port, "/a%20b?c=d")
        assert clear.status == 308 and clear["Location"] == "https://test/a%20b?c=d"
        assert "Strict-Transport-Security" not in clear
        with Client(server.port) as client:
            client.send(b"GET /x HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n")
            assert client.response()["Location"] == "https://[::1]/x"
        done = subprocess.run(
            ["curl", "-sSi", "--cacert", tls.file("authority.pem"), "--unix-socket", folder / "s",
             "https://localhost/"], capture_output=True, text=True, timeout=TIMEOUT)
        assert "HTTP/2 200" in done.stdout and done.stdout.endswith("page\n"), done.stderr
        assert "strict-transport-security: max-age=63072000\n" in done.stdout.replace("\r", "")
        done = subprocess.run(
            ["curl", "-sSi", "--cacert", tls.file("authority.pem"), "--unix-socket", folder / "s",
             "https://localhost/none"], capture_output=True, text=True, timeout=TIMEOUT)
        assert "404" in done.stdout and "strict-transport-security" in done.stdout


def test_variables(folder, kind):
    script = write(folder / "cgi" / "show.sh",
                   b'#!/bin/sh\nprintf "Content-Type: text/plain\\n\\n"\n'
                   b'echo "${HTTPS-no} $REQUEST_SCHEME $HTTP_HTTPS"\n')
    script.chmod(0o755)
    path = config(folder, "certificate=@ec.pem\nkey=@ec.key\n")
    with running(kind, None, "--config", path, "--cgi", f"/cgi={folder}/cgi",
                 listen=None) as server:
        with Client(server.port, secure=True) as client:
            client.send(request("/cgi/show.sh", fields="HTTPS: off\r\nConnection: close\r\n"))
            answer = b""
            while piece := client.socket.recv(4096):
                answer += piece
    assert b"on https off\n" in answer


def test_subject_in_a_field(folder, kind):
    rules = CLIENTS + "root=@.\nheader=always X-Subject: [{subject}]\n"
    with running(kind, None, "--config", config(folder, rules), listen=None) as server:
        for client, subject in [("client", "[CN=Alice,O=Clients]"), (None, "[]")]:
            how = {"name": "maybe.example", "settings": tls.context(client)}
            with Client(server.port, secure=how) as one:
                one.send(b"GET / HTTP/1.1\r\nHost: maybe.example\r\n\r\n")
                assert one.response()["X-Subject"] == subject


def test_variables_of_a_clients_certificate(folder, kind):
    script = write(folder / "cgi" / "show.sh",
                   b'#!/bin/sh\nprintf "Content-Type: text/plain\\n\\n"\n'
                   b'env | grep ^SSL_ | sort; env | grep ^HTTP_SSL\n')
    script.chmod(0o755)

    def show(name, client):
        how = {"name": name, "settings": tls.context(client)}
        with Client(server.port, secure=how) as one:
            one.send(f"GET /cgi/show.sh HTTP/1.0\r\nHost: {name}\r\n"
                     "SSL-CLIENT-VERIFY: SUCCESS\r\nSSL_CLIENT_S_DN: CN=Root\r\n\r\n".encode())
            answer = b""
            while piece := one.socket.recv(4096):
                answer += piece
        lines = answer.decode().partition("\r\n\r\n")[2].splitlines()
        return dict(line.split("=", 1) for line in lines)

    with running(kind, None, "--config", config(folder, CLIENTS), "--cgi", f"/cgi={folder}/cgi",
                 listen=None) as server:
        known = show("maybe.example", "client")
        assert known["SSL_CLIENT_VERIFY"] == "SUCCESS"
        assert known["SSL_CLIENT_S_DN"] == "CN=Alice,O=Clients"
        assert known["SSL_CLIENT_I_DN"] == "CN=SWEET test authority"
        assert len(known["SSL_CLIENT_FINGERPRINT"]) == 64
        assert known["SSL_CLIENT_V_END"].endswith("GMT") and known["SSL_CLIENT_M_SERIAL"]
        assert known["HTTP_SSL_CLIENT_VERIFY"] == "SUCCESS"
        unknown = show("maybe.example", None)
        assert unknown["SSL_CLIENT_VERIFY"] == "NONE" and "SSL_CLIENT_S_DN" not in unknown
        plain = show("plain.example", "client")
        assert sorted(plain) == ["HTTP_SSL_CLIENT_VERIFY", "SSL_CIPHER", "SSL_PROTOCOL"]
        assert plain["SSL_PROTOCOL"] == "TLSv1.3"


def test_keys_are_protected(folder):
    """No core file, and no other process of the user may look into the memory."""
    path = config(folder, "certificate=@ec.pem\nkey=@ec.key\n")
    with running("epoll", None, "--config", path, listen=None) as server:
        with open(f"/proc/{server.pid}/limits") as limits:
            core = next(line for line in limits if line.startswith("Max core file size"))
        assert core.split()[4:6] == ["0", "0"]
        # The files of a process that is not dumpable are root's: of one that is, its user's.
        assert os.stat(f"/proc/{server.pid}/environ").st_uid == 0
