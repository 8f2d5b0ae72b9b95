# SPDX-License-Identifier: MIT
"""MediaWiki by doc/recipes/mediawiki.md: pages with all kinds of titles, files and their small pictures,
both of its interfaces for programs, and what nobody gets."""

import os
import urllib.parse

import pytest

import php
from recipe import is_short

# nginx's wiki: start/topics/recipes/mediawiki.
NGINX = 26
HOST = "wiki.example.org"
PASSWORD = "a secret, of a test"
SETTINGS = """
$wgArticlePath = '/wiki/$1';
$wgUsePathInfo = true;
$wgEnableUploads = true;
$wgMaxUploadSize = 64 * 1024 * 1024;
$wgFileExtensions[] = 'ogg';
$wgUseImageMagick = false;
$wgJobRunRate = 0;
"""
IMAGES = "/var/lib/mediawiki/images"
# Titles that differ from their paths, and that look like something else.
TITLES = ["Notes/Today", "Äpfel & Birnen", "C++", "100%", "What?", "A.php", "A.php/B", "Maintenance/install.php",
          "Index.php", "Semicolon;", "Quote'", "Plus+minus=zero", "Dots..", "Comma,(parens)", "Star*", "At@sign",
          "Colon: here", "Tilde~", "日本"]


@pytest.fixture(scope="module")
def wiki(recipe):
    for folder in ("/etc/mediawiki", "/var/lib/mediawiki"):
        recipe.cover(folder)
    recipe.run("php", "/usr/share/mediawiki/maintenance/install.php", "--confpath", "/etc/mediawiki",
               "--server", f"http://{HOST}", "--scriptpath", "", "--dbtype", "sqlite", "--dbpath",
               "/var/lib/mediawiki/cache", "--pass", PASSWORD, "Wiki of a test", "Ann")
    with open("/etc/mediawiki/LocalSettings.php", "a") as file:
        file.write(SETTINGS)
    recipe.run("chown", "-R", "www-data", "/etc/mediawiki", "/var/lib/mediawiki/cache", IMAGES)
    os.chmod(IMAGES, 0o750)
    php.start_fpm(recipe, "php_admin_value[upload_max_filesize] = 64M\n"
                          "php_admin_value[post_max_size] = 64M\n")
    recipe.start()
    return recipe


@pytest.fixture(scope="module")
def ann(wiki):
    visitor = wiki.visitor(HOST)
    page = visitor.get("/wiki/Special:UserLogin")
    page = visitor.submit(page, "userlogin", {"wpName": "Ann", "wpPassword": PASSWORD})
    assert page.status == 200 and page.url.endswith("/wiki/Main_Page"), page
    return visitor


def path_of(title):
    """As MediaWiki writes it."""
    return "/wiki/" + urllib.parse.quote(title.replace(" ", "_"), safe=";@$!*(),/~:")


def edit(visitor, title, text):
    page = visitor.get(f"/index.php?{urllib.parse.urlencode({'title': title, 'action': 'edit'})}")
    return visitor.submit(page, "editform", {"wpTextbox1": text}, button="wpSave")


def upload(visitor, name, kind, data):
    page = visitor.get("/wiki/Special:Upload")
    return visitor.submit(page, "mw-upload-form", {"wpDestFile": name, "wpIgnoreWarning": "1"},
                          {"wpUploadFile": (name, kind, data)}, button="wpUpload")


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_guest_reads(wiki):
    page = wiki.visitor(HOST).get("/")
    assert page.status == 200 and page.url.endswith("/wiki/Main_Page"), page
    assert "MediaWiki has been installed" in page.text


def test_wrong_password(wiki):
    visitor = wiki.visitor(HOST)
    page = visitor.submit(visitor.get("/wiki/Special:UserLogin"), "userlogin",
                          {"wpName": "Ann", "wpPassword": "wrong"})
    assert "Incorrect username or password" in page.text, page


@pytest.mark.parametrize("title", TITLES)
def test_page_is_written_and_read(wiki, ann, title):
    page = edit(ann, title, f"text of \"{title}\", " + "words " * 2000)
    assert page.status == 200 and "words words" in page.text, page
    page = wiki.visitor(HOST).get(path_of(title))
    assert page.status == 200 and "words words" in page.text, page
    # MediaWiki itself thinks that this is the path of the page.
    assert page.url == f"http://{HOST}{path_of(title)}"
    assert wiki.visitor(HOST).get(f"{path_of(title)}?action=history").status == 200


def test_missing_page(wiki):
    page = wiki.visitor(HOST).get("/wiki/No_such_page")
    assert page.status == 404 and "There is currently no text in this page" in page.text, page


def test_upload_and_download(wiki, ann):
    image = php.image(700, 500)
    page = upload(ann, "Shot.png", "image/png", image)
    assert page.status == 200 and page.url.endswith("/wiki/File:Shot.png"), page
    guest = wiki.visitor(HOST)
    (path, *_) = guest.get("/wiki/File:Shot.png").links("^/images/[^?]*/Shot.png$")
    answer = guest.get(path)
    assert answer.status == 200 and answer.body == image, answer
    assert answer.headers["Content-Type"] == "image/png"
    part = guest.get(path, headers={"Range": "bytes=5-9"})
    assert part.status == 206 and part.body == image[5:10]
    page = edit(ann, "Gallery", "[[File:Shot.png|thumb|200px]]")
    (small,) = page.links("^/images/thumb/.*/200px-Shot.png$")
    assert guest.get(small).body.startswith(b"\x89PNG")
    assert guest.get("/thumb.php?f=Shot.png&width=100").headers["Content-Type"] == "image/png"


def test_large_upload(wiki, ann):
    sound = b"OggS\0\2" + bytes(8) + b"abcd" + bytes(8) + b"\1\x1e\1vorbis" + os.urandom(1 << 20) * 20
    page = upload(ann, "Noise.ogg", "audio/ogg", sound)
    assert page.url.endswith("/wiki/File:Noise.ogg"), page
    guest = wiki.visitor(HOST)
    assert guest.get(guest.get("/wiki/File:Noise.ogg").links("^/images/.*Noise.ogg")[0]).body == sound


def test_scripts_are_not_uploaded(wiki, ann):
    page = upload(ann, "Evil.php", "image/png", b"<?php echo 6 * 7;")
    assert "are not allowed to be uploaded" in page.text, page
    for name in ("evil.php", "a/evil.php"):
        os.makedirs(os.path.dirname(f"{IMAGES}/{name}"), exist_ok=True)
        with open(f"{IMAGES}/{name}", "w") as file:
            file.write("<?php echo 6 * 7;")
    php.refused(wiki.visitor(HOST), ["/images/evil.php", "/images/a/evil.php", "/images/evil.php/a.png",
                                     "/images/%65vil.php", "/images/a/../evil.php"])


def test_interface_for_programs(wiki):
    program = wiki.visitor(HOST)
    token = program.get("/api.php?action=query&meta=tokens&type=login&format=json").json()
    answer = program.post("/api.php", {
        "action": "clientlogin", "username": "Ann", "password": PASSWORD, "format": "json",
        "loginreturnurl": f"http://{HOST}/", "logintoken": token["query"]["tokens"]["logintoken"]})
    assert answer.json()["clientlogin"]["status"] == "PASS", answer
    token = program.get("/api.php?action=query&meta=tokens&format=json").json()
    answer = program.post("/api.php", {"action": "edit", "title": "By a program", "text": "hello",
                                       "token": token["query"]["tokens"]["csrftoken"], "format": "json"})
    assert answer.json()["edit"]["result"] == "Success", answer
    answer = program.get("/rest.php/v1/page/By%20a%20program")
    assert answer.status == 200 and answer.json()["source"] == "hello", answer
    program.post("/api.php", {"action": "edit", "title": "By a program/Below", "text": "below",
                              "token": token["query"]["tokens"]["csrftoken"], "format": "json"})
    answer = program.get("/rest.php/v1/page/By%20a%20program%2FBelow")
    assert answer.status == 200 and answer.json()["source"] == "below", answer
    answer = program.get("/rest.php/v1/search/page?q=program")
    assert answer.status == 200, answer


def test_what_pages_need(wiki):
    guest = wiki.visitor(HOST)
    paths = guest.get("/wiki/Main_Page").links("^/(load.php|skins|resources|extensions)")
    assert len(paths) > 3
    for path in ["/resources/assets/mediawiki.png", "/skins/Vector/skin.json",
                 "/opensearch_desc.php", *paths]:
        answer = guest.get(path)
        assert answer.status == 200 and answer.body, path


def test_special_pages(ann):
    for name in ("SpecialPages", "Version", "RecentChanges", "Preferences", "AllPages", "ListFiles",
                 "UserRights/Ann", "Statistics", "Watchlist"):
        page = ann.get(f"/wiki/Special:{name}")
        assert page.status == 200 and "Ann" in page.text, page


def test_private_files(wiki):
    guest = wiki.visitor(HOST)
    php.refused(guest, [
        "/LocalSettings.php", "/autoload.php", "/includes/DefaultSettings.php", "/maintenance/install.php",
        "/maintenance/tables.sql", "/mw-config/index.php", "/vendor/composer/installed.json",
        "/cache/wiki_of_a_test.sqlite", "/cache/my_wiki.sqlite", "/languages/messages/MessagesEn.php",
        "/includes/../LocalSettings.php", "/images/../LocalSettings.php", "/%4cocalSettings.php",
        "/LocalSettings.php/x", "//LocalSettings.php", "/index.php/../LocalSettings.php",
        "/wiki/../LocalSettings.php", "/skins/Vector/includes/ServiceWiring.php", "/.htaccess",
        "/images/deleted/a.png", "/includes%2FDefaultSettings.php", "/wiki/..%2FLocalSettings.php",
        "/images%2fa%2fevil.php", "/index.php%2F..%2FLocalSettings.php"])
    php.no_sources(guest, ["/wiki/LocalSettings.php", "/index.php/LocalSettings.php", "/index.php.",
                           "/index.php%20", "/INDEX.PHP", "/api.php/x.css", "/composer.json"])
