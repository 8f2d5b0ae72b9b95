# SPDX-License-Identifier: MIT
"""doc/recipes/single-page-application.md: a page for all paths, its files, and an interface."""

import gzip
import json

import pytest

import applications
from recipe import is_short
from upstream import Upstream

# What nginx needs for the same: server, listen, server_name, root, gzip_static; location /,
# try_files; location = /index.html, add_header; location /assets, try_files, add_header; location
# /api, proxy_pass, proxy_http_version, and five proxy_set_header.
NGINX = 20
HOST = "app.example.org"
PAGE = "<!doctype html><title>An application</title><script src=/assets/main-0a1b2c3d.js></script>"
SCRIPT = "console.log('begun');\n" * 200


def answer(request):
    request.answer(json.dumps({"path": request.target, "method": request.method,
                               "token": request.fields.get("authorization"),
                               "got": len(request.body())}).encode(),
                   b"Content-Type: application/json\r\n")


@pytest.fixture(scope="module")
def visitor(recipe):
    applications.folders(recipe)
    for name, text in (("index.html", PAGE), ("favicon.ico", "icon"), ("robots.txt", "none\n"),
                       ("assets/main-0a1b2c3d.js", SCRIPT),
                       ("assets/main-0a1b2c3d.js.gz", gzip.compress(SCRIPT.encode())),
                       ("assets/main-0a1b2c3d.css", "body {}")):
        applications.write(f"/srv/app/dist/{name}", text)
    applications.write("/run/app/none", "")
    api = Upstream(answer, "/run/app/api.sock")
    recipe.run("chmod", "666", "/run/app/api.sock")
    recipe.start()
    yield recipe.visitor(HOST)
    recipe.server.stop()
    api.close()
    assert not api.faults


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_paths_of_the_application(visitor):
    for path in ("/", "/items", "/items/5", "/items/5/?sort=name", "/a.b/c", "/index.html",
                 "/deep/er/and/deeper", "/apiary", "/assetsy"):
        got = visitor.get(path)
        assert got.status == 200 and got.text == PAGE, got
        assert got.headers["Content-Type"].startswith("text/html")
        assert got.headers["Cache-Control"] == "no-cache", got
        again = visitor.get(path, headers={"If-None-Match": got.headers["ETag"]})
        assert again.status == 304 and again.headers["Cache-Control"] == "no-cache", again


def test_files(visitor):
    for name, kind in (("js", "text/javascript"), ("css", "text/css")):
        got = visitor.get(f"/assets/main-0a1b2c3d.{name}")
        assert got.status == 200 and got.headers["Content-Type"].startswith(kind), got
        assert got.headers["Cache-Control"] == "public, max-age=31536000, immutable", got
    assert visitor.get("/favicon.ico").text == "icon"
    packed = visitor.get("/assets/main-0a1b2c3d.js", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip" and len(packed.body) < len(SCRIPT) / 4
    assert gzip.decompress(packed.body).decode() == SCRIPT
    assert packed.headers["Content-Type"].startswith("text/javascript")


def test_missing_files(visitor):
    """No page for a script of an older version."""
    for path in ("/assets/main-99999999.js", "/assets/", "/assets"):
        got = visitor.get(path, follow=False)
        assert got.status in (301, 403, 404) and PAGE not in got.text, got


def test_interface(visitor):
    got = visitor.get("/api/items?n=5", headers={"Authorization": "Bearer abc"}).json()
    assert got == {"path": "/api/items?n=5", "method": "GET", "token": "Bearer abc", "got": 0}
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        got = visitor.request(method, "/api/items/7", b'{"name": "x"}',
                              headers={"Content-Type": "application/json"}).json()
        assert got["method"] == method and got["got"] == 13, got
    assert visitor.get("/api").json()["path"] == "/api"


def test_other_methods(visitor):
    got = visitor.post("/items/5", {"a": "b"})
    assert got.status == 405, got
