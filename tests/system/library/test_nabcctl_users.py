# SPDX-License-Identifier: MIT
"""nabcctl: in scripts, by other users, and with owners that do not exist or send invalid data."""

import errno
import grp
import json
import os
import pwd
import socket
import struct
import subprocess
import threading
import time

import pytest

from files import MB, pattern, write
from server import TIMEOUT
from test_nabcctl import (LENGTHS, NABCCTL, NOBODY, SOURCE, Owner, as_nobody, bad, ctl,
                          environment, folder, good, header_fields, ids, only_root, open_owner, owner, sealed,
                          shell)


# --- in scripts ------------------------------------------------------------------------------------------


def test_pipeline(owner, folder):
    write(folder / "data", pattern(MB))
    done = shell(owner.path, "nabcctl put - <data | xargs nabcctl get | cmp - data", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = shell(owner.path, "cat data | nabcctl put - | xargs nabcctl get | cmp - data",
                 cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = shell(owner.path, "nabcctl list | awk 'NR > 1 { print $1 }' | xargs nabcctl destroy")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert ids(owner.path) == []


def test_many_at_once(owner):
    """Each process is a member of its own."""
    script = "for i in $(seq 8); do echo text $i | nabcctl put - & done; wait"
    done = shell(owner.path, script)
    assert done.stderr == b""
    texts = {good(owner.path, "get", unit) for unit in done.stdout.decode().split()}
    assert texts == {b"text %d\n" % i for i in range(1, 9)}


def test_cgi_script(owner):
    """A CGI head that names the body, which a server with that cache would send."""
    script = SOURCE / "cgi-examples" / "hello.sh"
    done = subprocess.run(
        [script], env=environment(owner.path, REMOTE_ADDR="192.0.2.7", PATH_INFO="/a b"),
        capture_output=True, timeout=TIMEOUT,
    )
    assert done.returncode == 0 and done.stderr == b""
    head, empty, body = done.stdout.partition(b"\r\n\r\n")
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n"))
    assert (empty, body) == (b"\r\n\r\n", b"")
    assert fields[b"Content-Type"].startswith(b"text/plain")
    page = good(owner.path, "get", fields[b"X-NABC-Cache-Id"].decode())
    assert page.startswith(b"Hello 192.0.2.7, ") and b'"/a b"' in page


def test_cgi_script_without_a_cache(folder):
    done = subprocess.run(
        [SOURCE / "cgi-examples" / "hello.sh"], env=environment(folder / "none"),
        capture_output=True, timeout=TIMEOUT,
    )
    assert (done.returncode, done.stdout) == (0, b"Status: 503 Service Unavailable\r\n\r\n")
    assert b"no such socket" in done.stderr


# --- other users ---------------------------------------------------------------------------------------------


@only_root
def test_closed_to_others(owner):
    assert "permission denied" in bad(owner.path, "list", prefix=as_nobody)
    assert "permission denied" in bad(owner.path, "put", "-", prefix=as_nobody, input=b"x")
    # Whatever the current mode of the socket: the owner's options decide who may attach.
    os.chmod(owner.path, 0o777)
    assert "permission denied" in bad(owner.path, "list", prefix=as_nobody)


@only_root
def test_stranger(open_owner):
    path = open_owner.path
    for words in (["stat"], ["top"], ["routes"], ["grants", open_owner.ids[0]]):
        assert "cache and root may run this" in bad(path, *words, prefix=as_nobody)
    assert ids(path, prefix=as_nobody) == []
    for unit in open_owner.ids:
        for words in (["get"], ["destroy"], ["stat"], ["grant", "--user", NOBODY],
                      ["revoke", "--user", 0]):
            done = ctl(path, *words, unit, prefix=as_nobody)
            assert done.returncode == 1 and b"permission denied" in done.stderr, done.stderr
    assert ids(path) == sorted(open_owner.ids)


@only_root
def test_grant_to_a_user(open_owner):
    path, unit = open_owner.path, open_owner.ids[1]
    good(path, "grant", unit, "--user", NOBODY)
    assert ids(path, prefix=as_nobody) == [unit]
    assert good(path, "get", unit, prefix=as_nobody) == open_owner.data(1)
    found = json.loads(good(path, "stat", "--json", unit, prefix=as_nobody))[0]
    assert found["size"] == LENGTHS[1]
    assert "permission denied" in bad(path, "destroy", unit, prefix=as_nobody)
    good(path, "revoke", unit, "--user", NOBODY)
    assert "permission denied" in bad(path, "get", unit, prefix=as_nobody)
    assert ids(path, prefix=as_nobody) == []
    assert "no such grant" in bad(path, "revoke", unit, "--user", NOBODY)


@only_root
def test_grant_to_a_group(open_owner):
    path, unit = open_owner.path, open_owner.ids[3]
    member = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--groups=4242"]
    good(path, "grant", unit, "--group", 4242)
    assert good(path, "get", unit, prefix=member) == open_owner.data(3)
    assert "permission denied" in bad(path, "get", unit, prefix=as_nobody)


@only_root
def test_grant_to_a_process(open_owner, folder):
    path, unit = open_owner.path, open_owner.ids[2]
    waiting = subprocess.Popen(
        [*as_nobody, "/bin/sh", "-c", f"read go && exec {folder}/nabcctl get {unit}"],
        env=environment(path), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    good(path, "grant", unit, "--pid", waiting.pid)
    # Other processes of the same user may not.
    assert "permission denied" in bad(path, "get", unit, prefix=as_nobody)
    assert waiting.communicate(b"go\n", timeout=TIMEOUT)[0] == open_owner.data(2)
    assert waiting.returncode == 0
    assert "it may have ended" in bad(path, "grant", unit, "--pid", waiting.pid)


def grants(path, unit):
    return json.loads(good(path, "grants", "--json", unit))


def test_grants(owner, folder):
    path, unit = owner.path, owner.ids[1]
    assert grants(path, unit) == []
    assert good(path, "grants", unit).split() == [b"PRINCIPAL", b"WHO", b"NAME", b"IMPORTS"]
    user, group = pwd.getpwuid(NOBODY).pw_name, grp.getgrgid(0).gr_name
    good(path, "grant", unit, "--user", user)
    good(path, "grant", unit, "--group", 0)
    good(path, "grant", unit, "--user", 12345678)
    good(path, "grant", unit, "--pid", os.getpid())
    found = grants(path, unit)
    assert set(found[0]) == header_fields("NC_grant_info") | {"name"}
    rows = [("process", os.getpid(), ""), ("user", 12345678, ""), ("group", 0, group),
            ("user", NOBODY, user)]
    assert [(row["principal"], row["who"], row["name"]) for row in found] == rows
    assert all(row["imports"] == 0 for row in found)
    lines = [line.split() for line in good(path, "grants", unit).decode().splitlines()]
    assert lines[1:] == [[kind, str(who), name or "-", "0"] for kind, who, name in rows]
    good(path, "revoke", unit, "--user", 12345678, "--pid", os.getpid())
    assert [row["who"] for row in grants(path, unit)] == [0, NOBODY]
    assert grants(path, owner.ids[2]) == []


@only_root
def test_grants_in_use(open_owner):
    path, unit = open_owner.path, open_owner.ids[2]
    good(path, "grant", unit, "--user", NOBODY)
    # It holds the unit as long as its output is not read: a pipe holds less.
    reader = subprocess.Popen([*as_nobody, os.path.join(os.path.dirname(path), "nabcctl"), "get",
                               str(unit)], env=environment(path), stdout=subprocess.PIPE,
                              bufsize=0)
    assert reader.stdout.read(1)
    assert grants(path, unit)[0]["imports"] == 1
    assert len(reader.communicate(timeout=TIMEOUT)[0]) == LENGTHS[2] - 1
    until = time.monotonic() + TIMEOUT
    while grants(path, unit)[0]["imports"]:
        assert time.monotonic() < until


@only_root
def test_put_by_a_stranger(open_owner):
    path = open_owner.path
    unit = int(good(path, "put", "-", prefix=as_nobody, input=b"mine"))
    # Its creator has exited, and no other process has a grant.
    assert "permission denied" in bad(path, "get", unit, prefix=as_nobody)
    assert good(path, "get", unit) == b"mine"
    unit = int(good(path, "put", "-", "--user", NOBODY, prefix=as_nobody, input=b"ours"))
    assert good(path, "get", unit, prefix=as_nobody) == b"ours"
    assert ids(path, prefix=as_nobody) == [unit]


def test_put_that_cannot_be_granted(owner):
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    assert "it may have ended" in bad(owner.path, "put", "-", "--pid", child.pid, input=b"x")
    assert sealed(owner.path) == []


# --- owners that do not exist ---------------------------------------------------------------------


def test_dead_owner(folder):
    owner = Owner(folder / "cache")
    owner.kill()
    assert os.path.exists(owner.path)
    assert "no process serves a cache there" in bad(owner.path, "list")
    os.unlink(owner.path)
    assert "no such socket" in bad(owner.path, "list")


def test_owner_that_dies_meanwhile(folder):
    owner = Owner(folder / "cache")
    with open(folder / "words", "wb"):
        pass
    done = subprocess.Popen(
        [NABCCTL, "put", "-"], env=environment(owner.path), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    # More than a pipe holds: when all is written, it has attached.
    done.stdin.write(bytes(2 * MB))
    owner.kill()
    out, said = done.communicate(timeout=TIMEOUT)
    assert (done.returncode, out) == (1, b"")
    assert b"the owner of the cache has ended" in said and said.count(b"\n") == 1


def test_wrong_sockets(folder):
    assert "no such socket" in bad(folder / "none", "list")
    assert "is not a socket" in bad(write(folder / "file", b""), "list")
    assert "is not a socket" in bad(folder, "list")
    assert "too long" in bad(f"{folder}/{'x' * 200}", "list")
    with socket.socket(socket.AF_UNIX) as stream:
        stream.bind(str(folder / "stream"))
        stream.listen()
        assert "not the socket of a cache" in bad(folder / "stream", "list")


@pytest.mark.parametrize("says", [b"", b"garbage", bytes(64), None], ids=repr)
def test_stranger_for_an_owner(folder, says):
    """A different server listens: it sends other data, or hangs up."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(folder / "other"))
        listener.listen()

        def answer():
            peer = listener.accept()[0]
            if says is not None:
                peer.send(says)
            peer.recv(1000)
            peer.close()

        thread = threading.Thread(target=answer)
        thread.start()
        bad(folder / "other", "list")
        thread.join(TIMEOUT)


class Liar:
    """A process that uses the protocol of an owner, but sends arbitrary replies."""

    MAGIC = 0x4342414E

    def __init__(self, path, answers, error=0):
        self.answers = answers
        self.error = error
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        peer = self.listener.accept()[0]
        version, flags = struct.unpack("4I", peer.recv(100))[1:3]
        peer.send(struct.pack("=IIi5I3Q2I", self.MAGIC, version, 0, 0, 0, 0, 0, 0, 0, 0, MB,
                              flags, 0))
        while question := peer.recv(20000):
            op, tag = struct.unpack_from("=4xIQ", question)
            size, behind = self.answers[op](question)
            peer.send(struct.pack("=IiQQQQIIII", self.MAGIC, self.error, tag, 0, size, 0, 0, 0,
                                  len(behind), 0) + behind)
        peer.close()

    def close(self):
        self.thread.join(TIMEOUT)
        self.listener.close()


LIST, COUNTERS, ROUTES, GRANTS = 7, 9, 10, 14  # operations


def test_list_without_an_end(folder):
    liar = Liar(folder / "liar", {LIST: lambda question: (5, b"")})
    assert "listing: not the socket of a cache" in bad(folder / "liar", "list")
    liar.close()


def test_escapes_of_another_process(folder):
    """Escape sequences must not reach the terminal of the user."""

    def counters(question):
        size = struct.unpack_from("=24xQ", question)[0]
        return 0, (b"\033]0;owned\007\xff" * size)[:size]

    def one_route(question):
        return 1, counters(question)[1]

    for words in (["stat"], ["stat", "--json"], ["routes"], ["routes", "--json"]):
        liar = Liar(folder / "liar", {COUNTERS: counters, ROUTES: one_route})
        text = good(folder / "liar", *words)
        assert b"owned" in text and b"\033" not in text and b"\007" not in text
        assert text.decode()
        liar.close()
        os.unlink(folder / "liar")


def test_owner_that_lists_no_grants(folder):
    """An owner from before NC_grants(3)."""
    liar = Liar(folder / "liar", {GRANTS: lambda question: (0, b"")}, error=errno.EOPNOTSUPP)
    assert "older than nabcctl" in bad(folder / "liar", "grants", 1)
    liar.close()
