# SPDX-License-Identifier: MIT
"""trace-export: spans of sampled traces reach a collector, whatever it does."""

import contextlib
import json
import re
import signal
import socket
import threading

import pytest

import tls
from client import Client, fetch
from collector import INTERNAL, OK, Collector
from files import MB, write
from ports import free_port
from responder import Gone
from server import TIMEOUT, refuses, running
from streams import http2, needs_h2

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
LATER = b"503 Service Unavailable"
NONE = "trace-sample=0\n"  # of requests that do not ask for it, such as those for the status


@pytest.fixture
def collector():
    with contextlib.closing(Collector()) as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "root" / "five", b"five\n")
    script = tmp_path / "cgi" / "trace"
    write(script, b"#!/bin/sh\n[ \"$QUERY_STRING\" ] && echo \"Status: $QUERY_STRING\"\n"
                  b"printf 'Content-Type: text/plain\\nContent-Length: 55\\n\\n'\n"
                  b"printf %s \"$HTTP_TRACEPARENT\"\n")
    script.chmod(0o755)
    return tmp_path


def configure(folder, keys, trace="trace=on\n"):
    write(folder / "sweet.conf", f"[sweet]\nroot={folder}/root\nthreads=1\n{trace}{keys}"
          f"[pool trace]\nprotocol=cgi\nfolder={folder}/cgi\n[path /cgi]\npool=trace\n".encode())


def serve(kind, folder, url, keys=NONE, **how):
    configure(folder, f"trace-export={url}\n{keys}")
    return running(kind, None, "--config", folder / "sweet.conf", **how)


def sampled(fields=""):
    """Returns the fields of a request that is traced."""
    return f"traceparent: 00-{TRACE}-{PARENT}-01\r\n{fields}"


def ask(server, target="/five"):
    response = fetch(server.port, target, fields=sampled())
    assert response.status == 200
    return response


def spans(server):
    return server.status()["spans"]


def results(server, **expected):
    """Waits until the status has these numbers of spans."""
    server.wait_status(lambda status: expected.items() <= status["spans"].items())


def test_request(kind, folder, collector):
    with serve(kind, folder, collector.url, "trace-service=web \"shop\"\n") as server:
        fetch(server.port, "/five?secret=1", fields="User-Agent: a \"b\"\r\n")
        span, = collector.servers(1)
    assert collector.resources[0] == {"service.name": "web \"shop\""}
    assert span["name"] == "GET" and "parentSpanId" not in span and "status" not in span
    client = span["attributes"].pop("client.port")
    assert span["attributes"] == {
        "http.request.method": "GET", "url.path": "/five", "url.scheme": "http",
        "server.address": "test", "network.protocol.version": "1.1",
        "client.address": "127.0.0.1", "user_agent.original": "a \"b\"",
        "http.response.status_code": 200} and client
    assert len(collector.spans) == 1


def test_program(kind, folder, collector):
    """The parts of its time are children, and the program is in the same trace."""
    with serve(kind, folder, collector.url) as server:
        seen = fetch(server.port, "/cgi/trace?500", fields=sampled())
        span, = collector.servers(1)
    parts = {one["name"]: one for one in collector.spans if one["kind"] == INTERNAL}
    assert seen.status == 500
    assert seen.body.decode() == f"00-{TRACE}-{span['spanId']}-01"
    assert (span["traceId"], span["parentSpanId"]) == (TRACE, PARENT)
    assert span["status"] == {"code": 2}
    assert span["attributes"]["error.type"] == "500"
    assert span["attributes"]["sweet.pool"] == "trace"
    assert parts.keys() == {"queue", "program", "send"}
    for part in parts.values():
        assert (part["traceId"], part["parentSpanId"]) == (TRACE, span["spanId"])
        assert span["begin"] <= part["begin"] <= part["end"] <= span["end"]
    assert len({one["spanId"] for one in collector.spans}) == 4


def test_sampled(folder, collector):
    """What the caller does not sample is not sent; of new traces, a part is."""
    with serve("epoll", folder, collector.url, "trace-sample=0\n") as server:
        fetch(server.port, "/five")
        assert fetch(server.port, "/cgi/trace").body.endswith(b"-00")
        fetch(server.port, "/five", fields=f"traceparent: 00-{TRACE}-{PARENT}-00\r\n")
        fetch(server.port, "/five", fields=f"traceparent: 00-{TRACE}-{PARENT}-03\r\n")
        assert collector.servers(1)[0]["traceId"] == TRACE
    with serve("epoll", folder, collector.url, "trace-sample=50.5%\n") as server:
        flags = [fetch(server.port, "/cgi/trace").body[-2:] for _ in range(60)]
    assert {*flags} == {b"00", b"01"}
    assert len(collector.servers(1 + flags.count(b"01"))) == 1 + flags.count(b"01")


def test_hostile(folder, collector):
    """Any bytes of a client become valid JSON; a method of its own is no name of a span."""
    with serve("epoll", folder, collector.url, "") as server:
        with Client(server.port) as client:
            client.send(b"BREW /%ff\xc3\xa4\xff\x01\"\\ HTTP/1.1\r\nHost: [::1]:80\r\n"
                        b"User-Agent: \xed\xa0\x80\t\x7f\xf0\x9f\x98\x80\r\n\r\n")
            status = client.response().status
        fetch(server.port, "/five", fields="User-Agent: \xff\"\\u0000\r\n")
        first, second = collector.servers(2)
    assert first["name"] == "HTTP"
    assert first["attributes"]["http.response.status_code"] == status
    assert first["attributes"]["http.request.method"] == "_OTHER"
    assert second["attributes"]["user_agent.original"].endswith("\"\\u0000")


@needs_h2
def test_http2(folder, collector):
    configure(folder, f"trace-export={collector.url}\n{NONE}")
    options = [*tls.options(), "--config", folder / "sweet.conf"]
    with running("epoll", None, *options, listen="127.0.0.1:0,tls") as server:
        plain = socket.create_connection(("127.0.0.1", server.port))
        with tls.handshake(plain, settings=tls.usual("h2")) as below:
            with http2.Socket(below) as client:
                client.sendall(b"GET /five HTTP/1.1\r\nHost: test:8443\r\n"
                               + sampled("\r\n").encode())
                assert b" 200 " in client.recv(1 << 16)
                attributes = collector.servers(1)[0]["attributes"]
    assert attributes["network.protocol.version"] == "2"
    assert (attributes["url.scheme"], attributes["url.path"]) == ("https", "/five")
    assert (attributes["server.address"], attributes["server.port"]) == ("test", 8443)


def test_nothing_by_default(folder, collector):
    configure(folder, "", trace="")
    with running("epoll", None, "--config", folder / "sweet.conf") as server:
        ask(server)
        assert not any(spans(server).values())
    assert collector.connections == 0


def test_batch(folder, collector):
    """The end sends what waits, in one request."""
    collector.gate.clear()
    with serve("epoll", folder, collector.url) as server, Client(server.port) as client:
        client.get("/five", fields=sampled())
        collector.wait(lambda it: it.bodies)
        for _ in range(600):
            client.get("/five", fields=sampled())
        assert spans(server)["waiting"] == 600
        collector.gate.set()
    assert len(collector.servers(601)) == 601 and len(collector.bodies) == 2


def test_gone(folder):
    """Nobody listens: the server serves, says so once, and its end is not delayed by retries."""
    address = f"127.0.0.1:{free_port()}"
    with serve("epoll", folder, f"http://{address}/") as server:
        ask(server)
        assert server.errors.wait(f"the collector http://{address}/ does not take spans")
        ask(server)
        assert spans(server)["accepted"] == 0
    assert server.errors.count("does not take spans") == 1
    assert re.search(r"trace-export: 2 spans were not sent", server.errors.text())


def test_back(folder, collector):
    """A collector that has no time gets the same request again, not before it wants it."""
    collector.answers = [(LATER, b"Retry-After: 1\r\n", b"busy"),
                         (b"429 Too Many Requests", b"", b""), (b"502 Bad Gateway", b"", b""),
                         (b"504 Gateway Timeout", b"", b"")][:2]
    with serve("epoll", folder, collector.url) as server:
        ask(server)
        collector.servers(1)
        results(server, accepted=1, rejected=0, lost=0)
        assert server.errors.count("status 503: busy", 1) == 1
        assert server.errors.count("status 429", 1) == 1
        assert server.errors.count("takes spans again", 1) == 1
    assert collector.bodies[0] == collector.bodies[1] == collector.bodies[2]


@pytest.mark.parametrize("status", [b"400 Bad Request", b"413 Content Too Large", b"500 Oops",
                                    b"302 Found"])
def test_refused(folder, collector, status):
    """Others are not sent again, nor elsewhere."""
    collector.answers = [(status, b"Location: /other\r\n", b"no\x1b[0m")]
    with serve("epoll", folder, collector.url) as server:
        ask(server)
        results(server, rejected=1)
        assert server.errors.wait("status %s: no" % status[:3].decode())
        ask(server)
        collector.servers(2 - 1)
        results(server, rejected=1, accepted=1)
    assert "\x1b" not in server.errors.text()


def test_part_refused(folder, collector):
    collector.answers = [(OK[0], OK[1], json.dumps({"partialSuccess": {
        "rejectedSpans": "1", "errorMessage": "one"}}).encode())]
    with serve("epoll", folder, collector.url) as server:
        ask(server)
        results(server, rejected=1, accepted=0)


class Endless(Collector):
    """Repeats the end of its first response until nobody reads it any more."""

    def __init__(self, first, then):
        self.first, self.then, self.sent = first, then, 0
        self.given_up = threading.Event()
        super().__init__()

    def collect(self, request):
        body = request.body()
        if self.given_up.is_set():
            self.keep(request, body)
            request.answer(OK[2], OK[1], OK[0])
            return
        request.send(self.first)
        try:
            while True:
                request.send(self.then)
                self.sent += len(self.then)
        except OSError:
            self.given_up.set()
            raise Gone from None


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request"])
def test_endless_body(folder, status):
    """Its status counts, as that of a whole response; the rest is not read."""
    head = f"HTTP/1.1 {status}\r\nContent-Length: {1 << 40}\r\n\r\n".encode()
    with contextlib.closing(Endless(head, b"a" * 65536)) as collector, \
            serve("epoll", folder, collector.url) as server:
        ask(server)
        accepted = status.startswith("2")
        results(server, accepted=int(accepted), rejected=int(not accepted), lost=0)
        assert collector.given_up.wait(TIMEOUT) and collector.sent < 32 * MB


def test_endless_heads(folder):
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    with contextlib.closing(Endless(hint, hint * 1000)) as collector, \
            serve("epoll", folder, collector.url) as server:
        ask(server)
        assert server.errors.wait("does not take spans: a response of more than 64 KB")
        assert collector.given_up.wait(TIMEOUT) and collector.sent < 32 * MB
        collector.servers(1)
        results(server, accepted=1, rejected=0, lost=0)


def test_full(folder, collector):
    """While the collector does not answer, spans are dropped and requests are served."""
    collector.gate.clear()
    agent = "User-Agent: " + "a" * 512 + "\r\n"
    target = "/five?" + "q" * 1500
    with serve("epoll", folder, collector.url, NONE + "max-header=16K\n") as server:
        ask(server)
        collector.wait(lambda it: it.bodies)
        with Client(server.port) as client:
            while not spans(server)["dropped"]:
                for _ in range(200):
                    assert client.get(target, fields=sampled(agent)).status == 200
        collector.gate.set()
        results(server, waiting=0)
        assert spans(server)["lost"] == 0


def test_never_answers(folder, collector):
    """The end of the server waits for a while, then gives up."""
    collector.gate.clear()
    with serve("epoll", folder, collector.url) as server:
        ask(server)
        collector.wait(lambda it: it.bodies)
    assert server.errors.count("trace-export: 1 spans were not sent") == 1


def test_certificate(folder):
    """A collector that nobody certifies gets nothing; the operator reads that once."""
    with contextlib.closing(Collector("ec")) as collector:
        # The machine may have no authorities of its own.
        with serve("epoll", folder, collector.url,
                   f"trace-ca={tls.file('stranger.pem')}\n") as server:
            ask(server)
            assert server.errors.wait("does not take spans: SSL certificate problem")
            ask(server)
        assert server.errors.count("does not take spans") == 1 and not collector.bodies


def test_trusted_certificate(folder):
    """Also where the file system is read-only."""
    with contextlib.closing(Collector("ec")) as collector:
        url = collector.url.replace("127.0.0.1", "localhost")
        with serve("epoll", folder, url, f"{NONE}read-only=on\n"
                   f"trace-ca={tls.file('authority.pem')}\n"
                   "trace-header=Authorization: Bearer a;X-Two: 2\n") as server:
            ask(server)
            collector.servers(1)
        fields = collector.heads[0].fields
    assert (fields["authorization"], fields["x-two"]) == ("Bearer a", "2")


def test_reload(folder, collector):
    """Spans from before go to the collector from before."""
    with contextlib.closing(Collector()) as other, \
            serve("epoll", folder, collector.url) as server:
        ask(server)
        # A client may have its response before the request has ended, and then has its span.
        server.wait_status(lambda status: status["spans"]["waiting"] or
                           status["spans"]["accepted"])
        configure(folder, f"trace-export={other.url}\n{NONE}trace-service=two\n")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded")
        collector.servers(1)
        ask(server)
        other.servers(1)
        assert other.resources == [{"service.name": "two"}]
        configure(folder, "")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded", 2)
        ask(server)
        results(server, waiting=0, accepted=2)
    assert len(other.spans) == len(collector.spans) == 1


def test_begun_by_reload(folder, collector):
    configure(folder, "")
    with running("epoll", None, "--config", folder / "sweet.conf") as server:
        configure(folder, f"trace-export={collector.url}\n{NONE}")
        server.send_signal(signal.SIGHUP)
        assert server.errors.wait("reloaded")
        ask(server)
        collector.servers(1)


def test_metrics(folder, collector):
    with serve("epoll", folder, collector.url) as server:
        ask(server)
        results(server, accepted=1)
        text = server.body("/.sweet/metrics").decode()
    assert 'sweet_spans_total{result="accepted"}' in text


@pytest.mark.parametrize("keys, message", [
    ("trace-export=127.0.0.1:4318", "must be a URL like"),
    ("trace-export=ftp://a/", "must be a URL like"),
    ("trace-export=http://a:b@c/", "must be a URL like"),
    ("trace-export=http:///v1", "must be a URL like"),
    ("trace-export=http://a/ b", "must be a URL like"),
    ("trace-sample=101", "must be a percentage"), ("trace-sample=1.00001", "must be a percentage"),
    ("trace-sample=x", "must be a percentage"), ("trace-sample=1%%", "must be a percentage"),
    ("trace-header=a b: c", "must be NAME: VALUE"), ("trace-header=a", "must be NAME: VALUE"),
    ("trace-service=", "must not be empty"),
    ("trace-ca=/nowhere/ca.pem", "trace-ca \"/nowhere/ca.pem\": cannot be read"),
])
def test_wrong(tmp_path, keys, message):
    refuses(tmp_path, f"[sweet]\nroot={tmp_path}\ntrace=on\n{keys}\n", message)


def test_needs_trace(tmp_path):
    refuses(tmp_path, f"[sweet]\nroot={tmp_path}\ntrace-export=http://a/\n",
            "refused.conf:3: trace-export needs trace=on")
