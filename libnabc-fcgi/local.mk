# SPDX-License-Identifier: MIT
# For programs of libfcgi: preloaded, it makes them workers.  It sees libnabc's public calls alone.
if SWEET
noinst_LTLIBRARIES += libnabc-fcgi/libnabc-fcgi-internal.la
if SHARED
pkglib_LTLIBRARIES = libnabc-fcgi/libnabc-fcgi.la
endif
endif

libnabc_fcgi_libnabc_fcgi_internal_la_SOURCES = \
	libnabc-fcgi/exchange.c libnabc-fcgi/exchange.h \
	libnabc-fcgi/fcgx-stream.c \
	libnabc-fcgi/head.c libnabc-fcgi/head.h \
	libnabc-fcgi/input.c libnabc-fcgi/input.h \
	libnabc-fcgi/interface.h \
	libnabc-fcgi/layout.h \
	libnabc-fcgi/mode.c libnabc-fcgi/mode.h \
	libnabc-fcgi/output.c libnabc-fcgi/output.h \
	libnabc-fcgi/real.c libnabc-fcgi/real.h \
	libnabc-fcgi/request.c \
	libnabc-fcgi/server-link.c libnabc-fcgi/server-link.h \
	libnabc-fcgi/stdio-bytes.c \
	libnabc-fcgi/stdio-file.c \
	libnabc-fcgi/stdio-interface.h \
	libnabc-fcgi/unit.c libnabc-fcgi/unit.h
libnabc_fcgi_libnabc_fcgi_internal_la_CPPFLAGS = $(public_cppflags)

# A module: its name has no version, and it is in no folder where linkers look for libraries.
libnabc_fcgi_libnabc_fcgi_la_SOURCES =
libnabc_fcgi_libnabc_fcgi_la_LIBADD = libnabc-fcgi/libnabc-fcgi-internal.la libnabc/libnabc.la
libnabc_fcgi_libnabc_fcgi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined \
	-Wl,--version-script=$(srcdir)/libnabc-fcgi/libnabc-fcgi.map
EXTRA_libnabc_fcgi_libnabc_fcgi_la_DEPENDENCIES = libnabc-fcgi/libnabc-fcgi.map

EXTRA_DIST += libnabc-fcgi/libnabc-fcgi.map
