# SPDX-License-Identifier: MIT
"""The client's side: checking what a server delivers, and the load generators.

A client loads a server: run(server, seconds) returns what it counted:

  requests    that were answered
  bytes       of the bodies
  duration    in us
  p50, p99    latency in us, or None where the program does not tell

and whatever else it knows.  Any error raises a Failure.
"""

import http.client
import os
import re
import signal
import subprocess
import tempfile

from . import process
from .process import Failure
from .servers import NO_GROUP, find_built, find_program, http_connection

GRACE_SECONDS = 20
SOON_SECONDS = 2
CHECK_SECONDS = 60  # until a server that is there is taken for one that hangs


def check(name, port, pages, address="127.0.0.1", tls=None):
    """Fails unless every (path, bytes) arrives as expected over one connection."""
    connection = http_connection(address, port, CHECK_SECONDS, tls)
    try:
        for path, expected in pages:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise Failure(f"{name}: GET {path}: status {response.status}")
            compare(name, path, body, expected)
            if response.will_close:
                raise Failure(f"{name}: GET {path}: the connection is not kept")
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{name}: check of {path} failed: {error!r}") from error
    finally:
        connection.close()


def compare(name, path, body, expected):
    if body != expected:
        raise Failure(f"{name}: GET {path}: {len(body)} bytes that are not the"
                      f" {len(expected)} expected ones; {difference(body, expected)}")


def difference(body, expected):
    for i, (got, wanted) in enumerate(zip(body, expected)):
        if got != wanted:
            return f"first difference at byte {i}"
    return "one is the beginning of the other"


def communicate(popen, seconds, ending):
    if ending:
        try:
            return popen.communicate(timeout=seconds + SOON_SECONDS)[0]
        except subprocess.TimeoutExpired:
            popen.send_signal(ending)
    return popen.communicate(timeout=seconds + GRACE_SECONDS)[0]


def run_program(name, argv, cpu, seconds, ending=None):
    """(output, status) of a load generator that is to end by itself after some seconds.

    ending: a signal that makes it tell what it has, if it does not.
    """
    popen = process.start(argv, cpu, subprocess.PIPE)
    program = os.path.basename(argv[0])
    try:
        output = communicate(popen, seconds, ending).decode(errors="replace")
    except subprocess.TimeoutExpired:
        raise Failure(f"{name}: {program} did not end in time") from None
    finally:
        if popen.poll() is None:
            popen.kill()
            popen.wait()
        popen.stdout.close()
    return output, popen.returncode


class Wrk:
    """wrk on one CPU, kept connections: bodies of one size.

    path is one page; with a count it is a format that makes as many of a number from 0.
    """

    TIMEOUT = 5  # of one request, in seconds: CGI programs of many connections wait in line

    def __init__(self, cpu, connections, size, path, count=0, headers=()):
        self.headers = [part for header in headers for part in ("-H", header)]
        self.program = find_program("wrk")
        self.cpu, self.connections, self.size = cpu, connections, size
        self.path = "/" if count else path
        self.around = [str(count), path] if count else []

    def run(self, server, seconds):
        url = f"http://{server.address}:{server.port}{self.path}"
        argv = [self.program, "-t1", f"-c{self.connections}", f"-d{seconds}s", "--latency",
                "--timeout", f"{self.TIMEOUT}s", *self.headers, "-s", script_path(), url,
                *self.around]
        output, status = run_program(server.name, argv, self.cpu, seconds)
        got = self.figures(server.name, output, status, self.size)
        return {"requests": got["requests"], "bytes": got["requests"] * self.size,
                "duration": got["duration"], "p50": got["p50"], "p99": got["p99"]}

    @staticmethod
    def figures(name, output, status, size):
        """size 0: no body need have come whole."""
        line = re.search(r"^bench (.*)$", output, re.M)
        if status or not line:
            raise Failure(f"{name}: wrk ended with status {status}:\n{output}")
        figures = {k: int(v) for k, v in (pair.split("=") for pair in line[1].split())}
        errors = [f"{figures[k]} {k}" for k in ("connect", "read", "write", "status", "timeout")
                  if figures[k]]
        if errors:
            raise Failure(f"{name}: wrk met errors ({', '.join(errors)}):\n{output}")
        if size and not figures["requests"]:
            raise Failure(f"{name}: no request was answered:\n{output}")
        # wrk takes a 3xx or a short body for success; the byte count does not.
        if figures["bytes"] < figures["requests"] * size:
            raise Failure(f"{name}: {figures['requests']} bodies of {size} bytes do not fit"
                          f" into the {figures['bytes']} bytes received:\n{output}")
        return figures


class H2load:
    """h2load on one CPU, kept connections: bodies of one size. With TLS, the client chooses the
    cipher: it offers only one.

    With HTTP/2, each connection has as many requests at a time as streams says. Many of them are
    not complete when the time is over, and how many depends on the order in which a server sends
    them: requests are therefore the bytes of bodies that have come, divided by the size.
    """

    STREAMS = 100
    # Windows never stop a server.
    PROTOCOLS = {"http/1.1": ["--h1"], "h2": ["-w30", "-W30"]}

    def __init__(self, cpu, connections, size, path, count=0, protocol="http/1.1",
                 streams=STREAMS):
        self.program = find_program("h2load")
        self.protocol = protocol
        self.options = [*self.PROTOCOLS[protocol],
                        *([f"-m{streams}"] if protocol == "h2" else [])]
        self.cpu, self.connections, self.size = cpu, connections, size
        self.paths = [path % number for number in range(count)] if count else [path]

    def run(self, server, seconds):
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            uris, log = (os.path.join(directory, name) for name in ("uris", "log"))
            with open(uris, "w") as file:
                file.write("".join(f"{server.origin}{path}\n" for path in self.paths))
            argv = [self.program, *self.options, "-t1", f"-c{self.connections}",
                    f"-D{seconds}", f"--log-file={log}", "-i", uris]
            if server.tls:
                argv.append(f"--tls13-ciphers={server.tls.cipher}")
            output, status = run_program(server.name, argv, self.cpu, seconds)
            with open(log) as file:
                # When it began, the status, and how long it took, in us.
                times = sorted(int(line.split()[2]) for line in file)
        if server.tls:
            check_cipher(server, output)
            check_protocol(server, output, self.protocol)
        return self.figures(server.name, output, status, times, seconds)

    def figures(self, name, output, status, times, seconds):
        counts = re.search(r"^requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored,"
                           r" (\d+) timeout", output, re.M)
        data = re.search(r"^traffic: .*\((\d+)\) data", output, re.M)
        good = re.search(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", output, re.M)
        if status or not (counts and data and good):
            raise Failure(f"{name}: h2load ended with status {status}:\n{output}")
        requests, *errors = map(int, counts.groups())
        if any(errors) or any(int(count) for count in good.groups()[1:]):
            raise Failure(f"{name}: h2load met errors:\n{output}")
        if int(data[1]) < requests * self.size:
            raise Failure(f"{name}: {requests} bodies of {self.size} bytes are more than the"
                          f" {data[1]} received:\n{output}")
        if self.protocol == "h2":
            requests = int(data[1]) // self.size
        if not requests:
            raise Failure(f"{name}: no request was answered:\n{output}")
        return {"requests": requests, "bytes": requests * self.size,
                "duration": seconds * 1e6, "p50": percentile(times, 50) if times else None,
                "p99": percentile(times, 99) if times else None}


def check_cipher(server, output):
    if not re.search(rf"^Cipher: {server.tls.cipher}$", output, re.M):
        raise Failure(f"{server.name}: the cipher is not {server.tls.cipher}:\n{output}")


def check_protocol(server, output, protocol):
    if not re.search(rf"^Application protocol: {re.escape(protocol)}$", output, re.M):
        raise Failure(f"{server.name}: the protocol is not {protocol}:\n{output}")


class Httperf:
    """httperf on one CPU: at that rate of requests a second, answered or not.

    calls requests by connection; one not answered in LIMIT seconds has failed.
    Errors are a result here, not a Failure: error_percent of what was asked.
    """

    LIMIT = 1
    BUFFER = 1 << 20  # httperf's own 16 KB is less than a segment of loopback
    # What goes wrong on this side; the rest of them are the server's doing.
    OWN_ERRORS = ("fd-unavail", "addrunavail", "ftab-full")

    def __init__(self, cpu, rate, size, path, count=0, calls=1):
        self.program = find_program("httperf")
        self.cpu, self.rate, self.size, self.calls = cpu, rate, size, calls
        self.paths = [path % number for number in range(count)] if count else [path]

    def run(self, server, seconds):
        connections = max(1, round(self.rate * seconds / self.calls))
        with tempfile.NamedTemporaryFile(prefix="bench-") as uris:
            uris.write(b"".join(path.encode() + b"\0" for path in self.paths))
            uris.flush()
            argv = [self.program, f"--server={server.address}", f"--port={server.port}",
                    f"--wlog=y,{uris.name}", f"--rate={self.rate / self.calls:.2f}",
                    f"--num-conns={connections}", f"--num-calls={self.calls}",
                    f"--timeout={self.LIMIT}", "--hog", f"--recv-buffer={self.BUFFER}"]
            if self.calls == 1:
                argv.append("--add-header=Connection: close\\n")
            output, status = run_program(server.name, argv, self.cpu, seconds + self.LIMIT,
                                         signal.SIGINT)
        return self.figures(server.name, output, status, connections * self.calls,
                            seconds + self.LIMIT)

    def figures(self, name, output, status, wanted, most_seconds):
        def find(pattern):
            match = re.search(pattern, output, re.M)
            if status or not match:
                raise Failure(f"{name}: httperf ended with status {status}:\n{output}")
            return match

        replies, duration = find(r"^Total: .* replies (\d+) test-duration ([\d.]+) s").groups()
        # Rarely, httperf waits forever for a response that is late.
        duration = min(float(duration), most_seconds)
        median = find(r"^Connection time \[ms\]: min .* median ([\d.]+)")[1]
        response = find(r"^Reply time \[ms\]: response ([\d.]+) transfer ([\d.]+)")
        content = float(find(r"^Reply size \[B\]: .* content ([\d.]+)")[1])
        good = int(find(r"^Reply status: .* 2xx=(\d+)")[1])
        errors = {kind: int(count) for line in find(r"^Errors: total [\s\S]*")[0].splitlines()
                  if line.startswith("Errors:")
                  for kind, count in re.findall(r"([a-z-]+) (\d+)", line)}
        replies = int(replies)
        if not replies or good != replies or (not errors["total"] and content < self.size):
            raise Failure(f"{name}: {good} of {replies} replies were good:\n{output}")
        return {"requests": replies, "bytes": replies * content, "duration": duration * 1e6,
                "p50": float(median) * 1e3 if self.calls == 1 else None, "p99": None,
                "target_per_s": self.rate, "reply_ms": float(response[1]) + float(response[2]),
                **self.error_fields(wanted, replies, errors)}

    def error_fields(self, wanted, replies, errors):
        """In percent of what was asked: all, those of this side, and the rest, the server's."""
        failed = 100 * (wanted - replies) / wanted
        own = 100 * sum(errors.get(kind, 0) for kind in self.OWN_ERRORS) * self.calls / wanted
        return {"error_percent": failed, "own_error_percent": own,
                "server_error_percent": server_errors(failed, own)}


def server_errors(failed, own):
    """Of the percentages that failed, the server's; none are fewer than none."""
    return max(0, failed - own)


def percentile(values, percent):
    """Of sorted values."""
    return values[min(len(values) - 1, len(values) * percent // 100)]


class Replay:
    """bench/client on one CPU: clients that ask for a list, each answer checked.

    file: the list, as write_list() makes it; arguments: more for bench/client.
    requests: it ends after that many, within LIMIT seconds.
    rate: of requests a second, answered or not; latencies then count from when each was due.
    """

    LIMIT = 300

    ERRORS = ("connect", "read", "write", "status", "timeout", "answer", "size")

    def __init__(self, context, clients, file, arguments=(), requests=0, rate=None):
        self.program = find_built(context.build, "bench", "client")
        self.cpu, self.requests, self.rate = context.client_cpu, requests, rate
        self.arguments = ["--clients", str(clients), "--list", file, *map(str, arguments),
                          *(["--rate", str(rate)] if rate else [])]

    def run(self, server, seconds):
        seconds = self.LIMIT if self.requests else seconds
        argv = [self.program, *self.arguments, "--seconds", str(seconds),
                *(["--requests", str(self.requests)] if self.requests else []),
                f"{server.address}:{server.port}"]
        output, status = run_program(server.name, argv, self.cpu, seconds)
        line = re.search(r"^bench (.*)$", output, re.M)
        if status or not line:
            raise Failure(f"{server.name}: client ended with status {status}:\n{output}")
        figures = {k: int(v) for k, v in (pair.split("=") for pair in line[1].split())}
        errors = [f"{figures[k]} {k}" for k in self.ERRORS if figures[k]]
        if errors:
            raise Failure(f"{server.name}: client met errors ({', '.join(errors)}):\n{output}")
        if not figures["requests"]:
            raise Failure(f"{server.name}: no request was answered:\n{output}")
        return {**{key: value for key, value in figures.items() if key not in self.ERRORS},
                **({"target_per_s": self.rate} if self.rate else {})}


class Handshakes:
    """bench/handshakes on one CPU: connections for one handshake and one request each, some at a
    time; the client checks that each is full, or resumed, as it should be."""

    UNKNOWN = 3  # its status if its OpenSSL does not know the group

    def __init__(self, context, connections, size, path, resume=False, group="X25519"):
        self.program = find_built(context.build, "bench", "handshakes")
        self.group = group
        self.cpu, self.connections, self.size, self.path = (context.client_cpu, connections, size,
                                                            path)
        self.resume = ["--resume"] if resume else []

    def run(self, server, seconds):
        output, status = self.call(server, seconds, "--connections", str(self.connections))
        line = re.search(r"^bench (.*)$", output, re.M)
        if status or not line:
            raise Failure(f"{server.name}: handshakes ended with status {status}:\n{output}")
        figures = {k: int(v) for k, v in (pair.split("=") for pair in line[1].split())}
        if not figures["requests"]:
            raise Failure(f"{server.name}: no handshake succeeded:\n{output}")
        return figures


    def call(self, server, seconds, *options):
        argv = [self.program, "--seconds", str(seconds), "--cipher", server.tls.cipher,
                "--group", self.group, *options, *self.resume, f"{server.address}:{server.port}",
                self.path, str(self.size)]
        return run_program(server.name, argv, self.cpu, seconds)

    def lacks(self, server):
        """Returns why there is no handshake with this server and the group, or ""."""
        output, status = self.call(server, 1, "--requests", "1")
        library = re.search(r"^handshakes: (.*) knows no group ", output, re.M)
        if status == self.UNKNOWN and library:
            return f"{NO_GROUP} {self.group} in {library[1]}"
        return f"{NO_GROUP} {self.group}" if status else ""


def write_list(path, requests):
    """Writes (path, bytes of its body) in order, for Replay."""
    with open(path, "w") as file:
        file.writelines(f"{page} {size}\n" for page, size in requests)


def script_path():
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "urls.lua")
