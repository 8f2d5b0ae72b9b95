# SPDX-License-Identifier: MIT
"""git-http-backend by doc/recipes/git.md: clones and pushes of git itself, also large ones."""

import filecmp
import os
import subprocess

import pytest

from files import MB, pattern
from recipe import is_short
from server import TIMEOUT

# toofishes.net/blog/git-smart-http-transport-nginx: 9 lines; and what its text leaves out: a location
# for pushes, auth_basic, auth_basic_user_file, client_max_body_size, server_name.
NGINX = 9 + 5
HOST = "git.example.org"
LARGE = 100 * MB


class Git:
    """Runs git as one user of the site, with folders of his own."""

    def __init__(self, recipe, folder):
        self.port, self.folder = recipe.server.port, folder
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_TRACE_CURL_NO_DATA": "1"}
        (folder / ".gitconfig").write_text(
            "[user]\nname=Ann\nemail=ann@example.org\n[core]\ncompression=0\n[init]\n"
            f"defaultBranch=main\n[http]\ncurloptResolve={HOST}:{self.port}:127.0.0.1\n")

    def url(self, repository, user=""):
        return f"http://{user}{HOST}:{self.port}/{repository}"

    def __call__(self, *arguments, where=None, good=True, **environment):
        """Returns what git says."""
        done = subprocess.run(["git", *map(str, arguments)], cwd=where or self.folder, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**self.environment, **environment},
                              timeout=10 * TIMEOUT, check=False)
        assert (done.returncode == 0) == good, f"git {arguments}: {done.stdout[-3000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def site(recipe):
    recipe.cover("/srv", empty=True)
    recipe.cover("/etc")
    os.makedirs("/etc/sweet", exist_ok=True)
    with open("/etc/sweet/git-users", "w") as file:
        file.write("ann:" + recipe.run("openssl", "passwd", "-6", "secret word"))
    recipe.run("git", "config", "--system", "http.receivepack", "true")
    for name in ("one", "large", "many", "secure"):
        recipe.run("git", "init", "-q", "--bare", "-b", "main", f"/srv/git/{name}.git")
    recipe.run("chown", "-R", "nobody", "/srv/git")
    recipe.start()
    return recipe


@pytest.fixture
def git(site, tmp_path):
    return Git(site, tmp_path)


ANN = "ann:secret%20word@"


def commit(git, where, name, data):
    (where / name).write_bytes(data)
    git("add", name, where=where)
    git("commit", "-q", "-m", f"Add {name}", where=where)


@pytest.fixture(scope="module")
def pushed(site, tmp_path_factory):
    """A first commit, which the other tests clone."""
    git = Git(site, tmp_path_factory.mktemp("first"))
    git("clone", "-q", git.url("one.git", ANN), "work")
    work = git.folder / "work"
    commit(git, work, "a.txt", b"first\n")
    git("push", "-q", "origin", "main", where=work)
    return work


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_clone_by_anybody(git, pushed):
    git("clone", "-q", git.url("one.git"), "mine")
    assert (git.folder / "mine" / "a.txt").read_bytes() == b"first\n"


def test_push_needs_the_password(git, pushed, site):
    git("clone", "-q", git.url("one.git"), "mine")
    mine = git.folder / "mine"
    commit(git, mine, "b.txt", b"never\n")
    assert "could not read Username" in git("push", "origin", "main", where=mine, good=False)
    wrong = git("push", git.url("one.git", "ann:wrong@"), "main", where=mine, good=False)
    assert "error: 401" in wrong, wrong
    git("clone", "-q", git.url("one.git"), "theirs")
    assert not (git.folder / "theirs" / "b.txt").exists()


def test_push_is_of_the_user(git, pushed, site):
    """The programs of git, also hooks, see who pushes."""
    hook = "/srv/git/one.git/hooks/pre-receive"
    with open(hook, "w") as file:
        file.write('#!/bin/sh\necho "pushed by $REMOTE_USER from $REMOTE_ADDR"\n')
    os.chmod(hook, 0o755)
    git("clone", "-q", git.url("one.git"), "mine")
    commit(git, git.folder / "mine", "c.txt", b"third\n")
    said = git("push", git.url("one.git", ANN), "main", where=git.folder / "mine")
    os.unlink(hook)
    assert "remote: pushed by ann from 127.0.0.1" in said, said


def test_protocols(git, pushed):
    for version in (0, 1, 2):
        said = git("-c", f"protocol.version={version}", "ls-remote", git.url("one.git"),
                   GIT_TRACE_PACKET="1")
        assert "refs/heads/main" in said
        assert (f"< version {version}" in said) == (version > 0), said


def test_large(git, site):
    """A push and a clone of 100 MB; the push is sent in chunks."""
    git("clone", "-q", git.url("large.git", ANN), "mine")
    mine = git.folder / "mine"
    with open(mine / "large", "wb") as file:
        for _ in range(LARGE // MB):
            file.write(os.urandom(MB))
    git("add", "large", where=mine)
    git("commit", "-q", "-m", "Add it", where=mine)
    said = git("push", "origin", "main", where=mine, GIT_TRACE_CURL="1")
    assert "transfer-encoding: chunked" in said.lower()
    git("clone", "-q", git.url("large.git"), "theirs")
    assert filecmp.cmp(mine / "large", git.folder / "theirs" / "large", shallow=False)


def test_many_refs(git, site):
    """Requests that git compresses, shallow clones, and what is fetched later."""
    git("clone", "-q", git.url("many.git", ANN), "mine")
    mine = git.folder / "mine"
    for number in range(60):
        commit(git, mine, "file", pattern(number + 1))
        git("branch", f"b{number}", where=mine)
    git("push", "-q", "--all", "origin", where=mine)
    said = git("clone", git.url("many.git"), "all", GIT_TRACE_CURL="1")
    assert "content-encoding: gzip" in said.lower()
    assert git("branch", "-r", where=git.folder / "all").count("\n") >= 60
    git("clone", "-q", "--depth", 1, git.url("many.git"), "shallow")
    shallow = git.folder / "shallow"
    assert git("rev-list", "--count", "HEAD", where=shallow) == "1\n"
    git("fetch", "-q", "--deepen", 9, where=shallow)
    assert git("rev-list", "--count", "HEAD", where=shallow) == "10\n"
    git("fetch", "-q", "--unshallow", where=shallow)
    assert git("rev-list", "--count", "HEAD", where=shallow) == "60\n"
    git("clone", "-q", "--filter=blob:none", "--bare", git.url("many.git"), "partial")
    # A clone that has commits of its own says what it has.
    for number in range(60):
        commit(git, git.folder / "all", "own", pattern(number + 1))
    commit(git, mine, "file", b"newest")
    git("push", "-q", "origin", "HEAD", where=mine)
    git("fetch", "-q", where=git.folder / "all")
    assert git("show", "origin/main:file", where=git.folder / "all") == "newest"


def test_at_the_same_time(git, pushed):
    """More clones than processes."""
    clones = [subprocess.Popen(["git", "clone", "-q", git.url("one.git"), f"clone{number}"],
                               cwd=git.folder, env=git.environment, stdin=subprocess.DEVNULL)
              for number in range(24)]
    assert [clone.wait(10 * TIMEOUT) for clone in clones] == [0] * 24


def test_http2(git, site):
    """With TLS, git speaks HTTP/2; a push of several MB in one stream."""
    secure = ("-c", "http.sslVerify=false", "-c", f"http.curloptResolve={HOST}:443:127.0.0.1")
    git(*secure, "clone", "-q", f"https://{ANN}{HOST}/secure.git", "mine")
    mine = git.folder / "mine"
    commit(git, mine, "data", os.urandom(20 * MB))
    said = git(*secure, "push", "origin", "main", where=mine, GIT_TRACE_CURL="1")
    assert "POST /secure.git/git-receive-pack HTTP/2" in said, said
    git(*secure, "clone", "-q", f"https://{HOST}/secure.git", "theirs")
    assert filecmp.cmp(mine / "data", git.folder / "theirs" / "data", shallow=False)


def test_other_paths(site, pushed):
    visitor = site.visitor(HOST)
    for path in ("/", "/one.git", "/one.git/config", "/one.git/hooks/pre-receive.sample",
                 "/one.git/../../../etc/passwd", "/../etc/passwd/info/refs", "/none.git/info/refs",
                 "/git-shell", "/one.git/%2e%2e/one.git/config"):
        answer = visitor.get(path)
        assert answer.status in (400, 403, 404), answer
