# SPDX-License-Identifier: MIT
"""--check-config: the errors of a file, their lines, and what to do instead; and the
manual has all keys, with their defaults.
"""

import os
import re

import pytest

from files import in_memory, write
from server import once

SOURCES = os.environ["srcdir"]

# The file (FOLDER is its folder), and each error: its line and its text.
MEMORY = in_memory()
BROKEN = {
    "unknown key": ("[sweet]\nacces-log=-\n", [(2, 'unknown key "acces-log": is "access-log" meant?')]),
    "capital": ("[sweet]\nRoot=.\n", [(2, 'unknown key "Root": is "root" meant?')]),
    "of the server, in a host": (
        "[host a.example]\nthreads=2\n",
        [(2, 'key "threads" does not belong into [host a.example], but into [sweet]')]),
    "of a path, in the server": (
        "[sweet]\nalias=/srv\n",
        [(2, 'key "alias" does not belong into [sweet], but into [path PREFIX]')]),
    "twice": ("[sweet]\nthreads=1\n\nthreads=2\n",
              [(4, "threads is given twice, first at FOLDER/sweet.conf:2")]),
    "group twice": ("[path /a]\n[path /b]\n[path /a]\n",
                    [(3, "[path /a] is given twice, first at FOLDER/sweet.conf:1")]),
    "unknown group": ("[server]\nlisten=80\n", [
        (1, "unknown group [server]: must be [sweet], [host NAME], [path PREFIX], [pattern NAME], "
            "[map NAME] or [pool NAME]")]),
    "no group": ("# comment\nlisten=80\n",
                 [(2, '"listen=80" comes before the first group: move it into [sweet]')]),
    "empty": ("", [(None, "no section, such as [sweet]")]),
    "comments only": ("# comment\n\n#[sweet]\n", [(None, "no section, such as [sweet]")]),
    "group not closed": ("[sweet\nthreads=1\n", [(1, "a group is written [name]")]),
    "no value": ("[sweet]\nlisting\n",
                 [(2, '"listing": must be KEY=VALUE, [GROUP] or # comment')]),
    "brace of nginx": ("[sweet]\nlocation / {\n",
                       [(2, '"location / {": must be KEY=VALUE, [GROUP] or # comment')]),
    "escape": ("[sweet]\nroot=C:\\www\n",
               [(2, "root: has an unknown escape: a backslash is written \\\\")]),
    "Latin-1": (b"[sweet]\n# gr\xfc\xdfe\n[path /gr\xfc\xdfe]\n", [(3, "not UTF-8 text")]),
    "no number": ("[sweet]\nthreads=all\n", [(2, 'threads "all": must be a number from 1 to 64, or to 4096 with '
                                          'arch mt or mp')]),
    "number too large": ("[sweet]\nthreads=65\n",
                         [(2, 'threads "65": must be a number from 1 to 64')]),
    "no size": ("[sweet]\ncache-size=1.5G\n",
                [(2, 'cache-size "1.5G": must be a size like 64M')]),
    "size too small": ("[sweet]\ncache-size=64K\n",
                       [(2, 'cache-size "64K": must be a size like 64M, at least 1M')]),
    "no spool": ("[sweet]\nspool-directory=/nowhere\n", [
        (2, 'spool-directory "/nowhere": cannot make files there: No such file')]),
    "spool in memory": (f"[sweet]\nspool-directory={MEMORY}\n", [
        (2, f'spool-directory "{MEMORY}": is in memory (tmpfs), not on a disk')]),
    "no time": ("[sweet]\nheader-timeout=half an hour\n", [
        (2, 'header-timeout "half an hour": must be a time like 500ms, 30s or 2m, at most 24h')]),
    "no time left": ("[sweet]\nsend-timeout=0\n",
                     [(2, 'send-timeout "0": must be a time of at least 1s')]),
    "no switch": ("[sweet]\nlisting=yes\n", [(2, 'listing "yes": must be on or off')]),
    "no such word": ("[sweet]\nlog-format=apache\n", [
        (2, 'log-format "apache": must be short, common, combined, json, template:TEXT or json-')]),
    "no switch": ("[sweet]\npin=often\n", [(2, 'pin "often": must be on or off')]),
    "no address": ("[sweet]\nlisten=localhost:80\n", [
        (2, 'listen "localhost:80": must be ADDRESS:PORT, [ADDRESS]:PORT, :PORT, PORT or unix:PATH')]),
    "no port": ("[sweet]\nlisten=:80;127.0.0.1:65536\n", [
        (2, 'listen "127.0.0.1:65536": must be ADDRESS:PORT,')]),
    "bits behind a prefix": ("[sweet]\ndeny=192.0.2.1/24\n", [
        (2, 'deny "192.0.2.1/24": must be an address, a network without bits after its prefix')]),
    "name for an address": ("[sweet]\nallow=intranet.example\n",
                            [(2, 'allow "intranet.example": must be an address, a network')]),
    "status of no error": ("[sweet]\nerror-page=200=/x.html\n", [
        (2, 'error-page "200=/x.html": must be STATUS=/PATH with a status from 400 to 599')]),
    "status of no redirect": ("[path /a]\nredirect=200 /b\n", [
        (2, 'redirect "200 /b": must be [STATUS ]TARGET with status 301, 302, 303, 307 or 308')]),
    "index with a folder": ("[sweet]\nindex=a/index.html\n",
                            [(2, 'index "a/index.html": must be a file\'s name, without a folder')]),
    "path with dots": ("[path /a/../b]\n", [
        (1, 'path "/a/../b": must be a path like /a/b, without //, /. or /..')]),
    "wildcard": ("[path /d/*]\ndeny=all\n[path =/a*]\n", [
        (1, 'path "/d/*": must be one path, without *: [path /a] is also for all below /a'),
        (3, 'path "=/a*": must be one path, without *')]),
    "escapes": ("[path /%6cist]\ndeny=all\n[path /a%20b]\n", [
        (1, 'path "/%6cist": must have the characters that stand for %XX'), (3, 'path "/a%20b"')]),
    "escaped slash": ("[sweet]\nescaped-slash=keep\n[path /a%2Fb]\ndeny=all\n[host h]\n"
                      "escaped-slash=decode\n[path h/a%2Fb]\ndeny=all\n", [
                          (7, 'path "/a%2Fb": %2F is a part of a path only with escaped-slash=keep')]),
    "query": ("[path /a?b]\ndeny=all\n[path /b]\ntry-files=file;/index.php?a\n"
              "[path /c]\nrewrite=/d?e=f\n[path /d]\nerror-page=404=/a?b\n", [
                  (1, 'path "/a?b": must be a path without a query'),
                  (4, 'try-files "/index.php?a": must be a path without a query'),
                  (6, 'rewrite "/d?e=f": must be a path without a query'),
                  (8, 'error-page "404=/a?b": must be a path without a query')]),
    "escapes of others": ("[sweet]\nworker=/%41=/bin/true\nerror-page=404=/%6c\ncgi=/a*=/tmp\n", [
        (2, 'worker "/%41=/bin/true": the prefix must have the characters'),
        (3, 'error-page "404=/%6c": must have the characters'),
        (4, 'cgi "/a*=/tmp": the prefix must be one path')]),
    "names in one": ("[sweet]\nindex=index.php index.html\n[path /a]\nindex=a.html, b.html\n", [
        (2, 'index "index.php index.html": must be one name: several are separated by \';\''),
        (4, 'index "a.html, b.html": must be one name')]),
    "wildcards as an index": ("[sweet]\nindex=*.html\n", [(2, 'index "*.html": must be a file')]),
    "pages in one": ("[sweet]\nerror-page=404=/a.html 500=/b.html\n", [
        (2, 'error-page "404=/a.html 500=/b.html": must be one page: several are separated')]),
    "two pages for a status": ("[sweet]\nerror-page=404=/a.html;500=/b.html;404=/c.html\n", [
        (2, 'error-page "404=/c.html": must have another status than the entries before it')]),
    "all stages behind mistakes of syntax": (
        "[sweet]\nroot=FOLDER/none\nroot=FOLDER/other\nlisting\nthreads=0\n[path /a\nhidden=x\n"
        "[pool p] # mine\ncommand=/no/such/program\n[path /b]\npool=p\nwhat?\n", [
            (2, 'cannot serve the root "FOLDER/none"'), (3, "root is given twice, first at"),
            (4, '"listing": must be KEY=VALUE'), (5, 'threads "0"'),
            (6, "a group is written [name]"), (7, 'hidden "x"'), (8, "a group is written [name]"),
            (8, 'pool "p": no program "/no/such/program"'), (12, '"what?": must be KEY=VALUE')]),
    "keys of nginx": (
        "[sweet]\nlisten=127.0.0.1:0,tls\ncertificate FOLDER/none;\nroot: FOLDER\nindex\ta.html\n", [
            (3, '"certificate FOLDER/none;": must be KEY=VALUE'),
            (3, 'certificate "FOLDER/none": No such file'), (4, '"root: FOLDER": must be KEY='),
            (5, '"index\\x09a.html": must be KEY=VALUE')]),
    "all before the first group": (
        "root=FOLDER/none\nthreads=0\n[sweet]\nlisting=2\nthreads=1\n", [
            (1, '"root=FOLDER/none" comes before the first group'),
            (1, 'cannot serve the root "FOLDER/none"'),
            (2, '"threads=0" comes before the first group'), (2, 'threads "0": must be'),
            (4, 'listing "2"'), (5, "threads is given twice")]),
    "section twice": (
        "[pool p]\ncommand=/no/a\n[pool p]\ncommand=/no/b\nprocesses=0\n[path /x]\npool=p\n", [
            (1, 'pool "p": no program "/no/a"'), (3, "[pool p] is given twice"),
            (4, "command is given twice"), (5, 'processes "0"')]),
    "group without a name": ("[]\nroot=FOLDER/none\nroot=x\n[sweet]\nthreads=0\n", [
        (1, "a group is written [name]"), (5, 'threads "0"')]),
    "key that is none": ("[sweet]\na[b=c\nthreads=0\n", [
        (2, '"a[b=c": must be KEY=VALUE'), (3, 'threads "0"')]),
    "variable of an include": ("[sweet]\ninclude=${NABC_NOT_SET}/a\nthreads=0\nthreads=1\n", [
        (2, "include: ${NABC_NOT_SET} is not set in the environment"), (3, 'threads "0"'),
        (4, "threads is given twice")]),
    "passwords of nobody": (
        "[sweet]\n[path /a]\nauth-file=FOLDER/users\n[path /b]\nauth-realm=off\n"
        "auth-file=FOLDER/users\n", [
            (3, "auth-file has no effect: without auth-realm, nobody is asked for a password"),
            (6, "auth-file has no effect: without auth-realm")]),
    "pool that is left": (
        "[path /a]\npool=p\nrewrite=/\n[path /b]\nrewrite=/\npool=p\n[path /c]\npool=p\n"
        "redirect=301 /d\n[pool p]\nprotocol=http\nupstream=127.0.0.1:1\n", [
            (2, "pool has no effect: rewrite of this path leads all requests to another one"),
            (6, "pool has no effect: rewrite of this path"),
            (8, "pool has no effect: redirect of this path")]),
    "certificates of nobody": (
        "[sweet]\nclient-ca=/dev/null\n[host a]\nclient-certificate=required\n"
        "client-ca=/dev/null\n", [
            (2, "client-ca has no effect: without client-certificate, no client is asked for one")]),
    "same expression": ("[pattern a]\nmatch=x\n[pattern b]\nmatch=x\ndeny=all\n"
                        "[host h]\n[pattern h/c]\nmatch=x\n", [
                            (3, "[pattern b] has no effect: [pattern a] has the same expression")]),
    "path of no host": ("[host a.example]\n[path b.example/x]\n",
                        [(2, "there is no [host b.example]")]),
    "host twice": ("[host a.example]\n[host b.example]\nnames=b.example;A.example\n",
                   [(2, 'host "a.example" is named twice')]),
    "no host name": ("[host a_b/c]\n", [(1, 'host "a_b/c": must be a name like example.org')]),
    "two instead of the prefix": ("[path /a]\nalias=/srv\nrewrite=/b\n",
                                  [(1, "alias and rewrite exclude each other")]),
    "two that others inherit": ("[path /a]\nalias=/srv\nrewrite=/b\n[path /a/b]\nlisting=on\n"
                                "[pattern p]\nmatch=x\nhidden=on\n",
                                [(1, "alias and rewrite exclude each other")]),
    "certificate with its key": ("[sweet]\nlisten=127.0.0.1:0,tls\ncertificate=FOLDER/none\n",
                                 [(3, 'certificate "FOLDER/none": No such file')]),
    "certificate and key": ("[sweet]\nlisten=127.0.0.1:0,tls\ncertificate=FOLDER/none\n"
                            "key=FOLDER/other\n", [
                                (3, 'certificate "FOLDER/none": No such file'),
                                (3, 'key "FOLDER/other": No such file')]),
    "many threads": ("[sweet]\nthreads=4097\narch=mt\n", [
        (2, 'threads "4097": must be a number from 1 to 64, or to 4096 with arch mt or mp')]),
    "all stages": (
        "[sweet]\nthreads=0\nroot=FOLDER/none\nuser=no-such-user\naccess-log=FOLDER/none/log\n"
        "mime-types=FOLDER/none\nlisten=127.0.0.1:0,tls\ncertificate=FOLDER/none\n"
        "[path /a]\nalias=FOLDER/gone\nlisting=2\npool=p\n[path /a/b]\nhidden=on\n"
        "[pool p]\ncommand=/no/such/program\n", [
            (2, 'threads "0"'), (3, 'cannot serve the root "FOLDER/none"'),
            (4, 'user "no-such-user"'), (5, 'access-log "FOLDER/none/log"'),
            (6, 'mime-types "FOLDER/none"'), (8, 'certificate "FOLDER/none"'),
            (10, 'cannot serve the alias "FOLDER/gone"'), (11, 'listing "2"'),
            (15, 'pool "p": no program "/no/such/program"')]),
    "values that are missing": (
        "[sweet]\nroot=\nmime-types=\nerror-log=\nlisten=127.0.0.1:0,tls\ncertificate=a;b\nkey=c\n"
        "client-certificate=required\nspool-directory=FOLDER\nspool-size=0\n"
        "[pool p]\nprotocol=x\n", None),
    "realm of nobody": ("[sweet]\nauth-realm=staff\n[path /a]\n",
                        [(2, "auth-realm needs an auth-file")]),
    "no such root": ("[sweet]\nroot=FOLDER/none\n[path /a]\nlisting=on\n", [
        (2, 'cannot serve the root "FOLDER/none": No such file or directory')]),
    "file as a root": ("[path /a]\nalias=FOLDER/sweet.conf\n", [
        (2, 'cannot serve the alias "FOLDER/sweet.conf": Not a directory')]),
    "no such passwords": ("[sweet]\nauth-realm=staff\nauth-file=FOLDER/none\n",
                          [(3, "auth-file: cannot read the users and passwords: ")]),
    "no such program": ("[sweet]\nworker=/w=FOLDER/none --fast\n", [
        (2, 'worker "/w=FOLDER/none --fast": no program "FOLDER/none" that can be run')]),
    "worker without a path": ("[sweet]\nworker=/bin/true\n",
                              [(2, 'worker "/bin/true": must be /PREFIX=COMMAND')]),
    "two for one path": (
        "[sweet]\nworker=/w=/bin/true\nfastcgi=/w/=127.0.0.1:1;/f=127.0.0.1:1\n", [
            (3, 'fastcgi "/w/=127.0.0.1:1": worker "/w=/bin/true" answers below /w already')]),
    "variables for an application of others": (
        "[pool php]\nprotocol=fastcgi\nupstream=unix:/run/php.sock\nenvironment=COLOUR=blue\n", [
            (1, 'pool "php" has environment, which is for programs that the server starts')]),
    "no such user": ("[sweet]\nuser=no-such-user\n",
                     [(2, 'user "no-such-user": there is no such user')]),
    "no such group": ("[sweet]\ngroup=no-such-group\n",
                      [(2, 'group "no-such-group": there is no such group')]),
    "no folder for a log": ("[sweet]\naccess-log=FOLDER/none/log\n", [
        (2, 'access-log "FOLDER/none/log": there is no folder "FOLDER/none" to make it in')]),
    "folder as a log": ("[sweet]\nerror-log=FOLDER\n",
                        [(2, 'error-log "FOLDER": is a folder, but must be a file')]),
    "no such types": ("[sweet]\nmime-types=FOLDER/none\n",
                      [(2, 'mime-types "FOLDER/none": cannot be read: No such file')]),
    "all at once": ("[sweet]\nthreads=0\nlisting=1\n[path /a]\nhidden=x\nnames=a\n", [
        (2, 'threads "0"'), (3, 'listing "1"'), (5, 'hidden "x"'), (6, 'key "names"')]),
}


@pytest.fixture
def check(tmp_path):
    """Returns the result of --check-config for a file: whether it is valid, and the error lines."""
    path = tmp_path / "sweet.conf"

    def run(text):
        if isinstance(text, str):
            text = text.replace("FOLDER", str(tmp_path)).encode()
        write(path, text)
        done = once("--check-config", "--config", path)
        assert (done.stdout == "") == (done.returncode == 1)
        return done.returncode == 0, (done.stdout + done.stderr).splitlines()

    return run


@pytest.mark.parametrize("what", BROKEN)
def test_broken(check, tmp_path, what):
    text, complaints = BROKEN[what]
    if what == "spool in memory" and not MEMORY:
        pytest.skip("no folder in memory can be written to")
    good, lines = check(text)
    if complaints is None:
        # No end of the check, and no line twice, whatever is missing.
        assert not good and len(set(lines)) == len(lines) >= 4, lines
        return
    wanted = [f"sweet: {tmp_path}/sweet.conf{f':{line}' if line else ''}: {says}".replace(
        "FOLDER", str(tmp_path)) for line, says in complaints]
    assert not good and len(lines) == len(wanted), lines
    # In any order: a misplaced key is reported before its value is checked.
    assert all(any(line.startswith(says) for line in lines) for says in wanted), lines


def test_enough():
    assert len(BROKEN) >= 20


def test_good(check, tmp_path):
    assert check("[sweet]\nlisten=127.0.0.1:0\n") == (True, [f"{tmp_path}/sweet.conf: good"])
    assert check("[sweet]\n")[0]


def test_experiments_are_keys(check):
    """They are no options of the product, but a file may contain them."""
    values = {"arch": "sped", "data-path": "posix", "header-align": "64"}
    assert check("[sweet]\n" + "".join(f"{key}={values.get(key, 'off')}\n" for key in keys(True)))[0]
    assert check("[path /a]\nlinger=off\n")[1][0].endswith(
        'key "linger" does not belong into [path /a], but into [sweet]')


def test_file_that_is_not_there(tmp_path):
    done = once("--check-config", "--config", tmp_path / "none")
    assert done.returncode == 1
    assert f"{tmp_path}/none" in done.stderr and "No such file" in done.stderr


def test_included_files(tmp_path):
    """A file with mistakes, and one that cannot be read, keep no other one from the check; a start
    lists those of the syntax of the first file alone."""
    write(tmp_path / "a.conf", b"[host a.example\nroot=none-a\n")
    write(tmp_path / "b.conf", b"[host b.example]\nroot=/none/b\n\0")
    write(tmp_path / "c.conf", b"[host c.example]\nroot=/none/c\nroot=/none/d\n")
    path = write(tmp_path / "sweet.conf", b"[sweet]\nlisten=127.0.0.1:0\nthreads=0\nthreads=2\n"
                 b"include=[abc].conf;none.conf\n")
    syntax = [f"{path}:4: threads is given twice, first at {path}:3",
              f"{tmp_path}/a.conf:1: a group is written [name]",
              f"{tmp_path}/b.conf: not a text: it has a NUL byte",
              f"{tmp_path}/c.conf:3: root is given twice, first at {tmp_path}/c.conf:2",
              f'{path}:5: include "none.conf": there is no such file']
    others = [f'{path}:3: threads "0": must be a number',
              f'{tmp_path}/a.conf:2: cannot serve the root "none-a"',
              f'{tmp_path}/c.conf:2: cannot serve the root "/none/c"']
    for options, wanted in ([], syntax[:1]), (["--check-config"], syntax + others):
        done = once(*options, "--config", path)
        lines = done.stderr.splitlines()
        assert done.returncode == 1 and len(lines) == len(wanted), lines
        for says in wanted:
            assert any(line.startswith(f"sweet: {says}") for line in lines), lines


def test_command_line_and_file(tmp_path):
    path = write(tmp_path / "sweet.conf", b"[sweet]\nthreads=0\n")
    done = once("--check-config", "--config", path, "extra")
    assert done.returncode == 1
    assert [line.partition(": ")[2].partition(":")[0] for line in done.stderr.splitlines()] == \
        ['"extra"', str(path)]


def test_nothing_is_left(check, tmp_path):
    """It creates no files that a start would create, and runs no programs."""
    assert check("[sweet]\naccess-log=FOLDER/log\nerror-log=FOLDER/errors\npid-file=FOLDER/pid\n"
                 "cache-socket=FOLDER/cache\nlisten=unix:FOLDER/socket\n"
                 "worker=/w=/usr/bin/touch FOLDER/run\n")[0]
    assert os.listdir(tmp_path) == ["sweet.conf"]


# --- the manual ------------------------------------------------------------------------


def rows():
    """Returns the rows of the table: pairs of a name and a row."""
    with open(os.path.join(SOURCES, "sweet", "config", "config-key.c")) as file:
        table = file.read().partition("const struct key config_keys[] = {")[2].partition("\n};")[0]
    found = [(re.match(r'\s*\{"([a-z0-9-]+)"', row), row) for row in re.split(r"\n\t(?=\{\")", table)]
    return [(name[1], row) for name, row in found if name]


def keys(experiments=None):
    """Maps each name to the defaults of all keys in the table; only experiments, or only
    others, if requested."""
    found = {}
    for name, row in rows():
        if experiments is None or experiments == (".experiment = true" in row):
            default = re.search(r'\.otherwise = "([^"]*)"(?! PACKAGE)', row)
            found.setdefault(name, []).append(default[1] if default else None)
    return found


def page(name):
    """Maps each name to the texts of all keys in a page of the manual."""
    with open(os.path.join(SOURCES, "man", name)) as file:
        items = re.split(r"^(?:\.It|\.El|\.Ss|\.Sh)\b", file.read(), flags=re.M)
    found = {}
    for item in items:
        name = re.match(r" Cm ([a-z0-9-]+) Ns = Ns ", item)
        if name:
            found.setdefault(name[1], []).append(item)
    return found


def manual():
    """The same of both pages; no key is in both."""
    pages = [page("sweet.conf.5"), page("sweet-experiments.8")]
    assert not set(pages[0]) & set(pages[1])
    return pages[0] | pages[1]


@pytest.mark.parametrize("experiments, name", [(False, "sweet.conf.5"), (True, "sweet-experiments.8")])
def test_manual_has_every_key(experiments, name):
    assert len(keys(experiments)) > (8 if experiments else 40)
    assert {name: len(defaults) for name, defaults in keys(experiments).items()} == \
        {name: len(items) for name, items in page(name).items()}


def test_every_experiment_says_what_it_repeats():
    for name, items in page("sweet-experiments.8").items():
        said = items[0].replace("\n", " ")
        assert re.search(r"\.Pp (Repeats|Continues) .*\.Dq \w+", said), name


def test_experiments_are_in_no_other_place():
    """sweet(8) lists no experiment; the synopsis of the page of the experiments has them all."""
    options = {}
    for name in ("sweet.8", "sweet-experiments.8"):
        with open(os.path.join(SOURCES, "man", name)) as file:
            options[name] = set(re.findall(r"^\.(?:It|Op) Fl -([a-z0-9-]+)", file.read(), re.M))
    assert not options["sweet.8"] & set(keys(True))
    assert options["sweet-experiments.8"] == set(keys(True))


@pytest.mark.parametrize("name", sorted(keys()))
def test_manual_has_the_default(name):
    for default, item in zip(keys()[name], manual()[name]):
        if default and default != ".":  # which has a name
            text = re.sub(r"\n(\.(Cm|Pa|Li|Sq) )?", " ", item).replace("\\", "")
            assert f"The default is {default}" in text or f" {default} , the default" in text


def help_options(option):
    """Returns the options that --help or another option lists."""
    done = once(option)
    assert (done.returncode, done.stderr) == (0, "")
    return set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", done.stdout, re.M))


def test_every_option_is_a_key():
    """Except those for the file itself, and for help."""
    assert help_options("--help-all") - set(keys()) == {
        "help", "help-all", "help-experiments", "version", "config", "check-config", "reload"}


def test_help_has_no_experiment():
    """One line says where they are documented."""
    assert not help_options("--help") & set(keys(True))
    assert help_options("--help-experiments") == set(keys(True))
    assert help_options("--help") | help_options("--help-experiments") == help_options("--help-all")
    assert [line for line in once("--help").stdout.splitlines() if "sweet-experiments(8)" in line] == \
        ["See sweet(8) and sweet.conf(5).  Experiments: sweet --help-experiments, sweet-experiments(8)."]
