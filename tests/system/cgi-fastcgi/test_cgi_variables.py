# SPDX-License-Identifier: MIT
"""Variables of the operator (variable) for CGI programs, which another process starts."""

import signal

import pytest

import server as servers
from files import write
from test_cgi import TEXT, ask

SHOW = '#!/bin/sh\n' + TEXT + 'echo "$OWN|$OTHER|$HTTP_FROM"\n'
RULES = """\
[sweet]
listen=127.0.0.1:0
root={top}
[path /one]
pool=one
[path /one/else]
variable=OWN=of the path;HTTP_FROM=me
[path /two]
pool=two
[pool one]
protocol=cgi
command={top}/show.sh
variable=OWN=of the pool
[pool two]
protocol=cgi
folder={top}
variable=OTHER=of the folder
"""


@pytest.fixture
def top(tmp_path):
    write(tmp_path / "show.sh", SHOW.encode()).chmod(0o755)
    write(tmp_path / "sweet.conf", RULES.format(top=tmp_path).encode())
    return tmp_path


@pytest.fixture
def server(top, start):
    return start(None, "--config", top / "sweet.conf", listen=None)


def got(server, path):
    return ask(server, path, fields={"From": "you"}).text.strip()


def test_pool_and_path(server):
    """Those of a path replace the pool's and fields; each pool has its own."""
    assert got(server, "/one") == "of the pool||you"
    assert got(server, "/one/else") == "of the path||me"
    assert got(server, "/two/show.sh") == "|of the folder|you"


def test_reload(server, top):
    """The process that starts programs knows those of the first configuration."""
    config = top / "sweet.conf"
    config.write_text(config.read_text().replace("HTTP_FROM=me", "HTTP_FROM=us"))
    server.send_signal(signal.SIGHUP)
    assert server.errors.wait("reloaded ")
    assert got(server, "/one/else") == "of the path||us"
    good = config.read_text()
    for old, new, pool in [("OWN=of the path", "OWN=new", "one"),
                           ("OTHER=of the folder", "OTHER=new", "two"),
                           ("OWN=of the path", "MORE=new", "one")]:
        config.write_text(good.replace(old, new))
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait(f'pool "{pool}": variable "{new}": a reload cannot add or change '
                                  "it for CGI programs: restart the server")
    assert got(server, "/one/else") == "of the path||us"


OWN = 'pool "two" gets the server\'s'


@pytest.mark.parametrize("name", ["SCRIPT_NAME", "SCRIPT_FILENAME", "PATH_INFO", "PATH_TRANSLATED"])
def test_of_the_server(top, name):
    """The server sets those that say which program of a folder runs."""
    text = (top / "sweet.conf").read_text()
    servers.refuses(top, text.replace("OTHER=of the folder", f"{name}=x"),
                    'pool "two" has a variable SCRIPT_NAME')
    set_above = text.replace("root=", f"variable={name}=x\nroot=")
    servers.refuses(top, set_above, f'refused.conf:3: variable "{name}=x": {OWN}')
    tried = set_above.replace("[path /two]\npool=two", "[path /two]\ntry-files=file;pool:two")
    servers.refuses(top, tried, OWN)
    good = set_above.replace("pool=two", "variable=\npool=two")
    (top / "sweet.conf").write_text(good)
    status, said = servers.check_config(top / "sweet.conf")
    assert status == 0, said
