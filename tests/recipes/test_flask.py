# SPDX-License-Identifier: MIT
"""Flask with gunicorn by doc/recipes/flask.md: a login, an upload, a download, streams."""

import hashlib
import textwrap

import pytest

import applications
from files import MB, pattern
from recipe import is_short

# gunicorn.org/deploy: "Nginx configuration", the parts for one site.
NGINX = 19
HOST = "flask.example.org"
APPLICATION = """
    import hashlib
    from flask import Flask, Response, abort, flash, get_flashed_messages, jsonify, redirect, request
    from flask import session, url_for
    from werkzeug.middleware.proxy_fix import ProxyFix

    app = Flask(__name__)
    app.secret_key = "of a test"
    app.wsgi_app = ProxyFix(app.wsgi_app, x_for=1, x_proto=1, x_host=1)

    @app.route("/")
    def index():
        return f"{session.get('user', 'nobody')} {' '.join(get_flashed_messages())}"

    @app.route("/login", methods=["POST"])
    def login():
        if request.form["password"] != "secret word":
            abort(403)
        session["user"] = request.form["user"]
        flash("welcome")
        return redirect(url_for("index", _external=True))

    @app.route("/upload", methods=["POST"])
    def upload():
        if "user" not in session:
            abort(401)
        file = request.files["file"]
        data = file.read()
        return jsonify(name=file.filename, size=len(data), sum=hashlib.sha256(data).hexdigest())

    @app.route("/download/<int:count>")
    def download(count):
        return Response((b"%08d" % number * 1000 for number in range(count)),
                        mimetype="application/octet-stream")

    @app.route("/broken")
    def broken():
        def body():
            yield b"x" * 100000
            raise RuntimeError("of a test")
        return Response(body(), headers={"Content-Length": 1000000})

    @app.route("/seen/<path:rest>")
    def seen(rest):
        return jsonify(address=request.remote_addr, url=request.url, rest=rest,
                       token=request.headers.get("Authorization"))

    @app.route("/error")
    def error():
        return 1 / 0
    """


@pytest.fixture(scope="module")
def site(recipe):
    applications.folders(recipe, "/srv/flask")
    applications.write("/srv/flask/application.py", textwrap.dedent(APPLICATION))
    applications.serve(recipe, ["gunicorn", "--workers", 2, "--bind", "unix:/run/flask/gunicorn.sock",
                                "--chdir", "/srv/flask", "application:app"],
                       "/run/flask/gunicorn.sock")
    recipe.start()
    return recipe


@pytest.fixture(scope="module")
def ann(site):
    visitor = site.visitor(HOST)
    page = visitor.post("/login", {"user": "ann", "password": "secret word"})
    assert page.url == f"http://{HOST}/" and page.text == "ann welcome", page
    return visitor


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_login(site, ann):
    assert ann.get("/").text == "ann "
    assert site.visitor(HOST).get("/").text == "nobody "
    assert site.visitor(HOST).post("/login", {"user": "ann", "password": "x"}).status == 403


def test_upload(site, ann):
    data = pattern(10 * MB)
    got = ann.post("/upload", files={"file": ("ä.bin", "application/octet-stream", data)}).json()
    assert got["size"] == len(data) and got["name"] == "ä.bin"
    assert got["sum"] == hashlib.sha256(data).hexdigest()
    nobody = site.visitor(HOST).post("/upload", files={"file": ("a", "text/plain", data)})
    assert nobody.status == 401
    large = ann.post("/upload", files={"file": ("a", "text/plain", bytes(33 * MB))})
    assert large.status == 413, large


def test_download(site):
    body = site.visitor(HOST).get("/download/2000").body
    assert body == b"".join(b"%08d" % number * 1000 for number in range(2000))


def test_what_the_application_sees(site):
    got = site.visitor(HOST).get("/seen/a%20b/c%2Bd/%C3%A4?q=%26&r", headers={
        "X-Forwarded-For": "1.2.3.4", "X-Forwarded-Host": "evil.example"}).json()
    assert got["address"] == "127.0.0.1" and got["rest"] == "a b/c+d/ä", got
    secure = site.visitor(HOST, "https").get("/seen/a").json()
    assert secure["url"] == f"https://{HOST}/seen/a", secure
    assert got["url"].startswith(f"http://{HOST}/seen/") and got["url"].endswith("?q=%26&r"), got


def test_failures(site):
    visitor = site.visitor(HOST)
    assert visitor.get("/error").status == 500
    assert visitor.get("/none").status == 404
    assert visitor.request("PUT", "/login").status == 405
    with pytest.raises(Exception, match="IncompleteRead|Connection"):
        visitor.get("/broken")
    assert visitor.get("/").status == 200
