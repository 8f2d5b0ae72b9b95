# SPDX-License-Identifier: MIT
"""Where the server refuses to let clients write."""

import pytest

import dav
import server as servers
from files import write

AUTH = "auth-realm=x\nauth-file={top}/users\n"
DAV = "[path /dav]\nwebdav=on\n" + AUTH
CLOSED = "needs auth-realm and auth-file"
OPTION = "[sweet]\nroot={top}/root\nfastcgi=/app=127.0.0.1:1\n" + DAV
RUNS = "fastcgi \"/app=127.0.0.1:1\" may run scripts of that folder"

REFUSED = [
    ("[path /dav]\nwebdav=on\n", "webdav for /dav: " + CLOSED),
    ("[path /dav]\nwebdav=on\nauth-file={top}/users\n", CLOSED),
    ("[sweet]\nwebdav=on\nroot={top}/root\n", "webdav for /: " + CLOSED),
    # A path below, or a pattern, that needs no password.
    (DAV + "[path /dav/open]\nauth-realm=off\n", "webdav for /dav/open: " + CLOSED),
    (DAV + "[pattern open]\nmatch=x\nauth-realm=off\n", "webdav for /dav, pattern open: " + CLOSED),
    ("[sweet]\nread-only=on\nroot={top}/root\n" + DAV, "webdav for /dav: read-only=on"),
    ("[sweet]\narch=mp\nroot={top}/root\n" + DAV, "webdav for /dav: not with arch=mp"),
    (DAV + "try-files=file;=404\n", "webdav for /dav: excludes try-files"),
    (DAV + "rewrite=/other\n", "webdav for /dav: excludes rewrite"),
    (DAV + "pool=p\n[pool p]\nprotocol=http\nupstream=127.0.0.1:1\n",
     "webdav for /dav: pool \"p\" answers there"),
    # Scripts.
    (DAV + "[pool php]\nprotocol=fastcgi\nupstream=127.0.0.1:1\nsuffix=.php\n",
     "webdav for /dav: pool \"php\" runs files by their suffix"),
    (DAV + "[path /cgi]\npool=c\n[pool c]\nprotocol=cgi\nfolder={top}/root/dav/cgi\n",
     "webdav for /dav: pool \"c\" runs the programs of that folder"),
    (DAV + "[path /cgi]\npool=c\n[pool c]\nprotocol=cgi\nfolder={top}/link\n",
     "webdav for /dav: pool \"c\" runs the programs of that folder"),
    (DAV + "alias={top}/root/dav/cgi/x\n[path /cgi]\npool=c\n[pool c]\nprotocol=cgi\n"
     "folder={top}/root/dav/cgi\n", "webdav for /dav: pool \"c\" runs the programs of that folder"),
    (DAV + "[path /app]\nalias={top}/root/dav\npool=f\n[pool f]\nprotocol=fastcgi\n"
     "upstream=127.0.0.1:1\n", "webdav for /dav: pool \"f\" may run scripts of that folder"),
    # The same by try-files, and by the option, also below its prefix and of a pattern.
    (DAV + "[path /app]\nalias={top}/root/dav\ntry-files=file;pool:f\n[pool f]\nprotocol=fastcgi\n"
     "upstream=127.0.0.1:1\n", "webdav for /dav: pool \"f\" may run scripts of that folder"),
    (OPTION + "[path /app]\nalias={top}/root/dav\n", "webdav for /dav: " + RUNS),
    (OPTION + "alias={top}/root/app\n", "webdav for /dav: " + RUNS),
    (OPTION + "[path /app/a]\nalias={top}/root/dav/a\n", "webdav for /dav: " + RUNS),
    (OPTION + "alias={top}/other/app\n[pattern p]\nmatch=x\nroot={top}/other\n",
     "webdav for /dav: " + RUNS),
    (OPTION + "alias={top}/other/app\n[host a]\nroot={top}/other\n", "webdav for /dav: " + RUNS),
    (DAV + "[path /w]\npool=w\n[pool w]\ncommand={top}/root/dav/run me\n",
     "the command of pool \"w\" names a file in that folder"),
    ("[path /dav]\nwebdav=on\nauth-realm=x\nauth-file={top}/root/dav/users\n",
     "webdav for /dav: auth-file lies in that folder"),
    (DAV + "alias={top}\n", "webdav for /dav: the configuration lies in that folder"),
    ("[path /dav]\nwebdav=maybe\n", "webdav \"maybe\": must be"),
]


@pytest.mark.parametrize("text, message", REFUSED)
def test_refused(tmp_path, text, message):
    for path in ["root/dav/users", "root/dav/cgi/x/a", "users"]:
        write(tmp_path / path, dav.USERS.encode())
    (tmp_path / "link").symlink_to("root/dav/cgi")
    if not text.startswith("[sweet]"):
        text = "[sweet]\nroot={top}/root\n" + text
    servers.refuses(tmp_path, text.format(top=tmp_path), message)


GOOD = [
    DAV,
    DAV + "[path /dav/read]\nwebdav=off\nauth-realm=off\n",
    DAV + "[path /cgi]\npool=c\n[pool c]\nprotocol=cgi\nfolder={top}/cgi\n",
    DAV + "[path /app]\nroot={top}/cgi\npool=f\n[pool f]\nprotocol=fastcgi\n"
    "upstream=127.0.0.1:1\n",
    OPTION,
    OPTION + "[path /app]\nalias={top}/cgi\n[path /other]\nalias={top}/root/dav\nwebdav=off\n",
    DAV + "try-files=off\n[path /app]\nalias={top}/cgi\ntry-files=file;pool:f\n[pool f]\n"
    "protocol=fastcgi\nupstream=127.0.0.1:1\n",
]


@pytest.mark.parametrize("text", GOOD)
def test_good(tmp_path, text):
    for path in ["root/dav/a", "cgi/a", "users"]:
        write(tmp_path / path, dav.USERS.encode())
    path = tmp_path / "good.conf"
    if not text.startswith("[sweet]"):
        text = "[sweet]\nroot={top}/root\n" + text
    path.write_text(text.format(top=tmp_path))
    status, said = servers.check_config(path)
    assert status == 0, said
