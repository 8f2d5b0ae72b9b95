# SPDX-License-Identifier: MIT
"""cgi-examples/README.md: each section's commands, typed as they are printed into
a shell in a copy of the folder, say what is printed below them.

The commands find sweet, curl and nabcctl of ours: the server listens at a port
that is free, where curl looks for what is printed with 8080, once it is there.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess

import pytest

from examples import LACKS_LIBFCGI, LIBRARY, PROGRAMS, SOURCES, library_environment
from files import write
from ports import free_port
from server import SWEET, TIMEOUT, UNDER, VALGRIND
from test_consumer import built_with

SWEET_SCRIPT = """\
#!/bin/sh
exec {command} --listen 127.0.0.1:{port} "$@"
"""
PYTHON_SCRIPT = """\
#!/bin/sh
exec env {variables} {python} "$@"
"""
CURL_SCRIPT = """\
#!/bin/bash
tries=0
until {curl} --noproxy '*' --max-time 5 -s -o {null} http://127.0.0.1:{port}/.sweet/ready; do
	[ $((tries += 1)) -lt 400 ] || exit 7
	sleep 0.05
done
exec {curl} --noproxy '*' --max-time {timeout} "${{@//:8080/:{port}}}"
"""
PKG_CONFIG = """\
Name: nabc
Description: as it was built
Version: 0
Cflags: -I{headers}
Libs: -L{library} -Wl,-rpath,{library} -lnabc {sanitize}
"""


def sections():
    """Maps each title to pairs of a command and its output lines."""
    found = {}
    with open(os.path.join(SOURCES, "README.md")) as readme:
        for part in re.split(r"^## ", readme.read(), flags=re.MULTILINE)[1:]:
            title, _, text = part.partition("\n")
            session = []
            for line in re.findall(r"^ {4}(.*)$", text, re.MULTILINE):
                if line.startswith("$ "):
                    session.append((line[2:], []))
                else:
                    session[-1][1].append(line)
            assert session, f"{title}: nothing to type"
            found[title.partition(":")[0]] = session
    return found


def matches(printed, said):
    pattern = r".+?".join(re.escape(part) for part in re.split(r"\.\.\.(?!\.)|\.\.\.(?=\.$)", printed))
    return re.fullmatch(pattern, said)


def end_applications(folder):
    """Stops applications that spawn-fcgi has started and that no command of the session has
    stopped."""
    for path in folder.glob("*.pid"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(path.read_text()), signal.SIGTERM)


@pytest.fixture
def folder(tmp_path):
    """The copy, with a PATH that finds our programs before those of the system."""
    folder = tmp_path / "cgi-examples"
    shutil.copytree(SOURCES, folder, ignore=lambda _, names: [n for n in names if n == "__pycache__"])
    os.chmod(folder, 0o755)
    port, null = free_port(), os.devnull
    # Valgrind stops the whole process while one of its threads waits in io_uring.
    sweet = [*UNDER, os.path.abspath(SWEET), *(["--io", "epoll"] if VALGRIND else [])]
    for name, text in {
        "sweet": SWEET_SCRIPT.format(command=" ".join(sweet), port=port),
        "python3": PYTHON_SCRIPT.format(python=shutil.which("python3"), variables=" ".join(
            f"{name}={value}" for name, value in library_environment().items())),
        "curl": CURL_SCRIPT.format(curl=shutil.which("curl"), port=port, null=null, timeout=TIMEOUT),
    }.items():
        write(tmp_path / "bin" / name, text.encode()).chmod(0o755)
    os.symlink(os.path.join(PROGRAMS, "nabcctl", "nabcctl"), tmp_path / "bin" / "nabcctl")
    write(tmp_path / "nabc.pc", PKG_CONFIG.format(
        headers=os.path.join(os.path.dirname(SOURCES), "libnabc", "include"), library=LIBRARY,
        sanitize=built_with("SANITIZE")).encode())
    return folder


def test_something_is_printed():
    assert len(sections()) >= 3


def with_marks(title):
    """Requirements of its commands besides the built programs."""
    links_libfcgi = any("-lfcgi" in command for command, _ in sections()[title])
    needs = pytest.mark.needs("fcgiapp.h", "spawn-fcgi")
    return pytest.param(title, marks=needs if links_libfcgi else ())


@pytest.mark.parametrize("title", map(with_marks, sections()))
def test_section(folder, title):
    top = folder.parent
    session = sections()[title]
    if any("-lfcgi" in command for command, _ in session):
        if LACKS_LIBFCGI:
            pytest.skip(LACKS_LIBFCGI)
    mark = "answered by the command before"
    typed = "".join(f"{command}\necho '{mark}'\n" for command, _ in session)
    with open(top / "errors", "wb") as errors:
        shell = subprocess.Popen(
            ["/bin/sh"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            start_new_session=True,
            env={**os.environ, "LD_LIBRARY_PATH": LIBRARY, "PATH": f"{top}/bin:{os.environ['PATH']}",
                 "PKG_CONFIG_PATH": str(top), "PYTHONDONTWRITEBYTECODE": "1"})
    try:
        said = shell.communicate(f"{typed}kill $!; wait\n".encode(), 3 * TIMEOUT)[0].decode()
    finally:
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)
        end_applications(folder)
    problems = (top / "errors").read_text()
    answers = said.split(f"{mark}\n")
    assert len(answers) == len(session) + 1, said + problems
    for (command, printed), answer in zip(session, answers):
        lines = answer.splitlines()
        assert len(lines) == len(printed) and all(map(matches, printed, lines)), (
            f"$ {command}\nprinted: {printed}\nsaid: {lines}\n{problems}")
