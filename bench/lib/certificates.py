# SPDX-License-Identifier: MIT
"""What servers and clients of an experiment over TLS share: certificates, made by OpenSSL when the
experiment starts, and the cipher.
"""

import errno
import os
import shutil
import socket
import ssl
import subprocess

from .process import Failure
from .servers import find_program

KEYS = {"ecdsa": ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"], "rsa": ["rsa:2048"]}
DAYS = 2
TCP_ULP = 31  # linux/tcp.h


class Tls:
    """pem: the file with certificate and key that servers read when they start; use() chooses.

    cipher: the only one that clients offer. settings: of Python's clients, which trust these
    certificates only; settings_h2: of those that speak HTTP/2.
    """

    cipher = "TLS_AES_128_GCM_SHA256"

    def __init__(self, context):
        self.folder = os.path.join(context.directory, "certificates")
        self.pem = os.path.join(self.folder, "server.pem")
        self.by_kernel = kernel_encrypts()
        self.settings = ssl.create_default_context()
        self.settings_h2 = ssl.create_default_context()
        self.settings_h2.set_alpn_protocols(["h2"])
        os.mkdir(self.folder, 0o755)
        for kind in KEYS:
            certificate = self.make(kind)
            self.settings.load_verify_locations(certificate)
            self.settings_h2.load_verify_locations(certificate)
        self.use("ecdsa")

    def make(self, kind):
        """Returns the file of the certificate alone."""
        path = os.path.join(self.folder, kind)
        argv = [find_program("openssl"), "req", "-x509", "-newkey", *KEYS[kind], "-nodes",
                "-days", str(DAYS), "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1",
                "-keyout", path + ".key", "-out", path + ".certificate"]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60, check=False)
        if done.returncode:
            raise Failure("openssl made no certificate:\n" + done.stdout.decode(errors="replace"))
        with open(path + ".pem", "wb") as both:
            for part in (".certificate", ".key"):
                with open(path + part, "rb") as file:
                    shutil.copyfileobj(file, both)
        return path + ".certificate"

    def use(self, kind):
        """Chooses the certificate of servers that start from now on."""
        shutil.copyfile(os.path.join(self.folder, kind + ".pem"), self.pem)


def kernel_encrypts():
    """Returns whether the kernel has the module that encrypts what is written to a socket."""
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
        except OSError as error:
            return error.errno == errno.ENOTCONN  # it refuses only this socket, for its state
    return True
