# SPDX-License-Identifier: MIT
"""A socket over which a test speaks HTTP/1.1, and which speaks HTTP/2 with the server.

With SWEET_OVER=h2, the clients of client.py use it: each request becomes a stream as soon as its
head is complete, and the responses are delivered in the order of the requests.
"""

import collections
import contextlib
import io
import os
import select
import socket
import ssl
import threading
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from http1_requests import Head
from http1_responses import Exchange

# Bytes that the server may send for a request that the test does not read; and for a test that
# has chosen a small buffer.
WINDOW, SMALL_WINDOW = 1 << 20, (1 << 16) - 1
ROOM = 1 << 16  # bytes that wait for a socket that is full
# Resets by which a response ends too soon, as when a program fails; by others the server rejects
# the client, for which HTTP/1.1 has a reset of the connection.
EARLY = {h2.errors.ErrorCodes.INTERNAL_ERROR, h2.errors.ErrorCodes.NO_ERROR}
WOULD_BLOCK = ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError


class Broken(Exception):
    """The server has sent what HTTP/2 forbids."""


class Connection(h2.connection.H2Connection):
    """Streams continue after a GOAWAY, which hyper-h2 takes for the end."""

    DEFAULT_MAX_HEADER_LIST_SIZE = 4 << 20

    def _receive_goaway_frame(self, frame):
        event = h2.events.ConnectionTerminated()
        event.error_code, event.last_stream_id = frame.error_code, frame.last_stream_id
        return [], [event]


class Socket:
    """below: a connected socket, with TLS or without; two threads may use this one, as one sends
    while the other receives."""

    def __init__(self, below, small=False):
        self.below = below
        self.limit = below.gettimeout()  # seconds that a call waits
        below.settimeout(0)
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.changed = threading.Condition()
        self.waits = 0  # for which events a thread waits below; others wait for that thread
        self.moved = False  # what other threads wait for may have happened
        self.files, self.closed = 0, False
        self.exchanges = collections.deque()
        self.sending = None  # the exchange whose body is not complete
        self.head = bytearray()
        self.finished = ""  # nothing more is delivered: "early" or "reset"
        self.lost = ""  # what became of the connection: "early" or "reset"
        self.shut = False  # the test has ended its requests
        self.last = None  # of a GOAWAY
        self.settled = False  # the server's settings have arrived
        self.out = bytearray()
        self.begin(small)

    def begin(self, small):
        self.h2 = Connection(h2.config.H2Configuration(
            header_encoding=None, validate_outbound_headers=False,
            normalize_outbound_headers=False))
        codes = h2.settings.SettingCodes
        self.h2.local_settings = h2.settings.Settings(initial_values={
            codes.ENABLE_PUSH: 0, codes.INITIAL_WINDOW_SIZE: SMALL_WINDOW if small else WINDOW,
            codes.MAX_HEADER_LIST_SIZE: Connection.DEFAULT_MAX_HEADER_LIST_SIZE})
        self.h2.initiate_connection()
        # Only streams are limited: one that is not read must not stop those before it.
        self.h2.increment_flow_control_window((1 << 31) - 1 - (1 << 16))
        with self.changed:
            self.step()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __getattr__(self, name):
        return getattr(self.below, name)

    def settimeout(self, seconds):
        self.limit = seconds

    def setblocking(self, blocks):
        self.limit = None if blocks else 0

    def gettimeout(self):
        return self.limit

    # --- what the test does ---------------------------------------------------------------

    def send(self, data, flags=0):
        """Returns how many bytes were taken; most of them are sent, as windows permit."""
        view, taken = memoryview(data).cast("B"), 0

        def take():
            nonlocal taken
            if taken:
                self.write()
            else:
                taken = self.take(view)
            return taken if taken and not self.out or not view else None

        try:
            return self.wait(take)
        except (TimeoutError, BlockingIOError):
            if taken:
                return taken
            raise

    def sendall(self, data, flags=0):
        view = memoryview(data).cast("B")
        while view:
            view = view[self.send(view):]

    def recv(self, size, flags=0):
        return self.wait(lambda: self.deliver(size))

    def recv_into(self, buffer, size=0, flags=0):
        data = self.recv(size or len(buffer))
        buffer[:len(data)] = data
        return len(data)

    def readable(self):
        """Returns True if recv() would not wait. The descriptor tells less."""
        with self.changed:
            self.step()
            return bool(self.exchanges and (self.exchanges[0].parts or self.exchanges[0].ended)
                        or self.is_over())

    def shutdown(self, how):
        with self.changed:
            if how == socket.SHUT_RDWR:
                self.hang_up("early")
                socket.socket.shutdown(self.below, how)
            else:
                self.shut = True
                if self.sending and not self.sending.ended and not self.lost:
                    # HTTP/2 has no other end for half a body.
                    self.cancel(self.sending)
                    self.sending.end("early")
                self.sending = None
                self.step()
            self.moved = True
            self.ring()

    def makefile(self, mode="r", buffering=None):
        assert mode == "rb"
        self.files += 1
        return io.BufferedReader(Reader(self))

    def close(self):
        self.closed = True
        if self.files <= 0 and self.bell is not None:
            self.below.close()
            os.close(self.bell)
            self.bell = None

    # --- requests ---------------------------------------------------------------------------

    def take(self, data):
        """Returns how many bytes at the front of data could be used."""
        self.step()
        if self.lost and not self.finished:
            raise BrokenPipeError if self.lost == "early" else ConnectionResetError
        used = 0
        while used < len(data) and len(self.out) < ROOM:
            if self.finished or self.shut or self.last is not None and not self.sending \
                    or not self.sending and self.exchanges and self.exchanges[-1].closes:
                used = len(data)  # as by a server that reads no more
                break
            part = data[used:]
            count = self.take_body(part) if self.sending else self.take_head(part)
            if not count:
                break
            used += count
        self.write()
        return used

    def take_head(self, data):
        most = self.h2.remote_settings.max_concurrent_streams if self.settled else 1
        if self.h2.open_outbound_streams >= most:
            return 0
        known = len(self.head)
        self.head += data
        start = 0
        while self.head.startswith(b"\r\n", start):
            start += 2
        end = self.head.find(b"\r\n\r\n", max(start, known - 3))
        if end < 0:
            return len(data)
        text = bytes(self.head[start:end])
        self.head.clear()
        self.start(Head(text))
        return end + 4 - known

    def start(self, head):
        stream = self.h2.get_next_available_stream_id()
        exchange = Exchange(head, stream)
        # As a client makes it of the URL, where the request names no host.
        host = head.authority or b"%s:%d" % (self.below.getpeername()[0].encode(),
                                             self.below.getpeername()[1])
        scheme = b"https" if isinstance(self.below, ssl.SSLSocket) else b"http"
        pseudo = [(b":method", head.method), (b":authority", host)]
        if head.method != b"CONNECT":
            pseudo += [(b":scheme", scheme), (b":path", head.path)]
        self.h2.send_headers(stream, pseudo + head.fields, end_stream=not exchange.body)
        self.exchanges.append(exchange)
        self.sending = exchange if exchange.body else None
        self.flush()

    def take_body(self, data):
        exchange = self.sending
        body = exchange.body
        if exchange.ended:
            count, _ = body.take(data, len(data))
        else:
            room = min(self.h2.local_flow_control_window(exchange.stream),
                       self.h2.max_outbound_frame_size)
            count, piece = body.take(data, room)
            if piece or body.over:
                self.h2.send_data(exchange.stream, piece, end_stream=body.over)
                self.flush()
        if body.over:
            self.sending = None
        return count

    def cancel(self, exchange):
        # Its reset may have arrived together with its end.
        with contextlib.suppress(h2.exceptions.StreamClosedError):
            self.h2.reset_stream(exchange.stream, h2.errors.ErrorCodes.CANCEL)
        self.flush()

    # --- responses --------------------------------------------------------------------------

    def deliver(self, size):
        """Returns the next bytes, b"" at the end, None if there is nothing yet."""
        self.step()
        pieces = []
        while self.exchanges and size:
            exchange = self.exchanges[0]
            piece, credit = exchange.take(size)
            if credit and not self.lost:
                self.h2.acknowledge_received_data(credit, exchange.stream)
                self.flush()
            pieces.append(piece)
            size -= len(piece)
            if exchange.parts or not exchange.ended:
                break
            if exchange.ended != "whole" and any(pieces):
                break
            self.exchanges.popleft()
            if exchange.ended != "whole" or exchange.closes:
                self.finish("reset" if exchange.ended == "reset" else "early")
        if self.shut and not self.exchanges and not self.finished:
            self.finish("early")
        self.write()
        data = b"".join(pieces)
        if data or not size:
            return data
        if not self.is_over():
            return None
        if (self.finished or self.lost) == "reset":
            raise ConnectionResetError
        return b""

    def is_over(self):
        return bool(self.finished or not self.exchanges
                    and (self.lost or self.shut or self.last is not None))

    def finish(self, how):
        """As if the server had closed the connection."""
        self.finished = how
        self.exchanges.clear()
        self.sending = None
        if not self.lost:
            self.h2.close_connection()
            self.flush()

    def handle(self, event):
        events = h2.events
        if isinstance(event, events.RemoteSettingsChanged):
            self.settled = True
        elif isinstance(event, events.ConnectionTerminated):
            self.last = event.last_stream_id
            for exchange in self.exchanges:
                if exchange.stream > self.last:
                    exchange.end("early")
        exchange = self.exchange_of(getattr(event, "stream_id", None))
        if isinstance(event, events.DataReceived):
            if exchange and event.data and not exchange.ended:
                exchange.receive(event.data, event.flow_controlled_length)
            elif event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif not exchange:
            return
        elif isinstance(event, events.InformationalResponseReceived):
            exchange.respond(event.headers, False, False)
        elif isinstance(event, events.ResponseReceived):
            exchange.respond(event.headers, bool(event.stream_ended),
                             self.is_last(exchange.stream))
        elif isinstance(event, events.StreamEnded):
            if exchange is self.sending:
                self.cancel(exchange)  # no client sends the rest
            exchange.end("whole")
        elif isinstance(event, events.StreamReset):
            exchange.end("early" if event.error_code in EARLY else "reset")

    def exchange_of(self, stream):
        return next((one for one in self.exchanges if one.stream == stream), None)

    def is_last(self, stream):
        """Returns True if the server has said that it handles no later request."""
        return self.last is not None and not any(
            stream < one.stream <= self.last for one in self.exchanges)

    # --- the connection -----------------------------------------------------------------------

    def flush(self):
        self.out += self.h2.data_to_send()

    def step(self):
        """Sends and receives what is possible at once."""
        self.write()
        while not self.lost and not self.finished:
            try:
                data = self.below.recv(1 << 16)
            except WOULD_BLOCK:
                break
            except OSError:
                self.hang_up("reset")
                break
            if not data:
                self.hang_up("early")
                break
            self.moved = True
            try:
                for event in self.h2.receive_data(data):
                    self.handle(event)
            except h2.exceptions.ProtocolError as fault:
                raise Broken(str(fault)) from fault
            self.flush()
        self.write()

    def write(self):
        while self.out:
            try:
                count = self.below.send(bytes(self.out[:ROOM]))
            except WOULD_BLOCK:
                return
            except OSError:
                self.out.clear()  # what the server sent before may still arrive
                count = 0
            del self.out[:count]
            self.moved = True

    def hang_up(self, how):
        """The server has closed the connection, or broken it off."""
        self.lost = "early" if self.last is not None else how
        self.moved = True
        for exchange in self.exchanges:
            exchange.end(self.lost)

    def ring(self):
        """Wakes the other threads if there is something for them."""
        if self.waits and (self.moved or self.out and not self.waits & select.POLLOUT):
            os.eventfd_write(self.bell, 1)
        if self.moved:
            self.changed.notify_all()
        self.moved = False

    def wait(self, done):
        """Returns what done() returns as soon as that is not None."""
        until = None if self.limit is None else time.monotonic() + self.limit
        with self.changed:
            while True:
                try:
                    result = done()
                finally:
                    self.ring()
                if result is not None:
                    return result
                if self.limit == 0:
                    raise BlockingIOError
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError
                if self.waits:
                    self.changed.wait(left)
                else:
                    self.wait_below(left)

    def wait_below(self, left):
        ready = select.poll()
        self.waits = select.POLLIN | (select.POLLOUT if self.out else 0)
        ready.register(self.below, self.waits)
        ready.register(self.bell, select.POLLIN)
        self.changed.release()
        try:
            ready.poll(None if left is None else left * 1000)
        finally:
            self.changed.acquire()
            self.waits = 0
            self.changed.notify()  # one of the others waits below, if this thread does not
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.bell)


class Reader(io.RawIOBase):
    """What makefile() returns, below its buffer; it keeps the socket open."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.of.recv_into(buffer)

    def close(self):
        if not self.closed:
            super().close()
            self.of.files -= 1
            if self.of.closed:
                self.of.close()
