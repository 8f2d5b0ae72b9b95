# SPDX-License-Identifier: MIT
"""A server that root has started runs as a user who can write some of its folders, and who puts
links there: root opens, creates and changes nothing that they lead to."""

import os
import pathlib
import pwd
import shutil
import signal
import stat
import tempfile

import pytest

import tls
from client import Client, fetch
from files import write
from server import once, running

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be led elsewhere")

NOBODY = pwd.getpwnam("nobody")
LED = "may not open it, but can write one of its folders"


@pytest.fixture
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="sweet-test-"))
    path.chmod(0o755)
    write(path / "root" / "index.html", b"here\n")
    write(path / "roots", b"of root\n").chmod(0o600)
    own = path / "own"
    own.mkdir()
    os.chown(own, NOBODY.pw_uid, NOBODY.pw_gid)
    yield path
    assert (path / "roots").read_bytes() == b"of root\n"
    assert stat.S_IMODE((path / "roots").stat().st_mode) == 0o600
    assert (path / "roots").stat().st_uid == 0
    assert not (path / "new").exists()
    shutil.rmtree(path)


def complaint(*arguments):
    done = once("--listen", "127.0.0.1:0", "--user", "nobody", *arguments)
    assert done.returncode == 1
    return done.stderr


LOGS = {"error": "error-log={}\n", "access": "access-log={}\n", "slow": "slow-log={}\n",
        "host": "[host a.example]\nroot={root}\naccess-log={}\n"}


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("target", ["roots", "new"])
def test_logs_at_the_start(folder, log, target):
    (folder / "own" / "log").symlink_to(folder / target)
    config = write(folder / "sweet.conf",
                   (f"[sweet]\nroot={folder}/root\n"
                    + LOGS[log].format(folder / "own" / "log", root=folder / "root")).encode())
    assert LED in complaint("--config", config)


@pytest.mark.parametrize("arch", ["amped", "mp"])
@pytest.mark.parametrize("log", ["error", "access"])
def test_logs_when_they_are_opened_again(folder, arch, log):
    """The old ones are kept."""
    path = folder / "own" / "log"
    config = write(folder / "sweet.conf", (f"[sweet]\nroot={folder}/root\nuser=nobody\narch={arch}\n"
                                           + LOGS[log].format(path)).encode())
    with running("epoll", None, "--config", config) as server:
        assert fetch(server.port, "/").body == b"here\n"
        assert path.stat().st_uid == NOBODY.pw_uid
        path.rename(folder / "own" / "old")
        path.symlink_to(folder / "roots")
        server.send_signal(signal.SIGUSR1)
        if log == "error":
            old = folder / "own" / "old"
            while "the old logs are kept" not in old.read_text():
                server.wait_status(lambda status: True)
        else:
            assert server.errors.wait("the old logs are kept")
        assert fetch(server.port, "/").body == b"here\n"


def test_pid_file(folder):
    """It is root's, which sends signals to the process that it names; and a new file."""
    path = folder / "own" / "pid"
    path.symlink_to(folder / "roots")
    with running("epoll", folder / "root", "--user", "nobody", "--pid-file", path) as server:
        made = path.lstat()
        assert stat.S_ISREG(made.st_mode) and made.st_uid == 0
        assert stat.S_IMODE(made.st_mode) == 0o644
        assert int(path.read_text()) == server.pid


def test_keys(folder):
    """A server in the hands of others asks for a file that its certificate leads to."""
    for name in ("ec.pem", "ec.key"):
        shutil.copy(tls.file(name), folder / "own" / name)
        os.chown(folder / "own" / name, NOBODY.pw_uid, NOBODY.pw_gid)
        shutil.copy(tls.file(name.replace("ec", "rsa")), folder / f"roots.{name}")
        (folder / f"roots.{name}").chmod(0o600)
    config = write(folder / "sweet.conf",
                   (f"[sweet]\nlisten=127.0.0.1:0,tls\nuser=nobody\nroot={folder}/root\n"
                    f"certificate={folder}/own/ec.pem\nkey={folder}/own/ec.key\n").encode())
    with running("epoll", None, "--config", config, listen=None) as server:
        for name in ("ec.pem", "ec.key"):
            (folder / "own" / name).unlink()
            (folder / "own" / name).symlink_to(folder / f"roots.{name}")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("own/ec.(pem|key).*: Operation not permitted")
        with Client(server.port, secure=True) as client:
            assert client.get("/").body == b"here\n"
            # Those that root has made itself, as certbot does, are followed.
            assert len(client.socket.getpeercert(binary_form=True)) < 600
        config.write_text(config.read_text().replace("/own/ec.", "/live/ec."))
        (folder / "live").mkdir()
        for name in ("ec.pem", "ec.key"):
            (folder / "live" / name).symlink_to(f"../roots.{name}")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded ")
        with Client(server.port, secure=True) as client:
            assert len(client.socket.getpeercert(binary_form=True)) > 600
