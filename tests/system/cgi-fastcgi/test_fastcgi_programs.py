# SPDX-License-Identifier: MIT
"""FastCGI applications of other projects: PHP, and programs with libfcgi, one of which
attaches to the server's cache."""

import hashlib
import re
import socket
import subprocess
import time

import pytest

from examples import LIBRARY
from fastcgi import application
from files import MB, pattern, write
from programs import curl
from server import GENERATE, SCALE, TIMEOUT, UNDER, running
from test_fastcgi import Client, ask, fetch
from test_generate import page
from test_protocols import ATTACH, needs_libfcgi
from tools import find

FPM = """
[global]
error_log = {folder}/fpm.log
daemonize = no
[www]
listen = {folder}/php.sock
{user}
pm = static
pm.max_children = 3
php_admin_value[upload_max_filesize] = 64M
php_admin_value[post_max_size] = 128M
"""

SCRIPTS = {
    "info.php": "<?php phpinfo();",
    "form.php": "<?php $f = $_FILES['file']; echo $f['size'], ' ', md5_file($f['tmp_name']);",
    "raw.php": "<?php $b = file_get_contents('php://input'); echo strlen($b), ' ', md5($b);",
    "large-raw.php": "<?php $h = hash_init('md5');"
                     " $n = hash_update_stream($h, fopen('php://input', 'r'));"
                     " echo $_SERVER['CONTENT_LENGTH'], ' ', $n, ' ', hash_final($h);",
    "deaf.php": "<?php echo 'no thanks';",
    "path.php": "<?php echo $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['PATH_INFO'] ?? '-', ' ',"
                " $_SERVER['PATH_TRANSLATED'] ?? '-', ' ', $_SERVER['PHP_SELF'];",
    "index.php": "<?php echo 'the index of ', $_SERVER['SCRIPT_NAME'];",
    "large.php": "<?php for ($i = 0; $i < 5000; $i++) echo str_repeat(chr(97 + $i % 26), 1000);",
    "status.php": "<?php http_response_code(418); header('X-Two: 2'); header('Set-Cookie: a=b');",
    "move.php": "<?php header('Location: /php/index.php');",
    "error.php": "<?php error_log('to the log'); echo 'said';",
    "many.php": "<?php echo $_GET['n'];",
}


uses_php = pytest.mark.needs("php-fpm")


@pytest.fixture(scope="module")
def php(tmp_path_factory):
    """php-fpm with a folder of scripts; returns the folder of its socket."""
    program = find("php-fpm")
    folder = tmp_path_factory.mktemp("php")
    for name, text in SCRIPTS.items():
        write(folder / "root" / "php" / name, text.encode())
    root = subprocess.run(["id", "-u"], capture_output=True, check=True).stdout.strip() == b"0"
    conf = write(folder / "fpm.conf",
                 FPM.format(folder=folder, user="user = root" if root else "").encode())
    process = subprocess.Popen([program, "-n", "-y", conf, *(["-R"] if root else [])],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + TIMEOUT
    while True:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(folder / "php.sock")) == 0:
                break
        assert process.poll() is None and time.monotonic() < deadline, \
            (folder / "fpm.log").read_text()
        time.sleep(0.01)
    yield folder
    process.terminate()
    process.wait(TIMEOUT)


@pytest.fixture(scope="module")
def server(kind, php):
    with running(kind, php / "root", "--max-body", "64M", "--index", "index.php",
                 "--fastcgi", f"/php=unix:{php}/php.sock") as server:
        yield server


@uses_php
def test_phpinfo(server, php):
    got = ask(server.port, "/php/info.php?x=1")
    text = re.sub("<[^>]*>", " ", got.data.decode())
    assert got.status == 200 and got.getheader("Content-Type").startswith("text/html")
    assert re.search(r"Server API\s+FPM/FastCGI", text)
    assert re.search(rf"SCRIPT_FILENAME'\]\s+{php}/root/php/info\.php", text)
    assert re.search(r"QUERY_STRING'\]\s+x=1", text)
    assert re.search(r"SERVER_SOFTWARE'\]\s+SWEET/", text)


@uses_php
@pytest.mark.parametrize("how", ["form", "raw", "chunks"])
def test_upload(server, tmp_path, how):
    data = pattern(10 * MB)
    path = write(tmp_path / "file", data)
    options = {"form": ["-F", f"file=@{path}"], "raw": ["-T", path],
               "chunks": ["-T", path, "-H", "Transfer-Encoding: chunked"]}[how]
    script = "form" if how == "form" else "raw"
    assert curl(*options, f"{server.url}/php/{script}.php") \
        == f"{10 * MB} {hashlib.md5(data).hexdigest()}"


@uses_php
def test_large_upload(kind, php, tmp_path):
    """An upload that does not fit into the cache."""
    size = 64 * MB // SCALE
    data = pattern(size)
    path = write(tmp_path / "file", data)
    with running(kind, php / "root", "--max-body=0", "--cache-size=16M",
                 "--fastcgi", f"/php=unix:{php}/php.sock") as server:
        assert curl("-T", path, f"{server.url}/php/large-raw.php") \
            == f"{size} {size} {hashlib.md5(data).hexdigest()}"
        assert curl("-T", path, f"{server.url}/php/deaf.php") == "no thanks"
        server.wait_status(lambda status: status["cache"]["units"] == 0)


@uses_php
def test_paths(server, php):
    assert fetch(server.port, "/php/path.php").body == b"/php/path.php  - /php/path.php"
    assert fetch(server.port, "/php/path.php/a/b").body.decode() \
        == f"/php/path.php /a/b {php}/root/a/b /php/path.php/a/b"
    assert fetch(server.port, "/php/").body == b"the index of /php/index.php"
    assert fetch(server.port, "/php/none.php").status == 404
    assert server.errors.wait("pool /php: .*says: Primary script unknown")


@uses_php
def test_answers(server):
    assert ask(server.port, "/php/large.php").data \
        == b"".join(bytes([97 + i % 26]) * 1000 for i in range(5000))
    got = ask(server.port, "/php/status.php")
    assert (got.status, got.getheader("X-Two"), got.getheader("Set-Cookie")) == (418, "2", "a=b")
    got = ask(server.port, "/php/move.php")
    assert (got.status, got.getheader("Location")) == (302, "/php/index.php")
    assert ask(server.port, "/php/error.php").data == b"said"
    assert server.errors.wait("pool /php: .*says: .*to the log")
    with Client(server.port) as client:
        for number in range(100 // SCALE):
            assert client.get(f"/php/many.php?n={number}").body == str(number).encode()
            assert client.get("/php/many.php?n=1", "HEAD").status == 200


# --- libfcgi -------------------------------------------------------------------------------


@needs_libfcgi
@pytest.mark.parametrize("size", [0, 1, 8000, 100000, 5 * MB])
def test_generate(kind, tmp_path, size):
    with application(tmp_path, *UNDER, GENERATE, PATH="/usr/bin:/bin") as generate, \
            running(kind, tmp_path, "--fastcgi", f"/generate=unix:{generate.path}") as server:
        for _ in range(3):
            assert ask(server.port, f"/generate?size={size}").data == page(size)
        assert ask(server.port, "/generate?size=x").status == 400


@needs_libfcgi
def test_attached(kind, tmp_path):
    """Its pages do not pass through its socket: it names a unit instead of a body."""
    cache = tmp_path / "cache"
    with application(tmp_path, *UNDER, ATTACH, NABC_CACHE=str(cache), PATH="/usr/bin:/bin",
                     LD_LIBRARY_PATH=LIBRARY) as attach, \
            running(kind, tmp_path, "--cache-socket", cache, "--fastcgi",
                    f"/attach=unix:{attach.path}") as server:
        before = server.status()["workers"]
        for _ in range(3):
            got = fetch(server.port, "/attach")
            assert got.status == 200, server.errors.text()
            assert re.fullmatch(rb"This is page \d+ of process \d+\.\n", got.body)
            assert got["Content-Length"] == str(len(got.body))
            assert not any(name.startswith("x-nabc") for name in got.fields)
        after = server.status()["workers"]
        assert after["body_bytes_by_cache_id"] - before["body_bytes_by_cache_id"] \
            == 3 * len(got.body)
