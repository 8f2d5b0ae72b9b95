# SPDX-License-Identifier: MIT
"""cgit by doc/recipes/cgit.md: its pages, its files, and what it packs."""

import io
import tarfile
import zipfile

import pytest

import repository
from recipe import is_short

# github.com/CoRfr/docker-nginx-cgit, default.conf, without its pages for errors.
NGINX = 15
HOST = "cgit.example.org"


@pytest.fixture(scope="module")
def visitor(recipe):
    repository.make(recipe)
    recipe.cover("/etc")
    recipe.page.write("css=/cgit.css", "/etc/cgitrc")
    recipe.start()
    return recipe.visitor(HOST)


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_list(visitor):
    page = visitor.get("/")
    assert page.status == 200 and "The repository of a test" in page.text, page
    assert page.headers["Content-Type"].lower() == "text/html; charset=utf-8"
    assert "href='/one/'" in page.text
    assert visitor.get("/none/").status == 404


def test_pages(visitor):
    """What the links of a repository's pages lead to."""
    seen = repository.follow(visitor, "/one/", 60)
    assert {"/one/log/", "/one/tree/", "/one/commit/", "/one/diff/"} <= seen


def test_texts(visitor):
    assert "Begin with &lt;angle&gt; brackets" in visitor.get("/one/log/").text
    assert "41 &lt; 43" in visitor.get("/one/diff/").text
    assert visitor.get("/one/plain/main.c").body == repository.TEXT.encode()
    assert visitor.get("/one/plain/main.c?h=v1").body == repository.TEXT.replace("42", "41").encode()
    answer = visitor.get("/one/plain/sub%20folder/image.bin")
    assert answer.body == repository.IMAGE
    assert len(visitor.get("/one/plain/long.txt").body) > 1 << 20
    found = visitor.get("/one/log/?qt=grep&q=another+number").text
    assert "Return another number" in found and "angle" not in found
    assert visitor.request("HEAD", "/one/plain/main.c").body == b""


def test_downloads(visitor):
    answer = visitor.get("/one/snapshot/one-v1.tar.gz")
    assert answer.headers["Content-Type"].startswith("application/x-gzip"), answer
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        assert tar.extractfile("one-v1/sub folder/image.bin").read() == repository.IMAGE
    with zipfile.ZipFile(io.BytesIO(visitor.get("/one/snapshot/one-v1.zip").body)) as packed:
        assert b"41" in packed.read("one-v1/main.c")
    patch = visitor.get("/one/patch/")
    assert "Subject: Return another number" in patch.text
    assert "<feed" in visitor.get("/one/atom/").text


def test_files(visitor):
    """The server itself sends those of the package."""
    for path, kind in [("/cgit.css", "text/css; charset=utf-8"), ("/cgit.png", "image/png")]:
        answer = visitor.get(path)
        assert answer.status == 200 and answer.headers["Content-Type"] == kind, answer
        assert answer.headers["ETag"] and answer.headers["Content-Length"]
    for path in ("/../cgit/cgit.cgi", "/cgit.cgi", "/filters/", "/one/plain/../../../etc/passwd"):
        assert visitor.get(path).status in (400, 403, 404), path
