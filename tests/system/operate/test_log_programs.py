# SPDX-License-Identifier: MIT
"""What programs write to standard output and error: the server logs it line by line, with the name
of the pool, and no program has a log of the server open."""

import contextlib
import os
import pathlib
import re
import shlex
import signal
import subprocess
import tempfile
import time

import pytest

from client import Client, fetch
from files import write
from programs import curl
from server import OBEY, POLL, TIMEOUT, VALGRIND, command
from test_pools import Config
from test_worker_users import NOBODY, root_alone

# How the server starts the program, and what it is after its script.
WORKER, OTHER, FASTCGI = "", "directory=/", "protocol=fastcgi"
LAST = {WORKER: f"exec {OBEY}", OTHER: f"exec {OBEY}", FASTCGI: "exec sleep 1000"}
every = pytest.mark.parametrize("how", [WORKER, OTHER, FASTCGI],
                                ids=["worker", "other", "fastcgi"])
LIMIT = 256 << 10  # bytes of a pool in a period
PERIOD = 10  # seconds


@pytest.fixture
def config(tmp_path):
    return Config(tmp_path)


def pool(folder, script, how=WORKER, name="app", processes=1, more=""):
    path = write(folder / f"{name}.sh", f"{script}\n{LAST[how]}\n".encode())
    return (f"[pool {name}]\ncommand=/bin/sh {path}\nprocesses={processes}\n{how}\n{more}\n"
            f"[path /{name}]\npool={name}\n")


@pytest.fixture
def run(config, start):
    def begin(groups, keys="", **how):
        config.write(groups, keys)
        return start(None, "--config", config.path, listen=None, **how)

    return begin


def lines(server, name="app"):
    """Returns what the pool's programs have said so far."""
    found = [re.fullmatch(rf"sweet: pool {name}: (.*)", line) for line in server.errors.lines]
    return [match[1] for match in found if match]


def logged(path, name="app"):
    """The same in a file, which loses no line if it is read late."""
    return re.findall(rf"^\S+ \[warning\] pool {name}: (.*)$", path.read_text(), re.M)


def wait_logged(path, good):
    """Waits until good() is true of the lines, and returns them."""
    deadline = time.monotonic() + TIMEOUT
    while not (path.exists() and good(logged(path))):
        assert time.monotonic() < deadline, path.read_text()[-2000:]
        time.sleep(POLL)
    return logged(path)


def said(server, text, name="app"):
    """Waits for the line."""
    return server.errors.wait(rf"^sweet: pool {name}: {re.escape(text)}$") is not None


@every
def test_name_is_before_each_line(run, tmp_path, how):
    """Of both descriptors; a line without an end arrives while its program runs."""
    server = run(pool(tmp_path, "echo output; echo errors >&2; echo; echo 'sweet: listening on /'\n"
                      "printf 'no end' >&2", how))
    assert said(server, "no end")
    assert lines(server) == ["output", "errors", "sweet: listening on /", "no end"]
    # A line that waits for its end is not lost with its program.
    server.stop()
    assert all(line.startswith("sweet: ") for line in server.errors.lines)


@every
def test_last_line_without_end(run, tmp_path, how):
    """The program's last words come before the message about its end."""
    server = run(pool(tmp_path, "printf 'a bug' >&2; exit 3", how))
    assert server.errors.wait(r"worker app\[0\] .* has ended")
    text = server.errors.text()
    assert text.index("pool app: a bug") < text.index("has ended")


@every
def test_bytes(run, tmp_path, how):
    r"""Control characters and other bytes are escaped, as everywhere in the log."""
    server = run(pool(tmp_path, r"printf 'a\000b\033[31m\377 \303\244 \r\n' >&2; echo end", how))
    assert said(server, "end")
    assert lines(server) == [r"a\x00b\x1b[31m\xff ä \x0d", "end"]


@every
@pytest.mark.parametrize("byte", ["x", r"\033", r"\303\244"])
def test_long_line(run, tmp_path, how, byte):
    """A line of 1 MB is cut, with a mark, and does not delay the next one for long."""
    server = run(pool(tmp_path, f"piece=$(printf '{byte}%.0s' $(seq 1000))\n"
                      "for i in $(seq 1000); do printf %s \"$piece\" >&2; done\n"
                      "echo >&2; echo after >&2", how))
    assert said(server, "after")
    cut, after = lines(server)
    assert after == "after" and cut.endswith("... (line cut)")
    assert 500 < len(cut.encode()) < 1000
    assert set(cut[:200]) <= set({"x": "x", r"\033": r"\x1b"}.get(byte, "ä"))


def test_line_that_just_fits(run, tmp_path):
    server = run(pool(tmp_path, "for n in 799 800 801; do printf '%0*d\\n' $n 0; done; echo end"))
    assert said(server, "end")
    assert lines(server)[:3] == ["0" * 799, "0" * 800, "0" * 800 + "... (line cut)"]


@every
@pytest.mark.parametrize("flood", ["yes 'a line of a program that repeats itself'",
                                   "cat /dev/zero", "yes ''"], ids=["lines", "one", "empty"])
def test_flood(run, tmp_path, how, flood):
    """A program that writes without end: clients and other pools are served, and the log does not
    grow without limit."""
    server = run(pool(tmp_path, f"{flood} >&2 &", how) +
                 pool(tmp_path, "while sleep 0.5; do echo another; done &", name="other"))
    # Again and again: a reader that is too late for a flood of lines misses some.
    assert said(server, "another", "other")
    for _ in range(20):
        assert fetch(server.port, "/file").body == b"a file\n"
    assert fetch(server.port, "/other/pid").status == 200
    # All of it ends: what writes is in the program's group.
    server.stop(signal.SIGTERM)
    assert sum(map(len, lines(server))) < 2 * LIMIT


@every
def test_left_out_lines_are_counted(run, tmp_path, clock, how):
    """Once for each period; then the pool's lines are logged again.  The limit is that of the pool:
    another process of it adds nothing."""
    many = 20000
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    script = (f"yes 'line of forty bytes, more or less......' | head -n {many} >&2\n"
              f"echo written >{fifo}; read word <{fifo}; echo again >&2")
    log = tmp_path / "log"
    server = run(pool(tmp_path, script, how), f"threads=1\nerror-log={log}", clock=clock)
    with open(fifo) as end:
        assert end.readline() == "written\n"
    # Its last lines are read, too, at the rate of a program.
    deadline = time.monotonic() + TIMEOUT + 10 * PERIOD
    while True:
        lost = [int(line.rpartition(" ")[2]) for line in logged(log) if re.fullmatch(
            r"lines of its programs that were left out, after 256 KiB in less than 10 s: \d+", line)]
        if lost and sum(lost) + sum(line.startswith("line of") for line in logged(log)) == many:
            break
        assert time.monotonic() < deadline, lost
        server.forward(PERIOD + 1)
    assert sum(lost) > many / 2
    # A new period begins.
    server.forward(PERIOD + 1)
    with open(fifo, "w") as end:
        end.write("continue\n")
    wait_logged(log, lambda lines: "again" in lines)


@every
def test_left_running(run, config, tmp_path, how):
    """A process that a program has started outlives a reload, and its pool: its lines still
    arrive, with the name."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # It says first when it has left the group of its program.
    late = f"echo first >&2; read word <{fifo}; echo late >&2; read word <{fifo}; echo later >&2"
    server = run(pool(tmp_path, f"setsid sh -c {shlex.quote(late)} &", how))
    assert said(server, "first")
    config.write("[path /file]\n")
    config.reload(server)
    assert server.errors.wait("pool app: ending")
    server.wait_status(lambda status: not status["workers"]["pools"])
    # Opened for both, which waits for no reader.
    with open(os.open(fifo, os.O_RDWR), "wb", buffering=0) as end:
        for word in "late", "later":
            end.write(b"go on\n")
            assert said(server, word)


def test_last_words(run, tmp_path):
    """At the end of the server, and more than a pipe holds: nothing waits for a full pipe, and
    nothing is lost."""
    log = tmp_path / "log"
    server = run(pool(tmp_path, "trap 'seq 30000; echo bye; exit 0' TERM\necho ready\n"
                      "while :; do sleep 1000 & wait; done", FASTCGI),
                 f"stop-timeout=100\nerror-log={log}")
    wait_logged(log, lambda lines: lines == ["ready"])
    server.stop(signal.SIGTERM)
    text = logged(log)
    assert "does not end" not in log.read_text()
    count = next(i for i, line in enumerate(text[1:]) if line != str(i + 1))
    left = re.search(r"left out.*: (\d+)$", text[-1])
    assert count + int(left[1]) == 30001  # with "bye"


LOOK = """for fd in 0 1 2 3 4 5 6 7 8 9; do
	[ -e /proc/$$/fd/$fd ] && echo "$fd $(readlink /proc/$$/fd/$fd)"
done
"""


@every
def test_no_log_is_open(run, config, tmp_path, how):
    """Neither the server's standard output and error nor its files."""
    logs = f"error-log={tmp_path}/errors\naccess-log={tmp_path}/access"
    server = run(pool(tmp_path, f"exec 9>&1\n{LOOK} setsid sh -c 'echo grandchild; "
                      "readlink /proc/$$/fd/1'\necho end", how), logs)
    deadline = time.monotonic() + TIMEOUT
    while "pool app: end" not in (text := (tmp_path / "errors").read_text()):
        assert time.monotonic() < deadline, text
        time.sleep(POLL)
    found = re.findall(r"pool app: (\d) (.*)", text)
    own = {f"pipe:[{os.fstat(end.fileno()).st_ino}]" for end in
           (server.process.stdout, server.process.stderr)}
    outputs = {link for number, link in found if number in "12"}
    assert len(found) >= 3 and len(outputs) == 1 and outputs.isdisjoint(own)
    for number, link in found:
        assert link not in own and str(tmp_path) not in link, (number, link)
    # What it starts has the same one.
    assert re.search(rf"grandchild\n.*pool app: {re.escape(outputs.pop())}$", text, re.M)


CGI = """#!/bin/sh
: >/proc/self/fd/2
: >/dev/stderr
printf 'Content-Type: text/plain\\r\\n\\r\\n'
readlink /proc/self/fd/1 /proc/self/fd/2
"""


@pytest.mark.parametrize("to_file", [True, False])
def test_file_is_not_truncated(kind, config, tmp_path, to_file):
    """Of a server whose standard error is a file; also not by a program of CGI."""
    write(tmp_path / "cgi" / "look", CGI.encode()).chmod(0o755)
    tries = ": >/proc/self/fd/2; : >/proc/self/fd/1; : >/dev/stderr; echo tried >/dev/stderr"
    config.write("".join(pool(tmp_path, tries, how, f"app{i}")
                         for i, how in enumerate(LAST)) +
                 f"[pool cgi]\nprotocol=cgi\nfolder={tmp_path}/cgi\n[path /cgi]\npool=cgi\n",
                 "" if to_file else f"error-log={tmp_path}/log")
    log = tmp_path / ("stderr" if to_file else "log")

    def wait(pattern):
        deadline = time.monotonic() + TIMEOUT
        while not (log.exists() and (found := re.search(pattern, log.read_text()))):
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(POLL)
        return found

    with open(tmp_path / "stderr", "wb") as errors, subprocess.Popen(
            command(kind, ["--config", str(config.path)], listen=None), stdin=subprocess.DEVNULL,
            stdout=errors, stderr=errors) as process:
        try:
            port = int(wait(r"listening on https?://[^/]*:(\d+)/")[1])
            for i in range(len(LAST)):
                wait(rf"pool app{i}: tried\n")
            body = curl(f"http://127.0.0.1:{port}/cgi/look")
            assert body.count("pipe:[") == 2 and str(tmp_path) not in body
            text = log.read_text()
            assert "listening on" in text and "\0" not in text
        finally:
            process.terminate()
            assert process.wait(TIMEOUT) == 0


@root_alone
@pytest.mark.parametrize("how", [WORKER, FASTCGI], ids=["worker", "fastcgi"])
def test_other_user_opens_its_standard_error(run, how):
    """Scripts write to /dev/stderr, which opens the pipe once more."""
    with tempfile.TemporaryDirectory() as folder:
        # The folders of pytest are closed to others.
        os.chmod(folder, 0o755)
        server = run(pool(pathlib.Path(folder), "id -u; echo opened >/dev/stderr\n"
                          "echo output >/dev/stdout", how, more="user=nobody"))
        assert said(server, "output")
    assert lines(server) == [str(NOBODY.pw_uid), "opened", "output"]


def test_processes_and_threads(run, tmp_path):
    """Processes of a pool write at once, into pipes of their own: all lines are whole."""
    processes, count = 4, 200 if VALGRIND else 500
    server = run(pool(tmp_path, f"for i in $(seq {count}); do\n"
                      "printf 'process '; printf $$; echo \" line $i\"; done >&2", WORKER,
                      processes=processes), f"threads=4\nerror-log={tmp_path}/log")
    found = wait_logged(tmp_path / "log", lambda lines: len(lines) >= processes * count)
    found = [re.fullmatch(r"process (\d+) line (\d+)", line) for line in found]
    assert all(found) and len(found) == processes * count
    for pid in {match[1] for match in found}:
        assert [int(match[2]) for match in found if match[1] == pid] == [*range(1, count + 1)]
    with Client(server.port) as client:
        assert client.get("/app/pid").status == 200


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can list the server's descriptors")
@every
def test_descriptors_are_returned(run, config, tmp_path, how):
    """Of processes that come and go, and of pools that a reload has ended."""
    server = run(pool(tmp_path, "echo begin", how, processes=4))
    server.errors.wait("pool app: begin", 4)

    def pipes():
        links = set()
        for entry in os.scandir(f"/proc/{server.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                links.add(os.readlink(entry.path))
        return {link for link in links if link.startswith("pipe:")}

    for i in range(3):
        config.write(pool(tmp_path, "echo begin", how, processes=4))
        config.reload(server)
        server.errors.wait("pool app: begin", 4 * (i + 2))
    config.write("[path /file]\n")
    config.reload(server)
    server.wait_status(lambda status: not status["workers"]["pools"])
    own = {f"pipe:[{os.fstat(end.fileno()).st_ino}]" for end in
           (server.process.stdout, server.process.stderr)}
    server.wait_status(lambda _: pipes() <= own)
