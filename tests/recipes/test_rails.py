# SPDX-License-Identifier: MIT
"""Ruby on Rails with puma by doc/recipes/rails.md: forms, a session, files in both directions."""

import os
import re

import pytest

import applications
from files import MB, pattern
from recipe import is_short

# github.com/puma/puma, docs/nginx.md.
NGINX = 32
HOST = "rails.example.org"
TOP = "/srv/notebook"
FILES = {
    # Debian's versions, which `rails new` does not ask for.
    "Gemfile": 'source "https://rubygems.org"\ngem "rails"\ngem "sqlite3"\ngem "puma"\n',
    "config/routes.rb": """
        Rails.application.routes.draw do
          root "notes#index"
          resources :notes
          post "/files", to: "files#create"
          get "/files/:name", to: "files#show", constraints: {name: /[^\\/]+/}
          get "/seen", to: "files#seen"
          get "/outside", to: "files#outside"
          get "/stream", to: "files#stream"
          get "/login", to: "sessions#new"
          post "/login", to: "sessions#create"
          get "/private", to: "sessions#show"
        end
        """,
    "app/controllers/sessions_controller.rb": """
        class SessionsController < ApplicationController
          def new
            render inline: <<~PAGE
              <%= form_with url: "/login" do |form| %>
                <%= form.text_field :user %> <%= form.password_field :password %> <%= form.submit %>
              <% end %>
            PAGE
          end

          def create
            good = ActiveSupport::SecurityUtils.secure_compare(params[:password], "secret word")
            return head :forbidden unless good
            reset_session
            session[:user] = params[:user]
            redirect_to "/private"
          end

          def show
            session[:user] ? render(plain: session[:user]) : head(:unauthorized)
          end
        end
        """,
    "app/controllers/files_controller.rb": """
        class FilesController < ApplicationController
          skip_forgery_protection only: :create

          def create
            file = params[:file]
            File.binwrite(Rails.root.join("storage", file.original_filename), file.read)
            session[:last] = file.original_filename
            redirect_to "/files/#{ERB::Util.url_encode(file.original_filename)}"
          end

          def show
            send_file Rails.root.join("storage", params[:name]), type: "image/png",
                      filename: "of #{session[:last]}"
          end

          def seen
            render json: {address: request.remote_ip, url: request.original_url, secure: request.ssl?}
          end

          def outside
            send_file "/etc/passwd"
          end

          def stream
            self.response_body = Enumerator.new do |to|
              1000.times { |number| to << (number % 10).to_s * 10000 }
            end
          end
        end
        """,
}


@pytest.fixture(scope="module")
def site(recipe):
    applications.folders(recipe)
    environment = {**os.environ, "RAILS_ENV": "production", "SECRET_KEY_BASE": "of a test",
                   "HOME": str(recipe.folder), "BUNDLE_APP_CONFIG": str(recipe.folder)}

    def rails(*command):
        recipe.run(*command, cwd=TOP, env=environment)

    recipe.run("rails", "new", TOP, "--minimal", "--skip-bundle", "--skip-git", env=environment)
    applications.write(f"{TOP}/Gemfile", FILES["Gemfile"])
    rails("bundle", "install", "--local")
    rails("bin/rails", "generate", "scaffold", "Note", "title:string", "text:text")
    for name, text in FILES.items():
        applications.write(f"{TOP}/{name}", text)
    production = f"{TOP}/config/environments/production.rb"
    with open(production) as file:
        text = file.read()
    line = re.search(r"config\.action_dispatch\.x_sendfile_header = .*", recipe.page.text)[0]
    applications.write(production, text.replace("configure do\n", f"configure do\n  {line}\n"))
    rails("bin/rails", "db:migrate")
    rails("bin/rails", "assets:precompile")
    os.makedirs(f"{TOP}/storage", exist_ok=True)
    recipe.run("chown", "-R", applications.USER, TOP)
    applications.serve(recipe, ["puma", "--environment", "production", "--bind",
                                "unix:///run/rails/puma.sock"], "/run/rails/puma.sock",
                       cwd=TOP, env=environment)
    recipe.start()
    return recipe


@pytest.fixture
def visitor(site):
    return site.visitor(HOST)


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_forms(visitor):
    """A form has a secret of its own, which belongs to the session."""
    page = visitor.submit(visitor.get("/notes/new"), "note[title]",
                          {"note[title]": "äöü", "note[text]": "<b>" + "word " * 10000})
    assert page.url == f"http://{HOST}/notes/1" and "äöü" in page.text, page
    assert "was successfully created" in page.text and "&lt;b&gt;word" in page.text
    page = visitor.submit(visitor.get("/notes/1/edit"), "note[title]", {"note[title]": "other"})
    assert page.status == 200 and "successfully updated" in page.text, page
    assert "other" in visitor.get("/").text
    assert visitor.post("/notes", {"note[title]": "forged"}).status == 422
    assert "forged" not in visitor.get("/").text


def test_login(site, visitor):
    assert visitor.get("/private").status == 401
    page = visitor.submit(visitor.get("/login"), "password", {"user": "ann", "password": "wrong"})
    assert page.status == 403 and visitor.get("/private").status == 401, page
    assert visitor.post("/login", {"user": "ann", "password": "secret word"}).status == 422
    page = visitor.submit(visitor.get("/login"), "password",
                          {"user": "ann", "password": "secret word"})
    assert page.url == f"http://{HOST}/private" and page.text == "ann", page
    assert visitor.get("/private").text == "ann"
    assert site.visitor(HOST).get("/private").status == 401


def test_files(site, visitor):
    data = pattern(10 * MB)
    page = visitor.post("/files", files={"file": ("a b.png", "image/png", data)})
    assert page.status == 200 and page.body == data, page.headers
    assert page.headers["Content-Type"] == "image/png"
    assert "of a b.png" in page.headers["Content-Disposition"]
    # The server sends the file, and so knows parts.
    assert "X-Sendfile" not in page.headers and page.headers["Accept-Ranges"] == "bytes"
    part = visitor.get("/files/a%20b.png", headers={"Range": "bytes=5-9"})
    assert part.status == 206 and part.body == data[5:10], part
    assert visitor.request("HEAD", "/files/a%20b.png").status == 200
    assert visitor.get("/outside").status == 502
    assert visitor.post("/files", files={"file": ("b", "x/y", bytes(33 * MB))}).status == 413


def test_assets(visitor):
    path = re.search(r'href="(/assets/[^"]+\.css)"', visitor.get("/").text)[1]
    answer = visitor.get(path, headers={"Accept-Encoding": "gzip"})
    assert answer.status == 200 and answer.headers["Content-Encoding"] == "gzip", answer
    assert "immutable" in answer.headers["Cache-Control"]
    assert visitor.get("/robots.txt").status == 200
    for path in ("/config/database.yml", "/../config/master.key", "/db/production.sqlite3"):
        assert visitor.get(path).status in (400, 404), path
    assert "doesn't exist" in visitor.get("/none").text


def test_stream(visitor):
    body = visitor.get("/stream").body
    assert body == b"".join(b"%d" % (number % 10) * 10000 for number in range(1000))


def test_what_the_application_sees(site, visitor):
    got = visitor.get("/seen?q=1", headers={"X-Forwarded-For": "1.2.3.4", "X-Forwarded-Proto": "https",
                                            "Client-IP": "127.0.0.1"}).json()
    assert got == {"address": "127.0.0.1", "url": f"http://{HOST}/seen?q=1", "secure": False}
    got = site.visitor(HOST, "https").get("/seen").json()
    assert got == {"address": "127.0.0.1", "url": f"https://{HOST}/seen", "secure": True}


def test_form_with_tls(site):
    """Rails compares the Origin of a form with its own address."""
    visitor = site.visitor(HOST, "https")
    page = visitor.submit(visitor.get("/notes/new"), "note[title]", {"note[title]": "secure"},
                          headers={"Origin": f"https://{HOST}"})
    assert page.status == 200 and "was successfully created" in page.text, page
