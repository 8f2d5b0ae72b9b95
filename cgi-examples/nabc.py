# SPDX-License-Identifier: MIT
"""nabc.py - libnabc for Python: workers, CGI programs and other members of a cache.

A worker, which SWEET starts:

    import nabc

    with nabc.Worker() as worker:
        for request in worker:
            request.respond(body=b"Hello\\n")

A CGI program, which leaves its page in the cache and passes on its id:

    page = nabc.put(b"Hello\\n", lifetime=60)
    print(f"X-NABC-Cache-Id: {page}\\r\\n\\r", flush=True)

A process that is no worker attaches to the cache at $NABC_CACHE with its first
call; attach() names another.  What fails raises OSError with the errno of
libnabc's manual pages, which say the rest.  All calls may be made from any
thread, but for those of one Worker, which belongs to one at a time.

Lies beside the program that imports it, or in a folder of $PYTHONPATH; the
dynamic linker finds libnabc.so.1 itself.
"""

import ctypes
import errno
import os
import sys
import traceback
from ctypes import (POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_ssize_t, c_uint,
                    c_uint32, c_uint64, c_void_p, create_string_buffer, sizeof)
from typing import NamedTuple

PROCESS, USER, GROUP = 1, 3, 4  # enum NC_principal
INET, CRC32C = 1, 2  # enum NC_checksum_kind

RANGES_MAX = 16  # NC_RESPONSE_RANGES_MAX

_KEEP = 0x1  # NC_RESPONSE_KEEP
_MORE = 0x2  # NC_RESPONSE_MORE
_DROP = 0x10000  # NC_RESPONSE_DROP(0)


class Range(NamedTuple):
    """A part of a unit."""

    id: int
    offset: int
    length: int


# --- what nabc.h and nabc-worker.h declare ------------------------------------

# Each call gets the size of the structure as it is known here, so a newer
# library, whose structures are longer, still understands this program.


class _Range(Structure):
    _fields_ = [("id", c_size_t), ("offset", c_size_t), ("length", c_size_t)]


class _Stat(Structure):
    _fields_ = [("id", c_size_t), ("size", c_size_t), ("fraglen", c_size_t),
                ("fragments", c_size_t), ("kind", c_int), ("member", c_uint), ("holds", c_uint),
                ("session", c_int), ("since", c_uint64)]


class _Request(Structure):
    _fields_ = [("size", c_size_t), ("tag", c_uint64), ("channel", c_uint32), ("flags", c_uint),
                ("variables", c_void_p), ("variables_length", c_size_t)]


class _Response(Structure):
    _fields_ = [("size", c_size_t), ("status", c_int), ("flags", c_uint), ("headers", c_char_p),
                ("headers_length", c_size_t), ("body", _Range), ("ranges", POINTER(_Range)),
                ("holds", c_void_p), ("range_count", c_uint), ("data", c_void_p),
                ("data_length", c_size_t)]


def _judge(result, function, arguments):
    """-1 and NULL mean that errno says why."""
    if result is None or result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{function.__name__}: {os.strerror(number)}")
    return result


_library = ctypes.CDLL("libnabc.so.1", use_errno=True)


def _call(name, result, *arguments, judge=_judge):
    function = getattr(_library, name)
    function.restype, function.argtypes = result, arguments
    if judge:
        function.errcheck = judge
    return function


_sizeof = _call("NC_sizeof", c_size_t, c_char_p, judge=None)
_attach = _call("NC_cache_attach", c_void_p, c_char_p, c_void_p)
_alloc = _call("NC_alloc", c_int, c_void_p, c_size_t, c_size_t)
_write = _call("NC_write", c_ssize_t, c_void_p, c_void_p, c_size_t, c_size_t)
_insert = _call("NC_insert", c_int, c_void_p)
_cache_id = _call("NC_cache_id", c_size_t, c_void_p, judge=None)
_free = _call("NC_free", c_int, c_void_p, judge=None)
_stat = _call("NC_stat", c_int, c_void_p, c_size_t, POINTER(_Stat), c_size_t)
_pread = _call("NC_pread", c_ssize_t, c_void_p, c_size_t, c_void_p, c_size_t, c_size_t)
_checksum = _call("NC_checksum", c_int, c_void_p, c_size_t, POINTER(c_uint32), c_int, c_size_t,
                  c_size_t)
_hold = _call("NC_hold", c_int, c_void_p, c_size_t, c_void_p)
_release = _call("NC_release", c_int, c_void_p)
_destroy = _call("NC_destroy", c_int, c_void_p, c_size_t)
_grant = _call("NC_grant", c_int, c_void_p, c_size_t, c_int, c_uint32)
_revoke = _call("NC_revoke", c_int, c_void_p, c_size_t, c_int, c_uint32)
_set_lifetime = _call("NC_set_lifetime", c_int, c_void_p, c_size_t, c_uint64)
_worker_open = _call("NC_worker_open", c_void_p, c_void_p)
_worker_accept = _call("NC_worker_accept", c_int, c_void_p, POINTER(_Request), c_size_t, c_uint)
_worker_body = _call("NC_worker_body", c_int, c_void_p, POINTER(_Request), POINTER(_Range), c_uint)
_worker_respond = _call("NC_worker_respond", c_int, c_void_p, POINTER(_Request),
                        POINTER(_Response))
_worker_send = _call("NC_worker_send", c_int, c_void_p, POINTER(_Request), POINTER(_Range),
                     c_uint, c_uint)
_worker_abort = _call("NC_worker_abort", c_int, c_void_p, POINTER(_Request))
_worker_gone = _call("NC_worker_gone", c_int, c_void_p, POINTER(_Request))
_worker_close = _call("NC_worker_close", None, c_void_p, judge=None)


# --- units --------------------------------------------------------------------

_member = False  # of a cache, by attach() or as a worker


def _cache():
    """The default cache.  The library would open one for a process that has none,
    whose units nobody else could ever send: that is refused here."""
    if not _member and not os.environ.get("NABC_CACHE"):
        raise OSError(errno.ENXIO, "no cache: NABC_CACHE is not set, and attach() was not called")
    return None


def attach(path=None):
    """Joins the cache at path, or at $NABC_CACHE, now; else the first call does."""
    if path is None:
        path = os.environ["NABC_CACHE"]
    global _member
    _attach(os.fsencode(path), None)
    _member = True


def put(data, lifetime=None):
    """Copies data into a new unit and returns its id.

    data is bytes, or an object with the buffer protocol, such as bytearray, and not empty.
    lifetime: seconds after which the unit ends by itself; not for workers, whose units end
    when they are sent.  The server that started this process may send the unit, even if
    another process owns the cache.
    """
    unit = create_string_buffer(_sizeof(b"NC_handle"))
    length = memoryview(data).nbytes
    _cache()
    _alloc(unit, length, 0)
    try:
        _write(unit, _memory(data), length, 0)
        _insert(unit)
        made = _cache_id(unit)
    finally:
        _free(unit)
    try:
        # A worker's server needs no grant, and its memory no copy for one.
        if "NABC_SERVER_PID" in os.environ and "NABC_WORKER_FD" not in os.environ:
            grant(made, PROCESS, int(os.environ["NABC_SERVER_PID"]))
        if lifetime is not None:
            _set_lifetime(_cache(), made, int(lifetime * 1000))
    except BaseException:
        destroy(made)
        raise
    return made


def _memory(data):
    """What ctypes takes for a pointer to data's bytes, without a copy where it can."""
    if isinstance(data, bytes):
        return data
    view = memoryview(data)
    if view.readonly or not view.c_contiguous:
        return view.tobytes()
    return (ctypes.c_char * view.nbytes).from_buffer(view)


def get(unit, offset=0, length=None):
    """The bytes of a unit, or of length bytes of it from offset on."""
    if length is None:
        length = max(size(unit) - offset, 0)
    data = create_string_buffer(length)
    got = _pread(_cache(), unit, data, length, offset)
    return ctypes.string_at(data, got)


def size(unit):
    """How many bytes the unit has."""
    stat = _Stat()
    _stat(_cache(), unit, byref(stat), sizeof(stat))
    return stat.size


def checksum(unit, kind=CRC32C, offset=0, length=None):
    """The checksum of a unit's bytes, which are not copied."""
    value = c_uint32()
    if length is None:
        length = max(size(unit) - offset, 0)
    _checksum(_cache(), unit, byref(value), kind, length, offset)
    return value.value


class Hold:
    """Keeps a unit from being evicted until release(), or the end of a `with`."""

    def __init__(self, unit):
        self._hold = create_string_buffer(_sizeof(b"struct NC_hold"))
        _hold(_cache(), unit, self._hold)

    def release(self):
        _release(self._hold)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


def hold(unit):
    return Hold(unit)


def destroy(unit):
    """Drops a unit: its id is dead, its memory goes when nobody sends it any more."""
    _destroy(_cache(), unit)


def grant(unit, principal, who):
    """Grants the unit to a process (pid), a user (uid) or a group (gid)."""
    _grant(_cache(), unit, principal, who)


def revoke(unit, principal, who):
    _revoke(_cache(), unit, principal, who)


# --- worker -------------------------------------------------------------------


def _line(name, value):
    """A header line; what came from a client must not begin a second one."""
    line = f"{name}: {value}"
    if any(character in line for character in "\r\n\0"):
        raise ValueError(f"no header line: {line!r}")
    return line.encode("latin-1") + b"\r\n"


class Request:
    """A request that a worker has to answer, once, before or after others."""

    def __init__(self, worker, request):
        self._worker = worker
        # The variables as well: a copy, since the library's memory ends with the request.
        self._block = create_string_buffer(
            ctypes.string_at(request.variables, request.variables_length),
            request.variables_length or 1)
        self._request = _Request(sizeof(_Request), request.tag, request.channel, request.flags,
                                 ctypes.addressof(self._block), request.variables_length)
        self._variables = None
        self.answered = False

    @property
    def variables(self):
        """The meta-variables of RFC 3875, decoded as os.environ is."""
        if self._variables is None:
            pairs = (os.fsdecode(entry).partition("=") for entry in self._block.raw.split(b"\0"))
            self._variables = {name: value for name, equals, value in pairs if equals}
        return self._variables

    def pieces(self):
        """The request's body as Ranges, each good until the next is asked for."""
        piece = _Range()
        while _worker_body(self._worker.pointer, byref(self._request), byref(piece), 0):
            yield Range(piece.id, piece.offset, piece.length)

    def body(self):
        """A copy of the request's body."""
        return b"".join(get(*piece) for piece in self.pieces())

    def respond(self, status=200, headers=(), body=b"", keep=False):
        """Answers with a status from 200 to 599, pairs of header fields and a body.

        body: bytes, for which a unit is made; or the id of a unit, or a Range
        of one, that this worker has put(); or a list of such parts, at most
        RANGES_MAX.  The server gives the units back when they are sent; with
        keep, those that were named stay for more answers, until destroy().
        """
        with _Body(body, keep) as parts:
            self._begin(status, headers, parts, 0)

    def stream(self, pieces, status=200, headers=(), keep=False):
        """Answers piece by piece, as pieces, an iterable of bodies as above, gives them.

        Each leaves at once; of a client that reads slowly this call waits for
        the next one's room.  When the client goes, so does the rest: False
        then, else True.  If pieces raises, the client sees that there is more.
        """
        self._begin(status, headers, _Body([], False), _MORE)
        try:
            for piece in pieces:
                with _Body(piece, keep) as parts:
                    if any(part.length for part in parts.ranges):
                        self._send(parts, _MORE)
            self._send(_Body([], False), 0)
        except BaseException as error:
            self.abort()
            if getattr(error, "errno", None) != errno.ECANCELED:
                raise
            return False
        return True

    def abort(self):
        """Gives the request up: an error page, or the end of what was begun."""
        _worker_abort(self._worker.pointer, byref(self._request))
        self.answered = True

    @property
    def gone(self):
        """Whether nobody waits for the answer any more."""
        return _worker_gone(self._worker.pointer, byref(self._request)) == 1

    def _begin(self, status, headers, parts, flags):
        lines = b"".join(_line(name, value) for name, value in headers)
        response = _Response(sizeof(_Response), status, parts.flags | flags, lines, len(lines),
                             Range(0, 0, 0), parts.ranges, None, len(parts.ranges))
        _worker_respond(self._worker.pointer, byref(self._request), byref(response))
        self.answered = True

    def _send(self, parts, flags):
        _worker_send(self._worker.pointer, byref(self._request), parts.ranges, len(parts.ranges),
                     parts.flags | flags)


class _Body:
    """A body as the library takes it: ranges of units, those that were made for it
    among them, which are its own until the end of the with statement."""

    def __init__(self, body, keep):
        self.flags, self._made = 0, []
        ranges = []
        try:
            for part in body if isinstance(body, list) else [body]:
                if not isinstance(part, (Range, int)):
                    if memoryview(part).nbytes == 0:
                        continue
                    self.flags |= _DROP << len(ranges)
                    self._made.append(put(part))
                    part = self._made[-1]
                ranges.append(part if isinstance(part, Range) else Range(part, 0, size(part)))
        except BaseException:
            self._destroy()
            raise
        self.flags = self.flags | _KEEP if keep and len(self._made) < len(ranges) else 0
        self.ranges = (_Range * len(ranges))(*ranges)

    def _destroy(self):
        for unit in self._made:
            destroy(unit)

    def __enter__(self):
        return self

    def __exit__(self, failed, *unused):
        if failed:
            self._destroy()


class Worker:
    """This process as a worker of the server that has started it."""

    def __init__(self):
        global _member
        self.pointer = _worker_open(None)
        _member = True

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        if self.pointer:
            _worker_close(self.pointer)
            self.pointer = None

    def accept(self):
        """The next request; None when the server wants the worker to end."""
        request = _Request()
        if _worker_accept(self.pointer, byref(request), sizeof(request), 0) == 0:
            return None
        return Request(self, request)

    def __iter__(self):
        return iter(self.accept, None)

    def serve(self, answer):
        """Calls answer(request) for each request until the server ends.

        One that raises, or does not respond, is answered by 500; standard
        error, which goes to the server's log, tells why.
        """
        for request in self:
            try:
                answer(request)
                if not request.answered:
                    raise RuntimeError("the request has not been answered")
            except Exception as error:
                # The client may go before its body has come; that is no problem of ours.
                if getattr(error, "errno", None) != errno.ECANCELED:
                    traceback.print_exc(file=sys.stderr)
                if not request.answered:
                    request.respond(500)
