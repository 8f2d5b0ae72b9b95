# SPDX-License-Identifier: MIT
"""Network namespaces, and two of them connected by a cable (veth).

A namespace has no name and no place in the file system: a descriptor of this process holds it,
so it ends, with everything in it, when the process ends in any way. Only the thread that enters
a namespace is in it; a socket stays in the namespace in which it was created.
"""

import ctypes
import os
import re
import subprocess

from .process import LIBC, Failure

CLONE_NEWNET = 0x40000000
RUN_SECONDS = 60
SERVER, CLIENT = "10.77.0.1", "10.77.0.2"


def require():
    """Fails with a message if something is missing to make namespaces."""
    if os.geteuid() != 0:
        raise Failure("this experiment makes network namespaces: run it as root")


def call(what, *arguments):
    if getattr(LIBC, what)(*arguments) < 0:
        error = ctypes.get_errno()
        raise Failure(f"{what}: {os.strerror(error)}: this experiment needs network namespaces,"
                      " and so root with CAP_SYS_ADMIN")


def own_fd():
    """Returns a descriptor of the namespace of this thread."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Namespace:
    """One network namespace; "with" puts this thread into it for a while."""

    def __init__(self):
        require()
        self.outside = []
        before = own_fd()
        try:
            call("unshare", CLONE_NEWNET)
            self.fd = own_fd()
            call("setns", before, CLONE_NEWNET)
        finally:
            os.close(before)
        self.path = f"/proc/{os.getpid()}/fd/{self.fd}"
        self.run("ip", "link", "set", "lo", "up")

    def __enter__(self):
        self.outside.append(own_fd())
        call("setns", self.fd, CLONE_NEWNET)
        return self

    def __exit__(self, *_):
        before = self.outside.pop()
        try:
            call("setns", before, CLONE_NEWNET)
        finally:
            os.close(before)

    def argv(self, *argv):
        """Returns the command that runs argv inside."""
        return ["nsenter", f"--net={self.path}", "--", *argv]

    def run(self, *argv):
        """Runs a command inside; returns its output, or raises Failure with it."""
        try:
            done = subprocess.run(self.argv(*argv), stdin=subprocess.DEVNULL, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=RUN_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failure(f"{' '.join(argv)}: {error}") from error
        output = done.stdout.decode(errors="replace")
        if done.returncode:
            raise Failure(f"{' '.join(argv)} (in a network namespace): {output.strip()}")
        return output

    def set(self, key, value):
        """Writes a sysctl of this namespace, like "ipv4/tcp_fastopen"."""
        with self, open(f"/proc/sys/net/{key}", "w") as file:
            file.write(str(value))

    def counters(self):
        """Returns {name: count} of its TCP, as netstat -s."""
        counters = {}
        with self:
            for name in ("snmp", "netstat"):
                with open(f"/proc/thread-self/net/{name}") as file:
                    lines = file.read().splitlines()
                for heads, values in zip(lines[::2], lines[1::2]):
                    kind = heads.split(":")[0]
                    counters.update(zip((kind + head for head in heads.split()[1:]),
                                        map(int, values.split()[1:])))
        return counters

    def hardware(self, device):
        """Returns the hardware address of a device in it."""
        return re.search(r"link/ether (\S+)", self.run("ip", "link", "show", device))[1]

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def cpu_mask(cpu):
    """Returns one CPU in the kernel's format of sets: words of 32 bits, the highest first."""
    return ",".join([f"{1 << cpu % 32:x}", *["0"] * (cpu // 32)])


class Pair:
    """A namespace for the server and one for the client, each an end of a cable.

    The ends know each other's hardware address, so nothing has to be asked
    for on the cable.
    """

    def __init__(self, device="veth0"):
        self.device = device
        self.addresses = SERVER, CLIENT
        self.server = self.client = None
        try:
            self.server, self.client = Namespace(), Namespace()
            self.server.run("ip", "link", "add", device, "type", "veth", "peer", "name", device,
                            "netns", self.client.path)
            ends = self.server, self.client
            for end, address in zip(ends, self.addresses):
                end.set(f"ipv6/conf/{device}/disable_ipv6", 1)
                end.run("ip", "address", "add", address + "/24", "dev", device)
                end.run("ip", "link", "set", device, "up")
            for end, other, address in zip(ends, ends[::-1], self.addresses[::-1]):
                end.run("ip", "neighbour", "replace", address, "lladdr", other.hardware(device),
                        "dev", device, "nud", "permanent")
        except BaseException:
            self.close()
            raise

    def offload(self, *features):
        """Switches features of both ends, by ethtool's words: "tx", "off"."""
        for end in (self.server, self.client):
            end.run("ethtool", "-K", self.device, *features)

    def steer(self, server_cpu, client_cpu):
        """Makes each end process what it receives on its own CPU, as a machine of its own
        would."""
        file = f"/sys/class/net/{self.device}/queues/rx-0/rps_cpus"
        for end, cpu in ((self.server, server_cpu), (self.client, client_cpu)):
            # The /sys of a namespace must be mounted from inside.
            end.run("unshare", "--mount", "sh", "-c",
                    f"mount -t sysfs sysfs /sys && echo {cpu_mask(cpu)} >{file}")

    def close(self):
        for end in (self.server, self.client):
            if end:
                end.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
