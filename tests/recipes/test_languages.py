# SPDX-License-Identifier: MIT
"""Programs in Go, Perl, Ruby and Tcl by doc/recipes/languages.md: a login, an upload, a download,
and the programs of the page."""

import os
import textwrap
import zlib

import pytest

import applications
from files import MB, pattern
from recipe import is_short

# The least for nginx, for each of the four: server, listen, server_name, location,
# include fastcgi_params, fastcgi_pass.
NGINX = 4 * 6
FOLDER = "/srv/programs"
SOURCES = {"go": "program.go", "perl": "program.pl", "ruby": "program.rb", "tcl": "program.tcl"}
# Those of the page, by their first line.
FIRST = {"go": "package main", "perl": "use CGI::Fast;", "ruby": 'require "fcgi"',
         "tcl": "package require ncgi"}
NAMES = {"go": "Go", "perl": "Perl", "ruby": "Ruby", "tcl": "Tcl"}
# Each one does the same.
PROGRAMS = {"go": """
    package main

    import (
        "fmt"
        "hash/crc32"
        "io"
        "net/http"
        "net/http/fcgi"
        "strconv"
    )

    func user(r *http.Request) string {
        cookie, err := r.Cookie("user")
        if err != nil {
            return "-"
        }
        return cookie.Value
    }

    func main() {
        http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
            fmt.Fprint(w, user(r))
        })
        http.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
            if r.FormValue("password") != "secret word" {
                http.Error(w, "no", 403)
                return
            }
            http.SetCookie(w, &http.Cookie{Name: "user", Value: r.FormValue("user")})
            http.Redirect(w, r, "/", 303)
        })
        http.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) {
            if user(r) == "-" {
                http.Error(w, "no", 401)
                return
            }
            sum := crc32.NewIEEE()
            size, _ := io.Copy(sum, r.Body)
            fmt.Fprint(w, size, " ", sum.Sum32())
        })
        http.HandleFunc("/download", func(w http.ResponseWriter, r *http.Request) {
            count, _ := strconv.Atoi(r.FormValue("count"))
            for number := 0; number < count; number++ {
                fmt.Fprintf(w, "%08d", number)
            }
        })
        http.HandleFunc("/seen/", func(w http.ResponseWriter, r *http.Request) {
            secure := "off"
            if r.TLS != nil {
                secure = "on"
            }
            fmt.Fprint(w, r.URL.Path, " ", r.URL.RawQuery, " ", r.Host, " ", secure)
        })
        fcgi.Serve(nil, nil)
    }
    """, "perl": """
    use strict;
    use CGI::Fast;
    use Compress::Zlib;
    while (my $asked = CGI::Fast->new) {
        my $path = $asked->path_info;
        my $user = $asked->cookie("user") // "-";
        if ($path eq "/login" && $asked->param("password") ne "secret word"
            || $path eq "/upload" && $user eq "-") {
            print $asked->header(-status => $path eq "/login" ? 403 : 401);
        } elsif ($path eq "/login") {
            my $cookie = $asked->cookie(-name => "user", -value => $asked->param("user"));
            print $asked->redirect(-uri => $asked->url(-base => 1) . "/", -status => 303,
                                   -cookie => $cookie);
        } elsif ($path eq "/upload") {
            my $data = $asked->param("POSTDATA");
            print $asked->header("text/plain"), length($data), " ", crc32($data);
        } elsif ($path eq "/download") {
            print $asked->header("text/plain");
            printf "%08d", $_ for 0 .. $asked->param("count") - 1;
        } elsif ($path =~ m{^/seen/}) {
            print $asked->header(-type => "text/plain", -charset => "utf-8"),
                join " ", $path, $ENV{QUERY_STRING}, $asked->http("Host"), $ENV{HTTPS} // "off";
        } else {
            print $asked->header("text/plain"), $user;
        }
    }
    """, "ruby": """
    require "cgi"
    require "fcgi"
    require "zlib"

    def answer(env, input)
      path, query = env["PATH_INFO"], CGI.parse(env["QUERY_STRING"])
      user = env["HTTP_COOKIE"].to_s[/user=(\\w+)/, 1] || "-"
      case path
      when "/login"
        fields = CGI.parse(input.read)
        return "Status: 403\\r\\n\\r\\n" if fields["password"] != ["secret word"]
        "Status: 303\\r\\nLocation: http://#{env["HTTP_HOST"]}/\\r\\n" \\
          "Set-Cookie: user=#{fields["user"][0]}\\r\\n\\r\\n"
      when "/upload"
        return "Status: 401\\r\\n\\r\\n" if user == "-"
        data = input.read
        "Content-Type: text/plain\\r\\n\\r\\n#{data.bytesize} #{Zlib.crc32(data)}"
      when "/download"
        "Content-Type: text/plain\\r\\n\\r\\n" + (0...query["count"][0].to_i).map { |n| "%08d" % n }.join
      when %r{^/seen/}
        "Content-Type: text/plain\\r\\n\\r\\n" +
          [path, env["QUERY_STRING"], env["HTTP_HOST"], env["HTTPS"] || "off"].join(" ")
      else
        "Content-Type: text/plain\\r\\n\\r\\n#{user}"
      end
    end

    FCGI.each do |request|
      request.out.print answer(request.env, request.in)
      request.finish
    end
    """, "tcl": """
    package require ncgi
    fconfigure stdout -translation binary
    set path $env(PATH_INFO)
    if {$path eq "/upload"} {
        fconfigure stdin -translation binary
        set data [read stdin $env(CONTENT_LENGTH)]
    }
    if {$path eq "/login" || $env(REQUEST_METHOD) eq "GET"} {ncgi::parse}
    set user [ncgi::cookie user]
    if {$user eq ""} {set user -}
    proc text {said} {puts -nonewline "Content-Type: text/plain; charset=utf-8\\n\\n$said"}
    if {$path eq "/login" && [ncgi::value password] ne "secret word"} {
        puts "Status: 403\\n"
    } elseif {$path eq "/login"} {
        puts "Status: 303\\nLocation: http://$env(HTTP_HOST)/\\nSet-Cookie: user=[ncgi::value user]\\n"
    } elseif {$path eq "/upload" && $user eq "-"} {
        puts "Status: 401\\n"
    } elseif {$path eq "/upload"} {
        text "[string length $data] [zlib crc32 $data]"
    } elseif {$path eq "/download"} {
        text ""
        for {set n 0} {$n < [ncgi::value count]} {incr n} {puts -nonewline [format %08d $n]}
    } elseif {[string match /seen/* $path]} {
        set secure [expr {[info exists env(HTTPS)] ? $env(HTTPS) : "off"}]
        text [encoding convertto [encoding system] "$path $env(QUERY_STRING) $env(HTTP_HOST) $secure"]
    } else {
        text $user
    }
    """}


def install(recipe, sources):
    """Writes the programs, which the function `sources` returns for each language."""
    for language, name in SOURCES.items():
        applications.write(f"{FOLDER}/{name}", sources(language))
    recipe.run("go", "build", "-o", "go-program", SOURCES["go"], cwd=FOLDER,
               env={**os.environ, "GOCACHE": str(recipe.folder / "go"), "GO111MODULE": "off"})


@pytest.fixture(scope="module")
def site(recipe):
    applications.folders(recipe, FOLDER)
    install(recipe, lambda language: textwrap.dedent(PROGRAMS[language]))
    recipe.start()
    return recipe


@pytest.fixture(params=SOURCES)
def host(site, request):
    return f"{request.param}.example.org"


@pytest.fixture
def ann(site, host):
    visitor = site.visitor(host)
    page = visitor.post("/login", {"user": "ann", "password": "secret word"})
    assert page.url == f"http://{host}/" and page.text == "ann", page
    return visitor


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_login(site, host, ann):
    assert ann.get("/").text == "ann"
    assert site.visitor(host).get("/").text == "-"
    assert site.visitor(host).post("/login", {"user": "ann", "password": "x"}).status == 403


def test_upload(site, host, ann):
    data = pattern(MB - 1)
    kind = {"Content-Type": "application/octet-stream"}
    got = ann.request("POST", "/upload", data, headers=kind)
    assert got.text == f"{len(data)} {zlib.crc32(data)}", got
    assert site.visitor(host).request("POST", "/upload", data, headers=kind).status == 401
    # The program may not have read the one before.
    assert ann.get("/").text == "ann"


def test_download(site, host):
    body = site.visitor(host).get("/download?count=200000").body
    assert body == b"".join(b"%08d" % number for number in range(200000))


def test_what_the_program_sees(site, host):
    where = "/seen/a%20b/c%2Bd/%C3%A4?q=%26&r"
    for scheme, secure in (("http", "off"), ("https", "on")):
        got = site.visitor(host, scheme).get(where)
        assert got.text == f"/seen/a b/c+d/ä q=%26&r {host} {secure}", got


def test_programs_of_the_page(site):
    def text(language):
        path = site.folder / SOURCES[language]
        site.page.write(FIRST[language], path)
        return path.read_text()

    site.server.stop()
    install(site, text)
    site.start()
    for language, name in NAMES.items():
        got = site.visitor(f"{language}.example.org").get("/some/path")
        assert got.text == f"{name}: /some/path\n", got
