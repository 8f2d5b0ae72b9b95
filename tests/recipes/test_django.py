# SPDX-License-Identifier: MIT
"""Django with gunicorn by doc/recipes/django.md: its administration, files of users, static files."""

import os
import re
import textwrap

import pytest

import applications
from files import MB, pattern
from recipe import is_short

# gunicorn.org/deploy: "Nginx configuration", the parts for one site.
NGINX = 19
HOST = "django.example.org"
SITE = "/srv/site"
FILES = {
    "manage.py": """
        import os, sys
        from django.core.management import execute_from_command_line
        os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
        execute_from_command_line(sys.argv)
        """,
    "settings.py": """
        SECRET_KEY = "of a test"
        DEBUG = False
        ROOT_URLCONF = "urls"
        INSTALLED_APPS = ["django.contrib." + name for name in
                          ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")]
        INSTALLED_APPS.append("album")
        MIDDLEWARE = ["django.middleware.security.SecurityMiddleware",
                      "django.contrib.sessions.middleware.SessionMiddleware",
                      "django.middleware.common.CommonMiddleware",
                      "django.middleware.csrf.CsrfViewMiddleware",
                      "django.contrib.auth.middleware.AuthenticationMiddleware",
                      "django.contrib.messages.middleware.MessageMiddleware"]
        TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
                      "OPTIONS": {"context_processors": [
                          "django.template.context_processors.request",
                          "django.contrib.auth.context_processors.auth",
                          "django.contrib.messages.context_processors.messages"]}}]
        DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "/srv/site/db"}}
        DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
        """,
    "wsgi.py": """
        import os
        from django.core.wsgi import get_wsgi_application
        os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
        application = get_wsgi_application()
        """,
    "urls.py": """
        from django.contrib import admin
        from django.http import FileResponse, JsonResponse, StreamingHttpResponse
        from django.urls import path

        def seen(request):
            return JsonResponse({"address": request.META["HTTP_X_FORWARDED_FOR"],
                                 "url": request.build_absolute_uri(), "secure": request.is_secure(),
                                 "forged": request.META.get("HTTP_X_REAL_IP")})

        def lines(request):
            return StreamingHttpResponse(b"line %d\\n" % number for number in range(100000))

        def database(request):
            return FileResponse(open("/srv/site/large", "rb"), as_attachment=True)

        urlpatterns = [path("admin/", admin.site.urls), path("seen/", seen), path("lines/", lines),
                       path("large/", database)]
        """,
    "album/__init__.py": "",
    "album/models.py": """
        from django.db import models

        class Picture(models.Model):
            title = models.CharField(max_length=50)
            file = models.FileField(upload_to="pictures")

            def __str__(self):
                return self.title
        """,
    "album/admin.py": """
        from django.contrib import admin
        from .models import Picture
        admin.site.register(Picture)
        """,
}


@pytest.fixture(scope="module")
def site(recipe):
    applications.folders(recipe, SITE, f"{SITE}/public")
    for name, text in FILES.items():
        applications.write(f"{SITE}/{name}", textwrap.dedent(text))
    recipe.page.write("ALLOWED_HOSTS", f"{recipe.folder}/more.py")
    with open(f"{SITE}/settings.py", "a") as settings, open(f"{recipe.folder}/more.py") as more:
        settings.write(more.read())
    applications.write(f"{SITE}/large", pattern(20 * MB))

    def manage(*arguments, **more):
        recipe.run("/usr/bin/python3", "manage.py", *arguments, cwd=SITE,
                   env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more})

    manage("makemigrations", "album")
    manage("migrate")
    manage("collectstatic", "--noinput")
    manage("createsuperuser", "--noinput", DJANGO_SUPERUSER_USERNAME="ann",
           DJANGO_SUPERUSER_PASSWORD="secret word", DJANGO_SUPERUSER_EMAIL="ann@example.org")
    recipe.run("chown", "-R", applications.USER, SITE)
    applications.serve(recipe, ["gunicorn", "--workers", 2, "--bind",
                                "unix:/run/django/gunicorn.sock", "--chdir", SITE, "wsgi"],
                       "/run/django/gunicorn.sock")
    recipe.start()
    return recipe


@pytest.fixture(scope="module")
def ann(site):
    visitor = site.visitor(HOST)
    page = visitor.submit(visitor.get("/admin/"), "login-form",
                          {"username": "ann", "password": "secret word"})
    assert page.status == 200 and "Site administration" in page.text, page
    return visitor


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_wrong_password(site):
    visitor = site.visitor(HOST)
    page = visitor.submit(visitor.get("/admin/"), "login-form",
                          {"username": "ann", "password": "wrong"})
    assert "Please enter the correct username and password" in page.text, page
    assert visitor.get("/admin/album/picture/").url.startswith(f"http://{HOST}/admin/login/")


def test_forged_form(site):
    """Django's own check, which needs the Host and the cookies as the client sent them."""
    visitor = site.visitor(HOST)
    visitor.get("/admin/")
    assert visitor.post("/admin/login/", {"username": "ann", "password": "x"}).status == 403


def test_static_files(site, ann):
    page = ann.get("/admin/")
    needed = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)
    assert needed
    for path in needed:
        answer = site.visitor(HOST).get(path)
        assert answer.status == 200 and answer.headers["ETag"], answer
        again = site.visitor(HOST).get(path, headers={"If-None-Match": answer.headers["ETag"]})
        assert again.status == 304


def test_upload_and_download(site, ann):
    data = pattern(5 * MB)
    page = ann.submit(ann.get("/admin/album/picture/add/"), "picture_form", {"title": "äöü"},
                      {"file": ("a picture.png", "image/png", data)})
    assert "was added successfully" in page.text and "äöü" in page.text, page
    page = ann.get("/admin/album/picture/1/change/")
    path = re.search(r'href="(/media/[^"]+)"', page.text)[1]
    answer = site.visitor(HOST).get(path)
    assert answer.body == data and answer.headers["Content-Type"] == "image/png", answer
    part = site.visitor(HOST).get(path, headers={"Range": "bytes=-100"})
    assert part.status == 206 and part.body == data[-100:]
    answer = ann.submit(ann.get("/admin/album/picture/add/"), "picture_form", {"title": "large"},
                        {"file": ("b", "image/png", bytes(33 * MB))})
    assert answer.status == 413, answer


def test_responses_of_the_application(site):
    visitor = site.visitor(HOST)
    assert visitor.get("/large/").body == pattern(20 * MB)
    assert visitor.get("/lines/").text.endswith("line 99999\n")
    assert visitor.request("HEAD", "/large/").body == b""
    assert visitor.get("/none/").status == 404
    answer = visitor.get("/seen?a=b", follow=False)
    assert answer.status == 301 and answer.headers["Location"] == "/seen/?a=b"


def test_what_the_application_sees(site):
    got = site.visitor(HOST).get("/seen/?q=1", headers={
        "X-Forwarded-For": "1.2.3.4", "X-Forwarded-Proto": "https", "X-Real-IP": "1.2.3.4",
        "X-Forwarded-Host": "evil.example"}).json()
    assert got == {"address": "127.0.0.1", "url": f"http://{HOST}/seen/?q=1", "secure": False,
                   "forged": None}
    got = site.visitor(HOST, "https").get("/seen/").json()
    assert got["secure"] and got["url"] == f"https://{HOST}/seen/", got


def test_login_with_tls(site):
    """Django compares the Referer of a form with its own address."""
    visitor = site.visitor(HOST, "https")
    page = visitor.get("/admin/")
    page = visitor.submit(page, "login-form", {"username": "ann", "password": "secret word"},
                          headers={"Referer": page.url})
    assert page.status == 200 and "Site administration" in page.text, page


def test_private_files(site):
    visitor = site.visitor(HOST)
    for path in ("/settings.py", "/db", "/../db", "/static/../../settings.py", "/media/../../db"):
        answer = visitor.get(path)
        assert answer.status in (400, 404) and b"SECRET" not in answer.body, answer
