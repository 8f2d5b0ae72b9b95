# SPDX-License-Identifier: MIT
"""Node with Express by doc/recipes/node.md: a login, uploads, downloads, and events as they happen."""

import hashlib
import json
import os

import pytest

import applications
from files import MB, pattern
from recipe import is_short

# www.digitalocean.com/community/tutorials, "How To Set Up a Node.js Application for Production":
# server, server_name, location, proxy_pass, proxy_http_version, three proxy_set_header,
# proxy_cache_bypass.
NGINX = 9
HOST = "node.example.org"
APPLICATION = """
const crypto = require('crypto'), express = require('express'), fs = require('fs');
const app = express(), sessions = new Map();
let waiting = [];
app.set('trust proxy', true);
app.use((request, response, next) => {
  const found = /(?:^|; )session=(\\w+)/.exec(request.headers.cookie || '');
  request.user = found && sessions.get(found[1]);
  next();
});
app.post('/login', express.urlencoded({extended: false}), (request, response) => {
  if (request.body.password !== 'secret word') return response.status(403).send('wrong');
  const id = crypto.randomBytes(8).toString('hex');
  sessions.set(id, request.body.user);
  response.cookie('session', id, {httpOnly: true}).redirect('/');
});
app.get('/', (request, response) => response.send(`hello ${request.user || 'nobody'}`));
app.put('/files/:name', (request, response) => {
  if (!request.user) return response.sendStatus(401);
  const sum = crypto.createHash('sha256');
  request.on('data', piece => sum.update(piece));
  const file = fs.createWriteStream('/srv/node/files/' + encodeURIComponent(request.params.name));
  request.pipe(file).on('finish', () => response.status(201).json({sum: sum.digest('hex')}));
});
app.use('/files', express.static('/srv/node/files'));
app.post('/json', express.json(), (request, response) => response.json(request.body));
app.get('/stream', (request, response) => {
  let number = 0;
  (function more() {
    while (number < 3000)
      if (!response.write(Buffer.alloc(10000, String(number++ % 10))))
        return response.once('drain', more);
    response.end();
  })();
});
app.get('/events', (request, response) => {
  response.set('Content-Type', 'text/event-stream').write('data: first\\n\\n');
  waiting.push(response);
});
app.get('/ring', (request, response) => {
  for (const one of waiting) one.end('data: second\\n\\n');
  waiting = [];
  response.sendStatus(204);
});
app.get('/seen', (request, response) => response.json(
  {address: request.ip, url: `${request.protocol}://${request.hostname}${request.originalUrl}`}));
app.get('/end', request => request.socket.destroy());
process.umask(0o007);
app.listen('/run/node/app.sock');
"""


@pytest.fixture(scope="module")
def site(recipe):
    applications.folders(recipe, "/srv/node/files")
    applications.write("/srv/node/app.js", APPLICATION)
    # Debian's node finds the packages of Debian by itself, others do not.
    environment = {**os.environ, "NODE_PATH": "/usr/share/nodejs", "NODE_ENV": "production"}
    applications.serve(recipe, ["node", "/srv/node/app.js"], "/run/node/app.sock", env=environment)
    recipe.start()
    return recipe


@pytest.fixture(scope="module")
def ann(site):
    visitor = site.visitor(HOST)
    page = visitor.post("/login", {"user": "ann", "password": "secret word"})
    assert page.url == f"http://{HOST}/" and page.text == "hello ann", page
    return visitor


def test_configuration_is_short(recipe):
    is_short(recipe.page, NGINX)


def test_login(site):
    assert site.visitor(HOST).get("/").text == "hello nobody"
    assert site.visitor(HOST).post("/login", {"user": "ann", "password": "x"}).status == 403


def test_upload_and_download(site, ann):
    data = pattern(20 * MB)
    for body in (data, (data[begin:begin + MB] for begin in range(0, len(data), MB))):
        chunked = {} if body is data else {"Transfer-Encoding": "chunked"}
        got = ann.request("PUT", "/files/a%20b.bin", body, headers={"Content-Type": "x/y", **chunked})
        assert got.status == 201 and got.json() == {"sum": hashlib.sha256(data).hexdigest()}, got
    answer = site.visitor(HOST).get("/files/a%2520b.bin")
    assert answer.body == data
    part = site.visitor(HOST).get("/files/a%2520b.bin", headers={"Range": "bytes=1000000-1000099"})
    assert part.status == 206 and part.body == data[1000000:1000100], part
    again = site.visitor(HOST).get("/files/a%2520b.bin",
                                   headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status == 304 and not again.body
    assert site.visitor(HOST).request("PUT", "/files/b", b"x").status == 401


def test_json(site):
    value = {"text": "äöü" * 1000, "list": list(range(1000))}
    got = site.visitor(HOST).request("POST", "/json", json.dumps(value).encode(),
                                     headers={"Content-Type": "application/json"})
    assert got.json() == value
    assert site.visitor(HOST).request("POST", "/json", b"{", headers={
        "Content-Type": "application/json"}).status == 400


def test_stream(site):
    body = site.visitor(HOST).get("/stream").body
    assert body == b"".join(b"%d" % (number % 10) * 10000 for number in range(3000))


def test_events(site):
    applications.listen(HOST, site.visitor(HOST))


def test_what_the_application_sees(site):
    got = site.visitor(HOST).get("/seen?q=1", headers={
        "X-Forwarded-For": "1.2.3.4", "X-Forwarded-Proto": "https"}).json()
    assert got == {"address": "127.0.0.1", "url": f"http://{HOST}/seen?q=1"}
    got = site.visitor(HOST, "https").get("/seen").json()
    assert got["url"] == f"https://{HOST}/seen", got


def test_failures(site):
    visitor = site.visitor(HOST)
    assert visitor.get("/none").status == 404
    assert visitor.get("/end").status == 502
    assert visitor.get("/").status == 200
