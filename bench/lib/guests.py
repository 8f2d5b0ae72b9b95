# SPDX-License-Identifier: MIT
"""Guests of QEMU whose instructions are counted: what they are made of, and one that runs.

tests/kernel/ fetches kernels and builds the module and the initial file system; bench/kernel/
and bench/nic/ hold the programs that run in the guests. Emulation needs no rights.
"""

import functools
import glob
import os
import subprocess

from . import process
from .process import Failure
from .servers import which

WANTED = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio",
          "depmod": "kmod", "ip": "iproute2", "xz": "xz-utils", "gcc-12": "gcc-12", "cc": "gcc"}
# Copies with "rep movsb" would count one instruction for each byte, or for any number.
MODEL, WORDS = "max,-erms,-fsrm", ("clearcpuid=rep_good",)
OUT_OF_SPECIFICATION = 4  # the taint flag that clearcpuid sets
ICOUNT = "-icount shift=0,sleep=off"
FETCH_SECONDS, BUILD_SECONDS = 900, 300
GOOD = 33  # QEMU's status if all programs of the guest succeed
MEMORY_MIB = 512


class Missing(Exception):
    """What this machine lacks, so that nothing can be measured."""


def skipped_if_missing(measure):
    """For an experiment's measure(context): what is missing is why it is skipped, or fails."""

    @functools.wraps(measure)
    def measure_or_skip(context):
        try:
            measure(context)
        except Missing as missing:
            if os.environ.get("NABC_NO_SKIP"):
                raise Failure(str(missing)) from None
            context.skipped = str(missing)

    return measure_or_skip


def run(argv, seconds, **more):
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds, check=False, text=True,
                              **more)
    except subprocess.TimeoutExpired:
        raise Failure(f"{argv[0]} does not end") from None


def must(what, argv, seconds):
    done = run(argv, seconds)
    if done.returncode:
        raise Failure(f"{what}:\n{done.stdout}")


class Maker:
    """Makes the files that a guest needs from the sources, in bench's directory."""

    def __init__(self, context):
        self.top = os.path.dirname(context.source)
        self.scripts = os.path.join(self.top, "tests/kernel")
        self.directory = context.directory
        self.kept = os.environ.get("NABC_KERNEL_CACHE") or os.path.join(context.build, "kernels")

    def script(self, name):
        return os.path.join(self.scripts, name)

    def require(self):
        for program, package in WANTED.items():
            if not which(program):
                raise Missing(f"no {program}; on Debian: apt-get install {package}")
        if not os.path.exists("/usr/include/liburing.h"):
            raise Missing("no liburing.h; on Debian: apt-get install liburing-dev")

    def kernel(self, series):
        """A folder of fetch-kernel.sh's."""
        os.makedirs(self.kept, exist_ok=True)
        kernel = os.path.join(self.kept, series)
        done = run([self.script("fetch-kernel.sh"), series, kernel], FETCH_SECONDS)
        if done.returncode == 77:
            raise Missing(done.stdout.strip().splitlines()[-1])
        if done.returncode:
            raise Failure(f"Linux {series} cannot be unpacked:\n{done.stdout}")
        return kernel

    def program(self, name, folder, *more):
        """Compiles the sources in a folder, and more files, to a static program."""
        path = os.path.join(self.directory, name)
        sources = sorted(glob.glob(os.path.join(self.top, folder, "*.c")))
        sources += [os.path.join(self.top, file) for file in more]
        must("the guest's program does not build",
             ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-static",
              "-I" + os.path.join(self.top, "kernel-shim"), "-I" + self.scripts,
              "-I" + os.path.join(self.top, "bench/kernel"), "-o", path,
              *sources, self.script("guest.c"), self.script("device.c"), "-luring"],
             BUILD_SECONDS)
        return path

    def image(self, series, kernel, modules, files):
        """The initial file system, with nabc.ko for this kernel; files: FILE:PATH each."""
        module = os.path.join(self.directory, f"module-{series}")
        image = os.path.join(self.directory, f"{series}.cpio")
        must(f"nabc.ko does not build for Linux {series}",
             [self.script("build-module.sh"), self.top, kernel, module], BUILD_SECONDS)
        must("no initial file system",
             [self.script("guest-image.sh"), kernel, image, modules,
              self.script("init") + ":/init", f"{module}/nabc.ko:/nabc.ko",
              which("ip") + ":/sbin/ip", *files], BUILD_SECONDS)
        return image


class Guest:
    """A guest with one CPU that runs one program of its image, which begins at once.

    words: variables of the program's environment. options: more of QEMU's. namespace: the network
    namespace to run it in, or None.
    """

    def __init__(self, name, maker, kernel, image, program, words, options, seconds,
                 namespace=None, memory=MEMORY_MIB):
        self.name, self.seconds = name, seconds
        self.log = os.path.join(maker.directory, "".join(filter(str.isalnum, name)) + ".log")
        argv = [maker.script("run-guest.sh"), kernel, image, *WORDS, f"TESTS={program}",
                "TEST_SECONDS=1000000", f"TAINTS={OUT_OF_SPECIFICATION}",
                *(f"{word}={value}" for word, value in words.items())]
        env = {"GUEST_SECONDS": seconds, "GUEST_CPUS": 1, "GUEST_MODEL": MODEL,
               "GUEST_MEMORY": memory, "GUEST_OPTIONS": ICOUNT + options}
        if namespace:
            argv = namespace.argv(*argv)
        with open(self.log, "wb") as output:
            self.popen = process.start(["env", *(f"{key}={value}" for key, value in env.items()),
                                        *argv], os.sched_getaffinity(0), output)

    def text(self):
        with open(self.log, errors="replace") as file:
            return file.read().replace("\r", "")

    def finish(self):
        """Waits for its end; returns what it printed, and fails unless all went well."""
        try:
            status = self.popen.wait(self.seconds + 30)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} does not end") from None
        text = self.text()
        if status != GOOD:
            raise Failure(f"{self.name} ends with {status}, not {GOOD}:\n"
                          + "\n".join(text.splitlines()[-12:]))
        return text

    def end(self):
        process.end([self.popen])
