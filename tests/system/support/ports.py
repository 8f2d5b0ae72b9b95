# SPDX-License-Identifier: MIT
"""Ports for what cannot take one from the kernel: they must be known before anyone listens."""

import random
import socket

held = []  # until the end of this process


def free_port():
    """Returns a port of 127.0.0.1 that no other test gets, and that is below those which the kernel
    gives to clients and for port 0: between two uses, nobody takes it."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        least = int(file.read().split()[0])
    for port in random.sample(range(max(1024, least - 12000), least), 1000):
        # Of the network namespace, as ports are; the kernel frees the name with the process.
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0sweet-test-port-{port}")
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        held.append(lock)
        return port
    raise AssertionError(f"no port below {least} is free")
