# SPDX-License-Identifier: MIT
"""WordPress by doc/recipes/wordpress.md: installed by its pages, posts, uploads, its API, the pages of
its administration, and what nobody gets."""

import base64
import json
import os
import re
import time

import pytest

import browser
import php
import tools
from programs import curl
from recipe import is_short

# /usr/share/doc/wordpress/examples/nginx-wordpress.conf of Debian's package.
NGINX = 24
HOST = "blog.example.org"
PASSWORD = "a secret, of a test"
CONFIG = """<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', 'database');
define('DB_HOST', 'localhost');
define('WP_ENVIRONMENT_TYPE', 'local');
define('WP_CONTENT_DIR', '/var/lib/wordpress/wp-content');
"""
# With the head of a frame: PHP finds other types in bytes by chance, 15 times of 1,000.
MP3 = b"ID3\3\0\0\0\0\0\0\xff\xfb\x90\x64"
UPLOADS = "/var/lib/wordpress/wp-content/uploads"


@pytest.fixture(scope="module")
def blog(recipe):
    for folder in ("/etc/wordpress", "/var/lib/wordpress"):
        recipe.cover(folder)
    with open(f"/etc/wordpress/config-{HOST}.php", "w") as file:
        file.write(CONFIG)
    php.start_mariadb(recipe)
    php.sql(recipe, "CREATE DATABASE wordpress; CREATE USER wordpress@localhost IDENTIFIED BY 'database';"
                    "GRANT ALL ON wordpress.* TO wordpress@localhost")
    php.start_fpm(recipe, "php_admin_value[upload_max_filesize] = 64M\n"
                          "php_admin_value[post_max_size] = 64M\n")
    recipe.start()
    install(recipe.visitor(HOST))
    return recipe


def install(visitor):
    page = visitor.get("/")
    assert page.url.endswith("/wp-admin/install.php"), page
    page = visitor.submit(page, "setup", {
        "weblog_title": "Blog of a test", "user_name": "ann", "admin_password": PASSWORD,
        "admin_password2": PASSWORD, "pw_weak": "on", "admin_email": "ann@example.org"})
    assert "WordPress has been installed" in page.text, page


@pytest.fixture(scope="module")
def ann(blog):
    visitor = blog.visitor(HOST)
    page = visitor.get("/wp-login.php")
    page = visitor.submit(page, "loginform", {"log": "ann", "pwd": PASSWORD})
    assert page.url.endswith("/wp-admin/") and "Dashboard" in page.text, page
    page = visitor.get("/wp-admin/options-permalink.php")
    page = visitor.submit(page, "permalink_structure",
                          {"selection": "custom", "permalink_structure": "/%year%/%postname%/"})
    assert "Permalink structure updated" in page.text, page
    return visitor


@pytest.fixture(scope="module")
def api(ann):
    """api(method, path, **json): calls the API as the editor in the browser does."""
    nonce = ann.get("/wp-admin/admin-ajax.php?action=rest-nonce").text

    def call(method, path, body=None, kind="application/json", **fields):
        return ann.request(method, f"/wp-json/wp/v2/{path}", body, follow=False, headers={
            "X-WP-Nonce": nonce, "Content-Type": kind, **fields})
    return call


def write(api, **post):
    answer = api("POST", "posts", json.dumps({"status": "publish", **post}).encode())
    assert answer.status == 201, answer
    return answer.json()


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_guest_reads(blog, ann):
    page = blog.visitor(HOST).get("/")
    assert page.status == 200 and "Blog of a test" in page.text and "Hello world" in page.text, page


def test_wrong_password(blog):
    visitor = blog.visitor(HOST)
    page = visitor.submit(visitor.get("/wp-login.php"), "loginform", {"log": "ann", "pwd": "wrong"})
    assert "is incorrect" in page.text, page
    assert "wp-login.php" in visitor.get("/wp-admin/").url


def test_post_and_its_path(blog, api):
    text = "Äpfel und Birnen, " * 5000
    post = write(api, title="Something new", content=text)
    assert re.search(r"/\d{4}/something-new/$", post["link"]), post
    guest = blog.visitor(HOST)
    page = guest.get(post["link"])
    assert page.status == 200 and text[:100] in page.text, page
    # Without the slash WordPress redirects; a path of nothing is its own page.
    assert guest.get(post["link"].rstrip("/"), follow=False).status == 301
    assert guest.get("/?s=Birnen").text.count("Something new") > 0
    missing = guest.get("/2020/no-such-post/")
    assert missing.status == 404 and "Blog of a test" in missing.text, missing
    assert "<rss" in guest.get("/feed/").text
    assert api("DELETE", f"posts/{post['id']}").status == 200
    assert guest.get(post["link"]).status == 404


def test_comment_of_a_guest(blog, api):
    post = write(api, title="To be discussed", content="?")
    guest = blog.visitor(HOST)
    page = guest.submit(guest.get(post["link"]), "commentform", {
        "comment": "I have something to say", "author": "Bob", "email": "bob@example.org", "url": ""})
    assert page.status == 200 and "I have something to say" in page.text, page


def test_upload_by_the_form(blog, ann):
    image = php.image(700, 500)
    page = ann.get("/wp-admin/media-new.php?browser-uploader")
    page = ann.submit(page, "file-form", {}, {"async-upload": ("shot.png", "image/png", image)},
                      button="html-upload")
    assert page.status == 200 and page.url.endswith("/wp-admin/upload.php"), page
    folder = time.strftime("/wp-content/uploads/%Y/%m")
    guest = blog.visitor(HOST)
    answer = guest.get(f"{folder}/shot.png")
    assert answer.status == 200 and answer.body == image, answer
    assert answer.headers["Content-Type"] == "image/png"
    small = guest.get(f"{folder}/shot-300x214.png")
    assert small.status == 200 and small.body.startswith(b"\x89PNG"), small
    again = guest.get(f"{folder}/shot.png", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status == 304
    part = guest.get(f"{folder}/shot.png", headers={"Range": "bytes=5-9"})
    assert part.status == 206 and part.body == image[5:10]


def test_large_upload_by_the_api(blog, api):
    """More than fits in memory: it waits on the disk until PHP gets it."""
    sound = MP3 + os.urandom(1 << 20) * 24
    answer = api("POST", "media", sound, kind="audio/mpeg",
                 **{"Content-Disposition": 'attachment; filename="noise.mp3"'})
    assert answer.status == 201, answer
    assert blog.visitor(HOST).get(answer.json()["source_url"]).body == sound


def test_too_large_upload(api):
    try:
        answer = api("POST", "media", bytes(65 << 20), kind="audio/mpeg")
    except OSError:  # it ended while the client was sending
        return
    assert answer.status == 413, answer


def test_scripts_are_not_uploaded(blog, api):
    answer = api("POST", "media", b"<?php echo 6 * 7;", kind="application/x-php",
                 **{"Content-Disposition": 'attachment; filename="evil.php"'})
    assert answer.status in (403, 500) and "not allowed" in answer.text, answer
    # Even one that got there does not run, whatever stands behind its name.
    for name in ("evil.php", "2026/evil.php", "evil.PHP", "evil.php.png", "evil.phtml"):
        os.makedirs(os.path.dirname(f"{UPLOADS}/{name}"), exist_ok=True)
        with open(f"{UPLOADS}/{name}", "w") as file:
            file.write("<?php echo 6 * 7;")
    guest = blog.visitor(HOST)
    php.refused(guest, [f"/wp-content/uploads/{name}" for name in
                        ("evil.php", "2026/evil.php", "evil.php/a.png", "evil.php/", "2026/../evil.php",
                         "%65vil.php", "evil.php%2fa.png")])
    for name in ("evil.PHP", "evil.php.png", "evil.phtml"):
        assert b"42" not in guest.get(f"/wp-content/uploads/{name}").body


@pytest.fixture(scope="module")
def login(api):
    """For programs."""
    made = api("POST", "users/me/application-passwords", json.dumps({"name": "program"}).encode())
    assert made.status == 201, made
    return f"ann:{made.json()['password']}"


def test_application_password(blog, login):
    login = base64.b64encode(login.encode()).decode()
    program = blog.visitor(HOST)
    answer = program.get("/wp-json/wp/v2/users/me", headers={"Authorization": f"Basic {login}"})
    assert answer.status == 200 and answer.json()["name"] == "ann", answer
    assert program.get("/wp-json/wp/v2/users/me").status == 401


def test_upload_and_download_by_http2(recipe, login):
    file = recipe.folder / "noise.mp3"
    file.write_bytes(MP3 + os.urandom(10 << 20))
    where = ["--http2", "--insecure", "--resolve", f"{HOST}:443:127.0.0.1", "--write-out",
             "\n%{http_version} %{http_code}"]
    said = curl(*where, "--user", login, "--form", f"file=@{file};type=audio/mpeg",
                f"https://{HOST}/wp-json/wp/v2/media")
    body, _, end = said.rpartition("\n")
    assert end == "2 201", said
    url = json.loads(body)["source_url"].replace("http:", "https:")
    assert curl(*where, "--output", recipe.folder / "back", url) == "\n2 200"
    assert (recipe.folder / "back").read_bytes() == file.read_bytes()


def test_pages_of_the_administration(ann):
    """All that the menu has, which is mostly behind /wp-admin/ without the name of a script."""
    page = ann.get("/wp-admin")
    assert page.url.endswith("/wp-admin/"), page
    paths = page.links(r"^[\w-]+\.php(?!.*action=)")
    assert len(paths) > 20, paths
    for path in paths:
        answer = ann.get(f"/wp-admin/{path}")
        assert answer.status == 200 and 'id="adminmenu"' in answer.text or "site-editor" in path, answer


def test_what_pages_need(blog, ann):
    """Each style sheet, script and icon, some of which are behind links."""
    paths = {"/wp-includes/js/underscore.min.js", "/wp-includes/js/crop/cropper.js"}
    for visitor, path in ((blog.visitor(HOST), "/"), (blog.visitor(HOST), "/wp-login.php"),
                          (ann, "/wp-admin/"), (ann, "/wp-admin/post-new.php")):
        paths |= set(visitor.get(path).links(
            rf"^http://{HOST}/wp-[^?]*(\.js|\.css|/load-(scripts|styles)\.php)(\?|$)"))
    assert len(paths) > 20
    for path in paths:
        answer = ann.get(path)
        assert answer.status == 200 and answer.body, path
        if ".php" not in path:
            assert answer.headers["Cache-Control"] == "max-age=2592000", path


@pytest.mark.skipif(not tools.find("chromium"), reason=tools.missing("chromium"))
def test_editor_in_a_browser(blog, ann):
    with browser.browsing(f"--host-resolver-rules=MAP {HOST} 127.0.0.1") as chromium:
        for cookie in ann.cookies:
            chromium.call("Network.setCookie", name=cookie.name, value=cookie.value, domain=HOST,
                          path=cookie.path)
        chromium.open(f"http://{HOST}/wp-admin/post-new.php")
        chromium.until("window.wp && wp.data && wp.data.select('core/editor').getCurrentPostId()")
        link = chromium.evaluate("""(async () => {
            const block = wp.blocks.createBlock("core/paragraph", {content: "Typed in a browser"});
            wp.data.dispatch("core/block-editor").insertBlocks(block);
            const editor = wp.data.dispatch("core/editor");
            editor.editPost({title: "From a browser", status: "publish"});
            await editor.savePost();
            return wp.data.select("core/editor").getPermalink();
        })()""")
        chromium.open(link)
        chromium.until("document.body.innerText.includes('Typed in a browser')")
        # Pictures of other sites cannot be reached.
        complaints = [one for one in chromium.complaints
                      if not isinstance(one, dict) or HOST in one.get("url", HOST)]
    assert not complaints
    assert "Typed in a browser" in blog.visitor(HOST).get(link).text


def test_with_tls(blog, ann):
    """WordPress knows how its client has connected: otherwise it redirects forever."""
    visitor = blog.visitor(HOST, "https")
    page = visitor.submit(visitor.get("/wp-login.php"), "loginform", {"log": "ann", "pwd": PASSWORD})
    assert page.url == f"https://{HOST}/wp-admin/" and "Dashboard" in page.text, page
    assert all(cookie.secure for cookie in visitor.cookies if cookie.path == "/wp-admin")


def test_xml_rpc(blog, ann):
    call = ("<methodCall><methodName>wp.getUsersBlogs</methodName><params><param><value>ann</value>"
            f"</param><param><value>{PASSWORD}</value></param></params></methodCall>")
    answer = blog.visitor(HOST).request("POST", "/xmlrpc.php", call.encode(),
                                        headers={"Content-Type": "text/xml"})
    assert answer.status == 200 and "Blog of a test" in answer.text, answer


def test_timed_tasks(blog, ann):
    assert blog.visitor(HOST).get("/wp-cron.php").status == 200


def test_logout(blog):
    visitor = blog.visitor(HOST)
    page = visitor.submit(visitor.get("/wp-login.php"), "loginform", {"log": "ann", "pwd": PASSWORD})
    assert "logged out" in visitor.get(page.links("action=logout")[0]).text
    assert "wp-login.php" in visitor.get("/wp-admin/").url


def test_private_files(blog, ann):
    guest = blog.visitor(HOST)
    php.refused(guest, ["/wp-config.php", "/wp-config.php/x", "//wp-config.php", "/%77p-config.php",
                        "/wp-admin/../wp-config.php"])
    php.no_sources(guest, ["/.htaccess", "/wp-login.php/", "/wp-login.php.", "/wp-login.php%20",
                           "/WP-LOGIN.PHP", "/wp-includes/version.php", "/wp-content/plugins/index.php",
                           "/wp-login.php%00.css", "/wp-config-sample.php", "/wp-admin/includes/user.php"])
    assert "DB_PASSWORD" not in guest.get("/wp-config-sample.php").text
