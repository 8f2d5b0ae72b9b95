# SPDX-License-Identifier: MIT
"""cgi-examples/nabc.py: its structures are those of the headers; and each of its
calls, with valid and invalid arguments."""

import errno
import os
import re
import subprocess

import pytest

from examples import SOURCES, library_environment
from files import MB, pattern, write
from server import TIMEOUT
from test_nabcctl import good, ids, owning, sealed

HEADERS = os.path.join(os.environ["srcdir"], "libnabc", "include")
# Names of nabc.py and of the headers.
STRUCTURES = {"_Range": "struct NC_range", "_Stat": "struct NC_stat",
              "_Request": "struct NC_request", "_Response": "struct NC_response"}


def python(code, *arguments, status=0, **environment):
    """Runs code beside nabc.py; returns its output."""
    known = {**os.environ, **library_environment(), "PYTHONPATH": SOURCES,
             "PYTHONDONTWRITEBYTECODE": "1", **{name: str(value) for name, value in environment.items()}}
    for name in ("NABC_CACHE", "NABC_SERVER_PID"):
        if name not in environment:
            known.pop(name, None)
    done = subprocess.run(["python3", "-c", "import errno, os, sys, nabc\n" + code, *map(str, arguments)],
                          env=known, capture_output=True, timeout=TIMEOUT)
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode() if status == 0 else done.stderr.decode()


@pytest.fixture
def owner(tmp_path):
    with owning(tmp_path / "cache") as owner:
        yield owner


def test_structures(tmp_path):
    described = python("""
for name in sys.argv[1:]:
    known = getattr(nabc, name)
    print(name, nabc.ctypes.sizeof(known), *(f"{field}:{getattr(known, field).offset}:"
          f"{getattr(known, field).size}" for field, *_ in known._fields_))
""", *STRUCTURES)
    asked = []
    for line in described.splitlines():
        name, size, *fields = line.split()
        known = STRUCTURES[name]
        asked.append(f"_Static_assert(sizeof({known}) == {size}, \"{known}\");")
        for field, offset, length in (field.split(":") for field in fields):
            asked.append(f"_Static_assert(__builtin_offsetof({known}, {field}) == {offset} && "
                         f"sizeof((({known} *)0)->{field}) == {length}, \"{known} {field}\");")
    assert len(asked) == 4 + len(re.findall(":", described)) // 2
    source = write(tmp_path / "layout.c", "\n".join(["#include <nabc-worker.h>", *asked, ""]).encode())
    subprocess.run(["cc", "-I", HEADERS, "-c", "-o", os.devnull, source], check=True, timeout=TIMEOUT)


def test_numbers():
    """Its copies of the headers' numbers."""
    with open(os.path.join(HEADERS, "nabc.h")) as header:
        text = header.read()
    assert re.search(r"NC_PROCESS = 1,.*\n\s*NC_PROCESS_FD,.*\n\s*NC_USER,.*\n\s*NC_GROUP,", text)
    assert re.search(r"NC_CHECKSUM_DEFAULT = 0,.*\n\s*NC_CHECKSUM_INET,.*\n\s*NC_CHECKSUM_CRC32C,", text)
    assert python("print(nabc.PROCESS, nabc.USER, nabc.GROUP, nabc.INET, nabc.CRC32C)") == "1 3 4 1 2\n"


@pytest.mark.parametrize("size", [1, 4096, 4097, MB])
@pytest.mark.parametrize("form", ["", "bytearray", "memoryview"])
def test_put(owner, tmp_path, size, form):
    write(tmp_path / "data", pattern(size))
    unit = python(f"""
data = open(sys.argv[1], "rb").read()
print(nabc.put({form}(data)))
""", tmp_path / "data", NABC_CACHE=owner.path)
    # The process that created it has exited.
    assert good(owner.path, "get", unit.strip()) == pattern(size)


def test_parts_of_other_memory(owner):
    """Bytes beside a slice are not copied, and a view with gaps is joined."""
    said = python("""
data = bytearray(b"0123456789")
print(nabc.get(nabc.put(memoryview(data)[3:7])), nabc.get(nabc.put(memoryview(data)[::3])),
      nabc.get(nabc.put(memoryview(bytes(data))[8:])), nabc.get(nabc.put(b"a\\0b")))
""", NABC_CACHE=owner.path)
    assert said == "b'3456' b'0369' b'89' b'a\\x00b'\n"


def test_read(owner):
    said = python("""
nabc.attach()
made = nabc.put(b"123456789")
print(nabc.size(made), nabc.get(made, 3), nabc.get(made, 3, 2), nabc.get(made, 9), nabc.get(made, 5, 100))
print(hex(nabc.checksum(made)), nabc.checksum(made, nabc.INET, 0, 2) == 0x3132)
""", NABC_CACHE=owner.path)
    assert said == ("9 b'456789' b'45' b'' b'6789'\n" "0xe3069283 True\n")


def test_lifetime(owner):
    unit = python("print(nabc.put(b'x', lifetime=0.05))", NABC_CACHE=owner.path).strip()
    forever = python("print(nabc.put(b'x', lifetime=3600))", NABC_CACHE=owner.path).strip()
    while int(unit) in ids(owner.path):
        pass
    assert int(forever) in ids(owner.path)


def test_grant_to_the_server(owner):
    """NABC_SERVER_PID names a process of the same user that owns no cache."""
    said = python("""
import subprocess
code = ("import nabc, sys; nabc.attach(); print('ready', flush=True); "
        "print(nabc.get(int(sys.stdin.readline())))")
reader = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
reader.stdout.readline()
os.environ["NABC_SERVER_PID"] = str(reader.pid)
unit = nabc.put(b"for the server")
print(reader.communicate(b"%d\\n" % unit)[0].decode())
""", NABC_CACHE=owner.path)
    assert "b'for the server'" in said


def test_server_that_is_not_there(owner):
    """The unit is destroyed if no process could send it."""
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    said = python("nabc.put(b'x')", status=1, NABC_CACHE=owner.path, NABC_SERVER_PID=gone.pid)
    assert f"[Errno {errno.ESRCH}] NC_grant: " in said
    assert sealed(owner.path) == []


@pytest.mark.parametrize("code, number", [
    ("nabc.put(b'')", errno.EINVAL),
    ("nabc.put(bytes(40 << 20))", errno.EFBIG),
    ("nabc.get(12345)", errno.ENOENT),
    ("nabc.size(0)", errno.ENOENT),
    ("nabc.hold(1 << 63)", errno.ENOENT),
    ("h = nabc.hold(nabc.put(b'x')); h.release(); h.release()", errno.EINVAL),
    ("nabc.checksum(nabc.put(b'x'), 7)", errno.EINVAL),
    ("nabc.checksum(nabc.put(b'x'), offset=0, length=2)", errno.ERANGE),
    ("u = nabc.put(b'x'); nabc.destroy(u); nabc.get(u)", errno.ENOENT),
    ("u = nabc.put(b'x'); nabc.grant(u, 9, 1)", errno.EINVAL),
    ("u = nabc.put(b'x'); nabc.revoke(u, nabc.USER, 77)", errno.ENOENT),
    ("nabc.Worker()", errno.ENXIO),
])
def test_errors(owner, code, number):
    said = python(f"""
try:
    {code.replace('; ', '''
    ''')}
except OSError as error:
    print(error.errno)
""", NABC_CACHE=owner.path)
    assert int(said) in ([number, errno.EACCES] if number == errno.ENOENT else [number])


def test_without_a_cache(tmp_path):
    assert f"[Errno {errno.ENXIO}]" in python("nabc.put(b'x')", status=1)
    assert "KeyError: 'NABC_CACHE'" in python("nabc.attach()", status=1)
    assert f"[Errno {errno.ENOENT}]" in python("nabc.put(b'x')", status=1, NABC_CACHE=tmp_path / "none")
    assert f"[Errno {errno.ENOENT}]" in python("nabc.attach(sys.argv[1])", tmp_path / "none", status=1)


def test_hold(owner):
    said = python("""
unit = nabc.put(b"held")
with nabc.hold(unit):
    nabc.destroy(unit)
try:
    nabc.get(unit)
except OSError as error:
    print(error.errno in (errno.ENOENT, errno.EACCES))
""", NABC_CACHE=owner.path)
    assert said == "True\n"


# --- hello_cgi.py -------------------------------------------------------------------


def cgi(**environment):
    """Returns head and body of the program's output, and its error messages."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("NABC_")}
    done = subprocess.run(
        ["python3", os.path.join(SOURCES, "hello_cgi.py")], capture_output=True, timeout=TIMEOUT,
        env={**known, **library_environment(), "PYTHONDONTWRITEBYTECODE": "1", **environment})
    assert done.returncode == 0, done.stderr.decode()
    head, empty, body = done.stdout.partition(b"\r\n\r\n")
    assert empty
    return dict(line.split(b": ", 1) for line in head.split(b"\r\n")), body, done.stderr


def test_cgi_program(owner):
    head, body, problems = cgi(NABC_CACHE=owner.path, NABC_SERVER_PID=str(owner.process.pid),
                               REMOTE_ADDR="192.0.2.7", PATH_INFO="/a \udcff")
    assert (body, problems) == (b"", b"")
    assert head[b"Content-Type"].startswith(b"text/plain")
    page = good(owner.path, "get", head[b"X-NABC-Cache-Id"].decode())
    assert page.startswith(b"Hello 192.0.2.7, ") and b'"/a \xff"' in page


def test_cgi_program_without_a_cache(tmp_path):
    head, body, problems = cgi()
    assert b"X-NABC-Cache-Id" not in head and body.startswith(b"Hello stranger, ")
    assert problems == b""
    head, body, problems = cgi(NABC_CACHE=str(tmp_path / "none"))
    assert b"X-NABC-Cache-Id" not in head and body.startswith(b"Hello stranger, ")
    assert b"the page goes by the pipe" in problems
