# SPDX-License-Identifier: MIT
"""HTTP/2 with clients that are not ours, over TLS: all bytes, many streams at once."""

import hashlib
import json
import re
import subprocess

import pytest

import tls
from files import MB, pattern, write
from go_program import build_go
from server import SCALE, TIMEOUT, VALGRIND, running
from tools import find

pytestmark = pytest.mark.clear("these choose what is below")

SIZES = [0, 1, 1000, 16_375, 16_384, 100_000, MB]
COUNT = 40  # of each size

GO = """package main

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

func main() {
	text, _ := os.ReadFile(os.Args[1])
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: "localhost"}}}
	var all sync.WaitGroup
	var lock sync.Mutex
	good := 0
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		all.Add(1)
		go func() {
			defer all.Done()
			response, err := client.Get(words[0])
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			sum := fmt.Sprintf("%x", sha256.Sum256(body))
			if err == nil && response.ProtoMajor == 2 && sum == words[1] {
				lock.Lock()
				good++
				lock.Unlock()
			}
		}()
	}
	all.Wait()
	fmt.Println(good)
}
"""

NODE = """
const http2 = require("http2"), fs = require("fs"), crypto = require("crypto");
const [url, ca] = process.argv.slice(1);
const asked = fs.readFileSync(0, "utf8").trim().split("\\n").map(line => line.split(" "));
const session = http2.connect(url, {ca: fs.readFileSync(ca), servername: "localhost"});
let good = 0, left = asked.length;
for (const [path, wanted] of asked) {
	const stream = session.request({":path": path}), sum = crypto.createHash("sha256");
	stream.on("data", data => sum.update(data));
	stream.on("close", () => {
		good += sum.digest("hex") === wanted;
		if (--left === 0) { console.log(good); session.close(); }
	});
}
"""

PAGE = """<!doctype html><title>all</title><p id="result"></p><script>
const files = FILES;
Promise.all(files.map(async ([path, wanted]) => {
	const body = await (await fetch(path)).arrayBuffer();
	const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
	return [...sum].map(byte => byte.toString(16).padStart(2, "0")).join("") === wanted;
})).then(good => {
	const used = new Set(performance.getEntriesByType("resource").map(one => one.nextHopProtocol));
	document.getElementById("result").textContent = "result " + JSON.stringify(
		{good: good.filter(Boolean).length, used: [...used]}) + " end";
});
</script>
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder, and the digests of its files."""
    folder = tmp_path_factory.mktemp("clients")
    made = {}
    for size in SIZES:
        data = pattern(size, seed=size)
        write(folder / f"{size}.bin", data)
        made[f"/{size}.bin"] = hashlib.sha256(data).hexdigest()
    return folder, made


@pytest.fixture(scope="module")
def server(kind, files):
    with running(kind, files[0], *tls.options("ec"), listen="127.0.0.1:0,tls") as made:
        made.url = f"https://localhost:{made.port}"
        yield made


def run(*command, **how):
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT * 3, **how)
    assert done.returncode == 0, done.stderr
    return done.stdout


def many(files):
    return [one for one in files[1].items() for _ in range(COUNT)]


def test_curl(server, files, tmp_path):
    asked = "".join(f'url = "{server.url}{path}?{number}"\noutput = "{tmp_path}/{number}"\n'
                    for number, (path, _) in enumerate(many(files)))
    said = run("curl", "-sS", "--parallel", "--parallel-max", "100", "--cacert",
               tls.file("authority.pem"), "-w", "%{http_version} %{response_code}\\n", "-K", "-",
               input=asked)
    assert set(said.split("\n")) == {"2 200", ""}
    for number, (_, digest) in enumerate(many(files)):
        assert hashlib.sha256((tmp_path / str(number)).read_bytes()).hexdigest() == digest


@pytest.mark.needs("nghttp")
def test_nghttp(server, files):
    said = run(find("nghttp"), "-ns", "-m", "50", *[server.url + path for path in files[1]])
    assert len(re.findall(r" 200 ", said)) == len(SIZES) * 50


@pytest.mark.needs("h2load")
def test_h2load(server, files):
    for size in SIZES:
        said = run(find("h2load"), "-n", str((2000 if size < MB else 200) // SCALE), "-c", "4",
                   "-m", "50", f"{server.url}/{size}.bin")
        assert "Application protocol: h2" in said
        assert re.search(r" (\d+) total, \1 started, \1 done, \1 succeeded, 0 failed", said), said


@pytest.mark.needs("go")
def test_go(server, files, tmp_path):
    write(tmp_path / "client.go", GO.encode())
    asked = "".join(f"{server.url}{path} {digest}\n" for path, digest in many(files))
    build_go(tmp_path / "client.go", tmp_path / "client")
    assert run(tmp_path / "client", tls.file("authority.pem"), input=asked) == \
        f"{len(SIZES) * COUNT}\n"


@pytest.mark.needs("node")
def test_node(server, files):
    asked = "".join(f"{path} {digest}\n" for path, digest in many(files))
    said = run(find("node"), "-e", NODE, server.url, tls.file("authority.pem"), input=asked)
    assert said == f"{len(SIZES) * COUNT}\n"


@pytest.mark.skipif(VALGRIND, reason="a load tells nothing of a server")
@pytest.mark.needs("chromium")
def test_chromium(server, files, tmp_path):
    folder, made = files
    asked = [[f"{path}?{number}", digest] for path, digest in made.items() for number in range(20)]
    write(folder / "all.html", PAGE.replace("FILES", json.dumps(asked)).encode())
    said = run(find("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
               "--disable-dev-shm-usage", "--disable-background-networking", "--no-proxy-server",
               "--disable-extensions", "--ignore-certificate-errors",
               f"--user-data-dir={tmp_path}/profile",
               f"--virtual-time-budget={TIMEOUT * 1000}", "--dump-dom", server.url + "/all.html")
    result = json.loads(re.search(r"result (\{.*\}) end", said)[1])
    assert result == {"good": len(asked), "used": ["h2"]}
