# SPDX-License-Identifier: MIT
"""phpMyAdmin by doc/recipes/phpmyadmin.md: tables are made, filled by an upload, and downloaded."""

import re

import pytest

import php
from recipe import is_short

# snippets/phpmyadmin.conf, as guides for nginx on Debian and Ubuntu have it.
NGINX = 12
HOST = "db.example.org"
TOP = "/phpmyadmin"
ROWS = 30000


@pytest.fixture(scope="module")
def site(recipe):
    for folder in ("/etc/phpmyadmin", "/var/lib/phpmyadmin"):
        recipe.cover(folder)
    php.start_mariadb(recipe)
    php.sql(recipe, "CREATE USER ann@localhost IDENTIFIED BY 'a secret, of a test';"
                    "GRANT ALL ON shop.* TO ann@localhost; CREATE DATABASE shop")
    php.start_fpm(recipe, "php_admin_value[upload_max_filesize] = 64M\n"
                          "php_admin_value[post_max_size] = 64M\n")
    recipe.start()
    return recipe


def log_in(visitor, password):
    page = visitor.get(TOP)
    assert page.status == 200 and page.url.endswith("/phpmyadmin/"), page
    return visitor.submit(page, "login_form", {"pma_username": "ann", "pma_password": password})


@pytest.fixture(scope="module")
def ann(site):
    visitor = site.visitor(HOST)
    page = log_in(visitor, "a secret, of a test")
    assert page.status == 200 and "ann@localhost" in page.text, page
    visitor.token = re.search(r'token:"([0-9a-f]+)"', page.text)[1]
    return visitor


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_wrong_password(site):
    page = log_in(site.visitor(HOST), "wrong")
    assert "Access denied" in page.text, page


def run(visitor, text, **more):
    """As the browser does when a user presses Go."""
    answer = visitor.post(f"{TOP}/index.php?route=/import", {
        "db": "shop", "sql_query": text, "sql_delimiter": ";", "ajax_request": "true", "token": visitor.token,
        "is_js_confirmed": "1", **more})
    assert answer.status == 200 and answer.json()["success"], answer
    return answer


def test_statement(site, ann):
    run(ann, "CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT) CHARACTER SET utf8mb4")
    run(ann, "INSERT INTO fruit VALUES (1, 'Äpfel & <Birnen>')")
    assert php.sql(site, "SELECT name FROM shop.fruit") == "Äpfel & <Birnen>\n"
    page = ann.get(f"{TOP}/index.php?route=/sql&db=shop&table=fruit&pos=0")
    assert page.status == 200 and "Äpfel &amp; &lt;Birnen&gt;" in page.text, page


def test_import_and_export(site, ann):
    """20 MB each way."""
    text = "CREATE TABLE big (id INT, data TEXT);\n" + "".join(
        f"INSERT INTO big VALUES {','.join(f'({row}, {word!r})' for row in range(first, first + 100))};\n"
        for first, word in ((first, f"{first:08} " * 75) for first in range(0, ROWS, 100)))
    page = ann.get(f"{TOP}/index.php?route=/database/import&db=shop")
    done = ann.submit(page, "import_file_form", {"format": "sql"},
                      {"import_file": ("big.sql", "application/sql", text.encode())})
    assert done.status == 200, done
    assert php.sql(site, "SELECT COUNT(*), COUNT(DISTINCT data) FROM shop.big") == f"{ROWS}\t{ROWS // 100}\n"
    answer = ann.post(f"{TOP}/index.php?route=/export", {
        "db": "shop", "table": "big", "export_type": "table", "export_method": "quick", "what": "csv",
        "quick_or_custom": "quick", "template_id": "", "token": ann.token, "output_format": "sendit",
        "filename_template": "@TABLE@", "allrows": "1", "csv_separator": ",", "csv_enclosed": '"',
        "csv_escaped": '"', "csv_terminated": "AUTO", "csv_null": "NULL", "csv_structure_or_data": "data"})
    assert answer.status == 200 and "attachment" in answer.headers["Content-Disposition"], answer
    lines = answer.body.splitlines()
    assert len(lines) == ROWS and len(answer.body) > 20_000_000
    assert lines[-1].startswith(f'"{ROWS - 1}","'.encode()), lines[-1]


def test_pages(ann):
    for route in ("/", "/server/databases", "/server/status", "/server/variables", "/server/sql",
                  "/database/structure&db=shop", "/table/structure&db=shop&table=fruit",
                  "/preferences/manage", "/themes"):
        page = ann.get(f"{TOP}/index.php?route={route}")
        assert page.status == 200 and "phpMyAdmin" in page.text, page
        assert "login_form" not in page.text, page


def test_what_pages_need(site, ann):
    """Each style sheet, script and image; some of them are links to other packages."""
    page = ann.get(f"{TOP}/index.php?route=/")
    paths = [path for path in page.links(r"\.(js|css|png|ico|php)(\?|$)") if not path.startswith("http")]
    assert len(paths) > 20
    for path in [*paths, "js/messages.php?l=en", "themes/original/jquery/jquery-ui.css"]:
        answer = ann.get(path if path.startswith("/") else f"{TOP}/{path}")
        assert answer.status == 200 and answer.body, path
        assert not path.endswith(".js") or answer.headers["Content-Type"].startswith("text/javascript")


def test_logout(site):
    visitor = site.visitor(HOST)
    page = log_in(visitor, "a secret, of a test")
    token = re.search(r'token:"([0-9a-f]+)"', page.text)[1]
    page = visitor.post(f"{TOP}/index.php?route=/logout", {"token": token})
    assert "login_form" in page.text, page
    assert "login_form" in visitor.get(f"{TOP}/index.php?route=/server/databases").text


def test_private_files(site):
    guest = site.visitor(HOST)
    php.refused(guest, [f"{TOP}/{path}" for path in (
        "libraries/config.default.php", "libraries/classes/Core.php", "templates/login/form.twig",
        "sql/create_tables.sql", "locale/de/LC_MESSAGES/phpmyadmin.mo", "libraries/", "%6cibraries/routes.php",
        "js/../libraries/routes.php", "/libraries/routes.php")])
    php.no_sources(guest, [f"{TOP}/{path}" for path in (
        "index.php/", "index.php.", "INDEX.PHP", "autoload.php", "config.sample.inc.php",
        "show_config_errors.php", "url.php", "index.php%20")])
