# SPDX-License-Identifier: MIT
"""kernel: the instructions that sending a document from memory to the network takes, with
write(), sendfile(), io_uring's SEND_ZC and nabc.ko, in guests of QEMU.

Each guest has one emulated CPU whose clock counts instructions: of the sender and, over veth,
also of the receiver; behind virtio-net, the receiver is a thread of bench. bench/kernel/guest.c
does the work; tests/kernel/ builds the guests.
"""

import os
import re
import socket
import threading

from . import bars, guests, netns, report
from .guests import Maker, skipped_if_missing
from .plot import Plot

KB, MB = 1 << 10, 1 << 20
SERIES, QUICK_SERIES = ("6.1", "6.12"), ("6.12",)
SIZES, QUICK_SIZES = (10 * KB, 100 * KB, MB), (10 * KB, MB)
BYTES, QUICK_BYTES = 8 * MB, 4 * MB  # of each run
# The names in the guest, and the printed ones.
NETWORKS = {"veth-1500-offload": "veth, offload, MTU 1500",
            "veth-9000-offload": "veth, offload, MTU 9000",
            "veth-1500": "veth, no offload, MTU 1500",
            "veth-9000": "veth, no offload, MTU 9000",
            "virtio-1500": "virtio-net, offload, MTU 1500"}
OUTSIDE = "virtio-1500"
QUICK_NETWORKS = ("veth-1500-offload",)
MODULES = "veth virtio_net virtio_pci"
GUEST_SECONDS, QUICK_GUEST_SECONDS = 2400, 100
HOST, HOST_WIDTH, PORT = "10.9.1.2", 24, 80

FIELD = "instructions"
COLUMNS = None  # the tables below are shorter
PLOTS = tuple(Plot(FIELD, "instructions", f"guest instructions for a {body} document of 1 MB",
                   x="network", name=body, where=lambda parameters, body=body:
                   parameters["body"] == body and parameters["size"] == MB)
              for body in ("static", "dynamic"))

# Targets, in multiples of the module's instructions.
MODULE, SUMS, PIPE = "module", "module, kept sums", "pipe, write"
PUT = "module, put"
OFFLOAD = 3  # of write and sendfile, 1 MB
NO_OFFLOAD = 1.5  # of sendfile, 1 MB
SUMS_PERCENT = 10  # fewer than without kept sums, 1 MB, MTU 9000
# Of a pipe and write, with offload; small documents are put, large ones made in the arena.
DYNAMIC = {10 * KB: (1.2, PUT), 100 * KB: (1.5, MODULE), MB: (2.4, MODULE)}


# --- beyond virtio-net ----------------------------------------------------------------------


class Sink:
    """A namespace with a tap device, and threads that receive there as the guest's peer does."""

    def __init__(self):
        self.namespace = netns.Namespace()
        try:
            self.namespace.run("ip", "tuntap", "add", "dev", "tap0", "mode", "tap", "vnet_hdr")
            self.namespace.run("ip", "address", "add", f"{HOST}/{HOST_WIDTH}", "dev", "tap0")
            self.namespace.run("ip", "link", "set", "tap0", "up")
            with self.namespace:
                self.listener = socket.create_server((HOST, PORT))
        except BaseException:
            self.namespace.close()
            raise
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=receive, args=(connection,), daemon=True).start()

    def close(self):
        self.listener.close()
        self.namespace.close()


def receive(connection):
    room = bytearray(MB)
    with connection:
        while len(head := connection.recv(8, socket.MSG_WAITALL)) == 8:
            left = int.from_bytes(head, "little")
            while left:
                got = connection.recv_into(room, min(left, len(room)))
                if not got:
                    return
                left -= got
            connection.sendall(b"\0")


def sink_if_possible():
    """Returns None without the rights for namespaces or without /dev/net/tun."""
    if os.geteuid() or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        print("skipped: virtio-net: it needs root and /dev/net/tun", flush=True)
        return None
    return Sink()


# --- a guest --------------------------------------------------------------------------------


def guest(context, maker, series, kernel, image, networks, sizes, sink):
    """Returns its figures: [(network, body, way, size, instructions)]."""
    options = ""
    size = QUICK_BYTES if context.quick else BYTES
    if sink:
        options = (" -netdev tap,id=out,ifname=tap0,script=no,downscript=no"
                   " -device virtio-net-pci,netdev=out,romfile=")
    words = {"BENCH_SIZES": ",".join(map(str, sizes)), "BENCH_NETWORKS": ",".join(networks),
             "BENCH_RUNS": context.runs, "BENCH_BYTES": size, "BENCH_SINK": f"{HOST}:{PORT}"}
    one = guests.Guest(f"the guest with Linux {series}", maker, kernel, image, "kernel-guest",
                       words, options,
                       QUICK_GUEST_SECONDS if context.quick else GUEST_SECONDS,
                       sink and sink.namespace)
    try:
        text = one.finish()
    finally:
        one.end()
    return [(network, body, way, int(size), int(count)) for network, body, way, size, count
            in re.findall(r"^figure\t(.*)\t(.*)\t(.*)\t(\d+)\t(\d+)$", text, re.M)]


def add_cases(context, series, figures):
    cases = {}
    for network, body, way, size, instructions in figures:
        case = cases.setdefault((body, network, size), {
            "parameters": {"kernel": f"Linux {series}", "body": body,
                           "network": NETWORKS[network], "size": size}, "runs": {}})
        case["runs"].setdefault(way, []).append(
            {FIELD: instructions, "per_byte": instructions / size})
    context.cases += cases.values()


@skipped_if_missing
def measure(context):
    maker = Maker(context)
    maker.require()
    kernels = {series: maker.kernel(series)
               for series in (QUICK_SERIES if context.quick else SERIES)}
    program = maker.program("kernel-guest", "bench/kernel")
    sizes = context.pick(context.sizes, SIZES, QUICK_SIZES)
    networks = QUICK_NETWORKS if context.quick else tuple(NETWORKS)
    sink = sink_if_possible() if OUTSIDE in networks else None
    if not sink:
        networks = [name for name in networks if name != OUTSIDE]
    try:
        for series, kernel in kernels.items():
            print(f"guest:   Linux {report.read_line(os.path.join(kernel, 'release'))}", flush=True)
            image = maker.image(series, kernel, MODULES, [f"{program}:/tests/kernel-guest"])
            add_cases(context, series,
                      guest(context, maker, series, kernel, image, networks, sizes, sink))
    finally:
        if sink:
            sink.close()
    tell(context)


def tell(context):
    """A table for each kernel and kind of body, a column for each way."""
    groups = {}
    for case in context.cases:
        groups.setdefault((case["parameters"]["kernel"], case["parameters"]["body"]),
                          []).append(case)
    for (kernel, body), cases in groups.items():
        ways = list(cases[0]["runs"])
        context.table(f"{kernel}, {body} documents: instructions for one, and in brackets by the"
                      " module's", ["network", "size", *ways],
                      [[case["parameters"]["network"],
                        report.size_name(case["parameters"]["size"]),
                        *(cell(case, way) for way in ways)] for case in cases])


def cell(case, way):
    count, module = (bars.median(case, row, FIELD) for row in (way, MODULE))
    return f"{count:,.0f} ({count / module:.2f})"


# --- targets ---------------------------------------------------------------------------------


def verdicts(cases):
    return [line for case in cases for line in
            (static_verdicts if case["parameters"]["body"] == "static" else dynamic_verdicts)(case)]


def words(case):
    return ", ".join(str(case["parameters"][name]) for name in ("kernel", "network"))


def fewer(case, way, bar, text, than=MODULE):
    return bars.at_least(f"{text}: {way} / {than}, {words(case)}",
                         bars.median(case, way, FIELD) / bars.median(case, than, FIELD), bar)


def static_verdicts(case):
    network = case["parameters"]["network"]
    if case["parameters"]["size"] != MB:
        return []
    if "no offload" not in network:
        return [fewer(case, way, OFFLOAD, "static 1 MB") for way in ("write", "sendfile")]
    result = [fewer(case, "sendfile", NO_OFFLOAD, "static 1 MB")]
    if network.endswith("9000"):
        saved = 1 - bars.median(case, SUMS, FIELD) / bars.median(case, MODULE, FIELD)
        result.append(bars.at_least(f"static 1 MB: % fewer by kept sums, {words(case)}",
                                    100 * saved, SUMS_PERCENT))
    return result


def dynamic_verdicts(case):
    size = case["parameters"]["size"]
    if "no offload" in case["parameters"]["network"] or size not in DYNAMIC:
        return []
    bar, than = DYNAMIC[size]
    return [fewer(case, PIPE, bar, f"dynamic {report.size_name(size)}", than)]
