# SPDX-License-Identifier: MIT
"""A client of HTTP/2 that chooses every frame: streams by Debian's python3-h2, and raw bytes."""

import contextlib
import select
import socket
import struct

import pytest

import tls
from server import TIMEOUT, note

try:
    import h2.config
    import h2.errors
    import h2.events
    import h2.exceptions
    import h2.settings
    import http2
except ImportError:
    h2 = http2 = None

needs_h2 = pytest.mark.skipif(not h2, reason="python3-h2 is missing; on Debian: "
                                             "apt-get install python3-h2")
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, ACK = 1, 4, 8, 1
OPEN = END_STREAM | END_HEADERS
SILENCE = 2  # seconds without room in the socket, after which the server has stopped reading


def frame(kind, payload=b"", flags=0, stream=0):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A field without indexing, and without Huffman's code (RFC 7541, section 6.2.2)."""
    name, value = name.encode(), value.encode()
    assert len(name) < 127 and len(value) < 127
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def block(path="/", method="GET", **more):
    fields = {":method": method, ":path": path, ":scheme": "http", ":authority": "test", **more}
    return b"".join(literal(name, value) for name, value in fields.items())


class Reset(AssertionError):
    def __init__(self, code):
        super().__init__(f"the stream was reset: {code!r}")
        self.code = code


class Answer:
    """What has come of a response."""

    def __init__(self):
        self.status = None
        self.interim = []
        self.hints = []  # the fields of each of them
        self.fields = {}
        self.trailers = None
        self.body = b""
        self.code = None  # of a reset
        self.over = False


class Streams:
    """A session. window: of each stream, in bytes; take: whether windows are given back."""

    def __init__(self, port, secure=False, window=None, take=True, buffer=None, settings=None,
                 settle=True, **how):
        plain = socket.socket()
        if buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        plain.settimeout(TIMEOUT)
        plain.connect(("127.0.0.1", port))
        self.port, self.take = port, take
        self.socket = plain
        if secure:
            chosen = tls.context()
            chosen.set_alpn_protocols(["h2", "http/1.1"])
            self.socket = tls.wrap(plain, settings=chosen, **how)
            assert self.socket.selected_alpn_protocol() == "h2"
        self.h2 = http2.Connection(
            h2.config.H2Configuration(client_side=True, header_encoding="utf-8",
                                      validate_outbound_headers=False,
                                      normalize_outbound_headers=False))
        self.answers = {}
        self.goaway = None  # (last stream, code)
        self.pings = 0
        self.settled = False  # the server has acknowledged the settings
        self.resets = {}  # streams, and the codes
        self.ended = False
        first = {h2.settings.SettingCodes.ENABLE_PUSH: 0, **(settings or {})}
        if window is not None:
            first[h2.settings.SettingCodes.INITIAL_WINDOW_SIZE] = window
        self.h2.local_settings = h2.settings.Settings(client=True, initial_values=first)
        self.h2.initiate_connection()
        self.flush()
        self.until(lambda: self.settled or not settle)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.socket.close()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            note(self.port, "sent", data)
            self.socket.sendall(data)

    def raw(self, data):
        self.flush()
        self.socket.sendall(data)

    def open(self, path="/", method="GET", fields=(), end=True, authority="test", scheme="http"):
        """Sends the head of a request; returns the number of its stream."""
        stream = self.h2.get_next_available_stream_id()
        self.answers[stream] = Answer()
        self.h2.send_headers(stream, [(":method", method), (":path", path), (":scheme", scheme),
                                      (":authority", authority), *fields], end_stream=end)
        self.flush()
        return stream

    def content(self, stream, data, end=True):
        """Sends content as the windows permit, unless the response is complete."""
        while data and not self.answers[stream].over:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if room == 0:
                self.more()
                continue
            self.h2.send_data(stream, data[:room])
            self.flush()
            data = data[room:]
        if end and not self.answers[stream].over:
            self.h2.end_stream(stream)
            self.flush()

    def more(self):
        """Receives what is there, at least something; returns False at the end."""
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        note(self.port, "came", data)
        if not data:
            self.ended = True
            return False
        for event in self.h2.receive_data(data):
            self.event(event)
        self.flush()
        return True

    def event(self, event):
        answer = self.answers.get(getattr(event, "stream_id", None), Answer())
        if isinstance(event, h2.events.InformationalResponseReceived):
            fields = dict(event.headers)
            answer.interim.append(int(fields.pop(":status")))
            answer.hints.append(fields)
        elif isinstance(event, h2.events.ResponseReceived):
            answer.fields = dict(event.headers)
            answer.status = int(answer.fields.pop(":status"))
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers = dict(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            if self.take and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            answer.over = True
        elif isinstance(event, h2.events.StreamReset):
            self.resets[event.stream_id] = event.error_code
            if not answer.over:
                answer.code = event.error_code
            answer.over = True
        elif isinstance(event, h2.events.SettingsAcknowledged):
            self.settled = True
        elif isinstance(event, h2.events.PingAckReceived):
            self.pings += 1
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = (event.last_stream_id, h2.errors.ErrorCodes(event.error_code))

    def until(self, true):
        while not true():
            assert self.more(), f"the server has closed: {self.goaway}"

    def answer(self, stream):
        """Returns the whole response."""
        answer = self.answers[stream]
        self.until(lambda: answer.over)
        if answer.code is not None:
            raise Reset(answer.code)
        return answer

    def get(self, path="/", **how):
        return self.answer(self.open(path, **how))

    def end(self):
        """Waits until the server has closed; returns what its GOAWAY said."""
        while self.more():
            pass
        return self.goaway


class Raw:
    """Sends frames of its own, and keeps what comes. It acknowledges the server's settings."""

    def __init__(self, port, preface=PREFACE + frame(SETTINGS) + frame(SETTINGS, flags=ACK),
                 buffer=None):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(("127.0.0.1", port))
        self.data = b""
        self.frames = []  # (type, flags, stream, payload)
        self.send(preface)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.socket.close()

    def send(self, *frames):
        """Returns False if the server does not take them any more."""
        try:
            self.socket.sendall(b"".join(frames))
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def send_unread(self, data):
        """Sends without reading what comes; returns how many bytes the server has taken, which
        may stop to take any."""
        view, poll = memoryview(data), select.poll()
        poll.register(self.socket, select.POLLOUT)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while view and poll.poll(SILENCE * 1000):
                view = view[self.socket.send(view[:1 << 20], socket.MSG_DONTWAIT):]
        return len(data) - len(view)

    def more(self):
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError:
            return False
        self.data += data
        while len(self.data) >= 9:
            length = int.from_bytes(self.data[:3], "big")
            if len(self.data) < 9 + length:
                break
            kind, flags, stream = struct.unpack(">BBI", self.data[3:9])
            self.frames.append((kind, flags, stream, self.data[9:9 + length]))
            self.data = self.data[9 + length:]
        return bool(data)

    def end(self):
        """Waits for the end; returns the code of the GOAWAY, or None."""
        while self.more():
            pass
        codes = [struct.unpack(">I", payload[4:8])[0] for kind, _, _, payload in self.frames
                 if kind == GOAWAY]
        return codes[-1] if codes else None

    def until(self, kind, stream):
        while not any(frame[0] == kind and frame[2] == stream for frame in self.frames):
            assert self.more(), self.frames
