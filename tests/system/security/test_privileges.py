# SPDX-License-Identifier: MIT
"""A server that root has started, and the privileges that it keeps."""

import contextlib
import os
import pathlib
import pwd
import re
import signal
import subprocess

import pytest

import tls
from client import Client, fetch
from files import write
from server import OBEY, children_of, running, sanitized
from test_command_line import complaint
from test_unix import UnixClient

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to give up")

NOBODY = pwd.getpwnam("nobody")
CAP_NET_BIND_SERVICE = 1 << 10


@pytest.fixture
def folder():
    """A folder that all users can reach, unlike that of pytest."""
    import shutil
    import tempfile

    path = tempfile.mkdtemp(prefix="sweet-test-")
    os.chmod(path, 0o755)
    yield __import__("pathlib").Path(path)
    shutil.rmtree(path)


@pytest.fixture
def root(folder):
    write(folder / "root/index.html", b"here\n")
    write(folder / "root/secret", b"secret\n").chmod(0o600)
    return folder / "root"


def find(status, field):
    return re.search(rf"^{field}:\s*(.*)$", status, re.M)[1].split()


def said(pid, field):
    return find(pathlib.Path(f"/proc/{pid}/status").read_text(), field)


def threads(pid):
    """Returns the status of each thread but those that end meanwhile, as io_uring's may."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append((path / "status").read_text())
    return found


def check_gone(pid, uid, gid):
    for status in threads(pid):
        assert find(status, "Uid") == [str(uid)] * 4
        assert find(status, "Gid") == [str(gid)] * 4
        assert "0" not in find(status, "Groups")
        for kind in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            assert int(find(status, kind)[0], 16) == 0
        assert find(status, "NoNewPrivs") == ["1"]


def test_folder_that_must_not_be_read(start, root):
    """Its files are served to clients that know their names; it is not listed."""
    write(root / "closed/file", b"known\n")
    (root / "closed").chmod(0o711)
    write(root / "shut/file", b"unknown\n")
    (root / "shut").chmod(0)
    server = start(root, "--user", "nobody", "--listing", "on")
    assert fetch(server.port, "/closed/file").body == b"known\n"
    assert fetch(server.port, "/closed/").status == 403
    assert fetch(server.port, "/shut/").status == 403
    assert fetch(server.port, "/shut/file").status == 403
    (root / "closed").chmod(0o755)
    assert b"file" in fetch(server.port, "/closed/").body


@pytest.mark.clear("the process that opens keys stays root")
def test_everything_of_root_is_given_up(start, root, folder):
    logs = folder / "logs"
    logs.mkdir()
    os.chown(logs, NOBODY.pw_uid, NOBODY.pw_gid)
    log, errors, pid = logs / "access", logs / "errors", folder / "pid"
    server = start(root, "--user", "nobody", "--threads", 3, "--worker", f"/obey={OBEY}",
                   "--access-log", log, "--pid-file", pid, "--listen",
                   f"unix:{folder}/socket")
    assert pid.read_text() == f"{server.pid}\n"
    assert fetch(server.port, "/").body == b"here\n"
    assert fetch(server.port, "/secret").status == 403
    assert fetch(server.port, "/obey/variable").status == 200
    with UnixClient(folder / "socket") as client:
        assert client.get("/").status == 200
    check_gone(server.pid, NOBODY.pw_uid, NOBODY.pw_gid)
    for worker in server.workers():
        check_gone(worker, NOBODY.pw_uid, NOBODY.pw_gid)
    # The log belongs to the user, who can open it again, or create a new one.
    assert log.stat().st_uid == NOBODY.pw_uid
    log.rename(logs / "old")
    server.send_signal(signal.SIGUSR1)
    assert server.errors.wait("reopened the logs")
    assert fetch(server.port, "/?later").status == 200
    server.stop()
    assert "later" in log.read_text()
    assert not errors.exists()


def test_group(root):
    with running("epoll", root, "--user", "54321", "--group", "12345") as server:
        check_gone(server.pid, 54321, 12345)
        assert fetch(server.port, "/").body == b"here\n"


def test_unknown(root):
    assert "no-such-user" in complaint("--root", root, "--user", "no-such-user")
    assert "no-such-group" in complaint("--root", root, "--user", "nobody", "--group",
                                        "no-such-group")
    assert "a group is needed" in complaint("--root", root, "--user", "54321")


def test_only_root_can(root):
    drop = ["setpriv", "--reuid=54321", "--regid=12345", "--clear-groups"]
    assert "only root can" in complaint("--listen", "127.0.0.1:0", "--root", root, "--user",
                                        "nobody", prefix=drop)
    # The current user needs no change.
    with running("epoll", root, "--user", "54321", "--group", "12345", prefix=drop) as server:
        check_gone(server.pid, 54321, 12345)


# As linux/capability.h numbers them: files, kill, become others, bind, lock, nice, limits.
KEPT = sum(1 << number for number in (0, 1, 2, 3, 5, 6, 7, 8, 10, 14, 23, 24))


@pytest.mark.skipif(sanitized("tsan"), reason="its own thread keeps everything")
def test_what_root_keeps(start, root, folder):
    """A server that stays root, its workers and its CGI programs cannot change the system."""
    write(folder / "cgi/status",
          b"#!/bin/sh\necho Content-Type: text/plain\necho\ncat /proc/self/status\n").chmod(0o755)
    server = start(root, "--worker", f"/obey={OBEY}", "--cgi", f"/cgi={folder}/cgi",
                   "--log-level", "info")
    assert server.errors.wait("running as root")
    assert fetch(server.port, "/secret").body == b"secret\n"
    children = list(server.workers())
    starter = [pid for child in children for pid in children_of(child)]
    assert len(children) >= 2 and len(starter) == 1
    for pid in [server.pid, *children, *starter]:
        for status in threads(pid):
            for kind in ("CapPrm", "CapEff", "CapBnd"):
                kept = int(find(status, kind)[0], 16)
                assert kept & CAP_NET_BIND_SERVICE and not kept & ~KEPT
        assert said(pid, "NoNewPrivs") == ["1"]
    status = server.body("/cgi/status").decode()
    for kind in ("CapPrm", "CapEff", "CapBnd"):
        assert not int(re.search(rf"{kind}:\s*(\w+)", status)[1], 16) & ~KEPT


def test_no_new_privileges_in_any_case(root):
    with running("epoll", root) as server:
        assert said(server.pid, "NoNewPrivs") == ["1"]


def test_own_user_cannot_look_inside(root):
    """Neither can workers of a server without root."""
    drop = ["setpriv", "--reuid=54321", "--regid=12345", "--clear-groups"]
    with running("epoll", root, "--worker", f"/obey={OBEY}", prefix=drop) as server:
        for name in ("mem", "environ", "fd/0"):
            tried = subprocess.run([*drop, "cat", f"/proc/{server.pid}/{name}"],
                                   capture_output=True, text=True)
            assert "Permission denied" in tried.stderr, name
        assert fetch(server.port, "/obey/header").body == b"obeyed\n"


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_read_only(root, folder, user):
    """Logs and sockets can be created again, and nothing else beside them."""
    logs, other, config = folder / "logs", folder / "other", folder / "sweet.conf"
    for made in (logs, other):
        made.mkdir()
        os.chown(made, NOBODY.pw_uid, NOBODY.pw_gid)
    text = f"[sweet]\nroot={root}\nlisten=127.0.0.1:0\nread-only=on\nuser={user}\n"
    config.write_text(f"{text}access-log={logs}/access\n")
    with running("epoll", None, "--config", config, "--cache-socket", logs / "cache",
                 "--listen", f"unix:{logs}/socket", "--listen", "127.0.0.1:0",
                 listen=None) as server:
        how = server.errors.wait("read-only")
        if "cannot" in how:
            pytest.skip(how)
        port = int(server.errors.wait("http://").split(":")[3].split("/")[0])
        assert fetch(port, "/?one").body == b"here\n"
        (logs / "access").rename(logs / "old")
        server.send_signal(signal.SIGUSR1)
        assert server.errors.wait("reopened the logs")
        assert fetch(port, "/?two").status == 200
        # Owned by nobody, writable by its mode; and still not writable for the server.
        config.write_text(f"{text}access-log={other}/access\n")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("old configuration stays")
        assert re.search("other/access.*(Permission denied|Read-only)", server.errors.text())
        assert list(other.iterdir()) == []
        server.stop()
        assert "two" in (logs / "access").read_text()
        assert sorted(path.name for path in logs.iterdir()) == ["access", "old"]


def test_keys_that_only_root_can_read(start, folder, root):
    """At the start and at each reload; nothing else is opened by that privilege."""
    for name in ("ec.pem", "ec.key", "rsa.pem", "rsa.key"):
        copy = write(folder / name, pathlib.Path(tls.file(name)).read_bytes())
        copy.chmod(0o600)
    config = write(folder / "sweet.conf",
                   f"[sweet]\nlisten=127.0.0.1:0,tls\nuser=nobody\nroot={root}\n"
                   f"certificate={folder}/ec.pem\nkey={folder}/ec.key\n".encode())
    server = start(None, "--config", config, listen=None)
    check_gone(server.pid, NOBODY.pw_uid, NOBODY.pw_gid)

    def kind_of_key():
        with Client(server.port, secure=True) as client:
            assert client.get("/").status == 200
            assert client.get("/secret").status == 403
            return len(client.socket.getpeercert(binary_form=True)) > 600

    assert not kind_of_key()
    config.write_text(config.read_text().replace("/ec.", "/rsa."))
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("reloaded ")
    assert kind_of_key()
    config.write_text(config.read_text().replace("/rsa.key", "/none.key"))
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait('key ".*/none.key": No such file or directory')
    assert kind_of_key()
    opener = next(pid for pid in children_of(server.pid) if said(pid, "Name") == ["sweet:", "keys"])
    os.kill(opener, signal.SIGKILL)
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("the process that opens keys has ended: restart the server")
    assert kind_of_key()


def test_answers_below_a_folder_of_root(start, folder, root):
    """The folder is opened with the keys; what is in it by the user of the server."""
    for name in ("first", "second"):
        for suffix in ("pem", "key"):
            data = pathlib.Path(tls.file(f"other.{suffix}")).read_bytes()
            place = "crt.pem" if suffix == "pem" else "key.pem"
            write(folder / "closed" / name / f"{name}.example.{place}", data).chmod(0o644)
    (folder / "closed").chmod(0o700)
    hidden = folder / "closed/second/second.example.key.pem"
    hidden.chmod(0o600)
    config = write(folder / "sweet.conf",
                   f"[sweet]\nlisten=127.0.0.1:0,tls\nuser=nobody\nroot={root}\n"
                   f"certificate={tls.file('ec.pem')}\nkey={tls.file('ec.key')}\n"
                   f"tls-alpn-01={folder}/closed/first\nlog-level=info\n".encode())
    server = start(None, "--config", config, listen=None)
    settings = tls.context()
    settings.set_alpn_protocols(["acme-tls/1"])

    def answers(name):
        with Client(server.port, secure={"name": name, "settings": settings}) as client:
            return client.at_end()

    assert answers("first.example")
    config.write_text(config.read_text().replace("/closed/first", "/closed/second"))
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("reloaded ")
    with pytest.raises(OSError):
        answers("second.example")
    assert server.errors.wait("second.example.key.pem\": Permission denied")
    hidden.chmod(0o644)
    assert answers("second.example")
