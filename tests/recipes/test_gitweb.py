# SPDX-License-Identifier: MIT
"""gitweb by doc/recipes/gitweb.md: its pages, its files, and what it packs."""

import io
import tarfile

import pytest

import repository
from recipe import is_short

# pastebin.com/i2Zf0EVN, for nginx with fcgiwrap, without its server and server_name.
NGINX = 9
HOST = "gitweb.example.org"


@pytest.fixture(scope="module")
def visitor(recipe):
    repository.make(recipe)
    recipe.cover("/etc")
    recipe.page.write("$projectroot", "/etc/gitweb.conf")
    recipe.start()
    return recipe.visitor(HOST)


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_list(visitor):
    page = visitor.get("/")
    assert page.status == 200 and "The repository of a test" in page.text, page
    assert visitor.get("/?p=none.git").status == 404


def test_pages(visitor):
    """What the links of a repository's pages lead to."""
    seen = repository.follow(visitor, "/one.git", 40)
    assert {"/one.git/shortlog", "/one.git/tree", "/one.git/log"} <= seen, seen


def test_both_forms(visitor):
    """Links with the action in the path, and in the query with semicolons."""
    for path in ("/one.git/blob_plain/HEAD:/main.c", "/?p=one.git;a=blob_plain;f=main.c;hb=HEAD"):
        answer = visitor.get(path)
        assert answer.body == repository.TEXT.encode(), answer
        assert answer.headers["Content-Type"].startswith("text/"), answer
    answer = visitor.get("/one.git/blob_plain/v1:/sub%20folder/image.bin")
    assert answer.body == repository.IMAGE
    assert 'filename="sub folder/image.bin"' in answer.headers["Content-Disposition"]
    assert "Return another number" in visitor.get("/?p=one.git;a=search;s=another").text
    assert "+       return 42 < 43;" in visitor.get("/one.git/commitdiff_plain/HEAD").text.expandtabs()


def test_downloads(visitor):
    answer = visitor.get("/one.git/snapshot/v1.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        name = next(name for name in tar.getnames() if name.endswith("image.bin"))
        assert tar.extractfile(name).read() == repository.IMAGE
    assert "Return another number" in visitor.get("/one.git/patch/HEAD").text
    assert "<rss" in visitor.get("/one.git/rss").text


def test_files(visitor):
    for name, kind in [("gitweb.css", "text/css; charset=utf-8"), ("git-logo.png", "image/png"),
                       ("gitweb.js", "text/javascript; charset=utf-8")]:
        answer = visitor.get(f"/static/{name}")
        assert answer.status == 200 and answer.headers["Content-Type"] == kind, answer
    for path in ("/gitweb.cgi", "/static/../gitweb.cgi", "/index.cgi", "/static/"):
        assert b"/usr/bin/perl" not in visitor.get(path).body, path
