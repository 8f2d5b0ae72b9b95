# SPDX-License-Identifier: MIT
"""Every key of sweet.conf(5) has an effect where it is accepted: keys of paths in each kind of
section, here; all others in the tests that are named here. And a key or section that can have none is
reported."""

import base64
import os
import re
import signal

import pytest

import server as servers
from client import http_connection
from files import write
from test_check_config import rows

SOURCES = os.environ["srcdir"]

LOGIN = f"Basic {base64.b64encode(b'anna:geheim').decode()}"
USERS = b"anna:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\n"
ECHO = b"""#!/bin/sh
test "$QUERY_STRING" != bad || echo Status: 404
echo Content-Type: text/plain
echo
echo "$PATH_INFO $HTTP_X_A $A"
seq 500
"""
COUNT = b"""#!/bin/sh
echo Content-Type: text/plain
echo
echo $$
"""
POOLS = """[pool echo]
protocol=cgi
command={top}/echo
[pool count]
protocol=cgi
command={top}/count
"""
AUTH = "auth-realm=x\nauth-file={top}/users\n"

# Each key of a path: a request that shows it, and what the section has without and with it.
# {P} is the path of the section.
TARGET = "{P}/a.txt"
KEYS = {
    "root": (TARGET, "", "root={top}/other\n"),
    "alias": (TARGET, "", "alias={top}/other\n"),
    "rewrite": (TARGET, "", "rewrite=/page.html\n"),
    "try-files": ("{P}/none", "", "try-files=file;=410\n"),
    "index": ("{P}/", "", "index=a.txt\n"),
    "listing": ("{P}/", "", "listing=on\n"),
    "precompressed": (TARGET, "", "precompressed=on\n"),
    "compress": (TARGET, "", "compress=gzip\n"),
    "compress-uncached": (TARGET, "pool=echo\ncompress=gzip\n", "compress-uncached=on\n"),
    "compress-types": (TARGET, "compress=gzip\n", "compress-types=text/html\n"),
    "compress-min": (TARGET, "compress=gzip\n", "compress-min=1M\n"),
    "compress-max": (TARGET, "compress=gzip\n", "compress-max=1\n"),
    "hidden": ("{P}/.dot", "", "hidden=on\n"),
    "webdav": (TARGET, AUTH, "webdav=on\n"),
    "etag": (TARGET, "", "etag=time\n"),
    "charset": (TARGET, "", "charset=iso-8859-1\n"),
    "default-type": ("{P}/unknown", "", "default-type=text/x-own\n"),
    "types": (TARGET, "", "types=text/x-own txt\n"),
    "symlinks": ("{P}/link", "", "symlinks=follow\n"),
    "internal": (TARGET, "", "internal=on\n"),
    "server-timing": (TARGET, "", "server-timing=on\n"),
    "cache-control": (TARGET, "", "cache-control=max-age=5\n"),
    "header": (TARGET, "", "header=X-A: b\n"),
    "request-header": (TARGET, "pool=echo\n", "request-header=X-A: b\n"),
    "error-page": ("{P}/none", "", "error-page=404=/page.html\n"),
    "intercept-errors": (TARGET + "?bad", "pool=echo\nerror-page=404=/page.html\n",
                         "intercept-errors=on\n"),
    "allow": (TARGET, "", "allow=192.0.2.1\n"),
    "deny": (TARGET, "", "deny=all\n"),
    "auth-realm": (TARGET, AUTH, "auth-realm=y\n"),
    "auth-file": (TARGET, AUTH, "auth-file={top}/others\n"),
    "redirect": (TARGET, "", "redirect=/moved\n"),
    "request-rate": (TARGET, "", "request-rate=1\nrequest-burst=1\n"),
    "request-burst": (TARGET, "request-rate=1\n", "request-burst=1\n"),
    "pool": (TARGET, "", "pool=echo\n"),
    "variable": (TARGET, "pool=echo\n", "variable=A=b\n"),
    "cache": (TARGET, "pool=count\n", "cache=1h\n"),
    "max-body": (TARGET, "pool=echo\n", "max-body=1\n"),
    "match": (TARGET, "", "header=X-A: b\n"),
}
METHODS = {"webdav": "OPTIONS", "max-body": "POST"}
KINDS = ["path", "exact", "pattern", "host"]

# Keys of other sections, and those that no single response shows: the test with their effect.
ELSEWHERE = {
    "GLOBAL": """
        config/test_include.py include
        config/test_command_line.py threads io worker workers worker-memory revalidate
        protocol/test_hosts.py listen
        cgi-fastcgi/test_cgi.py cgi
        cgi-fastcgi/test_fastcgi.py fastcgi
        cache/test_memory.py cache-size
        cache/test_pin.py pin
        library/test_nabcctl_server.py cache-socket
        cache/test_held.py socket-memory
        cgi-fastcgi/test_buffering.py spool-directory spool-size spool-memory
        cache/test_page_cache.py page-cache
        static/test_large.py large-files
        system-calls/test_socket_options.py defer-accept fastopen delay-ack send-method
        security/test_privileges.py user group read-only
        operate/test_reload_call.py pid-file
        operate/test_timing.py slow-log
        operate/test_log_files.py error-log log-level
        operate/test_reload.py server-header
        operate/test_request_id.py request-id
        operate/test_trace.py trace
        operate/test_spans.py trace-sample trace-export trace-service trace-ca trace-header
        protocol/test_limits.py header-timeout body-timeout send-timeout keep-alive-requests max-header
        protocol/test_limits.py max-fields max-connections
        http2/test_http2_hostile.py keep-alive-timeout
        http2/test_http2.py http2 max-streams
        tls/test_tls_records.py tls-records
        operate/test_stop.py stop-timeout drain-delay
        static/test_escapes.py raw-utf8
        upstream-http/test_compress_uncached.py compress-streams
        security/test_rules.py connections-per-client status status-allow
        operate/test_status_listen.py status-listen
        protocol/test_proxy_protocol.py proxy-protocol
        security/test_forwarded.py trusted-proxies forwarded
        config/test_effects.py mime-types""",
    "POOL": """
        upstream-http/test_upstream_http.py protocol
        upstream-http/test_upstream_names.py resolve-interval
        cgi-fastcgi/test_fastcgi_spawned.py command directory environment max-requests processes
        cgi-fastcgi/test_cgi.py folder
        cgi-fastcgi/test_fastcgi_move.py upstream in-flight
        cgi-fastcgi/test_scripts.py script-suffix suffix methods pass-authorization
        cgi-fastcgi/test_script_owners.py hosts
        cgi-fastcgi/test_fastcgi_connections.py keep-connection queue
        cgi-fastcgi/test_fastcgi_units.py trust-cache-ids
        workers/test_worker_users.py user group seccomp memory
        workers/test_fcgi_preload.py preload
        cgi-fastcgi/test_cgi_limits.py memory-limit timeout
        cgi-fastcgi/test_cgi_variables.py variable
        upstream-http/test_upstream_http_upgrade.py upgrade upgrade-timeout
        upstream-http/test_upstream_http_tunnels.py max-tunnels tunnels-per-client
        static/test_symlinks.py symlinks
        cgi-fastcgi/test_accel.py accel
        workers/test_workers.py queue-timeout
        cgi-fastcgi/test_long_heads.py max-response-header
        cgi-fastcgi/test_buffering.py request-buffering response-buffering stream-ahead
        cgi-fastcgi/test_slow_clients.py slow-client""",
    "MAP": "static/test_maps.py lookup values file default",
    "OF_HOST": "protocol/test_hosts.py names listen",
    "SITE": """
        tls/test_tls_config.py certificate key client-certificate client-ca hsts
        tls/test_tls.py ocsp-staple tls-profile tls-groups
        tls/test_tls_alpn.py tls-alpn-01
        static/test_escapes.py escaped-slash
        operate/test_log_files.py access-log
        operate/test_log_templates.py log-format""",
    "SCOPE": """
        operate/test_timing.py slow-time
        operate/test_log_paths.py access-log
        protocol/test_rate.py rate""",
}


def listed(level):
    """Returns from each of these keys to the file with its test."""
    lines = (line.split() for line in ELSEWHERE[level].splitlines() if line.strip())
    return {key: name for name, *keys in lines for key in keys}


def sections(kind, name, keys, path="/p"):
    """Returns a host, and these keys in a section of that kind."""
    if kind == "host":
        return f"[host {name}]\n{keys}"
    head = {"path": f"[path {name}{path}]", "exact": f"[path {name}={path}]",
            "pattern": f"[pattern {name}/x]\nmatch=^/p"}[kind]
    return f"[host {name}]\n{head}\n{keys}"


def merge(before, after):
    """Returns the lines of both, of which the later one counts."""
    lines = dict(line.split("=", 1) for line in (before + after).splitlines())
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def is_accepted(key, kind):
    if key == "alias":
        return kind == "path"
    if key == "match":
        return kind == "pattern"
    if key == "rewrite":
        return kind in ("path", "exact", "pattern")
    # The path of a folder ends with a slash, and that of an exact section does not.
    return not (kind == "exact" and key in ("index", "listing"))


CASES = [(key, kind) for key in KEYS for kind in KINDS if is_accepted(key, kind)]


def keys_of(key, kind):
    """Returns the keys of the section without and with that one."""
    _, without, added = KEYS[key]
    if key == "auth-realm":
        return "", AUTH
    if key == "match" and kind == "pattern":
        # Without it there is no section.
        return "", added
    return without, merge(without, added)


def name_of(key, kind, having):
    return f"{key}.{kind}.{having}"


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    top = tmp_path_factory.mktemp("effects")
    text = b"text\n" * 1000
    for name in ["p/a.txt", "p/.dot", "p/unknown", "p/a.txt.gz", "page.html"]:
        write(top / "root" / name, text)
    write(top / "other/p/a.txt", b"other\n")
    write(top / "other/a.txt", b"aliased\n")
    (top / "root/p/link").symlink_to(write(top / "outside", b"outside\n"))
    write(top / "users", USERS)
    write(top / "others", USERS.replace(b"anna", b"bert"))
    write(top / "echo", ECHO).chmod(0o755)
    write(top / "count", COUNT).chmod(0o755)
    return top


def target_of(key):
    return KEYS.get(key, (TARGET,))[0].replace("{P}", "/p")


@pytest.fixture(scope="module")
def server(top):
    text = f"[sweet]\nroot={top}/root\n"
    for key, kind in CASES:
        for having, keys in enumerate(keys_of(key, kind)):
            if key == "match" and not having:
                text += f"[host {name_of(key, kind, having)}]\n"
                continue
            # An exact path is that of the request.
            path = target_of(key).partition("?")[0] if kind == "exact" else "/p"
            text += sections(kind, name_of(key, kind, having), keys, path)
    with servers.running("epoll", None, "--config",
                         write(top / "sweet.conf", (text + POOLS).replace(
                             "{top}", str(top)).encode())) as server:
        yield server


def outcome(server, key, host):
    """Returns what shows the key: the statuses of several requests, and the fields and the body."""
    method = METHODS.get(key, "GET")
    fields = {"Host": host, "Accept-Encoding": "gzip"}
    if key in ("auth-file", "webdav"):
        fields["Authorization"] = LOGIN
    found = []
    for _ in range(5 if key.startswith("request-") else 2):
        connection = http_connection(server.port)
        connection.request(method, target_of(key), b"body" if method == "POST" else None, fields)
        answer = connection.getresponse()
        found.append((answer.status, dict(answer.getheaders()), answer.read()))
        connection.close()
    if key == "cache":
        return found[0][2] == found[1][2]
    status, fields, body = found[0]
    # What differs by itself.
    del fields["Date"]
    if "Server-Timing" in fields:
        fields["Server-Timing"] = "there"
    return [each[0] for each in found], fields, body


@pytest.mark.parametrize("key, kind", CASES)
def test_effect(server, key, kind):
    without, having = [outcome(server, key, name_of(key, kind, i)) for i in range(2)]
    assert without != having, without


@pytest.mark.parametrize("key", [key for key in KEYS if is_accepted(key, "host")])
def test_effect_for_all(top, key):
    """In [sweet]: of the default host."""
    found = []
    for keys in keys_of(key, "host"):
        text = f"[sweet]\n{merge(f'root={top}/root{chr(10)}', keys)}{POOLS}"
        rules = write(top / "one.conf", text.replace("{top}", str(top)).encode())
        with servers.running("epoll", None, "--config", rules) as server:
            found.append(outcome(server, key, "x"))
    assert found[0] != found[1], found


@pytest.mark.parametrize("key, kind", CASES)
def test_no_warning(top, key, kind):
    """Where a key has an effect, the check says nothing."""
    keys = keys_of(key, kind)[1]
    path = target_of(key).partition("?")[0] if kind == "exact" else "/p"
    text = (f"[sweet]\nroot={top}/root\n" + sections(kind, "h", keys, path) +
            "".join(pool for pool in re.split(r"(?=\[pool)", POOLS)
                    if pool and f"pool={pool[6:pool.index(']')]}" in keys))
    rules = write(top / "check.conf", text.replace("{top}", str(top)).encode())
    status, said = servers.check_config(rules)
    assert (status, said) == (0, "")


# --- keys of other sections --------------------------------------------------------------


def test_mime_types(top):
    types = write(top / "mime.types", b"text/x-own txt\n")
    with servers.running("epoll", top / "root", "--mime-types", types) as server:
        assert outcome(server, "mime-types", "x")[1]["Content-Type"].startswith("text/x-own")


def test_every_key_is_here():
    """In this table or in that one, at each level where it is accepted."""
    for name, row in rows():
        level = re.match(r'\s*\{"[a-z0-9-]+",\s*([A-Z_]+)', row)[1]
        if ".experiment" in row:
            continue
        if level in ("SCOPE", "KEY_SCOPE", "KEY_PATH", "KEY_PATTERN"):
            assert name in KEYS or name in listed("SCOPE"), name
        else:
            assert name in listed(level), (name, level)


@pytest.mark.parametrize("level", ELSEWHERE)
def test_elsewhere(level):
    for key, name in listed(level).items():
        with open(os.path.join(SOURCES, "tests/system", name)) as file:
            text = file.read()
        assert re.search(rf"(?:[^\w-]|\\n|--){key.replace('-', '[-_]')}(?![\w-])", text), (key, name)


# --- what has no effect ------------------------------------------------------------------

HTTP = "[pool p]\nprotocol=http\nupstream=127.0.0.1:1\n"
FILES = "no request is answered with a file there"
PROGRAMS = "no program answers there"
CODINGS = "compress has no coding there"
LOST = "redirect of this path leads all requests to another one"
EXACT = "no folder is answered with files there (its path ends with a slash)"
TLS = "no address of listen has TLS"
ERROR, WARNING = "", "warning: "

# A configuration, the line of the key in it, whether it is an error, and why.
VOID = {
    "index": ("[path =/a]\nindex=b\n", 2, WARNING, EXACT),
    "listing": ("[path =/a]\nlisting=on\n", 2, WARNING, EXACT),
    "precompressed": ("[path /a]\npool=p\nprecompressed=on\n" + HTTP, 3, WARNING, FILES),
    "cache-control": ("[path /a]\npool=p\ncache-control=max-age=5\n" + HTTP, 3, WARNING, FILES),
    "charset": ("[path /a]\npool=p\ncharset=utf-8\n" + HTTP, 3, WARNING, FILES),
    "default-type": ("[path /a]\nredirect=/b\ndefault-type=text/html\n", 3, WARNING, LOST),
    "types": ("[path /a]\ntry-files==404\ntypes=text/x-c c\n", 3, WARNING, FILES),
    "hidden": ("[path /a]\npool=p\nhidden=on\n" + HTTP, 3, WARNING, FILES),
    "alias": ("[path /a]\npool=p\nalias=/tmp\n" + HTTP, 3, WARNING, "neither files nor programs"),
    "compress": ("[path /a]\nredirect=/b\ncompress=gzip\n", 3, WARNING, LOST),
    "compress-types": ("[sweet]\ncompress-types=text/html\n", 2, WARNING, CODINGS),
    "compress-min": ("[sweet]\ncompress-min=1K\n[path /a]\ncompress=gzip\ncompress-min=2K\n", 2,
                     WARNING, CODINGS),
    "compress-max": ("[sweet]\ncompress=gzip\nheader=Cache-Control: no-transform\ncompress-max=1M\n",
                     4, WARNING, CODINGS),
    "compress-uncached": ("[sweet]\ncompress=gzip\ncompress-uncached=on\n", 3, WARNING, PROGRAMS),
    "intercept-errors": ("[path /a]\npool=p\nintercept-errors=on\n" + HTTP, 3, WARNING,
                         "no program answers there, or there is no error-page"),
    "cache": ("[sweet]\ncache=response\n", 2, WARNING, PROGRAMS),
    "request-header": ("[path /a]\nrequest-header=X-A: b\n", 2, WARNING, PROGRAMS),
    "variable": ("[path /a]\npool=p\nvariable=A=b\n" + HTTP, 3, WARNING,
                 "no program that gets variables answers there"),
    "max-body": ("[path /a]\nmax-body=2M\n", 2, WARNING, PROGRAMS),
    "try-files": ("[sweet]\nworker=/a=/bin/true\n[path /a]\ntry-files=file;=404\n", 4, WARNING,
                  "something else answers there"),
    "pool": ("[path /a]\npool=p\ntry-files=file;=404\n" + HTTP, 2, WARNING,
             "try-files, or an option (worker, cgi, fastcgi), answers instead"),
    "rewrite": ("[path /a]\nredirect=/b\nrewrite=/c\n", 3, WARNING, LOST),
    "auth-file": ("[path /a]\nauth-file=/dev/null\n", 2, ERROR, "without auth-realm"),
    "request-burst": ("[path /a]\nrequest-burst=4\n", 2, WARNING, "there is no request-rate"),
    "slow-time": ("[path /a]\nslow-time=4\n", 2, WARNING, "there is no slow-log"),
    "certificate": ("[sweet]\ncertificate=FOLDER/a\n", 2, WARNING, TLS),
    "key": ("[sweet]\ncertificate=a\nkey=b\n", 3, WARNING, TLS),
    "ocsp-staple": ("[sweet]\ncertificate=a\nocsp-staple=b\n", 3, WARNING, TLS),
    "tls-profile": ("[sweet]\n[host a]\ntls-profile=modern\n", 3, WARNING, TLS),
    "tls-groups": ("[sweet]\ntls-groups=X25519\n", 2, WARNING, TLS),
    "client-certificate": ("[sweet]\nclient-ca=a\nclient-certificate=optional\n", 3, WARNING,
                           TLS),
    "client-ca": ("[sweet]\nclient-ca=a\n", 2, ERROR, "without client-certificate"),
    "tls-alpn-01": ("[sweet]\ntls-alpn-01=/tmp\n", 2, WARNING, TLS),
    "hsts": ("[sweet]\nhsts=max-age=5\n", 2, WARNING, TLS),
    "log-format": ("[host a]\nlog-format=json\n", 2, WARNING, "there is no access-log"),
    "workers": ("[sweet]\nworkers=3\n", 2, WARNING, "there is no option worker"),
    "worker-memory": ("[sweet]\nworker-memory=2M\n", 2, WARNING, "there is no option worker"),
    "forwarded": ("[sweet]\nforwarded=forwarded\n", 2, WARNING, "there are no trusted-proxies"),
    "trace-sample": ("[sweet]\ntrace-sample=1%\n", 2, WARNING, "trace is off"),
    "trace-service": ("[sweet]\ntrace-service=a\n", 2, WARNING, "there is no trace-export"),
    "trace-header": ("[sweet]\ntrace-header=A: b\n", 2, WARNING, "there is no trace-export"),
    "trace-ca": ("[sweet]\ntrace-ca=/dev/null\n", 2, WARNING, "trace-export has no https URL"),
    "status-allow": ("[sweet]\nstatus=off\nstatus-allow=all\n", 3, WARNING, "status is off"),
    "status-listen": ("[sweet]\nstatus=off\nstatus-listen=127.0.0.1:0\n", 3, WARNING,
                      "status is off"),
    "max-streams": ("[sweet]\nhttp2=off\nmax-streams=9\n", 3, WARNING, "http2 is off"),
    "tls-records": ("[sweet]\ntls-records=openssl\n", 2, WARNING, TLS),
    "compress-streams": ("[sweet]\ncompress-streams=9\n", 2, WARNING,
                         "no path has compress-uncached"),
    "script-suffix": (HTTP + "script-suffix=.x\n[sweet]\npool=p\n", 4, WARNING,
                      "the pool has a suffix, or is not of FastCGI"),
    "processes": (HTTP + "processes=3\n[sweet]\npool=p\n", 4, WARNING,
                  "the server does not start programs at upstream"),
    "in-flight": ("[pool p]\nprotocol=cgi\ncommand=true\nin-flight=3\n[sweet]\npool=p\n", 4, WARNING,
                  "each of these programs has one request at a time"),
    "keep-connection": ("[pool p]\ncommand=true\nkeep-connection=3s\n[sweet]\npool=p\n", 3, WARNING,
                        "it is about connections to upstream"),
    "resolve-interval": (HTTP + "resolve-interval=3s\n[sweet]\npool=p\n", 4, WARNING,
                         "no address of upstream is a name"),
    "upgrade-timeout": (HTTP + "upgrade-timeout=3s\n[sweet]\npool=p\n", 4, WARNING,
                        "there is no upgrade"),
    "max-tunnels": (HTTP + "max-tunnels=3\n[sweet]\npool=p\n", 4, WARNING,
                    "there is no upgrade"),
    "tunnels-per-client": (HTTP + "tunnels-per-client=3\n[sweet]\npool=p\n", 4, WARNING,
                           "there is no upgrade"),
    "memory": (HTTP + "memory=3M\n[sweet]\npool=p\n", 4, WARNING, "the pool has no workers"),
    "max-requests": (HTTP + "max-requests=3\n[sweet]\npool=p\n", 4, WARNING,
                     "no process of the server has more than one request"),
    "request-buffering": ("[pool p]\ncommand=true\nrequest-buffering=on\n[sweet]\npool=p\n", 3,
                          WARNING, "workers read their requests' bodies themselves"),
    "response-buffering": ("[pool p]\ncommand=true\nresponse-buffering=on\n[sweet]\npool=p\n", 3,
                           WARNING, "workers keep their responses themselves"),
}


def needs():
    """Returns the names in the tables of keys that need another one."""
    with open(os.path.join(SOURCES, "sweet", "config", "config-effect.c")) as file:
        return set(re.findall(r'^\t\{"([a-z0-9-]+)",', file.read(), re.M))


def test_every_need_is_here():
    assert needs() == set(VOID) and len(VOID) > 40


@pytest.mark.parametrize("key", VOID)
def test_void(tmp_path, key):
    text, line, kind, why = VOID[key]
    status, said = servers.check_config(write(tmp_path / "sweet.conf", text.encode()))
    wanted = f"sweet: {tmp_path}/sweet.conf:{line}: {kind}{key} has no effect: {why}"
    assert any(one.startswith(wanted) for one in said.splitlines()), said
    # A certificate that is not there is an error of its own.
    assert (status == 0) == (kind == WARNING) or "cannot" in said, said


@pytest.mark.parametrize("text, line, why", [
    ("[path /a]\n", 1, "[path /a] has no effect: it has no keys"),
    ("[host h]\n[path h/a]\n", 2, "[path h/a] has no effect: it has no keys"),
    (HTTP, 1, "[pool p] has no effect: no path has pool=p or try-files=pool:p, and it has no suffix"),
    ("[map m]\nvalues=a b\n", 1, "[map m] has no effect: no value has {map:m}"),
    ("[pattern a]\nmatch=^/a%20b\ndeny=all\n", 2,
     'match "^/a%20b": paths are compared decoded, so no path has %XX in it'),
])
def test_void_sections(tmp_path, text, line, why):
    status, said = servers.check_config(write(tmp_path / "sweet.conf", text.encode()))
    assert (status, said) == (0, f"sweet: {tmp_path}/sweet.conf:{line}: warning: {why}\n")


def test_option(tmp_path):
    done = servers.once("--check-config", "--request-burst", "4", "--root", tmp_path)
    assert done.stderr == "sweet: warning: --request-burst has no effect: there is no request-rate\n"
    assert done.returncode == 0


# Each has an effect for some request.
@pytest.mark.parametrize("text", [
    # It refuses all that is in clear text.
    "[sweet]\nclient-ca=/dev/null\nclient-certificate=required\n",
    "[sweet]\nauth-file=/dev/null\n[path /a]\nauth-realm=x\n",
    "[path /a]\nrewrite=/a/b\npool=p\n" + HTTP,
    "[path /a]\nredirect=/b\nlisting=on\n[path /c]\nrewrite=/a\n",
    "[path /a]\nredirect=tls\nlisting=on\n",
    "[path /a]\nredirect={map:m}\nlisting=on\n[map m]\nvalues=/a/b /c\n",
    "[sweet]\nworker=/a/b=/bin/true\n[path /a]\ncache=response\n",
    "[sweet]\ncache=response\nvariable=A=b\n[pool s]\nprotocol=fastcgi\nupstream=127.0.0.1:1\nsuffix=.s\n",
    "[sweet]\ncharset=utf-8\npool=p\nerror-page=502=/sorry.html\n" + HTTP,
    "[path =/]\nindex=a\nlisting=on\n",
    "[path /a]\nlisting=off\npool=p\ncache=off\n" + HTTP,
    "[path /a]\npool=p\n[path /a/b]\nrewrite=/c\n" + HTTP,
    "[path /a]\npool=p\ntry-files=file;pool:p\n" + HTTP,
])
def test_no_false_warning(tmp_path, text):
    assert servers.check_config(write(tmp_path / "sweet.conf", text.encode())) == (0, "")


def test_log(tmp_path):
    """A start and a reload log them, too."""
    rules = write(tmp_path / "sweet.conf", b"[sweet]\nrequest-burst=4\n")
    line = r"sweet.conf:2: warning: request-burst has no effect"
    with servers.running("epoll", tmp_path, "--config", rules) as server:
        assert server.errors.count(line) == 1
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait(line, 2)
