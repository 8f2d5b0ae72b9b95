# SPDX-License-Identifier: MIT
"""Certificates of tests, and clients that use TLS.

With SWEET_OVER=tls, servers have TLS at addresses that a test does not choose, and the clients
of client.py use it there: the same tests run over both. With SWEET_OVER=h2 they speak HTTP/2
over TLS (http2.py).
"""

import contextlib
import functools
import os
import select
import ssl
import threading

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "certificates")
OVER = os.environ.get("SWEET_OVER", "")
assert OVER in ("", "tls", "h2"), f"SWEET_OVER={OVER}: there are tls and h2"
HTTP2 = OVER == "h2"
RECORDS = os.environ.get("SWEET_TLS_RECORDS", "own")  # of servers whose tests choose nothing else
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
    """Tells the end of a connection, announced or not, from a reset below TLS.

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

    def receive(self, nothing, what, *arguments):
        try:
            return self.call(what, *arguments)
        except ssl.SSLEOFError as error:
            # Python 3.11.2 returns nothing by itself.
            if error.reason == "UNEXPECTED_EOF_WHILE_READING":
                return nothing
            raise ConnectionResetError from None
        except BrokenPipeError:
            # OpenSSL 3.5 answers the end with an alert, for which this end has been closed.
            return nothing

    def recv(self, *arguments):
        return self.receive(b"", super().recv, *arguments)

    def recv_into(self, *arguments):
        return self.receive(0, super().recv_into, *arguments)


def context(client=None, versions=None, protocols=()):
    """Returns a client's settings: it trusts the tests' authority, and may have a certificate."""
    made = ssl.create_default_context(cafile=file("authority.pem"))
    made.check_hostname = False
    made.sslsocket_class = Socket
    if versions:
        made.minimum_version, made.maximum_version = versions
    if protocols:
        made.set_alpn_protocols(protocols)
    if client:
        made.load_cert_chain(file(f"{client}.pem"), file(f"{client}.key"))
    return made


@functools.lru_cache
def usual(*protocols):
    """The settings of clients that choose none: to make them takes longer than a handshake."""
    return context(protocols=protocols)


def handshake(plain, name="test", settings=None, session=None):
    """Performs it on a connected socket, for one thread."""
    return (settings or usual()).wrap_socket(plain, server_hostname=name, session=session,
                                             suppress_ragged_eofs=False)


def wrap(plain, **how):
    """The same for two threads."""
    made = handshake(plain, **how)
    made.share()
    return made


class Held:
    """A client on a connected socket, whose bytes stay in memory until they are sent."""

    def __init__(self, plain, settings=None):
        self.plain = plain
        self.out, self.come = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.secure = (settings or usual()).wrap_bio(self.come, self.out, server_hostname="test")

    def begin(self):
        with contextlib.suppress(ssl.SSLWantReadError):
            self.secure.do_handshake()

    def send(self):
        self.plain.sendall(self.out.read())

    def run(self, what, *arguments, send=lambda: None):
        """Returns what(*arguments); send() is called whenever that needs bytes of the server."""
        while True:
            try:
                return what(*arguments)
            except ssl.SSLWantReadError:
                send()
                data = self.plain.recv(1 << 16)
                assert data, "the server has closed"
                self.come.write(data)


def over(plain, small=False):
    """A socket of the protocol that SWEET_OVER chooses; small: its client reads slowly.  A server that
    ends the connection in the handshake has refused it, as tests of HTTP/1.1 expect it."""
    try:
        if not HTTP2:
            return wrap(plain)
        made = handshake(plain, settings=usual("h2"))
    except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
        raise ConnectionResetError from None
    import http2  # which needs Debian's python3-h2

    assert made.selected_alpn_protocol() == "h2", "the server does not speak HTTP/2"
    return http2.Socket(made, small)
