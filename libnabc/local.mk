# SPDX-License-Identifier: MIT
# The library: one set of objects, exported (libnabc) and whole for unit tests.
lib_LTLIBRARIES = libnabc/libnabc.la
noinst_LTLIBRARIES += libnabc/libnabc-internal.la

nabcincludedir = $(includedir)
nabcinclude_HEADERS = libnabc/nabc.h libnabc/nabc-worker.h
pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = libnabc/nabc.pc

libnabc_libnabc_internal_la_SOURCES = \
	libnabc/id.h \
	libnabc/fragment.c libnabc/fragment.h \
	libnabc/extent.c libnabc/extent.h \
	libnabc/checksum.c libnabc/checksum.h \
	libnabc/replacement.c libnabc/replacement.h \
	libnabc/wire.c libnabc/wire.h \
	libnabc/segment.c libnabc/segment.h \
	libnabc/ring.c libnabc/ring.h \
	libnabc/peer.c libnabc/peer.h \
	libnabc/process.c libnabc/process.h \
	libnabc/queue.c libnabc/queue.h libnabc/lane.h \
	libnabc/route.c libnabc/route.h \
	libnabc/unit.c libnabc/unit.h \
	libnabc/store.c libnabc/store.h \
	libnabc/member.c libnabc/member.h \
	libnabc/foreign.c libnabc/foreign.h \
	libnabc/cache.c libnabc/cache.h \
	libnabc/attach.c libnabc/attach.h \
	libnabc/handle.c libnabc/handle.h \
	libnabc/transmit.c libnabc/transmit.h \
	libnabc/exchange.c libnabc/exchange.h \
	libnabc/responder.c libnabc/responder.h \
	libnabc/face.c libnabc/face.h \
	libnabc/nabc.c libnabc/worker.c
libnabc_libnabc_internal_la_CFLAGS = $(AM_CFLAGS) $(URING_CFLAGS)
libnabc_libnabc_internal_la_LIBADD = $(URING_LIBS)

libnabc_libnabc_la_SOURCES =
libnabc_libnabc_la_LIBADD = libnabc/libnabc-internal.la $(URING_LIBS)
libnabc_libnabc_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/libnabc/libnabc.map
EXTRA_libnabc_libnabc_la_DEPENDENCIES = libnabc/libnabc.map

EXTRA_DIST += libnabc/libnabc.map
