# SPDX-License-Identifier: MIT
"""compress: text for clients that accept gzip: by the variants that SWEET keeps, by files that were
compressed before, and by nginx, which compresses each response.
"""

import http.client
import os
import random
import time
import zlib

from . import bars, load, report
from .nginx import Nginx
from .process import Failure
from .servers import Row, Sweet, find_program, http_connection, peer, present

SIZES, QUICK_SIZES = (10 << 10, 100 << 10), (100 << 10,)
CONNECTIONS = (16,)
CACHE_MIB = 64
ACCEPT = {"Accept-Encoding": "gzip"}
VARIANT_SECONDS = 30
GZIP = 15 + 16  # zlib: bits of the window, and the format
WORDS, LETTERS = 4000, "etaoinshrdlucmfwypvbgk"

# SWEET's targets: variants beside precompressed files; nginx, by size.
PRECOMPRESSED = 0.95
NGINX = {100 << 10: 5}


def text(size):
    """Returns words of different frequencies, as a language has; gzip leaves about 40 % of it."""
    chance = random.Random(size)
    words = ["".join(chance.choices(LETTERS, k=chance.randint(2, 9))) for _ in range(WORDS)]
    often = [1 / (rank + 3) for rank in range(WORDS)]
    return " ".join(chance.choices(words, often, k=size))[:size].encode()


def packed(body):
    """As SWEET's variants: the same library, level and memory."""
    encoder = zlib.compressobj(9, zlib.DEFLATED, GZIP, 9)
    return encoder.compress(body) + encoder.flush()


def page(size):
    return f"/{size}.txt"


def make_root(context, sizes):
    root = os.path.join(context.directory, "text")
    os.mkdir(root, 0o755)
    for size in sizes:
        for end, body in (("", text(size)), (".gz", packed(text(size)))):
            with open(root + page(size) + end, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
    return root


def start(context, root):
    context.start([
        Sweet(context, root, context.io[0], CACHE_MIB, arguments=["--compress", "gzip"]),
        Sweet(context, root, context.io[0], CACHE_MIB, name="sweet-precompressed",
              arguments=["--precompressed", "on"]),
        peer("nginx", Nginx, context, root, lines="gzip on;\n        gzip_types text/plain;")])


def fetch(server, size):
    """Returns the coding of a response and its bytes, after a check of its text."""
    client = http_connection(server.address, server.port, load.CHECK_SECONDS)
    try:
        client.request("GET", page(size), headers=ACCEPT)
        response = client.getresponse()
        body, coding = response.read(), response.getheader("Content-Encoding")
        plain = zlib.decompress(body, GZIP) if coding else body
    except (OSError, http.client.HTTPException, zlib.error) as error:
        raise Failure(f"{server.name}: {page(size)}: {error!r}") from error
    finally:
        client.close()
    load.compare(server.name, page(size), plain, text(size))
    return coding, len(body)


def coded_bytes(server, size):
    """Returns the bytes of the compressed response; SWEET makes its variant after the first."""
    limit = time.monotonic() + VARIANT_SECONDS
    while time.monotonic() < limit:
        coding, length = fetch(server, size)
        if coding:
            return length
        time.sleep(0.05)
    raise Failure(f"{server.name}: {page(size)} is not compressed")


def measure(context):
    find_program("wrk")
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    start(context, make_root(context, sizes))
    servers = present(context.servers)
    headers = [f"{name}: {value}" for name, value in ACCEPT.items()]
    for size in sizes:
        lengths = {server.name: coded_bytes(server, size) for server in servers}
        for connections in context.connections or CONNECTIONS:
            context.turns({"size": size, "connections": connections},
                          [Row(server.name, server,
                               load.Wrk(context.client_cpu, connections, lengths.get(server.name),
                                        page(size), headers=headers))
                           for server in context.servers])
        if lengths != {server.name: coded_bytes(server, size) for server in servers}:
            raise Failure(f"the compressed bytes of {page(size)} have changed")


def verdicts(cases):
    result = []
    for case in cases:
        words, mine = report.case_name(case), bars.sweet_of(case)
        rate = {row: bars.median(case, row, "requests_per_s") for row in case["runs"]}
        result.append(bars.at_least(f"requests/s, kept variant : precompressed file, {words}",
                                    rate[mine] / rate["sweet-precompressed"], PRECOMPRESSED))
        result.append(bars.at_least(f"CPU time, precompressed file : kept variant, {words}",
                                    bars.median(case, "sweet-precompressed")
                                    / bars.median(case, mine), PRECOMPRESSED))
        size = case["parameters"]["size"]
        text = f"requests/s, kept variant : nginx with gzip on, {words}"
        if size in NGINX and "nginx" in rate:
            result.append(bars.at_least(text, rate[mine] / rate["nginx"], NGINX[size]))
        elif size in NGINX:
            result += bars.uncompared(case, ["nginx"], text, NGINX[size])
    return result
