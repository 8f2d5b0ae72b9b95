# SPDX-License-Identifier: MIT
"""nic: the instructions of the server's machine for a request through a network card, of SWEET
with each way to send, its peers, and a program that only sends.

Two guests of QEMU with one emulated CPU each, whose clocks count instructions, and a virtual
network card each; the cards are taps on a bridge in a network namespace, and what they offload
passes from one guest to the other as it is. bench/nic/ holds the program that runs in both.
"""

import json
import os
import re

from . import bars, guests, h2o, lighttpd, netns, nginx, report
from .dynamic import PAGE
from .fastcgi import compile_responder
from .guests import Maker, Missing, skipped_if_missing
from .plot import Plot
from .process import Failure
from .servers import Absent, NotInstalled, find_built, find_program, version

KB, MB = 1 << 10, 1 << 20
SERIES, QUICK_SERIES = ("6.1", "6.12"), ("6.12",)
SIZES, QUICK_SIZES = (1 * KB, 10 * KB, 100 * KB, MB), (10 * KB, MB)
CONNECTIONS = 16
# Requests of a round, by the largest size for which they suffice; what is sent once in a round,
# such as its beginning, must not matter. Routes are learnt in the warm-up, as in a server that
# has been running for some time.
REQUESTS = ((KB, 2000), (10 * KB, 1000), (100 * KB, 400), (MB, 150))
QUICK_REQUESTS = ((10 * KB, 400), (MB, 60))
WARM_UP, QUICK_WARM_UP = 400, 250
# Sent before, so that memory that will be registered is (24 times 2 MiB).
WARM_UP_BYTES = 64 * MB
ROUNDS_MAX, QUICK_ROUNDS = 3, 2
# The names, MTU, and whether cards make checksums and segments.
NETWORKS = {"offload, MTU 1500": (1500, 1), "offload, MTU 9000": (9000, 1),
            "no offload, MTU 1500": (1500, 0), "no offload, MTU 9000": (9000, 0)}
QUICK_NETWORKS = ("offload, MTU 1500",)
CARDS = {"virtio": ("virtio-net-pci", "virtio_net"), "e1000e": ("e1000e", "e1000e")}
MODULES = "veth virtio_net virtio_pci"
BASE = "/bench"  # configurations, in the server's guest
ROOT = "/tmp/root"
SERVER = "10.9.1.1"
PORT, FASTCGI_SOCKET, FASTCGI_PROCESSES = 8080, BASE + "/fcgi.sock", CONNECTIONS
NULL_COUNT = 100  # bodies that its connections go round
CACHE_MIB = 128
# The module is for one row only. It remains in use while the kernel ends the last server's ring.
IS_LOADED = "grep -q '^nabc ' /proc/modules"
UNLOAD_MODULE = f"while {IS_LOADED}; do rmmod nabc 2>/dev/null || usleep 100000; done"
LOAD_MODULE = f"{IS_LOADED} || insmod /nabc.ko"
MEMORY_MIB = 768
GUEST_SECONDS, QUICK_GUEST_SECONDS = 5000, 3000  # on a busy machine
ADDRESSES = {"server": "52:54:00:0a:09:01", "client": "52:54:00:0a:09:02"}
ACCOUNTS = {"passwd": "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
            "group": "root:x:0:\nnogroup:x:65534:\n"}

FIELD = "instructions"
COLUMNS = None  # the table below is shorter
STATIC, DYNAMIC, IDLE = "static", "dynamic", "idle"
METHODS = ("auto", "copy", "splice", "zerocopy", "kernel")
LEARNT = ("copy", "splice", "zerocopy")  # those of which a server without the module chooses
PEERS = {STATIC: ("nginx", "lighttpd", "h2o"), DYNAMIC: ("nginx-fastcgi",)}
# How they send; "send" does not wait until a full socket is writable again.
NULLS = {"null-send": "batch", "null-splice": "splice"}
SWEET = "sweet"
# Zero-copy with and without what spares the kernel looking up pages: memory that is registered
# with io_uring, and huge pages: (registered-memory, huge pages). In the first network, for bodies
# that are sent from registered memory.
PAGES = {"sweet-unregistered": ("off", 1), "sweet-small": ("on", 0),
         "sweet-small-unregistered": ("off", 0)}
USUAL_PAGES = ("on", 1)
PAGES_LEAST = 100 * KB
ROWS = {STATIC: (*(SWEET if name == "auto" else f"{SWEET}-{name}" for name in METHODS),
                 *PAGES, *PEERS[STATIC], *NULLS),
        DYNAMIC: (SWEET, *PEERS[DYNAMIC])}
QUICK_ROWS = (*(row for row in ROWS[STATIC] if row.startswith(SWEET) and row not in PAGES),
              "nginx", "null-send")

PLOTS = tuple(Plot(FIELD, "instructions of the server's machine",
                   f"a request, {body}, offload, MTU 1500", x="size", wide=True, name=body,
                   where=lambda parameters, body=body: parameters["body"] == body
                   and parameters["network"] == QUICK_NETWORKS[0])
              for body in (STATIC, DYNAMIC))

# Targets: SWEET's instructions divided by those of the best peer, with virtio-net and offload at
# MTU 1500. At 100 KB, 1.1 times those of the better null suffice.
AT_MOST = {STATIC: {KB: 0.9, 10 * KB: 0.8, 100 * KB: 0.7, MB: 0.5},
           DYNAMIC: {100 * KB: 0.25, MB: 0.25}}
NULL_SIZE, NULL_AT_MOST = 100 * KB, 1.1
BEST_METHOD = 1.05  # sweet divided by the best of its fixed methods
# Registered memory divided by the same without it: with huge pages, with small ones, and with
# these at one size.
REGISTERED = {"sweet-zerocopy": "sweet-unregistered", "sweet-small": "sweet-small-unregistered"}
REGISTERED_AT_MOST, SMALL_AT_MOST, SMALL_SIZE = 1.02, 0.9, 100 * KB
# One start of a server differs from the next by more than its rounds do: these have several.
STARTS = 3


def names(known):
    def parse(text):
        chosen = text.split(",")
        if not set(chosen) <= set(known):
            raise ValueError
        return chosen
    return parse


def add_options(parser):
    parser.add_argument("--cards", type=names(CARDS), metavar="LIST", default=["virtio"],
                        help="nic: of the server's guest: virtio, e1000e (virtio)")
    rows = list(dict.fromkeys(row for some in ROWS.values() for row in some))
    parser.add_argument("--rows", type=names(rows), metavar="LIST",
                        help=f"nic: only these: {', '.join(rows)}")


# --- what the server's guest runs -----------------------------------------------------------


def sweet_command(row):
    method = "zerocopy" if row in PAGES else row.removeprefix(SWEET).lstrip("-") or "auto"
    registered, _ = PAGES.get(row, USUAL_PAGES)
    module = LOAD_MODULE if method == "kernel" else UNLOAD_MODULE
    return (f"{module}; exec /bin/sweet --listen {SERVER}:{PORT} --root {ROOT} --threads 1"
            f" --cache-size {CACHE_MIB}M --revalidate 1000 --send-method {method}"
            f" --registered-memory {registered}"
            " --worker /generate=/bin/generate --workers 2")


def command(row, size):
    """Returns the command line that starts a row's server for bodies of a size."""
    if row.startswith(SWEET):
        return sweet_command(row)
    if row in NULLS:
        return (f"exec /bin/null-server {SERVER}:{PORT} {size} {NULL_COUNT} uring {NULLS[row]}"
                " kept")
    if row == "nginx-fastcgi":
        return (f"/bin/fcgi-generate {FASTCGI_SOCKET} {FASTCGI_PROCESSES} &"
                f" until [ -S {FASTCGI_SOCKET} ]; do usleep 10000; done;"
                f" exec /bin/nginx -e {BASE}/error.log -c {BASE}/nginx-fastcgi.conf")
    return {"nginx": f"exec /bin/nginx -e {BASE}/error.log -c {BASE}/nginx.conf",
            "lighttpd": f"exec /bin/lighttpd -D -f {BASE}/lighttpd.conf -m /lib/lighttpd",
            "h2o": f"exec /bin/h2o -m worker -c {BASE}/h2o.conf"}[row]


def configurations(largest):
    """Returns {file: text} of the peers' configurations; largest: the size of bodies."""
    location = nginx.fastcgi_location(nginx.buffers_for(largest))
    upstream = nginx.UPSTREAM.format(socket=FASTCGI_SOCKET, processes=FASTCGI_PROCESSES)
    where = {"directory": BASE, "port": PORT, "root": ROOT, "listen": SERVER}
    return {"nginx.conf": nginx.conf_text(**where),
            "nginx-fastcgi.conf": nginx.conf_text(**where, location=location, upstream=upstream),
            "lighttpd.conf": lighttpd.conf_text(**where, modules="",
                                                more=lighttpd.LIGHTTPD_FILES),
            "h2o.conf": json.dumps(h2o.configuration(**where), indent=2)}


def requests_of(size, quick=False):
    known = QUICK_REQUESTS if quick else REQUESTS
    return next((count for most, count in known if size <= most), known[-1][1])


def warm_up_of(size, quick=False):
    least = QUICK_WARM_UP if quick else WARM_UP
    return max(least, WARM_UP_BYTES // size) if size >= PAGES_LEAST else least


def idle_line(network):
    """Returns the line of a pause, to see that idle time does not count."""
    mtu, offload = NETWORKS[network]
    fields = ("|".join((network, IDLE, "", "0")), mtu, offload, 0, "/", 1, 0, 0, 1, 1, 2, 1, "-")
    return "\t".join(map(str, fields)) + "\n"


def case_line(network, body, row, size, rounds, quick=False):
    """Returns a line for bench/nic/server.c."""
    mtu, offload = NETWORKS[network]
    _, huge = PAGES.get(row, USUAL_PAGES)
    path = f"/{size}" if body == STATIC else PAGE.format(size=size)
    fields = ("|".join((network, body, row, str(size))), mtu, offload, PORT, path, size,
              int(row not in NULLS), warm_up_of(size, quick), requests_of(size, quick),
              CONNECTIONS, rounds, huge, command(row, size))
    return "\t".join(map(str, fields)) + "\n"


def compares_pages(network, size):
    return network == QUICK_NETWORKS[0] and size >= PAGES_LEAST


def has_case(network, row, size):
    return row not in PAGES or compares_pages(network, size)


def starts_of(network, row, size, rows):
    """Returns how many servers of the row are measured."""
    compared = any(row in pair and set(pair) <= set(rows) for pair in REGISTERED.items())
    return STARTS if compared and compares_pages(network, size) else 1


def case_lines(networks, bodies, sizes, rows, rounds, quick=False):
    return "".join(idle_line(network) + "".join(
        case_line(network, body, row, size, rounds, quick)
        for body in bodies for size in sizes for start in range(STARTS) for row in ROWS[body]
        if row in rows and has_case(network, row, size)
        and start < starts_of(network, row, size, rows))
        for network in networks)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


class Lab:
    """The files of the guests, in bench's directory."""

    def __init__(self, context, maker, cases, rows, largest):
        self.context, self.maker = context, maker
        self.folder = os.path.join(context.directory, "nic")
        os.mkdir(self.folder)
        self.program = maker.program("nic-guest", "bench/nic", "bench/kernel/count.c")
        self.files = [f"{self.program}:/tests/nic-guest",
                      f"{self.write_file('cases', cases)}:{BASE}/cases"]
        self.files += [f"{self.write_file(name, text)}:/etc/{name}"
                       for name, text in ACCOUNTS.items()]
        self.files += [f"{self.write_file(name, text)}:{BASE}/{name}"
                       for name, text in configurations(largest).items()]
        self.files += [f"{path}:/{place}" for path, place in self.programs(rows)]

    def write_file(self, name, text):
        return write(os.path.join(self.folder, name), text)

    def programs(self, rows):
        """Yields paths here and in the guest."""
        build = self.context.build
        yield find_built(build, "sweet", "sweet"), "bin/sweet"
        yield find_built(build, "cgi-examples", "generate"), "bin/generate"
        yield find_built(build, "bench", "null-server"), "bin/null-server"
        for name in ("nginx", "lighttpd", "h2o"):
            if any(row.startswith(name) for row in rows):
                yield find_program(name), f"bin/{name}"
        if "lighttpd" in rows:
            # It loads this unless it is told not to, and ends if it is missing.
            yield "/usr/lib/lighttpd/mod_dirlisting.so", "lib/lighttpd/mod_dirlisting.so"
        if "nginx-fastcgi" in rows:
            yield compile_responder(self.context), "bin/fcgi-generate"

    def image(self, series, kernel, card):
        driver = CARDS[card][1]
        modules = MODULES if driver in MODULES.split() else f"{MODULES} {driver}"
        return self.maker.image(series, kernel, modules, self.files)


class Inside:
    """A server in the guest, as the results name it."""

    detail = absent = ""

    def __init__(self, name, path, option):
        self.name, self.version = name, version([path, option])

    def stop(self):
        """It ends with its guest."""


def servers_of(context, rows, absent):
    found = [Inside(SWEET, find_built(context.build, "sweet", "sweet"), "--version")]
    return found + [Inside(name, find_program(name), option) for name, option
                    in (("nginx", "-v"), ("lighttpd", "-v"), ("h2o", "--version"))
                    if any(row.startswith(name) for row in rows)] + [
                        Absent(row, why) for row, why in absent.items()]


def absent_of(rows):
    """{row: why} of those whose program is not installed."""
    found = {}
    for name in ("nginx", "lighttpd", "h2o"):
        try:
            find_program(name)
        except NotInstalled as missing:
            found.update((row, missing.words(row)) for row in rows if row.startswith(name))
    return found


# --- the network ------------------------------------------------------------------------------


class Bridge:
    """A namespace with a bridge and a tap on it for each guest."""

    def __init__(self):
        self.namespace = netns.Namespace()
        try:
            self.ip("link", "add", "br0", "type", "bridge")
            for tap in ADDRESSES:
                self.ip("tuntap", "add", "dev", tap, "mode", "tap", "vnet_hdr")
                # No packet may be lost because QEMU is slow.
                self.ip("link", "set", tap, "master", "br0", "mtu", "9000",
                        "txqueuelen", "20000", "up")
            self.ip("link", "set", "br0", "mtu", "9000", "up")
        except BaseException:
            self.namespace.close()
            raise

    def ip(self, *words):
        self.namespace.run("ip", *words)

    def close(self):
        self.namespace.close()


def card_options(role, device):
    return (f" -netdev tap,id=card,ifname={role},script=no,downscript=no"
            f" -device {device},netdev=card,romfile=,mac={ADDRESSES[role]}")


# --- measuring --------------------------------------------------------------------------------


def parse_figures(text):
    """Returns [(network, body, row, size, server's, client's, segments sent again)]."""
    return [(*label.split("|")[:3], int(label.split("|")[3]), int(server), int(client), int(again))
            for label, server, client, again
            in re.findall(r"^figure\t(.*)\t(-?\d+)\t(\d+)\t(\d+)$", text, re.M)]


def run_guests(context, lab, series, kernel, card):
    """Returns the figures of a pair of guests."""
    image = lab.image(series, kernel, card)
    seconds = QUICK_GUEST_SECONDS if context.quick else GUEST_SECONDS
    bridge, pair = Bridge(), []
    try:
        for role in ADDRESSES:
            device = CARDS[card if role == "server" else "virtio"][0]
            words = {"NIC_ROLE": role, "NIC_CASES": f"{BASE}/cases"}
            pair.append(guests.Guest(f"the {role}'s guest with Linux {series}", lab.maker, kernel,
                                     image, "nic-guest", words, card_options(role, device),
                                     seconds, bridge.namespace, MEMORY_MIB))
        return parse_figures(finish(*pair))
    finally:
        for guest in pair:
            guest.end()
        bridge.close()


def finish(server, client):
    """Returns what the server's guest printed; if it fails, says what the client's did."""
    try:
        text = server.finish()
    except Failure as failure:
        raise Failure(f"{failure}\n{client.name}:\n"
                      + "\n".join(client.text().splitlines()[-6:])) from None
    client.finish()
    return text


def add_cases(context, series, card, figures, absent):
    cases = {}
    for network, body, row, size, server, client, again in figures:
        if body == IDLE:
            context.records.append({"kernel": f"Linux {series}", "card": card, "network": network,
                                    "idle_second": server})
            continue
        case = cases.setdefault((network, body, size), {
            "parameters": {"kernel": f"Linux {series}", "card": card, "network": network,
                           "body": body, "size": size}, "runs": {}})
        case["runs"].setdefault(row, []).append(
            {FIELD: server, "client_instructions": client, "retransmitted": again})
        here = {row: why for row, why in absent.items() if row in ROWS[body]}
        if here:
            case["absent"] = here
    context.cases += cases.values()


@skipped_if_missing
def measure(context):
    maker = Maker(context)
    maker.require()
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise Missing("no /dev/net/tun")
    kernels = {series: maker.kernel(series)
               for series in (QUICK_SERIES if context.quick else SERIES)}
    every = tuple(row for some in ROWS.values() for row in some)
    rows = context.options.rows or (QUICK_ROWS if context.quick else every)
    absent = absent_of(rows)
    rows = tuple(row for row in rows if row not in absent)
    networks = QUICK_NETWORKS if context.quick else tuple(NETWORKS)
    rounds = QUICK_ROUNDS if context.quick else min(context.runs, ROUNDS_MAX)
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    bodies = (STATIC,) if context.quick else (STATIC, DYNAMIC)
    lab = Lab(context, maker, case_lines(networks, bodies, sizes, rows, rounds,
                                          context.quick), rows, max(sizes))
    context.servers += servers_of(context, rows, absent)
    for card in context.options.cards:
        for series, kernel in kernels.items():
            print(f"guests:  {card}, Linux {report.read_line(os.path.join(kernel, 'release'))}",
                  flush=True)
            add_cases(context, series, card, run_guests(context, lab, series, kernel, card), absent)
    tell(context)


def tell(context):
    """A table for each kernel, card and kind of body, a column for each row."""
    groups = {}
    for case in context.cases:
        groups.setdefault(tuple(case["parameters"][name] for name in ("kernel", "card", "body")),
                          []).append(case)
    for (kernel, card, body), cases in groups.items():
        rows = list(dict.fromkeys(row for case in cases
                                  for row in (*case["runs"], *case.get("absent", {}))))
        context.table(f"{kernel}, {card}, {body}: instructions of the server's machine for a"
                      " request, and in brackets by the best peer's", ["network", "size", *rows],
                      [[case["parameters"]["network"],
                        report.size_name(case["parameters"]["size"]),
                        *(cell(case, row) for row in rows)] for case in cases])


def best_peer(case):
    return bars.least(case, PEERS[case["parameters"]["body"]], FIELD)


def cell(case, row):
    if row not in case["runs"]:
        return case.get("absent", {}).get(row, "")
    count, best = bars.median(case, row, FIELD), best_peer(case)
    if not best:
        return f"{count:,.0f}"
    return f"{count:,.0f} ({count / bars.median(case, best, FIELD):.2f})"


# --- targets ----------------------------------------------------------------------------------


def at_most(text, value, bar):
    return text, value, bar, value <= bar


def verdicts(cases):
    return [line for case in cases for line in case_verdicts(case)]


def case_verdicts(case):
    """Of virtio-net with offload; other settings are reported only."""
    parameters, runs = case["parameters"], case["runs"]
    body, size = parameters["body"], parameters["size"]
    if (parameters["card"], parameters["network"]) != ("virtio", QUICK_NETWORKS[0]) \
            or SWEET not in runs:
        return []
    where = f"{body} {report.size_name(size)}, {parameters['kernel']}"
    own, best = bars.median(case, SWEET, FIELD), best_peer(case)
    result = []
    if best and size in AT_MOST[body]:
        line = at_most(f"instructions, SWEET : best peer ({best}), {where}",
                       own / bars.median(case, best, FIELD), AT_MOST[body][size])
        null = bars.least(case, NULLS, FIELD)
        if not line[3] and body == STATIC and size == NULL_SIZE and null:
            line = at_most(f"instructions, SWEET : {null}, {where}",
                           own / bars.median(case, null, FIELD), NULL_AT_MOST)
        result.append(line)
    elif size in AT_MOST[body]:
        result += bars.uncompared(case, PEERS[body], f"instructions, SWEET : best peer, {where}",
                                  AT_MOST[body][size])
    method = bars.least(case, [f"{SWEET}-{name}" for name in LEARNT], FIELD)
    if method:
        result.append(at_most(f"instructions, SWEET : its best method ({method}), {where}",
                              own / bars.median(case, method, FIELD), BEST_METHOD))
    for row, without in REGISTERED.items():
        if row in runs and without in runs:
            small = row == "sweet-small" and size == SMALL_SIZE
            result.append(at_most(
                f"instructions, {row} : {without}, {where}",
                bars.median(case, row, FIELD) / bars.median(case, without, FIELD),
                SMALL_AT_MOST if small else REGISTERED_AT_MOST))
    return result
