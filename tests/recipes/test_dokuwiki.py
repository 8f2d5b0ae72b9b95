# SPDX-License-Identifier: MIT
"""DokuWiki by doc/recipes/dokuwiki.md: pages, images, and what nobody gets."""

import pytest

import php
from recipe import is_short

# "Full working config" of nginx's wiki: start/topics/recipes/dokuwiki.
NGINX = 46
HOST = "wiki.example.org"
SETTINGS = """<?php
$conf['title'] = 'Notes of a test';
$conf['useacl'] = 1;
$conf['superuser'] = '@admin';
$conf['userewrite'] = 1;
$conf['useslash'] = 1;
$conf['basedir'] = '/';
"""


@pytest.fixture(scope="module")
def wiki(recipe):
    for folder in ("/etc/dokuwiki", "/var/lib/dokuwiki"):
        recipe.cover(folder)
    with open("/etc/dokuwiki/local.php", "w") as file:
        file.write(SETTINGS)
    password = recipe.run("php", "-r", 'echo password_hash("secret word", PASSWORD_BCRYPT);')
    with open("/var/lib/dokuwiki/acl/users.auth.php", "w") as file:
        file.write(f"# <?php exit()?>\nann:{password}:Ann:ann@example.org:admin,user\n")
    with open("/var/lib/dokuwiki/acl/acl.auth.php", "w") as file:
        file.write("# <?php exit()?>\n*\t@ALL\t1\n*\t@user\t8\n")
    recipe.run("chown", "-R", "www-data", "/var/lib/dokuwiki/acl", "/var/lib/dokuwiki/data")
    php.start_fpm(recipe, "php_admin_value[upload_max_filesize] = 64M\n"
                          "php_admin_value[post_max_size] = 64M\n")
    recipe.start()
    return recipe


@pytest.fixture(scope="module")
def ann(wiki):
    visitor = wiki.visitor(HOST)
    page = visitor.get("/start?do=login")
    page = visitor.submit(page, "dw__login", {"u": "ann", "p": "secret word"})
    assert page.status == 200 and "Ann" in page.text, page
    return visitor


def edit(visitor, path, text):
    page = visitor.get(f"{path}?do=edit")
    return visitor.submit(page, "dw__editform", {"wikitext": text}, button="do[save]")


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_guest_reads(wiki):
    page = wiki.visitor(HOST).get("/")
    assert page.status == 200 and "Notes of a test" in page.text, page
    assert page.headers["Content-Type"].startswith("text/html")


def test_wrong_password(wiki):
    visitor = wiki.visitor(HOST)
    page = visitor.submit(visitor.get("/start?do=login"), "dw__login", {"u": "ann", "p": "wrong"})
    assert "Sorry" in page.text, page
    assert "dw__editform" not in visitor.get("/start?do=edit").text


def test_page_is_written_and_read(ann, wiki):
    page = edit(ann, "/notes/today", "====== Umlaute äöü ======\nA //page// of " + "words " * 3000)
    assert page.status == 200 and page.url.endswith("/notes/today"), page
    assert "Umlaute äöü" in page.text
    page = wiki.visitor(HOST).get("/notes/today")
    assert "<em>page</em>" in page.text, page
    raw = wiki.visitor(HOST).get("/_export/raw/notes/today")
    assert raw.status == 200 and raw.body.startswith("====== Umlaute äöü".encode()), raw


def test_paths_of_pages(ann, wiki):
    """With what a browser escapes, and what looks like something else."""
    for path in ("/b%C3%BCcher/x%26y", "/a.txt", "/library/lib", "/a+b"):
        edit(ann, path, f"text of {path}")
        page = wiki.visitor(HOST).get(path)
        assert f"text of {path}" in page.text, page


def test_upload_and_download(ann, wiki):
    image = php.image()
    page = ann.get("/lib/exe/mediamanager.php?ns=pictures")
    form = page.form("dw__upload")
    page = ann.submit(page, "dw__upload", {"mediaid": "shot.png"},
                      {"upload": ("shot.png", "image/png", image)})
    assert form.multipart and "Upload successful" in page.text, page
    answer = wiki.visitor(HOST).get("/_media/pictures/shot.png")
    assert answer.status == 200 and answer.body == image, answer
    assert answer.headers["Content-Type"] == "image/png"
    detail = wiki.visitor(HOST).get("/_detail/pictures/shot.png")
    assert detail.status == 200 and "shot.png" in detail.text, detail
    # Not modified, by what PHP says; and a part.
    tag = answer.headers["ETag"]
    again = wiki.visitor(HOST).get("/_media/pictures/shot.png", headers={"If-None-Match": tag})
    assert again.status == 304 and not again.body, again
    part = wiki.visitor(HOST).get("/_media/pictures/shot.png", headers={"Range": "bytes=5-9"})
    assert part.status == 206 and part.body == image[5:10], part


def test_large_upload(ann, wiki):
    archive = b"PK\3\4" + bytes(range(256)) * 20000
    page = ann.get("/lib/exe/mediamanager.php?ns=pictures")
    page = ann.submit(page, "dw__upload", {"mediaid": "noise.zip"},
                      {"upload": ("noise.zip", "application/zip", archive)})
    assert "Upload successful" in page.text, page
    answer = wiki.visitor(HOST).get("/_media/pictures/noise.zip")
    assert answer.status == 200 and answer.body == archive
    assert answer.headers["Content-Disposition"].startswith("attachment")


def test_scripts_are_not_uploaded(ann, wiki):
    page = ann.get("/lib/exe/mediamanager.php?ns=pictures")
    ann.submit(page, "dw__upload", {"mediaid": "evil.php"},
               {"upload": ("evil.php", "image/png", b"<?php echo 6 * 7;")})
    answer = wiki.visitor(HOST).get("/_media/pictures/evil.php")
    assert answer.status == 404 and b"42" not in answer.body, answer


def test_what_pages_need(wiki):
    """Each style sheet, script and icon of the first page, some of which are behind links."""
    visitor = wiki.visitor(HOST)
    needed = visitor.get("/").links("^/lib/")
    assert any("css.php" in path for path in needed) and any("/tpl/" in path for path in needed)
    for path in needed:
        assert visitor.get(path).status == 200, path


def test_administration(ann, wiki):
    for page in ("config", "usermanager", "acl", "extension"):
        answer = ann.get(f"/start?do=admin&page={page}")
        assert answer.status == 200 and f'id="{page}' in answer.text.replace("__", ""), answer
        assert f"page={page}" not in wiki.visitor(HOST).get(f"/start?do=admin&page={page}").text


def test_private_files(wiki):
    visitor = wiki.visitor(HOST)
    php.refused(visitor, ["/data/pages/wiki/syntax.txt", "/conf/users.auth.php", "/conf/local.php",
                          "/inc/init.php", "/bin/dwpage.php", "/vendor/autoload.php", "/install.php",
                          "/.htaccess", "/lib/../conf/local.php", "/%63onf/local.php",
                          "/lib/plugins/../../inc/init.php", "//conf/local.php"])
    php.no_sources(visitor, ["/doku.php", "/doku.php/", "/lib/exe/fetch.php", "/lib/plugins/acl/admin.php",
                             "/lib/plugins/acl/admin.php.", "/doku.php%20", "/DOKU.PHP", "/doku.php%00"])

