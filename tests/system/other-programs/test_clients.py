# SPDX-License-Identifier: MIT
"""A whole site by clients that others wrote: each gets the bytes that are there.

A part of the site has room in the cache: files are evicted and read again while
they are being sent, and what is held can leave no room at all for a moment.
"""

import hashlib
import json
import os
import pathlib
import re
import threading

import pytest

import website
from client import http_connection
from files import MB, write
from go_program import build_go
from programs import curl, not_under_valgrind, run
from server import SCALE, TIMEOUT, running
from tools import find

# Each way to send with some clients; the others' say nothing of that.
each_kind = pytest.mark.parametrize("kind", ["uring", "epoll"], indirect=True, scope="module")
one_kind = pytest.mark.parametrize("kind", ["epoll"], indirect=True, scope="module")
HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(scope="module")
def files(site):
    return site.files[::SCALE]


@pytest.fixture(scope="module")
def server(kind, site):
    with running(kind, os.fsdecode(site.root), "--cache-size", website.CACHE) as server:
        yield server
        # Whatever they asked for, the server was never at a loss.
        assert server.status()["responses"]["5xx"] == 0


# --- curl -----------------------------------------------------------------------


def curl_all(server, files, folder, *options):
    folder.mkdir()
    config = "".join(f'url = "{server.url}{file.url}"\noutput = "{folder}/{number}"\n'
                     for number, file in enumerate(files))
    write(folder / "config", config.encode())
    curl("--fail", "--globoff", "--config", folder / "config", *options)
    for number, file in enumerate(files):
        assert website.digest_of(folder / str(number)) == file.digest, file


@each_kind
def test_curl_parallel(server, files, tmp_path):
    curl_all(server, files, tmp_path / "got", "--parallel", "--parallel-max", 20)


@each_kind
def test_curl_one_connection(server, files, tmp_path):
    curl_all(server, files, tmp_path / "got", "--compressed")
    assert SCALE > 1 or server.status()["cache"]["evictions"] > 0


@one_kind
def test_curl_http10(server, files, tmp_path):
    curl_all(server, files[::10], tmp_path / "got", "--http1.0")


# --- load generators ----------------------------------------------------------------

SLOW = "reads too slowly: resetting"


@each_kind
@not_under_valgrind
def test_wrk(server, site, files, tmp_path):
    """Its script compares each body and counts the files that have not come yet."""
    lines = (f"{file.url}\t{site.path(file)}\n" for file in files)
    write(tmp_path / "list", os.fsencode("".join(lines)))
    for seconds in (1, 4, 15, 60):  # it takes all of them, as early as it may have all files
        before = server.errors.count(SLOW)
        said = run("wrk", "-t1", "-c16", f"-d{seconds}s", "--timeout", f"{TIMEOUT}s", "-s",
                   website.LUA, server.url, tmp_path / "list")
        if " errors=0\n" not in said:
            # On a busy machine, wrk may leave a connection alone for as long as a slow client; after
            # a reset, it puts what it had of that response before the next one.
            assert server.errors.count(SLOW) > before
            continue
        assert "site wrong=0 " in said
        if " missing=0 " in said:
            return
    assert not said


@each_kind
@not_under_valgrind
@pytest.mark.needs("h2load")
def test_h2load(server, files, tmp_path):
    clients = 8  # each asks for all of the list
    write(tmp_path / "list", "".join(f"{server.url}{file.url}\n" for file in files).encode())
    count = clients * len(files)
    said = run(find("h2load"), "--h1", "-t1", "-c", clients, "-n", count, "-i", tmp_path / "list")
    assert f" {count} done, {count} succeeded, 0 failed, 0 errored, 0 timeout" in said
    assert f"status codes: {count} 2xx, 0 3xx, 0 4xx, 0 5xx" in said
    assert int(re.search(r"\((\d+)\) data$", said, re.M)[1]) == \
        clients * sum(file.size for file in files)


@one_kind
@not_under_valgrind
@pytest.mark.needs("ab")
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("size", [0, 1, 4097, 65535, 3 * MB])
def test_ab(server, site, size, keep):
    file = site.of_size(size)
    count = 20 if size > MB else 200
    said = run(find("ab"), "-q", "-c8", f"-n{count}", *(["-k"] if keep else []), server.url + file.url)
    figures = dict(re.findall(r"^([A-Z][^:\n]*): +(\d+)", said, re.M))
    assert figures["Complete requests"] == str(count)
    assert figures["Failed requests"] == "0" and "Non-2xx responses" not in figures
    assert figures["Document Length"] == str(file.size)
    assert figures["HTML transferred"] == str(count * file.size)
    assert figures.get("Keep-Alive requests") == (str(count) if keep else None)


@one_kind
@not_under_valgrind
@pytest.mark.needs("httperf")
def test_httperf(server, files, tmp_path):
    write(tmp_path / "list", b"".join(file.url.encode() + b"\0" for file in files))
    said = run(find("httperf"), "--hog", "--server=127.0.0.1", f"--port={server.port}",
               f"--wlog=n,{tmp_path}/list", "--num-conns=10", f"--num-calls={len(files) // 10}",
               f"--timeout={TIMEOUT}")
    assert f"Total: connections 10 requests {len(files)} replies {len(files)} " in said
    assert f"Reply status: 1xx=0 2xx={len(files)} 3xx=0 4xx=0 5xx=0" in said
    assert "Errors: total 0 " in said
    mean = float(re.search(r"^Reply size \[B\]: header \S+ content (\S+) ", said, re.M)[1])
    assert mean == sum(file.size for file in files) // len(files)


# --- a browser -------------------------------------------------------------------------

PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><title>all of the site</title>
<script>
const files = FILES;
async function digest(data) {
	const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", data));
	return Array.from(sum, byte => byte.toString(16).padStart(2, "0")).join("");
}
async function check() {
	const images = [...document.images], frames = [...document.getElementsByTagName("iframe")];
	const wrong = [];
	let next = 0;
	async function some() {
		while (next < files.length) {
			const [url, sum] = files[next++];
			try {
				const answer = await fetch(url, {cache: "no-store"});
				if (!answer.ok || await digest(await answer.arrayBuffer()) != sum)
					wrong.push(url);
			} catch (error) {
				wrong.push(url + " " + error);
			}
		}
	}
	await Promise.all([some(), some(), some(), some(), some(), some()]);
	document.body.textContent = "result " + JSON.stringify({
		images: images.filter(image => image.naturalWidth == 1).length,
		frames: frames.filter(frame => frame.contentDocument.title ==
			frame.contentDocument.querySelector("p").textContent.trim()).length,
		scripts: window.ran || 0,
		styles: [...document.styleSheets].filter(sheet => sheet.cssRules.length == 1).length,
		fetched: next, wrong: wrong}) + " end";
}
window.addEventListener("load", check);
</script>
"""
PARTS = {
    ".css": '<link rel="stylesheet" href="{}">\n', ".js": '<script src="{}"></script>\n',
    ".png": '<img src="{}" alt="">\n', ".html": '<iframe src="{}"></iframe>\n',
}


@one_kind
@not_under_valgrind
@pytest.mark.needs("chromium")
def test_chromium(server, site, files, tmp_path):
    """A page of all images, scripts, styles and frames; its script sums up all files."""
    parts = {suffix: [file for file in files if file.suffix == suffix] for suffix in PARTS}
    # A frame for each page would take longer than all the rest.
    parts[".html"] = parts[".html"][::8]
    page = PAGE.replace("FILES", json.dumps([[file.url, file.digest] for file in files]))
    for suffix, members in parts.items():
        page += "".join(PARTS[suffix].format(file.url.replace("&", "&amp;")) for file in members)
    write(pathlib.Path(os.fsdecode(site.root)) / "all.html", page.encode())
    said = run(find("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
               "--disable-dev-shm-usage", "--disable-background-networking",
               "--no-proxy-server", "--disable-extensions", f"--user-data-dir={tmp_path}/profile",
               f"--virtual-time-budget={TIMEOUT * 1000}", "--dump-dom", server.url + "/all.html")
    result = json.loads(re.search(r"result (\{.*\}) end", said)[1])
    assert result == {
        "images": len(parts[".png"]), "frames": len(parts[".html"]),
        "scripts": len(parts[".js"]), "styles": len(parts[".css"]),
        "fetched": len(files), "wrong": [],
    }


# --- clients of languages ---------------------------------------------------------------


@each_kind
def test_python(server, files):
    """http.client: four kept connections, each with all files in another order."""
    wrong = []

    def fetch_all(first):
        connection = http_connection(server.port)
        connection.connect()
        used = connection.sock
        for file in files[first:] + files[:first]:
            connection.request("GET", file.url)
            answer = connection.getresponse()
            sum_of_it = hashlib.sha256(answer.read()).hexdigest()
            if answer.status != 200 or sum_of_it != file.digest or connection.sock is not used:
                wrong.append(file)
        connection.close()

    threads = [threading.Thread(target=fetch_all, args=(first,), daemon=True)
               for first in range(0, len(files), len(files) // 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * TIMEOUT)
        assert not thread.is_alive()
    assert wrong == []


@pytest.fixture(scope="session")
def go_client(tmp_path_factory):
    """fetch.go, compiled."""
    program = tmp_path_factory.mktemp("go") / "fetch"
    build_go(f"{HERE}/fetch.go", program)
    return program


@each_kind
@pytest.mark.needs("go")
def test_go(server, files, go_client):
    asked = "".join(f"{file.url} {file.digest}\n" for file in files).encode()
    said = run(go_client, server.url, input=asked)
    assert said == f"{len(files)} good, 0 bad\n"
