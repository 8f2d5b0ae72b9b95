# SPDX-License-Identifier: MIT
"""A collector of OpenTelemetry in the tests' own process: it keeps the spans of requests by OTLP
with JSON, after strict checks, and answers as a test chooses."""

import json
import re
import ssl
import threading

import tls
import upstream
from server import TIMEOUT

INTERNAL, SERVER = 1, 2
OK = (b"200 OK", b"Content-Type: application/json\r\n", b"{}")


def values(attributes):
    """Returns them as a dictionary; an integer is a text of digits."""
    found = {}
    for one in attributes:
        assert one.keys() == {"key", "value"} and len(one["value"]) == 1, one
        (kind, value), = one["value"].items()
        assert kind in ("stringValue", "intValue") and isinstance(value, str), one
        assert one["key"] not in found and value, one
        found[one["key"]] = int(value) if kind == "intValue" else value
    return found


def checked(span):
    """Returns the span with its attributes as a dictionary and its times as numbers."""
    assert re.fullmatch("[0-9a-f]{32}", span["traceId"]), span
    assert re.fullmatch("[0-9a-f]{16}", span["spanId"]), span
    assert re.fullmatch("[0-9a-f]{16}", span.get("parentSpanId", "0" * 16)), span
    assert isinstance(span["startTimeUnixNano"], str) and isinstance(span["endTimeUnixNano"], str)
    begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    assert 10 ** 18 < begin <= end < 10 ** 19, span
    return {**span, "begin": begin, "end": end, "attributes": values(span.get("attributes", []))}


class Collector(upstream.Upstream):
    """answers: what the next requests get, as (status, fields, body); then OK."""

    def __init__(self, certificate=None):
        self.certificate = certificate
        self.answers, self.bodies, self.spans, self.resources = [], [], [], []
        self.heads = []
        self.changed = threading.Condition()
        self.gate = threading.Event()  # clear: requests wait for an answer
        self.gate.set()
        super().__init__(self.collect)
        self.url = f"http{'s' if certificate else ''}://{self.address}/v1/traces"

    def serve(self, accepted):
        if self.certificate:
            settings = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            settings.load_cert_chain(tls.file(f"{self.certificate}.pem"),
                                     tls.file(f"{self.certificate}.key"))
            try:
                accepted = settings.wrap_socket(accepted, server_side=True)
            except OSError:
                accepted.close()
                return
        super().serve(accepted)

    def collect(self, request):
        body = request.body()
        with self.changed:
            self.bodies.append(body)
            self.heads.append(request)
            answer = self.answers.pop(0) if self.answers else OK
            self.changed.notify_all()
        self.gate.wait(TIMEOUT)
        status, fields, text = answer
        if status.startswith(b"200"):
            self.keep(request, body)
        request.answer(text, fields, status)

    def keep(self, request, body):
        assert request.method == "POST" and request.target == "/v1/traces", request.head
        assert request.fields["content-type"] == "application/json"
        content = json.loads(body.decode())
        with self.changed:
            for resource in content["resourceSpans"]:
                self.resources.append(values(resource["resource"]["attributes"]))
                for scope in resource["scopeSpans"]:
                    assert scope["scope"]["name"] == "sweet" and scope["scope"]["version"]
                    self.spans += map(checked, scope["spans"])
            self.changed.notify_all()

    def wait(self, good):
        """Waits until good(self) is true."""
        with self.changed:
            assert self.changed.wait_for(lambda: good(self), TIMEOUT), (self.faults, self.spans,
                                                                         len(self.bodies))

    def servers(self, count):
        """Returns that many spans of the server, without their parts, by their begin."""
        def mine():
            return [span for span in self.spans if span["kind"] == SERVER]
        self.wait(lambda _: len(mine()) >= count)
        assert len(mine()) == count, mine()
        return sorted(mine(), key=lambda span: span["begin"])

    def close(self):
        self.gate.set()
        super().close()
        assert not self.faults, self.faults
