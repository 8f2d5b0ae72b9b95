# SPDX-License-Identifier: MIT
"""Certificates of tests, and clients that use TLS.

With SWEET_OVER=tls, servers have TLS at addresses that a test does not choose, and the clients
of client.py use it there: the same tests run over both.
"""

import functools
import os
import select
import ssl
import threading

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "certificates")
OVER = os.environ.get("SWEET_OVER") == "tls"
ports = set()  # with TLS, of the servers that were started
if OVER:
    # For curl, which tests run as well.
    os.environ["CURL_CA_BUNDLE"] = os.path.join(FOLDER, "authority.pem")


def file(name):
    """Returns the path of a certificate (.pem) or a key (.key)."""
    return os.path.join(FOLDER, name)


def options(*names):
    """Returns the options of a server with these certificates."""
    chosen = []
    for name in names or ("ec",):
        chosen += ["--certificate", file(f"{name}.pem"), "--key", file(f"{name}.key")]
    return chosen


class Socket(ssl.SSLSocket):
    """Tells an end that was announced from a connection that was cut, which is reset below TLS.

    After share(), one thread may send while another receives: OpenSSL's calls must not overlap,
    so each is made when the socket is ready, and none waits with the lock.
    """

    lock = None
    limit = None  # seconds until a call fails, after share()

    def share(self):
        limit = self.gettimeout()
        super().settimeout(0)
        self.lock, self.limit = threading.Lock(), limit

    def settimeout(self, seconds):
        if self.lock:
            self.limit = seconds
        else:
            super().settimeout(seconds)

    def call(self, what, *arguments):
        if not self.lock:
            return what(*arguments)
        while True:
            try:
                with self.lock:
                    return what(*arguments)
            except ssl.SSLWantReadError:
                wanted = select.POLLIN
            except ssl.SSLWantWriteError:
                wanted = select.POLLOUT
            ready = select.poll()
            ready.register(self, wanted)
            if not ready.poll(None if self.limit is None else self.limit * 1000):
                raise TimeoutError

    def send(self, *arguments):
        return self.call(super().send, *arguments)

    def recv(self, *arguments):
        return self.received(super().recv, *arguments)

    def recv_into(self, *arguments):
        return self.received(super().recv_into, *arguments)

    def received(self, how, *arguments):
        try:
            return self.call(how, *arguments)
        except ssl.SSLEOFError:
            raise ConnectionResetError from None


def context(client=None, versions=None):
    """Returns a client's settings: it trusts the tests' authority, and may have a certificate."""
    made = ssl.create_default_context(cafile=file("authority.pem"))
    made.check_hostname = False
    made.sslsocket_class = Socket
    if versions:
        made.minimum_version, made.maximum_version = versions
    if client:
        made.load_cert_chain(file(f"{client}.pem"), file(f"{client}.key"))
    return made


@functools.lru_cache
def usual():
    """The settings of clients that choose none: to make them takes longer than a handshake."""
    return context()


def wrap(plain, name="test", settings=None, session=None):
    """Performs a handshake on a connected socket."""
    made = (settings or usual()).wrap_socket(plain, server_hostname=name, session=session,
                                             suppress_ragged_eofs=False)
    made.share()
    return made
