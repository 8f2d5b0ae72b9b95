# SPDX-License-Identifier: MIT
"""HTTP servers of others behind this one: Node.js, Java and Python."""

import subprocess
import sys

import pytest

from files import MB, pattern, write
from server import running
from test_fastcgi import Client, ask
from test_upstream_http import SIZES
from upstream import config

NODE = """
require("http").createServer((request, response) => {
    let length = 0;
    request.on("data", data => length += data.length);
    request.on("end", () => {
        response.setHeader("X-Seen", [request.method, request.url, request.headers.host,
            request.headers["x-forwarded-for"], length].join(" "));
        response.write("first ");
        response.end("last");
    });
}).listen(process.argv[2], () => console.log("ready"));
"""

PYTHON = """
import http.server, socketserver, sys
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = sys.argv[2]
    def address_string(self):
        return "unix"
with Server(sys.argv[1], Handler) as server:
    print("ready", flush=True)
    server.serve_forever()
"""


JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayInputStream;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

public class Program {
    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/app", exchange -> {
            byte[] body = exchange.getRequestBody().readAllBytes();
            exchange.getResponseHeaders().set("X-Seen", exchange.getRequestMethod() + " "
                + exchange.getRequestURI() + " " + exchange.getRequestHeaders().getFirst("Host")
                + " " + exchange.getRequestHeaders().getFirst("X-Forwarded-For") + " "
                + body.length);
            // Without a length: chunks.
            exchange.sendResponseHeaders(200, exchange.getRequestURI().getPath().endsWith("chunks")
                ? 0 : body.length == 0 ? -1 : body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        System.out.println(server.getAddress().getPort());
    }
}
"""


def program(*command, cwd):
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd)
    assert started.stdout.readline() == b"ready\n"
    return started


@pytest.mark.needs("node")
def test_node(kind, tmp_path):
    write(tmp_path / "app.js", NODE.encode())
    file = config(tmp_path, [f"unix:{tmp_path}/node.sock"])
    with (program("node", "app.js", "node.sock", cwd=tmp_path) as node,
          running(kind, tmp_path, "--config", file) as server, Client(server.port) as client):
        try:
            for _ in range(10):
                got = client.get("/app/x?y")
                assert got.body == b"first last"
                assert got["X-Seen"] == "GET /app/x?y test 127.0.0.1 0"
            got = ask(server.port, "/app", "POST", pattern(3 * MB))
            assert got.data == b"first last" and got.getheader("X-Seen").endswith(f" {3 * MB}")
        finally:
            node.kill()


@pytest.mark.needs("java")
def test_java(kind, tmp_path):
    write(tmp_path / "Program.java", JAVA.encode())
    java = subprocess.Popen(["java", "Program.java"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, cwd=tmp_path)
    try:
        port = java.stdout.readline()
        if not port:
            pytest.skip("java has no compiler; on Debian: apt-get install default-jdk-headless")
        file = config(tmp_path, [f"127.0.0.1:{int(port)}"])
        with (running(kind, tmp_path, "--config", file) as server,
              Client(server.port) as client):
            for _ in range(10):
                got = client.get("/app/x?y")
                assert (got.status, got.body) == (200, b"")
                assert got["X-Seen"] == "GET /app/x?y test 127.0.0.1 0"
            for size in SIZES:
                for target in ("/app/length", "/app/chunks"):
                    got = ask(server.port, target, "POST", pattern(size))
                    assert got.data == pattern(size), (size, target)
                    assert got.getheader("X-Seen") == (
                        f"POST {target} 127.0.0.1:{server.port} 127.0.0.1 {size}")
    finally:
        java.kill()
        java.communicate()


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_python(kind, tmp_path, version):
    write(tmp_path / "server.py", PYTHON.encode())
    write(tmp_path / "app" / "file", pattern(3 * MB))
    file = config(tmp_path, [f"unix:{tmp_path}/python.sock"])
    with (program(sys.executable, "server.py", "python.sock", version, cwd=tmp_path) as python,
          running(kind, tmp_path, "--config", file) as server, Client(server.port) as client):
        try:
            for _ in range(3):
                assert client.get("/app/file").body == pattern(3 * MB)
                got = client.get("/app/file", "HEAD")
                assert got["Content-Length"] == str(3 * MB)
                assert client.get("/app/none").status == 404
            got = client.get("/app")
            assert got.status == 301 and got["Location"].endswith("/app/")
        finally:
            python.kill()
