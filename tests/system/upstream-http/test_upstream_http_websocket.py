# SPDX-License-Identifier: MIT
"""Conversations of WebSocket (RFC 6455, and 7692 for compression) with an echo server behind, by the
kinds of frames that a conformance suite sends, good and bad: each is the same, byte for byte, with
and without the server between the two ends."""

import os
import struct
import threading
import zlib

import pytest

from client import request
from files import KB, MB
from server import SCALE, TIMEOUT
from test_fastcgi import Client

try:
    import wsproto
    from wsproto import events, extensions
except ImportError:
    wsproto = None

pytestmark = [
    pytest.mark.http1("HTTP/2 has no field Upgrade"),
    pytest.mark.skipif(not wsproto, reason="python3-wsproto is missing; on Debian: "
                                           "apt-get install python3-wsproto"),
]

POOL = "upgrade=websocket\nkeep-connection=1h\n"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN, RSV1, RSV2, RSV3 = 0x80, 0x40, 0x20, 0x10
KEY = b"\x12\x34\x56\x78"
NO_KEY = bytes(4)  # of large messages: masking them takes long


# --- frames of a client ----------------------------------------------------------------------


def masked(data, key):
    repeated = (key * (len(data) // 4 + 1))[:len(data)]
    number = int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")
    return number.to_bytes(len(data), "big")


def frame(kind, data=b"", bits=FIN):
    key = KEY if len(data) < 64 * KB else NO_KEY
    if len(data) < 126:
        size = bytes([0x80 | len(data)])
    elif len(data) < 1 << 16:
        size = struct.pack("!BH", 0x80 | 126, len(data))
    else:
        size = struct.pack("!BQ", 0x80 | 127, len(data))
    return bytes([bits | kind]) + size + key + (masked(data, key) if any(key) else data)


def fragments(kind, data, size, between=b"", bits=0):
    """A message in frames of at most that many bytes, and other frames between them."""
    pieces = [data[at:at + size] for at in range(0, len(data), size)] or [b""]
    frames = [frame(CONTINUATION if number else kind, piece,
                    (FIN if number == len(pieces) - 1 else 0) | (0 if number else bits))
              for number, piece in enumerate(pieces)]
    return between.join(frames)


def close(code=1000, reason=b""):
    return frame(CLOSE, struct.pack("!H", code) + reason)


def letters(size):
    return (b"The quick brown fox jumps over the lazy dog. " * (size // 45 + 1))[:size]


SIZES = (0, 1, 125, 126, 127, 128, 65535, 65536)
VALID = ["κόσμε", "\x00", "\x7f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\ufffd",
         "\uffff", "\U00010000", "\U0010ffff", "Hello-µ@ßöäüàá-UTF-8!!"]
INVALID = [b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
           b"\xf5\x80\x80\x80", b"\xff", b"\x80", b"abc\xce\xba\xe1", b"\xf0\x90\x80"]
GOOD_CODES = (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999)
BAD_CODES = (0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535)


def framing():
    for size in SIZES:
        yield frame(TEXT, letters(size)) + frame(BINARY, os.urandom(size)) + close()


def pings():
    for data in (b"", b"Hello", b"\x00\xff\xfe\xfd", letters(125)):
        yield frame(PING, data) + close()
        yield frame(PONG, data) + frame(PING, b"after") + close()
    yield frame(PING, letters(126)) + close()
    yield b"".join(frame(PING, b"%d" % number) for number in range(10)) + close()


def reserved_bits():
    for bits in (RSV1, RSV2, RSV3, RSV1 | RSV2, RSV1 | RSV2 | RSV3):
        for kind in (TEXT, BINARY, PING, CLOSE):
            yield frame(TEXT, b"first") + frame(kind, b"\x03\xe8", FIN | bits) + close()


def opcodes():
    for kind in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
        for data in (b"", b"Hello"):
            yield frame(TEXT, b"first") + frame(kind, data) + frame(PING) + close()


def fragmentation():
    ping = frame(PING, b"between")
    for kind in (TEXT, BINARY):
        for size in (1, 7, 100):
            yield fragments(kind, letters(200), size) + close()
            yield fragments(kind, letters(200), size, ping) + close()
        yield frame(kind, b"one", 0) + frame(kind, b"two") + close()
    for kind in (PING, PONG, CLOSE):
        yield frame(kind, b"", 0) + frame(CONTINUATION, b"x") + close()
    yield frame(CONTINUATION, b"of nothing") + close()
    yield frame(CONTINUATION, b"of nothing", 0) + close()
    yield frame(TEXT, b"", 0) + frame(CONTINUATION, b"", 0) + frame(CONTINUATION) + close()


def utf8():
    for text in VALID:
        for size in (1, 2, 100):
            yield fragments(TEXT, text.encode(), size) + close()
    for data in INVALID:
        for size in (1, 100):
            yield frame(TEXT, b"first") + fragments(TEXT, data, size) + close()


def closing():
    for code in GOOD_CODES + BAD_CODES:
        yield close(code) + frame(PING)
        yield close(code, b"reason")
    yield frame(CLOSE)
    yield frame(CLOSE, b"\x03")
    yield close(1000, letters(123))
    yield close(1000, letters(124))
    yield close(1000, b"\xce\xba\xe1")
    yield close() + frame(TEXT, b"too late")
    yield close() + close(1001)
    yield letters(1000) + close()  # no frames at all


def limits():
    for size in (64 * KB, 256 * KB, 1 * MB, 4 * MB, 16 * MB // SCALE):
        yield frame(BINARY, os.urandom(size)) + close()
        yield frame(TEXT, letters(size)) + close()
    for size in (256, 1 * KB, 4 * KB, 64 * KB, 1 * MB):
        yield fragments(BINARY, os.urandom(4 * MB // SCALE), size) + close()
    for size in (0, 16, 64, 256, 1024, 4096, 16384):
        yield frame(BINARY, letters(size)) * (1000 // SCALE) + close()


def automatic_fragments():
    yield fragments(TEXT, letters(65536), 1300) + close()


GROUPS = {"framing": framing, "pings": pings, "reserved bits": reserved_bits, "opcodes": opcodes,
          "fragmentation": fragmentation, "UTF-8": utf8, "closing": closing, "limits": limits,
          "automatic fragments": automatic_fragments}


# --- both ends -------------------------------------------------------------------------------


class Echo:
    """Echoes messages as a server that is strict; records what came and what it sent."""

    def __init__(self, compresses):
        self.compresses = compresses
        self.ended = threading.Semaphore(0)

    def __call__(self, asked):
        self.came, self.sent = [asked.data], []
        self.socket = asked.connection.socket
        self.end = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
        self.parts = []
        try:
            self.take(asked.head + b"\r\n\r\n" + asked.data)
            while True:
                data = self.socket.recv(1 << 20)
                if not data:
                    break
                self.came.append(data)
                self.take(data)
        finally:
            self.ended.release()
        return False

    def take(self, data):
        if self.end.state in (wsproto.connection.ConnectionState.CLOSED, "over"):
            return
        try:
            self.end.receive_data(data)
            for event in self.end.events():
                self.answer(event)
        except wsproto.utilities.RemoteProtocolError as fault:
            self.say(fault.event_hint or events.CloseConnection(1002))
            self.finish()

    def answer(self, event):
        if isinstance(event, events.Request):
            known = [extensions.PerMessageDeflate()] if self.compresses else []
            self.send(self.end.send(events.AcceptConnection(extensions=known)), False)
        elif isinstance(event, events.Message):
            self.parts.append(event.data)
            if event.message_finished:
                whole = type(event.data)().join(self.parts)
                self.parts = []
                self.say(type(event)(whole))
        elif isinstance(event, events.Ping):
            self.say(event.response())
        elif isinstance(event, events.CloseConnection):
            self.say(event.response())
            self.finish()

    def say(self, event):
        try:
            self.send(self.end.send(event))
        except wsproto.utilities.LocalProtocolError:
            self.finish()

    def send(self, data, record=True):
        self.socket.sendall(data)
        if record:
            self.sent.append(data)

    def finish(self):
        """Nothing more is sent; what still comes is read, or it would break the connection."""
        self.end = type("Over", (), {"state": "over"})
        self.socket.shutdown(1)


OPENING = ("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")


def converse(port, data, fields, chop):
    """Sends the frames, in pieces of that size; returns all that comes."""
    with Client(port) as client:
        client.send(request("/app", fields=OPENING + fields))
        head = client.head()
        assert head.startswith(b"HTTP/1.1 101 "), head

        def send():
            try:
                for at in range(0, len(data), chop):
                    client.socket.sendall(data[at:at + chop])
            except OSError:
                pass  # the other end has closed

        thread = threading.Thread(target=send)
        thread.start()
        pieces = [client.data]
        while piece := client.receive(1 << 20):
            pieces.append(piece)
        thread.join(TIMEOUT)
        assert not thread.is_alive()
    return b"".join(pieces)


def compare(app, echo, data, fields="", chop=1 << 20):
    """The conversation directly with the server behind, and through the server."""
    direct = int(app.address.rpartition(":")[2])
    sent = []
    for port in (direct, app.server.port):
        got = converse(port, data, fields, chop)
        assert echo.ended.acquire(timeout=TIMEOUT)
        # What follows its end may get lost, but nothing else may come.
        came = b"".join(echo.came)
        assert data.startswith(came) and (port == direct or len(came) >= least), len(came)
        least = 0 if len(came) < len(data) else len(data)
        sent.append(b"".join(echo.sent))
        assert got == sent[-1]
    assert sent[0] == sent[1]
    return sent[0]


@pytest.mark.parametrize("group", GROUPS)
def test_conversations(behind, group):
    echo = Echo(False)
    app = behind(echo, pool=POOL, tcp=True)
    for data in GROUPS[group]():
        assert compare(app, echo, data), data[:200]


@pytest.mark.parametrize("chop", [1, 2, 7, 1000])
def test_chopped(behind, chop):
    """Frames are divided anywhere, and several come together."""
    echo = Echo(False)
    app = behind(echo, pool=POOL, tcp=True)
    data = (fragments(TEXT, letters(300), 50, frame(PING, b"now")) + frame(BINARY, letters(200))
            + frame(TEXT, "κόσμε".encode()) + close(3000, b"end"))
    assert compare(app, echo, data, chop=chop).endswith(b"end")


def deflated(messages, size, takeover, window=15):
    """The frames of compressed messages."""
    result, compressor = b"", None
    for message in messages:
        if not compressor or not takeover:
            compressor = zlib.compressobj(9, zlib.DEFLATED, -window)
        data = compressor.compress(message) + compressor.flush(zlib.Z_SYNC_FLUSH)
        result += fragments(TEXT, data[:-4], size, bits=RSV1)
    return result + close()


@pytest.mark.parametrize("takeover", [True, False])
@pytest.mark.parametrize("size", [16, 64, 256, 1024, 4096, 16384, 65536, 131072])
def test_compression(behind, size, takeover):
    echo = Echo(True)
    app = behind(echo, pool=POOL, tcp=True)
    fields = ("Sec-WebSocket-Extensions: permessage-deflate"
              + ("" if takeover else "; client_no_context_takeover; server_no_context_takeover")
              + "\r\n")
    messages = [letters(size)[number % 7:] for number in range(100 // SCALE)]
    for piece in (1 << 30, 200):
        got = compare(app, echo, deflated(messages, piece, takeover), fields)
        assert got[:1] == bytes([FIN | RSV1 | TEXT])


# What the client offers, and what the server behind agrees to.
PARAMETERS = [
    ("client_max_window_bits", "client_max_window_bits=15"),
    ("client_max_window_bits=9", "client_max_window_bits=9"),
    ("server_max_window_bits=10", "server_max_window_bits=10"),
    ("server_no_context_takeover", "server_no_context_takeover"),
    ("client_no_context_takeover", "client_no_context_takeover"),
    ("server_no_context_takeover; client_no_context_takeover; server_max_window_bits=9; "
     "client_max_window_bits=9", "client_no_context_takeover; server_no_context_takeover; "
     "client_max_window_bits=9; server_max_window_bits=9"),
]


@pytest.mark.parametrize(("offered", "agreed"), PARAMETERS)
def test_parameters_of_compression(behind, offered, agreed):
    """Both ends agree on them through the server, and use them."""
    echo = Echo(True)
    app = behind(echo, pool=POOL, tcp=True)
    fields = f"Sec-WebSocket-Extensions: permessage-deflate; {offered}\r\n"
    with Client(app.server.port) as client:
        client.send(request("/app", fields=OPENING + fields))
        said = [line.partition(": ")[2] for line in client.head().decode().split("\r\n")
                if line.lower().startswith("sec-websocket-extensions:")]
    assert echo.ended.acquire(timeout=TIMEOUT)
    assert len(said) == 1 and sorted(said[0].split("; ")) == sorted(
        ["permessage-deflate", *agreed.split("; ")])
    window = 9 if "client_max_window_bits=9" in agreed else 15
    messages = [letters(size) for size in (10, 5000, 70000)] * 3
    for piece in (1 << 30, 200):
        data = deflated(messages, piece, "client_no_context" not in offered, window)
        assert compare(app, echo, data, fields)[:1] == bytes([FIN | RSV1 | TEXT])
