# SPDX-License-Identifier: MIT
"""Keys for a server that never has root, as under systemd: by SupplementaryGroups=, which a
renewed key needs no restart for, or in a folder as LoadCredential= makes it."""

import grp
import os
import pathlib
import pwd
import shutil
import tempfile

import pytest

import tls
from client import Client
from server import SWEET, once, running
from programs import run

pytestmark = [
    pytest.mark.clear("these choose what is below"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user"),
]

if os.geteuid() == 0:
    NOBODY = pwd.getpwnam("nobody")
    KEYS = grp.getgrnam("ssl-cert" if any(one.gr_name == "ssl-cert" for one in grp.getgrall())
                        else "daemon").gr_gid


@pytest.fixture
def folder():
    """A folder that all users can reach, unlike that of pytest."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="sweet-test-"))
    path.chmod(0o755)
    (path / "run").mkdir()
    os.chown(path / "run", NOBODY.pw_uid, NOBODY.pw_gid)
    yield path
    shutil.rmtree(path)


def service(*groups):
    """As Popen's arguments for the user of a service."""
    return {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": groups}


def put(name, place, mode, owner=0, group=0):
    """A new file takes the place of the old one, as ACME clients do it."""
    fresh = place.with_suffix(".fresh")
    shutil.copy(tls.file(name), fresh)
    os.chown(fresh, owner, group)
    fresh.chmod(mode)
    fresh.replace(place)


def config(folder, place):
    path = folder / "sweet.conf"
    path.write_text(f"[sweet]\nlisten=127.0.0.1:0,tls\nroot={folder}\npid-file={folder}/run/pid\n"
                    f"certificate={place}/cert.pem\nkey={place}/key.pem\n")
    return path


def kind_of_key(server):
    with Client(server.port, secure=True) as client:
        return "rsa" if len(client.socket.getpeercert(binary_form=True)) > 600 else "ec"


def test_group(folder):
    place = folder / "live"
    place.mkdir()
    os.chown(place, 0, KEYS)
    place.chmod(0o750)
    for kind, name in (("pem", "cert.pem"), ("key", "key.pem")):
        put(f"ec.{kind}", place / name, 0o640, group=KEYS)
    path = config(folder, place)
    done = once("--config", path, "--check-config", **service())
    assert done.returncode == 1
    assert f'key "{place}/key.pem": Permission denied' in done.stderr
    with running("epoll", None, "--config", path, listen=None, **service(KEYS)) as server:
        assert kind_of_key(server) == "ec"
        for kind, name in (("pem", "cert.pem"), ("key", "key.pem")):
            put(f"rsa.{kind}", place / name, 0o640, group=KEYS)
        run(SWEET, "--reload", folder / "run/pid")
        assert kind_of_key(server) == "rsa"


def test_credentials(folder):
    """The folder is the service's own: systemd fills it when the service starts."""
    place = folder / "credentials"
    place.mkdir()
    for kind, name in (("pem", "cert.pem"), ("key", "key.pem")):
        put(f"ec.{kind}", place / name, 0o400, owner=NOBODY.pw_uid)
    os.chown(place, NOBODY.pw_uid, 0)
    place.chmod(0o500)
    with running("epoll", None, "--config", config(folder, place), listen=None,
                 **service()) as server:
        run(SWEET, "--reload", folder / "run/pid")
        assert kind_of_key(server) == "ec"
