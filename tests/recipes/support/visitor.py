# SPDX-License-Identifier: MIT
"""A user of a site: requests by name with cookies and redirects, forms that are sent back, files that
are uploaded."""

import html
import http.client
import http.cookiejar
import io
import json
import re
import socket
import urllib.parse
import urllib.request
import uuid
from html.parser import HTMLParser

import tls
from server import TIMEOUT, note

REDIRECTS = 10
WAIT = 3 * TIMEOUT  # seconds; some pages of installers take longer than others


class Answer:
    def __init__(self, answer, url):
        self.status = answer.status
        self.headers = answer.headers
        self.body = answer.read()
        self.url = url  # after redirects

    @property
    def text(self):
        return self.body.decode(errors="replace")

    def json(self):
        return json.loads(self.body)

    def links(self, pattern):
        """Returns what the page refers to by href and src, as far as the pattern is found there."""
        found = [html.unescape(link) for link in
                 re.findall(r"""\s(?:href|src)=(?:"([^"]*)"|'([^']*)')""", self.text)
                 for link in link if link]
        return sorted({link for link in found if re.search(pattern, link)})

    def forms(self):
        return Forms(self.text).forms

    def form(self, where):
        """Returns the one form that has this id, name, part of its action, or field."""
        found = [form for form in self.forms() if where in (form.id, form.name)
                 or where in form.action or where in form.fields]
        assert len(found) == 1, f"{len(found)} forms with {where} in {self.url}: {self.text[:2000]}"
        return found[0]

    def __repr__(self):
        return f"{self.status} {self.url}\n{self.headers}{self.text[:3000]}"


class Form:
    def __init__(self, attributes):
        self.id = attributes.get("id")
        self.name = attributes.get("name")
        self.action = attributes.get("action") or ""
        self.method = (attributes.get("method") or "get").lower()
        self.multipart = attributes.get("enctype") == "multipart/form-data"
        self.fields = {}
        self.buttons = {}


class Forms(HTMLParser):
    """Collects the forms of a page with what their fields have at first."""

    def __init__(self, text):
        super().__init__()
        self.forms = []
        self.inside = None  # the form
        self.area = None  # the name of the text area or the selection, and of its value
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        name, value = attributes.get("name"), attributes.get("value") or ""
        if tag == "form":
            self.inside = Form(attributes)
            self.forms.append(self.inside)
        elif not self.inside:
            return
        elif tag == "option":
            if self.area and ("selected" in attributes or self.area not in self.inside.fields):
                self.inside.fields[self.area] = value
        elif not name:
            return
        elif tag == "input":
            self.take_input(attributes.get("type") or "text", name, value, "checked" in attributes)
        elif tag == "button":
            self.inside.buttons[name] = value
        elif tag == "textarea":
            self.area = name
            self.inside.fields[name] = ""
        elif tag == "select":
            self.area = name

    def take_input(self, kind, name, value, checked):
        if kind in ("submit", "image", "button"):
            self.inside.buttons[name] = value
        elif kind in ("checkbox", "radio"):
            if checked:
                self.inside.fields[name] = value or "on"
        elif kind != "file":
            self.inside.fields[name] = value

    def handle_endtag(self, tag):
        if tag == "form":
            self.inside = None
        if tag in ("textarea", "select"):
            self.area = None

    def handle_data(self, data):
        if self.inside and self.area and self.lasttag == "textarea":
            # A parser of HTML drops the first end of line.
            self.inside.fields[self.area] += data.removeprefix("\n")


class All(urllib.request.HTTPErrorProcessor):
    """Every status is an answer."""

    def http_response(self, request, response):
        return response

    https_response = http_response


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.create_connection(("127.0.0.1", self.port), WAIT)


class SecureConnection(http.client.HTTPSConnection):
    def connect(self):
        self.sock = tls.usual().wrap_socket(socket.create_connection(("127.0.0.1", self.port), WAIT),
                                            server_hostname="localhost")


class Handler(urllib.request.HTTPHandler):
    def http_open(self, request):
        return self.do_open(Connection, request)


class SecureHandler(urllib.request.HTTPSHandler):
    def https_open(self, request):
        return self.do_open(SecureConnection, request)


class Visitor:
    """Of one site; whatever its name, it is on this machine."""

    def __init__(self, host, scheme="http"):
        self.url = f"{scheme}://{host}"
        self.cookies = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), Handler, SecureHandler, All,
            urllib.request.HTTPCookieProcessor(self.cookies))

    def request(self, method, where, body=None, follow=True, headers=()):
        """where: a path, or a URL of this site."""
        url = join(f"{self.url}/", where if not where.startswith("//") else self.url + where)
        for _ in range(REDIRECTS):
            note(self.url, "sent", f"{method} {url}".encode())
            request = urllib.request.Request(url, body, dict(headers), method=method)
            with self.opener.open(request, timeout=WAIT) as said:
                answer = Answer(said, url)
            place = answer.headers["Location"]
            if not follow or answer.status not in (301, 302, 303, 307, 308) or not place:
                return answer
            url = join(url, place)
            assert url.startswith(self.url), f"a redirect leads away: {answer}"
            if answer.status < 304:
                method, body, headers = "HEAD" if method == "HEAD" else "GET", None, ()
        raise AssertionError(f"{REDIRECTS} redirects: {answer}")

    def get(self, where, **how):
        return self.request("GET", where, **how)

    def post(self, where, fields=(), files=(), headers=(), **how):
        """fields: a dictionary or pairs; files: {field: (name, type, data)}."""
        fields = list(dict(fields).items() if isinstance(fields, dict) else fields)
        if files:
            kind, body = multipart(fields, dict(files))
        else:
            kind = "application/x-www-form-urlencoded"
            body = urllib.parse.urlencode(fields).encode()
        return self.request("POST", where, body, headers={"Content-Type": kind, **dict(headers)}, **how)

    def submit(self, answer, form, changes=(), files=(), button=None, **how):
        """Sends a form of a page back, as a browser does when its button is pressed."""
        form = answer.form(form)
        fields = {**form.fields, **dict(changes)}
        if button:
            fields[button] = form.buttons[button]
        place = join(answer.url, form.action)
        if form.method == "get":
            return self.get(f"{place.partition('?')[0]}?{urllib.parse.urlencode(fields)}", **how)
        if form.multipart and not files:
            kind, body = multipart(list(fields.items()), {})
            return self.request("POST", place, body, headers={"Content-Type": kind}, **how)
        return self.post(place, fields, files, **how)


def join(base, where):
    """As urljoin(), which drops a semicolon at the end."""
    if where.startswith("/") and not where.startswith("//"):
        parts = urllib.parse.urlsplit(base)
        where = f"{parts.scheme}://{parts.netloc}{where}"
    found = where if re.match(r"https?://", where) else urllib.parse.urljoin(base, where)
    return found.partition("#")[0]


def multipart(fields, files):
    """Returns the content type and the body of a form with files (RFC 7578)."""
    edge = uuid.uuid4().hex
    body = io.BytesIO()
    for name, value in fields:
        body.write(f'--{edge}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
                   f"{value}\r\n".encode())
    for name, (file, kind, data) in files.items():
        body.write(f'--{edge}\r\nContent-Disposition: form-data; name="{name}"; filename="{file}"\r\n'
                   f"Content-Type: {kind}\r\n\r\n".encode() + data + b"\r\n")
    body.write(f"--{edge}--\r\n".encode())
    return f"multipart/form-data; boundary={edge}", body.getvalue()
